/*
 * stream_queue.h - inside of a stream: its tasks and who runs them. For the files of this folder only.
 *
 * A stream is idle, ready (in the pool's list), running (a thread is in dp_stream_drain) or pending (its first task
 * goes on elsewhere and will call dp_stream_task_done). Whoever holds it in one of the last three states owns one
 * reference.
 */
#ifndef DOPPEL_RUNTIME_STREAM_QUEUE_H
#define DOPPEL_RUNTIME_STREAM_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"
#include "runtime/context_state.h"
#include "runtime/futex.h"
#include "runtime/job.h"

typedef struct dp_stream dp_stream;
typedef struct dp_task dp_task;

enum { DP_TASK_INLINE_BYTES = 192, DP_STREAM_ERROR_BYTES = 512, DP_STREAM_PRIORITIES = 8 };

typedef enum dp_task_state { DP_TASK_DONE, DP_TASK_PENDING } dp_task_state;

struct dp_task {
    dp_task *next;
    dp_stream *stream;
    uint64_t number; /* within the stream, from 1 */
    uint64_t ticket; /* within the process: order of submission */
    const char *name;
    uint64_t begin_ns; /* of its run, for the profile; 0 when it has not begun or nobody asks */
    /* PENDING: the task went elsewhere; neither task nor stream may be touched any more. */
    dp_task_state (*run)(dp_task *task);
    /* Releases what the payload holds; always called, run or not. May be NULL. */
    void (*destroy)(dp_task *task);
    /* Of a pending task: true if it was stopped and its dp_stream_task_done will not come. May be NULL: cannot. */
    bool (*cancel)(dp_task *task);
    /* A pending task that has several parts: what it went elsewhere for is done; true: run it again. NULL: it is over then. */
    bool (*resume)(dp_task *task);
    /* Of a task that is recorded and run many times: gives `part` a payload of its own, and a destroy for it. NULL: all
     * runs take the recorded payload. */
    dp_status (*again)(const dp_task *recorded, dp_task *part);
    void *payload;        /* inline_bytes, or a block of its own */
    bool even_after_stop; /* runs although the stream stopped after a failure */
    _Alignas(16) uint8_t inline_bytes[DP_TASK_INLINE_BYTES];
};

typedef enum dp_stream_state { DP_STREAM_IDLE, DP_STREAM_READY, DP_STREAM_RUNNING, DP_STREAM_PENDING } dp_stream_state;

struct dp_stream {
    pthread_mutex_t lock;
    void *self; /* handle */
    uint32_t id, device_id, priority;
    uint64_t queue; /* number of the stream that no other has, default streams included */
    bool is_default;
    dp_context *context; /* one reference; NULL for default streams */
    uint64_t attributes[8];
    uint64_t failure_mode;

    dp_task *head, *tail, *free_tasks;
    unsigned free_count;
    _Atomic dp_stream_state state;
    _Atomic uint64_t submitted, completed; /* numbers of tasks */
    _Atomic uint64_t oldest_ticket;        /* of the first unfinished task, UINT64_MAX when there is none */
    dp_futex progress;
    _Atomic uint64_t wake_at; /* smallest task number that a sleeping thread waits for */
    dp_job *_Atomic launch;   /* the running launch, for threads that wait; changed under lock */

    dp_status status;
    _Atomic bool stopped; /* failed, and the failure mode is to stop */
    char error[DP_STREAM_ERROR_BYTES];

    struct dp_capture *_Atomic capture;     /* what is queued goes there: capture.c, under its lock */
    struct dp_subscriber *subscriber;       /* see callback.c, under its lock */
    dp_stream *ready_next, *ready_previous; /* pool's list */
    dp_stream *next, *previous;             /* list of all streams */
};

dp_status dp_stream_new(uint32_t device_id, dp_context *context, bool is_default, uint32_t priority,
                        dp_stream **out_stream);
/* Ends a stream that the user may no longer reach: closes the handle once nothing is queued or running. */
void dp_stream_retire(dp_stream *stream, bool force);

/* The stream behind a handle, or the current default stream for NULL, with one reference. NULL: status in *out_status.
 */
dp_stream *dp_stream_acquire(void *handle, const char *argument, dp_status *out_status);
void dp_stream_release(dp_stream *stream);

/* A task with room for payload_bytes. NULL with a sentence when memory is exhausted. */
dp_task *dp_task_new(dp_stream *stream, const char *name, size_t payload_bytes);
/* Throws away a task that was never appended; its destroy is not called. */
void dp_task_discard(dp_task *task);
/*
 * Queues the task; it belongs to the stream from now on, unless the call fails. Work of the context's default stream
 * that was queued before is waited for: clients leave NULL-stream work unsynchronised and go on in a stream of their
 * own.
 */
dp_status dp_stream_append(dp_stream *stream, dp_task *task);
/* The same without that wait; never fails. */
void dp_stream_append_plain(dp_stream *stream, dp_task *task);
/*
 * A task that only marks a place in the stream needs no queue when everything before it has ended: takes its number,
 * which is done at once, and returns true. False: the stream (or the default stream before it) has work, or the profile
 * wants to see a task; append one.
 */
bool dp_stream_pass(dp_stream *stream, uint64_t *out_number);

/* Runs tasks until the queue is empty, a task is pending, or task number `until` is done. Takes over a reference. */
void dp_stream_drain(dp_stream *stream, uint64_t until);
/* The pending first task is done; from any thread. Takes over a reference. */
void dp_stream_task_done(dp_stream *stream);

/* Marks the stream; the first failure stays. */
void dp_stream_fail(dp_stream *stream, dp_status status, const char *sentence);
void dp_stream_clear_error(dp_stream *stream);
/*
 * A function of the user (`what`) was left by an exception of C++ type `type` ("" = unknown): logs it and marks the
 * stream that waits for it (NULL = none does).
 */
dp_status dp_task_threw(dp_stream *stream, const char *what, const char *type);
/* Waits until task `number` is done, helping if there is no deadline. */
dp_status dp_stream_wait(dp_stream *stream, uint64_t number, uint64_t deadline_ns);
/* The same until *flag is true; a task of the stream sets it. */
dp_status dp_stream_wait_flag(dp_stream *stream, _Atomic bool *flag, uint64_t deadline_ns);
/*
 * For an observer that asks for it: gives the work of all streams time to end, but waits for nobody who may in turn wait for this
 * thread (a callback it has to run): after one wait in vain it does nothing any more. Not a synchronisation for the user.
 */
void dp_stream_settle(void);
/*
 * A task neither ends nor can be stopped: from now on waits return DP_ERR_KERNEL_TIMEOUT with the sentence, and tasks are refused with
 * it. The threads that run it are shared by all streams, so this holds for all. Counted: find() for every lose().
 */
void dp_stream_lose(const char *sentence);
void dp_stream_find(void);
/* DP_OK, or DP_ERR_KERNEL_TIMEOUT with the sentence. */
dp_status dp_stream_check_lost(void);
bool dp_stream_is_busy(const dp_stream *stream);
/* Drops what has not begun; what runs is cancelled if it can be. */
void dp_stream_drop_queued(dp_stream *stream);
/* The stream of which this thread is running a task, NULL if none. */
dp_stream *dp_stream_running(void);
/* The next task of `later` begins after everything queued on `earlier` so far (event.c). */
dp_status dp_stream_order_after(dp_stream *later, dp_stream *earlier);

/* Calls visit for every stream with a reference held; stops when it returns false. */
void dp_stream_for_each(bool (*visit)(dp_stream *stream, void *context), void *context);
/* Smallest ticket of any unfinished task, UINT64_MAX when there is none. */
uint64_t dp_stream_oldest_ticket(void);
/* Ticket that the next task will get: work queued so far has smaller ones. */
uint64_t dp_stream_next_ticket(void);

void dp_stream_fork_prepare(void);
void dp_stream_fork_parent(void);
void dp_stream_fork_child(void);

#endif
