/*
 * kernel_rt.h - what kernel code calls besides dp_issue() and queues: local memory, identity of the core, printing.
 *
 * All of it works on the core whose block runs on the calling thread. Outside a kernel each call says on stderr what was
 * called and aborts, except where noted. Misuse ends the block with a fault at `loc` and does not return.
 */
#ifndef DOPPEL_KERNEL_RT_H
#define DOPPEL_KERNEL_RT_H

#include "doppel/insn.h"

DP_BEGIN_DECLS

/* ---- who am I ---- */

/* Number of this core among those of its kind in the launch (GetBlockIdx), and how many logical blocks there are. */
DP_API uint32_t dp_block_index(void);
DP_API uint32_t dp_block_count(void);
DP_API uint32_t dp_sub_block_index(void);
DP_API uint32_t dp_sub_block_count(void);
DP_API uint32_t dp_task_ration(void);
DP_API bool dp_is_vector_core(void); /* true outside kernels */
DP_API bool dp_in_kernel(void);
/* Tiling key of launches from now on (host side), and of the running one (kernel side). */
DP_API void dp_tiling_key_set(uint64_t key);
DP_API uint64_t dp_tiling_key(void);
/* System workspace of the running block as the kernel set it, NULL before. */
DP_API void *dp_sys_workspace(void);
DP_API void dp_sys_workspace_set(void *workspace);

/* ---- memory of the core ---- */

/* Host address of [offset, offset+size) in an on-chip memory; a fault if it does not fit. */
DP_API void *dp_local_address(unsigned space, uint64_t offset_bytes, uint64_t size_bytes, dp_loc loc);
/* Byte offset of a host address inside an on-chip memory; a fault if it is not in it. */
DP_API uint64_t dp_local_offset(unsigned space, const void *addr, dp_loc loc);
/* Faults unless [addr, addr+size) is addressable by the scalar unit; tells observers that a reference was taken. */
DP_API void dp_scalar_reference(const dp_operand *operand, uint32_t size_bytes, dp_loc loc);
/* Host memory that lives until the block ends. Never NULL. */
DP_API void *dp_block_alloc(size_t size_bytes, dp_loc loc);

DP_END_DECLS

#endif
