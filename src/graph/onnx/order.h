/*
 * order.h - an order of a graph's nodes in which every one comes behind those that it reads from.
 */
#ifndef DOPPEL_GRAPH_ONNX_ORDER_H
#define DOPPEL_GRAPH_ONNX_ORDER_H

#include "base/status.h"
#include "onnx.pb-c.h"

/*
 * Numbers of the nodes, for dp_free; NULL and DP_OK for a graph without nodes. ONNX wants files to be in such an order,
 * and exporters break it. What is in order stays as it is; nodes of a circle keep some order, and reading them fails.
 */
dp_status dp_onnx_order(const Onnx__GraphProto *graph, uint32_t **out_order);

#endif
