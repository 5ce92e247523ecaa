#include <string.h>

#include "graph/passes/passes.h"

/* A shape-changing node whose result has the input's shape, or an Identity. */
static bool hands_on(const dp_node *node) {
    static const char *const types[] = {"Identity", "Reshape", "BroadcastTo", "Cast", "Squeeze", "Unsqueeze", "Flatten"};
    bool listed = false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        listed |= strcmp(node->type, types[i]) == 0;
    if (!listed || !node->inputs[0] || !node->outputs[0])
        return false;
    const dp_tensor *in = &node->inputs[0]->tensor, *out = &node->outputs[0]->tensor;
    return in->element == out->element && in->rank == out->rank &&
           memcmp(in->dims, out->dims, (size_t)in->rank * sizeof in->dims[0]) == 0;
}

/* An output of the graph keeps its name: its node stays unless it can be renamed by dp_pass_outputs. */
static bool is_output(const dp_graph *graph, const dp_value *value) {
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == value)
            return true;
    return false;
}

dp_status dp_pass_identity(dp_graph *graph, int *out_changes) {
    for (dp_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (!hands_on(node) || is_output(graph, node->outputs[0]))
            continue;
        dp_graph_replace(graph, node->outputs[0], node->inputs[0]);
        dp_node_remove(node);
        ++*out_changes;
    }
    return DP_OK;
}
