/*
 * grid.h - places of a grid in an image, for reading it there and for the gradients of that.
 */
#ifndef DOPPEL_OPS_RESIZE_GRID_H
#define DOPPEL_OPS_RESIZE_GRID_H

#include "ops/window.h"

enum { DP_GRID_LINEAR, DP_GRID_NEAREST, DP_GRID_CUBIC };
enum { DP_GRID_ZEROS, DP_GRID_BORDER, DP_GRID_REFLECTION };
enum { DP_GRID_TAPS = 16 };

typedef struct dp_grid {
    dp_image x, y;
    int grid_slot, grid_element, space, interpolation, padding;
    bool align;
    int64_t grid_stride[2 + DP_SPACE]; /* batch, z, y, x, coordinate */
    size_t scratch_bytes;
} dp_grid;

/* The grid for results of the sizes of s->y. */
dp_status dp_grid_take(const dp_arg *arg, dp_grid *s);
/* Three arguments: interpolation, padding, align. */
dp_status dp_grid_options(const dp_arg *in, dp_grid *s);

/* The place in elements of a coordinate in -1 .. 1. */
float dp_grid_place(const dp_grid *s, float coordinate, int64_t size);
/* x as often reflected as brings it between the image's ends; whether it runs the other way there. False when the image has no span. */
bool dp_grid_fold(const dp_grid *s, int64_t size, float *x, bool *out_turned);
/* What lies outside is brought to where it is read; places too far to count (and NaN) lie nowhere. */
float dp_grid_pad(const dp_grid *s, float x, int64_t size);
/* Up to four elements and weights along one axis; returns how many. */
int dp_grid_along(const dp_grid *s, float place, int64_t size, int64_t *at, float *weight);

#endif
