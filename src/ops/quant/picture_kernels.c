/* picture_kernels.c - the loops of picture.h. Compiled once per rung; the compiler makes the vectors. */
#include <string.h>

#include "ops/quant/picture.h"
#include "ops/rung.h"

static inline float bounded(float v, float low, float high) {
    v = v == v ? v : 0;
    v = v < low ? low : v;
    return v > high ? high : v;
}
#define NEAREST(v) ((v) + 0x1.8p23f - 0x1.8p23f) /* ties to even, |v| below 2^22 */

enum { AT_ONCE = 64 };

static void quantise(uint8_t *to, const float *x, size_t n, float factor, float zero) {
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        int32_t whole[AT_ONCE] = {0};
        DP_IVDEP for (size_t i = 0; i < count; i++) whole[i] =
            (int32_t)NEAREST(bounded(x[first + i] * factor + zero, 0, DP_PICTURE_MOST));
        DP_IVDEP for (size_t i = 0; i < count; i++) to[first + i] = (uint8_t)whole[i];
    }
}

static void dequantise(float *to, const uint8_t *x, size_t n, float scale, float zero) {
    DP_IVDEP for (size_t i = 0; i < n; i++) to[i] = ((float)x[i] - zero) * scale;
}

static void transpose(uint8_t *to, const uint8_t *from, size_t rows, size_t columns) {
    enum { BLOCK = 16 };
    for (size_t i = 0; i < rows; i += BLOCK)
        for (size_t j = 0; j < columns; j += BLOCK) {
            const size_t i_end = rows - i < BLOCK ? rows : i + BLOCK, j_end = columns - j < BLOCK ? columns : j + BLOCK;
            for (size_t b = j; b < j_end; b++)
                for (size_t a = i; a < i_end; a++)
                    to[b * rows + a] = from[a * columns + b];
        }
}

/* Sums of up to four products fit 16 bits. */
static inline __attribute__((always_inline)) void depthwise_block(uint8_t *y, const uint8_t *const *x, size_t first,
                                                                  const int8_t *w, size_t taps, size_t w_step,
                                                                  const size_t count, const float *scale,
                                                                  const float *bias, float low, float high) {
    int32_t sum[AT_ONCE];
    for (size_t t = 0; t < taps; t += 4) {
        const size_t end = taps - t < 4 ? taps : t + 4;
        const uint8_t *from = x[t] + first;
        const int8_t *weight = w + t * w_step + first;
        int16_t part[AT_ONCE];
        DP_IVDEP for (size_t c = 0; c < count; c++) part[c] = (int16_t)((int16_t)from[c] * (int16_t)weight[c]);
        for (size_t k = t + 1; k < end; k++) {
            from = x[k] + first;
            weight = w + k * w_step + first;
            DP_IVDEP for (size_t c = 0; c < count; c++) part[c] =
                (int16_t)(part[c] + (int16_t)((int16_t)from[c] * (int16_t)weight[c]));
        }
        if (t == 0) {
            DP_IVDEP for (size_t c = 0; c < count; c++) sum[c] = part[c];
        } else {
            DP_IVDEP for (size_t c = 0; c < count; c++) sum[c] += part[c];
        }
    }
    DP_IVDEP for (size_t c = 0; c < count; c++) sum[c] =
        (int32_t)NEAREST(bounded((float)sum[c] * scale[first + c] + bias[first + c], low, high));
    DP_IVDEP for (size_t c = 0; c < count; c++) y[first + c] = (uint8_t)sum[c];
}

static void depthwise(uint8_t *y, const uint8_t *const *x, const int8_t *w, size_t taps, size_t n, size_t w_step,
                      const float *scale, const float *bias, float low, float high) {
    size_t first = 0;
    for (; first + AT_ONCE <= n; first += AT_ONCE)
        depthwise_block(y, x, first, w, taps, w_step, AT_ONCE, scale, bias, low, high);
    for (; first + AT_ONCE / 4 <= n; first += AT_ONCE / 4)
        depthwise_block(y, x, first, w, taps, w_step, AT_ONCE / 4, scale, bias, low, high);
    if (first < n)
        depthwise_block(y, x, first, w, taps, w_step, n - first, scale, bias, low, high);
}

static void greatest(uint8_t *y, const uint8_t *const *x, size_t taps, size_t n) {
    memcpy(y, x[0], n);
    for (size_t t = 1; t < taps; t++) {
        const uint8_t *from = x[t];
        DP_IVDEP for (size_t c = 0; c < n; c++) y[c] = from[c] > y[c] ? from[c] : y[c];
    }
}

void DP_RUNG(dp_picture_fill)(dp_picture_table *table) {
    *table = (dp_picture_table){quantise, dequantise, transpose, depthwise, greatest};
}
