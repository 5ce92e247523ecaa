/*
 * product.c - products of matrices.
 *   gemm(a, b, c, alpha, beta, transpose_a, transpose_b) -> y          alpha * a x b + beta * c
 *   matmul(x1, x2, bias, transpose_x1, transpose_x2) -> y          batches are broadcast; bias may be absent
 */
#include <string.h>

#include "ops/typed/adapt.h"

extern const dp_function dp_matmul_mm, dp_matmul_matmul, dp_matmul_addmm, dp_matmul_baddbmm;

static void swap(int64_t *a, int64_t *b) {
    int64_t t = *a;
    *a = *b;
    *b = t;
}

/* The last two dims of the operand change places when `flag` says so. */
static dp_status transpose(dp_adapted *a, dp_arg *arg, const dp_arg *flag) {
    if (!dp_arg_integer(flag, 0))
        return DP_OK;
    dp_tensor *t = dp_adapt_view(a, arg);
    if (t->rank < 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s is set, but %s has %d dimensions: it must have at least 2", flag->name,
                       arg->name, t->rank);
    swap(&t->dims[t->rank - 1], &t->dims[t->rank - 2]);
    swap(&t->strides[t->rank - 1], &t->strides[t->rank - 2]);
    return DP_OK;
}

static bool is_same_place(const dp_tensor *a, const dp_tensor *b) {
    return a->base && a->base == b->base && a->offset == b->offset && a->element == b->element && a->rank == b->rank &&
           memcmp(a->dims, b->dims, sizeof a->dims) == 0 && memcmp(a->strides, b->strides, sizeof a->strides) == 0;
}

static bool is_integral(const dp_arg *arg) {
    return arg->as.tensor->element == DP_I8 || arg->as.tensor->element == DP_U8;
}

static dp_status gemm(const dp_operator_call *call, dp_plan **out_plan) {
    dp_adapted a;
    dp_adapt_begin(&a, call);
    dp_status status = transpose(&a, &a.in[0], &call->in[5]);
    if (status == DP_OK)
        status = transpose(&a, &a.in[1], &call->in[6]);
    if (status != DP_OK)
        return status;
    dp_arg left = a.in[0], right = a.in[1], added = a.in[2], alpha = a.in[3], beta = a.in[4];
    if (is_integral(&left) && is_integral(&right)) {
        if (dp_arg_real(&alpha, 1) == 1 && dp_arg_real(&beta, 0) == 0)
            return dp_adapt_end(&a, &dp_matmul_mm, 2, out_plan);
        return dp_fail(DP_ERR_UNSUPPORTED, "alpha is %g and beta %g, but for 8-bit matrices Doppel does 1 and 0 only",
                       dp_arg_real(&alpha, 1), dp_arg_real(&beta, 0));
    }
    /* written where it is read: one tensor, so that the engine knows */
    a.in[0] = is_same_place(added.as.tensor, a.out[0].as.tensor) ? a.out[0] : added;
    a.in[1] = left;
    a.in[2] = right;
    a.in[3] = beta;
    a.in[4] = alpha;
    return dp_adapt_end(&a, &dp_matmul_addmm, 5, out_plan);
}

static dp_status matmul(const dp_operator_call *call, dp_plan **out_plan) {
    dp_adapted a;
    dp_adapt_begin(&a, call);
    dp_status status = transpose(&a, &a.in[0], &call->in[3]);
    if (status == DP_OK)
        status = transpose(&a, &a.in[1], &call->in[4]);
    if (status != DP_OK)
        return status;
    dp_arg left = a.in[0], right = a.in[1], bias = a.in[2];
    if (bias.kind != DP_ARG_TENSOR)
        return dp_adapt_end(&a, &dp_matmul_matmul, 2, out_plan);
    int rank = left.as.tensor->rank;
    if ((rank != 2 && rank != 3) || right.as.tensor->rank != rank)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "%s is added to products of matrices or of batches of them, but %s has %d "
                       "dimensions and %s %d",
                       bias.name, left.name, rank, right.name, right.as.tensor->rank);
    a.in[0] = bias;
    a.in[1] = left;
    a.in[2] = right;
    a.in[3] = dp_adapt_integer("beta", 1);
    a.in[4] = dp_adapt_integer("alpha", 1);
    return dp_adapt_end(&a, rank == 2 ? &dp_matmul_addmm : &dp_matmul_baddbmm, 5, out_plan);
}

extern const dp_function dp_typed_gemm, dp_typed_matmul;
const dp_function dp_typed_gemm = {"gemm", gemm, NULL, 0, 0};
const dp_function dp_typed_matmul = {"matmul", matmul, NULL, 4, 0};
