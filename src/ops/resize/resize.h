/*
 * resize.h - resampling as it was planned (prepare in resize.c, execution in run.c): along each axis, every element of
 * the result is a sum of `taps` neighbours of the input with weights.
 */
#ifndef DOPPEL_OPS_RESIZE_RESIZE_H
#define DOPPEL_OPS_RESIZE_RESIZE_H

#include "ops/tiles.h"
#include "ops/window.h"

/* out[o] = weights[o] * row[first[o]] + weights[n + o] * row[first[o] + 1] + ...; a weight of 0 leaves out its element.
 * With a single tap weights may be NULL: 1. */
typedef void (*dp_resize_fn)(float *out, const float *row, const int32_t *first, const float *weights, size_t taps,
                             size_t n);
void dp_resize_along_generic(float *out, const float *row, const int32_t *first, const float *weights, size_t taps,
                             size_t n);
void dp_resize_along_avx2(float *out, const float *row, const int32_t *first, const float *weights, size_t taps,
                          size_t n);
void dp_resize_along_avx512(float *out, const float *row, const int32_t *first, const float *weights, size_t taps,
                            size_t n);

typedef struct dp_resize_axis {
    int64_t in, out, taps;
    bool copies;                 /* one tap of weight 1 */
    size_t first_at, weights_at; /* in the numbers of the plan */
} dp_resize_axis;

typedef struct dp_resize {
    dp_image x, y;
    dp_resize_axis axis[DP_SPACE];
    size_t scratch_bytes;
    union {
        int32_t index;
        float weight;
    } numbers[];
} dp_resize;

static inline const int32_t *dp_resize_first(const dp_resize *r, int axis) {
    return &r->numbers[r->axis[axis].first_at].index;
}
static inline const float *dp_resize_weights(const dp_resize *r, int axis) {
    return &r->numbers[r->axis[axis].weights_at].weight;
}

dp_status dp_resize_run(dp_plan *plan);

#endif
