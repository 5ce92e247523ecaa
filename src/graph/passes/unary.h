/*
 * unary.h - nodes that together compute one number from one number, like the six of a hard swish written out.
 */
#ifndef DOPPEL_GRAPH_PASSES_UNARY_H
#define DOPPEL_GRAPH_PASSES_UNARY_H

#include "graph/graph.h"

enum { DP_UNARY_NODES = 24 };

typedef struct dp_unary {
    dp_value *from, *to;
    dp_node *nodes[DP_UNARY_NODES]; /* in the order of the graph */
    int n_nodes;
} dp_unary;

/*
 * The longest such run that begins at `from` and hands on nothing but its last result; values are marked with numbers
 * from 1 on, and uses[mark - 1] counts readers. No nodes: there is none.
 */
void dp_unary_find(const dp_graph *graph, dp_value *from, const uint32_t *uses, dp_unary *out);

/* The function at n places, by the operators themselves. Borrows x; writes y. */
dp_status dp_unary_evaluate(const dp_unary *unary, const float *x, float *y, int n);

#endif
