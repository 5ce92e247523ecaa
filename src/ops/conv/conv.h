/*
 * conv.h - a convolution as it was planned (prepare in conv.c, execution in run.c), and the adding up of windows.
 *
 * A transposed convolution is the other way round: its input are the window positions, its output the image. `axis`
 * always describes the image and the positions, so that size and windows trade places with transposed.
 */
#ifndef DOPPEL_OPS_CONV_CONV_H
#define DOPPEL_OPS_CONV_CONV_H

#include "ops/conv/kernels.h"
#include "ops/tiles.h"

typedef enum dp_conv_way { DP_CONV_PRODUCT, DP_CONV_WINDOWS, DP_CONV_DEPTHWISE, DP_CONV_TRANSPOSED } dp_conv_way;

typedef struct dp_conv {
    dp_conv_way way;
    dp_axis axis[DP_SPACE];
    int64_t groups, in_channels, out_channels; /* channels of one group */
    int64_t taps, windows;                     /* of the kernel; positions */
    dp_image x, y, w;                          /* w: batch and channels are the first and second dim of the weights */
    unsigned threads;

    /* The input: in place, or (copied) as floats in the workspace, phases of x apart (see dp_conv_windows). */
    bool x_copied;
    uint64_t x_at;
    int64_t position_stride, phase_stride; /* of a product; of windows */
    /* The weights as a matrix: element (first dim, second dim and tap) */
    bool w_copied;
    uint64_t w_at;
    int64_t w_row_stride, w_column_stride;
    int bias_slot, bias_element; /* slot -1: none */
    int64_t bias_stride;
    uint64_t bias_at;
    /* The output: a matrix of channels and positions in place, or (staged) as floats in the workspace. */
    bool y_staged;
    uint64_t y_at;
    int64_t y_position_stride;

    size_t tiles_m, tiles_n, scratch_bytes;
    /* Depthwise: rows of a tile, padded rows it keeps for one kz, and their length. */
    int64_t dw_rows, dw_slots, dw_row_floats;
    int64_t chunk; /* output channels a transposed one takes at a time */
    uint64_t columns_at;
} dp_conv;

/* The product of one image and group without its addresses, and of the first `outputs` output channels. */
dp_gemm_problem dp_conv_problem(const dp_conv *conv, int64_t outputs);

/* Arguments by role; those a function does not have are of kind DP_ARG_ABSENT, and groups then means one per channel.
 */
typedef struct dp_conv_arguments {
    const dp_arg *x, *w, *bias, *stride, *padding, *dilation, *transposed, *output_padding, *groups, *math, *y;
    int space;
} dp_conv_arguments;

dp_status dp_conv_check_types(const dp_operator_call *call, const dp_conv_arguments *arguments);
/* The images of x, w and y, and the number of dims of space that w has. */
dp_status dp_conv_images(const dp_conv_arguments *arguments, dp_conv *conv, int *out_space);
/* A tensor of 3 dims as an image of width only; its dims in any order. */
dp_status dp_conv_time_image(const dp_arg *arg, int batch, int channel, int time, dp_image *out);
/* Axes, channels and bias, from the arguments and the images; checks that all fit. */
dp_status dp_conv_take(const dp_conv_arguments *arguments, dp_conv *conv);
/* Chooses the way and takes workspace for it. */
dp_status dp_conv_place(dp_conv *conv, bool transposed, dp_workspace *workspace);
dp_status dp_conv_execute(dp_plan *plan, const dp_conv *conv);

/* Windows to be added up: tap t of position p is at data + (t * tap_stride + p * position_stride) elements. */
typedef struct dp_conv_columns {
    const char *data;
    int element;
    int64_t tap_stride, position_stride;
} dp_conv_columns;
/* Adds to row (z, y) of the image, axis[2].size floats; buffer has axis[2].windows floats. */
void dp_conv_add_windows(const dp_axis axis[DP_SPACE], const dp_conv_columns *columns, int64_t z, int64_t y, float *row,
                         float *buffer);

#endif
