/*
 * sgd.c - a step of gradient descent for every tensor of a list, by PyTorch's formulas:
 *   sgd(params, grads, buffers, grad_scale, decay, momentum, lr, dampening, nesterov, maximize, first) -> params,
 * buffers g = grad / grad_scale (a number in device memory, or absent); maximize: g = -g; g += decay param; with
 * buffers (an empty list: none) buffer = first ? g : momentum buffer + (1 - dampening) g, and g = nesterov ? g +
 * momentum buffer : buffer; param -= lr g. Gradients stay as they are. Computed in double, rounded once to each
 * tensor's type.
 */
#include <stdio.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 8192, PARAM = 0, BUFFER, GRADIENT, VIEWS };

typedef struct state {
    int64_t count;
    int first[VIEWS]; /* slots of the lists; BUFFER may be -1 */
    int scale;        /* slot; -1: absent */
    dp_convert_fn load_scale;
    double decay, momentum, lr, dampening, sign;
    bool nesterov, is_first;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    dp_loop loop;
    int slot[VIEWS];
    dp_convert_fn load[VIEWS], store[VIEWS];
    double factor; /* of the gradient */
} job;

static void update(const job *j, double x[VIEWS][DP_TILE], size_t n) {
    const state *s = j->s;
    for (size_t i = 0; i < n; i++) {
        double g = x[GRADIENT][i] * j->factor + s->decay * x[PARAM][i];
        if (j->slot[BUFFER] >= 0) {
            double buffer = x[BUFFER][i] = s->is_first ? g : s->momentum * x[BUFFER][i] + (1 - s->dampening) * g;
            g = s->nesterov ? g + s->momentum * buffer : buffer;
        }
        x[PARAM][i] -= s->lr * g;
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    double x[VIEWS][DP_TILE], raw[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        for (int v = 0; v < VIEWS; v++)
            if (j->slot[v] >= 0)
                j->load[v](x[v],
                           dp_loop_gather(&j->loop, v, dp_plan_data(j->plan, j->slot[v]),
                                          dp_element_bytes(j->plan->tensors[j->slot[v]].view.element), (int64_t)at, n,
                                          raw),
                           n);
        update(j, x, n);
        for (int v = 0; v < GRADIENT; v++) {
            if (j->slot[v] < 0)
                continue;
            j->store[v](raw, x[v], n);
            dp_loop_scatter(&j->loop, v, dp_plan_data(j->plan, j->slot[v]),
                            dp_element_bytes(j->plan->tensors[j->slot[v]].view.element), (int64_t)at, n, raw);
        }
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    job j = {.plan = plan, .s = s, .factor = s->sign};
    if (s->scale >= 0) {
        double scale;
        s->load_scale(&scale, dp_plan_data(plan, s->scale), 1);
        j.factor /= scale;
    }
    for (int64_t i = 0; i < s->count; i++) {
        const dp_tensor *param = &plan->tensors[s->first[PARAM] + i].view;
        dp_loop_begin(&j.loop, param->dims, param->rank);
        for (int v = 0; v < VIEWS; v++) {
            j.slot[v] = s->first[v] < 0 ? -1 : s->first[v] + (int)i;
            const dp_tensor *t = j.slot[v] < 0 ? param : &plan->tensors[j.slot[v]].view;
            j.load[v] = convert->load[t->element][DP_COMPUTE_F64];
            j.store[v] = convert->store[t->element][DP_COMPUTE_F64];
            dp_loop_add(&j.loop, t);
        }
        dp_loop_merge(&j.loop, true);
        if (j.loop.count)
            dp_pool_for((size_t)j.loop.count, GRAIN, run_range, &j);
    }
    return DP_OK;
}

static dp_status check_list(const dp_operator_call *call, const dp_arg *params, const dp_arg *list, bool written) {
    char name[96];
    if (list->count != params->count)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld tensors, but must have as many as %s: %lld", list->name,
                       (long long)list->count, params->name, (long long)params->count);
    dp_status status = DP_OK;
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = *list;
        snprintf(name, sizeof name, "%s[%lld]", list->name, (long long)i);
        one.kind = DP_ARG_TENSOR;
        one.name = name;
        one.as.tensor = list->as.tensors[i];
        status = dp_element_expect(&one, call->op->elements);
        if (status == DP_OK)
            status = dp_shape_expect(one.as.tensor, name, params->as.tensors[i]->dims, params->as.tensors[i]->rank,
                                     "the parameter's");
        if (status == DP_OK && written)
            status = dp_places_expect(&one);
    }
    return status;
}

static dp_status sgd(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *params = &in[0], *grads = &in[1], *buffers = &in[2], *scale = &in[3];
    bool has_buffers = buffers->kind == DP_ARG_TENSOR_LIST && buffers->count > 0;
    dp_status status = check_list(call, params, params, true);
    if (status == DP_OK)
        status = check_list(call, params, grads, false);
    if (status == DP_OK && has_buffers)
        status = check_list(call, params, buffers, true);
    if (status == DP_OK && scale->kind == DP_ARG_TENSOR)
        status = dp_element_expect(scale, DP_EL_FLOATS);
    if (status == DP_OK && scale->kind == DP_ARG_TENSOR && dp_tensor_count(scale->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", scale->name,
                         (long long)dp_tensor_count(scale->as.tensor));
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    bool scaled = scale->kind == DP_ARG_TENSOR;
    *(state *)dp_plan_state(plan) =
        (state){.count = params->count,
                .first = {params->slot, has_buffers ? buffers->slot : -1, grads->slot},
                .scale = scaled ? scale->slot : -1,
                .load_scale = scaled ? dp_elementwise_current()->load[scale->as.tensor->element][DP_COMPUTE_F64] : NULL,
                .decay = dp_arg_real(&in[4], 0),
                .momentum = dp_arg_real(&in[5], 0),
                .lr = dp_arg_real(&in[6], 0),
                .dampening = dp_arg_real(&in[7], 0),
                .nesterov = dp_arg_integer(&in[8], 0) != 0,
                .sign = dp_arg_integer(&in[9], 0) ? -1 : 1,
                .is_first = dp_arg_integer(&in[10], 0) != 0};
    plan->path = "f64 tiles";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_optimizer_sgd;
const dp_function dp_optimizer_sgd = {"sgd", sgd, NULL, 0xc, 2};
