/*
 * device.h - the devices of this process and the calling thread's current one.
 *
 * DOPPEL_DEVICES=n (default 1, at most 64) gives n devices, all of the chip dp_chip_current().
 * ASCEND_RT_VISIBLE_DEVICES is a comma list of them that the process may see, renumbered from 0; as with the vendor,
 * the list ends at the first entry that is not a device. Everything is thread-safe. Every function that fails has
 * recorded a sentence (dp_fail) which names the argument as the vendor's API does.
 */
#ifndef DOPPEL_RUNTIME_DEVICE_H
#define DOPPEL_RUNTIME_DEVICE_H

#include "base/status.h"

#define DP_DEVICE_MAX 64u

/*
 * First use of the runtime: reads the environment, installs the observer DOPPEL_MODE asks for. Called by every entry of
 * this floor that needs it; calling it again is free. Never fails.
 */
void dp_runtime_start(void);

uint32_t dp_device_count(void);
/* DP_OK, or DP_ERR_NOT_FOUND with "deviceId is 3, but there are 2 devices (0 to 1) ...". */
dp_status dp_device_check(int32_t device_id);

/*
 * Makes `device_id` current for this thread: its default context (made on first use, with a default stream) becomes the
 * current context. A thread counts once however often it calls. DP_ERR_NOT_FOUND, DP_ERR_OUT_OF_MEMORY.
 */
dp_status dp_device_set(int32_t device_id);
/* Device of the current context. DP_ERR_STATE when the thread has none. */
dp_status dp_device_get(int32_t *out_device_id);
/*
 * Takes back this thread's dp_device_set. When no thread uses the device any more: waits for all its work, then ends
 * the default context and default stream. Streams, events and memory the user made stay valid until the user destroys
 * them (ggml frees both after the reset). force: whatever other threads did, without waiting for unfinished work, and
 * device memory is freed.
 */
dp_status dp_device_reset(int32_t device_id, bool force);

/* Waits for all streams of the current device; returns the first stream error. timeout_ms -1 = no limit. */
dp_status dp_device_synchronise(int32_t timeout_ms);
/* Drops everything queued on the device and waits until what runs has ended. */
dp_status dp_device_abort(int32_t device_id, int32_t timeout_ms);

/* Whether the default context exists. */
dp_status dp_device_is_active(int32_t device_id, bool *out_active);
/* Share of the time since the previous call (or start) during which kernels ran, 0..100. */
dp_status dp_device_utilisation(int32_t device_id, int32_t *out_percent);
/* Number of the device before ASCEND_RT_VISIBLE_DEVICES renumbered it. */
dp_status dp_device_physical_id(int32_t device_id, int32_t *out_physical_id);

#endif
