/*
 * panel_conv.c - plans convolutions of images with channels last, and products, with weights in panels (panels.h):
 *   panel_conv(x, panels, bias, residual, outChannels, kernel, strides, pads, dilations, groups, form, activation,
 * alpha, beta, residualLast) -> y panel_conv_transposed(x, panels, bias, residual, outChannels, kernel, strides, pads,
 * outputPadding, dilations, groups, activation, alpha, beta, residualLast) -> y panel_product(x, panels, bias,
 * residual, columns, activation, alpha, beta, residualLast) -> y x [batch, height, width, channels], y and residual are
 * all float, half or bfloat16, channels lie side by side, and pixels may be further apart than they have channels;
 * those of y and of residual must be evenly spaced. pads are top, bottom, left, right. bias has one float per output
 * channel; residual has the shape of y and may be y. y = activation(sum + bias + residual), or with residualLast
 * activation(sum + bias) + residual.
 */
#include "ops/conv/panel_conv.h"

#include <string.h>

#include "ops/window.h"
#include "runtime/pool.h"

static const char *const activations[DP_ROWS_ACTIVATION_COUNT] = {
    "none", "relu", "clip", "leaky_relu", "hard_sigmoid",      "hard_swish",      "sigmoid",
    "silu", "tanh", "gelu", "gelu_tanh",  "hard_swish_affine", "leaky_relu_floor"};

/* activation, alpha, beta, residualLast */
static dp_status take_finish(const dp_arg *in, dp_rows_finish *f) {
    int i = 0;
    while (i < DP_ROWS_ACTIVATION_COUNT && strcmp(activations[i], in[0].as.text))
        i++;
    if (i == DP_ROWS_ACTIVATION_COUNT)
        return dp_fail(
            DP_ERR_ARGUMENT,
            "%s is \"%.24s\", but must be none, relu, clip, leaky_relu, hard_sigmoid, hard_swish, sigmoid, silu, "
            "tanh, gelu, gelu_tanh, hard_swish_affine or leaky_relu_floor",
            in[0].name, in[0].as.text);
    *f = (dp_rows_finish){.activation = (dp_rows_activation)i,
                          .alpha = (float)dp_arg_real(&in[1], 0),
                          .beta = (float)dp_arg_real(&in[2], 0),
                          .residual_last = dp_arg_integer(&in[3], 0) != 0};
    return DP_OK;
}

static dp_status expect_side_by_side(const dp_arg *arg, uint32_t elements) {
    dp_status status = dp_element_expect(arg, elements);
    const dp_tensor *t = arg->as.tensor;
    if (status == DP_OK && t->rank > 1 && t->strides[t->rank - 1] != 1 && t->dims[t->rank - 1] > 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s has a stride of %lld between channels, which must lie side by side",
                       arg->name, (long long)t->strides[t->rank - 1]);
    return status;
}

/* The distance of pixels that are evenly spaced: all dims but the last as one. */
static dp_status pixels_of(const dp_arg *arg, int64_t *out_stride) {
    const dp_tensor *t = arg->as.tensor;
    int64_t next = -1;
    *out_stride = t->dims[t->rank - 1];
    for (int d = t->rank - 2; d >= 0; d--) {
        if (t->dims[d] == 1)
            continue;
        if (next >= 0 && t->strides[d] != next)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s: pixels are not evenly spaced, as they must be (stride %lld of dimension %d)", arg->name,
                           (long long)t->strides[d], d);
        if (next < 0)
            *out_stride = t->strides[d];
        next = t->strides[d] * t->dims[d];
    }
    return DP_OK;
}

/* panels, bias and residual, which follow x in all functions. y and the filter are known. */
static dp_status take_operands(const dp_operator_call *call, dp_panel_conv *c) {
    const dp_arg *in = call->in, *y = &call->out[0];
    const dp_tensor *panels = in[1].as.tensor;
    int64_t elements = 0;
    dp_status status = dp_conv_panels_count(&c->filter, &elements);
    if (status == DP_OK)
        status = dp_element_expect(&in[1], DP_EL_BIT(dp_conv_panels_element(&c->filter)));
    if (status == DP_OK && (dp_tensor_count(panels) != elements || !dp_tensor_is_contiguous(panels)))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but the weights of this operator are %lld, contiguous",
                       in[1].name, (long long)dp_tensor_count(panels), (long long)elements);
    c->group_panels = elements / c->filter.groups;
    c->x_slot = in[0].slot;
    c->panels_slot = in[1].slot;
    c->bias_slot = c->residual_slot = -1;
    c->y_slot = y->slot;
    if (status == DP_OK && in[2].kind == DP_ARG_TENSOR) {
        c->bias_slot = in[2].slot;
        status = dp_element_expect(&in[2], DP_EL_BIT(DP_F32));
        if (status == DP_OK)
            status = dp_shape_expect(in[2].as.tensor, in[2].name, &c->filter.out_channels, 1, "one per output channel");
        if (status == DP_OK && !dp_tensor_is_contiguous(in[2].as.tensor))
            status = dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous", in[2].name);
    }
    if (status == DP_OK && in[3].kind == DP_ARG_TENSOR) {
        c->residual_slot = in[3].slot;
        status = expect_side_by_side(&in[3], DP_EL_BIT(c->element));
        if (status == DP_OK)
            status = dp_shape_expect(in[3].as.tensor, in[3].name, y->as.tensor->dims, y->as.tensor->rank, "that of y");
        if (status == DP_OK)
            status = pixels_of(&in[3], &c->residual_pixel);
    }
    if (status == DP_OK)
        status = pixels_of(y, &c->y_pixel);
    return status;
}

static dp_status make_plan(const dp_operator_call *call, dp_panel_conv *c, dp_plan **out_plan) {
    static const char *const names[] = {"rows", "band", "depthwise", "transposed", "winograd", "product"};
    if (dp_panel_is_product(c))
        c->way = DP_PANEL_PRODUCT;
    dp_panel_divide(c, dp_pool_width());
    if (c->scratch_bytes > (size_t)1 << 40)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s of this size needs more room than any machine has", call->op->name);
    dp_plan *plan = dp_plan_new(call, dp_panel_run, sizeof *c);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), c, sizeof *c);
    plan->path = names[c->way];
    *out_plan = plan;
    return DP_OK;
}

/* Two numbers, or one for both. */
static dp_status take_pair(const dp_arg *arg, int64_t low, int64_t out[2]) {
    int64_t list[DP_SPACE];
    dp_status status = dp_window_list(arg, 2, low, low, low, list);
    out[0] = list[1];
    out[1] = list[2];
    return status;
}

static dp_status take_pads(const dp_arg *arg, dp_panel_conv *c) {
    if (arg->count != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have 4: top, bottom, left, right", arg->name,
                       (long long)arg->count);
    for (int i = 0; i < 4; i++) {
        int64_t value = arg->as.integers[i];
        if (value < 0 || value > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld, but pads must be 0 to %d", arg->name, (long long)value,
                           DP_WINDOW_LIMIT);
        (i % 2 ? c->pad_end : c->pad)[i / 2] = value;
    }
    return DP_OK;
}

static dp_status take_element(const dp_arg *x, dp_panel_conv *c) {
    dp_status status = expect_side_by_side(x, DP_EL_BIT(DP_F32) | DP_EL_HALVES);
    c->element = x->as.tensor->element;
    c->filter.low = c->element == DP_F32 ? 0 : c->element;
    c->size = c->element == DP_F32 ? 4 : 2;
    return status;
}

static dp_status take_image(const dp_arg *arg, dp_panel_conv *c) {
    const dp_tensor *x = arg->as.tensor;
    dp_status status = take_element(arg, c);
    if (status != DP_OK)
        return status;
    if (x->rank != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 4: batch, height, width, channels",
                       arg->name, x->rank);
    for (int d = 0; d < 4; d++)
        if (x->dims[d] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at most %d", arg->name, d,
                           (long long)x->dims[d], DP_WINDOW_LIMIT);
    c->batch = x->dims[0];
    for (int d = 0; d < 2; d++)
        c->in[d] = x->dims[1 + d];
    memcpy(c->x_stride, x->strides, sizeof c->x_stride);
    c->filter.in_channels = x->dims[3];
    return DP_OK;
}

static dp_status take_output(const dp_arg *arg, const dp_panel_conv *c) {
    const int64_t dims[4] = {c->batch, c->out[0], c->out[1], c->filter.out_channels};
    dp_status status =
        dp_shape_expect(arg->as.tensor, arg->name, dims, 4, "input, kernel, strides, pads and dilations");
    if (status == DP_OK)
        status = dp_places_expect(arg);
    return status == DP_OK ? expect_side_by_side(arg, DP_EL_BIT(c->element)) : status;
}

/* The numbers of a filter; in[4] is the output channels. */
static dp_status take_filter(const dp_arg *in, const dp_arg *dilations, const dp_arg *groups, dp_panel_conv *c) {
    dp_conv_filter *f = &c->filter;
    f->out_channels = dp_arg_integer(&in[4], 0);
    f->groups = dp_arg_integer(groups, 1);
    dp_status status = take_pair(&in[5], 1, f->kernel);
    if (status == DP_OK)
        status = take_pair(&in[6], 1, f->stride);
    if (status == DP_OK)
        status = take_pads(&in[7], c);
    if (status == DP_OK)
        status = take_pair(dilations, 1, f->dilation);
    int64_t unused;
    if (status == DP_OK)
        status = dp_conv_panels_count(f, &unused);
    if (status != DP_OK)
        return status;
    c->channels = f->in_channels / f->groups;
    c->columns = f->out_channels / f->groups;
    return DP_OK;
}

static dp_status prepare_conv(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    dp_panel_conv c = {0};
    dp_conv_filter *f = &c.filter;
    while (f->form < DP_CONV_FORM_COUNT && strcmp(in[10].as.text, dp_conv_form_name(f->form)))
        f->form++;
    if (f->form == DP_CONV_FORM_COUNT)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be direct, winograd2 or winograd4", in[10].name,
                       in[10].as.text);
    dp_status status = take_image(&in[0], &c);
    if (status == DP_OK)
        status = take_filter(in, &in[8], &in[9], &c);
    if (status == DP_OK)
        status = take_finish(&in[11], &c.finish);
    if (status != DP_OK)
        return status;
    for (int d = 0; d < 2; d++) {
        dp_axis axis = {.size = c.in[d],
                        .kernel = f->kernel[d],
                        .stride = f->stride[d],
                        .dilation = f->dilation[d],
                        .pad = c.pad[d],
                        .pad_end = c.pad_end[d]};
        c.out[d] = dp_axis_windows(&axis, false);
        if (c.out[d] < 1)
            return dp_fail(
                DP_ERR_ARGUMENT, "%s: the kernel of %lld reaches over more than the %lld elements of %s with pads",
                in[5].name, (long long)f->kernel[d], (long long)(c.in[d] + c.pad[d] + c.pad_end[d]), in[0].name);
    }
    status = take_output(&call->out[0], &c);
    if (status == DP_OK)
        status = take_operands(call, &c);
    enum { BAND_CHANNELS = 8 };
    c.way = dp_conv_winograd(f->form) ? DP_PANEL_WINOGRAD
            : dp_conv_is_depthwise(f) ? DP_PANEL_DEPTHWISE
            : f->groups == 1 && c.channels <= BAND_CHANNELS && f->kernel[1] > 1 && f->dilation[1] == 1 ? DP_PANEL_BAND
                                                                                                       : DP_PANEL_ROWS;
    return status == DP_OK ? make_plan(call, &c, out_plan) : status;
}

static dp_status prepare_transposed(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    dp_panel_conv c = {.way = DP_PANEL_TRANSPOSED, .filter.transposed = true};
    int64_t extra[2];
    dp_status status = take_image(&in[0], &c);
    if (status == DP_OK)
        status = take_filter(in, &in[9], &in[10], &c);
    if (status == DP_OK)
        status = take_pair(&in[8], 0, extra);
    if (status == DP_OK)
        status = take_finish(&in[11], &c.finish);
    if (status != DP_OK)
        return status;
    const dp_conv_filter *f = &c.filter;
    for (int d = 0; d < 2; d++) {
        c.out[d] =
            (c.in[d] - 1) * f->stride[d] + (f->kernel[d] - 1) * f->dilation[d] + 1 - c.pad[d] - c.pad_end[d] + extra[d];
        if (c.in[d] < 1 || c.out[d] < 1 || c.out[d] > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d of space would become %lld, but must be 1 to %d",
                           call->out[0].name, d, (long long)c.out[d], DP_WINDOW_LIMIT);
    }
    status = take_output(&call->out[0], &c);
    if (status == DP_OK)
        status = take_operands(call, &c);
    return status == DP_OK ? make_plan(call, &c, out_plan) : status;
}

/* All dims but the last are rows: an image of one line. */
static dp_status prepare_product(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *y = &call->out[0];
    const dp_tensor *x = in[0].as.tensor;
    dp_panel_conv c = {.way = DP_PANEL_ROWS,
                       .batch = 1,
                       .in = {1, 1},
                       .filter = {.groups = 1, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}}};
    int64_t dims[DP_TENSOR_DIMS], rows = 1;
    dp_status status = take_element(&in[0], &c);
    if (status != DP_OK)
        return status;
    if (x->rank < 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions, but the last one is what is multiplied", in[0].name);
    memcpy(dims, x->dims, sizeof dims);
    for (int d = 0; d < x->rank - 1; d++)
        rows *= dims[d];
    c.filter.in_channels = c.channels = x->dims[x->rank - 1];
    c.filter.out_channels = c.columns = dims[x->rank - 1] = dp_arg_integer(&in[4], 0);
    int64_t unused;
    status = dp_conv_panels_count(&c.filter, &unused);
    if (status == DP_OK)
        status = dp_shape_expect(y->as.tensor, y->name, dims, x->rank, "the rows of x and columns");
    if (status == DP_OK)
        status = dp_places_expect(y);
    if (status == DP_OK)
        status = expect_side_by_side(y, DP_EL_BIT(c.element));
    if (status == DP_OK)
        status = take_finish(&in[5], &c.finish);
    if (status == DP_OK)
        status = take_operands(call, &c);
    if (status == DP_OK)
        status = pixels_of(&in[0], &c.x_stride[2]);
    c.in[1] = c.out[1] = rows;
    c.out[0] = 1;
    return status == DP_OK ? make_plan(call, &c, out_plan) : status;
}

#define EXPORT(function, prepare)                                                                                      \
    extern const dp_function dp_conv_##function;                                                                       \
    const dp_function dp_conv_##function = {#function, prepare, NULL, 1 << 2 | 1 << 3, 0};
EXPORT(panel_conv, prepare_conv)
EXPORT(panel_conv_transposed, prepare_transposed)
EXPORT(panel_product, prepare_product)
