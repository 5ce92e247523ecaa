/*
 * reshape.c - permuting together with another shape, and the way back from windows of one dim:
 *   permute_reshape(self, perm, shape, permute_first) -> out
 *       permute_first: self is permuted, then out has the shape; else self in this shape is permuted. What gets another
 *       shape must be contiguous, or have strides that allow it.
 *   unfold_gradient(grad, sizes, dim, size, step) -> out
 *       grad [..., windows at dim, ..., size] is what torch's unfold makes of out [sizes]; every element of out is the
 * sum of all that was made of it, in double.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/linalg/matrices.h"
#include "ops/move/move.h"
#include "ops/tiles.h"

/* Strides of the tensor's elements in other dims of the same count; false when there are none. */
static bool other_strides(const dp_tensor *t, const int64_t *dims, int rank, int64_t *strides) {
    int d = t->rank - 1, k = rank - 1;
    memset(strides, 0, (size_t)rank * sizeof *strides);
    if (dp_tensor_count(t) == 0)
        return true;
    while (d >= 0) {
        int64_t stride = t->strides[d], room = t->dims[d], taken = 1; /* a block of dims that go on in one stride */
        for (d--; d >= 0 && (room == 1 || t->dims[d] == 1 || t->strides[d] == stride * room); d--) {
            stride = room == 1 ? t->strides[d] : stride;
            room *= t->dims[d];
        }
        for (; k >= 0 && taken < room; k--) {
            strides[k] = dims[k] == 1 ? 0 : stride * taken;
            taken *= dims[k];
        }
        if (taken != room)
            return false;
    }
    return true; /* dims that are left are 1 */
}

static dp_status expect_count(const dp_arg *list, const dp_tensor *self, const char *name) {
    int64_t count = 1;
    for (int64_t i = 0; i < list->count; i++)
        if (list->as.integers[i] < 0 || __builtin_mul_overflow(count, list->as.integers[i], &count))
            return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] is %lld, which no tensor has", list->name, (long long)i,
                           (long long)list->as.integers[i]);
    if (list->count > DP_TENSOR_DIMS || count != dp_tensor_count(self))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld dimensions of %lld elements together, but %s has %lld elements",
                       list->name, (long long)list->count, (long long)count, name, (long long)dp_tensor_count(self));
    return DP_OK;
}

static dp_status permute_reshape(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *perm = &call->in[1], *shape = &call->in[2], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    bool first = dp_arg_integer(&call->in[3], 0) != 0, used[DP_TENSOR_DIMS] = {false};
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS] = {0}, moved[DP_TENSOR_DIMS], moved_strides[DP_TENSOR_DIMS];
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(self->element));
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = expect_count(shape, self, in->name);
    int rank = first ? self->rank : (int)shape->count;
    if (status == DP_OK && perm->count != rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have one per dimension: %d", perm->name,
                         (long long)perm->count, rank);
    if (status != DP_OK)
        return status;
    memcpy(dims, first ? self->dims : shape->as.integers, (size_t)rank * sizeof *dims);
    memcpy(strides, self->strides, sizeof strides);
    if (!first && !other_strides(self, dims, rank, strides))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has strides that do not allow the shape: make it contiguous", in->name);
    for (int i = 0; i < rank; i++) {
        int64_t d = perm->as.integers[i];
        if (d < 0 || d >= rank || used[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be 0 to %d, each once", perm->name, i,
                           (long long)d, rank - 1);
        used[d] = true;
        moved[i] = dims[d];
        moved_strides[i] = strides[d];
    }
    status = first ? dp_shape_expect(to, out->name, shape->as.integers, (int)shape->count, shape->name)
                   : dp_shape_expect(to, out->name, moved, rank, "the permuted shape");
    if (status != DP_OK)
        return status;
    int64_t to_strides[DP_TENSOR_DIMS];
    memcpy(to_strides, to->strides, sizeof to_strides);
    if (first && !other_strides(to, moved, rank, to_strides))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has strides that do not allow the shape: make it contiguous", out->name);
    *out_plan = dp_pieces_plan(call, 1);
    if (!*out_plan)
        return DP_ERR_OUT_OF_MEMORY;
    dp_pieces_add(*out_plan, moved, rank, out, to_strides, 0, in, moved_strides, 0);
    return DP_OK;
}

/* Windows of all places as matrices windows x size, and what they were made of as rows. */
typedef struct folding {
    dp_matrices windows, rows;
    int64_t step;
} folding;

static void fold_one(void *context, size_t tile, void *scratch) {
    dp_plan *plan = context;
    const folding *f = dp_plan_state(plan);
    double *windows = scratch, *row = windows + f->windows.rows * f->windows.columns;
    dp_matrix_load(plan, &f->windows, (int64_t)tile, false, windows);
    memset(row, 0, (size_t)f->rows.columns * sizeof *row);
    for (int64_t w = 0; w < f->windows.rows; w++)
        for (int64_t k = 0; k < f->windows.columns; k++)
            row[w * f->step + k] += windows[w * f->windows.columns + k];
    dp_matrix_store(plan, &f->rows, (int64_t)tile, false, row);
}

static dp_status run_fold(dp_plan *plan) {
    const folding *f = dp_plan_state(plan);
    return dp_tiles_run((size_t)f->rows.lead.count,
                        (size_t)(f->windows.rows * f->windows.columns + f->rows.columns) * sizeof(double) + 64,
                        fold_one, plan);
}

static dp_status unfold_gradient(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *grad = &call->in[0], *sizes = &call->in[1], *out = &call->out[0];
    const dp_tensor *g = grad->as.tensor, *t = out->as.tensor;
    int64_t size = dp_arg_integer(&call->in[3], 1), step = dp_arg_integer(&call->in[4], 1), dims[DP_TENSOR_DIMS + 1],
            lead[DP_TENSOR_DIMS], from[DP_TENSOR_DIMS], to[DP_TENSOR_DIMS] = {0};
    int dim, n = 0;
    dp_status status = dp_element_expect(grad, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK && (sizes->count < 1 || sizes->count >= DP_TENSOR_DIMS))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have 1 to %d", sizes->name,
                         (long long)sizes->count, DP_TENSOR_DIMS - 1);
    if (status == DP_OK)
        status = dp_shape_expect(t, out->name, sizes->as.integers, (int)sizes->count, sizes->name);
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&call->in[2], 0), t, call->in[2].name, &dim);
    if (status == DP_OK && (size < 1 || size > t->dims[dim] || step < 1))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld and %s is %lld, but they must be 1 to %lld, and at least 1",
                         call->in[3].name, (long long)size, call->in[4].name, (long long)step, (long long)t->dims[dim]);
    if (status != DP_OK)
        return status;
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[dim] = (t->dims[dim] - size) / step + 1;
    dims[t->rank] = size;
    status = dp_shape_expect(g, grad->name, dims, t->rank + 1, "the windows'");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run_fold, sizeof(folding)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    for (int d = 0; d < t->rank; d++)
        if (d != dim) {
            lead[n] = t->dims[d];
            from[n] = g->strides[d];
            to[n++] = t->strides[d];
        }
    folding *f = dp_plan_state(plan);
    f->step = step;
    f->windows = (dp_matrices){.slot = grad->slot,
                               .element = g->element,
                               .rows = dims[dim],
                               .columns = size,
                               .row_stride = g->strides[dim],
                               .column_stride = g->strides[t->rank]};
    f->rows = (dp_matrices){
        .slot = out->slot, .element = t->element, .rows = 1, .columns = t->dims[dim], .column_stride = t->strides[dim]};
    static const int64_t none[1];
    dp_loop_begin(&f->windows.lead, lead, n);
    dp_loop_add_strides(&f->windows.lead, n ? from : none);
    dp_loop_begin(&f->rows.lead, lead, n);
    dp_loop_add_strides(&f->rows.lead, n ? to : none);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_move_permute_reshape, dp_move_unfold_gradient;
const dp_function dp_move_permute_reshape = {"permute_reshape", permute_reshape, NULL, 0, 0};
const dp_function dp_move_unfold_gradient = {"unfold_gradient", unfold_gradient, NULL, 0, 0};
