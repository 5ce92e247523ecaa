#include "runtime/stream.h"

#include <stdio.h>

#include "runtime/callback_state.h"
#include "runtime/capture_state.h"
#include "runtime/handle.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

dp_stream *dp_stream_acquire(void *handle, const char *argument, dp_status *out_status) {
    if (handle) {
        dp_stream *stream = dp_handle_acquire(handle, DP_HANDLE_STREAM, argument);
        *out_status = stream ? DP_OK : DP_ERR_HANDLE;
        return stream;
    }
    dp_context *context = dp_context_acquire_current();
    *out_status = context ? DP_OK : DP_ERR_STATE;
    if (!context)
        return NULL;
    dp_stream *stream = context->default_stream;
    dp_handle_retain(stream->self);
    dp_handle_release(context->self);
    return stream;
}

dp_status dp_stream_create(uint32_t priority, void **out_stream) {
    if (!out_stream)
        return dp_fail(DP_ERR_ARGUMENT, "stream is NULL, but must point to where the new stream goes");
    if (priority >= DP_STREAM_PRIORITIES)
        return dp_fail(DP_ERR_ARGUMENT, "priority is %u, but must be 0 (highest) to %d", priority,
                       DP_STREAM_PRIORITIES - 1);
    dp_context *context = dp_context_acquire_current();
    if (!context)
        return DP_ERR_STATE;
    dp_stream *stream = NULL;
    dp_status status = dp_stream_new(context->device_id, context, false, priority, &stream);
    if (status == DP_OK) {
        *out_stream = stream->self;
        dp_report_object(DP_HOST_MADE, stream->device_id, stream->self, "stream");
    }
    dp_handle_release(context->self);
    return status;
}

dp_status dp_stream_destroy(void *handle, bool force) {
    dp_stream *stream = dp_handle_acquire(handle, DP_HANDLE_STREAM, "stream");
    if (!stream)
        return DP_ERR_HANDLE;
    dp_status status = DP_OK;
    if (stream->is_default)
        status = dp_fail(DP_ERR_STATE,
                         "stream %p is the default stream of a context; it ends with the context or device", handle);
    else if (stream == dp_stream_running())
        status = dp_fail(DP_ERR_STATE, "stream %p cannot be destroyed by one of its own tasks", handle);
    else
        status = dp_capture_refuse(stream, "destroyed");
    if (status == DP_OK) {
        dp_report_object(DP_HOST_DESTROYED, stream->device_id, handle, NULL);
        dp_stream_retire(stream, force);
        dp_callback_stream_ends(stream);
    }
    dp_stream_release(stream);
    return status;
}

dp_status dp_stream_synchronise(void *handle, int32_t timeout_ms) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    if (stream == dp_stream_running()) {
        status = dp_fail(DP_ERR_STATE, "a task of stream %u cannot wait for its own stream", stream->id);
        goto done;
    }
    status = dp_capture_refuse(stream, "waited for");
    if (status != DP_OK)
        goto done;
    status = dp_stream_wait(stream, atomic_load(&stream->submitted), dp_deadline_ns(timeout_ms));
    if (status == DP_ERR_KERNEL_TIMEOUT)
        goto done;
    if (status != DP_OK) {
        dp_fail(status, "stream %u still had work after timeout = %d ms", stream->id, timeout_ms);
        goto done;
    }
    pthread_mutex_lock(&stream->lock);
    if (DP_UNLIKELY(stream->status != DP_OK))
        status = dp_fail(stream->status, "%s", stream->error);
    pthread_mutex_unlock(&stream->lock);
done:
    dp_stream_release(stream);
    return status;
}

dp_status dp_stream_query(void *handle, bool *out_complete) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    status = dp_capture_refuse(stream, "asked for its progress");
    if (status == DP_OK) {
        uint64_t submitted = atomic_load(&stream->submitted);
        *out_complete = atomic_load(&stream->completed) >= submitted;
        if (*out_complete)
            dp_report_order(DP_HOST_WAITED, stream->queue, submitted, 0, 0);
    }
    dp_stream_release(stream);
    return status;
}

dp_status dp_stream_abort(void *handle) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    if (stream == dp_stream_running()) {
        status = dp_fail(DP_ERR_STATE, "a task of stream %u cannot abort its own stream", stream->id);
    } else if ((status = dp_capture_refuse(stream, "aborted")) == DP_OK) {
        dp_stream_drop_queued(stream);
        status = dp_stream_wait(stream, atomic_load(&stream->submitted), UINT64_MAX);
        if (status == DP_OK)
            dp_stream_clear_error(stream);
    }
    dp_stream_release(stream);
    return status;
}

dp_status dp_stream_id(void *handle, int32_t *out_id) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    *out_id = (int32_t)stream->id;
    dp_stream_release(stream);
    return DP_OK;
}

dp_status dp_stream_device(void *handle, int32_t *out_device_id) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    *out_device_id = (int32_t)stream->device_id;
    dp_stream_release(stream);
    return DP_OK;
}

dp_status dp_stream_priority(void *handle, uint32_t *out_priority) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    *out_priority = stream->priority;
    dp_stream_release(stream);
    return DP_OK;
}

dp_status dp_stream_set_failure_mode(void *handle, uint64_t mode) {
    if (mode > 1)
        return dp_fail(DP_ERR_ARGUMENT, "mode is %llu, but must be 0 (go on after a failure) or 1 (stop)",
                       (unsigned long long)mode);
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    pthread_mutex_lock(&stream->lock);
    stream->failure_mode = mode;
    atomic_store(&stream->stopped, mode == 1 && stream->status != DP_OK);
    pthread_mutex_unlock(&stream->lock);
    dp_stream_release(stream);
    return DP_OK;
}

dp_status dp_stream_error(void *handle, char *text, size_t text_bytes) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    pthread_mutex_lock(&stream->lock);
    status = stream->status;
    if (text && text_bytes)
        snprintf(text, text_bytes, "%s", stream->error);
    pthread_mutex_unlock(&stream->lock);
    dp_stream_release(stream);
    return status;
}

dp_status dp_stream_attribute_set(void *handle, uint32_t key, uint64_t value) {
    if (key >= DP_STREAM_ATTRIBUTES)
        return dp_fail(DP_ERR_ARGUMENT, "stmAttrType is %u, but must be 0 to %u", key, DP_STREAM_ATTRIBUTES - 1);
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    pthread_mutex_lock(&stream->lock);
    stream->attributes[key] = value;
    pthread_mutex_unlock(&stream->lock);
    dp_stream_release(stream);
    return DP_OK;
}

dp_status dp_stream_attribute_get(void *handle, uint32_t key, uint64_t *out_value) {
    if (key >= DP_STREAM_ATTRIBUTES)
        return dp_fail(DP_ERR_ARGUMENT, "stmAttrType is %u, but must be 0 to %u", key, DP_STREAM_ATTRIBUTES - 1);
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    pthread_mutex_lock(&stream->lock);
    *out_value = stream->attributes[key];
    pthread_mutex_unlock(&stream->lock);
    dp_stream_release(stream);
    return DP_OK;
}
