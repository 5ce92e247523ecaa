/*
 * status.h - what internal functions return, and the sentence that goes with a failure.
 *
 * The place that detects a failure calls dp_fail() once, with one sentence naming the argument, the offending value and
 * what was expected. Callers pass the status on. src/api maps it to the vendor's code.
 */
#ifndef DOPPEL_BASE_STATUS_H
#define DOPPEL_BASE_STATUS_H

#include "doppel/abi.h"

typedef enum dp_status {
    DP_OK = 0,
    DP_ERR_ARGUMENT,      /* a value outside its documented range, NULL where it is not allowed */
    DP_ERR_HANDLE,        /* a handle of the wrong kind, destroyed, or never created */
    DP_ERR_ADDRESS,       /* a pointer that is not (inside) device memory, or past its end */
    DP_ERR_STATE,         /* a call that is legal but not now (no context set, not subscribed, ...) */
    DP_ERR_NOT_FOUND,     /* a name, file, symbol or device that does not exist */
    DP_ERR_OUT_OF_MEMORY, /* host or device memory exhausted */
    DP_ERR_TIMEOUT,
    DP_ERR_BUSY,        /* still in use, try again */
    DP_ERR_CAPTURED,    /* a stream whose work is being recorded, or an event of it, cannot do this */
    DP_ERR_UNSUPPORTED, /* Doppel does not do this; the sentence says so */
    DP_ERR_IO,
    DP_ERR_KERNEL,  /* a kernel faulted (bad instruction, out of range, deadlock) */
    DP_ERR_KERNEL_TIMEOUT, /* a kernel ran longer than it may */
    DP_ERR_INTERNAL /* a bug in Doppel */
} dp_status;

/* Records the sentence for this thread and returns `status`. */
dp_status dp_fail(dp_status status, const char *format, ...) DP_PRINTF(2, 3);

/* Last recorded sentence of this thread; "" when there is none. Valid until the thread's next dp_fail or dp_fail_clear. */
const char *dp_fail_message(void);
/* Its status; DP_OK when there is none. */
dp_status dp_fail_status(void);
void dp_fail_clear(void);

/* English name of a status for logs. */
const char *dp_status_name(dp_status status);

#endif
