#include "insn_rig.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

static void __attribute__((noreturn)) abandon(dp_core *core) { longjmp(((rig *)core->host_state)->escape, 1); }

static void fault(dp_core *core, dp_loc loc, const char *sentence) {
    rig *r = core->host_state;
    (void)loc;
    snprintf(r->sentence, sizeof r->sentence, "%s", sentence);
}

static bool park(dp_core *core, const dp_wait *wait) {
    (void)core, (void)wait;
    return false;
}

rig *rig_open(void) {
    static const dp_core_host host = {.park = park, .abandon = abandon, .fault = fault};
    rig *r = calloc(1, sizeof *r);
    r->core = dp_core_create(dp_chip_find("Ascend910B3"));
    assert_non_null(r->core);
    r->core->host = &host;
    r->core->host_state = r;
    r->core->block_num = 1;
    r->ub = r->core->memory[DP_SPACE_UB].base;
    r->ub_bytes = r->core->memory[DP_SPACE_UB].size_bytes;
    r->image = malloc(r->ub_bytes);
    r->expect = malloc(r->ub_bytes);
    r->touched = malloc(r->ub_bytes);
    r->visited = malloc(r->ub_bytes);
    r->seed = 0x9e3779b97f4a7c15ull;
    dp_core_block_begin(r->core);
    dp_core_set_current(r->core);
    return r;
}

void rig_close(rig *r) {
    dp_core_set_current(NULL);
    dp_core_destroy(r->core);
    free(r->image);
    free(r->expect);
    free(r->touched);
    free(r->visited);
    free(r);
}

void rig_each_rung(rig *r, void (*body)(rig *r)) {
    for (int isa = 0; isa <= (int)dp_cpu_best_isa(); isa++) {
        r->core->math = dp_math_table((dp_isa)isa);
        r->seed = 0x9e3779b97f4a7c15ull + (uint64_t)isa;
        body(r);
    }
    r->core->math = dp_math_current();
}

uint64_t rig_random(rig *r) {
    r->seed ^= r->seed << 13;
    r->seed ^= r->seed >> 7;
    r->seed ^= r->seed << 17;
    return r->seed * 0x2545f4914f6cdd1dull;
}
uint32_t rig_below(rig *r, uint32_t n) { return (uint32_t)((rig_random(r) >> 32) % n); }

static void note_visit(void *context, unsigned operand, unsigned mode, const void *addr, size_t bytes) {
    rig *r = context;
    (void)operand;
    size_t offset = (size_t)((const uint8_t *)addr - r->ub);
    assert_true(offset <= r->ub_bytes && bytes <= r->ub_bytes - offset);
    for (size_t i = 0; i < bytes; i++)
        r->visited[offset + i] |= (uint8_t)mode;
}

/* Bits 2 and 3: what the same visit by blocks names. */
static void note_lanes(void *context, unsigned operand, unsigned mode, const uint8_t *addr, uint32_t blocks, uint32_t bits) {
    rig *r = context;
    (void)operand;
    size_t offset = (size_t)(addr - r->ub), bytes = (size_t)blocks * DP_BLOCK_BYTES;
    assert_true(bits && blocks && offset % DP_BLOCK_BYTES == 0 && offset <= r->ub_bytes && bytes <= r->ub_bytes - offset);
    for (size_t i = 0; i < bytes; i++) {
        if (bits >> (i % DP_BLOCK_BYTES) & 1)
            r->visited[offset + i] |= (uint8_t)(mode << 2);
    }
}

static void compare_visits(rig *r, const dp_insn *insn) {
    if (!dp_insn_visit_lanes(r->core, insn, note_lanes, r))
        return;
    r->lane_visits++;
    for (size_t i = 0; i < r->ub_bytes; i++) {
        unsigned by_lanes = r->visited[i] >> 2;
        if (by_lanes != (r->visited[i] & 3u))
            fail_msg("%s: byte %zu is mode %u by lanes, %u by runs", dp_insn_name(insn->op), i, by_lanes, r->visited[i] & 3u);
        r->visited[i] &= 3;
    }
}

static bool issue(rig *r, dp_insn *insn) {
    r->sentence[0] = 0;
    if (setjmp(r->escape))
        return false;
    dp_issue(insn);
    return true;
}

void rig_run(rig *r, dp_insn *insn) {
    memset(r->visited, 0, r->ub_bytes);
    dp_insn_visit(r->core, insn, note_visit, r);
    compare_visits(r, insn);
    if (!issue(r, insn))
        fail_msg("unexpected fault: %s", r->sentence);
}

void rig_refuse(rig *r, const dp_insn *insn, const char *part) {
    dp_insn copy = *insn;
    fflush(stderr);
    int keep = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY); /* the report is not what is tested */
    dup2(null, STDERR_FILENO);
    bool ran = issue(r, &copy);
    dup2(keep, STDERR_FILENO);
    close(keep);
    close(null);
    if (ran)
        fail_msg("%s ran, expected a fault with: %s", dp_insn_name(insn->op), part);
    if (!strstr(r->sentence, part))
        fail_msg("fault is \"%s\", expected to contain \"%s\"", r->sentence, part);
}

void rig_reset(rig *r) {
    memcpy(r->ub, r->image, r->ub_bytes);
    memcpy(r->expect, r->image, r->ub_bytes);
    memset(r->touched, 0, r->ub_bytes);
    memset(r->visited, 0, r->ub_bytes);
}

static void describe(const dp_insn *insn, char *text, size_t room) {
    size_t used = (size_t)snprintf(text, room, "%s kind %u repeat %u mask %016llx %016llx", dp_insn_name(insn->op),
                                   insn->mask_kind, insn->repeat, (unsigned long long)insn->mask[0],
                                   (unsigned long long)insn->mask[1]);
    for (unsigned k = 0; k < insn->n_operands && used < room; k++)
        used += (size_t)snprintf(text + used, room - used, " [%u] %s blk %u rep %u", k,
                                 dp_dtype_name(insn->operand[k].dtype), insn->operand[k].block_stride,
                                 insn->operand[k].repeat_stride);
}

void rig_compare(rig *r, const dp_insn *insn, const char *what) {
    char text[400];
    if (memcmp(r->ub, r->expect, r->ub_bytes) != 0) {
        describe(insn, text, sizeof text);
        for (uint32_t i = 0; i < r->ub_bytes; i++) {
            if (r->ub[i] != r->expect[i])
                fail_msg("%s: %s: UB byte %u (dst at %zu) is %02x, expected %02x, was %02x, %swritten by the reference", what,
                         text, i, (size_t)((uint8_t *)insn->operand[0].addr - r->ub), r->ub[i], r->expect[i], r->image[i],
                         r->touched[i] & DP_WRITE ? "" : "not ");
        }
    }
    if (memcmp(r->touched, r->visited, r->ub_bytes) != 0) {
        describe(insn, text, sizeof text);
        for (uint32_t i = 0; i < r->ub_bytes; i++) {
            if (r->touched[i] != r->visited[i])
                fail_msg("%s: %s: footprint of UB byte %u is %u, expected %u", what, text, i, r->visited[i], r->touched[i]);
        }
    }
}

/* ---- values ---- */

bool is_float_type(unsigned dtype) {
    return dtype == DP_F16 || dtype == DP_BF16 || dtype == DP_F32 || dtype == DP_F64;
}

number number_float(long double f) { return (number){true, f, 0}; }
number number_int(int64_t i) { return (number){false, 0, i}; }

/* exponent bits, fraction bits */
static void format_of(unsigned dtype, int *e, int *m) {
    *e = dtype == DP_F16 ? 5 : 8;
    *m = dtype == DP_F16 ? 10 : dtype == DP_BF16 ? 7 : 23;
}

static long double decode(unsigned dtype, uint32_t bits) {
    int e, m;
    format_of(dtype, &e, &m);
    int exponent = (int)(bits >> m & ((1u << e) - 1)), bias = (1 << (e - 1)) - 1;
    uint32_t fraction = bits & ((1u << m) - 1);
    long double sign = bits >> (e + m) & 1 ? -1.0L : 1.0L;
    if (exponent == (1 << e) - 1)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexpl((long double)fraction, 1 - bias - m);
    return sign * ldexpl((long double)(fraction | 1u << m), exponent - bias - m);
}

long double round_to_integral(long double f, unsigned mode) {
    long double t;
    switch (mode) {
    case DP_ROUND_FLOOR: return floorl(f);
    case DP_ROUND_CEIL: return ceill(f);
    case DP_ROUND_ROUND: return roundl(f);
    case DP_ROUND_TRUNC: return truncl(f);
    case DP_ROUND_ODD:
        t = truncl(f);
        return t != f && fmodl(t, 2) == 0 ? t + copysignl(1, f) : t;
    default: return nearbyintl(f);
    }
}

static uint32_t encode(unsigned dtype, long double f, unsigned mode) {
    int e, m;
    format_of(dtype, &e, &m);
    int bias = (1 << (e - 1)) - 1, exponent;
    uint32_t sign = signbit(f) ? 1u << (e + m) : 0, infinity = ((1u << e) - 1) << m;
    if (isnan(f))
        return infinity | 1u << (m - 1);
    if (isinf(f))
        return sign | infinity;
    if (f == 0)
        return sign;
    long double greatest = ldexpl(2.0L - ldexpl(1, -m), bias);
    frexpl(f, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1 > bias ? bias : exponent - 1;
    long double quantum = ldexpl(1, exponent - m), rounded = round_to_integral(f / quantum, mode) * quantum;
    if (fabsl(rounded) > greatest) {
        bool nearest = mode == DP_ROUND_NONE || mode == DP_ROUND_RINT || mode == DP_ROUND_ROUND;
        bool away = nearest ? fabsl(f) >= greatest + ldexpl(1, bias - m - 1)
                            : (mode == DP_ROUND_FLOOR && f < 0) || (mode == DP_ROUND_CEIL && f > 0);
        return sign | (away ? infinity : infinity - 1);
    }
    if (rounded == 0)
        return sign;
    frexpl(rounded, &exponent);
    exponent--;
    if (exponent < 1 - bias)
        return sign | (uint32_t)ldexpl(fabsl(rounded), bias - 1 + m);
    uint32_t fraction = (uint32_t)ldexpl(fabsl(rounded), m - exponent) - (1u << m);
    return sign | (uint32_t)(exponent + bias) << m | fraction;
}

number number_load(unsigned dtype, const uint8_t *base, size_t index) {
    uint64_t bits = 0;
    unsigned width = dp_dtype_bits(dtype);
    if (dtype == DP_I4) {
        int nibble = base[index / 2] >> (index % 2 * 4) & 15;
        return number_int(nibble > 7 ? nibble - 16 : nibble);
    }
    memcpy(&bits, base + index * width / 8, width / 8);
    if (is_float_type(dtype))
        return number_float(decode(dtype, (uint32_t)bits));
    bool is_signed = dtype == DP_I8 || dtype == DP_I16 || dtype == DP_I32 || dtype == DP_I64;
    if (is_signed && width < 64)
        return number_int((int64_t)(bits << (64 - width)) >> (64 - width));
    return number_int((int64_t)bits);
}

void number_store(unsigned dtype, uint8_t *base, size_t index, number value, unsigned mode) {
    unsigned width = dp_dtype_bits(dtype);
    uint64_t bits = is_float_type(dtype) ? encode(dtype, value.is_float ? value.f : (long double)value.i, mode)
                                         : (uint64_t)value.i;
    if (dtype == DP_I4)
        base[index / 2] = (uint8_t)(index % 2 ? (base[index / 2] & 15) | (bits & 15) << 4
                                              : (base[index / 2] & 0xf0) | (bits & 15));
    else
        memcpy(base + index * width / 8, &bits, width / 8);
}

static void limits_of(unsigned dtype, long double *low, long double *high) {
    int width = (int)dp_dtype_bits(dtype);
    bool is_unsigned = dtype == DP_U8 || dtype == DP_U16 || dtype == DP_U32;
    *low = is_unsigned ? 0 : -ldexpl(1, width - 1);
    *high = (is_unsigned ? ldexpl(1, width) : ldexpl(1, width - 1)) - 1;
}

void number_cast(unsigned dtype, uint8_t *base, size_t index, number value, unsigned mode) {
    long double f = value.is_float ? value.f : (long double)value.i, low, high;
    if (is_float_type(dtype)) {
        number_store(dtype, base, index, number_float(f), mode);
        return;
    }
    limits_of(dtype, &low, &high);
    f = isnan(f) ? 0 : round_to_integral(f, mode);
    int64_t i = f <= low ? (int64_t)low : f >= high ? (int64_t)high : (int64_t)f;
    number_store(dtype, base, index, number_int(i), mode);
}

void number_draw(rig *r, unsigned dtype, uint8_t *base, size_t index) {
    static const double hard[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 127.5, -128.5, 255.5, 32767.5,
                                  -32768.5, 65504.0, 65519.0, 65520.0, 2147483648.0, -2147483649.0, 1e30, -1e30, 6e-8, 2.9e-8,
                                  -6.2e-5, 1e-40, 0.1, -7.5, 7.5, 3.5, 16777217.0, INFINITY, -INFINITY, NAN};
    uint32_t way = rig_below(r, 8);
    if (!is_float_type(dtype)) {
        static const int64_t corner[] = {0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, INT32_MAX,
                                         INT32_MIN, INT64_MAX, INT64_MIN, 16777217, 2049};
        int64_t i = way < 2   ? corner[rig_below(r, sizeof corner / sizeof *corner)]
                    : way < 5 ? (int64_t)rig_below(r, 400) - 200
                              : (int64_t)rig_random(r);
        number_store(dtype, base, index, number_int(i), 0);
        return;
    }
    long double f;
    if (way < 1)
        f = hard[rig_below(r, sizeof hard / sizeof *hard)];
    else if (way < 5)
        f = ((long double)(int64_t)rig_random(r)) / 0x1p63L * 8;
    else if (way < 6)
        f = (long double)((int)rig_below(r, 400) - 200) / 2;
    else
        f = ldexpl((long double)(int64_t)rig_random(r), (int)rig_below(r, 60) - 90);
    number_store(dtype, base, index, number_float(f), 0);
}

/* ---- lanes ---- */

lane_at lane_address(const rig *r, const dp_operand *operand, bool flat, uint32_t per_repeat, uint32_t repeat, uint32_t lane) {
    unsigned bits = dp_dtype_bits(operand->dtype);
    size_t base = (size_t)((uint8_t *)operand->addr - r->ub), bit;
    if (flat) {
        bit = ((size_t)repeat * per_repeat + lane) * bits;
    } else {
        uint32_t per_block = 256 / bits;
        size_t block = (size_t)repeat * operand->repeat_stride + (size_t)(lane / per_block) * operand->block_stride;
        bit = block * 256 + (size_t)(lane % per_block) * bits;
    }
    return (lane_at){base + bit / 8, (unsigned)(bit % 8 / 4)};
}

lane_plan plan_of(const rig *r, const dp_insn *insn, unsigned widest_bytes) {
    const dp_core *core = r->core;
    lane_plan plan = {.per_repeat = 256 / widest_bytes, .mask = {~0ull, ~0ull}};
    plan.flat = insn->mask_kind == DP_MASK_COUNT;
    if (plan.flat || core->counter_mode) {
        uint64_t n = insn->mask_kind == DP_MASK_REGISTER ? core->mask[0] : insn->mask[0];
        plan.repeats = (uint32_t)((n + plan.per_repeat - 1) / plan.per_repeat);
        plan.last = n ? (uint32_t)((n - 1) % plan.per_repeat + 1) : 0;
        return plan;
    }
    plan.repeats = insn->repeat;
    plan.last = plan.per_repeat;
    for (unsigned lane = 0; lane < 128 && insn->mask_kind != DP_MASK_NONE; lane++) {
        bool on = insn->mask_kind == DP_MASK_LEADING ? lane < insn->mask[0]
                  : insn->mask_kind == DP_MASK_BITS  ? insn->mask[lane / 64] >> lane % 64 & 1
                                                     : core->mask[lane / 64] >> lane % 64 & 1;
        if (!on)
            plan.mask[lane / 64] &= ~(1ull << lane % 64);
    }
    return plan;
}

bool plan_selects(const lane_plan *plan, uint32_t repeat, uint32_t lane) {
    uint32_t end = repeat + 1 == plan->repeats ? plan->last : plan->per_repeat;
    return lane < end && (plan->mask[lane / 64] >> lane % 64 & 1);
}
