#define _GNU_SOURCE
#include "runtime/pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/log.h"
#include "runtime/crash.h"
#include "runtime/futex.h"
#include "runtime/job.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

enum {
    WORKERS_MAX = 256,
    SPIN_NS = 50000,
    SPIN_ATTENDED_NS = 1000000, /* while somebody says that more work comes soon */
    PARTS_MAX = 64,
    PATIENCE = 2048 /* looks at a helper's last piece before this thread gives its processor away: about 100 us */
};

static struct {
    pthread_mutex_t lock;
    dp_stream *ready_head[DP_STREAM_PRIORITIES], *ready_tail[DP_STREAM_PRIORITIES];
    dp_job *jobs;
    _Atomic uint32_t workers; /* threads started */
    bool started;
    /* apart from the lock: spinners read these all the time */
    _Alignas(64) _Atomic uint32_t ready_count;
    _Atomic uint32_t job_count;
    _Atomic uint32_t attended;
    _Alignas(64) _Atomic uint32_t spinners;
    dp_futex signal;
} pool = {.lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};

static _Atomic unsigned width;
static _Thread_local unsigned for_depth;
static _Thread_local unsigned worker_index;

unsigned dp_pool_width(void) {
    unsigned known = atomic_load_explicit(&width, memory_order_relaxed);
    if (known)
        return known;
    const char *text = getenv("DOPPEL_WORKERS");
    char *end;
    long asked = text && *text ? strtol(text, &end, 10) : 0;
    if (text && *text && (*end || asked < 1 || asked > WORKERS_MAX)) {
        dp_log("runtime", DP_LOG_ERROR, "DOPPEL_WORKERS is \"%s\", but must be 1 to %d; using the processor count",
               text, WORKERS_MAX);
        asked = 0;
    }
    known = asked ? (unsigned)asked : dp_cpu_count();
    if (known > WORKERS_MAX)
        known = WORKERS_MAX;
    atomic_store(&width, known);
    return known;
}

static bool has_work(void) {
    return atomic_load(&pool.ready_count) > 0 || atomic_load(&pool.job_count) > 0;
}

/* Called with the lock held. */
static void unlink_ready(dp_stream *stream) {
    unsigned p = stream->priority;
    if (stream->ready_previous)
        stream->ready_previous->ready_next = stream->ready_next;
    else
        pool.ready_head[p] = stream->ready_next;
    if (stream->ready_next)
        stream->ready_next->ready_previous = stream->ready_previous;
    else
        pool.ready_tail[p] = stream->ready_previous;
    stream->ready_next = stream->ready_previous = NULL;
    atomic_fetch_sub(&pool.ready_count, 1);
    atomic_store(&stream->state, DP_STREAM_RUNNING);
}

static dp_stream *take_ready(void) {
    if (atomic_load(&pool.ready_count) == 0)
        return NULL;
    dp_stream *stream = NULL;
    pthread_mutex_lock(&pool.lock);
    for (unsigned p = 0; p < DP_STREAM_PRIORITIES && !stream; p++)
        stream = pool.ready_head[p];
    if (stream)
        unlink_ready(stream);
    pthread_mutex_unlock(&pool.lock);
    return stream;
}

/* Called with the lock held. */
static void unlist(dp_job *job) {
    atomic_store(&job->listed, false);
    if (job->previous)
        job->previous->next = job->next;
    else
        pool.jobs = job->next;
    if (job->next)
        job->next->previous = job->previous;
    atomic_fetch_sub(&pool.job_count, 1);
}

static dp_job *take_job(void) {
    if (atomic_load(&pool.job_count) == 0)
        return NULL;
    pthread_mutex_lock(&pool.lock);
    dp_job *job = pool.jobs;
    if (job && --job->room == 0)
        unlist(job); /* the list's reference is the taker's now */
    else if (job)
        atomic_fetch_add(&job->references, 1);
    pthread_mutex_unlock(&pool.lock);
    return job;
}

static bool run_one(void) {
    dp_stream *stream = take_ready();
    if (stream) {
        dp_stream_drain(stream, UINT64_MAX);
        return true;
    }
    dp_job *job = take_job();
    if (!job)
        return false;
    job->join(job);
    dp_job_release(job);
    return true;
}

/* A spinner sees new work by itself, which saves its maker the system call. */
static void notify(unsigned count) {
    unsigned spinning = atomic_load(&pool.spinners);
    if (count > spinning)
        dp_futex_wake(&pool.signal, (int)(count - spinning));
}

/* With an attended pool all that would help: one of the threads is the one that has the work. */
static bool may_spin(void) {
    unsigned limit = atomic_load(&pool.attended) ? dp_pool_width() - 1 : dp_pool_width() / 2;
    unsigned spinning = atomic_load(&pool.spinners);
    while (spinning < limit) {
        if (atomic_compare_exchange_weak(&pool.spinners, &spinning, spinning + 1))
            return true;
    }
    return false;
}

static void spin(void) {
    const uint64_t begin = dp_clock_ns();
    uint64_t limit;
    do {
        for (int i = 0; i < 32; i++) {
            if (has_work())
                break;
            dp_cpu_relax();
        }
        limit = atomic_load_explicit(&pool.attended, memory_order_relaxed) ? SPIN_ATTENDED_NS : SPIN_NS;
    } while (!has_work() && dp_clock_ns() - begin < limit);
    /* the last spinner that goes to work wakes a successor, or work that came meanwhile would wait for it */
    bool last = atomic_fetch_sub(&pool.spinners, 1) == 1;
    if (last && atomic_load(&pool.ready_count) + atomic_load(&pool.job_count) > 1)
        notify(1);
}

static void *worker(void *index) {
    worker_index = (unsigned)(uintptr_t)index;
    for (;;) {
        if (run_one())
            continue;
        if (may_spin()) {
            spin();
            if (run_one())
                continue;
        }
        uint32_t seen = dp_futex_read(&pool.signal);
        if (!has_work())
            dp_futex_wait(&pool.signal, seen, UINT64_MAX);
    }
    return NULL;
}

/* Called with the lock held. Signals belong to the program's threads, so workers block all but those of a crash. */
static void start_workers(void) {
    pool.started = true;
    sigset_t all, old;
    sigfillset(&all);
    dp_crash_unblock(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (unsigned i = 0; i < dp_pool_width(); i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, worker, (void *)(uintptr_t)i) != 0) {
            dp_log("runtime", DP_LOG_WARN, "only %u of %u worker threads could be started", i, dp_pool_width());
            break;
        }
        pthread_setname_np(thread, "doppel");
        atomic_fetch_add(&pool.workers, 1);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

bool dp_pool_has_workers(void) {
    return atomic_load(&pool.workers) > 0;
}

void dp_pool_ready(dp_stream *stream) {
    unsigned p = stream->priority;
    pthread_mutex_lock(&pool.lock);
    if (!pool.started)
        start_workers();
    stream->ready_next = NULL;
    stream->ready_previous = pool.ready_tail[p];
    if (pool.ready_tail[p])
        pool.ready_tail[p]->ready_next = stream;
    else
        pool.ready_head[p] = stream;
    pool.ready_tail[p] = stream;
    atomic_store(&stream->state, DP_STREAM_READY);
    atomic_fetch_add(&pool.ready_count, 1);
    pthread_mutex_unlock(&pool.lock);
    notify(1);
}

bool dp_pool_take(dp_stream *stream) {
    if (atomic_load(&stream->state) != DP_STREAM_READY)
        return false;
    pthread_mutex_lock(&pool.lock);
    bool taken = atomic_load(&stream->state) == DP_STREAM_READY;
    if (taken)
        unlink_ready(stream);
    pthread_mutex_unlock(&pool.lock);
    return taken;
}

void dp_pool_publish(dp_job *job, unsigned helpers) {
    if (helpers == 0)
        return;
    pthread_mutex_lock(&pool.lock);
    if (!pool.started)
        start_workers();
    atomic_fetch_add(&job->references, 1);
    atomic_store(&job->listed, true);
    job->previous = NULL;
    job->next = pool.jobs;
    if (pool.jobs)
        pool.jobs->previous = job;
    pool.jobs = job;
    atomic_fetch_add(&pool.job_count, 1);
    pthread_mutex_unlock(&pool.lock);
    notify(helpers);
}

void dp_pool_withdraw(dp_job *job) {
    if (!atomic_load(&job->listed))
        return;
    pthread_mutex_lock(&pool.lock);
    bool listed = atomic_load(&job->listed);
    if (listed)
        unlist(job);
    pthread_mutex_unlock(&pool.lock);
    if (listed)
        dp_job_release(job);
}

void dp_job_release(dp_job *job) {
    void (*destroy)(dp_job *) = job->destroy;
    if (atomic_fetch_sub(&job->references, 1) == 1 && destroy)
        destroy(job);
}

void dp_pool_attend(void) {
    atomic_fetch_add(&pool.attended, 1);
}
void dp_pool_leave(void) {
    atomic_fetch_sub(&pool.attended, 1);
}

/*
 * A range shared by several threads: each has a part of it, the same one in every range of the same size, so that what one
 * node of a model wrote is in the cache of the thread that reads it in the next. Pieces are taken from the front of the
 * own part, then of the others'. The job lives on the caller's stack until all helpers have let go of it.
 */
typedef struct range_part {
    _Alignas(64) _Atomic size_t next;
    size_t end;
} range_part;

typedef struct range_job {
    dp_job job;
    size_t piece;
    unsigned n_parts;
    void (*fn)(void *context, size_t begin, size_t end);
    void *context;
    range_part parts[PARTS_MAX];
} range_job;

static void take_parts(range_job *range, unsigned first) {
    for_depth++;
    for (unsigned i = 0, at = first; i < range->n_parts; i++, at = at + 1 == range->n_parts ? 0 : at + 1) {
        range_part *part = &range->parts[at];
        const size_t end = part->end;
        while (atomic_load_explicit(&part->next, memory_order_relaxed) < end) {
            size_t begin = atomic_fetch_add(&part->next, range->piece);
            if (begin >= end)
                break;
            range->fn(range->context, begin, end - begin < range->piece ? end : begin + range->piece);
        }
    }
    for_depth--;
    dp_pool_withdraw(&range->job);
}

static void range_join(dp_job *job) {
    range_job *range = (range_job *)job;
    take_parts(range, 1 + worker_index % (range->n_parts - 1)); /* part 0 is the caller's */
}

/* pieces > 1 */
static void share(size_t count, size_t piece, size_t pieces, void (*fn)(void *context, size_t begin, size_t end),
                  void *context) {
    unsigned threads = dp_pool_width() < PARTS_MAX ? dp_pool_width() : PARTS_MAX;
    range_job range; /* field by field: most parts are not used */
    range.job = (dp_job){.join = range_join, .references = 1};
    range.piece = piece;
    range.n_parts = pieces < threads ? (unsigned)pieces : threads;
    range.fn = fn;
    range.context = context;
    size_t begin = 0;
    for (unsigned i = 0; i < range.n_parts; i++) {
        size_t end = (pieces * (i + 1) / range.n_parts) * piece;
        atomic_init(&range.parts[i].next, begin);
        range.parts[i].end = begin = end < count ? end : count;
    }
    range.job.room = range.n_parts - 1;
    dp_pool_publish(&range.job, range.n_parts - 1);
    take_parts(&range, 0);
    for (unsigned i = 0; atomic_load(&range.job.references) > 1; i++) {
        dp_cpu_relax();
        if (i >= PATIENCE && i % 256 == 255)
            sched_yield();
    }
}

void dp_pool_for(size_t count, size_t grain, void (*fn)(void *context, size_t begin, size_t end), void *context) {
    if (count == 0)
        return;
    if (grain == 0)
        grain = 1;
    unsigned threads = dp_pool_width();
    if (for_depth > 0 || threads == 1 || count <= grain) {
        fn(context, 0, count);
        return;
    }
    /* four pieces a thread even out uneven ones */
    size_t piece = (count + threads * 4u - 1) / (threads * 4u);
    piece = piece < grain ? grain : piece;
    share(count, piece, (count + piece - 1) / piece, fn, context);
}

void dp_pool_for_each(size_t count, void (*fn)(void *context, size_t begin, size_t end), void *context) {
    if (for_depth > 0 || dp_pool_width() == 1 || count < 2) {
        if (count)
            fn(context, 0, count);
        return;
    }
    share(count, 1, count, fn, context);
}

void dp_pool_fork_prepare(void) {
    pthread_mutex_lock(&pool.lock);
}

void dp_pool_fork_parent(void) {
    pthread_mutex_unlock(&pool.lock);
}

/* The child has none of the parent's threads and none of its work. */
void dp_pool_fork_child(void) {
    pool.lock = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    for (unsigned p = 0; p < DP_STREAM_PRIORITIES; p++)
        pool.ready_head[p] = pool.ready_tail[p] = NULL;
    pool.jobs = NULL;
    pool.started = false;
    atomic_store(&pool.ready_count, 0);
    atomic_store(&pool.job_count, 0);
    atomic_store(&pool.attended, 0);
    atomic_store(&pool.spinners, 0);
    atomic_store(&pool.workers, 0);
    atomic_store(&pool.signal.waiters, 0);
    for_depth = 0;
}
