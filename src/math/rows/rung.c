/* rung.c - picks the table for a processor; packing, which is the same everywhere. */
#include "math/rows/rung.h"

const dp_rows_table *dp_rows_for(dp_isa isa) {
#if defined(DP_MATH_HAVE_X86)
    if (isa > dp_cpu_best_isa())
        isa = dp_cpu_best_isa();
    if (isa == DP_ISA_AVX512)
        return &dp_rows_table_avx512;
    if (isa == DP_ISA_AVX2)
        return &dp_rows_table_avx2;
#endif
    (void)isa;
    return &dp_rows_table_generic;
}

const dp_rows_table *dp_rows_current(void) {
    return dp_rows_for(dp_cpu_isa());
}

void dp_rows_pack(const float *weights, size_t k, size_t columns, ptrdiff_t k_stride, ptrdiff_t column_stride,
                  float *out) {
    for (size_t first = 0; first < columns; first += DP_ROWS_PANEL)
        for (size_t p = 0; p < k; p++)
            for (size_t c = first; c < first + DP_ROWS_PANEL; c++)
                *out++ = c < columns ? weights[(ptrdiff_t)p * k_stride + (ptrdiff_t)c * column_stride] : 0;
}

const double *dp_rows_winograd_weights(int m) {
    /* points 0, 1, -1, infinity */
    static const double two[] = {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1};
    /* points 0, 1, -1, 2, -2, infinity */
    static const double four[] = {1.0 / 4,  0,         0,        -1.0 / 6, -1.0 / 6, -1.0 / 6,
                                  -1.0 / 6, 1.0 / 6,   -1.0 / 6, 1.0 / 24, 1.0 / 12, 1.0 / 6,
                                  1.0 / 24, -1.0 / 12, 1.0 / 6,  0,        0,        1};
    return m == 2 ? two : four;
}
