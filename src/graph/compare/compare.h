/*
 * compare.h - a compiled model against the file it was made from, node by node, in double precision.
 */
#ifndef DOPPEL_GRAPH_COMPARE_COMPARE_H
#define DOPPEL_GRAPH_COMPARE_COMPARE_H

#include "doppel/compare.h"
#include "graph/graph.h"
#include "graph/model_file.h"

/*
 * onnx: the bytes of the file; folder: where it is. inputs: contents of the compiled model's inputs, by place, as it
 * takes them, and options->dims their shapes: of a list of sizes that chooses the one, and a model that is lowered
 * while it runs is lowered for them (DP_ERR_UNSUPPORTED when it also depends on data, or loops). Calls row for every
 * value that both have, in the order in which they are computed, and progress (may be NULL) for every node.
 */
dp_status dp_compare(const void *onnx, size_t onnx_bytes, const char *folder, dp_model_file *file,
                     const void *const *inputs, const dp_compare_options *options, dp_compare_totals *out_totals);

#endif
