/*
 * cross_entropy.c - losses over the classes, the last dimension, in float with sums in double:
 *   softmax_cross_entropy(features, labels) -> loss, backprop      labels are distributions: loss = sum over classes of
 *       label * (log sum e^x - x), backprop = softmax(x) - label
 *   cross_entropy(x, target, weight, reduction, ignored, smoothing, zloss scale, zloss wanted) -> loss, log_prob, -, -
 *   cross_entropy_grad(grad, log_prob, target, weight, -, -, reduction, ignored, smoothing, zloss scale) -> out
 *       targets are numbers of classes; with smoothing e and C classes a row's loss is -(1 - e) w[t] log_prob[t]
 *       - e / C * sum of w * log_prob, and 0 where the target is `ignored` (not looked at when below 0); mean divides
 *       the sum by the sum of w[t]
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/lines.h"

enum { LOSS, FEATURES, LABELS, BACKPROP };

static void soft_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    size_t n = (size_t)lines->inner.count;
    for (size_t line = begin; line < end; line++) {
        const float *x = dp_lines_load(lines, plan, FEATURES, (int64_t)line, buffers);
        const float *label = dp_lines_load(lines, plan, LABELS, (int64_t)line, buffers + n);
        float *y = buffers + 2 * n, max = t->max(x, n);
        if (isinf(max)) /* as softmax: the arithmetic below gives NaN */
            max = max > 0 ? max : 0;
        double sum = t->exp(y, x, n, max), logarithm = log(sum) + max, loss = 0;
        for (size_t i = 0; i < n; i++)
            loss += label[i] * (logarithm - x[i]);
        t->scale(y, y, n, (float)(1 / sum));
        for (size_t i = 0; i < n; i++)
            y[i] -= label[i];
        dp_lines_store_one(lines, plan, LOSS, (int64_t)line, (float)loss);
        dp_lines_store(lines, plan, BACKPROP, (int64_t)line, y);
    }
}

static dp_status run_soft(dp_plan *plan) {
    return dp_lines_run(plan, dp_plan_state(plan), 3, soft_lines);
}

static dp_status prepare_soft(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *x = &call->in[0], *label = &call->in[1], *loss = &call->out[0], *backprop = &call->out[1];
    const dp_arg *all[] = {x, label, loss, backprop};
    const dp_tensor *t = x->as.tensor;
    dp_status status = DP_OK;
    for (int i = 0; i < 4 && status == DP_OK; i++)
        status = dp_element_expect(all[i], call->op->elements);
    if (status == DP_OK && t->rank < 1)
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions, but must have at least 1, the last of classes", x->name);
    if (status == DP_OK)
        status = dp_shape_expect(label->as.tensor, label->name, t->dims, t->rank, "the features");
    if (status == DP_OK)
        status = dp_shape_expect(backprop->as.tensor, backprop->name, t->dims, t->rank, "the features");
    if (status == DP_OK)
        status = dp_shape_expect(loss->as.tensor, loss->name, t->dims, t->rank - 1, "the features without classes");
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run_soft, sizeof(dp_lines));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    dp_lines *lines = dp_plan_state(plan);
    bool in_line[DP_TENSOR_DIMS] = {false};
    int64_t strides[DP_TENSOR_DIMS] = {0};
    in_line[t->rank - 1] = true;
    for (int d = 0; d < t->rank - 1; d++)
        strides[d] = loss->as.tensor->strides[d];
    dp_lines_begin(lines, t->dims, t->rank, in_line);
    dp_lines_add(lines, loss, strides, in_line, t->rank);
    dp_lines_add(lines, x, t->strides, in_line, t->rank);
    dp_lines_add(lines, label, label->as.tensor->strides, in_line, t->rank);
    dp_lines_add(lines, backprop, backprop->as.tensor->strides, in_line, t->rank);
    dp_lines_end(lines);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_loss_softmax_cross_entropy;
const dp_function dp_loss_softmax_cross_entropy = {"softmax_cross_entropy", prepare_soft, NULL, 0, 0};

/* ---- targets by number ---- */

typedef enum reduction { NONE, MEAN, SUM } reduction;
enum { OUT, IN }; /* views */

typedef struct hard {
    dp_lines lines;
    int64_t ignored, target_stride, weight_stride, loss_stride;
    int target, weight, loss; /* slots; loss: or its gradient; weight -1: absent */
    reduction how;
    double smoothing;
    /* of one run */
    double *losses, *weights; /* per row */
    _Atomic int64_t bad_row;  /* -1: none */
    double scale;
} hard;

static double read_number(dp_plan *plan, int slot, int64_t offset) {
    const dp_tensor *t = &plan->tensors[slot].view;
    double value;
    dp_elementwise_current()->load[t->element][DP_COMPUTE_F64](
        &value, (const char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element), 1);
    return value;
}

static void write_number(dp_plan *plan, int slot, int64_t offset, double value) {
    const dp_tensor *t = &plan->tensors[slot].view;
    dp_elementwise_current()->store[t->element][DP_COMPUTE_F64](
        (char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element), &value, 1);
}

/* False for a row that does not count: its target is ignored, or no class (then the run fails). */
static bool target_of(dp_plan *plan, hard *s, int64_t row, int64_t *out_target) {
    *out_target = (int64_t)read_number(plan, s->target, row * s->target_stride);
    if (s->ignored >= 0 && *out_target == s->ignored)
        return false;
    if (*out_target >= 0 && *out_target < s->lines.inner.count)
        return true;
    atomic_store(&s->bad_row, row);
    return false;
}

static double weight_of(dp_plan *plan, const hard *s, int64_t class) {
    return s->weight < 0 ? 1 : read_number(plan, s->weight, class * s->weight_stride);
}

static void hard_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    hard *s = dp_plan_state(plan);
    const size_t n = (size_t)lines->inner.count;
    for (size_t row = begin; row < end; row++) {
        const float *x = dp_lines_load(lines, plan, IN, (int64_t)row, buffers);
        float *y = buffers + n, max = t->max(x, n);
        if (isinf(max))
            max = max > 0 ? max : 0;
        const double logarithm = log(t->exp(y, x, n, max)) + max;
        t->shift(y, x, n, (float)logarithm);
        dp_lines_store(lines, plan, OUT, (int64_t)row, y);
        int64_t target;
        if (!target_of(plan, s, (int64_t)row, &target))
            continue;
        double weight = weight_of(plan, s, target), smooth = 0;
        for (size_t c = 0; s->smoothing != 0 && c < n; c++)
            smooth += weight_of(plan, s, (int64_t)c) * (x[c] - logarithm);
        s->weights[row] = weight;
        s->losses[row] = -(1 - s->smoothing) * weight * (x[target] - logarithm) - s->smoothing / (double)n * smooth;
    }
}

static void grad_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    hard *s = dp_plan_state(plan);
    const size_t n = (size_t)lines->inner.count;
    for (size_t row = begin; row < end; row++) {
        const float *log_prob = dp_lines_load(lines, plan, IN, (int64_t)row, buffers);
        float *y = buffers + n;
        int64_t target;
        memset(y, 0, n * sizeof *y);
        if (target_of(plan, s, (int64_t)row, &target)) {
            const double scale = s->how == NONE ? read_number(plan, s->loss, (int64_t)row * s->loss_stride) : s->scale;
            double sum = 0; /* of the gradient by log_prob, which softmax takes away */
            for (size_t c = 0; c < n; c++) {
                double g = s->smoothing == 0 ? 0 : -s->smoothing / (double)n * weight_of(plan, s, (int64_t)c);
                g -= (int64_t)c == target ? (1 - s->smoothing) * weight_of(plan, s, target) : 0;
                sum += g;
                y[c] = (float)g;
            }
            for (size_t c = 0; c < n; c++)
                y[c] = (float)(scale * (y[c] - exp(log_prob[c]) * sum));
        }
        dp_lines_store(lines, plan, OUT, (int64_t)row, y);
    }
}

static dp_status hard_verdict(dp_plan *plan, hard *s, dp_status status) {
    int64_t row = atomic_load(&s->bad_row);
    if (status != DP_OK || row < 0)
        return status;
    return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld", plan->tensors[s->target].name,
                   (long long)row, (long long)read_number(plan, s->target, row * s->target_stride),
                   (long long)s->lines.inner.count - 1);
}

static dp_status run_hard(dp_plan *plan) {
    hard *s = dp_plan_state(plan);
    const size_t rows = (size_t)s->lines.outer.count;
    atomic_store(&s->bad_row, -1);
    s->losses = dp_alloc(DP_MEM_RUNTIME, (2 * rows + 1) * sizeof(double));
    if (!s->losses)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %zu losses", rows);
    s->weights = s->losses + rows;
    dp_status status = hard_verdict(plan, s, dp_lines_run(plan, &s->lines, 2, hard_lines));
    double sum = 0, total = 0;
    for (size_t row = 0; row < rows && status == DP_OK; row++) {
        sum += s->losses[row];
        total += s->weights[row];
        if (s->how == NONE)
            write_number(plan, s->loss, (int64_t)row * s->loss_stride, s->losses[row]);
    }
    if (s->how != NONE && status == DP_OK)
        write_number(plan, s->loss, 0, s->how == MEAN ? sum / total : sum);
    dp_free(s->losses);
    return status;
}

static dp_status run_grad(dp_plan *plan) {
    hard *s = dp_plan_state(plan);
    double total = 0;
    atomic_store(&s->bad_row, -1);
    for (int64_t row = 0, target; s->how == MEAN && row < s->lines.outer.count; row++)
        total += target_of(plan, s, row, &target) ? weight_of(plan, s, target) : 0;
    s->scale = s->how == NONE ? 0 : read_number(plan, s->loss, 0) / (s->how == MEAN ? total : 1);
    return hard_verdict(plan, s, dp_lines_run(plan, &s->lines, 2, grad_lines));
}

static dp_status read_reduction(const dp_arg *arg, reduction *out) {
    static const char *const names[] = {"none", "mean", "sum"};
    for (int i = 0; i < 3; i++)
        if (arg->kind == DP_ARG_TEXT && strcmp(arg->as.text, names[i]) == 0) {
            *out = (reduction)i;
            return DP_OK;
        }
    return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.32s\", but must be none, mean or sum", arg->name,
                   arg->kind == DP_ARG_TEXT ? arg->as.text : "");
}

typedef struct hard_request {
    const dp_arg *in, *target, *weight, *reduction, *ignored, *smoothing, *zloss_scale, *loss, *out;
} hard_request;

static dp_status check_hard(const dp_operator_call *call, const hard_request *r, hard *s) {
    const dp_tensor *t = r->in->as.tensor;
    dp_status status = dp_element_expect(r->in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(r->out, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(r->loss, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(r->target, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && t->rank != 2)
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2, rows and classes", r->in->name, t->rank);
    if (status == DP_OK)
        status = dp_shape_expect(r->out->as.tensor, r->out->name, t->dims, 2, "the input");
    if (status == DP_OK)
        status = dp_shape_expect(r->target->as.tensor, r->target->name, t->dims, 1, "one per row");
    if (status == DP_OK && r->weight->kind == DP_ARG_TENSOR)
        status = dp_element_expect(r->weight, call->op->elements);
    if (status == DP_OK && r->weight->kind == DP_ARG_TENSOR)
        status = dp_shape_expect(r->weight->as.tensor, r->weight->name, t->dims + 1, 1, "one per class");
    if (status == DP_OK)
        status = read_reduction(r->reduction, &s->how);
    if (status == DP_OK && s->how == NONE)
        status = dp_shape_expect(r->loss->as.tensor, r->loss->name, t->dims, 1, "one per row");
    else if (status == DP_OK && dp_tensor_count(r->loss->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", r->loss->name,
                         (long long)dp_tensor_count(r->loss->as.tensor));
    s->smoothing = dp_arg_real(r->smoothing, 0);
    if (status == DP_OK && !(s->smoothing >= 0 && s->smoothing < 1))
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be at least 0 and below 1", r->smoothing->name, s->smoothing);
    if (status == DP_OK && dp_arg_real(r->zloss_scale, 0) != 0)
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s is %g, but only 0 is offered", r->zloss_scale->name,
                         dp_arg_real(r->zloss_scale, 0));
    return status;
}

static dp_status prepare_hard(const dp_operator_call *call, const hard_request *r, dp_status (*run)(dp_plan *),
                              dp_plan **out_plan) {
    hard s = {
        .ignored = dp_arg_integer(r->ignored, -100), .weight = -1, .target = r->target->slot, .loss = r->loss->slot};
    dp_status status = check_hard(call, r, &s);
    if (status != DP_OK)
        return status;
    const dp_tensor *t = r->in->as.tensor;
    const bool in_line[2] = {false, true};
    s.target_stride = r->target->as.tensor->strides[0];
    s.loss_stride = s.how == NONE ? r->loss->as.tensor->strides[0] : 0;
    if (r->weight->kind == DP_ARG_TENSOR) {
        s.weight = r->weight->slot;
        s.weight_stride = r->weight->as.tensor->strides[0];
    }
    dp_lines_begin(&s.lines, t->dims, 2, in_line);
    dp_lines_add(&s.lines, r->out, r->out->as.tensor->strides, in_line, 2);
    dp_lines_add(&s.lines, r->in, t->strides, in_line, 2);
    dp_lines_end(&s.lines);
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_cross_entropy(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    if (dp_arg_integer(&a[7], 0))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is true, but only false is offered", a[7].name);
    const hard_request r = {&a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6], &call->out[0], &call->out[1]};
    return prepare_hard(call, &r, run_hard, out_plan);
}

static dp_status prepare_cross_entropy_grad(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    const hard_request r = {&a[1], &a[2], &a[3], &a[6], &a[7], &a[8], &a[9], &a[0], &call->out[0]};
    return prepare_hard(call, &r, run_grad, out_plan);
}

extern const dp_function dp_loss_cross_entropy, dp_loss_cross_entropy_grad;
const dp_function dp_loss_cross_entropy = {"cross_entropy", prepare_cross_entropy, NULL, 4, 0};
const dp_function dp_loss_cross_entropy_grad = {"cross_entropy_grad", prepare_cross_entropy_grad, NULL, 0x38, 0};
