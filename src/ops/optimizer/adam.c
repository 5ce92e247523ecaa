/*
 * adam.c - a step of an optimiser:
 *   adamw(param, mean, square, largest, grad, step, lr, beta1, beta2, decay, eps, amsgrad, maximize)
 *     -> param, mean, square, largest
 *   g = maximize ? -grad : grad; param *= 1 - lr decay; mean = beta1 mean + (1 - beta1) g;
 *   square = beta2 square + (1 - beta2) g g; with n = step + 1:
 *   param -= lr mean / (1 - beta1^n) / (sqrt(square / (1 - beta2^n)) + eps)
 *   amsgrad: largest = max(largest, square) takes square's place in the last line.
 * step is a number in device memory. Computed in double, rounded once to each tensor's type.
 */
#include <math.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 8192, PARAM = 0, AVERAGE, SQUARE, LARGEST, GRADIENT, VIEWS };

typedef struct state {
    dp_loop loop;
    int slots[VIEWS]; /* LARGEST may be -1 */
    int step;
    dp_convert_fn load[VIEWS], store[VIEWS], load_step;
    double lr, beta1, beta2, decay, eps, sign;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    double rate, correction; /* lr / (1 - beta1^n), 1 / (1 - beta2^n) */
} job;

static void update(const job *j, double x[VIEWS][DP_TILE], size_t n) {
    const state *s = j->s;
    for (size_t i = 0; i < n; i++) {
        double g = s->sign * x[GRADIENT][i];
        double mean = x[AVERAGE][i] = s->beta1 * x[AVERAGE][i] + (1 - s->beta1) * g;
        double square = x[SQUARE][i] = s->beta2 * x[SQUARE][i] + (1 - s->beta2) * g * g;
        if (s->slots[LARGEST] >= 0)
            square = x[LARGEST][i] = fmax(x[LARGEST][i], square);
        x[PARAM][i] = x[PARAM][i] * (1 - s->lr * s->decay) - j->rate * mean / (sqrt(square * j->correction) + s->eps);
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    double x[VIEWS][DP_TILE], raw[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        for (int v = 0; v < VIEWS; v++)
            if (s->slots[v] >= 0)
                s->load[v](x[v],
                           dp_loop_gather(&s->loop, v, dp_plan_data(j->plan, s->slots[v]),
                                          dp_element_bytes(j->plan->tensors[s->slots[v]].view.element), (int64_t)at, n,
                                          raw),
                           n);
        update(j, x, n);
        for (int v = 0; v < GRADIENT; v++) {
            if (s->slots[v] < 0)
                continue;
            s->store[v](raw, x[v], n);
            dp_loop_scatter(&s->loop, v, dp_plan_data(j->plan, s->slots[v]),
                            dp_element_bytes(j->plan->tensors[s->slots[v]].view.element), (int64_t)at, n, raw);
        }
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    double step;
    j.s->load_step(&step, dp_plan_data(plan, j.s->step), 1);
    j.rate = j.s->lr / (1 - pow(j.s->beta1, step + 1));
    j.correction = 1 / (1 - pow(j.s->beta2, step + 1));
    if (j.s->loop.count)
        dp_pool_for((size_t)j.s->loop.count, GRAIN, run_range, &j);
    return DP_OK;
}

static dp_status check(const dp_operator_call *call, bool amsgrad) {
    const dp_arg *param = &call->in[PARAM], *step = &call->in[VIEWS];
    dp_status status = DP_OK;
    for (int v = 0; v < VIEWS && status == DP_OK; v++) {
        const dp_arg *arg = &call->in[v];
        if (v == LARGEST && !amsgrad)
            continue;
        if (arg->kind == DP_ARG_ABSENT)
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but amsgrad needs it", arg->name);
        status = dp_element_expect(arg, call->op->elements);
        if (status == DP_OK)
            status = dp_shape_expect(arg->as.tensor, arg->name, param->as.tensor->dims, param->as.tensor->rank,
                                     "the parameters'");
        if (status == DP_OK && v != GRADIENT)
            status = dp_places_expect(arg);
    }
    if (status == DP_OK)
        status = dp_element_expect(step, DP_EL_FLOATS | DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && dp_tensor_count(step->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", step->name,
                         (long long)dp_tensor_count(step->as.tensor));
    return status;
}

static dp_status adamw(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *numbers = &call->in[VIEWS + 1];
    bool amsgrad = dp_arg_integer(&numbers[5], 0) != 0;
    dp_status status = check(call, amsgrad);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    dp_loop_begin(&s->loop, call->in[PARAM].as.tensor->dims, call->in[PARAM].as.tensor->rank);
    for (int v = 0; v < VIEWS; v++) {
        bool used = v != LARGEST || amsgrad;
        const dp_tensor *t = call->in[used ? v : PARAM].as.tensor;
        s->slots[v] = used ? call->in[v].slot : -1;
        s->load[v] = convert->load[t->element][DP_COMPUTE_F64];
        s->store[v] = convert->store[t->element][DP_COMPUTE_F64];
        dp_loop_add(&s->loop, t);
    }
    dp_loop_merge(&s->loop, true);
    s->step = call->in[VIEWS].slot;
    s->load_step = convert->load[call->in[VIEWS].as.tensor->element][DP_COMPUTE_F64];
    s->lr = dp_arg_real(&numbers[0], 0);
    s->beta1 = dp_arg_real(&numbers[1], 0);
    s->beta2 = dp_arg_real(&numbers[2], 0);
    s->decay = dp_arg_real(&numbers[3], 0);
    s->eps = dp_arg_real(&numbers[4], 0);
    s->sign = dp_arg_integer(&numbers[6], 0) ? -1 : 1;
    plan->path = "f64 tiles";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_optimizer_adamw;
const dp_function dp_optimizer_adamw = {"adamw", adamw, NULL, 8, 8};
