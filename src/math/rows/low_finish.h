/*
 * low_finish.h - the end of a product of half or bfloat16: from sums, which lie in the first cache, to the output.
 */
#ifndef DOPPEL_MATH_ROWS_LOW_FINISH_H
#define DOPPEL_MATH_ROWS_LOW_FINISH_H

#include "math/rows/finish.h"
#include "math/rows/low_rung.h"

/* A file may have a better instruction for it. */
#ifndef LOW_STORE_BF16
#define LOW_STORE_BF16 vf_store_bf16
#define LOW_STORE_BF16_N vf_store_bf16_n
#endif

DP_INLINE vf low_load(const uint16_t *p, size_t i, const bool half) {
    return half ? vf_load_f16(p, i) : vf_load_bf16(p, i);
}
DP_INLINE vf low_load_n(const uint16_t *p, size_t i, size_t n, const bool half) {
    return half ? vf_load_f16_n(p, i, n) : vf_load_bf16_n(p, i, n);
}
DP_INLINE void low_store(uint16_t *p, size_t i, vf x, const bool half) {
    if (half)
        vf_store_f16(p, i, x);
    else
        LOW_STORE_BF16(p, i, x);
}
DP_INLINE void low_store_n(uint16_t *p, size_t i, size_t n, vf x, const bool half) {
    if (half)
        vf_store_f16_n(p, i, n, x);
    else
        LOW_STORE_BF16_N(p, i, n, x);
}

/* The ends of all rows: n sums, as rv_finish_row has them. */
#define LOW_APPLY(EXPRESSION)                                                                                          \
    for (size_t r = 0; r < rows; r++, from += stride, to += to_stride, early += early_stride, late += late_stride) {   \
        DP_LANE_LOOP(                                                                                                  \
            n, vf x = vf_load_f32(from, i); if (bias) x = x + vf_load_f32(bias, i);                                    \
            if (early) x = x + low_load(early, i, half); x = EXPRESSION; if (late) x = x + low_load(late, i, half);    \
            low_store(to, i, x, half), vf x = vf_load_f32_n(from, i, rest);                                            \
            if (bias) x = x + vf_load_f32_n(bias, i, rest); if (early) x = x + low_load_n(early, i, rest, half);       \
            x = EXPRESSION; if (late) x = x + low_load_n(late, i, rest, half); low_store_n(to, i, rest, x, half))      \
    }                                                                                                                  \
    break;

DP_INLINE void low_finish_rows(const dp_low_end *e, const float *from, size_t stride, size_t rows, const bool half) {
    const dp_rows_finish *f = e->finish;
    const uint16_t *early = f->residual_last ? NULL : e->residual, *late = f->residual_last ? e->residual : NULL;
    const ptrdiff_t early_stride = early ? e->residual_stride : 0, late_stride = late ? e->residual_stride : 0;
    const ptrdiff_t to_stride = e->y_stride;
    const float *bias = e->bias;
    const size_t n = e->columns;
    uint16_t *to = e->y;
    const vf zero = vf_set(0.0f), one = vf_set(1.0f), alpha = vf_set(f->alpha), beta = vf_set(f->beta);
    switch (f->activation) {
        RV_ACTIVATIONS(LOW_APPLY)
    }
}

/* Short rows that lie side by side, as one. */
static size_t low_join(const dp_low_end *e, const float *sums, size_t stride, size_t rows, float *to) {
    for (size_t r = 0; r < rows; r++, sums += stride)
        for (size_t c = 0; c < e->columns; c++)
            *to++ = sums[c] + (e->bias ? e->bias[c] : 0);
    return rows * e->columns;
}

/* Up to LOW_COLUMNS rows. Not inlined: it is large. */
static __attribute__((noinline)) void low_finish(const dp_low_end *e, const float *sums, size_t stride, size_t rows,
                                                 dp_low_type type) {
    float joined[LOW_COLUMNS * DP_ROWS_PANEL / 2];
    dp_low_end one = *e;
    if (e->columns <= DP_ROWS_PANEL / 2 && e->y_stride == (ptrdiff_t)e->columns && !e->residual) {
        one.columns = low_join(e, sums, stride, rows, joined);
        one.bias = NULL;
        e = &one;
        sums = joined;
        rows = 1;
    }
    if (type == DP_LOW_HALF)
        low_finish_rows(e, sums, stride, rows, true);
    else
        low_finish_rows(e, sums, stride, rows, false);
}

#endif
