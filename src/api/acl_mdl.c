/* acl_mdl.h: loading models, and their descriptions. */
#include "api/acl_mdl.h"

#include "api/object.h"
#include "graph/loaded.h"
#include "runtime/device_memory.h"

/* Loading. */

/* Work memory NULL: the model takes its own. Takes the file over. */
static dp_status load(dp_model_file *file, const dp_mdl_memory *m, uint32_t *out_id) {
    dp_status status = DP_OK;
    void *work = m->is_given ? m->work : NULL;
    if (work)
        status = dp_device_memory_check("workPtr", work, m->work_bytes);
    /* Weights stay in the mapped file; what the caller brings for them is looked at and left alone. */
    if (status == DP_OK && m->is_given && m->weights) {
        size_t needed = dp_model_file_weights_bytes(file);
        if (m->weights_bytes < needed)
            status = dp_fail(DP_ERR_ARGUMENT, "weightSize is %zu, but the model needs %zu bytes: see aclmdlQuerySize",
                             m->weights_bytes, needed);
        else if (m->weights_bytes)
            status = dp_device_memory_check("weightPtr", m->weights, m->weights_bytes);
    }
    if (status == DP_OK)
        status = dp_loaded_add(file, work, m->work_bytes, out_id);
    if (status != DP_OK)
        dp_model_file_close(file);
    return status;
}

static const dp_mdl_memory none = {.is_given = false};

/* The code of a load that failed: files have codes of their own. */
static aclError end_load(dp_api_call *call, dp_status status) {
    if (status == DP_ERR_NOT_FOUND || status == DP_ERR_IO)
        return dp_api_end_code(call, ACL_ERROR_INVALID_FILE);
    return dp_api_end(call, status);
}

aclError dp_mdl_load_file(dp_api_call call, const char *path, const dp_mdl_memory *memory, uint32_t *modelId) {
    dp_model_file *file;
    if (!path || !modelId)
        return dp_api_null(&call, path ? "modelId" : "modelPath", path ? "the address of a number" : "a file's name");
    dp_status status = dp_model_file_open(path, &file);
    if (status == DP_OK)
        status = load(file, memory, modelId);
    return end_load(&call, status);
}
aclError aclmdlLoadFromFile(const char *modelPath, uint32_t *modelId) {
    return dp_mdl_load_file(DP_API_CALL(), modelPath, &none, modelId);
}
aclError aclmdlLoadFromFileWithMem(const char *modelPath, uint32_t *modelId, void *workPtr, size_t workSize,
                                   void *weightPtr, size_t weightSize) {
    dp_mdl_memory memory = {workPtr, weightPtr, workSize, weightSize, true};
    return dp_mdl_load_file(DP_API_CALL(), modelPath, &memory, modelId);
}

aclError dp_mdl_load_memory(dp_api_call call, const void *model, size_t size, const dp_mdl_memory *memory, uint32_t *modelId) {
    dp_model_file *file;
    if (!model || !modelId)
        return dp_api_null(&call, model ? "modelId" : "model",
                           model ? "the address of a number" : "the bytes of a compiled model");
    dp_status status = dp_model_file_read(model, size, &file);
    if (status == DP_OK)
        status = load(file, memory, modelId);
    return end_load(&call, status);
}
aclError aclmdlLoadFromMem(const void *model, size_t modelSize, uint32_t *modelId) {
    return dp_mdl_load_memory(DP_API_CALL(), model, modelSize, &none, modelId);
}
aclError aclmdlLoadFromMemWithMem(const void *model, size_t modelSize, uint32_t *modelId, void *workPtr,
                                  size_t workSize, void *weightPtr, size_t weightSize) {
    dp_mdl_memory memory = {workPtr, weightPtr, workSize, weightSize, true};
    return dp_mdl_load_memory(DP_API_CALL(), model, modelSize, &memory, modelId);
}

aclError aclmdlUnload(uint32_t modelId) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_loaded_remove(modelId);
    return status == DP_OK ? dp_api_end(&call, DP_OK) : dp_api_end_code(&call, ACL_ERROR_INVALID_MODEL_ID);
}

static aclError query(dp_api_call *call, dp_status status, dp_model_file *file, size_t *workSize, size_t *weightSize) {
    if (status == DP_OK) {
        *workSize = dp_model_file_work_bytes(file);
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
    dp_status status = dp_mdl_describe(desc, dp_loaded_file(model), modelId);
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
        status = dp_mdl_describe(desc, file, 0);
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
        status = dp_mdl_describe(desc, file, 0);
    dp_model_file_close(file);
    return end_load(&call, status);
}
