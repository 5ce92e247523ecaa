/*
 * callback.h - callbacks that a user's own thread runs: subscribe, launch, process.
 */
#ifndef DOPPEL_RUNTIME_CALLBACK_H
#define DOPPEL_RUNTIME_CALLBACK_H

#include "base/status.h"

/*
 * Reports of `stream` go to the thread with pthread id `thread_id`. A thread may serve several streams, a stream has
 * one thread: a second subscription is DP_ERR_STATE.
 */
dp_status dp_callback_subscribe(uint64_t thread_id, void *stream);
/* DP_ERR_STATE if that pair is not subscribed. Reports not yet processed still run when the thread asks, or are dropped
 * with it. */
dp_status dp_callback_unsubscribe(uint64_t thread_id, void *stream);
/*
 * Queues fn(user_data) for the subscribed thread. blocking: later tasks of the stream wait until it has run.
 * DP_ERR_STATE when the stream has no subscriber.
 */
dp_status dp_callback_launch(void *stream, void (*fn)(void *), void *user_data, bool blocking);
/*
 * Runs one report of the calling thread, waiting up to timeout_ms (-1 = no limit) for it. DP_ERR_TIMEOUT when none
 * came; DP_ERR_BUSY when the thread is not subscribed (it waits up to 100 ms for a subscription first) or the last
 * subscription ended: no misuse, threads that serve callbacks begin earlier and end later than the subscription.
 */
dp_status dp_callback_process(int32_t timeout_ms);

#endif
