/* acl_mdl.h: loading and executing with options that are set one by one. */
#include <string.h>

#include "api/acl_mdl.h"
#include "api/object.h"

/* Values of the attributes 0 to ACL_MDL_WORKSPACE_SIZET; the others speak of parts that a model does not have here. */
struct aclmdlConfigHandle {
    const char *path;
    const void *memory;
    void *weights, *work;
    size_t type, memory_bytes, weights_bytes, work_bytes;
};

struct aclmdlExecConfigHandle {
    int32_t stream_timeout_ms, event_timeout_ms;
};

aclmdlConfigHandle *aclmdlCreateConfigHandle(void) {
    dp_api_call call = DP_API_CALL();
    aclmdlConfigHandle *handle = dp_object_create(DP_OBJECT_MODEL_CONFIG, sizeof *handle);
    dp_api_end(&call, handle ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return handle;
}

aclError aclmdlDestroyConfigHandle(aclmdlConfigHandle *handle) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_MODEL_CONFIG, handle, "handle");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

/* Copies an option's value, which must have the size of its type. */
static dp_status take(void *to, size_t bytes, const void *value, size_t value_bytes, const char *name) {
    if (value_bytes != bytes)
        return dp_fail(DP_ERR_ARGUMENT, "valueSize is %zu, but %s has %zu bytes", value_bytes, name, bytes);
    memcpy(to, value, bytes);
    return DP_OK;
}

#define TAKE(attribute, field)                                                                                         \
    case attribute:                                                                                                    \
        return take(&c->field, sizeof c->field, value, bytes, #attribute)

static dp_status set_option(aclmdlConfigHandle *c, aclmdlConfigAttr attr, const void *value, size_t bytes) {
    int32_t priority;
    size_t optimize;
    switch (attr) {
        TAKE(ACL_MDL_LOAD_TYPE_SIZET, type);
        TAKE(ACL_MDL_PATH_PTR, path);
        TAKE(ACL_MDL_MEM_ADDR_PTR, memory);
        TAKE(ACL_MDL_MEM_SIZET, memory_bytes);
        TAKE(ACL_MDL_WEIGHT_ADDR_PTR, weights);
        TAKE(ACL_MDL_WEIGHT_SIZET, weights_bytes);
        TAKE(ACL_MDL_WORKSPACE_ADDR_PTR, work);
        TAKE(ACL_MDL_WORKSPACE_SIZET, work_bytes);
    case ACL_MDL_PRIORITY_INT32: /* all models have the same; memory is always shared by lifetime */
        return take(&priority, sizeof priority, value, bytes, "ACL_MDL_PRIORITY_INT32");
    case ACL_MDL_WORKSPACE_MEM_OPTIMIZE:
        return take(&optimize, sizeof optimize, value, bytes, "ACL_MDL_WORKSPACE_MEM_OPTIMIZE");
    default:
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "attr is %d: models have no queues, and no parts beside weights and work memory", attr);
    }
}

aclError aclmdlSetConfigOpt(aclmdlConfigHandle *handle, aclmdlConfigAttr attr, const void *attrValue,
                            size_t valueSize) {
    dp_api_call call = DP_API_CALL();
    aclmdlConfigHandle *config = dp_object_get(DP_OBJECT_MODEL_CONFIG, handle, "handle");
    if (!config)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!attrValue)
        return dp_api_null(&call, "attrValue", "the address of the value");
    return dp_api_end(&call, set_option(config, attr, attrValue, valueSize));
}

aclError aclmdlLoadWithConfig(const aclmdlConfigHandle *handle, uint32_t *modelId) {
    dp_api_call call = DP_API_CALL();
    const aclmdlConfigHandle *c = dp_object_get(DP_OBJECT_MODEL_CONFIG, handle, "handle");
    if (!c)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    bool with_memory = c->type == ACL_MDL_LOAD_FROM_FILE_WITH_MEM || c->type == ACL_MDL_LOAD_FROM_MEM_WITH_MEM;
    dp_mdl_memory memory = {c->work, c->weights, c->work_bytes, c->weights_bytes, with_memory};
    switch (c->type) {
    case ACL_MDL_LOAD_FROM_FILE:
    case ACL_MDL_LOAD_FROM_FILE_WITH_MEM:
        return dp_mdl_load_file(call, c->path, &memory, modelId);
    case ACL_MDL_LOAD_FROM_MEM:
    case ACL_MDL_LOAD_FROM_MEM_WITH_MEM:
        return dp_mdl_load_memory(call, c->memory, c->memory_bytes, &memory, modelId);
    default:
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "ACL_MDL_LOAD_TYPE_SIZET is %zu, but must be 1 to 4: a file or memory, with or "
                           "without memory of the caller; there are no queues",
                           c->type);
    }
}

/* Executing. */

aclmdlExecConfigHandle *aclmdlCreateExecConfigHandle(void) {
    dp_api_call call = DP_API_CALL();
    aclmdlExecConfigHandle *handle = dp_object_create(DP_OBJECT_EXEC_CONFIG, sizeof *handle);
    if (handle)
        *handle = (aclmdlExecConfigHandle){-1, -1};
    dp_api_end(&call, handle ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return handle;
}

aclError aclmdlDestroyExecConfigHandle(const aclmdlExecConfigHandle *handle) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_EXEC_CONFIG, handle, "handle");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

/* Runs end by themselves, so that limits of time are kept by every one: they are checked and have no effect. */
aclError aclmdlSetExecConfigOpt(aclmdlExecConfigHandle *handle, aclmdlExecConfigAttr attr, const void *attrValue,
                                size_t valueSize) {
    dp_api_call call = DP_API_CALL();
    aclmdlExecConfigHandle *config = dp_object_get(DP_OBJECT_EXEC_CONFIG, handle, "handle");
    if (!config)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!attrValue)
        return dp_api_null(&call, "attrValue", "the address of the value");
    if (attr == ACL_MDL_STREAM_SYNC_TIMEOUT)
        return dp_api_end(&call, take(&config->stream_timeout_ms, sizeof(int32_t), attrValue, valueSize,
                                      "ACL_MDL_STREAM_SYNC_TIMEOUT"));
    if (attr == ACL_MDL_EVENT_SYNC_TIMEOUT)
        return dp_api_end(&call, take(&config->event_timeout_ms, sizeof(int32_t), attrValue, valueSize,
                                      "ACL_MDL_EVENT_SYNC_TIMEOUT"));
    return dp_api_end(&call, dp_fail(DP_ERR_UNSUPPORTED, "attr is %d: only limits of time may be set", attr));
}
