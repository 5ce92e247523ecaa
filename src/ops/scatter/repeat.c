/*
 * repeat.c - slices repeated as a tensor says. Mappings:
 *   repeat_each(self, repeats, dim) -> out   slice k along dim stands repeats[k] times; one element, or a number,
 * serves all slices. dim absent: self as one sequence repeat_index(repeats) -> out             k stands repeats[k]
 * times The sum of repeats must be out's length; it is checked before anything is written.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/scatter/scatter.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct state {
    dp_loop slice;        /* views 0 out, 1 self */
    dp_loop whole;        /* dim absent: self as a sequence */
    dp_loop repeats;      /* view 0 */
    int self, out, times; /* slots; self -1: the indices themselves; times -1: the number */
    int64_t number;
    const char *name; /* of the repeats */
    bool flat, single;
    int64_t count, length, stride, out_stride; /* slices of self and of out, along dim */
    dp_convert_fn load, store;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    const int64_t *from; /* the slice of self for each of out */
} job;

static void copy_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    int64_t width = (int64_t)dp_element_bytes(j->plan->tensors[s->out].view.element);
    char *out = dp_plan_data(j->plan, s->out);
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (size_t k = begin; k < end; k++) {
        char *to = out + (int64_t)k * s->out_stride * width;
        if (s->self < 0) {
            s->store(to, &j->from[k], 1);
            continue;
        }
        int64_t offset = s->flat ? dp_loop_offset(&s->whole, 0, j->from[k]) : j->from[k] * s->stride;
        const char *from = (const char *)dp_plan_data(j->plan, s->self) + offset * width;
        for (int64_t at = 0, n; at < s->slice.count; at += n) {
            n = s->slice.count - at < DP_TILE ? s->slice.count - at : DP_TILE;
            dp_loop_scatter(&s->slice, 0, to, (size_t)width, at, (size_t)n,
                            dp_loop_gather(&s->slice, 1, from, (size_t)width, at, (size_t)n, &buffer));
        }
    }
}

static int64_t times_of(const dp_plan *plan, const state *s, int64_t k) {
    int64_t times;
    if (s->times < 0)
        return s->number;
    const dp_tensor *t = &plan->tensors[s->times].view;
    s->load(&times,
            (char *)dp_tensor_data(t) +
                dp_loop_offset(&s->repeats, 0, s->single ? 0 : k) * (int64_t)dp_element_bytes(t->element),
            1);
    return times;
}

/* Which slice of self each slice of out is. */
static dp_status find_sources(const dp_plan *plan, const state *s, int64_t *from) {
    int64_t at = 0;
    for (int64_t k = 0; k < s->count; k++) {
        int64_t times = times_of(plan, s, k);
        if (times < 0)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be at least 0", s->name, (long long)k,
                           (long long)times);
        if (times > s->length - at)
            return dp_fail(DP_ERR_ARGUMENT, "%s make more than the %lld places of %s", s->name, (long long)s->length,
                           plan->tensors[s->out].name);
        for (int64_t i = 0; i < times; i++)
            from[at++] = k;
    }
    if (at < s->length)
        return dp_fail(DP_ERR_ARGUMENT, "%s make %lld, but %s has %lld places", s->name, (long long)at,
                       plan->tensors[s->out].name, (long long)s->length);
    return DP_OK;
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    int64_t *from = dp_alloc(DP_MEM_RUNTIME, (size_t)(j.s->length + 1) * sizeof *from);
    if (!from)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld places: free some", (long long)j.s->length);
    dp_status status = find_sources(plan, j.s, from);
    j.from = from;
    if (status == DP_OK && j.s->length && j.s->slice.count)
        dp_pool_for((size_t)j.s->length, (size_t)(GRAIN / (j.s->slice.count + 1) + 1), copy_range, &j);
    dp_free(from);
    return status;
}

static dp_status take_repeats(const dp_arg *repeats, int64_t count, state *s) {
    s->count = count;
    s->name = repeats->name;
    s->times = -1;
    if (repeats->kind != DP_ARG_TENSOR) {
        s->number = dp_arg_integer(repeats, 0);
        return DP_OK;
    }
    const dp_tensor *t = repeats->as.tensor;
    int64_t have = dp_tensor_count(t);
    dp_status status = dp_element_expect(repeats, DP_INDEX_TYPES);
    if (status == DP_OK && (t->rank > 1 || (have != count && have != 1)))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements in %d dimensions, but must have 1 or %lld in one",
                         repeats->name, (long long)have, t->rank, (long long)count);
    s->times = repeats->slot;
    s->single = have == 1 && count != 1;
    s->load = dp_elementwise_current()->load[t->element][DP_COMPUTE_I64];
    dp_loop_begin(&s->repeats, t->dims, t->rank);
    dp_loop_add(&s->repeats, t);
    return status;
}

static dp_status finish(const dp_operator_call *call, const state *s, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    *(state *)dp_plan_state(plan) = *s;
    plan->path = "slices";
    *out_plan = plan;
    return DP_OK;
}

static dp_status repeat_each(const dp_operator_call *call, dp_plan **out_plan) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    const dp_arg *in = &call->in[0], *dim_arg = &call->in[2], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    state s = {.self = in->slot, .out = out->slot, .flat = dim_arg->kind == DP_ARG_ABSENT};
    int64_t dims[DP_TENSOR_DIMS] = {0}, own[DP_TENSOR_DIMS] = {0}, other[DP_TENSOR_DIMS] = {0};
    int dim = 0, n = 0;
    dp_status status = s.flat ? DP_OK : dp_dim_check(dp_arg_integer(dim_arg, 0), self, dim_arg->name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(self->element));
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK && !s.flat && !self->rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions to repeat along", in->name);
    if (status == DP_OK && (s.flat ? to->rank != 1 : to->rank != self->rank))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have %d", out->name, to->rank,
                         s.flat ? 1 : self->rank);
    if (status != DP_OK)
        return status;
    memcpy(dims, self->dims, sizeof dims);
    if (!s.flat) {
        dims[dim] = to->dims[dim];
        status = dp_shape_expect(to, out->name, dims, self->rank, "self's but for the repeated dimension");
        for (int d = 0; d < self->rank; d++) {
            if (d == dim)
                continue;
            dims[n] = self->dims[d];
            own[n] = to->strides[d];
            other[n++] = self->strides[d];
        }
    }
    if (status == DP_OK)
        status = take_repeats(&call->in[1], s.flat ? dp_tensor_count(self) : self->dims[dim], &s);
    if (status != DP_OK)
        return status;
    s.length = to->dims[s.flat ? 0 : dim];
    s.out_stride = to->strides[s.flat ? 0 : dim];
    s.stride = s.flat ? 0 : self->strides[dim];
    dp_loop_begin(&s.slice, dims, n);
    dp_loop_add_strides(&s.slice, n ? own : none);
    dp_loop_add_strides(&s.slice, n ? other : none);
    dp_loop_merge(&s.slice, true);
    dp_loop_begin(&s.whole, self->dims, self->rank);
    dp_loop_add(&s.whole, self);
    dp_loop_merge(&s.whole, false);
    return finish(call, &s, out_plan);
}

static dp_status repeat_index(const dp_operator_call *call, dp_plan **out_plan) {
    static const int64_t one = 1;
    const dp_arg *repeats = &call->in[0], *out = &call->out[0];
    state s = {.self = -1, .out = out->slot};
    dp_status status = dp_element_expect(out, DP_INDEX_TYPES);
    if (status == DP_OK && out->as.tensor->rank != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", out->name, out->as.tensor->rank);
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = take_repeats(repeats, dp_tensor_count(repeats->as.tensor), &s);
    if (status != DP_OK)
        return status;
    s.length = out->as.tensor->dims[0];
    s.out_stride = out->as.tensor->strides[0];
    s.store = dp_elementwise_current()->store[out->as.tensor->element][DP_COMPUTE_I64];
    dp_loop_begin(&s.slice, &one, 1);
    return finish(call, &s, out_plan);
}

extern const dp_function dp_scatter_repeat_each, dp_scatter_repeat_index;
const dp_function dp_scatter_repeat_each = {"repeat_each", repeat_each, NULL, 4, 0};
const dp_function dp_scatter_repeat_index = {"repeat_index", repeat_index, NULL, 0, 0};
