/*
 * transposed.c - transpose_bmm(x1, x2, bias, scale, perm1, perm2, perm_out, mode, split) -> out
 *   products of batches of matrices, [b, m, k] by [b, k, n] after dims are permuted; the result [b, m, n] is permuted
 * to [m, b, n], perm_out (1, 0, 2), or not at all. split > 1: the batch is cut into so many parts, and the products of
 * a part lie side by side: out [split, m, b * n / split]. All of it is views; bias and scale are refused.
 */
#include <string.h>

#include "ops/typed/adapt.h"

extern const dp_function dp_matmul_matmul;

enum { RANK = 3 };

/* The permutation as given; an absent one as `otherwise`. */
static dp_status take_order(const dp_arg *arg, const int64_t *otherwise, int64_t *order) {
    bool given = arg->kind == DP_ARG_INT_LIST, used[RANK] = {false};
    if (given && arg->count != RANK)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have %d", arg->name, (long long)arg->count,
                       RANK);
    for (int i = 0; i < RANK; i++) {
        order[i] = given ? arg->as.integers[i] : otherwise[i];
        if (order[i] < 0 || order[i] >= RANK || used[order[i]])
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be 0 to %d, each once", arg->name, i,
                           (long long)order[i], RANK - 1);
        used[order[i]] = true;
    }
    return DP_OK;
}

/* The operand as [parts, b / parts, rows, columns]. */
static dp_status view_operand(dp_adapted *a, dp_arg *arg, const int64_t *order, int64_t parts) {
    if (arg->as.tensor->rank != RANK)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have %d", arg->name, arg->as.tensor->rank,
                       RANK);
    dp_tensor *t = dp_adapt_view(a, arg);
    const dp_tensor was = *t;
    if (was.dims[order[0]] % parts)
        return dp_fail(DP_ERR_ARGUMENT, "%s has a batch of %lld, which %lld parts do not divide", arg->name,
                       (long long)was.dims[order[0]], (long long)parts);
    t->rank = RANK + 1;
    for (int i = 0; i < RANK; i++) {
        t->dims[i + 1] = was.dims[order[i]];
        t->strides[i + 1] = was.strides[order[i]];
    }
    t->dims[1] /= parts;
    t->dims[0] = parts;
    t->strides[0] = parts > 1 ? t->strides[1] * t->dims[1] : 0;
    return DP_OK;
}

/* What the products of [parts, b / parts, m, n] write. */
static dp_status view_result(dp_adapted *a, dp_arg *arg, bool permuted, const int64_t *wanted) {
    const int64_t parts = wanted[0], inside = wanted[1], m = wanted[2], n = wanted[3];
    int64_t dims[RANK] = {permuted ? m : inside, permuted ? inside : m, n};
    if (parts > 1)
        dims[0] = parts, dims[1] = m, dims[2] = inside * n;
    dp_status status = dp_shape_expect(arg->as.tensor, arg->name, dims, RANK, "the products', permuted");
    if (status == DP_OK)
        status = dp_places_expect(arg);
    if (status != DP_OK)
        return status;
    dp_tensor *t = dp_adapt_view(a, arg);
    const dp_tensor was = *t;
    t->rank = RANK + 1;
    memcpy(t->dims, wanted, (RANK + 1) * sizeof *wanted);
    t->strides[0] = parts > 1 ? was.strides[0] : 0;
    t->strides[1] = parts > 1 ? was.strides[2] * n : was.strides[permuted];
    t->strides[2] = parts > 1 ? was.strides[1] : was.strides[!permuted];
    t->strides[3] = was.strides[2];
    return DP_OK;
}

static dp_status transpose_bmm(const dp_operator_call *call, dp_plan **out_plan) {
    static const int64_t plain[] = {0, 1, 2}, turned[] = {1, 0, 2};
    const dp_arg *in = call->in;
    int64_t order[2][RANK], result[RANK], parts = dp_arg_integer(&in[8], 1);
    dp_adapted a;
    for (int i = 2; i < 4; i++)
        if (in[i].kind == DP_ARG_TENSOR)
            return dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but only products without bias and scale are offered",
                           in[i].name);
    dp_status status = take_order(&in[4], plain, order[0]);
    if (status == DP_OK)
        status = take_order(&in[5], plain, order[1]);
    if (status == DP_OK)
        status = take_order(&in[6], turned, result);
    if (status == DP_OK && memcmp(result, plain, sizeof plain) != 0 && memcmp(result, turned, sizeof turned) != 0)
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be (1, 0, 2) or (0, 1, 2)", in[6].name);
    if (status == DP_OK && (parts < 1 || (parts > 1 && result[0] == 0)))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 1, and 1 unless %s is (1, 0, 2)",
                         in[8].name, (long long)parts, in[6].name);
    if (status != DP_OK)
        return status;
    dp_adapt_begin(&a, call);
    for (int i = 0; i < 2 && status == DP_OK; i++)
        status = view_operand(&a, &a.in[i], order[i], parts);
    if (status != DP_OK)
        return status;
    const dp_tensor *x1 = a.in[0].as.tensor, *x2 = a.in[1].as.tensor;
    if (x1->dims[1] != x2->dims[1])
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s have batches of %lld and %lld, but they must be the same",
                       in[0].name, in[1].name, (long long)(x1->dims[1] * parts), (long long)(x2->dims[1] * parts));
    const int64_t wanted[] = {parts, x1->dims[1], x1->dims[2], x2->dims[3]};
    status = view_result(&a, &a.out[0], result[0] == 1, wanted);
    return status == DP_OK ? dp_adapt_end(&a, &dp_matmul_matmul, 2, out_plan) : status;
}

extern const dp_function dp_matmul_transpose_bmm;
const dp_function dp_matmul_transpose_bmm = {"transpose_bmm", transpose_bmm, NULL, 0x7c, 0};
