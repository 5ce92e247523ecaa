/* Callbacks on a thread of the user's own. */
#include <pthread.h>

#include "runtime/callback.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/report.h"
#include "runtime/runtime_test.h"
#include "runtime/stream.h"
#include "runtime/task.h"

static int setup(void **state) {
    (void)state;
    return dp_device_set(0) == DP_OK ? 0 : -1;
}

static _Atomic bool quit;
static _Atomic uint32_t processed, timeouts, states;

static void *reporter(void *unused) {
    (void)unused;
    while (!atomic_load(&quit)) {
        dp_status status = dp_callback_process(50);
        if (status == DP_OK)
            atomic_fetch_add(&processed, 1);
        else if (status == DP_ERR_TIMEOUT)
            atomic_fetch_add(&timeouts, 1);
        else
            atomic_fetch_add(&states, 1);
    }
    return NULL;
}

static pthread_t thread;
static uint64_t id;

static void start_reporter(void) {
    quit = false;
    processed = timeouts = states = 0;
    pthread_create(&thread, NULL, reporter, NULL);
    id = (uint64_t)(uintptr_t)thread;
}

static void stop_reporter(void) {
    quit = true;
    pthread_join(thread, NULL);
}

static pthread_t ran_on;
static uint32_t ran; /* plain: blocking callbacks are in stream order */

static void note(void *argument) {
    ran_on = pthread_self();
    ran += *(uint32_t *)argument;
}

static dp_status expect_ran(void *payload) {
    return ran == *(uint32_t *)payload
               ? DP_OK
               : dp_fail(DP_ERR_INTERNAL, "%u callbacks ran, not %u", ran, *(uint32_t *)payload);
}

static void callbacks_run_on_their_thread(void **state) {
    (void)state;
    void *stream, *other;
    uint32_t one = 1;
    assert_ok(dp_stream_create(0, &stream));
    assert_ok(dp_stream_create(0, &other));
    assert_refused(dp_callback_launch(stream, note, &one, true), DP_ERR_STATE, "aclrtSubscribeReport first");
    start_reporter();
    assert_ok(dp_callback_subscribe(id, stream));
    assert_ok(dp_callback_subscribe(id, other));
    assert_refused(dp_callback_subscribe(id, stream), DP_ERR_STATE, "already reports to thread");
    assert_refused(dp_callback_unsubscribe(id + 1, stream), DP_ERR_STATE, "is not subscribed to stream");
    assert_refused(dp_callback_launch(stream, NULL, NULL, true), DP_ERR_ARGUMENT, "fn is NULL");
    for (uint32_t i = 1; i <= 200; i++) {
        assert_ok(dp_callback_launch(stream, note, &one, true));
        assert_ok(dp_task_submit(stream, "expect", expect_ran, NULL, &i, sizeof i));
    }
    assert_ok(dp_stream_synchronise(stream, 20000));
    assert_true(pthread_equal(ran_on, thread));
    assert_ok(dp_callback_launch(other, note, &one, false));
    assert_ok(dp_stream_synchronise(other, 20000));
    for (int i = 0; i < 1000 && processed < 201; i++)
        sleep_ms(1);
    assert_int_equal(processed, 201);
    sleep_ms(120);
    assert_true(timeouts > 0);
    assert_ok(dp_callback_unsubscribe(id, stream));
    assert_ok(dp_stream_destroy(other, false)); /* ends its subscription */
    stop_reporter();
    assert_ok(dp_stream_destroy(stream, false));
}

static void processing_needs_a_subscription(void **state) {
    (void)state;
    uint64_t begin = dp_clock_ns();
    assert_refused(dp_callback_process(0), DP_ERR_BUSY, "is not subscribed to any stream");
    assert_refused(dp_callback_process(-1), DP_ERR_BUSY, "is not subscribed to any stream");
    assert_true(dp_clock_ns() - begin < 5000000000u);
    assert_ok(dp_callback_subscribe((uint64_t)(uintptr_t)pthread_self(), NULL));
    assert_refused(dp_callback_process(10), DP_ERR_TIMEOUT, "timeout = 10 ms");
    assert_refused(dp_callback_process(0), DP_ERR_TIMEOUT, "timeout = 0 ms");
    assert_ok(dp_callback_unsubscribe((uint64_t)(uintptr_t)pthread_self(), NULL));
}

static void unsubscribing_frees_a_waiting_stream(void **state) {
    (void)state;
    void *stream;
    uint32_t one = 1;
    uint64_t self = (uint64_t)(uintptr_t)pthread_self(); /* never processes */
    assert_ok(dp_stream_create(0, &stream));
    assert_ok(dp_callback_subscribe(self, stream));
    assert_ok(dp_callback_launch(stream, note, &one, true));
    assert_refused(dp_stream_synchronise(stream, 50), DP_ERR_TIMEOUT, "timeout");
    assert_ok(dp_callback_unsubscribe(self, stream));
    assert_refused(dp_stream_synchronise(stream, 10000), DP_ERR_STATE, "was not run");
    assert_ok(dp_stream_abort(stream));
    assert_ok(dp_callback_subscribe(self, stream));
    assert_ok(dp_callback_launch(stream, note, &one, true));
    assert_ok(dp_callback_launch(stream, note, &one, true));
    assert_refused(dp_stream_synchronise(stream, 50), DP_ERR_TIMEOUT, "timeout");
    assert_ok(dp_stream_abort(stream)); /* takes the callback back */
    assert_ok(dp_stream_synchronise(stream, 10000));
    assert_refused(dp_callback_process(20), DP_ERR_TIMEOUT, "no callback came");
    assert_ok(dp_callback_launch(stream, note, &one, true));
    assert_ok(dp_stream_destroy(stream, true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_run_on_their_thread),
        cmocka_unit_test(processing_needs_a_subscription),
        cmocka_unit_test(unsubscribing_frees_a_waiting_stream),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
