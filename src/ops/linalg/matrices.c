#include "ops/linalg/matrices.h"

#include "ops/doubles.h"

dp_status dp_matrices_of(const dp_arg *arg, int dims, dp_matrices *out) {
    const dp_tensor *t = arg->as.tensor;
    int lead = t->rank - dims;
    *out = (dp_matrices){.slot = arg->slot, .element = t->element, .rows = 1, .columns = 1};
    if (lead < 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least %d", arg->name, t->rank, dims);
    if (dims > 0) {
        out->columns = t->dims[t->rank - 1];
        out->column_stride = t->strides[t->rank - 1];
    }
    if (dims > 1) {
        out->rows = t->dims[t->rank - 2];
        out->row_stride = t->strides[t->rank - 2];
    }
    if (out->rows > DP_MATRIX_ORDER || out->columns > DP_MATRIX_ORDER)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "%s has matrices of %lld x %lld, but at most %d rows and columns are supported", arg->name,
                       (long long)out->rows, (long long)out->columns, DP_MATRIX_ORDER);
    dp_loop_begin(&out->lead, t->dims, lead);
    dp_loop_add_strides(&out->lead, t->strides);
    if (lead == 0)
        out->lead.strides[0][0] = 0;
    return DP_OK;
}

dp_status dp_matrices_expect(const dp_arg *arg, int dims, const dp_arg *like, int64_t rows, int64_t columns,
                             dp_matrices *out) {
    const dp_tensor *t = like->as.tensor;
    int64_t wanted[DP_TENSOR_DIMS];
    int rank = 0;
    while (rank < t->rank - 2) {
        wanted[rank] = t->dims[rank];
        rank++;
    }
    if (dims > 1)
        wanted[rank++] = rows;
    if (dims > 0)
        wanted[rank++] = columns;
    dp_status status = dp_element_expect(arg, DP_EL_BIT(t->element));
    if (status == DP_OK)
        status = dp_shape_expect(arg->as.tensor, arg->name, wanted, rank, "that of the result");
    if (status == DP_OK)
        status = dp_places_expect(arg);
    return status == DP_OK ? dp_matrices_of(arg, dims, out) : status;
}

static char *matrix_at(dp_plan *plan, const dp_matrices *m, int64_t index) {
    return (char *)dp_plan_data(plan, m->slot) +
           dp_loop_offset(&m->lead, 0, index) * (int64_t)dp_element_bytes(m->element);
}

void dp_matrix_load(dp_plan *plan, const dp_matrices *m, int64_t index, bool transposed, double *to) {
    const int64_t width = (int64_t)dp_element_bytes(m->element);
    const char *from = matrix_at(plan, m, index);
    for (int64_t i = 0; i < (transposed ? m->columns : m->rows); i++)
        if (transposed)
            dp_doubles_load(m->element, from + i * m->column_stride * width, m->row_stride, m->rows, to + i * m->rows);
        else
            dp_doubles_load(m->element, from + i * m->row_stride * width, m->column_stride, m->columns,
                            to + i * m->columns);
}

void dp_matrix_store(dp_plan *plan, const dp_matrices *m, int64_t index, bool transposed, const double *from) {
    const int64_t width = (int64_t)dp_element_bytes(m->element);
    char *to = matrix_at(plan, m, index);
    for (int64_t i = 0; i < (transposed ? m->columns : m->rows); i++)
        if (transposed)
            dp_doubles_store(m->element, to + i * m->column_stride * width, m->row_stride, m->rows, from + i * m->rows);
        else
            dp_doubles_store(m->element, to + i * m->row_stride * width, m->column_stride, m->columns,
                             from + i * m->columns);
}
