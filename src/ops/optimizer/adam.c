/*
 * adam.c - steps of optimisers with two averages:
 *   adamw(param, mean, square, largest, grad, step, lr, beta1, beta2, decay, eps, amsgrad, maximize)
 *     -> param, mean, square, largest
 *   adamw_powers(param, mean, square, largest, grad, power1, power2, lr, beta1, beta2, decay, eps, amsgrad, maximize)
 *     -> param, mean, square             largest is only read
 *   adam(param, mean, square, -, grad, power1, power2, lr, beta1, beta2, -, eps, nesterov) -> param, mean, square
 *   g = maximize ? -grad : grad; param *= 1 - lr decay; mean = beta1 mean + (1 - beta1) g;
 *   square = beta2 square + (1 - beta2) g g; with p1, p2 the powers beta^n, n = step + 1, or power1 beta1 and power2
 * beta2: adamw: param -= lr mean / (1 - p1) / (sqrt(square / (1 - p2)) + eps) amsgrad: max(largest, square) takes
 * square's place in that line, and is the new largest. adam: p1 and p2 are power1 and power2; param -= lr sqrt(1 - p2)
 * / (1 - p1) mean / (sqrt(square) + eps); nesterov: beta1 mean + (1 - beta1) g takes mean's place there. Step, powers
 * and what follows them may be numbers in device memory. Computed in double, rounded once to each tensor's type.
 */
#include <math.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 8192, PARAM = 0, AVERAGE, SQUARE, LARGEST, GRADIENT, VIEWS };
enum { STEP, POWER1 = STEP, POWER2, LR, BETA1, BETA2, DECAY, EPS, NUMBERS };

typedef enum adam_form { BY_STEP, BY_POWERS, ADAM } adam_form;

/* A constant, or an element of a tensor. */
typedef struct number {
    double value;
    int slot; /* -1: a constant */
    dp_convert_fn load;
} number;

typedef struct state {
    dp_loop loop;
    int slots[VIEWS]; /* LARGEST may be -1 */
    dp_convert_fn load[VIEWS], store[VIEWS];
    number numbers[NUMBERS];
    adam_form form;
    bool nesterov, keeps_largest;
    double sign;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    double beta1, beta2, eps, kept; /* of the parameters */
    double rate, correction;        /* of the mean, and of the square under its root */
} job;

static void update(const job *j, double x[VIEWS][DP_TILE], size_t n) {
    const state *s = j->s;
    for (size_t i = 0; i < n; i++) {
        double g = s->sign * x[GRADIENT][i];
        double mean = x[AVERAGE][i] = j->beta1 * x[AVERAGE][i] + (1 - j->beta1) * g;
        double square = x[SQUARE][i] = j->beta2 * x[SQUARE][i] + (1 - j->beta2) * g * g;
        if (s->slots[LARGEST] >= 0)
            square = x[LARGEST][i] = fmax(x[LARGEST][i], square);
        if (s->nesterov)
            mean = j->beta1 * mean + (1 - j->beta1) * g;
        x[PARAM][i] = x[PARAM][i] * j->kept - j->rate * mean / (sqrt(square * j->correction) + j->eps);
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
            if (s->slots[v] < 0 || (v == LARGEST && !s->keeps_largest))
                continue;
            s->store[v](raw, x[v], n);
            dp_loop_scatter(&s->loop, v, dp_plan_data(j->plan, s->slots[v]),
                            dp_element_bytes(j->plan->tensors[s->slots[v]].view.element), (int64_t)at, n, raw);
        }
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    double x[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        x[i] = s->numbers[i].value;
        if (s->numbers[i].slot >= 0)
            s->numbers[i].load(&x[i], dp_plan_data(plan, s->numbers[i].slot), 1);
    }
    double power1 = s->form == BY_STEP ? pow(x[BETA1], x[STEP] + 1) : x[POWER1],
           power2 = s->form == BY_STEP ? pow(x[BETA2], x[STEP] + 1) : x[POWER2];
    if (s->form == BY_POWERS) {
        power1 *= x[BETA1];
        power2 *= x[BETA2];
    }
    job j = {.plan = plan,
             .s = s,
             .beta1 = x[BETA1],
             .beta2 = x[BETA2],
             .eps = x[EPS],
             .kept = 1 - x[LR] * x[DECAY],
             .rate = x[LR] / (1 - power1) * (s->form == ADAM ? sqrt(1 - power2) : 1),
             .correction = s->form == ADAM ? 1 : 1 / (1 - power2)};
    if (s->loop.count)
        dp_pool_for((size_t)s->loop.count, GRAIN, run_range, &j);
    return DP_OK;
}

static dp_status check(const dp_operator_call *call, bool amsgrad, bool keeps_largest) {
    const dp_arg *param = &call->in[PARAM];
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
        if (status == DP_OK && v != GRADIENT && (v != LARGEST || keeps_largest))
            status = dp_places_expect(arg);
    }
    return status;
}

static dp_status take_number(const dp_arg *arg, number *out) {
    *out = (number){.slot = -1};
    if (arg->kind != DP_ARG_TENSOR) {
        out->value = dp_arg_real(arg, 0);
        return DP_OK;
    }
    dp_status status = dp_element_expect(arg, DP_EL_FLOATS | DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && dp_tensor_count(arg->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", arg->name,
                         (long long)dp_tensor_count(arg->as.tensor));
    if (status != DP_OK)
        return status;
    out->slot = arg->slot;
    out->load = dp_elementwise_current()->load[arg->as.tensor->element][DP_COMPUTE_F64];
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const adam_form form = *(const adam_form *)call->op->function->detail;
    const int first = VIEWS + (form == BY_STEP ? 1 : 2) - LR; /* in[first + LR] is the rate */
    const dp_arg *flags = &call->in[first + NUMBERS];
    bool amsgrad = form != ADAM && dp_arg_integer(&flags[0], 0) != 0;
    number numbers[NUMBERS] = {{.slot = -1}};
    numbers[POWER2].slot = -1;
    dp_status status = check(call, amsgrad, form == BY_STEP);
    for (int i = 0; i < NUMBERS && status == DP_OK; i++)
        if (i != POWER2 || form != BY_STEP)
            status = take_number(&call->in[i < LR ? VIEWS + i : first + i], &numbers[i]);
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
    for (int i = 0; i < NUMBERS; i++)
        s->numbers[i] = numbers[i];
    s->form = form;
    s->keeps_largest = form == BY_STEP;
    s->nesterov = form == ADAM && dp_arg_integer(&flags[0], 0) != 0;
    s->sign = form != ADAM && dp_arg_integer(&flags[1], 0) ? -1 : 1;
    plan->path = "f64 tiles";
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, form, optional_in, optional_out)                                                              \
    static const adam_form form_##function = form;                                                                     \
    extern const dp_function dp_optimizer_##function;                                                                  \
    const dp_function dp_optimizer_##function = {#function, prepare, &form_##function, optional_in, optional_out};
EXPORT(adamw, BY_STEP, 8, 8)
EXPORT(adamw_powers, BY_POWERS, 8, 0)
EXPORT(adam, ADAM, 8 | 1 << 10, 0)
