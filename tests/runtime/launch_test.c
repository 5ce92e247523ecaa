/* Launches: every core once, meetings, deadlocks, faults, arguments. */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "device/core.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/launch.h"
#include "runtime/pool.h"
#include "runtime/runtime_test.h"
#include "runtime/stream.h"

static int setup(void **state) {
    (void)state;
    return dp_device_set(0) == DP_OK ? 0 : -1;
}

/* What a part of the test prints on stderr, as text. */
static int saved_stderr;
static char captured[65536];

static void capture_begin(void) {
    fflush(stderr);
    saved_stderr = dup(2);
    FILE *file = tmpfile();
    dup2(fileno(file), 2);
    fclose(file);
}

static void capture_end(void) {
    lseek(2, 0, SEEK_SET);
    ssize_t n = read(2, captured, sizeof captured - 1);
    captured[n > 0 ? n : 0] = '\0';
    dup2(saved_stderr, 2);
    close(saved_stderr);
}

typedef struct counters {
    _Atomic uint32_t *seen; /* one per core */
    _Atomic uint32_t *wrong;
} counters;

static void count_cores(const void *args) {
    const counters *a = args;
    atomic_fetch_add(&a->seen[dp_core_current()->core_index], 1);
}

static const struct {
    uint8_t mix, cores;
} mixes[] = {{DP_MIX_AIV, 1}, {DP_MIX_AIC, 1}, {DP_MIX_AIC_1_1, 2}, {DP_MIX_AIC_1_2, 3}};

static void run_everywhere(dp_kernel_entry entry) {
    static const uint32_t blocks[] = {1, 2, 7, 48, 700};
    for (unsigned m = 0; m < 4; m++) {
        for (unsigned b = 0; b < 5; b++) {
            uint32_t units = blocks[b] * mixes[m].cores;
            _Atomic uint32_t *seen = calloc(units, sizeof *seen), wrong = 0;
            dp_kernel_info info = {.name = "count", .core_mix = mixes[m].mix};
            counters args = {seen, &wrong};
            assert_ok(dp_launch_submit(&info, blocks[b], NULL, entry, &args, sizeof args));
            assert_ok(dp_stream_synchronise(NULL, -1));
            for (uint32_t i = 0; i < units; i++)
                assert_int_equal(seen[i], 1);
            assert_int_equal(wrong, 0);
            free(seen);
        }
    }
}

static void every_core_runs_once(void **state) {
    (void)state;
    run_everywhere(count_cores);
}

static void check_identity(const void *args) {
    const counters *a = args;
    const dp_core *core = dp_core_current();
    unsigned mix = core->launch->kernel.core_mix;
    uint32_t cores = mixes[mix].cores, k = core->core_index % cores;
    bool cube = mix != DP_MIX_AIV && k == 0;
    bool right = core->block_idx == core->core_index / cores && core->block_num == core->launch->blocks &&
                 core->kind == (cube ? DP_CORE_AIC : DP_CORE_AIV) &&
                 core->sub_block_idx == (cores == 3 && k == 2 ? 1u : 0u) &&
                 core->sub_block_num == (cores == 3 ? 2u : 1u) && core->task_ration == (cores == 3 && !cube ? 2u : 1u);
    if (!right)
        atomic_fetch_add(a->wrong, 1);
    count_cores(args);
}

static void cores_know_who_they_are(void **state) {
    (void)state;
    run_everywhere(check_identity);
}

/* Waiting on something of our own, through the same door as the device. */
typedef struct meeting {
    _Atomic uint32_t arrived;
    uint32_t wanted;
    _Atomic uint32_t early, never;
    uint32_t rounds;
} meeting;

typedef struct arrival {
    meeting *m;
    uint32_t target;
} arrival;

static bool all_arrived(void *context) {
    const arrival *a = context;
    return atomic_load(&a->m->arrived) >= a->target;
}

static void describe_meeting(void *context, char *text, size_t text_bytes) {
    const arrival *a = context;
    snprintf(text, text_bytes, "waits for %u arrivals, %u came", a->target, atomic_load(&a->m->arrived));
}

static void wait_for_arrivals(meeting *m, uint32_t target) {
    dp_core *core = dp_core_current();
    arrival a = {m, target};
    dp_wait wait = {all_arrived, describe_meeting, &a, {"meeting.asc", 77}};
    while (!all_arrived(&a)) {
        if (core->host->park(core, &wait))
            continue;
        atomic_fetch_add(&m->never, 1);
        dp_fault(core, NULL, wait.loc, "deadlock between cores: %u of %u arrived", atomic_load(&m->arrived), target);
    }
    if (dp_core_current() != core)
        abort();
}

static void meet(const void *args) {
    meeting *m = *(meeting *const *)args;
    volatile uint32_t local[200];
    for (uint32_t r = 1; r <= m->rounds; r++) {
        for (int i = 0; i < 200; i++)
            local[i] = dp_core_current()->core_index + r;
        atomic_fetch_add(&m->arrived, 1);
        wait_for_arrivals(m, m->wanted * r);
        if (atomic_load(&m->arrived) < m->wanted * r)
            atomic_fetch_add(&m->early, 1);
        for (int i = 0; i < 200; i++) {
            if (local[i] != dp_core_current()->core_index + r)
                atomic_fetch_add(&m->early, 1);
        }
    }
}

static void all_blocks_meet(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 48, 300};
    for (unsigned i = 0; i < 5; i++) {
        meeting m = {.wanted = sizes[i], .rounds = 9}, *pointer = &m;
        dp_kernel_info info = {.name = "meet"};
        assert_ok(dp_launch_submit(&info, sizes[i], NULL, meet, &pointer, sizeof pointer));
        assert_ok(dp_stream_synchronise(NULL, -1));
        assert_int_equal(m.arrived, sizes[i] * 9);
        assert_int_equal(m.early, 0);
    }
}

/* Neighbours only: block b waits until block b + 1 has begun, the last waits for nobody. */
static void chain(const void *args) {
    meeting *m = *(meeting *const *)args;
    uint32_t from_end = dp_core_current()->block_num - 1 - dp_core_current()->block_idx;
    wait_for_arrivals(m, from_end);
    atomic_fetch_add(&m->arrived, 1);
}

static void a_chain_of_blocks_resolves(void **state) {
    (void)state;
    for (int round = 0; round < 20; round++) {
        meeting m = {0}, *pointer = &m;
        dp_kernel_info info = {.name = "chain"};
        assert_ok(dp_launch_submit(&info, 200, NULL, chain, &pointer, sizeof pointer));
        assert_ok(dp_stream_synchronise(NULL, -1));
        assert_int_equal(m.arrived, 200);
    }
}

static void a_deadlock_is_reported(void **state) {
    (void)state;
    void *stream, *other;
    assert_ok(dp_stream_create(0, &stream));
    assert_ok(dp_stream_create(0, &other));
    for (uint32_t blocks = 1; blocks <= 48; blocks += 47) {
        meeting m = {.wanted = blocks + 1, .rounds = 1}, *pointer = &m, n = {.wanted = 8, .rounds = 50}, *fine = &n;
        dp_kernel_info info = {.name = "stuck"};
        capture_begin();
        dp_status submitted = dp_launch_submit(&info, blocks, stream, meet, &pointer, sizeof pointer);
        dp_status beside = dp_launch_submit(&info, 8, other, meet, &fine, sizeof fine);
        dp_status stuck = dp_stream_synchronise(stream, -1);
        capture_end();
        assert_int_equal(submitted, DP_OK);
        assert_int_equal(beside, DP_OK);
        assert_refused(stuck, DP_ERR_KERNEL, "kernel stuck failed: meeting.asc:77: deadlock between cores");
        assert_non_null(strstr(captured, "deadlock in kernel stuck"));
        assert_non_null(strstr(captured, "meeting.asc:77: core 0: waits for"));
        assert_int_equal(m.never, 1); /* one block tells, the others are dropped */
        assert_ok(dp_stream_synchronise(other, -1));
        assert_int_equal(n.early, 0);
        assert_ok(dp_stream_abort(stream));
    }
    assert_ok(dp_stream_destroy(stream, false));
    assert_ok(dp_stream_destroy(other, false));
}

static void fault_in_block_5(const void *args) {
    meeting *m = *(meeting *const *)args;
    dp_core *core = dp_core_current();
    if (core->block_idx == 5)
        dp_fault(core, NULL, (dp_loc){"bad.asc", 12}, "something is wrong");
    if (m->wanted)
        wait_for_arrivals(m, m->wanted); /* never */
    atomic_fetch_add(&m->early, 1);
}

static uint32_t exceptions;
static char exception_kernel[32];

static void note_exception(const dp_exception_info *info, void *context) {
    (void)context;
    exceptions++;
    snprintf(exception_kernel, sizeof exception_kernel, "%s", info->kernel_name);
}

static void a_fault_ends_its_launch_only(void **state) {
    (void)state;
    void *bad, *good;
    assert_ok(dp_stream_create(0, &bad));
    assert_ok(dp_stream_create(0, &good));
    dp_launch_set_exception_callback(note_exception, NULL);
    exceptions = 0;
    for (uint32_t parked = 0; parked < 2; parked++) {
        meeting m = {.wanted = parked * 1000}, *pointer = &m, n = {.wanted = 8, .rounds = 20}, *fine = &n;
        dp_kernel_info info = {.name = "bad"};
        capture_begin();
        dp_launch_submit(&info, 20, bad, fault_in_block_5, &pointer, sizeof pointer);
        dp_launch_submit(&info, 8, good, meet, &fine, sizeof fine);
        dp_status status = dp_stream_synchronise(bad, -1);
        capture_end();
        assert_refused(status, DP_ERR_KERNEL, "bad.asc:12: something is wrong (block 5 of 20)");
        assert_non_null(strstr(captured, "bad.asc:12: error: something is wrong"));
        assert_ok(dp_stream_synchronise(good, -1));
        assert_refused(dp_device_synchronise(-1), DP_ERR_KERNEL, "bad.asc:12");
        /* the process and the stream go on */
        meeting again = {.wanted = 3, .rounds = 2}, *p = &again;
        assert_ok(dp_launch_submit(&info, 3, bad, meet, &p, sizeof p));
        assert_refused(dp_stream_synchronise(bad, -1), DP_ERR_KERNEL, "bad.asc:12");
        assert_int_equal(again.arrived, 6);
        assert_ok(dp_stream_abort(bad));
    }
    assert_int_equal(exceptions, 2);
    assert_string_equal(exception_kernel, "bad");
    dp_launch_set_exception_callback(NULL, NULL);
    assert_ok(dp_stream_destroy(bad, false));
    assert_ok(dp_stream_destroy(good, false));
}

typedef struct big_args {
    uint64_t words[500];
    _Atomic uint64_t *sum;
} big_args;

static void sum_args(const void *args) {
    const big_args *a = args;
    uint64_t sum = 0;
    for (int i = 0; i < 500; i++)
        sum += a->words[i];
    atomic_fetch_add(a->sum, sum);
}

static void arguments_are_copied(void **state) {
    (void)state;
    _Atomic uint64_t sum = 0;
    uint64_t expected = 0;
    big_args args = {.sum = &sum};
    for (uint64_t r = 1; r <= 50; r++) {
        for (uint64_t i = 0; i < 500; i++)
            args.words[i] = r * i;
        expected += 4 * r * (500 * 499 / 2);
        dp_kernel_info info = {.name = "sum"};
        assert_ok(dp_launch_submit(&info, 4, NULL, sum_args, &args, sizeof args));
        memset(args.words, 0xff, sizeof args.words);
    }
    assert_ok(dp_stream_synchronise(NULL, -1));
    assert_true(sum == expected);
}

static void bad_launches_are_refused(void **state) {
    (void)state;
    dp_kernel_info info = {.name = "k"};
    int x = 0;
    assert_refused(dp_launch_submit(NULL, 1, NULL, count_cores, NULL, 0), DP_ERR_ARGUMENT, "info is NULL");
    assert_refused(dp_launch_submit(&info, 1, NULL, NULL, NULL, 0), DP_ERR_ARGUMENT, "no entry");
    assert_refused(dp_launch_submit(&info, 0, NULL, count_cores, NULL, 0), DP_ERR_ARGUMENT,
                   "blockDim of kernel k is 0");
    assert_refused(dp_launch_submit(&info, 65536, NULL, count_cores, NULL, 0), DP_ERR_ARGUMENT, "65536");
    assert_refused(dp_launch_submit(&info, 1, NULL, count_cores, NULL, 8), DP_ERR_ARGUMENT, "args of kernel k is NULL");
    assert_refused(dp_launch_submit(&info, 1, &x, count_cores, NULL, 0), DP_ERR_HANDLE, "never a handle");
    info.core_mix = 9;
    assert_refused(dp_launch_submit(&info, 1, NULL, count_cores, NULL, 0), DP_ERR_ARGUMENT, "core mix");
    info.core_mix = 0;
    info.dynamic_ub_bytes = 1 << 30;
    assert_refused(dp_launch_submit(&info, 1, NULL, count_cores, NULL, 0), DP_ERR_ARGUMENT, "dynamic unified buffer");
}

typedef struct range_sum {
    _Atomic uint64_t sum, pieces;
} range_sum;

static void add_range(void *context, size_t begin, size_t end) {
    range_sum *r = context;
    uint64_t sum = 0;
    for (size_t i = begin; i < end; i++)
        sum += i;
    atomic_fetch_add(&r->sum, sum);
    atomic_fetch_add(&r->pieces, 1);
}

static void nest_range(void *context, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        dp_pool_for(100, 1, add_range, context);
}

static void ranges_are_covered(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 1000, 99999};
    for (int c = 0; c < 5; c++) {
        for (size_t grain = 0; grain < 3000; grain = grain * 3 + 1) {
            range_sum r = {0};
            dp_pool_for(counts[c], grain, add_range, &r);
            assert_true(r.sum == (counts[c] ? counts[c] * (counts[c] - 1) / 2 : 0));
        }
    }
    range_sum nested = {0};
    dp_pool_for(64, 1, nest_range, &nested);
    assert_true(nested.sum == 64 * 4950);
    dp_pool_attend();
    for (size_t count = 0; count < 300; count++) {
        range_sum each = {0};
        dp_pool_for_each(count, add_range, &each);
        assert_true(each.sum == (count ? count * (count - 1) / 2 : 0));
    }
    dp_pool_leave();
}

/* Processor time of the whole process in a while in which it does nothing. */
static double idle_share(void) {
    enum { WHILE_NS = 50000000 };
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&(struct timespec){.tv_nsec = WHILE_NS}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return ((double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec)) / WHILE_NS;
}

static void idle_workers_sleep(void **state) {
    (void)state;
    range_sum r = {0};
    dp_pool_attend();
    dp_pool_for(1000, 1, add_range, &r);
    assert_true(idle_share() < 0.5); /* also while somebody attends: after a millisecond */
    dp_pool_for(1000, 1, add_range, &r);
    dp_pool_leave();
    assert_true(idle_share() < 0.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_core_runs_once),   cmocka_unit_test(cores_know_who_they_are),
        cmocka_unit_test(all_blocks_meet),        cmocka_unit_test(a_chain_of_blocks_resolves),
        cmocka_unit_test(a_deadlock_is_reported), cmocka_unit_test(a_fault_ends_its_launch_only),
        cmocka_unit_test(arguments_are_copied),   cmocka_unit_test(bad_launches_are_refused),
        cmocka_unit_test(ranges_are_covered),      cmocka_unit_test(idle_workers_sleep),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
