/* kernels.h - one step of the delta rule on one row of a state matrix, compiled once per rung. */
#ifndef DOPPEL_OPS_RECURRENT_KERNELS_H
#define DOPPEL_OPS_RECURRENT_KERNELS_H

#include <stddef.h>

/* s *= decay; s += beta * (v - s . k) * k; returns s . q. All are floats, n of s, decay, k and q. */
typedef float (*dp_delta_row_fn)(float *s, const float *decay, const float *k, const float *q, float v, float beta,
                                 size_t n);

float dp_delta_row_generic(float *s, const float *decay, const float *k, const float *q, float v, float beta, size_t n);
float dp_delta_row_avx2(float *s, const float *decay, const float *k, const float *q, float v, float beta, size_t n);
float dp_delta_row_avx512(float *s, const float *decay, const float *k, const float *q, float v, float beta, size_t n);

#endif
