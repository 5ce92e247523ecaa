/* What kernel code asks about its core and its memories. */
#include "doppel/kernel_rt.h"
#include "doppel/launch.h"

#include <string.h>

#include "base/half.h"
#include "c_api/asc_types.h"
#include "device/queue_state.h"

static const dp_loc nowhere = {NULL, 0};

/* kernel-language section 4: on a vector core of a mix the number counts vector cores, on a cube core blocks. */
uint32_t dp_block_index(void) {
    const dp_core *core = dp_kernel_core("GetBlockIdx", nowhere);
    return core->kind == DP_CORE_AIV ? core->block_idx * core->sub_block_num + core->sub_block_idx : core->block_idx;
}
uint32_t dp_block_count(void) { return dp_kernel_core("GetBlockNum", nowhere)->block_num; }
uint32_t dp_sub_block_index(void) { return dp_kernel_core("GetSubBlockIdx", nowhere)->sub_block_idx; }
uint32_t dp_sub_block_count(void) { return dp_kernel_core("GetSubBlockNum", nowhere)->sub_block_num; }
uint32_t dp_task_ration(void) { return dp_kernel_core("GetTaskRation", nowhere)->task_ration; }

bool dp_is_vector_core(void) {
    const dp_core *core = dp_core_current();
    return !core || core->kind == DP_CORE_AIV;
}
bool dp_in_kernel(void) { return dp_core_current() != NULL; }

void *dp_local_address(unsigned space, uint64_t offset_bytes, uint64_t size_bytes, dp_loc loc) {
    dp_core *core = dp_kernel_core("a tensor in core memory", loc);
    if (space <= DP_SPACE_GM || space >= DP_SPACE_COUNT || !core->memory[space].base)
        dp_fault(core, NULL, loc, "%s is not a memory of the core: a local tensor needs a position such as VECIN or VECCALC",
                 dp_space_name(space));
    uint64_t have = core->memory[space].size_bytes;
    if (offset_bytes > have || size_bytes > have - offset_bytes)
        dp_fault(core, NULL, loc, "a tensor of %llu bytes at offset %llu does not fit in %s, which has %llu bytes",
                 (unsigned long long)size_bytes, (unsigned long long)offset_bytes, dp_space_name(space),
                 (unsigned long long)have);
    return core->memory[space].base + offset_bytes;
}

uint64_t dp_local_offset(unsigned space, const void *addr, dp_loc loc) {
    dp_core *core = dp_kernel_core("an address in core memory", loc);
    const dp_core_memory *memory = space < DP_SPACE_COUNT ? &core->memory[space] : &core->memory[DP_SPACE_NONE];
    const uint8_t *byte = addr;
    if (!memory->base || byte < memory->base || byte > memory->base + memory->size_bytes)
        dp_fault(core, NULL, loc, "address %p is not in %s of this core", addr, dp_space_name(space));
    return (uint64_t)(byte - memory->base);
}

void dp_scalar_reference(const dp_operand *operand, uint32_t size_bytes, dp_loc loc) {
    dp_core *core = dp_kernel_core("a tensor element", loc);
    dp_insn insn = {.op = DP_OP_SCALAR_LOAD, .n_operands = 2, .loc = loc};
    insn.operand[0].space = DP_SPACE_NONE;
    insn.operand[1] = *operand;
    dp_operand_check(core, &insn, 1, size_bytes, 1);
}

static dp_operand gm_operand(const void *addr) {
    return (dp_operand){.addr = (void *)addr, .dtype = DP_U8, .space = DP_SPACE_GM};
}

void *dp_tiling_pointer(void *src, size_t size_bytes, dp_loc loc) {
    dp_operand operand = gm_operand(src);
    dp_scalar_reference(&operand, (uint32_t)size_bytes, loc);
    return src;
}

void dp_tiling_copy(void *dst, const void *src, size_t size_bytes, dp_loc loc) {
    dp_operand operand = gm_operand(src);
    dp_scalar_reference(&operand, (uint32_t)size_bytes, loc);
    memcpy(dst, src, size_bytes);
}

void dp_list_fault(const char *sentence, uint64_t value, uint64_t expected, dp_loc loc) {
    dp_fault(dp_kernel_core("a tensor list", loc), NULL, loc, "%s (%llu, against %llu)", sentence, (unsigned long long)value,
             (unsigned long long)expected);
}

/* One key for the process: launches that use keys (host debugging runs) are started and awaited one by one. */
static _Atomic uint64_t tiling_key;

void dp_tiling_key_set(uint64_t key) { tiling_key = key; }
uint64_t dp_tiling_key(void) { return tiling_key; }

void *dp_sys_workspace(void) {
    dp_core *core = dp_kernel_core("GetSysWorkSpacePtr", nowhere);
    return dp_queue_state_of(core, nowhere)->sys_workspace;
}
void dp_sys_workspace_set(void *workspace) {
    dp_core *core = dp_kernel_core("SetSysWorkSpacePtr", nowhere);
    dp_queue_state_of(core, nowhere)->sys_workspace = workspace;
}

void *dp_dump_workspace(void) {
    dp_core *core = dp_kernel_core("GetDumpWorkSpacePtr", nowhere);
    return dp_queue_state_of(core, nowhere)->dump_workspace;
}
void dp_dump_workspace_set(void *workspace) {
    dp_core *core = dp_kernel_core("SetDumpWorkSpacePtr", nowhere);
    dp_queue_state_of(core, nowhere)->dump_workspace = workspace;
}

static void **hccl_context(const char *what, uint32_t index, dp_loc loc) {
    dp_core *core = dp_kernel_core(what, loc);
    if (index > 1)
        dp_fault(core, NULL, loc, "%s: index is %u, but must be 0 or 1", what, index);
    return &dp_queue_state_of(core, loc)->hccl_context[index];
}
void *dp_hccl_context(uint32_t index, dp_loc loc) {
    return *hccl_context("GetHcclContext", index, loc);
}
void dp_hccl_context_set(uint32_t index, void *context, dp_loc loc) {
    *hccl_context("SetHcclContext", index, loc) = context;
}

void dp_kernel_threw(const char *what) {
    dp_fault(dp_kernel_core("a C++ exception", nowhere), NULL, nowhere,
             "the kernel threw a C++ exception%s%s%s and did not catch it; a core has no exceptions: report errors through "
             "a value in global memory", what ? " (\"" : "", what ? what : "", what ? "\")" : "");
}

uint16_t dp_half_bits(float value) { return dp_f16_from_f32(value); }
float dp_half_value(uint16_t bits) { return dp_f32_from_f16(bits); }
uint16_t dp_bfloat16_bits(float value) { return dp_bf16_from_f32(value); }
float dp_bfloat16_value(uint16_t bits) { return dp_f32_from_bf16(bits); }
