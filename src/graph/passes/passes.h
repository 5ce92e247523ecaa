/*
 * passes.h - what is done to a lowered graph before it is written or run, in this order.
 */
#ifndef DOPPEL_GRAPH_PASSES_PASSES_H
#define DOPPEL_GRAPH_PASSES_PASSES_H

#include "graph/graph.h"

typedef struct dp_pass {
    const char *name, *purpose;
    /* Changes the graph and says how many changes it made. */
    dp_status (*run)(dp_graph *graph, int *out_changes);
} dp_pass;

extern const dp_pass dp_passes[];
extern const unsigned dp_passes_count;

/* All passes; with a file, the graph is printed after each that changed something. */
dp_status dp_passes_run(dp_graph *graph, FILE *print);

dp_status dp_pass_identity(dp_graph *graph, int *out_changes);
dp_status dp_pass_neutral(dp_graph *graph, int *out_changes);
dp_status dp_pass_activation(dp_graph *graph, int *out_changes);
dp_status dp_pass_norm(dp_graph *graph, int *out_changes);
dp_status dp_pass_attention(dp_graph *graph, int *out_changes);
dp_status dp_pass_rename(dp_graph *graph, int *out_changes);
dp_status dp_pass_chain(dp_graph *graph, int *out_changes);
dp_status dp_pass_layout(dp_graph *graph, int *out_changes);
dp_status dp_pass_products(dp_graph *graph, int *out_changes);
dp_status dp_pass_epilogue(dp_graph *graph, int *out_changes);
dp_status dp_pass_scale(dp_graph *graph, int *out_changes);
dp_status dp_pass_ends(dp_graph *graph, int *out_changes);
dp_status dp_pass_lift(dp_graph *graph, int *out_changes);
dp_status dp_pass_quantise(dp_graph *graph, int *out_changes);
dp_status dp_pass_precision(dp_graph *graph, int *out_changes);
dp_status dp_pass_same(dp_graph *graph, int *out_changes);
dp_status dp_pass_dead(dp_graph *graph, int *out_changes);
dp_status dp_pass_outputs(dp_graph *graph, int *out_changes);

#endif
