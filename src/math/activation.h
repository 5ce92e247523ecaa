/*
 * activation.h - activation functions on lanes, for epilogues; see vec.h. Absolute errors stay below 3e-7 (docs/numerics.md).
 */
#ifndef DOPPEL_MATH_ACTIVATION_H
#define DOPPEL_MATH_ACTIVATION_H

#include "math/vec.h"

/* exp(x) = 2^n exp(r) as in math/exp.h, a shorter polynomial; 0 and infinite beyond the bounds. */
DP_INLINE vf exp_of(vf x) {
    vf bounded = vf_greatest(vf_set(-105.0f), vf_least(vf_set(90.0f), x));
    vf n = vf_rint(bounded * vf_set(0x1.715476p+0f));
    vf r = vf_fma(n, vf_set(-0x1.62e4p-1f), bounded);
    r = vf_fma(n, vf_set(-0x1.7f7d1cp-20f), r);
    vf p = vf_set(1.0f / 5040);
    p = vf_fma(p, r, vf_set(1.0f / 720));
    p = vf_fma(p, r, vf_set(1.0f / 120));
    p = vf_fma(p, r, vf_set(1.0f / 24));
    p = vf_fma(p, r, vf_set(1.0f / 6));
    p = vf_fma(p, r, vf_set(0.5f));
    p = vf_fma(p * r, r, r) + vf_set(1.0f);
    return vf_scale(p, n);
}

DP_INLINE vf sigmoid_of(vf x) {
    return vf_set(1.0f) / (vf_set(1.0f) + exp_of(vf_set(0.0f) - x));
}

/* 1 - 2 / (exp 2x + 1); near 0, where that cancels, x - x^3/3 + 2x^5/15 - 17x^7/315 (next term below 2e-9 at 0.125) */
DP_INLINE vf tanh_of(vf x) {
    vf z = x * x, near = vf_fma(z, vf_set(-17.0f / 315), vf_set(2.0f / 15));
    near = vf_fma(vf_fma(near, z, vf_set(-1.0f / 3)) * z, x, x);
    vf far = vf_set(1.0f) - vf_set(2.0f) / (exp_of(x + x) + vf_set(1.0f));
    return vf_blend(vf_lt(z, vf_set(0.015625f)), near, far);
}

/*
 * The tail of the normal distribution, erfc(z)/2 for z >= 0, by Abramowitz and Stegun 7.1.26:
 * erfc(z) = (a1 t + ... + a5 t^5) exp(-z^2), t = 1 / (1 + p z), error below 1.5e-7.
 */
DP_INLINE vf gelu_erf_of(vf x) {
    vf z = vf_abs(x) * vf_set(0.70710678118654752f), t = vf_set(1.0f) / vf_fma(z, vf_set(0.3275911f), vf_set(1.0f));
    vf p = vf_set(1.061405429f);
    p = vf_fma(p, t, vf_set(-1.453152027f));
    p = vf_fma(p, t, vf_set(1.421413741f));
    p = vf_fma(p, t, vf_set(-0.284496736f));
    p = vf_fma(p, t, vf_set(0.254829592f)) * t;
    vf tail = vf_set(0.5f) * p * exp_of(vf_set(0.0f) - z * z);
    return x * vf_blend(vf_lt(x, vf_set(0.0f)), tail, vf_set(1.0f) - tail);
}

/* x/2 (1 + tanh y) = x sigmoid(2y), y = sqrt(2/pi) (x + 0.044715 x^3) */
DP_INLINE vf gelu_tanh_of(vf x) {
    return x * sigmoid_of(vf_set(1.5957691216057308f) * x * vf_fma(x * x, vf_set(0.044715f), vf_set(1.0f)));
}

#endif
