/*
 * kernels.c - the loops of kernels.h. Compiled once per rung.
 */
#include "ops/scatter/kernels.h"

#include <string.h>

#include "base/half.h"
#include "ops/rung.h"

/* S is stored, C computed; READ and WRITE go between them; factor is in C. */
#define LOOPS(name, op, S, C, READ, WRITE, FACTOR, EXPRESSION)                                                         \
    static void at_##op##_##name(void *to, const int64_t *offsets, const void *from, size_t n, dp_factor factor) {     \
        S *d = to;                                                                                                     \
        const S *s = from;                                                                                             \
        const C p = (C)FACTOR;                                                                                         \
        (void)p;                                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const C a = READ(d[offsets[i]]), b = READ(s[i]);                                                           \
            (void)a;                                                                                                   \
            d[offsets[i]] = (S)WRITE(EXPRESSION);                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void row_##op##_##name(void *to, const void *from, size_t n, dp_factor factor) {                            \
        S *d = to;                                                                                                     \
        const S *s = from;                                                                                             \
        const C p = (C)FACTOR;                                                                                         \
        (void)p;                                                                                                       \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            const C a = READ(d[i]), b = READ(s[i]);                                                                    \
            (void)a;                                                                                                   \
            d[i] = (S)WRITE(EXPRESSION);                                                                               \
        }                                                                                                              \
    }
#define PLAIN(x) (x)
#define TRUTH(x) ((x) != 0)
#define REAL_OPS(name, S, C, READ, WRITE)                                                                              \
    LOOPS(name, add, S, C, READ, WRITE, factor.real, a + p * b)                                                        \
    LOOPS(name, mul, S, C, READ, WRITE, factor.real, a *b)                                                             \
    LOOPS(name, max, S, C, READ, WRITE, factor.real, a != a || a > b ? a : b)                                          \
    LOOPS(name, min, S, C, READ, WRITE, factor.real, a != a || a < b ? a : b)
/* U: the same width without sign, so that sums and products wrap. */
#define INTEGER_OPS(name, S, U, READ, WRITE)                                                                           \
    LOOPS(name, add, S, U, READ, WRITE, factor.integer, a + p * b)                                                     \
    LOOPS(name, mul, S, U, READ, WRITE, factor.integer, a *b)                                                          \
    LOOPS(name, max, S, S, READ, WRITE, factor.integer, a > b ? a : b)                                                 \
    LOOPS(name, min, S, S, READ, WRITE, factor.integer, a < b ? a : b)

REAL_OPS(f32, float, float, PLAIN, PLAIN)
REAL_OPS(f64, double, double, PLAIN, PLAIN)
REAL_OPS(f16, uint16_t, float, dp_f32_from_f16, dp_f16_from_f32)
REAL_OPS(bf16, uint16_t, float, dp_f32_from_bf16, dp_bf16_from_f32)
INTEGER_OPS(i8, int8_t, uint32_t, PLAIN, PLAIN)
INTEGER_OPS(u8, uint8_t, uint32_t, PLAIN, PLAIN)
INTEGER_OPS(i16, int16_t, uint32_t, PLAIN, PLAIN)
INTEGER_OPS(u16, uint16_t, uint32_t, PLAIN, PLAIN)
INTEGER_OPS(i32, int32_t, uint32_t, PLAIN, PLAIN)
INTEGER_OPS(u32, uint32_t, uint32_t, PLAIN, PLAIN)
INTEGER_OPS(i64, int64_t, uint64_t, PLAIN, PLAIN)
INTEGER_OPS(u64, uint64_t, uint64_t, PLAIN, PLAIN)
INTEGER_OPS(truth, uint8_t, uint32_t, TRUTH, TRUTH)

typedef struct pair64 {
    uint64_t low, high;
} pair64;

#define SETS(T)                                                                                                        \
    static void at_set_##T(void *to, const int64_t *offsets, const void *from, size_t n, dp_factor factor) {           \
        T *d = to;                                                                                                     \
        const T *s = from;                                                                                             \
        (void)factor;                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            d[offsets[i]] = s[i];                                                                                      \
    }                                                                                                                  \
    static void row_set_##T(void *to, const void *from, size_t n, dp_factor factor) {                                  \
        (void)factor;                                                                                                  \
        memmove(to, from, n * sizeof(T));                                                                              \
    }
SETS(uint8_t)
SETS(uint16_t)
SETS(uint32_t)
SETS(uint64_t)
SETS(pair64)

void DP_RUNG(dp_update_fill)(dp_update_table *table) {
    memset(table, 0, sizeof *table);
#define FILL(element, name, T)                                                                                         \
    table->at[DP_UPDATE_SET][element] = at_set_##T;                                                                    \
    table->row[DP_UPDATE_SET][element] = row_set_##T;                                                                  \
    table->at[DP_UPDATE_ADD][element] = at_add_##name;                                                                 \
    table->row[DP_UPDATE_ADD][element] = row_add_##name;                                                               \
    table->at[DP_UPDATE_MUL][element] = at_mul_##name;                                                                 \
    table->row[DP_UPDATE_MUL][element] = row_mul_##name;                                                               \
    table->at[DP_UPDATE_MAX][element] = at_max_##name;                                                                 \
    table->row[DP_UPDATE_MAX][element] = row_max_##name;                                                               \
    table->at[DP_UPDATE_MIN][element] = at_min_##name;                                                                 \
    table->row[DP_UPDATE_MIN][element] = row_min_##name;
    FILL(DP_F32, f32, uint32_t)
    FILL(DP_F64, f64, uint64_t)
    FILL(DP_F16, f16, uint16_t)
    FILL(DP_BF16, bf16, uint16_t)
    FILL(DP_I8, i8, uint8_t)
    FILL(DP_U8, u8, uint8_t)
    FILL(DP_I16, i16, uint16_t)
    FILL(DP_U16, u16, uint16_t)
    FILL(DP_I32, i32, uint32_t)
    FILL(DP_U32, u32, uint32_t)
    FILL(DP_I64, i64, uint64_t)
    FILL(DP_U64, u64, uint64_t)
    FILL(DP_EL_BOOL, truth, uint8_t)
    table->at[DP_UPDATE_SET][DP_EL_C64] = at_set_uint64_t;
    table->row[DP_UPDATE_SET][DP_EL_C64] = row_set_uint64_t;
    table->at[DP_UPDATE_SET][DP_EL_C128] = at_set_pair64;
    table->row[DP_UPDATE_SET][DP_EL_C128] = row_set_pair64;
}
