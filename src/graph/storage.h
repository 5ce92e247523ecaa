/*
 * storage.h - which values of a program share memory at the same time: renamed elements, parts of a concatenation that
 * are written where they belong, and results that take the place of an operand nobody reads any more.
 */
#ifndef DOPPEL_GRAPH_STORAGE_H
#define DOPPEL_GRAPH_STORAGE_H

#include "graph/graph.h"
#include "graph/place.h"

/*
 * While a program is made, the address of a value that is no constant is its number + 1, so that a plan's tensors tell
 * whose they are.
 */
static inline uint32_t dp_value_number(const dp_value *value) {
    return (uint32_t)(uintptr_t)value->tensor.base - 1;
}

typedef struct dp_storage {
    uint32_t n_values;
    uint32_t *root; /* by value: whose memory it lies in, often its own */
    dp_span *spans; /* by value: of roots, the steps in which their memory is needed; bytes 0: not in work memory */
    bool *is_work;  /* by value, set by the caller: it neither comes in nor goes out */
    bool *is_part;  /* by value: it is written as a part of its root, by the strides and offset of its tensor */
} dp_storage;

/* Nodes that only rename their input's elements. */
bool dp_node_is_alias(const dp_node *node);

/* Fills root, spans and is_part. Steps are nodes by their place in the graph. */
void dp_storage_find(dp_storage *storage, const dp_graph *graph);

#endif
