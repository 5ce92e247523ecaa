/*
 * norm.c - normalisation of lines, computed in float with sums in double:
 *   layer(x, normalizedShape, gamma, beta, eps) -> out, mean, rstd      mean and rstd have one element per line
 *   rms(x, gamma, eps) -> out, rstd                                     lines are the trailing dims that gamma has
 *   add_rms(x1, x2, gamma, eps) -> out, rstd, sum                       sum = x1 + x2
 *   group(x, gamma, beta, N, C, HxW, groups, eps) -> out, mean, rstd
 * gamma, beta and all outputs but the first may be absent. rstd = 1 / sqrt(variance + eps), or of the mean square.
 */
#include <math.h>
#include <string.h>

#include "ops/lines.h"

typedef enum kind { LAYER, RMS, ADD_RMS, GROUP } kind;

typedef struct state {
    dp_lines lines; /* absent views are -1 */
    kind kind;
    int out, x, x2, gamma, beta, mean, rstd, sum;
    double eps;
    int64_t groups, channels_per_group, spatial;
    int gamma_element, beta_element;
    int gamma_slot, beta_slot; /* of group norm, -1 absent */
    int64_t gamma_stride, beta_stride;
} state;

static float *buffer_at(float *buffers, size_t n, int index) {
    return buffers + n * (size_t)index;
}

static void store_statistics(dp_plan *plan, const dp_lines *lines, const state *s, int64_t line, double mean,
                             double rstd) {
    if (s->mean >= 0)
        dp_lines_store_one(lines, plan, s->mean, line, (float)mean);
    if (s->rstd >= 0)
        dp_lines_store_one(lines, plan, s->rstd, line, (float)rstd);
}

static void normalise(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count;
    const float *gamma = NULL, *beta = NULL;
    if (s->gamma >= 0)
        gamma = dp_lines_load(lines, plan, s->gamma, 0, buffer_at(buffers, n, 2));
    if (s->beta >= 0)
        beta = dp_lines_load(lines, plan, s->beta, 0, buffer_at(buffers, n, 3));
    for (size_t i = begin; i < end; i++) {
        int64_t line = (int64_t)i;
        const float *x = dp_lines_load(lines, plan, s->x, line, buffer_at(buffers, n, 0));
        if (s->x2 >= 0) {
            float *sum = buffer_at(buffers, n, 4);
            t->add(sum, x, dp_lines_load(lines, plan, s->x2, line, buffer_at(buffers, n, 1)), n);
            if (s->sum >= 0)
                dp_lines_store(lines, plan, s->sum, line, sum);
            x = sum;
        }
        bool centred = s->kind == LAYER;
        double mean = centred ? t->sum(x, n) / (double)n : 0;
        double rstd = 1 / sqrt(t->squares(x, n, mean) / (double)n + s->eps);
        float *place = dp_lines_place(lines, plan, s->out, line), *y = place ? place : buffer_at(buffers, n, 1);
        t->affine(y, x, n, (float)mean, (float)rstd, gamma, beta);
        if (!place)
            dp_lines_store(lines, plan, s->out, line, y);
        store_statistics(plan, lines, s, line, mean, rstd);
    }
}

static float read_one(dp_plan *plan, int slot, int element, int64_t at) {
    float value;
    const char *data = (const char *)dp_plan_data(plan, slot) + at * (int64_t)dp_element_bytes(element);
    dp_elementwise_current()->load[element][DP_COMPUTE_F32](&value, data, 1);
    return value;
}

/* A line is a group: channels_per_group runs of `spatial` elements, each with its own gamma and beta. */
static void normalise_groups(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count, spatial = (size_t)s->spatial;
    for (size_t i = begin; i < end; i++) {
        int64_t line = (int64_t)i, first = line % s->groups * s->channels_per_group;
        const float *x = dp_lines_load(lines, plan, s->x, line, buffer_at(buffers, n, 0));
        double mean = t->sum(x, n) / (double)n;
        double rstd = 1 / sqrt(t->squares(x, n, mean) / (double)n + s->eps);
        float *place = dp_lines_place(lines, plan, s->out, line), *y = place ? place : buffer_at(buffers, n, 1);
        for (int64_t c = 0; c < s->channels_per_group; c++) {
            double gamma =
                s->gamma_slot < 0 ? 1 : read_one(plan, s->gamma_slot, s->gamma_element, (first + c) * s->gamma_stride);
            double beta =
                s->beta_slot < 0 ? 0 : read_one(plan, s->beta_slot, s->beta_element, (first + c) * s->beta_stride);
            size_t at = (size_t)c * spatial;
            t->multiply_add(y + at, x + at, spatial, (float)(rstd * gamma), (float)(beta - mean * rstd * gamma));
        }
        if (!place)
            dp_lines_store(lines, plan, s->out, line, y);
        store_statistics(plan, lines, s, line, mean, rstd);
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    return dp_lines_run(plan, &s->lines, 5, s->kind == GROUP ? normalise_groups : normalise);
}

static bool present(const dp_operator_call *call, int output) {
    return output < call->n_out && call->out[output].kind == DP_ARG_TENSOR;
}

static dp_status check_types(const dp_operator_call *call) {
    dp_status status = DP_OK;
    for (int i = 0; i < call->n_in && status == DP_OK; i++)
        if (call->in[i].kind == DP_ARG_TENSOR)
            status = dp_element_expect(&call->in[i], call->op->elements);
    for (int i = 0; i < call->n_out && status == DP_OK; i++)
        if (call->out[i].kind == DP_ARG_TENSOR)
            status = dp_element_expect(&call->out[i], call->op->elements);
    return status;
}

/* One element per line: `out` has lines x 1 elements, in row-major order of the leading dims. */
static dp_status add_statistic(state *s, const dp_arg *out, const dp_tensor *x, int outer_rank, const bool *in_line,
                               int *view) {
    int64_t lines = 1, strides[DP_TENSOR_DIMS] = {0};
    for (int d = 0; d < outer_rank; d++)
        lines *= x->dims[d];
    if (dp_tensor_count(out->as.tensor) != lines)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have one per line: %lld", out->name,
                       (long long)dp_tensor_count(out->as.tensor), (long long)lines);
    bool same_dims = out->as.tensor->rank >= outer_rank;
    for (int d = 0; d < outer_rank && same_dims; d++)
        same_dims = out->as.tensor->dims[d] == x->dims[d];
    if (!same_dims && !dp_tensor_is_contiguous(out->as.tensor))
        return dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous or begin with the dimensions of the input", out->name);
    int64_t step = 1;
    for (int d = outer_rank - 1; d >= 0; d--) {
        strides[d] = same_dims ? out->as.tensor->strides[d] : step;
        step *= x->dims[d];
    }
    *view = dp_lines_add(&s->lines, out, strides, in_line, x->rank);
    return DP_OK;
}

/* gamma and beta: the trailing dims of x. */
static dp_status add_weight(state *s, const dp_arg *arg, const dp_tensor *x, int outer_rank, const bool *in_line,
                            int *view) {
    int64_t strides[DP_TENSOR_DIMS] = {0};
    dp_status status = dp_shape_expect(arg->as.tensor, arg->name, x->dims + outer_rank, x->rank - outer_rank,
                                       "the normalized dimensions");
    if (status != DP_OK)
        return status;
    for (int d = outer_rank; d < x->rank; d++)
        strides[d] = arg->as.tensor->strides[d - outer_rank];
    *view = dp_lines_add(&s->lines, arg, strides, in_line, x->rank);
    return DP_OK;
}

static dp_status add_same(state *s, const dp_arg *arg, const dp_tensor *x, const bool *in_line, int *view) {
    dp_status status = dp_shape_expect(arg->as.tensor, arg->name, x->dims, x->rank, "the input");
    if (status == DP_OK)
        *view = dp_lines_add(&s->lines, arg, arg->as.tensor->strides, in_line, x->rank);
    return status;
}

static dp_status outer_rank_of(const dp_operator_call *call, kind k, const dp_arg *gamma, int *out_rank) {
    const dp_tensor *x = call->in[0].as.tensor;
    int inner;
    if (k != LAYER) {
        inner = gamma->kind == DP_ARG_TENSOR ? gamma->as.tensor->rank : 1;
    } else {
        const dp_arg *shape = &call->in[1];
        if (shape->count < 1 || shape->count > x->rank)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld sizes, but must have 1 to %d", shape->name,
                           (long long)shape->count, x->rank);
        inner = (int)shape->count;
        for (int d = 0; d < inner; d++)
            if (shape->as.integers[d] != x->dims[x->rank - inner + d])
                return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be %lld, the last dimensions of %s",
                               shape->name, d, (long long)shape->as.integers[d],
                               (long long)x->dims[x->rank - inner + d], call->in[0].name);
    }
    if (inner < 1 || inner > x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 to %d, the last of %s", gamma->name,
                       inner, x->rank, call->in[0].name);
    *out_rank = x->rank - inner;
    return DP_OK;
}

static dp_status build(const dp_operator_call *call, state *s) {
    const dp_tensor *x = call->in[0].as.tensor;
    const dp_arg *gamma = &call->in[s->kind == RMS ? 1 : 2], *beta = s->kind == LAYER ? &call->in[3] : NULL;
    int outer_rank = 0;
    dp_status status = outer_rank_of(call, s->kind, gamma, &outer_rank);
    if (status != DP_OK)
        return status;
    bool in_line[DP_TENSOR_DIMS];
    for (int d = 0; d < DP_TENSOR_DIMS; d++)
        in_line[d] = d >= outer_rank;
    dp_lines_begin(&s->lines, x->dims, x->rank, in_line);
    status = add_same(s, &call->out[0], x, in_line, &s->out);
    if (status == DP_OK)
        status = add_same(s, &call->in[0], x, in_line, &s->x);
    if (status == DP_OK && s->kind == ADD_RMS)
        status = add_same(s, &call->in[1], x, in_line, &s->x2);
    if (status == DP_OK && gamma->kind == DP_ARG_TENSOR)
        status = add_weight(s, gamma, x, outer_rank, in_line, &s->gamma);
    if (status == DP_OK && beta && beta->kind == DP_ARG_TENSOR)
        status = add_weight(s, beta, x, outer_rank, in_line, &s->beta);
    int mean = s->kind == LAYER ? 1 : 99, rstd = s->kind == LAYER ? 2 : 1;
    if (status == DP_OK && present(call, mean))
        status = add_statistic(s, &call->out[mean], x, outer_rank, in_line, &s->mean);
    if (status == DP_OK && present(call, rstd))
        status = add_statistic(s, &call->out[rstd], x, outer_rank, in_line, &s->rstd);
    if (status == DP_OK && s->kind == ADD_RMS && present(call, 2))
        status = add_same(s, &call->out[2], x, in_line, &s->sum);
    dp_lines_end(&s->lines);
    return status;
}

/* gamma or beta of group norm: one element per channel. */
static dp_status take_channels(const dp_arg *arg, int64_t channels, int *slot, int *element, int64_t *stride) {
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    *slot = arg->slot;
    *element = arg->as.tensor->element;
    *stride = arg->as.tensor->rank ? arg->as.tensor->strides[0] : 0;
    return dp_shape_expect(arg->as.tensor, arg->name, &channels, 1, "one per channel");
}

static dp_status build_groups(const dp_operator_call *call, state *s) {
    const dp_tensor *x = call->in[0].as.tensor;
    int64_t number[4]; /* N, C, HxW, groups */
    for (int i = 0; i < 4; i++) {
        number[i] = dp_arg_integer(&call->in[3 + i], 0);
        if (number[i] < (i == 3) || number[i] > (int64_t)1 << 40)
            return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the size of the input it stands for",
                           call->in[3 + i].name, (long long)number[i]);
    }
    int64_t total;
    if (__builtin_mul_overflow(number[0], number[1], &total) || __builtin_mul_overflow(total, number[2], &total) ||
        total != dp_tensor_count(x))
        return dp_fail(DP_ERR_ARGUMENT, "%s * %s * %s is not the number of elements of %s, %lld", call->in[3].name,
                       call->in[4].name, call->in[5].name, call->in[0].name, (long long)dp_tensor_count(x));
    if (number[1] % number[3])
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must divide %s (%lld)", call->in[6].name, (long long)number[3],
                       call->in[4].name, (long long)number[1]);
    dp_status status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, x->dims, x->rank, "the input");
    if (status != DP_OK)
        return status;
    if (!dp_tensor_is_contiguous(x) || !dp_tensor_is_contiguous(call->out[0].as.tensor))
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s must be contiguous", call->in[0].name, call->out[0].name);
    s->groups = number[3];
    s->channels_per_group = number[1] / number[3];
    s->spatial = number[2];
    int64_t length = s->channels_per_group * s->spatial, dims[2] = {number[0] * s->groups, length},
            strides[2] = {length, 1}, one[2] = {1, 0};
    const bool in_line[2] = {false, true};
    dp_lines_begin(&s->lines, dims, 2, in_line);
    s->out = dp_lines_add(&s->lines, &call->out[0], strides, in_line, 2);
    s->x = dp_lines_add(&s->lines, &call->in[0], strides, in_line, 2);
    for (int k = 1; k <= 2; k++) {
        if (!present(call, k))
            continue;
        const dp_tensor *out = call->out[k].as.tensor;
        if (dp_tensor_count(out) != dims[0] || !dp_tensor_is_contiguous(out))
            return dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous with one element per group: %lld", call->out[k].name,
                           (long long)dims[0]);
        *(k == 1 ? &s->mean : &s->rstd) = dp_lines_add(&s->lines, &call->out[k], one, in_line, 2);
    }
    dp_lines_end(&s->lines);
    status = take_channels(&call->in[1], number[1], &s->gamma_slot, &s->gamma_element, &s->gamma_stride);
    return status == DP_OK ? take_channels(&call->in[2], number[1], &s->beta_slot, &s->beta_element, &s->beta_stride)
                           : status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    kind k = *(const kind *)call->op->function->detail;
    dp_status status = check_types(call);
    if (status != DP_OK)
        return status;
    state s = {.kind = k,
               .x2 = -1,
               .gamma = -1,
               .beta = -1,
               .mean = -1,
               .rstd = -1,
               .sum = -1,
               .gamma_slot = -1,
               .beta_slot = -1};
    s.eps = dp_arg_real(&call->in[call->n_in - 1], 0);
    status = k == GROUP ? build_groups(call, &s) : build(call, &s);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, KIND, optional_in_bits, optional_out_bits)                                                    \
    static const kind kind_##function = KIND;                                                                          \
    extern const dp_function dp_norm_##function;                                                                       \
    const dp_function dp_norm_##function = {#function, prepare, &kind_##function, optional_in_bits, optional_out_bits};
EXPORT(layer, LAYER, 12, 6)
EXPORT(rms, RMS, 0, 2)
EXPORT(add_rms, ADD_RMS, 0, 6)
EXPORT(group, GROUP, 6, 6)
