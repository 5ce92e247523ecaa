/*
 * gather.c - Gather, Gatherb and GatherMask.
 *
 * GATHER   [0] destination, [1] base, [2] uint32 byte offsets, one per lane, contiguous over repeats; scalar_bits =
 * byte offset added to all of them GATHERB  [0] destination, [1] base, [2] uint32 byte offsets, eight per repeat, each
 * of one 32-byte block GATHER_MASK  [0] destination, [1] source, [2] pattern bits (n_operands 3) or u.vec.flag0 =
 * built-in pattern 1..7; u.vec.flag1 = 1: counter mode, mask[0] elements a repeat (else 256 bytes); repeat up to 65535;
 *          result = elements kept, without gaps from the destination's start
 */
#include "device/runs.h"

#include <inttypes.h>
#include <string.h>

enum { BLOCKS = 8, PATTERNS = 7 };

static uint32_t offset_at(const dp_insn *insn, size_t i) {
    uint32_t offset;
    memcpy(&offset, (const uint8_t *)insn->operand[2].addr + i * sizeof offset, sizeof offset);
    return offset;
}

static bool selected(const dp_lanes *lanes, uint32_t repeat, uint32_t lane) {
    uint32_t end = repeat + 1 == lanes->repeats ? lanes->last : lanes->per_repeat;
    return lane < end && (lanes->mask[lane / 64] >> (lane % 64) & 1);
}

/* Bytes that may be addressed from operand 1 on: its tensor, or what is left of its memory. */
static size_t base_room(const dp_core *core, const dp_insn *insn) {
    const dp_operand *o = &insn->operand[1];
    const dp_core_memory *memory = &core->memory[o->space];
    size_t left = memory->size_bytes - (size_t)((const uint8_t *)o->addr - memory->base);
    return o->size_bytes && o->size_bytes < left ? o->size_bytes : left;
}

static void __attribute__((noreturn, cold))
fault_offset(dp_core *core, const dp_insn *insn, size_t i, uint64_t at, size_t bytes, size_t room) {
    if (at % bytes)
        dp_fault(core, insn, insn->loc,
                 "offset %zu of the offset tensor leads to byte %" PRIu64
                 " of the source, which is not a multiple of %zu",
                 i, at, bytes);
    dp_fault(core, insn, insn->loc,
             "offset %zu of the offset tensor leads to byte %" PRIu64
             " of the source, which has %zu bytes; offsets count "
             "bytes, not elements",
             i, at, room);
}

/* Checks offsets first..first+n; the fast loop only looks for trouble, the slow one says where. */
static void check_offsets(dp_core *core, const dp_insn *insn, size_t first, size_t n, size_t bytes, size_t room) {
    uint32_t highest = 0, bits = 0;
    const uint32_t *offsets = insn->operand[2].addr;
    uint64_t added = insn->op == DP_OP_GATHER ? insn->scalar_bits & UINT32_MAX : 0;
    for (size_t i = first; i < first + n; i++) {
        highest = offsets[i] > highest ? offsets[i] : highest;
        bits |= offsets[i];
    }
    if (DP_LIKELY(highest + added + bytes <= room && !((bits | added) & (bytes - 1))))
        return;
    for (size_t i = first; i < first + n; i++)
        if (offsets[i] + added + bytes > room || (offsets[i] + added) % bytes)
            fault_offset(core, insn, i, offsets[i] + added, bytes, room);
}

static void check_in_ub(dp_core *core, const dp_insn *insn, unsigned n) {
    for (unsigned k = 0; k < n; k++)
        dp_operand_in_space(core, insn, k, DP_SPACE_UB);
}

static void check_element(dp_core *core, const dp_insn *insn) {
    unsigned bits = dp_dtype_bits(insn->operand[0].dtype);
    if (bits != 16 && bits != 32)
        dp_fault(core, insn, insn->loc, "elements of %s are not possible: only 16-bit and 32-bit ones",
                 dp_dtype_name(insn->operand[0].dtype));
}

/* Elements from the first lane of the first repeat to the last selected one: how many offsets are read. */
static size_t lane_span(const dp_lanes *lanes) {
    uint32_t tail = lanes->last < lanes->high ? lanes->last : lanes->high;
    return lanes->repeats ? (size_t)(lanes->repeats - 1) * lanes->per_repeat + tail : 0;
}

static void gather(dp_core *core, const dp_insn *insn) {
    size_t bytes = dp_operand_bytes(insn, 0);
    dp_lanes lanes;
    check_in_ub(core, insn, 3);
    check_element(core, insn);
    dp_lanes_resolve(core, insn, (unsigned)bytes, &lanes);
    dp_mask_commit(core, insn, (unsigned)bytes);
    dp_operand_check(core, insn, 1, 0, DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 0, dp_lanes_extent(&lanes, &insn->operand[0], (unsigned)bytes * 8), DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 2, lane_span(&lanes) * sizeof(uint32_t), DP_BLOCK_BYTES);
    size_t room = base_room(core, insn);
    const uint8_t *base = (const uint8_t *)insn->operand[1].addr + (uint32_t)insn->scalar_bits;
    const uint32_t *offsets = insn->operand[2].addr;
    dp_gather_fn fn = core->math->gather[insn->operand[0].dtype];
    size_t pitch = lanes.flat ? lanes.per_repeat * bytes : (size_t)insn->operand[0].repeat_stride * DP_BLOCK_BYTES;
    for (uint32_t r = 0; r < lanes.repeats; r++) {
        uint8_t *dst = (uint8_t *)insn->operand[0].addr + r * pitch;
        size_t first = (size_t)r * lanes.per_repeat;
        if (lanes.full) {
            size_t n = r + 1 == lanes.repeats ? lanes.last : lanes.per_repeat;
            check_offsets(core, insn, first, n, bytes, room);
            fn(dst, base, offsets + first, n);
            continue;
        }
        for (uint32_t i = 0; i < lanes.per_repeat; i++) {
            if (!selected(&lanes, r, i))
                continue;
            check_offsets(core, insn, first + i, 1, bytes, room);
            memcpy(dst + i * bytes, base + offsets[first + i], bytes);
        }
    }
}

static void gather_blocks(dp_core *core, const dp_insn *insn) {
    const dp_operand *dst = &insn->operand[0];
    check_in_ub(core, insn, 3);
    check_element(core, insn);
    if (insn->repeat > 255)
        dp_fault(core, insn, insn->loc, "repeatTimes is %" PRIu32 ": at most 255 are possible", insn->repeat);
    core->mask[0] = core->mask[1] = ~0ull;
    if (!insn->repeat)
        return;
    dp_operand_check(core, insn, 1, 0, DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 2, (size_t)insn->repeat * BLOCKS * sizeof(uint32_t), DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 0,
                     ((size_t)(insn->repeat - 1) * dst->repeat_stride + (BLOCKS - 1) * (size_t)dst->block_stride + 1) *
                         DP_BLOCK_BYTES,
                     DP_BLOCK_BYTES);
    check_offsets(core, insn, 0, (size_t)insn->repeat * BLOCKS, DP_BLOCK_BYTES, base_room(core, insn));
    for (size_t r = 0; r < insn->repeat; r++)
        for (size_t b = 0; b < BLOCKS; b++)
            memmove((uint8_t *)dst->addr + (r * dst->repeat_stride + b * dst->block_stride) * DP_BLOCK_BYTES,
                    (const uint8_t *)insn->operand[1].addr + offset_at(insn, r * BLOCKS + b), DP_BLOCK_BYTES);
}

void dp_exec_gather(dp_core *core, dp_insn *insn) {
    if (insn->op == DP_OP_GATHER)
        gather(core, insn);
    else if (insn->op == DP_OP_GATHERB)
        gather_blocks(core, insn);
    else
        dp_fault(core, insn, insn->loc,
                 "%s has no scatter instruction: write the elements one by one with SetValue, or "
                 "gather with the inverse offsets",
                 core->chip->name);
}

void dp_visit_gather(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    size_t bytes = dp_operand_bytes(insn, 0);
    dp_lanes lanes = {0};
    if (insn->op == DP_OP_GATHER)
        dp_lanes_resolve(core, insn, (unsigned)bytes, &lanes);
    size_t read = (insn->op == DP_OP_GATHER ? lane_span(&lanes) : (size_t)insn->repeat * BLOCKS) * sizeof(uint32_t);
    if (!read || insn->repeat > 255 || !dp_operand_readable(core, insn, 2, read))
        return;
    dp_runs data = {.visit = visit, .context = context, .operand = 1, .mode = DP_READ};
    if (insn->op == DP_OP_GATHERB) {
        const dp_operand *dst = &insn->operand[0];
        dp_runs writes = {.visit = visit, .context = context, .operand = 0, .mode = DP_WRITE};
        visit(context, 2, DP_READ, insn->operand[2].addr, (size_t)insn->repeat * BLOCKS * sizeof(uint32_t));
        for (size_t i = 0; i < (size_t)insn->repeat * BLOCKS; i++) {
            dp_runs_add(&data, (const uint8_t *)insn->operand[1].addr + offset_at(insn, i), DP_BLOCK_BYTES);
            dp_runs_add(&writes,
                        (const uint8_t *)dst->addr +
                            (i / BLOCKS * dst->repeat_stride + i % BLOCKS * dst->block_stride) * DP_BLOCK_BYTES,
                        DP_BLOCK_BYTES);
        }
        dp_runs_end(&data);
        dp_runs_end(&writes);
        return;
    }
    if (insn->op != DP_OP_GATHER)
        return;
    dp_runs offsets = {.visit = visit, .context = context, .operand = 2, .mode = DP_READ};
    dp_lanes_visit(&lanes, insn, 0, (unsigned)bytes * 8, DP_WRITE, visit, context);
    for (uint32_t r = 0; r < lanes.repeats; r++) {
        for (uint32_t i = 0; i < lanes.per_repeat; i++) {
            size_t at = (size_t)r * lanes.per_repeat + i;
            if (!selected(&lanes, r, i))
                continue;
            dp_runs_add(&offsets, (const uint8_t *)insn->operand[2].addr + at * sizeof(uint32_t), sizeof(uint32_t));
            dp_runs_add(&data,
                        (const uint8_t *)insn->operand[1].addr + (uint32_t)insn->scalar_bits + offset_at(insn, at),
                        bytes);
        }
    }
    dp_runs_end(&offsets);
    dp_runs_end(&data);
}

/* --- GatherMask --- */

/* Elements looked at in one repeat. */
static size_t elements_per_repeat(const dp_insn *insn) {
    return insn->u.vec.flag1 ? (size_t)(uint32_t)insn->mask[0] : DP_REPEAT_BYTES / dp_operand_bytes(insn, 0);
}

static bool is_kept(const dp_insn *insn, size_t repeat, size_t i) {
    static const uint8_t of_four[PATTERNS + 1] = {0, 0x5, 0xa, 0x1, 0x2, 0x4, 0x8, 0xf};
    if (insn->n_operands < 3)
        return of_four[insn->u.vec.flag0] >> (i % 4) & 1;
    const uint8_t *bits =
        (const uint8_t *)insn->operand[2].addr + repeat * insn->operand[2].repeat_stride * DP_BLOCK_BYTES;
    return bits[i / 8] >> (i % 8) & 1;
}

static const uint8_t *mask_source(const dp_insn *insn, size_t repeat, size_t i) {
    const dp_operand *src = &insn->operand[1];
    size_t bytes = dp_operand_bytes(insn, 0), per_block = DP_BLOCK_BYTES / bytes;
    return (const uint8_t *)src->addr +
           (repeat * src->repeat_stride + i / per_block * src->block_stride) * DP_BLOCK_BYTES + i % per_block * bytes;
}

/* Bytes from an operand's address on that the repeats look at; k = 1 or 2. */
static size_t mask_extent(const dp_insn *insn, unsigned k) {
    size_t per = elements_per_repeat(insn), bytes = dp_operand_bytes(insn, 0), span = (size_t)insn->repeat - 1;
    const dp_operand *o = &insn->operand[k];
    if (!insn->repeat || !per)
        return 0;
    if (k == 2)
        return span * o->repeat_stride * DP_BLOCK_BYTES + (per + 7) / 8;
    size_t last = per * bytes > DP_BLOCK_BYTES && !o->block_stride ? DP_BLOCK_BYTES
                                                                   : ((per - 1) % (DP_BLOCK_BYTES / bytes) + 1) * bytes;
    return (span * o->repeat_stride + (per * bytes - 1) / DP_BLOCK_BYTES * o->block_stride) * DP_BLOCK_BYTES + last;
}

static size_t kept_count(const dp_insn *insn) {
    size_t kept = 0, per = elements_per_repeat(insn),
           most = UINT32_MAX / DP_REPEAT_BYTES; /* more than any memory holds */
    for (size_t r = 0; r < insn->repeat && kept < most; r++)
        for (size_t i = 0; i < per; i++)
            kept += is_kept(insn, r, i);
    return kept;
}

static void check_mask_operands(dp_core *core, const dp_insn *insn) {
    size_t per = elements_per_repeat(insn), bytes = dp_operand_bytes(insn, 0);
    check_in_ub(core, insn, insn->n_operands < 3 ? 2 : 3);
    check_element(core, insn);
    if (insn->n_operands < 3 && (insn->u.vec.flag0 < 1 || insn->u.vec.flag0 > PATTERNS))
        dp_fault(core, insn, insn->loc,
                 "pattern %u does not exist: there are 1 (even), 2 (odd), 3 to 6 (one of four) and 7 "
                 "(all)",
                 insn->u.vec.flag0);
    if (insn->repeat > UINT16_MAX)
        dp_fault(core, insn, insn->loc, "repeatTimes is %" PRIu32 ": at most 65535 are possible", insn->repeat);
    if (!insn->operand[1].block_stride && per * bytes > DP_REPEAT_BYTES)
        dp_fault(core, insn, insn->loc, "src0BlockStride is 0: a repeat of %zu elements needs blocks of its own", per);
    dp_operand_check(core, insn, 1, mask_extent(insn, 1), DP_BLOCK_BYTES);
    if (insn->n_operands >= 3)
        dp_operand_check(core, insn, 2, mask_extent(insn, 2), DP_BLOCK_BYTES);
}

void dp_exec_gather_mask(dp_core *core, dp_insn *insn) {
    size_t per = elements_per_repeat(insn), bytes = dp_operand_bytes(insn, 0);
    check_mask_operands(core, insn);
    size_t kept = kept_count(insn);
    dp_operand_check(core, insn, 0, kept * bytes, DP_BLOCK_BYTES);
    uint8_t *dst = insn->operand[0].addr;
    for (size_t r = 0; r < insn->repeat; r++) {
        for (size_t i = 0; i < per; i++) {
            if (!is_kept(insn, r, i))
                continue;
            memcpy(dst, mask_source(insn, r, i), bytes);
            dst += bytes;
        }
    }
    if (insn->u.vec.flag1) {
        core->mask[0] = (uint32_t)insn->mask[0];
        core->mask[1] = 0;
    }
    core->counter_mode = 0;
    core->kept_count = insn->result = kept;
}

void dp_visit_gather_mask(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    size_t per = elements_per_repeat(insn), bytes = dp_operand_bytes(insn, 0);
    bool tensor = insn->n_operands >= 3;
    if ((!tensor && insn->u.vec.flag0 > PATTERNS) ||
        (!insn->operand[1].block_stride && per * bytes > DP_REPEAT_BYTES) ||
        !dp_operand_readable(core, insn, 1, mask_extent(insn, 1)) ||
        (tensor && !dp_operand_readable(core, insn, 2, mask_extent(insn, 2))))
        return;
    dp_runs reads = {.visit = visit, .context = context, .operand = 1, .mode = DP_READ};
    dp_runs patterns = {.visit = visit, .context = context, .operand = 2, .mode = DP_READ};
    size_t kept = 0;
    for (size_t r = 0; r < insn->repeat; r++) {
        if (tensor)
            dp_runs_add(&patterns,
                        (const uint8_t *)insn->operand[2].addr + r * insn->operand[2].repeat_stride * DP_BLOCK_BYTES,
                        (per + 7) / 8);
        for (size_t i = 0; i < per; i++) {
            if (!is_kept(insn, r, i))
                continue;
            kept++;
            dp_runs_add(&reads, mask_source(insn, r, i), bytes);
        }
    }
    dp_runs_end(&reads);
    dp_runs_end(&patterns);
    if (kept)
        visit(context, 0, DP_WRITE, insn->operand[0].addr, kept * bytes);
}
