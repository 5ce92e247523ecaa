/*
 * low_amx.c - products of low.h by matrix tiles. 16 rows by up to 32 k are a tile; how many it is depends on the
 * channels of a tap, which should fill whole tiles: then one is read from the image where it lies, if the addresses of
 * the rows are evenly spaced, and from a copy otherwise. A panel's k are a tile as they lie in the file. 32 x 32 sums
 * stand in four tiles; they leave through a block of memory in the first cache, because there is no other way out of a
 * tile.
 */
#define DP_MATH_RUNG 2
#include <math.h>

#include "math/amx.h"

#define LOW_STORE_BF16(p, i, x) _mm256_storeu_si256((void *)((p) + (i)), (__m256i)_mm512_cvtneps_pbh((__m512)(x)))
#define LOW_STORE_BF16_N(p, i, n, x)                                                                                   \
    _mm256_mask_storeu_epi16((p) + (i), (__mmask16)((1u << (n)) - 1), (__m256i)_mm512_cvtneps_pbh((__m512)(x)))
#include "math/rows/low_finish.h"

enum {
    STEP = 32,           /* k of a tile, at most */
    PART = 2 * LOW_PART, /* k whose weights, of 32 columns, stay in the first cache */
    PART_MOST = PART * 3 / 2,
    STEP_LEAST = 16, /* of a tap's channels, if they are more */
    STEPS_MOST = PART_MOST / STEP_LEAST,
    LEFT_PITCH = PART_MOST * 2 + 64, /* bytes; no power of two */
    TILE_BYTES = 1024,
    SIDE = 32,             /* of a block of sums */
    NEAR_BYTES = 32 << 10, /* of weights that all rows may pass by */
    GROUPS_MOST = 16       /* of 32 columns, then */
};

/* Where a tile of rows is. */
typedef struct spot {
    const void *at;
    size_t stride; /* bytes */
} spot;

typedef struct job {
    const dp_low_weights *w;
    const dp_low_block *b;
    const dp_rows_finish *finish;
    spot *spots; /* [tile of rows][step] */
    char *left, *tails;
    float *sums;
    size_t k, first, steps; /* all k, the part's first, its tiles */
    size_t step;            /* k of a tile */
    bool starts, ends, divided;
} job;

static void tiles_begin(size_t step) {
    dp_amx_shapes shapes = dp_amx_whole();
    shapes.row_bytes[4] = shapes.row_bytes[5] = (uint16_t)(2 * step);
    shapes.rows[6] = shapes.rows[7] = (uint8_t)(step / 2);
    dp_amx_begin(&shapes);
}

/* The left factors. */

/* k from channel i of `tap` on, `count` of it, of row r of a tile; zeros behind the last. Up to 62 bytes more may be
 * written. */
static void copy_row(const dp_low_weights *w, const dp_low_run *runs, size_t r, size_t tap, size_t i, size_t count,
                     char *to) {
    char *const end = to + 2 * count;
    for (; to < end && tap < w->taps; tap++, i = 0) {
        const uint16_t *from = dp_low_row(&runs[tap], r);
        for (; i < w->pitch && to < end; i += STEP) {
            const size_t there = w->pitch - i, left = i < w->channels ? w->channels - i : 0;
            const __mmask32 mask = left < STEP ? (1u << left) - 1 : ~0u;
            _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(mask, from + i));
            to += 2 * (there < STEP ? there : STEP);
        }
    }
    for (; to < end; to += 64)
        _mm512_storeu_si512(to, _mm512_setzero_si512());
}

/* Tile by tile of taps whose channels fill whole tiles. */
static void point_taps(const job *j, size_t tile, size_t rows, char *left, spot *spots) {
    const dp_low_weights *w = j->w;
    const dp_low_run *run = j->b->runs + tile * w->taps + j->first / w->channels;
    const size_t step = j->step;
    size_t i = j->first % w->channels;
    for (size_t s = 0; s < j->steps; run++, i = 0) {
        const bool direct = rows == DP_LOW_TILE && !run->rows;
        const size_t from = s, begin = i;
        for (; s < j->steps && i < w->channels; s++, i += step)
            spots[s] = direct ? (spot){run->at + i, (size_t)(2 * run->step)} : (spot){left + s * 2 * step, LEFT_PITCH};
        for (size_t r = 0; r < rows && !direct; r++)
            memcpy(left + r * LEFT_PITCH + from * 2 * step, dp_low_row(run, r) + begin, (s - from) * 2 * step);
    }
}

static void point_rows(const job *j, bool whole) {
    const dp_low_weights *w = j->w;
    const size_t tap = j->first / w->pitch, channel = j->first % w->pitch;
    for (size_t r = 0, tile = 0; r < j->b->count; r += DP_LOW_TILE, tile++) {
        const size_t rows = j->b->count - r < DP_LOW_TILE ? j->b->count - r : DP_LOW_TILE;
        char *left = j->left + r * LEFT_PITCH;
        spot *spots = j->spots + tile * STEPS_MOST;
        if (whole) {
            point_taps(j, tile, rows, left, spots);
            continue;
        }
        for (size_t i = 0; i < rows; i++)
            copy_row(w, j->b->runs + tile * w->taps, i, tap, channel, j->steps * STEP, left + i * LEFT_PITCH);
        for (size_t s = 0; s < j->steps; s++)
            spots[s] = (spot){left + s * 64, LEFT_PITCH};
    }
}

/* k of a tile that divides the channels of a tap; 0 when there is none that is worth it. */
static size_t step_of(const dp_low_weights *w) {
    if (w->pitch != w->channels || w->channels % 2)
        return 0;
    if (w->channels <= STEP)
        return w->taps == 1 || w->channels >= STEP_LEAST / 2 ? w->channels : 0;
    for (size_t step = STEP; step >= STEP_LEAST; step -= 2)
        if (w->channels % step == 0)
            return step;
    return 0;
}

/* Products. */

/* 32 x 32 sums, or the left or upper half of them, over `steps` tiles of k. The last tile of weights lies at `tails`,
 * if there is one. */
DP_INLINE void block_body(const bool tall, const bool wide, size_t steps, const spot *a, const uint16_t *b,
                          size_t b_step, size_t panel_stride, const char *tails, float *c, bool add) {
    const spot *below = a + STEPS_MOST;
    float *const lower = c + 16 * SIDE;
    DP_AMX_ORDER();
    if (add) {
        _tile_loadd(0, c, SIDE * 4);
        if (wide)
            _tile_loadd(1, c + 16, SIDE * 4);
        if (tall)
            _tile_loadd(2, lower, SIDE * 4);
        if (tall && wide)
            _tile_loadd(3, lower + 16, SIDE * 4);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t s = 0; s < steps; s++, b += b_step) {
        const bool tail = tails && s + 1 == steps;
        _tile_loadd(6, tail ? (const void *)tails : b, 64);
        _tile_loadd(4, a[s].at, a[s].stride);
        _tile_dpbf16ps(0, 4, 6);
        if (wide) {
            _tile_loadd(7, tail ? (const void *)(tails + TILE_BYTES) : b + panel_stride, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (tall) {
            _tile_loadd(5, below[s].at, below[s].stride);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (tall && wide)
            _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, SIDE * 4);
    if (wide)
        _tile_stored(1, c + 16, SIDE * 4);
    if (tall)
        _tile_stored(2, lower, SIDE * 4);
    if (tall && wide)
        _tile_stored(3, lower + 16, SIDE * 4);
    DP_AMX_ORDER();
}

#define BLOCK(tall, wide)                                                                                              \
    static void block_##tall##wide(size_t steps, const spot *a, const uint16_t *b, size_t b_step, size_t panel_stride, \
                                   const char *tails, float *c, bool add) {                                            \
        block_body(tall, wide, steps, a, b, b_step, panel_stride, tails, c, add);                                      \
    }
BLOCK(0, 0)
BLOCK(0, 1)
BLOCK(1, 0)
BLOCK(1, 1)

/* Adds the residual. Ahead of all stores: where rows lie closer than a vector is long, as with few channels, a row read
 * after the one before it was written, both through masks, waits until that is in the cache. */
static void add_residual(const dp_low_end *e, float *sums, size_t rows) {
    const __mmask32 there = e->columns < 32 ? (1u << e->columns) - 1 : ~0u;
    const uint16_t *residual = e->residual;
    for (size_t r = 0; r < rows; r++, sums += SIDE, residual += e->residual_stride) {
        const __m512i both = _mm512_maskz_loadu_epi16(there, residual);
        const __m512 a = (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(both)), 16);
        const __m512 b = (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(both, 1)), 16);
        _mm512_store_ps(sums, _mm512_add_ps(_mm512_load_ps(sums), a));
        _mm512_store_ps(sums + 16, _mm512_add_ps(_mm512_load_ps(sums + 16), b));
    }
}

/* The end of up to 32 columns where there is only a clip and a residual. */
static void finish_plain(const dp_low_end *e, float *sums, size_t rows) {
    const rv_end bounds = rv_end_of(e->finish);
    const __mmask32 there = e->columns < 32 ? (1u << e->columns) - 1 : ~0u;
    const __m512 bias0 = e->bias ? _mm512_maskz_loadu_ps((__mmask16)there, e->bias) : _mm512_setzero_ps();
    const __m512 bias1 = e->bias && e->columns > 16 ? _mm512_maskz_loadu_ps((__mmask16)(there >> 16), e->bias + 16)
                                                    : _mm512_setzero_ps();
    const __m512 low = _mm512_set1_ps(bounds.has_low ? bounds.low : -INFINITY),
                 high = _mm512_set1_ps(bounds.has_high ? bounds.high : INFINITY);
    const bool late = e->finish->residual_last, added = e->residual && !late && e->columns < 32;
    const uint16_t *residual = added ? NULL : e->residual;
    const ptrdiff_t residual_step = residual ? e->residual_stride : 0;
    uint16_t *y = e->y;
    if (added)
        add_residual(e, sums, rows);
    for (size_t r = 0; r < rows; r++, sums += SIDE, y += e->y_stride, residual += residual_step) {
        __m512 a = _mm512_add_ps(_mm512_load_ps(sums), bias0), b = _mm512_add_ps(_mm512_load_ps(sums + 16), bias1);
        __m512 more_a = _mm512_setzero_ps(), more_b = more_a;
        if (residual) {
            const __m512i both = _mm512_maskz_loadu_epi16(there, residual);
            more_a = (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(both)), 16);
            more_b = (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(both, 1)), 16);
        }
        if (residual && !late) {
            a = _mm512_add_ps(a, more_a);
            b = _mm512_add_ps(b, more_b);
        }
        a = _mm512_min_ps(high, _mm512_max_ps(low, a)); /* NaN is handed on: the second operand */
        b = _mm512_min_ps(high, _mm512_max_ps(low, b));
        if (residual && late) {
            a = _mm512_add_ps(a, more_a);
            b = _mm512_add_ps(b, more_b);
        }
        const __m512i out = (__m512i)_mm512_cvtne2ps_pbh(b, a);
        if (e->columns >= 32)
            _mm512_storeu_si512(y, out);
        else
            _mm512_mask_storeu_epi16(y, there, out);
    }
}

/* Rows [row, row + 32) and columns [at, at + 32) of the block; tails: the last tiles of weights, or NULL. */
static void block(const job *j, size_t row, size_t at, const char *tails) {
    const dp_low_weights *w = j->w;
    const dp_low_block *b = j->b;
    const size_t rows = b->count - row < SIDE ? b->count - row : SIDE, column = b->first + at;
    const size_t columns = b->columns - at < SIDE ? b->columns - at : SIDE;
    const uint16_t *panels = w->panels + column / DP_ROWS_PANEL * w->panel_stride + j->first * DP_ROWS_PANEL;
    float *sums = j->sums;
    if (j->divided)
        sums += (row / SIDE * (dp_low_up(b->columns, SIDE) / SIDE) + at / SIDE) * SIDE * SIDE;
    static void (*const blocks[])(size_t, const spot *, const uint16_t *, size_t, size_t, const char *, float *,
                                  bool) = {block_00, block_01, block_10, block_11};
    blocks[(rows > 16) * 2 + (columns > 16)](j->steps, j->spots + row / DP_LOW_TILE * STEPS_MOST, panels,
                                             j->step * DP_ROWS_PANEL, w->panel_stride, tails, sums, !j->starts);
    if (!j->ends)
        return;
    const dp_low_end end = {.finish = j->finish,
                            .bias = w->bias ? w->bias + column : NULL,
                            .columns = columns,
                            .y = b->y + (ptrdiff_t)row * b->y_stride + column,
                            .y_stride = b->y_stride,
                            .residual = b->residual ? b->residual + (ptrdiff_t)row * b->residual_stride + column : NULL,
                            .residual_stride = b->residual_stride};
    if (j->finish->activation <= DP_ROWS_CLIP)
        finish_plain(&end, sums, rows);
    else
        low_finish(&end, sums, SIDE, rows, DP_LOW_BF16);
}

/* The last tiles of the two panels from column `at` of the block on, filled up with zeros; NULL when they are whole. */
static const char *take_tails(const job *j, size_t at, char *to) {
    const dp_low_weights *w = j->w;
    const size_t left = j->k % j->step;
    if (!j->ends || !left)
        return NULL;
    const size_t panels = j->b->columns - at > DP_ROWS_PANEL ? 2 : 1, bytes = dp_low_up(left, 2) * DP_ROWS_PANEL * 2;
    const uint16_t *from =
        w->panels + (j->b->first + at) / DP_ROWS_PANEL * w->panel_stride + (j->k - left) * DP_ROWS_PANEL;
    for (size_t p = 0; p < panels; p++) {
        memcpy(to + p * TILE_BYTES, from + p * w->panel_stride, bytes);
        memset(to + p * TILE_BYTES + bytes, 0, TILE_BYTES - bytes);
    }
    return to;
}

/* Rows by rows, all columns with each. */
static void run_rows(const job *j) {
    const char *tails[GROUPS_MOST];
    for (size_t at = 0; at < j->b->columns; at += SIDE)
        tails[at / SIDE] = take_tails(j, at, j->tails + at / SIDE * 2 * TILE_BYTES);
    for (size_t row = 0; row < j->b->count; row += SIDE)
        for (size_t at = 0; at < j->b->columns; at += SIDE)
            block(j, row, at, tails[at / SIDE]);
}

static void run_columns(const job *j) {
    for (size_t at = 0; at < j->b->columns; at += SIDE) {
        const char *tails = take_tails(j, at, j->tails);
        for (size_t row = 0; row < j->b->count; row += SIDE)
            block(j, row, at, tails);
    }
}

static void run(const dp_low_weights *w, const dp_low_block *b, const dp_rows_finish *finish, void *room) {
    const size_t count = dp_low_up(b->count, SIDE), k = w->taps * w->pitch, whole = step_of(w);
    const size_t step = whole ? whole : STEP, most = PART_MOST / STEP_LEAST * step;
    const size_t part = k <= PART_MOST && k <= most ? k : PART < most ? PART / step * step : most;
    char *at = room;
    job j = {.w = w, .b = b, .finish = finish, .left = at, .k = k, .step = step, .divided = part < k};
    j.spots = (spot *)(at + count * LEFT_PITCH);
    j.tails = at + count * LOW_ROW_BYTES;
    j.sums = (float *)(j.tails + LOW_RIGHT_BYTES);
    const bool by_rows = !j.divided && k * b->columns * 2 <= NEAR_BYTES && b->columns <= (size_t)GROUPS_MOST * SIDE;
    tiles_begin(step);
    size_t first = 0;
    do {
        const size_t n = k - first < part ? k - first : part;
        j.first = first;
        j.steps = (n + step - 1) / step;
        j.starts = first == 0;
        j.ends = first + n >= k;
        point_rows(&j, whole);
        if (by_rows)
            run_rows(&j);
        else
            run_columns(&j);
        first += n;
    } while (first < k);
    _tile_release();
}

const dp_low_table dp_low_table_amx = {run, dp_low_pixels};
