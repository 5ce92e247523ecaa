/*
 * block_cache.h - small blocks of heap memory that are kept for the next one who wants that size. A thread takes and keeps
 * without a lock; what one thread always takes and another always gives back goes round through a shared list.
 */
#ifndef DOPPEL_BASE_BLOCK_CACHE_H
#define DOPPEL_BASE_BLOCK_CACHE_H

#include "doppel/abi.h"

enum { DP_BLOCK_STEP = 64, DP_BLOCK_MAX = 4096 };

/* A block that was kept with this size, a multiple of DP_BLOCK_STEP; NULL: none is there. Its contents are undefined. */
void *dp_block_take(size_t size_bytes);
/* Keeps a block of malloc, 64-byte aligned. False: it is too large or there are enough of them; the caller frees it. */
bool dp_block_keep(void *block, size_t size_bytes);

#endif
