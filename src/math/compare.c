/* compare.c - the six relations, one result bit per element. With a NaN only "not equal" holds. */
#include "math/vec.h"

/* Results are packed a whole number of bytes at a time. */
#define DP_GROUP (DP_LANES < 8 ? 8 : DP_LANES)

DP_INLINE void bits_put(uint8_t *bits, uint32_t word, size_t count) {
    for (; count >= 8; count -= 8, word >>= 8)
        *bits++ = (uint8_t)word;
    if (count) {
        uint8_t keep = (uint8_t)(0xffu << count);
        *bits = (uint8_t)((*bits & keep) | (word & ~(uint32_t)keep));
    }
}

/* y and y_part give the right side at lane k, whole or the first m lanes */
#define DP_BITS_BODY(v, relation, type, y, y_part)                                                                     \
    size_t i = 0;                                                                                                      \
    for (; i + DP_GROUP <= n; i += DP_GROUP) {                                                                         \
        uint32_t word = 0;                                                                                             \
        for (size_t k = i; k < i + DP_GROUP; k += DP_LANES)                                                            \
            word |= vm_bits(relation(v##_load_##type(a, k), y)) << (k - i);                                            \
        bits_put(bits + i / 8, word, DP_GROUP);                                                                        \
    }                                                                                                                  \
    if (i < n) {                                                                                                       \
        uint32_t word = 0;                                                                                             \
        for (size_t k = i; k < n; k += DP_LANES) {                                                                     \
            size_t m = n - k < DP_LANES ? n - k : DP_LANES;                                                            \
            word |= vm_bits(relation(v##_load_##type##_n(a, k, m), y_part)) << (k - i);                                \
        }                                                                                                              \
        bits_put(bits + i / 8, word, n - i);                                                                           \
    }

#define DP_COMPARE(v, relation, type)                                                                                  \
    static void relation##_##type(uint8_t *bits, const void *a, const void *b, size_t n) {                             \
        DP_BITS_BODY(v, v##_##relation, type, v##_load_##type(b, k), v##_load_##type##_n(b, k, m))                     \
    }                                                                                                                  \
    static void relation##_scalar_##type(uint8_t *bits, const void *a, const void *b, size_t n) {                      \
        v right = v##_spread_##type(b);                                                                                \
        DP_BITS_BODY(v, v##_##relation, type, right, right)                                                            \
    }

/* uint32 is compared as int32 with the top bit turned */
DP_INLINE vi vi_load_u32(const void *p, size_t i) { return vi_load_i32(p, i) ^ INT32_MIN; }
DP_INLINE vi vi_load_u32_n(const void *p, size_t i, size_t n) { return vi_load_i32_n(p, i, n) ^ INT32_MIN; }

#define DP_SPREAD_VF(type, T, widen)                                                                                   \
    DP_INLINE vf vf_spread_##type(const void *p) {                                                                     \
        T x;                                                                                                           \
        memcpy(&x, p, sizeof x);                                                                                       \
        return vf_set(widen(x));                                                                                       \
    }
#define DP_SPREAD_VI(type, T)                                                                                          \
    DP_INLINE vi vi_spread_##type(const void *p) {                                                                     \
        T x;                                                                                                           \
        memcpy(&x, p, sizeof x);                                                                                       \
        return vi_set(x);                                                                                              \
    }
DP_SPREAD_VF(f32, float, )
DP_SPREAD_VF(f16, uint16_t, dp_f32_from_f16)
DP_SPREAD_VF(bf16, uint16_t, dp_f32_from_bf16)
DP_SPREAD_VI(i8, int8_t)
DP_SPREAD_VI(u8, uint8_t)
DP_SPREAD_VI(i16, int16_t)
DP_SPREAD_VI(u16, uint16_t)
DP_SPREAD_VI(i32, int32_t)
DP_INLINE vi vi_spread_u32(const void *p) { return vi_spread_i32(p) ^ INT32_MIN; }

DP_INLINE vm vi_le(vi a, vi b) { return vm_not(vi_gt(a, b)); }
DP_INLINE vm vi_ge(vi a, vi b) { return vm_not(vi_lt(a, b)); }
DP_INLINE vm vi_ne(vi a, vi b) { return vm_not(vi_eq(a, b)); }

/* 64 bits: plain C */
#define DP_COMPARE_64(relation, op, T)                                                                                 \
    static void relation##_##T(uint8_t *bits, const void *a, const void *b, size_t n) {                                \
        for (size_t i = 0; i < n; i += 8) {                                                                            \
            uint32_t word = 0;                                                                                         \
            size_t m = n - i < 8 ? n - i : 8;                                                                          \
            for (size_t k = 0; k < m; k++)                                                                             \
                word |= (uint32_t)(((const T *)a)[i + k] op((const T *)b)[i + k]) << k;                                \
            bits_put(bits + i / 8, word, m);                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void relation##_scalar_##T(uint8_t *bits, const void *a, const void *b, size_t n) {                         \
        T right;                                                                                                       \
        memcpy(&right, b, sizeof right);                                                                               \
        for (size_t i = 0; i < n; i += 8) {                                                                            \
            uint32_t word = 0;                                                                                         \
            size_t m = n - i < 8 ? n - i : 8;                                                                          \
            for (size_t k = 0; k < m; k++)                                                                             \
                word |= (uint32_t)(((const T *)a)[i + k] op right) << k;                                               \
            bits_put(bits + i / 8, word, m);                                                                           \
        }                                                                                                              \
    }

#define DP_ALL_RELATIONS(v, type)                                                                                      \
    DP_COMPARE(v, lt, type)                                                                                            \
    DP_COMPARE(v, gt, type)                                                                                            \
    DP_COMPARE(v, eq, type)                                                                                            \
    DP_COMPARE(v, le, type)                                                                                            \
    DP_COMPARE(v, ge, type)                                                                                            \
    DP_COMPARE(v, ne, type)
#define DP_ALL_RELATIONS_64(T)                                                                                         \
    DP_COMPARE_64(lt, <, T)                                                                                            \
    DP_COMPARE_64(gt, >, T)                                                                                            \
    DP_COMPARE_64(eq, ==, T)                                                                                           \
    DP_COMPARE_64(le, <=, T)                                                                                           \
    DP_COMPARE_64(ge, >=, T)                                                                                           \
    DP_COMPARE_64(ne, !=, T)

DP_ALL_RELATIONS(vf, f32)
DP_ALL_RELATIONS(vf, f16)
DP_ALL_RELATIONS(vf, bf16)
DP_ALL_RELATIONS(vi, i8)
DP_ALL_RELATIONS(vi, u8)
DP_ALL_RELATIONS(vi, i16)
DP_ALL_RELATIONS(vi, u16)
DP_ALL_RELATIONS(vi, i32)
DP_ALL_RELATIONS(vi, u32)
DP_ALL_RELATIONS_64(int64_t)
DP_ALL_RELATIONS_64(uint64_t)

#define DP_ENTER_ONE(dtype, type, relation, RELATION)                                                                  \
    table->compare[DP_CMP_##RELATION][dtype] = relation##_##type;                                                      \
    table->compare_scalar[DP_CMP_##RELATION][dtype] = relation##_scalar_##type;
#define DP_ENTER(dtype, type)                                                                                          \
    DP_ENTER_ONE(dtype, type, lt, LT)                                                                                  \
    DP_ENTER_ONE(dtype, type, gt, GT)                                                                                  \
    DP_ENTER_ONE(dtype, type, eq, EQ)                                                                                  \
    DP_ENTER_ONE(dtype, type, le, LE)                                                                                  \
    DP_ENTER_ONE(dtype, type, ge, GE)                                                                                  \
    DP_ENTER_ONE(dtype, type, ne, NE)

void DP_RUNG(dp_math_fill_compare)(dp_math *table) {
    DP_ENTER(DP_F32, f32)
    DP_ENTER(DP_F16, f16)
    DP_ENTER(DP_BF16, bf16)
    DP_ENTER(DP_I8, i8)
    DP_ENTER(DP_U8, u8)
    DP_ENTER(DP_I16, i16)
    DP_ENTER(DP_U16, u16)
    DP_ENTER(DP_I32, i32)
    DP_ENTER(DP_U32, u32)
    DP_ENTER(DP_I64, int64_t)
    DP_ENTER(DP_U64, uint64_t)
}
