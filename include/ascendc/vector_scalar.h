/* vector_scalar.h - instructions on a tensor and a scalar: dst = src op scalar, and Axpy: dst = src * scalar + dst. */
#ifndef DOPPEL_ASCENDC_VECTOR_SCALAR_H
#define DOPPEL_ASCENDC_VECTOR_SCALAR_H

#include "ascendc/vector_common.h"

namespace AscendC {

/*
 * Per mask form two overloads: f(dst, src, scalar, ...) and f<T, U>(dst, src, scalar, ...), where U is the element type of T
 * (they differ for TensorTrait). EXTRA is a further parameter, SET what to do with it.
 */
#define DP_SCALAR_FORM(Name, OP, legal, MASK_PARAMETERS, MASK, EXTRA, SET)                                             \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,                                   \
                     const dp_prim_t<dp_identity_t<T>> &scalarValue, MASK_PARAMETERS, uint32_t repeatTimes,            \
                     const UnaryRepeatParams &repeatParams EXTRA, dp_loc loc = dp_loc::current()) {                    \
        DP_CHECK_TYPE(#Name, OP, T, legal);                                                                            \
        dp_insn insn = dp_unary_insn(OP, dstLocal, srcLocal, repeatParams, loc);                                       \
        insn.scalar_bits = dp_scalar_bits(scalarValue);                                                                \
        SET;                                                                                                           \
        MASK(insn, isSetMask, mask, repeatTimes);                                                                      \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T, typename U, bool isSetMask = true,                                                           \
              typename = std::enable_if_t<std::is_same<dp_prim_t<T>, U>::value>>                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,                                   \
                     const dp_identity_t<U> &scalarValue, MASK_PARAMETERS, uint32_t repeatTimes,                       \
                     const UnaryRepeatParams &repeatParams EXTRA, dp_loc loc = dp_loc::current()) {                    \
        DP_CHECK_TYPE(#Name, OP, T, legal);                                                                            \
        dp_insn insn = dp_unary_insn(OP, dstLocal, srcLocal, repeatParams, loc);                                       \
        insn.scalar_bits = dp_scalar_bits(scalarValue);                                                                \
        SET;                                                                                                           \
        MASK(insn, isSetMask, mask, repeatTimes);                                                                      \
        dp_issue(&insn);                                                                                               \
    }

#define DP_SCALAR_COUNT(Name, OP, legal)                                                                               \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,                                   \
                     const dp_prim_t<dp_identity_t<T>> &scalarValue, const int32_t &calCount,                          \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        DP_CHECK_TYPE(#Name, OP, T, legal);                                                                            \
        dp_count_scalar(dp_code_of<T, T>(OP), dstLocal.dp_local_of(), srcLocal.dp_local_of(),                          \
                        dp_scalar_bits(scalarValue), static_cast<uint32_t>(calCount), loc);                            \
    }                                                                                                                  \
    template <typename T, typename U, bool isSetMask = true,                                                           \
              typename = std::enable_if_t<std::is_same<dp_prim_t<T>, U>::value>>                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,                                   \
                     const dp_identity_t<U> &scalarValue, const int32_t &calCount, dp_loc loc = dp_loc::current()) {   \
        Name<T, isSetMask>(dstLocal, srcLocal, scalarValue, calCount, loc);                                            \
    }

#define DP_NOTHING
#define DP_BITS_PARAMETER const uint64_t mask[]
#define DP_LEADING_PARAMETER uint64_t mask
#define DP_ROUND_PARAMETER , bool roundEn = false

#define DP_SCALAR(Name, OP, legal)                                                                                     \
    DP_SCALAR_FORM(Name, OP, legal, DP_BITS_PARAMETER, dp_mask_bits, DP_NOTHING, (void)0)                              \
    DP_SCALAR_FORM(Name, OP, legal, DP_LEADING_PARAMETER, dp_mask_leading, DP_NOTHING, (void)0)                        \
    DP_SCALAR_COUNT(Name, OP, legal)

DP_SCALAR(Adds, DP_OP_ADDS, "half, float, int16_t or int32_t")
DP_SCALAR(Muls, DP_OP_MULS, "half, float, int16_t or int32_t")
DP_SCALAR(Maxs, DP_OP_MAXS, "half, float, int16_t or int32_t")
DP_SCALAR(Mins, DP_OP_MINS, "half, float, int16_t or int32_t")
DP_SCALAR(LeakyRelu, DP_OP_LEAKY_RELU, "half or float")
DP_SCALAR(ShiftLeft, DP_OP_SHIFT_LEFT, "int16_t, uint16_t, int32_t or uint32_t")

#define DP_SHIFT_LEGAL "int16_t, uint16_t, int32_t or uint32_t"
DP_SCALAR_FORM(ShiftRight, DP_OP_SHIFT_RIGHT, DP_SHIFT_LEGAL, DP_BITS_PARAMETER, dp_mask_bits, DP_ROUND_PARAMETER,
               insn.u.vec.flag0 = roundEn)
DP_SCALAR_FORM(ShiftRight, DP_OP_SHIFT_RIGHT, DP_SHIFT_LEGAL, DP_LEADING_PARAMETER, dp_mask_leading, DP_ROUND_PARAMETER,
               insn.u.vec.flag0 = roundEn)
DP_SCALAR_COUNT(ShiftRight, DP_OP_SHIFT_RIGHT, DP_SHIFT_LEGAL)

#undef DP_SCALAR
#undef DP_SCALAR_FORM
#undef DP_SCALAR_COUNT
#undef DP_NOTHING
#undef DP_BITS_PARAMETER
#undef DP_LEADING_PARAMETER
#undef DP_ROUND_PARAMETER
#undef DP_SHIFT_LEGAL

#define DP_CHECK_AXPY                                                                                                  \
    DP_CHECK_PAIR("Axpy", (dp_is<T>(DP_F16) && dp_is<U>(DP_F16)) ||                                                    \
                              (dp_is<T>(DP_F32) && (dp_is<U>(DP_F32) || dp_is<U>(DP_F16))),                            \
                  "half and half, float and float, or a float destination and a half source")

template <typename T, typename U, bool isSetMask = true>
inline void Axpy(const LocalTensor<T> &dstLocal, const LocalTensor<U> &srcLocal,
                 const dp_prim_t<dp_identity_t<U>> &scalarValue, uint64_t mask, uint32_t repeatTimes,
                 const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    DP_CHECK_AXPY;
    dp_insn insn = dp_unary_insn(DP_OP_AXPY, dstLocal, srcLocal, repeatParams, loc);
    insn.scalar_bits = dp_scalar_bits(scalarValue);
    dp_mask_leading(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T, typename U, bool isSetMask = true>
inline void Axpy(const LocalTensor<T> &dstLocal, const LocalTensor<U> &srcLocal,
                 const dp_prim_t<dp_identity_t<U>> &scalarValue, const uint64_t mask[], uint32_t repeatTimes,
                 const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    DP_CHECK_AXPY;
    dp_insn insn = dp_unary_insn(DP_OP_AXPY, dstLocal, srcLocal, repeatParams, loc);
    insn.scalar_bits = dp_scalar_bits(scalarValue);
    dp_mask_bits(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T, typename U>
inline void Axpy(const LocalTensor<T> &dstLocal, const LocalTensor<U> &srcLocal,
                 const dp_prim_t<dp_identity_t<U>> &scalarValue, const int32_t &calCount,
                 dp_loc loc = dp_loc::current()) {
    DP_CHECK_AXPY;
    dp_count_scalar(dp_code_of<T, U>(DP_OP_AXPY), dstLocal.dp_local_of(), srcLocal.dp_local_of(),
                    dp_scalar_bits(scalarValue), static_cast<uint32_t>(calCount), loc);
}
#undef DP_CHECK_AXPY

} // namespace AscendC

#endif
