/*
 * glu.c - gated linear units: the input is cut in two halves along a dim; one gates the other, computed in float.
 *   glu(self, dim) -> out                                   first * sigmoid(second)
 *   swiglu(x, dim) -> out                                   silu(first) * second
 *   geglu(self, dim, approximate, activateLeft) -> out, gelu   gelu of the left (else right) half times the other;
 * approximate 0: the tanh form, as ggml passes it; else erf
 */
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 8192 };

typedef struct row {
    dp_elementwise_id activation;
    bool gate_first; /* the activation is of the first half */
    bool has_mode;
} row;

typedef struct state {
    dp_loop loop; /* views 0 out, 1 a half of the input, 2 the activated half */
    dp_elementwise_fn activation, multiply;
    dp_convert_fn load, store, store2;
    int64_t half_offset; /* in elements */
    bool gate_first;
    double mode;
    int out, in, out2;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

static void put(const job *j, int view, int slot, dp_convert_fn store, int64_t at, size_t n, const float *from) {
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[slot].view.element);
    store(raw, from, n);
    dp_loop_scatter(&j->s->loop, view, dp_plan_data(j->plan, slot), width, at, n, raw);
}

static void run_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->in].view.element);
    const char *first = dp_plan_data(j->plan, s->in), *second = first + s->half_offset * (int64_t)width;
    float gate[DP_TILE], other[DP_TILE];
    double raw[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        s->load(gate, dp_loop_gather(&s->loop, 1, s->gate_first ? first : second, width, (int64_t)at, n, raw), n);
        s->load(other, dp_loop_gather(&s->loop, 1, s->gate_first ? second : first, width, (int64_t)at, n, raw), n);
        const double parameters[4] = {s->mode};
        s->activation(gate, gate, gate, gate, parameters, n);
        if (s->out2 >= 0)
            put(j, 2, s->out2, s->store2, (int64_t)at, n, gate);
        s->multiply(other, other, gate, gate, parameters, n);
        put(j, 0, s->out, s->store, (int64_t)at, n, other);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    if (j.s->loop.count)
        dp_pool_for((size_t)j.s->loop.count, GRAIN, run_range, &j);
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const row *r = call->op->function->detail;
    const dp_arg *in = &call->in[0];
    const dp_tensor *self = in->as.tensor;
    int dim = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK && (!self->rank || self->dims[dim] % 2))
        status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be even to be cut in halves", in->name,
                         dim, self->rank ? (long long)self->dims[dim] : 0);
    if (status != DP_OK)
        return status;
    int64_t dims[DP_TENSOR_DIMS];
    for (int d = 0; d < self->rank; d++)
        dims[d] = d == dim ? self->dims[d] / 2 : self->dims[d];
    for (int k = 0; k < call->n_out && status == DP_OK; k++) {
        if (call->out[k].kind != DP_ARG_TENSOR)
            continue;
        status = dp_element_expect(&call->out[k], call->op->elements);
        if (status == DP_OK)
            status = dp_shape_expect(call->out[k].as.tensor, call->out[k].name, dims, self->rank,
                                     "the input with half the dimension");
    }
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    const dp_elementwise_table *t = dp_elementwise_current();
    dp_loop_begin(&s->loop, dims, self->rank);
    dp_loop_add(&s->loop, call->out[0].as.tensor);
    dp_loop_add_strides(&s->loop, self->strides);
    s->out2 = -1;
    if (call->n_out > 1 && call->out[1].kind == DP_ARG_TENSOR) {
        dp_loop_add(&s->loop, call->out[1].as.tensor);
        s->out2 = call->out[1].slot;
        s->store2 = t->store[call->out[1].as.tensor->element][DP_COMPUTE_F32];
    }
    dp_loop_merge(&s->loop, true);
    s->activation = t->run[r->activation][DP_COMPUTE_F32];
    s->multiply = t->run[DP_ELEMENTWISE_mul][DP_COMPUTE_F32];
    s->load = t->load[self->element][DP_COMPUTE_F32];
    s->store = t->store[call->out[0].as.tensor->element][DP_COMPUTE_F32];
    s->half_offset = self->dims[dim] / 2 * self->strides[dim];
    s->gate_first = r->has_mode ? dp_arg_integer(&call->in[3], 1) != 0 : r->gate_first;
    s->mode = r->has_mode ? dp_arg_integer(&call->in[2], 0) == 0 : 0;
    s->out = call->out[0].slot;
    s->in = in->slot;
    plan->path = "f32 tiles";
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, ...)                                                                                          \
    static const row row_##function = {__VA_ARGS__};                                                                   \
    extern const dp_function dp_glu_##function;                                                                        \
    const dp_function dp_glu_##function = {#function, prepare, &row_##function, 0, 2};
EXPORT(glu, DP_ELEMENTWISE_sigmoid, false, false)
EXPORT(swiglu, DP_ELEMENTWISE_silu, true, false)
EXPORT(geglu, DP_ELEMENTWISE_gelu_by_mode, true, true)
