/* Reading a configuration of AIPP: the text form of protobuf, as far as such files use it. */
#include "media/aipp.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { SWITCH, INTEGER, REAL, FORMAT, MODE, NAME, RANK, SIZE, IGNORED } kind;

#define AT(field) offsetof(dp_aipp_op, aipp) + offsetof(dp_aipp, field)

static const struct {
    const char *name;
    kind kind;
    size_t at; /* in dp_aipp_op */
} settings[] = {
    {"aipp_mode", MODE, 0},
    {"related_input_rank", RANK, 0},
    {"related_input_name", NAME, 0},
    {"max_src_image_size", SIZE, 0},
    {"support_rotation", IGNORED, 0},
    {"single_line_mode", IGNORED, 0},
    {"input_format", FORMAT, AT(format)},
    {"src_image_size_w", INTEGER, AT(src_width)},
    {"src_image_size_h", INTEGER, AT(src_height)},
    {"crop", SWITCH, AT(crop)},
    {"load_start_pos_w", INTEGER, AT(crop_left)},
    {"load_start_pos_h", INTEGER, AT(crop_top)},
    {"crop_size_w", INTEGER, AT(crop_width)},
    {"crop_size_h", INTEGER, AT(crop_height)},
    {"resize", SWITCH, AT(resize)},
    {"resize_output_w", INTEGER, AT(resize_width)},
    {"resize_output_h", INTEGER, AT(resize_height)},
    {"padding", SWITCH, AT(padding)},
    {"left_padding_size", INTEGER, AT(pad_left)},
    {"right_padding_size", INTEGER, AT(pad_right)},
    {"top_padding_size", INTEGER, AT(pad_top)},
    {"bottom_padding_size", INTEGER, AT(pad_bottom)},
    {"padding_value", REAL, AT(pad_value)},
    {"csc_switch", SWITCH, AT(csc)},
    {"rbuv_swap_switch", SWITCH, AT(rbuv_swap)},
    {"ax_swap_switch", SWITCH, AT(ax_swap)},
    {"matrix_r0c0", INTEGER, AT(matrix[0])},
    {"matrix_r0c1", INTEGER, AT(matrix[1])},
    {"matrix_r0c2", INTEGER, AT(matrix[2])},
    {"matrix_r1c0", INTEGER, AT(matrix[3])},
    {"matrix_r1c1", INTEGER, AT(matrix[4])},
    {"matrix_r1c2", INTEGER, AT(matrix[5])},
    {"matrix_r2c0", INTEGER, AT(matrix[6])},
    {"matrix_r2c1", INTEGER, AT(matrix[7])},
    {"matrix_r2c2", INTEGER, AT(matrix[8])},
    {"output_bias_0", INTEGER, AT(output_bias[0])},
    {"output_bias_1", INTEGER, AT(output_bias[1])},
    {"output_bias_2", INTEGER, AT(output_bias[2])},
    {"input_bias_0", INTEGER, AT(input_bias[0])},
    {"input_bias_1", INTEGER, AT(input_bias[1])},
    {"input_bias_2", INTEGER, AT(input_bias[2])},
    {"mean_chn_0", INTEGER, AT(mean[0])},
    {"mean_chn_1", INTEGER, AT(mean[1])},
    {"mean_chn_2", INTEGER, AT(mean[2])},
    {"mean_chn_3", INTEGER, AT(mean[3])},
    {"min_chn_0", REAL, AT(min[0])},
    {"min_chn_1", REAL, AT(min[1])},
    {"min_chn_2", REAL, AT(min[2])},
    {"min_chn_3", REAL, AT(min[3])},
    {"var_reci_chn_0", REAL, AT(var_reci[0])},
    {"var_reci_chn_1", REAL, AT(var_reci[1])},
    {"var_reci_chn_2", REAL, AT(var_reci[2])},
    {"var_reci_chn_3", REAL, AT(var_reci[3])},
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static const struct {
    const char *name;
    int format;
} formats[] = {{"YUV420SP_U8", DP_AIPP_YUV420SP}, {"XRGB8888_U8", DP_AIPP_XRGB8888}, {"RGB888_U8", DP_AIPP_RGB888},
               {"YUV400_U8", DP_AIPP_YUV400},     {"ARGB8888_U8", DP_AIPP_ARGB8888}, {"YUYV_U8", DP_AIPP_YUYV},
               {"YUV422SP_U8", DP_AIPP_YUV422SP}, {"AYUV444_U8", DP_AIPP_AYUV444}};

typedef struct cursor {
    const char *at, *end;
    int line;
    char word[128]; /* the last one taken */
} cursor;

static void skip(cursor *c) {
    for (bool comment = false; c->at < c->end; c->at++) {
        if (*c->at == '\n') {
            c->line++;
            comment = false;
        } else if (*c->at == '#') {
            comment = true;
        } else if (!comment && !strchr(" \t\r,;", *c->at)) {
            return;
        } else if (!comment && *c->at == '\0') { /* strchr finds the end of its text, too */
            return;
        }
    }
}

static bool take(cursor *c, char mark) {
    skip(c);
    if (c->at == c->end || *c->at != mark)
        return false;
    c->at++;
    return true;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_.+-/", c));
}

/* A name, a number, or a text in quotes. */
static bool take_word(cursor *c) {
    size_t n = 0;
    skip(c);
    char quote = c->at < c->end && (*c->at == '"' || *c->at == '\'') ? *c->at++ : '\0';
    while (c->at < c->end && (quote ? *c->at != quote && *c->at != '\n' && *c->at : is_word(*c->at))) {
        if (n + 1 == sizeof c->word)
            return false;
        c->word[n++] = *c->at++;
    }
    c->word[n] = '\0';
    return quote ? take(c, quote) : n > 0;
}

static dp_status wrong(const cursor *c, const char *name, const char *expected) {
    return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: %s is \"%.60s\", but must be %s", c->line, name, c->word,
                   expected);
}

static dp_status read_integer(const cursor *c, const char *name, int64_t least, int64_t most, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(c->word, &end, 10);
    if (end == c->word || *end || errno || value < least || value > most)
        return wrong(c, name, least < 0 ? "a whole number" : "a whole number from 0");
    *out = value;
    return DP_OK;
}

static dp_status read_real(const cursor *c, const char *name, float *out) {
    char *end;
    float value = strtof(c->word, &end);
    if (end == c->word || *end || !isfinite(value))
        return wrong(c, name, "a number");
    *out = value;
    return DP_OK;
}

static dp_status read_switch(const cursor *c, const char *name, int32_t *out) {
    bool on = strcmp(c->word, "true") == 0 || strcmp(c->word, "1") == 0;
    if (!on && strcmp(c->word, "false") != 0 && strcmp(c->word, "0") != 0)
        return wrong(c, name, "true or false");
    *out = on;
    return DP_OK;
}

static dp_status read_format(const cursor *c, const char *name, dp_aipp_op *op) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(c->word, formats[i].name) == 0) {
            op->aipp.format = formats[i].format;
            op->has_format = true;
            return DP_OK;
        }
    return wrong(c, name,
                 "YUV420SP_U8, YUV422SP_U8, YUYV_U8, YUV400_U8, RGB888_U8, XRGB8888_U8, ARGB8888_U8 or AYUV444_U8");
}

static dp_status read_setting(const cursor *c, int i, dp_aipp_op *op) {
    const char *name = settings[i].name;
    void *place = (char *)op + settings[i].at;
    int64_t number = 0;
    dp_status status = DP_OK;
    switch (settings[i].kind) {
    case SWITCH:
        return read_switch(c, name, place);
    case INTEGER:
        status = read_integer(c, name, INT32_MIN, INT32_MAX, &number);
        *(int32_t *)place = (int32_t)number;
        op->has_matrix |= strncmp(name, "matrix", 6) == 0;
        return status;
    case REAL:
        return read_real(c, name, place);
    case FORMAT:
        return read_format(c, name, op);
    case MODE:
        op->is_dynamic = strcmp(c->word, "dynamic") == 0;
        return op->is_dynamic || strcmp(c->word, "static") == 0 ? DP_OK : wrong(c, name, "static or dynamic");
    case NAME:
        snprintf(op->input_name, sizeof op->input_name, "%s", c->word);
        return DP_OK;
    case RANK:
        status = read_integer(c, name, 0, INT32_MAX, &number);
        op->input = (int32_t)number;
        return status;
    case SIZE:
        return read_integer(c, name, 0, INT64_MAX, &op->max_src_image_size);
    case IGNORED:
        return DP_OK;
    }
    return DP_OK;
}

static dp_status read_line(cursor *c, dp_aipp_op *op) {
    char name[sizeof c->word];
    if (!take_word(c))
        return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: a setting or } is expected", c->line);
    memcpy(name, c->word, sizeof name);
    if (!take(c, ':') || !take_word(c))
        return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: after %.60s a : and a value are expected", c->line,
                       name);
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0)
            return read_setting(c, i, op);
    return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: there is no setting %.60s (docs/pictures.md lists them)",
                   c->line, name);
}

static dp_status check_op(const cursor *c, const dp_aipp_op *op) {
    if (op->is_dynamic)
        return op->max_src_image_size ? DP_OK
                                      : dp_fail(DP_ERR_ARGUMENT,
                                                "insert_op_conf, line %d: aipp_mode is dynamic, which needs "
                                                "max_src_image_size, the bytes of the largest picture",
                                                c->line);
    if (!op->has_format)
        return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: input_format is missing, like YUV420SP_U8", c->line);
    if (op->aipp.csc && !op->has_matrix)
        return dp_fail(DP_ERR_ARGUMENT,
                       "insert_op_conf, line %d: csc_switch is true, but there is no matrix; for pictures out of JPEG "
                       "files to RGB it is 256 0 359, 256 -88 -183, 256 454 0 with input_bias 0 128 128",
                       c->line);
    return DP_OK;
}

dp_status dp_aipp_parse(const char *text, size_t size_bytes, dp_aipp_op ops[DP_AIPP_OPS], int *out_n) {
    cursor c = {.at = text, .end = text + size_bytes, .line = 1};
    *out_n = 0;
    for (skip(&c); c.at < c.end; skip(&c)) {
        if (!take_word(&c) || strcmp(c.word, "aipp_op") != 0)
            return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: aipp_op { is expected", c.line);
        take(&c, ':');
        if (!take(&c, '{'))
            return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: after aipp_op a { is expected", c.line);
        if (*out_n == DP_AIPP_OPS)
            return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf, line %d: there are more than %d aipp_op", c.line,
                           DP_AIPP_OPS);
        dp_aipp_op *op = &ops[*out_n];
        *op = (dp_aipp_op){0};
        dp_aipp_clear(&op->aipp);
        dp_status status = DP_OK;
        while (status == DP_OK && !take(&c, '}'))
            status = read_line(&c, op);
        if (status == DP_OK)
            status = check_op(&c, op);
        if (status != DP_OK)
            return status;
        ++*out_n;
    }
    if (!*out_n)
        return dp_fail(DP_ERR_ARGUMENT, "insert_op_conf: the file has no aipp_op { ... }");
    return DP_OK;
}
