/*
 * pool.c - plans pooling by PyTorch's formulas:
 *   average2d(self, kernel, stride, padding, ceil, countIncludePad, divisor, cubeMathType) -> out
 *   average3d: the same without the last
 *   max2d(self, kernel, stride, padding, dilation, ceil, autoPad) -> out
 *   max2d_indices(self, kernel, stride, padding, dilation, ceil) -> out, indices; max3d_indices
 *   adaptive_average2d(self, size) -> out; adaptive_max2d(self, size) -> out, indices; both with 3d
 * An average divides by the divisor if that is not 0, else by the window's length with (countIncludePad) or without
 * its padding. The greatest of a window is the first one, NaN above all; its index counts in the image of one channel.
 * The adaptive window of position o begins at floor(o * size / out) and ends before ceil((o + 1) * size / out).
 */
#include "ops/pool/pool.h"

#include <string.h>

typedef struct detail {
    dp_pool_kind kind;
    int space;
    bool adaptive;
    bool any_padding;
} detail;

void dp_pool_reach_windows(const dp_axis *axis, bool with_padding, dp_pool_reach *out) {
    for (int64_t o = 0; o < axis->windows; o++) {
        int64_t begin = o * axis->stride - axis->pad, end = begin + (axis->kernel - 1) * axis->dilation + 1;
        int64_t skipped = begin < 0 ? (-begin + axis->dilation - 1) / axis->dilation : 0;
        int64_t first = begin + skipped * axis->dilation, last = end < axis->size ? end : axis->size;
        int64_t count = last > first ? (last - first + axis->dilation - 1) / axis->dilation : 0;
        int64_t padded = axis->size + axis->pad_end, whole = (end < padded ? end : padded) - begin;
        out[o] = (dp_pool_reach){first, count, with_padding ? (whole + axis->dilation - 1) / axis->dilation : count};
    }
}

void dp_pool_reach_adaptive(int64_t size, int64_t windows, dp_pool_reach *out) {
    for (int64_t o = 0; o < windows; o++) {
        int64_t first = o * size / windows, last = ((o + 1) * size + windows - 1) / windows;
        out[o] = (dp_pool_reach){first, last - first, last - first};
    }
}

/* The run of positions along x with whole windows, for the vector loops. */
static void find_inner(dp_pool *p, const dp_axis *axis) {
    const dp_pool_reach *reach = p->reaches + p->reach_at[2];
    int64_t low = 0, high = p->y.size[2];
    while (low < high && reach[low].first != low * axis->stride - axis->pad)
        low++;
    while (high > low && reach[high - 1].count != axis->kernel)
        high--;
    if (low < high && reach[low].count == axis->kernel) {
        p->inner_first = low;
        p->inner_last = high;
        p->inner_step = axis->stride;
    }
}

static dp_status make_plan(const dp_operator_call *call, const dp_pool *head, const dp_axis *axes, bool with_padding,
                           dp_plan **out_plan) {
    const detail *d = call->op->function->detail;
    const dp_image *y = &head->y;
    size_t n = (size_t)(y->size[0] + y->size[1] + y->size[2]), bytes;
    if (__builtin_mul_overflow(n, sizeof(dp_pool_reach), &bytes) || bytes > (size_t)1 << 30)
        return dp_fail(DP_ERR_ARGUMENT, "%s has more positions along its dimensions of space than can be planned: %zu",
                       call->out[0].name, n);
    dp_plan *plan = dp_plan_new(call, dp_pool_run, sizeof(dp_pool) + bytes);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    dp_pool *p = dp_plan_state(plan);
    memcpy(p, head, sizeof *head);
    p->reach_at[1] = (size_t)y->size[0];
    p->reach_at[2] = p->reach_at[1] + (size_t)y->size[1];
    for (int a = 0; a < DP_SPACE; a++) {
        if (d->adaptive)
            dp_pool_reach_adaptive(p->x.size[a], y->size[a], p->reaches + p->reach_at[a]);
        else
            dp_pool_reach_windows(&axes[a], with_padding, p->reaches + p->reach_at[a]);
        p->dilation[a] = d->adaptive ? 1 : axes[a].dilation;
    }
    if (!d->adaptive)
        find_inner(p, &axes[2]);
    /* a row of the image, one as loaded, one of results, one of indices */
    p->scratch_bytes = (size_t)(2 * p->x.size[2] + 3 * y->size[2] + 2) * sizeof(float);
    plan->path = d->adaptive ? "adaptive" : "windows";
    *out_plan = plan;
    return DP_OK;
}

static dp_status take_images(const dp_operator_call *call, dp_pool *p) {
    const detail *d = call->op->function->detail;
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(&call->out[0], call->op->elements);
    for (int i = 0; i < call->n_out && status == DP_OK; i++)
        status = dp_places_expect(&call->out[i]);
    if (status == DP_OK)
        status = dp_image_of(&call->in[0], d->space, true, &p->x);
    if (status == DP_OK)
        status = dp_image_of(&call->out[0], d->space, true, &p->y);
    p->kind = d->kind;
    p->indices.slot = -1;
    if (status != DP_OK || d->kind != DP_POOL_MAX_INDEX)
        return status;
    status = dp_element_expect(&call->out[1], DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64));
    if (status == DP_OK)
        status = dp_image_of(&call->out[1], d->space, true, &p->indices);
    return status == DP_OK ? dp_image_expect(&call->out[1], &p->indices, &p->y, call->out[0].name) : status;
}

/* The sizes follow from the axes: checks the output against them. */
static dp_status check_output(const dp_operator_call *call, const dp_pool *p, const int64_t windows[DP_SPACE],
                              const char *what) {
    dp_image expected = {.batch = p->x.batch, .channels = p->x.channels};
    memcpy(expected.size, windows, sizeof expected.size);
    for (int d = 0; d < DP_SPACE; d++)
        if (p->x.size[d] < 1 && windows[d] > 0 && p->x.batch && p->x.channels)
            return dp_fail(DP_ERR_ARGUMENT, "%s is empty along a dimension of space, but must have elements to pool",
                           call->in[0].name);
    return dp_image_expect(&call->out[0], &p->y, &expected, what);
}

static dp_status prepare_adaptive(const dp_operator_call *call, dp_plan **out_plan) {
    const detail *d = call->op->function->detail;
    dp_pool p = {0};
    int64_t size[DP_SPACE];
    dp_status status = take_images(call, &p);
    if (status == DP_OK)
        status = dp_window_list(&call->in[1], d->space, 0, -1, 1, size);
    if (status == DP_OK)
        status = check_output(call, &p, size, call->in[1].name);
    return status == DP_OK ? make_plan(call, &p, NULL, false, out_plan) : status;
}

dp_status dp_pool_axes(const dp_operator_call *call, const dp_arg *window, const dp_arg *dilation, bool ceil, int space,
                       bool any_padding, const dp_image *image, dp_axis axes[DP_SPACE]) {
    const dp_arg *kernel = &window[0], *stride = &window[1], *padding = &window[2];
    int64_t kernels[DP_SPACE], strides[DP_SPACE], dilations[DP_SPACE] = {1, 1, 1};
    dp_status status = dp_window_list(kernel, space, 1, 0, 1, kernels);
    memcpy(strides, kernels, sizeof strides);
    if (status == DP_OK && stride->kind == DP_ARG_INT_LIST && stride->count)
        status = dp_window_list(stride, space, 1, 0, 1, strides);
    if (status == DP_OK)
        status = dp_window_padding(padding, space, axes);
    if (status == DP_OK && dilation)
        status = dp_window_list(dilation, space, 1, 1, 1, dilations);
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++) {
        dp_axis *axis = &axes[d];
        *axis = (dp_axis){.size = image->size[d],
                          .kernel = kernels[d],
                          .stride = strides[d],
                          .dilation = dilations[d],
                          .pad = axis->pad,
                          .pad_end = axis->pad_end};
        int64_t reach = (axis->kernel - 1) * axis->dilation + 1,
                pad = axis->pad > axis->pad_end ? axis->pad : axis->pad_end;
        if (pad > reach / 2 && !any_padding)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s is %lld, but must be at most half of the kernel, which reaches over %lld", padding->name,
                           (long long)pad, (long long)reach);
        axis->windows = dp_axis_windows(axis, ceil);
        if (axis->windows < 1 && image->batch && image->channels)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s reaches over %lld elements, but the image (%s) with its padding has %lld", kernel->name,
                           (long long)reach, call->in[0].name, (long long)(axis->size + axis->pad + axis->pad_end));
    }
    return status;
}

static dp_status finish(const dp_operator_call *call, const dp_pool *p, const dp_axis axes[DP_SPACE], bool with_padding,
                        dp_plan **out_plan) {
    int64_t windows[DP_SPACE] = {axes[0].windows, axes[1].windows, axes[2].windows};
    dp_status status = check_output(call, p, windows, "input, kernel, stride and padding");
    return status == DP_OK ? make_plan(call, p, axes, with_padding, out_plan) : status;
}

static dp_status prepare_average(const dp_operator_call *call, dp_plan **out_plan) {
    const detail *d = call->op->function->detail;
    dp_pool p = {0};
    dp_axis axes[DP_SPACE] = {{0}};
    dp_status status = take_images(call, &p);
    if (status == DP_OK)
        status = dp_pool_axes(call, &call->in[1], d->any_padding ? &call->in[7] : NULL,
                              dp_arg_integer(&call->in[4], 0) != 0, d->space, d->any_padding, &p.x, axes);
    if (status != DP_OK)
        return status;
    p.divisor = (double)dp_arg_integer(&call->in[6], 0);
    int64_t math = call->n_in > 7 && !d->any_padding ? dp_arg_integer(&call->in[7], 0) : 0;
    if (math < 0 || math > 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to 3", call->in[7].name, (long long)math);
    return finish(call, &p, axes, dp_arg_integer(&call->in[5], 0) != 0, out_plan);
}

static dp_status prepare_max(const dp_operator_call *call, dp_plan **out_plan) {
    const detail *d = call->op->function->detail;
    dp_pool p = {0};
    dp_axis axes[DP_SPACE] = {{0}};
    dp_status status = take_images(call, &p);
    int64_t automatic = call->n_in > 6 && !d->any_padding ? dp_arg_integer(&call->in[6], 0) : 0;
    if (status == DP_OK && automatic)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is %lld, but only 0 (padding as given) is offered", call->in[6].name,
                       (long long)automatic);
    if (status == DP_OK)
        status = dp_pool_axes(call, &call->in[1], &call->in[4], dp_arg_integer(&call->in[5], 0) != 0, d->space,
                              d->any_padding, &p.x, axes);
    return status == DP_OK ? finish(call, &p, axes, false, out_plan) : status;
}

#define EXPORT(function, prepare, KIND, SPACE, ADAPTIVE, optional_in)                                                  \
    static const detail detail_##function = {KIND, SPACE, ADAPTIVE, false};                                            \
    extern const dp_function dp_pool_##function;                                                                       \
    const dp_function dp_pool_##function = {#function, prepare, &detail_##function, optional_in, 0};
EXPORT(average2d, prepare_average, DP_POOL_AVERAGE, 2, false, 1 << 2 | 1 << 3)
EXPORT(average3d, prepare_average, DP_POOL_AVERAGE, 3, false, 1 << 2 | 1 << 3)
EXPORT(max2d, prepare_max, DP_POOL_MAX, 2, false, 1 << 2 | 1 << 3 | 1 << 4)
EXPORT(max2d_indices, prepare_max, DP_POOL_MAX_INDEX, 2, false, 1 << 2 | 1 << 3 | 1 << 4)
EXPORT(max3d_indices, prepare_max, DP_POOL_MAX_INDEX, 3, false, 1 << 2 | 1 << 3 | 1 << 4)
EXPORT(adaptive_average2d, prepare_adaptive, DP_POOL_AVERAGE, 2, true, 0)
EXPORT(adaptive_average3d, prepare_adaptive, DP_POOL_AVERAGE, 3, true, 0)
EXPORT(adaptive_max2d, prepare_adaptive, DP_POOL_MAX_INDEX, 2, true, 0)
EXPORT(adaptive_max3d, prepare_adaptive, DP_POOL_MAX_INDEX, 3, true, 0)
/* The same with any padding and, for averages, a dilation behind the divisor. */
#define WINDOWS(function, prepare, KIND, SPACE)                                                                        \
    static const detail detail_##function = {KIND, SPACE, false, true};                                                \
    extern const dp_function dp_pool_##function;                                                                       \
    const dp_function dp_pool_##function = {#function, prepare, &detail_##function, 1 << 2 | 1 << 3 | 1 << 4, 0};
WINDOWS(windows_average2d, prepare_average, DP_POOL_AVERAGE, 2)
WINDOWS(windows_average3d, prepare_average, DP_POOL_AVERAGE, 3)
WINDOWS(windows_max2d, prepare_max, DP_POOL_MAX, 2)
WINDOWS(windows_max3d, prepare_max, DP_POOL_MAX, 3)
WINDOWS(windows_max2d_indices, prepare_max, DP_POOL_MAX_INDEX, 2)
WINDOWS(windows_max3d_indices, prepare_max, DP_POOL_MAX_INDEX, 3)
