#include "media/draw.h"

#include <string.h>

static bool same_size(const dp_area *a, const dp_area *b) {
    return a->width == b->width && a->height == b->height;
}

static dp_status draw_planes(const dp_picture *src, const dp_area *from, const dp_picture *dst, const dp_area *to,
                             int interpolation) {
    dp_status status = DP_OK;
    for (int i = 0; i < dp_format_planes(dp_format_of(src->format)) && status == DP_OK; i++) {
        dp_plane in = dp_picture_plane(src, i, from), out = dp_picture_plane(dst, i, to);
        status = dp_plane_resample(&in, &out, interpolation);
    }
    return status;
}

/* What pictures of a format are resized in. */
static int resizable(int format) {
    return dp_format_of(format)->layout == DP_LAYOUT_PAIRS ? DP_PIXEL_YUV422SP : format;
}

/* Chroma that is halved begins at even pixels: areas that do not share their parity go pixel by pixel. */
static bool in_step(const dp_picture *picture, const dp_area *a, const dp_area *b) {
    const dp_format *format = dp_format_of(picture->format);
    bool across = format->x_shift, down = format->y_shift;
    return !(across && ((a->left ^ b->left) & 1)) && !(down && ((a->top ^ b->top) & 1));
}

dp_status dp_picture_draw(const dp_picture *src, const dp_area *from, const dp_picture *dst, const dp_area *to,
                          const dp_draw_options *options) {
    if (same_size(from, to)) {
        bool planes = src->format == dst->format && in_step(src, from, to);
        return planes ? draw_planes(src, from, dst, to, options->interpolation)
                      : dp_picture_convert(src, from, dst, to, options->colour_space);
    }
    int format = resizable(src->format);
    if (format == dst->format && format == src->format)
        return draw_planes(src, from, dst, to, options->interpolation);
    dp_picture whole = {0}, resized = {0};
    dp_status status = DP_OK;
    dp_area area = *from;
    if (format != src->format) {
        status = dp_picture_new(format, from->width, from->height, &whole);
        area = (dp_area){0, 0, from->width, from->height};
        if (status == DP_OK)
            status = dp_picture_convert(src, from, &whole, &area, options->colour_space);
        src = &whole;
    }
    if (status == DP_OK)
        status = dp_picture_new(format, to->width, to->height, &resized);
    dp_area all = {0, 0, to->width, to->height};
    if (status == DP_OK)
        status = draw_planes(src, &area, &resized, &all, options->interpolation);
    if (status == DP_OK)
        status = dp_picture_convert(&resized, &all, dst, to, options->colour_space);
    dp_picture_free(&resized);
    dp_picture_free(&whole);
    return status;
}

/* Borders. */

/* The place inside [0, n) that place p, which may be outside, shows. */
static int64_t mirror(int64_t p, int64_t n, int kind) {
    if (kind == DP_BORDER_REPLICATE || n == 1)
        return p < 0 ? 0 : p >= n ? n - 1 : p;
    int64_t period = kind == DP_BORDER_REFLECT ? 2 * n : 2 * n - 2;
    p %= period;
    if (p < 0)
        p += period;
    return p < n ? p : period - p - (kind == DP_BORDER_REFLECT);
}

static void fill_row(const dp_plane *plane, uint32_t y, uint32_t begin, uint32_t end, const uint8_t *element) {
    uint8_t *row = plane->data + y * plane->pitch;
    for (uint32_t x = begin; x < end; x++)
        memcpy(row + (size_t)x * plane->bytes, element, plane->bytes);
}

static void mirror_row(const dp_plane *plane, uint32_t y, int64_t left, int64_t n, int kind) {
    uint8_t *row = plane->data + y * plane->pitch;
    size_t bytes = plane->bytes;
    for (int64_t x = 0; x < plane->columns; x = x + 1 == left ? left + n : x + 1)
        if (x < left || x >= left + n)
            memcpy(row + (size_t)x * bytes, row + (size_t)(left + mirror(x - left, n, kind)) * bytes, bytes);
}

/* The border's value as an element of a plane. */
static void border_element(const dp_format *format, int plane, const uint8_t *value, uint8_t *element) {
    if (plane == 1) {
        element[format->place[1]] = value[1];
        element[format->place[2]] = value[2];
    } else if (format->layout == DP_LAYOUT_PAIRS) {
        element[format->place[0]] = element[format->place[0] + 2] = value[0];
        element[format->place[1]] = value[1];
        element[format->place[2]] = value[2];
    } else if (format->layout == DP_LAYOUT_PACKED) {
        for (int i = 0; i < format->bytes; i++)
            element[format->place[i]] = value[i];
    } else {
        element[0] = value[0];
    }
}

static void border_plane(const dp_plane *all, uint32_t left, uint32_t top, const dp_plane *inner,
                         const dp_border *border, const uint8_t *element) {
    bool constant = border->kind == DP_BORDER_CONSTANT;
    for (uint32_t y = top; y < top + inner->rows; y++) {
        if (constant) {
            fill_row(all, y, 0, left, element);
            fill_row(all, y, left + inner->columns, all->columns, element);
        } else {
            mirror_row(all, y, left, inner->columns, border->kind);
        }
    }
    for (uint32_t y = 0; y < all->rows; y++) {
        if (y >= top && y < top + inner->rows)
            continue;
        if (constant)
            fill_row(all, y, 0, all->columns, element);
        else
            memcpy(all->data + y * all->pitch,
                   all->data + (size_t)(top + mirror((int64_t)y - top, inner->rows, border->kind)) * all->pitch,
                   (size_t)all->columns * all->bytes);
    }
}

void dp_picture_border(const dp_picture *picture, const dp_area *inner, const dp_border *border) {
    const dp_format *format = dp_format_of(picture->format);
    const dp_area whole = dp_picture_area(picture);
    for (int i = 0; i < dp_format_planes(format); i++) {
        dp_plane all = dp_picture_plane(picture, i, &whole), in = dp_picture_plane(picture, i, inner);
        uint32_t top = (uint32_t)((size_t)(in.data - all.data) / all.pitch);
        uint32_t left = (uint32_t)((size_t)(in.data - all.data) % all.pitch / all.bytes);
        uint8_t element[4] = {0};
        border_element(format, i, border->value, element);
        border_plane(&all, left, top, &in, border, element);
    }
}
