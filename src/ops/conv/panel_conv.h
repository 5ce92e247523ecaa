/*
 * panel_conv.h - convolutions and products with constant weights in panels, as they were planned (prepare in
 * panel_conv.c, execution in panel_run.c). Images have their channels last.
 */
#ifndef DOPPEL_OPS_CONV_PANEL_CONV_H
#define DOPPEL_OPS_CONV_PANEL_CONV_H

#include "math/rows/rows.h"
#include "ops/conv/panels.h"
#include "ops/tiles.h"

typedef enum dp_panel_way {
    DP_PANEL_ROWS,      /* a list of addresses per output pixel */
    DP_PANEL_BAND,      /* few channels: lines are copied with their padding, and a line of the window is one tap */
    DP_PANEL_DEPTHWISE, /* sums of pixels */
    DP_PANEL_TRANSPOSED /* by phases: pixels whose windows have the same taps */
} dp_panel_way;

typedef struct dp_panel_conv {
    dp_panel_way way;
    dp_conv_filter filter;
    dp_rows_finish finish;
    int64_t channels, columns;                        /* of one group */
    int64_t batch, in[2], out[2], pad[2], pad_end[2]; /* y, x */
    int64_t x_stride[3];                              /* batch, y, x: floats */
    int64_t y_pixel, residual_pixel;
    int x_slot, panels_slot, bias_slot, residual_slot, y_slot; /* -1: none */
    int64_t group_floats;
    /* Pieces of work: rows (or lines) and columns of one, and how many there are. */
    int64_t unit, units, column_unit, column_units;
    /* Parts of the scratch, in bytes */
    size_t pointers_at, zeros_at, band_at, sums_at, scratch_bytes;
    int64_t band_pitch; /* floats from line to line of the band */
} dp_panel_conv;

dp_status dp_panel_run(dp_plan *plan);
/* Divides the work. The sizes are those of tensors that were checked. */
void dp_panel_divide(dp_panel_conv *conv, unsigned threads);

#endif
