#include "runtime/capture.h"

#include "base/memory.h"
#include "runtime/capture_state.h"
#include "runtime/handle.h"
#include "runtime/task.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_id;

void dp_capture_lock(void) {
    pthread_mutex_lock(&lock);
}

void dp_capture_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void dp_capture_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}

void dp_capture_fork_done(void) {
    pthread_mutex_unlock(&lock);
}

void dp_recorded_release(dp_recorded *work) {
    if (atomic_fetch_sub(&work->references, 1) != 1)
        return;
    if (work->task->destroy)
        work->task->destroy(work->task);
    dp_task_discard(work->task);
    dp_free(work);
}

/* Not under the lock: what tasks hold is released. */
static void free_steps(dp_steps *steps) {
    for (size_t i = 0; i < steps->count; i++)
        dp_recorded_release(steps->items[i].work);
    dp_free(steps->items);
    *steps = (dp_steps){0};
}

static dp_status add_step(dp_steps *steps, const dp_step *step) {
    if (steps->count == steps->room) {
        size_t room = steps->room ? steps->room * 2 : 16;
        dp_step *items = dp_realloc(DP_MEM_RUNTIME, steps->items, room * sizeof *items);
        if (!items)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a captured task (%zu bytes)", room * sizeof *items);
        steps->items = items;
        steps->room = room;
    }
    steps->items[steps->count++] = *step;
    return DP_OK;
}

static void destroy_recording(void *object) {
    dp_recording *r = object;
    free_steps(&r->steps);
    for (dp_task_group *group = r->groups, *next; group; group = next) {
        next = group->next;
        dp_handle_close(group->self);
    }
    if (r->last_run)
        dp_stream_release(r->last_run);
    dp_free(r);
}

static dp_recording *new_recording(dp_stream *origin) {
    dp_recording *r = dp_alloc(DP_MEM_RUNTIME, sizeof *r);
    if (!r) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a capture (%zu bytes)", sizeof *r);
        return NULL;
    }
    r->capturing = true;
    r->origin = origin;
    r->self = dp_handle_create(DP_HANDLE_RECORDING, r, destroy_recording);
    if (!r->self) {
        dp_free(r);
        return NULL;
    }
    return r;
}

/* Under the lock. */
static dp_capture *capture_of(dp_stream *stream) {
    return atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* Where the stream's tasks are recorded, NULL: it takes part in no capture. Under the lock. */
static dp_recording *recording_of(dp_stream *stream) {
    const dp_capture *capture = capture_of(stream);
    return capture && !capture->replaced ? capture->recording : NULL;
}

dp_status dp_capture_refuse(dp_stream *stream, const char *what) {
    if (!dp_stream_is_captured(stream))
        return DP_OK;
    return dp_fail(DP_ERR_CAPTURED, "stream %u is being captured and cannot be %s before the capture has ended", stream->id,
                   what);
}

dp_status dp_capture_take(dp_stream *stream, dp_task *task) {
    dp_recorded *work = dp_alloc(DP_MEM_RUNTIME, sizeof *work);
    if (!work)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a captured task (%zu bytes)", sizeof *work);
    atomic_store(&work->references, 1);
    work->task = task;
    dp_status status = DP_OK;
    dp_capture_lock();
    dp_capture *capture = capture_of(stream);
    if (!capture) /* another thread ended it this moment */
        status = dp_fail(DP_ERR_CAPTURED, "the capture of stream %u ended while %s was queued", stream->id, task->name);
    else if (capture->replaced)
        status = add_step(&capture->steps, &(dp_step){work, capture->replaced, stream->id});
    else
        status = add_step(&capture->recording->steps, &(dp_step){work, capture->recording->open_group, stream->id});
    dp_capture_unlock();
    if (status != DP_OK)
        dp_free(work);
    return status;
}

/* Begins to keep the stream's tasks. Under the lock; takes over a reference of the recording when it succeeds. */
static dp_status keep(dp_stream *stream, dp_recording *recording, dp_task_group *replaced) {
    dp_capture *capture = dp_alloc(DP_MEM_RUNTIME, sizeof *capture);
    if (!capture)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a capture (%zu bytes)", sizeof *capture);
    *capture = (dp_capture){.recording = recording, .replaced = replaced};
    atomic_store(&stream->capture, capture);
    return DP_OK;
}

/* Under the lock. The caller releases the recording and frees the rest. */
static dp_capture *stop_keeping(dp_stream *stream) {
    dp_capture *capture = capture_of(stream);
    atomic_store(&stream->capture, NULL);
    return capture;
}

static void free_capture(dp_capture *capture) {
    free_steps(&capture->steps);
    dp_handle_release(capture->recording->self);
    dp_free(capture);
}

dp_status dp_capture_begin(void *handle) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_recording *recording = NULL;
    if (stream->is_default)
        status = dp_fail(DP_ERR_UNSUPPORTED, "stream is a default stream, which cannot be captured: create one");
    else if (!(recording = new_recording(stream)))
        status = DP_ERR_OUT_OF_MEMORY;
    if (status != DP_OK)
        goto done;
    dp_capture_lock();
    if (capture_of(stream))
        status = dp_fail(DP_ERR_CAPTURED, "stream %u is being captured already", stream->id);
    else
        status = keep(stream, recording, NULL);
    if (status == DP_OK) {
        dp_handle_retain(recording->self); /* the other one is the user's, who gets the handle at the end */
        recording->id = ++last_id;
    }
    dp_capture_unlock();
    if (status != DP_OK)
        dp_handle_close(recording->self);
done:
    dp_stream_release(stream);
    return status;
}

uint32_t dp_capture_id(dp_stream *stream) {
    if (!dp_stream_is_captured(stream))
        return 0;
    dp_capture_lock();
    const dp_recording *r = recording_of(stream);
    uint32_t id = r ? r->id : 0;
    dp_capture_unlock();
    return id;
}

typedef struct search {
    uint32_t id;
    dp_recording *found; /* with a reference */
} search;

static bool find_recording(dp_stream *stream, void *context) {
    search *s = context;
    dp_capture_lock();
    dp_recording *r = recording_of(stream);
    if (r && r->id == s->id) {
        s->found = r;
        dp_handle_retain(s->found->self);
    }
    dp_capture_unlock();
    return !s->found;
}

bool dp_capture_join(dp_stream *stream, uint32_t id, dp_status *out_status) {
    *out_status = DP_OK;
    if (dp_capture_id(stream) == id)
        return true;
    search s = {.id = id};
    dp_stream_for_each(find_recording, &s);
    if (!s.found)
        return false;
    dp_capture_lock();
    if (capture_of(stream))
        *out_status = dp_fail(DP_ERR_CAPTURED, "the event belongs to capture %u, but stream %u takes part in another one", id,
                              stream->id);
    else if (stream->is_default)
        *out_status = dp_fail(DP_ERR_CAPTURED, "the event belongs to capture %u, in which a default stream cannot take part",
                              id);
    else
        *out_status = keep(stream, s.found, NULL);
    dp_capture_unlock();
    if (*out_status != DP_OK)
        dp_handle_release(s.found->self);
    return true;
}

/* Ends a stream's part in a capture that has ended. */
static bool leave(dp_stream *stream, void *context) {
    dp_capture *capture = NULL;
    dp_capture_lock();
    if (recording_of(stream) == context)
        capture = stop_keeping(stream);
    dp_capture_unlock();
    if (capture)
        free_capture(capture);
    return true;
}

dp_status dp_capture_end(void *handle, void **out_recording) {
    if (!out_recording)
        return dp_fail(DP_ERR_ARGUMENT, "modelRI is NULL, but must point to where the captured graph goes");
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_capture_lock();
    dp_recording *r = recording_of(stream);
    if (!r)
        status = dp_fail(DP_ERR_STATE, "stream %u is not being captured; call aclmdlRICaptureBegin first", stream->id);
    else if (r->origin != stream)
        status = dp_fail(DP_ERR_CAPTURED, "the capture of stream %u began on another stream: end it there", stream->id);
    else if (r->open_group)
        status = dp_fail(DP_ERR_CAPTURED, "a task group of stream %u is still open: call aclmdlRICaptureTaskGrpEnd first",
                         stream->id);
    if (status == DP_OK) {
        r->capturing = false;
        r->origin = NULL;
        dp_handle_retain(r->self);
    }
    dp_capture_unlock();
    if (status == DP_OK) {
        dp_stream_for_each(leave, r);
        *out_recording = r->self;
        dp_handle_release(r->self);
    }
    dp_stream_release(stream);
    return status;
}

dp_status dp_capture_current(void *handle, void **out_recording) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_capture_lock();
    const dp_recording *r = recording_of(stream);
    *out_recording = r ? r->self : NULL;
    dp_capture_unlock();
    dp_stream_release(stream);
    return DP_OK;
}

void dp_capture_abandon(dp_stream *stream) {
    dp_capture_lock();
    dp_capture *capture = stop_keeping(stream);
    dp_recording *ended = capture && !capture->replaced && capture->recording->origin == stream ? capture->recording : NULL;
    if (ended)
        ended->origin = NULL;
    dp_capture_unlock();
    if (ended) { /* nobody has its handle for good: the others leave, the last reference goes */
        dp_stream_for_each(leave, ended);
        dp_handle_close(ended->self);
    }
    if (capture)
        free_capture(capture);
}

/* Groups. */

static void free_group(void *object) {
    dp_free(object);
}

dp_status dp_capture_group_begin(void *handle) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_task_group *group = dp_alloc(DP_MEM_RUNTIME, sizeof *group);
    status = group ? DP_OK : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a task group (%zu bytes)", sizeof *group);
    if (group && !(group->self = dp_handle_create(DP_HANDLE_TASK_GROUP, group, free_group)))
        status = DP_ERR_OUT_OF_MEMORY;
    if (status != DP_OK) {
        dp_free(group);
        goto done;
    }
    dp_capture_lock();
    dp_recording *r = recording_of(stream);
    if (!r)
        status = dp_fail(DP_ERR_STATE, "stream %u is not being captured; call aclmdlRICaptureBegin first", stream->id);
    else if (r->open_group)
        status = dp_fail(DP_ERR_CAPTURED, "a task group of this capture is open already: groups do not nest");
    if (status == DP_OK) {
        group->recording = r;
        group->next = r->groups;
        r->groups = r->open_group = group;
    }
    dp_capture_unlock();
    if (status != DP_OK)
        dp_handle_close(group->self);
done:
    dp_stream_release(stream);
    return status;
}

dp_status dp_capture_group_end(void *handle, void **out_group) {
    if (!out_group)
        return dp_fail(DP_ERR_ARGUMENT, "handle is NULL, but must point to where the task group goes");
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_capture_lock();
    dp_recording *r = recording_of(stream);
    if (!r || !r->open_group) {
        status = dp_fail(DP_ERR_STATE, "stream %u has no open task group; call aclmdlRICaptureTaskGrpBegin first", stream->id);
    } else {
        *out_group = r->open_group->self;
        r->open_group = NULL;
    }
    dp_capture_unlock();
    dp_stream_release(stream);
    return status;
}

dp_status dp_capture_update_begin(void *handle, void *group_handle) {
    dp_task_group *group = dp_handle_acquire(group_handle, DP_HANDLE_TASK_GROUP, "handle");
    if (!group)
        return DP_ERR_HANDLE;
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        goto done;
    dp_capture_lock();
    dp_recording *r = group->recording;
    if (capture_of(stream))
        status = dp_fail(DP_ERR_CAPTURED, "stream %u is being captured already", stream->id);
    else if (r->capturing)
        status = dp_fail(DP_ERR_CAPTURED, "handle is a task group of a capture that has not ended");
    else if (!dp_handle_try_retain(r->self))
        status = dp_fail(DP_ERR_HANDLE, "handle (%p) is a task group of a graph that is being destroyed", group_handle);
    else if ((status = keep(stream, r, group)) != DP_OK)
        dp_handle_release(r->self);
    dp_capture_unlock();
    dp_stream_release(stream);
done:
    dp_handle_release(group_handle);
    return status;
}

static dp_status run_update(void *payload) {
    dp_capture *update = *(dp_capture **)payload;
    dp_recording_replace(update->recording, update->replaced, &update->steps);
    return DP_OK;
}

static void end_update(void *payload) {
    free_capture(*(dp_capture **)payload);
}

static size_t count_of(const dp_recording *r, const dp_task_group *group) {
    size_t count = 0;
    for (size_t i = 0; i < r->steps.count; i++)
        count += r->steps.items[i].group == group;
    return count;
}

dp_status dp_capture_update_end(void *handle) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_capture_lock();
    dp_capture *update = capture_of(stream);
    if (!update || !update->replaced)
        status = dp_fail(DP_ERR_STATE, "stream %u updates no task group; call aclmdlRICaptureTaskUpdateBegin first", stream->id);
    else
        update = stop_keeping(stream);
    size_t wanted = status == DP_OK ? count_of(update->recording, update->replaced) : 0;
    dp_capture_unlock();
    if (status == DP_OK && update->steps.count != wanted)
        status = dp_fail(DP_ERR_ARGUMENT, "%zu tasks were queued to replace a task group of %zu: queue as many", update->steps.count,
                         wanted);
    else if (status == DP_OK)
        status = dp_task_submit(handle, "update of a captured graph", run_update, end_update, &update, sizeof update);
    else
        update = NULL;
    if (status != DP_OK && update)
        free_capture(update);
    dp_stream_release(stream);
    return status;
}
