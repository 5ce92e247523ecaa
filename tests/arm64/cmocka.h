/*
 * cmocka.h - the few names of cmocka that the tests of the arm64 lane use, for a cross compiler without that library: the
 * same test sources run there. A failed assertion ends its test, and the program's status counts the failed tests.
 */
#ifndef DOPPEL_TEST_ARM64_CMOCKA_H
#define DOPPEL_TEST_ARM64_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};
#define cmocka_unit_test(function) {#function, function}
#define cmocka_run_group_tests(tests, set_up, tear_down)                                                               \
    run_tests(tests, sizeof(tests) / sizeof(tests)[0], (int (*)(void **))(set_up))

static jmp_buf test_left;

#define fail_msg(...)                                                                                                  \
    do {                                                                                                               \
        printf("%s:%d: ", __FILE__, __LINE__);                                                                         \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        longjmp(test_left, 1);                                                                                         \
    } while (0)
#define assert_true(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("%s is false", #condition);                                                                       \
    } while (0)
#define assert_false(condition) assert_true(!(condition))
#define assert_int_equal(a, b) assert_true((unsigned long long)(a) == (unsigned long long)(b))
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)

static inline int run_tests(const struct CMUnitTest *tests, size_t n, int (*set_up)(void **)) {
    void *state = NULL;
    volatile int failed = 0;
    if (set_up && set_up(&state) != 0)
        return 1;
    for (volatile size_t i = 0; i < n; i++) {
        if (setjmp(test_left) == 0) {
            tests[i].run(&state);
            printf("ok     %s\n", tests[i].name);
        } else {
            printf("FAILED %s\n", tests[i].name);
            failed++;
        }
        fflush(stdout);
    }
    return failed;
}

#endif
