/* A thread's scratch: kept, grown, freed with the thread, absent when memory is. */
#include "base/memory.h"
#include "base/scratch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void is_kept_and_grows(void **state) {
    (void)state;
    char *first = dp_scratch(1000);
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % 64, 0);
    memset(first, 1, 1000);
    assert_ptr_equal(dp_scratch(10), first);
    char *large = dp_scratch(3 << 20);
    assert_non_null(large);
    memset(large, 2, 3 << 20);
    assert_ptr_equal(dp_scratch(1 << 20), large);
    assert_int_equal(dp_mem_stats_of(DP_MEM_SCRATCH).live_blocks, 1);
}

static void *user(void *unused) {
    (void)unused;
    return dp_scratch(5000);
}

static void ends_with_its_thread(void **state) {
    (void)state;
    size_t before = dp_mem_stats_of(DP_MEM_SCRATCH).live_blocks;
    pthread_t thread;
    void *theirs = NULL;
    assert_int_equal(pthread_create(&thread, NULL, user, NULL), 0);
    assert_int_equal(pthread_join(thread, &theirs), 0);
    assert_non_null(theirs);
    assert_int_equal(dp_mem_stats_of(DP_MEM_SCRATCH).live_blocks, before);
}

static void is_absent_without_memory(void **state) {
    (void)state;
    dp_mem_fail_after(1);
    assert_null(dp_scratch(64 << 20));
    dp_mem_fail_after(0);
    assert_non_null(dp_scratch(100));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_kept_and_grows), cmocka_unit_test(ends_with_its_thread),
                                       cmocka_unit_test(is_absent_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
