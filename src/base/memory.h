/*
 * memory.h - tagged heap memory of the library itself (not device memory).
 *
 * Every allocation carries a kind, so that peaks and leaks are reported per kind. DOPPEL_FAIL_ALLOC=N makes the N-th
 * allocation after start (and dp_mem_fail_after at run time) fail once: the injected-failure tests walk N through a run.
 */
#ifndef DOPPEL_BASE_MEMORY_H
#define DOPPEL_BASE_MEMORY_H

#include "doppel/abi.h"

typedef enum dp_mem_kind {
    DP_MEM_RUNTIME, /* handles, queues, tasks */
    DP_MEM_DEVICE,  /* core memories, launch state */
    DP_MEM_CHECK,   /* shadow memory, findings */
    DP_MEM_TRACE,   /* recorded instructions */
    DP_MEM_TOOL,    /* command line programs */
    DP_MEM_GRAPH,   /* models and their programs */
    DP_MEM_MEDIA,   /* pictures between two steps */
    DP_MEM_SCRATCH, /* what threads keep between pieces of work (scratch.h) */
    DP_MEM_KIND_COUNT
} dp_mem_kind;

/*
 * Zeroed memory, 64-byte aligned; NULL when exhausted (no sentence is recorded: the caller knows what it was for). Small
 * blocks of DP_MEM_RUNTIME are taken from those freed before, if there are any (block_cache.h).
 */
void *dp_alloc(dp_mem_kind kind, size_t size_bytes);
/* Grows or shrinks; new bytes are not zeroed. The old block stays valid when NULL is returned. */
void *dp_realloc(dp_mem_kind kind, void *block, size_t size_bytes);
void dp_free(void *block); /* NULL is allowed */

typedef struct dp_mem_stats {
    size_t live_bytes, live_blocks; /* not freed yet */
    size_t peak_bytes;              /* most that was held from the system: live and kept for reuse, with headers */
} dp_mem_stats;

dp_mem_stats dp_mem_stats_of(dp_mem_kind kind);
const char *dp_mem_kind_name(dp_mem_kind kind);

/* The n-th allocation from now (1 = the next) fails once; 0 cancels. Process-wide. */
void dp_mem_fail_after(long n);
/* Allocations still to come before the one that fails; 0 when none is due or it has failed. */
long dp_mem_fail_after_left(void);

#endif
