#include "device/check/order.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/check/state.h"

enum {
    QUEUES = 64,         /* at a time */
    WORKS = 1024,        /* newest tasks kept */
    HOST_ACCESSES = 256, /* waiting for tasks to run */
    SPANS_MAX = 1 << 14  /* of a task and class */
};

/* What two tasks may do to the same bytes decides whether they conflict. */
typedef enum span_class { READS, WRITES, ATOMICS, CLASSES } span_class;

typedef struct extent {
    uintptr_t begin, end;
    uint32_t site; /* of a kernel's instruction, else 0 */
} extent;

typedef struct footprint {
    extent *list[CLASSES]; /* sorted and disjoint once the task has ended */
    size_t count[CLASSES], room[CLASSES];
} footprint;

/* Newest task of each queue that is known to be finished. */
typedef struct knowledge {
    uint64_t task[QUEUES];
} knowledge;

/* Who it was, for the report. */
typedef struct actor {
    char kernel[96];
    dp_loc loc; /* of a launch */
    const char *api;
    const void *caller;
} actor;

typedef struct work {
    uint64_t number;      /* in the order of queueing, over all queues */
    uint64_t task, queue; /* queue 0: not in use */
    unsigned slot;
    bool ended;
    knowledge knows;
    actor who;
    footprint touched;
} work;

typedef struct host_access {
    knowledge knows, queued;
    extent extent;
    span_class class;
    bool frees;
    actor who;
    dp_finding *suspect; /* owned; NULL: none */
} host_access;

static struct {
    pthread_mutex_t lock;
    _Atomic bool gave_up;   /* read without the lock: findings are reported under it */
    uint64_t queue[QUEUES]; /* by slot, 0 free */
    knowledge host, queued; /* what the host knows; newest task of each queue */
    knowledge learnt;       /* tasks that a finding named: one finding tells of a missing wait */
    knowledge line[QUEUES]; /* what the next task of a queue knows */
    work works[WORKS];      /* a ring */
    uint64_t work_count;
    host_access accesses[HOST_ACCESSES]; /* a ring, in the order they happened */
    uint64_t access_first, access_end;
} order = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void join(knowledge *into, const knowledge *from) {
    for (unsigned i = 0; i < QUEUES; i++)
        into->task[i] = into->task[i] > from->task[i] ? into->task[i] : from->task[i];
}

static int slot_of(uint64_t queue) {
    for (int i = 0; i < QUEUES; i++) {
        if (order.queue[i] == queue)
            return i;
    }
    return -1;
}

static work *work_at(uint64_t index) {
    return &order.works[index % WORKS];
}
static uint64_t oldest_work(void) {
    return order.work_count > WORKS ? order.work_count - WORKS : 0;
}

static work *find_work(uint64_t queue, uint64_t task) {
    for (uint64_t i = order.work_count; i-- > oldest_work();) {
        if (work_at(i)->queue == queue && work_at(i)->task == task)
            return work_at(i);
    }
    return NULL;
}

/* ---- footprints ---- */

static void forget(work *w) {
    for (unsigned c = 0; c < CLASSES; c++)
        dp_free(w->touched.list[c]);
    *w = (work){0};
}

/* Without room the access is not seen. */
static void add_extent(footprint *f, span_class class, extent added) {
    if (f->count[class] == f->room[class]) {
        size_t room = f->room[class] ? f->room[class] * 2 : 8;
        extent *list = room <= SPANS_MAX ? dp_realloc(DP_MEM_CHECK, f->list[class], room * sizeof *list) : NULL;
        if (!list)
            return;
        f->list[class] = list;
        f->room[class] = room;
    }
    f->list[class][f->count[class]++] = added;
}

static int by_begin(const void *left, const void *right) {
    const extent *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void tidy(footprint *f) {
    for (unsigned c = 0; c < CLASSES; c++) {
        if (f->count[c] < 2)
            continue;
        qsort(f->list[c], f->count[c], sizeof(extent), by_begin);
        size_t last = 0;
        for (size_t i = 1; i < f->count[c]; i++) {
            extent *into = &f->list[c][last], *next = &f->list[c][i];
            if (next->begin > into->end)
                f->list[c][++last] = *next;
            else if (next->end > into->end)
                into->end = next->end;
        }
        f->count[c] = last + 1;
    }
}

/* Bytes two footprints share, one of them writing. */
typedef struct meeting {
    uintptr_t begin, end;
    span_class class[2]; /* of either side */
    uint32_t site[2];
} meeting;

static bool lists_meet(const footprint *a, span_class of_a, const footprint *b, span_class of_b, meeting *out) {
    for (size_t i = 0, j = 0; i < a->count[of_a] && j < b->count[of_b];) {
        const extent *x = &a->list[of_a][i], *y = &b->list[of_b][j];
        if (x->end <= y->begin) {
            i++;
        } else if (y->end <= x->begin) {
            j++;
        } else {
            *out = (meeting){.begin = x->begin > y->begin ? x->begin : y->begin,
                             .end = x->end < y->end ? x->end : y->end,
                             .class = {of_a, of_b},
                             .site = {x->site, y->site}};
            return true;
        }
    }
    return false;
}

static bool footprints_meet(const footprint *a, const footprint *b, meeting *out) {
    static const uint8_t pairs[][2] = {{WRITES, WRITES}, {READS, WRITES},   {WRITES, READS},  {READS, ATOMICS},
                                       {ATOMICS, READS}, {WRITES, ATOMICS}, {ATOMICS, WRITES}};
    for (unsigned i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (lists_meet(a, pairs[i][0], b, pairs[i][1], out))
            return true;
    }
    return false;
}

/* ---- words ---- */

static void name_of(const actor *who, char *text, size_t text_bytes) {
    if (who->kernel[0])
        snprintf(text, text_bytes, "kernel %.80s", who->kernel);
    else
        snprintf(text, text_bytes, "%s", who->api ? who->api : "a queued task");
}

static dp_check_place place_of(const actor *who, const char *what) {
    return who->kernel[0] ? dp_place_of_loc(who->loc, what) : dp_place_of_caller(who->caller, what);
}

static void describe_queued(const work *w, const char *verb, uint32_t site, char *text, size_t text_bytes) {
    char name[100];
    name_of(&w->who, name, sizeof name);
    dp_site at = dp_site_at(site);
    if (at.loc.line)
        snprintf(text, text_bytes, "%s, queued here, %s (%s at line %" PRIu32 ")", name, verb, dp_insn_name(at.op),
                 at.loc.line);
    else
        snprintf(text, text_bytes, "%s, queued here, %s", name, verb);
}

static void report_host(const host_access *a, const work *w, const meeting *m) {
    char task[100], what[160];
    bool both = m->class[0] != READS && m->class[1] != READS;
    const char *verb = a->frees ? "frees" : a->class == READS ? "reads" : "writes";
    dp_finding f = {.kind = DP_CHECK_HOST_RACE, .has_other = true};
    name_of(&w->who, task, sizeof task);
    const char *api = a->who.api ? a->who.api : "the host";
    snprintf(f.sentence, sizeof f.sentence,
             "%s %s device memory that %s %s, and nothing makes the host wait until it has finished", api, verb, task,
             m->class[1] == READS ? "reads"
             : both && !a->frees  ? "writes, too"
                                  : "writes");
    snprintf(what, sizeof what, "%s %s these bytes at once", api, verb);
    f.place = place_of(&a->who, what);
    describe_queued(w, m->class[1] == READS ? "reads them" : "writes them", m->site[1], what, sizeof what);
    f.other = place_of(&w->who, what);
    dp_describe_gm((const void *)m->begin, m->end - m->begin, f.memory, sizeof f.memory);
    snprintf(f.cure, sizeof f.cure,
             a->frees
                 ? "call aclrtSynchronizeStream for its stream (or aclrtSynchronizeDevice) before %s"
                 : "call aclrtSynchronizeStream for its stream before %s, or use aclrtMemcpyAsync in the same stream",
             api);
    dp_finding_add(&f);
}

/* earlier and later: in the order of queueing. */
static void report_queues(const work *earlier, const work *later, const meeting *m) {
    char first[100], second[100], what[160];
    dp_finding f = {.kind = DP_CHECK_STREAM_RACE, .has_other = true};
    name_of(&earlier->who, first, sizeof first);
    name_of(&later->who, second, sizeof second);
    snprintf(f.sentence, sizeof f.sentence,
             "%s %s device memory that %s %s in another stream, and nothing orders the two streams", second,
             m->class[1] == READS ? "reads" : "writes", first, m->class[0] == READS ? "reads" : "writes");
    describe_queued(later, m->class[1] == READS ? "reads these bytes" : "writes these bytes", m->site[1], what,
                    sizeof what);
    f.place = place_of(&later->who, what);
    describe_queued(earlier, m->class[0] == READS ? "reads them" : "writes them", m->site[0], what, sizeof what);
    f.other = place_of(&earlier->who, what);
    dp_describe_gm((const void *)m->begin, m->end - m->begin, f.memory, sizeof f.memory);
    snprintf(
        f.cure, sizeof f.cure,
        "call aclrtRecordEvent in the first stream and aclrtStreamWaitEvent in the second, or use one stream for both");
    dp_finding_add(&f);
}

/* ---- comparing ---- */

static bool competes(const host_access *a, const work *w) {
    return w->queue && w->task <= a->queued.task[w->slot] && w->task > a->knows.task[w->slot];
}

static bool all_have_run(const host_access *a) {
    for (uint64_t i = oldest_work(); i < order.work_count; i++) {
        if (!work_at(i)->ended && competes(a, work_at(i)))
            return false;
    }
    return true;
}

/* The newest task first: the others of its queue are before it. */
static void decide(host_access *a) {
    bool found = false;
    join(&a->knows, &order.learnt);
    footprint own = {0};
    own.list[a->class] = &a->extent;
    own.count[a->class] = 1;
    for (uint64_t i = order.work_count; i-- > oldest_work();) {
        const work *w = work_at(i);
        meeting m;
        if (!competes(a, w) || !footprints_meet(&own, &w->touched, &m))
            continue;
        report_host(a, w, &m);
        order.learnt.task[w->slot] = a->knows.task[w->slot] = w->task;
        found = true;
    }
    if (a->suspect && !found)
        dp_finding_add(a->suspect);
    dp_free(a->suspect);
    a->suspect = NULL;
}

static void decide_oldest(void) {
    decide(&order.accesses[order.access_first++ % HOST_ACCESSES]);
}

static void decide_what_can_be(void) {
    while (order.access_first < order.access_end && all_have_run(&order.accesses[order.access_first % HOST_ACCESSES]))
        decide_oldest();
}

static void compare_with_others(const work *w) {
    for (uint64_t i = oldest_work(); i < order.work_count; i++) {
        const work *other = work_at(i);
        meeting m;
        if (!other->queue || !other->ended || other->slot == w->slot || w->knows.task[other->slot] >= other->task ||
            other->knows.task[w->slot] >= w->task)
            continue;
        const work *earlier = other->number < w->number ? other : w, *later = earlier == w ? other : w;
        if (footprints_meet(&earlier->touched, &later->touched, &m))
            report_queues(earlier, later, &m);
    }
}

/* ---- events ---- */

/* Slot of a queue that is told of for the first time. */
static int open_queue(uint64_t queue) {
    int slot = slot_of(0);
    if (slot < 0) {
        atomic_store(&order.gave_up, true);
        return -1;
    }
    order.queue[slot] = queue;
    /* task numbers of the slot's last queue mean nothing now */
    order.host.task[slot] = order.queued.task[slot] = order.learnt.task[slot] = 0;
    for (unsigned i = 0; i < QUEUES; i++)
        order.line[i].task[slot] = 0;
    for (unsigned i = 0; i < WORKS; i++) {
        order.works[i].knows.task[slot] = 0;
        if (order.works[i].queue && order.works[i].slot == (unsigned)slot)
            forget(&order.works[i]);
    }
    order.line[slot] = (knowledge){0};
    return slot;
}

static void queued(const dp_host_event *event) {
    int slot = slot_of(event->queue);
    if (slot < 0)
        slot = open_queue(event->queue);
    if (slot < 0)
        return;
    join(&order.line[slot], &order.host);
    work *w = work_at(order.work_count);
    forget(w);
    *w = (work){.number = order.work_count++,
                .task = event->task,
                .queue = event->queue,
                .slot = (unsigned)slot,
                .knows = order.line[slot],
                .who = {.api = event->name, .caller = event->caller}};
    order.line[slot].task[slot] = order.queued.task[slot] = event->task;
}

static void ended(int slot, uint64_t task) {
    for (uint64_t i = oldest_work(); i < order.work_count; i++) {
        work *w = work_at(i);
        if (!w->queue || w->ended || w->slot != (unsigned)slot || w->task > task)
            continue;
        w->ended = true;
        tidy(&w->touched);
        compare_with_others(w);
    }
    decide_what_can_be();
}

/* What somebody knows who waited for `task` of the queue. */
static knowledge known_after(int slot, uint64_t task) {
    knowledge known = order.line[slot];
    known.task[slot] = task;
    return known;
}

void dp_order_event(const dp_host_event *event) {
    pthread_mutex_lock(&order.lock);
    if (order.gave_up || !event->queue)
        goto done;
    int slot = slot_of(event->queue);
    if (event->kind == DP_HOST_QUEUED) {
        queued(event);
    } else if (event->kind == DP_HOST_ORDERED) {
        int after = slot_of(event->after_queue);
        if (slot < 0 && after >= 0)
            slot = open_queue(event->queue);
        if (slot >= 0 && after >= 0) {
            knowledge known = known_after(after, event->after_task);
            join(&order.line[slot], &known);
        }
    } else if (slot >= 0) {
        if (event->kind == DP_HOST_WAITED) {
            knowledge known = known_after(slot, event->task);
            join(&order.host, &known);
        }
        ended(slot, event->task);
        if (event->kind == DP_HOST_CLOSED) {
            ended(slot, UINT64_MAX);
            while (order.access_first < order.access_end)
                decide_oldest(); /* their numbers of this queue are about to lose their meaning */
            order.queue[slot] = 0;
        }
    }
done:
    pthread_mutex_unlock(&order.lock);
}

static void host_accesses(const dp_host_event *event) {
    bool reads = event->kind == DP_HOST_READ;
    if (order.access_end - order.access_first == HOST_ACCESSES)
        decide_oldest();
    uintptr_t begin = (uintptr_t)(reads ? event->src : event->dst);
    order.accesses[order.access_end++ % HOST_ACCESSES] =
        (host_access){.knows = order.host,
                      .queued = order.queued,
                      .extent = {begin, begin + event->size_bytes, 0},
                      .class = reads ? READS : WRITES,
                      .frees = event->kind == DP_HOST_FREE,
                      .who = {.api = event->name, .caller = event->caller}};
    decide_what_can_be();
}

void dp_order_access(const dp_host_event *event) {
    bool reads = event->kind == DP_HOST_READ;
    pthread_mutex_lock(&order.lock);
    if (!order.gave_up && !event->queue) {
        host_accesses(event);
    } else if (!order.gave_up) {
        work *w = find_work(event->queue, event->task);
        uintptr_t begin = (uintptr_t)(reads ? event->src : event->dst);
        if (w && !w->ended)
            add_extent(&w->touched, reads ? READS : WRITES, (extent){begin, begin + event->size_bytes, 0});
    }
    pthread_mutex_unlock(&order.lock);
}

void dp_order_suspect(const dp_finding *finding) {
    pthread_mutex_lock(&order.lock);
    host_access *a =
        order.access_first < order.access_end ? &order.accesses[(order.access_end - 1) % HOST_ACCESSES] : NULL;
    dp_finding *copy = a && !a->suspect ? dp_alloc(DP_MEM_CHECK, sizeof *copy) : NULL;
    if (copy) {
        *copy = *finding;
        a->suspect = copy;
    } else {
        dp_finding_add(finding);
    }
    pthread_mutex_unlock(&order.lock);
}

void dp_order_launch(const dp_launch_info *info, const dp_span *spans, size_t count) {
    pthread_mutex_lock(&order.lock);
    work *w = order.gave_up || !info->queue ? NULL : find_work(info->queue, info->task);
    if (w && !w->ended) {
        snprintf(w->who.kernel, sizeof w->who.kernel, "%s", info->kernel.name ? info->kernel.name : "?");
        w->who.loc = info->kernel.launch;
        for (size_t i = 0; i < count; i++) {
            if (spans[i].mode & DP_SPAN_CACHED)
                continue;
            span_class class = !(spans[i].mode & DP_SPAN_WRITE) ? READS
                               : spans[i].mode & DP_SPAN_ATOMIC ? ATOMICS
                                                                : WRITES;
            if (w->touched.count[class] == SPANS_MAX)
                tidy(&w->touched);
            add_extent(&w->touched, class, (extent){spans[i].begin, spans[i].end, spans[i].site});
        }
    }
    pthread_mutex_unlock(&order.lock);
}

void dp_order_flush(void) {
    pthread_mutex_lock(&order.lock);
    while (order.access_first < order.access_end)
        decide_oldest();
    pthread_mutex_unlock(&order.lock);
}

bool dp_order_gave_up(void) {
    return atomic_load(&order.gave_up);
}

void dp_order_fork_prepare(void) {
    pthread_mutex_lock(&order.lock);
}

void dp_order_fork_parent(void) {
    pthread_mutex_unlock(&order.lock);
}

void dp_order_fork_child(void) {
    for (unsigned i = 0; i < WORKS; i++)
        forget(&order.works[i]);
    for (; order.access_first < order.access_end; order.access_first++)
        dp_free(order.accesses[order.access_first % HOST_ACCESSES].suspect);
    memset(order.queue, 0, sizeof order.queue);
    pthread_mutex_unlock(&order.lock);
}
