/* Rows of the ONNX operators with windows and matrix products. */
#include <string.h>

#include "graph/onnx/lower_window.h"

static dp_status read_list(dp_lowering *l, const char *name, int n, int64_t *out, int64_t otherwise) {
    int64_t numbers[2 * DP_LOW_SPACE];
    int count = dp_low_axes(l, name, INT16_MAX, numbers, 2 * DP_LOW_SPACE);
    for (int d = 0; d < n; d++)
        out[d] = count > d ? numbers[d] : otherwise;
    if (l->status == DP_OK && count && count != n)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "%s has %d numbers, but must have %d", name, count, n);
    return l->status;
}

dp_status dp_low_window_read(dp_lowering *l, const dp_tensor *x, const int64_t *kernel, dp_window *w) {
    int64_t pads[2 * DP_LOW_SPACE];
    const char *automatic = dp_node_text(l->node, "auto_pad", "NOTSET");
    w->n = x->rank - 2;
    if (w->n < 1 || w->n > DP_LOW_SPACE)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "the input has %d dimensions, but 3 to 5 are supported", x->rank);
    memcpy(w->kernel, kernel, (size_t)w->n * sizeof(int64_t));
    if (read_list(l, "strides", w->n, w->stride, 1) != DP_OK ||
        read_list(l, "dilations", w->n, w->dilation, 1) != DP_OK || read_list(l, "pads", 2 * w->n, pads, 0) != DP_OK)
        return l->status;
    for (int d = 0; d < w->n; d++) {
        if (w->stride[d] < 1 || w->dilation[d] < 1)
            return dp_low_fail(l, DP_ERR_ARGUMENT, "strides and dilations must be at least 1");
        int64_t in = x->dims[2 + d], reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
        int64_t total = ((in + w->stride[d] - 1) / w->stride[d] - 1) * w->stride[d] + reach - in;
        total = total < 0 ? 0 : total;
        bool same = strncmp(automatic, "SAME_", 5) == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
        w->begin[d] = same ? (lower ? total - total / 2 : total / 2) : pads[d];
        w->end[d] = same ? total - w->begin[d] : pads[w->n + d];
        if (strcmp(automatic, "VALID") == 0)
            w->begin[d] = w->end[d] = 0;
    }
    return DP_OK;
}

void dp_low_window_dims(dp_lowering *l, dp_node *node, const char *name, const int64_t *numbers, int n, int64_t first) {
    int64_t all[2 + DP_LOW_SPACE] = {first, first};
    memcpy(all + 2, numbers, (size_t)n * sizeof *numbers);
    dp_low_integers(l, node, name, all, n + 2);
}

void dp_low_window_pads(dp_lowering *l, dp_node *node, const dp_window *w) {
    int64_t pads[2 * DP_LOW_SPACE];
    for (int d = 0; d < w->n; d++)
        pads[2 * d] = w->begin[d], pads[2 * d + 1] = w->end[d];
    dp_low_integers(l, node, "pads", pads, 2 * w->n);
}

static void set_window(dp_lowering *l, dp_node *node, const dp_window *w, const char *strides, const char *dilations) {
    dp_low_window_dims(l, node, strides, w->stride, w->n, 1);
    dp_low_window_pads(l, node, w);
    if (dilations)
        dp_low_window_dims(l, node, dilations, w->dilation, w->n, 1);
    dp_low_text(l, node, "data_format", w->n == 3 ? "NCDHW" : "NCHW");
}

dp_value *dp_low_window_with_height(dp_lowering *l, dp_value *x) {
    int64_t axis = 2;
    dp_node *node = dp_low_begin(l, "Unsqueeze", 1, 1, x);
    dp_low_integers(l, node, "axes", &axis, 1);
    return dp_low_end(l, node);
}
void dp_low_window_widen(dp_window *w) {
    w->n = 2;
    w->kernel[1] = w->kernel[0], w->stride[1] = w->stride[0], w->dilation[1] = w->dilation[0];
    w->begin[1] = w->begin[0], w->end[1] = w->end[0];
    w->kernel[0] = w->stride[0] = w->dilation[0] = 1;
    w->begin[0] = w->end[0] = 0;
}
dp_status dp_low_window_without_height(dp_lowering *l, dp_value *y) {
    int64_t axis = 2;
    dp_node *node = dp_low_begin(l, "Squeeze", 1, 1, y);
    dp_low_integers(l, node, "axis", &axis, 1);
    return dp_low_last(l, node, DP_EL_NONE);
}

dp_status dp_low_conv(dp_lowering *l) {
    dp_window w;
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *filter = dp_low_in(l, 1);
    if (filter->tensor.rank != x->tensor.rank)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "the filter has %d dimensions and the input %d", filter->tensor.rank,
                           x->tensor.rank);
    if (dp_low_window_read(l, &x->tensor, filter->tensor.dims + 2, &w) != DP_OK)
        return l->status;
    bool line = w.n == 1;
    if (line) {
        dp_low_window_widen(&w);
        x = dp_low_window_with_height(l, x);
        filter = dp_low_window_with_height(l, filter);
    }
    dp_node *node = dp_low_begin(l, w.n == 3 ? "Conv3D" : "Conv2D", 1, 3, x, filter, dp_low_in(l, 2));
    set_window(l, node, &w, "strides", "dilations");
    dp_low_integer(l, node, "groups", dp_node_integer(l->node, "group", 1));
    return line ? dp_low_window_without_height(l, dp_low_end(l, node)) : dp_low_last(l, node, DP_EL_NONE);
}

/* The pads, or what is added at the ends, that make the output of a transposed convolution as large as output_shape
 * says. */
static dp_status fit_output(dp_lowering *l, const dp_tensor *x, dp_window *w, int64_t *more) {
    int64_t shape[DP_LOW_SPACE];
    int n = dp_low_axes(l, "output_shape", INT16_MAX, shape, DP_LOW_SPACE);
    const char *automatic = dp_node_text(l->node, "auto_pad", "NOTSET");
    bool same = strncmp(automatic, "SAME_", 5) == 0;
    if (n < 0 || (n == 0 && !same))
        return l->status;
    for (int d = 0; d < w->n; d++) {
        int64_t size = n ? shape[d + (n > w->n ? n - w->n : 0)] : x->dims[2 + d] * w->stride[d];
        int64_t total = w->stride[d] * (x->dims[2 + d] - 1) + more[d] + (w->kernel[d] - 1) * w->dilation[d] + 1 - size;
        if (total < 0) {
            more[d] -= total;
            total = 0;
        }
        bool upper = strcmp(automatic, "SAME_UPPER") == 0;
        w->begin[d] = upper ? total / 2 : total - total / 2;
        w->end[d] = total - w->begin[d];
    }
    return DP_OK;
}

dp_status dp_low_conv_transpose(dp_lowering *l) {
    dp_window w;
    int64_t more[DP_LOW_SPACE];
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *filter = dp_low_in(l, 1);
    if (filter->tensor.rank != x->tensor.rank)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "the filter has %d dimensions and the input %d", filter->tensor.rank,
                           x->tensor.rank);
    if (dp_low_window_read(l, &x->tensor, filter->tensor.dims + 2, &w) != DP_OK ||
        read_list(l, "output_padding", w.n, more, 0) != DP_OK || fit_output(l, &x->tensor, &w, more) != DP_OK)
        return l->status;
    bool line = w.n == 1, even = true;
    if (line) {
        dp_low_window_widen(&w);
        more[1] = more[0], more[0] = 0;
        x = dp_low_window_with_height(l, x);
        filter = dp_low_window_with_height(l, filter);
    }
    for (int d = 0; d < w.n; d++)
        even &= w.begin[d] == w.end[d];
    dp_window whole = w;
    for (int d = 0; d < w.n && !even; d++) /* the whole result, cut afterwards */
        whole.begin[d] = whole.end[d] = 0;
    dp_node *node =
        dp_low_begin(l, w.n == 3 ? "Conv3DTransposeD" : "Conv2DTransposeD", 1, 3, x, filter, dp_low_in(l, 2));
    set_window(l, node, &whole, "strides", "dilations");
    dp_low_window_dims(l, node, "output_padding", more, w.n, 0);
    dp_low_integer(l, node, "groups", dp_node_integer(l->node, "group", 1));
    if (even)
        return line ? dp_low_window_without_height(l, dp_low_end(l, node)) : dp_low_last(l, node, DP_EL_NONE);
    dp_value *y = dp_low_end(l, node);
    if (!y)
        return l->status;
    int64_t size[DP_TENSOR_DIMS];
    for (int d = 0; d < y->tensor.rank; d++)
        size[d] = y->tensor.dims[d] - (d < 2 ? 0 : w.begin[d - 2] + w.end[d - 2]);
    dp_node *cut = dp_low_begin(l, "SliceD", 1, 1, y);
    dp_low_window_dims(l, cut, "offsets", w.begin, w.n, 0);
    dp_low_integers(l, cut, "size", size, y->tensor.rank);
    return line ? dp_low_window_without_height(l, dp_low_end(l, cut)) : dp_low_last(l, cut, DP_EL_NONE);
}

dp_status dp_low_deform_conv(dp_lowering *l) {
    dp_window w;
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    const dp_tensor *x = &dp_low_in(l, 0)->tensor, *filter = &dp_low_in(l, 1)->tensor;
    if (x->rank != 4 || filter->rank != 4)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "the filter has %d dimensions and the input %d, but 4 are supported",
                           filter->rank, x->rank);
    if (dp_low_window_read(l, x, filter->dims + 2, &w) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "DeformConv", 1, 5, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2), dp_low_in(l, 3),
                                 dp_low_in(l, 4));
    dp_low_integers(l, node, "strides", w.stride, w.n);
    dp_low_integers(l, node, "dilations", w.dilation, w.n);
    dp_low_window_pads(l, node, &w);
    dp_low_integer(l, node, "groups", dp_node_integer(l->node, "group", 1));
    dp_low_integer(l, node, "offset_groups", dp_node_integer(l->node, "offset_group", 1));
    return dp_low_last(l, node, DP_EL_NONE);
}

/* Columns of windows added up to an image. */
dp_status dp_low_fold(dp_lowering *l) {
    int64_t size[2], block[2], pads[4], numbers[2], pairs[4] = {0};
    static const char *const lists[] = {"dilations", "strides"};
    static const char *const names[] = {"dilation", "stride"};
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    int n = dp_low_numbers(l, 1, size, 2), m = dp_low_numbers(l, 2, block, 2);
    int n_pads = dp_low_axes(l, "pads", INT16_MAX, pads, 4);
    if (l->status != DP_OK)
        return l->status;
    if (n != 2 || m != 2 || (n_pads && n_pads != 4))
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "images of %d dimensions are not supported, but of 2", n);
    for (int d = 0; d < 2 && n_pads; d++)
        pairs[2 * d] = pads[d], pairs[2 * d + 1] = pads[2 + d];
    dp_node *node = dp_low_begin(l, "Col2Im", 1, 2, dp_low_in(l, 0), dp_low_list(l, size, 2));
    dp_low_integers(l, node, "kernel_size", block, 2);
    dp_low_integers(l, node, "padding", pairs, 4);
    for (int i = 0; i < 2; i++) {
        int count = dp_low_axes(l, lists[i], INT16_MAX, numbers, 2);
        for (int d = count > 0 ? count : 0; d < 2; d++)
            numbers[d] = 1;
        dp_low_integers(l, node, names[i], numbers, 2);
    }
    return dp_low_last(l, node, DP_EL_NONE);
}

/* A vector of channels as a tensor that broadcasts over x: [C] -> [C, 1, 1]. */
static dp_value *over_channels(dp_lowering *l, dp_value *vector, int rank) {
    int64_t dims[DP_TENSOR_DIMS] = {vector ? dp_tensor_count(&vector->tensor) : 0};
    int n = rank > 1 ? rank - 1 : 1;
    for (int d = 1; d < n; d++)
        dims[d] = 1;
    return dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, vector, dp_low_list(l, dims, n)));
}

/* x * f + (bias - mean * f) with f = scale / sqrt(variance + epsilon): with constants the factors are constants. */
dp_status dp_low_batch_norm(dp_lowering *l) {
    if (dp_low_need(l, 5) != DP_OK)
        return l->status;
    bool old = l->opset < 7; /* such models say when they infer, and may have statistics of every place */
    if (old && !dp_node_integer(l->node, "spatial", 1))
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "spatial is 0, which is not supported");
    if (dp_node_integer(l->node, "training_mode", 0) || (old && !dp_node_integer(l->node, "is_test", 0)))
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "training_mode is not supported");
    dp_value *x = dp_low_in(l, 0);
    dp_node *node = dp_low_begin(l, "Adds", 1, 1, dp_low_in(l, 4));
    dp_low_real(l, node, "value", dp_node_real(l->node, "epsilon", 1e-5));
    dp_value *root = dp_low_end(l, dp_low_begin(l, "Sqrt", 1, 1, dp_low_end(l, node)));
    dp_value *factor = dp_low_end(l, dp_low_begin(l, "Div", 1, 2, dp_low_in(l, 1), root));
    dp_value *shift = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, dp_low_in(l, 3), factor));
    shift = dp_low_end(l, dp_low_begin(l, "Sub", 1, 2, dp_low_in(l, 2), shift));
    factor = over_channels(l, factor, x->tensor.rank);
    shift = over_channels(l, shift, x->tensor.rank);
    dp_value *scaled = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, x, factor));
    return dp_low_last(l, dp_low_begin(l, "Add", 1, 2, scaled, shift), DP_EL_NONE);
}

static dp_node *product(dp_lowering *l, dp_value *a, dp_value *b, bool turn_a, bool turn_b) {
    bool flat = a && b && a->tensor.rank == 2 && b->tensor.rank == 2;
    dp_node *node = dp_low_begin(l, flat ? "MatMulV2" : "BatchMatMulV2", 1, 2, a, b);
    dp_low_integer(l, node, flat ? "transpose_x1" : "adj_x1", turn_a);
    dp_low_integer(l, node, flat ? "transpose_x2" : "adj_x2", turn_b);
    return node;
}

/* A vector on the left is a row, on the right a column; the dim goes again. */
dp_status dp_low_matmul(dp_lowering *l) {
    int64_t first = 0, last = -1, before_last = -2;
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *a = dp_low_in(l, 0), *b = dp_low_in(l, 1);
    bool row = a->tensor.rank == 1, column = b->tensor.rank == 1;
    if (row) {
        dp_node *node = dp_low_begin(l, "Unsqueeze", 1, 1, a);
        dp_low_integers(l, node, "axes", &first, 1);
        a = dp_low_end(l, node);
    }
    if (column) {
        dp_node *node = dp_low_begin(l, "Unsqueeze", 1, 1, b);
        dp_low_integers(l, node, "axes", &last, 1);
        b = dp_low_end(l, node);
    }
    dp_node *node = product(l, a, b, false, false);
    if (!row && !column)
        return dp_low_last(l, node, DP_EL_NONE);
    int64_t gone[] = {row ? before_last : last, last};
    dp_node *squeeze = dp_low_begin(l, "Squeeze", 1, 1, dp_low_end(l, node));
    dp_low_integers(l, squeeze, "axis", gone, row + column);
    return dp_low_last(l, squeeze, DP_EL_NONE);
}

static dp_value *times(dp_lowering *l, dp_value *x, double factor) {
    if (factor == 1)
        return x;
    dp_node *node = dp_low_begin(l, "Muls", 1, 1, x);
    dp_low_real(l, node, "value", factor);
    return dp_low_end(l, node);
}

/* alpha A B + beta C. A weight that is a constant is scaled instead of the product. */
dp_status dp_low_gemm(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *b = times(l, dp_low_in(l, 1), dp_node_real(l->node, "alpha", 1));
    dp_node *node = product(l, dp_low_in(l, 0), b, dp_node_integer(l->node, "transA", 0) != 0,
                            dp_node_integer(l->node, "transB", 0) != 0);
    if (!dp_low_in(l, 2))
        return dp_low_last(l, node, DP_EL_NONE);
    dp_value *c = times(l, dp_low_in(l, 2), dp_node_real(l->node, "beta", 1)), *y = dp_low_end(l, node);
    return dp_low_last(l, dp_low_begin(l, "Add", 1, 2, y, c), DP_EL_NONE);
}
