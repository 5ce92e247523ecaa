/* vec_avx512.h - the vector vocabulary with 16 lanes (AVX-512 F, BW, VL, DQ); see vec.h. */
#ifndef DOPPEL_MATH_VEC_AVX512_H
#define DOPPEL_MATH_VEC_AVX512_H

#include <immintrin.h>

#define DP_LANES 16

typedef __m512 vf;
typedef int32_t vi __attribute__((vector_size(64)));
typedef __mmask16 vm;

DP_INLINE vf vf_set(float x) { return _mm512_set1_ps(x); }
DP_INLINE vi vi_set(int32_t x) { return (vi)_mm512_set1_epi32(x); }
DP_INLINE vf vf_bits(vi x) { return (vf)x; }
DP_INLINE vi vi_bits(vf x) { return (vi)x; }
DP_INLINE __mmask16 lanes_below(size_t n) { return (__mmask16)((1u << n) - 1u); }

DP_INLINE vi bf16_of(vf v) {
    vi x = vi_bits(v), odd = (x >> 16) & 1;
    __m512i rounded = _mm512_add_epi32((__m512i)x, (__m512i)(odd + 0x7fff)); /* wraps for NaN */
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return (vi)_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, (__m512i)(x | 0x400000)), 16);
}

DP_INLINE vf vf_load_f32(const void *p, size_t i) { return _mm512_loadu_ps((const float *)p + i); }
DP_INLINE vf vf_load_f32_n(const void *p, size_t i, size_t n) {
    return _mm512_maskz_loadu_ps(lanes_below(n), (const float *)p + i);
}
DP_INLINE void vf_store_f32(void *p, size_t i, vf v) { _mm512_storeu_ps((float *)p + i, v); }
DP_INLINE void vf_store_f32_n(void *p, size_t i, size_t n, vf v) {
    _mm512_mask_storeu_ps((float *)p + i, lanes_below(n), v);
}

DP_INLINE __m256i load_16x16(const void *p, size_t i) { return _mm256_loadu_si256((const void *)((const int16_t *)p + i)); }
DP_INLINE __m256i load_16x16_n(const void *p, size_t i, size_t n) {
    return _mm256_maskz_loadu_epi16(lanes_below(n), (const int16_t *)p + i);
}
DP_INLINE void store_16x16(void *p, size_t i, __m256i v) { _mm256_storeu_si256((void *)((int16_t *)p + i), v); }
DP_INLINE void store_16x16_n(void *p, size_t i, size_t n, __m256i v) {
    _mm256_mask_storeu_epi16((int16_t *)p + i, lanes_below(n), v);
}
DP_INLINE __m128i load_16x8(const void *p, size_t i) { return _mm_loadu_si128((const void *)((const int8_t *)p + i)); }
DP_INLINE __m128i load_16x8_n(const void *p, size_t i, size_t n) {
    return _mm_maskz_loadu_epi8(lanes_below(n), (const int8_t *)p + i);
}

#define DP_HALF_DOWN(v) _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
DP_INLINE vf vf_load_f16(const void *p, size_t i) { return _mm512_cvtph_ps(load_16x16(p, i)); }
DP_INLINE vf vf_load_f16_n(const void *p, size_t i, size_t n) { return _mm512_cvtph_ps(load_16x16_n(p, i, n)); }
DP_INLINE void vf_store_f16(void *p, size_t i, vf v) { store_16x16(p, i, DP_HALF_DOWN(v)); }
DP_INLINE void vf_store_f16_n(void *p, size_t i, size_t n, vf v) { store_16x16_n(p, i, n, DP_HALF_DOWN(v)); }
/* The half nearest to zero, as its bits. */
DP_INLINE vi half_trunc(vf v) {
    return (vi)_mm512_cvtepu16_epi32(_mm512_cvtps_ph(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
DP_INLINE vf half_widen(vi bits) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)bits)); }

DP_INLINE vf vf_load_bf16(const void *p, size_t i) {
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_16x16(p, i)), 16);
}
DP_INLINE vf vf_load_bf16_n(const void *p, size_t i, size_t n) {
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_16x16_n(p, i, n)), 16);
}
DP_INLINE void vf_store_bf16(void *p, size_t i, vf v) { store_16x16(p, i, _mm512_cvtepi32_epi16((__m512i)bf16_of(v))); }
DP_INLINE void vf_store_bf16_n(void *p, size_t i, size_t n, vf v) {
    store_16x16_n(p, i, n, _mm512_cvtepi32_epi16((__m512i)bf16_of(v)));
}

DP_INLINE vi vi_load_i8(const void *p, size_t i) { return (vi)_mm512_cvtepi8_epi32(load_16x8(p, i)); }
DP_INLINE vi vi_load_i8_n(const void *p, size_t i, size_t n) { return (vi)_mm512_cvtepi8_epi32(load_16x8_n(p, i, n)); }
DP_INLINE vi vi_load_u8(const void *p, size_t i) { return (vi)_mm512_cvtepu8_epi32(load_16x8(p, i)); }
DP_INLINE vi vi_load_u8_n(const void *p, size_t i, size_t n) { return (vi)_mm512_cvtepu8_epi32(load_16x8_n(p, i, n)); }
DP_INLINE vi vi_load_i16(const void *p, size_t i) { return (vi)_mm512_cvtepi16_epi32(load_16x16(p, i)); }
DP_INLINE vi vi_load_i16_n(const void *p, size_t i, size_t n) { return (vi)_mm512_cvtepi16_epi32(load_16x16_n(p, i, n)); }
DP_INLINE vi vi_load_u16(const void *p, size_t i) { return (vi)_mm512_cvtepu16_epi32(load_16x16(p, i)); }
DP_INLINE vi vi_load_u16_n(const void *p, size_t i, size_t n) { return (vi)_mm512_cvtepu16_epi32(load_16x16_n(p, i, n)); }
DP_INLINE vi vi_load_i32(const void *p, size_t i) { return (vi)_mm512_loadu_si512((const int32_t *)p + i); }
DP_INLINE vi vi_load_i32_n(const void *p, size_t i, size_t n) {
    return (vi)_mm512_maskz_loadu_epi32(lanes_below(n), (const int32_t *)p + i);
}
DP_INLINE void vi_store_i8(void *p, size_t i, vi v) {
    _mm_storeu_si128((void *)((int8_t *)p + i), _mm512_cvtepi32_epi8((__m512i)v));
}
DP_INLINE void vi_store_i8_n(void *p, size_t i, size_t n, vi v) {
    _mm_mask_storeu_epi8((int8_t *)p + i, lanes_below(n), _mm512_cvtepi32_epi8((__m512i)v));
}
DP_INLINE void vi_store_i16(void *p, size_t i, vi v) { store_16x16(p, i, _mm512_cvtepi32_epi16((__m512i)v)); }
DP_INLINE void vi_store_i16_n(void *p, size_t i, size_t n, vi v) {
    store_16x16_n(p, i, n, _mm512_cvtepi32_epi16((__m512i)v));
}
DP_INLINE void vi_store_i32(void *p, size_t i, vi v) { _mm512_storeu_si512((int32_t *)p + i, (__m512i)v); }
DP_INLINE void vi_store_i32_n(void *p, size_t i, size_t n, vi v) {
    _mm512_mask_storeu_epi32((int32_t *)p + i, lanes_below(n), (__m512i)v);
}

DP_INLINE vf vf_even(vf a, vf b) {
    const __m512i lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, lanes, b);
}
DP_INLINE vf vf_odd(vf a, vf b) {
    const __m512i lanes = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, lanes, b);
}
/* d is a constant at every call */
DP_INLINE vf vf_merge(vf a, vf b, unsigned d) {
    return _mm512_mask_blend_ps(d == 1 ? 0xaaaa : d == 2 ? 0xcccc : d == 4 ? 0xf0f0 : 0xff00, a, b);
}
DP_INLINE vf vf_partner(vf a, vf b, unsigned d) {
    const __m512i next = _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
    const __m512i fourth = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
    return d == 1   ? _mm512_permutex2var_ps(a, next, b)
           : d == 2 ? _mm512_shuffle_ps(a, b, 0x4e)
           : d == 4 ? _mm512_permutex2var_ps(a, fourth, b)
                    : _mm512_shuffle_f32x4(a, b, 0x4e);
}
DP_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
DP_INLINE vf vf_least(vf a, vf b) { return _mm512_min_ps(a, b); }
DP_INLINE vf vf_greatest(vf a, vf b) { return _mm512_max_ps(a, b); }
/* Any float for n: infinities give infinity and zero, a NaN stays. */
#define DP_SCALE_ANY
DP_INLINE vf vf_scale(vf x, vf n) { return _mm512_scalef_ps(x, n); }
DP_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
DP_INLINE vf vf_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
DP_INLINE vf vf_rint(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
DP_INLINE vf vf_floor(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
DP_INLINE vf vf_ceil(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
DP_INLINE vf vf_trunc(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
DP_INLINE vi vi_from_vf(vf a) { return (vi)_mm512_cvttps_epi32(a); }
DP_INLINE vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps((__m512i)a); }

DP_INLINE vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
DP_INLINE vm vf_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
DP_INLINE vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
DP_INLINE vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
DP_INLINE vm vf_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
DP_INLINE vm vf_ne(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
DP_INLINE vm vf_is_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
DP_INLINE vm vf_unordered(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
DP_INLINE vm vi_lt(vi a, vi b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
DP_INLINE vm vi_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
DP_INLINE vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
DP_INLINE vm vm_or(vm a, vm b) { return (vm)(a | b); }
DP_INLINE vm vm_and(vm a, vm b) { return (vm)(a & b); }
DP_INLINE vm vm_not(vm a) { return (vm)~a; }
DP_INLINE uint32_t vm_bits(vm m) { return m; }
DP_INLINE vf vf_blend(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
DP_INLINE vi vi_blend(vm m, vi yes, vi no) { return (vi)_mm512_mask_blend_epi32(m, (__m512i)no, (__m512i)yes); }
DP_INLINE uint32_t vi_least_of(vm m, vi a) { return _mm512_mask_reduce_min_epu32(m, (__m512i)a); }
DP_INLINE vi vi_shift_right_logical(vi a, int count) { return (vi)_mm512_srli_epi32((__m512i)a, (unsigned)count); }

#endif
