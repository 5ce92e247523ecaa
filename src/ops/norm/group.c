/*
 * group.c - normalisation of groups of channels, computed in float with sums in double:
 *   group(x, gamma, beta, N, C, HxW, groups, eps) -> y, mean, rstd
 *   group_silu(x, gamma, beta, groups, eps) -> y, mean, rstd                   y * sigmoid(y)
 *   group_swish(x, gamma, beta, groups, format, eps, activate, scale) -> y, mean, rstd   y * sigmoid(scale * y)
 * x is N x C x HxW; a line is a group of channels of one image. gamma and beta have one element per channel and may be
 * absent, as may mean and rstd, which have one per group.
 */
#include <math.h>
#include <string.h>

#include "ops/norm/norm.h"

typedef struct state {
    dp_lines lines;
    int y, x, mean, rstd; /* views; absent ones are -1 */
    dp_channel_values gamma, beta;
    double eps;
    int64_t groups, channels, spatial; /* channels of one group */
    bool swish;
    float scale;
} state;

/* x * sigmoid(scale * x) = silu(scale * x) / scale */
static void swish(float *y, size_t n, float scale) {
    static const double no_params[4] = {0}; /* rows read them whether they need them or not */
    const dp_elementwise_fn silu = dp_elementwise_current()->run[DP_ELEMENTWISE_silu][DP_COMPUTE_F32];
    const dp_line_table *t = dp_line_current();
    if (scale == 0) {
        t->scale(y, y, n, 0.5f);
        return;
    }
    for (size_t at = 0, count; at < n; at += count) {
        count = n - at < DP_TILE ? n - at : DP_TILE;
        if (scale != 1)
            t->scale(y + at, y + at, count, scale);
        silu(y + at, y + at, y + at, y + at, no_params, count);
        if (scale != 1)
            t->scale(y + at, y + at, count, 1 / scale);
    }
}

static void normalise(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count, spatial = (size_t)s->spatial;
    for (size_t i = begin; i < end; i++) {
        int64_t line = (int64_t)i, first = line % s->groups * s->channels;
        const float *x = dp_lines_load(lines, plan, s->x, line, dp_norm_buffer(buffers, n, 0));
        double mean = t->sum(x, n) / (double)n;
        double rstd = 1 / sqrt(t->squares(x, n, mean) / (double)n + s->eps);
        float *place = dp_lines_place(lines, plan, s->y, line), *y = place ? place : dp_norm_buffer(buffers, n, 1);
        for (int64_t c = 0; c < s->channels; c++) {
            double gamma = dp_channel_value(plan, &s->gamma, first + c, 1);
            double beta = dp_channel_value(plan, &s->beta, first + c, 0);
            size_t at = (size_t)c * spatial;
            t->multiply_add(y + at, x + at, spatial, (float)(rstd * gamma), (float)(beta - mean * rstd * gamma));
        }
        if (s->swish)
            swish(y, n, s->scale);
        if (!place)
            dp_lines_store(lines, plan, s->y, line, y);
        if (s->mean >= 0)
            dp_lines_store_one(lines, plan, s->mean, line, (float)mean);
        if (s->rstd >= 0)
            dp_lines_store_one(lines, plan, s->rstd, line, (float)rstd);
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    return dp_lines_run(plan, &s->lines, 2, normalise);
}

/* `number`: N, C, HxW, groups. */
static dp_status build(const dp_operator_call *call, const int64_t number[4], const char *groups_name, state *s) {
    const dp_arg *in = call->in, *out = call->out;
    const dp_tensor *x = in[0].as.tensor, *y = out[0].as.tensor;
    if (number[3] < 1 || number[1] % number[3])
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must divide the number of channels, %lld", groups_name,
                       (long long)number[3], (long long)number[1]);
    dp_status status = dp_shape_expect(y, out[0].name, x->dims, x->rank, "the input");
    if (status != DP_OK)
        return status;
    if (!dp_tensor_is_contiguous(x) || !dp_tensor_is_contiguous(y))
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s must be contiguous", in[0].name, out[0].name);
    s->groups = number[3];
    s->channels = number[1] / number[3];
    s->spatial = number[2];
    int64_t length = s->channels * s->spatial, dims[2] = {number[0] * s->groups, length}, strides[2] = {length, 1},
            one[2] = {1, 0};
    const bool in_line[2] = {false, true};
    dp_lines_begin(&s->lines, dims, 2, in_line);
    s->y = dp_lines_add(&s->lines, &out[0], strides, in_line, 2);
    s->x = dp_lines_add(&s->lines, &in[0], strides, in_line, 2);
    s->mean = s->rstd = -1;
    for (int k = 1; k <= 2; k++) {
        if (!dp_norm_present(&out[k]))
            continue;
        const dp_tensor *statistic = out[k].as.tensor;
        if (dp_tensor_count(statistic) != dims[0] || !dp_tensor_is_contiguous(statistic))
            return dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous with one element per group: %lld", out[k].name,
                           (long long)dims[0]);
        *(k == 1 ? &s->mean : &s->rstd) = dp_lines_add(&s->lines, &out[k], one, in_line, 2);
    }
    dp_lines_end(&s->lines);
    status = dp_channel_values_of(&in[1], number[1], &s->gamma);
    return status == DP_OK ? dp_channel_values_of(&in[2], number[1], &s->beta) : status;
}

static dp_status make_plan(const dp_operator_call *call, const state *s, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_group(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    state s = {.eps = dp_arg_real(&call->in[7], 0)};
    int64_t number[4], total;
    dp_status status = dp_norm_check_types(call);
    if (status != DP_OK)
        return status;
    for (int i = 0; i < 4; i++) {
        number[i] = dp_arg_integer(&call->in[3 + i], 0);
        if (number[i] < (i == 3) || number[i] > (int64_t)1 << 40)
            return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the size of the input it stands for",
                           call->in[3 + i].name, (long long)number[i]);
    }
    if (__builtin_mul_overflow(number[0], number[1], &total) || __builtin_mul_overflow(total, number[2], &total) ||
        total != dp_tensor_count(x))
        return dp_fail(DP_ERR_ARGUMENT, "%s * %s * %s is not the number of elements of %s, %lld", call->in[3].name,
                       call->in[4].name, call->in[5].name, call->in[0].name, (long long)dp_tensor_count(x));
    status = build(call, number, call->in[6].name, &s);
    return status == DP_OK ? make_plan(call, &s, out_plan) : status;
}

static dp_status prepare_shape(const dp_operator_call *call, state *s, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    dp_status status = dp_norm_check_types(call);
    if (status != DP_OK)
        return status;
    if (x->rank < 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least 2: batch and channels",
                       call->in[0].name, x->rank);
    int64_t number[4] = {x->dims[0], x->dims[1], 1, dp_arg_integer(&call->in[3], 0)};
    for (int d = 2; d < x->rank; d++)
        number[2] *= x->dims[d];
    status = build(call, number, call->in[3].name, s);
    return status == DP_OK ? make_plan(call, s, out_plan) : status;
}

static dp_status prepare_silu(const dp_operator_call *call, dp_plan **out_plan) {
    state s = {.eps = dp_arg_real(&call->in[4], 0), .swish = true, .scale = 1};
    return prepare_shape(call, &s, out_plan);
}

static dp_status prepare_swish(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *format = &call->in[4];
    state s = {.eps = dp_arg_real(&call->in[5], 0),
               .swish = dp_arg_integer(&call->in[6], 0) != 0,
               .scale = (float)dp_arg_real(&call->in[7], 1)};
    if (format->kind == DP_ARG_TEXT && strcmp(format->as.text, "NCHW"))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is \"%s\", but must be \"NCHW\"", format->name, format->as.text);
    return prepare_shape(call, &s, out_plan);
}

extern const dp_function dp_norm_group, dp_norm_group_silu, dp_norm_group_swish;
const dp_function dp_norm_group = {"group", prepare_group, NULL, 6, 6};
const dp_function dp_norm_group_silu = {"group_silu", prepare_silu, NULL, 6, 6};
const dp_function dp_norm_group_swish = {"group_swish", prepare_swish, NULL, 6 | 1 << 4, 6};
