/*
 * Compare, CompareScalar and Select: all relations, modes, forms, types, rungs, masks and strides against plain bits; CastDeq
 * against its formula.
 */
#include <math.h>

#include "insn_rig.h"

enum { CASES = ROUNDS(60), A_AT = 32 * 1024, B_AT = 112 * 1024, BITS_AT = 24 * 1024 };
enum { LT, GT, EQ, LE, GE, NE };

static unsigned bytes_of(unsigned dtype) { return dp_dtype_bits(dtype) / 8; }

static bool relation(unsigned mode, number a, number b) {
    long double x = a.is_float ? a.f : (long double)a.i, y = b.is_float ? b.f : (long double)b.i;
    switch (mode) {
    case LT: return x < y;
    case GT: return x > y;
    case EQ: return x == y;
    case LE: return x <= y;
    case GE: return x >= y;
    default: return x != y;
    }
}

static void touch(rig *r, size_t at, unsigned bytes, uint8_t mode) {
    for (unsigned i = 0; i < bytes; i++)
        r->touched[at + i] |= mode;
}

static number read_lane(rig *r, const lane_plan *plan, const dp_operand *operand, uint32_t rep, uint32_t lane) {
    size_t at = lane_address(r, operand, plan->flat, plan->per_repeat, rep, lane).offset;
    touch(r, at, bytes_of(operand->dtype), DP_READ);
    return number_load(operand->dtype, r->expect + at, 0);
}

static void draw_mask(rig *r, dp_insn *insn, uint32_t per_repeat) {
    static const uint8_t kinds[] = {DP_MASK_COUNT, DP_MASK_LEADING, DP_MASK_BITS, DP_MASK_REGISTER};
    insn->mask_kind = kinds[rig_below(r, 4)];
    r->core->counter_mode = rig_below(r, 4) == 0;
    insn->repeat = rig_below(r, 6) ? rig_below(r, 9) : rig_below(r, 100);
    for (unsigned w = 0; w < 2; w++) {
        insn->mask[w] = rig_below(r, 3) ? rig_random(r) : ~0ull;
        r->core->mask[w] = rig_below(r, 3) ? rig_random(r) : ~0ull;
        r->core->cmp_mask[w] = rig_random(r);
    }
    if (insn->mask_kind == DP_MASK_LEADING)
        insn->mask[0] = rig_below(r, per_repeat + 1);
    if (r->core->counter_mode || insn->mask_kind == DP_MASK_COUNT)
        insn->mask[0] = r->core->mask[0] = 1 + rig_below(r, 1500);
}

static dp_operand draw_source(rig *r, unsigned dtype, size_t at) {
    static const uint8_t blocks[] = {1, 1, 1, 0, 2}, repeats[] = {8, 8, 8, 0, 1, 9};
    return (dp_operand){.addr = r->ub + at + 32 * rig_below(r, 4), .dtype = (uint8_t)dtype, .space = DP_SPACE_UB,
                        .block_stride = blocks[rig_below(r, 5)], .repeat_stride = repeats[rig_below(r, 6)]};
}

static void fill(rig *r, unsigned dtype) {
    for (size_t i = 0; i < r->ub_bytes / bytes_of(dtype); i++) {
        if (rig_below(r, 2)) /* few values: equality must happen */
            number_store(dtype, r->image, i, number_float((long double)rig_below(r, 3) - 1), 0);
        else
            number_draw(r, dtype, r->image, i);
        if (!is_float_type(dtype) && rig_below(r, 2))
            number_store(dtype, r->image, i, number_int((int64_t)rig_below(r, 3)), 0);
    }
}

/* ---- Compare ---- */

static void compare_case(rig *r, unsigned dtype, unsigned mode, bool scalar, bool to_register) {
    unsigned bytes = bytes_of(dtype);
    dp_insn insn = {.op = scalar ? DP_OP_COMPARE_SCALAR : DP_OP_COMPARE, .n_operands = scalar ? 2 : 3, .loc = DP_HERE};
    insn.u.vec.cmp_mode = (uint8_t)mode;
    draw_mask(r, &insn, 256 / bytes);
    if (to_register && (insn.mask_kind == DP_MASK_COUNT || r->core->counter_mode)) {
        insn.mask_kind = DP_MASK_BITS;
        r->core->counter_mode = 0;
    }
    if (insn.mask_kind == DP_MASK_COUNT)
        insn.mask[0] = (insn.mask[0] * bytes + 255) / 256 * 256 / bytes;
    insn.operand[0] = to_register ? (dp_operand){0} : (dp_operand){.addr = r->ub + 32 * rig_below(r, 8), .dtype = DP_U8,
                                                                   .space = DP_SPACE_UB};
    insn.operand[1] = draw_source(r, dtype, A_AT);
    insn.operand[2] = draw_source(r, dtype, B_AT);
    number_draw(r, dtype, (uint8_t *)&insn.scalar_bits, 0);
    if (rig_below(r, 2))
        number_store(dtype, (uint8_t *)&insn.scalar_bits, 0, is_float_type(dtype) ? number_float(1) : number_int(1), 0);
    insn.repeat = to_register ? 77 : insn.repeat; /* the register form runs once whatever repeat says */
    rig_reset(r);
    dp_insn shape = insn;
    if (to_register)
        shape.repeat = 1;
    else if (insn.mask_kind != DP_MASK_COUNT && !r->core->counter_mode)
        shape.mask_kind = DP_MASK_NONE; /* forms with a destination ignore the mask */
    lane_plan plan = plan_of(r, &shape, bytes);
    uint64_t wanted[2] = {r->core->cmp_mask[0], r->core->cmp_mask[1]};
    size_t dst = to_register ? 0 : (size_t)((uint8_t *)insn.operand[0].addr - r->ub);
    for (uint32_t rep = 0; rep < plan.repeats; rep++) {
        for (uint32_t lane = 0; lane < plan.per_repeat; lane++) {
            if (!plan_selects(&plan, rep, lane))
                continue;
            number a = read_lane(r, &plan, &insn.operand[1], rep, lane);
            number b = scalar ? number_load(dtype, (uint8_t *)&insn.scalar_bits, 0)
                              : read_lane(r, &plan, &insn.operand[2], rep, lane);
            bool bit = relation(mode, a, b);
            size_t at = (size_t)rep * plan.per_repeat + lane;
            if (to_register) {
                wanted[lane / 64] = (wanted[lane / 64] & ~(1ull << lane % 64)) | (uint64_t)bit << lane % 64;
                continue;
            }
            uint8_t *byte = r->expect + dst + at / 8;
            *byte = (uint8_t)((*byte & ~(1u << at % 8)) | (unsigned)bit << at % 8);
            r->touched[dst + at / 8] |= DP_WRITE;
        }
    }
    rig_run(r, &insn);
    rig_compare(r, &insn, "compare");
    assert_true(r->core->cmp_mask[0] == wanted[0] && r->core->cmp_mask[1] == wanted[1]);
}

static void every_compare(rig *r) {
    static const uint8_t types[] = {DP_F16, DP_F32, DP_I32};
    for (unsigned t = 0; t < 3; t++) {
        fill(r, types[t]);
        for (unsigned mode = 0; mode < DP_CMP_COUNT; mode++) {
            for (unsigned n = 0; n < CASES && (types[t] != DP_I32 || mode == EQ); n++)
                compare_case(r, types[t], mode, n % 3 == 0, n % 3 == 1);
        }
    }
}

static void test_compare(void **state) { rig_each_rung(*state, every_compare); }

/* ---- Select ---- */

enum { BY_TENSOR, BY_REGISTER, BY_ADDRESS, SCALAR, SCALAR_IN_REGISTER, FORMS };

static void select_case(rig *r, unsigned dtype, unsigned form, unsigned mode) {
    unsigned bytes = bytes_of(dtype);
    bool scalar = form == SCALAR || form == SCALAR_IN_REGISTER, no_mask = form == BY_REGISTER || form == BY_ADDRESS;
    dp_insn insn = {.op = DP_OP_SELECT, .n_operands = scalar ? 3 : 4, .loc = DP_HERE};
    insn.u.vec.sel_mode = (uint8_t)mode;
    insn.u.vec.flag0 = form == SCALAR_IN_REGISTER;
    draw_mask(r, &insn, 256 / bytes);
    insn.operand[0] = (dp_operand){.addr = r->ub + 32 * rig_below(r, 8), .dtype = (uint8_t)dtype, .space = DP_SPACE_UB,
                                   .block_stride = (uint16_t)(rig_below(r, 3) ? 1 : rig_below(r, 3)),
                                   .repeat_stride = (uint16_t)(rig_below(r, 2) ? 8 : rig_below(r, 10))};
    insn.operand[1] = (dp_operand){.addr = r->ub + BITS_AT, .dtype = DP_U8, .space = DP_SPACE_UB};
    insn.operand[2] = draw_source(r, dtype, A_AT);
    insn.operand[3] = draw_source(r, dtype, B_AT);
    if (insn.repeat > 30)
        insn.repeat = 30; /* destination and mask stay apart */
    number_draw(r, dtype, (uint8_t *)&insn.scalar_bits, 0);
    const uint64_t *bits = (const uint64_t *)(void *)(r->image + BITS_AT);
    uint64_t in_register[2] = {r->core->cmp_mask[0], r->core->cmp_mask[1]};
    if (form == BY_ADDRESS)
        r->core->cmp_mask[0] = rig_below(r, 2) ? BITS_AT : (uint64_t)(uintptr_t)(r->ub + BITS_AT);
    if (form == BY_REGISTER)
        bits = in_register;
    number right_scalar = number_load(dtype, (const uint8_t *)(form == SCALAR ? &insn.scalar_bits : &r->core->cmp_mask[0]), 0);
    if (no_mask)
        insn.operand[1] = (dp_operand){0};
    lane_plan plan = plan_of(r, &insn, bytes);
    rig_reset(r);
    for (uint32_t rep = 0; rep < plan.repeats; rep++) {
        for (uint32_t lane = 0; lane < plan.per_repeat; lane++) {
            if (!plan_selects(&plan, rep, lane))
                continue;
            size_t at_bit = mode == 0 ? lane : (size_t)rep * plan.per_repeat + lane;
            number left = read_lane(r, &plan, &insn.operand[2], rep, lane);
            number right = scalar ? right_scalar : read_lane(r, &plan, &insn.operand[3], rep, lane);
            bool bit = bits[at_bit / 64] >> at_bit % 64 & 1;
            size_t at = lane_address(r, &insn.operand[0], plan.flat, plan.per_repeat, rep, lane).offset;
            touch(r, at, bytes, DP_WRITE);
            /* moved as bits, so that a NaN keeps its payload */
            const dp_operand *from = bit ? &insn.operand[2] : &insn.operand[3];
            size_t source = bit || !scalar ? lane_address(r, from, plan.flat, plan.per_repeat, rep, lane).offset : 0;
            memcpy(r->expect + at,
                   bit || !scalar ? r->expect + source
                                  : (const uint8_t *)(form == SCALAR ? &insn.scalar_bits : &r->core->cmp_mask[0]),
                   bytes);
            (void)left, (void)right;
        }
    }
    size_t highest = 0;
    for (uint32_t rep = 0; rep < plan.repeats; rep++) {
        for (uint32_t lane = 0; lane < plan.per_repeat; lane++) {
            if (plan_selects(&plan, rep, lane) && (mode ? (size_t)rep * plan.per_repeat : 0) + lane + 1 > highest)
                highest = (mode ? (size_t)rep * plan.per_repeat : 0) + lane + 1;
        }
    }
    if (form != BY_REGISTER)
        touch(r, BITS_AT, (unsigned)(highest + 7) / 8, DP_READ);
    rig_run(r, &insn);
    rig_compare(r, &insn, "select");
}

static void every_select(rig *r) {
    static const uint8_t types[] = {DP_F16, DP_F32};
    for (unsigned t = 0; t < 2; t++) {
        fill(r, types[t]);
        for (unsigned n = 0; n < 1024; n++)
            r->image[BITS_AT + n] = (uint8_t)rig_random(r);
        for (unsigned n = 0; n < CASES; n++) {
            select_case(r, types[t], BY_TENSOR, 0);
            select_case(r, types[t], BY_TENSOR, 2);
            select_case(r, types[t], BY_REGISTER, 0);
            select_case(r, types[t], BY_ADDRESS, 2);
            select_case(r, types[t], SCALAR, 1);
            select_case(r, types[t], SCALAR_IN_REGISTER, 1);
        }
    }
}

static void test_select(void **state) { rig_each_rung(*state, every_select); }

/* ---- CastDeq ---- */

static uint8_t deq(int16_t x, uint64_t word, bool is_signed) {
    float scale;
    uint32_t low = (uint32_t)word;
    memcpy(&scale, &low, sizeof scale);
    int offset = (int)(word >> 37 & 511);
    offset = offset > 255 ? offset - 512 : offset;
    double y = nearbyint((double)((float)x * scale)) + offset;
    double least = is_signed ? -128 : 0, most = is_signed ? 127 : 255;
    return (uint8_t)(int)(y < least ? least : y > most ? most : y);
}

static void cast_deq_case(rig *r) {
    bool is_signed = rig_below(r, 2), table = rig_below(r, 2), upper = rig_below(r, 2);
    dp_insn insn = {.op = DP_OP_CAST_DEQ, .n_operands = 2, .loc = DP_HERE};
    insn.u.vec.flag0 = table;
    insn.u.vec.flag1 = upper;
    draw_mask(r, &insn, 128);
    uint64_t words[16];
    for (unsigned i = 0; i < 16; i++) {
        float scale = 0.01f * (float)(1 + rig_below(r, 200));
        uint32_t bits;
        memcpy(&bits, &scale, sizeof bits);
        words[i] = bits | (uint64_t)rig_below(r, 512) << 37 | (uint64_t)is_signed << 46;
        r->core->deq_table[i] = words[i];
    }
    r->core->deq_scale = words[3];
    insn.operand[0] = (dp_operand){.addr = r->ub, .dtype = is_signed ? DP_I8 : DP_U8, .space = DP_SPACE_UB, .block_stride = 1,
                                   .repeat_stride = 8};
    insn.operand[1] = draw_source(r, DP_I16, A_AT);
    lane_plan plan = plan_of(r, &insn, 2);
    rig_reset(r);
    for (uint32_t rep = 0; rep < plan.repeats; rep++) {
        for (uint32_t lane = 0; lane < 128; lane++) {
            if (!plan_selects(&plan, rep, lane))
                continue;
            number x = read_lane(r, &plan, &insn.operand[1], rep, lane);
            size_t at = rep * 256u + lane / 16 * 32 + (upper ? 16 : 0) + lane % 16;
            r->expect[at] = deq((int16_t)x.i, table ? words[lane % 16] : words[3], is_signed);
            touch(r, at, 1, DP_WRITE);
        }
    }
    rig_run(r, &insn);
    rig_compare(r, &insn, "cast deq");
}

static void test_cast_deq(void **state) {
    fill(*state, DP_I16);
    for (unsigned n = 0; n < 200; n++)
        cast_deq_case(*state);
}

/* ---- refusals ---- */

static void test_refusals(void **state) {
    rig *r = *state;
    r->core->counter_mode = 0;
    dp_insn compare = {.op = DP_OP_COMPARE, .n_operands = 3, .mask_kind = DP_MASK_COUNT, .mask = {100, 0}, .loc = DP_HERE};
    for (unsigned k = 0; k < 3; k++)
        compare.operand[k] = (dp_operand){.addr = r->ub + k * A_AT, .dtype = k ? DP_F32 : DP_U8, .space = DP_SPACE_UB,
                                          .block_stride = 1, .repeat_stride = 8};
    rig_refuse(r, &compare, "the count is 100, but count x 4 bytes must be a multiple of 256 bytes; use a multiple of 64");
    compare.mask[0] = 128;
    compare.u.vec.cmp_mode = 6;
    rig_refuse(r, &compare, "comparison mode 6 does not exist");
    compare.u.vec.cmp_mode = LT;
    compare.operand[0].size_bytes = 15;
    rig_refuse(r, &compare, "the destination spans 16 bytes but its tensor has only 15 bytes");
    compare.operand[0].size_bytes = 0;
    compare.operand[1].dtype = compare.operand[2].dtype = DP_I32;
    rig_refuse(r, &compare, "int32 can only be compared with CMPMODE::EQ");
    compare.operand[1].dtype = compare.operand[2].dtype = DP_I16;
    rig_refuse(r, &compare, "element type int16 is not offered; use int32, half or float");
    dp_insn select = {.op = DP_OP_SELECT, .n_operands = 4, .mask_kind = DP_MASK_COUNT, .mask = {128, 0}, .loc = DP_HERE};
    for (unsigned k = 0; k < 4; k++)
        select.operand[k] = (dp_operand){.addr = r->ub + k * A_AT, .dtype = k == 1 ? DP_U8 : DP_F32, .space = DP_SPACE_UB,
                                         .block_stride = 1, .repeat_stride = 8};
    select.u.vec.sel_mode = 1;
    rig_refuse(r, &select, "VSEL_TENSOR_SCALAR_MODE takes a scalar right side, not a tensor");
    select.u.vec.sel_mode = 2;
    select.operand[1].addr = r->ub + 64;
    rig_refuse(r, &select, "the destination overlaps the selection mask");
    select.operand[1].addr = r->ub + A_AT;
    select.operand[1].size_bytes = 8;
    rig_refuse(r, &select, "the selection mask spans 16 bytes but its tensor has only 8 bytes");
    select.operand[3].dtype = DP_F16;
    rig_refuse(r, &select, "destination and sources must have one type; they are float, float and half");
}

static int set_up(void **state) {
    *state = rig_open();
    return 0;
}
static int tear_down(void **state) {
    rig_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compare), cmocka_unit_test(test_select),
                                       cmocka_unit_test(test_cast_deq), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("insn_select", tests, set_up, tear_down);
}
