/*
 * kernels.h - accumulation over lanes. A tile is rows x lanes of the compute type; lane i of the accumulators takes
 * element i of every row. A long row is cut into such tiles, so both directions of reduction use the same loops.
 */
#ifndef DOPPEL_OPS_REDUCE_KERNELS_H
#define DOPPEL_OPS_REDUCE_KERNELS_H

#include "ops/elementwise/kernels.h"

typedef enum dp_reduce_id {
    DP_REDUCE_SUM,
    DP_REDUCE_NANSUM,
    DP_REDUCE_PROD,
    DP_REDUCE_MAX, /* NaN wins */
    DP_REDUCE_MIN,
    DP_REDUCE_ANY,
    DP_REDUCE_ALL,
    DP_REDUCE_ARGMAX, /* the first of equals; NaN wins */
    DP_REDUCE_ARGMIN,
    DP_REDUCE_SQUARES, /* sum of (x - aux)^2 */
    DP_REDUCE_ABS,     /* sum of |x| */
    DP_REDUCE_POWER,   /* sum of |x|^parameter */
    DP_REDUCE_COUNT_NOT0,
    DP_REDUCE_MAX_ABS,
    DP_REDUCE_MIN_ABS,
    DP_REDUCE_EXP, /* sum of e^(x - aux) */
    DP_REDUCE_ID_COUNT
} dp_reduce_id;

enum { DP_LANES_MAX = DP_TILE };

/* Values are doubles for float and double tiles, int64 for int64 tiles. */
typedef union dp_lane {
    double real;
    int64_t integer;
} dp_lane;

typedef struct dp_lanes {
    dp_lane value[DP_LANES_MAX];
    double aux[DP_LANES_MAX]; /* what an earlier pass found: mean or maximum */
    int64_t index[DP_LANES_MAX];
} dp_lanes;

typedef struct dp_reduce_step {
    size_t rows, lanes;
    int64_t index, index_row, index_lane; /* position of element (r, i) is index + r * index_row + i * index_lane */
    double parameter;
} dp_reduce_step;

typedef void (*dp_reduce_fn)(dp_lanes *lanes, const void *tile, const dp_reduce_step *step);
typedef struct dp_reduce_table {
    dp_reduce_fn run[DP_REDUCE_ID_COUNT][DP_COMPUTE_COUNT];
} dp_reduce_table;

void dp_reduce_fill_generic(dp_reduce_table *table);
void dp_reduce_fill_avx2(dp_reduce_table *table);
void dp_reduce_fill_avx512(dp_reduce_table *table);

#endif
