/*
 * integer.c - integer arithmetic and bit operations. Sums and products wrap around. Plain C: the compiler's vectoriser does
 * as well here as hand-written lanes, with the flags of each rung.
 */
#include "math/vec.h"

#define DP_INT_UNARY(op, T, formula)                                                                                   \
    static void op##_##T(void *dst, const void *a, size_t n) {                                                         \
        T *out = dst;                                                                                                  \
        const T *in = a;                                                                                               \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            T x = in[i];                                                                                               \
            out[i] = (T)(formula);                                                                                     \
        }                                                                                                              \
    }

#define DP_INT_BINARY(op, T, formula)                                                                                  \
    static void op##_##T(void *dst, const void *a, const void *b, size_t n) {                                          \
        T *out = dst;                                                                                                  \
        const T *left = a, *right = b;                                                                                 \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            T x = left[i], y = right[i];                                                                               \
            out[i] = (T)(formula);                                                                                     \
        }                                                                                                              \
    }

#define DP_INT_SCALAR(op, T, formula)                                                                                  \
    static void op##_##T(void *dst, const void *a, const void *scalar, size_t n) {                                     \
        T *out = dst, y;                                                                                               \
        const T *in = a;                                                                                               \
        memcpy(&y, scalar, sizeof y);                                                                                  \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            T x = in[i];                                                                                               \
            out[i] = (T)(formula);                                                                                     \
        }                                                                                                              \
    }

/* The counts are 31 bits wide, bit 31 asks for rounding. A count beyond the width shifts everything out. */
#define DP_SHIFT_LEFT(T, W)                                                                                            \
    static void shift_left_##T(void *dst, const void *a, const void *scalar, size_t n) {                               \
        T *out = dst;                                                                                                  \
        const T *in = a;                                                                                               \
        uint32_t count = shift_word(scalar) & 0x7fffffffu;                                                             \
        uint32_t width = 8 * sizeof(T), by = count < width ? count : 0;                                                \
        W keep = count < width ? ~(W)0 : 0;                                                                            \
        DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = (T)(((W)in[i] << by) & keep);                                 \
    }

#define DP_SHIFT_RIGHT_LOGICAL(T, W)                                                                                   \
    static void shift_right_##T(void *dst, const void *a, const void *scalar, size_t n) {                              \
        T *out = dst;                                                                                                  \
        const T *in = a;                                                                                               \
        uint32_t count = shift_word(scalar) & 0x7fffffffu;                                                             \
        uint32_t width = 8 * sizeof(T), by = count < width ? count : 0;                                                \
        W keep = count < width ? ~(W)0 : 0;                                                                            \
        DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = (T)(((W)in[i] >> by) & keep);                                 \
    }

/* Rounding adds the last bit shifted out: to nearest, ties upwards. */
#define DP_SHIFT_RIGHT_ARITHMETIC(T, S)                                                                                \
    static void shift_right_##T(void *dst, const void *a, const void *scalar, size_t n) {                              \
        T *out = dst;                                                                                                  \
        const T *in = a;                                                                                               \
        uint32_t word = shift_word(scalar), count = word & 0x7fffffffu, top = 8 * sizeof(S) - 1;                       \
        uint32_t by = count < top ? count : top;                                                                       \
        if (!(word >> 31) || count == 0) {                                                                             \
            DP_IVDEP for (size_t i = 0; i < n; i++) out[i] = (T)((S)in[i] >> by);                                      \
            return;                                                                                                    \
        }                                                                                                              \
        by = count - 1 < top ? count - 1 : top;                                                                        \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            S doubled = (S)in[i] >> by;                                                                                \
            out[i] = (T)((doubled >> 1) + (doubled & 1));                                                              \
        }                                                                                                              \
    }

static uint32_t shift_word(const void *scalar) {
    uint32_t word;
    memcpy(&word, scalar, sizeof word);
    return word;
}

/* T: element type, W: unsigned type the sum is formed in, so that wrapping is defined */
#define DP_ANY_INTEGER(T, W)                                                                                           \
    DP_INT_UNARY(not, T, ~x)                                                                                           \
    DP_INT_BINARY(add, T, (W)x + (W)y)                                                                                 \
    DP_INT_BINARY(sub, T, (W)x - (W)y)                                                                                 \
    DP_INT_BINARY(mul, T, (W)x *(W)y)                                                                                  \
    DP_INT_BINARY(max, T, x > y ? x : y)                                                                               \
    DP_INT_BINARY(min, T, x < y ? x : y)                                                                               \
    DP_INT_BINARY(and, T, x &y)                                                                                        \
    DP_INT_BINARY(or, T, x | y)                                                                                        \
    DP_INT_SCALAR(adds, T, (W)x + (W)y)                                                                                \
    DP_INT_SCALAR(muls, T, (W)x *(W)y)                                                                                 \
    DP_INT_SCALAR(maxs, T, x > y ? x : y)                                                                              \
    DP_INT_SCALAR(mins, T, x < y ? x : y)                                                                              \
    DP_SHIFT_LEFT(T, W)

#define DP_SIGNED(T, W, S)                                                                                             \
    DP_ANY_INTEGER(T, W)                                                                                               \
    DP_INT_UNARY(abs, T, x < 0 ? (W)0 - (W)x : (W)x)                                                                   \
    DP_INT_UNARY(relu, T, x > 0 ? x : 0)                                                                               \
    DP_INT_BINARY(add_relu, T, (T)((W)x + (W)y) > 0 ? (T)((W)x + (W)y) : 0)                                            \
    DP_INT_BINARY(sub_relu, T, (T)((W)x - (W)y) > 0 ? (T)((W)x - (W)y) : 0)                                            \
    DP_SHIFT_RIGHT_ARITHMETIC(T, S)

#define DP_UNSIGNED(T, W)                                                                                              \
    DP_ANY_INTEGER(T, W)                                                                                               \
    DP_SHIFT_RIGHT_LOGICAL(T, W)

DP_SIGNED(int8_t, uint32_t, int32_t)
DP_SIGNED(int16_t, uint32_t, int32_t)
DP_SIGNED(int32_t, uint32_t, int32_t)
DP_SIGNED(int64_t, uint64_t, int64_t)
DP_UNSIGNED(uint8_t, uint32_t)
DP_UNSIGNED(uint16_t, uint32_t)
DP_UNSIGNED(uint32_t, uint32_t)
DP_UNSIGNED(uint64_t, uint64_t)

#define DP_ENTER_ANY(T, dtype)                                                                                         \
    table->unary[DP_MATH_NOT][dtype] = not_##T;                                                                        \
    table->binary[DP_MATH_ADD][dtype] = add_##T;                                                                       \
    table->binary[DP_MATH_SUB][dtype] = sub_##T;                                                                       \
    table->binary[DP_MATH_MUL][dtype] = mul_##T;                                                                       \
    table->binary[DP_MATH_MAX][dtype] = max_##T;                                                                       \
    table->binary[DP_MATH_MIN][dtype] = min_##T;                                                                       \
    table->binary[DP_MATH_AND][dtype] = and_##T;                                                                       \
    table->binary[DP_MATH_OR][dtype] = or_##T;                                                                         \
    table->scalar[DP_MATH_ADDS][dtype] = adds_##T;                                                                     \
    table->scalar[DP_MATH_MULS][dtype] = muls_##T;                                                                     \
    table->scalar[DP_MATH_MAXS][dtype] = maxs_##T;                                                                     \
    table->scalar[DP_MATH_MINS][dtype] = mins_##T;                                                                     \
    table->scalar[DP_MATH_SHIFT_LEFT][dtype] = shift_left_##T;                                                         \
    table->scalar[DP_MATH_SHIFT_RIGHT][dtype] = shift_right_##T;

#define DP_ENTER_SIGNED(T, dtype)                                                                                      \
    DP_ENTER_ANY(T, dtype)                                                                                             \
    table->unary[DP_MATH_ABS][dtype] = abs_##T;                                                                        \
    table->unary[DP_MATH_RELU][dtype] = relu_##T;                                                                      \
    table->binary[DP_MATH_ADD_RELU][dtype] = add_relu_##T;                                                             \
    table->binary[DP_MATH_SUB_RELU][dtype] = sub_relu_##T;

void DP_RUNG(dp_math_fill_integer)(dp_math *table) {
    DP_ENTER_SIGNED(int8_t, DP_I8)
    DP_ENTER_SIGNED(int16_t, DP_I16)
    DP_ENTER_SIGNED(int32_t, DP_I32)
    DP_ENTER_SIGNED(int64_t, DP_I64)
    DP_ENTER_ANY(uint8_t, DP_U8)
    DP_ENTER_ANY(uint16_t, DP_U16)
    DP_ENTER_ANY(uint32_t, DP_U32)
    DP_ENTER_ANY(uint64_t, DP_U64)
}
