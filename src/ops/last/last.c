/*
 * last.c - pooling, repetition, factors and means of images with channels last, [batch, height, width, channels] of
 * float, half or bfloat16 (all of a call's, computed in float): what compiled models have between convolutions with
 * panels (ops/conv). Functions:
 *
 *   max_pool(x, ksize, strides, pads, size) -> y
 *   average_pool(x, ksize, strides, pads, size, exclusive) -> y     exclusive: over the pixels inside the image
 *   repeat(x, factors) -> y                                         factors[0] lines, factors[1] pixels
 *   linear(x, size, align, half) -> y                               align: corners stay; half: pixels are areas; float
 *   scale(x, factors) -> y                                          factors: [batch or 1, 1, 1, channels]
 *   mean(x) -> y                                                    over all pixels; y [batch, 1, 1, channels]
 *
 * Channels lie side by side; pixels may be further apart. Lists are y, x; pads are top, bottom, left, right; size is
 * that of y.
 */
#include <string.h>

#include "ops/lines.h"
#include "ops/op.h"
#include "ops/tiles.h"
#include "ops/window.h"
#include "runtime/pool.h"

enum {
    WORK = 32768, /* floats read, at least, for a piece of work */
    RUN = 512,    /* factors of neighbouring pixels, one behind the other */
    BLOCK = 64    /* channels whose sums are kept at once */
};

/* From an element type to float and back; a float is not converted. */
typedef struct element {
    dp_convert_fn load, store; /* NULL: float */
    size_t size;               /* bytes of an element */
} element;

typedef struct last {
    int x_slot, y_slot, factors_slot;
    int64_t factors_stride; /* from image to image */
    int64_t channels, in[2], out[2], kernel[2], stride[2], pad[2];
    int64_t x_stride[3], y_stride[3]; /* batch, y, x */
    bool average, exclusive;
    int element;
} last;

static element element_of(const last *p) {
    const dp_elementwise_table *table = dp_elementwise_current();
    if (p->element == DP_F32)
        return (element){NULL, NULL, sizeof(float)};
    return (element){table->load[p->element][DP_COMPUTE_F32], table->store[p->element][DP_COMPUTE_F32],
                     sizeof(uint16_t)};
}

/* n elements as floats: where they are, or in `room`. */
static const float *as_floats(const element *l, const void *from, float *room, size_t n) {
    if (!l->load)
        return from;
    l->load(room, from, n);
    return room;
}
/* Where n results are made, and that they get to `to`. */
static float *place_of(const element *l, void *to, float *room) {
    return l->store ? room : to;
}
static void put(const element *l, void *to, const float *made, size_t n) {
    if (l->store)
        l->store(to, made, n);
}

static dp_status take_image(const dp_arg *arg, uint32_t elements) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    if (status != DP_OK)
        return status;
    if (t->rank != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4: batch, height, width, channels",
                       arg->name, t->rank);
    if (t->dims[3] > 1 && t->strides[3] != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s has a stride of %lld between channels, which must lie side by side",
                       arg->name, (long long)t->strides[3]);
    for (int d = 0; d < 4; d++)
        if (t->dims[d] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at most %d", arg->name, d,
                           (long long)t->dims[d], DP_WINDOW_LIMIT);
    return DP_OK;
}

static dp_status take_numbers(const dp_arg *arg, int64_t count, int64_t low, int64_t *out) {
    if (arg->count != count)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have %lld", arg->name, (long long)arg->count,
                       (long long)count);
    for (int64_t i = 0; i < count; i++) {
        out[i] = arg->as.integers[i];
        if (out[i] < low || out[i] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld, but must have %lld to %d", arg->name, (long long)out[i],
                           (long long)low, DP_WINDOW_LIMIT);
    }
    return DP_OK;
}

enum { FLOATS = DP_EL_BIT(DP_F32) | DP_EL_HALVES };

static dp_status take_images(const dp_operator_call *call, uint32_t elements, last *p) {
    const dp_arg *x = &call->in[0], *y = &call->out[0];
    dp_status status = take_image(x, elements);
    if (status != DP_OK)
        return status;
    p->element = x->as.tensor->element;
    p->x_slot = x->slot;
    p->y_slot = y->slot;
    p->channels = x->as.tensor->dims[3];
    for (int d = 0; d < 2; d++)
        p->in[d] = x->as.tensor->dims[1 + d];
    return DP_OK;
}

static dp_status take_output(const dp_operator_call *call, last *p) {
    const dp_tensor *x = call->in[0].as.tensor, *y = call->out[0].as.tensor;
    const int64_t dims[] = {x->dims[0], p->out[0], p->out[1], p->channels};
    dp_status status = dp_shape_expect(y, call->out[0].name, dims, 4, "input, window and size");
    if (status == DP_OK)
        status = take_image(&call->out[0], DP_EL_BIT(p->element));
    if (status == DP_OK)
        status = dp_places_expect(&call->out[0]);
    memcpy(p->x_stride, x->strides, sizeof p->x_stride);
    memcpy(p->y_stride, y->strides, sizeof p->y_stride);
    return status;
}

static dp_status make_plan(const dp_operator_call *call, const last *p, dp_status (*run)(dp_plan *),
                           dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *p);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), p, sizeof *p);
    plan->path = "channels last";
    *out_plan = plan;
    return DP_OK;
}

/* Lines of y, by number, are the pieces of work. */
static void run_lines(dp_plan *plan, int64_t reads, void (*fn)(void *, size_t, size_t)) {
    const last *p = dp_plan_state(plan);
    int64_t lines = plan->tensors[p->y_slot].view.dims[0] * p->out[0];
    if (lines > 0 && p->out[1] > 0 && p->channels > 0)
        dp_pool_for((size_t)lines, (size_t)(WORK / (reads > WORK ? WORK : reads < 1 ? 1 : reads)), fn, plan);
}

/* Pooling. */

/* Taps of a window that lie inside the image: [first, end). */
static void taps_of(const last *p, int d, int64_t at, int64_t *out_first, int64_t *out_end) {
    int64_t begin = at * p->stride[d] - p->pad[d];
    int64_t end = begin + p->kernel[d];
    *out_first = begin < 0 ? 0 : begin;
    *out_end = end < p->in[d] ? end : p->in[d];
}

/* n channels of a pixel, which x and y begin with. */
static void pool_pixel(const last *p, const element *l, const char *image, int64_t row, int64_t column, char *to,
                       size_t n) {
    const dp_line_table *lines = dp_line_current();
    int64_t first[2], end[2], taps = 0;
    float made[RUN], room[RUN], *y = place_of(l, to, made);
    taps_of(p, 0, row, &first[0], &end[0]);
    taps_of(p, 1, column, &first[1], &end[1]);
    for (int64_t i = first[0]; i < end[0]; i++) {
        for (int64_t k = first[1]; k < end[1]; k++, taps++) {
            const char *at = image + (i * p->x_stride[1] + k * p->x_stride[2]) * (int64_t)l->size;
            const float *x = as_floats(l, at, taps ? room : y, n);
            if (taps == 0 && x != y)
                memcpy(y, x, n * sizeof *y);
            else if (taps && p->average)
                lines->add(y, y, x, n);
            else if (taps)
                lines->larger(y, y, x, n);
        }
    }
    if (p->average)
        lines->scale(y, y, n, 1.0f / (float)(p->exclusive ? taps : p->kernel[0] * p->kernel[1]));
    put(l, to, y, n);
}

static void pool_lines(void *context, size_t begin, size_t end) {
    dp_plan *plan = context;
    const last *p = dp_plan_state(plan);
    const element l = element_of(p);
    const int64_t size = (int64_t)l.size, step = l.load ? RUN : p->channels;
    const char *x = dp_plan_data(plan, p->x_slot);
    char *y = dp_plan_data(plan, p->y_slot);
    for (int64_t line = (int64_t)begin; line < (int64_t)end; line++) {
        int64_t n = line / p->out[0], row = line % p->out[0];
        for (int64_t column = 0; column < p->out[1]; column++)
            for (int64_t c = 0; c < p->channels; c += step)
                pool_pixel(p, &l, x + (n * p->x_stride[0] + c) * size, row, column,
                           y + (n * p->y_stride[0] + row * p->y_stride[1] + column * p->y_stride[2] + c) * size,
                           (size_t)(p->channels - c < step ? p->channels - c : step));
    }
}

static dp_status run_pool(dp_plan *plan) {
    const last *p = dp_plan_state(plan);
    run_lines(plan, p->out[1] * p->channels * p->kernel[0] * p->kernel[1], pool_lines);
    return DP_OK;
}

/* Every window must have a pixel of the image. */
static dp_status check_windows(const last *p, const dp_arg *size) {
    for (int d = 0; d < 2; d++) {
        int64_t first, end;
        for (int64_t at = 0; at<p->out[d]; at += p->out[d]> 1 ? p->out[d] - 1 : 1) {
            taps_of(p, d, at, &first, &end);
            if (first >= end)
                return dp_fail(DP_ERR_ARGUMENT, "%s: window %lld along dimension %d lies outside the image of %lld",
                               size->name, (long long)at, d, (long long)p->in[d]);
        }
    }
    return DP_OK;
}

static dp_status prepare_pool(const dp_operator_call *call, bool average, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    last p = {.average = average};
    int64_t pads[4];
    dp_status status = take_images(call, FLOATS, &p);
    if (status == DP_OK)
        status = take_numbers(&in[1], 2, 1, p.kernel);
    if (status == DP_OK)
        status = take_numbers(&in[2], 2, 1, p.stride);
    if (status == DP_OK)
        status = take_numbers(&in[3], 4, 0, pads);
    if (status == DP_OK)
        status = take_numbers(&in[4], 2, 1, p.out);
    if (status != DP_OK)
        return status;
    p.pad[0] = pads[0];
    p.pad[1] = pads[2];
    p.exclusive = average && dp_arg_integer(&in[5], 1) != 0;
    status = check_windows(&p, &in[4]);
    if (status == DP_OK)
        status = take_output(call, &p);
    return status == DP_OK ? make_plan(call, &p, run_pool, out_plan) : status;
}

static dp_status max_pool(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare_pool(call, false, out_plan);
}
static dp_status average_pool(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare_pool(call, true, out_plan);
}

/* Repetition. */

/* Pixels are short: no call for each. */
static inline void copy_pixel(char *to, const char *from, size_t bytes) {
    enum { STEP = 16 };
    if (bytes < STEP || bytes > 32 * STEP) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i + STEP <= bytes; i += STEP)
        memcpy(to + i, from + i, STEP);
    memcpy(to + bytes - STEP, from + bytes - STEP, STEP);
}

static void repeat_lines(void *context, size_t begin, size_t end) {
    dp_plan *plan = context;
    const last *p = dp_plan_state(plan);
    const int64_t size = (int64_t)dp_element_bytes(p->element);
    const char *x = dp_plan_data(plan, p->x_slot);
    char *y = dp_plan_data(plan, p->y_slot);
    size_t bytes = (size_t)(p->channels * size);
    for (int64_t line = (int64_t)begin; line < (int64_t)end; line++) {
        int64_t n = line / p->out[0], row = line % p->out[0];
        const char *from = x + (n * p->x_stride[0] + row / p->stride[0] * p->x_stride[1]) * size;
        char *to = y + (n * p->y_stride[0] + row * p->y_stride[1]) * size;
        for (int64_t i = 0; i < p->in[1]; i++, from += p->x_stride[2] * size)
            for (int64_t k = 0; k < p->stride[1]; k++, to += p->y_stride[2] * size)
                copy_pixel(to, from, bytes);
    }
}

static dp_status run_repeat(dp_plan *plan) {
    const last *p = dp_plan_state(plan);
    run_lines(plan, p->out[1] * p->channels, repeat_lines);
    return DP_OK;
}

static dp_status repeat(const dp_operator_call *call, dp_plan **out_plan) {
    last p = {0};
    dp_status status = take_images(call, FLOATS | DP_EL_BIT(DP_U8), &p);
    if (status == DP_OK)
        status = take_numbers(&call->in[1], 2, 1, p.stride);
    for (int d = 0; d < 2 && status == DP_OK; d++) {
        p.out[d] = p.in[d] * p.stride[d];
        if (p.out[d] > DP_WINDOW_LIMIT)
            status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d would have %lld elements, but at most %d are allowed",
                             call->in[1].name, d, (long long)p.out[d], DP_WINDOW_LIMIT);
    }
    if (status == DP_OK)
        status = take_output(call, &p);
    return status == DP_OK ? make_plan(call, &p, run_repeat, out_plan) : status;
}

/* Factors per channel. */

/* y = x * factors, as many of each as there are. */
static void scale_run(const element *l, char *y, const char *x, const float *factors, size_t n) {
    float room[RUN], made[RUN];
    const size_t step = l->load ? RUN : n;
    for (size_t at = 0; at < n; at += step) {
        const size_t count = n - at < step ? n - at : step;
        float *to = place_of(l, y + at * l->size, made);
        dp_line_current()->multiply(to, as_floats(l, x + at * l->size, room, count), factors + at, count);
        put(l, y + at * l->size, to, count);
    }
}

/* Factors of pixels as floats. */
typedef struct factors {
    const char *from;
    size_t channels, copies; /* copies > 1: `run` has them that often */
    float run[RUN];
} factors;

static void scale_pixels(const element *l, const factors *f, char *y, const char *x, size_t n) {
    float room[RUN];
    const size_t step = f->copies > 1 ? f->copies * f->channels : l->load && n > RUN ? RUN : f->channels;
    for (size_t at = 0; at < n; at += step) {
        const size_t count = n - at < step ? n - at : step;
        const float *by = f->copies > 1 ? f->run : as_floats(l, f->from + at * l->size, room, count);
        scale_run(l, y + at * l->size, x + at * l->size, by, count);
    }
}

static void scale_lines(void *context, size_t begin, size_t end) {
    dp_plan *plan = context;
    const last *p = dp_plan_state(plan);
    const element l = element_of(p);
    const int64_t size = (int64_t)l.size;
    const char *x = dp_plan_data(plan, p->x_slot), *all = dp_plan_data(plan, p->factors_slot);
    char *y = dp_plan_data(plan, p->y_slot);
    const size_t n = (size_t)p->channels;
    const bool side_by_side = n <= RUN / 2 && p->x_stride[2] == p->channels && p->y_stride[2] == p->channels;
    factors f = {.channels = n, .copies = side_by_side ? RUN / n : 1};
    int64_t image = -1;
    for (int64_t line = (int64_t)begin; line < (int64_t)end; line++) {
        int64_t b = line / p->out[0], row = line % p->out[0];
        const char *from = x + (b * p->x_stride[0] + row * p->x_stride[1]) * size;
        char *to = y + (b * p->y_stride[0] + row * p->y_stride[1]) * size;
        f.from = all + b * p->factors_stride * size;
        for (size_t i = 0; side_by_side && b != image && i < f.copies; i++) {
            const float *one = as_floats(&l, f.from, f.run + i * n, n);
            if (one != f.run + i * n)
                memcpy(f.run + i * n, one, n * sizeof *one);
        }
        image = b;
        if (side_by_side)
            scale_pixels(&l, &f, to, from, n * (size_t)p->out[1]);
        for (int64_t i = 0; !side_by_side && i < p->out[1]; i++)
            scale_pixels(&l, &f, to + i * p->y_stride[2] * size, from + i * p->x_stride[2] * size, n);
    }
}

static dp_status run_scale(dp_plan *plan) {
    const last *p = dp_plan_state(plan);
    run_lines(plan, p->out[1] * p->channels, scale_lines);
    return DP_OK;
}

static dp_status scale(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *f = &call->in[1];
    last p = {0};
    dp_status status = take_images(call, FLOATS, &p);
    if (status == DP_OK)
        status = take_image(f, DP_EL_BIT(p.element));
    if (status != DP_OK)
        return status;
    const dp_tensor *t = f->as.tensor;
    const int64_t dims[] = {t->dims[0] == 1 ? 1 : call->in[0].as.tensor->dims[0], 1, 1, p.channels};
    status = dp_shape_expect(t, f->name, dims, 4, "one or every image, and every channel");
    memcpy(p.out, p.in, sizeof p.out);
    p.factors_slot = f->slot;
    p.factors_stride = t->dims[0] == 1 ? 0 : t->strides[0];
    if (status == DP_OK)
        status = take_output(call, &p);
    return status == DP_OK ? make_plan(call, &p, run_scale, out_plan) : status;
}

/* Means. */

static void mean_of_channels(void *context, size_t begin, size_t end) {
    dp_plan *plan = context;
    const last *p = dp_plan_state(plan);
    const element l = element_of(p);
    const int64_t size = (int64_t)l.size;
    const char *x = dp_plan_data(plan, p->x_slot);
    char *y = dp_plan_data(plan, p->y_slot);
    const int64_t blocks = (p->channels + BLOCK - 1) / BLOCK;
    for (int64_t unit = (int64_t)begin; unit < (int64_t)end; unit++) {
        const int64_t image = unit / blocks, first = unit % blocks * BLOCK;
        const size_t n = (size_t)(p->channels - first < BLOCK ? p->channels - first : BLOCK);
        double sums[BLOCK] = {0};
        float room[BLOCK];
        for (int64_t row = 0; row < p->in[0]; row++) {
            const char *from = x + (image * p->x_stride[0] + row * p->x_stride[1] + first) * size;
            for (int64_t i = 0; i < p->in[1]; i++)
                dp_line_current()->accumulate(sums, as_floats(&l, from + i * p->x_stride[2] * size, room, n), n);
        }
        char *at = y + (image * p->y_stride[0] + first) * size;
        float *to = place_of(&l, at, room);
        for (size_t c = 0; c < n; c++)
            to[c] = (float)(sums[c] / (double)(p->in[0] * p->in[1]));
        put(&l, at, to, n);
    }
}

static dp_status run_mean(dp_plan *plan) {
    const last *p = dp_plan_state(plan);
    int64_t units = plan->tensors[p->y_slot].view.dims[0] * ((p->channels + BLOCK - 1) / BLOCK);
    int64_t reads = p->in[0] * p->in[1] * BLOCK;
    if (units > 0)
        dp_pool_for((size_t)units,
                    (size_t)(WORK / (reads > WORK ? WORK
                                     : reads < 1  ? 1
                                                  : reads)),
                    mean_of_channels, plan);
    return DP_OK;
}

static dp_status mean(const dp_operator_call *call, dp_plan **out_plan) {
    last p = {.out = {1, 1}};
    dp_status status = take_images(call, FLOATS, &p);
    if (status == DP_OK)
        status = take_output(call, &p);
    return status == DP_OK ? make_plan(call, &p, run_mean, out_plan) : status;
}

/* Linear resampling. */

/* Along a dim, result o is between elements first[o] and first[o] + 1, `weight` of the second. */
typedef struct between {
    int32_t first;
    float weight;
} between;

typedef struct resampling {
    last images;
    between at[]; /* lines, then columns */
} resampling;

static void find_places(const last *p, int d, bool align, bool half_pixel, between *out) {
    const double step = align ? (p->out[d] > 1 ? (double)(p->in[d] - 1) / (double)(p->out[d] - 1) : 0)
                              : (double)p->in[d] / (double)p->out[d];
    for (int64_t o = 0; o < p->out[d]; o++) {
        double place = half_pixel && !align ? ((double)o + 0.5) * step - 0.5 : (double)o * step;
        place = place < 0 ? 0 : place;
        int64_t first = (int64_t)place;
        if (first >= p->in[d] - 1) /* the last one counts alone */
            out[o] = (between){(int32_t)(p->in[d] - 1), 0};
        else
            out[o] = (between){(int32_t)first, (float)(place - (double)first)};
    }
}

/* y = a, and `weight` of the way to b, which is not read at 0. */
static void mix(float *y, const float *a, const float *b, float weight, size_t n) {
    if (weight == 0)
        memcpy(y, a, n * sizeof *y);
    else
        dp_line_current()->combine(y, a, b, n, 1 - weight, weight, 0);
}

/* A line of y; the scratch is a line of x. */
static void linear_line(void *context, size_t line, void *scratch) {
    dp_plan *plan = context;
    const resampling *l = dp_plan_state(plan);
    const last *p = &l->images;
    const int64_t image = (int64_t)line / p->out[0], row = (int64_t)line % p->out[0];
    const between v = l->at[row], *columns = l->at + p->out[0];
    const size_t n = (size_t)p->channels;
    const float *a = (const float *)dp_plan_data(plan, p->x_slot) + image * p->x_stride[0] + v.first * p->x_stride[1];
    const float *b = a + p->x_stride[1];
    float *mixed = scratch;
    if (p->x_stride[2] == p->channels) {
        mix(mixed, a, b, v.weight, n * (size_t)p->in[1]);
    } else {
        for (int64_t i = 0; i < p->in[1]; i++)
            mix(mixed + i * p->channels, a + i * p->x_stride[2], b + i * p->x_stride[2], v.weight, n);
    }
    float *to = (float *)dp_plan_data(plan, p->y_slot) + image * p->y_stride[0] + row * p->y_stride[1];
    for (int64_t o = 0; o < p->out[1]; o++, to += p->y_stride[2]) {
        const float *from = mixed + columns[o].first * p->channels;
        mix(to, from, from + n, columns[o].weight, n);
    }
}

static dp_status run_linear(dp_plan *plan) {
    const resampling *l = dp_plan_state(plan);
    const last *p = &l->images;
    const int64_t lines = plan->tensors[p->y_slot].view.dims[0] * p->out[0];
    return dp_tiles_run((size_t)lines, (size_t)(p->in[1] * p->channels) * sizeof(float), linear_line, plan);
}

static dp_status linear(const dp_operator_call *call, dp_plan **out_plan) {
    const bool align = dp_arg_integer(&call->in[2], 0) != 0, half_pixel = dp_arg_integer(&call->in[3], 0) != 0;
    last p = {0};
    dp_status status = take_images(call, DP_EL_BIT(DP_F32), &p);
    if (status == DP_OK)
        status = take_numbers(&call->in[1], 2, 1, p.out);
    if (status == DP_OK && (p.in[0] < 1 || p.in[1] < 1))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is empty, but must have pixels to resample", call->in[0].name);
    if (status == DP_OK)
        status = take_output(call, &p);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run_linear, sizeof(resampling) + (size_t)(p.out[0] + p.out[1]) * sizeof(between));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    resampling *l = dp_plan_state(plan);
    l->images = p;
    find_places(&p, 0, align, half_pixel, l->at);
    find_places(&p, 1, align, half_pixel, l->at + p.out[0]);
    plan->path = "channels last";
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function)                                                                                               \
    extern const dp_function dp_last_##function;                                                                       \
    const dp_function dp_last_##function = {#function, function, NULL, 0, 0};
EXPORT(max_pool)
EXPORT(average_pool)
EXPORT(repeat)
EXPORT(linear)
EXPORT(scale)
EXPORT(mean)
