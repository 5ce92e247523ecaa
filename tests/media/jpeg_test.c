/* JPEG: decoded samples are libjpeg's own, whatever the sampling and the format of the picture; damaged files are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "make.h"
#include "media/draw.h"
#include "media/file.h"

static const int formats[] = {DP_PIXEL_GRAY,     DP_PIXEL_NV12,     DP_PIXEL_NV21,
                              DP_PIXEL_YUV422SP, DP_PIXEL_YVU422SP, DP_PIXEL_YUV444SP,
                              DP_PIXEL_YVU444SP, DP_PIXEL_YUV440SP, DP_PIXEL_YVU440SP};

static const struct {
    int across, down;
    bool gray;
    dp_jpeg_sampling sampling;
} samplings[] = {{1, 1, false, DP_JPEG_444}, {2, 1, false, DP_JPEG_422}, {2, 2, false, DP_JPEG_420},
                 {1, 2, false, DP_JPEG_440}, {4, 1, false, DP_JPEG_411}, {1, 1, true, DP_JPEG_GRAY}};

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* The mean of what pixels of one direction give, plainly: one of the file's values, or two of them. */
static uint8_t across(const uint8_t *row, uint32_t x, uint32_t width, int file, int want) {
    uint32_t last = (width - 1) / (uint32_t)file;
    if (want <= file)
        return row[least(x * (uint32_t)want / (uint32_t)file, last) * (uint32_t)file];
    return (uint8_t)((row[least(2 * x, last)] + row[least(2 * x + 1, last)] + 1) >> 1);
}

static uint8_t expected_chroma(const uint8_t *plane, uint32_t width, uint32_t height, uint32_t x, uint32_t y,
                               const int file[2], const int want[2]) {
    uint32_t last = (height - 1) / (uint32_t)file[1];
    if (want[1] <= file[1]) {
        uint32_t row = least(y * (uint32_t)want[1] / (uint32_t)file[1], last) * (uint32_t)file[1];
        return across(plane + (size_t)row * width, x, width, file[0], want[0]);
    }
    /* means of rows first, as the decoder has them at hand */
    uint8_t *mean = malloc(width), value;
    const uint8_t *a = plane + (size_t)least(2 * y, last) * width, *b = plane + (size_t)least(2 * y + 1, last) * width;
    for (uint32_t i = 0; i < width; i++)
        mean[i] = (uint8_t)((a[i] + b[i] + 1) >> 1);
    value = across(mean, x, width, file[0], want[0]);
    free(mean);
    return value;
}

static void compare(const uint8_t *yuv, uint32_t width, uint32_t height, const int file[2], const dp_picture *p) {
    const dp_format *format = dp_format_of(p->format);
    const dp_area all = dp_picture_area(p);
    const dp_plane luma = dp_picture_plane(p, 0, &all);
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++)
            if (luma.data[y * luma.pitch + x] != yuv[(size_t)least(y, height - 1) * width + least(x, width - 1)])
                fail_msg("luma at %u, %u of %u x %u in %s: %u", x, y, width, height, format->name,
                         luma.data[y * luma.pitch + x]);
    if (format->layout != DP_LAYOUT_SEMIPLANAR)
        return;
    const int want[2] = {1 << format->x_shift, 1 << format->y_shift};
    const dp_plane chroma = dp_picture_plane(p, 1, &all);
    for (uint32_t y = 0; y < chroma.rows; y++)
        for (uint32_t x = 0; x < chroma.columns; x++)
            for (int c = 1; c < 3; c++) {
                uint8_t should = expected_chroma(yuv + (size_t)c * width * height, width, height, x, y, file, want);
                uint8_t is = chroma.data[y * chroma.pitch + 2 * x + format->place[c]];
                if (is != should)
                    fail_msg("chroma %d at %u, %u of %u x %u (%d:%d) in %s: %u, not %u", c, x, y, width, height,
                             file[0], file[1], format->name, is, should);
            }
}

/* Decodes into memory that ends where the picture ends, with marked bytes behind. */
static dp_status decode(const uint8_t *jpeg, size_t n, int format, dp_jpeg_odd odd, dp_picture *p) {
    dp_file_info info;
    dp_picture plan = {.format = format};
    dp_status status = dp_jpeg_info(jpeg, n, "data", &info);
    if (status == DP_OK)
        status = dp_jpeg_plan(&info, odd, &plan);
    if (status != DP_OK)
        return status;
    size_t size = dp_picture_bytes(&plan);
    *p = (dp_picture){.format = format, .size_bytes = size, .data = malloc(size + 64)};
    memset(p->data, 0xA5, size + 64);
    status = dp_jpeg_decode(jpeg, n, odd, p);
    for (int i = 0; i < 64; i++)
        assert_int_equal(p->data[size + (size_t)i], 0xA5);
    return status;
}

static void all_samplings_into_all_formats(void **state) {
    (void)state;
    static const uint32_t sizes[][2] = {{64, 48}, {33, 17}, {1, 1}, {17, 130}, {200, 7}, {128, 16}};
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            for (int kind = 0; kind < 3; kind++) {
                make_jpeg_options o = {.across = samplings[s].across,
                                       .down = samplings[s].down,
                                       .gray = samplings[s].gray,
                                       .progressive = kind == 1,
                                       .restarts = kind == 2,
                                       .exif = kind == 2};
                size_t n;
                uint32_t width, height;
                uint8_t *jpeg = make_jpeg(sizes[k][0], sizes[k][1], &o, &n),
                        *yuv = libjpeg_yuv(jpeg, n, &width, &height);
                dp_file_info info;
                assert_int_equal(dp_jpeg_info(jpeg, n, "data", &info), DP_OK);
                assert_int_equal(info.sampling, samplings[s].sampling);
                assert_int_equal(info.width, sizes[k][0]);
                assert_int_equal(info.components, samplings[s].gray ? 1 : 3);
                for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
                    for (int odd = DP_JPEG_ODD_DOWN; odd <= DP_JPEG_ODD_UP; odd++) {
                        dp_picture p;
                        assert_int_equal(decode(jpeg, n, formats[f], odd, &p), DP_OK);
                        compare(yuv, width, height, (const int[]){samplings[s].across, samplings[s].down}, &p);
                        free(p.data);
                    }
                free(jpeg);
                free(yuv);
            }
}

static void unknown_is_the_files_own_format(void **state) {
    (void)state;
    static const int own[] = {DP_PIXEL_YUV444SP, DP_PIXEL_YUV422SP, DP_PIXEL_NV12,
                              DP_PIXEL_YUV440SP, DP_PIXEL_YUV422SP, DP_PIXEL_GRAY};
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++) {
        make_jpeg_options o = {.across = samplings[s].across, .down = samplings[s].down, .gray = samplings[s].gray};
        size_t n;
        dp_picture p;
        uint8_t *jpeg = make_jpeg(50, 40, &o, &n);
        assert_int_equal(decode(jpeg, n, DP_PIXEL_UNKNOWN, DP_JPEG_ODD_DOWN, &p), DP_OK);
        assert_int_equal(p.format, own[s]);
        assert_int_equal(p.width, 50);
        assert_int_equal(p.width_stride, 128);
        assert_int_equal(p.height_stride, 48);
        free(p.data);
        free(jpeg);
    }
}

/* Strides that are set are kept; memory that is too small for the widest gets narrower ones. */
static void strides_by_memory(void **state) {
    (void)state;
    static const uint32_t strides[][2] = {{128, 32}, {64, 32}, {48, 18}};
    size_t n;
    uint8_t *jpeg = make_jpeg(40, 18, &(make_jpeg_options){.across = 2, .down = 2}, &n), memory[8192];
    for (int i = 0; i < 3; i++) {
        dp_picture p = {.format = DP_PIXEL_NV12, .data = memory, .size_bytes = strides[i][0] * strides[i][1] * 3 / 2};
        assert_int_equal(dp_jpeg_decode(jpeg, n, 0, &p), DP_OK);
        assert_int_equal(p.width_stride, strides[i][0]);
        assert_int_equal(p.height_stride, strides[i][1]);
    }
    dp_picture set = {
        .format = DP_PIXEL_NV12, .data = memory, .size_bytes = sizeof memory, .width_stride = 80, .width = 40};
    assert_int_equal(dp_jpeg_decode(jpeg, n, 0, &set), DP_OK);
    assert_int_equal(set.width_stride, 80);
    set.width = 41;
    assert_int_equal(dp_jpeg_decode(jpeg, n, 0, &set), DP_ERR_ARGUMENT);
    assert_non_null(strstr(dp_fail_message(), "41 x 18"));
    dp_picture small = {.format = DP_PIXEL_NV12, .data = memory, .size_bytes = 48 * 18 * 3 / 2 - 1};
    assert_int_equal(dp_jpeg_decode(jpeg, n, 0, &small), DP_ERR_ARGUMENT);
    assert_non_null(strstr(dp_fail_message(), "size is 1295 bytes"));
    dp_picture rgb = {.format = DP_PIXEL_RGB, .data = memory, .size_bytes = sizeof memory};
    assert_int_equal(dp_jpeg_decode(jpeg, n, 0, &rgb), DP_ERR_UNSUPPORTED);
    free(jpeg);
}

/* Every shorter file is refused, with a sentence, and so is every file with a byte changed - or it is decoded. */
static void damaged_files(void **state) {
    (void)state;
    for (int progressive = 0; progressive < 2; progressive++) {
        size_t n;
        uint8_t *jpeg = make_jpeg(40, 40, &(make_jpeg_options){.across = 2, .down = 2, .progressive = progressive}, &n);
        static uint8_t memory[128 * 48 * 2];
        for (size_t length = 0; length < n; length++) {
            uint8_t *exact = malloc(length + 1); /* so that reading too far is noticed */
            memcpy(exact, jpeg, length);
            dp_picture p = {.format = DP_PIXEL_NV12, .data = memory, .size_bytes = sizeof memory};
            dp_fail_clear();
            dp_status status = dp_jpeg_decode(exact, length, 0, &p);
            if (length + 2 <= n && status == DP_OK)
                fail_msg("%zu of %zu bytes were enough", length, n);
            assert_true(status == DP_OK || dp_fail_message()[0]);
            free(exact);
        }
        srand(7);
        for (int i = 0; i < 3000; i++) {
            size_t at = (size_t)rand() % n;
            uint8_t was = jpeg[at];
            jpeg[at] = (uint8_t)rand();
            dp_picture p = {.format = DP_PIXEL_NV12, .data = memory, .size_bytes = sizeof memory};
            dp_jpeg_decode(jpeg, n, 0, &p);
            jpeg[at] = was;
        }
        free(jpeg);
    }
    dp_file_info info;
    assert_int_equal(dp_jpeg_info("hello, world", 12, "data", &info), DP_ERR_ARGUMENT);
    assert_non_null(strstr(dp_fail_message(), "data: not a JPEG"));
    assert_int_equal(dp_jpeg_info(NULL, 12, "data", &info), DP_ERR_ARGUMENT);
}

/* A header that promises a picture of 65500 x 65500 costs nothing. */
static void huge_pictures(void **state) {
    (void)state;
    size_t n;
    uint8_t *jpeg = make_jpeg(16, 16, &(make_jpeg_options){.across = 1, .down = 1, .progressive = true}, &n),
            memory[4096];
    for (size_t i = 0; i + 9 < n; i++)
        if (jpeg[i] == 0xFF && jpeg[i + 1] == 0xC2) {
            jpeg[i + 5] = jpeg[i + 7] = 0xFF;
            jpeg[i + 6] = jpeg[i + 8] = 0xDC;
        }
    dp_file_info info;
    assert_int_equal(dp_jpeg_info(jpeg, n, "data", &info), DP_ERR_UNSUPPORTED);
    assert_non_null(strstr(dp_fail_message(), "65500 x 65500"));
    dp_picture p = {.format = DP_PIXEL_NV12, .data = memory, .size_bytes = sizeof memory};
    size_t before = dp_mem_stats_of(DP_MEM_MEDIA).peak_bytes;
    assert_int_equal(dp_jpeg_decode(jpeg, n, 0, &p), DP_ERR_UNSUPPORTED);
    assert_true(dp_mem_stats_of(DP_MEM_MEDIA).peak_bytes <= before + 65536);
    free(jpeg);
}

/* Encoding: libjpeg decodes to what went in, within the loss of the quality; the sampling is kept. */
static void encoded_pictures_come_back(void **state) {
    (void)state;
    static const int all[] = {DP_PIXEL_GRAY, DP_PIXEL_NV12, DP_PIXEL_NV21, DP_PIXEL_YUV422SP, DP_PIXEL_YUV444SP,
                              DP_PIXEL_YUYV, DP_PIXEL_VYUY, DP_PIXEL_RGB,  DP_PIXEL_BGRA,     DP_PIXEL_YUV440SP};
    static const uint32_t sizes[][2] = {{160, 96}, {33, 19}, {1, 1}};
    for (size_t k = 0; k < 3; k++) {
        uint32_t width = sizes[k][0], height = sizes[k][1];
        uint8_t *rgb = make_rgb(width, height, 3);
        dp_picture from;
        assert_int_equal(dp_picture_new(DP_PIXEL_RGB, width, height, &from), DP_OK);
        for (uint32_t y = 0; y < height; y++)
            memcpy(from.data + y * from.width_stride, rgb + (size_t)y * width * 3, (size_t)width * 3);
        const dp_area area = dp_picture_area(&from);
        for (size_t f = 0; f < sizeof all / sizeof all[0]; f++) {
            dp_picture p;
            assert_int_equal(dp_picture_new(all[f], width, height, &p), DP_OK);
            assert_int_equal(dp_picture_convert(&from, &area, &p, &area, DP_COLOUR_BT601_WIDE), DP_OK);
            size_t room = dp_jpeg_room(&p), n = 0;
            uint8_t *bytes = malloc(room);
            assert_int_equal(dp_jpeg_encode(&p, 100, bytes, room, &n), DP_OK);
            assert_in_range(n, 100, room);
            uint32_t w, h;
            uint8_t *yuv = libjpeg_yuv(bytes, n, &w, &h);
            assert_true(w == width && h == height);
            dp_picture luma;
            assert_int_equal(dp_picture_new(DP_PIXEL_GRAY, width, height, &luma), DP_OK);
            assert_int_equal(dp_picture_convert(&p, &area, &luma, &area, DP_COLOUR_BT601_WIDE), DP_OK);
            for (uint32_t y = 0; y < height; y++)
                for (uint32_t x = 0; x < width; x++)
                    assert_in_range(yuv[y * width + x] - luma.data[y * luma.width_stride + x] + 4, 0, 8);
            assert_int_equal(dp_jpeg_encode(&p, 100, bytes, n - 1, &n), DP_ERR_ARGUMENT);
            assert_non_null(strstr(dp_fail_message(), "does not fit"));
            free(yuv);
            free(bytes);
            dp_picture_free(&luma);
            dp_picture_free(&p);
        }
        dp_picture_free(&from);
        free(rgb);
    }
}

/* Each allocation fails once. */
static void exhausted_memory(void **state) {
    (void)state;
    size_t n, before = dp_mem_stats_of(DP_MEM_MEDIA).live_blocks;
    uint8_t *jpeg = make_jpeg(64, 64, &(make_jpeg_options){.across = 2, .down = 2}, &n);
    static uint8_t memory[128 * 64 * 3 / 2], file[65536];
    for (long i = 1; i < 100; i++) {
        dp_picture p = {.format = DP_PIXEL_NV12, .data = memory, .size_bytes = sizeof memory};
        dp_mem_fail_after(i);
        dp_status status = dp_jpeg_decode(jpeg, n, 0, &p);
        dp_picture rgb = {.format = DP_PIXEL_RGB,
                          .width = 32,
                          .height = 32,
                          .width_stride = 96,
                          .height_stride = 32,
                          .data = memory,
                          .size_bytes = 96 * 32};
        dp_status encoded = dp_jpeg_encode(&rgb, 80, file, sizeof file, &(size_t){0});
        bool failed = dp_mem_fail_after_left() == 0;
        dp_mem_fail_after(0);
        assert_int_equal(dp_mem_stats_of(DP_MEM_MEDIA).live_blocks, before);
        if (!failed) {
            assert_true(i > 4);
            break;
        }
        assert_true(status == DP_ERR_OUT_OF_MEMORY || encoded == DP_ERR_OUT_OF_MEMORY);
    }
    free(jpeg);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_samplings_into_all_formats),
        cmocka_unit_test(unknown_is_the_files_own_format),
        cmocka_unit_test(strides_by_memory),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(huge_pictures),
        cmocka_unit_test(encoded_pictures_come_back),
        cmocka_unit_test(exhausted_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
