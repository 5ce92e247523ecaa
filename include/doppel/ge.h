/*
 * ge.h - the graph engine as C functions: what the C++ classes of graph/ and ge/ call.
 *
 * Those classes are inline and hold nothing but the handles below, so that programs may be compiled with either form of
 * std::string. Operators and graphs are counted: whoever stores a handle holds it. NULL handles are allowed everywhere;
 * a failure to get memory is remembered and reported by dp_ge_build. One thread at a time per graph and its operators.
 */
#ifndef DOPPEL_GE_H
#define DOPPEL_GE_H

#include "doppel/abi.h"

DP_BEGIN_DECLS

enum { DP_GE_DIMS = 8 };

typedef struct dp_ge_desc {
    int32_t dtype, format; /* the vendor's numbers */
    int32_t rank;          /* -1: unknown */
    int64_t dims[DP_GE_DIMS];
} dp_ge_desc;

typedef struct dp_ge_operator dp_ge_operator;
typedef struct dp_ge_graph dp_ge_graph;

DP_API dp_ge_operator *dp_ge_operator_new(const char *name, const char *type);
DP_API dp_ge_operator *dp_ge_operator_hold(dp_ge_operator *op); /* returns op */
DP_API void dp_ge_operator_release(dp_ge_operator *op);
DP_API const char *dp_ge_operator_name(const dp_ge_operator *op); /* "" for NULL; owned by the operator */
DP_API const char *dp_ge_operator_type(const dp_ge_operator *op);

/* Input `input` (the place-th of a list; otherwise -1) is what `from` gives as `output` (NULL or "": its first one). */
DP_API void dp_ge_operator_link(dp_ge_operator *op, const char *input, int place, dp_ge_operator *from,
                                const char *output);
/* Type, format and shape of an input or output. */
DP_API void dp_ge_operator_describe(dp_ge_operator *op, const char *end, const dp_ge_desc *desc);
/* False when nobody has described it. */
DP_API bool dp_ge_operator_described(const dp_ge_operator *op, const char *end, dp_ge_desc *desc);
/* How many outputs a list has. */
DP_API void dp_ge_operator_count(dp_ge_operator *op, int outputs);

DP_API void dp_ge_operator_integer(dp_ge_operator *op, const char *name, int64_t value);
DP_API void dp_ge_operator_real(dp_ge_operator *op, const char *name, double value);
DP_API void dp_ge_operator_text(dp_ge_operator *op, const char *name, const char *value);
DP_API void dp_ge_operator_integers(dp_ge_operator *op, const char *name, const int64_t *values, size_t count);
DP_API void dp_ge_operator_reals(dp_ge_operator *op, const char *name, const float *values, size_t count);
/* Contents are copied. */
DP_API void dp_ge_operator_tensor(dp_ge_operator *op, const char *name, const dp_ge_desc *desc, const void *data,
                                  size_t bytes);

DP_API dp_ge_graph *dp_ge_graph_new(const char *name);
DP_API dp_ge_graph *dp_ge_graph_hold(dp_ge_graph *graph);
DP_API void dp_ge_graph_release(dp_ge_graph *graph);
DP_API const char *dp_ge_graph_name(const dp_ge_graph *graph);
/* Replace what was set before. The outputs of an operator are all of its outputs, unless places says which (-1: all).
 */
DP_API void dp_ge_graph_inputs(dp_ge_graph *graph, dp_ge_operator *const *ops, size_t count);
DP_API void dp_ge_graph_outputs(dp_ge_graph *graph, dp_ge_operator *const *ops, const int64_t *places, size_t count);

/* Results are of graph/ge_error_codes.h: 0 is success. The sentence of a failure is aclGetRecentErrMsg's. */
/* Makes the graph stand for an ONNX model; from a file, or from bytes, which are copied. */
DP_API uint32_t dp_ge_parse_file(dp_ge_graph *graph, const char *path);
DP_API uint32_t dp_ge_parse_bytes(dp_ge_graph *graph, const void *bytes, size_t size);
/* Options for all builds of the process: names are those of ge/ge_api_types.h. */
DP_API uint32_t dp_ge_initialize(const char *const *names, const char *const *values, size_t count);
DP_API void dp_ge_finalize(void);
/* A compiled model, as aclmdlLoadFromMem takes it: dp_ge_free gives it back. */
DP_API uint32_t dp_ge_build(const dp_ge_graph *graph, const char *const *names, const char *const *values, size_t count,
                            void **out_bytes, size_t *out_size);
DP_API void dp_ge_free(void *bytes);
/* ".om" is added to the name unless it ends so. */
DP_API uint32_t dp_ge_save(const char *path, const void *bytes, size_t size);
/* The graph's text, as atc --dump-graph prints it. */
DP_API uint32_t dp_ge_dump(const dp_ge_graph *graph, const char *path, size_t length);

DP_END_DECLS

#endif
