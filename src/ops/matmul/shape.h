/*
 * shape.h - tensors as batches of matrices: what the shapes of two factors and of a result must be to each other.
 */
#ifndef DOPPEL_OPS_MATMUL_SHAPE_H
#define DOPPEL_OPS_MATMUL_SHAPE_H

#include "ops/matmul/products.h"

/* A vector has one row when it is the left factor, one column when it is the right one. */
typedef struct dp_factor {
    const dp_arg *arg;
    const dp_tensor *tensor;
    int batch_rank;
    bool vector;
    int64_t rows, columns, row_stride, column_stride;
} dp_factor;

/* The dims of a product: batch dims broadcast, then rows and columns, less those that stand for vectors. */
typedef struct dp_product_shape {
    int64_t batch_dims[DP_TENSOR_DIMS];
    int batch_rank;
    bool has_rows, has_columns;
    int64_t rows, columns, inner;
} dp_product_shape;

/* turned: the last two dims change places. A tensor of rank 0 is the caller's to refuse. */
dp_factor dp_factor_of(const dp_arg *arg, bool is_left, bool turned);
/* Refuses factors whose inner dims differ or whose batches cannot be broadcast. */
dp_status dp_product_shape_of(const dp_factor *left, const dp_factor *right, dp_product_shape *out_shape);
/* The dims of the result; without the batch when its products are summed. Returns their number. */
int dp_product_dims(const dp_product_shape *shape, bool sum_batch, int64_t *out_dims);
/* Refuses a result of other dims (one number may be [1]), or whose elements share places. */
dp_status dp_product_check_out(const dp_arg *out, const int64_t *dims, int rank);

/* Sets the factor as view A or B. */
void dp_product_set_factor(dp_products *products, int view, const dp_product_shape *shape, const dp_factor *factor);
/* Sets view C or SOURCE: a tensor broadcast to the rank of the result; NULL: absent. */
void dp_product_set_result(dp_products *products, int view, const dp_product_shape *shape, const dp_arg *arg, int rank);

/* Scales of a float type, or of 64 bits that hold a float in their low 32, as floats. */
void dp_scales_to_f32(int element, const void *data, int64_t count, float *out);

#endif
