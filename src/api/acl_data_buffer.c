#include "api/api.h"
#include "api/object.h"
#include "api/tensor_desc.h"

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size) {
    dp_api_call call = DP_API_CALL();
    if (!data && size) {
        dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "data is NULL but size is %zu: pass memory, or size 0", size);
        return NULL;
    }
    aclDataBuffer *buffer = dp_object_create(DP_OBJECT_DATA_BUFFER, sizeof *buffer);
    if (buffer)
        *buffer = (aclDataBuffer){data, size};
    dp_api_end(&call, buffer ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return buffer;
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_DATA_BUFFER, dataBuffer, "dataBuffer");
    return dp_api_end(&call, status ? DP_ERR_ARGUMENT : DP_OK);
}

aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size) {
    dp_api_call call = DP_API_CALL();
    aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, dataBuffer, "dataBuffer");
    if (!buffer)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!data && size)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "data is NULL but size is %zu: pass memory, or size 0",
                           size);
    *buffer = (aclDataBuffer){data, size};
    return dp_api_end(&call, DP_OK);
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer) {
    dp_api_call call = DP_API_CALL();
    const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, dataBuffer, "dataBuffer");
    dp_api_end(&call, buffer ? DP_OK : DP_ERR_ARGUMENT);
    return buffer ? buffer->data : NULL;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer) {
    dp_api_call call = DP_API_CALL();
    const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, dataBuffer, "dataBuffer");
    dp_api_end(&call, buffer ? DP_OK : DP_ERR_ARGUMENT);
    return buffer ? buffer->size_bytes : 0;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer) {
    dp_api_call call = DP_API_CALL();
    const aclDataBuffer *buffer = dp_object_get(DP_OBJECT_DATA_BUFFER, dataBuffer, "dataBuffer");
    dp_api_end(&call, buffer ? DP_OK : DP_ERR_ARGUMENT);
    if (!buffer)
        return 0;
    return buffer->size_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)buffer->size_bytes;
}
