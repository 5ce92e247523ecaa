/*
 * The kernels of rows against plain loops in double, on every rung the processor has, and in the wide form (16 lanes,
 * tiles of 8 rows) compiled for a narrow processor. Rooms are exactly as long as needed: a sanitizer sees reads past
 * the end.
 */
#include "base/half.h"
#include "math/rows/low_rung.h"
#include "math/rows/rung.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#ifndef DP_TEST_COUNT
#define DP_TEST_COUNT 400
#endif
#define UNTOUCHED 12345.0f

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) { /* xorshift64, Marsaglia 2003 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}
static size_t between(size_t low, size_t high) {
    return low + draw() % (high - low + 1);
}
static bool chance(unsigned percent) {
    return draw() % 100 < percent;
}

static float *room(size_t count, bool is_random) {
    float *p = malloc((count ? count : 1) * sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < count; i++)
        p[i] = is_random ? (float)(draw() % 4001) / 2000 - 1 : UNTOUCHED;
    return p;
}

static const dp_rows_table *tables[4];
static const char *names[4];
static int n_tables;
static void add(const dp_rows_table *table, const char *name) {
    tables[n_tables] = table;
    names[n_tables++] = name;
}

static double activated(const dp_rows_finish *f, double x) {
    switch (f->activation) {
    case DP_ROWS_RELU:
        return x > 0 ? x : 0;
    case DP_ROWS_CLIP:
        return fmin(fmax(x, f->alpha), f->beta);
    case DP_ROWS_LEAKY_RELU:
        return x < 0 ? f->alpha * x : x;
    case DP_ROWS_HARD_SIGMOID:
        return fmin(fmax(f->alpha * x + f->beta, 0), 1);
    case DP_ROWS_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case DP_ROWS_LEAKY_RELU_FLOOR:
        return fmax(x < 0 ? f->alpha * x : x, f->beta);
    case DP_ROWS_HARD_SWISH_AFFINE:
        return f->alpha * (x * fmin(fmax(x / 6 + 0.5, 0), 1)) + f->beta;
    case DP_ROWS_SIGMOID:
        return 1 / (1 + exp(-x));
    case DP_ROWS_SILU:
        return x / (1 + exp(-x));
    case DP_ROWS_TANH:
        return tanh(x);
    case DP_ROWS_GELU_ERF:
        return x / 2 * (1 + erf(x * sqrt(0.5)));
    case DP_ROWS_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

static int last_activation;
static dp_rows_finish any_finish(void) {
    dp_rows_finish f = {.residual_last = chance(50), .alpha = 0.25f, .beta = 0.5f};
    f.activation = (dp_rows_activation)(chance(50) ? between(0, 2) : between(0, DP_ROWS_ACTIVATION_COUNT - 1));
    if (f.activation == DP_ROWS_CLIP)
        f.alpha = -0.75f;
    last_activation = (int)f.activation;
    return f;
}

static double finished(const dp_rows_finish *f, double sum, const float *residual) {
    return f->residual_last ? activated(f, sum) + (residual ? *residual : 0)
                            : activated(f, sum + (residual ? *residual : 0));
}

static void near(const char *what, const char *rung, double got, double want, double scale) {
    if (!(fabs(got - want) <= 0x1p-21 * (scale + 2) + 4e-7 * (fabs(want) + 1)))
        fail_msg("%s, %s: %.9g, but must be %.9g (activation %d)", what, rung, got, want, last_activation);
}

/* Evenly spaced rows, some floats further apart than they are long: the bits of `run`, in y. */
static void same_evenly_spaced(const dp_rows_table *table, const dp_rows_weights *w, const dp_rows_block *b,
                               const dp_rows_finish *f, const float *a, const float *before, const float *y) {
    const size_t gap = between(0, 3), taps = w->taps, n = w->channels, pitch = (size_t)b->y_stride;
    const size_t length = b->count * pitch, tap = b->count * (n + gap);
    float *x = room(taps * tap, false), *mine = room(length, false);
    float *sums = room(dp_rows_room(b->count, b->columns < 256 ? b->columns : 256), false);
    for (size_t r = 0; r < b->count; r++)
        for (size_t t = 0; t < taps; t++)
            memcpy(x + t * tap + r * (n + gap), a + (r * taps + t) * n, n * sizeof *x);
    memcpy(mine, before, length * sizeof *mine);
    const dp_rows_product p = {.x = x,
                               .x_stride = (ptrdiff_t)(n + gap),
                               .tap_stride = (ptrdiff_t)tap,
                               .rows = b->count,
                               .k = taps * n,
                               .taps = taps,
                               .next = w->next,
                               .panels = w->panels,
                               .bias = w->bias,
                               .first = b->first,
                               .columns = b->columns,
                               .y = mine,
                               .y_stride = b->y_stride,
                               .residual = b->residual == b->y ? mine : b->residual,
                               .residual_stride = b->residual_stride};
    table->product(&p, f, sums);
    assert_memory_equal(mine, y, length * sizeof *mine);
    free(x);
    free(mine);
    free(sums);
}

static void one_product(const dp_rows_table *table, const char *name) {
    const size_t taps = chance(90) ? between(1, 5) : chance(50) ? 0 : 25, count = between(1, 30);
    const size_t channels = chance(60) ? between(1, 40) : between(40, 800), k = taps * channels;
    const size_t all = between(1, k < 50 && chance(10) ? 600 : 90);
    const size_t first = all > 16 && chance(30) ? 16 : 0, columns = between(1, all - first),
                 pitch = all + between(0, 3);
    const dp_rows_finish f = any_finish();
    float *a = room(count * taps * channels, true), *w = room(k * all, true),
          *panels = room(dp_rows_panel_floats(k, all), false);
    float *bias = room(all, true), *y = room(count * pitch, false), *residual = room(count * pitch, true);
    float *sums = room(dp_rows_room(count, columns), false);
    const float **rows = malloc(dp_rows_pointers(count, taps ? taps : 1) * sizeof *rows), *kept = NULL;
    const bool has_bias = chance(70), has_residual = chance(40), in_place = has_residual && chance(40);
    const size_t tile = dp_rows_height(table->tile, count);
    dp_rows_pack(w, k, all, (ptrdiff_t)all, 1, panels);
    for (size_t r = 0; r < count; r++)
        for (size_t t = 0; t < taps; t++)
            rows[(r / tile * taps + t) * tile + r % tile] = a + (r * taps + t) * channels;
    if (in_place)
        memcpy(y, residual, count * pitch * sizeof *y);
    kept = residual;
    dp_rows_weights weights = {taps, channels, panels, k * DP_ROWS_PANEL, has_bias ? bias : NULL, chance(50) ? panels : NULL};
    dp_rows_block block = {rows, count, first, columns, y, (ptrdiff_t)pitch, NULL, (ptrdiff_t)pitch};
    block.residual = in_place ? y : has_residual ? residual : NULL;
    float *before = room(count * pitch, false);
    memcpy(before, y, count * pitch * sizeof *y);
    table->run(&weights, &block, &f, sums);
    if (k)
        same_evenly_spaced(table, &weights, &block, &f, a, before, y);
    free(before);
    for (size_t r = 0; r < count; r++)
        for (size_t c = 0; c < pitch; c++) {
            const float got = y[r * pitch + c];
            if (c < first || c >= first + columns) {
                assert_true(got == (in_place ? kept[r * pitch + c] : UNTOUCHED));
                continue;
            }
            double sum = has_bias ? bias[c] : 0, scale = 0;
            for (size_t p = 0; p < k; p++) {
                sum += (double)a[r * k + p] * w[p * all + c];
                scale += fabs((double)a[r * k + p] * w[p * all + c]);
            }
            near("product", name, got, finished(&f, sum, has_residual ? &kept[r * pitch + c] : NULL), scale);
        }
    float *freed[] = {a, w, panels, bias, y, residual, sums};
    for (size_t i = 0; i < sizeof freed / sizeof freed[0]; i++)
        free(freed[i]);
    free(rows);
}

static void one_depthwise(const dp_rows_table *table, const char *name) {
    const size_t channels = between(1, 70), pitch = channels + between(0, 3);
    const ptrdiff_t kernel = (ptrdiff_t)(chance(70) ? between(1, 2) * 2 + 1 : between(1, 9)),
                    pad = (ptrdiff_t)between(0, 3);
    const ptrdiff_t stride = (ptrdiff_t)between(1, 3), dilation = (ptrdiff_t)(chance(80) ? 1 : 2);
    const ptrdiff_t reach = (kernel - 1) * dilation + 1, height = (ptrdiff_t)between(1, 6) + reach,
                    width = (ptrdiff_t)between(1, 40) + reach;
    const ptrdiff_t out[2] = {(height + 2 * pad - reach) / stride + 1, (width + 2 * pad - reach) / stride + 1};
    const dp_rows_finish f = any_finish();
    const size_t pixels = (size_t)(out[0] * out[1]), taps = (size_t)(kernel * kernel);
    float *x = room((size_t)(height * width) * pitch - (pitch - channels), true), *w = room(taps * channels, true);
    float *panels = room(dp_rows_panel_floats(taps, channels), false), *bias = room(channels, true);
    float *y = room(pixels * pitch, false), *residual = room(pixels * pitch, true);
    const bool has_bias = chance(70), has_residual = chance(30);
    dp_rows_pack(w, taps, channels, (ptrdiff_t)channels, 1, panels);
    dp_rows_depthwise d = {.x = x,
                           .x_line = width * (ptrdiff_t)pitch,
                           .x_pixel = (ptrdiff_t)pitch,
                           .in = {height, width},
                           .out_width = out[1],
                           .kernel = {kernel, kernel},
                           .stride = {stride, stride},
                           .pad = {pad, pad},
                           .dilation = {dilation, dilation},
                           .panels = panels,
                           .bias = has_bias ? bias : NULL,
                           .line = 0,
                           .lines = out[0],
                           .first = 0,
                           .columns = channels,
                           .y = y,
                           .y_pixel = (ptrdiff_t)pitch,
                           .residual = has_residual ? residual : NULL,
                           .residual_pixel = (ptrdiff_t)pitch};
    table->depthwise(&d, &f);
    for (size_t i = 0; i < pixels * pitch; i++) {
        const size_t c = i % pitch;
        const ptrdiff_t oy = (ptrdiff_t)(i / pitch) / out[1], ox = (ptrdiff_t)(i / pitch) % out[1];
        if (c >= channels) {
            assert_true(y[i] == UNTOUCHED);
            continue;
        }
        double sum = has_bias ? bias[c] : 0, scale = 0;
        for (ptrdiff_t t = 0; t < kernel * kernel; t++) {
            const ptrdiff_t iy = oy * stride - pad + t / kernel * dilation,
                            ix = ox * stride - pad + t % kernel * dilation;
            if (iy < 0 || iy >= height || ix < 0 || ix >= width)
                continue;
            const double term = (double)x[(size_t)(iy * width + ix) * pitch + c] * w[(size_t)t * channels + c];
            sum += term;
            scale += fabs(term);
        }
        near("depthwise", name, y[i], finished(&f, sum, has_residual ? &residual[i] : NULL), scale);
    }
    float *freed[] = {x, w, panels, bias, y, residual};
    for (size_t i = 0; i < sizeof freed / sizeof freed[0]; i++)
        free(freed[i]);
}

/* One channel in, through the transformations and one product each: the convolution of one tile. */
static void one_winograd(const dp_rows_table *table, const char *name) {
    const int m = chance(50) ? 2 : 4, side = m + 2;
    const size_t channels = between(1, 40), step = (channels + 15) / 16 * 16, lines = between(1, (size_t)m),
                 across = between(1, (size_t)m);
    const dp_rows_finish f = any_finish();
    float *x = room((size_t)(side * side) * channels, true), *bias = room(channels, true), w[9];
    float *left = room((size_t)(side * side) * step, false), *y = room((size_t)(m * m) * channels, false);
    float *residual = room((size_t)(m * m) * channels, true);
    const float *pixels[36];
    const bool has_bias = chance(70), has_residual = chance(30);
    for (int i = 0; i < side * side; i++)
        pixels[i] = x + (size_t)i * channels;
    for (int i = 0; i < 9; i++)
        w[i] = (float)(draw() % 4001) / 2000 - 1;
    table->winograd_in(m, pixels, channels, left, step);
    const double *g = dp_rows_winograd_weights(m);
    for (int k = 0; k < side * side; k++) {
        double u = 0;
        for (int i = 0; i < 9; i++)
            u += g[k / side * 3 + i / 3] * g[k % side * 3 + i % 3] * w[i];
        for (size_t c = 0; c < channels; c++)
            left[(size_t)k * step + c] *= (float)u;
    }
    dp_rows_tile t = {.sums = left,
                      .step = step,
                      .columns = channels,
                      .bias = has_bias ? bias : NULL,
                      .y = y,
                      .y_line = m * (ptrdiff_t)channels,
                      .y_pixel = (ptrdiff_t)channels,
                      .lines = lines,
                      .pixels = across,
                      .residual = has_residual ? residual : NULL,
                      .residual_line = m * (ptrdiff_t)channels,
                      .residual_pixel = (ptrdiff_t)channels};
    table->winograd_out(m, &t, &f);
    for (size_t i = 0; i < (size_t)(m * m) * channels; i++) {
        const size_t oy = i / channels / (size_t)m, ox = i / channels % (size_t)m, c = i % channels;
        if (oy >= lines || ox >= across) {
            assert_true(y[i] == UNTOUCHED);
            continue;
        }
        double sum = has_bias ? bias[c] : 0;
        for (size_t k = 0; k < 9; k++)
            sum += (double)x[((oy + k / 3) * (size_t)side + ox + k % 3) * channels + c] * w[k];
        near("winograd", name, y[i], finished(&f, sum, has_residual ? &residual[i] : NULL), 60);
    }
    float *freed[] = {x, bias, left, y, residual};
    for (size_t i = 0; i < sizeof freed / sizeof freed[0]; i++)
        free(freed[i]);
}

/* Half and bfloat16 (low.h). */

typedef struct low_rung {
    const dp_low_table *table;
    dp_low_type type;
    const char *name;
} low_rung;
static low_rung lows[10];
static int n_lows;
static void add_low(dp_isa isa, unsigned features, const char *name) {
    for (int type = 0; type < DP_LOW_TYPE_COUNT; type++)
        lows[n_lows++] = (low_rung){dp_low_for(isa, features, (dp_low_type)type), (dp_low_type)type, name};
}

enum { UNTOUCHED_BITS = 0x1234 };
static uint16_t *low_room(size_t count, dp_low_type type, bool is_random) {
    uint16_t *p = malloc((count ? count : 1) * sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < count; i++) {
        const float x = (float)(draw() % 4001) / 2000 - 1;
        p[i] = !is_random ? UNTOUCHED_BITS : type == DP_LOW_HALF ? dp_f16_from_f32(x) : dp_bf16_from_f32(x);
    }
    return p;
}
static float low_at(const uint16_t *p, size_t i, dp_low_type type) {
    return type == DP_LOW_HALF ? dp_f32_from_f16(p[i]) : dp_f32_from_bf16(p[i]);
}
/* Rounded once: half a unit in the last place, and the sum's own error. */
static void low_near(const char *what, const low_rung *rung, double got, double want, double scale) {
    const double unit = rung->type == DP_LOW_HALF ? 0x1.01p-10 : 0x1.01p-7;
    if (!(fabs(got - want) <= unit / 2 * fabs(want) + 0x1p-20 * (scale + 2)))
        fail_msg("%s, %s, type %d: %.9g, but must be %.9g (activation %d)", what, rung->name, (int)rung->type, got, want,
                 last_activation);
}

static void one_low_product(const low_rung *rung) {
    const dp_low_type type = rung->type;
    size_t taps, count, channels, all;
    do {
        taps = chance(90) ? between(1, 5) : chance(50) ? 0 : 25;
        count = between(1, 80);
        channels = chance(50) ? between(1, 40) : chance(50) ? 32 * between(1, 30) : between(40, 800);
        all = between(1, 90);
    } while (taps * count * channels * all > 300000);
    const size_t pitch_k = channels + (chance(30) ? channels % 2 : 0), k = taps * pitch_k;
    const size_t first = all > 16 && chance(30) ? 16 : 0, columns = between(1, all - first);
    const size_t pitch = all + between(0, 3), step = chance(50) ? 1 : 7;
    const dp_rows_finish f = any_finish();
    uint16_t *a = low_room(count * taps * channels, type, true), *w = low_room(k * all, type, true);
    uint16_t *panels = low_room(dp_low_panel_elements(k, all), type, false), *y = low_room(count * pitch, type, false);
    uint16_t *residual = low_room(count * pitch, type, true);
    float *bias = room(all, true);
    void *work = aligned_alloc(64, (dp_low_room(count, columns) + 63) / 64 * 64);
    const size_t n_runs = (count + DP_LOW_TILE - 1) / DP_LOW_TILE * taps;
    dp_low_run *runs = malloc((n_runs + 1) * sizeof *runs);
    const uint16_t **rows = malloc((n_runs + 1) * DP_LOW_TILE * sizeof *rows);
    const bool has_bias = chance(70), has_residual = chance(40), in_place = has_residual && chance(40);
    for (size_t p = 0; p < k; p++) /* what fills up a tap is 0 */
        if (p % pitch_k >= channels)
            memset(w + p * all, 0, all * sizeof *w);
    dp_low_pack(w, k, all, (ptrdiff_t)all, 1, panels);
    for (size_t r = 0; r < count; r++)
        for (size_t t = 0; t < taps; t++)
            rows[(r / DP_LOW_TILE * taps + t) * DP_LOW_TILE + r % DP_LOW_TILE] =
                a + (r * step % count * taps + t) * channels;
    for (size_t i = 0; i < n_runs; i++)
        runs[i] = step == 1 ? (dp_low_run){rows[i * DP_LOW_TILE], (ptrdiff_t)(taps * channels), NULL}
                            : (dp_low_run){NULL, 0, rows + i * DP_LOW_TILE};
    if (in_place)
        memcpy(y, residual, count * pitch * sizeof *y);
    dp_low_weights weights = {
        taps, channels, pitch_k, panels, (k + 1) / 2 * 2 * DP_ROWS_PANEL, has_bias ? bias : NULL};
    dp_low_block block = {runs, count, first, columns, y, (ptrdiff_t)pitch, NULL, (ptrdiff_t)pitch};
    block.residual = in_place ? y : has_residual ? residual : NULL;
    rung->table->run(&weights, &block, &f, work);
    for (size_t r = 0; r < count; r++)
        for (size_t c = 0; c < pitch; c++) {
            if (c < first || c >= first + columns) {
                assert_true(y[r * pitch + c] == (in_place ? residual[r * pitch + c] : UNTOUCHED_BITS));
                continue;
            }
            double sum = has_bias ? bias[c] : 0, scale = 0;
            for (size_t t = 0; t < taps; t++)
                for (size_t i = 0; i < channels; i++) {
                    const double term = (double)low_at(a, (r * step % count * taps + t) * channels + i, type) *
                                        (double)low_at(w, (t * pitch_k + i) * all + c, type);
                    sum += term;
                    scale += fabs(term);
                }
            const float added = has_residual ? low_at(residual, r * pitch + c, type) : 0;
            low_near("product", rung, low_at(y, r * pitch + c, type), finished(&f, sum, has_residual ? &added : NULL),
                     scale);
        }
    void *freed[] = {a, w, panels, y, residual, bias, work, rows, runs};
    for (size_t i = 0; i < sizeof freed / sizeof freed[0]; i++)
        free(freed[i]);
}

/* Against the float kernel: what goes in is the same, what comes out is rounded. */
static void one_low_depthwise(const low_rung *rung) {
    const dp_low_type type = rung->type;
    const size_t channels = between(1, 70), pitch = channels + between(0, 3);
    const ptrdiff_t kernel = (ptrdiff_t)between(1, 5), stride = (ptrdiff_t)between(1, 3), pad = (ptrdiff_t)between(0, 3);
    const ptrdiff_t reach = kernel, height = (ptrdiff_t)between(1, 12) + reach, width = (ptrdiff_t)between(1, 40) + reach;
    const ptrdiff_t out[2] = {(height + 2 * pad - reach) / stride + 1, (width + 2 * pad - reach) / stride + 1};
    const dp_rows_finish f = any_finish();
    const size_t pixels = (size_t)(out[0] * out[1]), in = (size_t)(height * width), taps = (size_t)(kernel * kernel);
    uint16_t *x = low_room(in * pitch - (pitch - channels), type, true), *y = low_room(pixels * pitch, type, false);
    uint16_t *residual = low_room(pixels * pitch, type, true);
    float *panels = room(dp_rows_panel_floats(taps, channels), true), *bias = room(channels, true);
    float *wide = room(in * pitch, false), *added = room(pixels * pitch, false), *want = room(pixels * pitch, false);
    const bool has_bias = chance(70), has_residual = chance(30);
    for (size_t i = 0; i < in * pitch - (pitch - channels); i++)
        wide[i] = low_at(x, i, type);
    for (size_t i = 0; i < pixels * pitch; i++)
        added[i] = low_at(residual, i, type);
    dp_rows_depthwise r = {wide, width * (ptrdiff_t)pitch, (ptrdiff_t)pitch, {height, width}, out[1], {kernel, kernel},
                           {stride, stride}, {pad, pad}, {1, 1}, panels, has_bias ? bias : NULL, 0, out[0], 0,
                           channels, want, (ptrdiff_t)pitch, has_residual ? added : NULL, (ptrdiff_t)pitch};
    dp_rows_for(DP_ISA_GENERIC)->depthwise(&r, &f);
    dp_low_depthwise d = {x, r.x_line, r.x_pixel, {height, width}, out[1], {kernel, kernel}, {stride, stride},
                          {pad, pad}, {1, 1}, panels, r.bias, 0, out[0], 0, channels, y, (ptrdiff_t)pitch,
                          has_residual ? residual : NULL, (ptrdiff_t)pitch};
    void *work = aligned_alloc(64, (dp_low_depthwise_room(&d) + 63) / 64 * 64);
    const ptrdiff_t cut = (ptrdiff_t)between(0, (size_t)out[0]);
    d.lines = cut; /* in two parts, of lines and of channels */
    rung->table->depthwise(&d, &f, work);
    d.line = cut;
    d.lines = out[0] - cut;
    d.columns = channels > 16 ? 16 : channels;
    rung->table->depthwise(&d, &f, work);
    d.first = 16;
    d.columns = channels > 16 ? channels - 16 : 0;
    if (d.columns)
        rung->table->depthwise(&d, &f, work);
    for (size_t i = 0; i < pixels * pitch; i++)
        if (i % pitch < channels)
            low_near("depthwise", rung, low_at(y, i, type), want[i], (double)taps);
        else
            assert_true(y[i] == UNTOUCHED_BITS);
    void *freed[] = {x, y, residual, panels, bias, wide, added, want, work};
    for (size_t i = 0; i < sizeof freed / sizeof freed[0]; i++)
        free(freed[i]);
}

static void low_products(void **unused) {
    (void)unused;
    for (int t = 0; t < n_lows; t++)
        for (int i = 0; i < DP_TEST_COUNT / 2; i++)
            one_low_product(&lows[t]);
}
static void low_depthwise(void **unused) {
    (void)unused;
    for (int t = 0; t < n_lows; t++)
        for (int i = 0; i < DP_TEST_COUNT / 4; i++)
            one_low_depthwise(&lows[t]);
}

static void each(void (*test)(const dp_rows_table *table, const char *name), int count) {
    for (int t = 0; t < n_tables; t++)
        for (int i = 0; i < count; i++)
            test(tables[t], names[t]);
}
static void products(void **unused) {
    (void)unused;
    each(one_product, DP_TEST_COUNT);
}
static void depthwise(void **unused) {
    (void)unused;
    each(one_depthwise, DP_TEST_COUNT / 2);
}
static void winograd(void **unused) {
    (void)unused;
    each(one_winograd, DP_TEST_COUNT);
}

/* Activations alone: large numbers, infinities and NaN. */
static void activations(void **unused) {
    (void)unused;
    static const float values[] = {0, -0.0f, 1e-30f, 88, -88, 1e4f, -1e4f, 3e38f, -3e38f, INFINITY, -INFINITY};
    enum { N = sizeof values / sizeof values[0] };
    for (int t = 0; t < n_tables; t++)
        for (int a = 0; a < DP_ROWS_ACTIVATION_COUNT; a++) {
            const dp_rows_finish f = {.activation = (dp_rows_activation)a, .alpha = 0.25f, .beta = 0.5f};
            float y[N], nan = NAN;
            tables[t]->activate(&f, values, y, N);
            for (int i = 0; i < N; i++) {
                double want = activated(&f, values[i]);
                if (!isnan(want) && isfinite(values[i])) /* -inf * 0 is what the formula says it is */
                    near("activation", names[t], y[i] == want ? 0 : y[i], y[i] == want ? 0 : want, 0);
            }
            tables[t]->activate(&f, &nan, y, 1);
            if (!isnan(y[0]))
                fail_msg("activation %d of NaN, %s: %g", a, names[t], (double)y[0]);
        }
}

int main(void) {
    add(dp_rows_for(DP_ISA_GENERIC), "generic");
#if defined(HAVE_WIDE)
    if (dp_cpu_best_isa() >= DP_ISA_AVX2) {
        add(dp_rows_for(DP_ISA_AVX2), "avx2");
        add(&dp_rows_table_wide, "wide");
    }
    if (dp_cpu_best_isa() >= DP_ISA_AVX512)
        add(dp_rows_for(DP_ISA_AVX512), "avx512");
#endif
    add_low(DP_ISA_GENERIC, 0, "generic");
    if (dp_cpu_best_isa() >= DP_ISA_AVX2)
        add_low(DP_ISA_AVX2, 0, "avx2");
    if (dp_cpu_best_isa() >= DP_ISA_AVX512)
        add_low(DP_ISA_AVX512, 0, "avx512");
    if (dp_cpu_features() & DP_CPU_AMX)
        add_low(DP_ISA_AVX512, dp_cpu_features(), "avx512 amx");
    const struct CMUnitTest tests[] = {cmocka_unit_test(products),     cmocka_unit_test(depthwise),
                                       cmocka_unit_test(winograd),     cmocka_unit_test(activations),
                                       cmocka_unit_test(low_products), cmocka_unit_test(low_depthwise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
