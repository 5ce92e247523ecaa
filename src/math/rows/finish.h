/*
 * finish.h - the end of a tile: from sums to the output. Sums in registers go straight out when only a slope for
 * negative ones, a clip and a residual are asked for; others go through a piece of the first level cache.
 */
#ifndef DOPPEL_MATH_ROWS_FINISH_H
#define DOPPEL_MATH_ROWS_FINISH_H

#include "math/rows/lanes.h"

enum {
    RV_WIDE = 8,          /* vectors of the widest tile */
    RV_SUMS = 2 * (RV_TALL > RV_TILE ? RV_TALL : RV_TILE) /* of any tile */
};

typedef struct rv_end {
    const dp_rows_finish *finish;
    float low, high, slope;
    bool is_plain, has_low, has_high; /* a clip, or nothing */
    bool has_slope, has_floor;        /* a slope, then no less than `low` */
    size_t columns;                   /* that are written */
    float *y;                         /* the tile's first element */
    ptrdiff_t y_stride;
    const float *residual;
    ptrdiff_t residual_stride;
} rv_end;

DP_INLINE rv_end rv_end_of(const dp_rows_finish *f) {
    const bool clips = f->activation == DP_ROWS_CLIP, has_floor = f->activation == DP_ROWS_LEAKY_RELU_FLOOR;
    const bool leaks = f->activation == DP_ROWS_LEAKY_RELU || has_floor;
    return (rv_end){.finish = f,
                    .is_plain = f->activation <= DP_ROWS_CLIP,
                    .has_low = clips || f->activation == DP_ROWS_RELU,
                    .has_high = clips,
                    .has_slope = leaks,
                    .has_floor = has_floor,
                    .low = clips       ? f->alpha
                           : has_floor ? f->beta
                                       : 0,
                    .high = f->beta,
                    .slope = f->alpha};
}

/* n sums, and the residual (or NULL), in the order of rv_end.finish. */
#define RV_APPLY(EXPRESSION)                                                                                           \
    {                                                                                                                  \
        DP_LANE_LOOP(n, vf x = vf_load_f32(from, i); if (early) x = x + vf_load_f32(early, i); x = EXPRESSION;         \
                     if (late) x = x + vf_load_f32(late, i);                                                           \
                     vf_store_f32(to, i, x), vf x = vf_load_f32_n(from, i, rest);                                      \
                     if (early) x = x + vf_load_f32_n(early, i, rest); x = EXPRESSION;                                 \
                     if (late) x = x + vf_load_f32_n(late, i, rest); vf_store_f32_n(to, i, rest, x))                   \
        break;                                                                                                         \
    }

/* NaN stays: vf_greatest and vf_least give their second operand. */
DP_INLINE vf rv_bound(vf x, vf low, vf high) {
    return vf_least(high, vf_greatest(low, x));
}

/* The cases of a switch over the activation: what APPLY makes of x, with zero, one, alpha and beta in sight. */
#define RV_ACTIVATIONS(APPLY)                                                                                          \
    case DP_ROWS_RELU:                                                                                                 \
        APPLY(vf_greatest(zero, x))                                                                                    \
    case DP_ROWS_CLIP:                                                                                                 \
        APPLY(rv_bound(x, alpha, beta))                                                                                \
    case DP_ROWS_LEAKY_RELU:                                                                                           \
        APPLY(vf_blend(vf_lt(x, zero), alpha * x, x))                                                                  \
    case DP_ROWS_HARD_SIGMOID:                                                                                         \
        APPLY(rv_bound(vf_fma(alpha, x, beta), zero, one))                                                             \
    case DP_ROWS_HARD_SWISH:                                                                                           \
        APPLY(x * rv_bound(vf_fma(x, vf_set(1.0f / 6), vf_set(0.5f)), zero, one))                                      \
    case DP_ROWS_LEAKY_RELU_FLOOR:                                                                                     \
        APPLY(vf_greatest(beta, vf_blend(vf_lt(x, zero), alpha * x, x)))                                               \
    case DP_ROWS_HARD_SWISH_AFFINE:                                                                                    \
        APPLY(vf_fma(alpha, x * rv_bound(vf_fma(x, vf_set(1.0f / 6), vf_set(0.5f)), zero, one), beta))                 \
    case DP_ROWS_SIGMOID:                                                                                              \
        APPLY(sigmoid_of(x))                                                                                           \
    case DP_ROWS_SILU:                                                                                                 \
        APPLY(x * sigmoid_of(x))                                                                                       \
    case DP_ROWS_TANH:                                                                                                 \
        APPLY(tanh_of(x))                                                                                              \
    case DP_ROWS_GELU_ERF:                                                                                             \
        APPLY(gelu_erf_of(x))                                                                                          \
    case DP_ROWS_GELU_TANH:                                                                                            \
        APPLY(gelu_tanh_of(x))                                                                                         \
    default:                                                                                                           \
        APPLY(x)

static inline void rv_finish_row(const dp_rows_finish *f, const float *from, const float *residual, float *to,
                                 size_t n) {
    const float *early = f->residual_last ? NULL : residual, *late = f->residual_last ? residual : NULL;
    const vf zero = vf_set(0.0f), one = vf_set(1.0f), alpha = vf_set(f->alpha), beta = vf_set(f->beta);
    switch (f->activation) {
        RV_ACTIVATIONS(RV_APPLY)
    }
}

/* rows of sums, `stride` floats apart. Not inlined: it is the slow way out of every kernel. */
static __attribute__((noinline, unused)) void rv_finish(const rv_end *e, const float *sums, size_t stride,
                                                        size_t rows) {
    for (size_t r = 0; r < rows; r++)
        rv_finish_row(e->finish, sums + r * stride,
                      e->residual ? e->residual + (ptrdiff_t)r * e->residual_stride : NULL,
                      e->y + (ptrdiff_t)r * e->y_stride, e->columns);
}

/* Vector v of `vectors`, of which the last may be a part: `last` lanes. */
DP_INLINE rv rv_load_column(const float *p, const size_t v, const size_t vectors, const bool is_whole, size_t last) {
    return is_whole || v + 1 < vectors ? rv_load(p + v * RV_LANES) : rv_load_some(p + v * RV_LANES, last);
}
DP_INLINE void rv_store_column(float *p, const size_t v, const size_t vectors, const bool is_whole, size_t last, rv x) {
    if (is_whole || v + 1 < vectors)
        rv_store(p + v * RV_LANES, x);
    else
        rv_store_some(p + v * RV_LANES, last, x);
}

/* rows x vectors sums plus the residual. */
DP_INLINE void rv_add_residual(const rv_end *e, const size_t rows, const size_t vectors, const bool is_whole,
                               size_t last, rv sum[][RV_WIDE]) {
    const ptrdiff_t step = e->residual_stride;
    const float *residual = e->residual;
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] +=
            rv_load_column(residual + (ptrdiff_t)r * step, v, vectors, is_whole, last);
    }
}

/* rows x vectors sums: a slope, a clip and the residual. */
DP_INLINE void rv_plain(const rv_end *e, const size_t rows, const size_t vectors, const bool is_whole,
                        rv sum[][RV_WIDE]) {
    const bool late = e->finish->residual_last;
    const size_t last = e->columns - (vectors - 1) * RV_LANES;
    const ptrdiff_t step = e->y_stride;
    float *y = e->y;
    if (e->residual && !late)
        rv_add_residual(e, rows, vectors, is_whole, last, sum);
    if (e->has_slope) {
        const rv slope = rv_spread(&e->slope);
        RV_UNROLL for (size_t r = 0; r < rows; r++) {
            RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = rv_leak(sum[r][v], slope);
        }
    }
    if (e->has_low || e->has_floor) {
        const rv low = rv_spread(&e->low);
        RV_UNROLL for (size_t r = 0; r < rows; r++) {
            RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = rv_at_least(sum[r][v], low);
        }
    }
    if (e->has_high) {
        const rv high = rv_spread(&e->high);
        RV_UNROLL for (size_t r = 0; r < rows; r++) {
            RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = rv_at_most(sum[r][v], high);
        }
    }
    if (e->residual && late)
        rv_add_residual(e, rows, vectors, is_whole, last, sum);
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++)
            rv_store_column(y + (ptrdiff_t)r * step, v, vectors, is_whole, last, sum[r][v]);
    }
}

/* Sums of a tile to where they belong. */
DP_INLINE void rv_end_tile(const rv_end *e, const size_t rows, const size_t vectors, rv sum[][RV_WIDE]) {
    const bool is_direct = e->is_plain || e->has_slope;
    if (is_direct && e->columns == vectors * RV_LANES) {
        rv_plain(e, rows, vectors, true, sum);
        return;
    }
    if (RV_PARTS && vectors <= 2 && is_direct && e->columns > (vectors - 1) * RV_LANES) {
        rv_plain(e, rows, vectors, false, sum);
        return;
    }
    float room[RV_SUMS * RV_LANES] __attribute__((aligned(64)));
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++) rv_store(room + (r * vectors + v) * RV_LANES, sum[r][v]);
    }
    rv_finish(e, room, vectors * RV_LANES, rows);
}

/* The first n of `rows` rows of one vector. */
DP_INLINE void rv_end_some(const rv_end *e, const size_t rows, size_t n, rv sum[][RV_WIDE]) {
    if (e->is_plain && e->columns == RV_LANES && !e->residual) {
        const rv low = rv_spread(&e->low), high = rv_spread(&e->high);
        const bool has_low = e->has_low, has_high = e->has_high;
        float *y = e->y;
        RV_UNROLL for (size_t r = 0; r < rows; r++) {
            if (r == n)
                return;
            rv x = has_low ? rv_at_least(sum[r][0], low) : sum[r][0];
            rv_store(y, has_high ? rv_at_most(x, high) : x);
            y += e->y_stride;
        }
        return;
    }
    float room[RV_SUMS * RV_LANES] __attribute__((aligned(64)));
    RV_UNROLL for (size_t r = 0; r < rows; r++) rv_store(room + r * RV_LANES, sum[r][0]);
    rv_finish(e, room, RV_LANES, n);
}

#endif
