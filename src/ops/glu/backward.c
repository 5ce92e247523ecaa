/*
 * backward.c - gradients of the gated units of glu.c, and of prelu. Mappings:
 *   glu_backward(grad, self, dim) -> out       swiglu_backward(grad, self, dim) -> out
 *   geglu_backward(grad, self, dim, approximate, activateLeft) -> out
 *   prelu(self, weight) -> out                 self where it is above 0, else weight * self
 *   prelu_backward(grad, self, weight) -> grad_input, grad_weight
 * out has the halves' gradients in self's places. weight has one element, or one for each of self's dimension 1.
 * Computed in double; sums of a weight's gradient go in the order of self.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 8192 };

/* Of y = f(a, b), a the first half: *da and *db are the gradients times g. */
typedef void (*gate)(double a, double b, double g, bool tanh_form, double *da, double *db);

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static void glu_gate(double a, double b, double g, bool tanh_form, double *da, double *db) {
    (void)tanh_form;
    double s = sigmoid(b);
    *da = g * s;
    *db = g * a * s * (1 - s);
}
static void swiglu_gate(double a, double b, double g, bool tanh_form, double *da, double *db) {
    (void)tanh_form;
    double s = sigmoid(a);
    *da = g * b * s * (1 + a * (1 - s));
    *db = g * a * s;
}
/* a is the half that is activated. */
static void geglu_gate(double a, double b, double g, bool tanh_form, double *da, double *db) {
    double value, slope;
    if (tanh_form) {
        double t = tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a));
        value = 0.5 * a * (1 + t);
        slope = 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * 0.79788456080286535588 * (1 + 0.134145 * a * a);
    } else {
        double c = 0.5 * (1 + erf(a * 0.70710678118654752440));
        value = a * c;
        slope = c + a * exp(-0.5 * a * a) * 0.39894228040143267794;
    }
    *da = g * b * slope;
    *db = g * value;
}

typedef struct state {
    dp_loop loop;               /* views 0 grad (or out of prelu), 1 self, 2 out (or grad) */
    int views[3];               /* their slots */
    int64_t from_half, to_half; /* where the second halves begin, in elements */
    gate fn;
    bool tanh_form, swapped;
    dp_convert_fn load[3], store;
    /* prelu */
    int weight, grad_weight;
    int64_t inner, channels, weight_step, grad_step; /* elements of self per channel step, weights, their strides */
    dp_convert_fn load_weight, store_weight;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    const double *weights;
} job;

static const char *read_view(const job *j, int view, int64_t extra, size_t at, size_t n, double *to) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->views[view]].view.element);
    const char *from = (const char *)dp_plan_data(j->plan, s->views[view]) + extra * (int64_t)width;
    double raw[DP_TILE];
    s->load[view](to, dp_loop_gather(&s->loop, view, from, width, (int64_t)at, n, raw), n);
    return from;
}

static void write_view(const job *j, int view, int64_t extra, size_t at, size_t n, const double *from) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->views[view]].view.element);
    double raw[DP_TILE];
    s->store(raw, from, n);
    dp_loop_scatter(&s->loop, view, (char *)dp_plan_data(j->plan, s->views[view]) + extra * (int64_t)width, width,
                    (int64_t)at, n, raw);
}

static void run_gates(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    double grad[DP_TILE], a[DP_TILE], b[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        read_view(j, 0, 0, at, n, grad);
        read_view(j, 1, s->swapped ? s->from_half : 0, at, n, a);
        read_view(j, 1, s->swapped ? 0 : s->from_half, at, n, b);
        for (size_t i = 0; i < n; i++)
            s->fn(a[i], b[i], grad[i], s->tanh_form, &a[i], &b[i]);
        write_view(j, 2, s->swapped ? s->to_half : 0, at, n, a);
        write_view(j, 2, s->swapped ? 0 : s->to_half, at, n, b);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    if (j.s->loop.count)
        dp_pool_for((size_t)j.s->loop.count, GRAIN, run_gates, &j);
    return DP_OK;
}

typedef struct row {
    gate fn;
    bool has_mode;
} row;

static dp_status prepare_gate(const dp_operator_call *call, dp_plan **out_plan) {
    const row *r = call->op->function->detail;
    const dp_arg *grad = &call->in[0], *in = &call->in[1], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    int dim = 0;
    int64_t half[DP_TENSOR_DIMS];
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[2], 0), self, call->in[2].name, &dim);
    for (int k = 0; k < 3 && status == DP_OK; k++)
        status = dp_element_expect(k == 0 ? grad : k == 1 ? in : out, call->op->elements);
    if (status == DP_OK && (!self->rank || self->dims[dim] % 2))
        status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be even to be cut in halves", in->name,
                         dim, self->rank ? (long long)self->dims[dim] : 0);
    if (status != DP_OK)
        return status;
    memcpy(half, self->dims, sizeof half);
    half[dim] /= 2;
    status = dp_shape_expect(grad->as.tensor, grad->name, half, self->rank, "a half of the input");
    if (status == DP_OK)
        status = dp_shape_expect(to, out->name, self->dims, self->rank, "the input's");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    s->fn = r->fn;
    s->tanh_form = r->has_mode && dp_arg_integer(&call->in[3], 0) == 0;
    s->swapped = r->has_mode && dp_arg_integer(&call->in[4], 0) == 0;
    s->from_half = half[dim] * self->strides[dim];
    s->to_half = half[dim] * to->strides[dim];
    s->views[0] = grad->slot;
    s->views[1] = in->slot;
    s->views[2] = out->slot;
    s->load[0] = convert->load[grad->as.tensor->element][DP_COMPUTE_F64];
    s->load[1] = convert->load[self->element][DP_COMPUTE_F64];
    s->store = convert->store[to->element][DP_COMPUTE_F64];
    dp_loop_begin(&s->loop, half, self->rank);
    dp_loop_add_strides(&s->loop, grad->as.tensor->strides);
    dp_loop_add_strides(&s->loop, self->strides);
    dp_loop_add_strides(&s->loop, to->strides);
    dp_loop_merge(&s->loop, true);
    plan->path = "f64 tiles";
    *out_plan = plan;
    return DP_OK;
}

/* Prelu. */

static void run_prelu_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    bool backward = s->grad_weight >= 0;
    double x[DP_TILE], grad[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        read_view(j, 1, 0, at, n, x);
        if (backward)
            read_view(j, 2, 0, at, n, grad);
        for (size_t i = 0; i < n; i++) {
            double slope = x[i] > 0 ? 1 : j->weights[(int64_t)(at + i) / s->inner % s->channels];
            x[i] = slope * (backward ? grad[i] : x[i]);
        }
        write_view(j, 0, 0, at, n, x);
    }
}

static void sum_weights(const job *j, double *sums) {
    const state *s = j->s;
    double x[DP_TILE], grad[DP_TILE];
    for (int64_t at = 0, n; at < s->loop.count; at += n) {
        n = s->loop.count - at < DP_TILE ? s->loop.count - at : DP_TILE;
        read_view(j, 1, 0, (size_t)at, (size_t)n, x);
        read_view(j, 2, 0, (size_t)at, (size_t)n, grad);
        for (int64_t i = 0; i < n; i++)
            sums[(at + i) / s->inner % s->channels] += x[i] > 0 ? 0 : x[i] * grad[i];
    }
}

static dp_status run_prelu(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    double *weights = dp_alloc(DP_MEM_RUNTIME, 2 * (size_t)s->channels * sizeof(double)), *sums = weights + s->channels;
    if (!weights)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld weights: free some", (long long)s->channels);
    int64_t width = (int64_t)dp_element_bytes(plan->tensors[s->weight].view.element);
    for (int64_t c = 0; c < s->channels; c++)
        s->load_weight(&weights[c], (char *)dp_plan_data(plan, s->weight) + c * s->weight_step * width, 1);
    j.weights = weights;
    if (s->grad_weight >= 0) /* before grad_input, which may be grad's memory */
        sum_weights(&j, sums);
    if (s->loop.count)
        dp_pool_for((size_t)s->loop.count, GRAIN, run_prelu_range, &j);
    for (int64_t c = 0; c < s->channels && s->grad_weight >= 0; c++)
        s->store_weight((char *)dp_plan_data(plan, s->grad_weight) +
                            c * s->grad_step * (int64_t)dp_element_bytes(plan->tensors[s->grad_weight].view.element),
                        &sums[c], 1);
    dp_free(weights);
    return DP_OK;
}

/* The one stride of a tensor whose other dims are 1. */
static int64_t step_of(const dp_tensor *t) {
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] > 1)
            return t->strides[d];
    return 0;
}

static dp_status check_weight(const dp_operator_call *call, const dp_arg *arg, const dp_tensor *self) {
    const dp_tensor *t = arg->as.tensor;
    int64_t count = dp_tensor_count(t), channels = self->rank > 1 ? self->dims[1] : 1;
    int long_dims = 0;
    for (int d = 0; d < t->rank; d++)
        long_dims += t->dims[d] > 1;
    dp_status status = dp_element_expect(arg, call->op->elements);
    if (status == DP_OK && (count < 1 || (count != 1 && count != channels) || long_dims > 1))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1 or %lld along one dimension",
                         arg->name, (long long)count, (long long)channels);
    return status;
}

static dp_status prepare_prelu(const dp_operator_call *call, bool backward, dp_plan **out_plan) {
    const dp_arg *in = &call->in[backward], *weight = &call->in[1 + backward], *grad = backward ? &call->in[0] : NULL;
    const dp_arg *out = &call->out[0], *grad_weight = backward ? &call->out[1] : NULL;
    const dp_tensor *self = in->as.tensor;
    const dp_arg *wide[3] = {out, in, grad};
    dp_status status = check_weight(call, weight, self);
    for (int k = 0; k < 2 + backward && status == DP_OK; k++) {
        status = dp_element_expect(wide[k], call->op->elements);
        if (status == DP_OK)
            status = dp_shape_expect(wide[k]->as.tensor, wide[k]->name, self->dims, self->rank, "self's");
    }
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK && backward)
        status = check_weight(call, grad_weight, self);
    if (status == DP_OK && backward && dp_tensor_count(grad_weight->as.tensor) != dp_tensor_count(weight->as.tensor))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have as many as %s", grad_weight->name,
                         (long long)dp_tensor_count(grad_weight->as.tensor), weight->name);
    if (status == DP_OK && backward)
        status = dp_places_expect(grad_weight);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run_prelu, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    dp_loop_begin(&s->loop, self->dims, self->rank);
    for (int k = 0; k < 2 + backward; k++) {
        s->views[k] = wide[k]->slot;
        s->load[k] = convert->load[wide[k]->as.tensor->element][DP_COMPUTE_F64];
        dp_loop_add(&s->loop, wide[k]->as.tensor);
    }
    dp_loop_merge(&s->loop, false);
    s->store = convert->store[out->as.tensor->element][DP_COMPUTE_F64];
    s->weight = weight->slot;
    s->channels = dp_tensor_count(weight->as.tensor);
    s->weight_step = step_of(weight->as.tensor);
    s->load_weight = convert->load[weight->as.tensor->element][DP_COMPUTE_F64];
    s->inner = 1;
    for (int d = 2; d < self->rank; d++)
        s->inner *= self->dims[d] ? self->dims[d] : 1;
    s->grad_weight = -1;
    if (backward) {
        s->grad_weight = grad_weight->slot;
        s->grad_step = step_of(grad_weight->as.tensor);
        s->store_weight = convert->store[grad_weight->as.tensor->element][DP_COMPUTE_F64];
    }
    plan->path = "f64 tiles";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prelu(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare_prelu(call, false, out_plan);
}
static dp_status prelu_backward(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare_prelu(call, true, out_plan);
}

#define EXPORT(function, fn, has_mode)                                                                                 \
    static const row row_##function = {fn, has_mode};                                                                  \
    extern const dp_function dp_glu_##function;                                                                        \
    const dp_function dp_glu_##function = {#function, prepare_gate, &row_##function, 0, 0};
EXPORT(glu_backward, glu_gate, false)
EXPORT(swiglu_backward, swiglu_gate, false)
EXPORT(geglu_backward, geglu_gate, true)
extern const dp_function dp_glu_prelu, dp_glu_prelu_backward;
const dp_function dp_glu_prelu = {"prelu", prelu, NULL, 0, 0};
const dp_function dp_glu_prelu_backward = {"prelu_backward", prelu_backward, NULL, 0, 0};
