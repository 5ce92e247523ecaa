/*
 * The shadow of a memory against a plain model that keeps every stamp of every byte: random accesses of random sizes by
 * several pipes with random flags and barriers. The shadow must complain exactly when the model does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/check/blocks.h"
#include "device/check/gm.h"
#include "device/check/shadow.h"

enum { BYTES = 32 * 24, PIPES = 5 };

typedef struct model {
    uint32_t writer[BYTES], writer_pipe[BYTES];
    uint32_t reader[PIPES][BYTES];
} model;

typedef struct world {
    dp_check_clocks clocks;
    unsigned pipe;
    unsigned hazards; /* bit per dp_hazard, in the last access */
} world;

static uint64_t seed = 1;
static uint32_t rnd(uint32_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % below;
}

static void on_hazard(void *context, dp_hazard hazard, dp_stamp earlier, uint32_t offset, uint32_t bytes) {
    world *w = context;
    assert_true(bytes >= 1 && offset + bytes <= BYTES);
    assert_true(dp_stamp_pipe(earlier) < PIPES);
    w->hazards |= 1u << hazard;
}

/* Hazards the model sees, not counting later what the access itself learns. */
static unsigned model_access(model *m, const world *w, bool write, uint32_t offset, uint32_t bytes, uint32_t lanes) {
    const uint32_t *done = w->clocks.pipe[w->pipe].done;
    unsigned hazards = 0;
    for (uint32_t b = offset; b < offset + bytes; b++) {
        if (!(lanes >> (b % DP_CELL_BYTES) & 1))
            continue;
        if (m->writer[b] > done[m->writer_pipe[b]])
            hazards |= 1u << (write ? DP_HAZARD_WAW : DP_HAZARD_RAW);
        for (unsigned p = 0; write && p < PIPES; p++) {
            if (p != w->pipe && m->reader[p][b] > done[p])
                hazards |= 1u << DP_HAZARD_WAR;
        }
    }
    for (uint32_t b = offset; b < offset + bytes; b++) {
        if (!(lanes >> (b % DP_CELL_BYTES) & 1))
            continue;
        if (write) {
            m->writer[b] = w->clocks.now;
            m->writer_pipe[b] = w->pipe;
        } else {
            m->reader[w->pipe][b] = w->clocks.now;
        }
    }
    return hazards;
}

/* After a report the checker takes everything to be ordered; so that old trouble is not reported again. */
static void settle(world *w, model *m, uint32_t offset, uint32_t bytes) {
    for (uint32_t b = offset; b < offset + bytes; b++) {
        uint32_t *done = w->clocks.pipe[w->pipe].done;
        if (done[m->writer_pipe[b]] < m->writer[b])
            done[m->writer_pipe[b]] = m->writer[b];
    }
    dp_clock_barrier_all(&w->clocks);
}

static void random_order(world *w) {
    unsigned p = rnd(PIPES), q = rnd(PIPES);
    switch (rnd(3)) {
    case 0: {
        dp_check_clock flag = dp_clock_of_flag(&w->clocks, p);
        dp_clock_join(&w->clocks.pipe[q], &flag);
        break;
    }
    case 1:
        dp_clock_barrier(&w->clocks, p);
        break;
    default:
        if (rnd(8) == 0)
            dp_clock_barrier_all(&w->clocks);
        break;
    }
}

/* Of each block: every second float, the others, one half, a few halves, all. */
static uint32_t random_lanes(void) {
    static const uint32_t lanes[] = {0x0f0f0f0f, 0xf0f0f0f0, 0x0000ffff, 0x3300cc30, 0x000000ff, ~0u, ~0u};
    return lanes[rnd(sizeof lanes / sizeof lanes[0])];
}

static void run_world(unsigned steps, uint32_t align, bool masked) {
    dp_shadow shadow;
    model *m = calloc(1, sizeof *m);
    world w = {0};
    unsigned complaints = 0;
    assert_true(dp_shadow_create(&shadow, BYTES));
    for (unsigned i = 0; i < steps; i++) {
        if (rnd(2))
            random_order(&w);
        uint32_t offset = rnd(BYTES / align) * align;
        static const uint32_t sizes[] = {8, 300, 32 * 14};
        if (align > 1 && rnd(2)) /* the same tiles again and again */
            offset = rnd(3) * 256;
        uint32_t bytes = 1 + rnd(sizes[rnd(3)]);
        bytes = (bytes + align - 1) / align * align;
        if (bytes > BYTES - offset)
            bytes = BYTES - offset;
        w.pipe = rnd(PIPES);
        w.hazards = 0;
        uint32_t time = dp_clock_issue(&w.clocks, w.pipe);
        bool write = rnd(2);
        dp_shadow_access access = {dp_stamp_make(time, i % 1000, w.pipe), &w.clocks.pipe[w.pipe], false, on_hazard, &w};
        uint32_t lanes = masked ? random_lanes() : ~0u;
        unsigned expected = model_access(m, &w, write, offset, bytes, lanes);
        uint32_t cell = offset / DP_CELL_BYTES, end = cell + bytes / DP_CELL_BYTES;
        if (masked && write)
            dp_shadow_write_lanes(&shadow, &access, cell, end, lanes);
        else if (masked)
            dp_shadow_read_lanes(&shadow, &access, cell, end, lanes);
        else if (write)
            dp_shadow_write(&shadow, &access, offset, bytes);
        else
            dp_shadow_read(&shadow, &access, offset, bytes);
        assert_int_equal(w.hazards & 1u << DP_HAZARD_RAW, expected & 1u << DP_HAZARD_RAW);
        assert_int_equal(w.hazards != 0, expected != 0); /* one of WAR and WAW may stand for both */
        if (expected) {
            complaints++;
            settle(&w, m, offset, bytes);
        }
    }
    assert_true(complaints > steps / 100);
    assert_true(complaints < steps);
    dp_shadow_destroy(&shadow);
    free(m);
}

static void test_bytes(void **state) {
    (void)state;
    for (seed = 1; seed < 40;) {
        uint64_t start = seed;
        run_world(3000, 1, false);
        seed = start + 1;
    }
}
static void test_cells(void **state) {
    (void)state;
    seed = 99;
    run_world(20000, 32, false);
}
static void test_words(void **state) {
    (void)state;
    seed = 7;
    run_world(20000, 4, false);
}
static void test_lanes(void **state) {
    (void)state;
    seed = 5;
    run_world(60000, 32, true);
}

static void test_data(void **state) {
    (void)state;
    dp_shadow shadow;
    uint8_t valid[BYTES] = {0};
    assert_true(dp_shadow_create(&shadow, BYTES));
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t offset = rnd(BYTES), bytes = 1 + rnd(100), first = 0, expected_first = 0, expected = 0;
        if (bytes > BYTES - offset)
            bytes = BYTES - offset;
        switch (rnd(5)) {
        case 0:
            dp_shadow_set_data(&shadow, offset, bytes);
            memset(valid + offset, 1, bytes);
            break;
        case 1:
            dp_shadow_clear_data(&shadow, offset, bytes / 4, 1);
            memset(valid + offset, 0, bytes / 4);
            break;
        case 2: {
            uint32_t cell = offset / DP_CELL_BYTES, end = cell + rnd(BYTES / DP_CELL_BYTES - cell) + 1, lanes = random_lanes();
            for (uint32_t b = cell * DP_CELL_BYTES; b < end * DP_CELL_BYTES; b++) {
                if ((lanes >> (b % DP_CELL_BYTES) & 1) && !valid[b] && !expected++)
                    expected_first = b;
            }
            assert_int_equal(dp_shadow_missing_lanes(&shadow, cell, end, lanes, &first), expected);
            if (expected)
                assert_int_equal(first, expected_first);
            if (rnd(8))
                break;
            dp_shadow_set_data_lanes(&shadow, cell, end, lanes);
            for (uint32_t b = cell * DP_CELL_BYTES; b < end * DP_CELL_BYTES; b++)
                valid[b] |= lanes >> (b % DP_CELL_BYTES) & 1;
            break;
        }
        default:
            for (uint32_t b = offset; b < offset + bytes; b++) {
                if (!valid[b] && !expected++)
                    expected_first = b;
            }
            assert_int_equal(dp_shadow_missing(&shadow, offset, bytes, &first), expected);
            if (expected)
                assert_int_equal(first, expected_first);
        }
    }
    dp_shadow_forget_data(&shadow);
    uint32_t first;
    assert_int_equal(dp_shadow_missing(&shadow, 0, BYTES, &first), BYTES);
    dp_shadow_destroy(&shadow);
}

static void test_gm_data(void **state) {
    (void)state;
    enum { SIZE = 1000, PAD = 64 };
    static uint8_t memory[SIZE + 2 * PAD], valid[SIZE];
    uint8_t *base = memory + 17; /* any address */
    dp_gm_shadow_cache cache = {0};
    dp_gm_shadow_add(base, SIZE, 1, NULL);
    dp_gm_shadow *shadow = dp_gm_shadow_find(&cache, base + SIZE - 1);
    assert_non_null(shadow);
    assert_null(dp_gm_shadow_find(&cache, base + SIZE));
    assert_null(dp_gm_shadow_find(&cache, base - 1));
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t offset = rnd(SIZE), bytes = 1 + rnd(300), expected = 0, expected_first = 0;
        uint32_t inside = bytes < SIZE - offset ? bytes : SIZE - offset;
        const void *first = NULL;
        switch (rnd(5)) {
        case 0:
            dp_gm_shadow_set(shadow, base + offset, bytes);
            memset(valid + offset, 1, inside);
            break;
        case 1:
            dp_gm_shadow_clear(shadow, base + offset, bytes);
            memset(valid + offset, 0, inside);
            break;
        default:
            for (uint32_t b = offset; b < offset + inside; b++) {
                if (!valid[b] && !expected++)
                    expected_first = b;
            }
            assert_int_equal(dp_gm_shadow_missing(shadow, base + offset, bytes, &first), expected);
            if (expected)
                assert_ptr_equal(first, base + expected_first);
        }
    }
    dp_gm_shadow_set(shadow, base, SIZE);
    const void *first;
    assert_int_equal(dp_gm_shadow_missing(shadow, base, SIZE, &first), 0);
    dp_gm_shadow_clear(shadow, base + 5, 1);
    assert_int_equal(dp_gm_shadow_missing(shadow, base, SIZE, &first), 1);
    dp_gm_story story;
    dp_gm_shadow_remove(base, NULL);
    assert_null(dp_gm_shadow_find(&cache, base));
    assert_true(dp_gm_story_of(base + 3, &story));
    assert_true(story.freed);
}

static void count_conflict(void *context, const dp_span *a, const dp_span *b, uintptr_t begin, uintptr_t end) {
    assert_true(begin < end && a->core != b->core);
    ++*(unsigned *)context;
}

static unsigned conflicts_of(dp_blocks *blocks) {
    unsigned found = 0;
    dp_blocks_sweep(blocks, count_conflict, &found);
    dp_blocks_destroy(blocks);
    return found;
}

static void add(dp_blocks *blocks, uint32_t core, uintptr_t begin, size_t bytes, uint32_t epoch, uint32_t mode) {
    dp_spans spans = {0};
    dp_spans_add(&spans, begin, bytes, epoch, 1, mode);
    dp_blocks_take(blocks, core, &spans);
    dp_free(spans.list);
}

static void test_blocks(void **state) {
    (void)state;
    dp_blocks *b = dp_blocks_create(4);
    for (uint32_t core = 0; core < 4; core++)
        add(b, core, 1000 + core * 100, 100, 1, DP_SPAN_WRITE); /* neighbours touch, but share nothing */
    assert_int_equal(conflicts_of(b), 0);

    b = dp_blocks_create(4);
    for (uint32_t core = 0; core < 4; core++)
        add(b, core, 1000 + core * 100, 101, 1, DP_SPAN_WRITE);
    assert_int_equal(conflicts_of(b), 3);

    b = dp_blocks_create(4);
    for (uint32_t core = 0; core < 4; core++)
        add(b, core, 1000, 8, 1, DP_SPAN_WRITE | DP_SPAN_ATOMIC);
    assert_int_equal(conflicts_of(b), 0);

    b = dp_blocks_create(2);
    add(b, 0, 1000, 8, 1, DP_SPAN_READ);
    add(b, 1, 1000, 8, 1, DP_SPAN_READ);
    assert_int_equal(conflicts_of(b), 0);

    b = dp_blocks_create(2);
    add(b, 0, 1000, 8, 1, DP_SPAN_WRITE);
    add(b, 1, 1004, 100, 1, DP_SPAN_READ);
    assert_int_equal(conflicts_of(b), 1);
}

/* Core 0 writes and raises, core 1 waits and reads: ordered. What core 0 does after that is not. */
static void test_blocks_ordered(void **state) {
    (void)state;
    dp_blocks *b = dp_blocks_create(2);
    uint32_t epoch0 = dp_blocks_raise(b, 0, 1);
    uint32_t epoch1 = dp_blocks_wait(b, 1, 1);
    assert_int_equal(epoch0, 2);
    assert_int_equal(epoch1, 2);
    add(b, 0, 1000, 8, 1, DP_SPAN_WRITE);
    add(b, 1, 1000, 8, 2, DP_SPAN_READ);
    assert_int_equal(conflicts_of(b), 0);

    b = dp_blocks_create(2);
    epoch0 = dp_blocks_raise(b, 0, 1);
    epoch1 = dp_blocks_wait(b, 1, 1);
    add(b, 0, 1000, 8, epoch0, DP_SPAN_WRITE);
    add(b, 1, 1000, 8, epoch1, DP_SPAN_READ);
    assert_int_equal(conflicts_of(b), 1);

    b = dp_blocks_create(2); /* read before the wait */
    dp_blocks_raise(b, 0, 1);
    dp_blocks_wait(b, 1, 1);
    add(b, 0, 1000, 8, 1, DP_SPAN_WRITE);
    add(b, 1, 1000, 8, 1, DP_SPAN_READ);
    assert_int_equal(conflicts_of(b), 1);
}

static void test_spans_merge(void **state) {
    (void)state;
    dp_spans spans = {0};
    for (unsigned i = 0; i < 100000; i++)
        dp_spans_add(&spans, 4096 + i * 64, 64, 1, 5, DP_SPAN_READ);
    assert_int_equal(spans.count, 1);
    for (unsigned i = 0; i < 1000; i++) { /* backwards: joined when compacted */
        dp_spans_add(&spans, 1000000000 - i * 64, 64, 1, 6, DP_SPAN_WRITE);
    }
    dp_spans_compact(&spans);
    assert_int_equal(spans.count, 2);
    assert_int_equal(spans.lost, 0);
    dp_free(spans.list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),   cmocka_unit_test(test_cells),  cmocka_unit_test(test_words),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_data),    cmocka_unit_test(test_gm_data), cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_blocks_ordered), cmocka_unit_test(test_spans_merge),
    };
    return cmocka_run_group_tests_name("check_shadow", tests, NULL, NULL);
}
