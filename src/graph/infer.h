/*
 * infer.h - what is known of a node before the model runs.
 */
#ifndef DOPPEL_GRAPH_INFER_H
#define DOPPEL_GRAPH_INFER_H

#include "graph/graph.h"

/* The node's plan, by its type's row in src/ops/aclop.tsv. All its values must be known; constants are read. */
dp_status dp_node_prepare(const dp_node *node, dp_plan **out_plan);

/* Sets the shapes of the outputs. Their element types must be set, the inputs known. */
dp_status dp_node_infer(dp_node *node);

/*
 * Runs the node if all its inputs are constants and its outputs are not much larger than they: the outputs become
 * constants and the node leaves the graph (*out_folded).
 */
dp_status dp_node_fold(dp_node *node, bool *out_folded);

#endif
