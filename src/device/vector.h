/* vector.h - type checks shared by the executors of the lane-by-lane families. */
#ifndef DOPPEL_DEVICE_VECTOR_H
#define DOPPEL_DEVICE_VECTOR_H

#include "device/exec.h"
#include "device/walk.h"

/* Faults: the instruction is not offered for the type of its destination; `types` are the ones it is offered for. */
void dp_fault_dtype(dp_core *core, const dp_insn *insn, uint32_t types) __attribute__((noreturn, cold));
/* Faults: not offered for this pair of types; `legal` lists the pairs. */
void dp_fault_pair(dp_core *core, const dp_insn *insn, unsigned dst, unsigned src, const char *legal)
    __attribute__((noreturn, cold));

static inline bool dp_vector_offered(const dp_insn *insn, unsigned dtype) {
    return dtype < DP_DTYPE_COUNT && (dp_insn_types(insn->op) >> dtype & 1);
}

/* Every offered type has its loop in the math table; a missing one is our bug and must not be a jump to nowhere. */
static inline void dp_need_loop(dp_core *core, const dp_insn *insn, bool present) {
    if (DP_UNLIKELY(!present))
        dp_fault(core, insn, insn->loc, "no loop for %s is in this build; please report it",
                 dp_dtype_name(insn->operand[0].dtype));
}

/* Operands [first, end) must have one type. */
static inline void dp_same_dtype(dp_core *core, const dp_insn *insn, unsigned first, unsigned end) {
    for (unsigned k = first + 1; k < end; k++) {
        if (DP_UNLIKELY(insn->operand[k].dtype != insn->operand[first].dtype))
            dp_fault(core, insn, insn->loc, "the %s is %s but the %s is %s; they must have one type", dp_operand_role(insn, k),
                     dp_dtype_name(insn->operand[k].dtype), dp_operand_role(insn, first),
                     dp_dtype_name(insn->operand[first].dtype));
    }
}

#endif
