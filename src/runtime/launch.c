#include "runtime/launch.h"

#include <setjmp.h>

#include "device/core.h"
#include "device/print.h"

/* First slice: blocks run one after the other on the calling thread. */
static _Thread_local jmp_buf block_exit;
static _Thread_local bool faulted;

static bool park(dp_core *core, const dp_wait *wait) {
    (void)core;
    return wait->ready(wait->context);
}
static void abandon(dp_core *core) {
    (void)core;
    longjmp(block_exit, 1);
}
static void fault(dp_core *core, dp_loc loc, const char *sentence) {
    (void)core;
    dp_fail(DP_ERR_KERNEL, "%s:%u: %s", loc.file ? loc.file : "?", loc.line, sentence);
    faulted = true;
}
static const dp_core_host host = {.park = park, .abandon = abandon, .fault = fault};

static void run_block(dp_core *core, dp_kernel_entry entry, const void *args) {
    bool failed = setjmp(block_exit) != 0;
    if (!failed) {
        dp_core_set_current(core);
        dp_core_block_begin(core);
        entry(args);
    }
    dp_core_block_end(core, failed);
    dp_core_set_current(NULL);
}

dp_status dp_launch_submit(const dp_kernel_info *info, uint32_t blocks, void *stream, dp_kernel_entry entry,
                           const void *args, size_t args_bytes) {
    (void)stream, (void)args_bytes;
    if (!info || !entry || blocks < 1 || blocks > DP_LAUNCH_BLOCKS_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "blockDim is %u, but must be 1 to %u", blocks, DP_LAUNCH_BLOCKS_MAX);
    static uint64_t last_id;
    dp_launch_info launch = {.id = ++last_id, .kernel = *info, .blocks = blocks};
    dp_core *core = dp_core_create(dp_chip_current());
    if (!core)
        return DP_ERR_OUT_OF_MEMORY;
    const dp_observer *observer = dp_observer_current();
    if (observer && observer->launch_begin)
        observer->launch_begin(&launch);
    faulted = false;
    for (uint32_t b = 0; b < blocks && !faulted; b++) {
        core->kind = info->core_mix == DP_MIX_AIC ? DP_CORE_AIC : DP_CORE_AIV;
        core->block_idx = b, core->block_num = blocks;
        core->sub_block_idx = 0, core->sub_block_num = 1, core->task_ration = 1;
        core->core_index = b, core->launch = &launch, core->host = &host;
        run_block(core, entry, args);
    }
    if (observer && observer->launch_end)
        observer->launch_end(&launch);
    dp_print_launch_end(&launch);
    dp_core_destroy(core);
    return faulted ? DP_ERR_KERNEL : DP_OK;
}

int dp_launch_kernel(const dp_kernel_info *info, uint32_t blocks, void *stream, dp_kernel_entry entry, const void *args,
                     size_t args_bytes) {
    return (int)dp_launch_submit(info, blocks, stream, entry, args, args_bytes);
}
