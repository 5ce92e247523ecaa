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
DP_API void *dp_dump_workspace(void);
DP_API void dp_dump_workspace_set(void *workspace);
/* index 0 or 1; others are a kernel fault. */
DP_API void *dp_hccl_context(uint32_t index, dp_loc loc);
DP_API void dp_hccl_context_set(uint32_t index, void *context, dp_loc loc);

/* ---- memory of the core ---- */

/* Host address of [offset, offset+size) in an on-chip memory; a fault if it does not fit. */
DP_API void *dp_local_address(unsigned space, uint64_t offset_bytes, uint64_t size_bytes, dp_loc loc);
/* Byte offset of a host address inside an on-chip memory; a fault if it is not in it. */
DP_API uint64_t dp_local_offset(unsigned space, const void *addr, dp_loc loc);
/* Faults unless [addr, addr+size) is addressable by the scalar unit; tells observers that a reference was taken. */
DP_API void dp_scalar_reference(const dp_operand *operand, uint32_t size_bytes, dp_loc loc);
/* Host memory that lives until the block ends. Never NULL. */
DP_API void *dp_block_alloc(size_t size_bytes, dp_loc loc);

/* ---- stopping, printing ---- */

/* The C++ face checks argument types itself and passes formats on, which the attribute would warn about. */
#ifdef __cplusplus
#define DP_KERNEL_PRINTF(format_index, first_arg)
#else
#define DP_KERNEL_PRINTF(format_index, first_arg) DP_PRINTF(format_index, first_arg)
#endif

DP_API void dp_trap(dp_loc loc) __attribute__((noreturn));
/* Adds to what the block prints; outside a kernel prints at once. Returns the number of bytes, negative on error. */
DP_API int dp_print(const char *format, ...) DP_KERNEL_PRINTF(1, 2);
/* In a kernel ends the block with the condition and the formatted message; on the host prints them and aborts. */
DP_API void dp_assert_failed(const char *condition, dp_loc loc, const char *format, ...) DP_KERNEL_PRINTF(3, 4)
    __attribute__((noreturn));
/* Prints count elements of the operand; dims may be NULL. position: number of TPosition, 0 = GM. */
DP_API void dp_dump_tensor(const dp_operand *operand, unsigned position, uint32_t desc, uint32_t count,
                           const uint32_t *dims, unsigned n_dims, dp_loc loc);
/* Monotonic clock in nanoseconds. */
DP_API uint64_t dp_time_ns(void);

/* ---- tiling ---- */

/* Copies tiling data out of GM by the scalar unit. */
DP_API void dp_tiling_copy(void *dst, const void *src, size_t size_bytes, dp_loc loc);
/* Checks that it is in GM and returns it. */
DP_API void *dp_tiling_pointer(void *src, size_t size_bytes, dp_loc loc);
/* A malformed or misused tensor list. */
DP_API void dp_list_fault(const char *sentence, uint64_t value, uint64_t expected, dp_loc loc) __attribute__((noreturn));

DP_END_DECLS

#endif
