#include <string.h>

#include "api/api.h"
#include "api/object.h"
#include "runtime/stream.h"

#define STREAM_FLAGS                                                                                                   \
    (ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE)
#define PRIORITY_LOWEST 7u

static dp_status check_stream(void *stream) {
    int32_t id = 0;
    return dp_stream_id(stream, &id);
}

static aclError create(dp_api_call *call, aclrtStream *stream, uint32_t priority, size_t flag) {
    if (!stream)
        return dp_api_null(call, "stream", "the address of an aclrtStream");
    if (priority > PRIORITY_LOWEST)
        return dp_api_bad_value(call, "priority", priority, "0 (highest) to 7");
    if (flag & ~(size_t)STREAM_FLAGS)
        return dp_api_bad_value(call, "flag", (long long)flag, "0 or ACL_STREAM_* bits"); /* they are hints to a chip */
    return dp_api_end(call, dp_stream_create(priority, stream));
}

aclError aclrtCreateStream(aclrtStream *stream) {
    dp_api_call call = DP_API_CALL();
    return create(&call, stream, 0, 0);
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    dp_api_call call = DP_API_CALL();
    return create(&call, stream, priority, flag);
}

aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle) {
    dp_api_call call = DP_API_CALL();
    const aclrtStreamConfigHandle *config = dp_object_get(DP_OBJECT_STREAM_CONFIG, handle, "handle");
    if (!config)
        return dp_api_end(&call, DP_ERR_HANDLE);
    return create(&call, stream, config->priority, config->flag);
}

aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void) {
    dp_api_call call = DP_API_CALL();
    aclrtStreamConfigHandle *config = dp_object_create(DP_OBJECT_STREAM_CONFIG, sizeof *config);
    dp_api_end(&call, config ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return config;
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle) {
    dp_api_call call = DP_API_CALL();
    return dp_api_end(&call, dp_object_destroy(DP_OBJECT_STREAM_CONFIG, handle, "handle"));
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr, const void *attrValue,
                                 size_t valueSize) {
    dp_api_call call = DP_API_CALL();
    aclrtStreamConfigHandle *config = dp_object_get(DP_OBJECT_STREAM_CONFIG, handle, "handle");
    if (!config)
        return dp_api_end(&call, DP_ERR_HANDLE);
    if (!attrValue)
        return dp_api_null(&call, "attrValue", "the address of the attribute's value");
    void *member = NULL;
    size_t member_bytes = 0;
    uint32_t flag = 0;
    switch (attr) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
        member = &config->workptr, member_bytes = sizeof config->workptr;
        break;
    case ACL_RT_STREAM_WORK_SIZE:
        member = &config->workSize, member_bytes = sizeof config->workSize;
        break;
    case ACL_RT_STREAM_FLAG:
        member = &config->flag, member_bytes = sizeof config->flag;
        if (valueSize == sizeof flag) { /* callers pass the 32 bits of aclrtCreateStreamWithConfig as well */
            memcpy(&flag, attrValue, sizeof flag);
            config->flag = flag;
            return dp_api_end(&call, DP_OK);
        }
        break;
    case ACL_RT_STREAM_PRIORITY:
        member = &config->priority, member_bytes = sizeof config->priority;
        break;
    default:
        return dp_api_bad_value(&call, "attr", attr, "an aclrtStreamConfigAttr (0 to 3)");
    }
    if (valueSize != member_bytes)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "valueSize is %zu, but must be %zu for attr %d", valueSize,
                           member_bytes, (int)attr);
    memcpy(member, attrValue, member_bytes);
    return dp_api_end(&call, DP_OK);
}

aclError aclrtDestroyStream(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    if (!stream)
        return dp_api_null(&call, "stream", "a stream of aclrtCreateStream: the default stream cannot be destroyed");
    call.state_code = ACL_ERROR_INVALID_PARAM;
    return dp_api_end(&call, dp_stream_destroy(stream, false));
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    if (!stream)
        return dp_api_null(&call, "stream", "a stream of aclrtCreateStream: the default stream cannot be destroyed");
    call.state_code = ACL_ERROR_INVALID_PARAM;
    return dp_api_end(&call, dp_stream_destroy(stream, true));
}

aclError aclrtStreamAbort(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    return dp_api_end(&call, dp_stream_abort(stream));
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (stream)
        call.state_code = ACL_ERROR_RT_STREAM_CONTEXT; /* waits for the stream it runs in */
    return dp_api_end(&call, dp_stream_synchronise(stream, -1));
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (timeout < -1)
        return dp_api_bad_value(&call, "timeout", timeout, "milliseconds, or -1 for no limit");
    if (stream)
        call.state_code = ACL_ERROR_RT_STREAM_CONTEXT;
    return dp_api_end(&call, dp_stream_synchronise(stream, timeout));
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
    dp_api_call call = DP_API_CALL();
    if (!status)
        return dp_api_null(&call, "status", "the address of an aclrtStreamStatus");
    bool complete = false;
    dp_status result = dp_stream_query(stream, &complete);
    if (result == DP_OK)
        *status = complete ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return dp_api_end(&call, result);
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId) {
    dp_api_call call = DP_API_CALL();
    if (!streamId)
        return dp_api_null(&call, "streamId", "the address of an int32_t");
    return dp_api_end(&call, dp_stream_id(stream, streamId));
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority) {
    dp_api_call call = DP_API_CALL();
    if (!priority)
        return dp_api_null(&call, "priority", "the address of a uint32_t");
    return dp_api_end(&call, dp_stream_priority(stream, priority));
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority) {
    dp_api_call call = DP_API_CALL();
    if (!leastPriority)
        return dp_api_null(&call, "leastPriority", "the address of an int32_t");
    if (!greatestPriority)
        return dp_api_null(&call, "greatestPriority", "the address of an int32_t");
    *leastPriority = PRIORITY_LOWEST;
    *greatestPriority = 0;
    return dp_api_end(&call, DP_OK);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    dp_api_call call = DP_API_CALL();
    if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE)
        return dp_api_bad_value(&call, "mode", (long long)mode,
                                "ACL_CONTINUE_ON_FAILURE (0) or ACL_STOP_ON_FAILURE (1)");
    return dp_api_end(&call, dp_stream_set_failure_mode(stream, mode));
}

static aclError set_overflow_switch(dp_api_call *call, void *stream, uint32_t flag) {
    dp_status status = check_stream(stream);
    if (status)
        return dp_api_end(call, status);
    if (flag > 1)
        return dp_api_bad_value(call, "flag", flag, "0 (off) or 1 (on)");
    if (flag)
        return dp_api_refuse(call,
                             "flag is 1, but overflow is reported by the checker (doppel check), not by the stream");
    return dp_api_end(call, DP_OK);
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value) {
    dp_api_call call = DP_API_CALL();
    if (!value)
        return dp_api_null(&call, "value", "the address of an aclrtStreamAttrValue");
    switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
        if (value->failureMode > ACL_STOP_ON_FAILURE)
            return dp_api_bad_value(&call, "value->failureMode", (long long)value->failureMode, "0 or 1");
        return dp_api_end(&call, dp_stream_set_failure_mode(stream, value->failureMode));
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
        return set_overflow_switch(&call, stream, value->overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
        return dp_api_end(&call, dp_stream_attribute_set(stream, stmAttrType, value->userCustomTag));
    case ACL_STREAM_ATTR_CACHE_OP_IFNO:
        return dp_api_end(&call, dp_stream_attribute_set(stream, stmAttrType, value->cacheOpInfoSwitch));
    }
    return dp_api_bad_value(&call, "stmAttrType", stmAttrType, "an aclrtStreamAttr (0 to 3)");
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
    dp_api_call call = DP_API_CALL();
    return set_overflow_switch(&call, stream, flag);
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag) {
    dp_api_call call = DP_API_CALL();
    if (!flag)
        return dp_api_null(&call, "flag", "the address of a uint32_t");
    dp_status status = check_stream(stream);
    if (status == DP_OK)
        *flag = 0;
    return dp_api_end(&call, status);
}
