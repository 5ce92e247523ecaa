/* Running extremes, equality, slices with masks, repetitions, what sampling may choose from, complex numbers. */
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,  ACL_DOUBLE,
                                    ACL_INT32, ACL_INT8,    ACL_INT64, ACL_BOOL};
enum { TYPES = sizeof types / sizeof types[0] };

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static tensor small_numbers(aclDataType type, int rank, const int64_t *dims, unsigned values) {
    tensor t = make_tensor(type, rank, dims, any_layout());
    for (int64_t i = 0; i < t.count; i++)
        set_element(&t, i, (double)(random_bits() % (type == ACL_BOOL ? 2 : values)));
    return t;
}

static void must(const char *name, const caller_value *values) {
    if (call_op(name, values))
        fail_msg("%s: %s", name, sentence());
}

static void refused(const char *name, const caller_value *values, const char *word) {
    assert_int_equal(call_op(name, values), ACLNN_ERR_PARAM_INVALID);
    const char *text = sentence();
    if (!strstr(text, word))
        fail_msg("%s says %s", name, text);
}

static void fails_later(const char *name, const caller_value *values, const char *word) {
    const caller *op = find_caller(name);
    uint64_t size;
    aclOpExecutor *executor;
    aclrtStream stream;
    assert_int_equal(aclrtCreateStream(&stream), 0);
    if (op->prepare(values, &size, &executor))
        fail_msg("%s: %s", name, sentence());
    assert_int_equal(op->run(NULL, 0, executor, stream), 0);
    assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
    const char *text = sentence();
    if (!strstr(text, word))
        fail_msg("%s says %s", name, text);
    assert_int_equal(aclrtDestroyStream(stream), 0);
}

static void running_extremes(void **state) {
    (void)state;
    static const int64_t dims[] = {3, 2100, 2};
    for (int t = 0; t < TYPES; t++)
        for (int dim = 0; dim < 3; dim++)
            for (int least = 0; least < 2; least++) {
                tensor self = small_numbers(types[t], 3, dims, 100),
                       values = make_tensor(types[t], 3, dims, any_layout()),
                       where = make_tensor(least ? ACL_INT32 : ACL_INT64, 3, dims, any_layout());
                if (is_float(types[t]))
                    set_element(&self, 1500, NAN);
                must(least ? "Cummin" : "Cummax", (caller_value[]){T(self), I(dim), T(values), T(where)});
                int64_t inner = dim == 0 ? 4200 : dim == 1 ? 2 : 1, n = dims[dim];
                for (int64_t i = 0; i < self.count; i++) {
                    int64_t place = i / inner % n;
                    double x = get_element(&self, i), before = place ? get_element(&values, i - inner) : x;
                    bool take = !place || isnan(x) || (!isnan(before) && (least ? x <= before : x >= before));
                    double want = take ? x : before;
                    double got = get_element(&values, i);
                    assert_true(got == want || (isnan(got) && isnan(want)));
                    assert_true(get_element(&where, i) == (take ? (double)place : get_element(&where, i - inner)));
                }
                assert_true(untouched_outside(&values) && untouched_outside(&where));
                free_tensor(&self);
                free_tensor(&values);
                free_tensor(&where);
            }
}

static void equality(void **state) {
    (void)state;
    static const int64_t dims[] = {30, 700}, other_dims[] = {700, 30}, zero[] = {0, 3};
    for (int t = 0; t < TYPES; t++) {
        tensor a = small_numbers(types[t], 2, dims, 50), b = make_tensor(types[t], 2, dims, any_layout()),
               c = small_numbers(types[t], 2, other_dims, 50), out = make_tensor(ACL_BOOL, 0, NULL, CONTIGUOUS),
               empty = make_tensor(types[t], 2, zero, CONTIGUOUS);
        for (int64_t i = 0; i < a.count; i++)
            set_element(&b, i, get_element(&a, i));
        must("Equal", (caller_value[]){T(a), T(b), T(out)});
        assert_true(get_element(&out, 0) == 1);
        must("Equal", (caller_value[]){T(a), T(c), T(out)});
        assert_true(get_element(&out, 0) == 0);
        must("Equal", (caller_value[]){T(empty), T(empty), T(out)});
        assert_true(get_element(&out, 0) == 1);
        set_element(&b, b.count - 1, get_element(&b, b.count - 1) == 0);
        must("Equal", (caller_value[]){T(a), T(b), T(out)});
        assert_true(get_element(&out, 0) == 0);
        for (int invert = 0; invert < 2; invert++)
            for (int there = 0; there < 2; there++) {
                int64_t value = 77;
                aclScalar *element = aclCreateScalar(&value, ACL_INT64);
                set_element(&a, 20000, there && types[t] != ACL_BOOL ? 77 : 0);
                must("IsInScalarTensor", (caller_value[]){P(element), T(a), I(0), I(invert), T(out)});
                assert_true(get_element(&out, 0) == ((there && types[t] != ACL_BOOL) != invert));
                aclDestroyScalar(element);
            }
        free_tensor(&a);
        free_tensor(&b);
        free_tensor(&c);
        free_tensor(&out);
        free_tensor(&empty);
    }
}

static void repetitions(void **state) {
    (void)state;
    static const int64_t dims[] = {4, 5, 3};
    static const double times[] = {2, 0, 3, 1, 4};
    int64_t five = 5, ten = 10, out_dims[] = {4, 10, 3}, one = 1, all = 120, sixty = 60;
    for (int t = 0; t < TYPES; t++) {
        tensor self = small_numbers(types[t], 3, dims, 100), repeats = make_tensor(ACL_INT64, 1, &five, any_layout()),
               out = make_tensor(types[t], 3, out_dims, any_layout()),
               two = make_tensor(ACL_INT64, 1, &one, CONTIGUOUS), line = make_tensor(types[t], 1, &all, any_layout()),
               index = make_tensor(ACL_INT64, 1, &ten, any_layout()),
               each = make_tensor(ACL_INT64, 1, &sixty, any_layout());
        int64_t from[10];
        for (int k = 0, at = 0; k < 5; k++) {
            set_element(&repeats, k, times[k]);
            for (int i = 0; i < (int)times[k]; i++)
                from[at++] = k;
        }
        must("RepeatInterleaveWithDim", (caller_value[]){T(self), T(repeats), I(-2), I(10), T(out)});
        for (int64_t i = 0; i < out.count; i++)
            assert_true(get_element(&out, i) == get_element(&self, i / 30 * 15 + from[i / 3 % 10] * 3 + i % 3));
        must("RepeatInterleaveTensor", (caller_value[]){T(repeats), I(10), T(index)});
        for (int64_t i = 0; i < 10; i++)
            assert_true(get_element(&index, i) == (double)from[i]);
        must("RepeatInterleaveInt", (caller_value[]){T(self), I(2), I(120), T(line)});
        for (int64_t i = 0; i < 120; i++)
            assert_true(get_element(&line, i) == get_element(&self, i / 2));
        fails_later("RepeatInterleaveInt", (caller_value[]){T(self), I(-1), I(120), T(line)},
                    "repeats_int: element 0 is -1");
        set_element(&two, 0, 2);
        must("RepeatInterleave", (caller_value[]){T(self), T(two), I(120), T(line)});
        for (int64_t i = 0; i < 120; i++)
            assert_true(get_element(&line, i) == get_element(&self, i / 2));
        for (int64_t i = 0; i < 60; i++)
            set_element(&each, i, (double)(i % 5));
        must("RepeatInterleave", (caller_value[]){T(self), T(each), I(120), T(line)});
        for (int64_t k = 0, at = 0; k < 60; k++)
            for (int64_t i = 0; i < k % 5; i++)
                assert_true(get_element(&line, at++) == get_element(&self, k));
        assert_true(untouched_outside(&out) && untouched_outside(&index) && untouched_outside(&line));
        set_element(&repeats, 4, 5);
        caller_value more[] = {T(self), T(repeats), I(1), I(11), T(out)};
        fails_later("RepeatInterleaveWithDim", more, "repeats make more than the 10 places of result");
        set_element(&repeats, 4, -1);
        fails_later("RepeatInterleaveWithDim", more, "repeats: element 4 is -1");
        set_element(&repeats, 4, 0x1p62);
        fails_later("RepeatInterleaveWithDim", more, "more than the 10 places");
        set_element(&repeats, 4, 3);
        fails_later("RepeatInterleaveWithDim", more, "repeats make 9, but result has 10 places");
        tensor *every[] = {&self, &repeats, &out, &two, &line, &index, &each};
        for (int i = 0; i < 7; i++)
            free_tensor(every[i]);
    }
}

static void both_extremes(void **state) {
    (void)state;
    static const int64_t dims[] = {4, 30, 50}, kept[] = {1, 30, 1}, dropped[] = {4, 30}, two[] = {0, -1};
    for (int t = 0; t < TYPES; t++)
        for (int form = 0; form < 3; form++) { /* a list kept, one dim dropped, all */
            int rank = form == 0 ? 3 : form == 1 ? 2 : 0;
            const int64_t *to = form == 0 ? kept : dropped;
            tensor self = small_numbers(types[t], 3, dims, 100), low = make_tensor(types[t], rank, to, any_layout()),
                   high = make_tensor(types[t], rank, to, any_layout());
            if (is_float(types[t]))
                set_element(&self, 777, NAN);
            aclIntArray *list = aclCreateIntArray(two, 2);
            caller_value many[] = {T(self), P(list), I(1), T(low), T(high)},
                         one[] = {T(self), I(2), I(0), T(low), T(high)}, all[] = {T(self), T(low), T(high)};
            must(form == 0   ? "Aminmax"
                 : form == 1 ? "AminmaxDim"
                             : "AminmaxAll",
                 form == 0   ? many
                 : form == 1 ? one
                             : all);
            for (int64_t o = 0; o < low.count; o++) {
                double least = INFINITY, most = -INFINITY;
                for (int64_t i = 0; i < self.count; i++) {
                    int64_t place = form == 0 ? i / 50 % 30 : form == 1 ? i / 50 : 0;
                    double x = get_element(&self, i);
                    if (place != o)
                        continue;
                    least = isnan(least) || isnan(x) ? NAN : fmin(least, x);
                    most = isnan(most) || isnan(x) ? NAN : fmax(most, x);
                }
                double a = get_element(&low, o), b = get_element(&high, o);
                assert_true((a == least || (isnan(a) && isnan(least))) && (b == most || (isnan(b) && isnan(most))));
            }
            assert_true(untouched_outside(&low) && untouched_outside(&high));
            aclDestroyIntArray(list);
            free_tensor(&self);
            free_tensor(&low);
            free_tensor(&high);
        }
}

static void renormed_slices(void **state) {
    (void)state;
    static const int64_t dims[] = {4, 9, 5};
    static const double norms[] = {1, 2, 3, INFINITY};
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 8; form++) {
            tensor self = make_tensor(types[t], 3, dims, any_layout()),
                   out = make_tensor(types[t], 3, dims, any_layout());
            for (int64_t i = 0; i < self.count; i++)
                set_element(&self, i, random_between(-1, 1) * (i / 5 % 9 == 4 ? 0.001 : 1));
            float p = (float)norms[form / 2], limit = 0.75f;
            aclScalar *power = aclCreateScalar(&p, ACL_FLOAT), *most = aclCreateScalar(&limit, ACL_FLOAT);
            double before[180], sums[9] = {0};
            for (int i = 0; i < 180; i++) {
                before[i] = get_element(&self, i);
                double a = fabs(before[i]), *sum = &sums[i / 5 % 9];
                *sum = isinf(p) ? fmax(*sum, a) : *sum + pow(a, p);
            }
            bool inplace = form & 1;
            must(inplace ? "InplaceRenorm" : "Renorm", (caller_value[]){T(self), P(power), I(1), P(most), T(out)});
            double unit = types[t] == ACL_DOUBLE    ? 1e-12
                          : types[t] == ACL_FLOAT   ? 1e-6
                          : types[t] == ACL_FLOAT16 ? 1e-3
                                                    : 1e-2;
            for (int i = 0; i < 180; i++) {
                double norm = isinf(p) ? sums[i / 5 % 9] : pow(sums[i / 5 % 9], 1 / p);
                double want = before[i] * (norm > limit ? limit / (norm + 1e-7) : 1);
                assert_true(fabs(get_element(inplace ? &self : &out, i) - want) <= unit * fabs(want) + 0x1p-24);
            }
            assert_true(untouched_outside(&out) && untouched_outside(&self));
            aclDestroyScalar(power);
            aclDestroyScalar(most);
            free_tensor(&self);
            free_tensor(&out);
        }
}

static void diagonals(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{4, 7, 1}, {9, 3, 1}, {0, 3, 1}, {3, 3, 3}};
    for (int t = 0; t < TYPES; t++)
        for (int s = 0; s < 4; s++)
            for (int wrap = 0; wrap < 2; wrap++) {
                int rank = s == 3 ? 3 : 2;
                tensor self = small_numbers(types[t], rank, shapes[s], 20),
                       out = make_tensor(types[t] == ACL_BOOL ? ACL_INT64 : types[t], 0, NULL, CONTIGUOUS);
                double sum = 0;
                for (int64_t i = 0; i < self.count && rank == 2; i++)
                    sum += i / shapes[s][1] == i % shapes[s][1] ? get_element(&self, i) : 0;
                if (rank == 2) {
                    must("Trace", (caller_value[]){T(self), T(out)});
                    assert_true(get_element(&out, 0) == round_to(out.type, sum));
                } else {
                    refused("Trace", (caller_value[]){T(self), T(out)}, "self has 3 dimensions");
                }
                double before[80];
                for (int64_t i = 0; i < self.count; i++)
                    before[i] = get_element(&self, i);
                float one = 1;
                aclScalar *value = aclCreateScalar(&one, ACL_FLOAT);
                must("InplaceFillDiagonal", (caller_value[]){T(self), P(value), I(wrap)});
                for (int64_t i = 0; i < self.count; i++) {
                    int64_t row = i / shapes[s][1], column = i % shapes[s][1];
                    bool hit = rank == 3 ? i / 9 == i / 3 % 3 && i / 9 == i % 3
                                         : (wrap ? row % (shapes[s][1] + 1) : row) == column;
                    assert_true(get_element(&self, i) == (hit ? 1 : before[i]));
                }
                assert_true(untouched_outside(&self));
                aclDestroyScalar(value);
                free_tensor(&self);
                free_tensor(&out);
            }
}

/* Entries of the lists; the result's dims; and where element (i, j, k) of self's dims comes from. */
static const struct {
    int64_t n, begin[4], end[4], step[4], begin_mask, end_mask, ellipsis, new_axis, shrink;
    int rank;
    int64_t dims[4], first[3], steps[3]; /* of self's dims, as the result walks them */
} slices[] = {
    {1, {1}, {3}, {1}, 0, 0, 0, 0, 0, 3, {2, 6, 7}, {1, 0, 0}, {1, 1, 1}},
    {3, {0, 5, -1}, {5, 0, 0}, {2, -2, -3}, 0, 0, 0, 0, 0, 3, {3, 3, 2}, {0, 5, 6}, {2, -2, -3}},
    {3, {9, 0, 9}, {9, 0, 9}, {1, 1, -1}, 7, 7, 0, 0, 0, 3, {5, 6, 7}, {0, 0, 6}, {1, 1, -1}},
    {2, {0, 3}, {0, 0}, {1, 1}, 0, 0, 1, 0, 2, 2, {5, 6}, {0, 0, 3}, {1, 1, 1}},
    {4, {2, 0, 1, 0}, {0, 0, 4, 0}, {1, 1, 1, 1}, 0, 0, 8, 2, 1, 3, {1, 3, 7}, {2, 1, 0}, {1, 1, 1}},
    {1, {4}, {2}, {1}, 0, 0, 0, 0, 0, 3, {0, 6, 7}, {0, 0, 0}, {1, 1, 1}},
};

static void masked_slices(void **state) {
    (void)state;
    static const int64_t dims[] = {5, 6, 7};
    for (int t = 0; t < TYPES; t++)
        for (size_t c = 0; c < sizeof slices / sizeof slices[0]; c++) {
            tensor self = small_numbers(types[t], 3, dims, 120),
                   out = make_tensor(types[t], slices[c].rank, slices[c].dims, any_layout());
            aclIntArray *begin = aclCreateIntArray(slices[c].begin, (uint64_t)slices[c].n),
                        *end = aclCreateIntArray(slices[c].end, (uint64_t)slices[c].n),
                        *step = aclCreateIntArray(slices[c].step, (uint64_t)slices[c].n);
            must("StridedSlice",
                 (caller_value[]){T(self), P(begin), P(end), P(step), I(slices[c].begin_mask), I(slices[c].end_mask),
                                  I(slices[c].ellipsis), I(slices[c].new_axis), I(slices[c].shrink), T(out)});
            for (int64_t i = 0; i < out.count; i++) {
                int64_t rest = i, coordinates[4] = {0}, at = 0;
                for (int d = out.rank - 1; d >= 0; d--) {
                    coordinates[d] = rest % out.dims[d];
                    rest /= out.dims[d];
                }
                int next = 0; /* dims of the result that walk along self */
                for (int d = 0; d < 3; d++) {
                    bool shrunk = (c == 3 && d == 2) || (c == 4 && d == 0);
                    next += c == 4 && d == 1; /* the new axis */
                    at = at * dims[d] + slices[c].first[d] + (shrunk ? 0 : coordinates[next] * slices[c].steps[d]);
                    next += !shrunk;
                }
                assert_true(get_element(&out, i) == get_element(&self, at));
            }
            assert_true(untouched_outside(&out));
            aclDestroyIntArray(begin);
            aclDestroyIntArray(end);
            aclDestroyIntArray(step);
            free_tensor(&self);
            free_tensor(&out);
        }
    tensor self = make_tensor(ACL_FLOAT, 3, dims, CONTIGUOUS);
    int64_t zeros[] = {0, 0, 0, 0}, ends[] = {5, 6, 7, 8}, bad[] = {1, 0, 1, 1};
    aclIntArray *begin = aclCreateIntArray(zeros, 3), *end = aclCreateIntArray(ends, 3),
                *step = aclCreateIntArray(bad, 3), *four = aclCreateIntArray(ends, 4);
    refused("StridedSlice", (caller_value[]){T(self), P(begin), P(end), P(step), I(0), I(0), I(0), I(0), I(0), T(self)},
            "strides[1] is 0");
    refused("StridedSlice", (caller_value[]){T(self), P(four), P(four), P(four), I(0), I(0), I(0), I(0), I(0), T(self)},
            "is about 4 dimensions, but self has 3");
    refused("StridedSlice", (caller_value[]){T(self), P(end), P(end), P(end), I(0), I(0), I(0), I(0), I(7), T(self)},
            "begin[0] is 5, but must name one of 5");
    aclDestroyIntArray(begin);
    aclDestroyIntArray(end);
    aclDestroyIntArray(step);
    aclDestroyIntArray(four);
    free_tensor(&self);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void words_to_sample(void **state) {
    (void)state;
    enum { LINES = 5, WORDS = 700 };
    static const int64_t dims[] = {LINES, WORDS}, lines = LINES;
    static const double ps[] = {0.9, 0.5, 1, 0.01, 0}, ks[] = {10, 700, 3, 0, 200};
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 4; form++) {
            tensor logits = make_tensor(types[t], 2, dims, any_layout()),
                   out = make_tensor(types[t], 2, dims, any_layout()),
                   p = make_tensor(types[t], 1, &lines, any_layout()),
                   k = make_tensor(ACL_INT32, 1, &lines, any_layout());
            for (int64_t i = 0; i < logits.count; i++)
                set_element(&logits, i, random_between(-4, 4));
            for (int l = 0; l < LINES; l++) {
                set_element(&p, l, ps[l]);
                set_element(&k, l, ks[l]);
            }
            must("ApplyTopKTopP",
                 (caller_value[]){T(logits), P(form & 1 ? p.handle : NULL), P(form & 2 ? k.handle : NULL), T(out)});
            for (int l = 0; l < LINES; l++) {
                static double x[WORDS];
                double least = -INFINITY, total = 0, above = 0;
                for (int i = 0; i < WORDS; i++)
                    x[i] = get_element(&logits, l * WORDS + i);
                qsort(x, WORDS, sizeof *x, by_value);
                if (form & 2 && ks[l] >= 1)
                    least = x[WORDS - (int)ks[l]];
                for (int i = 0; i < WORDS; i++)
                    total += x[i] >= least ? exp(x[i]) : 0;
                for (int i = WORDS - 1; i >= 0; i--) { /* from above: a logit stays while what is above it is below p */
                    double v = x[i], share = above / total, limit = get_element(&p, l);
                    above += v >= least ? exp(v) : 0;
                    bool unsure =
                        fabs(share - limit) < 1e-9 || (i && x[i - 1] == v) || (i < WORDS - 1 && x[i + 1] == v);
                    if (unsure)
                        continue;
                    bool stays = v >= least && (!(form & 1) || i == WORDS - 1 || share < limit);
                    for (int64_t w = 0; w < WORDS; w++)
                        if (get_element(&logits, l * WORDS + w) == v)
                            assert_true(get_element(&out, l * WORDS + w) == (stays ? v : -INFINITY));
                }
            }
            assert_true(untouched_outside(&out));
            refused("ApplyTopKTopP", (caller_value[]){T(logits), T(logits), P(NULL), T(out)},
                    "one for each of 5 lines");
            free_tensor(&logits);
            free_tensor(&out);
            free_tensor(&p);
            free_tensor(&k);
        }
}

static void complex_numbers(void **state) {
    (void)state;
    static const int64_t dims[] = {40, 70}, row = 70;
    for (int wide = 0; wide < 2; wide++) {
        aclDataType real = wide ? ACL_DOUBLE : ACL_FLOAT, complex = wide ? ACL_COMPLEX128 : ACL_COMPLEX64;
        tensor a = make_tensor(real, 2, dims, any_layout()), b = make_tensor(real, 1, &row, any_layout()),
               z = make_tensor(complex, 2, dims, CONTIGUOUS), angle = make_tensor(real, 2, dims, any_layout());
        for (int64_t i = 0; i < a.count; i++)
            set_element(&a, i, random_between(-3, 3));
        for (int64_t i = 0; i < b.count; i++)
            set_element(&b, i, random_between(-3, 3));
        for (int polar = 0; polar < 2; polar++) {
            must(polar ? "Polar" : "Complex", (caller_value[]){T(a), T(b), T(z)});
            must("AngleV2", (caller_value[]){T(z), T(angle)});
            for (int64_t i = 0; i < a.count; i++) {
                double x = get_element(&a, i), y = get_element(&b, i % 70), re = polar ? x * cos(y) : x,
                       im = polar ? x * sin(y) : y;
                double got_re = wide ? ((double *)z.data)[2 * i] : ((float *)z.data)[2 * i],
                       got_im = wide ? ((double *)z.data)[2 * i + 1] : ((float *)z.data)[2 * i + 1];
                assert_true(fabs(got_re - re) <= 1e-6 && fabs(got_im - im) <= 1e-6);
                assert_true(fabs(get_element(&angle, i) - atan2(got_im, got_re)) <= 1e-6);
            }
        }
        set_element(&a, 1, NAN);
        must("AngleV2", (caller_value[]){T(a), T(angle)});
        for (int64_t i = 0; i < a.count; i++)
            assert_true(i == 1 ? isnan(get_element(&angle, i))
                               : fabs(get_element(&angle, i) - (get_element(&a, i) < 0 ? M_PI : 0)) < 1e-6);
        refused("Complex", (caller_value[]){T(a), T(b), T(a)}, "out has elements of type");
        free_tensor(&a);
        free_tensor(&b);
        free_tensor(&z);
        free_tensor(&angle);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_extremes), cmocka_unit_test(equality),        cmocka_unit_test(repetitions),
        cmocka_unit_test(masked_slices),    cmocka_unit_test(words_to_sample), cmocka_unit_test(complex_numbers),
        cmocka_unit_test(both_extremes),    cmocka_unit_test(renormed_slices), cmocka_unit_test(diagonals),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
