/*
 * event.h - points in streams: record, wait, query, elapsed time.
 *
 * A wait means the latest record queued before the wait was queued; recording again does not disturb waits queued
 * earlier. An event that was never recorded: query says not complete; wait and synchronise have nothing to wait for.
 */
#ifndef DOPPEL_RUNTIME_EVENT_H
#define DOPPEL_RUNTIME_EVENT_H

#include "base/status.h"

/* A flag: in captured graphs (capture.h) the event is recorded, waited for and reset by every run. */
#define DP_EVENT_EXTERNAL 0x20u

dp_status dp_event_create(uint32_t flags, void **out_event);
/* Queued records and waits keep what they need. */
dp_status dp_event_destroy(void *event);
dp_status dp_event_flags(void *event, uint32_t *out_flags);

dp_status dp_event_record(void *event, void *stream);
/* Queues on `stream` a wait for the event. */
dp_status dp_event_wait(void *event, void *stream);
/* Queues on `stream` the return of the event to "never recorded". */
dp_status dp_event_reset(void *event, void *stream);

/* timeout_ms -1 = no limit; DP_ERR_TIMEOUT. */
dp_status dp_event_synchronise(void *event, int32_t timeout_ms);
/* True when the latest record has been executed. */
dp_status dp_event_query(void *event, bool *out_recorded);
/* True when no queued wait for this event is outstanding. */
dp_status dp_event_query_waits(void *event, bool *out_complete);

/* Milliseconds between the executed records of two events. DP_ERR_STATE when one was not recorded yet. */
dp_status dp_event_elapsed_ms(void *start, void *end, float *out_ms);
/* CLOCK_MONOTONIC nanoseconds of the executed record. DP_ERR_STATE when not recorded yet. */
dp_status dp_event_timestamp_ns(void *event, uint64_t *out_ns);

#endif
