/*
 * Many threads do everything at once, and things that pull the ground from under each other: streams made, used and
 * destroyed, kernels launched, memory freed with copies queued, devices reset, processes forked, aclFinalize. Calls may
 * fail with a code and a sentence; nothing may crash, hang or corrupt what it does not own.
 */
#include "child.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "doppel/launch.h"
#include "sanitizers.h"

#if SANITIZED
enum { THREADS = 12, RUN_MS = 1500, STREAMS = 500, EVENTS = 2000 };
#else
enum { THREADS = 48, RUN_MS = 1500, STREAMS = 10000, EVENTS = 100000 };
#endif
enum { BYTES = 4096, RESET_EVERY = 40 };

static _Atomic bool stop;
static _Atomic unsigned long done, refused;

static unsigned next_random(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* A code that is not success must come with a sentence. */
static void count(aclError code) {
    if (code == ACL_SUCCESS) {
        atomic_fetch_add(&done, 1);
        return;
    }
    atomic_fetch_add(&refused, 1);
    const char *sentence = aclGetRecentErrMsg();
    CHECK(sentence && sentence[0]);
}

static void kernel(const void *args) {
    (void)args;
}
static void launch(aclrtStream stream, uint32_t blocks) {
    static const dp_kernel_info info = {.name = "empty"};
    int args = 0;
    count(dp_launch_kernel(&info, blocks, stream, kernel, &args, sizeof args));
}
static void launch_more(void *stream) {
    launch(stream, 2);
}
static void destroy_own(void *stream) {
    CHECK(aclrtDestroyStream(stream) != ACL_SUCCESS); /* by one of its own tasks */
}

static void round_of_calls(unsigned *state, unsigned round, int32_t device) {
    static _Thread_local char host[BYTES];
    aclrtStream stream = NULL;
    aclrtEvent event = NULL;
    void *memory = NULL;
    count(aclrtSetDevice(device));
    count(aclrtCreateStream(&stream));
    count(aclrtCreateEvent(&event));
    count(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < 4; i++) {
        switch (next_random(state) % 7) {
        case 0:
            launch(stream, 1 + next_random(state) % 5);
            break;
        case 1:
            count(aclrtMemcpyAsync(memory, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
            break;
        case 2:
            count(aclrtLaunchHostFunc(stream, launch_more, stream));
            break;
        case 3:
            count(aclrtRecordEvent(event, stream));
            count(aclrtStreamWaitEvent(NULL, event));
            break;
        case 4:
            count(aclrtSynchronizeStream(stream));
            break;
        case 5:
            count(aclrtLaunchHostFunc(stream, destroy_own, stream));
            break;
        default:
            count(aclrtMemsetAsync(memory, BYTES, 1, BYTES, stream));
        }
    }
    if (round % 2)
        count(aclrtFree(memory)); /* with copies queued */
    if (round % 3)
        count(aclrtDestroyStream(stream));
    if (round % 3 == 0)
        count(aclrtSynchronizeDevice());
    count(aclrtDestroyEvent(event));
    if (round % 2 == 0)
        count(aclrtFree(memory));
    if (round % 3 == 0)
        count(aclrtDestroyStream(stream));
    if (round % RESET_EVERY == 0)
        count(aclrtResetDevice(device));
}

static void *work(void *number) {
    unsigned state = (unsigned)(uintptr_t)number, round = state;
    while (!atomic_load(&stop))
        round_of_calls(&state, round++, (int32_t)(state % 3));
    return NULL;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* What a child of a process in full work still can do: everything. */
static void fork_in_between(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        unsigned state = 7;
        alarm(30);
        round_of_calls(&state, 1, 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void chaos(void) {
    CHECK_OK(aclInit(NULL));
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < 5; i++) {
        pause_ms(RUN_MS / 5);
        if (FORKS_WHILE_BUSY)
            fork_in_between();
        if (i == 3)
            CHECK_OK(aclFinalize()); /* the others go on */
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&done) > 1000);
}

static void test_chaos(void **state) {
    (void)state;
    run_in_child(chaos);
}

/* A program that ends with live events has leaked them; that is not what is asked here. */
static bool leaves_at_work;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return leaves_at_work;
}

/* exit() while streams have work and threads go on */
static void leave_at_work(void) {
    CHECK_OK(aclInit(NULL));
    for (uintptr_t i = 0; i < 8; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, (void *)(i + 1)) == 0);
        pthread_detach(thread);
    }
    pause_ms(50);
    leaves_at_work = true;
    exit(0);
}
static void test_exit_at_work(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++)
        run_in_child(leave_at_work);
}

static void many_objects(void) {
    static aclrtStream streams[STREAMS];
    static aclrtEvent events[EVENTS];
    static void *bytes[EVENTS];
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(aclrtCreateStream(&streams[i]));
    for (int i = 0; i < STREAMS; i++)
        launch(streams[i], 1);
    for (int i = 0; i < EVENTS; i++) {
        CHECK_OK(aclrtCreateEvent(&events[i]));
        CHECK_OK(aclrtRecordEvent(events[i], streams[i % STREAMS]));
    }
    CHECK_OK(aclrtSynchronizeDevice());
    for (int i = 0; i < EVENTS; i++) {
        CHECK_OK(aclrtDestroyEvent(events[i]));
        CHECK_OK(aclrtMalloc(&bytes[i], 1, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(aclrtDestroyStream(streams[i]));
    for (int i = 0; i < EVENTS; i++)
        CHECK_OK(aclrtFree(bytes[i]));
    void *huge = NULL;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 31, SIZE_MAX / 2, (size_t)1 << 60, (size_t)1 << 45};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK(aclrtMalloc(&huge, sizes[i], ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS && !huge);
        CHECK(aclrtMallocHost(&huge, sizes[i]) != ACL_SUCCESS && !huge);
    }
    CHECK_OK(aclrtResetDevice(0));
}
static void test_many_objects(void **state) {
    (void)state;
    run_in_child(many_objects);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chaos),
        cmocka_unit_test(test_exit_at_work),
        cmocka_unit_test(test_many_objects),
    };
    return cmocka_run_group_tests_name("api_chaos", tests, NULL, NULL);
}
