/* Runs of recordings: one task of the stream that runs step after step. */
#include <string.h>

#include "base/memory.h"
#include "runtime/capture_state.h"
#include "runtime/handle.h"
#include "runtime/report.h"

typedef struct replay {
    dp_recording *recording; /* one reference */
    size_t next;             /* step to begin */
    dp_recorded *work;       /* what is running, with a reference; NULL between steps; changed under the lock */
    dp_task part;            /* what its run is given in place of the recorded task; whole while there is work */
} replay;

void dp_recording_replace(dp_recording *r, const dp_task_group *group, dp_steps *steps) {
    size_t taken = 0;
    dp_capture_lock();
    for (size_t i = 0; i < r->steps.count && taken < steps->count; i++) {
        dp_step *old = &r->steps.items[i];
        if (old->group != group)
            continue;
        dp_recorded *work = old->work;
        old->work = steps->items[taken].work;
        steps->items[taken++].work = work; /* released with the update */
    }
    dp_capture_unlock();
}

/* The next step's task with a reference, NULL behind the last one. */
static dp_recorded *take_step(replay *r) {
    dp_recorded *work = NULL;
    dp_capture_lock();
    if (r->next < r->recording->steps.count) {
        work = r->recording->steps.items[r->next++].work;
        atomic_fetch_add(&work->references, 1);
    }
    dp_capture_unlock();
    return work;
}

/* Takes over the reference when it succeeds. */
static dp_status begin_part(dp_task *task, replay *r, dp_recorded *work) {
    const dp_task *recorded = work->task;
    dp_task *part = &r->part;
    part->stream = task->stream;
    part->number = task->number;
    part->ticket = task->ticket;
    part->name = recorded->name;
    part->begin_ns = 0;
    part->run = recorded->run;
    part->destroy = NULL;
    part->cancel = NULL;
    part->payload = recorded->payload;
    dp_status status = recorded->again ? recorded->again(recorded, part) : DP_OK;
    if (status == DP_OK) {
        dp_capture_lock();
        r->work = work;
        dp_capture_unlock();
    }
    return status;
}

static void end_part(replay *r) {
    dp_capture_lock();
    dp_recorded *work = r->work;
    r->work = NULL;
    dp_capture_unlock();
    if (r->part.destroy)
        r->part.destroy(&r->part);
    dp_recorded_release(work);
}

static dp_task_state run_replay(dp_task *task) {
    replay *r = task->payload;
    dp_recorded *work;
    while (!atomic_load_explicit(&task->stream->stopped, memory_order_relaxed) && (work = take_step(r))) {
        dp_fail_clear();
        dp_status status = begin_part(task, r, work);
        if (status != DP_OK) {
            dp_stream_fail(task->stream, status, dp_fail_message());
            dp_recorded_release(work);
            continue;
        }
        if (r->part.run(&r->part) == DP_TASK_PENDING)
            return DP_TASK_PENDING;
        end_part(r);
    }
    return DP_TASK_DONE;
}

/* The part that was pending has ended. True: run the task again for the rest. */
static bool resume_replay(dp_task *task) {
    replay *r = task->payload;
    end_part(r);
    return true;
}

/* Called under the stream's lock, while a part is pending. */
static bool cancel_replay(dp_task *task) {
    replay *r = task->payload;
    dp_capture_lock();
    bool cancelled = r->work && r->part.cancel && r->part.cancel(&r->part);
    if (cancelled)
        r->next = SIZE_MAX;
    dp_capture_unlock();
    return cancelled;
}

static void destroy_replay(dp_task *task) {
    replay *r = task->payload;
    if (r->work)
        end_part(r);
    dp_handle_release(r->recording->self);
}

/* The stream of the run before, with a reference, if this one must wait for it; this run is the latest from now on. */
static dp_status follow(dp_recording *r, dp_stream *stream, dp_stream **out_earlier) {
    dp_status status = DP_OK;
    dp_capture_lock();
    if (r->capturing) {
        status = dp_fail(DP_ERR_CAPTURED, "the graph is still being captured; call aclmdlRICaptureEnd first");
    } else {
        *out_earlier = r->last_run;
        dp_handle_retain(stream->self);
        r->last_run = stream;
    }
    dp_capture_unlock();
    return status;
}

dp_status dp_recording_execute(void *handle, void *stream_handle) {
    dp_recording *r = dp_handle_acquire(handle, DP_HANDLE_RECORDING, "modelRI");
    if (!r)
        return DP_ERR_HANDLE;
    dp_status status;
    dp_stream *earlier = NULL, *stream = dp_stream_acquire(stream_handle, "stream", &status);
    if (!stream)
        goto done;
    status = dp_capture_refuse(stream, "used to run a graph");
    if (status == DP_OK)
        status = follow(r, stream, &earlier);
    if (status == DP_OK && earlier && earlier != stream && dp_stream_is_busy(earlier))
        status = dp_stream_order_after(stream, earlier);
    if (status != DP_OK)
        goto done;
    dp_task *task = dp_task_new(stream, "captured graph", sizeof(replay));
    status = DP_ERR_OUT_OF_MEMORY;
    if (!task)
        goto done;
    replay *run = task->payload;
    memset(run, 0, sizeof *run);
    run->recording = r;
    dp_handle_retain(r->self);
    task->run = run_replay;
    task->resume = resume_replay;
    task->cancel = cancel_replay;
    task->destroy = destroy_replay;
    status = dp_stream_append(stream, task);
    if (status != DP_OK) {
        destroy_replay(task);
        dp_task_discard(task);
    }
done:
    if (earlier)
        dp_stream_release(earlier);
    if (stream)
        dp_stream_release(stream);
    dp_handle_release(handle);
    return status;
}

dp_status dp_recording_destroy(void *handle) {
    dp_recording *r = dp_handle_acquire(handle, DP_HANDLE_RECORDING, "modelRI");
    if (!r)
        return DP_ERR_HANDLE;
    dp_capture_lock();
    dp_status status =
        r->capturing ? dp_fail(DP_ERR_CAPTURED, "the graph is still being captured; call aclmdlRICaptureEnd first") : DP_OK;
    dp_capture_unlock();
    if (status == DP_OK)
        dp_handle_close(handle);
    dp_handle_release(handle);
    return status;
}

dp_status dp_recording_id(void *handle, uint32_t *out_id) {
    const dp_recording *r = dp_handle_acquire(handle, DP_HANDLE_RECORDING, "modelRI");
    if (!r)
        return DP_ERR_HANDLE;
    *out_id = r->id;
    dp_handle_release(handle);
    return DP_OK;
}

dp_status dp_recording_describe(void *handle,
                                void (*visit)(void *context, size_t step, const char *name, uint32_t stream_id),
                                void *context) {
    const dp_recording *r = dp_handle_acquire(handle, DP_HANDLE_RECORDING, "modelRI");
    if (!r)
        return DP_ERR_HANDLE;
    dp_capture_lock();
    for (size_t i = 0; i < r->steps.count; i++)
        visit(context, i, r->steps.items[i].work->task->name, r->steps.items[i].stream_id);
    dp_capture_unlock();
    dp_handle_release(handle);
    return DP_OK;
}
