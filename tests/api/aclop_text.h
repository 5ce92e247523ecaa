/*
 * aclop_text.h - single-operator calls written as text (see aclop_cases.inc): descriptions, buffers, attributes, and
 * the comparison of what comes out.
 */
#ifndef TESTS_API_ACLOP_TEXT_H
#define TESTS_API_ACLOP_TEXT_H

#include <stdbool.h>

#include "child.h"

#include "acl/acl_op_compiler.h"

enum { ACLOP_OPERANDS = 8, ACLOP_VALUES = 64 };

typedef struct aclop_tensor {
    char mark; /* '@', '#', '-' or 0 */
    aclDataType type;
    int rank;
    int64_t dims[8];
    size_t count;
    double values[ACLOP_VALUES];
    void *data; /* device memory, host memory for '@' and '#' */
    size_t bytes;
    aclTensorDesc *desc;
    aclDataBuffer *buffer;
} aclop_tensor;

typedef struct aclop_call {
    const char *type;
    int n_in, n_out;
    aclop_tensor in[ACLOP_OPERANDS], out[ACLOP_OPERANDS];
    aclTensorDesc *in_desc[ACLOP_OPERANDS], *out_desc[ACLOP_OPERANDS];
    aclDataBuffer *in_buffer[ACLOP_OPERANDS], *out_buffer[ACLOP_OPERANDS];
    aclopAttr *attr;
} aclop_call;

/* The outputs' data is filled with a pattern; their values are what is expected. */
void aclop_begin(aclop_call *call, const char *type, const char *inputs, const char *attributes, const char *outputs);
void aclop_end(aclop_call *call);
/* Runs by aclopCompileAndExecute and waits. */
aclError aclop_run(aclop_call *call);
/* Ends the test when an output is not what is expected; fills them with the pattern again. */
void aclop_check(aclop_call *call);

#endif
