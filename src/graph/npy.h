/*
 * npy.h - arrays in files, as numpy.save writes them.
 */
#ifndef DOPPEL_GRAPH_NPY_H
#define DOPPEL_GRAPH_NPY_H

#include "ops/tensor.h"

/* float32, float64 or uint8 in C's order. tensor->base is owned by the caller: dp_free. DP_ERR_IO, DP_ERR_ARGUMENT. */
dp_status dp_npy_read(const char *path, dp_tensor *tensor);

#endif
