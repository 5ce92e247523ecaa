/*
 * The trace's model against times worked out by hand from the cost table: heads paid once, flags, barriers, queue depth, waves,
 * and the shape that queues of depth 1, 2 and 3 give.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/core.h"
#include "device/trace/trace.h"

enum { MAX = 4096 };

/* A launch of one core, filled by the functions below. */
typedef struct fixture {
    dp_trace_event events[MAX];
    dp_trace_core core, *cores[1];
    dp_trace_launch launch;
} fixture;

static fixture *fresh(void) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->core.events = f->events;
    f->cores[0] = &f->core;
    f->launch.cores = f->cores;
    f->launch.core_count = 1;
    f->launch.chip = dp_chip_find("Ascend910B1");
    assert_non_null(f->launch.chip);
    return f;
}

static dp_trace_event *add(fixture *f, dp_op op, dp_pipe pipe) {
    assert_true(f->core.count < MAX);
    dp_trace_event *e = &f->events[f->core.count++];
    e->op = (uint16_t)op;
    e->pipe = (uint8_t)pipe;
    return e;
}

static dp_trace_event *vector(fixture *f, uint32_t repeats) {
    dp_trace_event *e = add(f, DP_OP_ADD, DP_PIPE_V);
    e->repeats = repeats;
    e->dtype = DP_F32;
    return e;
}

static void flag(fixture *f, dp_op op, dp_pipe src, dp_pipe dst, unsigned id) {
    dp_trace_event *e = add(f, op, op == DP_OP_SET_FLAG ? src : dst);
    e->sync_src = (uint8_t)src;
    e->sync_dst = (uint8_t)dst;
    e->sync_id = (uint8_t)id;
}

static dp_trace_event *copy(fixture *f, dp_pipe pipe, uint32_t bytes) {
    dp_trace_event *e = add(f, DP_OP_DATA_COPY, pipe);
    e->bytes = bytes;
    e->src_space = pipe == DP_PIPE_MTE2 ? DP_SPACE_GM : DP_SPACE_UB;
    e->dst_space = pipe == DP_PIPE_MTE2 ? DP_SPACE_UB : DP_SPACE_GM;
    return e;
}

static uint64_t length(const dp_trace_event *e) { return e->end - e->start; }

/* vadd: 24 cycles of head, 2 a repeat. */
static void the_head_is_paid_when_the_pipe_was_empty(void **state) {
    (void)state;
    fixture *f = fresh();
    dp_trace_event *first = vector(f, 100), *second = vector(f, 100);
    dp_trace_model(&f->launch);
    assert_int_equal(length(first), 24 + 200);
    assert_int_equal(length(second), 200);
    assert_int_equal(second->start, first->end);
    assert_int_equal(f->launch.cycles, second->end);
    assert_int_equal(f->core.busy[DP_PIPE_V], 424);
    free(f);
}

static void a_barrier_drains_the_pipe(void **state) {
    (void)state;
    fixture *f = fresh();
    vector(f, 100);
    add(f, DP_OP_BARRIER, DP_PIPE_V)->sync_src = DP_PIPE_V;
    dp_trace_event *second = vector(f, 100);
    dp_trace_model(&f->launch);
    assert_int_equal(length(second), 224);
    free(f);
}

/* The scalar unit that waits for V stands idle: its time is a bubble, not work. */
static void waiting_is_not_work(void **state) {
    (void)state;
    fixture *f = fresh();
    dp_trace_event *work = vector(f, 1000);
    flag(f, DP_OP_SET_FLAG, DP_PIPE_V, DP_PIPE_S, 0);
    flag(f, DP_OP_WAIT_FLAG, DP_PIPE_V, DP_PIPE_S, 0);
    dp_trace_model(&f->launch);
    assert_true(f->events[2].waited > 1900);
    assert_int_equal(f->events[2].end, work->end);
    assert_int_equal(f->core.busy[DP_PIPE_S], 0);
    assert_int_equal(f->core.busy[DP_PIPE_V], length(work));
    free(f);
}

static void a_flag_holds_the_other_pipe_back(void **state) {
    (void)state;
    fixture *f = fresh();
    dp_trace_event *load = copy(f, DP_PIPE_MTE2, 65536);
    flag(f, DP_OP_SET_FLAG, DP_PIPE_MTE2, DP_PIPE_V, 0);
    flag(f, DP_OP_WAIT_FLAG, DP_PIPE_MTE2, DP_PIPE_V, 0);
    dp_trace_event *work = vector(f, 10);
    dp_trace_model(&f->launch);
    assert_true(load->end - load->start > 327);
    assert_int_equal(work->start, load->end);
    assert_int_equal(work->cause, 2); /* the SetFlag */
    free(f);
}

static void pipes_without_a_flag_overlap(void **state) {
    (void)state;
    fixture *f = fresh();
    dp_trace_event *load = copy(f, DP_PIPE_MTE2, 65536), *work = vector(f, 10);
    dp_trace_model(&f->launch);
    assert_true(work->start < load->end);
    free(f);
}

/* Rate GM->UB 100.9 GiB/s at 1.85 GHz is 58.56 bytes a cycle; a lone core is below its share of the memory. */
static void a_copy_takes_latency_and_bytes_over_rate(void **state) {
    (void)state;
    fixture *f = fresh();
    dp_trace_event *load = copy(f, DP_PIPE_MTE2, 1 << 20);
    dp_trace_model(&f->launch);
    double expect = 327 + (1 << 20) / (100.9 * 1073741824.0 / 1.85e9);
    assert_true(fabs((double)length(load) - expect) < 2);
    free(f);
}

static void a_full_queue_stops_the_scalar_unit(void **state) {
    (void)state;
    fixture *f = fresh();
    dp_trace_event *first = vector(f, 255);
    for (int i = 0; i < 32; i++)
        vector(f, 255);
    dp_trace_event *scalar = add(f, DP_OP_SET_MASK, DP_PIPE_S);
    dp_trace_model(&f->launch);
    assert_true(scalar->start >= first->end);
    free(f);
}

static void scalar_loads_wait_for_the_vector_unit(void **state) {
    (void)state;
    fixture *f = fresh();
    dp_trace_event *work = vector(f, 200), *load = add(f, DP_OP_SCALAR_LOAD, DP_PIPE_S);
    load->src_space = DP_SPACE_UB;
    dp_trace_model(&f->launch);
    assert_true(load->start >= work->end);
    free(f);
}

/* tiles of copy in, work, copy out, with `depth` buffers on either side; the flags are those of the queues. */
static uint64_t pipeline(unsigned depth, unsigned tiles, const uint32_t *repeats) {
    fixture *f = fresh();
    for (unsigned t = 0; t < tiles; t++) {
        unsigned id = t % depth;
        if (t >= depth)
            flag(f, DP_OP_WAIT_FLAG, DP_PIPE_V, DP_PIPE_MTE2, id);
        copy(f, DP_PIPE_MTE2, 32768);
        flag(f, DP_OP_SET_FLAG, DP_PIPE_MTE2, DP_PIPE_V, id);
        if (t >= depth)
            flag(f, DP_OP_WAIT_FLAG, DP_PIPE_MTE3, DP_PIPE_V, id);
        flag(f, DP_OP_WAIT_FLAG, DP_PIPE_MTE2, DP_PIPE_V, id);
        vector(f, repeats[t % 8]);
        flag(f, DP_OP_SET_FLAG, DP_PIPE_V, DP_PIPE_MTE3, id);
        flag(f, DP_OP_SET_FLAG, DP_PIPE_V, DP_PIPE_MTE2, id);
        flag(f, DP_OP_WAIT_FLAG, DP_PIPE_V, DP_PIPE_MTE3, id);
        copy(f, DP_PIPE_MTE3, 32768);
        flag(f, DP_OP_SET_FLAG, DP_PIPE_MTE3, DP_PIPE_V, id);
    }
    dp_trace_model(&f->launch);
    uint64_t cycles = f->launch.cycles;
    free(f);
    return cycles;
}

static void depth_two_overlaps_and_depth_three_smooths_peaks(void **state) {
    (void)state;
    const uint32_t even[8] = {250, 250, 250, 250, 250, 250, 250, 250}, uneven[8] = {20, 20, 900, 20, 20, 900, 20, 20};
    uint64_t one = pipeline(1, 32, even), two = pipeline(2, 32, even), three = pipeline(3, 32, even);
    assert_true(two * 10 < one * 8);   /* overlap helps by more than a fifth */
    assert_true(three * 100 > two * 90); /* balanced work: little left to gain */
    uint64_t two_uneven = pipeline(2, 32, uneven), three_uneven = pipeline(3, 32, uneven);
    assert_true(three_uneven * 100 < two_uneven * 97);
    /* nothing can beat the longest pipe */
    assert_true(three >= 32 * (uint64_t)(32768 / 59));
}

static void blocks_beyond_the_cores_form_waves(void **state) {
    (void)state;
    enum { N = 100 };
    static dp_trace_core cores[N], *list[N];
    static dp_trace_event events[N];
    memset(cores, 0, sizeof cores);
    for (unsigned i = 0; i < N; i++) {
        events[i] = (dp_trace_event){.op = DP_OP_ADD, .pipe = DP_PIPE_V, .repeats = 100};
        cores[i].events = &events[i];
        cores[i].count = 1;
        list[i] = &cores[i];
    }
    dp_trace_launch launch = {.cores = list, .core_count = N, .chip = dp_chip_find("Ascend910B1")};
    dp_trace_model(&launch);
    assert_int_equal(launch.chip->vector_cores, 48);
    assert_int_equal(cores[48].events[0].start, cores[0].end + cores[0].events[0].start);
    assert_int_equal(launch.cycles, cores[96].end);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_is_paid_when_the_pipe_was_empty),
        cmocka_unit_test(a_barrier_drains_the_pipe),
        cmocka_unit_test(waiting_is_not_work),
        cmocka_unit_test(a_flag_holds_the_other_pipe_back),
        cmocka_unit_test(pipes_without_a_flag_overlap),
        cmocka_unit_test(a_copy_takes_latency_and_bytes_over_rate),
        cmocka_unit_test(a_full_queue_stops_the_scalar_unit),
        cmocka_unit_test(scalar_loads_wait_for_the_vector_unit),
        cmocka_unit_test(depth_two_overlaps_and_depth_three_smooths_peaks),
        cmocka_unit_test(blocks_beyond_the_cores_form_waves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
