/*
 * slices.c - reductions of slices that give two results, or change the slices. Mappings:
 *   aminmax(self, dims, keepdim) -> min, max    dims a list, one dim, or absent (all); a NaN wins
 *   renorm(self, p, dim, maxnorm) -> out        slices along dim whose p-norm is above maxnorm are scaled to it
 * Computed in double (integers in int64), rounded once.
 */
#include <math.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct state {
    dp_loop slices; /* views 0 self, then the outputs */
    dp_loop slice;  /* views 0 self, 1 out (renorm) */
    int self, outs[2];
    bool integral;
    double p, limit;
    dp_convert_fn load, store[2];
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

typedef union tile {
    double real[DP_TILE];
    int64_t integer[DP_TILE];
} tile;

static char *begin_of(const job *j, int slot, int view, int64_t which) {
    return (char *)dp_plan_data(j->plan, slot) +
           dp_loop_offset(&j->s->slices, view, which) * (int64_t)dp_element_bytes(j->plan->tensors[slot].view.element);
}

static size_t read_tile(const job *j, const char *from, int64_t at, tile *x) {
    const state *s = j->s;
    int64_t n = s->slice.count - at < DP_TILE ? s->slice.count - at : DP_TILE;
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[s->self].view.element);
    s->load(x, dp_loop_gather(&s->slice, 0, from, width, at, (size_t)n, raw), (size_t)n);
    return (size_t)n;
}

static void aminmax_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    tile x;
    for (size_t which = begin; which < end; which++) {
        const char *from = begin_of(j, s->self, 0, (int64_t)which);
        int64_t least[1] = {INT64_MAX}, most[1] = {INT64_MIN};
        double low[1] = {INFINITY}, high[1] = {-INFINITY};
        for (int64_t at = 0, n; at < s->slice.count; at += n) {
            n = (int64_t)read_tile(j, from, at, &x);
            for (int64_t i = 0; i < n && s->integral; i++) {
                *least = x.integer[i] < *least ? x.integer[i] : *least;
                *most = x.integer[i] > *most ? x.integer[i] : *most;
            }
            for (int64_t i = 0; i < n && !s->integral; i++) {
                *low = x.real[i] >= *low || *low != *low ? *low : x.real[i];
                *high = x.real[i] <= *high || *high != *high ? *high : x.real[i];
            }
        }
        s->store[0](begin_of(j, s->outs[0], 1, (int64_t)which), s->integral ? (void *)least : (void *)low, 1);
        s->store[1](begin_of(j, s->outs[1], 2, (int64_t)which), s->integral ? (void *)most : (void *)high, 1);
    }
}

static double norm_of(const job *j, const char *from) {
    const state *s = j->s;
    tile x;
    double sum = 0;
    for (int64_t at = 0, n; at < s->slice.count; at += n) {
        n = (int64_t)read_tile(j, from, at, &x);
        for (int64_t i = 0; i < n; i++) {
            double a = fabs(x.real[i]);
            sum = isinf(s->p) ? (a > sum || a != a ? a : sum)
                              : sum + (s->p == 2   ? a * a
                                       : s->p == 1 ? a
                                                   : pow(a, s->p));
        }
    }
    return isinf(s->p) || s->p == 1 ? sum : s->p == 2 ? sqrt(sum) : pow(sum, 1 / s->p);
}

static void renorm_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    tile x;
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[s->outs[0]].view.element);
    for (size_t which = begin; which < end; which++) {
        const char *from = begin_of(j, s->self, 0, (int64_t)which);
        char *to = begin_of(j, s->outs[0], 1, (int64_t)which);
        double norm = norm_of(j, from), factor = norm > s->limit ? s->limit / (norm + 1e-7) : 1;
        for (int64_t at = 0, n; at < s->slice.count; at += n) {
            n = (int64_t)read_tile(j, from, at, &x);
            for (int64_t i = 0; i < n; i++)
                x.real[i] *= factor;
            s->store[0](raw, &x, (size_t)n);
            dp_loop_scatter(&s->slice, 1, to, width, at, (size_t)n, raw);
        }
    }
}

static dp_status run_each(dp_plan *plan, void (*fn)(void *context, size_t begin, size_t end)) {
    job j = {plan, dp_plan_state(plan)};
    if (j.s->slices.count)
        dp_pool_for((size_t)j.s->slices.count, (size_t)(GRAIN / (j.s->slice.count + 1) + 1), fn, &j);
    return DP_OK;
}
static dp_status run_aminmax(dp_plan *plan) {
    return run_each(plan, aminmax_range);
}
static dp_status run_renorm(dp_plan *plan) {
    return run_each(plan, renorm_range);
}

/* Phase one. */

static dp_status take_dims(const dp_arg *dims, const dp_tensor *self, bool *gone) {
    bool all = dims->kind == DP_ARG_ABSENT || (dims->kind == DP_ARG_INT_LIST && !dims->count);
    for (int d = 0; d < DP_TENSOR_DIMS; d++)
        gone[d] = all;
    int64_t count = all ? 0 : dims->kind == DP_ARG_INT_LIST ? dims->count : 1;
    for (int64_t i = 0; i < count; i++) {
        int dim;
        dp_status status = dp_dim_check(dims->kind == DP_ARG_INT_LIST ? dims->as.integers[i] : dp_arg_integer(dims, 0),
                                        self, dims->name, &dim);
        if (status != DP_OK)
            return status;
        gone[dim] = true;
    }
    return DP_OK;
}

/* Strides of t (self, or an output of dims kept as keep says) in self's kept and reduced dims. */
static void add_view(state *s, const dp_tensor *self, const dp_tensor *t, const bool *gone, bool is_output, bool keep) {
    int64_t outer[DP_TENSOR_DIMS] = {0}, inner[DP_TENSOR_DIMS] = {0};
    for (int d = 0, at = 0, n_outer = 0, n_inner = 0; d < self->rank; d++) {
        bool there = !is_output || !gone[d] || keep;
        if (gone[d])
            inner[n_inner++] = is_output ? 0 : t->strides[at];
        else
            outer[n_outer++] = t->strides[at];
        at += there;
    }
    dp_loop_add_strides(&s->slices, outer);
    if (!is_output)
        dp_loop_add_strides(&s->slice, inner);
}

static void begin_loops(state *s, const dp_tensor *self, const bool *gone) {
    int64_t outer[DP_TENSOR_DIMS], inner[DP_TENSOR_DIMS];
    int n_outer = 0, n_inner = 0;
    for (int d = 0; d < self->rank; d++) {
        if (gone[d])
            inner[n_inner++] = self->dims[d];
        else
            outer[n_outer++] = self->dims[d];
    }
    dp_loop_begin(&s->slices, outer, n_outer);
    dp_loop_begin(&s->slice, inner, n_inner);
}

static dp_status aminmax(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0];
    const dp_tensor *self = in->as.tensor;
    bool gone[DP_TENSOR_DIMS], keep = dp_arg_integer(&call->in[2], 0) != 0;
    int64_t dims[DP_TENSOR_DIMS], length = 1, places = 1;
    int rank = 0;
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = take_dims(&call->in[1], self, gone);
    if (status != DP_OK)
        return status;
    for (int d = 0; d < self->rank; d++) {
        length *= gone[d] ? self->dims[d] : 1;
        places *= gone[d] ? 1 : self->dims[d];
        if (!gone[d] || keep)
            dims[rank++] = gone[d] ? 1 : self->dims[d];
    }
    if (!length && places)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no elements to choose from in the reduced dimensions", in->name);
    for (int k = 0; k < 2 && status == DP_OK; k++) {
        status = dp_element_expect(&call->out[k], DP_EL_BIT(self->element));
        if (status == DP_OK)
            status = dp_shape_expect(call->out[k].as.tensor, call->out[k].name, dims, rank,
                                     "self without the reduced dimensions");
        if (status == DP_OK)
            status = dp_places_expect(&call->out[k]);
    }
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run_aminmax, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    s->self = in->slot;
    s->integral = !dp_element_is_float(self->element);
    s->load = dp_elementwise_current()->load[self->element][s->integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
    begin_loops(s, self, gone);
    add_view(s, self, self, gone, false, keep);
    for (int k = 0; k < 2; k++) {
        s->outs[k] = call->out[k].slot;
        s->store[k] = dp_elementwise_current()->store[self->element][s->integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
        add_view(s, self, call->out[k].as.tensor, gone, true, keep);
    }
    dp_loop_merge(&s->slice, true);
    plan->path = "slices";
    *out_plan = plan;
    return DP_OK;
}

static dp_status renorm(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    double p = dp_arg_real(&call->in[1], 2), limit = dp_arg_real(&call->in[3], 0);
    int dim = 0;
    bool gone[DP_TENSOR_DIMS];
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[2], 0), self, call->in[2].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK && self->rank < 2)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least 2", in->name, self->rank);
    if (status == DP_OK && (!(p > 0) || !(limit >= 0)))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %g and %s %g, but must be above 0 and at least 0", call->in[1].name, p,
                         call->in[3].name, limit);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(self->element));
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, self->dims, self->rank, "self's");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run_renorm, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state *s = dp_plan_state(plan);
    for (int d = 0; d < DP_TENSOR_DIMS; d++)
        gone[d] = d != dim;
    s->self = in->slot;
    s->outs[0] = out->slot;
    s->p = p;
    s->limit = limit;
    s->load = dp_elementwise_current()->load[self->element][DP_COMPUTE_F64];
    s->store[0] = dp_elementwise_current()->store[self->element][DP_COMPUTE_F64];
    begin_loops(s, self, gone);
    add_view(s, self, self, gone, false, false);
    add_view(s, self, out->as.tensor, gone, false, false);
    dp_loop_merge(&s->slice, true);
    plan->path = "slices";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_reduce_aminmax, dp_reduce_renorm;
const dp_function dp_reduce_aminmax = {"aminmax", aminmax, NULL, 2, 0};
const dp_function dp_reduce_renorm = {"renorm", renorm, NULL, 0, 0};
