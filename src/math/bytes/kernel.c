/* kernel.c - the functions of bytes.h on the rungs of the ladder: plain loops, and pairs of int16 where there are
 * vectors. */
#include "math/bytes/rung.h"

#include <string.h>

#include "math/vec.h"

#if DP_MATH_RUNG == DP_RUNG_AVX512
#include "math/bytes/finish512.h"
#endif

#define NEAREST(v) ((v) + 0x1.8p23f - 0x1.8p23f) /* ties to even, |v| below 2^22 */

DP_INLINE float bounded(float v) {
    v = v == v ? v : 0;
    v = v < 0 ? 0 : v;
    return v > 255 ? 255 : v;
}

enum { AT_ONCE = 64 };

DP_INLINE void to_bytes(uint8_t *to, const float *x, size_t n) {
    int32_t whole[AT_ONCE];
    DP_IVDEP for (size_t i = 0; i < n; i++) whole[i] = (int32_t)NEAREST(bounded(x[i]));
    DP_IVDEP for (size_t i = 0; i < n; i++) to[i] = (uint8_t)whole[i];
}

/* n (up to AT_ONCE) sums of columns [column, column + n). */
static void end_row(const dp_bytes_finish *f, const int32_t *sums, const uint8_t *residual, size_t column, size_t n,
                    float *floats, uint8_t *bytes) {
    float v[AT_ONCE];
    const float *scale = f->scale + column, *bias = f->bias + column;
    DP_IVDEP for (size_t i = 0; i < n; i++) v[i] = (float)sums[i] * scale[i] + bias[i];
    if (residual) {
        const float *factor = f->residual_scale + column;
        DP_IVDEP for (size_t i = 0; i < n; i++) v[i] += (float)residual[i] * factor[i];
    }
    if (f->activation == DP_BYTES_HARD_SWISH) {
        const float *after = f->after + column, *shift = f->shift + column;
        for (size_t i = 0; i < n; i++) {
            float t = v[i] * (1.0f / 6) + 0.5f;
            t = t < 0 ? 0 : t;
            t = t > 1 ? 1 : t;
            v[i] = v[i] * t * after[i] + shift[i];
        }
    }
    if (floats)
        memcpy(floats, v, n * sizeof *v);
    else
        to_bytes(bytes, v, n);
}

#if DP_MATH_RUNG == DP_RUNG_GENERIC
enum { VECTORS = 1, ROWS = 1, COLUMNS = 16 };
static void multiply(const uint8_t *a, size_t a_stride, size_t rows, const int8_t *w, size_t w_stride, size_t vectors,
                     size_t groups, int32_t *sums) {
    (void)a_stride, (void)rows, (void)vectors, (void)w_stride;
    int32_t sum[COLUMNS] = {0};
    for (size_t g = 0; g < groups; g++, a += 4, w += 4 * COLUMNS)
        for (size_t c = 0; c < COLUMNS; c++)
            sum[c] += a[0] * w[4 * c] + a[1] * w[4 * c + 1] + a[2] * w[4 * c + 2] + a[3] * w[4 * c + 3];
    memcpy(sums, sum, sizeof sum);
}
#else
#if DP_MATH_RUNG == DP_RUNG_AVX512
enum { ROWS = 8, COLUMNS = 32, LANES = 16 };
typedef __m512i bi;
#define BI_OF(name) _mm512_##name
#define BI_LOAD(p) _mm512_loadu_si512(p)
#define BI_STORE(p, v) _mm512_storeu_si512(p, v)
#define BI_AND(a, b) _mm512_and_si512(a, b)
#define BI_ZERO() _mm512_setzero_si512()
#else
#include <immintrin.h>
enum { ROWS = 4, COLUMNS = 16, LANES = 8 };
typedef __m256i bi;
#define BI_OF(name) _mm256_##name
#define BI_LOAD(p) _mm256_loadu_si256((const void *)(p))
#define BI_STORE(p, v) _mm256_storeu_si256((void *)(p), v)
#define BI_AND(a, b) _mm256_and_si256(a, b)
#define BI_ZERO() _mm256_setzero_si256()
#endif
#define UNROLL _Pragma("GCC unroll 8")
enum { VECTORS = COLUMNS / LANES };

/* Rows of four bytes: the even ones and the odd ones as pairs of int16. */
DP_INLINE void body(const size_t rows, const size_t vectors, const uint8_t *a, size_t a_stride, const int8_t *w,
                    size_t w_stride, size_t groups, int32_t *sums) {
    bi sum[ROWS][VECTORS];
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = BI_ZERO();
    }
    for (size_t g = 0; g < groups; g++, a += 4) {
        bi even[VECTORS], odd[VECTORS];
        UNROLL for (size_t v = 0; v < vectors; v++) {
            const bi b = BI_LOAD(w + (v * LANES / 16) * w_stride + g * 64 + v * LANES % 16 * 4);
            even[v] = BI_OF(srai_epi16)(BI_OF(slli_epi16)(b, 8), 8);
            odd[v] = BI_OF(srai_epi16)(b, 8);
        }
        UNROLL for (size_t r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, a + r * a_stride, sizeof four);
            const bi x = BI_OF(set1_epi32)(four), x_even = BI_AND(x, BI_OF(set1_epi16)(255)),
                     x_odd = BI_OF(srli_epi16)(x, 8);
            UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = BI_OF(add_epi32)(
                sum[r][v], BI_OF(add_epi32)(BI_OF(madd_epi16)(x_even, even[v]), BI_OF(madd_epi16)(x_odd, odd[v])));
        }
    }
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t v = 0; v < vectors; v++) BI_STORE(sums + r * vectors * LANES + v * LANES, sum[r][v]);
    }
}

static void multiply(const uint8_t *a, size_t a_stride, size_t rows, const int8_t *w, size_t w_stride, size_t vectors,
                     size_t groups, int32_t *sums) {
    if (rows == ROWS && vectors == VECTORS)
        body(ROWS, VECTORS, a, a_stride, w, w_stride, groups, sums);
    else if (rows == ROWS)
        body(ROWS, VECTORS / 2, a, a_stride, w, w_stride, groups, sums);
    else
        for (size_t r = 0; r < rows; r++)
            if (vectors == VECTORS)
                body(1, VECTORS, a + r * a_stride, a_stride, w, w_stride, groups, sums + r * VECTORS * LANES);
            else
                body(1, VECTORS / 2, a + r * a_stride, a_stride, w, w_stride, groups, sums + r * VECTORS / 2 * LANES);
}
#endif

static void product(const dp_bytes_block *b, const dp_bytes_finish *f, void *room) {
    int32_t *sums = room;
    const size_t panel_bytes = dp_bytes_depth(b->k) * 16, groups = (b->k + 3) / 4;
    for (size_t at = 0; at < b->columns; at += COLUMNS) {
        const size_t columns = b->columns - at < COLUMNS ? b->columns - at : COLUMNS, column = b->first + at;
        const size_t wide = columns <= 16 ? 16 : COLUMNS;
        const int8_t *w = b->panels + column / 16 * panel_bytes;
        for (size_t r = 0; r < b->rows; r += ROWS) {
            const size_t rows = b->rows - r < ROWS ? b->rows - r : ROWS;
            multiply(b->a + r * b->a_stride, b->a_stride, rows, w, panel_bytes, VECTORS * wide / COLUMNS, groups, sums);
#if DP_MATH_RUNG == DP_RUNG_AVX512
            fb_finish(b, f, sums, r, rows, column, columns, wide / 16);
#else
            for (size_t i = 0; i < rows; i++) {
                const ptrdiff_t y = (ptrdiff_t)(r + i) * b->y_stride + (ptrdiff_t)column;
                end_row(f, sums + i * wide,
                        b->residual ? b->residual + (ptrdiff_t)(r + i) * b->residual_stride + (ptrdiff_t)column : NULL,
                        column, columns, b->as_float ? (float *)b->y + y : NULL,
                        b->as_float ? NULL : (uint8_t *)b->y + y);
            }
#endif
        }
    }
}

/* n channels of one position of the output; `taps` addresses, of channel `first`. */
static void depthwise_position(const dp_bytes_depthwise *p, const dp_bytes_finish *f, const uint8_t *const *taps,
                               size_t n_taps, size_t first, size_t n, uint8_t *y) {
    int32_t sum[AT_ONCE] = {0};
    for (size_t t = 0; t < n_taps; t++) {
        const uint8_t *x = taps[t] + first;
        const int8_t *w = p->weights + t * p->weight_step + first;
        DP_IVDEP for (size_t c = 0; c < n; c++) sum[c] += (int16_t)((int16_t)x[c] * (int16_t)w[c]);
    }
    end_row(f, sum, NULL, first, n, NULL, y);
}

static void depthwise(const dp_bytes_depthwise *p, const dp_bytes_finish *f, void *room) {
    enum { TAPS = 1024 };
    const uint8_t *taps[TAPS];
    const size_t n_taps = (size_t)(p->kernel[0] * p->kernel[1]);
    (void)room;
    for (ptrdiff_t oy = p->line; oy < p->line + p->lines; oy++)
        for (ptrdiff_t ox = 0; ox < p->out_width; ox++) {
            const uint8_t **to = taps;
            for (ptrdiff_t ky = 0; ky < p->kernel[0]; ky++)
                for (ptrdiff_t kx = 0; kx < p->kernel[1]; kx++) {
                    const ptrdiff_t iy = oy * p->stride[0] - p->pad[0] + ky * p->dilation[0],
                                    ix = ox * p->stride[1] - p->pad[1] + kx * p->dilation[1];
                    const bool inside = iy >= 0 && iy < p->in[0] && ix >= 0 && ix < p->in[1];
                    *to++ = inside ? p->x + iy * p->x_line + ix * p->x_pixel : p->outside;
                }
            uint8_t *y = p->y + (oy * p->out_width + ox) * p->y_pixel;
            const size_t last = p->first + p->columns;
            for (size_t c = p->first; c < last; c += AT_ONCE)
                depthwise_position(p, f, taps, n_taps, c, last - c < AT_ONCE ? last - c : AT_ONCE, y + c);
        }
}

static void dequantise(float *to, const uint8_t *x, const float *scale, const float *zero, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) to[i] = ((float)x[i] - zero[i]) * scale[i];
}

static void add(uint32_t *sums, const uint8_t *x, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) sums[i] += x[i];
}

#if DP_MATH_RUNG == DP_RUNG_AVX512
/* Sixteen numbers as they are rounded and bounded; a NaN becomes 0. */
DP_INLINE __m512i whole_of(__m512 v) {
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, _mm512_setzero_ps()), _mm512_set1_ps(255)));
}
DP_INLINE __m512 widened(const uint8_t *x, __mmask16 mask) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, x)));
}

/* to[i] = VALUE(i, mask), 64 at a time, and what is left masked */
#define BYTES_LOOP(VALUE)                                                                                              \
    size_t i = 0;                                                                                                      \
    for (; i + 64 <= n; i += 64) {                                                                                     \
        const __m512i q[FB_VECTORS] = {whole_of(VALUE(i, 0xffff)), whole_of(VALUE(i + 16, 0xffff)),                    \
                                       whole_of(VALUE(i + 32, 0xffff)), whole_of(VALUE(i + 48, 0xffff))};              \
        _mm512_storeu_si512(to + i, fb_pack(q));                                                                       \
    }                                                                                                                  \
    for (; i < n; i += 16) {                                                                                           \
        const __mmask16 m = fb_mask(n - i, 0);                                                                         \
        _mm_mask_storeu_epi8(to + i, m, _mm512_cvtepi32_epi8(whole_of(VALUE(i, m))));                                  \
    }

static void quantise(uint8_t *to, const float *x, const float *factor, const float *zero, size_t n) {
#define QUANTISED(at, m)                                                                                               \
    _mm512_add_ps(_mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + (at)), _mm512_maskz_loadu_ps(m, factor + (at))),          \
                  _mm512_maskz_loadu_ps(m, zero + (at)))
    BYTES_LOOP(QUANTISED)
}

static void combine(uint8_t *to, const uint8_t *x, const float *f, const uint8_t *y, const float *g, const float *shift,
                    size_t n) {
#define FIRST(at, m)                                                                                                   \
    _mm512_add_ps(_mm512_mul_ps(widened(x + (at), m), _mm512_maskz_loadu_ps(m, f + (at))),                             \
                  _mm512_maskz_loadu_ps(m, shift + (at)))
#define BOTH(at, m) _mm512_add_ps(FIRST(at, m), _mm512_mul_ps(widened(y + (at), m), _mm512_maskz_loadu_ps(m, g + (at))))
    if (y) {
        BYTES_LOOP(BOTH)
    } else {
        BYTES_LOOP(FIRST)
    }
}

static void quantise_planes(uint8_t *to, const float *const *planes, size_t n_planes, const float *factor,
                            const float *zero, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = fb_mask(n - i, 0);
        __m512i pixels = _mm512_setzero_si512();
        for (size_t c = n_planes; c-- > 0;) {
            const __m512 v =
                _mm512_add_ps(_mm512_mul_ps(_mm512_maskz_loadu_ps(m, planes[c] + i), _mm512_set1_ps(factor[c])),
                              _mm512_set1_ps(zero[c]));
            pixels = _mm512_or_si512(_mm512_slli_epi32(pixels, 8), whole_of(v));
        }
        _mm512_mask_storeu_epi32(to + 4 * i, m, pixels);
    }
}
#else
static void quantise(uint8_t *to, const float *x, const float *factor, const float *zero, size_t n) {
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        float v[AT_ONCE];
        DP_IVDEP for (size_t i = 0; i < count; i++) v[i] = x[first + i] * factor[first + i] + zero[first + i];
        to_bytes(to + first, v, count);
    }
}

static void combine(uint8_t *to, const uint8_t *x, const float *f, const uint8_t *y, const float *g, const float *shift,
                    size_t n) {
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        float v[AT_ONCE];
        DP_IVDEP for (size_t i = 0; i < count; i++) v[i] = (float)x[first + i] * f[first + i] + shift[first + i];
        if (y) {
            DP_IVDEP for (size_t i = 0; i < count; i++) v[i] += (float)y[first + i] * g[first + i];
        }
        to_bytes(to + first, v, count);
    }
}

static void quantise_planes(uint8_t *to, const float *const *planes, size_t n_planes, const float *factor,
                            const float *zero, size_t n) {
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        uint32_t pixel[AT_ONCE] = {0};
        for (size_t c = 0; c < n_planes; c++) {
            const float *x = planes[c] + first, by = factor[c], plus = zero[c];
            DP_IVDEP for (size_t i = 0; i < count; i++) pixel[i] |=
                (uint32_t)(int32_t)NEAREST(bounded(x[i] * by + plus)) << (8 * c);
        }
        memcpy(to + 4 * first, pixel, 4 * count);
    }
}
#endif

#define TABLE_OF(rung)                                                                                                 \
    {                                                                                                                  \
        .name = rung, .product = product, .depthwise = depthwise, .quantise = quantise, .dequantise = dequantise,      \
        .combine = combine, .add = add, .quantise_planes = quantise_planes                                             \
    }
#if DP_MATH_RUNG == DP_RUNG_AVX512
const dp_bytes_table dp_bytes_table_avx512 = TABLE_OF("avx512");
/* The same, but for what matrix tiles and vpdpbusd do. */
#define TABLE_WITH(rung, by_product)                                                                                   \
    {                                                                                                                  \
        .name = rung, .product = by_product, .depthwise = dp_bytes_depthwise_vnni, .quantise = quantise,               \
        .dequantise = dequantise, .combine = combine, .add = add, .quantise_planes = quantise_planes                   \
    }
const dp_bytes_table dp_bytes_table_vnni = TABLE_WITH("vnni", dp_bytes_product_vnni);
const dp_bytes_table dp_bytes_table_amx = TABLE_WITH("amx", dp_bytes_product_amx);
#elif DP_MATH_RUNG == DP_RUNG_AVX2
const dp_bytes_table dp_bytes_table_avx2 = TABLE_OF("avx2");
#else
const dp_bytes_table dp_bytes_table_generic = TABLE_OF("generic");
#endif
