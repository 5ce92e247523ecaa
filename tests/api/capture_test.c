/* Graphs captured from streams: what runs again, in which order, what can be replaced, and what is refused. */
#include "child.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_nonzero.h"
#include "doppel/insn.h"
#include "doppel/launch.h"

enum { N = 1000, BLOCKS = 48 };

static aclrtStream stream, side;
static float *a, *b, *c; /* device memory of N floats */

static void begin(void) {
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateStream(&side));
    CHECK_OK(aclrtMalloc((void **)&a, N * sizeof *a, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc((void **)&b, N * sizeof *b, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc((void **)&c, N * sizeof *c, ACL_MEM_MALLOC_HUGE_FIRST));
}

static void set(float *device, float value) {
    float host[N];
    for (int i = 0; i < N; i++)
        host[i] = value + (float)i;
    CHECK_OK(aclrtMemcpy(device, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE));
}

/* True when element i is value + step * i. */
static int holds(const float *device, float value, float step) {
    float host[N];
    CHECK_OK(aclrtMemcpy(host, sizeof host, device, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < N; i++) {
        if (host[i] != value + step * (float)i)
            return 0;
    }
    return 1;
}

static aclTensor *tensor(float *device) {
    const int64_t dims[] = {N}, strides[] = {1};
    return aclCreateTensor(dims, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 1, device);
}

/* Queues out = x + alpha * y. */
static void queue_add(float *x, float *y, float alpha, float *out, aclrtStream on) {
    aclTensor *tx = tensor(x), *ty = tensor(y), *to = tensor(out);
    aclScalar *factor = aclCreateScalar(&alpha, ACL_FLOAT);
    uint64_t bytes;
    aclOpExecutor *executor;
    CHECK_OK(aclnnAddGetWorkspaceSize(tx, ty, factor, to, &bytes, &executor));
    CHECK_OK(aclnnAdd(NULL, bytes, executor, on));
    CHECK(!aclDestroyTensor(tx) && !aclDestroyTensor(ty) && !aclDestroyTensor(to) && !aclDestroyScalar(factor));
}

typedef struct count_args {
    _Atomic uint32_t *count;
} count_args;

static void count_kernel(const void *args) {
    atomic_fetch_add(((const count_args *)args)->count, 1);
}

static const dp_kernel_info count_info = {.name = "count"}, broken_info = {.name = "broken"};

static void broken_kernel(const void *args) {
    (void)args;
    dp_insn insn = {.op = DP_OP_ADD, .mask_kind = DP_MASK_COUNT, .n_operands = 3, .mask = {64}, .loc = {"broken.asc", 42}};
    for (int i = 0; i < 3; i++)
        insn.operand[i] = (dp_operand){.addr = (void *)64, .dtype = DP_F32, .space = DP_SPACE_UB};
    dp_issue(&insn);
}

static void count_host(void *counter) {
    ++*(int *)counter;
}

/* Operator, copy, fill, kernel on many cores and host function: nothing runs before execute, everything at each one. */
TEST(runs_again) {
    begin();
    static _Atomic uint32_t *blocks;
    int calls = 0;
    CHECK_OK(aclrtMalloc((void **)&blocks, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemset((void *)blocks, 64, 0, 64));
    set(a, 1), set(b, 2), set(c, 0);
    aclmdlRI graph = NULL, current = NULL;
    aclmdlRICaptureStatus state;
    CHECK_OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    CHECK_OK(aclmdlRICaptureGetInfo(stream, &state, &current));
    CHECK(state == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE && current);
    queue_add(a, b, 1, c, stream);
    CHECK_OK(aclrtMemcpyAsync(a, N * sizeof *a, c, N * sizeof *c, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    count_args args = {blocks};
    CHECK_OK(dp_launch_kernel(&count_info, BLOCKS, stream, count_kernel, &args, sizeof args));
    args.count = NULL; /* arguments were copied */
    CHECK_OK(aclrtLaunchHostFunc(stream, count_host, &calls));
    CHECK_OK(aclmdlRICaptureEnd(stream, &graph));
    CHECK(graph == current);
    CHECK_OK(aclmdlRICaptureGetInfo(stream, &state, &current));
    CHECK(state == ACL_MODEL_RI_CAPTURE_STATUS_NONE && !current);
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(calls == 0 && *blocks == 0 && holds(a, 1, 1) && holds(c, 0, 1));
    for (int run = 1; run <= 20; run++) {
        CHECK_OK(aclmdlRIExecuteAsync(graph, run % 3 ? stream : side)); /* runs on two streams follow each other */
        if (run == 10) {
            CHECK_OK(aclrtSynchronizeStream(stream)); /* run 9 was on side, run 10 waits for it */
            CHECK(calls == 10 && *blocks == 10 * BLOCKS && holds(a, 1 + 10 * 2, 11) && holds(c, 21, 11));
        }
    }
    CHECK_OK(aclmdlRIDestroy(graph)); /* queued runs still happen */
    CHECK_OK(aclrtSynchronizeDevice());
    CHECK(calls == 20 && *blocks == 20 * BLOCKS && holds(a, 41, 21));
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclmdlRIExecuteAsync(graph, stream), "modelRI");
}

/* An event carries the capture to another stream, and back. */
TEST(two_streams) {
    begin();
    set(a, 1), set(b, 2);
    aclrtEvent fork_event, join_event;
    CHECK_OK(aclrtCreateEvent(&fork_event));
    CHECK_OK(aclrtCreateEvent(&join_event));
    aclmdlRI graph;
    CHECK_OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    queue_add(a, b, 1, c, stream);
    CHECK_OK(aclrtRecordEvent(fork_event, stream));
    CHECK_OK(aclrtStreamWaitEvent(side, fork_event));
    queue_add(c, c, 1, b, side);
    CHECK_OK(aclrtRecordEvent(join_event, side));
    CHECK_OK(aclrtStreamWaitEvent(stream, join_event));
    queue_add(b, a, 1, c, stream);
    CHECK_FAILS(ACL_ERROR_RT_EVENT_CAPTURED, aclrtSynchronizeEvent(join_event), "recorded in a capture");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtSynchronizeStream(side), "being captured");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, aclmdlRICaptureEnd(side, &graph), "another stream");
    CHECK_OK(aclmdlRICaptureEnd(stream, &graph));
    CHECK_OK(aclrtSynchronizeStream(side)); /* it left the capture as well */
    CHECK_OK(aclmdlRIExecuteAsync(graph, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(holds(b, 6, 4) && holds(c, 7, 5));
    CHECK_OK(aclrtRecordEvent(join_event, side)); /* an ordinary event again */
    CHECK_OK(aclrtSynchronizeEvent(join_event));
    CHECK_OK(aclmdlRIDebugPrint(graph));
    CHECK_OK(aclmdlRIDestroy(graph));
}

/* What a client does whose attention changes its arguments with every token. */
TEST(groups_are_replaced) {
    begin();
    set(a, 1), set(b, 2);
    aclrtEvent ready;
    CHECK_OK(aclrtCreateEventExWithFlag(&ready, ACL_EVENT_EXTERNAL));
    aclmdlRI graph;
    aclrtTaskGrp group;
    CHECK_OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    CHECK_OK(aclrtStreamWaitEvent(stream, ready));
    CHECK_OK(aclrtResetEvent(ready, stream));
    CHECK_OK(aclmdlRICaptureTaskGrpBegin(stream));
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclmdlRICaptureTaskGrpBegin(stream), "do not nest");
    queue_add(a, b, 1, c, stream);
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, aclmdlRICaptureEnd(stream, &graph), "still open");
    CHECK_OK(aclmdlRICaptureTaskGrpEnd(stream, &group));
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclmdlRICaptureTaskUpdateBegin(side, group), "has not ended");
    queue_add(c, c, 1, c, stream);
    CHECK_OK(aclmdlRICaptureEnd(stream, &graph));
    for (int round = 1; round <= 5; round++) {
        CHECK_OK(aclmdlRIExecuteAsync(graph, stream)); /* waits at the event */
        CHECK_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 5), "timeout");
        CHECK_OK(aclmdlRICaptureTaskUpdateBegin(side, group));
        queue_add(a, b, (float)round, c, side);
        CHECK_OK(aclmdlRICaptureTaskUpdateEnd(side));
        CHECK_OK(aclrtRecordEvent(ready, side));
        CHECK_OK(aclrtSynchronizeStream(stream));
        CHECK(holds(c, 2 * (1 + 2 * (float)round), 2 * (1 + (float)round)));
    }
    CHECK_OK(aclmdlRICaptureTaskUpdateBegin(side, group));
    queue_add(a, b, 9, c, side);
    queue_add(a, b, 9, c, side);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlRICaptureTaskUpdateEnd(side), "2 tasks", "group of 1");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_NOT_CAPTURED, aclmdlRICaptureTaskUpdateEnd(side), "updates no task group");
    /* a run that nobody lets go on can be aborted */
    CHECK_OK(aclmdlRIExecuteAsync(graph, stream));
    usleep(2000);
    CHECK_OK(aclrtStreamAbort(stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(holds(c, 22, 12)); /* of round 5: the aborted run did nothing */
    CHECK_OK(aclmdlRIDestroy(graph));
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclmdlRICaptureTaskUpdateBegin(side, group), "handle");
}

/* Recorded by one graph, waited for by another one. */
TEST(external_events_between_graphs) {
    begin();
    set(a, 1), set(b, 2), set(c, 0);
    aclrtEvent done;
    CHECK_OK(aclrtCreateEventExWithFlag(&done, ACL_EVENT_EXTERNAL));
    aclmdlRI first, second;
    CHECK_OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    queue_add(a, b, 1, c, stream);
    CHECK_OK(aclrtRecordEvent(done, stream));
    CHECK_OK(aclmdlRICaptureEnd(stream, &first));
    CHECK_OK(aclmdlRICaptureBegin(side, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    CHECK_OK(aclrtStreamWaitEvent(side, done));
    queue_add(c, c, 1, b, side);
    CHECK_OK(aclmdlRICaptureEnd(side, &second));
    CHECK_OK(aclmdlRIExecuteAsync(second, side));
    CHECK_OK(aclmdlRIExecuteAsync(first, stream));
    CHECK_OK(aclrtSynchronizeStream(side));
    CHECK(holds(b, 6, 4));
    CHECK_OK(aclrtSynchronizeEvent(done));
    CHECK_OK(aclmdlRIDestroy(first));
    CHECK_OK(aclmdlRIDestroy(second));
}

TEST(refusals) {
    begin();
    aclmdlRI graph;
    aclmdlRICaptureStatus state;
    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclmdlRICaptureBegin(NULL, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), "default stream");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlRICaptureBegin(stream, (aclmdlRICaptureMode)3), "mode is 3");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_NOT_CAPTURED, aclmdlRICaptureEnd(stream, &graph), "not being captured");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_NOT_CAPTURED, aclmdlRICaptureTaskGrpBegin(stream), "not being captured");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlRICaptureEnd(stream, NULL), "modelRI is NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlRICaptureGetInfo(stream, NULL, &graph), "status is NULL");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlRIExecuteAsync(NULL, stream), "modelRI is NULL");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclmdlRIExecuteAsync(stream, stream), "modelRI");
    CHECK_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclmdlRIDestroy((void *)64), "modelRI");
    CHECK_OK(aclmdlRICaptureThreadExchangeMode(&mode));
    CHECK(mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
    CHECK_OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    CHECK_FAILS(ACL_ERROR_STREAM_CAPTURE_CONFLICT, aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), "already");
    CHECK_OK(aclmdlRICaptureGetInfo(stream, &state, &graph));
    CHECK_FAILS(ACL_ERROR_RT_MODEL_CAPTURED, aclmdlRIExecuteAsync(graph, side), "still being captured");
    CHECK_FAILS(ACL_ERROR_RT_MODEL_CAPTURED, aclmdlRIDestroy(graph), "still being captured");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtSynchronizeStream(stream), "waited for");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtStreamAbort(stream), "aborted");
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtDestroyStream(stream), "destroyed");
    aclrtStreamStatus progress;
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtStreamQuery(stream, &progress), "progress");
    const int64_t dims[] = {N, 1}, strides[] = {1, 1};
    aclTensor *in = tensor(a), *found = aclCreateTensor(dims, 2, ACL_INT64, strides, 0, ACL_FORMAT_ND, dims, 2, b);
    uint64_t bytes;
    aclOpExecutor *executor;
    CHECK_OK(aclnnNonzeroGetWorkspaceSize(in, found, &bytes, &executor));
    CHECK_FAILS(ACL_ERROR_RT_STREAM_CAPTURED, aclnnNonzero(NULL, bytes, executor, stream), "depend on data");
    CHECK(!aclDestroyTensor(in) && !aclDestroyTensor(found));
    CHECK_OK(aclrtSynchronizeDevice());
    CHECK_OK(aclmdlRICaptureEnd(stream, &graph));
    CHECK_OK(aclmdlRIExecuteAsync(graph, stream)); /* an empty one */
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlRIDebugJsonPrint(graph, NULL, 0), "path");
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclmdlRIDebugJsonPrint(graph, "/nowhere/graph.json", 0), "/nowhere");
    CHECK_OK(aclmdlRIDestroy(graph));
    /* what is left open ends with its stream */
    CHECK_OK(aclmdlRICaptureBegin(side, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    queue_add(a, b, 1, c, side);
    CHECK_OK(aclrtResetDevice(0));
}

/* A step that fails marks the stream; the steps after it run, unless the stream is to stop. */
TEST(failing_steps) {
    begin();
    int calls = 0;
    aclmdlRI graph;
    CHECK_OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    CHECK_OK(dp_launch_kernel(&broken_info, 1, stream, broken_kernel, NULL, 0));
    CHECK_OK(aclrtLaunchHostFunc(stream, count_host, &calls));
    CHECK_OK(aclmdlRICaptureEnd(stream, &graph));
    CHECK_OK(aclmdlRIExecuteAsync(graph, stream));
    CHECK_FAILS(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtSynchronizeStream(stream), "broken");
    CHECK(calls == 1);
    CHECK_OK(aclrtStreamAbort(stream));
    CHECK_OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    CHECK_OK(aclmdlRIExecuteAsync(graph, stream));
    CHECK_FAILS(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtSynchronizeStream(stream), "broken");
    CHECK(calls == 1);
    CHECK_OK(aclmdlRIDestroy(graph));
}

static void *capture_and_run(void *unused) {
    (void)unused;
    CHECK_OK(aclrtSetDevice(0));
    aclrtStream own;
    _Atomic uint32_t *count;
    CHECK_OK(aclrtCreateStream(&own));
    CHECK_OK(aclrtMalloc((void **)&count, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemset((void *)count, 64, 0, 64));
    for (int round = 0; round < 10; round++) {
        aclmdlRI graph;
        count_args args = {count};
        CHECK_OK(aclmdlRICaptureBegin(own, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
        for (int i = 0; i < 5; i++)
            CHECK_OK(dp_launch_kernel(&count_info, 1 + (uint32_t)i, own, count_kernel, &args, sizeof args));
        CHECK_OK(aclmdlRICaptureEnd(own, &graph));
        for (int i = 0; i < 5; i++)
            CHECK_OK(aclmdlRIExecuteAsync(graph, own));
        CHECK_OK(aclmdlRIDestroy(graph));
    }
    CHECK_OK(aclrtSynchronizeStream(own));
    CHECK(*count == 10 * 5 * 15);
    return NULL;
}

TEST(many_threads) {
    CHECK_OK(aclrtSetDevice(0));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_create(&threads[i], NULL, capture_and_run, NULL));
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_join(threads[i], NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_again),
        cmocka_unit_test(two_streams),
        cmocka_unit_test(groups_are_replaced),
        cmocka_unit_test(external_events_between_graphs),
        cmocka_unit_test(refusals),
        cmocka_unit_test(failing_steps),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
