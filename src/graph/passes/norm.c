/* Layer normalisation over the last dim that a model spells out: mean, difference, mean of squares, root, quotient,
 * factor, summand. */
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

static const char *const patterns[] = {
    "(Add (Mul (Div (Sub x (ReduceMeanD x)) (Sqrt (Add (ReduceMeanD (Square (Sub x (ReduceMeanD x)))) $0))) g) b)",
    "(Add (Mul (Mul (Sub x (ReduceMeanD x)) (Rsqrt (Add (ReduceMeanD (Square (Sub x (ReduceMeanD x)))) $0))) g) b)",
    ("(Add (Mul (Div (Sub x (ReduceMeanD x)) (Sqrt (Add (ReduceMeanD (Mul (Sub x (ReduceMeanD x)) (Sub x (ReduceMeanD "
     "x)))) $0))) g) b)"),
};

static bool is_over_last(const dp_node *mean) {
    const dp_arg *axes = dp_node_attribute(mean, "axes");
    int rank = mean->inputs[0]->tensor.rank;
    return axes && axes->kind == DP_ARG_INT_LIST && axes->count == 1 &&
           (axes->as.integers[0] == -1 || axes->as.integers[0] == rank - 1) && dp_node_integer(mean, "keep_dims", 0);
}

/* A constant with one number per element of the last dim. */
static bool is_line(const dp_value *value, int64_t count) {
    return value->is_constant && value->tensor.element == DP_F32 && value->tensor.rank == 1 &&
           value->tensor.dims[0] == count;
}

static bool finds(dp_node *node, dp_match *m) {
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (!dp_match_node(patterns[i], node, m))
            continue;
        const dp_value *x = dp_match_value(m, 'x');
        bool fits = dp_value_same_shape(x, node->outputs[0]) && x->tensor.rank > 0;
        for (int k = 0; k < m->n_reduced && fits; k++)
            fits = is_over_last(m->reduced[k]);
        int64_t count = fits ? x->tensor.dims[x->tensor.rank - 1] : 0;
        if (fits && is_line(dp_match_value(m, 'g'), count) && is_line(dp_match_value(m, 'b'), count))
            return true;
    }
    return false;
}

dp_status dp_pass_norm(dp_graph *graph, int *out_changes) {
    dp_match m;
    for (dp_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (!dp_node_is(node, "Add") || !finds(node, &m))
            continue;
        dp_value *inputs[] = {dp_match_value(&m, 'x'), dp_match_value(&m, 'g'), dp_match_value(&m, 'b')};
        dp_node *made = dp_node_replace(node, "LayerNormV3", inputs, 3);
        dp_status status =
            made ? dp_node_set_integer(made, "begin_norm_axis", inputs[0]->tensor.rank - 1) : DP_ERR_OUT_OF_MEMORY;
        if (status == DP_OK)
            status = dp_node_set_real(made, "epsilon", m.numbers[0]);
        if (status != DP_OK)
            return status;
        ++*out_changes;
    }
    return DP_OK;
}
