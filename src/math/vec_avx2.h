/* vec_avx2.h - the vector vocabulary with 8 lanes (AVX2, FMA, F16C); see vec.h. */
#ifndef DOPPEL_MATH_VEC_AVX2_H
#define DOPPEL_MATH_VEC_AVX2_H

#include <immintrin.h>

#define DP_LANES 8

typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));
typedef __m256 vm; /* sign bit of every lane */

DP_INLINE vf vf_set(float x) { return _mm256_set1_ps(x); }
DP_INLINE vi vi_set(int32_t x) { return (vi)_mm256_set1_epi32(x); }
DP_INLINE vf vf_bits(vi x) { return (vf)x; }
DP_INLINE vi vi_bits(vf x) { return (vi)x; }

DP_INLINE __m256i lanes_below(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/* Fewer than 8 elements of 1 or 2 bytes go through a small buffer: AVX2 has no masked access of that width. */
DP_INLINE __m128i load_part(const void *p, size_t bytes) {
    char room[16] = {0};
    memcpy(room, p, bytes);
    return _mm_loadu_si128((const void *)room);
}
DP_INLINE void store_part(void *p, size_t bytes, __m128i v) {
    char room[16];
    _mm_storeu_si128((void *)room, v);
    memcpy(p, room, bytes);
}
/* low 16 bits, low 8 bits of every lane, packed */
DP_INLINE __m128i low_halves(vi v) {
    __m256i x = _mm256_and_si256((__m256i)v, _mm256_set1_epi32(0xffff));
    return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}
DP_INLINE __m128i low_bytes(vi v) {
    __m128i x = low_halves(v & 0xff);
    return _mm_packus_epi16(x, x);
}

DP_INLINE vf vf_load_f32(const void *p, size_t i) { return _mm256_loadu_ps((const float *)p + i); }
DP_INLINE vf vf_load_f32_n(const void *p, size_t i, size_t n) {
    return _mm256_maskload_ps((const float *)p + i, lanes_below(n));
}
DP_INLINE void vf_store_f32(void *p, size_t i, vf v) { _mm256_storeu_ps((float *)p + i, v); }
DP_INLINE void vf_store_f32_n(void *p, size_t i, size_t n, vf v) {
    _mm256_maskstore_ps((float *)p + i, lanes_below(n), v);
}

DP_INLINE __m128i load_8x16(const void *p, size_t i) { return _mm_loadu_si128((const void *)((const int16_t *)p + i)); }
DP_INLINE __m128i load_8x16_n(const void *p, size_t i, size_t n) { return load_part((const int16_t *)p + i, 2 * n); }
DP_INLINE void store_8x16(void *p, size_t i, __m128i v) { _mm_storeu_si128((void *)((int16_t *)p + i), v); }
DP_INLINE void store_8x16_n(void *p, size_t i, size_t n, __m128i v) { store_part((int16_t *)p + i, 2 * n, v); }
DP_INLINE __m128i load_8x8(const void *p, size_t i) { return _mm_loadl_epi64((const void *)((const int8_t *)p + i)); }
DP_INLINE __m128i load_8x8_n(const void *p, size_t i, size_t n) { return load_part((const int8_t *)p + i, n); }

#define DP_HALF_DOWN(v) _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)
DP_INLINE vf vf_load_f16(const void *p, size_t i) { return _mm256_cvtph_ps(load_8x16(p, i)); }
DP_INLINE vf vf_load_f16_n(const void *p, size_t i, size_t n) { return _mm256_cvtph_ps(load_8x16_n(p, i, n)); }
DP_INLINE void vf_store_f16(void *p, size_t i, vf v) { store_8x16(p, i, DP_HALF_DOWN(v)); }
DP_INLINE void vf_store_f16_n(void *p, size_t i, size_t n, vf v) { store_8x16_n(p, i, n, DP_HALF_DOWN(v)); }
/* The half nearest to zero, as its bits. */
DP_INLINE vi half_trunc(vf v) { return (vi)_mm256_cvtepu16_epi32(_mm256_cvtps_ph(v, _MM_FROUND_TO_ZERO)); }
DP_INLINE vf half_widen(vi bits) { return _mm256_cvtph_ps(low_halves(bits)); }

DP_INLINE vf vf_load_bf16(const void *p, size_t i) {
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_8x16(p, i)), 16);
}
DP_INLINE vf vf_load_bf16_n(const void *p, size_t i, size_t n) {
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_8x16_n(p, i, n)), 16);
}
DP_INLINE vi bf16_of(vf v) {
    vi x = vi_bits(v), odd = (x >> 16) & 1;
    vi rounded = (vi)_mm256_add_epi32((__m256i)x, (__m256i)(odd + 0x7fff)); /* wraps for NaN */
    __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    return (vi)_mm256_srli_epi32((__m256i)_mm256_blendv_ps((vf)rounded, (vf)(x | 0x400000), nan), 16);
}
DP_INLINE void vf_store_bf16(void *p, size_t i, vf v) { store_8x16(p, i, low_halves(bf16_of(v))); }
DP_INLINE void vf_store_bf16_n(void *p, size_t i, size_t n, vf v) { store_8x16_n(p, i, n, low_halves(bf16_of(v))); }

DP_INLINE vi vi_load_i8(const void *p, size_t i) { return (vi)_mm256_cvtepi8_epi32(load_8x8(p, i)); }
DP_INLINE vi vi_load_i8_n(const void *p, size_t i, size_t n) { return (vi)_mm256_cvtepi8_epi32(load_8x8_n(p, i, n)); }
DP_INLINE vi vi_load_u8(const void *p, size_t i) { return (vi)_mm256_cvtepu8_epi32(load_8x8(p, i)); }
DP_INLINE vi vi_load_u8_n(const void *p, size_t i, size_t n) { return (vi)_mm256_cvtepu8_epi32(load_8x8_n(p, i, n)); }
DP_INLINE vi vi_load_i16(const void *p, size_t i) { return (vi)_mm256_cvtepi16_epi32(load_8x16(p, i)); }
DP_INLINE vi vi_load_i16_n(const void *p, size_t i, size_t n) { return (vi)_mm256_cvtepi16_epi32(load_8x16_n(p, i, n)); }
DP_INLINE vi vi_load_u16(const void *p, size_t i) { return (vi)_mm256_cvtepu16_epi32(load_8x16(p, i)); }
DP_INLINE vi vi_load_u16_n(const void *p, size_t i, size_t n) { return (vi)_mm256_cvtepu16_epi32(load_8x16_n(p, i, n)); }
DP_INLINE vi vi_load_i32(const void *p, size_t i) {
    return (vi)_mm256_loadu_si256((const void *)((const int32_t *)p + i));
}
DP_INLINE vi vi_load_i32_n(const void *p, size_t i, size_t n) {
    return (vi)_mm256_maskload_epi32((const int32_t *)p + i, lanes_below(n));
}
DP_INLINE void vi_store_i8(void *p, size_t i, vi v) { _mm_storel_epi64((void *)((int8_t *)p + i), low_bytes(v)); }
DP_INLINE void vi_store_i8_n(void *p, size_t i, size_t n, vi v) { store_part((int8_t *)p + i, n, low_bytes(v)); }
DP_INLINE void vi_store_i16(void *p, size_t i, vi v) { store_8x16(p, i, low_halves(v)); }
DP_INLINE void vi_store_i16_n(void *p, size_t i, size_t n, vi v) { store_8x16_n(p, i, n, low_halves(v)); }
DP_INLINE void vi_store_i32(void *p, size_t i, vi v) { _mm256_storeu_si256((void *)((int32_t *)p + i), (__m256i)v); }
DP_INLINE void vi_store_i32_n(void *p, size_t i, size_t n, vi v) {
    _mm256_maskstore_epi32((int32_t *)p + i, lanes_below(n), (__m256i)v);
}

DP_INLINE vf in_order(vf pairs) { return (vf)_mm256_permute4x64_pd((__m256d)pairs, 0xd8); }
DP_INLINE vf vf_even(vf a, vf b) { return in_order(_mm256_shuffle_ps(a, b, 0x88)); }
DP_INLINE vf vf_odd(vf a, vf b) { return in_order(_mm256_shuffle_ps(a, b, 0xdd)); }
/* d is a constant at every call */
DP_INLINE vf vf_merge(vf a, vf b, unsigned d) {
    return d == 1 ? _mm256_blend_ps(a, b, 0xaa) : d == 2 ? _mm256_blend_ps(a, b, 0xcc) : _mm256_blend_ps(a, b, 0xf0);
}
DP_INLINE vf vf_partner(vf a, vf b, unsigned d) {
    return d == 1   ? _mm256_permute_ps(_mm256_blend_ps(b, a, 0xaa), 0xb1)
           : d == 2 ? _mm256_shuffle_ps(a, b, 0x4e)
                    : _mm256_permute2f128_ps(a, b, 0x21);
}
DP_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
DP_INLINE vf vf_least(vf a, vf b) { return _mm256_min_ps(a, b); }
DP_INLINE vf vf_greatest(vf a, vf b) { return _mm256_max_ps(a, b); }
DP_INLINE vf vf_scale(vf x, vf n) {
    vi k = (vi)_mm256_cvttps_epi32(n), first = k >> 1, second = k - first;
    return x * (vf)((first + 127) << 23) * (vf)((second + 127) << 23);
}
DP_INLINE vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
DP_INLINE vf vf_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
DP_INLINE vf vf_rint(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
DP_INLINE vf vf_floor(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
DP_INLINE vf vf_ceil(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
DP_INLINE vf vf_trunc(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
DP_INLINE vi vi_from_vf(vf a) { return (vi)_mm256_cvttps_epi32(a); }
DP_INLINE vf vf_from_vi(vi a) { return _mm256_cvtepi32_ps((__m256i)a); }

DP_INLINE vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
DP_INLINE vm vf_gt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
DP_INLINE vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
DP_INLINE vm vf_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
DP_INLINE vm vf_ge(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
DP_INLINE vm vf_ne(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
DP_INLINE vm vf_is_nan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
DP_INLINE vm vf_unordered(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
DP_INLINE vm vi_lt(vi a, vi b) { return (vm)_mm256_cmpgt_epi32((__m256i)b, (__m256i)a); }
DP_INLINE vm vi_gt(vi a, vi b) { return (vm)_mm256_cmpgt_epi32((__m256i)a, (__m256i)b); }
DP_INLINE vm vi_eq(vi a, vi b) { return (vm)_mm256_cmpeq_epi32((__m256i)a, (__m256i)b); }
DP_INLINE vm vm_or(vm a, vm b) { return _mm256_or_ps(a, b); }
DP_INLINE vm vm_and(vm a, vm b) { return _mm256_and_ps(a, b); }
DP_INLINE vm vm_not(vm a) { return (vm)~(vi)a; }
DP_INLINE uint32_t vm_bits(vm m) { return (uint32_t)_mm256_movemask_ps(m); }
DP_INLINE vf vf_blend(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }
DP_INLINE vi vi_blend(vm m, vi yes, vi no) { return (vi)_mm256_blendv_ps((vf)no, (vf)yes, m); }
DP_INLINE uint32_t vi_least_of(vm m, vi a) {
    __m256i x = _mm256_or_si256((__m256i)a, (__m256i)vm_not(m));
    __m128i y = _mm_min_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_min_epu32(y, _mm_shuffle_epi32(y, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_min_epu32(y, _mm_shuffle_epi32(y, 0xb1)));
}
DP_INLINE vi vi_shift_right_logical(vi a, int count) { return (vi)_mm256_srli_epi32((__m256i)a, count); }

#endif
