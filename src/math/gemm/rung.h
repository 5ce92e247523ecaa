/* rung.h - the functions each rung gives to the engine; the families define them with DP_RUNG(name). */
#ifndef DOPPEL_MATH_GEMM_RUNG_H
#define DOPPEL_MATH_GEMM_RUNG_H

#include "math/gemm/internal.h"

#define DP_GEMM_RUNG_FUNCTIONS(rung)                                                                                   \
    void dp_gemm_pack_rows_##rung(dp_gemm_kind kind, const dp_gemm_view *view, size_t rows, size_t k_count,            \
                                  uint32_t *dst, size_t dst_stride);                                                   \
    void dp_gemm_pack_panel_##rung(dp_gemm_kind kind, const dp_gemm_view *view, size_t columns, size_t k_count,        \
                                   uint32_t *dst, int32_t *sums);                                                      \
    void dp_gemm_pack_wide_##rung(const dp_gemm_view *view, size_t panels, size_t k_count, float *dst,                 \
                                  size_t panel_stride);                                                                \
    void dp_gemm_finish_##rung(const dp_gemm_plan *plan, dp_gemm_spot spot, const uint32_t *sums, size_t stride);      \
    void dp_gemm_decode_rows_##rung(const dp_gemm_plan *plan, float *rows);                                            \
    void dp_gemm_decode_##rung(const dp_gemm_plan *plan, size_t j, size_t columns, const float *rows, float *sums);    \
    void dp_gemm_widen_##rung(float *dst, const void *src, dp_dtype dtype, size_t n);                                  \
    extern const dp_gemm_rung dp_gemm_rungs_##rung[];
DP_GEMM_RUNG_FUNCTIONS(generic)
DP_GEMM_RUNG_FUNCTIONS(avx2)
DP_GEMM_RUNG_FUNCTIONS(avx512) /* plain, with BF16, with VNNI, with both, with VNNI and AMX */

extern const dp_gemm_kernel_fn dp_gemm_kernels_bf16[], dp_gemm_kernels_u8[];
extern const dp_gemm_kernel_fn dp_gemm_kernels_amx_bf16[], dp_gemm_kernels_amx_i8[];
void dp_gemm_amx_begin(void);
void dp_gemm_amx_end(void);

#endif
