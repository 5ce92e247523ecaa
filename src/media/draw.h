/*
 * draw.h - from one picture into another: cut, resized, pasted, in other colours; borders.
 *
 * All functions use the pool and may be called from tasks. Pictures must be complete (dp_picture_complete) and not
 * overlap; areas must lie within them.
 */
#ifndef DOPPEL_MEDIA_DRAW_H
#define DOPPEL_MEDIA_DRAW_H

#include "media/picture.h"
#include "media/rows.h"

/* Values are the vendor's. The pixel centres of both pictures are laid over one another, as OpenCV does. */
typedef enum dp_interpolation {
    DP_INTERPOLATION_DEFAULT = 0, /* bilinear */
    DP_INTERPOLATION_BILINEAR = 1,
    DP_INTERPOLATION_NEAREST = 2,
    DP_INTERPOLATION_BICUBIC = 3, /* a = -0.75 */
    DP_INTERPOLATION_AREA = 4,    /* the mean of what a pixel covers; bilinear where it covers less than one */
    DP_INTERPOLATION_COUNT
} dp_interpolation;

/* Values are the vendor's: luma weights, and whether Y has 0..255 (wide) or 16..235 (narrow). */
typedef enum dp_colour_space {
    DP_COLOUR_BT601_WIDE,
    DP_COLOUR_BT601_NARROW,
    DP_COLOUR_BT709_WIDE,
    DP_COLOUR_BT709_NARROW,
    DP_COLOUR_BT2020_WIDE,
    DP_COLOUR_BT2020_NARROW,
    DP_COLOUR_SPACE_COUNT
} dp_colour_space;

typedef struct dp_draw_options {
    int interpolation, colour_space;
} dp_draw_options;

/* `from` of src fills `to` of dst: resized where the sizes differ, converted where the formats do. */
dp_status dp_picture_draw(const dp_picture *src, const dp_area *from, const dp_picture *dst, const dp_area *to,
                          const dp_draw_options *options);

/* The plane's elements, resampled to the size of dst; both have the same bytes per element. */
dp_status dp_plane_resample(const dp_plane *src, const dp_plane *dst, int interpolation);

/* Areas of equal size, any formats. */
dp_status dp_picture_convert(const dp_picture *src, const dp_area *from, const dp_picture *dst, const dp_area *to,
                             int colour_space);
/* Y U V to R G B and back. */
dp_colour_matrix dp_colour_to_rgb(int colour_space);
dp_colour_matrix dp_colour_to_yuv(int colour_space);

/* Values are the vendor's. */
typedef enum dp_border_kind {
    DP_BORDER_CONSTANT,    /* value[0..3] for R G B A or Y U V */
    DP_BORDER_REPLICATE,   /* aaa|abcd|ddd */
    DP_BORDER_REFLECT,     /* cba|abcd|dcb */
    DP_BORDER_REFLECT_101, /* dcb|abcd|cba */
    DP_BORDER_COUNT
} dp_border_kind;

typedef struct dp_border {
    int kind;
    uint8_t value[4];
} dp_border;

/* Fills everything of the picture outside `inner` from what is inside. */
void dp_picture_border(const dp_picture *picture, const dp_area *inner, const dp_border *border);

#endif
