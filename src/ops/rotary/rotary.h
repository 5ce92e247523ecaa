/* rotary.h - what rotary embedding and its gradient share. */
#ifndef DOPPEL_OPS_ROTARY_ROTARY_H
#define DOPPEL_OPS_ROTARY_ROTARY_H

#include "ops/op.h"

/* Strides of cos or sin (or of their gradients) in the dims of x, DP_TENSOR_DIMS of them; 0 where broadcast. Refuses other shapes. */
dp_status dp_rotary_angle_strides(const dp_arg *arg, const dp_arg *x, int64_t *strides);

#endif
