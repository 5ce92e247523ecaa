/* fill.h - one filler per family and rung: each sets its entries in the table. */
#ifndef DOPPEL_MATH_FILL_H
#define DOPPEL_MATH_FILL_H

#include "math/math.h"

#define DP_MATH_FILLERS(rung)                                                                                          \
    void dp_math_fill_elementwise_##rung(dp_math *table);                                                              \
    void dp_math_fill_transcendental_##rung(dp_math *table);                                                           \
    void dp_math_fill_integer_##rung(dp_math *table);                                                                  \
    void dp_math_fill_cast_##rung(dp_math *table);                                                                     \
    void dp_math_fill_compare_##rung(dp_math *table);                                                                  \
    void dp_math_fill_reduce_##rung(dp_math *table);                                                                   \
    void dp_math_fill_move_##rung(dp_math *table);
DP_MATH_FILLERS(generic)
DP_MATH_FILLERS(avx2)
DP_MATH_FILLERS(avx512)

/* plain C in every rung */
void dp_math_fill_cast_wide_generic(dp_math *table);
void dp_math_fill_atomic_generic(dp_math *table);

#endif
