/*
 * pool.h - the worker threads: one per processor, shared by all devices, started on first use, spinning briefly before
 * they sleep.
 */
#ifndef DOPPEL_RUNTIME_POOL_H
#define DOPPEL_RUNTIME_POOL_H

#include "base/status.h"

/* Workers that can run at once, the caller included. DOPPEL_WORKERS=n overrides the processor count (1..256). */
unsigned dp_pool_width(void);

/*
 * Runs fn(context, begin, end) over [0, count) in pieces of at least `grain`, on this thread and on idle workers;
 * returns when all are done. May be called from tasks and from host threads, nested too (the inner one then runs
 * alone); not from kernels. Results must not depend on where it is cut.
 */
void dp_pool_for(size_t count, size_t grain, void (*fn)(void *context, size_t begin, size_t end), void *context);

#endif
