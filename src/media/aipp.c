#include "media/aipp.h"

#include <stdatomic.h>
#include <string.h>

#include "base/half.h"
#include "base/scratch.h"
#include "media/apart.h"
#include "media/draw.h"
#include "runtime/pool.h"

enum { MATRIX_MOST = 1023, MATRIX_BITS = 8 }; /* factors below 4, as dp_colour_matrix has them */

void dp_aipp_clear(dp_aipp *aipp) {
    *aipp = (dp_aipp){.var_reci = {1, 1, 1, 1}};
}

/* The picture format with the same bytes. XRGB and AYUV come apart like ARGB, whose alpha they have as X and A. */
static int pixel_format(const dp_aipp *a) {
    switch (a->format) {
    case DP_AIPP_YUV420SP:
        return a->rbuv_swap ? DP_PIXEL_NV21 : DP_PIXEL_NV12;
    case DP_AIPP_YUV422SP:
        return a->rbuv_swap ? DP_PIXEL_YVU422SP : DP_PIXEL_YUV422SP;
    case DP_AIPP_YUYV:
        return a->rbuv_swap ? DP_PIXEL_YVYU : DP_PIXEL_YUYV;
    case DP_AIPP_YUV400:
        return DP_PIXEL_GRAY;
    case DP_AIPP_RGB888:
        return a->rbuv_swap ? DP_PIXEL_BGR : DP_PIXEL_RGB;
    case DP_AIPP_XRGB8888:
    case DP_AIPP_ARGB8888:
    case DP_AIPP_AYUV444:
        return a->ax_swap ? DP_PIXEL_RGBA : DP_PIXEL_ARGB;
    default:
        return DP_PIXEL_UNKNOWN;
    }
}

static bool has_four(const dp_aipp *a) {
    return a->format == DP_AIPP_XRGB8888 || a->format == DP_AIPP_ARGB8888 || a->format == DP_AIPP_AYUV444;
}

static dp_picture source_picture(const dp_aipp *a, const uint8_t *src) {
    dp_picture p = {.format = pixel_format(a),
                    .width = (uint32_t)a->src_width,
                    .height = (uint32_t)a->src_height,
                    .height_stride = (uint32_t)a->src_height,
                    .data = (uint8_t *)(uintptr_t)src};
    const dp_format *format = dp_format_of(p.format);
    p.width_stride = p.width * format->bytes >> (format->layout == DP_LAYOUT_PAIRS);
    p.size_bytes = dp_picture_bytes(&p);
    return p;
}

size_t dp_aipp_source_bytes(const dp_aipp *a) {
    return source_picture(a, NULL).size_bytes;
}

/* Checks. */

static dp_status check_range(const char *name, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be %lld to %lld", name, (long long)value, (long long)least,
                   (long long)most);
}

static dp_status check_source(dp_aipp *a, const dp_aipp_target *t) {
    const dp_format *format = dp_format_of(pixel_format(a));
    if (!format)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "input_format is %d, which is not supported: YUV420SP_U8, YUV422SP_U8, YUYV_U8, YUV400_U8, "
                       "RGB888_U8, XRGB8888_U8, ARGB8888_U8 and AYUV444_U8 are",
                       a->format);
    if (!a->src_width && !a->src_height) {
        a->src_width = (int32_t)t->width;
        a->src_height = (int32_t)t->height;
    }
    dp_status status = check_range("src_image_size_w", a->src_width, 1, DP_PICTURE_SIDE);
    if (status == DP_OK)
        status = check_range("src_image_size_h", a->src_height, 1, DP_PICTURE_SIDE);
    if (status == DP_OK && ((format->x_shift && a->src_width % 2) || (format->y_shift && a->src_height % 2)))
        status = dp_fail(DP_ERR_ARGUMENT,
                         "src_image_size_w is %d and src_image_size_h %d, but must be even where pixels share colours",
                         a->src_width, a->src_height);
    return status;
}

static dp_status check_crop(dp_aipp *a, const dp_aipp_target *t) {
    if (!a->crop) {
        a->crop_left = a->crop_top = 0;
        a->crop_width = a->src_width;
        a->crop_height = a->src_height;
        return DP_OK;
    }
    int64_t across = a->padding ? (int64_t)a->pad_left + a->pad_right : 0,
            down = a->padding ? (int64_t)a->pad_top + a->pad_bottom : 0;
    if (!a->crop_width && !a->crop_height && !a->resize && across < t->width && down < t->height) {
        a->crop_width = (int32_t)(t->width - across);
        a->crop_height = (int32_t)(t->height - down);
    }
    dp_status status = check_range("load_start_pos_w", a->crop_left, 0, a->src_width - 1);
    if (status == DP_OK)
        status = check_range("load_start_pos_h", a->crop_top, 0, a->src_height - 1);
    if (status == DP_OK)
        status = check_range("crop_size_w", a->crop_width, 1, a->src_width - a->crop_left);
    return status == DP_OK ? check_range("crop_size_h", a->crop_height, 1, a->src_height - a->crop_top) : status;
}

static dp_status check_sizes(dp_aipp *a, const dp_aipp_target *t) {
    dp_status status = DP_OK;
    if (!a->padding)
        a->pad_left = a->pad_right = a->pad_top = a->pad_bottom = 0;
    const int32_t pads[] = {a->pad_left, a->pad_right, a->pad_top, a->pad_bottom};
    static const char *const names[] = {"left_padding_size", "right_padding_size", "top_padding_size",
                                        "bottom_padding_size"};
    for (int i = 0; i < 4 && status == DP_OK; i++)
        status = check_range(names[i], pads[i], 0, DP_PICTURE_SIDE);
    int64_t across = (int64_t)t->width - a->pad_left - a->pad_right,
            down = (int64_t)t->height - a->pad_top - a->pad_bottom;
    if (status == DP_OK && (across < 1 || down < 1))
        status = dp_fail(DP_ERR_ARGUMENT, "the padding leaves nothing of the model's %u x %u", t->width, t->height);
    if (status != DP_OK)
        return status;
    if (a->resize && !a->resize_width && !a->resize_height) {
        a->resize_width = (int32_t)across;
        a->resize_height = (int32_t)down;
    }
    int64_t width = a->resize ? a->resize_width : a->crop_width, height = a->resize ? a->resize_height : a->crop_height;
    if (width != across || height != down)
        return dp_fail(DP_ERR_ARGUMENT,
                       "the picture is %d x %d, %s%lld x %lld%s, but the model's input is %u x %u: set %s",
                       a->src_width, a->src_height,
                       a->resize ? "resized to "
                       : a->crop ? "cut to "
                                 : "that is ",
                       (long long)width, (long long)height, a->padding ? " before the padding" : "", t->width,
                       t->height, "src_image_size, crop, resize or padding so that they agree");
    return DP_OK;
}

static dp_status check_channels(const dp_aipp *a, const dp_aipp_target *t) {
    uint32_t gives = a->csc ? 3 : a->format == DP_AIPP_YUV400 ? 1 : 3;
    bool fits = t->channels == gives || (a->csc && t->channels == 1) || (!a->csc && has_four(a) && t->channels == 4);
    if (!fits)
        return dp_fail(DP_ERR_ARGUMENT, "the picture gives %u channels, but the model's input has %u", gives,
                       t->channels);
    if (a->csc && a->format == DP_AIPP_YUV400)
        return dp_fail(DP_ERR_ARGUMENT, "csc_switch is true, but a picture of YUV400_U8 has no colours");
    return DP_OK;
}

static dp_status check_numbers(const dp_aipp *a) {
    dp_status status = DP_OK;
    for (int i = 0; i < 9 && status == DP_OK && a->csc; i++)
        status = check_range("a matrix_r.c.", a->matrix[i], -MATRIX_MOST, MATRIX_MOST);
    for (int i = 0; i < 3 && status == DP_OK; i++) {
        status = check_range("an input_bias", a->input_bias[i], 0, 255);
        if (status == DP_OK)
            status = check_range("an output_bias", a->output_bias[i], 0, 255);
    }
    for (int i = 0; i < 4 && status == DP_OK; i++)
        status = check_range("a mean_chn", a->mean[i], -32768, 32767);
    return status;
}

dp_status dp_aipp_complete(dp_aipp *a, const dp_aipp_target *t) {
    dp_status status = check_source(a, t);
    if (status == DP_OK)
        status = check_crop(a, t);
    if (status == DP_OK)
        status = check_sizes(a, t);
    if (status == DP_OK)
        status = check_channels(a, t);
    return status == DP_OK ? check_numbers(a) : status;
}

/* Running. */

typedef struct work {
    const dp_aipp *aipp;
    const dp_aipp_target *target;
    dp_row_source source;
    const dp_rows *rows;
    dp_colour_matrix matrix;
    char *out;
    _Atomic bool starved;
} work;

static dp_colour_matrix matrix_of(const dp_aipp *a) {
    dp_colour_matrix m;
    for (int i = 0; i < 3; i++) {
        m.bias[i] = a->output_bias[i] * (1 << DP_COLOUR_BITS);
        for (int k = 0; k < 3; k++) {
            m.c[i][k] = (int16_t)(a->matrix[3 * i + k] * (1 << (DP_COLOUR_BITS - MATRIX_BITS)));
            m.bias[i] -= m.c[i][k] * a->input_bias[k];
        }
    }
    return m;
}

/* Element x of channel c in row y. */
static char *place(const work *w, uint32_t c, uint32_t y, uint32_t x) {
    const dp_aipp_target *t = w->target;
    size_t at =
        t->channels_last ? ((size_t)y * t->width + x) * t->channels + c : ((size_t)c * t->height + y) * t->width + x;
    return w->out + at * (t->is_half ? 2 : 4);
}

static void put(const work *w, uint32_t c, uint32_t y, uint32_t x, const float *values, uint32_t n) {
    size_t step = w->target->channels_last ? w->target->channels : 1;
    char *to = place(w, c, y, x);
    if (w->target->is_half)
        for (uint32_t i = 0; i < n; i++)
            ((uint16_t *)(void *)to)[i * step] = dp_f16_from_f32(values[i]);
    else if (step == 1)
        memcpy(to, values, n * sizeof *values);
    else
        for (uint32_t i = 0; i < n; i++)
            ((float *)(void *)to)[i * step] = values[i];
}

static void put_padding(const work *w, uint32_t y, uint32_t begin, uint32_t end) {
    for (uint32_t c = 0; c < w->target->channels; c++)
        for (uint32_t x = begin; x < end; x++)
            put(w, c, y, x, &w->aipp->pad_value, 1);
}

/* The channels as the model counts them: X, A first where it has four. */
static void order(const work *w, const dp_channels *in, uint8_t *ordered[4]) {
    const dp_aipp *a = w->aipp;
    bool four = w->target->channels == 4, yuv = a->format == DP_AIPP_AYUV444;
    /* formats that have no swapped form of their own */
    bool swap = a->rbuv_swap && has_four(a);
    int first = swap && !yuv ? 2 : 0, second = swap && yuv ? 2 : 1, third = swap ? (yuv ? 1 : 0) : 2;
    int at = 0;
    if (four)
        ordered[at++] = in->c[3];
    ordered[at++] = in->c[first];
    ordered[at++] = in->c[second];
    ordered[at++] = in->c[third];
    if (!four)
        ordered[at] = in->c[3];
}

/* Rows [begin, end) of the picture, without the padding above and below. */
static void rows_of(void *context, size_t begin, size_t end) {
    work *w = context;
    const dp_aipp *a = w->aipp;
    uint32_t width = w->source.area.width;
    size_t room = dp_row_room(width);
    uint8_t *memory = dp_scratch(room * (7 + DP_ROW_SPARE) + room * sizeof(float));
    if (!memory) {
        atomic_store(&w->starved, true);
        return;
    }
    float *values = (float *)(void *)memory;
    uint8_t *bytes = memory + room * sizeof(float), *ordered[4];
    const dp_channels in = {{bytes, bytes + room, bytes + 2 * room, bytes + 3 * room}};
    uint8_t *const coloured[3] = {bytes + 4 * room, bytes + 5 * room, bytes + 6 * room};
    order(w, &in, ordered);
    for (size_t row = begin; row < end; row++) {
        uint32_t y = (uint32_t)row + (uint32_t)a->pad_top;
        dp_row_apart(&w->source, (uint32_t)row, &in, bytes + 7 * room);
        if (a->csc)
            w->rows->colour(&w->matrix, (const uint8_t *const *)ordered, coloured, width);
        for (uint32_t c = 0; c < w->target->channels; c++) {
            w->rows->normalise(a->csc ? coloured[c] : ordered[c], (float)a->mean[c], a->min[c], a->var_reci[c], values,
                               width);
            put(w, c, y, (uint32_t)a->pad_left, values, width);
        }
        put_padding(w, y, 0, (uint32_t)a->pad_left);
        put_padding(w, y, (uint32_t)a->pad_left + width, w->target->width);
    }
}

dp_status dp_aipp_run(const dp_aipp *aipp, const dp_aipp_target *target, const uint8_t *src, void *out) {
    dp_picture picture = source_picture(aipp, src), resized = {0};
    dp_area area = {(uint32_t)aipp->crop_left, (uint32_t)aipp->crop_top, (uint32_t)aipp->crop_width,
                    (uint32_t)aipp->crop_height};
    dp_status status = DP_OK;
    if (aipp->resize) {
        status = dp_picture_new(picture.format, (uint32_t)aipp->resize_width, (uint32_t)aipp->resize_height, &resized);
        const dp_area all = {0, 0, (uint32_t)aipp->resize_width, (uint32_t)aipp->resize_height};
        if (status == DP_OK)
            status = dp_picture_draw(&picture, &area, &resized, &all, &(dp_draw_options){0});
        picture = resized;
        area = all;
    }
    if (status == DP_OK) {
        work w = {.aipp = aipp,
                  .target = target,
                  .source = dp_row_source_of(&picture, &area),
                  .rows = dp_rows_get(),
                  .matrix = matrix_of(aipp),
                  .out = out};
        for (uint32_t y = 0; y < target->height; y++)
            if (y < (uint32_t)aipp->pad_top || y >= (uint32_t)aipp->pad_top + area.height)
                put_padding(&w, y, 0, target->width);
        dp_pool_for(area.height, 16384 / area.width + 1, rows_of, &w);
        if (atomic_load(&w.starved))
            status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to prepare a picture for a model: free some");
    }
    dp_picture_free(&resized);
    return status;
}
