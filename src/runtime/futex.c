#include "runtime/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/report.h"

void dp_futex_wait(dp_futex *futex, uint32_t seen, uint64_t deadline_ns) {
    struct timespec deadline = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    atomic_fetch_add(&futex->waiters, 1);
    /* WAIT_BITSET takes an absolute CLOCK_MONOTONIC time; the kernel compares the word again before it sleeps */
    syscall(SYS_futex, &futex->word, FUTEX_WAIT_BITSET_PRIVATE, seen, deadline_ns == UINT64_MAX ? NULL : &deadline,
            NULL, FUTEX_BITSET_MATCH_ANY);
    atomic_fetch_sub(&futex->waiters, 1);
}

void dp_futex_wake(dp_futex *futex, int count) {
    atomic_fetch_add(&futex->word, 1);
    if (atomic_load(&futex->waiters) > 0)
        syscall(SYS_futex, &futex->word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

uint64_t dp_deadline_ns(int32_t timeout_ms) {
    return timeout_ms < 0 ? UINT64_MAX : dp_clock_ns() + (uint64_t)timeout_ms * 1000000u;
}
