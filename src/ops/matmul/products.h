/*
 * products.h - many matrix products of one shape, run on the matrix engine by all workers.
 *
 * A family describes one product as a dp_gemm_problem without addresses, and where its operands lie: a tensor slot of
 * the plan for each, and strides over the batch dims. At run time the addresses are filled in and the tiles of all
 * products are spread over the pool.
 */
#ifndef DOPPEL_OPS_MATMUL_PRODUCTS_H
#define DOPPEL_OPS_MATMUL_PRODUCTS_H

#include "math/gemm/gemm.h"
#include "ops/loop.h"
#include "ops/op.h"

/* Operands that differ from product to product, in the order of the batch loop's views. */
enum { DP_PRODUCTS_C, DP_PRODUCTS_A, DP_PRODUCTS_B, DP_PRODUCTS_SOURCE, DP_PRODUCTS_VIEWS };

typedef struct dp_products {
    dp_gemm_problem problem;     /* shapes, strides, types, alpha, beta; addresses are filled in when it runs */
    dp_loop batch;               /* DP_PRODUCTS_VIEWS views */
    int slot[DP_PRODUCTS_VIEWS]; /* of the plan's tensors; -1: this operand is absent */
    bool sum_batch;              /* the products of the batch are added up in one C */
} dp_products;

/* Begins with one product and no operand. */
void dp_products_begin(dp_products *products, const int64_t *batch_dims, int batch_rank);
/*
 * Sets an operand: its type, the strides of its rows and columns in elements, and those of the first batch_rank dims of
 * the batch (0: the same for all). Operands are set in the order of the enum, absent ones too (tensor NULL).
 */
void dp_products_set(dp_products *products, int view, const dp_arg *tensor, int64_t row_stride, int64_t column_stride,
                     const int64_t *batch_strides);
typedef struct dp_way {
    const char *path, *why; /* as in dp_plan */
} dp_way;
/*
 * Addresses the family fills in itself when it runs (scales, bias) may be anything but NULL until then.
 * Puts batch dims over which B stays the same below the rows of A where strides allow it: one product of many rows
 * reads B once. Then asks the engine whether it takes the problem; out_way says how.
 */
dp_status dp_products_end(dp_products *products, dp_way *out_way);
dp_status dp_products_run(dp_plan *plan, const dp_products *products);

/* Products of different shapes, complete with their addresses: their tiles are spread over the pool together. */
dp_status dp_problems_run(const dp_gemm_problem *problems, size_t count);

#endif
