#include "device/walk.h"

#include <string.h>

enum { BATCH = 8 }; /* repeats that are worth one call */

const dp_walk_set dp_walk_1 = {1, {0}}, dp_walk_2 = {2, {0, 1}}, dp_walk_3 = {3, {0, 1, 2}};

unsigned dp_walk_widest(const dp_insn *insn, const dp_walk_set *set) {
    unsigned widest = 1;
    for (unsigned p = 0; p < set->count; p++) {
        unsigned bytes = dp_operand_bytes(insn, set->which[p]);
        if (bytes > widest)
            widest = bytes;
    }
    return widest;
}

/* True when the operands share bytes and are not the same lanes at the same places. */
static bool partly_overlaps(const dp_walk *walk, const size_t extent[], unsigned p) {
    uintptr_t dst = (uintptr_t)walk->addr[0], src = (uintptr_t)walk->addr[p];
    if (src >= dst + extent[0] || dst >= src + extent[p])
        return false;
    return src != dst || walk->bits[p] != walk->bits[0] ||
           (!walk->lanes.flat && (walk->block_stride[p] != walk->block_stride[0] ||
                                  (walk->lanes.repeats > 1 && walk->repeat_stride[p] != walk->repeat_stride[0])));
}

bool dp_walk_begin(dp_core *core, const dp_insn *insn, const dp_walk_set *set, dp_walk *out_walk) {
    unsigned widest = dp_walk_widest(insn, set);
    dp_walk *walk = out_walk;
    size_t extent[DP_WALK_OPERANDS];
    dp_lanes_resolve(core, insn, widest, &walk->lanes);
    walk->count = set->count;
    walk->writes = set->which[0] == 0;
    walk->segment = DP_BLOCK_BYTES / widest;
    walk->careful = walk->nibbles = walk->by_repeat = false;
    bool dense = walk->lanes.full;
    for (unsigned p = 0; p < set->count; p++) {
        unsigned k = set->which[p];
        const dp_operand *operand = &insn->operand[k];
        unsigned bits = dp_dtype_bits(operand->dtype);
        uint32_t natural = walk->lanes.per_repeat * bits / 8; /* bytes from repeat to repeat without a gap */
        walk->addr[p] = operand->addr;
        walk->bits[p] = bits;
        walk->nibbles = walk->nibbles || bits == 4;
        walk->block_stride[p] = walk->lanes.flat ? DP_BLOCK_BYTES : operand->block_stride * DP_BLOCK_BYTES;
        walk->repeat_stride[p] = walk->lanes.flat ? natural : operand->repeat_stride * DP_BLOCK_BYTES;
        extent[p] = dp_lanes_extent(&walk->lanes, operand, bits);
        dp_operand_in_space(core, insn, k, DP_SPACE_UB);
        dp_operand_check(core, insn, k, extent[p], DP_BLOCK_BYTES);
        /* a repeat of up to one block never uses the block stride */
        walk->even[p] = (walk->block_stride[p] == DP_BLOCK_BYTES || natural <= DP_BLOCK_BYTES) &&
                        (walk->repeat_stride[p] == natural || walk->lanes.repeats <= 1);
        dense = dense && walk->even[p];
    }
    if (walk->writes) {
        for (unsigned p = 1; p < set->count; p++)
            walk->careful = walk->careful || partly_overlaps(walk, extent, p);
    }
    walk->dense = dense && !walk->careful && !(walk->nibbles && (walk->lanes.last & 1));
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

/* One run through a buffer: lanes [0, n) are computed, those of `mask` (NULL: all) are stored. */
static void run_buffered(const dp_walk *walk, dp_run_fn run, const void *context, uint8_t *const at[], size_t lane,
                         uint32_t n, const uint64_t *mask) {
    static const uint64_t all[2] = {~0ull, ~0ull};
    uint8_t buffer[DP_WALK_SPAN_BYTES] __attribute__((aligned(64)));
    size_t bytes = ((size_t)n * walk->bits[0] + 7) / 8;
    uint8_t *via[DP_WALK_OPERANDS] = {buffer, at[1], at[2], at[3]};
    memcpy(buffer, at[0], bytes);
    run(context, via, lane, n);
    if (mask || walk->bits[0] == 4)
        blend(at[0], buffer, mask ? mask : all, n, walk->bits[0]);
    else
        memcpy(at[0], buffer, bytes);
}

/* Up to one repeat whose lanes are contiguous in every operand; mask bit 0 belongs to the first lane. */
static void run_span(const dp_walk *walk, dp_run_fn run, const void *context, uint8_t *const at[], size_t lane, uint32_t n,
                     const uint64_t mask[2]) {
    if (walk->lanes.full) {
        if (walk->careful || (walk->nibbles && (n & 1)))
            run_buffered(walk, run, context, at, lane, n, NULL);
        else
            run(context, at, lane, n);
        return;
    }
    uint64_t low = n < 64 ? mask[0] & ((1ull << n) - 1) : mask[0];
    uint64_t high = n >= 128 ? mask[1] : n > 64 ? mask[1] & ((1ull << (n - 64)) - 1) : 0;
    if (!(low | high))
        return;
    uint64_t bits[2] = {low, high};
    uint32_t begin = low ? (uint32_t)__builtin_ctzll(low) : 64 + (uint32_t)__builtin_ctzll(high);
    uint32_t end = high ? 128 - (uint32_t)__builtin_clzll(high) : 64 - (uint32_t)__builtin_clzll(low);
    uint32_t selected = (uint32_t)(__builtin_popcountll(low) + __builtin_popcountll(high));
    if (walk->writes && (selected != end - begin || walk->careful || walk->nibbles)) {
        run_buffered(walk, run, context, at, lane, end, bits);
        return;
    }
    uint8_t *from[DP_WALK_OPERANDS] = {0};
    for (unsigned p = 0; p < walk->count; p++)
        from[p] = at[p] + (size_t)begin * walk->bits[p] / 8;
    run(context, from, lane + begin, end - begin);
}

/* Block by block: for destinations whose blocks are apart. */
static void run_segments(const dp_walk *walk, dp_run_fn run, const void *context, uint8_t *const repeat[], size_t first,
                         uint32_t n) {
    for (uint32_t lane = 0; lane < n; lane += walk->segment) {
        uint8_t *at[DP_WALK_OPERANDS] = {0};
        for (unsigned p = 0; p < walk->count; p++) {
            uint32_t per_block = DP_BLOCK_BYTES * 8 / walk->bits[p];
            at[p] = repeat[p] + (size_t)(lane / per_block) * walk->block_stride[p] + lane % per_block * walk->bits[p] / 8;
        }
        uint32_t take = n - lane < walk->segment ? n - lane : walk->segment;
        uint64_t mask[2] = {walk->lanes.mask[lane / 64] >> (lane % 64), 0};
        run_span(walk, run, context, at, first + lane, take, mask);
    }
}

/* Brings the blocks of one repeat of a strided source together. */
static uint8_t *gather_blocks(const dp_walk *walk, unsigned p, const uint8_t *repeat, uint32_t n, uint8_t *buffer) {
    uint32_t blocks = (n * walk->bits[p] + DP_BLOCK_BYTES * 8 - 1) / (DP_BLOCK_BYTES * 8);
    for (uint32_t b = 0; b < blocks; b++)
        memcpy(buffer + b * DP_BLOCK_BYTES, repeat + (size_t)b * walk->block_stride[p], DP_BLOCK_BYTES);
    return buffer;
}

/*
 * Several repeats per call: the destination and most sources are even, the others (a block per row from Brcb, one row for all
 * repeats) are brought together. Nothing overlaps the destination partly, so the order of repeats does not matter.
 */
static void run_batches(const dp_walk *walk, dp_run_fn run, const void *context) {
    uint8_t buffers[DP_WALK_OPERANDS][BATCH * DP_REPEAT_BYTES] __attribute__((aligned(64)));
    const dp_lanes *lanes = &walk->lanes;
    for (uint32_t first = 0; first < lanes->repeats; first += BATCH) {
        uint32_t count = lanes->repeats - first < BATCH ? lanes->repeats - first : BATCH;
        uint32_t last = first + count == lanes->repeats ? lanes->last : lanes->per_repeat;
        uint8_t *at[DP_WALK_OPERANDS] = {0};
        for (unsigned p = 0; p < walk->count; p++) {
            size_t natural = (size_t)lanes->per_repeat * walk->bits[p] / 8;
            at[p] = walk->even[p] ? walk->addr[p] + first * natural : buffers[p];
            for (uint32_t r = 0; r < count && !walk->even[p]; r++)
                gather_blocks(walk, p, walk->addr[p] + (size_t)(first + r) * walk->repeat_stride[p],
                              r + 1 == count ? last : lanes->per_repeat, buffers[p] + r * natural);
        }
        run(context, at, (size_t)first * lanes->per_repeat, (size_t)(count - 1) * lanes->per_repeat + last);
    }
}

void dp_walk_run(const dp_walk *walk, dp_run_fn run, const void *context) {
    if (walk->dense && !walk->by_repeat) {
        run(context, walk->addr, 0, dp_walk_lanes(walk));
        return;
    }
    bool in_batches = walk->lanes.full && !walk->careful && !walk->nibbles && !walk->by_repeat &&
                      (!walk->writes || walk->even[0]);
    if (in_batches) {
        run_batches(walk, run, context);
        return;
    }
    const dp_lanes *lanes = &walk->lanes;
    bool whole = !walk->writes || walk->block_stride[0] == DP_BLOCK_BYTES; /* destination blocks are neighbours */
    uint8_t buffers[DP_WALK_OPERANDS][DP_REPEAT_BYTES] __attribute__((aligned(64)));
    for (uint32_t r = 0; r < lanes->repeats; r++) {
        uint32_t n = r + 1 == lanes->repeats ? lanes->last : lanes->per_repeat;
        if (n > lanes->high)
            n = lanes->high;
        uint8_t *at[DP_WALK_OPERANDS] = {0};
        for (unsigned p = 0; p < walk->count; p++) {
            at[p] = walk->addr[p] + (size_t)r * walk->repeat_stride[p];
            if (whole && walk->block_stride[p] != DP_BLOCK_BYTES)
                at[p] = gather_blocks(walk, p, at[p], n, buffers[p]);
        }
        size_t first = (size_t)r * lanes->per_repeat;
        if (whole)
            run_span(walk, run, context, at, first, n, lanes->mask);
        else
            run_segments(walk, run, context, at, first, n);
    }
}

void dp_walk_visit(const dp_core *core, const dp_insn *insn, const dp_walk_set *set, unsigned mode0, dp_access_fn visit,
                   void *context) {
    dp_lanes lanes;
    if (insn->repeat > 255 && insn->mask_kind != DP_MASK_COUNT && !core->counter_mode)
        return; /* illegal: the executor faults and touches nothing */
    dp_lanes_resolve(core, insn, dp_walk_widest(insn, set), &lanes);
    for (unsigned p = 0; p < set->count; p++) {
        unsigned k = set->which[p];
        dp_lanes_visit(&lanes, insn, k, dp_dtype_bits(insn->operand[k].dtype), k ? DP_READ : mode0, visit, context);
    }
}
