/* kernel.c - the kernels of rows.h, in the vocabulary of lanes.h: one source for every rung. */
#include "math/rows/finish.h"
#include "math/rows/rung.h"

enum {
    CHUNK = 256,           /* k of a panel that stays in the first level cache while rows pass: 16 KB */
    NEAR_FLOATS = 1 << 14, /* of weights that all rows pass by: 64 KB, in the second level cache at least */
    PIECES_MOST = 64       /* of columns, then */
};

/* What one kernel works on: some rows, some vectors of columns, a part of k. */
typedef struct tile {
    const float *const *rows;    /* of its first tap; those of the next tap are RV_TILE further */
    size_t taps, skip, channels; /* channels [skip, skip + channels) of every tap */
    const float *weights;
    size_t panel_stride;
    const float *bias; /* whole vectors */
    float *sums;
    size_t sums_stride;
    bool starts, ends; /* the first part of k, and the last: between them sums lie in `sums` */
    rv_end end;
} tile;

/* Where vector v of the columns is. Pieces of columns start at multiples of their width, so that it lies in one panel.
 */
DP_INLINE size_t vector_at(size_t v, size_t panel_stride) {
    return v * RV_LANES / DP_ROWS_PANEL * panel_stride + v * RV_LANES % DP_ROWS_PANEL;
}

DP_INLINE void tile_body(const size_t rows, const size_t vectors, const tile *t) {
    rv sum[RV_TILE][RV_WIDE];
    if (t->starts) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++) {
            rv first = rv_load(t->bias + v * RV_LANES);
            RV_UNROLL for (size_t r = 0; r < rows; r++) sum[r][v] = first;
        }
    } else {
        RV_UNROLL for (size_t r = 0; r < rows; r++) {
            RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] =
                rv_load(t->sums + r * t->sums_stride + v * RV_LANES);
        }
    }
    const float *w = t->weights;
    const size_t panel_stride = t->panel_stride, n = t->channels;
    for (size_t tap = 0; tap < t->taps; tap++) {
        const float *a[RV_TILE];
        RV_UNROLL for (size_t r = 0; r < rows; r++) a[r] = t->rows[tap * RV_TILE + r] + t->skip;
        for (size_t i = 0; i < n; i++, w += DP_ROWS_PANEL) {
            rv b[RV_WIDE];
            RV_UNROLL for (size_t v = 0; v < vectors; v++) b[v] = rv_load(w + vector_at(v, panel_stride));
            RV_UNROLL for (size_t r = 0; r < rows; r++) {
                rv x = rv_spread(a[r] + i);
                RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] += x * b[v];
            }
        }
    }
    if (t->ends) {
        rv_end_tile(&t->end, rows, vectors, sum);
        return;
    }
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++) rv_store(t->sums + r * t->sums_stride + v * RV_LANES, sum[r][v]);
    }
}

typedef void (*tile_fn)(const tile *t);
#define TILE(rows, vectors)                                                                                            \
    static void tile_##rows##x##vectors(const tile *t) {                                                               \
        tile_body(rows, vectors, t);                                                                                   \
    }
#define TILES_OF(rows) TILE(rows, 1) TILE(rows, 2)
#define ROW_OF(rows)                                                                                                   \
    { tile_##rows##x1, tile_##rows##x2, NULL, NULL }
TILES_OF(1)
TILE(1, 4)
TILE(1, 8)
TILES_OF(2)
TILE(2, 4)
TILES_OF(3)
TILES_OF(4)

/* [rows - 1][log2 of vectors], NULL where sums would not fit the registers. Few rows go by more columns at once: there
 * is nothing else to keep the multipliers busy with. */
#define FIRST_ROWS {tile_1x1, tile_1x2, tile_1x4, tile_1x8}, {tile_2x1, tile_2x2, tile_2x4, NULL}, ROW_OF(3), ROW_OF(4)
#if RV_TILE == 8
TILES_OF(5)
TILES_OF(6)
TILES_OF(7)
TILES_OF(8) static const tile_fn tiles[RV_TILE][4] = {FIRST_ROWS, ROW_OF(5), ROW_OF(6), ROW_OF(7), ROW_OF(8)};
#elif RV_TILE == 6
TILES_OF(5) TILES_OF(6) static const tile_fn tiles[RV_TILE][4] = {FIRST_ROWS, ROW_OF(5), ROW_OF(6)};
#else
static const tile_fn tiles[RV_TILE][4] = {FIRST_ROWS};
#endif

/* log2 of the vectors of the widest kernel for so many rows and columns; less than one vector counts as one. */
static size_t choose_width(size_t rows, size_t columns) {
    size_t log = 0;
    while (log < 3 && tiles[rows - 1][log + 1] && columns > (size_t)RV_LANES << log &&
           (log == 0 || columns >= (size_t)RV_LANES << (log + 1)))
        log++;
    return log;
}

/* One piece of columns, from column `at` of the block on: `part` as its tiles begin. Returns how many columns. */
static size_t begin_piece(const dp_rows_weights *w, const dp_rows_block *b, size_t log, size_t at, float *bias,
                          tile *part) {
    static const float zeros[RV_WIDE * RV_LANES] __attribute__((aligned(64)));
    const size_t column = b->first + at, width = (size_t)RV_LANES << log, left = b->columns - at;
    const size_t columns = left < width ? left : width;
    part->bias = !w->bias ? zeros : columns == width ? w->bias + column : bias;
    for (size_t c = 0; part->bias == bias && c < width; c++)
        bias[c] = c < columns ? w->bias[column + c] : 0;
    part->weights += column / DP_ROWS_PANEL * w->panel_stride + column % DP_ROWS_PANEL;
    part->sums += at;
    part->end.columns = columns;
    part->end.y = b->y + column;
    part->end.residual = b->residual ? b->residual + column : NULL;
    return columns;
}

static void next_rows(const dp_rows_weights *w, const dp_rows_block *b, tile *part) {
    part->rows += RV_TILE * w->taps;
    part->sums += RV_TILE * part->sums_stride;
    part->end.y += RV_TILE * b->y_stride;
    if (part->end.residual)
        part->end.residual += RV_TILE * b->residual_stride;
}

/* Piece of columns by piece, all rows with each: its weights stay in the first cache. */
static void run_columns(const dp_rows_weights *w, const dp_rows_block *b, const tile *all) {
    const size_t most = b->count < RV_TILE ? b->count : RV_TILE;
    float bias[RV_WIDE * RV_LANES] __attribute__((aligned(64)));
    for (size_t at = 0; at < b->columns;) {
        tile part = *all;
        const size_t log = choose_width(most, b->columns - at);
        at += begin_piece(w, b, log, at, bias, &part);
        for (size_t r = 0; r < b->count; r += RV_TILE, next_rows(w, b, &part))
            tiles[(b->count - r < RV_TILE ? b->count - r : RV_TILE) - 1][log](&part);
    }
}

/* Asks for the output of the tile below, which is next when all columns of this one are done. */
static void fetch_output(const tile *part, size_t log) {
    const uintptr_t step = (uintptr_t)part->end.y_stride * sizeof(float), line = DP_ROWS_PANEL * sizeof(float);
    uintptr_t y = (uintptr_t)part->end.y + RV_TILE * step;
    for (size_t r = 0; r < RV_TILE; r++, y += step)
        for (uintptr_t c = 0; c < (RV_LANES * sizeof(float)) << log; c += line)
            __builtin_prefetch((const void *)(y + c), 1);
}

/* Rows by rows, all columns with each: what is read and written lies in the order of memory. For weights that stay in a
 * cache. */
static void run_rows(const dp_rows_weights *w, const dp_rows_block *b, const tile *all) {
    tile parts[PIECES_MOST];
    size_t logs[PIECES_MOST], n = 0, at = 0;
    float bias[RV_WIDE * RV_LANES] __attribute__((aligned(64))); /* only the last piece may need it */
    for (; at < b->columns && n < PIECES_MOST; n++) {
        parts[n] = *all;
        logs[n] = choose_width(b->count < RV_TILE ? b->count : RV_TILE, b->columns - at);
        at += begin_piece(w, b, logs[n], at, bias, &parts[n]);
    }
    for (size_t r = 0; r < b->count; r += RV_TILE) {
        const tile_fn *fns = tiles[(b->count - r < RV_TILE ? b->count - r : RV_TILE) - 1];
        const bool more = r + RV_TILE < b->count;
        for (size_t i = 0; i < n; i++) {
            if (more)
                fetch_output(&parts[i], logs[i]);
            fns[logs[i]](&parts[i]);
            next_rows(w, b, &parts[i]);
        }
    }
}

static void run(const dp_rows_weights *w, const dp_rows_block *b, const dp_rows_finish *finish, float *sums) {
    /* parts of k: all, some whole taps, or some channels of one tap */
    const size_t k = w->channels * w->taps;
    const bool once = k <= CHUNK * 3 / 2 || b->count <= RV_TILE;
    const bool split = !once && w->channels > CHUNK * 3 / 2;
    const size_t taps = once ? w->taps : w->channels >= CHUNK ? 1 : CHUNK / w->channels;
    const size_t channels = split ? CHUNK : w->channels;
    const bool by_rows =
        once && b->count > RV_TILE && k * b->columns <= NEAR_FLOATS && b->columns <= PIECES_MOST * RV_LANES;
    size_t tap = 0, skip;
    do { /* at least once: sums of nothing are the bias */
        skip = 0;
        do {
            tile part = {.rows = b->rows + tap * RV_TILE,
                         .taps = w->taps - tap < taps ? w->taps - tap : taps,
                         .skip = skip,
                         .channels = w->channels - skip < channels ? w->channels - skip : channels,
                         .weights = w->panels + (tap * w->channels + skip) * DP_ROWS_PANEL,
                         .panel_stride = w->panel_stride,
                         .sums = sums,
                         .sums_stride = dp_rows_room(1, b->columns),
                         .starts = tap == 0 && skip == 0,
                         .ends = tap + taps >= w->taps && skip + channels >= w->channels,
                         .end = rv_end_of(finish)};
            part.end.y_stride = b->y_stride;
            part.end.residual_stride = b->residual_stride;
            if (by_rows)
                run_rows(w, b, &part);
            else
                run_columns(w, b, &part);
            skip += channels;
        } while (skip < w->channels);
        tap += taps;
    } while (tap < w->taps);
}

static void activate(const dp_rows_finish *finish, const float *x, float *y, size_t n) {
    rv_finish_row(finish, x, NULL, y, n);
}

const dp_rows_table DP_ROWS_NAME(dp_rows_table) = {.tile = RV_TILE,
                                                   .run = run,
                                                   .depthwise = DP_ROWS_NAME(dp_rows_pixels),
                                                   .winograd_in = DP_ROWS_NAME(dp_rows_winograd_in),
                                                   .winograd_out = DP_ROWS_NAME(dp_rows_winograd_out),
                                                   .activate = activate};
