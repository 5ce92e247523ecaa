/*
 * numbers.h - elements of every type as long double, and back with any rounding mode: the testers' own arithmetic, written
 * without the code under test (scaling and rounding of the quotient instead of bit patterns).
 */
#ifndef DOPPEL_TEST_NUMBERS_H
#define DOPPEL_TEST_NUMBERS_H

#include "math/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct float_format {
    int digits, least_exponent, greatest_exponent; /* value = d.ddd * 2^e */
} float_format;

static inline float_format format_of(dp_dtype t) {
    if (t == DP_F16)
        return (float_format){11, -14, 15};
    return t == DP_BF16 ? (float_format){8, -126, 127} : (float_format){24, -126, 127};
}
static inline bool is_float(dp_dtype t) { return t == DP_F16 || t == DP_BF16 || t == DP_F32; }
static inline bool is_signed(dp_dtype t) { return t == DP_I8 || t == DP_I16 || t == DP_I32 || t == DP_I64 || t == DP_I4; }

/* x * 2^n, exact in a long double. For the everyday n ldexpl would take half of a test's time. */
static inline long double scaled(long double x, int n) {
    if (n < -1022 || n > 1023)
        return ldexpl(x, n);
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return x * power;
}

static inline long double integral(long double x, dp_round mode) {
    long double down = floorl(x), part = x - down, result = down;
    bool even = floorl(down / 2) == down / 2;
    if (part == 0)
        return x;
    switch (mode) {
    case DP_ROUND_FLOOR:
        break;
    case DP_ROUND_CEIL:
        result = down + 1;
        break;
    case DP_ROUND_TRUNC:
        result = x < 0 ? down + 1 : down;
        break;
    case DP_ROUND_ROUND:
        result = part > 0.5L || (part == 0.5L && x > 0) ? down + 1 : down;
        break;
    case DP_ROUND_ODD:
        result = even ? down + 1 : down;
        break;
    default:
        result = part > 0.5L || (part == 0.5L && !even) ? down + 1 : down;
    }
    return copysignl(result, x);
}

/* x rounded to the format, as a value; overflow by the mode's direction */
static inline long double rounded(long double x, float_format f, dp_round mode) {
    if (x == 0 || isnan(x) || isinf(x))
        return x;
    int e;
    frexpl(x, &e);
    e = e - 1 < f.least_exponent ? f.least_exponent : e - 1;
    long double y = scaled(integral(scaled(x, f.digits - 1 - e), mode), e - f.digits + 1);
    long double greatest = scaled(2 - scaled(1, 1 - f.digits), f.greatest_exponent);
    if (fabsl(y) <= greatest)
        return copysignl(y, x);
    bool keep = mode == DP_ROUND_TRUNC || mode == DP_ROUND_ODD || (mode == DP_ROUND_FLOOR && x > 0) ||
                (mode == DP_ROUND_CEIL && x < 0);
    return copysignl(keep ? greatest : INFINITY, x);
}

/* bits of a value that the format holds exactly */
static inline uint32_t encoded(long double x, float_format f) {
    int fraction_bits = f.digits - 1, exponent_bits = f.greatest_exponent == 15 ? 5 : 8;
    uint32_t sign = signbit(x) ? 1u << (fraction_bits + exponent_bits) : 0, top = ((1u << exponent_bits) - 1) << fraction_bits;
    if (isnan(x))
        return top | 1u << (fraction_bits - 1);
    if (isinf(x))
        return sign | top;
    if (x == 0)
        return sign;
    int e;
    frexpl(x, &e);
    e -= 1;
    if (e < f.least_exponent)
        return sign | (uint32_t)scaled(fabsl(x), fraction_bits - f.least_exponent);
    uint32_t fraction = (uint32_t)scaled(fabsl(x), fraction_bits - e) & ((1u << fraction_bits) - 1);
    return sign | (uint32_t)(e + f.greatest_exponent) << fraction_bits | fraction;
}

static inline long double decoded(uint32_t bits, float_format f) {
    int fraction_bits = f.digits - 1, exponent_bits = f.greatest_exponent == 15 ? 5 : 8;
    uint32_t fraction = bits & ((1u << fraction_bits) - 1), e = bits >> fraction_bits & ((1u << exponent_bits) - 1);
    bool negative = bits >> (fraction_bits + exponent_bits) & 1;
    long double size;
    if (e == (1u << exponent_bits) - 1)
        size = fraction ? NAN : INFINITY;
    else if (e == 0)
        size = scaled(fraction, f.least_exponent - fraction_bits);
    else
        size = scaled(fraction | 1u << fraction_bits, (int)e - f.greatest_exponent - fraction_bits);
    return negative ? -size : size;
}

static inline uint64_t element_bits(dp_dtype t, const void *p, size_t i) {
    uint64_t bits = 0;
    if (t == DP_I4)
        return ((const uint8_t *)p)[i / 2] >> (i % 2 * 4) & 15;
    memcpy(&bits, (const char *)p + i * dp_dtype_bits(t) / 8, dp_dtype_bits(t) / 8);
    return bits;
}
static inline void element_set(dp_dtype t, void *p, size_t i, uint64_t bits) {
    uint8_t *byte = (uint8_t *)p + i * dp_dtype_bits(t) / 8;
    if (t == DP_I4)
        *byte = (uint8_t)(i % 2 ? (*byte & 0x0f) | (bits & 15) << 4 : (*byte & 0xf0) | (bits & 15));
    else
        memcpy(byte, &bits, dp_dtype_bits(t) / 8);
}

static inline long double element_value(dp_dtype t, const void *p, size_t i) {
    uint64_t bits = element_bits(t, p, i);
    unsigned width = dp_dtype_bits(t);
    if (is_float(t))
        return decoded((uint32_t)bits, format_of(t));
    if (!is_signed(t))
        return (long double)bits;
    return (long double)((int64_t)(bits << (64 - width)) >> (64 - width));
}

static inline uint64_t converted(dp_dtype t, long double x, dp_round mode) {
    if (is_float(t))
        return encoded(rounded(x, format_of(t), mode), format_of(t));
    if (isnan(x))
        return 0;
    int width = (int)dp_dtype_bits(t);
    long double low = is_signed(t) ? -scaled(1, width - 1) : 0, high = scaled(1, is_signed(t) ? width - 1 : width) - 1;
    x = isinf(x) ? x : integral(x, mode);
    x = x < low ? low : x > high ? high : x;
    uint64_t bits = x < 0 ? 0 - (uint64_t)-x : (uint64_t)x;
    return width == 64 ? bits : bits & ((1ull << width) - 1);
}

/* Two elements mean the same: equal bits, or both NaN. */
static inline bool same_element(dp_dtype t, uint64_t x, uint64_t y) {
    if (x == y)
        return true;
    return is_float(t) && isnan(decoded((uint32_t)x, format_of(t))) && isnan(decoded((uint32_t)y, format_of(t)));
}

static inline uint64_t random_bits(void) {
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

/* A mixture of raw bits, everyday numbers and the values where things go wrong. */
static inline uint64_t adversarial(dp_dtype t) {
    static const double hard[] = {0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 127, 127.5, 128, -128.5, 255.5, 32767.5,
        -32768.5, 65504, 65519.99, 65520, 65535.5, 65536, 2147483520, 2147483647.5, -2147483648.0, 4294967296.0, 9.3e18, -9.3e18,
        1e-40, -1e-40, 6e-8, 2.98e-8, 6.1e-5, 3.4e38, -3.4e38, 88.72, 88.73, -87.4, -103.9, -104, 11.09, -17.4, INFINITY, -INFINITY, NAN};
    uint64_t choice = random_bits() % 8, bits = random_bits();
    if (!is_float(t)) {
        unsigned width = dp_dtype_bits(t);
        uint64_t all = width == 64 ? ~0ull : (1ull << width) - 1, top = 1ull << (width - 1);
        uint64_t edges[] = {0, 1, all, top, top - 1, top + 1, all >> 1, 2};
        if (choice == 0)
            return edges[bits % 8] & all;
        if (choice < 4)
            return (uint64_t)((int64_t)bits >> (40 + bits % 23)) & all;
        return bits & all;
    }
    if (choice == 0)
        return converted(t, hard[bits % (sizeof hard / sizeof *hard)], DP_ROUND_RINT);
    if (choice < 3)
        return bits & (t == DP_F32 ? 0xffffffffu : 0xffffu);
    if (choice < 5)
        return converted(t, (long double)((int64_t)bits >> 44) / 8, DP_ROUND_RINT);
    return converted(t, (long double)(int64_t)bits * 0x1p-63L * scaled(1, (int)(bits & 15) - 4), DP_ROUND_RINT);
}
static inline void adversarial_fill(dp_dtype t, void *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        element_set(t, p, i, adversarial(t));
}
static inline size_t elements_size(dp_dtype t, size_t n) { return (n * dp_dtype_bits(t) + 7) / 8; }

static inline const char *dtype_name(dp_dtype t) {
    static const char *const names[] = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                                        "half", "bfloat16", "float", "double", "int4"};
    return names[t];
}

#endif
