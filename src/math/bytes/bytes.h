/*
 * bytes.h - convolutions and products of small integers: rows of uint8 times constant int8 weights, and what turns the
 * sums into uint8 again:
 *   v = sum * scale[n] + bias[n] (+ residual * residual_scale[n]);  v = activation(v) * after[n] + shift[n]
 * rounded to the nearest (ties to even) and bounded to 0 .. 255; or v before the rounding, as float.
 *
 * Weights lie in panels of 16 columns, the same on every processor: panel p holds, for a group g of four k, the bytes
 * (4 g + i, p * 16 + c) at g * 64 + 4 c + i; k is filled up with zeros to a multiple of DP_BYTES_DEPTH. They are made
 * once, by a compiler (dp_bytes_pack), and read from a file as they are.
 *
 * Pure functions: no allocation, no globals, no threads. Sums are exact in int32, and what follows is a multiplication
 * and an addition in float each: results are the same on every rung. AMX: the caller's thread may use matrix tiles.
 */
#ifndef DOPPEL_MATH_BYTES_BYTES_H
#define DOPPEL_MATH_BYTES_BYTES_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DP_BYTES_PANEL = 16,  /* columns of a panel */
    DP_BYTES_DEPTH = 64,  /* k of a panel is a multiple of this */
    DP_BYTES_ROOM = 8192, /* bytes that `product` needs, 64-byte aligned */
    DP_BYTES_LINES = 4    /* lines of the output that `depthwise` makes at once, at most */
};

typedef enum dp_bytes_activation {
    DP_BYTES_NONE,
    DP_BYTES_HARD_SWISH, /* v * (v / 6 + 1/2 clipped to 0 .. 1) */
    DP_BYTES_ACTIVATION_COUNT
} dp_bytes_activation;

/* One float per column each, counted from column 0; after, shift: only with an activation. */
typedef struct dp_bytes_finish {
    dp_bytes_activation activation;
    const float *scale, *bias, *residual_scale, *after, *shift;
} dp_bytes_finish;

/* Columns [first, first + columns) of some rows; first is a multiple of 16. */
typedef struct dp_bytes_block {
    const uint8_t *a; /* row r at a + r * a_stride */
    size_t a_stride, rows, k;
    bool exact; /* k is a multiple of 4, and rows are read no further; else up to a multiple of DP_BYTES_DEPTH, whatever
                   stands there */
    const int8_t *panels; /* of column 0 */
    size_t first, columns;
    void *y; /* uint8, or float with as_float; element (r, n) is number r * y_stride + n, n counted from column 0 */
    ptrdiff_t y_stride;
    bool as_float;
    const uint8_t *residual; /* or NULL; may be y */
    ptrdiff_t residual_stride;
} dp_bytes_block;

/* Some lines of the output of a depthwise convolution, some of their channels. Pairs are y, x. */
typedef struct dp_bytes_depthwise {
    const uint8_t *x;          /* of the image: channel 0 of the first pixel */
    ptrdiff_t x_line, x_pixel; /* bytes from line to line, from pixel to pixel */
    ptrdiff_t in[2], out_width;
    ptrdiff_t kernel[2], stride[2], pad[2], dilation[2];
    const int8_t *weights; /* [tap][weight_step], a byte per channel */
    size_t weight_step;
    const uint8_t *outside; /* what stands outside the image, a byte per channel */
    ptrdiff_t line, lines;  /* of the output: [line, line + lines) */
    size_t first, columns;  /* channels; first is a multiple of 16 */
    uint8_t *y;             /* of the image; lines are out_width pixels apart */
    ptrdiff_t y_pixel;
} dp_bytes_depthwise;

typedef struct dp_bytes_table {
    const char *name;
    void (*product)(const dp_bytes_block *block, const dp_bytes_finish *finish, void *room);
    /* room: dp_bytes_depthwise_room bytes, 64-byte aligned. Residuals there are none. */
    void (*depthwise)(const dp_bytes_depthwise *part, const dp_bytes_finish *finish, void *room);
    /* to[i] = x[i] * factor[i] + zero[i], rounded and bounded; a NaN becomes 0 */
    void (*quantise)(uint8_t *to, const float *x, const float *factor, const float *zero, size_t n);
    /* to[i] = (x[i] - zero[i]) * scale[i] */
    void (*dequantise)(float *to, const uint8_t *x, const float *scale, const float *zero, size_t n);
    /* to[i] = x[i] * f[i] (+ y[i] * g[i], unless y is NULL) + shift[i], rounded and bounded */
    void (*combine)(uint8_t *to, const uint8_t *x, const float *f, const uint8_t *y, const float *g, const float *shift,
                    size_t n);
    /* sums[i] += x[i] */
    void (*add)(uint32_t *sums, const uint8_t *x, size_t n);
    /* three (or fewer) planes of floats to pixels of four bytes, the last ones 0 */
    void (*quantise_planes)(uint8_t *to, const float *const *planes, size_t n_planes, const float *factor,
                            const float *zero, size_t n);
} dp_bytes_table;

/* Of a rung, lowered to what the processor has, with some of its features (DP_CPU_*); and of what is in force. */
const dp_bytes_table *dp_bytes_for(dp_isa isa, unsigned features);
const dp_bytes_table *dp_bytes_current(void);

static inline size_t dp_bytes_depth(size_t k) {
    return (k + DP_BYTES_DEPTH - 1) / DP_BYTES_DEPTH * DP_BYTES_DEPTH;
}
static inline size_t dp_bytes_panel_bytes(size_t k, size_t columns) {
    return (columns + DP_BYTES_PANEL - 1) / DP_BYTES_PANEL * DP_BYTES_PANEL * dp_bytes_depth(k);
}
size_t dp_bytes_depthwise_room(const dp_bytes_depthwise *part);
/* Writes the panels of a matrix whose element (p, c) is at weights[p * k_stride + c * column_stride]. */
void dp_bytes_pack(const int8_t *weights, size_t k, size_t columns, ptrdiff_t k_stride, ptrdiff_t column_stride,
                   int8_t *out);

#endif
