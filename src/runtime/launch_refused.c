#include <stdio.h>

#include "base/status.h"
#include "doppel/launch.h"

void dp_launch_refused(const dp_kernel_info *info, int status) {
    const char *reason = dp_fail_message();
    fprintf(stderr, "%s:%u: error: launch of %s failed (%d): %s\n", info->launch.file ? info->launch.file : "?",
            info->launch.line, info->name ? info->name : "?", status, reason[0] ? reason : "no reason was recorded");
}
