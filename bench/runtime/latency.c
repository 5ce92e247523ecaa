/* What the runtime itself costs: medians over many repetitions, in microseconds. */
#include <stdio.h>
#include <stdlib.h>

#include "device/core.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/launch.h"
#include "runtime/report.h"
#include "runtime/stream.h"
#include "runtime/task.h"

enum { ROUNDS = 20000, STREAMS = 32 };

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, double goal_us, int rounds, void (*once)(void *), void *context) {
    uint64_t *times = malloc((size_t)rounds * sizeof *times);
    for (int i = 0; i < rounds; i++) {
        uint64_t begin = dp_clock_ns();
        once(context);
        times[i] = dp_clock_ns() - begin;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    printf("%-44s median %8.2f us   p90 %8.2f us   p99 %8.2f us", what, (double)times[rounds / 2] * 1e-3,
           (double)times[rounds * 9 / 10] * 1e-3, (double)times[rounds * 99 / 100] * 1e-3);
    if (goal_us > 0)
        printf("   goal %.0f us", goal_us);
    printf("\n");
    free(times);
}

static void nothing(void *context) {
    (void)context;
}
static void kernel(const void *args) {
    (void)args;
}

static void host_function(void *stream) {
    dp_task_host_function(stream, nothing, NULL);
    dp_stream_synchronise(stream, -1);
}

static void record_event(void *pair) {
    void **p = pair;
    dp_event_record(p[1], p[0]);
    dp_event_synchronise(p[1], -1);
}

static void launch(void *stream, uint32_t blocks) {
    dp_kernel_info info = {.name = "empty"};
    dp_launch_submit(&info, blocks, stream, kernel, NULL, 0);
    dp_stream_synchronise(stream, -1);
}
static void launch_1(void *stream) {
    launch(stream, 1);
}
static void launch_48(void *stream) {
    launch(stream, 48);
}

static void meet_all(const void *args) {
    (void)args;
    dp_insn insn = {.op = DP_OP_SYNC_ALL, .u.sync = {.mode = 1}};
    dp_issue(&insn);
}

static void sync_all_48(void *stream) {
    dp_kernel_info info = {.name = "sync_all"};
    dp_launch_submit(&info, 48, stream, meet_all, NULL, 0);
    dp_stream_synchronise(stream, -1);
}

static void many_streams(void *streams) {
    void **s = streams;
    dp_kernel_info info = {.name = "empty"};
    for (int i = 0; i < STREAMS; i++)
        dp_launch_submit(&info, 1, s[i], kernel, NULL, 0);
    for (int i = 0; i < STREAMS; i++)
        dp_stream_synchronise(s[i], -1);
}

static void burst(void *stream) {
    dp_kernel_info info = {.name = "empty"};
    for (int i = 0; i < 1000; i++)
        dp_launch_submit(&info, 1, stream, kernel, NULL, 0);
    dp_stream_synchronise(stream, -1);
}

int main(void) {
    void *stream, *event, *streams[STREAMS];
    if (dp_device_set(0) || dp_stream_create(0, &stream) || dp_event_create(0, &event))
        return 1;
    for (int i = 0; i < STREAMS; i++) {
        if (dp_stream_create(4, &streams[i]))
            return 1;
    }
    launch_48(stream);
    measure("host function, enqueue to done", 2, ROUNDS, host_function, stream);
    measure("event record, enqueue to done", 2, ROUNDS, record_event, (void *[]){stream, event});
    measure("kernel of 1 block, launch + synchronise", 6, ROUNDS, launch_1, stream);
    measure("kernel of 48 blocks, launch + synchronise", 25, ROUNDS / 4, launch_48, stream);
    measure("SyncAll of 48 blocks", 0, ROUNDS / 20, sync_all_48, stream);
    measure("32 streams, a kernel each", 0, ROUNDS / 20, many_streams, streams);
    measure("1000 kernels queued on one stream", 0, 50, burst, stream);
    return 0;
}
