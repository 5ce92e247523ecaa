#include "graph/passes/passes.h"

/* A copy at the end for outputs that are constants, inputs, or the same value as another output. */
dp_status dp_pass_outputs(dp_graph *graph, int *out_changes) {
    for (int i = 0; i < graph->n_outputs; i++) {
        dp_value *value = graph->outputs[i];
        bool again = !value->producer || value->producer->graph != graph;
        for (int k = 0; k < i; k++)
            again |= graph->outputs[k] == value;
        if (!again)
            continue;
        dp_node *node = dp_node_new(graph, NULL, "Identity", value->name, 1, 1);
        dp_value *copy = dp_value_new(graph->model, value->name);
        if (!node || !copy)
            return DP_ERR_OUT_OF_MEMORY;
        dp_value_shape(copy, value->tensor.element, value->tensor.dims, value->tensor.rank);
        node->inputs[0] = value;
        dp_node_output(node, 0, copy);
        graph->outputs[i] = copy;
        ++*out_changes;
    }
    return DP_OK;
}
