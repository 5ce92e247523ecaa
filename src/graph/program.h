/*
 * program.h - a graph of known shapes, ready to run: a plan per node and a place for every value.
 *
 * Values that are alive at different times share memory. A program may run on one thread at a time; it can use the pool.
 */
#ifndef DOPPEL_GRAPH_PROGRAM_H
#define DOPPEL_GRAPH_PROGRAM_H

#include "graph/graph.h"

typedef struct dp_program dp_program;

/* Borrows the graph and its constants. DP_ERR_UNSUPPORTED when something of a value is not known. */
dp_status dp_program_new(dp_graph *graph, dp_program **out_program);
void dp_program_free(dp_program *program); /* NULL is allowed */

/* Bytes of memory that a run needs beside inputs, outputs and constants; 64-byte aligned memory. */
size_t dp_program_work_bytes(const dp_program *program);

/* inputs and outputs by their place in the graph: contiguous, as large as the graph's values. */
dp_status dp_program_run(dp_program *program, void *const *inputs, void *const *outputs, void *work);

/* The dims that the last run has found for output `index`, in *view; false: they are those of the graph. */
bool dp_program_found(const dp_program *program, int index, dp_tensor *out_view);

#endif
