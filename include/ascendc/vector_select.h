/* vector_select.h - Select: bit 1 takes src0, bit 0 takes src1 or the scalar. */
#ifndef DOPPEL_ASCENDC_VECTOR_SELECT_H
#define DOPPEL_ASCENDC_VECTOR_SELECT_H

#include "ascendc/vector_common.h"

namespace AscendC {

/* [1] is the selection mask; src1 is a tensor, or absent for a scalar right side. */
template <typename T, typename U>
inline dp_insn dp_select_insn(const LocalTensor<T> &dst, const LocalTensor<U> &sel_mask, const LocalTensor<T> &src0,
                              const LocalTensor<T> *src1, SELMODE mode, const BinaryRepeatParams &p, dp_loc loc) {
    DP_CHECK_TYPE("Select", DP_OP_SELECT, T, "half or float");
    static_assert(dp_is<U>(DP_U8) || dp_is<U>(DP_U16) || dp_is<U>(DP_U32) || dp_is<U>(DP_U64) || dp_is<U>(DP_I8),
                  "Select: the selection mask holds bits; use uint8_t, uint16_t, uint32_t or uint64_t");
    dp_insn insn = dp_vector_insn(DP_OP_SELECT, src1 ? 4 : 3, loc);
    dp_set_operand(insn.operand[0], dst, p.dstBlkStride, p.dstRepStride);
    dp_set_operand(insn.operand[1], sel_mask, 1, 8);
    dp_set_operand(insn.operand[2], src0, p.src0BlkStride, p.src0RepStride);
    if (src1)
        dp_set_operand(insn.operand[3], *src1, p.src1BlkStride, p.src1RepStride);
    insn.u.vec.sel_mode = static_cast<uint8_t>(mode);
    return insn;
}

#define DP_SELECT_FORM(MASK_PARAMETER, MASK)                                                                           \
    template <typename T, typename U, bool isSetMask = true>                                                           \
    inline void Select(const LocalTensor<T> &dstLocal, const LocalTensor<U> &selMask, const LocalTensor<T> &src0Local, \
                       const LocalTensor<T> &src1Local, SELMODE selMode, MASK_PARAMETER, uint32_t repeatTimes,         \
                       const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {                       \
        dp_insn insn = dp_select_insn(dstLocal, selMask, src0Local, &src1Local, selMode, repeatParams, loc);           \
        MASK(insn, isSetMask, mask, repeatTimes);                                                                      \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T, typename U, bool isSetMask = true>                                                           \
    inline void Select(const LocalTensor<T> &dstLocal, const LocalTensor<U> &selMask, const LocalTensor<T> &src0Local, \
                       dp_prim_t<dp_identity_t<T>> src1Local, SELMODE selMode, MASK_PARAMETER, uint32_t repeatTimes,   \
                       const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {                       \
        dp_insn insn = dp_select_insn<T, U>(dstLocal, selMask, src0Local, nullptr, selMode, repeatParams, loc);        \
        insn.scalar_bits = dp_scalar_bits(src1Local);                                                                  \
        MASK(insn, isSetMask, mask, repeatTimes);                                                                      \
        dp_issue(&insn);                                                                                               \
    }
#define DP_BITS_PARAMETER const uint64_t mask[]
#define DP_LEADING_PARAMETER uint64_t mask
DP_SELECT_FORM(DP_BITS_PARAMETER, dp_mask_bits)
DP_SELECT_FORM(DP_LEADING_PARAMETER, dp_mask_leading)
#undef DP_SELECT_FORM
#undef DP_BITS_PARAMETER
#undef DP_LEADING_PARAMETER

template <typename T, typename U>
inline void Select(const LocalTensor<T> &dstLocal, const LocalTensor<U> &selMask, const LocalTensor<T> &src0Local,
                   const LocalTensor<T> &src1Local, SELMODE selMode, uint32_t calCount, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_select_insn(dstLocal, selMask, src0Local, &src1Local, selMode, BinaryRepeatParams(), loc);
    dp_mask_count(insn, calCount);
    dp_issue(&insn);
}
template <typename T, typename U>
inline void Select(const LocalTensor<T> &dstLocal, const LocalTensor<U> &selMask, const LocalTensor<T> &src0Local,
                   dp_prim_t<dp_identity_t<T>> src1Local, SELMODE selMode, uint32_t calCount,
                   dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_select_insn<T, U>(dstLocal, selMask, src0Local, nullptr, selMode, BinaryRepeatParams(), loc);
    insn.scalar_bits = dp_scalar_bits(src1Local);
    dp_mask_count(insn, calCount);
    dp_issue(&insn);
}

/* The bits (mode 0) or their address (mode 2) are in CMPMASK; the vector mask is used as it stands. */
template <typename T, SELMODE selMode>
inline void Select(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local, const LocalTensor<T> &src1Local,
                   uint32_t repeatTimes, const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    static_assert(selMode != SELMODE::VSEL_TENSOR_SCALAR_MODE,
                  "Select without a mask tensor takes VSEL_CMPMASK_SPR or VSEL_TENSOR_TENSOR_MODE");
    LocalTensor<uint8_t> none;
    dp_insn insn = dp_select_insn(dstLocal, none, src0Local, &src1Local, selMode, repeatParams, loc);
    insn.operand[1] = {};
    dp_mask_leading(insn, false, 0, repeatTimes);
    dp_issue(&insn);
}
/* The scalar right side is in CMPMASK; the vector mask is used as it stands. */
template <typename T, typename U>
inline void Select(const LocalTensor<T> &dstLocal, const LocalTensor<U> &selMask, const LocalTensor<T> &src0Local,
                   uint32_t repeatTimes, const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_select_insn<T, U>(dstLocal, selMask, src0Local, nullptr, SELMODE::VSEL_TENSOR_SCALAR_MODE,
                                        repeatParams, loc);
    insn.u.vec.flag0 = 1;
    dp_mask_leading(insn, false, 0, repeatTimes);
    dp_issue(&insn);
}

} // namespace AscendC

#endif
