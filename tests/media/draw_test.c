/* Resizing, colours, cutting, pasting, borders against plain double arithmetic, on every rung. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "make.h"
#include "media/draw.h"

static dp_picture noisy(int format, uint32_t width, uint32_t height, uint32_t seed) {
    dp_picture p;
    assert_int_equal(dp_picture_new(format, width, height, &p), DP_OK);
    for (size_t i = 0; i < p.size_bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        p.data[i] = (uint8_t)(seed >> 24);
    }
    return p;
}

/* Resizing. */

static double weight_of(double distance, double scale, int interpolation) {
    double d = fabs(distance);
    if (interpolation == DP_INTERPOLATION_BICUBIC) {
        const double a = -0.75;
        return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1 : d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
    }
    (void)scale;
    return d < 1 ? 1 - d : 0;
}

/* Value i of n that come from m: a sum over all places, those outside being the edge's. */
static void weights(uint32_t m, uint32_t n, uint32_t i, int interpolation, double *w) {
    double scale = (double)m / n, at = (i + 0.5) * scale - 0.5;
    memset(w, 0, m * sizeof *w);
    if (interpolation == DP_INTERPOLATION_NEAREST) {
        w[(uint32_t)fmin(floor(i * scale), m - 1)] = 1;
    } else if (interpolation == DP_INTERPOLATION_AREA && m > n) {
        for (uint32_t p = 0; p < m; p++) {
            double covered = fmin(p + 1.0, (i + 1) * scale) - fmax(p, i * scale);
            w[p] = covered > 0 ? covered / scale : 0;
        }
    } else if (m == n) {
        w[i] = 1;
    } else {
        for (int64_t p = (int64_t)floor(at) - 2; p <= (int64_t)floor(at) + 3; p++)
            w[p < 0 ? 0 : p >= m ? m - 1 : p] += weight_of((double)p - at, scale, interpolation);
    }
}

static double resampled(const dp_plane *src, const double *down, const double *across, unsigned byte) {
    double sum = 0;
    for (uint32_t y = 0; y < src->rows; y++)
        for (uint32_t x = 0; down[y] != 0 && x < src->columns; x++)
            sum += down[y] * across[x] * src->data[y * src->pitch + x * src->bytes + byte];
    return sum;
}

static void compare_plane(const dp_plane *src, const dp_plane *dst, int interpolation) {
    double *down = malloc(src->rows * sizeof *down), *across = malloc(src->columns * sizeof *across);
    for (uint32_t y = 0; y < dst->rows; y++) {
        weights(src->rows, dst->rows, y, interpolation, down);
        for (uint32_t x = 0; x < dst->columns; x++) {
            weights(src->columns, dst->columns, x, interpolation, across);
            for (unsigned b = 0; b < dst->bytes; b++) {
                double should = fmin(fmax(resampled(src, down, across, b), 0), 255);
                int is = dst->data[y * dst->pitch + x * dst->bytes + b];
                if (fabs(is - should) > 0.5 + 2e-3)
                    fail_msg("%u x %u to %u x %u, %d: byte %u at %u, %u: %d, not %g", src->columns, src->rows,
                             dst->columns, dst->rows, interpolation, b, x, y, is, should);
            }
        }
    }
    free(down);
    free(across);
}

static const uint32_t sizes[][4] = {{64, 48, 32, 24}, {33, 47, 40, 30},  {100, 20, 13, 61}, {17, 19, 17, 38},
                                    {5, 4, 80, 64},   {1, 1, 9, 9},      {90, 70, 3, 2},    {2, 3, 3, 2},
                                    {64, 64, 64, 64}, {300, 10, 299, 10}};

static void resizing_is_the_sum_it_should_be(void **state) {
    (void)state;
    static const int formats[] = {DP_PIXEL_GRAY, DP_PIXEL_NV12, DP_PIXEL_RGB, DP_PIXEL_BGRA, DP_PIXEL_YUV422SP};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
            for (int i = DP_INTERPOLATION_BILINEAR; i < DP_INTERPOLATION_COUNT; i++) {
                dp_picture src = noisy(formats[f], sizes[s][0], sizes[s][1], 1);
                dp_picture dst = noisy(formats[f], sizes[s][2], sizes[s][3], 2);
                const dp_area from = dp_picture_area(&src), to = dp_picture_area(&dst);
                assert_int_equal(dp_picture_draw(&src, &from, &dst, &to, &(dp_draw_options){.interpolation = i}),
                                 DP_OK);
                for (int p = 0; p < dp_format_planes(dp_format_of(formats[f])); p++) {
                    const dp_plane a = dp_picture_plane(&src, p, &from), b = dp_picture_plane(&dst, p, &to);
                    compare_plane(&a, &b, i);
                }
                dp_picture_free(&src);
                dp_picture_free(&dst);
            }
}

/* Colours. */

static const double luma[][2] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};

static void to_rgb(const double yuv[3], int space, double rgb[3]) {
    double kr = luma[space / 2][0], kb = luma[space / 2][1], kg = 1 - kr - kb, y = yuv[0], u = yuv[1] - 128,
           v = yuv[2] - 128;
    if (space & 1) {
        y = (y - 16) * 255 / 219;
        u *= 255.0 / 224;
        v *= 255.0 / 224;
    }
    rgb[0] = y + 2 * (1 - kr) * v;
    rgb[2] = y + 2 * (1 - kb) * u;
    rgb[1] = (y - kr * rgb[0] - kb * rgb[2]) / kg;
}

static void to_yuv(const double rgb[3], int space, double yuv[3]) {
    double kr = luma[space / 2][0], kb = luma[space / 2][1], y = kr * rgb[0] + (1 - kr - kb) * rgb[1] + kb * rgb[2];
    double u = (rgb[2] - y) / (1 - kb) / 2, v = (rgb[0] - y) / (1 - kr) / 2;
    yuv[0] = space & 1 ? 16 + y * 219 / 255 : y;
    yuv[1] = 128 + (space & 1 ? u * 224 / 255 : u);
    yuv[2] = 128 + (space & 1 ? v * 224 / 255 : v);
}

/* Channel c (Y U V or R G B, 3: alpha) of the pixel, the chroma of the pair that it belongs to. */
static double pixel(const dp_picture *p, uint32_t x, uint32_t y, int c) {
    const dp_format *f = dp_format_of(p->format);
    const dp_area all = dp_picture_area(p);
    const dp_plane first = dp_picture_plane(p, 0, &all);
    const uint8_t *row = first.data + y * first.pitch;
    if (c == 3)
        return f->bytes == 4 && f->is_rgb ? row[4 * x + f->place[3]] : 255;
    switch (f->layout) {
    case DP_LAYOUT_GRAY:
        return c ? 128 : row[x];
    case DP_LAYOUT_PACKED:
        return row[x * f->bytes + f->place[c]];
    case DP_LAYOUT_PAIRS:
        return row[x / 2 * 4 + f->place[c] + (c == 0 ? 2 * (x & 1) : 0)];
    default:
        break;
    }
    const dp_plane second = dp_picture_plane(p, 1, &all);
    return c ? second.data[(y >> f->y_shift) * second.pitch + 2 * (x >> f->x_shift) + f->place[c]] : row[x];
}

/* What channel c at a place should be: the mean over the pixels that share it. */
static double expected(const dp_picture *src, const dp_area *from, const dp_format *out, uint32_t x, uint32_t y, int c,
                       int space) {
    bool in_rgb = dp_format_of(src->format)->is_rgb, shared = c == 1 || c == 2;
    uint32_t w = shared && out->layout != DP_LAYOUT_GRAY ? 1u << out->x_shift : 1, h = shared ? 1u << out->y_shift : 1;
    double sum = 0;
    x &= ~(w - 1);
    y &= ~(h - 1);
    for (uint32_t j = 0; j < h; j++)
        for (uint32_t i = 0; i < w; i++) {
            uint32_t px = x + i < from->width ? x + i : from->width - 1,
                     py = y + j < from->height ? y + j : from->height - 1;
            double v[4], converted[3];
            for (int k = 0; k < 4; k++)
                v[k] = pixel(src, from->left + px, from->top + py, k);
            memcpy(converted, v, sizeof converted);
            if (in_rgb && !out->is_rgb)
                to_yuv(v, space, converted);
            if (!in_rgb && out->is_rgb)
                to_rgb(v, space, converted);
            sum += c == 3 ? v[3] : fmin(fmax(converted[c], 0), 255);
        }
    return sum / (w * h);
}

static const int all_formats[] = {DP_PIXEL_GRAY,     DP_PIXEL_NV12,     DP_PIXEL_NV21,     DP_PIXEL_YUV422SP,
                                  DP_PIXEL_YVU422SP, DP_PIXEL_YUV444SP, DP_PIXEL_YVU444SP, DP_PIXEL_YUYV,
                                  DP_PIXEL_UYVY,     DP_PIXEL_YVYU,     DP_PIXEL_VYUY,     DP_PIXEL_YUV444,
                                  DP_PIXEL_RGB,      DP_PIXEL_BGR,      DP_PIXEL_ARGB,     DP_PIXEL_ABGR,
                                  DP_PIXEL_RGBA,     DP_PIXEL_BGRA,     DP_PIXEL_YUV440SP, DP_PIXEL_YVU440SP};
enum { FORMATS = sizeof all_formats / sizeof all_formats[0] };

static void check_colours(int in, int out, uint32_t width, uint32_t height, const dp_area *from, int space) {
    dp_picture src = noisy(in, width, height, 5), dst = noisy(out, from->width, from->height, 6);
    const dp_area to = dp_picture_area(&dst);
    const dp_format *format = dp_format_of(out);
    assert_int_equal(dp_picture_convert(&src, from, &dst, &to, space), DP_OK);
    for (uint32_t y = 0; y < to.height; y++)
        for (uint32_t x = 0; x < to.width; x++)
            for (int c = 0; c < (format->layout == DP_LAYOUT_GRAY       ? 1
                                 : format->is_rgb && format->bytes == 4 ? 4
                                                                        : 3);
                 c++) {
                double should = expected(&src, from, format, x, y, c, space), is = pixel(&dst, x, y, c);
                /* one rounding of the matrix, one of the mean, a trace of the 14 bits of the factors */
                if (fabs(is - should) > 1.02)
                    fail_msg("%s to %s, %u x %u at %u, %u, space %d: channel %d at %u, %u: %g, not %g",
                             dp_format_of(in)->name, format->name, from->width, from->height, from->left, from->top,
                             space, c, x, y, is, should);
            }
    dp_picture_free(&src);
    dp_picture_free(&dst);
}

static void every_format_becomes_every_other(void **state) {
    (void)state;
    static const dp_area areas[] = {{0, 0, 70, 10}, {2, 4, 35, 7}, {3, 1, 34, 5}, {0, 0, 1, 1}};
    for (int i = 0; i < FORMATS; i++)
        for (int o = 0; o < FORMATS; o++)
            for (size_t a = 0; a < sizeof areas / sizeof areas[0]; a++)
                check_colours(all_formats[i], all_formats[o], 70, 12, &areas[a], (i + o) % DP_COLOUR_SPACE_COUNT);
}

/* Greys stay grey and white stays white in both directions. */
static void greys_are_exact(void **state) {
    (void)state;
    for (int space = 0; space < DP_COLOUR_SPACE_COUNT; space++) {
        dp_picture rgb = noisy(DP_PIXEL_RGB, 256, 2, 1), yuv = noisy(DP_PIXEL_NV12, 256, 2, 1),
                   back = noisy(DP_PIXEL_RGB, 256, 2, 1);
        for (uint32_t y = 0; y < 2; y++)
            for (uint32_t x = 0; x < 256; x++)
                memset(rgb.data + y * rgb.width_stride + 3 * x, (int)x, 3);
        const dp_area all = dp_picture_area(&rgb);
        assert_int_equal(dp_picture_convert(&rgb, &all, &yuv, &all, space), DP_OK);
        for (uint32_t x = 0; x < 256; x++)
            assert_int_equal(yuv.data[yuv.width_stride * 2 + x], 128);
        assert_int_equal(dp_picture_convert(&yuv, &all, &back, &all, space), DP_OK);
        for (uint32_t x = 0; x < 256; x++) {
            const uint8_t *p = back.data + 3 * x;
            assert_true(p[0] == p[1] && p[1] == p[2] && abs(p[0] - (int)x) <= (space & 1));
        }
        dp_picture_free(&rgb);
        dp_picture_free(&yuv);
        dp_picture_free(&back);
    }
}

/* Cutting and pasting. */

static void outside_of_the_paste_nothing_changes(void **state) {
    (void)state;
    for (int f = 0; f < FORMATS; f++)
        for (int o = 0; o < 3; o++) {
            int in = all_formats[f], out = o == 0 ? in : o == 1 ? DP_PIXEL_NV12 : DP_PIXEL_BGR;
            dp_picture src = noisy(in, 60, 40, 1), dst = noisy(out, 48, 48, 2), was = noisy(out, 48, 48, 2);
            const dp_area from = {10, 6, 32, 20}, to = {8, 12, 16, 30};
            assert_int_equal(dp_picture_draw(&src, &from, &dst, &to, &(dp_draw_options){0}), DP_OK);
            bool changed = false;
            for (uint32_t y = 0; y < 48; y++)
                for (uint32_t x = 0; x < 48; x++) {
                    bool inside = x >= to.left && x < to.left + to.width && y >= to.top && y < to.top + to.height;
                    for (int c = 0; c < 3; c++) {
                        bool same = pixel(&dst, x, y, c) == pixel(&was, x, y, c);
                        changed |= inside && !same;
                        assert_true(inside || same);
                    }
                }
            assert_true(changed);
            dp_picture_free(&src);
            dp_picture_free(&dst);
            dp_picture_free(&was);
        }
}

/* The same through another format: resized first, converted after. */
static void resizing_into_another_format(void **state) {
    (void)state;
    dp_picture src = noisy(DP_PIXEL_NV12, 64, 48, 1), small = noisy(DP_PIXEL_NV12, 40, 22, 2);
    dp_picture rgb = noisy(DP_PIXEL_RGB, 40, 22, 3), direct = noisy(DP_PIXEL_RGB, 40, 22, 4);
    const dp_area from = dp_picture_area(&src), to = dp_picture_area(&small);
    const dp_draw_options options = {.interpolation = DP_INTERPOLATION_BILINEAR};
    assert_int_equal(dp_picture_draw(&src, &from, &small, &to, &options), DP_OK);
    assert_int_equal(dp_picture_convert(&small, &to, &rgb, &to, 0), DP_OK);
    assert_int_equal(dp_picture_draw(&src, &from, &direct, &to, &options), DP_OK);
    for (uint32_t y = 0; y < 22; y++)
        assert_memory_equal(rgb.data + y * rgb.width_stride, direct.data + y * direct.width_stride, 120);
    dp_picture_free(&src);
    dp_picture_free(&small);
    dp_picture_free(&rgb);
    dp_picture_free(&direct);
}

static int64_t mirrored(int64_t p, int64_t n, int kind) {
    while (n > 1 && kind != DP_BORDER_REPLICATE && (p < 0 || p >= n)) {
        if (kind == DP_BORDER_REFLECT)
            p = p < 0 ? -p - 1 : 2 * n - 1 - p;
        else
            p = p < 0 ? -p : 2 * n - 2 - p;
    }
    return p < 0 ? 0 : p >= n ? n - 1 : p;
}

static void borders(void **state) {
    (void)state;
    static const dp_area areas[] = {{4, 6, 10, 8}, {0, 0, 26, 22}, {12, 10, 2, 2}, {0, 20, 26, 2}, {24, 0, 2, 22}};
    static const uint8_t value[4] = {10, 200, 30, 77};
    for (int f = 0; f < FORMATS; f++)
        for (size_t a = 0; a < sizeof areas / sizeof areas[0]; a++)
            for (int kind = 0; kind < DP_BORDER_COUNT; kind++) {
                const dp_format *format = dp_format_of(all_formats[f]);
                dp_picture p = noisy(all_formats[f], 26, 22, 1), was = noisy(all_formats[f], 26, 22, 1);
                const dp_area *in = &areas[a];
                dp_border border = {.kind = kind};
                memcpy(border.value, value, 4);
                dp_picture_border(&p, in, &border);
                for (uint32_t y = 0; y < 22; y++)
                    for (uint32_t x = 0; x < 26; x++)
                        for (int c = 0; c < (format->layout == DP_LAYOUT_GRAY ? 1 : 3); c++) {
                            bool inside =
                                x >= in->left && x < in->left + in->width && y >= in->top && y < in->top + in->height;
                            /* in units of what shares the value */
                            int sx = c ? format->x_shift : format->layout == DP_LAYOUT_PAIRS,
                                sy = c ? format->y_shift : 0;
                            int64_t ux = in->left >> sx, uy = in->top >> sy;
                            int64_t fx = ux + mirrored((x >> sx) - ux, in->width >> sx, kind);
                            int64_t fy = uy + mirrored((y >> sy) - uy, in->height >> sy, kind);
                            uint32_t ox = (uint32_t)(fx << sx) + (c == 0 && sx ? x & 1 : 0);
                            double should = kind == DP_BORDER_CONSTANT && !inside ? value[c]
                                            : inside                              ? pixel(&was, x, y, c)
                                                     : pixel(&was, ox, (uint32_t)(fy << sy), c);
                            if (pixel(&p, x, y, c) != should)
                                fail_msg("%s, area %zu, kind %d: channel %d at %u, %u is %g, not %g", format->name, a,
                                         kind, c, x, y, pixel(&p, x, y, c), should);
                        }
                dp_picture_free(&p);
                dp_picture_free(&was);
            }
}

/* Every rung gives the generic rung's bits. */
static void rungs_agree(void **state) {
    (void)state;
    static const dp_rows *const rungs[] = {&dp_rows_generic, &dp_rows_avx2, &dp_rows_avx512};
    enum { N = 333, ROOM = 8 * N };
    static uint8_t in[4][ROOM], out[2][4][ROOM];
    static float sums[2][ROOM], weight[3 * ROOM];
    static int32_t index[ROOM];
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < ROOM; i++)
            in[k][i] = (uint8_t)(rand() >> 7);
    for (int i = 0; i < ROOM; i++) {
        index[i] = rand() % (N - 2);
        weight[i] = (float)(rand() % 1000) / 1000;
        weight[i + ROOM] = weight[i + 2 * ROOM] = (float)(rand() % 1000) / 1000 - 0.3f;
    }
    for (int rung = 1; rung <= (int)dp_cpu_best_isa(); rung++)
        for (size_t n = 1; n <= N; n += n < 70 ? 1 : 37) {
            memset(out, 0, sizeof out);
            for (int r = 0; r < 2; r++) {
                const dp_rows *rows = rungs[r ? rung : 0];
                const dp_colour_matrix matrix = dp_colour_to_rgb(DP_COLOUR_BT709_NARROW);
                uint8_t(*o)[ROOM] = out[r];
                rows->split2(in[0], o[0], o[1], n);
                rows->split3(in[0], o[0] + N, o[1] + N, o[2] + N, n);
                rows->split4(in[0], o[0] + 2 * N, o[1] + 2 * N, o[2] + 2 * N, o[3] + 2 * N, n);
                rows->join2(in[0], in[1], o[2] + 2 * N, n);
                rows->join3(in[0], in[1], in[2], o[3] + 2 * N, n);
                rows->join4(in[0], in[1], in[2], in[3], o[0] + 3 * N, n);
                rows->twice(in[0], o[1] + 3 * N, n);
                rows->mean_across(in[0], o[1] + 5 * N, n);
                rows->mean_down(in[0], in[1], o[1] + 6 * N, n);
                rows->mean_square(in[0], in[1], o[1] + 7 * N, n);
                rows->colour(&matrix, (const uint8_t *const[]){in[0], in[1], in[2]},
                             (uint8_t *const[]){o[3] + 5 * N, o[3] + 6 * N, o[3] + 7 * N}, n);
                rows->pick(in[0], index, o[2] + 4 * N, n);
                rows->down((const uint8_t *const[]){in[0], in[1], in[2]}, weight, 1 + n % 3, sums[r], N);
                rows->across(sums[r], index, 1, weight, 1 + n % 3, o[2] + 5 * N, n);
                rows->normalise(in[0], 104, 3.25f, 0.017f, sums[r] + N, n);
            }
            assert_memory_equal(out[0], out[1], sizeof out[0]);
            assert_memory_equal(sums[0], sums[1], (N + n) * sizeof(float));
        }
}

static void exhausted_memory(void **state) {
    (void)state;
    dp_picture src = noisy(DP_PIXEL_YUYV, 60, 40, 1), dst = noisy(DP_PIXEL_RGB, 48, 48, 2);
    size_t before = dp_mem_stats_of(DP_MEM_MEDIA).live_blocks;
    const dp_area from = dp_picture_area(&src), to = dp_picture_area(&dst);
    for (long i = 1; i < 100; i++) {
        dp_mem_fail_after(i);
        dp_status status = dp_picture_draw(&src, &from, &dst, &to, &(dp_draw_options){0});
        bool failed = dp_mem_fail_after_left() == 0;
        dp_mem_fail_after(0);
        assert_int_equal(dp_mem_stats_of(DP_MEM_MEDIA).live_blocks, before);
        if (!failed) {
            assert_int_equal(status, DP_OK);
            assert_true(i > 4);
            break;
        }
        assert_int_equal(status, DP_ERR_OUT_OF_MEMORY);
    }
    dp_picture_free(&src);
    dp_picture_free(&dst);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizing_is_the_sum_it_should_be),
        cmocka_unit_test(every_format_becomes_every_other),
        cmocka_unit_test(greys_are_exact),
        cmocka_unit_test(outside_of_the_paste_nothing_changes),
        cmocka_unit_test(resizing_into_another_format),
        cmocka_unit_test(borders),
        cmocka_unit_test(rungs_agree),
        cmocka_unit_test(exhausted_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
