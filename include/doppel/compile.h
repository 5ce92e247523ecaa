/*
 * compile.h - compiling a model as a function: what the program atc calls.
 */
#ifndef DOPPEL_COMPILE_H
#define DOPPEL_COMPILE_H

#include "doppel/abi.h"

DP_BEGIN_DECLS

typedef struct dp_compile_options {
    const char *model;       /* an ONNX file */
    const char *output;      /* the file to write; ".om" is added unless it ends so */
    const char *input_shape; /* "name:1,3,224,224;other:1,10", or NULL: as the model says */
    const char *soc_version; /* a chip's name, or NULL */
    const char *precision_mode, *precision_mode_v2; /* by the names atc has for them; at most one is not NULL */
    const char *input_fp16_nodes; /* "name;name": inputs that are given as half, or NULL */
    const char *output_type;      /* FP32, FP16, UINT8, or "node:index:type;...", or NULL */
    const char *dump_graph;  /* where the graph is printed after each step: a file, "-" for stdout, or NULL */
} dp_compile_options;

/* False with a sentence in `message` (at most message_bytes, ended by 0) when something is wrong. */
DP_API bool dp_compile_model(const dp_compile_options *options, char *message, size_t message_bytes);

DP_END_DECLS

#endif
