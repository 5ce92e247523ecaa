#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Sits in the 64 bytes before the block, so the block keeps its alignment. */
typedef struct header {
    size_t size_bytes;
    uint32_t kind;
    uint32_t magic;
} header;

#define HEADER_BYTES 64u
#define HEADER_MAGIC 0xD099E1A7u

static struct {
    atomic_size_t live_bytes, live_blocks, peak_bytes, total_blocks;
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

static void count(dp_mem_kind kind, size_t size_bytes) {
    size_t live = atomic_fetch_add(&stats[kind].live_bytes, size_bytes) + size_bytes;
    atomic_fetch_add(&stats[kind].live_blocks, 1);
    atomic_fetch_add(&stats[kind].total_blocks, 1);
    size_t peak = atomic_load(&stats[kind].peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&stats[kind].peak_bytes, &peak, live)) {
    }
}

void *dp_alloc(dp_mem_kind kind, size_t size_bytes) {
    if (must_fail() || size_bytes > SIZE_MAX / 2)
        return NULL;
    size_t total = (HEADER_BYTES + size_bytes + 63) & ~(size_t)63;
    header *h = aligned_alloc(64, total);
    if (!h)
        return NULL;
    memset(h, 0, total);
    h->size_bytes = size_bytes;
    h->kind = kind;
    h->magic = HEADER_MAGIC;
    count(kind, size_bytes);
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
    atomic_fetch_sub(&stats[h->kind].live_bytes, h->size_bytes);
    atomic_fetch_sub(&stats[h->kind].live_blocks, 1);
    free(h);
}

dp_mem_stats dp_mem_stats_of(dp_mem_kind kind) {
    return (dp_mem_stats){
        .live_bytes = atomic_load(&stats[kind].live_bytes),
        .live_blocks = atomic_load(&stats[kind].live_blocks),
        .peak_bytes = atomic_load(&stats[kind].peak_bytes),
        .total_blocks = atomic_load(&stats[kind].total_blocks),
    };
}

const char *dp_mem_kind_name(dp_mem_kind kind) {
    static const char *const names[DP_MEM_KIND_COUNT] = {"runtime", "device", "check", "trace", "tool"};
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
