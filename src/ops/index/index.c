/*
 * index.c - elements chosen by indices in device memory; negative ones count from the end, others outside fail the
 * stream with a sentence. select(self, dim, index) -> out          out's dims: self's with dim replaced by index's dims
 *   gather(self, dim, index) -> out          out[i][j] = self[index[i][j]][j] for dim 0
 *   copy(self, dim, index, source) -> self   self's slice index[k] along dim = source's slice k; later ones win
 *   fill(self, dim, index list, value) -> out          which may be self
 */
#include <stdatomic.h>
#include <string.h>

#include "math/math.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/scatter/scatter.h"
#include "runtime/pool.h"

enum { GRAIN = 16384, LIST_MAX = 1 << 20, PAST_BYTES = 512 /* shorter slices are all ends */, PLACES_AHEAD = 3 };

typedef struct state {
    dp_loop slice;        /* select, copy, fill: all dims but dim; views 0 written, 1 read */
    dp_loop places;       /* index's dims; view 0: index, view 1: where its slice begins in the other tensor */
    dp_loop elements;     /* gather: views 0 out, 1 index, 2 self without dim */
    int64_t size, stride; /* of the indexed dim */
    int to, from, index;
    dp_convert_fn load, store_fill;
    const char *index_name;
    int64_t list_count;
    _Alignas(16) uint8_t fill[16];
    int64_t list[];
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    int64_t place; /* the one that is split over its slice; -1: places are split */
    bool reverse;  /* copy: written by index */
    _Atomic int64_t bad_place, bad_value;
} job;

static bool resolve(job *j, int64_t place, int64_t value, int64_t *out_index) {
    int64_t size = j->s->size;
    *out_index = value < 0 ? value + size : value;
    if (*out_index >= 0 && *out_index < size)
        return true;
    atomic_store(&j->bad_value, value);
    atomic_store(&j->bad_place, place);
    return false;
}

static bool index_at(job *j, int64_t place, int64_t *out_index) {
    const state *s = j->s;
    int element = j->plan->tensors[s->index].view.element;
    const char *data = (const char *)dp_plan_data(j->plan, s->index) +
                       dp_loop_offset(&s->places, 0, place) * (int64_t)dp_element_bytes(element);
    int64_t value;
    s->load(&value, data, 1);
    return resolve(j, place, value, out_index);
}

static dp_status verdict(job *j) {
    int64_t place = atomic_load(&j->bad_place);
    if (place < 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be %lld to %lld", j->s->index_name,
                   (long long)place, (long long)atomic_load(&j->bad_value), (long long)-j->s->size,
                   (long long)j->s->size - 1);
}

/* Where the slice of a later place is read from; NULL when there is none, or its index is out of bounds. */
static const char *slice_ahead(const job *j, size_t place, size_t end) {
    const state *s = j->s;
    const int element = j->plan->tensors[s->index].view.element;
    if (j->reverse || place >= end)
        return NULL;
    int64_t value;
    s->load(&value, (const char *)dp_plan_data(j->plan, s->index) + dp_loop_offset(&s->places, 0, (int64_t)place) * (int64_t)dp_element_bytes(element), 1);
    value = value < 0 ? value + s->size : value;
    if (value < 0 || value >= s->size)
        return NULL;
    return (const char *)dp_plan_data(j->plan, s->from) + value * s->stride * (int64_t)dp_element_bytes(j->plan->tensors[s->from].view.element);
}

static void copy_slice(const job *j, int64_t index, int64_t place, size_t begin, size_t end, const char *ahead) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->to].view.element);
    int64_t own = index * s->stride, other = dp_loop_offset(&s->places, 1, place);
    char *to = (char *)dp_plan_data(j->plan, s->to) + (j->reverse ? own : other) * (int64_t)width;
    const char *from = (const char *)dp_plan_data(j->plan, s->from) + (j->reverse ? other : own) * (int64_t)width;
    if (s->slice.rank == 1 && s->slice.strides[0][0] == 1 && s->slice.strides[1][0] == 1) {
        const size_t bytes = (end - begin) * width;
        if (bytes >= PAST_BYTES && (size_t)s->places.count * (size_t)s->slice.count * width >= DP_STREAM_BYTES)
            dp_math_current()->copy_stream_ahead(to + begin * width, from + begin * width, bytes, ahead, ahead ? bytes : 0);
        else
            memcpy(to + begin * width, from + begin * width, bytes);
        return;
    }
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_loop_scatter(&s->slice, 0, to, width, (int64_t)at, n,
                        dp_loop_gather(&s->slice, 1, from, width, (int64_t)at, n, &buffer));
    }
}

static void select_range(void *context, size_t begin, size_t end) {
    job *j = context;
    int64_t index;
    if (j->place >= 0) {
        if (index_at(j, j->place, &index))
            copy_slice(j, index, j->place, begin, end, NULL);
    } else {
        for (size_t place = begin; place < end; place++)
            if (index_at(j, (int64_t)place, &index))
                copy_slice(j, index, (int64_t)place, 0, (size_t)j->s->slice.count, slice_ahead(j, place + PLACES_AHEAD, end));
    }
    dp_math_current()->stream_fence();
}

static dp_status run_places(dp_plan *plan, bool reverse) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .place = -1, .reverse = reverse, .bad_place = -1};
    int64_t slice = j.s->slice.count, places = j.s->places.count;
    if (!slice || !places)
        return DP_OK;
    /* slices that are written by index may meet: they go one after the other */
    if (!reverse && places >= 4 * (int64_t)dp_pool_width()) {
        dp_pool_for((size_t)places, (size_t)(slice < GRAIN ? GRAIN / slice : 1), select_range, &j);
        return verdict(&j);
    }
    for (j.place = 0; j.place < places; j.place++)
        dp_pool_for((size_t)slice, GRAIN, select_range, &j);
    return verdict(&j);
}

static dp_status run_select(dp_plan *plan) {
    return run_places(plan, false);
}
static dp_status run_copy(dp_plan *plan) {
    return run_places(plan, true);
}

static void gather_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->to].view.element);
    int index_element = j->plan->tensors[s->index].view.element;
    char *to = dp_plan_data(j->plan, s->to);
    const char *from = dp_plan_data(j->plan, s->from), *indices = dp_plan_data(j->plan, s->index);
    for (size_t i = begin; i < end; i++) {
        int64_t value, index;
        s->load(&value,
                indices + dp_loop_offset(&s->elements, 1, (int64_t)i) * (int64_t)dp_element_bytes(index_element), 1);
        if (resolve(j, (int64_t)i, value, &index))
            memcpy(to + dp_loop_offset(&s->elements, 0, (int64_t)i) * (int64_t)width,
                   from + (dp_loop_offset(&s->elements, 2, (int64_t)i) + index * s->stride) * (int64_t)width, width);
    }
}

static dp_status run_gather(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .bad_place = -1};
    if (j.s->elements.count)
        dp_pool_for((size_t)j.s->elements.count, GRAIN / 4, gather_range, &j);
    return verdict(&j);
}

static void fill_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->to].view.element);
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (size_t i = 0; i < DP_TILE; i++)
        memcpy(buffer.bytes + i * width, s->fill, width);
    char *to = (char *)dp_plan_data(j->plan, s->to) + s->list[j->place] * s->stride * (int64_t)width;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_loop_scatter(&s->slice, 0, to, width, (int64_t)at, n, &buffer);
    }
}

static dp_status run_fill(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    dp_scatter_begin(plan, j.s->from, j.s->to);
    for (j.place = 0; j.place < j.s->list_count && j.s->slice.count; j.place++)
        dp_pool_for((size_t)j.s->slice.count, GRAIN, fill_range, &j);
    return DP_OK;
}

/* Phase one. */

static const uint32_t index_types = DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32);

static dp_status check_pair(const dp_operator_call *call, const dp_arg *in, const dp_arg *out) {
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK && in->as.tensor->element != out->as.tensor->element)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have those of %s, %s", out->name,
                         dp_element_name(out->as.tensor->element), in->name, dp_element_name(in->as.tensor->element));
    return status == DP_OK ? dp_places_expect(out) : status;
}

static void without(const int64_t *from, int rank, int dim, int64_t *to) {
    for (int d = 0, n = 0; d < rank; d++)
        if (d != dim)
            to[n++] = from[d];
}

static dp_status new_plan(const dp_operator_call *call, dp_status (*run)(dp_plan *), const dp_tensor *self, int dim,
                          int64_t list_count, dp_plan **out_plan, state **out_state) {
    dp_plan *plan = dp_plan_new(call, run, sizeof(state) + (size_t)list_count * sizeof(int64_t));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    s->size = self->rank ? self->dims[dim] : 1;
    s->stride = self->rank ? self->strides[dim] : 0;
    plan->path = "slices";
    *out_plan = plan;
    *out_state = s;
    return DP_OK;
}

static void take_index(state *s, const dp_arg *index) {
    s->index = index->slot;
    s->index_name = index->name;
    s->load = dp_elementwise_current()->load[index->as.tensor->element][DP_COMPUTE_I64];
}

static dp_status select(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *index = &call->in[2], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *at = index->as.tensor, *to = out->as.tensor;
    int64_t dims[2 * DP_TENSOR_DIMS], a[DP_TENSOR_DIMS] = {0}, b[DP_TENSOR_DIMS] = {0}, c[DP_TENSOR_DIMS] = {0};
    int dim = 0, n = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(index, index_types);
    if (status == DP_OK)
        status = check_pair(call, in, out);
    if (status != DP_OK)
        return status;
    if (!self->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions to choose from", in->name);
    for (int d = 0; d < dim; d++)
        dims[n++] = self->dims[d];
    for (int d = 0; d < at->rank; d++)
        dims[n++] = at->dims[d];
    for (int d = dim + 1; d < self->rank; d++)
        dims[n++] = self->dims[d];
    status = dp_shape_expect(to, out->name, dims, n, "the input with the dimension replaced by those of the index");
    if (status != DP_OK)
        return status;
    state *s;
    status = new_plan(call, run_select, self, dim, 0, out_plan, &s);
    if (status != DP_OK)
        return status;
    take_index(s, index);
    s->to = out->slot;
    s->from = in->slot;
    without(self->dims, self->rank, dim, a);
    without(self->strides, self->rank, dim, b);
    for (int d = 0, k = 0; d < to->rank; d++)
        if (d < dim || d >= dim + at->rank)
            c[k++] = to->strides[d];
    dp_loop_begin(&s->slice, a, self->rank - 1);
    dp_loop_add_strides(&s->slice, c);
    dp_loop_add_strides(&s->slice, b);
    dp_loop_merge(&s->slice, true);
    int64_t begins[DP_TENSOR_DIMS] = {0};
    for (int d = 0; d < at->rank; d++)
        begins[d] = to->strides[dim + d];
    dp_loop_begin(&s->places, at->dims, at->rank);
    dp_loop_add(&s->places, at);
    dp_loop_add_strides(&s->places, begins);
    return DP_OK;
}

static dp_status gather(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *index = &call->in[2], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *at = index->as.tensor;
    int dim = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(index, index_types);
    if (status == DP_OK)
        status = check_pair(call, in, out);
    if (status == DP_OK && at->rank != self->rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have those of %s: %d", index->name, at->rank,
                         in->name, self->rank);
    for (int d = 0; status == DP_OK && d < self->rank; d++)
        if (d != dim && at->dims[d] > self->dims[d])
            status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at most that of %s: %lld",
                             index->name, d, (long long)at->dims[d], in->name, (long long)self->dims[d]);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, at->dims, at->rank, "the index");
    if (status != DP_OK)
        return status;
    state *s;
    status = new_plan(call, run_gather, self, dim, 0, out_plan, &s);
    if (status != DP_OK)
        return status;
    (*out_plan)->path = "elements";
    take_index(s, index);
    s->to = out->slot;
    s->from = in->slot;
    int64_t strides[DP_TENSOR_DIMS] = {0};
    memcpy(strides, self->strides, sizeof strides);
    strides[dim] = 0;
    dp_loop_begin(&s->elements, at->dims, at->rank);
    dp_loop_add(&s->elements, out->as.tensor);
    dp_loop_add(&s->elements, at);
    dp_loop_add_strides(&s->elements, strides);
    dp_loop_merge(&s->elements, false);
    return DP_OK;
}

static dp_status copy(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *index = &call->in[2], *source = &call->in[3];
    const dp_tensor *self = in->as.tensor, *at = index->as.tensor, *from = source->as.tensor;
    int64_t dims[DP_TENSOR_DIMS], a[DP_TENSOR_DIMS] = {0}, b[DP_TENSOR_DIMS] = {0}, c[DP_TENSOR_DIMS] = {0};
    int dim = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(index, index_types);
    if (status == DP_OK)
        status = check_pair(call, source, &call->out[0]);
    if (status == DP_OK && (at->rank > 1 || !self->rank))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at most 1, and %s at least 1",
                         index->name, at->rank, in->name);
    if (status != DP_OK)
        return status;
    memcpy(dims, self->dims, sizeof dims);
    dims[dim] = dp_tensor_count(at);
    status =
        dp_shape_expect(from, source->name, dims, self->rank, "the input with the number of indices in the dimension");
    if (status != DP_OK)
        return status;
    state *s;
    status = new_plan(call, run_copy, self, dim, 0, out_plan, &s);
    if (status != DP_OK)
        return status;
    take_index(s, index);
    s->to = call->out[0].slot;
    s->from = source->slot;
    without(self->dims, self->rank, dim, a);
    without(self->strides, self->rank, dim, b);
    without(from->strides, self->rank, dim, c);
    dp_loop_begin(&s->slice, a, self->rank - 1);
    dp_loop_add_strides(&s->slice, b);
    dp_loop_add_strides(&s->slice, c);
    dp_loop_merge(&s->slice, true);
    dp_loop_begin(&s->places, at->dims, at->rank);
    dp_loop_add(&s->places, at);
    dp_loop_add_strides(&s->places, &from->strides[dim]);
    return DP_OK;
}

static dp_status fill(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *list = &call->in[2], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    int64_t a[DP_TENSOR_DIMS] = {0}, b[DP_TENSOR_DIMS] = {0};
    int dim = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = check_pair(call, in, out);
    if (status == DP_OK && (!self->rank || list->count > LIST_MAX))
        status = dp_fail(DP_ERR_ARGUMENT,
                         "%s has %lld entries and %s %d dimensions, but must have at most 2^20 and at least 1",
                         list->name, (long long)list->count, in->name, self->rank);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, self->dims, self->rank, "the input");
    if (status != DP_OK)
        return status;
    state *s;
    status = new_plan(call, run_fill, out->as.tensor, dim, list->count, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->list_count = list->count;
    for (int64_t i = 0; i < list->count; i++) {
        int64_t v = list->as.integers[i];
        s->list[i] = v < 0 ? v + s->size : v;
        if (s->list[i] < 0 || s->list[i] >= s->size) {
            int64_t size = s->size;
            dp_plan_free(*out_plan);
            return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] is %lld, but must be %lld to %lld", list->name, (long long)i,
                           (long long)v, (long long)-size, (long long)size - 1);
        }
    }
    const dp_scalar *value = call->in[3].as.scalar;
    bool real = dp_element_is_float(self->element);
    dp_convert_fn store = dp_elementwise_current()->store[self->element][real ? DP_COMPUTE_F64 : DP_COMPUTE_I64];
    if (!store) {
        dp_plan_free(*out_plan);
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has elements of type %s, which is not offered", in->name,
                       dp_element_name(self->element));
    }
    store(s->fill, real ? (const void *)&value->real : (const void *)&value->integer, 1);
    s->to = out->slot;
    s->from = in->slot;
    without(self->dims, self->rank, dim, a);
    without(out->as.tensor->strides, self->rank, dim, b);
    dp_loop_begin(&s->slice, a, self->rank - 1);
    dp_loop_add_strides(&s->slice, b);
    dp_loop_merge(&s->slice, true);
    return DP_OK;
}

#define EXPORT(function)                                                                                               \
    extern const dp_function dp_index_##function;                                                                      \
    const dp_function dp_index_##function = {#function, function, NULL, 0, 0};
EXPORT(select)
EXPORT(gather)
EXPORT(copy)
EXPORT(fill)
