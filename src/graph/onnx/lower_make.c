/* Rows of the ONNX operators that make tensors: sequences, masks, one-hot vectors. */
#include <math.h>
#include <string.h>

#include "graph/onnx/element.h"
#include "graph/onnx/lower.h"

static dp_value *cast(dp_lowering *l, dp_value *x, int element) {
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, x);
    dp_low_integer(l, node, "dst_type", element);
    if (node && !dp_low_output(l, node, 0, element))
        return NULL;
    return dp_low_end(l, node);
}

/* 0, 1, ... n - 1 of this type. */
static dp_value *count_up(dp_lowering *l, int64_t n, int element) {
    dp_value *value = dp_value_constant(l->model, NULL, DP_I64, &n, 1, NULL);
    if (!value) {
        l->status = l->status ? l->status : DP_ERR_OUT_OF_MEMORY;
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)value->tensor.base)[i] = i;
    return element == DP_I64 ? value : cast(l, value, element);
}

/* start + i * delta, computed in double. */
dp_status dp_low_range(dp_lowering *l) {
    double start, limit, delta;
    if (dp_low_need(l, 3) != DP_OK || !dp_low_number(l, 0, &start) || !dp_low_number(l, 1, &limit) ||
        !dp_low_number(l, 2, &delta))
        return l->status;
    double exact = delta != 0 ? ceil((limit - start) / delta) : -1;
    if (delta == 0 || !(exact < 0x1p28))
        return dp_low_fail(l, DP_ERR_ARGUMENT, "start %g, limit %g and delta %g make no range", start, limit, delta);
    int64_t n = exact > 0 ? (int64_t)exact : 0;
    dp_value *value = dp_value_constant(l->model, NULL, DP_F64, &n, 1, NULL);
    if (!value)
        return DP_ERR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < n; i++)
        ((double *)value->tensor.base)[i] = start + (double)i * delta;
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, value);
    dp_low_integer(l, node, "dst_type", dp_low_in(l, 0)->tensor.element);
    return dp_low_last(l, node, dp_low_in(l, 0)->tensor.element);
}

dp_status dp_low_cast_like(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    int element = dp_low_in(l, 1)->tensor.element;
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, dp_low_in(l, 0));
    dp_low_integer(l, node, "dst_type", element);
    return dp_low_last(l, node, element);
}

dp_status dp_low_trilu(dp_lowering *l) {
    double k = 0;
    if (dp_low_need(l, 1) != DP_OK || (dp_low_in(l, 1) && !dp_low_number(l, 1, &k)))
        return l->status;
    dp_node *node = dp_low_begin(l, dp_node_integer(l->node, "upper", 1) ? "Triu" : "Tril", 1, 1, dp_low_in(l, 0));
    dp_low_integer(l, node, "diagonal", k > -0x1p62 && k < 0x1p62 ? (int64_t)k : 0);
    return dp_low_last(l, node, DP_EL_NONE);
}

/* Ones where column - row is k: the comparison of two sequences. */
dp_status dp_low_eye_like(dp_lowering *l) {
    int64_t first = 0, k = dp_node_integer(l->node, "k", 0);
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int64_t type = dp_node_integer(l->node, "dtype", 0);
    int element = type ? dp_onnx_element((int)type) : t->element;
    if (t->rank != 2 || element == DP_EL_NONE)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "the input has %d dimensions, but must have 2; dtype is %lld", t->rank,
                           (long long)type);
    dp_node *turn = dp_low_begin(l, "Unsqueeze", 1, 1, count_up(l, t->dims[0], DP_F32));
    first = 1;
    dp_low_integers(l, turn, "axes", &first, 1);
    dp_node *shift = dp_low_begin(l, "Adds", 1, 1, dp_low_end(l, turn));
    dp_low_real(l, shift, "value", (double)k);
    dp_value *rows = dp_low_end(l, shift);
    dp_node *equal = dp_low_begin(l, "Equal", 1, 2, rows, count_up(l, t->dims[1], DP_F32));
    if (!equal || !dp_low_output(l, equal, 0, DP_EL_BOOL))
        return l->status;
    dp_node *node = dp_low_begin(l, "Cast", 1, 1, dp_low_end(l, equal));
    dp_low_integer(l, node, "dst_type", element);
    return dp_low_last(l, node, element);
}

/* Along `dim` of the result: whether the class is `index`, as a bool with a dim of size `classes` inserted at `dim`. */
static dp_value *is_class(dp_lowering *l, dp_value *index, int64_t classes, int dim) {
    int64_t at = dim, dims[DP_TENSOR_DIMS];
    int rank = index ? index->tensor.rank + 1 : 1;
    if (!index || rank > DP_TENSOR_DIMS)
        return NULL;
    dp_node *node = dp_low_begin(l, "Unsqueeze", 1, 1, index);
    dp_low_integers(l, node, "axes", &at, 1);
    dp_value *spread = dp_low_end(l, node);
    for (int d = 0; d < rank; d++)
        dims[d] = d == dim ? classes : 1;
    dp_value *all = count_up(l, classes, index->tensor.element);
    all = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, all, dp_low_list(l, dims, rank)));
    dp_node *equal = dp_low_begin(l, "Equal", 1, 2, spread, all);
    if (!equal || !dp_low_output(l, equal, 0, DP_EL_BOOL))
        return NULL;
    return dp_low_end(l, equal);
}

/* Classes from the end are negative. The two values are in one tensor: off, on. */
dp_status dp_low_one_hot(dp_lowering *l) {
    double depth;
    int64_t at[] = {0, 1};
    if (dp_low_need(l, 3) != DP_OK || !dp_low_number(l, 1, &depth))
        return l->status;
    dp_value *index = dp_low_in(l, 0), *values = dp_low_in(l, 2), *ends[2];
    int rank = index->tensor.rank + 1;
    int64_t axis = dp_node_integer(l->node, "axis", -1);
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || !(depth >= 0 && depth < 0x1p28))
        return dp_low_fail(l, DP_ERR_ARGUMENT, "axis or depth (%g) is out of range", depth);
    if (!dp_element_is_int(index->tensor.element))
        index = cast(l, index, DP_I64);
    for (int i = 0; i < 2; i++) {
        dp_node *node =
            dp_low_begin(l, "GatherV2D", 1, 2, values, dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &at[i]));
        dp_low_integer(l, node, "axis", 0);
        ends[i] = dp_low_end(l, node);
    }
    dp_value *number = dp_value_constant(l->model, NULL, DP_F32, NULL, 0, &(float){(float)depth});
    number = number ? cast(l, number, index ? index->tensor.element : DP_I64) : NULL;
    index = dp_low_end(l, dp_low_begin(l, "FloorMod", 1, 2, index, number));
    dp_value *which = is_class(l, index, (int64_t)depth, (int)axis);
    return dp_low_last(l, dp_low_begin(l, "SelectV2", 1, 3, which, ends[1], ends[0]), values->tensor.element);
}

/* One where the first of the largest is. Before version 13 the dims from `axis` on are one. */
dp_status dp_low_hardmax(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    const dp_tensor t = x->tensor;
    bool flat = l->opset < 13;
    int64_t axis = dp_node_integer(l->node, "axis", flat ? 1 : -1);
    axis += axis < 0 ? t.rank : 0;
    if (axis < 0 || axis > t.rank - !flat)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "axis %lld of %d dimensions is out of range", (long long)axis, t.rank);
    if (flat) {
        dp_node *rows = dp_low_begin(l, "Flatten", 1, 1, x);
        dp_low_integer(l, rows, "axis", axis);
        x = dp_low_end(l, rows);
        axis = 1;
    }
    dp_node *node = dp_low_begin(l, "ArgMaxD", 1, 1, x);
    dp_low_integer(l, node, "dimension", axis);
    if (!node || !dp_low_output(l, node, 0, DP_I64))
        return l->status;
    dp_value *which = is_class(l, dp_low_end(l, node), x->tensor.dims[axis], (int)axis);
    which = which ? cast(l, which, t.element) : NULL;
    return dp_low_last(l, dp_low_begin(l, "Reshape", 1, 2, which, dp_low_list(l, t.dims, t.rank)), t.element);
}

static dp_value *flip(dp_lowering *l, dp_value *x, int64_t axis) {
    dp_node *node = dp_low_begin(l, "ReverseV2D", 1, 1, x);
    dp_low_integers(l, node, "axis", &axis, 1);
    return dp_low_end(l, node);
}

/* Exclusive sums are the sums without the element itself; reversed ones run over the reversed dim. */
dp_status dp_low_cumsum(dp_lowering *l) {
    int64_t axis;
    if (dp_low_need(l, 2) != DP_OK || dp_low_numbers(l, 1, &axis, 1) != 1)
        return l->status;
    bool reverse = dp_node_integer(l->node, "reverse", 0) != 0,
         exclusive = dp_node_integer(l->node, "exclusive", 0) != 0;
    dp_value *x = reverse ? flip(l, dp_low_in(l, 0), axis) : dp_low_in(l, 0);
    dp_node *node = dp_low_begin(l, "CumsumD", 1, 1, x);
    dp_low_integer(l, node, "axis", axis);
    dp_value *sum = dp_low_end(l, node);
    if (exclusive)
        sum = dp_low_end(l, dp_low_begin(l, "Sub", 1, 2, sum, x));
    if (reverse)
        sum = flip(l, sum, axis);
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, sum), DP_EL_NONE);
}

/* Negative log likelihood: minus the input at the target class, weighted; reductions "none", "sum", "mean". */
static dp_value *likelihood(dp_lowering *l, dp_value *x, dp_value *target, dp_value *weight, const dp_arg *ignore,
                            const char *reduction, int given) {
    int64_t classes = x ? x->tensor.dims[1] : 0, one = 1, all[DP_TENSOR_DIMS];
    dp_value *which = target ? is_class(l, target, classes, 1) : NULL;
    if (!which || !x)
        return NULL;
    int rank = x->tensor.rank, element = x->tensor.element;
    if (ignore) {
        dp_value *skipped = dp_value_constant(l->model, NULL, DP_I64, NULL, 0, &ignore->as.integer);
        skipped = skipped ? cast(l, skipped, target->tensor.element) : NULL;
        dp_node *keep = dp_low_begin(l, "NotEqual", 1, 2, target, skipped);
        if (!keep || !dp_low_output(l, keep, 0, DP_EL_BOOL))
            return NULL;
        dp_node *spread = dp_low_begin(l, "Unsqueeze", 1, 1, dp_low_end(l, keep));
        dp_low_integers(l, spread, "axes", &one, 1);
        which = dp_low_end(l, dp_low_begin(l, "LogicalAnd", 1, 2, which, dp_low_end(l, spread)));
    }
    dp_value *share = cast(l, which, element);
    if (weight) {
        for (int d = 0; d < rank; d++)
            all[d] = d == 1 ? classes : 1;
        weight = dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, weight, dp_low_list(l, all, rank)));
        share = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, share, weight));
    }
    dp_value *zero = dp_low_scalar(l, x, 0); /* where the share is 0 the input may be infinite */
    dp_node *pick = dp_low_begin(l, "SelectV2", 1, 3, which, x, zero);
    dp_value *picked = pick && dp_low_output(l, pick, 0, element) ? dp_low_end(l, pick) : NULL;
    dp_value *loss =
        dp_low_end(l, dp_low_begin(l, "Neg", 1, 1, dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, picked, share))));
    bool each = strcmp(reduction, "none") == 0, mean = strcmp(reduction, "mean") == 0;
    for (int d = 0; d < rank; d++)
        all[d] = d;
    dp_node *sum = dp_low_begin(l, "ReduceSumD", 1, 1, loss);
    dp_low_integers(l, sum, "axes", each ? &one : all, each ? 1 : rank);
    if (!mean) {
        dp_low_give(l, sum, 0, given, DP_EL_NONE);
        return dp_low_end(l, sum);
    }
    loss = dp_low_end(l, sum);
    dp_node *total = dp_low_begin(l, "ReduceSumD", 1, 1, share);
    dp_low_integers(l, total, "axes", all, rank);
    dp_node *node = dp_low_begin(l, "Div", 1, 2, loss, dp_low_end(l, total));
    dp_low_give(l, node, 0, given, DP_EL_NONE);
    return dp_low_end(l, node);
}

dp_status dp_low_nll_loss(dp_lowering *l) {
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    likelihood(l, dp_low_in(l, 0), dp_low_in(l, 1), dp_low_in(l, 2), dp_node_attribute(l->node, "ignore_index"),
               dp_node_text(l->node, "reduction", "mean"), 0);
    return l->status;
}

dp_status dp_low_cross_entropy(dp_lowering *l) {
    int64_t one = 1;
    if (dp_low_need(l, 2) != DP_OK)
        return l->status;
    dp_node *node = dp_low_begin(l, "LogSoftmaxV2", 1, 1, dp_low_in(l, 0));
    dp_low_integers(l, node, "axes", &one, 1);
    dp_low_give(l, node, 0, 1, DP_EL_NONE);
    dp_value *log = dp_low_end(l, node);
    likelihood(l, log, dp_low_in(l, 1), dp_low_in(l, 2), dp_node_attribute(l->node, "ignore_index"),
               dp_node_text(l->node, "reduction", "mean"), 0);
    return l->status;
}
