/* Rows of the ONNX operators that choose elements by place, by rank or by what they are. */
#include <string.h>

#include "graph/onnx/lower.h"

/* ArgMax, ArgMin: a tie goes to the first; to the last with select_last_index: the first of the reversed dim. */
dp_status dp_low_argument(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *y;
    int rank = x->tensor.rank;
    int64_t axis = dp_node_integer(l->node, "axis", 0), at = axis + (axis < 0 ? rank : 0), last;
    bool from_end = dp_node_integer(l->node, "select_last_index", 0) != 0;
    if (at < 0 || at >= rank)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "axis is %lld, but the input has %d dimensions", (long long)axis, rank);
    last = x->tensor.dims[at] - 1;
    if (from_end) {
        dp_node *turned = dp_low_begin(l, "ReverseV2D", 1, 1, x);
        dp_low_integers(l, turned, "axis", &at, 1);
        x = dp_low_end(l, turned);
    }
    dp_node *node = dp_low_begin(l, l->detail, 1, 1, x);
    dp_low_integer(l, node, "dimension", at);
    y = node && dp_low_output(l, node, 0, DP_I64) ? dp_low_end(l, node) : NULL;
    if (from_end) {
        dp_value *end = dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &last);
        y = end ? dp_low_end(l, dp_low_begin(l, "Sub", 1, 2, end, y)) : NULL;
        l->status = l->status == DP_OK && !end ? DP_ERR_OUT_OF_MEMORY : l->status;
    }
    if (dp_node_integer(l->node, "keepdims", 1) == 0)
        return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, y), DP_I64);
    dp_node *back = dp_low_begin(l, "Unsqueeze", 1, 1, y);
    dp_low_integers(l, back, "axes", &at, 1);
    return dp_low_last(l, back, DP_I64);
}

dp_status dp_low_compress(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "CompressSlices", 1, 2, dp_low_in(l, 0), dp_low_in(l, 1));
    if (dp_node_attribute(l->node, "axis"))
        dp_low_integer(l, node, "axis", dp_node_integer(l->node, "axis", 0));
    return dp_low_last(l, node, DP_EL_NONE);
}

/* The rows of coordinates lie side by side: one line per dimension. */
dp_status dp_low_nonzero(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "NonZero", 1, 1, dp_low_in(l, 0));
    dp_low_integer(l, node, "transpose", 1);
    return dp_low_last(l, node, DP_I64);
}

dp_status dp_low_unique(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int n = l->node->n_outputs < 4 ? l->node->n_outputs : 4;
    dp_node *node = dp_low_begin(l, "UniquePlaces", n, 1, dp_low_in(l, 0));
    if (dp_node_attribute(l->node, "axis"))
        dp_low_integer(l, node, "axis", dp_node_integer(l->node, "axis", 0));
    dp_low_integer(l, node, "sorted", dp_node_integer(l->node, "sorted", 1));
    for (int i = 0; i < n; i++) {
        dp_low_give(l, node, i, i, i ? DP_I64 : DP_EL_NONE);
        if (node && i && !node->outputs[i])
            dp_low_output(l, node, i, DP_I64);
    }
    dp_low_end(l, node);
    return l->status;
}

dp_status dp_low_suppress(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "NonMaxSuppressionV7", 1, 5, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2),
                                 dp_low_in(l, 3), dp_low_in(l, 4));
    dp_low_integer(l, node, "center_point_box", dp_node_integer(l->node, "center_point_box", 0));
    return dp_low_last(l, node, DP_I64);
}

dp_status dp_low_roi_align(dp_lowering *l) {
    static const char *const numbers[] = {"output_height", "output_width", "sampling_ratio"};
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "RoiAlign", 1, 3, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2));
    for (int i = 0; i < 3; i++)
        dp_low_integer(l, node, numbers[i], dp_node_integer(l->node, numbers[i], i < 2));
    dp_low_text(l, node, "mode", dp_node_text(l->node, "mode", "avg"));
    dp_low_real(l, node, "spatial_scale", dp_node_real(l->node, "spatial_scale", 1));
    dp_low_text(
        l, node, "transformation",
        dp_node_text(l->node, "coordinate_transformation_mode", l->opset < 16 ? "output_half_pixel" : "half_pixel"));
    return dp_low_last(l, node, DP_EL_NONE);
}

dp_status dp_low_roi_pool(dp_lowering *l) {
    int64_t shape[2];
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    if (dp_low_axes(l, "pooled_shape", INT16_MAX, shape, 2) != 2)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "pooled_shape must have two numbers");
    dp_node *node = dp_low_begin(l, "MaxRoiPool", 1, 2, dp_low_in(l, 0), dp_low_in(l, 1));
    dp_low_integer(l, node, "pooled_h", shape[0]);
    dp_low_integer(l, node, "pooled_w", shape[1]);
    dp_low_real(l, node, "spatial_scale", dp_node_real(l->node, "spatial_scale", 1));
    return dp_low_last(l, node, DP_EL_NONE);
}

dp_status dp_low_scatter_elements(dp_lowering *l) {
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "ScatterElements", 1, 3, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2));
    dp_low_integer(l, node, "axis", dp_node_integer(l->node, "axis", 0));
    dp_low_text(l, node, "reduction", dp_node_text(l->node, "reduction", "none"));
    return dp_low_last(l, node, DP_EL_NONE);
}

dp_status dp_low_scatter_nd(dp_lowering *l) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"}, *const types[] = {"TensorScatterUpdate",
                                                                                               "TensorScatterAdd",
                                                                                               "TensorScatterMul",
                                                                                               "TensorScatterMax",
                                                                                               "TensorScatterMin"};
    const char *reduction = dp_node_text(l->node, "reduction", "none");
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    for (int i = 0; i < 5; i++)
        if (strcmp(reduction, names[i]) == 0)
            return dp_low_last(l, dp_low_begin(l, types[i], 1, 3, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2)),
                               DP_EL_NONE);
    return dp_low_fail(l, DP_ERR_ARGUMENT, "reduction is \"%.24s\", but must be none, add, mul, max or min", reduction);
}

/* k is an attribute before version 10. */
dp_status dp_low_top_k(dp_lowering *l) {
    int64_t k = dp_node_integer(l->node, "k", 0);
    if (dp_low_need(l, 1) != DP_OK || (l->opset >= 10 && dp_low_numbers(l, 1, &k, 1) != 1))
        return l->status;
    dp_value *count = dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &k);
    if (!count)
        return DP_ERR_OUT_OF_MEMORY;
    dp_node *node = dp_low_begin(l, "TopKV2", 2, 2, dp_low_in(l, 0), count);
    dp_low_integer(l, node, "dim", dp_node_integer(l->node, "axis", -1));
    dp_low_integer(l, node, "largest", dp_node_integer(l->node, "largest", 1));
    dp_low_integer(l, node, "sorted", dp_node_integer(l->node, "sorted", 1));
    dp_low_give(l, node, 0, 0, DP_EL_NONE);
    dp_low_give(l, node, 1, 1, DP_I64);
    if (node && !node->outputs[1])
        dp_low_output(l, node, 1, DP_I64);
    dp_low_end(l, node);
    return l->status;
}

/* Places count in the flat tensor that pooling read; a larger output_shape adds zeros at the ends. */
dp_status dp_low_unpool(dp_lowering *l) {
    enum { SPACE = DP_TENSOR_DIMS - 2 };
    int64_t kernel[SPACE], stride[SPACE], pads[2 * SPACE], shape[DP_TENSOR_DIMS], dims[DP_TENSOR_DIMS], flat = -1;
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    int rank = x->tensor.rank, n = rank - 2;
    int n_kernel = dp_low_axes(l, "kernel_shape", INT16_MAX, kernel, SPACE);
    int n_stride = dp_low_axes(l, "strides", INT16_MAX, stride, SPACE);
    int n_pads = dp_low_axes(l, "pads", INT16_MAX, pads, 2 * SPACE);
    int n_shape = dp_low_in(l, 2) ? dp_low_numbers(l, 2, shape, DP_TENSOR_DIMS) : 0;
    if (l->status != DP_OK)
        return l->status;
    if (n < 1 || n_kernel != n || (n_stride && n_stride != n) || (n_pads && n_pads != 2 * n) ||
        (n_shape && n_shape != rank))
        return dp_low_fail(l, DP_ERR_ARGUMENT, "kernel_shape, strides, pads or output_shape do not fit %d dimensions",
                           rank);
    int64_t total = x->tensor.dims[0] * x->tensor.dims[1], pairs[2 * DP_TENSOR_DIMS] = {0};
    memcpy(dims, x->tensor.dims, sizeof dims);
    for (int d = 0; d < n; d++) {
        int64_t step = n_stride ? stride[d] : 1, pad = n_pads ? pads[d] + pads[n + d] : 0, size;
        bool fits = !__builtin_mul_overflow(x->tensor.dims[2 + d] - 1, step, &size) &&
                    !__builtin_add_overflow(size, kernel[d], &size) && !__builtin_sub_overflow(size, pad, &size) &&
                    size > 0;
        if (!fits || __builtin_mul_overflow(total, size, &total) || (n_shape && shape[2 + d] < size))
            return dp_low_fail(l, DP_ERR_ARGUMENT, "the output has no size in dimension %d", 2 + d);
        dims[2 + d] = size;
        pairs[2 * (2 + d) + 1] = n_shape ? shape[2 + d] - size : 0;
    }
    dp_value *zeros =
        dp_low_end(l, dp_low_begin(l, "BroadcastTo", 1, 2, dp_low_scalar(l, x, 0), dp_low_list(l, &total, 1)));
    dp_value *updates = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, x, dp_low_list(l, &flat, 1)));
    dp_value *places = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, dp_low_in(l, 1), dp_low_list(l, &flat, 1)));
    dp_value *y = dp_low_end(l, dp_low_begin(l, "ScatterElements", 1, 3, zeros, places, updates));
    dp_node *node = dp_low_begin(l, "Reshape", 1, 2, y, dp_low_list(l, dims, rank));
    if (!n_shape)
        return dp_low_last(l, node, DP_EL_NONE);
    y = dp_low_end(l, node);
    return dp_low_last(l, dp_low_begin(l, "PadV3", 1, 2, y, dp_low_list(l, pairs, 2 * rank)), DP_EL_NONE);
}

/* The known runs are numbers; those that are texts are refused. */
dp_status dp_low_ngrams(dp_lowering *l) {
    static const char *const lists[] = {"pool_int64s",     "ngram_counts",    "ngram_indexes",  "weights",
                                        "max_gram_length", "min_gram_length", "max_skip_count", "mode"};
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    if (dp_node_attribute(l->node, "pool_strings"))
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "pool_strings: texts are not supported");
    dp_node *node = dp_low_begin(l, "NGramCounts", 1, 1, dp_low_in(l, 0));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && node; i++) {
        const dp_arg *given = dp_node_attribute(l->node, lists[i]);
        if (given && l->status == DP_OK)
            l->status = dp_node_set(node, given);
    }
    return dp_low_last(l, node, DP_F32);
}
