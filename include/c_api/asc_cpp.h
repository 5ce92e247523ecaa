/*
 * asc_cpp.h - the names of asc_simd.h in C++17: overloads by element type and form, with the calling line as default
 * argument. Included through asc_simd.h; empty in C.
 */
#ifndef DOPPEL_C_API_ASC_CPP_H
#define DOPPEL_C_API_ASC_CPP_H

#ifdef __cplusplus

#include "ascendc/print.h"
#include "c_api/asc_issue.h"

template <typename T>
struct dp_c_identity {
    using type = T;
};
/* A parameter that takes no part in deduction: a T * converts to const T * there. */
template <typename T>
using dp_c_const = const typename dp_c_identity<T>::type *;

inline void dp_c_barrier(dp_loc loc) { dp_c_flag(DP_OP_BARRIER, PIPE_ALL, PIPE_ALL, 0, 0, loc); }

#define DP_CPP_BINARY(name, op)                                                                                       \
    template <typename T>                                                                                             \
    inline void asc_##name(T *dst, dp_c_const<T> src0, dp_c_const<T> src1, uint32_t count,                            \
                           dp_loc loc = dp_loc::current()) {                                                          \
        dp_c_binary(op, AscendC::dp_dtype_of<T>(), dst, src0, src1, count, loc);                                      \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    inline void asc_##name(T *dst, dp_c_const<T> src0, dp_c_const<T> src1, uint32_t repeat, uint32_t dst_blk,         \
                           uint32_t src0_blk, uint32_t src1_blk, uint32_t dst_rep, uint32_t src0_rep,                 \
                           uint32_t src1_rep, dp_loc loc = dp_loc::current()) {                                       \
        dp_c_binary_repeat(op, AscendC::dp_dtype_of<T>(), dst, src0, src1, repeat, dst_blk, src0_blk, src1_blk,       \
                           dst_rep, src0_rep, src1_rep, loc);                                                         \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    inline void asc_##name##_sync(T *dst, dp_c_const<T> src0, dp_c_const<T> src1, uint32_t count,                     \
                                  dp_loc loc = dp_loc::current()) {                                                   \
        asc_##name(dst, src0, src1, count, loc);                                                                      \
        dp_c_barrier(loc);                                                                                            \
    }
#define DP_CPP_UNARY(name, op)                                                                                        \
    template <typename T>                                                                                             \
    inline void asc_##name(T *dst, dp_c_const<T> src, uint32_t count, dp_loc loc = dp_loc::current()) {               \
        dp_c_unary(op, AscendC::dp_dtype_of<T>(), AscendC::dp_dtype_of<T>(), 0, dst, src, count, loc);                \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    inline void asc_##name(T *dst, dp_c_const<T> src, uint32_t repeat, uint32_t dst_blk, uint32_t src_blk,            \
                           uint32_t dst_rep, uint32_t src_rep, dp_loc loc = dp_loc::current()) {                      \
        dp_c_unary_repeat(op, AscendC::dp_dtype_of<T>(), AscendC::dp_dtype_of<T>(), 0, dst, src, repeat, dst_blk,     \
                          src_blk, dst_rep, src_rep, loc);                                                            \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    inline void asc_##name##_sync(T *dst, dp_c_const<T> src, uint32_t count, dp_loc loc = dp_loc::current()) {        \
        asc_##name(dst, src, count, loc);                                                                             \
        dp_c_barrier(loc);                                                                                            \
    }
#define DP_CPP_SCALAR(name, op)                                                                                       \
    template <typename T>                                                                                             \
    inline void asc_##name(T *dst, dp_c_const<T> src, double scalar, uint32_t count,                                  \
                           dp_loc loc = dp_loc::current()) {                                                          \
        dp_c_with_scalar(op, AscendC::dp_dtype_of<T>(), dst, src, scalar, count, loc);                                \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    inline void asc_##name(T *dst, dp_c_const<T> src, double scalar, uint32_t repeat, uint32_t dst_blk,               \
                           uint32_t src_blk, uint32_t dst_rep, uint32_t src_rep, dp_loc loc = dp_loc::current()) {    \
        dp_c_with_scalar_repeat(op, AscendC::dp_dtype_of<T>(), dst, src, scalar, repeat, dst_blk, src_blk, dst_rep,   \
                                src_rep, loc);                                                                        \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    inline void asc_##name##_sync(T *dst, dp_c_const<T> src, double scalar, uint32_t count,                           \
                                  dp_loc loc = dp_loc::current()) {                                                   \
        asc_##name(dst, src, scalar, count, loc);                                                                     \
        dp_c_barrier(loc);                                                                                            \
    }
#define DP_CPP_REDUCE(name, op)                                                                                       \
    template <typename T>                                                                                             \
    inline void asc_##name(T *dst, dp_c_const<T> src, dp_c_const<T> work, uint32_t count,                             \
                           dp_loc loc = dp_loc::current()) {                                                          \
        dp_c_reduce(op, AscendC::dp_dtype_of<T>(), dst, src, work, count, loc);                                       \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    inline void asc_##name##_sync(T *dst, dp_c_const<T> src, dp_c_const<T> work, uint32_t count,                      \
                                  dp_loc loc = dp_loc::current()) {                                                   \
        asc_##name(dst, src, work, count, loc);                                                                       \
        dp_c_barrier(loc);                                                                                            \
    }

DP_CPP_BINARY(add, DP_OP_ADD)
DP_CPP_BINARY(sub, DP_OP_SUB)
DP_CPP_BINARY(mul, DP_OP_MUL)
DP_CPP_BINARY(div, DP_OP_DIV)
DP_CPP_BINARY(max, DP_OP_MAX)
DP_CPP_BINARY(min, DP_OP_MIN)
DP_CPP_BINARY(and, DP_OP_AND)
DP_CPP_BINARY(or, DP_OP_OR)
DP_CPP_BINARY(add_relu, DP_OP_ADD_RELU)
DP_CPP_BINARY(sub_relu, DP_OP_SUB_RELU)
DP_CPP_UNARY(abs, DP_OP_ABS)
DP_CPP_UNARY(exp, DP_OP_EXP)
DP_CPP_UNARY(ln, DP_OP_LN)
DP_CPP_UNARY(sqrt, DP_OP_SQRT)
DP_CPP_UNARY(rsqrt, DP_OP_RSQRT)
DP_CPP_UNARY(reciprocal, DP_OP_RECIPROCAL)
DP_CPP_UNARY(relu, DP_OP_RELU)
DP_CPP_UNARY(not, DP_OP_NOT)
DP_CPP_SCALAR(adds, DP_OP_ADDS)
DP_CPP_SCALAR(muls, DP_OP_MULS)
DP_CPP_SCALAR(maxs, DP_OP_MAXS)
DP_CPP_SCALAR(mins, DP_OP_MINS)
DP_CPP_SCALAR(leaky_relu, DP_OP_LEAKY_RELU)
DP_CPP_REDUCE(reduce_sum, DP_OP_REDUCE_SUM)
DP_CPP_REDUCE(reduce_max, DP_OP_REDUCE_MAX)
DP_CPP_REDUCE(reduce_min, DP_OP_REDUCE_MIN)
#undef DP_CPP_BINARY
#undef DP_CPP_UNARY
#undef DP_CPP_SCALAR
#undef DP_CPP_REDUCE

template <typename T>
inline void asc_duplicate(T *dst, double value, uint32_t count, dp_loc loc = dp_loc::current()) {
    dp_c_duplicate(AscendC::dp_dtype_of<T>(), dst, value, count, loc);
}
template <typename T>
inline void asc_duplicate_sync(T *dst, double value, uint32_t count, dp_loc loc = dp_loc::current()) {
    asc_duplicate(dst, value, count, loc);
    dp_c_barrier(loc);
}

#define DP_CPP_CONVERT(name, to, from, mode)                                                                          \
    inline void asc_##name(to *dst, const from *src, uint32_t count, dp_loc loc = dp_loc::current()) {                \
        dp_c_unary(DP_OP_CAST, AscendC::dp_dtype_of<to>(), AscendC::dp_dtype_of<from>(), mode, dst, src, count, loc); \
    }                                                                                                                 \
    inline void asc_##name(to *dst, const from *src, uint32_t repeat, uint32_t dst_blk, uint32_t src_blk,             \
                           uint32_t dst_rep, uint32_t src_rep, dp_loc loc = dp_loc::current()) {                      \
        dp_c_unary_repeat(DP_OP_CAST, AscendC::dp_dtype_of<to>(), AscendC::dp_dtype_of<from>(), mode, dst, src,       \
                          repeat, dst_blk, src_blk, dst_rep, src_rep, loc);                                           \
    }
DP_CPP_CONVERT(half2float, float, half, 0)
DP_CPP_CONVERT(half2int32_rint, int32_t, half, 1)
DP_CPP_CONVERT(half2int32_floor, int32_t, half, 2)
DP_CPP_CONVERT(half2int32_ceil, int32_t, half, 3)
DP_CPP_CONVERT(half2int32_round, int32_t, half, 4)
DP_CPP_CONVERT(half2int32_trunc, int32_t, half, 5)
DP_CPP_CONVERT(half2int16_rint, int16_t, half, 1)
DP_CPP_CONVERT(half2int16_floor, int16_t, half, 2)
DP_CPP_CONVERT(half2int16_ceil, int16_t, half, 3)
DP_CPP_CONVERT(half2int16_round, int16_t, half, 4)
DP_CPP_CONVERT(half2int16_trunc, int16_t, half, 5)
DP_CPP_CONVERT(half2int8, int8_t, half, 0)
DP_CPP_CONVERT(half2int8_rint, int8_t, half, 1)
DP_CPP_CONVERT(half2int8_floor, int8_t, half, 2)
DP_CPP_CONVERT(half2int8_ceil, int8_t, half, 3)
DP_CPP_CONVERT(half2int8_round, int8_t, half, 4)
DP_CPP_CONVERT(half2int8_trunc, int8_t, half, 5)
DP_CPP_CONVERT(half2uint8, uint8_t, half, 0)
DP_CPP_CONVERT(half2uint8_rint, uint8_t, half, 1)
DP_CPP_CONVERT(half2uint8_floor, uint8_t, half, 2)
DP_CPP_CONVERT(half2uint8_ceil, uint8_t, half, 3)
DP_CPP_CONVERT(half2uint8_round, uint8_t, half, 4)
DP_CPP_CONVERT(half2uint8_trunc, uint8_t, half, 5)
DP_CPP_CONVERT(float2half, half, float, 0)
DP_CPP_CONVERT(float2half_rint, half, float, 1)
DP_CPP_CONVERT(float2half_floor, half, float, 2)
DP_CPP_CONVERT(float2half_ceil, half, float, 3)
DP_CPP_CONVERT(float2half_round, half, float, 4)
DP_CPP_CONVERT(float2half_trunc, half, float, 5)
DP_CPP_CONVERT(float2half_odd, half, float, 6)
DP_CPP_CONVERT(float2bfloat16_rint, bfloat16_t, float, 1)
DP_CPP_CONVERT(float2bfloat16_floor, bfloat16_t, float, 2)
DP_CPP_CONVERT(float2bfloat16_ceil, bfloat16_t, float, 3)
DP_CPP_CONVERT(float2bfloat16_round, bfloat16_t, float, 4)
DP_CPP_CONVERT(float2bfloat16_trunc, bfloat16_t, float, 5)
DP_CPP_CONVERT(float2int16_rint, int16_t, float, 1)
DP_CPP_CONVERT(float2int16_floor, int16_t, float, 2)
DP_CPP_CONVERT(float2int16_ceil, int16_t, float, 3)
DP_CPP_CONVERT(float2int16_round, int16_t, float, 4)
DP_CPP_CONVERT(float2int16_trunc, int16_t, float, 5)
DP_CPP_CONVERT(float2int32_rint, int32_t, float, 1)
DP_CPP_CONVERT(float2int32_floor, int32_t, float, 2)
DP_CPP_CONVERT(float2int32_ceil, int32_t, float, 3)
DP_CPP_CONVERT(float2int32_round, int32_t, float, 4)
DP_CPP_CONVERT(float2int32_trunc, int32_t, float, 5)
DP_CPP_CONVERT(float2int64_rint, int64_t, float, 1)
DP_CPP_CONVERT(float2int64_floor, int64_t, float, 2)
DP_CPP_CONVERT(float2int64_ceil, int64_t, float, 3)
DP_CPP_CONVERT(float2int64_round, int64_t, float, 4)
DP_CPP_CONVERT(float2int64_trunc, int64_t, float, 5)
DP_CPP_CONVERT(bfloat162float, float, bfloat16_t, 0)
DP_CPP_CONVERT(bfloat162int32_rint, int32_t, bfloat16_t, 1)
DP_CPP_CONVERT(bfloat162int32_floor, int32_t, bfloat16_t, 2)
DP_CPP_CONVERT(bfloat162int32_ceil, int32_t, bfloat16_t, 3)
DP_CPP_CONVERT(bfloat162int32_round, int32_t, bfloat16_t, 4)
DP_CPP_CONVERT(bfloat162int32_trunc, int32_t, bfloat16_t, 5)
DP_CPP_CONVERT(int82half, half, int8_t, 0)
DP_CPP_CONVERT(uint82half, half, uint8_t, 0)
DP_CPP_CONVERT(int162half, half, int16_t, 0)
DP_CPP_CONVERT(int162half_rint, half, int16_t, 1)
DP_CPP_CONVERT(int162half_floor, half, int16_t, 2)
DP_CPP_CONVERT(int162half_ceil, half, int16_t, 3)
DP_CPP_CONVERT(int162half_round, half, int16_t, 4)
DP_CPP_CONVERT(int162half_trunc, half, int16_t, 5)
DP_CPP_CONVERT(int162float, float, int16_t, 0)
DP_CPP_CONVERT(int322float, float, int32_t, 0)
DP_CPP_CONVERT(int322float_rint, float, int32_t, 1)
DP_CPP_CONVERT(int322float_floor, float, int32_t, 2)
DP_CPP_CONVERT(int322float_ceil, float, int32_t, 3)
DP_CPP_CONVERT(int322float_round, float, int32_t, 4)
DP_CPP_CONVERT(int322float_trunc, float, int32_t, 5)
DP_CPP_CONVERT(int322half, half, int32_t, 0)
DP_CPP_CONVERT(int322int16, int16_t, int32_t, 0)
DP_CPP_CONVERT(int322int64, int64_t, int32_t, 0)
DP_CPP_CONVERT(int642int32, int32_t, int64_t, 0)
DP_CPP_CONVERT(int642float_rint, float, int64_t, 1)
DP_CPP_CONVERT(int642float_floor, float, int64_t, 2)
DP_CPP_CONVERT(int642float_ceil, float, int64_t, 3)
DP_CPP_CONVERT(int642float_round, float, int64_t, 4)
DP_CPP_CONVERT(int642float_trunc, float, int64_t, 5)
#undef DP_CPP_CONVERT

#define DP_CPP_COPY(name, to, from)                                                                                   \
    inline void asc_copy_##name(void *dst, const void *src, uint32_t bytes, dp_loc loc = dp_loc::current()) {         \
        dp_c_copy(to, dst, from, src, 1, bytes, 0, 0, loc);                                                           \
    }                                                                                                                 \
    inline void asc_copy_##name(void *dst, const void *src, uint32_t count, uint32_t length, uint32_t src_gap,        \
                                uint32_t dst_gap, dp_loc loc = dp_loc::current()) {                                   \
        dp_c_copy(to, dst, from, src, count, length * 32u, static_cast<int64_t>(src_gap) * 32,                        \
                  static_cast<int64_t>(dst_gap) * 32, loc);                                                           \
    }                                                                                                                 \
    inline void asc_copy_##name##_sync(void *dst, const void *src, uint32_t bytes, dp_loc loc = dp_loc::current()) {  \
        asc_copy_##name(dst, src, bytes, loc);                                                                        \
        dp_c_barrier(loc);                                                                                            \
    }
DP_CPP_COPY(gm2ub, DP_SPACE_UB, DP_SPACE_GM)
DP_CPP_COPY(ub2gm, DP_SPACE_GM, DP_SPACE_UB)
DP_CPP_COPY(ub2ub, DP_SPACE_UB, DP_SPACE_UB)
#undef DP_CPP_COPY

template <typename T>
inline void asc_copy_gm2ub_align(T *dst, dp_c_const<T> src, uint32_t count, uint32_t bytes, uint32_t left_padding,
                                 uint32_t right_padding, uint32_t src_gap, uint32_t dst_gap,
                                 dp_loc loc = dp_loc::current()) {
    dp_c_copy_align(DP_SPACE_UB, dst, DP_SPACE_GM, src, AscendC::dp_dtype_of<T>(), count, bytes, left_padding,
                    right_padding, src_gap, static_cast<int64_t>(dst_gap) * 32, loc);
}
template <typename T>
inline void asc_copy_ub2gm_align(T *dst, dp_c_const<T> src, uint32_t count, uint32_t bytes, uint32_t src_gap,
                                 uint32_t dst_gap, dp_loc loc = dp_loc::current()) {
    dp_c_copy_align(DP_SPACE_GM, dst, DP_SPACE_UB, src, AscendC::dp_dtype_of<T>(), count, bytes, 0, 0,
                    static_cast<int64_t>(src_gap) * 32, dst_gap, loc);
}

inline void asc_sync_notify(pipe_t src, pipe_t dst, int id, dp_loc loc = dp_loc::current()) {
    dp_c_flag(DP_OP_SET_FLAG, src, dst, static_cast<unsigned>(id), 0, loc);
}
inline void asc_sync_wait(pipe_t src, pipe_t dst, int id, dp_loc loc = dp_loc::current()) {
    dp_c_flag(DP_OP_WAIT_FLAG, src, dst, static_cast<unsigned>(id), 0, loc);
}
inline void asc_sync_pipe(pipe_t pipe, dp_loc loc = dp_loc::current()) { dp_c_flag(DP_OP_BARRIER, pipe, pipe, 0, 0, loc); }
inline void asc_sync(dp_loc loc = dp_loc::current()) { asc_sync_pipe(PIPE_ALL, loc); }
inline void asc_sync_vec(dp_loc loc = dp_loc::current()) { asc_sync_pipe(PIPE_V, loc); }
inline void asc_sync_mte2(dp_loc loc = dp_loc::current()) { asc_sync_pipe(PIPE_MTE2, loc); }
inline void asc_sync_mte3(dp_loc loc = dp_loc::current()) { asc_sync_pipe(PIPE_MTE3, loc); }

#define DP_CPP_CROSS(name, mode)                                                                                      \
    inline void asc_sync_##name##_arrive(pipe_t pipe, unsigned flag, dp_loc loc = dp_loc::current()) {                \
        dp_c_flag(DP_OP_CROSS_SET, pipe, pipe, flag, mode, loc);                                                      \
    }                                                                                                                 \
    inline void asc_sync_##name##_wait(pipe_t pipe, unsigned flag, dp_loc loc = dp_loc::current()) {                  \
        dp_c_flag(DP_OP_CROSS_WAIT, pipe, pipe, flag, mode, loc);                                                     \
    }
DP_CPP_CROSS(block, 0)
DP_CPP_CROSS(subblock, 1)
DP_CPP_CROSS(intra, 2)
#undef DP_CPP_CROSS

inline void asc_set_mask_norm(dp_loc loc = dp_loc::current()) { dp_c_state(DP_OP_SET_MASK_MODE, 0, 0, 0, 0, loc); }
inline void asc_set_mask_count(dp_loc loc = dp_loc::current()) { dp_c_state(DP_OP_SET_MASK_MODE, 1, 0, 0, 0, loc); }
inline void asc_set_vector_mask(uint64_t high, uint64_t low, dp_loc loc = dp_loc::current()) {
    dp_c_state(DP_OP_SET_MASK, 0, 0, low, high, loc);
}
inline void asc_reset_mask(dp_loc loc = dp_loc::current()) { dp_c_state(DP_OP_RESET_MASK, 0, 0, 0, 0, loc); }
inline void asc_set_atomic_add_float(dp_loc loc = dp_loc::current()) { dp_c_state(DP_OP_SET_ATOMIC, 1, DP_F32, 0, 0, loc); }
inline void asc_set_atomic_add_half(dp_loc loc = dp_loc::current()) { dp_c_state(DP_OP_SET_ATOMIC, 1, DP_F16, 0, 0, loc); }
inline void asc_set_atomic_add_int32(dp_loc loc = dp_loc::current()) { dp_c_state(DP_OP_SET_ATOMIC, 1, DP_I32, 0, 0, loc); }
inline void asc_set_atomic_none(dp_loc loc = dp_loc::current()) { dp_c_state(DP_OP_SET_ATOMIC, 0, 0, 0, 0, loc); }

inline int64_t asc_get_block_idx() { return dp_block_index(); }
inline int64_t asc_get_block_num() { return dp_block_count(); }

#endif

#endif
