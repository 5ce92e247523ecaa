#include "api/acl_op.h"

#include <stdatomic.h>
#include <string.h>

#include "api/aclnn.h"
#include "api/object.h"
#include "api/tensor_desc.h"
#include "base/memory.h"
#include "runtime/capture.h"
#include "runtime/device_memory.h"
#include "runtime/stream.h"

enum { OPERANDS_MAX = 1024, VALUE_BYTES_MAX = 1 << 16 };

aclError dp_op_end(dp_api_call *call, dp_status status) {
    return status == DP_ERR_NOT_FOUND ? dp_api_end_code(call, ACL_ERROR_OP_NOT_FOUND) : dp_api_end(call, status);
}

/* Operands. */

static bool is_plain(aclFormat format) {
    switch (format) {
    case ACL_FORMAT_UNDEFINED:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NHWC:
    case ACL_FORMAT_ND:
    case ACL_FORMAT_HWCN:
    case ACL_FORMAT_NDHWC:
    case ACL_FORMAT_NCDHW:
    case ACL_FORMAT_NC:
    case ACL_FORMAT_NCL:
        return true;
    default:
        return false;
    }
}

static dp_status lay_out(dp_tensor *t, const char *name, int index) {
    int64_t step = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        t->strides[d] = step;
        if (t->dims[d] > 0 && __builtin_mul_overflow(step, t->dims[d], &step))
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s[%d]: dimension %d is %lld, which makes more elements than any memory holds", name, index,
                           d, (long long)t->dims[d]);
    }
    return dp_tensor_check(t, name);
}

static dp_status take_desc(const aclTensorDesc *given, const char *name, int index, dp_op_operand *out) {
    const aclTensorDesc *desc = dp_object_get(DP_OBJECT_TENSOR_DESC, given, name);
    if (!desc)
        return DP_ERR_ARGUMENT;
    *out = (dp_op_operand){.absent = desc->type == ACL_DT_UNDEFINED,
                           .unknown = desc->rank_unknown,
                           .constant = desc->constant,
                           .constant_bytes = desc->constant_bytes};
    if (out->absent)
        return DP_OK;
    out->view.element = dp_aclnn_element(desc->type);
    out->view.format = desc->format;
    if (out->view.element == DP_EL_NONE)
        return dp_fail(DP_ERR_ARGUMENT, "%s[%d] has element type %d, which operators do not know", name, index,
                       (int)desc->type);
    aclFormat odd = is_plain(desc->format) ? desc->storage_format : desc->format;
    if (!is_plain(odd))
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "%s[%d] has format %d, but Doppel has plain formats only: ND, NCHW, NHWC, ...", name, index,
                       (int)odd);
    if (out->unknown)
        return DP_OK;
    if (desc->dims.rank > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "%s[%d] has %zu dimensions, but may have %d", name, index, desc->dims.rank,
                       DP_TENSOR_DIMS);
    out->view.rank = (int32_t)desc->dims.rank;
    for (int d = 0; d < out->view.rank; d++) {
        out->view.dims[d] = desc->dims.dims[d];
        out->unknown |= desc->dims.dims[d] < 0;
    }
    return out->unknown ? DP_OK : lay_out(&out->view, name, index);
}

static dp_status take_buffer(const aclDataBuffer *given, const char *name, dp_op_operand *out) {
    if (!given)
        return DP_OK;
    const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, given, name);
    if (!buffer)
        return DP_ERR_ARGUMENT;
    out->view.base = buffer->data;
    out->bytes = buffer->size_bytes;
    return DP_OK;
}

static dp_status check_arrays(int numInputs, const void *inputDesc, int numOutputs, const void *outputDesc) {
    const struct {
        const char *count_name, *name;
        int count;
        const void *array;
    } sides[] = {{"numInputs", "inputDesc", numInputs, inputDesc},
                 {"numOutputs", "outputDesc", numOutputs, outputDesc}};
    for (int i = 0; i < 2; i++) {
        if (sides[i].count < 0 || sides[i].count > OPERANDS_MAX)
            return dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be 0 to %d", sides[i].count_name, sides[i].count,
                           OPERANDS_MAX);
        if (sides[i].count && !sides[i].array)
            return dp_fail(DP_ERR_ARGUMENT, "%s is NULL, but must have %s = %d entries", sides[i].name,
                           sides[i].count_name, sides[i].count);
    }
    return DP_OK;
}

static dp_op_operand *new_operands(int count) {
    dp_op_operand *operands = dp_alloc(DP_MEM_RUNTIME, ((size_t)count + 1) * sizeof *operands);
    if (!operands)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %d operands: free some", count);
    return operands;
}

/* *out_operands is the caller's; NULL after a failure. */
static dp_status take_descs(int numInputs, const aclTensorDesc *const *inputDesc, int numOutputs,
                            const aclTensorDesc *const *outputDesc, dp_op_operand **out_operands) {
    *out_operands = NULL;
    dp_status status = check_arrays(numInputs, inputDesc, numOutputs, outputDesc);
    if (status != DP_OK)
        return status;
    dp_op_operand *operands = new_operands(numInputs + numOutputs);
    if (!operands)
        return DP_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < numInputs && status == DP_OK; i++) {
        status = take_desc(inputDesc[i], "inputDesc", i, &operands[i]);
        if (status == DP_OK && operands[i].unknown)
            status = dp_fail(DP_ERR_ARGUMENT, "inputDesc[%d] has unknown dimensions, but they must be known", i);
    }
    for (int i = 0; i < numOutputs && status == DP_OK; i++)
        status = take_desc(outputDesc[i], "outputDesc", i, &operands[numInputs + i]);
    if (status == DP_OK)
        *out_operands = operands;
    else
        dp_free(operands);
    return status;
}

dp_status dp_op_take_buffers(dp_op_operand *operands, int numInputs, const aclDataBuffer *const *inputs, int numOutputs,
                             aclDataBuffer *const *outputs) {
    if ((numInputs && !inputs) || (numOutputs && !outputs))
        return dp_fail(DP_ERR_ARGUMENT, "%s is NULL, but must have one data buffer per description",
                       numInputs && !inputs ? "inputs" : "outputs");
    dp_status status = DP_OK;
    for (int i = 0; i < numInputs && status == DP_OK; i++)
        status = take_buffer(inputs[i], "inputs", &operands[i]);
    for (int i = 0; i < numOutputs && status == DP_OK; i++)
        status = take_buffer(outputs[i], "outputs", &operands[numInputs + i]);
    return status;
}

static size_t bytes_of(const dp_tensor *t) {
    size_t count = (size_t)dp_tensor_count(t);
    return t->element == DP_I4 ? (count + 1) / 2 : count * dp_element_bytes(t->element);
}

static dp_status check_size(const dp_op_operand *operand, const char *name, int index) {
    size_t needed = bytes_of(&operand->view);
    return operand->bytes >= needed ? DP_OK
                                    : dp_fail(DP_ERR_ARGUMENT, "%s[%d] has %zu bytes, but its description needs %zu",
                                              name, index, operand->bytes, needed);
}

/* Neither type nor data: an optional input that is left out. */
static bool is_absent(const dp_op_operand *operand) {
    return operand->absent ||
           (!operand->view.base && !operand->bytes && !operand->constant && dp_tensor_count(&operand->view));
}

/* Running. */

/* Pointers to operands as floor 5 wants them; contents that it reads are copied to where they are aligned. */
typedef struct request {
    dp_typed_call call;
    const dp_tensor **tensors;
    const void **values;
    char *contents;
} request;

static int element_of(int64_t type) {
    return type >= 0 && type <= INT32_MAX ? dp_aclnn_element((aclDataType)type) : DP_EL_NONE;
}

static void release_request(request *r) {
    dp_free(r->tensors);
    dp_free(r->contents);
}

static dp_status begin_request(request *r, const dp_typed *type, const dp_op_operand *operands, int n_inputs,
                               int n_outputs, const struct aclopAttr *attr) {
    size_t count = (size_t)(n_inputs + n_outputs);
    *r = (request){.tensors = dp_alloc(DP_MEM_RUNTIME, (2 * count + 1) * sizeof(void *))};
    if (!r->tensors)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %zu operands: free some", count);
    r->values = (const void **)(r->tensors + count);
    r->call = (dp_typed_call){.type = type,
                              .inputs = r->tensors,
                              .values = r->values,
                              .outputs = r->tensors + n_inputs,
                              .n_inputs = n_inputs,
                              .n_outputs = n_outputs,
                              .attributes = attr ? attr->args : NULL,
                              .n_attributes = attr ? attr->count : 0,
                              .element_of = element_of};
    for (size_t i = 0; i < count; i++)
        r->tensors[i] = is_absent(&operands[i]) ? NULL : &operands[i].view;
    return DP_OK;
}

static bool is_device_memory(const void *ptr) {
    dp_pointer_kind kind = DP_POINTER_UNKNOWN;
    int32_t device;
    return dp_pointer_describe(ptr, &kind, &device) == DP_OK && kind == DP_POINTER_DEVICE;
}

/* From the constant, host memory, or, when the stream's work is done, device memory. */
static dp_status read_contents(const dp_op_operand *operand, int index, aclrtStream stream, char *to, size_t bytes) {
    if (operand->constant) {
        if (operand->constant_bytes < bytes)
            return dp_fail(DP_ERR_ARGUMENT, "inputDesc[%d] has a constant of %zu bytes, but describes %zu", index,
                           operand->constant_bytes, bytes);
        memcpy(to, operand->constant, bytes);
        return DP_OK;
    }
    dp_status status = check_size(operand, "inputs", index);
    if (status == DP_OK && is_device_memory(operand->view.base)) {
        status = dp_device_memory_check("inputs", operand->view.base, bytes);
        if (status == DP_OK)
            status = dp_stream_synchronise(stream, -1);
    }
    if (status == DP_OK)
        memcpy(to, operand->view.base, bytes);
    return status;
}

static bool has_contents(const dp_op_operand *operand) {
    return operand->constant || operand->view.base;
}

static dp_status read_values(request *r, const dp_op_operand *operands, aclrtStream stream) {
    size_t total = 0;
    for (int i = 0; i < r->call.n_inputs; i++) {
        if (!r->tensors[i] || !has_contents(&operands[i]) || !dp_typed_reads(r->call.type, r->call.n_inputs, i))
            continue;
        size_t bytes = bytes_of(&operands[i].view);
        if (bytes > VALUE_BYTES_MAX)
            return dp_fail(DP_ERR_ARGUMENT, "inputDesc[%d] describes %zu bytes, but %s reads up to %d", i, bytes,
                           r->call.type->op.name, VALUE_BYTES_MAX);
        total += (bytes + 63) & ~(size_t)63;
    }
    if (!total)
        return DP_OK;
    r->contents = dp_alloc(DP_MEM_RUNTIME, total);
    if (!r->contents)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the contents of inputs (%zu bytes): free some", total);
    char *to = r->contents;
    for (int i = 0; i < r->call.n_inputs; i++) {
        if (!r->tensors[i] || !has_contents(&operands[i]) || !dp_typed_reads(r->call.type, r->call.n_inputs, i))
            continue;
        size_t bytes = bytes_of(&operands[i].view);
        dp_status status = read_contents(&operands[i], i, stream, to, bytes);
        if (status != DP_OK)
            return status;
        r->values[i] = to;
        to += (bytes + 63) & ~(size_t)63;
    }
    return DP_OK;
}

/* Finds the dims of outputs that have unknown ones; the others keep theirs. */
static dp_status infer_unknown(request *r, dp_op_operand *outputs, bool all) {
    int n = r->call.n_outputs;
    dp_tensor *views = dp_alloc(DP_MEM_RUNTIME, ((size_t)n + 1) * sizeof *views);
    if (!views)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %d outputs: free some", n);
    for (int k = 0; k < n; k++) {
        views[k] = outputs[k].view;
        r->tensors[r->call.n_inputs + k] = outputs[k].absent ? NULL : &views[k];
    }
    dp_status status = dp_typed_infer(&r->call, views);
    for (int k = 0; k < n; k++) {
        void *base = outputs[k].view.base;
        if (status == DP_OK && (all || outputs[k].unknown))
            outputs[k].view = views[k];
        outputs[k].view.base = base;
        r->tensors[r->call.n_inputs + k] = is_absent(&outputs[k]) ? NULL : &outputs[k].view;
    }
    dp_free(views);
    return status;
}

static dp_status check_operands(const request *r, const dp_op_operand *operands) {
    dp_status status = DP_OK;
    int n_inputs = r->call.n_inputs;
    for (int i = 0; i < n_inputs && status == DP_OK; i++)
        if (r->tensors[i] && !dp_typed_reads(r->call.type, n_inputs, i))
            status = check_size(&operands[i], "inputs", i);
    for (int k = 0; k < r->call.n_outputs && status == DP_OK; k++)
        if (r->tensors[n_inputs + k])
            status = check_size(&operands[n_inputs + k], "outputs", k);
    return status;
}

/*
 * Results whose dims depend on data: waits for the run, and gives the views of unknown outputs the dims that it found.
 * Takes the plan.
 */
static dp_status submit_and_find(dp_plan *plan, dp_op_operand *outputs, int n_outputs, aclrtStream stream) {
    enum { OUTPUTS_MAX = 16 }; /* no type that finds dims has as many */
    int slots[OUTPUTS_MAX];
    void *recording = NULL;
    for (int k = 0; k < n_outputs && k < OUTPUTS_MAX; k++) {
        slots[k] = -1;
        for (int i = 0; i < plan->n_tensors; i++)
            if (plan->tensors[i].is_output && outputs[k].unknown && plan->tensors[i].view.base == outputs[k].view.base)
                slots[k] = i;
    }
    dp_status status = dp_capture_current(stream, &recording);
    if (status == DP_OK && recording)
        status = dp_fail(DP_ERR_CAPTURED, "the dims of an output of %s depend on data, so it cannot be captured",
                         plan->op->name);
    dp_found *found = status == DP_OK ? dp_found_new(plan->n_tensors) : NULL;
    if (found) {
        plan->found = found;
        status = dp_plan_submit_alone(plan, stream);
    }
    if (!found || status != DP_OK) {
        dp_plan_free(plan);
        if (found)
            dp_found_release(found);
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    }
    status = dp_stream_synchronise(stream, -1);
    for (int k = 0; k < n_outputs && k < OUTPUTS_MAX && atomic_load(&found->done); k++)
        if (slots[k] >= 0) {
            void *base = outputs[k].view.base;
            outputs[k].view = found->views[slots[k]];
            outputs[k].view.base = base;
        }
    dp_found_release(found);
    return status;
}

dp_status dp_op_run(const dp_typed *type, dp_op_operand *operands, int n_inputs, int n_outputs,
                    const struct aclopAttr *attr, aclrtStream stream) {
    request r;
    dp_status status = begin_request(&r, type, operands, n_inputs, n_outputs, attr);
    if (status != DP_OK)
        return status;
    bool unknown = false;
    for (int k = 0; k < n_outputs; k++)
        unknown |= operands[n_inputs + k].unknown;
    status = read_values(&r, operands, stream);
    if (status == DP_OK && unknown)
        status = infer_unknown(&r, operands + n_inputs, false);
    if (status == DP_OK)
        status = check_operands(&r, operands);
    dp_plan *plan = NULL;
    if (status == DP_OK)
        status = dp_typed_prepare(&r.call, &plan);
    if (status == DP_OK && unknown && plan->finds_dims) {
        status = submit_and_find(plan, operands + n_inputs, n_outputs, stream);
    } else if (status == DP_OK) {
        status = dp_plan_submit_alone(plan, stream);
        if (status != DP_OK)
            dp_plan_free(plan);
    }
    release_request(&r);
    return status == DP_ERR_NOT_FOUND ? DP_ERR_ARGUMENT : status; /* not found: the type, and nothing else */
}

static dp_status find_type(const char *name, const dp_typed **out_type) {
    if (!name)
        return dp_fail(DP_ERR_ARGUMENT, "opType is NULL, but must be the name of an operator type");
    return dp_typed_find(name, out_type);
}

dp_status dp_op_take(const char *opType, int numInputs, const aclTensorDesc *const *inputDesc, int numOutputs,
                     const aclTensorDesc *const *outputDesc, const dp_typed **out_type, dp_op_operand **out_operands) {
    *out_operands = NULL;
    dp_status status = find_type(opType, out_type);
    return status == DP_OK ? take_descs(numInputs, inputDesc, numOutputs, outputDesc, out_operands) : status;
}

static dp_status get_attr(const aclopAttr *attr) {
    return !attr || dp_object_get(DP_OBJECT_OP_ATTR, attr, "attr") ? DP_OK : DP_ERR_ARGUMENT;
}

/* Unknown dims of outputs are written into outputDesc, if it may be written. */
static dp_status execute(const char *opType, int numInputs, const aclTensorDesc *const *inputDesc,
                         const aclDataBuffer *const *inputs, int numOutputs, const aclTensorDesc *const *outputDesc,
                         aclDataBuffer *const *outputs, const aclopAttr *attr, aclrtStream stream,
                         aclTensorDesc **out_desc) {
    const dp_typed *type;
    dp_op_operand *operands = NULL;
    dp_status status = get_attr(attr);
    if (status == DP_OK)
        status = dp_op_take(opType, numInputs, inputDesc, numOutputs, outputDesc, &type, &operands);
    if (status == DP_OK)
        status = dp_op_take_buffers(operands, numInputs, inputs, numOutputs, outputs);
    for (int k = 0; k < numOutputs && status == DP_OK && !out_desc; k++)
        if (operands[numInputs + k].unknown)
            status = dp_fail(DP_ERR_ARGUMENT,
                             "outputDesc[%d] has unknown dimensions: call the V2 function, which finds them", k);
    if (status == DP_OK)
        status = dp_op_run(type, operands, numInputs, numOutputs, attr, stream);
    for (int k = 0; k < numOutputs && status == DP_OK && out_desc; k++) {
        const dp_op_operand *operand = &operands[numInputs + k];
        if (!operand->unknown || operand->absent)
            continue;
        out_desc[k]->rank_unknown = false;
        out_desc[k]->dims.rank = (size_t)operand->view.rank;
        memcpy(out_desc[k]->dims.dims, operand->view.dims, sizeof operand->view.dims);
    }
    dp_free(operands);
    return status;
}

#define CONST_DESCS(array) ((const aclTensorDesc *const *)(array))
#define CONST_BUFFERS(array) ((const aclDataBuffer *const *)(array))

aclError aclopExecute(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[],
                      const aclDataBuffer *const inputs[], int numOutputs, const aclTensorDesc *const outputDesc[],
                      aclDataBuffer *const outputs[], const aclopAttr *attr, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    return dp_op_end(
        &call, execute(opType, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs, attr, stream, NULL));
}

aclError aclopExecuteV2(const char *opType, int numInputs, aclTensorDesc *inputDesc[], aclDataBuffer *inputs[],
                        int numOutputs, aclTensorDesc *outputDesc[], aclDataBuffer *outputs[], aclopAttr *attr,
                        aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    return dp_op_end(&call, execute(opType, numInputs, CONST_DESCS(inputDesc), CONST_BUFFERS(inputs), numOutputs,
                                    CONST_DESCS(outputDesc), outputs, attr, stream, outputDesc));
}

/* Compiling. */

static dp_status check_engine(aclopEngineType engineType, aclopCompileType compileFlag) {
    if (engineType < ACL_ENGINE_SYS || engineType > ACL_ENGINE_VECTOR)
        return dp_fail(DP_ERR_ARGUMENT, "engineType is %d, but must be an aclopEngineType (0 to 2)", (int)engineType);
    if (compileFlag < ACL_COMPILE_SYS || compileFlag > ACL_COMPILE_UNREGISTERED)
        return dp_fail(DP_ERR_ARGUMENT, "compileFlag is %d, but must be an aclopCompileType (0 or 1)",
                       (int)compileFlag);
    return DP_OK;
}

aclError aclopCompileAndExecute(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[],
                                const aclDataBuffer *const inputs[], int numOutputs,
                                const aclTensorDesc *const outputDesc[], aclDataBuffer *const outputs[],
                                const aclopAttr *attr, aclopEngineType engineType, aclopCompileType compileFlag,
                                const char *opPath, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    (void)opPath;
    call.stream = stream;
    dp_status status = check_engine(engineType, compileFlag);
    if (status == DP_OK)
        status = execute(opType, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs, attr, stream, NULL);
    return dp_op_end(&call, status);
}

aclError aclopCompileAndExecuteV2(const char *opType, int numInputs, aclTensorDesc *inputDesc[],
                                  aclDataBuffer *inputs[], int numOutputs, aclTensorDesc *outputDesc[],
                                  aclDataBuffer *outputs[], aclopAttr *attr, aclopEngineType engineType,
                                  aclopCompileType compileFlag, const char *opPath, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    (void)opPath;
    call.stream = stream;
    dp_status status = check_engine(engineType, compileFlag);
    if (status == DP_OK)
        status = execute(opType, numInputs, CONST_DESCS(inputDesc), CONST_BUFFERS(inputs), numOutputs,
                         CONST_DESCS(outputDesc), outputs, attr, stream, outputDesc);
    return dp_op_end(&call, status);
}

/* infer_all: the dims of all outputs are written into their views instead. */
static dp_status check_call(const dp_typed *type, dp_op_operand *operands, int n_inputs, int n_outputs,
                            const struct aclopAttr *attr, bool infer_all) {
    request r;
    dp_status status = begin_request(&r, type, operands, n_inputs, n_outputs, attr);
    if (status != DP_OK)
        return status;
    bool complete = true, unknown = infer_all;
    for (int i = 0; i < n_inputs + n_outputs; i++) {
        if (!operands[i].absent)
            r.tensors[i] = &operands[i].view; /* there are no buffers, so nothing is absent for want of one */
        if (i < n_inputs)
            complete &= operands[i].absent || !dp_typed_reads(type, n_inputs, i) || has_contents(&operands[i]);
        else
            unknown |= operands[i].unknown;
    }
    status = read_values(&r, operands, NULL);
    if (status == DP_OK && unknown && (complete || infer_all))
        status = infer_unknown(&r, operands + n_inputs, infer_all);
    else if (status == DP_OK && complete) {
        dp_plan *plan = NULL;
        status = dp_typed_prepare(&r.call, &plan);
        dp_plan_free(plan);
    }
    release_request(&r);
    return status == DP_ERR_NOT_FOUND ? DP_ERR_ARGUMENT : status;
}

dp_status dp_op_check(const dp_typed *type, dp_op_operand *operands, int n_inputs, int n_outputs,
                      const struct aclopAttr *attr) {
    return check_call(type, operands, n_inputs, n_outputs, attr, false);
}

aclError aclopCompile(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[], int numOutputs,
                      const aclTensorDesc *const outputDesc[], const aclopAttr *attr, aclopEngineType engineType,
                      aclopCompileType compileFlag, const char *opPath) {
    dp_api_call call = DP_API_CALL();
    (void)opPath;
    const dp_typed *type;
    dp_op_operand *operands = NULL;
    dp_status status = check_engine(engineType, compileFlag);
    if (status == DP_OK)
        status = get_attr(attr);
    if (status == DP_OK)
        status = dp_op_take(opType, numInputs, inputDesc, numOutputs, outputDesc, &type, &operands);
    if (status == DP_OK)
        status = dp_op_check(type, operands, numInputs, numOutputs, attr);
    dp_free(operands);
    return dp_op_end(&call, status);
}

aclError aclopInferShape(const char *opType, int numInputs, aclTensorDesc *inputDesc[], aclDataBuffer *inputs[],
                         int numOutputs, aclTensorDesc *outputDesc[], aclopAttr *attr) {
    dp_api_call call = DP_API_CALL();
    const dp_typed *type;
    dp_op_operand *operands = NULL;
    dp_status status = get_attr(attr);
    if (status == DP_OK)
        status = dp_op_take(opType, numInputs, CONST_DESCS(inputDesc), numOutputs, CONST_DESCS(outputDesc), &type,
                            &operands);
    for (int i = 0; inputs && i < numInputs && status == DP_OK; i++)
        status = take_buffer(inputs[i], "inputs", &operands[i]);
    if (status == DP_OK)
        status = check_call(type, operands, numInputs, numOutputs, attr, true);
    for (int k = 0; k < numOutputs && status == DP_OK; k++) {
        const dp_tensor *view = &operands[numInputs + k].view;
        if (operands[numInputs + k].absent)
            continue;
        outputDesc[k]->rank_unknown = false;
        outputDesc[k]->dims.rank = (size_t)view->rank;
        memcpy(outputDesc[k]->dims.dims, view->dims, sizeof view->dims);
    }
    dp_free(operands);
    return dp_op_end(&call, status);
}
