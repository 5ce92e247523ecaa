/*
 * sync.h - what the cores of one launch share: the cross-core flags, and who has ended.
 *
 * One object per launch, made by the scheduler before the first block and put in core->sync of every core it uses.
 * Thread-safe. Core identity: core->kind, block_idx and sub_block_idx (vector core 0..n-1 of its block).
 */
#ifndef DOPPEL_DEVICE_SYNC_H
#define DOPPEL_DEVICE_SYNC_H

#include "base/status.h"
#include "device/core.h"

enum {
    DP_CROSS_FLAGS = 16,
    DP_CROSS_MODES = 3,
    DP_CROSS_MAX_PENDING = 15, /* sets of one flag nobody has waited for */
    /* flags the hard SyncAll uses (kernel-semantics section 13) */
    DP_CROSS_AIC_MEET = 11,
    DP_CROSS_AIV_TO_AIC = 12,
    DP_CROSS_AIC_TO_AIV = 13,
    DP_CROSS_AIV_MEET = 14
};

typedef struct dp_launch_sync dp_launch_sync;

/* core_mix: dp_core_mix. NULL with a sentence when memory is exhausted. */
dp_launch_sync *dp_launch_sync_create(uint32_t blocks, unsigned core_mix);
void dp_launch_sync_destroy(dp_launch_sync *sync); /* NULL is allowed */

/* The core's block has returned or was abandoned: waiting cores then say "has ended" in a deadlock report. */
void dp_launch_sync_core_ended(dp_launch_sync *sync, const dp_core *core);

#endif
