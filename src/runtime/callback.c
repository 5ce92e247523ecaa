#define _GNU_SOURCE
#include "runtime/callback.h"

#include <errno.h>
#include <time.h>

#include "base/guard.h"
#include "base/memory.h"
#include "runtime/callback_state.h"
#include "runtime/capture_state.h"
#include "runtime/futex.h"
#include "runtime/report.h"

enum { UNSUBSCRIBED_WAIT_MS = 100 };

/* A callback that its thread has yet to run. */
typedef struct report {
    struct report *next;
    void (*fn)(void *);
    void *user_data;
    dp_stream *stream;    /* waits for the callback, and is held; NULL when it does not wait */
    uint64_t queue, task; /* what has run when the callback runs */
} report;

/* One thread that serves streams. Lives while a stream is subscribed, a task will report to it, or reports wait. */
typedef struct dp_subscriber {
    struct dp_subscriber *next;
    uint64_t thread_id;
    unsigned streams;    /* subscribed */
    unsigned references; /* streams, tasks, and the thread while it waits */
    report *head, *tail;
    pthread_cond_t arrived;
} dp_subscriber;

/* One lock for all: callbacks are rare next to tasks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_subscriber *subscribers;

/* All functions below that take a subscriber are called with the lock held. */
static dp_subscriber *find(uint64_t thread_id) {
    dp_subscriber *s = subscribers;
    while (s && s->thread_id != thread_id)
        s = s->next;
    return s;
}

static void release(dp_subscriber *s) {
    if (--s->references > 0)
        return;
    dp_subscriber **at = &subscribers;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    while (s->head) {
        report *r = s->head;
        s->head = r->next;
        dp_free(r);
    }
    pthread_cond_destroy(&s->arrived);
    dp_free(s);
}

static dp_subscriber *make(uint64_t thread_id) {
    dp_subscriber *s = find(thread_id);
    if (s)
        return s;
    s = dp_alloc(DP_MEM_RUNTIME, sizeof *s);
    if (!s)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    s->thread_id = thread_id;
    s->next = subscribers;
    subscribers = s;
    return s;
}

dp_status dp_callback_subscribe(uint64_t thread_id, void *handle) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    pthread_mutex_lock(&lock);
    if (stream->subscriber) {
        status = dp_fail(DP_ERR_STATE, "stream %u already reports to thread %llu; call aclrtUnSubscribeReport first",
                         stream->id, (unsigned long long)stream->subscriber->thread_id);
    } else {
        dp_subscriber *s = make(thread_id);
        if (s) {
            s->streams++;
            s->references++;
            stream->subscriber = s;
            pthread_cond_broadcast(&s->arrived);
        } else {
            status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a subscription (%zu bytes)", sizeof *s);
        }
    }
    pthread_mutex_unlock(&lock);
    dp_stream_release(stream);
    return status;
}

/* Takes out the reports for which `stream` waits. */
static report *take_blocking(dp_subscriber *s, dp_stream *stream) {
    report *taken = NULL;
    s->tail = NULL;
    for (report **at = &s->head; *at;) {
        report *r = *at;
        if (r->stream == stream) {
            *at = r->next;
            r->next = taken;
            taken = r;
        } else {
            s->tail = r;
            at = &r->next;
        }
    }
    return taken;
}

/* Nobody will run these any more: the stream goes on, marked. */
static void give_up(report *r) {
    while (r) {
        report *next = r->next;
        dp_stream_fail(r->stream, DP_ERR_STATE, "a blocking callback was not run: its thread was unsubscribed before");
        dp_stream_task_done(r->stream);
        dp_free(r);
        r = next;
    }
}

/* Returns what give_up must get after the lock is released. */
static report *unsubscribe(dp_stream *stream) {
    dp_subscriber *s = stream->subscriber;
    report *blocked = take_blocking(s, stream);
    stream->subscriber = NULL;
    s->streams--;
    pthread_cond_broadcast(&s->arrived);
    release(s);
    return blocked;
}

dp_status dp_callback_unsubscribe(uint64_t thread_id, void *handle) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    report *blocked = NULL;
    pthread_mutex_lock(&lock);
    if (stream->subscriber && stream->subscriber->thread_id == thread_id)
        blocked = unsubscribe(stream);
    else
        status = dp_fail(DP_ERR_STATE, "thread %llu is not subscribed to stream %u", (unsigned long long)thread_id,
                         stream->id);
    pthread_mutex_unlock(&lock);
    give_up(blocked);
    dp_stream_release(stream);
    return status;
}

void dp_callback_stream_ends(dp_stream *stream) {
    pthread_mutex_lock(&lock);
    report *blocked = stream->subscriber ? unsubscribe(stream) : NULL;
    pthread_mutex_unlock(&lock);
    give_up(blocked);
}

typedef struct callback_task {
    dp_subscriber *subscriber; /* one reference */
    report *report;            /* NULL once it is posted */
    bool blocking;
} callback_task;

static dp_task_state run_callback(dp_task *task) {
    callback_task *callback = task->payload;
    report *r = callback->report;
    bool blocking = callback->blocking;
    pthread_mutex_lock(&lock);
    dp_subscriber *s = callback->subscriber;
    if (blocking && task->stream->subscriber != s) { /* unsubscribed meanwhile: nobody would run it */
        pthread_mutex_unlock(&lock);
        dp_stream_fail(task->stream, DP_ERR_STATE,
                       "a blocking callback was not run: its thread was unsubscribed before");
        return DP_TASK_DONE;
    }
    callback->report = NULL;
    r->stream = blocking ? task->stream : NULL;
    r->queue = task->stream->queue;
    r->task = task->number - 1;
    r->next = NULL;
    if (s->head)
        s->tail->next = r;
    else
        s->head = r;
    s->tail = r;
    pthread_cond_broadcast(&s->arrived);
    pthread_mutex_unlock(&lock);
    return blocking ? DP_TASK_PENDING : DP_TASK_DONE;
}

static bool cancel_callback(dp_task *task) {
    callback_task *callback = task->payload;
    pthread_mutex_lock(&lock);
    report *blocked = take_blocking(callback->subscriber, task->stream);
    pthread_mutex_unlock(&lock);
    dp_free(blocked); /* a stream waits for one callback at a time */
    return blocked != NULL;
}

static void destroy_callback_task(dp_task *task) {
    callback_task *callback = task->payload;
    dp_free(callback->report);
    pthread_mutex_lock(&lock);
    release(callback->subscriber);
    pthread_mutex_unlock(&lock);
}

dp_status dp_callback_launch(void *handle, void (*fn)(void *), void *user_data, bool blocking) {
    if (!fn)
        return dp_fail(DP_ERR_ARGUMENT, "fn is NULL, but must be the function to call");
    dp_status status;
    dp_task *task = NULL;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    status = dp_capture_refuse(stream, "given a callback");
    if (status != DP_OK)
        goto done;
    report *r = dp_alloc(DP_MEM_RUNTIME, sizeof *r);
    status = DP_ERR_OUT_OF_MEMORY;
    if (!r) {
        dp_fail(status, "no host memory for a callback (%zu bytes)", sizeof *r);
        goto done;
    }
    r->fn = fn;
    r->user_data = user_data;
    task = dp_task_new(stream, "callback", sizeof(callback_task));
    if (!task) {
        dp_free(r);
        goto done;
    }
    pthread_mutex_lock(&lock);
    dp_subscriber *s = stream->subscriber;
    if (s)
        s->references++;
    pthread_mutex_unlock(&lock);
    if (!s) {
        status = dp_fail(DP_ERR_STATE, "stream %u has no thread to run callbacks; call aclrtSubscribeReport first",
                         stream->id);
        dp_free(r);
        dp_task_discard(task);
        goto done;
    }
    *(callback_task *)task->payload = (callback_task){s, r, blocking};
    task->run = run_callback;
    task->destroy = destroy_callback_task;
    task->cancel = cancel_callback;
    status = dp_stream_append(stream, task);
    if (status != DP_OK) {
        destroy_callback_task(task);
        dp_task_discard(task);
    }
done:
    dp_stream_release(stream);
    return status;
}

/* Sleeps until something arrives or the deadline. False at the deadline. */
static bool sleep_until(dp_subscriber *s, uint64_t deadline_ns) {
    if (deadline_ns == UINT64_MAX) {
        pthread_cond_wait(&s->arrived, &lock);
        return true;
    }
    struct timespec deadline = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    return pthread_cond_timedwait(&s->arrived, &lock, &deadline) != ETIMEDOUT;
}

/* Waits for the first report of the thread; NULL with *out_status otherwise. Called with the lock held. */
static report *next_report(dp_subscriber *s, int32_t timeout_ms, dp_status *out_status) {
    uint64_t deadline = dp_deadline_ns(timeout_ms);
    uint64_t subscription = dp_deadline_ns(UNSUBSCRIBED_WAIT_MS);
    bool was_subscribed = s->streams > 0;
    for (;;) {
        if (s->head) {
            report *r = s->head;
            s->head = r->next;
            if (!s->head)
                s->tail = NULL;
            return r;
        }
        if (s->streams > 0)
            was_subscribed = true;
        if (s->streams == 0 && was_subscribed) {
            *out_status = dp_fail(DP_ERR_BUSY, "the last subscription of this thread (%llu) ended while it waited",
                                  (unsigned long long)s->thread_id);
            return NULL;
        }
        uint64_t until = s->streams == 0 && subscription < deadline ? subscription : deadline;
        if (sleep_until(s, until) || s->head || (s->streams > 0 && dp_clock_ns() < deadline))
            continue;
        *out_status = s->streams == 0
                          ? dp_fail(DP_ERR_BUSY,
                                    "this thread (%llu) is not subscribed to any stream; call aclrtSubscribeReport "
                                    "with its id first",
                                    (unsigned long long)s->thread_id)
                          : dp_fail(DP_ERR_TIMEOUT, "no callback came within timeout = %d ms", timeout_ms);
        return NULL;
    }
}

dp_status dp_callback_process(int32_t timeout_ms) {
    dp_status status = DP_OK;
    pthread_mutex_lock(&lock);
    dp_subscriber *s = make((uint64_t)(uintptr_t)pthread_self());
    if (!s) {
        pthread_mutex_unlock(&lock);
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to wait for callbacks (%zu bytes)", sizeof *s);
    }
    s->references++;
    report *r = next_report(s, timeout_ms, &status);
    release(s);
    pthread_mutex_unlock(&lock);
    if (!r)
        return status;
    dp_report_order(DP_HOST_WAITED, r->queue, r->task, 0, 0); /* it may tell other threads */
    char type[128];
    if (!dp_call_guarded(r->fn, r->user_data, type, sizeof type))
        status = dp_task_threw(r->stream, "a callback", type);
    if (r->stream)
        dp_stream_task_done(r->stream);
    dp_free(r);
    return status;
}

void dp_callback_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}
void dp_callback_fork_parent(void) {
    pthread_mutex_unlock(&lock);
}

/* Subscriptions of threads that the child does not have are gone; the forking thread's queue is emptied. */
void dp_callback_fork_child(void) {
    subscribers = NULL;
    pthread_mutex_init(&lock, NULL);
}
