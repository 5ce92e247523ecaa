/*
 * depth.h - how deep graphs are nested in an ONNX file. protobuf-c parses nested messages by recursion without a limit, so
 * this is looked at first.
 */
#ifndef DOPPEL_GRAPH_ONNX_DEPTH_H
#define DOPPEL_GRAPH_ONNX_DEPTH_H

#include <stdbool.h>
#include <stddef.h>

enum { DP_ONNX_DEPTH_MAX = 32 };

/* Whether no graph of the model is nested more than DP_ONNX_DEPTH_MAX deep. Malformed bytes end the walk: the parser
 * will refuse them. */
bool dp_onnx_depth_is_fine(const void *bytes, size_t size_bytes);

#endif
