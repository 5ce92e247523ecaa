/*
 * local_array.c - address-space qualified variables and the dynamic UB of a block.
 *
 * Both live at the upper end of a core memory, below the library's own scratch; queues grow from the lower end. The
 * dynamic UB is topmost, so that it stays in place while variables come and go with their scopes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/core.h"

#define MIN_ALIGN 32u

static size_t round_up(size_t size_bytes, size_t align) { return (size_bytes + align - 1) / align * align; }

static size_t align_of(const dp_core *core, dp_space space) {
    const size_t align = core->chip->space_align[space];
    return align > MIN_ALIGN ? align : MIN_ALIGN;
}

static __attribute__((noinline, cold, noreturn)) void outside_kernel(dp_loc loc, const char *what) {
    fprintf(stderr, "%s:%u: error: %s is used outside a kernel: only code that runs on a device core has such memory\n",
            loc.file ? loc.file : "?", loc.line, what);
    fflush(stderr);
    abort();
}

void dp_local_block_begin(dp_core *core) {
    for (unsigned s = 0; s < DP_SPACE_COUNT; s++)
        core->local_top[s] = s == DP_SPACE_UB ? core->chip->ub_reserved_offset : core->chip->space_bytes[s];
    memset(core->local_low, 0, sizeof core->local_low);
    const size_t bytes = core->launch ? round_up(core->launch->kernel.dynamic_ub_bytes, MIN_ALIGN) : 0;
    core->dynamic_ub = NULL;
    if (bytes != 0 && bytes <= core->local_top[DP_SPACE_UB]) {
        core->local_top[DP_SPACE_UB] -= (uint32_t)bytes;
        core->dynamic_ub = core->memory[DP_SPACE_UB].base + core->local_top[DP_SPACE_UB];
    }
}

void *dp_local_array_begin(dp_space space, size_t size_bytes, dp_loc loc) {
    dp_core *core = dp_core_current();
    if (!core)
        outside_kernel(loc, "a variable in core memory");
    if (space <= DP_SPACE_GM || space >= DP_SPACE_COUNT)
        dp_fault(core, NULL, loc, "a variable is declared in memory number %u, which a core does not have", (unsigned)space);
    const size_t top = core->local_top[space], low = core->local_low[space];
    const size_t left = top > low ? top - low : 0;
    const size_t taken = round_up(size_bytes, align_of(core, space));
    if (size_bytes > left || taken > left)
        dp_fault(core, NULL, loc,
                 "a variable of %zu bytes does not fit in %s: %zu of %u bytes are left beside queues and other variables; make "
                 "it smaller or reuse one",
                 size_bytes, dp_space_name(space), left, core->chip->space_bytes[space]);
    core->local_top[space] = (uint32_t)(top - taken);
    return core->memory[space].base + core->local_top[space];
}

void dp_local_array_end(dp_space space, size_t size_bytes) {
    dp_core *core = dp_core_current();
    if (core && space > DP_SPACE_GM && space < DP_SPACE_COUNT)
        core->local_top[space] += (uint32_t)round_up(size_bytes, align_of(core, space));
}

void *dp_dynamic_ub(dp_loc loc) {
    dp_core *core = dp_core_current();
    if (!core)
        outside_kernel(loc, "the dynamic UB");
    if (!core->dynamic_ub && core->launch && core->launch->kernel.dynamic_ub_bytes != 0)
        dp_fault(core, NULL, loc, "the launch asked for %u bytes of dynamic UB, of which a core has %u: ask for less",
                 core->launch->kernel.dynamic_ub_bytes, core->chip->ub_reserved_offset);
    if (!core->dynamic_ub)
        dp_fault(core, NULL, loc,
                 "the kernel uses the dynamic UB but its launch asked for 0 bytes: give the size as the second value, "
                 "<<<blocks, bytes, stream>>>");
    return core->dynamic_ub;
}
