/* Where an operand may lie. The checks run in every mode: range tests on the hot path, sentences on the cold one. */
#include <inttypes.h>
#include <stdio.h>

#include "device/exec.h"

bool dp_gm_holds(dp_core *core, const void *addr, size_t extent_bytes) {
    dp_gm_cache *cache = &core->gm_cache;
    uintptr_t begin = (uintptr_t)addr;
    uint64_t now = dp_gm_epoch();
    if (DP_LIKELY(cache->epoch == now)) {
        for (unsigned i = 0; i < DP_GM_CACHE; i++) {
            if (begin >= cache->begin[i] && begin < cache->end[i])
                return extent_bytes <= cache->end[i] - begin;
        }
    } else {
        *cache = (dp_gm_cache){.epoch = now};
    }
    dp_gm_range range;
    if (!dp_gm_find(addr, &range))
        return false;
    const dp_observer *observer = core->observer;
    bool exact = observer && observer->exact_bounds;
    uintptr_t end = (uintptr_t)range.base + (exact ? range.size_bytes : range.padded_bytes);
    cache->begin[cache->next] = (uintptr_t)range.base;
    cache->end[cache->next] = end;
    cache->next = (cache->next + 1) % DP_GM_CACHE;
    return extent_bytes <= end - begin;
}

static __attribute__((noinline, cold, noreturn)) void fault_gm(dp_core *core, const dp_insn *insn, unsigned k,
                                                                size_t extent_bytes) {
    const uint8_t *addr = insn->operand[k].addr;
    const char *role = dp_operand_role(insn, k);
    dp_gm_range range;
    if (dp_gm_find(addr, &range)) {
        size_t offset = (size_t)(addr - range.base);
        dp_fault(core, insn, insn->loc,
                 "the %s spans bytes %zu to %zu of a device allocation of %zu bytes (number %llu), %zu bytes past its end; "
                 "check the tile length of the last block",
                 role, offset, offset + extent_bytes, range.size_bytes, (unsigned long long)range.id,
                 offset + extent_bytes - range.size_bytes);
    }
    if (dp_gm_find_before(addr, &range))
        dp_fault(core, insn, insn->loc,
                 "the %s starts %zu bytes past the end of a device allocation of %zu bytes (number %llu); check the offset "
                 "of this block",
                 role, (size_t)(addr - range.base) - range.size_bytes, range.size_bytes, (unsigned long long)range.id);
    if (!addr)
        dp_fault(core, insn, insn->loc, "the %s address is NULL; pass the kernel pointers from aclrtMalloc", role);
    dp_fault(core, insn, insn->loc,
             "the %s address %p is not in device memory; pass the kernel pointers from aclrtMalloc, not host pointers or "
             "freed memory",
             role, (const void *)addr);
}

static __attribute__((noinline, cold, noreturn)) void fault_local(dp_core *core, const dp_insn *insn, unsigned k,
                                                                   size_t extent_bytes, unsigned align_bytes) {
    const dp_operand *operand = &insn->operand[k];
    const char *role = dp_operand_role(insn, k);
    const char *space = dp_space_name(operand->space);
    const dp_core_memory *memory = &core->memory[operand->space < DP_SPACE_COUNT ? operand->space : DP_SPACE_NONE];
    if (!memory->base)
        dp_fault(core, insn, insn->loc, "the %s tensor has no memory (%s); get it from a queue, a TBuf or an allocator first",
                 role, space);
    uintptr_t begin = (uintptr_t)operand->addr, base = (uintptr_t)memory->base;
    if (begin < base || begin - base > memory->size_bytes)
        dp_fault(core, insn, insn->loc, "the %s address %p is outside this core's %s (%u bytes)", role, operand->addr, space,
                 memory->size_bytes);
    size_t offset = begin - base;
    if (insn->mask_kind == DP_MASK_COUNT && insn->mask[0] > INT32_MAX)
        dp_fault(core, insn, insn->loc, "the count is %" PRId64 ", a negative number or one that was cut to 32 bits; check what it is computed "
                 "from", insn->mask[0] > UINT32_MAX ? (int64_t)insn->mask[0] : (int64_t)(int32_t)(uint32_t)insn->mask[0]);
    if (offset & (align_bytes - 1))
        dp_fault(core, insn, insn->loc,
                 "the %s starts at %s offset %zu (0x%zx), which is not a multiple of %u bytes; start tensors on a %u-byte "
                 "boundary",
                 role, space, offset, offset, align_bytes, align_bytes);
    if (extent_bytes > memory->size_bytes - offset)
        dp_fault(core, insn, insn->loc,
                 "the %s spans %zu bytes from %s offset %zu, %zu bytes past the end of %s (%u bytes on %s); lower count, "
                 "repeat or strides",
                 role, extent_bytes, space, offset, offset + extent_bytes - memory->size_bytes, space, memory->size_bytes,
                 core->chip->name);
    if (operand->past_end)
        dp_fault(core, insn, insn->loc,
                 "the %s starts at or past the end of its tensor (%s offset %zu); check the index of the tensor", role, space,
                 offset);
    dp_fault(core, insn, insn->loc,
             "the %s spans %zu bytes but its tensor has only %u bytes from there; lower count, repeat or strides, or use a "
             "larger tensor",
             role, extent_bytes, operand->size_bytes);
}

void dp_operand_check(dp_core *core, const dp_insn *insn, unsigned k, size_t extent_bytes, unsigned align_bytes) {
    const dp_operand *operand = &insn->operand[k];
    if (operand->space == DP_SPACE_GM) {
        if (DP_UNLIKELY((uintptr_t)operand->addr & (align_bytes - 1)))
            dp_fault(core, insn, insn->loc, "the %s address %p is not a multiple of %u bytes", dp_operand_role(insn, k),
                     operand->addr, align_bytes);
        if (DP_UNLIKELY(!dp_gm_holds(core, operand->addr, extent_bytes)))
            fault_gm(core, insn, k, extent_bytes);
        return;
    }
    if (DP_UNLIKELY(operand->space >= DP_SPACE_COUNT))
        fault_local(core, insn, k, extent_bytes, align_bytes);
    const dp_core_memory *memory = &core->memory[operand->space];
    uintptr_t offset = (uintptr_t)operand->addr - (uintptr_t)memory->base; /* wraps to a huge value below the base */
    bool bad = !memory->base || offset > memory->size_bytes || extent_bytes > memory->size_bytes - offset ||
               (offset & (align_bytes - 1)) || (operand->size_bytes && extent_bytes > operand->size_bytes) || (operand->past_end && extent_bytes);
    if (DP_UNLIKELY(bad))
        fault_local(core, insn, k, extent_bytes, align_bytes);
}

void dp_operand_in_space(dp_core *core, const dp_insn *insn, unsigned k, dp_space space) {
    if (DP_UNLIKELY(insn->operand[k].space != space))
        dp_fault(core, insn, insn->loc, "the %s is in %s, but this instruction takes it in %s only", dp_operand_role(insn, k),
                 dp_space_name(insn->operand[k].space), dp_space_name(space));
}
