#include "runtime/handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { SLOT_BYTES = 64, SLOT_COUNT = 1 << 20, REUSE_DISTANCE = 1024 };
#define SLOT_MAGIC 0xD0FFE1A9u
#define LIVE ((uint64_t)1 << 32)

typedef struct slot {
    _Alignas(SLOT_BYTES) uint32_t magic;
    _Atomic uint32_t kind;
    _Atomic uint64_t state; /* LIVE | references */
    void *object;
    void (*destroy)(void *object);
    struct slot *next_free;
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slot *_Atomic slots;
static _Atomic uint32_t slots_used;
static slot *free_head, *free_tail;
static uint32_t free_count;

static const char *kind_name(uint32_t kind) {
    static const char *const names[DP_HANDLE_KIND_COUNT] = {"an unknown object", "a context", "a stream", "an event",
                                                            "a physical memory handle", "a captured graph", "a task group"};
    return kind < DP_HANDLE_KIND_COUNT ? names[kind] : names[0];
}

/* Called with the lock held. */
static slot *take_slot(void) {
    slot *base = atomic_load_explicit(&slots, memory_order_relaxed);
    if (!base) {
        base = mmap(NULL, (size_t)SLOT_COUNT * SLOT_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED)
            return NULL;
        atomic_store(&slots, base);
    }
    uint32_t used = atomic_load_explicit(&slots_used, memory_order_relaxed);
    if (free_count > REUSE_DISTANCE || (free_count > 0 && used == SLOT_COUNT)) {
        slot *taken = free_head;
        free_head = taken->next_free;
        free_count--;
        return taken;
    }
    if (used == SLOT_COUNT)
        return NULL;
    base[used].magic = SLOT_MAGIC;
    atomic_store(&slots_used, used + 1);
    return &base[used];
}

void *dp_handle_create(dp_handle_kind kind, void *object, void (*destroy)(void *object)) {
    pthread_mutex_lock(&lock);
    slot *taken = take_slot();
    pthread_mutex_unlock(&lock);
    if (!taken) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no room for another handle: %d are live", SLOT_COUNT);
        return NULL;
    }
    taken->object = object;
    taken->destroy = destroy;
    atomic_store_explicit(&taken->kind, kind, memory_order_relaxed);
    atomic_store_explicit(&taken->state, LIVE | 1, memory_order_release);
    return taken;
}

static bool is_slot(const void *handle) {
    uintptr_t base = (uintptr_t)atomic_load(&slots), offset = (uintptr_t)handle - base;
    return base && offset < (size_t)atomic_load(&slots_used) * SLOT_BYTES && offset % SLOT_BYTES == 0 &&
           ((const slot *)handle)->magic == SLOT_MAGIC;
}

void *dp_handle_acquire(void *handle, dp_handle_kind kind, const char *argument) {
    if (!handle) {
        dp_fail(DP_ERR_HANDLE, "%s is NULL, but must be %s", argument, kind_name(kind));
        return NULL;
    }
    if (!is_slot(handle)) {
        dp_fail(DP_ERR_HANDLE, "%s is %p, which was never a handle; pass %s", argument, handle, kind_name(kind));
        return NULL;
    }
    slot *s = handle;
    uint32_t found = atomic_load_explicit(&s->kind, memory_order_relaxed);
    uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
    while (state & LIVE) {
        if (!atomic_compare_exchange_weak_explicit(&s->state, &state, state + 1, memory_order_acquire,
                                                   memory_order_relaxed))
            continue;
        found = atomic_load_explicit(&s->kind, memory_order_relaxed);
        if (found == (uint32_t)kind)
            return s->object;
        dp_handle_release(s);
        dp_fail(DP_ERR_HANDLE, "%s is %s (%p), but must be %s", argument, kind_name(found), handle, kind_name(kind));
        return NULL;
    }
    dp_fail(DP_ERR_HANDLE, "%s is %s (%p) that was destroyed before; destroy it after its last use", argument,
            kind_name(found), handle);
    return NULL;
}

void dp_handle_retain(void *handle) {
    slot *s = handle;
    atomic_fetch_add_explicit(&s->state, 1, memory_order_relaxed);
}

bool dp_handle_try_retain(void *handle) {
    slot *s = handle;
    uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
    while ((uint32_t)state) {
        if (atomic_compare_exchange_weak_explicit(&s->state, &state, state + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

void dp_handle_release(void *handle) {
    slot *s = handle;
    if ((uint32_t)(atomic_fetch_sub_explicit(&s->state, 1, memory_order_acq_rel)) != 1)
        return;
    s->destroy(s->object);
    pthread_mutex_lock(&lock);
    s->next_free = NULL;
    if (free_count++)
        free_tail->next_free = s;
    else
        free_head = s;
    free_tail = s;
    pthread_mutex_unlock(&lock);
}

bool dp_handle_close(void *handle) {
    slot *s = handle;
    if (!(atomic_fetch_and_explicit(&s->state, ~LIVE, memory_order_acq_rel) & LIVE))
        return false;
    dp_handle_release(handle);
    return true;
}

void dp_handle_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}
void dp_handle_fork_done(void) {
    pthread_mutex_unlock(&lock);
}
