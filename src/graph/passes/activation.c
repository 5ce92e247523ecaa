/* Activation functions that a model spells out in elementary steps become one node. */
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

typedef struct rule {
    const char *pattern, *type;
    const char *reals[2]; /* attributes that get $0 and $1 */
    double fixed[2];      /* their values where the pattern has no such number */
} rule;

/* In this order over the whole graph: later rules see the nodes that earlier ones made. */
static const rule rules[] = {
    {"(Clip (Add (Mul x $0) $1) 0 1)", "HardSigmoid", {"alpha", "beta"}, {0, 0}},
    {"(Mul (Clip (Add x 3) 0 6) 0.16666667)", "HardSigmoid", {"alpha", "beta"}, {1.0 / 6, 0.5}},
    {"(Mul (Mul x (Clip (Add x 3) 0 6)) 0.16666667)", "HardSwish", {NULL}, {0, 0}},
    {"(Mul (Mul x 0.16666667) (Clip (Add x 3) 0 6))", "HardSwish", {NULL}, {0, 0}},
    {"(Mul x (HardSigmoid x 0.16666667 0.5))", "HardSwish", {NULL}, {0, 0}},
    {"(Mul x (Sigmoid x))", "Swish", {NULL}, {0, 0}},
    {"(Mul (Mul x (Add (Erf (Mul x 0.70710678)) 1)) 0.5)", "GeluV2", {NULL}, {0, 0}},
    {"(Mul (Mul x 0.5) (Add (Erf (Mul x 0.70710678)) 1))", "GeluV2", {NULL}, {0, 0}},
    {"(Mul x (Mul (Add (Erf (Mul x 0.70710678)) 1) 0.5))", "GeluV2", {NULL}, {0, 0}},
    {"(Pow x 2)", "Square", {NULL}, {0, 0}},
};

static dp_status apply(const rule *r, dp_node *node, const dp_match *m) {
    dp_value *x = dp_match_value(m, 'x');
    dp_node *made = dp_node_replace(node, r->type, &x, 1);
    if (!made)
        return DP_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < 2 && r->reals[i]; i++) {
        dp_status status = dp_node_set_real(made, r->reals[i], m->known[i] ? m->numbers[i] : r->fixed[i]);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

dp_status dp_pass_activation(dp_graph *graph, int *out_changes) {
    dp_match m;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        for (dp_node *node = graph->first, *next; node; node = next) {
            next = node->next;
            if (!dp_match_node(rules[i].pattern, node, &m) ||
                !dp_value_same_shape(dp_match_value(&m, 'x'), node->outputs[0]))
                continue;
            dp_status status = apply(&rules[i], node, &m);
            if (status != DP_OK)
                return status;
            ++*out_changes;
        }
    }
    return DP_OK;
}
