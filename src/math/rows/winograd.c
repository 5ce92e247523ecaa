/*
 * winograd.c - the transformations before and after the products of Winograd's convolutions, a vector of channels at a
 * time: first down the columns of a tile, then along its lines. Matrices for the points 0, 1, -1, infinity (m = 2), and
 * 2, -2 besides (m = 4), with common terms taken together.
 */
#include "math/rows/finish.h"
#include "math/rows/rung.h"

enum { SIDE_MAX = 6 };

/* d[k * step] for k < m + 2, in place */
DP_INLINE void transform_in(const int m, rv *d, const size_t step) {
    if (m == 2) {
        rv a = d[0], b = d[step], c = d[2 * step], e = d[3 * step];
        d[0] = a - c;
        d[step] = b + c;
        d[2 * step] = c - b;
        d[3 * step] = b - e;
        return;
    }
    rv a = d[0], b = d[step], c = d[2 * step], e = d[3 * step], f = d[4 * step], g = d[5 * step];
    rv far = f - 4.0f * c, far_odd = e - 4.0f * b, near = f - c, near_odd = 2.0f * (e - b);
    d[0] = 4.0f * a - 5.0f * c + f;
    d[step] = far + far_odd;
    d[2 * step] = far - far_odd;
    d[3 * step] = near + near_odd;
    d[4 * step] = near - near_odd;
    d[5 * step] = 4.0f * b - 5.0f * e + g;
}

/* The other way: m results in the first m places. */
DP_INLINE void transform_out(const int m, rv *d, const size_t step) {
    if (m == 2) {
        rv even = d[step] + d[2 * step], odd = d[step] - d[2 * step];
        d[0] = d[0] + even;
        d[step] = odd - d[3 * step];
        return;
    }
    rv even = d[step] + d[2 * step], odd = d[step] - d[2 * step];
    rv far = d[3 * step] + d[4 * step], far_odd = d[3 * step] - d[4 * step];
    d[0] = d[0] + even + far;
    d[step] = odd + 2.0f * far_odd;
    d[2 * step] = even + 4.0f * far;
    d[3 * step] = odd + 8.0f * far_odd + d[5 * step];
}

DP_INLINE void tile_in(const int m, const float *const *pixels, size_t channels, float *out, size_t step) {
    const size_t side = (size_t)m + 2;
    for (size_t c = 0; c < channels; c += RV_LANES) {
        rv d[SIDE_MAX * SIDE_MAX];
        const bool is_part = channels - c < RV_LANES;
        RV_UNROLL for (size_t x = 0; x < side; x++) {
            RV_UNROLL for (size_t y = 0; y < side; y++) {
                const float *at = pixels[y * side + x] + c;
                d[y * side + x] = is_part ? rv_load_part(at, channels - c) : rv_load(at);
            }
            transform_in(m, d + x, side);
        }
        float *to = out + c;
        RV_UNROLL for (size_t y = 0; y < side; y++) {
            transform_in(m, d + y * side, 1);
            RV_UNROLL for (size_t x = 0; x < side; x++, to += step) rv_store(to, d[y * side + x]);
        }
    }
}

void DP_ROWS_NAME(dp_rows_winograd_in)(int m, const float *const *pixels, size_t channels, float *out, size_t step) {
    if (m == 2)
        tile_in(2, pixels, channels, out, step);
    else
        tile_in(4, pixels, channels, out, step);
}

/* One pixel, one vector of its columns. */
DP_INLINE void pixel_out(const rv_end *e, rv x) {
    if (!e->is_plain || (!RV_PARTS && e->columns < RV_LANES)) {
        float room[RV_LANES] __attribute__((aligned(64)));
        rv_store(room, x);
        rv_finish(e, room, RV_LANES, 1);
        return;
    }
    const bool is_whole = e->columns == RV_LANES, late = e->finish->residual_last;
    if (e->residual && !late)
        x += is_whole ? rv_load(e->residual) : rv_load_some(e->residual, e->columns);
    x = e->has_low ? rv_at_least(x, rv_spread(&e->low)) : x;
    x = e->has_high ? rv_at_most(x, rv_spread(&e->high)) : x;
    if (e->residual && late)
        x += is_whole ? rv_load(e->residual) : rv_load_some(e->residual, e->columns);
    if (is_whole)
        rv_store(e->y, x);
    else
        rv_store_some(e->y, e->columns, x);
}

DP_INLINE void tile_out(const int m, const dp_rows_tile *t, const dp_rows_finish *finish) {
    const size_t side = (size_t)m + 2, out = (size_t)m;
    const dp_rows_tile own = *t;
    rv_end end = rv_end_of(finish);
    for (size_t c = 0; c < own.columns; c += RV_LANES) {
        rv d[SIDE_MAX * SIDE_MAX], bias = {0};
        const float *from = own.sums + c;
        RV_UNROLL for (size_t y = 0; y < side; y++) {
            RV_UNROLL for (size_t x = 0; x < side; x++, from += own.step) d[y * side + x] = rv_load(from);
        }
        RV_UNROLL for (size_t x = 0; x < side; x++) transform_out(m, d + x, side);
        end.columns = own.columns - c < RV_LANES ? own.columns - c : RV_LANES;
        if (own.bias)
            bias = end.columns < RV_LANES ? rv_load_part(own.bias + c, end.columns) : rv_load(own.bias + c);
        RV_UNROLL for (size_t y = 0; y < out; y++) {
            if (y == own.lines)
                break;
            transform_out(m, d + y * side, 1);
            float *to = own.y + (ptrdiff_t)y * own.y_line + c;
            const float *residual = own.residual ? own.residual + (ptrdiff_t)y * own.residual_line + c : NULL;
            RV_UNROLL for (size_t x = 0; x < out; x++) {
                if (x == own.pixels)
                    break;
                end.y = to + (ptrdiff_t)x * own.y_pixel;
                end.residual = residual ? residual + (ptrdiff_t)x * own.residual_pixel : NULL;
                pixel_out(&end, d[y * side + x] + bias);
            }
        }
    }
}

void DP_ROWS_NAME(dp_rows_winograd_out)(int m, const dp_rows_tile *t, const dp_rows_finish *finish) {
    if (m == 2)
        tile_out(2, t, finish);
    else
        tile_out(4, t, finish);
}
