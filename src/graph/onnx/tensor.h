/*
 * tensor.h - constants of an ONNX file.
 */
#ifndef DOPPEL_GRAPH_ONNX_TENSOR_H
#define DOPPEL_GRAPH_ONNX_TENSOR_H

#include "graph/graph.h"
#include "graph/onnx/element.h"
#include "onnx.pb-c.h"

/* The tensor as a constant called `name` (NULL: a made-up name). Files named in it are looked for in `folder`. */
dp_status dp_onnx_constant(dp_model *model, const char *name, const Onnx__TensorProto *tensor, const char *folder,
                           dp_value **out_value);

#endif
