/* Families without an executor: their instructions are refused. Writing a family means deleting its line here. */
#include "device/exec.h"

#define DP_MISSING(family)                                                                                             \
    void dp_exec_##family(dp_core *core, dp_insn *insn) {                                                              \
        dp_fault(core, insn, insn->loc, "this instruction is not supported; see the supported API table in docs");     \
    }                                                                                                                  \
    void dp_visit_##family(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {              \
        (void)core, (void)insn, (void)visit, (void)context;                                                            \
    }

DP_MISSING(brcb)
DP_MISSING(index)
DP_MISSING(vpad)
DP_MISSING(gather)
DP_MISSING(gather_mask)
DP_MISSING(sort)
DP_MISSING(proposal)
DP_MISSING(transpose)
DP_MISSING(bilinear)
DP_MISSING(copy)
DP_MISSING(copy_nd2nz)
DP_MISSING(copy_nz2nd)
DP_MISSING(fill_space)
DP_MISSING(scalar_mem)
DP_MISSING(cross)
