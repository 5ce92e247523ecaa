#include <stdio.h>

#include "base/status.h"
#include "doppel/launch.h"

void dp_launch_refused(const dp_kernel_info *info, int status) {
    const char *reason = dp_fail_message();
    const char *name = info->name ? info->name : "?";
    if (!reason[0])
        reason = "no reason was recorded";
    if (info->launch.line && info->launch.file)
        fprintf(stderr, "%s:%u: error: launch of %s failed (%d): %s\n", info->launch.file, info->launch.line, name,
                status, reason);
    else
        fprintf(stderr, "error: launch of %s failed (%d): %s\n", name, status, reason);
}
