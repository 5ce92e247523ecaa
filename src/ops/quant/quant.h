/*
 * quant.h - what the quantising operators share: rounding lines of floats to small integers, and 4-bit integers in
 * pairs.
 *
 * 4-bit results are a tensor of int4, or of int32 whose last dimension is an eighth: eight of them in each, the first
 * in the lowest bits. Such tensors must be contiguous, and their lines of whole bytes.
 */
#ifndef DOPPEL_OPS_QUANT_QUANT_H
#define DOPPEL_OPS_QUANT_QUANT_H

#include "ops/lines.h"

typedef enum dp_quant_round { DP_QUANT_RINT, DP_QUANT_FLOOR, DP_QUANT_CEIL, DP_QUANT_TRUNC } dp_quant_round;

/* Loops of one rung. */
typedef struct dp_quant_table {
    /* y = x * scale + offset, rounded and cut to low .. high, which are integers of up to 2^22; a NaN becomes 0. scale
     * and offset may be NULL (1 and 0). y may be x. */
    void (*round)(float *y, const float *x, const float *scale, const float *offset, size_t n, dp_quant_round how,
                  float low, float high);
    /* the same to the nearest, with one factor and one shift for all */
    void (*round_by)(float *y, const float *x, float factor, float shift, size_t n, float low, float high);
    float (*absolute_max)(const float *x, size_t n);
    void (*multiply)(float *y, const float *a, const float *b, size_t n);
    /* y = a / (1 + e^-a) * b; y may be a */
    void (*swiglu)(float *y, const float *a, const float *b, size_t n);
} dp_quant_table;
void dp_quant_fill_generic(dp_quant_table *table);
void dp_quant_fill_avx2(dp_quant_table *table);
void dp_quant_fill_avx512(dp_quant_table *table);
const dp_quant_table *dp_quant_current(void);

/* A tensor of integers whose lines are read or written as floats. */
typedef struct dp_quant_side {
    int slot, view; /* view among the lines'; -1 for 4-bit integers */
    float low, high;
} dp_quant_side;

/* Checks that the tensor is int8 (or one of `others`), or 4-bit, with these dims, and adds it to the lines. */
dp_status dp_quant_add(dp_lines *lines, const dp_arg *arg, uint32_t others, const int64_t *dims, int rank,
                       const bool *in_line, dp_quant_side *out_side);
const float *dp_quant_load(const dp_lines *lines, dp_plan *plan, const dp_quant_side *side, int64_t line,
                           float *buffer);
/* values are integers within the side's range. */
void dp_quant_store(const dp_lines *lines, dp_plan *plan, const dp_quant_side *side, int64_t line, const float *values);

/* A view of scales: one element for all, a 1-D tensor along dim `axis`, or of the same rank with dims of 1. */
dp_status dp_quant_add_scale(dp_lines *lines, const dp_arg *arg, uint32_t elements, const int64_t *dims, int rank,
                             int axis, const bool *in_line, int *out_view);
/* The type asked for by the vendor's number must be that of the tensor. */
dp_status dp_quant_type_expect(const dp_arg *number, const dp_arg *tensor);

#endif
