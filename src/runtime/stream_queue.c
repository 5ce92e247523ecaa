#define _GNU_SOURCE
#include "runtime/stream_queue.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/capture_state.h"
#include "runtime/handle.h"
#include "runtime/profile.h"
#include "runtime/report.h"
#include "runtime/task.h"
#include "runtime/watchdog.h"

enum { FREE_TASKS_MAX = 64, SPIN_NS = 50000, SPINS_BEFORE_YIELD = 2000, SETTLE_MS = 5000 };

static _Atomic unsigned lost;
static pthread_mutex_t lost_lock = PTHREAD_MUTEX_INITIALIZER;
static char lost_sentence[DP_STREAM_ERROR_BYTES + 128];

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static dp_stream *all_streams;
static _Atomic uint64_t last_ticket, last_queue;
static _Atomic uint32_t last_stream_id;
static _Thread_local dp_stream *running;

dp_stream *dp_stream_running(void) {
    return running;
}

static void destroy_stream(void *object) {
    dp_stream *stream = object;
    pthread_mutex_lock(&list_lock);
    if (stream->previous)
        stream->previous->next = stream->next;
    else if (all_streams == stream)
        all_streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    pthread_mutex_unlock(&list_lock);
    while (stream->free_tasks) {
        dp_task *task = stream->free_tasks;
        stream->free_tasks = task->next;
        dp_free(task);
    }
    if (stream->context)
        dp_handle_release(stream->context->self);
    pthread_mutex_destroy(&stream->lock);
    dp_free(stream);
}

dp_status dp_stream_check_lost(void) {
    if (DP_LIKELY(!atomic_load_explicit(&lost, memory_order_relaxed)))
        return DP_OK;
    pthread_mutex_lock(&lost_lock);
    dp_status status = dp_fail(DP_ERR_KERNEL_TIMEOUT, "%s", lost_sentence);
    pthread_mutex_unlock(&lost_lock);
    return status;
}

/* Adaptive: it is held for a few instructions, by the thread that queues and the thread that runs. */
static void init_lock(dp_stream *stream) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&stream->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

dp_status dp_stream_new(uint32_t device_id, dp_context *context, bool is_default, uint32_t priority,
                        dp_stream **out_stream) {
    dp_stream *stream = dp_alloc(DP_MEM_RUNTIME, sizeof *stream);
    if (!stream)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a stream (%zu bytes)", sizeof *stream);
    init_lock(stream);
    atomic_store(&stream->wake_at, UINT64_MAX);
    stream->device_id = device_id;
    stream->priority = priority < DP_STREAM_PRIORITIES ? priority : DP_STREAM_PRIORITIES - 1;
    stream->is_default = is_default;
    stream->queue = atomic_fetch_add(&last_queue, 1) + 1;
    stream->id = is_default ? 0 : atomic_fetch_add(&last_stream_id, 1) + 1;
    atomic_store(&stream->oldest_ticket, UINT64_MAX);
    stream->self = dp_handle_create(DP_HANDLE_STREAM, stream, destroy_stream);
    if (!stream->self) {
        pthread_mutex_destroy(&stream->lock);
        dp_free(stream);
        return DP_ERR_OUT_OF_MEMORY;
    }
    if (context) {
        dp_handle_retain(context->self);
        stream->context = context;
    }
    pthread_mutex_lock(&list_lock);
    stream->next = all_streams;
    if (all_streams)
        all_streams->previous = stream;
    all_streams = stream;
    pthread_mutex_unlock(&list_lock);
    *out_stream = stream;
    return DP_OK;
}

void dp_stream_release(dp_stream *stream) {
    dp_handle_release(stream->self);
}

dp_task *dp_task_new(dp_stream *stream, const char *name, size_t payload_bytes) {
    pthread_mutex_lock(&stream->lock);
    dp_task *task = stream->free_tasks;
    if (task) {
        stream->free_tasks = task->next;
        stream->free_count--;
    }
    pthread_mutex_unlock(&stream->lock);
    if (!task)
        task = dp_alloc(DP_MEM_RUNTIME, sizeof *task);
    void *payload = task ? task->inline_bytes : NULL;
    if (task && payload_bytes > DP_TASK_INLINE_BYTES)
        payload = dp_alloc(DP_MEM_RUNTIME, payload_bytes);
    if (!payload) {
        dp_free(task);
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to queue %s (%zu bytes)", name, payload_bytes + sizeof *task);
        return NULL;
    }
    task->next = NULL;
    task->stream = stream;
    task->name = name;
    task->run = NULL;
    task->destroy = NULL;
    task->cancel = NULL;
    task->resume = NULL;
    task->again = NULL;
    task->payload = payload;
    task->even_after_stop = false;
    task->begin_ns = 0;
    return task;
}

void dp_task_discard(dp_task *task) {
    if (task->payload != task->inline_bytes)
        dp_free(task->payload);
    dp_free(task);
}

bool dp_stream_is_busy(const dp_stream *stream) {
    return atomic_load(&stream->completed) != atomic_load(&stream->submitted);
}

void dp_stream_append_plain(dp_stream *stream, dp_task *task) {
    pthread_mutex_lock(&stream->lock);
    task->number = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
    task->ticket = atomic_fetch_add(&last_ticket, 1) + 1;
    if (stream->tail) {
        stream->tail->next = task;
    } else {
        stream->head = task;
        atomic_store(&stream->oldest_ticket, task->ticket);
    }
    stream->tail = task;
    atomic_store(&stream->submitted, task->number);
    dp_report_order(DP_HOST_QUEUED, stream->queue, task->number, 0, 0);
    bool wake = atomic_load(&stream->state) == DP_STREAM_IDLE;
    if (wake)
        atomic_store(&stream->state, DP_STREAM_RUNNING); /* nobody else may start it before it is in the list */
    pthread_mutex_unlock(&stream->lock);
    if (wake) {
        dp_handle_retain(stream->self);
        dp_pool_ready(stream);
    }
}

/* Work of the context's default stream that comes before what is queued now: NULL when none is left to wait for. */
static dp_stream *busy_before(const dp_stream *stream) {
    if (!stream->context)
        return NULL;
    dp_stream *earlier = stream->context->default_stream;
    if (running == earlier)
        return NULL;
    if (DP_UNLIKELY(dp_stream_is_busy(earlier)))
        return earlier;
    dp_report_order(DP_HOST_ORDERED, stream->queue, 0, earlier->queue, atomic_load(&earlier->submitted));
    return NULL;
}

dp_status dp_stream_append(dp_stream *stream, dp_task *task) {
    dp_status status = dp_stream_check_lost();
    if (DP_UNLIKELY(status != DP_OK))
        return status;
    if (dp_stream_is_captured(stream))
        return dp_capture_take(stream, task);
    dp_stream *earlier = busy_before(stream);
    if (DP_UNLIKELY(earlier)) {
        status = dp_stream_order_after(stream, earlier);
        if (status != DP_OK)
            return status;
    }
    dp_stream_append_plain(stream, task);
    return DP_OK;
}

bool dp_stream_pass(dp_stream *stream, uint64_t *out_number) {
    if (atomic_load(&stream->state) != DP_STREAM_IDLE || dp_profile_on() || DP_UNLIKELY(atomic_load(&lost)) ||
        busy_before(stream))
        return false;
    pthread_mutex_lock(&stream->lock);
    bool idle = atomic_load(&stream->state) == DP_STREAM_IDLE;
    if (idle) {
        uint64_t number = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
        atomic_store(&stream->submitted, number);
        dp_report_order(DP_HOST_QUEUED, stream->queue, number, 0, 0);
        atomic_store(&stream->completed, number);
        dp_report_order(DP_HOST_ENDED, stream->queue, number, 0, 0);
        *out_number = number;
    }
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

static void destroy_payload(dp_task *task) {
    if (task->destroy)
        task->destroy(task);
    if (task->payload != task->inline_bytes)
        dp_free(task->payload);
    task->payload = task->inline_bytes;
}

/* The word changes last: a thread that noted its number before the reset does not sleep on, but notes it again. */
static void wake_sleepers(dp_stream *stream) {
    atomic_store(&stream->wake_at, UINT64_MAX);
    dp_futex_wake(&stream->progress, INT_MAX);
}

/* Called with the lock held. */
static void recycle(dp_stream *stream, dp_task *task) {
    if (stream->free_count >= FREE_TASKS_MAX) {
        dp_free(task);
        return;
    }
    task->next = stream->free_tasks;
    stream->free_tasks = task;
    stream->free_count++;
}

/* Takes the finished first task off. Returns true if there is another; otherwise the stream is idle afterwards. */
static bool complete_head(dp_stream *stream, uint64_t *out_completed) {
    dp_task *task = stream->head; /* only the holder of the stream takes tasks off */
    if (DP_UNLIKELY(task->begin_ns))
        dp_profile_task(stream, task->name, task->begin_ns);
    if (task->cancel) {
        pthread_mutex_lock(&stream->lock); /* dp_stream_drop_queued must not look into a released payload */
        task->cancel = NULL;
        pthread_mutex_unlock(&stream->lock);
    }
    destroy_payload(task);
    pthread_mutex_lock(&stream->lock);
    stream->head = task->next;
    if (!stream->head)
        stream->tail = NULL;
    atomic_store(&stream->oldest_ticket, stream->head ? stream->head->ticket : UINT64_MAX);
    bool more = stream->head != NULL;
    /* numbers behind this one may have been dropped */
    *out_completed = more ? stream->head->number - 1 : atomic_load(&stream->submitted);
    atomic_store(&stream->completed, *out_completed);
    dp_report_order(DP_HOST_ENDED, stream->queue, *out_completed, 0, 0);
    if (!more)
        atomic_store(&stream->state, DP_STREAM_IDLE);
    recycle(stream, task);
    pthread_mutex_unlock(&stream->lock);
    if (*out_completed >= atomic_load(&stream->wake_at))
        wake_sleepers(stream);
    return more;
}

static bool must_skip(dp_stream *stream, const dp_task *task) {
    return DP_UNLIKELY(atomic_load_explicit(&stream->stopped, memory_order_relaxed)) && !task->even_after_stop;
}

void dp_stream_drain(dp_stream *stream, uint64_t until) {
    dp_stream *outer = running;
    bool more = true;
    uint64_t completed = 0;
    while (more) {
        if (completed >= until) {
            dp_pool_ready(stream);
            running = outer;
            return;
        }
        dp_task *task = stream->head;
        if (!must_skip(stream, task)) {
            running = stream;
            if (dp_profile_on())
                task->begin_ns = dp_clock_ns();
            atomic_store(&stream->state, DP_STREAM_PENDING);
            dp_task_state state = task->run(task);
            running = outer;
            if (state == DP_TASK_PENDING)
                return;
        }
        more = complete_head(stream, &completed);
    }
    running = outer;
    dp_stream_release(stream);
}

void dp_stream_task_done(dp_stream *stream) {
    uint64_t completed;
    dp_task *head = stream->head;
    if (DP_UNLIKELY(head->resume != NULL) && head->resume(head)) {
        dp_pool_ready(stream);
        return;
    }
    if (complete_head(stream, &completed))
        dp_pool_ready(stream);
    else
        dp_stream_release(stream);
}

void dp_stream_fail(dp_stream *stream, dp_status status, const char *sentence) {
    pthread_mutex_lock(&stream->lock);
    if (stream->status == DP_OK) {
        stream->status = status;
        atomic_store(&stream->stopped, stream->failure_mode == 1);
        size_t length = strnlen(sentence, DP_STREAM_ERROR_BYTES - 1);
        memcpy(stream->error, sentence, length);
        stream->error[length] = '\0';
    }
    pthread_mutex_unlock(&stream->lock);
}

void dp_stream_clear_error(dp_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->status = DP_OK;
    stream->error[0] = '\0';
    atomic_store(&stream->stopped, false);
    pthread_mutex_unlock(&stream->lock);
}

/* Takes part in what keeps the stream busy. True if something was done. */
static bool help(dp_stream *stream, uint64_t until) {
    if (dp_pool_take(stream)) {
        dp_stream_drain(stream, until);
        return true;
    }
    if (!atomic_load(&stream->launch))
        return false;
    pthread_mutex_lock(&stream->lock);
    dp_job *job = atomic_load(&stream->launch);
    if (job && !atomic_load(&job->listed))
        job = NULL; /* all taken already */
    if (job)
        atomic_fetch_add(&job->references, 1);
    pthread_mutex_unlock(&stream->lock);
    if (!job)
        return false;
    job->join(job);
    dp_job_release(job);
    return true;
}

/* What a thread waits for: a task number, or a flag that a task sets. */
typedef struct goal {
    uint64_t number;
    _Atomic bool *flag;
} goal;

static bool reached(const dp_stream *stream, const goal *g) {
    return g->flag ? atomic_load(g->flag) : atomic_load(&stream->completed) >= g->number;
}

static dp_status wait_for(dp_stream *stream, const goal *g, uint64_t deadline_ns) {
    uint64_t spin_end = 0;
    for (unsigned spins = 1; !reached(stream, g); spins++) {
        if (DP_UNLIKELY(atomic_load_explicit(&lost, memory_order_relaxed)))
            return dp_stream_check_lost();
        /* a kernel with a time limit may never come back to a thread of the user */
        if (deadline_ns == UINT64_MAX && spins % 32 == 1 && (running || !dp_watch_execute_limit_ns())) {
            dp_stream_state state = atomic_load(&stream->state);
            if ((state == DP_STREAM_READY || state == DP_STREAM_PENDING) && help(stream, g->number))
                continue;
        }
        if (spins % 64 != 0) {
            dp_cpu_relax();
            continue;
        }
        uint64_t now = dp_clock_ns();
        if (now >= deadline_ns)
            return DP_ERR_TIMEOUT;
        if (spin_end == 0)
            spin_end = now + SPIN_NS;
        if (now < spin_end) {
            if (spins > SPINS_BEFORE_YIELD)
                sched_yield(); /* whoever runs the task may want this processor */
            continue;
        }
        uint32_t seen = dp_futex_read(&stream->progress);
        uint64_t wake_at = atomic_load(&stream->wake_at);
        while (g->number < wake_at && !atomic_compare_exchange_weak(&stream->wake_at, &wake_at, g->number)) {
        }
        uint64_t wake_ns = dp_pool_has_workers() ? deadline_ns : now + 1000000;
        if (!reached(stream, g))
            dp_futex_wait(&stream->progress, seen, wake_ns < deadline_ns ? wake_ns : deadline_ns);
    }
    return DP_OK;
}

dp_status dp_stream_wait(dp_stream *stream, uint64_t number, uint64_t deadline_ns) {
    dp_status status = wait_for(stream, &(goal){.number = number}, deadline_ns);
    if (status == DP_OK)
        dp_report_order(DP_HOST_WAITED, stream->queue, number, 0, 0);
    return status;
}

dp_status dp_stream_wait_flag(dp_stream *stream, _Atomic bool *flag, uint64_t deadline_ns) {
    /* number 1 is always behind us: helping goes task by task */
    return wait_for(stream, &(goal){.number = 1, .flag = flag}, deadline_ns);
}

void dp_stream_drop_queued(dp_stream *stream) {
    /* the first task may be running: only what stands behind it is dropped, unless the stream can be taken */
    bool mine = dp_pool_take(stream);
    pthread_mutex_lock(&stream->lock);
    dp_task *first = mine ? NULL : stream->head;
    dp_task *dropped = mine ? stream->head : first ? first->next : NULL;
    if (first) {
        first->next = NULL;
        stream->tail = first;
    } else {
        stream->head = stream->tail = NULL;
        atomic_store(&stream->oldest_ticket, UINT64_MAX);
    }
    pthread_mutex_unlock(&stream->lock);
    for (dp_task *task = dropped, *next; task; task = next) {
        next = task->next;
        destroy_payload(task);
        dp_free(task);
    }
    pthread_mutex_lock(&stream->lock);
    if (!stream->head) {
        atomic_store(&stream->completed, atomic_load(&stream->submitted));
        if (mine)
            atomic_store(&stream->state, DP_STREAM_IDLE);
    }
    dp_task *head = stream->head;
    bool restart = mine && head;
    bool stopped =
        !mine && head && atomic_load(&stream->state) == DP_STREAM_PENDING && head->cancel && head->cancel(head);
    pthread_mutex_unlock(&stream->lock);
    wake_sleepers(stream);
    if (restart)
        dp_pool_ready(stream);
    else if (mine)
        dp_stream_release(stream);
    if (stopped)
        dp_stream_task_done(stream);
}

void dp_stream_retire(dp_stream *stream, bool force) {
    dp_capture_abandon(stream);
    if (force)
        dp_stream_drop_queued(stream);
    dp_stream_wait(stream, atomic_load(&stream->submitted), UINT64_MAX);
    dp_report_order(DP_HOST_CLOSED, stream->queue, 0, 0, 0);
    dp_handle_close(stream->self);
}

static bool wake_all(dp_stream *stream, void *unused) {
    (void)unused;
    wake_sleepers(stream);
    return true;
}

void dp_stream_lose(const char *sentence) {
    pthread_mutex_lock(&lost_lock);
    size_t length = strnlen(sentence, sizeof lost_sentence - 1);
    memcpy(lost_sentence, sentence, length);
    lost_sentence[length] = '\0';
    atomic_fetch_add(&lost, 1);
    pthread_mutex_unlock(&lost_lock);
    dp_stream_for_each(wake_all, NULL);
}

void dp_stream_find(void) {
    atomic_fetch_sub(&lost, 1);
}

static _Atomic bool settled_in_vain;

static bool settle(dp_stream *stream, void *unused) {
    (void)unused;
    const goal all = {.number = atomic_load(&stream->submitted)};
    if (wait_for(stream, &all, dp_deadline_ns(SETTLE_MS)) != DP_OK)
        atomic_store(&settled_in_vain, true);
    return true;
}

void dp_stream_settle(void) {
    const dp_observer *observer = dp_observer_current();
    if (DP_UNLIKELY(observer && observer->settles) && !running && !atomic_load(&settled_in_vain))
        dp_stream_for_each(settle, NULL);
}

/* First stream from here on that is not being destroyed. Called with the list lock held. */
static dp_stream *retain_from(dp_stream *stream) {
    while (stream && !dp_handle_try_retain(stream->self))
        stream = stream->next;
    return stream;
}

void dp_stream_for_each(bool (*visit)(dp_stream *stream, void *context), void *context) {
    /* the list lock is not held during the visit: the next stream is found again by its reference */
    pthread_mutex_lock(&list_lock);
    dp_stream *stream = retain_from(all_streams);
    pthread_mutex_unlock(&list_lock);
    while (stream) {
        bool go_on = visit(stream, context);
        pthread_mutex_lock(&list_lock);
        dp_stream *next = go_on ? retain_from(stream->next) : NULL;
        pthread_mutex_unlock(&list_lock);
        dp_stream_release(stream);
        stream = next;
    }
}

uint64_t dp_stream_oldest_ticket(void) {
    uint64_t oldest = UINT64_MAX;
    pthread_mutex_lock(&list_lock);
    for (dp_stream *stream = all_streams; stream; stream = stream->next) {
        uint64_t ticket = atomic_load(&stream->oldest_ticket);
        if (ticket < oldest)
            oldest = ticket;
    }
    pthread_mutex_unlock(&list_lock);
    return oldest;
}

uint64_t dp_stream_next_ticket(void) {
    return atomic_load(&last_ticket) + 1;
}

void dp_stream_fork_prepare(void) {
    pthread_mutex_lock(&list_lock);
    for (dp_stream *stream = all_streams; stream; stream = stream->next)
        pthread_mutex_lock(&stream->lock);
}

void dp_stream_fork_parent(void) {
    for (dp_stream *stream = all_streams; stream; stream = stream->next)
        pthread_mutex_unlock(&stream->lock);
    pthread_mutex_unlock(&list_lock);
}

/* What was queued or running belongs to the parent: in the child the streams are idle. Its memory is left alone. */
void dp_stream_fork_child(void) {
    pthread_mutex_init(&list_lock, NULL);
    for (dp_stream *stream = all_streams, *next; stream; stream = next) {
        next = stream->next;
        bool was_held = atomic_load(&stream->state) != DP_STREAM_IDLE;
        stream->head = stream->tail = NULL;
        stream->subscriber = NULL;
        atomic_store(&stream->capture, NULL);
        atomic_store(&stream->launch, NULL);
        stream->ready_next = stream->ready_previous = NULL;
        atomic_store(&stream->state, DP_STREAM_IDLE);
        atomic_store(&stream->completed, atomic_load(&stream->submitted));
        atomic_store(&stream->oldest_ticket, UINT64_MAX);
        atomic_store(&stream->progress.waiters, 0);
        atomic_store(&stream->wake_at, UINT64_MAX);
        init_lock(stream);
        if (was_held)
            dp_stream_release(stream);
    }
    running = NULL;
    atomic_store(&lost, 0);
    pthread_mutex_init(&lost_lock, NULL);
}
