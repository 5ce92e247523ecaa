/* kernel.c - the kernels of rows.h, in the vocabulary of lanes.h: one source for every rung. */
#include "math/rows/finish.h"
#include "math/rows/rung.h"

enum {
    CHUNK = 256,           /* k of a panel that stays in the first level cache while rows pass: 16 KB */
    NEAR_FLOATS = 1 << 14, /* of weights that all rows pass by: 64 KB, in the second level cache at least */
    PIECES_MOST = 64,      /* of columns, then */
    /* channels without counting in between, where counting takes the multipliers' ports */
    TOGETHER = DP_MATH_RUNG == DP_RUNG_AVX512 && RV_LANES == 16 ? 2 : 1,
    STEPS = 64,      /* channels between two calls for weights */
    TILES_AHEAD = 6, /* that do so, if there are as many */
    LINE = 64        /* bytes of a cache line */
};

/* What one kernel works on: some rows, some vectors of columns, a part of k. */
typedef struct tile {
    const float *const *rows;    /* of its first tap; those of the next tap are `height` further */
    size_t height;               /* rows of a whole tile */
    size_t taps, skip, channels; /* channels [skip, skip + channels) of every tap */
    const float *weights;
    size_t panel_stride;
    const float *bias; /* whole vectors */
    float *sums;
    size_t sums_stride;
    /* Weights that come next are called into the cache while these are used: from far away they take as long as the
     * sums. Address of those of one panel, bytes to those of another one or 0, lines of each every STEPS channels. */
    uintptr_t ahead, ahead_other;
    size_t ahead_lines;
    bool starts, ends; /* the first part of k, and the last: between them sums lie in `sums` */
    rv_end end;
} tile;

/* Where vector v of the columns is. Pieces of columns start at multiples of their width, so that it lies in one panel.
 */
DP_INLINE size_t vector_at(size_t v, size_t panel_stride) {
    return v * RV_LANES / DP_ROWS_PANEL * panel_stride + v * RV_LANES % DP_ROWS_PANEL;
}

/* Channel i of every row, by its weights. */
DP_INLINE void add_channel(const size_t rows, const size_t vectors, const float *const *a, size_t i, const float *w,
                           size_t panel_stride, rv sum[][RV_WIDE]) {
    rv b[RV_WIDE];
    RV_UNROLL for (size_t v = 0; v < vectors; v++) b[v] = rv_load(w + vector_at(v, panel_stride));
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        const rv x = rv_kept(rv_spread(a[r] + i));
        RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = rv_multiply_add(sum[r][v], x, b[v]);
    }
}

/* `channels` of one tap. */
DP_INLINE void add_products(const size_t rows, const size_t vectors, const float **a, const float *w, size_t channels,
                            size_t panel_stride, rv sum[][RV_WIDE]) {
    size_t i = 0;
    for (; i + TOGETHER <= channels; i += TOGETHER, w += TOGETHER * DP_ROWS_PANEL) {
        RV_UNROLL for (size_t k = 0; k < TOGETHER; k++)
            add_channel(rows, vectors, a, i + k, w + k * DP_ROWS_PANEL, panel_stride, sum);
    }
    for (; TOGETHER > 1 && i < channels; i++, w += DP_ROWS_PANEL)
        add_channel(rows, vectors, a, i, w, panel_stride, sum);
}

/* The same in steps, before each of which some weights that come next are called into the second level cache. */
DP_INLINE uintptr_t add_products_ahead(const size_t rows, const size_t vectors, const float **a, const float *w,
                                       const tile *t, uintptr_t ahead, rv sum[][RV_WIDE]) {
    for (size_t left = t->channels, steps; left; left -= steps, w += steps * DP_ROWS_PANEL) {
        steps = left < STEPS ? left : STEPS;
        for (size_t l = 0; l < t->ahead_lines; l++, ahead += LINE) {
            __builtin_prefetch((const void *)ahead, 0, 2);
            __builtin_prefetch((const void *)(ahead + t->ahead_other), 0, 2);
        }
        add_products(rows, vectors, a, w, steps, t->panel_stride, sum);
        RV_UNROLL for (size_t r = 0; r < rows; r++) a[r] += steps;
    }
    return ahead;
}

DP_INLINE void tile_body(const size_t rows, const size_t vectors, const bool looks_ahead, const tile *t) {
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
    uintptr_t ahead = t->ahead;
    for (size_t tap = 0; tap < t->taps; tap++, w += n * DP_ROWS_PANEL) {
        const float *a[RV_TILE];
        RV_UNROLL for (size_t r = 0; r < rows; r++) a[r] = t->rows[tap * t->height + r] + t->skip;
        if (looks_ahead)
            ahead = add_products_ahead(rows, vectors, a, w, t, ahead, sum);
        else
            add_products(rows, vectors, a, w, n, panel_stride, sum);
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
        tile_body(rows, vectors, false, t);                                                                            \
    }
#define TILES_OF(rows)                                                                                                 \
    TILE(rows, 1)                                                                                                      \
    TILE(rows, 2)                                                                                                      \
    static void tile_##rows##_ahead(const tile *t) {                                                                   \
        tile_body(rows, 2, true, t);                                                                                   \
    }
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
 * is nothing else to keep the multipliers busy with. And [rows - 1] of two vectors, looking ahead. */
#define FIRST_ROWS {tile_1x1, tile_1x2, tile_1x4, tile_1x8}, {tile_2x1, tile_2x2, tile_2x4, NULL}, ROW_OF(3), ROW_OF(4)
#define FIRST_AHEAD tile_1_ahead, tile_2_ahead, tile_3_ahead, tile_4_ahead
#if RV_TILE == 8
TILES_OF(5)
TILES_OF(6)
TILES_OF(7)
TILES_OF(8)
static const tile_fn tiles[RV_TILE][4] = {FIRST_ROWS, ROW_OF(5), ROW_OF(6), ROW_OF(7), ROW_OF(8)};
static const tile_fn tiles_ahead[RV_TILE] = {FIRST_AHEAD, tile_5_ahead, tile_6_ahead, tile_7_ahead, tile_8_ahead};
#elif RV_TILE == 6
TILES_OF(5)
TILES_OF(6)
static const tile_fn tiles[RV_TILE][4] = {FIRST_ROWS, ROW_OF(5), ROW_OF(6)};
static const tile_fn tiles_ahead[RV_TILE] = {FIRST_AHEAD, tile_5_ahead, tile_6_ahead};
#else
static const tile_fn tiles[RV_TILE][4] = {FIRST_ROWS};
static const tile_fn tiles_ahead[RV_TILE] = {FIRST_AHEAD};
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
    part->rows += part->height * w->taps;
    part->sums += part->height * part->sums_stride;
    part->end.y += (ptrdiff_t)part->height * b->y_stride;
    if (part->end.residual)
        part->end.residual += (ptrdiff_t)part->height * b->residual_stride;
}

/* Rows of the tile from row r on. */
static size_t rows_at(const dp_rows_block *b, const tile *part, size_t r) {
    return b->count - r < part->height ? b->count - r : part->height;
}

/* Calls of one tile. */
static size_t steps_of(const tile *part) {
    return part->taps * ((part->channels + STEPS - 1) / STEPS);
}

/* What each of so many tiles calls for of the weights that come next (NULL: nothing), one or two panels. */
static void look_ahead(tile *part, const float *next, size_t tiles_down) {
    const size_t k = part->taps * part->channels,
                 calls = steps_of(part) * (tiles_down < TILES_AHEAD ? tiles_down : TILES_AHEAD);
    part->ahead = (uintptr_t)next;
    part->ahead_other = 2 * RV_LANES > DP_ROWS_PANEL ? part->panel_stride * sizeof *next : 0;
    part->ahead_lines = next && calls ? (k + calls - 1) / calls : 0;
}

/* Past a tile; nothing is left of what comes next past `k` rows of it. */
static void look_further(tile *part, const float *next, size_t k) {
    part->ahead += steps_of(part) * part->ahead_lines * LINE;
    if (part->ahead >= (uintptr_t)next + k * LINE)
        part->ahead_lines = 0;
}

/* Piece of columns by piece, all rows with each: its weights stay in the first cache. `next` is read after all of
 * them. */
static void run_columns(const dp_rows_weights *w, const dp_rows_block *b, const tile *all, const float *next) {
    const size_t tiles_down = (b->count + all->height - 1) / all->height, k = all->taps * all->channels;
    float bias[RV_WIDE * RV_LANES] __attribute__((aligned(64)));
    for (size_t at = 0; at < b->columns;) {
        tile part = *all;
        const size_t log = choose_width(b->count < all->height ? b->count : all->height, b->columns - at);
        at += begin_piece(w, b, log, at, bias, &part);
        const size_t column = b->first + at;
        const float *after =
            at < b->columns ? all->weights + column / DP_ROWS_PANEL * w->panel_stride + column % DP_ROWS_PANEL : next;
        if (log == 1)
            look_ahead(&part, after, tiles_down);
        for (size_t r = 0; r < b->count; r += part.height, next_rows(w, b, &part)) {
            const size_t rows = rows_at(b, &part, r);
            if (part.ahead_lines) {
                tiles_ahead[rows - 1](&part);
                look_further(&part, after, k);
            } else {
                tiles[rows - 1][log](&part);
            }
        }
    }
}

/* Asks for the output of the tile below, which is next when all columns of this one are done. */
DP_INLINE void fetch_lines(const tile *part, size_t log, const size_t height) {
    const uintptr_t step = (uintptr_t)part->end.y_stride * sizeof(float);
    uintptr_t y = (uintptr_t)part->end.y + height * step;
    for (size_t r = 0; r < height; r++, y += step)
        for (uintptr_t c = 0; c < (RV_LANES * sizeof(float)) << log; c += LINE)
            __builtin_prefetch((const void *)(y + c), 1);
}
static void fetch_output(const tile *part, size_t log) {
    if (part->height == RV_TILE)
        fetch_lines(part, log, RV_TILE);
    else
        fetch_lines(part, log, part->height);
}

/* Rows by rows, all columns with each: what is read and written lies in the order of memory. For weights that stay in a
 * cache. */
static void run_rows(const dp_rows_weights *w, const dp_rows_block *b, const tile *all) {
    tile parts[PIECES_MOST];
    size_t logs[PIECES_MOST], n = 0, at = 0;
    float bias[RV_WIDE * RV_LANES] __attribute__((aligned(64))); /* only the last piece may need it */
    for (; at < b->columns && n < PIECES_MOST; n++) {
        parts[n] = *all;
        logs[n] = choose_width(b->count < all->height ? b->count : all->height, b->columns - at);
        at += begin_piece(w, b, logs[n], at, bias, &parts[n]);
    }
    for (size_t r = 0; r < b->count; r += all->height) {
        const tile_fn *fns = tiles[rows_at(b, all, r) - 1];
        const bool more = r + all->height < b->count;
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
    const size_t height = dp_rows_height(RV_TILE, b->count);
    size_t tap = 0, skip;
    do { /* at least once: sums of nothing are the bias */
        skip = 0;
        do {
            tile part = {.rows = b->rows + tap * height,
                         .height = height,
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
            const float *next =
                part.weights + part.taps * part.channels * DP_ROWS_PANEL + b->first / DP_ROWS_PANEL * w->panel_stride;
            if (by_rows)
                run_rows(w, b, &part);
            else
                run_columns(w, b, &part, part.ends ? w->next : next);
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
                                                   .product = DP_ROWS_NAME(dp_rows_product_run),
                                                   .depthwise = DP_ROWS_NAME(dp_rows_pixels),
                                                   .winograd_in = DP_ROWS_NAME(dp_rows_winograd_in),
                                                   .winograd_out = DP_ROWS_NAME(dp_rows_winograd_out),
                                                   .activate = activate};
