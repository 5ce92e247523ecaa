#include "runtime/fork.h"

#include <pthread.h>

#include "device/check/check.h"
#include "device/gm.h"
#include "runtime/callback_state.h"
#include "runtime/device_state.h"
#include "runtime/event_state.h"
#include "runtime/handle.h"
#include "runtime/job.h"
#include "runtime/launch_state.h"
#include "runtime/memory_state.h"
#include "runtime/profile.h"
#include "runtime/stream_queue.h"
#include "runtime/watchdog.h"

/* Locks are taken in the order in which ordinary code nests them. */
static void prepare(void) {
    dp_watch_fork_prepare();
    dp_device_fork_prepare();
    dp_callback_fork_prepare();
    dp_vmm_fork_prepare();
    dp_host_memory_fork_prepare();
    dp_device_memory_fork_prepare();
    dp_stream_fork_prepare();
    dp_event_fork_prepare();
    dp_pool_fork_prepare();
    dp_check_fork_prepare();
    dp_gm_fork_prepare();
    dp_seat_fork_prepare();
    dp_handle_fork_prepare();
    dp_profile_fork_prepare();
    dp_known_kernel_fork_prepare();
}

static void parent(void) {
    dp_known_kernel_fork_done();
    dp_profile_fork_parent();
    dp_handle_fork_done();
    dp_seat_fork_done();
    dp_gm_fork_done();
    dp_check_fork_parent();
    dp_pool_fork_parent();
    dp_event_fork_done();
    dp_stream_fork_parent();
    dp_device_memory_fork_done();
    dp_host_memory_fork_done();
    dp_vmm_fork_done();
    dp_callback_fork_parent();
    dp_device_fork_parent();
    dp_watch_fork_parent();
}

static void child(void) {
    dp_known_kernel_fork_done();
    dp_profile_fork_child();
    dp_handle_fork_done();
    dp_seat_fork_done();
    dp_gm_fork_child();
    dp_check_fork_child();
    dp_pool_fork_child();
    dp_event_fork_done();
    dp_stream_fork_child();
    dp_device_memory_fork_done();
    dp_host_memory_fork_child();
    dp_vmm_fork_done();
    dp_callback_fork_child();
    dp_device_fork_child();
    dp_watch_fork_child();
}

void dp_fork_install(void) {
    pthread_atfork(prepare, parent, child);
}
