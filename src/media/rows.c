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

static void DP_RUNG(colour)(const dp_colour_matrix *matrix, const uint8_t *const in[3], uint8_t *const out[3],
                            size_t n) {
    const uint8_t *restrict x = in[0], *restrict y = in[1], *restrict z = in[2];
    uint8_t *restrict a = out[0], *restrict b = out[1], *restrict c = out[2];
    const dp_colour_matrix m = *matrix;
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        int32_t p = x[i], q = y[i], r = z[i];
        a[i] = limit((m.c[0][0] * p + m.c[0][1] * q + m.c[0][2] * r + m.c[0][3]) >> 14);
        b[i] = limit((m.c[1][0] * p + m.c[1][1] * q + m.c[1][2] * r + m.c[1][3]) >> 14);
        c[i] = limit((m.c[2][0] * p + m.c[2][1] * q + m.c[2][2] * r + m.c[2][3]) >> 14);
    }
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
