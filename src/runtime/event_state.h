/*
 * event_state.h - records of events. For the files of this folder only.
 */
#ifndef DOPPEL_RUNTIME_EVENT_STATE_H
#define DOPPEL_RUNTIME_EVENT_STATE_H

void dp_event_fork_prepare(void);
void dp_event_fork_done(void);

#endif
