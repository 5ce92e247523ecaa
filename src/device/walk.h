/*
 * walk.h - cuts a lane-by-lane instruction into contiguous runs, so that the loops of src/math can do the work.
 *
 * dp_walk_begin checks the operands, resolves the mask and leaves the mask register as the form leaves it. dp_walk_run then
 * calls run() with the address of each operand's first lane and a number of lanes. Lanes that are not selected keep the
 * destination's bytes. Repeats are done in order; inside one repeat sources are read before the destination is written.
 */
#ifndef DOPPEL_DEVICE_WALK_H
#define DOPPEL_DEVICE_WALK_H

#include "device/exec.h"

enum { DP_WALK_OPERANDS = 4, DP_WALK_SPAN_BYTES = 512, DP_WALK_MAX_LANES = 1 << 22 };

/* Operands of an instruction that are walked lane by lane. Place p of the walk is operand which[p]. */
typedef struct dp_walk_set {
    uint8_t count;
    uint8_t which[DP_WALK_OPERANDS]; /* a destination is operand 0 at place 0 */
} dp_walk_set;

typedef struct dp_walk {
    dp_lanes lanes;
    unsigned count;
    bool writes;                        /* place 0 is the destination */
    uint8_t *addr[DP_WALK_OPERANDS];
    uint32_t bits[DP_WALK_OPERANDS];    /* of one element */
    uint32_t block_stride[DP_WALK_OPERANDS], repeat_stride[DP_WALK_OPERANDS]; /* bytes */
    uint32_t segment;                   /* lanes per block of the widest operand: contiguous in every operand */
    bool nibbles;                       /* an operand is int4 */
    bool even[DP_WALK_OPERANDS];        /* the operand has no gaps from lane 0 to the last */
    bool dense;                         /* all lanes of all repeats are one run */
    bool by_repeat;                     /* set by the caller: a run must not go beyond its repeat */
    bool careful;                       /* a source partly overlaps the destination: results go through a buffer */
} dp_walk;

/* lane: number of the first lane, counted over whole repeats. */
typedef void (*dp_run_fn)(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes);

/* False: nothing to do. */
bool dp_walk_begin(dp_core *core, const dp_insn *insn, const dp_walk_set *set, dp_walk *out_walk);
void dp_walk_run(const dp_walk *walk, dp_run_fn run, const void *context);

/* Lanes of a dense walk. */
static inline size_t dp_walk_lanes(const dp_walk *walk) {
    return (size_t)(walk->lanes.repeats - 1) * walk->lanes.per_repeat + walk->lanes.last;
}

/* Widest element among the operands, in bytes. */
unsigned dp_walk_widest(const dp_insn *insn, const dp_walk_set *set);

/* Footprint of a lane-by-lane instruction: the destination (if in the set) with mode0, the others read. */
void dp_walk_visit(const dp_core *core, const dp_insn *insn, const dp_walk_set *set, unsigned mode0, dp_access_fn visit,
                   void *context);

/*
 * The short way for the commonest case: operands 0..count-1 in UB, every lane selected, contiguous, no partial overlap.
 * Number of lanes after the mask was left as the form leaves it; 0: not that case (or illegal), take dp_walk_begin.
 */
static inline size_t dp_walk_contiguous(dp_core *core, const dp_insn *insn, unsigned count) {
    unsigned bits[DP_WALK_OPERANDS], widest = 8;
    for (unsigned k = 0; k < count; k++) {
        bits[k] = dp_dtype_bits(insn->operand[k].dtype);
        widest = bits[k] > widest ? bits[k] : widest;
    }
    uint32_t per_repeat = DP_REPEAT_BYTES * 8 / widest;
    size_t n = insn->mask[0];
    if (insn->mask_kind != DP_MASK_COUNT) {
        bool all = insn->mask_kind == DP_MASK_LEADING ? n >= per_repeat
                   : insn->mask_kind == DP_MASK_BITS  ? n == ~0ull && (widest > 16 || insn->mask[1] == ~0ull)
                                                      : false;
        if (!all || core->counter_mode || insn->repeat > 255)
            return 0;
        for (unsigned k = 0; k < count; k++)
            all = all && insn->operand[k].block_stride == 1 && insn->operand[k].repeat_stride == 8 * bits[k] / widest;
        if (!all)
            return 0;
        n = (size_t)insn->repeat * per_repeat;
    } else if (n > DP_WALK_MAX_LANES) {
        return 0;
    }
    const dp_core_memory *ub = &core->memory[DP_SPACE_UB];
    uintptr_t dst = (uintptr_t)insn->operand[0].addr;
    size_t dst_bytes = n * bits[0] / 8;
    bool odd = false;
    for (unsigned k = 0; k < count; k++) {
        const dp_operand *operand = &insn->operand[k];
        uintptr_t addr = (uintptr_t)operand->addr;
        uint64_t offset = addr - (uintptr_t)ub->base, bytes = n * bits[k] / 8; /* a wrapped offset fails the next test */
        odd = odd || operand->space != DP_SPACE_UB || bits[k] < 8 || offset > ub->size_bytes ||
              offset + bytes > ub->size_bytes || (offset & (DP_BLOCK_BYTES - 1)) ||
              (operand->size_bytes && bytes > operand->size_bytes) || operand->past_end ||
              (k && addr < dst + dst_bytes && dst < addr + bytes && (addr != dst || bits[k] < bits[0]));
    }
    if (odd)
        return 0;
    if (insn->mask_kind == DP_MASK_COUNT)
        core->counter_mode = 0;
    core->mask[0] = core->mask[1] = ~0ull;
    if (insn->mask_kind == DP_MASK_BITS)
        core->mask[1] = insn->mask[1];
    return n;
}

/* The usual sets. */
extern const dp_walk_set dp_walk_1, dp_walk_2, dp_walk_3; /* operands 0..0, 0..1, 0..2 */

#endif
