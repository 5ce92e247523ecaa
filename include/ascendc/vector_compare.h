/* vector_compare.h - Compare and CompareScalar: one result bit per lane, lowest bit first. */
#ifndef DOPPEL_ASCENDC_VECTOR_COMPARE_H
#define DOPPEL_ASCENDC_VECTOR_COMPARE_H

#include "ascendc/vector_common.h"

namespace AscendC {

#define DP_CHECK_COMPARE(Name)                                                                                         \
    DP_CHECK_TYPE(Name, DP_OP_COMPARE, T, "half, float or (EQ only) int32_t");                                         \
    static_assert(dp_is<U>(DP_U8) || dp_is<U>(DP_I8), Name ": the destination holds bits; use uint8_t or int8_t")

/* With a destination: the vector mask does not count. */
template <typename T, typename U, bool isSetMask = true>
inline void Compare(const LocalTensor<U> &dstLocal, const LocalTensor<T> &src0Local, const LocalTensor<T> &src1Local,
                    CMPMODE cmpMode, const uint64_t mask[], uint32_t repeatTimes, const BinaryRepeatParams &repeatParams,
                    dp_loc loc = dp_loc::current()) {
    DP_CHECK_COMPARE("Compare");
    dp_insn insn = dp_binary_insn(DP_OP_COMPARE, dstLocal, src0Local, src1Local, repeatParams, loc);
    insn.u.vec.cmp_mode = static_cast<uint8_t>(cmpMode);
    dp_mask_bits(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T, typename U, bool isSetMask = true>
inline void Compare(const LocalTensor<U> &dstLocal, const LocalTensor<T> &src0Local, const LocalTensor<T> &src1Local,
                    CMPMODE cmpMode, uint64_t mask, uint32_t repeatTimes, const BinaryRepeatParams &repeatParams,
                    dp_loc loc = dp_loc::current()) {
    DP_CHECK_COMPARE("Compare");
    dp_insn insn = dp_binary_insn(DP_OP_COMPARE, dstLocal, src0Local, src1Local, repeatParams, loc);
    insn.u.vec.cmp_mode = static_cast<uint8_t>(cmpMode);
    dp_mask_leading(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T, typename U>
inline void Compare(const LocalTensor<U> &dstLocal, const LocalTensor<T> &src0Local, const LocalTensor<T> &src1Local,
                    CMPMODE cmpMode, uint32_t calCount, dp_loc loc = dp_loc::current()) {
    DP_CHECK_COMPARE("Compare");
    dp_insn insn = dp_binary_insn(DP_OP_COMPARE, dstLocal, src0Local, src1Local, BinaryRepeatParams(), loc);
    insn.u.vec.cmp_mode = static_cast<uint8_t>(cmpMode);
    dp_mask_count(insn, calCount);
    dp_issue(&insn);
}

/* Without: one repeat, the bits go to the CMPMASK register, the vector mask counts. */
template <typename T>
inline dp_insn dp_compare_register_insn(const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode,
                                        const BinaryRepeatParams &p, dp_loc loc) {
    DP_CHECK_TYPE("Compare", DP_OP_COMPARE, T, "half, float or (EQ only) int32_t");
    dp_insn insn = dp_binary_insn(DP_OP_COMPARE, src0, src0, src1, p, loc);
    insn.operand[0] = {};
    insn.u.vec.cmp_mode = static_cast<uint8_t>(mode);
    return insn;
}
template <typename T, bool isSetMask = true>
inline void Compare(const LocalTensor<T> &src0Local, const LocalTensor<T> &src1Local, CMPMODE cmpMode,
                    const uint64_t mask[], const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_compare_register_insn(src0Local, src1Local, cmpMode, repeatParams, loc);
    dp_mask_bits(insn, isSetMask, mask, 1);
    dp_issue(&insn);
}
template <typename T, bool isSetMask = true>
inline void Compare(const LocalTensor<T> &src0Local, const LocalTensor<T> &src1Local, CMPMODE cmpMode, uint64_t mask,
                    const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_compare_register_insn(src0Local, src1Local, cmpMode, repeatParams, loc);
    dp_mask_leading(insn, isSetMask, mask, 1);
    dp_issue(&insn);
}

template <typename T, typename U>
inline dp_insn dp_compare_scalar_insn(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const dp_prim_t<T> &scalar,
                                      CMPMODE mode, const UnaryRepeatParams &p, dp_loc loc) {
    DP_CHECK_COMPARE("CompareScalar");
    dp_insn insn = dp_unary_insn(DP_OP_COMPARE_SCALAR, dst, src0, p, loc);
    insn.scalar_bits = dp_scalar_bits(scalar);
    insn.u.vec.cmp_mode = static_cast<uint8_t>(mode);
    return insn;
}
/* CompareScalar, and Compares: its name in newer releases. */
#define DP_COMPARE_SCALAR(Name)                                                                                        \
    template <typename T, typename U, bool isSetMask = true>                                                           \
    inline void Name(const LocalTensor<U> &dstLocal, const LocalTensor<T> &src0Local,                                  \
                     const dp_prim_t<dp_identity_t<T>> src1Scalar, CMPMODE cmpMode, const uint64_t mask[],             \
                     uint32_t repeatTimes, const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {    \
        dp_insn insn = dp_compare_scalar_insn<T, U>(dstLocal, src0Local, src1Scalar, cmpMode, repeatParams, loc);      \
        dp_mask_bits(insn, isSetMask, mask, repeatTimes);                                                              \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T, typename U, bool isSetMask = true>                                                           \
    inline void Name(const LocalTensor<U> &dstLocal, const LocalTensor<T> &src0Local,                                  \
                     const dp_prim_t<dp_identity_t<T>> src1Scalar, CMPMODE cmpMode, uint64_t mask,                     \
                     uint32_t repeatTimes, const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {    \
        dp_insn insn = dp_compare_scalar_insn<T, U>(dstLocal, src0Local, src1Scalar, cmpMode, repeatParams, loc);      \
        dp_mask_leading(insn, isSetMask, mask, repeatTimes);                                                           \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T, typename U>                                                                                  \
    inline void Name(const LocalTensor<U> &dstLocal, const LocalTensor<T> &src0Local,                                  \
                     const dp_prim_t<dp_identity_t<T>> src1Scalar, CMPMODE cmpMode, uint32_t calCount,                 \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        dp_insn insn =                                                                                                 \
            dp_compare_scalar_insn<T, U>(dstLocal, src0Local, src1Scalar, cmpMode, UnaryRepeatParams(), loc);          \
        dp_mask_count(insn, calCount);                                                                                 \
        dp_issue(&insn);                                                                                               \
    }
DP_COMPARE_SCALAR(CompareScalar)
DP_COMPARE_SCALAR(Compares)
#undef DP_COMPARE_SCALAR
#undef DP_CHECK_COMPARE

} // namespace AscendC

#endif
