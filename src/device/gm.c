#include "device/gm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Live ranges, sorted by address. Looked at under the read lock; cores keep the last ranges they used (dp_gm_cache). */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static dp_gm_range *ranges;
static size_t range_count, range_room;
static uint64_t last_id;
static _Atomic uint64_t epoch = 1;

/* First range whose base is above addr. */
static size_t upper_bound(const void *addr) {
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((uintptr_t)ranges[mid].base <= (uintptr_t)addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool grow(void) {
    size_t room = range_room ? range_room * 2 : 64;
    dp_gm_range *more = dp_realloc(DP_MEM_DEVICE, ranges, room * sizeof *ranges);
    if (!more)
        return false;
    ranges = more;
    range_room = room;
    return true;
}

dp_status dp_gm_add(void *base, size_t size_bytes, uint32_t device_id, uint64_t *out_id) {
    dp_status status = DP_OK;
    pthread_rwlock_wrlock(&lock);
    size_t at = upper_bound(base);
    if (!base || !size_bytes || (uintptr_t)base + size_bytes < (uintptr_t)base) {
        status = dp_fail(DP_ERR_ARGUMENT, "device memory range %p of %zu bytes is not a range", base, size_bytes);
    } else if ((at > 0 && (uintptr_t)ranges[at - 1].base + ranges[at - 1].size_bytes > (uintptr_t)base) ||
               (at < range_count && (uintptr_t)ranges[at].base < (uintptr_t)base + size_bytes)) {
        status = dp_fail(DP_ERR_INTERNAL, "device memory range %p of %zu bytes overlaps a live range", base, size_bytes);
    } else if (range_count == range_room && !grow()) {
        status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the list of device memory ranges (%zu entries)",
                         range_count);
    } else {
        memmove(&ranges[at + 1], &ranges[at], (range_count - at) * sizeof *ranges);
        ranges[at] = (dp_gm_range){base, size_bytes, size_bytes, ++last_id, device_id};
        range_count++;
        if (out_id)
            *out_id = last_id;
        atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

dp_status dp_gm_set_padding(void *base, size_t padded_bytes) {
    dp_status status = DP_OK;
    pthread_rwlock_wrlock(&lock);
    size_t at = upper_bound(base);
    if (at == 0 || ranges[at - 1].base != base) {
        status = dp_fail(DP_ERR_ADDRESS, "%p is not the start of a live device memory range", base);
    } else if (padded_bytes < ranges[at - 1].size_bytes) {
        status = dp_fail(DP_ERR_ARGUMENT, "padding to %zu bytes is less than the range's %zu", padded_bytes, ranges[at - 1].size_bytes);
    } else {
        ranges[at - 1].padded_bytes = padded_bytes;
        atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

dp_status dp_gm_remove(void *base) {
    dp_status status = DP_OK;
    pthread_rwlock_wrlock(&lock);
    size_t at = upper_bound(base);
    if (at == 0 || ranges[at - 1].base != base) {
        status = dp_fail(DP_ERR_ADDRESS, "%p is not the start of a live device memory range", base);
    } else {
        memmove(&ranges[at - 1], &ranges[at], (range_count - at) * sizeof *ranges);
        range_count--;
        atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

bool dp_gm_find(const void *addr, dp_gm_range *out_range) {
    bool found = false;
    pthread_rwlock_rdlock(&lock);
    size_t at = upper_bound(addr);
    if (at > 0 && (uintptr_t)addr - (uintptr_t)ranges[at - 1].base < ranges[at - 1].size_bytes) {
        *out_range = ranges[at - 1];
        found = true;
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

bool dp_gm_find_before(const void *addr, dp_gm_range *out_range) {
    bool found = false;
    pthread_rwlock_rdlock(&lock);
    size_t at = upper_bound(addr);
    if (at > 0) {
        uintptr_t end = (uintptr_t)ranges[at - 1].base + ranges[at - 1].size_bytes;
        if (end <= (uintptr_t)addr && (uintptr_t)addr - end <= (size_t)1 << 20) {
            *out_range = ranges[at - 1];
            found = true;
        }
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

uint64_t dp_gm_epoch(void) { return atomic_load_explicit(&epoch, memory_order_acquire); }

void dp_gm_fork_prepare(void) { pthread_rwlock_wrlock(&lock); }

void dp_gm_fork_done(void) { pthread_rwlock_unlock(&lock); }

void dp_gm_fork_child(void) {
    /* a write lock belongs to a thread id, and the child's thread has another */
    lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}
