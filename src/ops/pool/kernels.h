/*
 * kernels.h - the loops of pooling, one table per rung.
 */
#ifndef DOPPEL_OPS_POOL_KERNELS_H
#define DOPPEL_OPS_POOL_KERNELS_H

#include "ops/tensor.h"

/* y[i] takes in x[i * step]: added to it, or the greater one, where NaN is greater than everything. */
typedef void (*dp_pool_fn)(float *y, const float *x, size_t n, size_t step);

typedef struct dp_pool_table {
    dp_pool_fn add, max;
} dp_pool_table;

void dp_pool_fill_generic(dp_pool_table *table);
void dp_pool_fill_avx2(dp_pool_table *table);
void dp_pool_fill_avx512(dp_pool_table *table);

#endif
