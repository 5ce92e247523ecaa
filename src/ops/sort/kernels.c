/*
 * kernels.c - keys and ranks. Compiled once per rung.
 */
#include "ops/sort/kernels.h"

#include <string.h>

#include "ops/rung.h"

/* K is the key's type, U the element's bits; ORDERED makes bits b unsigned in order. */
#define KEYS(name, U, K, ORDERED)                                                                                      \
    static void keys_##name(void *to, const void *raw, size_t n, bool descending) {                                    \
        K *restrict keys = to;                                                                                         \
        const U *restrict bits = raw;                                                                                  \
        const U flip = descending ? (U) ~(U)0 : 0;                                                                     \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const U b = bits[i];                                                                                       \
            keys[i] = (U)((U)(ORDERED) ^ flip);                                                                        \
        }                                                                                                              \
    }
#define TOP(U) ((U)((U)1 << (8 * sizeof(U) - 1)))
/* INF are the bits of infinity: magnitudes beyond it are NaN. Negative numbers are inverted, -0 becomes +0. */
#define FLOATING(U, INF) (U)(b & (U)~TOP(U)) > (U)(INF) ? (U) ~(U)0 : b > TOP(U) ? (U)~b : (U)(b | TOP(U))

KEYS(u8, uint8_t, uint32_t, b)
KEYS(bool, uint8_t, uint32_t, b != 0)
KEYS(i8, uint8_t, uint32_t, b ^ TOP(uint8_t))
KEYS(u16, uint16_t, uint32_t, b)
KEYS(i16, uint16_t, uint32_t, b ^ TOP(uint16_t))
KEYS(u32, uint32_t, uint32_t, b)
KEYS(i32, uint32_t, uint32_t, b ^ TOP(uint32_t))
KEYS(u64, uint64_t, uint64_t, b)
KEYS(i64, uint64_t, uint64_t, b ^ TOP(uint64_t))
KEYS(f16, uint16_t, uint32_t, FLOATING(uint16_t, 0x7c00))
KEYS(bf16, uint16_t, uint32_t, FLOATING(uint16_t, 0x7f80))
KEYS(f32, uint32_t, uint32_t, FLOATING(uint32_t, 0x7f800000))
KEYS(f64, uint64_t, uint64_t, FLOATING(uint64_t, 0x7ff0000000000000))

/* Every key is compared with every other: n * n / lanes comparisons without a branch. */
#define RANK(name, U, S)                                                                                               \
    static void name(uint32_t *order, const U *keys, size_t n) {                                                       \
        S signed_keys[DP_RANK_MAX], index[DP_RANK_MAX], rank[DP_RANK_MAX]; /* AVX2 compares signed only */             \
        for (size_t i = 0; i < n; i++) {                                                                               \
            signed_keys[i] = (S)(keys[i] ^ TOP(U));                                                                    \
            index[i] = (S)i;                                                                                           \
            rank[i] = 0;                                                                                               \
        }                                                                                                              \
        for (size_t j = 0; j < n; j++) {                                                                               \
            const S key = signed_keys[j];                                                                              \
            for (size_t i = 0; i < n; i++)                                                                             \
                rank[i] += (key < signed_keys[i]) | ((key == signed_keys[i]) & ((S)j < index[i]));                     \
        }                                                                                                              \
        for (size_t i = 0; i < n; i++)                                                                                 \
            order[rank[i]] = (uint32_t)i;                                                                              \
    }
RANK(rank32, uint32_t, int32_t)
RANK(rank64, uint64_t, int64_t)

void DP_RUNG(dp_sort_fill)(dp_sort_table *table) {
    memset(table, 0, sizeof *table);
    table->keys[DP_U8] = keys_u8;
    table->keys[DP_EL_BOOL] = keys_bool;
    table->keys[DP_I8] = keys_i8;
    table->keys[DP_U16] = keys_u16;
    table->keys[DP_I16] = keys_i16;
    table->keys[DP_U32] = keys_u32;
    table->keys[DP_I32] = keys_i32;
    table->keys[DP_U64] = keys_u64;
    table->keys[DP_I64] = keys_i64;
    table->keys[DP_F16] = keys_f16;
    table->keys[DP_BF16] = keys_bf16;
    table->keys[DP_F32] = keys_f32;
    table->keys[DP_F64] = keys_f64;
    table->rank32 = rank32;
    table->rank64 = rank64;
}
