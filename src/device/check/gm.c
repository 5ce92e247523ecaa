#include "device/check/gm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"

enum { WORD_BYTES = 64, FREED_KEPT = 256 };

struct dp_gm_shadow {
    dp_gm_story story;
    _Atomic bool full;       /* every byte holds data: the bits need no look */
    _Atomic uint64_t *bits;  /* one per byte */
    dp_gm_shadow *next_dead;
};

static struct {
    pthread_rwlock_t lock;
    dp_gm_shadow **list; /* live, sorted by address */
    size_t count, room;
    dp_gm_shadow *dead; /* freed while a launch ran */
    unsigned running;
    _Atomic uint64_t epoch;
    dp_gm_story freed[FREED_KEPT];
    uint64_t freed_count;
    _Atomic uint64_t newest_id, disowned_id; /* allocations up to it are those of the process this one was forked from */
} gm = {.lock = PTHREAD_RWLOCK_INITIALIZER, .epoch = 1};

/* First entry whose base is above addr. */
static size_t upper_bound(uintptr_t addr) {
    size_t low = 0, high = gm.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (gm.list[mid]->story.base <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static dp_gm_shadow *find_locked(uintptr_t addr) {
    size_t at = upper_bound(addr);
    if (!at || addr - gm.list[at - 1]->story.base >= gm.list[at - 1]->story.size_bytes)
        return NULL;
    return gm.list[at - 1];
}

static void shadow_destroy(dp_gm_shadow *shadow) {
    if (!shadow)
        return;
    dp_free((void *)shadow->bits);
    dp_free(shadow);
}

void dp_gm_shadow_add(void *base, size_t size_bytes, uint64_t id, const void *caller) {
    dp_gm_shadow *shadow = dp_alloc(DP_MEM_CHECK, sizeof *shadow);
    if (!shadow)
        return;
    shadow->story = (dp_gm_story){.id = id, .size_bytes = size_bytes, .base = (uintptr_t)base, .alloc_caller = caller};
    atomic_store(&gm.newest_id, id);
    shadow->bits = dp_alloc(DP_MEM_CHECK, (size_bytes / WORD_BYTES + 2) * sizeof *shadow->bits);
    pthread_rwlock_wrlock(&gm.lock);
    if (gm.count == gm.room) {
        size_t room = gm.room ? gm.room * 2 : 64;
        dp_gm_shadow **list = dp_realloc(DP_MEM_CHECK, gm.list, room * sizeof *list);
        if (list) {
            gm.list = list;
            gm.room = room;
        }
    }
    if (shadow->bits && gm.count < gm.room) { /* without room for a shadow the memory counts as data */
        size_t at = upper_bound((uintptr_t)base);
        memmove(&gm.list[at + 1], &gm.list[at], (gm.count - at) * sizeof *gm.list);
        gm.list[at] = shadow;
        gm.count++;
        atomic_fetch_add(&gm.epoch, 1);
        shadow = NULL;
    }
    pthread_rwlock_unlock(&gm.lock);
    shadow_destroy(shadow);
}

void dp_gm_shadow_remove(void *base, const void *caller) {
    pthread_rwlock_wrlock(&gm.lock);
    size_t at = upper_bound((uintptr_t)base);
    if (at && gm.list[at - 1]->story.base == (uintptr_t)base) {
        dp_gm_shadow *shadow = gm.list[at - 1];
        memmove(&gm.list[at - 1], &gm.list[at], (gm.count - at) * sizeof *gm.list);
        gm.count--;
        atomic_fetch_add(&gm.epoch, 1);
        shadow->story.free_caller = caller;
        shadow->story.freed = true;
        gm.freed[gm.freed_count++ % FREED_KEPT] = shadow->story;
        if (gm.running) {
            shadow->next_dead = gm.dead;
            gm.dead = shadow;
        } else {
            shadow_destroy(shadow);
        }
    }
    pthread_rwlock_unlock(&gm.lock);
}

void dp_gm_shadow_enter(void) {
    pthread_rwlock_wrlock(&gm.lock);
    gm.running++;
    pthread_rwlock_unlock(&gm.lock);
}

void dp_gm_shadow_leave(void) {
    dp_gm_shadow *dead = NULL;
    pthread_rwlock_wrlock(&gm.lock);
    if (!--gm.running) {
        dead = gm.dead;
        gm.dead = NULL;
    }
    pthread_rwlock_unlock(&gm.lock);
    while (dead) {
        dp_gm_shadow *next = dead->next_dead;
        shadow_destroy(dead);
        dead = next;
    }
}

dp_gm_shadow *dp_gm_shadow_find(dp_gm_shadow_cache *cache, const void *addr) {
    uintptr_t at = (uintptr_t)addr;
    uint64_t epoch = atomic_load_explicit(&gm.epoch, memory_order_acquire);
    if (cache->epoch == epoch) {
        for (unsigned i = 0; i < 4; i++) {
            if (at >= cache->begin[i] && at < cache->end[i])
                return cache->shadow[i];
        }
    } else {
        *cache = (dp_gm_shadow_cache){.epoch = epoch};
    }
    pthread_rwlock_rdlock(&gm.lock);
    dp_gm_shadow *shadow = find_locked(at);
    pthread_rwlock_unlock(&gm.lock);
    if (shadow) {
        unsigned i = cache->next++ % 4;
        cache->shadow[i] = shadow;
        cache->begin[i] = shadow->story.base;
        cache->end[i] = shadow->story.base + shadow->story.size_bytes;
    }
    return shadow;
}

/* Offsets [*begin, *end) of the range inside the allocation. */
static bool clip(const dp_gm_shadow *shadow, const void *addr, size_t bytes, size_t *begin, size_t *end) {
    uintptr_t at = (uintptr_t)addr;
    if (at < shadow->story.base || at - shadow->story.base >= shadow->story.size_bytes || !bytes)
        return false;
    *begin = at - shadow->story.base;
    size_t room = shadow->story.size_bytes - *begin;
    *end = *begin + (bytes < room ? bytes : room);
    return true;
}

/* Bits of word w that belong to bytes [begin, end). */
static uint64_t word_mask(size_t w, size_t begin, size_t end) {
    uint64_t mask = ~0ull;
    if (begin > w * WORD_BYTES)
        mask &= ~0ull << (begin - w * WORD_BYTES);
    if (end < (w + 1) * WORD_BYTES)
        mask &= ~0ull >> ((w + 1) * WORD_BYTES - end);
    return mask;
}

size_t dp_gm_shadow_missing(const dp_gm_shadow *shadow, const void *addr, size_t bytes, const void **out_first) {
    size_t begin, end, missing = 0;
    if (atomic_load_explicit(&shadow->full, memory_order_relaxed) || !clip(shadow, addr, bytes, &begin, &end))
        return 0;
    for (size_t w = begin / WORD_BYTES; w * WORD_BYTES < end; w++) {
        uint64_t holes = ~atomic_load_explicit(&shadow->bits[w], memory_order_relaxed);
        if (!holes || !(holes &= word_mask(w, begin, end)))
            continue;
        if (!missing)
            *out_first = (const void *)(shadow->story.base + w * WORD_BYTES + (size_t)__builtin_ctzll(holes));
        missing += (size_t)__builtin_popcountll(holes);
    }
    return missing;
}

void dp_gm_shadow_set(dp_gm_shadow *shadow, const void *addr, size_t bytes) {
    size_t begin, end;
    if (atomic_load_explicit(&shadow->full, memory_order_relaxed) || !clip(shadow, addr, bytes, &begin, &end))
        return;
    if (begin == 0 && end == shadow->story.size_bytes) {
        atomic_store_explicit(&shadow->full, true, memory_order_relaxed);
    }
    for (size_t w = begin / WORD_BYTES; w * WORD_BYTES < end; w++) {
        uint64_t mask = word_mask(w, begin, end);
        if (mask == ~0ull) /* nobody else needs a bit of this word */
            atomic_store_explicit(&shadow->bits[w], mask, memory_order_relaxed);
        else if ((atomic_load_explicit(&shadow->bits[w], memory_order_relaxed) & mask) != mask)
            atomic_fetch_or_explicit(&shadow->bits[w], mask, memory_order_relaxed); /* neighbouring blocks share it */
    }
}

void dp_gm_shadow_clear(dp_gm_shadow *shadow, const void *addr, size_t bytes) {
    size_t begin, end;
    if (!clip(shadow, addr, bytes, &begin, &end))
        return;
    for (size_t w = begin / WORD_BYTES; w * WORD_BYTES < end; w++)
        atomic_fetch_and_explicit(&shadow->bits[w], ~word_mask(w, begin, end), memory_order_relaxed);
    atomic_store_explicit(&shadow->full, false, memory_order_relaxed);
}

bool dp_gm_story_of(const void *addr, dp_gm_story *out_story) {
    uintptr_t at = (uintptr_t)addr;
    pthread_rwlock_rdlock(&gm.lock);
    const dp_gm_shadow *shadow = find_locked(at);
    bool found = shadow != NULL;
    if (found)
        *out_story = shadow->story;
    for (uint64_t back = 1; !found && back <= FREED_KEPT && back <= gm.freed_count; back++) {
        const dp_gm_story *story = &gm.freed[(gm.freed_count - back) % FREED_KEPT];
        found = at - story->base < story->size_bytes;
        if (found)
            *out_story = *story;
    }
    pthread_rwlock_unlock(&gm.lock);
    return found;
}

void dp_gm_story_each(void (*visit)(void *context, const dp_gm_story *story), void *context) {
    pthread_rwlock_rdlock(&gm.lock);
    for (size_t i = 0; i < gm.count; i++) {
        if (gm.list[i]->story.id > atomic_load(&gm.disowned_id))
            visit(context, &gm.list[i]->story);
    }
    pthread_rwlock_unlock(&gm.lock);
}

void dp_gm_story_disown(void) { atomic_store(&gm.disowned_id, atomic_load(&gm.newest_id)); }
