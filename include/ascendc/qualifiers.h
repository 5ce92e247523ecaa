/*
 * qualifiers.h - the words of the kernel language that a plain compiler does not know.
 *
 * ascc reads them from the source itself (it defines DOPPEL_ASCC): there they stay visible for its rewriter, which needs
 * them to place local arrays in core memory and to know which cores a kernel occupies. A plain compiler gets empty
 * macros; then a qualified local array is an ordinary stack array, which instructions refuse as an operand.
 */
#ifndef DOPPEL_ASCENDC_QUALIFIERS_H
#define DOPPEL_ASCENDC_QUALIFIERS_H

#include <stdint.h>

#ifndef DOPPEL_ASCC
#define __global__
#define __aicore__
#define __host__
#define __host_aicore__
#define __vector__
#define __cube__
#define __mix__(cube_cores, vector_cores)
#define __schedmode__(mode)
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __launch_bounds__(...)
#define __VEC_SCOPE__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __ssbuf__
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __inout_pipe__(...)
#define __sync_alias__
#define __check_sync_alias__
#define KERNEL_TASK_TYPE_DEFAULT(type)
#define KERNEL_TASK_TYPE(key, type)
#endif

#define __tiling_data_ptr__
#ifdef __cplusplus
/* One copy per core: a core runs on one worker thread, and blocks that wait for each other keep to their threads. */
#define __BLOCK_LOCAL__ thread_local
#define __WORKGROUP_LOCAL__ thread_local
#endif

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif
/* The only core a file is compiled for: cube code, which stands under the cube's macros, does not exist here. */
#ifndef __DAV_C220_VEC__
#define __DAV_C220_VEC__ 1
#endif
#ifndef __DAV_VEC__
#define __DAV_VEC__ 1
#endif
#ifndef __CCE_AICORE__
#define __CCE_AICORE__ 220
#endif

#ifndef GM_ADDR
#define GM_ADDR __gm__ uint8_t *
#endif

#endif
