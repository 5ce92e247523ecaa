/* vector_fill.h - Duplicate (a scalar into lanes) and Copy (masked, UB to UB). */
#ifndef DOPPEL_ASCENDC_VECTOR_FILL_H
#define DOPPEL_ASCENDC_VECTOR_FILL_H

#include "ascendc/vector_common.h"

namespace AscendC {

#define DP_CHECK_FILL(Name, OP)                                                                                        \
    DP_CHECK_TYPE(Name, OP, T, "half, bfloat16_t, int16_t, uint16_t, int32_t, uint32_t or float")

template <typename T>
inline dp_insn dp_fill_insn(const LocalTensor<T> &dst, const dp_prim_t<T> &scalar, unsigned blk_stride, unsigned rep_stride,
                            dp_loc loc) {
    DP_CHECK_FILL("Duplicate", DP_OP_DUPLICATE);
    dp_insn insn = dp_vector_insn(DP_OP_DUPLICATE, 1, loc);
    dp_set_operand(insn.operand[0], dst, blk_stride, rep_stride);
    insn.scalar_bits = dp_scalar_bits(scalar);
    return insn;
}

template <typename T, bool isSetMask = true>
inline void Duplicate(const LocalTensor<T> &dstLocal, const dp_prim_t<dp_identity_t<T>> &scalarValue, uint64_t mask,
                      uint32_t repeatTimes, uint16_t dstBlockStride, uint8_t dstRepeatStride,
                      dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_fill_insn<T>(dstLocal, scalarValue, dstBlockStride, dstRepeatStride, loc);
    dp_mask_leading(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T, bool isSetMask = true>
inline void Duplicate(const LocalTensor<T> &dstLocal, const dp_prim_t<dp_identity_t<T>> &scalarValue,
                      const uint64_t mask[], uint32_t repeatTimes, uint16_t dstBlockStride, uint8_t dstRepeatStride,
                      dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_fill_insn<T>(dstLocal, scalarValue, dstBlockStride, dstRepeatStride, loc);
    dp_mask_bits(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T>
inline void Duplicate(const LocalTensor<T> &dstLocal, const dp_prim_t<dp_identity_t<T>> &scalarValue,
                      const int32_t &calCount, dp_loc loc = dp_loc::current()) {
    DP_CHECK_FILL("Duplicate", DP_OP_DUPLICATE);
    dp_count_fill(dp_code_of<T, T>(DP_OP_DUPLICATE), dstLocal.dp_local_of(), dp_scalar_bits(scalarValue),
                  static_cast<uint32_t>(calCount), loc);
}

template <typename T>
inline dp_insn dp_copy_insn(const LocalTensor<T> &dst, const LocalTensor<T> &src, const CopyRepeatParams &p, dp_loc loc) {
    DP_CHECK_FILL("Copy", DP_OP_VCOPY);
    dp_insn insn = dp_vector_insn(DP_OP_VCOPY, 2, loc);
    dp_set_operand(insn.operand[0], dst, p.dstStride, p.dstRepeatSize);
    dp_set_operand(insn.operand[1], src, p.srcStride, p.srcRepeatSize);
    return insn;
}

template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const uint64_t mask[],
                 uint32_t repeatTimes, const CopyRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_copy_insn(dstLocal, srcLocal, repeatParams, loc);
    dp_mask_bits(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, uint64_t mask, uint32_t repeatTimes,
                 const CopyRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_copy_insn(dstLocal, srcLocal, repeatParams, loc);
    dp_mask_leading(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}

#undef DP_CHECK_FILL

} // namespace AscendC

#endif
