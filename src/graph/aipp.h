/*
 * aipp.h - AIPP as a node in front of an input: the input becomes the bytes of pictures.
 */
#ifndef DOPPEL_GRAPH_AIPP_H
#define DOPPEL_GRAPH_AIPP_H

#include "graph/graph.h"
#include "media/aipp.h"

#define DP_AIPP_TYPE "Aipp"
#define DP_AIPP_DATA                                                                                                   \
    "ascend_dynamic_aipp_data" /* name of the first dynamic one's settings; others have _2, _3, ... behind it */

/*
 * A node for each op. The input keeps its name and becomes uint8: N pictures without gaps, as N x rows x columns x
 * bytes - [N, 3H/2, W, 1] for YUV420SP, [N, H, W, 3] for RGB -, or max_src_image_size bytes for a dynamic one, which
 * gets an input of its own for the settings. Inputs must be float or half, N C H W, or N H W C with channels_last. Call
 * it when the passes have run.
 */
dp_status dp_graph_insert_aipp(dp_graph *graph, const dp_aipp_op *ops, int n, bool channels_last);

/* The node's plan. */
dp_status dp_aipp_prepare(const dp_node *node, dp_plan **out_plan);

/* The AIPP node that reads this input first, or has it for its settings; NULL: none. */
const dp_node *dp_graph_aipp(const dp_graph *graph, const dp_value *input);
/* Of a static one. */
dp_status dp_node_aipp(const dp_node *node, dp_aipp *out_aipp, dp_aipp_target *out_target);

/* The settings of a dynamic one as they stand in its input: for each picture of a batch. */
size_t dp_aipp_data_bytes(uint64_t batch);
void dp_aipp_data_write(const dp_aipp *each, uint64_t batch, void *out);

#endif
