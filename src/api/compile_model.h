/*
 * compile_model.h - compiling models that are in memory already.
 */
#ifndef DOPPEL_API_COMPILE_MODEL_H
#define DOPPEL_API_COMPILE_MODEL_H

#include "doppel/compile.h"
#include "graph/compile_shapes.h"

/* An ONNX model; options->model, output, dump_graph and calibration are not looked at. dp_compiled_free in any case. */
dp_status dp_compile_bytes(const dp_compile_options *options, const void *bytes, size_t size, const char *folder,
                           dp_compiled *out_compiled);

#endif
