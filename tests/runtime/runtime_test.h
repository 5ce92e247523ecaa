/* What the runtime's tests share. */
#ifndef DOPPEL_TESTS_RUNTIME_TEST_H
#define DOPPEL_TESTS_RUNTIME_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/status.h"

static inline void expect_ok(dp_status status, const char *what, int line) {
    if (status != DP_OK)
        fail_msg("line %d: %s: %s: %s", line, what, dp_status_name(status), dp_fail_message());
}
#define assert_ok(call) expect_ok(call, #call, __LINE__)

/* The call is refused with that status, and its sentence contains `words`. */
static inline void expect_refused(dp_status status, dp_status wanted, const char *words, const char *what, int line) {
    if (status != wanted)
        fail_msg("line %d: %s: %s instead of %s (%s)", line, what, dp_status_name(status), dp_status_name(wanted),
                 dp_fail_message());
    if (!strstr(dp_fail_message(), words))
        fail_msg("line %d: %s: \"%s\" does not say \"%s\"", line, what, dp_fail_message(), words);
    dp_fail_clear();
}
#define assert_refused(call, wanted, words) expect_refused(call, wanted, words, #call, __LINE__)

static inline void sleep_ms(unsigned ms) {
    nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

static inline uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* A host task that stands in a stream until it is opened. */
typedef struct gate {
    _Atomic bool entered, open;
} gate;

static inline void stand_in_gate(void *argument) {
    gate *g = argument;
    atomic_store(&g->entered, true);
    while (!atomic_load(&g->open))
        sleep_ms(1);
}

static inline void await_entry(gate *g) {
    while (!atomic_load(&g->entered))
        sleep_ms(1);
}

#endif
