/*
 * vector_cast.h - conversions: Cast, CastDeq, and arithmetic that ends in another width. Which pairs of types take which
 * rounding modes is checked by the core; pairs that exist with no mode do not compile.
 */
#ifndef DOPPEL_ASCENDC_VECTOR_CAST_H
#define DOPPEL_ASCENDC_VECTOR_CAST_H

#include "ascendc/vector_common.h"

namespace AscendC {

/* Types a source casts to, bit = dp_dtype. */
constexpr uint32_t dp_cast_targets(uint8_t source) {
    switch (source) {
    case DP_F16: return DP_T(DP_F32) | DP_T(DP_I32) | DP_T(DP_I16) | DP_T(DP_I8) | DP_T(DP_U8) | DP_T(DP_I4);
    case DP_F32:
        return DP_T(DP_F16) | DP_T(DP_BF16) | DP_T(DP_I16) | DP_T(DP_I32) | DP_T(DP_I64) | DP_T(DP_F32);
    case DP_BF16: return DP_T(DP_F32) | DP_T(DP_I32);
    case DP_I4:
    case DP_I8:
    case DP_U8: return DP_T(DP_F16);
    case DP_I16: return DP_T(DP_F16) | DP_T(DP_F32);
    case DP_I32: return DP_T(DP_F32) | DP_T(DP_F16) | DP_T(DP_I16) | DP_T(DP_I64);
    case DP_I64: return DP_T(DP_I32) | DP_T(DP_F32);
    default: return 0;
    }
}

#define DP_CHECK_CAST                                                                                                  \
    static_assert(dp_type_in<T1>(dp_cast_targets(dp_dtype_of<T2>())),                                                  \
                  "Cast: there is no instruction for this pair of types; half casts to float, int32_t, int16_t, "      \
                  "int8_t, uint8_t, int4b_t; float to half, bfloat16_t, int16_t, int32_t, int64_t, float; bfloat16_t " \
                  "to float, int32_t; int4b_t, int8_t and uint8_t to half; int16_t to half, float; int32_t to float, " \
                  "half, int16_t, int64_t; int64_t to int32_t, float")

template <typename T1, typename T2>
inline dp_insn dp_cast_insn(const LocalTensor<T1> &dst, const LocalTensor<T2> &src, RoundMode mode,
                            const UnaryRepeatParams &p, dp_loc loc) {
    DP_CHECK_CAST;
    dp_insn insn = dp_unary_insn(DP_OP_CAST, dst, src, p, loc);
    insn.u.vec.round_mode = static_cast<uint8_t>(mode);
    return insn;
}

template <typename T1, typename T2, bool isSetMask = true>
inline void Cast(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &srcLocal, const RoundMode &round_mode,
                 const uint64_t mask[], uint32_t repeatTimes, const UnaryRepeatParams &repeatParams,
                 dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_cast_insn(dstLocal, srcLocal, round_mode, repeatParams, loc);
    dp_mask_bits(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T1, typename T2, bool isSetMask = true>
inline void Cast(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &srcLocal, const RoundMode &round_mode,
                 uint64_t mask, uint32_t repeatTimes, const UnaryRepeatParams &repeatParams,
                 dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_cast_insn(dstLocal, srcLocal, round_mode, repeatParams, loc);
    dp_mask_leading(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T1, typename T2>
inline void Cast(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &srcLocal, const RoundMode &round_mode,
                 uint32_t calCount, dp_loc loc = dp_loc::current()) {
    DP_CHECK_CAST;
    dp_count_cast(dp_code_of<T1, T2>(DP_OP_CAST, static_cast<unsigned>(round_mode)), dstLocal.dp_local_of(),
                  srcLocal.dp_local_of(), calCount, loc);
}

template <typename T1, typename T2>
inline dp_insn dp_cast_deq_insn(const LocalTensor<T1> &dst, const LocalTensor<T2> &src, bool vec_deq, bool half_block,
                                const UnaryRepeatParams &p, dp_loc loc) {
    DP_CHECK_PAIR("CastDeq", dp_is<T2>(DP_I16) && (dp_is<T1>(DP_I8) || dp_is<T1>(DP_U8)),
                  "an int16_t source and an int8_t or uint8_t destination");
    dp_insn insn = dp_unary_insn(DP_OP_CAST_DEQ, dst, src, p, loc);
    insn.u.vec.flag0 = vec_deq;
    insn.u.vec.flag1 = half_block;
    return insn;
}

template <typename T1, typename T2, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>
inline void CastDeq(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &srcLocal, const uint64_t mask[],
                    uint32_t repeatTimes, const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_cast_deq_insn(dstLocal, srcLocal, isVecDeq, halfBlock, repeatParams, loc);
    dp_mask_bits(insn, isSetMask, mask, repeatTimes);
    dp_issue(&insn);
}
template <typename T1, typename T2, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>
inline void CastDeq(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &srcLocal, int32_t mask, uint32_t repeatTimes,
                    const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_cast_deq_insn(dstLocal, srcLocal, isVecDeq, halfBlock, repeatParams, loc);
    dp_mask_leading(insn, isSetMask, static_cast<uint32_t>(mask), repeatTimes);
    dp_issue(&insn);
}
template <typename T1, typename T2, bool isVecDeq = true, bool halfBlock = true>
inline void CastDeq(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &srcLocal, uint32_t calCount,
                    dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_cast_deq_insn(dstLocal, srcLocal, isVecDeq, halfBlock, UnaryRepeatParams(), loc);
    dp_mask_count(insn, calCount);
    dp_issue(&insn);
}

/* A three-operand form whose count is unsigned. */
#define DP_WIDTH2(Name, OP, T1, T2, HEAD, SET, CHECK)                                                                  \
    template <HEAD>                                                                                                    \
    inline void Name(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &src0Local,                                \
                     const LocalTensor<T2> &src1Local, uint64_t mask, uint32_t repeatTimes,                            \
                     const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {                         \
        CHECK;                                                                                                         \
        dp_insn insn = dp_binary_insn(OP, dstLocal, src0Local, src1Local, repeatParams, loc);                          \
        dp_mask_leading(insn, SET, mask, repeatTimes);                                                                 \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <HEAD>                                                                                                    \
    inline void Name(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &src0Local,                                \
                     const LocalTensor<T2> &src1Local, const uint64_t mask[], uint32_t repeatTimes,                    \
                     const BinaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {                         \
        CHECK;                                                                                                         \
        dp_insn insn = dp_binary_insn(OP, dstLocal, src0Local, src1Local, repeatParams, loc);                          \
        dp_mask_bits(insn, SET, mask, repeatTimes);                                                                    \
        dp_issue(&insn);                                                                                               \
    }
#define DP_WIDTH2_COUNT(Name, OP, CHECK)                                                                               \
    template <typename T1, typename T2>                                                                                \
    inline void Name(const LocalTensor<T1> &dstLocal, const LocalTensor<T2> &src0Local,                                \
                     const LocalTensor<T2> &src1Local, uint32_t calCount, dp_loc loc = dp_loc::current()) {            \
        CHECK;                                                                                                         \
        dp_insn insn = dp_binary_insn(OP, dstLocal, src0Local, src1Local, BinaryRepeatParams(), loc);                  \
        dp_mask_count(insn, calCount);                                                                                 \
        dp_issue(&insn);                                                                                               \
    }
#define DP_COMMA ,
#define DP_TYPES_AND_MASK typename T1 DP_COMMA typename T2 DP_COMMA bool isSetMask = true
#define DP_CHECK_RELU_CAST(Name)                                                                                       \
    DP_CHECK_PAIR(Name, (dp_is<T2>(DP_F16) && dp_is<T1>(DP_I8)) || (dp_is<T2>(DP_F32) && dp_is<T1>(DP_F16)) ||         \
                            (dp_is<T2>(DP_I16) && dp_is<T1>(DP_I8)),                                                   \
                  "half sources and an int8_t destination, float and half, or int16_t and int8_t")
#define DP_CHECK_MUL_CAST                                                                                              \
    DP_CHECK_PAIR("MulCast", dp_is<T2>(DP_F16) && (dp_is<T1>(DP_I8) || dp_is<T1>(DP_U8)),                              \
                  "half sources and an int8_t or uint8_t destination")
#define DP_CHECK_ADD_DEQ                                                                                               \
    DP_CHECK_PAIR("AddDeqRelu", dp_is<T2>(DP_I32) && dp_is<T1>(DP_F16), "int32_t sources and a half destination")

DP_WIDTH2(AddReluCast, DP_OP_ADD_RELU_CAST, T1, T2, DP_TYPES_AND_MASK, isSetMask, DP_CHECK_RELU_CAST("AddReluCast"))
DP_WIDTH2_COUNT(AddReluCast, DP_OP_ADD_RELU_CAST, DP_CHECK_RELU_CAST("AddReluCast"))
DP_WIDTH2(SubReluCast, DP_OP_SUB_RELU_CAST, T1, T2, DP_TYPES_AND_MASK, isSetMask, DP_CHECK_RELU_CAST("SubReluCast"))
DP_WIDTH2_COUNT(SubReluCast, DP_OP_SUB_RELU_CAST, DP_CHECK_RELU_CAST("SubReluCast"))
DP_WIDTH2(MulCast, DP_OP_MUL_CAST, T1, T2, typename T1 DP_COMMA typename T2, true, DP_CHECK_MUL_CAST)
DP_WIDTH2_COUNT(MulCast, DP_OP_MUL_CAST, DP_CHECK_MUL_CAST)
/* AddDeqRelu<isSetMask>(half, int32, ...) and AddDeqRelu<T, U, isSetMask>(...) */
DP_WIDTH2(AddDeqRelu, DP_OP_ADD_DEQ_RELU, half, int32_t, bool isSetMask = true, isSetMask, (void)0)
DP_WIDTH2(AddDeqRelu, DP_OP_ADD_DEQ_RELU, T1, T2, DP_TYPES_AND_MASK, isSetMask, DP_CHECK_ADD_DEQ)
DP_WIDTH2_COUNT(AddDeqRelu, DP_OP_ADD_DEQ_RELU, DP_CHECK_ADD_DEQ)

#undef DP_CHECK_CAST
#undef DP_WIDTH2
#undef DP_WIDTH2_COUNT
#undef DP_COMMA
#undef DP_TYPES_AND_MASK
#undef DP_CHECK_RELU_CAST
#undef DP_CHECK_MUL_CAST
#undef DP_CHECK_ADD_DEQ

} // namespace AscendC

#endif
