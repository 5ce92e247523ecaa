/*
 * staged.h - a model that is lowered while it runs, as far as shapes and values are known: input shapes chosen at run
 * time, shapes that depend on data, If, Loop and Scan.
 *
 * A stage is a program for the nodes that could be lowered, and what must be known to go on: dims that it finds,
 * contents of a few values, or the results of a Loop. What follows is lowered once per such knowledge and kept; when
 * there are too many stages, or they hold too much memory (weights folded for a shape are kept with it), the ones
 * unused for longest are given up. One thread at a time.
 */
#ifndef DOPPEL_GRAPH_STAGED_H
#define DOPPEL_GRAPH_STAGED_H

#include "graph/graph.h"

typedef struct dp_staged dp_staged;

enum { DP_STAGES_MAX = 128, DP_STAGES_BYTES = 512 << 20 };

/* `source` is as dp_onnx_read makes it; it is borrowed and must not be used by others. DP_ERR_UNSUPPORTED as
 * dp_onnx_check. */
dp_status dp_staged_new(dp_graph *source, int opset, dp_staged **out_staged);
void dp_staged_free(dp_staged *staged); /* NULL is allowed */

/*
 * Gives the memory of output `index`, whose element and dims are set: sets tensor->base, 64-byte aligned, large enough.
 * Called once per output, before the last nodes run.
 */
typedef dp_status dp_room(void *data, int index, dp_tensor *tensor);

/* Inputs: contiguous tensors of known shapes, in the order of source->inputs. */
dp_status dp_staged_run(dp_staged *staged, const dp_tensor *inputs, dp_room *room, void *data);

/*
 * The graph that a run with inputs of these shapes comes to, lowered and made if need be; it stays the staged model's
 * and its outputs may be exchanged while nothing runs. DP_ERR_UNSUPPORTED when what follows depends on more than the
 * shapes.
 */
dp_status dp_staged_graph(dp_staged *staged, const dp_tensor *inputs, dp_graph **out_graph);

/* Stages that are kept now: for tests. */
int dp_staged_count(const dp_staged *staged);
size_t dp_staged_bytes(const dp_staged *staged);

#endif
