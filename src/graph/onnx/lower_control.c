/* Rows of the ONNX operators that have graphs inside. */
#include <string.h>

#include "graph/onnx/lower.h"

static dp_graph *find_body(const dp_node *node, const char *name) {
    for (int i = 0; i < node->n_bodies; i++)
        if (strcmp(node->bodies[i].name, name) == 0)
            return node->bodies[i].graph;
    return NULL;
}

static bool is_true(const dp_value *value) {
    const char *bytes = value->tensor.base;
    for (size_t i = 0; i < dp_value_bytes(value); i++)
        if (bytes[i])
            return true;
    return false;
}

/* The nodes of `from` to where `before` is in its graph. */
static void move_nodes(dp_graph *from, dp_graph *to, dp_node *before) {
    for (dp_node *node = from->first, *next; node; node = next) {
        next = node->next;
        node->graph = to;
        node->previous = before ? before->previous : to->last;
        node->next = before;
        *(node->previous ? &node->previous->next : &to->first) = node;
        *(before ? &before->previous : &to->last) = node;
        to->n_nodes++;
    }
    from->first = from->last = NULL;
    from->n_nodes = 0;
}

/* The branch that the condition chooses takes the node's place. A condition that is not known is asked for. */
dp_status dp_low_branch(dp_lowering *l) {
    if (dp_low_need(l, 1) != DP_OK || !dp_low_want(l, 0))
        return l->status;
    const dp_value *condition = dp_low_in(l, 0);
    if (dp_tensor_count(&condition->tensor) != 1)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "the condition has %lld elements, but must have 1",
                           (long long)dp_tensor_count(&condition->tensor));
    const char *name = is_true(condition) ? "then_branch" : "else_branch";
    dp_graph *branch = find_body(l->node, name);
    if (!branch || branch->n_outputs != l->node->n_outputs)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "%s must be a graph with as many outputs as the node has", name);
    for (int i = 0; i < l->node->n_outputs && l->status == DP_OK; i++) {
        dp_node *node = l->node->outputs[i] ? dp_low_later(l, "Identity", 1, 1, branch->outputs[i]) : NULL;
        if (node)
            dp_node_output(node, 0, l->node->outputs[i]);
    }
    if (l->status == DP_OK)
        move_nodes(branch, l->node->graph, l->node->next);
    return l->status;
}

/* Bodies are run as often as the model says, by the staged runner (staged.h). */
dp_status dp_low_apart(dp_lowering *l) {
    if (l->node->n_bodies != 1)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "there are %d graphs inside, but must be one, the body",
                           l->node->n_bodies);
    l->runs_apart = true;
    return dp_low_fail(l, DP_ERR_UNSUPPORTED, "its body runs as often as is known only when the model runs");
}
