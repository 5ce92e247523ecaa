#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "runtime/context_state.h"
#include "runtime/device_memory.h"
#include "runtime/memory_state.h"

/* Memory that dp_host_memory_alloc gave or dp_host_memory_register took, in a list: there are few. */
typedef struct host_range {
    struct host_range *next;
    uint8_t *base;
    size_t size_bytes, mapped_bytes;
    bool registered; /* the user's memory */
    bool on_device;  /* announced as device memory */
} host_range;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static host_range *ranges;

/* Called with the lock held. */
static host_range **find_link(const void *ptr, bool exact) {
    for (host_range **at = &ranges; *at; at = &(*at)->next) {
        size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)(*at)->base);
        if (exact ? offset == 0 : offset < (*at)->size_bytes)
            return at;
    }
    return NULL;
}

bool dp_host_memory_contains(const void *ptr) {
    pthread_rwlock_rdlock(&lock);
    bool found = find_link(ptr, false) != NULL;
    pthread_rwlock_unlock(&lock);
    return found;
}

dp_status dp_host_memory_alloc(size_t size_bytes, void **out_ptr) {
    if (!out_ptr)
        return dp_fail(DP_ERR_ARGUMENT, "hostPtr is NULL, but must point to where the address goes");
    if (size_bytes == 0)
        return dp_fail(DP_ERR_ARGUMENT, "size is 0, but must be at least 1");
    host_range *range = dp_alloc(DP_MEM_RUNTIME, sizeof *range);
    size_t mapped = (size_bytes + 4095) & ~(size_t)4095;
    void *base = MAP_FAILED;
    if (range && mapped >= size_bytes)
        base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        dp_free(range);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "size is %zu bytes, and this machine has no more memory for it",
                       size_bytes);
    }
    *range = (host_range){.base = base, .size_bytes = size_bytes, .mapped_bytes = mapped};
    pthread_rwlock_wrlock(&lock);
    range->next = ranges;
    ranges = range;
    pthread_rwlock_unlock(&lock);
    *out_ptr = base;
    return DP_OK;
}

/* Takes the range out of the list if it starts at ptr and is of that sort; NULL otherwise. */
static host_range *take(void *ptr, bool registered) {
    pthread_rwlock_wrlock(&lock);
    host_range **link = find_link(ptr, true);
    host_range *range = link && (*link)->registered == registered ? *link : NULL;
    if (range) {
        *link = range->next;
        if (range->on_device)
            dp_gm_remove(range->base);
    }
    pthread_rwlock_unlock(&lock);
    return range;
}

dp_status dp_host_memory_free(void *ptr) {
    if (!ptr)
        return dp_fail(DP_ERR_ARGUMENT, "hostPtr is NULL, but must be an address that aclrtMallocHost gave");
    host_range *range = take(ptr, false);
    if (!range) {
        dp_gm_range gm;
        bool device = dp_gm_find(ptr, &gm) && !dp_host_memory_contains(ptr);
        return dp_fail(DP_ERR_ADDRESS, "hostPtr (%p) %s", ptr,
                       device ? "is device memory, which aclrtFree frees"
                              : "is not an address that aclrtMallocHost gave, or was freed before");
    }
    munmap(range->base, range->mapped_bytes);
    dp_free(range);
    return DP_OK;
}

dp_status dp_host_memory_register(void *ptr, size_t size_bytes, void **out_device_ptr) {
    if (!ptr || size_bytes == 0)
        return dp_fail(DP_ERR_ARGUMENT, "ptr is %p and size is %zu, but there must be memory to register", ptr,
                       size_bytes);
    uint32_t device_id;
    dp_status status = dp_context_current_device(&device_id);
    if (status != DP_OK)
        return status;
    host_range *range = dp_alloc(DP_MEM_RUNTIME, sizeof *range);
    if (!range)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to register ptr (%zu bytes)", sizeof *range);
    *range = (host_range){.base = ptr, .size_bytes = size_bytes, .registered = true, .on_device = true};
    pthread_rwlock_wrlock(&lock);
    status = dp_gm_add(ptr, size_bytes, device_id, NULL);
    if (status == DP_OK) {
        range->next = ranges;
        ranges = range;
    }
    pthread_rwlock_unlock(&lock);
    if (status != DP_OK) {
        dp_free(range);
        return status == DP_ERR_OUT_OF_MEMORY
                   ? status
                   : dp_fail(DP_ERR_ADDRESS, "ptr (%p, %zu bytes) is registered already, or device memory", ptr,
                             size_bytes);
    }
    if (out_device_ptr)
        *out_device_ptr = ptr;
    return DP_OK;
}

dp_status dp_host_memory_unregister(void *ptr) {
    host_range *range = ptr ? take(ptr, true) : NULL;
    if (!range)
        return dp_fail(DP_ERR_ADDRESS, "ptr (%p) is not the start of memory that aclrtHostRegister took", ptr);
    dp_free(range);
    return DP_OK;
}

dp_status dp_host_memory_device_pointer(void *ptr, void **out_device_ptr) {
    if (!out_device_ptr)
        return dp_fail(DP_ERR_ARGUMENT, "pDevice is NULL, but must point to where the address goes");
    uint32_t device_id;
    dp_status status = dp_context_current_device(&device_id);
    if (status != DP_OK)
        return status;
    pthread_rwlock_wrlock(&lock);
    host_range **link = find_link(ptr, false);
    if (!link) {
        status = dp_fail(DP_ERR_ADDRESS, "pHost (%p) is not memory of aclrtMallocHost or aclrtHostRegister", ptr);
    } else if (!(*link)->on_device) {
        status = dp_gm_add((*link)->base, (*link)->size_bytes, device_id, NULL);
        (*link)->on_device = status == DP_OK;
    }
    pthread_rwlock_unlock(&lock);
    if (status == DP_OK)
        *out_device_ptr = ptr;
    return status;
}

void dp_host_memory_fork_prepare(void) {
    pthread_rwlock_wrlock(&lock);
}
void dp_host_memory_fork_done(void) {
    pthread_rwlock_unlock(&lock);
}

void dp_host_memory_fork_child(void) {
    /* a write lock belongs to a thread id, and the child's thread has another */
    lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}
