/*
 * panels.h - weights of convolutions in the form that the panel operators (panel_conv.c) read: made once, by a compiler
 * of models, the same on every processor. Pure functions.
 */
#ifndef DOPPEL_OPS_CONV_PANELS_H
#define DOPPEL_OPS_CONV_PANELS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum dp_conv_form {
    /* Panels of math/rows/rows.h, or of low.h for half and bfloat16, group after group; of one channel per group one
     * panel set of all, which is float in any case. */
    DP_CONV_FORM_DIRECT,
    /*
     * For float: 3 x 3 windows of one group a step of 1 apart, by Winograd: 16 (36) matrices of panels instead of 9
     * taps, for 2.25 (4) times fewer multiplications. Rounding errors of 4 x 4 tiles are larger: relative to the sum of
     * the magnitudes of a tile's terms the worst that tests meet is 2^-20, where it is 2^-22 of the direct form and of
     * 2 x 2 tiles.
     */
    DP_CONV_FORM_WINOGRAD2,
    DP_CONV_FORM_WINOGRAD4,
    DP_CONV_FORM_COUNT
} dp_conv_form;
/* "direct", "winograd2", "winograd4": the value of the attribute `form`. */
const char *dp_conv_form_name(dp_conv_form form);

/* What is known of a convolution from its weights and attributes. */
typedef struct dp_conv_filter {
    int64_t in_channels, out_channels, groups; /* channels of all groups */
    int64_t kernel[2], stride[2], dilation[2]; /* y, x */
    bool transposed;
    dp_conv_form form;
    int low; /* DP_F16 or DP_BF16: the type of images and weights; 0: float */
} dp_conv_filter;

/* Pixels of a Winograd form's tile along a dim: 2 or 4; 0 for other forms. */
int dp_conv_winograd(dp_conv_form form);

/* One channel in and one out per group. */
bool dp_conv_is_depthwise(const dp_conv_filter *filter);

/* The type of the panels' elements: that of images, but float of depthwise convolutions. */
int dp_conv_panels_element(const dp_conv_filter *filter);

/* Elements of the panels. DP_ERR_ARGUMENT with a sentence: numbers that fit no convolution, or no memory. */
dp_status dp_conv_panels_count(const dp_conv_filter *filter, int64_t *out_count);

/* Of half and bfloat16: k from tap to tap of `channels` (math/rows/low.h). Phases of transposed convolutions begin at
 * an even k. */
static inline int64_t dp_conv_low_pitch(const dp_conv_filter *filter, int64_t channels) {
    return filter->transposed ? channels + channels % 2 : channels;
}

/*
 * weights: [out_channels][in_channels / groups][kernel y][kernel x], or of a transposed convolution
 * [in_channels][out_channels / groups][kernel y][kernel x], of the filter's type. out: as many elements as
 * dp_conv_panels_count says, of a filter that it accepted. DP_ERR_OUT_OF_MEMORY.
 */
dp_status dp_conv_panels_pack(const dp_conv_filter *filter, const void *weights, void *out);

/* The fastest form for an image of out_height x out_width positions. */
dp_conv_form dp_conv_form_choose(const dp_conv_filter *filter, int64_t out_height, int64_t out_width);

/* The taps of a transposed convolution in the order of its panels: by phase of y, phase of x, y, x. Phase p of a dim
 * has the taps k with k * dilation % stride == p. Returns the taps of one dim in that order. */
void dp_conv_phase_order(int64_t kernel, int64_t stride, int64_t dilation, int64_t *out_taps);

#endif
