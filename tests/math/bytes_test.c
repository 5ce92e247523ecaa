/*
 * Products and depthwise convolutions of bytes: the generic rung against plain loops in double, and all other rungs
 * against the generic one, bit by bit. Rooms are as long as needed: a sanitizer sees reads past the end.
 */
#include "math/bytes/bytes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#ifndef DP_TEST_COUNT
#define DP_TEST_COUNT 300
#endif

static unsigned state = 4711;
static size_t between(size_t low, size_t high) {
    state = state * 1664525u + 1013904223u;
    return low + (state >> 8) % (high - low + 1);
}

static const dp_bytes_table *tables[5];
static int n_tables;

static int begin(void **unused) {
    (void)unused;
    static const unsigned features[] = {0, 0, 0, DP_CPU_AVX512_VNNI, DP_CPU_AVX512_VNNI | DP_CPU_AMX};
    static const dp_isa rungs[] = {DP_ISA_GENERIC, DP_ISA_AVX2, DP_ISA_AVX512, DP_ISA_AVX512, DP_ISA_AVX512};
    for (int i = 0; i < 5; i++) {
        const dp_bytes_table *t = dp_bytes_for(rungs[i], features[i] & dp_cpu_features());
        bool known = false;
        for (int k = 0; k < n_tables; k++)
            known |= tables[k] == t;
        if (!known)
            tables[n_tables++] = t;
    }
    return 0;
}

static void *room(size_t bytes) {
    uint8_t *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(p);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)between(0, 255);
    return p;
}
static float *numbers(size_t n, float most) {
    float *p = malloc((n + 1) * sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = ((float)between(0, 2000) / 1000 - 1) * most;
    return p;
}
static int8_t *weights_of(size_t n) {
    int8_t *w = malloc(n + 1);
    assert_non_null(w);
    for (size_t i = 0; i < n; i++)
        w[i] = (int8_t)((int)between(0, 254) - 127);
    return w;
}

typedef struct numbers_of {
    float *scale, *bias, *residual, *after, *shift;
    dp_bytes_finish finish;
} numbers_of;

static numbers_of draw_finish(size_t columns, size_t k) {
    numbers_of n = {numbers(columns, 2.0f / (float)(k + 8)),
                    numbers(columns, 100),
                    numbers(columns, 1),
                    numbers(columns, 20),
                    numbers(columns, 100),
                    {0}};
    n.finish = (dp_bytes_finish){
        between(0, 1) ? DP_BYTES_HARD_SWISH : DP_BYTES_NONE, n.scale, n.bias, n.residual, n.after, n.shift};
    return n;
}
static void free_finish(numbers_of *n) {
    free(n->scale);
    free(n->bias);
    free(n->residual);
    free(n->after);
    free(n->shift);
}

static double finished(const dp_bytes_finish *f, int64_t sum, const uint8_t *residual, size_t c) {
    double v = (double)sum * (double)f->scale[c] + (double)f->bias[c];
    if (residual)
        v += *residual * (double)f->residual_scale[c];
    if (f->activation == DP_BYTES_HARD_SWISH)
        v = v * fmin(fmax(v / 6 + .5, 0), 1) * (double)f->after[c] + (double)f->shift[c];
    return v;
}

static void expect(const void *y, size_t at, bool as_float, double v, const char *what) {
    if (as_float) {
        const double got = (double)((const float *)y)[at];
        if (!(fabs(got - v) <= 1e-3 * (1 + fabs(v))))
            fail_msg("%s: element %zu is %g, expected %g", what, at, got, v);
        return;
    }
    v = fmin(fmax(v, 0), 255);
    if (fabs(((const uint8_t *)y)[at] - v) > .503)
        fail_msg("%s: element %zu is %d, expected %g", what, at, ((const uint8_t *)y)[at], v);
}

static void one_product(void) {
    const bool exact = between(0, 1);
    const size_t drawn = between(1, between(0, 1) ? 40 : 300), k = exact ? (drawn + 3) / 4 * 4 : drawn,
                 rows = between(1, 70), all = between(1, 150);
    const size_t first = all > 16 ? between(0, (all - 1) / 16) * 16 : 0, columns = between(1, all - first);
    const size_t depth = exact ? k : dp_bytes_depth(k), stride = depth + between(0, 2) * 64,
                 width = all + between(0, 5);
    const bool as_float = between(0, 4) == 0, adds = between(0, 2) == 0;
    uint8_t *a = room(rows * stride), *residual = room(rows * width);
    int8_t *w = weights_of(k * all), *panels = malloc(dp_bytes_panel_bytes(k, all));
    dp_bytes_pack(w, k, all, (ptrdiff_t)all, 1, panels);
    numbers_of n = draw_finish(all, k);
    const size_t bytes = rows * width * (as_float ? 4 : 1);
    uint8_t *y[5], *work = room(DP_BYTES_ROOM);
    for (int t = 0; t < n_tables; t++) {
        y[t] = malloc(bytes);
        memset(y[t], 0xab, bytes);
        const dp_bytes_block b = {a,
                                  stride,
                                  rows,
                                  k,
                                  exact,
                                  panels,
                                  first,
                                  columns,
                                  y[t],
                                  (ptrdiff_t)width,
                                  as_float,
                                  adds ? residual : NULL,
                                  (ptrdiff_t)width};
        tables[t]->product(&b, &n.finish, work);
        if (memcmp(y[t], y[0], bytes) != 0)
            fail_msg("%s: %zu x %zu x %zu of %zu, float %d, residual %d, activation %d differs from the generic rung",
                     tables[t]->name, rows, columns, k, all, as_float, adds, (int)n.finish.activation);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < width; c++) {
            int64_t sum = 0;
            if (c < first || c >= first + columns) {
                assert_int_equal(y[0][(r * width + c) * (as_float ? 4 : 1)], 0xab);
                continue;
            }
            for (size_t i = 0; i < k; i++)
                sum += a[r * stride + i] * w[i * all + c];
            expect(y[0], r * width + c, as_float, finished(&n.finish, sum, adds ? residual + r * width + c : NULL, c),
                   "product");
        }
    for (int t = 0; t < n_tables; t++)
        free(y[t]);
    free(work);
    free(a);
    free(residual);
    free(w);
    free(panels);
    free_finish(&n);
}

static void products(void **unused) {
    (void)unused;
    for (int i = 0; i < DP_TEST_COUNT; i++)
        one_product();
}

static int at_image(const dp_bytes_depthwise *p, ptrdiff_t y, ptrdiff_t x, size_t c) {
    return y < 0 || x < 0 || y >= p->in[0] || x >= p->in[1] ? p->outside[c]
                                                            : p->x[y * p->x_line + x * p->x_pixel + (ptrdiff_t)c];
}

static void check_depthwise(const dp_bytes_depthwise *p, const dp_bytes_finish *f, const uint8_t *y, ptrdiff_t height) {
    for (ptrdiff_t oy = 0; oy < height; oy++)
        for (ptrdiff_t ox = 0; ox < p->out_width; ox++)
            for (size_t c = 0; c < (size_t)p->y_pixel; c++) {
                const size_t at = (size_t)((oy * p->out_width + ox) * p->y_pixel) + c;
                if (c < p->first || c >= p->first + p->columns || oy < p->line || oy >= p->line + p->lines) {
                    assert_int_equal(y[at], 0xab);
                    continue;
                }
                int64_t sum = 0;
                for (ptrdiff_t ky = 0; ky < p->kernel[0]; ky++)
                    for (ptrdiff_t kx = 0; kx < p->kernel[1]; kx++)
                        sum += at_image(p, oy * p->stride[0] - p->pad[0] + ky * p->dilation[0],
                                        ox * p->stride[1] - p->pad[1] + kx * p->dilation[1], c) *
                               p->weights[(size_t)(ky * p->kernel[1] + kx) * p->weight_step + c];
                expect(y, at, false, finished(f, sum, NULL, c), "depthwise");
            }
}

static void one_depthwise(void) {
    const size_t channels = between(1, 70), pixel = channels + between(0, 3);
    dp_bytes_depthwise p = {.x_pixel = (ptrdiff_t)pixel, .weight_step = channels};
    ptrdiff_t out[2];
    for (int d = 0; d < 2; d++) {
        p.kernel[d] = (ptrdiff_t)between(1, 5);
        p.stride[d] = (ptrdiff_t)between(1, 2);
        p.dilation[d] = between(0, 3) ? 1 : 2;
        p.in[d] = (ptrdiff_t)between(1, 14);
        p.pad[d] = (ptrdiff_t)between(0, 3);
        const ptrdiff_t reach = (p.kernel[d] - 1) * p.dilation[d] + 1;
        out[d] = (p.in[d] + 2 * p.pad[d] - reach) / p.stride[d] + 1;
        if (p.in[d] + 2 * p.pad[d] < reach)
            return;
    }
    p.x_line = p.in[1] * p.x_pixel;
    p.out_width = out[1];
    p.line = (ptrdiff_t)between(0, (size_t)out[0] - 1);
    p.lines = (ptrdiff_t)between(1, (size_t)(out[0] - p.line));
    p.first = channels > 16 ? between(0, (channels - 1) / 16) * 16 : 0;
    p.columns = between(1, channels - p.first);
    p.y_pixel = (ptrdiff_t)(channels + between(0, 3));
    uint8_t *x = room((size_t)(p.in[0] * p.x_line)), *outside = room(channels);
    int8_t *w = weights_of((size_t)(p.kernel[0] * p.kernel[1]) * channels);
    p.x = x;
    p.outside = outside;
    p.weights = w;
    numbers_of n = draw_finish(channels, (size_t)(p.kernel[0] * p.kernel[1]));
    const size_t bytes = (size_t)(out[0] * out[1] * p.y_pixel);
    uint8_t *y[5], *work = room(dp_bytes_depthwise_room(&p));
    for (int t = 0; t < n_tables; t++) {
        p.y = y[t] = malloc(bytes);
        memset(y[t], 0xab, bytes);
        tables[t]->depthwise(&p, &n.finish, work);
        if (t == 0)
            check_depthwise(&p, &n.finish, y[0], out[0]);
        if (memcmp(y[t], y[0], bytes) != 0)
            fail_msg("%s: depthwise differs from the generic rung: %td x %td, window %td x %td, steps %td, %td, spread "
                     "%td, %td, "
                     "pads %td, %td, channels %zu to %zu",
                     tables[t]->name, p.in[0], p.in[1], p.kernel[0], p.kernel[1], p.stride[0], p.stride[1],
                     p.dilation[0], p.dilation[1], p.pad[0], p.pad[1], p.first, p.first + p.columns);
    }
    for (int t = 0; t < n_tables; t++)
        free(y[t]);
    free(work);
    free(x);
    free(outside);
    free(w);
    free_finish(&n);
}

static void depthwise(void **unused) {
    (void)unused;
    for (int i = 0; i < DP_TEST_COUNT; i++)
        one_depthwise();
}

static void conversions(void **unused) {
    (void)unused;
    enum { N = 203 };
    float *x = numbers(N, 4), *f = numbers(N, 60), *g = numbers(N, 2), *zero = numbers(N, 200);
    uint8_t *a = room(N), *b = room(N);
    x[7] = NAN;
    for (int t = 0; t < n_tables; t++) {
        uint8_t to[N], pixels[4 * N];
        float back[N];
        uint32_t sums[N] = {0};
        const float *planes[] = {x, f, g};
        tables[t]->quantise(to, x, f, zero, N);
        for (size_t i = 0; i < N; i++)
            expect(to, i, false, i == 7 ? 0 : (double)x[i] * (double)f[i] + (double)zero[i], "quantise");
        tables[t]->dequantise(back, a, f, zero, N);
        for (size_t i = 0; i < N; i++)
            expect(back, i, true, (a[i] - (double)zero[i]) * (double)f[i], "dequantise");
        tables[t]->combine(to, a, g, NULL, NULL, zero, N);
        for (size_t i = 0; i < N; i++)
            expect(to, i, false, a[i] * (double)g[i] + (double)zero[i], "combine");
        tables[t]->combine(to, a, g, b, f, zero, N);
        for (size_t i = 0; i < N; i++)
            expect(to, i, false, a[i] * (double)g[i] + b[i] * (double)f[i] + (double)zero[i], "combine two");
        tables[t]->add(sums, a, N);
        tables[t]->add(sums, b, N);
        tables[t]->quantise_planes(pixels, planes, 3, g, zero, N);
        for (size_t i = 0; i < N; i++) {
            assert_int_equal(sums[i], a[i] + b[i]);
            assert_int_equal(pixels[4 * i + 3], 0);
            for (size_t c = 0; c < 3; c++)
                expect(pixels, 4 * i + c, false,
                       c == 0 && i == 7 ? 0 : (double)planes[c][i] * (double)g[c] + (double)zero[c], "planes");
        }
    }
    free(x);
    free(f);
    free(g);
    free(zero);
    free(a);
    free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(depthwise),
        cmocka_unit_test(conversions),
    };
    return cmocka_run_group_tests_name("bytes", tests, begin, NULL);
}
