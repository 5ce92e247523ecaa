#include "api/api.h"
#include "runtime/callback.h"
#include "runtime/context.h"
#include "runtime/task.h"

/* Separates "no context for the default stream" from the other wrong states of the calls below. */
static dp_status need_context(void *stream) {
    void *context = NULL;
    return stream ? DP_OK : dp_context_current(&context);
}

static aclError subscribe(dp_api_call *call, const char *argument, uint64_t thread_id, void *stream) {
    call->stream = stream;
    if (!thread_id)
        return dp_api_bad_value(call, argument, 0, "the pthread_t of the thread that will process the reports");
    dp_status status = need_context(stream);
    if (status)
        return dp_api_end(call, status);
    call->state_code = ACL_ERROR_REPEAT_SUBSCRIBE;
    return dp_api_end(call, dp_callback_subscribe(thread_id, stream));
}

static aclError unsubscribe(dp_api_call *call, const char *argument, uint64_t thread_id, void *stream) {
    call->stream = stream;
    if (!thread_id)
        return dp_api_bad_value(call, argument, 0, "the pthread_t of the subscribed thread");
    dp_status status = need_context(stream);
    if (status)
        return dp_api_end(call, status);
    call->state_code = ACL_ERROR_STREAM_NOT_SUBSCRIBE;
    return dp_api_end(call, dp_callback_unsubscribe(thread_id, stream));
}

static aclError process(dp_api_call *call, int32_t timeout) {
    if (timeout < -1)
        return dp_api_bad_value(call, "timeout", timeout, "milliseconds, or -1 for no limit");
    call->timeout_code = ACL_ERROR_WAIT_CALLBACK_TIMEOUT;
    dp_status status = dp_callback_process(timeout);
    return status == DP_ERR_BUSY ? dp_api_end_code(call, ACL_ERROR_THREAD_NOT_SUBSCRIBE) : dp_api_end(call, status);
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    return subscribe(&call, "threadId", threadId, stream);
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    return unsubscribe(&call, "threadId", threadId, stream);
}

aclError aclrtProcessReport(int32_t timeout) {
    dp_api_call call = DP_API_CALL();
    return process(&call, timeout);
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (!fn)
        return dp_api_null(&call, "fn", "a function");
    if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK)
        return dp_api_bad_value(&call, "blockType", blockType, "ACL_CALLBACK_NO_BLOCK (0) or ACL_CALLBACK_BLOCK (1)");
    dp_status status = need_context(stream);
    if (status)
        return dp_api_end(&call, status);
    call.state_code = ACL_ERROR_STREAM_NOT_SUBSCRIBE;
    return dp_api_end(&call, dp_callback_launch(stream, fn, userData, blockType == ACL_CALLBACK_BLOCK));
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc func, void *args) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (!func)
        return dp_api_null(&call, "func", "a function");
    return dp_api_end(&call, dp_task_host_function(stream, func, args));
}

aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
    dp_api_call call = DP_API_CALL();
    return subscribe(&call, "hostFuncThreadId", hostFuncThreadId, exeStream);
}

aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
    dp_api_call call = DP_API_CALL();
    return unsubscribe(&call, "hostFuncThreadId", hostFuncThreadId, exeStream);
}

aclError aclrtProcessHostFunc(int32_t timeout) {
    dp_api_call call = DP_API_CALL();
    return process(&call, timeout);
}
