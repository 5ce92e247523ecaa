/* Every allocation of a run fails once: the calls say so, nothing crashes, hangs or leaks. */
#include <pthread.h>

#include "base/memory.h"
#include "device/core.h"
#include "runtime/callback.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/event.h"
#include "runtime/launch.h"
#include "runtime/runtime_test.h"
#include "runtime/stream.h"
#include "runtime/task.h"

static void nothing(void *argument) {
    (void)argument;
}
static dp_status do_nothing(void *payload) {
    return (void)payload, DP_OK;
}
static void kernel(const void *args) {
    (void)args;
}

static dp_status use(uint64_t thread_id) {
    void *context = NULL, *stream = NULL, *event = NULL, *ptr = NULL, *host = NULL, *range = NULL, *physical = NULL;
    char large[700] = {0};
    dp_kernel_info info = {.name = "empty", .core_mix = DP_MIX_AIC_1_2};
    dp_status status = dp_context_create(0, &context);
#define STEP(call)                                                                                                     \
    if (status == DP_OK)                                                                                               \
    status = (call)
    STEP(dp_stream_create(0, &stream));
    STEP(dp_event_create(0, &event));
    STEP(dp_device_memory_alloc(3 << 20, &ptr));
    STEP(dp_host_memory_alloc(100, &host));
    STEP(dp_fill_async(ptr, 100, 0, 100, NULL));
    STEP(dp_event_record(event, stream));
    STEP(dp_task_submit(stream, "large", do_nothing, NULL, large, sizeof large));
    STEP(dp_task_host_function(stream, nothing, NULL));
    STEP(dp_event_record(event, stream));
    STEP(dp_event_wait(event, NULL));
    STEP(dp_event_reset(event, NULL));
    STEP(dp_callback_subscribe(thread_id, stream));
    STEP(dp_callback_launch(stream, nothing, NULL, false));
    STEP(dp_launch_submit(&info, 5, stream, kernel, large, sizeof large));
    STEP(dp_vmm_reserve(DP_VMM_GRANULARITY_BYTES, 0, NULL, &range));
    STEP(dp_vmm_create(0, DP_VMM_GRANULARITY_BYTES, &physical));
    STEP(dp_vmm_map(range, DP_VMM_GRANULARITY_BYTES, 0, physical));
    STEP(dp_stream_synchronise(stream, -1));
    STEP(dp_stream_synchronise(NULL, -1));
#undef STEP
    if (range) {
        dp_vmm_unmap(range);
        dp_vmm_release(range);
    }
    if (physical)
        dp_vmm_destroy(physical);
    if (event)
        dp_event_destroy(event);
    if (stream)
        dp_stream_destroy(stream, false);
    if (ptr)
        dp_device_memory_free(ptr);
    if (host)
        dp_host_memory_free(host);
    if (context)
        dp_context_destroy(context);
    return status;
}

static void every_allocation_fails_once(void **state) {
    (void)state;
    uint64_t self = (uint64_t)(uintptr_t)pthread_self();
    dp_device_count();
    assert_ok(use(self));
    assert_ok(use(self));
    sleep_ms(20);
    size_t before = dp_mem_stats_of(DP_MEM_RUNTIME).live_blocks, used;
    int refused = 0, run = 0;
    for (long n = 1; n < 200; n++) {
        dp_fail_clear();
        dp_mem_fail_after(n);
        dp_status status = use(self);
        bool reached = dp_mem_fail_after_left() == 0;
        dp_mem_fail_after(0);
        run++;
        if (status != DP_OK) {
            refused++;
            if (status != DP_ERR_OUT_OF_MEMORY && status != DP_ERR_KERNEL)
                fail_msg("allocation %ld: %s: %s", n, dp_status_name(status), dp_fail_message());
        }
        if (!reached)
            break;
    }
    assert_true(refused > 10);
    assert_true(run > refused);
    for (int i = 0; i < 2000 && dp_mem_stats_of(DP_MEM_RUNTIME).live_blocks != before; i++)
        sleep_ms(1);
    assert_int_equal(dp_mem_stats_of(DP_MEM_RUNTIME).live_blocks, before);
    assert_ok(dp_device_memory_usage(0, &used, NULL));
    assert_int_equal(used, 0);
    assert_ok(use(self));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
