/*
 * profile.h - DOPPEL_PROFILE: when every task of every stream ran, as a timeline file and as a table by name.
 *
 * DOPPEL_PROFILE is a list of places, separated by commas: FILE.json gets the timeline (Trace Event format), FILE.txt
 * the table, `stderr` the table. Without a place for the table it goes to stderr. %p in a name is the process number.
 * The timeline is a whole JSON document after every write, so it can be read whatever ended the process.
 */
#ifndef DOPPEL_RUNTIME_PROFILE_H
#define DOPPEL_RUNTIME_PROFILE_H

#include <stdatomic.h>

#include "base/status.h"

extern _Atomic int dp_profile_state; /* 0: not asked yet, 1: off, 2: on */
bool dp_profile_open(void);

/* One load when it is off. */
static inline bool dp_profile_on(void) {
    return DP_UNLIKELY(atomic_load_explicit(&dp_profile_state, memory_order_relaxed) != 1) && dp_profile_open();
}

struct dp_stream;
/* A task of this stream ran from begin_ns until now. */
void dp_profile_task(const struct dp_stream *stream, const char *name, uint64_t begin_ns);
/*
 * Called by the function of a task that knows more about itself, on its thread: when it ran, what it worked on, and the
 * way it took. The task is then not recorded once more. On a thread that runs no task it stands for a synchronous call.
 */
void dp_profile_operator(const char *name, uint64_t begin_ns, uint64_t end_ns, const char *tensors, const char *path);
/* The node of a model that the operators of this thread belong to from now on, in the timeline's "node"; NULL: to none. */
void dp_profile_node(const char *name);

void dp_profile_fork_prepare(void);
void dp_profile_fork_parent(void);
/* The child's work is not recorded: the files are its parent's. */
void dp_profile_fork_child(void);

#endif
