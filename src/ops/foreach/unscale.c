/*
 * unscale.c - gradients of scaled losses: unscale(tensors, found_inf, inv_scale) -> tensors, found_inf
 * Every element is multiplied by inv_scale; found_inf becomes 1 when one of them was infinite or NaN, else it stays.
 */
#include <math.h>
#include <stdatomic.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct state {
    int count, first, found, scale; /* tensors and their first slot; slots */
    dp_convert_fn load_scale, store_found;
} state;

typedef struct job {
    dp_plan *plan;
    int slot;
    dp_loop loop;
    dp_convert_fn load, store;
    double factor;
    _Atomic bool found;
} job;

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    size_t width = dp_element_bytes(j->plan->tensors[j->slot].view.element);
    double x[DP_TILE], raw[DP_TILE], sum = 0;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        j->load(x, dp_loop_gather(&j->loop, 0, dp_plan_data(j->plan, j->slot), width, (int64_t)at, n, raw), n);
        for (size_t i = 0; i < n; i++) {
            sum += x[i] - x[i]; /* 0, or NaN once one is not finite */
            x[i] *= j->factor;
        }
        j->store(raw, x, n);
        dp_loop_scatter(&j->loop, 0, dp_plan_data(j->plan, j->slot), width, (int64_t)at, n, raw);
    }
    if (sum != 0)
        atomic_store(&j->found, true);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {.plan = plan};
    s->load_scale(&j.factor, dp_plan_data(plan, s->scale), 1);
    for (int i = 0; i < s->count; i++) {
        const dp_tensor *t = &plan->tensors[s->first + i].view;
        j.slot = s->first + i;
        j.load = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
        j.store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F64];
        dp_loop_begin(&j.loop, t->dims, t->rank);
        dp_loop_add(&j.loop, t);
        dp_loop_merge(&j.loop, true);
        if (j.loop.count)
            dp_pool_for((size_t)j.loop.count, GRAIN, run_range, &j);
    }
    double one = 1;
    if (atomic_load(&j.found))
        s->store_found(dp_plan_data(plan, s->found), &one, 1);
    return DP_OK;
}

static dp_status expect_one(const dp_arg *arg) {
    dp_status status = dp_element_expect(arg, DP_EL_FLOATS);
    if (status == DP_OK && dp_tensor_count(arg->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", arg->name,
                         (long long)dp_tensor_count(arg->as.tensor));
    return status;
}

static dp_status unscale(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *list = &call->in[0], *found = &call->in[1], *scale = &call->in[2];
    dp_status status = expect_one(found);
    if (status == DP_OK)
        status = expect_one(scale);
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = {.name = list->name, .kind = DP_ARG_TENSOR, .as.tensor = list->as.tensors[i]};
        status = dp_element_expect(&one, call->op->elements);
        if (status == DP_OK)
            status = dp_places_expect(&one);
    }
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    s->count = (int)list->count;
    s->first = list->slot;
    s->found = found->slot;
    s->scale = scale->slot;
    s->load_scale = dp_elementwise_current()->load[scale->as.tensor->element][DP_COMPUTE_F64];
    s->store_found = dp_elementwise_current()->store[found->as.tensor->element][DP_COMPUTE_F64];
    plan->path = "one after the other";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_foreach_unscale;
const dp_function dp_foreach_unscale = {"unscale", unscale, NULL, 0, 0};
