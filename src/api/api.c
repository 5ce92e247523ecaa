#include "api/api.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/report.h"

static _Thread_local aclError last_error;

dp_api_call dp_api_begin(const char *name, const void *caller) {
    dp_report_enter(name, caller);
    return (dp_api_call){.name = name,
                         .caller = caller,
                         .begin_ns = DP_UNLIKELY(dp_report_wanted()) ? dp_clock_ns() : 0,
                         .state_code = ACL_ERROR_RT_CONTEXT_NULL,
                         .timeout_code = ACL_ERROR_RT_STREAM_SYNC_TIMEOUT};
}

static aclError leave(dp_api_call *call, aclError code) {
    if (DP_UNLIKELY(code)) {
        last_error = code;
        dp_report_fault(call->name, code, call->caller, call->loc);
    }
    if (DP_UNLIKELY(call->begin_ns)) {
        dp_report_enter(call->name, call->caller); /* a callback may have called the API in between */
        dp_report_call(call->begin_ns, code, call->stream);
    }
    dp_report_leave();
    return code;
}

aclError dp_api_code(dp_status status, aclError state_code, aclError timeout_code) {
    switch (status) {
    case DP_OK:
        return ACL_SUCCESS;
    case DP_ERR_ARGUMENT:
        return ACL_ERROR_INVALID_PARAM;
    case DP_ERR_HANDLE:
        return ACL_ERROR_RT_INVALID_HANDLE;
    case DP_ERR_ADDRESS:
        return ACL_ERROR_RT_PARAM_INVALID;
    case DP_ERR_STATE:
        return state_code;
    case DP_ERR_NOT_FOUND:
        return ACL_ERROR_RT_INVALID_DEVICEID;
    case DP_ERR_OUT_OF_MEMORY:
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    case DP_ERR_TIMEOUT:
        return timeout_code;
    case DP_ERR_BUSY:
        return ACL_ERROR_RT_STREAM_NOT_COMPLETE;
    case DP_ERR_CAPTURED:
        return ACL_ERROR_RT_STREAM_CAPTURED;
    case DP_ERR_UNSUPPORTED:
        return ACL_ERROR_API_NOT_SUPPORT;
    case DP_ERR_IO:
        return ACL_ERROR_INVALID_FILE;
    case DP_ERR_KERNEL:
        return ACL_ERROR_RT_AICORE_EXCEPTION;
    case DP_ERR_KERNEL_TIMEOUT:
        return ACL_ERROR_RT_AICORE_TIMEOUT;
    case DP_ERR_INTERNAL:
        break;
    }
    return ACL_ERROR_INTERNAL_ERROR;
}

aclError dp_api_end(dp_api_call *call, dp_status status) {
    return leave(call,
                 DP_LIKELY(status == DP_OK) ? ACL_SUCCESS : dp_api_code(status, call->state_code, call->timeout_code));
}

aclError dp_api_end_code(dp_api_call *call, aclError code) {
    return leave(call, code);
}

/* What a code given by the API itself means to observers; most are about arguments. */
static dp_status status_of(aclError code) {
    switch (code) {
    case ACL_ERROR_REPEAT_INITIALIZE: /* clients expect these, and go on */
    case ACL_ERROR_REPEAT_FINALIZE:
        return DP_ERR_BUSY;
    case ACL_ERROR_UNINITIALIZE:
        return DP_ERR_STATE;
    case ACL_ERROR_API_NOT_SUPPORT:
        return DP_ERR_UNSUPPORTED;
    case ACL_ERROR_BAD_ALLOC:
        return DP_ERR_OUT_OF_MEMORY;
    case ACL_ERROR_RT_SYSPARAMOPT_NOT_SET:
        return DP_ERR_NOT_FOUND;
    default:
        return DP_ERR_ARGUMENT;
    }
}

aclError dp_api_fail(dp_api_call *call, aclError code, const char *format, ...) {
    char sentence[768];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    dp_fail(status_of(code), "%s", sentence);
    return leave(call, code);
}

aclError dp_api_null(dp_api_call *call, const char *argument, const char *expected) {
    return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "%s is NULL, but must be %s", argument, expected);
}

aclError dp_api_bad_value(dp_api_call *call, const char *argument, long long value, const char *expected) {
    return dp_api_fail(call, ACL_ERROR_INVALID_PARAM, "%s is %lld, but must be %s", argument, value, expected);
}

aclError dp_api_refuse(dp_api_call *call, const char *reason) {
    return dp_api_fail(call, ACL_ERROR_API_NOT_SUPPORT, "%s is not supported: %s", call->name, reason);
}

aclError dp_api_last_error(bool forget) {
    aclError code = last_error;
    if (forget)
        last_error = ACL_SUCCESS;
    return code;
}
