/* Kernel launches through the public door: good ones, wrong arguments, and kernels that fail. */
#include "child.h"

#include <pthread.h>

#include "doppel/insn.h"
#include "doppel/launch.h"

typedef struct fill_args {
    uint32_t *words;
    uint32_t value;
} fill_args;

/* A kernel that is done with scalar code only: every launch writes one word. */
static void fill_kernel(const void *args) {
    const fill_args *a = args;
    *a->words = a->value;
}

/* An instruction with an operand outside the unified buffer. */
static void broken_kernel(const void *args) {
    (void)args;
    dp_insn insn = {
        .op = DP_OP_ADD, .mask_kind = DP_MASK_COUNT, .n_operands = 3, .mask = {64}, .loc = {"broken.asc", 42}};
    for (int i = 0; i < 3; i++)
        insn.operand[i] = (dp_operand){.addr = (void *)64, .dtype = DP_F32, .space = DP_SPACE_UB};
    dp_issue(&insn);
}

static const dp_kernel_info fill_info = {.name = "fill"}, broken_info = {.name = "broken"};

static int launch_fill(void *words, uint32_t value, aclrtStream stream) {
    fill_args args = {words, value};
    return dp_launch_kernel(&fill_info, 1, stream, fill_kernel, &args, sizeof args);
}

TEST(a_launch_runs_in_stream_order) {
    aclrtStream stream = NULL;
    void *memory = NULL;
    uint32_t word = 0;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemsetAsync(memory, 4, 0, 4, stream));
    CHECK_OK(launch_fill(memory, 0x12345678, stream));
    CHECK_OK(aclrtMemcpyAsync(&word, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(word == 0x12345678);
}

TEST(wrong_launches) {
    CHECK_FAILS(ACL_ERROR_RT_CONTEXT_NULL, launch_fill(NULL, 0, NULL), "kernel launch");
    CHECK_OK(aclrtSetDevice(0));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, dp_launch_kernel(&fill_info, 0, NULL, fill_kernel, NULL, 0), "0");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, dp_launch_kernel(&fill_info, 65536, NULL, fill_kernel, NULL, 0), "65536");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, dp_launch_kernel(&fill_info, 1, NULL, NULL, NULL, 0), "kernel launch");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, launch_fill(NULL, 0, (void *)8), "stream");
    CHECK_OK(aclrtSynchronizeDevice());
}

static aclrtExceptionInfo *told;
static uint32_t told_code, told_device, told_stream, told_count;

static void note_exception(aclrtExceptionInfo *info) {
    told = info;
    told_code = aclrtGetErrorCodeFromExceptionInfo(info);
    told_device = aclrtGetDeviceIdFromExceptionInfo(info);
    told_stream = aclrtGetStreamIdFromExceptionInfo(info);
    told_count++;
}

TEST(a_failed_kernel_marks_its_stream_only) {
    aclrtStream bad = NULL, good = NULL;
    void *memory = NULL;
    uint32_t word = 0;
    int32_t id = 0, device = -1;
    freopen("/dev/null", "w", stderr); /* the report of the fault itself */
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtSetExceptionInfoCallback(note_exception));
    CHECK_OK(aclrtCreateStream(&bad));
    CHECK_OK(aclrtCreateStream(&good));
    CHECK_OK(aclrtStreamGetId(bad, &id));
    CHECK_OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(
        dp_launch_kernel(&broken_info, 2, bad, broken_kernel, NULL, 0)); /* asynchronous: the launch itself succeeds */
    CHECK_FAILS(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtSynchronizeStream(bad), "aclrtSynchronizeStream", "broken.asc",
                "42");
    CHECK(told && told_count == 1 && told_code == ACL_ERROR_RT_AICORE_EXCEPTION && told_device == 0);
    CHECK(told_stream == (uint32_t)id);
    CHECK_OK(launch_fill(memory, 7, good));
    CHECK_OK(aclrtSynchronizeStream(good));
    CHECK_OK(aclrtMemcpy(&word, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(word == 7);
    /* what programs do after an error works */
    CHECK_FAILS(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
    CHECK_OK(aclrtGetDevice(&device));
    CHECK(device == 0);
    CHECK_OK(aclrtStreamAbort(bad));
    CHECK_OK(aclrtSynchronizeStream(bad));
    CHECK_OK(aclrtSynchronizeDevice());
    CHECK_OK(aclrtSetExceptionInfoCallback(NULL));
    CHECK_OK(aclrtDestroyStream(bad));
    CHECK_OK(aclrtDestroyStream(good));
}

#define THREADS 8
#define ROUNDS 200

/* Each thread has its own context and streams; all work on the same device at once. */
static void *worker(void *argument) {
    uint32_t number = (uint32_t)(uintptr_t)argument;
    aclrtContext context = NULL;
    aclrtStream one = NULL, two = NULL;
    aclrtEvent event = NULL;
    uint32_t *memory = NULL, host[2] = {0};
    CHECK_OK(aclrtCreateContext(&context, 0));
    CHECK_OK(aclrtCreateStream(&one));
    CHECK_OK(aclrtCreateStream(&two));
    CHECK_OK(aclrtCreateEvent(&event));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        CHECK_OK(aclrtMalloc((void **)&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK_OK(launch_fill(memory, number * 1000 + round, one));
        CHECK_OK(aclrtRecordEvent(event, one));
        CHECK_OK(aclrtStreamWaitEvent(two, event));
        CHECK_OK(aclrtMemcpyAsync(memory + 1, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, two));
        CHECK_OK(aclrtMemcpyAsync(host, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST, two));
        if (round % 3 == 0)
            CHECK(aclrtFree(NULL) == ACL_ERROR_INVALID_PARAM); /* errors of one thread do not disturb the others */
        CHECK_OK(aclrtSynchronizeStream(two));
        CHECK(host[0] == number * 1000 + round && host[1] == host[0]);
        CHECK_OK(aclrtFree(memory));
    }
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtDestroyStream(one));
    CHECK_OK(aclrtDestroyStream(two));
    CHECK_OK(aclrtDestroyContext(context));
    return NULL;
}

TEST(threads_and_contexts_work_at_once) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_runs_in_stream_order),
        cmocka_unit_test(wrong_launches),
        cmocka_unit_test(a_failed_kernel_marks_its_stream_only),
        cmocka_unit_test(threads_and_contexts_work_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
