/* kernel_bf16.c - AVX-512 BF16: two products per lane and instruction. */
#define DP_MATH_RUNG 2
#include "math/gemm/rung.h"
#include "math/gemm/kernel_vec.h"

#define KT_KIND bf16
#define KT_ADD kv_add_f32
#define KT_TABLE const dp_gemm_kernel_fn dp_gemm_kernels_bf16
#include "math/gemm/kernel.h"
