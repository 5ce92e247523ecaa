#include "media/picture.h"

#include "base/memory.h"

static const dp_format formats[] = {
    [DP_PIXEL_GRAY] = {"YUV_400", DP_LAYOUT_GRAY, false, 1, 0, 0, {0}},
    [DP_PIXEL_NV12] = {"YUV_SEMIPLANAR_420", DP_LAYOUT_SEMIPLANAR, false, 1, 1, 1, {0, 0, 1}},
    [DP_PIXEL_NV21] = {"YVU_SEMIPLANAR_420", DP_LAYOUT_SEMIPLANAR, false, 1, 1, 1, {0, 1, 0}},
    [DP_PIXEL_YUV422SP] = {"YUV_SEMIPLANAR_422", DP_LAYOUT_SEMIPLANAR, false, 1, 1, 0, {0, 0, 1}},
    [DP_PIXEL_YVU422SP] = {"YVU_SEMIPLANAR_422", DP_LAYOUT_SEMIPLANAR, false, 1, 1, 0, {0, 1, 0}},
    [DP_PIXEL_YUV444SP] = {"YUV_SEMIPLANAR_444", DP_LAYOUT_SEMIPLANAR, false, 1, 0, 0, {0, 0, 1}},
    [DP_PIXEL_YVU444SP] = {"YVU_SEMIPLANAR_444", DP_LAYOUT_SEMIPLANAR, false, 1, 0, 0, {0, 1, 0}},
    [DP_PIXEL_YUYV] = {"YUYV_PACKED_422", DP_LAYOUT_PAIRS, false, 4, 1, 0, {0, 1, 3}},
    [DP_PIXEL_UYVY] = {"UYVY_PACKED_422", DP_LAYOUT_PAIRS, false, 4, 1, 0, {1, 0, 2}},
    [DP_PIXEL_YVYU] = {"YVYU_PACKED_422", DP_LAYOUT_PAIRS, false, 4, 1, 0, {0, 3, 1}},
    [DP_PIXEL_VYUY] = {"VYUY_PACKED_422", DP_LAYOUT_PAIRS, false, 4, 1, 0, {1, 2, 0}},
    [DP_PIXEL_YUV444] = {"YUV_PACKED_444", DP_LAYOUT_PACKED, false, 3, 0, 0, {0, 1, 2}},
    [DP_PIXEL_RGB] = {"RGB_888", DP_LAYOUT_PACKED, true, 3, 0, 0, {0, 1, 2}},
    [DP_PIXEL_BGR] = {"BGR_888", DP_LAYOUT_PACKED, true, 3, 0, 0, {2, 1, 0}},
    [DP_PIXEL_ARGB] = {"ARGB_8888", DP_LAYOUT_PACKED, true, 4, 0, 0, {1, 2, 3, 0}},
    [DP_PIXEL_ABGR] = {"ABGR_8888", DP_LAYOUT_PACKED, true, 4, 0, 0, {3, 2, 1, 0}},
    [DP_PIXEL_RGBA] = {"RGBA_8888", DP_LAYOUT_PACKED, true, 4, 0, 0, {0, 1, 2, 3}},
    [DP_PIXEL_BGRA] = {"BGRA_8888", DP_LAYOUT_PACKED, true, 4, 0, 0, {2, 1, 0, 3}},
    [DP_PIXEL_YUV440SP] = {"YUV_SEMIPLANAR_440", DP_LAYOUT_SEMIPLANAR, false, 1, 0, 1, {0, 0, 1}},
    [DP_PIXEL_YVU440SP] = {"YVU_SEMIPLANAR_440", DP_LAYOUT_SEMIPLANAR, false, 1, 0, 1, {0, 1, 0}},
};

const dp_format *dp_format_of(int pixel_format) {
    if (pixel_format < 0 || pixel_format >= (int)(sizeof formats / sizeof formats[0]) || !formats[pixel_format].name)
        return NULL;
    return &formats[pixel_format];
}

static uint32_t row_bytes(const dp_format *format, uint32_t width) {
    return format->layout == DP_LAYOUT_PAIRS ? (width + 1) / 2 * 4 : width * format->bytes;
}

/* Of the second plane; the chroma of a picture that is not halved across takes two bytes a pixel. */
static size_t chroma_pitch(const dp_format *format, uint32_t width_stride) {
    return (size_t)width_stride * (format->x_shift ? 1 : 2);
}

size_t dp_picture_bytes(const dp_picture *picture) {
    const dp_format *format = dp_format_of(picture->format);
    size_t bytes = (size_t)picture->width_stride * picture->height_stride;
    if (format->layout == DP_LAYOUT_SEMIPLANAR)
        bytes += chroma_pitch(format, picture->width_stride) *
                 ((picture->height_stride + format->y_shift) >> format->y_shift);
    return bytes;
}

dp_status dp_picture_complete(dp_picture *picture, const char *argument) {
    const dp_format *format = dp_format_of(picture->format);
    if (!format)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "%s: its pixel format is %d, which is not supported: YUV 400, 420, 422, 440, 444 semi-planar, "
                       "packed 422 and "
                       "444, RGB, BGR and those with alpha are (docs/pictures.md)",
                       argument, picture->format);
    if (!picture->width || !picture->height || picture->width > DP_PICTURE_SIDE || picture->height > DP_PICTURE_SIDE)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the picture is %u x %u pixels, but must have 1 to %d each way", argument,
                       picture->width, picture->height, DP_PICTURE_SIDE);
    uint32_t row = row_bytes(format, picture->width);
    if (!picture->width_stride) {
        picture->width_stride = row_bytes(format, (picture->width + 15) & ~15u);
        picture->width_stride = picture->width_stride < 32 ? 32 : picture->width_stride;
    }
    if (!picture->height_stride)
        picture->height_stride = (picture->height + format->y_shift) & ~(uint32_t)format->y_shift;
    if (picture->width_stride < row || picture->width_stride % 16 || picture->width_stride > 8 * DP_PICTURE_SIDE)
        return dp_fail(
            DP_ERR_ARGUMENT,
            "%s: the width stride is %u, but a row of %u pixels of %s has %u bytes, and the stride must be a "
            "multiple of 16",
            argument, picture->width_stride, picture->width, format->name, row);
    if (picture->height_stride < picture->height || picture->height_stride > 2 * DP_PICTURE_SIDE ||
        (picture->height_stride & format->y_shift))
        return dp_fail(DP_ERR_ARGUMENT, "%s: the height stride is %u, but must be at least the height %u%s", argument,
                       picture->height_stride, picture->height, format->y_shift ? " and even" : "");
    if (!picture->data)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the address of the picture is NULL", argument);
    if (picture->size_bytes < dp_picture_bytes(picture))
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s: the size is %zu bytes, but a picture of %u x %u of %s with strides %u and %u takes %zu",
                       argument, picture->size_bytes, picture->width, picture->height, format->name,
                       picture->width_stride, picture->height_stride, dp_picture_bytes(picture));
    return DP_OK;
}

dp_status dp_picture_new(int pixel_format, uint32_t width, uint32_t height, dp_picture *out_picture) {
    const dp_format *format = dp_format_of(pixel_format);
    dp_picture p = {.format = pixel_format, .width = width, .height = height};
    p.width_stride = (row_bytes(format, width) + 31) & ~31u;
    p.height_stride = (height + format->y_shift) & ~(uint32_t)format->y_shift;
    p.size_bytes = dp_picture_bytes(&p);
    p.data = dp_alloc(DP_MEM_MEDIA, p.size_bytes);
    if (!p.data)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a picture of %u x %u (%zu bytes): free some", width,
                       height, p.size_bytes);
    *out_picture = p;
    return DP_OK;
}

void dp_picture_free(dp_picture *picture) {
    dp_free(picture->data);
    *picture = (dp_picture){0};
}

dp_status dp_area_check(const dp_area *area, const dp_picture *picture, const char *argument) {
    if (!area->width || !area->height || area->left >= picture->width || area->top >= picture->height ||
        area->width > picture->width - area->left || area->height > picture->height - area->top)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %u x %u pixels at (%u, %u), but must lie within the picture of %u x %u",
                       argument, area->width, area->height, area->left, area->top, picture->width, picture->height);
    return DP_OK;
}

dp_plane dp_picture_plane(const dp_picture *picture, int plane, const dp_area *area) {
    const dp_format *format = dp_format_of(picture->format);
    unsigned x = plane ? format->x_shift : format->layout == DP_LAYOUT_PAIRS, y = plane ? format->y_shift : 0;
    unsigned bytes = plane ? 2 : format->bytes;
    size_t pitch = plane ? chroma_pitch(format, picture->width_stride) : picture->width_stride;
    uint8_t *data = picture->data + (plane ? (size_t)picture->width_stride * picture->height_stride : 0);
    uint32_t left = area->left >> x, top = area->top >> y;
    return (dp_plane){.data = data + top * pitch + (size_t)left * bytes,
                      .pitch = pitch,
                      .columns = ((area->left + area->width + x) >> x) - left,
                      .rows = ((area->top + area->height + y) >> y) - top,
                      .bytes = bytes};
}
