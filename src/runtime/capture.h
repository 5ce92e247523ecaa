/*
 * capture.h - work that is recorded from streams once and run many times.
 *
 * Between begin and end, what is queued on the stream is checked as always, then kept instead of run. A stream that waits for an
 * event which was recorded on a stream of the capture takes part from there on; the order in which the host queued the work
 * is the order in which it runs again, so such events need no step of their own. Events made with DP_EVENT_EXTERNAL
 * (event.h) are recorded, waited for and reset anew by every run.
 *
 * While a stream takes part in a capture it cannot be waited for, queried, aborted or destroyed: DP_ERR_CAPTURED. What the
 * recorded work reads and writes must live as long as the recording is run.
 */
#ifndef DOPPEL_RUNTIME_CAPTURE_H
#define DOPPEL_RUNTIME_CAPTURE_H

#include <stdint.h>

#include "base/status.h"

/* DP_ERR_CAPTURED: it is being captured already. DP_ERR_UNSUPPORTED: a default stream. */
dp_status dp_capture_begin(void *stream);
/*
 * Ends the capture that began on this stream, for all streams that take part. The recording is the caller's:
 * dp_recording_destroy. DP_ERR_STATE: nothing is captured. DP_ERR_CAPTURED: the capture began on another stream, or a group is open.
 */
dp_status dp_capture_end(void *stream, void **out_recording);
/* The recording that the stream's work goes to, NULL when it is not captured. It stays the capture's. */
dp_status dp_capture_current(void *stream, void **out_recording);

/*
 * A group of tasks of the capture that can be replaced later. Groups do not nest. The handle is the recording's and ends with it.
 * DP_ERR_STATE: no capture, or no group open.
 */
dp_status dp_capture_group_begin(void *stream);
dp_status dp_capture_group_end(void *stream, void **out_group);
/*
 * What is queued between the two replaces the group's tasks: as many, in the same order (else DP_ERR_ARGUMENT, and nothing is replaced). It
 * takes effect in the order of `stream`; runs that reach the group later see the new tasks.
 */
dp_status dp_capture_update_begin(void *stream, void *group);
dp_status dp_capture_update_end(void *stream);

/* Queues one run. Runs of one recording on several streams follow each other. DP_ERR_CAPTURED: still being captured. */
dp_status dp_recording_execute(void *recording, void *stream);
/* Runs that are queued still happen. */
dp_status dp_recording_destroy(void *recording);
dp_status dp_recording_id(void *recording, uint32_t *out_id); /* from 1 */
/* Tells of every step, in the order of a run. `visit` must not capture. */
dp_status dp_recording_describe(void *recording,
                                void (*visit)(void *context, size_t step, const char *name, uint32_t stream_id),
                                void *context);

#endif
