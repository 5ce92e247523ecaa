/* Colours: rows come apart into channels at full width, go through a matrix where YUV meets RGB, and are put together.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/scratch.h"
#include "media/apart.h"
#include "media/draw.h"
#include "runtime/pool.h"

enum { ONE = 1 << DP_COLOUR_BITS }; /* 1 in the matrix */

static void luma_weights(int colour_space, double *red, double *blue) {
    static const double weights[][2] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};
    *red = weights[colour_space / 2][0];
    *blue = weights[colour_space / 2][1];
}

static int16_t fixed(double value) {
    return (int16_t)lround(value * ONE);
}

dp_colour_matrix dp_colour_to_rgb(int colour_space) {
    double red, blue;
    luma_weights(colour_space, &red, &blue);
    bool narrow = colour_space & 1;
    double luma = narrow ? 255.0 / 219 : 1, chroma = narrow ? 255.0 / 224 : 1, green = 1 - red - blue;
    const double to_green[2] = {-2 * (1 - blue) * blue / green * chroma, -2 * (1 - red) * red / green * chroma};
    dp_colour_matrix m = {.c = {{fixed(luma), 0, fixed(2 * (1 - red) * chroma)},
                                {fixed(luma), fixed(to_green[0]), fixed(to_green[1])},
                                {fixed(luma), fixed(2 * (1 - blue) * chroma), 0}}};
    for (int i = 0; i < 3; i++)
        m.bias[i] = ONE / 2 - m.c[i][0] * (narrow ? 16 : 0) - (m.c[i][1] + m.c[i][2]) * 128;
    return m;
}

dp_colour_matrix dp_colour_to_yuv(int colour_space) {
    double red, blue;
    luma_weights(colour_space, &red, &blue);
    bool narrow = colour_space & 1;
    double luma = narrow ? 219.0 / 255 : 1, chroma = (narrow ? 224.0 / 255 : 1) / 2;
    dp_colour_matrix m = {.c = {{fixed(red * luma), 0, fixed(blue * luma)},
                                {fixed(-red / (1 - blue) * chroma), 0, fixed(chroma)},
                                {fixed(chroma), 0, fixed(-blue / (1 - red) * chroma)}}};
    /* so that white is white and grey has no colour */
    m.c[0][1] = (int16_t)(fixed(luma) - m.c[0][0] - m.c[0][2]);
    m.c[1][1] = (int16_t)(-m.c[1][0] - m.c[1][2]);
    m.c[2][1] = (int16_t)(-m.c[2][0] - m.c[2][2]);
    m.bias[0] = ONE / 2 + (narrow ? 16 * ONE : 0);
    m.bias[1] = m.bias[2] = ONE / 2 + 128 * ONE;
    return m;
}

typedef struct work {
    dp_row_source source;
    const dp_picture *dst;
    const dp_format *out;
    dp_area to;
    bool through_matrix;
    dp_colour_matrix matrix;
    const dp_rows *rows;
    _Atomic bool starved;
} work;

static void together_packed(const work *w, uint32_t y, const dp_channels *from) {
    const dp_plane plane = dp_picture_plane(w->dst, 0, &w->to);
    uint8_t *row = plane.data + y * plane.pitch;
    const uint8_t *by_place[4] = {0};
    for (int i = 0; i < w->out->bytes; i++)
        by_place[w->out->place[i]] = from->c[i];
    if (w->out->bytes == 3)
        w->rows->join3(by_place[0], by_place[1], by_place[2], row, w->to.width);
    else
        w->rows->join4(by_place[0], by_place[1], by_place[2], by_place[3], row, w->to.width);
}

static void together_pairs(const work *w, uint32_t y, const dp_channels *from, uint8_t *spare) {
    const dp_plane plane = dp_picture_plane(w->dst, 0, &w->to);
    size_t n = plane.columns;
    uint8_t *four[4] = {spare, spare + n, spare + 2 * n, spare + 3 * n};
    const uint8_t *place = w->out->place;
    w->rows->split2(from->c[0], four[place[0]], four[place[0] + 2], n);
    w->rows->mean_across(from->c[1], four[place[1]], n);
    w->rows->mean_across(from->c[2], four[place[2]], n);
    w->rows->join4(four[0], four[1], four[2], four[3], plane.data + y * plane.pitch, n);
}

/* Chroma of rows y and y + 1 (the same row where there is no other) into one row, or of row y alone. */
static void together_chroma(const work *w, uint32_t y, const dp_channels *a, const dp_channels *b, uint8_t *spare) {
    const dp_plane plane = dp_picture_plane(w->dst, 1, &w->to);
    size_t n = plane.columns;
    const uint8_t *uv[2];
    for (int i = 0; i < 2; i++) {
        uint8_t *half = spare + i * n;
        uv[i] = half;
        if (w->out->x_shift && w->out->y_shift)
            w->rows->mean_square(a->c[1 + i], b->c[1 + i], half, n);
        else if (w->out->x_shift)
            w->rows->mean_across(a->c[1 + i], half, n);
        else if (w->out->y_shift)
            w->rows->mean_down(a->c[1 + i], b->c[1 + i], half, n);
        else
            uv[i] = a->c[1 + i];
    }
    bool swapped = w->out->place[1] == 1;
    w->rows->join2(uv[swapped], uv[!swapped], plane.data + (y >> w->out->y_shift) * plane.pitch, n);
}

static void together(const work *w, uint32_t y, const dp_channels *two, int n, uint8_t *spare) {
    for (int i = 0; i < n; i++) {
        if (w->out->layout == DP_LAYOUT_PACKED) {
            together_packed(w, y + i, &two[i]);
        } else if (w->out->layout == DP_LAYOUT_PAIRS) {
            together_pairs(w, y + i, &two[i], spare);
        } else {
            const dp_plane luma = dp_picture_plane(w->dst, 0, &w->to);
            memcpy(luma.data + (y + i) * luma.pitch, two[i].c[0], w->to.width);
        }
        if (w->out->layout == DP_LAYOUT_SEMIPLANAR && !w->out->y_shift)
            together_chroma(w, y + i, &two[i], &two[i], spare);
    }
    if (w->out->layout == DP_LAYOUT_SEMIPLANAR && w->out->y_shift)
        together_chroma(w, y, &two[0], &two[n - 1], spare);
}

/* Pairs of rows [begin, end). */
static void convert_rows(void *context, size_t begin, size_t end) {
    work *w = context;
    const uint32_t width = w->source.area.width, height = w->source.area.height;
    size_t room = dp_row_room(width);
    uint8_t *memory = dp_scratch(room * (4 * DP_ROW_CHANNELS + DP_ROW_SPARE));
    if (!memory) {
        atomic_store(&w->starved, true);
        return;
    }
    dp_channels in[2], out[2];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < DP_ROW_CHANNELS; k++) {
            in[i].c[k] = memory + room * (size_t)(i * DP_ROW_CHANNELS + k);
            out[i].c[k] = k < 3 && w->through_matrix ? in[i].c[k] + 2 * DP_ROW_CHANNELS * room : in[i].c[k];
        }
    uint8_t *spare = memory + 4 * DP_ROW_CHANNELS * room;
    for (size_t pair = begin; pair < end; pair++) {
        uint32_t y = 2 * (uint32_t)pair;
        int n = y + 1 < height ? 2 : 1;
        for (int i = 0; i < n; i++) {
            dp_row_apart(&w->source, y + (uint32_t)i, &in[i], spare);
            if (w->through_matrix)
                w->rows->colour(&w->matrix, (const uint8_t *const *)in[i].c, out[i].c, width + DP_ROW_TAIL);
        }
        together(w, y, out, n, spare);
    }
}

dp_status dp_picture_convert(const dp_picture *src, const dp_area *from, const dp_picture *dst, const dp_area *to,
                             int colour_space) {
    work w = {.source = dp_row_source_of(src, from),
              .dst = dst,
              .out = dp_format_of(dst->format),
              .to = *to,
              .rows = dp_rows_get()};
    bool in_rgb = w.source.format->is_rgb;
    w.through_matrix = in_rgb != w.out->is_rgb;
    if (w.through_matrix)
        w.matrix = in_rgb ? dp_colour_to_yuv(colour_space) : dp_colour_to_rgb(colour_space);
    dp_pool_for((from->height + 1) / 2, 16384 / from->width + 1, convert_rows, &w);
    if (atomic_load(&w.starved))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to convert a picture's colours: free some");
    return DP_OK;
}
