/*
 * copy.c - DataCopy and DataCopyPad: block_count runs with gaps, between GM and the on-chip memories or inside them.
 *
 * Plain form: only whole 32-byte blocks move (64 B to the bias table, 128 B to the fixpipe buffer), a tail is cut.
 * Pad form: byte runs; rows of the UB side start on 32 bytes, GM -> UB rows get left and right padding elements.
 * Writes from UB or L1 to GM obey the core's atomic mode.
 */
#include "device/ahead.h"
#include "device/count.h"
#include "device/runs.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAX_BLOCK_COUNT = 4095,
    MAX_PAD_RUN_BYTES = 2097151,
    /* Measured out of the caches, runs of 256 bytes to 16 KiB: streaming wins by 1.8 to 2.9; shorter ones are all ends. */
    STREAM_RUN_BYTES = 512,
    AHEAD_RUN_BYTES = 2048 /* copies that are worth a guess about the next one */
};

/* Bytes of a device range and its end. */
typedef struct gm_extent {
    size_t size_bytes;
    const uint8_t *end;
} gm_extent;

/* Strides are 32-bit counts of bytes or 32-byte blocks. */
#define MAX_GAP_BYTES ((uint64_t)UINT32_MAX * DP_BLOCK_BYTES)

/* The copy in bytes: `count` rows, each run_bytes of source after left_bytes of padding, row_bytes written in all. */
typedef struct copy_plan {
    size_t count, run_bytes, left_bytes, row_bytes;
    ptrdiff_t src_pitch, dst_pitch;
} copy_plan;

static size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

static unsigned unit_bytes(const dp_insn *insn) {
    switch (insn->operand[0].space) {
    case DP_SPACE_BT:
        return 64;
    case DP_SPACE_FB:
        return 128;
    default:
        return DP_BLOCK_BYTES;
    }
}

/* Pure arithmetic on the parameters; false if there is nothing to copy. */
static bool plan_make(const dp_insn *insn, copy_plan *plan) {
    const dp_copy_params *p = &insn->u.copy;
    size_t run = p->block_bytes, element = dp_dtype_bits(insn->operand[0].dtype) / 8;
    bool to_gm = insn->operand[0].space == DP_SPACE_GM;
    if (!p->pad_form)
        run -= run % unit_bytes(insn);
    if (!p->block_count || !run)
        return false;
    plan->count = p->block_count;
    plan->run_bytes = run;
    plan->left_bytes = 0;
    plan->row_bytes = run;
    plan->src_pitch = (ptrdiff_t)run + p->src_gap_bytes;
    if (p->pad_form && to_gm) {
        plan->src_pitch = (ptrdiff_t)round_up(run, DP_BLOCK_BYTES) + p->src_gap_bytes;
    } else if (p->pad_form) {
        plan->left_bytes = p->left_pad * element;
        plan->row_bytes = round_up(plan->left_bytes + run + p->right_pad * element, DP_BLOCK_BYTES);
    }
    plan->dst_pitch = (ptrdiff_t)plan->row_bytes + p->dst_gap_bytes;
    if (plan->row_bytes == run && plan->src_pitch == (ptrdiff_t)run && plan->dst_pitch == (ptrdiff_t)run) {
        plan->run_bytes = plan->row_bytes = run * plan->count;
        plan->count = 1;
    }
    return true;
}

/* Bytes from the first row to the end of the last. */
static size_t extent(size_t count, ptrdiff_t pitch, size_t row) {
    return (count - 1) * (size_t)pitch + row;
}

static void check_path(dp_core *core, const dp_insn *insn) {
    unsigned dst = insn->operand[0].space, src = insn->operand[1].space;
    static const uint16_t sources[DP_SPACE_COUNT] = {
        [DP_SPACE_GM] = 1u << DP_SPACE_UB | 1u << DP_SPACE_L1,
        [DP_SPACE_UB] = 1u << DP_SPACE_GM | 1u << DP_SPACE_UB,
        [DP_SPACE_L1] = 1u << DP_SPACE_GM | 1u << DP_SPACE_UB,
        [DP_SPACE_BT] = 1u << DP_SPACE_L1,
        [DP_SPACE_FB] = 1u << DP_SPACE_L1,
    };
    if (DP_UNLIKELY(dst >= DP_SPACE_COUNT || src >= DP_SPACE_COUNT || !(sources[dst] >> src & 1u)))
        dp_fault(core, insn, insn->loc, "this chip has no path from %s to %s; copy through GM or UB",
                 dp_space_name(src), dp_space_name(dst));
}

static void check_pad(dp_core *core, const dp_insn *insn) {
    const dp_copy_params *p = &insn->u.copy;
    unsigned element = dp_dtype_bits(insn->operand[0].dtype) / 8;
    bool to_gm = insn->operand[0].space == DP_SPACE_GM;
    if (!element)
        dp_fault(core, insn, insn->loc, "4-bit elements cannot be copied with padding: view the tensor as int8_t");
    if (insn->operand[0].space != DP_SPACE_UB && insn->operand[1].space != DP_SPACE_UB)
        dp_fault(core, insn, insn->loc, "one side must be in UB (it goes from %s to %s)",
                 dp_space_name(insn->operand[1].space), dp_space_name(insn->operand[0].space));
    if (p->block_bytes > MAX_PAD_RUN_BYTES)
        dp_fault(core, insn, insn->loc, "blockLen is %" PRIu32 " bytes: at most %d are possible", p->block_bytes,
                 MAX_PAD_RUN_BYTES);
    if (!to_gm && p->block_bytes % element)
        dp_fault(core, insn, insn->loc,
                 "blockLen is %" PRIu32 " bytes: it must be a multiple of the element size %u; blockLen counts bytes: "
                 "multiply the number of elements by %u",
                 p->block_bytes, element, element);
    if (p->left_pad * element > DP_BLOCK_BYTES || p->right_pad * element > DP_BLOCK_BYTES)
        dp_fault(core, insn, insn->loc,
                 "leftPadding %u and rightPadding %u elements of %u bytes: each side may have at most 32 bytes",
                 p->left_pad, p->right_pad, element);
    if (element == 8 && p->is_pad && p->pad_value && (p->left_pad || p->right_pad))
        dp_fault(core, insn, insn->loc,
                 "paddingValue must be 0 for 8-byte types: they are padded as pairs of 4-byte words");
}

static void check_params(dp_core *core, const dp_insn *insn) {
    const dp_copy_params *p = &insn->u.copy;
    check_path(core, insn);
    if (DP_UNLIKELY(p->block_count > MAX_BLOCK_COUNT))
        dp_fault(core, insn, insn->loc, "blockCount is %" PRIu32 ": at most %d runs are possible, split the copy",
                 p->block_count, MAX_BLOCK_COUNT);
    if (DP_UNLIKELY(dp_dtype_bits(insn->operand[0].dtype) != dp_dtype_bits(insn->operand[1].dtype)))
        dp_fault(core, insn, insn->loc, "a copy from %s to %s would have to convert, which is not supported",
                 dp_dtype_name(insn->operand[1].dtype), dp_dtype_name(insn->operand[0].dtype));
    if (p->pad_form)
        check_pad(core, insn);
    if (DP_UNLIKELY((uint64_t)p->src_gap_bytes > MAX_GAP_BYTES || (uint64_t)p->dst_gap_bytes > MAX_GAP_BYTES))
        dp_fault(core, insn, insn->loc,
                 "the gaps between runs are %" PRId64 " and %" PRId64
                 " bytes: they must not be negative or over %" PRIu64,
                 p->src_gap_bytes, p->dst_gap_bytes, MAX_GAP_BYTES);
}

static unsigned gm_align(unsigned dtype) { return dp_dtype_bits(dtype) < 16 ? 1 : dp_dtype_bits(dtype) / 8; }

/* Required alignment of one side: the space's block, in GM the element (pad form: none). */
static unsigned align_of(const dp_insn *insn, unsigned k) {
    switch (insn->operand[k].space) {
    case DP_SPACE_GM:
        return insn->u.copy.pad_form ? 1 : gm_align(insn->operand[k].dtype);
    case DP_SPACE_BT:
        return 64;
    case DP_SPACE_FB:
        return 128;
    default:
        return DP_BLOCK_BYTES;
    }
}

/* Every run of an on-chip side must start aligned, not only the first. */
static void check_pitch(dp_core *core, const dp_insn *insn, unsigned k, const copy_plan *plan) {
    ptrdiff_t pitch = k ? plan->src_pitch : plan->dst_pitch, unit = align_of(insn, k);
    if (DP_UNLIKELY(plan->count > 1 && insn->operand[k].space != DP_SPACE_GM && pitch % unit))
        dp_fault(core, insn, insn->loc, "the runs of the %s start every %td bytes, which is not a multiple of %td",
                 dp_operand_role(insn, k), pitch, unit);
}

/* The device range around an address that has just passed dp_operand_check; size 0 when it is no longer known. */
static gm_extent range_around(const dp_core *core, const uint8_t *addr) {
    const dp_gm_cache *cache = &core->gm_cache;
    for (unsigned i = 0; i < DP_GM_CACHE; i++)
        if ((uintptr_t)addr >= cache->begin[i] && (uintptr_t)addr < cache->end[i])
            return (gm_extent){cache->end[i] - cache->begin[i], addr + (cache->end[i] - (uintptr_t)addr)};
    return (gm_extent){0, addr};
}

/*
 * Left, right and filler bytes of one UB row. Padding comes from the call (isPad) or from SetPadValue; a row without
 * padding is filled up with its first element.
 */
static void pad_row(const dp_core *core, const dp_insn *insn, const copy_plan *plan, uint8_t *row) {
    const dp_copy_params *p = &insn->u.copy;
    size_t element = dp_dtype_bits(insn->operand[0].dtype) / 8;
    uint8_t value[8];
    if (p->left_pad || p->right_pad)
        memcpy(value, p->is_pad ? &p->pad_value : &core->pad_value, element);
    else
        memcpy(value, row, element);
    for (size_t i = 0; i < plan->left_bytes; i += element)
        memcpy(row + i, value, element);
    for (size_t i = plan->left_bytes + plan->run_bytes; i < plan->row_bytes; i += element)
        memcpy(row + i, value, element);
}

static dp_atomic_fn atomic_of(dp_core *core, const dp_insn *insn, const copy_plan *plan, size_t *element) {
    if (DP_LIKELY(!core->atomic_op) || insn->operand[0].space != DP_SPACE_GM)
        return NULL;
    dp_atomic_fn fn = core->math->atomic[core->atomic_op - 1][core->atomic_dtype];
    *element = dp_dtype_bits(core->atomic_dtype) / 8;
    if (!fn)
        dp_fault(core, insn, insn->loc, "the atomic mode is set to %s, which cannot be combined in memory",
                 dp_dtype_name(core->atomic_dtype));
    if (plan->run_bytes % *element)
        dp_fault(core, insn, insn->loc,
                 "a run of %zu bytes is no whole number of %s elements, as the atomic mode needs", plan->run_bytes,
                 dp_dtype_name(core->atomic_dtype));
    if ((uintptr_t)insn->operand[0].addr % *element || plan->dst_pitch % (ptrdiff_t)*element)
        dp_fault(core, insn, insn->loc, "atomic writes of %s need a destination aligned to %zu bytes",
                 dp_dtype_name(core->atomic_dtype), *element);
    return fn;
}

void dp_exec_copy(dp_core *core, dp_insn *insn) {
    copy_plan plan;
    size_t element = 1;
    check_params(core, insn);
    if (!plan_make(insn, &plan))
        return;
    dp_operand_check(core, insn, 1, extent(plan.count, plan.src_pitch, plan.run_bytes), align_of(insn, 1));
    dp_operand_check(core, insn, 0, extent(plan.count, plan.dst_pitch, plan.row_bytes), align_of(insn, 0));
    check_pitch(core, insn, 0, &plan);
    check_pitch(core, insn, 1, &plan);

    const dp_math *math = core->math;
    dp_atomic_fn atomic = atomic_of(core, insn, &plan, &element);
    bool inside = insn->operand[0].space == insn->operand[1].space;
    bool padded = plan.row_bytes != plan.run_bytes;
    bool to_gm = insn->operand[0].space == DP_SPACE_GM, from_gm = insn->operand[1].space == DP_SPACE_GM;
    gm_extent range = to_gm || from_gm ? range_around(core, insn->operand[to_gm ? 0 : 1].addr) : (gm_extent){0, NULL};
    bool stream = to_gm && plan.run_bytes >= STREAM_RUN_BYTES && range.size_bytes >= DP_STREAM_BYTES;
    void (*load)(void *, const void *, size_t) = from_gm ? math->copy_in : math->copy;
    uint8_t *dst = insn->operand[0].addr;
    const uint8_t *src = insn->operand[1].addr;
    for (size_t i = 0; i < plan.count; i++, dst += plan.dst_pitch, src += plan.src_pitch) {
        if (DP_UNLIKELY(atomic != NULL))
            atomic(dst, src, plan.run_bytes / element);
        else if (inside) /* overlap: as if the whole run had been read first */
            memmove(dst, src, plan.run_bytes);
        else if (stream)
            math->copy_stream(dst, src, plan.run_bytes);
        else
            load(dst + plan.left_bytes, src, plan.run_bytes);
        if (padded)
            pad_row(core, insn, &plan, dst);
    }
    if ((to_gm || from_gm) && !stream && !atomic && plan.count == 1 && plan.run_bytes >= AHEAD_RUN_BYTES)
        dp_ahead_note(&core->ahead, to_gm, insn->operand[to_gm ? 0 : 1].addr, plan.run_bytes, range.end);
}

/* One run of whole blocks between UB and GM, all checks done. */
static void move_run(dp_core *core, bool to_gm, uint8_t *dst, const uint8_t *src, size_t bytes) {
    const uint8_t *gm = to_gm ? dst : src;
    gm_extent range = range_around(core, gm);
    core->issued++;
    if (to_gm && bytes >= STREAM_RUN_BYTES && range.size_bytes >= DP_STREAM_BYTES) {
        core->math->copy_stream(dst, src, bytes);
        return;
    }
    (to_gm ? core->math->copy : core->math->copy_in)(dst, src, bytes);
    if (bytes >= AHEAD_RUN_BYTES)
        dp_ahead_note(&core->ahead, to_gm, gm, bytes, range.end);
}

static void issue_run(unsigned dtype, bool to_gm, const dp_local *local, const void *gm, uint32_t gm_bytes, uint32_t bytes,
                      dp_loc loc) {
    dp_insn insn = {.op = DP_OP_DATA_COPY, .n_operands = 2, .loc = loc};
    insn.operand[to_gm] = (dp_operand){.addr = local->addr,
                                       .size_bytes = local->size_bytes,
                                       .buffer_id = local->buffer_id,
                                       .block_stride = 1,
                                       .repeat_stride = 8,
                                       .dtype = (uint8_t)dtype,
                                       .space = local->space,
                                       .past_end = local->size_bytes == 0};
    insn.operand[!to_gm] = (dp_operand){.addr = (void *)(uintptr_t)gm,
                                        .size_bytes = gm_bytes,
                                        .block_stride = 1,
                                        .repeat_stride = 8,
                                        .dtype = (uint8_t)dtype,
                                        .space = DP_SPACE_GM};
    insn.u.copy.block_count = 1;
    insn.u.copy.block_bytes = bytes;
    dp_issue(&insn);
}

/* Whole blocks of a run that needs no more than a move; 0: anything else. */
static size_t plain_run(dp_core *core, unsigned dtype, const dp_local *local, const void *gm, uint32_t bytes) {
    size_t run = bytes - bytes % DP_BLOCK_BYTES;
    bool plain = core && run && dp_dtype_bits(dtype) && dp_in_ub(core, local, run, DP_BLOCK_BYTES) &&
                 !((uintptr_t)gm & (gm_align(dtype) - 1)) && dp_gm_holds(core, gm, run);
    return plain ? run : 0;
}

void dp_count_copy_in(unsigned dtype, const dp_local *dst, const void *src, uint32_t gm_bytes, uint32_t bytes, dp_loc loc) {
    dp_core *core = dp_quiet_core();
    size_t run = plain_run(core, dtype, dst, src, bytes);
    if (DP_LIKELY(run))
        move_run(core, false, dst->addr, src, run);
    else
        issue_run(dtype, false, dst, src, gm_bytes, bytes, loc);
}

void dp_count_copy_out(unsigned dtype, void *dst, uint32_t gm_bytes, const dp_local *src, uint32_t bytes, dp_loc loc) {
    dp_core *core = dp_quiet_core();
    size_t run = core && !core->atomic_op ? plain_run(core, dtype, src, dst, bytes) : 0;
    if (DP_LIKELY(run))
        move_run(core, true, dst, src->addr, run);
    else
        issue_run(dtype, true, src, dst, gm_bytes, bytes, loc);
}

void dp_visit_copy(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    copy_plan plan;
    if (insn->u.copy.block_count > MAX_BLOCK_COUNT || !plan_make(insn, &plan)) /* refused by the executor */
        return;
    bool atomic = core->atomic_op && insn->operand[0].space == DP_SPACE_GM;
    dp_runs reads = {.visit = visit, .context = context, .operand = 1, .mode = DP_READ};
    dp_runs writes = {.visit = visit, .context = context, .operand = 0, .mode = atomic ? DP_READ_WRITE : DP_WRITE};
    const uint8_t *dst = insn->operand[0].addr, *src = insn->operand[1].addr;
    for (size_t i = 0; i < plan.count; i++) {
        dp_runs_add(&reads, src + (ptrdiff_t)i * plan.src_pitch, plan.run_bytes);
        dp_runs_add(&writes, dst + (ptrdiff_t)i * plan.dst_pitch, plan.row_bytes);
    }
    dp_runs_end(&reads);
    dp_runs_end(&writes);
}
