/* kernels.h - loops over one row of scores, compiled once per rung. */
#ifndef DOPPEL_OPS_ATTENTION_KERNELS_H
#define DOPPEL_OPS_ATTENTION_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef struct dp_attention_kernels {
    /* s += factor * bias; bias is of half, bfloat16 or float (dp_dtype) */
    void (*add)(float *s, const void *bias, int element, size_t n, float factor);
    /* s becomes -infinity where mask is not 0, whatever it was */
    void (*mask)(float *s, const uint8_t *mask, size_t n);
    /* the greatest; a NaN does not count */
    float (*max)(const float *s, size_t n);
    /* s = e^(s - max); returns the sum of the results */
    float (*exp)(float *s, size_t n, float max);
    void (*scale)(float *s, size_t n, float factor);
} dp_attention_kernels;

void dp_attention_fill_generic(dp_attention_kernels *kernels);
void dp_attention_fill_avx2(dp_attention_kernels *kernels);
void dp_attention_fill_avx512(dp_attention_kernels *kernels);
/* Of the rung in force. */
const dp_attention_kernels *dp_attention_current(void);

#endif
