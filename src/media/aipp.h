/*
 * aipp.h - from a picture's bytes to a model's input: AIPP.
 *
 * In this order: channels swapped, an area cut out, resized, colours through a matrix, normalised - (value - mean -
 * min) * var_reci per channel - and a border of a constant around it.
 */
#ifndef DOPPEL_MEDIA_AIPP_H
#define DOPPEL_MEDIA_AIPP_H

#include "media/picture.h"

/* Values are the vendor's aclAippInputFormat. */
typedef enum dp_aipp_format {
    DP_AIPP_YUV420SP = 0,
    DP_AIPP_XRGB8888 = 1,
    DP_AIPP_RGB888 = 2,
    DP_AIPP_YUV400 = 3,
    DP_AIPP_ARGB8888 = 6,
    DP_AIPP_YUYV = 7,
    DP_AIPP_YUV422SP = 8,
    DP_AIPP_AYUV444 = 9
} dp_aipp_format;

/* Integers first, then floats: a model file keeps it as two lists. */
typedef struct dp_aipp {
    int32_t format;
    int32_t src_width, src_height;
    int32_t crop, crop_left, crop_top, crop_width, crop_height;
    int32_t resize, resize_width, resize_height;
    int32_t padding, pad_left, pad_right, pad_top, pad_bottom;
    int32_t csc, rbuv_swap, ax_swap;
    int32_t matrix[9], output_bias[3], input_bias[3]; /* out = (matrix * (in - input_bias) >> 8) + output_bias */
    int32_t mean[4];
    float min[4], var_reci[4], pad_value;
} dp_aipp;

enum {
    DP_AIPP_INTEGERS = (int)(offsetof(dp_aipp, min) / sizeof(int32_t)),
    DP_AIPP_FLOATS = (int)((sizeof(dp_aipp) - offsetof(dp_aipp, min)) / sizeof(float))
};

/* All off, var_reci 1. */
void dp_aipp_clear(dp_aipp *aipp);

/* What goes out: float or half, channels before or after the pixels. */
typedef struct dp_aipp_target {
    uint32_t channels, height, width;
    bool is_half, channels_last;
} dp_aipp_target;

/*
 * Fills in what was left open (sizes of 0 are the target's) and checks that all of it fits together and gives the
 * target; sentences name the settings as configuration files do.
 */
dp_status dp_aipp_complete(dp_aipp *aipp, const dp_aipp_target *target);
/* Bytes of the picture that goes in. */
size_t dp_aipp_source_bytes(const dp_aipp *aipp);

/* One picture; both must be complete. */
dp_status dp_aipp_run(const dp_aipp *aipp, const dp_aipp_target *target, const uint8_t *src, void *out);

/* One aipp_op of a configuration file. */
typedef struct dp_aipp_op {
    dp_aipp aipp;
    bool is_dynamic, has_format, has_matrix;
    int32_t input;              /* related_input_rank */
    int64_t max_src_image_size; /* of a dynamic one */
    char input_name[128];       /* related_input_name; "" when the rank counts */
} dp_aipp_op;

enum { DP_AIPP_OPS = 16 };

/*
 * Reads a configuration: `aipp_op { name: value ... }`, as text of protobuf. The text need not end with a 0.
 * DP_ERR_ARGUMENT with the line and what was expected.
 */
dp_status dp_aipp_parse(const char *text, size_t size_bytes, dp_aipp_op ops[DP_AIPP_OPS], int *out_n);

#endif
