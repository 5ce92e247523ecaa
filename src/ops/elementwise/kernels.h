/*
 * kernels.h - the tables of one rung: expressions over contiguous tiles, and conversions to and from the compute types.
 */
#ifndef DOPPEL_OPS_ELEMENTWISE_KERNELS_H
#define DOPPEL_OPS_ELEMENTWISE_KERNELS_H

#include "ops/tensor.h"

typedef enum dp_compute { DP_COMPUTE_F32, DP_COMPUTE_F64, DP_COMPUTE_I64, DP_COMPUTE_COUNT } dp_compute;

static inline int dp_compute_element(dp_compute compute) {
    return compute == DP_COMPUTE_F32 ? DP_F32 : compute == DP_COMPUTE_F64 ? DP_F64 : DP_I64;
}

typedef enum dp_elementwise_id {
#define FNI(name, class, operands, params, real, integer) DP_ELEMENTWISE_##name,
#define FN(name, class, operands, params, real) DP_ELEMENTWISE_##name,
#define FNM(name, class, operands, params, via, pre, post) DP_ELEMENTWISE_##name,
#include "ops/elementwise/functions.def"
    DP_ELEMENTWISE_sin,
    DP_ELEMENTWISE_cos,
    DP_ELEMENTWISE_COUNT
} dp_elementwise_id;

enum { DP_TILE = 1024 };

/* n <= DP_TILE elements; dst may be one of the inputs. Four parameters, as doubles: converted to the compute type. */
typedef void (*dp_elementwise_fn)(void *dst, const void *a, const void *b, const void *c, const double *params,
                                  size_t n);
typedef void (*dp_convert_fn)(void *dst, const void *src, size_t n);

typedef struct dp_elementwise_table {
    dp_elementwise_fn run[DP_ELEMENTWISE_COUNT][DP_COMPUTE_COUNT]; /* NULL: not offered */
    dp_convert_fn load[DP_EL_COUNT][DP_COMPUTE_COUNT];             /* NULL for complex and 4-bit types */
    /* Floats to integers are cut towards zero and wrap or saturate; integers wrap; bool is "not 0". */
    dp_convert_fn store[DP_EL_COUNT][DP_COMPUTE_COUNT];
} dp_elementwise_table;

void dp_elementwise_fill_generic(dp_elementwise_table *table);
void dp_elementwise_fill_avx2(dp_elementwise_table *table);
void dp_elementwise_fill_avx512(dp_elementwise_table *table);
/* Of the rung in force. */
const dp_elementwise_table *dp_elementwise_current(void);

#endif
