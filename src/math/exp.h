/* exp.h - Exp on lanes, for the families that need it inside a loop of their own; see vec.h. */
#ifndef DOPPEL_MATH_EXP_H
#define DOPPEL_MATH_EXP_H

#include "math/vec.h"

/* ln 2 in two parts: the product of the first with any exponent is exact. */
#define DP_LN2_HIGH 0x1.62e4p-1f
#define DP_LN2_LOW 0x1.7f7d1cp-20f

/*
 * exp(x) = 2^n * exp(r), n = nearest integer to x / ln 2, |r| <= ln 2 / 2; 1 + r + r^2 * (minimax polynomial of degree 4),
 * relative error 3.1e-9 (Remez). Adding 1.5 * 2^23 and taking it off again rounds to an integer.
 *
 * Beyond the bounds the result is infinite or zero whatever the argument. Where scaling takes any float for n, only the factor
 * has to stay in bounds: the polynomial is positive, of even degree, and grows beyond 2 for every |r| it is not meant for.
 */
DP_INLINE vf exp_of(vf x) {
    const vf integers = vf_set(0x1.8p23f);
#ifdef DP_SCALE_ANY
    vf bounded = x;
#else
    vf bounded = vf_greatest(vf_set(-105.0f), vf_least(vf_set(90.0f), x));
#endif
    vf n = vf_fma(bounded, vf_set(0x1.715476p+0f), integers) - integers;
    vf r = vf_fma(n, vf_set(-DP_LN2_HIGH), bounded);
    r = vf_fma(n, vf_set(-DP_LN2_LOW), r);
    vf p = vf_set(0x1.6a23dp-10f);
    p = vf_fma(p, r, vf_set(0x1.123a2p-7f));
    p = vf_fma(p, r, vf_set(0x1.5558f2p-5f));
    p = vf_fma(p, r, vf_set(0x1.555492p-3f));
    p = vf_fma(p, r, vf_set(0x1.fffffcp-2f));
    p = vf_fma(p, r, vf_set(1.0f));
    p = vf_fma(p, r, vf_set(1.0f));
#ifdef DP_SCALE_ANY
    p = vf_least(p, vf_set(2.0f)); /* 2 for a NaN: n is then infinite, or a NaN itself */
#endif
    return vf_scale(p, n);
}

#endif
