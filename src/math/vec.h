/*
 * vec.h - the small vector vocabulary all families are written in, so that one source gives every rung.
 *
 * A family file (elementwise.c, cast.c, ...) is compiled once per rung with DP_MATH_RUNG set; without it, it is the generic
 * rung. Each rung header defines DP_LANES and, on DP_LANES floats (vf), int32 (vi) and truth values (vm):
 *   vf and vi take the operators + - * / and << >> & | ^ of C where the type has them;
 *   vf_load_<type>(base, i) and vf_store_<type>(base, i, v) move DP_LANES elements at index i through float
 *   (f32, f16, bf16), the _n forms the first n < DP_LANES of them; vi_load_<type> likewise (i8 u8 i16 u16 i32).
 * f16 and bf16 stores round to nearest even. Results are the same bits in every rung, except the payload of a NaN.
 */
#ifndef DOPPEL_MATH_VEC_H
#define DOPPEL_MATH_VEC_H

#include "base/half.h"
#include "math/fill.h"

#define DP_RUNG_GENERIC 0
#define DP_RUNG_AVX2 1
#define DP_RUNG_AVX512 2
#ifndef DP_MATH_RUNG
#define DP_MATH_RUNG DP_RUNG_GENERIC
#endif

/* The compiler may reorder iterations: in our loops a destination is either a source (same index) or disjoint. */
#if defined(__clang__)
#define DP_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#define DP_UNROLL _Pragma("clang loop unroll(enable)")
#else
#define DP_IVDEP _Pragma("GCC ivdep")
#define DP_UNROLL _Pragma("GCC unroll 16")
#endif
/* Four vectors a turn; one lane is left to the compiler's own vectors. */
#if DP_MATH_RUNG != DP_RUNG_GENERIC && !defined(__clang__)
#define DP_BY_FOUR _Pragma("GCC unroll 4")
#else
#define DP_BY_FOUR
#endif
#define DP_INLINE static inline __attribute__((always_inline, unused))

#if DP_MATH_RUNG == DP_RUNG_AVX512
#include "math/vec_avx512.h"
#define DP_RUNG(name) name##_avx512
#elif DP_MATH_RUNG == DP_RUNG_AVX2
#include "math/vec_avx2.h"
#define DP_RUNG(name) name##_avx2
#else
#include "math/vec_generic.h"
#define DP_RUNG(name) name##_generic
#endif

/* Max and Min hand a NaN of either operand on; of two equal values (also -0 and +0) the second is the result. */
DP_INLINE vf vf_max(vf a, vf b) { return vf_blend(vm_or(vf_gt(a, b), vf_is_nan(a)), a, b); }
DP_INLINE vf vf_min(vf a, vf b) { return vf_blend(vm_or(vf_lt(a, b), vf_is_nan(a)), a, b); }
DP_INLINE vf vf_relu(vf a) { return vf_max(a, vf_set(0.0f)); }

/* for each group of lanes: FULL with i at a full group, then REST with i and rest when rest < DP_LANES lanes remain */
#define DP_LANE_LOOP(n, FULL, REST)                                                                                    \
    size_t i = 0;                                                                                                      \
    DP_IVDEP DP_BY_FOUR for (; i + DP_LANES <= (n); i += DP_LANES) { FULL; }                                           \
    if (DP_LANES > 1 && i < (n)) {                                                                                     \
        size_t rest = (n)-i;                                                                                           \
        REST;                                                                                                          \
    }

#endif
