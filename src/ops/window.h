/*
 * window.h - what convolutions, pooling and resizing share: images of any layout as views of three dims of space, and
 * the axes along which windows move.
 */
#ifndef DOPPEL_OPS_WINDOW_H
#define DOPPEL_OPS_WINDOW_H

#include "ops/op.h"

enum { DP_SPACE = 3, DP_WINDOW_LIMIT = 1 << 30 /* for kernels, strides, dilations, padding */ };

/* Axes are z, y, x; those an operator does not have come first and have size 1 and stride 0. Strides in elements. */
typedef struct dp_image {
    int slot, element;
    int64_t batch, channels, size[DP_SPACE];
    int64_t batch_stride, channel_stride, stride[DP_SPACE];
} dp_image;

/*
 * A tensor of `space` dims of space (1 to 3) with batch and channels in the order of its format: NHWC and NDHWC have
 * the channels last, all others second. A tensor of space + 1 dims has no batch where `unbatched` allows it.
 */
dp_status dp_image_of(const dp_arg *arg, int space, bool unbatched, dp_image *out_image);
/* Refuses an image whose sizes are not these; `what` names where they come from. */
dp_status dp_image_expect(const dp_arg *arg, const dp_image *image, const dp_image *sizes, const char *what);

/* Window tap k at position o lies at o * stride + k * dilation - pad of the image's size. */
typedef struct dp_axis {
    int64_t size, windows; /* of the image; positions of the window */
    int64_t kernel, stride, pad, pad_end, dilation;
} dp_axis;

/* Numbers of positions: those that fit, with ceil also those that begin inside the image or the padding before it. */
int64_t dp_axis_windows(const dp_axis *axis, bool ceil);

/*
 * One number per dim of space, or one for all, from low up to DP_WINDOW_LIMIT; an absent or empty list gives
 * `otherwise` (refused when that is < low). The dims an operator does not have get `missing`.
 */
dp_status dp_window_list(const dp_arg *arg, int space, int64_t low, int64_t otherwise, int64_t missing,
                         int64_t out[DP_SPACE]);
/* Padding: as above from 0, or a pair (before, after) per dim. */
dp_status dp_window_padding(const dp_arg *arg, int space, dp_axis axes[DP_SPACE]);

/* First and past-the-last position o with 0 <= o * stride + offset < size, within 0 .. count. */
static inline void dp_axis_valid(int64_t offset, int64_t stride, int64_t size, int64_t count, int64_t *out_first,
                                 int64_t *out_last) {
    int64_t first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t last = size > offset ? (size - offset + stride - 1) / stride : 0;
    last = last < count ? last : count;
    *out_first = first < last ? first : last;
    *out_last = last;
}

/* count elements at `data`, stride apart, as floats: in place when they lie so, else in `buffer`. */
const float *dp_image_load(int element, const void *data, int64_t stride, int64_t count, float *buffer);
void dp_image_store(int element, void *data, int64_t stride, int64_t count, const float *from);

static inline char *dp_image_at(dp_plan *plan, const dp_image *image, int64_t n, int64_t c, int64_t z, int64_t y) {
    int64_t at = n * image->batch_stride + c * image->channel_stride + z * image->stride[0] + y * image->stride[1];
    return (char *)dp_plan_data(plan, image->slot) + at * (int64_t)dp_element_bytes(image->element);
}

#endif
