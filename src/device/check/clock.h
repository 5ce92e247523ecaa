/*
 * clock.h - who knows that what is finished: one vector clock per pipe of a core.
 *
 * Time is the running number of the instruction on its core (never reset while the core's state lives). done[p][q] is
 * the newest instruction of pipe q that is finished before pipe p starts its next one. Rules: kernel-level documentation
 * of SetFlag/WaitFlag/PipeBarrier; the scalar unit issues in program order, so what it has waited for holds for every
 * later instruction.
 */
#ifndef DOPPEL_DEVICE_CHECK_CLOCK_H
#define DOPPEL_DEVICE_CHECK_CLOCK_H

#include <string.h>

#include "doppel/types.h"

#define DP_CHECK_PIPES 8u /* DP_PIPE_COUNT rounded up to one vector register */

typedef struct dp_check_clock {
    uint32_t done[DP_CHECK_PIPES];
} __attribute__((aligned(32))) dp_check_clock;

typedef struct dp_check_clocks {
    dp_check_clock pipe[DP_CHECK_PIPES];
    uint32_t last[DP_CHECK_PIPES]; /* newest instruction issued to each pipe */
    uint32_t now;                  /* newest instruction of the core */
} dp_check_clocks;

static inline void dp_clock_join(dp_check_clock *into, const dp_check_clock *from) {
    for (unsigned q = 0; q < DP_CHECK_PIPES; q++)
        into->done[q] = into->done[q] > from->done[q] ? into->done[q] : from->done[q];
}

/* Everything issued so far is finished for everyone: block start, PipeBarrier<PIPE_ALL>. */
static inline void dp_clock_barrier_all(dp_check_clocks *c) {
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++)
        memcpy(c->pipe[p].done, c->last, sizeof c->last);
}

/* PipeBarrier<p>: pipe p goes on when its own earlier instructions are finished. */
static inline void dp_clock_barrier(dp_check_clocks *c, unsigned p) { c->pipe[p].done[p] = c->last[p]; }

/* Next instruction on pipe p; returns its time. */
static inline uint32_t dp_clock_issue(dp_check_clocks *c, unsigned p) {
    uint32_t now = ++c->now;
    c->last[p] = now;
    if (p != DP_PIPE_S) {
        /* stores of the scalar unit itself may still be on their way: only what it has waited for counts */
        uint32_t scalar = c->pipe[p].done[DP_PIPE_S];
        dp_clock_join(&c->pipe[p], &c->pipe[DP_PIPE_S]);
        c->pipe[p].done[DP_PIPE_S] = scalar;
    }
    c->pipe[DP_PIPE_S].done[DP_PIPE_S] = c->last[DP_PIPE_S];
    return now;
}

/* What a flag raised now by pipe p carries: all its earlier instructions are finished, and all they knew. */
static inline dp_check_clock dp_clock_of_flag(const dp_check_clocks *c, unsigned p) {
    dp_check_clock flag = c->pipe[p];
    flag.done[p] = c->last[p];
    return flag;
}

#endif
