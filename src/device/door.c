/* The door: one table from insn.def, one function every instruction passes. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/count.h"

enum { PIPE_ANY = DP_PIPE_COUNT };

typedef struct dp_insn_row {
    const char *name;
    const char *cost;
    uint8_t pipe;
    uint8_t family;
} dp_insn_row;

#define PIPE_OF_S DP_PIPE_S
#define PIPE_OF_V DP_PIPE_V
#define PIPE_OF_M DP_PIPE_M
#define PIPE_OF_MTE1 DP_PIPE_MTE1
#define PIPE_OF_MTE2 DP_PIPE_MTE2
#define PIPE_OF_MTE3 DP_PIPE_MTE3
#define PIPE_OF_FIX DP_PIPE_FIX
#define PIPE_OF_ANY PIPE_ANY

static const dp_insn_row rows[DP_OP_COUNT] = {
#define DP_INSN(op, name, pipe, family, cost) [DP_OP_##op] = {name, cost, PIPE_OF_##pipe, DP_FAMILY_##family},
#include "doppel/insn.def"
#undef DP_INSN
};

static const dp_exec_fn exec_of[DP_FAMILY_COUNT] = {
#define DP_FAMILY_ROW(upper, lower) [DP_FAMILY_##upper] = dp_exec_##lower,
    DP_FAMILIES(DP_FAMILY_ROW)
#undef DP_FAMILY_ROW
};

static const dp_visit_fn visit_of[DP_FAMILY_COUNT] = {
#define DP_FAMILY_ROW(upper, lower) [DP_FAMILY_##upper] = dp_visit_##lower,
    DP_FAMILIES(DP_FAMILY_ROW)
#undef DP_FAMILY_ROW
};

const uint32_t dp_insn_type_sets[DP_OP_COUNT] = {
#define DP_INSN_TYPES(op, types) [DP_OP_##op] = (types),
#include "doppel/insn_types.def"
#undef DP_INSN_TYPES
};

__thread dp_core *dp_thread_core;

static __attribute__((noinline, cold, noreturn)) void outside_kernel(const dp_insn *insn) {
    fprintf(stderr,
            "%s:%u: error: %s: called outside a kernel; kernel functions run on a device core only: launch the kernel with "
            "<<<blocks, dynamic, stream>>>\n",
            insn->loc.file ? insn->loc.file : "?", insn->loc.line, dp_insn_name(insn->op));
    fflush(stderr);
    abort();
}

static __attribute__((noinline, cold, noreturn)) void unknown_op(dp_core *core, const dp_insn *insn) {
    dp_fault(core, NULL, insn->loc, "instruction number %u does not exist; the program and libascendcl.so are of different "
             "versions: rebuild the program", insn->op);
}

static __attribute__((noinline, cold, noreturn)) void on_cube_core(dp_core *core, const dp_insn *insn) {
    dp_fault(core, insn, insn->loc, "a cube core has no vector unit; put the call under if ASCEND_IS_AIV, or make the kernel a vector "
             "kernel (KERNEL_TYPE_AIV_ONLY)");
}

static __attribute__((noinline)) void issue_observed(dp_core *core, dp_insn *insn) {
    const dp_observer *observer = core->observer;
    if (observer->before && !observer->before(core, insn))
        return;
    core->issued++;
    exec_of[rows[insn->op].family](core, insn);
    if (observer->after)
        observer->after(core, insn);
}

void dp_issue(dp_insn *insn) {
    dp_core *core = dp_thread_core;
    if (DP_UNLIKELY(!core))
        outside_kernel(insn);
    if (DP_UNLIKELY(insn->op >= DP_OP_COUNT))
        unknown_op(core, insn);
    if (DP_UNLIKELY(core->kind == DP_CORE_AIC && rows[insn->op].pipe == DP_PIPE_V))
        on_cube_core(core, insn);
    if (DP_UNLIKELY(atomic_load_explicit(&core->observer, memory_order_relaxed) != NULL)) {
        issue_observed(core, insn);
        return;
    }
    core->issued++;
    exec_of[rows[insn->op].family](core, insn);
}

void dp_count_issue(uint32_t code, const dp_local *const tensors[], unsigned count, uint64_t scalar_bits, uint32_t n,
                    dp_loc loc) {
    dp_insn insn = {.op = (uint16_t)dp_code_op(code), .mask_kind = DP_MASK_COUNT, .n_operands = (uint8_t)count, .repeat = 1,
                    .mask = {n}, .scalar_bits = scalar_bits, .loc = loc};
    insn.u.vec.round_mode = (uint8_t)dp_code_round(code);
    for (unsigned k = 0; k < count; k++) {
        const dp_local *tensor = tensors[k];
        insn.operand[k] = (dp_operand){.addr = tensor->addr,
                                       .size_bytes = tensor->size_bytes,
                                       .buffer_id = tensor->buffer_id,
                                       .block_stride = 1,
                                       .repeat_stride = 8,
                                       .dtype = (uint8_t)(k ? dp_code_src(code) : dp_code_dst(code)),
                                       .space = tensor->space,
                                       .past_end = tensor->size_bytes == 0};
    }
    if (insn.op < DP_OP_COUNT && rows[insn.op].family == DP_FAMILY_REDUCE) /* its destination's stride counts results */
        insn.operand[0].repeat_stride = 1;
    dp_issue(&insn);
}

dp_family dp_insn_family(unsigned op) { return (dp_family)rows[op].family; }
const char *dp_insn_name(unsigned op) { return op < DP_OP_COUNT ? rows[op].name : "unknown instruction"; }
const char *dp_insn_cost_row(unsigned op) { return op < DP_OP_COUNT ? rows[op].cost : "scalar"; }

void dp_insn_visit(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    bool known = insn->op < DP_OP_COUNT; /* else illegal: the executor faults and touches nothing */
    for (unsigned k = 0; k < 4; k++)
        known = known && insn->operand[k].dtype < DP_DTYPE_COUNT && insn->operand[k].space < DP_SPACE_COUNT;
    if (known)
        visit_of[rows[insn->op].family](core, insn, visit, context);
}

/* Facts: kernel-semantics section 8, "pipes". GM -> GM does not exist on the chip; it counts as MTE2. */
static dp_pipe copy_pipe(const dp_insn *insn) {
    unsigned dst = insn->operand[0].space, src = insn->operand[1].space;
    if (src == DP_SPACE_GM)
        return DP_PIPE_MTE2;
    if (src == DP_SPACE_L0C)
        return DP_PIPE_FIX;
    if (src == DP_SPACE_L1)
        return dst == DP_SPACE_FB ? DP_PIPE_FIX : dst == DP_SPACE_GM ? DP_PIPE_MTE3 : DP_PIPE_MTE1;
    if (src == DP_SPACE_UB)
        return dst == DP_SPACE_UB ? DP_PIPE_V : DP_PIPE_MTE3;
    return DP_PIPE_MTE2;
}

dp_pipe dp_insn_pipe(const dp_insn *insn) {
    if (insn->op >= DP_OP_COUNT)
        return DP_PIPE_S;
    const dp_insn_row *row = &rows[insn->op];
    if (row->pipe != PIPE_ANY)
        return (dp_pipe)row->pipe;
    switch (row->family) {
    case DP_FAMILY_COPY:
    case DP_FAMILY_COPY_ND2NZ:
    case DP_FAMILY_COPY_NZ2ND:
        return copy_pipe(insn);
    case DP_FAMILY_SYNC: /* a set belongs to the pipe it reports on, a wait to the pipe it holds */
        return (dp_pipe)(insn->op == DP_OP_WAIT_FLAG ? insn->u.sync.dst_pipe : insn->u.sync.src_pipe);
    case DP_FAMILY_CROSS:
        return (dp_pipe)insn->u.sync.src_pipe;
    default:
        return DP_PIPE_S;
    }
}
