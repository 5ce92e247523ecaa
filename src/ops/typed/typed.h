/*
 * typed.h - operators by the name of their type, with attributes by name, as graphs and single-operator calls know
 * them. The register is src/ops/aclop.tsv: a row says how inputs, outputs and attributes go into a family's function.
 */
#ifndef DOPPEL_OPS_TYPED_TYPED_H
#define DOPPEL_OPS_TYPED_TYPED_H

#include "ops/op.h"

typedef enum dp_typed_source { DP_TYPED_INPUT, DP_TYPED_OUTPUT, DP_TYPED_ATTRIBUTE } dp_typed_source;

/* What the register says of a parameter beyond its dp_param. */
typedef struct dp_typed_trait {
    uint8_t source;
    bool is_value;    /* an input whose contents are read by prepare, on the host */
    bool is_optional; /* may be missing */
    bool has_default;
    bool is_fixed; /* an attribute that must have its default's value */
    double number; /* the default, by the parameter's kind */
    const char *text;
    const int64_t *list;
    int64_t count;
} dp_typed_trait;

typedef struct dp_typed {
    dp_operator op; /* parameters: inputs, outputs, attributes; at most one input and one output is a list */
    const dp_typed_trait *traits;
    uint8_t n_inputs, n_outputs, n_attributes;
} dp_typed;

/* All types, in the order of the register. */
extern const dp_typed dp_typed_all[];
extern const unsigned dp_typed_count;

/* DP_ERR_NOT_FOUND with a sentence that lists the nearest names. */
dp_status dp_typed_find(const char *name, const dp_typed **out_type);

/* One call. Everything is borrowed for the length of prepare. */
typedef struct dp_typed_call {
    const dp_typed *type;
    const dp_tensor *const *inputs; /* contiguous; NULL = absent */
    const void *const *values;      /* contents of the inputs that prepare reads, in host memory; NULL = not known */
    const dp_tensor *const *outputs;
    int n_inputs, n_outputs;
    const dp_arg *attributes; /* of kinds INTEGER, REAL, TEXT, TYPE (the caller's number) and lists of numbers */
    int n_attributes;
    int (*element_of)(int64_t type); /* what the caller's numbers for element types mean; DP_EL_NONE: none */
} dp_typed_call;

/* Whether prepare reads the contents of input `index` of n_inputs. */
bool dp_typed_reads(const dp_typed *type, int n_inputs, int index);

/* Checks counts, attributes, shapes and types, and makes the plan. */
dp_status dp_typed_prepare(const dp_typed_call *call, dp_plan **out_plan);

/* Writes the dims that prepare would ask of the outputs into `outputs`, whose element types are set: these are the
 * tensors of call->outputs. DP_ERR_UNSUPPORTED when the type does not fix them. */
dp_status dp_typed_infer(const dp_typed_call *call, dp_tensor *outputs);

#endif
