/*
 * broadcast.c - Brcb, CreateVecIndex, VectorPadding.
 *
 * BRCB   [0] destination, [1] eight values a repeat, contiguous; each fills one block of the destination; repeat
 * INDEX  [0] destination; scalar_bits = first value; mask. Lane i of repeat r gets first + r * (lanes of a repeat) + i
 */
#include "device/runs.h"
#include "base/half.h"

#include <inttypes.h>
#include <string.h>

enum { VALUES = 8 };

static void check_element(dp_core *core, const dp_insn *insn) {
    unsigned bits = dp_dtype_bits(insn->operand[0].dtype);
    if (bits != 16 && bits != 32)
        dp_fault(core, insn, insn->loc, "elements of %s are not possible: only 16-bit and 32-bit ones",
                 dp_dtype_name(insn->operand[0].dtype));
}

static size_t block_at(const dp_operand *dst, size_t repeat, size_t block) {
    return (repeat * dst->repeat_stride + block * dst->block_stride) * DP_BLOCK_BYTES;
}

void dp_exec_brcb(dp_core *core, dp_insn *insn) {
    const dp_operand *dst = &insn->operand[0];
    size_t bytes = dp_operand_bytes(insn, 0);
    check_element(core, insn);
    dp_operand_in_space(core, insn, 0, DP_SPACE_UB);
    dp_operand_in_space(core, insn, 1, DP_SPACE_UB);
    if (insn->repeat > 255)
        dp_fault(core, insn, insn->loc, "repeatTimes is %" PRIu32 ": at most 255 are possible", insn->repeat);
    if (!insn->repeat)
        return;
    dp_operand_check(core, insn, 0, block_at(dst, insn->repeat - 1, VALUES - 1) + DP_BLOCK_BYTES, DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 1, insn->repeat * VALUES * bytes, DP_BLOCK_BYTES);
    dp_fill_fn fill = core->math->fill[dst->dtype];
    for (size_t r = 0; r < insn->repeat; r++)
        for (size_t b = 0; b < VALUES; b++)
            fill((uint8_t *)dst->addr + block_at(dst, r, b),
                 (const uint8_t *)insn->operand[1].addr + (r * VALUES + b) * bytes, DP_BLOCK_BYTES / bytes);
}

void dp_visit_brcb(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core;
    if (insn->repeat > 255) /* refused by the executor */
        return;
    dp_runs writes = {.visit = visit, .context = context, .operand = 0, .mode = DP_WRITE};
    for (size_t i = 0; i < (size_t)insn->repeat * VALUES; i++)
        dp_runs_add(&writes,
                    (const uint8_t *)insn->operand[0].addr + block_at(&insn->operand[0], i / VALUES, i % VALUES),
                    DP_BLOCK_BYTES);
    dp_runs_end(&writes);
    if (insn->repeat)
        visit(context, 1, DP_READ, insn->operand[1].addr, (size_t)insn->repeat * VALUES * dp_operand_bytes(insn, 0));
}

/* first + i in the element type, as its bits. half and float: the sum in float, then rounded. */
static uint32_t index_bits(const dp_insn *insn, uint32_t i) {
    uint32_t first = (uint32_t)insn->scalar_bits;
    switch (insn->operand[0].dtype) {
    case DP_F16:
        return dp_f16_from_f32(dp_f32_from_f16((uint16_t)first) + (float)i);
    case DP_F32:
        return dp_f32_bits(dp_f32_from_bits(first) + (float)i);
    default:
        return first + i;
    }
}

void dp_exec_index(dp_core *core, dp_insn *insn) {
    const dp_operand *dst = &insn->operand[0];
    size_t bytes = dp_operand_bytes(insn, 0), per_block = DP_BLOCK_BYTES / bytes;
    dp_lanes lanes;
    if (dst->dtype != DP_F16 && dst->dtype != DP_I16 && dst->dtype != DP_F32 && dst->dtype != DP_I32)
        dp_fault(core, insn, insn->loc, "an index of %s is not possible: use half, float, int16_t or int32_t",
                 dp_dtype_name(dst->dtype));
    dp_operand_in_space(core, insn, 0, DP_SPACE_UB);
    dp_lanes_resolve(core, insn, (unsigned)bytes, &lanes);
    dp_mask_commit(core, insn, (unsigned)bytes);
    dp_operand_check(core, insn, 0, dp_lanes_extent(&lanes, dst, (unsigned)bytes * 8), DP_BLOCK_BYTES);
    size_t block_pitch = lanes.flat ? DP_BLOCK_BYTES : (size_t)dst->block_stride * DP_BLOCK_BYTES;
    size_t repeat_pitch = lanes.flat ? DP_REPEAT_BYTES : (size_t)dst->repeat_stride * DP_BLOCK_BYTES;
    for (uint32_t r = 0; r < lanes.repeats; r++) {
        uint32_t end = r + 1 == lanes.repeats ? lanes.last : lanes.per_repeat;
        for (uint32_t i = 0; i < end; i++) {
            if (!(lanes.mask[i / 64] >> (i % 64) & 1))
                continue;
            uint32_t bits = index_bits(insn, r * lanes.per_repeat + i);
            memcpy((uint8_t *)dst->addr + r * repeat_pitch + i / per_block * block_pitch + i % per_block * bytes, &bits,
                   bytes);
        }
    }
}

void dp_visit_index(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    unsigned bytes = dp_operand_bytes(insn, 0);
    dp_lanes lanes;
    dp_lanes_resolve(core, insn, bytes, &lanes);
    dp_lanes_visit(&lanes, insn, 0, bytes * 8, DP_WRITE, visit, context);
}

void dp_exec_vpad(dp_core *core, dp_insn *insn) {
    dp_fault(core, insn, insn->loc, "%s does not have this instruction: gather with offsets, or copy block by block",
             core->chip->name);
}

void dp_visit_vpad(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core, (void)insn, (void)visit, (void)context;
}
