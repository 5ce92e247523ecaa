/*
 * time_limit.h - how long a kernel may run, and how long a stream may wait for an event; for the floors above.
 *
 * A kernel over its limit is stopped at its next instruction, and its stream carries DP_ERR_KERNEL_TIMEOUT with the
 * line. One that issues no instructions cannot be stopped: a second later the device is lost, that is, every wait and
 * every new task returns that error with the kernel's name, until the kernel ends by itself. Limits count from the
 * start of the kernel on this machine's clock.
 */
#ifndef DOPPEL_RUNTIME_TIME_LIMIT_H
#define DOPPEL_RUNTIME_TIME_LIMIT_H

#include <stdint.h>

/* For kernels that start from now on; 0 = no limit, as at the start. */
void dp_time_limit_set_execute(uint64_t limit_ns);
/* For waits in streams that begin from now on; the stream then fails with DP_ERR_TIMEOUT and goes on. 0 = no limit. */
void dp_time_limit_set_wait(uint64_t limit_ns);

#endif
