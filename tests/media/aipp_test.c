/* AIPP: values against a plain computation pixel by pixel; configuration files, good and bad. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/half.h"
#include "base/memory.h"
#include "media/aipp.h"

/* Channels of a pixel of the source: those that a matrix would take, then X or A. */
static void pixel(const dp_aipp *a, const uint8_t *src, int x, int y, int out[4]) {
    int w = a->src_width, h = a->src_height, swap = a->rbuv_swap;
    const uint8_t *p;
    out[3] = 255;
    switch (a->format) {
    case DP_AIPP_YUV400:
        out[0] = src[y * w + x];
        out[1] = out[2] = 128;
        return;
    case DP_AIPP_YUV420SP:
    case DP_AIPP_YUV422SP:
        p = src + w * h + (a->format == DP_AIPP_YUV420SP ? y / 2 : y) * w + x / 2 * 2;
        out[0] = src[y * w + x];
        out[1] = p[swap];
        out[2] = p[!swap];
        return;
    case DP_AIPP_YUYV:
        p = src + y * w * 2 + x / 2 * 4;
        out[0] = p[x % 2 * 2];
        out[1] = p[swap ? 3 : 1];
        out[2] = p[swap ? 1 : 3];
        return;
    case DP_AIPP_RGB888:
        p = src + (y * w + x) * 3;
        out[0] = p[swap ? 2 : 0];
        out[1] = p[1];
        out[2] = p[swap ? 0 : 2];
        return;
    default:
        p = src + (y * w + x) * 4;
        out[3] = p[a->ax_swap ? 3 : 0];
        p += !a->ax_swap;
        memcpy(out, (int[]){p[0], p[1], p[2]}, 3 * sizeof(int));
        if (swap) {
            int first = a->format == DP_AIPP_AYUV444 ? 1 : 0, kept = out[2];
            out[2] = out[first];
            out[first] = kept;
        }
    }
}

static float expected(const dp_aipp *a, const dp_aipp_target *t, const uint8_t *src, int c, int x, int y) {
    int v[4], value;
    x -= a->pad_left;
    y -= a->pad_top;
    if (x < 0 || y < 0 || x >= a->crop_width || y >= a->crop_height)
        return a->pad_value;
    pixel(a, src, x + a->crop_left, y + a->crop_top, v);
    if (a->csc) {
        int64_t sum = 0;
        for (int k = 0; k < 3; k++)
            sum += (int64_t)a->matrix[3 * c + k] * (v[k] - a->input_bias[k]);
        sum = (int64_t)floor((double)sum / 256) + a->output_bias[c];
        value = sum < 0 ? 0 : sum > 255 ? 255 : (int)sum;
    } else {
        value = t->channels == 4 ? v[(c + 3) % 4] : v[c];
    }
    return ((float)value - (float)a->mean[c] - a->min[c]) * a->var_reci[c];
}

static void compare(dp_aipp a, const dp_aipp_target *t) {
    static uint8_t src[100000];
    if (dp_aipp_complete(&a, t) != DP_OK)
        fail_msg("%s", dp_fail_message());
    size_t bytes = dp_aipp_source_bytes(&a), count = (size_t)t->channels * t->height * t->width;
    assert_in_range(bytes, 1, sizeof src);
    uint8_t *exact = malloc(bytes); /* so that reading too far is noticed */
    float *out = calloc(count, sizeof *out);
    for (size_t i = 0; i < bytes; i++)
        exact[i] = (uint8_t)(rand() >> 5);
    assert_int_equal(dp_aipp_run(&a, t, exact, out), DP_OK);
    for (uint32_t c = 0; c < t->channels; c++)
        for (uint32_t y = 0; y < t->height; y++)
            for (uint32_t x = 0; x < t->width; x++) {
                size_t at = t->channels_last ? ((size_t)y * t->width + x) * t->channels + c
                                             : ((size_t)c * t->height + y) * t->width + x;
                float should = expected(&a, t, exact, (int)c, (int)x, (int)y);
                float is = t->is_half ? dp_f32_from_f16(((const uint16_t *)out)[at]) : out[at];
                if (t->is_half)
                    should = dp_f32_from_f16(dp_f16_from_f32(should));
                if (is != should)
                    fail_msg("format %d, csc %d, swaps %d %d: channel %u at %u, %u: %g, not %g", a.format, a.csc,
                             a.rbuv_swap, a.ax_swap, c, x, y, is, should);
            }
    free(exact);
    free(out);
}

static const int formats[] = {DP_AIPP_YUV420SP, DP_AIPP_XRGB8888, DP_AIPP_RGB888,   DP_AIPP_YUV400,
                              DP_AIPP_ARGB8888, DP_AIPP_YUYV,     DP_AIPP_YUV422SP, DP_AIPP_AYUV444};
static const int32_t jpeg_to_rgb[9] = {256, 0, 359, 256, -88, -183, 256, 454, 0};

static dp_aipp settings(int format) {
    dp_aipp a;
    dp_aipp_clear(&a);
    a.format = format;
    a.input_bias[1] = a.input_bias[2] = 128;
    memcpy(a.matrix, jpeg_to_rgb, sizeof a.matrix);
    memcpy(a.mean, (int32_t[]){104, 117, 123, 7}, sizeof a.mean);
    memcpy(a.min, (float[]){.5f, 0, 3, 1}, sizeof a.min);
    memcpy(a.var_reci, (float[]){.017f, 1 / 255.0f, 1, 2}, sizeof a.var_reci);
    a.pad_value = -7.5f;
    return a;
}

static void every_format_and_switch(void **state) {
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (int bits = 0; bits < 64; bits++) {
            dp_aipp a = settings(formats[f]);
            dp_aipp_target t = {
                .channels = 3, .height = 20, .width = 30, .is_half = bits >> 3 & 1, .channels_last = bits >> 2 & 1};
            bool four =
                formats[f] == DP_AIPP_XRGB8888 || formats[f] == DP_AIPP_ARGB8888 || formats[f] == DP_AIPP_AYUV444;
            a.rbuv_swap = bits & 1;
            a.csc = (bits >> 1 & 1) && formats[f] != DP_AIPP_YUV400;
            a.ax_swap = bits >> 4 & 1;
            if (formats[f] == DP_AIPP_YUV400 || (a.csc && bits >> 5))
                t.channels = 1;
            else if (four && bits >> 5)
                t.channels = 4;
            compare(a, &t); /* as large as the model's input */
            a.src_width = 44;
            a.src_height = 36;
            a.crop = 1;
            a.crop_left = 3;
            a.crop_top = 5;
            compare(a, &t); /* a cut of the model's size */
            a.padding = 1;
            a.pad_left = 2;
            a.pad_right = 5;
            a.pad_top = 1;
            a.pad_bottom = 3;
            compare(a, &t);
        }
}

/* Resized first: a picture of one colour stays that colour. */
static void resizing(void **state) {
    (void)state;
    dp_aipp a = settings(DP_AIPP_RGB888);
    const dp_aipp_target t = {.channels = 3, .height = 20, .width = 30};
    static uint8_t src[64 * 48 * 3];
    static float out[3 * 20 * 30];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(10 + i % 3);
    a.src_width = 64;
    a.src_height = 48;
    a.resize = 1;
    a.crop = 1;
    a.crop_left = 8;
    a.crop_top = 4;
    a.crop_width = 50;
    a.crop_height = 40;
    assert_int_equal(dp_aipp_complete(&a, &t), DP_OK);
    assert_true(a.resize_width == 30 && a.resize_height == 20);
    assert_int_equal(dp_aipp_run(&a, &t, src, out), DP_OK);
    for (int i = 0; i < 3 * 600; i++)
        assert_true(out[i] == ((float)(10 + i / 600) - (float)a.mean[i / 600] - a.min[i / 600]) * a.var_reci[i / 600]);
}

/* Each allocation fails once. */
static void exhausted_memory(void **state) {
    (void)state;
    dp_aipp a = settings(DP_AIPP_YUV420SP);
    const dp_aipp_target t = {.channels = 3, .height = 20, .width = 30};
    static uint8_t src[64 * 48 * 3 / 2];
    static float out[3 * 20 * 30];
    size_t before = dp_mem_stats_of(DP_MEM_MEDIA).live_blocks;
    a.src_width = 64;
    a.src_height = 48;
    a.resize = 1;
    assert_int_equal(dp_aipp_complete(&a, &t), DP_OK);
    for (long i = 1; i < 100; i++) {
        dp_mem_fail_after(i);
        dp_status status = dp_aipp_run(&a, &t, src, out);
        bool failed = dp_mem_fail_after_left() == 0;
        dp_mem_fail_after(0);
        assert_int_equal(dp_mem_stats_of(DP_MEM_MEDIA).live_blocks, before);
        assert_int_equal(status, failed ? DP_ERR_OUT_OF_MEMORY : DP_OK);
        if (!failed) {
            assert_true(i > 3);
            break;
        }
    }
}

static void refuses(dp_aipp a, const dp_aipp_target *t, const char *words) {
    dp_fail_clear();
    assert_int_not_equal(dp_aipp_complete(&a, t), DP_OK);
    if (!strstr(dp_fail_message(), words))
        fail_msg("said: %s", dp_fail_message());
}

static void settings_that_do_not_fit(void **state) {
    (void)state;
    const dp_aipp_target t = {.channels = 3, .height = 20, .width = 30};
    dp_aipp good = settings(DP_AIPP_YUV420SP), a = good;
    a.format = 4;
    refuses(a, &t, "input_format is 4");
    a = good;
    a.src_width = 31;
    a.src_height = 20;
    refuses(a, &t, "must be even");
    a.src_width = 1 << 20;
    refuses(a, &t, "src_image_size_w is 1048576");
    a.src_width = 40;
    refuses(a, &t, "the model's input is 30 x 20");
    a.crop = 1;
    a.crop_left = 20;
    refuses(a, &t, "crop_size_w is 30, but must be 1 to 20");
    a.crop_left = -1;
    refuses(a, &t, "load_start_pos_w is -1");
    a.crop_left = 0;
    a.crop_width = a.crop_height = INT32_MAX;
    refuses(a, &t, "crop_size_w");
    a = good;
    a.padding = 1;
    a.pad_left = 30;
    refuses(a, &t, "padding leaves nothing");
    a.pad_left = -3;
    refuses(a, &t, "left_padding_size is -3");
    a = good;
    a.csc = 1;
    a.matrix[4] = 1024;
    refuses(a, &t, "matrix");
    refuses(settings(DP_AIPP_YUV400), &t, "gives 1 channels, but the model's input has 3");
    a = good;
    a.input_bias[0] = 256;
    refuses(a, &t, "input_bias");
}

/* Configuration files. */

static dp_status parse(const char *text, dp_aipp_op *ops, int *n) {
    size_t length = strlen(text);
    char *exact = malloc(length + 1); /* the text has no end of its own */
    memcpy(exact, text, length);
    char *moved = realloc(exact, length ? length : 1);
    dp_status status = dp_aipp_parse(moved, length, ops, n);
    free(moved);
    return status;
}

static void files_that_are_read(void **state) {
    (void)state;
    dp_aipp_op ops[DP_AIPP_OPS];
    int n;
    assert_int_equal(
        parse("# a comment { : }\n"
              "aipp_op {\n\taipp_mode : static\n related_input_rank: 1\n input_format:YUV420SP_U8 # NV12\n"
              "src_image_size_w : 640 src_image_size_h : 480; crop: true, load_start_pos_w : 16\n csc_switch : true\n"
              "matrix_r0c0 : 298 matrix_r2c1: -516 input_bias_0: 16 output_bias_2: 3\n rbuv_swap_switch : false\n"
              "mean_chn_0 : 104\n min_chn_1 : 117.5 var_reci_chn_2 : 0.003921568627451 padding_value: -1e2 }\n"
              "aipp_op:{ aipp_mode: dynamic max_src_image_size: 752640 related_input_name: \"data:0\" }",
              ops, &n),
        DP_OK);
    assert_int_equal(n, 2);
    const dp_aipp *a = &ops[0].aipp;
    assert_true(!ops[0].is_dynamic && ops[0].input == 1 && a->format == DP_AIPP_YUV420SP && a->src_width == 640 &&
                a->src_height == 480 && a->crop == 1 && a->crop_left == 16 && a->csc == 1 && a->matrix[0] == 298 &&
                a->matrix[7] == -516 && a->input_bias[0] == 16 && a->output_bias[2] == 3 && a->rbuv_swap == 0 &&
                a->mean[0] == 104 && a->min[1] == 117.5f && a->var_reci[2] == 0.003921568627451f &&
                a->var_reci[0] == 1 && a->pad_value == -100);
    assert_true(ops[1].is_dynamic && ops[1].max_src_image_size == 752640 && strcmp(ops[1].input_name, "data:0") == 0);
}

static void files_that_are_refused(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "no aipp_op"},
        {"   # nothing\n", "no aipp_op"},
        {"aipp {}", "line 1: aipp_op { is expected"},
        {"aipp_op", "a { is expected"},
        {"aipp_op {", "line 1: a setting or } is expected"},
        {"aipp_op {\n\n crop", "line 3: after crop a : and a value"},
        {"aipp_op { crop: }", "after crop"},
        {"aipp_op { crop: maybe }", "crop is \"maybe\", but must be true or false"},
        {"aipp_op { colour: true }", "there is no setting colour"},
        {"aipp_op { input_format: RGB }", "input_format is \"RGB\", but must be YUV420SP_U8"},
        {"aipp_op { aipp_mode: static }", "input_format is missing"},
        {"aipp_op { aipp_mode: fast }", "must be static or dynamic"},
        {"aipp_op { aipp_mode: dynamic }", "max_src_image_size"},
        {"aipp_op { src_image_size_w: 99999999999 }", "src_image_size_w"},
        {"aipp_op { src_image_size_w: 1.5 }", "a whole number"},
        {"aipp_op { min_chn_0: nan }", "a number"},
        {"aipp_op { related_input_rank: -1 }", "from 0"},
        {"aipp_op { input_format: RGB888_U8 csc_switch: true }", "no matrix"},
        {"aipp_op { related_input_name: \"open\n }", "after related_input_name"},
        {"aipp_op { input_format: RGB888_U8 } }", "aipp_op { is expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_aipp_op ops[DP_AIPP_OPS];
        int n;
        if (parse(cases[i][0], ops, &n) != DP_ERR_ARGUMENT || !strstr(dp_fail_message(), cases[i][1]))
            fail_msg("%s: %s", cases[i][0], dp_fail_message());
    }
    char many[2000] = "";
    for (int i = 0; i <= DP_AIPP_OPS; i++)
        strcat(many, "aipp_op { input_format: RGB888_U8 }\n");
    dp_aipp_op ops[DP_AIPP_OPS];
    int n;
    assert_int_equal(parse(many, ops, &n), DP_ERR_ARGUMENT);
    char longer[400] = "aipp_op { ";
    memset(longer + 10, 'a', 300);
    assert_int_equal(parse(longer, ops, &n), DP_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_and_switch), cmocka_unit_test(resizing),
        cmocka_unit_test(exhausted_memory),        cmocka_unit_test(settings_that_do_not_fit),
        cmocka_unit_test(files_that_are_read),     cmocka_unit_test(files_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
