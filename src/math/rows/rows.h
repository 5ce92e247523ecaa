/*
 * rows.h - rows of channels times constant weights, the core of convolutions and of layers with fixed weights:
 *   y[r][n] = f(bias[n] + sum over taps t and channels i of a[t][r][i] * weight[t][i][n])
 * A row of one tap is `channels` floats side by side anywhere in memory, given by its address; a tap that lies outside
 * an image is given as the address of a row of zeros. So a convolution over an image with channels last is this product
 * with nothing copied.
 *
 * Weights lie in panels of 16 columns, whatever the processor: panel p holds, for k = t * channels + i, element (k, p *
 * 16 + c) at k * 16 + c; columns past the last are 0. They are made once, by a compiler (dp_rows_pack), and read from a
 * file as they are. Of depthwise weights, one channel per group, k is the tap and a column a channel.
 *
 * Pure functions: no allocation, no globals, no threads. Everything is float. Results depend, in the last bits, on the
 * rung, and not on how rows and columns are divided among calls.
 */
#ifndef DOPPEL_MATH_ROWS_ROWS_H
#define DOPPEL_MATH_ROWS_ROWS_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    DP_ROWS_PANEL = 16,  /* columns of a panel */
    DP_ROWS_TILE_MAX = 8 /* rows of any rung's tile, at most */
};

typedef enum dp_rows_activation {
    DP_ROWS_NONE,
    DP_ROWS_RELU,         /* NaN stays, as with all of them */
    DP_ROWS_CLIP,         /* to alpha .. beta */
    DP_ROWS_LEAKY_RELU,   /* x < 0 ? alpha * x : x */
    DP_ROWS_HARD_SIGMOID, /* alpha * x + beta, clipped to 0 .. 1 */
    DP_ROWS_HARD_SWISH,   /* x * (x / 6 + 1/2 clipped to 0 .. 1) */
    DP_ROWS_SIGMOID,
    DP_ROWS_SILU, /* x * sigmoid(x) */
    DP_ROWS_TANH,
    DP_ROWS_GELU_ERF,
    DP_ROWS_GELU_TANH,
    DP_ROWS_HARD_SWISH_AFFINE, /* alpha * hard_swish(x) + beta */
    DP_ROWS_LEAKY_RELU_FLOOR,  /* leaky_relu(x) with slope alpha, at least beta */
    DP_ROWS_ACTIVATION_COUNT
} dp_rows_activation;

/* What becomes of a sum: y = activation(sum + residual), or activation(sum) + residual with residual_last. */
typedef struct dp_rows_finish {
    dp_rows_activation activation;
    float alpha, beta;
    bool residual_last;
} dp_rows_finish;

typedef struct dp_rows_weights {
    size_t taps, channels;
    const float *panels; /* of the first tap; 64-byte alignment is good */
    size_t panel_stride; /* floats from panel to panel: taps * channels * 16, or more when these are some of the taps */
    const float *bias;   /* a float per column, or NULL */
    const float *next;   /* what the next call will read first: it is called into the cache; or NULL */
} dp_rows_weights;

/* Columns [first, first + columns) of some rows; first is a multiple of 16. */
typedef struct dp_rows_block {
    /* Row r of tap t is at rows[(r / tile * taps + t) * tile + r % tile], tile being dp_rows_height(the table's,
     * count).
     */
    const float *const *rows;
    size_t count, first, columns;
    float *y; /* element (r, n) at y + r * y_stride + n, n counted from column 0 */
    ptrdiff_t y_stride;
    const float *residual; /* likewise, or NULL; may be y with the same stride */
    ptrdiff_t residual_stride;
} dp_rows_block;

/* The same for rows a constant distance apart: a plain product. Bits are those of `run`. */
typedef struct dp_rows_product {
    const float *x; /* element (r, i) of tap t, i < k / taps, at x + t * tap_stride + r * x_stride + i */
    ptrdiff_t x_stride, tap_stride;
    size_t rows, k, taps; /* taps: 0 counts as 1 */
    const float *next;    /* as in dp_rows_weights */
    const float *panels, *bias; /* of column 0; bias or NULL */
    size_t first, columns;      /* [first, first + columns); first is a multiple of 16 */
    float *y;                   /* as in dp_rows_block */
    ptrdiff_t y_stride;
    const float *residual;
    ptrdiff_t residual_stride;
} dp_rows_product;

/* Some lines of the output of a depthwise convolution, some of their channels. Pairs are y, x. */
typedef struct dp_rows_depthwise {
    const float *x;             /* of the image: channel 0 of the first pixel */
    ptrdiff_t x_line, x_pixel;  /* floats from line to line, from pixel to pixel */
    ptrdiff_t in[2], out_width; /* sizes of the images */
    ptrdiff_t kernel[2], stride[2], pad[2], dilation[2];
    const float *panels, *bias; /* bias: a float per channel, or NULL */
    ptrdiff_t line, lines;      /* of the output: [line, line + lines) */
    size_t first, columns;      /* channels; first is a multiple of 16 */
    float *y;                   /* of the image, too; lines are out_width pixels apart */
    ptrdiff_t y_pixel;
    const float *residual; /* or NULL; may be y */
    ptrdiff_t residual_pixel;
} dp_rows_depthwise;

/*
 * Winograd's convolutions of 3 x 3 windows a step of 1 apart: m x m pixels of the output from (m + 2) x (m + 2) of the
 * input, by as many products (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015); m is 2 or 4.
 * One tile of the output, some of its columns.
 */
typedef struct dp_rows_tile {
    const float *sums; /* of product k at k * step */
    size_t step, columns;
    const float *bias; /* or NULL */
    float *y;
    ptrdiff_t y_line, y_pixel;
    size_t lines, pixels; /* of the tile that are in the image, up to m */
    const float *residual;
    ptrdiff_t residual_line, residual_pixel;
} dp_rows_tile;

/* The points at which m's polynomials are evaluated, as a matrix of (m + 2) x 3 that turns weights: G w G^T. */
const double *dp_rows_winograd_weights(int m);

typedef struct dp_rows_table {
    size_t tile; /* rows of a tile */
    /* sums: room for count * columns rounded up to 16 floats (dp_rows_room), 64-byte aligned */
    void (*run)(const dp_rows_weights *weights, const dp_rows_block *block, const dp_rows_finish *finish, float *sums);
    /* sums: dp_rows_room(rows, least(columns, 256)) */
    void (*product)(const dp_rows_product *product, const dp_rows_finish *finish, float *sums);
    void (*depthwise)(const dp_rows_depthwise *part, const dp_rows_finish *finish);
    /* (m + 2)^2 pixels to the left rows of as many products; whole vectors are written, `step` floats apart */
    void (*winograd_in)(int m, const float *const *pixels, size_t channels, float *out, size_t step);
    void (*winograd_out)(int m, const dp_rows_tile *tile, const dp_rows_finish *finish);
    /* y[i] = activation(x[i]); y may be x */
    void (*activate)(const dp_rows_finish *finish, const float *x, float *y, size_t n);
} dp_rows_table;

/* Of a rung, lowered to what the processor has; and of the one in force. Never NULL. */
const dp_rows_table *dp_rows_for(dp_isa isa);
const dp_rows_table *dp_rows_current(void);

/* Rows of each tile but the last when there are `count` and a tile has at most `most`: about the same number in each.
 */
static inline size_t dp_rows_height(size_t most, size_t count) {
    const size_t tiles = (count + most - 1) / most;
    return tiles ? (count + tiles - 1) / tiles : most;
}
/* Pointers for `count` rows and `taps`, on any rung. */
static inline size_t dp_rows_pointers(size_t count, size_t taps) {
    return (count + DP_ROWS_TILE_MAX - 1) / DP_ROWS_TILE_MAX * DP_ROWS_TILE_MAX * taps + DP_ROWS_TILE_MAX * taps;
}
static inline size_t dp_rows_room(size_t count, size_t columns) {
    return count * ((columns + DP_ROWS_PANEL - 1) / DP_ROWS_PANEL * DP_ROWS_PANEL);
}
/* Floats of the panels of a k x columns matrix. */
static inline size_t dp_rows_panel_floats(size_t k, size_t columns) {
    return (columns + DP_ROWS_PANEL - 1) / DP_ROWS_PANEL * DP_ROWS_PANEL * k;
}
/* Writes the panels of a matrix whose element (p, c) is at weights[p * k_stride + c * column_stride]. */
void dp_rows_pack(const float *weights, size_t k, size_t columns, ptrdiff_t k_stride, ptrdiff_t column_stride,
                  float *out);

#endif
