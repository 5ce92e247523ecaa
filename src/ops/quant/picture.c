/*
 * picture.c - pictures of small integers: from floats and back, and the greatest of a window.
 *   picture_quantise(x, scale, zero, last) -> y      x [N, C, H, W] of floats, or with last [N, H, W, C]; y [N, H, W, C]
 *   picture_dequantise(x, scale, zero, last) -> y    the other way
 *   picture_max_pool(x, ksize, strides, pads) -> y    pads: top, bottom, left, right; outside is less than everything
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

dp_status dp_picture_of(const dp_arg *arg, dp_picture *out) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_U8));
    if (status != DP_OK)
        return status;
    if (t->rank != 4 || !dp_tensor_is_contiguous(t))
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s must be contiguous with 4 dimensions: batch, height, width, channels; it has %d", arg->name,
                       t->rank);
    *out = (dp_picture){arg->slot, t->dims[0], t->dims[1], t->dims[2], t->dims[3]};
    return DP_OK;
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

typedef struct state {
    dp_picture picture;
    int float_slot;
    float scale, zero;
    dp_plan *plan; /* of a run */
    bool forth, last;
} state;

/* Row (n, y): all its channels. */
static void convert_row(void *context, size_t tile, void *scratch) {
    state *s = context;
    const dp_picture_table *t = dp_picture_current();
    const dp_picture *p = &s->picture;
    const size_t width = (size_t)p->width, channels = (size_t)p->channels;
    const int64_t n = (int64_t)tile / p->height, y = (int64_t)tile % p->height;
    uint8_t *row = (uint8_t *)dp_plan_data(s->plan, p->slot) + tile * width * channels, *planes = scratch;
    float *floats = (float *)dp_plan_data(s->plan, s->float_slot) + (n * p->channels * p->height + y) * p->width;
    const size_t plane = (size_t)(p->height * p->width);
    if (s->last) { /* nothing moves */
        floats = (float *)dp_plan_data(s->plan, s->float_slot) + tile * width * channels;
        if (s->forth)
            t->quantise(row, floats, width * channels, 1 / s->scale, s->zero);
        else
            t->dequantise(floats, row, width * channels, s->scale, s->zero);
    } else if (s->forth) {
        for (size_t c = 0; c < channels; c++)
            t->quantise(planes + c * width, floats + c * plane, width, 1 / s->scale, s->zero);
        t->transpose(row, planes, channels, width);
    } else {
        t->transpose(planes, row, width, channels);
        for (size_t c = 0; c < channels; c++)
            t->dequantise(floats + c * plane, planes + c * width, width, s->scale, s->zero);
    }
}

static dp_status run_conversion(dp_plan *plan) {
    state s = *(const state *)dp_plan_state(plan);
    s.plan = plan;
    return dp_tiles_run((size_t)(s.picture.batch * s.picture.height),
                        (size_t)(s.picture.width * s.picture.channels) + 64, convert_row, &s);
}

static dp_status prepare_conversion(const dp_operator_call *call, bool forth, dp_plan **out_plan) {
    const dp_arg *small = forth ? &call->out[0] : &call->in[0], *wide = forth ? &call->in[0] : &call->out[0];
    const dp_tensor *t = (forth ? wide : small)->as.tensor;
    state s = {
        .forth = forth, .scale = (float)dp_arg_real(&call->in[1], 0), .zero = (float)dp_arg_integer(&call->in[2], 0)};
    dp_status status = dp_element_expect(wide, DP_EL_BIT(DP_F32));
    if (status == DP_OK && t->rank != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4", (forth ? wide : small)->name, t->rank);
    s.last = dp_arg_integer(&call->in[3], 0) != 0;
    int64_t dims[4] = {t->dims[0], t->dims[forth ? 2 : 3], t->dims[forth ? 3 : 1], t->dims[forth ? 1 : 2]};
    if (s.last)
        memcpy(dims, t->dims, sizeof dims);
    if (status == DP_OK)
        status =
            dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, 4, "those of x with the channels moved");
    if (status == DP_OK)
        status = dp_picture_of(small, &s.picture);
    if (status == DP_OK && !dp_tensor_is_contiguous(wide->as.tensor))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", wide->name);
    if (status == DP_OK && !(s.scale > 0 && s.scale < 1e30f && s.zero >= 0 && s.zero <= DP_PICTURE_MOST))
        return dp_fail(DP_ERR_ARGUMENT, "scale is %g and zero %g, but must be above 0, and 0 to %d", (double)s.scale,
                       (double)s.zero, DP_PICTURE_MOST);
    if (status != DP_OK)
        return status;
    s.float_slot = wide->slot;
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
    const uint8_t *from = (const uint8_t *)dp_plan_data(s->plan, x->slot) + n * x->height * x->width * x->channels;
    uint8_t *to = (uint8_t *)dp_plan_data(s->plan, y->slot) + (int64_t)tile * y->width * y->channels;
    const uint8_t **taps = scratch;
    for (int64_t ox = 0; ox < y->width; ox++, to += y->channels) {
        const int64_t left = ox * s->step_x - s->pad_x;
        size_t n_taps = 0;
        for (int64_t iy = top < 0 ? 0 : top; iy < top + s->kernel_y && iy < x->height; iy++)
            for (int64_t ix = left < 0 ? 0 : left; ix < left + s->kernel_x && ix < x->width; ix++)
                taps[n_taps++] = from + (iy * x->width + ix) * x->channels;
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
    dp_status status = dp_picture_of(&in[0], &s.x);
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
        status = dp_picture_of(&call->out[0], &s.y);
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
