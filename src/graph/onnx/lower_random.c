/*
 * Rows of the ONNX operators with random results. A node's numbers are the same in every run: they follow from its seed
 * or, without one, from its name.
 */
#include <string.h>

#include "graph/onnx/element.h"
#include "graph/onnx/lower.h"

static int64_t seed_of(const dp_lowering *l) {
    const dp_arg *seed = dp_node_attribute(l->node, "seed");
    if (seed)
        return dp_arg_integer(seed, 0);
    uint64_t hash = 1469598103934665603u;
    for (const char *c = l->node->name; c && *c; c++)
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    return (int64_t)(hash >> 1);
}

/* The element type that attribute dtype names. */
static int type_of(dp_lowering *l, int otherwise) {
    int64_t type = dp_node_integer(l->node, "dtype", 0);
    int element = type ? dp_onnx_element((int)type) : otherwise;
    if (element == DP_EL_NONE)
        dp_low_fail(l, DP_ERR_UNSUPPORTED, "data type %lld is not supported", (long long)type);
    return element;
}

/* "RandomUniform low=0 high=1": the type, and two parameters with what they are without the attribute. */
static dp_status fill(dp_lowering *l, const int64_t *dims, int rank, int element) {
    char type[24], first[16], second[16];
    double a, b;
    sscanf(l->detail, "%23s %15[^=]=%lf %15[^=]=%lf", type, first, &a, second, &b);
    dp_node *node = dp_low_begin(l, type, 1, 1, dp_low_list(l, dims, rank));
    dp_low_real(l, node, first, dp_node_real(l->node, first, a));
    dp_low_real(l, node, second, dp_node_real(l->node, second, b));
    dp_low_integer(l, node, "seed", seed_of(l));
    return dp_low_last(l, node, element);
}

dp_status dp_low_random(dp_lowering *l) {
    int64_t dims[DP_TENSOR_DIMS];
    int rank = dp_low_axes(l, "shape", INT16_MAX, dims, DP_TENSOR_DIMS), element = type_of(l, DP_F32);
    return l->status == DP_OK ? fill(l, dims, rank, element) : l->status;
}

dp_status dp_low_random_like(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    const dp_tensor *t = &dp_low_in(l, 0)->tensor;
    int element = type_of(l, t->element);
    return l->status == DP_OK ? fill(l, t->dims, t->rank, element) : l->status;
}

/* One where a number of 0 to 1 is less than the input. */
dp_status dp_low_bernoulli(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    dp_value *x = dp_low_in(l, 0);
    int element = type_of(l, x->tensor.element);
    dp_node *node = dp_low_begin(l, "RandomUniform", 1, 1, dp_low_list(l, x->tensor.dims, x->tensor.rank));
    dp_low_integer(l, node, "seed", seed_of(l));
    if (!node || !dp_low_output(l, node, 0, x->tensor.element))
        return l->status;
    dp_node *less = dp_low_begin(l, "Less", 1, 2, dp_low_end(l, node), x);
    if (!less || !dp_low_output(l, less, 0, DP_EL_BOOL))
        return l->status;
    dp_node *cast = dp_low_begin(l, "Cast", 1, 1, dp_low_end(l, less));
    dp_low_integer(l, cast, "dst_type", element);
    return dp_low_last(l, cast, element);
}

/* The input has logarithms of probabilities, not normalised. */
dp_status dp_low_multinomial(dp_lowering *l) {
    int64_t last = -1;
    if (dp_low_need(l, 1) != DP_OK)
        return l->status;
    int element = type_of(l, DP_I32);
    dp_node *softmax = dp_low_begin(l, "SoftmaxV2", 1, 1, dp_low_in(l, 0));
    dp_low_integers(l, softmax, "axes", &last, 1);
    dp_node *node = dp_low_begin(l, "MultinomialSamples", 1, 1, dp_low_end(l, softmax));
    dp_low_integer(l, node, "num_samples", dp_node_integer(l->node, "sample_size", 1));
    dp_low_integer(l, node, "seed", seed_of(l));
    return dp_low_last(l, node, element);
}
