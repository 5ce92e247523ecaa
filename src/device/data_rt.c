/* Data movement of the face that is more than one instruction. */
#include "doppel/data_rt.h"
#include "device/exec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_DIMS = 8, GROUP = 32, ENTRY_BYTES = 8, LISTS = 4 };

static dp_core *core_of(const char *name, dp_loc loc) {
    dp_core *core = dp_core_current();
    if (core)
        return core;
    fprintf(stderr, "%s:%u: error: %s: called outside a kernel; kernel functions run on a device core only\n",
            loc.file ? loc.file : "?", loc.line, name);
    abort();
}

static void barrier(unsigned pipe, dp_loc loc) {
    dp_insn insn = {.op = DP_OP_BARRIER, .loc = loc};
    insn.u.sync.src_pipe = (uint8_t)pipe;
    insn.u.sync.implied = 1;
    dp_issue(&insn);
}

static dp_operand at_bytes(dp_operand o, uint64_t offset) {
    o.addr = (uint8_t *)o.addr + offset;
    if (o.size_bytes)
        o.size_bytes = offset < o.size_bytes ? o.size_bytes - (uint32_t)offset : 1; /* 1: known, and too small */
    return o;
}

/* --- slices --- */

/* Bursts (dimension 0) or indices of a dimension. `length` is what one takes in elements. */
static uint64_t slice_steps(const dp_slice *s, uint64_t length) {
    if (s->end < s->start || length + s->stride == 0)
        return 0;
    return ((uint64_t)s->end - s->start + 1 + s->stride) / (length + s->stride);
}

static uint64_t burst_elements(const dp_slice *s, unsigned bits) {
    return (uint64_t)s->burst * DP_BLOCK_BYTES * 8 / bits;
}

static void check_slices(dp_core *core, const dp_insn *insn, const dp_slice *dst, const dp_slice *src, uint32_t dims) {
    unsigned bits = dp_dtype_bits(insn->operand[0].dtype);
    if (dims < 1 || dims > MAX_DIMS)
        dp_fault(core, insn, insn->loc, "dimValue is %" PRIu32 ": slices have 1 to %d dimensions", dims, MAX_DIMS);
    if (dst[0].burst != src[0].burst)
        dp_fault(core, insn, insn->loc,
                 "burstLen is %" PRIu32 " blocks for the destination and %" PRIu32
                 " for the source: they must be equal",
                 dst[0].burst, src[0].burst);
    for (uint32_t d = 0; d < dims; d++) {
        uint64_t length = d ? 1 : burst_elements(&src[0], bits);
        uint64_t to = slice_steps(&dst[d], length), from = slice_steps(&src[d], length);
        if (to != from)
            dp_fault(core, insn, insn->loc,
                     "dimension %" PRIu32 " has %" PRIu64 " steps in the destination slice and %" PRIu64
                     " in the source slice: startIndex, endIndex and stride must give the same number",
                     d, to, from);
        if (d && (dst[d].burst != 1 || src[d].burst != 1))
            dp_fault(core, insn, insn->loc, "burstLen of dimension %" PRIu32 " must be 1: only dimension 0 has bursts",
                     d);
    }
}

/* Element offset of one row of a slice; index[d] counts the steps of dimension d, 0 in dimension 0. */
static uint64_t slice_offset(const dp_slice *s, uint32_t dims, const uint64_t *index) {
    uint64_t offset = s[0].start, pitch = s[0].shape;
    for (uint32_t d = 1; d < dims; d++) {
        offset += (s[d].start + index[d] * (1 + (uint64_t)s[d].stride)) * pitch;
        pitch *= s[d].shape;
    }
    return offset;
}

void dp_copy_slices(dp_operand dst, dp_operand src, const dp_slice *dst_slices, const dp_slice *src_slices,
                    uint32_t dims, dp_loc loc) {
    dp_core *core = core_of("DataCopy", loc);
    dp_insn insn = {.op = DP_OP_DATA_COPY, .n_operands = 2, .operand = {dst, src}, .loc = loc};
    unsigned bits = dp_dtype_bits(dst.dtype);
    check_slices(core, &insn, dst_slices, src_slices, dims);
    uint64_t index[MAX_DIMS] = {0}, steps[MAX_DIMS], length = burst_elements(&src_slices[0], bits);
    for (uint32_t d = 0; d < dims; d++) {
        steps[d] = slice_steps(&src_slices[d], d ? 1 : length);
        if (!steps[d])
            return;
    }
    insn.u.copy = (dp_copy_params){.block_count = (uint32_t)steps[0],
                                   .block_bytes = src_slices[0].burst * DP_BLOCK_BYTES,
                                   .src_gap_bytes = (int64_t)((uint64_t)src_slices[0].stride * bits / 8),
                                   .dst_gap_bytes = (int64_t)((uint64_t)dst_slices[0].stride * bits / 8)};
    for (;;) {
        dp_insn row = insn;
        row.operand[0] = at_bytes(dst, slice_offset(dst_slices, dims, index) * bits / 8);
        row.operand[1] = at_bytes(src, slice_offset(src_slices, dims, index) * bits / 8);
        dp_issue(&row);
        uint32_t d = 1;
        while (d < dims && ++index[d] == steps[d])
            index[d++] = 0;
        if (d >= dims)
            return;
    }
}

/* --- UB -> L1 with ND to NZ --- */

void dp_copy_pad_nd2nz(dp_operand dst, dp_operand src, const dp_copy_params *copy, const dp_nd2nz_params *nd2nz,
                       dp_loc loc) {
    dp_core *core = core_of("DataCopyPad", loc);
    dp_insn insn = {.op = DP_OP_DATA_COPY_ND2NZ, .n_operands = 2, .operand = {dst, src}, .loc = loc};
    uint64_t bytes = dp_dtype_bits(src.dtype) / 8, row = copy->block_bytes + (uint64_t)copy->dst_gap_bytes;
    uint64_t pitch =
        (copy->block_bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES * DP_BLOCK_BYTES + (uint64_t)copy->src_gap_bytes;
    uint64_t matrix = nd2nz->src_matrix_stride * bytes;
    insn.u.nd2nz = *nd2nz;
    if (!bytes || !row || nd2nz->src_d * bytes != row || matrix % row || nd2nz->d * bytes > copy->block_bytes)
        dp_fault(core, &insn, loc,
                 "the rows of the matrix (srcDValue %" PRIu32 ", dValue %" PRIu32 " elements of %" PRIu64
                 " bytes) must be the runs of the copy (blockLen %" PRIu32 " bytes and dstStride together)",
                 nd2nz->src_d, nd2nz->d, bytes, copy->block_bytes);
    insn.u.nd2nz.src_d = (uint32_t)(pitch / bytes);
    insn.u.nd2nz.src_matrix_stride = (uint32_t)(matrix / row * pitch / bytes);
    dp_issue(&insn);
}

/* --- Sort, Extract --- */

static void merge_lists(dp_operand dst, dp_operand src, uint64_t first, const uint32_t length[LISTS], unsigned lists,
                        uint32_t repeat, dp_loc loc) {
    dp_insn insn = {.op = DP_OP_MRG_SORT, .n_operands = 4, .repeat = repeat, .loc = loc};
    insn.operand[0] = at_bytes(dst, first * ENTRY_BYTES);
    insn.u.vec.flag0 = (uint8_t)((1u << lists) - 1);
    uint64_t at = first;
    for (unsigned i = 0; i < LISTS; i++) {
        dp_operand list = at_bytes(src, at * ENTRY_BYTES);
        if (i < 3)
            insn.operand[1 + i] = list;
        insn.u.vec.aux[0] = (uint32_t)(uintptr_t)list.addr;
        insn.u.vec.aux[1] = (uint32_t)((uint64_t)(uintptr_t)list.addr >> 32);
        insn.scalar_bits |= (uint64_t)length[i] << (16 * i);
        at += length[i];
    }
    dp_issue(&insn);
}

static void copy_entries(dp_operand dst, dp_operand src, uint64_t first, uint64_t count, dp_loc loc) {
    dp_insn insn = {.op = DP_OP_DATA_COPY, .n_operands = 2, .loc = loc};
    insn.operand[0] = at_bytes(dst, first * ENTRY_BYTES);
    insn.operand[1] = at_bytes(src, first * ENTRY_BYTES);
    insn.u.copy = (dp_copy_params){.block_count = 1, .block_bytes = (uint32_t)(count * ENTRY_BYTES)};
    dp_issue(&insn);
}

/* One round: every four neighbouring lists of `length` entries become one; the last lists may be shorter or missing. */
static void merge_round(dp_operand dst, dp_operand src, uint32_t total, uint32_t length, dp_loc loc) {
    uint32_t four = length * LISTS, groups = total / four, at = groups * four;
    const uint32_t equal[LISTS] = {length, length, length, length};
    if (groups)
        merge_lists(dst, src, 0, equal, LISTS, groups, loc);
    if (at == total)
        return;
    uint32_t rest = total - at, lists = (rest + length - 1) / length, lengths[LISTS] = {0};
    if (lists == 1) {
        copy_entries(dst, src, at, rest, loc);
        return;
    }
    for (uint32_t i = 0; i < lists; i++)
        lengths[i] = i + 1 < lists ? length : rest - i * length;
    merge_lists(dst, src, at, lengths, lists, 1, loc);
}

void dp_sort_entries(dp_operand dst, dp_operand scores, dp_operand indices, dp_operand tmp, uint32_t repeat, bool full,
                     dp_loc loc) {
    (void)core_of("Sort", loc);
    dp_insn sort = {
        .op = DP_OP_SORT32, .n_operands = 3, .repeat = repeat, .operand = {dst, scores, indices}, .loc = loc};
    dp_issue(&sort);
    uint32_t total = repeat * GROUP;
    dp_operand from = dst, to = tmp;
    if (!full || repeat < 2)
        return;
    for (uint32_t length = GROUP; length < total; length *= LISTS) {
        barrier(DP_PIPE_V, loc);
        merge_round(to, from, total, length, loc);
        dp_operand swap = from;
        from = to;
        to = swap;
    }
    if (from.addr != dst.addr) {
        barrier(DP_PIPE_V, loc);
        copy_entries(dst, from, 0, total, loc);
    }
}

static void gather_words(dp_operand dst, dp_operand src, unsigned dtype, unsigned pattern, uint32_t repeat,
                         dp_loc loc) {
    dp_insn insn = {.op = DP_OP_GATHER_MASK, .n_operands = 2, .repeat = repeat, .operand = {dst, src}, .loc = loc};
    insn.operand[0].dtype = insn.operand[1].dtype = (uint8_t)dtype;
    insn.operand[1].block_stride = 1;
    insn.operand[1].repeat_stride = DP_REPEAT_BYTES / DP_BLOCK_BYTES;
    insn.u.vec.flag0 = (uint8_t)pattern;
    dp_issue(&insn);
}

void dp_extract_entries(dp_operand scores, dp_operand indices, dp_operand entries, uint32_t repeat, dp_loc loc) {
    enum { EVEN = 1, ODD = 2, FIRST_OF_FOUR = 3 };
    (void)core_of("Extract", loc);
    bool half = scores.dtype == DP_F16;
    gather_words(scores, entries, scores.dtype, half ? FIRST_OF_FOUR : EVEN, repeat, loc);
    gather_words(indices, entries, DP_U32, ODD, repeat, loc);
}

/* --- InitOutput --- */

void dp_init_output(dp_operand gm, uint64_t count, uint64_t value_bits, dp_loc loc) {
    dp_core *core = core_of("InitOutput", loc);
    uint64_t bytes = dp_dtype_bits(gm.dtype) / 8, left = count * bytes, at = 0;
    uint32_t room = core->chip->space_bytes[DP_SPACE_UB] - core->chip->ub_reserved_offset;
    if (!left)
        return;
    uint32_t piece = left < room ? (uint32_t)left : room;
    dp_operand scratch = {.addr = core->memory[DP_SPACE_UB].base + core->chip->ub_reserved_offset,
                          .space = DP_SPACE_UB,
                          .dtype = gm.dtype,
                          .block_stride = 1,
                          .repeat_stride = 8};
    dp_insn fill = {.op = DP_OP_DUPLICATE,
                    .n_operands = 1,
                    .mask_kind = DP_MASK_COUNT,
                    .repeat = 1,
                    .loc = loc,
                    .mask = {piece / bytes},
                    .scalar_bits = value_bits,
                    .operand = {scratch}};
    barrier(DP_PIPE_ALL, loc); /* the scratch may still be on its way elsewhere */
    dp_issue(&fill);
    barrier(DP_PIPE_ALL, loc);
    while (left) {
        uint32_t now = left < piece ? (uint32_t)left : piece;
        dp_insn copy = {.op = DP_OP_DATA_COPY_PAD, .n_operands = 2, .operand = {at_bytes(gm, at), scratch}, .loc = loc};
        copy.u.copy = (dp_copy_params){.block_count = 1, .block_bytes = now, .pad_form = 1};
        dp_issue(&copy);
        at += now;
        left -= now;
    }
    barrier(DP_PIPE_ALL, loc);
}
