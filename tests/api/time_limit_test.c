/* Kernels that run for ever, and streams that wait too long, under a time limit. */
#include "child.h"

#include <stdatomic.h>
#include <time.h>

#include "doppel/insn.h"
#include "doppel/launch.h"

static _Atomic int go_on, blocks_run;

static void no_kernel(const void *args) {
    (void)args;
    blocks_run++;
}

/* Polls, as a kernel does that waits for somebody who never comes. */
static void polling_kernel(const void *args) {
    (void)args;
    for (;;) {
        dp_insn insn = {.op = DP_OP_BARRIER, .loc = {"poll.asc", 17}};
        insn.u.sync.src_pipe = DP_PIPE_ALL;
        dp_issue(&insn);
    }
}

/* Computes on and executes no instruction. */
static void computing_kernel(const void *args) {
    (void)args;
    while (!go_on)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static const dp_kernel_info no_info = {.name = "nothing"}, polling = {.name = "polls"},
                            computing = {.name = "computes", .launch = {"main.asc", 9}};

static int launch(const dp_kernel_info *info, dp_kernel_entry entry, uint32_t blocks, aclrtStream stream) {
    return dp_launch_kernel(info, blocks, stream, entry, NULL, 0);
}

/* After a first kernel, which makes threads and cores: on a busy machine that takes its time. */
static void limit_ms(uint64_t ms, aclrtStream stream) {
    uint64_t actual = 0;
    CHECK_OK(launch(&no_info, no_kernel, 48, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    blocks_run = 0;
    CHECK_OK(aclrtSetOpExecuteTimeOutV2(ms * 1000, &actual));
    CHECK(actual == ms * 1000);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

TEST(a_kernel_is_stopped_at_an_instruction) {
    aclrtStream stream = NULL, other = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateStream(&other));
    limit_ms(400, stream);
    double begin = seconds();
    CHECK_OK(launch(&polling, polling_kernel, 40, stream));
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, aclrtSynchronizeStream(stream), "polls", "poll.asc:17", "400 ms");
    CHECK(seconds() - begin > 0.39);
    CHECK_OK(aclrtSetOpExecuteTimeOut(0));
    /* the stream carries the error, the others do not */
    CHECK_OK(launch(&no_info, no_kernel, 8, other));
    CHECK_OK(aclrtSynchronizeStream(other));
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, aclrtSynchronizeStream(stream), "polls");
    CHECK_OK(aclrtStreamAbort(stream));
    CHECK_OK(launch(&no_info, no_kernel, 8, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(blocks_run == 16);
}

TEST(a_kernel_that_cannot_be_stopped_loses_the_device) {
    aclrtStream stream = NULL, other = NULL;
    aclrtEvent event = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateStream(&other));
    CHECK_OK(aclrtCreateEvent(&event));
    limit_ms(400, stream);
    CHECK_OK(launch(&computing, computing_kernel, 3, stream));
    CHECK_OK(aclrtRecordEvent(event, stream));
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, aclrtSynchronizeStream(stream), "main.asc:9", "computes",
                "no instruction");
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, aclrtSynchronizeEvent(event), "computes");
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, aclrtSynchronizeDevice(), "computes");
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, launch(&no_info, no_kernel, 1, other), "computes");
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, aclrtStreamAbort(stream), "computes");
    /* it ends after all */
    go_on = 1;
    CHECK_OK(aclrtSetOpExecuteTimeOut(0));
    for (int i = 0; i < 1000 && launch(&no_info, no_kernel, 1, other) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    CHECK_OK(aclrtSynchronizeStream(other));
    CHECK_FAILS(ACL_ERROR_RT_AICORE_TIMEOUT, aclrtSynchronizeStream(stream), "computes");
    CHECK_OK(aclrtStreamAbort(stream));
    CHECK_OK(aclrtSynchronizeDevice());
}

/* Nothing hangs at the end either. */
TEST(the_program_ends_although_the_kernel_does_not) {
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    limit_ms(400, NULL);
    CHECK_OK(launch(&computing, computing_kernel, 1, NULL));
    CHECK(aclrtSynchronizeStream(NULL) == ACL_ERROR_RT_AICORE_TIMEOUT);
    CHECK(aclrtResetDevice(0) == ACL_ERROR_RT_AICORE_TIMEOUT);
    aclFinalize();
    exit(0);
}

static void sleep_long(void *unused) {
    (void)unused;
    nanosleep(&(struct timespec){.tv_sec = 4}, NULL);
}

TEST(a_wait_for_an_event_has_a_limit_of_its_own) {
    aclrtStream slow = NULL, stream = NULL;
    aclrtEvent event = NULL;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&slow));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateEvent(&event));
    CHECK_OK(aclrtSetOpWaitTimeout(1));
    double begin = seconds();
    CHECK_OK(aclrtLaunchHostFunc(slow, sleep_long, NULL));
    CHECK_OK(aclrtRecordEvent(event, slow));
    CHECK_OK(aclrtStreamWaitEvent(stream, event));
    CHECK_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStream(stream), "1 s", "aclrtSetOpWaitTimeout");
    CHECK(seconds() - begin > 0.9 && seconds() - begin < 3.9);
    CHECK_OK(aclrtSynchronizeStream(slow));
    CHECK_OK(aclrtStreamAbort(stream));
    CHECK_OK(aclrtStreamWaitEvent(stream, event));
    CHECK_OK(aclrtSynchronizeStream(stream));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_is_stopped_at_an_instruction),
        cmocka_unit_test(a_kernel_that_cannot_be_stopped_loses_the_device),
        cmocka_unit_test(the_program_ends_although_the_kernel_does_not),
        cmocka_unit_test(a_wait_for_an_event_has_a_limit_of_its_own),
    };
    return cmocka_run_group_tests_name("api_time_limit", tests, NULL, NULL);
}
