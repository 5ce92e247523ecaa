/*
 * low.h - the products and depthwise convolutions of rows.h for images and weights of bfloat16 or half: products are
 * added up in float, and what leaves is rounded once, to nearest even.
 *
 * Weights lie in panels of 16 columns with pairs along k side by side, the same for every processor: panel p holds
 * element (k, p * 16 + c) at k / 2 * 32 + 2 * c + k % 2, where k = t * pitch + i for channel i of tap t. Elements past
 * the last column, past a tap's channels and past the last k are 0. That is the right factor of AMX's and AVX-512's
 * products of bfloat16 as it stands; others widen it to float, some of it at a time.
 *
 * Bias is float. Weights of depthwise convolutions are float, too, in the panels of rows.h: they are few.
 * Pure functions; results differ between rungs in the last bits of the sums, so now and then in the last bit of an
 * element, and do not depend on how rows and columns are divided among calls.
 */
#ifndef DOPPEL_MATH_ROWS_LOW_H
#define DOPPEL_MATH_ROWS_LOW_H

#include "math/rows/rows.h"

#include <stdint.h>

enum { DP_LOW_TILE = 16 }; /* rows of a run of addresses, on every rung */

typedef enum dp_low_type { DP_LOW_BF16, DP_LOW_HALF, DP_LOW_TYPE_COUNT } dp_low_type;

typedef struct dp_low_weights {
    size_t taps, channels, pitch; /* k from tap to tap: channels, or channels + 1 */
    const uint16_t *panels;       /* of the first tap, at an even k */
    size_t panel_stride;          /* elements from panel to panel */
    const float *bias;            /* a float per column, or NULL */
} dp_low_weights;

/* Where a tap of 16 rows is. */
typedef struct dp_low_run {
    const uint16_t *at;          /* of row 0, when they are evenly spaced: */
    ptrdiff_t step;              /* elements from row to row */
    const uint16_t *const *rows; /* or of each; NULL: evenly */
} dp_low_run;
static inline const uint16_t *dp_low_row(const dp_low_run *run, size_t r) {
    return run->rows ? run->rows[r] : run->at + (ptrdiff_t)r * run->step;
}

/* Columns [first, first + columns) of some rows; first is a multiple of 16. */
typedef struct dp_low_block {
    const dp_low_run *runs; /* of tap t of rows r ... r + 15: runs[r / 16 * taps + t] */
    size_t count, first, columns;
    uint16_t *y; /* element (r, n) at y + r * y_stride + n, n counted from column 0 */
    ptrdiff_t y_stride;
    const uint16_t *residual; /* likewise, or NULL; may be y with the same stride */
    ptrdiff_t residual_stride;
} dp_low_block;

/* Lines of a depthwise convolution: dp_rows_depthwise with images of 16 bits. */
typedef struct dp_low_depthwise {
    const uint16_t *x;
    ptrdiff_t x_line, x_pixel;
    ptrdiff_t in[2], out_width;
    ptrdiff_t kernel[2], stride[2], pad[2], dilation[2];
    const float *panels, *bias;
    ptrdiff_t line, lines;
    size_t first, columns;
    uint16_t *y;
    ptrdiff_t y_pixel;
    const uint16_t *residual;
    ptrdiff_t residual_pixel;
} dp_low_depthwise;

typedef struct dp_low_table {
    /* room: dp_low_room bytes, 64-byte aligned */
    void (*run)(const dp_low_weights *weights, const dp_low_block *block, const dp_rows_finish *finish, void *room);
    /* room: dp_low_depthwise_room bytes, 64-byte aligned */
    void (*depthwise)(const dp_low_depthwise *part, const dp_rows_finish *finish, void *room);
} dp_low_table;

/* Of a rung with features (DP_CPU_*), lowered to what the processor has; and of what is in force. Never NULL. */
const dp_low_table *dp_low_for(dp_isa isa, unsigned features, dp_low_type type);
const dp_low_table *dp_low_current(dp_low_type type);

/* For blocks of up to so many rows and columns, on any rung. */
size_t dp_low_room(size_t count, size_t columns);
/* For one line of the output, and as many more as fit some 256 KB: of any part with no more channels and lines. */
size_t dp_low_depthwise_room(const dp_low_depthwise *part);

/* Elements of the panels of a k x columns matrix. */
static inline size_t dp_low_panel_elements(size_t k, size_t columns) {
    return (columns + DP_ROWS_PANEL - 1) / DP_ROWS_PANEL * DP_ROWS_PANEL * ((k + 1) / 2 * 2);
}
/* Where element (k, column) of the panels of a matrix of `depth` is. */
static inline size_t dp_low_panel_at(size_t k, size_t column, size_t depth) {
    const size_t even = (depth + 1) / 2 * 2;
    return column / DP_ROWS_PANEL * DP_ROWS_PANEL * even + k / 2 * (2 * DP_ROWS_PANEL) + column % DP_ROWS_PANEL * 2 +
           k % 2;
}
/* Writes the panels of a matrix whose element (p, c) is at weights[p * k_stride + c * column_stride]. */
void dp_low_pack(const uint16_t *weights, size_t k, size_t columns, ptrdiff_t k_stride, ptrdiff_t column_stride,
                 uint16_t *out);

#endif
