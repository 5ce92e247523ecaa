/*
 * cast.c - conversions among half, bfloat16, float and integers up to 32 bits, in all rounding modes, saturating.
 * int4 with floats goes through int8. uint32, 64 bits, int4 with integers: cast_wide.c.
 */
#include "math/rounding.h"

#define DP_CAST(name, load, source, store, target, formula)                                                            \
    static __attribute__((noinline)) void name(void *dst, const void *a, size_t n) {                                   \
        DP_LANE_LOOP(n, load x = load##_load_##source(a, i); store##_store_##target(dst, i, formula),                  \
                     load x = load##_load_##source##_n(a, i, rest); store##_store_##target##_n(dst, i, rest, formula)) \
    }

/*
 * Without lanes of 16-bit floats every loop would carry a conversion in plain code, a hundred times over: there, conversions go by way of
 * floats that stay in the first cache. The results are the same, as widening loses nothing.
 */
enum { CHUNK = 256 };
#define DP_CAST_VIA(name, first, source_bytes, second, target_bytes)                                                    \
    static void name(void *dst, const void *a, size_t n) {                                                             \
        float part[CHUNK];                                                                                             \
        for (size_t i = 0; i < n; i += CHUNK) {                                                                        \
            size_t count = n - i < CHUNK ? n - i : CHUNK;                                                              \
            first(part, (const uint8_t *)a + i * (source_bytes), count);                                               \
            second((uint8_t *)dst + i * (target_bytes), part, count);                                                  \
        }                                                                                                              \
    }

/* conversions that lose something: one per mode; NONE takes the nearest even one */
#define DP_FLOAT_TO_INTEGERS(source, mode)                                                                             \
    DP_CAST(source##_i8_##mode, vf, source, vi, i8, saturate_float(integral_##mode(x), -128, 127))                     \
    DP_CAST(source##_u8_##mode, vf, source, vi, i8, saturate_float(integral_##mode(x), 0, 255))                        \
    DP_CAST(source##_i16_##mode, vf, source, vi, i16, saturate_float(integral_##mode(x), -32768, 32767))               \
    DP_CAST(source##_u16_##mode, vf, source, vi, i16, saturate_float(integral_##mode(x), 0, 65535))                    \
    DP_CAST(source##_i32_##mode, vf, source, vi, i32, saturate_i32(integral_##mode(x)))
#define DP_ALL_MODES(rule, ...)                                                                                        \
    rule(__VA_ARGS__, rint) rule(__VA_ARGS__, floor) rule(__VA_ARGS__, ceil) rule(__VA_ARGS__, round)                  \
        rule(__VA_ARGS__, trunc) rule(__VA_ARGS__, odd)
#define DP_DIRECTED_MODES(rule, ...)                                                                                   \
    rule(__VA_ARGS__, floor) rule(__VA_ARGS__, ceil) rule(__VA_ARGS__, round) rule(__VA_ARGS__, trunc)                 \
        rule(__VA_ARGS__, odd)

#define DP_FLOAT_TO_INTEGERS_VIA(source, mode)                                                                         \
    DP_CAST_VIA(source##_i8_##mode, source##_f32, 2, f32_i8_##mode, 1)                                                 \
    DP_CAST_VIA(source##_u8_##mode, source##_f32, 2, f32_u8_##mode, 1)                                                 \
    DP_CAST_VIA(source##_i16_##mode, source##_f32, 2, f32_i16_##mode, 2)                                               \
    DP_CAST_VIA(source##_u16_##mode, source##_f32, 2, f32_u16_##mode, 2)                                               \
    DP_CAST_VIA(source##_i32_##mode, source##_f32, 2, f32_i32_##mode, 4)
#if DP_MATH_RUNG == DP_RUNG_GENERIC
#define DP_HALF_TO_INTEGERS DP_FLOAT_TO_INTEGERS_VIA
#else
#define DP_HALF_TO_INTEGERS DP_FLOAT_TO_INTEGERS
#endif

DP_CAST(f16_f32, vf, f16, vf, f32, x)
DP_CAST(bf16_f32, vf, bf16, vf, f32, x)
DP_ALL_MODES(DP_FLOAT_TO_INTEGERS, f32)
DP_ALL_MODES(DP_HALF_TO_INTEGERS, f16)
DP_ALL_MODES(DP_HALF_TO_INTEGERS, bf16)

/* rounding to an integral value of the same type */
#define DP_TO_INTEGRAL(type, mode) DP_CAST(type##_##type##_##mode, vf, type, vf, type, integral_##mode(x))
DP_ALL_MODES(DP_TO_INTEGRAL, f32)
DP_ALL_MODES(DP_TO_INTEGRAL, f16)
DP_ALL_MODES(DP_TO_INTEGRAL, bf16)

/* NONE loses nothing there: a copy */
static void copy_16(void *dst, const void *a, size_t n) { memmove(dst, a, 2 * n); }
static void copy_32(void *dst, const void *a, size_t n) { memmove(dst, a, 4 * n); }

#define DP_NARROW(source, target, mode) DP_CAST(source##_##target##_##mode, vf, source, vi, i16, target##_##mode(x))
DP_CAST(f32_f16_rint, vf, f32, vf, f16, x)
DP_CAST(bf16_f16_rint, vf, bf16, vf, f16, x)
DP_CAST(f32_bf16_rint, vf, f32, vf, bf16, x)
DP_CAST(f16_bf16_rint, vf, f16, vf, bf16, x)
#define DP_NARROW_VIA(source, target, mode) DP_CAST_VIA(source##_##target##_##mode, source##_f32, 2, f32_##target##_##mode, 2)
#if DP_MATH_RUNG == DP_RUNG_GENERIC
#define DP_NARROW_HALF DP_NARROW_VIA
#else
#define DP_NARROW_HALF DP_NARROW
#endif
DP_DIRECTED_MODES(DP_NARROW, f32, f16)
DP_DIRECTED_MODES(DP_NARROW_HALF, bf16, f16)
DP_DIRECTED_MODES(DP_NARROW, f32, bf16)
DP_DIRECTED_MODES(DP_NARROW_HALF, f16, bf16)

/* integers of 8 and 16 bits are exact in float; int32 goes through float rounded to odd, which a second rounding cannot spoil */
#define DP_FROM_SMALL(source)                                                                                          \
    DP_CAST(source##_f32, vi, source, vf, f32, vf_from_vi(x))                                                          \
    DP_CAST(source##_f16_rint, vi, source, vf, f16, vf_from_vi(x))                                                     \
    DP_CAST(source##_bf16_rint, vi, source, vf, bf16, vf_from_vi(x))                                                   \
    DP_DIRECTED_MODES(DP_FROM_SMALL_MODE, source)
typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
#if DP_MATH_RUNG == DP_RUNG_GENERIC
#define DP_FROM_SMALL_MODE(source, mode)                                                                               \
    DP_CAST_VIA(source##_f16_##mode, source##_f32, sizeof(source), f32_f16_##mode, 2)                                  \
    DP_CAST_VIA(source##_bf16_##mode, source##_f32, sizeof(source), f32_bf16_##mode, 2)
#else
#define DP_FROM_SMALL_MODE(source, mode)                                                                               \
    DP_CAST(source##_f16_##mode, vi, source, vi, i16, f16_##mode(vf_from_vi(x)))                                       \
    DP_CAST(source##_bf16_##mode, vi, source, vi, i16, bf16_##mode(vf_from_vi(x)))
#endif
DP_FROM_SMALL(i8)
DP_FROM_SMALL(u8)
DP_FROM_SMALL(i16)
DP_FROM_SMALL(u16)
#define DP_FROM_I32(source, mode)                                                                                      \
    DP_CAST(source##_f32_##mode, vi, source, vf, f32, f32_##mode(x))
#if DP_MATH_RUNG == DP_RUNG_GENERIC
#define DP_FROM_I32_NARROW(source, mode)                                                                               \
    DP_CAST_VIA(source##_f16_##mode, source##_f32_odd, 4, f32_f16_##mode, 2)                                           \
    DP_CAST_VIA(source##_bf16_##mode, source##_f32_odd, 4, f32_bf16_##mode, 2)
#else
#define DP_FROM_I32_NARROW(source, mode)                                                                               \
    DP_CAST(source##_f16_##mode, vi, source, vi, i16, f16_##mode(f32_odd(x)))                                          \
    DP_CAST(source##_bf16_##mode, vi, source, vi, i16, bf16_##mode(f32_odd(x)))
#endif
DP_ALL_MODES(DP_FROM_I32, i32)
DP_DIRECTED_MODES(DP_FROM_I32_NARROW, i32)
DP_CAST(i32_f16_rint, vi, i32, vf, f16, f32_odd(x))
DP_CAST(i32_bf16_rint, vi, i32, vf, bf16, f32_odd(x))

#define DP_INT_TO_SMALL(source)                                                                                        \
    DP_CAST(source##_i8, vi, source, vi, i8, saturate_int(x, -128, 127))                                               \
    DP_CAST(source##_u8, vi, source, vi, i8, saturate_int(x, 0, 255))                                                  \
    DP_CAST(source##_i16, vi, source, vi, i16, saturate_int(x, -32768, 32767))                                         \
    DP_CAST(source##_u16, vi, source, vi, i16, saturate_int(x, 0, 65535))                                              \
    DP_CAST(source##_i32, vi, source, vi, i32, x)
DP_INT_TO_SMALL(i8)
DP_INT_TO_SMALL(u8)
DP_INT_TO_SMALL(i16)
DP_INT_TO_SMALL(u16)
DP_INT_TO_SMALL(i32)

/* int4: two per byte, the even element in the low nibble; an odd count leaves the last high nibble as it is */
enum { I4_CHUNK = 256 };
static void nibbles_pack(uint8_t *out, const int8_t *in, size_t n) {
    for (size_t i = 0; i < n / 2; i++)
        out[i] = (uint8_t)((in[2 * i] & 15) | (in[2 * i + 1] & 15) << 4);
    if (n & 1)
        out[n / 2] = (uint8_t)((out[n / 2] & 0xf0) | (in[n - 1] & 15));
}
static void nibbles_unpack(int8_t *out, const uint8_t *in, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        out[2 * i] = (int8_t)(((in[i] & 15) ^ 8) - 8);
        out[2 * i + 1] = (int8_t)(((in[i] >> 4) ^ 8) - 8);
    }
    if (n & 1)
        out[n - 1] = (int8_t)(((in[n / 2] & 15) ^ 8) - 8);
}
#define DP_NIBBLE(source, mode) DP_CAST(source##_nibble_##mode, vf, source, vi, i8, saturate_float(integral_##mode(x), -8, 7))
#define DP_NIBBLE_VIA(source, mode) DP_CAST_VIA(source##_nibble_##mode, source##_f32, 2, f32_nibble_##mode, 1)
DP_ALL_MODES(DP_NIBBLE, f32)
#if DP_MATH_RUNG == DP_RUNG_GENERIC
DP_ALL_MODES(DP_NIBBLE_VIA, f16)
DP_ALL_MODES(DP_NIBBLE_VIA, bf16)
#else
DP_ALL_MODES(DP_NIBBLE, f16)
DP_ALL_MODES(DP_NIBBLE, bf16)
#endif
#define DP_TO_I4(source, size_bytes, mode)                                                                             \
    static void source##_i4_##mode(void *dst, const void *a, size_t n) {                                               \
        int8_t part[I4_CHUNK];                                                                                         \
        for (size_t first = 0; first < n; first += I4_CHUNK) {                                                         \
            size_t count = n - first < I4_CHUNK ? n - first : I4_CHUNK;                                                \
            source##_nibble_##mode(part, (const uint8_t *)a + first * (size_bytes), count);                            \
            nibbles_pack((uint8_t *)dst + first / 2, part, count);                                                     \
        }                                                                                                              \
    }
#define DP_FROM_I4(target, size_bytes, from_i8)                                                                        \
    static void i4_##target(void *dst, const void *a, size_t n) {                                                      \
        int8_t part[I4_CHUNK];                                                                                         \
        for (size_t first = 0; first < n; first += I4_CHUNK) {                                                         \
            size_t count = n - first < I4_CHUNK ? n - first : I4_CHUNK;                                                \
            nibbles_unpack(part, (const uint8_t *)a + first / 2, count);                                               \
            from_i8((uint8_t *)dst + first * (size_bytes), part, count);                                               \
        }                                                                                                              \
    }
DP_ALL_MODES(DP_TO_I4, f32, 4)
DP_ALL_MODES(DP_TO_I4, f16, 2)
DP_ALL_MODES(DP_TO_I4, bf16, 2)
DP_FROM_I4(f32, 4, i8_f32)
DP_FROM_I4(f16, 2, i8_f16_rint)
DP_FROM_I4(bf16, 2, i8_bf16_rint)

#define DP_ENTER_MODE(target, source, word, MODE, t, s)                                                                \
    table->cast[target][source][DP_ROUND_##MODE] = s##_##t##_##word;
#define DP_ENTER_MODES(target, source, t, s)                                                                           \
    DP_ENTER_MODE(target, source, rint, NONE, t, s)                                                                    \
    DP_ENTER_MODE(target, source, rint, RINT, t, s)                                                                    \
    DP_ENTER_MODE(target, source, floor, FLOOR, t, s)                                                                  \
    DP_ENTER_MODE(target, source, ceil, CEIL, t, s)                                                                    \
    DP_ENTER_MODE(target, source, round, ROUND, t, s)                                                                  \
    DP_ENTER_MODE(target, source, trunc, TRUNC, t, s)                                                                  \
    DP_ENTER_MODE(target, source, odd, ODD, t, s)
#define DP_ENTER_INTEGERS(source, s)                                                                                   \
    DP_ENTER_MODES(DP_I8, source, i8, s)                                                                               \
    DP_ENTER_MODES(DP_U8, source, u8, s)                                                                               \
    DP_ENTER_MODES(DP_I16, source, i16, s)                                                                             \
    DP_ENTER_MODES(DP_U16, source, u16, s)                                                                             \
    DP_ENTER_MODES(DP_I32, source, i32, s)

static void enter_exact(dp_math *table, dp_dtype target, dp_dtype source, dp_cast_fn fn) {
    for (int mode = 0; mode < DP_ROUND_COUNT; mode++)
        table->cast[target][source][mode] = fn;
}
#define DP_ENTER_SMALL(source, s)                                                                                      \
    enter_exact(table, DP_F32, source, s##_f32);                                                                       \
    DP_ENTER_MODES(DP_F16, source, f16, s)                                                                             \
    DP_ENTER_MODES(DP_BF16, source, bf16, s)
#define DP_ENTER_BETWEEN(source, s)                                                                                    \
    enter_exact(table, DP_I8, source, s##_i8);                                                                         \
    enter_exact(table, DP_U8, source, s##_u8);                                                                         \
    enter_exact(table, DP_I16, source, s##_i16);                                                                       \
    enter_exact(table, DP_U16, source, s##_u16);                                                                       \
    enter_exact(table, DP_I32, source, s##_i32);

void DP_RUNG(dp_math_fill_cast)(dp_math *table) {
    DP_ENTER_INTEGERS(DP_F32, f32)
    DP_ENTER_INTEGERS(DP_F16, f16)
    DP_ENTER_INTEGERS(DP_BF16, bf16)
    DP_ENTER_MODES(DP_F32, DP_F32, f32, f32)
    DP_ENTER_MODES(DP_F16, DP_F16, f16, f16)
    DP_ENTER_MODES(DP_BF16, DP_BF16, bf16, bf16)
    table->cast[DP_F32][DP_F32][DP_ROUND_NONE] = copy_32;
    table->cast[DP_F16][DP_F16][DP_ROUND_NONE] = table->cast[DP_BF16][DP_BF16][DP_ROUND_NONE] = copy_16;
    enter_exact(table, DP_F32, DP_F16, f16_f32);
    enter_exact(table, DP_F32, DP_BF16, bf16_f32);
    DP_ENTER_MODES(DP_F16, DP_F32, f16, f32)
    DP_ENTER_MODES(DP_F16, DP_BF16, f16, bf16)
    DP_ENTER_MODES(DP_BF16, DP_F32, bf16, f32)
    DP_ENTER_MODES(DP_BF16, DP_F16, bf16, f16)
    DP_ENTER_SMALL(DP_I8, i8)
    DP_ENTER_SMALL(DP_U8, u8)
    DP_ENTER_SMALL(DP_I16, i16)
    DP_ENTER_SMALL(DP_U16, u16)
    DP_ENTER_MODES(DP_F32, DP_I32, f32, i32)
    DP_ENTER_MODES(DP_F16, DP_I32, f16, i32)
    DP_ENTER_MODES(DP_BF16, DP_I32, bf16, i32)
    DP_ENTER_MODES(DP_I4, DP_F32, i4, f32)
    DP_ENTER_MODES(DP_I4, DP_F16, i4, f16)
    DP_ENTER_MODES(DP_I4, DP_BF16, i4, bf16)
    enter_exact(table, DP_F32, DP_I4, i4_f32);
    enter_exact(table, DP_F16, DP_I4, i4_f16);
    enter_exact(table, DP_BF16, DP_I4, i4_bf16);
    DP_ENTER_BETWEEN(DP_I8, i8)
    DP_ENTER_BETWEEN(DP_U8, u8)
    DP_ENTER_BETWEEN(DP_I16, i16)
    DP_ENTER_BETWEEN(DP_U16, u16)
    DP_ENTER_BETWEEN(DP_I32, i32)
}
