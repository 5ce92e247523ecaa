/* Colours: rows come apart into channels at full width, go through a matrix where YUV meets RGB, and are put together.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/scratch.h"
#include "media/draw.h"
#include "runtime/pool.h"

enum { ONE = 1 << 14 }; /* 1 in the matrix */

static void luma_weights(int colour_space, double *red, double *blue) {
    static const double weights[][2] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};
    *red = weights[colour_space / 2][0];
    *blue = weights[colour_space / 2][1];
}

static int32_t fixed(double value) {
    return (int32_t)lround(value * ONE);
}

dp_colour_matrix dp_colour_to_rgb(int colour_space) {
    double red, blue;
    luma_weights(colour_space, &red, &blue);
    bool narrow = colour_space & 1;
    double luma = narrow ? 255.0 / 219 : 1, chroma = narrow ? 255.0 / 224 : 1, green = 1 - red - blue;
    dp_colour_matrix m = {
        {{fixed(luma), 0, fixed(2 * (1 - red) * chroma)},
         {fixed(luma), -fixed(2 * (1 - blue) * blue / green * chroma), -fixed(2 * (1 - red) * red / green * chroma)},
         {fixed(luma), fixed(2 * (1 - blue) * chroma), 0}}};
    for (int i = 0; i < 3; i++)
        m.c[i][3] = ONE / 2 - m.c[i][0] * (narrow ? 16 : 0) - (m.c[i][1] + m.c[i][2]) * 128;
    return m;
}

dp_colour_matrix dp_colour_to_yuv(int colour_space) {
    double red, blue;
    luma_weights(colour_space, &red, &blue);
    bool narrow = colour_space & 1;
    double luma = narrow ? 219.0 / 255 : 1, chroma = (narrow ? 224.0 / 255 : 1) / 2;
    dp_colour_matrix m = {{{fixed(red * luma), 0, fixed(blue * luma)},
                           {fixed(-red / (1 - blue) * chroma), 0, fixed(chroma)},
                           {fixed(chroma), 0, fixed(-blue / (1 - red) * chroma)}}};
    /* so that white is white and grey has no colour */
    m.c[0][1] = fixed(luma) - m.c[0][0] - m.c[0][2];
    m.c[1][1] = -m.c[1][0] - m.c[1][2];
    m.c[2][1] = -m.c[2][0] - m.c[2][2];
    m.c[0][3] = ONE / 2 + (narrow ? 16 * ONE : 0);
    m.c[1][3] = m.c[2][3] = ONE / 2 + 128 * ONE;
    return m;
}

typedef struct work {
    const dp_picture *src, *dst;
    const dp_format *in, *out;
    dp_area from, to;
    bool through_matrix;
    dp_colour_matrix matrix;
    const dp_rows *rows;
    _Atomic bool starved;
} work;

/* Channels of one row at full width: Y U V or R G B, and alpha. */
typedef struct channels {
    uint8_t *c[4];
} channels;

/* Room behind a row: the last pixel is repeated there, so that pairs are whole. */
enum { TAIL = 4, CHANNELS = 4 };

static void apart_semiplanar(const work *w, uint32_t y, channels *to, uint8_t *spare) {
    const dp_plane luma = dp_picture_plane(w->src, 0, &w->from), chroma = dp_picture_plane(w->src, 1, &w->from);
    uint32_t row = ((w->from.top + y) >> w->in->y_shift) - (w->from.top >> w->in->y_shift);
    const uint8_t *pairs = chroma.data + row * chroma.pitch;
    uint8_t *const each[2] = {to->c[w->in->place[1] ? 2 : 1], to->c[w->in->place[1] ? 1 : 2]}; /* by byte of the pair */
    memcpy(to->c[0], luma.data + y * luma.pitch, w->from.width);
    if (!w->in->x_shift) {
        w->rows->split2(pairs, each[0], each[1], chroma.columns);
        return;
    }
    uint32_t n = chroma.columns, skip = w->from.left & 1;
    uint8_t *half = spare, *whole = spare + n;
    w->rows->split2(pairs, half, half + 3 * (size_t)n, n);
    for (int i = 0; i < 2; i++) {
        w->rows->twice(half + i * 3 * (size_t)n, whole, n);
        memcpy(each[i], whole + skip, w->from.width);
    }
}

/* Packed 4:2:2; `from.left` is even, or the area's first pair begins one pixel earlier. */
static void apart_pairs(const work *w, uint32_t y, channels *to, uint8_t *spare) {
    const dp_plane plane = dp_picture_plane(w->src, 0, &w->from);
    size_t n = plane.columns;
    uint8_t *four[4] = {spare, spare + n, spare + 2 * n, spare + 3 * n}, *whole = spare + 4 * n;
    uint32_t skip = w->from.left & 1;
    const uint8_t *place = w->in->place;
    w->rows->split4(plane.data + y * plane.pitch, four[0], four[1], four[2], four[3], n);
    w->rows->join2(four[place[0]], four[place[0] + 2], whole, n);
    memcpy(to->c[0], whole + skip, w->from.width);
    for (int i = 1; i < 3; i++) {
        w->rows->twice(four[place[i]], whole, n);
        memcpy(to->c[i], whole + skip, w->from.width);
    }
}

static void apart(const work *w, uint32_t y, channels *to, uint8_t *spare) {
    const dp_plane plane = dp_picture_plane(w->src, 0, &w->from);
    const uint8_t *row = plane.data + y * plane.pitch, *place = w->in->place;
    size_t n = w->from.width;
    uint8_t *by_place[4] = {0};
    for (int i = 0; i < w->in->bytes && w->in->layout == DP_LAYOUT_PACKED; i++)
        by_place[place[i]] = to->c[i];
    switch (w->in->layout) {
    case DP_LAYOUT_GRAY:
        memcpy(to->c[0], row, n);
        memset(to->c[1], 128, n);
        memset(to->c[2], 128, n);
        break;
    case DP_LAYOUT_SEMIPLANAR:
        apart_semiplanar(w, y, to, spare);
        break;
    case DP_LAYOUT_PAIRS:
        apart_pairs(w, y, to, spare);
        break;
    case DP_LAYOUT_PACKED:
        if (w->in->bytes == 3)
            w->rows->split3(row, by_place[0], by_place[1], by_place[2], n);
        else
            w->rows->split4(row, by_place[0], by_place[1], by_place[2], by_place[3], n);
        break;
    }
    if (w->in->layout != DP_LAYOUT_PACKED || w->in->bytes == 3)
        memset(to->c[3], 255, n);
    for (int i = 0; i < CHANNELS; i++)
        memset(to->c[i] + n, to->c[i][n - 1], TAIL);
}

static void together_packed(const work *w, uint32_t y, const channels *from) {
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

static void together_pairs(const work *w, uint32_t y, const channels *from, uint8_t *spare) {
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
static void together_chroma(const work *w, uint32_t y, const channels *a, const channels *b, uint8_t *spare) {
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

static void together(const work *w, uint32_t y, const channels *two, int n, uint8_t *spare) {
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
    size_t room = ((size_t)w->from.width + TAIL + 63) & ~(size_t)63;
    uint8_t *memory = dp_scratch(room * (4 * CHANNELS + 8));
    if (!memory) {
        atomic_store(&w->starved, true);
        return;
    }
    channels in[2], out[2];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < CHANNELS; k++) {
            in[i].c[k] = memory + room * (size_t)(i * CHANNELS + k);
            out[i].c[k] = k < 3 && w->through_matrix ? in[i].c[k] + 2 * CHANNELS * room : in[i].c[k];
        }
    uint8_t *spare = memory + 4 * CHANNELS * room;
    for (size_t pair = begin; pair < end; pair++) {
        uint32_t y = 2 * (uint32_t)pair;
        int n = y + 1 < w->from.height ? 2 : 1;
        for (int i = 0; i < n; i++) {
            apart(w, y + (uint32_t)i, &in[i], spare);
            if (w->through_matrix)
                w->rows->colour(&w->matrix, (const uint8_t *const *)in[i].c, out[i].c, w->from.width + TAIL);
        }
        together(w, y, out, n, spare);
    }
}

dp_status dp_picture_convert(const dp_picture *src, const dp_area *from, const dp_picture *dst, const dp_area *to,
                             int colour_space) {
    work w = {.src = src,
              .dst = dst,
              .in = dp_format_of(src->format),
              .out = dp_format_of(dst->format),
              .from = *from,
              .to = *to,
              .rows = dp_rows_get()};
    w.through_matrix = w.in->is_rgb != w.out->is_rgb;
    if (w.through_matrix)
        w.matrix = w.in->is_rgb ? dp_colour_to_yuv(colour_space) : dp_colour_to_rgb(colour_space);
    dp_pool_for((from->height + 1) / 2, 16384 / from->width + 1, convert_rows, &w);
    if (atomic_load(&w.starved))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to convert a picture's colours: free some");
    return DP_OK;
}
