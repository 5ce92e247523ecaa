/*
 * Every entry of every rung against the generic one: all types, odd sizes, element-aligned addresses, in place, and not a
 * byte outside the destination touched. An entry that only the generic rung has is a failure.
 */
#include "numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { ELEMENTS_MAX = 1024, ROOM = ELEMENTS_MAX * 8 + 128, GUARD = 48 };
static const size_t sizes[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 1000};
#define EACH_SIZE(n) for (size_t size_index = 0, n; size_index < sizeof sizes / sizeof *sizes && ((n = sizes[size_index]), 1); size_index++)

static _Alignas(64) uint8_t before[ROOM], expected[ROOM], got[ROOM], left[ROOM], right[ROOM];
static const dp_math *generic, *rung;
static dp_isa isa;

/* destination, first and second source, one element further on for odd sizes */
static size_t shift_of(dp_dtype t, size_t n) { return n % 2 ? elements_size(t, 2) / 2 + (t == DP_I4) : 0; }

/* Making hard values is slow: a stock of each type is made once and read from a random place. */
static void from_stock(dp_dtype t, void *p) {
    enum { STOCK = 8192 };
    static uint64_t stock[DP_DTYPE_COUNT][STOCK];
    static bool made[DP_DTYPE_COUNT];
    if (!made[t])
        adversarial_fill(t, stock[t], STOCK);
    made[t] = true;
    size_t first = random_bits() % (STOCK - ELEMENTS_MAX) & ~(size_t)1;
    memcpy(p, (char *)stock[t] + elements_size(t, first), elements_size(t, ELEMENTS_MAX));
}

static void prepare(dp_dtype dst, dp_dtype a, dp_dtype b) {
    static uint64_t noise[ROOM / 8 + 8];
    if (!noise[0])
        for (size_t i = 0; i < ROOM / 8 + 8; i++)
            noise[i] = random_bits();
    memcpy(before, (uint8_t *)noise + random_bits() % 64, ROOM);
    from_stock(dst, before + GUARD);
    from_stock(a, left);
    from_stock(b, right);
    memcpy(expected, before, ROOM);
    memcpy(got, before, ROOM);
}

static void compare_rooms(const char *what, int index, dp_dtype t, size_t at, size_t n) {
    size_t end = at + elements_size(t, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t x = element_bits(t, expected + at, i), y = element_bits(t, got + at, i);
        if (!same_element(t, x, y))
            fail_msg("%s %s[%d] %s n=%zu element %zu: %llx, generic %llx", dp_isa_name(isa), what, index, dtype_name(t), n, i,
                     (unsigned long long)y, (unsigned long long)x);
    }
    if (memcmp(before, got, at) || memcmp(before + end, got + end, ROOM - end))
        fail_msg("%s %s[%d] %s n=%zu wrote outside its destination", dp_isa_name(isa), what, index, dtype_name(t), n);
    if (memcmp(before, expected, at) || memcmp(before + end, expected + end, ROOM - end))
        fail_msg("generic %s[%d] %s n=%zu wrote outside its destination", what, index, dtype_name(t), n);
}

static bool offered(const char *what, int index, dp_dtype t, bool in_generic, bool in_rung) {
    if (in_generic && !in_rung)
        fail_msg("%s %s[%d] %s is missing", dp_isa_name(isa), what, index, dtype_name(t));
    return in_generic;
}
#define OFFERED(what, index, t, entry) offered(what, index, t, generic->entry != NULL, rung->entry != NULL)
#define EACH_TYPE(t) for (dp_dtype t = 0; t < DP_DTYPE_COUNT; t++)

static void unary_functions(void) {
    for (int op = 0; op < DP_MATH_UNARY_COUNT; op++)
        EACH_TYPE(t) if (OFFERED("unary", op, t, unary[op][t])) EACH_SIZE(n) {
            size_t at = GUARD + shift_of(t, n);
            prepare(t, t, t);
            generic->unary[op][t](expected + at, left + shift_of(t, n), n);
            rung->unary[op][t](got + at, left + shift_of(t, n), n);
            compare_rooms("unary", op, t, at, n);
            prepare(t, t, t);
            generic->unary[op][t](expected + at, expected + at, n);
            rung->unary[op][t](got + at, got + at, n);
            compare_rooms("unary in place", op, t, at, n);
        }
}

static void binary_functions(void) {
    for (int op = 0; op < DP_MATH_BINARY_COUNT; op++)
        EACH_TYPE(t) if (OFFERED("binary", op, t, binary[op][t])) EACH_SIZE(n) {
            size_t s = shift_of(t, n), at = GUARD + s;
            prepare(t, t, t);
            generic->binary[op][t](expected + at, left + s, right, n);
            rung->binary[op][t](got + at, left + s, right, n);
            compare_rooms("binary", op, t, at, n);
            prepare(t, t, t);
            generic->binary[op][t](expected + at, expected + at, right, n);
            rung->binary[op][t](got + at, got + at, right, n);
            compare_rooms("binary in place of the first", op, t, at, n);
            prepare(t, t, t);
            generic->binary[op][t](expected + at, left, expected + at, n);
            rung->binary[op][t](got + at, left, got + at, n);
            compare_rooms("binary in place of the second", op, t, at, n);
        }
}

static void scalar_functions(void) {
    for (int op = 0; op < DP_MATH_SCALAR_COUNT; op++)
        EACH_TYPE(t) if (OFFERED("scalar", op, t, scalar[op][t])) EACH_SIZE(n) for (int round = 0; round < 6; round++) {
            size_t s = shift_of(t, n), at = GUARD + s;
            uint64_t scalar = adversarial(t);
            if (op == DP_MATH_SHIFT_LEFT || op == DP_MATH_SHIFT_RIGHT)
                scalar = random_bits() % 70 | (round % 2 ? 0x80000000u : 0);
            prepare(t, t, t);
            generic->scalar[op][t](expected + at, left + s, &scalar, n);
            rung->scalar[op][t](got + at, left + s, &scalar, n);
            compare_rooms("scalar", op, t, at, n);
            prepare(t, t, t);
            generic->scalar[op][t](expected + at, expected + at, &scalar, n);
            rung->scalar[op][t](got + at, got + at, &scalar, n);
            compare_rooms("scalar in place", op, t, at, n);
        }
}

static void ternary_functions(void) {
    for (int op = 0; op < DP_MATH_TERNARY_COUNT; op++)
        EACH_TYPE(t) if (OFFERED("ternary", op, t, ternary[op][t])) EACH_SIZE(n) {
            size_t s = shift_of(t, n), at = GUARD + s;
            prepare(t, t, t);
            generic->ternary[op][t](expected + at, left + s, right, n);
            rung->ternary[op][t](got + at, left + s, right, n);
            compare_rooms("ternary", op, t, at, n);
        }
    EACH_SIZE(n) {
        prepare(DP_F32, DP_F16, DP_F16);
        generic->mul_add_dst_wide(expected + GUARD, left, right, n);
        rung->mul_add_dst_wide(got + GUARD, left, right, n);
        compare_rooms("mul_add_dst_wide", 0, DP_F32, GUARD, n);
    }
    EACH_TYPE(t) EACH_TYPE(source) if (OFFERED("axpy", (int)source, t, axpy[t][source])) EACH_SIZE(n) {
        uint64_t scalar = adversarial(source);
        prepare(t, source, source);
        generic->axpy[t][source](expected + GUARD, left + shift_of(source, n), &scalar, n);
        rung->axpy[t][source](got + GUARD, left + shift_of(source, n), &scalar, n);
        compare_rooms("axpy", (int)source, t, GUARD, n);
    }
}

static void casts(void) {
    EACH_TYPE(t) EACH_TYPE(source) for (int mode = 0; mode < DP_ROUND_COUNT; mode++) {
        if (!OFFERED("cast", mode, t, cast[t][source][mode]))
            continue;
        EACH_SIZE(n) {
            size_t at = GUARD + shift_of(t, n);
            prepare(t, source, source);
            generic->cast[t][source][mode](expected + at, left + shift_of(source, n), n);
            rung->cast[t][source][mode](got + at, left + shift_of(source, n), n);
            compare_rooms("cast", (int)source * 10 + mode, t, at, n);
            if (dp_dtype_bits(t) > dp_dtype_bits(source))
                continue;
            memcpy(before + GUARD, left, elements_size(source, n));
            memcpy(expected, before, ROOM);
            memcpy(got, before, ROOM);
            generic->cast[t][source][mode](expected + GUARD, expected + GUARD, n);
            rung->cast[t][source][mode](got + GUARD, got + GUARD, n);
            for (size_t i = 0; i < n; i++)
                assert_true(same_element(t, element_bits(t, expected + GUARD, i), element_bits(t, got + GUARD, i)));
        }
    }
}

static void comparisons(void) {
    for (int relation = 0; relation < DP_CMP_COUNT; relation++)
        EACH_TYPE(t) if (OFFERED("compare", relation, t, compare[relation][t])) EACH_SIZE(n) {
            size_t s = shift_of(t, n);
            assert_non_null(rung->compare_scalar[relation][t]);
            for (int form = 0; form < 2; form++) {
                prepare(t, t, t);
                for (size_t i = 0; i < n; i += 3)
                    element_set(t, right, i, element_bits(t, left + s, i));
                if (form == 0) {
                    generic->compare[relation][t](expected + GUARD, left + s, right, n);
                    rung->compare[relation][t](got + GUARD, left + s, right, n);
                } else {
                    generic->compare_scalar[relation][t](expected + GUARD, left + s, right, n);
                    rung->compare_scalar[relation][t](got + GUARD, left + s, right, n);
                }
                for (size_t i = 0; i < n; i++)
                    assert_int_equal(expected[GUARD + i / 8] >> i % 8 & 1, got[GUARD + i / 8] >> i % 8 & 1);
                for (size_t i = n; i % 8; i++) /* the rest of the last byte keeps its bits */
                    assert_int_equal(before[GUARD + i / 8] >> i % 8 & 1, got[GUARD + i / 8] >> i % 8 & 1);
                compare_rooms("compare", relation, DP_U8, GUARD, (n + 7) / 8);
            }
        }
}

static void selections(void) {
    static uint8_t bits[ELEMENTS_MAX / 8 + 8];
    EACH_TYPE(t) if (OFFERED("select", 0, t, select[t])) EACH_SIZE(n) for (size_t first = 0; first < 20; first += 1 + n / 300) {
        size_t at = GUARD + shift_of(t, n);
        for (size_t i = 0; i < sizeof bits; i++)
            bits[i] = (uint8_t)random_bits();
        prepare(t, t, t);
        generic->select[t](expected + at, bits, first, left, right, n);
        rung->select[t](got + at, bits, first, left, right, n);
        compare_rooms("select", (int)first, t, at, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(element_bits(t, got + at, i),
                             element_bits(t, bits[(first + i) / 8] >> (first + i) % 8 & 1 ? left : right, i));
        prepare(t, t, t);
        rung->select_scalar[t](got + at, bits, first, left, right, n);
        generic->select_scalar[t](expected + at, bits, first, left, right, n);
        compare_rooms("select_scalar", (int)first, t, at, n);
        for (size_t i = 0; i < n; i++) {
            bool yes = bits[(first + i) / 8] >> (first + i) % 8 & 1;
            assert_int_equal(element_bits(t, got + at, i), element_bits(t, yes ? left : right, yes ? i : 0));
        }
    }
}

static void fills_and_gathers(void) {
    static uint32_t offset[ELEMENTS_MAX];
    EACH_TYPE(t) if (OFFERED("fill", 0, t, fill[t])) EACH_SIZE(n) {
        size_t at = GUARD + shift_of(t, n), size = elements_size(t, 1);
        prepare(t, t, t);
        generic->fill[t](expected + at, left, n);
        rung->fill[t](got + at, left, n);
        compare_rooms("fill", 0, t, at, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(element_bits(t, got + at, i), element_bits(t, left, 0));
        assert_true(OFFERED("gather", 0, t, gather[t]));
        for (size_t i = 0; i < ELEMENTS_MAX; i++)
            offset[i] = (uint32_t)(random_bits() % ELEMENTS_MAX * size);
        offset[0] = (uint32_t)((ELEMENTS_MAX - 1) * size);
        prepare(t, t, t);
        generic->gather[t](expected + at, left, offset, n);
        rung->gather[t](got + at, left, offset, n);
        compare_rooms("gather", 0, t, at, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(element_bits(t, got + at, i), element_bits(t, left, offset[i] / size));
    }
}

typedef void (*group_fn)(void *dst, const void *a, size_t n);

static void reductions(void) {
    enum { TAME = 2048 };
    static uint64_t tame[DP_DTYPE_COUNT][TAME];
    EACH_TYPE(t) for (size_t i = 0; i < TAME && generic->reduce[t].tree_sum; i++)
        tame[t][i] = converted(t, (long double)((int64_t)random_bits() >> 40) / 1024, DP_ROUND_RINT);
    EACH_TYPE(t) if (OFFERED("reduce", 0, t, reduce[t].tree_sum)) EACH_SIZE(n) for (int round = 0; round < 4; round++) {
        const dp_reduce_fns *g = &generic->reduce[t], *r = &rung->reduce[t];
        size_t s = shift_of(t, n);
        prepare(t, t, t);
        if (round) /* sums that do not end as NaN */
            for (size_t i = 0; i < ELEMENTS_MAX; i++)
                element_set(t, left, i, tame[t][random_bits() % TAME]);
        g->tree_sum(expected + GUARD, left + s, n);
        r->tree_sum(got + GUARD, left + s, n);
        compare_rooms("tree_sum", 0, t, GUARD, 1);
        uint32_t i = 77, j = 77;
        prepare(t, t, t);
        g->max(expected + GUARD, &i, left + s, n);
        r->max(got + GUARD, &j, left + s, n);
        compare_rooms("max", 0, t, GUARD, n ? 1 : 0);
        assert_int_equal(i, j);
        g->min(expected + GUARD, &i, left + s, n);
        r->min(got + GUARD, &j, left + s, n);
        compare_rooms("min", 0, t, GUARD, n ? 1 : 0);
        assert_int_equal(i, j);
        const group_fn of_generic[] = {g->block_sum, g->block_max, g->block_min, g->pair_sum, g->repeat_sum};
        const group_fn of_rung[] = {r->block_sum, r->block_max, r->block_min, r->pair_sum, r->repeat_sum};
        const unsigned group_bytes[] = {32, 32, 32, dp_dtype_bits(t) / 4, 256};
        for (int k = 0; k < 5; k++) {
            size_t n_groups = n * dp_dtype_bits(t) / 8 / group_bytes[k];
            prepare(t, t, t);
            of_generic[k](expected + GUARD, left, n_groups);
            of_rung[k](got + GUARD, left, n_groups);
            compare_rooms("group", k, t, GUARD, n_groups);
        }
        size_t repeats = n * dp_dtype_bits(t) / 8 / 256;
        if (repeats && OFFERED("running_sum", 0, t, reduce[t].running_sum)) {
            prepare(t, t, t);
            g->running_sum(expected + GUARD, left, repeats);
            r->running_sum(got + GUARD, left, repeats);
            compare_rooms("running_sum", 0, t, GUARD, 1);
        }
    }
}

static void atomics_and_copies(void) {
    for (int op = 0; op < DP_MATH_ATOMIC_COUNT; op++)
        EACH_TYPE(t) if (OFFERED("atomic", op, t, atomic[op][t])) EACH_SIZE(n) {
            prepare(t, t, t);
            generic->atomic[op][t](expected + GUARD, left, n);
            rung->atomic[op][t](got + GUARD, left, n);
            compare_rooms("atomic", op, t, GUARD, n);
        }
    for (size_t n = 0; n < ROOM - 256; n += 1 + n / 9)
        for (size_t s = 0; s < 70; s += 1 + s * 2) {
            prepare(DP_U8, DP_U64, DP_U8);
            rung->copy(got + GUARD + s, left + s / 2, n);
            memcpy(expected + GUARD + s, left + s / 2, n);
            compare_rooms("copy", (int)s, DP_U8, GUARD + s, n);
            memcpy(got, before, ROOM);
            rung->copy_stream(got + GUARD + s, left + s / 2, n);
            rung->stream_fence();
            compare_rooms("copy_stream", (int)s, DP_U8, GUARD + s, n);
            memcpy(got, before, ROOM);
            rung->copy_stream_ahead(got + GUARD + s, left + s / 2, n, left, 2 * n);
            rung->stream_fence();
            compare_rooms("copy_stream_ahead", (int)s, DP_U8, GUARD + s, n);
            memcpy(got, before, ROOM);
            rung->copy_in(got + GUARD + s, left + s / 2, n);
            compare_rooms("copy_in", (int)s, DP_U8, GUARD + s, n);
        }
}

/* What copy_in does in four runs at once. */
static void long_copies(void) {
    enum { LONGEST = 20000 };
    static uint8_t from[LONGEST + 64], to[LONGEST + 128];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)random_bits();
    for (size_t n = 16 << 10; n <= LONGEST; n += 1 + n / 13)
        for (size_t s = 0; s < 64; s += 21) {
            memset(to, 0x5a, sizeof to);
            rung->copy_in(to + s, from + s / 2, n);
            assert_memory_equal(to + s, from + s / 2, n);
            for (size_t i = 0; i < 64; i++)
                assert_true((i >= s || to[i] == 0x5a) && to[s + n + i] == 0x5a);
        }
}

static void over_all_rungs(void (*check)(void)) {
    generic = dp_math_table(DP_ISA_GENERIC);
    for (isa = DP_ISA_GENERIC; isa <= dp_cpu_best_isa(); isa++) {
        rung = dp_math_table(isa);
        check();
    }
}
#define RUNG_TEST(family)                                                                                              \
    static void test_##family(void **state) {                                                                          \
        (void)state;                                                                                                   \
        over_all_rungs(family);                                                                                        \
    }
RUNG_TEST(unary_functions)
RUNG_TEST(binary_functions)
RUNG_TEST(scalar_functions)
RUNG_TEST(ternary_functions)
RUNG_TEST(casts)
RUNG_TEST(comparisons)
RUNG_TEST(selections)
RUNG_TEST(fills_and_gathers)
RUNG_TEST(reductions)
RUNG_TEST(atomics_and_copies)
RUNG_TEST(long_copies)

static void missing_rungs_give_a_table(void **state) {
    (void)state;
    for (int i = -1; i <= DP_ISA_COUNT; i++)
        assert_non_null(dp_math_table((dp_isa)i)->binary[DP_MATH_ADD][DP_F32]);
    assert_ptr_equal(dp_math_current(), dp_math_table(dp_cpu_isa()));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary_functions),   cmocka_unit_test(test_binary_functions),
        cmocka_unit_test(test_scalar_functions),  cmocka_unit_test(test_ternary_functions),
        cmocka_unit_test(test_casts),             cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_selections),        cmocka_unit_test(test_fills_and_gathers),
        cmocka_unit_test(test_reductions),        cmocka_unit_test(test_atomics_and_copies),
        cmocka_unit_test(test_long_copies),
        cmocka_unit_test(missing_rungs_give_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
