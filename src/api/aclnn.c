#include "api/aclnn.h"

#include <stdatomic.h>
#include <string.h>

#include "api/object.h"
#include "runtime/capture.h"
#include "runtime/stream.h"

int dp_aclnn_element(aclDataType type) {
    switch (type) {
    case ACL_FLOAT:
        return DP_F32;
    case ACL_FLOAT16:
        return DP_F16;
    case ACL_BF16:
        return DP_BF16;
    case ACL_DOUBLE:
        return DP_F64;
    case ACL_INT8:
        return DP_I8;
    case ACL_UINT8:
        return DP_U8;
    case ACL_INT16:
        return DP_I16;
    case ACL_UINT16:
        return DP_U16;
    case ACL_INT32:
        return DP_I32;
    case ACL_UINT32:
        return DP_U32;
    case ACL_INT64:
        return DP_I64;
    case ACL_UINT64:
        return DP_U64;
    case ACL_BOOL:
        return DP_EL_BOOL;
    case ACL_INT4:
        return DP_I4;
    case ACL_COMPLEX64:
        return DP_EL_C64;
    case ACL_COMPLEX128:
        return DP_EL_C128;
    default:
        return DP_EL_NONE;
    }
}

aclnnStatus dp_aclnn_end(dp_api_call *call, dp_status status) {
    switch (status) {
    case DP_OK:
        return dp_api_end(call, DP_OK);
    case DP_ERR_NOT_FOUND:
        return dp_api_end_code(call, ACLNN_ERR_PARAM_NULLPTR);
    case DP_ERR_ARGUMENT:
    case DP_ERR_HANDLE:
    case DP_ERR_ADDRESS:
    case DP_ERR_UNSUPPORTED:
        return dp_api_end_code(call, ACLNN_ERR_PARAM_INVALID);
    default:
        return dp_api_end(call, status);
    }
}

static const struct {
    dp_object_kind object;
} object_of[] = {[DP_ARG_TENSOR] = {DP_OBJECT_TENSOR},          [DP_ARG_SCALAR] = {DP_OBJECT_SCALAR},
                 [DP_ARG_INT_LIST] = {DP_OBJECT_INT_ARRAY},     [DP_ARG_FLOAT_LIST] = {DP_OBJECT_FLOAT_ARRAY},
                 [DP_ARG_BOOL_LIST] = {DP_OBJECT_BOOL_ARRAY},   [DP_ARG_TENSOR_LIST] = {DP_OBJECT_TENSOR_LIST},
                 [DP_ARG_SCALAR_LIST] = {DP_OBJECT_SCALAR_LIST}};

static void take_object(dp_arg *arg, const void *object) {
    switch (arg->kind) {
    case DP_ARG_TENSOR:
        arg->as.tensor = &((const aclTensor *)object)->view;
        break;
    case DP_ARG_SCALAR:
        arg->as.scalar = &((const aclScalar *)object)->value;
        break;
    case DP_ARG_INT_LIST:
        arg->count = (int64_t)((const aclIntArray *)object)->count;
        arg->as.integers = ((const aclIntArray *)object)->values;
        break;
    case DP_ARG_FLOAT_LIST:
        arg->count = (int64_t)((const aclFloatArray *)object)->count;
        arg->as.floats = ((const aclFloatArray *)object)->values;
        break;
    case DP_ARG_BOOL_LIST:
        arg->count = (int64_t)((const aclBoolArray *)object)->count;
        arg->as.bools = ((const aclBoolArray *)object)->values;
        break;
    case DP_ARG_TENSOR_LIST:
        arg->count = (int64_t)((const aclTensorList *)object)->count;
        arg->as.tensors = ((const aclTensorList *)object)->views;
        break;
    default:
        arg->count = (int64_t)((const aclScalarList *)object)->count;
        arg->as.scalars = ((const aclScalarList *)object)->values;
    }
}

static dp_status resolve(const dp_param *param, dp_aclnn_value value, dp_arg *arg) {
    *arg = (dp_arg){.name = param->name, .kind = param->kind};
    switch (param->kind) {
    case DP_ARG_INTEGER:
        arg->as.integer = value.integer;
        return DP_OK;
    case DP_ARG_TYPE:
        arg->kind = DP_ARG_INTEGER;
        arg->as.integer = dp_aclnn_element((aclDataType)value.integer);
        return DP_OK;
    case DP_ARG_REAL:
        arg->as.real = value.real;
        return DP_OK;
    case DP_ARG_TEXT:
        if (value.pointer)
            arg->as.text = value.pointer;
        else
            arg->kind = DP_ARG_ABSENT;
        return DP_OK;
    default:
        break;
    }
    if (!value.pointer) {
        arg->kind = DP_ARG_ABSENT;
        return DP_OK;
    }
    const void *object = dp_object_get(object_of[param->kind].object, value.pointer, param->name);
    if (!object)
        return DP_ERR_HANDLE;
    take_object(arg, object);
    return DP_OK;
}

static void keep_handles(const dp_operator *op, const dp_aclnn_value *values, dp_plan *plan) {
    int slot = 0;
    for (int i = 0; i < op->n_params; i++)
        if (op->params[i].kind == DP_ARG_TENSOR && values[i].pointer)
            plan->tensors[slot++].handle = values[i].pointer;
}

static dp_status prepare(const dp_operator *op, const dp_aclnn_value *values, uint64_t *out_workspace_bytes,
                         aclOpExecutor **out_executor) {
    dp_arg args[DP_OP_PARAMS];
    if (!out_workspace_bytes)
        return dp_fail(DP_ERR_NOT_FOUND, "workspaceSize is NULL, but must be the address of a uint64_t");
    if (!out_executor)
        return dp_fail(DP_ERR_NOT_FOUND, "executor is NULL, but must be the address of an aclOpExecutor pointer");
    *out_workspace_bytes = 0;
    *out_executor = NULL;
    for (int i = 0; i < op->n_params; i++) {
        dp_status status = resolve(&op->params[i], values[i], &args[i]);
        if (status != DP_OK)
            return status;
    }
    dp_plan *plan = NULL;
    dp_status status = dp_operator_prepare(op, args, &plan);
    if (status != DP_OK)
        return status;
    if (plan->finds_dims)
        keep_handles(op, values, plan);
    *out_workspace_bytes = plan->workspace_bytes;
    status = dp_object_adopt(DP_OBJECT_OP_EXECUTOR, plan);
    if (status == DP_OK)
        *out_executor = (aclOpExecutor *)plan;
    else
        dp_plan_free(plan);
    return status;
}

aclnnStatus dp_aclnn_prepare(const dp_operator *op, const dp_aclnn_value *values, uint64_t *out_workspace_bytes,
                             aclOpExecutor **out_executor, const char *name, const void *caller) {
    dp_api_call call = dp_api_begin(name, caller);
    return dp_aclnn_end(&call, prepare(op, values, out_workspace_bytes, out_executor));
}

/*
 * Operators whose outputs' dims depend on data: waits for the run and gives the tensors the dims that it found. A
 * tensor that was destroyed meanwhile is left alone.
 */
static dp_status run_and_resize(dp_plan *plan, void *workspace, uint64_t workspace_bytes, aclrtStream stream) {
    const void *handles[DP_OP_PARAMS];
    int n = plan->n_tensors < DP_OP_PARAMS ? plan->n_tensors : DP_OP_PARAMS;
    for (int i = 0; i < n; i++)
        handles[i] = plan->tensors[i].is_output ? plan->tensors[i].handle : NULL;
    void *recording = NULL;
    dp_status status = dp_capture_current(stream, &recording);
    if (status == DP_OK && recording)
        status = dp_fail(DP_ERR_CAPTURED, "the dims of an output of aclnn%s depend on data, so it cannot be captured",
                         plan->op->name);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    dp_found *found = dp_found_new(plan->n_tensors);
    plan->found = found;
    status = found ? dp_plan_submit(plan, workspace, workspace_bytes, stream) : DP_ERR_OUT_OF_MEMORY;
    if (status != DP_OK) {
        dp_plan_free(plan);
        if (found)
            dp_found_release(found);
        return status;
    }
    /* its failure is the stream's, and told there: only a wait that was refused is a failure of this call */
    status = dp_stream_synchronise(stream, -1);
    bool done = atomic_load(&found->done);
    for (int i = 0; i < n && done; i++) {
        const dp_tensor *view = &found->views[i];
        aclTensor *live = handles[i] ? dp_object_get(DP_OBJECT_TENSOR, handles[i], "tensor") : NULL;
        if (!live || live->view.rank != view->rank || live->view.element != view->element)
            continue;
        memcpy(live->view.dims, view->dims, sizeof view->dims);
        memcpy(live->view.strides, view->strides, sizeof view->strides);
    }
    dp_found_release(found);
    return status == DP_ERR_STATE || status == DP_ERR_HANDLE ? status : DP_OK;
}

static dp_status run(const dp_operator *op, void *workspace, uint64_t workspace_bytes, aclOpExecutor *executor,
                     aclrtStream stream) {
    if (!executor)
        return dp_fail(DP_ERR_NOT_FOUND, "executor is NULL, but must be what aclnn%sGetWorkspaceSize gave", op->name);
    aclOpExecutor *live = dp_object_get(DP_OBJECT_OP_EXECUTOR, executor, "executor");
    if (!live)
        return DP_ERR_HANDLE;
    if (live->plan.op != op)
        return dp_fail(DP_ERR_ARGUMENT, "executor is one of aclnn%s, but must be one of aclnn%s", live->plan.op->name,
                       op->name);
    dp_plan *plan;
    if (live->plan.repeatable) {
        plan = dp_plan_copy(&live->plan);
        if (!plan)
            return DP_ERR_OUT_OF_MEMORY;
    } else {
        /* another thread may have been faster */
        plan = dp_object_take(DP_OBJECT_OP_EXECUTOR, executor, "executor");
        if (!plan)
            return DP_ERR_HANDLE;
    }
    if (DP_UNLIKELY(plan->finds_dims))
        return run_and_resize(plan, workspace, workspace_bytes, stream);
    dp_status status = dp_plan_submit(plan, workspace, workspace_bytes, stream);
    if (status != DP_OK)
        dp_plan_free(plan);
    return status;
}

aclnnStatus dp_aclnn_run(const dp_operator *op, void *workspace, uint64_t workspace_bytes, aclOpExecutor *executor,
                         aclrtStream stream, const char *name, const void *caller) {
    dp_api_call call = dp_api_begin(name, caller);
    call.stream = stream;
    return dp_aclnn_end(&call, run(op, workspace, workspace_bytes, executor, stream));
}

/* Executors. */

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
    dp_api_call call = DP_API_CALL();
    if (!executor)
        return dp_aclnn_end(&call, dp_fail(DP_ERR_NOT_FOUND, "executor is NULL, but must be an executor"));
    aclOpExecutor *live = dp_object_get(DP_OBJECT_OP_EXECUTOR, executor, "executor");
    if (live)
        live->plan.repeatable = true;
    return dp_aclnn_end(&call, live ? DP_OK : DP_ERR_HANDLE);
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor) {
    dp_api_call call = DP_API_CALL();
    if (!executor)
        return dp_aclnn_end(&call, dp_fail(DP_ERR_NOT_FOUND, "executor is NULL, but must be an executor"));
    aclOpExecutor *taken = dp_object_take(DP_OBJECT_OP_EXECUTOR, executor, "executor");
    if (!taken)
        return dp_aclnn_end(&call, DP_ERR_HANDLE);
    dp_plan_free(&taken->plan);
    return dp_aclnn_end(&call, DP_OK);
}

typedef enum which { ANY, READ, WRITTEN } which;

/* parameter counts the tensor parameters of that kind; relative is the place in a list, 0 for a single tensor. */
static dp_status set_address(aclOpExecutor *executor, which kind, size_t parameter, size_t relative, void *addr) {
    if (!executor)
        return dp_fail(DP_ERR_NOT_FOUND, "executor is NULL, but must be an executor");
    aclOpExecutor *live = dp_object_get(DP_OBJECT_OP_EXECUTOR, executor, "executor");
    if (!live)
        return DP_ERR_HANDLE;
    if (!addr)
        return dp_fail(DP_ERR_NOT_FOUND, "addr is NULL, but must be device memory");
    const char *name = NULL; /* of the parameter that the last slots belonged to: its name is one string */
    size_t seen = 0, place = 0;
    for (int slot = 0; slot < live->plan.n_tensors; slot++) {
        dp_plan_tensor *t = &live->plan.tensors[slot];
        if (kind != ANY && t->is_output != (kind == WRITTEN))
            continue;
        if (t->name != name) {
            seen++;
            place = 0;
            name = t->name;
        } else {
            place++;
        }
        if (seen == parameter + 1 && place == relative) {
            t->view.base = addr;
            return DP_OK;
        }
    }
    return dp_fail(DP_ERR_ARGUMENT, "index %zu (element %zu) names no %stensor of aclnn%s, which has %zu", parameter,
                   relative,
                   kind == READ      ? "input "
                   : kind == WRITTEN ? "output "
                                     : "",
                   live->plan.op->name, seen);
}

#define SETTERS(prefix)                                                                                                \
    aclnnStatus prefix##SetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {    \
        dp_api_call call = DP_API_CALL();                                                                              \
        (void)tensor;                                                                                                  \
        return dp_aclnn_end(&call, set_address(executor, ANY, index, 0, addr));                                        \
    }                                                                                                                  \
    aclnnStatus prefix##SetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,             \
                                           void *addr) {                                                               \
        dp_api_call call = DP_API_CALL();                                                                              \
        (void)tensor;                                                                                                  \
        return dp_aclnn_end(&call, set_address(executor, READ, index, 0, addr));                                       \
    }                                                                                                                  \
    aclnnStatus prefix##SetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,            \
                                            void *addr) {                                                              \
        dp_api_call call = DP_API_CALL();                                                                              \
        (void)tensor;                                                                                                  \
        return dp_aclnn_end(&call, set_address(executor, WRITTEN, index, 0, addr));                                    \
    }                                                                                                                  \
    aclnnStatus prefix##SetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,      \
                                             aclTensorList *tensors, void *addr) {                                     \
        dp_api_call call = DP_API_CALL();                                                                              \
        (void)tensors;                                                                                                 \
        return dp_aclnn_end(&call, set_address(executor, ANY, irIndex, relativeIndex, addr));                          \
    }                                                                                                                  \
    aclnnStatus prefix##SetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, \
                                                  aclTensorList *tensors, void *addr) {                                \
        dp_api_call call = DP_API_CALL();                                                                              \
        (void)tensors;                                                                                                 \
        return dp_aclnn_end(&call, set_address(executor, READ, irIndex, relativeIndex, addr));                         \
    }                                                                                                                  \
    aclnnStatus prefix##SetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex,                            \
                                                   const size_t relativeIndex, aclTensorList *tensors, void *addr) {   \
        dp_api_call call = DP_API_CALL();                                                                              \
        (void)tensors;                                                                                                 \
        return dp_aclnn_end(&call, set_address(executor, WRITTEN, irIndex, relativeIndex, addr));                      \
    }
SETTERS(acl)
SETTERS(Acl)
