/* line_kernels.c - the loops of lines.h. Compiled once per rung. */
#include <math.h>

#include "math/exp.h"
#include "ops/lines.h"

enum { LANES = 32 };

static float line_max(const float *x, size_t n) {
    float lane[LANES], result = -INFINITY;
    size_t i = 0;
    for (int l = 0; l < LANES; l++)
        lane[l] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = x[i + (size_t)l] > lane[l] ? x[i + (size_t)l] : lane[l];
    for (; i < n; i++)
        result = x[i] > result ? x[i] : result;
    for (int l = 0; l < LANES; l++)
        result = lane[l] > result ? lane[l] : result;
    return result;
}

/* The sign of `way` makes the smallest the largest of the negated. */
static inline __attribute__((always_inline)) float extreme(const float *x, size_t n, float way) {
    float lane[LANES], result = -INFINITY;
    int nan[LANES] = {0}, any = 0;
    size_t i = 0;
    for (int l = 0; l < LANES; l++)
        lane[l] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            const float v = way * x[i + (size_t)l];
            lane[l] = v > lane[l] ? v : lane[l];
            nan[l] |= v != v;
        }
    for (; i < n; i++) {
        result = way * x[i] > result ? way * x[i] : result;
        any |= x[i] != x[i];
    }
    for (int l = 0; l < LANES; l++) {
        result = lane[l] > result ? lane[l] : result;
        any |= nan[l];
    }
    return any ? NAN : way * result;
}
static float line_top(const float *x, size_t n) {
    return extreme(x, n, 1);
}
static float line_bottom(const float *x, size_t n) {
    return extreme(x, n, -1);
}

#define SUM(name, ARGUMENTS, EXPRESSION)                                                                               \
    static double name ARGUMENTS {                                                                                     \
        double lane[LANES] = {0};                                                                                      \
        size_t i = 0;                                                                                                  \
        for (; i + LANES <= n; i += LANES)                                                                             \
            for (int l = 0; l < LANES; l++) {                                                                          \
                double v = x[i + (size_t)l];                                                                           \
                lane[l] += EXPRESSION;                                                                                 \
            }                                                                                                          \
        for (int l = 0; i < n; i++, l++) {                                                                             \
            double v = x[i];                                                                                           \
            lane[l] += EXPRESSION;                                                                                     \
        }                                                                                                              \
        for (int step = LANES / 2; step; step /= 2)                                                                    \
            for (int l = 0; l < step; l++)                                                                             \
                lane[l] += lane[l + step];                                                                             \
        return lane[0];                                                                                                \
    }
SUM(line_sum, (const float *x, size_t n), v)
SUM(line_squares, (const float *x, size_t n, double mean), (v - mean) * (v - mean))

static double line_products(const float *x, const float *g, size_t n, double mean) {
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (double)g[i + (size_t)l] * ((double)x[i + (size_t)l] - mean);
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)g[i] * ((double)x[i] - mean);
    for (int step = LANES / 2; step; step /= 2)
        for (int l = 0; l < step; l++)
            lane[l] += lane[l + step];
    return lane[0];
}

static void line_combine(float *y, const float *g, const float *x, size_t n, float a, float b, float c) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = a * g[i] + (b * x[i] + c);
}

/* Four exponentials, none of them above the others' size by much, are added in float: a conversion to double costs more than the additions. */
static double line_exp(float *y, const float *x, size_t n, float offset) {
    enum { LANE = 16, BLOCK = 4 * LANE };
    double lane[LANE] = {0};
    const vf less = vf_set(offset);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        float sum[LANE];
        _Pragma("GCC unroll 2") for (size_t l = 0; l < LANE; l += DP_LANES) {
            vf e[4];
            _Pragma("GCC unroll 4") for (size_t k = 0; k < 4; k++) {
                e[k] = exp_of(vf_load_f32(x, i + k * LANE + l) - less);
                vf_store_f32(y, i + k * LANE + l, e[k]);
            }
            vf_store_f32(sum, l, (e[0] + e[1]) + (e[2] + e[3]));
        }
        for (size_t l = 0; l < LANE; l++)
            lane[l] += (double)sum[l];
    }
    const size_t first = i;
    for (; i + DP_LANES <= n; i += DP_LANES)
        vf_store_f32(y, i, exp_of(vf_load_f32(x, i) - less));
    if (DP_LANES > 1 && i < n)
        vf_store_f32_n(y, i, n - i, exp_of(vf_load_f32_n(x, i, n - i) - less));
    for (i = first; i < n; i++)
        lane[(i - first) % LANE] += (double)y[i];
    for (size_t step = LANE / 2; step; step /= 2)
        for (size_t l = 0; l < step; l++)
            lane[l] += lane[l + step];
    return lane[0];
}

static void line_scale(float *y, const float *x, size_t n, float factor) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = x[i] * factor;
}

static void line_shift(float *y, const float *x, size_t n, float offset) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = x[i] - offset;
}

static void line_add(float *y, const float *a, const float *b, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void line_larger(float *y, const float *a, const float *b, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i];
}

static void line_accumulate(double *sums, const float *x, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) sums[i] += (double)x[i];
}

static void line_subtract(float *y, const float *a, const float *b, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = a[i] - b[i];
}

static void line_multiply(float *y, const float *a, const float *b, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void line_multiply_add(float *y, const float *x, size_t n, float a, float b) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = x[i] * a + b;
}

static void line_affine(float *y, const float *x, size_t n, float mean, float factor, const float *gamma,
                        const float *beta) {
    if (gamma && beta) {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
    } else if (gamma) {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor * gamma[i];
    } else if (beta) {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor + beta[i];
    } else {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor;
    }
}

#if DP_MATH_RUNG == DP_RUNG_AVX512
#define STORE_PAST(p, v) _mm512_stream_ps(p, v)
#elif DP_MATH_RUNG == DP_RUNG_AVX2
#define STORE_PAST(p, v) _mm256_stream_ps(p, v)
#else
#define STORE_PAST(p, v) vf_store_f32(p, 0, v)
#endif

DP_INLINE void affine_past(float *y, const float *x, size_t n, const dp_line_affine *a, const bool scaled, const bool shifted,
                           const char *next) {
    enum { LINE = 16 };
    const vf mean = vf_set(a->mean), factor = vf_set(a->factor);
    for (size_t i = 0; i < n; i += LINE) {
        __builtin_prefetch(next + i * sizeof *x, 0, 2);
        _Pragma("GCC unroll 2") for (size_t v = i; v < i + LINE; v += DP_LANES) {
            vf value = (vf_load_f32(x, v) - mean) * factor;
            if (scaled)
                value = value * vf_load_f32(a->gamma, v);
            if (shifted)
                value = value + vf_load_f32(a->beta, v);
            STORE_PAST(y + v, value);
        }
    }
}

/* Whole cache lines of it; what does not begin or end with one goes through the caches. */
static void line_affine_past(float *y, const float *x, size_t n, const dp_line_affine *a, const char *next) {
    const size_t whole = (uintptr_t)y % 64 ? 0 : n / 16 * 16;
    if (a->gamma && a->beta)
        affine_past(y, x, whole, a, true, true, next);
    else if (a->gamma)
        affine_past(y, x, whole, a, true, false, next);
    else if (a->beta)
        affine_past(y, x, whole, a, false, true, next);
    else
        affine_past(y, x, whole, a, false, false, next);
    line_affine(y + whole, x + whole, n - whole, a->mean, a->factor, a->gamma ? a->gamma + whole : NULL,
                a->beta ? a->beta + whole : NULL);
}

static void line_turn(float *y1, float *y2, const float *x1, const float *x2, const float *c1, const float *c2,
                      const float *s1, const float *s2, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y1[i] = x1[i] * c1[i] - x2[i] * s1[i];
    DP_IVDEP for (size_t i = 0; i < n; i++) y2[i] = x2[i] * c2[i] + x1[i] * s2[i];
}

static void line_turn_pairs(float *y, const float *x, const float *c, const float *s, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) {
        y[2 * i] = x[2 * i] * c[2 * i] - x[2 * i + 1] * s[2 * i];
        y[2 * i + 1] = x[2 * i + 1] * c[2 * i + 1] + x[2 * i] * s[2 * i + 1];
    }
}

void DP_RUNG(dp_line_fill)(dp_line_table *table) {
    *table =
        (dp_line_table){line_max,     line_top,   line_bottom, line_sum,    line_squares,      line_exp,      line_scale,      line_shift,
                        line_add,     line_affine, line_affine_past, line_multiply_add, line_turn,     line_turn_pairs, line_products,
                        line_combine, line_larger, line_accumulate,   line_subtract, line_multiply};
}
