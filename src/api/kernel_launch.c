/* Where the launchers that ascc writes enter the library. */
#include "api/api.h"
#include "doppel/launch.h"
#include "runtime/launch.h"

int dp_launch_kernel(const dp_kernel_info *info, uint32_t blocks, void *stream, dp_kernel_entry entry, const void *args,
                     size_t args_bytes) {
    dp_api_call call = dp_api_begin("kernel launch", __builtin_return_address(0));
    call.stream = stream;
    if (info)
        call.loc = info->launch;
    return dp_api_end(&call, dp_launch_submit(info, blocks, stream, entry, args, args_bytes));
}

int dp_kernel_of_pointer(const void *function, dp_loc where, dp_kernel_info *out_info) {
    dp_api_call call = dp_api_begin("kernel launch", __builtin_return_address(0));
    call.loc = where;
    return dp_api_end(&call, dp_launch_find_kernel(function, out_info));
}
