#include "ops/matmul/shape.h"

#include <string.h>

#include "base/half.h"

static int64_t swap(int64_t *a, int64_t b) {
    int64_t old = *a;
    *a = b;
    return old;
}

dp_factor dp_factor_of(const dp_arg *arg, bool is_left, bool turned) {
    const dp_tensor *t = arg->as.tensor;
    dp_factor f = {.arg = arg, .tensor = t, .vector = t->rank == 1, .rows = 1, .columns = 1};
    int last = t->rank - 1;
    if (!f.vector) {
        f.batch_rank = t->rank - 2;
        f.rows = t->dims[last - 1];
        f.columns = t->dims[last];
        f.row_stride = t->strides[last - 1];
        f.column_stride = t->strides[last];
        if (turned) {
            f.columns = swap(&f.rows, f.columns);
            f.column_stride = swap(&f.row_stride, f.column_stride);
        }
    } else if (is_left) {
        f.columns = t->dims[0];
        f.column_stride = t->strides[0];
    } else {
        f.rows = t->dims[0];
        f.row_stride = t->strides[0];
    }
    return f;
}

/* Batches are aligned at their last dims: which dim of the tensor is dim d of the batch; negative when it has none. */
static int dim_at(const dp_factor *f, int batch_rank, int d) {
    return d - (batch_rank - f->batch_rank);
}

static dp_status check_inner(const dp_factor *a, const dp_factor *b) {
    if (a->columns == b->rows)
        return DP_OK;
    char text_a[160], text_b[160];
    const bool turned = !b->vector && b->rows != b->tensor->dims[b->tensor->rank - 2];
    return dp_fail(
        DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be %lld, the inner one of %s: shapes are %s and %s",
        b->arg->name, b->vector ? 0 : b->tensor->rank - (turned ? 1 : 2), (long long)b->rows, (long long)a->columns,
        a->arg->name, dp_dims_describe(a->tensor->dims, a->tensor->rank, text_a, sizeof text_a),
        dp_dims_describe(b->tensor->dims, b->tensor->rank, text_b, sizeof text_b));
}

dp_status dp_product_shape_of(const dp_factor *a, const dp_factor *b, dp_product_shape *out) {
    dp_status status = check_inner(a, b);
    if (status != DP_OK)
        return status;
    *out = (dp_product_shape){.batch_rank = a->batch_rank > b->batch_rank ? a->batch_rank : b->batch_rank,
                              .has_rows = !a->vector,
                              .has_columns = !b->vector,
                              .rows = a->rows,
                              .columns = b->columns,
                              .inner = a->columns};
    for (int d = 0; d < out->batch_rank; d++) {
        int at_a = dim_at(a, out->batch_rank, d), at_b = dim_at(b, out->batch_rank, d);
        int64_t dim_a = at_a < 0 ? 1 : a->tensor->dims[at_a], dim_b = at_b < 0 ? 1 : b->tensor->dims[at_b];
        if (dim_a != dim_b && dim_a != 1 && dim_b != 1)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s: dimension %d is %lld, but must be 1 or %lld, that of %s: batches are broadcast",
                           b->arg->name, at_b, (long long)dim_b, (long long)dim_a, a->arg->name);
        out->batch_dims[d] = dim_a == 1 ? dim_b : dim_a;
    }
    return DP_OK;
}

int dp_product_dims(const dp_product_shape *s, bool sum_batch, int64_t *out_dims) {
    int rank = sum_batch ? 0 : s->batch_rank;
    memcpy(out_dims, s->batch_dims, (size_t)rank * sizeof *out_dims);
    if (s->has_rows)
        out_dims[rank++] = s->rows;
    if (s->has_columns)
        out_dims[rank++] = s->columns;
    return rank;
}

dp_status dp_product_check_out(const dp_arg *arg, const int64_t *dims, int rank) {
    const dp_tensor *out = arg->as.tensor;
    if (rank == 0 && out->rank == 1 && out->dims[0] == 1)
        return DP_OK; /* one number, with a dim */
    dp_status status = dp_shape_expect(out, arg->name, dims, rank, "that of the product");
    return status == DP_OK ? dp_places_expect(arg) : status;
}

void dp_product_set_factor(dp_products *p, int view, const dp_product_shape *s, const dp_factor *f) {
    int64_t strides[DP_TENSOR_DIMS] = {0};
    for (int d = 0; d < s->batch_rank; d++) {
        int at = dim_at(f, s->batch_rank, d);
        strides[d] = at < 0 || f->tensor->dims[at] == 1 ? 0 : f->tensor->strides[at];
    }
    dp_products_set(p, view, f->arg, f->row_stride, f->column_stride, strides);
}

void dp_product_set_result(dp_products *p, int view, const dp_product_shape *s, const dp_arg *arg, int rank) {
    int64_t all[DP_TENSOR_DIMS] = {0}, strides[DP_TENSOR_DIMS] = {0}, row = 0, column = 0;
    if (!arg) {
        dp_products_set(p, view, NULL, 0, 0, NULL);
        return;
    }
    const dp_tensor *t = arg->as.tensor;
    for (int d = 0; d < t->rank && d < rank; d++)
        all[rank - 1 - d] = t->dims[t->rank - 1 - d] == 1 ? 0 : t->strides[t->rank - 1 - d];
    if (s->has_columns)
        column = all[--rank];
    if (s->has_rows)
        row = all[--rank];
    memcpy(strides, all, (size_t)rank * sizeof *strides);
    dp_products_set(p, view, arg, row, column, strides);
}

void dp_scales_to_f32(int element, const void *data, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++) {
        if (element == DP_F32) {
            out[i] = ((const float *)data)[i];
        } else if (element == DP_F16) {
            out[i] = dp_f32_from_f16(((const uint16_t *)data)[i]);
        } else if (element == DP_BF16) {
            out[i] = dp_f32_from_bf16(((const uint16_t *)data)[i]);
        } else {
            uint32_t low = (uint32_t)((const uint64_t *)data)[i];
            memcpy(&out[i], &low, sizeof low);
        }
    }
}
