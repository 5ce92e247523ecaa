/*
 * observer.h - how the checker and the trace look on. An observer never changes results; it may refuse an instruction.
 *
 * One observer per process, installed by dp_observer_install() before the first launch (from DOPPEL_MODE at start).
 * Calls about one core come from one thread at a time; calls about different cores run concurrently.
 */
#ifndef DOPPEL_DEVICE_OBSERVER_H
#define DOPPEL_DEVICE_OBSERVER_H

#include "base/status.h"
#include "doppel/insn.h"
#include "doppel/launch.h"

typedef struct dp_core dp_core;

/* One kernel launch as the observers see it. */
typedef struct dp_launch_info {
    uint64_t id; /* unique in the process, from 1 */
    dp_kernel_info kernel;
    uint32_t blocks;      /* logical blocks */
    uint32_t stream_id;   /* small number, 0 = default stream */
    uint32_t device_id;
    uint64_t queue, task; /* as in dp_host_event; 0 outside a stream */
    void *observer_state; /* the observer's, between launch_begin and launch_end */
    struct dp_print_text *print; /* what finished blocks printed, see print.h; NULL at the start */
} dp_launch_info;

/* What the host did, for memory tracking and the timeline. Times are CLOCK_MONOTONIC nanoseconds. */
typedef enum dp_host_event_kind {
    DP_HOST_CALL,   /* an API call: name, begin_ns, end_ns, status */
    DP_HOST_ALLOC,  /* device memory appeared: dst, size_bytes */
    DP_HOST_FREE,   /* device memory went: dst, size_bytes */
    DP_HOST_WRITE,  /* device memory is written by the host or a copy: dst, size_bytes; src unless it is a fill */
    DP_HOST_READ,   /* it is read by a copy: src, size_bytes; dst (NULL: by an operator). Both in the order of the stream */
    DP_HOST_FAULT,  /* an API call was refused: name, message, caller */
    /* Order. A queue is a stream (a number never used again), its tasks are numbered from 1 in the order they run in. */
    DP_HOST_QUEUED,  /* task `task` was queued: name, caller; told before it runs */
    DP_HOST_ENDED,   /* tasks up to `task` have run, or were dropped */
    DP_HOST_WAITED,  /* the host (any thread) knows that they have */
    DP_HOST_ORDERED, /* what `queue` is given from now on begins after task `after_task` of `after_queue` */
    DP_HOST_CLOSED,  /* the queue is no more */
    /* Objects that the user has to destroy: dst is the handle, message says what it is ("stream", "event"). */
    DP_HOST_MADE,
    DP_HOST_DESTROYED,
    DP_HOST_RESET /* the device was reset or a context destroyed, and their streams with it */
} dp_host_event_kind;

typedef struct dp_host_event {
    dp_host_event_kind kind;
    const char *name; /* API function */
    uint64_t begin_ns, end_ns;
    uint32_t stream_id, device_id;
    int status; /* vendor code returned */
    void *dst;
    const void *src;
    size_t size_bytes;
    const void *caller;  /* return address in the user's program */
    dp_loc loc;          /* of a refused launch: where it stands; line 0 otherwise */
    const char *message; /* sentence of a fault */
    dp_status reason;    /* of a fault: which kind; DP_ERR_KERNEL hands on what a kernel did */
    uint64_t queue, task; /* of READ and WRITE: the task that does it, 0 when the host does it at once */
    uint64_t after_queue, after_task;
} dp_host_event;

typedef struct dp_observer {
    const char *name;
    /* GM accesses must end where the allocation was asked to end, not where its padding does. */
    bool exact_bounds;
    /* Host accesses and frees of device memory first let queued work run, so that what is seen does not depend on chance. */
    bool settles;
    void (*launch_begin)(dp_launch_info *launch);
    void (*launch_end)(dp_launch_info *launch); /* all blocks are done, or abandoned after a fault */
    void (*block_begin)(dp_core *core);
    void (*block_end)(dp_core *core, bool faulted);
    /* Before the arithmetic. false: skip the instruction (the observer has reported why). */
    bool (*before)(dp_core *core, dp_insn *insn);
    void (*after)(dp_core *core, dp_insn *insn);
    /*
     * A fault the device itself found (illegal instruction, deadlock): observers record it with their own context. insn may be
     * NULL; core->fault_loc says where, core->fault_other names a second place if there is one.
     */
    void (*fault)(dp_core *core, const dp_insn *insn, const char *sentence);
    bool prints_faults; /* fault() reports: the device itself does not print the sentence */
    void (*host)(const dp_host_event *event);
} dp_observer;

/* NULL removes it. Members may be NULL. */
void dp_observer_install(const dp_observer *observer);
const dp_observer *dp_observer_current(void);
/* Forwards to the installed observer's host(), if any. */
void dp_observer_host_event(const dp_host_event *event);

#endif
