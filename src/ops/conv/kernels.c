/* kernels.c - the loops of kernels.h. Compiled once per rung. */
#include "ops/conv/kernels.h"

#include <string.h>

#include "math/vec.h"

/* Columns of a panel that lie in one row of positions. */
typedef struct segment {
    int64_t z, y, x; /* image coordinates of the window at its first column, x in steps */
    size_t first, count;
} segment;

static size_t cut_into_rows(const dp_conv_windows *w, size_t column, size_t columns, segment *out) {
    size_t width = (size_t)w->axis[2].windows, height = (size_t)w->axis[1].windows, n = 0;
    size_t x = column % width, row = column / width;
    for (size_t done = 0; done < columns; row++, x = 0) {
        size_t count = width - x < columns - done ? width - x : columns - done;
        out[n++] = (segment){.z = (int64_t)(row / height) * w->axis[0].stride - w->axis[0].pad,
                             .y = (int64_t)(row % height) * w->axis[1].stride - w->axis[1].pad,
                             .x = (int64_t)x,
                             .first = done,
                             .count = count};
        done += count;
    }
    return n;
}

/* Lanes of a vector that come from one run of the input; `offset` is that of lane 0, whether it is read or not. */
typedef struct run {
    int64_t offset;
    size_t first, last;
} run;

enum { VECTOR = DP_LANES > 1 ? DP_LANES : DP_GEMM_FILL_COLUMNS, VECTORS = DP_GEMM_FILL_COLUMNS / VECTOR };

#if DP_MATH_RUNG == DP_RUNG_AVX512
typedef __mmask16 lane_mask;
static lane_mask mask_of(size_t first, size_t last) {
    return (__mmask16)((1u << last) - (1u << first));
}
/* v with the mask's lanes from p; no other lane is read */
DP_INLINE vf load_run(vf v, const float *p, lane_mask mask) {
    return _mm512_mask_loadu_ps(v, mask, p);
}
#elif DP_MATH_RUNG == DP_RUNG_AVX2
typedef __m256i lane_mask;
static lane_mask mask_of(size_t first, size_t last) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_and_si256(_mm256_cmpgt_epi32(lane, _mm256_set1_epi32((int)first - 1)),
                            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)last), lane));
}
/* the lanes of v outside its own runs are 0 */
DP_INLINE vf load_run(vf v, const float *p, lane_mask mask) {
    return _mm256_or_ps(v, _mm256_maskload_ps(p, mask));
}
#else
typedef bool lane_mask;
static lane_mask mask_of(size_t first, size_t last) {
    return first < last;
}
#endif

/* The first two entries are there (with an empty mask) whatever count says. */
typedef struct runs {
    size_t count;
    run run[VECTOR];
    lane_mask mask[VECTOR];
} runs;

static void add_run(runs *to, run r) {
    to->mask[to->count] = mask_of(r.first, r.last);
    to->run[to->count++] = r;
}

/* One vector of the row of a tap, from its channel. */
DP_INLINE void put(float *to, const float *from, const runs *r, size_t width) {
#if DP_LANES > 1
    vf v = vf_set(0);
    for (size_t i = 0; i < r->count; i++)
        v = load_run(v, from + r->run[i].offset, r->mask[i]);
    vf_store_f32(to, 0, v);
    (void)width;
#else
    memset(to, 0, width * sizeof *to);
    for (size_t i = 0; i < r->count; i++)
        for (size_t l = r->run[i].first; l < r->run[i].last; l++)
            to[l] = from[r->run[i].offset + (int64_t)l];
#endif
}

/* The rows of a tap: `n` channels, from_step and to_step apart. */
static void put_rows(float *to, size_t to_step, const float *from, int64_t from_step, const runs *r, size_t n,
                     size_t stride) {
    const size_t vectors = (stride + VECTOR - 1) / VECTOR, width = stride < VECTOR ? stride : VECTOR;
#if DP_LANES > 1
    if (vectors == 2 && r[0].count <= 2 && r[1].count <= 2) { /* the common case, with everything in registers */
        const lane_mask a = r[0].mask[0], b = r[0].mask[1], c = r[1].mask[0], d = r[1].mask[1];
        const float *at_a = from + r[0].run[0].offset, *at_b = from + r[0].run[1].offset,
                    *at_c = from + r[1].run[0].offset, *at_d = from + r[1].run[1].offset;
        for (size_t i = 0; i < n; i++, to += to_step) {
            const int64_t step = (int64_t)i * from_step;
            vf_store_f32(to, 0, load_run(load_run(vf_set(0), at_a + step, a), at_b + step, b));
            vf_store_f32(to, VECTOR, load_run(load_run(vf_set(0), at_c + step, c), at_d + step, d));
        }
        return;
    }
#endif
    for (size_t i = 0; i < n; i++, to += to_step, from += from_step)
        for (size_t v = 0; v < vectors; v++)
            put(to + v * VECTOR, from, &r[v], width);
}

/* Where the tap's columns come from: nothing in the padding, else runs that stay within a vector. */
static void find_runs(const dp_conv_windows *w, const segment *segments, size_t n, const int64_t tap[DP_SPACE],
                      runs *out) {
    const dp_axis *x_axis = &w->axis[2];
    int64_t t = tap[2] * x_axis->dilation - x_axis->pad, step = x_axis->stride;
    int64_t shift = t >= 0 ? t / step : -((-t + step - 1) / step), phase = t - shift * step;
    int64_t places = x_axis->size > phase ? (x_axis->size - phase + step - 1) / step : 0;
    for (size_t v = 0; v < VECTORS; v++) {
        out[v].count = 0;
        out[v].run[0] = out[v].run[1] = (run){0, 0, 0};
        out[v].mask[0] = out[v].mask[1] = mask_of(0, 0);
    }
    for (size_t i = 0; i < n; i++) {
        const segment *s = &segments[i];
        int64_t z = s->z + tap[0] * w->axis[0].dilation, y = s->y + tap[1] * w->axis[1].dilation, x = s->x + shift;
        if (z < 0 || z >= w->axis[0].size || y < 0 || y >= w->axis[1].size)
            continue;
        int64_t low = x < 0 ? -x : 0, high = places - x < (int64_t)s->count ? places - x : (int64_t)s->count;
        int64_t at = z * w->z_stride + y * w->y_stride + phase * w->phase_stride + x - (int64_t)s->first;
        for (int64_t l = low; l < high;) {
            size_t column = s->first + (size_t)l, v = column / VECTOR, first = column - v * VECTOR;
            size_t count = (size_t)(high - l) < VECTOR - first ? (size_t)(high - l) : VECTOR - first;
            add_run(&out[v], (run){at + (int64_t)(v * VECTOR), first, first + count});
            l += (int64_t)count;
        }
    }
}

static void fill(const void *context, size_t column, size_t columns, size_t k_first, size_t k_count, float *out,
                 size_t stride) {
    const dp_conv_windows *w = context;
    segment segments[DP_GEMM_FILL_COLUMNS];
    const size_t n = cut_into_rows(w, column, columns, segments);
    const int64_t *end = (const int64_t[]){w->axis[0].kernel, w->axis[1].kernel, w->axis[2].kernel};
    const size_t taps = (size_t)(end[0] * end[1] * end[2]);
    int64_t tap[DP_SPACE] = {0, 0, 0};
    for (size_t t = 0; t < taps; t++) {
        size_t channel = k_first > t ? (k_first - t + taps - 1) / taps : 0;
        if (channel * taps + t < k_first + k_count) {
            runs r[VECTORS];
            find_runs(w, segments, n, tap, r);
            size_t count = (k_first + k_count - channel * taps - t + taps - 1) / taps;
            put_rows(out + (channel * taps + t - k_first) * stride, taps * stride,
                     w->data + (int64_t)channel * w->channel_stride, w->channel_stride, r, count, stride);
        }
        for (int d = DP_SPACE - 1; d >= 0 && ++tap[d] == end[d]; d--)
            tap[d] = 0;
    }
}

/* One row of up to BLOCK vectors, the last of `rest` lanes. */
enum { BLOCK = 4 };
DP_INLINE void tap_block(float *y, const float *x, const int64_t *offsets, const float *weights, size_t n_taps,
                         size_t vectors, size_t rest, const float *start) {
    const size_t whole = rest == DP_LANES ? vectors : vectors - 1;
    vf sum[BLOCK];
    for (size_t b = 0; b < vectors; b++)
        sum[b] = start       ? vf_set(*start)
                 : b < whole ? vf_load_f32(y, b * DP_LANES)
                             : vf_load_f32_n(y, b * DP_LANES, rest);
    for (size_t t = 0; t < n_taps; t++) {
        const vf weight = vf_set(weights[t]);
        const float *from = x + offsets[t];
        for (size_t b = 0; b < vectors; b++)
            sum[b] = vf_fma(
                weight, b < whole ? vf_load_f32(from, b * DP_LANES) : vf_load_f32_n(from, b * DP_LANES, rest), sum[b]);
    }
    for (size_t b = 0; b < vectors; b++)
        if (b < whole)
            vf_store_f32(y, b * DP_LANES, sum[b]);
        else
            vf_store_f32_n(y, b * DP_LANES, rest, sum[b]);
}

static void taps(float *y, int64_t y_step, const float *x, int64_t x_step, const int64_t *offsets, const float *weights,
                 size_t n_taps, size_t rows, size_t n, const float *start) {
    for (size_t r = 0; r < rows; r++, y += y_step, x += x_step)
        for (size_t i = 0; i < n; i += BLOCK * DP_LANES) {
            const size_t left = n - i < BLOCK * DP_LANES ? n - i : BLOCK * DP_LANES;
            const size_t vectors = (left + DP_LANES - 1) / DP_LANES, rest = left - (vectors - 1) * DP_LANES;
            if (rest == DP_LANES && vectors == BLOCK)
                tap_block(y + i, x + i, offsets, weights, n_taps, BLOCK, DP_LANES, start);
            else if (vectors == 1)
                tap_block(y + i, x + i, offsets, weights, n_taps, 1, rest, start);
            else if (vectors == 2)
                tap_block(y + i, x + i, offsets, weights, n_taps, 2, rest, start);
            else if (vectors == 3)
                tap_block(y + i, x + i, offsets, weights, n_taps, 3, rest, start);
            else
                tap_block(y + i, x + i, offsets, weights, n_taps, BLOCK, rest, start);
        }
}

static void add(float *y, const float *x, size_t n, size_t step) {
    if (step == 1) {
        DP_IVDEP for (size_t i = 0; i < n; i++) y[i] += x[i];
        return;
    }
    for (size_t i = 0; i < n; i++)
        y[i * step] += x[i];
}

void DP_RUNG(dp_conv_fill_table)(dp_conv_table *table) {
    *table = (dp_conv_table){fill, taps, add};
}
