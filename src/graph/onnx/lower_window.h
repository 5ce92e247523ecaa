/*
 * lower_window.h - windows of convolutions and pooling, as ONNX nodes give them.
 */
#ifndef DOPPEL_GRAPH_ONNX_LOWER_WINDOW_H
#define DOPPEL_GRAPH_ONNX_LOWER_WINDOW_H

#include "graph/onnx/lower.h"

enum { DP_LOW_SPACE = 3 };

/* Kernel, strides, dilations and pads (beginnings, ends) of `n` dims of space. */
typedef struct dp_window {
    int n;
    int64_t kernel[DP_LOW_SPACE], stride[DP_LOW_SPACE], dilation[DP_LOW_SPACE], begin[DP_LOW_SPACE], end[DP_LOW_SPACE];
} dp_window;

/* From the node's attributes, for the input x; auto_pad becomes pads. */
dp_status dp_low_window_read(dp_lowering *l, const dp_tensor *x, const int64_t *kernel, dp_window *w);
/* Sets attribute `name` to the numbers of each dim of space, with `first` for batch and channels in front. */
void dp_low_window_dims(dp_lowering *l, dp_node *node, const char *name, const int64_t *numbers, int n, int64_t first);
/* Sets pads: before and after each dim. */
void dp_low_window_pads(dp_lowering *l, dp_node *node, const dp_window *w);

/* A window over one dim becomes one over two, the first of size 1: for the window, its input and its result. */
void dp_low_window_widen(dp_window *w);
dp_value *dp_low_window_with_height(dp_lowering *l, dp_value *x);
dp_status dp_low_window_without_height(dp_lowering *l, dp_value *y);

#endif
