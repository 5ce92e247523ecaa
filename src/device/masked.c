/* Footprints of masked instructions by blocks instead of lanes. */
#include "device/walk.h"

enum { BLOCKS_MAX = 32 }; /* of a repeat of the narrowest operand that has a mask */

/* Operands that are walked lane by lane, and how the first is touched; NULL: another kind of instruction. */
static const dp_walk_set *set_of(const dp_insn *insn, unsigned *out_mode0) {
    *out_mode0 = DP_WRITE;
    switch (dp_insn_family(insn->op)) {
    case DP_FAMILY_FILL:
        return &dp_walk_1;
    case DP_FAMILY_UNARY:
    case DP_FAMILY_SCALAR:
    case DP_FAMILY_VCOPY:
        return &dp_walk_2;
    case DP_FAMILY_CAST:
        return insn->op == DP_OP_CAST ? &dp_walk_2 : NULL;
    case DP_FAMILY_BINARY:
    case DP_FAMILY_WIDTH2:
        return &dp_walk_3;
    case DP_FAMILY_AXPY:
        *out_mode0 = DP_READ_WRITE;
        return &dp_walk_2;
    case DP_FAMILY_TERNARY:
        *out_mode0 = DP_READ_WRITE;
        return &dp_walk_3;
    default:
        return NULL;
    }
}

static bool is_in_place(const dp_core *core, const dp_operand *operand, const dp_lanes *lanes) {
    const dp_core_memory *ub = &core->memory[DP_SPACE_UB];
    unsigned bits = dp_dtype_bits(operand->dtype);
    size_t offset = (size_t)((const uint8_t *)operand->addr - ub->base);
    if (operand->space != DP_SPACE_UB || bits < 8 || (const uint8_t *)operand->addr < ub->base ||
        offset > ub->size_bytes || offset % DP_BLOCK_BYTES)
        return false;
    return dp_lanes_extent(lanes, operand, bits) <= ub->size_bytes - offset;
}

/* Selected bytes of each block of a repeat; returns how many blocks there are. */
static uint32_t bytes_of_blocks(const dp_lanes *lanes, unsigned bytes, uint32_t out_bits[BLOCKS_MAX]) {
    uint32_t per_block = DP_BLOCK_BYTES / bytes, blocks = (lanes->high + per_block - 1) / per_block;
    for (uint32_t b = 0; b < blocks; b++)
        out_bits[b] = 0;
    for (uint32_t i = 0; i < lanes->high; i++) {
        uint32_t lane = (uint32_t)(((1ull << bytes) - 1) << (i % per_block * bytes));
        if (lanes->mask[i / 64] >> (i % 64) & 1)
            out_bits[i / per_block] |= lane;
    }
    return blocks;
}

static void visit_operand(const dp_lanes *lanes, const dp_insn *insn, unsigned k, unsigned mode, dp_lanes_fn visit,
                          void *context) {
    const dp_operand *operand = &insn->operand[k];
    uint32_t bits[BLOCKS_MAX], blocks = bytes_of_blocks(lanes, dp_dtype_bits(operand->dtype) / 8, bits);
    const uint8_t *begin = NULL, *end = NULL; /* of a run that may grow */
    uint32_t run_bits = 0;
    for (uint32_t r = 0; r < lanes->repeats; r++) {
        const uint8_t *repeat = (const uint8_t *)operand->addr + (size_t)r * operand->repeat_stride * DP_BLOCK_BYTES;
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *at = repeat + (size_t)b * operand->block_stride * DP_BLOCK_BYTES;
            if (!bits[b])
                continue;
            if (at != end || bits[b] != run_bits) {
                if (end)
                    visit(context, k, mode, begin, (uint32_t)(end - begin) / DP_BLOCK_BYTES, run_bits);
                begin = at;
                run_bits = bits[b];
            }
            end = at + DP_BLOCK_BYTES;
        }
    }
    if (end)
        visit(context, k, mode, begin, (uint32_t)(end - begin) / DP_BLOCK_BYTES, run_bits);
}

bool dp_insn_visit_lanes(const dp_core *core, const dp_insn *insn, dp_lanes_fn visit, void *context) {
    if (insn->op >= DP_OP_COUNT || insn->mask_kind == DP_MASK_COUNT || core->counter_mode || insn->repeat > 255)
        return false;
    unsigned mode0;
    const dp_walk_set *set = set_of(insn, &mode0);
    if (!set)
        return false;
    for (unsigned p = 0; p < set->count; p++) {
        if (insn->operand[p].dtype >= DP_DTYPE_COUNT || dp_dtype_bits(insn->operand[p].dtype) < 8)
            return false;
    }
    dp_lanes lanes;
    dp_lanes_resolve(core, insn, dp_walk_widest(insn, set), &lanes);
    if (lanes.full || !lanes.repeats || lanes.high > 128)
        return false;
    for (unsigned p = 0; p < set->count; p++) {
        if (!is_in_place(core, &insn->operand[p], &lanes))
            return false;
    }
    for (unsigned p = 0; p < set->count; p++)
        visit_operand(&lanes, insn, set->which[p], p ? DP_READ : mode0, visit, context);
    return true;
}
