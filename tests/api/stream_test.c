/* Streams, events, callbacks and host functions. */
#include "child.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void hold(void *flag) {
    while (!atomic_load((atomic_int *)flag))
        sleep_ms(1);
}

static void add_one(void *count) {
    atomic_fetch_add((atomic_int *)count, 1);
}

TEST(null_is_the_default_stream) {
    void *memory = NULL;
    char host[4] = "";
    int32_t id = -1;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemsetAsync(memory, 4, 'x', 3, NULL));
    CHECK_OK(aclrtMemcpyAsync(host, 4, memory, 3, ACL_MEMCPY_DEVICE_TO_HOST, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    CHECK(strcmp(host, "xxx") == 0);
    CHECK_OK(aclrtStreamGetId(NULL, &id));
    CHECK(id == 0);
    CHECK_OK(aclrtStreamQuery(NULL, &status));
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDestroyStream(NULL), "stream", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDestroyStreamForce(NULL), "stream", "NULL");
    CHECK_OK(aclrtFree(memory));
}

TEST(query_and_timeout) {
    aclrtStream stream = NULL;
    atomic_int go = 0;
    aclrtStreamStatus status;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtLaunchHostFunc(stream, hold, &go));
    CHECK_OK(aclrtStreamQuery(stream, &status));
    CHECK(status == ACL_STREAM_STATUS_NOT_READY);
    CHECK_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 20), "timeout", "20");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeDeviceWithTimeout(20), "20");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSynchronizeStreamWithTimeout(stream, -2), "timeout", "-2");
    atomic_store(&go, 1);
    CHECK_OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
    CHECK_OK(aclrtStreamQuery(stream, &status));
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    CHECK_OK(aclrtSynchronizeDevice());
    CHECK_OK(aclrtDestroyStream(stream));
}

TEST(wrong_streams) {
    aclrtStream stream = NULL;
    aclrtEvent event = NULL;
    void *memory = NULL;
    aclrtStreamStatus status;
    int32_t id;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateEvent(&event));
    CHECK_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtDestroyStream(stream));
    void *wrong[] = {stream, event, &status, memory, (void *)8, (void *)-1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(wrong[i]), "aclrtSynchronizeStream", "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStream(wrong[i]), "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamQuery(wrong[i], &status), "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamGetId(wrong[i], &id), "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtRecordEvent(event, wrong[i]), "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamWaitEvent(wrong[i], event), "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtMemsetAsync(memory, 64, 0, 64, wrong[i]), "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtLaunchHostFunc(wrong[i], add_one, &id), "stream");
        CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamAbort(wrong[i]), "stream");
    }
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStream(NULL), "stream", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStreamWithConfig(&stream, 8, 0), "priority", "8");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStreamWithConfig(&stream, 0, 0x80), "flag", "128");
}

TEST(configured_streams) {
    aclrtStream stream = NULL;
    uint32_t priority = 3, flag = ACL_STREAM_FAST_SYNC;
    size_t wide_flag = ACL_STREAM_FAST_LAUNCH;
    aclrtStreamAttrValue value = {.failureMode = ACL_STOP_ON_FAILURE};
    aclrtStreamConfigHandle *config = aclrtCreateStreamConfigHandle();
    CHECK(config);
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority));
    CHECK_OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof flag));
    CHECK_OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &wide_flag, sizeof wide_flag));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, 3),
                "valueSize", "3");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetStreamConfigOpt(config, (aclrtStreamConfigAttr)4, &priority, 4),
                "attr", "4");
    CHECK_OK(aclrtCreateStreamV2(&stream, config));
    uint32_t got = 99;
    int32_t least = -1, greatest = -1;
    CHECK_OK(aclrtStreamGetPriority(stream, &got));
    CHECK(got == 3);
    CHECK_OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 7 && greatest == 0);
    CHECK_OK(aclrtDestroyStreamConfigHandle(config));
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStreamConfigHandle(config), "handle");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtCreateStreamV2(&stream, config), "handle");
    CHECK_OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value));
    value.failureMode = 2;
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value), "2");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetStreamFailureMode(stream, 2), "mode", "2");
    CHECK_OK(aclrtSetStreamOverflowSwitch(stream, 0));
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtSetStreamOverflowSwitch(stream, 1), "flag");
    CHECK_OK(aclrtGetStreamOverflowSwitch(stream, &flag));
    CHECK(flag == 0);
    CHECK_OK(aclrtDestroyStreamForce(stream));
}

TEST(events_order_streams) {
    aclrtStream one = NULL, two = NULL;
    aclrtEvent event = NULL;
    atomic_int go = 0, count = 0;
    aclrtEventRecordedStatus recorded;
    aclrtEventStatus status;
    aclrtEventWaitStatus waits;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&one));
    CHECK_OK(aclrtCreateStream(&two));
    CHECK_OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    CHECK_OK(aclrtLaunchHostFunc(one, hold, &go));
    CHECK_OK(aclrtRecordEvent(event, one));
    CHECK_OK(aclrtStreamWaitEvent(two, event));
    CHECK_OK(aclrtLaunchHostFunc(two, add_one, &count));
    CHECK_OK(aclrtQueryEventStatus(event, &recorded));
    CHECK(recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK_OK(aclrtQueryEvent(event, &status));
    CHECK(status == ACL_EVENT_STATUS_NOT_READY);
    CHECK_OK(aclrtQueryEventWaitStatus(event, &waits));
    CHECK(waits == ACL_EVENT_WAIT_STATUS_NOT_READY);
    CHECK_FAILS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(event, 20), "20");
    CHECK(atomic_load(&count) == 0);
    atomic_store(&go, 1);
    CHECK_OK(aclrtSynchronizeEvent(event));
    CHECK_OK(aclrtSynchronizeStream(two));
    CHECK(atomic_load(&count) == 1);
    CHECK_OK(aclrtQueryEventStatus(event, &recorded));
    CHECK(recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK_OK(aclrtQueryEvent(event, &status));
    CHECK(status == ACL_EVENT_STATUS_COMPLETE);
    CHECK_OK(aclrtQueryEventWaitStatus(event, &waits));
    CHECK(waits == ACL_EVENT_WAIT_STATUS_COMPLETE);
    CHECK_OK(aclrtResetEvent(event, two));
    CHECK_OK(aclrtSynchronizeStream(two));
    CHECK_OK(aclrtQueryEventStatus(event, &recorded));
    CHECK(recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyEvent(event), "event");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtRecordEvent(event, one), "event");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamWaitEvent(one, one), "event");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRecordEvent(NULL, one), "event", "NULL");
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC), "flag");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateEventExWithFlag(&event, 0x1000), "flag", "4096");
}

TEST(elapsed_time) {
    aclrtEvent start = NULL, end = NULL;
    float ms = -1;
    uint64_t first = 0, second = 0;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateEvent(&start));
    CHECK_OK(aclrtCreateEvent(&end));
    CHECK_FAILS(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventElapsedTime(&ms, start, end), "aclrtEventElapsedTime");
    CHECK_OK(aclrtRecordEvent(start, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    sleep_ms(20);
    CHECK_OK(aclrtRecordEvent(end, NULL));
    CHECK_OK(aclrtSynchronizeEvent(end));
    CHECK_OK(aclrtEventElapsedTime(&ms, start, end));
    CHECK(ms >= 20 && ms < 10000);
    CHECK_OK(aclrtEventGetTimestamp(start, &first));
    CHECK_OK(aclrtEventGetTimestamp(end, &second));
    CHECK(second - first >= 20000 && second - first < 10000000);
    CHECK_FAILS(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, aclrtEventElapsedTime(&ms, end, start), "endEvent");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtEventElapsedTime(NULL, start, end), "ms", "NULL");
}

static atomic_int stop_reports, reports, processed_by_reporter;
static pthread_t reporter;

static void *report_loop(void *unused) {
    (void)unused;
    while (!atomic_load(&stop_reports))
        aclrtProcessReport(50);
    return NULL;
}

static void count_report(void *user_data) {
    CHECK(user_data == &reports);
    atomic_fetch_add(&reports, 1);
    atomic_fetch_add(&processed_by_reporter, pthread_equal(pthread_self(), reporter) ? 1 : 0);
}

TEST(callbacks_run_on_the_subscribed_thread) {
    aclrtStream stream = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_FAILS(ACL_ERROR_STREAM_NOT_SUBSCRIBE, aclrtLaunchCallback(count_report, &reports, ACL_CALLBACK_BLOCK, stream),
                "aclrtLaunchCallback");
    CHECK_FAILS(ACL_ERROR_THREAD_NOT_SUBSCRIBE, aclrtProcessReport(1), "aclrtProcessReport");
    CHECK(pthread_create(&reporter, NULL, report_loop, NULL) == 0);
    CHECK_OK(aclrtSubscribeReport((uint64_t)reporter, stream));
    CHECK_FAILS(ACL_ERROR_REPEAT_SUBSCRIBE, aclrtSubscribeReport((uint64_t)pthread_self(), stream),
                "aclrtSubscribeReport");
    for (int i = 0; i < 20; i++)
        CHECK_OK(
            aclrtLaunchCallback(count_report, &reports, i % 2 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream));
    CHECK_OK(aclrtLaunchCallback(count_report, &reports, ACL_CALLBACK_BLOCK, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(atomic_load(&reports) == 21 && atomic_load(&processed_by_reporter) == 21);
    CHECK_OK(aclrtUnSubscribeReport((uint64_t)reporter, stream));
    CHECK_FAILS(ACL_ERROR_STREAM_NOT_SUBSCRIBE, aclrtUnSubscribeReport((uint64_t)reporter, stream),
                "aclrtUnSubscribeReport");
    atomic_store(&stop_reports, 1);
    CHECK(pthread_join(reporter, NULL) == 0);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSubscribeReport(0, stream), "threadId", "0");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, stream), "fn", "NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtLaunchCallback(count_report, NULL, (aclrtCallbackBlockType)3, stream),
                "blockType", "3");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtProcessReport(-5), "timeout", "-5");
    CHECK_OK(aclrtDestroyStream(stream));
}

TEST(process_report_times_out) {
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtSubscribeReport((uint64_t)pthread_self(), NULL));
    CHECK_FAILS(ACL_ERROR_WAIT_CALLBACK_TIMEOUT, aclrtProcessReport(10), "aclrtProcessReport");
    CHECK_OK(aclrtLaunchCallback(count_report, &reports, ACL_CALLBACK_NO_BLOCK, NULL));
    CHECK_OK(aclrtProcessReport(2000));
    CHECK(atomic_load(&reports) == 1);
    CHECK_OK(aclrtUnSubscribeReport((uint64_t)pthread_self(), NULL));
}

TEST(host_functions_keep_stream_order) {
    aclrtStream stream = NULL;
    atomic_int count = 0;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 100; i++)
        CHECK_OK(aclrtLaunchHostFunc(stream, add_one, &count));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(atomic_load(&count) == 100);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclrtLaunchHostFunc(stream, NULL, &count), "func", "NULL");
    CHECK_OK(aclrtDestroyStream(stream));
}

TEST(abort_drops_queued_work) {
    aclrtStream stream = NULL;
    atomic_int go = 0, count = 0;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtLaunchHostFunc(stream, hold, &go));
    sleep_ms(20); /* so that it has begun */
    for (int i = 0; i < 10; i++)
        CHECK_OK(aclrtLaunchHostFunc(stream, add_one, &count));
    CHECK_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtDeviceTaskAbort(0, 20), "aclrtDeviceTaskAbort");
    atomic_store(&go, 1);
    CHECK_OK(aclrtStreamAbort(stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(atomic_load(&count) == 0);
    CHECK_OK(aclrtDestroyStream(stream));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_the_default_stream),
        cmocka_unit_test(query_and_timeout),
        cmocka_unit_test(wrong_streams),
        cmocka_unit_test(configured_streams),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(elapsed_time),
        cmocka_unit_test(callbacks_run_on_the_subscribed_thread),
        cmocka_unit_test(process_report_times_out),
        cmocka_unit_test(host_functions_keep_stream_order),
        cmocka_unit_test(abort_drops_queued_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
