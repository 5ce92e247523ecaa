/*
 * rows.c - slices along one dim, chosen by one tensor of indices. Mappings:
 *   index_add(self, dim, index, source, alpha) -> out    slice index[k] along dim += alpha * source's slice k
 *   index_copy(self, dim, index, source) -> out          index_fill(self, dim, index, value) -> out
 *   update_rows(self, indices, updates, axis) -> self    self[b], from indices[b] on along axis, becomes updates[b]
 *   embedding_backward(grad, indices, num_weights, padding, by_frequency) -> out   out[indices[k]] += grad[k]
 *   gather_batch(self, dim, index, batch_dims) -> out    index_select in each batch
 */
#include "ops/scatter/places.h"

#include <string.h>

/* index_add, index_copy, index_fill: slices along dim; source NULL: the scalar. */
static dp_status slices_along(const dp_operator_call *call, const dp_arg *source, dp_update update,
                              dp_plan **out_plan) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    const dp_arg *self = &call->in[0], *index = &call->in[2], *out = &call->out[0];
    const dp_tensor *t = self->as.tensor, *at = index->as.tensor, *to = out->as.tensor;
    int64_t dims[DP_TENSOR_DIMS], own[DP_TENSOR_DIMS], other[DP_TENSOR_DIMS] = {0};
    int dim = 0, n = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), t, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(index, DP_INDEX_TYPES);
    if (status == DP_OK && at->rank > 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at most 1", index->name, at->rank);
    if (status == DP_OK)
        status = dp_scatter_expect(self, out);
    memcpy(dims, t->dims, sizeof dims);
    if (t->rank)
        dims[dim] = dp_tensor_count(at);
    if (status == DP_OK && source)
        status = dp_element_expect(source, DP_EL_BIT(t->element));
    if (status == DP_OK && source)
        status = dp_shape_expect(source->as.tensor, source->name, dims, t->rank,
                                 "self's with the number of indices in the dimension");
    dp_places *s;
    if (status == DP_OK)
        status = dp_places_new(call, out, source, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->from = self->slot;
    s->n_indices = 1;
    s->indices[0] = dp_indices_of(index, t->rank ? t->dims[dim] : 1);
    s->stride[0] = t->rank ? to->strides[dim] : 0;
    for (int d = 0; d < t->rank; d++) {
        if (d == dim)
            continue;
        dims[n] = t->dims[d];
        own[n] = to->strides[d];
        other[n++] = source ? source->as.tensor->strides[d] : 0;
    }
    int64_t step = source && t->rank ? source->as.tensor->strides[dim] : 0, count = dp_tensor_count(at);
    dp_loop_begin(&s->places, &count, 1);
    dp_loop_add_strides(&s->places, &step);
    dp_loop_add_strides(&s->places, none);
    dp_loop_begin(&s->slice, dims, n);
    dp_loop_add_strides(&s->slice, n ? own : none);
    dp_loop_add_strides(&s->slice, other);
    dp_loop_merge(&s->slice, true);
    return source ? dp_places_write(out, update, out_plan) : dp_places_write_scalar(out, &call->in[3], out_plan);
}

static dp_status index_add(const dp_operator_call *call, dp_plan **out_plan) {
    dp_status status = slices_along(call, &call->in[3], DP_UPDATE_ADD, out_plan);
    if (status != DP_OK)
        return status;
    dp_places *s = dp_plan_state(*out_plan);
    s->factor = (dp_factor){dp_arg_real(&call->in[4], 1), dp_arg_integer(&call->in[4], 1)};
    return DP_OK;
}

static dp_status index_copy(const dp_operator_call *call, dp_plan **out_plan) {
    return slices_along(call, &call->in[3], DP_UPDATE_SET, out_plan);
}

static dp_status index_fill(const dp_operator_call *call, dp_plan **out_plan) {
    return slices_along(call, NULL, DP_UPDATE_SET, out_plan);
}

static dp_status update_rows(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *indices = &call->in[1], *updates = &call->in[2];
    const dp_tensor *t = self->as.tensor, *at = indices->as.tensor, *u = updates->as.tensor;
    int axis = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[3], 0), t, call->in[3].name, &axis);
    if (status == DP_OK)
        status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(indices, DP_INDEX_TYPES);
    if (status == DP_OK)
        status = dp_element_expect(updates, DP_EL_BIT(t->element));
    if (status == DP_OK)
        status = dp_places_expect(self);
    if (status == DP_OK && (t->rank < 2 || axis == 0))
        status = dp_fail(DP_ERR_ARGUMENT, "%s chooses dimension %d of %d, but must not choose the first",
                         call->in[3].name, axis, t->rank);
    if (status == DP_OK && (at->rank != 1 || at->dims[0] > t->dims[0]))
        status = dp_fail(DP_ERR_ARGUMENT, "%s must have one dimension of at most %lld, that of %s", indices->name,
                         (long long)t->dims[0], self->name);
    if (status != DP_OK)
        return status;
    int64_t dims[DP_TENSOR_DIMS];
    memcpy(dims, t->dims, sizeof dims);
    dims[0] = at->dims[0];
    if (u->rank == t->rank && u->dims[axis] <= t->dims[axis])
        dims[axis] = u->dims[axis];
    status = dp_shape_expect(u, updates->name, dims, t->rank, "self's, at most as long along the axis");
    dp_places *s;
    if (status == DP_OK)
        status = dp_places_new(call, self, updates, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->n_indices = 1;
    s->low = 0;
    s->indices[0] = dp_indices_of(indices, t->dims[axis] - u->dims[axis] + 1);
    s->stride[0] = t->strides[axis];
    dp_loop_begin(&s->places, at->dims, 1);
    dp_loop_add_strides(&s->places, u->strides);
    dp_loop_add_strides(&s->places, t->strides);
    dp_loop_begin(&s->slice, dims + 1, t->rank - 1);
    dp_loop_add_strides(&s->slice, t->strides + 1);
    dp_loop_add_strides(&s->slice, u->strides + 1);
    dp_loop_merge(&s->slice, true);
    return dp_places_write(self, DP_UPDATE_SET, out_plan);
}

static dp_status embedding_backward(const dp_operator_call *call, dp_plan **out_plan) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    const dp_arg *grad = &call->in[0], *indices = &call->in[1], *out = &call->out[0];
    const dp_tensor *g = grad->as.tensor, *at = indices->as.tensor, *to = out->as.tensor;
    int64_t weights = dp_arg_integer(&call->in[2], 0), dims[DP_TENSOR_DIMS + 1];
    dp_status status = dp_element_expect(grad, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(indices, DP_INDEX_TYPES);
    memcpy(dims, at->dims, sizeof at->dims);
    dims[at->rank] = g->rank ? g->dims[g->rank - 1] : 1;
    if (status == DP_OK)
        status = dp_shape_expect(g, grad->name, dims, at->rank + 1, "the indices', then the embedding's length");
    int64_t table[] = {weights, dims[at->rank]};
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(g->element));
    if (status == DP_OK)
        status = dp_shape_expect(to, out->name, table, 2, "the embedding's");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_places *s;
    if (status == DP_OK)
        status = dp_places_new(call, out, grad, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->from = -1;
    s->low = 0;
    s->padding = dp_arg_integer(&call->in[3], -1);
    s->by_frequency = dp_arg_integer(&call->in[4], 0) != 0;
    s->n_indices = 1;
    s->indices[0] = dp_indices_of(indices, weights);
    s->stride[0] = to->strides[0];
    dp_loop_begin(&s->whole, to->dims, 2);
    dp_loop_add(&s->whole, to);
    dp_loop_merge(&s->whole, true);
    dp_loop_begin(&s->places, at->dims, at->rank);
    dp_loop_add_strides(&s->places, at->rank ? g->strides : none);
    dp_loop_add_strides(&s->places, none);
    dp_loop_merge(&s->places, false);
    dp_loop_begin(&s->slice, to->dims + 1, 1);
    dp_loop_add_strides(&s->slice, to->strides + 1);
    dp_loop_add_strides(&s->slice, g->strides + at->rank);
    dp_loop_merge(&s->slice, true);
    return dp_places_write(grad, DP_UPDATE_ADD, out_plan);
}

/* Batch dims of self and index are walked together. */
static dp_status gather_batch(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *index = &call->in[2], *batch_arg = &call->in[3], *out = &call->out[0];
    const dp_tensor *t = self->as.tensor, *at = index->as.tensor, *to = out->as.tensor;
    int64_t dims[2 * DP_TENSOR_DIMS], own[DP_TENSOR_DIMS] = {0}, other[DP_TENSOR_DIMS] = {0},
                                      batch = dp_arg_integer(batch_arg, 0);
    int dim = 0, rank = 0, n = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), t, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(index, DP_INDEX_TYPES);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(t->element));
    batch += batch < 0 ? at->rank : 0;
    if (status == DP_OK && (!t->rank || batch < 0 || batch > at->rank || batch > dim))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at most %s and the dimensions of %s (%d)",
                         batch_arg->name, (long long)batch, call->in[1].name, index->name, at->rank);
    for (int d = 0; status == DP_OK && d < batch; d++)
        if (at->dims[d] != t->dims[d])
            status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be that of %s: %lld", index->name, d,
                             (long long)at->dims[d], self->name, (long long)t->dims[d]);
    if (status != DP_OK)
        return status;
    for (int d = 0; d < dim; d++)
        dims[rank++] = t->dims[d];
    for (int d = (int)batch; d < at->rank; d++)
        dims[rank++] = at->dims[d];
    for (int d = dim + 1; d < t->rank; d++)
        dims[rank++] = t->dims[d];
    status =
        dp_shape_expect(to, out->name, dims, rank, "self's with the dimension replaced by index's but for the batch");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_places *s;
    if (status == DP_OK)
        status = dp_places_new(call, self, out, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->n_indices = 1;
    s->indices[0] = dp_indices_of(index, t->dims[dim]);
    s->stride[0] = t->strides[dim];
    for (int d = 0; d < at->rank; d++) {
        own[d] = d < batch ? t->strides[d] : 0;
        other[d] = to->strides[d < batch ? d : dim + d - (int)batch];
    }
    dp_loop_begin(&s->places, at->dims, at->rank);
    dp_loop_add_strides(&s->places, other);
    dp_loop_add_strides(&s->places, own);
    dp_loop_merge(&s->places, false);
    for (int d = (int)batch; d < t->rank; d++) {
        if (d == dim)
            continue;
        dims[n] = t->dims[d];
        own[n] = t->strides[d];
        other[n++] = to->strides[d < dim ? d : d + at->rank - (int)batch - 1];
    }
    dp_loop_begin(&s->slice, dims, n);
    dp_loop_add_strides(&s->slice, own);
    dp_loop_add_strides(&s->slice, other);
    dp_loop_merge(&s->slice, true);
    return DP_OK;
}

#define EXPORT(function, prepare)                                                                                      \
    extern const dp_function dp_scatter_##function;                                                                    \
    const dp_function dp_scatter_##function = {#function, prepare, NULL, 0, 0};
EXPORT(index_add, index_add)
EXPORT(index_copy, index_copy)
EXPORT(index_fill, index_fill)
EXPORT(update_rows, update_rows)
EXPORT(embedding_backward, embedding_backward)
EXPORT(gather_batch, gather_batch)
