/*
 * reference.h - a lowered graph computed node by node in double precision.
 */
#ifndef DOPPEL_GRAPH_COMPARE_REFERENCE_H
#define DOPPEL_GRAPH_COMPARE_REFERENCE_H

#include "graph/graph.h"

typedef struct dp_reference dp_reference;

/* Borrows the graph, whose values must all be known and whose nodes have no bodies. */
dp_status dp_reference_new(dp_graph *graph, dp_reference **out_reference);
void dp_reference_free(dp_reference *reference); /* NULL is allowed */

/*
 * Where the contents of an input of the graph go, as double when it is of a floating-point type, otherwise as it is.
 * NULL with a sentence when memory is exhausted.
 */
void *dp_reference_input(dp_reference *reference, const dp_value *input);

/*
 * Computes the node; those before it must have been computed. *out_is_double: in double precision; else in float,
 * because its type has no double. What no later node reads is forgotten at the next call.
 */
dp_status dp_reference_step(dp_reference *reference, dp_node *node, bool *out_is_double);

/* n numbers of a floating-point type as double. */
void dp_reference_widen(double *to, const void *from, int element, size_t n);

/* The computed value: double for floating-point types, otherwise as it is. NULL when it is forgotten. */
const dp_tensor *dp_reference_value(const dp_reference *reference, const dp_value *value);

#endif
