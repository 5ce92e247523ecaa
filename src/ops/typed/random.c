/*
 * random.c - tensors of random numbers, of a shape that is given:
 *   random_uniform(shape, low, high, seed, offset) -> y, random_normal(shape, mean, deviation, seed, offset) -> y
 */
#include "ops/typed/adapt.h"

extern const dp_function dp_random_uniform, dp_random_normal;

static dp_status fill(const dp_operator_call *call, const dp_function *to, dp_plan **out_plan) {
    const dp_arg *shape = &call->in[0];
    if (shape->count > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld sizes, but may have %d", shape->name, (long long)shape->count,
                       DP_TENSOR_DIMS);
    for (int64_t d = 0; d < shape->count; d++)
        if (shape->as.integers[d] < 0)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] is %lld, but must be at least 0", shape->name, (long long)d,
                           (long long)shape->as.integers[d]);
    dp_status status =
        dp_shape_expect(call->out[0].as.tensor, call->out[0].name, shape->as.integers, (int)shape->count, shape->name);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    for (int i = 0; i < 4; i++)
        a.in[i] = call->in[i + 1];
    a.in[4] = dp_adapt_absent("offset in the graph");
    return dp_adapt_end(&a, to, 5, out_plan);
}

static dp_status random_uniform(const dp_operator_call *call, dp_plan **out_plan) {
    return fill(call, &dp_random_uniform, out_plan);
}
static dp_status random_normal(const dp_operator_call *call, dp_plan **out_plan) {
    return fill(call, &dp_random_normal, out_plan);
}

extern const dp_function dp_typed_random_uniform, dp_typed_random_normal;
const dp_function dp_typed_random_uniform = {"random_uniform", random_uniform, NULL, 0, 0};
const dp_function dp_typed_random_normal = {"random_normal", random_normal, NULL, 0, 0};
