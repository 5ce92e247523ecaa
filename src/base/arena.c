#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = 64 << 10 };

struct dp_arena_block {
    dp_arena_block *previous;
    size_t size_bytes; /* with this header, which takes the first 64 */
};

/* What is larger than a quarter of a block gets one of its own, before the last, whose rest stays in use. */
static void *alloc_alone(dp_arena *arena, size_t size_bytes) {
    dp_arena_block *block = size_bytes > SIZE_MAX - 64 ? NULL : dp_alloc(arena->kind, size_bytes + 64);
    if (!block)
        return NULL;
    block->size_bytes = size_bytes + 64;
    if (arena->last) {
        block->previous = arena->last->previous;
        arena->last->previous = block;
    } else {
        arena->last = block;
        arena->used_bytes = block->size_bytes;
    }
    return (char *)block + 64;
}

void *dp_arena_alloc(dp_arena *arena, size_t size_bytes) {
    if (size_bytes > BLOCK_BYTES / 4)
        return alloc_alone(arena, size_bytes);
    size_t align = size_bytes >= 64 ? 64 : 16;
    size_t at = (arena->used_bytes + align - 1) & ~(align - 1);
    if (!arena->last || at > arena->last->size_bytes || size_bytes > arena->last->size_bytes - at) {
        dp_arena_block *block = dp_alloc(arena->kind, BLOCK_BYTES);
        if (!block)
            return NULL;
        block->size_bytes = BLOCK_BYTES;
        block->previous = arena->last;
        arena->last = block;
        at = 64;
    }
    arena->used_bytes = at + size_bytes;
    return (char *)arena->last + at;
}

size_t dp_arena_bytes(const dp_arena *arena) {
    size_t bytes = 0;
    for (const dp_arena_block *block = arena->last; block; block = block->previous)
        bytes += block->size_bytes;
    return bytes;
}

void *dp_arena_copy(dp_arena *arena, const void *from, size_t size_bytes) {
    void *to = dp_arena_alloc(arena, size_bytes);
    if (to && size_bytes)
        memcpy(to, from, size_bytes);
    return to;
}

char *dp_arena_text(dp_arena *arena, const char *text) {
    return dp_arena_copy(arena, text, strlen(text) + 1);
}

char *dp_arena_format(dp_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : dp_arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void dp_arena_free(dp_arena *arena) {
    while (arena->last) {
        dp_arena_block *previous = arena->last->previous;
        dp_free(arena->last);
        arena->last = previous;
    }
    arena->used_bytes = 0;
}
