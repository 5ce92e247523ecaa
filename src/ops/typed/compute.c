/*
 * compute.c - types whose form differs from that of the family that computes them.
 *   softmax(x, axes) -> y, log_softmax(x, axes) -> y          one axis
 *   cumsum(x, axis) -> y, range(start, limit, delta) -> y
 *   layer_norm(x, gamma, beta, begin_axis, epsilon) -> y, mean, rstd
 *   add_n(x) -> y          the sum of a list of tensors of one shape
 */
#include <math.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/typed/adapt.h"
#include "runtime/pool.h"

extern const dp_function dp_softmax_softmax, dp_softmax_log_softmax, dp_scan_cumsum, dp_norm_layer, dp_generate_arange;

static dp_status one_axis(const dp_operator_call *call, const dp_function *to, dp_plan **out_plan) {
    const dp_arg *axes = &call->in[1];
    if (axes->count != 1)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has %lld entries, but Doppel does 1", axes->name,
                       (long long)axes->count);
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[1] = dp_adapt_integer(axes->name, axes->as.integers[0]);
    return dp_adapt_end(&a, to, 2, out_plan);
}

static dp_status softmax(const dp_operator_call *call, dp_plan **out_plan) {
    return one_axis(call, &dp_softmax_softmax, out_plan);
}
static dp_status log_softmax(const dp_operator_call *call, dp_plan **out_plan) {
    return one_axis(call, &dp_softmax_log_softmax, out_plan);
}

static dp_status cumsum(const dp_operator_call *call, dp_plan **out_plan) {
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[2] = dp_adapt_integer("the output's type", call->out[0].as.tensor->element);
    return dp_adapt_end(&a, &dp_scan_cumsum, 3, out_plan);
}

static dp_status layer_norm(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    int axis;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[3], 0), x, call->in[3].name, &axis);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[1] = dp_adapt_list(&a, call->in[3].name, x->dims + axis, x->rank - axis);
    a.in[2] = call->in[1];
    a.in[3] = call->in[2];
    return dp_adapt_end(&a, &dp_norm_layer, 5, out_plan);
}

/* The family writes sequences into any shape; here it is one dimension. */
static dp_status range(const dp_operator_call *call, dp_plan **out_plan) {
    double start = dp_arg_real(&call->in[0], 0), limit = dp_arg_real(&call->in[1], 0),
           count = ceil((limit - start) / dp_arg_real(&call->in[2], 1));
    if (count >= 0 && count < 0x1p60) {
        int64_t dims = (int64_t)count;
        dp_status status =
            dp_shape_expect(call->out[0].as.tensor, call->out[0].name, &dims, 1, "ceil((limit - start) / delta)");
        if (status != DP_OK)
            return status;
    }
    dp_adapted a;
    dp_adapt_begin(&a, call);
    return dp_adapt_end(&a, &dp_generate_arange, 3, out_plan);
}

/* Sums. */

typedef struct sum {
    int first, count, out; /* slots of the inputs; of the output */
    dp_compute compute;
    dp_convert_fn load, store;
} sum;

typedef union lane {
    double real[DP_TILE];
    int64_t integer[DP_TILE];
} lane;

static void sum_range(void *context, size_t begin, size_t end) {
    dp_plan *plan = context;
    const sum *s = dp_plan_state(plan);
    size_t width = dp_element_bytes(plan->tensors[s->out].view.element);
    lane total, one;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        memset(&total, 0, sizeof total);
        for (int k = 0; k < s->count; k++) {
            s->load(&one, (const char *)dp_plan_data(plan, s->first + k) + at * width, n);
            for (size_t i = 0; i < n; i++) {
                if (s->compute == DP_COMPUTE_I64)
                    total.integer[i] = (int64_t)((uint64_t)total.integer[i] + (uint64_t)one.integer[i]);
                else
                    total.real[i] += one.real[i];
            }
        }
        s->store((char *)dp_plan_data(plan, s->out) + at * width, &total, n);
    }
}

static dp_status run_sum(dp_plan *plan) {
    const sum *s = dp_plan_state(plan);
    size_t count = (size_t)dp_tensor_count(&plan->tensors[s->out].view);
    if (count)
        dp_pool_for(count, DP_TILE * 4, sum_range, plan);
    return DP_OK;
}

static dp_status add_n(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *list = &call->in[0], *out = &call->out[0];
    const dp_tensor *first = list->as.tensors[0];
    dp_status status = dp_element_expect(out, call->op->elements);
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        const dp_tensor *x = list->as.tensors[i];
        if (x->element != out->as.tensor->element)
            return dp_fail(DP_ERR_ARGUMENT, "%s: tensor %lld has elements of type %s, but must have those of %s, %s",
                           list->name, (long long)i, dp_element_name(x->element), out->name,
                           dp_element_name(out->as.tensor->element));
        status = dp_shape_expect(x, list->name, first->dims, first->rank, "that of the first tensor");
    }
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, first->dims, first->rank, "that of the summands");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run_sum, sizeof(sum)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    int element = out->as.tensor->element;
    dp_compute compute = dp_element_is_float(element) ? DP_COMPUTE_F64 : DP_COMPUTE_I64;
    const dp_elementwise_table *t = dp_elementwise_current();
    *(sum *)dp_plan_state(plan) =
        (sum){list->slot, (int)list->count, out->slot, compute, t->load[element][compute], t->store[element][compute]};
    plan->path = "tiles";
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, optional_in_bits, optional_out_bits)                                                          \
    extern const dp_function dp_typed_##function;                                                                      \
    const dp_function dp_typed_##function = {#function, function, NULL, optional_in_bits, optional_out_bits};
EXPORT(softmax, 0, 0)
EXPORT(log_softmax, 0, 0)
EXPORT(cumsum, 0, 0)
EXPORT(layer_norm, 6, 6)
EXPORT(range, 0, 0)
EXPORT(add_n, 0, 0)
