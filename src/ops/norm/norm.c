/*
 * norm.c - normalisation of lines, computed in float with sums in double:
 *   layer(x, normalizedShape, gamma, beta, eps) -> y, mean, rstd        mean and rstd have one element per line
 *   add_layer(x1, x2, gamma, beta, bias, additional, eps) -> y, mean, rstd, sum   sum = x1 + x2 + bias
 *   deep(x, gx, beta, gamma, alpha, eps) -> mean, rstd, y               of alpha * x + gx
 *   rms(x, gamma, eps) -> y, rstd                                       lines are the trailing dims that gamma has
 *   gemma_rms(x, gamma, eps) -> y, rstd                                 factor 1 + gamma
 *   add_rms(x1, x2, gamma, eps) -> y, rstd, sum                         sum = x1 + x2
 *   add_rms_cast(x1, x2, gamma, eps) -> y1, y2, rstd, sum               y1 and y2 differ in type
 * gamma, beta, bias and all outputs but y may be absent. rstd = 1 / sqrt(variance + eps), or of the mean square.
 */
#include "ops/norm/norm.h"

#include <math.h>
#include <string.h>

/* The arguments by role; NULL for those a function does not have. */
typedef struct roles {
    const dp_arg *x, *x2, *shape, *bias, *gamma, *beta, *y, *y2, *mean, *rstd, *sum;
} roles;

typedef struct state {
    dp_lines lines; /* absent views are -1 */
    bool centred;
    float gamma_offset, alpha;
    int y, y2, x, x2, bias, gamma, beta, mean, rstd, sum;
    double eps;
} state;

typedef struct detail {
    bool centred;
    float gamma_offset;
    void (*assign)(const dp_operator_call *call, roles *out, double *alpha);
} detail;

dp_status dp_channel_values_of(const dp_arg *arg, int64_t channels, dp_channel_values *out) {
    *out = (dp_channel_values){.slot = -1};
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    *out =
        (dp_channel_values){arg->slot, arg->as.tensor->element, arg->as.tensor->rank ? arg->as.tensor->strides[0] : 0};
    return dp_shape_expect(arg->as.tensor, arg->name, &channels, 1, "one per channel");
}

static void *channel_at(dp_plan *plan, const dp_channel_values *v, int64_t channel) {
    return (char *)dp_plan_data(plan, v->slot) + channel * v->stride * (int64_t)dp_element_bytes(v->element);
}

double dp_channel_value(dp_plan *plan, const dp_channel_values *v, int64_t channel, double otherwise) {
    double value = otherwise;
    if (v->slot >= 0)
        dp_elementwise_current()->load[v->element][DP_COMPUTE_F64](&value, channel_at(plan, v, channel), 1);
    return value;
}

void dp_channel_value_set(dp_plan *plan, const dp_channel_values *v, int64_t channel, double value) {
    if (v->slot >= 0)
        dp_elementwise_current()->store[v->element][DP_COMPUTE_F64](channel_at(plan, v, channel), &value, 1);
}

dp_status dp_norm_check_types(const dp_operator_call *call) {
    dp_status status = DP_OK;
    for (int i = 0; i < call->n_in && status == DP_OK; i++)
        if (call->in[i].kind == DP_ARG_TENSOR)
            status = dp_element_expect(&call->in[i], call->op->elements);
    for (int i = 0; i < call->n_out && status == DP_OK; i++)
        if (call->out[i].kind == DP_ARG_TENSOR)
            status = dp_element_expect(&call->out[i], call->op->elements);
    for (int i = 0; i < call->n_out && status == DP_OK; i++)
        if (call->out[i].kind == DP_ARG_TENSOR)
            status = dp_places_expect(&call->out[i]);
    return status;
}

/* alpha * x + x2 + bias, or x where it lies. */
static const float *sum_of(dp_plan *plan, const dp_lines *lines, const state *s, int64_t line, float *buffers) {
    const dp_line_table *t = dp_line_current();
    size_t n = (size_t)lines->inner.count;
    const float *x = dp_lines_load(lines, plan, s->x, line, dp_norm_buffer(buffers, n, 0));
    if (s->x2 < 0)
        return x;
    float *sum = dp_norm_buffer(buffers, n, 4), *spare = dp_norm_buffer(buffers, n, 1);
    if (s->alpha != 1) {
        t->scale(sum, x, n, s->alpha);
        x = sum;
    }
    t->add(sum, x, dp_lines_load(lines, plan, s->x2, line, spare), n);
    if (s->bias >= 0)
        t->add(sum, sum, dp_lines_load(lines, plan, s->bias, line, spare), n);
    return sum;
}

/* Sums and results in pieces, so that the line before can be written meanwhile. */
enum { NORMALISE_BUFFERS = 6, OWN_Y = 5 };

static double sum_of_line(const float *x, size_t n, bool squares, double mean, dp_lines_tail *before) {
    const dp_line_table *t = dp_line_current();
    double sum = 0;
    for (size_t i = 0, piece; i < n; i += piece) {
        piece = dp_lines_piece(n - i);
        sum += squares ? t->squares(x + i, piece, mean) : t->sum(x + i, piece);
        dp_lines_tail_step(before);
    }
    return sum;
}

static void normalise(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count;
    const float *gamma = NULL, *beta = NULL;
    if (s->gamma >= 0) {
        float *own = dp_norm_buffer(buffers, n, 2);
        gamma = dp_lines_load(lines, plan, s->gamma, 0, own);
        if (s->gamma_offset != 0) {
            t->shift(own, gamma, n, -s->gamma_offset);
            gamma = own;
        }
    }
    if (s->beta >= 0)
        beta = dp_lines_load(lines, plan, s->beta, 0, dp_norm_buffer(buffers, n, 3));
    const size_t steps = (s->centred ? 2 : 1) * dp_lines_pieces(lines);
    dp_lines_tail before = {.left = 0};
    for (size_t i = begin; i < end; i++) {
        int64_t line = (int64_t)i;
        const float *x = sum_of(plan, lines, s, line, buffers);
        if (s->sum >= 0)
            dp_lines_store(lines, plan, s->sum, line, x);
        double mean = s->centred ? sum_of_line(x, n, false, 0, &before) / (double)n : 0;
        double rstd = 1 / sqrt(sum_of_line(x, n, true, mean, &before) / (double)n + s->eps);
        const dp_line_affine last = {(float)mean, (float)rstd, gamma, beta};
        float *y = dp_norm_buffer(buffers, n, OWN_Y);
        dp_lines_tail_end(&before);
        dp_lines_store_affine(lines, plan, s->y, line, x, &last, y, steps, &before);
        if (x >= buffers && x < buffers + NORMALISE_BUFFERS * n) /* the next line comes here */
            dp_lines_tail_end(&before);
        if (s->y2 >= 0) {
            t->affine(y, x, n, last.mean, last.factor, gamma, beta);
            dp_lines_store(lines, plan, s->y2, line, y);
        }
        if (s->mean >= 0)
            dp_lines_store_one(lines, plan, s->mean, line, (float)mean);
        if (s->rstd >= 0)
            dp_lines_store_one(lines, plan, s->rstd, line, (float)rstd);
    }
    dp_lines_tail_end(&before);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    return dp_lines_run(plan, &s->lines, NORMALISE_BUFFERS, normalise);
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

static dp_status outer_rank_of(const roles *r, int *out_rank) {
    const dp_tensor *x = r->x->as.tensor;
    int inner = dp_norm_present(r->gamma) ? r->gamma->as.tensor->rank : 1;
    if (r->shape) {
        const dp_arg *shape = r->shape;
        if (shape->count < 1 || shape->count > x->rank)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld sizes, but must have 1 to %d", shape->name,
                           (long long)shape->count, x->rank);
        inner = (int)shape->count;
        for (int d = 0; d < inner; d++)
            if (shape->as.integers[d] != x->dims[x->rank - inner + d])
                return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be %lld, the last dimensions of %s",
                               shape->name, d, (long long)shape->as.integers[d],
                               (long long)x->dims[x->rank - inner + d], r->x->name);
    }
    if (inner < 1 || inner > x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 to %d, the last of %s", r->gamma->name,
                       inner, x->rank, r->x->name);
    *out_rank = x->rank - inner;
    return DP_OK;
}

static dp_status build(const roles *r, state *s) {
    const dp_tensor *x = r->x->as.tensor;
    int outer_rank = 0;
    dp_status status = outer_rank_of(r, &outer_rank);
    if (status != DP_OK)
        return status;
    bool in_line[DP_TENSOR_DIMS];
    for (int d = 0; d < DP_TENSOR_DIMS; d++)
        in_line[d] = d >= outer_rank;
    dp_lines_begin(&s->lines, x->dims, x->rank, in_line);
    const struct {
        const dp_arg *arg;
        int *view;
    } same[] = {{r->y, &s->y}, {r->x, &s->x}, {r->x2, &s->x2}, {r->sum, &s->sum}, {r->y2, &s->y2}},
      weights[] = {{r->gamma, &s->gamma}, {r->beta, &s->beta}},
      statistics[] = {{r->mean, &s->mean}, {r->rstd, &s->rstd}};
    for (int i = 0; i < 5 && status == DP_OK; i++)
        if (dp_norm_present(same[i].arg))
            status = add_same(s, same[i].arg, x, in_line, same[i].view);
    for (int i = 0; i < 2 && status == DP_OK; i++)
        if (dp_norm_present(weights[i].arg))
            status = add_weight(s, weights[i].arg, x, outer_rank, in_line, weights[i].view);
    if (status == DP_OK && dp_norm_present(r->bias)) /* of every line, or one for all */
        status = r->bias->as.tensor->rank == x->rank ? add_same(s, r->bias, x, in_line, &s->bias)
                                                     : add_weight(s, r->bias, x, outer_rank, in_line, &s->bias);
    for (int i = 0; i < 2 && status == DP_OK; i++)
        if (dp_norm_present(statistics[i].arg))
            status = add_statistic(s, statistics[i].arg, x, outer_rank, in_line, statistics[i].view);
    dp_lines_end(&s->lines);
    return status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const detail *d = call->op->function->detail;
    state s = {.centred = d->centred, .gamma_offset = d->gamma_offset};
    int *views[] = {&s.y, &s.y2, &s.x, &s.x2, &s.bias, &s.gamma, &s.beta, &s.mean, &s.rstd, &s.sum};
    for (int i = 0; i < 10; i++)
        *views[i] = -1;
    roles r = {.x = NULL};
    double alpha = 1;
    dp_status status = dp_norm_check_types(call);
    if (status != DP_OK)
        return status;
    d->assign(call, &r, &alpha);
    s.alpha = (float)alpha;
    s.eps = dp_arg_real(&call->in[call->n_in - 1], 0);
    status = build(&r, &s);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "lines";
    if (s.lines.inner.rank > 1 || s.lines.inner.strides[s.y][0] != 1)
        plan->why = "lines are copied: a tensor is not contiguous in the normalised dims";
    *out_plan = plan;
    return DP_OK;
}

static void assign_layer(const dp_operator_call *c, roles *r, double *alpha) {
    (void)alpha;
    *r = (roles){.x = &c->in[0],
                 .shape = &c->in[1],
                 .gamma = &c->in[2],
                 .beta = &c->in[3],
                 .y = &c->out[0],
                 .mean = &c->out[1],
                 .rstd = &c->out[2]};
}

static void assign_add_layer(const dp_operator_call *c, roles *r, double *alpha) {
    (void)alpha;
    *r = (roles){.x = &c->in[0],
                 .x2 = &c->in[1],
                 .gamma = &c->in[2],
                 .beta = &c->in[3],
                 .bias = &c->in[4],
                 .y = &c->out[0],
                 .mean = &c->out[1],
                 .rstd = &c->out[2],
                 .sum = dp_arg_integer(&c->in[5], 0) ? &c->out[3] : NULL};
}

static void assign_deep(const dp_operator_call *c, roles *r, double *alpha) {
    *alpha = dp_arg_real(&c->in[4], 1);
    *r = (roles){.x = &c->in[0],
                 .x2 = &c->in[1],
                 .beta = &c->in[2],
                 .gamma = &c->in[3],
                 .mean = &c->out[0],
                 .rstd = &c->out[1],
                 .y = &c->out[2]};
}

static void assign_rms(const dp_operator_call *c, roles *r, double *alpha) {
    (void)alpha;
    *r = (roles){.x = &c->in[0], .gamma = &c->in[1], .y = &c->out[0], .rstd = &c->out[1]};
}

static void assign_add_rms(const dp_operator_call *c, roles *r, double *alpha) {
    (void)alpha;
    int more = c->n_out == 4; /* y twice */
    *r = (roles){.x = &c->in[0],
                 .x2 = &c->in[1],
                 .gamma = &c->in[2],
                 .y = &c->out[0],
                 .y2 = more ? &c->out[1] : NULL,
                 .rstd = &c->out[1 + more],
                 .sum = &c->out[2 + more]};
}

#define EXPORT(function, CENTRED, OFFSET, assign, optional_in_bits, optional_out_bits)                                 \
    static const detail detail_##function = {CENTRED, OFFSET, assign};                                                 \
    extern const dp_function dp_norm_##function;                                                                       \
    const dp_function dp_norm_##function = {#function, prepare, &detail_##function, optional_in_bits,                  \
                                            optional_out_bits};
EXPORT(layer, true, 0, assign_layer, 12, 6)
EXPORT(add_layer, true, 0, assign_add_layer, 1 << 4, 14)
EXPORT(deep, true, 0, assign_deep, 0, 3)
EXPORT(rms, false, 0, assign_rms, 0, 2)
EXPORT(gemma_rms, false, 1, assign_rms, 0, 2)
EXPORT(add_rms, false, 0, assign_add_rms, 0, 6)
EXPORT(add_rms_cast, false, 0, assign_add_rms, 0, 12)
