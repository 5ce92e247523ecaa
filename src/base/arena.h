/*
 * arena.h - memory that is given back all at once: what a graph and its passes are made of.
 */
#ifndef DOPPEL_BASE_ARENA_H
#define DOPPEL_BASE_ARENA_H

#include "base/memory.h"

typedef struct dp_arena_block dp_arena_block;

/* Zero-initialised (with a kind) it is empty and ready. One thread at a time. */
typedef struct dp_arena {
    dp_mem_kind kind;
    dp_arena_block *last;
    size_t used_bytes; /* of the last block */
} dp_arena;

/* Zeroed, aligned to 64 bytes from 64 bytes on and to 16 below; NULL when memory is exhausted (no sentence). */
void *dp_arena_alloc(dp_arena *arena, size_t size_bytes);
/* Copies; NULL when memory is exhausted. */
void *dp_arena_copy(dp_arena *arena, const void *from, size_t size_bytes);
char *dp_arena_text(dp_arena *arena, const char *text);
char *dp_arena_format(dp_arena *arena, const char *format, ...) DP_PRINTF(2, 3);
/* What it holds of the system's memory. */
size_t dp_arena_bytes(const dp_arena *arena);
/* Frees all of it; the arena is empty and ready again. */
void dp_arena_free(dp_arena *arena);

#endif
