/*
 * nll.c - negative log likelihood of classes given by number, in float, sums in double in the order of the elements:
 *   nll(x, target, weight, reduction, ignored) -> out, total weight
 *   nll_backward(grad, x, target, weight, reduction, ignored, total weight) -> out
 * x has the classes in dimension 1 (of one dimension: in it). loss = -weight[t] * x[t], 0 where the target is
 * `ignored`. reduction: 0 none, 1 mean (the sum divided by the total weight), 2 sum. Targets outside the classes fail
 * the stream.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"

typedef enum reduction { NONE, MEAN, SUM } reduction;
enum { VIEW_X, VIEW_TARGET, VIEW_OUT };

typedef struct state {
    dp_loop places; /* x's dims without the classes; views: x or the gradient of x, target, what has one element per
                       place */
    int64_t classes, class_stride, weight_stride, ignored;
    int x, target, weight, out, total; /* slots; -1 absent. x: of nll_backward the result */
    reduction how;
} state;

static double read_number(dp_plan *plan, int slot, int64_t offset) {
    const dp_tensor *t = &plan->tensors[slot].view;
    double value;
    dp_elementwise_current()->load[t->element][DP_COMPUTE_F64](
        &value, (const char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element), 1);
    return value;
}

static void write_number(dp_plan *plan, int slot, int64_t offset, double value) {
    const dp_tensor *t = &plan->tensors[slot].view;
    dp_elementwise_current()->store[t->element][DP_COMPUTE_F64](
        (char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element), &value, 1);
}

/* The target of a place; *out_used false when it is ignored. */
static dp_status target_at(dp_plan *plan, const state *s, int64_t place, int64_t *out_target, bool *out_used) {
    const dp_tensor *t = &plan->tensors[s->target].view;
    int64_t offset = dp_loop_offset(&s->places, VIEW_TARGET, place);
    dp_elementwise_current()->load[t->element][DP_COMPUTE_I64](
        out_target, (const char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element), 1);
    *out_used = *out_target != s->ignored;
    if (!*out_used || (*out_target >= 0 && *out_target < s->classes))
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld", plan->tensors[s->target].name,
                   (long long)place, (long long)*out_target, (long long)s->classes - 1);
}

static double weight_of(dp_plan *plan, const state *s, int64_t target) {
    return s->weight < 0 ? 1 : read_number(plan, s->weight, target * s->weight_stride);
}

static dp_status run_forward(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    double sum = 0, total = 0;
    for (int64_t i = 0; i < s->places.count; i++) {
        int64_t target;
        bool used;
        dp_status status = target_at(plan, s, i, &target, &used);
        if (status != DP_OK)
            return status;
        double weight = used ? weight_of(plan, s, target) : 0, loss = 0;
        if (used)
            loss = -weight * read_number(plan, s->x, dp_loop_offset(&s->places, VIEW_X, i) + target * s->class_stride);
        if (s->how == NONE)
            write_number(plan, s->out, dp_loop_offset(&s->places, VIEW_OUT, i), loss);
        sum += loss;
        total += weight;
    }
    if (s->how != NONE)
        write_number(plan, s->out, 0, s->how == MEAN ? sum / total : sum);
    if (s->total >= 0)
        write_number(plan, s->total, 0, s->how == NONE ? 0 : total);
    return DP_OK;
}

static dp_status run_backward(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const double total = s->how == MEAN ? read_number(plan, s->total, 0) : 1;
    const int64_t width = (int64_t)dp_element_bytes(plan->tensors[s->x].view.element);
    for (int64_t i = 0; i < s->places.count; i++) {
        int64_t target, at = dp_loop_offset(&s->places, VIEW_X, i);
        bool used;
        dp_status status = target_at(plan, s, i, &target, &used);
        if (status != DP_OK)
            return status;
        char *row = (char *)dp_plan_data(plan, s->x) + at * width;
        if (s->class_stride == 1)
            memset(row, 0, (size_t)(s->classes * width));
        else
            for (int64_t c = 0; c < s->classes; c++)
                memset(row + c * s->class_stride * width, 0, (size_t)width);
        if (!used)
            continue;
        double grad = read_number(plan, s->out, s->how == NONE ? dp_loop_offset(&s->places, VIEW_OUT, i) : 0);
        write_number(plan, s->x, at + target * s->class_stride, -weight_of(plan, s, target) * grad / total);
    }
    return DP_OK;
}

static dp_status expect_one(const dp_arg *arg) {
    if (dp_tensor_count(arg->as.tensor) == 1)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", arg->name,
                   (long long)dp_tensor_count(arg->as.tensor));
}

/* places: what has one element per place or, reduced, one in all. x: what has the classes. */
static dp_status build(const dp_operator_call *call, const dp_arg *x, const dp_arg *target, const dp_arg *weight,
                       const dp_arg *how, const dp_arg *ignored, const dp_arg *places, const dp_arg *total, state *s) {
    const dp_tensor *t = x->as.tensor;
    const int64_t reduced = dp_arg_integer(how, MEAN);
    if (reduced < NONE || reduced > SUM)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (none), 1 (mean) or 2 (sum)", how->name,
                       (long long)reduced);
    dp_status status = dp_element_expect(x, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(target, DP_EL_INTS & ~DP_EL_BIT(DP_U64));
    if (status == DP_OK)
        status = dp_element_expect(places, call->op->elements);
    if (status == DP_OK && !t->rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions, but must have at least 1, of classes", x->name);
    if (status != DP_OK)
        return status;
    const int class_dim = t->rank > 1;
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS];
    int rank = 0;
    for (int d = 0; d < t->rank; d++)
        if (d != class_dim) {
            dims[rank] = t->dims[d];
            strides[rank++] = t->strides[d];
        }
    *s = (state){.classes = t->dims[class_dim], .class_stride = t->strides[class_dim], .how = (reduction)reduced};
    s->ignored = dp_arg_integer(ignored, -100);
    if (t->rank > 1 || target->as.tensor->rank)
        status = rank ? dp_shape_expect(target->as.tensor, target->name, dims, rank, "the input without classes")
                      : expect_one(target);
    if (status == DP_OK)
        status = s->how != NONE || !rank
                     ? expect_one(places)
                     : dp_shape_expect(places->as.tensor, places->name, dims, rank, "the input without classes");
    if (status == DP_OK && weight->kind == DP_ARG_TENSOR)
        status = dp_shape_expect(weight->as.tensor, weight->name, &s->classes, 1, "one per class");
    if (status == DP_OK && weight->kind == DP_ARG_TENSOR)
        status = dp_element_expect(weight, call->op->elements);
    if (status == DP_OK && total->kind == DP_ARG_TENSOR)
        status = expect_one(total);
    if (status == DP_OK && total->kind == DP_ARG_TENSOR)
        status = dp_element_expect(total, call->op->elements);
    if (status != DP_OK)
        return status;
    if (!rank)
        strides[0] = 0;
    const int64_t nothing[DP_TENSOR_DIMS] = {0};
    dp_loop_begin(&s->places, dims, rank);
    dp_loop_add_strides(&s->places, strides);
    dp_loop_add_strides(&s->places, rank ? target->as.tensor->strides : nothing);
    dp_loop_add_strides(&s->places, rank && s->how == NONE ? places->as.tensor->strides : nothing);
    s->x = x->slot;
    s->target = target->slot;
    s->weight = weight->kind == DP_ARG_TENSOR ? weight->slot : -1;
    s->weight_stride = weight->kind == DP_ARG_TENSOR ? weight->as.tensor->strides[0] : 0;
    s->out = places->slot;
    s->total = total->kind == DP_ARG_TENSOR ? total->slot : -1;
    return DP_OK;
}

static dp_status finish(const dp_operator_call *call, const state *s, dp_status (*run)(dp_plan *), dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = "element by element";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_forward(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s;
    dp_status status = build(call, &a[0], &a[1], &a[2], &a[3], &a[4], &call->out[0], &call->out[1], &s);
    return status == DP_OK ? finish(call, &s, run_forward, out_plan) : status;
}

static dp_status prepare_backward(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s;
    dp_status status = build(call, &call->out[0], &a[2], &a[3], &a[4], &a[5], &a[0], &a[6], &s);
    if (status == DP_OK)
        status = dp_shape_expect(a[1].as.tensor, a[1].name, call->out[0].as.tensor->dims, call->out[0].as.tensor->rank,
                                 "the gradient");
    return status == DP_OK ? finish(call, &s, run_backward, out_plan) : status;
}

extern const dp_function dp_loss_nll, dp_loss_nll_backward;
const dp_function dp_loss_nll = {"nll", prepare_forward, NULL, 4, 2};
const dp_function dp_loss_nll_backward = {"nll_backward", prepare_backward, NULL, 8, 0};
