/*
 * rung.h - for files that are compiled once per rung (see CMakeLists.txt): names with the rung's ending, and the loop
 * pragma.
 */
#ifndef DOPPEL_OPS_RUNG_H
#define DOPPEL_OPS_RUNG_H

#ifndef DP_MATH_RUNG
#define DP_MATH_RUNG 0
#endif

#if DP_MATH_RUNG == 2
#define DP_RUNG(name) name##_avx512
#elif DP_MATH_RUNG == 1
#define DP_RUNG(name) name##_avx2
#else
#define DP_RUNG(name) name##_generic
#endif

/* Loops whose destination is either one of the sources or apart from them. */
#ifdef __clang__
#define DP_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define DP_IVDEP _Pragma("GCC ivdep")
#endif

#endif
