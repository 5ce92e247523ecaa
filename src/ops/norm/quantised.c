/*
 * quantised.c - a norm whose result is quantised with given scales, in float, the norm's sum in double:
 *   add_rms_quant(x1, x2, gamma, scales1, scales2, zero1, zero2, beta, axis, divide, eps) -> y1, y2, sum, normed
 *   sum = x1 + x2, normed = sum / sqrt(mean square + eps) * gamma + beta along the last dim; y = round(normed / scales
 * + zero), without divide * scales; to the nearest, ties to even, cut to the range. scales2, zeros, beta, y2 (of
 * scales2) and normed may be absent. Scales and zeros are one for all, or one for each element of a line.
 */
#include <math.h>
#include <string.h>

#include "ops/norm/norm.h"
#include "ops/quant/quant.h"

enum { RESULTS = 2, BUFFERS = 6 };

typedef struct state {
    dp_lines lines;
    int x1, x2, gamma, beta, sum, normed, scale[RESULTS], zero[RESULTS]; /* views; -1: absent */
    dp_quant_side y[RESULTS];
    int n_results;
    bool divide;
    double eps;
} state;

static void one_result(dp_plan *plan, const dp_lines *lines, const state *s, int k, int64_t line, const float *normed,
                       float *buffers) {
    const dp_quant_table *q = dp_quant_current();
    const size_t n = (size_t)lines->inner.count;
    float *y = dp_norm_buffer(buffers, n, 3);
    const float *scale = dp_lines_load(lines, plan, s->scale[k], line, dp_norm_buffer(buffers, n, 4));
    const float *zero =
        s->zero[k] < 0 ? NULL : dp_lines_load(lines, plan, s->zero[k], line, dp_norm_buffer(buffers, n, 5));
    if (s->divide) {
        for (size_t i = 0; i < n; i++)
            y[i] = normed[i] / scale[i];
        q->round(y, y, NULL, zero, n, DP_QUANT_RINT, s->y[k].low, s->y[k].high);
    } else {
        q->round(y, normed, scale, zero, n, DP_QUANT_RINT, s->y[k].low, s->y[k].high);
    }
    dp_quant_store(lines, plan, &s->y[k], line, y);
}

static void run_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    const size_t n = (size_t)lines->inner.count;
    float *sum = dp_norm_buffer(buffers, n, 0), *normed = dp_norm_buffer(buffers, n, 1),
          *room = dp_norm_buffer(buffers, n, 2);
    for (size_t i = begin; i < end; i++) {
        const int64_t line = (int64_t)i;
        const float *x1 = dp_lines_load(lines, plan, s->x1, line, normed);
        t->add(sum, x1, dp_lines_load(lines, plan, s->x2, line, room), n);
        dp_lines_store(lines, plan, s->sum, line, sum);
        double rstd = 1 / sqrt(t->squares(sum, n, 0) / (double)n + s->eps);
        const float *gamma = dp_lines_load(lines, plan, s->gamma, 0, room),
                    *beta = s->beta < 0 ? NULL : dp_lines_load(lines, plan, s->beta, 0, dp_norm_buffer(buffers, n, 3));
        t->affine(normed, sum, n, 0, (float)rstd, gamma, beta);
        if (s->normed >= 0)
            dp_lines_store(lines, plan, s->normed, line, normed);
        for (int k = 0; k < s->n_results; k++)
            one_result(plan, lines, s, k, line, normed, buffers);
    }
}

static dp_status run(dp_plan *plan) {
    return dp_lines_run(plan, &((const state *)dp_plan_state(plan))->lines, BUFFERS, run_lines);
}

static dp_status add_vector(dp_lines *lines, const dp_arg *arg, uint32_t elements, const dp_tensor *x,
                            const bool *in_line, int *out_view) {
    int64_t strides[DP_TENSOR_DIMS] = {0};
    *out_view = -1;
    if (!dp_norm_present(arg))
        return DP_OK;
    dp_status status = dp_element_expect(arg, elements);
    if (status == DP_OK)
        status =
            dp_shape_expect(arg->as.tensor, arg->name, x->dims + x->rank - 1, 1, "the last dimension of the input");
    if (status != DP_OK)
        return status;
    strides[x->rank - 1] = arg->as.tensor->strides[0];
    *out_view = dp_lines_add(lines, arg, strides, in_line, x->rank);
    return DP_OK;
}

static dp_status add_same(dp_lines *lines, const dp_arg *arg, const dp_operator_call *call, const dp_tensor *x,
                          const bool *in_line, bool written, int *out_view) {
    *out_view = -1;
    if (!dp_norm_present(arg))
        return DP_OK;
    dp_status status = dp_element_expect(arg, written ? DP_EL_BIT(x->element) : call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(arg->as.tensor, arg->name, x->dims, x->rank, "the input");
    if (status == DP_OK && written)
        status = dp_places_expect(arg);
    if (status == DP_OK)
        *out_view = dp_lines_add(lines, arg, arg->as.tensor->strides, in_line, x->rank);
    return status;
}

static dp_status add_results(const dp_operator_call *call, const dp_tensor *x, const bool *in_line, state *s) {
    const dp_arg *in = call->in, *out = call->out;
    const uint32_t scales = DP_EL_HALVES | DP_EL_BIT(DP_F32);
    dp_status status = DP_OK;
    s->n_results = dp_norm_present(&in[4]) ? 2 : 1;
    for (int k = 0; k < s->n_results && status == DP_OK; k++) {
        const dp_arg *y = &out[k], *zero = &in[5 + k];
        if (!dp_norm_present(y))
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s is given", y->name, in[3 + k].name);
        status = dp_quant_add(&s->lines, y, 0, x->dims, x->rank, in_line, &s->y[k]);
        if (status == DP_OK)
            status =
                dp_quant_add_scale(&s->lines, &in[3 + k], scales, x->dims, x->rank, x->rank - 1, in_line, &s->scale[k]);
        s->zero[k] = -1;
        if (status == DP_OK && dp_norm_present(zero))
            status = dp_quant_add_scale(&s->lines, zero, scales | DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I8), x->dims,
                                        x->rank, x->rank - 1, in_line, &s->zero[k]);
    }
    return status;
}

static dp_status add_rms_quant(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    const dp_tensor *x = in[0].as.tensor;
    state s = {.divide = dp_arg_integer(&in[9], 1) != 0, .eps = dp_arg_real(&in[10], 1e-6)};
    bool in_line[DP_TENSOR_DIMS] = {false};
    int64_t axis = dp_arg_integer(&in[8], -1);
    if (x->rank < 1 || (axis != -1 && axis != x->rank - 1))
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has %d dimensions and %s is %lld, but it must be -1, the last of at least 1", in[0].name,
                       x->rank, in[8].name, (long long)axis);
    in_line[x->rank - 1] = true;
    dp_lines_begin(&s.lines, x->dims, x->rank, in_line);
    dp_status status = add_same(&s.lines, &in[0], call, x, in_line, false, &s.x1);
    if (status == DP_OK)
        status = add_same(&s.lines, &in[1], call, x, in_line, false, &s.x2);
    if (status == DP_OK)
        status = add_same(&s.lines, &out[2], call, x, in_line, true, &s.sum);
    if (status == DP_OK)
        status = add_same(&s.lines, call->n_out > 3 ? &out[3] : NULL, call, x, in_line, true, &s.normed);
    if (status == DP_OK)
        status = add_vector(&s.lines, &in[2], call->op->elements, x, in_line, &s.gamma);
    if (status == DP_OK)
        status = add_vector(&s.lines, &in[7], call->op->elements, x, in_line, &s.beta);
    if (status == DP_OK)
        status = add_results(call, x, in_line, &s);
    dp_lines_end(&s.lines);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof s) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_norm_add_rms_quant;
const dp_function dp_norm_add_rms_quant = {"add_rms_quant", add_rms_quant, NULL, 0xf0, 2 | 8};
