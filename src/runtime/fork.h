/*
 * fork.h - what a forked child may count on: no lock held by a thread it does not have, idle streams, fresh workers on
 * first use, device memory as it was (copy on write; memory mapped by the virtual memory calls stays shared).
 *
 * The runtime's own state is named in fork.c. What the floors above guard joins here, so that all of it is taken in one
 * order: theirs before the runtime's, for they call down while they hold it.
 */
#ifndef DOPPEL_RUNTIME_FORK_H
#define DOPPEL_RUNTIME_FORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Parts of a higher floor come first; those of one floor must not nest. */
typedef enum dp_fork_floor { DP_FORK_API, DP_FORK_GRAPH, DP_FORK_FLOORS } dp_fork_floor;

/* Static; the last two are this module's, and begin as zeroes. */
typedef struct dp_fork_part {
    dp_fork_floor floor;
    pthread_mutex_t *lock;        /* held over the fork, before the next two are called; NULL: none */
    void (*before)(void);         /* takes what else there is; NULL: nothing */
    void (*after)(bool is_child); /* gives it back; in the child, threads that were at work are gone */
    struct dp_fork_part *next;
    _Atomic bool joined;
} dp_fork_part;

/* Before the part's lock is taken; only the first call does anything. */
void dp_fork_join(dp_fork_part *part);
/* dp_fork_join, and takes the part's lock. */
void dp_fork_lock(dp_fork_part *part);

/* Registers the runtime; called once. */
void dp_fork_install(void);

#endif
