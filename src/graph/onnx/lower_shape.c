/* Rows of the ONNX operators that choose, move and name elements. */
#include <string.h>

#include "graph/onnx/lower.h"

dp_status dp_low_shape(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int64_t start = dp_node_integer(l->node, "start", 0), end = dp_node_integer(l->node, "end", t->rank);
    start += start < 0 ? t->rank : 0;
    end += end < 0 ? t->rank : 0;
    start = start < 0 ? 0 : start > t->rank ? t->rank : start;
    end = end < start ? start : end > t->rank ? t->rank : end;
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, dp_low_list(l, t->dims + start, (int)(end - start))),
                       DP_I64);
}

dp_status dp_low_size(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int64_t count = dp_tensor_count(&dp_low_in(l, 0)->tensor);
    dp_value *value = dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &count);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, value), DP_I64);
}

dp_status dp_low_reshape(dp_lowering *l) {
    int64_t dims[DP_TENSOR_DIMS];
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int n = dp_low_numbers(l, 1, dims, DP_TENSOR_DIMS);
    bool zeros_stay = dp_node_integer(l->node, "allowzero", 0) != 0;
    for (int d = 0; d < n && !zeros_stay; d++)
        if (dims[d] == 0 && d < t->rank)
            dims[d] = t->dims[d];
    return dp_low_last(l, dp_low_begin(l, "Reshape", 1, 2, dp_low_in(l, 0), dp_low_list(l, dims, n)), DP_EL_NONE);
}

dp_status dp_low_squeeze(dp_lowering *l) {
    int64_t axes[DP_TENSOR_DIMS];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int n = dp_low_axes(l, "axes", 1, axes, DP_TENSOR_DIMS);
    dp_node *node = dp_low_begin(l, "Squeeze", 1, 1, dp_low_in(l, 0));
    dp_low_integers(l, node, "axis", axes, n);
    return dp_low_last(l, node, DP_EL_NONE);
}

dp_status dp_low_unsqueeze(dp_lowering *l) {
    int64_t axes[DP_TENSOR_DIMS];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int n = dp_low_axes(l, "axes", 1, axes, DP_TENSOR_DIMS);
    dp_node *node = dp_low_begin(l, "Unsqueeze", 1, 1, dp_low_in(l, 0));
    dp_low_integers(l, node, "axes", axes, n);
    return dp_low_last(l, node, DP_EL_NONE);
}

dp_status dp_low_transpose(dp_lowering *l) {
    int64_t perm[DP_TENSOR_DIMS];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int rank = dp_low_rank(l, 0), n = dp_low_axes(l, "perm", 1, perm, DP_TENSOR_DIMS);
    for (int d = 0; n == 0 && d < rank; d++)
        perm[d] = rank - 1 - d;
    dp_node *node = dp_low_begin(l, "TransposeD", 1, 1, dp_low_in(l, 0));
    dp_low_integers(l, node, "perm", perm, n ? n : rank);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* Nothing is dropped where a model infers: the mask, if somebody wants it, is all true. */
dp_status dp_low_dropout(dp_lowering *l) {
    double ratio = 0.5;
    uint8_t yes = 1;
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_value *training = dp_low_in(l, 2);
    if (training && !dp_low_want(l, 2))
        return l->status;
    if (training && dp_tensor_count(&training->tensor) == 1 && *(const uint8_t *)training->tensor.base) {
        if (dp_low_in(l, 1) && !dp_low_number(l, 1, &ratio))
            return l->status;
        if (ratio != 0)
            return dp_low_fail(l, DP_ERR_UNSUPPORTED, "training_mode is not supported");
    }
    dp_value *x = dp_low_in(l, 0);
    if (l->node->n_outputs > 1 && l->node->outputs[1]) {
        int element = l->opset < 10 ? x->tensor.element : DP_EL_BOOL;
        dp_value *one = l->opset < 10 ? dp_low_scalar(l, x, 1) : dp_value_constant(l->model, NULL, DP_EL_BOOL, NULL, 0, &yes);
        if (!one)
            return DP_ERR_OUT_OF_MEMORY;
        dp_node *mask = dp_low_begin(l, "BroadcastTo", 1, 2, one, dp_low_list(l, x->tensor.dims, x->tensor.rank));
        dp_low_give(l, mask, 0, 1, element);
        dp_low_end(l, mask);
    }
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, x), DP_EL_NONE);
}

/* The result's dims are the larger of both. */
dp_status dp_low_expand(dp_lowering *l) {
    int64_t dims[DP_TENSOR_DIMS];
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int n = dp_low_numbers(l, 1, dims, DP_TENSOR_DIMS);
    if (n < 0)
        return l->status;
    for (; n < t->rank; n++) {
        memmove(dims + 1, dims, (size_t)n * sizeof *dims);
        dims[0] = 1;
    }
    for (int d = 0; d < t->rank; d++)
        if (dims[n - t->rank + d] == 1)
            dims[n - t->rank + d] = t->dims[d];
    return dp_low_last(l, dp_low_begin(l, "BroadcastTo", 1, 2, dp_low_in(l, 0), dp_low_list(l, dims, n)), DP_EL_NONE);
}

/* The value comes as a tensor of one element, behind the inputs. */
dp_status dp_low_constant_of_shape(dp_lowering *l) {
    int64_t dims[DP_TENSOR_DIMS], one = 1;
    float zero = 0;
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int n = dp_low_numbers(l, 0, dims, DP_TENSOR_DIMS);
    dp_value *value = dp_low_in(l, 1);
    if (!value)
        value = dp_value_constant(l->model, NULL, DP_F32, &one, 1, &zero);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    if (dp_tensor_count(&value->tensor) != 1)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "value has %lld elements, but must have 1",
                           (long long)dp_tensor_count(&value->tensor));
    return dp_low_last(l, dp_low_begin(l, "BroadcastTo", 1, 2, value, dp_low_list(l, dims, n)), DP_EL_NONE);
}

/* Parts by the lengths in `split`, or num_outputs (or as many as there are) of one length, the last shorter. */
dp_status dp_low_split(dp_lowering *l) {
    int64_t sizes[256];
    int parts = l->node->n_outputs;
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int64_t axis = dp_node_integer(l->node, "axis", 0);
    int64_t at = axis < 0 ? axis + t->rank : axis;
    if (at < 0 || at >= t->rank || parts > 256)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "axis is %lld, but must be a dimension; at most 256 parts are possible",
                           (long long)axis);
    int n = dp_low_axes(l, "split", 1, sizes, 256);
    if (n == 0) {
        int64_t step = (t->dims[at] + parts - 1) / parts, left = t->dims[at];
        for (n = 0; n < parts; n++, left -= sizes[n - 1])
            sizes[n] = step < left ? step : left;
    }
    dp_node *node = dp_low_begin(l, "SplitVD", parts, 1, dp_low_in(l, 0));
    dp_low_integers(l, node, "size_splits", sizes, n);
    dp_low_integer(l, node, "split_dim", at);
    dp_low_integer(l, node, "num_split", parts);
    for (int i = 0; i < parts; i++)
        dp_low_give(l, node, i, i, DP_EL_NONE);
    dp_low_end(l, node);
    return l->status;
}

/* Starts and ends are clamped as ONNX says; a step below 0 walks from the start down. */
static void slice_dim(int64_t dim, int64_t step, int64_t *start, int64_t *end) {
    *start += *start < 0 ? dim : 0;
    *end += *end < 0 ? dim : 0;
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    *start = *start < 0 ? 0 : *start > high ? high : *start;
    *end = *end < low ? low : *end > dim ? dim : *end;
}

dp_status dp_low_slice(dp_lowering *l) {
    enum { ROOM = DP_TENSOR_DIMS };
    int64_t starts[ROOM], ends[ROOM], axes[ROOM], steps[ROOM], size[ROOM];
    int64_t begin[ROOM], end[ROOM], stride[ROOM], flipped[ROOM];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int n = dp_low_axes(l, "starts", 1, starts, ROOM), m = dp_low_axes(l, "ends", 2, ends, ROOM), n_flipped = 0;
    int n_axes = dp_low_axes(l, "axes", 3, axes, ROOM), n_steps = dp_low_axes(l, "steps", 4, steps, ROOM);
    if (l->status != DP_OK)
        return l->status;
    if (n != m || (n_axes && n_axes != n) || (n_steps && n_steps != n) || n > t->rank)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "%d starts, %d ends, %d axes and %d steps do not fit together", n, m,
                           n_axes, n_steps);
    for (int d = 0; d < t->rank; d++)
        begin[d] = 0, end[d] = size[d] = t->dims[d], stride[d] = 1;
    for (int i = 0; i < n; i++) {
        int64_t d = n_axes ? axes[i] : i, step = n_steps ? steps[i] : 1;
        d += d < 0 ? t->rank : 0;
        if (d < 0 || d >= t->rank || step == 0 || step == INT64_MIN)
            return dp_low_fail(l, DP_ERR_ARGUMENT, "axis %lld or step %lld is out of range", (long long)d,
                               (long long)step);
        slice_dim(t->dims[d], step, &starts[i], &ends[i]);
        if (step < 0) { /* in the reversed dim element k stands at dim - 1 - k */
            flipped[n_flipped++] = d;
            starts[i] = t->dims[d] - 1 - starts[i];
            ends[i] = t->dims[d] - 1 - ends[i];
            step = -step;
        }
        begin[d] = starts[i];
        end[d] = ends[i] < starts[i] ? starts[i] : ends[i];
        stride[d] = step;
    }
    dp_value *x = dp_low_in(l, 0);
    if (n_flipped) {
        dp_node *turned = dp_low_begin(l, "ReverseV2D", 1, 1, x);
        dp_low_integers(l, turned, "axis", flipped, n_flipped);
        x = dp_low_end(l, turned);
    }
    dp_node *node = dp_low_begin(l, "StridedSliceD", 1, 1, x);
    dp_low_integers(l, node, "begin", begin, t->rank);
    dp_low_integers(l, node, "end", end, t->rank);
    dp_low_integers(l, node, "strides", stride, t->rank);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* ONNX has all beginnings, then all ends; attributes before version 11. */
dp_status dp_low_pad(dp_lowering *l) {
    int64_t pads[2 * DP_TENSOR_DIMS], axes[DP_TENSOR_DIMS], pairs[2 * DP_TENSOR_DIMS] = {0};
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const char *mode = dp_node_text(l->node, "mode", "constant");
    dp_value *x = dp_low_in(l, 0), *value = dp_low_in(l, 2);
    int rank = x->tensor.rank, n = dp_low_axes(l, "pads", 1, pads, 2 * DP_TENSOR_DIMS);
    int n_axes = dp_low_in(l, 3) ? dp_low_numbers(l, 3, axes, DP_TENSOR_DIMS) : 0;
    for (int d = 0; !dp_low_in(l, 3) && d < rank; d++)
        axes[n_axes++] = d;
    if (l->status != DP_OK)
        return l->status;
    if (n != 2 * n_axes)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "%d pads do not fit %d dimensions", n, n_axes);
    for (int i = 0; i < n_axes; i++) {
        int64_t d = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (d < 0 || d >= rank)
            return dp_low_fail(l, DP_ERR_ARGUMENT, "axis %lld is out of range", (long long)axes[i]);
        pairs[2 * d] = pads[i];
        pairs[2 * d + 1] = pads[n_axes + i];
    }
    if (!value)
        value = dp_low_scalar(l, x, dp_node_real(l->node, "value", 0));
    bool constant = strcmp(mode, "constant") == 0;
    dp_node *node = constant ? dp_low_begin(l, "PadV3", 1, 3, x, dp_low_list(l, pairs, 2 * rank), value)
                             : dp_low_begin(l, "PadV3", 1, 2, x, dp_low_list(l, pairs, 2 * rank));
    dp_low_text(l, node, "mode", mode);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* Reshape to `dims`, permute, reshape to `out`. */
static dp_status rearrange(dp_lowering *l, const int64_t *dims, const int64_t *perm, int n, const int64_t *out,
                           int n_out) {
    dp_value *x = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, dp_low_in(l, 0), dp_low_list(l, dims, n)));
    dp_node *node = dp_low_begin(l, "TransposeD", 1, 1, x);
    dp_low_integers(l, node, "perm", perm, n);
    x = dp_low_end(l, node);
    return dp_low_last(l, dp_low_begin(l, "Reshape", 1, 2, x, dp_low_list(l, out, n_out)), DP_EL_NONE);
}

static dp_status block_of(dp_lowering *l, int64_t *out_block) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    *out_block = dp_node_integer(l->node, "blocksize", 0);
    if (dp_low_rank(l, 0) != 4 || *out_block < 1 || *out_block > 1 << 15)
        return dp_low_fail(l, DP_ERR_ARGUMENT,
                           "the input has %d dimensions and blocksize is %lld, but must have 4 and be "
                           "at least 1",
                           dp_low_rank(l, 0), (long long)*out_block);
    return DP_OK;
}

dp_status dp_low_depth_to_space(dp_lowering *l) {
    static const int64_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    int64_t b;
    if (block_of(l, &b) != DP_OK)
        return l->status;
    const int64_t *x = dp_low_in(l, 0)->tensor.dims;
    bool columns = strcmp(dp_node_text(l->node, "mode", "DCR"), "CRD") == 0;
    int64_t c = x[1] / (b * b), out[] = {x[0], c, x[2] * b, x[3] * b};
    int64_t first[] = {x[0], b, b, c, x[2], x[3]}, second[] = {x[0], c, b, b, x[2], x[3]};
    return rearrange(l, columns ? second : first, columns ? crd : dcr, 6, out, 4);
}

dp_status dp_low_space_to_depth(dp_lowering *l) {
    static const int64_t perm[] = {0, 3, 5, 1, 2, 4};
    int64_t b;
    if (block_of(l, &b) != DP_OK)
        return l->status;
    const int64_t *x = dp_low_in(l, 0)->tensor.dims;
    int64_t dims[] = {x[0], x[1], x[2] / b, b, x[3] / b, b}, out[] = {x[0], x[1] * b * b, x[2] / b, x[3] / b};
    return rearrange(l, dims, perm, 6, out, 4);
}

/* Cut or padded with zeros at both ends; one more at the end where that is uneven. */
dp_status dp_low_center(dp_lowering *l) {
    int64_t shape[DP_TENSOR_DIMS], axes[DP_TENSOR_DIMS], offsets[DP_TENSOR_DIMS], size[DP_TENSOR_DIMS],
        pairs[2 * DP_TENSOR_DIMS] = {0};
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    int rank = x->tensor.rank, n = dp_low_numbers(l, 1, shape, DP_TENSOR_DIMS);
    int n_axes = dp_low_axes(l, "axes", INT16_MAX, axes, DP_TENSOR_DIMS);
    for (int d = 0; !n_axes && d < rank; d++)
        axes[d] = d;
    if (l->status != DP_OK)
        return l->status;
    if (n != (n_axes ? n_axes : rank))
        return dp_low_fail(l, DP_ERR_ARGUMENT, "shape has %d numbers, but %d dimensions change", n, n_axes ? n_axes : rank);
    for (int d = 0; d < rank; d++)
        offsets[d] = 0, size[d] = x->tensor.dims[d];
    for (int i = 0; i < n; i++) {
        int64_t d = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (d < 0 || d >= rank || shape[i] < 0)
            return dp_low_fail(l, DP_ERR_ARGUMENT, "axis %lld or size %lld is out of range", (long long)axes[i],
                               (long long)shape[i]);
        int64_t more = shape[i] - x->tensor.dims[d];
        if (more <= 0) {
            offsets[d] = -more / 2;
            size[d] = shape[i];
        } else {
            pairs[2 * d] = more / 2;
            pairs[2 * d + 1] = more - more / 2;
        }
    }
    dp_node *cut = dp_low_begin(l, "SliceD", 1, 1, x);
    dp_low_integers(l, cut, "offsets", offsets, rank);
    dp_low_integers(l, cut, "size", size, rank);
    dp_value *part = dp_low_end(l, cut);
    return dp_low_last(l, dp_low_begin(l, "PadV3", 1, 2, part, dp_low_list(l, pairs, 2 * rank)), DP_EL_NONE);
}
