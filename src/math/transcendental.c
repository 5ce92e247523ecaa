/*
 * transcendental.c - Exp and Ln in float, rounded to the element type. The same operations in the same order in every rung,
 * so that results are the same bits everywhere. Measured error bounds: docs/numerics.md.
 */
#include "math/exp.h"

/*
 * x = 2^k * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); with s = f / (2 + f), ln(1 + f) = 2 atanh(s)
 * = f - f^2/2 + s * (f^2/2 + R), R = 2/3 s^2 + 2/5 s^4 + ... up to s^10 (truncation below 1e-10).
 */
DP_INLINE vf ln_of(vf x) {
    vm tiny = vf_lt(x, vf_set(0x1p-126f));
    vf scaled = vf_blend(tiny, x * vf_set(0x1p25f), x);
    scaled = vf_blend(vf_is_nan(x), vf_set(1.0f), scaled);
    vi bits = vi_bits(scaled) + (0x3f800000 - 0x3f3504f3);
    vi exponent = (bits >> 23) - 127 - vi_blend(tiny, vi_set(25), vi_set(0));
    vf f = vf_bits((bits & 0x7fffff) + 0x3f3504f3) - vf_set(1.0f);
    vf k = vf_from_vi(exponent);
    vf s = f / (vf_set(2.0f) + f), z = s * s, half_square = vf_set(0.5f) * f * f;
    vf r = vf_set(2.0f / 11);
    r = vf_fma(r, z, vf_set(2.0f / 9));
    r = vf_fma(r, z, vf_set(2.0f / 7));
    r = vf_fma(r, z, vf_set(2.0f / 5));
    r = vf_fma(r, z, vf_set(2.0f / 3)) * z;
    vf y = vf_fma(s, half_square + r, k * vf_set(DP_LN2_LOW)) - half_square + f;
    y = vf_fma(k, vf_set(DP_LN2_HIGH), y);
    y = vf_blend(vf_eq(x, vf_set(__builtin_inff())), x, y);
    y = vf_blend(vf_lt(x, vf_set(0.0f)), vf_set(__builtin_nanf("")), y);
    y = vf_blend(vf_eq(x, vf_set(0.0f)), vf_set(-__builtin_inff()), y);
    return vf_blend(vf_is_nan(x), x, y);
}

#define DP_UNARY(op, type)                                                                                             \
    static void op##_##type(void *dst, const void *a, size_t n) {                                                      \
        DP_LANE_LOOP(n, vf_store_##type(dst, i, op##_of(vf_load_##type(a, i))),                                        \
                     vf_store_##type##_n(dst, i, rest, op##_of(vf_load_##type##_n(a, i, rest))))                       \
    }
DP_UNARY(exp, f32)
DP_UNARY(exp, f16)
DP_UNARY(exp, bf16)
DP_UNARY(ln, f32)
DP_UNARY(ln, f16)
DP_UNARY(ln, bf16)

void DP_RUNG(dp_math_fill_transcendental)(dp_math *table) {
    table->unary[DP_MATH_EXP][DP_F32] = exp_f32;
    table->unary[DP_MATH_EXP][DP_F16] = exp_f16;
    table->unary[DP_MATH_EXP][DP_BF16] = exp_bf16;
    table->unary[DP_MATH_LN][DP_F32] = ln_f32;
    table->unary[DP_MATH_LN][DP_F16] = ln_f16;
    table->unary[DP_MATH_LN][DP_BF16] = ln_bf16;
}
