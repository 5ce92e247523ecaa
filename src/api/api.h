/*
 * api.h - what every entry point of this floor does around its call down: note who called, map the status, keep the
 * sentence, tell the observer.
 *
 *     aclError aclrtFoo(void *bar) {
 *         dp_api_call call = DP_API_CALL();
 *         if (!bar)
 *             return dp_api_null(&call, "bar", "the address of ...");
 *         return dp_api_end(&call, dp_foo(bar));
 *     }
 */
#ifndef DOPPEL_API_API_H
#define DOPPEL_API_API_H

#include "acl/acl.h"
#include "base/status.h"
#include "doppel/launch.h"

/* One running call. The fields after begin_ns may be set by the entry point before dp_api_end. */
typedef struct dp_api_call {
    const char *name;      /* the vendor's name of the function */
    const void *caller;    /* return address in the user's program */
    uint64_t begin_ns;     /* 0 when nobody looks */
    dp_loc loc;            /* of a launch: where it stands; line 0 otherwise */
    void *stream;          /* stream the call is about, NULL = default or none */
    aclError state_code;   /* what DP_ERR_STATE means here: ACL_ERROR_RT_CONTEXT_NULL unless changed */
    aclError timeout_code; /* what DP_ERR_TIMEOUT means here: ACL_ERROR_RT_STREAM_SYNC_TIMEOUT unless changed */
} dp_api_call;

#define DP_API_CALL() dp_api_begin(__func__, __builtin_return_address(0))

dp_api_call dp_api_begin(const char *name, const void *caller);

/* Ends the call: status as the vendor's code; a failure's sentence (dp_fail) becomes the thread's recent error. */
aclError dp_api_end(dp_api_call *call, dp_status status);

/* The same with a code that the caller chose; the sentence is the last dp_fail's. */
aclError dp_api_end_code(dp_api_call *call, aclError code);

/* Ends the call with a code of the API's own and a sentence "<argument> is <value>, but must be ...: <cure>". */
aclError dp_api_fail(dp_api_call *call, aclError code, const char *format, ...) DP_PRINTF(3, 4);

/* ACL_ERROR_INVALID_PARAM: "<argument> is NULL, but must be <expected>". */
aclError dp_api_null(dp_api_call *call, const char *argument, const char *expected);

/* ACL_ERROR_INVALID_PARAM: "<argument> is <value>, but must be <expected>". */
aclError dp_api_bad_value(dp_api_call *call, const char *argument, long long value, const char *expected);

/* ACL_ERROR_API_NOT_SUPPORT: "<function> is not supported: <reason>". */
aclError dp_api_refuse(dp_api_call *call, const char *reason);

/* The vendor's code of a status; state and timeout as in dp_api_call. */
aclError dp_api_code(dp_status status, aclError state_code, aclError timeout_code);

/* Code of this thread's last failed call; forget clears it. */
aclError dp_api_last_error(bool forget);

#endif
