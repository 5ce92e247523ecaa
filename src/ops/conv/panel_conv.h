/*
 * panel_conv.h - convolutions and products with constant weights in panels, as they were planned (prepare in
 * panel_conv.c, execution in panel_run.c and panel_low.c). Images have their channels last.
 */
#ifndef DOPPEL_OPS_CONV_PANEL_CONV_H
#define DOPPEL_OPS_CONV_PANEL_CONV_H

#include "math/rows/low.h"
#include "ops/conv/panels.h"
#include "ops/tiles.h"

typedef enum dp_panel_way {
    DP_PANEL_ROWS,       /* a list of addresses per output pixel */
    DP_PANEL_BAND,       /* few channels: lines are copied with their padding, and a line of the window is one tap */
    DP_PANEL_DEPTHWISE,  /* sums of pixels */
    DP_PANEL_TRANSPOSED, /* by phases: pixels whose windows have the same taps */
    DP_PANEL_WINOGRAD,   /* tiles of 2 x 2 or 4 x 4 pixels (panel_winograd.c) */
    DP_PANEL_PRODUCT     /* rows that lie evenly spaced (panel_product.c) */
} dp_panel_way;

typedef struct dp_panel_conv {
    dp_panel_way way;
    int element;  /* of x, residual and y */
    int64_t size; /* bytes of one of theirs */
    dp_conv_filter filter;
    dp_rows_finish finish;
    int64_t channels, columns;                        /* of one group */
    int64_t batch, in[2], out[2], pad[2], pad_end[2]; /* y, x */
    int64_t x_stride[3];                              /* batch, y, x: elements */
    int64_t y_pixel, residual_pixel;
    int x_slot, panels_slot, bias_slot, residual_slot, y_slot; /* -1: none */
    int64_t group_panels;                                      /* elements of the panels of a group */
    /* Pieces of work: rows (or lines) and columns of one, and how many there are. */
    int64_t unit, units, column_unit, column_units;
    /* Parts of the scratch, in bytes */
    size_t runs_at, zeros_at, band_at, sums_at, scratch_bytes;
    int64_t band_pitch; /* elements from line to line of the band */
    int64_t tiles[2];   /* Winograd's, of an image */
    size_t left_at, products_at;
} dp_panel_conv;

dp_status dp_panel_run(dp_plan *plan);
/* A piece of work while it runs. */
typedef struct dp_panel_job {
    const dp_panel_conv *conv;
    const dp_rows_table *table; /* of float */
    const dp_low_table *low;    /* of half and bfloat16; one of the two is there */
    const void *x, *panels, *residual;
    const float *bias;
    void *y;
} dp_panel_job;

/* The address of element `at`. */
static inline const char *dp_panel_from(const dp_panel_conv *c, const void *base, int64_t at) {
    return (const char *)base + at * c->size;
}

/* A piece's rows or lines, its group and the columns in it. */
typedef struct dp_panel_piece {
    int64_t unit, group, first, columns;
} dp_panel_piece;
dp_panel_piece dp_panel_piece_of(const dp_panel_conv *conv, size_t tile);

/* Copies line y of an image with its padding: what the windows of a line of the output read. */
void dp_panel_copy_line(const dp_panel_conv *conv, const void *image, int64_t y, void *out);
/* The taps k of a dim whose k * dilation % stride is `phase`, and their place among the taps in order of phase. */
int64_t dp_panel_phase_taps(const dp_conv_filter *filter, int d, int64_t phase, int64_t *out_taps, int64_t *out_before);

/* Pieces of half and bfloat16 (panel_low.c). */
void dp_panel_low_rows(void *job, size_t tile, void *scratch);
void dp_panel_low_band(void *job, size_t tile, void *scratch);
void dp_panel_low_transposed(void *job, size_t tile, void *scratch);

/* Of Winograd's way: its division, and piece number `tile`. */
void dp_panel_divide_winograd(dp_panel_conv *conv, int64_t wanted);
void dp_panel_winograd_piece(void *job, size_t tile, void *scratch);

/* Likewise of the product's way, and whether a convolution that goes by rows can take it. */
bool dp_panel_is_product(const dp_panel_conv *conv);
void dp_panel_divide_product(dp_panel_conv *conv, int64_t wanted);
void dp_panel_product_piece(void *job, size_t tile, void *scratch);

static inline int64_t dp_panel_up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}
static inline int64_t dp_panel_at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline size_t dp_panel_padded(int64_t bytes) {
    return ((size_t)bytes + 63) & ~(size_t)63;
}

/* Divides the work. The sizes are those of tensors that were checked. */
void dp_panel_divide(dp_panel_conv *conv, unsigned threads);

#endif
