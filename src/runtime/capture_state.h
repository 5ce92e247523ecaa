/*
 * capture_state.h - captures and recordings, for the files of this folder.
 */
#ifndef DOPPEL_RUNTIME_CAPTURE_STATE_H
#define DOPPEL_RUNTIME_CAPTURE_STATE_H

#include "runtime/capture.h"
#include "runtime/stream_queue.h"

/* A task that is run any number of times, on behalf of whoever holds a reference. */
typedef struct dp_recorded {
    _Atomic uint32_t references;
    dp_task *task; /* never queued itself */
} dp_recorded;

typedef struct dp_task_group {
    void *self; /* handle */
    struct dp_recording *recording;
    struct dp_task_group *next;
} dp_task_group;

typedef struct dp_step {
    dp_recorded *work;
    dp_task_group *group; /* NULL: none */
    uint32_t stream_id;
} dp_step;

typedef struct dp_steps {
    dp_step *items;
    size_t count, room;
} dp_steps;

typedef struct dp_recording {
    void *self; /* handle */
    uint32_t id;
    bool capturing;
    dp_stream *origin; /* of the capture; compared only */
    dp_steps steps;
    dp_task_group *groups, *open_group;
    dp_stream *last_run; /* one reference: where the latest run was queued */
} dp_recording;

/* Why a stream keeps what is queued on it. */
typedef struct dp_capture {
    dp_recording *recording;
    dp_task_group *replaced; /* of an update, whose tasks go to `steps`; NULL: a capture */
    dp_steps steps;
} dp_capture;

/* Guards everything above. May be taken under a stream's lock; under it only allocations, handles and events' locks. */
void dp_capture_lock(void);
void dp_capture_unlock(void);

static inline bool dp_stream_is_captured(dp_stream *stream) {
    return DP_UNLIKELY(atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL);
}
/* DP_OK, or DP_ERR_CAPTURED with a sentence: the stream cannot do `what` now. */
dp_status dp_capture_refuse(dp_stream *stream, const char *what);
/* Keeps the task, in place of queueing it. */
dp_status dp_capture_take(dp_stream *stream, dp_task *task);
/* Number of the capture the stream takes part in, 0: none (an update counts as none). */
uint32_t dp_capture_id(dp_stream *stream);
/* The stream takes part in that capture from now on. True when the capture still goes on. */
bool dp_capture_join(dp_stream *stream, uint32_t id, dp_status *out_status);
/* The stream ends: so does what it captures. */
void dp_capture_abandon(dp_stream *stream);

void dp_recorded_release(dp_recorded *work);
/* replay.c: swaps the tasks of a group for those of an update, which are as many. Takes over their references. */
void dp_recording_replace(dp_recording *recording, const dp_task_group *group, dp_steps *steps);

void dp_capture_fork_prepare(void);
void dp_capture_fork_done(void);

#endif
