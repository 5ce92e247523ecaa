/* Every allocation of the library fails once, one after the other: calls answer with a code and nothing crashes or
 * hangs. */
#include "child.h"

#include "base/memory.h"

/* A small program; every step may fail, and then what was made so far is released. */
static int program(void) {
    aclrtStream stream = NULL;
    aclrtEvent event = NULL;
    aclrtContext context = NULL;
    void *device = NULL, *host = NULL;
    const int64_t dims[] = {4, 4};
    int failures = 0;
    failures += aclrtSetDevice(0) != 0;
    failures += aclrtCreateContext(&context, 0) != 0;
    failures += aclrtCreateStream(&stream) != 0;
    failures += aclrtCreateEvent(&event) != 0;
    failures += aclrtMalloc(&device, 100000, ACL_MEM_MALLOC_HUGE_FIRST) != 0;
    failures += aclrtMallocHost(&host, 100000) != 0;
    if (device && host) {
        failures += aclrtMemsetAsync(device, 100000, 3, 100000, stream) != 0;
        failures += aclrtMemcpyAsync(host, 100000, device, 100000, ACL_MEMCPY_DEVICE_TO_HOST, stream) != 0;
    }
    if (event)
        failures += aclrtRecordEvent(event, stream) != 0;
    aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
    aclDataBuffer *buffer = aclCreateDataBuffer(host, host ? 100000 : 0);
    failures += !desc + !buffer;
    if (desc) {
        failures += aclSetTensorConst(desc, (void *)(uintptr_t)dims, sizeof dims) != 0;
        aclSetTensorDescName(desc, "name");
    }
    aclrtSynchronizeDevice();
    if (buffer)
        CHECK_OK(aclDestroyDataBuffer(buffer));
    aclDestroyTensorDesc(desc);
    if (event)
        CHECK_OK(aclrtDestroyEvent(event));
    if (stream)
        CHECK_OK(aclrtDestroyStream(stream));
    if (device)
        CHECK_OK(aclrtFree(device));
    if (host)
        CHECK_OK(aclrtFreeHost(host));
    if (context)
        CHECK_OK(aclrtDestroyContext(context));
    return failures;
}

static long failing;

static void with_one_failure(void) {
    dp_mem_fail_after(failing);
    int failures = program();
    dp_mem_fail_after(0);
    if (failures) {
        const char *message = aclGetRecentErrMsg();
        CHECK(message && strstr(message, ": "));
    }
    CHECK(program() == 0); /* afterwards all is as before */
}

/* Live blocks once the workers have let go of what they finished: the lowest count within 50 ms. */
static size_t settled_blocks(void) {
    size_t least = dp_mem_stats_of(DP_MEM_RUNTIME).live_blocks;
    for (int i = 0; i < 50; i++) {
        usleep(1000);
        size_t now = dp_mem_stats_of(DP_MEM_RUNTIME).live_blocks;
        least = now < least ? now : least;
    }
    return least;
}

/* Nothing of a program that met a failure stays behind once it has released what it got. */
static void leaks_nothing(void) {
    CHECK(program() == 0 && program() == 0);
    size_t before = settled_blocks();
    dp_mem_fail_after(failing);
    program();
    dp_mem_fail_after(0);
    CHECK(program() == 0);
    size_t after = settled_blocks();
    if (after != before)
        fprintf(stderr, "allocation %ld: %zu blocks before, %zu after\n", failing, before, after);
    CHECK(after == before);
}

static void failures_leak_nothing(void **state) {
    (void)state;
    for (failing = 1; failing <= 40; failing++)
        run_in_child(leaks_nothing);
}

static void every_allocation_fails_once(void **state) {
    (void)state;
    for (failing = 1; failing <= 80; failing++)
        run_in_child(with_one_failure);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once),
                                       cmocka_unit_test(failures_leak_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
