/*
 * scalar.h - small computations of the scalar unit.
 */
#ifndef DOPPEL_ASCENDC_SCALAR_H
#define DOPPEL_ASCENDC_SCALAR_H

#include <cmath>

#include "ascendc/tensor.h"

namespace AscendC {

constexpr uint32_t DivCeil(uint32_t a, uint32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }
constexpr uint32_t Ceil(uint32_t a, uint32_t b) { return DivCeil(a, b); }
constexpr uint32_t ConstCeil(uint32_t a, uint32_t b) { return DivCeil(a, b); }
constexpr uint32_t AlignUp(uint32_t a, uint32_t b) { return DivCeil(a, b) * b; }
constexpr int32_t CeilDivision(int32_t num1, int32_t num2) { return num2 == 0 ? 0 : (num1 + num2 - 1) / num2; }

/* Number of 0 or 1 bits. */
template <int countValue>
inline int64_t ScalarGetCountOfValue(uint64_t valueIn) {
    static_assert(countValue == 0 || countValue == 1, "countValue says which bits are counted: 0 or 1");
    int ones = __builtin_popcountll(valueIn);
    return countValue ? ones : 64 - ones;
}
/* 64 for 0. */
inline int64_t ScalarCountLeadingZero(uint64_t valueIn) { return valueIn ? __builtin_clzll(valueIn) : 64; }
/* Position of the first 0 or 1 from the low end; -1 when there is none. */
template <int countValue>
inline int64_t ScalarGetSFFValue(uint64_t valueIn) {
    static_assert(countValue == 0 || countValue == 1, "countValue says which bit is looked for: 0 or 1");
    uint64_t wanted = countValue ? valueIn : ~valueIn;
    return wanted ? __builtin_ctzll(wanted) : -1;
}
/* Bits next to the sign bit that equal it. */
inline int64_t CountBitsCntSameAsSignBit(int64_t valueIn) { return __builtin_clrsbll(valueIn); }

/* float to half (ODD), float to int32 (ROUND, CEIL, FLOOR, RINT; saturating, NaN gives 0). */
template <typename srcT, typename dstT, RoundMode roundMode>
inline dstT ScalarCast(srcT valueIn) {
    static_assert(std::is_same<srcT, float>::value, "ScalarCast converts float");
    if constexpr (std::is_same<dstT, half>::value) {
        static_assert(roundMode == RoundMode::CAST_ODD, "ScalarCast from float to half rounds with CAST_ODD only");
        uint32_t bits = doppel::bits_of_float(valueIn), magnitude = bits & 0x7fffffffu;
        uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
        if (magnitude >= 0x7f800000u)
            return half(valueIn);
        if (magnitude >= 0x47800000u) /* beyond the largest half: the odd neighbour below infinity */
            return half::from_bits(static_cast<uint16_t>(sign | 0x7bffu));
        /* truncate to the grid of half, then set the last bit if anything was lost */
        float down = magnitude < 0x38800000u ? std::trunc(doppel::float_of_bits(magnitude) * 0x1p24f) * 0x1p-24f
                                             : doppel::float_of_bits(magnitude & ~0x1fffu);
        uint16_t h = doppel::half_of_float(down);
        if (down != doppel::float_of_bits(magnitude))
            h |= 1;
        return half::from_bits(static_cast<uint16_t>(sign | h));
    } else {
        static_assert(std::is_same<dstT, int32_t>::value, "ScalarCast converts float to half or to int32_t");
        static_assert(roundMode == RoundMode::CAST_ROUND || roundMode == RoundMode::CAST_CEIL ||
                          roundMode == RoundMode::CAST_FLOOR || roundMode == RoundMode::CAST_RINT,
                      "ScalarCast from float to int32_t rounds with CAST_ROUND, CAST_CEIL, CAST_FLOOR or CAST_RINT");
        double wide = valueIn;
        double whole = roundMode == RoundMode::CAST_ROUND   ? std::round(wide)
                       : roundMode == RoundMode::CAST_CEIL  ? std::ceil(wide)
                       : roundMode == RoundMode::CAST_FLOOR ? std::floor(wide)
                                                            : std::nearbyint(wide);
        return whole != whole ? 0 : whole >= 2147483647.0 ? INT32_MAX : whole <= -2147483648.0 ? INT32_MIN
                                                                                             : static_cast<int32_t>(whole);
    }
}

inline uint64_t GetShapeSize(const ShapeInfo &info) {
    uint64_t size = info.shapeDim ? 1 : 0;
    for (unsigned i = 0; i < info.shapeDim && i < K_MAX_SHAPE_DIM; i++)
        size *= info.shape[i];
    return size;
}

#define ASCENDC_SHAPE(n, ...) n, (const uint32_t[n]) { __VA_ARGS__ }

} // namespace AscendC

#endif
