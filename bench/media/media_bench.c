/*
 * A photograph of 1920 x 1080 from JPEG bytes to a model's input, beside libjpeg alone. Rounds of all, one after the
 * other; milliseconds: minimum and median. `bench_media [PHOTO.jpg]`; without one a picture is made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "media/aipp.h"
#include "media/draw.h"
#include "media/file.h"
#include "runtime/pool.h"
#include "runtime/report.h"
#include "tests/media/make.h"

enum { ROUNDS = 40, SIDE = 640 };

static uint8_t *jpeg;
static size_t jpeg_bytes;
static dp_file_info info;
static uint8_t *rgb; /* of libjpeg */
static dp_picture photo, small, colours, scaled_rgb;
static float *features;

static void stop(const char *what) {
    fprintf(stderr, "%s: %s\n", what, dp_fail_message());
    exit(1);
}

static void libjpeg_decode(J_COLOR_SPACE space) {
    struct jpeg_decompress_struct j;
    struct jpeg_error_mgr errors;
    j.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&j);
    jpeg_mem_src(&j, jpeg, jpeg_bytes);
    jpeg_read_header(&j, TRUE);
    j.out_color_space = space;
    jpeg_start_decompress(&j);
    while (j.output_scanline < j.output_height) {
        JSAMPROW row = rgb + (size_t)j.output_scanline * j.output_width * 3;
        jpeg_read_scanlines(&j, &row, 1);
    }
    jpeg_finish_decompress(&j);
    jpeg_destroy_decompress(&j);
}

static void libjpeg_rgb(void) {
    libjpeg_decode(JCS_RGB);
}
static void libjpeg_ycc(void) {
    libjpeg_decode(JCS_YCbCr);
}

static void decode(void) {
    photo.width = photo.height = photo.width_stride = photo.height_stride = 0;
    photo.format = DP_PIXEL_NV12;
    if (dp_jpeg_decode(jpeg, jpeg_bytes, 0, &photo) != DP_OK)
        stop("decode");
}

static void draw(const dp_picture *from, const dp_picture *to, int interpolation) {
    const dp_area a = dp_picture_area(from), b = dp_picture_area(to);
    if (dp_picture_draw(from, &a, to, &b, &(dp_draw_options){.interpolation = interpolation}) != DP_OK)
        stop("draw");
}
static void resize(void) {
    draw(&photo, &small, DP_INTERPOLATION_BILINEAR);
}
static void resize_area(void) {
    draw(&photo, &small, DP_INTERPOLATION_AREA);
}
static void convert_small(void) {
    draw(&small, &scaled_rgb, 0);
}
static void convert_whole(void) {
    draw(&photo, &colours, 0);
}

static void prepare(void) {
    dp_aipp a;
    const dp_aipp_target target = {.channels = 3, .height = SIDE, .width = SIDE};
    static const int32_t matrix[9] = {256, 0, 359, 256, -88, -183, 256, 454, 0};
    dp_aipp_clear(&a);
    a.csc = 1;
    memcpy(a.matrix, matrix, sizeof matrix);
    a.input_bias[1] = a.input_bias[2] = 128;
    if (dp_aipp_complete(&a, &target) != DP_OK || dp_aipp_run(&a, &target, small.data, features) != DP_OK)
        stop("aipp");
}

static void decode_resize_convert(void) {
    decode();
    resize();
    convert_small();
}
static void decode_resize_prepare(void) {
    decode();
    resize();
    prepare();
}

static const struct {
    const char *name;
    void (*run)(void);
} all[] = {{"libjpeg: to RGB", libjpeg_rgb},
           {"libjpeg: to YCbCr at full width", libjpeg_ycc},
           {"decode to NV12", decode},
           {"resize to 640 x 640, bilinear", resize},
           {"resize to 640 x 640, area", resize_area},
           {"640 x 640 NV12 to RGB", convert_small},
           {"the whole picture, NV12 to RGB", convert_whole},
           {"640 x 640 NV12 to floats (AIPP)", prepare},
           {"decode + resize + RGB", decode_resize_convert},
           {"decode + resize + AIPP", decode_resize_prepare}};
enum { MEASURED = sizeof all / sizeof all[0] };

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void read_photo(const char *path) {
    FILE *in = fopen(path, "rb");
    jpeg = malloc(1 << 26);
    jpeg_bytes = in && jpeg ? fread(jpeg, 1, 1 << 26, in) : 0;
    if (in)
        fclose(in);
}

int main(int argc, char **argv) {
    static uint64_t times[MEASURED][ROUNDS];
    if (argc > 1)
        read_photo(argv[1]);
    else
        jpeg = make_jpeg(1920, 1080, &(make_jpeg_options){.across = 2, .down = 2, .quality = 85}, &jpeg_bytes);
    if (dp_jpeg_info(jpeg, jpeg_bytes, "photo", &info) != DP_OK)
        stop("photo");
    photo.size_bytes = ((size_t)info.width + 128) * (info.height + 16) * 3 / 2;
    photo.data = malloc(photo.size_bytes);
    rgb = malloc((size_t)info.width * info.height * 3);
    features = malloc((size_t)SIDE * SIDE * 3 * sizeof *features);
    if (dp_picture_new(DP_PIXEL_NV12, SIDE, SIDE, &small) != DP_OK ||
        dp_picture_new(DP_PIXEL_RGB, SIDE, SIDE, &scaled_rgb) != DP_OK ||
        dp_picture_new(DP_PIXEL_RGB, info.width & ~1u, info.height & ~1u, &colours) != DP_OK || !photo.data || !rgb ||
        !features)
        stop("memory");
    decode();
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < MEASURED; i++) {
            uint64_t begin = dp_clock_ns();
            all[i].run();
            times[i][round] = dp_clock_ns() - begin;
        }
    printf("%u x %u, %zu bytes, %u threads\n", info.width, info.height, jpeg_bytes, dp_pool_width());
    for (int i = 0; i < MEASURED; i++) {
        qsort(times[i], ROUNDS, sizeof times[i][0], by_value);
        printf("%-36s min %7.2f ms   median %7.2f ms   %5.2f x libjpeg to RGB\n", all[i].name,
               (double)times[i][0] * 1e-6, (double)times[i][ROUNDS / 2] * 1e-6,
               (double)times[i][0] / (double)times[0][0]);
    }
    return 0;
}
