/* depthwise.c - sums of pixels times weights of their own channel; see dp_rows_pixels. */
#include "math/rows/finish.h"
#include "math/rows/rung.h"

enum {
    PIXELS = RV_TILE == 6     ? 4
             : RV_LANES == 16 ? 8
                              : 2 /* of a tile: the most whose sums of a panel fit the registers */
};

/* `last` lanes of the last vector are channels; RV_LANES: all. */
DP_INLINE void pixels_body(const size_t count, const size_t vectors, const bool is_part, const dp_rows_pixels *p,
                           const float *weights, const float *bias, size_t x_at, size_t last, const rv_end *end) {
    rv sum[PIXELS][RV_WIDE];
    RV_UNROLL for (size_t v = 0; v < vectors; v++) {
        rv first = rv_load(bias + v * RV_LANES);
        RV_UNROLL for (size_t o = 0; o < count; o++) sum[o][v] = first;
    }
    for (size_t ky = 0; ky < p->taps_y; ky++) {
        const float *x = p->lines[ky] + x_at, *w = weights + ky * p->taps_stride * DP_ROWS_PANEL;
        for (size_t kx = 0; kx < p->taps_x; kx++, x += p->dilation, w += DP_ROWS_PANEL) {
            rv b[RV_WIDE];
            RV_UNROLL for (size_t v = 0; v < vectors; v++) b[v] = rv_load(w + v * RV_LANES);
            RV_UNROLL for (size_t o = 0; o < count; o++) {
                const float *at = x + (ptrdiff_t)o * p->pixel;
                RV_UNROLL for (size_t v = 0; v < vectors; v++) {
                    rv a = is_part && v + 1 == vectors ? rv_load_part(at + v * RV_LANES, last)
                                                       : rv_load(at + v * RV_LANES);
                    sum[o][v] += a * b[v];
                }
            }
        }
    }
    rv_end_tile(end, count, vectors, sum);
}

/* A run of pixels of `vectors` vectors of channels. */
DP_INLINE void line_body(const size_t vectors, const bool is_part, const dp_rows_pixels *p, const float *weights,
                         const float *bias, size_t channel, size_t last, rv_end end) {
    size_t o = 0, at = channel;
    for (; o + PIXELS <= p->count; o += PIXELS, at += PIXELS * (size_t)p->pixel) {
        pixels_body(PIXELS, vectors, is_part, p, weights, bias, at, last, &end);
        end.y += PIXELS * p->y_stride;
        if (end.residual)
            end.residual += PIXELS * p->residual_stride;
    }
    for (; o < p->count; o++, at += (size_t)p->pixel) {
        pixels_body(1, vectors, is_part, p, weights, bias, at, last, &end);
        end.y += p->y_stride;
        if (end.residual)
            end.residual += p->residual_stride;
    }
}

void DP_ROWS_NAME(dp_rows_depthwise)(const dp_rows_pixels *p, const dp_rows_finish *finish) {
    rv_end end = rv_end_of(finish);
    end.y_stride = p->y_stride;
    end.residual_stride = p->residual_stride;
    for (size_t at = 0; at < p->columns; at += DP_ROWS_PANEL) {
        const size_t channel = p->first + at, left = p->columns - at;
        const float *weights = p->weights + channel / DP_ROWS_PANEL * p->panel_stride;
        float bias[DP_ROWS_PANEL] __attribute__((aligned(64)));
        for (size_t c = 0; c < DP_ROWS_PANEL; c++)
            bias[c] = p->bias && c < left ? p->bias[channel + c] : 0;
        if (left >= DP_ROWS_PANEL) {
            end.columns = DP_ROWS_PANEL;
            end.y = p->y + channel;
            end.residual = p->residual ? p->residual + channel : NULL;
            line_body(RV_PANEL_VECTORS, false, p, weights, bias, channel, RV_LANES, end);
            continue;
        }
        /* the rest, vector by vector */
        for (size_t c = 0; c < left; c += RV_LANES) {
            const size_t n = left - c < RV_LANES ? left - c : RV_LANES;
            end.columns = n;
            end.y = p->y + channel + c;
            end.residual = p->residual ? p->residual + channel + c : NULL;
            if (n == RV_LANES)
                line_body(1, false, p, weights + c, bias + c, channel + c, n, end);
            else
                line_body(1, true, p, weights + c, bias + c, channel + c, n, end);
        }
    }
}
