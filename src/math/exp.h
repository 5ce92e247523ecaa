/* exp.h - Exp on lanes, for the families that need it inside a loop of their own; see vec.h. */
#ifndef DOPPEL_MATH_EXP_H
#define DOPPEL_MATH_EXP_H

#include "math/vec.h"

/* ln 2 in two parts: the product of the first with any exponent is exact. */
#define DP_LN2_HIGH 0x1.62e4p-1f
#define DP_LN2_LOW 0x1.7f7d1cp-20f

/*
 * exp(x) = 2^n * exp(r), n = nearest integer to x / ln 2, |r| <= ln 2 / 2; Taylor series up to r^7 / 7! (truncation 5e-9).
 * Beyond the bounds the result is infinite or zero whatever the argument.
 */
DP_INLINE vf exp_of(vf x) {
    vf bounded = vf_greatest(vf_set(-105.0f), vf_least(vf_set(90.0f), x));
    vf n = vf_rint(bounded * vf_set(0x1.715476p+0f));
    vf r = vf_fma(n, vf_set(-DP_LN2_HIGH), bounded);
    r = vf_fma(n, vf_set(-DP_LN2_LOW), r);
    vf p = vf_set(1.0f / 5040);
    p = vf_fma(p, r, vf_set(1.0f / 720));
    p = vf_fma(p, r, vf_set(1.0f / 120));
    p = vf_fma(p, r, vf_set(1.0f / 24));
    p = vf_fma(p, r, vf_set(1.0f / 6));
    p = vf_fma(p, r, vf_set(0.5f));
    p = vf_fma(p * r, r, r) + vf_set(1.0f);
    return vf_scale(p, n);
}

#endif
