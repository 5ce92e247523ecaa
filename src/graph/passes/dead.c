#include "graph/passes/passes.h"

/* Back to front, so that one walk is enough. */
dp_status dp_pass_dead(dp_graph *graph, int *out_changes) {
    dp_graph_count_uses(graph);
    for (dp_node *node = graph->last, *previous; node; node = previous) {
        bool used = node->n_bodies > 0;
        previous = node->previous;
        for (int i = 0; i < node->n_outputs; i++)
            used |= node->outputs[i] && node->outputs[i]->mark > 0;
        if (used)
            continue;
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i])
                node->inputs[i]->mark--;
        dp_node_remove(node);
        ++*out_changes;
    }
    return DP_OK;
}
