/*
 * kernel_amx.c - AMX: products of matrix tiles. A tile is 16 rows of 16 units, so rows and panels are read as they are: A
 * as 16 rows a_stride apart, B as 16 units of 16 columns. Four tiles of sums, two of A, two of B. Only whole tiles are
 * read and written: units are a multiple of 16 (filled up with zeros by the packing), rows of c at least 16 or 32.
 */
#define DP_MATH_RUNG 2
#include "math/gemm/rung.h"

#include "math/amx.h"

#define AMX_INLINE static inline __attribute__((always_inline))
enum { TILE_ROWS = DP_AMX_ROWS, TILE_UNITS = 16, COLUMNS = DP_GEMM_COLUMNS_MAX };

void dp_gemm_amx_begin(void) {
    const dp_amx_shapes whole = dp_amx_whole();
    dp_amx_begin(&whole);
}

void dp_gemm_amx_end(void) {
    _tile_release();
}

/* Lines that will be wanted in the first level cache by the next step, and those of the walk: one for every two units. */
AMX_INLINE void ahead(const uint32_t *b, size_t b_stride, const char **next, const dp_gemm_walk *walk) {
    _Pragma("GCC unroll 16") for (size_t u = 0; u < TILE_UNITS; u++) {
        __builtin_prefetch(b + u * b_stride);
        __builtin_prefetch(b + u * b_stride + TILE_UNITS);
    }
    _Pragma("GCC unroll 8") for (size_t t = 0; t < 8; t++) {
        __builtin_prefetch(*next, 0, 2);
        *next += walk->step;
    }
    *next += walk->turn;
}

#define AMX_BODY(kind, multiply)                                                                                       \
    AMX_INLINE void body_##kind(const size_t tall, const size_t wide, size_t units, const uint32_t *a,                 \
                                size_t a_stride, const uint32_t *b, size_t b_stride, uint32_t *c, size_t c_stride,     \
                                bool add, const dp_gemm_walk *walk) {                                                  \
        const size_t a_bytes = a_stride * 4, b_bytes = b_stride * 4, c_bytes = c_stride * 4;                           \
        uint32_t *const below = c + TILE_ROWS * c_stride;                                                              \
        const char *next = walk->at;                                                                                   \
        DP_AMX_ORDER();                                                                                                \
        if (add) {                                                                                                     \
            _tile_loadd(0, c, c_bytes);                                                                                \
            if (wide)                                                                                                  \
                _tile_loadd(1, c + TILE_UNITS, c_bytes);                                                               \
            if (tall)                                                                                                  \
                _tile_loadd(2, below, c_bytes);                                                                        \
            if (tall && wide)                                                                                          \
                _tile_loadd(3, below + TILE_UNITS, c_bytes);                                                           \
        } else {                                                                                                       \
            _tile_zero(0);                                                                                             \
            _tile_zero(1);                                                                                             \
            _tile_zero(2);                                                                                             \
            _tile_zero(3);                                                                                             \
        }                                                                                                              \
        for (; units; units -= TILE_UNITS, a += TILE_UNITS, b += TILE_UNITS * b_stride) {                              \
            _tile_loadd(6, b, b_bytes);                                                                                \
            _tile_loadd(4, a, a_bytes);                                                                                \
            multiply(0, 4, 6);                                                                                         \
            if (wide) {                                                                                                \
                _tile_loadd(7, b + TILE_UNITS, b_bytes);                                                               \
                multiply(1, 4, 7);                                                                                     \
            }                                                                                                          \
            if (tall) {                                                                                                \
                _tile_loadd(5, a + TILE_ROWS * a_stride, a_bytes);                                                     \
                multiply(2, 5, 6);                                                                                     \
            }                                                                                                          \
            if (tall && wide)                                                                                          \
                multiply(3, 5, 7);                                                                                     \
            ahead(b + TILE_UNITS * b_stride, b_stride, &next, walk);                                                   \
        }                                                                                                              \
        _tile_stored(0, c, c_bytes);                                                                                   \
        if (wide)                                                                                                      \
            _tile_stored(1, c + TILE_UNITS, c_bytes);                                                                  \
        if (tall)                                                                                                      \
            _tile_stored(2, below, c_bytes);                                                                           \
        if (tall && wide)                                                                                              \
            _tile_stored(3, below + TILE_UNITS, c_bytes);                                                              \
        DP_AMX_ORDER();                                                                                                \
    }

#define AMX_KERNEL(kind, tall, wide)                                                                                   \
    static void kernel_##kind##_##tall##wide(size_t units, const uint32_t *a, size_t a_stride, const uint32_t *b,      \
                                             size_t b_stride, const int32_t *init, uint32_t *c, size_t c_stride,       \
                                             bool add, const dp_gemm_walk *walk) {                                     \
        (void)init;                                                                                                    \
        body_##kind(tall, wide, units, a, a_stride, b, b_stride, c, c_stride, add, walk);                              \
    }
#define AMX_KERNELS(kind, multiply)                                                                                    \
    AMX_BODY(kind, multiply)                                                                                           \
    AMX_KERNEL(kind, 0, 0)                                                                                             \
    AMX_KERNEL(kind, 1, 0)                                                                                             \
    AMX_KERNEL(kind, 0, 1)                                                                                             \
    AMX_KERNEL(kind, 1, 1)                                                                                             \
    const dp_gemm_kernel_fn dp_gemm_kernels_amx_##kind[4] = {kernel_##kind##_00, kernel_##kind##_10,                   \
                                                             kernel_##kind##_01, kernel_##kind##_11};
AMX_KERNELS(bf16, _tile_dpbf16ps)
AMX_KERNELS(i8, _tile_dpbssd)
