/*
 * kernels.h - elements of a tensor changed by others: the tables of one rung.
 */
#ifndef DOPPEL_OPS_SCATTER_KERNELS_H
#define DOPPEL_OPS_SCATTER_KERNELS_H

#include "ops/tensor.h"

typedef enum dp_update {
    DP_UPDATE_SET,
    DP_UPDATE_ADD, /* to + factor * from */
    DP_UPDATE_MUL,
    DP_UPDATE_MAX, /* a NaN on either side wins */
    DP_UPDATE_MIN,
    DP_UPDATE_COUNT
} dp_update;

typedef struct dp_factor {
    double real;
    int64_t integer;
} dp_factor;

/*
 * to[offsets[i]] = to[offsets[i]] op from[i] for i in order, so equal offsets add up and the last of them is set.
 * Halves are computed in float and rounded each time, integers wrap, bools stay 0 or 1. NULL for complex types, but for
 * SET.
 */
typedef void (*dp_update_at_fn)(void *to, const int64_t *offsets, const void *from, size_t n, dp_factor factor);
/* The same with offsets 0, 1, 2...; `from` may not overlap `to` unless it is the same. */
typedef void (*dp_update_row_fn)(void *to, const void *from, size_t n, dp_factor factor);

typedef struct dp_update_table {
    dp_update_at_fn at[DP_UPDATE_COUNT][DP_EL_COUNT];
    dp_update_row_fn row[DP_UPDATE_COUNT][DP_EL_COUNT];
} dp_update_table;

void dp_update_fill_generic(dp_update_table *table);
void dp_update_fill_avx2(dp_update_table *table);
void dp_update_fill_avx512(dp_update_table *table);
const dp_update_table *dp_update_current(void);

#endif
