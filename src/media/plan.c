/* Where decoded pictures go: formats, strides, sizes. */
#include "media/file.h"

dp_status dp_file_check(const void *bytes, size_t size_bytes, const char *argument) {
    if (!bytes || !size_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "%s: there is no file: the address is %p, the size %zu bytes", argument, bytes,
                       size_bytes);
    return DP_OK;
}

static uint32_t on(uint32_t value, uint32_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

/* Strides that were left open: the widest that fit. */
static void choose_strides(dp_picture *p) {
    static const uint32_t alignments[][2] = {{128, 16}, {64, 16}, {16, 2}};
    const dp_format *format = dp_format_of(p->format);
    uint32_t row = format->bytes * p->width;
    bool across = !p->width_stride, down = !p->height_stride;
    for (int i = 0; i < 3; i++) {
        if (across)
            p->width_stride = on(row, alignments[i][0]);
        if (down)
            p->height_stride = on(p->height, alignments[i][1]);
        if (!p->size_bytes || p->size_bytes >= dp_picture_bytes(p))
            return;
    }
}

/* width and height that the caller gave must be the file's. */
static dp_status check_size(const dp_file_info *info, uint32_t width, uint32_t height, dp_picture *p) {
    bool fits = (!p->width || p->width == info->width || p->width == width) &&
                (!p->height || p->height == info->height || p->height == height);
    if (!fits)
        return dp_fail(DP_ERR_ARGUMENT,
                       "outputDesc: it says %u x %u pixels, but the picture in the file has %u x %u: leave them 0, or "
                       "set them to that",
                       p->width, p->height, info->width, info->height);
    p->width = width;
    p->height = height;
    choose_strides(p);
    return DP_OK;
}

static int own_format(dp_jpeg_sampling sampling) {
    switch (sampling) {
    case DP_JPEG_GRAY:
        return DP_PIXEL_GRAY;
    case DP_JPEG_444:
        return DP_PIXEL_YUV444SP;
    case DP_JPEG_440:
        return DP_PIXEL_YUV440SP;
    case DP_JPEG_422:
    case DP_JPEG_411:
        return DP_PIXEL_YUV422SP;
    default:
        return DP_PIXEL_NV12;
    }
}

/* One pixel is too few to be rounded down. */
static uint32_t even(uint32_t n, bool shared, dp_jpeg_odd odd) {
    if (!shared || !(n & 1))
        return n;
    return odd == DP_JPEG_ODD_UP || n == 1 ? n + 1 : n - 1;
}

dp_status dp_jpeg_plan(const dp_file_info *info, dp_jpeg_odd odd, dp_picture *picture) {
    int wanted = picture->format;
    if (wanted == DP_PIXEL_UNKNOWN)
        picture->format = own_format(info->sampling);
    const dp_format *format = dp_format_of(picture->format);
    if (!format || (format->layout != DP_LAYOUT_SEMIPLANAR && format->layout != DP_LAYOUT_GRAY))
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "outputDesc: its pixel format is %d (%s), but a JPEG is decoded to YUV 400 or semi-planar 420, "
                       "422, 440, 444, or to PIXEL_FORMAT_UNKNOWN, which is the file's own: convert it afterwards",
                       wanted, format ? format->name : "unknown");
    return check_size(info, even(info->width, format->x_shift, odd), even(info->height, format->y_shift, odd), picture);
}

dp_status dp_png_plan(const dp_file_info *info, dp_picture *picture) {
    int wanted = picture->format;
    if (wanted == DP_PIXEL_UNKNOWN)
        picture->format = info->has_alpha ? DP_PIXEL_RGBA : DP_PIXEL_RGB;
    const dp_format *format = dp_format_of(picture->format);
    if (!format || !format->is_rgb)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "outputDesc: its pixel format is %d (%s), but a PNG is decoded to RGB or BGR with or without "
                       "alpha, or to PIXEL_FORMAT_UNKNOWN, which is the file's own: convert it afterwards",
                       wanted, format ? format->name : "unknown");
    return check_size(info, info->width, info->height, picture);
}

/* The sampling that keeps a picture's chroma; what a picture of another layout is converted to first. */
int dp_jpeg_format(int format) {
    const dp_format *f = dp_format_of(format);
    if (f->layout == DP_LAYOUT_PAIRS)
        return DP_PIXEL_YUV422SP;
    if (f->layout == DP_LAYOUT_PACKED)
        return f->is_rgb ? DP_PIXEL_NV12 : DP_PIXEL_YUV444SP;
    return format;
}

/* libjpeg-turbo's own bound: two bytes for a sample of the padded planes, and the headers. */
size_t dp_jpeg_room(const dp_picture *picture) {
    const dp_format *format = dp_format_of(dp_jpeg_format(picture->format));
    size_t width = ((size_t)picture->width + 15) & ~(size_t)15, height = ((size_t)picture->height + 15) & ~(size_t)15;
    size_t chroma = format->layout == DP_LAYOUT_GRAY ? 0 : 4 >> (format->x_shift + format->y_shift);
    return width * height * (2 + chroma) + 2048;
}
