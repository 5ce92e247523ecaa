/*
 * stream.h - in-order queues of tasks, asynchronous to the host.
 *
 * `stream` NULL means the default stream of the current context (DP_ERR_STATE when the thread has no context). A stream
 * may be used from any thread and any context. Destroyed and invented handles: DP_ERR_HANDLE.
 *
 * Errors: a task that fails marks its stream. Every later synchronise of that stream (and of the device) returns the
 * status and its sentence until the stream is destroyed, aborted, or the device reset; other streams are not touched.
 * Later tasks of the stream still run, unless the failure mode is "stop".
 */
#ifndef DOPPEL_RUNTIME_STREAM_H
#define DOPPEL_RUNTIME_STREAM_H

#include "base/status.h"

/* `priority` 0 (highest) to 7 is kept and can be read back; ready streams of a smaller priority go first. */
dp_status dp_stream_create(uint32_t priority, void **out_stream);
/*
 * Waits until the queued work is done, then destroys. force: drops what has not begun. Default streams are refused
 * (DP_ERR_STATE), as is a stream whose own task calls this.
 */
dp_status dp_stream_destroy(void *stream, bool force);

/* timeout_ms: -1 = no limit; DP_ERR_TIMEOUT. DP_ERR_STATE from inside a task of the same stream. */
dp_status dp_stream_synchronise(void *stream, int32_t timeout_ms);
/* True when everything queued so far is done. */
dp_status dp_stream_query(void *stream, bool *out_complete);
/* Drops what has not begun, waits for the running task, clears the error. */
dp_status dp_stream_abort(void *stream);

dp_status dp_stream_id(void *stream, int32_t *out_id); /* 0 = a default stream; others count from 1 */
dp_status dp_stream_device(void *stream, int32_t *out_device_id);
dp_status dp_stream_priority(void *stream, uint32_t *out_priority);
/* 0: go on after a failed task (default); 1: stop, later tasks are dropped. Others DP_ERR_ARGUMENT. */
dp_status dp_stream_set_failure_mode(void *stream, uint64_t mode);
/* Status and sentence the stream carries; DP_OK and "" when none. The sentence is copied into text. */
dp_status dp_stream_error(void *stream, char *text, size_t text_bytes);

/* A free-standing integer attribute that the vendor's API lets users set and read back. key < DP_STREAM_ATTRIBUTES. */
#define DP_STREAM_ATTRIBUTES 8u
dp_status dp_stream_attribute_set(void *stream, uint32_t key, uint64_t value);
dp_status dp_stream_attribute_get(void *stream, uint32_t key, uint64_t *out_value);

#endif
