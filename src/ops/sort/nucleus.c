/*
 * nucleus.c - the words that sampling may choose from: top_k_top_p(logits, p, k) -> out
 *   A line of out is that of logits with -infinity where a logit is less than the k-th largest, and then where the
 *   probabilities (softmax of what is left) of the smaller ones, itself included, sum to no more than 1 - p. The
 * largest logit always stays. p and k have one number per line and may be absent; k outside 1 to the length keeps all.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/sort/kernels.h"
#include "runtime/pool.h"

typedef struct state {
    dp_loop lines, line; /* views: 0 out, 1 logits */
    dp_loop p_lines, k_lines;
    int out, logits, p, k; /* slots, -1: absent */
    dp_convert_fn load, store, load_p, load_k;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool out_of_memory;
} job;

static void read_number(const job *j, int slot, const dp_loop *loop, dp_convert_fn load, int64_t line, void *to) {
    size_t width = dp_element_bytes(j->plan->tensors[slot].view.element);
    load(to, (char *)dp_plan_data(j->plan, slot) + dp_loop_offset(loop, 0, line) * (int64_t)width, 1);
}

/* x in rising order at order[first..n): where what may stay begins. */
static size_t keep_top_p(const double *x, const uint32_t *order, size_t first, size_t n, double p) {
    double largest = x[order[n - 1]], total = 0, sum = 0;
    if (!isfinite(largest))
        return first;
    for (size_t i = first; i < n; i++)
        total += exp(x[order[i]] - largest);
    while (first + 1 < n && (sum += exp(x[order[first]] - largest) / total) <= 1 - p)
        first++;
    return first;
}

static void run_line(const job *j, int64_t line, double *x, uint64_t *keys, uint32_t *order, void *scratch) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->logits].view.element), n = (size_t)s->line.count, first = 0;
    const char *from =
        (const char *)dp_plan_data(j->plan, s->logits) + dp_loop_offset(&s->lines, 1, line) * (int64_t)width;
    char *to = (char *)dp_plan_data(j->plan, s->out) + dp_loop_offset(&s->lines, 0, line) * (int64_t)width;
    double raw[DP_TILE];
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < DP_TILE ? n - at : DP_TILE;
        s->load(x + at, dp_loop_gather(&s->line, 1, from, width, (int64_t)at, part, raw), part);
    }
    dp_sort_current()->keys[DP_F64](keys, x, n, false);
    dp_sort_line sorted = {keys, n, true, 64};
    dp_sort_order(&sorted, order, scratch);
    if (s->k >= 0) {
        int64_t k;
        read_number(j, s->k, &s->k_lines, s->load_k, line, &k);
        first = k >= 1 && k < (int64_t)n ? n - (size_t)k : 0;
        while (first && x[order[first - 1]] == x[order[first]]) /* what equals the k-th stays */
            first--;
    }
    if (s->p >= 0) {
        double p;
        read_number(j, s->p, &s->p_lines, s->load_p, line, &p);
        first = keep_top_p(x, order, first, n, p);
    }
    for (size_t i = 0; i < first; i++)
        x[order[i]] = -INFINITY;
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < DP_TILE ? n - at : DP_TILE;
        s->store(raw, x + at, part);
        dp_loop_scatter(&s->line, 0, to, width, (int64_t)at, part, raw);
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    size_t n = (size_t)j->s->line.count, doubles = (n * 8 + 63) & ~(size_t)63;
    size_t bytes = 3 * doubles + dp_sort_scratch_bytes(n, true);
    char *block = dp_sort_room(bytes);
    if (!block) {
        atomic_store(&j->out_of_memory, true);
        return;
    }
    for (size_t line = begin; line < end; line++)
        run_line(j, (int64_t)line, (double *)block, (uint64_t *)(block + doubles), (uint32_t *)(block + 2 * doubles),
                 block + 3 * doubles);
    dp_sort_room_end(block, bytes);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    if (!j.s->lines.count || !j.s->line.count)
        return DP_OK;
    dp_pool_for((size_t)j.s->lines.count, (size_t)(4096 / j.s->line.count + 1), run_range, &j);
    if (atomic_load(&j.out_of_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to sort lines of %lld logits: free some",
                       (long long)j.s->line.count);
    return DP_OK;
}

/* A number per line: its loop. */
static dp_status take_numbers(const dp_arg *arg, uint32_t elements, int64_t lines, dp_loop *loop, int *out_slot) {
    *out_slot = -1;
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    if (dp_tensor_count(t) != lines)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have one for each of %lld lines", arg->name,
                       (long long)dp_tensor_count(t), (long long)lines);
    *out_slot = arg->slot;
    dp_loop_begin(loop, t->dims, t->rank);
    dp_loop_add(loop, t);
    dp_loop_merge(loop, false);
    return dp_element_expect(arg, elements);
}

static dp_status top_k_top_p(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *p = &call->in[1], *k = &call->in[2], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    state found = {.logits = in->slot, .out = out->slot};
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK && (!self->rank || self->dims[self->rank - 1] > UINT32_MAX))
        status = dp_fail(DP_ERR_ARGUMENT, "%s must have at least 1 dimension, the last of at most 2^32 - 1", in->name);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(self->element));
    if (status == DP_OK)
        status = dp_shape_expect(to, out->name, self->dims, self->rank, "the logits'");
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status != DP_OK)
        return status;
    int last = self->rank - 1;
    dp_loop_begin(&found.lines, self->dims, last);
    status = take_numbers(p, DP_EL_FLOATS, found.lines.count, &found.p_lines, &found.p);
    if (status == DP_OK)
        status = take_numbers(k, DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64), found.lines.count, &found.k_lines, &found.k);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    const dp_elementwise_table *convert = dp_elementwise_current();
    dp_loop_add_strides(&found.lines, to->strides);
    dp_loop_add_strides(&found.lines, self->strides);
    dp_loop_begin(&found.line, &self->dims[last], 1);
    dp_loop_add_strides(&found.line, &to->strides[last]);
    dp_loop_add_strides(&found.line, &self->strides[last]);
    found.load = convert->load[self->element][DP_COMPUTE_F64];
    found.store = convert->store[self->element][DP_COMPUTE_F64];
    found.load_p = found.p < 0 ? NULL : convert->load[p->as.tensor->element][DP_COMPUTE_F64];
    found.load_k = found.k < 0 ? NULL : convert->load[k->as.tensor->element][DP_COMPUTE_I64];
    *(state *)dp_plan_state(plan) = found;
    plan->path = "radix";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_sort_top_k_top_p;
const dp_function dp_sort_top_k_top_p = {"top_k_top_p", top_k_top_p, NULL, 6, 0};
