/*
 * picture.h - pictures of small unsigned integers with the channels last, as quantised models compute on them.
 *
 * A picture is [batch, height, width, channels] of uint8 from 0 to 127; q stands for (q - zero) * scale. Seven bits and
 * weights from -64 to 64 keep sums of four products within 16 bits, which is what processors without instructions of
 * their own for int8 products need (math/gemm/gemm.h, `narrow`); results are the same on all.
 */
#ifndef DOPPEL_OPS_QUANT_PICTURE_H
#define DOPPEL_OPS_QUANT_PICTURE_H

#include "ops/op.h"

enum { DP_PICTURE_MOST = 127, DP_PICTURE_WEIGHT_MOST = 64, DP_PICTURE_VALUES = 128 };

typedef struct dp_picture {
    int slot;
    int64_t batch, height, width, channels;
} dp_picture;

/* The loops of one rung. */
typedef struct dp_picture_table {
    /* to[i] = x[i] * factor + zero, to the nearest, within 0 .. 127; a NaN becomes 0 */
    void (*quantise)(uint8_t *to, const float *x, size_t n, float factor, float zero);
    void (*dequantise)(float *to, const uint8_t *x, size_t n, float scale, float zero);
    /* to[j * rows + i] = from[i * columns + j] */
    void (*transpose)(uint8_t *to, const uint8_t *from, size_t rows, size_t columns);
    /* y[c] = bound(scale[c] * sum over taps of x[t][c] * w[t * w_step + c] + bias[c]), rounded, for c < n */
    void (*depthwise)(uint8_t *y, const uint8_t *const *x, const int8_t *w, size_t taps, size_t n, size_t w_step,
                      const float *scale, const float *bias, float low, float high);
    /* y[c] = the greatest of x[t][c] */
    void (*greatest)(uint8_t *y, const uint8_t *const *x, size_t taps, size_t n);
} dp_picture_table;
void dp_picture_fill_generic(dp_picture_table *table);
void dp_picture_fill_avx2(dp_picture_table *table);
void dp_picture_fill_avx512(dp_picture_table *table);
const dp_picture_table *dp_picture_current(void);

/* Checks that the tensor is such a picture. */
dp_status dp_picture_of(const dp_arg *arg, dp_picture *out);
/* Four numbers by NHWC of a list whose first and last must be 1; those of height and width. */
dp_status dp_picture_steps(const dp_arg *arg, int64_t *out_y, int64_t *out_x);

#endif
