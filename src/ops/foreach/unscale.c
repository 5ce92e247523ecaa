/*
 * unscale.c - gradients of scaled losses.
 *   unscale(tensors, found_inf, inv_scale) -> tensors, found_inf
 *     Every element is multiplied by inv_scale; found_inf becomes 1 when one of them was infinite or NaN, else it
 * stays. update_scale(scale, tracker, found_inf, growth, backoff, interval) -> scale, tracker found_inf not 0: scale *=
 * backoff, tracker = 0. Else tracker grows by 1; at interval it becomes 0 and scale *= growth, unless that is infinite.
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

typedef struct scaling {
    int slots[5]; /* scale, tracker, found_inf, then the outputs */
    dp_convert_fn load[3], store[2];
    double growth, backoff;
    int64_t interval;
} scaling;

static dp_status run_update(dp_plan *plan) {
    const scaling *s = dp_plan_state(plan);
    double scale, found;
    int64_t tracker;
    s->load[0](&scale, dp_plan_data(plan, s->slots[0]), 1);
    s->load[1](&tracker, dp_plan_data(plan, s->slots[1]), 1);
    s->load[2](&found, dp_plan_data(plan, s->slots[2]), 1);
    if (found != 0) {
        scale *= s->backoff;
        tracker = 0;
    } else if (tracker + 1 == s->interval) {
        float grown = (float)(scale * s->growth);
        scale = isfinite(grown) ? grown : scale;
        tracker = 0;
    } else {
        tracker++;
    }
    s->store[0](dp_plan_data(plan, s->slots[3]), &scale, 1);
    s->store[1](dp_plan_data(plan, s->slots[4]), &tracker, 1);
    return DP_OK;
}

static dp_status update_scale(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *args[5] = {&call->in[0], &call->in[1], &call->in[2], &call->out[0], &call->out[1]};
    dp_status status = DP_OK;
    for (int k = 0; k < 5 && status == DP_OK; k++) {
        bool is_tracker = k == 1 || k == 4;
        status = dp_element_expect(args[k], is_tracker ? DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64) : DP_EL_BIT(DP_F32));
        if (status == DP_OK && dp_tensor_count(args[k]->as.tensor) != 1)
            status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", args[k]->name,
                             (long long)dp_tensor_count(args[k]->as.tensor));
    }
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run_update, sizeof(scaling)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    scaling *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    for (int k = 0; k < 5; k++) {
        int element = args[k]->as.tensor->element;
        dp_compute compute = k == 1 || k == 4 ? DP_COMPUTE_I64 : DP_COMPUTE_F64;
        s->slots[k] = args[k]->slot;
        if (k < 3)
            s->load[k] = convert->load[element][compute];
        else
            s->store[k - 3] = convert->store[element][compute];
    }
    s->growth = dp_arg_real(&call->in[3], 2);
    s->backoff = dp_arg_real(&call->in[4], 0.5);
    s->interval = dp_arg_integer(&call->in[5], 1);
    plan->path = "one number";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_foreach_update_scale;
const dp_function dp_foreach_update_scale = {"update_scale", update_scale, NULL, 0, 0};
