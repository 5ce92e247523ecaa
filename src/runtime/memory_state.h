/*
 * memory_state.h - device memory across a fork. For the files of this folder only.
 */
#ifndef DOPPEL_RUNTIME_MEMORY_STATE_H
#define DOPPEL_RUNTIME_MEMORY_STATE_H

void dp_device_memory_fork_prepare(void);
void dp_device_memory_fork_done(void);

#endif
