/*
 * advanced.c - choosing by several tensors of indices. Mappings:
 *   index(self, indices) -> out                          torch's self[indices]: a list with a tensor per dim, or an
 * empty one for "all of the dim"; one of them may be a mask, bool, of some dims of self in a row, if all others are
 * empty: it stands for the places where it is true. index_put(self, indices, values, accumulate) -> self values
 * broadcast to the dims of self[indices] take(self, index) -> out                             self as one sequence
 * put(self, index, source, accumulate) -> self nd_update(self, indices, updates) -> self            the last dim of
 * indices holds coordinates in self's first dims; nd_scatter(self, indices, updates, reduction) -> out   the same on a
 * copy, with a reduction by name nd_gather(self, indices, batch_dims) -> out          the slices at these coordinates
 */
#include "ops/scatter/places.h"

#include <string.h>

/* The dims that torch's self[indices] has, and where its parts lie. */
typedef struct advanced {
    const dp_arg *self, *list;
    int dim[DP_TENSOR_DIMS]; /* that the n-th index tensor chooses in */
    const dp_tensor *index[DP_TENSOR_DIMS];
    int n;
    const dp_tensor *mask; /* instead of indices, or NULL */
    int mask_dim, mask_slot;
    int64_t broadcast[DP_TENSOR_DIMS]; /* of all index tensors together */
    int broadcast_rank;
    int front; /* dims of the result before the broadcast ones */
    int64_t dims[2 * DP_TENSOR_DIMS];
    int rank;
} advanced;

static bool is_indexed(const advanced *a, int dim) {
    if (a->mask)
        return dim >= a->mask_dim && dim < a->mask_dim + a->mask->rank;
    for (int k = 0; k < a->n; k++)
        if (a->dim[k] == dim)
            return true;
    return false;
}

static bool is_all(const dp_tensor *index) {
    return index->rank == 1 && index->dims[0] == 0;
}

/* A mask in the list, all others of which must mean "all of the dim". Its places are one dim, of unknown size: -1. */
static dp_status measure_mask(int place, advanced *a) {
    const dp_tensor *t = a->self->as.tensor, *mask = a->list->as.tensors[place];
    char own[160], wanted[160];
    for (int i = 0; i < (int)a->list->count; i++)
        if (i != place && !is_all(a->list->as.tensors[i]))
            return dp_fail(DP_ERR_UNSUPPORTED,
                           "%s has a mask and other tensors: give indices instead (NonZero finds them)", a->list->name);
    if (mask->rank < 1 || place + mask->rank > t->rank ||
        memcmp(mask->dims, t->dims + place, (size_t)mask->rank * sizeof mask->dims[0]) != 0)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s[%d] is a mask of shape %s, which is not that of %s, %s, from dimension %d on", a->list->name,
                       place, dp_dims_describe(mask->dims, mask->rank, own, sizeof own), a->self->name,
                       dp_dims_describe(t->dims, t->rank, wanted, sizeof wanted), place);
    a->mask = mask;
    a->mask_dim = a->front = place;
    a->mask_slot = a->list->slot + place;
    for (int d = 0; d < t->rank; d++)
        if (d == place)
            a->dims[a->rank++] = -1;
        else if (!is_indexed(a, d))
            a->dims[a->rank++] = t->dims[d];
    return DP_OK;
}

static dp_status measure(const dp_arg *self, const dp_arg *list, advanced *a) {
    const dp_tensor *t = self->as.tensor;
    const char *names[DP_TENSOR_DIMS];
    *a = (advanced){.self = self, .list = list};
    for (int i = 0; i < (int)list->count; i++)
        if (list->as.tensors[i]->element == DP_EL_BOOL && !is_all(list->as.tensors[i]))
            return measure_mask(i, a);
    if (list->count > t->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld tensors, but %s has %d dimensions", list->name,
                       (long long)list->count, self->name, t->rank);
    bool adjacent = true;
    for (int d = 0; d < (int)list->count; d++) {
        const dp_tensor *index = list->as.tensors[d];
        if (is_all(index) && t->dims[d] != 0) /* stands for "all of the dim" */
            continue;
        if (index->element != DP_I64 && index->element != DP_I32)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] has elements of type %s, but must have one of: i32, i64, bool",
                           list->name, d, dp_element_name(index->element));
        adjacent = adjacent && (a->n == 0 || a->dim[a->n - 1] == d - 1);
        names[a->n] = list->name;
        a->index[a->n] = index;
        a->dim[a->n++] = d;
    }
    dp_status status = dp_broadcast(a->index, names, a->n, a->broadcast, &a->broadcast_rank);
    if (status != DP_OK)
        return status;
    a->front = a->n && adjacent ? a->dim[0] : 0;
    for (int d = 0; d < t->rank; d++) {
        if (a->n && d == (adjacent ? a->front : 0))
            for (int b = 0; b < a->broadcast_rank; b++)
                a->dims[a->rank++] = a->broadcast[b];
        if (!is_indexed(a, d))
            a->dims[a->rank++] = t->dims[d];
    }
    if (a->rank > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the result would have %d dimensions, but at most %d are possible",
                       list->name, a->rank, DP_TENSOR_DIMS);
    return DP_OK;
}

static void build_mask(const advanced *a, const int64_t *other_strides, dp_places *s) {
    static const int64_t one = 1, none = 0;
    dp_loop_begin(&s->places, &one, 1); /* the run finds how many */
    dp_loop_add_strides(&s->places, other_strides + a->front);
    dp_loop_add_strides(&s->places, &none);
    s->masked = true;
    s->mask = a->mask_slot;
    s->wanted = a->dims[a->front];
    dp_loop_begin(&s->in_mask, a->mask->dims, a->mask->rank);
    dp_loop_add_strides(&s->in_mask, a->mask->strides);
    dp_loop_add_strides(&s->in_mask, a->self->as.tensor->strides + a->mask_dim);
    dp_loop_merge(&s->in_mask, false);
}

/* other_strides: in the result's dims. */
static void build_advanced(const advanced *a, int first_slot, const int64_t *other_strides, dp_places *s) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    const dp_tensor *self = a->self->as.tensor;
    int64_t dims[DP_TENSOR_DIMS] = {0}, own[DP_TENSOR_DIMS], other[DP_TENSOR_DIMS];
    int n = 0;
    for (int d = 0, at = 0; d < self->rank; d++) {
        if (at == a->front && (a->n || a->mask))
            at += a->mask ? 1 : a->broadcast_rank;
        if (is_indexed(a, d))
            continue;
        dims[n] = self->dims[d];
        own[n] = self->strides[d];
        other[n++] = other_strides[at++];
    }
    dp_loop_begin(&s->slice, dims, n);
    dp_loop_add_strides(&s->slice, n ? own : none);
    dp_loop_add_strides(&s->slice, n ? other : none);
    dp_loop_merge(&s->slice, true);
    if (a->mask) {
        build_mask(a, other_strides, s);
        return;
    }
    dp_loop_begin(&s->places, a->broadcast, a->broadcast_rank);
    dp_loop_add_strides(&s->places, other_strides + a->front);
    dp_loop_add_strides(&s->places, none);
    dp_loop_merge(&s->places, false);
    s->n_indices = a->n;
    for (int k = 0; k < a->n; k++) {
        dp_indices *to = &s->indices[k];
        to->slot = first_slot + a->dim[k];
        to->size = self->dims[a->dim[k]];
        to->load = dp_elementwise_current()->load[a->index[k]->element][DP_COMPUTE_I64];
        dp_loop_begin(&to->loop, a->broadcast, a->broadcast_rank);
        dp_loop_add(&to->loop, a->index[k]);
        dp_loop_merge(&to->loop, false);
        s->stride[k] = self->strides[a->dim[k]];
    }
}

static dp_status index_read(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *list = &call->in[1], *out = &call->out[0];
    advanced a;
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(in->as.tensor->element));
    if (status == DP_OK)
        status = measure(in, list, &a);
    if (status == DP_OK && a.mask && out->as.tensor->rank > a.front) /* whether it is right, the run will see */
        a.dims[a.front] = out->as.tensor->dims[a.front];
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, a.dims, a.rank, "that of self[indices]");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_places *s;
    if (status == DP_OK)
        status = dp_places_new(call, in, out, out_plan, &s);
    if (status == DP_OK)
        build_advanced(&a, list->slot, out->as.tensor->strides, s);
    return status;
}

static dp_status index_put(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *list = &call->in[1], *values = &call->in[2];
    const dp_tensor *v = values->as.tensor;
    advanced a;
    int64_t strides[DP_TENSOR_DIMS] = {0};
    dp_status status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(values, DP_EL_BIT(self->as.tensor->element));
    if (status == DP_OK)
        status = dp_places_expect(self);
    if (status == DP_OK)
        status = measure(self, list, &a);
    if (status != DP_OK)
        return status;
    int shift = a.rank - v->rank;
    if (a.mask && shift >= 0 && a.front >= shift && v->dims[a.front - shift] != 1)
        a.dims[a.front] = v->dims[a.front - shift];
    for (int d = 0; d < v->rank; d++) {
        if (shift < 0 || (v->dims[d] != 1 && v->dims[d] != a.dims[d + shift]))
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, which cannot be broadcast to self[%s]",
                           values->name, d, (long long)v->dims[d], list->name);
        strides[d + shift] = v->dims[d] == 1 ? 0 : v->strides[d];
    }
    dp_places *s;
    status = dp_places_new(call, self, values, out_plan, &s);
    if (status != DP_OK)
        return status;
    build_advanced(&a, list->slot, strides, s);
    bool add = dp_arg_integer(&call->in[3], 0) != 0;
    return dp_places_write(self, add ? DP_UPDATE_ADD : DP_UPDATE_SET, out_plan);
}

/* take and put: self is one sequence. */
static dp_status flat(const dp_operator_call *call, const dp_arg *other, const dp_update *update, dp_plan **out_plan) {
    static const int64_t none[DP_TENSOR_DIMS] = {0}, one = 1;
    const dp_arg *self = &call->in[0], *index = &call->in[1];
    const dp_tensor *at = index->as.tensor, *t = other->as.tensor;
    dp_status status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(index, DP_INDEX_TYPES);
    if (status == DP_OK)
        status = dp_element_expect(other, DP_EL_BIT(self->as.tensor->element));
    if (status == DP_OK && !update)
        status = dp_shape_expect(t, other->name, at->dims, at->rank, "the index'");
    if (status == DP_OK && dp_tensor_count(t) != dp_tensor_count(at))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have as many as %s: %lld", other->name,
                         (long long)dp_tensor_count(t), index->name, (long long)dp_tensor_count(at));
    if (status == DP_OK)
        status = dp_places_expect(update ? self : other);
    dp_places *s;
    if (status == DP_OK)
        status = dp_places_new(call, self, other, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->flat = true;
    s->n_indices = 1;
    s->indices[0] = dp_indices_of(index, dp_tensor_count(self->as.tensor));
    dp_loop_begin(&s->whole, self->as.tensor->dims, self->as.tensor->rank);
    dp_loop_add(&s->whole, self->as.tensor);
    dp_loop_merge(&s->whole, false);
    dp_loop_begin(&s->places, t->dims, t->rank);
    dp_loop_add(&s->places, t);
    dp_loop_add_strides(&s->places, none);
    dp_loop_merge(&s->places, false);
    dp_loop_begin(&s->slice, &one, 1);
    dp_loop_add_strides(&s->slice, none);
    dp_loop_add_strides(&s->slice, none);
    return update ? dp_places_write(self, *update, out_plan) : DP_OK;
}

static dp_status take(const dp_operator_call *call, dp_plan **out_plan) {
    return flat(call, &call->out[0], NULL, out_plan);
}

static dp_status put(const dp_operator_call *call, dp_plan **out_plan) {
    dp_update update = dp_arg_integer(&call->in[3], 0) != 0 ? DP_UPDATE_ADD : DP_UPDATE_SET;
    return flat(call, &call->in[2], &update, out_plan);
}

/*
 * Coordinates in the last dim of `indices` choose slices of self; the first `batch` dims of both go together. Writes
 * the dims of all slices: those of indices but the last, then self's that are not chosen in.
 */
static dp_status nd_dims(const dp_operator_call *call, int64_t batch, int64_t *dims, int *out_rank) {
    const dp_arg *self = &call->in[0], *indices = &call->in[1];
    const dp_tensor *t = self->as.tensor, *at = indices->as.tensor;
    int outer = at->rank - 1, rank = 0;
    dp_status status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(indices, DP_INDEX_TYPES);
    if (status != DP_OK)
        return status;
    if (at->rank == 0 || batch < 0 || batch > outer || batch >= t->rank)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has %d dimensions, but must have at least 1, behind %lld that go with %s's %d",
                       indices->name, at->rank, (long long)batch, self->name, t->rank);
    if (at->dims[outer] < 1 || at->dims[outer] > t->rank - batch)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the last dimension holds coordinates in %s and must be 1 to %d",
                       indices->name, self->name, t->rank - (int)batch);
    for (int d = 0; d < outer; d++) {
        if (d < batch && at->dims[d] != t->dims[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be that of %s: %lld", indices->name, d,
                           (long long)at->dims[d], self->name, (long long)t->dims[d]);
        dims[rank++] = at->dims[d];
    }
    for (int d = (int)(batch + at->dims[outer]); d < t->rank; d++)
        dims[rank++] = t->dims[d];
    *out_rank = rank;
    return DP_OK;
}

/* `self` is read or written slice by slice, `other` has the slices in order. */
static dp_status nd_plan(const dp_operator_call *call, const dp_arg *self, const dp_arg *other, int batch,
                         dp_plan **out_plan, dp_places **out_places) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    const dp_arg *indices = &call->in[1];
    const dp_tensor *t = self->as.tensor, *at = indices->as.tensor, *u = other->as.tensor;
    int outer = at->rank - 1, n = (int)at->dims[outer], first = batch + n;
    int64_t begins[DP_TENSOR_DIMS] = {0};
    dp_places *s;
    dp_status status = dp_places_new(call, self, other, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->n_indices = n;
    for (int k = 0; k < n; k++) {
        dp_indices *to = &s->indices[k];
        to->slot = indices->slot;
        to->begin = k * at->strides[outer];
        to->size = t->dims[batch + k];
        to->load = dp_elementwise_current()->load[at->element][DP_COMPUTE_I64];
        dp_loop_begin(&to->loop, at->dims, outer);
        dp_loop_add_strides(&to->loop, at->strides);
        dp_loop_merge(&to->loop, false);
        s->stride[k] = t->strides[batch + k];
    }
    for (int d = 0; d < batch; d++)
        begins[d] = t->strides[d];
    dp_loop_begin(&s->places, at->dims, outer);
    dp_loop_add_strides(&s->places, u->strides);
    dp_loop_add_strides(&s->places, begins);
    dp_loop_merge(&s->places, false);
    dp_loop_begin(&s->slice, t->dims + first, t->rank - first);
    dp_loop_add_strides(&s->slice, first < t->rank ? t->strides + first : none);
    dp_loop_add_strides(&s->slice, first < t->rank ? u->strides + outer : none);
    dp_loop_merge(&s->slice, true);
    *out_places = s;
    return DP_OK;
}

static dp_status nd_write(const dp_operator_call *call, dp_update update, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *updates = &call->in[2], *out = &call->out[0];
    int64_t dims[2 * DP_TENSOR_DIMS];
    int rank = 0;
    dp_status status = nd_dims(call, 0, dims, &rank);
    if (status == DP_OK)
        status = dp_scatter_expect(self, out);
    if (status == DP_OK)
        status = dp_element_expect(updates, DP_EL_BIT(self->as.tensor->element));
    if (status == DP_OK)
        status = dp_shape_expect(updates->as.tensor, updates->name, dims, rank,
                                 "the indices' but for the last, then self's others");
    dp_places *s;
    if (status == DP_OK)
        status = nd_plan(call, out, updates, 0, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->from = self->slot;
    return dp_places_write(out, update, out_plan);
}

static dp_status nd_update(const dp_operator_call *call, dp_plan **out_plan) {
    return nd_write(call, DP_UPDATE_SET, out_plan);
}

static dp_status nd_scatter(const dp_operator_call *call, dp_plan **out_plan) {
    dp_update update;
    dp_status status = dp_scatter_reduction(&call->in[3], &update);
    return status == DP_OK ? nd_write(call, update, out_plan) : status;
}

static dp_status nd_gather(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *out = &call->out[0];
    int64_t dims[2 * DP_TENSOR_DIMS], batch = dp_arg_integer(&call->in[2], 0);
    int rank = 0;
    dp_status status = nd_dims(call, batch, dims, &rank);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(self->as.tensor->element));
    if (status == DP_OK)
        status =
            dp_shape_expect(out->as.tensor, out->name, dims, rank, "the indices' but for the last, then the slice's");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_places *s;
    return status == DP_OK ? nd_plan(call, self, out, (int)batch, out_plan, &s) : status;
}

#define EXPORT(function, prepare)                                                                                      \
    extern const dp_function dp_scatter_##function;                                                                    \
    const dp_function dp_scatter_##function = {#function, prepare, NULL, 0, 0};
EXPORT(index, index_read)
EXPORT(index_put, index_put)
EXPORT(take, take)
EXPORT(put, put)
EXPORT(nd_update, nd_update)
EXPORT(nd_scatter, nd_scatter)
EXPORT(nd_gather, nd_gather)
