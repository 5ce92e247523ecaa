/*
 * aclnn.h - between the generated entry points of operators (build tree, from src/ops/signatures.tsv) and floor 5.
 */
#ifndef DOPPEL_API_ACLNN_H
#define DOPPEL_API_ACLNN_H

#include "aclnn/aclnn_base.h"
#include "api/api.h"
#include "ops/op.h"

struct aclTensor {
    dp_tensor view;
    aclDataType type;
    bool in_list; /* a list owns it */
    uint32_t storage_rank;
    int64_t storage_dims[16];
};
struct aclScalar {
    dp_scalar value;
    bool in_list;
};
struct aclIntArray {
    uint64_t count;
    int64_t values[];
};
struct aclFloatArray {
    uint64_t count;
    float values[];
};
struct aclBoolArray {
    uint64_t count;
    bool values[];
};
/* views[i] is the address of elements[i]'s first member. */
struct aclTensorList {
    uint64_t count;
    const dp_tensor *views[];
};
struct aclScalarList {
    uint64_t count;
    const dp_scalar *values[];
};
/* An executor is a registered plan: one block of memory for each call of a small operator. */
struct aclOpExecutor {
    dp_plan plan;
};

/* One argument as the user gave it. */
typedef union dp_aclnn_value {
    const void *pointer;
    int64_t integer;
    double real;
} dp_aclnn_value;

/* All operators, in the order of the register. */
extern const dp_operator *const dp_operators[];
extern const unsigned dp_operators_count;

aclnnStatus dp_aclnn_prepare(const dp_operator *op, const dp_aclnn_value *values, uint64_t *out_workspace_bytes,
                             aclOpExecutor **out_executor, const char *name, const void *caller);
aclnnStatus dp_aclnn_run(const dp_operator *op, void *workspace, uint64_t workspace_bytes, aclOpExecutor *executor,
                         aclrtStream stream, const char *name, const void *caller);

/* Ends a call: what is NULL is 161001, other wrong arguments 161002, the rest as everywhere in the API. */
aclnnStatus dp_aclnn_end(dp_api_call *call, dp_status status);

/* Element type of a vendor's type, DP_EL_NONE for those operators do not know. */
int dp_aclnn_element(aclDataType type);

#endif
