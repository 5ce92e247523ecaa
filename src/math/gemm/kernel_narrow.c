/*
 * kernel_narrow.c - bytes on AVX2, for factors small enough (dp_gemm_problem.narrow) that two pairs of products fit 16
 * bits: vpmaddubsw cannot saturate, and two of its results are added before vpmaddwd widens them. Three multiplications
 * for 64 products, where pairs of int16 need four; and operands a quarter of the size of floats.
 */
#define DP_MATH_RUNG 1
#include "math/gemm/rung.h"
#include "math/gemm/kernel_vec.h"


enum { ROWS = DP_GEMM_NARROW_ROWS };
#define UNROLL _Pragma("GCC unroll 4")

DP_INLINE __m256i pairs(__m256i a, __m256i b) {
    return _mm256_maddubs_epi16(a, b);
}
DP_INLINE kv widened(kv sum, __m256i products) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
}

DP_INLINE void body(const size_t rows, const size_t vectors, size_t units, const uint32_t *a, size_t a_stride,
                    const uint32_t *b, size_t b_stride, const int32_t *init, uint32_t *c, size_t c_stride, bool add,
                    const dp_gemm_walk *walk) {
    kv sum[ROWS][KV_VECTORS], b0[KV_VECTORS], b1[KV_VECTORS];
    UNROLL for (size_t v = 0; v < vectors; v++) {
        kv first = init ? kv_load(init + v * KV_LANES) : kv_zero();
        UNROLL for (size_t i = 0; i < rows; i++) sum[i][v] = first;
    }
    const char *next = walk->at;
    for (size_t turn = 8; units >= 2; units -= 2, a += 2, b += 2 * b_stride) {
        UNROLL for (size_t v = 0; v < vectors; v++) {
            b0[v] = kv_load(b + v * KV_LANES);
            b1[v] = kv_load(b + b_stride + v * KV_LANES);
        }
        __builtin_prefetch(b + 16 * b_stride);
        __builtin_prefetch(b + 17 * b_stride);
        __builtin_prefetch(next, 0, 2);
        next += walk->step;
        if (--turn == 0) {
            next += walk->turn;
            turn = 8;
        }
        UNROLL for (size_t i = 0; i < rows; i++) {
            kv a0 = kv_spread(a + i * a_stride), a1 = kv_spread(a + i * a_stride + 1);
            UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] =
                widened(sum[i][v], _mm256_add_epi16(pairs(a0, b0[v]), pairs(a1, b1[v])));
        }
    }
    if (units) {
        UNROLL for (size_t i = 0; i < rows; i++) {
            kv a0 = kv_spread(a + i * a_stride);
            UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] =
                widened(sum[i][v], pairs(a0, kv_load(b + v * KV_LANES)));
        }
    }
    UNROLL for (size_t i = 0; i < rows; i++) {
        UNROLL for (size_t v = 0; v < vectors; v++) {
            uint32_t *at = c + i * c_stride + v * KV_LANES;
            kv_store(at, add ? kv_add_i32(kv_load(at), sum[i][v]) : sum[i][v]);
        }
    }
}

#define NAME(rows, vectors) kernel_##rows##x##vectors
#define DEFINE(rows, vectors)                                                                                          \
    static void NAME(rows, vectors)(size_t units, const uint32_t *a, size_t a_stride, const uint32_t *b,               \
                                    size_t b_stride, const int32_t *init, uint32_t *c, size_t c_stride, bool add,      \
                                    const dp_gemm_walk *walk) {                                                        \
        body(rows, vectors, units, a, a_stride, b, b_stride, init, c, c_stride, add, walk);                            \
    }
DEFINE(1, 1)
DEFINE(2, 1) DEFINE(3, 1) DEFINE(4, 1) DEFINE(1, 2) DEFINE(2, 2) DEFINE(3, 2) DEFINE(4, 2)

    const dp_gemm_kernel_fn dp_gemm_kernels_narrow[2 * ROWS] = {NAME(1, 1), NAME(2, 1), NAME(3, 1), NAME(4, 1),
                                                                NAME(1, 2), NAME(2, 2), NAME(3, 2), NAME(4, 2)};
