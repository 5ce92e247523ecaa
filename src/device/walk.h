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

enum { DP_WALK_OPERANDS = 4, DP_WALK_SPAN_BYTES = 512 };

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
    bool dense;                         /* all lanes of all repeats are one run */
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

/* The usual sets. */
extern const dp_walk_set dp_walk_1, dp_walk_2, dp_walk_3; /* operands 0..0, 0..1, 0..2 */

#endif
