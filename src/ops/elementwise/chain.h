/*
 * chain.h - several elementwise functions of floats run one after the other on a tile, which stays in the first cache:
 *   chain(x, program) -> y    x: a list of float tensors that are broadcast to y
 *
 * A program is steps with commas between them: the name of a function (functions.def), its operands, its numbers. An operand
 * is x0, x1, ... (a tensor), r0, r1, ... (the result of an earlier step), or a number. The last step's result is y.
 * Results are those of the functions called one by one.
 */
#ifndef DOPPEL_OPS_ELEMENTWISE_CHAIN_H
#define DOPPEL_OPS_ELEMENTWISE_CHAIN_H

#include "base/status.h"

enum { DP_CHAIN_STEPS = 16, DP_CHAIN_INPUTS = 10 };

/* Whether a program may have the function, of floats with a float as result; how many operands and numbers it takes. */
bool dp_chain_knows(const char *function, int *out_operands, int *out_numbers);

#endif
