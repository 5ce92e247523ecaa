/*
 * job.h - what the workers take from: streams whose first task can run, and jobs that several threads share.
 */
#ifndef DOPPEL_RUNTIME_JOB_H
#define DOPPEL_RUNTIME_JOB_H

#include <stdatomic.h>

#include "base/status.h"
#include "runtime/pool.h"

struct dp_stream;

/* A launch or a shared range. The owner embeds it, sets join, destroy and room, and starts with references = 1. */
typedef struct dp_job {
    struct dp_job *next, *previous; /* in the pool's list, under its lock */
    _Atomic bool listed;            /* changed under the lock; false again once nothing is left to take */
    _Atomic uint32_t references;
    uint32_t room; /* workers that may still take it; the last one takes it out of the list. Under the pool's lock */
    /* Takes part until there is nothing left to take, then withdraws the job. */
    void (*join)(struct dp_job *job);
    void (*destroy)(struct dp_job *job); /* the last reference went; may be NULL */
} dp_job;

/* Offers the job to idle workers, waking as many as `helpers` if they sleep. The list holds a reference. */
void dp_pool_publish(dp_job *job, unsigned helpers);
/* Takes it out of the list; nothing happens if it is not there. */
void dp_pool_withdraw(dp_job *job);
void dp_job_release(dp_job *job);

/* The stream's first task can run: some worker will dp_stream_drain it. The caller's reference goes with it. */
void dp_pool_ready(struct dp_stream *stream);
/* Takes the stream back from the ready list, to drain it here. False if a worker has it. */
bool dp_pool_take(struct dp_stream *stream);
/* False when no thread could be started: whoever waits must do the work. */
bool dp_pool_has_workers(void);

void dp_pool_fork_prepare(void);
void dp_pool_fork_parent(void);
void dp_pool_fork_child(void);

#endif
