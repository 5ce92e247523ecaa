/*
 * scan.c - running sums and products along one dim: cumsum(self, dim, dtype) -> out, cumprod likewise. dtype must be
 * the output's type. Floats are accumulated in double, integers wrap in int64. out may be self.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct state {
    dp_loop lines, along; /* views 0 out, 1 self */
    dp_convert_fn load, store;
    bool integral, product;
    int to, from;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

static void run_line(const job *j, int64_t line) {
    const state *s = j->s;
    int to_element = j->plan->tensors[s->to].view.element, from_element = j->plan->tensors[s->from].view.element;
    size_t to_width = dp_element_bytes(to_element), from_width = dp_element_bytes(from_element);
    char *to = (char *)dp_plan_data(j->plan, s->to) + dp_loop_offset(&s->lines, 0, line) * (int64_t)to_width;
    const char *from =
        (const char *)dp_plan_data(j->plan, s->from) + dp_loop_offset(&s->lines, 1, line) * (int64_t)from_width;
    union {
        double real[DP_TILE];
        int64_t integer[DP_TILE];
    } tile;
    double raw[DP_TILE], real = s->product;
    uint64_t integer = s->product;
    for (int64_t at = 0, n; at < s->along.count; at += n) {
        n = s->along.count - at < DP_TILE ? s->along.count - at : DP_TILE;
        s->load(&tile, dp_loop_gather(&s->along, 1, from, from_width, at, (size_t)n, raw), (size_t)n);
        for (int64_t i = 0; i < n; i++) {
            if (s->integral) {
                integer = s->product ? integer * (uint64_t)tile.integer[i] : integer + (uint64_t)tile.integer[i];
                tile.integer[i] = (int64_t)integer;
            } else {
                real = s->product ? real * tile.real[i] : real + tile.real[i];
                tile.real[i] = real;
            }
        }
        s->store(raw, &tile, (size_t)n);
        dp_loop_scatter(&s->along, 0, to, to_width, at, (size_t)n, raw);
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    for (size_t line = begin; line < end; line++)
        run_line(context, (int64_t)line);
}

static dp_status run(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    if (!j.s->lines.count || !j.s->along.count)
        return DP_OK;
    int64_t grain = GRAIN / j.s->along.count;
    dp_pool_for((size_t)j.s->lines.count, (size_t)(grain < 1 ? 1 : grain), run_range, &j);
    return DP_OK;
}

static void split_dims(const dp_tensor *t, int dim, int64_t *dims, int64_t *strides) {
    for (int d = 0, n = 0; d < t->rank; d++) {
        if (d == dim)
            continue;
        dims[n] = t->dims[d];
        strides[n++] = t->strides[d];
    }
}

static dp_status prepare(const dp_operator_call *call, bool product, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *type = &call->in[2], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    int dim = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(to, out->name, self->dims, self->rank, "the input");
    if (status != DP_OK)
        return status;
    if (dp_arg_integer(type, -1) != to->element)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %s, but must be the element type of %s, %s", type->name,
                       dp_element_name((int)dp_arg_integer(type, -1)), out->name, dp_element_name(to->element));
    status = dp_places_expect(out);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    int64_t dims[DP_TENSOR_DIMS] = {0}, a[DP_TENSOR_DIMS] = {0}, b[DP_TENSOR_DIMS] = {0}, one = 1, none = 0;
    split_dims(to, dim, dims, a);
    split_dims(self, dim, dims, b);
    dp_loop_begin(&s->lines, dims, self->rank ? self->rank - 1 : 0);
    dp_loop_add_strides(&s->lines, a);
    dp_loop_add_strides(&s->lines, b);
    dp_loop_merge(&s->lines, false);
    dp_loop_begin(&s->along, self->rank ? &self->dims[dim] : &one, 1);
    dp_loop_add_strides(&s->along, self->rank ? &to->strides[dim] : &none);
    dp_loop_add_strides(&s->along, self->rank ? &self->strides[dim] : &none);
    s->integral = !dp_element_is_float(self->element) && !dp_element_is_float(to->element);
    s->product = product;
    dp_compute compute = s->integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64;
    s->load = dp_elementwise_current()->load[self->element][compute];
    s->store = dp_elementwise_current()->store[to->element][compute];
    s->to = out->slot;
    s->from = in->slot;
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status cumsum(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, false, out_plan);
}
static dp_status cumprod(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, true, out_plan);
}

extern const dp_function dp_scan_cumsum, dp_scan_cumprod;
const dp_function dp_scan_cumsum = {"cumsum", cumsum, NULL, 0, 0};
const dp_function dp_scan_cumprod = {"cumprod", cumprod, NULL, 0, 0};
