/* Mask forms, mask register and mode; extents and footprints of strided, masked operands. */
#include "device/exec.h"

static __attribute__((noinline, cold, noreturn)) void fault_repeat(const dp_core *core, const dp_insn *insn) {
    dp_fault((dp_core *)core, insn, insn->loc,
             "repeat is %u, but one instruction repeats at most 255 times; split the call, or use the count form",
             insn->repeat);
}

static void leading_bits(uint64_t n, uint64_t out_mask[2]) {
    out_mask[0] = n >= 64 ? ~0ull : (1ull << n) - 1;
    out_mask[1] = n >= 128 ? ~0ull : n > 64 ? (1ull << (n - 64)) - 1 : 0;
}

static uint32_t one_past_highest(const uint64_t mask[2]) {
    if (mask[1])
        return 128 - (uint32_t)__builtin_clzll(mask[1]);
    return mask[0] ? 64 - (uint32_t)__builtin_clzll(mask[0]) : 0;
}

/* n elements in all: as many repeats as they fill, the last one cut. */
static void resolve_count(uint64_t n, bool flat, dp_lanes *out_lanes) {
    uint32_t per = out_lanes->per_repeat;
    uint32_t count = n > 0xffffff00u ? 0xffffff00u : (uint32_t)n; /* no on-chip memory holds more: the extent check faults */
    out_lanes->repeats = (count + per - 1) / per;
    out_lanes->last = count ? count - (out_lanes->repeats - 1) * per : 0;
    out_lanes->high = per;
    out_lanes->full = true;
    out_lanes->flat = flat;
    leading_bits(per, out_lanes->mask);
}

void dp_lanes_resolve(const dp_core *core, const dp_insn *insn, unsigned widest_bytes, dp_lanes *out_lanes) {
    out_lanes->per_repeat = DP_REPEAT_BYTES / widest_bytes;
    if (insn->mask_kind == DP_MASK_COUNT) {
        resolve_count(insn->mask[0], true, out_lanes);
        return;
    }
    const uint64_t *mask = insn->mask_kind == DP_MASK_REGISTER ? core->mask : insn->mask;
    if (core->counter_mode) {
        resolve_count(mask[0] & 0xffffffffu, false, out_lanes);
        return;
    }
    if (DP_UNLIKELY(insn->repeat > 255))
        fault_repeat(core, insn);
    uint64_t bits[2] = {mask[0], mask[1]}, all[2];
    if (insn->mask_kind == DP_MASK_LEADING)
        leading_bits(insn->mask[0], bits);
    else if (insn->mask_kind == DP_MASK_NONE)
        bits[0] = bits[1] = ~0ull;
    leading_bits(out_lanes->per_repeat, all);
    out_lanes->mask[0] = bits[0] & all[0];
    out_lanes->mask[1] = bits[1] & all[1];
    out_lanes->full = out_lanes->mask[0] == all[0] && out_lanes->mask[1] == all[1];
    out_lanes->high = out_lanes->full ? out_lanes->per_repeat : one_past_highest(out_lanes->mask);
    out_lanes->repeats = out_lanes->high ? insn->repeat : 0;
    out_lanes->last = out_lanes->per_repeat;
    out_lanes->flat = false;
}

void dp_mask_commit(dp_core *core, const dp_insn *insn, unsigned widest_bytes) {
    switch (insn->mask_kind) {
    case DP_MASK_COUNT:
        core->counter_mode = 0;
        core->mask[0] = core->mask[1] = ~0ull;
        break;
    case DP_MASK_LEADING:
        if (core->counter_mode) {
            core->mask[0] = insn->mask[0];
            core->mask[1] = 0;
        } else {
            uint32_t per = DP_REPEAT_BYTES / widest_bytes;
            leading_bits(insn->mask[0] >= per ? 128 : insn->mask[0], core->mask);
        }
        break;
    case DP_MASK_BITS:
        core->mask[0] = insn->mask[0];
        core->mask[1] = insn->mask[1];
        break;
    default:
        break;
    }
}

/* Byte offset just past lane `lanes`-1 of one repeat, the largest over the lanes before it included. */
static size_t repeat_extent(uint32_t lanes, uint32_t lanes_per_block, size_t block_stride_bytes, unsigned bits) {
    uint32_t block = (lanes - 1) / lanes_per_block, lane = (lanes - 1) % lanes_per_block;
    if (block && block_stride_bytes < DP_BLOCK_BYTES)
        return DP_BLOCK_BYTES; /* stride 0: every block is the first one */
    return block * block_stride_bytes + ((size_t)(lane + 1) * bits + 7) / 8;
}

size_t dp_lanes_extent(const dp_lanes *lanes, const dp_operand *operand, unsigned bits) {
    if (!lanes->repeats)
        return 0;
    if (lanes->flat)
        return (((size_t)(lanes->repeats - 1) * lanes->per_repeat + lanes->last) * bits + 7) / 8;
    uint32_t per_block = DP_BLOCK_BYTES * 8 / bits;
    size_t block_stride = (size_t)operand->block_stride * DP_BLOCK_BYTES;
    size_t repeat_stride = (size_t)operand->repeat_stride * DP_BLOCK_BYTES;
    uint32_t tail = lanes->last < lanes->high ? lanes->last : lanes->high;
    size_t extent = (lanes->repeats - 1) * repeat_stride + repeat_extent(tail, per_block, block_stride, bits);
    if (lanes->repeats > 1 && tail < lanes->high) {
        size_t before = (lanes->repeats - 2) * repeat_stride + repeat_extent(lanes->high, per_block, block_stride, bits);
        if (before > extent)
            extent = before;
    }
    return extent;
}

enum { VISIT_LANES_MAX = 1 << 20 };

/* A run that is still growing. */
typedef struct open_run {
    const uint8_t *begin;
    size_t bytes;
} open_run;

void dp_lanes_visit(const dp_lanes *lanes, const dp_insn *insn, unsigned k, unsigned bits, unsigned mode,
                    dp_access_fn visit, void *context) {
    const dp_operand *operand = &insn->operand[k];
    if (!lanes->repeats)
        return;
    if ((uint64_t)lanes->repeats * lanes->per_repeat > VISIT_LANES_MAX) { /* more than any memory holds */
        visit(context, k, mode, operand->addr, dp_lanes_extent(lanes, operand, bits));
        return;
    }
    uint32_t per_block = DP_BLOCK_BYTES * 8 / bits;
    uint32_t blocks = (lanes->per_repeat + per_block - 1) / per_block;
    bool dense = lanes->full && operand->block_stride == 1 && operand->repeat_stride == blocks &&
                 lanes->per_repeat % per_block == 0;
    if (lanes->flat || dense) {
        visit(context, k, mode, operand->addr,
              (((size_t)(lanes->repeats - 1) * lanes->per_repeat + lanes->last) * bits + 7) / 8);
        return;
    }
    open_run run = {NULL, 0};
    for (uint32_t r = 0; r < lanes->repeats; r++) {
        const uint8_t *repeat = (const uint8_t *)operand->addr + (size_t)r * operand->repeat_stride * DP_BLOCK_BYTES;
        uint32_t end = r + 1 == lanes->repeats ? lanes->last : lanes->per_repeat;
        for (uint32_t i = 0; i < end; i++) {
            if (!lanes->full && (i >= 128 || !(lanes->mask[i / 64] >> (i % 64) & 1)))
                continue; /* a mask has 128 bits: 8-bit lanes beyond are never selected */
            size_t bit = (size_t)(i % per_block) * bits;
            const uint8_t *at = repeat + (size_t)(i / per_block) * operand->block_stride * DP_BLOCK_BYTES + bit / 8;
            size_t bytes = (bits + 7) / 8;
            if (run.bytes && at == run.begin + run.bytes) {
                run.bytes += bytes;
            } else if (!run.bytes || at + bytes != run.begin + run.bytes) { /* the second int4 of a byte adds nothing */
                if (run.bytes)
                    visit(context, k, mode, run.begin, run.bytes);
                run = (open_run){at, bytes};
            }
        }
    }
    if (run.bytes)
        visit(context, k, mode, run.begin, run.bytes);
}
