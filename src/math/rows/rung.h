/* rung.h - what each rung defines. */
#ifndef DOPPEL_MATH_ROWS_RUNG_H
#define DOPPEL_MATH_ROWS_RUNG_H

#include "math/rows/rows.h"

#define DP_ROWS_OF(rung)                                                                                               \
    void dp_rows_pixels_##rung(const dp_rows_depthwise *part, const dp_rows_finish *finish);                           \
    void dp_rows_product_run_##rung(const dp_rows_product *product, const dp_rows_finish *finish, float *sums);        \
    void dp_rows_winograd_in_##rung(int m, const float *const *pixels, size_t channels, float *out, size_t step);      \
    void dp_rows_winograd_out_##rung(int m, const dp_rows_tile *tile, const dp_rows_finish *finish);                   \
    extern const dp_rows_table dp_rows_table_##rung;
DP_ROWS_OF(generic)
DP_ROWS_OF(avx2)
DP_ROWS_OF(avx512)
DP_ROWS_OF(wide) /* of a test */

#endif
