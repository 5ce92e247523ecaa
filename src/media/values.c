#include "media/values.h"

#include <string.h>

/* The channel of each byte of an element; -1: alpha. */
static void channels_of(const dp_format *format, int plane, int out[4]) {
    memset(out, -1, 4 * sizeof *out);
    if (plane == 1) {
        out[format->place[1]] = 1;
        out[format->place[2]] = 2;
    } else if (format->layout == DP_LAYOUT_PAIRS) {
        out[format->place[0]] = out[format->place[0] + 2] = 0;
        out[format->place[1]] = 1;
        out[format->place[2]] = 2;
    } else if (format->layout == DP_LAYOUT_PACKED) {
        for (int c = 0; c < 3; c++)
            out[format->place[c]] = c;
    } else {
        out[0] = 0;
    }
}

uint32_t dp_picture_count(const dp_picture *picture, uint32_t counts[DP_VALUE_CHANNELS][DP_VALUES]) {
    const dp_format *format = dp_format_of(picture->format);
    const dp_area all = dp_picture_area(picture);
    for (int i = 0; i < dp_format_planes(format); i++) {
        const dp_plane plane = dp_picture_plane(picture, i, &all);
        int channels[4];
        channels_of(format, i, channels);
        for (uint32_t y = 0; y < plane.rows; y++)
            for (size_t x = 0; x < (size_t)plane.columns * plane.bytes; x++) {
                int c = channels[x % plane.bytes];
                if (c >= 0)
                    counts[c][plane.data[y * plane.pitch + x]]++;
            }
    }
    return format->layout == DP_LAYOUT_GRAY ? 1 : DP_VALUE_CHANNELS;
}

dp_status dp_picture_map(const dp_picture *src, const dp_picture *dst,
                         const uint8_t tables[DP_VALUE_CHANNELS][DP_VALUES]) {
    const dp_format *format = dp_format_of(src->format);
    const dp_area all = dp_picture_area(src);
    if (src->format != dst->format || src->width != dst->width || src->height != dst->height)
        return dp_fail(DP_ERR_ARGUMENT, "the pictures are %u x %u of %s and %u x %u of %s, but must be alike",
                       src->width, src->height, format->name, dst->width, dst->height, dp_format_of(dst->format)->name);
    for (int i = 0; i < dp_format_planes(format); i++) {
        const dp_plane in = dp_picture_plane(src, i, &all), out = dp_picture_plane(dst, i, &all);
        int channels[4];
        channels_of(format, i, channels);
        for (uint32_t y = 0; y < in.rows; y++)
            for (size_t x = 0; x < (size_t)in.columns * in.bytes; x++) {
                int c = channels[x % in.bytes];
                uint8_t value = in.data[y * in.pitch + x];
                out.data[y * out.pitch + x] = c >= 0 ? tables[c][value] : value;
            }
    }
    return DP_OK;
}
