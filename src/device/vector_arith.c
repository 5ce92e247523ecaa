/* Executors of the lane-by-lane families BINARY, UNARY, SCALAR, TERNARY and AXPY. */
#include "device/vector.h"
#include "device/walk.h"

_Static_assert(DP_OP_SUB_RELU - DP_OP_ADD == DP_MATH_SUB_RELU - DP_MATH_ADD, "BINARY rows follow dp_math_binary");

void dp_fault_dtype(dp_core *core, const dp_insn *insn, uint32_t types) {
    char list[160];
    dp_fault(core, insn, insn->loc, "element type %s is not offered; use %s", dp_dtype_name(insn->operand[0].dtype),
             dp_dtype_list(types, list, sizeof list));
}

typedef struct binary_run {
    dp_binary_fn fn;
} binary_run;

static void run_binary(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lanes) {
    ((const binary_run *)context)->fn(at[0], at[1], at[2], lanes);
}

void dp_exec_binary(dp_core *core, dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype;
    dp_binary_fn fn = dp_vector_offered(insn, dtype) ? core->math->binary[insn->op - DP_OP_ADD][dtype] : NULL;
    if (DP_UNLIKELY(!fn))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    dp_same_dtype(core, insn, 0, 3);
    dp_walk walk;
    if (!dp_walk_begin(core, insn, 0, 3, &walk))
        return;
    if (DP_LIKELY(walk.dense)) {
        fn(walk.addr[0], walk.addr[1], walk.addr[2], dp_walk_lanes(&walk));
        return;
    }
    dp_walk_run(&walk, run_binary, &(binary_run){fn});
}

void dp_visit_binary(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, 0, 3, DP_WRITE, visit, context);
}
