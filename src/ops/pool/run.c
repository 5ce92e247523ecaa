/*
 * run.c - executes pooling. Sums and maxima are taken down the rows of the image first, then along the row that comes
 * out; maxima with an index go element by element.
 */
#include "ops/pool/pool.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/pool/kernels.h"

static dp_pool_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_pool_fill_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_pool_fill_avx2(&table);
        return;
    }
#endif
    dp_pool_fill_generic(&table);
}

typedef struct job {
    dp_plan *plan;
    const dp_pool *pool;
    int64_t rows_per_tile, tiles_per_plane;
} job;

typedef struct spot {
    int64_t n, c, z, y; /* row (z, y) of the output */
} spot;

static const dp_pool_reach *reach_of(const dp_pool *p, int axis, int64_t position) {
    return p->reaches + p->reach_at[axis] + position;
}

/* One row of windows into `out`. */
static void combine_along(const dp_pool *p, dp_pool_fn fn, const float *row, float *out) {
    const dp_pool_reach *reach = reach_of(p, 2, 0);
    const int64_t dilation = p->dilation[2], first = p->inner_first, last = p->inner_last;
    for (int64_t o = 0; o < p->y.size[2]; o++) {
        if (o == first)
            o = last;
        if (o == p->y.size[2])
            break;
        for (int64_t k = 0; k < reach[o].count; k++)
            fn(out + o, row + reach[o].first + k * dilation, 1, 1);
    }
    if (first < last)
        for (int64_t k = 0; k < reach[first].count; k++)
            fn(out + first, row + reach[first].first + k * dilation, (size_t)(last - first), (size_t)p->inner_step);
}

static void pool_row(const job *j, spot s, float *scratch) {
    const dp_pool *p = j->pool;
    const int64_t width = p->x.size[2], windows = p->y.size[2];
    const bool average = p->kind == DP_POOL_AVERAGE;
    const dp_pool_fn fn = average ? table.add : table.max;
    const float start = average ? 0 : -INFINITY;
    float *row = scratch, *loaded = row + width, *out = loaded + width;
    const dp_pool_reach *rz = reach_of(p, 0, s.z), *ry = reach_of(p, 1, s.y), *rx = reach_of(p, 2, 0);
    for (int64_t i = 0; i < width; i++)
        row[i] = start;
    for (int64_t kz = 0; kz < rz->count; kz++)
        for (int64_t ky = 0; ky < ry->count; ky++) {
            const char *data =
                dp_image_at(j->plan, &p->x, s.n, s.c, rz->first + kz * p->dilation[0], ry->first + ky * p->dilation[1]);
            fn(row, dp_image_load(p->x.element, data, p->x.stride[2], width, loaded), (size_t)width, 1);
        }
    for (int64_t o = 0; o < windows; o++)
        out[o] = start;
    combine_along(p, fn, row, out);
    for (int64_t o = 0; o < windows && average; o++)
        out[o] /= (float)(p->divisor != 0 ? p->divisor : (double)rz->size * (double)ry->size * (double)rx[o].size);
    dp_image_store(p->y.element, dp_image_at(j->plan, &p->y, s.n, s.c, s.z, s.y), p->y.stride[2], windows, out);
}

static void store_indices(dp_plan *plan, const dp_image *indices, spot s, const int64_t *from) {
    const int64_t count = indices->size[2];
    dp_loop loop;
    dp_loop_begin(&loop, &count, 1);
    dp_loop_add_strides(&loop, &indices->stride[2]);
    dp_convert_fn store = dp_elementwise_current()->store[indices->element][DP_COMPUTE_I64];
    int64_t raw[DP_TILE];
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < DP_TILE ? count - at : DP_TILE;
        store(raw, from + at, (size_t)n);
        dp_loop_scatter(&loop, 0, dp_image_at(plan, indices, s.n, s.c, s.z, s.y), dp_element_bytes(indices->element),
                        at, (size_t)n, raw);
    }
}

static void index_row(const job *j, spot s, float *scratch) {
    const dp_pool *p = j->pool;
    const int64_t width = p->x.size[2], windows = p->y.size[2];
    int64_t *best_at = (int64_t *)scratch; /* first: scratch is aligned */
    float *best = (float *)(best_at + windows), *loaded = best + windows;
    const dp_pool_reach *rz = reach_of(p, 0, s.z), *ry = reach_of(p, 1, s.y), *rx = reach_of(p, 2, 0);
    for (int64_t o = 0; o < windows; o++) {
        best[o] = -INFINITY;
        best_at[o] =
            rz->count && ry->count && rx[o].count ? (rz->first * p->x.size[1] + ry->first) * width + rx[o].first : 0;
    }
    for (int64_t kz = 0; kz < rz->count; kz++)
        for (int64_t ky = 0; ky < ry->count; ky++) {
            int64_t z = rz->first + kz * p->dilation[0], y = ry->first + ky * p->dilation[1];
            const float *row =
                dp_image_load(p->x.element, dp_image_at(j->plan, &p->x, s.n, s.c, z, y), p->x.stride[2], width, loaded);
            for (int64_t o = 0; o < windows; o++)
                for (int64_t k = 0; k < rx[o].count; k++) {
                    int64_t x = rx[o].first + k * p->dilation[2];
                    if (row[x] > best[o] || (row[x] != row[x] && best[o] == best[o])) {
                        best[o] = row[x];
                        best_at[o] = (z * p->x.size[1] + y) * width + x;
                    }
                }
        }
    dp_image_store(p->y.element, dp_image_at(j->plan, &p->y, s.n, s.c, s.z, s.y), p->y.stride[2], windows, best);
    store_indices(j->plan, &p->indices, s, best_at);
}

static void run_tile(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const dp_image *y = &j->pool->y;
    int64_t plane = (int64_t)tile / j->tiles_per_plane, first = (int64_t)tile % j->tiles_per_plane * j->rows_per_tile;
    for (int64_t r = first; r < y->size[0] * y->size[1] && r < first + j->rows_per_tile; r++) {
        spot s = {plane / y->channels, plane % y->channels, r / y->size[1], r % y->size[1]};
        if (j->pool->kind == DP_POOL_MAX_INDEX)
            index_row(j, s, scratch);
        else
            pool_row(j, s, scratch);
    }
}

dp_status dp_pool_run(dp_plan *plan) {
    enum { OUTPUTS = 2048 };
    job j = {.plan = plan, .pool = dp_plan_state(plan)};
    const dp_image *y = &j.pool->y;
    if (!y->batch || !y->channels || !y->size[0] || !y->size[1] || !y->size[2])
        return DP_OK;
    pthread_once(&once, fill_table);
    int64_t rows = y->size[0] * y->size[1];
    j.rows_per_tile = OUTPUTS / y->size[2] + 1;
    j.tiles_per_plane = (rows + j.rows_per_tile - 1) / j.rows_per_tile;
    return dp_tiles_run((size_t)(y->batch * y->channels * j.tiles_per_plane), j.pool->scratch_bytes, run_tile, &j);
}
