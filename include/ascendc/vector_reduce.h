/*
 * vector_reduce.h - reductions per repeat, per block, of pairs and of whole tensors. An index is raw integer bits in the
 * element type's width: reinterpret it, do not convert it.
 */
#ifndef DOPPEL_ASCENDC_VECTOR_REDUCE_H
#define DOPPEL_ASCENDC_VECTOR_REDUCE_H

#include "ascendc/vector_common.h"

namespace AscendC {

#define DP_CHECK_REDUCE                                                                                                \
    static_assert(dp_is<T>(DP_F16) || dp_is<T>(DP_F32),                                                                \
                  "reductions: this element type is not offered; use half or float (cast other types first)")

/* The destination's stride counts results, not blocks: see each instruction. Strides are 16 bits wide. */
template <typename T>
inline dp_insn dp_reduce_insn(dp_op op, const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t dst_rep,
                              int32_t src_blk, int32_t src_rep, dp_loc loc) {
    DP_CHECK_REDUCE;
    dp_insn insn = dp_vector_insn(op, 2, loc);
    dp_set_operand(insn.operand[0], dst, 1, static_cast<unsigned>(dst_rep));
    dp_set_operand(insn.operand[1], src, static_cast<unsigned>(src_blk), static_cast<unsigned>(src_rep));
    return insn;
}

/* One result per repeat. dstRepStride: elements; for Max/Min pairs, elements or 4 bytes, by order. */
#define DP_WHOLE_REDUCE(Name, OP, ORDER_PARAMETER, ORDER)                                                              \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const uint64_t mask[],            \
                     int32_t repeatTimes, int32_t dstRepStride, int32_t srcBlkStride,                                  \
                     int32_t srcRepStride ORDER_PARAMETER, dp_loc loc = dp_loc::current()) {                           \
        dp_insn insn = dp_reduce_insn(OP, dstLocal, srcLocal, dstRepStride, srcBlkStride, srcRepStride, loc);          \
        insn.u.vec.reduce_order = static_cast<uint8_t>(ORDER);                                                         \
        dp_mask_bits(insn, isSetMask, mask, static_cast<uint32_t>(repeatTimes));                                       \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, int32_t mask,                     \
                     int32_t repeatTimes, int32_t dstRepStride, int32_t srcBlkStride,                                  \
                     int32_t srcRepStride ORDER_PARAMETER, dp_loc loc = dp_loc::current()) {                           \
        dp_insn insn = dp_reduce_insn(OP, dstLocal, srcLocal, dstRepStride, srcBlkStride, srcRepStride, loc);          \
        insn.u.vec.reduce_order = static_cast<uint8_t>(ORDER);                                                         \
        dp_mask_leading(insn, isSetMask, static_cast<uint32_t>(mask), static_cast<uint32_t>(repeatTimes));             \
        dp_issue(&insn);                                                                                               \
    }
#define DP_NOTHING
#define DP_ORDER_PARAMETER , ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX
DP_WHOLE_REDUCE(WholeReduceSum, DP_OP_WHOLE_REDUCE_SUM, DP_NOTHING, ReduceOrder::ORDER_VALUE_INDEX)
DP_WHOLE_REDUCE(WholeReduceMax, DP_OP_WHOLE_REDUCE_MAX, DP_ORDER_PARAMETER, order)
DP_WHOLE_REDUCE(WholeReduceMin, DP_OP_WHOLE_REDUCE_MIN, DP_ORDER_PARAMETER, order)
#undef DP_WHOLE_REDUCE
#undef DP_NOTHING
#undef DP_ORDER_PARAMETER

/* elemsInOneRepeat acts as the mask; dstBlkStride has no effect. */
template <typename T, bool isSetMask = true>
inline void RepeatReduceSum(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, int32_t repeat,
                            int32_t elemsInOneRepeat, int32_t dstBlkStride, int32_t srcBlkStride, int32_t dstRepStride,
                            int32_t srcRepStride, dp_loc loc = dp_loc::current()) {
    (void)dstBlkStride;
    dp_insn insn = dp_reduce_insn(DP_OP_REPEAT_REDUCE_SUM, dstLocal, srcLocal, dstRepStride, srcBlkStride, srcRepStride, loc);
    dp_mask_leading(insn, isSetMask, static_cast<uint32_t>(elemsInOneRepeat), static_cast<uint32_t>(repeat));
    dp_issue(&insn);
}

/* 8 results per repeat (dstRepStride: groups of 8), or one per pair of lanes (dstRepStride: 128 bytes). */
#define DP_GROUP_REDUCE(Name, OP)                                                                                      \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, int32_t repeat, int32_t mask,     \
                     int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,                                 \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        dp_insn insn = dp_reduce_insn(OP, dstLocal, srcLocal, dstRepStride, srcBlkStride, srcRepStride, loc);          \
        dp_mask_leading(insn, isSetMask, static_cast<uint32_t>(mask), static_cast<uint32_t>(repeat));                  \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, int32_t repeat,                   \
                     const uint64_t mask[], int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,          \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        dp_insn insn = dp_reduce_insn(OP, dstLocal, srcLocal, dstRepStride, srcBlkStride, srcRepStride, loc);          \
        dp_mask_bits(insn, isSetMask, mask, static_cast<uint32_t>(repeat));                                            \
        dp_issue(&insn);                                                                                               \
    }
DP_GROUP_REDUCE(BlockReduceSum, DP_OP_BLOCK_REDUCE_SUM)
DP_GROUP_REDUCE(BlockReduceMax, DP_OP_BLOCK_REDUCE_MAX)
DP_GROUP_REDUCE(BlockReduceMin, DP_OP_BLOCK_REDUCE_MIN)
DP_GROUP_REDUCE(PairReduceSum, DP_OP_PAIR_REDUCE_SUM)
#undef DP_GROUP_REDUCE

template <typename T>
inline dp_insn dp_running_insn(dp_op op, const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                               int32_t src_rep, bool cal_index, dp_loc loc) {
    dp_insn insn = dp_reduce_insn(op, dst, src, 1, 1, src_rep, loc);
    insn.n_operands = 3;
    dp_set_operand(insn.operand[2], work, 1, 8);
    insn.u.vec.cal_index = cal_index;
    return insn;
}

/* dst[0] = the sum over all repeats: a tree per repeat, these added up in order. */
template <typename T>
inline void ReduceSum(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &workLocal,
                      int32_t mask, int32_t repeatTimes, int32_t srcRepStride, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_running_insn(DP_OP_REDUCE_SUM, dstLocal, srcLocal, workLocal, srcRepStride, false, loc);
    dp_mask_leading(insn, true, static_cast<uint32_t>(mask), static_cast<uint32_t>(repeatTimes));
    dp_issue(&insn);
}
template <typename T>
inline void ReduceSum(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &workLocal,
                      const uint64_t mask[], int32_t repeatTimes, int32_t srcRepStride, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_running_insn(DP_OP_REDUCE_SUM, dstLocal, srcLocal, workLocal, srcRepStride, false, loc);
    dp_mask_bits(insn, true, mask, static_cast<uint32_t>(repeatTimes));
    dp_issue(&insn);
}
template <typename T, bool isSetMask = true>
inline void ReduceSum(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &workLocal,
                      int32_t count, dp_loc loc = dp_loc::current()) {
    DP_CHECK_REDUCE;
    dp_count_reduce(dp_code_of<T, T>(DP_OP_REDUCE_SUM), dstLocal.dp_local_of(), srcLocal.dp_local_of(),
                    workLocal.dp_local_of(), static_cast<uint32_t>(count), loc);
}

/* dst[0] = the extreme value over all repeats; with calIndex dst[1] = its index as raw bits. */
#define DP_RUNNING_EXTREME(Name, OP)                                                                                   \
    template <typename T>                                                                                              \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &workLocal,  \
                     int32_t mask, int32_t repeatTimes, int32_t srcRepStride, bool calIndex = false,                   \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        dp_insn insn = dp_running_insn(OP, dstLocal, srcLocal, workLocal, srcRepStride, calIndex, loc);                \
        dp_mask_leading(insn, true, static_cast<uint32_t>(mask), static_cast<uint32_t>(repeatTimes));                  \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &workLocal,  \
                     const uint64_t mask[], int32_t repeatTimes, int32_t srcRepStride, bool calIndex = false,          \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        dp_insn insn = dp_running_insn(OP, dstLocal, srcLocal, workLocal, srcRepStride, calIndex, loc);                \
        dp_mask_bits(insn, true, mask, static_cast<uint32_t>(repeatTimes));                                            \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &workLocal,  \
                     int32_t count, bool calIndex = false, dp_loc loc = dp_loc::current()) {                           \
        if (!calIndex) {                                                                                               \
            DP_CHECK_REDUCE;                                                                                           \
            dp_count_reduce(dp_code_of<T, T>(OP), dstLocal.dp_local_of(), srcLocal.dp_local_of(),                      \
                            workLocal.dp_local_of(), static_cast<uint32_t>(count), loc);                               \
            return;                                                                                                    \
        }                                                                                                              \
        dp_insn insn = dp_running_insn(OP, dstLocal, srcLocal, workLocal, 8, calIndex, loc);                           \
        dp_mask_count(insn, static_cast<uint32_t>(count));                                                             \
        dp_issue(&insn);                                                                                               \
    }
DP_RUNNING_EXTREME(ReduceMax, DP_OP_REDUCE_MAX)
DP_RUNNING_EXTREME(ReduceMin, DP_OP_REDUCE_MIN)
#undef DP_RUNNING_EXTREME
#undef DP_CHECK_REDUCE

template <typename T>
inline T dp_reduce_register(dp_op op, uint32_t which, dp_loc loc) {
    static_assert(dp_is<T>(DP_F16) || dp_is<T>(DP_F32), "reduction registers hold half or float");
    dp_insn insn = dp_vector_insn(op, 0, loc);
    insn.u.vec.aux[0] = which;
    dp_issue(&insn);
    return dp_scalar_of_bits<T>(insn.result);
}

/* Value and index bits of the last WholeReduceMax/Min (its last repeat) or ReduceMax/Min. */
template <typename T>
inline void GetReduceMaxMinCount(T &maxMinValue, T &maxMinIndex, dp_loc loc = dp_loc::current()) {
    maxMinValue = dp_reduce_register<T>(DP_OP_GET_REDUCE_INDEX, 0, loc);
    maxMinIndex = dp_reduce_register<T>(DP_OP_GET_REDUCE_INDEX, 1, loc);
}
template <typename T>
inline void GetReduceMaxMinCount(T &maxMinValue, dp_loc loc = dp_loc::current()) {
    maxMinValue = dp_reduce_register<T>(DP_OP_GET_REDUCE_INDEX, 0, loc);
}
/* The sum of the last ReduceSum. */
template <typename T>
inline T GetAccVal(dp_loc loc = dp_loc::current()) {
    return dp_reduce_register<T>(DP_OP_GET_ACC, 0, loc);
}

} // namespace AscendC

#endif
