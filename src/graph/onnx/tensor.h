/*
 * tensor.h - constants of an ONNX file.
 */
#ifndef DOPPEL_GRAPH_ONNX_TENSOR_H
#define DOPPEL_GRAPH_ONNX_TENSOR_H

#include "graph/graph.h"
#include "onnx.pb-c.h"

/* The element type of a TensorProto.DataType; DP_EL_NONE for those that Doppel does not have. */
int dp_onnx_element(int data_type);

/* The tensor as a constant called `name` (NULL: a made-up name). Files named in it are looked for in `folder`. */
dp_status dp_onnx_constant(dp_model *model, const char *name, const Onnx__TensorProto *tensor, const char *folder,
                           dp_value **out_value);

#endif
