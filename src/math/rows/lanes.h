/*
 * lanes.h - the vector of one rung as the kernels of rows see it: RV_LANES floats, RV_TILE rows of a tile. A test
 * compiles the wide form for a narrow processor by setting both: the compiler then divides the vectors.
 */
#ifndef DOPPEL_MATH_ROWS_LANES_H
#define DOPPEL_MATH_ROWS_LANES_H

#include "math/activation.h"
#include "math/rows/rows.h"

/*
 * Sums of RV_TILE rows x 2 vectors, 2 vectors of weights and one of the input fit the registers: 16 of AVX2, 32 of
 * AVX-512. More than 8 rows would need more addresses than there are registers for them.
 */
#ifndef RV_LANES
#if DP_MATH_RUNG == DP_RUNG_AVX512
#define RV_LANES 16
#define RV_TILE 8
#elif DP_MATH_RUNG == DP_RUNG_AVX2
#define RV_LANES 8
#define RV_TILE 6
#elif defined(__aarch64__)
#define RV_LANES 4
#define RV_TILE 8
#else
#define RV_LANES 4
#define RV_TILE 4
#endif
#endif
/* Rows of a tile of evenly spaced rows, which need no address each. */
#if RV_LANES == 16
#define RV_TALL 14
#else
#define RV_TALL RV_TILE
#endif
#ifndef DP_ROWS_NAME
#define DP_ROWS_NAME DP_RUNG
#endif

#define RV_UNROLL _Pragma("GCC unroll 16")
/* Keeps a pointer in a register of its own. */
#define RV_POINTER(p) __asm__("" : "+r"(p))
#define RV_PANEL_VECTORS (DP_ROWS_PANEL / RV_LANES)

typedef float rv __attribute__((vector_size(4 * RV_LANES)));
typedef float rv_anywhere __attribute__((vector_size(4 * RV_LANES), aligned(4), may_alias));
typedef int32_t rv_mask __attribute__((vector_size(4 * RV_LANES)));

DP_INLINE rv rv_load(const float *p) {
    return *(const rv_anywhere *)p;
}
DP_INLINE void rv_store(float *p, rv v) {
    *(rv_anywhere *)p = v;
}
/* The same in all lanes. */
DP_INLINE rv rv_spread(const float *p) {
#if RV_LANES == 16
    const float x = *p;
    return (rv){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif RV_LANES == 8
    const float x = *p;
    return (rv){x, x, x, x, x, x, x, x};
#else
    const float x = *p;
    return (rv){x, x, x, x};
#endif
}
/* The next multiplication in this order: left alone, compilers move those of several steps about until registers run
 * out. */
DP_INLINE rv rv_multiply_add(rv sum, rv x, rv b) {
#if DP_MATH_RUNG == DP_RUNG_AVX512 && RV_LANES == 16
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(b));
    return sum;
#else
    return sum + x * b;
#endif
}
DP_INLINE rv rv_kept(rv x) {
#if DP_MATH_RUNG == DP_RUNG_AVX512 && RV_LANES == 16
    __asm__("" : "+v"(x)); /* else the load is repeated in every use */
#endif
    return x;
}
/* The first n < RV_LANES lanes; the others are 0, and their memory is not touched. */
DP_INLINE rv rv_load_part(const float *p, size_t n) {
    float room[RV_LANES] __attribute__((aligned(64)));
    RV_UNROLL for (size_t i = 0; i < RV_LANES; i += DP_LANES) {
        vf part = i + DP_LANES <= n ? vf_load_f32(p, i) : i < n ? vf_load_f32_n(p, i, n - i) : vf_set(0.0f);
        vf_store_f32(room, i, part);
    }
    return rv_load(room);
}
/* The first n lanes, 1 to RV_LANES, by masks where the rung's own vectors have them (RV_PARTS). */
#define RV_PARTS (RV_LANES == DP_LANES && RV_LANES > 4)
DP_INLINE rv rv_load_some(const float *p, size_t n) {
#if RV_PARTS
    return (rv)vf_load_f32_n(p, 0, n);
#else
    return n < RV_LANES ? rv_load_part(p, n) : rv_load(p);
#endif
}
DP_INLINE void rv_store_some(float *p, size_t n, rv x) {
#if RV_PARTS
    vf_store_f32_n(p, 0, n, (vf)x);
#else
    for (size_t i = 0; i < n; i++)
        p[i] = x[i];
#endif
}
/* slope * x where x is below 0 */
DP_INLINE rv rv_leak(rv x, rv slope) {
#if RV_LANES == DP_LANES
    return (rv)vf_blend(vf_lt((vf)x, vf_set(0.0f)), (vf)(slope * x), (vf)x);
#else
    rv_mask below = x < 0.0f;
    return (rv)((below & (rv_mask)(slope * x)) | (~below & (rv_mask)x));
#endif
}
/* The greater, the smaller; NaN of x stays: a maximum or minimum with it is the second operand. */
DP_INLINE rv rv_at_least(rv x, rv low) {
#if RV_LANES == DP_LANES
    return (rv)vf_greatest((vf)low, (vf)x);
#else
    rv_mask below = x < low;
    return (rv)((below & (rv_mask)low) | (~below & (rv_mask)x));
#endif
}
DP_INLINE rv rv_at_most(rv x, rv high) {
#if RV_LANES == DP_LANES
    return (rv)vf_least((vf)high, (vf)x);
#else
    rv_mask above = x > high;
    return (rv)((above & (rv_mask)high) | (~above & (rv_mask)x));
#endif
}

#endif
