/*
 * picture_conv.c - plans convolutions of quantised pictures:
 *   picture_conv(x, panels, numbers, outside, table, residual, outChannels, kernel, strides, pads, dilations, groups,
 *                activation, tiles) -> y
 * sum over taps and channels of x * weight, x being outside[channel] outside the picture; then what math/bytes/bytes.h
 * says, with numbers [5, columns]: factor, summand, the residual's factor, factor and summand behind the activation; y
 * uint8, or float, which is not rounded. table: 256 bytes that y becomes at last.
 *
 * panels, int8, flat: of every group those of dp_bytes_pack, k counting taps from top left, channels within; depthwise,
 * [taps][channels]; with tiles, a transposed convolution whose windows lie side by side (strides as the kernel, no
 * pads), for every line of a tile panels whose columns are (pixel of the line, output channel), and numbers for
 * (line, pixel, output channel).
 */
#include "ops/quant/picture_conv.h"

#include <string.h>

#include "runtime/pool.h"

enum { TAPS_MOST = 1024, NUMBERS = 5 };

dp_status dp_picture_panels(const dp_picture_conv *c, int64_t *out_bytes, int64_t *out_group) {
    const int64_t taps = c->kernel[0] * c->kernel[1];
    int64_t depth, columns = c->out;
    if (c->way == DP_PICTURE_DEPTHWISE) {
        *out_group = 0;
        *out_bytes = taps * c->x.channels;
        return DP_OK;
    }
    bool fails = __builtin_mul_overflow(c->way == DP_PICTURE_TILES ? 1 : taps, c->in, &depth);
    if (c->way == DP_PICTURE_TILES)
        fails |= __builtin_mul_overflow(columns, c->kernel[1], &columns);
    fails |= depth > INT64_MAX - DP_BYTES_DEPTH || columns > INT64_MAX - DP_BYTES_PANEL;
    depth = (depth + DP_BYTES_DEPTH - 1) / DP_BYTES_DEPTH * DP_BYTES_DEPTH;
    columns = (columns + DP_BYTES_PANEL - 1) / DP_BYTES_PANEL * DP_BYTES_PANEL;
    if (fails || __builtin_mul_overflow(depth, columns, out_group) ||
        __builtin_mul_overflow(*out_group, c->way == DP_PICTURE_TILES ? c->kernel[0] : c->groups, out_bytes))
        return dp_fail(DP_ERR_ARGUMENT, "no memory holds a filter of this size");
    return DP_OK;
}

static dp_status take_pair(const dp_arg *arg, int64_t out[2]) {
    enum { MOST = 1 << 20 };
    for (int i = 0; i < 2; i++) {
        out[i] = arg->count == 2 ? arg->as.integers[i] : 0;
        if (out[i] < 1 || out[i] > MOST)
            return dp_fail(DP_ERR_ARGUMENT, "%s must have 2 numbers from 1 to %d", arg->name, MOST);
    }
    return DP_OK;
}

static dp_status take_output_size(const dp_operator_call *call, dp_picture_conv *c, const int64_t pads[4],
                                  int64_t dims[4]) {
    const int64_t in[2] = {c->x.height, c->x.width};
    for (int d = 0; d < 2; d++) {
        const int64_t reach = (c->kernel[d] - 1) * c->dilation[d] + 1,
                      room = in[d] + pads[2 * d] + pads[2 * d + 1] - reach;
        c->pad[d] = pads[2 * d];
        if (c->way == DP_PICTURE_TILES ? in[d] > ((int64_t)1 << 31) / c->kernel[d] : room < 0)
            return dp_fail(DP_ERR_ARGUMENT, "the kernel of %s does not go with %s and its padding", call->op->name,
                           call->in[0].name);
        dims[1 + d] = c->way == DP_PICTURE_TILES ? in[d] * c->kernel[d] : room / c->stride[d] + 1;
    }
    return DP_OK;
}

static dp_status take_window(const dp_operator_call *call, dp_picture_conv *c, int64_t dims[4]) {
    const dp_arg *in = call->in, *pads = &in[9];
    const int64_t out = dp_arg_integer(&in[6], 0);
    dp_status status = dp_picture_of(&in[0], false, &c->x);
    if (status == DP_OK)
        status = take_pair(&in[7], c->kernel);
    if (status == DP_OK)
        status = take_pair(&in[8], c->stride);
    if (status == DP_OK)
        status = take_pair(&in[10], c->dilation);
    if (status != DP_OK)
        return status;
    c->groups = dp_arg_integer(&in[11], 1);
    if (c->kernel[0] > TAPS_MOST / c->kernel[1])
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has %lld x %lld taps, but may have 1 to %d", in[7].name,
                       (long long)c->kernel[0], (long long)c->kernel[1], TAPS_MOST);
    if (c->groups < 1 || out < 1 || out % c->groups || c->x.channels < 1 || c->x.channels % c->groups ||
        out > (int64_t)1 << 31)
        return dp_fail(DP_ERR_ARGUMENT, "%lld outputs in %lld groups do not go with %lld channels of %s",
                       (long long)out, (long long)c->groups, (long long)c->x.channels, in[0].name);
    for (int i = 0; i < 4; i++)
        if (pads->count != 4 || pads->as.integers[i] < 0 || pads->as.integers[i] > 1 << 20)
            return dp_fail(DP_ERR_ARGUMENT, "%s must have 4 numbers from 0: top, bottom, left, right", pads->name);
    c->in = c->x.channels / c->groups;
    c->out = out / c->groups;
    if (dp_arg_integer(&in[13], 0)) {
        c->way = DP_PICTURE_TILES;
        for (int i = 0; i < 4; i++)
            if (pads->as.integers[i] || c->kernel[i % 2] != c->stride[i % 2] || c->dilation[i % 2] != 1 ||
                c->groups != 1)
                return dp_fail(DP_ERR_UNSUPPORTED,
                               "tiles have no pads, groups and dilations, and strides as the kernel");
    }
    dims[0] = c->x.batch;
    dims[3] = out;
    return take_output_size(call, c, pads->as.integers, dims);
}

static dp_status take_constants(const dp_operator_call *call, dp_picture_conv *c) {
    const dp_arg *in = call->in;
    int64_t bytes = 0;
    dp_status status = dp_picture_panels(c, &bytes, &c->panel_bytes);
    if (status == DP_OK)
        status = dp_element_expect(&in[1], DP_EL_BIT(DP_I8));
    if (status == DP_OK && (dp_tensor_count(in[1].as.tensor) != bytes || !dp_tensor_is_contiguous(in[1].as.tensor)))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but the weights of this operator are %lld, contiguous",
                       in[1].name, (long long)dp_tensor_count(in[1].as.tensor), (long long)bytes);
    const int64_t all = c->out * c->groups * (c->way == DP_PICTURE_TILES ? c->kernel[0] * c->kernel[1] : 1);
    if (status == DP_OK)
        status = dp_picture_numbers(&in[2], NUMBERS, all);
    if (status == DP_OK)
        status = dp_element_expect(&in[3], DP_EL_BIT(DP_U8));
    if (status == DP_OK)
        status = dp_shape_expect(in[3].as.tensor, in[3].name, &c->x.channels, 1, "one per channel");
    if (status == DP_OK && in[4].kind == DP_ARG_TENSOR) {
        status = dp_element_expect(&in[4], DP_EL_BIT(DP_U8));
        if (status == DP_OK)
            status = dp_shape_expect(in[4].as.tensor, in[4].name, &(int64_t){DP_PICTURE_VALUES}, 1, "one per value");
    }
    for (int i = 3; i < 5 && status == DP_OK; i++)
        if (in[i].kind == DP_ARG_TENSOR && !dp_tensor_is_contiguous(in[i].as.tensor))
            status = dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous", in[i].name);
    c->panels_slot = in[1].slot;
    c->numbers_slot = in[2].slot;
    c->outside_slot = in[3].slot;
    c->table_slot = in[4].kind == DP_ARG_TENSOR ? in[4].slot : -1;
    return status;
}

static dp_status take_rest(const dp_operator_call *call, dp_picture_conv *c, const int64_t dims[4]) {
    static const char *const activations[DP_BYTES_ACTIVATION_COUNT] = {"none", "hard_swish"};
    const dp_arg *in = call->in, *y = &call->out[0];
    while (c->activation < DP_BYTES_ACTIVATION_COUNT && strcmp(activations[c->activation], in[12].as.text))
        c->activation++;
    if (c->activation == DP_BYTES_ACTIVATION_COUNT)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be none or hard_swish", in[12].name, in[12].as.text);
    dp_status status = dp_shape_expect(y->as.tensor, y->name, dims, 4, "the positions of the window");
    if (status == DP_OK)
        status = dp_places_expect(y);
    if (status == DP_OK)
        status = dp_picture_of(y, true, &c->y);
    c->as_float = status == DP_OK && y->as.tensor->element == DP_F32;
    c->residual_slot = in[5].kind == DP_ARG_TENSOR ? in[5].slot : -1;
    if (status == DP_OK && c->residual_slot >= 0) {
        dp_picture residual;
        status = dp_picture_of(&in[5], false, &residual);
        if (status == DP_OK)
            status = dp_shape_expect(in[5].as.tensor, in[5].name, dims, 4, "those of the result");
        c->residual_pixel = residual.pixel;
    }
    if (status == DP_OK && c->way == DP_PICTURE_TILES && (c->residual_slot >= 0 || c->y.pixel != c->y.channels))
        return dp_fail(DP_ERR_UNSUPPORTED, "tiles are written side by side, without a residual");
    if (c->way != DP_PICTURE_TILES && c->in == 1 && c->out == 1 && c->residual_slot < 0 && !c->as_float)
        c->way = DP_PICTURE_DEPTHWISE;
    c->direct = c->way != DP_PICTURE_DEPTHWISE && c->in % 4 == 0 &&
                (c->way == DP_PICTURE_TILES || (c->kernel[0] * c->kernel[1] == 1 && c->stride[0] * c->stride[1] == 1 &&
                                                dims[1] == c->x.height && dims[2] == c->x.width));
    return status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    static const char *const names[] = {"rows of bytes", "depthwise bytes", "tiles of bytes"};
    dp_picture_conv c = {0};
    int64_t dims[4];
    dp_status status = take_window(call, &c, dims);
    if (status == DP_OK)
        status = take_rest(call, &c, dims);
    if (status == DP_OK)
        status = take_constants(call, &c);
    if (status == DP_OK && c.as_float && c.table_slot >= 0)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is float, and no table makes bytes of it", call->out[0].name);
    if (status != DP_OK)
        return status;
    dp_picture_divide(&c, (unsigned)dp_pool_width());
    if (c.scratch_bytes > (size_t)1 << 40)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s of this size needs more room than any machine has", call->op->name);
    dp_plan *plan = dp_plan_new(call, dp_picture_conv_run, sizeof c);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &c, sizeof c);
    plan->path = c.direct ? "product of bytes" : names[c.way];
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_quant_picture_conv;
const dp_function dp_quant_picture_conv = {"picture_conv", prepare, NULL, 1 << 4 | 1 << 5, 0};
