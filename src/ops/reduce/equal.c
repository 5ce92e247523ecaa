/*
 * equal.c - one truth value of two operands: equal(self, other) -> out, true when they have the same shape and all
 * elements are equal (NaN never is); contains(element, tests, invert) -> out, true when the scalar is among the tests.
 * Integers are compared as int64, anything else as double.
 */
#include <stdatomic.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct state {
    dp_loop loop; /* views 0 and 1: the tensors */
    int slots[2]; /* the second -1: the scalar */
    bool integral, same_shape, invert, contains;
    dp_scalar scalar;
    dp_convert_fn load[2], store;
    int out;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool found; /* a difference, or (contains) the element */
} job;

typedef union tile {
    double real[DP_TILE];
    int64_t integer[DP_TILE];
} tile;

static void read_tile(const job *j, int k, size_t at, size_t n, tile *to) {
    const state *s = j->s;
    double raw[DP_TILE];
    if (s->slots[k] >= 0) {
        size_t width = dp_element_bytes(j->plan->tensors[s->slots[k]].view.element);
        s->load[k](to, dp_loop_gather(&s->loop, k, dp_plan_data(j->plan, s->slots[k]), width, (int64_t)at, n, raw), n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (s->integral)
            to->integer[i] = s->scalar.integer;
        else
            to->real[i] = s->scalar.real;
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    tile a, b;
    for (size_t at = begin, n; at < end && !atomic_load(&j->found); at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        read_tile(j, 0, at, n, &a);
        read_tile(j, 1, at, n, &b);
        int64_t equal = 0;
        for (size_t i = 0; i < n; i++)
            equal += j->s->integral ? a.integer[i] == b.integer[i] : a.real[i] == b.real[i];
        if (j->s->contains ? equal > 0 : equal < (int64_t)n)
            atomic_store(&j->found, true);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    if (s->same_shape && s->loop.count)
        dp_pool_for((size_t)s->loop.count, GRAIN, run_range, &j);
    bool found = atomic_load(&j.found);
    int64_t truth = s->contains ? found != s->invert : s->same_shape && !found;
    s->store(dp_plan_data(plan, s->out), &truth, 1);
    return DP_OK;
}

static dp_status check(const dp_operator_call *call, const dp_arg *const *tensors, int n) {
    const dp_arg *out = &call->out[0];
    dp_status status = dp_element_expect(out, DP_EL_BIT(DP_EL_BOOL) | DP_EL_BIT(DP_U8));
    for (int i = 0; i < n && status == DP_OK; i++)
        status = dp_element_expect(tensors[i], call->op->elements);
    if (status == DP_OK && dp_tensor_count(out->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", out->name,
                         (long long)dp_tensor_count(out->as.tensor));
    return status;
}

static dp_status new_plan(const dp_operator_call *call, const dp_arg *const *tensors, int n, bool integral,
                          dp_plan **out_plan, state **out_state) {
    dp_status status = check(call, tensors, n);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    dp_compute compute = integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64;
    const dp_tensor *first = tensors[0]->as.tensor;
    s->integral = integral;
    s->same_shape = true;
    s->slots[1] = -1;
    s->out = call->out[0].slot;
    s->store = dp_elementwise_current()->store[call->out[0].as.tensor->element][DP_COMPUTE_I64];
    dp_loop_begin(&s->loop, first->dims, first->rank);
    for (int i = 0; i < n; i++) {
        const dp_tensor *t = tensors[i]->as.tensor;
        s->same_shape = s->same_shape && t->rank == first->rank;
        for (int d = 0; d < first->rank && s->same_shape; d++)
            s->same_shape = t->dims[d] == first->dims[d];
        s->slots[i] = tensors[i]->slot;
        s->load[i] = dp_elementwise_current()->load[t->element][compute];
        dp_loop_add(&s->loop, t);
    }
    dp_loop_merge(&s->loop, true);
    plan->path = integral ? "i64 tiles" : "f64 tiles";
    *out_plan = plan;
    *out_state = s;
    return DP_OK;
}

static dp_status equal(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *tensors[] = {&call->in[0], &call->in[1]};
    bool integral =
        !dp_element_is_float(tensors[0]->as.tensor->element) && !dp_element_is_float(tensors[1]->as.tensor->element);
    state *s;
    return new_plan(call, tensors, 2, integral, out_plan, &s);
}

static dp_status contains(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *tensors[] = {&call->in[1]};
    const dp_scalar *element = call->in[0].as.scalar;
    state *s;
    bool integral = !dp_element_is_float(tensors[0]->as.tensor->element) && !dp_element_is_float(element->element);
    dp_status status = new_plan(call, tensors, 1, integral, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->scalar = *element;
    s->contains = true;
    s->invert = dp_arg_integer(&call->in[2], 0) != 0;
    return DP_OK;
}

extern const dp_function dp_reduce_equal, dp_reduce_contains;
const dp_function dp_reduce_equal = {"equal", equal, NULL, 0, 0};
const dp_function dp_reduce_contains = {"contains", contains, NULL, 0, 0};
