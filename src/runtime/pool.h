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
/* The same in pieces of one, for work that was cut already. */
void dp_pool_for_each(size_t count, void (*fn)(void *context, size_t begin, size_t end), void *context);

/*
 * Between these two calls (they nest, on any threads) ranges follow each other, as the nodes of a model do: idle workers
 * then spin up to a millisecond before they sleep. After the last dp_pool_leave they go on as always.
 */
void dp_pool_attend(void);
void dp_pool_leave(void);

#endif
