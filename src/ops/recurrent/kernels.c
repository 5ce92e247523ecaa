/* kernels.c - see kernels.h. Compiled once per rung. */
#include "ops/recurrent/kernels.h"

#include "math/vec.h"

enum { STREAMS = 4 };

/* The sum of all lanes of four vectors. */
DP_INLINE float total(const vf *sum) {
    float lane[DP_LANES], result = 0;
    vf_store_f32(lane, 0, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (int l = 0; l < DP_LANES; l++)
        result += lane[l];
    return result;
}

float DP_RUNG(dp_delta_row)(float *s, const float *decay, const float *k, const float *q, float v, float beta,
                            size_t n) {
    const size_t step = STREAMS * DP_LANES, whole = n / step * step;
    vf sum[STREAMS];
    float rest = 0;
    for (int t = 0; t < STREAMS; t++)
        sum[t] = vf_set(0);
    for (size_t i = 0; i < whole; i += step)
        for (size_t t = 0, at = i; t < STREAMS; t++, at += DP_LANES) {
            vf x = vf_load_f32(s, at) * vf_load_f32(decay, at);
            vf_store_f32(s, at, x);
            sum[t] = vf_fma(x, vf_load_f32(k, at), sum[t]);
        }
    for (size_t i = whole; i < n; i++) {
        s[i] *= decay[i];
        rest += s[i] * k[i];
    }
    const float change = beta * (v - (total(sum) + rest));
    const vf factor = vf_set(change);
    rest = 0;
    for (int t = 0; t < STREAMS; t++)
        sum[t] = vf_set(0);
    for (size_t i = 0; i < whole; i += step)
        for (size_t t = 0, at = i; t < STREAMS; t++, at += DP_LANES) {
            vf x = vf_fma(factor, vf_load_f32(k, at), vf_load_f32(s, at));
            vf_store_f32(s, at, x);
            sum[t] = vf_fma(x, vf_load_f32(q, at), sum[t]);
        }
    for (size_t i = whole; i < n; i++) {
        s[i] += change * k[i];
        rest += s[i] * q[i];
    }
    return total(sum) + rest;
}
