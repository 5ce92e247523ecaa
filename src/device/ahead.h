/*
 * ahead.h - lines that the next copies of a block will probably touch are called into the caches while instructions compute.
 *
 * Copies that continue where an earlier one ended are streams; of each, as much as its last copy moved is asked for, a few lines
 * after every piece of an instruction: a burst of them would fill the line buffers and hold up everybody else. Only hints to
 * the processor: results and faults do not depend on them, and a wrong guess costs bandwidth alone.
 */
#ifndef DOPPEL_DEVICE_AHEAD_H
#define DOPPEL_DEVICE_AHEAD_H

#include "device/core.h"

/* Elements of an instruction between two steps: about 40 ns, for slow operations (Exp, Div, ...) fewer. */
enum { DP_AHEAD_PIECE = 1024, DP_AHEAD_SLOW_PIECE = 256 };

/* A copy read or wrote [addr, addr + bytes) of device memory that goes on until `end`. */
void dp_ahead_note(dp_ahead *ahead, bool writes, const uint8_t *addr, size_t bytes, const uint8_t *end);
void dp_ahead_fetch(dp_ahead *ahead);

static inline void dp_ahead_step(dp_core *core) {
    if (core->ahead.waiting)
        dp_ahead_fetch(&core->ahead);
}

/* How many of n elements to compute before the next step. */
static inline size_t dp_ahead_piece(const dp_core *core, size_t n, size_t piece) { return core->ahead.waiting ? piece : n; }

#endif
