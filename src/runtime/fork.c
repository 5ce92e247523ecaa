#include "runtime/fork.h"

#include <pthread.h>

#include "device/check/check.h"
#include "device/gm.h"
#include "runtime/callback_state.h"
#include "runtime/capture_state.h"
#include "runtime/device_state.h"
#include "runtime/event_state.h"
#include "runtime/handle.h"
#include "runtime/job.h"
#include "runtime/launch_state.h"
#include "runtime/memory_state.h"
#include "runtime/profile.h"
#include "runtime/stream_queue.h"
#include "runtime/watchdog.h"

static pthread_mutex_t parts_lock = PTHREAD_MUTEX_INITIALIZER; /* of the next four; held over a fork */
static dp_fork_part *parts[DP_FORK_FLOORS];
static bool is_registered, has_runtime;
static bool holds_runtime; /* the fork that goes on took the runtime's locks */

/* Locks are taken in the order in which ordinary code nests them. */
static void take_runtime(void) {
    dp_watch_fork_prepare();
    dp_device_fork_prepare();
    dp_callback_fork_prepare();
    dp_vmm_fork_prepare();
    dp_host_memory_fork_prepare();
    dp_device_memory_fork_prepare();
    dp_stream_fork_prepare();
    dp_capture_fork_prepare();
    dp_event_fork_prepare();
    dp_pool_fork_prepare();
    dp_check_fork_prepare();
    dp_gm_fork_prepare();
    dp_seat_fork_prepare();
    dp_handle_fork_prepare();
    dp_profile_fork_prepare();
    dp_known_kernel_fork_prepare();
}

static void leave_runtime_parent(void) {
    dp_known_kernel_fork_done();
    dp_profile_fork_parent();
    dp_handle_fork_done();
    dp_seat_fork_done();
    dp_gm_fork_done();
    dp_check_fork_parent();
    dp_pool_fork_parent();
    dp_event_fork_done();
    dp_capture_fork_done();
    dp_stream_fork_parent();
    dp_device_memory_fork_done();
    dp_host_memory_fork_done();
    dp_vmm_fork_done();
    dp_callback_fork_parent();
    dp_device_fork_parent();
    dp_watch_fork_parent();
}

static void leave_runtime_child(void) {
    dp_known_kernel_fork_done();
    dp_profile_fork_child();
    dp_handle_fork_done();
    dp_seat_fork_done();
    dp_gm_fork_child();
    dp_check_fork_child();
    dp_pool_fork_child();
    dp_event_fork_done();
    dp_capture_fork_done();
    dp_stream_fork_child();
    dp_device_memory_fork_done();
    dp_host_memory_fork_child();
    dp_vmm_fork_done();
    dp_callback_fork_child();
    dp_device_fork_child();
    dp_watch_fork_child();
}

static void prepare(void) {
    pthread_mutex_lock(&parts_lock);
    for (int floor = 0; floor < DP_FORK_FLOORS; floor++)
        for (dp_fork_part *part = parts[floor]; part; part = part->next) {
            if (part->lock)
                pthread_mutex_lock(part->lock);
            if (part->before)
                part->before();
        }
    holds_runtime = has_runtime;
    if (holds_runtime)
        take_runtime();
}

static void leave(bool is_child) {
    if (holds_runtime)
        is_child ? leave_runtime_child() : leave_runtime_parent();
    for (int floor = DP_FORK_FLOORS - 1; floor >= 0; floor--)
        for (dp_fork_part *part = parts[floor]; part; part = part->next) {
            if (part->after)
                part->after(is_child);
            if (part->lock)
                pthread_mutex_unlock(part->lock);
        }
    pthread_mutex_unlock(&parts_lock);
}

static void parent(void) {
    leave(false);
}

static void child(void) {
    leave(true);
}

/* Under parts_lock. */
static void register_once(void) {
    if (!is_registered)
        is_registered = pthread_atfork(prepare, parent, child) == 0;
}

void dp_fork_join(dp_fork_part *part) {
    if (atomic_load_explicit(&part->joined, memory_order_acquire))
        return;
    pthread_mutex_lock(&parts_lock);
    register_once();
    if (!atomic_load_explicit(&part->joined, memory_order_relaxed)) {
        part->next = parts[part->floor];
        parts[part->floor] = part;
        atomic_store_explicit(&part->joined, true, memory_order_release);
    }
    pthread_mutex_unlock(&parts_lock);
}

void dp_fork_lock(dp_fork_part *part) {
    dp_fork_join(part);
    pthread_mutex_lock(part->lock);
}

void dp_fork_install(void) {
    pthread_mutex_lock(&parts_lock);
    register_once();
    has_runtime = true;
    pthread_mutex_unlock(&parts_lock);
}
