/*
 * retype.h - values of one floating type become another, node by node, with Casts where both meet.
 */
#ifndef DOPPEL_GRAPH_PASSES_RETYPE_H
#define DOPPEL_GRAPH_PASSES_RETYPE_H

#include "graph/graph.h"

typedef enum dp_retype_choice {
    DP_RETYPE_NOTHING, /* the node keeps its type */
    DP_RETYPE_NODE,    /* it takes the new one if its plan can be made so */
    DP_RETYPE_FACTORS, /* its first two inputs are rounded to the new type, and computed with in the old one */
} dp_retype_choice;

typedef struct dp_retype {
    int from, to; /* DP_F32, DP_F16, DP_BF16; one of them is DP_F32 */
    /* What becomes of a node. follows: an input that is no constant has the new type already. */
    dp_retype_choice (*choose)(const struct dp_retype *how, const dp_node *node, bool follows);
    int mode; /* for choose */
} dp_retype;

/*
 * One walk in the order of the nodes; marks are overwritten. Inputs and outputs of the graph, and what bodies of
 * control flow read, stay as they were. Constants are converted. Values that are retyped keep their names.
 */
dp_status dp_retype_graph(dp_graph *graph, const dp_retype *how, int *out_changes);

/* Convolutions and matrix products. */
bool dp_node_is_product(const dp_node *node);

#endif
