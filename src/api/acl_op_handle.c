#include <string.h>

#include "api/acl_op.h"
#include "api/object.h"
#include "api/tensor_desc.h"
#include "base/memory.h"

static void release(aclopHandle *handle) {
    for (int i = 0; i < handle->n_inputs; i++)
        dp_free((void *)(uintptr_t)handle->operands[i].constant);
    dp_op_attr_release(&handle->attr);
    dp_free(handle);
}

static dp_status copy_constants(aclopHandle *handle, const dp_op_operand *from) {
    for (int i = 0; i < handle->n_inputs; i++) {
        if (!from[i].constant)
            continue;
        void *copy = dp_alloc(DP_MEM_RUNTIME, from[i].constant_bytes);
        if (!copy)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a constant of %zu bytes: free some",
                           from[i].constant_bytes);
        handle->operands[i].constant = memcpy(copy, from[i].constant, from[i].constant_bytes);
    }
    return DP_OK;
}

dp_status dp_op_handle_create(const dp_typed *type, const dp_op_operand *operands, int n_inputs, int n_outputs,
                              const struct aclopAttr *attr, aclopHandle **out_handle) {
    size_t count = (size_t)(n_inputs + n_outputs), bytes = sizeof(aclopHandle) + count * sizeof *operands;
    aclopHandle *handle = dp_alloc(DP_MEM_RUNTIME, bytes);
    if (!handle)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a handle of %s (%zu bytes): free some", type->op.name,
                       bytes);
    *handle = (aclopHandle){.type = type, .n_inputs = n_inputs, .n_outputs = n_outputs};
    memcpy(handle->operands, operands, count * sizeof *operands);
    for (size_t i = 0; i < count; i++)
        handle->operands[i].constant = NULL;
    dp_status status = dp_op_attr_copy(&handle->attr, attr);
    if (status == DP_OK)
        status = copy_constants(handle, operands);
    if (status == DP_OK)
        status = dp_object_adopt(DP_OBJECT_OP_HANDLE, handle);
    if (status == DP_OK)
        *out_handle = handle;
    else
        release(handle);
    return status;
}

static dp_status check_place(aclopHandle **handle) {
    if (!handle)
        return dp_fail(DP_ERR_ARGUMENT, "handle is NULL, but must be the address of an aclopHandle pointer");
    *handle = NULL;
    return DP_OK;
}

static dp_status create(const char *opType, int numInputs, const aclTensorDesc *const *inputDesc, int numOutputs,
                        const aclTensorDesc *const *outputDesc, const struct aclopAttr *attr, aclopHandle **handle) {
    const dp_typed *type;
    dp_op_operand *operands = NULL;
    dp_status status = check_place(handle);
    if (status == DP_OK)
        status = dp_op_take(opType, numInputs, inputDesc, numOutputs, outputDesc, &type, &operands);
    if (status == DP_OK)
        status = dp_op_check(type, operands, numInputs, numOutputs, attr);
    if (status == DP_OK)
        status = dp_op_handle_create(type, operands, numInputs, numOutputs, attr, handle);
    dp_free(operands);
    return status;
}

aclError aclopCreateHandle(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[], int numOutputs,
                           const aclTensorDesc *const outputDesc[], const aclopAttr *opAttr, aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    if (opAttr && !dp_object_get(DP_OBJECT_OP_ATTR, opAttr, "opAttr"))
        return dp_op_end(&call, DP_ERR_ARGUMENT);
    return dp_op_end(&call, create(opType, numInputs, inputDesc, numOutputs, outputDesc, opAttr, handle));
}

void aclopDestroyHandle(aclopHandle *handle) {
    if (!handle)
        return;
    dp_api_call call = DP_API_CALL();
    aclopHandle *taken = dp_object_take(DP_OBJECT_OP_HANDLE, handle, "handle");
    if (taken)
        release(taken);
    dp_api_end(&call, taken ? DP_OK : DP_ERR_ARGUMENT);
}

static dp_status exec(aclopHandle *handle, int numInputs, const aclDataBuffer *const *inputs, int numOutputs,
                      aclDataBuffer *const *outputs, aclrtStream stream) {
    const aclopHandle *live = dp_object_get(DP_OBJECT_OP_HANDLE, handle, "handle");
    if (!live)
        return DP_ERR_ARGUMENT;
    if (numInputs != live->n_inputs || numOutputs != live->n_outputs)
        return dp_fail(DP_ERR_ARGUMENT,
                       "numInputs is %d and numOutputs %d, but the handle of %s was made for %d and %d", numInputs,
                       numOutputs, live->type->op.name, live->n_inputs, live->n_outputs);
    size_t bytes = (size_t)(numInputs + numOutputs) * sizeof(dp_op_operand);
    dp_op_operand *operands = dp_alloc(DP_MEM_RUNTIME, bytes + 1);
    if (!operands)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a run of %s (%zu bytes): free some",
                       live->type->op.name, bytes);
    memcpy(operands, live->operands, bytes);
    dp_status status = dp_op_take_buffers(operands, numInputs, inputs, numOutputs, outputs);
    if (status == DP_OK)
        status = dp_op_run(live->type, operands, numInputs, numOutputs, &live->attr, stream);
    dp_free(operands);
    return status;
}

aclError aclopExecWithHandle(aclopHandle *handle, int numInputs, const aclDataBuffer *const inputs[], int numOutputs,
                             aclDataBuffer *const outputs[], aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    return dp_op_end(&call, exec(handle, numInputs, inputs, numOutputs, outputs, stream));
}

/* Casts: type "Cast", with the destination's type as its attribute. */

typedef struct cast {
    dp_arg arg;
    struct aclopAttr attr;
} cast;

static dp_status begin_cast(cast *c, const aclTensorDesc *dstDesc) {
    const aclTensorDesc *to = dp_object_get(DP_OBJECT_TENSOR_DESC, dstDesc, "dstDesc");
    if (!to)
        return DP_ERR_ARGUMENT;
    c->arg = (dp_arg){.name = "dst_type", .kind = DP_ARG_TYPE, .as.integer = to->type};
    c->attr = (struct aclopAttr){1, 1, &c->arg};
    return DP_OK;
}

aclError aclopCast(const aclTensorDesc *srcDesc, const aclDataBuffer *srcBuffer, const aclTensorDesc *dstDesc,
                   aclDataBuffer *dstBuffer, uint8_t truncate, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    (void)truncate;
    call.stream = stream;
    cast c;
    const dp_typed *type;
    dp_op_operand *operands = NULL;
    dp_status status = begin_cast(&c, dstDesc);
    if (status == DP_OK)
        status = dp_op_take("Cast", 1, &srcDesc, 1, &dstDesc, &type, &operands);
    if (status == DP_OK)
        status = dp_op_take_buffers(operands, 1, &srcBuffer, 1, &dstBuffer);
    if (status == DP_OK)
        status = dp_op_run(type, operands, 1, 1, &c.attr, stream);
    dp_free(operands);
    return dp_op_end(&call, status);
}

aclError aclopCreateHandleForCast(aclTensorDesc *srcDesc, aclTensorDesc *dstDesc, uint8_t truncate,
                                  aclopHandle **handle) {
    dp_api_call call = DP_API_CALL();
    (void)truncate;
    cast c;
    const aclTensorDesc *from = srcDesc, *to = dstDesc;
    dp_status status = begin_cast(&c, dstDesc);
    return dp_op_end(&call, status == DP_OK ? create("Cast", 1, &from, 1, &to, &c.attr, handle) : status);
}
