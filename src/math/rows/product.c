/*
 * product.c - rows that lie evenly spaced times panels: a plain product, for which a tile may be taller than where
 * every row has an address of its own. While the rows pass by a pair of panels, the pair that comes next is fetched
 * from memory.
 */
#include "math/rows/finish.h"
#include "math/rows/rung.h"

/* A tile's rows: their sums, two vectors each, two of weights and one of the input fit the registers. */
#if RV_LANES == 16
enum { ROWS = RV_TALL, PART = 768 };
#define EACH_ROWS(X, v)                                                                                                \
    X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v) X(7, v) X(8, v) X(9, v) X(10, v) X(11, v) X(12, v) X(13, v) X(14, v)
#elif RV_LANES == 8
enum { ROWS = RV_TALL, PART = 256 };
#define EACH_ROWS(X, v) X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v)
#elif defined(__aarch64__)
enum { ROWS = RV_TALL, PART = 256 };
#define EACH_ROWS(X, v) X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v) X(7, v) X(8, v)
#else
enum { ROWS = RV_TALL, PART = 256 };
#define EACH_ROWS(X, v) X(1, v) X(2, v) X(3, v) X(4, v)
#endif

enum {
    WIDTH = 2 * RV_LANES,
    COLUMNS = 256, /* whose sums stay in the second level cache between parts of k */
    SPACING = 3,   /* rows that share an address: two of them are reached by a multiple of the distance */
    STEPS = 2,     /* of k, unrolled */
    LINE = 64      /* bytes of a cache */
};

typedef struct tile {
    const float *x;
    size_t x_stride, tap_stride;
    size_t taps, k; /* of this part; k of one tap */
    const float *weights;
    size_t panel_stride;
    const float *bias; /* whole vectors */
    float *sums;
    size_t sums_stride;
    bool starts, ends; /* the first part of k, and the last: between them sums lie in `sums` */
    const char *next;  /* what to fetch, and how far apart */
    size_t next_step;
    rv_end end;
} tile;

DP_INLINE size_t vector_at(size_t v, size_t panel_stride) {
    return v * RV_LANES / DP_ROWS_PANEL * panel_stride + v * RV_LANES % DP_ROWS_PANEL;
}

DP_INLINE void step(const size_t rows, const size_t vectors, const float *const *base, size_t stride, size_t at,
                    const float *w, size_t panel_stride, rv sum[][RV_WIDE]) {
    rv b[2];
    RV_UNROLL for (size_t v = 0; v < vectors; v++) b[v] = rv_load(w + vector_at(v, panel_stride));
    RV_UNROLL for (size_t r = 0; r < rows; r++) {
        const rv x = rv_kept(rv_spread(base[r / SPACING] + r % SPACING * stride + at));
        RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] = rv_multiply_add(sum[r][v], x, b[v]);
    }
}

/* k of one tap, whose first row is at x. */
DP_INLINE void add_tap(const size_t rows, const size_t vectors, const tile *t, const float *x, const float *w,
                       const char *next, rv sum[][RV_WIDE]) {
    const size_t stride = t->x_stride, panel_stride = t->panel_stride, next_step = t->next_step;
    const float *base[(ROWS + SPACING - 1) / SPACING];
    RV_UNROLL for (size_t r = 0; r < rows; r += SPACING) {
        base[r / SPACING] = x + r * stride;
        RV_POINTER(base[r / SPACING]);
    }
    size_t left = t->k;
    for (; left >= STEPS; left -= STEPS) {
        __builtin_prefetch(next, 0, 2);
        next += next_step;
        RV_UNROLL for (size_t i = 0; i < STEPS; i++)
            step(rows, vectors, base, stride, i, w + i * DP_ROWS_PANEL, panel_stride, sum);
        w += STEPS * DP_ROWS_PANEL;
        RV_UNROLL for (size_t r = 0; r < rows; r += SPACING) {
            base[r / SPACING] += STEPS;
            RV_POINTER(base[r / SPACING]);
        }
    }
    if (left)
        step(rows, vectors, base, stride, 0, w, panel_stride, sum);
}

DP_INLINE void tile_body(const size_t rows, const size_t vectors, const tile *t) {
    rv sum[ROWS][RV_WIDE];
    if (t->starts) {
        RV_UNROLL for (size_t v = 0; v < vectors; v++) {
            const rv first = rv_load(t->bias + v * RV_LANES);
            RV_UNROLL for (size_t r = 0; r < rows; r++) sum[r][v] = first;
        }
    } else {
        RV_UNROLL for (size_t r = 0; r < rows; r++) {
            RV_UNROLL for (size_t v = 0; v < vectors; v++) sum[r][v] =
                rv_load(t->sums + r * t->sums_stride + v * RV_LANES);
        }
    }
    const float *x = t->x, *w = t->weights;
    const char *next = t->next;
    for (size_t tap = t->taps; tap; tap--) {
        add_tap(rows, vectors, t, x, w, next, sum);
        x += t->tap_stride;
        w += t->k * DP_ROWS_PANEL;
        next += t->k / STEPS * t->next_step;
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
#define NAME(rows, vectors) product_##rows##x##vectors
#define TILE(rows, vectors)                                                                                            \
    static void NAME(rows, vectors)(const tile *t) {                                                                   \
        tile_body(rows, vectors, t);                                                                                   \
    }
#define ENTRY(rows, vectors) NAME(rows, vectors),
EACH_ROWS(TILE, 1)
EACH_ROWS(TILE, 2)
static const tile_fn tiles[2][ROWS] = {{EACH_ROWS(ENTRY, 1)}, {EACH_ROWS(ENTRY, 2)}};

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* A part of k of some columns: what all its pairs of vectors have in common. */
typedef struct part {
    const dp_rows_product *product;
    size_t first, columns; /* of the block */
    size_t k_first, k, per_tap;
    float *sums;
    size_t sums_stride, groups; /* of rows */
    const dp_rows_finish *finish;
} part;

/* What comes after the columns at `at`: the next ones, or the first ones of the next part of k. */
static const float *after(const part *p, size_t at) {
    const size_t stride = p->product->k * DP_ROWS_PANEL;
    const bool same = at + WIDTH < p->columns;
    if (!same && p->k_first + p->k == p->product->k && p->product->next)
        return p->product->next;
    const size_t column = p->first + (same ? at + WIDTH : 0), k = p->k_first + (same ? 0 : p->k);
    return p->product->panels + column / DP_ROWS_PANEL * stride + k * DP_ROWS_PANEL + column % DP_ROWS_PANEL;
}

/* All rows by the pair of vectors of columns at `at`. */
static void run_pair(const part *p, size_t at) {
    static const float zeros[WIDTH] __attribute__((aligned(64)));
    const dp_rows_product *all = p->product;
    const size_t columns = least(WIDTH, p->columns - at), vectors = columns > RV_LANES ? 2 : 1, column = p->first + at;
    const size_t stride = all->k * DP_ROWS_PANEL;
    const bool starts = p->k_first == 0, ends = p->k_first + p->k == all->k;
    float bias[WIDTH] __attribute__((aligned(64)));
    for (size_t c = 0; all->bias && columns < WIDTH && c < WIDTH; c++)
        bias[c] = c < columns ? all->bias[column + c] : 0;
    const size_t taps = p->per_tap ? p->k / p->per_tap : 1, first_tap = p->per_tap ? p->k_first / p->per_tap : 0;
    tile t = {.x_stride = (size_t)all->x_stride,
              .tap_stride = (size_t)all->tap_stride,
              .taps = taps,
              .k = p->per_tap ? p->per_tap : p->k,
              .weights =
                  all->panels + column / DP_ROWS_PANEL * stride + p->k_first * DP_ROWS_PANEL + column % DP_ROWS_PANEL,
              .panel_stride = stride,
              .bias = !all->bias        ? zeros
                      : columns < WIDTH ? bias
                                        : all->bias + column,
              .sums_stride = p->sums_stride,
              .starts = starts,
              .ends = ends,
              .end = rv_end_of(p->finish)};
    t.end.columns = columns;
    t.end.y_stride = all->y_stride;
    t.end.residual_stride = all->residual_stride;
    /* the next pair's bytes in as many steps as there are here: a line at a time at most */
    const size_t bytes = WIDTH * p->k * sizeof(float), steps_down = t.taps * (t.k / STEPS),
                 steps = p->groups * steps_down;
    t.next_step = steps ? least(LINE, (bytes + steps - 1) / steps) : 0;
    const size_t panel_bytes = p->k * DP_ROWS_PANEL * sizeof(float), per_group = steps_down * t.next_step;
    const char *next = (const char *)after(p, at);
    for (size_t g = 0, row = 0; g < p->groups; g++) {
        const size_t end = all->rows * (g + 1) / p->groups, fetched = g * per_group;
        t.x = all->x + (ptrdiff_t)row * all->x_stride +
              (p->per_tap ? (ptrdiff_t)first_tap * all->tap_stride : (ptrdiff_t)p->k_first);
        t.sums = p->sums + row * p->sums_stride + at;
        t.end.y = all->y + (ptrdiff_t)row * all->y_stride + column;
        t.end.residual = all->residual ? all->residual + (ptrdiff_t)row * all->residual_stride + column : NULL;
        /* addresses only, perhaps behind the last panel: nothing is read */
        t.next = (const char *)((uintptr_t)next +
                                (fetched < panel_bytes ? fetched : fetched - panel_bytes + stride * sizeof(float)));
        tiles[vectors - 1][end - row - 1](&t);
        row = end;
    }
}

void DP_ROWS_NAME(dp_rows_product_run)(const dp_rows_product *product, const dp_rows_finish *finish, float *sums) {
    const size_t n_parts = product->k ? (product->k + PART - 1) / PART : 1, even = (product->k + n_parts - 1) / n_parts;
    const size_t per_tap = product->taps > 1 ? product->k / product->taps : 0; /* then parts are whole taps */
    const size_t k = !per_tap ? even : per_tap < PART ? PART / per_tap * per_tap : per_tap;
    for (size_t first = 0; first < product->columns; first += COLUMNS) {
        part p = {.product = product,
                  .first = product->first + first,
                  .columns = least(COLUMNS, product->columns - first),
                  .per_tap = per_tap,
                  .sums = sums,
                  .groups = (product->rows + ROWS - 1) / ROWS,
                  .finish = finish};
        p.sums_stride = dp_rows_room(1, p.columns);
        do { /* at least once: sums of nothing are the bias */
            p.k = least(k, product->k - p.k_first);
            for (size_t at = 0; at < p.columns; at += WIDTH)
                run_pair(&p, at);
            p.k_first += p.k;
        } while (p.k_first < product->k);
    }
}
