/* Order along a dim against a plain insertion of indices: every type, layout, dim, ties, NaN and both zeros. */
#include "ops_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,   ACL_DOUBLE, ACL_INT8,   ACL_UINT8, ACL_INT16,
                                    ACL_INT32, ACL_INT64,   ACL_UINT16, ACL_UINT32, ACL_UINT64, ACL_BOOL};
enum { TYPES = sizeof types / sizeof types[0] };

typedef struct shape {
    int rank, dim;
    int64_t dims[3];
} shape;
/* Lines on both sides of the change from ranks to the radix sort and to selection. */
static const shape shapes[] = {{0, 0, {0}},         {1, 0, {1}},        {1, -1, {9}},      {2, 1, {3, 0}},
                               {2, 0, {0, 4}},      {3, 1, {3, 17, 5}}, {2, 1, {5, 128}},  {2, -2, {129, 4}},
                               {3, 2, {2, 3, 300}}, {1, 0, {3000}},     {3, 0, {40, 3, 2}}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

/* Many ties; floats have NaN, infinities and both zeros among them. */
static void fill(tensor *t) {
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, NAN};
    bool is_signed = is_float(t->type) || t->type == ACL_INT8 || t->type == ACL_INT16 || t->type == ACL_INT32 ||
                     t->type == ACL_INT64;
    for (int64_t i = 0; i < t->count; i++) {
        double v = (double)(random_bits() % 120);
        v = is_float(t->type) ? (random_bits() % 3 ? v / 8 : random_between(-1000, 1000)) : v;
        v = is_signed && random_bits() % 2 ? -v : v;
        if (is_float(t->type) && random_bits() % 10 == 0)
            v = special[random_bits() % 6];
        else if (random_bits() % 10 == 0 && t->type == ACL_INT64)
            v = random_bits() % 2 ? -0x1p62 : 0x1p62;
        set_element(t, i, v);
    }
}

/* Does a come before b in rising order; NaN after everything. */
static bool before(double a, double b) {
    return isnan(b) ? !isnan(a) : a < b;
}

typedef struct line {
    int64_t n, order[3000];
    double x[3000];
} line;

/* Stable insertion sort of indices, binary search for the place. */
static void sort_line(line *l, bool descending) {
    for (int64_t i = 0; i < l->n; i++) {
        int64_t low = 0, high = i;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            double other = l->x[l->order[middle]];
            if (descending ? before(other, l->x[i]) : before(l->x[i], other))
                high = middle;
            else
                low = middle + 1;
        }
        memmove(l->order + low + 1, l->order + low, (size_t)(i - low) * sizeof *l->order);
        l->order[low] = i;
    }
}

typedef struct geometry {
    int rank, dim;
    int64_t n, inner, lines;
} geometry;

static geometry geometry_of(const shape *s) {
    geometry g = {s->rank, s->dim < 0 ? s->dim + s->rank : s->dim, 1, 1, 1};
    for (int d = 0; d < s->rank; d++) {
        if (d == g.dim)
            g.n = s->dims[d];
        else
            g.lines *= s->dims[d];
        g.inner *= d > g.dim ? s->dims[d] : 1;
    }
    return g;
}

static int64_t place(const geometry *g, int64_t which, int64_t k, int64_t length) {
    return which / g->inner * g->inner * length + k * g->inner + which % g->inner;
}

static void load_line(line *l, const tensor *t, const geometry *g, int64_t which) {
    l->n = g->n;
    for (int64_t k = 0; k < g->n; k++)
        l->x[k] = get_element(t, place(g, which, k, g->n));
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void must(const char *name, const caller_value *values) {
    if (call_op(name, values))
        fail_msg("%s: %s", name, sentence());
}

static void refused(const char *name, const caller_value *values, const char *word) {
    assert_int_equal(call_op(name, values), ACLNN_ERR_PARAM_INVALID);
    if (!strstr(sentence(), word))
        fail_msg("%s says %s", name, sentence());
}

static void sorts(void **state) {
    (void)state;
    static line l;
    for (int t = 0; t < TYPES; t++)
        for (int k = 0; k < SHAPES; k++)
            for (int descending = 0; descending < 2; descending++) {
                const shape *s = &shapes[k];
                geometry g = geometry_of(s);
                tensor in = make_tensor(types[t], s->rank, s->dims, any_layout()),
                       values = make_tensor(types[t], s->rank, s->dims, any_layout()),
                       indices = make_tensor(ACL_INT64, s->rank, s->dims, any_layout()),
                       only = make_tensor(ACL_INT32, s->rank, s->dims, any_layout());
                fill(&in);
                must("Sort", (caller_value[]){T(in), I(1), I(s->dim), I(descending), T(values), T(indices)});
                must("Argsort", (caller_value[]){T(in), I(s->dim), I(descending), T(only)});
                for (int64_t i = 0; i < g.lines; i++) {
                    load_line(&l, &in, &g, i);
                    sort_line(&l, descending);
                    for (int64_t r = 0; r < g.n; r++) {
                        int64_t at = place(&g, i, r, g.n);
                        if (get_element(&indices, at) != (double)l.order[r] ||
                            get_element(&only, at) != (double)l.order[r] ||
                            !same(get_element(&values, at), l.x[l.order[r]]))
                            fail_msg("type %d, line of %lld, place %lld: %g from %g, but must be %g from %lld",
                                     types[t], (long long)g.n, (long long)r, get_element(&values, at),
                                     get_element(&indices, at), l.x[l.order[r]], (long long)l.order[r]);
                    }
                }
                assert_true(untouched_outside(&values) && untouched_outside(&indices) && untouched_outside(&only));
                free_tensor(&in);
                free_tensor(&values);
                free_tensor(&indices);
                free_tensor(&only);
            }
}

static int by_index(const void *a, const void *b) {
    return *(const int64_t *)a < *(const int64_t *)b ? -1 : 1;
}

static void tops(void **state) {
    (void)state;
    static line l;
    for (int t = 0; t < TYPES; t++)
        for (int c = 0; c < SHAPES * 4; c++) {
            shape s = shapes[c / 4], to = s;
            geometry g = geometry_of(&s);
            int64_t k = c % 4 == 0 ? (g.n > 0) : c % 4 == 1 ? g.n / 9 : c % 4 == 2 ? g.n - g.n / 3 : g.n;
            if (s.rank)
                to.dims[g.dim] = k;
            else if (!k)
                continue;
            for (int form = 0; form < 4; form++) {
                bool largest = form & 1, sorted = form & 2;
                tensor in = make_tensor(types[t], s.rank, s.dims, any_layout()),
                       values = make_tensor(types[t], s.rank, to.dims, any_layout()),
                       indices = make_tensor(ACL_INT64, s.rank, to.dims, any_layout());
                fill(&in);
                must("Topk", (caller_value[]){T(in), I(k), I(s.dim), I(largest), I(sorted), T(values), T(indices)});
                for (int64_t i = 0; i < g.lines; i++) {
                    load_line(&l, &in, &g, i);
                    sort_line(&l, largest);
                    if (!sorted)
                        qsort(l.order, (size_t)k, sizeof *l.order, by_index);
                    for (int64_t r = 0; r < k; r++) {
                        int64_t at = place(&g, i, r, k);
                        if (get_element(&indices, at) != (double)l.order[r] ||
                            !same(get_element(&values, at), l.x[l.order[r]]))
                            fail_msg("type %d, %lld of %lld, place %lld: %g, but must be %lld", types[t], (long long)k,
                                     (long long)g.n, (long long)r, get_element(&indices, at), (long long)l.order[r]);
                    }
                }
                assert_true(untouched_outside(&values) && untouched_outside(&indices));
                free_tensor(&in);
                free_tensor(&values);
                free_tensor(&indices);
            }
        }
}

/* Rank of the result among the sorted; NaNs are at the end. */
static int64_t wanted(const line *l, int what, int64_t k) {
    int64_t nans = 0, n = l->n;
    for (int64_t i = 0; i < n; i++)
        nans += isnan(l->x[i]);
    if (what == 0)
        return l->order[k - 1];
    if (nans && (what == 1 || nans == n))
        return l->order[n - nans];
    return l->order[(n - nans - 1) / 2];
}

static void picks(void **state) {
    (void)state;
    static line l;
    static const char *const names[] = {"Kthvalue", "MedianDim", "NanMedianDim"};
    for (int t = 0; t < TYPES; t++)
        for (int c = 0; c < SHAPES * 6; c++) {
            const shape *s = &shapes[c / 6];
            geometry g = geometry_of(s);
            bool keep = c & 1;
            int what = c % 6 / 2, rank = 0;
            int64_t dims[3] = {0}, k = g.n ? 1 + (int64_t)(random_bits() % (uint64_t)g.n) : 1;
            for (int d = 0; d < s->rank; d++)
                if (d != g.dim || keep)
                    dims[rank++] = d == g.dim ? 1 : s->dims[d];
            tensor in = make_tensor(types[t], s->rank, s->dims, any_layout()),
                   values = make_tensor(types[t], rank, dims, any_layout()),
                   indices = make_tensor(ACL_INT64, rank, dims, any_layout());
            fill(&in);
            if (random_bits() % 2)
                for (int64_t i = 0; i < in.count; i++)
                    if (isnan(get_element(&in, i)))
                        set_element(&in, i, 3);
            caller_value kth[] = {T(in), I(k), I(s->dim), I(keep), T(values), T(indices)},
                         median[] = {T(in), I(s->dim), I(keep), T(values), T(indices)};
            if (!g.n)
                refused(names[what], what ? median : kth, what ? "no elements" : "k is 1");
            else
                must(names[what], what ? median : kth);
            for (int64_t i = 0; g.n && i < g.lines; i++) {
                load_line(&l, &in, &g, i);
                sort_line(&l, false);
                int64_t at = wanted(&l, what, k);
                if (get_element(&indices, i) != (double)at || !same(get_element(&values, i), l.x[at]))
                    fail_msg("%s type %d, k %lld of %lld: %g at %g, but must be %g at %lld", names[what], types[t],
                             (long long)k, (long long)g.n, get_element(&values, i), get_element(&indices, i), l.x[at],
                             (long long)at);
            }
            assert_true(untouched_outside(&values) && untouched_outside(&indices));
            free_tensor(&in);
            free_tensor(&values);
            free_tensor(&indices);
        }
}

static void medians_of_all(void **state) {
    (void)state;
    static line l;
    for (int t = 0; t < TYPES; t++)
        for (int nan = 0; nan < 2; nan++) {
            int64_t dims[] = {5, 60, 3};
            tensor in = make_tensor(types[t], 3, dims, any_layout()), out = make_tensor(types[t], 0, dims, CONTIGUOUS);
            fill(&in);
            must(nan ? "NanMedian" : "Median", (caller_value[]){T(in), T(out)});
            geometry g = {3, 0, in.count, 1, 1};
            load_line(&l, &in, &g, 0);
            sort_line(&l, false);
            assert_true(same(get_element(&out, 0), l.x[wanted(&l, 1 + nan, 0)]));
            free_tensor(&in);
            free_tensor(&out);
        }
}

/* A line too long for one worker's cache, and more lines than workers. */
static void long_lines(void **state) {
    (void)state;
    int64_t n = 200000, k = 1000;
    for (int t = 0; t < TYPES; t++) {
        tensor in = make_tensor(types[t], 1, &n, CONTIGUOUS), values = make_tensor(types[t], 1, &n, CONTIGUOUS),
               indices = make_tensor(ACL_INT64, 1, &n, CONTIGUOUS), top = make_tensor(types[t], 1, &k, CONTIGUOUS),
               where = make_tensor(ACL_INT64, 1, &k, CONTIGUOUS);
        fill(&in);
        must("Sort", (caller_value[]){T(in), I(1), I(0), I(1), T(values), T(indices)});
        must("Topk", (caller_value[]){T(in), I(k), I(0), I(1), I(1), T(top), T(where)});
        const int64_t *at = indices.data;
        for (int64_t i = 0; i < n; i++)
            assert_true(same(get_element(&values, i), get_element(&in, at[i])));
        for (int64_t i = 1; i < n; i++) {
            double a = get_element(&values, i - 1), b = get_element(&values, i);
            assert_true(before(b, a) || (!before(a, b) && at[i - 1] < at[i]));
        }
        assert_memory_equal(where.data, at, (size_t)k * 8);
        assert_memory_equal(top.data, values.data, (size_t)k * aclDataTypeSize(types[t]));
        free_tensor(&in);
        free_tensor(&values);
        free_tensor(&indices);
        free_tensor(&top);
        free_tensor(&where);
    }
}

static void wrong_calls(void **state) {
    (void)state;
    int64_t dims[] = {3, 5}, small[] = {3, 2};
    tensor in = make_tensor(ACL_FLOAT, 2, dims, CONTIGUOUS), values = make_tensor(ACL_FLOAT, 2, small, CONTIGUOUS),
           half = make_tensor(ACL_FLOAT16, 2, small, CONTIGUOUS), at = make_tensor(ACL_INT64, 2, small, CONTIGUOUS),
           complex = make_tensor(ACL_COMPLEX64, 2, dims, CONTIGUOUS);
    refused("Topk", (caller_value[]){T(in), I(6), I(1), I(1), I(1), T(values), T(at)}, "k is 6, but must be 0 to 5");
    refused("Topk", (caller_value[]){T(in), I(INT64_MIN), I(1), I(1), I(1), T(values), T(at)}, "k is -92");
    refused("Topk", (caller_value[]){T(in), I(2), I(2), I(1), I(1), T(values), T(at)}, "dim is 2");
    refused("Topk", (caller_value[]){T(in), I(3), I(1), I(1), I(1), T(values), T(at)}, "dimension 1 is 2");
    refused("Topk", (caller_value[]){T(in), I(2), I(1), I(1), I(1), T(half), T(at)}, "values has elements of type f16");
    refused("Topk", (caller_value[]){T(in), I(2), I(1), I(1), I(1), T(values), T(half)}, "indices has elements of");
    refused("Kthvalue", (caller_value[]){T(in), I(0), I(1), I(1), T(values), T(at)}, "k is 0, but must be 1 to 5");
    refused("Argsort", (caller_value[]){T(in), I(-3), I(0), T(at)}, "dim is -3");
    refused("Argsort", (caller_value[]){T(complex), I(0), I(0), T(at)}, "c64");
    free_tensor(&in);
    free_tensor(&values);
    free_tensor(&half);
    free_tensor(&at);
    free_tensor(&complex);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts),          cmocka_unit_test(tops),       cmocka_unit_test(picks),
        cmocka_unit_test(medians_of_all), cmocka_unit_test(long_lines), cmocka_unit_test(wrong_calls),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
