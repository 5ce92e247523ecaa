#include "ops/tiles.h"

#include <stdatomic.h>

#include "base/scratch.h"
#include "runtime/pool.h"

enum { ALIGN = 64 };
#define WORKSPACE_MAX ((uint64_t)1 << 48)

uint64_t dp_workspace_take(dp_workspace *w, int64_t count, size_t size) {
    uint64_t bytes, offset = w->bytes;
    if (__builtin_mul_overflow((uint64_t)count, (uint64_t)size, &bytes) || bytes > WORKSPACE_MAX ||
        offset > WORKSPACE_MAX) {
        w->failed = true;
        return 0;
    }
    w->bytes = offset + (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return offset;
}

dp_status dp_workspace_set(const dp_workspace *w, dp_plan *plan) {
    if (w->failed || w->bytes > WORKSPACE_MAX)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s needs more workspace for tensors of this size than any machine has",
                       plan->op->name);
    plan->workspace_bytes = w->bytes ? w->bytes + ALIGN : 0; /* the caller's may begin anywhere */
    return DP_OK;
}

void *dp_workspace_at(const dp_plan *plan, uint64_t offset) {
    uintptr_t base = ((uintptr_t)plan->workspace + ALIGN - 1) / ALIGN * ALIGN;
    return (void *)(base + offset);
}

typedef struct job {
    size_t scratch_bytes;
    dp_tile_fn fn;
    void *context;
    _Atomic bool failed;
} job;

static void run_tiles(void *context, size_t begin, size_t end) {
    job *j = context;
    void *scratch = j->scratch_bytes ? dp_scratch(j->scratch_bytes) : NULL;
    if (j->scratch_bytes && !scratch) {
        atomic_store(&j->failed, true);
        return;
    }
    for (size_t tile = begin; tile < end; tile++)
        j->fn(j->context, tile, scratch);
}

dp_status dp_tiles_run(size_t count, size_t scratch_bytes, dp_tile_fn fn, void *context) {
    job j = {.scratch_bytes = scratch_bytes, .fn = fn, .context = context};
    dp_pool_for_each(count, run_tiles, &j);
    if (atomic_load(&j.failed))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for scratch of %zu bytes", scratch_bytes);
    return DP_OK;
}
