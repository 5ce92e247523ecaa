/*
 * launcher.h - what `kernel<<<blocks, x, stream>>>(args)` becomes in C11: a call of a function ascc makes for the kernel,
 * which packs its parameters and calls dp_launch_from_source. Values between the brackets as in launcher.hpp.
 */
#ifndef DOPPEL_LAUNCHER_H
#define DOPPEL_LAUNCHER_H

#include "doppel/launch.h"

/* As dp_launch_kernel, for values as they stand in a source; reports a refusal on stderr with the launching line. */
static inline int dp_launch_from_source(const dp_kernel_info *kernel, const char *name, dp_loc where, long long blocks,
                                        long long dynamic_ub_bytes, void *stream, dp_kernel_entry entry, const void *args,
                                        size_t args_bytes) {
    dp_kernel_info info = *kernel;
    info.name = name;
    info.launch = where;
    info.dynamic_ub_bytes =
        dynamic_ub_bytes < 0 || dynamic_ub_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)dynamic_ub_bytes;
    const uint32_t count = blocks < 0 || blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks;
    const int status = dp_launch_kernel(&info, count, stream, entry, args, args_bytes);
    if (status != 0)
        dp_launch_refused(&info, status);
    return status;
}

/* `__ubuf__ float row[256];` in C: a slot that its scope gives back. */
typedef struct dp_local_slot {
    void *addr;
    dp_space space;
    size_t size_bytes;
} dp_local_slot;

static inline dp_local_slot dp_local_slot_begin(dp_space space, size_t size_bytes, dp_loc loc) {
    dp_local_slot slot = {dp_local_array_begin(space, size_bytes, loc), space, size_bytes};
    return slot;
}

static inline void dp_local_slot_end(dp_local_slot *slot) { dp_local_array_end(slot->space, slot->size_bytes); }

/* ascc puts the descriptions of the unit's kernels here. */
#ifdef DOPPEL_ASCC
__dp_ascc_prelude__
#endif

#endif
