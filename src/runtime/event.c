#include "runtime/event.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "base/memory.h"
#include "runtime/capture_state.h"
#include "runtime/event_state.h"
#include "runtime/handle.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"
#include "runtime/watchdog.h"

/* A wait that sits in a stream's first task. */
typedef struct waiter {
    struct waiter *next;
    dp_stream *stream;
} waiter;

/* One queued dp_event_record. Waits hold on to the record, so recording the event again does not disturb them. */
typedef struct record {
    _Atomic uint32_t references;
    _Atomic bool done;
    uint64_t done_ns;
    bool dropped;      /* never executed: its stream was aborted */
    waiter *waiters;   /* under the record's lock */
    dp_stream *stream; /* one reference until done, for threads that wait and help; under the lock */
    uint64_t queue, task; /* what is done when the record is */
} record;

typedef struct dp_event {
    void *self;
    uint32_t flags;
    record *latest;           /* one reference; NULL = never recorded; under lock_of(event) */
    waiter *blocked;          /* waits of captured graphs for a record nobody has queued yet; under lock_of(event) */
    _Atomic uint32_t waits;   /* queued and not over */
    _Atomic uint32_t capture; /* number of the capture in which it was recorded last, 0: none */
} dp_event;

/* A few locks for all events and records, so that a fork can hold them all. */
enum { LOCKS = 16 };
static pthread_mutex_t locks[LOCKS] = {
#define L PTHREAD_MUTEX_INITIALIZER
    L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, L
#undef L
};

static pthread_mutex_t *lock_of(const void *object) {
    return &locks[((uintptr_t)object >> 6) % LOCKS];
}

static void release_record(record *r) {
    if (r && atomic_fetch_sub(&r->references, 1) == 1)
        dp_free(r);
}

/* Ends the record: lets go everybody who waits for it. */
static void finish_record(record *r, bool dropped) {
    pthread_mutex_t *lock = lock_of(r);
    pthread_mutex_lock(lock);
    if (atomic_load(&r->done)) {
        pthread_mutex_unlock(lock);
        return;
    }
    r->done_ns = dp_clock_ns();
    r->dropped = dropped;
    waiter *waiters = r->waiters;
    dp_stream *stream = r->stream;
    r->waiters = NULL;
    r->stream = NULL;
    atomic_store(&r->done, true);
    pthread_mutex_unlock(lock);
    while (waiters) {
        waiter *next = waiters->next; /* the node is gone with its task */
        dp_stream_task_done(waiters->stream);
        waiters = next;
    }
    if (stream)
        dp_stream_release(stream);
}

static record *new_record(dp_stream *stream) {
    record *r = dp_alloc(DP_MEM_RUNTIME, sizeof *r);
    if (!r) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to record an event (%zu bytes)", sizeof *r);
        return NULL;
    }
    atomic_store(&r->references, 1);
    dp_handle_retain(stream->self);
    r->stream = stream;
    return r;
}

static dp_task_state run_record(dp_task *task) {
    finish_record(*(record **)task->payload, false);
    return DP_TASK_DONE;
}

static void destroy_record_task(dp_task *task) {
    record *r = *(record **)task->payload;
    finish_record(r, true); /* nothing if it ran */
    release_record(r);
}

/* Takes over one reference when it succeeds. */
static dp_status queue_record(dp_stream *stream, record *r) {
    if (dp_stream_pass(stream, &r->task)) {
        r->queue = stream->queue;
        finish_record(r, false);
        release_record(r);
        return DP_OK;
    }
    dp_task *task = dp_task_new(stream, "event record", sizeof r);
    if (!task)
        return DP_ERR_OUT_OF_MEMORY;
    *(record **)task->payload = r;
    task->run = run_record;
    task->destroy = destroy_record_task;
    task->even_after_stop = true;
    dp_status status = dp_stream_append(stream, task);
    if (status != DP_OK)
        dp_task_discard(task);
    r->queue = stream->queue;
    r->task = atomic_load(&stream->submitted); /* its own number, unless other threads queued more */
    return status;
}

typedef struct wait_task {
    record *_Atomic record; /* NULL: of a captured graph, and nobody has queued the record yet */
    dp_event *event;        /* one reference; NULL for waits the library inserts */
    waiter node;
    dp_task *task;
    bool is_watched;
    uint64_t limit_ns;
    dp_watch watch;
} wait_task;

static bool cancel_wait(dp_task *task);

static uint64_t wait_is_due(dp_watch *watch, uint64_t now_ns) {
    wait_task *wait = (wait_task *)((char *)watch - offsetof(wait_task, watch));
    return cancel_wait(wait->task) ? 0 : now_ns + 10000000u; /* it is just ending, or has not quite begun */
}

/* Nobody else ends the task now. */
static void give_up_wait(dp_watch *watch) {
    const wait_task *wait = (wait_task *)((char *)watch - offsetof(wait_task, watch));
    dp_stream *stream = wait->task->stream;
    char sentence[160];
    snprintf(sentence, sizeof sentence, "stream %u waited for an event longer than the %g s that aclrtSetOpWaitTimeout allows",
             stream->id, (double)wait->limit_ns * 1e-9);
    dp_stream_fail(stream, DP_ERR_TIMEOUT, sentence);
    dp_stream_task_done(stream);
}

static void watch_wait(dp_task *task, wait_task *wait) {
    wait->limit_ns = wait->event ? dp_watch_wait_limit_ns() : 0;
    wait->task = task;
    wait->watch = (dp_watch){.due = wait_is_due, .finish = give_up_wait};
    if (wait->limit_ns)
        wait->is_watched = dp_watch_begin(&wait->watch, dp_clock_ns() + wait->limit_ns);
}

static dp_task_state wait_for_task(dp_task *task, wait_task *wait) {
    record *r = wait->record;
    pthread_mutex_t *lock = lock_of(r);
    pthread_mutex_lock(lock);
    bool done = atomic_load(&r->done);
    if (!done) {
        wait->node = (waiter){r->waiters, task->stream};
        r->waiters = &wait->node;
    }
    pthread_mutex_unlock(lock);
    return done ? DP_TASK_DONE : DP_TASK_PENDING;
}

static dp_task_state run_wait(dp_task *task) {
    wait_task *wait = task->payload;
    if (atomic_load(&wait->record->done))
        return DP_TASK_DONE;
    watch_wait(task, wait); /* before anybody can end the task */
    return wait_for_task(task, wait);
}

static bool take_out(waiter **list, const waiter *node) {
    for (waiter **at = list; *at; at = &(*at)->next) {
        if (*at == node) {
            *at = node->next;
            return true;
        }
    }
    return false;
}

static bool cancel_wait(dp_task *task) {
    wait_task *wait = task->payload;
    bool found = false;
    if (wait->event) {
        pthread_mutex_lock(lock_of(wait->event));
        found = take_out(&wait->event->blocked, &wait->node);
        pthread_mutex_unlock(lock_of(wait->event));
    }
    record *r = found ? NULL : atomic_load(&wait->record);
    if (r) {
        pthread_mutex_lock(lock_of(r));
        found = take_out(&r->waiters, &wait->node);
        pthread_mutex_unlock(lock_of(r));
    }
    return found;
}

static void destroy_wait_task(dp_task *task) {
    wait_task *wait = task->payload;
    if (wait->is_watched)
        dp_watch_end(&wait->watch);
    release_record(wait->record);
    if (wait->event) {
        atomic_fetch_sub(&wait->event->waits, 1);
        dp_handle_release(wait->event->self);
    }
}

/* Makes the task; the caller appends it. Takes over one reference of the record, and retains the event, when it
 * succeeds. */
static dp_task *new_wait_task(dp_stream *stream, record *r, dp_event *event) {
    dp_task *task = dp_task_new(stream, "event wait", sizeof(wait_task));
    if (!task)
        return NULL;
    *(wait_task *)task->payload = (wait_task){.record = r, .event = event};
    task->run = run_wait;
    task->destroy = destroy_wait_task;
    task->cancel = cancel_wait;
    if (event) {
        dp_handle_retain(event->self);
        atomic_fetch_add(&event->waits, 1);
    }
    return task;
}

static void discard_wait_task(dp_task *task) {
    destroy_wait_task(task);
    dp_task_discard(task);
}

dp_status dp_stream_order_after(dp_stream *later, dp_stream *earlier) {
    record *r = new_record(earlier);
    if (!r)
        return DP_ERR_OUT_OF_MEMORY;
    atomic_fetch_add(&r->references, 1);
    dp_task *wait = new_wait_task(later, r, NULL);
    dp_status status = wait ? queue_record(earlier, r) : DP_ERR_OUT_OF_MEMORY;
    if (status == DP_OK) {
        dp_report_order(DP_HOST_ORDERED, later->queue, 0, r->queue, r->task);
        dp_stream_append_plain(later, wait);
        return DP_OK;
    }
    if (wait)
        discard_wait_task(wait);
    else
        release_record(r);
    finish_record(r, true);
    release_record(r);
    return status;
}

static void destroy_event(void *object) {
    dp_event *event = object;
    release_record(event->latest);
    dp_free(event);
}

static dp_event *acquire(void *handle, const char *argument) {
    return dp_handle_acquire(handle, DP_HANDLE_EVENT, argument);
}

dp_status dp_event_create(uint32_t flags, void **out_event) {
    if (!out_event)
        return dp_fail(DP_ERR_ARGUMENT, "event is NULL, but must point to where the new event goes");
    uint32_t device_id;
    dp_status status = dp_context_current_device(&device_id);
    if (status != DP_OK)
        return status;
    dp_event *event = dp_alloc(DP_MEM_RUNTIME, sizeof *event);
    if (!event)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for an event (%zu bytes)", sizeof *event);
    event->flags = flags;
    event->self = dp_handle_create(DP_HANDLE_EVENT, event, destroy_event);
    if (!event->self) {
        dp_free(event);
        return DP_ERR_OUT_OF_MEMORY;
    }
    *out_event = event->self;
    dp_report_object(DP_HOST_MADE, device_id, event->self, "event");
    return DP_OK;
}

dp_status dp_event_destroy(void *handle) {
    if (!acquire(handle, "event"))
        return DP_ERR_HANDLE;
    dp_report_object(DP_HOST_DESTROYED, 0, handle, NULL);
    dp_handle_close(handle);
    dp_handle_release(handle);
    return DP_OK;
}

dp_status dp_event_flags(void *handle, uint32_t *out_flags) {
    dp_event *event = acquire(handle, "event");
    if (!event)
        return DP_ERR_HANDLE;
    *out_flags = event->flags;
    dp_handle_release(handle);
    return DP_OK;
}

/* Queued in a stream that has nothing left to do: a forked child does not inherit its parent's work. */
static bool is_lost(record *r) {
    pthread_mutex_lock(lock_of(r));
    bool lost = r->stream && !dp_stream_is_busy(r->stream);
    pthread_mutex_unlock(lock_of(r));
    return lost && !atomic_load(&r->done);
}

/* The latest record with one reference, NULL when there is none. */
static record *latest_record(dp_event *event) {
    pthread_mutex_lock(lock_of(event));
    record *r = event->latest;
    if (r)
        atomic_fetch_add(&r->references, 1);
    pthread_mutex_unlock(lock_of(event));
    if (r && DP_UNLIKELY(!atomic_load(&r->done)) && is_lost(r))
        finish_record(r, true);
    return r;
}

/* r, with one reference that goes to the event, is its record from now on. Graphs that wait for one get this one. */
static void set_latest(dp_event *event, record *r) {
    pthread_mutex_lock(lock_of(event));
    record *previous = event->latest;
    event->latest = r;
    atomic_store_explicit(&event->capture, 0, memory_order_relaxed);
    waiter *blocked = event->blocked;
    event->blocked = NULL;
    for (waiter *node = blocked; node; node = node->next) {
        wait_task *wait = (wait_task *)((char *)node - offsetof(wait_task, node));
        atomic_fetch_add(&r->references, 1);
        atomic_store(&wait->record, r);
    }
    pthread_mutex_unlock(lock_of(event));
    release_record(previous);
    for (waiter *next; blocked; blocked = next) {
        next = blocked->next;
        pthread_mutex_lock(lock_of(r));
        bool done = atomic_load(&r->done);
        if (!done) {
            blocked->next = r->waiters;
            r->waiters = blocked;
        }
        pthread_mutex_unlock(lock_of(r));
        if (done)
            dp_stream_task_done(blocked->stream);
    }
}

/* Steps of captured graphs, for events that are external. */

static dp_status record_again(const dp_task *recorded, dp_task *part) {
    record *r = new_record(part->stream);
    if (!r)
        return DP_ERR_OUT_OF_MEMORY;
    r->queue = part->stream->queue;
    r->task = part->number;
    atomic_fetch_add(&r->references, 1);
    part->payload = part->inline_bytes;
    *(record **)part->payload = r;
    part->destroy = destroy_record_task;
    set_latest(*(dp_event **)recorded->payload, r);
    return DP_OK;
}

_Static_assert(sizeof(wait_task) <= DP_TASK_INLINE_BYTES, "a captured wait lies in its task");

static dp_status wait_again(const dp_task *recorded, dp_task *part) {
    dp_event *event = *(dp_event **)recorded->payload;
    dp_handle_retain(event->self);
    atomic_fetch_add(&event->waits, 1);
    wait_task *wait = (wait_task *)part->inline_bytes;
    *wait = (wait_task){.event = event};
    part->payload = wait;
    part->destroy = destroy_wait_task;
    part->cancel = cancel_wait;
    return DP_OK;
}

/* Unlike waits outside of graphs it waits even if the event was never recorded: whoever runs the graph records it later. */
static dp_task_state run_external_wait(dp_task *task) {
    wait_task *wait = task->payload;
    watch_wait(task, wait);
    pthread_mutex_lock(lock_of(wait->event));
    record *r = wait->event->latest;
    if (r) {
        atomic_fetch_add(&r->references, 1);
        atomic_store(&wait->record, r);
    } else {
        wait->node = (waiter){wait->event->blocked, task->stream};
        wait->event->blocked = &wait->node;
    }
    pthread_mutex_unlock(lock_of(wait->event));
    return r ? wait_for_task(task, wait) : DP_TASK_PENDING;
}

static dp_task_state run_external_reset(dp_task *task) {
    dp_event *event = *(dp_event **)task->payload;
    pthread_mutex_lock(lock_of(event));
    record *r = event->latest;
    event->latest = NULL;
    pthread_mutex_unlock(lock_of(event));
    release_record(r);
    return DP_TASK_DONE;
}

static void release_step_event(dp_task *task) {
    dp_handle_release((*(dp_event **)task->payload)->self);
}

static dp_status capture_step(dp_event *event, dp_stream *stream, const char *name, dp_task_state (*run)(dp_task *task),
                              dp_status (*again)(const dp_task *recorded, dp_task *part)) {
    dp_task *task = dp_task_new(stream, name, sizeof event);
    if (!task)
        return DP_ERR_OUT_OF_MEMORY;
    dp_handle_retain(event->self);
    *(dp_event **)task->payload = event;
    task->run = run;
    task->again = again;
    task->destroy = release_step_event;
    dp_status status = dp_stream_append(stream, task);
    if (status != DP_OK) {
        release_step_event(task);
        dp_task_discard(task);
    }
    return status;
}

/* Recorded on a stream that is being captured: the event stands for a place in the capture. */
static dp_status capture_record(dp_event *event, dp_stream *stream) {
    if (event->flags & DP_EVENT_EXTERNAL)
        return capture_step(event, stream, "event record", run_record, record_again);
    uint32_t id = dp_capture_id(stream);
    if (!id)
        return dp_fail(DP_ERR_CAPTURED, "stream %u updates a task group, which an event cannot be part of", stream->id);
    pthread_mutex_lock(lock_of(event));
    record *previous = event->latest;
    event->latest = NULL;
    atomic_store_explicit(&event->capture, id, memory_order_relaxed);
    pthread_mutex_unlock(lock_of(event));
    release_record(previous);
    return DP_OK;
}

static dp_status capture_wait(dp_event *event, dp_stream *stream) {
    if (event->flags & DP_EVENT_EXTERNAL)
        return capture_step(event, stream, "event wait", run_external_wait, wait_again);
    record *r = latest_record(event);
    bool reached = !r || atomic_load(&r->done);
    release_record(r);
    return reached ? DP_OK
                   : dp_fail(DP_ERR_CAPTURED,
                             "event %p was recorded outside of the capture of stream %u and is not reached yet; wait for it "
                             "before, or make it with ACL_EVENT_EXTERNAL",
                             event->self, stream->id);
}

static dp_status capture_reset(dp_event *event, dp_stream *stream) {
    return event->flags & DP_EVENT_EXTERNAL ? capture_step(event, stream, "event reset", run_external_reset, NULL) : DP_OK;
}

dp_status dp_event_record(void *handle, void *stream_handle) {
    dp_event *event = acquire(handle, "event");
    if (!event)
        return DP_ERR_HANDLE;
    record *r = NULL;
    dp_status status;
    dp_stream *stream = dp_stream_acquire(stream_handle, "stream", &status);
    if (!stream)
        goto done;
    if (dp_stream_is_captured(stream)) {
        status = capture_record(event, stream);
        goto done;
    }
    r = new_record(stream);
    status = DP_ERR_OUT_OF_MEMORY;
    if (!r)
        goto done;
    atomic_fetch_add(&r->references, 1);
    status = queue_record(stream, r);
    if (status != DP_OK) {
        finish_record(r, true);
        release_record(r);
        goto done;
    }
    set_latest(event, r);
    r = NULL;
done:
    release_record(r);
    if (stream)
        dp_stream_release(stream);
    dp_handle_release(handle);
    return status;
}

dp_status dp_event_wait(void *handle, void *stream_handle) {
    dp_event *event = acquire(handle, "event");
    if (!event)
        return DP_ERR_HANDLE;
    record *r = NULL;
    dp_status status;
    dp_stream *stream = dp_stream_acquire(stream_handle, "stream", &status);
    if (!stream)
        goto done;
    uint32_t capture = atomic_load_explicit(&event->capture, memory_order_relaxed);
    if (DP_UNLIKELY(capture) && dp_capture_join(stream, capture, &status))
        goto done;
    if (dp_stream_is_captured(stream)) {
        status = capture_wait(event, stream);
        goto done;
    }
    r = latest_record(event);
    if (r)
        dp_report_order(DP_HOST_ORDERED, stream->queue, 0, r->queue, r->task);
    if (!r || atomic_load(&r->done))
        goto done;
    status = DP_ERR_OUT_OF_MEMORY;
    dp_task *task = new_wait_task(stream, r, event);
    if (!task)
        goto done;
    r = NULL;
    status = dp_stream_append(stream, task);
    if (status != DP_OK)
        discard_wait_task(task);
done:
    release_record(r);
    if (stream)
        dp_stream_release(stream);
    dp_handle_release(handle);
    return status;
}

typedef struct reset_task {
    dp_event *event;
    record *record;
} reset_task;

static dp_task_state run_reset(dp_task *task) {
    reset_task *reset = task->payload;
    pthread_mutex_t *lock = lock_of(reset->event);
    pthread_mutex_lock(lock);
    bool current = reset->event->latest == reset->record;
    if (current)
        reset->event->latest = NULL;
    pthread_mutex_unlock(lock);
    if (current)
        release_record(reset->record);
    return DP_TASK_DONE;
}

static void destroy_reset_task(dp_task *task) {
    reset_task *reset = task->payload;
    release_record(reset->record);
    dp_handle_release(reset->event->self);
}

dp_status dp_event_reset(void *handle, void *stream_handle) {
    dp_event *event = acquire(handle, "event");
    if (!event)
        return DP_ERR_HANDLE;
    record *r = NULL;
    dp_status status;
    dp_stream *stream = dp_stream_acquire(stream_handle, "stream", &status);
    if (!stream)
        goto done;
    if (dp_stream_is_captured(stream)) {
        status = capture_reset(event, stream);
        goto done;
    }
    r = latest_record(event);
    if (!r)
        goto done;
    status = DP_ERR_OUT_OF_MEMORY;
    dp_task *task = dp_task_new(stream, "event reset", sizeof(reset_task));
    if (!task)
        goto done;
    dp_handle_retain(handle);
    *(reset_task *)task->payload = (reset_task){event, r};
    r = NULL;
    task->run = run_reset;
    task->destroy = destroy_reset_task;
    task->even_after_stop = true;
    status = dp_stream_append(stream, task);
    if (status != DP_OK) {
        destroy_reset_task(task);
        dp_task_discard(task);
    }
done:
    release_record(r);
    if (stream)
        dp_stream_release(stream);
    dp_handle_release(handle);
    return status;
}

/* Helps the record's stream along, or sleeps. */
static dp_status wait_for_record(record *r, uint64_t deadline_ns) {
    while (!atomic_load(&r->done)) {
        if (dp_clock_ns() >= deadline_ns)
            return DP_ERR_TIMEOUT;
        pthread_mutex_lock(lock_of(r));
        dp_stream *stream = r->stream;
        if (stream)
            dp_handle_retain(stream->self);
        pthread_mutex_unlock(lock_of(r));
        dp_status status = DP_OK;
        if (stream && dp_stream_running() != stream)
            status = dp_stream_wait_flag(stream, &r->done, deadline_ns);
        else if (stream)
            break;
        if (stream)
            dp_stream_release(stream);
        if (status == DP_ERR_KERNEL_TIMEOUT)
            return status;
    }
    return atomic_load(&r->done) ? DP_OK : DP_ERR_STATE;
}

static dp_status check_not_captured(const dp_event *event) {
    if (!atomic_load_explicit(&event->capture, memory_order_relaxed))
        return DP_OK;
    return dp_fail(DP_ERR_CAPTURED,
                   "event %p was recorded in a capture, where it stands for a place in the graph; record it outside, or make it with "
                   "ACL_EVENT_EXTERNAL",
                   event->self);
}

dp_status dp_event_synchronise(void *handle, int32_t timeout_ms) {
    dp_event *event = acquire(handle, "event");
    if (!event)
        return DP_ERR_HANDLE;
    dp_status status = check_not_captured(event);
    record *r = latest_record(event);
    if (status == DP_OK && r) {
        status = wait_for_record(r, dp_deadline_ns(timeout_ms));
        if (status == DP_ERR_TIMEOUT)
            dp_fail(status, "event %p was not reached after timeout = %d ms", handle, timeout_ms);
        else if (status != DP_OK && status != DP_ERR_KERNEL_TIMEOUT)
            dp_fail(status, "a task cannot wait for an event (%p) that is recorded later in its own stream", handle);
        else if (status == DP_OK)
            dp_report_order(DP_HOST_WAITED, r->queue, r->task, 0, 0);
    }
    release_record(r);
    dp_handle_release(handle);
    return status;
}

dp_status dp_event_query(void *handle, bool *out_recorded) {
    dp_event *event = acquire(handle, "event");
    if (!event)
        return DP_ERR_HANDLE;
    record *r = latest_record(event);
    *out_recorded = r && atomic_load(&r->done) && !r->dropped;
    if (*out_recorded)
        dp_report_order(DP_HOST_WAITED, r->queue, r->task, 0, 0);
    release_record(r);
    dp_handle_release(handle);
    return DP_OK;
}

dp_status dp_event_query_waits(void *handle, bool *out_complete) {
    dp_event *event = acquire(handle, "event");
    if (!event)
        return DP_ERR_HANDLE;
    *out_complete = atomic_load(&event->waits) == 0;
    dp_handle_release(handle);
    return DP_OK;
}

static dp_status executed_ns(void *handle, const char *argument, uint64_t *out_ns) {
    dp_event *event = acquire(handle, argument);
    if (!event)
        return DP_ERR_HANDLE;
    dp_status status = check_not_captured(event);
    record *r = latest_record(event);
    if (status == DP_OK && !r)
        status = dp_fail(DP_ERR_STATE, "%s (%p) was never recorded; call aclrtRecordEvent first", argument, handle);
    else if (status == DP_OK && !atomic_load(&r->done))
        status =
            dp_fail(DP_ERR_STATE, "%s (%p) is recorded but not reached yet; synchronise with its stream or event first",
                    argument, handle);
    else if (status == DP_OK && r->dropped)
        status = dp_fail(DP_ERR_STATE, "%s (%p) was recorded in a stream that was aborted", argument, handle);
    else if (status == DP_OK)
        *out_ns = r->done_ns;
    release_record(r);
    dp_handle_release(handle);
    return status;
}

dp_status dp_event_elapsed_ms(void *start, void *end, float *out_ms) {
    if (!out_ms)
        return dp_fail(DP_ERR_ARGUMENT, "ms is NULL, but must point to where the time goes");
    uint64_t start_ns, end_ns;
    dp_status status = executed_ns(start, "startEvent", &start_ns);
    if (status == DP_OK)
        status = executed_ns(end, "endEvent", &end_ns);
    if (status == DP_OK)
        *out_ms = (float)((double)(int64_t)(end_ns - start_ns) * 1e-6);
    return status;
}

dp_status dp_event_timestamp_ns(void *handle, uint64_t *out_ns) {
    if (!out_ns)
        return dp_fail(DP_ERR_ARGUMENT, "timestamp is NULL, but must point to where the time goes");
    return executed_ns(handle, "event", out_ns);
}

void dp_event_fork_prepare(void) {
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_lock(&locks[i]);
}

void dp_event_fork_done(void) {
    for (int i = LOCKS; i-- > 0;)
        pthread_mutex_unlock(&locks[i]);
}
