/*
 * complex.c - complex numbers made and taken apart, element by element, broadcast:
 *   complex(real, imag) -> out      polar(abs, angle) -> out = abs * (cos(angle) + i sin(angle))
 *   angle(self) -> out              of complex numbers atan2(imag, real); of reals 0 or pi, NaN for NaN
 * Computed in double; out of complex and polar is c64 for float, c128 for double operands.
 */
#include <math.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 8192 };

typedef struct state {
    dp_loop loop; /* views 0 out, then the operands */
    int out, in[2];
    bool polar, angle, from_complex;
    dp_convert_fn load[2], store;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

static void read_reals(const job *j, int k, int64_t at, size_t n, double *x) {
    const state *s = j->s;
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[s->in[k]].view.element);
    s->load[k](x, dp_loop_gather(&s->loop, k + 1, dp_plan_data(j->plan, s->in[k]), width, at, n, raw), n);
}

/* Pairs of doubles from complex elements, and back. */
static void read_pairs(const job *j, int64_t at, size_t n, double *pairs) {
    const state *s = j->s;
    int element = j->plan->tensors[s->in[0]].view.element;
    double raw[2 * DP_TILE];
    const void *from =
        dp_loop_gather(&s->loop, 1, dp_plan_data(j->plan, s->in[0]), dp_element_bytes(element), at, n, raw);
    for (size_t i = 0; i < 2 * n; i++)
        pairs[i] = element == DP_EL_C64 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static void write_pairs(const job *j, int64_t at, size_t n, const double *pairs) {
    const state *s = j->s;
    int element = j->plan->tensors[s->out].view.element;
    union {
        float f32[2 * DP_TILE];
        double f64[2 * DP_TILE];
    } raw;
    for (size_t i = 0; i < 2 * n; i++) {
        if (element == DP_EL_C64)
            raw.f32[i] = (float)pairs[i];
        else
            raw.f64[i] = pairs[i];
    }
    dp_loop_scatter(&s->loop, 0, dp_plan_data(j->plan, s->out), dp_element_bytes(element), at, n, &raw);
}

static void run_make(void *context, size_t begin, size_t end) {
    const job *j = context;
    double a[DP_TILE], b[DP_TILE], pairs[2 * DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        read_reals(j, 0, (int64_t)at, n, a);
        read_reals(j, 1, (int64_t)at, n, b);
        for (size_t i = 0; i < n; i++) {
            pairs[2 * i] = j->s->polar ? a[i] * cos(b[i]) : a[i];
            pairs[2 * i + 1] = j->s->polar ? a[i] * sin(b[i]) : b[i];
        }
        write_pairs(j, (int64_t)at, n, pairs);
    }
}

static void run_angle(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    double x[DP_TILE], pairs[2 * DP_TILE], raw[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        if (s->from_complex)
            read_pairs(j, (int64_t)at, n, pairs);
        else
            read_reals(j, 0, (int64_t)at, n, x);
        for (size_t i = 0; i < n; i++)
            x[i] = s->from_complex ? atan2(pairs[2 * i + 1], pairs[2 * i])
                   : x[i] != x[i]  ? x[i]
                   : x[i] < 0      ? 3.14159265358979323846
                                   : 0;
        s->store(raw, x, n);
        dp_loop_scatter(&s->loop, 0, dp_plan_data(j->plan, s->out),
                        dp_element_bytes(j->plan->tensors[s->out].view.element), (int64_t)at, n, raw);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    if (j.s->loop.count)
        dp_pool_for((size_t)j.s->loop.count, GRAIN, j.s->angle ? run_angle : run_make, &j);
    return DP_OK;
}

static dp_status new_plan(const dp_operator_call *call, int operands, uint32_t out_elements, dp_plan **out_plan,
                          state **out_state) {
    const dp_tensor *tensors[2];
    const char *names[2];
    int64_t dims[DP_TENSOR_DIMS];
    int rank = 0;
    const dp_arg *out = &call->out[0];
    dp_status status = dp_element_expect(out, out_elements);
    for (int k = 0; k < operands && status == DP_OK; k++) {
        tensors[k] = call->in[k].as.tensor;
        names[k] = call->in[k].name;
        status = dp_element_expect(&call->in[k], call->op->elements);
    }
    if (status == DP_OK)
        status = dp_broadcast(tensors, names, operands, dims, &rank);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "the inputs broadcast together");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    s->out = out->slot;
    s->store = dp_elementwise_current()->store[out->as.tensor->element][DP_COMPUTE_F64];
    dp_loop_begin(&s->loop, dims, rank);
    dp_loop_add(&s->loop, out->as.tensor);
    for (int k = 0; k < operands; k++) {
        s->in[k] = call->in[k].slot;
        s->load[k] = dp_elementwise_current()->load[tensors[k]->element][DP_COMPUTE_F64];
        dp_loop_add(&s->loop, tensors[k]);
    }
    dp_loop_merge(&s->loop, true);
    plan->path = "f64 tiles";
    *out_plan = plan;
    *out_state = s;
    return DP_OK;
}

static dp_status make(const dp_operator_call *call, bool polar_form, dp_plan **out_plan) {
    int element = call->in[0].as.tensor->element;
    state *s;
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(&call->in[1], DP_EL_BIT(element));
    if (status == DP_OK)
        status = new_plan(call, 2, element == DP_F64 ? DP_EL_BIT(DP_EL_C128) : DP_EL_BIT(DP_EL_C64), out_plan, &s);
    if (status == DP_OK)
        s->polar = polar_form;
    return status;
}

static dp_status complex_of(const dp_operator_call *call, dp_plan **out_plan) {
    return make(call, false, out_plan);
}
static dp_status polar(const dp_operator_call *call, dp_plan **out_plan) {
    return make(call, true, out_plan);
}

static dp_status angle(const dp_operator_call *call, dp_plan **out_plan) {
    int element = call->in[0].as.tensor->element;
    state *s;
    dp_status status = new_plan(call, 1, DP_EL_FLOATS, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->angle = true;
    s->from_complex = element == DP_EL_C64 || element == DP_EL_C128;
    return DP_OK;
}

extern const dp_function dp_complex_complex, dp_complex_polar, dp_complex_angle;
const dp_function dp_complex_complex = {"complex", complex_of, NULL, 0, 0};
const dp_function dp_complex_polar = {"polar", polar, NULL, 0, 0};
const dp_function dp_complex_angle = {"angle", angle, NULL, 0, 0};
