/*
 * clone.h - nodes of one model copied into another, which borrows constants' contents, names and attributes: the first
 * must stay as long.
 */
#ifndef DOPPEL_GRAPH_CLONE_H
#define DOPPEL_GRAPH_CLONE_H

#include "graph/graph.h"

typedef struct dp_cloner {
    dp_model *to;
    dp_value **copies; /* by mark - 1 of the original */
    uint32_t n, room;
    dp_status status; /* the first failure */
} dp_cloner;

/* Clears the marks of the values of `from` and of graphs inside it: nothing else may use them until dp_clone_end. */
void dp_clone_begin(dp_cloner *c, dp_graph *from, dp_model *to);
/* From now on `copy` stands for `original`. */
void dp_clone_bind(dp_cloner *c, dp_value *original, dp_value *copy);
/* Copies nodes and outputs to the end of `to`; what nodes read must be made before, bound, or constant. */
dp_status dp_clone_graph(dp_cloner *c, const dp_graph *from, dp_graph *to);
void dp_clone_end(dp_cloner *c);

/* The lists that a visit of every value comes by: inputs, outputs, what nodes read and make, in the graph and inside
 * it. */
void dp_graph_visit(dp_graph *graph, void (*visit)(dp_value *value, void *data), void *data);

#endif
