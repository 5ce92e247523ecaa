/*
 * backward.c - gradients of norms over lines. With g the incoming gradient times the weight, h the normalised input and
 * means taken over a line:
 *   layer_backward(grad, input, normalized_shape, mean, rstd, weight, mask) -> grad_input, grad_weight, grad_bias
 *     grad_input = rstd (g - mean(g) - h mean(g h)); grad_weight and grad_bias sum grad h and grad over all lines
 *   rms_backward(grad, input, rstd, weight) -> grad_input, grad_weight
 *     grad_input = rstd (g - h mean(g h)) with h = input rstd
 * mask says which of the three are wanted. Computed in double; sums over lines in a fixed number of pieces.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { PIECES = 16, GRAD = 0, INPUT = 1, GRAD_INPUT = 2, WIDE = 3 };

/* A tensor with a number per line, or per element of a line; slot -1: absent. */
typedef struct numbers {
    int slot;
    dp_loop loop;
    dp_convert_fn load, store;
} numbers;

typedef struct state {
    dp_loop lines, line; /* views 0 grad, 1 input, 2 grad_input */
    int slots[WIDE];     /* grad_input may be -1 */
    dp_convert_fn load[WIDE], store;
    numbers mean, rstd, weight, grad_weight, grad_bias;
    bool centred;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    const double *weight; /* NULL: 1 */
    double *sums;         /* of each piece: grad_weight, then grad_bias */
    _Atomic bool out_of_memory;
} job;

static void read_numbers(const job *j, const numbers *from, int64_t at, size_t n, double *to) {
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[from->slot].view.element);
    for (size_t done = 0, part; done < n; done += part) {
        part = n - done < DP_TILE ? n - done : DP_TILE;
        from->load(
            to + done,
            dp_loop_gather(&from->loop, 0, dp_plan_data(j->plan, from->slot), width, at + (int64_t)done, part, raw),
            part);
    }
}

static void write_numbers(const job *j, const numbers *to, const double *from) {
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[to->slot].view.element);
    for (int64_t at = 0, n; at < to->loop.count; at += n) {
        n = to->loop.count - at < DP_TILE ? to->loop.count - at : DP_TILE;
        to->store(raw, from + at, (size_t)n);
        dp_loop_scatter(&to->loop, 0, dp_plan_data(j->plan, to->slot), width, at, (size_t)n, raw);
    }
}

static char *line_of(const job *j, int view, int64_t line, size_t *out_width) {
    int slot = j->s->slots[view];
    *out_width = dp_element_bytes(j->plan->tensors[slot].view.element);
    return (char *)dp_plan_data(j->plan, slot) + dp_loop_offset(&j->s->lines, view, line) * (int64_t)*out_width;
}

static void read_line(const job *j, int view, int64_t line, double *to) {
    size_t width;
    const char *from = line_of(j, view, line, &width);
    double raw[DP_TILE];
    for (int64_t at = 0, n; at < j->s->line.count; at += n) {
        n = j->s->line.count - at < DP_TILE ? j->s->line.count - at : DP_TILE;
        j->s->load[view](to + at, dp_loop_gather(&j->s->line, view, from, width, at, (size_t)n, raw), (size_t)n);
    }
}

static void write_line(const job *j, int64_t line, const double *from) {
    size_t width;
    char *to = line_of(j, GRAD_INPUT, line, &width);
    double raw[DP_TILE];
    for (int64_t at = 0, n; at < j->s->line.count; at += n) {
        n = j->s->line.count - at < DP_TILE ? j->s->line.count - at : DP_TILE;
        j->s->store(raw, from + at, (size_t)n);
        dp_loop_scatter(&j->s->line, GRAD_INPUT, to, width, at, (size_t)n, raw);
    }
}

static void run_line(const job *j, int64_t line, double *grad, double *h, double *sums) {
    const state *s = j->s;
    size_t n = (size_t)s->line.count;
    double mean = 0, rstd, sum = 0, product = 0;
    read_line(j, GRAD, line, grad);
    read_line(j, INPUT, line, h);
    if (s->centred)
        read_numbers(j, &s->mean, line, 1, &mean);
    read_numbers(j, &s->rstd, line, 1, &rstd);
    for (size_t i = 0; i < n; i++) {
        h[i] = (h[i] - mean) * rstd;
        sums[i] += grad[i] * h[i];
        sums[n + i] += grad[i];
        grad[i] *= j->weight ? j->weight[i] : 1;
        sum += grad[i];
        product += grad[i] * h[i];
    }
    if (s->slots[GRAD_INPUT] < 0)
        return;
    sum = s->centred ? sum / (double)n : 0;
    product /= (double)n;
    for (size_t i = 0; i < n; i++)
        grad[i] = rstd * (grad[i] - sum - h[i] * product);
    write_line(j, line, grad);
}

static void run_pieces(void *context, size_t begin, size_t end) {
    job *j = context;
    int64_t n = j->s->line.count, lines = j->s->lines.count;
    double *buffers = dp_alloc(DP_MEM_RUNTIME, 2 * (size_t)n * sizeof(double));
    if (!buffers) {
        atomic_store(&j->out_of_memory, true);
        return;
    }
    for (size_t piece = begin; piece < end; piece++)
        for (int64_t line = lines * (int64_t)piece / PIECES; line < lines * (int64_t)(piece + 1) / PIECES; line++)
            run_line(j, line, buffers, buffers + n, j->sums + 2 * n * (int64_t)piece);
    dp_free(buffers);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    size_t n = (size_t)s->line.count;
    double *block = dp_alloc(DP_MEM_RUNTIME, (n + 1 + 2 * n * PIECES) * sizeof(double));
    if (!block)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for gradients of %zu elements: free some", n);
    j.sums = block + n;
    if (s->weight.slot >= 0) {
        read_numbers(&j, &s->weight, 0, n, block);
        j.weight = block;
    }
    if (s->lines.count && n)
        dp_pool_for(PIECES, 1, run_pieces, &j);
    for (size_t piece = 1; piece < PIECES; piece++)
        for (size_t i = 0; i < 2 * n; i++)
            j.sums[i] += j.sums[2 * n * piece + i];
    if (s->grad_weight.slot >= 0)
        write_numbers(&j, &s->grad_weight, j.sums);
    if (s->grad_bias.slot >= 0)
        write_numbers(&j, &s->grad_bias, j.sums + n);
    bool failed = atomic_load(&j.out_of_memory);
    dp_free(block);
    return failed ? dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for lines of %zu elements: free some", n) : DP_OK;
}

/* Phase one. */

static dp_status take_numbers(const dp_operator_call *call, const dp_arg *arg, int64_t count, const char *meaning,
                              numbers *to) {
    to->slot = -1;
    if (!arg || arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, call->op->elements | DP_EL_BIT(DP_F32));
    if (status == DP_OK && dp_tensor_count(t) != count)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have one for each %s: %lld", arg->name,
                         (long long)dp_tensor_count(t), meaning, (long long)count);
    to->slot = arg->slot;
    to->load = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
    to->store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F64];
    dp_loop_begin(&to->loop, t->dims, t->rank);
    dp_loop_add(&to->loop, t);
    dp_loop_merge(&to->loop, false);
    return status;
}

static dp_status take_wide(const dp_operator_call *call, const dp_arg *arg, const dp_tensor *like, int inner, int view,
                           state *s) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    s->slots[view] = -1;
    bool present = arg && arg->kind == DP_ARG_TENSOR;
    const dp_tensor *t = present ? arg->as.tensor : like;
    int outer = like->rank - inner;
    dp_status status = present ? dp_element_expect(arg, call->op->elements) : DP_OK;
    if (present && status == DP_OK)
        status = dp_shape_expect(t, arg->name, like->dims, like->rank, "the input's");
    if (status != DP_OK)
        return status;
    dp_loop_add_strides(&s->lines, present && outer ? t->strides : none);
    dp_loop_add_strides(&s->line, present && inner ? t->strides + outer : none);
    if (!present)
        return DP_OK;
    s->slots[view] = arg->slot;
    s->load[view] = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
    s->store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F64];
    return view == GRAD_INPUT ? dp_places_expect(arg) : DP_OK;
}

typedef struct parts {
    const dp_arg *grad, *input, *mean, *rstd, *weight, *grad_input, *grad_weight, *grad_bias;
    int inner; /* dims of a line */
} parts;

static dp_status prepare(const dp_operator_call *call, const parts *p, dp_plan **out_plan) {
    const dp_tensor *x = p->input->as.tensor;
    state s = {.centred = p->mean != NULL};
    if (p->inner > x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but the norm is over %d", p->input->name, x->rank,
                       p->inner);
    int outer = x->rank - p->inner;
    dp_loop_begin(&s.lines, x->dims, outer);
    dp_loop_begin(&s.line, x->dims + outer, p->inner);
    const dp_arg *wide[WIDE] = {p->grad, p->input, p->grad_input};
    dp_status status = DP_OK;
    for (int view = 0; view < WIDE && status == DP_OK; view++)
        status = take_wide(call, wide[view], x, p->inner, view, &s);
    int64_t lines = s.lines.count, n = s.line.count;
    if (status == DP_OK)
        status = take_numbers(call, p->mean, lines, "line", &s.mean);
    if (status == DP_OK)
        status = take_numbers(call, p->rstd, lines, "line", &s.rstd);
    if (status == DP_OK)
        status = take_numbers(call, p->weight, n, "element of a line", &s.weight);
    if (status == DP_OK)
        status = take_numbers(call, p->grad_weight, n, "element of a line", &s.grad_weight);
    if (status == DP_OK)
        status = take_numbers(call, p->grad_bias, n, "element of a line", &s.grad_bias);
    if (status == DP_OK && p->grad_weight)
        status = dp_places_expect(p->grad_weight);
    if (status == DP_OK && p->grad_bias)
        status = dp_places_expect(p->grad_bias);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    *(state *)dp_plan_state(plan) = s;
    plan->path = "f64 lines";
    *out_plan = plan;
    return DP_OK;
}

/* The output, when the mask wants it. */
static dp_status wanted(const dp_operator_call *call, int k, const dp_arg **out) {
    const dp_arg *mask = &call->in[6];
    *out = mask->as.bools[k] ? &call->out[k] : NULL;
    if (*out && (*out)->kind == DP_ARG_ABSENT)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s[%d] wants it", call->out[k].name, mask->name, k);
    return DP_OK;
}

static dp_status layer_backward(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *shape = &call->in[2], *mask = &call->in[6];
    const dp_tensor *x = call->in[1].as.tensor;
    parts p = {&call->in[0], &call->in[1], &call->in[3], &call->in[4],     &call->in[5],
               NULL,         NULL,         NULL,         (int)shape->count};
    if (mask->count != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have 3", mask->name, (long long)mask->count);
    if (shape->count < 1 || shape->count > x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have 1 to %d", shape->name,
                       (long long)shape->count, x->rank);
    for (int d = 0; d < p.inner; d++)
        if (shape->as.integers[d] != x->dims[x->rank - p.inner + d])
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be that of %s: %lld", shape->name, d,
                           (long long)shape->as.integers[d], call->in[1].name,
                           (long long)x->dims[x->rank - p.inner + d]);
    dp_status status = wanted(call, 0, &p.grad_input);
    if (status == DP_OK)
        status = wanted(call, 1, &p.grad_weight);
    if (status == DP_OK)
        status = wanted(call, 2, &p.grad_bias);
    return status == DP_OK ? prepare(call, &p, out_plan) : status;
}

static dp_status rms_backward(const dp_operator_call *call, dp_plan **out_plan) {
    parts p = {&call->in[0],  &call->in[1], NULL,
               &call->in[2],  &call->in[3], &call->out[0],
               &call->out[1], NULL,         call->in[3].as.tensor->rank};
    return prepare(call, &p, out_plan);
}

extern const dp_function dp_norm_layer_backward, dp_norm_rms_backward;
const dp_function dp_norm_layer_backward = {"layer_backward", layer_backward, NULL, 32, 7};
const dp_function dp_norm_rms_backward = {"rms_backward", rms_backward, NULL, 0, 0};
