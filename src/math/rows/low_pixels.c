/*
 * low_pixels.c - depthwise convolutions of bfloat16 with AVX-512 BF16: a tile is 8 or 4 pixels of a line by 32
 * channels. A vector of 32 elements gives those at even places by a shift and those at odd places by a mask, so weights
 * and bias are put in that order first; both halves come together again when they are rounded. Order as in depthwise.c.
 */
#define DP_MATH_RUNG 2
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define LOW_STORE_BF16(p, i, x) _mm256_storeu_si256((void *)((p) + (i)), (__m256i)_mm512_cvtneps_pbh((__m512)(x)))
#define LOW_STORE_BF16_N(p, i, n, x)                                                                                   \
    _mm256_mask_storeu_epi16((p) + (i), (__mmask16)((1u << (n)) - 1), (__m256i)_mm512_cvtneps_pbh((__m512)(x)))
#include "math/rows/low_finish.h"

enum { PIXELS = 8, CHANNELS = LOW_COLUMNS, KERNEL_MOST = 5 };

/* What does not change from line to line. */
typedef struct job {
    const dp_low_depthwise *part;
    const dp_rows_finish *finish;
    const float *weights; /* [channels / 32][tap][even, odd][16] */
    const float *bias;    /* [channels / 32][even, odd][16] */
    __m512 low, high, alpha, beta;
    bool is_plain, is_swish; /* the end is a clip, a hard swish: in registers */
} job;

/* A tile: how it lies in the image. */
typedef struct shape {
    ptrdiff_t pixel, next_line, count; /* elements from column to column, from line to line; lines */
    ptrdiff_t taps, step, dilation;    /* along x */
    ptrdiff_t low, high;               /* columns of the tile that lie in the image */
} shape;

/* 32 channels of n pixels, at even and odd places. */
typedef struct sums {
    __m512 of[PIXELS][2];
} sums;

DP_INLINE __m512i column_at(const uint16_t *at, ptrdiff_t k, const shape *t, __mmask32 there, const bool inside,
                            const bool full) {
    if (!inside && (k < t->low || k >= t->high))
        return _mm512_setzero_si512();
    return full ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi16(there, at);
}
DP_INLINE __m512 even_of(__m512i v) {
    return (__m512)_mm512_slli_epi32(v, 16);
}
DP_INLINE __m512 odd_of(__m512i v) {
    return (__m512)_mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000));
}

/* kernel and stride are constants where they are common: 0 means as the shape says. */
DP_INLINE void tile_sums(const shape t, const uint16_t *x, const float *w, const float *bias, __mmask32 there,
                         const ptrdiff_t pixels, const ptrdiff_t kernel, const ptrdiff_t stride, const bool inside,
                         const bool full, sums *s) {
    const __m512 first[2] = {_mm512_load_ps(bias), _mm512_load_ps(bias + 16)};
    RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++) {
        s->of[o][0] = first[0];
        s->of[o][1] = first[1];
    }
    for (ptrdiff_t ky = 0; ky < t.count; ky++, x += t.next_line, w += t.taps * CHANNELS) {
        if (!kernel) {
            for (ptrdiff_t kx = 0; kx < t.taps; kx++) {
                const __m512 even = _mm512_load_ps(w + kx * CHANNELS), odd = _mm512_load_ps(w + kx * CHANNELS + 16);
                RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++) {
                    const ptrdiff_t k = o * t.step + kx * t.dilation;
                    const __m512i v = column_at(x + k * t.pixel, k, &t, there, inside, full);
                    s->of[o][0] = _mm512_fmadd_ps(even_of(v), even, s->of[o][0]);
                    s->of[o][1] = _mm512_fmadd_ps(odd_of(v), odd, s->of[o][1]);
                }
            }
            continue;
        }
        __m512 b[KERNEL_MOST][2];
        RV_UNROLL for (ptrdiff_t kx = 0; kx < kernel; kx++) {
            b[kx][0] = _mm512_load_ps(w + kx * CHANNELS);
            b[kx][1] = _mm512_load_ps(w + kx * CHANNELS + 16);
        }
        const uint16_t *at = x;
        _Pragma("GCC unroll 32") for (ptrdiff_t k = 0; k < (pixels - 1) * stride + kernel; k++) {
            const __m512i v = column_at(at, k, &t, there, inside, full);
            const __m512 even = even_of(v), odd = odd_of(v);
            at += t.pixel;
            RV_POINTER(at);
            RV_UNROLL for (ptrdiff_t kx = 0; kx < kernel; kx++) {
                if (k >= kx && (k - kx) % stride == 0 && (k - kx) / stride < pixels) {
                    s->of[(k - kx) / stride][0] = _mm512_fmadd_ps(even, b[kx][0], s->of[(k - kx) / stride][0]);
                    s->of[(k - kx) / stride][1] = _mm512_fmadd_ps(odd, b[kx][1], s->of[(k - kx) / stride][1]);
                }
            }
        }
    }
}

/* Words of two halves alternately. */
DP_INLINE __m512i alternate(__m512i halves) {
    static const uint16_t order[32]
        __attribute__((aligned(64))) = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_load_si512(order), halves);
}

/* Any other end: through a piece of the first cache. */
static __attribute__((noinline)) void end_slowly(const job *j, const sums *s, ptrdiff_t pixels, ptrdiff_t at,
                                                 size_t channel, size_t channels) {
    static const uint32_t order[2][16]
        __attribute__((aligned(64))) = {{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23},
                                        {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31}};
    const dp_low_depthwise *p = j->part;
    float room[PIXELS * CHANNELS] __attribute__((aligned(64)));
    for (ptrdiff_t o = 0; o < pixels; o++)
        for (int h = 0; h < 2; h++)
            _mm512_store_ps(room + o * CHANNELS + h * 16,
                            _mm512_permutex2var_ps(s->of[o][0], _mm512_load_si512(order[h]), s->of[o][1]));
    const dp_low_end end = {.finish = j->finish,
                            .columns = channels,
                            .y = p->y + at * p->y_pixel + channel,
                            .y_stride = p->y_pixel,
                            .residual = p->residual ? p->residual + at * p->residual_pixel + channel : NULL,
                            .residual_stride = p->residual_pixel};
    low_finish(&end, room, CHANNELS, (size_t)pixels, DP_LOW_BF16);
}

DP_INLINE __m512 ended(const job *j, __m512 x) {
    if (j->is_plain)
        return _mm512_min_ps(j->high, _mm512_max_ps(j->low, x)); /* NaN is handed on: the second operand */
    const __m512 gate = _mm512_fmadd_ps(x, _mm512_set1_ps(1.0f / 6), _mm512_set1_ps(0.5f));
    x = _mm512_mul_ps(x, _mm512_min_ps(_mm512_set1_ps(1), _mm512_max_ps(_mm512_setzero_ps(), gate)));
    return _mm512_fmadd_ps(x, j->alpha, j->beta);
}

DP_INLINE void tile_end(const job *j, const sums *s, ptrdiff_t pixels, ptrdiff_t n, ptrdiff_t at, size_t channel,
                        size_t channels, __mmask32 there) {
    const dp_low_depthwise *p = j->part;
    if (!(j->is_plain || j->is_swish) || p->residual) {
        end_slowly(j, s, n, at, channel, channels);
        return;
    }
    uint16_t *y = p->y + at * p->y_pixel + channel;
    RV_UNROLL for (ptrdiff_t o = 0; o < pixels; o++) {
        if (o == n)
            return;
        const __m512i out = alternate((__m512i)_mm512_cvtne2ps_pbh(ended(j, s->of[o][1]), ended(j, s->of[o][0])));
        if (channels >= CHANNELS)
            _mm512_storeu_si512(y, out);
        else
            _mm512_mask_storeu_epi16(y, there, out);
        y += p->y_pixel;
    }
}

/* All channels of n <= pixels windows, from column `column` of the image on; x: its column 0 of the first line. */
DP_INLINE void tile_body(const job *j, const uint16_t *x, ptrdiff_t first_tap, ptrdiff_t count, ptrdiff_t column,
                         ptrdiff_t n, ptrdiff_t at, const ptrdiff_t pixels, const ptrdiff_t kernel,
                         const ptrdiff_t stride) {
    const dp_low_depthwise *p = j->part;
    const shape t = {.pixel = p->x_pixel,
                     .next_line = p->dilation[0] * p->x_line,
                     .count = count,
                     .taps = kernel ? kernel : p->kernel[1],
                     .step = stride ? stride : p->stride[1],
                     .dilation = p->dilation[1],
                     .low = -column,
                     .high = p->in[1] - column};
    const bool inside = t.low <= 0 && (pixels - 1) * t.step + (t.taps - 1) * t.dilation < t.high;
    const float *w = j->weights + first_tap * CHANNELS, *bias = j->bias;
    const ptrdiff_t next = p->kernel[0] * p->kernel[1] * CHANNELS;
    x += column * t.pixel;
    for (size_t c = 0; c < p->columns; c += CHANNELS, w += next, bias += CHANNELS) {
        const size_t channel = p->first + c, channels = p->columns - c;
        const __mmask32 there = channels < CHANNELS ? (1u << channels) - 1 : ~0u;
        sums s;
        if (inside && channels >= CHANNELS)
            tile_sums(t, x + channel, w, bias, there, pixels, kernel, stride, true, true, &s);
        else
            tile_sums(t, x + channel, w, bias, there, pixels, kernel, stride, false, false, &s);
        tile_end(j, &s, pixels, n, at, channel, channels < CHANNELS ? channels : CHANNELS, there);
    }
}

/* All pixels of a line of the output. */
DP_INLINE void line_body(const job *j, ptrdiff_t line, const ptrdiff_t kernel, const ptrdiff_t stride) {
    const dp_low_depthwise *p = j->part;
    const ptrdiff_t step = stride ? stride : p->stride[1], from = line * p->stride[0] - p->pad[0], by = p->dilation[0];
    const ptrdiff_t low = from < 0 ? (-from + by - 1) / by : 0;
    ptrdiff_t high = p->in[0] > from ? (p->in[0] - from + by - 1) / by : 0;
    high = high < p->kernel[0] ? high : p->kernel[0];
    const ptrdiff_t count = low < high ? high - low : 0;
    const uint16_t *x = count ? p->x + (from + low * by) * p->x_line : p->x;
    for (ptrdiff_t o = 0, n; o < p->out_width; o += n) {
        const ptrdiff_t left = p->out_width - o, column = o * step - p->pad[1], at = line * p->out_width + o;
        n = left < PIXELS ? left : PIXELS;
        if (left > PIXELS / 2)
            tile_body(j, x, low * p->kernel[1], count, column, n, at, PIXELS, kernel, stride);
        else
            tile_body(j, x, low * p->kernel[1], count, column, n, at, PIXELS / 2, kernel, stride);
    }
}

typedef void (*line_fn)(const job *j, ptrdiff_t line);
#define LINE(kernel, stride)                                                                                           \
    static void line_##kernel##_by_##stride(const job *j, ptrdiff_t line) {                                            \
        line_body(j, line, kernel, stride);                                                                            \
    }
LINE(0, 0)
LINE(3, 1)
LINE(3, 2)
LINE(5, 1)
LINE(5, 2)

static line_fn choose_line(const dp_low_depthwise *p) {
    if (p->dilation[1] != 1 || p->stride[1] > 2)
        return line_0_by_0;
    if (p->kernel[1] == 3)
        return p->stride[1] == 1 ? line_3_by_1 : line_3_by_2;
    if (p->kernel[1] == 5)
        return p->stride[1] == 1 ? line_5_by_1 : line_5_by_2;
    return line_0_by_0;
}

/* Weights and bias with even and odd channels apart. */
static void arrange(const dp_low_depthwise *p, float *weights, float *bias) {
    const size_t taps = (size_t)(p->kernel[0] * p->kernel[1]);
    for (size_t c = 0; c < p->columns; c += CHANNELS, bias += CHANNELS)
        for (size_t t = 0; t <= taps; t++)
            for (size_t i = 0; i < CHANNELS; i++) {
                const size_t at = p->first + c + i, to = i % 2 * 16 + i / 2;
                const bool there = c + i < p->columns;
                if (t == taps)
                    bias[to] = there && p->bias ? p->bias[at] : 0;
                else
                    weights[(c * taps + t * CHANNELS) + to] =
                        there ? p->panels[(at / DP_ROWS_PANEL * taps + t) * DP_ROWS_PANEL + at % DP_ROWS_PANEL] : 0;
            }
}

void dp_low_pixels(const dp_low_depthwise *p, const dp_rows_finish *finish, void *room) {
    const size_t taps = (size_t)(p->kernel[0] * p->kernel[1]), channels = dp_low_up(p->columns, CHANNELS);
    float *weights = room, *bias = weights + taps * channels;
    const rv_end end = rv_end_of(finish);
    const bool affine = finish->activation == DP_ROWS_HARD_SWISH_AFFINE;
    const job j = {.part = p,
                   .finish = finish,
                   .weights = weights,
                   .bias = bias,
                   .low = _mm512_set1_ps(end.has_low ? end.low : -INFINITY),
                   .high = _mm512_set1_ps(end.has_high ? end.high : INFINITY),
                   .alpha = _mm512_set1_ps(affine ? finish->alpha : 1),
                   .beta = _mm512_set1_ps(affine ? finish->beta : 0),
                   .is_plain = finish->activation <= DP_ROWS_CLIP,
                   .is_swish = affine || finish->activation == DP_ROWS_HARD_SWISH};
    const line_fn fn = choose_line(p);
    arrange(p, weights, bias);
    for (ptrdiff_t line = p->line; line < p->line + p->lines; line++)
        fn(&j, line);
}
