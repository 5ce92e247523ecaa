/*
 * Products with quantised weights, of int8 matrices, and in groups, against plain loops in double.
 */
#include "matmul_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A quantised weight [k, n] in device memory, by rows or by columns; values in `q`, row-major. */
typedef struct weight {
    aclTensor *handle;
    void *data;
    double *q;
} weight;

static weight make_weight(aclDataType type, int64_t k, int64_t n, bool by_columns) {
    weight w = {.q = malloc((size_t)(k * n + 1) * sizeof *w.q)};
    const bool nibbles = type != ACL_INT8;
    size_t bytes = (size_t)(k * n) / (nibbles ? 2 : 1) + 8;
    assert_non_null(w.q);
    assert_int_equal(aclrtMalloc(&w.data, bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    uint8_t *to = w.data;
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)random_bits();
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = by_columns ? j * k + i : i * n + j;
            w.q[i * n + j] = nibbles ? (int8_t)(at % 2 ? to[at / 2] & 0xf0 : to[at / 2] << 4) / 16 : (int8_t)to[at];
        }
    int64_t pack = type == ACL_INT32 ? 8 : 1, storage = k * n / pack;
    int64_t dims[] = {by_columns ? k / pack : k, by_columns ? n : n / pack};
    int64_t strides[] = {by_columns ? 1 : n / pack, by_columns ? k / pack : 1};
    w.handle = aclCreateTensor(dims, 2, type, strides, 0, ACL_FORMAT_ND, &storage, 1, w.data);
    assert_non_null(w.handle);
    return w;
}

static void free_weight(weight *w) {
    aclDestroyTensor(w->handle);
    aclrtFree(w->data);
    free(w->q);
}

/* group < 0: one scale for all; 0: one per column. */
static void try_weight(aclDataType type, int64_t m, int64_t n, int64_t k, int group, bool by_columns, bool with_offset,
                       bool with_bias) {
    int64_t x_dims[] = {m, k}, y_dims[] = {m, n}, groups = group > 0 ? (k + group - 1) / group : 1;
    int64_t scale_dims[] = {groups, group < 0 ? 1 : n}, rank = group == 0 ? 1 : 2;
    weight w = make_weight(type, k, n, by_columns);
    tensor x = filled(any_float(), 2, x_dims, any_layout()), y = make_tensor(any_float(), 2, y_dims, any_layout());
    aclDataType scale_type = any_float();
    layout how = any_layout();
    tensor scale = filled(scale_type, (int)rank, scale_dims + 2 - rank, how),
           offset = filled(scale_type, (int)rank, scale_dims + 2 - rank, how),
           bias = filled(any_float(), 1, &n, CONTIGUOUS);
    caller_value values[] = {T(x),
                             T(w),
                             T(scale),
                             P(with_offset ? offset.handle : NULL),
                             P(NULL),
                             P(NULL),
                             P(with_bias ? bias.handle : NULL),
                             I(group > 0 ? group : 0),
                             T(y)};
    aclnnStatus status = call_op("WeightQuantBatchMatmulV2", values);
    if (status)
        fail_msg("%d %s", status, sentence());
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < k; p++) {
                int64_t at = group < 0 ? 0 : group == 0 ? j : p / group * n + j;
                double q = w.q[p * n + j] + (with_offset ? get_element(&offset, at) : 0);
                double term = get_element(&x, i * k + p) * q * get_element(&scale, at);
                sum += term;
                size += fabs(term) + 128 * fabs(get_element(&scale, at)) * 0x1p-3;
            }
            check_near("weight", &y, i * n + j, sum + (with_bias ? get_element(&bias, j) : 0), size + 1);
        }
    assert_true(untouched_outside(&y));
    free_weight(&w);
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&scale);
    free_tensor(&offset);
    free_tensor(&bias);
}

static void quantised_weights(void **state) {
    (void)state;
    static const aclDataType types[] = {ACL_INT8, ACL_INT4, ACL_INT32};
    static const int groups[] = {-1, 0, 32, 64, 96, 128};
    static const int64_t rows[] = {1, 2, 3, 4, 7, 8, 9, 33, 0};
    for (int t = 0; t < 3; t++)
        for (int g = 0; g < 6; g++)
            for (int r = 0; r < 9; r++)
                for (int round = 0; round < 3; round++) {
                    unsigned flags = (unsigned)random_bits() >> 7;
                    int64_t k = 32 * (1 + (int64_t)(random_bits() % 9)), n = 8 * (1 + (int64_t)(random_bits() % 12));
                    if (groups[g] <= 0 && types[t] == ACL_INT8) /* nothing is packed or grouped: any size */
                        k += (int64_t)(random_bits() % 31), n += (int64_t)(random_bits() % 7);
                    try_weight(types[t], rows[r], n, k, groups[g], flags & 1, flags & 2, flags & 4);
                }
    try_weight(ACL_INT8, 3, 16, 0, 0, false, true, true);
}

/* int8 by int8 through QuantMatmulV3 to V5, with every type of result. */
static void try_quant(const char *name, aclDataType out_type, int64_t m, int64_t n, int64_t k) {
    bool turn_a = random_bits() % 2, turn_b = random_bits() % 2, per_row = name[12] != '3' && random_bits() % 2;
    bool whole_bias = out_type == ACL_INT32 || random_bits() % 2, with_bias = random_bits() % 2;
    bool with_offset = out_type != ACL_INT32 && random_bits() % 3 == 0, one = random_bits() % 3 == 0;
    bool in_64 = random_bits() % 3 == 0;
    int64_t batch = 1 + (int64_t)(random_bits() % 3), one_dim = 1;
    int64_t da[] = {batch, turn_a ? k : m, turn_a ? m : k},
            db[] = {random_bits() % 2 ? batch : 1, turn_b ? n : k, turn_b ? k : n}, dout[] = {batch, m, n};
    tensor a = filled(ACL_INT8, 3, da, any_layout()), b = filled(ACL_INT8, 3, db, any_layout()),
           out = make_tensor(out_type, 3, dout, any_layout()),
           scale = make_tensor(in_64 ? ACL_UINT64 : any_float(), 1, one ? &one_dim : &n, CONTIGUOUS),
           offset = filled(ACL_FLOAT, 1, one ? &one_dim : &n, CONTIGUOUS), rows = filled(ACL_FLOAT, 1, &m, CONTIGUOUS),
           bias = filled(whole_bias ? ACL_INT32 : any_float(), 1, &n, CONTIGUOUS);
    float *scales = malloc(((size_t)scale.count + 1) * sizeof *scales);
    for (int64_t i = 0; i < scale.count; i++) {
        scales[i] = (float)random_between(-0.01, 0.01);
        if (in_64) {
            uint64_t word = 1ull << 46;
            memcpy(&word, &scales[i], sizeof scales[i]);
            memcpy((char *)scale.data + 8 * i, &word, sizeof word);
        } else {
            set_element(&scale, i, (double)scales[i]);
            scales[i] = (float)get_element(&scale, i);
        }
    }
    aclTensor *o = with_offset ? offset.handle : NULL, *r = per_row ? rows.handle : NULL,
              *c = with_bias ? bias.handle : NULL;
    caller_value v3[] = {T(a), T(b), T(scale), P(o), P(c), I(turn_a), I(turn_b), T(out)};
    caller_value v4[] = {T(a), T(b), T(scale), P(o), P(r), P(c), I(turn_a), I(turn_b), T(out)};
    caller_value v5[] = {T(a),    T(b), P(r),      T(scale),  P(NULL), P(NULL), P(o),
                         P(NULL), P(c), I(turn_a), I(turn_b), I(0),    T(out)};
    aclnnStatus status = call_op(name, name[12] == '3' ? v3 : name[12] == '4' ? v4 : v5);
    if (status)
        fail_msg("%s: %d %s", name, status, sentence());
    for (int64_t i = 0; i < out.count; i++) {
        int64_t at = i / (m * n), row = i / n % m, column = i % n, first_a = at * m * k,
                first_b = (db[0] == 1 ? 0 : at) * k * n;
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += get_element(&a, first_a + (turn_a ? p * m + row : row * k + p)) *
                   get_element(&b, first_b + (turn_b ? column * k + p : p * n + column));
        double added = with_bias ? get_element(&bias, column) : 0;
        if (whole_bias)
            sum += added, added = 0;
        if (out_type != ACL_INT32) {
            sum = sum * (double)scales[one ? 0 : column] * (per_row ? get_element(&rows, row) : 1) + added;
            sum += with_offset ? get_element(&offset, one ? 0 : column) : 0;
        }
        double got = get_element(&out, i);
        if (out_type == ACL_INT8) {
            double want = fmin(fmax(sum, -128), 127);
            if (!(fabs(got - want) <= 0.5 + 1e-4 * fabs(want)))
                fail_msg("%s: %g, but must be %g", name, got, want);
        } else {
            check_near(name, &out, i, sum, fabs(sum) + 1);
        }
    }
    assert_true(untouched_outside(&out));
    tensor *all[] = {&a, &b, &out, &scale, &offset, &rows, &bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_tensor(all[i]);
    free(scales);
}

static void quantised_products(void **state) {
    (void)state;
    static const char *const names[] = {"QuantMatmulV3", "QuantMatmulV4", "QuantMatmulV5"};
    static const aclDataType types[] = {ACL_FLOAT16, ACL_BF16, ACL_FLOAT, ACL_INT8, ACL_INT32};
    for (int v = 0; v < 3; v++)
        for (int t = 0; t < 5; t++)
            for (int s = 0; s < SIZES; s++)
                try_quant(names[v], types[t], sizes[s].m, sizes[s].n, sizes[s].k);
}

static void packed_scales(void **state) {
    (void)state;
    int64_t n = 3, one = 1;
    tensor scale = make_tensor(ACL_FLOAT, 1, &n, CONTIGUOUS), offset = make_tensor(ACL_FLOAT, 1, &one, CONTIGUOUS),
           out = make_tensor(ACL_UINT64, 1, &n, CONTIGUOUS);
    static const float values[] = {1.0f, 0x1.003ffep-3f, -2.5f};
    for (int i = 0; i < 3; i++)
        set_element(&scale, i, (double)values[i]);
    set_element(&offset, 0, -300); /* becomes -256 */
    caller_value plain[] = {T(scale), P(NULL), T(out)}, both[] = {T(scale), T(offset), I(1), T(out)};
    uint64_t words[3];
    assert_int_equal(call_op("TransQuantParamV2", plain), 0);
    memcpy(words, out.data, sizeof words);
    assert_true(words[0] == (1ull << 46 | 0x3f800000));
    assert_true(words[1] == (1ull << 46 | 0x3e000000));
    assert_true(words[2] == (1ull << 46 | 0xc0200000));
    assert_int_equal(call_op("TransQuantParamV3", both), 0);
    memcpy(words, out.data, sizeof words);
    assert_true(words[0] == (1ull << 46 | 0x100ull << 37 | 0x3f800000));
    assert_true(words[1] == (1ull << 46 | 0x100ull << 37 | 0x3e000000 | 1u << 13));
    free_tensor(&scale);
    free_tensor(&offset);
    free_tensor(&out);
}

/* Groups of rows or of k, cut by a list, a tensor of ends or of counts, or by the list of x. */
typedef struct groups {
    int count;
    int64_t first[8], last[8], total;
} groups;

static groups random_groups(int count, int64_t most) {
    groups g = {.count = count};
    for (int i = 0; i < count; i++) {
        g.first[i] = g.total;
        g.total += (int64_t)(random_bits() % (uint64_t)(most + 1));
        g.last[i] = g.total;
    }
    return g;
}

static double grouped_sum(const tensor *x, const tensor *w, int64_t k, int64_t n, int64_t row, int64_t first_w,
                          int64_t column) {
    double sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum += get_element(x, row * k + p) * get_element(w, first_w + p * n + column);
    return sum;
}

/* One x and one y for all groups, the weights stacked. */
static void stacked_groups(aclDataType x_type, aclDataType y_type, bool counts) {
    groups g = random_groups(1 + (int)(random_bits() % 6), 20);
    int64_t k = 1 + (int64_t)(random_bits() % 70), n = 1 + (int64_t)(random_bits() % 50), number = g.count;
    int64_t x_dims[] = {g.total + 2, k}, w_dims[] = {number, k, n}, y_dims[] = {g.total + 2, n}, line[] = {number, n};
    const bool whole = x_type == ACL_INT8, with_bias = random_bits() % 2;
    tensor x = filled(x_type, 2, x_dims, CONTIGUOUS), w = filled(x_type, 3, w_dims, any_layout()),
           y = make_tensor(y_type, 2, y_dims, any_layout()),
           bias = filled(whole ? ACL_INT32 : ACL_FLOAT, 2, line, CONTIGUOUS),
           scale = filled(ACL_FLOAT, 2, line, CONTIGUOUS), rows = filled(ACL_FLOAT, 1, x_dims, CONTIGUOUS),
           list = make_tensor(ACL_INT64, 1, &number, CONTIGUOUS);
    for (int i = 0; i < g.count; i++)
        set_element(&list, i, (double)(counts ? g.last[i] - g.first[i] : g.last[i]));
    for (int64_t i = 0; i < y.count; i++)
        set_element(&y, i, 7);
    aclTensorList *lists[] = {aclCreateTensorList((const aclTensor *[]){x.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){w.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){y.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){bias.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){scale.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){rows.handle}, 1)};
    caller_value values[] = {P(lists[0]),
                             P(lists[1]),
                             P(with_bias ? lists[3] : NULL),
                             P(whole ? lists[4] : NULL),
                             P(NULL),
                             P(NULL),
                             P(NULL),
                             P(whole ? lists[5] : NULL),
                             T(list),
                             P(NULL),
                             P(NULL),
                             P(NULL),
                             I(3),
                             I(0),
                             I(counts),
                             I(0),
                             P(lists[2]),
                             P(NULL),
                             P(NULL)};
    aclnnStatus status = call_op("GroupedMatmulV4", values);
    if (status)
        fail_msg("%d %s", status, sentence());
    for (int i = 0; i < g.count; i++)
        for (int64_t r = g.first[i]; r < g.last[i]; r++)
            for (int64_t j = 0; j < n; j++) {
                double added = with_bias ? get_element(&bias, i * n + j) : 0;
                double sum = grouped_sum(&x, &w, k, n, r, i * k * n, j) + added;
                if (whole)
                    sum *= get_element(&scale, i * n + j) * get_element(&rows, r);
                check_near("GroupedMatmulV4", &y, r * n + j, sum, (double)k + fabs(sum));
            }
    for (int64_t i = g.total * n; i < y.count; i++)
        assert_true(get_element(&y, i) == 7); /* rows of no group */
    assert_true(untouched_outside(&y));
    for (size_t i = 0; i < 6; i++)
        aclDestroyTensorList(lists[i]);
    tensor *all[] = {&x, &w, &y, &bias, &scale, &rows, &list};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (i < 6)
            all[i]->handle = NULL; /* went with its list */
        free_tensor(all[i]);
    }
}

/* A tensor per group for all three. */
static void separate_groups(void) {
    enum { GROUPS = 3 };
    tensor x[GROUPS], w[GROUPS], y[GROUPS];
    const aclTensor *handles[3][GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        int64_t m = (int64_t)(random_bits() % 30), k = 1 + (int64_t)(random_bits() % 60),
                n = 1 + (int64_t)(random_bits() % 60);
        int64_t x_dims[] = {m, k}, w_dims[] = {k, n}, y_dims[] = {m, n};
        x[i] = filled(any_float(), 2, x_dims, any_layout());
        w[i] = filled(any_float(), 2, w_dims, any_layout());
        y[i] = make_tensor(any_float(), 2, y_dims, any_layout());
        handles[0][i] = x[i].handle;
        handles[1][i] = w[i].handle;
        handles[2][i] = y[i].handle;
    }
    aclTensorList *lists[3];
    for (int i = 0; i < 3; i++)
        lists[i] = aclCreateTensorList(handles[i], GROUPS);
    caller_value values[] = {P(lists[0]), P(lists[1]), P(NULL), P(NULL), P(NULL),    P(NULL),
                             P(NULL),     P(NULL),     I(0),    I(-1),   P(lists[2])};
    aclnnStatus status = call_op("GroupedMatmulV3", values);
    if (status)
        fail_msg("%d %s", status, sentence());
    for (int i = 0; i < GROUPS; i++)
        check_product("GroupedMatmulV3", &x[i], &w[i], &y[i]);
    for (int i = 0; i < 3; i++)
        aclDestroyTensorList(lists[i]);
    for (int i = 0; i < GROUPS; i++) {
        x[i].handle = w[i].handle = y[i].handle = NULL;
        free_tensor(&x[i]);
        free_tensor(&w[i]);
        free_tensor(&y[i]);
    }
}

/* Cut along k by an array of ends: y[g] = x[:, part] * w[part, :]. */
static void groups_along_k(void) {
    groups g = random_groups(1 + (int)(random_bits() % 5), 30);
    int64_t m = 1 + (int64_t)(random_bits() % 20), n = 1 + (int64_t)(random_bits() % 40), k = g.total + 1;
    int64_t x_dims[] = {m, k}, w_dims[] = {k, n}, y_dims[] = {g.count, m, n};
    tensor x = filled(any_float(), 2, x_dims, any_layout()), w = filled(any_float(), 2, w_dims, any_layout()),
           y = make_tensor(any_float(), 3, y_dims, any_layout());
    aclIntArray *ends = aclCreateIntArray(g.last, (uint64_t)g.count);
    aclTensorList *lists[] = {aclCreateTensorList((const aclTensor *[]){x.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){w.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){y.handle}, 1)};
    caller_value values[] = {P(lists[0]), P(lists[1]), P(NULL), P(NULL), P(NULL),    P(NULL),
                             P(NULL),     P(ends),     I(3),    I(2),    P(lists[2])};
    aclnnStatus status = call_op("GroupedMatmulV2", values);
    if (status)
        fail_msg("%d %s", status, sentence());
    for (int64_t i = 0; i < y.count; i++) {
        int64_t group = i / (m * n), row = i / n % m, column = i % n;
        double sum = 0;
        for (int64_t p = g.first[group]; p < g.last[group]; p++)
            sum += get_element(&x, row * k + p) * get_element(&w, p * n + column);
        check_near("GroupedMatmulV2", &y, i, sum, (double)k);
    }
    for (int i = 0; i < 3; i++)
        aclDestroyTensorList(lists[i]);
    aclDestroyIntArray(ends);
    x.handle = w.handle = y.handle = NULL;
    free_tensor(&x);
    free_tensor(&w);
    free_tensor(&y);
}

/* An int8 weight per group with scales per 32 rows. */
static void groups_of_narrow_weights(void) {
    enum { GROUPS = 3 };
    int64_t k = 96, n = 24, m = 9, x_dims[] = {m, k}, y_dims[] = {m, n}, s_dims[] = {GROUPS, 3, n};
    weight w[GROUPS];
    const aclTensor *weights[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        w[i] = make_weight(i % 2 ? ACL_INT8 : ACL_INT8, k, n, random_bits() % 2);
        weights[i] = w[i].handle;
    }
    tensor x = filled(ACL_FLOAT16, 2, x_dims, any_layout()), y = make_tensor(ACL_FLOAT16, 2, y_dims, any_layout()),
           scale = filled(ACL_FLOAT16, 3, s_dims, CONTIGUOUS);
    int64_t last[] = {2, 2, 9};
    aclIntArray *ends = aclCreateIntArray(last, GROUPS);
    aclTensorList *lists[] = {aclCreateTensorList((const aclTensor *[]){x.handle}, 1),
                              aclCreateTensorList(weights, GROUPS),
                              aclCreateTensorList((const aclTensor *[]){y.handle}, 1),
                              aclCreateTensorList((const aclTensor *[]){scale.handle}, 1)};
    caller_value values[] = {P(lists[0]), P(lists[1]), P(NULL), P(NULL), P(NULL),
                             P(lists[3]), P(NULL),     P(ends), I(2),    P(lists[2])};
    aclnnStatus status = call_op("GroupedMatmul", values);
    if (status)
        fail_msg("%d %s", status, sentence());
    for (int64_t i = 0; i < m * n; i++) {
        int64_t row = i / n, column = i % n, group = row < 2 ? 0 : 2;
        double sum = 0, size = 1;
        for (int64_t p = 0; p < k; p++) {
            double term = get_element(&x, row * k + p) * w[group].q[p * n + column] *
                          get_element(&scale, (group * 3 + p / 32) * n + column);
            sum += term;
            size += fabs(term);
        }
        check_near("GroupedMatmul", &y, i, sum, size);
    }
    for (int i = 0; i < 4; i++)
        aclDestroyTensorList(lists[i]);
    for (int i = 0; i < GROUPS; i++) {
        aclrtFree(w[i].data);
        free(w[i].q);
    }
    aclDestroyIntArray(ends);
    x.handle = y.handle = scale.handle = NULL;
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&scale);
}

static void grouped_products(void **state) {
    (void)state;
    for (int round = 0; round < 12; round++) {
        stacked_groups(floats[round % 3], any_float(), round % 2);
        stacked_groups(ACL_INT8, round % 3 ? ACL_FLOAT : ACL_BF16, round % 2);
        separate_groups();
        groups_along_k();
        groups_of_narrow_weights();
    }
}

static void wrong_calls(void **state) {
    (void)state;
    int64_t d23[] = {2, 3}, d34[] = {3, 4}, d24[] = {2, 4}, d45[] = {4, 5};
    tensor a = filled(ACL_FLOAT, 2, d23, CONTIGUOUS), b = filled(ACL_FLOAT, 2, d34, CONTIGUOUS),
           out = make_tensor(ACL_FLOAT, 2, d24, CONTIGUOUS), c = filled(ACL_FLOAT, 2, d45, CONTIGUOUS),
           small = filled(ACL_INT8, 2, d23, CONTIGUOUS), small2 = filled(ACL_INT8, 2, d34, CONTIGUOUS);
    const aclnnStatus invalid = ACLNN_ERR_PARAM_INVALID;
    tensor scales = filled(ACL_FLOAT, 2, d24, CONTIGUOUS), y = make_tensor(ACL_FLOAT, 2, d24, CONTIGUOUS);
#define WEIGHT_CALL(scale, offset, out_scale, group)                                                                   \
    (caller_value[]){T(a), T(small2), T(scale), P(offset), P(out_scale), P(NULL), P(NULL), I(group), T(y)}
    refused("WeightQuantBatchMatmulV2", WEIGHT_CALL(scales, NULL, NULL, 0), invalid,
            "antiquantScale has 2 groups, but must have 1");
    refused("WeightQuantBatchMatmulV2", WEIGHT_CALL(scales, NULL, NULL, 31), invalid, "antiquantGroupSize is 31");
    refused("WeightQuantBatchMatmulV2", WEIGHT_CALL(c, NULL, NULL, 0), invalid, "antiquantScale has the shape [4,5]");
    refused("WeightQuantBatchMatmulV2", WEIGHT_CALL(scales, NULL, scales.handle, 0), invalid, "quantScaleOptional");
    refused("WeightQuantBatchMatmulV2",
            (caller_value[]){T(a), T(b), T(scales), P(NULL), P(NULL), P(NULL), P(NULL), I(0), T(y)}, invalid,
            "weight has elements of type f32");
    tensor whole_out = make_tensor(ACL_INT8, 2, d24, CONTIGUOUS);
    refused("QuantMatmulV3",
            (caller_value[]){T(small), T(small2), T(scales), P(NULL), P(NULL), I(0), I(0), T(whole_out)}, invalid,
            "scale has the shape [2,4], but must be contiguous with 1 or 4 elements");
    refused("QuantMatmulV3", (caller_value[]){T(small), T(small2), P(NULL), P(NULL), P(NULL), I(0), I(0), T(whole_out)},
            ACLNN_ERR_PARAM_NULLPTR, "scale is NULL");
    refused("QuantMatmulV3",
            (caller_value[]){T(small), T(small2), T(scales), P(NULL), P(NULL), I(0), I(1), T(whole_out)}, invalid,
            "x2: dimension 1 is 4, but must be 3");
    free_tensor(&whole_out);
    free_tensor(&scales);
    free_tensor(&y);
    int64_t ends[] = {1, 9};
    aclIntArray *list = aclCreateIntArray(ends, 2);
    aclTensorList *xs = aclCreateTensorList((const aclTensor *[]){a.handle}, 1),
                  *ws = aclCreateTensorList((const aclTensor *[]){b.handle}, 1),
                  *ys = aclCreateTensorList((const aclTensor *[]){out.handle}, 1);
#define GROUPED_CALL(x, type)                                                                                          \
    (caller_value[]){P(x), P(ws), P(NULL), P(NULL), P(NULL), P(NULL), P(NULL), P(list), I(3), I(type), P(ys)}
#define GROUPED_ALONE(x)                                                                                               \
    (caller_value[]) { P(x), P(ws), P(NULL), P(NULL), P(NULL), P(NULL), P(NULL), P(NULL), I(3), P(ys) }
    refused("GroupedMatmulV2", GROUPED_CALL(xs, 1), invalid, "groupType is 1");
    refused("GroupedMatmulV2", GROUPED_CALL(xs, 0), invalid, "groupListOptional has 2 entries, but there are 1 groups");
    refused("GroupedMatmul", GROUPED_ALONE(ys), invalid, "weight[0]: dimension 0 is 3, but must be 4");
    aclDestroyTensorList(xs);
    aclDestroyTensorList(ws);
    aclDestroyTensorList(ys);
    aclDestroyIntArray(list);
    a.handle = b.handle = out.handle = NULL;
    tensor *all[] = {&a, &b, &out, &c, &small, &small2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_tensor(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(quantised_weights), cmocka_unit_test(quantised_products),
                                       cmocka_unit_test(packed_scales), cmocka_unit_test(grouped_products),
                                       cmocka_unit_test(wrong_calls)};
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
