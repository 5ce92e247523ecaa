/* acl_mdl.h: executing models. */
#include <string.h>

#include "api/acl_mdl.h"
#include "api/object.h"
#include "graph/loaded.h"
#include "runtime/device_memory.h"
#include "runtime/task.h"

/* One run; everything that it needs is copied, so that data sets may change while it waits. */
typedef struct run {
    dp_loaded *model;
    int gear, n_inputs, n_outputs;
    dp_tensor *inputs;
    dp_output *outputs;
} run;

static void free_run(run *r) {
    if (r)
        dp_loaded_release(r->model);
    dp_free(r);
}

static dp_status new_run(uint32_t id, run **out_run) {
    dp_loaded *model = dp_loaded_get(id);
    if (!model)
        return DP_ERR_NOT_FOUND;
    const dp_graph *graph = dp_model_file_variant(dp_loaded_file(model), 0)->graph;
    size_t inputs = (size_t)graph->n_inputs * sizeof(dp_tensor), outputs = (size_t)graph->n_outputs * sizeof(dp_output);
    run *r = dp_alloc(DP_MEM_RUNTIME, sizeof *r + inputs + outputs);
    if (!r) {
        dp_loaded_release(model);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model: free some");
    }
    *r = (run){model, 0, graph->n_inputs, graph->n_outputs, (dp_tensor *)(r + 1), NULL};
    r->outputs = (dp_output *)(r->inputs + graph->n_inputs);
    *out_run = r;
    return DP_OK;
}

/* Address and size of a buffer that needs `needed` bytes of device memory. */
static dp_status read_buffer(const aclDataBuffer *handle, const char *argument, size_t needed, void **out_base,
                             size_t *out_bytes) {
    const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, handle, argument);
    if (!buffer)
        return DP_ERR_ARGUMENT;
    *out_base = aclGetDataBufferAddr(buffer);
    *out_bytes = aclGetDataBufferSizeV2(buffer);
    if (*out_bytes < needed)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the buffer has %zu bytes, but the model needs %zu", argument, *out_bytes,
                       needed);
    return needed ? dp_device_memory_check(argument, *out_base, needed) : DP_OK;
}

static dp_status check_count(const aclmdlDataset *set, const char *side, size_t n, bool gears) {
    if (set->count == n)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has %zu buffers, but the model has %zu %ss%s", side, set->count, n, side,
                   gears ? ", the last of which is " ACL_DYNAMIC_TENSOR_NAME : "");
}

/* The gear whose numbers lie in the last buffer. */
static dp_status read_gear(const aclmdlDataset *set, const dp_shapes *shapes, int *out_gear) {
    void *base;
    size_t bytes, needed = (size_t)shapes->n_numbers * sizeof(int64_t);
    dp_status status =
        read_buffer(set->entries[set->count - 1].buffer, "input " ACL_DYNAMIC_TENSOR_NAME, needed, &base, &bytes);
    if (status != DP_OK)
        return status;
    *out_gear = dp_shapes_find(shapes, base);
    if (*out_gear >= 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT,
                   "no shape was chosen for this run: call aclmdlSetDynamicBatchSize, aclmdlSetDynamicHWSize or "
                   "aclmdlSetInputDynamicDims with this data set before");
}

/* The shape that a data set gives an input of open dims. */
static dp_status read_shape(const dp_mdl_entry *entry, const char *argument, const dp_declared *declared,
                            dp_tensor *shape) {
    bool open = false;
    for (int d = 0; d < declared->rank; d++)
        open |= dp_declared_is_open(declared, d);
    shape->rank = declared->rank;
    memcpy(shape->dims, declared->least, sizeof shape->dims);
    if (!entry->desc)
        return open ? dp_fail(DP_ERR_ARGUMENT, "%s has open dimensions: give its shape with aclmdlSetDatasetTensorDesc",
                              argument)
                    : DP_OK;
    aclDataType type = aclGetTensorDescType(entry->desc);
    if (type != ACL_DT_UNDEFINED && type != dp_mdl_type(shape->element))
        return dp_fail(DP_ERR_ARGUMENT, "%s: its description has data type %d, but the model has %d", argument, type,
                       dp_mdl_type(shape->element));
    shape->rank = (int32_t)aclGetTensorDescNumDims(entry->desc);
    for (int d = 0; d < shape->rank && d < DP_TENSOR_DIMS; d++)
        aclGetTensorDescDimV2(entry->desc, (size_t)d, &shape->dims[d]);
    return dp_tensor_check(shape, argument);
}

static dp_status read_input(const dp_mdl_entry *entry, int index, const dp_model_file *file, int gear, dp_tensor *out) {
    const dp_shapes *shapes = dp_model_file_shapes(file);
    const dp_value *value = dp_model_file_variant(file, shapes->is_source ? 0 : gear)->graph->inputs[index];
    char argument[160];
    size_t bytes;
    snprintf(argument, sizeof argument, "input %d (%.100s)", index, value->name);
    *out = value->tensor;
    dp_status status = DP_OK;
    if (shapes->is_source && shapes->n_gears)
        dp_shapes_gear(shapes, gear, index, out);
    else if (shapes->is_source)
        status = read_shape(entry, argument, &shapes->inputs[index], out);
    if (status == DP_OK)
        status = dp_tensor_check(out, argument);
    if (status == DP_OK && shapes->is_source)
        status = dp_shapes_check(shapes, index, value->name, out);
    int64_t stride = 1;
    for (int d = out->rank - 1; d >= 0 && status == DP_OK; d--) {
        out->strides[d] = stride;
        stride *= out->dims[d] > 0 ? out->dims[d] : 1;
    }
    size_t needed = status == DP_OK ? (size_t)dp_tensor_count(out) * dp_element_bytes(out->element) : 0;
    return status == DP_OK ? read_buffer(entry->buffer, argument, needed, &out->base, &bytes) : status;
}

static dp_status read_output(const dp_mdl_entry *entry, int index, const dp_model_file *file, int gear, bool waits,
                             dp_output *out) {
    bool found_later = dp_model_file_shapes(file)->is_source;
    const dp_value *value = dp_model_file_variant(file, found_later ? 0 : gear)->graph->outputs[index];
    char argument[160];
    snprintf(argument, sizeof argument, "output %d (%.100s)", index, value->name);
    size_t needed = found_later ? 0 : dp_value_bytes(value);
    dp_status status = read_buffer(entry->buffer, argument, needed, &out->base, &out->room_bytes);
    if (status != DP_OK || !found_later)
        return status;
    if (out->room_bytes)
        return dp_device_memory_check(argument, out->base, out->room_bytes);
    return waits ? DP_OK
                 : dp_fail(DP_ERR_UNSUPPORTED,
                           "%s: an empty buffer is filled by aclmdlExecute only; give aclmdlExecuteAsync memory",
                           argument);
}

/* waits: the caller gets the result before the call returns. */
static dp_status read_sets(run *r, const aclmdlDataset *in, const aclmdlDataset *out, bool waits) {
    const dp_model_file *file = dp_loaded_file(r->model);
    const dp_shapes *shapes = dp_model_file_shapes(file);
    bool gears = dp_mdl_has_gears(shapes);
    dp_status status = check_count(in, "input", (size_t)r->n_inputs + gears, gears);
    if (status == DP_OK)
        status = check_count(out, "output", (size_t)r->n_outputs, false);
    if (status == DP_OK && gears)
        status = read_gear(in, shapes, &r->gear);
    for (int i = 0; i < r->n_inputs && status == DP_OK; i++)
        status = read_input(&in->entries[i], i, file, r->gear, &r->inputs[i]);
    for (int i = 0; i < r->n_outputs && status == DP_OK; i++)
        status = read_output(&out->entries[i], i, file, r->gear, waits, &r->outputs[i]);
    return status;
}

static dp_status make_run(uint32_t id, const aclmdlDataset *input, const aclmdlDataset *output, bool waits,
                          run **out_run) {
    const aclmdlDataset *in = dp_object_get(DP_OBJECT_DATASET, input, "input");
    const aclmdlDataset *out = in ? dp_object_get(DP_OBJECT_DATASET, output, "output") : NULL;
    run *r = NULL;
    if (!out)
        return DP_ERR_ARGUMENT;
    dp_status status = new_run(id, &r);
    if (status != DP_OK)
        return status;
    status = read_sets(r, in, out, waits);
    if (status == DP_OK)
        *out_run = r;
    else
        free_run(r);
    return status;
}

static dp_status run_task(void *payload) {
    run *r = *(run **)payload;
    return dp_loaded_run(r->model, r->gear, r->inputs, r->outputs);
}
static void destroy_task(void *payload) {
    free_run(*(run **)payload);
}

/* What a run has found out about its outputs, for aclmdlGetDatasetTensorDesc and the buffers that were empty. */
static dp_status report(const run *r, aclmdlDataset *set) {
    dp_status status = DP_OK;
    if (dp_model_file_shapes(dp_loaded_file(r->model))->kind == DP_SHAPES_FIXED &&
        !dp_model_file_shapes(dp_loaded_file(r->model))->is_source)
        return DP_OK;
    for (int i = 0; i < r->n_outputs; i++) {
        if (r->outputs[i].is_taken)
            aclUpdateDataBuffer(set->entries[i].buffer, r->outputs[i].base, r->outputs[i].room_bytes);
        dp_status kept = dp_mdl_keep_shape(set, (size_t)i, &r->outputs[i].shape);
        status = status == DP_OK ? kept : status;
    }
    return status;
}

static aclError end_run(dp_api_call *call, dp_status status) {
    return status == DP_ERR_NOT_FOUND ? dp_api_end_code(call, ACL_ERROR_INVALID_MODEL_ID) : dp_api_end(call, status);
}

static aclError execute(dp_api_call call, uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output) {
    run *r = NULL;
    dp_status status = make_run(modelId, input, output, true, &r);
    if (status != DP_OK)
        return end_run(&call, status);
    status = run_task(&r);
    if (status == DP_OK)
        status = report(r, output);
    free_run(r);
    return dp_api_end(&call, status);
}
aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output) {
    return execute(DP_API_CALL(), modelId, input, output);
}

static aclError execute_async(dp_api_call call, uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output,
                              aclrtStream stream) {
    run *r = NULL;
    call.stream = stream;
    dp_status status = make_run(modelId, input, output, false, &r);
    if (status != DP_OK)
        return end_run(&call, status);
    status = dp_task_submit(stream, "model", run_task, destroy_task, &r, sizeof r);
    if (status != DP_OK)
        free_run(r);
    return dp_api_end(&call, status);
}
aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output, aclrtStream stream) {
    return execute_async(DP_API_CALL(), modelId, input, output, stream);
}

/* With options of aclmdlCreateExecConfigHandle, which must be there. */
aclError aclmdlExecuteV2(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output, aclrtStream stream,
                         const aclmdlExecConfigHandle *handle) {
    dp_api_call call = DP_API_CALL();
    if (!dp_object_get(DP_OBJECT_EXEC_CONFIG, handle, "handle"))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    aclError code = aclrtSynchronizeStream(stream); /* what is queued there comes first */
    return code == ACL_SUCCESS ? execute(call, modelId, input, output) : dp_api_end_code(&call, code);
}
aclError aclmdlExecuteAsyncV2(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output, aclrtStream stream,
                              const aclmdlExecConfigHandle *handle) {
    dp_api_call call = DP_API_CALL();
    if (!dp_object_get(DP_OBJECT_EXEC_CONFIG, handle, "handle"))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    return execute_async(call, modelId, input, output, stream);
}
