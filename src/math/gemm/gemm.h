/*
 * gemm.h - the matrix engine: C = epilogue(alpha * A x B + beta * C), cut into independent tiles.
 *
 * Pure functions: no allocation, no globals, no threads. The caller plans once, gives every worker a scratch buffer and
 * runs dp_gemm_tile for all tiles in any order, on any threads; tiles write disjoint parts of C. A plan is plain data:
 * it may be copied, kept and run again as long as the memory it points to lives. Results do not depend on who runs
 * which tile; they depend (in the last bits, by the order of float sums) on the rung and on the number of threads
 * planned for.
 *
 * Types: A and B of float, half, bfloat16 in any mixture, summed in float (products of half and bfloat16 are exact in
 * float); int8 or uint8 A with int8 B, summed in int32 (wrapping); float, half or bfloat16 A with int8 or int4 B that
 * has a `quant`: B is then (q + offset) * scale, expanded in the kernels. C is float, half or bfloat16; int8, rounded
 * to nearest even and saturated; or int32 for integer A and B.
 */
#ifndef DOPPEL_MATH_GEMM_H
#define DOPPEL_MATH_GEMM_H

#include "base/cpu.h"
#include "base/status.h"
#include "doppel/types.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * An operand B that lies nowhere in memory: the engine asks for parts of it while packing, as a convolution reads its
 * windows. out[p * stride + c] = element (k_first + p, column + c) for p < k_count and c < columns; 0 for the rest of
 * the stride, which is at most DP_GEMM_FILL_COLUMNS. Any part may be asked for more than once, on any thread.
 */
enum { DP_GEMM_FILL_COLUMNS = 32 };
typedef void (*dp_gemm_fill_fn)(const void *context, size_t column, size_t columns, size_t k_first, size_t k_count,
                                float *out, size_t stride);

/*
 * Element (i, j) is at data + i * row_stride + j * column_stride, in elements; strides may be negative or 0 for inputs.
 * int4: the element offset is in nibbles; data is at a byte boundary, one of the strides is 1, and the other is even
 * unless its dimension is 1.
 */
typedef struct dp_gemm_matrix {
    const void *data;
    const void *const *blocks; /* batch-reduce (see n_blocks): one address per block, instead of data */
    ptrdiff_t row_stride, column_stride;
    dp_dtype dtype;
    bool packed; /* data was written by dp_gemm_pack_a / dp_gemm_pack_b; strides and blocks are not looked at */
    dp_gemm_fill_fn fill; /* B of float, instead of data: fill(data, ...) makes it; not with n_blocks; NULL: none */
} dp_gemm_matrix;

/* Scales of a quantised B: element (p, j) uses entry (p / group_size, j) at group * group_stride + j * column_stride.
 */
typedef struct dp_gemm_quant {
    const void *scale;  /* NULL: B is not quantised */
    const void *offset; /* added to q before scaling; NULL: 0; same strides and type as scale */
    ptrdiff_t group_stride, column_stride;
    size_t group_size; /* elements along k, a multiple of 32; 0: one group */
    dp_dtype dtype;    /* DP_F32, DP_F16, DP_BF16 */
} dp_gemm_quant;

typedef enum dp_gemm_activation {
    DP_GEMM_NONE,
    DP_GEMM_RELU,      /* NaN stays */
    DP_GEMM_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    DP_GEMM_GELU_ERF,  /* x/2 (1 + erf(x / sqrt 2)) */
    DP_GEMM_SILU,      /* x / (1 + exp -x) */
    DP_GEMM_SIGMOID,
    DP_GEMM_TANH,
    DP_GEMM_CLIP, /* to clip_low .. clip_high */
    DP_GEMM_ACTIVATION_COUNT
} dp_gemm_activation;

/*
 * What happens to a sum before it is stored, in this order, in float:
 *   x = alpha * row_scale[i] * column_scale[j] * sum; x += beta * source; x += bias; x = activation(x); x += residual; C =
 * round(x) An int32 bias (integer A and B only) is added to the sum before scaling, as quantised layers define it.
 */
typedef struct dp_gemm_epilogue {
    const void *bias; /* NULL: none; else n elements (m with bias_per_row) */
    dp_dtype bias_dtype;
    bool bias_per_row;
    const float *column_scale, *row_scale; /* NULL: 1 */
    dp_gemm_activation activation;
    float clip_low, clip_high;
    dp_gemm_matrix residual; /* m x n, float, half or bfloat16; data NULL: none; may be C itself */
} dp_gemm_epilogue;

typedef struct dp_gemm_problem {
    size_t m, n, k;
    /* Batch-reduce: n_blocks > 0 sums A_0 x B_0 + A_1 x B_1 + ..., every pair m x k by k x n, into one C. 0: one
     * product. */
    size_t n_blocks;
    dp_gemm_matrix a, b, c; /* c.data is written; C must not overlap A or B; its elements must be distinct */
    dp_gemm_matrix source;  /* m x n: what beta scales; data NULL: C itself. A float type; int32 or int8 when C is that */
    float alpha, beta;      /* beta 0: source is not read. int32 C: alpha 1, beta 0 or 1, no epilogue but an int32 bias */
    dp_gemm_quant quant;
    dp_gemm_epilogue epilogue;
} dp_gemm_problem;

/* A plan; fields are for the engine, except the four at the top. */
typedef struct dp_gemm_plan {
    size_t tiles_m, tiles_n; /* run dp_gemm_tile for every i < tiles_m, j < tiles_n */
    size_t scratch_bytes;    /* per thread */
    const char *path;        /* name of the implementation chosen, for logs */
    const char *why;         /* why it is not a faster one; "" when there is none */
    dp_gemm_problem problem;
    const struct dp_gemm_rung *rung;
    int kind, decode;
    size_t tile_m, tile_n;
    size_t group, segment_units, units; /* elements per unit of k, units of one block, units of all blocks */
    size_t unit_block, column_block;    /* blocking of k and of a tile's columns */
    size_t rows_at, panel_at, sums_at;  /* parts of the scratch */
    size_t micro_rows; /* of the micro-kernel */
    bool a_direct, b_direct, plain, a_flip, tiled;
} dp_gemm_plan;

/*
 * Plans the problem for the rung in force and at most `threads` workers (0 counts as 1). The number of tiles is near a
 * small multiple of threads; it may be 0 when m or n is 0. Scratch must be aligned to 64 bytes. DP_ERR_ARGUMENT:
 * pointers missing, types that do not go together, strides or scales out of their range.
 */
dp_status dp_gemm_plan_make(const dp_gemm_problem *problem, unsigned threads, dp_gemm_plan *out_plan);
/* The same for a given rung (lowered to what the processor has) and DP_CPU_* features: for tests and benchmarks. */
dp_status dp_gemm_plan_make_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem, unsigned threads,
                                dp_gemm_plan *out_plan);
void dp_gemm_tile(const dp_gemm_plan *plan, size_t i, size_t j, void *scratch);

/*
 * Packing once what many products read: weights. Fill m, n, k, n_blocks, both operands' types, and data, strides and
 * blocks of the one to be packed. The packed form serves every problem with the same k, n_blocks, types, and the same n
 * (B) or m (A), on the same rung. Packed memory is aligned to 64 bytes. Half and bfloat16 keep their size. Sizes are 0
 * for what is not packed: a B with quant is used in its own form, as it is.
 */
size_t dp_gemm_pack_a_bytes(const dp_gemm_problem *problem);
size_t dp_gemm_pack_b_bytes(const dp_gemm_problem *problem);
dp_status dp_gemm_pack_a(const dp_gemm_problem *problem, void *out_packed);
dp_status dp_gemm_pack_b(const dp_gemm_problem *problem, void *out_packed);
/* For a given rung and features, as dp_gemm_plan_make_for. */
size_t dp_gemm_pack_a_bytes_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem);
size_t dp_gemm_pack_b_bytes_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem);
dp_status dp_gemm_pack_a_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem, void *out_packed);
dp_status dp_gemm_pack_b_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem, void *out_packed);

#endif
