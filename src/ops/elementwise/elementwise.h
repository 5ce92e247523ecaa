/*
 * elementwise.h - the engine of element by element functions: any strides, broadcasting, type promotion.
 *
 * A mapping's arguments are the function's operands (tensors, scalars or numbers, broadcast together), then its
 * parameters (numbers). The one output must have the broadcast shape. Functions exported: dp_elementwise_<row of
 * functions.def>.
 *
 * Results have the promoted type of the operands (a scalar counts only if it is of a higher category: bool < integer <
 * float); they are written to the output converted, if its category is not lower. Halves are computed in float and
 * rounded once; integers in int64, wrapping.
 */
#ifndef DOPPEL_OPS_ELEMENTWISE_H
#define DOPPEL_OPS_ELEMENTWISE_H

#include "ops/op.h"

dp_status dp_elementwise_prepare(const dp_operator_call *call, dp_plan **out_plan);

/* How many arguments of a function are operands, the rest being numbers; all of them for functions of other families. */
int dp_elementwise_operands(const dp_function *function);
/* Changes a number of a plan that dp_elementwise_prepare made. */
void dp_elementwise_set_param(dp_plan *plan, int param, double value);

#endif
