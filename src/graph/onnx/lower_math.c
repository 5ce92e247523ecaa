/* Rows of the ONNX operators that compute element by element or along dims. */
#include <string.h>

#include "graph/onnx/element.h"
#include "graph/onnx/lower.h"

static int element_of(const dp_lowering *l, int i) {
    return dp_low_in(l, i)->tensor.element;
}

static dp_value *cast(dp_lowering *l, dp_value *x, int element) {
    if (!x || x->tensor.element == element)
        return x;
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, x);
    dp_low_integer(l, node, "dst_type", element);
    return node && dp_low_output(l, node, 0, element) ? dp_low_end(l, node) : NULL;
}

/* uint64 as int64 of the same order, and back: the top bit is turned. */
static dp_value *ordered(dp_lowering *l, dp_value *x) {
    int64_t top = INT64_MIN;
    dp_value *bit = dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &top);
    x = cast(l, x, DP_I64);
    return bit ? dp_low_end(l, dp_low_begin(l, "BitwiseXor", 1, 2, x, bit)) : NULL;
}

/* op(op(a, b), c)...: Max, Min and Sum of one or more. */
dp_status dp_low_fold_left(dp_lowering *l) {
    if (dp_low_need(l, l->node->n_inputs ? l->node->n_inputs : 1) != DP_OK)
        return l->status;
    dp_value *sum = dp_low_in(l, 0);
    int last = l->node->n_inputs - 1;
    bool wide = element_of(l, 0) == DP_U64;
    if (last == 0)
        return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, sum), DP_EL_NONE);
    if (!wide) {
        for (int i = 1; i < last; i++)
            sum = dp_low_end(l, dp_low_begin(l, l->detail, 1, 2, sum, dp_low_in(l, i)));
        return dp_low_last(l, dp_low_begin(l, l->detail, 1, 2, sum, dp_low_in(l, last)), DP_EL_NONE);
    }
    sum = ordered(l, sum);
    for (int i = 1; i <= last; i++)
        sum = dp_low_end(l, dp_low_begin(l, l->detail, 1, 2, sum, ordered(l, dp_low_in(l, i))));
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, sum ? ordered(l, sum) : NULL);
    dp_low_integer(l, node, "dst_type", DP_U64);
    return dp_low_last(l, node, DP_U64);
}

/* Comparisons: uint64 has no type of its own there. */
dp_status dp_low_compare(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    bool wide = element_of(l, 0) == DP_U64;
    dp_value *a = wide ? ordered(l, dp_low_in(l, 0)) : dp_low_in(l, 0),
             *b = wide ? ordered(l, dp_low_in(l, 1)) : dp_low_in(l, 1);
    return dp_low_last(l, dp_low_begin(l, l->detail, 1, 2, a, b), DP_EL_BOOL);
}

/*
 * Before version 7 the second operand is repeated only where attribute broadcast says so, with its dims from dim `axis` of
 * the first on.
 */
dp_status dp_low_aligned(dp_lowering *l) {
    int64_t dims[DP_TENSOR_DIMS];
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *a = dp_low_in(l, 0), *b = dp_low_in(l, 1);
    int rank = a->tensor.rank, own = b->tensor.rank;
    int64_t axis = dp_node_integer(l->node, "axis", rank - own);
    axis += axis < 0 ? rank : 0;
    if (dp_node_integer(l->node, "broadcast", 0) && own < rank) {
        if (axis < 0 || axis + own > rank)
            return dp_low_fail(l, DP_ERR_ARGUMENT, "axis is %lld, but %d dimensions do not fit there", (long long)axis, own);
        for (int d = 0; d < own; d++)
            dims[d] = b->tensor.dims[d];
        for (int d = own; d < rank - axis; d++)
            dims[d] = 1;
        b = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, b, dp_low_list(l, dims, (int)(rank - axis))));
    }
    bool truth = strstr(l->detail, "Logical") || strcmp(l->detail, "Equal") == 0 || strcmp(l->detail, "Less") == 0 ||
                 strcmp(l->detail, "Greater") == 0 || strcmp(l->detail, "NotEqual") == 0;
    return dp_low_last(l, dp_low_begin(l, l->detail, 1, 2, a, b), truth ? DP_EL_BOOL : DP_EL_NONE);
}

dp_status dp_low_mean(dp_lowering *l) {
    if (dp_low_need(l, l->node->n_inputs ? l->node->n_inputs : 1) != DP_OK)
        return l->status;
    dp_value *sum = dp_low_in(l, 0);
    for (int i = 1; i < l->node->n_inputs; i++)
        sum = dp_low_end(l, dp_low_begin(l, "Add", 1, 2, sum, dp_low_in(l, i)));
    dp_node *node = dp_low_begin(l, "Muls", 1, 1, sum);
    dp_low_real(l, node, "value", 1.0 / l->node->n_inputs);
    return dp_low_last(l, node, DP_EL_NONE);
}

dp_status dp_low_modulo(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    bool like_c = dp_node_integer(l->node, "fmod", 0) != 0;
    if (element_of(l, 0) == DP_U64)
        return dp_low_last(l, dp_low_begin(l, "UnsignedMod", 1, 2, dp_low_in(l, 0), dp_low_in(l, 1)), DP_EL_NONE);
    return dp_low_last(l, dp_low_begin(l, like_c ? "Mod" : "FloorMod", 1, 2, dp_low_in(l, 0), dp_low_in(l, 1)),
                       DP_EL_NONE);
}

/* The exponent may be of another type; the result has the base's. An integer to the power of a real is computed in
 * double. */
dp_status dp_low_power(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *base = dp_low_in(l, 0), *power = dp_low_in(l, 1);
    int element = base->tensor.element;
    bool real = dp_element_is_float(power->tensor.element) && !dp_element_is_float(element);
    base = real ? cast(l, base, DP_F64) : base;
    power = cast(l, power, real ? DP_F64 : element);
    dp_node *node = dp_low_begin(l, "Pow", 1, 2, base, power);
    if (!real)
        return dp_low_last(l, node, DP_EL_NONE);
    dp_node *back = dp_low_begin(l, "Cast", 1, 1, dp_low_end(l, node));
    dp_low_integer(l, back, "dst_type", element);
    return dp_low_last(l, back, element);
}

dp_status dp_low_cast(dp_lowering *l) {
    int64_t to = dp_node_integer(l->node, "to", 0);
    int element = dp_onnx_element((int)to);
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    if (element == DP_EL_NONE)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "data type %lld is not supported", (long long)to);
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, dp_low_in(l, 0));
    dp_low_integer(l, node, "dst_type", element);
    return dp_low_last(l, node, element);
}

/* Bounds are attributes before version 11 and inputs, possibly absent, since. */
dp_status dp_low_clip(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *bound[2] = {dp_low_in(l, 1), dp_low_in(l, 2)};
    static const char *const names[] = {"min", "max"};
    for (int i = 0; i < 2; i++)
        if (!bound[i] && dp_node_attribute(l->node, names[i]))
            bound[i] = dp_low_scalar(l, x, dp_node_real(l->node, names[i], 0));
    if (bound[0] && bound[1])
        return dp_low_last(l, dp_low_begin(l, "ClipByValue", 1, 3, x, bound[0], bound[1]), DP_EL_NONE);
    if (bound[0])
        return dp_low_last(l, dp_low_begin(l, "Maximum", 1, 2, x, bound[0]), DP_EL_NONE);
    if (bound[1])
        return dp_low_last(l, dp_low_begin(l, "Minimum", 1, 2, x, bound[1]), DP_EL_NONE);
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, x), DP_EL_NONE);
}

dp_status dp_low_where(dp_lowering *l) {
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "SelectV2", 1, 3, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2));
    return dp_low_last(l, node, element_of(l, 1));
}

/* x where it is above 0, slope * x elsewhere. */
dp_status dp_low_prelu(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0), *slope = dp_low_in(l, 1), *zero = dp_low_scalar(l, x, 0);
    if (l->opset < 7 && slope->tensor.rank == 1 && x->tensor.rank > 1) { /* one per channel */
        int64_t dims[DP_TENSOR_DIMS] = {slope->tensor.dims[0], 1, 1, 1, 1, 1, 1, 1};
        slope = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, slope, dp_low_list(l, dims, x->tensor.rank - 1)));
    }
    dp_value *below = dp_low_end(l, dp_low_begin(l, "Minimum", 1, 2, x, zero));
    dp_value *above = dp_low_end(l, dp_low_begin(l, "Relu", 1, 1, x));
    dp_value *scaled = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, below, slope));
    return dp_low_last(l, dp_low_begin(l, "Add", 1, 2, above, scaled), DP_EL_NONE);
}

static dp_value *scaled_by(dp_lowering *l, dp_value *x, double factor, const char *type) {
    dp_node *node = dp_low_begin(l, type, 1, 1, x);
    dp_low_real(l, node, "value", factor);
    return dp_low_end(l, node);
}

/* 0.5 x (1 + erf(x / sqrt(2))), or the form with tanh. */
dp_status dp_low_gelu(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    if (strcmp(dp_node_text(l->node, "approximate", "none"), "tanh") == 0)
        return dp_low_last(l, dp_low_begin(l, "Gelu", 1, 1, x), DP_EL_NONE);
    dp_value *erf = dp_low_end(l, dp_low_begin(l, "Erf", 1, 1, scaled_by(l, x, 0.70710678118654752440, "Muls")));
    dp_value *half = scaled_by(l, x, 0.5, "Muls");
    return dp_low_last(l, dp_low_begin(l, "Mul", 1, 2, half, scaled_by(l, erf, 1, "Adds")), DP_EL_NONE);
}

/* max(0, min(1, alpha x + beta)) */
dp_status dp_low_hard_sigmoid(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = scaled_by(l, dp_low_in(l, 0), dp_node_real(l->node, "alpha", 0.2), "Muls");
    x = scaled_by(l, x, dp_node_real(l->node, "beta", 0.5), "Adds");
    if (!x)
        return l->status;
    dp_value *zero = dp_low_scalar(l, x, 0), *one = dp_low_scalar(l, x, 1);
    return dp_low_last(l, dp_low_begin(l, "ClipByValue", 1, 3, x, zero, one), DP_EL_NONE);
}

/* log(1 + e^x) has no straight part in ONNX; beyond 40 it is x in every type there is. */
dp_status dp_low_softplus(dp_lowering *l) {
    dp_node *node = dp_low_begin(l, "SoftplusV2", 1, 1, dp_low_in(l, 0));
    dp_low_real(l, node, "threshold", 40);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* x / (1 + |x|) */
dp_status dp_low_softsign(dp_lowering *l) {
    dp_value *x = dp_low_in(l, 0);
    dp_value *below = scaled_by(l, dp_low_end(l, dp_low_begin(l, "Abs", 1, 1, x)), 1, "Adds");
    return dp_low_last(l, dp_low_begin(l, "Div", 1, 2, x, below), DP_EL_NONE);
}

/* "type before after": a reduction, with a function of each element before it and of the result after it. */
dp_status dp_low_reduce(dp_lowering *l) {
    char type[24], before[16], after[16];
    int64_t axes[DP_TENSOR_DIMS];
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    sscanf(l->detail, "%23s %15s %15s", type, before, after);
    dp_value *x = dp_low_in(l, 0);
    int n = dp_low_axes(l, "axes", 1, axes, DP_TENSOR_DIMS), rank = dp_low_rank(l, 0);
    if (n == 0 && dp_node_integer(l->node, "noop_with_empty_axes", 0))
        return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, x), DP_EL_NONE);
    for (int d = 0; n == 0 && d < rank; d++)
        axes[d] = d;
    if (before[0] != '-')
        x = dp_low_end(l, dp_low_begin(l, before, 1, 1, x));
    dp_node *node = dp_low_begin(l, type, 1, 1, x);
    dp_low_integers(l, node, "axes", axes, n ? n : rank);
    dp_low_integer(l, node, "keep_dims", dp_node_integer(l->node, "keepdims", 1));
    if (after[0] == '-')
        return dp_low_last(l, node, DP_EL_NONE);
    return dp_low_last(l, dp_low_begin(l, after, 1, 1, dp_low_end(l, node)), DP_EL_NONE);
}

/* Before version 13 the dims from `axis` on are one. */
dp_status dp_low_softmax_flat(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int64_t axis = dp_node_integer(l->node, "axis", 1), last = -1;
    dp_node *flat = dp_low_begin(l, "Flatten", 1, 1, dp_low_in(l, 0));
    dp_low_integer(l, flat, "axis", axis);
    dp_node *node = dp_low_begin(l, l->detail, 1, 1, dp_low_end(l, flat));
    dp_low_integers(l, node, "axes", &last, 1);
    dp_value *rows = dp_low_end(l, node);
    return dp_low_last(l, dp_low_begin(l, "Reshape", 1, 2, rows, dp_low_list(l, t->dims, t->rank)), DP_EL_NONE);
}
