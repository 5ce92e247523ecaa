/*
 * masked.c - softmax over the last dim of what is scaled and masked:
 *   masked(self, mask, scale, triangle) -> out               softmax(mask ? -10000 : scale self)
 *   masked_backward(grad, y, mask, scale, triangle) -> out   mask ? 0 : scale y (grad - sum(grad y))
 * mask is bool and broadcast; with triangle it is not read, and all above the diagonal of the last two dims is masked.
 */
#include <math.h>

#include "ops/lines.h"

enum { FILL = -10000, OUT = 0, MASK, FIRST, SECOND };

typedef struct state {
    dp_lines lines;
    bool triangle;
    float scale;
} state;

/* Row number of a line, where the mask's view counts rows (see `prepare`). */
static int64_t row_of(const dp_lines *lines, int64_t line) {
    return dp_loop_offset(&lines->outer, MASK, line);
}

static void forward(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const dp_line_table *t = dp_line_current();
    const state *s = dp_plan_state(plan);
    const size_t n = (size_t)lines->inner.count;
    float *x = buffers, *mask_room = buffers + n, *from_room = mask_room + n;
    for (size_t line = begin; line < end; line++) {
        const float *from = dp_lines_load(lines, plan, FIRST, (int64_t)line, from_room);
        if (s->triangle) {
            int64_t row = row_of(lines, (int64_t)line);
            for (size_t i = 0; i < n; i++)
                x[i] = (int64_t)i > row ? FILL : from[i] * s->scale;
        } else {
            const float *mask = dp_lines_load(lines, plan, MASK, (int64_t)line, mask_room);
            for (size_t i = 0; i < n; i++)
                x[i] = mask[i] != 0 ? FILL : from[i] * s->scale;
        }
        double sum = t->exp(x, x, n, t->max(x, n));
        t->scale(x, x, n, (float)(1 / sum));
        dp_lines_store(lines, plan, OUT, (int64_t)line, x);
    }
}

static void backward(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const state *s = dp_plan_state(plan);
    const size_t n = (size_t)lines->inner.count;
    float *out = buffers, *mask_room = buffers + n, *g_room = mask_room + n, *y_room = g_room + n;
    for (size_t line = begin; line < end; line++) {
        const float *g = dp_lines_load(lines, plan, FIRST, (int64_t)line, g_room);
        const float *y = dp_lines_load(lines, plan, SECOND, (int64_t)line, y_room);
        const float *mask = s->triangle ? NULL : dp_lines_load(lines, plan, MASK, (int64_t)line, mask_room);
        int64_t row = mask ? 0 : row_of(lines, (int64_t)line);
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += (double)g[i] * (double)y[i];
        for (size_t i = 0; i < n; i++)
            out[i] = (mask ? mask[i] != 0 : (int64_t)i > row) ? 0 : (float)(s->scale * y[i] * (g[i] - sum));
        dp_lines_store(lines, plan, OUT, (int64_t)line, out);
    }
}

static dp_status run_forward(dp_plan *plan) {
    return dp_lines_run(plan, &((const state *)dp_plan_state(plan))->lines, 3, forward);
}
static dp_status run_backward(dp_plan *plan) {
    return dp_lines_run(plan, &((const state *)dp_plan_state(plan))->lines, 4, backward);
}

/* Strides of the mask in the dims of self; those of a view that counts rows for a triangle. */
static dp_status mask_strides(const dp_arg *mask, const dp_tensor *self, bool triangle, int64_t *strides) {
    const dp_tensor *m = mask->as.tensor;
    int shift = self->rank - m->rank;
    for (int d = 0; d < self->rank; d++)
        strides[d] = triangle && d == self->rank - 2;
    if (triangle)
        return self->rank >= 2
                   ? DP_OK
                   : dp_fail(DP_ERR_ARGUMENT, "the input has %d dimensions, but a triangle needs 2", self->rank);
    dp_status status = dp_element_expect(mask, DP_EL_BIT(DP_EL_BOOL));
    for (int d = 0; d < m->rank && status == DP_OK; d++) {
        if (shift < 0 || (m->dims[d] != 1 && m->dims[d] != self->dims[d + shift])) {
            char own[160], wanted[160];
            return dp_fail(DP_ERR_ARGUMENT, "%s has the shape %s, which cannot be broadcast to %s", mask->name,
                           dp_dims_describe(m->dims, m->rank, own, sizeof own),
                           dp_dims_describe(self->dims, self->rank, wanted, sizeof wanted));
        }
        strides[d + shift] = m->dims[d] == 1 ? 0 : m->strides[d];
    }
    return status;
}

static dp_status prepare(const dp_operator_call *call, bool is_backward, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0], *mask = &in[is_backward ? 2 : 1], *rest = mask + 1;
    const dp_tensor *self = in[0].as.tensor;
    bool triangle = dp_arg_integer(&rest[1], 0) != 0, in_line[DP_TENSOR_DIMS] = {false};
    int64_t strides[DP_TENSOR_DIMS];
    dp_status status = dp_element_expect(&in[0], call->op->elements);
    if (status == DP_OK && self->rank < 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions, but must have at least 1", in[0].name);
    if (status == DP_OK && is_backward)
        status = dp_element_expect(&in[1], call->op->elements);
    if (status == DP_OK && is_backward)
        status = dp_shape_expect(in[1].as.tensor, in[1].name, self->dims, self->rank, "the gradient's");
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, self->dims, self->rank, "the input");
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = mask_strides(mask, self, triangle, strides);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, is_backward ? run_backward : run_forward, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    in_line[self->rank - 1] = true;
    s->triangle = triangle;
    s->scale = (float)dp_arg_real(&rest[0], 1);
    dp_lines_begin(&s->lines, self->dims, self->rank, in_line);
    dp_lines_add(&s->lines, out, out->as.tensor->strides, in_line, self->rank);
    dp_lines_add(&s->lines, triangle ? &in[0] : mask, strides, in_line, self->rank);
    for (int k = 0; k < (is_backward ? 2 : 1); k++)
        dp_lines_add(&s->lines, &in[k], in[k].as.tensor->strides, in_line, self->rank);
    dp_lines_end(&s->lines);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status masked(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, false, out_plan);
}
static dp_status masked_backward(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, true, out_plan);
}

extern const dp_function dp_softmax_masked, dp_softmax_masked_backward;
const dp_function dp_softmax_masked = {"masked", masked, NULL, 0, 0};
const dp_function dp_softmax_masked_backward = {"masked_backward", masked_backward, NULL, 0, 0};
