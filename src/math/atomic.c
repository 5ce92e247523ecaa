/*
 * atomic.c - accumulation into memory that other cores write too. Each element is one atomic read-modify-write without
 * ordering: the launch's end publishes the memory. Elements must be naturally aligned.
 */
#include "math/vec.h"

/* Types the processor has no instruction for: retry until nobody came between. U holds the bits. */
#define DP_ATOMIC_CAS(op, T, U, to_value, to_bits, formula)                                                            \
    static void atomic_##op##_##T(void *dst, const void *a, size_t n) {                                                \
        U *out = dst;                                                                                                  \
        const U *in = a;                                                                                               \
        for (size_t i = 0; i < n; i++) {                                                                               \
            U old = __atomic_load_n(out + i, __ATOMIC_RELAXED), next;                                                  \
            do {                                                                                                       \
                atomic_##T##_value x = to_value(old), y = to_value(in[i]);                                             \
                next = to_bits(formula);                                                                               \
            } while (!__atomic_compare_exchange_n(out + i, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));     \
        }                                                                                                              \
    }
#define DP_ATOMIC_INT_ADD(T)                                                                                           \
    static void atomic_add_##T(void *dst, const void *a, size_t n) {                                                   \
        for (size_t i = 0; i < n; i++)                                                                                 \
            __atomic_fetch_add((T *)dst + i, ((const T *)a)[i], __ATOMIC_RELAXED);                                     \
    }

typedef float atomic_f32_value, atomic_f16_value, atomic_bf16_value;
DP_INLINE float max_of(float x, float y) { return x > y || x != x ? x : y; }
DP_INLINE float min_of(float x, float y) { return x < y || x != x ? x : y; }

#define DP_ATOMIC_FLOAT(T, U, to_value, to_bits)                                                                       \
    DP_ATOMIC_CAS(add, T, U, to_value, to_bits, x + y)                                                                 \
    DP_ATOMIC_CAS(max, T, U, to_value, to_bits, max_of(x, y))                                                          \
    DP_ATOMIC_CAS(min, T, U, to_value, to_bits, min_of(x, y))
DP_ATOMIC_FLOAT(f32, uint32_t, dp_f32_from_bits, dp_f32_bits)
DP_ATOMIC_FLOAT(f16, uint16_t, dp_f32_from_f16, dp_f16_from_f32)
DP_ATOMIC_FLOAT(bf16, uint16_t, dp_f32_from_bf16, dp_bf16_from_f32)

#define DP_ATOMIC_INTEGER(T)                                                                                           \
    typedef T atomic_##T##_value;                                                                                      \
    DP_ATOMIC_INT_ADD(T)                                                                                               \
    DP_ATOMIC_CAS(max, T, T, (T), (T), (x > y ? x : y))                                                                \
    DP_ATOMIC_CAS(min, T, T, (T), (T), (x < y ? x : y))
DP_ATOMIC_INTEGER(int8_t)
DP_ATOMIC_INTEGER(uint8_t)
DP_ATOMIC_INTEGER(int16_t)
DP_ATOMIC_INTEGER(uint16_t)
DP_ATOMIC_INTEGER(int32_t)
DP_ATOMIC_INTEGER(uint32_t)
DP_ATOMIC_INTEGER(int64_t)
DP_ATOMIC_INTEGER(uint64_t)

#define DP_ENTER(dtype, T)                                                                                             \
    table->atomic[DP_MATH_ATOMIC_ADD][dtype] = atomic_add_##T;                                                         \
    table->atomic[DP_MATH_ATOMIC_MAX][dtype] = atomic_max_##T;                                                         \
    table->atomic[DP_MATH_ATOMIC_MIN][dtype] = atomic_min_##T;

void dp_math_fill_atomic_generic(dp_math *table) {
    DP_ENTER(DP_F32, f32)
    DP_ENTER(DP_F16, f16)
    DP_ENTER(DP_BF16, bf16)
    DP_ENTER(DP_I8, int8_t)
    DP_ENTER(DP_U8, uint8_t)
    DP_ENTER(DP_I16, int16_t)
    DP_ENTER(DP_U16, uint16_t)
    DP_ENTER(DP_I32, int32_t)
    DP_ENTER(DP_U32, uint32_t)
    DP_ENTER(DP_I64, int64_t)
    DP_ENTER(DP_U64, uint64_t)
}
