/* rung.c - picks the table of functions for a processor. */
#include "math/gemm/rung.h"

const dp_gemm_rung *dp_gemm_rung_for(dp_isa isa, unsigned features) {
#if defined(DP_MATH_HAVE_X86)
    if (isa > dp_cpu_best_isa())
        isa = dp_cpu_best_isa();
    if (isa == DP_ISA_AVX512 && (features & DP_CPU_AMX))
        return &dp_gemm_rungs_avx512[4];
    if (isa == DP_ISA_AVX512)
        return &dp_gemm_rungs_avx512[((features & DP_CPU_AVX512_BF16) != 0) + 2 * ((features & DP_CPU_AVX512_VNNI) != 0)];
    if (isa == DP_ISA_AVX2)
        return &dp_gemm_rungs_avx2[0];
#endif
    (void)isa;
    (void)features;
    return &dp_gemm_rungs_generic[0];
}
