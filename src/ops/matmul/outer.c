/*
 * outer.c - outer products: elementwise products of a column and a row.
 *   ger(a, b) -> out                         out[i][j] = a[i] * b[j]
 *   addr(self, a, b, beta, alpha) -> out     beta * self + alpha * a[i] * b[j]; beta and alpha may be absent: 1
 */
#include "ops/elementwise/elementwise.h"

extern const dp_function dp_elementwise_mul, dp_elementwise_addcmul, dp_elementwise_addr;

static dp_status check_vector(const dp_arg *arg) {
    const dp_tensor *t = arg->as.tensor;
    return t->rank == 1 ? DP_OK : dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", arg->name, t->rank);
}

/* The operator as the elementwise family sees it. */
static dp_status prepare_as(const dp_operator_call *call, const dp_function *function, const dp_arg *in, int n_in,
                            dp_plan **out_plan) {
    dp_operator op = *call->op;
    op.function = function;
    dp_operator_call changed = *call;
    changed.op = &op;
    changed.in = in;
    changed.n_in = n_in;
    dp_status status = dp_elementwise_prepare(&changed, out_plan);
    if (status == DP_OK)
        (*out_plan)->op = call->op;
    return status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const bool added = call->n_in > 2;
    dp_arg a = call->in[added], b = call->in[added + 1];
    dp_status status = check_vector(&a);
    if (status == DP_OK)
        status = check_vector(&b);
    if (status != DP_OK)
        return status;
    dp_tensor column = *a.as.tensor;
    column.rank = 2;
    column.dims[1] = 1;
    column.strides[1] = 0;
    a.as.tensor = &column;
    if (!added)
        return prepare_as(call, &dp_elementwise_mul, (dp_arg[]){a, b}, 2, out_plan);
    dp_arg self = call->in[0], beta = call->in[3], alpha = call->in[4];
    if (alpha.kind == DP_ARG_ABSENT)
        alpha = (dp_arg){.name = alpha.name, .kind = DP_ARG_REAL, .as.real = 1};
    if (beta.kind == DP_ARG_ABSENT || dp_arg_real(&beta, 1) == 1)
        return prepare_as(call, &dp_elementwise_addcmul, (dp_arg[]){self, a, b, alpha}, 4, out_plan);
    if (dp_arg_real(&beta, 1) == 0) { /* self is not read: what is not a number there stays there */
        self = (dp_arg){.name = self.name, .kind = DP_ARG_REAL, .as.real = 0};
        return prepare_as(call, &dp_elementwise_addcmul, (dp_arg[]){self, a, b, alpha}, 4, out_plan);
    }
    return prepare_as(call, &dp_elementwise_addr, (dp_arg[]){self, a, b, beta, alpha}, 5, out_plan);
}

extern const dp_function dp_matmul_ger, dp_matmul_addr;
const dp_function dp_matmul_ger = {"ger", prepare, NULL, 0, 0};
const dp_function dp_matmul_addr = {"addr", prepare, NULL, 1u << 3 | 1u << 4, 0};
