/*
 * low.c - products of low.h on processors without an instruction for them: a part of k of all rows becomes float, then
 * two panels' part at a time, which stays in the first cache while all rows pass it. And the end of every product.
 */
#include "math/rows/low_finish.h"

/* To float. */

DP_INLINE void widen(float *to, const uint16_t *from, size_t n, const bool half){
    DP_LANE_LOOP(n, vf_store_f32(to, i, low_load(from, i, half)),
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

typedef struct tile {
    const float *left; /* rows `left_stride` apart */
    size_t left_stride, k;
    const float *right; /* panels of k x 16, one behind the other, from the first vector on */
    float *sums;
    size_t sums_stride;
    bool starts;
} tile;

DP_INLINE void tile_body(const size_t rows, const size_t vectors, const tile *t) {
    rv sum[RV_TILE][2];
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] =
            t->starts ? (rv){0} : rv_load(t->sums + r * t->sums_stride + v * RV_LANES);
    }
    const float *a[RV_TILE], *w = t->right;
    const size_t k = t->k, next = RV_LANES % DP_ROWS_PANEL ? RV_LANES : k * DP_ROWS_PANEL;
    RV_UNROLL for (size_t r = 0; r < rows; r++) a[r] = t->left + r * t->left_stride;
    for (size_t i = 0; i < k; i++, w += DP_ROWS_PANEL) {
        rv b[2];
        RV_UNROLL for (size_t v = 0; v < vectors; v++) b[v] = rv_load(w + v * next);
        RV_UNROLL for (size_t r = 0; r < rows; r++) {
            rv x = rv_spread(a[r] + i);
            RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] += x * b[v];
        }
    }
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++) rv_store(t->sums + r * t->sums_stride + v * RV_LANES, sum[r][v]);
    }
}

#define TILE(rows)                                                                                                     \
    static void tile_##rows##x1(const tile *t) {                                                                       \
        tile_body(rows, 1, t);                                                                                         \
    }                                                                                                                  \
    static void tile_##rows##x2(const tile *t) {                                                                       \
        tile_body(rows, 2, t);                                                                                         \
    }
#define ROW_OF(rows)                                                                                                   \
    { tile_##rows##x1, tile_##rows##x2 }
#define FIRST_ROWS ROW_OF(1), ROW_OF(2), ROW_OF(3), ROW_OF(4)
typedef void (*tile_fn)(const tile *);
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if RV_TILE == 8
TILE(5)
TILE(6)
TILE(7)
TILE(8)
static const tile_fn tiles[][2] = {FIRST_ROWS, ROW_OF(5), ROW_OF(6), ROW_OF(7), ROW_OF(8)};
#elif RV_TILE == 6
TILE(5)
TILE(6)
static const tile_fn tiles[][2] = {FIRST_ROWS, ROW_OF(5), ROW_OF(6)};
#else
static const tile_fn tiles[][2] = {FIRST_ROWS};
#endif

/* All rows with the two panels from column `at` of the block on. Two vectors side by side lie in one panel, or are one
 * panel each. */
static void multiply(const dp_low_block *b, const tile *part, const dp_low_end *end, bool ends, dp_low_type type) {
    enum { WIDTH = 2 * RV_LANES };
    for (size_t r = 0; r < b->count; r += RV_TILE) {
        const size_t rows = b->count - r < RV_TILE ? b->count - r : RV_TILE;
        for (size_t c = 0; c < end->columns; c += WIDTH) {
            tile t = *part;
            t.left += r * t.left_stride;
            t.sums += r * t.sums_stride + c;
            t.right += c / DP_ROWS_PANEL * t.k * DP_ROWS_PANEL + c % DP_ROWS_PANEL;
            tiles[rows - 1][end->columns - c > RV_LANES](&t);
        }
        if (!ends)
            continue;
        dp_low_end e = *end;
        e.y += (ptrdiff_t)r * e.y_stride;
        if (e.residual)
            e.residual += (ptrdiff_t)r * e.residual_stride;
        low_finish(&e, part->sums + r * part->sums_stride, part->sums_stride, rows, type);
    }
}

DP_INLINE void run(const dp_low_weights *w, const dp_low_block *b, const dp_rows_finish *finish, void *room,
                   const bool half) {
    const size_t k = dp_low_up(w->taps * w->pitch, 2), part = k <= LOW_PART_MOST ? k : LOW_PART;
    const size_t stride = part + RV_LANES, columns = dp_low_up(b->columns, LOW_COLUMNS);
    float *left = room, *right = (float *)((char *)room + dp_low_up(b->count, DP_LOW_TILE) * LOW_ROW_BYTES);
    float *sums = (float *)((char *)right + LOW_RIGHT_BYTES);
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
            const tile t = {left, stride, count, right, sums + at, columns, first == 0};
            const dp_low_end end = {.finish = finish,
                                    .bias = w->bias ? w->bias + column : NULL,
                                    .columns = there < LOW_COLUMNS ? there : LOW_COLUMNS,
                                    .y = b->y + column,
                                    .y_stride = b->y_stride,
                                    .residual = b->residual ? b->residual + column : NULL,
                                    .residual_stride = b->residual_stride};
            multiply(b, &t, &end, first + count >= k, half ? DP_LOW_HALF : DP_LOW_BF16);
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

const dp_low_table DP_ROWS_NAME(dp_low_tables)[DP_LOW_TYPE_COUNT] = {
    {run_bf16, DP_ROWS_NAME(dp_low_depthwise_bf16)}, {run_half, DP_ROWS_NAME(dp_low_depthwise_half)}};
