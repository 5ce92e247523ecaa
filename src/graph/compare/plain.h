/*
 * plain.h - windows and products in double precision, as plain as they can be written. They share nothing with floor 5.
 */
#ifndef DOPPEL_GRAPH_COMPARE_PLAIN_H
#define DOPPEL_GRAPH_COMPARE_PLAIN_H

#include "graph/graph.h"

/*
 * Computes the node. Its tensors of floating-point numbers are contiguous arrays of double, whose addresses are in the
 * values' tensors. DP_ERR_UNSUPPORTED, without a sentence: the node's type, or this form of it, is not one of these.
 */
dp_status dp_plain_run(const dp_node *node);

#endif
