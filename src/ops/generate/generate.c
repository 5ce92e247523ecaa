/*
 * generate.c - outputs made from positions:
 *   arange(start, end, step) -> out      out has ceil((end - start) / step) elements, in any shape
 *   linspace(start, end, steps) -> out   the same
 *   logspace(start, end, steps, base) -> out   base to the power of these
 *   eye() -> out                         ones on the diagonal of a matrix
 *   tril(self, diagonal) -> out, triu    the other triangle of the last two dims is 0; out may be self
 */
#include <math.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct sequence {
    dp_loop loop; /* view 0: out */
    dp_convert_fn store;
    bool integral, eye, power;
    double start, step, last, base;
    int64_t first_integer, step_integer, count, columns;
    int slot;
} sequence;

typedef struct job {
    dp_plan *plan;
    void *state;
} job;

static void sequence_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const sequence *s = j->state;
    union {
        double real[DP_TILE];
        int64_t integer[DP_TILE];
    } value;
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[s->slot].view.element);
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        for (size_t i = 0; i < n; i++) {
            int64_t k = (int64_t)(at + i);
            if (s->eye)
                value.integer[i] = k / s->columns == k % s->columns;
            else if (s->integral)
                value.integer[i] = (int64_t)((uint64_t)s->first_integer + (uint64_t)k * (uint64_t)s->step_integer);
            else /* both ends of linspace are exact */
                value.real[i] =
                    2 * k < s->count ? s->start + (double)k * s->step : s->last - (double)(s->count - 1 - k) * s->step;
        }
        for (size_t i = 0; i < n && s->power; i++)
            value.real[i] = pow(s->base, value.real[i]);
        s->store(raw, &value, n);
        dp_loop_scatter(&s->loop, 0, dp_plan_data(j->plan, s->slot), width, (int64_t)at, n, raw);
    }
}

static dp_status run_sequence(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    const sequence *s = j.state;
    if (s->loop.count)
        dp_pool_for((size_t)s->loop.count, GRAIN, sequence_range, &j);
    return DP_OK;
}

static dp_status sequence_plan(const dp_operator_call *call, const sequence *from, dp_plan **out_plan) {
    const dp_tensor *out = call->out[0].as.tensor;
    dp_status status = dp_element_expect(&call->out[0], call->op->elements);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run_sequence, sizeof(sequence));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    sequence *s = dp_plan_state(plan);
    *s = *from;
    dp_loop_begin(&s->loop, out->dims, out->rank);
    dp_loop_add(&s->loop, out);
    dp_loop_merge(&s->loop, false);
    s->slot = call->out[0].slot;
    s->store = dp_elementwise_current()->store[out->element][s->integral || s->eye ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
    plan->path = "sequence";
    *out_plan = plan;
    return DP_OK;
}

static bool is_integral(const dp_arg *arg) {
    return arg->kind == DP_ARG_INTEGER || (arg->kind == DP_ARG_SCALAR && !dp_element_is_float(arg->as.scalar->element));
}

static dp_status expect_count(const dp_arg *out, double count, const char *meaning) {
    char dims[160];
    if ((double)dp_tensor_count(out->as.tensor) == count)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements %s, but must have %.0f: %s", out->name,
                   (long long)dp_tensor_count(out->as.tensor),
                   dp_dims_describe(out->as.tensor->dims, out->as.tensor->rank, dims, sizeof dims), count, meaning);
}

/* Clients count in the type of their scalars: of floats, a quotient next to an integer may be rounded to it. */
static double arange_count(const dp_operator_call *call, double start, double end, double step) {
    double count = ceil((end - start) / step);
    for (int i = 0; i < 3; i++)
        if (call->in[i].kind != DP_ARG_SCALAR || call->in[i].as.scalar->element != DP_F32)
            return count;
    double in_float = ceilf(((float)end - (float)start) / (float)step);
    return (double)dp_tensor_count(call->out[0].as.tensor) == in_float ? in_float : count;
}

static dp_status arange(const dp_operator_call *call, dp_plan **out_plan) {
    double start = dp_arg_real(&call->in[0], 0), end = dp_arg_real(&call->in[1], 0),
           step = dp_arg_real(&call->in[2], 1);
    if (step == 0 || step != step || (step > 0 ? !(end >= start) : !(end <= start)))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %g, which does not lead from %g to %g", call->in[2].name, step, start,
                       end);
    dp_status status = expect_count(&call->out[0], arange_count(call, start, end, step), "ceil((end - start) / step)");
    if (status != DP_OK)
        return status;
    sequence s = {.integral = is_integral(&call->in[0]) && is_integral(&call->in[1]) && is_integral(&call->in[2]),
                  .start = start,
                  .step = step,
                  .first_integer = dp_arg_integer(&call->in[0], 0),
                  .step_integer = dp_arg_integer(&call->in[2], 1),
                  .count = INT64_MAX};
    return sequence_plan(call, &s, out_plan);
}

static dp_status linspace(const dp_operator_call *call, dp_plan **out_plan) {
    int64_t steps = dp_arg_integer(&call->in[2], 0);
    dp_status status = expect_count(&call->out[0], (double)steps, "the number of steps");
    if (status != DP_OK)
        return status;
    double start = dp_arg_real(&call->in[0], 0), end = dp_arg_real(&call->in[1], 0);
    sequence s = {
        .start = start, .last = end, .step = steps > 1 ? (end - start) / (double)(steps - 1) : 0, .count = steps};
    if (steps == 1)
        s.count = INT64_MAX; /* the start, not the end */
    s.power = call->op->function->detail != NULL;
    s.base = s.power ? dp_arg_real(&call->in[3], 10) : 1;
    return sequence_plan(call, &s, out_plan);
}

static dp_status eye(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *out = call->out[0].as.tensor;
    int64_t dims[2] = {dp_arg_integer(&call->in[0], 0), dp_arg_integer(&call->in[1], 0)};
    dp_status status = dp_shape_expect(out, call->out[0].name, dims, 2, "rows and columns");
    if (status != DP_OK)
        return status;
    sequence s = {.eye = true, .columns = dims[1] > 0 ? dims[1] : 1};
    return sequence_plan(call, &s, out_plan);
}

/* Triangles. A line of the loop is a row of a matrix. */

typedef struct triangle {
    dp_loop rows; /* views 0 out, 1 self; all dims but the last */
    int64_t columns, to_stride, from_stride, row_count, diagonal;
    bool upper;
    int to, from;
} triangle;

static void triangle_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const triangle *t = j->state;
    size_t width = dp_element_bytes(j->plan->tensors[t->to].view.element);
    const uint8_t zero[16] = {0};
    for (size_t line = begin; line < end; line++) {
        int64_t row = (int64_t)line % t->row_count, edge;
        char *to = (char *)dp_plan_data(j->plan, t->to) + dp_loop_offset(&t->rows, 0, (int64_t)line) * (int64_t)width;
        const char *from =
            (const char *)dp_plan_data(j->plan, t->from) + dp_loop_offset(&t->rows, 1, (int64_t)line) * (int64_t)width;
        /* lower keeps columns up to row + diagonal, upper those from it */
        if (__builtin_add_overflow(row, t->diagonal, &edge))
            edge = t->diagonal > 0 ? t->columns : -1;
        for (int64_t c = 0; c < t->columns; c++) {
            bool kept = t->upper ? c >= edge : c <= edge;
            memcpy(to + c * t->to_stride * (int64_t)width,
                   kept ? (const void *)(from + c * t->from_stride * (int64_t)width) : (const void *)zero, width);
        }
    }
}

static dp_status run_triangle(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    const triangle *t = j.state;
    if (!t->rows.count || !t->columns)
        return DP_OK;
    int64_t grain = GRAIN / t->columns;
    dp_pool_for((size_t)t->rows.count, (size_t)(grain < 1 ? 1 : grain), triangle_range, &j);
    return DP_OK;
}

static dp_status triangle_plan(const dp_operator_call *call, bool upper, dp_plan **out_plan) {
    const dp_tensor *self = call->in[0].as.tensor, *out = call->out[0].as.tensor;
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK && self->rank < 2)
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least 2", call->in[0].name, self->rank);
    if (status == DP_OK && out->element != self->element)
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have those of %s, %s", call->out[0].name,
                    dp_element_name(out->element), call->in[0].name, dp_element_name(self->element));
    if (status == DP_OK)
        status = dp_shape_expect(out, call->out[0].name, self->dims, self->rank, "the input");
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run_triangle, sizeof(triangle));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    triangle *t = dp_plan_state(plan);
    int last = self->rank - 1;
    dp_loop_begin(&t->rows, self->dims, last);
    dp_loop_add_strides(&t->rows, out->strides);
    dp_loop_add_strides(&t->rows, self->strides);
    t->columns = self->dims[last];
    t->row_count = self->dims[last - 1];
    t->to_stride = out->strides[last];
    t->from_stride = self->strides[last];
    t->diagonal = dp_arg_integer(&call->in[1], 0);
    t->upper = upper;
    t->to = call->out[0].slot;
    t->from = call->in[0].slot;
    plan->path = "rows";
    *out_plan = plan;
    return DP_OK;
}

static dp_status tril(const dp_operator_call *call, dp_plan **out_plan) {
    return triangle_plan(call, false, out_plan);
}
static dp_status triu(const dp_operator_call *call, dp_plan **out_plan) {
    return triangle_plan(call, true, out_plan);
}

#define EXPORT(function)                                                                                               \
    extern const dp_function dp_generate_##function;                                                                   \
    const dp_function dp_generate_##function = {#function, function, NULL, 0, 0};
EXPORT(arange)
EXPORT(linspace)
EXPORT(eye)
EXPORT(tril)
EXPORT(triu)

static const bool is_power = true;
extern const dp_function dp_generate_logspace;
const dp_function dp_generate_logspace = {"logspace", linspace, &is_power, 0, 0};
