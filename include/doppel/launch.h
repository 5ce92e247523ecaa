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

DP_END_DECLS

#endif
