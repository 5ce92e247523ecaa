/*
 * The matmul family against plain loops in double: shapes, types, layouts, broadcast batches, what is added, and calls
 * that must be refused.
 */
#include "matmul_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aclnnop/aclnn_trans_matmul_weight.h"

static tensor output_of(aclDataType type, const tensor *a, const tensor *b, layout how) {
    product p = product_of(a, b);
    int64_t dims[8];
    int rank = p.batch_rank;
    memcpy(dims, p.batch_dims, sizeof p.batch_dims);
    if (a->rank > 1)
        dims[rank++] = p.m;
    if (b->rank > 1)
        dims[rank++] = p.n;
    free_product(&p);
    return make_tensor(type, rank, dims, how);
}

static void run_product(const char *name, tensor *a, tensor *b, tensor *out) {
    caller_value values[] = {T(*a), T(*b), T(*out), I((int64_t)(random_bits() % 4))};
    aclnnStatus status = call_op(name, values);
    if (status)
        fail_msg("%s: %d %s", name, status, sentence());
    check_product(name, a, b, out);
}

static void try_product(const char *name, aclDataType type, int rank_a, const int64_t *dims_a, int rank_b,
                        const int64_t *dims_b) {
    bool mixed = random_bits() % 3 == 0;
    tensor a = filled(mixed ? any_float() : type, rank_a, dims_a, any_layout());
    tensor b = filled(mixed ? any_float() : type, rank_b, dims_b, any_layout());
    tensor out = output_of(random_bits() % 2 ? type : any_float(), &a, &b, any_layout());
    run_product(name, &a, &b, &out);
    free_tensor(&a);
    free_tensor(&b);
    free_tensor(&out);
}

static void two_matrices(void **state) {
    (void)state;
    for (int s = 0; s < SIZES; s++)
        for (int t = 0; t < 3; t++)
            for (int round = 0; round < 4; round++) {
                int64_t a[] = {sizes[s].m, sizes[s].k}, b[] = {sizes[s].k, sizes[s].n};
                try_product("Mm", floats[t], 2, a, 2, b);
                try_product("Matmul", floats[t], 2, a, 2, b);
                try_product("Mv", floats[t], 2, a, 1, b);
                try_product("Dot", floats[t], 1, a + 1, 1, b);
            }
}

static void batches(void **state) {
    (void)state;
    static const int64_t counts[][2] = {{3, 3}, {1, 4}, {4, 1}, {0, 1}, {9, 9}};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int s = 0; s < SIZES; s++) {
            int64_t a[] = {counts[c][0], sizes[s].m, sizes[s].k}, b[] = {counts[c][1], sizes[s].k, sizes[s].n};
            try_product("BatchMatMul", any_float(), 3, a, 3, b);
        }
}

static void any_rank(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t a[6], b[6], m = (int64_t)(random_bits() % 9), n = (int64_t)(random_bits() % 40),
                            k = (int64_t)(random_bits() % 40);
        int rank_a = 1 + (int)(random_bits() % 5), rank_b = 1 + (int)(random_bits() % 5);
        for (int d = 0; d < 4; d++) {
            int64_t dim = 1 + (int64_t)(random_bits() % 3);
            /* from the last batch dim outwards */
            if (rank_a - 3 - d >= 0)
                a[rank_a - 3 - d] = random_bits() % 3 ? dim : 1;
            if (rank_b - 3 - d >= 0)
                b[rank_b - 3 - d] = random_bits() % 3 ? dim : 1;
        }
        a[rank_a - 1] = k;
        if (rank_a > 1)
            a[rank_a - 2] = m;
        b[rank_b > 1 ? rank_b - 2 : 0] = k;
        if (rank_b > 1)
            b[rank_b - 1] = n;
        try_product("Matmul", any_float(), rank_a, a, rank_b, b);
    }
}

static void integers(void **state) {
    (void)state;
    for (int s = 0; s < SIZES; s++)
        for (int round = 0; round < 3; round++) {
            int64_t da[] = {sizes[s].m, sizes[s].k}, db[] = {sizes[s].k, sizes[s].n};
            tensor a = filled(ACL_INT8, 2, da, any_layout()), b = filled(ACL_INT8, 2, db, any_layout());
            tensor out = output_of(ACL_INT32, &a, &b, any_layout());
            run_product("Mm", &a, &b, &out);
            free_tensor(&a);
            free_tensor(&b);
            free_tensor(&out);
        }
}

/* Large enough to be cut among the workers and along k. */
static void large(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{130, 200, 1500}, {3, 1200, 900}, {300, 40, 300}};
    for (int s = 0; s < 3; s++)
        for (int t = 0; t < 3; t++) {
            int64_t a[] = {shapes[s][0], shapes[s][2]}, b[] = {shapes[s][2], shapes[s][1]};
            try_product("Mm", floats[t], 2, a, 2, b);
        }
}

/* beta * self + alpha * sum; self is broadcast to out. */
typedef struct sum_kind {
    const char *name, *in_place;
    int rank_a, rank_b, rank_out;
    bool sum_batch, alpha_first;
} sum_kind;
static const sum_kind sum_kinds[] = {{"Addmm", "InplaceAddmm", 2, 2, 2, false, false},
                                     {"Baddbmm", "InplaceBaddbmm", 3, 3, 3, false, false},
                                     {"Addbmm", "InplaceAddbmm", 3, 3, 2, true, false},
                                     {"Addmv", NULL, 2, 1, 1, false, true}};

static double wanted_sum(const sum_kind *kind, const product *p, int64_t i) {
    if (!kind->sum_batch)
        return sum_of(p, i / (p->m * p->n), i / p->n % p->m, i % p->n);
    double s = 0;
    for (int64_t batch = 0; batch < p->batch; batch++)
        s += sum_of(p, batch, i / p->n % p->m, i % p->n);
    return s;
}

/* Index in self of what is added to element i of out. */
static int64_t broadcast_index(const tensor *self, const tensor *out, int64_t i) {
    int64_t at = 0, step = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        int64_t index = i % out->dims[d];
        int own = d - (out->rank - self->rank);
        i /= out->dims[d];
        if (own >= 0 && self->dims[own] > 1)
            at += index * step;
        if (own >= 0)
            step *= self->dims[own];
    }
    return at;
}

static void try_sum(const sum_kind *kind, bool in_place, int64_t m, int64_t n, int64_t k, float beta, float alpha) {
    int64_t batch = (int64_t)(random_bits() % 4), all[] = {batch, m, n};
    int64_t da[] = {batch, m, k}, db[] = {batch, k, n};
    tensor a = filled(any_float(), kind->rank_a, da + 3 - kind->rank_a, any_layout());
    tensor b = filled(any_float(), kind->rank_b, kind->rank_b == 1 ? &k : db + 3 - kind->rank_b, any_layout());
    tensor out =
        make_tensor(any_float(), kind->rank_out, kind->rank_out == 1 ? &m : all + 3 - kind->rank_out, any_layout());
    int rank_self = in_place ? out.rank : (int)(random_bits() % (unsigned)(out.rank + 1));
    int64_t dims_self[3];
    for (int d = 0; d < rank_self; d++)
        dims_self[d] = random_bits() % 3 && !in_place ? 1 : out.dims[out.rank - rank_self + d];
    tensor self = filled(in_place ? out.type : any_float(), rank_self, dims_self, any_layout());
    if (in_place)
        for (int64_t i = 0; i < out.count; i++)
            set_element(&out, i, get_element(&self, i));
    else if (beta == 0 && self.count)
        set_element(&self, 0, NAN); /* must not be read */
    aclScalar *s_beta = aclCreateScalar(&beta, ACL_FLOAT), *s_alpha = aclCreateScalar(&alpha, ACL_FLOAT);
    caller_value first = P(kind->alpha_first ? s_alpha : s_beta), second = P(kind->alpha_first ? s_beta : s_alpha);
    caller_value apart[] = {T(self), T(a), T(b), first, second, T(out), I(0)};
    caller_value joined[] = {T(out), T(a), T(b), first, second, I(0)};
    aclnnStatus status = call_op(in_place ? kind->in_place : kind->name, in_place ? joined : apart);
    if (status)
        fail_msg("%s: %d %s", kind->name, status, sentence());
    product p = product_of(&a, &b);
    for (int64_t i = 0; i < out.count; i++) {
        double added = beta == 0 ? 0 : beta * get_element(&self, broadcast_index(&self, &out, i));
        double all_k = (double)k * (kind->sum_batch ? (double)batch : 1);
        check_near(kind->name, &out, i, added + alpha * wanted_sum(kind, &p, i), fabs(alpha) * all_k + 2 * fabs(beta));
    }
    assert_true(untouched_outside(&out));
    free_product(&p);
    aclDestroyScalar(s_beta);
    aclDestroyScalar(s_alpha);
    free_tensor(&a);
    free_tensor(&b);
    free_tensor(&out);
    free_tensor(&self);
}

static void sums(void **state) {
    (void)state;
    static const float factors[][2] = {{1, 1}, {0.5f, 2}, {0, 1.5f}, {-2, 0}};
    for (size_t kind = 0; kind < sizeof sum_kinds / sizeof *sum_kinds; kind++)
        for (int s = 0; s < SIZES; s++)
            for (int f = 0; f < 4; f++) {
                const sum_kind *k = &sum_kinds[kind];
                try_sum(k, false, sizes[s].m, sizes[s].n, sizes[s].k, factors[f][0], factors[f][1]);
                if (k->in_place)
                    try_sum(k, true, sizes[s].m, sizes[s].n, sizes[s].k, factors[f][0], factors[f][1]);
            }
}

static void outer_products(void **state) {
    (void)state;
    static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE, ACL_INT32, ACL_INT8};
    for (int s = 0; s < SIZES; s++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            int64_t m = sizes[s].m, n = sizes[s].n, dims[] = {m, n};
            tensor a = filled(types[t], 1, &m, any_layout()), b = filled(types[t], 1, &n, any_layout());
            tensor out = make_tensor(types[t], 2, dims, any_layout());
            tensor self = filled(types[t], 2, dims, any_layout());
            caller_value ger[] = {T(a), T(b), T(out)};
            assert_int_equal(call_op("Ger", ger), 0);
            for (int64_t i = 0; i < out.count; i++)
                check_near("Ger", &out, i, round_to(types[t], get_element(&a, i / n) * get_element(&b, i % n)), 1);
            static const float factors[][2] = {{1, 1}, {2, 3}, {0, 2}};
            for (int f = 0; f < 3; f++) {
                float beta = factors[f][0], alpha = factors[f][1];
                int64_t beta_whole = (int64_t)beta, alpha_whole = (int64_t)alpha;
                bool real = is_float(types[t]);
                aclScalar *s_beta = real ? aclCreateScalar(&beta, ACL_FLOAT) : aclCreateScalar(&beta_whole, ACL_INT64),
                          *s_alpha =
                              real ? aclCreateScalar(&alpha, ACL_FLOAT) : aclCreateScalar(&alpha_whole, ACL_INT64);
                caller_value addr[] = {T(self), T(a), T(b), P(f ? s_beta : NULL), P(f ? s_alpha : NULL), T(out)};
                if (call_op("Addr", addr))
                    fail_msg("Addr: %s", sentence());
                for (int64_t i = 0; i < out.count; i++) {
                    double want =
                        beta * get_element(&self, i) + alpha * get_element(&a, i / n) * get_element(&b, i % n);
                    check_near("Addr", &out, i, round_to(types[t], want), 8);
                }
                aclDestroyScalar(s_beta);
                aclDestroyScalar(s_alpha);
            }
            assert_true(untouched_outside(&out));
            free_tensor(&a);
            free_tensor(&b);
            free_tensor(&out);
            free_tensor(&self);
        }
}

/* A weight [n, k] is prepared in place and then described as FRACTAL_NZ by its transposed view, as ggml does. */
static void prepared_weights(void **state) {
    (void)state;
    int64_t n = 37, k = 70, m = 5, weight_dims[] = {n, k}, a_dims[] = {m, k}, turned[] = {k, n}, strides[] = {1, k};
    for (int t = 0; t < 3; t++) {
        tensor a = filled(floats[t], 2, a_dims, CONTIGUOUS), weight = filled(floats[t], 2, weight_dims, CONTIGUOUS);
        aclIntArray *shape = aclCreateIntArray(weight_dims, 2);
        uint64_t size = 0;
        assert_int_equal(aclnnCalculateMatmulWeightSizeV2(shape, floats[t], &size), 0);
        assert_int_equal(size, 48 * 80);
        caller_value prepare[] = {T(weight)};
        assert_int_equal(call_op("TransMatmulWeight", prepare), 0);
        tensor view = weight;
        view.dims[0] = k;
        view.dims[1] = n;
        view.strides[0] = 1;
        view.strides[1] = k;
        view.handle =
            aclCreateTensor(turned, 2, floats[t], strides, 0, ACL_FORMAT_FRACTAL_NZ, &weight.storage, 1, weight.data);
        tensor out = output_of(floats[t], &a, &view, CONTIGUOUS);
        run_product("Mm", &a, &view, &out);
        run_product("MatmulWeightNz", &a, &view, &out);
        aclDestroyTensor(view.handle);
        aclDestroyIntArray(shape);
        free_tensor(&a);
        free_tensor(&weight);
        free_tensor(&out);
    }
}

static void weight_sizes(void **state) {
    (void)state;
    int64_t two[] = {510, 510}, other[] = {510, 270}, three[] = {3, 17, 1}, zero[] = {4, 0};
    aclIntArray *a = aclCreateIntArray(two, 2), *b = aclCreateIntArray(other, 2), *c = aclCreateIntArray(three, 3),
                *one = aclCreateIntArray(two, 1), *none = aclCreateIntArray(zero, 2);
    uint64_t size = 0;
    assert_int_equal(aclnnCalculateMatmulWeightSize(a, &size), 0);
    assert_int_equal(size, 262144);
    assert_int_equal(aclnnCalculateMatmulWeightSizeV2(b, ACL_INT8, &size), 0);
    assert_int_equal(size, 147456);
    assert_int_equal(aclnnCalculateMatmulWeightSizeV2(c, ACL_FLOAT16, &size), 0);
    assert_int_equal(size, 3 * 32 * 16);
    assert_int_equal(aclnnCalculateMatmulWeightSizeV2(NULL, ACL_INT8, &size), ACLNN_ERR_PARAM_NULLPTR);
    assert_int_equal(aclnnCalculateMatmulWeightSizeV2(a, ACL_INT8, NULL), ACLNN_ERR_PARAM_NULLPTR);
    assert_int_equal(aclnnCalculateMatmulWeightSizeV2(one, ACL_INT8, &size), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclnnCalculateMatmulWeightSizeV2(none, ACL_INT8, &size), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "tensorShape[1] is 0"));
    assert_int_equal(aclnnCalculateMatmulWeightSizeV2(a, ACL_INT64, &size), ACLNN_ERR_PARAM_INVALID);
    aclDestroyIntArray(a);
    aclDestroyIntArray(b);
    aclDestroyIntArray(c);
    aclDestroyIntArray(one);
    aclDestroyIntArray(none);
}

static void wrong_calls(void **state) {
    (void)state;
    int64_t d23[] = {2, 3}, d34[] = {3, 4}, d24[] = {2, 4}, d45[] = {4, 5}, b2[] = {2, 2, 3}, b3[] = {3, 3, 4},
            none[] = {0};
    tensor a = filled(ACL_FLOAT, 2, d23, CONTIGUOUS), b = filled(ACL_FLOAT, 2, d34, CONTIGUOUS),
           out = make_tensor(ACL_FLOAT, 2, d24, CONTIGUOUS), c = filled(ACL_FLOAT, 2, d45, CONTIGUOUS),
           x2 = filled(ACL_FLOAT, 3, b2, CONTIGUOUS), x3 = filled(ACL_FLOAT, 3, b3, CONTIGUOUS),
           whole = filled(ACL_INT32, 2, d34, CONTIGUOUS), number = filled(ACL_FLOAT, 0, none, CONTIGUOUS),
           small = filled(ACL_INT8, 2, d23, CONTIGUOUS), small2 = filled(ACL_INT8, 2, d34, CONTIGUOUS);
    const aclnnStatus invalid = ACLNN_ERR_PARAM_INVALID;
    refused("Mm", (caller_value[]){T(a), T(c), T(out), I(0)}, invalid, "mat2: dimension 0 is 4, but must be 3");
    refused("Mm", (caller_value[]){T(a), T(b), T(c), I(0)}, invalid, "out: dimension 0 is 4, but must be 2");
    refused("Mm", (caller_value[]){T(x2), T(b), T(out), I(0)}, invalid,
            "self has 3 dimensions [2,2,3], but must have 2");
    refused("Mm", (caller_value[]){T(a), T(b), T(out), I(7)}, invalid, "cubeMathType is 7");
    refused("Mm", (caller_value[]){T(a), T(b), P(NULL), I(0)}, ACLNN_ERR_PARAM_NULLPTR, "out is NULL");
    refused("Mm", (caller_value[]){T(a), T(whole), T(out), I(0)}, invalid, "mat2 has elements of type i32");
    refused("Mm", (caller_value[]){T(small), T(small2), T(out), I(0)}, invalid, "out has elements of type f32");
    refused("Matmul", (caller_value[]){T(number), T(b), T(out), I(0)}, invalid, "self has no dimensions");
    refused("BatchMatMul", (caller_value[]){T(x2), T(x3), T(out), I(0)}, invalid, "mat2: dimension 0 is 3");
    refused("Mv", (caller_value[]){T(a), T(b), T(out), I(0)}, invalid, "vec has 2 dimensions");
    refused("Ger", (caller_value[]){T(a), T(b), T(out)}, invalid, "self has 2 dimensions");
    float one = 1;
    aclScalar *s = aclCreateScalar(&one, ACL_FLOAT);
    refused("Addmm", (caller_value[]){T(c), T(a), T(b), P(s), P(s), T(out), I(0)}, invalid, "self has the shape [4,5]");
    refused("Addmm", (caller_value[]){T(out), T(a), T(b), P(NULL), P(s), T(out), I(0)}, ACLNN_ERR_PARAM_NULLPTR,
            "beta is NULL");
    aclDestroyScalar(s);
    tensor *all[] = {&a, &b, &out, &c, &x2, &x3, &whole, &number, &small, &small2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_tensor(all[i]);
}

/* Batches whose dims are permuted on the way in and out, in one part or in more. */
static void transposed_batches(void **state) {
    (void)state;
    enum { B = 6, M = 5, K = 7, N = 4 };
    static const int64_t orders[][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}};
    static const int64_t splits[] = {1, 1, 2, 3};
    for (int c = 0; c < 96; c++) {
        const int64_t *o1 = orders[c % 4], *o2 = orders[c / 4 % 4], *oy = orders[c / 16 % 2],
                      split = oy[0] ? splits[c % 3 + 1] : 1;
        const int64_t in1[] = {B, M, K}, in2[] = {B, K, N};
        int64_t d1[3], d2[3], dy[3] = {oy[0] ? M : B, oy[0] ? B : M, N};
        for (int i = 0; i < 3; i++) {
            d1[o1[i]] = in1[i];
            d2[o2[i]] = in2[i];
        }
        if (split > 1)
            dy[0] = split, dy[1] = M, dy[2] = B * N / split;
        tensor x1 = filled(floats[c % 3], 3, d1, any_layout()), x2 = filled(floats[c % 3], 3, d2, any_layout()),
               y = make_tensor(floats[c % 3], 3, dy, any_layout());
        aclIntArray *lists[] = {aclCreateIntArray(o1, 3), aclCreateIntArray(o2, 3), aclCreateIntArray(oy, 3)};
        caller_value values[] = {T(x1),       T(x2),       P(NULL), P(NULL),  P(lists[0]),
                                 P(lists[1]), P(lists[2]), I(0),    I(split), T(y)};
        const char *name = c % 2 ? "TransposeBatchMatMulWeightNz" : "TransposeBatchMatMul";
        aclnnStatus status = call_op(name, values);
        if (status)
            fail_msg("%s: %d %s", name, status, sentence());
        for (int64_t b = 0; b < B; b++)
            for (int64_t m = 0; m < M; m++)
                for (int64_t n = 0; n < N; n++) {
                    double sum = 0;
                    for (int64_t k = 0; k < K; k++) {
                        int64_t i1[3], i2[3];
                        i1[o1[0]] = b, i1[o1[1]] = m, i1[o1[2]] = k;
                        i2[o2[0]] = b, i2[o2[1]] = k, i2[o2[2]] = n;
                        sum += get_element(&x1, (i1[0] * d1[1] + i1[1]) * d1[2] + i1[2]) *
                               get_element(&x2, (i2[0] * d2[1] + i2[1]) * d2[2] + i2[2]);
                    }
                    int64_t inside = B / split, at = split > 1 ? (b / inside * M + m) * inside * N + b % inside * N + n
                                                     : oy[0]   ? (m * B + b) * N + n
                                                               : (b * M + m) * N + n;
                    check_near(name, &y, at, sum, K);
                }
        assert_true(untouched_outside(&y));
        values[2].pointer = x1.handle;
        assert_int_not_equal(call_op(name, values), 0);
        assert_non_null(strstr(sentence(), "without bias and scale"));
        values[2].pointer = NULL;
        values[8].integer = 4;
        refused(name, values, ACLNN_ERR_PARAM_INVALID,
                oy[0] ? "parts do not divide" : "must be at least 1, and 1 unless");
        for (int i = 0; i < 3; i++)
            aclDestroyIntArray(lists[i]);
        free_tensor(&x1);
        free_tensor(&x2);
        free_tensor(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_matrices), cmocka_unit_test(transposed_batches), cmocka_unit_test(batches),
        cmocka_unit_test(any_rank),     cmocka_unit_test(integers),           cmocka_unit_test(large),
        cmocka_unit_test(sums),         cmocka_unit_test(outer_products),     cmocka_unit_test(prepared_weights),
        cmocka_unit_test(weight_sizes), cmocka_unit_test(wrong_calls)};
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
