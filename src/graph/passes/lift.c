/*
 * Models that are stored in half or bfloat16 and have convolutions or products are computed in float, unless
 * --precision_mode asks for a low type. Products add up in float in any case, and panels, layouts and fusions are for
 * floats. Inputs and outputs of the graph keep their types; every value is at least as exact as it was.
 */
#include "graph/passes/match.h"
#include "graph/passes/passes.h"
#include "graph/passes/retype.h"
#include "graph/precision.h"

/* What only picks from constants stays: a table of embeddings need not be converted for the rows that are read. */
static dp_retype_choice choose(const dp_retype *how, const dp_node *node, bool follows) {
    bool lifts = follows || dp_node_is_product(node) || dp_node_is(node, "Cast");
    for (int i = 0; i < node->n_inputs && !lifts; i++) {
        const dp_value *value = node->inputs[i];
        lifts = value && !value->is_constant && value->tensor.element == how->from;
    }
    return lifts ? DP_RETYPE_NODE : DP_RETYPE_NOTHING;
}

static bool has_product(const dp_graph *graph, int element) {
    for (const dp_node *node = graph->first; node; node = node->next)
        if (dp_node_is_product(node) && node->outputs[0]->tensor.element == element)
            return true;
    return false;
}

dp_status dp_pass_lift(dp_graph *graph, int *out_changes) {
    static const int low[] = {DP_F16, DP_BF16};
    const dp_precision *wanted = graph->model->precision;
    if (graph->outer || (wanted && wanted->mode != DP_PRECISION_ORIGIN && wanted->mode != DP_PRECISION_MATRIX_INPUTS))
        return DP_OK;
    dp_status status = DP_OK;
    for (int i = 0; i < 2 && status == DP_OK; i++) {
        dp_retype how = {.from = low[i], .to = DP_F32, .choose = choose};
        if (has_product(graph, low[i]))
            status = dp_retype_graph(graph, &how, out_changes);
    }
    return status;
}
