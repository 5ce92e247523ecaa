/*
 * fold.c - images to columns of windows and back, by PyTorch's unfold and fold; two dims of space:
 *   unfold(image, kernel, dilation, padding, stride) -> columns
 *     columns [batch,] channels * taps, positions; 0 in the padding; elements keep their bits, so any type will do
 *   fold(columns, outputSize, kernel, dilation, padding, stride) -> image
 *     each element is the sum of the windows over it
 */
#include <string.h>

#include "ops/conv/conv.h"
#include "ops/loop.h"
#include "runtime/pool.h"

void dp_conv_add_windows(const dp_axis axis[DP_SPACE], const dp_conv_columns *columns, int64_t z, int64_t y, float *row,
                         float *buffer) {
    const dp_conv_table *t = dp_conv_current();
    const int64_t width = dp_element_bytes(columns->element);
    for (int64_t kz = 0; kz < axis[0].kernel; kz++) {
        int64_t from_z = z + axis[0].pad - kz * axis[0].dilation, oz = from_z / axis[0].stride;
        if (from_z < 0 || from_z % axis[0].stride || oz >= axis[0].windows)
            continue;
        for (int64_t ky = 0; ky < axis[1].kernel; ky++) {
            int64_t from_y = y + axis[1].pad - ky * axis[1].dilation, oy = from_y / axis[1].stride;
            if (from_y < 0 || from_y % axis[1].stride || oy >= axis[1].windows)
                continue;
            for (int64_t kx = 0; kx < axis[2].kernel; kx++) {
                int64_t offset = kx * axis[2].dilation - axis[2].pad, first, last;
                dp_axis_valid(offset, axis[2].stride, axis[2].size, axis[2].windows, &first, &last);
                if (first >= last)
                    continue;
                int64_t tap = (kz * axis[1].kernel + ky) * axis[2].kernel + kx;
                int64_t position = (oz * axis[1].windows + oy) * axis[2].windows + first;
                const char *data =
                    columns->data + (tap * columns->tap_stride + position * columns->position_stride) * width;
                const float *x = dp_image_load(columns->element, data, columns->position_stride, last - first, buffer);
                t->add(row + first * axis[2].stride + offset, x, (size_t)(last - first), (size_t)axis[2].stride);
            }
        }
    }
}

typedef struct folding {
    bool back; /* columns to image */
    dp_axis axis[DP_SPACE];
    dp_image image;
    int slot, element;
    int64_t taps, batch_stride, channel_stride, position_stride; /* of the columns; channel: of one row */
    size_t scratch_bytes;
} folding;

typedef struct job {
    dp_plan *plan;
    const folding *f;
} job;

/* Row (n, channel, ky, kx) of the columns: one run of the image per row of positions. */
static void unfold_rows(void *context, size_t begin, size_t end) {
    const job *j = context;
    const folding *f = j->f;
    const dp_axis *ay = &f->axis[1], *ax = &f->axis[2];
    const size_t width = dp_element_bytes(f->element);
    static const char zeros[16 * 64];
    const int64_t zeros_count = (int64_t)(sizeof zeros / width);
    dp_loop to = {.rank = 1, .n_views = 1, .strides = {{f->position_stride}}};
    dp_loop from = {.rank = 1, .n_views = 1, .strides = {{f->image.stride[2] * ax->stride}}};
    char buffer[sizeof zeros];
    for (size_t index = begin; index < end; index++) {
        int64_t tap = (int64_t)index % f->taps, row = (int64_t)index / f->taps;
        int64_t channel = row % f->image.channels, n = row / f->image.channels;
        int64_t ky = tap / ax->kernel, offset = tap % ax->kernel * ax->dilation - ax->pad, first, last;
        dp_axis_valid(offset, ax->stride, ax->size, ax->windows, &first, &last);
        char *out = (char *)dp_plan_data(j->plan, f->slot) +
                    (n * f->batch_stride + (channel * f->taps + tap) * f->channel_stride) * (int64_t)width;
        for (int64_t oy = 0; oy < ay->windows; oy++) {
            int64_t y = oy * ay->stride + ky * ay->dilation - ay->pad;
            bool inside = y >= 0 && y < ay->size;
            int64_t low = inside ? first : ax->windows, high = inside ? last : ax->windows;
            char *line = out + oy * ax->windows * f->position_stride * (int64_t)width;
            for (int64_t at = 0, count; at < ax->windows; at += count) {
                bool copied = at >= low && at < high;
                int64_t until = at < low ? low : copied ? high : ax->windows;
                count = until - at < zeros_count ? until - at : zeros_count;
                to.dims[0] = from.dims[0] = to.count = from.count = count;
                const void *source = zeros;
                if (copied) {
                    int64_t place = (at * ax->stride + offset) * f->image.stride[2];
                    source = dp_loop_gather(&from, 0,
                                            dp_image_at(j->plan, &f->image, n, channel, 0, y) + place * (int64_t)width,
                                            width, 0, (size_t)count, buffer);
                }
                dp_loop_scatter(&to, 0, line + at * f->position_stride * (int64_t)width, width, 0, (size_t)count,
                                source);
            }
        }
    }
}

static void fold_row(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const folding *f = j->f;
    const dp_image *image = &f->image;
    int64_t index = (int64_t)tile, y = index % image->size[1], channel = index / image->size[1] % image->channels;
    int64_t n = index / image->size[1] / image->channels, width = image->size[2];
    float *row = scratch;
    memset(row, 0, (size_t)width * sizeof *row);
    int64_t at = n * f->batch_stride + channel * f->taps * f->channel_stride;
    dp_conv_columns columns = {.data = (const char *)dp_plan_data(j->plan, f->slot) +
                                       at * (int64_t)dp_element_bytes(f->element),
                               .element = f->element,
                               .tap_stride = f->channel_stride,
                               .position_stride = f->position_stride};
    dp_conv_add_windows(f->axis, &columns, 0, y, row, row + width);
    dp_image_store(image->element, dp_image_at(j->plan, image, n, channel, 0, y), image->stride[2], width, row);
}

static dp_status run(dp_plan *plan) {
    const folding *f = dp_plan_state(plan);
    job j = {plan, f};
    const dp_image *image = &f->image;
    if (!f->back)
        dp_pool_for((size_t)(image->batch * image->channels * f->taps), 1, unfold_rows, &j);
    else if (image->size[2])
        return dp_tiles_run((size_t)(image->batch * image->channels * image->size[1]), f->scratch_bytes, fold_row, &j);
    return DP_OK;
}

/* The columns: [batch,] channels * taps, positions. */
static dp_status take_columns(const dp_arg *arg, bool batched, folding *f) {
    const dp_tensor *t = arg->as.tensor;
    int64_t rows, positions = f->axis[1].windows * f->axis[2].windows;
    if (__builtin_mul_overflow(f->image.channels, f->taps, &rows))
        return dp_fail(DP_ERR_ARGUMENT, "%s: channels and kernel make too many rows", arg->name);
    int64_t dims[] = {f->image.batch, rows, positions};
    dp_status status = dp_shape_expect(t, arg->name, dims + !batched, 2 + batched,
                                       "batch, channels * kernel, positions of the window");
    f->slot = arg->slot;
    f->element = t->element;
    f->batch_stride = batched ? t->strides[0] : 0;
    if (status == DP_OK) {
        f->channel_stride = t->strides[t->rank - 2];
        f->position_stride = t->strides[t->rank - 1];
    }
    return status;
}

static dp_status take_axes(const dp_arg *kernel, const dp_arg *dilation, const dp_arg *padding, const dp_arg *stride,
                           folding *f) {
    int64_t kernels[DP_SPACE], dilations[DP_SPACE], strides[DP_SPACE];
    dp_status status = dp_window_list(kernel, 2, 1, 0, 1, kernels);
    if (status == DP_OK)
        status = dp_window_list(dilation, 2, 1, 0, 1, dilations);
    if (status == DP_OK)
        status = dp_window_list(stride, 2, 1, 0, 1, strides);
    if (status == DP_OK)
        status = dp_window_padding(padding, 2, f->axis);
    if (status != DP_OK)
        return status;
    for (int d = 0; d < DP_SPACE; d++) {
        dp_axis *axis = &f->axis[d];
        axis->size = f->image.size[d];
        axis->kernel = kernels[d];
        axis->dilation = dilations[d];
        axis->stride = strides[d];
        axis->windows = dp_axis_windows(axis, false);
        if (axis->windows < 1)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s: the kernel reaches over %lld elements, but the image with its padding has %lld",
                           kernel->name, (long long)((axis->kernel - 1) * axis->dilation + 1),
                           (long long)(axis->size + axis->pad + axis->pad_end));
    }
    f->taps = kernels[1] * kernels[2];
    return DP_OK;
}

static dp_status make_plan(const dp_operator_call *call, const folding *f, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *f);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), f, sizeof *f);
    plan->path = f->back ? "fold" : "unfold";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_unfold(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    folding f = {.back = false};
    dp_status status = dp_element_expect(&in[0], call->op->elements);
    if (status == DP_OK)
        status = dp_places_expect(&call->out[0]);
    if (status == DP_OK && call->out[0].as.tensor->element != in[0].as.tensor->element)
        return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have those of %s: %s", call->out[0].name,
                       dp_element_name(call->out[0].as.tensor->element), in[0].name,
                       dp_element_name(in[0].as.tensor->element));
    if (status == DP_OK)
        status = dp_image_of(&in[0], 2, true, &f.image);
    if (status == DP_OK)
        status = take_axes(&in[1], &in[2], &in[3], &in[4], &f);
    if (status == DP_OK)
        status = take_columns(&call->out[0], in[0].as.tensor->rank == 4, &f);
    return status == DP_OK ? make_plan(call, &f, out_plan) : status;
}

static dp_status prepare_fold(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    folding f = {.back = true};
    int64_t size[DP_SPACE];
    dp_status status = dp_element_expect(&in[0], call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = dp_image_of(out, 2, true, &f.image);
    if (status == DP_OK)
        status = dp_window_list(&in[1], 2, 0, -1, 1, size);
    if (status == DP_OK && (size[1] != f.image.size[1] || size[2] != f.image.size[2]))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld x %lld, but must be %lld x %lld, the size of %s", in[1].name,
                       (long long)size[1], (long long)size[2], (long long)f.image.size[1], (long long)f.image.size[2],
                       out->name);
    if (status == DP_OK)
        status = take_axes(&in[2], &in[3], &in[4], &in[5], &f);
    if (status == DP_OK)
        status = take_columns(&in[0], out->as.tensor->rank == 4, &f);
    if (status != DP_OK)
        return status;
    f.scratch_bytes = (size_t)(f.image.size[2] + f.axis[2].windows) * sizeof(float);
    return make_plan(call, &f, out_plan);
}

extern const dp_function dp_conv_unfold, dp_conv_fold;
const dp_function dp_conv_unfold = {"unfold", prepare_unfold, NULL, 0, 0};
const dp_function dp_conv_fold = {"fold", prepare_fold, NULL, 0, 0};
