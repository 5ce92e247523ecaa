/* cast_wide.c - conversions with uint32 and 64-bit integers, int4 with integers; plain C in every rung. */
#include "math/rounding.h"

/* ---- floats and wide integers ---- */

/* x to float: the leading 24 bits of the magnitude, and what is below them decides. */
static float float_of_wide(uint64_t magnitude, bool negative, dp_round mode) {
    if (magnitude >> 24 == 0)
        return negative ? -(float)magnitude : (float)magnitude;
    int shift = 40 - __builtin_clzll(magnitude);
    uint64_t kept = magnitude >> shift, rest = magnitude - (kept << shift), tie = shift ? (uint64_t)1 << (shift - 1) : 0;
    if (rest) {
        switch (mode) {
        case DP_ROUND_NONE:
        case DP_ROUND_RINT:
            kept += rest > tie || (rest == tie && (kept & 1));
            break;
        case DP_ROUND_ROUND:
            kept += rest >= tie;
            break;
        case DP_ROUND_FLOOR:
            kept += negative;
            break;
        case DP_ROUND_CEIL:
            kept += !negative;
            break;
        case DP_ROUND_ODD:
            kept |= 1;
            break;
        default: /* TRUNC */
            break;
        }
    }
    float size = (float)kept * dp_f32_from_bits((uint32_t)(127 + shift) << 23);
    return negative ? -size : size;
}

#define DP_MAGNITUDE_SIGNED(x) ((x) < 0 ? 0 - (uint64_t)(x) : (uint64_t)(x))
#define DP_MAGNITUDE_UNSIGNED(x) ((uint64_t)(x))
#define DP_NEGATIVE_SIGNED(x) ((x) < 0)
#define DP_NEGATIVE_UNSIGNED(x) false
/* Two roundings to the 16-bit formats are one when the first is to odd. */
#define DP_WIDE_TO_FLOATS(T, sign, mode, MODE)                                                                         \
    static void T##_f32_##mode(void *dst, const void *a, size_t n) {                                                   \
        const T *in = a;                                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                 \
            ((float *)dst)[i] = float_of_wide(DP_MAGNITUDE_##sign(in[i]), DP_NEGATIVE_##sign(in[i]), MODE);            \
    }                                                                                                                  \
    static void T##_f16_##mode(void *dst, const void *a, size_t n) {                                                   \
        const T *in = a;                                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                 \
            ((uint16_t *)dst)[i] = (uint16_t)f16_##mode(                                                               \
                float_of_wide(DP_MAGNITUDE_##sign(in[i]), DP_NEGATIVE_##sign(in[i]), DP_ROUND_ODD));                   \
    }                                                                                                                  \
    static void T##_bf16_##mode(void *dst, const void *a, size_t n) {                                                  \
        const T *in = a;                                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                 \
            ((uint16_t *)dst)[i] = (uint16_t)bf16_##mode(                                                              \
                float_of_wide(DP_MAGNITUDE_##sign(in[i]), DP_NEGATIVE_##sign(in[i]), DP_ROUND_ODD));                   \
    }

/* low is the least value as a float, limit the first power of two beyond the greatest */
#define DP_FLOAT_TO_WIDE(source, T, mode, low, limit, least, greatest)                                                 \
    static void source##_##T##_##mode(void *dst, const void *a, size_t n) {                                            \
        for (size_t i = 0; i < n; i++) {                                                                               \
            float x = integral_##mode(vf_load_##source(a, i));                                                         \
            ((T *)dst)[i] = x != x ? 0 : x <= (low) ? (least) : x >= (limit) ? (greatest) : (T)x;                      \
        }                                                                                                              \
    }

DP_INLINE vi f16_rint(vf x) { return dp_f16_from_f32(x); }
DP_INLINE vi bf16_rint(vf x) { return dp_bf16_from_f32(x); }

#define DP_WIDE_MODE(mode, MODE)                                                                                       \
    DP_WIDE_TO_FLOATS(int64_t, SIGNED, mode, MODE)                                                                     \
    DP_WIDE_TO_FLOATS(uint64_t, UNSIGNED, mode, MODE)                                                                  \
    DP_WIDE_TO_FLOATS(uint32_t, UNSIGNED, mode, MODE)                                                                  \
    DP_WIDE_FROM(f32, mode)                                                                                            \
    DP_WIDE_FROM(f16, mode)                                                                                            \
    DP_WIDE_FROM(bf16, mode)
#define DP_WIDE_FROM(source, mode)                                                                                     \
    DP_FLOAT_TO_WIDE(source, int64_t, mode, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)                                   \
    DP_FLOAT_TO_WIDE(source, uint64_t, mode, 0.0f, 0x1p64f, 0, UINT64_MAX)                                             \
    DP_FLOAT_TO_WIDE(source, uint32_t, mode, 0.0f, 0x1p32f, 0, UINT32_MAX)
DP_WIDE_MODE(rint, DP_ROUND_RINT)
DP_WIDE_MODE(floor, DP_ROUND_FLOOR)
DP_WIDE_MODE(ceil, DP_ROUND_CEIL)
DP_WIDE_MODE(round, DP_ROUND_ROUND)
DP_WIDE_MODE(trunc, DP_ROUND_TRUNC)
DP_WIDE_MODE(odd, DP_ROUND_ODD)

/* ---- integers ---- */

DP_INLINE int64_t clamp_signed(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }
DP_INLINE uint64_t clamp_unsigned(uint64_t x, uint64_t high) { return x > high ? high : x; }

#define DP_INT_CAST(S, T, clamp, ...)                                                                                  \
    static void S##_to_##T(void *dst, const void *a, size_t n) {                                                       \
        T *out = dst;                                                                                                  \
        const S *in = a;                                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = (T)clamp(in[i], __VA_ARGS__);                                                                     \
    }
#define DP_FROM_SIGNED(S)                                                                                              \
    DP_INT_CAST(S, int8_t, clamp_signed, INT8_MIN, INT8_MAX)                                                           \
    DP_INT_CAST(S, uint8_t, clamp_signed, 0, UINT8_MAX)                                                                \
    DP_INT_CAST(S, int16_t, clamp_signed, INT16_MIN, INT16_MAX)                                                        \
    DP_INT_CAST(S, uint16_t, clamp_signed, 0, UINT16_MAX)                                                              \
    DP_INT_CAST(S, int32_t, clamp_signed, INT32_MIN, INT32_MAX)                                                        \
    DP_INT_CAST(S, uint32_t, clamp_signed, 0, UINT32_MAX)                                                              \
    DP_INT_CAST(S, int64_t, clamp_signed, INT64_MIN, INT64_MAX)                                                        \
    DP_INT_CAST(S, uint64_t, clamp_signed, 0, INT64_MAX)
#define DP_FROM_UNSIGNED(S)                                                                                            \
    DP_INT_CAST(S, int8_t, clamp_unsigned, INT8_MAX)                                                                   \
    DP_INT_CAST(S, uint8_t, clamp_unsigned, UINT8_MAX)                                                                 \
    DP_INT_CAST(S, int16_t, clamp_unsigned, INT16_MAX)                                                                 \
    DP_INT_CAST(S, uint16_t, clamp_unsigned, UINT16_MAX)                                                               \
    DP_INT_CAST(S, int32_t, clamp_unsigned, INT32_MAX)                                                                 \
    DP_INT_CAST(S, uint32_t, clamp_unsigned, UINT32_MAX)                                                               \
    DP_INT_CAST(S, int64_t, clamp_unsigned, INT64_MAX)                                                                 \
    DP_INT_CAST(S, uint64_t, clamp_unsigned, UINT64_MAX)
DP_FROM_SIGNED(int64_t)
DP_FROM_UNSIGNED(uint64_t)
DP_FROM_UNSIGNED(uint32_t)
#define DP_TO_WIDE(S)                                                                                                  \
    DP_INT_CAST(S, uint32_t, clamp_signed, 0, UINT32_MAX)                                                              \
    DP_INT_CAST(S, int64_t, clamp_signed, INT64_MIN, INT64_MAX)                                                        \
    DP_INT_CAST(S, uint64_t, clamp_signed, 0, INT64_MAX)
DP_TO_WIDE(int8_t)
DP_TO_WIDE(uint8_t)
DP_TO_WIDE(int16_t)
DP_TO_WIDE(uint16_t)
DP_TO_WIDE(int32_t)

/* ---- int4: two per byte, the even element in the low nibble; an odd count leaves the last high nibble as it is ---- */

DP_INLINE int32_t nibble_load(const void *p, size_t i) {
    int32_t nibble = ((const uint8_t *)p)[i >> 1] >> (i & 1 ? 4 : 0) & 15;
    return nibble < 8 ? nibble : nibble - 16;
}
DP_INLINE void nibble_store(void *p, size_t i, int32_t x) {
    uint8_t *byte = (uint8_t *)p + (i >> 1), low = (uint8_t)(x & 15);
    *byte = i & 1 ? (uint8_t)((*byte & 0x0f) | low << 4) : (uint8_t)((*byte & 0xf0) | low);
}
#define DP_FROM_I4(type)                                                                                               \
    static void i4_##type(void *dst, const void *a, size_t n) {                                                        \
        for (size_t i = 0; i < n; i++)                                                                                 \
            vi_store_##type(dst, i, nibble_load(a, i));                                                                \
    }
DP_FROM_I4(i8)
DP_FROM_I4(i16)
DP_FROM_I4(i32)

#define DP_INT_TO_I4(type)                                                                                             \
    static void type##_i4(void *dst, const void *a, size_t n) {                                                        \
        for (size_t i = 0; i < n; i++)                                                                                 \
            nibble_store(dst, i, saturate_int(vi_load_##type(a, i), -8, 7));                                           \
    }
DP_INT_TO_I4(i8)
DP_INT_TO_I4(i16)
DP_INT_TO_I4(i32)

/* ---- table ---- */

#define DP_ENTER_MODES(target, source, name)                                                                           \
    table->cast[target][source][DP_ROUND_NONE] = table->cast[target][source][DP_ROUND_RINT] = name##_rint;             \
    table->cast[target][source][DP_ROUND_FLOOR] = name##_floor;                                                        \
    table->cast[target][source][DP_ROUND_CEIL] = name##_ceil;                                                          \
    table->cast[target][source][DP_ROUND_ROUND] = name##_round;                                                        \
    table->cast[target][source][DP_ROUND_TRUNC] = name##_trunc;                                                        \
    table->cast[target][source][DP_ROUND_ODD] = name##_odd;

static void enter_exact(dp_math *table, dp_dtype target, dp_dtype source, dp_cast_fn fn) {
    for (int mode = 0; mode < DP_ROUND_COUNT; mode++)
        table->cast[target][source][mode] = fn;
}

#define DP_ENTER_WIDE(dtype, T)                                                                                        \
    DP_ENTER_MODES(DP_F32, dtype, T##_f32)                                                                             \
    DP_ENTER_MODES(DP_F16, dtype, T##_f16)                                                                             \
    DP_ENTER_MODES(DP_BF16, dtype, T##_bf16)                                                                           \
    DP_ENTER_MODES(dtype, DP_F32, f32_##T)                                                                             \
    DP_ENTER_MODES(dtype, DP_F16, f16_##T)                                                                             \
    DP_ENTER_MODES(dtype, DP_BF16, bf16_##T)                                                                           \
    enter_exact(table, DP_I8, dtype, T##_to_int8_t);                                                                   \
    enter_exact(table, DP_U8, dtype, T##_to_uint8_t);                                                                  \
    enter_exact(table, DP_I16, dtype, T##_to_int16_t);                                                                 \
    enter_exact(table, DP_U16, dtype, T##_to_uint16_t);                                                                \
    enter_exact(table, DP_I32, dtype, T##_to_int32_t);                                                                 \
    enter_exact(table, DP_U32, dtype, T##_to_uint32_t);                                                                \
    enter_exact(table, DP_I64, dtype, T##_to_int64_t);                                                                 \
    enter_exact(table, DP_U64, dtype, T##_to_uint64_t);

#define DP_ENTER_TO_WIDE(dtype, T)                                                                                     \
    enter_exact(table, DP_U32, dtype, T##_to_uint32_t);                                                                \
    enter_exact(table, DP_I64, dtype, T##_to_int64_t);                                                                 \
    enter_exact(table, DP_U64, dtype, T##_to_uint64_t);

void dp_math_fill_cast_wide_generic(dp_math *table) {
    DP_ENTER_WIDE(DP_I64, int64_t)
    DP_ENTER_WIDE(DP_U64, uint64_t)
    DP_ENTER_WIDE(DP_U32, uint32_t)
    DP_ENTER_TO_WIDE(DP_I8, int8_t)
    DP_ENTER_TO_WIDE(DP_U8, uint8_t)
    DP_ENTER_TO_WIDE(DP_I16, int16_t)
    DP_ENTER_TO_WIDE(DP_U16, uint16_t)
    DP_ENTER_TO_WIDE(DP_I32, int32_t)
    enter_exact(table, DP_I8, DP_I4, i4_i8);
    enter_exact(table, DP_I16, DP_I4, i4_i16);
    enter_exact(table, DP_I32, DP_I4, i4_i32);
    enter_exact(table, DP_I4, DP_I8, i8_i4);
    enter_exact(table, DP_I4, DP_I16, i16_i4);
    enter_exact(table, DP_I4, DP_I32, i32_i4);
}
