/*
 * device_state.h - what the files of this folder tell the devices. For them only.
 */
#ifndef DOPPEL_RUNTIME_DEVICE_STATE_H
#define DOPPEL_RUNTIME_DEVICE_STATE_H

#include "base/status.h"

/* A kernel ran for that long. */
void dp_device_add_busy(uint32_t device_id, uint64_t busy_ns);
/* Frees every allocation of the device (forced reset). */
void dp_device_memory_free_all(uint32_t device_id);

void dp_device_fork_prepare(void);
void dp_device_fork_parent(void);
void dp_device_fork_child(void);

#endif
