/* kernels.c - the loops of quant.h. Compiled once per rung. */
#include <math.h>

#include "math/exp.h"
#include "ops/quant/quant.h"

/* Cut before rounding: low and high are integers, so the order does not matter, and the sum below is exact. */
DP_INLINE float cut(float v, float low, float high) {
    v = v == v ? v : 0;
    v = v < low ? low : v;
    return v > high ? high : v;
}

#define NEAREST(v) ((v) + 0x1.8p23f - 0x1.8p23f) /* ties to even, |v| below 2^22 */
#define ROUND(function)                                                                                                \
    do {                                                                                                               \
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = function(cut(y[i], low, high));                                 \
    } while (0)

static void round_line(float *y, const float *x, const float *scale, const float *offset, size_t n, dp_quant_round how,
                       float low, float high) {
    if (scale && offset) {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = x[i] * scale[i] + offset[i];
    } else if (scale) {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = x[i] * scale[i];
    } else {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = offset ? x[i] + offset[i] : x[i];
    }
    if (how == DP_QUANT_RINT)
        ROUND(NEAREST);
    else if (how == DP_QUANT_FLOOR)
        ROUND(floorf);
    else if (how == DP_QUANT_CEIL)
        ROUND(ceilf);
    else
        ROUND(truncf);
}

static void round_by(float *y, const float *x, float factor, float shift, size_t n, float low, float high) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = NEAREST(cut(x[i] * factor + shift, low, high));
}

static float absolute_max(const float *x, size_t n) {
    enum { LANES = 32 };
    float lane[LANES] = {0}, result = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = fabsf(x[i + (size_t)l]) > lane[l] ? fabsf(x[i + (size_t)l]) : lane[l];
    for (; i < n; i++)
        result = fabsf(x[i]) > result ? fabsf(x[i]) : result;
    for (int l = 0; l < LANES; l++)
        result = lane[l] > result ? lane[l] : result;
    return result;
}

static void multiply(float *y, const float *a, const float *b, size_t n) {
    DP_IVDEP for (size_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

DP_INLINE vf silu(vf a) {
    return a / (vf_set(1) + exp_of(vf_set(0) - a));
}

static void swiglu(float *y, const float *a, const float *b, size_t n) {
    DP_LANE_LOOP(n, vf_store_f32(y, i, silu(vf_load_f32(a, i)) * vf_load_f32(b, i)),
                 vf_store_f32_n(y, i, rest, silu(vf_load_f32_n(a, i, rest)) * vf_load_f32_n(b, i, rest)))
}

void DP_RUNG(dp_quant_fill)(dp_quant_table *table) {
    *table = (dp_quant_table){round_line, round_by, absolute_max, multiply, swiglu};
}
