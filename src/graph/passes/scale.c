/*
 * Factors and summands per channel behind a convolution go into its weights and its bias: batch norms of a model that
 * only infers vanish.
 */
#include <string.h>

#include "graph/passes/passes.h"

static bool is_type(const dp_node *node, const char *type) {
    return node && strcmp(node->type, type) == 0;
}

static bool is_weight(const dp_value *value) {
    return value && value->is_constant && value->tensor.element == DP_F32;
}

/* Numbers of a constant: one for all channels, or one for each, which is dim 1 of the results' `rank`. */
static bool is_per_channel(const dp_value *value, int rank, int64_t channels) {
    if (!is_weight(value) || value->tensor.rank > rank)
        return false;
    const dp_tensor *t = &value->tensor;
    for (int d = 0; d < t->rank; d++) {
        int of_result = rank - t->rank + d;
        if (t->dims[d] != 1 && (of_result != 1 || t->dims[d] != channels))
            return false;
    }
    return true;
}
static float number_of(const dp_value *value, int64_t channel) {
    return ((const float *)value->tensor.base)[dp_tensor_count(&value->tensor) == 1 ? 0 : channel];
}

/* Output channels of a transposed convolution with groups do not lie in one dim of its filter. */
static bool takes_factors(const dp_node *node) {
    return is_type(node, "Conv2D") || dp_node_integer(node, "groups", 1) == 1;
}

/* The convolution that only `node` reads, with constant weights; *out_other is the node's constant operand. */
static dp_node *convolution_before(const dp_node *node, const dp_value **out_other) {
    for (int i = 0; i < 2; i++) {
        dp_value *x = node->inputs[i];
        dp_node *conv = x && x->mark == 1 ? x->producer : NULL;
        if (!is_type(conv, "Conv2D") && !is_type(conv, "Conv2DTransposeD"))
            continue;
        const dp_value *bias = conv->n_inputs > 2 ? conv->inputs[2] : NULL;
        if (conv->n_inputs < 3 || !is_weight(conv->inputs[1]) || (bias && !is_weight(bias)))
            continue;
        if (memcmp(x->tensor.dims, node->outputs[0]->tensor.dims, sizeof x->tensor.dims[0] * (size_t)x->tensor.rank) !=
            0)
            continue;
        *out_other = node->inputs[1 - i];
        return conv;
    }
    return NULL;
}

/* A copy of the bias, zeros if there is none. */
static dp_value *own_bias(dp_node *conv, int64_t channels) {
    const dp_value *bias = conv->inputs[2];
    return dp_value_constant(conv->graph->model, NULL, DP_F32, &channels, 1, bias ? bias->tensor.base : NULL);
}

static dp_status multiply(dp_node *conv, const dp_value *factors, int64_t channels) {
    const dp_tensor *t = &conv->inputs[1]->tensor;
    dp_value *filter = dp_value_constant(conv->graph->model, NULL, DP_F32, t->dims, t->rank, t->base);
    dp_value *bias = conv->inputs[2] ? own_bias(conv, channels) : NULL;
    if (!filter || (conv->inputs[2] && !bias))
        return DP_ERR_OUT_OF_MEMORY;
    /* [out, ...] of a convolution, [in, out, ...] of a transposed one */
    int64_t outer = is_type(conv, "Conv2D") ? 1 : t->dims[0], each = dp_tensor_count(t) / channels / outer;
    float *weights = filter->tensor.base;
    for (int64_t i = 0; i < outer * channels; i++)
        for (int64_t k = 0; k < each; k++)
            weights[i * each + k] *= number_of(factors, i % channels);
    for (int64_t c = 0; c < channels && bias; c++)
        ((float *)bias->tensor.base)[c] *= number_of(factors, c);
    conv->inputs[1] = filter;
    conv->inputs[2] = bias;
    return DP_OK;
}

static dp_status add(dp_node *conv, const dp_value *summands, int64_t channels) {
    dp_value *bias = own_bias(conv, channels);
    if (!bias)
        return DP_ERR_OUT_OF_MEMORY;
    for (int64_t c = 0; c < channels; c++)
        ((float *)bias->tensor.base)[c] += number_of(summands, c);
    conv->inputs[2] = bias;
    return DP_OK;
}

dp_status dp_pass_scale(dp_graph *graph, int *out_changes) {
    dp_graph_count_uses(graph);
    for (dp_node *node = graph->first, *next; node; node = next) {
        const dp_value *other = NULL;
        next = node->next;
        bool times = is_type(node, "Mul"), plus = is_type(node, "Add");
        dp_node *conv = times || plus ? convolution_before(node, &other) : NULL;
        if (!conv || (times && !takes_factors(conv)))
            continue;
        dp_value *y = conv->outputs[0], *result = node->outputs[0];
        int64_t channels = y->tensor.dims[1];
        if (channels == 0 || !is_per_channel(other, y->tensor.rank, channels))
            continue;
        dp_status status = times ? multiply(conv, other, channels) : add(conv, other, channels);
        if (status != DP_OK)
            return status;
        dp_node_remove(node);
        dp_node_output(conv, 0, result);
        ++*out_changes;
    }
    return DP_OK;
}
