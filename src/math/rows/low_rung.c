/* low_rung.c - picks the table of low.h for a processor; sizes of rooms, which are the same everywhere. */
#include "math/rows/low_rung.h"

#include <string.h>

const dp_low_table *dp_low_for(dp_isa isa, unsigned features, dp_low_type type) {
#if defined(DP_MATH_HAVE_X86)
    if (isa > dp_cpu_best_isa())
        isa = dp_cpu_best_isa();
    if (isa == DP_ISA_AVX512 && (features & DP_CPU_AMX) && (features & DP_CPU_AVX512_BF16) && type == DP_LOW_BF16)
        return &dp_low_table_amx;
    if (isa == DP_ISA_AVX512)
        return &dp_low_tables_avx512[type];
    if (isa == DP_ISA_AVX2)
        return &dp_low_tables_avx2[type];
#endif
    (void)isa;
    (void)features;
    return &dp_low_tables_generic[type];
}

const dp_low_table *dp_low_current(dp_low_type type) {
    return dp_low_for(dp_cpu_isa(), dp_cpu_features(), type);
}

void dp_low_pack(const uint16_t *weights, size_t k, size_t columns, ptrdiff_t k_stride, ptrdiff_t column_stride,
                 uint16_t *out) {
    memset(out, 0, dp_low_panel_elements(k, columns) * sizeof *out);
    for (size_t c = 0; c < columns; c++)
        for (size_t p = 0; p < k; p++)
            out[dp_low_panel_at(p, c, k)] = weights[(ptrdiff_t)p * k_stride + (ptrdiff_t)c * column_stride];
}

size_t dp_low_room(size_t count, size_t columns) {
    count = dp_low_up(count, 2 * DP_LOW_TILE);
    return count * LOW_ROW_BYTES + LOW_RIGHT_BYTES + count * dp_low_up(columns, LOW_COLUMNS) * sizeof(float);
}

static ptrdiff_t lines_read(const dp_low_depthwise *p, ptrdiff_t lines) {
    return (lines - 1) * p->stride[0] + (p->kernel[0] - 1) * p->dilation[0] + 1;
}
static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) {
    return a < b ? a : b;
}

dp_low_band dp_low_band_of(const dp_low_depthwise *p) {
    dp_low_band band = {.channels = p->columns, .lines = 1};
    const ptrdiff_t pixels = least(lines_read(p, 1), p->in[0]) * p->in[1] + p->out_width;
    const size_t most =
        LOW_BAND_FLOATS / (size_t)(pixels < LOW_BAND_FLOATS ? pixels : LOW_BAND_FLOATS) / DP_ROWS_PANEL * DP_ROWS_PANEL;
    if (band.channels > most)
        band.channels = most < DP_ROWS_PANEL ? DP_ROWS_PANEL : most;
    while (band.lines < p->lines &&
           (least(lines_read(p, band.lines + 1), p->in[0]) * p->in[1] + (band.lines + 1) * p->out_width) *
                   (ptrdiff_t)band.channels <=
               LOW_BAND_FLOATS)
        band.lines++;
    band.in_lines = least(lines_read(p, band.lines), p->in[0]);
    return band;
}

/* Pieces with fewer channels may take more lines. */
size_t dp_low_depthwise_room(const dp_low_depthwise *p) {
    const dp_low_band band = dp_low_band_of(p);
    const size_t floats = (size_t)(band.in_lines * p->in[1] + band.lines * p->out_width) * band.channels;
    const size_t arranged = ((size_t)(p->kernel[0] * p->kernel[1]) + 1) * dp_low_up(p->columns, LOW_COLUMNS);
    const size_t most = floats > LOW_BAND_FLOATS ? floats : LOW_BAND_FLOATS;
    return (most > arranged ? most : arranged) * sizeof(float);
}
