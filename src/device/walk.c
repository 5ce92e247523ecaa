#include "device/walk.h"

#include <string.h>

unsigned dp_walk_widest(const dp_insn *insn, unsigned first, unsigned end) {
    unsigned widest = 1;
    for (unsigned k = first; k < end; k++) {
        unsigned bytes = dp_operand_bytes(insn, k);
        if (bytes > widest)
            widest = bytes;
    }
    return widest;
}

/* True when the operands share bytes and are not the same lanes at the same places. */
static bool partly_overlaps(const dp_walk *walk, const size_t extent[], unsigned k) {
    uintptr_t dst = (uintptr_t)walk->addr[0], src = (uintptr_t)walk->addr[k];
    if (src >= dst + extent[0] || dst >= src + extent[k])
        return false;
    return src != dst || walk->bits[k] != walk->bits[0] ||
           (!walk->lanes.flat && (walk->block_stride[k] != walk->block_stride[0] ||
                                  (walk->lanes.repeats > 1 && walk->repeat_stride[k] != walk->repeat_stride[0])));
}

bool dp_walk_begin(dp_core *core, const dp_insn *insn, unsigned first, unsigned end, dp_walk *out_walk) {
    unsigned widest = dp_walk_widest(insn, first, end);
    dp_walk *walk = out_walk;
    size_t extent[DP_WALK_OPERANDS];
    dp_lanes_resolve(core, insn, widest, &walk->lanes);
    walk->core = core;
    walk->first = first;
    walk->end = end;
    walk->segment = DP_BLOCK_BYTES / widest;
    walk->careful = false;
    bool dense = walk->lanes.full;
    for (unsigned k = first; k < end; k++) {
        const dp_operand *operand = &insn->operand[k];
        unsigned bits = dp_dtype_bits(operand->dtype);
        uint32_t natural = walk->lanes.per_repeat * bits / 8; /* bytes from repeat to repeat without a gap */
        walk->addr[k] = operand->addr;
        walk->bits[k] = bits;
        walk->block_stride[k] = walk->lanes.flat ? DP_BLOCK_BYTES : operand->block_stride * DP_BLOCK_BYTES;
        walk->repeat_stride[k] = walk->lanes.flat ? natural : operand->repeat_stride * DP_BLOCK_BYTES;
        extent[k] = dp_lanes_extent(&walk->lanes, operand, bits);
        dp_operand_in_space(core, insn, k, DP_SPACE_UB);
        dp_operand_check(core, insn, k, extent[k], DP_BLOCK_BYTES);
        dense = dense && walk->block_stride[k] == DP_BLOCK_BYTES &&
                (walk->repeat_stride[k] == natural || walk->lanes.repeats == 1);
    }
    if (first == 0) {
        for (unsigned k = 1; k < end; k++)
            walk->careful = walk->careful || partly_overlaps(walk, extent, k);
    }
    walk->dense = dense && !walk->careful;
    dp_mask_commit(core, insn, widest);
    return walk->lanes.repeats != 0;
}

/* Copies the lanes whose bit is set; lane 0 of both addresses starts a byte. */
static void blend(uint8_t *dst, const uint8_t *src, const uint64_t mask[2], uint32_t lanes, unsigned bits) {
    for (uint32_t i = 0; i < lanes; i++) {
        if (!(mask[i / 64] >> (i % 64) & 1))
            continue;
        if (bits == 4) {
            uint8_t keep = i & 1 ? 0x0f : 0xf0;
            dst[i / 2] = (uint8_t)((dst[i / 2] & keep) | (src[i / 2] & ~keep));
        } else {
            unsigned bytes = bits / 8;
            memcpy(dst + (size_t)i * bytes, src + (size_t)i * bytes, bytes);
        }
    }
}

static bool has_nibbles(const dp_walk *walk) {
    for (unsigned k = walk->first; k < walk->end; k++) {
        if (walk->bits[k] == 4)
            return true;
    }
    return false;
}

/* One run through a buffer: lanes [0, n) are computed, those of `mask` (NULL: all) are stored. */
static void run_buffered(const dp_walk *walk, dp_run_fn run, const void *context, uint8_t *const at[], uint32_t n,
                         const uint64_t *mask) {
    uint8_t buffer[DP_WALK_SPAN_BYTES] __attribute__((aligned(64)));
    size_t bytes = ((size_t)n * walk->bits[0] + 7) / 8;
    uint8_t *via[DP_WALK_OPERANDS] = {buffer, at[1], at[2], at[3]};
    static const uint64_t all[2] = {~0ull, ~0ull};
    memcpy(buffer, at[0], bytes);
    run(context, via, n);
    if (mask || walk->bits[0] == 4)
        blend(at[0], buffer, mask ? mask : all, n, walk->bits[0]);
    else
        memcpy(at[0], buffer, bytes);
}

/* Up to one repeat whose lanes are contiguous in every operand; mask bit 0 belongs to the first lane. */
static void run_span(const dp_walk *walk, dp_run_fn run, const void *context, uint8_t *const at[], uint32_t n,
                     const uint64_t mask[2], bool full) {
    bool nibbles = has_nibbles(walk);
    if (full) {
        if (walk->careful || (nibbles && (n & 1)))
            run_buffered(walk, run, context, at, n, NULL);
        else
            run(context, at, n);
        return;
    }
    uint64_t low = mask[0], high = mask[1];
    if (n < 128)
        high &= n > 64 ? (1ull << (n - 64)) - 1 : 0;
    if (n < 64)
        low &= (1ull << n) - 1;
    if (!(low | high))
        return;
    uint64_t bits[2] = {low, high};
    uint32_t begin = low ? (uint32_t)__builtin_ctzll(low) : 64 + (uint32_t)__builtin_ctzll(high);
    uint32_t end = high ? 128 - (uint32_t)__builtin_clzll(high) : 64 - (uint32_t)__builtin_clzll(low);
    uint32_t selected = (uint32_t)(__builtin_popcountll(low) + __builtin_popcountll(high));
    if (selected != end - begin || walk->careful || nibbles) {
        run_buffered(walk, run, context, at, end, bits);
        return;
    }
    uint8_t *from[DP_WALK_OPERANDS] = {0};
    for (unsigned k = walk->first; k < walk->end; k++)
        from[k] = at[k] + (size_t)begin * walk->bits[k] / 8;
    run(context, from, selected);
}

/* Block by block: for destinations whose blocks are apart. */
static void run_segments(const dp_walk *walk, dp_run_fn run, const void *context, uint8_t *const repeat[], uint32_t n) {
    for (uint32_t lane = 0; lane < n; lane += walk->segment) {
        uint8_t *at[DP_WALK_OPERANDS] = {0};
        for (unsigned k = walk->first; k < walk->end; k++) {
            uint32_t per_block = DP_BLOCK_BYTES * 8 / walk->bits[k];
            at[k] = repeat[k] + (size_t)(lane / per_block) * walk->block_stride[k] + lane % per_block * walk->bits[k] / 8;
        }
        uint32_t take = n - lane < walk->segment ? n - lane : walk->segment;
        uint64_t mask[2] = {walk->lanes.mask[lane / 64] >> (lane % 64), 0};
        run_span(walk, run, context, at, take, mask, walk->lanes.full);
    }
}

/* Brings the blocks of one repeat of a strided source together. */
static uint8_t *gather_blocks(const dp_walk *walk, unsigned k, const uint8_t *repeat, uint32_t n, uint8_t *buffer) {
    uint32_t blocks = (n * walk->bits[k] / 8 + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES;
    if (!blocks)
        blocks = 1;
    for (uint32_t b = 0; b < blocks; b++)
        memcpy(buffer + b * DP_BLOCK_BYTES, repeat + (size_t)b * walk->block_stride[k], DP_BLOCK_BYTES);
    return buffer;
}

void dp_walk_run(const dp_walk *walk, dp_run_fn run, const void *context) {
    if (walk->dense && !(has_nibbles(walk) && (dp_walk_lanes(walk) & 1))) {
        run(context, walk->addr, dp_walk_lanes(walk));
        return;
    }
    const dp_lanes *lanes = &walk->lanes;
    bool whole = walk->first != 0 || walk->block_stride[0] == DP_BLOCK_BYTES; /* destination blocks are neighbours */
    uint8_t buffers[DP_WALK_OPERANDS][DP_REPEAT_BYTES] __attribute__((aligned(64)));
    for (uint32_t r = 0; r < lanes->repeats; r++) {
        uint32_t n = r + 1 == lanes->repeats ? lanes->last : lanes->per_repeat;
        if (n > lanes->high)
            n = lanes->high;
        bool full = lanes->full;
        uint8_t *at[DP_WALK_OPERANDS] = {0};
        for (unsigned k = walk->first; k < walk->end; k++) {
            at[k] = walk->addr[k] + (size_t)r * walk->repeat_stride[k];
            if (whole && walk->block_stride[k] != DP_BLOCK_BYTES)
                at[k] = gather_blocks(walk, k, at[k], n, buffers[k]);
        }
        if (whole)
            run_span(walk, run, context, at, n, lanes->mask, full);
        else
            run_segments(walk, run, context, at, n);
    }
}

void dp_walk_visit(const dp_core *core, const dp_insn *insn, unsigned first, unsigned end, unsigned mode0,
                   dp_access_fn visit, void *context) {
    dp_lanes lanes;
    if (insn->repeat > 255 && insn->mask_kind != DP_MASK_COUNT && !core->counter_mode)
        return; /* illegal: the executor faults and touches nothing */
    dp_lanes_resolve(core, insn, dp_walk_widest(insn, first, end), &lanes);
    for (unsigned k = first; k < end; k++)
        dp_lanes_visit(&lanes, insn, k, dp_dtype_bits(insn->operand[k].dtype), k ? DP_READ : mode0, visit, context);
}
