/* Floats become half or bfloat16 where --precision_mode asks for it and the operator has the type (retype.c). */
#include "graph/precision.h"

#include <string.h>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"
#include "graph/passes/retype.h"

/* Sums over many elements, and functions that magnify small differences. */
static bool is_delicate(const char *type) {
    static const char *const names[] = {
        "SoftmaxV2", "LogSoftmaxV2", "LayerNormV3", "LayerNorm",  "BatchNorm", "InstanceNorm", "GroupNorm",
        "Exp",       "Expm1",        "Log",         "Log1p",      "Pow",       "SoftplusV2",   "Erf",
        "Erfc",      "Rsqrt",        "Sqrt",        "Reciprocal", "Cumsum",    "CumsumD",      "Mish"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(type, names[i]) == 0)
            return true;
    return strncmp(type, "Reduce", 6) == 0;
}

static dp_retype_choice choose(const dp_retype *how, const dp_node *node, bool follows) {
    bool is_product = dp_node_is_product(node);
    switch ((dp_precision_mode)how->mode) {
    case DP_PRECISION_LOW:
        return DP_RETYPE_NODE;
    case DP_PRECISION_MIXED:
        return is_product || (!is_delicate(node->type) && follows) ? DP_RETYPE_NODE : DP_RETYPE_NOTHING;
    case DP_PRECISION_MATRIX:
        return is_product ? DP_RETYPE_NODE : DP_RETYPE_NOTHING;
    case DP_PRECISION_MATRIX_INPUTS:
        return is_product ? DP_RETYPE_FACTORS : DP_RETYPE_NOTHING;
    default:
        return DP_RETYPE_NOTHING;
    }
}

dp_status dp_pass_precision(dp_graph *graph, int *out_changes) {
    const dp_precision *wanted = graph->model->precision;
    if (!wanted || wanted->mode == DP_PRECISION_ORIGIN || graph->outer)
        return DP_OK;
    dp_retype how = {.from = DP_F32, .to = wanted->low, .choose = choose, .mode = (int)wanted->mode};
    return dp_retype_graph(graph, &how, out_changes);
}
