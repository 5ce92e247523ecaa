/* acl_mdl.h: loading and executing models, data sets. */
#include "api/acl_mdl.h"

#include <string.h>

#include "api/object.h"
#include "graph/loaded.h"
#include "runtime/device_memory.h"
#include "runtime/task.h"

/* Loading. */

/* Everything a load may be given; work NULL: the model takes its own memory. Takes the file over. */
static dp_status load(dp_model_file *file, void *work, size_t work_bytes, void *weights, size_t weights_bytes,
                      bool with_memory, uint32_t *out_id) {
    dp_status status = DP_OK;
    if (with_memory && work)
        status = dp_device_memory_check("workPtr", work, work_bytes);
    /* Weights stay in the mapped file; what the caller brings for them is looked at and left alone. */
    if (status == DP_OK && with_memory && weights) {
        size_t needed = dp_model_file_weights_bytes(file);
        if (weights_bytes < needed)
            status = dp_fail(DP_ERR_ARGUMENT, "weightSize is %zu, but the model needs %zu bytes: see aclmdlQuerySize",
                             weights_bytes, needed);
        else if (weights_bytes)
            status = dp_device_memory_check("weightPtr", weights, weights_bytes);
    }
    if (status == DP_OK)
        status = dp_loaded_add(file, work, work_bytes, out_id);
    if (status != DP_OK)
        dp_model_file_close(file);
    return status;
}

/* The code of a load that failed: files have codes of their own. */
static aclError end_load(dp_api_call *call, dp_status status) {
    if (status == DP_ERR_NOT_FOUND || status == DP_ERR_IO)
        return dp_api_end_code(call, ACL_ERROR_INVALID_FILE);
    return dp_api_end(call, status);
}

static aclError load_file(dp_api_call call, const char *path, void *work, size_t work_bytes, void *weights,
                          size_t weights_bytes, bool with_memory, uint32_t *modelId) {
    dp_model_file *file;
    if (!path || !modelId)
        return dp_api_null(&call, path ? "modelId" : "modelPath", path ? "the address of a number" : "a file's name");
    dp_status status = dp_model_file_open(path, &file);
    if (status == DP_OK)
        status = load(file, work, work_bytes, weights, weights_bytes, with_memory, modelId);
    return end_load(&call, status);
}
aclError aclmdlLoadFromFile(const char *modelPath, uint32_t *modelId) {
    return load_file(DP_API_CALL(), modelPath, NULL, 0, NULL, 0, false, modelId);
}
aclError aclmdlLoadFromFileWithMem(const char *modelPath, uint32_t *modelId, void *workPtr, size_t workSize,
                                   void *weightPtr, size_t weightSize) {
    return load_file(DP_API_CALL(), modelPath, workPtr, workSize, weightPtr, weightSize, true, modelId);
}

static aclError load_memory(dp_api_call call, const void *model, size_t size, void *work, size_t work_bytes,
                            void *weights, size_t weights_bytes, bool with_memory, uint32_t *modelId) {
    dp_model_file *file;
    if (!model || !modelId)
        return dp_api_null(&call, model ? "modelId" : "model",
                           model ? "the address of a number" : "the bytes of a compiled model");
    dp_status status = dp_model_file_read(model, size, &file);
    if (status == DP_OK)
        status = load(file, work, work_bytes, weights, weights_bytes, with_memory, modelId);
    return end_load(&call, status);
}
aclError aclmdlLoadFromMem(const void *model, size_t modelSize, uint32_t *modelId) {
    return load_memory(DP_API_CALL(), model, modelSize, NULL, 0, NULL, 0, false, modelId);
}
aclError aclmdlLoadFromMemWithMem(const void *model, size_t modelSize, uint32_t *modelId, void *workPtr,
                                  size_t workSize, void *weightPtr, size_t weightSize) {
    return load_memory(DP_API_CALL(), model, modelSize, workPtr, workSize, weightPtr, weightSize, true, modelId);
}

aclError aclmdlUnload(uint32_t modelId) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_loaded_remove(modelId);
    return status == DP_OK ? dp_api_end(&call, DP_OK) : dp_api_end_code(&call, ACL_ERROR_INVALID_MODEL_ID);
}

static aclError query(dp_api_call *call, dp_status status, dp_model_file *file, size_t *workSize, size_t *weightSize) {
    size_t work = 0;
    if (status == DP_OK)
        status = dp_loaded_work_bytes(file, &work);
    if (status == DP_OK) {
        *workSize = work;
        *weightSize = dp_model_file_weights_bytes(file);
    }
    dp_model_file_close(file);
    return end_load(call, status);
}
aclError aclmdlQuerySize(const char *fileName, size_t *workSize, size_t *weightSize) {
    dp_api_call call = DP_API_CALL();
    dp_model_file *file = NULL;
    if (!fileName || !workSize || !weightSize)
        return dp_api_null(&call, fileName ? "workSize or weightSize" : "fileName", "an address");
    dp_status status = dp_model_file_open(fileName, &file);
    return query(&call, status, file, workSize, weightSize);
}
aclError aclmdlQuerySizeFromMem(const void *model, size_t modelSize, size_t *workSize, size_t *weightSize) {
    dp_api_call call = DP_API_CALL();
    dp_model_file *file = NULL;
    if (!model || !workSize || !weightSize)
        return dp_api_null(&call, model ? "workSize or weightSize" : "model", "an address");
    dp_status status = dp_model_file_read(model, modelSize, &file);
    return query(&call, status, file, workSize, weightSize);
}

/* Descriptions of what is loaded. */

aclError aclmdlGetDesc(aclmdlDesc *modelDesc, uint32_t modelId) {
    dp_api_call call = DP_API_CALL();
    aclmdlDesc *desc = dp_object_get(DP_OBJECT_MODEL_DESC, modelDesc, "modelDesc");
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    dp_loaded *model = dp_loaded_get(modelId);
    if (!model)
        return dp_api_end_code(&call, ACL_ERROR_INVALID_MODEL_ID);
    dp_status status = dp_mdl_describe(desc, dp_loaded_file(model));
    dp_loaded_release(model);
    return dp_api_end(&call, status);
}
aclError aclmdlGetDescFromFile(aclmdlDesc *modelDesc, const char *modelPath) {
    dp_api_call call = DP_API_CALL();
    dp_model_file *file = NULL;
    aclmdlDesc *desc = dp_object_get(DP_OBJECT_MODEL_DESC, modelDesc, "modelDesc");
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!modelPath)
        return dp_api_null(&call, "modelPath", "a file's name");
    dp_status status = dp_model_file_open(modelPath, &file);
    if (status == DP_OK)
        status = dp_mdl_describe(desc, file);
    dp_model_file_close(file);
    return end_load(&call, status);
}
aclError aclmdlGetDescFromMem(aclmdlDesc *modelDesc, const void *model, size_t modelSize) {
    dp_api_call call = DP_API_CALL();
    dp_model_file *file = NULL;
    aclmdlDesc *desc = dp_object_get(DP_OBJECT_MODEL_DESC, modelDesc, "modelDesc");
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!model)
        return dp_api_null(&call, "model", "the bytes of a compiled model");
    dp_status status = dp_model_file_read(model, modelSize, &file);
    if (status == DP_OK)
        status = dp_mdl_describe(desc, file);
    dp_model_file_close(file);
    return end_load(&call, status);
}

/* Data sets. */

aclmdlDataset *aclmdlCreateDataset(void) {
    dp_api_call call = DP_API_CALL();
    aclmdlDataset *set = dp_object_create(DP_OBJECT_DATASET, sizeof *set);
    dp_api_end(&call, set ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return set;
}

aclError aclmdlDestroyDataset(const aclmdlDataset *dataset) {
    dp_api_call call = DP_API_CALL();
    aclmdlDataset *set = dp_object_take(DP_OBJECT_DATASET, dataset, "dataset");
    if (!set)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    dp_free(set->buffers);
    dp_free(set);
    return dp_api_end(&call, DP_OK);
}

aclError aclmdlAddDatasetBuffer(aclmdlDataset *dataset, aclDataBuffer *dataBuffer) {
    dp_api_call call = DP_API_CALL();
    aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    if (!set || !dp_object_get(DP_OBJECT_DATA_BUFFER, dataBuffer, "dataBuffer"))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (set->count == set->room) {
        size_t room = set->room ? 2 * set->room : 4;
        aclDataBuffer **more = dp_realloc(DP_MEM_RUNTIME, set->buffers, room * sizeof *more);
        if (!more)
            return dp_api_end(&call, dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a data set: free some"));
        set->buffers = more;
        set->room = room;
    }
    set->buffers[set->count++] = dataBuffer;
    return dp_api_end(&call, DP_OK);
}

size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset *dataset) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    dp_api_end(&call, set ? DP_OK : DP_ERR_ARGUMENT);
    return set ? set->count : 0;
}

aclDataBuffer *aclmdlGetDatasetBuffer(const aclmdlDataset *dataset, size_t index) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDataset *set = dp_object_get(DP_OBJECT_DATASET, dataset, "dataset");
    if (set && index >= set->count) {
        dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "index is %zu, but the data set has %zu buffers", index,
                    set->count);
        return NULL;
    }
    dp_api_end(&call, set ? DP_OK : DP_ERR_ARGUMENT);
    return set ? set->buffers[index] : NULL;
}

/* Running. */

/* Addresses of one side; buffers may be larger than needed. */
static dp_status read_set(const aclmdlDataset *set, const char *side, dp_value *const *values, int n,
                          void **out_addresses) {
    if (set->count != (size_t)n)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %zu buffers, but the model has %d %ss", side, set->count, n, side);
    for (int i = 0; i < n; i++) {
        char argument[160];
        size_t needed = dp_value_bytes(values[i]);
        snprintf(argument, sizeof argument, "%s %d (%.100s)", side, i, values[i]->name);
        const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, set->buffers[i], argument);
        if (!buffer)
            return DP_ERR_ARGUMENT;
        if (aclGetDataBufferSizeV2(buffer) < needed)
            return dp_fail(DP_ERR_ARGUMENT, "%s: the buffer has %zu bytes, but the model needs %zu", argument,
                           aclGetDataBufferSizeV2(buffer), needed);
        out_addresses[i] = aclGetDataBufferAddr(buffer);
        if (needed) {
            dp_status status = dp_device_memory_check(argument, out_addresses[i], needed);
            if (status != DP_OK)
                return status;
        }
    }
    return DP_OK;
}

/* One run: addresses of inputs, then of outputs. */
typedef struct run {
    dp_loaded *model;
    int variant, n_inputs;
    void *addresses[];
} run;

static void free_run(run *r) {
    if (r)
        dp_loaded_release(r->model);
    dp_free(r);
}

static dp_status make_run(uint32_t id, const aclmdlDataset *input, const aclmdlDataset *output, run **out_run) {
    const aclmdlDataset *in = dp_object_get(DP_OBJECT_DATASET, input, "input");
    const aclmdlDataset *out = in ? dp_object_get(DP_OBJECT_DATASET, output, "output") : NULL;
    if (!out)
        return DP_ERR_ARGUMENT;
    dp_loaded *model = dp_loaded_get(id);
    if (!model)
        return DP_ERR_NOT_FOUND;
    const dp_graph *graph = dp_model_file_variant(dp_loaded_file(model), 0)->graph;
    size_t ends = (size_t)(graph->n_inputs + graph->n_outputs);
    run *r = dp_alloc(DP_MEM_RUNTIME, sizeof *r + ends * sizeof(void *));
    if (!r) {
        dp_loaded_release(model);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to run a model: free some");
    }
    r->model = model;
    r->n_inputs = graph->n_inputs;
    dp_status status = read_set(in, "input", graph->inputs, graph->n_inputs, r->addresses);
    if (status == DP_OK)
        status = read_set(out, "output", graph->outputs, graph->n_outputs, r->addresses + graph->n_inputs);
    if (status != DP_OK) {
        free_run(r);
        return status;
    }
    *out_run = r;
    return DP_OK;
}

static dp_status run_task(void *payload) {
    run *r = *(run **)payload;
    return dp_loaded_run(r->model, r->variant, r->addresses, r->addresses + r->n_inputs);
}
static void destroy_task(void *payload) {
    free_run(*(run **)payload);
}

static aclError end_run(dp_api_call *call, dp_status status) {
    return status == DP_ERR_NOT_FOUND ? dp_api_end_code(call, ACL_ERROR_INVALID_MODEL_ID) : dp_api_end(call, status);
}

aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output) {
    dp_api_call call = DP_API_CALL();
    run *r = NULL;
    dp_status status = make_run(modelId, input, output, &r);
    if (status != DP_OK)
        return end_run(&call, status);
    status = run_task(&r);
    free_run(r);
    return dp_api_end(&call, status);
}

aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    run *r = NULL;
    call.stream = stream;
    dp_status status = make_run(modelId, input, output, &r);
    if (status != DP_OK)
        return end_run(&call, status);
    status = dp_task_submit(stream, "model", run_task, destroy_task, &r, sizeof r);
    if (status != DP_OK)
        free_run(r);
    return dp_api_end(&call, status);
}
