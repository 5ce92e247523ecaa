#include "matmul_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const aclDataType floats[3] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

aclDataType any_float(void) {
    return floats[random_bits() % 3];
}

static void fill(tensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, is_float(t->type) ? random_between(-1, 1) : rint(random_between(-128, 127)));
}

tensor filled(aclDataType type, int rank, const int64_t *dims, layout how) {
    tensor t = make_tensor(type, rank, dims, how);
    fill(&t);
    return t;
}

static double unit(aclDataType type) {
    return type == ACL_FLOAT ? 0x1p-22 : type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

void check_near(const char *what, const tensor *t, int64_t i, double want, double size) {
    double got = get_element(t, i), error = is_float(t->type) ? unit(t->type) * fabs(want) + 0x1p-22 * size : 0;
    if (!(fabs(got - want) <= error) && !(isnan(got) && isnan(want)))
        fail_msg("%s, type %d, element %lld: %.9g, but must be %.9g", what, t->type, (long long)i, got, want);
}

static double *values_of(const tensor *t) {
    double *values = malloc(((size_t)t->count + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < t->count; i++)
        values[i] = get_element(t, i);
    return values;
}

product product_of(const tensor *a, const tensor *b) {
    product p = {.a = a, .b = b, .batch = 1};
    p.m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p.k = a->dims[a->rank - 1];
    p.n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int rank_a = a->rank > 2 ? a->rank - 2 : 0, rank_b = b->rank > 2 ? b->rank - 2 : 0;
    p.batch_rank = rank_a > rank_b ? rank_a : rank_b;
    for (int d = 0; d < p.batch_rank; d++) {
        int64_t x = d < p.batch_rank - rank_a ? 1 : a->dims[d - (p.batch_rank - rank_a)];
        int64_t y = d < p.batch_rank - rank_b ? 1 : b->dims[d - (p.batch_rank - rank_b)];
        p.batch_dims[d] = x == 1 ? y : x;
        p.batch *= p.batch_dims[d];
    }
    p.values_a = values_of(a);
    p.values_b = values_of(b);
    return p;
}

void free_product(product *p) {
    free(p->values_a);
    free(p->values_b);
}

/* Index of the first element of the matrix that product `batch` uses. */
static int64_t matrix_at(const product *p, const tensor *t, int64_t batch) {
    int rank = t->rank > 2 ? t->rank - 2 : 0;
    int64_t at = 0, step = t->rank > 1 ? t->dims[t->rank - 1] * t->dims[t->rank - 2] : 0;
    for (int d = p->batch_rank - 1; d >= p->batch_rank - rank; d--) {
        int64_t i = batch % p->batch_dims[d], dim = t->dims[d - (p->batch_rank - rank)];
        batch /= p->batch_dims[d];
        at += (dim == 1 ? 0 : i) * step;
        step *= dim;
    }
    return at;
}

double sum_of(const product *p, int64_t batch, int64_t i, int64_t j) {
    const double *a = p->values_a + matrix_at(p, p->a, batch) + i * p->k;
    const double *b = p->values_b + matrix_at(p, p->b, batch) + j;
    double s = 0;
    for (int64_t q = 0; q < p->k; q++)
        s += a[q] * b[q * p->n];
    return s;
}

void check_product(const char *what, const tensor *a, const tensor *b, const tensor *out) {
    product p = product_of(a, b);
    assert_int_equal(out->count, p.batch * p.m * p.n);
    for (int64_t i = 0; i < out->count; i++)
        check_near(what, out, i, sum_of(&p, i / (p.m * p.n), i / p.n % p.m, i % p.n), (double)p.k);
    assert_true(untouched_outside(out));
    free_product(&p);
}

const matmul_size sizes[SIZES] = {{1, 1, 1},    {3, 5, 7},     {0, 4, 3},     {4, 0, 3},    {4, 5, 0},
                                  {1, 33, 70},  {2, 100, 64},  {33, 1, 65},   {17, 19, 23}, {64, 64, 64},
                                  {8, 130, 33}, {61, 35, 131}, {15, 47, 600}, {40, 200, 90}};

void refused(const char *name, const caller_value *values, aclnnStatus code, const char *words) {
    const caller *op = find_caller(name);
    uint64_t size;
    aclOpExecutor *executor;
    assert_int_equal(op->prepare(values, &size, &executor), code);
    const char *said = sentence(); /* reading it again would give none */
    if (!strstr(said, words))
        fail_msg("%s says \"%s\", but must say \"%s\"", name, said, words);
}
