#include "runtime/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/check/check.h"
#include "device/trace/trace.h"
#include "runtime/context_state.h"
#include "runtime/device_state.h"
#include "runtime/fork.h"
#include "runtime/futex.h"
#include "runtime/handle.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

typedef struct device {
    dp_context *primary; /* one reference; under lock */
    unsigned threads;    /* that called dp_device_set and not yet dp_device_reset; under lock */
    _Atomic uint64_t busy_ns, asked_busy_ns, asked_ns;
} device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static device devices[DP_DEVICE_MAX];
static int32_t physical[DP_DEVICE_MAX];
static uint32_t device_count = 1;
static uint64_t start_ns;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static _Thread_local uint64_t devices_of_thread; /* bit set: this thread counts in devices[].threads */

/* A thread that ends without reset must not keep others from resetting. */
static void thread_ends(void *mask) {
    uint64_t left = (uint64_t)(uintptr_t)mask;
    pthread_mutex_lock(&lock);
    for (uint32_t d = 0; d < DP_DEVICE_MAX; d++) {
        if ((left >> d & 1) && devices[d].threads)
            devices[d].threads--;
    }
    pthread_mutex_unlock(&lock);
}

static void remember_devices(uint64_t mask) {
    devices_of_thread = mask;
    pthread_setspecific(thread_key, (void *)(uintptr_t)mask);
}

static uint32_t read_device_count(void) {
    const char *text = getenv("DOPPEL_DEVICES");
    if (!text || !*text)
        return 1;
    char *end;
    long asked = strtol(text, &end, 10);
    if (!*end && asked >= 0 && asked <= (long)DP_DEVICE_MAX)
        return (uint32_t)asked;
    dp_log("runtime", DP_LOG_ERROR, "DOPPEL_DEVICES is \"%s\", but must be 0 to %u; using 1", text, DP_DEVICE_MAX);
    return 1;
}

static void read_visible_devices(uint32_t existing) {
    for (uint32_t i = 0; i < existing; i++)
        physical[i] = (int32_t)i;
    device_count = existing;
    const char *text = getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (!text || !*text)
        return;
    device_count = 0;
    uint64_t taken = 0;
    while (*text && device_count < DP_DEVICE_MAX) {
        char *end;
        long id = strtol(text, &end, 10);
        if (end == text || (*end && *end != ',') || id < 0 || id >= (long)existing || (taken >> id & 1))
            break;
        taken |= (uint64_t)1 << id;
        physical[device_count++] = (int32_t)id;
        text = *end ? end + 1 : end;
    }
}

static void install_observer(void) {
    const char *mode = getenv("DOPPEL_MODE");
    if (!mode || !*mode || strcmp(mode, "fast") == 0)
        return;
    if (strcmp(mode, "check") == 0)
        dp_check_install();
    else if (strcmp(mode, "trace") == 0)
        dp_trace_install();
    else
        dp_log("runtime", DP_LOG_ERROR, "DOPPEL_MODE is \"%s\", but must be check or trace; running without", mode);
}

static void start(void) {
    start_ns = dp_clock_ns();
    for (uint32_t d = 0; d < DP_DEVICE_MAX; d++)
        atomic_store(&devices[d].asked_ns, start_ns);
    read_visible_devices(read_device_count());
    pthread_key_create(&thread_key, thread_ends);
    dp_fork_install();
    install_observer();
}

void dp_runtime_start(void) {
    pthread_once(&once, start);
}

uint32_t dp_device_count(void) {
    dp_runtime_start();
    return device_count;
}

dp_status dp_device_check(int32_t device_id) {
    dp_runtime_start();
    if (device_id >= 0 && (uint32_t)device_id < device_count)
        return DP_OK;
    if (device_count == 0)
        return dp_fail(DP_ERR_NOT_FOUND,
                       "deviceId is %d, but this process sees no device; look at DOPPEL_DEVICES and "
                       "ASCEND_RT_VISIBLE_DEVICES",
                       device_id);
    return dp_fail(DP_ERR_NOT_FOUND, "deviceId is %d, but must be 0 to %u (%u device%s; DOPPEL_DEVICES=n makes more)",
                   device_id, device_count - 1, device_count, device_count == 1 ? "" : "s");
}

dp_status dp_device_set(int32_t device_id) {
    dp_status status = dp_device_check(device_id);
    if (status != DP_OK)
        return status;
    device *d = &devices[device_id];
    pthread_mutex_lock(&lock);
    if (!d->primary)
        status = dp_context_new((uint32_t)device_id, true, &d->primary);
    void *handle = d->primary ? d->primary->self : NULL;
    if (status == DP_OK && !(devices_of_thread >> device_id & 1)) {
        d->threads++;
        remember_devices(devices_of_thread | (uint64_t)1 << device_id);
    }
    pthread_mutex_unlock(&lock);
    if (status == DP_OK)
        dp_context_set_thread_handle(handle);
    return status;
}

dp_status dp_device_get(int32_t *out_device_id) {
    if (!out_device_id)
        return dp_fail(DP_ERR_ARGUMENT, "deviceId is NULL, but must point to where the device id goes");
    uint32_t device_id;
    dp_status status = dp_context_current_device(&device_id);
    if (status == DP_OK)
        *out_device_id = (int32_t)device_id;
    return status;
}

typedef struct device_visit {
    uint32_t device_id;
    uint64_t deadline_ns;
    dp_status status;
    char error[DP_STREAM_ERROR_BYTES];
} device_visit;

/* Visits streams of one device: waits, and keeps the first error. */
static bool wait_for_stream(dp_stream *stream, void *context) {
    device_visit *visit = context;
    if (stream->device_id != visit->device_id || stream == dp_stream_running())
        return true;
    dp_status status = dp_stream_wait(stream, atomic_load(&stream->submitted), visit->deadline_ns);
    if (status != DP_OK) {
        visit->status = status;
        if (status == DP_ERR_KERNEL_TIMEOUT)
            snprintf(visit->error, sizeof visit->error, "%s", dp_fail_message());
        return false;
    }
    pthread_mutex_lock(&stream->lock);
    if (visit->status == DP_OK && stream->status != DP_OK) {
        visit->status = stream->status;
        memcpy(visit->error, stream->error, sizeof visit->error);
    }
    pthread_mutex_unlock(&stream->lock);
    return true;
}

static bool drop_queued(dp_stream *stream, void *context) {
    const device_visit *visit = context;
    if (stream->device_id == visit->device_id && stream != dp_stream_running())
        dp_stream_drop_queued(stream);
    return true;
}

static bool clear_error(dp_stream *stream, void *context) {
    const device_visit *visit = context;
    if (stream->device_id == visit->device_id)
        dp_stream_clear_error(stream);
    return true;
}

dp_status dp_device_synchronise(int32_t timeout_ms) {
    device_visit visit = {.deadline_ns = dp_deadline_ns(timeout_ms)};
    dp_status status = dp_context_current_device(&visit.device_id);
    if (status != DP_OK)
        return status;
    dp_stream *running = dp_stream_running();
    if (running && running->device_id == visit.device_id)
        return dp_fail(DP_ERR_STATE, "a task of device %u cannot wait for its own device", visit.device_id);
    dp_stream_for_each(wait_for_stream, &visit);
    if (visit.status == DP_ERR_TIMEOUT && !visit.error[0])
        return dp_fail(DP_ERR_TIMEOUT, "device %u still had work after timeout = %d ms", visit.device_id, timeout_ms);
    return visit.status == DP_OK ? DP_OK : dp_fail(visit.status, "%s", visit.error);
}

dp_status dp_device_abort(int32_t device_id, int32_t timeout_ms) {
    dp_status status = dp_device_check(device_id);
    if (status != DP_OK)
        return status;
    device_visit visit = {.device_id = (uint32_t)device_id, .deadline_ns = dp_deadline_ns(timeout_ms)};
    dp_stream_for_each(drop_queued, &visit);
    dp_stream_for_each(wait_for_stream, &visit);
    if (visit.status == DP_ERR_TIMEOUT && !visit.error[0])
        return dp_fail(DP_ERR_TIMEOUT, "a task of device %d was still running after timeout = %d ms", device_id,
                       timeout_ms);
    if (visit.status == DP_ERR_KERNEL_TIMEOUT)
        return dp_stream_check_lost();
    dp_stream_for_each(clear_error, &visit);
    return DP_OK;
}

/* Ends the default context. The caller has already taken it out of the device. */
static void end_primary(dp_context *primary, uint32_t device_id, bool force) {
    device_visit visit = {.device_id = device_id, .deadline_ns = UINT64_MAX};
    if (force)
        dp_stream_for_each(drop_queued, &visit);
    dp_stream_for_each(wait_for_stream, &visit);
    dp_stream_for_each(clear_error, &visit);
    if (dp_context_thread_handle() == primary->self)
        dp_context_set_thread_handle(NULL);
    dp_context_retire(primary, force);
}

dp_status dp_device_reset(int32_t device_id, bool force) {
    dp_status status = dp_device_check(device_id);
    if (status != DP_OK)
        return status;
    dp_stream *running = dp_stream_running();
    if (running && running->device_id == (uint32_t)device_id)
        return dp_fail(DP_ERR_STATE, "deviceId %d cannot be reset by one of its own tasks", device_id);
    device *d = &devices[device_id];
    pthread_mutex_lock(&lock);
    if (devices_of_thread >> device_id & 1) {
        remember_devices(devices_of_thread & ~((uint64_t)1 << device_id));
        if (d->threads)
            d->threads--;
    }
    dp_context *primary = NULL;
    if (force || d->threads == 0) {
        primary = d->primary;
        d->primary = NULL;
        d->threads = 0;
    }
    pthread_mutex_unlock(&lock);
    if (primary)
        end_primary(primary, (uint32_t)device_id, force);
    dp_report_object(DP_HOST_RESET, (uint32_t)device_id, NULL, NULL);
    if (force)
        dp_device_memory_free_all((uint32_t)device_id);
    return dp_stream_check_lost();
}

dp_status dp_device_is_active(int32_t device_id, bool *out_active) {
    dp_status status = dp_device_check(device_id);
    if (status != DP_OK)
        return status;
    pthread_mutex_lock(&lock);
    *out_active = devices[device_id].primary != NULL;
    pthread_mutex_unlock(&lock);
    return DP_OK;
}

void dp_device_add_busy(uint32_t device_id, uint64_t busy_ns) {
    atomic_fetch_add(&devices[device_id].busy_ns, busy_ns);
}

dp_status dp_device_utilisation(int32_t device_id, int32_t *out_percent) {
    dp_status status = dp_device_check(device_id);
    if (status != DP_OK)
        return status;
    device *d = &devices[device_id];
    uint64_t now = dp_clock_ns(), busy = atomic_load(&d->busy_ns);
    uint64_t span = now - atomic_exchange(&d->asked_ns, now), worked = busy - atomic_exchange(&d->asked_busy_ns, busy);
    uint64_t percent = span ? worked * 100 / span : 0;
    *out_percent = percent > 100 ? 100 : (int32_t)percent;
    return DP_OK;
}

dp_status dp_device_physical_id(int32_t device_id, int32_t *out_physical_id) {
    dp_status status = dp_device_check(device_id);
    if (status == DP_OK)
        *out_physical_id = physical[device_id];
    return status;
}

void dp_device_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}
void dp_device_fork_parent(void) {
    pthread_mutex_unlock(&lock);
}

/* Only the forking thread lives on. */
void dp_device_fork_child(void) {
    pthread_mutex_init(&lock, NULL);
    for (uint32_t d = 0; d < DP_DEVICE_MAX; d++)
        devices[d].threads = (unsigned)(devices_of_thread >> d & 1);
}
