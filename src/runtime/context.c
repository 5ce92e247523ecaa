#include "runtime/context.h"

#include "base/memory.h"
#include "runtime/context_state.h"
#include "runtime/device.h"
#include "runtime/handle.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

static _Thread_local void *current;

void *dp_context_thread_handle(void) {
    return current;
}
void dp_context_set_thread_handle(void *context) {
    current = context;
}

static void destroy_context(void *object) {
    dp_context *context = object;
    if (context->default_stream)
        dp_stream_release(context->default_stream);
    dp_free(context);
}

dp_status dp_context_new(uint32_t device_id, bool is_primary, dp_context **out_context) {
    dp_status status;
    dp_context *context = dp_alloc(DP_MEM_RUNTIME, sizeof *context);
    if (!context)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a context (%zu bytes)", sizeof *context);
    context->device_id = device_id;
    context->is_primary = is_primary;
    status = dp_stream_new(device_id, NULL, true, DP_STREAM_PRIORITIES / 2, &context->default_stream);
    if (status != DP_OK)
        goto fail;
    dp_handle_retain(context->default_stream->self); /* the handle itself belongs to the stream */
    status = DP_ERR_OUT_OF_MEMORY;
    context->self = dp_handle_create(DP_HANDLE_CONTEXT, context, destroy_context);
    if (!context->self)
        goto fail;
    *out_context = context;
    return DP_OK;
fail:
    if (context->default_stream)
        dp_handle_close(context->default_stream->self);
    destroy_context(context);
    return status;
}

void dp_context_retire(dp_context *context, bool force) {
    dp_stream_retire(context->default_stream, force);
    dp_handle_close(context->self);
}

dp_context *dp_context_acquire_current(void) {
    dp_context *context = NULL;
    if (!current) {
        dp_fail(DP_ERR_STATE,
                "this thread has no current context; call aclrtSetDevice or aclrtSetCurrentContext first");
        return NULL;
    }
    context = dp_handle_acquire(current, DP_HANDLE_CONTEXT, "the current context");
    if (!context)
        dp_fail(DP_ERR_STATE,
                "the current context of this thread was destroyed or its device reset; call aclrtSetDevice or "
                "aclrtSetCurrentContext again");
    return context;
}

dp_status dp_context_current_device(uint32_t *out_device_id) {
    dp_context *context = dp_context_acquire_current();
    if (!context)
        return DP_ERR_STATE;
    *out_device_id = context->device_id;
    dp_handle_release(context->self);
    return DP_OK;
}

void dp_context_settle_default_stream(void) {
    if (!current)
        return;
    dp_context *context = dp_handle_acquire(current, DP_HANDLE_CONTEXT, "the current context");
    if (!context) {
        dp_fail_clear();
        return;
    }
    dp_stream *stream = context->default_stream;
    if (dp_stream_running() != stream)
        dp_stream_wait(stream, atomic_load(&stream->submitted), UINT64_MAX);
    dp_handle_release(context->self);
}

dp_status dp_context_create(int32_t device_id, void **out_context) {
    if (!out_context)
        return dp_fail(DP_ERR_ARGUMENT, "context is NULL, but must point to where the new context goes");
    dp_status status = dp_device_check(device_id);
    if (status != DP_OK)
        return status;
    dp_context *context;
    status = dp_context_new((uint32_t)device_id, false, &context);
    if (status != DP_OK)
        return status;
    *out_context = current = context->self;
    return DP_OK;
}

dp_status dp_context_destroy(void *handle) {
    dp_status status = DP_OK;
    dp_context *context = dp_handle_acquire(handle, DP_HANDLE_CONTEXT, "context");
    if (!context)
        return DP_ERR_HANDLE;
    dp_stream *running = dp_stream_running();
    if (context->is_primary)
        status = dp_fail(DP_ERR_STATE,
                         "context %p is the default context of device %u, which aclrtSetDevice made; "
                         "aclrtResetDevice ends it",
                         handle, context->device_id);
    else if (running == context->default_stream)
        status = dp_fail(DP_ERR_STATE, "context %p cannot be destroyed by a task of its own default stream", handle);
    else
        dp_context_retire(context, false);
    if (status == DP_OK)
        dp_report_object(DP_HOST_RESET, context->device_id, handle, NULL);
    if (status == DP_OK && current == handle)
        current = NULL;
    dp_handle_release(handle);
    return status;
}

dp_status dp_context_set_current(void *handle) {
    if (!dp_handle_acquire(handle, DP_HANDLE_CONTEXT, "context"))
        return DP_ERR_HANDLE;
    dp_handle_release(handle);
    current = handle;
    return DP_OK;
}

dp_status dp_context_current(void **out_context) {
    if (!out_context)
        return dp_fail(DP_ERR_ARGUMENT, "context is NULL, but must point to where the current context goes");
    dp_context *context = dp_context_acquire_current();
    if (!context)
        return DP_ERR_STATE;
    *out_context = context->self;
    dp_handle_release(context->self);
    return DP_OK;
}

dp_status dp_context_device(void *handle, int32_t *out_device_id) {
    dp_context *context = dp_handle_acquire(handle, DP_HANDLE_CONTEXT, "context");
    if (!context)
        return DP_ERR_HANDLE;
    *out_device_id = (int32_t)context->device_id;
    dp_handle_release(handle);
    return DP_OK;
}
