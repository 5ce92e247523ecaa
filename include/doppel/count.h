/*
 * count.h - the commonest instructions in their commonest form: n elements in a row, of tensors in the core's memory.
 *
 * Each call is dp_issue() of the instruction it describes (count form, strides 1 and 8), and does just that when somebody
 * observes or anything is unusual. Otherwise it runs the loop without building the instruction. All may end the block, as
 * dp_issue() may.
 */
#ifndef DOPPEL_COUNT_H
#define DOPPEL_COUNT_H

#include "doppel/types.h"

/* A tensor of the core. Kernels hold them in their tensors and pass them by address: nothing is copied for a call. */
typedef struct dp_local {
    void *addr;
    uint32_t size_bytes; /* what remains of the tensor from addr on, 0: nothing */
    uint32_t buffer_id;  /* queue buffer it came from, 0 = none */
    uint8_t space;       /* dp_space */
    uint8_t position;    /* TPosition; the core does not look at it */
} dp_local;

/* Instruction and element types in one word; round: RoundMode of a Cast. */
#define DP_COUNT_CODE(op, dst_type, src_type, round) \
    ((uint32_t)(op) | (uint32_t)(dst_type) << 16 | (uint32_t)(src_type) << 20 | (uint32_t)(round) << 24)

DP_BEGIN_DECLS

/* n: a negative number of elements arrives as a huge one and is refused by the bounds check. */
DP_API void dp_count_unary(uint32_t code, const dp_local *dst, const dp_local *src, uint32_t n, dp_loc loc);
DP_API void dp_count_cast(uint32_t code, const dp_local *dst, const dp_local *src, uint32_t n, dp_loc loc);
/* Add to SubRelu, and the ternary MulAddDst, FusedMulAdd, FusedMulAddRelu, which read the destination as well. */
DP_API void dp_count_binary(uint32_t code, const dp_local *dst, const dp_local *src0, const dp_local *src1, uint32_t n,
                            dp_loc loc);
/* scalar_bits: in the source's element type, in the low bytes. Axpy reads the destination as well. */
DP_API void dp_count_scalar(uint32_t code, const dp_local *dst, const dp_local *src, uint64_t scalar_bits, uint32_t n,
                            dp_loc loc);
DP_API void dp_count_fill(uint32_t code, const dp_local *dst, uint64_t scalar_bits, uint32_t n, dp_loc loc);
/* ReduceSum, ReduceMax, ReduceMin without the index. */
DP_API void dp_count_reduce(uint32_t code, const dp_local *dst, const dp_local *src, const dp_local *work, uint32_t n,
                            dp_loc loc);
/* GetValue and SetValue of element `index`; not for 4-bit elements. The value's bits are zero-extended. */
DP_API uint64_t dp_local_get(unsigned dtype, const dp_local *src, uint64_t index, dp_loc loc);
DP_API void dp_local_set(unsigned dtype, const dp_local *dst, uint64_t index, uint64_t bits, dp_loc loc);

/*
 * DataCopy of one run between device memory and the core, bytes cut to whole blocks. gm_bytes: what remains of the global tensor,
 * 0 = unknown.
 */
DP_API void dp_count_copy_in(unsigned dtype, const dp_local *dst, const void *src, uint32_t gm_bytes, uint32_t bytes, dp_loc loc);
DP_API void dp_count_copy_out(unsigned dtype, void *dst, uint32_t gm_bytes, const dp_local *src, uint32_t bytes, dp_loc loc);

DP_END_DECLS

#endif
