/*
 * count.h - for the short forms of doppel/count.h: what is usual, and the instruction for everything else.
 *
 * A short form beside an executor must do what the executor does with that instruction, or hand it to dp_count_issue.
 */
#ifndef DOPPEL_DEVICE_COUNT_H
#define DOPPEL_DEVICE_COUNT_H

#include "device/exec.h"
#include "doppel/count.h"

static inline unsigned dp_code_op(uint32_t code) { return code & 0xffff; }
static inline unsigned dp_code_dst(uint32_t code) { return code >> 16 & 0xf; }
static inline unsigned dp_code_src(uint32_t code) { return code >> 20 & 0xf; }
static inline unsigned dp_code_round(uint32_t code) { return code >> 24; }

/* The core of this thread if it is a vector core that nobody observes, else NULL. */
static inline dp_core *dp_quiet_core(void) {
    dp_core *core = dp_core_current();
    return DP_LIKELY(core && !core->observer && core->kind == DP_CORE_AIV) ? core : NULL;
}

/* `bytes` from the tensor's address on lie in the tensor and in UB, and start on a multiple of align_bytes. */
static inline bool dp_in_ub(const dp_core *core, const dp_local *tensor, uint64_t bytes, unsigned align_bytes) {
    const dp_core_memory *ub = &core->memory[DP_SPACE_UB];
    uint64_t offset = (uint64_t)((uintptr_t)tensor->addr - (uintptr_t)ub->base); /* huge below the base */
    return tensor->space == DP_SPACE_UB && bytes <= tensor->size_bytes && offset <= ub->size_bytes &&
           bytes <= ub->size_bytes - offset && !(offset & (align_bytes - 1));
}

/* A source that is the destination itself, in elements not narrower, or touches no byte of it. */
static inline bool dp_no_overlap(const dp_local *dst, uint64_t dst_bytes, const dp_local *src, uint64_t src_bytes) {
    uint64_t ahead = (uint64_t)((uintptr_t)src->addr - (uintptr_t)dst->addr);
    return ahead ? ahead >= dst_bytes && -ahead >= src_bytes : src_bytes >= dst_bytes;
}

/* What every count form leaves behind. */
static inline void dp_count_done(dp_core *core) {
    core->issued++;
    core->counter_mode = 0;
    core->mask[0] = core->mask[1] = ~0ull;
}

/* Builds the instruction and sends it through the door. tensors: destination first. */
void dp_count_issue(uint32_t code, const dp_local *const tensors[], unsigned count, uint64_t scalar_bits, uint32_t n,
                    dp_loc loc);

#endif
