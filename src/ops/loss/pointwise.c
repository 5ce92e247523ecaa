/*
 * pointwise.c - losses that are a formula per element, and their gradients. Mappings:
 *   mse(self, target, weight, pos_weight, reduction, parameter) -> out
 *   mse_backward(grad, self, target, weight, pos_weight, reduction, parameter) -> gradient
 * and likewise for the other rows of `losses` below. Tensors are broadcast together; weights may be absent (1).
 * reduction: 0 none, 1 mean, 2 sum; a reduced out has one element. Gradients are those of self (kl_target: of target),
 * times grad, divided by the number of elements for the mean.
 *
 * Computed in double and rounded once. Sums are made of fixed chunks, so they do not depend on the number of workers.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { CHUNK = 8 * DP_TILE, OPERANDS = 4, NONE = 0, MEAN, SUM };

/* Self x, target t, weight w, weight of positive targets q, parameter p. */
#define LOSSES                                                                                                         \
    LOSS(mse, (x - t) * (x - t), 2 * (x - t))                                                                          \
    LOSS(l1, fabs(x - t), sign_of(x - t))                                                                              \
    LOSS(smooth_l1, fabs(x - t) < p ? 0.5 * (x - t) * (x - t) / p : fabs(x - t) - 0.5 * p,                             \
         fabs(x - t) < p ? (x - t) / p : sign_of(x - t))                                                               \
    LOSS(bce, -w *(t * log_above(x) + (1 - t) * log_above(1 - x)), w *(x - t) / fmax((1 - x) * x, 1e-12))              \
    LOSS(bce_logits, w *((1 - t) * x + (1 + (q - 1) * t) * (log1p(exp(-fabs(x))) + fmax(-x, 0))),                      \
         w *((q * t + 1 - t) / (1 + exp(-x)) - q * t))                                                                 \
    LOSS(kl, p != 0 ? exp(t) * (t - x) : t > 0 ? t * (log(t) - x) : 0 * t, p != 0 ? -exp(t) : t > 0 ? -t : 0 * t)      \
    GRADIENT(kl_target, p != 0 ? exp(t) * (t + 1 - x) : t == 0 ? 0 : log(t) + 1 - x)                                   \
    LOSS(soft_margin, log1p_exp(-t *x), -t / (1 + exp(t * x)))

static inline double sign_of(double d) {
    return d > 0 ? 1 : d < 0 ? -1 : d;
}
/* As PyTorch: the logarithm of a probability is at least -100. */
static inline double log_above(double x) {
    return fmax(log(x), -100);
}
static inline double log1p_exp(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

typedef void (*formula)(double *y, const double *const *in, double p, size_t n);
#define FORMULA(name, expression)                                                                                      \
    static void name(double *y, const double *const *in, double p, size_t n) {                                         \
        (void)p;                                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const double x = in[0][i], t = in[1][i], w = in[2][i], q = in[3][i];                                       \
            (void)x, (void)t, (void)w, (void)q;                                                                        \
            y[i] = (expression);                                                                                       \
        }                                                                                                              \
    }
#define LOSS(name, value, gradient) FORMULA(value_##name, value) GRADIENT(name, gradient)
#define GRADIENT(name, gradient) FORMULA(gradient_##name, gradient)
LOSSES
#undef LOSS
#undef GRADIENT

typedef struct row {
    formula fn;
    bool backward;
} row;

typedef struct operand {
    int slot, view; /* slot -1: 1 everywhere */
    dp_convert_fn load;
} operand;

typedef struct state {
    formula fn;
    dp_loop loop; /* view 0 out (unless reduced); the operands follow */
    operand in[OPERANDS], grad;
    int out, reduction;
    bool backward;
    double parameter;
    dp_convert_fn store;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    double *partial; /* of each chunk, when it is reduced */
} job;

static const double *read_operand(const job *j, const operand *from, int64_t at, size_t n, double *to) {
    if (from->slot < 0) {
        for (size_t i = 0; i < n; i++)
            to[i] = 1;
        return to;
    }
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[from->slot].view.element);
    from->load(to, dp_loop_gather(&j->s->loop, from->view, dp_plan_data(j->plan, from->slot), width, at, n, raw), n);
    return to;
}

static double run_tile(const job *j, int64_t at, size_t n) {
    const state *s = j->s;
    double y[DP_TILE], x[OPERANDS][DP_TILE], raw[DP_TILE], sum = 0;
    const double *in[OPERANDS];
    for (int k = 0; k < OPERANDS; k++)
        in[k] = read_operand(j, &s->in[k], at, n, x[k]);
    s->fn(y, in, s->parameter, n);
    if (s->backward) {
        double factor = s->reduction == MEAN ? 1 / (double)s->loop.count : 1;
        const double *grad = read_operand(j, &s->grad, at, n, x[0]);
        for (size_t i = 0; i < n; i++)
            y[i] *= grad[i] * factor;
    } else if (s->reduction != NONE) {
        for (size_t i = 0; i < n; i++)
            sum += y[i];
        return sum;
    }
    s->store(raw, y, n);
    dp_loop_scatter(&s->loop, 0, dp_plan_data(j->plan, s->out), dp_element_bytes(j->plan->tensors[s->out].view.element),
                    at, n, raw);
    return 0;
}

static void run_chunks(void *context, size_t begin, size_t end) {
    const job *j = context;
    for (size_t chunk = begin; chunk < end; chunk++) {
        int64_t last = (int64_t)(chunk + 1) * CHUNK;
        double sum = 0;
        last = last < j->s->loop.count ? last : j->s->loop.count;
        for (int64_t at = (int64_t)chunk * CHUNK, n; at < last; at += n) {
            n = last - at < DP_TILE ? last - at : DP_TILE;
            sum += run_tile(j, at, (size_t)n);
        }
        if (j->partial)
            j->partial[chunk] = sum;
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    size_t chunks = (size_t)(s->loop.count + CHUNK - 1) / CHUNK;
    bool reduced = !s->backward && s->reduction != NONE;
    if (reduced && !(j.partial = dp_alloc(DP_MEM_RUNTIME, (chunks + 1) * sizeof *j.partial)))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %zu partial sums: free some", chunks);
    if (chunks)
        dp_pool_for(chunks, 1, run_chunks, &j);
    if (!reduced)
        return DP_OK;
    double sum = 0;
    for (size_t i = 0; i < chunks; i++)
        sum += j.partial[i];
    dp_free(j.partial);
    sum /= s->reduction == MEAN ? (double)s->loop.count : 1;
    s->store(dp_plan_data(plan, s->out), &sum, 1);
    return DP_OK;
}

/* Phase one. */

static dp_status check_tensors(const dp_operator_call *call, int64_t *dims, int *rank) {
    const dp_tensor *tensors[OPERANDS + 1];
    const char *names[OPERANDS + 1];
    int n = 0, first = ((const row *)call->op->function->detail)->backward;
    for (int i = 0; i < first + OPERANDS; i++) {
        if (call->in[i].kind != DP_ARG_TENSOR)
            continue;
        dp_status status = dp_element_expect(&call->in[i], call->op->elements);
        if (status != DP_OK)
            return status;
        tensors[n] = call->in[i].as.tensor;
        names[n++] = call->in[i].name;
    }
    return dp_broadcast(tensors, names, n, dims, rank);
}

static dp_status check_output(const dp_arg *out, bool reduced, const int64_t *dims, int rank, uint32_t elements) {
    dp_status status = dp_element_expect(out, elements);
    if (status == DP_OK && reduced && dp_tensor_count(out->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1 for a reduced loss", out->name,
                         (long long)dp_tensor_count(out->as.tensor));
    if (status == DP_OK && !reduced)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "the inputs broadcast together");
    return status == DP_OK ? dp_places_expect(out) : status;
}

static void take_operand(const dp_arg *arg, state *s, operand *to) {
    to->slot = -1;
    if (arg->kind != DP_ARG_TENSOR)
        return;
    to->slot = arg->slot;
    to->view = s->loop.n_views;
    to->load = dp_elementwise_current()->load[arg->as.tensor->element][DP_COMPUTE_F64];
    dp_loop_add(&s->loop, arg->as.tensor);
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    const row *r = call->op->function->detail;
    const dp_arg *out = &call->out[0], *reduction = &call->in[OPERANDS + r->backward];
    int64_t dims[DP_TENSOR_DIMS], how = dp_arg_integer(reduction, 0);
    int rank = 0;
    if (how < NONE || how > SUM)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (none), 1 (mean) or 2 (sum)", reduction->name,
                       (long long)how);
    bool reduced = !r->backward && how != NONE;
    dp_status status = check_tensors(call, dims, &rank);
    if (status == DP_OK)
        status = check_output(out, reduced, dims, rank, call->op->elements);
    if (status != DP_OK)
        return status;
    double parameter = dp_arg_real(&call->in[OPERANDS + r->backward + 1], 0);
    if (!(parameter >= 0))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be at least 0", call->in[OPERANDS + r->backward + 1].name,
                       parameter);
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    s->fn = r->fn;
    s->backward = r->backward;
    s->reduction = (int)how;
    s->parameter = parameter;
    s->out = out->slot;
    s->store = dp_elementwise_current()->store[out->as.tensor->element][DP_COMPUTE_F64];
    dp_loop_begin(&s->loop, dims, rank);
    if (reduced)
        dp_loop_add_strides(&s->loop, none);
    else
        dp_loop_add(&s->loop, out->as.tensor);
    for (int k = 0; k < OPERANDS; k++)
        take_operand(&call->in[k + r->backward], s, &s->in[k]);
    if (r->backward)
        take_operand(&call->in[0], s, &s->grad);
    dp_loop_merge(&s->loop, false);
    plan->path = "f64 tiles";
    *out_plan = plan;
    return DP_OK;
}

/* Weights may be absent. */
#define LOSS(name, value, gradient)                                                                                    \
    static const row forward_##name = {value_##name, false};                                                           \
    extern const dp_function dp_loss_##name;                                                                           \
    const dp_function dp_loss_##name = {#name, prepare, &forward_##name, 12, 0};                                       \
    GRADIENT(name, gradient)
#define GRADIENT(name, gradient)                                                                                       \
    static const row backward_##name = {gradient_##name, true};                                                        \
    extern const dp_function dp_loss_##name##_backward;                                                                \
    const dp_function dp_loss_##name##_backward = {#name "_backward", prepare, &backward_##name, 24, 0};
LOSSES
