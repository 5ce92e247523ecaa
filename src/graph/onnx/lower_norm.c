/* Rows of the ONNX operators that normalise. */
#include <math.h>
#include <string.h>

#include "graph/onnx/lower.h"

static dp_value *with_number(dp_lowering *l, const char *type, dp_value *x, const char *name, double number) {
    dp_node *node = dp_low_begin(l, type, 1, 1, x);
    dp_low_real(l, node, name, number);
    return dp_low_end(l, node);
}
static dp_value *both(dp_lowering *l, const char *type, dp_value *a, dp_value *b) {
    return dp_low_end(l, dp_low_begin(l, type, 1, 2, a, b));
}
static dp_value *over(dp_lowering *l, const char *type, dp_value *x, const int64_t *axes, int n) {
    dp_node *node = dp_low_begin(l, type, 1, 1, x);
    dp_low_integers(l, node, "axes", axes, n);
    dp_low_integer(l, node, "keep_dims", 1);
    return dp_low_end(l, node);
}
static dp_value *reshaped(dp_lowering *l, dp_value *x, const int64_t *dims, int rank) {
    return dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, x, dp_low_list(l, dims, rank)));
}

/* (x - mean) / sqrt(variance + epsilon) over `axes`. */
static dp_value *normalised(dp_lowering *l, dp_value *x, const int64_t *axes, int n, double epsilon) {
    dp_value *centred = both(l, "Sub", x, over(l, "ReduceMeanD", x, axes, n));
    dp_value *square = dp_low_end(l, dp_low_begin(l, "Square", 1, 1, centred));
    dp_value *variance = with_number(l, "Adds", over(l, "ReduceMeanD", square, axes, n), "value", epsilon);
    return both(l, "Div", centred, dp_low_end(l, dp_low_begin(l, "Sqrt", 1, 1, variance)));
}

/* The last dims from `axis` on; scale and bias broadcast. Mean and 1 / deviation are outputs 1 and 2. */
dp_status dp_low_layer_norm(dp_lowering *l) {
    int64_t axes[DP_TENSOR_DIMS];
    int n = 0;
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *scale = dp_low_in(l, 1), *bias = dp_low_in(l, 2);
    int64_t axis = dp_node_integer(l->node, "axis", -1);
    axis += axis < 0 ? x->tensor.rank : 0;
    if (axis < 0 || axis >= x->tensor.rank)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "axis is out of range");
    for (int d = (int)axis; d < x->tensor.rank; d++)
        axes[n++] = d;
    double epsilon = dp_node_real(l->node, "epsilon", 1e-5);
    if (l->node->n_outputs > 1) { /* by parts: the outputs want them */
        dp_node *mean = dp_low_begin(l, "ReduceMeanD", 1, 1, x);
        dp_low_integers(l, mean, "axes", axes, n);
        dp_low_integer(l, mean, "keep_dims", 1);
        dp_low_give(l, mean, 0, 1, DP_EL_NONE);
        dp_value *centred = both(l, "Sub", x, dp_low_end(l, mean));
        dp_value *square = dp_low_end(l, dp_low_begin(l, "Square", 1, 1, centred));
        dp_value *variance = with_number(l, "Adds", over(l, "ReduceMeanD", square, axes, n), "value", epsilon);
        dp_node *root = dp_low_begin(l, "Rsqrt", 1, 1, variance);
        dp_low_give(l, root, 0, 2, DP_EL_NONE);
        x = both(l, "Mul", centred, dp_low_end(l, root));
    } else {
        x = normalised(l, x, axes, n, epsilon);
    }
    if (!bias)
        return dp_low_last(l, dp_low_begin(l, "Mul", 1, 2, x, scale), DP_EL_NONE);
    return dp_low_last(l, dp_low_begin(l, "Add", 1, 2, both(l, "Mul", x, scale), bias), DP_EL_NONE);
}

/* [C] as [C, 1, ...] to go with `rank` dims, channels second. */
static dp_value *channels(dp_lowering *l, dp_value *vector, int rank) {
    int64_t dims[DP_TENSOR_DIMS] = {vector ? dp_tensor_count(&vector->tensor) : 0, 1, 1, 1, 1, 1, 1, 1};
    return reshaped(l, vector, dims, rank - 1);
}

dp_status dp_low_instance_norm(dp_lowering *l) {
    int64_t axes[DP_TENSOR_DIMS];
    int n = 0;
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    int rank = x->tensor.rank;
    for (int d = 2; d < rank; d++)
        axes[n++] = d;
    x = normalised(l, x, axes, n, dp_node_real(l->node, "epsilon", 1e-5));
    x = both(l, "Mul", x, channels(l, dp_low_in(l, 1), rank));
    return dp_low_last(l, dp_low_begin(l, "Add", 1, 2, x, channels(l, dp_low_in(l, 2), rank)), DP_EL_NONE);
}

/* Scale and bias per channel (version 21) or per group (18). */
dp_status dp_low_group_norm(dp_lowering *l) {
    int64_t axis = 2, groups = dp_node_integer(l->node, "num_groups", 0);
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    if (groups < 1 || t->rank < 3 || t->dims[1] % groups)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "num_groups is %lld, but must divide the channels", (long long)groups);
    int64_t dims[] = {t->dims[0], groups, -1}, shape[] = {1, groups, 1};
    dp_value *x =
        normalised(l, reshaped(l, dp_low_in(l, 0), dims, 3), &axis, 1, dp_node_real(l->node, "epsilon", 1e-5));
    dp_value *scale = dp_low_in(l, 1), *bias = dp_low_in(l, 2);
    bool by_group = l->opset < 21;
    if (by_group) {
        x = both(l, "Mul", x, reshaped(l, scale, shape, 3));
        x = both(l, "Add", x, reshaped(l, bias, shape, 3));
        return dp_low_last(l, dp_low_begin(l, "Reshape", 1, 2, x, dp_low_list(l, t->dims, t->rank)), DP_EL_NONE);
    }
    x = both(l, "Mul", reshaped(l, x, t->dims, t->rank), channels(l, scale, t->rank));
    return dp_low_last(l, dp_low_begin(l, "Add", 1, 2, x, channels(l, bias, t->rank)), DP_EL_NONE);
}

dp_status dp_low_mean_variance(dp_lowering *l) {
    int64_t axes[DP_TENSOR_DIMS];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int n = dp_low_axes(l, "axes", INT16_MAX, axes, DP_TENSOR_DIMS);
    if (n == 0) {
        axes[0] = 0, axes[1] = 2, axes[2] = 3;
        n = 3;
    }
    dp_value *x = normalised(l, dp_low_in(l, 0), axes, n, 1e-9);
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, x), DP_EL_NONE);
}

dp_status dp_low_lp_norm(dp_lowering *l) {
    int64_t axis = dp_node_integer(l->node, "axis", -1), p = dp_node_integer(l->node, "p", 2);
    dp_value *x = dp_low_in(l, 0);
    dp_value *size =
        over(l, "ReduceSumD", dp_low_end(l, dp_low_begin(l, p == 1 ? "Abs" : "Square", 1, 1, x)), &axis, 1);
    if (p != 1 && p != 2)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "p is %lld, but must be 1 or 2", (long long)p);
    if (p == 2)
        size = dp_low_end(l, dp_low_begin(l, "Sqrt", 1, 1, size));
    return dp_low_last(l, dp_low_begin(l, "Div", 1, 2, x, size), DP_EL_NONE);
}

/* m + log(sum(exp(x - m))), m the maximum. */
dp_status dp_low_log_sum_exp(dp_lowering *l) {
    int64_t axes[DP_TENSOR_DIMS];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    int n = dp_low_axes(l, "axes", 1, axes, DP_TENSOR_DIMS), rank = x->tensor.rank;
    for (int d = 0; n == 0 && d < rank; d++)
        axes[d] = d;
    n = n ? n : rank;
    dp_value *most = over(l, "ReduceMaxD", x, axes, n);
    dp_value *e = dp_low_end(l, dp_low_begin(l, "Exp", 1, 1, both(l, "Sub", x, most)));
    dp_value *sum = dp_low_end(l, dp_low_begin(l, "Log", 1, 1, over(l, "ReduceSumD", e, axes, n)));
    if (dp_node_integer(l->node, "keepdims", 1))
        return dp_low_last(l, dp_low_begin(l, "Add", 1, 2, sum, most), DP_EL_NONE);
    dp_node *node = dp_low_begin(l, "Squeeze", 1, 1, both(l, "Add", sum, most));
    dp_low_integers(l, node, "axis", axes, n);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* x / (bias + alpha * mean of squares over `size` channels, zeros beyond the ends)^beta. */
dp_status dp_low_lrn(dp_lowering *l) {
    int64_t size = dp_node_integer(l->node, "size", 0);
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    const dp_tensor *t = &x->tensor;
    if (size < 1 || t->rank < 2)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "size is %lld, but must be at least 1", (long long)size);
    int64_t flat[] = {t->dims[0], 1, t->dims[1], -1}, window[] = {1, 1, size, 1}, ones[] = {1, 1, 1, 1};
    int64_t pads[] = {(size - 1) / 2, size / 2, 0, 0};
    dp_value *square = reshaped(l, dp_low_end(l, dp_low_begin(l, "Square", 1, 1, x)), flat, 4);
    dp_node *node = dp_low_begin(l, "AvgPoolV2", 1, 1, square);
    dp_low_integers(l, node, "ksize", window, 4);
    dp_low_integers(l, node, "strides", ones, 4);
    dp_low_integers(l, node, "pads", pads, 4);
    dp_low_text(l, node, "padding_mode", "CALCULATED");
    dp_low_text(l, node, "data_format", "NCHW");
    dp_low_integer(l, node, "exclusive", 0);
    dp_value *mean = reshaped(l, dp_low_end(l, node), t->dims, t->rank);
    dp_value *base = with_number(l, "Muls", mean, "value", dp_node_real(l->node, "alpha", 1e-4));
    base = with_number(l, "Adds", base, "value", dp_node_real(l->node, "bias", 1));
    dp_value *divisor = with_number(l, "Power", base, "power", dp_node_real(l->node, "beta", 0.75));
    return dp_low_last(l, dp_low_begin(l, "Div", 1, 2, x, divisor), DP_EL_NONE);
}

dp_status dp_low_selu(dp_lowering *l) {
    dp_node *node = dp_low_begin(l, "Elu", 1, 1, dp_low_in(l, 0));
    dp_low_real(l, node, "alpha", dp_node_real(l->node, "alpha", 1.67326319217681884765625));
    dp_low_real(l, node, "scale", dp_node_real(l->node, "gamma", 1.05070102214813232421875));
    return dp_low_last(l, node, DP_EL_NONE);
}

static dp_value *compare(dp_lowering *l, const char *type, dp_value *a, dp_value *b) {
    dp_node *node = dp_low_begin(l, type, 1, 2, a, b);
    return node && dp_low_output(l, node, 0, DP_EL_BOOL) ? dp_low_end(l, node) : NULL;
}

dp_status dp_low_thresholded_relu(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *zero = dp_low_scalar(l, x, 0);
    dp_value *above = compare(l, "Greater", x, dp_low_scalar(l, x, dp_node_real(l->node, "alpha", 1)));
    return dp_low_last(l, dp_low_begin(l, "SelectV2", 1, 3, above, x, zero), x->tensor.element);
}

/* x + bias below -lambd, x - bias above lambd, 0 between. */
dp_status dp_low_shrink(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *zero = dp_low_scalar(l, x, 0);
    double lambd = dp_node_real(l->node, "lambd", 0.5), bias = dp_node_real(l->node, "bias", 0);
    dp_value *below = compare(l, "Less", x, dp_low_scalar(l, x, -lambd));
    dp_value *above = compare(l, "Greater", x, dp_low_scalar(l, x, lambd));
    dp_value *less = both(l, "Sub", x, dp_low_scalar(l, x, bias)), *more = both(l, "Add", x, dp_low_scalar(l, x, bias));
    dp_node *inner = dp_low_begin(l, "SelectV2", 1, 3, above, less, zero);
    if (!inner || !dp_low_output(l, inner, 0, x->tensor.element))
        return l->status;
    return dp_low_last(l, dp_low_begin(l, "SelectV2", 1, 3, below, more, dp_low_end(l, inner)), x->tensor.element);
}

dp_status dp_low_is_nan(dp_lowering *l) {
    dp_value *x = dp_low_in(l, 0);
    return dp_low_last(l, dp_low_begin(l, "NotEqual", 1, 2, x, x), DP_EL_BOOL);
}

dp_status dp_low_is_inf(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    bool up = dp_node_integer(l->node, "detect_positive", 1) != 0,
         down = dp_node_integer(l->node, "detect_negative", 1) != 0;
    if (up && down)
        x = dp_low_end(l, dp_low_begin(l, "Abs", 1, 1, x));
    if (!up && !down) /* nothing is both above and below itself */
        return dp_low_last(l, dp_low_begin(l, "Greater", 1, 2, x, x), DP_EL_BOOL);
    dp_value *infinity = dp_low_scalar(l, dp_low_in(l, 0), up ? INFINITY : -INFINITY);
    return dp_low_last(l, dp_low_begin(l, "Equal", 1, 2, x, infinity), DP_EL_BOOL);
}

dp_status dp_low_bit_shift(dp_lowering *l) {
    bool left = strcmp(dp_node_text(l->node, "direction", ""), "LEFT") == 0;
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    return dp_low_last(l, dp_low_begin(l, left ? "LeftShift" : "RightShift", 1, 2, dp_low_in(l, 0), dp_low_in(l, 1)),
                       DP_EL_NONE);
}
