#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/device_memory.h"
#include "runtime/memory_state.h"
#include "runtime/pool.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

enum { PARALLEL_BYTES = 4 << 20, PIECE_BYTES = 1 << 20 };

/* A rectangle: rows of width bytes; a plain copy is one row. src NULL: fill with value. */
typedef struct transfer {
    uint8_t *dst;
    const uint8_t *src;
    size_t dst_pitch, src_pitch, width, height;
    uint8_t value;
    const char *api_name; /* of a queued transfer: who asked for it, told to observers when it runs */
    const void *api_caller;
} transfer;

static size_t span(size_t pitch, size_t width, size_t height) {
    return height ? pitch * (height - 1) + width : 0;
}

dp_status dp_device_memory_check(const char *argument, const void *ptr, size_t size_bytes) {
    dp_gm_range range;
    if (!ptr)
        return dp_fail(DP_ERR_ARGUMENT, "%s is NULL, but must be device memory", argument);
    if (!dp_gm_find(ptr, &range)) {
        char text[256];
        dp_pointer_sentence(ptr, text, sizeof text);
        return dp_fail(DP_ERR_ADDRESS, "%s (%p) %s, but must be device memory", argument, ptr, text);
    }
    size_t left = range.size_bytes - (size_t)((const uint8_t *)ptr - range.base);
    if (size_bytes <= left)
        return DP_OK;
    if (left == range.size_bytes)
        return dp_fail(DP_ERR_ADDRESS, "%s (%p): %zu bytes from the start of a %zu-byte allocation go %zu past its end",
                       argument, ptr, size_bytes, range.size_bytes, size_bytes - left);
    return dp_fail(DP_ERR_ADDRESS,
                   "%s (%p): %zu bytes starting %zu bytes before the end of a %zu-byte allocation go %zu past "
                   "its end",
                   argument, ptr, size_bytes, left, range.size_bytes, size_bytes - left);
}

/* A pointer that the kind says is on the host. */
static dp_status check_host(const char *argument, const void *ptr, size_t size_bytes) {
    dp_gm_range range;
    if (!ptr)
        return dp_fail(DP_ERR_ARGUMENT, "%s is NULL, but must be host memory of %zu bytes", argument, size_bytes);
    if (dp_gm_find(ptr, &range) && !dp_host_memory_contains(ptr))
        return dp_fail(DP_ERR_ADDRESS,
                       "%s (%p) is memory of device %u, but the kind of this copy wants host memory there", argument,
                       ptr, range.device_id);
    return DP_OK;
}

static dp_status check_either(const char *argument, const void *ptr, size_t size_bytes) {
    dp_gm_range range;
    if (ptr && dp_gm_find(ptr, &range))
        return dp_device_memory_check(argument, ptr, size_bytes);
    return check_host(argument, ptr, size_bytes);
}

static bool dst_is_device(dp_copy_kind kind) {
    return kind == DP_COPY_HOST_TO_DEVICE || kind == DP_COPY_DEVICE_TO_DEVICE || kind >= DP_COPY_HOST_TO_BUF_TO_DEVICE;
}

static bool src_is_device(dp_copy_kind kind) {
    return kind == DP_COPY_DEVICE_TO_HOST || kind == DP_COPY_DEVICE_TO_DEVICE ||
           kind == DP_COPY_INNER_DEVICE_TO_DEVICE || kind == DP_COPY_INTER_DEVICE_TO_DEVICE;
}

static dp_status check_ends(const transfer *t, dp_copy_kind kind) {
    if ((unsigned)kind > DP_COPY_INTER_DEVICE_TO_DEVICE)
        return dp_fail(DP_ERR_ARGUMENT, "kind is %d, but must be 0 to %d", (int)kind, DP_COPY_INTER_DEVICE_TO_DEVICE);
    size_t dst_bytes = span(t->dst_pitch, t->width, t->height), src_bytes = span(t->src_pitch, t->width, t->height);
    dp_status status;
    if (kind == DP_COPY_DEFAULT) {
        status = check_either("dst", t->dst, dst_bytes);
        return status == DP_OK ? check_either("src", t->src, src_bytes) : status;
    }
    status =
        dst_is_device(kind) ? dp_device_memory_check("dst", t->dst, dst_bytes) : check_host("dst", t->dst, dst_bytes);
    if (status != DP_OK)
        return status;
    return src_is_device(kind) ? dp_device_memory_check("src", t->src, src_bytes)
                               : check_host("src", t->src, src_bytes);
}

static void report(const transfer *t) {
    if (!dp_report_wanted())
        return;
    dp_gm_range range;
    for (size_t row = 0; row < t->height; row++) {
        if (t->src && dp_gm_find(t->src + row * t->src_pitch, &range))
            dp_report_memory(DP_HOST_READ, range.device_id, t->dst + row * t->dst_pitch, t->src + row * t->src_pitch,
                             t->width);
        if (dp_gm_find(t->dst + row * t->dst_pitch, &range))
            dp_report_memory(DP_HOST_WRITE, range.device_id, t->dst + row * t->dst_pitch,
                             t->src ? t->src + row * t->src_pitch : NULL, t->width);
    }
}

static void move_piece(void *context, size_t begin, size_t end) {
    const transfer *t = context;
    if (t->src)
        memcpy(t->dst + begin, t->src + begin, end - begin);
    else
        memset(t->dst + begin, t->value, end - begin);
}

static void move_row(transfer *t) {
    bool overlap = t->src && t->dst < t->src + t->width && t->src < t->dst + t->width;
    if (overlap)
        memmove(t->dst, t->src, t->width);
    else if (t->width >= PARALLEL_BYTES)
        dp_pool_for(t->width, PIECE_BYTES, move_piece, t);
    else
        move_piece(t, 0, t->width);
}

static void perform(const transfer *t) {
    for (size_t row = 0; row < t->height; row++) {
        transfer one = *t;
        one.dst += row * t->dst_pitch;
        if (t->src)
            one.src += row * t->src_pitch;
        move_row(&one);
    }
}

static dp_task_state run_transfer(dp_task *task) {
    const transfer *t = task->payload;
    const char *outer_name; /* a thread that waits in another API call may do this work */
    const void *outer_caller;
    dp_report_current(&outer_name, &outer_caller);
    dp_report_enter(t->api_name, t->api_caller);
    report(t); /* in the order of the stream: only now have the kernels before it run */
    dp_report_enter(outer_name, outer_caller);
    perform(t);
    return DP_TASK_DONE;
}

/* HOST_TO_BUF: the source's bytes travel with the task. */
static const uint8_t *carried(dp_task *task) {
    return (const uint8_t *)task->payload + sizeof(transfer);
}

static dp_status queue_transfer(transfer *t, void *handle, const char *name, bool carry) {
    dp_status status;
    dp_stream *stream = dp_stream_acquire(handle, "stream", &status);
    if (!stream)
        return status;
    dp_report_current(&t->api_name, &t->api_caller);
    dp_task *task = dp_task_new(stream, name, sizeof *t + (carry ? t->width : 0));
    status = DP_ERR_OUT_OF_MEMORY;
    if (task) {
        if (carry) {
            memcpy((uint8_t *)task->payload + sizeof *t, t->src, t->width);
            t->src = carried(task);
        }
        memcpy(task->payload, t, sizeof *t);
        task->run = run_transfer;
        status = dp_stream_append(stream, task);
        if (status != DP_OK)
            dp_task_discard(task);
    }
    dp_stream_release(stream);
    return status;
}

static dp_status make_copy(transfer *t, void *dst, size_t dst_bytes, const void *src, size_t count_bytes,
                           dp_copy_kind kind) {
    *t = (transfer){.dst = dst, .src = src, .width = count_bytes, .height = 1};
    if (count_bytes > dst_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "count is %zu bytes, but destMax says that dst has room for %zu", count_bytes,
                       dst_bytes);
    return check_ends(t, kind);
}

dp_status dp_copy(void *dst, size_t dst_bytes, const void *src, size_t count_bytes, dp_copy_kind kind) {
    transfer t;
    dp_status status = make_copy(&t, dst, dst_bytes, src, count_bytes, kind);
    if (status != DP_OK)
        return status;
    dp_context_settle_default_stream();
    dp_stream_settle();
    report(&t);
    perform(&t);
    return DP_OK;
}

dp_status dp_copy_async(void *dst, size_t dst_bytes, const void *src, size_t count_bytes, dp_copy_kind kind,
                        void *stream) {
    transfer t;
    dp_status status = make_copy(&t, dst, dst_bytes, src, count_bytes, kind);
    if (status != DP_OK)
        return status;
    return queue_transfer(&t, stream, "copy", kind == DP_COPY_HOST_TO_BUF_TO_DEVICE);
}

static dp_status make_copy_2d(transfer *t, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width_bytes, size_t height, dp_copy_kind kind) {
    *t = (transfer){
        .dst = dst, .src = src, .dst_pitch = dst_pitch, .src_pitch = src_pitch, .width = width_bytes, .height = height};
    if (width_bytes == 0 || height == 0)
        return dp_fail(DP_ERR_ARGUMENT, "width is %zu and height is %zu, but both must be at least 1", width_bytes,
                       height);
    if (dst_pitch < width_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "dpitch is %zu bytes, but must be at least width (%zu)", dst_pitch,
                       width_bytes);
    if (src_pitch < width_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "spitch is %zu bytes, but must be at least width (%zu)", src_pitch,
                       width_bytes);
    size_t larger = dst_pitch > src_pitch ? dst_pitch : src_pitch;
    if (height > SIZE_MAX / 4 / larger)
        return dp_fail(DP_ERR_ARGUMENT, "height is %zu rows of %zu bytes, which is more than memory can hold", height,
                       larger);
    return check_ends(t, kind);
}

dp_status dp_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width_bytes, size_t height,
                     dp_copy_kind kind) {
    transfer t;
    dp_status status = make_copy_2d(&t, dst, dst_pitch, src, src_pitch, width_bytes, height, kind);
    if (status != DP_OK)
        return status;
    dp_context_settle_default_stream();
    dp_stream_settle();
    report(&t);
    perform(&t);
    return DP_OK;
}

dp_status dp_copy_2d_async(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width_bytes,
                           size_t height, dp_copy_kind kind, void *stream) {
    transfer t;
    dp_status status = make_copy_2d(&t, dst, dst_pitch, src, src_pitch, width_bytes, height, kind);
    if (status != DP_OK)
        return status;
    return queue_transfer(&t, stream, "copy 2-D", false);
}

static dp_status make_fill(transfer *t, void *ptr, size_t ptr_bytes, int32_t value, size_t count_bytes) {
    *t = (transfer){.dst = ptr, .width = count_bytes, .height = 1, .value = (uint8_t)value};
    if (count_bytes > ptr_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "count is %zu bytes, but maxCount says that devPtr has room for %zu",
                       count_bytes, ptr_bytes);
    /* host memory of aclrtMallocHost may be filled too */
    if (ptr && dp_host_memory_contains(ptr))
        return DP_OK;
    return dp_device_memory_check("devPtr", ptr, count_bytes);
}

dp_status dp_fill(void *ptr, size_t ptr_bytes, int32_t value, size_t count_bytes) {
    transfer t;
    dp_status status = make_fill(&t, ptr, ptr_bytes, value, count_bytes);
    if (status != DP_OK)
        return status;
    dp_context_settle_default_stream();
    dp_stream_settle();
    report(&t);
    perform(&t);
    return DP_OK;
}

dp_status dp_fill_async(void *ptr, size_t ptr_bytes, int32_t value, size_t count_bytes, void *stream) {
    transfer t;
    dp_status status = make_fill(&t, ptr, ptr_bytes, value, count_bytes);
    if (status != DP_OK)
        return status;
    return queue_transfer(&t, stream, "fill", false);
}
