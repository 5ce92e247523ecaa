/*
 * pad_backward.c - gradients of padding: every element of grad is added to the element of the input that it was a copy
 * of. reflect_backward(grad, self, padding) -> out       replicate_backward(grad, self, padding) -> out padding: before
 * and after, of the last dim first. Summed in double, in the order of grad, rounded once.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { PADDED = 3 };

typedef struct state {
    dp_loop outer;     /* the dims in front; views 0 out, 1 grad */
    dp_loop out, grad; /* the padded dims of each */
    int padded, out_slot, grad_slot;
    int64_t before[PADDED], to[PADDED], from[PADDED]; /* sizes of out's and grad's padded dims, outermost first */
    bool reflect;
    dp_convert_fn load, store;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool out_of_memory;
} job;

/* The element of a dim of n that place i of the padded dim is a copy of. */
static int64_t source_of(const state *s, int d, int64_t i) {
    int64_t n = s->to[d];
    i -= s->before[d];
    if (s->reflect)
        return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static int64_t place_of(const state *s, int64_t index) {
    int64_t place = 0, step = 1;
    for (int d = s->padded - 1; d >= 0; d--) {
        place += source_of(s, d, index % s->from[d]) * step;
        step *= s->to[d];
        index /= s->from[d];
    }
    return place;
}

static void run_one(const job *j, int64_t which, double *sums) {
    const state *s = j->s;
    int64_t out_width = (int64_t)dp_element_bytes(j->plan->tensors[s->out_slot].view.element),
            grad_width = (int64_t)dp_element_bytes(j->plan->tensors[s->grad_slot].view.element);
    char *to = (char *)dp_plan_data(j->plan, s->out_slot) + dp_loop_offset(&s->outer, 0, which) * out_width;
    const char *from = (char *)dp_plan_data(j->plan, s->grad_slot) + dp_loop_offset(&s->outer, 1, which) * grad_width;
    double x[DP_TILE], raw[DP_TILE];
    memset(sums, 0, (size_t)s->out.count * sizeof *sums);
    for (int64_t at = 0, n; at < s->grad.count; at += n) {
        n = s->grad.count - at < DP_TILE ? s->grad.count - at : DP_TILE;
        s->load(x, dp_loop_gather(&s->grad, 0, from, (size_t)grad_width, at, (size_t)n, raw), (size_t)n);
        for (int64_t i = 0; i < n; i++)
            sums[place_of(s, at + i)] += x[i];
    }
    for (int64_t at = 0, n; at < s->out.count; at += n) {
        n = s->out.count - at < DP_TILE ? s->out.count - at : DP_TILE;
        s->store(raw, sums + at, (size_t)n);
        dp_loop_scatter(&s->out, 0, to, (size_t)out_width, at, (size_t)n, raw);
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    double *sums = dp_alloc(DP_MEM_RUNTIME, (size_t)j->s->out.count * sizeof *sums);
    if (!sums) {
        atomic_store(&j->out_of_memory, true);
        return;
    }
    for (size_t which = begin; which < end; which++)
        run_one(j, (int64_t)which, sums);
    dp_free(sums);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    if (j.s->outer.count && j.s->out.count)
        dp_pool_for((size_t)j.s->outer.count, (size_t)(8192 / (j.s->grad.count + 1) + 1), run_range, &j);
    if (atomic_load(&j.out_of_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld sums: free some", (long long)j.s->out.count);
    return DP_OK;
}

/* Sizes of grad's dims; refuses pads that the function cannot have made. */
static dp_status measure(const dp_operator_call *call, int padded, bool reflect, int64_t *dims) {
    const dp_arg *padding = &call->in[2];
    const dp_tensor *self = call->in[1].as.tensor;
    memcpy(dims, self->dims, sizeof self->dims);
    for (int k = 0; k < padded; k++) {
        int d = self->rank - 1 - k;
        int64_t before = padding->as.integers[2 * k], after = padding->as.integers[2 * k + 1], n = self->dims[d];
        int64_t most = reflect ? n - 1 : INT32_MAX;
        if (before < 0 || after < 0 || before > most || after > most || n < 1)
            return dp_fail(DP_ERR_ARGUMENT, "%s: %lld and %lld for a dimension of %lld, but must be 0 to %lld",
                           padding->name, (long long)before, (long long)after, (long long)n, (long long)most);
        dims[d] = n + before + after;
    }
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, bool reflect, dp_plan **out_plan) {
    const dp_arg *grad = &call->in[0], *self = &call->in[1], *padding = &call->in[2], *out = &call->out[0];
    const dp_tensor *t = self->as.tensor, *g = grad->as.tensor, *to = out->as.tensor;
    int64_t dims[DP_TENSOR_DIMS];
    int padded = (int)(padding->count / 2);
    if (padding->count % 2 || padding->count < 2 || padding->count > 2 * PADDED || padded > t->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have two for each of 1 to 3 dimensions",
                       padding->name, (long long)padding->count);
    dp_status status = measure(call, padded, reflect, dims);
    for (int k = 0; k < 2 && status == DP_OK; k++)
        status = dp_element_expect(k ? out : grad, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(g, grad->name, dims, t->rank, "the padded input's");
    if (status == DP_OK)
        status = dp_shape_expect(to, out->name, t->dims, t->rank, "the input's");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    int outer = t->rank - padded;
    dp_loop_begin(&s->outer, t->dims, outer);
    dp_loop_add_strides(&s->outer, to->strides);
    dp_loop_add_strides(&s->outer, g->strides);
    dp_loop_begin(&s->out, to->dims + outer, padded);
    dp_loop_add_strides(&s->out, to->strides + outer);
    dp_loop_begin(&s->grad, g->dims + outer, padded);
    dp_loop_add_strides(&s->grad, g->strides + outer);
    for (int d = 0; d < padded; d++) {
        s->before[d] = padding->as.integers[2 * (padded - 1 - d)];
        s->to[d] = to->dims[outer + d];
        s->from[d] = g->dims[outer + d];
    }
    s->padded = padded;
    s->reflect = reflect;
    s->out_slot = out->slot;
    s->grad_slot = grad->slot;
    s->load = dp_elementwise_current()->load[g->element][DP_COMPUTE_F64];
    s->store = dp_elementwise_current()->store[to->element][DP_COMPUTE_F64];
    plan->path = "f64 sums";
    *out_plan = plan;
    return DP_OK;
}

static dp_status reflect_backward(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, true, out_plan);
}
static dp_status replicate_backward(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, false, out_plan);
}

extern const dp_function dp_move_reflect_backward, dp_move_replicate_backward;
const dp_function dp_move_reflect_backward = {"reflect_backward", reflect_backward, NULL, 0, 0};
const dp_function dp_move_replicate_backward = {"replicate_backward", replicate_backward, NULL, 0, 0};
