#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* on_exit */
#endif
#include "device/check/leaks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/check/state.h"

enum { BUCKETS = 256 };

typedef struct object {
    struct object *next;
    void *handle;
    const char *what; /* "stream" or "event" */
    const char *api;
    const void *caller;
    uint32_t device_id;
} object;

static struct {
    pthread_mutex_t lock;
    object *bucket[BUCKETS]; /* by handle */
    _Atomic bool failed;     /* the process exits with another status than 0 */
} leaks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static object **bucket_of(const void *handle) {
    return &leaks.bucket[((uintptr_t)handle >> 6) % BUCKETS];
}

static void made(const dp_host_event *event) {
    object *o = dp_alloc(DP_MEM_CHECK, sizeof *o);
    if (!o)
        return;
    object **bucket = bucket_of(event->dst);
    *o = (object){*bucket, event->dst, event->message, event->name, event->caller, event->device_id};
    *bucket = o;
}

static void destroyed(const void *handle) {
    for (object **at = bucket_of(handle); *at; at = &(*at)->next) {
        object *o = *at;
        if (o->handle != handle)
            continue;
        *at = o->next;
        dp_free(o);
        return;
    }
}

/* Facts: a reset of the device ends its streams, too. */
static void reset(uint32_t device_id) {
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (object **at = &leaks.bucket[b]; *at;) {
            object *o = *at;
            if (o->device_id != device_id || strcmp(o->what, "stream") != 0) {
                at = &o->next;
                continue;
            }
            *at = o->next;
            dp_free(o);
        }
    }
}

void dp_leaks_event(const dp_host_event *event) {
    pthread_mutex_lock(&leaks.lock);
    if (event->kind == DP_HOST_MADE)
        made(event);
    else if (event->kind == DP_HOST_DESTROYED)
        destroyed(event->dst);
    else
        reset(event->device_id);
    pthread_mutex_unlock(&leaks.lock);
}

/* ---- the report ---- */

/* What one line of the program made. */
typedef struct group {
    const void *caller;
    const char *what, *api;
    uint64_t count, bytes;
} group;

typedef struct groups {
    group *list;
    size_t count, room;
} groups;

static void count_in(groups *all, const void *caller, const char *what, const char *api, size_t bytes) {
    size_t i = 0;
    while (i < all->count && (all->list[i].caller != caller || strcmp(all->list[i].what, what) != 0))
        i++;
    if (i == all->room) {
        size_t room = all->room ? all->room * 2 : 16;
        group *list = dp_realloc(DP_MEM_CHECK, all->list, room * sizeof *list);
        if (!list)
            return;
        all->list = list;
        all->room = room;
    }
    if (i == all->count)
        all->list[all->count++] = (group){.caller = caller, .what = what, .api = api};
    all->list[i].count++;
    all->list[i].bytes += bytes;
}

static void count_memory(void *context, const dp_gm_story *story) {
    count_in(context, story->alloc_caller, "memory", NULL, story->size_bytes);
}

static void count_objects(groups *all) {
    pthread_mutex_lock(&leaks.lock);
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (const object *o = leaks.bucket[b]; o; o = o->next)
            count_in(all, o->caller, o->what, o->api, 0);
    }
    pthread_mutex_unlock(&leaks.lock);
}

static void report(const group *g) {
    char count[32], bytes[32];
    bool memory = strcmp(g->what, "memory") == 0, one = g->count == 1;
    dp_finding f = {.kind = memory ? DP_CHECK_LEAKED_MEMORY : DP_CHECK_LEAKED_HANDLE};
    dp_describe_count(g->count, count);
    if (memory) {
        f.place = dp_place_of_caller(g->caller, "the memory was allocated here");
        dp_describe_count(g->bytes, bytes);
        snprintf(f.sentence, sizeof f.sentence, "%s allocation%s of device memory, %s bytes, %s never freed", count,
                 one ? "" : "s", bytes, one ? "is" : "are");
        snprintf(f.cure, sizeof f.cure,
                 "call aclrtFree (acldvppFree, aclmdlUnload for a model's) before aclrtResetDevice and aclFinalize");
    } else {
        f.place = dp_place_of_caller(g->caller, "it was made here");
        snprintf(f.sentence, sizeof f.sentence, "%s %s%s of %s %s never destroyed", count, g->what, one ? "" : "s",
                 g->api ? g->api : "this process", one ? "is" : "are");
        snprintf(f.cure, sizeof f.cure, "call aclrtDestroy%s before aclrtResetDevice and aclFinalize",
                 strcmp(g->what, "stream") == 0 ? "Stream" : "Event");
    }
    dp_finding_add(&f);
}

void dp_leaks_report(void) {
    if (atomic_load(&leaks.failed))
        return;
    groups all = {0};
    dp_gm_story_each(count_memory, &all);
    count_objects(&all);
    for (size_t i = 0; i < all.count; i++)
        report(&all.list[i]);
    dp_free(all.list);
}

static void note_status(int status, void *unused) {
    (void)unused;
    atomic_store(&leaks.failed, status != 0);
}

void dp_leaks_install(void) {
    on_exit(note_status, NULL);
}

void dp_leaks_fork_child(void) {
    leaks.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* another thread of the parent may have held it */
    memset(leaks.bucket, 0, sizeof leaks.bucket);
    dp_gm_story_disown();
}
