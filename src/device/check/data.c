/*
 * Bytes without data, and operands that share bytes.
 *
 * Unused lanes without data are common and legal (padded tails), so reading them is no finding by itself: they are
 * followed lane by lane, and reported where they leave the lane - to device memory, to the scalar unit, into a reduction,
 * a sort, a gather. Device memory without data is followed likewise; only a row of which no byte holds data is reported
 * where it is read.
 */
#include <stdio.h>

#include "device/check/state.h"
#include "device/exec.h"

/* In an origin: the bytes came without data from device memory. */
#define FROM_GM 0x80000000u

static dp_shadow *local_shadow(dp_check_core *state, unsigned space, const uint8_t *addr, size_t bytes, uint32_t *out_offset) {
    if (space <= DP_SPACE_GM || space >= DP_SPACE_COUNT)
        return NULL;
    const dp_core_memory *memory = &state->core->memory[space];
    dp_shadow *shadow = dp_check_shadow(state, space);
    if (!shadow || addr < memory->base || (size_t)(addr - memory->base) > memory->size_bytes ||
        bytes > memory->size_bytes - (size_t)(addr - memory->base))
        return NULL;
    *out_offset = (uint32_t)(addr - memory->base);
    return shadow;
}

/* Bytes without data in [addr, addr + bytes); first one and who is to blame for it (0: never written). */
static size_t missing_in(dp_check_core *state, unsigned space, const uint8_t *addr, size_t bytes, const uint8_t **out_first,
                         uint32_t *out_origin) {
    *out_origin = 0;
    if (space == DP_SPACE_GM) {
        dp_gm_shadow *gm = dp_gm_shadow_find(&state->gm, addr);
        const void *first = NULL;
        size_t missing = gm ? dp_gm_shadow_missing(gm, addr, bytes, &first) : 0;
        *out_first = first;
        return missing;
    }
    uint32_t offset, first = 0;
    const dp_shadow *shadow = local_shadow(state, space, addr, bytes, &offset);
    size_t missing = shadow ? dp_shadow_missing(shadow, offset, (uint32_t)bytes, &first) : 0;
    if (missing) {
        *out_first = state->core->memory[space].base + first;
        *out_origin = shadow->origin[first / DP_CELL_BYTES];
    }
    return missing;
}

/* The same for a run. */
static size_t missing_in_run(dp_check_core *state, const dp_check_run *run, const uint8_t **out_first, uint32_t *out_origin) {
    if (!run->bits)
        return missing_in(state, run->space, run->addr, run->bytes, out_first, out_origin);
    uint32_t offset = 0, first = 0;
    const dp_shadow *shadow = local_shadow(state, run->space, run->addr, run->bytes, &offset);
    uint32_t cell = offset / DP_CELL_BYTES, cells = (uint32_t)run->bytes / DP_CELL_BYTES;
    size_t missing = shadow ? dp_shadow_missing_lanes(shadow, cell, cell + cells, run->bits, &first) : 0;
    if (missing) {
        *out_first = state->core->memory[run->space].base + first;
        *out_origin = shadow->origin[first / DP_CELL_BYTES];
    }
    return missing;
}

static void set_data(dp_check_core *state, unsigned space, const uint8_t *addr, size_t bytes) {
    uint32_t offset;
    if (space == DP_SPACE_GM) {
        dp_gm_shadow *gm = dp_gm_shadow_find(&state->gm, addr);
        if (gm)
            dp_gm_shadow_set(gm, addr, bytes);
        return;
    }
    dp_shadow *shadow = local_shadow(state, space, addr, bytes, &offset);
    if (shadow)
        dp_shadow_set_data(shadow, offset, (uint32_t)bytes);
}

static void set_data_of_run(dp_check_core *state, const dp_check_run *run) {
    uint32_t offset;
    if (!run->bits) {
        set_data(state, run->space, run->addr, run->bytes);
        return;
    }
    dp_shadow *shadow = local_shadow(state, run->space, run->addr, run->bytes, &offset);
    uint32_t cells = (uint32_t)run->bytes / DP_CELL_BYTES;
    if (shadow)
        dp_shadow_set_data_lanes(shadow, offset / DP_CELL_BYTES, offset / DP_CELL_BYTES + cells, run->bits);
}

static void clear_data(dp_check_core *state, unsigned space, const uint8_t *addr, size_t bytes, uint32_t origin) {
    uint32_t offset;
    if (space == DP_SPACE_GM) {
        dp_gm_shadow *gm = dp_gm_shadow_find(&state->gm, addr);
        if (gm)
            dp_gm_shadow_clear(gm, addr, bytes);
        return;
    }
    dp_shadow *shadow = local_shadow(state, space, addr, bytes, &offset);
    if (shadow)
        dp_shadow_clear_data(shadow, offset, (uint32_t)bytes, origin);
}

static void report_missing(dp_check_core *state, unsigned space, const uint8_t *first, size_t missing, uint32_t origin) {
    char count[32];
    uint32_t site = origin & ~FROM_GM;
    dp_finding f = {.kind = DP_CHECK_UNINITIALIZED};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(state->insn, (int)state->pipe, "reads them");
    snprintf(f.sentence, sizeof f.sentence, "%s reads %s bytes of %s that nothing has written", dp_insn_name(state->insn->op),
             dp_describe_count(missing, count), space == DP_SPACE_GM ? "device memory" : dp_space_name(space));
    if (site && site - 1 != state->site) {
        f.has_other = true;
        f.other = dp_place_of_site(site - 1, -1, origin & FROM_GM ? "brings them from device memory" : "is the first to use them");
        snprintf(f.sentence, sizeof f.sentence, "%s reads %s bytes of %s computed from memory that nothing has written",
                 dp_insn_name(state->insn->op), dp_describe_count(missing, count),
                 space == DP_SPACE_GM ? "device memory" : dp_space_name(space));
    }
    if (space == DP_SPACE_GM || (origin & FROM_GM))
        snprintf(f.cure, sizeof f.cure, "fill the device memory first (aclrtMemcpy, aclrtMemset or an earlier kernel)");
    else
        snprintf(f.cure, sizeof f.cure, "copy data in or call Duplicate before the tensor is used; check the length of the last tile");
    if (space == DP_SPACE_GM)
        dp_describe_gm(first, missing, f.memory, sizeof f.memory);
    else
        dp_describe_local(state->core, space, first, missing, f.memory, sizeof f.memory);
    dp_finding_add(&f);
}

/* The bytes of one lane of an operand; false when the lane lies outside its memory. */
static const uint8_t *lane_addr(const dp_lanes *lanes, const dp_operand *operand, uint32_t repeat, uint32_t lane, unsigned bits) {
    if (lanes->flat)
        return (const uint8_t *)operand->addr + ((size_t)repeat * lanes->per_repeat + lane) * bits / 8;
    uint32_t per_block = DP_BLOCK_BYTES * 8 / bits;
    return (const uint8_t *)operand->addr + (size_t)repeat * operand->repeat_stride * DP_BLOCK_BYTES +
           (size_t)(lane / per_block) * operand->block_stride * DP_BLOCK_BYTES + (size_t)(lane % per_block) * bits / 8;
}

/* Calls for every selected lane, with its running number. */
typedef void (*lane_fn)(dp_check_core *state, const dp_operand *operand, const uint8_t *addr, size_t bytes, size_t index,
                        uint32_t *origin);

static void each_lane(dp_check_core *state, const dp_lanes *lanes, unsigned k, lane_fn fn, uint32_t *origin) {
    const dp_operand *operand = &state->insn->operand[k];
    unsigned bits = dp_dtype_bits(operand->dtype);
    for (uint32_t r = 0; r < lanes->repeats; r++) {
        uint32_t end = r + 1 == lanes->repeats ? lanes->last : lanes->per_repeat;
        for (uint32_t i = 0; i < end; i++) {
            size_t index = (size_t)r * lanes->per_repeat + i;
            bool selected = lanes->flat || lanes->full || (i < 128 && (lanes->mask[i / 64] >> (i % 64) & 1));
            if (selected && index < DP_LANES_MAX)
                fn(state, operand, lane_addr(lanes, operand, r, i, bits), (bits + 7) / 8, index, origin);
        }
    }
}

static void gather_bad(dp_check_core *state, const dp_operand *operand, const uint8_t *addr, size_t bytes, size_t index,
                       uint32_t *origin) {
    const uint8_t *first;
    uint32_t from;
    if (!missing_in(state, operand->space, addr, bytes, &first, &from))
        return;
    state->bad_lane[index / 64] |= 1ull << (index % 64);
    if (!*origin)
        *origin = from;
}

static void spread_bad(dp_check_core *state, const dp_operand *operand, const uint8_t *addr, size_t bytes, size_t index,
                       uint32_t *origin) {
    if (state->bad_lane[index / 64] >> (index % 64) & 1)
        clear_data(state, operand->space, addr, bytes, *origin);
    else
        set_data(state, operand->space, addr, bytes);
}

/* Operands whose lanes go into the same lane of the result: [first, end), and 0 itself if it is read. */
static bool is_lanewise(const dp_insn *insn, unsigned *out_first, unsigned *out_end, bool *out_reads_result) {
    *out_first = 1;
    *out_reads_result = false;
    switch (dp_insn_family(insn->op)) {
    case DP_FAMILY_BINARY:
    case DP_FAMILY_WIDTH2:
        *out_end = 3;
        return true;
    case DP_FAMILY_UNARY:
    case DP_FAMILY_SCALAR:
    case DP_FAMILY_CAST:
    case DP_FAMILY_VCOPY:
        *out_end = 2;
        return true;
    case DP_FAMILY_TERNARY:
        *out_end = 3;
        *out_reads_result = true;
        return true;
    case DP_FAMILY_AXPY:
        *out_end = 2;
        *out_reads_result = true;
        return true;
    case DP_FAMILY_SELECT:
        *out_first = 2;
        *out_end = insn->n_operands;
        return insn->n_operands > 2;
    default:
        return false;
    }
}

static void follow_lanes(dp_check_core *state, unsigned first, unsigned end, bool reads_result) {
    const dp_insn *insn = state->insn;
    unsigned widest = dp_operand_bytes(insn, 0);
    for (unsigned k = first; k < end; k++)
        widest = dp_operand_bytes(insn, k) > widest ? dp_operand_bytes(insn, k) : widest;
    if (insn->repeat > 255 && insn->mask_kind != DP_MASK_COUNT && !state->core->counter_mode)
        return; /* illegal: the executor faults */
    dp_lanes lanes;
    dp_lanes_resolve(state->core, insn, widest, &lanes);
    size_t total = (size_t)lanes.repeats * lanes.per_repeat;
    memset(state->bad_lane, 0, ((total < DP_LANES_MAX ? total : DP_LANES_MAX) + 63) / 64 * sizeof(uint64_t));
    uint32_t origin = 0;
    for (unsigned k = first; k < end; k++)
        each_lane(state, &lanes, k, gather_bad, &origin);
    if (reads_result)
        each_lane(state, &lanes, 0, gather_bad, &origin);
    if (!origin)
        origin = state->site + 1;
    each_lane(state, &lanes, 0, spread_bad, &origin);
}

/* One row of a copy: bytes without data stay without data at the destination. */
static void follow_row(dp_check_core *state, const uint8_t *src, const uint8_t *dst, size_t bytes) {
    unsigned from = state->insn->operand[1].space, to = state->insn->operand[0].space;
    const uint8_t *first;
    uint32_t origin;
    size_t missing = missing_in(state, from, src, bytes, &first, &origin);
    if (!missing)
        return;
    bool of_gm = from == DP_SPACE_GM || (origin & FROM_GM);
    if ((from == DP_SPACE_GM && missing == bytes) || (to == DP_SPACE_GM && !of_gm)) {
        report_missing(state, from, first, missing, origin);
        return;
    }
    if (!origin)
        origin = (state->site + 1) | (from == DP_SPACE_GM ? FROM_GM : 0u);
    for (size_t i = (size_t)(first - src); i < bytes; i++) {
        const uint8_t *byte;
        uint32_t unused;
        if (missing_in(state, from, src + i, 1, &byte, &unused))
            clear_data(state, to, dst + i, 1, origin);
    }
}

static void follow_copy(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    const dp_copy_params *p = &insn->u.copy;
    size_t element = dp_dtype_bits(insn->operand[0].dtype) / 8;
    size_t bytes = p->pad_form ? p->block_bytes : p->block_bytes / DP_BLOCK_BYTES * DP_BLOCK_BYTES;
    size_t left = 0, src_row = bytes, dst_row = bytes;
    if (p->pad_form && insn->operand[0].space == DP_SPACE_GM) {
        src_row = (bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES * DP_BLOCK_BYTES;
    } else if (p->pad_form) {
        left = p->left_pad * element;
        dst_row = (left + bytes + p->right_pad * element + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES * DP_BLOCK_BYTES;
    }
    const uint8_t *src = insn->operand[1].addr, *dst = insn->operand[0].addr;
    for (uint32_t i = 0; i < p->block_count; i++) {
        follow_row(state, src, dst + left, bytes);
        src += (ptrdiff_t)src_row + p->src_gap_bytes;
        dst += (ptrdiff_t)dst_row + p->dst_gap_bytes;
    }
}

/* Atomic stores add to what is there. */
static void check_atomic(dp_check_core *state) {
    if (!state->core->atomic_op || state->pipe == DP_PIPE_S)
        return;
    for (uint32_t i = 0; i < state->run_count; i++) {
        const dp_check_run *run = &state->runs[i];
        const uint8_t *first;
        uint32_t origin;
        if (run->space != DP_SPACE_GM || !(run->mode & 2))
            continue;
        size_t missing = missing_in(state, DP_SPACE_GM, run->addr, run->bytes, &first, &origin);
        if (missing) {
            report_missing(state, DP_SPACE_GM, first, missing, 0);
            return;
        }
    }
}

/* True when nothing is missing even between the runs of an operand: most tensors are whole. */
static bool box_is_whole(dp_check_core *state, unsigned k) {
    const uint8_t *first;
    uint32_t origin;
    unsigned space = state->insn->operand[k].space;
    if (space == DP_SPACE_GM || !state->box[k].begin)
        return false;
    size_t bytes = (size_t)(state->box[k].end - state->box[k].begin);
    uint32_t offset;
    return local_shadow(state, space, state->box[k].begin, bytes, &offset) &&
           !missing_in(state, space, state->box[k].begin, bytes, &first, &origin);
}

static void set_written(dp_check_core *state) {
    bool whole = state->run_count > 4 && box_is_whole(state, 0);
    for (uint32_t i = 0; i < state->run_count; i++) {
        if ((state->runs[i].mode & 2) && !(whole && state->runs[i].operand == 0))
            set_data_of_run(state, &state->runs[i]);
    }
}

void dp_check_data(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    const dp_check_run *bad = NULL;
    const uint8_t *first = NULL;
    uint32_t origin = 0;
    size_t missing = 0;
    check_atomic(state);
    bool whole[4] = {false};
    for (unsigned k = 0; k < 4 && state->run_count > 4; k++)
        whole[k] = (state->box[k].mode & 1) && box_is_whole(state, k);
    for (uint32_t i = 0; i < state->run_count && !bad; i++) {
        const dp_check_run *run = &state->runs[i];
        if (!(run->mode & 1) || whole[run->operand])
            continue;
        missing = missing_in_run(state, run, &first, &origin);
        if (missing)
            bad = run;
    }
    if (DP_LIKELY(!bad)) {
        set_written(state);
        return;
    }
    unsigned from, end;
    bool reads_result;
    dp_family family = dp_insn_family(insn->op);
    if (is_lanewise(insn, &from, &end, &reads_result)) {
        follow_lanes(state, from, end, reads_result);
    } else if (family == DP_FAMILY_COPY) {
        set_written(state);
        follow_copy(state);
    } else {
        if (family != DP_FAMILY_COMPARE) /* compares whole repeats: the bits of unused lanes are unused too */
            report_missing(state, bad->space, first, missing, origin);
        set_written(state);
    }
}

static void report_overlap(dp_check_core *state, unsigned k, const uint8_t *begin, size_t bytes) {
    dp_finding f = {.kind = DP_CHECK_OVERLAP};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(state->insn, (int)state->pipe, "has overlapping operands");
    snprintf(f.sentence, sizeof f.sentence,
             "the destination of %s overlaps its %s in part; the result depends on the order of lanes",
             dp_insn_name(state->insn->op), dp_operand_role(state->insn, k));
    snprintf(f.cure, sizeof f.cure, "use the same address and strides for both, or a tensor of its own for the destination");
    dp_describe_local(state->core, state->insn->operand[0].space, begin, bytes, f.memory, sizeof f.memory);
    dp_finding_add(&f);
}

/* First run of operand k at or after index `from`; run_count if there is none. */
static uint32_t next_run(const dp_check_core *state, uint32_t from, unsigned k) {
    while (from < state->run_count && state->runs[from].operand != k)
        from++;
    return from;
}

/* Bytes operand k shares with the destination, the first such piece. Runs of an operand come in rising order. */
static size_t shared_bytes(const dp_check_core *state, unsigned k, const uint8_t **out_begin) {
    if (state->box[0].end <= state->box[k].begin || state->box[k].end <= state->box[0].begin)
        return 0;
    uint32_t i = next_run(state, 0, 0), j = next_run(state, 0, k);
    while (i < state->run_count && j < state->run_count) {
        const dp_check_run *w = &state->runs[i], *r = &state->runs[j];
        if (w->addr + w->bytes <= r->addr) {
            i = next_run(state, i + 1, 0);
        } else if (r->addr + r->bytes <= w->addr) {
            j = next_run(state, j + 1, k);
        } else {
            const uint8_t *begin = r->addr > w->addr ? r->addr : w->addr;
            const uint8_t *w_end = w->addr + w->bytes, *r_end = r->addr + r->bytes;
            if (w->bits && !(w->bits & r->bits)) { /* other lanes of the same blocks; either both runs have bits or none */
                if (w_end <= r_end)
                    i = next_run(state, i + 1, 0);
                else
                    j = next_run(state, j + 1, k);
                continue;
            }
            *out_begin = begin;
            return (size_t)((r_end < w_end ? r_end : w_end) - begin);
        }
    }
    return 0;
}

void dp_check_overlap(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    unsigned first, end;
    bool reads_result;
    if (!is_lanewise(insn, &first, &end, &reads_result) || insn->repeat > 255)
        return;
    const dp_operand *dst = &insn->operand[0];
    for (unsigned k = first; k < end; k++) {
        const dp_operand *src = &insn->operand[k];
        if (src->space != dst->space)
            continue;
        bool same_strides = (src->block_stride == dst->block_stride && src->repeat_stride == dst->repeat_stride) ||
                            insn->mask_kind == DP_MASK_COUNT || insn->repeat == 1;
        unsigned dst_bits = dp_dtype_bits(dst->dtype), src_bits = dp_dtype_bits(src->dtype);
        /* narrowing in place reads ahead of what it writes */
        if (src->addr == dst->addr && (src_bits > dst_bits || (src_bits == dst_bits && same_strides)))
            continue;
        const uint8_t *begin;
        size_t bytes = shared_bytes(state, k, &begin);
        if (bytes) {
            report_overlap(state, k, begin, bytes);
            return;
        }
    }
}
