/*
 * The generic rung (to which rung_test ties the others) against independent arithmetic in long double: all 65,536 values of
 * the 16-bit types, random and adversarial values of the others.
 */
#include "numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#ifndef DP_TEST_COUNT /* fewer where an emulator runs the test */
#define DP_TEST_COUNT 65536
#endif
enum { N = DP_TEST_COUNT };
static _Alignas(64) uint64_t left[N], right[N], old[N], got[N];
static const dp_math *m;
#define EACH_TYPE(t) for (dp_dtype t = 0; t < DP_DTYPE_COUNT; t++)

/* every value where there are at most N of them */
static void fill_all(dp_dtype t, void *p) {
    bool all = dp_dtype_bits(t) <= 16 && N >> dp_dtype_bits(t);
    for (size_t i = 0; i < N; i++)
        element_set(t, p, i, all ? i & ((1u << dp_dtype_bits(t)) - 1) : adversarial(t));
}

static void expect(const char *what, int op, dp_dtype t, size_t i, uint64_t expected) {
    uint64_t is = element_bits(t, got, i);
    if (!same_element(t, is, expected))
        fail_msg("%s[%d] %s: element %zu (%llx, %llx) gave %llx, expected %llx", what, op, dtype_name(t), i,
                 (unsigned long long)left[i], (unsigned long long)right[i], (unsigned long long)is,
                 (unsigned long long)expected);
}

/* distance in units of the last place between two encodings of one format */
static long ulps(dp_dtype t, uint64_t x, uint64_t y) {
    long sign = t == DP_F32 ? 0x80000000l : 0x8000l, a = (long)x, b = (long)y;
    a = a & sign ? sign - a : a;
    b = b & sign ? sign - b : b;
    return labs(a - b);
}

static long double unary_value(int op, long double x) {
    switch (op) {
    case DP_MATH_ABS:
        return fabsl(x);
    case DP_MATH_EXP:
        return expl(x);
    case DP_MATH_LN:
        return x < 0 ? NAN : logl(x);
    case DP_MATH_SQRT:
        return sqrtl(x);
    case DP_MATH_RSQRT:
        return 1 / sqrtl(x);
    case DP_MATH_RECIPROCAL:
        return 1 / x;
    default: /* RELU */
        return x > 0 || isnan(x) ? x : 0;
    }
}

static void unary_functions(void **state) {
    (void)state;
    for (int op = 0; op < DP_MATH_UNARY_COUNT; op++)
        EACH_TYPE(t) {
            if (!m->unary[op][t])
                continue;
            fill_all(t, left);
            m->unary[op][t](got, left, N);
            for (size_t i = 0; i < N; i++) {
                uint64_t bits = element_bits(t, left, i), all = dp_dtype_bits(t) == 64 ? ~0ull : (1ull << dp_dtype_bits(t)) - 1;
                if (op == DP_MATH_NOT) {
                    expect("unary", op, t, i, ~bits & all);
                } else if (!is_float(t)) {
                    bool negative = element_value(t, left, i) < 0;
                    expect("unary", op, t, i, op == DP_MATH_ABS ? (negative ? 0 - bits : bits) & all : negative ? 0 : bits);
                } else {
                    uint64_t want = converted(t, unary_value(op, element_value(t, left, i)), DP_ROUND_RINT);
                    long slack = op == DP_MATH_EXP || op == DP_MATH_LN || op == DP_MATH_RSQRT ? (t == DP_F32 ? 2 : 1) : 0;
                    if (!same_element(t, want, element_bits(t, got, i)) &&
                        (isnan(decoded((uint32_t)want, format_of(t))) || ulps(t, want, element_bits(t, got, i)) > slack))
                        expect("unary", op, t, i, want);
                }
            }
        }
}

/* Max and Min: a NaN is handed on; of equal values the second. */
static long double extreme(long double x, long double y, bool max) {
    if (isnan(x) || isnan(y))
        return NAN;
    return (max ? x > y : x < y) ? x : y;
}

static uint64_t float_binary(int op, dp_dtype t, long double x, long double y) {
    long double value;
    switch (op) {
    case DP_MATH_ADD:
    case DP_MATH_ADD_RELU:
        value = x + y;
        break;
    case DP_MATH_SUB:
    case DP_MATH_SUB_RELU:
        value = x - y;
        break;
    case DP_MATH_MUL:
        value = x * y;
        break;
    case DP_MATH_DIV:
        value = x / y;
        break;
    default:
        value = extreme(x, y, op == DP_MATH_MAX);
    }
    /* a long double sum of two distant floats is rounded itself: the tie the second rounding sees may be false, so take the
     * first towards zero and mark what was lost */
    if ((op == DP_MATH_ADD || op == DP_MATH_SUB) && isfinite(value) && isfinite(x) && isfinite(y)) {
        long double z = op == DP_MATH_ADD ? y : -y, big = fabsl(x) > fabsl(z) ? x : z, small = big == x ? z : x;
        long double lost = small - (value - big);
        if (lost != 0)
            value = lost > 0 ? nextafterl(value, INFINITY) : nextafterl(value, -INFINITY);
    }
    bool relu = op == DP_MATH_ADD_RELU || op == DP_MATH_SUB_RELU;
    return converted(t, relu && value <= 0 ? 0.0L : value, DP_ROUND_RINT);
}

static uint64_t int_binary(int op, dp_dtype t, uint64_t x, uint64_t y, long double vx, long double vy) {
    unsigned width = dp_dtype_bits(t);
    uint64_t all = width == 64 ? ~0ull : (1ull << width) - 1, top = 1ull << (width - 1), sum = (x + y) & all;
    switch (op) {
    case DP_MATH_ADD:
        return sum;
    case DP_MATH_SUB:
        return (x - y) & all;
    case DP_MATH_MUL:
        return x * y & all;
    case DP_MATH_MAX:
        return vx > vy ? x : y;
    case DP_MATH_MIN:
        return vx < vy ? x : y;
    case DP_MATH_AND:
        return x & y;
    case DP_MATH_OR:
        return x | y;
    case DP_MATH_ADD_RELU:
        return sum & top ? 0 : sum;
    default: /* SUB_RELU */
        return (x - y) & top ? 0 : (x - y) & all;
    }
}

static uint64_t binary_expected(int op, dp_dtype t, uint64_t x, uint64_t y) {
    long double vx = element_value(t, &x, 0), vy = element_value(t, &y, 0);
    return is_float(t) ? float_binary(op, t, vx, vy) : int_binary(op, t, x, y, vx, vy);
}

static void binary_functions(void **state) {
    (void)state;
    for (int op = 0; op < DP_MATH_BINARY_COUNT; op++)
        EACH_TYPE(t) {
            if (!m->binary[op][t])
                continue;
            adversarial_fill(t, left, N);
            adversarial_fill(t, right, N);
            m->binary[op][t](got, left, right, N);
            for (size_t i = 0; i < N; i++)
                expect("binary", op, t, i, binary_expected(op, t, element_bits(t, left, i), element_bits(t, right, i)));
        }
}

static uint64_t shifted(int op, dp_dtype t, uint64_t bits, uint32_t word) {
    unsigned width = dp_dtype_bits(t), count = word & 0x7fffffff;
    uint64_t all = width == 64 ? ~0ull : (1ull << width) - 1;
    if (op == DP_MATH_SHIFT_LEFT)
        return count < width ? bits << count & all : 0;
    if (!is_signed(t))
        return count < width ? bits >> count : 0;
    long double value = element_value(t, &bits, 0), quotient = ldexpl(value, -(int)(count < 200 ? count : 200));
    return converted(t, word >> 31 ? floorl(quotient + 0.5L) : floorl(quotient), DP_ROUND_RINT);
}

static void scalar_functions(void **state) {
    (void)state;
    static const int twin[] = {DP_MATH_ADD, DP_MATH_MUL, DP_MATH_MAX, DP_MATH_MIN};
    for (int op = 0; op < DP_MATH_SCALAR_COUNT; op++)
        EACH_TYPE(t) for (int round = 0; round < 24; round++) {
            if (!m->scalar[op][t])
                continue;
            size_t n = N / 32;
            bool shift = op == DP_MATH_SHIFT_LEFT || op == DP_MATH_SHIFT_RIGHT;
            uint64_t scalar = adversarial(t);
            uint32_t word = (uint32_t)(round * 3) | (random_bits() & 1 ? 0x80000000u : 0);
            adversarial_fill(t, left, n);
            m->scalar[op][t](got, left, shift ? (void *)&word : (void *)&scalar, n);
            for (size_t i = 0; i < n; i++) {
                uint64_t x = element_bits(t, left, i);
                if (shift)
                    expect("scalar", op, t, i, shifted(op, t, x, word));
                else if (op == DP_MATH_LEAKY_RELU)
                    expect("scalar", op, t, i, element_value(t, &x, 0) >= 0 ? x : binary_expected(DP_MATH_MUL, t, x, scalar));
                else
                    expect("scalar", op, t, i, binary_expected(twin[op], t, x, scalar));
            }
        }
}

/* One rounding: to float by the C library's fmaf, then to the type. */
static uint64_t fused(dp_dtype t, long double x, long double y, long double z, bool relu) {
    float r = fmaf((float)x, (float)y, (float)z);
    return converted(t, relu && r <= 0 ? 0.0f : r, DP_ROUND_RINT);
}

static void ternary_functions(void **state) {
    (void)state;
    EACH_TYPE(t) for (int op = 0; op < DP_MATH_TERNARY_COUNT; op++) {
        if (!m->ternary[op][t])
            continue;
        adversarial_fill(t, left, N);
        adversarial_fill(t, right, N);
        adversarial_fill(t, old, N);
        memcpy(got, old, sizeof got);
        m->ternary[op][t](got, left, right, N);
        for (size_t i = 0; i < N; i++) {
            long double x = element_value(t, left, i), y = element_value(t, right, i), d = element_value(t, old, i);
            bool by_destination = op != DP_MATH_MUL_ADD_DST;
            expect("ternary", op, t, i,
                   fused(t, x, by_destination ? d : y, by_destination ? y : d, op == DP_MATH_FUSED_MUL_ADD_RELU));
        }
    }
    EACH_TYPE(t) EACH_TYPE(source) if (m->axpy[t][source]) {
        uint64_t scalar = converted(source, 1.7L, DP_ROUND_RINT);
        adversarial_fill(source, left, N);
        adversarial_fill(t, old, N);
        memcpy(got, old, sizeof got);
        m->axpy[t][source](got, left, &scalar, N);
        for (size_t i = 0; i < N; i++)
            expect("axpy", (int)source, t, i,
                   fused(t, element_value(source, left, i), element_value(source, &scalar, 0), element_value(t, old, i), false));
    }
}

static void casts(void **state) {
    (void)state;
    EACH_TYPE(t) EACH_TYPE(source) for (int mode = 0; mode < DP_ROUND_COUNT; mode++) {
        if (!m->cast[t][source][mode])
            continue;
        fill_all(source, left);
        m->cast[t][source][mode](got, left, N);
        for (size_t i = 0; i < N; i++) {
            long double x = element_value(source, left, i);
            if (is_float(t) && t == source && isfinite(x))
                x = mode == DP_ROUND_NONE ? x : integral(x, mode);
            uint64_t want = converted(t, x, mode);
            if (!same_element(t, want, element_bits(t, got, i)))
                fail_msg("cast %s -> %s mode %d: %La gave %llx, expected %llx", dtype_name(source), dtype_name(t), mode, x,
                         (unsigned long long)element_bits(t, got, i), (unsigned long long)want);
        }
    }
}

/* What the kernel language documents. Bits of the modes NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD. */
enum { NONE = 1, FIVE = 0x3e, ODD = 0x40 };
static const struct {
    uint8_t source, destination, modes;
} documented[] = {
    {DP_F16, DP_F32, NONE},
    {DP_F16, DP_I32, FIVE},
    {DP_F16, DP_I16, FIVE},
    {DP_F16, DP_I8, FIVE | NONE},
    {DP_F16, DP_U8, FIVE | NONE},
    {DP_F16, DP_I4, FIVE | NONE},
    {DP_F32, DP_F16, FIVE | ODD | NONE},
    {DP_F32, DP_BF16, FIVE},
    {DP_F32, DP_I16, FIVE},
    {DP_F32, DP_I32, FIVE},
    {DP_F32, DP_I64, FIVE},
    {DP_F32, DP_F32, FIVE},
    {DP_BF16, DP_F32, NONE},
    {DP_BF16, DP_I32, FIVE},
    {DP_I4, DP_F16, NONE},
    {DP_I8, DP_F16, NONE},
    {DP_U8, DP_F16, NONE},
    {DP_I16, DP_F16, FIVE | NONE},
    {DP_I16, DP_F32, NONE},
    {DP_I32, DP_F32, FIVE | NONE},
    {DP_I32, DP_F16, NONE},
    {DP_I32, DP_I16, NONE},
    {DP_I32, DP_I64, NONE},
    {DP_I64, DP_I32, NONE},
    {DP_I64, DP_F32, FIVE},
};

static void documented_casts_are_offered(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof documented / sizeof *documented; i++)
        for (unsigned mode = 0; mode < DP_ROUND_COUNT; mode++)
            if (documented[i].modes >> mode & 1)
                assert_non_null(m->cast[documented[i].destination][documented[i].source][mode]);
}

static bool holds(int relation, long double x, long double y) {
    switch (relation) {
    case DP_CMP_LT:
        return x < y;
    case DP_CMP_GT:
        return x > y;
    case DP_CMP_EQ:
        return x == y;
    case DP_CMP_LE:
        return x <= y;
    case DP_CMP_GE:
        return x >= y;
    default:
        return x != y;
    }
}

static void comparisons(void **state) {
    (void)state;
    for (int relation = 0; relation < DP_CMP_COUNT; relation++)
        EACH_TYPE(t) {
            if (!m->compare[relation][t])
                continue;
            adversarial_fill(t, left, N);
            adversarial_fill(t, right, N);
            for (size_t i = 0; i < N; i += 3)
                element_set(t, right, i, element_bits(t, left, i));
            m->compare[relation][t]((uint8_t *)got, left, right, N);
            for (size_t i = 0; i < N; i++)
                assert_int_equal(((uint8_t *)got)[i / 8] >> i % 8 & 1,
                                 holds(relation, element_value(t, left, i), element_value(t, right, i)));
            m->compare_scalar[relation][t]((uint8_t *)got, left, left, N);
            for (size_t i = 0; i < N; i++)
                assert_int_equal(((uint8_t *)got)[i / 8] >> i % 8 & 1,
                                 holds(relation, element_value(t, left, i), element_value(t, left, 0)));
        }
}

/* level by level over an array, as the words of the contract have it */
static long double tree(dp_dtype t, long double *v, size_t n) {
    for (; n > 1; n = (n + 1) / 2)
        for (size_t i = 0; i < (n + 1) / 2; i++)
            v[i] = 2 * i + 1 < n ? rounded(v[2 * i] + v[2 * i + 1], format_of(t), DP_ROUND_RINT) : v[2 * i];
    return n ? v[0] : 0;
}

static void float_sums(void **state) {
    (void)state;
    static long double v[1024];
    static const dp_dtype types[] = {DP_F32, DP_F16, DP_BF16};
    for (size_t k = 0; k < 3; k++)
        for (size_t n = 0; n <= 1000; n += 1 + n / 70) {
            dp_dtype t = types[k];
            size_t block = 32 * 8 / dp_dtype_bits(t), repeat = block * 8;
            for (size_t i = 0; i < 1024; i++)
                element_set(t, left, i, converted(t, (long double)((int64_t)random_bits() >> 44) / 4096, DP_ROUND_RINT));
            for (size_t i = 0; i < n; i++)
                v[i] = element_value(t, left, i);
            m->reduce[t].tree_sum(got, left, n);
            expect("tree_sum", (int)n, t, 0, converted(t, tree(t, v, n), DP_ROUND_RINT));
            const struct {
                void (*fn)(void *, const void *, size_t);
                size_t lanes;
            } forms[] = {{m->reduce[t].block_sum, block}, {m->reduce[t].pair_sum, 2}, {m->reduce[t].repeat_sum, repeat}};
            for (size_t form = 0; form < 3; form++) {
                forms[form].fn(got, left, n / forms[form].lanes);
                for (size_t g = 0; g < n / forms[form].lanes; g++) {
                    for (size_t i = 0; i < forms[form].lanes; i++)
                        v[i] = element_value(t, left, g * forms[form].lanes + i);
                    expect("group sum", (int)form, t, g, converted(t, tree(t, v, forms[form].lanes), DP_ROUND_RINT));
                }
            }
            long double total = 0;
            for (size_t r = 0; r < n / repeat; r++) {
                for (size_t i = 0; i < repeat; i++)
                    v[i] = element_value(t, left, r * repeat + i);
                long double sum = tree(t, v, repeat);
                total = r ? rounded(total + sum, format_of(t), DP_ROUND_RINT) : sum;
            }
            if (n / repeat) {
                m->reduce[t].running_sum(got, left, n / repeat);
                expect("running_sum", (int)n, t, 0, converted(t, total, DP_ROUND_RINT));
            }
        }
}

static void int_sums_wrap(void **state) {
    (void)state;
    static const dp_dtype types[] = {DP_I16, DP_I32, DP_I64};
    for (size_t k = 0; k < 3; k++) {
        dp_dtype t = types[k];
        unsigned width = dp_dtype_bits(t);
        uint64_t total = 0, mask = width == 64 ? ~0ull : (1ull << width) - 1;
        adversarial_fill(t, left, 1000);
        for (size_t i = 0; i < 1000; i++)
            total += element_bits(t, left, i);
        m->reduce[t].tree_sum(got, left, 1000);
        expect("tree_sum", 0, t, 0, total & mask);
        m->reduce[t].block_sum(got, left, 3);
        for (size_t g = 0; g < 3; g++) {
            total = 0;
            for (size_t i = 0; i < 256 / width; i++)
                total += element_bits(t, left, g * 256 / width + i);
            expect("block_sum", 0, t, g, total & mask);
        }
    }
}

static bool beyond(long double x, long double y, bool max) {
    return isnan(x) ? !isnan(y) : !isnan(y) && (max ? x > y : x < y);
}

static void extremes(void **state) {
    (void)state;
    EACH_TYPE(t) for (size_t n = 1; n <= 300 && m->reduce[t].max; n++) for (int kind = 0; kind < 2; kind++) {
        adversarial_fill(t, left, 1024);
        for (size_t i = 0; i < n && (n & 1); i++) /* few values: many ties, no NaN */
            element_set(t, left, i, converted(t, (long double)(random_bits() % 3) - 1, DP_ROUND_RINT));
        uint32_t index = 0;
        size_t want = 0;
        for (size_t i = 1; i < n; i++)
            if (beyond(element_value(t, left, i), element_value(t, left, want), kind == 0))
                want = i;
        (kind == 0 ? m->reduce[t].max : m->reduce[t].min)(got, &index, left, n);
        assert_int_equal(index, want);
        expect("extreme", kind, t, 0, element_bits(t, left, want));
        size_t lanes = 256 / dp_dtype_bits(t);
        (kind == 0 ? m->reduce[t].block_max : m->reduce[t].block_min)(got, left, n / lanes);
        for (size_t g = 0; g < n / lanes; g++) {
            want = g * lanes;
            for (size_t i = want; i < (g + 1) * lanes; i++)
                if (beyond(element_value(t, left, i), element_value(t, left, want), kind == 0))
                    want = i;
            expect("block extreme", kind, t, g, element_bits(t, left, want));
        }
    }
}

static void atomics(void **state) {
    (void)state;
    static const int twin[] = {DP_MATH_ADD, DP_MATH_MAX, DP_MATH_MIN};
    for (int op = 0; op < DP_MATH_ATOMIC_COUNT; op++)
        EACH_TYPE(t) {
            if (!m->atomic[op][t])
                continue;
            adversarial_fill(t, left, N / 16);
            adversarial_fill(t, right, N / 16);
            memcpy(got, left, sizeof got);
            m->atomic[op][t](got, right, N / 16);
            for (size_t i = 0; i < N / 16; i++)
                expect("atomic", op, t, i, binary_expected(twin[op], t, element_bits(t, left, i), element_bits(t, right, i)));
        }
}

static int set_up(void **state) {
    (void)state;
    m = dp_math_table(DP_ISA_GENERIC);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_functions),  cmocka_unit_test(binary_functions), cmocka_unit_test(scalar_functions),
        cmocka_unit_test(ternary_functions), cmocka_unit_test(casts),           cmocka_unit_test(documented_casts_are_offered),
        cmocka_unit_test(comparisons),      cmocka_unit_test(float_sums),       cmocka_unit_test(int_sums_wrap),
        cmocka_unit_test(extremes),         cmocka_unit_test(atomics),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
