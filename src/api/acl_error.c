#include <stdatomic.h>
#include <string.h>

#include "api/api.h"
#include "runtime/device.h"
#include "runtime/launch.h"
#include "runtime/report.h"

struct rtExceptionInfo {
    uint32_t task_id, stream_id, thread_id, device_id, error_code;
};

static _Atomic(aclrtExceptionInfoCallback) exception_callback;

const char *aclGetRecentErrMsg(void) {
    return dp_report_recent();
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
    if (level == ACL_RT_THREAD_LEVEL)
        return dp_api_last_error(true);
    dp_api_call call = DP_API_CALL();
    return dp_api_bad_value(&call, "level", level, "ACL_RT_THREAD_LEVEL (0)");
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    if (level == ACL_RT_THREAD_LEVEL)
        return dp_api_last_error(false);
    dp_api_call call = DP_API_CALL();
    return dp_api_bad_value(&call, "level", level, "ACL_RT_THREAD_LEVEL (0)");
}

static void forward_exception(const dp_exception_info *info, void *context) {
    (void)context;
    aclrtExceptionInfoCallback callback = atomic_load(&exception_callback);
    if (!callback)
        return;
    aclrtExceptionInfo handed = {
        .task_id = info->task_id,
        .stream_id = info->stream_id,
        .thread_id = info->thread_id,
        .device_id = info->device_id,
        .error_code = (uint32_t)dp_api_code(info->status, ACL_ERROR_INTERNAL_ERROR, ACL_ERROR_RT_TASK_TIMEOUT)};
    callback(&handed);
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
    dp_api_call call = DP_API_CALL();
    atomic_store(&exception_callback, callback);
    dp_launch_set_exception_callback(callback ? forward_exception : NULL, NULL);
    return dp_api_end(&call, DP_OK);
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    return info ? info->task_id : 0;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    return info ? info->stream_id : 0;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    return info ? info->thread_id : 0;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    return info ? info->device_id : 0;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info) {
    return info ? info->error_code : 0;
}

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo) {
    dp_api_call call = DP_API_CALL();
    if (!errorInfo)
        return dp_api_null(&call, "errorInfo", "the address of an aclrtErrorInfo");
    dp_status status = dp_device_check(deviceId);
    if (status == DP_OK)
        memset(errorInfo, 0, sizeof *errorInfo);
    return dp_api_end(&call, status);
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize, size_t *retSize) {
    dp_api_call call = DP_API_CALL();
    if (!memUceInfoArray)
        return dp_api_null(&call, "memUceInfoArray", "an array of aclrtMemUceInfo");
    if (!arraySize)
        return dp_api_bad_value(&call, "arraySize", 0, "the number of entries of memUceInfoArray, at least 1");
    if (!retSize)
        return dp_api_null(&call, "retSize", "the address of a size_t");
    dp_status status = dp_device_check(deviceId);
    if (status == DP_OK)
        *retSize = 0;
    return dp_api_end(&call, status);
}
