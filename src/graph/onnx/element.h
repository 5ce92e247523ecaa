/*
 * element.h - element types as ONNX counts them.
 */
#ifndef DOPPEL_GRAPH_ONNX_ELEMENT_H
#define DOPPEL_GRAPH_ONNX_ELEMENT_H

/* The element type of a TensorProto.DataType; DP_EL_NONE for those that Doppel does not have. */
int dp_onnx_element(int data_type);

#endif
