#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"

/* Sits in the 64 bytes before the block, so the block keeps its alignment. */
typedef struct header {
    size_t size_bytes;
    uint32_t kind;
    uint32_t magic;
} header;

#define HEADER_BYTES 64u
#define HEADER_MAGIC 0xD099E1A7u

/* Threads that allocate and threads that free write to lines of their own. */
static struct {
    _Alignas(64) atomic_size_t taken_bytes;
    atomic_size_t taken_blocks;
    _Alignas(64) atomic_size_t given_bytes;
    atomic_size_t given_blocks;
    _Alignas(64) atomic_size_t held_bytes; /* live ones and kept ones */
    atomic_size_t peak_bytes;
} stats[DP_MEM_KIND_COUNT];

static atomic_long fail_countdown;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_environment(void) {
    const char *text = getenv("DOPPEL_FAIL_ALLOC");
    if (text)
        atomic_store(&fail_countdown, strtol(text, NULL, 10));
}

static bool must_fail(void) {
    pthread_once(&once, read_environment);
    if (DP_LIKELY(atomic_load_explicit(&fail_countdown, memory_order_relaxed) <= 0))
        return false;
    return atomic_fetch_sub(&fail_countdown, 1) == 1;
}

static void hold(dp_mem_kind kind, size_t total_bytes) {
    size_t held = atomic_fetch_add(&stats[kind].held_bytes, total_bytes) + total_bytes;
    size_t peak = atomic_load(&stats[kind].peak_bytes);
    while (held > peak && !atomic_compare_exchange_weak(&stats[kind].peak_bytes, &peak, held)) {
    }
}

static size_t total_of(size_t size_bytes) {
    return (HEADER_BYTES + size_bytes + 63) & ~(size_t)63;
}

void *dp_alloc(dp_mem_kind kind, size_t size_bytes) {
    if (must_fail() || size_bytes > SIZE_MAX / 2)
        return NULL;
    size_t total = total_of(size_bytes);
    header *h = kind == DP_MEM_RUNTIME ? dp_block_take(total) : NULL;
    if (!h) {
        h = aligned_alloc(64, total);
        if (!h)
            return NULL;
        hold(kind, total);
    }
    memset(h, 0, total);
    h->size_bytes = size_bytes;
    h->kind = kind;
    h->magic = HEADER_MAGIC;
    atomic_fetch_add_explicit(&stats[kind].taken_bytes, size_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&stats[kind].taken_blocks, 1, memory_order_relaxed);
    return (char *)h + HEADER_BYTES;
}

void *dp_realloc(dp_mem_kind kind, void *block, size_t size_bytes) {
    void *fresh = dp_alloc(kind, size_bytes);
    if (!fresh || !block)
        return fresh;
    size_t old = ((header *)((char *)block - HEADER_BYTES))->size_bytes;
    memcpy(fresh, block, old < size_bytes ? old : size_bytes);
    dp_free(block);
    return fresh;
}

void dp_free(void *block) {
    if (!block)
        return;
    header *h = (header *)((char *)block - HEADER_BYTES);
    if (h->magic != HEADER_MAGIC)
        abort(); /* a bug in Doppel: never reached through the API, which validates handles first */
    h->magic = 0;
    dp_mem_kind kind = h->kind;
    size_t total = total_of(h->size_bytes);
    atomic_fetch_add_explicit(&stats[kind].given_bytes, h->size_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&stats[kind].given_blocks, 1, memory_order_relaxed);
    if (kind == DP_MEM_RUNTIME && dp_block_keep(h, total))
        return;
    atomic_fetch_sub(&stats[kind].held_bytes, total);
    free(h);
}

dp_mem_stats dp_mem_stats_of(dp_mem_kind kind) {
    size_t bytes = atomic_load(&stats[kind].given_bytes), blocks = atomic_load(&stats[kind].given_blocks);
    return (dp_mem_stats){
        .live_bytes = atomic_load(&stats[kind].taken_bytes) - bytes,
        .live_blocks = atomic_load(&stats[kind].taken_blocks) - blocks,
        .peak_bytes = atomic_load(&stats[kind].peak_bytes),
    };
}

const char *dp_mem_kind_name(dp_mem_kind kind) {
    static const char *const names[DP_MEM_KIND_COUNT] = {"runtime", "device", "check", "trace", "tool", "graph", "media", "scratch"};
    return kind < DP_MEM_KIND_COUNT ? names[kind] : "unknown";
}

void dp_mem_fail_after(long n) {
    pthread_once(&once, read_environment);
    atomic_store(&fail_countdown, n);
}

long dp_mem_fail_after_left(void) {
    long left = atomic_load(&fail_countdown);
    return left > 0 ? left : 0;
}
