#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef TEST_UCONTEXT
/* The portable switch, compiled a second time under other names. */
#define DP_FIBER_UCONTEXT 1
#define dp_fiber_create portable_create
#define dp_fiber_destroy portable_destroy
#define dp_fiber_start portable_start
#define dp_fiber_resume portable_resume
#define dp_fiber_yield portable_yield
#define dp_fiber_exit portable_exit
#define dp_fiber_abandon portable_abandon
#define dp_fiber_is_guard portable_is_guard
#define dp_fiber_main portable_main
#include "base/fiber.c"
#else
#include "base/fiber.h"
#endif
#include "base/memory.h"
#include "sanitizers.h"

typedef struct walk {
    dp_fiber *fiber;
    int steps, yields;
    double sum;
    bool leave;
} walk;

static void walker(void *argument) {
    walk *w = argument;
    double local[64];
    for (int i = 0; i < 64; i++)
        local[i] = i * 0.5 + w->steps;
    for (int i = 0; i < w->yields; i++) {
        w->steps++;
        dp_fiber_yield(w->fiber);
        for (int k = 0; k < 64; k++)
            w->sum += local[k];
    }
    if (w->leave)
        dp_fiber_exit(w->fiber);
    w->steps += 1000;
}

static void interleaved_fibers_keep_their_stacks(void **state) {
    (void)state;
    walk walks[8] = {0};
    for (int i = 0; i < 8; i++) {
        walks[i] = (walk){.fiber = dp_fiber_create(64 << 10), .yields = 3 + i};
        assert_non_null(walks[i].fiber);
        dp_fiber_start(walks[i].fiber, walker, &walks[i]);
    }
    for (int live = 8; live > 0;) {
        for (int i = 0; i < 8; i++) {
            if (walks[i].steps < 1000 && !dp_fiber_resume(walks[i].fiber))
                live--;
        }
    }
    for (int i = 0; i < 8; i++) {
        assert_int_equal(walks[i].steps, 1000 + walks[i].yields);
        assert_true(walks[i].sum == 1008.0 * walks[i].yields);
        dp_fiber_destroy(walks[i].fiber);
    }
}

enum { TIMES_USED = SANITIZED ? 2000 : 20000 };

static void fibers_are_used_again(void **state) {
    (void)state;
    walk w = {.fiber = dp_fiber_create(64 << 10)};
    for (int i = 0; i < TIMES_USED; i++) {
        w.leave = i % 3 == 1;
        w.steps = 0;
        w.yields = i % 4;
        dp_fiber_start(w.fiber, walker, &w);
        int resumes = 1;
        while (dp_fiber_resume(w.fiber)) {
            if (i % 5 == 4 && resumes == 2)
                break;
            resumes++;
        }
        if (i % 5 == 4 && w.yields >= 2)
            dp_fiber_abandon(w.fiber);
        else
            assert_int_equal(w.steps, w.yields + (w.leave ? 0 : 1000));
    }
    dp_fiber_destroy(w.fiber);
}

static void suspended_fibers_can_be_destroyed(void **state) {
    (void)state;
    size_t before = dp_mem_stats_of(DP_MEM_DEVICE).live_blocks;
    walk w = {.fiber = dp_fiber_create(1), .yields = 3};
    dp_fiber_start(w.fiber, walker, &w);
    assert_true(dp_fiber_resume(w.fiber));
    dp_fiber_destroy(w.fiber);
    dp_fiber_destroy(NULL);
    assert_int_equal(dp_mem_stats_of(DP_MEM_DEVICE).live_blocks, before);
}

static void nested(void *argument) {
    walk *w = argument;
    walk inner = {.fiber = dp_fiber_create(64 << 10), .yields = 2};
    dp_fiber_start(inner.fiber, walker, &inner);
    while (dp_fiber_resume(inner.fiber))
        dp_fiber_yield(w->fiber);
    w->steps = inner.steps;
    dp_fiber_destroy(inner.fiber);
}

static void a_fiber_may_resume_another(void **state) {
    (void)state;
    walk w = {.fiber = dp_fiber_create(128 << 10)};
    dp_fiber_start(w.fiber, nested, &w);
    int resumes = 1;
    while (dp_fiber_resume(w.fiber))
        resumes++;
    assert_int_equal(resumes, 3);
    assert_int_equal(w.steps, 1002);
    dp_fiber_destroy(w.fiber);
}

static void creation_fails_cleanly(void **state) {
    (void)state;
    dp_mem_fail_after(1);
    assert_null(dp_fiber_create(64 << 10));
    assert_null(dp_fiber_create((size_t)1 << 50));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interleaved_fibers_keep_their_stacks), cmocka_unit_test(fibers_are_used_again),
        cmocka_unit_test(suspended_fibers_can_be_destroyed),    cmocka_unit_test(a_fiber_may_resume_another),
        cmocka_unit_test(creation_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
