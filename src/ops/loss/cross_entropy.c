/*
 * cross_entropy.c - losses over the classes, the last dimension, in float with sums in double:
 *   softmax_cross_entropy(features, labels) -> loss, backprop      labels are distributions: loss = sum over classes of
 *       label * (log sum e^x - x), backprop = softmax(x) - label
 */
#include <math.h>

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
