/*
 * weight.c - preparing a weight: trans_weight(weight) -> weight.
 *
 * The layout that products read under the vendor's FRACTAL_NZ tag is whatever this makes, and this keeps the rows as
 * they are: clients go on describing the weight by plain strides, and the engine reads rows of k at memory speed. So
 * only the description is checked, and nothing is moved.
 */
#include "ops/op.h"

static dp_status keep(dp_plan *plan) {
    (void)plan;
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *arg = &call->in[0];
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, call->op->elements | DP_EL_BIT(DP_I8));
    if (status != DP_OK)
        return status;
    if (t->rank < 2 || t->rank > 6)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2 to 6: (batch, n, k)", arg->name,
                       t->rank);
    if (!dp_tensor_is_contiguous(t))
        return dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous", arg->name);
    dp_plan *plan = dp_plan_new(call, keep, 0);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    plan->path = "rows kept";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_matmul_trans_weight;
const dp_function dp_matmul_trans_weight = {"trans_weight", prepare, NULL, 0, 0};
