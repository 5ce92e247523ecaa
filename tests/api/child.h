/*
 * child.h - tests of the public interface, each body in a child process of its own: the library's state is per process,
 * and a crash or a hang of the body is a failure of that one test.
 */
#ifndef TESTS_API_CHILD_H
#define TESTS_API_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "acl/acl.h"

#define CHILD_SECONDS 30

/* Ends the child with a message when the condition does not hold. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s (last message: %s)\n", __FILE__, __LINE__, #condition,                \
                    aclGetRecentErrMsg());                                                                             \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#define CHECK_OK(call)                                                                                                 \
    do {                                                                                                               \
        int code_of_call = (call);                                                                                     \
        if (code_of_call) {                                                                                            \
            fprintf(stderr, "%s:%d: %s gave %d: %s\n", __FILE__, __LINE__, #call, code_of_call, aclGetRecentErrMsg()); \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* The call fails with this code, and its sentence contains each of the words (NULL-terminated list). */
#define CHECK_FAILS(code, call, ...)                                                                                   \
    check_fails(__FILE__, __LINE__, #call, code, call, (const char *const[]){__VA_ARGS__, NULL})

static inline void check_fails(const char *file, int line, const char *text, int expected, int code,
                               const char *const *words) {
    const char *message = aclGetRecentErrMsg();
    int good = code == expected && message;
    for (; good && *words; words++)
        good = strstr(message, *words) != NULL;
    if (good)
        return;
    fprintf(stderr, "%s:%d: %s gave %d, expected %d; message: %s; missing: %s\n", file, line, text, code, expected,
            message ? message : "(null)", *words ? *words : "-");
    _exit(1);
}

static inline void run_in_child(void (*body)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        body();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        print_error("the child was ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* TEST(name) { body } defines a test whose body runs in a child. */
#define TEST(name)                                                                                                     \
    static void body_##name(void);                                                                                     \
    static void name(void **state) {                                                                                   \
        (void)state;                                                                                                   \
        run_in_child(body_##name);                                                                                     \
    }                                                                                                                  \
    static void body_##name(void)

#endif
