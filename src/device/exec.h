/*
 * exec.h - what the executors of the instruction families share: the family table, operand checks, masks and lanes.
 *
 * A family exports two functions. dp_exec_<family> checks the instruction and performs it; it never returns when the
 * instruction is illegal (dp_fault). dp_visit_<family> names the bytes the instruction touches, without side effects, in
 * the state before as well as after the execution (see dp_insn_visit).
 */
#ifndef DOPPEL_DEVICE_EXEC_H
#define DOPPEL_DEVICE_EXEC_H

#include "device/core.h"
#include "device/gm.h"
#include "math/math.h"

/* Every family: F(enumerator suffix, function suffix). */
#define DP_FAMILIES(F)                                                                                                 \
    F(BINARY, binary)                                                                                                  \
    F(UNARY, unary)                                                                                                    \
    F(SCALAR, scalar)                                                                                                  \
    F(TERNARY, ternary)                                                                                                \
    F(AXPY, axpy)                                                                                                      \
    F(CAST, cast)                                                                                                      \
    F(WIDTH2, width2)                                                                                                  \
    F(COMPARE, compare)                                                                                                \
    F(SELECT, select)                                                                                                  \
    F(FILL, fill)                                                                                                      \
    F(VCOPY, vcopy)                                                                                                    \
    F(REDUCE, reduce)                                                                                                  \
    F(STATE, state)                                                                                                    \
    F(SYNC, sync)                                                                                                      \
    F(BRCB, brcb)                                                                                                      \
    F(INDEX, index)                                                                                                    \
    F(VPAD, vpad)                                                                                                      \
    F(GATHER, gather)                                                                                                  \
    F(GATHER_MASK, gather_mask)                                                                                        \
    F(SORT, sort)                                                                                                      \
    F(PROPOSAL, proposal)                                                                                              \
    F(TRANSPOSE, transpose)                                                                                            \
    F(BILINEAR, bilinear)                                                                                              \
    F(COPY, copy)                                                                                                      \
    F(COPY_ND2NZ, copy_nd2nz)                                                                                          \
    F(COPY_NZ2ND, copy_nz2nd)                                                                                          \
    F(FILL_SPACE, fill_space)                                                                                          \
    F(SCALAR_MEM, scalar_mem)                                                                                          \
    F(CROSS, cross)                                                                                                    \
    F(QUEUE, queue)

typedef enum dp_family {
#define DP_FAMILY_ENUM(upper, lower) DP_FAMILY_##upper,
    DP_FAMILIES(DP_FAMILY_ENUM)
#undef DP_FAMILY_ENUM
    DP_FAMILY_COUNT
} dp_family;

typedef void (*dp_exec_fn)(dp_core *core, dp_insn *insn);
typedef void (*dp_visit_fn)(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context);

#define DP_FAMILY_DECLARE(upper, lower)                                                                                \
    void dp_exec_##lower(dp_core *core, dp_insn *insn);                                                                \
    void dp_visit_##lower(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context);
DP_FAMILIES(DP_FAMILY_DECLARE)
#undef DP_FAMILY_DECLARE

/* Family of an instruction; op must be below DP_OP_COUNT. */
dp_family dp_insn_family(unsigned op);

/* Queue state of a core (queue.c): made empty at block begin, given back when the core is destroyed. */
void dp_queue_block_begin(dp_core *core);
void dp_queue_block_end(dp_core *core, bool faulted);
void dp_queue_destroy(dp_core *core);

/* Modes of dp_access_fn. */
enum { DP_READ = 1, DP_WRITE = 2, DP_READ_WRITE = 3 };

/*
 * Operand k must lie in its space (on-chip memory of this core, or a registered GM range) with all of
 * [addr, addr + extent_bytes), within its tensor (size_bytes, 0 = unknown), and start on a multiple of align_bytes
 * (a power of two). Faults otherwise. extent_bytes 0 checks the address alone.
 */
void dp_operand_check(dp_core *core, const dp_insn *insn, unsigned k, size_t extent_bytes, unsigned align_bytes);
/* [addr, addr + extent_bytes) lies in one registered range of device memory. */
bool dp_gm_holds(dp_core *core, const void *addr, size_t extent_bytes);
/* "destination", "source", "source 0", ... */
const char *dp_operand_role(const dp_insn *insn, unsigned k);
/* Faults unless operand k is in `space`. */
void dp_operand_in_space(dp_core *core, const dp_insn *insn, unsigned k, dp_space space);
/* Writes "half, float, int16 or int32" for a set of types (bit = dtype). Returns text. */
const char *dp_dtype_list(uint32_t types, char *text, size_t text_bytes);

/*
 * The lanes an instruction works on, resolved from its mask form, the mask register and the mask mode.
 * A repeat is 256 bytes of the widest operand: per_repeat lanes. Lane i of a repeat of an operand lies in its block
 * i / (32 / element size) (block_stride apart), repeats are repeat_stride apart.
 */
typedef struct dp_lanes {
    uint64_t mask[2];    /* selected lanes of a repeat */
    uint32_t per_repeat; /* lanes of one repeat: 256 / widest_bytes */
    uint32_t repeats;    /* 0: nothing to do */
    uint32_t last;       /* lanes of the last repeat that take part: per_repeat, or fewer in counter mode */
    uint32_t high;       /* one past the highest selected lane of a full repeat */
    bool full;           /* the mask selects every lane */
    bool flat;           /* count form: operands are contiguous whatever their strides say */
} dp_lanes;

/* Does not change the core. Faults when repeat is over 255 in a repeat form. */
void dp_lanes_resolve(const dp_core *core, const dp_insn *insn, unsigned widest_bytes, dp_lanes *out_lanes);
/* Leaves the mask register and mask mode as the instruction's mask form leaves them; called after dp_lanes_resolve. */
void dp_mask_commit(dp_core *core, const dp_insn *insn, unsigned widest_bytes);
/* Bytes from the operand's address to one past its last touched byte. bits: of one element (4 for int4). */
size_t dp_lanes_extent(const dp_lanes *lanes, const dp_operand *operand, unsigned bits);
/* Every selected lane of operand k as byte runs. bits as above. */
void dp_lanes_visit(const dp_lanes *lanes, const dp_insn *insn, unsigned k, unsigned bits, unsigned mode,
                    dp_access_fn visit, void *context);

/* Bytes of one element of operand k (int4 counts as 1; use dp_dtype_bits there). */
static inline unsigned dp_operand_bytes(const dp_insn *insn, unsigned k) {
    unsigned bits = dp_dtype_bits(insn->operand[k].dtype);
    return bits < 8 ? 1 : bits / 8;
}

/* SetValue to device memory while SetStoreAtomicConfig makes such stores add. */
static inline bool dp_is_atomic_store(const dp_core *core, const dp_insn *insn) {
    return core->store_atomic && insn->op == DP_OP_SCALAR_STORE && insn->operand[0].space == DP_SPACE_GM;
}

/* Element types an instruction is offered for (bit = dtype), 0 when insn_types.def has no row. op below DP_OP_COUNT. */
extern const uint32_t dp_insn_type_sets[DP_OP_COUNT];
static inline uint32_t dp_insn_types(unsigned op) { return dp_insn_type_sets[op]; }

#endif
