/*
 * acl_op.h - shared by the entry points of single operators.
 */
#ifndef DOPPEL_API_ACL_OP_H
#define DOPPEL_API_ACL_OP_H

#include "acl/acl_op_compiler.h"
#include "api/api.h"
#include "ops/typed/typed.h"

struct aclopAttr {
    int count, room;
    dp_arg *args; /* each name begins a block that also holds the value */
};

/* Copies all attributes of `from` (NULL: none) into `to`, which must be empty and is released by dp_op_attr_release. */
dp_status dp_op_attr_copy(struct aclopAttr *to, const struct aclopAttr *from);
void dp_op_attr_release(struct aclopAttr *attr);

/* Ends a call: what operators find wrong with their arguments is ACL_ERROR_INVALID_PARAM. */
aclError dp_op_end(dp_api_call *call, dp_status status);

/* A tensor as a single-operator call sees it. */
typedef struct dp_op_operand {
    dp_tensor view;       /* base NULL until a buffer is known */
    size_t bytes;         /* of the buffer */
    bool absent, unknown; /* unknown: dims to be found out */
    const void *constant; /* contents of aclSetTensorConst; NULL: none */
    size_t constant_bytes;
} dp_op_operand;

/* A type with operands and attributes: what a handle keeps. */
struct aclopHandle {
    const dp_typed *type;
    struct aclopAttr attr;
    int n_inputs, n_outputs;
    dp_op_operand operands[]; /* inputs, then outputs */
};

/* Finds the type and reads the descriptions; *out_operands (inputs, then outputs) is the caller's, to dp_free. */
dp_status dp_op_take(const char *opType, int numInputs, const aclTensorDesc *const *inputDesc, int numOutputs,
                     const aclTensorDesc *const *outputDesc, const dp_typed **out_type, dp_op_operand **out_operands);
dp_status dp_op_take_buffers(dp_op_operand *operands, int numInputs, const aclDataBuffer *const *inputs, int numOutputs,
                             aclDataBuffer *const *outputs);

/* Whether a run would be accepted, as far as that can be said without buffers. */
dp_status dp_op_check(const dp_typed *type, dp_op_operand *operands, int n_inputs, int n_outputs,
                      const struct aclopAttr *attr);
/* Prepares and queues. Contents that the type reads come from the operands' constants or buffers. Unknown dims of
 * outputs are found; where they depend on data, the call waits for the run. */
dp_status dp_op_run(const dp_typed *type, dp_op_operand *operands, int n_inputs, int n_outputs,
                    const struct aclopAttr *attr, aclrtStream stream);

/* A handle with copies of the operands, their constants and the attributes. */
dp_status dp_op_handle_create(const dp_typed *type, const dp_op_operand *operands, int n_inputs, int n_outputs,
                              const struct aclopAttr *attr, aclopHandle **out_handle);

#endif
