/* kernels.c - the loops of kernels.h. Compiled once per rung. */
#include "ops/attention/kernels.h"

#include <math.h>

#include "math/exp.h"

enum { STREAMS = 4 }; /* sums that do not wait for each other */

#define ADD(type)                                                                                                      \
    static void add_##type(float *s, const void *bias, size_t n, float factor) {                                       \
        vf f = vf_set(factor);                                                                                         \
        DP_LANE_LOOP(                                                                                                  \
            n, vf_store_f32(s, i, vf_fma(vf_load_##type(bias, i), f, vf_load_f32(s, i))),                              \
            vf_store_f32_n(s, i, rest, vf_fma(vf_load_##type##_n(bias, i, rest), f, vf_load_f32_n(s, i, rest))))       \
    }
ADD(f32)
ADD(f16)
ADD(bf16)

static void add(float *s, const void *bias, int element, size_t n, float factor) {
    (element == DP_F32 ? add_f32 : element == DP_F16 ? add_f16 : add_bf16)(s, bias, n, factor);
}

static void mask(float *s, const uint8_t *masked, size_t n) {
    vf gone = vf_set(-INFINITY);
    DP_LANE_LOOP(
        n, vf_store_f32(s, i, vf_blend(vi_eq(vi_load_u8(masked, i), vi_set(0)), vf_load_f32(s, i), gone)),
        vf_store_f32_n(s, i, rest,
                       vf_blend(vi_eq(vi_load_u8_n(masked, i, rest), vi_set(0)), vf_load_f32_n(s, i, rest), gone)))
}

static float max(const float *s, size_t n) {
    vf best[STREAMS];
    float lane[DP_LANES], result = -INFINITY;
    size_t i = 0;
    for (int t = 0; t < STREAMS; t++)
        best[t] = vf_set(-INFINITY);
    for (; i + STREAMS * DP_LANES <= n; i += STREAMS * DP_LANES)
        for (int t = 0; t < STREAMS; t++) {
            vf v = vf_load_f32(s, i + (size_t)t * DP_LANES);
            best[t] = vf_blend(vf_gt(v, best[t]), v, best[t]);
        }
    for (int t = 1; t < STREAMS; t++)
        best[0] = vf_greatest(best[0], best[t]);
    vf_store_f32(lane, 0, best[0]);
    for (; i < n; i++)
        result = s[i] > result ? s[i] : result;
    for (int l = 0; l < DP_LANES; l++)
        result = lane[l] > result ? lane[l] : result;
    return result;
}

static float exp_row(float *s, size_t n, float greatest) {
    vf sum[STREAMS], offset = vf_set(greatest);
    float lane[DP_LANES], result = 0;
    size_t i = 0;
    for (int t = 0; t < STREAMS; t++)
        sum[t] = vf_set(0);
    for (; i + STREAMS * DP_LANES <= n; i += STREAMS * DP_LANES)
        for (int t = 0; t < STREAMS; t++) {
            vf e = exp_of(vf_load_f32(s, i + (size_t)t * DP_LANES) - offset);
            vf_store_f32(s, i + (size_t)t * DP_LANES, e);
            sum[t] = sum[t] + e;
        }
    for (; i + DP_LANES <= n; i += DP_LANES) {
        vf e = exp_of(vf_load_f32(s, i) - offset);
        vf_store_f32(s, i, e);
        sum[0] = sum[0] + e;
    }
    if (i < n) {
        vf_store_f32_n(s, i, n - i, exp_of(vf_load_f32_n(s, i, n - i) - offset));
        for (; i < n; i++)
            result += s[i];
    }
    vf_store_f32(lane, 0, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (int l = 0; l < DP_LANES; l++)
        result += lane[l];
    return result;
}

static void scale(float *s, size_t n, float factor) {
    DP_IVDEP for (size_t i = 0; i < n; i++) s[i] *= factor;
}

void DP_RUNG(dp_attention_fill)(dp_attention_kernels *kernels) {
    *kernels = (dp_attention_kernels){add, mask, max, exp_row, scale};
}
