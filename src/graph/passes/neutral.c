/*
 * Nodes that change nothing are stepped over (times 1, plus 0); factors and summands that are numbers, one behind the
 * other, become one; shapes around a line-by-line function go.
 */
#include <string.h>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

static bool is_neutral(const dp_node *node, dp_value **out_x) {
    double number;
    return (dp_node_adds(node, out_x, &number) && number == 0) ||
           (dp_node_multiplies(node, out_x, &number) && number == 1);
}

/* Reshape(Softmax over the last dim(Flatten(x))) is the softmax of x when the last dim stays. */
static dp_value *softmax_inside(const dp_node *node) {
    if (!dp_node_is(node, "Reshape"))
        return NULL;
    const dp_node *softmax = node->inputs[0]->producer;
    const dp_node *flat = dp_node_is(softmax, "SoftmaxV2") && softmax->inputs[0] ? softmax->inputs[0]->producer : NULL;
    if (!dp_node_is(flat, "Flatten") && !dp_node_is(flat, "Reshape"))
        return NULL;
    dp_value *x = flat->inputs[0];
    const dp_arg *axes = dp_node_attribute(softmax, "axes");
    const dp_tensor *in = &x->tensor, *middle = &softmax->inputs[0]->tensor;
    bool is_last = axes && axes->count == 1 && (axes->as.integers[0] == -1 || axes->as.integers[0] == middle->rank - 1);
    return is_last && in->rank > 0 && middle->rank > 0 && in->dims[in->rank - 1] == middle->dims[middle->rank - 1] &&
                   dp_value_same_shape(x, node->outputs[0])
               ? x
               : NULL;
}

dp_status dp_pass_neutral(dp_graph *graph, int *out_changes) {
    for (dp_node *node = graph->first, *next; node; node = next) {
        dp_value *x;
        next = node->next;
        if (is_neutral(node, &x) && !dp_graph_gives(graph, node->outputs[0])) {
            dp_graph_replace(graph, node->outputs[0], x);
            dp_node_remove(node);
            ++*out_changes;
        } else if ((x = softmax_inside(node))) {
            dp_node *made = dp_node_replace(node, "SoftmaxV2", &x, 1);
            if (!made || dp_node_set_integers(made, "axes", &(int64_t){-1}, 1) != DP_OK)
                return DP_ERR_OUT_OF_MEMORY;
            ++*out_changes;
        }
    }
    return DP_OK;
}
