/* Transposes that move only dims of 1 keep the order of the elements: they rename them, which costs nothing. */
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

static bool only_renames(const dp_node *node) {
    const dp_arg *perm = dp_node_is(node, "TransposeD") ? dp_node_attribute(node, "perm") : NULL;
    if (!perm || perm->kind != DP_ARG_INT_LIST || !node->inputs[0] || perm->count != node->inputs[0]->tensor.rank)
        return false;
    int64_t last = -1;
    for (int64_t d = 0; d < perm->count; d++) {
        const int64_t from = perm->as.integers[d];
        if (node->inputs[0]->tensor.dims[from] == 1)
            continue;
        if (from < last)
            return false;
        last = from;
    }
    return true;
}

dp_status dp_pass_rename(dp_graph *graph, int *out_changes) {
    for (dp_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (!only_renames(node))
            continue;
        const dp_tensor *y = &node->outputs[0]->tensor;
        dp_value *shape = dp_value_integers(graph->model, y->dims, y->rank);
        if (!shape || !dp_node_replace(node, "Reshape", (dp_value *[]){node->inputs[0], shape}, 2))
            return DP_ERR_OUT_OF_MEMORY;
        ++*out_changes;
    }
    return DP_OK;
}
