/* Executors of FILL (Duplicate) and VCOPY (Copy). */
#include <string.h>

#include "device/count.h"
#include "device/vector.h"

typedef struct fill_run {
    dp_fill_fn fn;
    const void *scalar;
} fill_run;

static void run_fill(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    const fill_run *run = context;
    run->fn(at[0], run->scalar, lanes);
}

void dp_exec_fill(dp_core *core, dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    fill_run run = {core->math->fill[dtype], &insn->scalar_bits};
    dp_need_loop(core, insn, run.fn != NULL);
    size_t n = dp_walk_contiguous(core, insn, 1);
    if (DP_LIKELY(n)) {
        run.fn(insn->operand[0].addr, &insn->scalar_bits, n);
        return;
    }
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_1, &walk))
        dp_walk_run(&walk, run_fill, &run);
}

void dp_count_fill(uint32_t code, const dp_local *dst, uint64_t scalar_bits, uint32_t n, dp_loc loc) {
    unsigned op = dp_code_op(code), dtype = dp_code_dst(code);
    dp_core *core = dp_quiet_core();
    bool offered = core && op == DP_OP_DUPLICATE && dp_insn_types(op) >> dtype & 1;
    dp_fill_fn fn = offered ? core->math->fill[dtype] : NULL;
    if (DP_LIKELY(fn && n && dp_in_ub(core, dst, (uint64_t)n * dp_dtype_bits(dtype) / 8, DP_BLOCK_BYTES))) {
        dp_count_done(core);
        fn(dst->addr, &scalar_bits, n);
        return;
    }
    dp_count_issue(code, &dst, 1, scalar_bits, n, loc);
}

void dp_visit_fill(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_1, DP_WRITE, visit, context);
}

static void run_copy(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    (void)lane;
    size_t bytes = *(const unsigned *)context * lanes;
    if (at[0] != at[1])
        memcpy(at[0], at[1], bytes);
}

void dp_exec_vcopy(dp_core *core, dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    dp_same_dtype(core, insn, 0, 2);
    unsigned bytes = dp_operand_bytes(insn, 0);
    dp_walk walk;
    if (dp_walk_begin(core, insn, &dp_walk_2, &walk))
        dp_walk_run(&walk, run_copy, &bytes);
}

void dp_visit_vcopy(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    dp_walk_visit(core, insn, &dp_walk_2, DP_WRITE, visit, context);
}
