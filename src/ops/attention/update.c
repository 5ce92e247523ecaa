/*
 * update.c - update(logarithms of sums, results, type) -> out, lse: one attention out of parts over different keys.
 * With l_i the logarithm of part i's sum of weights and l = log sum e^l_i: out = sum of e^(l_i - l) result_i, in float,
 * in the order of the list; lse = l, written for type 1. Rows that no part saw a key for are 0.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/attention/kernels.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { PARTS_MAX = 64, GRAIN = 1 << 14 };

typedef struct state {
    int lse_slot, part_slot, out_slot, total_slot; /* of the first in a list; total -1: not wanted */
    int64_t parts, rows, columns;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool no_memory;
} job;

static float number_at(dp_plan *plan, int slot, int64_t row) {
    return ((const float *)dp_plan_data(plan, slot))[row * plan->tensors[slot].view.strides[0]];
}

static void load_row(const dp_tensor *t, int64_t row, float *to) {
    dp_convert_fn load = dp_elementwise_current()->load[t->element][DP_COMPUTE_F32];
    const int64_t width = (int64_t)dp_element_bytes(t->element);
    const char *from = (const char *)dp_tensor_data(t) + row * t->strides[0] * width;
    if (t->strides[1] == 1)
        load(to, from, (size_t)t->dims[1]);
    else
        for (int64_t c = 0; c < t->dims[1]; c++)
            load(to + c, from + c * t->strides[1] * width, 1);
}

static void store_row(const dp_tensor *t, int64_t row, const float *from) {
    dp_convert_fn store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F32];
    const int64_t width = (int64_t)dp_element_bytes(t->element);
    char *to = (char *)dp_tensor_data(t) + row * t->strides[0] * width;
    if (t->strides[1] == 1)
        store(to, from, (size_t)t->dims[1]);
    else
        for (int64_t c = 0; c < t->dims[1]; c++)
            store(to + c * t->strides[1] * width, from + c, 1);
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    const dp_attention_kernels *run = dp_attention_current();
    float *sum = dp_alloc(DP_MEM_RUNTIME, (size_t)(2 * s->columns + 1) * sizeof *sum);
    if (!sum) {
        atomic_store(&j->no_memory, true);
        return;
    }
    float *part = sum + s->columns;
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
        float max = -INFINITY, total = 0;
        for (int p = 0; p < s->parts; p++)
            max = fmaxf(max, number_at(j->plan, s->lse_slot + p, row));
        for (int p = 0; p < s->parts && max > -INFINITY; p++)
            total += expf(number_at(j->plan, s->lse_slot + p, row) - max);
        const float whole = total == 0 ? -INFINITY : max + logf(total);
        memset(sum, 0, (size_t)s->columns * sizeof *sum);
        for (int p = 0; p < s->parts && total != 0; p++) {
            const float weight = expf(number_at(j->plan, s->lse_slot + p, row) - whole);
            if (weight == 0)
                continue;
            load_row(&j->plan->tensors[s->part_slot + p].view, row, part);
            run->add(sum, part, DP_F32, (size_t)s->columns, weight);
        }
        store_row(&j->plan->tensors[s->out_slot].view, row, sum);
        if (s->total_slot >= 0)
            ((float *)dp_plan_data(j->plan, s->total_slot))[row * j->plan->tensors[s->total_slot].view.strides[0]] =
                whole;
    }
    dp_free(sum);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const int64_t work = j.s->columns * j.s->parts;
    if (!j.s->rows || !j.s->columns)
        return DP_OK;
    dp_pool_for((size_t)j.s->rows, (size_t)(work < GRAIN ? GRAIN / work : 1), run_range, &j);
    if (atomic_load(&j.no_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s: no host memory for a row of %lld", plan->op->name,
                       (long long)j.s->columns);
    return DP_OK;
}

/* Member i of a list as an argument of its own, for checks that take one. */
static dp_arg member(const dp_arg *list, int64_t i) {
    return (dp_arg){
        .name = list->name, .kind = DP_ARG_TENSOR, .slot = list->slot + (int)i, .as.tensor = list->as.tensors[i]};
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *lse = &call->in[0], *parts = &call->in[1], *out = &call->out[0], *total = &call->out[1];
    const int64_t type = dp_arg_integer(&call->in[2], 0);
    if (type != 0 && type != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 or 1", call->in[2].name, (long long)type);
    if (type == 1 && total->kind != DP_ARG_TENSOR)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s 1 needs it", total->name, call->in[2].name);
    if (lse->count < 1 || lse->count > PARTS_MAX || parts->count != lse->count)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld tensors and %s %lld, but both must have the same number, 1 to %d",
                       lse->name, (long long)lse->count, parts->name, (long long)parts->count, PARTS_MAX);
    const dp_tensor *o = out->as.tensor;
    dp_status status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK && o->rank != 2)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2", out->name, o->rank);
    for (int64_t i = 0; i < lse->count && status == DP_OK; i++) {
        const dp_arg sum = member(lse, i), part = member(parts, i);
        status = dp_element_expect(&sum, DP_EL_BIT(DP_F32));
        if (status == DP_OK)
            status = dp_shape_expect(sum.as.tensor, sum.name, o->dims, 1, "the rows of the output");
        if (status == DP_OK)
            status = dp_element_expect(&part, call->op->elements);
        if (status == DP_OK)
            status = dp_shape_expect(part.as.tensor, part.name, o->dims, 2, "the output");
    }
    if (status == DP_OK && type == 1)
        status = dp_element_expect(total, DP_EL_BIT(DP_F32));
    if (status == DP_OK && type == 1)
        status = dp_shape_expect(total->as.tensor, total->name, o->dims, 1, "the rows of the output");
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    *(state *)dp_plan_state(plan) =
        (state){lse->slot, parts->slot, out->slot, type == 1 ? total->slot : -1, lse->count, o->dims[0], o->dims[1]};
    plan->path = "rows";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_attention_update;
const dp_function dp_attention_update = {"update", prepare, NULL, 0, 2};
