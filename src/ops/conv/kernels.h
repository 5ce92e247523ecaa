/*
 * kernels.h - the loops of convolutions, one table per rung.
 */
#ifndef DOPPEL_OPS_CONV_KERNELS_H
#define DOPPEL_OPS_CONV_KERNELS_H

#include "math/gemm/gemm.h"
#include "ops/window.h"

/*
 * The input of one image and group as the fill function reads it: floats, contiguous along x, and the window's step
 * along x is 1. A greater step is taken by sorting x into `phases` runs: x lies at phase x % step, place x / step.
 */
typedef struct dp_conv_windows {
    const float *data;
    int64_t channel_stride, z_stride, y_stride, phase_stride;
    dp_axis axis[DP_SPACE];
} dp_conv_windows;

typedef struct dp_conv_table {
    /* Matrix of windows: row (channel, kz, ky, kx), column (oz, oy, ox). The context is a dp_conv_windows. */
    dp_gemm_fill_fn fill;
    /*
     * For every row r < rows and i < n: y[r * y_step + i] = start (what it was, where start is NULL)
     * + sum over taps t of weights[t] * x[r * x_step + offsets[t] + i].
     */
    void (*taps)(float *y, int64_t y_step, const float *x, int64_t x_step, const int64_t *offsets, const float *weights,
                 size_t n_taps, size_t rows, size_t n, const float *start);
    /* y[i * step] += x[i] */
    void (*add)(float *y, const float *x, size_t n, size_t step);
} dp_conv_table;

void dp_conv_fill_table_generic(dp_conv_table *table);
void dp_conv_fill_table_avx2(dp_conv_table *table);
void dp_conv_fill_table_avx512(dp_conv_table *table);
/* to[p * to_stride + i] = from[i * step + p] for all p < step */
static inline void dp_conv_sort_phases(const float *from, int64_t count, int64_t step, float *to, int64_t to_stride) {
    for (int64_t phase = 0; phase < step && phase < count; phase++, to += to_stride)
        for (int64_t i = phase, k = 0; i < count; i += step, k++)
            to[k] = from[i];
}

/* Of the rung in force. */
const dp_conv_table *dp_conv_current(void);

#endif
