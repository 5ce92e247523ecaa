/* finish512.h - the end of a tile of sums with AVX-512: 64 sums become bytes together. */
#ifndef DOPPEL_MATH_BYTES_FINISH512_H
#define DOPPEL_MATH_BYTES_FINISH512_H

#include "math/bytes/rung.h"

#include <immintrin.h>

#define FB_INLINE static inline __attribute__((always_inline, unused))
#define FB_UNROLL _Pragma("GCC unroll 4")
enum { FB_VECTORS = 4 };

/* The numbers of up to four vectors of columns. */
typedef struct fb_numbers {
    __m512 scale[FB_VECTORS], bias[FB_VECTORS], residual[FB_VECTORS], after[FB_VECTORS], shift[FB_VECTORS];
    __mmask16 mask[FB_VECTORS];
    __mmask64 bytes; /* of a row */
} fb_numbers;

FB_INLINE __mmask16 fb_mask(size_t columns, size_t v) {
    return columns >= 16 * v + 16 ? (__mmask16)0xffff
           : columns <= 16 * v    ? (__mmask16)0
                                  : (__mmask16)((1u << (columns - 16 * v)) - 1);
}

FB_INLINE void fb_take(const dp_bytes_finish *f, size_t first, size_t columns, const size_t vectors,
                       const bool activation, const bool residual, fb_numbers *n) {
    n->bytes = columns >= 64 ? ~(__mmask64)0 : (((__mmask64)1 << columns) - 1);
    FB_UNROLL for (size_t v = 0; v < vectors; v++) {
        const size_t at = first + 16 * v;
        const __mmask16 m = n->mask[v] = fb_mask(columns, v);
        n->scale[v] = _mm512_maskz_loadu_ps(m, f->scale + at);
        n->bias[v] = _mm512_maskz_loadu_ps(m, f->bias + at);
        if (residual)
            n->residual[v] = _mm512_maskz_loadu_ps(m, f->residual_scale + at);
        if (activation) {
            n->after[v] = _mm512_maskz_loadu_ps(m, f->after + at);
            n->shift[v] = _mm512_maskz_loadu_ps(m, f->shift + at);
        }
    }
}

/* Vector v of a row; residual: its bytes, or NULL. */
FB_INLINE __m512 fb_value(__m512i sums, const fb_numbers *n, const size_t v, const bool activation,
                          const uint8_t *residual) {
    __m512 x = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), n->scale[v]), n->bias[v]);
    if (residual) {
        const __m512i q = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(n->mask[v], residual + 16 * v));
        x = _mm512_add_ps(x, _mm512_mul_ps(_mm512_cvtepi32_ps(q), n->residual[v]));
    }
    if (activation) {
        __m512 t = _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.0f / 6)), _mm512_set1_ps(0.5f));
        t = _mm512_min_ps(_mm512_max_ps(t, _mm512_setzero_ps()), _mm512_set1_ps(1));
        x = _mm512_add_ps(_mm512_mul_ps(_mm512_mul_ps(x, t), n->after[v]), n->shift[v]);
    }
    return x;
}

/* Bytes of four vectors, one behind the other. */
FB_INLINE __m512i fb_pack(const __m512i q[FB_VECTORS]) {
    const __m512i turned = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i low = _mm512_packs_epi32(q[0], q[1]), high = _mm512_packs_epi32(q[2], q[3]);
    return _mm512_permutexvar_epi32(turned, _mm512_packus_epi16(low, high));
}

/* rows of `vectors` vectors of sums, one behind the other; columns: those that are written. */
FB_INLINE void fb_rows(const dp_bytes_block *b, const dp_bytes_finish *f, const int32_t *sums, size_t row, size_t rows,
                       size_t column, size_t columns, const size_t vectors, const bool activation,
                       const bool residual) {
    const size_t together = vectors == 1 ? 4 : vectors == 2 ? 2 : 1;
    fb_numbers n;
    fb_take(f, column, columns, vectors, activation, residual, &n);
    uint8_t *y = (uint8_t *)b->y + (ptrdiff_t)row * b->y_stride + (ptrdiff_t)column;
    const uint8_t *other = residual ? b->residual + (ptrdiff_t)row * b->residual_stride + (ptrdiff_t)column : NULL;
    for (size_t r = 0; r < rows; r += together) {
        __m512i q[FB_VECTORS] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                                 _mm512_setzero_si512()};
        FB_UNROLL for (size_t i = 0; i < together; i++) {
            const bool is_row = i == 0 || r + i < rows;
            const uint8_t *at = residual ? other + (ptrdiff_t)(is_row ? i : 0) * b->residual_stride : NULL;
            FB_UNROLL for (size_t v = 0; v < vectors; v++) {
                const __m512i sum = _mm512_loadu_si512(sums + ((is_row ? i : 0) * vectors + v) * 16);
                q[i * vectors + v] = _mm512_cvtps_epi32(fb_value(sum, &n, v, activation, at));
            }
        }
        const __m512i bytes = fb_pack(q);
        if (vectors >= 3)
            _mm512_mask_storeu_epi8(y, n.bytes, bytes);
        if (vectors == 2) {
            _mm256_mask_storeu_epi8(y, (__mmask32)n.bytes, _mm512_castsi512_si256(bytes));
            if (r + 1 < rows)
                _mm256_mask_storeu_epi8(y + b->y_stride, (__mmask32)n.bytes, _mm512_extracti64x4_epi64(bytes, 1));
        }
        if (vectors == 1) {
            _mm_mask_storeu_epi8(y, n.mask[0], _mm512_castsi512_si128(bytes));
            if (r + 1 < rows)
                _mm_mask_storeu_epi8(y + b->y_stride, n.mask[0], _mm512_extracti32x4_epi32(bytes, 1));
            if (r + 2 < rows)
                _mm_mask_storeu_epi8(y + 2 * b->y_stride, n.mask[0], _mm512_extracti32x4_epi32(bytes, 2));
            if (r + 3 < rows)
                _mm_mask_storeu_epi8(y + 3 * b->y_stride, n.mask[0], _mm512_extracti32x4_epi32(bytes, 3));
        }
        sums += together * vectors * 16;
        y += (ptrdiff_t)together * b->y_stride;
        if (residual)
            other += (ptrdiff_t)together * b->residual_stride;
    }
}

FB_INLINE void fb_floats(const dp_bytes_block *b, const dp_bytes_finish *f, const int32_t *sums, size_t row,
                         size_t rows, size_t column, size_t columns, const size_t vectors, const bool activation,
                         const bool residual) {
    fb_numbers n;
    fb_take(f, column, columns, vectors, activation, residual, &n);
    for (size_t r = row; r < row + rows; r++, sums += 16 * vectors) {
        float *y = (float *)b->y + (ptrdiff_t)r * b->y_stride + (ptrdiff_t)column;
        const uint8_t *other = residual ? b->residual + (ptrdiff_t)r * b->residual_stride + (ptrdiff_t)column : NULL;
        FB_UNROLL for (size_t v = 0; v < vectors; v++) _mm512_mask_storeu_ps(
            y + 16 * v, n.mask[v], fb_value(_mm512_loadu_si512(sums + 16 * v), &n, v, activation, other));
    }
}

#define FB_CASE(function, vectors)                                                                                     \
    case vectors:                                                                                                      \
        if (f->activation)                                                                                             \
            b->residual ? function(b, f, sums, row, rows, column, columns, vectors, true, true)                        \
                        : function(b, f, sums, row, rows, column, columns, vectors, true, false);                      \
        else                                                                                                           \
            b->residual ? function(b, f, sums, row, rows, column, columns, vectors, false, true)                       \
                        : function(b, f, sums, row, rows, column, columns, vectors, false, false);                     \
        break;

/* The sums of rows [row, row + rows) and up to 64 columns: a row has `vectors` vectors of 16. */
static __attribute__((noinline, unused)) void fb_finish(const dp_bytes_block *b, const dp_bytes_finish *f,
                                                        const int32_t *sums, size_t row, size_t rows, size_t column,
                                                        size_t columns, size_t vectors) {
    if (b->as_float) {
        switch (vectors) {
            FB_CASE(fb_floats, 1)
            FB_CASE(fb_floats, 2)
            FB_CASE(fb_floats, 3)
            FB_CASE(fb_floats, 4)
        }
        return;
    }
    switch (vectors) {
        FB_CASE(fb_rows, 1)
        FB_CASE(fb_rows, 2)
        FB_CASE(fb_rows, 3)
        FB_CASE(fb_rows, 4)
    }
}

#endif
