/* Operators whose results' dims depend on data, and searches, against plain loops. */
#include "base/memory.h"
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,   ACL_DOUBLE, ACL_INT8,   ACL_UINT8, ACL_INT16,
                                    ACL_INT32, ACL_INT64,   ACL_UINT16, ACL_UINT32, ACL_UINT64, ACL_BOOL};
enum { TYPES = sizeof types / sizeof types[0] };

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

/* Small numbers with many repetitions; every fourth is 0. */
static void fill(tensor *t, unsigned values) {
    for (int64_t i = 0; i < t->count; i++) {
        double v = random_bits() % 4 ? (double)(random_bits() % values) : 0;
        if (is_float(t->type))
            v = v == 0 ? (random_bits() % 2 ? -0.0 : 0.0) : v == 1 ? NAN : v == 2 ? -INFINITY : v / 2;
        set_element(t, i, v);
    }
}

static void must(const char *name, const caller_value *values) {
    if (call_op(name, values))
        fail_msg("%s: %s", name, sentence());
}

/* Takes over the dims that the library gave the tensor: strides follow when it was contiguous. */
static void follow(tensor *t) {
    int64_t *dims, *strides;
    uint64_t n;
    assert_int_equal(aclGetViewShape(t->handle, &dims, &n), 0);
    assert_int_equal(n, t->rank);
    assert_int_equal(aclGetViewStrides(t->handle, &strides, &n), 0);
    t->count = 1;
    for (int d = 0; d < t->rank; d++) {
        assert_true(dims[d] <= t->dims[d]);
        t->dims[d] = dims[d];
        t->strides[d] = strides[d];
        t->count *= dims[d];
    }
    free(dims);
    free(strides);
}

static const struct {
    int rank;
    int64_t dims[3];
} shapes[] = {{0, {0}}, {1, {1}}, {1, {40}}, {2, {0, 3}}, {3, {4, 5, 6}}, {2, {300, 200}}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void nonzeros(void **state) {
    (void)state;
    for (int t = 0; t < TYPES; t++)
        for (int s = 0; s < SHAPES; s++)
            for (int columns = 0; columns < 2; columns++) {
                tensor in = make_tensor(types[t], shapes[s].rank, shapes[s].dims, any_layout());
                int64_t rows[] = {in.count, in.rank}, lines[] = {in.rank, in.count}, found = 0;
                tensor out = make_tensor(ACL_INT64, 2, columns ? lines : rows, any_layout());
                fill(&in, 5);
                must(columns ? "NonzeroV2" : "Nonzero", (caller_value[]){T(in), T(out)});
                follow(&out);
                for (int64_t i = 0; i < in.count; i++) {
                    if (get_element(&in, i) == 0)
                        continue;
                    int64_t rest = i;
                    for (int d = in.rank - 1; d >= 0; d--) {
                        int64_t at = columns ? d * out.dims[1] + found : found * in.rank + d;
                        assert_true(found < out.dims[columns] && get_element(&out, at) == (double)(rest % in.dims[d]));
                        rest /= in.dims[d];
                    }
                    found++;
                }
                assert_int_equal(out.dims[columns], found);
                assert_true(untouched_outside(&out));
                free_tensor(&in);
                free_tensor(&out);
            }
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void masked(void **state) {
    (void)state;
    int64_t dims[] = {50, 3, 100}, wide[] = {50, 1, 100}, all = 15000;
    for (int t = 0; t < TYPES; t++)
        for (int s = 0; s < 2; s++) {
            tensor in = make_tensor(types[t], 3, s ? dims : wide, any_layout()),
                   mask = make_tensor(s ? ACL_UINT8 : ACL_BOOL, 3, s ? wide : dims, any_layout()),
                   out = make_tensor(types[t], 1, &all, any_layout());
            fill(&in, 40);
            for (int64_t i = 0; i < mask.count; i++)
                set_element(&mask, i, (double)(random_bits() % 3 == 0));
            must("MaskedSelect", (caller_value[]){T(in), T(mask), T(out)});
            follow(&out);
            int64_t found = 0;
            for (int64_t i = 0; i < all; i++) {
                int64_t thin = i / 300 * 100 + i % 100;
                if (get_element(&mask, s ? thin : i) == 0)
                    continue;
                assert_true(found < out.count && same(get_element(&out, found), get_element(&in, s ? i : thin)));
                found++;
            }
            assert_int_equal(found, out.count);
            assert_true(untouched_outside(&out));
            if (s) {
                tensor source = make_tensor(types[t], 1, &all, any_layout());
                fill(&source, 40);
                double *before = malloc((size_t)all * sizeof *before);
                for (int64_t i = 0; i < all; i++)
                    before[i] = get_element(&in, i);
                must("InplaceMaskedScatter", (caller_value[]){T(in), T(mask), T(source)});
                found = 0;
                for (int64_t i = 0; i < all; i++) {
                    bool chosen = get_element(&mask, i / 300 * 100 + i % 100) != 0;
                    double want = chosen ? get_element(&source, found++) : before[i];
                    assert_true(same(get_element(&in, i), want));
                }
                assert_true(untouched_outside(&in));
                free(before);
                free_tensor(&source);
            }
            free_tensor(&in);
            free_tensor(&mask);
            free_tensor(&out);
        }
}

/* Outputs without the room that is documented: told when it is not enough. */
static void too_little_room(void **state) {
    (void)state;
    int64_t dims = 10, small = 3, table[] = {3, 1};
    tensor in = make_tensor(ACL_FLOAT, 1, &dims, CONTIGUOUS), mask = make_tensor(ACL_BOOL, 1, &dims, CONTIGUOUS),
           out = make_tensor(ACL_FLOAT, 1, &small, CONTIGUOUS), where = make_tensor(ACL_INT64, 2, table, CONTIGUOUS),
           inverse = make_tensor(ACL_INT64, 1, &dims, CONTIGUOUS);
    for (int how = 1; how >= 0; how--) { /* what is found changes the dims of out: last */
        for (int64_t i = 0; i < 10; i++) {
            set_element(&in, i, (double)(how ? i : i < 3 ? i + 1 : 0));
            set_element(&mask, i, how || i < 2);
        }
        const struct {
            const char *name, *sentence;
            caller_value values[5];
        } calls[] = {{"Nonzero", "out: dimension 0 is 3, but 9 elements are chosen", {T(in), T(where)}},
                     {"MaskedSelect", "out: dimension 0 is 3, but 10 elements are chosen", {T(in), T(mask), T(out)}},
                     {"InplaceMaskedScatter", "source has 3 elements, but mask chooses 10", {T(in), T(mask), T(out)}},
                     {"Unique", "y: dimension 0 is 3, but 10 were found", {T(in), I(1), I(1), T(out), T(inverse)}}};
        for (int c = 0; c < (how ? 4 : 3); c++) {
            aclrtStream stream;
            uint64_t size;
            aclOpExecutor *executor;
            const caller *op = find_caller(calls[c].name);
            assert_int_equal(aclrtCreateStream(&stream), 0);
            assert_int_equal(op->prepare(calls[c].values, &size, &executor), 0);
            assert_int_equal(op->run(NULL, 0, executor, stream), 0);
            assert_int_equal(aclrtSynchronizeStream(stream) != 0, how);
            if (how && !strstr(sentence(), calls[c].sentence))
                fail_msg("%s says %s", calls[c].name, sentence());
            assert_true(untouched_outside(&out) && untouched_outside(&where));
            assert_int_equal(aclrtDestroyStream(stream), 0);
        }
    }
    free_tensor(&in);
    free_tensor(&mask);
    free_tensor(&out);
    free_tensor(&where);
    free_tensor(&inverse);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

static void uniques(void **state) {
    (void)state;
    static double x[60000], y[60000];
    for (int t = 0; t < TYPES; t++)
        for (int s = 0; s < SHAPES; s++)
            for (int form = 0; form < 4; form++) { /* sorted or consecutive; with counts or not */
                bool consecutive = form & 1, counted = form & 2;
                tensor in = make_tensor(types[t], shapes[s].rank, shapes[s].dims, any_layout()),
                       inverse = make_tensor(ACL_INT64, shapes[s].rank, shapes[s].dims, any_layout());
                int64_t n = in.count;
                tensor out = make_tensor(types[t], 1, &n, any_layout()),
                       counts = make_tensor(ACL_INT64, 1, &n, any_layout());
                fill(&in, 9);
                if (consecutive)
                    must("UniqueConsecutive",
                         (caller_value[]){T(in), I(1), I(counted), I(1000), T(out), T(inverse), T(counts)});
                else if (counted)
                    must("Unique2", (caller_value[]){T(in), I(1), I(1), I(1), T(out), T(inverse), T(counts)});
                else
                    must("Unique", (caller_value[]){T(in), I(1), I(1), T(out), T(inverse)});
                follow(&out);
                for (int64_t i = 0; i < n; i++)
                    x[i] = y[i] = get_element(&in, i);
                if (!consecutive)
                    qsort(y, (size_t)n, sizeof *y, by_value);
                int64_t groups = 0, first = 0;
                if (counted)
                    follow(&counts);
                for (int64_t i = 0; i < n; i++) {
                    if (i && y[i] == y[i - 1])
                        continue;
                    if (counted && i)
                        assert_true(get_element(&counts, groups - 1) == (double)(i - first));
                    assert_true(groups < out.count);
                    double got = get_element(&out, groups);
                    assert_true(got == y[i] || (isnan(got) && isnan(y[i])));
                    first = i;
                    groups++;
                }
                assert_int_equal(groups, out.count);
                if (counted)
                    assert_int_equal(groups, counts.count);
                int64_t last = -1;
                for (int64_t i = 0; i < n; i++) {
                    int64_t g = (int64_t)get_element(&inverse, i);
                    assert_true(g >= 0 && g < groups);
                    double got = get_element(&out, g);
                    assert_true(got == x[i] || (isnan(got) && isnan(x[i])));
                    assert_true(!consecutive || g == last || g == last + 1);
                    last = g;
                }
                assert_true(untouched_outside(&out) && untouched_outside(&inverse) && untouched_outside(&counts));
                free_tensor(&in);
                free_tensor(&inverse);
                free_tensor(&out);
                free_tensor(&counts);
            }
}

static int compare_slices(const tensor *t, int dim, int64_t a, int64_t b) {
    int64_t inner = 1, n = t->dims[dim];
    for (int d = dim + 1; d < t->rank; d++)
        inner *= t->dims[d];
    for (int64_t i = 0; i < t->count / n; i++) {
        int64_t at = i / inner * inner * n + i % inner;
        double x = get_element(t, at + a * inner), y = get_element(t, at + b * inner);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static void unique_slices(void **state) {
    (void)state;
    int64_t dims[] = {6, 30, 2};
    for (int t = 0; t < TYPES; t++)
        for (int dim = 0; dim < 3; dim++)
            for (int consecutive = 0; consecutive < 2; consecutive++) {
                int64_t n = dims[dim];
                tensor in = make_tensor(types[t], 3, dims, any_layout()),
                       out = make_tensor(types[t], 3, dims, any_layout()),
                       inverse = make_tensor(ACL_INT64, 1, &n, any_layout()),
                       counts = make_tensor(ACL_INT64, 1, &n, any_layout());
                for (int64_t i = 0; i < in.count; i++)
                    set_element(&in, i, dim == 1 ? (double)(i % 2 && random_bits() % 2) : 1 + (double)(i == 7));
                if (consecutive)
                    must("UniqueConsecutive",
                         (caller_value[]){T(in), I(1), I(1), I(dim), T(out), T(inverse), T(counts)});
                else
                    must("UniqueDim", (caller_value[]){T(in), I(1), I(1), I(dim - 3), T(out), T(inverse), T(counts)});
                follow(&out);
                follow(&counts);
                int64_t groups = out.dims[dim], total = 0, inner = dim == 0 ? 60 : dim == 1 ? 2 : 1;
                assert_int_equal(groups, counts.count);
                for (int64_t g = 0; g < groups; g++) {
                    if (g && !consecutive)
                        assert_true(compare_slices(&out, dim, g - 1, g) < 0);
                    total += (int64_t)get_element(&counts, g);
                }
                assert_int_equal(total, n);
                for (int64_t i = 0; i < in.count; i++) {
                    int64_t slice = i / inner % n, g = (int64_t)get_element(&inverse, slice);
                    assert_true(get_element(&in, i) ==
                                get_element(&out, i / inner / n * inner * groups + g * inner + i % inner));
                    if (slice && consecutive)
                        assert_int_equal(get_element(&inverse, slice) == get_element(&inverse, slice - 1),
                                         compare_slices(&in, dim, slice - 1, slice) == 0);
                }
                assert_true(untouched_outside(&out) && untouched_outside(&inverse) && untouched_outside(&counts));
                free_tensor(&in);
                free_tensor(&out);
                free_tensor(&inverse);
                free_tensor(&counts);
            }
}

static double count_below(const tensor *sequence, int64_t begin, int64_t n, double v, bool right) {
    double count = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = get_element(sequence, begin + i);
        count += isnan(v) ? right || !isnan(x) : right ? x <= v : x < v;
    }
    return count;
}

static void searches(void **state) {
    (void)state;
    static double x[500];
    int64_t n = 500, lines[] = {3, 500}, some[] = {3, 40}, many[] = {3, 2000};
    for (int t = 0; t < TYPES; t++)
        for (int form = 0; form < 8; form++) {
            bool right = form & 1, shared = form & 2, is_long = form & 4;
            if (types[t] == ACL_UINT64)
                continue;
            tensor sequence = make_tensor(types[t], shared ? 1 : 2, shared ? &n : lines, any_layout()),
                   values = make_tensor(types[t], 2, is_long ? many : some, any_layout()),
                   out = make_tensor(right ? ACL_INT32 : ACL_INT64, 2, is_long ? many : some, any_layout()),
                   sorter = make_tensor(ACL_INT64, shared ? 1 : 2, shared ? &n : lines, any_layout());
            fill(&sequence, 200);
            fill(&values, 200);
            for (int64_t line = 0; line < sequence.count / n; line++) {
                for (int64_t i = 0; i < n; i++)
                    x[i] = get_element(&sequence, line * n + i);
                qsort(x, (size_t)n, sizeof *x, by_value);
                for (int64_t i = 0; i < n; i++) {
                    set_element(&sequence, line * n + i, x[n - 1 - i]);
                    set_element(&sorter, line * n + i, (double)(n - 1 - i));
                }
            }
            must("SearchSorted", (caller_value[]){T(sequence), T(values), I(right), I(right), T(sorter), T(out)});
            int64_t row = is_long ? 2000 : 40;
            for (int64_t i = 0; i < out.count; i++) {
                double want = count_below(&sequence, shared ? 0 : i / row * n, n, get_element(&values, i), right);
                if (get_element(&out, i) != want)
                    fail_msg("type %d, value %g: %g, but must be %g", types[t], get_element(&values, i),
                             get_element(&out, i), want);
            }
            set_element(&sorter, n / 2, (double)n);
            if (shared) {
                assert_int_not_equal(call_op("SearchSorted", (caller_value[]){T(sequence), T(values), I(right),
                                                                              I(right), T(sorter), T(out)}),
                                     0);
                assert_non_null(strstr(sentence(), "sorterOptional: element 250 of a line is 500"));
                test_end();
                test_begin();
            }
            assert_true(untouched_outside(&out));
            free_tensor(&sequence);
            free_tensor(&values);
            free_tensor(&out);
            free_tensor(&sorter);
        }
}

static void buckets_and_scalars(void **state) {
    (void)state;
    int64_t four = 4, dims[] = {2, 3};
    static const double bounds[] = {1, 3, 5, 7}, in[] = {0, 1, 2, 5, 7, 9}, left[] = {0, 0, 1, 2, 3, 4},
                        right[] = {0, 1, 1, 3, 4, 4};
    tensor boundaries = make_tensor(ACL_INT32, 1, &four, STRIDED), self = make_tensor(ACL_FLOAT, 2, dims, TRANSPOSED),
           out = make_tensor(ACL_INT32, 2, dims, TRANSPOSED), one = make_tensor(ACL_INT64, 0, dims, CONTIGUOUS);
    for (int i = 0; i < 4; i++)
        set_element(&boundaries, i, bounds[i]);
    for (int i = 0; i < 6; i++)
        set_element(&self, i, in[i]);
    for (int r = 0; r < 2; r++) {
        must("Bucketize", (caller_value[]){T(self), T(boundaries), I(1), I(r), T(out)});
        for (int i = 0; i < 6; i++) {
            assert_true(get_element(&out, i) == (r ? right : left)[i]);
            float value = (float)in[i];
            aclScalar *scalar = aclCreateScalar(&value, ACL_FLOAT);
            must("SearchSorteds", (caller_value[]){T(boundaries), P(scalar), I(0), I(r), P(NULL), T(one)});
            assert_true(get_element(&one, 0) == (r ? right : left)[i]);
            aclDestroyScalar(scalar);
        }
    }
    assert_int_equal(call_op("Bucketize", (caller_value[]){T(self), T(boundaries), I(0), I(0), T(out)}),
                     ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "out_int32 is 0, but result has elements of type i32"));
    free_tensor(&boundaries);
    free_tensor(&self);
    free_tensor(&out);
    free_tensor(&one);
}

/* Every allocation of a run fails once: a sentence about memory, and nothing is lost or overrun. */
static void memory_runs_out(void **state) {
    (void)state;
    int64_t n = 40000, few = 300;
    tensor x = make_tensor(ACL_FLOAT, 1, &n, CONTIGUOUS), y = make_tensor(ACL_FLOAT, 1, &n, CONTIGUOUS),
           at = make_tensor(ACL_INT64, 1, &n, CONTIGUOUS), counts = make_tensor(ACL_INT64, 1, &n, CONTIGUOUS),
           some = make_tensor(ACL_FLOAT, 1, &few, CONTIGUOUS), where = make_tensor(ACL_INT64, 1, &few, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++) {
        set_element(&x, i, (double)(i * 7919 % n));
        set_element(&at, i, (double)(i % 300));
    }
    const struct {
        const char *name;
        caller_value values[8];
    } calls[] = {
        {"Sort", {T(x), I(1), I(0), I(0), T(y), T(counts)}},
        {"Topk", {T(x), I(300), I(0), I(1), I(1), T(some), T(where)}},
        {"SearchSorted", {T(x), T(some), I(0), I(0), P(NULL), T(where)}},
        {"InplacePut", {T(some), T(at), T(x), I(1)}},
        {"Take", {T(some), T(at), T(y)}},
        {"ScatterReduce", {T(some), I(0), T(at), T(x), I(5), I(1), T(some)}},
        {"Bincount", {T(at), P(NULL), I(0), T(counts)}},
        {"Randperm", {I(n), I(1), I(2), T(counts)}},
        {"Multinomial", {T(x), I(300), I(0), I(1), I(2), T(where)}},
    };
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        const caller *op = find_caller(calls[c].name);
        for (long left = 1; left < 12; left++) {
            aclrtStream stream;
            uint64_t size;
            aclOpExecutor *executor = NULL;
            assert_int_equal(aclrtCreateStream(&stream), 0);
            assert_int_equal(op->prepare(calls[c].values, &size, &executor), 0);
            dp_mem_fail_after(left);
            aclnnStatus status = op->run(NULL, 0, executor, stream);
            if (!status)
                status = aclrtSynchronizeStream(stream);
            dp_mem_fail_after(0);
            if (status) {
                const char *text = sentence();
                if (!strstr(text, "memory"))
                    fail_msg("%s says %s", calls[c].name, text);
            }
            aclrtDestroyStream(stream);
        }
    }
    assert_true(untouched_outside(&y) && untouched_outside(&counts) && untouched_outside(&some));
    tensor *all[] = {&x, &y, &at, &counts, &some, &where};
    for (int i = 0; i < 6; i++)
        free_tensor(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonzeros),
        cmocka_unit_test(masked),
        cmocka_unit_test(too_little_room),
        cmocka_unit_test(uniques),
        cmocka_unit_test(unique_slices),
        cmocka_unit_test(searches),
        cmocka_unit_test(buckets_and_scalars),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
