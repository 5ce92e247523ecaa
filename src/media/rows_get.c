#include "media/rows.h"

#include "base/cpu.h"

const dp_rows *dp_rows_get(void) {
#ifdef DP_MATH_HAVE_X86
    switch (dp_cpu_isa()) {
    case DP_ISA_AVX512:
        return &dp_rows_avx512;
    case DP_ISA_AVX2:
        return &dp_rows_avx2;
    default:
        break;
    }
#endif
    return &dp_rows_generic;
}
