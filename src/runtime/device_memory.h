/*
 * device_memory.h - device memory: allocation, copies, fills, host memory, virtual memory management.
 *
 * Device memory is host memory that is registered with src/device/gm.h; pages are committed when first touched. Sizes
 * are counted against the chip's memory (dp_chip.memory_bytes): free + used = total. Functions with `stream` queue the
 * work (NULL = default stream); the others finish before they return and need a current context only where said.
 *
 * Sentences of DP_ERR_ADDRESS say what the pointer is: host memory, already freed, the middle of an allocation, or so
 * many bytes past the end of one.
 */
#ifndef DOPPEL_RUNTIME_DEVICE_MEMORY_H
#define DOPPEL_RUNTIME_DEVICE_MEMORY_H

#include "base/status.h"

/*
 * At least size_bytes, rounded up to 32 and padded by 32, on a 512-byte boundary, on the current device (DP_ERR_STATE
 * without one). Size 0 is DP_ERR_ARGUMENT.
 */
dp_status dp_device_memory_alloc(size_t size_bytes, void **out_ptr);
/*
 * Frees from any thread or context. Work queued before the call may still use the bytes: they are reused only after it
 * ended. NULL is DP_ERR_ARGUMENT.
 */
dp_status dp_device_memory_free(void *ptr);
/* Of the current device. */
dp_status dp_device_memory_info(size_t *out_free_bytes, size_t *out_total_bytes);
/* Of any device; peak since start. */
dp_status dp_device_memory_usage(int32_t device_id, size_t *out_used_bytes, size_t *out_peak_bytes);

typedef enum dp_pointer_kind { DP_POINTER_UNKNOWN, DP_POINTER_HOST, DP_POINTER_DEVICE } dp_pointer_kind;
/* DP_POINTER_HOST: memory of dp_host_memory_alloc or registered; UNKNOWN: any other pointer. device_id is -1 unless
 * device memory. */
dp_status dp_pointer_describe(const void *ptr, dp_pointer_kind *out_kind, int32_t *out_device_id);

/* Values are the vendor's aclrtMemcpyKind, so that the API hands its argument through; others are DP_ERR_ARGUMENT. */
typedef enum dp_copy_kind {
    DP_COPY_HOST_TO_HOST,
    DP_COPY_HOST_TO_DEVICE,
    DP_COPY_DEVICE_TO_HOST,
    DP_COPY_DEVICE_TO_DEVICE,
    DP_COPY_DEFAULT,               /* by the pointers */
    DP_COPY_HOST_TO_BUF_TO_DEVICE, /* the source may be reused when the call returns */
    DP_COPY_INNER_DEVICE_TO_DEVICE,
    DP_COPY_INTER_DEVICE_TO_DEVICE
} dp_copy_kind;

/*
 * count_bytes from src to dst; dst_bytes is what the caller says fits at dst (destMax). Both ends are checked against
 * the allocation they lie in. The source bytes of async copies are read when the task runs. count 0 does nothing.
 * Synchronous copies do not wait for streams other than that they see finished work (as the vendor's).
 */
dp_status dp_copy(void *dst, size_t dst_bytes, const void *src, size_t count_bytes, dp_copy_kind kind);
dp_status dp_copy_async(void *dst, size_t dst_bytes, const void *src, size_t count_bytes, dp_copy_kind kind,
                        void *stream);
/* height rows of width_bytes; pitches in bytes, at least width_bytes. */
dp_status dp_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width_bytes, size_t height,
                     dp_copy_kind kind);
dp_status dp_copy_2d_async(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width_bytes,
                           size_t height, dp_copy_kind kind, void *stream);
/* Sets count bytes at ptr to the low byte of value; ptr_bytes is maxCount. */
dp_status dp_fill(void *ptr, size_t ptr_bytes, int32_t value, size_t count_bytes);
dp_status dp_fill_async(void *ptr, size_t ptr_bytes, int32_t value, size_t count_bytes, void *stream);

/* [ptr, ptr+size) must lie in one device allocation. argument is the vendor's name of ptr, for the sentence. */
dp_status dp_device_memory_check(const char *argument, const void *ptr, size_t size_bytes);

/* Host memory, page-aligned. Freed by dp_host_memory_free only; double free and foreign pointers are DP_ERR_ADDRESS. */
dp_status dp_host_memory_alloc(size_t size_bytes, void **out_ptr);
dp_status dp_host_memory_free(void *ptr);
/* Registers user memory; the device sees it at the same address, so *out_device_ptr is ptr and kernels may use it. */
dp_status dp_host_memory_register(void *ptr, size_t size_bytes, void **out_device_ptr);
dp_status dp_host_memory_unregister(void *ptr);
/* Device address of registered or dp_host_memory_alloc memory. */
dp_status dp_host_memory_device_pointer(void *ptr, void **out_device_ptr);

/* Virtual memory management. Sizes and offsets are multiples of the granularity; misuse is DP_ERR_ARGUMENT or
 * DP_ERR_ADDRESS. */
#define DP_VMM_GRANULARITY_BYTES ((size_t)2 << 20)
dp_status dp_vmm_reserve(size_t size_bytes, size_t alignment, void *hint, void **out_ptr);
dp_status dp_vmm_release(void *ptr);
dp_status dp_vmm_create(int32_t device_id, size_t size_bytes, void **out_handle);
dp_status dp_vmm_destroy(void *handle); /* mappings stay usable until unmapped */
dp_status dp_vmm_map(void *ptr, size_t size_bytes, size_t offset_bytes, void *handle);
dp_status dp_vmm_unmap(void *ptr);

#endif
