/*
 * low_depthwise.c - depthwise convolutions of low.h: some lines become float, go through the kernels of depthwise.c,
 * and are rounded. All of it stays in the second cache.
 */
#include "math/rows/finish.h"
#include "math/rows/low_rung.h"
#include "math/rows/rung.h"

DP_INLINE void widen(float *to, const uint16_t *from, size_t n, const bool half){
    DP_LANE_LOOP(n, vf_store_f32(to, i, half ? vf_load_f16(from, i) : vf_load_bf16(from, i)),
                 vf_store_f32_n(to, i, rest,
                                half ? vf_load_f16_n(from, i, rest) : vf_load_bf16_n(from, i, rest)))} DP_INLINE
    void narrow(uint16_t *to, const float *from, size_t n, const bool half) {
    DP_LANE_LOOP(n, vf x = vf_load_f32(from, i); if (half) vf_store_f16(to, i, x);
                 else vf_store_bf16(to, i, x), vf x = vf_load_f32_n(from, i, rest);
                 if (half) vf_store_f16_n(to, i, rest, x); else vf_store_bf16_n(to, i, rest, x))
}

/* `lines` lines of the output from `line` on, `channels` of its channels from `first` on. */
DP_INLINE void band(const dp_low_depthwise *p, const dp_rows_finish *finish, ptrdiff_t line, ptrdiff_t lines,
                    size_t first, size_t channels, float *room, const bool half) {
    const ptrdiff_t from = line * p->stride[0] - p->pad[0], pitch = (ptrdiff_t)channels;
    const ptrdiff_t to = from + (lines - 1) * p->stride[0] + (p->kernel[0] - 1) * p->dilation[0] + 1;
    const ptrdiff_t low = from < 0 ? 0 : from > p->in[0] ? p->in[0] : from;
    const ptrdiff_t high = to < low ? low : to > p->in[0] ? p->in[0] : to;
    float *x = room;
    for (ptrdiff_t i = low; i < high; i++)
        for (ptrdiff_t k = 0; k < p->in[1]; k++, room += pitch)
            widen(room, p->x + i * p->x_line + k * p->x_pixel + first, channels, half);
    const ptrdiff_t pixel = line * p->out_width, pixels = lines * p->out_width;
    for (ptrdiff_t k = 0; k < pixels && p->residual; k++)
        widen(room + k * pitch, p->residual + (pixel + k) * p->residual_pixel + first, channels, half);
    const size_t taps = (size_t)(p->kernel[0] * p->kernel[1]);
    const dp_rows_depthwise part = {.x = x,
                                    .x_line = p->in[1] * pitch,
                                    .x_pixel = pitch,
                                    .in = {high - low, p->in[1]},
                                    .out_width = p->out_width,
                                    .kernel = {p->kernel[0], p->kernel[1]},
                                    .stride = {p->stride[0], p->stride[1]},
                                    .pad = {low - from, p->pad[1]},
                                    .dilation = {p->dilation[0], p->dilation[1]},
                                    .panels = p->panels + first * taps,
                                    .bias = p->bias ? p->bias + first : NULL,
                                    .lines = lines,
                                    .columns = channels,
                                    .y = room,
                                    .y_pixel = pitch,
                                    .residual = p->residual ? room : NULL,
                                    .residual_pixel = pitch};
    DP_ROWS_NAME(dp_rows_pixels)(&part, finish);
    for (ptrdiff_t k = 0; k < pixels; k++)
        narrow(p->y + (pixel + k) * p->y_pixel + first, room + k * pitch, channels, half);
}

DP_INLINE void depthwise(const dp_low_depthwise *p, const dp_rows_finish *finish, float *room, const bool half) {
    const dp_low_band b = dp_low_band_of(p);
    for (ptrdiff_t line = p->line, end = p->line + p->lines; line < end; line += b.lines)
        for (size_t at = 0; at < p->columns; at += b.channels)
            band(p, finish, line, end - line < b.lines ? end - line : b.lines, p->first + at,
                 p->columns - at < b.channels ? p->columns - at : b.channels, room, half);
}

void DP_ROWS_NAME(dp_low_depthwise_bf16)(const dp_low_depthwise *p, const dp_rows_finish *finish, void *room) {
    depthwise(p, finish, room, false);
}
void DP_ROWS_NAME(dp_low_depthwise_half)(const dp_low_depthwise *p, const dp_rows_finish *finish, void *room) {
    depthwise(p, finish, room, true);
}
