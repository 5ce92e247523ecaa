/* kernel.c - the micro-kernels every processor of a rung has, and the rung's tables. */
#include "math/gemm/rung.h"
#include "math/gemm/kernel_vec.h"

#define KT_KIND f32
#define KT_ADD kv_add_f32
#define KT_TABLE static const dp_gemm_kernel_fn kernels_f32
#include "math/gemm/kernel.h"

#define KT_KIND i16
#define KT_ADD kv_add_i32
#define KT_TABLE static const dp_gemm_kernel_fn kernels_i16
#include "math/gemm/kernel.h"

#define GEMM_RUNG(bf16, u8, ...)                                                                                            \
    {                                                                                                                  \
        .lanes = KV_LANES, .rows = KV_ROWS, .columns = KV_VECTORS * KV_LANES,                                          \
        .kernels = {[DP_GEMM_F32] = kernels_f32, [DP_GEMM_I16] = kernels_i16, [DP_GEMM_BF16] = bf16, [DP_GEMM_U8] = u8}, \
        .pack_rows = DP_RUNG(dp_gemm_pack_rows), .pack_panel = DP_RUNG(dp_gemm_pack_panel), .pack_wide = DP_RUNG(dp_gemm_pack_wide),                            \
        .finish = DP_RUNG(dp_gemm_finish), .decode_rows = DP_RUNG(dp_gemm_decode_rows),                                \
        .decode = DP_RUNG(dp_gemm_decode), .widen = DP_RUNG(dp_gemm_widen),                                            \
        __VA_ARGS__                                                                                                    \
    }

const dp_gemm_rung DP_RUNG(dp_gemm_rungs)[] = {
    GEMM_RUNG(NULL, NULL, ),
#if DP_MATH_RUNG == DP_RUNG_AVX512
    GEMM_RUNG(dp_gemm_kernels_bf16, NULL, ),
    GEMM_RUNG(NULL, dp_gemm_kernels_u8, ),
    GEMM_RUNG(dp_gemm_kernels_bf16, dp_gemm_kernels_u8, ),
    GEMM_RUNG(dp_gemm_kernels_amx_bf16, dp_gemm_kernels_u8, .kernels[DP_GEMM_I8] = dp_gemm_kernels_amx_i8,
              .tiled_kinds = 1u << DP_GEMM_BF16 | 1u << DP_GEMM_I8, .tiles_begin = dp_gemm_amx_begin,
              .tiles_end = dp_gemm_amx_end),
#endif
};
