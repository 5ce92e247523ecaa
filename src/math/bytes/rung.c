/* rung.c - picks the table for a processor; packing, which is the same everywhere. */
#include "math/bytes/rung.h"

const dp_bytes_table *dp_bytes_for(dp_isa isa, unsigned features) {
#if defined(DP_MATH_HAVE_X86)
    if (isa > dp_cpu_best_isa())
        isa = dp_cpu_best_isa();
    if (isa == DP_ISA_AVX512 && (features & DP_CPU_AMX))
        return &dp_bytes_table_amx;
    if (isa == DP_ISA_AVX512 && (features & DP_CPU_AVX512_VNNI))
        return &dp_bytes_table_vnni;
    if (isa == DP_ISA_AVX512)
        return &dp_bytes_table_avx512;
    if (isa == DP_ISA_AVX2)
        return &dp_bytes_table_avx2;
#endif
    (void)isa;
    (void)features;
    return &dp_bytes_table_generic;
}

const dp_bytes_table *dp_bytes_current(void) {
    return dp_bytes_for(dp_cpu_isa(), dp_cpu_features());
}

void dp_bytes_pack(const int8_t *weights, size_t k, size_t columns, ptrdiff_t k_stride, ptrdiff_t column_stride,
                   int8_t *out) {
    const size_t depth = dp_bytes_depth(k);
    for (size_t first = 0; first < columns; first += DP_BYTES_PANEL)
        for (size_t p = 0; p < depth; p += 4)
            for (size_t c = first; c < first + DP_BYTES_PANEL; c++)
                for (size_t i = p; i < p + 4; i++)
                    *out++ = c < columns && i < k ? weights[(ptrdiff_t)i * k_stride + (ptrdiff_t)c * column_stride]
                                                  : (int8_t)0;
}

/* With lines side by side, as many lines of the output as groups of four lines of the input hold windows for. */
dp_bytes_strip dp_bytes_strip_of(const dp_bytes_depthwise *p) {
    dp_bytes_strip s = {.groups = (p->kernel[0] + 3) / 4, .lines = 1};
    if (p->dilation[0] == 1) {
        s.lines = (4 * s.groups - p->kernel[0]) / p->stride[0] + 1;
        s.lines = s.lines < DP_BYTES_LINES ? s.lines : DP_BYTES_LINES;
    }
    if (s.lines == 3)
        s.lines = 2;
    s.width = (p->out_width - 1) * p->stride[1] + (p->kernel[1] - 1) * p->dilation[1] + 1;
    return s;
}

size_t dp_bytes_depthwise_room(const dp_bytes_depthwise *p) {
    const dp_bytes_strip s = dp_bytes_strip_of(p);
    const size_t weights = (size_t)(s.groups * s.lines * p->kernel[1]), pixels = (size_t)(s.groups * s.width);
    const size_t beyond = 4 * (size_t)p->stride[1]; /* pixels are read by fours */
    return (weights + pixels + beyond) * 64;
}
