/*
 * half.h - half, bfloat16_t and int4b_t as C++ classes.
 *
 * half is IEEE binary16 with arithmetic done in float and rounded to nearest even after every operation. bfloat16_t is the
 * upper half of a float. Both are two bytes and trivially copyable; their default constructor leaves them uninitialised.
 */
#ifndef DOPPEL_ASCENDC_HALF_H
#define DOPPEL_ASCENDC_HALF_H

#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace doppel {

/* Everything is constexpr, so that kernels may have constexpr half constants; the hardware conversion serves run time. */
constexpr float float_of_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
constexpr uint32_t bits_of_float(float f) { return __builtin_bit_cast(uint32_t, f); }

#if defined(__F16C__)
inline float hardware_float_of_half(uint16_t h) { return _cvtsh_ss(h); }
inline uint16_t hardware_half_of_float(float f) { return static_cast<uint16_t>(_cvtss_sh(f, 0)); }
#endif

constexpr float float_of_half(uint16_t h) {
#if defined(__F16C__)
    if (!__builtin_is_constant_evaluated())
        return hardware_float_of_half(h);
#endif
    uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;
    if (exponent == 31u)
        return float_of_bits(sign | 0x7f800000u | (fraction << 13) | (fraction ? 0x400000u : 0u));
    if (exponent == 0u)
        return float_of_bits(sign | bits_of_float(static_cast<float>(fraction) * 0x1p-24f));
    return float_of_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

constexpr uint16_t half_of_float(float f) {
#if defined(__F16C__)
    if (!__builtin_is_constant_evaluated())
        return hardware_half_of_float(f);
#endif
    uint32_t x = bits_of_float(f), sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u)
        return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) /* subnormal or zero: the float adder rounds at 2^-24 */
        return static_cast<uint16_t>(sign | (bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000u));
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float float_of_bfloat16(uint16_t b) { return float_of_bits(static_cast<uint32_t>(b) << 16); }

constexpr uint16_t bfloat16_of_float(float f) {
    uint32_t x = bits_of_float(f);
    if ((x & 0x7fffffffu) > 0x7f800000u)
        return static_cast<uint16_t>((x >> 16) | 0x0040u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

/* A double rounded once: going through float would round twice at ties, so round to odd on the way. */
constexpr float float_odd_of_double(double d) {
    float f = static_cast<float>(d);
    double back = static_cast<double>(f);
    if (back == d || d != d || f - f != 0.0f)
        return f;
    uint32_t bits = bits_of_float(f);
    if ((back > d) == (d > 0)) /* rounded away from zero: step back, then make it odd */
        bits -= 1;
    return float_of_bits(bits | 1u);
}

template <typename T>
using if_arithmetic = std::enable_if_t<std::is_arithmetic<T>::value || std::is_enum<T>::value, int>;

} // namespace doppel

class half {
public:
    half() = default;
    template <typename T, doppel::if_arithmetic<T> = 0>
    constexpr half(T value) : bits_(from(value)) {}

    /* One implicit conversion only, so that mixed arithmetic is never ambiguous; every other type goes through float. */
    constexpr operator float() const { return doppel::float_of_half(bits_); }
    constexpr explicit operator bool() const { return (bits_ & 0x7fffu) != 0; }

    static constexpr half from_bits(uint16_t bits) { return half(raw{bits}); }
    constexpr uint16_t bits() const { return bits_; }

    constexpr half operator-() const { return from_bits(static_cast<uint16_t>(bits_ ^ 0x8000u)); }
    constexpr half operator+() const { return *this; }
    half &operator++() { return *this = half(float(*this) + 1.0f); }
    half &operator--() { return *this = half(float(*this) - 1.0f); }
    half operator++(int) {
        half old = *this;
        ++*this;
        return old;
    }
    half operator--(int) {
        half old = *this;
        --*this;
        return old;
    }

private:
    struct raw {
        uint16_t bits;
    };
    constexpr explicit half(raw value) : bits_(value.bits) {}

    /* Wide integers and double are rounded once: through float they would round twice. */
    template <typename T>
    static constexpr uint16_t from(T value) {
        if constexpr (sizeof(T) > 2 && !std::is_same<T, float>::value)
            return doppel::half_of_float(doppel::float_odd_of_double(static_cast<double>(value)));
        else
            return doppel::half_of_float(static_cast<float>(value));
    }
    uint16_t bits_;
};

class bfloat16_t {
public:
    bfloat16_t() = default;
    template <typename T, doppel::if_arithmetic<T> = 0>
    constexpr bfloat16_t(T value) : bits_(from(value)) {}
    constexpr bfloat16_t(half value) : bits_(doppel::bfloat16_of_float(float(value))) {}

    constexpr operator float() const { return doppel::float_of_bfloat16(bits_); }
    constexpr explicit operator bool() const { return (bits_ & 0x7fffu) != 0; }

    static constexpr bfloat16_t from_bits(uint16_t bits) { return bfloat16_t(raw{bits}); }
    constexpr uint16_t bits() const { return bits_; }
    constexpr bfloat16_t operator-() const { return from_bits(static_cast<uint16_t>(bits_ ^ 0x8000u)); }

private:
    struct raw {
        uint16_t bits;
    };
    constexpr explicit bfloat16_t(raw value) : bits_(value.bits) {}

    template <typename T>
    static constexpr uint16_t from(T value) {
        if constexpr (sizeof(T) > 2 && !std::is_same<T, float>::value)
            return doppel::bfloat16_of_float(doppel::float_odd_of_double(static_cast<double>(value)));
        else
            return doppel::bfloat16_of_float(static_cast<float>(value));
    }
    uint16_t bits_;
};

/*
 * Arithmetic: half with half or an integer gives half; half with float or double gives that type. Compound assignment
 * rounds back to the 16-bit type.
 */
#define DP_HALF_OPERATOR(type, op)                                                                                    \
    constexpr type operator op(type a, type b) { return type(float(a) op float(b)); }                                 \
    template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                                    \
    constexpr auto operator op(type a, T b) {                                                                         \
        if constexpr (std::is_floating_point<T>::value)                                                               \
            return float(a) op b;                                                                                     \
        else                                                                                                          \
            return type(float(a) op float(type(b)));                                                                  \
    }                                                                                                                 \
    template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                                    \
    constexpr auto operator op(T a, type b) {                                                                         \
        if constexpr (std::is_floating_point<T>::value)                                                               \
            return a op float(b);                                                                                     \
        else                                                                                                          \
            return type(float(type(a)) op float(b));                                                                  \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    constexpr type &operator op##=(type &a, const T &b) {                                                             \
        return a = type(float(a) op static_cast<float>(b));                                                           \
    }
DP_HALF_OPERATOR(half, +)
DP_HALF_OPERATOR(half, -)
DP_HALF_OPERATOR(half, *)
DP_HALF_OPERATOR(half, /)
DP_HALF_OPERATOR(bfloat16_t, +)
DP_HALF_OPERATOR(bfloat16_t, -)
DP_HALF_OPERATOR(bfloat16_t, *)
DP_HALF_OPERATOR(bfloat16_t, /)
#undef DP_HALF_OPERATOR

/* Comparisons go through float: exact, and NaN compares as it should. */
#define DP_HALF_COMPARE(type, op)                                                                                     \
    constexpr bool operator op(type a, type b) { return float(a) op float(b); }                                          \
    template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                                    \
    constexpr bool operator op(type a, T b) {                                                                            \
        return float(a) op b;                                                                                         \
    }                                                                                                                 \
    template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>                                    \
    constexpr bool operator op(T a, type b) {                                                                            \
        return a op float(b);                                                                                         \
    }
DP_HALF_COMPARE(half, ==)
DP_HALF_COMPARE(half, !=)
DP_HALF_COMPARE(half, <)
DP_HALF_COMPARE(half, >)
DP_HALF_COMPARE(half, <=)
DP_HALF_COMPARE(half, >=)
DP_HALF_COMPARE(bfloat16_t, ==)
DP_HALF_COMPARE(bfloat16_t, !=)
DP_HALF_COMPARE(bfloat16_t, <)
DP_HALF_COMPARE(bfloat16_t, >)
DP_HALF_COMPARE(bfloat16_t, <=)
DP_HALF_COMPARE(bfloat16_t, >=)
#undef DP_HALF_COMPARE

static_assert(sizeof(half) == 2 && std::is_trivially_copyable<half>::value, "half is two plain bytes");
static_assert(sizeof(bfloat16_t) == 2 && std::is_trivially_copyable<bfloat16_t>::value, "bfloat16_t is two plain bytes");

namespace std {
template <>
class numeric_limits<half> : public numeric_limits<float> {
public:
    static constexpr int digits = 11, digits10 = 3, max_exponent = 16, min_exponent = -13;
    static constexpr half max() noexcept { return half::from_bits(0x7bff); }
    static constexpr half lowest() noexcept { return half::from_bits(0xfbff); }
    static constexpr half min() noexcept { return half::from_bits(0x0400); }
    static constexpr half epsilon() noexcept { return half::from_bits(0x1400); }
    static constexpr half infinity() noexcept { return half::from_bits(0x7c00); }
    static constexpr half quiet_NaN() noexcept { return half::from_bits(0x7e00); }
};
} // namespace std

namespace AscendC {

/* A signed 4-bit number. Tensors of it hold two per byte, low nibble first; a single value occupies one byte. */
class int4b_t {
public:
    int4b_t() = default;
    template <typename T, doppel::if_arithmetic<T> = 0>
    int4b_t(T value) : nibble_(static_cast<int8_t>(static_cast<int8_t>(static_cast<unsigned>(value) << 4) >> 4)) {}
    operator int() const { return nibble_; }

private:
    int8_t nibble_;
};

} // namespace AscendC

/* Two 4-bit numbers as the C API names them. */
struct int4x2_t {
    uint8_t pair;
};

#endif
