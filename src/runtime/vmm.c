/*
 * vmm.c - reserved address ranges and physical memory (a memory file) that is mapped into them, also several times.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/handle.h"
#include "runtime/memory_state.h"
#include "runtime/report.h"

typedef struct physical {
    void *self;
    uint32_t device_id;
    int file;
    size_t size_bytes;
} physical;

typedef struct mapping {
    struct mapping *next;
    uint8_t *base;
    size_t size_bytes;
    physical *memory; /* one reference */
} mapping;

typedef struct reservation {
    struct reservation *next;
    uint8_t *base;
    size_t size_bytes;
    mapping *mappings;
} reservation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static reservation *reservations;

static dp_status check_size(const char *argument, size_t size_bytes) {
    if (size_bytes && size_bytes % DP_VMM_GRANULARITY_BYTES == 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s is %zu bytes, but must be a multiple of the granularity, %zu", argument,
                   size_bytes, DP_VMM_GRANULARITY_BYTES);
}

/* Called with the lock held. */
static reservation *find_reservation(const void *ptr) {
    reservation *r = reservations;
    while (r && (size_t)((uintptr_t)ptr - (uintptr_t)r->base) >= r->size_bytes)
        r = r->next;
    return r;
}

bool dp_vmm_contains(const void *ptr) {
    pthread_mutex_lock(&lock);
    reservation *r = find_reservation(ptr);
    mapping *m = r ? r->mappings : NULL;
    while (m && (size_t)((uintptr_t)ptr - (uintptr_t)m->base) >= m->size_bytes)
        m = m->next;
    pthread_mutex_unlock(&lock);
    return m != NULL;
}

dp_status dp_vmm_reserve(size_t size_bytes, size_t alignment, void *hint, void **out_ptr) {
    if (!out_ptr)
        return dp_fail(DP_ERR_ARGUMENT, "virPtr is NULL, but must point to where the address goes");
    dp_status status = check_size("size", size_bytes);
    if (status != DP_OK)
        return status;
    if (alignment & (alignment - 1))
        return dp_fail(DP_ERR_ARGUMENT, "alignment is %zu, but must be 0 or a power of two", alignment);
    if (alignment < DP_VMM_GRANULARITY_BYTES)
        alignment = DP_VMM_GRANULARITY_BYTES;
    if (size_bytes > SIZE_MAX / 4 || alignment > SIZE_MAX / 4)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "size is %zu bytes aligned to %zu, more than there are addresses",
                       size_bytes, alignment);
    reservation *r = dp_alloc(DP_MEM_RUNTIME, sizeof *r);
    uint8_t *raw = MAP_FAILED;
    if (r)
        raw = mmap(hint, size_bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        dp_free(r);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "size is %zu bytes, and there is no address range that long", size_bytes);
    }
    r->base = (uint8_t *)(((uintptr_t)raw + alignment - 1) & ~(uintptr_t)(alignment - 1));
    r->size_bytes = size_bytes;
    if (r->base > raw)
        munmap(raw, (size_t)(r->base - raw));
    if (raw + alignment > r->base)
        munmap(r->base + size_bytes, (size_t)(raw + alignment - r->base));
    pthread_mutex_lock(&lock);
    r->next = reservations;
    reservations = r;
    pthread_mutex_unlock(&lock);
    *out_ptr = r->base;
    return DP_OK;
}

dp_status dp_vmm_release(void *ptr) {
    dp_status status = DP_OK;
    reservation *r = NULL;
    pthread_mutex_lock(&lock);
    reservation **at = &reservations;
    while (*at && (*at)->base != ptr)
        at = &(*at)->next;
    if (!*at) {
        status = dp_fail(DP_ERR_ADDRESS, "virPtr (%p) is not an address that aclrtReserveMemAddress gave", ptr);
    } else if ((*at)->mappings) {
        status = dp_fail(DP_ERR_BUSY, "virPtr (%p) still has memory mapped at %p; call aclrtUnmapMem first", ptr,
                         (void *)(*at)->mappings->base);
    } else {
        r = *at;
        *at = r->next;
        munmap(r->base, r->size_bytes);
    }
    pthread_mutex_unlock(&lock);
    dp_free(r);
    return status;
}

static void destroy_physical(void *object) {
    physical *p = object;
    close(p->file);
    dp_device_memory_refund(p->device_id, p->size_bytes);
    dp_free(p);
}

dp_status dp_vmm_create(int32_t device_id, size_t size_bytes, void **out_handle) {
    if (!out_handle)
        return dp_fail(DP_ERR_ARGUMENT, "handle is NULL, but must point to where the handle goes");
    dp_status status = dp_device_check(device_id);
    if (status == DP_OK)
        status = check_size("size", size_bytes);
    if (status == DP_OK)
        status = dp_device_memory_charge((uint32_t)device_id, "size", size_bytes);
    if (status != DP_OK)
        return status;
    physical *p = dp_alloc(DP_MEM_RUNTIME, sizeof *p);
    int file = p ? memfd_create("doppel device memory", MFD_CLOEXEC) : -1;
    if (file < 0 || ftruncate(file, (off_t)size_bytes) != 0) {
        status =
            dp_fail(DP_ERR_OUT_OF_MEMORY, "size is %zu bytes, and this machine has no more memory for it", size_bytes);
        goto fail;
    }
    *p = (physical){.device_id = (uint32_t)device_id, .file = file, .size_bytes = size_bytes};
    p->self = dp_handle_create(DP_HANDLE_PHYSICAL_MEMORY, p, destroy_physical);
    status = DP_ERR_OUT_OF_MEMORY;
    if (!p->self)
        goto fail;
    *out_handle = p->self;
    return DP_OK;
fail:
    if (file >= 0)
        close(file);
    dp_free(p);
    dp_device_memory_refund((uint32_t)device_id, size_bytes);
    return status;
}

dp_status dp_vmm_destroy(void *handle) {
    if (!dp_handle_acquire(handle, DP_HANDLE_PHYSICAL_MEMORY, "handle"))
        return DP_ERR_HANDLE;
    dp_handle_close(handle);
    dp_handle_release(handle);
    return DP_OK;
}

/* Called with the lock held. */
static dp_status map_locked(uint8_t *ptr, size_t size_bytes, size_t offset_bytes, physical *p, mapping *m) {
    reservation *r = find_reservation(ptr);
    if (!r || size_bytes > r->size_bytes - (size_t)(ptr - r->base))
        return dp_fail(DP_ERR_ADDRESS,
                       "virPtr (%p) and the %zu bytes behind it do not lie in one range of aclrtReserveMemAddress",
                       (void *)ptr, size_bytes);
    if ((uintptr_t)ptr % DP_VMM_GRANULARITY_BYTES)
        return dp_fail(DP_ERR_ARGUMENT, "virPtr (%p) is not a multiple of the granularity, %zu", (void *)ptr,
                       DP_VMM_GRANULARITY_BYTES);
    for (mapping *other = r->mappings; other; other = other->next) {
        if (ptr < other->base + other->size_bytes && other->base < ptr + size_bytes)
            return dp_fail(DP_ERR_ADDRESS, "virPtr (%p): memory is mapped at %p already; call aclrtUnmapMem first",
                           (void *)ptr, (void *)other->base);
    }
    if (mmap(ptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->file, (off_t)offset_bytes) ==
        MAP_FAILED)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "size is %zu bytes, and they could not be mapped", size_bytes);
    dp_status status = dp_gm_add(ptr, size_bytes, p->device_id, NULL);
    if (status != DP_OK) {
        mmap(ptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        return status;
    }
    dp_gm_set_group(ptr, (uintptr_t)r->base);
    *m = (mapping){r->mappings, ptr, size_bytes, p};
    r->mappings = m;
    return DP_OK;
}

dp_status dp_vmm_map(void *ptr, size_t size_bytes, size_t offset_bytes, void *handle) {
    dp_status status = check_size("size", size_bytes);
    if (status != DP_OK)
        return status;
    physical *p = dp_handle_acquire(handle, DP_HANDLE_PHYSICAL_MEMORY, "handle");
    if (!p)
        return DP_ERR_HANDLE;
    mapping *m = NULL;
    if (offset_bytes % DP_VMM_GRANULARITY_BYTES || size_bytes > p->size_bytes ||
        offset_bytes > p->size_bytes - size_bytes) {
        status =
            dp_fail(DP_ERR_ARGUMENT, "offset is %zu and size %zu, but handle has %zu bytes and the granularity is %zu",
                    offset_bytes, size_bytes, p->size_bytes, DP_VMM_GRANULARITY_BYTES);
        goto fail;
    }
    m = dp_alloc(DP_MEM_RUNTIME, sizeof *m);
    if (!m) {
        status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a mapping (%zu bytes)", sizeof *m);
        goto fail;
    }
    pthread_mutex_lock(&lock);
    status = map_locked(ptr, size_bytes, offset_bytes, p, m);
    pthread_mutex_unlock(&lock);
    if (status != DP_OK)
        goto fail;
    dp_report_memory(DP_HOST_ALLOC, p->device_id, ptr, NULL, size_bytes);
    return DP_OK;
fail:
    dp_free(m);
    dp_handle_release(handle);
    return status;
}

dp_status dp_vmm_unmap(void *ptr) {
    mapping *found = NULL;
    pthread_mutex_lock(&lock);
    reservation *r = find_reservation(ptr);
    for (mapping **at = r ? &r->mappings : NULL; at && *at; at = &(*at)->next) {
        if ((*at)->base == ptr) {
            found = *at;
            *at = found->next;
            dp_gm_remove(ptr);
            mmap(ptr, found->size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    if (!found)
        return dp_fail(DP_ERR_ADDRESS, "virPtr (%p) is not an address at which aclrtMapMem mapped memory", ptr);
    dp_report_memory(DP_HOST_FREE, found->memory->device_id, ptr, NULL, found->size_bytes);
    dp_handle_release(found->memory->self);
    dp_free(found);
    return DP_OK;
}

void dp_vmm_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}
void dp_vmm_fork_done(void) {
    pthread_mutex_unlock(&lock);
}
