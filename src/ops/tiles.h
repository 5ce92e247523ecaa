/*
 * tiles.h - independent pieces of work on the pool, each thread with scratch of its own.
 */
#ifndef DOPPEL_OPS_TILES_H
#define DOPPEL_OPS_TILES_H

#include "ops/op.h"

/*
 * The workspace of a plan, divided up while it is prepared: dp_workspace_take returns the offset of a part of
 * count * size bytes, aligned to 64. Products that overflow or pass any memory make `failed` true.
 */
typedef struct dp_workspace {
    uint64_t bytes;
    bool failed;
} dp_workspace;
uint64_t dp_workspace_take(dp_workspace *workspace, int64_t count, size_t size);
/* Gives the plan its workspace; refuses what failed. */
dp_status dp_workspace_set(const dp_workspace *workspace, dp_plan *plan);
/* A part while the plan runs. */
void *dp_workspace_at(const dp_plan *plan, uint64_t offset);

/*
 * Runs fn for every tile < count, in any order, on this thread and idle workers; returns when all are done. Scratch is
 * the thread's (base/scratch.h), not workspace: programs of the chip allocate buffers a little too small and depend on
 * what stands behind them.
 */
typedef void (*dp_tile_fn)(void *context, size_t tile, void *scratch);
dp_status dp_tiles_run(size_t count, size_t scratch_bytes, dp_tile_fn fn, void *context);

#endif
