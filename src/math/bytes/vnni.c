/* vnni.c - AVX-512 VNNI: four products of bytes per lane and instruction, for products and depthwise convolutions. */
#include "math/bytes/finish512.h"

#include <string.h>

enum { ROWS = 6, VECTORS = 4 };
#define UNROLL _Pragma("GCC unroll 8")

FB_INLINE void body(const size_t rows, const size_t vectors, const uint8_t *a, size_t a_stride, const int8_t *w,
                    size_t w_stride, size_t groups, int32_t *sums) {
    __m512i sum[ROWS][VECTORS];
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = _mm512_setzero_si512();
    }
    for (size_t g = 0; g < groups; g++, a += 4, w += 64) {
        __m512i b[VECTORS];
        UNROLL for (size_t v = 0; v < vectors; v++) b[v] = _mm512_loadu_si512(w + v * w_stride);
        UNROLL for (size_t r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, a + r * a_stride, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], x, b[v]);
        }
    }
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t v = 0; v < vectors; v++) _mm512_storeu_si512(sums + (r * vectors + v) * 16, sum[r][v]);
    }
}

#define BY_VECTORS(vectors)                                                                                            \
    static void multiply_##vectors(const uint8_t *a, size_t a_stride, size_t rows, const int8_t *w, size_t w_stride,   \
                                   size_t groups, int32_t *sums) {                                                     \
        size_t r = 0;                                                                                                  \
        for (; r + ROWS <= rows; r += ROWS)                                                                            \
            body(ROWS, vectors, a + r * a_stride, a_stride, w, w_stride, groups, sums + r * vectors * 16);             \
        for (; r < rows; r++)                                                                                          \
            body(1, vectors, a + r * a_stride, a_stride, w, w_stride, groups, sums + r * vectors * 16);                \
    }
BY_VECTORS(1)
BY_VECTORS(2)
BY_VECTORS(3)
BY_VECTORS(4)

void dp_bytes_product_vnni(const dp_bytes_block *b, const dp_bytes_finish *f, void *room) {
    enum { AT_ONCE = 4 * ROWS };
    const size_t panel_bytes = dp_bytes_depth(b->k) * 16, groups = (b->k + 3) / 4;
    for (size_t at = 0; at < b->columns; at += 16 * VECTORS) {
        const size_t left = b->columns - at, columns = left < 16 * VECTORS ? left : 16 * VECTORS;
        const size_t vectors = (columns + 15) / 16, column = b->first + at;
        const int8_t *w = b->panels + column / 16 * panel_bytes;
        for (size_t r = 0; r < b->rows; r += AT_ONCE) {
            const size_t rows = b->rows - r < AT_ONCE ? b->rows - r : AT_ONCE;
            const uint8_t *a = b->a + r * b->a_stride;
            if (vectors == 4)
                multiply_4(a, b->a_stride, rows, w, panel_bytes, groups, room);
            else if (vectors == 3)
                multiply_3(a, b->a_stride, rows, w, panel_bytes, groups, room);
            else if (vectors == 2)
                multiply_2(a, b->a_stride, rows, w, panel_bytes, groups, room);
            else
                multiply_1(a, b->a_stride, rows, w, panel_bytes, groups, room);
            fb_finish(b, f, room, r, rows, column, columns, vectors);
        }
    }
}

/* Depthwise. */

/* The bytes of 16 channels of four lines, as 16 dwords of four. */
FB_INLINE __m512i weave(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, __mmask16 mask) {
    const __m512i dwords = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i x = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, a));
    x = _mm512_inserti32x4(x, _mm_maskz_loadu_epi8(mask, b), 1);
    x = _mm512_inserti32x4(x, _mm_maskz_loadu_epi8(mask, c), 2);
    x = _mm512_inserti32x4(x, _mm_maskz_loadu_epi8(mask, d), 3);
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(dwords, x), bytes);
}
FB_INLINE __m512i weave_all(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d) {
    const __m512i dwords = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const void *)a));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)b), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)c), 2);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)d), 3);
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(dwords, x), bytes);
}

/* Dword [(group * lines + line) * kernel x + kx]: the taps of that line of the output in the group's four lines. */
static void weave_weights(const dp_bytes_depthwise *p, const dp_bytes_strip *s, size_t channel, __mmask16 mask,
                          __m512i *out) {
    static const uint8_t nothing[16];
    for (ptrdiff_t g = 0; g < s->groups; g++)
        for (ptrdiff_t l = 0; l < s->lines; l++)
            for (ptrdiff_t kx = 0; kx < p->kernel[1]; kx++) {
                const uint8_t *taps[4];
                for (ptrdiff_t i = 0; i < 4; i++) {
                    const ptrdiff_t ky = 4 * g + i - l * p->stride[0];
                    const size_t tap = (size_t)((ky > 0 ? ky : 0) * p->kernel[1] + kx);
                    taps[i] = ky < 0 || ky >= p->kernel[0]
                                  ? nothing
                                  : (const uint8_t *)p->weights + tap * p->weight_step + channel;
                }
                *out++ = weave(taps[0], taps[1], taps[2], taps[3], mask);
            }
}

/* Group g of the lines that the strip from line oy of the output on reads, with what stands beside them. */
static void weave_lines(const dp_bytes_depthwise *p, const dp_bytes_strip *s, ptrdiff_t oy, ptrdiff_t g, size_t channel,
                        __mmask16 mask, __m512i *out) {
    const uint8_t *outside = p->outside + channel, *line[4];
    ptrdiff_t step[4];
    for (ptrdiff_t i = 0; i < 4; i++) {
        const ptrdiff_t y = oy * p->stride[0] - p->pad[0] + (4 * g + i) * p->dilation[0];
        const bool inside = y >= 0 && y < p->in[0];
        line[i] = inside ? p->x + y * p->x_line + channel : outside;
        step[i] = inside ? p->x_pixel : 0;
    }
    const __m512i beside = weave(outside, outside, outside, outside, mask);
    ptrdiff_t i = 0, n = p->in[1] + p->pad[1] < s->width ? p->in[1] : s->width - p->pad[1];
    for (; i < p->pad[1] && i < s->width; i++)
        out[i] = beside;
    const uint8_t *a = line[0], *b = line[1], *c = line[2], *d = line[3];
    for (; n > 0; n--, i++, a += step[0], b += step[1], c += step[2], d += step[3])
        out[i] = mask == 0xffff ? weave_all(a, b, c, d) : weave(a, b, c, d, mask);
    for (; i < s->width; i++)
        out[i] = beside;
}

typedef struct strip_job {
    const dp_bytes_depthwise *p;
    dp_bytes_strip s;
    const __m512i *weights, *pixels;
    const fb_numbers *numbers;
    uint8_t *y; /* of the first of these channels */
    bool activation;
} strip_job;

enum { PIXELS = 4 };

/* Four sums, of pixels side by side. */
FB_INLINE void end_four(const strip_job *j, const __m512i sum[PIXELS], uint8_t *y, ptrdiff_t pixels) {
    __m512i q[PIXELS];
    const ptrdiff_t step = j->p->y_pixel;
    FB_UNROLL for (size_t i = 0; i < PIXELS; i++) q[i] = _mm512_cvtps_epi32(
        j->activation ? fb_value(sum[i], j->numbers, 0, true, NULL) : fb_value(sum[i], j->numbers, 0, false, NULL));
    const __m512i bytes = fb_pack(q);
    const __mmask16 m = j->numbers->mask[0];
    _mm_mask_storeu_epi8(y, m, _mm512_castsi512_si128(bytes));
    if (pixels > 1)
        _mm_mask_storeu_epi8(y + step, m, _mm512_extracti32x4_epi32(bytes, 1));
    if (pixels > 2)
        _mm_mask_storeu_epi8(y + 2 * step, m, _mm512_extracti32x4_epi32(bytes, 2));
    if (pixels > 3)
        _mm_mask_storeu_epi8(y + 3 * step, m, _mm512_extracti32x4_epi32(bytes, 3));
}

/* Pixels [ox, ox + pixels) of `lines` lines of the output. */
FB_INLINE void sum_pixels(const strip_job *j, const size_t lines, const ptrdiff_t groups, const ptrdiff_t width,
                          ptrdiff_t oy, ptrdiff_t ox, ptrdiff_t pixels) {
    const dp_bytes_depthwise *p = j->p;
    const ptrdiff_t step = p->stride[1], spread = p->dilation[1];
    __m512i sum[DP_BYTES_LINES][PIXELS];
    FB_UNROLL for (size_t l = 0; l < lines; l++) {
        FB_UNROLL for (size_t i = 0; i < PIXELS; i++) sum[l][i] = _mm512_setzero_si512();
    }
    for (ptrdiff_t g = 0; g < groups; g++) {
        const __m512i *x = j->pixels + g * j->s.width + ox * step;
        const __m512i *w = j->weights + g * (ptrdiff_t)lines * width;
        for (ptrdiff_t kx = 0; kx < width; kx++, x += spread, w++) {
            __m512i b[DP_BYTES_LINES];
            FB_UNROLL for (size_t l = 0; l < lines; l++) b[l] = w[(ptrdiff_t)l * width];
            FB_UNROLL for (ptrdiff_t i = 0; i < PIXELS; i++) {
                const __m512i a = x[i * step];
                FB_UNROLL for (size_t l = 0; l < lines; l++) sum[l][i] = _mm512_dpbusd_epi32(sum[l][i], a, b[l]);
            }
        }
    }
    FB_UNROLL for (size_t l = 0; l < lines; l++) if (oy + (ptrdiff_t)l < p->line + p->lines)
        end_four(j, sum[l], j->y + ((oy + (ptrdiff_t)l) * p->out_width + ox) * p->y_pixel, pixels);
}

/* L lines, G groups and a window of K columns, or (0) as many as there are. */
#define STRIP(L, G, K)                                                                                                 \
    static void strip_##L##_##G##_##K(strip_job *j, ptrdiff_t oy) {                                                    \
        const ptrdiff_t n_groups = G ? G : j->s.groups, columns = K ? K : j->p->kernel[1];                             \
        for (ptrdiff_t ox = 0; ox < j->p->out_width; ox += PIXELS)                                                     \
            sum_pixels(j, L, n_groups, columns, oy, ox, j->p->out_width - ox);                                         \
    }
STRIP(1, 0, 0)
STRIP(2, 0, 0)
STRIP(4, 0, 0)
STRIP(1, 1, 3)
STRIP(2, 1, 3)
STRIP(2, 2, 5)
STRIP(4, 2, 5)

typedef void (*strip_fn)(strip_job *j, ptrdiff_t oy);
static strip_fn strip_for(const dp_bytes_strip *s, ptrdiff_t kernel) {
    if (s->groups == 1 && kernel == 3 && s->lines < 4)
        return s->lines == 1 ? strip_1_1_3 : strip_2_1_3;
    if (s->groups == 2 && kernel == 5 && s->lines > 1)
        return s->lines == 2 ? strip_2_2_5 : strip_4_2_5;
    return s->lines == 1 ? strip_1_0_0 : s->lines == 2 ? strip_2_0_0 : strip_4_0_0;
}

void dp_bytes_depthwise_vnni(const dp_bytes_depthwise *p, const dp_bytes_finish *f, void *room) {
    const dp_bytes_strip s = dp_bytes_strip_of(p);
    __m512i *weights = room, *pixels = weights + s.groups * s.lines * p->kernel[1];
    const strip_fn strip = strip_for(&s, p->kernel[1]);
    /* the last pixels are done by fours: what stands behind a line is read */
    for (size_t at = 0; at < p->columns; at += 16) {
        const size_t channel = p->first + at, n = p->columns - at < 16 ? p->columns - at : 16;
        fb_numbers numbers;
        if (f->activation)
            fb_take(f, channel, n, 1, true, false, &numbers);
        else
            fb_take(f, channel, n, 1, false, false, &numbers);
        weave_weights(p, &s, channel, numbers.mask[0], weights);
        strip_job j = {p, s, weights, pixels, &numbers, p->y + channel, f->activation != DP_BYTES_NONE};
        for (ptrdiff_t oy = p->line; oy < p->line + p->lines; oy += s.lines) {
            for (ptrdiff_t g = 0; g < s.groups; g++)
                weave_lines(p, &s, oy, g, channel, numbers.mask[0], pixels + g * s.width);
            strip(&j, oy);
        }
    }
}
