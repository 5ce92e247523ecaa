/*
 * Any bytes given as a JPEG, a PNG or a configuration of AIPP must end in a picture or an error with a sentence: no
 * crash, hang, leak or write outside the picture. An input's first byte says what the rest is, the second how it is
 * asked for. Settings of AIPP that are accepted are executed.
 *
 * With DP_LIBFUZZER this is a target of libFuzzer; else the program runs the files it is given (regressions), with
 * -seconds=N damaged pictures and texts for as long, and with -seeds=FOLDER writes whole ones there; the input at work
 * is in the file fuzz-media-input.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/aipp.h"
#include "media/draw.h"
#include "media/file.h"

enum { JPEG, PNG, AIPP, KINDS, MOST_BYTES = 1 << 22, GUARD = 64 };

static void broken(const char *what) {
    fprintf(stderr, "%s; last sentence: %s\n", what, dp_fail_message());
    abort();
}

/* Memory for a picture with marks around it, so that writes outside are noticed without a sanitizer, too. */
static uint8_t *new_memory(size_t n) {
    uint8_t *memory = malloc(n + 2 * GUARD);
    if (!memory)
        abort();
    memset(memory, 0xA5, n + 2 * GUARD);
    return memory + GUARD;
}

static void free_memory(uint8_t *memory, size_t n) {
    for (int i = 0; i < GUARD; i++)
        if (memory[-1 - i] != 0xA5 || memory[n + (size_t)i] != 0xA5)
            broken("written outside the picture");
    free(memory - GUARD);
}

static void decode(bool is_jpeg, unsigned how, const uint8_t *bytes, size_t n) {
    static const int jpeg_formats[] = {DP_PIXEL_NV12,     DP_PIXEL_UNKNOWN,  DP_PIXEL_GRAY, DP_PIXEL_YUV444SP,
                                       DP_PIXEL_YVU422SP, DP_PIXEL_YUV440SP, DP_PIXEL_NV21, DP_PIXEL_RGB};
    static const int png_formats[] = {DP_PIXEL_RGB,  DP_PIXEL_UNKNOWN, DP_PIXEL_BGRA, DP_PIXEL_ARGB,
                                      DP_PIXEL_NV12, DP_PIXEL_BGR,     DP_PIXEL_ABGR, DP_PIXEL_RGBA};
    dp_file_info info;
    dp_picture plan = {.format = is_jpeg ? jpeg_formats[how % 8] : png_formats[how % 8]};
    dp_jpeg_odd odd = how >> 3 & 1;
    dp_fail_clear();
    dp_status status = is_jpeg ? dp_jpeg_info(bytes, n, "data", &info) : dp_png_info(bytes, n, "data", &info);
    if (status == DP_OK)
        status = is_jpeg ? dp_jpeg_plan(&info, odd, &plan) : dp_png_plan(&info, &plan);
    if (status == DP_OK && dp_picture_bytes(&plan) > MOST_BYTES)
        return;
    size_t room = status == DP_OK ? dp_picture_bytes(&plan) : 4096;
    if (how >> 4 & 1)
        room /= 2; /* too little: refused, or with narrower strides */
    dp_picture picture = {.format = status == DP_OK ? (is_jpeg ? jpeg_formats[how % 8] : png_formats[how % 8])
                                                    : DP_PIXEL_UNKNOWN,
                          .size_bytes = room,
                          .data = new_memory(room)};
    uint8_t *memory = picture.data;
    status = is_jpeg ? dp_jpeg_decode(bytes, n, odd, &picture) : dp_png_decode(bytes, n, &picture);
    if (status != DP_OK && !dp_fail_message()[0])
        broken("an error without a sentence");
    free_memory(memory, room);
}

static void prepare(unsigned how, const char *text, size_t n) {
    static dp_aipp_op ops[DP_AIPP_OPS];
    int count = 0;
    dp_fail_clear();
    dp_status status = dp_aipp_parse(text, n, ops, &count);
    if (status != DP_OK && !dp_fail_message()[0])
        broken("an error without a sentence");
    for (int i = 0; status == DP_OK && i < count; i++) {
        const dp_aipp_target target = {.channels = how & 1   ? 1
                                                   : how & 2 ? 4
                                                             : 3,
                                       .height = how & 4 ? 17 : 224,
                                       .width = how & 8 ? 40 : 224,
                                       .is_half = how >> 4 & 1,
                                       .channels_last = how >> 5 & 1};
        if (dp_aipp_complete(&ops[i].aipp, &target) != DP_OK || dp_aipp_source_bytes(&ops[i].aipp) > MOST_BYTES)
            continue;
        size_t in_bytes = dp_aipp_source_bytes(&ops[i].aipp),
               out_bytes = (size_t)target.channels * target.height * target.width * 4;
        uint8_t *in = new_memory(in_bytes), *out = new_memory(out_bytes);
        if (dp_aipp_run(&ops[i].aipp, &target, in, out) != DP_OK)
            broken("settings that were accepted did not run");
        free_memory(in, in_bytes);
        free_memory(out, out_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    size_t n = size - 2;
    uint8_t *exact = malloc(n ? n : 1); /* so that reading too far is noticed */
    if (!exact)
        abort();
    memcpy(exact, data + 2, n);
    if (data[0] % KINDS == AIPP)
        prepare(data[1], (const char *)exact, n);
    else
        decode(data[0] % KINDS == JPEG, data[1], exact, n);
    free(exact);
    return 0;
}

#ifndef DP_LIBFUZZER

#include <time.h>
#include <unistd.h>

#include "media/make.h"

enum { SEEDS = 24, CALL_SECONDS = 20 };

static struct {
    uint8_t *bytes;
    size_t n;
} seeds[SEEDS];
static int n_seeds;

static void add_seed(int kind, unsigned how, const void *bytes, size_t n) {
    seeds[n_seeds].bytes = malloc(n + 2);
    if (!seeds[n_seeds].bytes)
        abort();
    seeds[n_seeds].bytes[0] = (uint8_t)kind;
    seeds[n_seeds].bytes[1] = (uint8_t)how;
    memcpy(seeds[n_seeds].bytes + 2, bytes, n);
    seeds[n_seeds++].n = n + 2;
}

static void make_seeds(void) {
    static const char *const texts[] = {
        ("aipp_op { aipp_mode: static input_format: YUV420SP_U8 csc_switch: true rbuv_swap_switch: false\n"
         "src_image_size_w: 224 src_image_size_h: 224 matrix_r0c0: 256 matrix_r0c2: 359 matrix_r1c0: 256\n"
         "matrix_r1c1: -88 matrix_r1c2: -183 matrix_r2c0: 256 matrix_r2c1: 454 input_bias_1: 128\n"
         "input_bias_2: 128 min_chn_0: 123.5 var_reci_chn_0: 0.0039 }"),
        ("aipp_op { input_format: RGB888_U8 src_image_size_w: 300 src_image_size_h: 250 crop: true\n"
         "load_start_pos_w: 6 crop_size_w: 200 crop_size_h: 200 load_start_pos_h: 8 padding: true\n"
         "left_padding_size: 12 right_padding_size: 12 top_padding_size: 20 bottom_padding_size: 4\n"
         "padding_value: 128 mean_chn_0: 104 }"),
        ("aipp_op { input_format: XRGB8888_U8 ax_swap_switch: true resize: true src_image_size_w: 64\n"
         "src_image_size_h: 48 }"),
        ("aipp_op { aipp_mode: dynamic related_input_name: \"x\" max_src_image_size: 752640 } # nothing else\n"),
    };
    static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};
    size_t n;
    for (int i = 0; i < 10; i++) {
        make_jpeg_options o = {.across = samplings[i % 5][0],
                               .down = samplings[i % 5][1],
                               .progressive = i >= 5,
                               .gray = i == 7,
                               .restarts = i == 3,
                               .exif = i == 2};
        uint8_t *jpeg = make_jpeg((uint32_t)(33 + 7 * i), 40, &o, &n);
        add_seed(JPEG, (unsigned)(i * 37), jpeg, n);
        free(jpeg);
    }
    for (int i = 0; i < 8; i++) {
        uint8_t *rgba, *png = make_png(31, 17, i % 4 + 1, i == 6 ? 16 : 8, i & 1, i == 4, &rgba, &n);
        add_seed(PNG, (unsigned)(i * 41), png, n);
        free(png);
        free(rgba);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        add_seed(AIPP, 0, texts[i], strlen(texts[i]));
}

static uint64_t state = 1;
static size_t below(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

/* Some bytes changed, cut out, doubled, or the end cut off. */
static size_t damage(uint8_t *bytes, size_t n, size_t room) {
    static const uint8_t usual[] = {0, 1, 0x7f, 0x80, 0xff, 0xd8, 0xda, 0xc4, '{', '}', ':', '-', '9', ' '};
    bytes[1] = (uint8_t)below(256);
    for (size_t i = 0, changes = below(5); i < changes && n > 3; i++) {
        size_t at = 2 + below(n - 2), length = 1 + below(16);
        switch (below(6)) {
        case 0:
            bytes[at] = (uint8_t)below(256);
            break;
        case 1:
            bytes[at] = usual[below(sizeof usual)];
            break;
        case 2:
            bytes[at] ^= (uint8_t)(1u << below(8));
            break;
        case 3:
            n = at;
            break;
        case 4:
            if (at + length < n) {
                memmove(bytes + at, bytes + at + length, n - at - length);
                n -= length;
            }
            break;
        default:
            if (at + length < n && n + length <= room) {
                memmove(bytes + at + length, bytes + at, n - at);
                n += length;
            }
        }
    }
    return n;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void record(const uint8_t *bytes, size_t n) {
    FILE *out = fopen("fuzz-media-input", "wb");
    if (out) {
        fwrite(bytes, 1, n, out);
        fclose(out);
    }
}

static unsigned run_damaged(double seconds, bool keep) {
    static uint8_t bytes[1 << 16];
    unsigned runs = 0;
    for (double end = seconds_now() + seconds; seconds_now() < end; runs++) {
        int seed = (int)below((size_t)n_seeds);
        memcpy(bytes, seeds[seed].bytes, seeds[seed].n);
        size_t n = damage(bytes, seeds[seed].n, sizeof bytes);
        if (keep)
            record(bytes, n);
        alarm(CALL_SECONDS);
        LLVMFuzzerTestOneInput(bytes, n);
    }
    alarm(0);
    return runs;
}

static int run_file(const char *path) {
    static uint8_t bytes[1 << 20];
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    size_t n = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    LLVMFuzzerTestOneInput(bytes, n);
    return 0;
}

static int write_seeds(const char *folder) {
    for (int i = 0; i < n_seeds; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%d", folder, i);
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(seeds[i].bytes, 1, seeds[i].n, out) != seeds[i].n || fclose(out)) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

/* -record: keep the input at work in a file, which takes most of the time. */
int main(int argc, char **argv) {
    double seconds = 0;
    bool keep = false;
    int failed = 0;
    make_seeds();
    for (int i = 0; i < n_seeds; i++)
        LLVMFuzzerTestOneInput(seeds[i].bytes, seeds[i].n);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-seconds=", 9) == 0)
            seconds = atof(argv[i] + 9);
        else if (strncmp(argv[i], "-seed=", 6) == 0)
            state = strtoull(argv[i] + 6, NULL, 10);
        else if (strncmp(argv[i], "-seeds=", 7) == 0)
            failed |= write_seeds(argv[i] + 7);
        else if (strcmp(argv[i], "-record") == 0)
            keep = true;
        else
            failed |= run_file(argv[i]);
    }
    unsigned runs = seconds > 0 ? run_damaged(seconds, keep) : 0;
    printf("%d whole and %u damaged pictures and texts\n", n_seeds, runs);
    for (int i = 0; i < n_seeds; i++)
        free(seeds[i].bytes);
    return failed;
}
#endif
