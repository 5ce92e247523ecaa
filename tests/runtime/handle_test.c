/* Handles that are stale, of the wrong kind or invented; devices, contexts and threads. Two devices (DOPPEL_DEVICES=2).
 */
#include <pthread.h>

#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/event.h"
#include "runtime/runtime_test.h"
#include "runtime/stream.h"
#include "runtime/task.h"

static int setup(void **state) {
    (void)state;
    return dp_device_set(0) == DP_OK ? 0 : -1;
}

static void wrong_handles_are_recognised(void **state) {
    (void)state;
    void *stream, *event, *context;
    assert_ok(dp_stream_create(0, &stream));
    assert_ok(dp_event_create(0, &event));
    assert_ok(dp_context_current(&context));
    char local[64] = {0};
    void *invented[] = {(void *)1, (void *)-1, local, (char *)stream + 8, (char *)stream + ((size_t)60 << 20),
                        malloc(64)};
    for (unsigned i = 0; i < sizeof invented / sizeof invented[0]; i++) {
        assert_refused(dp_stream_synchronise(invented[i], -1), DP_ERR_HANDLE, "never a handle; pass a stream");
        assert_refused(dp_event_synchronise(invented[i], -1), DP_ERR_HANDLE, "never a handle; pass an event");
        assert_refused(dp_context_set_current(invented[i]), DP_ERR_HANDLE, "never a handle; pass a context");
    }
    free(invented[5]);
    assert_refused(dp_event_record(NULL, stream), DP_ERR_HANDLE, "event is NULL");
    assert_refused(dp_context_set_current(NULL), DP_ERR_HANDLE, "context is NULL");
    assert_refused(dp_event_record(stream, stream), DP_ERR_HANDLE, "event is a stream");
    assert_refused(dp_event_record(event, event), DP_ERR_HANDLE, "stream is an event");
    assert_refused(dp_stream_destroy(context, false), DP_ERR_HANDLE, "stream is a context");
    assert_ok(dp_stream_destroy(stream, false));
    assert_ok(dp_event_destroy(event));
    assert_refused(dp_stream_destroy(stream, false), DP_ERR_HANDLE, "stream is a stream");
    assert_refused(dp_stream_synchronise(stream, -1), DP_ERR_HANDLE, "that was destroyed before");
    assert_refused(dp_event_destroy(event), DP_ERR_HANDLE, "that was destroyed before");
    assert_refused(dp_event_record(event, NULL), DP_ERR_HANDLE, "that was destroyed before");
    for (int i = 0; i < 500; i++) { /* not given out again soon */
        void *other;
        assert_ok(dp_stream_create(0, &other));
        assert_ptr_not_equal(other, stream);
        assert_ok(dp_stream_destroy(other, false));
    }
    assert_refused(dp_stream_synchronise(stream, -1), DP_ERR_HANDLE, "that was destroyed before");
}

/* Threads use handles while another destroys them: refused or done, never worse. */
static void *_Atomic shared;
static _Atomic bool stop;

static void ignore(void *argument) {
    (void)argument;
}

static void *use_shared(void *unused) {
    (void)unused;
    while (!atomic_load(&stop)) {
        void *stream = atomic_load(&shared);
        bool complete;
        dp_stream_query(stream, &complete);
        dp_task_host_function(stream, ignore, NULL);
        dp_stream_synchronise(stream, 1000);
    }
    return NULL;
}

static void destroying_races_with_use(void **state) {
    (void)state;
    pthread_t threads[3];
    void *stream;
    assert_ok(dp_stream_create(0, &stream));
    atomic_store(&shared, stream);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, use_shared, NULL);
    for (int i = 0; i < 1500; i++) {
        void *next;
        assert_ok(dp_stream_create(0, &next));
        void *old = atomic_exchange(&shared, next);
        assert_ok(dp_stream_destroy(old, i % 2));
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_ok(dp_stream_destroy(atomic_load(&shared), false));
}

static void devices_are_checked(void **state) {
    (void)state;
    int32_t device = -1, percent = -1, physical = -1;
    bool active;
    assert_int_equal(dp_device_count(), 2);
    assert_refused(dp_device_set(2), DP_ERR_NOT_FOUND, "deviceId is 2, but must be 0 to 1 (2 devices");
    assert_refused(dp_device_set(-1), DP_ERR_NOT_FOUND, "deviceId is -1");
    assert_refused(dp_device_reset(9, false), DP_ERR_NOT_FOUND, "deviceId is 9");
    assert_refused(dp_device_get(NULL), DP_ERR_ARGUMENT, "deviceId is NULL");
    assert_ok(dp_device_set(1));
    assert_ok(dp_device_get(&device));
    assert_int_equal(device, 1);
    assert_ok(dp_device_is_active(1, &active));
    assert_true(active);
    assert_ok(dp_device_utilisation(1, &percent));
    assert_in_range(percent, 0, 100);
    assert_ok(dp_device_physical_id(1, &physical));
    assert_int_equal(physical, 1);
    assert_ok(dp_device_set(1)); /* one reset undoes both */
    assert_ok(dp_device_reset(1, false));
    assert_ok(dp_device_is_active(1, &active));
    assert_false(active);
    assert_refused(dp_device_get(&device), DP_ERR_STATE, "call aclrtSetDevice");
    assert_ok(dp_device_reset(1, false)); /* again: nothing to do */
    assert_ok(dp_device_set(0));
}

static void contexts_belong_to_threads(void **state) {
    (void)state;
    void *primary, *mine, *current, *stream;
    int32_t device;
    assert_ok(dp_context_current(&primary));
    assert_ok(dp_context_create(1, &mine));
    assert_ok(dp_context_current(&current));
    assert_ptr_equal(current, mine);
    assert_ok(dp_device_get(&device));
    assert_int_equal(device, 1);
    assert_ok(dp_stream_create(0, &stream));
    assert_ok(dp_context_device(mine, &device));
    assert_ok(dp_context_set_current(primary));
    assert_ok(dp_task_host_function(stream, ignore, NULL)); /* a stream of another context */
    assert_ok(dp_stream_synchronise(stream, -1));
    assert_refused(dp_context_destroy(primary), DP_ERR_STATE, "aclrtResetDevice ends it");
    assert_ok(dp_context_destroy(mine));
    assert_refused(dp_context_set_current(mine), DP_ERR_HANDLE, "destroyed before");
    assert_ok(dp_stream_synchronise(stream, -1)); /* lives until the user ends it */
    assert_ok(dp_stream_destroy(stream, false));
    assert_refused(dp_context_create(5, &mine), DP_ERR_NOT_FOUND, "deviceId is 5");
    assert_refused(dp_context_create(0, NULL), DP_ERR_ARGUMENT, "context is NULL");
    assert_ok(dp_context_create(0, &mine));
    assert_ok(dp_context_destroy(mine));
    assert_refused(dp_device_get(&device), DP_ERR_STATE, "aclrtSetDevice");
    assert_ok(dp_device_set(0));
}

static void default_streams_cannot_be_destroyed(void **state) {
    (void)state;
    void *stream = NULL;
    bool complete;
    assert_ok(dp_stream_query(NULL, &complete));
    assert_refused(dp_stream_destroy(NULL, false), DP_ERR_HANDLE, "stream is NULL");
    (void)stream;
}

typedef struct thread_result {
    dp_status before, set, after, reset;
    bool keep;
} thread_result;

static void *other_thread(void *argument) {
    thread_result *r = argument;
    int32_t device;
    void *ptr;
    r->before = dp_device_memory_alloc(10, &ptr);
    r->set = dp_device_set(0);
    r->after = dp_device_get(&device);
    r->reset = r->keep ? DP_OK : dp_device_reset(0, false);
    return NULL;
}

static void threads_set_their_own_device(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        thread_result r = {.keep = keep};
        pthread_t thread;
        bool active;
        int32_t device;
        pthread_create(&thread, NULL, other_thread, &r);
        pthread_join(thread, NULL);
        assert_int_equal(r.before, DP_ERR_STATE);
        assert_int_equal(r.set, DP_OK);
        assert_int_equal(r.after, DP_OK);
        assert_int_equal(r.reset, DP_OK);
        assert_ok(dp_device_get(&device)); /* the other thread's reset did not end what this one uses */
        assert_ok(dp_device_is_active(0, &active));
        assert_true(active);
    }
    bool active;
    assert_ok(dp_device_reset(0, false)); /* the last user; a thread that ended without reset does not count */
    assert_ok(dp_device_is_active(0, &active));
    assert_false(active);
    assert_ok(dp_device_set(0));
}

int main(void) {
    setenv("DOPPEL_DEVICES", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_handles_are_recognised),
        cmocka_unit_test(destroying_races_with_use),
        cmocka_unit_test(devices_are_checked),
        cmocka_unit_test(contexts_belong_to_threads),
        cmocka_unit_test(default_streams_cannot_be_destroyed),
        cmocka_unit_test(threads_set_their_own_device),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
