/* tile.c - runs one tile of a plan: packs, calls the micro-kernel, finishes. */
#include "math/gemm/internal.h"

#include <string.h>

enum { ROWS_AT_ONCE = 12 /* units: as far as packing calls ahead (pack.c) */ };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Bytes of one unit of a packed B: half and bfloat16 that will be multiplied as floats keep their two. */
static size_t packed_unit_bytes(const dp_gemm_plan *plan) {
    return plan->kind == DP_GEMM_F32 && plan->problem.b.dtype != DP_F32 ? 2 : 4;
}

size_t dp_gemm_packed_b_at(const dp_gemm_plan *plan, size_t block, size_t panel) {
    size_t columns = plan->rung->columns, row = columns * packed_unit_bytes(plan);
    size_t sums = plan->kind == DP_GEMM_U8 ? columns * 4 : 0, panels = dp_gemm_ceil(plan->problem.n, columns);
    size_t first = block * plan->unit_block;
    size_t units = first < plan->units ? least(plan->unit_block, plan->units - first) : 0;
    units = dp_gemm_kernel_units(plan, units);
    return block * panels * (plan->unit_block * row + sums) + panel * (units * row + sums);
}

/* The part of units [u, u + count) that lies in one block of the batch: its elements along k. */
typedef struct {
    size_t block, k, k_count, units;
} piece;

static piece piece_at(const dp_gemm_plan *plan, size_t u, size_t count) {
    size_t segment = plan->segment_units, within = u % segment;
    piece p = {.block = u / segment, .k = within * plan->group, .units = least(count, segment - within)};
    p.k_count = least(p.units * plan->group, plan->problem.k - p.k);
    return p;
}

static dp_gemm_view view_of(const dp_gemm_plan *plan, const dp_gemm_matrix *m, piece p) {
    return (dp_gemm_view){.data = plan->problem.n_blocks ? m->blocks[p.block] : m->data, .dtype = m->dtype};
}

void dp_gemm_pack_a_units(const dp_gemm_plan *plan, size_t i, size_t rows, size_t u, size_t count, uint32_t *dst,
                          size_t dst_stride) {
    const dp_gemm_matrix *a = &plan->problem.a;
    for (size_t done = 0; done < count;) {
        piece p = piece_at(plan, u + done, count - done);
        dp_gemm_view v = view_of(plan, a, p);
        v.first = (ptrdiff_t)i * a->row_stride + (ptrdiff_t)p.k * a->column_stride;
        v.k_stride = a->column_stride;
        v.other_stride = a->row_stride;
        v.flip = plan->a_flip;
        plan->rung->pack_rows((dp_gemm_kind)plan->kind, &v, rows, p.k_count, dst + done, dst_stride);
        done += p.units;
    }
    const size_t end = dp_gemm_kernel_units(plan, count);
    for (size_t r = 0; r < rows && count < end; r++)
        memset(dst + r * dst_stride + count, 0, (end - count) * sizeof *dst);
}

/* Whole panels from column j on that can be packed together, at least 1. */
static size_t panels_together(const dp_gemm_plan *plan, size_t j, size_t last) {
    enum { TOGETHER = 4 };
    const dp_gemm_matrix *b = &plan->problem.b;
    const size_t whole = (last - j) / plan->rung->columns;
    bool wide = plan->kind == DP_GEMM_F32 && !plan->problem.quant.scale && !b->fill && b->column_stride == 1 &&
                (b->dtype == DP_F32 || b->dtype == DP_F16 || b->dtype == DP_BF16);
    return !wide || whole < 2 ? 1 : least(whole, TOGETHER);
}

/* Some columns and units of B: `panels` panels from column j (more than one: see panels_together), units [u, u + total). */
typedef struct {
    size_t j, panels, u, total;
} piece_of_b;

/* Packs the units [first, first + count) of it. Parts of a panel are packed in order. */
static void pack_part(const dp_gemm_plan *plan, piece_of_b at, size_t first, size_t count, uint32_t *dst) {
    const dp_gemm_matrix *b = &plan->problem.b;
    const size_t width = plan->rung->columns, columns = least(width, plan->problem.n - at.j), end = first + count;
    if (b->fill) {
        b->fill(b->data, at.j, columns, at.u + first, count, (float *)(dst + first * width), width);
        return;
    }
    int32_t *sums = plan->kind == DP_GEMM_U8 ? (int32_t *)(dst + at.total * width) : NULL;
    if (sums && first == 0)
        memset(sums, 0, width * sizeof *sums);
    for (size_t done = first; done < end;) {
        piece p = piece_at(plan, at.u + done, end - done);
        dp_gemm_view v = view_of(plan, b, p);
        v.first = (ptrdiff_t)p.k * b->row_stride + (ptrdiff_t)at.j * b->column_stride;
        v.k_stride = b->row_stride;
        v.other_stride = b->column_stride;
        v.quant = plan->problem.quant.scale ? &plan->problem.quant : NULL;
        v.k_first = p.k;
        v.j_first = at.j;
        if (at.panels > 1)
            plan->rung->pack_wide(&v, at.panels, p.k_count, (float *)dst + done * width, at.total * width);
        else
            plan->rung->pack_panel((dp_gemm_kind)plan->kind, &v, columns, p.k_count, dst + done * width, sums);
        done += p.units;
    }
    if (end == at.total && at.panels == 1)
        memset(dst + end * width, 0, (dp_gemm_kernel_units(plan, end) - end) * width * sizeof *dst);
}

/* A panel of 16-bit elements as they are. */
static void pack_narrow_panel(const dp_gemm_plan *plan, size_t j, size_t u, size_t count, uint16_t *dst) {
    const dp_gemm_matrix *b = &plan->problem.b;
    const size_t width = plan->rung->columns, columns = least(width, plan->problem.n - j);
    memset(dst, 0, count * width * sizeof *dst);
    for (size_t done = 0; done < count; done++) {
        piece p = piece_at(plan, u + done, 1);
        dp_gemm_view v = view_of(plan, b, p);
        const uint16_t *src =
            (const uint16_t *)v.data + (ptrdiff_t)p.k * b->row_stride + (ptrdiff_t)j * b->column_stride;
        for (size_t t = 0; t < columns; t++)
            dst[done * width + t] = src[(ptrdiff_t)t * b->column_stride];
    }
}

void dp_gemm_pack_b_all(const dp_gemm_plan *plan, void *out_packed) {
    for (size_t u = 0, block = 0; u < plan->units; u += plan->unit_block, block++)
        for (size_t j = 0, panel = 0; j < plan->problem.n; j += plan->rung->columns, panel++) {
            char *dst = (char *)out_packed + dp_gemm_packed_b_at(plan, block, panel);
            size_t count = least(plan->unit_block, plan->units - u);
            if (packed_unit_bytes(plan) == 2)
                pack_narrow_panel(plan, j, u, count, (uint16_t *)dst);
            else
                pack_part(plan, (piece_of_b){j, 1, u, count}, 0, count, (uint32_t *)dst);
        }
}

/* Where the columns and units a tile works on now lie, and its scratch. */
typedef struct {
    const dp_gemm_plan *plan;
    size_t m_first, m_last; /* rows of the tile */
    size_t j, columns;      /* of this block */
    size_t u, units, block; /* of this block */
    bool first, last;       /* block along k */
    uint32_t *rows, *panel, *sums;
} place;

typedef struct {
    const uint32_t *data;
    size_t stride;
    const int32_t *init;
} panel_view;

static bool panel_in_place(const dp_gemm_plan *plan) {
    return plan->problem.b.packed && packed_unit_bytes(plan) == 4;
}

static uint32_t *panel_room(const place *p, size_t j) {
    const size_t width = p->plan->rung->columns, sums = p->plan->kind == DP_GEMM_U8 ? width : 0;
    return p->panel + (j - p->j) / width * (dp_gemm_kernel_units(p->plan, p->units) * width + sums);
}

/* The panel of columns from j: packed by the caller, as it lies in B, or in the scratch. */
static panel_view panel_at(const place *p, size_t j) {
    const dp_gemm_plan *plan = p->plan;
    const size_t width = plan->rung->columns;
    panel_view view = {.stride = width};
    if (panel_in_place(plan)) {
        view.data =
            (const uint32_t *)((const char *)plan->problem.b.data + dp_gemm_packed_b_at(plan, p->block, j / width));
    } else if (plan->b_direct && j + width <= plan->problem.n) {
        view.stride = (size_t)plan->problem.b.row_stride;
        view.data = (const uint32_t *)plan->problem.b.data + p->u * view.stride + j;
    } else {
        view.data = panel_room(p, j);
    }
    view.init = plan->a_flip && p->units ? (const int32_t *)(view.data + p->units * width) : NULL;
    return view;
}

static void fill_panels(const place *p) {
    const dp_gemm_plan *plan = p->plan;
    const dp_gemm_matrix *b = &plan->problem.b;
    const size_t width = plan->rung->columns, last = p->j + p->columns;
    if (panel_in_place(plan) || p->units == 0)
        return;
    if (b->packed) {
        for (size_t j = p->j; j < last; j += width)
            plan->rung->widen((float *)panel_room(p, j),
                              (const char *)b->data + dp_gemm_packed_b_at(plan, p->block, j / width), b->dtype,
                              p->units * width);
        return;
    }
    /* rows of B are read some at a time for all panels: one after the other, each panel would visit every row's page again */
    const size_t rows = b->column_stride == 1 && !b->fill ? ROWS_AT_ONCE : p->units;
    for (size_t u = 0; u < p->units; u += rows)
        for (size_t j = p->j, panels; j < last; j += panels * width) {
            panels = 1;
            if (plan->b_direct && j + width <= plan->problem.n)
                continue;
            panels = panels_together(plan, j, last);
            pack_part(plan, (piece_of_b){j, panels, p->u, p->units}, u, least(rows, p->units - u), panel_room(p, j));
        }
}

/* Adds a small block to C or puts it there: for columns that do not fill whole vectors. */
static void put_plain(const place *p, dp_gemm_spot s, const uint32_t *sums, size_t stride, bool add) {
    const dp_gemm_problem *problem = &p->plan->problem;
    for (size_t i = 0; i < s.rows; i++) {
        uint32_t *row = (uint32_t *)(uintptr_t)problem->c.data + (ptrdiff_t)(s.i + i) * problem->c.row_stride + s.j;
        const uint32_t *from = sums + i * stride;
        if (!add)
            memcpy(row, from, s.columns * 4);
        else if (problem->c.dtype == DP_F32)
            for (size_t j = 0; j < s.columns; j++)
                ((float *)row)[j] += ((const float *)from)[j];
        else
            for (size_t j = 0; j < s.columns; j++)
                row[j] += from[j];
    }
}

/* The spot by its address: as a copy its fields, just written, would be read together as vectors, and wait for all
 * stores of C before them. */
static void run_micro(const place *p, const dp_gemm_spot *s, const uint32_t *a, size_t a_stride,
                      const dp_gemm_walk *walk) {
    const dp_gemm_plan *plan = p->plan;
    const dp_gemm_rung *rung = plan->rung;
    const panel_view b = panel_at(p, s->j);
    const size_t width = rung->columns, vectors = s->columns > rung->lanes ? 2 : 1;
    const size_t units = dp_gemm_kernel_units(plan, p->units);
    dp_gemm_kernel_fn kernel = plan->tiled ? rung->kernels[plan->kind][(vectors - 1) * 2 + (s->rows > DP_GEMM_TILE)]
                            : rung->kernels[plan->kind][(vectors - 1) * rung->rows + s->rows - 1];
    const bool whole = s->columns == vectors * rung->lanes && (!plan->tiled || s->rows % DP_GEMM_TILE == 0);
    _Alignas(64) uint32_t small[DP_GEMM_ROWS_MAX * DP_GEMM_COLUMNS_MAX];
    if (plan->plain) {
        bool add = !p->first || plan->problem.beta != 0;
        ptrdiff_t c_stride = plan->problem.c.row_stride;
        if (whole && c_stride >= 0) {
            uint32_t *c = (uint32_t *)(uintptr_t)plan->problem.c.data + (ptrdiff_t)s->i * c_stride + s->j;
            kernel(units, a, a_stride, b.data, b.stride, b.init, c, (size_t)c_stride, add, walk);
        } else {
            kernel(units, a, a_stride, b.data, b.stride, b.init, small, width, false, walk);
            put_plain(p, *s, small, width, add);
        }
    } else if (p->first && p->last) {
        kernel(units, a, a_stride, b.data, b.stride, b.init, small, width, false, walk);
        rung->finish(plan, *s, small, width);
    } else {
        uint32_t *sums = p->sums + (s->i - p->m_first) * plan->column_block + (s->j - p->j);
        kernel(units, a, a_stride, b.data, b.stride, b.init, sums, plan->column_block, !p->first, walk);
        if (p->last)
            rung->finish(plan, *s, sums, plan->column_block);
    }
}

/*
 * What is to be prefetched in a number of walks (see dp_gemm_walk), one per call of the micro-kernel. `at` changes with
 * each and stands apart from what does not: copied together as one vector, it would have to wait for the stores of the
 * micro-kernel before it.
 */
typedef struct {
    const char *at;
    size_t left, period, phase;
    ptrdiff_t next;   /* from one walk to the next ... */
    ptrdiff_t rewind; /* ... and this much more after every `period` */
    ptrdiff_t step, turn;
} walks;

static bool walk_on(walks *w, dp_gemm_walk *out) {
    if (w->left == 0)
        return false;
    *out = (dp_gemm_walk){.at = w->at, .step = w->step, .turn = w->turn};
    w->left--;
    w->at += w->next;
    if (++w->phase == w->period) {
        w->at += w->rewind;
        w->phase = 0;
    }
    return true;
}

/* The row panel of A from row i: eight rows a walk, a line of each, then the next line of each. */
static walks walks_of_a(const place *p, size_t i, size_t rows) {
    const dp_gemm_matrix *a = &p->plan->problem.a;
    ptrdiff_t size = dp_dtype_bits(a->dtype) / 8, stride = a->row_stride * size, group = (ptrdiff_t)p->plan->group;
    if (i >= p->m_last || a->column_stride != 1 || p->plan->problem.n_blocks)
        return (walks){0};
    walks w = {.left = dp_gemm_ceil(least(rows, p->m_last - i), 8), .next = 8 * stride};
    w.at = (const char *)a->data + (ptrdiff_t)i * stride + (ptrdiff_t)p->u * group * size;
    w.step = stride;
    w.turn = 16 * group * size - 8 * stride;
    return w;
}

/* The next block of B along k: panels packed by the caller line by line, else eight lines of one row after the other.
 */
static walks walks_of_b(const place *p) {
    const dp_gemm_plan *plan = p->plan;
    const dp_gemm_matrix *b = &plan->problem.b;
    const size_t first = (p->u + p->units) * plan->group, steps = p->units / 2;
    if (p->last || steps == 0 || plan->problem.n_blocks || b->fill || plan->problem.quant.scale)
        return (walks){0};
    if (b->packed) {
        size_t panel = p->j / plan->rung->columns, after = dp_gemm_ceil(p->j + p->columns, plan->rung->columns);
        size_t at = dp_gemm_packed_b_at(plan, p->block + 1, panel),
               end = dp_gemm_packed_b_at(plan, p->block + 1, after);
        return (walks){.at = (const char *)b->data + at,
                       .step = 64,
                       .next = (ptrdiff_t)(64 * steps),
                       .left = (end - at) / (64 * steps)};
    }
    if (b->column_stride != 1)
        return (walks){0};
    ptrdiff_t size = dp_dtype_bits(b->dtype) / 8, stride = b->row_stride * size;
    const size_t rows = steps / 8, count = least(plan->unit_block * plan->group, plan->problem.k - first);
    if (rows == 0)
        return (walks){0};
    walks w = {.period = dp_gemm_ceil(p->columns * (size_t)size, 512), .next = 512};
    w.at = (const char *)b->data + (ptrdiff_t)first * stride + (ptrdiff_t)p->j * size;
    w.step = 64;
    w.turn = stride - 512;
    w.rewind = (ptrdiff_t)rows * stride - 512 * (ptrdiff_t)w.period;
    w.left = w.period * (count / rows);
    return w;
}

static void run_block(const place *p) {
    const dp_gemm_plan *plan = p->plan;
    const dp_gemm_problem *problem = &plan->problem;
    const size_t width = plan->rung->columns, tall = p->m_last - p->m_first;
    /* panels of nearly the same height: 17 rows as 9 and 8, not 14 and 3, which would wait for its few sums */
    size_t rows = dp_gemm_ceil(tall, dp_gemm_ceil(tall, plan->micro_rows));
    if (plan->tiled)
        rows = dp_gemm_round(rows, DP_GEMM_TILE);
    walks next_b = walks_of_b(p);
    fill_panels(p);
    for (size_t i = p->m_first; i < p->m_last; i += rows) {
        dp_gemm_spot s = {.i = i, .rows = least(rows, p->m_last - i)};
        const uint32_t *a = p->rows;
        size_t a_stride = (dp_gemm_ceil(plan->unit_block, 16) | 1) * 16;
        if (plan->a_direct) {
            /* packed rows and floats count in units, bytes as they lie do not */
            a_stride = (size_t)problem->a.row_stride / (problem->a.packed ? 1 : plan->group);
            a = (const uint32_t *)problem->a.data + i * a_stride + p->u;
        } else {
            dp_gemm_pack_a_units(plan, i, s.rows, p->u, p->units, p->rows, a_stride);
        }
        walks next_a = walks_of_a(p, i + rows, rows);
        for (s.j = p->j; s.j < p->j + p->columns; s.j += width) {
            dp_gemm_walk walk = {.at = (const char *)a};
            if (!walk_on(&next_a, &walk))
                walk_on(&next_b, &walk);
            s.columns = least(width, p->j + p->columns - s.j);
            run_micro(p, &s, a, a_stride, &walk);
        }
    }
}

static void run_decode(const dp_gemm_plan *plan, size_t n_first, size_t n_last, char *scratch) {
    float *rows = (float *)(scratch + plan->rows_at), *sums = (float *)(scratch + plan->sums_at);
    plan->rung->decode_rows(plan, rows);
    for (size_t j = n_first; j < n_last; j += DP_GEMM_DECODE_COLUMNS) {
        size_t columns = least(DP_GEMM_DECODE_COLUMNS, n_last - j);
        plan->rung->decode(plan, j, columns, rows, sums);
        dp_gemm_spot s = {.i = 0, .j = j, .rows = plan->problem.m, .columns = columns};
        plan->rung->finish(plan, s, (const uint32_t *)sums, DP_GEMM_DECODE_COLUMNS);
    }
}

static void run_tail(const dp_gemm_plan *plan, void *scratch) {
    dp_gemm_plan last;
    dp_gemm_tail_plan(plan, &last);
    for (size_t i = 0; i < last.tiles_m; i++)
        for (size_t j = 0; j < last.tiles_n; j++)
            dp_gemm_tile(&last, i, j, scratch);
}

void dp_gemm_tile(const dp_gemm_plan *plan, size_t i, size_t j, void *scratch) {
    const dp_gemm_problem *problem = &plan->problem;
    const size_t tail = dp_gemm_tail(plan);
    const size_t n_first = j * plan->tile_n, n_last = least(problem->n - tail, n_first + plan->tile_n);
    if (tail && j + 1 == plan->tiles_n) {
        if (i == 0)
            run_tail(plan, scratch);
        return;
    }
    if (plan->decode) {
        run_decode(plan, n_first, n_last, scratch);
        return;
    }
    if (plan->tiled)
        plan->rung->tiles_begin();
    place p = {.plan = plan,
               .m_first = i * plan->tile_m,
               .m_last = least(problem->m, (i + 1) * plan->tile_m),
               .rows = (uint32_t *)((char *)scratch + plan->rows_at),
               .panel = (uint32_t *)((char *)scratch + plan->panel_at),
               .sums = (uint32_t *)((char *)scratch + plan->sums_at)};
    for (p.j = n_first; p.j < n_last; p.j += plan->column_block) {
        p.columns = least(plan->column_block, n_last - p.j);
        p.u = p.block = 0;
        do { /* once even without units: C still gets its epilogue */
            p.units = least(plan->unit_block, plan->units - p.u);
            p.first = p.u == 0;
            p.last = p.u + p.units >= plan->units;
            run_block(&p);
            p.u += plan->unit_block;
            p.block++;
        } while (p.u < plan->units);
    }
    if (plan->tiled)
        plan->rung->tiles_end();
}
