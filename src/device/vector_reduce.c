/*
 * Executors of REDUCE. [0] destination, [1] source (block_stride, repeat_stride in blocks), [2] work buffer of ReduceSum,
 * ReduceMax and ReduceMin. The destination's repeat_stride counts: elements (WholeReduceSum, RepeatReduceSum), pairs,
 * elements or 4 bytes (WholeReduceMax/Min by u.vec.reduce_order), groups of 8 elements (BlockReduce*), 128 bytes
 * (PairReduceSum). u.vec.cal_index: ReduceMax/Min write the index behind the value.
 * Facts: kernel-semantics section 5; what is not documented there: docs/numerics.md.
 */
#include <string.h>

#include "device/ahead.h"
#include "device/count.h"
#include "device/vector.h"

enum { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX }; /* ReduceOrder */
enum { INDEX_SLOT_BYTES = 4 };

typedef struct reduction {
    dp_core *core;
    const dp_insn *insn;
    const dp_reduce_fns *fns;
    dp_lanes lanes;
    unsigned bytes;                     /* of one element */
    uint8_t *dst;
    const uint8_t *src;
    size_t src_block, src_repeat, dst_repeat; /* strides in bytes */
    bool dense;                         /* the source is one run of selected lanes */
} reduction;

static bool is_max(unsigned op) {
    return op == DP_OP_WHOLE_REDUCE_MAX || op == DP_OP_BLOCK_REDUCE_MAX || op == DP_OP_REDUCE_MAX;
}

/* Bytes one repeat of n lanes writes. */
static size_t result_bytes(const dp_insn *insn, unsigned bytes, uint32_t n) {
    switch (insn->op) {
    case DP_OP_WHOLE_REDUCE_MAX:
    case DP_OP_WHOLE_REDUCE_MIN:
        return insn->u.vec.reduce_order == ONLY_VALUE   ? bytes
               : insn->u.vec.reduce_order == ONLY_INDEX ? INDEX_SLOT_BYTES
                                                        : 2 * bytes;
    case DP_OP_BLOCK_REDUCE_SUM:
    case DP_OP_BLOCK_REDUCE_MAX:
    case DP_OP_BLOCK_REDUCE_MIN:
        return (n * bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES * bytes;
    case DP_OP_PAIR_REDUCE_SUM:
        return (n + 1) / 2 * bytes;
    default:
        return bytes;
    }
}

static size_t result_stride(const dp_insn *insn, unsigned bytes) {
    size_t stride = insn->operand[0].repeat_stride;
    switch (insn->op) {
    case DP_OP_BLOCK_REDUCE_SUM:
    case DP_OP_BLOCK_REDUCE_MAX:
    case DP_OP_BLOCK_REDUCE_MIN:
        return stride * 8 * bytes;
    case DP_OP_PAIR_REDUCE_SUM:
        return stride * DP_REPEAT_BYTES / 2;
    default:
        return stride * result_bytes(insn, bytes, 1);
    }
}

static bool is_running(unsigned op) { return op == DP_OP_REDUCE_SUM || op == DP_OP_REDUCE_MAX || op == DP_OP_REDUCE_MIN; }

static size_t dst_extent(const dp_insn *insn, const dp_lanes *lanes, unsigned bytes) {
    if (!lanes->repeats)
        return 0;
    if (is_running(insn->op))
        return insn->op != DP_OP_REDUCE_SUM && insn->u.vec.cal_index ? 2 * bytes : bytes;
    size_t stride = result_stride(insn, bytes);
    size_t extent = (lanes->repeats - 1) * stride + result_bytes(insn, bytes, lanes->last);
    if (lanes->repeats > 1) {
        size_t before = (lanes->repeats - 2) * stride + result_bytes(insn, bytes, lanes->per_repeat);
        if (before > extent)
            extent = before;
    }
    return extent;
}

/*
 * Bytes ReduceMax/Min need in the work buffer: 2 values per repeat, rounded up to a block; with an index the same again for
 * those values, until one repeat holds them. ReduceSum accumulates in a register.
 */
static size_t work_bytes(const dp_insn *insn, const dp_lanes *lanes, unsigned bytes) {
    if (insn->op == DP_OP_REDUCE_SUM)
        return 0;
    size_t total = 0, repeats = lanes->repeats;
    while (repeats) {
        total += (repeats * 2 * bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES * DP_BLOCK_BYTES;
        if (repeats == 1 || !insn->u.vec.cal_index)
            break;
        repeats = (repeats * 2 + lanes->per_repeat - 1) / lanes->per_repeat;
    }
    return total;
}

static void begin(dp_core *core, const dp_insn *insn, reduction *out) {
    unsigned dtype = insn->operand[0].dtype;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    dp_same_dtype(core, insn, 0, is_running(insn->op) && insn->n_operands > 2 ? 3 : 2);
    unsigned bytes = dp_operand_bytes(insn, 0);
    const dp_operand *src = &insn->operand[1];
    *out = (reduction){.core = core, .insn = insn, .fns = &core->math->reduce[dtype], .bytes = bytes,
                       .dst = insn->operand[0].addr, .src = src->addr};
    dp_need_loop(core, insn, out->fns->tree_sum && out->fns->repeat_sum && out->fns->running_sum && out->fns->max &&
                                 out->fns->min && out->fns->block_sum && out->fns->block_max && out->fns->block_min &&
                                 out->fns->pair_sum);
    dp_lanes_resolve(core, insn, bytes, &out->lanes);
    out->src_block = out->lanes.flat ? DP_BLOCK_BYTES : (size_t)src->block_stride * DP_BLOCK_BYTES;
    out->src_repeat = out->lanes.flat ? DP_REPEAT_BYTES : (size_t)src->repeat_stride * DP_BLOCK_BYTES;
    out->dst_repeat = result_stride(insn, bytes);
    out->dense = out->lanes.full && out->src_block == DP_BLOCK_BYTES &&
                 (out->src_repeat == DP_REPEAT_BYTES || out->lanes.repeats <= 1);
    dp_operand_in_space(core, insn, 0, DP_SPACE_UB);
    dp_operand_in_space(core, insn, 1, DP_SPACE_UB);
    dp_operand_check(core, insn, 0, dst_extent(insn, &out->lanes, bytes), bytes);
    dp_operand_check(core, insn, 1, dp_lanes_extent(&out->lanes, src, bytes * 8), DP_BLOCK_BYTES);
    if (is_running(insn->op) && insn->n_operands > 2) {
        dp_operand_in_space(core, insn, 2, DP_SPACE_UB);
        dp_operand_check(core, insn, 2, work_bytes(insn, &out->lanes, bytes), DP_BLOCK_BYTES);
    }
    dp_mask_commit(core, insn, bytes);
}

static uint32_t lanes_of_repeat(const reduction *red, uint32_t r) {
    return r + 1 == red->lanes.repeats ? red->lanes.last : red->lanes.per_repeat;
}

/* Lanes [0, n) of repeat r in one run; blocks are brought together in `buffer` when they are apart. */
static const uint8_t *repeat_run(const reduction *red, uint32_t r, uint32_t n, uint8_t *buffer) {
    const uint8_t *repeat = red->src + r * red->src_repeat;
    if (red->src_block == DP_BLOCK_BYTES)
        return repeat;
    uint32_t blocks = (n * red->bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES;
    for (uint32_t b = 0; b < blocks; b++)
        memcpy(buffer + b * DP_BLOCK_BYTES, repeat + b * red->src_block, DP_BLOCK_BYTES);
    return buffer;
}

static bool is_selected(const dp_lanes *lanes, uint32_t lane) { return lanes->mask[lane / 64] >> (lane % 64) & 1; }

/* A whole repeat in which every lane that is not selected holds `neutral`. */
static const uint8_t *padded_run(const reduction *red, uint32_t r, uint32_t neutral, uint8_t *buffer, uint8_t *padded) {
    uint32_t n = lanes_of_repeat(red, r), high = n < red->lanes.high ? n : red->lanes.high;
    const uint8_t *run = repeat_run(red, r, high, buffer);
    if (red->lanes.full && n == red->lanes.per_repeat)
        return run;
    for (uint32_t i = 0; i < red->lanes.per_repeat; i++)
        memcpy(padded + i * red->bytes, i < high && is_selected(&red->lanes, i) ? run + i * red->bytes : (uint8_t *)&neutral,
               red->bytes);
    return padded;
}

static void whole_sum(const reduction *red) {
    uint8_t buffer[DP_REPEAT_BYTES] __attribute__((aligned(64))), padded[DP_REPEAT_BYTES] __attribute__((aligned(64)));
    uint32_t r = 0;
    bool apart = red->dst == red->src || red->dst + red->lanes.repeats * red->bytes <= red->src ||
                 red->dst >= red->src + (size_t)red->lanes.repeats * DP_REPEAT_BYTES;
    if (red->dense && red->dst_repeat == red->bytes && apart) {
        r = red->lanes.last == red->lanes.per_repeat ? red->lanes.repeats : red->lanes.repeats - 1;
        red->fns->repeat_sum(red->dst, red->src, r);
    }
    for (; r < red->lanes.repeats; r++)
        red->fns->tree_sum(red->dst + r * red->dst_repeat, padded_run(red, r, 0, buffer, padded), red->lanes.per_repeat);
}

/* Extreme of the selected lanes of one repeat; false when there is none. */
static bool extreme_of_repeat(const reduction *red, uint32_t r, void *out_value, uint32_t *out_lane) {
    uint8_t buffer[DP_REPEAT_BYTES] __attribute__((aligned(64))), packed[DP_REPEAT_BYTES];
    uint8_t lane_of[128];
    uint32_t n = lanes_of_repeat(red, r), high = n < red->lanes.high ? n : red->lanes.high;
    const uint8_t *run = repeat_run(red, r, high, buffer);
    bool max = is_max(red->insn->op);
    if (!red->lanes.full) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < high; i++) {
            if (!is_selected(&red->lanes, i))
                continue;
            memcpy(packed + kept * red->bytes, run + i * red->bytes, red->bytes);
            lane_of[kept++] = (uint8_t)i;
        }
        if (!kept)
            return false;
        (max ? red->fns->max : red->fns->min)(out_value, out_lane, packed, kept);
        *out_lane = lane_of[*out_lane];
        return true;
    }
    (max ? red->fns->max : red->fns->min)(out_value, out_lane, run, n);
    return true;
}

static void whole_extreme(const reduction *red) {
    unsigned order = red->insn->u.vec.reduce_order;
    for (uint32_t r = 0; r < red->lanes.repeats; r++) {
        uint64_t value = 0;
        uint32_t lane = 0;
        if (!extreme_of_repeat(red, r, &value, &lane))
            continue;
        uint8_t *out = red->dst + r * red->dst_repeat;
        if (order == VALUE_INDEX || order == ONLY_VALUE)
            memcpy(out, &value, red->bytes);
        if (order == VALUE_INDEX)
            memcpy(out + red->bytes, &lane, red->bytes);
        if (order == INDEX_VALUE) {
            memcpy(out, &lane, red->bytes);
            memcpy(out + red->bytes, &value, red->bytes);
        }
        if (order == ONLY_INDEX)
            memcpy(out, &lane, INDEX_SLOT_BYTES);
        red->core->reduce_value[0] = value;
        red->core->reduce_value[1] = lane;
    }
}

/* Results of 8 blocks, or of 128 (64) pairs, per repeat. */
static void grouped(const reduction *red, bool pairs) {
    uint8_t buffer[DP_REPEAT_BYTES] __attribute__((aligned(64))), padded[DP_REPEAT_BYTES] __attribute__((aligned(64)));
    unsigned op = red->insn->op;
    bool max = op == DP_OP_BLOCK_REDUCE_MAX, sum = pairs || op == DP_OP_BLOCK_REDUCE_SUM;
    uint32_t infinity = red->bytes == 2 ? 0x7c00u : 0x7f800000u, sign = red->bytes == 2 ? 0x8000u : 0x80000000u;
    uint32_t neutral = sum ? 0 : max ? infinity | sign : infinity;
    for (uint32_t r = 0; r < red->lanes.repeats; r++) {
        const uint8_t *run = padded_run(red, r, neutral, buffer, padded);
        size_t groups = result_bytes(red->insn, red->bytes, lanes_of_repeat(red, r)) / red->bytes;
        uint8_t *out = red->dst + r * red->dst_repeat;
        if (pairs)
            red->fns->pair_sum(out, run, groups);
        else if (sum)
            red->fns->block_sum(out, run, groups);
        else
            (max ? red->fns->block_max : red->fns->block_min)(out, run, groups);
    }
}

/* Per-repeat trees, added up in order in the element type: the accumulation register of the chip. */
static void running_sum(const reduction *red) {
    uint8_t buffer[DP_REPEAT_BYTES] __attribute__((aligned(64))), padded[DP_REPEAT_BYTES] __attribute__((aligned(64)));
    unsigned dtype = red->insn->operand[0].dtype;
    uint32_t whole = red->dense && red->lanes.repeats ? red->lanes.repeats - (red->lanes.last != red->lanes.per_repeat) : 0;
    uint64_t sum = 0;
    if (whole)
        red->fns->running_sum(&sum, red->src, whole);
    for (uint32_t r = whole; r < red->lanes.repeats; r++) {
        uint64_t tree = 0;
        red->fns->tree_sum(&tree, padded_run(red, r, 0, buffer, padded), red->lanes.per_repeat);
        if (r == 0)
            sum = tree;
        else
            red->core->math->binary[DP_MATH_ADD][dtype](&sum, &sum, &tree, 1);
    }
    if (!red->lanes.repeats)
        return;
    memcpy(red->dst, &sum, red->bytes);
    red->core->acc_value = sum;
}

static bool is_nan(const reduction *red, uint64_t bits) {
    return red->bytes == 2 ? (bits & 0x7fff) > 0x7c00 : (bits & 0x7fffffff) > 0x7f800000;
}

static void running_extreme(const reduction *red) {
    bool max = is_max(red->insn->op), found = false;
    dp_binary_fn better = red->core->math->binary[max ? DP_MATH_MAX : DP_MATH_MIN][red->insn->operand[0].dtype];
    uint64_t best = 0;
    uint32_t index = 0, per_block = DP_BLOCK_BYTES / red->bytes;
    if (red->dense && red->lanes.repeats) {
        (max ? red->fns->max : red->fns->min)(&best, &index, red->src,
                                              (size_t)(red->lanes.repeats - 1) * red->lanes.per_repeat + red->lanes.last);
        found = true;
    }
    for (uint32_t r = 0; r < red->lanes.repeats && !red->dense; r++) {
        uint64_t value = 0, both = 0;
        uint32_t lane = 0;
        if (!extreme_of_repeat(red, r, &value, &lane))
            continue;
        if (found && is_nan(red, best))
            break; /* the first NaN is the extreme */
        if (found)
            better(&both, &value, &best, 1); /* of equal values the second, the older one, stays */
        if (!found || memcmp(&both, &best, red->bytes) != 0) {
            best = value;
            index = lane + r * (uint32_t)(red->src_repeat / DP_BLOCK_BYTES) * per_block;
            found = true;
        }
    }
    if (!found)
        return;
    memcpy(red->dst, &best, red->bytes);
    if (red->insn->u.vec.cal_index)
        memcpy(red->dst + red->bytes, &index, red->bytes);
    red->core->reduce_value[0] = best;
    red->core->reduce_value[1] = index;
}

void dp_exec_reduce(dp_core *core, dp_insn *insn) {
    reduction red;
    if (DP_UNLIKELY(insn->u.vec.reduce_order > ONLY_INDEX))
        dp_fault(core, insn, insn->loc, "result order %u does not exist; use a ReduceOrder value", insn->u.vec.reduce_order);
    begin(core, insn, &red);
    switch (insn->op) {
    case DP_OP_WHOLE_REDUCE_SUM:
    case DP_OP_REPEAT_REDUCE_SUM:
        whole_sum(&red);
        break;
    case DP_OP_WHOLE_REDUCE_MAX:
    case DP_OP_WHOLE_REDUCE_MIN:
        whole_extreme(&red);
        break;
    case DP_OP_REDUCE_SUM:
        running_sum(&red);
        break;
    case DP_OP_REDUCE_MAX:
    case DP_OP_REDUCE_MIN:
        running_extreme(&red);
        break;
    default:
        grouped(&red, insn->op == DP_OP_PAIR_REDUCE_SUM);
        break;
    }
}

/* Operands of a count form whose source is full repeats, or any count for the extremes. */
static bool is_usual(const dp_core *core, uint32_t code, const dp_local *dst, const dp_local *src, const dp_local *work,
                     uint32_t n) {
    unsigned op = dp_code_op(code), dtype = dp_code_dst(code), bytes = dp_dtype_bits(dtype) / 8;
    if (!is_running(op) || (dtype != DP_F32 && dtype != DP_F16) || dp_code_src(code) != dtype || !n)
        return false;
    uint64_t size = (uint64_t)n * bytes, repeats = (size + DP_REPEAT_BYTES - 1) / DP_REPEAT_BYTES;
    uint64_t room = (repeats * 2 * bytes + DP_BLOCK_BYTES - 1) / DP_BLOCK_BYTES * DP_BLOCK_BYTES; /* see work_bytes */
    if (op == DP_OP_REDUCE_SUM) {
        if (size % DP_REPEAT_BYTES)
            return false;
        room = 0;
    }
    return dp_in_ub(core, dst, bytes, bytes) && dp_in_ub(core, src, size, DP_BLOCK_BYTES) &&
           dp_in_ub(core, work, room, DP_BLOCK_BYTES);
}

void dp_count_reduce(uint32_t code, const dp_local *dst, const dp_local *src, const dp_local *work, uint32_t n, dp_loc loc) {
    dp_core *core = dp_quiet_core();
    if (DP_UNLIKELY(!core || !is_usual(core, code, dst, src, work, n))) {
        dp_count_issue(code, (const dp_local *const[]){dst, src, work}, 3, 0, n, loc);
        return;
    }
    unsigned op = dp_code_op(code), dtype = dp_code_dst(code);
    const dp_reduce_fns *fns = &core->math->reduce[dtype];
    uint32_t index = 0;
    dp_count_done(core);
    dp_ahead_step(core);
    if (op == DP_OP_REDUCE_SUM)
        fns->running_sum(dst->addr, src->addr, (size_t)n * dp_dtype_bits(dtype) / 8 / DP_REPEAT_BYTES);
    else
        (op == DP_OP_REDUCE_MAX ? fns->max : fns->min)(dst->addr, &index, src->addr, n);
    dp_ahead_step(core);
    /* read as wide as it was written: a wider read waits until the caches have taken all that was written before */
    uint32_t word = 0;
    uint16_t half = 0;
    if (dtype == DP_F32)
        memcpy(&word, dst->addr, sizeof word);
    else
        memcpy(&half, dst->addr, sizeof half);
    uint64_t value = dtype == DP_F32 ? word : half;
    if (op == DP_OP_REDUCE_SUM) {
        core->acc_value = value;
    } else {
        core->reduce_value[0] = value;
        core->reduce_value[1] = index;
    }
}

void dp_visit_reduce(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    if (insn->repeat > 255 && insn->mask_kind != DP_MASK_COUNT && !core->counter_mode)
        return;
    unsigned bytes = dp_operand_bytes(insn, 0);
    dp_lanes lanes;
    dp_lanes_resolve(core, insn, bytes, &lanes);
    dp_lanes_visit(&lanes, insn, 1, bytes * 8, DP_READ, visit, context);
    if (!lanes.repeats)
        return;
    if (is_running(insn->op)) {
        visit(context, 0, DP_WRITE, insn->operand[0].addr, dst_extent(insn, &lanes, bytes));
        if (insn->n_operands > 2 && work_bytes(insn, &lanes, bytes))
            visit(context, 2, DP_WRITE, insn->operand[2].addr, work_bytes(insn, &lanes, bytes));
        return;
    }
    size_t stride = result_stride(insn, bytes), whole = result_bytes(insn, bytes, lanes.per_repeat);
    if (stride == whole && lanes.last == lanes.per_repeat) {
        visit(context, 0, DP_WRITE, insn->operand[0].addr, lanes.repeats * whole);
        return;
    }
    for (uint32_t r = 0; r < lanes.repeats; r++)
        visit(context, 0, DP_WRITE, (uint8_t *)insn->operand[0].addr + r * stride,
              result_bytes(insn, bytes, r + 1 == lanes.repeats ? lanes.last : lanes.per_repeat));
}
