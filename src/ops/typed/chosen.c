/*
 * chosen.c - types that write as many elements as the data ask for; outputs have room for all.
 *   nonzero(x, transpose) -> y          [count, rank], transposed [rank, count]
 */
#include "ops/typed/adapt.h"

extern const dp_function dp_sort_nonzero;

static dp_status nonzero(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    bool columns = dp_arg_integer(&call->in[1], 0) != 0;
    int64_t count = dp_tensor_count(x), rows[] = {count, x->rank}, lines[] = {x->rank, count};
    dp_status status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, columns ? lines : rows, 2,
                                       "room for the coordinates of all elements");
    return status == DP_OK ? dp_sort_nonzero.prepare(call, out_plan) : status;
}

extern const dp_function dp_typed_nonzero;
const dp_function dp_typed_nonzero = {"nonzero", nonzero, NULL, 0, DP_FINDS_DIMS};
