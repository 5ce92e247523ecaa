/*
 * Every lane-by-lane instruction x types x modes x rungs x mask forms x strides against a plain lane loop; the whole UB is
 * compared, so untouched lanes and padding count, and so is the footprint the instruction announces.
 */
#include <math.h>

#include "insn_rig.h"

enum { CASES = ROUNDS(14), REGION_BYTES = 64 * 1024, LAST_PAIR = 0xff };

typedef struct type_pair {
    uint8_t dst, src;
    uint8_t modes; /* Cast: legal rounding modes, bit = RoundMode; others 0 */
} type_pair;

#define SAME(t) {t, t, 0}
#define END {LAST_PAIR, LAST_PAIR, 0}
#define FLOATS SAME(DP_F16), SAME(DP_F32)
#define ARITH FLOATS, SAME(DP_I16), SAME(DP_I32)
#define BITS16 SAME(DP_I16), SAME(DP_U16)
#define SHIFTS BITS16, SAME(DP_I32), SAME(DP_U32)
#define FIVE 0x3e
#define FIVE_NONE 0x3f

typedef struct row {
    uint16_t op;
    uint8_t sources; /* tensors read */
    bool scalar, reads_dst;
    uint8_t ulps; /* 0: exact */
    type_pair pairs[28];
} row;

static const row rows[] = {
    {DP_OP_ADD, 2, false, false, 0, {ARITH, END}},
    {DP_OP_SUB, 2, false, false, 0, {ARITH, END}},
    {DP_OP_MUL, 2, false, false, 0, {ARITH, END}},
    {DP_OP_DIV, 2, false, false, 0, {FLOATS, END}},
    {DP_OP_MAX, 2, false, false, 0, {ARITH, END}},
    {DP_OP_MIN, 2, false, false, 0, {ARITH, END}},
    {DP_OP_AND, 2, false, false, 0, {BITS16, END}},
    {DP_OP_OR, 2, false, false, 0, {BITS16, END}},
    {DP_OP_ADD_RELU, 2, false, false, 0, {FLOATS, SAME(DP_I16), END}},
    {DP_OP_SUB_RELU, 2, false, false, 0, {FLOATS, SAME(DP_I16), END}},
    {DP_OP_ABS, 1, false, false, 0, {FLOATS, END}},
    {DP_OP_EXP, 1, false, false, 2, {FLOATS, END}},
    {DP_OP_LN, 1, false, false, 2, {FLOATS, END}},
    {DP_OP_SQRT, 1, false, false, 0, {FLOATS, END}},
    {DP_OP_RSQRT, 1, false, false, 0, {FLOATS, END}},
    {DP_OP_RECIPROCAL, 1, false, false, 0, {FLOATS, END}},
    {DP_OP_RELU, 1, false, false, 0, {FLOATS, SAME(DP_I32), END}},
    {DP_OP_NOT, 1, false, false, 0, {BITS16, END}},
    {DP_OP_ADDS, 1, true, false, 0, {ARITH, END}},
    {DP_OP_MULS, 1, true, false, 0, {ARITH, END}},
    {DP_OP_MAXS, 1, true, false, 0, {ARITH, END}},
    {DP_OP_MINS, 1, true, false, 0, {ARITH, END}},
    {DP_OP_LEAKY_RELU, 1, true, false, 0, {FLOATS, END}},
    {DP_OP_SHIFT_LEFT, 1, true, false, 0, {SHIFTS, END}},
    {DP_OP_SHIFT_RIGHT, 1, true, false, 0, {SHIFTS, END}},
    {DP_OP_MUL_ADD_DST, 2, false, true, 0, {FLOATS, {DP_F32, DP_F16, 0}, END}},
    {DP_OP_FUSED_MUL_ADD, 2, false, true, 0, {FLOATS, END}},
    {DP_OP_FUSED_MUL_ADD_RELU, 2, false, true, 0, {FLOATS, END}},
    {DP_OP_AXPY, 1, true, true, 0, {FLOATS, {DP_F32, DP_F16, 0}, END}},
    {DP_OP_DUPLICATE, 0, true, false, 0, {FLOATS, SAME(DP_BF16), SHIFTS, END}},
    {DP_OP_VCOPY, 1, false, false, 0, {FLOATS, SAME(DP_BF16), SHIFTS, END}},
    {DP_OP_ADD_RELU_CAST, 2, false, false, 0, {{DP_I8, DP_F16, 0}, {DP_F16, DP_F32, 0}, {DP_I8, DP_I16, 0}, END}},
    {DP_OP_SUB_RELU_CAST, 2, false, false, 0, {{DP_I8, DP_F16, 0}, {DP_F16, DP_F32, 0}, {DP_I8, DP_I16, 0}, END}},
    {DP_OP_MUL_CAST, 2, false, false, 0, {{DP_I8, DP_F16, 0}, {DP_U8, DP_F16, 0}, END}},
    {DP_OP_ADD_DEQ_RELU, 2, false, false, 0, {{DP_F16, DP_I32, 0}, END}},
    {DP_OP_CAST, 1, false, false, 0,
     {{DP_F32, DP_F16, 1}, {DP_I32, DP_F16, FIVE}, {DP_I16, DP_F16, FIVE}, {DP_I8, DP_F16, FIVE_NONE},
      {DP_U8, DP_F16, FIVE_NONE}, {DP_I4, DP_F16, FIVE_NONE}, {DP_F16, DP_F32, FIVE_NONE | 0x40}, {DP_BF16, DP_F32, FIVE},
      {DP_I16, DP_F32, FIVE}, {DP_I32, DP_F32, FIVE}, {DP_I64, DP_F32, FIVE}, {DP_F32, DP_F32, FIVE}, {DP_F32, DP_BF16, 1},
      {DP_I32, DP_BF16, FIVE}, {DP_F16, DP_I4, 1}, {DP_F16, DP_I8, 1}, {DP_F16, DP_U8, 1}, {DP_F16, DP_I16, FIVE_NONE},
      {DP_F32, DP_I16, 1}, {DP_F32, DP_I32, FIVE_NONE}, {DP_F16, DP_I32, 1}, {DP_I16, DP_I32, 1}, {DP_I64, DP_I32, 1},
      {DP_I32, DP_I64, 1}, {DP_F32, DP_I64, FIVE}, END}},
};

/* ---- one lane ---- */

static long double greater(long double a, long double b) { return a > b || isnan(a) ? a : b; }
static long double lesser(long double a, long double b) { return a < b || isnan(a) ? a : b; }

/* float arithmetic of the widened operands, one rounding to float where the library keeps a float in between */
static long double float_lane(unsigned op, long double d, long double a, long double b) {
    switch (op) {
    case DP_OP_ADD: case DP_OP_ADDS: return a + b;
    case DP_OP_SUB: return a - b;
    case DP_OP_MUL: case DP_OP_MULS: return a * b;
    case DP_OP_DIV: return (float)a / (float)b;
    case DP_OP_MAX: case DP_OP_MAXS: return greater(a, b);
    case DP_OP_MIN: case DP_OP_MINS: return lesser(a, b);
    case DP_OP_ADD_RELU: case DP_OP_ADD_RELU_CAST: return greater(a + b, 0);
    case DP_OP_SUB_RELU: case DP_OP_SUB_RELU_CAST: return greater(a - b, 0);
    case DP_OP_ABS: return fabsl(a);
    case DP_OP_EXP: return expl(a);
    case DP_OP_LN: return logl(a);
    case DP_OP_SQRT: return sqrtf((float)a);
    case DP_OP_RSQRT: return 1.0f / sqrtf((float)a);
    case DP_OP_RECIPROCAL: return 1.0f / (float)a;
    case DP_OP_RELU: return greater(a, 0);
    case DP_OP_LEAKY_RELU: return a >= 0 ? a : a * b;
    case DP_OP_MUL_ADD_DST: case DP_OP_AXPY: return fmaf((float)a, (float)b, (float)d);
    case DP_OP_FUSED_MUL_ADD: return fmaf((float)a, (float)d, (float)b);
    case DP_OP_FUSED_MUL_ADD_RELU: return greater(fmaf((float)a, (float)d, (float)b), 0);
    case DP_OP_MUL_CAST: return a * b;
    case DP_OP_DUPLICATE: return b;
    default: return a; /* VCOPY */
    }
}

static int64_t wrap(unsigned dtype, int64_t i) {
    uint8_t bytes[8];
    number_store(dtype, bytes, 0, number_int(i), 0);
    return number_load(dtype, bytes, 0).i;
}

static int64_t shift_right(int64_t a, uint64_t count, unsigned width, bool is_signed, bool rounds) {
    if (!is_signed)
        return count < width ? a >> count : 0;
    if (count > 62)
        return a < 0 && !rounds ? -1 : 0;
    int64_t half = rounds && count ? (a >> (count - 1)) & 1 : 0;
    return (a >> count) + half;
}

static int64_t int_lane(const dp_insn *insn, unsigned dtype, int64_t a, int64_t b) {
    unsigned width = dp_dtype_bits(dtype);
    int64_t sum = wrap(dtype, (int64_t)((uint64_t)a + (uint64_t)b)), difference = wrap(dtype, (int64_t)((uint64_t)a - (uint64_t)b));
    bool is_signed = dtype == DP_I16 || dtype == DP_I32;
    switch (insn->op) {
    case DP_OP_ADD: case DP_OP_ADDS: return sum;
    case DP_OP_SUB: return difference;
    case DP_OP_MUL: case DP_OP_MULS: return (int64_t)((uint64_t)a * (uint64_t)b);
    case DP_OP_MAX: case DP_OP_MAXS: return a > b ? a : b;
    case DP_OP_MIN: case DP_OP_MINS: return a < b ? a : b;
    case DP_OP_AND: return a & b;
    case DP_OP_OR: return a | b;
    case DP_OP_ADD_RELU: case DP_OP_ADD_RELU_CAST: return sum > 0 ? sum : 0;
    case DP_OP_SUB_RELU: case DP_OP_SUB_RELU_CAST: return difference > 0 ? difference : 0;
    case DP_OP_RELU: return a > 0 ? a : 0;
    case DP_OP_NOT: return ~a;
    case DP_OP_SHIFT_LEFT: return (uint64_t)b < width ? (int64_t)((uint64_t)a << b) : 0;
    case DP_OP_SHIFT_RIGHT: return shift_right(a, (uint64_t)b, width, is_signed, insn->u.vec.flag0);
    case DP_OP_DUPLICATE: return b;
    default: return a;
    }
}

static float deq_scale(const rig *r) {
    float f;
    memcpy(&f, &r->core->deq_scale, sizeof f);
    return f;
}

/* Result of one lane, stored at out[nibble] in dst's type. */
static void lane_result(const rig *r, const dp_insn *insn, unsigned dst, unsigned src, uint8_t *out, unsigned nibble, number d,
                        number a, number b) {
    uint8_t middle[8];
    unsigned mode = insn->u.vec.round_mode;
    if (insn->op == DP_OP_CAST) {
        if (src == DP_I32 && dst == DP_F16)
            a = number_float((float)a.i * deq_scale(r));
        if (src == dst) /* float to float: to an integral value */
            a = number_float(round_to_integral(a.f, mode));
        number_cast(dst, out, nibble, a, mode);
        return;
    }
    if (insn->op == DP_OP_ADD_DEQ_RELU) {
        float sum = (float)(int32_t)((uint32_t)a.i + (uint32_t)b.i);
        number_store(DP_F16, middle, 0, number_float(sum * 0x1p-17f * deq_scale(r) * 0x1p17f), 0);
        long double half = number_load(DP_F16, middle, 0).f;
        number_store(dst, out, 0, number_float(greater(half, 0)), 0);
        return;
    }
    if (is_float_type(src)) {
        number value = number_float(float_lane(insn->op, d.f, a.f, b.f));
        number_store(dst == DP_F32 ? DP_F32 : src, middle, 0, value, 0); /* rounded in the arithmetic type first */
        value = number_load(dst == DP_F32 ? DP_F32 : src, middle, 0);
        number_cast(dst, out, nibble, value, 0);
        return;
    }
    number_cast(dst, out, nibble, number_int(wrap(src, int_lane(insn, src, a.i, b.i))), 0);
}

/* ---- a case ---- */

static void touch(rig *r, const dp_operand *operand, lane_at at, uint8_t mode) {
    unsigned bytes = dp_dtype_bits(operand->dtype) < 8 ? 1 : dp_dtype_bits(operand->dtype) / 8;
    for (unsigned i = 0; i < bytes; i++)
        r->touched[at.offset + i] |= mode;
}

static number read_lane(rig *r, const lane_plan *plan, const dp_operand *operand, uint32_t repeat, uint32_t lane) {
    lane_at at = lane_address(r, operand, plan->flat, plan->per_repeat, repeat, lane);
    touch(r, operand, at, DP_READ);
    return number_load(operand->dtype, r->expect + at.offset, at.nibble);
}

static void reference(rig *r, const row *it, const dp_insn *insn, const lane_plan *plan) {
    unsigned dst = insn->operand[0].dtype, src = it->sources ? insn->operand[1].dtype : dst;
    number scalar = number_load(src, (const uint8_t *)&insn->scalar_bits, 0);
    for (uint32_t rep = 0; rep < plan->repeats; rep++) {
        for (uint32_t lane = 0; lane < plan->per_repeat; lane++) {
            if (!plan_selects(plan, rep, lane))
                continue;
            number a = number_float(0), b = scalar, d = a;
            if (it->sources > 0)
                a = read_lane(r, plan, &insn->operand[1], rep, lane);
            if (it->sources > 1)
                b = read_lane(r, plan, &insn->operand[2], rep, lane);
            if (it->reads_dst)
                d = read_lane(r, plan, &insn->operand[0], rep, lane);
            lane_at at = lane_address(r, &insn->operand[0], plan->flat, plan->per_repeat, rep, lane);
            touch(r, &insn->operand[0], at, DP_WRITE);
            lane_result(r, insn, dst, src, r->expect + at.offset, at.nibble, d, a, b);
        }
    }
}

/* A NaN may have any payload, and Exp, Ln a few units in the last place: such lanes are taken over as they are. */
static void forgive(rig *r, const row *it, const dp_insn *insn, const lane_plan *plan) {
    unsigned dst = insn->operand[0].dtype;
    if (!is_float_type(dst))
        return;
    unsigned bytes = dp_dtype_bits(dst) / 8;
    for (uint32_t rep = 0; rep < plan->repeats; rep++) {
        for (uint32_t lane = 0; lane < plan->per_repeat; lane++) {
            if (!plan_selects(plan, rep, lane))
                continue;
            size_t at = lane_address(r, &insn->operand[0], plan->flat, plan->per_repeat, rep, lane).offset;
            if (memcmp(r->ub + at, r->expect + at, bytes) == 0)
                continue;
            long double is = number_load(dst, r->ub + at, 0).f, wanted = number_load(dst, r->expect + at, 0).f;
            uint32_t is_bits = 0, wanted_bits = 0;
            memcpy(&is_bits, r->ub + at, bytes);
            memcpy(&wanted_bits, r->expect + at, bytes);
            uint32_t apart = is_bits > wanted_bits ? is_bits - wanted_bits : wanted_bits - is_bits;
            if ((isnan(is) && isnan(wanted)) || (apart <= it->ulps && signbit(is) == signbit(wanted)))
                memcpy(r->expect + at, r->ub + at, bytes);
        }
    }
}

static void draw_mask(rig *r, dp_insn *insn, uint32_t per_repeat) {
    static const uint8_t kinds[] = {DP_MASK_COUNT, DP_MASK_LEADING, DP_MASK_BITS, DP_MASK_REGISTER};
    dp_core *core = r->core;
    insn->mask_kind = kinds[rig_below(r, 4)];
    core->counter_mode = rig_below(r, 4) == 0;
    core->mask[0] = core->counter_mode ? rig_below(r, 700) : rig_below(r, 3) ? rig_random(r) : ~0ull;
    core->mask[1] = rig_below(r, 3) ? rig_random(r) : ~0ull;
    insn->repeat = rig_below(r, 8) == 0 ? rig_below(r, 256) : rig_below(r, 12);
    insn->mask[0] = insn->mask[1] = 0;
    if (insn->mask_kind == DP_MASK_COUNT || core->counter_mode) {
        insn->mask[0] = rig_below(r, 6) == 0 ? rig_below(r, 3000) : rig_below(r, 400);
        return;
    }
    if (insn->mask_kind == DP_MASK_LEADING) {
        insn->mask[0] = rig_below(r, 3) ? rig_below(r, per_repeat + 1) : per_repeat;
        return;
    }
    for (unsigned w = 0; w < 2; w++) {
        uint64_t word = rig_random(r);
        switch (rig_below(r, 5)) {
        case 0: insn->mask[w] = ~0ull; break;
        case 1: insn->mask[w] = word & rig_random(r) & rig_random(r); break;
        case 2: insn->mask[w] = (~0ull >> (word & 63)) & (~0ull << (word >> 8 & 63)); break;
        case 3: insn->mask[w] = 0x5555555555555555ull << (word & 1); break;
        default: insn->mask[w] = word; break;
        }
    }
}

static size_t reach(const rig *r, const dp_operand *operand, const lane_plan *plan) {
    size_t end = 0;
    for (uint32_t rep = 0; rep < plan->repeats; rep++) {
        for (uint32_t lane = 0; lane < plan->per_repeat; lane++) {
            size_t at = lane_address(r, operand, plan->flat, plan->per_repeat, rep, lane).offset;
            if (plan_selects(plan, rep, lane) && at + 8 > end)
                end = at + 8;
        }
    }
    return end;
}

static void draw_operands(rig *r, const row *it, const type_pair *pair, dp_insn *insn, unsigned widest) {
    static const uint8_t blocks[] = {0, 1, 1, 1, 1, 2, 3}, repeats[] = {0, 1, 3, 9, 16};
    insn->n_operands = 1 + it->sources;
    for (unsigned k = 0; k < insn->n_operands; k++) {
        dp_operand *operand = &insn->operand[k];
        unsigned bits = dp_dtype_bits(k ? pair->src : pair->dst), natural = bits / widest;
        *operand = (dp_operand){.dtype = k ? pair->src : pair->dst, .space = DP_SPACE_UB, .buffer_id = k};
        operand->addr = r->ub + k * REGION_BYTES + 32 * rig_below(r, 8);
        operand->block_stride = blocks[rig_below(r, sizeof blocks)];
        operand->repeat_stride = rig_below(r, 3) ? (uint16_t)natural : repeats[rig_below(r, sizeof repeats)];
        if (k && pair->src == pair->dst && !it->ulps && rig_below(r, 5) == 0) /* inexact results must not pile up */
            *operand = insn->operand[0]; /* in place */
        bool narrows = dp_dtype_bits(pair->dst) < dp_dtype_bits(pair->src) && insn->mask_kind == DP_MASK_COUNT;
        if (k == 1 && narrows && rig_below(r, 3) == 0)
            operand->addr = insn->operand[0].addr; /* narrowing in place: results never reach a source still to be read */
    }
}

static void draw_scalar(rig *r, const row *it, const type_pair *pair, dp_insn *insn) {
    insn->scalar_bits = 0;
    if (!it->scalar)
        return;
    bool shifts = it->op == DP_OP_SHIFT_LEFT || it->op == DP_OP_SHIFT_RIGHT;
    if (shifts)
        insn->scalar_bits = rig_below(r, dp_dtype_bits(pair->src) + 3);
    else
        number_draw(r, pair->src, (uint8_t *)&insn->scalar_bits, 0);
    insn->u.vec.flag0 = it->op == DP_OP_SHIFT_RIGHT && rig_below(r, 2);
}

static void one_case(rig *r, const row *it, const type_pair *pair, unsigned mode) {
    unsigned dst_bits = dp_dtype_bits(pair->dst), src_bits = it->sources ? dp_dtype_bits(pair->src) : dst_bits;
    unsigned widest = (dst_bits > src_bits ? dst_bits : src_bits) / 8;
    dp_insn insn = {.op = it->op, .loc = DP_HERE};
    insn.u.vec.round_mode = (uint8_t)mode;
    draw_mask(r, &insn, 256 / widest);
    draw_operands(r, it, pair, &insn, widest);
    draw_scalar(r, it, pair, &insn);
    float scale = rig_below(r, 2) ? 1.0f : 0.0078125f * (float)rig_below(r, 100);
    r->core->deq_scale = 0;
    memcpy(&r->core->deq_scale, &scale, sizeof scale);
    lane_plan plan = plan_of(r, &insn, widest);
    for (unsigned k = 0; k < insn.n_operands; k++) {
        size_t region = ((size_t)((uint8_t *)insn.operand[k].addr - r->ub) / REGION_BYTES + 1) * REGION_BYTES;
        while (reach(r, &insn.operand[k], &plan) > region) { /* out of its region: less work */
            if (plan.flat || r->core->counter_mode) {
                insn.mask[0] /= 2;
                r->core->mask[0] /= insn.mask_kind == DP_MASK_REGISTER ? 2 : 1;
            } else {
                insn.repeat /= 2;
            }
            plan = plan_of(r, &insn, widest);
        }
    }
    rig_reset(r);
    reference(r, it, &insn, &plan);
    rig_run(r, &insn);
    forgive(r, it, &insn, &plan);
    rig_compare(r, &insn, "lanes");
    if (insn.mask_kind == DP_MASK_COUNT) {
        assert_int_equal(r->core->counter_mode, 0);
        assert_true(r->core->mask[0] == ~0ull && r->core->mask[1] == ~0ull);
    }
}

static void fill_image(rig *r, const type_pair *pair) {
    for (unsigned k = 0; k < 3; k++) {
        unsigned dtype = k ? pair->src : pair->dst;
        for (size_t i = 0; i < REGION_BYTES * 8 / dp_dtype_bits(dtype); i++)
            number_draw(r, dtype, r->image + k * REGION_BYTES, i);
    }
}

static void every_row(rig *r) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (const type_pair *pair = rows[i].pairs; pair->dst != LAST_PAIR; pair++) {
            fill_image(r, pair);
            for (unsigned mode = 0; mode < DP_ROUND_COUNT; mode++) {
                if (pair->modes ? !(pair->modes >> mode & 1) : mode > 0)
                    continue;
                for (unsigned n = 0; n < CASES; n++)
                    one_case(r, &rows[i], pair, mode);
            }
        }
    }
    assert_true(r->lane_visits > 100);
}

static void test_lanes(void **state) { rig_each_rung(*state, every_row); }

/* The rows above are what insn_types.def offers, no more and no less. */
static void test_rows_cover_types(void **state) {
    (void)state;
    for (unsigned op = 0; op < DP_OP_COUNT; op++) {
        dp_family family = dp_insn_family(op);
        bool simple = family == DP_FAMILY_BINARY || family == DP_FAMILY_UNARY || family == DP_FAMILY_SCALAR ||
                      family == DP_FAMILY_TERNARY || family == DP_FAMILY_AXPY || family == DP_FAMILY_FILL ||
                      family == DP_FAMILY_VCOPY;
        uint32_t tested = 0;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            for (const type_pair *pair = rows[i].pairs; rows[i].op == op && pair->dst != LAST_PAIR; pair++)
                tested |= 1u << pair->dst;
        }
        if (simple)
            assert_int_equal(tested, dp_insn_types(op));
        else if (family == DP_FAMILY_CAST && op == DP_OP_CAST)
            assert_true(tested != 0);
    }
}

/* And, Or on 32-bit integers: the count form only. */
static void test_wide_bits(void **state) {
    rig *r = *state;
    type_pair pair = {DP_U32, DP_U32, 0};
    fill_image(r, &pair);
    rig_reset(r);
    dp_insn insn = {.op = DP_OP_AND, .n_operands = 3, .mask_kind = DP_MASK_COUNT, .mask = {100, 0}, .loc = DP_HERE};
    for (unsigned k = 0; k < 3; k++)
        insn.operand[k] = (dp_operand){.addr = r->ub + k * REGION_BYTES, .dtype = DP_U32, .space = DP_SPACE_UB,
                                       .block_stride = 1, .repeat_stride = 8};
    uint32_t *out = (uint32_t *)(void *)r->expect;
    for (unsigned i = 0; i < 100; i++)
        out[i] = out[REGION_BYTES / 4 + i] & out[2 * REGION_BYTES / 4 + i];
    memset(r->touched, DP_WRITE, 400);
    memset(r->touched + REGION_BYTES, DP_READ, 400);
    memset(r->touched + 2 * REGION_BYTES, DP_READ, 400);
    rig_run(r, &insn);
    rig_compare(r, &insn, "wide and");
    insn.mask_kind = DP_MASK_LEADING;
    insn.repeat = 1;
    rig_refuse(r, &insn, "And: element type uint32 is not offered; use int16 or uint16");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_cover_types), cmocka_unit_test(test_wide_bits),
                                       cmocka_unit_test(test_lanes)};
    return cmocka_run_group_tests_name("insn_vector", tests, set_up, tear_down);
}
