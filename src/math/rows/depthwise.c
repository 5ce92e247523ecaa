/*
 * depthwise.c - sums of pixels times weights of their own channel. A tile is 8 or 4 pixels of a line by one vector of
 * channels: with the weights of one line of the window in registers, every pixel of the input is loaded once per line
 * of the window. All channels of a tile's pixels come before the next tile, so that memory is read and written in its
 * order.
 */
#include "math/rows/finish.h"
#include "math/rows/rung.h"

enum { PIXELS = 8, TAPS_KEPT = 64 /* of a vector of channels that lies across two panels */ };

/* What does not change from line to line. */
typedef struct job {
    const dp_rows_depthwise *part;
    rv_end end;
    size_t whole;   /* vectors of channels */
    size_t rest_at; /* one more vector at this channel, of `rest` lanes; 0: none */
    size_t rest;
    const float *rest_weights; /* tap 0 */
    float rest_bias[RV_LANES];
} job;

/* The lines of the window that lie in the image. */
typedef struct window_lines {
    const float *x; /* of the first of them, at column 0 */
    size_t first_tap;
    ptrdiff_t count;
} window_lines;

/* One vector of channels of a tile. */
typedef struct strip {
    const float *x, *weights, *bias; /* column 0, first line and tap */
    ptrdiff_t count;                 /* lines */
    size_t lanes;
} strip;

/* What a tile may read: columns [low, high) of its own, and `lanes` of a vector. */
typedef enum check { INSIDE, COLUMNS, COLUMNS_AND_LANES } check;
DP_INLINE rv column_at(const float *at, ptrdiff_t k, ptrdiff_t low, ptrdiff_t high, size_t lanes, const check how) {
    if (how != INSIDE && (k < low || k >= high))
        return (rv){0};
    return how == COLUMNS_AND_LANES && lanes < RV_LANES ? rv_load_part(at, lanes) : rv_load(at);
}

/* Windows from column `column` of the image on. kernel and stride are constants where they are common: 0 means as the
 * convolution says. */
DP_INLINE void tile_sums(const dp_rows_depthwise *p, const strip *s, ptrdiff_t column, const ptrdiff_t pixels,
                         const ptrdiff_t kernel, const ptrdiff_t stride, const check how, rv sum[][RV_WIDE]) {
    const ptrdiff_t pixel = p->x_pixel, next_line = p->dilation[0] * p->x_line, taps = kernel ? kernel : p->kernel[1];
    const ptrdiff_t low = -column, high = p->in[1] - column;
    const size_t lanes = s->lanes;
    const rv first = rv_load(s->bias);
    RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++) sum[o][0] = first;
    const float *line = s->x + column * pixel, *weights = s->weights;
    for (ptrdiff_t ky = 0; ky < s->count; ky++, line += next_line, weights += taps * DP_ROWS_PANEL) {
        if (!kernel) {
            for (ptrdiff_t kx = 0; kx < taps; kx++) {
                const rv b = rv_load(weights + kx * DP_ROWS_PANEL);
                RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++) {
                    const ptrdiff_t k = o * p->stride[1] + kx * p->dilation[1];
                    sum[o][0] += b * column_at(line + k * pixel, k, low, high, lanes, how);
                }
            }
            continue;
        }
        rv b[5];
        RV_UNROLL for (ptrdiff_t kx = 0; kx < kernel; kx++) b[kx] = rv_load(weights + kx * DP_ROWS_PANEL);
        const float *at = line;
        _Pragma("GCC unroll 32") for (ptrdiff_t k = 0; k < (pixels - 1) * stride + kernel; k++) {
            const rv a = column_at(at, k, low, high, lanes, how);
            at += pixel;
            RV_POINTER(at); /* else the compiler keeps all columns' addresses, and makes them for every tile */
            RV_UNROLL for (ptrdiff_t kx = 0; kx < kernel; kx++) {
                if (k >= kx && (k - kx) % stride == 0 && (k - kx) / stride < pixels)
                    sum[(k - kx) / stride][0] += a * b[kx];
            }
        }
    }
}

/* All channels of n <= pixels windows. */
DP_INLINE void tile_body(const job *j, const window_lines *w, ptrdiff_t column, ptrdiff_t n, ptrdiff_t at,
                         const ptrdiff_t pixels, const ptrdiff_t kernel, const ptrdiff_t stride) {
    static const float zeros[RV_LANES] __attribute__((aligned(64)));
    const dp_rows_depthwise *p = j->part;
    const ptrdiff_t step = stride ? stride : p->stride[1];
    const ptrdiff_t reach = (pixels - 1) * step + (kernel ? kernel - 1 : (p->kernel[1] - 1) * p->dilation[1]);
    const size_t panel = (size_t)(p->kernel[0] * p->kernel[1]) * DP_ROWS_PANEL;
    const bool inside = column >= 0 && column + reach < p->in[1];
    rv sum[PIXELS][RV_WIDE];
    rv_end end = j->end;
    float *y = p->y + at * p->y_pixel;
    const float *residual = p->residual ? p->residual + at * p->residual_pixel : NULL;
    strip s = {.count = w->count, .lanes = RV_LANES};
    for (size_t v = 0; v < j->whole; v++) {
        const size_t c = p->first + v * RV_LANES;
        s.x = w->x + c;
        s.weights = p->panels + c / DP_ROWS_PANEL * panel + c % DP_ROWS_PANEL + w->first_tap * DP_ROWS_PANEL;
        s.bias = p->bias ? p->bias + c : zeros;
        end.y = y + c;
        end.residual = residual ? residual + c : NULL;
        if (inside)
            tile_sums(p, &s, column, pixels, kernel, stride, INSIDE, sum);
        else
            tile_sums(p, &s, column, pixels, kernel, stride, COLUMNS, sum);
        if (n == pixels)
            rv_end_tile(&end, (size_t)pixels, 1, sum);
        else
            rv_end_some(&end, (size_t)pixels, (size_t)n, sum);
    }
    if (!j->rest)
        return;
    s = (strip){w->x + j->rest_at, j->rest_weights + w->first_tap * DP_ROWS_PANEL, j->rest_bias, w->count, j->rest};
    tile_sums(p, &s, column, pixels, kernel, stride, COLUMNS_AND_LANES, sum);
    end.columns = j->rest;
    end.y = y + j->rest_at;
    end.residual = residual ? residual + j->rest_at : NULL;
    rv_end_some(&end, (size_t)pixels, (size_t)n, sum);
}

/* All pixels of a line of the output. */
DP_INLINE void line_body(const job *j, const window_lines *w, ptrdiff_t line, const ptrdiff_t kernel,
                         const ptrdiff_t stride) {
    const dp_rows_depthwise *p = j->part;
    const ptrdiff_t step = stride ? stride : p->stride[1];
    for (ptrdiff_t o = 0, n; o < p->out_width; o += n) {
        const ptrdiff_t left = p->out_width - o, column = o * step - p->pad[1], at = line * p->out_width + o;
        n = left < PIXELS ? left : PIXELS;
        if (left > PIXELS / 2)
            tile_body(j, w, column, n, at, PIXELS, kernel, stride);
        else
            tile_body(j, w, column, n, at, PIXELS / 2, kernel, stride);
    }
}

typedef void (*line_fn)(const job *j, const window_lines *w, ptrdiff_t line);
#define LINE(kernel, stride)                                                                                           \
    static void line_##kernel##_by_##stride(const job *j, const window_lines *w, ptrdiff_t line) {                     \
        line_body(j, w, line, kernel, stride);                                                                         \
    }
LINE(0, 0)
LINE(3, 1)
LINE(3, 2)
LINE(5, 1)
LINE(5, 2)

static line_fn choose_line(const dp_rows_depthwise *p) {
    if (p->dilation[1] != 1 || p->stride[1] > 2)
        return line_0_by_0;
    if (p->kernel[1] == 3)
        return p->stride[1] == 1 ? line_3_by_1 : line_3_by_2;
    if (p->kernel[1] == 5)
        return p->stride[1] == 1 ? line_5_by_1 : line_5_by_2;
    return line_0_by_0;
}

/* The lines of the window of output line `line` that lie in the image. */
static window_lines lines_of(const dp_rows_depthwise *p, ptrdiff_t line) {
    const ptrdiff_t at = line * p->stride[0] - p->pad[0], step = p->dilation[0];
    const ptrdiff_t first = at < 0 ? (-at + step - 1) / step : 0;
    ptrdiff_t last = p->in[0] > at ? (p->in[0] - at + step - 1) / step : 0;
    last = last < p->kernel[0] ? last : p->kernel[0];
    return first < last
               ? (window_lines){p->x + (at + first * step) * p->x_line, (size_t)(first * p->kernel[1]), last - first}
               : (window_lines){p->x, 0, 0};
}

/*
 * Channels that fill no vector. They are taken with some that were taken before, whose weights are copied together,
 * unless a residual would be added to those twice.
 */
static void take_rest(job *j, float *kept) {
    const dp_rows_depthwise *p = j->part;
    const size_t taps = (size_t)(p->kernel[0] * p->kernel[1]);
    const bool repeats = !p->residual && j->whole && taps <= TAPS_KEPT;
    j->rest = p->columns % RV_LANES;
    if (!j->rest)
        return;
    j->rest_at = p->first + j->whole * RV_LANES;
    j->rest_weights = p->panels + j->rest_at / DP_ROWS_PANEL * taps * DP_ROWS_PANEL + j->rest_at % DP_ROWS_PANEL;
    if (repeats) {
        j->rest_at = p->first + p->columns - RV_LANES;
        j->rest = RV_LANES;
        for (size_t t = 0; t < taps; t++)
            for (size_t l = 0; l < RV_LANES; l++) {
                const size_t c = j->rest_at + l;
                kept[t * DP_ROWS_PANEL + l] =
                    p->panels[(c / DP_ROWS_PANEL * taps + t) * DP_ROWS_PANEL + c % DP_ROWS_PANEL];
            }
        j->rest_weights = kept;
    }
    for (size_t l = 0; l < j->rest && p->bias; l++)
        j->rest_bias[l] = p->bias[j->rest_at + l];
}

void DP_ROWS_NAME(dp_rows_pixels)(const dp_rows_depthwise *p, const dp_rows_finish *finish) {
    const line_fn fn = choose_line(p);
    float kept[TAPS_KEPT * DP_ROWS_PANEL] __attribute__((aligned(64)));
    job j = {.part = p, .end = rv_end_of(finish), .whole = p->columns / RV_LANES};
    j.end.y_stride = p->y_pixel;
    j.end.residual_stride = p->residual_pixel;
    j.end.columns = RV_LANES;
    take_rest(&j, kept);
    for (ptrdiff_t line = p->line; line < p->line + p->lines; line++) {
        const window_lines w = lines_of(p, line);
        fn(&j, &w, line);
    }
}
