/*
 * soak - threads x streams of random work for a while, every result checked.
 *
 *     soak [--seconds 10] [--threads 8] [--streams 4]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/core.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/event.h"
#include "runtime/launch.h"
#include "runtime/report.h"
#include "runtime/stream.h"
#include "runtime/task.h"

enum { STREAMS_MAX = 64, WORDS = 4096 };

static struct { unsigned seconds, threads, streams; } options = {10, 8, 4};
static uint64_t end_ns;
static _Atomic uint64_t tasks, faults, wrong;

/* One stream's buffer: every step adds one to each word; only stream order and events keep it consistent. */
typedef struct lane {
    void *stream, *event;
    uint32_t *words;
    uint32_t steps;
} lane;

typedef struct add_args {
    uint32_t *words;
    uint32_t expected;
} add_args;

static void add_part(const add_args *a, uint32_t part, uint32_t parts) {
    for (uint32_t i = part; i < WORDS; i += parts) {
        if (a->words[i] != a->expected)
            atomic_fetch_add(&wrong, 1);
        a->words[i]++;
    }
}

static void add_kernel(const void *args) {
    const dp_core *core = dp_core_current();
    add_part(args, core->core_index, core->block_num);
}

static void add_then_meet(const void *args) {
    add_kernel(args);
    dp_issue(&(dp_insn){.op = DP_OP_SYNC_ALL, .u.sync = {.mode = 1}});
    const add_args *a = args;
    for (uint32_t i = 0; i < WORDS; i += 97) {
        if (a->words[i] != a->expected + 1)
            atomic_fetch_add(&wrong, 1);
    }
}

static dp_status add_task(void *payload) {
    add_part(payload, 0, 1);
    return DP_OK;
}

static void faulty(const void *args) {
    (void)args;
    dp_core *core = dp_core_current();
    core->host->fault(core, (dp_loc){0}, "on purpose"); /* without the report on stderr */
    core->host->abandon(core);
}

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void must(dp_status status, const char *what) {
    if (status == DP_OK)
        return;
    fprintf(stderr, "soak: %s: %s: %s\n", what, dp_status_name(status), dp_fail_message());
    exit(1);
}
#define MUST(call) must(call, #call)

static void step(lane *lanes, uint64_t *random) {
    lane *l = &lanes[next_random(random) % options.streams];
    add_args args = {l->words, l->steps};
    dp_kernel_info info = {.name = "add"};
    atomic_fetch_add(&tasks, 1);
    switch (next_random(random) % 10) {
    case 0:
        MUST(dp_launch_submit(&info, 1, l->stream, add_kernel, &args, sizeof args));
        l->steps++;
        break;
    case 1:
        MUST(dp_launch_submit(&info, 1 + next_random(random) % 60, l->stream, add_kernel, &args, sizeof args));
        l->steps++;
        break;
    case 2:
        MUST(dp_launch_submit(&info, 1 + next_random(random) % 20, l->stream, add_then_meet, &args, sizeof args));
        l->steps++;
        break;
    case 3:
        MUST(dp_task_submit(l->stream, "add", add_task, NULL, &args, sizeof args));
        l->steps++;
        break;
    case 4: { /* swap two lanes' buffers, ordered by events */
        lane *m = &lanes[next_random(random) % options.streams];
        MUST(dp_event_record(l->event, l->stream));
        MUST(dp_event_record(m->event, m->stream));
        MUST(dp_event_wait(l->event, m->stream));
        MUST(dp_event_wait(m->event, l->stream));
        uint32_t *words = l->words, steps = l->steps;
        l->words = m->words, l->steps = m->steps;
        m->words = words, m->steps = steps;
        break;
    }
    case 5: /* through another buffer and back */
        if (next_random(random) % 4 == 0) {
            void *copy;
            MUST(dp_device_memory_alloc(WORDS * 4, &copy));
            MUST(dp_copy_async(copy, WORDS * 4, l->words, WORDS * 4, DP_COPY_DEVICE_TO_DEVICE, l->stream));
            MUST(dp_copy_async(l->words, WORDS * 4, copy, WORDS * 4, DP_COPY_DEVICE_TO_DEVICE, l->stream));
            MUST(dp_device_memory_free(copy));
        }
        break;
    case 6:
        MUST(dp_event_record(l->event, l->stream));
        MUST(dp_event_synchronise(l->event, -1));
        break;
    case 7:
        MUST(dp_stream_synchronise(l->stream, next_random(random) % 2 ? -1 : 60000));
        break;
    case 8:
        if (next_random(random) % 50 == 0) { /* a stream that fails beside the others, and its end */
            void *bad;
            MUST(dp_stream_create(next_random(random) % 8, &bad));
            MUST(dp_launch_submit(&info, 1 + next_random(random) % 9, bad, faulty, NULL, 0));
            if (dp_stream_synchronise(bad, -1) != DP_ERR_KERNEL)
                atomic_fetch_add(&wrong, 1);
            MUST(dp_stream_destroy(bad, next_random(random) % 2));
            atomic_fetch_add(&faults, 1);
        }
        break;
    default:
        MUST(dp_stream_destroy(l->stream, false));
        MUST(dp_stream_create(next_random(random) % 8, &l->stream));
        break;
    }
}

static void *run(void *argument) {
    uint64_t random = (uintptr_t)argument * 977 + 5;
    lane lanes[STREAMS_MAX];
    void *context = NULL;
    if ((uintptr_t)argument % 2)
        MUST(dp_context_create(0, &context));
    else
        MUST(dp_device_set(0));
    for (unsigned s = 0; s < options.streams; s++) {
        void *words;
        lanes[s].steps = 0;
        MUST(dp_stream_create(4, &lanes[s].stream));
        MUST(dp_event_create(0, &lanes[s].event));
        MUST(dp_device_memory_alloc(WORDS * 4, &words));
        MUST(dp_fill(words, WORDS * 4, 0, WORDS * 4));
        lanes[s].words = words;
    }
    while (dp_clock_ns() < end_ns)
        step(lanes, &random);
    for (unsigned s = 0; s < options.streams; s++)
        MUST(dp_stream_synchronise(lanes[s].stream, -1));
    for (unsigned s = 0; s < options.streams; s++) {
        for (uint32_t i = 0; i < WORDS; i++)
            atomic_fetch_add(&wrong, lanes[s].words[i] != lanes[s].steps);
        MUST(dp_stream_destroy(lanes[s].stream, false));
        MUST(dp_event_destroy(lanes[s].event));
        MUST(dp_device_memory_free(lanes[s].words));
    }
    if (context)
        MUST(dp_context_destroy(context));
    else
        MUST(dp_device_reset(0, false));
    return NULL;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        unsigned *value = strcmp(argv[i], "--seconds") == 0   ? &options.seconds
                          : strcmp(argv[i], "--threads") == 0 ? &options.threads
                          : strcmp(argv[i], "--streams") == 0 ? &options.streams
                                                              : NULL;
        long number = i + 1 < argc ? strtol(argv[i + 1], NULL, 10) : 0;
        if (!value || number < 1 || number > 1000000 || (value == &options.streams && number > STREAMS_MAX) ||
            (value == &options.threads && number > 256)) {
            fprintf(stderr, "usage: soak [--seconds n] [--threads 1..256] [--streams 1..%d]\n", STREAMS_MAX);
            return 2;
        }
        *value = (unsigned)number;
    }
    pthread_t threads[256];
    end_ns = dp_clock_ns() + options.seconds * 1000000000ull;
    for (uintptr_t t = 0; t < options.threads; t++)
        pthread_create(&threads[t], NULL, run, (void *)t);
    for (unsigned t = 0; t < options.threads; t++)
        pthread_join(threads[t], NULL);
    size_t used = 0;
    dp_device_memory_usage(0, &used, NULL);
    printf(
        "soak: %u s, %u threads x %u streams: %llu steps, %llu faults on purpose, %llu wrong, %zu device bytes left\n",
        options.seconds, options.threads, options.streams, (unsigned long long)tasks, (unsigned long long)faults,
        (unsigned long long)wrong, used);
    return wrong || used ? 1 : 0;
}
