/* Names for messages. */
#include <stdio.h>
#include <string.h>

#include "device/exec.h"

const char *dp_pipe_name(unsigned pipe) {
    static const char *const names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};
    return pipe < sizeof names / sizeof *names ? names[pipe] : "unknown pipe";
}

const char *dp_space_name(unsigned space) {
    static const char *const names[DP_SPACE_COUNT] = {"no memory", "GM", "UB", "L1", "L0A", "L0B", "L0C", "BT", "FB"};
    return space < DP_SPACE_COUNT ? names[space] : "unknown memory";
}

const char *dp_dtype_name(unsigned dtype) {
    static const char *const names[DP_DTYPE_COUNT] = {"int8",   "uint8",  "int16", "uint16",   "int32", "uint32", "int64",
                                                      "uint64", "half",   "bfloat16", "float", "double", "int4"};
    return dtype < DP_DTYPE_COUNT ? names[dtype] : "unknown type";
}

const char *dp_dtype_list(uint32_t types, char *text, size_t text_bytes) {
    size_t used = 0;
    unsigned left = (unsigned)__builtin_popcount(types);
    text[0] = 0;
    for (unsigned t = 0; t < DP_DTYPE_COUNT && used < text_bytes; t++) {
        if (!(types >> t & 1))
            continue;
        left--;
        const char *after = left > 1 ? ", " : left == 1 ? " or " : "";
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", dp_dtype_name(t), after);
    }
    return text;
}

/* The destination is operand 0; sources are numbered as in the call, a lone source has no number. */
const char *dp_operand_role(const dp_insn *insn, unsigned k) {
    static const char *const sources[] = {"source 0", "source 1", "source 2"};
    if (k == 0)
        return "destination";
    if (insn->n_operands <= 2)
        return "source";
    if (dp_insn_family(insn->op) == DP_FAMILY_SELECT)
        return k == 1 ? "selection mask" : sources[k - 2];
    if (dp_insn_family(insn->op) == DP_FAMILY_REDUCE)
        return k == 1 ? "source" : "work buffer";
    return sources[k - 1];
}
