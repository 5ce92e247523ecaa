/*
 * report.h - the last error as aclGetRecentErrMsg shows it, and what the observers are told about host calls.
 */
#ifndef DOPPEL_RUNTIME_REPORT_H
#define DOPPEL_RUNTIME_REPORT_H

#include "base/status.h"
#include "device/observer.h"

/*
 * Called by the API around its work on this thread so that allocation, copy and fault events carry the API function's
 * name and the caller's return address. NULL, NULL ends it.
 */
void dp_report_enter(const char *api_name, const void *caller);
void dp_report_leave(void);
/* What dp_report_enter was last told on this thread; NULL outside API calls. */
void dp_report_current(const char **out_api_name, const void **out_caller);

/* Keeps "E<vendor code>: aclrtFoo: <dp_fail_message()>" as this thread's recent error and tells the observer
 * (DP_HOST_FAULT). */
void dp_report_fault(const char *api_name, int vendor_code, const void *caller, dp_loc loc);
/* The recent error of this thread, then forgets it; NULL when there is none. Valid until the thread's next call. */
const char *dp_report_recent(void);

/* Forwards to the observer with name, caller, and time filled in from dp_report_enter. Cheap when nobody looks. */
void dp_report_memory(dp_host_event_kind kind, uint32_t device_id, void *dst, const void *src, size_t size_bytes);
/* The order of queues: DP_HOST_QUEUED to DP_HOST_CLOSED, see dp_host_event. Numbers not needed are 0. */
void dp_report_order(dp_host_event_kind kind, uint64_t queue, uint64_t task, uint64_t after_queue, uint64_t after_task);
/* DP_HOST_MADE, _DESTROYED and _RESET. what may be NULL but for the first. */
void dp_report_object(dp_host_event_kind kind, uint32_t device_id, void *handle, const char *what);
/* An API call ended: DP_HOST_CALL. */
void dp_report_call(uint64_t begin_ns, int vendor_code, void *stream);
bool dp_report_wanted(void); /* an observer with host() is installed */

uint64_t dp_clock_ns(void); /* CLOCK_MONOTONIC */

#endif
