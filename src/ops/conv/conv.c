/*
 * conv.c - plans convolutions:
 *   conv(input, weight, bias, stride, padding, dilation, transposed, outputPadding, groups, cubeMathType) -> output
 *   depthwise(input, weight, kernelSize, bias, stride, padding, dilation, cubeMathType) -> output
 *   tbc(input, weight, bias, pad, cubeMathType) -> output    input [time, batch, channels], weight [tap, in, out]
 * y(n, o, p) = bias(o) + sum over c, k of w(o, c, k) * x(n, c, p * stride + k * dilation - padding), 0 outside x.
 * Transposed: y(n, o, p * stride + k * dilation - padding) += w(c, o, k) * x(n, c, p). Sums are float. The padding may
 * be one number per dim of space or a pair (before, after). cubeMathType is 0 to 3 and changes nothing.
 */
#include "ops/conv/conv.h"

#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "runtime/pool.h"

enum { COLUMNS_BYTES = 16 << 20 /* of a transposed convolution's columns at a time */ };

static dp_conv_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_conv_fill_table_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_conv_fill_table_avx2(&table);
        return;
    }
#endif
    dp_conv_fill_table_generic(&table);
}

const dp_conv_table *dp_conv_current(void) {
    pthread_once(&once, fill_table);
    return &table;
}

static const dp_arg absent = {.name = "absent", .kind = DP_ARG_ABSENT};

static dp_status take_kernel(const dp_conv_arguments *a, dp_conv *c) {
    int64_t stride[DP_SPACE], dilation[DP_SPACE];
    dp_status status = dp_window_list(a->stride, a->space, 1, a->stride->kind == DP_ARG_ABSENT ? 1 : 0, 1, stride);
    if (status == DP_OK)
        status = dp_window_list(a->dilation, a->space, 1, a->dilation->kind == DP_ARG_ABSENT ? 1 : 0, 1, dilation);
    if (status == DP_OK)
        status = dp_window_padding(a->padding, a->space, c->axis);
    c->taps = 1;
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++) {
        c->axis[d].kernel = c->w.size[d];
        c->axis[d].stride = stride[d];
        c->axis[d].dilation = dilation[d];
        if (c->w.size[d] < 1 || c->w.size[d] > DP_WINDOW_LIMIT / c->taps)
            return dp_fail(DP_ERR_ARGUMENT, "%s: a kernel of %lld x %lld x %lld is not possible", a->w->name,
                           (long long)c->w.size[0], (long long)c->w.size[1], (long long)c->w.size[2]);
        c->taps *= c->w.size[d];
    }
    return status;
}

static dp_status take_channels(const dp_conv_arguments *a, dp_conv *c, bool transposed) {
    c->groups = a->groups->kind == DP_ARG_ABSENT ? c->x.channels : dp_arg_integer(a->groups, 1);
    if (a->groups->kind == DP_ARG_ABSENT && c->groups < 1)
        c->groups = 1;
    if (c->groups < 1 || c->groups > INT32_MAX || c->x.channels % c->groups)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 1 and divide the %lld channels of %s",
                       a->groups->name, (long long)c->groups, (long long)c->x.channels, a->x->name);
    c->in_channels = c->x.channels / c->groups;
    int64_t expected = transposed ? c->x.channels : c->in_channels, found = transposed ? c->w.batch : c->w.channels;
    if (expected != found)
        return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be %lld, the channels of %s%s", a->w->name,
                       transposed ? 0 : 1, (long long)found, (long long)expected, a->x->name,
                       transposed ? "" : " divided by the groups");
    if (!transposed && c->w.batch % c->groups)
        return dp_fail(DP_ERR_ARGUMENT, "%s: dimension 0 is %lld, but must be a multiple of the groups, %lld",
                       a->w->name, (long long)c->w.batch, (long long)c->groups);
    c->out_channels = transposed ? c->w.channels : c->w.batch / c->groups;
    if (a->bias->kind == DP_ARG_TENSOR) {
        int64_t all = c->out_channels * c->groups;
        const dp_tensor *bias = a->bias->as.tensor;
        dp_status status = dp_shape_expect(bias, a->bias->name, &all, 1, "one per output channel");
        if (status != DP_OK)
            return status;
        c->bias_slot = a->bias->slot;
        c->bias_element = bias->element;
        c->bias_stride = bias->strides[0];
    }
    return DP_OK;
}

/* The sizes of the output, and the axes. */
static dp_status take_sizes(const dp_conv_arguments *a, dp_conv *c, bool transposed) {
    dp_image expected = {.batch = c->x.batch, .channels = c->out_channels * c->groups};
    int64_t extra[DP_SPACE] = {0, 0, 0};
    if (transposed) {
        dp_status status = dp_window_list(a->output_padding, a->space, 0, 0, 0, extra);
        if (status != DP_OK)
            return status;
    }
    for (int d = 0; d < DP_SPACE; d++) {
        dp_axis *axis = &c->axis[d];
        int64_t reach = (axis->kernel - 1) * axis->dilation + 1;
        if (transposed) {
            axis->windows = c->x.size[d];
            axis->size = axis->windows < 1
                             ? 0
                             : (axis->windows - 1) * axis->stride + reach - axis->pad - axis->pad_end + extra[d];
            if (axis->size < 0)
                return dp_fail(DP_ERR_ARGUMENT,
                               "%s: the padding (%lld + %lld) takes away more than the output has along dimension %d "
                               "of space",
                               a->padding->name, (long long)axis->pad, (long long)axis->pad_end,
                               d - (DP_SPACE - a->space));
            if (extra[d] >= axis->stride && extra[d] >= axis->dilation && extra[d])
                return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be smaller than the stride or the dilation",
                               a->output_padding->name, (long long)extra[d]);
        } else {
            axis->size = c->x.size[d];
            if (axis->size + axis->pad + axis->pad_end < reach && c->x.batch)
                return dp_fail(DP_ERR_ARGUMENT,
                               "%s: the kernel reaches over %lld elements along dimension %d of space, but %s with "
                               "its padding has %lld",
                               a->w->name, (long long)reach, d - (DP_SPACE - a->space), a->x->name,
                               (long long)(axis->size + axis->pad + axis->pad_end));
            axis->windows = dp_axis_windows(axis, false);
        }
        expected.size[d] = transposed ? axis->size : axis->windows;
    }
    dp_status status = dp_image_expect(a->y, &c->y, &expected, "input, kernel, stride, padding and dilation");
    c->windows = status == DP_OK ? c->axis[0].windows * c->axis[1].windows * c->axis[2].windows : 0;
    return status;
}

/* The stride of dims that lie in memory as if they were one; false when they do not. Dims of 1 do not matter. */
static bool merged_stride(const int64_t *dims, const int64_t *strides, int n, int64_t *out_stride) {
    int64_t next = -1;
    *out_stride = 1;
    for (int d = n - 1; d >= 0; d--) {
        if (dims[d] == 1)
            continue;
        if (next >= 0 && strides[d] != next)
            return false;
        if (next < 0)
            *out_stride = strides[d];
        next = strides[d] * dims[d];
    }
    return true;
}

static void choose_way(dp_conv *c, bool transposed) {
    bool single = c->taps == 1;
    for (int d = 0; d < DP_SPACE; d++)
        single = single && c->axis[d].pad == 0;
    c->way = transposed                                      ? DP_CONV_TRANSPOSED
             : c->in_channels == 1 && c->axis[2].windows > 0 ? DP_CONV_DEPTHWISE
             : single                                        ? DP_CONV_PRODUCT
                                                             : DP_CONV_WINDOWS;
    if (c->way != DP_CONV_PRODUCT)
        return;
    /* one tap: the image is the positions themselves */
    for (int d = 0; d < DP_SPACE; d++) {
        c->x.size[d] = c->axis[d].size = c->axis[d].windows;
        c->x.stride[d] *= c->axis[d].stride;
        c->axis[d].stride = 1;
    }
}

static void place_input(dp_conv *c, dp_workspace *workspace) {
    dp_image *x = &c->x;
    bool matrix = c->way == DP_CONV_PRODUCT || c->way == DP_CONV_TRANSPOSED;
    int64_t step = matrix ? 1 : c->axis[2].stride;
    if (c->way == DP_CONV_DEPTHWISE)
        return; /* rows are copied tile by tile */
    if (matrix)
        c->x_copied = !merged_stride(x->size, x->stride, DP_SPACE, &c->position_stride);
    else
        c->x_copied = x->element != DP_F32 || step != 1 || (x->stride[2] != 1 && x->size[2] != 1);
    if (!c->x_copied)
        return;
    c->phase_stride = (x->size[2] + step - 1) / step;
    c->position_stride = 1;
    int64_t row = c->phase_stride * step, rows;
    if (__builtin_mul_overflow(x->batch * x->channels * x->size[0] * x->size[1], row, &rows))
        workspace->failed = true;
    else
        c->x_at = dp_workspace_take(workspace, rows, sizeof(float));
}

static void place_weights(dp_conv *c, dp_workspace *workspace) {
    const dp_image *w = &c->w;
    int64_t dims[1 + DP_SPACE] = {w->channels, w->size[0], w->size[1], w->size[2]};
    int64_t strides[1 + DP_SPACE] = {w->channel_stride, w->stride[0], w->stride[1], w->stride[2]};
    c->w_row_stride = w->batch_stride;
    c->w_copied = c->way == DP_CONV_DEPTHWISE || !merged_stride(dims, strides, 1 + DP_SPACE, &c->w_column_stride);
    if (!c->w_copied)
        return;
    c->w_at = dp_workspace_take(workspace, w->batch * w->channels * c->taps, sizeof(float));
    c->w_row_stride = w->channels * c->taps;
    c->w_column_stride = 1;
}

static void place_output(dp_conv *c, dp_workspace *workspace) {
    if (c->way == DP_CONV_DEPTHWISE || c->way == DP_CONV_TRANSPOSED)
        return;
    c->y_staged = !merged_stride(c->y.size, c->y.stride, DP_SPACE, &c->y_position_stride);
    if (c->y_staged) {
        c->y_at = dp_workspace_take(workspace, c->y.batch * c->y.channels * c->windows, sizeof(float));
        c->y_position_stride = 1;
    }
}

static int element_of(bool copied, int element) {
    return copied ? DP_F32 : element;
}

dp_gemm_problem dp_conv_problem(const dp_conv *c, int64_t outputs) {
    static const float somewhere; /* until the run knows */
    bool transposed = c->way == DP_CONV_TRANSPOSED;
    dp_gemm_problem p = {.m = (size_t)outputs, .n = (size_t)c->windows, .alpha = 1};
    p.a = (dp_gemm_matrix){.data = &somewhere,
                           .dtype = (dp_dtype)element_of(c->w_copied, c->w.element),
                           .row_stride = c->w_row_stride,
                           .column_stride = c->w_column_stride};
    p.b = (dp_gemm_matrix){.data = &somewhere,
                           .dtype = (dp_dtype)element_of(c->x_copied, c->x.element),
                           .row_stride = c->x_copied ? c->windows : c->x.channel_stride,
                           .column_stride = c->position_stride};
    p.c = (dp_gemm_matrix){.data = &somewhere,
                           .dtype = (dp_dtype)element_of(c->y_staged, c->y.element),
                           .row_stride = c->y_staged ? c->windows : c->y.channel_stride,
                           .column_stride = c->y_position_stride};
    p.k = (size_t)(c->in_channels * (transposed ? 1 : c->taps));
    if (c->way == DP_CONV_WINDOWS) {
        p.b.dtype = DP_F32;
        p.b.fill = dp_conv_current()->fill;
    }
    if (transposed) {
        p.m = (size_t)(outputs * c->taps);
        p.a.row_stride = c->w_column_stride;
        p.a.column_stride = c->w_row_stride;
        p.c = (dp_gemm_matrix){.data = &somewhere, .dtype = DP_F32, .row_stride = c->windows, .column_stride = 1};
    } else if (c->bias_slot >= 0) {
        p.epilogue = (dp_gemm_epilogue){.bias = &somewhere, .bias_dtype = DP_F32, .bias_per_row = true};
    }
    return p;
}

/* Scratch for the product of so many output channels. */
static dp_status plan_product(dp_conv *c, int64_t outputs) {
    dp_gemm_problem problem = dp_conv_problem(c, outputs);
    dp_gemm_plan plan;
    dp_status status = dp_gemm_plan_make(&problem, c->threads, &plan);
    if (status != DP_OK)
        return status;
    c->tiles_m = plan.tiles_m;
    c->tiles_n = plan.tiles_n;
    if (plan.scratch_bytes > c->scratch_bytes)
        c->scratch_bytes = plan.scratch_bytes;
    return DP_OK;
}

/* Rows of a tile, so that its padded rows stay in the second level cache. */
static void plan_depthwise(dp_conv *c) {
    enum { TILE_FLOATS = 32768 };
    const dp_axis *ax = &c->axis[2], *ay = &c->axis[1];
    c->dw_row_floats = ax->stride * (ax->windows + (ax->kernel - 1) * ax->dilation / ax->stride);
    int64_t step = ay->dilation == 1 ? ay->stride : ay->kernel,
            fit = TILE_FLOATS / c->dw_row_floats / c->axis[0].kernel;
    c->dw_rows = fit > ay->kernel ? (fit - ay->kernel) / step + 1 : 1;
    c->dw_rows = c->dw_rows < ay->windows ? c->dw_rows : ay->windows;
    c->dw_slots = (c->dw_rows - 1) * step + ay->kernel;
}

static dp_status plan_work(dp_conv *c, dp_workspace *workspace) {
    dp_status status = DP_OK;
    int64_t problems = c->x.batch * c->groups, width = dp_pool_width();
    c->threads = problems >= 4 * width && c->way != DP_CONV_TRANSPOSED ? 1 : (unsigned)width;
    if (c->way == DP_CONV_TRANSPOSED) {
        int64_t column = 0;
        if (__builtin_mul_overflow(c->taps, c->windows, &column)) {
            workspace->failed = true;
            return DP_OK;
        }
        c->chunk = column ? COLUMNS_BYTES / 4 / column : c->out_channels;
        c->chunk = c->chunk < 1 ? 1 : c->chunk > c->out_channels ? c->out_channels : c->chunk;
        c->columns_at = dp_workspace_take(workspace, c->chunk * column, sizeof(float));
        status = plan_product(c, c->chunk);
        if (status == DP_OK && c->chunk && c->out_channels % c->chunk)
            status = plan_product(c, c->out_channels % c->chunk);
    } else if (c->way != DP_CONV_DEPTHWISE) {
        status = plan_product(c, c->out_channels);
    }
    int64_t floats = c->y.size[2] + c->x.size[2], rows = 0;
    if (c->way == DP_CONV_DEPTHWISE) {
        plan_depthwise(c);
        floats += (c->dw_rows - 1) * c->y.size[2];
        if (__builtin_mul_overflow(c->dw_slots * c->axis[0].kernel, c->dw_row_floats, &rows) ||
            __builtin_add_overflow(floats, rows, &floats) || floats > (int64_t)1 << 48) {
            workspace->failed = true;
            return DP_OK;
        }
    }
    if (c->scratch_bytes < (size_t)floats * sizeof(float))
        c->scratch_bytes = (size_t)floats * sizeof(float);
    return status;
}

dp_status dp_conv_check_types(const dp_operator_call *call, const dp_conv_arguments *a) {
    const dp_arg *all[] = {a->x, a->w, a->y, a->bias};
    for (int i = 0; i < 4; i++) {
        dp_status status = all[i]->kind == DP_ARG_TENSOR ? dp_element_expect(all[i], call->op->elements) : DP_OK;
        if (status != DP_OK)
            return status;
    }
    int64_t math = dp_arg_integer(a->math, 0);
    if (math < 0 || math > 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to 3", a->math->name, (long long)math);
    return DP_OK;
}

dp_status dp_conv_take(const dp_conv_arguments *a, dp_conv *c) {
    bool transposed = dp_arg_integer(a->transposed, 0) != 0;
    dp_status status = take_kernel(a, c);
    if (status == DP_OK)
        status = take_channels(a, c, transposed);
    return status == DP_OK ? take_sizes(a, c, transposed) : status;
}

dp_status dp_conv_place(dp_conv *c, bool transposed, dp_workspace *workspace) {
    choose_way(c, transposed);
    if (!c->y.batch || !c->y.channels || !c->y.size[0] || !c->y.size[1] || !c->y.size[2])
        return DP_OK;
    place_input(c, workspace);
    place_weights(c, workspace);
    place_output(c, workspace);
    c->bias_at = dp_workspace_take(workspace, c->bias_slot >= 0 ? c->y.channels : 0, sizeof(float));
    return plan_work(c, workspace);
}

static dp_status run(dp_plan *plan) {
    return dp_conv_execute(plan, dp_plan_state(plan));
}

static dp_status finish(const dp_operator_call *call, const dp_conv_arguments *a, dp_conv *c, dp_plan **out_plan) {
    static const char *const names[] = {"product", "windows", "depthwise", "transposed"};
    dp_workspace workspace = {0};
    dp_status status = dp_conv_take(a, c);
    if (status == DP_OK)
        status = dp_conv_place(c, dp_arg_integer(a->transposed, 0) != 0, &workspace);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof *c);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    status = dp_workspace_set(&workspace, plan);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    memcpy(dp_plan_state(plan), c, sizeof *c);
    plan->path = names[c->way];
    if (c->way == DP_CONV_WINDOWS)
        plan->why = c->x_copied ? "the input is copied first: not float, a step, or x not contiguous"
                                : "more than one tap, or padding";
    else if (c->way == DP_CONV_TRANSPOSED)
        plan->why = "windows of a transposed convolution are added up in memory";
    *out_plan = plan;
    return DP_OK;
}

dp_status dp_conv_images(const dp_conv_arguments *a, dp_conv *c, int *out_space) {
    int space = a->w->as.tensor->rank - 2;
    if (space < 1 || space > DP_SPACE)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has %d dimensions, but must have 3, 4 or 5: two of channels and the kernel's", a->w->name,
                       a->w->as.tensor->rank);
    *out_space = space;
    dp_status status = dp_image_of(a->x, space, false, &c->x);
    if (status == DP_OK)
        status = dp_image_of(a->w, space, false, &c->w);
    return status == DP_OK ? dp_image_of(a->y, space, false, &c->y) : status;
}

static dp_status prepare_images(const dp_operator_call *call, dp_conv_arguments *a, dp_plan **out_plan) {
    dp_conv c = {.bias_slot = -1};
    dp_status status = dp_conv_check_types(call, a);
    if (status == DP_OK)
        status = dp_places_expect(a->y);
    if (status == DP_OK)
        status = dp_conv_images(a, &c, &a->space);
    return status == DP_OK ? finish(call, a, &c, out_plan) : status;
}

static dp_status prepare_conv(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    dp_conv_arguments a = {.x = &in[0],
                           .w = &in[1],
                           .bias = &in[2],
                           .stride = &in[3],
                           .padding = &in[4],
                           .dilation = &in[5],
                           .transposed = &in[6],
                           .output_padding = &in[7],
                           .groups = &in[8],
                           .math = &in[9],
                           .y = &call->out[0]};
    return prepare_images(call, &a, out_plan);
}

static dp_status prepare_depthwise(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    dp_conv_arguments a = {.x = &in[0],
                           .w = &in[1],
                           .bias = &in[3],
                           .stride = &in[4],
                           .padding = &in[5],
                           .dilation = &in[6],
                           .transposed = &absent,
                           .output_padding = &absent,
                           .groups = &absent,
                           .math = &in[7],
                           .y = &call->out[0]};
    const dp_tensor *w = a.w->as.tensor;
    int64_t kernel[DP_SPACE];
    if (w->rank != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4", a.w->name, w->rank);
    dp_status status = dp_window_list(&in[2], 2, 1, 0, 1, kernel);
    if (status == DP_OK && (kernel[1] != w->dims[2] || kernel[2] != w->dims[3]))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld x %lld, but must be %lld x %lld, the last dimensions of %s",
                       in[2].name, (long long)kernel[1], (long long)kernel[2], (long long)w->dims[2],
                       (long long)w->dims[3], a.w->name);
    return status == DP_OK ? prepare_images(call, &a, out_plan) : status;
}

/* A line of time as an image of width only; its dims in another order. */
dp_status dp_conv_time_image(const dp_arg *arg, int batch, int channel, int time, dp_image *out) {
    const dp_tensor *t = arg->as.tensor;
    if (t->rank != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 3", arg->name, t->rank);
    for (int d = 0; d < 3; d++)
        if (t->dims[d] > INT32_MAX)
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at most %d", arg->name, d,
                           (long long)t->dims[d], INT32_MAX);
    *out = (dp_image){.slot = arg->slot,
                      .element = t->element,
                      .batch = t->dims[batch],
                      .channels = t->dims[channel],
                      .size = {1, 1, t->dims[time]},
                      .batch_stride = t->strides[batch],
                      .channel_stride = t->strides[channel],
                      .stride = {0, 0, t->strides[time]}};
    return DP_OK;
}

static dp_status prepare_tbc(const dp_operator_call *call, dp_plan **out_plan) {
    static const dp_arg one = {.name = "groups", .kind = DP_ARG_INTEGER, .as.integer = 1};
    const dp_arg *in = call->in;
    int64_t pad = dp_arg_integer(&in[3], 0);
    const dp_arg padding = {.name = in[3].name, .kind = DP_ARG_INT_LIST, .count = 1, .as.integers = &pad};
    dp_conv_arguments a = {.x = &in[0],
                           .w = &in[1],
                           .bias = &in[2],
                           .stride = &absent,
                           .padding = &padding,
                           .dilation = &absent,
                           .transposed = &absent,
                           .output_padding = &absent,
                           .groups = &one,
                           .math = &in[4],
                           .y = &call->out[0],
                           .space = 1};
    dp_conv c = {.bias_slot = -1};
    dp_status status = dp_conv_check_types(call, &a);
    if (status == DP_OK)
        status = dp_places_expect(a.y);
    if (status == DP_OK)
        status = dp_conv_time_image(a.x, 1, 2, 0, &c.x);
    if (status == DP_OK)
        status = dp_conv_time_image(a.w, 2, 1, 0, &c.w);
    if (status == DP_OK)
        status = dp_conv_time_image(a.y, 1, 2, 0, &c.y);
    return status == DP_OK ? finish(call, &a, &c, out_plan) : status;
}

extern const dp_function dp_conv_conv, dp_conv_depthwise, dp_conv_tbc;
const dp_function dp_conv_conv = {"conv", prepare_conv, NULL, 1 << 2 | 1 << 7, 0};
const dp_function dp_conv_depthwise = {"depthwise", prepare_depthwise, NULL, 1 << 3, 0};
const dp_function dp_conv_tbc = {"tbc", prepare_tbc, NULL, 1 << 2, 0};
