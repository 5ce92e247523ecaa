#include "runtime/report.h"

#include <stdio.h>
#include <time.h>

#include "base/thread_texts.h"
#include "runtime/handle.h"
#include "runtime/stream_queue.h"

static _Thread_local const char *api_call;
static _Thread_local const void *api_caller;

uint64_t dp_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void dp_report_enter(const char *api_name, const void *caller) {
    api_call = api_name;
    api_caller = caller;
}

void dp_report_leave(void) {
    api_call = NULL;
    api_caller = NULL;
}

void dp_report_current(const char **out_api_name, const void **out_caller) {
    *out_api_name = api_call;
    *out_caller = api_caller;
}

bool dp_report_wanted(void) {
    const dp_observer *observer = dp_observer_current();
    return observer && observer->host;
}

void dp_report_fault(const char *api_name, int vendor_code, const void *caller, dp_loc loc) {
    const char *sentence = dp_fail_message();
    dp_thread_texts *texts = dp_thread_texts_current();
    snprintf(texts->recent, sizeof texts->recent, "E%d: %s: %s", vendor_code, api_name, sentence[0] ? sentence : "failed");
    if (!dp_report_wanted())
        return;
    uint64_t now = dp_clock_ns();
    dp_observer_host_event(&(dp_host_event){.kind = DP_HOST_FAULT,
                                            .name = api_name,
                                            .begin_ns = now,
                                            .end_ns = now,
                                            .status = vendor_code,
                                            .caller = caller,
                                            .loc = loc,
                                            .message = sentence,
                                            .reason = dp_fail_status()});
}

const char *dp_report_recent(void) {
    dp_thread_texts *texts = dp_thread_texts_current();
    if (!texts->recent[0])
        return NULL;
    snprintf(texts->shown, sizeof texts->shown, "%s", texts->recent);
    texts->recent[0] = '\0';
    return texts->shown;
}

void dp_report_memory(dp_host_event_kind kind, uint32_t device_id, void *dst, const void *src, size_t size_bytes) {
    if (DP_LIKELY(!dp_report_wanted()))
        return;
    uint64_t now = dp_clock_ns();
    const dp_stream *stream = dp_stream_running();
    dp_observer_host_event(&(dp_host_event){.kind = kind,
                                            .name = api_call,
                                            .begin_ns = now,
                                            .end_ns = now,
                                            .device_id = device_id,
                                            .dst = dst,
                                            .src = src,
                                            .size_bytes = size_bytes,
                                            .caller = api_caller,
                                            .queue = stream ? stream->queue : 0,
                                            .task = stream ? stream->head->number : 0});
}

void dp_report_order(dp_host_event_kind kind, uint64_t queue, uint64_t task, uint64_t after_queue, uint64_t after_task) {
    if (DP_LIKELY(!dp_report_wanted()))
        return;
    dp_observer_host_event(&(dp_host_event){.kind = kind,
                                            .name = api_call,
                                            .caller = api_caller,
                                            .queue = queue,
                                            .task = task,
                                            .after_queue = after_queue,
                                            .after_task = after_task});
}

void dp_report_object(dp_host_event_kind kind, uint32_t device_id, void *handle, const char *what) {
    if (DP_LIKELY(!dp_report_wanted()))
        return;
    dp_observer_host_event(&(dp_host_event){
        .kind = kind, .name = api_call, .caller = api_caller, .device_id = device_id, .dst = handle, .message = what});
}

void dp_report_call(uint64_t begin_ns, int vendor_code, void *stream_handle) {
    if (!dp_report_wanted())
        return;
    uint32_t stream_id = 0, device_id = 0;
    dp_stream *stream = stream_handle ? dp_handle_acquire(stream_handle, DP_HANDLE_STREAM, "stream") : NULL;
    if (stream) {
        stream_id = stream->id;
        device_id = stream->device_id;
        dp_stream_release(stream);
    }
    dp_observer_host_event(&(dp_host_event){.kind = DP_HOST_CALL,
                                            .name = api_call,
                                            .begin_ns = begin_ns,
                                            .end_ns = dp_clock_ns(),
                                            .stream_id = stream_id,
                                            .device_id = device_id,
                                            .status = vendor_code,
                                            .caller = api_caller});
}
