/* Rows of the ONNX operators that pool. */
#include <string.h>

#include "graph/onnx/lower_window.h"

static dp_value *cast(dp_lowering *l, dp_value *x, int element) {
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, x);
    dp_low_integer(l, node, "dst_type", element);
    return node && dp_low_output(l, node, 0, element) ? dp_low_end(l, node) : NULL;
}

static dp_status read_pool(dp_lowering *l, dp_window *w) {
    int64_t kernel[DP_LOW_SPACE];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_tensor *x = &dp_low_in(l, 0)->tensor;
    int n = dp_low_axes(l, "kernel_shape", INT16_MAX, kernel, DP_LOW_SPACE);
    if (l->status == DP_OK && n != x->rank - 2)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "kernel_shape has %d numbers for an input of %d dimensions", n, x->rank);
    for (int d = 0; d < n; d++)
        if (kernel[d] < 1 || kernel[d] > INT32_MAX)
            return dp_low_fail(l, DP_ERR_ARGUMENT,
                               "kernel_shape has the number %lld, but must have numbers from 1 to %d",
                               (long long)kernel[d], INT32_MAX);
    return l->status == DP_OK ? dp_low_window_read(l, x, kernel, w) : l->status;
}

/* What the types for pictures take: two dims, no dilation, pads up to half of the kernel. */
static bool is_plain(const dp_window *w) {
    for (int d = 0; d < w->n; d++)
        if (w->dilation[d] != 1 || w->begin[d] > w->kernel[d] / 2 || w->end[d] > w->kernel[d] / 2)
            return false;
    return w->n == 2;
}

static void set_plain(dp_lowering *l, dp_node *node, const dp_window *w) {
    dp_low_window_dims(l, node, "ksize", w->kernel, w->n, 1);
    dp_low_window_dims(l, node, "strides", w->stride, w->n, 1);
    dp_low_window_pads(l, node, w);
    dp_low_text(l, node, "padding_mode", "CALCULATED");
    dp_low_text(l, node, "data_format", "NCHW");
    dp_low_integer(l, node, "ceil_mode", dp_node_integer(l->node, "ceil_mode", 0));
}

static void set_any(dp_lowering *l, dp_node *node, const dp_window *w) {
    dp_low_integers(l, node, "ksize", w->kernel, w->n);
    dp_low_integers(l, node, "strides", w->stride, w->n);
    dp_low_integers(l, node, "dilations", w->dilation, w->n);
    dp_low_window_pads(l, node, w);
    dp_low_integer(l, node, "ceil_mode", dp_node_integer(l->node, "ceil_mode", 0));
}

dp_status dp_low_average_pool(dp_lowering *l) {
    dp_window w;
    if (read_pool(l, &w) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    bool line = w.n == 1, include = dp_node_integer(l->node, "count_include_pad", 0) != 0;
    if (line) {
        dp_low_window_widen(&w);
        x = dp_low_window_with_height(l, x);
    }
    bool plain = is_plain(&w);
    dp_node *node = dp_low_begin(l, plain ? "AvgPoolV2" : "AvgPoolWindows", 1, 1, x);
    if (plain) {
        set_plain(l, node, &w);
        dp_low_integer(l, node, "exclusive", !include);
    } else {
        set_any(l, node, &w);
        dp_low_integer(l, node, "count_include_pad", include);
    }
    return line ? dp_low_window_without_height(l, dp_low_end(l, node)) : dp_low_last(l, node, DP_EL_NONE);
}

/*
 * Places of the greatest elements: they come counted in a channel's image and go out counted in the whole input; in
 * columns with storage_order 1.
 */
static void give_places(dp_lowering *l, dp_value *places, const dp_tensor *x) {
    int64_t dims[DP_TENSOR_DIMS] = {x->dims[0], x->dims[1], 1, 1, 1, 1, 1, 1}, area = 1;
    for (int d = 2; d < x->rank; d++)
        area *= x->dims[d];
    if (dp_node_integer(l->node, "storage_order", 0)) {
        if (x->rank != 4) {
            dp_low_fail(l, DP_ERR_UNSUPPORTED, "storage_order 1 is supported for two dimensions of space only");
            return;
        }
        dp_value *width = dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &x->dims[3]);
        dp_value *height = dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &x->dims[2]);
        if (!width || !height) {
            l->status = DP_ERR_OUT_OF_MEMORY;
            return;
        }
        dp_value *row = dp_low_end(l, dp_low_begin(l, "FloorDiv", 1, 2, places, width));
        dp_value *column = dp_low_end(l, dp_low_begin(l, "FloorMod", 1, 2, places, width));
        column = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, column, height));
        places = dp_low_end(l, dp_low_begin(l, "Add", 1, 2, row, column));
    }
    dp_value *begins = dp_value_constant(l->model, NULL, DP_I64, dims, x->rank, NULL);
    if (!begins) {
        l->status = l->status == DP_OK ? DP_ERR_OUT_OF_MEMORY : l->status;
        return;
    }
    for (int64_t i = 0; i < x->dims[0] * x->dims[1]; i++)
        ((int64_t *)begins->tensor.base)[i] = i * area;
    dp_node *node = dp_low_begin(l, "Add", 1, 2, places, begins);
    dp_low_give(l, node, 0, 1, DP_I64);
    dp_low_end(l, node);
}

/* Bytes are pooled as floats, which have all of them. */
dp_status dp_low_max_pool(dp_lowering *l) {
    dp_window w;
    if (read_pool(l, &w) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    const dp_tensor t = x->tensor;
    bool line = w.n == 1, bytes = t.element == DP_U8 || t.element == DP_I8,
         places = l->node->n_outputs > 1 && l->node->outputs[1];
    if (bytes)
        x = cast(l, x, DP_F32);
    if (line) {
        dp_low_window_widen(&w);
        x = dp_low_window_with_height(l, x);
    }
    if (line && places)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "places of maxima along one dimension are not supported");
    bool plain = is_plain(&w) && !places;
    dp_node *node = dp_low_begin(l, plain ? "MaxPoolV3" : "MaxPoolWindows", 1 + places, 1, x);
    if (plain)
        set_plain(l, node, &w);
    else
        set_any(l, node, &w);
    if (places && node && !dp_low_output(l, node, 1, DP_I64))
        return l->status;
    dp_value *which = places && node ? node->outputs[1] : NULL;
    if (!bytes && !line) {
        dp_low_give(l, node, 0, 0, DP_EL_NONE);
        dp_low_end(l, node);
    } else {
        dp_value *y = dp_low_end(l, node);
        y = y && bytes ? cast(l, y, t.element) : y;
        if (line)
            dp_low_window_without_height(l, y);
        else
            dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, y), t.element);
    }
    if (places && l->status == DP_OK)
        give_places(l, which, &t);
    return l->status;
}

/* (sum of |x|^p)^(1/p) */
static dp_value *to_power(dp_lowering *l, dp_value *x, double p) {
    dp_node *node = dp_low_begin(l, "Power", 1, 1, x);
    dp_low_real(l, node, "power", p);
    return dp_low_end(l, node);
}

dp_status dp_low_lp_pool(dp_lowering *l) {
    dp_window w;
    double p = (double)dp_node_integer(l->node, "p", 2);
    if (read_pool(l, &w) != DP_OK)
        return l->status;
    if (p < 1)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "p is %g, but must be at least 1", p);
    dp_value *x = to_power(l, dp_low_end(l, dp_low_begin(l, "Abs", 1, 1, dp_low_in(l, 0))), p);
    bool line = w.n == 1;
    if (line) {
        dp_low_window_widen(&w);
        x = dp_low_window_with_height(l, x);
    }
    dp_node *node = dp_low_begin(l, "AvgPoolWindows", 1, 1, x);
    set_any(l, node, &w);
    dp_low_integer(l, node, "divisor", 1);
    dp_value *y = to_power(l, dp_low_end(l, node), 1 / p);
    return line ? dp_low_window_without_height(l, y) : dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, y), DP_EL_NONE);
}

/* Over all dims behind the first two. */
static dp_node *over_space(dp_lowering *l, const char *type, dp_value *x) {
    int64_t axes[DP_TENSOR_DIMS];
    int n = 0;
    for (int d = 2; d < dp_low_rank(l, 0); d++)
        axes[n++] = d;
    dp_node *node = dp_low_begin(l, type, 1, 1, x);
    dp_low_integers(l, node, "axes", axes, n);
    dp_low_integer(l, node, "keep_dims", 1);
    return node;
}

dp_status dp_low_global_pool(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    return dp_low_last(l, over_space(l, l->detail, dp_low_in(l, 0)), DP_EL_NONE);
}

dp_status dp_low_global_lp_pool(dp_lowering *l) {
    double p = (double)dp_node_integer(l->node, "p", 2);
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    if (p < 1)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "p is %g, but must be at least 1", p);
    dp_value *x = to_power(l, dp_low_end(l, dp_low_begin(l, "Abs", 1, 1, dp_low_in(l, 0))), p);
    x = to_power(l, dp_low_end(l, over_space(l, "ReduceSumD", x)), 1 / p);
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, x), DP_EL_NONE);
}
