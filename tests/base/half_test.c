/* Scalar half and bfloat16 conversions: every 16-bit pattern round-trips, and rounding is to nearest even. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/half.h"

static void every_half_round_trips(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = dp_f32_from_f16((uint16_t)h);
        uint16_t back = dp_f16_from_f32(f);
        if (isnan(f))
            assert_true(isnan(dp_f32_from_f16(back)));
        else
            assert_int_equal(back, h);
    }
}

/* Nearest half of a value by search over all halves: independent of the bit tricks under test. */
static void rounding_is_to_nearest_even(void **state) {
    (void)state;
    srand(7);
    for (int i = 0; i < 200000; i++) {
        uint16_t low = (uint16_t)(rand() % 0x7bff);
        double a = dp_f32_from_f16(low), b = dp_f32_from_f16((uint16_t)(low + 1));
        double t = (i % 3 == 0) ? 0.5 : (double)rand() / RAND_MAX;
        float x = (float)(a + (b - a) * t);
        double da = fabs((double)x - a), db = fabs(b - (double)x);
        uint16_t expect = da < db || (da == db && !(low & 1)) ? low : (uint16_t)(low + 1);
        assert_int_equal(dp_f16_from_f32(x), expect);
        assert_int_equal(dp_f16_from_f32(-x), expect | 0x8000);
    }
    assert_int_equal(dp_f16_from_f32(65519.0f), 0x7bff);
    assert_int_equal(dp_f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(dp_f16_from_f32(INFINITY), 0x7c00);
}

static void bfloat16_rounds_to_nearest_even(void **state) {
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {
        float f = dp_f32_from_bf16((uint16_t)b);
        if (!isnan(f))
            assert_int_equal(dp_bf16_from_f32(f), b);
    }
    assert_int_equal(dp_bf16_from_f32(dp_f32_from_bits(0x3f808000)), 0x3f80); /* tie to even */
    assert_int_equal(dp_bf16_from_f32(dp_f32_from_bits(0x3f818000)), 0x3f82);
    assert_true(isnan(dp_f32_from_bf16(dp_bf16_from_f32(NAN))));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_round_trips),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(bfloat16_rounds_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
