/*
 * onnx.h - models in the ONNX format.
 */
#ifndef DOPPEL_GRAPH_ONNX_ONNX_H
#define DOPPEL_GRAPH_ONNX_ONNX_H

#include "graph/graph.h"

/* Range of versions of the default operator set that is understood. */
enum { DP_ONNX_OPSET_MIN = 1, DP_ONNX_OPSET_MAX = 21 };

/*
 * Reads a model as it stands in the file: nodes have ONNX operator types, weights are constants, Constant nodes too.
 * Files with weights are looked for in `folder` (NULL: such a model is refused). *out_opset is the version of the
 * default operator set. The caller frees the model. DP_ERR_ARGUMENT: the bytes are no model, or a damaged one;
 * DP_ERR_UNSUPPORTED; DP_ERR_IO: weights could not be read.
 */
dp_status dp_onnx_read(const void *bytes, size_t size_bytes, const char *folder, int *out_opset,
                       dp_model **out_model);

#endif
