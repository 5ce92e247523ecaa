/*
 * launch_sync.h - the flag counters behind cross.c. Not for other floors.
 */
#ifndef DOPPEL_DEVICE_LAUNCH_SYNC_H
#define DOPPEL_DEVICE_LAUNCH_SYNC_H

#include "device/sync.h"

/*
 * Raises a flag as `core` does it. Mode 0: when every core of the kind has, each of them may pass once. Mode 1:
 * likewise among the vector cores of the block. Mode 2: the cube core lets each vector core of its block pass; vector
 * cores let the cube core pass when all of them have raised. False: a counter would exceed DP_CROSS_MAX_PENDING;
 * nothing changes.
 */
bool dp_launch_sync_raise(dp_launch_sync *sync, const dp_core *core, unsigned mode, unsigned flag);
/* May core pass a wait on the flag now? */
bool dp_launch_sync_ready(const dp_launch_sync *sync, const dp_core *core, unsigned flag);
/* Takes one; only after ready was true, and only by the core itself. */
void dp_launch_sync_take(dp_launch_sync *sync, const dp_core *core, unsigned flag);
/* "not raised by vector core 3 (has ended), ...": who keeps `core` from passing. */
void dp_launch_sync_missing(dp_launch_sync *sync, const dp_core *core, unsigned mode, unsigned flag, char *text,
                            size_t text_bytes);
uint32_t dp_launch_sync_aiv_count(const dp_launch_sync *sync);
uint32_t dp_launch_sync_aic_count(const dp_launch_sync *sync);

#endif
