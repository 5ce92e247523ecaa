/*
 * Every reduction x type x rung x mask form x strides against plain loops: per-repeat trees, extremes with their index, groups
 * of 8, pairs, running sums and extremes; the whole UB and the footprint are compared.
 */
#include <math.h>

#include "insn_rig.h"

enum { CASES = ROUNDS(60), SRC_AT = 96 * 1024, WORK_AT = 64 * 1024, LANES = 128 };
enum { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };

static unsigned bytes_of(unsigned dtype) { return dp_dtype_bits(dtype) / 8; }

/* value rounded to the type */
static long double rounded(unsigned dtype, long double f) {
    uint8_t bits[4];
    number_store(dtype, bits, 0, number_float(f), 0);
    return number_load(dtype, bits, 0).f;
}

static long double tree(unsigned dtype, long double *v, uint32_t n) {
    for (; n > 1; n /= 2) {
        for (uint32_t i = 0; i < n / 2; i++)
            v[i] = rounded(dtype, v[2 * i] + v[2 * i + 1]);
    }
    return v[0];
}

typedef struct repeat_lanes {
    long double value[LANES];
    bool on[LANES];
    uint32_t selected;
} repeat_lanes;

static repeat_lanes load_repeat(rig *r, const dp_insn *insn, const lane_plan *plan, uint32_t rep) {
    repeat_lanes lanes = {0};
    unsigned dtype = insn->operand[1].dtype;
    for (uint32_t lane = 0; lane < plan->per_repeat; lane++) {
        lanes.on[lane] = plan_selects(plan, rep, lane);
        if (!lanes.on[lane])
            continue;
        size_t at = lane_address(r, &insn->operand[1], plan->flat, plan->per_repeat, rep, lane).offset;
        for (unsigned b = 0; b < bytes_of(dtype); b++)
            r->touched[at + b] |= DP_READ;
        lanes.value[lane] = number_load(dtype, r->expect + at, 0).f;
        lanes.selected++;
    }
    return lanes;
}

static void put_bytes(rig *r, size_t at, const void *bytes, size_t n) {
    memcpy(r->expect + at, bytes, n);
    for (size_t i = 0; i < n; i++)
        r->touched[at + i] |= DP_WRITE;
}

static void put_value(rig *r, size_t at, unsigned dtype, long double f) {
    uint8_t bits[4];
    number_store(dtype, bits, 0, number_float(f), 0);
    put_bytes(r, at, bits, bytes_of(dtype));
}

/* first of the best; a NaN is beyond everything */
static bool extreme(const repeat_lanes *lanes, uint32_t n, bool max, long double *best, uint32_t *index) {
    bool found = false;
    for (uint32_t i = 0; i < n; i++) {
        long double v = lanes->value[i];
        if (!lanes->on[i] || (found && !(max ? v > *best : v < *best) && !(isnan(v) && !isnan(*best))))
            continue;
        *best = v;
        *index = i;
        found = true;
    }
    return found;
}

static void whole_extreme(rig *r, const dp_insn *insn, const lane_plan *plan, size_t dst, bool max) {
    unsigned dtype = insn->operand[0].dtype, bytes = bytes_of(dtype), order = insn->u.vec.reduce_order;
    size_t stride = insn->operand[0].repeat_stride * (order < ONLY_VALUE ? 2 * bytes : order == ONLY_VALUE ? bytes : 4);
    for (uint32_t rep = 0; rep < plan->repeats; rep++) {
        repeat_lanes lanes = load_repeat(r, insn, plan, rep);
        long double best = 0;
        uint32_t index = 0;
        if (!extreme(&lanes, plan->per_repeat, max, &best, &index))
            continue;
        size_t at = dst + rep * stride;
        if (order == VALUE_INDEX || order == ONLY_VALUE)
            put_value(r, at, dtype, best);
        if (order == VALUE_INDEX)
            put_bytes(r, at + bytes, &index, bytes);
        if (order == INDEX_VALUE) {
            put_bytes(r, at, &index, bytes);
            put_value(r, at + bytes, dtype, best);
        }
        if (order == ONLY_INDEX)
            put_bytes(r, at, &index, 4);
    }
}

/* `width` lanes make one result; unselected lanes hold the neutral value */
static void grouped(rig *r, const dp_insn *insn, const lane_plan *plan, size_t dst, uint32_t width, size_t stride) {
    unsigned dtype = insn->operand[0].dtype;
    bool max = insn->op == DP_OP_BLOCK_REDUCE_MAX, min = insn->op == DP_OP_BLOCK_REDUCE_MIN;
    for (uint32_t rep = 0; rep < plan->repeats; rep++) {
        repeat_lanes lanes = load_repeat(r, insn, plan, rep);
        uint32_t end = rep + 1 == plan->repeats ? plan->last : plan->per_repeat;
        for (uint32_t g = 0; g * width < end; g++) {
            long double v[LANES], best = max ? -INFINITY : INFINITY;
            for (uint32_t i = 0; i < width; i++) {
                uint32_t lane = g * width + i;
                v[i] = lanes.on[lane] ? lanes.value[lane] : 0;
                if (lanes.on[lane] && (isnan(v[i]) || (!isnan(best) && (max ? v[i] > best : v[i] < best))))
                    best = v[i];
            }
            put_value(r, dst + rep * stride + g * bytes_of(dtype), dtype, max || min ? best : tree(dtype, v, width));
        }
    }
}

static void sums(rig *r, const dp_insn *insn, const lane_plan *plan, size_t dst) {
    unsigned dtype = insn->operand[0].dtype;
    long double total = 0;
    for (uint32_t rep = 0; rep < plan->repeats; rep++) {
        repeat_lanes lanes = load_repeat(r, insn, plan, rep);
        long double sum = tree(dtype, lanes.value, plan->per_repeat);
        if (insn->op != DP_OP_REDUCE_SUM)
            put_value(r, dst + (size_t)rep * insn->operand[0].repeat_stride * bytes_of(dtype), dtype, sum);
        total = rep ? rounded(dtype, total + sum) : sum;
    }
    if (insn->op == DP_OP_REDUCE_SUM && plan->repeats)
        put_value(r, dst, dtype, total);
}

static void running_extreme(rig *r, const dp_insn *insn, const lane_plan *plan, size_t dst, bool max) {
    unsigned dtype = insn->operand[0].dtype;
    long double best = 0;
    uint32_t index = 0;
    bool found = false;
    size_t stride = plan->flat ? 8 : insn->operand[1].repeat_stride;
    for (uint32_t rep = 0; rep < plan->repeats; rep++) {
        repeat_lanes lanes = load_repeat(r, insn, plan, rep);
        long double one = 0;
        uint32_t lane = 0;
        if (!extreme(&lanes, plan->per_repeat, max, &one, &lane))
            continue;
        if (!found || (max ? one > best : one < best) || (isnan(one) && !isnan(best))) {
            best = one;
            index = lane + (uint32_t)(rep * stride * (32 / bytes_of(dtype)));
            found = true;
        }
    }
    if (found)
        put_value(r, dst, dtype, best);
    if (found && insn->u.vec.cal_index)
        put_bytes(r, dst + bytes_of(dtype), &index, bytes_of(dtype));
}

/* 2 values per repeat, rounded up to 32 bytes; with an index again for those, until one repeat holds them */
static size_t work_needed(const dp_insn *insn, const lane_plan *plan) {
    size_t total = 0, bytes = bytes_of(insn->operand[0].dtype);
    for (size_t repeats = plan->repeats; repeats;) {
        size_t values = repeats * 2;
        total += (values * bytes + 31) / 32 * 32;
        if (repeats == 1 || !insn->u.vec.cal_index)
            break;
        repeats = (values + plan->per_repeat - 1) / plan->per_repeat;
    }
    return total;
}

static void reference(rig *r, const dp_insn *insn, const lane_plan *plan) {
    size_t dst = (size_t)((uint8_t *)insn->operand[0].addr - r->ub);
    unsigned bytes = bytes_of(insn->operand[0].dtype), rep = insn->operand[0].repeat_stride;
    switch (insn->op) {
    case DP_OP_WHOLE_REDUCE_SUM:
    case DP_OP_REPEAT_REDUCE_SUM:
    case DP_OP_REDUCE_SUM: sums(r, insn, plan, dst); break;
    case DP_OP_WHOLE_REDUCE_MAX: whole_extreme(r, insn, plan, dst, true); break;
    case DP_OP_WHOLE_REDUCE_MIN: whole_extreme(r, insn, plan, dst, false); break;
    case DP_OP_PAIR_REDUCE_SUM: grouped(r, insn, plan, dst, 2, rep * 128u); break;
    case DP_OP_REDUCE_MAX: running_extreme(r, insn, plan, dst, true); break;
    case DP_OP_REDUCE_MIN: running_extreme(r, insn, plan, dst, false); break;
    default: grouped(r, insn, plan, dst, 32 / bytes, rep * 8u * bytes); break;
    }
    if (insn->op == DP_OP_REDUCE_MAX || insn->op == DP_OP_REDUCE_MIN)
        memset(r->touched + WORK_AT, DP_WRITE, work_needed(insn, plan));
}

static void draw_lanes(rig *r, dp_insn *insn, uint32_t per_repeat) {
    static const uint8_t kinds[] = {DP_MASK_COUNT, DP_MASK_LEADING, DP_MASK_BITS, DP_MASK_REGISTER};
    insn->mask_kind = kinds[rig_below(r, 4)];
    r->core->counter_mode = rig_below(r, 4) == 0;
    insn->repeat = 1 + rig_below(r, rig_below(r, 6) ? 9 : 200);
    uint64_t n = 1 + rig_below(r, rig_below(r, 4) ? 500 : 9000);
    for (unsigned w = 0; w < 2; w++) {
        insn->mask[w] = rig_below(r, 3) ? rig_random(r) | 1 : ~0ull;
        r->core->mask[w] = rig_below(r, 3) ? rig_random(r) | 1 : ~0ull;
    }
    if (insn->mask_kind == DP_MASK_LEADING)
        insn->mask[0] = rig_below(r, 2) ? per_repeat : 1 + rig_below(r, per_repeat);
    if (r->core->counter_mode || insn->mask_kind == DP_MASK_COUNT)
        insn->mask[0] = r->core->mask[0] = n;
}

/* NaN payloads may differ, -0 may be 0 where a sum of nothing is padded with zeros */
static void forgive(rig *r, unsigned dtype) {
    unsigned bytes = bytes_of(dtype);
    for (size_t at = 0; at < WORK_AT; at += bytes) {
        if (!(r->touched[at] & DP_WRITE) || memcmp(r->ub + at, r->expect + at, bytes) == 0)
            continue;
        long double is = number_load(dtype, r->ub + at, 0).f, wanted = number_load(dtype, r->expect + at, 0).f;
        if ((isnan(is) && isnan(wanted)) || (is == 0 && wanted == 0))
            memcpy(r->expect + at, r->ub + at, bytes);
    }
}

static void one_case(rig *r, unsigned op, unsigned dtype) {
    unsigned bytes = bytes_of(dtype);
    bool running = op == DP_OP_REDUCE_SUM || op == DP_OP_REDUCE_MAX || op == DP_OP_REDUCE_MIN;
    dp_insn insn = {.op = (uint16_t)op, .n_operands = running ? 3 : 2, .loc = DP_HERE};
    static const uint8_t blocks[] = {1, 1, 1, 0, 2}, repeats[] = {8, 8, 8, 0, 1, 9};
    draw_lanes(r, &insn, 256 / bytes);
    insn.operand[0] = (dp_operand){.addr = r->ub + bytes * rig_below(r, 64), .dtype = (uint8_t)dtype, .space = DP_SPACE_UB,
                                   .repeat_stride = (uint16_t)(rig_below(r, 3) ? 1 : rig_below(r, 4))};
    insn.operand[1] = (dp_operand){.addr = r->ub + SRC_AT + 32 * rig_below(r, 4), .dtype = (uint8_t)dtype,
                                   .space = DP_SPACE_UB, .block_stride = blocks[rig_below(r, 5)],
                                   .repeat_stride = repeats[rig_below(r, 6)]};
    insn.operand[2] = (dp_operand){.addr = r->ub + WORK_AT, .dtype = (uint8_t)dtype, .space = DP_SPACE_UB};
    insn.u.vec.reduce_order = op == DP_OP_WHOLE_REDUCE_MAX || op == DP_OP_WHOLE_REDUCE_MIN ? (uint8_t)rig_below(r, 4) : 0;
    insn.u.vec.cal_index = op != DP_OP_REDUCE_SUM && running && rig_below(r, 2);
    if (rig_below(r, 3) == 0) { /* many equal values, so that ties are frequent */
        for (size_t i = 0; i < 2000; i++)
            number_store(dtype, r->image + SRC_AT, i, number_float((long double)rig_below(r, 3) - 1), 0);
    } else {
        for (size_t i = 0; i < 2000; i++)
            number_draw(r, dtype, r->image + SRC_AT, i);
    }
    lane_plan plan = plan_of(r, &insn, bytes);
    rig_reset(r);
    reference(r, &insn, &plan);
    rig_run(r, &insn);
    forgive(r, dtype);
    rig_compare(r, &insn, "reduction");
}

static void every_reduction(rig *r) {
    static const uint16_t ops[] = {DP_OP_WHOLE_REDUCE_SUM, DP_OP_WHOLE_REDUCE_MAX, DP_OP_WHOLE_REDUCE_MIN,
                                   DP_OP_REPEAT_REDUCE_SUM, DP_OP_BLOCK_REDUCE_SUM, DP_OP_BLOCK_REDUCE_MAX,
                                   DP_OP_BLOCK_REDUCE_MIN, DP_OP_PAIR_REDUCE_SUM, DP_OP_REDUCE_SUM, DP_OP_REDUCE_MAX,
                                   DP_OP_REDUCE_MIN};
    static const uint8_t types[] = {DP_F16, DP_F32};
    for (unsigned t = 0; t < 2; t++) {
        for (size_t i = 0; i < r->ub_bytes / bytes_of(types[t]); i++)
            number_draw(r, types[t], r->image, i);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            for (unsigned n = 0; n < CASES; n++)
                one_case(r, ops[i], types[t]);
        }
    }
}

static void test_reductions(void **state) { rig_each_rung(*state, every_reduction); }

static uint64_t register_of(rig *r, unsigned op, unsigned which) {
    dp_insn insn = {.op = (uint16_t)op, .loc = DP_HERE};
    insn.u.vec.aux[0] = which;
    dp_issue(&insn);
    (void)r;
    return insn.result;
}

/* GetAccVal and GetReduceMaxMinCount read what the last reduction left. */
static void test_registers(void **state) {
    rig *r = *state;
    memset(r->ub, 0, r->ub_bytes);
    float *src = (float *)(void *)(r->ub + SRC_AT), value;
    for (unsigned i = 0; i < 200; i++)
        src[i] = (float)i;
    src[77] = 1000.0f;
    dp_insn insn = {.op = DP_OP_REDUCE_SUM, .n_operands = 3, .mask_kind = DP_MASK_COUNT, .mask = {200, 0}, .loc = DP_HERE};
    insn.operand[0] = (dp_operand){.addr = r->ub, .dtype = DP_F32, .space = DP_SPACE_UB};
    insn.operand[1] = (dp_operand){.addr = src, .dtype = DP_F32, .space = DP_SPACE_UB, .block_stride = 1, .repeat_stride = 8};
    insn.operand[2] = (dp_operand){.addr = r->ub + WORK_AT, .dtype = DP_F32, .space = DP_SPACE_UB};
    rig_run(r, &insn);
    uint32_t bits = (uint32_t)register_of(r, DP_OP_GET_ACC, 0);
    memcpy(&value, &bits, sizeof value);
    assert_true(value == 199 * 100 - 77 + 1000);
    insn.op = DP_OP_WHOLE_REDUCE_MAX;
    insn.n_operands = 2;
    insn.mask_kind = DP_MASK_LEADING;
    insn.mask[0] = 64;
    insn.repeat = 2;
    rig_run(r, &insn);
    bits = (uint32_t)register_of(r, DP_OP_GET_REDUCE_INDEX, 0);
    memcpy(&value, &bits, sizeof value);
    assert_true(value == 1000.0f);
    assert_int_equal(register_of(r, DP_OP_GET_REDUCE_INDEX, 1), 13);
}

static void test_refusals(void **state) {
    rig *r = *state;
    dp_insn insn = {.op = DP_OP_REDUCE_MAX, .n_operands = 3, .mask_kind = DP_MASK_COUNT, .mask = {1000, 0}, .loc = DP_HERE};
    for (unsigned k = 0; k < 3; k++)
        insn.operand[k] = (dp_operand){.addr = r->ub + k * WORK_AT, .dtype = DP_F32, .space = DP_SPACE_UB, .block_stride = 1,
                                       .repeat_stride = 8};
    insn.operand[2].size_bytes = 96; /* 16 repeats need 128 bytes */
    rig_refuse(r, &insn, "the work buffer spans 128 bytes but its tensor has only 96 bytes");
    insn.operand[2].size_bytes = 0;
    insn.operand[0].addr = r->ub + 2;
    rig_refuse(r, &insn, "destination starts at UB offset 2 (0x2), which is not a multiple of 4 bytes");
    insn.operand[0].addr = r->ub;
    insn.operand[0].dtype = insn.operand[1].dtype = insn.operand[2].dtype = DP_I32;
    rig_refuse(r, &insn, "ReduceMax: element type int32 is not offered; use half or float");
    insn.operand[0].dtype = insn.operand[1].dtype = insn.operand[2].dtype = DP_F32;
    insn.u.vec.reduce_order = 4;
    rig_refuse(r, &insn, "result order 4 does not exist");
    insn.u.vec.reduce_order = 0;
    insn.mask_kind = DP_MASK_LEADING;
    insn.repeat = 256;
    rig_refuse(r, &insn, "repeat is 256");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_registers), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_reductions)};
    return cmocka_run_group_tests_name("insn_reduce", tests, set_up, tear_down);
}
