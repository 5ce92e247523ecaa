/*
 * Executors of COMPARE and SELECT.
 *
 * COMPARE  [0] result bits, one run of bytes over all repeats, or space NONE: the bits go to the CMPMASK register and the
 *          vector mask counts (unselected lanes keep their bit); [1] left, [2] right (COMPARE: n_operands 3) or scalar_bits.
 * SELECT   [0] = bits [1] ? [2] : [3]; n_operands 3: the right side is scalar_bits, or with u.vec.flag0 the low bits of
 *          CMPMASK. [1] of space NONE: mode 0 takes the bits of CMPMASK, mode 2 the UB address CMPMASK holds.
 */
#include <string.h>

#include "device/vector.h"

enum { CMP_EQ = 2, SEL_CMPMASK = 0, SEL_SCALAR = 1, SEL_TENSOR = 2 };

static const dp_walk_set compare_two = {2, {1, 2}}, compare_one = {1, {1}};
static const dp_walk_set select_two = {3, {0, 2, 3}}, select_one = {2, {0, 2}};

static const dp_walk_set *compare_set(const dp_insn *insn) {
    return insn->op == DP_OP_COMPARE ? &compare_two : &compare_one;
}

/* Forms with a destination ignore the vector mask: the same instruction with every lane selected. */
static dp_insn without_mask(const dp_core *core, const dp_insn *insn) {
    dp_insn all = *insn;
    if (insn->mask_kind == DP_MASK_COUNT)
        return all;
    if (insn->mask_kind == DP_MASK_REGISTER)
        all.mask[0] = core->mask[0]; /* the number of elements, in counter mode */
    all.mask_kind = DP_MASK_NONE;
    return all;
}

typedef struct compare_run {
    dp_compare_fn two;
    dp_compare_scalar_fn one;
    const void *scalar;
    uint8_t *bits;
    bool careful; /* the destination lies over a source */
} compare_run;

static void compare_lanes(const compare_run *run, uint8_t *bits, uint8_t *const at[], size_t lanes) {
    if (run->two)
        run->two(bits, at[0], at[1], lanes);
    else
        run->one(bits, at[0], run->scalar, lanes);
}

static void run_compare(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    const compare_run *run = context;
    uint8_t *bits = run->bits + lane / 8;
    if (!run->careful) {
        compare_lanes(run, bits, at, lanes);
        return;
    }
    uint8_t buffer[16]; /* lanes <= 128: a careful walk goes repeat by repeat */
    memcpy(buffer, bits, (lanes + 7) / 8);
    compare_lanes(run, buffer, at, lanes);
    memcpy(bits, buffer, (lanes + 7) / 8);
}

static void run_compare_to_register(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    const compare_run *run = context;
    uint8_t bits[16] = {0};
    compare_lanes(run, bits, at, lanes);
    for (size_t i = 0; i < lanes; i++) {
        size_t at_bit = lane + i;
        if (bits[i / 8] >> (i % 8) & 1)
            run->bits[at_bit / 8] |= (uint8_t)(1u << at_bit % 8);
    }
}

static void compare_to_register(dp_core *core, dp_insn *insn, compare_run *run) {
    uint8_t bits[16] = {0};
    uint64_t words[2];
    dp_walk walk;
    run->bits = bits;
    insn->repeat = 1;
    if (!dp_walk_begin(core, insn, compare_set(insn), &walk))
        return;
    walk.lanes.repeats = 1; /* counter mode: at most one repeat fits the register */
    walk.by_repeat = true;
    dp_walk_run(&walk, run_compare_to_register, run);
    memcpy(words, bits, sizeof words);
    for (unsigned w = 0; w < 2; w++)
        core->cmp_mask[w] = (core->cmp_mask[w] & ~walk.lanes.mask[w]) | (words[w] & walk.lanes.mask[w]);
}

static void check_compare_types(dp_core *core, const dp_insn *insn) {
    unsigned dtype = insn->operand[1].dtype;
    if (DP_UNLIKELY(insn->u.vec.cmp_mode >= DP_CMP_COUNT))
        dp_fault(core, insn, insn->loc, "comparison mode %u does not exist; use a CMPMODE value", insn->u.vec.cmp_mode);
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype))) {
        char list[64];
        dp_fault(core, insn, insn->loc, "element type %s is not offered; use %s", dp_dtype_name(dtype),
                 dp_dtype_list(dp_insn_types(insn->op), list, sizeof list));
    }
    if (DP_UNLIKELY(dtype == DP_I32 && insn->u.vec.cmp_mode != CMP_EQ))
        dp_fault(core, insn, insn->loc, "int32 can only be compared with CMPMODE::EQ; cast to float for the other relations");
    if (insn->op == DP_OP_COMPARE)
        dp_same_dtype(core, insn, 1, 3);
}

/* Bytes of the result bits. */
static size_t compare_bytes(const dp_lanes *lanes) {
    return lanes->repeats ? ((size_t)(lanes->repeats - 1) * lanes->per_repeat + lanes->last + 7) / 8 : 0;
}

static bool ranges_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

void dp_exec_compare(dp_core *core, dp_insn *insn) {
    unsigned dtype = insn->operand[1].dtype, mode = insn->u.vec.cmp_mode;
    check_compare_types(core, insn);
    compare_run run = {.scalar = &insn->scalar_bits};
    if (insn->op == DP_OP_COMPARE)
        run.two = core->math->compare[mode][dtype];
    else
        run.one = core->math->compare_scalar[mode][dtype];
    dp_need_loop(core, insn, run.two || run.one);
    if (insn->operand[0].space == DP_SPACE_NONE) {
        compare_to_register(core, insn, &run);
        return;
    }
    unsigned bytes = dp_dtype_bits(dtype) / 8;
    if (DP_UNLIKELY(insn->mask_kind == DP_MASK_COUNT && insn->mask[0] * bytes % DP_REPEAT_BYTES))
        dp_fault(core, insn, insn->loc,
                 "the count is %llu, but count x %u bytes must be a multiple of 256 bytes; use a multiple of %u elements",
                 (unsigned long long)insn->mask[0], bytes, DP_REPEAT_BYTES / bytes);
    dp_insn all = without_mask(core, insn);
    dp_walk walk;
    bool work = dp_walk_begin(core, &all, compare_set(insn), &walk);
    size_t dst_bytes = compare_bytes(&walk.lanes);
    dp_operand_in_space(core, insn, 0, DP_SPACE_UB);
    dp_operand_check(core, insn, 0, dst_bytes, DP_BLOCK_BYTES);
    if (!work)
        return;
    run.bits = insn->operand[0].addr;
    for (unsigned p = 0; p < walk.count; p++)
        run.careful = run.careful || ranges_overlap(run.bits, dst_bytes, walk.addr[p],
                                                    dp_lanes_extent(&walk.lanes, &insn->operand[1 + p], bytes * 8));
    walk.by_repeat = run.careful;
    dp_walk_run(&walk, run_compare, &run);
}

void dp_visit_compare(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    if (insn->operand[0].space == DP_SPACE_NONE) {
        dp_insn once = *insn;
        once.repeat = 1;
        dp_walk_visit(core, &once, compare_set(insn), DP_READ, visit, context);
        return;
    }
    dp_insn all = without_mask(core, insn);
    if (all.repeat > 255 && all.mask_kind != DP_MASK_COUNT && !core->counter_mode)
        return;
    dp_walk_visit(core, &all, compare_set(insn), DP_READ, visit, context);
    dp_lanes lanes;
    dp_lanes_resolve(core, &all, dp_operand_bytes(insn, 1), &lanes);
    if (compare_bytes(&lanes))
        visit(context, 0, DP_WRITE, insn->operand[0].addr, compare_bytes(&lanes));
}

/* ---- SELECT ---- */

typedef struct select_run {
    dp_select_fn fn;
    const uint8_t *bits;
    const void *scalar; /* NULL: the right side is a tensor */
    size_t period;      /* bits are used again after so many lanes; 0: on and on */
} select_run;

static void run_select(const void *context, uint8_t *const at[DP_WALK_OPERANDS], size_t lane, size_t lanes) {
    const select_run *run = context;
    size_t first_bit = run->period ? lane % run->period : lane;
    run->fn(at[0], run->bits, first_bit, at[1], run->scalar ? run->scalar : at[2], lanes);
}

static void check_select(dp_core *core, const dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype, mode = insn->u.vec.sel_mode;
    bool scalar = insn->n_operands < 4;
    if (DP_UNLIKELY(!dp_vector_offered(insn, dtype)))
        dp_fault_dtype(core, insn, dp_insn_types(insn->op));
    if (DP_UNLIKELY(insn->operand[2].dtype != dtype || (!scalar && insn->operand[3].dtype != dtype)))
        dp_fault(core, insn, insn->loc, "destination and sources must have one type; they are %s, %s and %s",
                 dp_dtype_name(dtype), dp_dtype_name(insn->operand[2].dtype),
                 scalar ? "a scalar" : dp_dtype_name(insn->operand[3].dtype));
    if (DP_UNLIKELY(mode > SEL_TENSOR))
        dp_fault(core, insn, insn->loc, "selection mode %u does not exist; use a SELMODE value", mode);
    if (DP_UNLIKELY(scalar != (mode == SEL_SCALAR)))
        dp_fault(core, insn, insn->loc,
                 scalar ? "a scalar right side takes SELMODE::VSEL_TENSOR_SCALAR_MODE only"
                        : "SELMODE::VSEL_TENSOR_SCALAR_MODE takes a scalar right side, not a tensor");
    if (DP_UNLIKELY(scalar && insn->operand[1].space == DP_SPACE_NONE))
        dp_fault(core, insn, insn->loc, "a scalar right side needs a selection mask tensor");
}

/* Bytes of selection bits the lanes use. */
static size_t select_bytes(const dp_lanes *lanes, unsigned mode) {
    if (!lanes->repeats)
        return 0;
    uint32_t last = lanes->last < lanes->high ? lanes->last : lanes->high;
    if (mode == SEL_CMPMASK)
        return ((lanes->repeats > 1 ? lanes->high : last) + 7) / 8;
    return ((size_t)(lanes->repeats - 1) * lanes->per_repeat + last + 7) / 8;
}

/* The mask of mode 2 without a mask operand: CMPMASK holds its address, as a pointer or as an offset in UB. */
static dp_operand mask_by_address(const dp_core *core) {
    const dp_core_memory *ub = &core->memory[DP_SPACE_UB];
    uint64_t address = core->cmp_mask[0];
    uint8_t *at = address < ub->size_bytes ? ub->base + address : (uint8_t *)(uintptr_t)address;
    return (dp_operand){.addr = at, .space = DP_SPACE_UB, .dtype = DP_U8};
}

void dp_exec_select(dp_core *core, dp_insn *insn) {
    check_select(core, insn);
    unsigned dtype = insn->operand[0].dtype, mode = insn->u.vec.sel_mode;
    bool scalar = insn->n_operands < 4, by_register = insn->operand[1].space == DP_SPACE_NONE;
    if (by_register && mode == SEL_TENSOR)
        insn->operand[1] = mask_by_address(core);
    dp_walk walk;
    bool work = dp_walk_begin(core, insn, scalar ? &select_one : &select_two, &walk);
    size_t bits_bytes = select_bytes(&walk.lanes, mode);
    select_run run = {.bits = insn->operand[1].addr, .scalar = scalar ? &insn->scalar_bits : NULL};
    uint64_t register_bits[2], register_scalar = core->cmp_mask[0];
    if (insn->operand[1].space != DP_SPACE_NONE) {
        dp_operand_in_space(core, insn, 1, DP_SPACE_UB);
        dp_operand_check(core, insn, 1, bits_bytes, DP_BLOCK_BYTES);
        if (DP_UNLIKELY(work && mode != SEL_CMPMASK &&
                        ranges_overlap(walk.addr[0], dp_lanes_extent(&walk.lanes, &insn->operand[0], walk.bits[0]),
                                       run.bits, bits_bytes)))
            dp_fault(core, insn, insn->loc, "the destination overlaps the selection mask; use separate tensors");
    }
    if (mode == SEL_CMPMASK) {
        if (!by_register)
            memcpy(core->cmp_mask, run.bits, bits_bytes);
        memcpy(register_bits, core->cmp_mask, sizeof register_bits);
        run.bits = (const uint8_t *)register_bits;
        run.period = walk.lanes.per_repeat;
        walk.by_repeat = true;
    } else if (scalar && insn->u.vec.flag0) {
        run.scalar = &register_scalar;
    } else {
        core->cmp_mask[0] = scalar ? insn->scalar_bits : (uint64_t)(uintptr_t)run.bits;
    }
    run.fn = scalar ? core->math->select_scalar[dtype] : core->math->select[dtype];
    dp_need_loop(core, insn, run.fn != NULL);
    if (work)
        dp_walk_run(&walk, run_select, &run);
}

void dp_visit_select(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    if (insn->repeat > 255 && insn->mask_kind != DP_MASK_COUNT && !core->counter_mode)
        return;
    dp_lanes lanes;
    dp_lanes_resolve(core, insn, dp_operand_bytes(insn, 0), &lanes);
    dp_walk_visit(core, insn, insn->n_operands < 4 ? &select_one : &select_two, DP_WRITE, visit, context);
    unsigned mode = insn->u.vec.sel_mode;
    dp_operand bits = insn->operand[1];
    if (bits.space == DP_SPACE_NONE && mode == SEL_TENSOR)
        bits = mask_by_address(core);
    if (bits.space != DP_SPACE_NONE && select_bytes(&lanes, mode))
        visit(context, 1, DP_READ, bits.addr, select_bytes(&lanes, mode));
}
