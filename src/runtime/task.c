#include "runtime/task.h"

#include <string.h>

#include "base/guard.h"
#include "base/log.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

/* In front of the caller's payload. */
typedef struct host_task {
    dp_task_fn fn;
    void (*destroy)(void *payload);
    _Alignas(16) uint8_t payload[];
} host_task;

static dp_task_state run_host_task(dp_task *task) {
    host_task *host = task->payload;
    dp_fail_clear();
    dp_status status = host->fn(host->payload);
    if (DP_UNLIKELY(status != DP_OK)) {
        const char *sentence = dp_fail_message();
        dp_stream_fail(task->stream, status, sentence[0] ? sentence : task->name);
    }
    return DP_TASK_DONE;
}

static void destroy_host_task(dp_task *task) {
    host_task *host = task->payload;
    if (host->destroy)
        host->destroy(host->payload);
}

dp_status dp_task_submit(void *handle, const char *name, dp_task_fn fn, void (*destroy)(void *payload),
                         const void *payload, size_t payload_bytes) {
    if (!fn)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the function to queue is NULL", name);
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_task *task = dp_task_new(stream, name, sizeof(host_task) + payload_bytes);
    status = DP_ERR_OUT_OF_MEMORY;
    if (!task)
        goto done;
    host_task *host = task->payload;
    host->fn = fn;
    host->destroy = destroy;
    if (payload_bytes)
        memcpy(host->payload, payload, payload_bytes);
    task->run = run_host_task;
    task->destroy = destroy_host_task;
    status = dp_stream_append(stream, task);
    if (status != DP_OK)
        dp_task_discard(task);
done:
    dp_stream_release(stream);
    return status;
}

dp_status dp_task_threw(dp_stream *stream, const char *what, const char *type) {
    dp_status status = dp_fail(
        DP_ERR_STATE, "%s threw a C++ exception%s%s%s and did not catch it; its caller is C, so catch it inside", what,
        type[0] ? " (" : "", type, type[0] ? ")" : "");
    dp_log("runtime", DP_LOG_ERROR, "%s", dp_fail_message());
    if (stream)
        dp_stream_fail(stream, status, dp_fail_message());
    return status;
}

typedef struct host_function {
    void (*fn)(void *);
    void *user_data;
} host_function;

/* The thread may be one that waits in a synchronise: what the function makes current there must not stay. */
static dp_task_state run_host_function(dp_task *task) {
    host_function *function = task->payload;
    void *context = dp_context_thread_handle();
    dp_report_order(DP_HOST_WAITED, task->stream->queue, task->number - 1, 0, 0); /* it may tell other threads */
    char type[128];
    if (!dp_call_guarded(function->fn, function->user_data, type, sizeof type))
        dp_task_threw(task->stream, "a host function", type);
    dp_context_set_thread_handle(context);
    return DP_TASK_DONE;
}

dp_status dp_task_host_function(void *handle, void (*fn)(void *), void *user_data) {
    if (!fn)
        return dp_fail(DP_ERR_ARGUMENT, "func is NULL, but must be the function to call");
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_task *task = dp_task_new(stream, "host function", sizeof(host_function));
    status = DP_ERR_OUT_OF_MEMORY;
    if (!task)
        goto done;
    *(host_function *)task->payload = (host_function){fn, user_data};
    task->run = run_host_function;
    status = dp_stream_append(stream, task);
    if (status != DP_OK)
        dp_task_discard(task);
done:
    dp_stream_release(stream);
    return status;
}
