/* low_rung.h - what each rung defines for low.h. */
#ifndef DOPPEL_MATH_ROWS_LOW_RUNG_H
#define DOPPEL_MATH_ROWS_LOW_RUNG_H

#include "math/rows/low.h"

enum {
    LOW_PART = 256,                   /* k of a piece of a panel that stays in the first cache, as floats */
    LOW_PART_MOST = LOW_PART * 3 / 2, /* no division up to here */
    LOW_COLUMNS = 2 * DP_ROWS_PANEL,  /* at once */
    LOW_ROW_BYTES = 1792, /* of the room, per row: LOW_PART_MOST floats or twice as many bfloat16, and more */
    LOW_RIGHT_BYTES = LOW_PART_MOST * LOW_COLUMNS * 4,
    LOW_BAND_FLOATS = 1 << 16 /* of the lines of a depthwise convolution, where they have a choice */
};

/* Sums on their way to the output: some columns of some rows. */
typedef struct dp_low_end {
    const dp_rows_finish *finish;
    const float *bias; /* of the first of the columns, or NULL */
    size_t columns;
    uint16_t *y; /* first row, first of the columns */
    ptrdiff_t y_stride;
    const uint16_t *residual; /* or NULL */
    ptrdiff_t residual_stride;
} dp_low_end;

#define DP_LOW_OF(rung)                                                                                                \
    void dp_low_depthwise_bf16_##rung(const dp_low_depthwise *part, const dp_rows_finish *finish, void *room);         \
    void dp_low_depthwise_half_##rung(const dp_low_depthwise *part, const dp_rows_finish *finish, void *room);         \
    extern const dp_low_table dp_low_tables_##rung[DP_LOW_TYPE_COUNT];
DP_LOW_OF(generic)
DP_LOW_OF(avx2)
DP_LOW_OF(avx512)
DP_LOW_OF(wide) /* of a test */
/* Of bfloat16: with AVX-512 BF16, and with AMX besides. */
extern const dp_low_table dp_low_table_amx;
void dp_low_pixels(const dp_low_depthwise *part, const dp_rows_finish *finish, void *room);

/* The band of a depthwise convolution: channels at once (a multiple of 16, or all), and lines of the output. */
typedef struct dp_low_band {
    size_t channels;
    ptrdiff_t lines, in_lines;
} dp_low_band;
dp_low_band dp_low_band_of(const dp_low_depthwise *part);

static inline size_t dp_low_up(size_t n, size_t by) {
    return (n + by - 1) / by * by;
}

#endif
