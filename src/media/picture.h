/*
 * picture.h - a picture in memory: format, size, strides; its planes.
 *
 * Sizes are in pixels, width_stride is in bytes from one row to the next of the first plane, height_stride in rows from
 * the beginning of the first plane to that of the second. Values of formats are the vendor's acldvppPixelFormat, so
 * that the API hands its argument through.
 */
#ifndef DOPPEL_MEDIA_PICTURE_H
#define DOPPEL_MEDIA_PICTURE_H

#include "base/status.h"

enum {
    DP_PIXEL_GRAY = 0,
    DP_PIXEL_NV12 = 1,
    DP_PIXEL_NV21 = 2,
    DP_PIXEL_YUV422SP = 3,
    DP_PIXEL_YVU422SP = 4,
    DP_PIXEL_YUV444SP = 5,
    DP_PIXEL_YVU444SP = 6,
    DP_PIXEL_YUYV = 7,
    DP_PIXEL_UYVY = 8,
    DP_PIXEL_YVYU = 9,
    DP_PIXEL_VYUY = 10,
    DP_PIXEL_YUV444 = 11,
    DP_PIXEL_RGB = 12,
    DP_PIXEL_BGR = 13,
    DP_PIXEL_ARGB = 14,
    DP_PIXEL_ABGR = 15,
    DP_PIXEL_RGBA = 16,
    DP_PIXEL_BGRA = 17,
    DP_PIXEL_YUV440SP = 61,
    DP_PIXEL_YVU440SP = 62,
    DP_PIXEL_UNKNOWN = 65
};

enum { DP_PICTURE_SIDE = 16384 }; /* most pixels across and down */

typedef enum dp_layout {
    DP_LAYOUT_GRAY,
    DP_LAYOUT_SEMIPLANAR, /* a plane of Y, a plane of pairs of U and V */
    DP_LAYOUT_PAIRS,      /* two pixels in four bytes: YUYV and its like */
    DP_LAYOUT_PACKED      /* three or four bytes a pixel */
} dp_layout;

typedef struct dp_format {
    const char *name;
    dp_layout layout;
    bool is_rgb;
    uint8_t bytes;            /* of a pixel in the first plane; of two of DP_LAYOUT_PAIRS */
    uint8_t x_shift, y_shift; /* of the chroma */
    /* Where a channel is: R G B A, or Y U V, by byte of the pixel; of SEMIPLANAR U and V in the pair; of PAIRS Y U V.
     */
    uint8_t place[4];
} dp_format;

/* NULL when pictures of this format are not supported. */
const dp_format *dp_format_of(int pixel_format);

typedef struct dp_picture {
    int format;
    uint32_t width, height, width_stride, height_stride;
    uint8_t *data;
    size_t size_bytes; /* of the memory at data */
} dp_picture;

/*
 * Gives strides of 0 their default (rows on 16 bytes, at least 32; an even number of rows where the chroma is halved
 * down) and checks: a supported format, 1 to DP_PICTURE_SIDE pixels each way, strides that are large enough and aligned
 * (width_stride to 16), and size_bytes enough for it all. `argument` begins the sentences.
 */
dp_status dp_picture_complete(dp_picture *picture, const char *argument);
/* Bytes that a picture of these strides takes; all of them must be set. */
size_t dp_picture_bytes(const dp_picture *picture);
/* A picture of this format and size with memory of its own, rows on 32 bytes: dp_picture_free. */
dp_status dp_picture_new(int format, uint32_t width, uint32_t height, dp_picture *out_picture);
void dp_picture_free(dp_picture *picture); /* a zeroed one is allowed */

/* One plane, or an area of it: elements of `bytes` bytes, rows `pitch` bytes apart. */
typedef struct dp_plane {
    uint8_t *data;
    size_t pitch;
    uint32_t columns, rows;
    unsigned bytes;
} dp_plane;

/* An area in pixels. */
typedef struct dp_area {
    uint32_t left, top, width, height;
} dp_area;

static inline dp_area dp_picture_area(const dp_picture *picture) {
    return (dp_area){0, 0, picture->width, picture->height};
}
/* Refuses an area that is empty or not within the picture; `argument` begins the sentence. */
dp_status dp_area_check(const dp_area *area, const dp_picture *picture, const char *argument);
/* The part of plane 0 or 1 that an area covers; half a pair of chroma belongs to it whole. */
dp_plane dp_picture_plane(const dp_picture *picture, int plane, const dp_area *area);
static inline int dp_format_planes(const dp_format *format) {
    return format->layout == DP_LAYOUT_SEMIPLANAR ? 2 : 1;
}

#endif
