#include "device/gm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/*
 * Live ranges, sorted by address: pages in order, each with some ranges in order, none empty. Pages keep insertion cheap
 * when there are a hundred thousand. Looked at under the read lock; cores keep the last ranges they used (dp_gm_cache).
 */
enum { PAGE_RANGES = 256 };
typedef struct range_page {
    size_t count;
    dp_gm_range range[PAGE_RANGES];
} range_page;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static range_page **pages;
static size_t page_count, page_room, range_count;
static uint64_t last_id;
static _Atomic uint64_t epoch = 1;

/* The first range based above addr is pages[page]->range[at], or the next page's first when `at` is that page's count. */
typedef struct place {
    size_t page, at;
} place;

static place upper_bound(const void *addr) {
    size_t low = 0, high = page_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((uintptr_t)pages[mid]->range[0].base <= (uintptr_t)addr)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return (place){0, 0};
    const range_page *page = pages[low - 1];
    size_t first = 1, last = page->count;
    while (first < last) {
        size_t mid = first + (last - first) / 2;
        if ((uintptr_t)page->range[mid].base <= (uintptr_t)addr)
            first = mid + 1;
        else
            last = mid;
    }
    return (place){low - 1, first};
}

/* The range with the highest base that is not above addr; NULL if there is none. */
static dp_gm_range *at_or_below(const void *addr) {
    place p = upper_bound(addr);
    return p.at > 0 ? &pages[p.page]->range[p.at - 1] : NULL;
}

static const dp_gm_range *above(const void *addr) {
    place p = upper_bound(addr);
    if (p.page < page_count && p.at < pages[p.page]->count)
        return &pages[p.page]->range[p.at];
    return p.page + 1 < page_count ? &pages[p.page + 1]->range[0] : NULL;
}

static bool insert_page(size_t at) {
    if (page_count == page_room) {
        size_t room = page_room ? page_room * 2 : 16;
        range_page **more = dp_realloc(DP_MEM_DEVICE, pages, room * sizeof *pages);
        if (!more)
            return false;
        pages = more;
        page_room = room;
    }
    range_page *page = dp_alloc(DP_MEM_DEVICE, sizeof *page);
    if (!page)
        return false;
    memmove(&pages[at + 1], &pages[at], (page_count - at) * sizeof(range_page *));
    pages[at] = page;
    page_count++;
    return true;
}

/* Room for one more range based at base, in a page that is not full. */
static bool make_place(const void *base, place *out_place) {
    place p = upper_bound(base);
    if (page_count == 0 && !insert_page(0))
        return false;
    range_page *full = pages[p.page];
    if (full->count == PAGE_RANGES) {
        if (!insert_page(p.page + 1))
            return false;
        range_page *fresh = pages[p.page + 1];
        full->count = PAGE_RANGES / 2;
        fresh->count = PAGE_RANGES - full->count;
        memcpy(fresh->range, &full->range[full->count], fresh->count * sizeof fresh->range[0]);
        if (p.at > full->count)
            p = (place){p.page + 1, p.at - full->count};
    }
    *out_place = p;
    return true;
}

dp_status dp_gm_add(void *base, size_t size_bytes, uint32_t device_id, uint64_t *out_id) {
    dp_status status = DP_OK;
    place p;
    pthread_rwlock_wrlock(&lock);
    const dp_gm_range *before = at_or_below(base), *after = above(base);
    if (!base || !size_bytes || (uintptr_t)base + size_bytes < (uintptr_t)base) {
        status = dp_fail(DP_ERR_ARGUMENT, "device memory range %p of %zu bytes is not a range", base, size_bytes);
    } else if ((before && (uintptr_t)before->base + before->size_bytes > (uintptr_t)base) ||
               (after && (uintptr_t)after->base < (uintptr_t)base + size_bytes)) {
        status = dp_fail(DP_ERR_INTERNAL, "device memory range %p of %zu bytes overlaps a live range", base, size_bytes);
    } else if (!make_place(base, &p)) {
        status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the list of device memory ranges (%zu entries)",
                         range_count);
    } else {
        range_page *page = pages[p.page];
        memmove(&page->range[p.at + 1], &page->range[p.at], (page->count - p.at) * sizeof page->range[0]);
        page->range[p.at] = (dp_gm_range){base, size_bytes, size_bytes, ++last_id, device_id, 0};
        page->count++;
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
    dp_gm_range *range = at_or_below(base);
    if (!range || range->base != base) {
        status = dp_fail(DP_ERR_ADDRESS, "%p is not the start of a live device memory range", base);
    } else if (padded_bytes < range->size_bytes) {
        status = dp_fail(DP_ERR_ARGUMENT, "padding to %zu bytes is less than the range's %zu", padded_bytes,
                         range->size_bytes);
    } else {
        range->padded_bytes = padded_bytes;
        atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

dp_status dp_gm_set_group(void *base, uintptr_t group) {
    dp_status status = DP_OK;
    pthread_rwlock_wrlock(&lock);
    dp_gm_range *range = at_or_below(base);
    if (range && range->base == base)
        range->group = group;
    else
        status = dp_fail(DP_ERR_ADDRESS, "%p is not the start of a live device memory range", base);
    atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
    pthread_rwlock_unlock(&lock);
    return status;
}

dp_status dp_gm_remove(void *base) {
    dp_status status = DP_OK;
    pthread_rwlock_wrlock(&lock);
    place p = upper_bound(base);
    if (p.at == 0 || pages[p.page]->range[p.at - 1].base != base) {
        status = dp_fail(DP_ERR_ADDRESS, "%p is not the start of a live device memory range", base);
    } else {
        range_page *page = pages[p.page];
        memmove(&page->range[p.at - 1], &page->range[p.at], (page->count - p.at) * sizeof page->range[0]);
        page->count--;
        range_count--;
        if (page->count == 0) {
            dp_free(page);
            page_count--;
            memmove(&pages[p.page], &pages[p.page + 1], (page_count - p.page) * sizeof(range_page *));
        }
        atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

/* The ranges this thread found last, good for one epoch. */
enum { RECENT = 4 };
static _Thread_local struct {
    uint64_t epoch;
    unsigned next;
    dp_gm_range range[RECENT];
} recent;

static bool contains(const dp_gm_range *range, const void *addr) {
    return (uintptr_t)addr - (uintptr_t)range->base < range->size_bytes;
}

/* Lengthens a copy of a range of a group by those behind it. */
static void join(dp_gm_range *range) {
    for (const dp_gm_range *next; (next = above(range->base + range->size_bytes - 1)) != NULL;) {
        if (next->group != range->group || next->base != range->base + range->size_bytes)
            break;
        range->size_bytes += next->size_bytes;
    }
    range->padded_bytes = range->size_bytes;
}

bool dp_gm_find(const void *addr, dp_gm_range *out_range) {
    if (recent.epoch == dp_gm_epoch()) {
        for (unsigned i = 0; i < RECENT; i++) {
            if (contains(&recent.range[i], addr)) {
                *out_range = recent.range[i];
                return true;
            }
        }
    }
    pthread_rwlock_rdlock(&lock);
    const dp_gm_range *range = at_or_below(addr);
    bool found = range && contains(range, addr);
    if (found) {
        *out_range = *range;
        if (range->group)
            join(out_range);
        uint64_t now = dp_gm_epoch(); /* cannot change under the lock */
        if (recent.epoch != now) {
            memset(recent.range, 0, sizeof recent.range);
            recent.epoch = now;
        }
        recent.range[recent.next++ % RECENT] = *out_range;
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

bool dp_gm_find_before(const void *addr, dp_gm_range *out_range) {
    bool found = false;
    pthread_rwlock_rdlock(&lock);
    const dp_gm_range *range = at_or_below(addr);
    if (range) {
        uintptr_t end = (uintptr_t)range->base + range->size_bytes;
        if (end <= (uintptr_t)addr && (uintptr_t)addr - end <= (size_t)1 << 20) {
            *out_range = *range;
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
