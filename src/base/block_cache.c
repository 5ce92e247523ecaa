#include "base/block_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { CLASSES = DP_BLOCK_MAX / DP_BLOCK_STEP, OWN_MAX = 64, SHARED_BYTES_MAX = 1 << 20 };

/* A sanitizer sees every block's own beginning and end only when none is kept. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS 0
#endif
#endif
#ifndef KEEPS
#define KEEPS 1
#endif

/* Lies in the kept block. */
typedef struct kept {
    struct kept *next;
} kept;

/*
 * A shared list is pushed to one by one and taken as a whole, so that a block which comes back in between does no harm.
 * What was taken becomes the thread's own list. The count is a limit, not exact.
 */
static struct {
    _Alignas(64) _Atomic(kept *) head;
    _Atomic size_t count;
} shared[CLASSES];

typedef struct own_lists {
    kept *head[CLASSES];
    uint32_t count[CLASSES];
} own_lists;

static _Thread_local own_lists *own;
static _Thread_local bool ended; /* what later destructors of this thread give back goes to the shared lists */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static bool push_shared(kept *block, size_t class) {
    if (atomic_load_explicit(&shared[class].count, memory_order_relaxed) >=
        SHARED_BYTES_MAX / ((class + 1) * DP_BLOCK_STEP))
        return false;
    atomic_fetch_add_explicit(&shared[class].count, 1, memory_order_relaxed);
    block->next = atomic_load_explicit(&shared[class].head, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&shared[class].head, &block->next, block, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    return true;
}

static void thread_ends(void *lists) {
    own_lists *l = lists;
    own = NULL;
    ended = true;
    for (size_t class = 0; class < CLASSES; class ++) {
        for (kept *block = l->head[class], *next; block; block = next) {
            next = block->next;
            if (!push_shared(block, class))
                free(block);
        }
    }
    free(l);
}

static void make_key(void) {
    pthread_key_create(&key, thread_ends);
}

static own_lists *make_own(void) {
    if (ended)
        return NULL;
    pthread_once(&once, make_key);
    own_lists *fresh = calloc(1, sizeof *fresh);
    if (fresh && pthread_setspecific(key, fresh) != 0) {
        free(fresh);
        fresh = NULL;
    }
    return own = fresh;
}

void *dp_block_take(size_t size_bytes) {
    if (!KEEPS || size_bytes > DP_BLOCK_MAX || size_bytes < DP_BLOCK_STEP)
        return NULL;
    size_t class = size_bytes / DP_BLOCK_STEP - 1;
    own_lists *l = own ? own : make_own();
    if (!l)
        return NULL;
    kept *block = l->head[class];
    if (!block) {
        if (!atomic_load_explicit(&shared[class].head, memory_order_relaxed))
            return NULL;
        block = atomic_exchange_explicit(&shared[class].head, NULL, memory_order_acquire);
        if (!block)
            return NULL;
        l->count[class] = (uint32_t)atomic_exchange_explicit(&shared[class].count, 0, memory_order_relaxed);
    }
    l->head[class] = block->next;
    l->count[class] -= l->count[class] > 0;
    return block;
}

bool dp_block_keep(void *block, size_t size_bytes) {
    if (!KEEPS || size_bytes > DP_BLOCK_MAX || size_bytes < DP_BLOCK_STEP)
        return false;
    size_t class = size_bytes / DP_BLOCK_STEP - 1;
    own_lists *l = own ? own : make_own();
    if (!l || l->count[class] >= OWN_MAX)
        return push_shared(block, class);
    ((kept *)block)->next = l->head[class];
    l->head[class] = block;
    l->count[class]++;
    return true;
}
