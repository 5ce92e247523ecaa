/*
 * infer.h - what is known of a node before the model runs.
 */
#ifndef DOPPEL_GRAPH_INFER_H
#define DOPPEL_GRAPH_INFER_H

#include "graph/graph.h"

/* The node's plan, by its type's row in src/ops/aclop.tsv. All its values must be known; constants are read. */
dp_status dp_node_prepare(const dp_node *node, dp_plan **out_plan);

/*
 * Prepares the node's plan, runs it once with work space of its own, and frees both. All its values must be known and have
 * memory.
 */
dp_status dp_node_run(const dp_node *node);

/* Sets the shapes of the outputs. Their element types must be set, the inputs known. */
dp_status dp_node_infer(dp_node *node);

/* Whether the dims of its outputs are the most that they can be, and a run finds those that they have. */
bool dp_node_finds_dims(const dp_node *node);
/* Whether the plan reads the contents of input `index`: it must be a constant then. */
bool dp_node_reads(const dp_node *node, int index);

/*
 * Runs the node if all its inputs are constants and its outputs are not much larger than they: the outputs become
 * constants and the node leaves the graph (*out_folded).
 */
dp_status dp_node_fold(dp_node *node, bool *out_folded);

#endif
