/*
 * picture_sum.c - sums of quantised pictures:
 *   picture_combine(x, numbers, y, factors) -> z    z = (x - zero) * f * factors + y * g + shift, rounded and bounded;
 *                                                   numbers [4, channels]: f, zero, g, shift; y: a picture like x;
 *                                                   factors: float [batch or 1, 1, 1, channels]
 *   picture_mean(x, numbers) -> y                   float [batch, 1, 1, channels]: the mean of (x - zero) * scale over
 *                                                   all pixels; numbers [2, channels]: scale, zero
 */
#include <string.h>

#include "ops/quant/picture.h"
#include "ops/tiles.h"

enum { RUN = 1024, NUMBERS = 4, LINES_BYTES = 1 << 15 };

typedef struct state {
    dp_picture x, y, z;
    int numbers_slot, factors_slot;
    int64_t factors_stride; /* from image to image */
    int64_t unit;           /* pixels of a piece */
    dp_plan *plan;          /* of a run */
} state;

/* Numbers of so many pixels one behind the other: factors, those of y, summands. */
static void spread(const state *s, int64_t image, size_t pixels, float *f, float *g, float *shift) {
    const size_t n = (size_t)s->x.channels;
    const float *numbers = dp_plan_data(s->plan, s->numbers_slot), *factors = NULL;
    if (s->factors_slot >= 0)
        factors = (const float *)dp_plan_data(s->plan, s->factors_slot) + image * s->factors_stride;
    for (size_t c = 0; c < n; c++) {
        f[c] = factors ? numbers[c] * factors[c] : numbers[c];
        g[c] = numbers[2 * n + c];
        shift[c] = numbers[3 * n + c] - numbers[n + c] * f[c];
    }
    for (size_t i = n; i < pixels * n; i++) {
        f[i] = f[i - n];
        g[i] = g[i - n];
        shift[i] = shift[i - n];
    }
}

static size_t pixels_at_once(const state *s) {
    const bool side_by_side =
        s->x.pixel == s->x.channels && s->z.pixel == s->z.channels && (s->y.slot < 0 || s->y.pixel == s->y.channels);
    return side_by_side && s->x.channels < RUN ? (size_t)(RUN / s->x.channels) : 1;
}

static void combine_piece(void *context, size_t tile, void *scratch) {
    const state *s = context;
    const int64_t area = s->x.height * s->x.width, per_image = (area + s->unit - 1) / s->unit;
    const int64_t image = (int64_t)tile / per_image, first = (int64_t)tile % per_image * s->unit,
                  end = first + s->unit < area ? first + s->unit : area;
    const size_t pixels = pixels_at_once(s), n = (size_t)s->x.channels;
    float *f = scratch, *g = f + pixels * n, *shift = g + pixels * n;
    spread(s, image, pixels, f, g, shift);
    const uint8_t *x = (const uint8_t *)dp_plan_data(s->plan, s->x.slot) + image * area * s->x.pixel;
    const uint8_t *y =
        s->y.slot < 0 ? NULL : (const uint8_t *)dp_plan_data(s->plan, s->y.slot) + image * area * s->y.pixel;
    uint8_t *z = (uint8_t *)dp_plan_data(s->plan, s->z.slot) + image * area * s->z.pixel;
    for (int64_t at = first; at < end; at += (int64_t)pixels) {
        const size_t count = (size_t)(end - at) < pixels ? (size_t)(end - at) : pixels;
        dp_bytes_current()->combine(z + at * s->z.pixel, x + at * s->x.pixel, f, y ? y + at * s->y.pixel : NULL, g,
                                    shift, count * n);
    }
}

static dp_status run_combine(dp_plan *plan) {
    state s = *(const state *)dp_plan_state(plan);
    s.plan = plan;
    const int64_t area = s.x.height * s.x.width;
    if (!area || !s.x.batch || !s.x.channels)
        return DP_OK;
    return dp_tiles_run((size_t)(s.x.batch * ((area + s.unit - 1) / s.unit)),
                        3 * sizeof(float) * pixels_at_once(&s) * (size_t)s.x.channels + 64, combine_piece, &s);
}

static dp_status take_factors(const dp_arg *arg, state *s) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_F32));
    if (status != DP_OK)
        return status;
    if (t->rank != 4 || t->dims[1] != 1 || t->dims[2] != 1 || t->dims[3] != s->x.channels ||
        (t->dims[0] != 1 && t->dims[0] != s->x.batch) || !dp_tensor_is_contiguous(t))
        return dp_fail(DP_ERR_ARGUMENT, "%s must be [batch or 1, 1, 1, %lld], contiguous", arg->name,
                       (long long)s->x.channels);
    s->factors_slot = arg->slot;
    s->factors_stride = t->dims[0] == 1 ? 0 : s->x.channels;
    return DP_OK;
}

static dp_status make_plan(const dp_operator_call *call, const state *s, dp_status (*run)(dp_plan *plan),
                           dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = "bytes";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_combine(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    state s = {.y.slot = -1, .factors_slot = -1};
    dp_status status = dp_picture_of(&in[0], false, &s.x);
    if (status != DP_OK)
        return status;
    const int64_t dims[4] = {s.x.batch, s.x.height, s.x.width, s.x.channels};
    status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, 4, "those of x");
    if (status == DP_OK)
        status = dp_places_expect(&call->out[0]);
    if (status == DP_OK)
        status = dp_picture_of(&call->out[0], false, &s.z);
    if (status == DP_OK)
        status = dp_picture_numbers(&in[1], NUMBERS, s.x.channels);
    if (status == DP_OK && in[2].kind == DP_ARG_TENSOR) {
        status = dp_picture_of(&in[2], false, &s.y);
        if (status == DP_OK)
            status = dp_shape_expect(in[2].as.tensor, in[2].name, dims, 4, "those of x");
    }
    if (status == DP_OK && in[3].kind == DP_ARG_TENSOR)
        status = take_factors(&in[3], &s);
    s.numbers_slot = in[1].slot;
    s.unit = s.x.channels > 0 && s.x.channels < LINES_BYTES ? LINES_BYTES / s.x.channels : 1;
    return status == DP_OK ? make_plan(call, &s, run_combine, out_plan) : status;
}

/* An image: sums of all its pixels. */
static void mean_piece(void *context, size_t image, void *scratch) {
    const state *s = context;
    const dp_picture *x = &s->x;
    const int64_t area = x->height * x->width;
    const size_t n = (size_t)x->channels, at_once = pixels_at_once(s), run = at_once * n;
    const float *numbers = dp_plan_data(s->plan, s->numbers_slot);
    const uint8_t *from = (const uint8_t *)dp_plan_data(s->plan, x->slot) + (int64_t)image * area * x->pixel;
    float *to = (float *)dp_plan_data(s->plan, s->z.slot) + (int64_t)image * x->channels;
    uint32_t *sums = scratch; /* 2^24 pixels fit */
    memset(sums, 0, run * sizeof *sums);
    for (int64_t at = 0; at < area; at += (int64_t)at_once) {
        const size_t count = (size_t)(area - at) < at_once ? (size_t)(area - at) : at_once;
        dp_bytes_current()->add(sums, from + at * x->pixel, count * n);
    }
    for (size_t c = 0; c < n; c++) {
        uint64_t sum = 0;
        for (size_t i = c; i < run; i += n)
            sum += sums[i];
        to[c] = (float)(((double)sum / (double)area - (double)numbers[n + c]) * (double)numbers[c]);
    }
}

static dp_status run_mean(dp_plan *plan) {
    state s = *(const state *)dp_plan_state(plan);
    s.plan = plan;
    return dp_tiles_run((size_t)s.x.batch, sizeof(uint32_t) * pixels_at_once(&s) * (size_t)s.x.channels + 64,
                        mean_piece, &s);
}

static dp_status prepare_mean(const dp_operator_call *call, dp_plan **out_plan) {
    enum { PIXELS_MOST = 1 << 24 };
    const dp_arg *in = call->in, *y = &call->out[0];
    state s = {.y.slot = -1, .factors_slot = -1};
    dp_status status = dp_picture_of(&in[0], false, &s.x);
    if (status != DP_OK)
        return status;
    if (s.x.channels < 1 || s.x.height < 1 || s.x.width < 1 || s.x.height > PIXELS_MOST / s.x.width)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has %lld x %lld pixels, but may have 1 to %d", in[0].name,
                       (long long)s.x.height, (long long)s.x.width, PIXELS_MOST);
    const int64_t dims[4] = {s.x.batch, 1, 1, s.x.channels};
    status = dp_shape_expect(y->as.tensor, y->name, dims, 4, "batch, 1, 1, channels");
    if (status == DP_OK)
        status = dp_element_expect(y, DP_EL_BIT(DP_F32));
    if (status == DP_OK && !dp_tensor_is_contiguous(y->as.tensor))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", y->name);
    if (status == DP_OK)
        status = dp_picture_numbers(&in[1], 2, s.x.channels);
    s.z = (dp_picture){.slot = y->slot, .channels = s.x.channels, .pixel = s.x.channels};
    s.numbers_slot = in[1].slot;
    return status == DP_OK ? make_plan(call, &s, run_mean, out_plan) : status;
}

extern const dp_function dp_quant_picture_combine, dp_quant_picture_mean;
const dp_function dp_quant_picture_combine = {"picture_combine", prepare_combine, NULL, 1 << 2 | 1 << 3, 0};
const dp_function dp_quant_picture_mean = {"picture_mean", prepare_mean, NULL, 0, 0};
