/*
 * State instructions and where each finds its values:
 *   SET_MASK            mask[0], mask[1]
 *   SET_MASK_MODE       u.vec.aux[0]: 0 normal, 1 counter
 *   RESET_MASK          -
 *   SET_ATOMIC          u.vec.aux[0]: 0 none, 1 add, 2 max, 3 min; aux[1]: dp_dtype. aux[0] = 4: type only.
 *                       flag0 = 1: of scalar stores, which have a switch of their own (0 or 1; 4 changes nothing).
 *                       result: its setting before, dp_dtype + 1
 *   SET_CMPMASK         [1] 16 bytes of UB
 *   GET_CMPMASK         [0] 16 bytes of UB
 *   SET_DEQ_SCALE       scalar_bits: the word; with n_operands 2: [1] is a UB table of 16 such words
 *   SET_PAD_VALUE       scalar_bits
 *   SET_CTRL            u.vec.aux[0] first bit, aux[1] last bit, scalar_bits value
 *   GET_CTRL            u.vec.aux[0], aux[1]; result
 *   GET_REDUCE_INDEX    u.vec.aux[0]: 0 value, 1 index; result
 *   GET_ACC, GET_KEPT, GET_MRG_SORT_RESULT, GET_SYSTEM_CYCLE: result
 */
#include <string.h>
#include <time.h>

#include "device/exec.h"

enum { CMPMASK_BYTES = 16, CMPMASK_ALIGN = 16, ATOMIC_TYPE_ONLY = 4 };

/* The counter's frequency is not documented; 50 MHz is what public performance notes divide by. */
enum { CYCLE_NS = 20 };

/* Types of atomic stores: kernel-semantics section 11. */
#define ATOMIC_TYPES                                                                                                   \
    (1u << DP_F16 | 1u << DP_F32 | 1u << DP_I16 | 1u << DP_I32 | 1u << DP_I8 | 1u << DP_BF16)

static uint64_t system_cycle(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec) / CYCLE_NS;
}

static void set_atomic(dp_core *core, dp_insn *insn) {
    uint32_t op = insn->u.vec.aux[0], dtype = insn->u.vec.aux[1];
    bool of_scalar = insn->u.vec.flag0;
    insn->result = core->store_atomic;
    if (of_scalar && op == ATOMIC_TYPE_ONLY)
        return;
    if (op > (of_scalar ? 1u : (uint32_t)ATOMIC_TYPE_ONLY))
        dp_fault(core, insn, insn->loc, "atomic operation %u does not exist", op);
    if (op == 0) {
        *(of_scalar ? &core->store_atomic : &core->atomic_op) = 0;
        return;
    }
    if (dtype >= DP_DTYPE_COUNT || !(ATOMIC_TYPES >> dtype & 1)) {
        char list[128];
        dp_fault(core, insn, insn->loc, "atomic stores of %s do not exist; use %s", dp_dtype_name(dtype),
                 dp_dtype_list(ATOMIC_TYPES, list, sizeof list));
    }
    if (of_scalar) {
        core->store_atomic = (uint8_t)(dtype + 1);
        return;
    }
    core->atomic_dtype = (uint8_t)dtype;
    if (op != ATOMIC_TYPE_ONLY)
        core->atomic_op = (uint8_t)op;
}

static uint64_t ctrl_field(dp_core *core, const dp_insn *insn) {
    uint32_t first = insn->u.vec.aux[0], last = insn->u.vec.aux[1];
    if (first > last || last > 63)
        dp_fault(core, insn, insn->loc, "bits %u to %u are not a field of the 64-bit CTRL register", first, last);
    return last - first == 63 ? ~0ull : ((1ull << (last - first + 1)) - 1) << first;
}

static void set_deq_scale(dp_core *core, const dp_insn *insn) {
    if (insn->n_operands < 2) {
        core->deq_scale = insn->scalar_bits;
        return;
    }
    dp_operand_in_space(core, insn, 1, DP_SPACE_UB);
    dp_operand_check(core, insn, 1, sizeof core->deq_table, DP_BLOCK_BYTES);
    memcpy(core->deq_table, insn->operand[1].addr, sizeof core->deq_table);
    core->deq_scale = (uint64_t)((uint8_t *)insn->operand[1].addr - core->memory[DP_SPACE_UB].base) / DP_BLOCK_BYTES;
}

static void move_cmp_mask(dp_core *core, const dp_insn *insn) {
    unsigned k = insn->op == DP_OP_SET_CMPMASK;
    dp_operand_in_space(core, insn, k, DP_SPACE_UB);
    dp_operand_check(core, insn, k, CMPMASK_BYTES, CMPMASK_ALIGN);
    if (k)
        memcpy(core->cmp_mask, insn->operand[k].addr, CMPMASK_BYTES);
    else
        memcpy(insn->operand[k].addr, core->cmp_mask, CMPMASK_BYTES);
}

static void init_soc(dp_core *core) {
    core->atomic_op = core->store_atomic = 0;
    core->counter_mode = 0;
    if (core->kind == DP_CORE_AIV)
        core->mask[0] = core->mask[1] = ~0ull;
    else
        core->pad_value = 0;
}

void dp_exec_state(dp_core *core, dp_insn *insn) {
    switch (insn->op) {
    case DP_OP_SET_MASK:
        core->mask[0] = insn->mask[0];
        core->mask[1] = insn->mask[1];
        break;
    case DP_OP_SET_MASK_MODE:
        core->counter_mode = insn->u.vec.aux[0] != 0;
        break;
    case DP_OP_RESET_MASK:
        core->mask[0] = core->mask[1] = ~0ull;
        break;
    case DP_OP_SET_ATOMIC:
        set_atomic(core, insn);
        break;
    case DP_OP_SET_CMPMASK:
    case DP_OP_GET_CMPMASK:
        move_cmp_mask(core, insn);
        break;
    case DP_OP_SET_DEQ_SCALE:
        set_deq_scale(core, insn);
        break;
    case DP_OP_SET_PAD_VALUE:
        core->pad_value = insn->scalar_bits;
        break;
    case DP_OP_SET_CTRL: {
        uint64_t field = ctrl_field(core, insn);
        core->ctrl = (core->ctrl & ~field) | (insn->scalar_bits << insn->u.vec.aux[0] & field);
        break;
    }
    case DP_OP_GET_CTRL:
        insn->result = (core->ctrl & ctrl_field(core, insn)) >> insn->u.vec.aux[0];
        break;
    case DP_OP_INIT_SOC_STATE:
        init_soc(core);
        break;
    case DP_OP_GET_REDUCE_INDEX:
        insn->result = core->reduce_value[insn->u.vec.aux[0] & 1];
        break;
    case DP_OP_GET_ACC:
        insn->result = core->acc_value;
        break;
    case DP_OP_GET_MRG_SORT_RESULT:
        insn->result = core->mrg_result;
        break;
    case DP_OP_GET_KEPT:
        insn->result = core->kept_count;
        break;
    case DP_OP_GET_SYSTEM_CYCLE:
        insn->result = system_cycle();
        break;
    default:
        dp_fault(core, insn, insn->loc, "this state instruction has no executor");
    }
}

void dp_visit_state(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core;
    if (insn->op == DP_OP_SET_CMPMASK)
        visit(context, 1, DP_READ, insn->operand[1].addr, CMPMASK_BYTES);
    else if (insn->op == DP_OP_GET_CMPMASK)
        visit(context, 0, DP_WRITE, insn->operand[0].addr, CMPMASK_BYTES);
    else if (insn->op == DP_OP_SET_DEQ_SCALE && insn->n_operands >= 2)
        visit(context, 1, DP_READ, insn->operand[1].addr, 16 * sizeof(uint64_t));
}
