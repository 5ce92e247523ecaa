/*
 * rounding.h - the rounding modes of Cast on lanes: to integral values, to half and to bfloat16.
 * Each mode has a word (rint floor ceil round trunc odd) so that conversions are named by it. odd: towards zero, and the
 * last bit set when anything was lost.
 */
#ifndef DOPPEL_MATH_ROUNDING_H
#define DOPPEL_MATH_ROUNDING_H

#include "math/vec.h"

DP_INLINE vf vf_copysign(vf magnitude, vf sign) {
    return vf_bits((vi_bits(magnitude) & 0x7fffffff) | (vi_bits(sign) & INT32_MIN));
}

DP_INLINE vf integral_rint(vf x) { return vf_rint(x); }
DP_INLINE vf integral_floor(vf x) { return vf_floor(x); }
DP_INLINE vf integral_ceil(vf x) { return vf_ceil(x); }
DP_INLINE vf integral_trunc(vf x) { return vf_trunc(x); }
/* The addend is the float below 1/2: with 1/2 itself, the largest float below 1/2 would become 1. */
DP_INLINE vf integral_round(vf x) { return vf_trunc(x + vf_copysign(vf_set(0x1.fffffep-2f), x)); }
DP_INLINE vf integral_odd(vf x) {
    vf t = vf_trunc(x), half = t * vf_set(0.5f);
    vm step = vm_and(vf_lt(vf_abs(t), vf_abs(x)), vf_eq(half, vf_trunc(half)));
    return vf_blend(step, t + vf_copysign(vf_set(1.0f), x), t);
}

/* bits of a narrower format rounded towards zero, and up by one step of magnitude where m holds */
DP_INLINE vi step_up(vm m, vi truncated) { return truncated + vi_blend(m, vi_set(1), vi_set(0)); }

/* Bits of the half (f16_*) or bfloat16 (bf16_*) that x becomes. A step above the largest finite half is infinity. */
DP_INLINE vm f16_lost(vf x, vi truncated) { return vf_lt(vf_abs(half_widen(truncated)), vf_abs(x)); }
DP_INLINE vi f16_trunc(vf x) { return half_trunc(x); }
DP_INLINE vi f16_floor(vf x) {
    vi t = half_trunc(x);
    return step_up(vm_and(f16_lost(x, t), vf_lt(x, vf_set(0.0f))), t);
}
DP_INLINE vi f16_ceil(vf x) {
    vi t = half_trunc(x);
    return step_up(vm_and(f16_lost(x, t), vf_gt(x, vf_set(0.0f))), t);
}
DP_INLINE vi f16_odd(vf x) {
    vi t = half_trunc(x);
    return t | vi_blend(f16_lost(x, t), vi_set(1), vi_set(0));
}
DP_INLINE vi f16_round(vf x) {
    vi t = half_trunc(x);
    vf size = vf_abs(x), below = vf_abs(half_widen(t)), above = vf_abs(half_widen(t + 1));
    above = vf_blend(vi_eq(t & 0x7fff, vi_set(0x7bff)), vf_set(65536.0f), above);
    return step_up(vm_and(f16_lost(x, t), vf_ge(size - below, above - size)), t);
}

DP_INLINE vi bf16_or_nan(vf x, vi rounded) { return vi_blend(vf_is_nan(x), bf16_of(x), rounded); }
DP_INLINE vi bf16_low(vf x) { return vi_bits(x) & 0xffff; }
DP_INLINE vi bf16_high(vf x) { return vi_shift_right_logical(vi_bits(x), 16); }
DP_INLINE vi bf16_trunc(vf x) { return bf16_or_nan(x, bf16_high(x)); }
DP_INLINE vi bf16_floor(vf x) {
    vm down = vm_and(vi_gt(bf16_low(x), vi_set(0)), vf_lt(x, vf_set(0.0f)));
    return bf16_or_nan(x, step_up(down, bf16_high(x)));
}
DP_INLINE vi bf16_ceil(vf x) {
    vm up = vm_and(vi_gt(bf16_low(x), vi_set(0)), vf_gt(x, vf_set(0.0f)));
    return bf16_or_nan(x, step_up(up, bf16_high(x)));
}
DP_INLINE vi bf16_odd(vf x) {
    return bf16_or_nan(x, bf16_high(x) | vi_blend(vi_gt(bf16_low(x), vi_set(0)), vi_set(1), vi_set(0)));
}
DP_INLINE vi bf16_round(vf x) { return bf16_or_nan(x, step_up(vi_gt(bf16_low(x), vi_set(0x7fff)), bf16_high(x))); }

/*
 * int32 to float. The number is split into two exact floats; their sum is the nearest float and the second part of the exact
 * sum says what was lost (Dekker's fast two-sum), from which the magnitude rounded towards zero follows.
 */
typedef struct float_parts {
    vf nearest, lost; /* value = nearest + lost */
    vi toward_zero;   /* bits */
} float_parts;

DP_INLINE float_parts f32_parts(vi x) {
    vf high = vf_from_vi(x & ~0xff), low = vf_from_vi(x & 0xff), nearest = high + low, lost = low - (nearest - high);
    vf zero = vf_set(0.0f);
    vm beyond = vm_or(vm_and(vf_gt(nearest, zero), vf_lt(lost, zero)), vm_and(vf_lt(nearest, zero), vf_gt(lost, zero)));
    return (float_parts){nearest, lost, vi_bits(nearest) - vi_blend(beyond, vi_set(1), vi_set(0))};
}
DP_INLINE vf f32_rint(vi x) { return vf_from_vi(x); }
DP_INLINE vf f32_trunc(vi x) { return vf_bits(f32_parts(x).toward_zero); }
DP_INLINE vf f32_floor(vi x) {
    float_parts p = f32_parts(x);
    vm down = vm_and(vf_ne(p.lost, vf_set(0.0f)), vi_lt(x, vi_set(0)));
    return vf_bits(step_up(down, p.toward_zero));
}
DP_INLINE vf f32_ceil(vi x) {
    float_parts p = f32_parts(x);
    vm up = vm_and(vf_ne(p.lost, vf_set(0.0f)), vi_gt(x, vi_set(0)));
    return vf_bits(step_up(up, p.toward_zero));
}
DP_INLINE vf f32_odd(vi x) {
    float_parts p = f32_parts(x);
    return vf_bits(p.toward_zero | vi_blend(vf_ne(p.lost, vf_set(0.0f)), vi_set(1), vi_set(0)));
}
DP_INLINE vf f32_round(vi x) {
    float_parts p = f32_parts(x);
    vf step = vf_abs(vf_bits(p.toward_zero + 1)) - vf_abs(vf_bits(p.toward_zero)), lost = vf_abs(p.lost);
    vm tie = vm_and(vf_ne(lost, vf_set(0.0f)), vf_eq(lost + lost, step));
    return vf_bits(vi_blend(tie, p.toward_zero + 1, vi_bits(p.nearest)));
}

/* Integral float to a bounded integer: saturates, a NaN becomes 0. */
DP_INLINE vi saturate_float(vf x, float low, float high) {
    vf y = vf_blend(vf_is_nan(x), vf_set(0.0f), x);
    y = vf_blend(vf_lt(y, vf_set(low)), vf_set(low), y);
    return vi_from_vf(vf_blend(vf_gt(y, vf_set(high)), vf_set(high), y));
}
DP_INLINE vi saturate_i32(vf x) {
    vi y = vi_blend(vf_ge(x, vf_set(0x1p31f)), vi_set(INT32_MAX), vi_from_vf(x));
    return vi_blend(vf_is_nan(x), vi_set(0), y);
}
DP_INLINE vi saturate_int(vi x, int32_t low, int32_t high) {
    vi y = vi_blend(vi_lt(x, vi_set(low)), vi_set(low), x);
    return vi_blend(vi_gt(y, vi_set(high)), vi_set(high), y);
}

#endif
