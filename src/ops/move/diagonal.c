/*
 * diagonal.c - trace(self) -> out, the sum of a matrix's diagonal (double; integers wrap in int64); fill_diagonal(self,
 * value, wrap) -> self, elements whose indices are all equal; wrap: matrices with more rows than columns begin again
 * after a row.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/op.h"

typedef struct state {
    int from, to;
    bool integral, wrap;
    dp_convert_fn load, store;
    dp_scalar value;
} state;

static dp_status run_trace(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const dp_tensor *t = &plan->tensors[s->from].view;
    int64_t n = t->dims[0] < t->dims[1] ? t->dims[0] : t->dims[1], step = t->strides[0] + t->strides[1];
    int64_t width = (int64_t)dp_element_bytes(t->element);
    union {
        double real;
        int64_t integer;
    } sum = {.integer = 0}, x;
    if (!s->integral)
        sum.real = 0;
    for (int64_t i = 0; i < n; i++) {
        s->load(&x, (const char *)dp_tensor_data(t) + i * step * width, 1);
        if (s->integral)
            sum.integer = (int64_t)((uint64_t)sum.integer + (uint64_t)x.integer);
        else
            sum.real += x.real;
    }
    s->store(dp_plan_data(plan, s->to), &sum, 1);
    return DP_OK;
}

static dp_status run_fill(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const dp_tensor *t = &plan->tensors[s->to].view;
    int64_t n = t->dims[0], step = 0, width = (int64_t)dp_element_bytes(t->element);
    for (int d = 0; d < t->rank; d++) {
        n = t->dims[d] < n ? t->dims[d] : n;
        step += t->strides[d];
    }
    for (int64_t row = 0; row < t->dims[0]; row++) {
        int64_t place = s->wrap && t->rank == 2 ? row % (t->dims[1] + 1) : row;
        int64_t offset = t->rank == 2 ? row * t->strides[0] + place * t->strides[1] : row * step;
        if (place < (t->rank == 2 ? t->dims[1] : n))
            s->store((char *)dp_tensor_data(t) + offset * width,
                     s->integral ? (const void *)&s->value.integer : (const void *)&s->value.real, 1);
    }
    return DP_OK;
}

static dp_status finish(const dp_operator_call *call, dp_status (*run)(dp_plan *), const state *s, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = "diagonal";
    *out_plan = plan;
    return DP_OK;
}

static dp_status trace(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    dp_status status = dp_element_expect(in, call->op->elements);
    bool integral = status == DP_OK && !dp_element_is_float(self->element);
    if (status == DP_OK && self->rank != 2)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2", in->name, self->rank);
    if (status == DP_OK)
        status = dp_element_expect(out, integral ? call->op->elements : DP_EL_FLOATS);
    if (status == DP_OK && dp_tensor_count(to) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", out->name,
                         (long long)dp_tensor_count(to));
    if (status != DP_OK)
        return status;
    dp_compute compute = integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64;
    state s = {.from = in->slot, .to = out->slot, .integral = integral};
    s.load = dp_elementwise_current()->load[self->element][compute];
    s.store = dp_elementwise_current()->store[to->element][compute];
    return finish(call, run_trace, &s, out_plan);
}

static dp_status fill_diagonal(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0];
    const dp_tensor *t = self->as.tensor;
    dp_status status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK && t->rank < 2)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least 2", self->name, t->rank);
    for (int d = 1; d < t->rank && t->rank > 2 && status == DP_OK; d++)
        if (t->dims[d] != t->dims[0])
            status =
                dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but all must be alike when there are more than 2",
                        self->name, d, (long long)t->dims[d]);
    if (status == DP_OK)
        status = dp_places_expect(self);
    if (status != DP_OK)
        return status;
    state s = {.to = self->slot, .wrap = dp_arg_integer(&call->in[2], 0) != 0, .value = *call->in[1].as.scalar};
    s.integral = !dp_element_is_float(t->element);
    s.store = dp_elementwise_current()->store[t->element][s.integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
    return finish(call, run_fill, &s, out_plan);
}

extern const dp_function dp_move_trace, dp_move_fill_diagonal;
const dp_function dp_move_trace = {"trace", trace, NULL, 0, 0};
const dp_function dp_move_fill_diagonal = {"fill_diagonal", fill_diagonal, NULL, 0, 0};
