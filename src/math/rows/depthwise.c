/*
 * depthwise.c - sums of pixels times weights of their own channel. A tile is 8 or 4 pixels of a line by one vector of
 * channels: with the weights of one line of the window in registers, every pixel of the input is loaded once per line
 * of the window. All channels of a tile's pixels come before the next tile, so that memory is read and written in its
 * order.
 */
#include "math/rows/finish.h"
#include "math/rows/rung.h"

enum {
    PIXELS = 8,
    TAPS_KEPT = 64,      /* of a vector of channels that lies across two panels */
    CACHE_LINE = 16,     /* floats */
    FAR_FLOATS = 1 << 16 /* of an image that is not in the second level cache */
};

/* What does not change from line to line. */
typedef struct job {
    const dp_rows_depthwise *part;
    rv_end end;
    size_t panel;   /* floats */
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

/* A tile: how it lies in the image. All that the loops need, so that stores to the output do not make it be read again.
 */
typedef struct shape {
    ptrdiff_t pixel, next_line, count; /* floats from column to column, from line to line; lines */
    ptrdiff_t taps, step, dilation;    /* along x */
    ptrdiff_t low, high;               /* columns of the tile that lie in the image */
} shape;

/* What a tile may read: columns [low, high) of its own, and `lanes` of a vector. */
typedef enum check { INSIDE, COLUMNS, COLUMNS_AND_LANES } check;
DP_INLINE rv column_at(const float *at, ptrdiff_t k, ptrdiff_t low, ptrdiff_t high, size_t lanes, const check how) {
    if (how != INSIDE && (k < low || k >= high))
        return (rv){0};
    return how == COLUMNS_AND_LANES && lanes < RV_LANES ? rv_load_part(at, lanes) : rv_load(at);
}

/* Sums of one vector of channels; x is the tile's column 0. kernel and stride are constants where they are common: 0
 * means as the convolution says. */
DP_INLINE void tile_sums(const shape t, const float *x, const float *weights, const float *bias, size_t lanes,
                         const ptrdiff_t pixels, const ptrdiff_t kernel, const ptrdiff_t stride, const check how,
                         rv sum[][RV_WIDE]) {
    const rv first = rv_load(bias);
    RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++) sum[o][0] = first;
    for (ptrdiff_t ky = 0; ky < t.count;
         ky++, x += t.next_line, weights += (kernel ? kernel : t.taps) * DP_ROWS_PANEL) {
        if (!kernel) {
            for (ptrdiff_t kx = 0; kx < t.taps; kx++) {
                const rv b = rv_load(weights + kx * DP_ROWS_PANEL);
                RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++) {
                    const ptrdiff_t k = o * t.step + kx * t.dilation;
                    sum[o][0] += b * column_at(x + k * t.pixel, k, t.low, t.high, lanes, how);
                }
            }
            continue;
        }
        rv b[5];
        RV_UNROLL for (ptrdiff_t kx = 0; kx < kernel; kx++) b[kx] = rv_load(weights + kx * DP_ROWS_PANEL);
        const float *at = x;
        _Pragma("GCC unroll 32") for (ptrdiff_t k = 0; k < (pixels - 1) * stride + kernel; k++) {
            const rv a = column_at(at, k, t.low, t.high, lanes, how);
            at += t.pixel;
            RV_POINTER(at); /* else the compiler keeps all columns' addresses, and makes them for every tile */
            RV_UNROLL for (ptrdiff_t kx = 0; kx < kernel; kx++) {
                if (k >= kx && (k - kx) % stride == 0 && (k - kx) / stride < pixels)
                    sum[(k - kx) / stride][0] += a * b[kx];
            }
        }
    }
}

/* What the next tile is the first to read and write, `pixels` windows further: asked for in good time, because
 * processors foresee no order in it. */
typedef struct ahead {
    uintptr_t x, y;                      /* addresses; x 0: everything is near anyway */
    uintptr_t x_step, line_step, y_step; /* bytes */
    ptrdiff_t lines;
} ahead;

static ahead look_ahead(const job *j, const window_lines *w, ptrdiff_t column, ptrdiff_t at, ptrdiff_t pixels) {
    const dp_rows_depthwise *p = j->part;
    if (p->in[0] * p->in[1] * p->x_pixel < FAR_FLOATS)
        return (ahead){0};
    const ptrdiff_t lines = p->stride[0] < w->count ? p->stride[0] : w->count;
    ptrdiff_t line = (w->count - lines) * p->dilation[0], next = column + pixels * p->stride[1];
    if (next >= p->in[1]) { /* the next line begins */
        line += p->stride[0];
        next = 0;
    }
    const ptrdiff_t x = line * p->x_line + next * p->x_pixel + (ptrdiff_t)p->first;
    const ptrdiff_t y = (at + pixels) * p->y_pixel + (ptrdiff_t)p->first;
    return (ahead){.x = (uintptr_t)w->x + (uintptr_t)x * sizeof(float),
                   .y = (uintptr_t)p->y + (uintptr_t)y * sizeof(float),
                   .x_step = (uintptr_t)p->x_pixel * sizeof(float),
                   .line_step = (uintptr_t)(p->dilation[0] * p->x_line) * sizeof(float),
                   .y_step = (uintptr_t)p->y_pixel * sizeof(float),
                   .lines = lines};
}

/* The channels of one cache line. */
DP_INLINE void fetch(const ahead *a, size_t offset, const ptrdiff_t pixels, const ptrdiff_t columns) {
    const uintptr_t step = a->x_step, y_step = a->y_step;
    uintptr_t x = a->x + offset, y = a->y + offset;
    for (ptrdiff_t l = 0; l < a->lines; l++, x += a->line_step - (uintptr_t)columns * step) {
        RV_UNROLL for (ptrdiff_t k = 0; k < columns; k++, x += step) __builtin_prefetch((const void *)x);
    }
    RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++, y += y_step) __builtin_prefetch((const void *)y, 1);
}

/* The whole vectors of channels of n <= pixels windows. */
DP_INLINE void tile_vectors(const job *j, const shape t, const float *x, const float *weights, ptrdiff_t n,
                            ptrdiff_t at, const ahead next, const ptrdiff_t pixels, const ptrdiff_t kernel,
                            const ptrdiff_t stride, const check how) {
    static const float zeros[RV_LANES] __attribute__((aligned(64)));
    const dp_rows_depthwise *p = j->part;
    const size_t panel = j->panel, whole = j->whole;
    const float *bias = p->bias ? p->bias + p->first : zeros;
    const size_t bias_step = p->bias ? RV_LANES : 0;
    rv_end end = j->end;
    end.y = p->y + at * p->y_pixel + p->first;
    end.residual = p->residual ? p->residual + at * p->residual_pixel + p->first : NULL;
    const size_t residual_step = p->residual ? RV_LANES : 0;
    rv sum[PIXELS][RV_WIDE];
    for (size_t v = 0; v < whole; v++) {
        if (next.x && v * RV_LANES % CACHE_LINE == 0)
            fetch(&next, v * RV_LANES * sizeof(float), pixels, stride ? pixels * stride : pixels);
        const float *w = weights + v * RV_LANES / DP_ROWS_PANEL * panel + v * RV_LANES % DP_ROWS_PANEL;
        tile_sums(t, x + v * RV_LANES, w, bias, RV_LANES, pixels, kernel, stride, how, sum);
        if (n == pixels)
            rv_end_tile(&end, (size_t)pixels, 1, sum);
        else
            rv_end_some(&end, (size_t)pixels, (size_t)n, sum);
        bias += bias_step;
        end.y += RV_LANES;
        end.residual += residual_step;
    }
}

/* All channels of n <= pixels windows, from column `column` of the image on. */
DP_INLINE void tile_body(const job *j, const window_lines *w, ptrdiff_t column, ptrdiff_t n, ptrdiff_t at,
                         const ptrdiff_t pixels, const ptrdiff_t kernel, const ptrdiff_t stride) {
    const dp_rows_depthwise *p = j->part;
    const shape t = {.pixel = p->x_pixel,
                     .next_line = p->dilation[0] * p->x_line,
                     .count = w->count,
                     .taps = p->kernel[1],
                     .step = stride ? stride : p->stride[1],
                     .dilation = p->dilation[1],
                     .low = -column,
                     .high = p->in[1] - column};
    const ptrdiff_t reach = (pixels - 1) * t.step + (t.taps - 1) * t.dilation;
    const float *x = w->x + column * t.pixel, *weights = p->panels + w->first_tap * DP_ROWS_PANEL;
    const float *panels = weights + p->first / DP_ROWS_PANEL * j->panel;
    const ahead next = look_ahead(j, w, column, at, pixels);
    if (t.low <= 0 && reach < t.high)
        tile_vectors(j, t, x + p->first, panels, n, at, next, pixels, kernel, stride, INSIDE);
    else
        tile_vectors(j, t, x + p->first, panels, n, at, next, pixels, kernel, stride, COLUMNS);
    if (!j->rest)
        return;
    rv sum[PIXELS][RV_WIDE];
    rv_end end = j->end;
    tile_sums(t, x + j->rest_at, j->rest_weights + w->first_tap * DP_ROWS_PANEL, j->rest_bias, j->rest, pixels, kernel,
              stride, COLUMNS_AND_LANES, sum);
    end.columns = j->rest;
    end.y = p->y + at * p->y_pixel + j->rest_at;
    end.residual = p->residual ? p->residual + at * p->residual_pixel + j->rest_at : NULL;
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
    j.panel = (size_t)(p->kernel[0] * p->kernel[1]) * DP_ROWS_PANEL;
    j.end.y_stride = p->y_pixel;
    j.end.residual_stride = p->residual_pixel;
    j.end.columns = RV_LANES;
    take_rest(&j, kept);
    for (ptrdiff_t line = p->line; line < p->line + p->lines; line++) {
        const window_lines w = lines_of(p, line);
        fn(&j, &w, line);
    }
}
