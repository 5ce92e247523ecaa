/*
 * launch.h - how a translated `kernel<<<blocks, dynamic_ub, stream>>>(args)` reaches the runtime.
 */
#ifndef DOPPEL_LAUNCH_H
#define DOPPEL_LAUNCH_H

#include "doppel/types.h"

typedef struct dp_kernel_info {
    const char *name; /* as written, with template arguments */
    uint8_t core_mix; /* dp_core_mix */
    uint8_t sched_mode;
    uint16_t reserved;
    uint32_t dynamic_ub_bytes;
    dp_loc definition; /* where the kernel is defined, line 0 = unknown */
    dp_loc launch;     /* the launching line */
} dp_kernel_info;

/* Runs one logical block; reads its arguments from `args`. */
typedef void (*dp_kernel_entry)(const void *args);

DP_BEGIN_DECLS

/*
 * Queues `blocks` blocks of a kernel on `stream` (NULL = the current context's default stream).
 * args[0..args_bytes) is copied before the call returns. `info` is copied too; the strings it names must stay valid.
 * Returns 0 or an aclError; the reason is in aclGetRecentErrMsg. blocks must be 1..65535.
 */
DP_API int dp_launch_kernel(const dp_kernel_info *info, uint32_t blocks, void *stream, dp_kernel_entry entry,
                            const void *args, size_t args_bytes);

/* Prints "<launching line>: error: launch of <name> failed (<status>): <reason>" on stderr. */
DP_API void dp_launch_refused(const dp_kernel_info *info, int status);

/*
 * A kernel that a program uses through its address: which cores it needs. The node is the caller's and stays where it is until it is
 * forgotten. A function may be announced several times.
 */
typedef struct dp_known_kernel {
    const void *function;
    const dp_kernel_info *info;
    struct dp_known_kernel *next;
} dp_known_kernel;
DP_API void dp_kernel_announce(dp_known_kernel *kernel);
DP_API void dp_kernel_forget(dp_known_kernel *kernel);

/*
 * The description of the kernel at `function` that was announced; `where` is the launching line. Returns 0, or an
 * aclError when none was; the reason is in aclGetRecentErrMsg.
 */
DP_API int dp_kernel_of_pointer(const void *function, dp_loc where, dp_kernel_info *out_info);

/*
 * Storage of an address-space qualified variable (`__ubuf__ float row[256];`) of the running block: size_bytes in that
 * memory of the core, aligned as its operands must be, taken from the memory's upper end. begin and end nest like the
 * scopes of the variables. A full memory, or a call outside a kernel, is a kernel fault at `loc`.
 */
DP_API void *dp_local_array_begin(dp_space space, size_t size_bytes, dp_loc loc);
DP_API void dp_local_array_end(dp_space space, size_t size_bytes);

/* A kernel function was left by a C++ exception: a kernel fault. `what` may be NULL. */
DP_API void dp_kernel_threw(const char *what) __attribute__((noreturn));

/* The launch's dynamic UB (`extern __ubuf__ uint8_t buf[];`). A launch that asked for none is a kernel fault at `loc`. */
DP_API void *dp_dynamic_ub(dp_loc loc);

DP_END_DECLS

#endif
