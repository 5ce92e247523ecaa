#include "api/api.h"
#include "runtime/event.h"

#define EVENT_FLAGS (ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE | ACL_EVENT_EXTERNAL)

static aclError create(dp_api_call *call, aclrtEvent *event, uint32_t flag) {
    if (!event)
        return dp_api_null(call, "event", "the address of an aclrtEvent");
    if (flag & ACL_EVENT_IPC)
        return dp_api_refuse(call, "flag has ACL_EVENT_IPC (64), but events do not cross processes");
    if (flag & ~EVENT_FLAGS)
        return dp_api_bad_value(call, "flag", flag, "0 or ACL_EVENT_* bits");
    return dp_api_end(call, dp_event_create(flag, event));
}

aclError aclrtCreateEvent(aclrtEvent *event) {
    dp_api_call call = DP_API_CALL();
    return create(&call, event, 0);
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) {
    dp_api_call call = DP_API_CALL();
    return create(&call, event, flag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) {
    dp_api_call call = DP_API_CALL();
    return create(&call, event, flag);
}

/* Of calls that ask whether an event was reached: one that stands for a place in a captured graph never is. */
static aclError end_event(dp_api_call *call, dp_status status) {
    return status == DP_ERR_CAPTURED ? dp_api_end_code(call, ACL_ERROR_RT_EVENT_CAPTURED) : dp_api_end(call, status);
}

/* Every function below takes an event: NULL is said as such, other wrong handles by the runtime. */
#define NEED_EVENT(argument)                                                                                           \
    if (!argument)                                                                                                     \
    return dp_api_null(&call, #argument, "an event of aclrtCreateEvent")

aclError aclrtDestroyEvent(aclrtEvent event) {
    dp_api_call call = DP_API_CALL();
    NEED_EVENT(event);
    return dp_api_end(&call, dp_event_destroy(event));
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    NEED_EVENT(event);
    return dp_api_end(&call, dp_event_record(event, stream));
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    NEED_EVENT(event);
    return dp_api_end(&call, dp_event_reset(event, stream));
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    NEED_EVENT(event);
    return dp_api_end(&call, dp_event_wait(event, stream));
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
    dp_api_call call = DP_API_CALL();
    NEED_EVENT(event);
    call.state_code = ACL_ERROR_RT_STREAM_CONTEXT;
    return end_event(&call, dp_event_synchronise(event, -1));
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    dp_api_call call = DP_API_CALL();
    NEED_EVENT(event);
    if (timeout < -1)
        return dp_api_bad_value(&call, "timeout", timeout, "milliseconds, or -1 for no limit");
    call.state_code = ACL_ERROR_RT_STREAM_CONTEXT;
    call.timeout_code = ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
    return end_event(&call, dp_event_synchronise(event, timeout));
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status) {
    dp_api_call call = DP_API_CALL();
    NEED_EVENT(event);
    if (!status)
        return dp_api_null(&call, "status", "the address of an aclrtEventStatus");
    bool recorded = false;
    dp_status result = dp_event_query(event, &recorded);
    if (result == DP_OK)
        *status = recorded ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return dp_api_end(&call, result);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    dp_api_call call = DP_API_CALL();
    NEED_EVENT(event);
    if (!status)
        return dp_api_null(&call, "status", "the address of an aclrtEventRecordedStatus");
    bool recorded = false;
    dp_status result = dp_event_query(event, &recorded);
    if (result == DP_OK)
        *status = recorded ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return dp_api_end(&call, result);
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
    dp_api_call call = DP_API_CALL();
    NEED_EVENT(event);
    if (!status)
        return dp_api_null(&call, "status", "the address of an aclrtEventWaitStatus");
    bool complete = false;
    dp_status result = dp_event_query_waits(event, &complete);
    if (result == DP_OK)
        *status = complete ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return dp_api_end(&call, result);
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    dp_api_call call = DP_API_CALL();
    if (!ms)
        return dp_api_null(&call, "ms", "the address of a float");
    NEED_EVENT(startEvent);
    NEED_EVENT(endEvent);
    call.state_code = ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
    float elapsed = 0;
    dp_status status = dp_event_elapsed_ms(startEvent, endEvent, &elapsed);
    if (status)
        return dp_api_end(&call, status);
    if (elapsed < 0)
        return dp_api_fail(&call, ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
                           "endEvent is %p, which completed %g ms before startEvent: swap the two", endEvent,
                           (double)-elapsed);
    *ms = elapsed;
    return dp_api_end(&call, DP_OK);
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) {
    dp_api_call call = DP_API_CALL();
    NEED_EVENT(event);
    if (!timestamp)
        return dp_api_null(&call, "timestamp", "the address of a uint64_t");
    call.state_code = ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
    uint64_t ns = 0;
    dp_status status = dp_event_timestamp_ns(event, &ns);
    if (status == DP_OK)
        *timestamp = ns / 1000;
    return dp_api_end(&call, status);
}
