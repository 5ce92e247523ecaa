#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/thread_texts.h"

static _Thread_local dp_status message_status;

dp_status dp_fail(dp_status status, const char *format, ...) {
    dp_thread_texts *texts = dp_thread_texts_current();
    va_list args;
    va_start(args, format);
    vsnprintf(texts->fail, sizeof texts->fail, format, args);
    va_end(args);
    message_status = status;
    return status;
}

const char *dp_fail_message(void) { return dp_thread_texts_current()->fail; }

dp_status dp_fail_status(void) { return message_status; }

void dp_fail_clear(void) {
    dp_thread_texts_current()->fail[0] = '\0';
    message_status = DP_OK;
}

const char *dp_status_name(dp_status status) {
    static const char *const names[] = {
        [DP_OK] = "ok",
        [DP_ERR_ARGUMENT] = "invalid argument",
        [DP_ERR_HANDLE] = "invalid handle",
        [DP_ERR_ADDRESS] = "invalid address",
        [DP_ERR_STATE] = "wrong state",
        [DP_ERR_NOT_FOUND] = "not found",
        [DP_ERR_OUT_OF_MEMORY] = "out of memory",
        [DP_ERR_TIMEOUT] = "timeout",
        [DP_ERR_BUSY] = "busy",
        [DP_ERR_CAPTURED] = "being captured",
        [DP_ERR_UNSUPPORTED] = "unsupported",
        [DP_ERR_IO] = "input/output error",
        [DP_ERR_KERNEL] = "kernel fault",
        [DP_ERR_KERNEL_TIMEOUT] = "kernel timeout",
        [DP_ERR_INTERNAL] = "internal error",
    };
    return (unsigned)status < sizeof names / sizeof names[0] && names[status] ? names[status] : "unknown status";
}
