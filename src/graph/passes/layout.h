/*
 * layout.h - single nodes in the forms for images with channels last (layout.c), and products with panels (panels.c).
 */
#ifndef DOPPEL_GRAPH_PASSES_LAYOUT_H
#define DOPPEL_GRAPH_PASSES_LAYOUT_H

#include "graph/graph.h"

/* Whether a Conv2D or Conv2DTransposeD has constant float weights that can go to panels. */
bool dp_panel_fits(const dp_node *node);
/* The same convolution with panels, in front of it; inputs[0] and the output are still to be set. */
dp_status dp_panel_make(dp_node *node, dp_node **out_made);

/*
 * A transposed convolution whose windows tile the image (kernel = stride, no padding) is a product that gives kernel y
 * * kernel x * out channels per pixel, and the tiles put in their places. All nodes up to the one that gives `to`, the
 * image with channels last, in front of `node`; the product's inputs[0] is `from`.
 */
bool dp_panel_tiles(const dp_node *node);
dp_status dp_panel_make_tiles(dp_node *node, dp_value *from, dp_value *to);

/* Pooling or resizing in the form for channels last, in front of `node`; inputs[0] and the output are still to be set.
 * *out_made stays NULL when there is no such form. */
dp_status dp_last_make(dp_node *node, dp_node **out_made);

#endif
