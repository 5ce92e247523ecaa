/* PNG: pixels are those that were written, in every format; damaged files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "make.h"
#include "media/file.h"

static const int formats[] = {DP_PIXEL_RGB, DP_PIXEL_BGR, DP_PIXEL_ARGB, DP_PIXEL_ABGR, DP_PIXEL_RGBA, DP_PIXEL_BGRA};

static const struct {
    int channels, depth;
    bool palette, alpha;
} kinds[] = {{1, 8, false, false}, {1, 1, false, false},  {1, 16, false, false}, {2, 8, false, true},
             {3, 8, false, false}, {3, 16, false, false}, {4, 8, false, true},   {4, 16, false, true},
             {1, 4, true, true},   {1, 8, true, true}};

static void compare(const uint8_t *rgba, const dp_picture *p) {
    const dp_format *format = dp_format_of(p->format);
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++)
            for (int c = 0; c < format->bytes; c++) {
                uint8_t is = p->data[y * p->width_stride + x * format->bytes + format->place[c]];
                uint8_t should = rgba[((size_t)y * p->width + x) * 4 + (size_t)c];
                if (is != should)
                    fail_msg("channel %d at %u, %u in %s: %u, not %u", c, x, y, format->name, is, should);
            }
}

static void all_kinds_into_all_formats(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            size_t n;
            uint8_t *rgba,
                *png = make_png(37, 21, kinds[k].channels, kinds[k].depth, interlaced, kinds[k].palette, &rgba, &n);
            dp_file_info info;
            assert_int_equal(dp_png_info(png, n, "data", &info), DP_OK);
            assert_int_equal(info.width, 37);
            assert_int_equal(info.height, 21);
            assert_int_equal(info.has_alpha, kinds[k].alpha);
            for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
                dp_picture p = {.format = formats[f]};
                assert_int_equal(dp_png_plan(&info, &p), DP_OK);
                p.size_bytes = dp_picture_bytes(&p);
                p.data = calloc(1, p.size_bytes);
                assert_int_equal(dp_png_decode(png, n, &p), DP_OK);
                compare(rgba, &p);
                free(p.data);
            }
            dp_picture own = {.format = DP_PIXEL_UNKNOWN};
            assert_int_equal(dp_png_plan(&info, &own), DP_OK);
            assert_int_equal(own.format, kinds[k].alpha ? DP_PIXEL_RGBA : DP_PIXEL_RGB);
            free(rgba);
            free(png);
        }
}

static void damaged_files(void **state) {
    (void)state;
    size_t n;
    uint8_t *rgba, *png = make_png(20, 20, 3, 8, true, false, &rgba, &n);
    static uint8_t memory[128 * 32];
    for (size_t length = 0; length < n; length++) {
        uint8_t *exact = malloc(length + 1);
        memcpy(exact, png, length);
        dp_picture p = {.format = DP_PIXEL_RGB, .data = memory, .size_bytes = sizeof memory};
        dp_fail_clear();
        assert_int_not_equal(dp_png_decode(exact, length, &p), DP_OK);
        assert_string_not_equal(dp_fail_message(), "");
        free(exact);
    }
    srand(7);
    for (int i = 0; i < 3000; i++) {
        size_t at = (size_t)rand() % n;
        uint8_t was = png[at];
        png[at] = (uint8_t)rand();
        dp_picture p = {.format = DP_PIXEL_RGB, .data = memory, .size_bytes = sizeof memory};
        dp_png_decode(png, n, &p);
        png[at] = was;
    }
    free(png);
    free(rgba);
    dp_file_info info;
    assert_int_equal(dp_png_info("hello, world", 12, "data", &info), DP_ERR_ARGUMENT);
    assert_non_null(strstr(dp_fail_message(), "data: not a PNG"));
    dp_picture nv12 = {.format = DP_PIXEL_NV12, .data = memory, .size_bytes = sizeof memory};
    png = make_png(16, 16, 3, 8, false, false, &rgba, &n);
    assert_int_equal(dp_png_decode(png, n, &nv12), DP_ERR_UNSUPPORTED);
    free(png);
    free(rgba);
}

static void exhausted_memory(void **state) {
    (void)state;
    size_t n, before = dp_mem_stats_of(DP_MEM_MEDIA).live_blocks;
    uint8_t *rgba, *png = make_png(40, 30, 4, 8, true, false, &rgba, &n);
    static uint8_t memory[256 * 32];
    for (long i = 1; i < 200; i++) {
        dp_picture p = {.format = DP_PIXEL_RGBA, .data = memory, .size_bytes = sizeof memory};
        dp_mem_fail_after(i);
        dp_status status = dp_png_decode(png, n, &p);
        bool failed = dp_mem_fail_after_left() == 0;
        dp_mem_fail_after(0);
        assert_int_equal(dp_mem_stats_of(DP_MEM_MEDIA).live_blocks, before);
        assert_int_equal(status, failed ? DP_ERR_OUT_OF_MEMORY : DP_OK);
        if (!failed) {
            assert_true(i > 4);
            break;
        }
    }
    free(png);
    free(rgba);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_into_all_formats),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(exhausted_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
