/*
 * launch_state.h - a launch while it runs. For launch.c, seat.c and fork.c only.
 */
#ifndef DOPPEL_RUNTIME_LAUNCH_STATE_H
#define DOPPEL_RUNTIME_LAUNCH_STATE_H

#include <pthread.h>

#include "device/core.h"
#include "device/sync.h"
#include "runtime/job.h"
#include "runtime/stream_queue.h"
#include "runtime/watchdog.h"

typedef struct dp_seat dp_seat;

/* Units are cores: cores_per_block for every block, numbered as core->core_index. */
typedef struct dp_launch {
    dp_job job; /* first: threads that help know it by that */
    dp_launch_info info;
    const dp_observer *observer;
    dp_stream *stream;
    dp_kernel_entry entry;
    uint32_t cores_per_block, units;
    uint32_t task_id;
    size_t args_bytes;
    uint64_t begin_ns;
    dp_launch_sync *sync;
    dp_watch watch;       /* of the time limit */
    uint64_t limit_ns;    /* 0: none */
    bool lost;            /* it did not stop; under the watchdog's lock until the launch has ended */
    _Atomic bool overdue; /* it is being stopped */

    _Alignas(64) _Atomic uint32_t next; /* unit to begin; at or past units: all have begun */
    _Atomic uint32_t remaining;         /* units not ended */
    _Atomic uint32_t parked;            /* changed under lock */
    _Atomic bool failed;                /* begin no more units, drop parked ones */

    pthread_mutex_t lock;
    dp_seat *parked_seats;
    dp_seat *_Atomic victim; /* the parked block that reports the deadlock */
    bool explained;          /* error holds the first fault */
    char error[DP_STREAM_ERROR_BYTES];

    _Alignas(64) uint8_t args[];
} dp_launch;

/* Marks the launch; the first sentence stays. */
void dp_launch_fail(dp_launch *launch, const char *sentence);
/* "5 s" or "20 ms": the launch's time limit. Returns text. */
const char *dp_launch_limit_text(const dp_launch *launch, char text[32]);
/* Runs units on this thread until none is left to begin and all that were begun here have ended. True if the last unit
 * of all ended here. */
bool dp_launch_take_part(dp_launch *launch);

enum { DP_KERNEL_STACK_BYTES = 256 << 10 }; /* of one block */
/* True when the address is where the core's block lands after its stack is full. For signal handlers. */
bool dp_seat_overflowed(const dp_core *core, const void *address);

/* Lets the next instruction of each of its running blocks be the last. */
void dp_seat_stop(const dp_launch *launch);

void dp_seat_fork_prepare(void);
void dp_seat_fork_done(void);

/* known_kernel.c */
void dp_known_kernel_fork_prepare(void);
void dp_known_kernel_fork_done(void);

#endif
