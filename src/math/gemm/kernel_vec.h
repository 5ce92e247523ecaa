/*
 * kernel_vec.h - the vector of one rung as the micro-kernel sees it: KV_LANES units of 4 bytes, whatever they hold.
 *
 * KV_ROWS x KV_VECTORS accumulators (and KV_VECTORS + 1 operands) fit the registers. kv_load, kv_store, kv_add_f32, kv_add_i32
 * are plain; kv_spread copies one unit to all lanes; kv_mac_<kind>(sum, a, b) adds the products of the units of a and b.
 */
#ifndef DOPPEL_MATH_GEMM_KERNEL_VEC_H
#define DOPPEL_MATH_GEMM_KERNEL_VEC_H

#include "math/vec.h"

/* Keeps a pointer in a register of its own: the compiler would derive it from others, with arithmetic in the loop. */
#define KV_POINTER(p) __asm__("" : "+r"(p))

#if DP_MATH_RUNG == DP_RUNG_AVX512

#define KV_LANES 16
#define KV_ROWS 14
#define KV_VECTORS 2
#define KV_EACH_ROW(X, v)                                                                                              \
    X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v) X(7, v) X(8, v) X(9, v) X(10, v) X(11, v) X(12, v) X(13, v) X(14, v)
typedef __m512i kv;
DP_INLINE kv kv_zero(void) { return _mm512_setzero_si512(); }
DP_INLINE kv kv_load(const void *p) { return _mm512_loadu_si512(p); }
DP_INLINE void kv_store(void *p, kv v) { _mm512_storeu_si512(p, v); }
DP_INLINE kv kv_spread(const uint32_t *p) { return _mm512_set1_epi32((int)*p); }
DP_INLINE kv kv_add_f32(kv a, kv b) { return (kv)_mm512_add_ps((__m512)a, (__m512)b); }
DP_INLINE kv kv_add_i32(kv a, kv b) { return _mm512_add_epi32(a, b); }
/* In this order and form: left alone, compilers move the multiplications of several steps about until registers run out. */
DP_INLINE kv kv_mac_f32(kv sum, kv a, kv b) {
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
DP_INLINE kv kv_mac_i16(kv sum, kv a, kv b) { return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)); }
#if defined(__AVX512BF16__)
DP_INLINE kv kv_mac_bf16(kv sum, kv a, kv b) { return (kv)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b); }
#endif
#if defined(__AVX512VNNI__)
DP_INLINE kv kv_mac_u8(kv sum, kv a, kv b) { return _mm512_dpbusd_epi32(sum, a, b); }
#endif
#define KV_IN_REGISTER(v) __asm__("" : "+v"(v))
/* The unit at p spread to all lanes as operand of the multiplication. */
#define KV_SPREAD_f32 1
DP_INLINE kv kv_mac_spread_f32(kv sum, const uint32_t *p, kv b) {
    __asm__ volatile("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*p));
    return sum;
}
#define KV_SPREAD_bf16 0
#define KV_SPREAD_i16 0
#define KV_SPREAD_u8 0

#elif DP_MATH_RUNG == DP_RUNG_AVX2

#define KV_LANES 8
#define KV_ROWS 6
#define KV_VECTORS 2
#define KV_EACH_ROW(X, v) X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v)
typedef __m256i kv;
DP_INLINE kv kv_zero(void) { return _mm256_setzero_si256(); }
DP_INLINE kv kv_load(const void *p) { return _mm256_loadu_si256(p); }
DP_INLINE void kv_store(void *p, kv v) { _mm256_storeu_si256(p, v); }
DP_INLINE kv kv_spread(const uint32_t *p) { return _mm256_set1_epi32((int)*p); }
DP_INLINE kv kv_add_f32(kv a, kv b) { return (kv)_mm256_add_ps((__m256)a, (__m256)b); }
DP_INLINE kv kv_add_i32(kv a, kv b) { return _mm256_add_epi32(a, b); }
DP_INLINE kv kv_mac_f32(kv sum, kv a, kv b) { return (kv)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum); }
DP_INLINE kv kv_mac_i16(kv sum, kv a, kv b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
#define KV_IN_REGISTER(v) __asm__("" : "+x"(v))
#define KV_SPREAD_f32 0
#define KV_SPREAD_i16 0

#else

#define KV_LANES 4
#if defined(__aarch64__)
#define KV_ROWS 8
#define KV_EACH_ROW(X, v) X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v) X(7, v) X(8, v)
#else
#define KV_ROWS 4
#define KV_EACH_ROW(X, v) X(1, v) X(2, v) X(3, v) X(4, v)
#endif
#define KV_VECTORS 2
typedef float kv_floats __attribute__((vector_size(16)));
typedef int32_t kv __attribute__((vector_size(16)));
DP_INLINE kv kv_zero(void) { return (kv){0, 0, 0, 0}; }
DP_INLINE kv kv_load(const void *p) {
    kv v;
    memcpy(&v, p, sizeof v);
    return v;
}
DP_INLINE void kv_store(void *p, kv v) { memcpy(p, &v, sizeof v); }
DP_INLINE kv kv_spread(const uint32_t *p) {
    int32_t x = (int32_t)*p;
    return (kv){x, x, x, x};
}
DP_INLINE kv kv_add_f32(kv a, kv b) { return (kv)((kv_floats)a + (kv_floats)b); }
DP_INLINE kv kv_add_i32(kv a, kv b) { return a + b; }
DP_INLINE kv kv_mac_f32(kv sum, kv a, kv b) { return (kv)((kv_floats)a * (kv_floats)b + (kv_floats)sum); }
DP_INLINE kv kv_mac_i16(kv sum, kv a, kv b) { return sum + (a >> 16) * (b >> 16) + ((a << 16) >> 16) * ((b << 16) >> 16); }
#define KV_IN_REGISTER(v) (void)(v)
#define KV_SPREAD_f32 0
#define KV_SPREAD_i16 0

#endif

#endif
