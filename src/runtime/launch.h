/*
 * launch.h - kernel launches inside the library. The public door is dp_launch_kernel in doppel/launch.h.
 *
 * Every block runs on a fiber with a stack of 256 KiB and a core of its own; launches of 1:1 and 1:2 mixes run 2 or 3
 * cores per block (core 0 the cube core, 1 and 2 the vector cores).
 */
#ifndef DOPPEL_RUNTIME_LAUNCH_H
#define DOPPEL_RUNTIME_LAUNCH_H

#include "base/status.h"
#include "doppel/launch.h"

#define DP_LAUNCH_BLOCKS_MAX 65535u

/* As dp_launch_kernel, with our status. Entry NULL, info NULL, blocks out of range, mix unknown: DP_ERR_ARGUMENT. */
dp_status dp_launch_submit(const dp_kernel_info *info, uint32_t blocks, void *stream, dp_kernel_entry entry,
                           const void *args, size_t args_bytes);

/* As dp_kernel_of_pointer, with our status: DP_ERR_NOT_FOUND. */
dp_status dp_launch_find_kernel(const void *function, dp_kernel_info *out_info);

/*
 * Facts about the last kernel that faulted, for aclrtSetExceptionInfoCallback: called on the thread that noticed it,
 * once per failed launch. NULL removes the callback.
 */
typedef struct dp_exception_info {
    uint32_t task_id, stream_id, device_id, thread_id;
    dp_status status;
    const char *kernel_name;
    const char *sentence;
} dp_exception_info;
void dp_launch_set_exception_callback(void (*callback)(const dp_exception_info *info, void *context), void *context);

#endif
