/* Streams and events: order, waits, time-outs, errors, ends. */
#include <pthread.h>

#include "base/memory.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/report.h"
#include "runtime/runtime_test.h"
#include "runtime/stream.h"
#include "runtime/task.h"

static int setup(void **state) {
    (void)state;
    return dp_device_set(0) == DP_OK ? 0 : -1;
}

static void *new_stream(void) {
    void *stream = NULL;
    assert_ok(dp_stream_create(4, &stream));
    return stream;
}

static void *new_event(void) {
    void *event = NULL;
    assert_ok(dp_event_create(0, &event));
    return event;
}

typedef struct step {
    uint32_t *list;
    uint32_t *used; /* plain: tasks of one stream never run at once */
    uint32_t value;
} step;

static dp_status note(void *payload) {
    step *s = payload;
    s->list[(*s->used)++] = s->value;
    return DP_OK;
}

static void tasks_run_in_order(void **state) {
    (void)state;
    enum { STREAMS = 6, TASKS = 2000 };
    static uint32_t lists[STREAMS][TASKS], used[STREAMS];
    void *streams[STREAMS];
    for (int s = 0; s < STREAMS; s++)
        streams[s] = new_stream();
    for (uint32_t t = 0; t < TASKS; t++) {
        for (int s = 0; s < STREAMS; s++)
            assert_ok(dp_task_submit(streams[s], "note", note, NULL, &(step){lists[s], &used[s], t}, sizeof(step)));
    }
    for (int s = 0; s < STREAMS; s++) {
        assert_ok(dp_stream_synchronise(streams[s], -1));
        assert_int_equal(used[s], TASKS);
        for (uint32_t t = 0; t < TASKS; t++)
            assert_int_equal(lists[s][t], t);
        assert_ok(dp_stream_destroy(streams[s], false));
    }
}

static void submitting_does_not_wait(void **state) {
    (void)state;
    gate g = {0};
    void *stream = new_stream();
    bool complete = true;
    assert_ok(dp_task_host_function(stream, stand_in_gate, &g));
    await_entry(&g);
    assert_ok(dp_stream_query(stream, &complete));
    assert_false(complete);
    assert_refused(dp_stream_synchronise(stream, 20), DP_ERR_TIMEOUT, "timeout = 20 ms");
    assert_refused(dp_stream_synchronise(stream, 0), DP_ERR_TIMEOUT, "timeout = 0 ms");
    assert_refused(dp_device_synchronise(10), DP_ERR_TIMEOUT, "device 0 still had work");
    g.open = true;
    assert_ok(dp_stream_synchronise(stream, 10000));
    assert_ok(dp_stream_query(stream, &complete));
    assert_true(complete);
    assert_ok(dp_stream_destroy(stream, false));
}

typedef struct cell {
    uint64_t *value; /* plain on purpose: only the events order the accesses */
    uint64_t expected, next;
    _Atomic uint32_t *wrong;
} cell;

static dp_status advance(void *payload) {
    cell *c = payload;
    if (*c->value != c->expected)
        atomic_fetch_add(c->wrong, 1);
    *c->value = c->next;
    return DP_OK;
}

/* A value is handed round between streams, ordered by nothing but events. */
static void events_order_across_streams(void **state) {
    (void)state;
    enum { STREAMS = 5, ROUNDS = 3000 };
    void *streams[STREAMS], *events[STREAMS];
    _Atomic uint32_t wrong = 0;
    uint64_t value = 0, random = 7;
    for (int s = 0; s < STREAMS; s++) {
        streams[s] = new_stream();
        events[s] = new_event();
    }
    int last = 0;
    for (uint64_t r = 0; r < ROUNDS; r++) {
        int s = (int)(next_random(&random) % STREAMS);
        if (r > 0)
            assert_ok(dp_event_wait(events[last], streams[s]));
        assert_ok(
            dp_task_submit(streams[s], "advance", advance, NULL, &(cell){&value, r, r + 1, &wrong}, sizeof(cell)));
        assert_ok(dp_event_record(events[s], streams[s])); /* the same event again: earlier waits keep their record */
        last = s;
    }
    assert_ok(dp_event_synchronise(events[last], -1));
    assert_int_equal(value, ROUNDS);
    assert_int_equal(wrong, 0);
    assert_ok(dp_device_synchronise(-1));
    for (int s = 0; s < STREAMS; s++) {
        bool complete = false;
        assert_ok(dp_event_query_waits(events[s], &complete));
        assert_true(complete);
        assert_ok(dp_event_destroy(events[s]));
        assert_ok(dp_stream_destroy(streams[s], false));
    }
}

static void a_wait_keeps_its_record(void **state) {
    (void)state;
    gate first = {0}, second = {0};
    void *a = new_stream(), *b = new_stream(), *c = new_stream(), *event = new_event();
    bool complete;
    assert_ok(dp_task_host_function(a, stand_in_gate, &first));
    assert_ok(dp_event_record(event, a));
    assert_ok(dp_event_wait(event, c)); /* means the record in a */
    assert_ok(dp_task_host_function(b, stand_in_gate, &second));
    assert_ok(dp_event_record(event, b));
    second.open = true;
    assert_ok(dp_event_synchronise(event, 10000)); /* the one in b */
    assert_ok(dp_stream_query(c, &complete));
    assert_false(complete);
    assert_ok(dp_event_query_waits(event, &complete));
    assert_false(complete);
    first.open = true;
    assert_ok(dp_stream_synchronise(c, 10000));
    assert_ok(dp_event_destroy(event));
    assert_ok(dp_stream_destroy(a, false));
    assert_ok(dp_stream_destroy(b, false));
    assert_ok(dp_stream_destroy(c, false));
}

static void events_tell_time_and_state(void **state) {
    (void)state;
    gate g = {0};
    void *stream = new_stream(), *start = new_event(), *end = new_event();
    bool recorded = true;
    float ms = -1;
    uint64_t ns = 0;
    assert_ok(dp_event_query(start, &recorded));
    assert_false(recorded);
    assert_ok(dp_event_synchronise(start, -1)); /* never recorded: nothing to wait for */
    assert_ok(dp_event_wait(start, stream));
    assert_refused(dp_event_elapsed_ms(start, end, &ms), DP_ERR_STATE, "startEvent");
    assert_ok(dp_event_record(start, stream));
    assert_ok(dp_task_host_function(stream, stand_in_gate, &g));
    assert_ok(dp_event_record(end, stream));
    await_entry(&g);
    assert_refused(dp_event_elapsed_ms(start, end, &ms), DP_ERR_STATE, "endEvent");
    assert_refused(dp_event_synchronise(end, 5), DP_ERR_TIMEOUT, "timeout = 5 ms");
    sleep_ms(20);
    g.open = true;
    assert_ok(dp_event_synchronise(end, -1));
    assert_ok(dp_event_elapsed_ms(start, end, &ms));
    assert_true(ms >= 20 && ms < 20000);
    assert_ok(dp_event_elapsed_ms(end, start, &ms));
    assert_true(ms <= -20);
    assert_ok(dp_event_timestamp_ns(end, &ns));
    assert_true(ns > 0 && ns <= dp_clock_ns());
    assert_ok(dp_event_reset(end, stream));
    assert_ok(dp_stream_synchronise(stream, -1));
    assert_ok(dp_event_query(end, &recorded));
    assert_false(recorded);
    assert_refused(dp_event_timestamp_ns(end, &ns), DP_ERR_STATE, "never recorded");
    assert_ok(dp_event_destroy(start));
    assert_ok(dp_event_destroy(end));
    assert_ok(dp_stream_destroy(stream, false));
}

static void a_reset_spares_a_later_record(void **state) {
    (void)state;
    gate g = {0};
    void *stream = new_stream(), *event = new_event();
    bool recorded;
    assert_ok(dp_task_host_function(stream, stand_in_gate, &g));
    assert_ok(dp_event_record(event, stream));
    assert_ok(dp_event_reset(event, stream));
    assert_ok(dp_event_record(event, stream));
    g.open = true;
    assert_ok(dp_stream_synchronise(stream, -1));
    assert_ok(dp_event_query(event, &recorded));
    assert_true(recorded);
    assert_ok(dp_event_destroy(event));
    assert_ok(dp_stream_destroy(stream, false));
}

static dp_status fail_task(void *payload) {
    return dp_fail(DP_ERR_IO, "the disk of task %d is on fire", *(int *)payload);
}

static dp_status count_task(void *payload) {
    atomic_fetch_add(*(_Atomic int **)payload, 1);
    return DP_OK;
}

static void count_destroyed(void *payload) {
    atomic_fetch_add(*(_Atomic int **)payload, 1);
}

static void an_error_stays_with_its_stream(void **state) {
    (void)state;
    void *bad = new_stream(), *good = new_stream();
    char text[128];
    _Atomic int ran = 0, *counter = &ran;
    assert_ok(dp_task_submit(bad, "burn", fail_task, NULL, &(int){3}, sizeof(int)));
    assert_ok(dp_task_submit(bad, "burn", fail_task, NULL, &(int){4}, sizeof(int)));
    assert_ok(dp_task_submit(bad, "count", count_task, NULL, &counter, sizeof counter));
    assert_ok(dp_task_submit(good, "count", count_task, NULL, &counter, sizeof counter));
    for (int i = 0; i < 3; i++)
        assert_refused(dp_stream_synchronise(bad, -1), DP_ERR_IO, "the disk of task 3 is on fire");
    assert_ok(dp_stream_synchronise(good, -1));
    assert_int_equal(ran, 2); /* later tasks run */
    assert_refused(dp_device_synchronise(-1), DP_ERR_IO, "task 3");
    int32_t device = -1;
    assert_ok(dp_device_get(&device));
    assert_int_equal(dp_stream_error(bad, text, sizeof text), DP_ERR_IO);
    assert_non_null(strstr(text, "task 3"));
    assert_ok(dp_stream_set_failure_mode(bad, 1));
    assert_ok(dp_task_submit(bad, "count", count_task, count_destroyed, &counter, sizeof counter));
    assert_refused(dp_stream_synchronise(bad, -1), DP_ERR_IO, "task 3");
    assert_int_equal(ran, 3); /* destroyed, not run */
    assert_refused(dp_stream_set_failure_mode(bad, 2), DP_ERR_ARGUMENT, "mode is 2");
    assert_ok(dp_stream_abort(bad));
    assert_ok(dp_stream_synchronise(bad, -1));
    assert_ok(dp_task_submit(bad, "count", count_task, NULL, &counter, sizeof counter));
    assert_ok(dp_stream_synchronise(bad, -1));
    assert_int_equal(ran, 4);
    assert_ok(dp_stream_destroy(bad, false));
    assert_ok(dp_stream_destroy(good, false));
    assert_ok(dp_device_synchronise(-1));
}

static void a_stopped_stream_still_records(void **state) {
    (void)state;
    void *bad = new_stream(), *event = new_event(), *waiting = new_stream();
    assert_ok(dp_stream_set_failure_mode(bad, 1));
    assert_ok(dp_task_submit(bad, "burn", fail_task, NULL, &(int){1}, sizeof(int)));
    assert_ok(dp_event_record(event, bad));
    assert_ok(dp_event_wait(event, waiting));
    assert_ok(dp_stream_synchronise(waiting, 10000));
    assert_ok(dp_stream_destroy(bad, false));
    assert_ok(dp_stream_destroy(waiting, false));
    assert_ok(dp_event_destroy(event));
}

static void destroying_waits_or_drops(void **state) {
    (void)state;
    _Atomic int ran = 0, *counter = &ran, dropped = 0, *drops = &dropped;
    void *stream = new_stream();
    for (int i = 0; i < 100; i++)
        assert_ok(dp_task_submit(stream, "count", count_task, NULL, &counter, sizeof counter));
    assert_ok(dp_stream_destroy(stream, false));
    assert_int_equal(ran, 100);

    gate g = {0};
    stream = new_stream();
    void *event = new_event(), *waiting = new_stream();
    assert_ok(dp_task_host_function(stream, stand_in_gate, &g));
    await_entry(&g);
    for (int i = 0; i < 100; i++)
        assert_ok(dp_task_submit(stream, "count", count_task, count_destroyed, &drops, sizeof drops));
    assert_ok(dp_event_record(event, stream));
    assert_ok(dp_event_wait(event, waiting));
    assert_ok(dp_stream_destroy(waiting, true)); /* stands in a wait: cancelled */
    g.open = true;
    assert_ok(dp_stream_destroy(stream, true));
    assert_true(dropped >= 100);
    bool recorded = true;
    assert_ok(dp_event_synchronise(event, 10000));
    assert_ok(dp_event_query(event, &recorded));
    assert_ok(dp_event_destroy(event));
}

static void an_aborted_wait_lets_go(void **state) {
    (void)state;
    gate g = {0};
    void *a = new_stream(), *b = new_stream(), *event = new_event();
    _Atomic int ran = 0, *counter = &ran;
    assert_ok(dp_task_host_function(a, stand_in_gate, &g));
    assert_ok(dp_event_record(event, a));
    assert_ok(dp_event_wait(event, b));
    assert_ok(dp_task_submit(b, "count", count_task, NULL, &counter, sizeof counter));
    sleep_ms(5);
    assert_ok(dp_stream_abort(b));
    assert_ok(dp_stream_synchronise(b, 10000));
    assert_int_equal(ran, 0);
    assert_ok(dp_task_submit(b, "count", count_task, NULL, &counter, sizeof counter));
    assert_ok(dp_stream_synchronise(b, 10000));
    assert_int_equal(ran, 1);
    g.open = true;
    assert_ok(dp_stream_synchronise(a, -1));
    assert_ok(dp_event_destroy(event));
    assert_ok(dp_stream_destroy(a, false));
    assert_ok(dp_stream_destroy(b, false));
}

typedef struct inside {
    void *stream;
    dp_status synchronise, destroy, abort, event, device, reset;
    void *event_handle;
} inside;

static void call_from_inside(void *argument) {
    inside *in = argument;
    in->synchronise = dp_stream_synchronise(in->stream, -1);
    in->destroy = dp_stream_destroy(in->stream, false);
    in->abort = dp_stream_abort(in->stream);
    in->event = dp_event_synchronise(in->event_handle, -1);
    in->device = dp_device_synchronise(-1);
    in->reset = dp_device_reset(0, false);
}

static void call_with_context(void *argument) {
    dp_device_set(0);
    call_from_inside(argument);
}

/* What would wait for itself is refused. */
static void a_task_cannot_wait_for_itself(void **state) {
    (void)state;
    inside in = {.stream = new_stream(), .event_handle = new_event()};
    gate g = {0};
    assert_ok(dp_task_host_function(in.stream, stand_in_gate, &g));
    assert_ok(dp_task_host_function(in.stream, call_with_context, &in));
    assert_ok(dp_event_record(in.event_handle, in.stream));
    g.open = true;
    assert_ok(dp_stream_synchronise(in.stream, 10000));
    assert_int_equal(in.synchronise, DP_ERR_STATE);
    assert_int_equal(in.destroy, DP_ERR_STATE);
    assert_int_equal(in.abort, DP_ERR_STATE);
    assert_int_equal(in.event, DP_ERR_STATE);
    assert_int_equal(in.device, DP_ERR_STATE);
    assert_int_equal(in.reset, DP_ERR_STATE);
    assert_ok(dp_stream_destroy(in.stream, false));
    assert_ok(dp_event_destroy(in.event_handle));
}

/* Work left unsynchronised on the default stream comes before later work of other streams of the context. */
static void default_stream_goes_first(void **state) {
    (void)state;
    uint64_t value = 0;
    _Atomic uint32_t wrong = 0;
    void *stream = new_stream();
    for (uint64_t r = 0; r < 500; r++) {
        assert_ok(dp_task_submit(NULL, "advance", advance, NULL, &(cell){&value, 0, r + 1, &wrong}, sizeof(cell)));
        assert_ok(dp_task_submit(stream, "advance", advance, NULL, &(cell){&value, r + 1, 0, &wrong}, sizeof(cell)));
        assert_ok(dp_stream_synchronise(stream, -1));
    }
    assert_int_equal(wrong, 0);
    assert_ok(dp_stream_destroy(stream, false));
}

static void streams_keep_their_settings(void **state) {
    (void)state;
    void *stream;
    int32_t id = 0, device = -1;
    uint32_t priority = 99;
    uint64_t value = 1;
    assert_refused(dp_stream_create(8, &stream), DP_ERR_ARGUMENT, "priority is 8");
    assert_refused(dp_stream_create(0, NULL), DP_ERR_ARGUMENT, "stream is NULL");
    assert_ok(dp_stream_create(2, &stream));
    assert_ok(dp_stream_id(stream, &id));
    assert_true(id > 0);
    assert_ok(dp_stream_id(NULL, &id));
    assert_int_equal(id, 0);
    assert_ok(dp_stream_device(stream, &device));
    assert_int_equal(device, 0);
    assert_ok(dp_stream_priority(stream, &priority));
    assert_int_equal(priority, 2);
    assert_ok(dp_stream_attribute_get(stream, 1, &value));
    assert_int_equal(value, 0);
    assert_ok(dp_stream_attribute_set(stream, 1, 77));
    assert_ok(dp_stream_attribute_get(stream, 1, &value));
    assert_int_equal(value, 77);
    assert_refused(dp_stream_attribute_set(stream, 8, 1), DP_ERR_ARGUMENT, "stmAttrType is 8");
    assert_ok(dp_stream_destroy(stream, false));
}

static void nothing_is_left_behind(void **state) {
    (void)state;
    void *keep = new_stream(); /* so that caches of the default stream do not count */
    assert_ok(dp_stream_destroy(keep, false));
    assert_ok(dp_device_synchronise(-1));
    dp_mem_stats before = dp_mem_stats_of(DP_MEM_RUNTIME);
    for (int i = 0; i < 200; i++) {
        void *a = new_stream(), *b = new_stream(), *event = new_event();
        _Atomic int ran = 0, *counter = &ran;
        char large[1000] = {0};
        memcpy(large, &counter, sizeof counter);
        assert_ok(dp_task_submit(a, "count", count_task, NULL, large, sizeof large));
        assert_ok(dp_event_record(event, a));
        assert_ok(dp_event_wait(event, b));
        if (i % 2)
            assert_ok(dp_event_destroy(event));
        assert_ok(dp_stream_destroy(b, i % 3 == 0));
        assert_ok(dp_stream_destroy(a, false));
        if (i % 2 == 0)
            assert_ok(dp_event_destroy(event));
        assert_int_equal(ran, 1);
    }
    /* a worker may still be letting go of the last stream; before, of those of the tests above, so that less is fine */
    for (int i = 0; i < 1000 && dp_mem_stats_of(DP_MEM_RUNTIME).live_blocks > before.live_blocks; i++)
        sleep_ms(1);
    assert_true(dp_mem_stats_of(DP_MEM_RUNTIME).live_blocks <= before.live_blocks);
    assert_true(dp_mem_stats_of(DP_MEM_RUNTIME).live_bytes <= before.live_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_run_in_order),
        cmocka_unit_test(submitting_does_not_wait),
        cmocka_unit_test(events_order_across_streams),
        cmocka_unit_test(a_wait_keeps_its_record),
        cmocka_unit_test(events_tell_time_and_state),
        cmocka_unit_test(a_reset_spares_a_later_record),
        cmocka_unit_test(an_error_stays_with_its_stream),
        cmocka_unit_test(a_stopped_stream_still_records),
        cmocka_unit_test(destroying_waits_or_drops),
        cmocka_unit_test(an_aborted_wait_lets_go),
        cmocka_unit_test(a_task_cannot_wait_for_itself),
        cmocka_unit_test(default_stream_goes_first),
        cmocka_unit_test(streams_keep_their_settings),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
