/* kernels.c - the loops of kernels.h. Compiled once per rung. */
#include "ops/pool/kernels.h"

#include "ops/rung.h"

/* The steps of common windows are constants, so that the compiler shuffles vectors. */
#define POOL(name, EXPRESSION)                                                                                         \
    static inline __attribute__((always_inline)) void name##_by(float *y, const float *x, size_t n, size_t step) {     \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            float v = x[i * step];                                                                                     \
            y[i] = EXPRESSION;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(float *y, const float *x, size_t n, size_t step) {                                                \
        if (step == 1)                                                                                                 \
            name##_by(y, x, n, 1);                                                                                     \
        else if (step == 2)                                                                                            \
            name##_by(y, x, n, 2);                                                                                     \
        else                                                                                                           \
            name##_by(y, x, n, step);                                                                                  \
    }
POOL(add, y[i] + v)
POOL(max, v > y[i] || v != v ? v : y[i])

void DP_RUNG(dp_pool_fill)(dp_pool_table *table) {
    *table = (dp_pool_table){add, max};
}
