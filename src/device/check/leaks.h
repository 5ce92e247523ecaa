/*
 * leaks.h - what the host program has made and not given back when the process ends: device memory, streams, events.
 * Thread-safe.
 */
#ifndef DOPPEL_DEVICE_CHECK_LEAKS_H
#define DOPPEL_DEVICE_CHECK_LEAKS_H

#include "device/observer.h"

/* DP_HOST_MADE, _DESTROYED, _RESET. */
void dp_leaks_event(const dp_host_event *event);
/* Adds a finding for every line that made what is still there. Nothing unless the process exits with status 0: who
 * gives up at an error does not clean up. */
void dp_leaks_report(void);
/* Called once; learns the exit status from then on. */
void dp_leaks_install(void);
/* In the child of a fork: what is there belongs to the parent. */
void dp_leaks_fork_child(void);

#endif
