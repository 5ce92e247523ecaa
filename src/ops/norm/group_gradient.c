/*
 * group_gradient.c - group_gradient(g, x, mean, rstd, gamma, N, C, HxW, groups, mask) -> dx, dgamma, dbeta: the
 * gradient of group norm, as those of gradient.c with a group of channels as the line. x, g and dx are contiguous.
 */
#include <string.h>

#include "ops/norm/norm.h"
#include "ops/tiles.h"

typedef struct state {
    dp_lines lines; /* N * groups lines; absent views are -1 */
    int dx, g, x, mean, rstd;
    dp_channel_values gamma, dgamma, dbeta;
    int64_t images, groups, channels, spatial; /* channels of one group */
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

/* One image of a group; sums: [dgamma, dbeta, of this image g (x - mean) and g][channel]. */
static void one_line(const job *j, int64_t line, float *buffers, double *sums) {
    const dp_line_table *t = dp_line_current();
    const state *s = j->s;
    const dp_lines *lines = &s->lines;
    const size_t n = (size_t)lines->inner.count, spatial = (size_t)s->spatial;
    const int64_t first = line % s->groups * s->channels;
    const float *g = dp_lines_load(lines, j->plan, s->g, line, buffers);
    const float *x = dp_lines_load(lines, j->plan, s->x, line, dp_norm_buffer(buffers, n, 1));
    const double mean = dp_lines_load_one(lines, j->plan, s->mean, line),
                 rstd = dp_lines_load_one(lines, j->plan, s->rstd, line);
    double sum_h = 0, sum_hx = 0;
    for (int64_t c = 0; c < s->channels; c++) {
        size_t at = (size_t)c * spatial;
        double gamma = dp_channel_value(j->plan, &s->gamma, first + c, 1), sum = t->sum(g + at, spatial),
               product = t->products(x + at, g + at, spatial, mean);
        sums[c] += product * rstd;
        sums[s->channels + c] += sum;
        sum_h += gamma * sum;
        sum_hx += gamma * product;
    }
    if (s->dx < 0)
        return;
    const double slope = -rstd * rstd * rstd * sum_hx / (double)n, shift = -rstd * sum_h / (double)n - slope * mean;
    float *place = dp_lines_place(lines, j->plan, s->dx, line), *dx = place ? place : dp_norm_buffer(buffers, n, 2);
    for (int64_t c = 0; c < s->channels; c++) {
        size_t at = (size_t)c * spatial;
        double gamma = dp_channel_value(j->plan, &s->gamma, first + c, 1);
        t->combine(dx + at, g + at, x + at, spatial, (float)(rstd * gamma), (float)slope, (float)shift);
    }
    if (!place)
        dp_lines_store(lines, j->plan, s->dx, line, dx);
}

/* A group of all images: nobody else writes its channels' sums. */
static void run_group(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    double *sums = scratch;
    float *buffers = (float *)(sums + 2 * s->channels);
    memset(sums, 0, (size_t)(2 * s->channels) * sizeof *sums);
    for (int64_t n = 0; n < s->images; n++)
        one_line(j, n * s->groups + (int64_t)tile, buffers, sums);
    for (int64_t c = 0; c < s->channels; c++) {
        dp_channel_value_set(j->plan, &s->dgamma, (int64_t)tile * s->channels + c, sums[c]);
        dp_channel_value_set(j->plan, &s->dbeta, (int64_t)tile * s->channels + c, sums[s->channels + c]);
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {plan, s};
    size_t bytes = (size_t)(2 * s->channels) * sizeof(double) + (size_t)(3 * s->lines.inner.count) * sizeof(float);
    return dp_tiles_run((size_t)s->groups, bytes + 1, run_group, &j);
}

static dp_status take_sizes(const dp_operator_call *call, state *s) {
    const dp_arg *in = call->in;
    int64_t number[4], total; /* N, C, HxW, groups */
    for (int i = 0; i < 4; i++) {
        number[i] = dp_arg_integer(&in[5 + i], 0);
        if (number[i] < (i == 3) || number[i] > (int64_t)1 << 40)
            return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the size of the input it stands for",
                           in[5 + i].name, (long long)number[i]);
    }
    const int64_t count = dp_tensor_count(in[1].as.tensor);
    if (__builtin_mul_overflow(number[0], number[1], &total) || __builtin_mul_overflow(total, number[2], &total) ||
        total != count)
        return dp_fail(DP_ERR_ARGUMENT, "%s * %s * %s is not the number of elements of %s, %lld", in[5].name,
                       in[6].name, in[7].name, in[1].name, (long long)count);
    if (number[1] % number[3])
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must divide %s (%lld)", in[8].name, (long long)number[3],
                       in[6].name, (long long)number[1]);
    s->images = number[0];
    s->groups = number[3];
    s->channels = number[1] / number[3];
    s->spatial = number[2];
    return DP_OK;
}

static dp_status add_lines(const dp_operator_call *call, const dp_arg *dx, state *s) {
    const dp_tensor *x = call->in[1].as.tensor;
    const int64_t length = s->channels * s->spatial, dims[2] = {s->images * s->groups, length},
                  strides[2] = {length, 1}, one[2] = {1, 0};
    const bool in_line[2] = {false, true};
    const struct {
        const dp_arg *arg;
        int *view;
        bool whole;
    } all[] = {{dx, &s->dx, true},
               {&call->in[0], &s->g, true},
               {&call->in[1], &s->x, true},
               {&call->in[2], &s->mean, false},
               {&call->in[3], &s->rstd, false}};
    dp_lines_begin(&s->lines, dims, 2, in_line);
    for (int i = 0; i < 5; i++) {
        *all[i].view = -1;
        if (!dp_norm_present(all[i].arg))
            continue;
        const dp_tensor *t = all[i].arg->as.tensor;
        dp_status status =
            all[i].whole ? dp_shape_expect(t, all[i].arg->name, x->dims, x->rank, call->in[1].name) : DP_OK;
        if (status == DP_OK && !all[i].whole && dp_tensor_count(t) != dims[0])
            status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have one per group: %lld",
                             all[i].arg->name, (long long)dp_tensor_count(t), (long long)dims[0]);
        if (status == DP_OK && !dp_tensor_is_contiguous(t))
            status = dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous", all[i].arg->name);
        if (status != DP_OK)
            return status;
        *all[i].view = dp_lines_add(&s->lines, all[i].arg, all[i].whole ? strides : one, in_line, 2);
    }
    dp_lines_end(&s->lines);
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *mask = &call->in[9], *wanted[3];
    state s = {.images = 0};
    if (mask->count != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld values, but must have 3", mask->name, (long long)mask->count);
    for (int i = 0; i < 3; i++) {
        wanted[i] = mask->as.bools[i] ? &call->out[i] : NULL;
        if (wanted[i] && !dp_norm_present(wanted[i]))
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s[%d] asks for it", wanted[i]->name, mask->name, i);
    }
    dp_status status = dp_norm_check_types(call);
    if (status == DP_OK)
        status = take_sizes(call, &s);
    if (status == DP_OK)
        status = add_lines(call, wanted[0], &s);
    const int64_t channels = s.channels * s.groups;
    s.dgamma.slot = s.dbeta.slot = -1;
    if (status == DP_OK)
        status = dp_channel_values_of(&call->in[4], channels, &s.gamma);
    if (status == DP_OK && wanted[1])
        status = dp_channel_values_of(wanted[1], channels, &s.dgamma);
    if (status == DP_OK && wanted[2])
        status = dp_channel_values_of(wanted[2], channels, &s.dbeta);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "groups";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_norm_group_gradient;
const dp_function dp_norm_group_gradient = {"group_gradient", prepare, NULL, 1 << 4, 7};
