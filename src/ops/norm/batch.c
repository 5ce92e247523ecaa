/*
 * batch.c - normalisation of channels (dim 1) over the batch and all dims of space, by PyTorch's formulas; computed in
 * float with sums in double. n is the number of elements of a channel, rstd = 1 / sqrt(variance + eps).
 *   batch(x, w, b, runningMean, runningVar, training, momentum, eps) -> y, mean, rstd
 *     training: mean and variance are those of x, and the running values are written too:
 *     (1 - momentum) * old + momentum * mean, and with n / (n - 1) * variance
 *   batch_elements(x, w, b, mean, rstd, eps) -> y
 *   batch_statistics(x, eps) -> mean, rstd
 *   batch_sums(x) -> sum, sumOfSquares
 *   batch_gather(x, means, rstds, runningMean, runningVar, momentum, eps, counts) -> mean, rstd   of several devices
 *   batch_gather_sums(sums, squares, counts, runningMean, runningVar, momentum, eps) -> mean, rstd
 *   batch_gradient(g, x, w, runningMean, runningVar, mean, rstd, training, eps, mask) -> gx, gw, gb
 *   batch_gradient_sums(g, x, mean, rstd, w, wantSums, wantW, wantB) -> sum g, sum g (x - mean), gw, gb
 *   batch_gradient_elements(g, x, mean, rstd, w, sumG, sumGx, counts) -> gx
 */
#include <math.h>
#include <string.h>

#include "ops/norm/norm.h"

typedef enum kind { INFER, TRAIN, ELEMENTS, STATISTICS, SUMS, GRADIENT, GRADIENT_SUMS, GRADIENT_ELEMENTS } kind;

typedef struct state {
    dp_lines lines; /* over channels; over channels of each image where nothing is summed */
    kind kind;
    bool training;
    int y, x, g; /* views; absent ones are -1 */
    int64_t channels;
    double momentum, eps;
    dp_channel_values w, b, running_mean, running_var, mean, rstd; /* read */
    dp_channel_values out_mean, out_rstd, out_w, out_b, sum_g, sum_gx,
        counts; /* written; sums and counts may be read */
    int64_t n_counts;
} state;

/* y = factor * (x - mean) + b for a line. */
static void scale_line(dp_plan *plan, const dp_lines *lines, const state *s, int64_t line, const float *x, double mean,
                       double factor, float *buffer) {
    size_t n = (size_t)lines->inner.count;
    double b = dp_channel_value(plan, &s->b, line % s->channels, 0);
    float *place = dp_lines_place(lines, plan, s->y, line), *y = place ? place : buffer;
    dp_line_current()->multiply_add(y, x, n, (float)factor, (float)(b - mean * factor));
    if (!place)
        dp_lines_store(lines, plan, s->y, line, y);
}

static void update_running(dp_plan *plan, const state *s, int64_t c, double mean, double variance, double n) {
    double unbiased = n > 1 ? variance * n / (n - 1) : variance, m = s->momentum;
    dp_channel_value_set(plan, &s->running_mean, c,
                         (1 - m) * dp_channel_value(plan, &s->running_mean, c, 0) + m * mean);
    dp_channel_value_set(plan, &s->running_var, c,
                         (1 - m) * dp_channel_value(plan, &s->running_var, c, 0) + m * unbiased);
}

static void forward(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count;
    for (size_t i = begin; i < end; i++) {
        int64_t line = (int64_t)i, c = line % s->channels;
        const float *x = dp_lines_load(lines, plan, s->x, line, buffers);
        double mean, rstd;
        if (s->kind == ELEMENTS) {
            mean = dp_channel_value(plan, &s->mean, c, 0);
            rstd = dp_channel_value(plan, &s->rstd, c, 1);
        } else if (s->kind == INFER) {
            mean = dp_channel_value(plan, &s->running_mean, c, 0);
            rstd = 1 / sqrt(dp_channel_value(plan, &s->running_var, c, 1) + s->eps);
        } else {
            double sum = t->sum(x, n);
            mean = sum / (double)n;
            if (s->kind == SUMS) {
                dp_channel_value_set(plan, &s->out_mean, c, sum);
                dp_channel_value_set(plan, &s->out_rstd, c, t->squares(x, n, 0));
                continue;
            }
            double variance = t->squares(x, n, mean) / (double)n;
            rstd = 1 / sqrt(variance + s->eps);
            if (s->kind == TRAIN)
                update_running(plan, s, c, mean, variance, (double)n);
        }
        if (line < s->channels) { /* once, not per image */
            dp_channel_value_set(plan, &s->out_mean, c, mean);
            dp_channel_value_set(plan, &s->out_rstd, c, rstd);
        }
        if (s->y >= 0)
            scale_line(plan, lines, s, line, x, mean, rstd * dp_channel_value(plan, &s->w, c, 1),
                       dp_norm_buffer(buffers, n, 1));
    }
}

static double total_count(dp_plan *plan, const state *s) {
    double total = 0;
    for (int64_t i = 0; i < s->n_counts; i++)
        total += dp_channel_value(plan, &s->counts, i, 0);
    return total;
}

static void backward(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count;
    const bool sums_given = s->kind == GRADIENT_ELEMENTS;
    const double count = sums_given ? total_count(plan, s) : (double)n;
    for (size_t i = begin; i < end; i++) {
        int64_t line = (int64_t)i, c = line % s->channels;
        const float *x = dp_lines_load(lines, plan, s->x, line, buffers);
        const float *g = dp_lines_load(lines, plan, s->g, line, dp_norm_buffer(buffers, n, 1));
        bool running = s->kind == GRADIENT && !s->training;
        double mean = dp_channel_value(plan, running ? &s->running_mean : &s->mean, c, 0);
        double rstd = running ? 1 / sqrt(dp_channel_value(plan, &s->running_var, c, 1) + s->eps)
                              : dp_channel_value(plan, &s->rstd, c, 1);
        double sum_g = sums_given ? dp_channel_value(plan, &s->sum_g, c, 0) : t->sum(g, n);
        double sum_gx = sums_given ? dp_channel_value(plan, &s->sum_gx, c, 0) : t->products(x, g, n, mean);
        if (!sums_given) {
            dp_channel_value_set(plan, &s->sum_g, c, sum_g);
            dp_channel_value_set(plan, &s->sum_gx, c, sum_gx);
            dp_channel_value_set(plan, &s->out_w, c, sum_gx * rstd);
            dp_channel_value_set(plan, &s->out_b, c, sum_g);
        }
        if (s->y < 0)
            continue;
        /* gx = w rstd (g - mean g - (x - mean) rstd^2 mean g(x - mean)); the means only where x made the statistics */
        double factor = rstd * dp_channel_value(plan, &s->w, c, 1);
        double slope = running ? 0 : -factor * rstd * rstd * sum_gx / count;
        double shift = running ? 0 : -factor * sum_g / count - slope * mean;
        float *place = dp_lines_place(lines, plan, s->y, line), *y = place ? place : dp_norm_buffer(buffers, n, 2);
        t->combine(y, g, x, n, (float)factor, (float)slope, (float)shift);
        if (!place)
            dp_lines_store(lines, plan, s->y, line, y);
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    return s->g >= 0 ? dp_lines_run(plan, &s->lines, 3, backward) : dp_lines_run(plan, &s->lines, 2, forward);
}

/* x, and the others of its shape, as lines: over the whole of a channel, or (elementwise) over a channel of an image.
 */
static dp_status add_lines(state *s, const dp_arg *x, const dp_arg *y, const dp_arg *g, bool elementwise) {
    const dp_tensor *t = x->as.tensor;
    if (t->rank < 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least 2: batch and channels", x->name,
                       t->rank);
    bool in_line[DP_TENSOR_DIMS];
    int64_t space = 1;
    for (int d = 0; d < t->rank; d++) {
        in_line[d] = d != 1;
        space *= d < 2 ? 1 : t->dims[d];
    }
    if (elementwise && space >= 16)
        in_line[0] = false;
    s->channels = t->dims[1];
    s->y = s->x = s->g = -1;
    dp_lines_begin(&s->lines, t->dims, t->rank, in_line);
    const struct {
        const dp_arg *arg;
        int *view;
    } all[] = {{y, &s->y}, {x, &s->x}, {g, &s->g}};
    for (int i = 0; i < 3; i++) {
        if (!dp_norm_present(all[i].arg))
            continue;
        const dp_tensor *one = all[i].arg->as.tensor;
        dp_status status = dp_shape_expect(one, all[i].arg->name, t->dims, t->rank, x->name);
        if (status != DP_OK)
            return status;
        *all[i].view = dp_lines_add(&s->lines, all[i].arg, one->strides, in_line, t->rank);
    }
    dp_lines_end(&s->lines);
    return DP_OK;
}

static dp_status make_plan(const dp_operator_call *call, const state *s, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = s->kind == TRAIN || s->kind == GRADIENT ? "channels" : "lines";
    *out_plan = plan;
    return DP_OK;
}

/* A list of arguments and the channel values they become, up to the first that is wrong. An output without elements is
 * absent: PyTorch passes those. */
typedef struct binding {
    const dp_arg *arg;
    dp_channel_values *values;
} binding;

static dp_status bind_channels(const state *s, const binding *list, int n) {
    for (int i = 0; i < n; i++) {
        *list[i].values = (dp_channel_values){.slot = -1};
        if (!dp_norm_present(list[i].arg) || (dp_tensor_count(list[i].arg->as.tensor) == 0 && s->channels))
            continue;
        dp_status status = dp_channel_values_of(list[i].arg, s->channels, list[i].values);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

static const dp_channel_values none = {.slot = -1};

static state new_state(kind k) {
    return (state){.kind = k,
                   .w = none,
                   .b = none,
                   .running_mean = none,
                   .running_var = none,
                   .mean = none,
                   .rstd = none,
                   .out_mean = none,
                   .out_rstd = none,
                   .out_w = none,
                   .out_b = none,
                   .sum_g = none,
                   .sum_gx = none,
                   .counts = none};
}

static dp_status prepare_batch(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    bool training = dp_arg_integer(&in[5], 0) != 0;
    state s = new_state(training ? TRAIN : INFER);
    s.momentum = dp_arg_real(&in[6], 0);
    s.eps = dp_arg_real(&in[7], 0);
    if (!training && (!dp_norm_present(&in[3]) || !dp_norm_present(&in[4])))
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but is needed where training is false",
                       in[dp_norm_present(&in[3]) ? 4 : 3].name);
    dp_status status = dp_norm_check_types(call);
    if (status == DP_OK)
        status = add_lines(&s, &in[0], &out[0], NULL, !training);
    const binding list[] = {{&in[1], &s.w},           {&in[2], &s.b},         {&in[3], &s.running_mean},
                            {&in[4], &s.running_var}, {&out[1], &s.out_mean}, {&out[2], &s.out_rstd}};
    if (status == DP_OK)
        status = bind_channels(&s, list, 6);
    return status == DP_OK ? make_plan(call, &s, out_plan) : status;
}

static dp_status prepare_elements(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    state s = new_state(ELEMENTS);
    dp_status status = dp_norm_check_types(call);
    if (status == DP_OK)
        status = add_lines(&s, &in[0], &call->out[0], NULL, true);
    const binding list[] = {{&in[1], &s.w}, {&in[2], &s.b}, {&in[3], &s.mean}, {&in[4], &s.rstd}};
    if (status == DP_OK)
        status = bind_channels(&s, list, 4);
    return status == DP_OK ? make_plan(call, &s, out_plan) : status;
}

static dp_status prepare_statistics(const dp_operator_call *call, dp_plan **out_plan) {
    state s = new_state(call->n_in > 1 ? STATISTICS : SUMS);
    s.eps = call->n_in > 1 ? dp_arg_real(&call->in[1], 0) : 0;
    dp_status status = dp_norm_check_types(call);
    if (status == DP_OK)
        status = add_lines(&s, &call->in[0], NULL, NULL, false);
    const binding list[] = {{&call->out[0], &s.out_mean}, {&call->out[1], &s.out_rstd}};
    if (status == DP_OK)
        status = bind_channels(&s, list, 2);
    return status == DP_OK ? make_plan(call, &s, out_plan) : status;
}

/* Whether the i-th result is asked for. */
static bool wanted(const dp_arg *mask, int i) {
    return mask->kind != DP_ARG_BOOL_LIST || (i < mask->count && mask->as.bools[i]);
}

static dp_status prepare_gradient(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    state s = new_state(GRADIENT);
    s.training = dp_arg_integer(&in[7], 0) != 0;
    s.eps = dp_arg_real(&in[8], 0);
    const dp_arg *needed = s.training ? &in[5] : &in[3];
    for (int i = 0; i < 2; i++)
        if (!dp_norm_present(&needed[i]))
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but is needed where %s is %s", needed[i].name, in[7].name,
                           s.training ? "true" : "false");
    if (in[9].kind == DP_ARG_BOOL_LIST && in[9].count != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld values, but must have 3", in[9].name, (long long)in[9].count);
    dp_status status = dp_norm_check_types(call);
    if (status == DP_OK)
        status = add_lines(&s, &in[1], wanted(&in[9], 0) ? &out[0] : NULL, &in[0], false);
    const binding list[] = {{&in[2], &s.w},
                            {&in[3], &s.running_mean},
                            {&in[4], &s.running_var},
                            {&in[5], &s.mean},
                            {&in[6], &s.rstd},
                            {wanted(&in[9], 1) ? &out[1] : NULL, &s.out_w},
                            {wanted(&in[9], 2) ? &out[2] : NULL, &s.out_b}};
    if (status == DP_OK)
        status = bind_channels(&s, list, 7);
    return status == DP_OK ? make_plan(call, &s, out_plan) : status;
}

static dp_status prepare_gradient_sums(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    state s = new_state(GRADIENT_SUMS);
    bool sums = dp_arg_integer(&in[5], 0) != 0;
    dp_status status = dp_norm_check_types(call);
    if (status == DP_OK)
        status = add_lines(&s, &in[1], NULL, &in[0], false);
    const binding list[] = {{&in[2], &s.mean},
                            {&in[3], &s.rstd},
                            {sums ? &out[0] : NULL, &s.sum_g},
                            {sums ? &out[1] : NULL, &s.sum_gx},
                            {dp_arg_integer(&in[6], 0) ? &out[2] : NULL, &s.out_w},
                            {dp_arg_integer(&in[7], 0) ? &out[3] : NULL, &s.out_b}};
    if (status == DP_OK)
        status = bind_channels(&s, list, 6);
    return status == DP_OK ? make_plan(call, &s, out_plan) : status;
}

/* The tensor of counts: one dim, any real type. */
static dp_status take_counts(const dp_arg *arg, dp_channel_values *out, int64_t *out_count) {
    const dp_tensor *t = arg->as.tensor;
    if (t->rank > 1 || !dp_elementwise_current()->load[t->element][DP_COMPUTE_F64])
        return dp_fail(DP_ERR_ARGUMENT, "%s must be a list of numbers", arg->name);
    *out = (dp_channel_values){arg->slot, t->element, t->rank ? t->strides[0] : 0};
    *out_count = dp_tensor_count(t);
    return DP_OK;
}

static dp_status prepare_gradient_elements(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    state s = new_state(GRADIENT_ELEMENTS);
    dp_status status = DP_OK;
    for (int i = 0; i < 7 && status == DP_OK; i++)
        status = dp_norm_present(&in[i]) ? dp_element_expect(&in[i], call->op->elements) : DP_OK;
    if (status == DP_OK)
        status = dp_element_expect(&call->out[0], call->op->elements);
    if (status == DP_OK)
        status = add_lines(&s, &in[1], &call->out[0], &in[0], true);
    const binding list[] = {
        {&in[2], &s.mean}, {&in[3], &s.rstd}, {&in[4], &s.w}, {&in[5], &s.sum_g}, {&in[6], &s.sum_gx}};
    if (status == DP_OK)
        status = bind_channels(&s, list, 5);
    if (status == DP_OK)
        status = take_counts(&in[7], &s.counts, &s.n_counts);
    return status == DP_OK ? make_plan(call, &s, out_plan) : status;
}

/* ---- statistics of several parts ---- */

typedef struct gather {
    state s;
    bool sums; /* parts are sums and sums of squares, not means and rstds */
    int64_t parts;
    dp_channel_values first, second; /* [part][channel] */
    int64_t first_step, second_step; /* from part to part */
} gather;

static double part_value(dp_plan *plan, const dp_channel_values *v, int64_t step, int64_t part, int64_t c) {
    dp_channel_values row = *v;
    double value = 0;
    const char *data = (const char *)dp_plan_data(plan, row.slot) +
                       (part * step + c * row.stride) * (int64_t)dp_element_bytes(row.element);
    dp_elementwise_current()->load[row.element][DP_COMPUTE_F64](&value, data, 1);
    return value;
}

static dp_status run_gather(dp_plan *plan) {
    const gather *g = dp_plan_state(plan);
    const state *s = &g->s;
    for (int64_t c = 0; c < s->channels; c++) {
        double count = 0, sum = 0, squares = 0;
        for (int64_t part = 0; part < g->parts; part++) {
            double n = dp_channel_value(plan, &s->counts, s->n_counts == g->parts ? part : 0, 0);
            double first = part_value(plan, &g->first, g->first_step, part, c);
            double second = part_value(plan, &g->second, g->second_step, part, c);
            count += n;
            if (g->sums) {
                sum += first;
                squares += second;
            } else { /* rstd = 1 / sqrt(variance + eps) */
                double variance = 1 / (second * second) - s->eps;
                sum += n * first;
                squares += n * (variance + first * first);
            }
        }
        double mean = sum / count, variance = squares / count - mean * mean;
        variance = variance < 0 ? 0 : variance;
        dp_channel_value_set(plan, &s->out_mean, c, mean);
        dp_channel_value_set(plan, &s->out_rstd, c, 1 / sqrt(variance + s->eps));
        update_running(plan, s, c, mean, variance, count);
    }
    return DP_OK;
}

static dp_status take_parts(const dp_arg *arg, gather *g, dp_channel_values *out, int64_t *out_step) {
    const dp_tensor *t = arg->as.tensor;
    const int64_t dims[] = {g->parts, g->s.channels};
    dp_status status = dp_shape_expect(t, arg->name, dims, 2, "parts, channels");
    if (status != DP_OK)
        return status;
    *out = (dp_channel_values){arg->slot, t->element, t->strides[1]};
    *out_step = t->strides[0];
    return DP_OK;
}

static dp_status prepare_gather(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    gather g = {.s = new_state(STATISTICS), .sums = call->n_in == 7};
    const dp_arg *first = g.sums ? &in[0] : &in[1], *second = first + 1, *counts = g.sums ? &in[2] : &in[7],
                 *rest = g.sums ? &in[3] : &in[3];
    const dp_tensor *t = first->as.tensor;
    if (t->rank != 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2: parts and channels", first->name,
                       t->rank);
    g.parts = t->dims[0];
    g.s.channels = t->dims[1];
    g.s.momentum = dp_arg_real(&rest[2], 0);
    g.s.eps = dp_arg_real(&rest[3], 0);
    dp_status status = dp_element_expect(first, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(second, call->op->elements);
    if (status == DP_OK)
        status = take_parts(first, &g, &g.first, &g.first_step);
    if (status == DP_OK)
        status = take_parts(second, &g, &g.second, &g.second_step);
    if (status == DP_OK)
        status = take_counts(counts, &g.s.counts, &g.s.n_counts);
    if (status == DP_OK && g.s.n_counts != g.parts && g.s.n_counts != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have one per part: %lld", counts->name,
                       (long long)g.s.n_counts, (long long)g.parts);
    const binding list[] = {{&rest[0], &g.s.running_mean},
                            {&rest[1], &g.s.running_var},
                            {&call->out[0], &g.s.out_mean},
                            {&call->out[1], &g.s.out_rstd}};
    for (int i = 0; i < 4 && status == DP_OK; i++)
        status = dp_norm_present(list[i].arg) ? dp_element_expect(list[i].arg, call->op->elements) : DP_OK;
    if (status == DP_OK)
        status = bind_channels(&g.s, list, 4);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run_gather, sizeof g);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &g, sizeof g);
    plan->path = "parts";
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, prepare, optional_in_bits, optional_out_bits)                                                 \
    extern const dp_function dp_norm_##function;                                                                       \
    const dp_function dp_norm_##function = {#function, prepare, NULL, optional_in_bits, optional_out_bits};
EXPORT(batch, prepare_batch, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4, 6)
EXPORT(batch_elements, prepare_elements, 1 << 1 | 1 << 2, 0)
EXPORT(batch_statistics, prepare_statistics, 0, 0)
EXPORT(batch_sums, prepare_statistics, 0, 0)
EXPORT(batch_gather, prepare_gather, 1 << 3 | 1 << 4, 0)
EXPORT(batch_gather_sums, prepare_gather, 1 << 3 | 1 << 4, 0)
EXPORT(batch_gradient, prepare_gradient, 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 9, 7)
EXPORT(batch_gradient_sums, prepare_gradient_sums, 1 << 4, 15)
EXPORT(batch_gradient_elements, prepare_gradient_elements, 1 << 4, 0)
