/* half, bfloat16_t and int4b_t: every pattern against the library's scalar conversions, single rounding, mixed arithmetic. */
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
extern "C" {
#include <cmocka.h>
}

#include "ascendc/types.h"
#include "base/half.h"

static void every_half_converts_both_ways(void **) {
    for (uint32_t bits = 0; bits < 65536; bits++) {
        half h = half::from_bits(static_cast<uint16_t>(bits));
        float f = h;
        float wanted = dp_f32_from_f16(static_cast<uint16_t>(bits));
        if (std::isnan(wanted)) {
            assert_true(std::isnan(f));
            assert_true(std::isnan(float(half(f))));
            continue;
        }
        assert_int_equal(dp_f32_bits(f), dp_f32_bits(wanted));
        assert_int_equal(half(f).bits(), bits);
        assert_int_equal((-h).bits(), bits ^ 0x8000u);
    }
}

static void floats_round_like_the_library(void **) {
    srand(11);
    for (int i = 0; i < 2000000; i++) {
        uint32_t x = static_cast<uint32_t>(rand()) << 16 ^ static_cast<uint32_t>(rand());
        float f = dp_f32_from_bits(x);
        if (std::isnan(f))
            continue;
        assert_int_equal(half(f).bits(), dp_f16_from_f32(f));
        assert_int_equal(bfloat16_t(f).bits(), dp_bf16_from_f32(f));
    }
}

/* Halfway between two halves plus a bit that only a double or a wide integer can hold: through float it would be a tie. */
static void doubles_and_integers_round_once(void **) {
    srand(5);
    for (int i = 0; i < 100000; i++) {
        uint16_t low = static_cast<uint16_t>(0x0400 + rand() % 0x7000);
        double a = dp_f32_from_f16(low), b = dp_f32_from_f16(static_cast<uint16_t>(low + 1)), middle = (a + b) / 2;
        assert_int_equal(half(std::nextafter(middle, INFINITY)).bits(), low + 1);
        assert_int_equal(half(std::nextafter(middle, 0.0)).bits(), low);
        assert_int_equal(half(middle).bits(), low & 1 ? low + 1 : low);
        assert_int_equal(half(-std::nextafter(middle, INFINITY)).bits(), (low + 1) | 0x8000);
    }
    assert_int_equal(half(int64_t(2049)).bits(), half(2048.0f).bits());
    assert_int_equal(half(int64_t(2051)).bits(), half(2052.0f).bits());
    assert_int_equal(half(65519).bits(), 0x7bff);
    assert_int_equal(half(65520).bits(), 0x7c00);
    assert_int_equal(bfloat16_t(16777217 + 65536 * 3).bits(), dp_bf16_from_f32(16777217.0f + 65536 * 3 + 1));
}

static void arithmetic_rounds_after_every_operation(void **) {
    srand(3);
    for (int i = 0; i < 200000; i++) {
        half a = half::from_bits(static_cast<uint16_t>(rand())), b = half::from_bits(static_cast<uint16_t>(rand()));
        float fa = a, fb = b;
        const float results[4] = {fa + fb, fa - fb, fa * fb, fa / fb};
        const half got[4] = {a + b, a - b, a * b, a / b};
        for (int k = 0; k < 4; k++) {
            if (std::isnan(results[k]))
                assert_true(std::isnan(float(got[k])));
            else
                assert_int_equal(got[k].bits(), dp_f16_from_f32(results[k]));
        }
        assert_int_equal(a < b, fa < fb);
        assert_int_equal(a == b, fa == fb);
        assert_int_equal(a >= b, fa >= fb);
    }
}

static void mixed_types(void **) {
    half h = 3;
    static_assert(std::is_same<decltype(h * 2), half>::value, "an integer keeps half");
    static_assert(std::is_same<decltype(2 * h), half>::value, "on both sides");
    static_assert(std::is_same<decltype(h * 2.0f), float>::value, "float widens");
    static_assert(std::is_same<decltype(h / 2.0), double>::value, "double widens");
    static_assert(std::is_same<decltype(h + h), half>::value, "half stays half");
    constexpr half one_and_a_half = 1.5;
    static_assert(one_and_a_half.bits() == 0x3e00, "usable in constant expressions");
    assert_true(h * 2 == 6 && 2 * h == 6.0f && h / 2.0 == 1.5 && h - 1 > 1);
    h += 0.5f;
    h *= half(2);
    h -= 1;
    h /= 2;
    assert_true(h == 3);
    assert_true(static_cast<int>(half(2.75)) == 2 && static_cast<uint8_t>(half(200)) == 200);
    assert_true(half(0.25) && !half(-0.0) && static_cast<bool>(bfloat16_t(1)));
    half up = 1;
    assert_true(up++ == 1 && up == 2 && --up == 1);
    bfloat16_t b = h;
    assert_true(b * b == 9 && b + 1 == 4);
    assert_true(std::numeric_limits<half>::max() == 65504.0f);
}

static void int4_wraps_to_four_bits(void **) {
    for (int i = -8; i < 8; i++)
        assert_int_equal(AscendC::int4b_t(i), i);
    assert_int_equal(AscendC::int4b_t(8), -8);
    assert_int_equal(AscendC::int4b_t(-9), 7);
    assert_int_equal(AscendC::dp_bytes_of<AscendC::int4b_t>(7), 4);
    assert_int_equal(AscendC::dp_elements_of<AscendC::int4b_t>(4), 8);
    assert_int_equal(AscendC::dp_dtype_of<AscendC::TensorTrait<half>>(), DP_F16);
    assert_int_equal(AscendC::dp_dtype_of<bool>(), DP_U8);
}

int main() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_converts_both_ways),       cmocka_unit_test(floats_round_like_the_library),
        cmocka_unit_test(doubles_and_integers_round_once),     cmocka_unit_test(arithmetic_rounds_after_every_operation),
        cmocka_unit_test(mixed_types),                         cmocka_unit_test(int4_wraps_to_four_bits),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
