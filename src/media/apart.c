/* Rows of every format come apart into channels at full width. */
#include "media/apart.h"

#include <string.h>

static void apart_semiplanar(const dp_row_source *s, uint32_t y, const dp_channels *to, uint8_t *spare) {
    const dp_plane luma = dp_picture_plane(s->picture, 0, &s->area), chroma = dp_picture_plane(s->picture, 1, &s->area);
    uint32_t row = ((s->area.top + y) >> s->format->y_shift) - (s->area.top >> s->format->y_shift);
    const uint8_t *pairs = chroma.data + row * chroma.pitch;
    uint8_t *const each[2] = {to->c[s->format->place[1] ? 2 : 1],
                              to->c[s->format->place[1] ? 1 : 2]}; /* by byte of the pair */
    memcpy(to->c[0], luma.data + y * luma.pitch, s->area.width);
    if (!s->format->x_shift) {
        s->rows->split2(pairs, each[0], each[1], chroma.columns);
        return;
    }
    uint32_t n = chroma.columns, skip = s->area.left & 1;
    uint8_t *half = spare, *whole = spare + n;
    s->rows->split2(pairs, half, half + 3 * (size_t)n, n);
    for (int i = 0; i < 2; i++) {
        s->rows->twice(half + i * 3 * (size_t)n, whole, n);
        memcpy(each[i], whole + skip, s->area.width);
    }
}

/* Packed 4:2:2; `area.left` is even, or the area's first pair begins one pixel earlier. */
static void apart_pairs(const dp_row_source *s, uint32_t y, const dp_channels *to, uint8_t *spare) {
    const dp_plane plane = dp_picture_plane(s->picture, 0, &s->area);
    size_t n = plane.columns;
    uint8_t *four[4] = {spare, spare + n, spare + 2 * n, spare + 3 * n}, *whole = spare + 4 * n;
    uint32_t skip = s->area.left & 1;
    const uint8_t *place = s->format->place;
    s->rows->split4(plane.data + y * plane.pitch, four[0], four[1], four[2], four[3], n);
    s->rows->join2(four[place[0]], four[place[0] + 2], whole, n);
    memcpy(to->c[0], whole + skip, s->area.width);
    for (int i = 1; i < 3; i++) {
        s->rows->twice(four[place[i]], whole, n);
        memcpy(to->c[i], whole + skip, s->area.width);
    }
}

void dp_row_apart(const dp_row_source *s, uint32_t y, const dp_channels *to, uint8_t *spare) {
    const dp_plane plane = dp_picture_plane(s->picture, 0, &s->area);
    const uint8_t *row = plane.data + y * plane.pitch, *place = s->format->place;
    size_t n = s->area.width;
    uint8_t *by_place[4] = {0};
    for (int i = 0; i < s->format->bytes && s->format->layout == DP_LAYOUT_PACKED; i++)
        by_place[place[i]] = to->c[i];
    switch (s->format->layout) {
    case DP_LAYOUT_GRAY:
        memcpy(to->c[0], row, n);
        memset(to->c[1], 128, n);
        memset(to->c[2], 128, n);
        break;
    case DP_LAYOUT_SEMIPLANAR:
        apart_semiplanar(s, y, to, spare);
        break;
    case DP_LAYOUT_PAIRS:
        apart_pairs(s, y, to, spare);
        break;
    case DP_LAYOUT_PACKED:
        if (s->format->bytes == 3)
            s->rows->split3(row, by_place[0], by_place[1], by_place[2], n);
        else
            s->rows->split4(row, by_place[0], by_place[1], by_place[2], by_place[3], n);
        break;
    }
    if (s->format->layout != DP_LAYOUT_PACKED || s->format->bytes == 3)
        memset(to->c[3], 255, n);
    for (int i = 0; i < DP_ROW_CHANNELS; i++)
        memset(to->c[i] + n, to->c[i][n - 1], DP_ROW_TAIL);
}

dp_row_source dp_row_source_of(const dp_picture *picture, const dp_area *area) {
    return (dp_row_source){
        .picture = picture, .format = dp_format_of(picture->format), .area = *area, .rows = dp_rows_get()};
}
