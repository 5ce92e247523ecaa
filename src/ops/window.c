#include "ops/window.h"

#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"

enum { NCHW = 0, NHWC = 1, ND = 2, NDHWC = 27, NCDHW = 30, NCL = 47, UNDEFINED = -1 };

dp_status dp_image_of(const dp_arg *arg, int space, bool unbatched, dp_image *out_image) {
    const dp_tensor *t = arg->as.tensor;
    bool known =
        t->format == NCHW || t->format == ND || t->format == NCDHW || t->format == NCL || t->format == UNDEFINED;
    bool channels_last = t->format == NHWC || t->format == NDHWC;
    if (!known && !channels_last)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has format %d, but must be ND, NCL, NCHW, NHWC, NCDHW or NDHWC",
                       arg->name, t->format);
    bool batched = t->rank == space + 2;
    if (!batched && !(unbatched && t->rank == space + 1)) {
        char text[128];
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions %s, but must have %d%s: batch, channels and %d of space",
                       arg->name, t->rank, dp_dims_describe(t->dims, t->rank, text, sizeof text), space + 2,
                       unbatched ? " (or one fewer, without the batch)" : "", space);
    }
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] > INT32_MAX)
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at most %d", arg->name, d,
                           (long long)t->dims[d], INT32_MAX);
    int first = batched ? 1 : 0, channel = channels_last ? t->rank - 1 : first;
    *out_image = (dp_image){.slot = arg->slot,
                            .element = t->element,
                            .batch = batched ? t->dims[0] : 1,
                            .batch_stride = batched ? t->strides[0] : 0,
                            .channels = t->dims[channel],
                            .channel_stride = t->strides[channel],
                            .size = {1, 1, 1}};
    for (int i = 0; i < space; i++) {
        int d = channels_last ? first + i : channel + 1 + i;
        out_image->size[DP_SPACE - space + i] = t->dims[d];
        out_image->stride[DP_SPACE - space + i] = t->strides[d];
    }
    return DP_OK;
}

dp_status dp_image_expect(const dp_arg *arg, const dp_image *image, const dp_image *sizes, const char *what) {
    if (image->batch != sizes->batch || image->channels != sizes->channels)
        return dp_fail(DP_ERR_ARGUMENT, "%s has batch %lld and %lld channels, but must have %lld and %lld (%s)",
                       arg->name, (long long)image->batch, (long long)image->channels, (long long)sizes->batch,
                       (long long)sizes->channels, what);
    for (int d = 0; d < DP_SPACE; d++)
        if (image->size[d] != sizes->size[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s: its %s is %lld, but must be %lld (%s)", arg->name,
                           d == 0   ? "depth"
                           : d == 1 ? "height"
                                    : "width",
                           (long long)image->size[d], (long long)sizes->size[d], what);
    return DP_OK;
}

int64_t dp_axis_windows(const dp_axis *axis, bool ceil) {
    int64_t room = axis->size + axis->pad + axis->pad_end - (axis->kernel - 1) * axis->dilation - 1;
    if (room < 0)
        return 0;
    int64_t count = (room + (ceil ? axis->stride - 1 : 0)) / axis->stride + 1;
    if (ceil && (count - 1) * axis->stride >= axis->size + axis->pad)
        count--;
    return count;
}

dp_status dp_window_list(const dp_arg *arg, int space, int64_t low, int64_t otherwise, int64_t missing,
                         int64_t out[DP_SPACE]) {
    int64_t count = arg->kind == DP_ARG_INT_LIST ? arg->count : 0;
    if (count != space && count != 1 && !(count == 0 && otherwise >= low))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have %d, one per dimension of space, or 1",
                       arg->name, (long long)count, space);
    for (int d = 0; d < DP_SPACE; d++)
        out[d] = missing;
    for (int i = 0; i < space; i++) {
        int64_t value = count == 0 ? otherwise : arg->as.integers[count == 1 ? 0 : i];
        if (value < low || value > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be %lld to %d", arg->name, count == 1 ? 0 : i,
                           (long long)value, (long long)low, DP_WINDOW_LIMIT);
        out[DP_SPACE - space + i] = value;
    }
    return DP_OK;
}

dp_status dp_window_padding(const dp_arg *arg, int space, dp_axis axes[DP_SPACE]) {
    int64_t values[DP_SPACE];
    if (arg->kind != DP_ARG_INT_LIST || arg->count != 2 * space) {
        dp_status status = dp_window_list(arg, space, 0, 0, 0, values);
        for (int d = 0; d < DP_SPACE && status == DP_OK; d++)
            axes[d].pad = axes[d].pad_end = values[d];
        return status;
    }
    for (int i = 0; i < 2 * space; i++) {
        int64_t value = arg->as.integers[i];
        if (value < 0 || value > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be 0 to %d", arg->name, i, (long long)value,
                           DP_WINDOW_LIMIT);
        dp_axis *axis = &axes[DP_SPACE - space + i / 2];
        *(i % 2 ? &axis->pad_end : &axis->pad) = value;
    }
    return DP_OK;
}

static dp_loop loop_of(int64_t stride, int64_t count) {
    dp_loop loop;
    dp_loop_begin(&loop, &count, 1);
    dp_loop_add_strides(&loop, &stride);
    return loop;
}

const float *dp_image_load(int element, const void *data, int64_t stride, int64_t count, float *buffer) {
    if (element == DP_F32) {
        const float *from = data;
        if (stride == 1 || count == 1)
            return from;
        for (int64_t i = 0; i < count; i++)
            buffer[i] = from[i * stride];
        return buffer;
    }
    dp_convert_fn load = dp_elementwise_current()->load[element][DP_COMPUTE_F32];
    if (stride == 1 || count == 1) {
        load(buffer, data, (size_t)count);
        return buffer;
    }
    const dp_loop loop = loop_of(stride, count);
    double raw[DP_TILE];
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < DP_TILE ? count - at : DP_TILE;
        load(buffer + at, dp_loop_gather(&loop, 0, data, dp_element_bytes(element), at, (size_t)n, raw), (size_t)n);
    }
    return buffer;
}

void dp_image_store(int element, void *data, int64_t stride, int64_t count, const float *from) {
    if (element == DP_F32) {
        float *to = data;
        if (stride == 1 || count == 1)
            memcpy(to, from, (size_t)count * sizeof *to);
        else
            for (int64_t i = 0; i < count; i++)
                to[i * stride] = from[i];
        return;
    }
    dp_convert_fn store = dp_elementwise_current()->store[element][DP_COMPUTE_F32];
    if (stride == 1 || count == 1) {
        store(data, from, (size_t)count);
        return;
    }
    const dp_loop loop = loop_of(stride, count);
    double raw[DP_TILE];
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < DP_TILE ? count - at : DP_TILE;
        store(raw, from + at, (size_t)n);
        dp_loop_scatter(&loop, 0, data, dp_element_bytes(element), at, (size_t)n, raw);
    }
}
