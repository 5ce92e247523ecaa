/*
 * gm.h - which bytes of device memory hold data, per allocation; and what became of freed allocations. Thread-safe.
 *
 * Allocations appear with DP_HOST_ALLOC; memory registered otherwise (host memory, GmAlloc) has no shadow and counts as data.
 */
#ifndef DOPPEL_DEVICE_CHECK_GM_H
#define DOPPEL_DEVICE_CHECK_GM_H

#include "doppel/abi.h"

typedef struct dp_gm_shadow dp_gm_shadow;

void dp_gm_shadow_add(void *base, size_t size_bytes, uint64_t id, const void *caller);
void dp_gm_shadow_remove(void *base, const void *caller);

/* A launch is running: shadows found meanwhile stay valid until as many leave as entered. */
void dp_gm_shadow_enter(void);
void dp_gm_shadow_leave(void);

/* A core's last shadows, so that most accesses take no lock. */
typedef struct dp_gm_shadow_cache {
    uint64_t epoch;
    dp_gm_shadow *shadow[4];
    uintptr_t begin[4], end[4];
    unsigned next;
} dp_gm_shadow_cache;

/* Shadow of the live allocation that holds addr, NULL when there is none. */
dp_gm_shadow *dp_gm_shadow_find(dp_gm_shadow_cache *cache, const void *addr);

/* Bytes of [addr, addr + bytes) without data; *out_first is the first one. The range is cut at the allocation's end. */
size_t dp_gm_shadow_missing(const dp_gm_shadow *shadow, const void *addr, size_t bytes, const void **out_first);
void dp_gm_shadow_set(dp_gm_shadow *shadow, const void *addr, size_t bytes);
/* The bytes hold no data. */
void dp_gm_shadow_clear(dp_gm_shadow *shadow, const void *addr, size_t bytes);

typedef struct dp_gm_story {
    uint64_t id;
    size_t size_bytes;
    uintptr_t base;
    const void *alloc_caller, *free_caller; /* return addresses in the user's program, may be NULL */
    bool freed;
} dp_gm_story;

/* Calls for every live allocation that this process made itself, in order of address. */
void dp_gm_story_each(void (*visit)(void *context, const dp_gm_story *story), void *context);
/* In the child of a fork: what is live now is the parent's. */
void dp_gm_story_disown(void);

/* The live allocation around addr, else the one freed last that held it. False: never seen. */
bool dp_gm_story_of(const void *addr, dp_gm_story *out_story);

#endif
