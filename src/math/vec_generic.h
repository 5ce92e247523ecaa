/* vec_generic.h - the vector vocabulary with one lane of plain C: the reference; see vec.h. */
#ifndef DOPPEL_MATH_VEC_GENERIC_H
#define DOPPEL_MATH_VEC_GENERIC_H

#include <math.h>
#include <stdbool.h>

#define DP_LANES 1

typedef float vf;
typedef int32_t vi;
typedef bool vm;

DP_INLINE vf vf_set(float x) { return x; }
DP_INLINE vi vi_set(int32_t x) { return x; }
DP_INLINE vf vf_bits(vi x) { return dp_f32_from_bits((uint32_t)x); }
DP_INLINE vi vi_bits(vf x) { return (int32_t)dp_f32_bits(x); }

DP_INLINE vf vf_load_f32(const void *p, size_t i) { return ((const float *)p)[i]; }
#if defined(__ARM_FP16_FORMAT_IEEE) /* the compiler converts halves with the processor's instructions */
typedef __fp16 __attribute__((may_alias)) vec_half; /* elsewhere halves are uint16_t */
DP_INLINE vf vf_load_f16(const void *p, size_t i) { return (float)((const vec_half *)p)[i]; }
DP_INLINE void vf_store_f16(void *p, size_t i, vf v) { ((vec_half *)p)[i] = (__fp16)v; }
#else
DP_INLINE vf vf_load_f16(const void *p, size_t i) { return dp_f32_from_f16(((const uint16_t *)p)[i]); }
DP_INLINE void vf_store_f16(void *p, size_t i, vf v) { ((uint16_t *)p)[i] = dp_f16_from_f32(v); }
#endif
DP_INLINE vf vf_load_bf16(const void *p, size_t i) { return dp_f32_from_bf16(((const uint16_t *)p)[i]); }
DP_INLINE void vf_store_f32(void *p, size_t i, vf v) { ((float *)p)[i] = v; }
DP_INLINE void vf_store_bf16(void *p, size_t i, vf v) { ((uint16_t *)p)[i] = dp_bf16_from_f32(v); }
/* The half nearest to zero, as its bits: the nearest one, stepped back if it lies beyond. */
DP_INLINE vi half_trunc(vf v) {
    uint16_t h = dp_f16_from_f32(v);
    float nearest = dp_f32_from_f16(h);
    return __builtin_fabsf(nearest) > __builtin_fabsf(v) ? h - 1 : h;
}
DP_INLINE vf half_widen(vi bits) { return dp_f32_from_f16((uint16_t)bits); }
DP_INLINE vi bf16_of(vf v) { return dp_bf16_from_f32(v); }
DP_INLINE vi vi_load_i8(const void *p, size_t i) { return ((const int8_t *)p)[i]; }
DP_INLINE vi vi_load_u8(const void *p, size_t i) { return ((const uint8_t *)p)[i]; }
DP_INLINE vi vi_load_i16(const void *p, size_t i) { return ((const int16_t *)p)[i]; }
DP_INLINE vi vi_load_u16(const void *p, size_t i) { return ((const uint16_t *)p)[i]; }
DP_INLINE vi vi_load_i32(const void *p, size_t i) { return ((const int32_t *)p)[i]; }
/* the low bits of every lane */
DP_INLINE void vi_store_i8(void *p, size_t i, vi v) { ((int8_t *)p)[i] = (int8_t)v; }
DP_INLINE void vi_store_i16(void *p, size_t i, vi v) { ((int16_t *)p)[i] = (int16_t)v; }
DP_INLINE void vi_store_i32(void *p, size_t i, vi v) { ((int32_t *)p)[i] = v; }

/* One lane has no remainder: the _n forms are never reached, and exist so that the families compile. */
#define DP_GENERIC_REST(prefix, v, type)                                                                               \
    DP_INLINE v prefix##_load_##type##_n(const void *p, size_t i, size_t n) {                                          \
        (void)n;                                                                                                       \
        return prefix##_load_##type(p, i);                                                                             \
    }
#define DP_GENERIC_STORE_REST(prefix, v, type)                                                                         \
    DP_INLINE void prefix##_store_##type##_n(void *p, size_t i, size_t n, v x) {                                       \
        (void)n;                                                                                                       \
        prefix##_store_##type(p, i, x);                                                                                \
    }
DP_GENERIC_REST(vf, vf, f32)
DP_GENERIC_REST(vf, vf, f16)
DP_GENERIC_REST(vf, vf, bf16)
DP_GENERIC_REST(vi, vi, i8)
DP_GENERIC_REST(vi, vi, u8)
DP_GENERIC_REST(vi, vi, i16)
DP_GENERIC_REST(vi, vi, u16)
DP_GENERIC_REST(vi, vi, i32)
DP_GENERIC_STORE_REST(vf, vf, f32)
DP_GENERIC_STORE_REST(vf, vf, f16)
DP_GENERIC_STORE_REST(vf, vf, bf16)
DP_GENERIC_STORE_REST(vi, vi, i8)
DP_GENERIC_STORE_REST(vi, vi, i16)
DP_GENERIC_STORE_REST(vi, vi, i32)

/* Lanes 0, 2, 4, ... of a followed by b; lanes 1, 3, 5, ... likewise. */
DP_INLINE vf vf_even(vf a, vf b) {
    (void)b;
    return a;
}
DP_INLINE vf vf_odd(vf a, vf b) {
    (void)a;
    return b;
}
/*
 * With bit d (1, 2, 4, ... below DP_LANES) of a lane's number clear and set: its own lane of a and of b; what stands d lanes
 * further in a and d lanes before in b. One lane has no such bit.
 */
DP_INLINE vf vf_merge(vf a, vf b, unsigned d) {
    (void)b, (void)d;
    return a;
}
DP_INLINE vf vf_partner(vf a, vf b, unsigned d) {
    (void)a, (void)d;
    return b;
}
DP_INLINE vf vf_fma(vf a, vf b, vf c) { return __builtin_fmaf(a, b, c); }
/* a < b ? a : b and a > b ? a : b: a NaN in b stays. */
DP_INLINE vf vf_least(vf a, vf b) { return a < b ? a : b; }
DP_INLINE vf vf_greatest(vf a, vf b) { return a > b ? a : b; }
/*
 * x * 2^n, rounded once, for 2^-2 < |x| < 2^2 and integral n, |n| < 250; a NaN stays. The power is applied in two factors so
 * that only the second product can be inexact.
 */
DP_INLINE vf vf_scale(vf x, vf n) {
    if (x != x)
        return x;
    int32_t k = (int32_t)n, first = k / 2, second = k - first;
    return x * dp_f32_from_bits((uint32_t)(first + 127) << 23) * dp_f32_from_bits((uint32_t)(second + 127) << 23);
}
DP_INLINE vf vf_sqrt(vf a) { return __builtin_sqrtf(a); }
DP_INLINE vf vf_abs(vf a) { return __builtin_fabsf(a); }
DP_INLINE vf vf_rint(vf a) { return rintf(a); }
DP_INLINE vf vf_floor(vf a) { return floorf(a); }
DP_INLINE vf vf_ceil(vf a) { return ceilf(a); }
DP_INLINE vf vf_trunc(vf a) { return truncf(a); }

/* Towards zero; INT32_MIN for what int32 cannot hold. */
DP_INLINE vi vi_from_vf(vf a) { return a >= -0x1p31f && a < 0x1p31f ? (int32_t)a : INT32_MIN; }
DP_INLINE vf vf_from_vi(vi a) { return (float)a; } /* rounds to nearest even */

/* Comparisons are false when an operand is a NaN, except ne. */
DP_INLINE vm vf_lt(vf a, vf b) { return a < b; }
DP_INLINE vm vf_gt(vf a, vf b) { return a > b; }
DP_INLINE vm vf_eq(vf a, vf b) { return a == b; }
DP_INLINE vm vf_le(vf a, vf b) { return a <= b; }
DP_INLINE vm vf_ge(vf a, vf b) { return a >= b; }
DP_INLINE vm vf_ne(vf a, vf b) { return a != b; }
DP_INLINE vm vf_is_nan(vf a) { return a != a; }
DP_INLINE vm vf_unordered(vf a, vf b) { return (a != a) | (b != b); } /* one of them is a NaN */
DP_INLINE vm vi_lt(vi a, vi b) { return a < b; }
DP_INLINE vm vi_gt(vi a, vi b) { return a > b; }
DP_INLINE vm vi_eq(vi a, vi b) { return a == b; }
DP_INLINE vm vm_or(vm a, vm b) { return a | b; }
DP_INLINE vm vm_and(vm a, vm b) { return a & b; }
DP_INLINE vm vm_not(vm a) { return !a; }
/* Bit k = lane k. */
DP_INLINE uint32_t vm_bits(vm m) { return m; }
DP_INLINE vf vf_blend(vm m, vf yes, vf no) { return m ? yes : no; }
DP_INLINE vi vi_blend(vm m, vi yes, vi no) { return m ? yes : no; }
/* The least of the chosen lanes as unsigned numbers; there is one. */
DP_INLINE uint32_t vi_least_of(vm m, vi a) {
    (void)m;
    return (uint32_t)a;
}
DP_INLINE vi vi_shift_right_logical(vi a, int count) { return (int32_t)((uint32_t)a >> count); }

#endif
