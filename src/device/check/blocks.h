/*
 * blocks.h - what the cores of one launch did to device memory, compared when the launch ends.
 *
 * Two cores that touch the same byte, one of them writing, must be ordered (SyncAll, IBSet/IBWait, cross-core flags) or
 * both use atomics. Where they are ordered, what the first left in its data cache must not be read by the second. Order is kept as one vector clock per core, joined through one clock of the launch: a wait may learn
 * a little too much, so that correct kernels are never accused.
 */
#ifndef DOPPEL_DEVICE_CHECK_BLOCKS_H
#define DOPPEL_DEVICE_CHECK_BLOCKS_H

#include "device/core.h"

/* CACHED: bytes that the core's scalar unit wrote and left in its data cache, in addition to the write itself. */
enum { DP_SPAN_READ = 1, DP_SPAN_WRITE = 2, DP_SPAN_ATOMIC = 4, DP_SPAN_CACHED = 8 };

/* One contiguous access of a core to device memory. */
typedef struct dp_span {
    uintptr_t begin, end;
    uint32_t core;
    uint32_t epoch; /* of the core: counts its cross-core operations, from 1 */
    uint32_t site;
    uint32_t mode;
} dp_span;

/* The spans of one core; neighbouring accesses from one place become one span. */
typedef struct dp_spans {
    dp_span *list;
    size_t count, room;
    uint64_t lost; /* accesses without room */
    uint32_t open[8]; /* index + 1 of a span that may still grow, by site */
} dp_spans;

void dp_spans_add(dp_spans *spans, uintptr_t begin, size_t bytes, uint32_t epoch, uint32_t site, uint32_t mode);
/* Sorts, joins what touches and is alike. */
void dp_spans_compact(dp_spans *spans);

/* Cross-core state of one launch. */
typedef struct dp_blocks dp_blocks;

/* NULL when memory is exhausted. cores: of the launch. */
dp_blocks *dp_blocks_create(uint32_t cores);
void dp_blocks_destroy(dp_blocks *blocks);

/* Core `core` raises a cross-core flag: what it did up to `epoch` may now be known to others. Returns its next epoch. */
uint32_t dp_blocks_raise(dp_blocks *blocks, uint32_t core, uint32_t epoch);
/* It has waited for one. Returns its next epoch. */
uint32_t dp_blocks_wait(dp_blocks *blocks, uint32_t core, uint32_t epoch);
/* The core's block ended: takes its spans. */
void dp_blocks_take(dp_blocks *blocks, uint32_t core, dp_spans *spans);

/* Two unordered accesses of [begin, end); a came first in address order. */
typedef void (*dp_conflict_fn)(void *context, const dp_span *a, const dp_span *b, uintptr_t begin, uintptr_t end);
/* After the last block: finds the conflicts, at most one per pair of spans. */
void dp_blocks_sweep(dp_blocks *blocks, dp_conflict_fn conflict, void *context);
/* All accesses of all cores, in no order; valid until the blocks are destroyed. */
const dp_span *dp_blocks_spans(const dp_blocks *blocks, size_t *out_count);
uint64_t dp_blocks_lost(const dp_blocks *blocks);

#endif
