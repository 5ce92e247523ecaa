/*
 * picture.c - pictures of small integers: from floats and back, and the greatest of a window.
 *   picture_quantise(x, scale, zero, last, four) -> y    x [N, C, H, W] of floats, or with last [N, H, W, C]; y [N, H,
 * W, C], or with four [N, H, W, 4] of up to three channels picture_dequantise(x, scale, zero, last) -> y        the
 * other way picture_max_pool(x, ksize, strides, pads) -> y    pads: top, bottom, left, right; outside is less than
 * everything
 */
#include "ops/quant/picture.h"

#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "ops/tiles.h"

static dp_picture_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_picture_fill_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_picture_fill_avx2(&table);
        return;
    }
#endif
    dp_picture_fill_generic(&table);
}
const dp_picture_table *dp_picture_current(void) {
    pthread_once(&once, fill_table);
    return &table;
}

dp_status dp_picture_of(const dp_arg *arg, bool may_be_float, dp_picture *out) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_U8) | (may_be_float ? DP_EL_BIT(DP_F32) : 0));
    if (status != DP_OK)
        return status;
    if (t->rank != 4 || (t->strides[3] != 1 && t->dims[3] > 1))
        return dp_fail(
            DP_ERR_ARGUMENT,
            "%s must have 4 dimensions: batch, height, width, channels, the channels side by side; it has %d",
            arg->name, t->rank);
    *out = (dp_picture){arg->slot, t->dims[0], t->dims[1], t->dims[2], t->dims[3], t->dims[3]};
    int64_t next = -1;
    for (int d = 2; d >= 0; d--) {
        if (t->dims[d] == 1)
            continue;
        if (next >= 0 && t->strides[d] != next)
            return dp_fail(DP_ERR_ARGUMENT, "%s: pixels are not evenly spaced, as they must be", arg->name);
        if (next < 0)
            out->pixel = t->strides[d];
        next = t->strides[d] * t->dims[d];
    }
    return DP_OK;
}

dp_status dp_picture_numbers(const dp_arg *arg, int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_F32));
    if (status == DP_OK)
        status = dp_shape_expect(arg->as.tensor, arg->name, rows == 1 ? &dims[1] : dims, rows == 1 ? 1 : 2,
                                 "one per channel");
    if (status == DP_OK && !dp_tensor_is_contiguous(arg->as.tensor))
        status = dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous", arg->name);
    return status;
}

dp_status dp_picture_steps(const dp_arg *arg, int64_t *out_y, int64_t *out_x) {
    enum { STEP_MOST = 1 << 20 };
    const int64_t *list = arg->as.integers;
    if (arg->count != 4 || list[0] != 1 || list[3] != 1 || list[1] < 1 || list[2] < 1 || list[1] > STEP_MOST ||
        list[2] > STEP_MOST)
        return dp_fail(DP_ERR_ARGUMENT, "%s must have 4 numbers: 1, those of height and width (1 to %d), 1", arg->name,
                       STEP_MOST);
    *out_y = list[1];
    *out_x = list[2];
    return DP_OK;
}

/* From floats and back. */

enum { RUN = 1024 }; /* numbers of neighbouring pixels, one behind the other, at least */

typedef struct state {
    dp_picture picture;
    int float_slot, scale_slot, zero_slot;
    int64_t colours; /* channels of the floats: fewer than the picture has when it is filled up */
    dp_plan *plan;   /* of a run */
    bool forth, last;
} state;

/* Pixels whose numbers are laid out one behind the other. */
static size_t pixels_at_once(const dp_picture *p) {
    return p->pixel == p->channels && p->channels < RUN ? (size_t)(RUN / p->channels) : 1;
}

/* numbers[i] of so many pixels: factors and zeros (forth), or scales and zeros. */
static void spread(const state *s, size_t pixels, float *factors, float *zeros) {
    const float *scale = dp_plan_data(s->plan, s->scale_slot), *zero = dp_plan_data(s->plan, s->zero_slot);
    const size_t channels = (size_t)s->picture.channels;
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = 0; c < channels; c++) {
            const bool is_colour = c < (size_t)s->colours;
            factors[i * channels + c] = !is_colour ? 0 : s->forth ? 1 / scale[c] : scale[c];
            zeros[i * channels + c] = is_colour ? zero[c] : 0;
        }
}

/* Row (n, y), both sides with the channels last. */
static void convert_last(const state *s, uint8_t *row, float *floats, float *numbers) {
    const dp_bytes_table *t = dp_bytes_current();
    const dp_picture *p = &s->picture;
    const size_t channels = (size_t)p->channels, pixels = pixels_at_once(p), width = (size_t)p->width;
    spread(s, pixels, numbers, numbers + pixels * channels);
    for (size_t x = 0; x < width; x += pixels) {
        const size_t n = (width - x < pixels ? width - x : pixels) * channels;
        uint8_t *bytes = row + x * (size_t)p->pixel;
        if (s->forth)
            t->quantise(bytes, floats + x * channels, numbers, numbers + pixels * channels, n);
        else
            t->dequantise(floats + x * channels, bytes, numbers, numbers + pixels * channels, n);
    }
}

/* A row of planes; scratch: two floats and a byte per element of a row. */
static void convert_planes(const state *s, uint8_t *row, float *floats, float *numbers) {
    const dp_bytes_table *t = dp_bytes_current();
    const dp_picture *p = &s->picture;
    const size_t width = (size_t)p->width, channels = (size_t)p->channels, plane = (size_t)(p->height * p->width);
    float *factors = numbers, *zeros = numbers + width;
    uint8_t *planes = (uint8_t *)(zeros + width);
    const float *scale = dp_plan_data(s->plan, s->scale_slot), *zero = dp_plan_data(s->plan, s->zero_slot);
    if (!s->forth)
        dp_picture_current()->transpose(planes, row, width, channels);
    for (size_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < width; i++) {
            factors[i] = s->forth ? 1 / scale[c] : scale[c];
            zeros[i] = zero[c];
        }
        if (s->forth)
            t->quantise(planes + c * width, floats + c * plane, factors, zeros, width);
        else
            t->dequantise(floats + c * plane, planes + c * width, factors, zeros, width);
    }
    if (s->forth)
        dp_picture_current()->transpose(row, planes, channels, width);
}

/* A row of up to three planes to pixels of four bytes. */
static void convert_colours(const state *s, uint8_t *row, const float *floats) {
    const dp_picture *p = &s->picture;
    const float *scale = dp_plan_data(s->plan, s->scale_slot), *zero = dp_plan_data(s->plan, s->zero_slot), *planes[4];
    float factors[4];
    for (int64_t c = 0; c < s->colours; c++) {
        planes[c] = floats + c * p->height * p->width;
        factors[c] = 1 / scale[c];
    }
    dp_bytes_current()->quantise_planes(row, planes, (size_t)s->colours, factors, zero, (size_t)p->width);
}

static void convert_row(void *context, size_t tile, void *scratch) {
    state *s = context;
    const dp_picture *p = &s->picture;
    const int64_t n = (int64_t)tile / p->height, y = (int64_t)tile % p->height;
    uint8_t *row = (uint8_t *)dp_plan_data(s->plan, p->slot) + (int64_t)tile * p->width * p->pixel;
    float *floats = dp_plan_data(s->plan, s->float_slot);
    if (s->last)
        convert_last(s, row, floats + (int64_t)tile * p->width * p->channels, scratch);
    else if (s->colours < p->channels)
        convert_colours(s, row, floats + (n * s->colours * p->height + y) * p->width);
    else
        convert_planes(s, row, floats + (n * p->channels * p->height + y) * p->width, scratch);
}

static dp_status run_conversion(dp_plan *plan) {
    state s = *(const state *)dp_plan_state(plan);
    const dp_picture *p = &s.picture;
    s.plan = plan;
    const size_t bytes = s.last ? 2 * sizeof(float) * pixels_at_once(p) * (size_t)p->channels
                                : (size_t)p->width * (2 * sizeof(float) + (size_t)p->channels);
    return p->width && p->channels ? dp_tiles_run((size_t)(p->batch * p->height), bytes + 64, convert_row, &s) : DP_OK;
}

static dp_status prepare_conversion(const dp_operator_call *call, bool forth, dp_plan **out_plan) {
    const dp_arg *small = forth ? &call->out[0] : &call->in[0], *wide = forth ? &call->in[0] : &call->out[0];
    const dp_tensor *t = (forth ? wide : small)->as.tensor;
    state s = {.forth = forth, .last = dp_arg_integer(&call->in[3], 0) != 0};
    dp_status status = dp_element_expect(wide, DP_EL_BIT(DP_F32));
    if (status == DP_OK && t->rank != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4", (forth ? wide : small)->name, t->rank);
    int64_t dims[4] = {t->dims[0], t->dims[forth ? 2 : 3], t->dims[forth ? 3 : 1], t->dims[forth ? 1 : 2]};
    if (s.last)
        memcpy(dims, t->dims, sizeof dims);
    s.colours = dims[forth || s.last ? 3 : 1];
    if (status == DP_OK && forth && !s.last && dp_arg_integer(&call->in[4], 0) != 0) {
        if (s.colours > 3)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld channels, but at most 3 are filled up to four", wide->name,
                           (long long)s.colours);
        dims[3] = 4;
    }
    if (status == DP_OK)
        status =
            dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, 4, "those of x with the channels moved");
    if (status == DP_OK)
        status = dp_picture_of(small, false, &s.picture);
    if (status == DP_OK && !s.last && s.picture.pixel != s.picture.channels)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", small->name);
    if (status == DP_OK && !dp_tensor_is_contiguous(wide->as.tensor))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", wide->name);
    for (int i = 1; i < 3 && status == DP_OK; i++)
        status = dp_picture_numbers(&call->in[i], 1, s.colours);
    if (status != DP_OK)
        return status;
    s.float_slot = wide->slot;
    s.scale_slot = call->in[1].slot;
    s.zero_slot = call->in[2].slot;
    dp_plan *plan = dp_plan_new(call, run_conversion, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "rows";
    *out_plan = plan;
    return DP_OK;
}
static dp_status prepare_quantise(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare_conversion(call, true, out_plan);
}
static dp_status prepare_dequantise(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare_conversion(call, false, out_plan);
}

/* The greatest of a window. */

typedef struct pool_state {
    dp_picture x, y;
    int64_t kernel_y, kernel_x, step_y, step_x, pad_y, pad_x;
    dp_plan *plan;
} pool_state;

static void pool_row(void *context, size_t tile, void *scratch) {
    pool_state *s = context;
    const dp_picture *x = &s->x, *y = &s->y;
    const int64_t n = (int64_t)tile / y->height, top = (int64_t)tile % y->height * s->step_y - s->pad_y;
    const uint8_t *from = (const uint8_t *)dp_plan_data(s->plan, x->slot) + n * x->height * x->width * x->pixel;
    uint8_t *to = (uint8_t *)dp_plan_data(s->plan, y->slot) + (int64_t)tile * y->width * y->pixel;
    const uint8_t **taps = scratch;
    for (int64_t ox = 0; ox < y->width; ox++, to += y->pixel) {
        const int64_t left = ox * s->step_x - s->pad_x;
        size_t n_taps = 0;
        for (int64_t iy = top < 0 ? 0 : top; iy < top + s->kernel_y && iy < x->height; iy++)
            for (int64_t ix = left < 0 ? 0 : left; ix < left + s->kernel_x && ix < x->width; ix++)
                taps[n_taps++] = from + (iy * x->width + ix) * x->pixel;
        if (n_taps)
            dp_picture_current()->greatest(to, taps, n_taps, (size_t)x->channels);
        else
            memset(to, 0, (size_t)x->channels);
    }
}

static dp_status run_pool(dp_plan *plan) {
    pool_state s = *(const pool_state *)dp_plan_state(plan);
    s.plan = plan;
    return dp_tiles_run((size_t)(s.y.batch * s.y.height), (size_t)(s.kernel_y * s.kernel_x) * sizeof(void *) + 64,
                        pool_row, &s);
}

static dp_status prepare_pool(const dp_operator_call *call, dp_plan **out_plan) {
    enum { WINDOW_MOST = 4096 };
    const dp_arg *in = call->in;
    pool_state s = {0};
    dp_status status = dp_picture_of(&in[0], false, &s.x);
    if (status == DP_OK)
        status = dp_picture_steps(&in[1], &s.kernel_y, &s.kernel_x);
    if (status == DP_OK)
        status = dp_picture_steps(&in[2], &s.step_y, &s.step_x);
    if (status != DP_OK)
        return status;
    const int64_t *pads = in[3].as.integers;
    for (int i = 0; i < 4; i++)
        if (in[3].count != 4 || pads[i] < 0 || pads[i] >= (i < 2 ? s.kernel_y : s.kernel_x))
            return dp_fail(DP_ERR_ARGUMENT, "%s must have 4 numbers from 0, each less than the window", in[3].name);
    if (s.kernel_y * s.kernel_x > WINDOW_MOST)
        return dp_fail(DP_ERR_UNSUPPORTED, "a window of %lld x %lld is larger than %d", (long long)s.kernel_y,
                       (long long)s.kernel_x, WINDOW_MOST);
    s.pad_y = pads[0];
    s.pad_x = pads[2];
    int64_t height = s.x.height + pads[0] + pads[1] - s.kernel_y, width = s.x.width + pads[2] + pads[3] - s.kernel_x;
    if (height < 0 || width < 0)
        return dp_fail(DP_ERR_ARGUMENT, "the window is larger than %s", in[0].name);
    int64_t dims[4] = {s.x.batch, height / s.step_y + 1, width / s.step_x + 1, s.x.channels};
    status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, 4, "the positions of the window");
    if (status == DP_OK)
        status = dp_picture_of(&call->out[0], false, &s.y);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run_pool, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "windows of bytes";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_quant_picture_quantise, dp_quant_picture_dequantise, dp_quant_picture_max_pool;
const dp_function dp_quant_picture_quantise = {"picture_quantise", prepare_quantise, NULL, 0, 0};
const dp_function dp_quant_picture_dequantise = {"picture_dequantise", prepare_dequantise, NULL, 0, 0};
const dp_function dp_quant_picture_max_pool = {"picture_max_pool", prepare_pool, NULL, 0, 0};
