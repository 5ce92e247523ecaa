/*
 * window.c - convolution, pooling and resizing of images in the layout that the tensor's format names, or, for ND, a
 * text: channels second (NCHW, NCDHW), last (NHWC, NDHWC), or kernels with their spatial dims first (HWCN, DHWCN).
 * Lists of strides and the like have a number for every dim, those of batch and channels 1, or one for each dim of
 * space. conv(x, filter, bias, strides, pads, dilations, groups, group, auto_pad, data_format) -> y group: groups,
 * misspelt conv_transpose(x, filter, bias, strides, pads, dilations, groups, output_padding, data_format) -> y
 *   max_pool, average_pool(x, ksize, strides, padding, pads, data_format, global, ceil, exclusive) -> y
 *       padding: CALCULATED (pads), VALID (none), SAME
 *   fold(x, size, kernel, dilation, padding, stride) -> y       columns [batch, channels * taps, positions] to an image
 *   windows_average(x, ksize, strides, pads, dilations, ceil, include_pad, divisor) -> y; windows_max(...) -> y,
 * indices channels second, any padding, two or three dims of space batch_norm(x, scale, offset, mean, variance,
 * is_training, epsilon, data_format) -> y, and mean and variance, twice resize_nearest, resize_linear, resize_cubic,
 * resize_area(images, size, align_corners, half_pixel_centers) -> y
 */
#include <string.h>

#include "ops/typed/adapt.h"
#include "ops/window.h"

extern const dp_function dp_conv_conv, dp_pool_max2d, dp_pool_average2d, dp_resize_nearest2d, dp_resize_exact2d,
    dp_resize_linear2d, dp_resize_cubic2d, dp_resize_linear2d_origin, dp_resize_cubic2d_origin, dp_resize_area2d,
    dp_norm_batch, dp_pool_windows_average2d, dp_pool_windows_average3d, dp_pool_windows_max2d, dp_pool_windows_max3d,
    dp_pool_windows_max2d_indices, dp_pool_windows_max3d_indices,
    dp_conv_fold;

enum { NCHW = 0, NHWC = 1, HWCN = 16, NDHWC = 27, NCDHW = 30 }; /* of dp_tensor.format */

typedef enum layout { SECOND, LAST, KERNEL } layout;

static dp_status layout_of(const dp_arg *arg, const dp_arg *text, layout *out) {
    const dp_tensor *t = arg->as.tensor;
    *out = SECOND;
    if (t->format == NCHW || t->format == NCDHW)
        return DP_OK;
    if (t->format == NHWC || t->format == NDHWC || t->format == HWCN) {
        *out = t->format == HWCN ? KERNEL : LAST;
        return DP_OK;
    }
    static const struct {
        const char *text;
        layout how;
    } names[] = {{"NCHW", SECOND}, {"NCDHW", SECOND}, {"NHWC", LAST},
                 {"NDHWC", LAST},  {"HWCN", KERNEL},  {"DHWCN", KERNEL}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].text, text->as.text) == 0) {
            *out = names[i].how;
            return DP_OK;
        }
    }
    return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be NCHW, NHWC, HWCN, NCDHW, NDHWC or DHWCN", text->name,
                   text->as.text);
}

/* Which dim is batch (or output channels), channels, and the first of space. */
static void places(layout how, int rank, int *batch, int *channels, int *space) {
    *batch = how == KERNEL ? rank - 1 : 0;
    *channels = how == SECOND ? 1 : how == LAST ? rank - 1 : rank - 2;
    *space = how == SECOND ? 2 : how == LAST ? 1 : 0;
}

/* The view with batch, channels and space in this order. */
static void turn(dp_adapted *a, dp_arg *arg, layout how) {
    const dp_tensor *t = arg->as.tensor;
    dp_tensor *view = dp_adapt_view(a, arg);
    int from[DP_TENSOR_DIMS];
    places(how, t->rank, &from[0], &from[1], &from[2]);
    for (int d = 3; d < t->rank; d++)
        from[d] = from[2] + d - 2;
    for (int d = 0; d < t->rank; d++) {
        view->dims[d] = t->dims[from[d]];
        view->strides[d] = t->strides[from[d]];
    }
    view->format = NCHW;
}

static dp_status check_rank(const dp_arg *arg, int rank) {
    return arg->as.tensor->rank == rank ? DP_OK
                                        : dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have %d", arg->name,
                                                  arg->as.tensor->rank, rank);
}

/* The numbers of the dims of space, `space` of them. */
static dp_status pick(const dp_arg *list, layout how, int space, int64_t *out) {
    int64_t count = list->count;
    const int64_t *n = list->as.integers;
    int batch, channels, first = 0;
    if (count == space + 2) {
        places(how, space + 2, &batch, &channels, &first);
        if (n[batch] != 1 || n[channels] != 1)
            return dp_fail(DP_ERR_UNSUPPORTED, "%s is %lld for the batch and %lld for the channels, but must be 1",
                           list->name, (long long)n[batch], (long long)n[channels]);
    } else if (count != space && count != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have %d, one per dimension, or %d", list->name,
                       (long long)count, space + 2, space);
    for (int i = 0; i < space; i++) {
        out[i] = n[count == 1 ? 0 : first + i];
        if (out[i] < 1 || out[i] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s is %lld in a dimension of space, but must be 1 to %d", list->name,
                           (long long)out[i], DP_WINDOW_LIMIT);
    }
    return DP_OK;
}

typedef enum padding { GIVEN, NONE, SAME_UPPER, SAME_LOWER } padding;

static dp_status padding_of(const dp_arg *text, padding *out) {
    static const struct {
        const char *text;
        padding how;
    } names[] = {{"NOTSET", GIVEN},         {"CALCULATED", GIVEN}, {"", GIVEN},
                 {"VALID", NONE},           {"SAME", SAME_UPPER},  {"SAME_UPPER", SAME_UPPER},
                 {"SAME_LOWER", SAME_LOWER}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].text, text->as.text) == 0) {
            *out = names[i].how;
            return DP_OK;
        }
    }
    return dp_fail(DP_ERR_ARGUMENT,
                   "%s is \"%.24s\", but must be CALCULATED, NOTSET, VALID, SAME, SAME_UPPER or SAME_LOWER", text->name,
                   text->as.text);
}

/* Windows along the dims of space of x, which has batch and channels first. */
typedef struct windows {
    int space;
    int64_t kernel[DP_SPACE], stride[DP_SPACE], dilation[DP_SPACE], pads[2 * DP_SPACE], count[DP_SPACE];
} windows;

static dp_status find_windows(windows *w, const dp_tensor *x, padding how, const dp_arg *pads, bool ceil) {
    if (how == GIVEN && pads->count != 2 * w->space)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has %lld numbers, but must have %d: before and after each dimension of space", pads->name,
                       (long long)pads->count, 2 * w->space);
    for (int i = 0; i < w->space; i++) {
        dp_axis axis = {
            .size = x->dims[2 + i], .kernel = w->kernel[i], .stride = w->stride[i], .dilation = w->dilation[i]};
        int64_t reach = (axis.kernel - 1) * axis.dilation + 1;
        if (how == GIVEN) {
            axis.pad = pads->as.integers[2 * i];
            axis.pad_end = pads->as.integers[2 * i + 1];
        } else if (how != NONE) {
            int64_t missing = ((axis.size + axis.stride - 1) / axis.stride - 1) * axis.stride + reach - axis.size;
            missing = missing < 0 ? 0 : missing;
            axis.pad = how == SAME_UPPER ? missing / 2 : missing - missing / 2;
            axis.pad_end = missing - axis.pad;
        }
        if (axis.pad < 0 || axis.pad > DP_WINDOW_LIMIT || axis.pad_end < 0 || axis.pad_end > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s is %lld and %lld in a dimension of space, but must be 0 to %d",
                           pads->name, (long long)axis.pad, (long long)axis.pad_end, DP_WINDOW_LIMIT);
        w->pads[2 * i] = axis.pad;
        w->pads[2 * i + 1] = axis.pad_end;
        w->count[i] = dp_axis_windows(&axis, ceil);
    }
    return DP_OK;
}

/* Asks the output to have these sizes in its own layout. */
static dp_status check_output(const dp_operator_call *call, layout how, int space, int64_t batch, int64_t channels,
                              const int64_t *sizes) {
    int64_t dims[DP_TENSOR_DIMS];
    int at_batch, at_channels, at_space;
    places(how, space + 2, &at_batch, &at_channels, &at_space);
    dims[at_batch] = batch;
    dims[at_channels] = channels;
    memcpy(dims + at_space, sizes, (size_t)space * sizeof *sizes);
    return dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, space + 2, "that of the windows");
}

static dp_status conv(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *text = &in[9];
    int rank = in[0].as.tensor->rank;
    layout of_x, of_filter, of_y;
    padding how;
    windows w = {.space = rank - 2};
    if (rank != 4 && rank != 5)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4 or 5", in[0].name, rank);
    dp_status status = check_rank(&in[1], rank);
    if (status == DP_OK)
        status = layout_of(&in[0], text, &of_x);
    if (status == DP_OK)
        status = layout_of(&in[1], text, &of_filter);
    if (status == DP_OK)
        status = layout_of(&call->out[0], text, &of_y);
    if (status == DP_OK)
        status = pick(&in[3], of_x, w.space, w.stride);
    if (status == DP_OK)
        status = pick(&in[5], of_x, w.space, w.dilation);
    if (status == DP_OK)
        status = padding_of(&in[8], &how);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    turn(&a, &a.in[0], of_x);
    turn(&a, &a.in[1], of_filter);
    const dp_tensor *x = a.in[0].as.tensor, *filter = a.in[1].as.tensor;
    for (int i = 0; i < w.space; i++) {
        w.kernel[i] = filter->dims[2 + i];
        if (w.kernel[i] < 1 || w.kernel[i] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s has a dimension of space of %lld, but it must be 1 to %d", in[1].name,
                           (long long)w.kernel[i], DP_WINDOW_LIMIT);
    }
    status = find_windows(&w, x, how, &in[4], false);
    if (status == DP_OK)
        status = check_output(call, of_y, w.space, x->dims[0], filter->dims[0], w.count);
    if (status != DP_OK)
        return status;
    turn(&a, &a.out[0], of_y);
    a.in[3] = dp_adapt_list(&a, in[3].name, w.stride, w.space);
    a.in[4] = dp_adapt_list(&a, in[4].name, w.pads, 2 * w.space);
    a.in[5] = dp_adapt_list(&a, in[5].name, w.dilation, w.space);
    a.in[6] = dp_adapt_integer("transposed", 0);
    a.in[7] = dp_adapt_absent("output padding");
    a.in[8] = in[7].kind == DP_ARG_ABSENT ? in[6] : in[7];
    a.in[9] = dp_adapt_integer("precision", 0);
    return dp_adapt_end(&a, &dp_conv_conv, 10, out_plan);
}

/* Images with channels second; pads are the same before and after each dim. */
static dp_status transposed_size(const dp_operator_call *call, int space, const int64_t *stride,
                                 const int64_t *dilation, int64_t *pad, int64_t *more, int64_t *sizes) {
    const dp_arg *pads = &call->in[4], *extra = &call->in[7];
    const dp_tensor *x = call->in[0].as.tensor, *filter = call->in[1].as.tensor;
    for (int i = 0; i < space; i++) {
        if (pads->count != 2 * space || pads->as.integers[2 * i] != pads->as.integers[2 * i + 1])
            return dp_fail(DP_ERR_UNSUPPORTED, "%s must have %d numbers, the same before and after each dimension",
                           pads->name, 2 * space);
        pad[i] = pads->as.integers[2 * i];
        if (extra->kind == DP_ARG_INT_LIST && (extra->count == space || extra->count == space + 2))
            more[i] = extra->as.integers[extra->count - space + i];
        if (pad[i] < 0 || pad[i] > DP_WINDOW_LIMIT || more[i] < 0 || more[i] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s and %s are %lld and %lld, but must be 0 to %d", pads->name, extra->name,
                           (long long)pad[i], (long long)more[i], DP_WINDOW_LIMIT);
        sizes[i] =
            (x->dims[2 + i] - 1) * stride[i] - 2 * pad[i] + (filter->dims[2 + i] - 1) * dilation[i] + 1 + more[i];
        sizes[i] = sizes[i] < 0 ? 0 : sizes[i];
    }
    return DP_OK;
}

static dp_status conv_transpose(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    int64_t stride[DP_SPACE], dilation[DP_SPACE], pad[DP_SPACE], more[DP_SPACE] = {0}, sizes[DP_SPACE];
    layout how;
    int rank = in[0].as.tensor->rank, space = rank - 2;
    if (rank != 4 && rank != 5)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4 or 5", in[0].name, rank);
    dp_status status = check_rank(&in[1], rank);
    if (status == DP_OK)
        status = layout_of(&in[0], &in[8], &how);
    if (status == DP_OK && how != SECOND)
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s is \"%.24s\", but must be NCHW or NCDHW", in[8].name, in[8].as.text);
    if (status == DP_OK)
        status = pick(&in[3], how, space, stride);
    if (status == DP_OK)
        status = pick(&in[5], how, space, dilation);
    if (status != DP_OK)
        return status;
    const dp_tensor *x = in[0].as.tensor, *filter = in[1].as.tensor;
    int64_t groups = dp_arg_integer(&in[6], 1);
    if (groups < 1 || groups > DP_WINDOW_LIMIT)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 1 to %d", in[6].name, (long long)groups,
                       DP_WINDOW_LIMIT);
    for (int d = 1; d < rank; d++)
        if (x->dims[d] > DP_WINDOW_LIMIT || filter->dims[d] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s or %s has a dimension of more than %d", in[0].name, in[1].name,
                           DP_WINDOW_LIMIT);
    status = transposed_size(call, space, stride, dilation, pad, more, sizes);
    if (status == DP_OK)
        status = check_output(call, how, space, x->dims[0], filter->dims[1] * groups, sizes);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[3] = dp_adapt_list(&a, in[3].name, stride, space);
    a.in[4] = dp_adapt_list(&a, in[4].name, pad, space);
    a.in[5] = dp_adapt_list(&a, in[5].name, dilation, space);
    a.in[6] = dp_adapt_integer("transposed", 1);
    a.in[7] = dp_adapt_list(&a, in[7].name, more, space);
    a.in[8] = in[6];
    a.in[9] = dp_adapt_integer("precision", 0);
    return dp_adapt_end(&a, &dp_conv_conv, 10, out_plan);
}

/* Average: the pool's arguments are kernel, stride, padding, ceil, include, divisor, dilation; else .., dilation, ceil.
 */
static dp_status windows_pool(const dp_operator_call *call, bool average, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    const dp_tensor *x = in[0].as.tensor;
    windows w = {.space = x->rank - 2};
    bool indices = !average && call->out[1].kind == DP_ARG_TENSOR, ceil = dp_arg_integer(&in[5], 0) != 0;
    if (w.space != 2 && w.space != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4 or 5", in[0].name, x->rank);
    dp_status status = pick(&in[1], SECOND, w.space, w.kernel);
    if (status == DP_OK)
        status = pick(&in[2], SECOND, w.space, w.stride);
    if (status == DP_OK)
        status = pick(&in[4], SECOND, w.space, w.dilation);
    if (status == DP_OK)
        status = find_windows(&w, x, GIVEN, &in[3], ceil);
    int64_t dims[DP_TENSOR_DIMS] = {x->dims[0], x->dims[1]};
    memcpy(dims + 2, w.count, sizeof w.count);
    for (int i = 0; i <= indices && status == DP_OK; i++)
        status = dp_shape_expect(call->out[i].as.tensor, call->out[i].name, dims, x->rank, "that of the windows");
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[1] = dp_adapt_list(&a, in[1].name, w.kernel, w.space);
    a.in[2] = dp_adapt_list(&a, in[2].name, w.stride, w.space);
    a.in[3] = dp_adapt_list(&a, in[3].name, w.pads, 2 * w.space);
    a.in[average ? 7 : 4] = dp_adapt_list(&a, in[4].name, w.dilation, w.space);
    a.in[average ? 4 : 5] = in[5];
    if (average) {
        a.in[5] = in[6];
        a.in[6] = in[7];
        return dp_adapt_end(&a, w.space == 2 ? &dp_pool_windows_average2d : &dp_pool_windows_average3d, 8, out_plan);
    }
    a.call.n_out = 1 + indices;
    return dp_adapt_end(&a,
                        indices ? (w.space == 2 ? &dp_pool_windows_max2d_indices : &dp_pool_windows_max3d_indices)
                                : (w.space == 2 ? &dp_pool_windows_max2d : &dp_pool_windows_max3d),
                        6, out_plan);
}

static dp_status windows_max(const dp_operator_call *call, dp_plan **out_plan) {
    return windows_pool(call, false, out_plan);
}
static dp_status windows_average(const dp_operator_call *call, dp_plan **out_plan) {
    return windows_pool(call, true, out_plan);
}

static dp_status pool(const dp_operator_call *call, bool average, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    layout of_x, of_y;
    padding how;
    windows w = {.space = 2, .dilation = {1, 1, 1}};
    bool ceil = dp_arg_integer(&in[7], 0) != 0;
    dp_status status = check_rank(&in[0], 4);
    if (status == DP_OK)
        status = layout_of(&in[0], &in[5], &of_x);
    if (status == DP_OK)
        status = layout_of(&call->out[0], &in[5], &of_y);
    if (status == DP_OK)
        status = padding_of(&in[3], &how);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    turn(&a, &a.in[0], of_x);
    const dp_tensor *x = a.in[0].as.tensor;
    if (dp_arg_integer(&in[6], 0)) {
        how = NONE;
        for (int i = 0; i < 2; i++)
            w.kernel[i] = w.stride[i] = x->dims[2 + i] > 0 ? x->dims[2 + i] : 1;
    } else {
        status = pick(&in[1], of_x, 2, w.kernel);
        if (status == DP_OK)
            status = pick(&in[2], of_x, 2, w.stride);
    }
    if (status == DP_OK)
        status = find_windows(&w, x, how, &in[4], ceil);
    if (status == DP_OK)
        status = check_output(call, of_y, 2, x->dims[0], x->dims[1], w.count);
    if (status != DP_OK)
        return status;
    turn(&a, &a.out[0], of_y);
    a.in[1] = dp_adapt_list(&a, in[1].name, w.kernel, 2);
    a.in[2] = dp_adapt_list(&a, in[2].name, w.stride, 2);
    a.in[3] = dp_adapt_list(&a, in[4].name, w.pads, 4);
    if (average) {
        a.in[4] = in[7];
        a.in[5] = dp_adapt_integer("exclusive", dp_arg_integer(&in[8], 1) == 0);
        a.in[6] = dp_adapt_integer("divisor", 0);
        return dp_adapt_end(&a, &dp_pool_average2d, 7, out_plan);
    }
    a.in[4] = dp_adapt_absent("dilation");
    a.in[5] = in[7];
    return dp_adapt_end(&a, &dp_pool_max2d, 6, out_plan);
}

static dp_status max_pool(const dp_operator_call *call, dp_plan **out_plan) {
    return pool(call, false, out_plan);
}
static dp_status average_pool(const dp_operator_call *call, dp_plan **out_plan) {
    return pool(call, true, out_plan);
}

static dp_status fold(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *size = &in[1], *kernel = &in[2];
    const dp_tensor *x = in[0].as.tensor;
    dp_status status = check_rank(&in[0], 3);
    int64_t taps = 0;
    if (status == DP_OK && (size->count != 2 || kernel->count != 2))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s and %s have %lld and %lld numbers, but must have 2", size->name, kernel->name,
                         (long long)size->count, (long long)kernel->count);
    if (status != DP_OK)
        return status;
    if (kernel->as.integers[0] < 1 || kernel->as.integers[1] < 1 ||
        __builtin_mul_overflow(kernel->as.integers[0], kernel->as.integers[1], &taps) || x->dims[1] % taps)
        return dp_fail(DP_ERR_ARGUMENT, "%s: %lld rows of columns are not whole windows of %s", in[0].name,
                       (long long)x->dims[1], kernel->name);
    int64_t dims[] = {x->dims[0], x->dims[1] / taps, size->as.integers[0], size->as.integers[1]};
    status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, 4, "batch, channels and size of the image");
    return status == DP_OK ? dp_conv_fold.prepare(call, out_plan) : status;
}

/* With given statistics the outputs for them are copies; names are those of the register. */
static void copy_channels(dp_plan *plan, const char *from, const char *to) {
    int source = -1;
    for (int i = 0; i < plan->n_tensors; i++)
        if (strcmp(plan->tensors[i].name, from) == 0)
            source = i;
    for (int i = 0; i < plan->n_tensors && source >= 0; i++)
        if (strcmp(plan->tensors[i].name, to) == 0)
            memmove(dp_plan_data(plan, i), dp_plan_data(plan, source),
                    (size_t)dp_tensor_count(&plan->tensors[i].view) * dp_element_bytes(plan->tensors[i].view.element));
}

static dp_status copy_statistics(dp_plan *plan) {
    copy_channels(plan, "mean", "batch_mean");
    copy_channels(plan, "mean", "reserve_space_1");
    copy_channels(plan, "variance", "batch_variance");
    copy_channels(plan, "variance", "reserve_space_2");
    return DP_OK;
}

static dp_status check_statistics(const dp_operator_call *call) {
    for (int k = 1; k < call->n_out; k++) {
        const dp_arg *out = &call->out[k], *in = &call->in[k % 2 ? 3 : 4];
        if (out->kind != DP_ARG_TENSOR)
            continue;
        dp_status status =
            dp_shape_expect(out->as.tensor, out->name, in->as.tensor->dims, in->as.tensor->rank, in->name);
        if (status == DP_OK && out->as.tensor->element != in->as.tensor->element)
            status =
                dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have those of %s, %s", out->name,
                        dp_element_name(out->as.tensor->element), in->name, dp_element_name(in->as.tensor->element));
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

static dp_status batch_norm(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    const dp_tensor *x = in[0].as.tensor;
    layout of_x, of_y;
    if (dp_arg_integer(&in[5], 1))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is 1, but Doppel normalises with given mean and variance only: 0",
                       in[5].name);
    if (x->rank < 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have at least 2", in[0].name, x->rank);
    dp_status status = layout_of(&in[0], &in[7], &of_x);
    if (status == DP_OK)
        status = layout_of(&call->out[0], &in[7], &of_y);
    if (status == DP_OK && of_x != of_y)
        status = dp_fail(DP_ERR_ARGUMENT, "%s and %s have different formats", in[0].name, call->out[0].name);
    if (status == DP_OK)
        status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, x->dims, x->rank, "the input");
    if (status == DP_OK)
        status = check_statistics(call);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    turn(&a, &a.in[0], of_x);
    turn(&a, &a.out[0], of_y);
    a.in[5] = dp_adapt_integer("training", 0);
    a.in[7] = a.in[6];
    a.in[6] = dp_adapt_integer("momentum", 0);
    a.out[1] = a.out[2] = dp_adapt_absent("statistics");
    a.call.n_out = 3;
    status = dp_adapt_end(&a, &dp_norm_batch, 8, out_plan);
    if (status == DP_OK)
        (*out_plan)->after = copy_statistics;
    return status;
}

/* Where positions begin: at the corners' centres, at the centres of pixels, or at the first pixel (NULL: not offered).
 */
static dp_status resize(const dp_operator_call *call, const dp_function *corners, const dp_function *centres,
                        const dp_function *origin, dp_plan **out_plan) {
    static const dp_arg last = {.name = "data_format", .kind = DP_ARG_TEXT, .as.text = "NHWC"};
    const dp_arg *in = call->in;
    bool align = dp_arg_integer(&in[2], 0) != 0, half = dp_arg_integer(&in[3], 0) != 0;
    const dp_function *to = align ? corners : half ? centres : origin;
    layout of_x, of_y;
    if (align && half)
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s are both set, but at most one may be", in[2].name, in[3].name);
    if (!to)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is %d, which Doppel does not do for %s", in[align ? 2 : 3].name, align,
                       call->op->name);
    dp_status status = check_rank(&in[0], 4);
    if (status == DP_OK && in[1].count != 2)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have 2: height and width", in[1].name,
                         (long long)in[1].count);
    if (status == DP_OK)
        status = layout_of(&in[0], &last, &of_x);
    if (status == DP_OK)
        status = layout_of(&call->out[0], &last, &of_y);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    turn(&a, &a.in[0], of_x);
    const dp_tensor *x = a.in[0].as.tensor;
    status = check_output(call, of_y, 2, x->dims[0], x->dims[1], in[1].as.integers);
    if (status != DP_OK)
        return status;
    turn(&a, &a.out[0], of_y);
    a.in[2] = dp_adapt_integer(in[2].name, align);
    for (int i = 3; i < 6; i++)
        a.in[i] = dp_adapt_absent("scale");
    return dp_adapt_end(&a, to, 6, out_plan);
}

static dp_status resize_nearest(const dp_operator_call *call, dp_plan **out_plan) {
    return resize(call, NULL, &dp_resize_exact2d, &dp_resize_nearest2d, out_plan);
}
static dp_status resize_linear(const dp_operator_call *call, dp_plan **out_plan) {
    return resize(call, &dp_resize_linear2d, &dp_resize_linear2d, &dp_resize_linear2d_origin, out_plan);
}
static dp_status resize_cubic(const dp_operator_call *call, dp_plan **out_plan) {
    return resize(call, &dp_resize_cubic2d, &dp_resize_cubic2d, &dp_resize_cubic2d_origin, out_plan);
}
static dp_status resize_area(const dp_operator_call *call, dp_plan **out_plan) {
    return resize(call, NULL, &dp_resize_area2d, &dp_resize_area2d, out_plan);
}

extern const dp_function dp_typed_batch_norm;
#define EXPORT(function, optional_in_bits)                                                                             \
    extern const dp_function dp_typed_##function;                                                                      \
    const dp_function dp_typed_##function = {#function, function, NULL, optional_in_bits, 0};
EXPORT(conv, 1u << 2 | 1u << 7)
const dp_function dp_typed_batch_norm = {"batch_norm", batch_norm, NULL, 0, 0x1e};
EXPORT(conv_transpose, 1u << 2 | 1u << 7)
EXPORT(max_pool, 0)
EXPORT(average_pool, 0)
EXPORT(windows_average, 0)
EXPORT(fold, 0)
extern const dp_function dp_typed_windows_max;
const dp_function dp_typed_windows_max = {"windows_max", windows_max, NULL, 0, 2};
EXPORT(resize_nearest, 0)
EXPORT(resize_linear, 0)
EXPORT(resize_cubic, 0)
EXPORT(resize_area, 0)
