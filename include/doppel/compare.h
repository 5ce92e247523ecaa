/*
 * compare.h - a compiled model against the ONNX file it was made from, in double precision: what `doppel compare`
 * calls.
 */
#ifndef DOPPEL_COMPARE_H
#define DOPPEL_COMPARE_H

#include "doppel/abi.h"

DP_BEGIN_DECLS

/* A value that the model as it was read and the compiled model both have. */
typedef struct dp_compare_row {
    const char *node, *type, *value; /* who computes it: name, type of operator; the value's own name */
    uint64_t count;                  /* elements */
    double max_error;                /* largest absolute difference; infinite where only one is NaN or infinite */
    double relative;                 /* max_error over the largest magnitude of the value */
    double input_relative;           /* the largest `relative` among what the node reads */
    double cosine;                   /* of the angle between the two, as vectors; 1 when both are zeros */
    bool is_double;                  /* the reference was computed in double precision; else in float */
    bool is_output;                  /* of the model */
} dp_compare_row;

typedef struct dp_compare_totals {
    uint64_t compared; /* values */
    uint64_t absent;   /* the compiled model has none of their name and shape: fused, renamed, rearranged */
    uint64_t in_float; /* nodes whose reference was computed in float */
} dp_compare_totals;

typedef struct dp_compare_options {
    const char *onnx, *model;  /* files */
    const void *const *inputs; /* contents of the compiled model's inputs, by place, as it takes them */
    void (*row)(const dp_compare_row *row, void *data);
    void (*progress)(unsigned done, unsigned of, void *data); /* nodes; may be NULL */
    void *data;
    const int64_t *const *dims; /* of the inputs, by place, and how many each has: for models of more than one shape; */
    const int *ranks;           /* NULL: the first that the model was compiled for */
} dp_compare_options;

/* False with a sentence in `message` (at most message_bytes, ended by 0) when something is wrong. */
DP_API bool dp_compare_models(const dp_compare_options *options, dp_compare_totals *totals, char *message,
                              size_t message_bytes);

DP_END_DECLS

#endif
