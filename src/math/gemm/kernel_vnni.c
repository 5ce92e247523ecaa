/* kernel_vnni.c - AVX-512 VNNI: four products of unsigned and signed bytes per lane and instruction. */
#define DP_MATH_RUNG 2
#include "math/gemm/rung.h"
#include "math/gemm/kernel_vec.h"

#define KT_KIND u8
#define KT_ADD kv_add_i32
#define KT_TABLE const dp_gemm_kernel_fn dp_gemm_kernels_u8
#include "math/gemm/kernel.h"
