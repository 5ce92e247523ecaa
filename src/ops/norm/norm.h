/*
 * norm.h - what the norms share.
 */
#ifndef DOPPEL_OPS_NORM_NORM_H
#define DOPPEL_OPS_NORM_NORM_H

#include "ops/lines.h"

/* One number per channel (or line); slot -1: absent. */
typedef struct dp_channel_values {
    int slot, element;
    int64_t stride;
} dp_channel_values;

/* A tensor of one dim with `channels` elements, or absent. */
dp_status dp_channel_values_of(const dp_arg *arg, int64_t channels, dp_channel_values *out);
double dp_channel_value(dp_plan *plan, const dp_channel_values *values, int64_t channel, double otherwise);
void dp_channel_value_set(dp_plan *plan, const dp_channel_values *values, int64_t channel, double value);

/* Refuses tensors among the call's arguments whose elements are not of the operator's types. */
dp_status dp_norm_check_types(const dp_operator_call *call);
static inline bool dp_norm_present(const dp_arg *arg) {
    return arg && arg->kind == DP_ARG_TENSOR;
}
static inline float *dp_norm_buffer(float *buffers, size_t n, int index) {
    return buffers + n * (size_t)index;
}

#endif
