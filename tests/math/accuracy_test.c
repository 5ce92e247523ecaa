/*
 * Error of the transcendental functions in units of the last place, against the C library in double: a sweep over all bit
 * patterns with a prime stride, every float near the critical places, and every half. Prints the table of docs/numerics.md.
 */
#include "numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { CHUNK = 4096 };

typedef struct function {
    const char *name;
    int op;
    double (*exact)(double);
    double bound_ulp;
} function;

static double rsqrt_exact(double x) { return 1 / sqrt(x); }
static double reciprocal_exact(double x) { return 1 / x; }
static double ln_exact(double x) { return x < 0 ? NAN : log(x); }
static const function functions[] = {
    {"Exp", DP_MATH_EXP, exp, 1.25},        {"Ln", DP_MATH_LN, ln_exact, 1.0},
    {"Sqrt", DP_MATH_SQRT, sqrt, 0.5},     {"Rsqrt", DP_MATH_RSQRT, rsqrt_exact, 1.5},
    {"Reciprocal", DP_MATH_RECIPROCAL, reciprocal_exact, 0.5},
};

/* |got - exact| in units of the last place of a format at the exact value; a wrong special value counts as huge */
static double error_ulp(double got, double exact, int digits, int least_exponent, double greatest) {
    if (isnan(exact))
        return isnan(got) ? 0 : 1e9;
    int e = exact == 0 || isinf(exact) ? least_exponent : ilogb(exact);
    double ulp = ldexp(1, (e < least_exponent ? least_exponent : e) - digits + 1), edge = greatest + ulp / 2;
    if (isinf(got))
        return signbit(got) == signbit(exact) && fabs(exact) >= (isinf(exact) ? 0 : greatest) ? 0 : 1e9;
    if (isinf(exact) || fabs(exact) >= edge)
        return 1e9;
    if (exact == 0 && signbit(got) != signbit(exact))
        return 1e9;
    return fabs(got - exact) / ulp;
}

typedef struct worst {
    double ulp, at;
} worst;

static void measure(const function *f, const float *x, size_t n, worst *out_worst) {
    static _Alignas(64) float got[CHUNK];
    dp_math_current()->unary[f->op][DP_F32](got, x, n);
    for (size_t i = 0; i < n; i++) {
        double ulp = error_ulp(got[i], f->exact(x[i]), 24, -126, 0x1.fffffep127);
        if (ulp > out_worst->ulp)
            *out_worst = (worst){ulp, x[i]};
    }
}

static void sweep(const function *f, uint32_t first, uint32_t last, uint32_t stride, worst *out_worst) {
    static _Alignas(64) float x[CHUNK];
    size_t n = 0;
    for (uint64_t bits = first; bits <= last; bits += stride) {
        x[n++] = (float)decoded((uint32_t)bits, format_of(DP_F32));
        if (n == CHUNK || bits + stride > last) {
            measure(f, x, n, out_worst);
            n = 0;
        }
    }
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void float_errors(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const function *f = &functions[k];
        worst w = {0, 0};
        sweep(f, 0, 0xffffffffu, 3989, &w);
        const float places[] = {0, 0x1p-126f, 1, 0.70710678f, 1.41421356f, 88.72283f, -87.33654f, -103.97208f, 0.34657359f, -0.34657359f,
                                INFINITY, -INFINITY};
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            uint32_t bits = bits_of(places[p]), from = (bits & 0x7fffffff) < 3000 ? bits : bits - 3000;
            sweep(f, from, bits + 3000, 1, &w);
        }
        sweep(f, bits_of(0.5f), bits_of(2.0f), 37, &w);
        if (f->op == DP_MATH_EXP) {
            sweep(f, bits_of(1.0f), bits_of(89.0f), 101, &w);
            sweep(f, bits_of(-1.0f), bits_of(-104.0f), 101, &w);
        }
        printf("float  %-10s %.3f ulp at %a\n", f->name, w.ulp, w.at);
        if (w.ulp > f->bound_ulp)
            fail_msg("%s: %.3f ulp at %a, allowed %.3f", f->name, w.ulp, w.at, f->bound_ulp);
    }
}

static void half_errors(void **state) {
    (void)state;
    static _Alignas(64) uint16_t all[65536], got[65536];
    for (size_t i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        worst w = {0, 0};
        int not_nearest = 0;
        dp_math_current()->unary[functions[k].op][DP_F16](got, all, 65536);
        for (size_t i = 0; i < 65536; i++) {
            double exact = functions[k].exact((double)decoded(all[i], format_of(DP_F16)));
            double ulp = error_ulp((double)decoded(got[i], format_of(DP_F16)), exact, 11, -14, 65504);
            not_nearest += !same_element(DP_F16, got[i], converted(DP_F16, exact, DP_ROUND_RINT));
            if (ulp > w.ulp)
                w = (worst){ulp, (double)decoded(all[i], format_of(DP_F16))};
        }
        printf("half   %-10s %.4f ulp at %a, %d of 65536 not the nearest\n", functions[k].name, w.ulp, w.at, not_nearest);
        assert_true(w.ulp <= 0.51);
        assert_true(not_nearest <= 16);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(float_errors), cmocka_unit_test(half_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
