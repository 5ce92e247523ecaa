/*
 * cpu.h - what the processor can do, detected once; DOPPEL_ISA=generic|avx2|avx512 forces a lower rung.
 */
#ifndef DOPPEL_BASE_CPU_H
#define DOPPEL_BASE_CPU_H

#include <stddef.h>

/* Rungs of the ladder. AVX2 means AVX2+FMA+F16C; AVX512 means F, BW, VL, DQ on top. arm64 has the generic rung (NEON by the compiler). */
typedef enum dp_isa { DP_ISA_GENERIC, DP_ISA_AVX2, DP_ISA_AVX512, DP_ISA_COUNT } dp_isa;

/* Rung in force: the best the processor has, or what DOPPEL_ISA says if that is lower. An unknown word is reported once and ignored. */
dp_isa dp_cpu_isa(void);
/* Best rung the processor has, whatever DOPPEL_ISA says. */
dp_isa dp_cpu_best_isa(void);
/*
 * Instruction sets beside the ladder, as flags. Features of a rung above the one in force are left out.
 * BF16_FAST: the bfloat16 dot product is faster than widening to float and using FMA. It is on AMD's processors; on Intel's Sapphire
 * Rapids one vdpbf16ps takes the time of four FMAs (measured 1.1 and 4.3 x 10^9 a second), so there BF16 is set and BF16_FAST is not.
 * AMX: matrix tiles with bfloat16 and int8, and VNNI beside them. The kernel gives their state only to processes that ask,
 * which the first call of dp_cpu_features does; where it refuses, the flag is not set. From then on alternate signal stacks of
 * less than about 11 KiB are refused by the kernel.
 */
enum { DP_CPU_AVX512_BF16 = 1, DP_CPU_AVX512_VNNI = 2, DP_CPU_BF16_FAST = 4, DP_CPU_AMX = 8 };
unsigned dp_cpu_features(void);
const char *dp_isa_name(dp_isa isa);
/* Processors this process may run on, at least 1. */
unsigned dp_cpu_count(void);
/* Bytes of a processor's second level cache; half a MB where the system does not say. */
size_t dp_cpu_cache_bytes(void);

#endif
