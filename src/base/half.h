/*
 * half.h - scalar conversions between float, IEEE binary16 and bfloat16, for references and cold paths.
 * Round to nearest, ties to even. NaN stays NaN (quiet), overflow becomes infinity. Exact inverse in the widening direction.
 */
#ifndef DOPPEL_BASE_HALF_H
#define DOPPEL_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float dp_f32_from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t dp_f32_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float dp_f32_from_bf16(uint16_t b) { return dp_f32_from_bits((uint32_t)b << 16); }

static inline uint16_t dp_bf16_from_f32(float f) {
    uint32_t x = dp_f32_bits(f);
    if ((x & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((x >> 16) | 0x0040u);
    return (uint16_t)((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

static inline float dp_f32_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;
    if (exponent == 31u)
        return dp_f32_from_bits(sign | 0x7f800000u | (fraction << 13) | (fraction ? 0x400000u : 0));
    if (exponent == 0u) {
        float magnitude = (float)fraction * 0x1p-24f;
        return dp_f32_from_bits(sign | dp_f32_bits(magnitude));
    }
    return dp_f32_from_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

static inline uint16_t dp_f16_from_f32(float f) {
    uint32_t x = dp_f32_bits(f), sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* rounds past 65504 */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* subnormal or zero: let the float adder round at 2^-24 */
        float shifted = dp_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (dp_f32_bits(shifted) - 0x3f000000u));
    }
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}

#endif
