/*
 * watchdog.h - time limits of what streams run: one thread that sleeps until the next limit is over. Internal to this
 * folder.
 *
 * Nothing is started, and nothing costs, until a limit is set.
 */
#ifndef DOPPEL_RUNTIME_WATCHDOG_H
#define DOPPEL_RUNTIME_WATCHDOG_H

#include "base/status.h"

/* Embedded in what is watched; zero-initialise. */
typedef struct dp_watch dp_watch;
struct dp_watch {
    dp_watch *next, **link; /* link NULL: not watched */
    uint64_t due_ns;
    /*
     * The time is over. Called with all watches locked, so it must not begin or end one. Returns when to be called
     * again, 0: this watch is done; then finish (may be NULL) is called without the lock, and may free it.
     */
    uint64_t (*due)(dp_watch *watch, uint64_t now_ns);
    void (*finish)(dp_watch *watch);
};

/* due_ns: CLOCK_MONOTONIC. False without a thread to watch: then there is no limit. */
bool dp_watch_begin(dp_watch *watch, uint64_t due_ns);
/* Afterwards due() is not running and will not be called. Does nothing when it is not watched. */
void dp_watch_end(dp_watch *watch);

/* Limits in force, in nanoseconds, 0 = none. */
uint64_t dp_watch_execute_limit_ns(void);
uint64_t dp_watch_wait_limit_ns(void);

void dp_watch_fork_prepare(void);
void dp_watch_fork_parent(void);
void dp_watch_fork_child(void);

#endif
