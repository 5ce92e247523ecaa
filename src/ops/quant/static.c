/*
 * static.c - quantisation with given scales, line by line in float:
 *   ascend(x, scale, offset, sqrt, rounding, type, axis) -> y      y = round(x * scale + offset); with sqrt, scale *
 * scale anti(x, scale, offset, sqrt, type) -> y                        y = (x + offset) * scale; with sqrt, * scale
 * once more affine(x, scale, zero point, axis) -> y                        y = round(x / scale) + zero point Rounding
 * is round (nearest, ties to even), floor, ceil or trunc. Results saturate.
 */
#include <math.h>
#include <string.h>

#include "ops/quant/quant.h"

typedef enum kind { ASCEND, ANTI, AFFINE } kind;

typedef struct state {
    dp_lines lines;
    kind kind;
    dp_quant_side small; /* the side of integers */
    int wide, scale, offset;
    dp_quant_round how;
    bool square;
} state;

static void affine_line(const state *s, float *y, const float *x, const float *scale, const float *zero, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double v = rint((double)(x[i] / scale[i])) + (zero ? (double)zero[i] : 0);
        v = v == v ? v : 0;
        y[i] = (float)(v < s->small.low ? s->small.low : v > s->small.high ? s->small.high : v);
    }
}

static void run_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_quant_table *t = dp_quant_current();
    const state *s = dp_plan_state(plan);
    const size_t n = (size_t)lines->inner.count;
    float *x = buffers, *squared = buffers + n, *shift = buffers + 2 * n, *y = buffers + 3 * n;
    for (size_t line = begin; line < end; line++) {
        const int64_t at = (int64_t)line;
        const float *scale = dp_lines_load(lines, plan, s->scale, at, squared);
        const float *offset = s->offset >= 0 ? dp_lines_load(lines, plan, s->offset, at, shift) : NULL;
        if (s->square) {
            t->multiply(squared, scale, scale, n);
            scale = squared;
        }
        if (s->kind == ANTI) {
            const float *from = dp_quant_load(lines, plan, &s->small, at, x);
            for (size_t i = 0; i < n; i++)
                y[i] = (offset ? from[i] + offset[i] : from[i]) * scale[i];
            dp_lines_store(lines, plan, s->wide, at, y);
            continue;
        }
        const float *from = dp_lines_load(lines, plan, s->wide, at, x);
        if (s->kind == AFFINE)
            affine_line(s, y, from, scale, offset, n);
        else
            t->round(y, from, scale, offset, n, s->how, s->small.low, s->small.high);
        dp_quant_store(lines, plan, &s->small, at, y);
    }
}

static dp_status run(dp_plan *plan) {
    return dp_lines_run(plan, &((state *)dp_plan_state(plan))->lines, 4, run_lines);
}

/* wide: the side of floats. */
static dp_status build(const dp_operator_call *call, state *s, const dp_arg *wide, const dp_arg *small,
                       uint32_t small_elements, const dp_arg *scale, const dp_arg *offset, int64_t axis_asked,
                       const char *axis_name) {
    const dp_tensor *t = wide->as.tensor;
    int axis = 0;
    dp_status status = dp_element_expect(wide, call->op->elements);
    if (status == DP_OK)
        status = dp_dim_check(axis_asked, t, axis_name, &axis);
    if (status != DP_OK)
        return status;
    bool in_line[DP_TENSOR_DIMS] = {false};
    if (t->rank)
        in_line[t->rank - 1] = true;
    const uint32_t scales = DP_EL_HALVES | DP_EL_BIT(DP_F32);
    dp_lines_begin(&s->lines, t->dims, t->rank, in_line);
    s->wide = dp_lines_add(&s->lines, wide, t->strides, in_line, t->rank);
    status = dp_quant_add(&s->lines, small, small_elements, t->dims, t->rank, in_line, &s->small);
    if (status == DP_OK)
        status = dp_quant_add_scale(&s->lines, scale, scales, t->dims, t->rank, axis, in_line, &s->scale);
    if (status == DP_OK)
        status = dp_quant_add_scale(&s->lines, offset, s->kind == AFFINE ? scales | DP_EL_INTS : scales, t->dims,
                                    t->rank, axis, in_line, &s->offset);
    dp_lines_end(&s->lines);
    return status;
}

static dp_status finish(const dp_operator_call *call, const state *s, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = s->small.view < 0 ? "lines of 4-bit integers" : "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status read_rounding(const dp_arg *arg, dp_quant_round *out) {
    static const char *const names[] = {"round", "floor", "ceil", "trunc"};
    *out = DP_QUANT_RINT;
    if (arg->kind != DP_ARG_TEXT || !*arg->as.text)
        return DP_OK;
    for (int i = 0; i < 4; i++)
        if (strcmp(arg->as.text, names[i]) == 0) {
            *out = (dp_quant_round)i;
            return DP_OK;
        }
    return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.32s\", but must be round, floor, ceil or trunc", arg->name,
                   arg->as.text);
}

static dp_status prepare_ascend(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s = {.kind = ASCEND, .square = dp_arg_integer(&a[3], 0) != 0};
    dp_status status = read_rounding(&a[4], &s.how);
    if (status == DP_OK)
        status = dp_quant_type_expect(&a[5], &call->out[0]);
    if (status == DP_OK)
        status = build(call, &s, &a[0], &call->out[0], 0, &a[1], &a[2], dp_arg_integer(&a[6], -1), a[6].name);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

static dp_status prepare_anti(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s = {.kind = ANTI, .square = dp_arg_integer(&a[3], 0) != 0};
    dp_status status = dp_quant_type_expect(&a[4], &call->out[0]);
    if (status == DP_OK)
        status = build(call, &s, &call->out[0], &a[0], 0, &a[1], &a[2], -1, a[1].name);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

static dp_status prepare_affine(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s = {.kind = AFFINE};
    if (a[3].kind == DP_ARG_INTEGER && a[3].as.integer != call->out[0].as.tensor->element)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %s, but %s has elements of type %s", a[3].name,
                       dp_element_name((int)a[3].as.integer), call->out[0].name,
                       dp_element_name(call->out[0].as.tensor->element));
    dp_status status = build(call, &s, &a[0], &call->out[0], DP_EL_BIT(DP_U8) | DP_EL_BIT(DP_I32), &a[1], &a[2],
                             dp_tensor_count(a[1].as.tensor) == 1 ? 0 : dp_arg_integer(&a[4], 0), a[4].name);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

extern const dp_function dp_quant_ascend, dp_quant_anti, dp_quant_affine;
const dp_function dp_quant_ascend = {"ascend", prepare_ascend, NULL, 0x54, 0};
const dp_function dp_quant_anti = {"anti", prepare_anti, NULL, 4, 0};
const dp_function dp_quant_affine = {"affine", prepare_affine, NULL, 4, 0};
