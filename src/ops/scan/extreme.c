/*
 * extreme.c - running maximum and minimum along one dim: cummax(self, dim) -> values, indices; cummin likewise.
 * Of equal elements the last is taken; a NaN stays from where it stands on.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct state {
    dp_loop lines, along; /* views 0 values, 1 indices, 2 self */
    bool integral, least;
    int values, indices, self;
    dp_convert_fn load, store, store_index;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

typedef union tile {
    double real[DP_TILE];
    int64_t integer[DP_TILE];
} tile;

/* The running extreme of a tile, with its index; best and *where go on from tile to tile. */
static void run_reals(double *x, int64_t *index, int64_t at, size_t n, bool least, double *best, int64_t *where) {
    for (size_t i = 0; i < n; i++) {
        bool take = (at == 0 && i == 0) || x[i] != x[i] || (*best == *best && (least ? x[i] <= *best : x[i] >= *best));
        *best = take ? x[i] : *best;
        *where = take ? at + (int64_t)i : *where;
        x[i] = *best;
        index[i] = *where;
    }
}
static void run_integers(int64_t *x, int64_t *index, int64_t at, size_t n, bool least, int64_t *best, int64_t *where) {
    for (size_t i = 0; i < n; i++) {
        bool take = (at == 0 && i == 0) || (least ? x[i] <= *best : x[i] >= *best);
        *best = take ? x[i] : *best;
        *where = take ? at + (int64_t)i : *where;
        x[i] = *best;
        index[i] = *where;
    }
}

static char *begin_of(const job *j, int slot, int view, int64_t line, size_t *out_width) {
    *out_width = dp_element_bytes(j->plan->tensors[slot].view.element);
    return (char *)dp_plan_data(j->plan, slot) + dp_loop_offset(&j->s->lines, view, line) * (int64_t)*out_width;
}

static void run_line(const job *j, int64_t line) {
    const state *s = j->s;
    size_t value_width, index_width, width;
    char *values = begin_of(j, s->values, 0, line, &value_width),
         *indices = begin_of(j, s->indices, 1, line, &index_width);
    const char *from = begin_of(j, s->self, 2, line, &width);
    tile x;
    int64_t index[DP_TILE], raw[DP_TILE], best_integer = 0, where = 0;
    double best = 0;
    for (int64_t at = 0, n; at < s->along.count; at += n) {
        n = s->along.count - at < DP_TILE ? s->along.count - at : DP_TILE;
        s->load(&x, dp_loop_gather(&s->along, 2, from, width, at, (size_t)n, raw), (size_t)n);
        if (s->integral)
            run_integers(x.integer, index, at, (size_t)n, s->least, &best_integer, &where);
        else
            run_reals(x.real, index, at, (size_t)n, s->least, &best, &where);
        s->store(raw, &x, (size_t)n);
        dp_loop_scatter(&s->along, 0, values, value_width, at, (size_t)n, raw);
        s->store_index(raw, index, (size_t)n);
        dp_loop_scatter(&s->along, 1, indices, index_width, at, (size_t)n, raw);
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

static void add_view(state *s, const dp_tensor *t, int dim) {
    int64_t strides[DP_TENSOR_DIMS] = {0}, none = 0;
    for (int d = 0, n = 0; d < t->rank; d++)
        if (d != dim)
            strides[n++] = t->strides[d];
    dp_loop_add_strides(&s->lines, strides);
    dp_loop_add_strides(&s->along, t->rank ? &t->strides[dim] : &none);
}

static dp_status prepare(const dp_operator_call *call, bool least, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *values = &call->out[0], *indices = &call->out[1];
    const dp_tensor *self = in->as.tensor;
    int dim = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(values, DP_EL_BIT(self->element));
    if (status == DP_OK)
        status = dp_element_expect(indices, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    for (int k = 0; k < 2 && status == DP_OK; k++) {
        status = dp_shape_expect(call->out[k].as.tensor, call->out[k].name, self->dims, self->rank, "self's");
        if (status == DP_OK)
            status = dp_places_expect(&call->out[k]);
    }
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    int64_t dims[DP_TENSOR_DIMS] = {0}, one = 1;
    for (int d = 0, n = 0; d < self->rank; d++)
        if (d != dim)
            dims[n++] = self->dims[d];
    dp_loop_begin(&s->lines, dims, self->rank ? self->rank - 1 : 0);
    dp_loop_begin(&s->along, self->rank ? &self->dims[dim] : &one, 1);
    add_view(s, values->as.tensor, dim);
    add_view(s, indices->as.tensor, dim);
    add_view(s, self, dim);
    dp_loop_merge(&s->lines, false);
    s->least = least;
    s->integral = !dp_element_is_float(self->element);
    dp_compute compute = s->integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64;
    s->load = convert->load[self->element][compute];
    s->store = convert->store[self->element][compute];
    s->store_index = convert->store[indices->as.tensor->element][DP_COMPUTE_I64];
    s->values = values->slot;
    s->indices = indices->slot;
    s->self = in->slot;
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status cummax(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, false, out_plan);
}
static dp_status cummin(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, true, out_plan);
}

extern const dp_function dp_scan_cummax, dp_scan_cummin;
const dp_function dp_scan_cummax = {"cummax", cummax, NULL, 0, 0};
const dp_function dp_scan_cummin = {"cummin", cummin, NULL, 0, 0};
