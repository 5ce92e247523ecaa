/*
 * asc_issue.h - what the names of asc_simd.h do: fill one instruction and issue it. For C11 and C++17.
 *
 * Compute calls work on pointers into UB; copies name the memories in their name. Counts are elements; strides are 32-byte
 * blocks, start to start; a repeat covers 256 bytes of the widest operand and works under the mask register.
 */
#ifndef DOPPEL_C_API_ASC_ISSUE_H
#define DOPPEL_C_API_ASC_ISSUE_H

#include "c_api/asc_types.h"
#include "doppel/insn.h"
#include "doppel/kernel_rt.h"

static inline dp_insn dp_c_insn(dp_op op, unsigned n_operands, dp_loc loc) {
    dp_insn insn;
    __builtin_memset(&insn, 0, sizeof insn);
    insn.op = (uint16_t)op;
    insn.n_operands = (uint8_t)n_operands;
    insn.loc = loc;
    return insn;
}

static inline void dp_c_operand(dp_insn *insn, unsigned k, const void *addr, unsigned dtype, unsigned space,
                                uint32_t block_stride, uint32_t repeat_stride) {
    dp_operand *o = &insn->operand[k];
    o->addr = (void *)addr;
    o->dtype = (uint8_t)dtype;
    o->space = (uint8_t)space;
    o->block_stride = (uint16_t)block_stride;
    o->repeat_stride = (uint16_t)repeat_stride;
}

static inline void dp_c_count(dp_insn *insn, uint32_t count) {
    insn->mask_kind = DP_MASK_COUNT;
    insn->mask[0] = count;
    insn->repeat = 1;
}
static inline void dp_c_repeat(dp_insn *insn, uint32_t repeat) {
    insn->mask_kind = DP_MASK_REGISTER;
    insn->repeat = repeat;
}

/* A number in the element type of a tensor, as instructions take scalars. */
static inline uint64_t dp_c_scalar(unsigned dtype, double value) {
    union {
        uint64_t word;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
    } bits;
    bits.word = 0;
    switch (dtype) {
    case DP_I8: bits.i8 = (int8_t)value; break;
    case DP_U8: bits.u8 = (uint8_t)value; break;
    case DP_I16: bits.i16 = (int16_t)value; break;
    case DP_U16: bits.u16 = (uint16_t)value; break;
    case DP_I32: bits.i32 = (int32_t)value; break;
    case DP_U32: bits.u32 = (uint32_t)value; break;
    case DP_I64: bits.i64 = (int64_t)value; break;
    case DP_U64: bits.u64 = (uint64_t)value; break;
    case DP_F16: bits.u16 = dp_half_bits((float)value); break;
    case DP_BF16: bits.u16 = dp_bfloat16_bits((float)value); break;
    case DP_F32: bits.f32 = (float)value; break;
    default: bits.f64 = value; break;
    }
    return bits.word;
}

static inline void dp_c_binary(dp_op op, unsigned dtype, const void *dst, const void *src0, const void *src1,
                               uint32_t count, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 3, loc);
    dp_c_operand(&insn, 0, dst, dtype, DP_SPACE_UB, 1, 8);
    dp_c_operand(&insn, 1, src0, dtype, DP_SPACE_UB, 1, 8);
    dp_c_operand(&insn, 2, src1, dtype, DP_SPACE_UB, 1, 8);
    dp_c_count(&insn, count);
    dp_issue(&insn);
}
static inline void dp_c_binary_repeat(dp_op op, unsigned dtype, const void *dst, const void *src0, const void *src1,
                                      uint32_t repeat, uint32_t dst_blk, uint32_t src0_blk, uint32_t src1_blk,
                                      uint32_t dst_rep, uint32_t src0_rep, uint32_t src1_rep, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 3, loc);
    dp_c_operand(&insn, 0, dst, dtype, DP_SPACE_UB, dst_blk, dst_rep);
    dp_c_operand(&insn, 1, src0, dtype, DP_SPACE_UB, src0_blk, src0_rep);
    dp_c_operand(&insn, 2, src1, dtype, DP_SPACE_UB, src1_blk, src1_rep);
    dp_c_repeat(&insn, repeat);
    dp_issue(&insn);
}

/* Also conversions: the element types may differ. */
static inline void dp_c_unary(dp_op op, unsigned dst_dtype, unsigned src_dtype, unsigned round_mode, const void *dst,
                              const void *src, uint32_t count, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 2, loc);
    dp_c_operand(&insn, 0, dst, dst_dtype, DP_SPACE_UB, 1, 8);
    dp_c_operand(&insn, 1, src, src_dtype, DP_SPACE_UB, 1, 8);
    insn.u.vec.round_mode = (uint8_t)round_mode;
    dp_c_count(&insn, count);
    dp_issue(&insn);
}
static inline void dp_c_unary_repeat(dp_op op, unsigned dst_dtype, unsigned src_dtype, unsigned round_mode,
                                     const void *dst, const void *src, uint32_t repeat, uint32_t dst_blk,
                                     uint32_t src_blk, uint32_t dst_rep, uint32_t src_rep, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 2, loc);
    dp_c_operand(&insn, 0, dst, dst_dtype, DP_SPACE_UB, dst_blk, dst_rep);
    dp_c_operand(&insn, 1, src, src_dtype, DP_SPACE_UB, src_blk, src_rep);
    insn.u.vec.round_mode = (uint8_t)round_mode;
    dp_c_repeat(&insn, repeat);
    dp_issue(&insn);
}

static inline void dp_c_with_scalar(dp_op op, unsigned dtype, const void *dst, const void *src, double scalar,
                                    uint32_t count, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 2, loc);
    dp_c_operand(&insn, 0, dst, dtype, DP_SPACE_UB, 1, 8);
    dp_c_operand(&insn, 1, src, dtype, DP_SPACE_UB, 1, 8);
    insn.scalar_bits = dp_c_scalar(dtype, scalar);
    dp_c_count(&insn, count);
    dp_issue(&insn);
}
static inline void dp_c_with_scalar_repeat(dp_op op, unsigned dtype, const void *dst, const void *src, double scalar,
                                           uint32_t repeat, uint32_t dst_blk, uint32_t src_blk, uint32_t dst_rep,
                                           uint32_t src_rep, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 2, loc);
    dp_c_operand(&insn, 0, dst, dtype, DP_SPACE_UB, dst_blk, dst_rep);
    dp_c_operand(&insn, 1, src, dtype, DP_SPACE_UB, src_blk, src_rep);
    insn.scalar_bits = dp_c_scalar(dtype, scalar);
    dp_c_repeat(&insn, repeat);
    dp_issue(&insn);
}

static inline void dp_c_duplicate(unsigned dtype, const void *dst, double scalar, uint32_t count, dp_loc loc) {
    dp_insn insn = dp_c_insn(DP_OP_DUPLICATE, 1, loc);
    dp_c_operand(&insn, 0, dst, dtype, DP_SPACE_UB, 1, 8);
    insn.scalar_bits = dp_c_scalar(dtype, scalar);
    dp_c_count(&insn, count);
    dp_issue(&insn);
}

/* dst[0] = the reduction of count elements. */
static inline void dp_c_reduce(dp_op op, unsigned dtype, const void *dst, const void *src, const void *work,
                               uint32_t count, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 3, loc);
    dp_c_operand(&insn, 0, dst, dtype, DP_SPACE_UB, 1, 1);
    dp_c_operand(&insn, 1, src, dtype, DP_SPACE_UB, 1, 8);
    dp_c_operand(&insn, 2, work, dtype, DP_SPACE_UB, 1, 8);
    dp_c_count(&insn, count);
    dp_issue(&insn);
}

/* block_count runs of block_bytes; gaps in bytes from the end of a run to the start of the next. */
static inline void dp_c_copy(unsigned dst_space, const void *dst, unsigned src_space, const void *src,
                             uint32_t block_count, uint32_t block_bytes, int64_t src_gap_bytes, int64_t dst_gap_bytes,
                             dp_loc loc) {
    dp_insn insn = dp_c_insn(DP_OP_DATA_COPY, 2, loc);
    dp_c_operand(&insn, 0, dst, DP_U8, dst_space, 1, 8);
    dp_c_operand(&insn, 1, src, DP_U8, src_space, 1, 8);
    insn.u.copy.block_count = block_count;
    insn.u.copy.block_bytes = block_bytes;
    insn.u.copy.src_gap_bytes = src_gap_bytes;
    insn.u.copy.dst_gap_bytes = dst_gap_bytes;
    dp_issue(&insn);
}
/* Byte-exact rows (as DataCopyPad); paddings in elements of the type, filled with 0. */
static inline void dp_c_copy_align(unsigned dst_space, const void *dst, unsigned src_space, const void *src,
                                   unsigned dtype, uint32_t block_count, uint32_t block_bytes, uint32_t left_padding,
                                   uint32_t right_padding, int64_t src_gap_bytes, int64_t dst_gap_bytes, dp_loc loc) {
    dp_insn insn = dp_c_insn(DP_OP_DATA_COPY_PAD, 2, loc);
    dp_c_operand(&insn, 0, dst, dtype, dst_space, 1, 8);
    dp_c_operand(&insn, 1, src, dtype, src_space, 1, 8);
    insn.u.copy.block_count = block_count;
    insn.u.copy.block_bytes = block_bytes;
    insn.u.copy.src_gap_bytes = src_gap_bytes;
    insn.u.copy.dst_gap_bytes = dst_gap_bytes;
    insn.u.copy.pad_form = 1;
    insn.u.copy.is_pad = left_padding != 0 || right_padding != 0;
    insn.u.copy.left_pad = (uint8_t)(left_padding > 255 ? 255 : left_padding);
    insn.u.copy.right_pad = (uint8_t)(right_padding > 255 ? 255 : right_padding);
    dp_issue(&insn);
}

static inline void dp_c_flag(dp_op op, unsigned src_pipe, unsigned dst_pipe, unsigned id, unsigned mode, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 0, loc);
    insn.u.sync.src_pipe = (uint8_t)src_pipe;
    insn.u.sync.dst_pipe = (uint8_t)dst_pipe;
    insn.u.sync.event_id = (uint8_t)(id > 255 ? 255 : id);
    insn.u.sync.mode = (uint8_t)mode;
    dp_issue(&insn);
}

static inline void dp_c_state(dp_op op, uint32_t aux0, uint32_t aux1, uint64_t mask0, uint64_t mask1, dp_loc loc) {
    dp_insn insn = dp_c_insn(op, 0, loc);
    insn.mask[0] = mask0;
    insn.mask[1] = mask1;
    insn.u.vec.aux[0] = aux0;
    insn.u.vec.aux[1] = aux1;
    dp_issue(&insn);
}

#endif
