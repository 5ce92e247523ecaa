/* Rows of the ONNX operators that quantise, and that compute with quantised values. */
#include <math.h>
#include <string.h>

#include "graph/onnx/lower_window.h"

static dp_value *both(dp_lowering *l, const char *type, dp_value *a, dp_value *b) {
    return dp_low_end(l, dp_low_begin(l, type, 1, 2, a, b));
}
static dp_value *reshaped(dp_lowering *l, dp_value *x, const int64_t *dims, int rank) {
    return dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, x, dp_low_list(l, dims, rank)));
}

static dp_value *to_element(dp_lowering *l, dp_value *x, int element) {
    if (!x || x->tensor.element == element)
        return x;
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, x);
    dp_low_integer(l, node, "dst_type", element);
    return node && dp_low_output(l, node, 0, element) ? dp_low_end(l, node) : NULL;
}

/* A scale or zero point per tensor as it is; per element of dim `axis` as [1, .., n, .., 1]. */
static dp_value *along(dp_lowering *l, dp_value *vector, int rank, int64_t axis) {
    int64_t dims[DP_TENSOR_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (!vector || vector->tensor.rank == 0 || dp_tensor_count(&vector->tensor) == 1)
        return vector && vector->tensor.rank ? reshaped(l, vector, dims, 0) : vector;
    axis += axis < 0 ? rank : 0;
    if (vector->tensor.rank != 1 || axis < 0 || axis >= rank) {
        dp_low_fail(l, DP_ERR_UNSUPPORTED, "scales by blocks are not supported");
        return NULL;
    }
    dims[axis] = vector->tensor.dims[0];
    return reshaped(l, vector, dims, rank);
}

/* round(x / scale) + zero, saturated to the type of the zero point (uint8 without one). */
static dp_node *quantised(dp_lowering *l, dp_value *x, dp_value *scale, dp_value *zero, int element) {
    bool is_signed = element == DP_I8 || element == DP_I16;
    int bits = element == DP_I8 || element == DP_U8 ? 8 : 16;
    double least = is_signed ? -ldexp(1, bits - 1) : 0, most = ldexp(1, is_signed ? bits - 1 : bits) - 1;
    dp_value *y = dp_low_end(l, dp_low_begin(l, "Rint", 1, 1, both(l, "Div", x, scale)));
    if (zero)
        y = both(l, "Add", y, to_element(l, zero, DP_F32));
    if (!y)
        return NULL;
    y = dp_low_end(l, dp_low_begin(l, "ClipByValue", 1, 3, y, dp_low_scalar(l, y, least), dp_low_scalar(l, y, most)));
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, y);
    dp_low_integer(l, node, "dst_type", element);
    return node;
}

dp_status dp_low_quantize(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *x = to_element(l, dp_low_in(l, 0), DP_F32);
    int64_t axis = dp_node_integer(l->node, "axis", 1);
    int element = dp_low_in(l, 2) ? dp_low_in(l, 2)->tensor.element : DP_U8, rank = dp_low_rank(l, 0);
    if (element != DP_I8 && element != DP_U8 && element != DP_I16 && element != DP_U16)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "results of type %s are not supported", dp_element_name(element));
    dp_value *scale = along(l, to_element(l, dp_low_in(l, 1), DP_F32), rank, axis);
    return dp_low_last(l, quantised(l, x, scale, along(l, dp_low_in(l, 2), rank, axis), element), element);
}

dp_status dp_low_dequantize(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    int64_t axis = dp_node_integer(l->node, "axis", 1);
    int rank = dp_low_rank(l, 0);
    dp_value *x = to_element(l, dp_low_in(l, 0), DP_F32), *scale = along(l, dp_low_in(l, 1), rank, axis);
    if (dp_low_in(l, 2))
        x = both(l, "Sub", x, to_element(l, along(l, dp_low_in(l, 2), rank, axis), DP_F32));
    return dp_low_last(l, dp_low_begin(l, "Mul", 1, 2, x, scale), DP_EL_NONE);
}

/* To uint8 by the least and the largest element, with 0 among them. */
dp_status dp_low_dynamic_quantize(dp_lowering *l) {
    int64_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *ends[2];
    static const char *const reductions[] = {"ReduceMinD", "ReduceMaxD"}, *const with_zero[] = {"Minimum", "Maximum"};
    for (int i = 0; i < 2; i++) {
        dp_node *node = dp_low_begin(l, reductions[i], 1, 1, x);
        dp_low_integers(l, node, "axes", axes, x->tensor.rank);
        ends[i] = both(l, with_zero[i], dp_low_end(l, node), dp_low_scalar(l, x, 0));
    }
    dp_node *scale = dp_low_begin(l, "Div", 1, 2, both(l, "Sub", ends[1], ends[0]), dp_low_scalar(l, x, 255));
    dp_low_give(l, scale, 0, 1, DP_EL_NONE);
    dp_value *size = dp_low_end(l, scale);
    dp_value *zero = both(l, "Div", dp_low_end(l, dp_low_begin(l, "Neg", 1, 1, ends[0])), size);
    zero = dp_low_end(l, dp_low_begin(l, "Rint", 1, 1, zero));
    if (zero)
        zero =
            dp_low_end(l, dp_low_begin(l, "ClipByValue", 1, 3, zero, dp_low_scalar(l, x, 0), dp_low_scalar(l, x, 255)));
    dp_node *point = dp_low_begin(l, "Cast", 1, 1, zero);
    dp_low_integer(l, point, "dst_type", DP_U8);
    dp_low_give(l, point, 0, 2, DP_U8);
    zero = dp_low_end(l, point);
    return dp_low_last(l, quantised(l, x, size, zero, DP_U8), DP_U8);
}

/* Integer products; the sums are int32. */

dp_status dp_low_matmul_integer(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    return dp_low_last(
        l, dp_low_begin(l, "MatMulInteger", 1, 4, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2), dp_low_in(l, 3)),
        DP_I32);
}

/* Inputs x, w and their zero points, wherever they stand in the ONNX node. */
static dp_node *conv_of(dp_lowering *l, int x, int w, int x_zero, int w_zero) {
    dp_window window;
    const dp_tensor *image = &dp_low_in(l, x)->tensor, *filter = &dp_low_in(l, w)->tensor;
    if (filter->rank != image->rank || image->rank < 3) {
        dp_low_fail(l, DP_ERR_ARGUMENT, "the filter has %d dimensions and the input %d", filter->rank, image->rank);
        return NULL;
    }
    if (dp_low_window_read(l, image, filter->dims + 2, &window) != DP_OK)
        return NULL;
    dp_node *node = dp_low_begin(l, "ConvInteger", 1, 4, dp_low_in(l, x), dp_low_in(l, w), dp_low_in(l, x_zero),
                                 dp_low_in(l, w_zero));
    dp_low_integers(l, node, "strides", window.stride, window.n);
    dp_low_integers(l, node, "dilations", window.dilation, window.n);
    dp_low_window_pads(l, node, &window);
    dp_low_integer(l, node, "groups", dp_node_integer(l->node, "group", 1));
    return node;
}

dp_status dp_low_conv_integer(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    return dp_low_last(l, conv_of(l, 0, 1, 2, 3), DP_I32);
}

/* The sums times scale_a * scale_b / scale_y, rounded, with the zero point of y. */
static dp_status requantised(dp_lowering *l, dp_value *sums, dp_value *a, dp_value *b, dp_value *y, dp_value *zero) {
    if (!sums || !a || !b)
        return l->status;
    dp_value *x = to_element(l, sums, DP_F32), *factor = both(l, "Div", both(l, "Mul", a, b), y);
    dp_value *scaled = both(l, "Mul", x, factor), *one = scaled ? dp_low_scalar(l, scaled, 1) : NULL;
    return scaled ? dp_low_last(l, quantised(l, scaled, one, zero, zero->tensor.element), zero->tensor.element)
                  : l->status;
}

static dp_value *sums_of(dp_lowering *l, dp_node *node) {
    return node && dp_low_output(l, node, 0, DP_I32) ? dp_low_end(l, node) : NULL;
}

/* x, scale, zero, w, scale, zero, scale of y, zero of y, bias (int32, in units of both scales). */
dp_status dp_low_qlinear_conv(dp_lowering *l) {
    if (dp_low_need(l, 8) != DP_OK)
        return l->status;
    int rank = dp_low_rank(l, 0);
    dp_value *sums = sums_of(l, conv_of(l, 0, 3, 2, 5));
    if (dp_low_in(l, 8))
        sums = both(l, "Add", sums, along(l, dp_low_in(l, 8), rank, 1));
    return requantised(l, sums, along(l, dp_low_in(l, 1), rank, 1), along(l, dp_low_in(l, 4), rank, 1),
                       along(l, dp_low_in(l, 6), rank, 1), along(l, dp_low_in(l, 7), rank, 1));
}

/* a, scale, zero, b, scale, zero, scale of y, zero of y; lists go with a's rows and b's columns. */
dp_status dp_low_qlinear_matmul(dp_lowering *l) {
    if (dp_low_need(l, 8) != DP_OK)
        return l->status;
    int rank = dp_low_rank(l, 0) > dp_low_rank(l, 3) ? dp_low_rank(l, 0) : dp_low_rank(l, 3);
    dp_value *sums = sums_of(
        l, dp_low_begin(l, "MatMulInteger", 1, 4, dp_low_in(l, 0), dp_low_in(l, 3), dp_low_in(l, 2), dp_low_in(l, 5)));
    return requantised(l, sums, along(l, dp_low_in(l, 1), rank, -2), along(l, dp_low_in(l, 4), rank, -1),
                       along(l, dp_low_in(l, 6), rank, -2), along(l, dp_low_in(l, 7), rank, -2));
}
