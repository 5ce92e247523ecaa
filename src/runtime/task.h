/*
 * task.h - host work in a stream: what operators, media and user host functions queue.
 */
#ifndef DOPPEL_RUNTIME_TASK_H
#define DOPPEL_RUNTIME_TASK_H

#include "base/status.h"

/*
 * Runs on a worker, or on a host thread that waits for the stream. A failure (with dp_fail's sentence) becomes the
 * stream's error. It may use dp_pool_for; it must not wait for its own stream.
 */
typedef dp_status (*dp_task_fn)(void *payload);

/*
 * Queues fn(payload copy) on `stream` (NULL = default). payload_bytes may be 0; `name` must stay valid and is used in
 * reports. destroy (may be NULL) is called exactly once with the payload copy after fn, also when the task is dropped;
 * when dp_task_submit itself fails, destroy is not called.
 */
dp_status dp_task_submit(void *stream, const char *name, dp_task_fn fn, void (*destroy)(void *payload),
                         const void *payload, size_t payload_bytes);

/* aclrtLaunchHostFunc: fn(user_data) in stream order. */
dp_status dp_task_host_function(void *stream, void (*fn)(void *), void *user_data);

#endif
