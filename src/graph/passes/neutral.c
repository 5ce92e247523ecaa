/*
 * Nodes that change nothing are stepped over (times 1, plus 0);
 * x + x * s is x * (s + 1) where s is small; shapes around a line-by-line function go.
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

/* x + x * s with an s of fewer elements is x * (s + 1). */
static dp_status gate(dp_node *node, bool *out_done) {
    dp_match m;
    if (!dp_node_is(node, "Add") || !dp_match_node("(Add x (Mul x s))", node, &m))
        return DP_OK;
    dp_value *x = dp_match_value(&m, 'x'), *s = dp_match_value(&m, 's'), *more;
    if (s->is_constant || dp_tensor_count(&s->tensor) >= dp_tensor_count(&x->tensor) ||
        !dp_value_same_shape(x, node->outputs[0]))
        return DP_OK;
    dp_node *add = dp_node_new(node->graph, node, "Adds", s->name, 1, 1);
    if (!add || !(more = dp_value_new(node->graph->model, NULL)))
        return DP_ERR_OUT_OF_MEMORY;
    add->inputs[0] = s;
    dp_value_shape(more, DP_F32, s->tensor.dims, s->tensor.rank);
    dp_node_output(add, 0, more);
    *out_done = true;
    dp_status status = dp_node_set_real(add, "value", 1);
    dp_node *made = dp_node_replace(node, "Mul", (dp_value *[]){x, more}, 2);
    return made ? status : DP_ERR_OUT_OF_MEMORY;
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
        } else {
            bool done = false;
            dp_status status = gate(node, &done);
            if (status != DP_OK)
                return status;
            *out_changes += done;
        }
    }
    return DP_OK;
}
