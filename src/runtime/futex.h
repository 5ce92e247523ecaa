/*
 * futex.h - a word that threads wait on, with a wake that costs no system call when nobody sleeps.
 */
#ifndef DOPPEL_RUNTIME_FUTEX_H
#define DOPPEL_RUNTIME_FUTEX_H

#include <stdatomic.h>

#include "base/status.h"

/* Zero-initialise. */
typedef struct dp_futex {
    _Atomic uint32_t word;    /* changes whenever something the waiters look at has changed */
    _Atomic uint32_t waiters; /* threads asleep or about to be */
} dp_futex;

/* The value to hand to dp_futex_wait: read it before looking at the condition. */
static inline uint32_t dp_futex_read(dp_futex *futex) {
    return atomic_load(&futex->word);
}

/* Sleeps unless the word differs from `seen`; may wake for no reason. deadline_ns on CLOCK_MONOTONIC, UINT64_MAX =
 * none. */
void dp_futex_wait(dp_futex *futex, uint32_t seen, uint64_t deadline_ns);
/* Changes the word and wakes up to `count` sleepers. The change that is announced must have been made before. */
void dp_futex_wake(dp_futex *futex, int count);

/* Deadline of a timeout: UINT64_MAX for negative ones. */
uint64_t dp_deadline_ns(int32_t timeout_ms);

static inline void dp_cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
