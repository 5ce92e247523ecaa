/*
 * low.c - products of low.h on processors without an instruction for them: a part of k of all rows becomes float, then
 * two panels' part at a time, which stays in the first cache while all rows pass it (product.c).
 */
#include "math/rows/low_finish.h"
#include "math/rows/rung.h"

/* To float. */

DP_INLINE void widen(float *to, const uint16_t *from, size_t n,
                     const bool half){DP_LANE_LOOP(n, vf_store_f32(to, i, low_load(from, i, half)),
                                                   vf_store_f32_n(to, i, rest, low_load_n(from, i, rest, half)))}

/* k [first, first + count) of every row of the block. */
DP_INLINE void take_rows(const dp_low_weights *w, const dp_low_block *b, size_t first, size_t count, float *left,
                         size_t stride, const bool half) {
    for (size_t r = 0; r < b->count; r++) {
        const dp_low_run *at = b->runs + r / DP_LOW_TILE * w->taps;
        float *to = left + r * stride;
        size_t tap = first / w->pitch, i = first % w->pitch;
        for (size_t left_over = count; left_over; tap++, i = 0) {
            const size_t there = w->pitch - i, n = there < left_over ? there : left_over;
            size_t real = tap < w->taps && i < w->channels ? w->channels - i : 0;
            real = real < n ? real : n;
            if (real)
                widen(to, dp_low_row(&at[tap], r % DP_LOW_TILE) + i, real, half);
            for (size_t z = real; z < n; z++)
                to[z] = 0;
            to += n;
            left_over -= n;
        }
    }
}

/* `count` k of a panel, an even number, to rows of 16 floats. */
DP_INLINE void take_panel(const uint16_t *from, size_t count, float *to, const bool half) {
    for (size_t k = 0; k < count; k += 2, from += 2 * DP_ROWS_PANEL, to += 2 * DP_ROWS_PANEL) {
        if (half) {
            uint16_t parts[2 * DP_ROWS_PANEL];
            RV_UNROLL for (size_t c = 0; c < DP_ROWS_PANEL; c++) {
                parts[c] = from[2 * c];
                parts[DP_ROWS_PANEL + c] = from[2 * c + 1];
            }
            widen(to, parts, sizeof parts / sizeof parts[0], true);
        } else {
            uint32_t pairs[DP_ROWS_PANEL], even[DP_ROWS_PANEL], odd[DP_ROWS_PANEL];
            memcpy(pairs, from, sizeof pairs);
            RV_UNROLL for (size_t c = 0; c < DP_ROWS_PANEL; c++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                even[c] = pairs[c] << 16;
                odd[c] = pairs[c] & 0xffff0000u;
#else
                even[c] = pairs[c] & 0xffff0000u;
                odd[c] = pairs[c] << 16;
#endif
            }
            memcpy(to, even, sizeof even);
            memcpy(to + DP_ROWS_PANEL, odd, sizeof odd);
        }
    }
}

/* Products. */

static void finish_all(const dp_low_end *end, const float *sums, size_t stride, size_t count, dp_low_type type) {
    enum { ROWS = LOW_COLUMNS }; /* at once */
    dp_low_end e = *end;
    for (size_t r = 0; r < count; r += ROWS, e.y += ROWS * e.y_stride) {
        low_finish(&e, sums + r * stride, stride, count - r < ROWS ? count - r : ROWS, type);
        if (e.residual)
            e.residual += ROWS * e.residual_stride;
    }
}

DP_INLINE void run(const dp_low_weights *w, const dp_low_block *b, const dp_rows_finish *finish, void *room,
                   const bool half) {
    static const dp_rows_finish none = {.activation = DP_ROWS_NONE};
    const size_t k = dp_low_up(w->taps * w->pitch, 2), part = k <= LOW_PART_MOST ? k : LOW_PART;
    const size_t rows = dp_low_up(b->count, DP_LOW_TILE), stride = part + DP_ROWS_PANEL;
    const size_t columns = dp_low_up(b->columns, LOW_COLUMNS);
    float *left = room, *inner = left + rows * (LOW_PART_MOST + DP_ROWS_PANEL);
    float *right = (float *)((char *)room + rows * LOW_ROW_BYTES), *sums = (float *)((char *)right + LOW_RIGHT_BYTES);
    size_t first = 0;
    do { /* at least once: sums of nothing are the bias */
        const size_t count = k - first < part ? k - first : part;
        take_rows(w, b, first, count, left, stride, half);
        for (size_t at = 0; at < b->columns; at += LOW_COLUMNS) {
            const size_t column = b->first + at, there = b->columns - at;
            const uint16_t *from = w->panels + column / DP_ROWS_PANEL * w->panel_stride + first * DP_ROWS_PANEL;
            take_panel(from, count, right, half);
            if (there > DP_ROWS_PANEL)
                take_panel(from + w->panel_stride, count, right + count * DP_ROWS_PANEL, half);
            const dp_rows_product product = {.x = left,
                                             .x_stride = (ptrdiff_t)stride,
                                             .rows = b->count,
                                             .k = count,
                                             .panels = right,
                                             .columns = there < LOW_COLUMNS ? there : LOW_COLUMNS,
                                             .y = sums + at,
                                             .y_stride = (ptrdiff_t)columns,
                                             .residual = first ? sums + at : NULL, /* what earlier parts gave */
                                             .residual_stride = (ptrdiff_t)columns};
            DP_ROWS_NAME(dp_rows_product_run)(&product, &none, inner);
            const dp_low_end end = {.finish = finish,
                                    .bias = w->bias ? w->bias + column : NULL,
                                    .columns = product.columns,
                                    .y = b->y + column,
                                    .y_stride = b->y_stride,
                                    .residual = b->residual ? b->residual + column : NULL,
                                    .residual_stride = b->residual_stride};
            if (first + count >= k)
                finish_all(&end, sums + at, columns, b->count, half ? DP_LOW_HALF : DP_LOW_BF16);
        }
        first += part;
    } while (first < k);
}

static void run_bf16(const dp_low_weights *w, const dp_low_block *b, const dp_rows_finish *finish, void *room) {
    run(w, b, finish, room, false);
}
static void run_half(const dp_low_weights *w, const dp_low_block *b, const dp_rows_finish *finish, void *room) {
    run(w, b, finish, room, true);
}

const dp_low_table DP_ROWS_NAME(dp_low_tables)[DP_LOW_TYPE_COUNT] = {{run_bf16, DP_ROWS_NAME(dp_low_depthwise_bf16)},
                                                                     {run_half, DP_ROWS_NAME(dp_low_depthwise_half)}};
