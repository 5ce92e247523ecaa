/*
 * count.c - counting by value. Mappings:
 *   one_hot(self, depth, on, off, axis) -> out   out has a dim of depth at axis (-1: the last); self's value chooses
 * where on stands; values outside 0 to depth - 1 give off everywhere bincount(self, weights) -> out out[v] = number of
 * elements v, or the sum of their weights histc(self, bins, min, max) -> out           bins of equal width from min to
 * max, which belongs to the last; min = max takes the range of the data; elements outside and NaN are not counted Sums
 * are made in double, in the order of self.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/scatter/scatter.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct state {
    dp_loop self;          /* views: 0 self, then 1 weights (bincount), or 1 where out's line begins (one_hot) */
    dp_loop out;           /* all of it */
    int64_t depth, stride; /* of the new dim */
    int from, weights, to, on, off;
    double low, high;
    dp_indices indices;
    dp_convert_fn load, load_weight, store;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

static size_t width_of(const dp_plan *plan, int slot) {
    return dp_element_bytes(plan->tensors[slot].view.element);
}

static void fill_off(void *context, size_t begin, size_t end) {
    const job *j = context;
    size_t width = width_of(j->plan, j->s->to);
    int64_t buffer[DP_TILE];
    for (size_t i = 0; i < DP_TILE; i++)
        memcpy((char *)buffer + i * width, dp_plan_data(j->plan, j->s->off), width);
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_loop_scatter(&j->s->out, 0, dp_plan_data(j->plan, j->s->to), width, (int64_t)at, n, buffer);
    }
}

static void set_on(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    size_t width = width_of(j->plan, s->to);
    const void *on = dp_plan_data(j->plan, s->on);
    char *to = dp_plan_data(j->plan, s->to);
    double raw[DP_TILE];
    int64_t values[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        s->load(values,
                dp_loop_gather(&s->self, 0, dp_plan_data(j->plan, s->from), width_of(j->plan, s->from), (int64_t)at, n,
                               raw),
                n);
        for (size_t i = 0; i < n; i++)
            if (values[i] >= 0 && values[i] < s->depth)
                memcpy(to + (dp_loop_offset(&s->self, 1, (int64_t)(at + i)) + values[i] * s->stride) * (int64_t)width,
                       on, width);
    }
}

static dp_status run_one_hot(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    if (!j.s->out.count)
        return DP_OK;
    dp_pool_for((size_t)j.s->out.count, GRAIN, fill_off, &j);
    dp_pool_for((size_t)j.s->self.count, GRAIN, set_on, &j);
    return DP_OK;
}

/* Sums of all bins to the output. */
static void write_bins(const dp_plan *plan, const state *s, const double *sums) {
    double raw[DP_TILE];
    size_t width = width_of(plan, s->to);
    for (int64_t at = 0, n; at < s->out.count; at += n) {
        n = s->out.count - at < DP_TILE ? s->out.count - at : DP_TILE;
        s->store(raw, sums + at, (size_t)n);
        dp_loop_scatter(&s->out, 0, dp_tensor_data(&plan->tensors[s->to].view), width, at, (size_t)n, raw);
    }
}

static double *new_bins(const state *s) {
    double *sums = dp_alloc(DP_MEM_RUNTIME, (size_t)(s->out.count ? s->out.count : 1) * sizeof *sums);
    if (!sums)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld bins: free some", (long long)s->out.count);
    return sums;
}

static dp_status run_bincount(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    dp_status status = dp_indices_check(plan, &s->indices, 0);
    if (status != DP_OK)
        return status;
    double *sums = new_bins(s), raw[DP_TILE], weights[DP_TILE];
    if (!sums)
        return DP_ERR_OUT_OF_MEMORY;
    int64_t values[DP_TILE];
    for (int64_t at = 0, n; at < s->self.count; at += n) {
        n = s->self.count - at < DP_TILE ? s->self.count - at : DP_TILE;
        dp_indices_read(plan, &s->indices, at, (size_t)n, values);
        if (s->weights >= 0)
            s->load_weight(weights,
                           dp_loop_gather(&s->self, 1, dp_plan_data(plan, s->weights), width_of(plan, s->weights), at,
                                          (size_t)n, raw),
                           (size_t)n);
        for (int64_t i = 0; i < n; i++)
            sums[values[i]] += s->weights >= 0 ? weights[i] : 1;
    }
    write_bins(plan, s, sums);
    dp_free(sums);
    return DP_OK;
}

static void read_tile(const dp_plan *plan, const state *s, int64_t at, size_t n, double *x) {
    double raw[DP_TILE];
    s->load(
        x,
        dp_loop_gather(&s->self, 0, dp_tensor_data(&plan->tensors[s->from].view), width_of(plan, s->from), at, n, raw),
        n);
}

static void find_range(const dp_plan *plan, const state *s, double *low, double *high) {
    double x[DP_TILE];
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t at = 0, n; at < s->self.count; at += n) {
        n = s->self.count - at < DP_TILE ? s->self.count - at : DP_TILE;
        read_tile(plan, s, at, (size_t)n, x);
        for (int64_t i = 0; i < n; i++) {
            *low = x[i] < *low || x[i] != x[i] ? x[i] : *low;
            *high = x[i] > *high || x[i] != x[i] ? x[i] : *high;
        }
    }
}

static dp_status run_histc(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    double low = s->low, high = s->high, x[DP_TILE];
    if (low == high && s->self.count)
        find_range(plan, s, &low, &high);
    if (!isfinite(low) || !isfinite(high))
        return dp_fail(DP_ERR_ARGUMENT, "%s: its elements range from %g to %g, but must be finite when min equals max",
                       plan->tensors[s->from].name, low, high);
    if (low == high) {
        low -= 1;
        high += 1;
    }
    double *sums = new_bins(s);
    if (!sums)
        return DP_ERR_OUT_OF_MEMORY;
    double bins = (double)s->out.count, width = high / 2 - low / 2; /* halves: the whole may overflow */
    for (int64_t at = 0, n; at < s->self.count; at += n) {
        n = s->self.count - at < DP_TILE ? s->self.count - at : DP_TILE;
        read_tile(plan, s, at, (size_t)n, x);
        for (int64_t i = 0; i < n; i++) {
            if (!(x[i] >= low && x[i] <= high))
                continue;
            int64_t bin = width > 0 ? (int64_t)((x[i] / 2 - low / 2) / width * bins) : s->out.count / 2;
            sums[bin < s->out.count ? bin : s->out.count - 1] += 1;
        }
    }
    write_bins(plan, s, sums);
    dp_free(sums);
    return DP_OK;
}

/* Phase one. */

static dp_status new_plan(const dp_operator_call *call, dp_status (*run)(dp_plan *), dp_plan **out_plan,
                          state **out_state) {
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    const dp_tensor *self = call->in[0].as.tensor, *out = call->out[0].as.tensor;
    s->from = call->in[0].slot;
    s->to = call->out[0].slot;
    dp_loop_begin(&s->self, self->dims, self->rank);
    dp_loop_add(&s->self, self);
    dp_loop_begin(&s->out, out->dims, out->rank);
    dp_loop_add(&s->out, out);
    dp_loop_merge(&s->out, false);
    s->store = dp_elementwise_current()->store[out->element][DP_COMPUTE_F64];
    *out_plan = plan;
    *out_state = s;
    return DP_OK;
}

static dp_status expect_one(const dp_arg *value, int element) {
    dp_status status = dp_element_expect(value, DP_EL_BIT(element));
    if (status == DP_OK && dp_tensor_count(value->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", value->name,
                         (long long)dp_tensor_count(value->as.tensor));
    return status;
}

static dp_status one_hot(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0], *axis_arg = &call->in[4];
    const dp_tensor *self = in->as.tensor, *to = out->as.tensor;
    int64_t depth = dp_arg_integer(&call->in[1], 0), axis = dp_arg_integer(axis_arg, -1), dims[DP_TENSOR_DIMS + 1];
    dp_status status = dp_element_expect(in, DP_EL_INTS & ~DP_EL_BIT(DP_U64));
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = expect_one(&call->in[2], to->element);
    if (status == DP_OK)
        status = expect_one(&call->in[3], to->element);
    if (status == DP_OK && depth < 0)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 0", call->in[1].name, (long long)depth);
    if (status == DP_OK && (axis < -1 || axis > self->rank))
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be -1 to %d", axis_arg->name, (long long)axis, self->rank);
    if (status != DP_OK)
        return status;
    axis = axis < 0 ? self->rank : axis;
    for (int d = 0; d <= self->rank; d++)
        dims[d] = d < axis ? self->dims[d] : d == axis ? depth : self->dims[d - 1];
    status = dp_shape_expect(to, out->name, dims, self->rank + 1, "self's with depth at the axis");
    if (status == DP_OK)
        status = dp_places_expect(out);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, run_one_hot, out_plan, &s);
    if (status != DP_OK)
        return status;
    int64_t strides[DP_TENSOR_DIMS] = {0};
    for (int d = 0; d < self->rank; d++)
        strides[d] = to->strides[d < axis ? d : d + 1];
    dp_loop_add_strides(&s->self, strides);
    dp_loop_merge(&s->self, false);
    s->depth = depth;
    s->stride = to->strides[axis];
    s->on = call->in[2].slot;
    s->off = call->in[3].slot;
    s->load = dp_elementwise_current()->load[self->element][DP_COMPUTE_I64];
    (*out_plan)->path = "fill, then set";
    return DP_OK;
}

static dp_status expect_bins(const dp_operator_call *call) {
    const dp_arg *out = &call->out[0];
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, (DP_EL_FLOATS | DP_EL_INTS) & ~DP_EL_BIT(DP_U64));
    if (status == DP_OK && out->as.tensor->rank != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", out->name, out->as.tensor->rank);
    return status == DP_OK ? dp_places_expect(out) : status;
}

static dp_status bincount(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *weights = &call->in[1], *least = &call->in[2], *out = &call->out[0];
    bool weighted = weights->kind == DP_ARG_TENSOR;
    dp_status status = expect_bins(call);
    if (status == DP_OK && weighted)
        status = dp_element_expect(weights, (DP_EL_FLOATS | DP_EL_INTS) & ~DP_EL_BIT(DP_U64));
    if (status == DP_OK && weighted)
        status = dp_shape_expect(weights->as.tensor, weights->name, in->as.tensor->dims, in->as.tensor->rank, "self's");
    if (status == DP_OK && dp_arg_integer(least, 0) > out->as.tensor->dims[0])
        status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension 0 is %lld, but must be at least %s: %lld", out->name,
                         (long long)out->as.tensor->dims[0], least->name, (long long)dp_arg_integer(least, 0));
    state *s;
    if (status == DP_OK)
        status = new_plan(call, run_bincount, out_plan, &s);
    if (status != DP_OK)
        return status;
    if (weighted) {
        dp_loop_add(&s->self, weights->as.tensor);
        s->load_weight = dp_elementwise_current()->load[weights->as.tensor->element][DP_COMPUTE_F64];
    }
    s->weights = weighted ? weights->slot : -1;
    s->indices = dp_indices_of(in, out->as.tensor->dims[0]);
    (*out_plan)->path = "in order";
    return DP_OK;
}

static dp_status histc(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *low = &call->in[2], *high = &call->in[3], *out = &call->out[0];
    int64_t bins = dp_arg_integer(&call->in[1], 0);
    dp_status status = expect_bins(call);
    if (status == DP_OK && bins < 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 1", call->in[1].name, (long long)bins);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, &bins, 1, "a place for each bin");
    if (status == DP_OK && !(isfinite(low->as.scalar->real) && isfinite(high->as.scalar->real) &&
                             low->as.scalar->real <= high->as.scalar->real))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %g and %s %g, but they must be finite and in this order", low->name,
                         low->as.scalar->real, high->name, high->as.scalar->real);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, run_histc, out_plan, &s);
    if (status != DP_OK)
        return status;
    dp_loop_merge(&s->self, true);
    s->low = low->as.scalar->real;
    s->high = high->as.scalar->real;
    s->load = dp_elementwise_current()->load[call->in[0].as.tensor->element][DP_COMPUTE_F64];
    (*out_plan)->path = "in order";
    return DP_OK;
}

#define EXPORT(function, optional)                                                                                     \
    extern const dp_function dp_scatter_##function;                                                                    \
    const dp_function dp_scatter_##function = {#function, function, NULL, optional, 0};
EXPORT(one_hot, 0)
EXPORT(bincount, 2)
EXPORT(histc, 0)
