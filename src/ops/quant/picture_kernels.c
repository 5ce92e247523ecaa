/* picture_kernels.c - the loops of picture.h. Compiled once per rung; the compiler makes the vectors. */
#include <string.h>

#include "ops/quant/picture.h"
#include "ops/rung.h"

#if DP_MATH_RUNG == 1
#include <immintrin.h>
#endif

static inline float bounded(float v, float low, float high) {
    v = v == v ? v : 0;
    v = v < low ? low : v;
    return v > high ? high : v;
}
#define NEAREST(v) ((v) + 0x1.8p23f - 0x1.8p23f) /* ties to even, |v| below 2^22 */

enum { AT_ONCE = 64 };

static void quantise(uint8_t *to, const float *x, size_t n, float factor, float zero) {
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        int32_t whole[AT_ONCE] = {0};
        DP_IVDEP for (size_t i = 0; i < count; i++) whole[i] =
            (int32_t)NEAREST(bounded(x[first + i] * factor + zero, 0, DP_PICTURE_MOST));
        DP_IVDEP for (size_t i = 0; i < count; i++) to[first + i] = (uint8_t)whole[i];
    }
}

static void dequantise(float *to, const uint8_t *x, size_t n, float scale, float zero) {
    DP_IVDEP for (size_t i = 0; i < n; i++) to[i] = ((float)x[i] - zero) * scale;
}

static void transpose(uint8_t *to, const uint8_t *from, size_t rows, size_t columns) {
    enum { BLOCK = 16 };
    for (size_t i = 0; i < rows; i += BLOCK)
        for (size_t j = 0; j < columns; j += BLOCK) {
            const size_t i_end = rows - i < BLOCK ? rows : i + BLOCK, j_end = columns - j < BLOCK ? columns : j + BLOCK;
            for (size_t b = j; b < j_end; b++)
                for (size_t a = i; a < i_end; a++)
                    to[b * rows + a] = from[a * columns + b];
        }
}

/* Sums of up to four products fit 16 bits. */
static inline __attribute__((always_inline)) void depthwise_block(uint8_t *y, const uint8_t *const *x, size_t first,
                                                                  const int8_t *w, size_t taps, size_t w_step,
                                                                  const size_t count, const float *scale,
                                                                  const float *bias, float low, float high) {
    int32_t sum[AT_ONCE];
    for (size_t t = 0; t < taps; t += 4) {
        const size_t end = taps - t < 4 ? taps : t + 4;
        const uint8_t *from = x[t] + first;
        const int8_t *weight = w + t * w_step + first;
        int16_t part[AT_ONCE];
        DP_IVDEP for (size_t c = 0; c < count; c++) part[c] = (int16_t)((int16_t)from[c] * (int16_t)weight[c]);
        for (size_t k = t + 1; k < end; k++) {
            from = x[k] + first;
            weight = w + k * w_step + first;
            DP_IVDEP for (size_t c = 0; c < count; c++) part[c] =
                (int16_t)(part[c] + (int16_t)((int16_t)from[c] * (int16_t)weight[c]));
        }
        if (t == 0) {
            DP_IVDEP for (size_t c = 0; c < count; c++) sum[c] = part[c];
        } else {
            DP_IVDEP for (size_t c = 0; c < count; c++) sum[c] += part[c];
        }
    }
    DP_IVDEP for (size_t c = 0; c < count; c++) sum[c] =
        (int32_t)NEAREST(bounded((float)sum[c] * scale[first + c] + bias[first + c], low, high));
    DP_IVDEP for (size_t c = 0; c < count; c++) y[first + c] = (uint8_t)sum[c];
}

#if DP_MATH_RUNG == 1
enum { PAIRED = 32 };

/* Sums of 32 channels, 8 by 8 in order: bytes of two taps side by side are multiplied and added by one instruction. */
static inline void add_taps(int32_t *sum, const uint8_t *const *x, size_t first, const int8_t *w, size_t taps,
                            size_t w_step) {
    __m256i total[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t t = 0; t < taps; t += 4) {
        __m256i low = _mm256_setzero_si256(), high = low;
        for (size_t k = t; k < t + 4 && k < taps; k += 2) {
            const bool two = k + 1 < taps;
            const __m256i a = _mm256_loadu_si256((const void *)(x[k] + first)),
                          v = _mm256_loadu_si256((const void *)(w + k * w_step + first));
            const __m256i b = two ? _mm256_loadu_si256((const void *)(x[k + 1] + first)) : _mm256_setzero_si256();
            const __m256i u =
                two ? _mm256_loadu_si256((const void *)(w + (k + 1) * w_step + first)) : _mm256_setzero_si256();
            low = _mm256_add_epi16(low, _mm256_maddubs_epi16(_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(v, u)));
            high = _mm256_add_epi16(high, _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(v, u)));
        }
        total[0] = _mm256_add_epi32(total[0], _mm256_cvtepi16_epi32(_mm256_castsi256_si128(low)));
        total[1] = _mm256_add_epi32(total[1], _mm256_cvtepi16_epi32(_mm256_castsi256_si128(high)));
        total[2] = _mm256_add_epi32(total[2], _mm256_cvtepi16_epi32(_mm256_extracti128_si256(low, 1)));
        total[3] = _mm256_add_epi32(total[3], _mm256_cvtepi16_epi32(_mm256_extracti128_si256(high, 1)));
    }
    for (size_t v = 0; v < 4; v++)
        _mm256_storeu_si256((void *)(sum + 8 * v), total[v]);
}

static size_t depthwise_pairs(uint8_t *y, const uint8_t *const *x, const int8_t *w, size_t taps, size_t n,
                              size_t w_step, const float *scale, const float *bias, float low, float high) {
    size_t first = 0;
    for (; first + PAIRED <= n; first += PAIRED) {
        int32_t sum[PAIRED];
        add_taps(sum, x, first, w, taps, w_step);
        DP_IVDEP for (size_t c = 0; c < PAIRED; c++) sum[c] =
            (int32_t)NEAREST(bounded((float)sum[c] * scale[first + c] + bias[first + c], low, high));
        DP_IVDEP for (size_t c = 0; c < PAIRED; c++) y[first + c] = (uint8_t)sum[c];
    }
    return first;
}
#else
static size_t depthwise_pairs(uint8_t *y, const uint8_t *const *x, const int8_t *w, size_t taps, size_t n,
                              size_t w_step, const float *scale, const float *bias, float low, float high) {
    (void)y, (void)x, (void)w, (void)taps, (void)n, (void)w_step, (void)scale, (void)bias, (void)low, (void)high;
    return 0;
}
#endif

static void depthwise(uint8_t *y, const uint8_t *const *x, const int8_t *w, size_t taps, size_t n, size_t w_step,
                      const float *scale, const float *bias, float low, float high) {
    size_t first = depthwise_pairs(y, x, w, taps, n, w_step, scale, bias, low, high);
    for (; first + AT_ONCE <= n; first += AT_ONCE)
        depthwise_block(y, x, first, w, taps, w_step, AT_ONCE, scale, bias, low, high);
    for (; first + AT_ONCE / 4 <= n; first += AT_ONCE / 4)
        depthwise_block(y, x, first, w, taps, w_step, AT_ONCE / 4, scale, bias, low, high);
    if (first < n)
        depthwise_block(y, x, first, w, taps, w_step, n - first, scale, bias, low, high);
}

static void greatest(uint8_t *y, const uint8_t *const *x, size_t taps, size_t n) {
    memcpy(y, x[0], n);
    for (size_t t = 1; t < taps; t++) {
        const uint8_t *from = x[t];
        DP_IVDEP for (size_t c = 0; c < n; c++) y[c] = from[c] > y[c] ? from[c] : y[c];
    }
}

void DP_RUNG(dp_picture_fill)(dp_picture_table *table) {
    *table = (dp_picture_table){quantise, dequantise, transpose, depthwise, greatest};
}
