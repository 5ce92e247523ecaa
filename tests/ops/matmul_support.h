/*
 * matmul_support.h - what the tests of the matmul family share: random tensors, the product in double, refusals.
 */
#ifndef DOPPEL_TESTS_OPS_MATMUL_SUPPORT_H
#define DOPPEL_TESTS_OPS_MATMUL_SUPPORT_H

#include "ops_test.h"

/* One product as the tests see it: matrices with batch dims broadcast; vectors when a or b has one dim. */
typedef struct product {
    const tensor *a, *b;
    double *values_a, *values_b; /* in row-major order */
    int64_t m, n, k, batch;
    int batch_rank;
    int64_t batch_dims[6];
} product;

/* Shapes with edges: empty, of one element, of odd sizes. */
typedef struct matmul_size {
    int64_t m, n, k;
} matmul_size;
enum { SIZES = 14 };
extern const matmul_size sizes[SIZES];
extern const aclDataType floats[3];

layout any_layout(void);
aclDataType any_float(void);
tensor filled(aclDataType type, int rank, const int64_t *dims, layout how);
/* Sums of k products of values up to 1, in float, then rounded to the type. */
void check_near(const char *what, const tensor *t, int64_t i, double want, double size);
product product_of(const tensor *a, const tensor *b); /* to be freed with free_product */
void free_product(product *p);
double sum_of(const product *p, int64_t batch, int64_t i, int64_t j);
void check_product(const char *what, const tensor *a, const tensor *b, const tensor *out);
/* The first call must end with the code, and its sentence must have the words. */
void refused(const char *name, const caller_value *values, aclnnStatus code, const char *words);

#endif
