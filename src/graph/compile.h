/*
 * compile.h - from an ONNX file to graphs that can be written and run.
 */
#ifndef DOPPEL_GRAPH_COMPILE_H
#define DOPPEL_GRAPH_COMPILE_H

#include "graph/graph.h"
#include "graph/precision.h"

/* Shape of one input; name NULL: of the input at the same place as this is in the list. */
typedef struct dp_input_shape {
    const char *name;
    int rank;
    int64_t dims[DP_TENSOR_DIMS];
    const void *contents; /* not NULL: the input has these elements for ever, and is none any more */
} dp_input_shape;

/* What is compiled. */
typedef struct dp_onnx_source {
    const char *name; /* of the file, for messages; NULL: it is in memory only */
    const void *bytes;
    size_t size_bytes;
    const char *folder; /* of the file, for weights beside it, or NULL */
    const dp_input_shape *shapes;
    int n_shapes;
    const dp_precision *precision; /* types; NULL: those of the file. Not for dp_compile_open */
    FILE *print; /* the graph is printed there after reading and after each pass; may be NULL */
    const char *outputs; /* "node:0;other:1" or names of values: what the model gives instead of the file's outputs, or NULL */
} dp_onnx_source;

/*
 * A lowered model; inputs that are not named must have known shapes in the file. DP_ERR_UNSUPPORTED with *out_stopped when it
 * must be lowered while it runs: shapes depend on data, or there are loops.
 */
dp_status dp_compile_fixed(const dp_onnx_source *source, dp_model **out_model, bool *out_stopped);
/* The same before all passes: what other forms of the model are compared with. source->precision must be NULL. */
dp_status dp_compile_lowered(const dp_onnx_source *source, dp_model **out_model, bool *out_stopped);
/* The model as it stands in the file, whatever types its nodes have. */
dp_status dp_onnx_read_source(const dp_onnx_source *source, dp_model **out_model, int *out_opset);
/* The model as it was read, for dp_staged_new; dims of the shapes may be DP_UNKNOWN. All types of nodes are known. */
dp_status dp_compile_open(const dp_onnx_source *source, dp_model **out_model, int *out_opset);

/*
 * dp_compile_fixed in short: a lowered model for these input shapes; inputs that are not named must have known shapes in the file. folder: of the
 * file, for weights beside it, or NULL. print: the graph is printed there after reading and after each pass (may be NULL).
 */
dp_status dp_compile_onnx(const void *bytes, size_t size_bytes, const char *folder, const dp_input_shape *shapes,
                          int n_shapes, FILE *print, dp_model **out_model);
/* The same with types as `precision` says (NULL: those of the file). */
dp_status dp_compile_onnx_as(const void *bytes, size_t size_bytes, const char *folder, const dp_input_shape *shapes,
                             int n_shapes, const dp_precision *precision, FILE *print, dp_model **out_model);

#endif
