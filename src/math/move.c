/* move.c - fill, gather, select and copy: work on element widths, not on values. */
#include "math/vec.h"

#if DP_MATH_RUNG != DP_RUNG_GENERIC
#include <immintrin.h>
#endif

#define DP_FILL(T)                                                                                                     \
    static void fill_##T(void *dst, const void *scalar, size_t n) {                                                    \
        T *out = dst, x;                                                                                               \
        memcpy(&x, scalar, sizeof x);                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = x;                                                                                                \
    }

#define DP_GATHER(T)                                                                                                   \
    static void gather_##T(void *dst, const void *base, const uint32_t *offset_bytes, size_t n) {                      \
        T *out = dst;                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            memcpy(out + i, (const char *)base + offset_bytes[i], sizeof(T));                                          \
    }

DP_INLINE unsigned bit_at(const uint8_t *bits, size_t k) { return bits[k >> 3] >> (k & 7) & 1u; }

#define DP_SELECT(T)                                                                                                   \
    static void select_##T(void *dst, const uint8_t *bits, size_t first_bit, const void *a, const void *b, size_t n) { \
        T *out = dst;                                                                                                  \
        const T *yes = a, *no = b;                                                                                     \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = bit_at(bits, first_bit + i) ? yes[i] : no[i];                                                     \
    }                                                                                                                  \
    static void select_scalar_##T(void *dst, const uint8_t *bits, size_t first_bit, const void *a, const void *b,      \
                                  size_t n) {                                                                          \
        T *out = dst, no;                                                                                              \
        const T *yes = a;                                                                                              \
        memcpy(&no, b, sizeof no);                                                                                     \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = bit_at(bits, first_bit + i) ? yes[i] : no;                                                        \
    }

#define DP_WIDTH(T)                                                                                                    \
    DP_FILL(T)                                                                                                         \
    DP_GATHER(T)                                                                                                       \
    DP_SELECT(T)
DP_WIDTH(uint8_t)
DP_WIDTH(uint16_t)
DP_WIDTH(uint32_t)
DP_WIDTH(uint64_t)

static void copy(void *dst, const void *src, size_t size_bytes) {
    if (dst != src)
        memcpy(dst, src, size_bytes);
}

static void copy_stream(void *dst, const void *src, size_t size_bytes) { copy(dst, src, size_bytes); }

#define DP_ENTER(T, dtype)                                                                                             \
    table->fill[dtype] = fill_##T;                                                                                     \
    table->gather[dtype] = gather_##T;                                                                                 \
    table->select[dtype] = select_##T;                                                                                 \
    table->select_scalar[dtype] = select_scalar_##T;

void DP_RUNG(dp_math_fill_move)(dp_math *table) {
    DP_ENTER(uint8_t, DP_I8)
    DP_ENTER(uint8_t, DP_U8)
    DP_ENTER(uint16_t, DP_I16)
    DP_ENTER(uint16_t, DP_U16)
    DP_ENTER(uint16_t, DP_F16)
    DP_ENTER(uint16_t, DP_BF16)
    DP_ENTER(uint32_t, DP_I32)
    DP_ENTER(uint32_t, DP_U32)
    DP_ENTER(uint32_t, DP_F32)
    DP_ENTER(uint64_t, DP_I64)
    DP_ENTER(uint64_t, DP_U64)
    DP_ENTER(uint64_t, DP_F64)
    table->copy = copy;
    table->copy_stream = copy_stream;
}
