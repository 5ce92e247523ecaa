/*
 * callback_state.h - subscriptions across a fork and at a stream's end. For the files of this folder only.
 */
#ifndef DOPPEL_RUNTIME_CALLBACK_STATE_H
#define DOPPEL_RUNTIME_CALLBACK_STATE_H

#include "runtime/stream_queue.h"

/* Ends the subscription of a stream that is being destroyed. */
void dp_callback_stream_ends(dp_stream *stream);

void dp_callback_fork_prepare(void);
void dp_callback_fork_parent(void);
void dp_callback_fork_child(void);

#endif
