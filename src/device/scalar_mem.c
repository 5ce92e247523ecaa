/*
 * scalar_mem.c - the scalar unit's accesses to memory.
 *
 * GetValue: [0] unused, [1] the element; result = its bits, zero-extended. SetValue: [0] the element, scalar_bits its
 * new value. DataCacheCleanAndInvalid: [0] where, u.vec.flag0 = 1 for the whole cache; orders scalar accesses, nothing
 * to move here. size_bytes of the operand counts from its address, so 0 < size_bytes < element size means: past the end
 * of the tensor. int4b_t: u.vec.flag0 = 1 picks the high half of the byte.
 */
#include <stdatomic.h>
#include <string.h>

#include "device/count.h"

static void scalar_load(dp_core *core, dp_insn *insn) {
    const dp_operand *o = &insn->operand[1];
    unsigned bytes = dp_operand_bytes(insn, 1);
    dp_operand_check(core, insn, 1, bytes, bytes);
    insn->result = 0;
    memcpy(&insn->result, o->addr, bytes);
    if (o->dtype == DP_I4)
        insn->result = insn->result >> (insn->u.vec.flag0 ? 4 : 0) & 0xf;
}

static void scalar_store(dp_core *core, const dp_insn *insn) {
    const dp_operand *o = &insn->operand[0];
    unsigned bytes = dp_operand_bytes(insn, 0);
    dp_operand_check(core, insn, 0, bytes, bytes);
    if (DP_UNLIKELY(dp_is_atomic_store(core, insn))) {
        unsigned dtype = core->store_atomic - 1u;
        if (o->dtype != dtype)
            dp_fault(core, insn, insn->loc, "scalar stores are set to add %s, but this one stores %s; call SetStoreAtomicConfig with "
                     "the type of the tensor, or with ATOMIC_NONE", dp_dtype_name(dtype), dp_dtype_name(o->dtype));
        core->math->atomic[DP_MATH_ATOMIC_ADD][dtype](o->addr, &insn->scalar_bits, 1);
        return;
    }
    if (o->dtype == DP_I4) {
        unsigned shift = insn->u.vec.flag0 ? 4 : 0;
        uint8_t *at = o->addr;
        *at = (uint8_t)((*at & ~(0xfu << shift)) | (insn->scalar_bits & 0xf) << shift);
        return;
    }
    memcpy(o->addr, &insn->scalar_bits, bytes);
}

void dp_exec_scalar_mem(dp_core *core, dp_insn *insn) {
    switch (insn->op) {
    case DP_OP_SCALAR_LOAD:
        scalar_load(core, insn);
        break;
    case DP_OP_SCALAR_STORE:
        scalar_store(core, insn);
        break;
    default: /* the host's caches are coherent: only the order is left to keep */
        if (!insn->u.vec.flag0)
            dp_operand_check(core, insn, 0, 1, 1);
        atomic_thread_fence(memory_order_seq_cst);
        break;
    }
}

/* The element's address when it lies in the tensor and in UB at its natural place, else NULL. */
static uint8_t *plain_element(const dp_core *core, const dp_local *tensor, uint64_t index, unsigned bytes) {
    if (index > UINT32_MAX || !bytes)
        return NULL;
    uint64_t skip = index * bytes;
    bool holds = dp_in_ub(core, tensor, skip + bytes, bytes);
    return holds ? (uint8_t *)tensor->addr + skip : NULL;
}

static dp_operand element_of(unsigned dtype, const dp_local *tensor, uint64_t index) {
    uint64_t skip = index * (dp_dtype_bits(dtype) / 8);
    bool inside = skip < tensor->size_bytes;
    return (dp_operand){.addr = (void *)((uintptr_t)tensor->addr + skip), /* may be a tensor without memory */
                        .size_bytes = inside ? (uint32_t)(tensor->size_bytes - skip) : 0,
                        .buffer_id = tensor->buffer_id,
                        .block_stride = 1,
                        .repeat_stride = 8,
                        .dtype = (uint8_t)dtype,
                        .space = tensor->space,
                        .past_end = !inside};
}

uint64_t dp_local_get(unsigned dtype, const dp_local *src, uint64_t index, dp_loc loc) {
    unsigned bytes = dp_dtype_bits(dtype) / 8;
    dp_core *core = dp_quiet_core();
    uint8_t *at = core ? plain_element(core, src, index, bytes) : NULL;
    if (DP_UNLIKELY(!at)) {
        dp_insn insn = {.op = DP_OP_SCALAR_LOAD, .n_operands = 2, .loc = loc};
        insn.operand[1] = element_of(dtype, src, index);
        dp_issue(&insn);
        return insn.result;
    }
    core->issued++;
    uint64_t bits = 0;
    switch (bytes) { /* one load each: memcpy of a variable size would be a call */
    case 1: return *at;
    case 2: memcpy(&bits, at, 2); return bits;
    case 4: memcpy(&bits, at, 4); return bits;
    default: memcpy(&bits, at, 8); return bits;
    }
}

void dp_local_set(unsigned dtype, const dp_local *dst, uint64_t index, uint64_t bits, dp_loc loc) {
    unsigned bytes = dp_dtype_bits(dtype) / 8;
    dp_core *core = dp_quiet_core();
    uint8_t *at = core ? plain_element(core, dst, index, bytes) : NULL;
    if (DP_UNLIKELY(!at)) {
        dp_insn insn = {.op = DP_OP_SCALAR_STORE, .n_operands = 1, .scalar_bits = bits, .loc = loc};
        insn.operand[0] = element_of(dtype, dst, index);
        dp_issue(&insn);
        return;
    }
    core->issued++;
    switch (bytes) {
    case 1: *at = (uint8_t)bits; break;
    case 2: memcpy(at, &bits, 2); break;
    case 4: memcpy(at, &bits, 4); break;
    default: memcpy(at, &bits, 8); break;
    }
}

void dp_visit_scalar_mem(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    if (insn->op == DP_OP_SCALAR_LOAD)
        visit(context, 1, DP_READ, insn->operand[1].addr, dp_operand_bytes(insn, 1));
    else if (insn->op == DP_OP_SCALAR_STORE)
        visit(context, 0, insn->operand[0].dtype == DP_I4 || dp_is_atomic_store(core, insn) ? DP_READ_WRITE : DP_WRITE,
              insn->operand[0].addr, dp_operand_bytes(insn, 0));
}
