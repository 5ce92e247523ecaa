#define _GNU_SOURCE
#include "runtime/device_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "device/chip.h"
#include "runtime/context_state.h"
#include "runtime/device.h"
#include "runtime/device_state.h"
#include "runtime/memory_state.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

/*
 * Blocks of up to 1 MiB are cut from 4 MiB chunks in classes of four steps per power of two and wait in a queue for
 * reuse, oldest first, so that a stale pointer does not soon meet new data. Larger blocks are mappings of their own.
 */
enum {
    ALIGN = 512,
    PAD_BYTES = 32,
    ROUND_BYTES = 32,
    SMALL_MAX = 1 << 20,
    CHUNK_BYTES = 4 << 20,
    CLASS_COUNT = 48,
    FREED_MEMORY = 4096 /* freed blocks remembered for the sentence of a double free */
};
#define HUGE_BYTES ((size_t)2 << 20)

typedef struct block {
    uint8_t *base;
    size_t asked_bytes, charged_bytes;
    size_t room_bytes; /* of the class, or of the mapping */
    uint32_t device_id;
    int8_t class;       /* -1: a mapping of its own */
    uint64_t ticket;    /* once freed: work queued before may still use the bytes */
    struct block *next; /* in a hash bucket, the deferred list or a class's queue */
} block;

typedef struct freed {
    uint8_t *base;
    size_t asked_bytes;
} freed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block **buckets;
static size_t bucket_count, live_count;
static block *deferred;
static block *queue_head[CLASS_COUNT], *queue_tail[CLASS_COUNT];
static uint8_t *chunk_next;
static size_t chunk_left;
static freed freed_ring[FREED_MEMORY];
static size_t freed_next;
static _Atomic size_t used_bytes[DP_DEVICE_MAX], peak_bytes[DP_DEVICE_MAX];

static size_t round_up(size_t value, size_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* Class of a size, and the room of its blocks: 512, 1024, 1536, 2048, then four steps per doubling. */
static int class_of(size_t size, size_t *out_room) {
    size_t units = (size + ALIGN - 1) / ALIGN;
    if (units <= 4) {
        *out_room = units * ALIGN;
        return (int)units - 1;
    }
    int log = 63 - __builtin_clzll(units - 1); /* 2^log < units <= 2^(log+1) */
    size_t step = ((size_t)1 << log) / 4, over = units - ((size_t)1 << log);
    size_t quarter = (over + step - 1) / step; /* 1..4 */
    *out_room = (((size_t)1 << log) + quarter * step) * ALIGN;
    return 4 + (log - 2) * 4 + (int)quarter - 1;
}

static size_t bucket_of(const void *base) {
    return ((uintptr_t)base / ALIGN * 0x9E3779B97F4A7C15u >> 20) & (bucket_count - 1);
}

static bool grow_table(void) {
    size_t count = bucket_count ? bucket_count * 2 : 256;
    block **fresh = dp_alloc(DP_MEM_RUNTIME, count * sizeof *fresh);
    if (!fresh)
        return false;
    block **old = buckets;
    size_t old_count = bucket_count;
    buckets = fresh;
    bucket_count = count;
    for (size_t i = 0; i < old_count; i++) {
        for (block *b = old[i], *next; b; b = next) {
            next = b->next;
            size_t at = bucket_of(b->base);
            b->next = buckets[at];
            buckets[at] = b;
        }
    }
    dp_free(old);
    return true;
}

static block **find_link(const void *base) {
    if (!bucket_count)
        return NULL;
    block **at = &buckets[bucket_of(base)];
    while (*at && (*at)->base != base)
        at = &(*at)->next;
    return *at ? at : NULL;
}

static void *map_bytes(size_t bytes) {
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

/* On a 2 MiB boundary, so that the kernel can use huge pages. */
static uint8_t *map_large(size_t bytes) {
    uint8_t *raw = map_bytes(bytes + HUGE_BYTES);
    if (!raw)
        return NULL;
    uint8_t *base = (uint8_t *)round_up((uintptr_t)raw, HUGE_BYTES);
    if (base > raw)
        munmap(raw, (size_t)(base - raw));
    munmap(base + bytes, (size_t)(raw + HUGE_BYTES - base));
    madvise(base, bytes, MADV_HUGEPAGE);
    return base;
}

static uint8_t *cut_from_chunk(size_t room) {
    if (chunk_left < room) {
        uint8_t *chunk = map_large(CHUNK_BYTES); /* what is left of the old one is given up */
        if (!chunk)
            return NULL;
        chunk_next = chunk;
        chunk_left = CHUNK_BYTES;
    }
    uint8_t *base = chunk_next;
    chunk_next += room;
    chunk_left -= room;
    return base;
}

/* Back to where it came from. Frees the block record of mappings; small ones keep it in their queue. */
static void recycle(block *b) {
    if (b->class < 0) {
        munmap(b->base, b->room_bytes);
        dp_free(b);
        return;
    }
    b->next = NULL;
    if (queue_tail[b->class])
        queue_tail[b->class]->next = b;
    else
        queue_head[b->class] = b;
    queue_tail[b->class] = b;
}

static void recycle_finished(void) {
    if (!deferred)
        return;
    uint64_t oldest = dp_stream_oldest_ticket();
    for (block **at = &deferred; *at;) {
        block *b = *at;
        if (b->ticket > oldest) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        recycle(b);
    }
}

/* A block of room for size bytes, not yet in the table. */
static block *take_block(size_t size) {
    size_t room;
    block *b;
    if (size <= SMALL_MAX) {
        int class = class_of(size, &room);
        b = queue_head[class];
        if (b) {
            queue_head[class] = b->next;
            if (!b->next)
                queue_tail[class] = NULL;
            return b;
        }
        b = dp_alloc(DP_MEM_RUNTIME, sizeof *b);
        if (b && !(b->base = cut_from_chunk(room))) {
            dp_free(b);
            return NULL;
        }
        if (b)
            b->class = (int8_t) class;
    } else {
        room = round_up(size, 4096);
        b = dp_alloc(DP_MEM_RUNTIME, sizeof *b);
        if (b && !(b->base = map_large(room))) {
            dp_free(b);
            return NULL;
        }
        if (b)
            b->class = -1;
    }
    if (b)
        b->room_bytes = room;
    return b;
}

dp_status dp_device_memory_charge(uint32_t device_id, const char *argument, size_t size_bytes) {
    size_t total = dp_chip_current()->memory_bytes;
    size_t used = atomic_load(&used_bytes[device_id]);
    do {
        if (size_bytes > total || used > total - size_bytes)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s is %zu bytes, but device %u has %zu of %zu bytes free", argument,
                           size_bytes, device_id, total - used, total);
    } while (!atomic_compare_exchange_weak(&used_bytes[device_id], &used, used + size_bytes));
    used += size_bytes;
    size_t peak = atomic_load(&peak_bytes[device_id]);
    while (used > peak && !atomic_compare_exchange_weak(&peak_bytes[device_id], &peak, used)) {
    }
    return DP_OK;
}

void dp_device_memory_refund(uint32_t device_id, size_t size_bytes) {
    atomic_fetch_sub(&used_bytes[device_id], size_bytes);
}

/* Called with the lock held. */
static dp_status add_block(size_t size_bytes, size_t charged, uint32_t device_id, void **out_ptr) {
    recycle_finished();
    if (live_count >= bucket_count && !grow_table())
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the table of device allocations (%zu entries)",
                       live_count);
    block *b = take_block(charged);
    if (!b)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "size is %zu bytes, and this machine has no more memory for it",
                       size_bytes);
    dp_status status = dp_gm_add(b->base, size_bytes, device_id, NULL);
    if (status == DP_OK)
        status = dp_gm_set_padding(b->base, charged);
    if (status != DP_OK) {
        recycle(b);
        return status;
    }
    b->asked_bytes = size_bytes;
    b->charged_bytes = charged;
    b->device_id = device_id;
    size_t at = bucket_of(b->base);
    b->next = buckets[at];
    buckets[at] = b;
    live_count++;
    *out_ptr = b->base;
    return DP_OK;
}

dp_status dp_device_memory_alloc(size_t size_bytes, void **out_ptr) {
    if (!out_ptr)
        return dp_fail(DP_ERR_ARGUMENT, "devPtr is NULL, but must point to where the address goes");
    if (size_bytes == 0)
        return dp_fail(DP_ERR_ARGUMENT, "size is 0, but must be at least 1");
    uint32_t device_id;
    dp_status status = dp_context_current_device(&device_id);
    if (status != DP_OK)
        return status;
    if (size_bytes > SIZE_MAX / 4)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "size is %zu bytes, but device %u has %zu in all", size_bytes, device_id,
                       (size_t)dp_chip_current()->memory_bytes);
    size_t charged = round_up(size_bytes, ROUND_BYTES) + PAD_BYTES;
    status = dp_device_memory_charge(device_id, "size", charged);
    if (status != DP_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = add_block(size_bytes, charged, device_id, out_ptr);
    pthread_mutex_unlock(&lock);
    if (status == DP_OK)
        dp_report_memory(DP_HOST_ALLOC, device_id, *out_ptr, NULL, size_bytes);
    else
        dp_device_memory_refund(device_id, charged);
    return status;
}

/* Called with the lock held: takes the block out of the table; its bytes wait for work queued before. */
static void retire(block **link) {
    block *b = *link;
    *link = b->next;
    live_count--;
    dp_gm_remove(b->base);
    dp_device_memory_refund(b->device_id, b->charged_bytes);
    freed_ring[freed_next++ % FREED_MEMORY] = (freed){b->base, b->asked_bytes};
    b->ticket = dp_stream_next_ticket();
    if (dp_stream_oldest_ticket() >= b->ticket) {
        recycle(b);
    } else {
        b->next = deferred;
        deferred = b;
    }
}

dp_status dp_device_memory_free(void *ptr) {
    if (!ptr)
        return dp_fail(DP_ERR_ARGUMENT, "devPtr is NULL, but must be an address that aclrtMalloc gave");
    dp_stream_settle();
    pthread_mutex_lock(&lock);
    block **link = find_link(ptr);
    if (link) {
        uint32_t device_id = (*link)->device_id;
        size_t size_bytes = (*link)->asked_bytes;
        dp_report_memory(DP_HOST_FREE, device_id, ptr, NULL, size_bytes);
        retire(link);
    }
    pthread_mutex_unlock(&lock);
    if (link)
        return DP_OK;
    char text[256];
    dp_pointer_sentence(ptr, text, sizeof text);
    return dp_fail(DP_ERR_ADDRESS, "devPtr (%p) %s, so aclrtFree cannot free it", ptr, text);
}

void dp_device_memory_free_all(uint32_t device_id) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < bucket_count; i++) {
        for (block **at = &buckets[i]; *at;) {
            if ((*at)->device_id != device_id) {
                at = &(*at)->next;
                continue;
            }
            dp_report_memory(DP_HOST_FREE, device_id, (*at)->base, NULL, (*at)->asked_bytes);
            retire(at);
        }
    }
    pthread_mutex_unlock(&lock);
}

dp_status dp_device_memory_info(size_t *out_free_bytes, size_t *out_total_bytes) {
    uint32_t device_id;
    dp_status status = dp_context_current_device(&device_id);
    if (status != DP_OK)
        return status;
    size_t total = dp_chip_current()->memory_bytes;
    if (out_free_bytes)
        *out_free_bytes = total - atomic_load(&used_bytes[device_id]);
    if (out_total_bytes)
        *out_total_bytes = total;
    return DP_OK;
}

dp_status dp_device_memory_usage(int32_t device_id, size_t *out_used_bytes, size_t *out_peak_bytes) {
    dp_status status = dp_device_check(device_id);
    if (status != DP_OK)
        return status;
    if (out_used_bytes)
        *out_used_bytes = atomic_load(&used_bytes[device_id]);
    if (out_peak_bytes)
        *out_peak_bytes = atomic_load(&peak_bytes[device_id]);
    return DP_OK;
}

/* The youngest freed block that contained ptr. */
static bool find_freed(const void *ptr, freed *out_freed) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < FREED_MEMORY && !found; i++) {
        const freed *f = &freed_ring[(freed_next - 1 - i) % FREED_MEMORY];
        found = f->base && (uintptr_t)ptr - (uintptr_t)f->base < f->asked_bytes;
        if (found)
            *out_freed = *f;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void dp_pointer_sentence(const void *ptr, char *text, size_t text_bytes) {
    dp_gm_range range;
    freed gone;
    if (dp_host_memory_contains(ptr))
        snprintf(text, text_bytes, "is host memory (from aclrtMallocHost or aclrtHostRegister)");
    else if (dp_vmm_contains(ptr))
        snprintf(text, text_bytes, "is memory mapped by aclrtMapMem");
    else if (dp_gm_find(ptr, &range) && range.base == ptr)
        snprintf(text, text_bytes, "is a device allocation of %zu bytes", range.size_bytes);
    else if (dp_gm_find(ptr, &range))
        snprintf(text, text_bytes, "points %zu bytes into the %zu-byte device allocation at %p",
                 (size_t)((const uint8_t *)ptr - range.base), range.size_bytes, (void *)range.base);
    else if (find_freed(ptr, &gone))
        snprintf(text, text_bytes, "lies in device memory that was freed before (%zu bytes at %p)", gone.asked_bytes,
                 (void *)gone.base);
    else if (dp_gm_find_before(ptr, &range) && (uintptr_t)ptr - (uintptr_t)range.base < range.size_bytes + 4096)
        snprintf(text, text_bytes, "is %zu bytes past the end of the %zu-byte device allocation at %p",
                 (size_t)((const uint8_t *)ptr - range.base) - range.size_bytes, range.size_bytes, (void *)range.base);
    else
        snprintf(text, text_bytes, "is not device memory (a host pointer?)");
}

dp_status dp_pointer_describe(const void *ptr, dp_pointer_kind *out_kind, int32_t *out_device_id) {
    if (!out_kind || !out_device_id)
        return dp_fail(DP_ERR_ARGUMENT, "attributes is NULL, but must point to where they go");
    dp_gm_range range;
    *out_device_id = -1;
    if (dp_host_memory_contains(ptr)) {
        *out_kind = DP_POINTER_HOST;
    } else if (dp_gm_find(ptr, &range)) {
        *out_kind = DP_POINTER_DEVICE;
        *out_device_id = (int32_t)range.device_id;
    } else {
        *out_kind = DP_POINTER_UNKNOWN;
    }
    return DP_OK;
}

void dp_device_memory_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}
void dp_device_memory_fork_done(void) {
    pthread_mutex_unlock(&lock);
}
