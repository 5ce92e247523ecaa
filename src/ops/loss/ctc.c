/*
 * ctc.c - connectionist temporal classification, by PyTorch's formulas (Graves et al., 2006), in double:
 *   ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity) -> loss, log_alpha
 *   ctc_backward(grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, blank, zero_infinity) -> out
 * log_probs [time, batch, classes], or [time, classes] for a batch of one; targets [batch, labels], or all labels one
 * behind the other; loss [batch], of one without a batch []; log_alpha [batch, time, at least 2 * longest target + 1],
 * -inf where nothing is. A loss may be infinite; with zero_infinity its gradient is 0. The gradient is that of what log
 * softmax made log_probs of.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ops/doubles.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "ops/tiles.h"

typedef struct state {
    int probs, targets, loss, alpha, grad, out;           /* slots */
    int64_t time, batch, classes, blank, longest, states; /* states: of log_alpha's last dim */
    int64_t probs_stride[3], out_stride[3], alpha_stride[3], loss_stride, grad_stride; /* time, batch, classes */
    int64_t target_stride;
    bool zero_infinity;
    dp_convert_fn load_target;
    int64_t numbers[]; /* for each of the batch: input length, target length, where its targets begin */
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic int64_t wrong; /* of the batch: it has a target that is no class; -1: none */
} job;

static double log_add(double a, double b) {
    double most = a > b ? a : b, least = a > b ? b : a;
    return most == -INFINITY ? most : most + log1p(exp(least - most));
}

static char *at(const job *j, int slot, int64_t offset) {
    const dp_tensor *t = &j->plan->tensors[slot].view;
    return (char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element);
}

static void load_row(const job *j, int64_t t, int64_t n, double *row) {
    const state *s = j->s;
    dp_doubles_load(j->plan->tensors[s->probs].view.element,
                    at(j, s->probs, t * s->probs_stride[0] + n * s->probs_stride[1]), s->probs_stride[2], s->classes,
                    row);
}

/* Labels with blanks between and around them. */
static bool load_labels(job *j, int64_t n, int64_t *labels) {
    const state *s = j->s;
    const int64_t length = s->numbers[3 * n + 1];
    for (int64_t i = 0; i < length; i++) {
        int64_t *label = &labels[2 * i + 1];
        s->load_target(label, at(j, s->targets, s->numbers[3 * n + 2] + i * s->target_stride), 1);
        labels[2 * i] = s->blank;
        if (*label < 0 || *label >= s->classes) {
            atomic_store(&j->wrong, n);
            return false;
        }
    }
    labels[2 * length] = s->blank;
    return true;
}

/* Whether a path may come from two states before. */
static bool may_skip(const int64_t *labels, int64_t from, int64_t to) {
    return labels[from] != labels[to];
}

static void forward(void *context, size_t tile, void *scratch) {
    job *j = context;
    const state *s = j->s;
    const int64_t n = (int64_t)tile, length = s->numbers[3 * n], states = 2 * s->numbers[3 * n + 1] + 1;
    double *row = scratch, *now = row + s->classes, *before = now + s->states;
    int64_t *labels = (int64_t *)(before + s->states);
    if (!load_labels(j, n, labels))
        return;
    for (int64_t i = 0; i < s->states; i++)
        now[i] = before[i] = -INFINITY;
    for (int64_t t = 0; t < s->time; t++) {
        for (int64_t i = 0; i < states; i++)
            now[i] = -INFINITY;
        if (t < length)
            load_row(j, t, n, row);
        for (int64_t i = 0; i < states && t < length; i++) {
            double sum = t == 0 ? i < 2 ? 0 : -INFINITY : before[i];
            if (t && i > 0)
                sum = log_add(sum, before[i - 1]);
            if (t && i > 1 && may_skip(labels, i - 2, i))
                sum = log_add(sum, before[i - 2]);
            now[i] = sum + row[labels[i]];
        }
        dp_doubles_store(j->plan->tensors[s->alpha].view.element,
                         at(j, s->alpha, n * s->alpha_stride[1] + t * s->alpha_stride[0]), s->alpha_stride[2],
                         s->states, now);
        if (t < length)
            memcpy(before, now, (size_t)states * sizeof *now);
    }
    double loss = length       ? -log_add(before[states - 1], states > 1 ? before[states - 2] : -INFINITY)
                  : states > 1 ? INFINITY
                               : 0;
    dp_doubles_store(j->plan->tensors[s->loss].view.element, at(j, s->loss, n * s->loss_stride), 1, 1, &loss);
}

static void store_gradient(const job *j, int64_t t, int64_t n, const double *row) {
    const state *s = j->s;
    dp_doubles_store(j->plan->tensors[s->out].view.element, at(j, s->out, t * s->out_stride[0] + n * s->out_stride[1]),
                     s->out_stride[2], s->classes, row);
}

static void backward(void *context, size_t tile, void *scratch) {
    job *j = context;
    const state *s = j->s;
    const int64_t n = (int64_t)tile, length = s->numbers[3 * n], states = 2 * s->numbers[3 * n + 1] + 1;
    double *row = scratch, *shares = row + s->classes, *now = shares + s->classes, *after = now + s->states,
           *alpha = after + s->states, loss, grad;
    int64_t *labels = (int64_t *)(alpha + s->states);
    if (!load_labels(j, n, labels))
        return;
    dp_doubles_load(j->plan->tensors[s->loss].view.element, at(j, s->loss, n * s->loss_stride), 1, 1, &loss);
    dp_doubles_load(j->plan->tensors[s->grad].view.element, at(j, s->grad, n * s->grad_stride), 1, 1, &grad);
    const bool is_zero = s->zero_infinity && loss == INFINITY;
    for (int64_t t = s->time - 1; t >= 0; t--) {
        if (t >= length || is_zero) {
            memset(row, 0, (size_t)s->classes * sizeof *row);
            store_gradient(j, t, n, row);
            continue;
        }
        load_row(j, t, n, row);
        dp_doubles_load(j->plan->tensors[s->alpha].view.element,
                        at(j, s->alpha, n * s->alpha_stride[1] + t * s->alpha_stride[0]), s->alpha_stride[2], states,
                        alpha);
        for (int64_t c = 0; c < s->classes; c++)
            shares[c] = -INFINITY;
        for (int64_t i = 0; i < states; i++) {
            double sum = t == length - 1 ? i >= states - 2 ? 0 : -INFINITY : after[i];
            if (t < length - 1 && i + 1 < states)
                sum = log_add(sum, after[i + 1]);
            if (t < length - 1 && i + 2 < states && may_skip(labels, i, i + 2))
                sum = log_add(sum, after[i + 2]);
            now[i] = sum + row[labels[i]];
            shares[labels[i]] = log_add(shares[labels[i]], alpha[i] + now[i]);
        }
        for (int64_t c = 0; c < s->classes; c++)
            row[c] = grad * (exp(row[c]) - (shares[c] == -INFINITY ? 0 : exp(shares[c] + loss - row[c])));
        store_gradient(j, t, n, row);
        memcpy(after, now, (size_t)states * sizeof *now);
    }
}

static dp_status end(const job *j) {
    if (j->wrong < 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s: a label of batch element %lld is none of the classes 0 to %lld",
                   j->plan->tensors[j->s->targets].name, (long long)j->wrong, (long long)j->s->classes - 1);
}

static dp_status run_forward(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .wrong = -1};
    size_t doubles = (size_t)(j.s->classes + 3 * j.s->states);
    dp_status status = dp_tiles_run((size_t)j.s->batch, doubles * sizeof(double) + 64, forward, &j);
    return status == DP_OK ? end(&j) : status;
}

static dp_status run_backward(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .wrong = -1};
    size_t doubles = (size_t)(2 * j.s->classes + 4 * j.s->states);
    dp_status status = dp_tiles_run((size_t)j.s->batch, doubles * sizeof(double) + 64, backward, &j);
    return status == DP_OK ? end(&j) : status;
}

/* Lengths, and the dims of targets, which follow from them. */
static dp_status take_lengths(const dp_arg *inputs, const dp_arg *lengths, const dp_arg *targets, state *s) {
    const dp_tensor *t = targets->as.tensor;
    int64_t sum = 0;
    if (inputs->count != s->batch || lengths->count != s->batch)
        return dp_fail(
            DP_ERR_ARGUMENT, "%s and %s have %lld and %lld entries, but must have one for each of the batch, %lld",
            inputs->name, lengths->name, (long long)inputs->count, (long long)lengths->count, (long long)s->batch);
    for (int64_t n = 0; n < s->batch; n++) {
        int64_t *to = s->numbers + 3 * n;
        to[0] = inputs->as.integers[n];
        to[1] = lengths->as.integers[n];
        if (to[0] < 0 || to[0] > s->time || to[1] < 0 || to[1] > INT32_MAX)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s[%lld] is %lld and %s[%lld] is %lld, but they must be 0 to %lld, and at least 0",
                           inputs->name, (long long)n, (long long)to[0], lengths->name, (long long)n, (long long)to[1],
                           (long long)s->time);
        sum += to[1];
        s->longest = to[1] > s->longest ? to[1] : s->longest;
    }
    s->target_stride = t->strides[t->rank - 1];
    if (t->rank == 2 ? t->dims[0] != s->batch || t->dims[1] < s->longest : t->dims[0] < sum)
        return dp_fail(DP_ERR_ARGUMENT, "%s has fewer labels than %s says", targets->name, lengths->name);
    sum = 0;
    for (int64_t n = 0; n < s->batch; n++) {
        s->numbers[3 * n + 2] = (t->rank == 2 ? n : sum) * t->strides[0];
        sum += s->numbers[3 * n + 1];
    }
    return DP_OK;
}

/* Everything but the outputs. args: log_probs, targets, input_lengths, target_lengths; flags: blank, zero_infinity. */
static dp_status take_inputs(const dp_operator_call *call, const dp_arg *args, const dp_arg *flags,
                             dp_status (*run)(dp_plan *), dp_plan **out_plan) {
    const dp_tensor *p = args[0].as.tensor, *t = args[1].as.tensor;
    dp_status status = dp_element_expect(&args[0], call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(&args[1], DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && ((p->rank != 2 && p->rank != 3) || (t->rank != 1 && t->rank != 2)))
        status = dp_fail(DP_ERR_ARGUMENT, "%s and %s have %d and %d dimensions, but must have 2 or 3, and 1 or 2",
                         args[0].name, args[1].name, p->rank, t->rank);
    if (status != DP_OK)
        return status;
    int64_t batch = p->rank == 3 ? p->dims[1] : 1, blank = dp_arg_integer(&flags[0], 0);
    if (blank < 0 || blank >= p->dims[p->rank - 1])
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be one of the classes, 0 to %lld", flags[0].name,
                       (long long)blank, (long long)p->dims[p->rank - 1] - 1);
    dp_plan *plan = dp_plan_new(call, run, sizeof(state) + (size_t)batch * 3 * sizeof(int64_t));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    s->probs = args[0].slot;
    s->targets = args[1].slot;
    s->time = p->dims[0];
    s->batch = batch;
    s->classes = p->dims[p->rank - 1];
    s->blank = blank;
    s->zero_infinity = dp_arg_integer(&flags[1], 0) != 0;
    s->probs_stride[0] = p->strides[0];
    s->probs_stride[1] = p->rank == 3 ? p->strides[1] : 0;
    s->probs_stride[2] = p->strides[p->rank - 1];
    s->load_target = dp_elementwise_current()->load[t->element][DP_COMPUTE_I64];
    plan->path = "sequences";
    *out_plan = plan;
    return take_lengths(&args[2], &args[3], &args[1], s);
}

/* loss and the gradient that comes for it: one number each, `what` of the batch. */
static dp_status take_loss(const dp_operator_call *call, const dp_arg *arg, const state *s, int *out_slot,
                           int64_t *out_stride) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, call->op->elements);
    if (status == DP_OK && (t->rank > 1 || dp_tensor_count(t) != s->batch))
        status = dp_fail(DP_ERR_ARGUMENT, "%s must have one element for each of the batch, %lld", arg->name,
                         (long long)s->batch);
    *out_slot = arg->slot;
    *out_stride = t->rank ? t->strides[0] : 0;
    return status;
}

static dp_status take_alpha(const dp_operator_call *call, const dp_arg *arg, state *s) {
    const dp_tensor *t = arg->as.tensor;
    int64_t dims[] = {s->batch, s->time, 2 * s->longest + 1};
    dp_status status = dp_element_expect(arg, call->op->elements);
    if (t->rank == 3 && t->dims[2] > dims[2])
        dims[2] = t->dims[2];
    if (status == DP_OK)
        status = dp_shape_expect(t, arg->name, dims, 3, "batch, time, twice the longest target and one more");
    if (status != DP_OK)
        return status;
    s->states = dims[2];
    s->alpha = arg->slot;
    s->alpha_stride[0] = t->strides[1];
    s->alpha_stride[1] = t->strides[0];
    s->alpha_stride[2] = t->strides[2];
    return DP_OK;
}

static dp_status give(dp_status status, dp_plan **plan) {
    if (status != DP_OK) {
        dp_plan_free(*plan);
        *plan = NULL;
    }
    return status;
}

static dp_status ctc(const dp_operator_call *call, dp_plan **out_plan) {
    *out_plan = NULL;
    dp_status status = take_inputs(call, call->in, &call->in[4], run_forward, out_plan);
    if (!*out_plan)
        return status;
    state *s = dp_plan_state(*out_plan);
    if (status == DP_OK)
        status = take_loss(call, &call->out[0], s, &s->loss, &s->loss_stride);
    if (status == DP_OK)
        status = take_alpha(call, &call->out[1], s);
    for (int i = 0; i < 2 && status == DP_OK; i++)
        status = dp_places_expect(&call->out[i]);
    return give(status, out_plan);
}

static dp_status ctc_backward(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    const dp_tensor *p = in[1].as.tensor, *t = out->as.tensor;
    *out_plan = NULL;
    dp_status status = take_inputs(call, &in[1], &in[7], run_backward, out_plan);
    if (!*out_plan)
        return status;
    state *s = dp_plan_state(*out_plan);
    if (status == DP_OK)
        status = take_loss(call, &in[0], s, &s->grad, &s->grad_stride);
    if (status == DP_OK)
        status = take_loss(call, &in[5], s, &s->loss, &s->loss_stride);
    if (status == DP_OK)
        status = take_alpha(call, &in[6], s);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(t, out->name, p->dims, p->rank, in[1].name);
    if (status == DP_OK)
        status = dp_places_expect(out);
    s->out = out->slot;
    s->out_stride[0] = status == DP_OK ? t->strides[0] : 0;
    s->out_stride[1] = status == DP_OK && t->rank == 3 ? t->strides[1] : 0;
    s->out_stride[2] = status == DP_OK ? t->strides[t->rank - 1] : 0;
    return give(status, out_plan);
}

extern const dp_function dp_loss_ctc, dp_loss_ctc_backward;
const dp_function dp_loss_ctc = {"ctc", ctc, NULL, 0, 0};
const dp_function dp_loss_ctc_backward = {"ctc_backward", ctc_backward, NULL, 0, 0};
