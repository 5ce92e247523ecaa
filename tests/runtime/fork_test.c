/* A forked child has working streams and no held locks; the parent goes on. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/core.h"
#include "runtime/callback.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/event.h"
#include "runtime/launch.h"
#include "runtime/runtime_test.h"
#include "runtime/stream.h"
#include "runtime/task.h"
#include "sanitizers.h"

static void add_core(const void *args) {
    atomic_fetch_add(*(_Atomic uint32_t *const *)args, dp_core_current()->core_index);
}

/* 0 if all works in this process. */
static int use_everything(void) {
    _Atomic uint32_t *sum;
    void *stream, *event, *ptr;
    dp_kernel_info info = {.name = "add"};
    if (dp_device_set(0) || dp_stream_create(0, &stream) || dp_event_create(0, &event) ||
        dp_device_memory_alloc(sizeof *sum, &ptr) || dp_fill(ptr, sizeof *sum, 0, sizeof *sum))
        return 1;
    sum = ptr;
    for (int i = 0; i < 20; i++) {
        if (dp_launch_submit(&info, 48, stream, add_core, &sum, sizeof sum) || dp_event_record(event, stream) ||
            dp_event_wait(event, NULL) || dp_stream_synchronise(NULL, 10000) || dp_event_synchronise(event, 10000))
            return 2;
    }
    if (*sum != 20 * 48 * 47 / 2)
        return 3;
    return dp_stream_destroy(stream, false) || dp_event_destroy(event) || dp_device_memory_free(ptr) ? 4 : 0;
}

static int child_result(pid_t child) {
    int status = -1;
    for (int i = 0; i < 15000; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        sleep_ms(1);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 2000;
}

static void a_child_before_first_use(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(use_everything());
    assert_int_equal(child_result(child), 0);
    assert_int_equal(use_everything(), 0);
}

static void children_of_an_idle_parent(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(use_everything(), 0);
        sleep_ms(10); /* the pool's threads put away what they ran */
        pid_t child = fork();
        if (child == 0)
            _exit(use_everything() || use_everything());
        assert_int_equal(child_result(child), 0);
        assert_int_equal(use_everything(), 0);
    }
}

static void a_child_that_exits_normally(void **state) {
    (void)state;
    fflush(NULL);
    sleep_ms(10);
    pid_t child = fork();
    if (child == 0) {
        int result = use_everything() || dp_device_reset(0, false);
        exit(result);
    }
    assert_int_equal(child_result(child), 0);
    assert_int_equal(use_everything(), 0);
}

static _Atomic bool stop;

static void *keep_busy(void *unused) {
    (void)unused;
    while (!atomic_load(&stop)) {
        if (use_everything())
            return (void *)1;
    }
    return NULL;
}

static void children_of_a_busy_parent(void **state) {
    (void)state;
    if (!FORKS_WHILE_BUSY)
        skip();
    pthread_t threads[3];
    gate g = {0};
    void *stuck, *event;
    bool recorded = true;
    assert_ok(dp_device_set(0));
    assert_ok(dp_stream_create(0, &stuck));
    assert_ok(dp_event_create(0, &event));
    assert_ok(dp_task_host_function(stuck, stand_in_gate, &g));
    assert_ok(dp_event_record(event, stuck));
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, keep_busy, NULL);
    for (int i = 0; i < 30; i++) {
        sleep_ms(2);
        pid_t child = fork();
        if (child == 0) {
            /* what was queued at the fork belongs to the parent */
            if (dp_stream_synchronise(stuck, 5000) || dp_event_synchronise(event, 5000) ||
                dp_event_query(event, &recorded) || recorded)
                _exit(20);
            _exit(use_everything());
        }
        assert_int_equal(child_result(child), 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    g.open = true;
    assert_ok(dp_stream_synchronise(stuck, 10000));
    assert_ok(dp_event_query(event, &recorded));
    assert_true(recorded);
    assert_ok(dp_event_destroy(event));
    assert_ok(dp_stream_destroy(stuck, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_before_first_use),
        cmocka_unit_test(children_of_an_idle_parent),
        cmocka_unit_test(a_child_that_exits_normally),
        cmocka_unit_test(children_of_a_busy_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
