/*
 * softmax.c - softmax(self, dim) -> out and log_softmax(self, dim) -> out, computed in float after subtracting the
 * line's maximum, and their gradients softmax_backward(gradOutput, output, dim) -> out.
 */
#include <math.h>

#include "math/math.h"
#include "ops/lines.h"

typedef struct row {
    bool log, backward;
} row;

typedef struct state {
    dp_lines lines;
    bool log;
    int width; /* lines worked on at once when they lie side by side, else 0 */
} state;

enum { WIDTH_MAX = 256, WIDTH_STEP = 16, BLOCK_FLOATS = 1 << 15 };

enum { FORWARD_BUFFERS = 4 };

/* In pieces, so that the line before can be written meanwhile. */
static double exp_of_line(float *y, const float *x, size_t n, float max, dp_lines_tail *before) {
    const dp_line_table *t = dp_line_current();
    double sum = 0;
    for (size_t i = 0, piece; i < n; i += piece) {
        piece = dp_lines_piece(n - i);
        sum += t->exp(y + i, x + i, piece, max);
        dp_lines_tail_step(before);
    }
    return sum;
}

static void forward(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    const size_t n = (size_t)lines->inner.count, steps = dp_lines_pieces(lines);
    dp_lines_tail before = {.left = 0};
    for (size_t line = begin; line < end; line++) {
        const float *x = dp_lines_load(lines, plan, 1, (int64_t)line, buffers + n * (line % 2));
        float *exponentials = buffers + n * (2 + line % 2), max = t->max(x, n);
        if (isinf(max)) /* all -inf, or one +inf: the arithmetic below gives NaN, as it should */
            max = max > 0 ? max : 0;
        const double sum = exp_of_line(exponentials, x, n, max, &before);
        const dp_line_affine last = s->log ? (dp_line_affine){.mean = (float)(max + log(sum)), .factor = 1}
                                           : (dp_line_affine){.factor = (float)(1 / sum)};
        dp_lines_tail_end(&before);
        dp_lines_store_affine(lines, plan, 0, (int64_t)line, s->log ? x : exponentials, &last, exponentials, steps, &before);
    }
    dp_lines_tail_end(&before);
}

/* `width` lines at once: block[i] is a row of their elements i. */
static void forward_block(dp_plan *plan, const dp_lines *lines, int64_t line, size_t width, float *block) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    const dp_unary_fn exponentials = dp_math_current()->unary[DP_MATH_EXP][DP_F32];
    const size_t n = (size_t)lines->inner.count;
    float max[WIDTH_MAX], part[WIDTH_MAX];
    double sum[WIDTH_MAX];
    for (size_t w = 0; w < width; w++) {
        max[w] = -INFINITY;
        sum[w] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        lines->load[1](block + i * width, dp_lines_row(lines, plan, 1, line, (int64_t)i), width);
        t->larger(max, block + i * width, max, width);
    }
    for (size_t w = 0; w < width; w++)
        if (isinf(max[w])) /* as in one line */
            max[w] = max[w] > 0 ? max[w] : 0;
    for (size_t i = 0; i < n; i++) {
        float *to = s->log ? part : block + i * width;
        t->subtract(to, block + i * width, max, width);
        if (!s->log)
            continue;
        exponentials(to, to, width);
        t->accumulate(sum, to, width);
    }
    if (!s->log) {
        exponentials(block, block, n * width);
        for (size_t i = 0; i < n; i++)
            t->accumulate(sum, block + i * width, width);
    }
    for (size_t w = 0; w < width; w++)
        part[w] = s->log ? (float)(max[w] + log(sum[w])) : (float)(1 / sum[w]);
    for (size_t i = 0; i < n; i++) {
        float *to = block + i * width;
        (s->log ? t->subtract : t->multiply)(to, to, part, width);
        lines->store[0](dp_lines_row(lines, plan, 0, line, (int64_t)i), to, width);
    }
}

static void forward_side_by_side(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const size_t neighbours = (size_t)lines->outer.dims[lines->outer.rank - 1];
    const size_t most = (size_t)((const state *)dp_plan_state(plan))->width;
    for (size_t line = begin, width; line < end; line += width) {
        size_t left = neighbours - line % neighbours;
        width = end - line < left ? end - line : left;
        width = width < most ? width : most;
        forward_block(plan, lines, (int64_t)line, width, buffers);
    }
}

/* y * (g - sum(g * y)), or g - e^y * sum(g) */
static void backward(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count;
    for (size_t line = begin; line < end; line++) {
        const float *g = dp_lines_load(lines, plan, 1, (int64_t)line, buffers);
        const float *y = dp_lines_load(lines, plan, 2, (int64_t)line, buffers + n);
        float *out = buffers + 2 * n;
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += s->log ? (double)g[i] : (double)g[i] * (double)y[i];
        for (size_t i = 0; i < n; i++)
            out[i] = s->log ? (float)(g[i] - exp(y[i]) * sum) : (float)(y[i] * (g[i] - sum));
        dp_lines_store(lines, plan, 0, (int64_t)line, out);
    }
}

static dp_status run_forward(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    return s->width ? dp_lines_run(plan, &s->lines, s->width, forward_side_by_side)
                    : dp_lines_run(plan, &s->lines, FORWARD_BUFFERS, forward);
}

static dp_status run_backward(dp_plan *plan) {
    return dp_lines_run(plan, &((state *)dp_plan_state(plan))->lines, 3, backward);
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const row *r = call->op->function->detail;
    const dp_tensor *self = call->in[0].as.tensor;
    const dp_arg *dim_arg = &call->in[r->backward ? 2 : 1];
    int n_inputs = r->backward ? 2 : 1, dim;
    dp_status status = dp_dim_check(dp_arg_integer(dim_arg, 0), self, dim_arg->name, &dim);
    for (int k = 0; k < n_inputs && status == DP_OK; k++) {
        status = dp_element_expect(&call->in[k], call->op->elements);
        if (status == DP_OK)
            status =
                dp_shape_expect(call->in[k].as.tensor, call->in[k].name, self->dims, self->rank, "the first input");
    }
    if (status == DP_OK)
        status = dp_element_expect(&call->out[0], call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, self->dims, self->rank, "the input");
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, r->backward ? run_backward : run_forward, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    bool in_line[DP_TENSOR_DIMS] = {false};
    in_line[dim] = true;
    s->log = r->log;
    dp_lines_begin(&s->lines, self->dims, self->rank, in_line);
    dp_lines_add(&s->lines, &call->out[0], call->out[0].as.tensor->strides, in_line, self->rank);
    for (int k = 0; k < n_inputs; k++)
        dp_lines_add(&s->lines, &call->in[k], call->in[k].as.tensor->strides, in_line, self->rank);
    dp_lines_end(&s->lines);
    plan->path = "lines";
    if (s->lines.inner.rank == 1 && s->lines.inner.strides[1][0] != 1 && s->lines.inner.dims[0] > 1)
        plan->why = "not in place: the input is not contiguous along dim";
    if (!r->backward && dp_lines_side_by_side(&s->lines)) {
        int64_t fit = BLOCK_FLOATS / (s->lines.inner.count ? s->lines.inner.count : 1) / WIDTH_STEP * WIDTH_STEP;
        s->width = fit < WIDTH_STEP ? WIDTH_STEP : fit > WIDTH_MAX ? WIDTH_MAX : (int)fit;
        plan->path = "lines side by side";
        plan->why = "";
    }
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, ...)                                                                                          \
    static const row row_##function = {__VA_ARGS__};                                                                   \
    extern const dp_function dp_softmax_##function;                                                                    \
    const dp_function dp_softmax_##function = {#function, prepare, &row_##function, 0, 0};
EXPORT(softmax, false, false)
EXPORT(log_softmax, true, false)
EXPORT(softmax_backward, false, true)
EXPORT(log_softmax_backward, true, true)
