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

#include "device/exec.h"

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

void dp_visit_scalar_mem(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core;
    if (insn->op == DP_OP_SCALAR_LOAD)
        visit(context, 1, DP_READ, insn->operand[1].addr, dp_operand_bytes(insn, 1));
    else if (insn->op == DP_OP_SCALAR_STORE)
        visit(context, 0, insn->operand[0].dtype == DP_I4 ? DP_READ_WRITE : DP_WRITE, insn->operand[0].addr,
              dp_operand_bytes(insn, 0));
}
