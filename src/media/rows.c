/* Compiled once per rung: plain loops that the compiler turns into vectors; the generic rung is the reference. */
#include "media/rows.h"

#include "math/vec.h"

static void DP_RUNG(split2)(const uint8_t *restrict in, uint8_t *restrict a, uint8_t *restrict b, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        a[i] = in[2 * i];
        b[i] = in[2 * i + 1];
    }
}
static void DP_RUNG(split3)(const uint8_t *restrict in, uint8_t *restrict a, uint8_t *restrict b, uint8_t *restrict c,
                            size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        a[i] = in[3 * i];
        b[i] = in[3 * i + 1];
        c[i] = in[3 * i + 2];
    }
}
static void DP_RUNG(split4)(const uint8_t *restrict in, uint8_t *restrict a, uint8_t *restrict b, uint8_t *restrict c,
                            uint8_t *restrict d, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        a[i] = in[4 * i];
        b[i] = in[4 * i + 1];
        c[i] = in[4 * i + 2];
        d[i] = in[4 * i + 3];
    }
}
static void DP_RUNG(join2)(const uint8_t *restrict a, const uint8_t *restrict b, uint8_t *restrict out, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        out[2 * i] = a[i];
        out[2 * i + 1] = b[i];
    }
}
static void DP_RUNG(join3)(const uint8_t *restrict a, const uint8_t *restrict b, const uint8_t *restrict c,
                           uint8_t *restrict out, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        out[3 * i] = a[i];
        out[3 * i + 1] = b[i];
        out[3 * i + 2] = c[i];
    }
}
static void DP_RUNG(join4)(const uint8_t *restrict a, const uint8_t *restrict b, const uint8_t *restrict c,
                           const uint8_t *restrict d, uint8_t *restrict out, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        out[4 * i] = a[i];
        out[4 * i + 1] = b[i];
        out[4 * i + 2] = c[i];
        out[4 * i + 3] = d[i];
    }
}

static void DP_RUNG(twice)(const uint8_t *restrict in, uint8_t *restrict out, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        out[2 * i] = in[i];
        out[2 * i + 1] = in[i];
    }
}
static void DP_RUNG(mean_across)(const uint8_t *restrict in, uint8_t *restrict out, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = (uint8_t)((in[2 * i] + in[2 * i + 1] + 1) >> 1);
}
static void DP_RUNG(mean_down)(const uint8_t *restrict a, const uint8_t *restrict b, uint8_t *restrict out, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = (uint8_t)((a[i] + b[i] + 1) >> 1);
}
static void DP_RUNG(mean_square)(const uint8_t *restrict a, const uint8_t *restrict b, uint8_t *restrict out,
                                 size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) out[i] =
        (uint8_t)((a[2 * i] + a[2 * i + 1] + b[2 * i] + b[2 * i + 1] + 2) >> 2);
}

static inline uint8_t limit(int32_t v) {
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Its own function, so that the compiler believes that no row overlaps another. */
static void three_plain(const dp_colour_matrix m, const uint8_t *restrict x, const uint8_t *restrict y,
                        const uint8_t *restrict z, uint8_t *restrict a, uint8_t *restrict b, uint8_t *restrict c,
                        size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        int16_t p = x[i], q = y[i], r = z[i];
        a[i] = limit((m.c[0][0] * p + m.c[0][1] * q + m.c[0][2] * r + m.bias[0]) >> DP_COLOUR_BITS);
        b[i] = limit((m.c[1][0] * p + m.c[1][1] * q + m.c[1][2] * r + m.bias[1]) >> DP_COLOUR_BITS);
        c[i] = limit((m.c[2][0] * p + m.c[2][1] * q + m.c[2][2] * r + m.bias[2]) >> DP_COLOUR_BITS);
    }
}

#if DP_MATH_RUNG != DP_RUNG_GENERIC
/*
 * Sixteen at a time: pairs of 16-bit values times pairs of factors, summed in 32 bits, and the processor's saturating
 * packs. The compiler finds neither; its own code for the plain loop takes three times as long or more.
 */
static size_t three_packed(const dp_colour_matrix *m, const uint8_t *const in[3], uint8_t *const out[3], size_t n) {
    __m256i first[3], second[3], bias[3];
    for (int k = 0; k < 3; k++) {
        first[k] = _mm256_set1_epi32((uint16_t)m->c[k][0] | (int32_t)((uint32_t)(uint16_t)m->c[k][1] << 16));
        second[k] = _mm256_set1_epi32((uint16_t)m->c[k][2]);
        bias[k] = _mm256_set1_epi32(m->bias[k]);
    }
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i p = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(in[0] + i)));
        __m256i q = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(in[1] + i)));
        __m256i r = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(in[2] + i))), zero = _mm256_setzero_si256();
        __m256i pq_low = _mm256_unpacklo_epi16(p, q), pq_high = _mm256_unpackhi_epi16(p, q);
        __m256i r_low = _mm256_unpacklo_epi16(r, zero), r_high = _mm256_unpackhi_epi16(r, zero);
        for (int k = 0; k < 3; k++) {
            __m256i low = _mm256_add_epi32(_mm256_madd_epi16(pq_low, first[k]), _mm256_madd_epi16(r_low, second[k]));
            __m256i high = _mm256_add_epi32(_mm256_madd_epi16(pq_high, first[k]), _mm256_madd_epi16(r_high, second[k]));
            low = _mm256_srai_epi32(_mm256_add_epi32(low, bias[k]), DP_COLOUR_BITS);
            high = _mm256_srai_epi32(_mm256_add_epi32(high, bias[k]), DP_COLOUR_BITS);
            __m256i words = _mm256_packs_epi32(low, high), bytes = _mm256_packus_epi16(words, words);
            _mm_storeu_si128((void *)(out[k] + i), _mm256_castsi256_si128(_mm256_permute4x64_epi64(bytes, 0x08)));
        }
    }
    return i;
}
#endif

static void DP_RUNG(colour)(const dp_colour_matrix *matrix, const uint8_t *const in[3], uint8_t *const out[3],
                            size_t n) {
    size_t done = 0;
#if DP_MATH_RUNG != DP_RUNG_GENERIC
    done = three_packed(matrix, in, out, n);
#endif
    three_plain(*matrix, in[0] + done, in[1] + done, in[2] + done, out[0] + done, out[1] + done, out[2] + done,
                n - done);
}

static void DP_RUNG(down)(const uint8_t *const *rows, const float *weights, size_t taps, float *restrict out,
                          size_t n) {
    const uint8_t *restrict first = rows[0];
    const float w = weights[0];
    if (taps == 2) { /* the usual case, in one go */
        const uint8_t *restrict second = rows[1];
        const float v = weights[1];
        DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = (float)(int32_t)first[i] * w + (float)(int32_t)second[i] * v;
        return;
    }
    DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = (float)(int32_t)first[i] * w;
    for (size_t t = 1; t < taps; t++) {
        const uint8_t *restrict row = rows[t];
        const float v = weights[t];
        DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = out[i] + (float)(int32_t)row[i] * v;
    }
}

static void DP_RUNG(across)(const float *restrict row, const int32_t *restrict index, size_t step,
                            const float *restrict weights, size_t taps, uint8_t *restrict out, size_t n) {
    enum { PIECE = 256 };
    float sum[PIECE];
    for (size_t begin = 0; begin < n; begin += PIECE) {
        size_t count = n - begin < PIECE ? n - begin : PIECE;
        const int32_t *at = index + begin;
        const float *w = weights + begin;
        DP_IVDEP for (size_t i = 0; i < count; i++) sum[i] = row[at[i]] * w[i];
        for (size_t t = 1; t < taps; t++) {
            const float *from = row + t * step;
            w += n;
            DP_IVDEP for (size_t i = 0; i < count; i++) sum[i] = sum[i] + from[at[i]] * w[i];
        }
        DP_IVDEP for (size_t i = 0; i < count; i++) out[begin + i] =
            limit((int32_t)(sum[i] + 256.5f) - 256); /* a sum is never below -256: rounds half up */
    }
}

static void DP_RUNG(pick)(const uint8_t *restrict row, const int32_t *restrict index, uint8_t *restrict out, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = row[index[i]];
}

static void DP_RUNG(normalise)(const uint8_t *restrict in, float mean, float least, float factor, float *restrict out,
                               size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = ((float)(int32_t)in[i] - mean - least) * factor;
}

const dp_rows DP_RUNG(dp_rows) = {
    .split2 = DP_RUNG(split2),
    .split3 = DP_RUNG(split3),
    .split4 = DP_RUNG(split4),
    .join2 = DP_RUNG(join2),
    .join3 = DP_RUNG(join3),
    .join4 = DP_RUNG(join4),
    .twice = DP_RUNG(twice),
    .mean_across = DP_RUNG(mean_across),
    .mean_down = DP_RUNG(mean_down),
    .mean_square = DP_RUNG(mean_square),
    .colour = DP_RUNG(colour),
    .down = DP_RUNG(down),
    .across = DP_RUNG(across),
    .pick = DP_RUNG(pick),
    .normalise = DP_RUNG(normalise),
};
