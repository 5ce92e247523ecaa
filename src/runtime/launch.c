#define _GNU_SOURCE
#include "runtime/launch.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/memory.h"
#include "device/print.h"
#include "runtime/device_state.h"
#include "runtime/launch_state.h"
#include "runtime/report.h"

static _Atomic uint64_t last_launch_id;

static pthread_mutex_t exception_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*exception_callback)(const dp_exception_info *info, void *context);
static void *exception_context;

void dp_launch_set_exception_callback(void (*callback)(const dp_exception_info *info, void *context), void *context) {
    pthread_mutex_lock(&exception_lock);
    exception_callback = callback;
    exception_context = context;
    pthread_mutex_unlock(&exception_lock);
}

typedef struct exception_call {
    void (*callback)(const dp_exception_info *info, void *context);
    void *context;
    const dp_exception_info *info;
} exception_call;

static void call_back(void *argument) {
    const exception_call *call = argument;
    call->callback(call->info, call->context);
}

static void tell_exception(const dp_launch *launch) {
    dp_exception_info info = {.task_id = launch->task_id,
                              .stream_id = launch->info.stream_id,
                              .device_id = launch->info.device_id,
                              .thread_id = (uint32_t)gettid(),
                              .status = DP_ERR_KERNEL,
                              .kernel_name = launch->info.kernel.name,
                              .sentence = launch->error};
    pthread_mutex_lock(&exception_lock);
    exception_call call = {exception_callback, exception_context, &info};
    pthread_mutex_unlock(&exception_lock);
    char type[128];
    if (call.callback && !dp_call_guarded(call_back, &call, type, sizeof type))
        dp_task_threw(NULL, "the callback for kernel faults", type);
}

void dp_launch_fail(dp_launch *launch, const char *sentence) {
    pthread_mutex_lock(&launch->lock);
    if (!launch->explained) {
        launch->explained = true;
        const char *name = launch->info.kernel.name;
        snprintf(launch->error, sizeof launch->error, "kernel %s failed: %s", name ? name : "?", sentence);
    }
    pthread_mutex_unlock(&launch->lock);
    atomic_store(&launch->failed, true);
}

enum { STOP_AGAIN_NS = 10000000, STOP_PATIENCE_NS = 1000000000 };

const char *dp_launch_limit_text(const dp_launch *launch, char text[32]) {
    if (launch->limit_ns % 1000000000u == 0)
        snprintf(text, 32, "%llu s", (unsigned long long)(launch->limit_ns / 1000000000u));
    else
        snprintf(text, 32, "%g ms", (double)launch->limit_ns * 1e-6);
    return text;
}

static void say_overdue(dp_launch *launch, const char *end) {
    char limit[32], sentence[256];
    snprintf(sentence, sizeof sentence, "it ran longer than the %s that aclrtSetOpExecuteTimeOut allows%s",
             dp_launch_limit_text(launch, limit), end);
    dp_launch_fail(launch, sentence);
}

/* Asks the blocks to stop, again and again, because new ones may just begin; then gives up on them. */
static uint64_t launch_is_due(dp_watch *watch, uint64_t now_ns) {
    dp_launch *launch = (dp_launch *)((char *)watch - offsetof(dp_launch, watch));
    atomic_store(&launch->overdue, true);
    atomic_store(&launch->failed, true);
    dp_seat_stop(launch);
    if (now_ns - launch->begin_ns < launch->limit_ns + STOP_PATIENCE_NS)
        return now_ns + STOP_AGAIN_NS;
    say_overdue(launch, ", and it executes no instruction at which it could be stopped");
    char sentence[DP_STREAM_ERROR_BYTES + 128];
    const dp_loc at = launch->info.kernel.launch;
    pthread_mutex_lock(&launch->lock);
    snprintf(sentence, sizeof sentence, "%s:%u: %s; the device cannot be used until it ends", at.file ? at.file : "?",
             at.line, launch->error);
    pthread_mutex_unlock(&launch->lock);
    launch->lost = true;
    dp_stream_lose(sentence);
    return 0;
}

static void watch_launch(dp_launch *launch) {
    launch->limit_ns = dp_watch_execute_limit_ns();
    launch->watch.due = launch_is_due;
    if (launch->limit_ns)
        dp_watch_begin(&launch->watch, launch->begin_ns + launch->limit_ns);
}

static void destroy_launch(dp_job *job) {
    dp_launch *launch = (dp_launch *)job;
    pthread_mutex_destroy(&launch->lock);
    dp_launch_sync_destroy(launch->sync);
    dp_free(launch);
}

/* All units have ended; this thread ended the last one. */
static void end_launch(dp_launch *launch) {
    dp_stream *stream = launch->stream;
    if (DP_UNLIKELY(launch->limit_ns)) {
        dp_watch_end(&launch->watch);
        if (launch->lost)
            dp_stream_find();
    }
    pthread_mutex_lock(&stream->lock);
    atomic_store(&stream->launch, NULL);
    pthread_mutex_unlock(&stream->lock);
    if (launch->observer && launch->observer->launch_end)
        launch->observer->launch_end(&launch->info);
    dp_print_launch_end(&launch->info);
    dp_device_add_busy(launch->info.device_id, dp_clock_ns() - launch->begin_ns);
    if (DP_UNLIKELY(atomic_load(&launch->failed))) {
        bool overdue = atomic_load(&launch->overdue);
        if (overdue)
            say_overdue(launch, ""); /* unless a block said so, with its line */
        dp_stream_fail(stream, overdue ? DP_ERR_KERNEL_TIMEOUT : DP_ERR_KERNEL, launch->error);
        tell_exception(launch);
    }
}

/* For threads that joined: the stream goes on from here if the last unit ended here. */
static void join_launch(dp_job *job) {
    dp_launch *launch = (dp_launch *)job;
    if (!dp_launch_take_part(launch))
        return;
    end_launch(launch);
    dp_stream_task_done(launch->stream);
}

static dp_task_state run_launch(dp_task *task) {
    dp_launch *launch = *(dp_launch **)task->payload;
    dp_stream *stream = task->stream;
    launch->observer = dp_observer_current();
    launch->begin_ns = dp_clock_ns();
    launch->task_id = (uint32_t)task->number;
    launch->info.queue = stream->queue;
    launch->info.task = task->number;
    if (launch->observer && launch->observer->launch_begin)
        launch->observer->launch_begin(&launch->info);
    watch_launch(launch);
    atomic_fetch_add(&launch->job.references, 1); /* the task may end while this thread still looks on */
    if (launch->units > 1) {
        unsigned width = dp_pool_width();
        pthread_mutex_lock(&stream->lock);
        atomic_store(&stream->launch, &launch->job);
        pthread_mutex_unlock(&stream->lock);
        dp_pool_publish(&launch->job, (launch->units < width ? launch->units : width) - 1);
    }
    bool last = dp_launch_take_part(launch);
    if (last)
        end_launch(launch);
    dp_job_release(&launch->job);
    return last ? DP_TASK_DONE : DP_TASK_PENDING;
}

static void destroy_launch_task(dp_task *task) {
    dp_job_release(&(*(dp_launch **)task->payload)->job);
}

static dp_status check_launch(const dp_kernel_info *info, uint32_t blocks, dp_kernel_entry entry, const void *args,
                              size_t args_bytes) {
    if (!info)
        return dp_fail(DP_ERR_ARGUMENT, "info is NULL, but must describe the kernel");
    const char *name = info->name ? info->name : "?";
    if (!entry)
        return dp_fail(DP_ERR_ARGUMENT, "kernel %s has no entry function", name);
    if (blocks < 1 || blocks > DP_LAUNCH_BLOCKS_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "blockDim of kernel %s is %u, but must be 1 to %u", name, blocks,
                       DP_LAUNCH_BLOCKS_MAX);
    if (info->core_mix > DP_MIX_AIC_1_2)
        return dp_fail(DP_ERR_ARGUMENT, "core mix of kernel %s is %u, but must be 0 to %d", name, info->core_mix,
                       DP_MIX_AIC_1_2);
    if (args_bytes && !args)
        return dp_fail(DP_ERR_ARGUMENT, "args of kernel %s is NULL, but %zu bytes of arguments were announced", name,
                       args_bytes);
    if (args_bytes > SIZE_MAX / 2)
        return dp_fail(DP_ERR_ARGUMENT, "argsSize of kernel %s is %zu, which is no size", name, args_bytes);
    const dp_chip *chip = dp_chip_current();
    if (info->dynamic_ub_bytes > chip->space_bytes[DP_SPACE_UB])
        return dp_fail(DP_ERR_ARGUMENT,
                       "kernel %s is launched with %u bytes of dynamic unified buffer, but a core of %s has %u", name,
                       info->dynamic_ub_bytes, chip->name, chip->space_bytes[DP_SPACE_UB]);
    return DP_OK;
}

static dp_launch *new_launch(const dp_kernel_info *info, uint32_t blocks, dp_stream *stream, dp_kernel_entry entry,
                             const void *args, size_t args_bytes) {
    static const uint8_t cores[] = {[DP_MIX_AIV] = 1, [DP_MIX_AIC] = 1, [DP_MIX_AIC_1_1] = 2, [DP_MIX_AIC_1_2] = 3};
    dp_launch *launch = dp_alloc(DP_MEM_RUNTIME, sizeof *launch + args_bytes);
    if (!launch) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to launch kernel %s (%zu bytes)", info->name ? info->name : "?",
                sizeof *launch + args_bytes);
        return NULL;
    }
    pthread_mutex_init(&launch->lock, NULL);
    launch->job.join = join_launch;
    launch->job.room = UINT32_MAX;
    launch->job.destroy = destroy_launch;
    atomic_store(&launch->job.references, 1);
    launch->info = (dp_launch_info){.id = atomic_fetch_add(&last_launch_id, 1) + 1,
                                    .kernel = *info,
                                    .blocks = blocks,
                                    .stream_id = stream->id,
                                    .device_id = stream->device_id};
    launch->stream = stream;
    launch->entry = entry;
    launch->cores_per_block = cores[info->core_mix];
    launch->units = blocks * launch->cores_per_block;
    atomic_store(&launch->remaining, launch->units);
    launch->args_bytes = args_bytes;
    if (args_bytes)
        memcpy(launch->args, args, args_bytes);
    launch->sync = dp_launch_sync_create(blocks, info->core_mix);
    if (!launch->sync) {
        destroy_launch(&launch->job);
        return NULL;
    }
    return launch;
}

/* A captured launch is never run itself: every run has one of its own. */
static dp_status launch_again(const dp_task *recorded, dp_task *part) {
    const dp_launch *like = *(dp_launch **)recorded->payload;
    dp_launch *launch =
        new_launch(&like->info.kernel, like->info.blocks, part->stream, like->entry, like->args, like->args_bytes);
    if (!launch)
        return DP_ERR_OUT_OF_MEMORY;
    part->payload = part->inline_bytes;
    *(dp_launch **)part->payload = launch;
    part->destroy = destroy_launch_task;
    return DP_OK;
}

dp_status dp_launch_submit(const dp_kernel_info *info, uint32_t blocks, void *handle, dp_kernel_entry entry,
                           const void *args, size_t args_bytes) {
    dp_status status = check_launch(info, blocks, entry, args, args_bytes);
    if (status != DP_OK)
        return status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    status = DP_ERR_OUT_OF_MEMORY;
    dp_launch *launch = new_launch(info, blocks, stream, entry, args, args_bytes);
    if (!launch)
        goto done;
    dp_task *task = dp_task_new(stream, info->name ? info->name : "kernel", sizeof launch);
    if (!task) {
        dp_job_release(&launch->job);
        goto done;
    }
    *(dp_launch **)task->payload = launch;
    task->run = run_launch;
    task->destroy = destroy_launch_task;
    task->again = launch_again;
    status = dp_stream_append(stream, task);
    if (status != DP_OK) {
        destroy_launch_task(task);
        dp_task_discard(task);
    }
done:
    dp_stream_release(stream);
    return status;
}
