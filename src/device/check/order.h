/*
 * order.h - the order between the host and the queues (streams), and what each queued task touched of device memory.
 *
 * The host is one line of events, whichever of its threads acts: what a mutex or a join between two of them orders is
 * not seen, so a wait by any thread counts for all. Every queue is a line of its own. Vector clocks, as in clock.h: an
 * access of the host and a task are ordered if the host waited for the task before, or queued it later; two tasks of
 * different queues if the later one was queued after a wait of the host, or its queue waits for an event. Findings do
 * not depend on what ran when: an access is compared once the tasks it competes with have run. Thread-safe.
 */
#ifndef DOPPEL_DEVICE_CHECK_ORDER_H
#define DOPPEL_DEVICE_CHECK_ORDER_H

#include "device/check/blocks.h"
#include "device/check/finding.h"

/* DP_HOST_QUEUED, _ENDED, _WAITED, _ORDERED, _CLOSED. */
void dp_order_event(const dp_host_event *event);
/* DP_HOST_READ and _WRITE of device memory by a task or by the host itself, DP_HOST_FREE. */
void dp_order_access(const dp_host_event *event);
/*
 * A host access whose bytes hold no data: `finding` is added, unless the access turns out to be too early, which
 * explains it. Called after dp_order_access for the same event.
 */
void dp_order_suspect(const dp_finding *finding);
/* The launch's accesses, when it has ended. */
void dp_order_launch(const dp_launch_info *info, const dp_span *spans, size_t count);
/* Before the report: decides what still waits for tasks that have not run. */
void dp_order_flush(void);
/* True when there were more queues at a time than are followed: nothing is said about their order any more. */
bool dp_order_gave_up(void);

/* Around fork(); the child starts without queued work. */
void dp_order_fork_prepare(void);
void dp_order_fork_parent(void);
void dp_order_fork_child(void);

#endif
