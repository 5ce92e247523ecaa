/*
 * cross.c - cross(self, other, dim) -> out: products of vectors of three along dim; both are broadcast to out. Floating
 * point is computed in double, integers as integers that wrap around.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 4096, OUT = 0, SELF, OTHER, VIEWS, AXES = 3 };

typedef struct state {
    dp_loop loop; /* all dims but that of the vectors */
    int slot[VIEWS];
    int64_t step[VIEWS]; /* to the next component, in elements */
    dp_compute compute;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

#define CROSS(type, arithmetic)                                                                                        \
    for (int axis = 0; axis < AXES; axis++) {                                                                          \
        const type *a1 = (const type *)x[0][(axis + 1) % AXES], *a2 = (const type *)x[0][(axis + 2) % AXES];           \
        const type *b1 = (const type *)x[1][(axis + 1) % AXES], *b2 = (const type *)x[1][(axis + 2) % AXES];           \
        for (size_t i = 0; i < n; i++)                                                                                 \
            ((type *)y)[i] = (type)((arithmetic)a1[i] * (arithmetic)b2[i] - (arithmetic)a2[i] * (arithmetic)b1[i]);    \
        e->store[to->element][s->compute](raw, y, n);                                                                  \
        dp_loop_scatter(&s->loop, OUT, (char *)dp_tensor_data(to) + axis * s->step[OUT] * width, (size_t)width,        \
                        (int64_t)at, n, raw);                                                                          \
    }

static void run_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    const dp_elementwise_table *e = dp_elementwise_current();
    const dp_tensor *to = &j->plan->tensors[s->slot[OUT]].view;
    const int64_t width = (int64_t)dp_element_bytes(to->element);
    double x[2][AXES][DP_TILE], y[DP_TILE], raw[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        for (int v = SELF; v < VIEWS; v++) {
            const dp_tensor *t = &j->plan->tensors[s->slot[v]].view;
            const int64_t bytes = (int64_t)dp_element_bytes(t->element);
            for (int axis = 0; axis < AXES; axis++)
                e->load[t->element][s->compute](x[v - SELF][axis],
                                                dp_loop_gather(&s->loop, v,
                                                               (char *)dp_tensor_data(t) + axis * s->step[v] * bytes,
                                                               (size_t)bytes, (int64_t)at, n, raw),
                                                n);
        }
        if (s->compute == DP_COMPUTE_F64) {
            CROSS(double, double)
        } else {
            CROSS(int64_t, uint64_t)
        }
    }
}

static dp_status run(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    if (j.s->loop.count)
        dp_pool_for((size_t)j.s->loop.count, GRAIN, run_range, &j);
    return DP_OK;
}

static dp_status cross(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *args[VIEWS] = {&call->out[0], &call->in[0], &call->in[1]};
    const dp_tensor *both[] = {args[SELF]->as.tensor, args[OTHER]->as.tensor};
    const char *names[] = {args[SELF]->name, args[OTHER]->name};
    int64_t dims[DP_TENSOR_DIMS], rest[DP_TENSOR_DIMS];
    int rank, dim, n = 0;
    dp_status status = DP_OK;
    for (int v = 0; v < VIEWS && status == DP_OK; v++)
        status = dp_element_expect(args[v],
                                   v == OUT ? call->op->elements & DP_EL_BIT(both[0]->element) : call->op->elements);
    if (status == DP_OK && both[0]->element != both[1]->element)
        status = dp_element_expect(args[OTHER], DP_EL_BIT(both[0]->element));
    if (status == DP_OK)
        status = dp_broadcast(both, names, 2, dims, &rank);
    if (status == DP_OK)
        status = dp_shape_expect(args[OUT]->as.tensor, args[OUT]->name, dims, rank, "both inputs together");
    if (status == DP_OK)
        status = dp_places_expect(args[OUT]);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&call->in[2], -1), args[OUT]->as.tensor, call->in[2].name, &dim);
    if (status != DP_OK)
        return status;
    for (int v = SELF; v < VIEWS; v++) {
        int own = dim - (rank - both[v - SELF]->rank);
        if (own < 0 || both[v - SELF]->dims[own] != AXES)
            return dp_fail(DP_ERR_ARGUMENT, "%s must have %d elements in dimension %d", args[v]->name, AXES, dim);
    }
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    for (int d = 0; d < rank; d++)
        if (d != dim)
            rest[n++] = dims[d];
    dp_loop_begin(&s->loop, rest, n);
    for (int v = 0; v < VIEWS; v++) {
        const dp_tensor *t = args[v]->as.tensor;
        int64_t strides[DP_TENSOR_DIMS + 1] = {0};
        n = 0;
        for (int d = 0; d < rank; d++) {
            int own = d - (rank - t->rank);
            int64_t stride = own < 0 || t->dims[own] == 1 ? 0 : t->strides[own];
            if (d == dim)
                s->step[v] = stride;
            else
                strides[n++] = stride;
        }
        s->slot[v] = args[v]->slot;
        dp_loop_add_strides(&s->loop, strides);
    }
    dp_loop_merge(&s->loop, true);
    s->compute = dp_element_is_float(both[0]->element) ? DP_COMPUTE_F64 : DP_COMPUTE_I64;
    plan->path = "tiles";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_linalg_cross;
const dp_function dp_linalg_cross = {"cross", cross, NULL, 0, 0};
