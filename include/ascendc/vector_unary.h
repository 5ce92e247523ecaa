/* vector_unary.h - instructions on one source tensor: dst = op src. */
#ifndef DOPPEL_ASCENDC_VECTOR_UNARY_H
#define DOPPEL_ASCENDC_VECTOR_UNARY_H

#include "ascendc/vector_common.h"

namespace AscendC {

#define DP_UNARY(Name, OP, legal)                                                                                      \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const uint64_t mask[],            \
                     uint32_t repeatTimes, const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {    \
        DP_CHECK_TYPE(#Name, OP, T, legal);                                                                            \
        dp_insn insn = dp_unary_insn(OP, dstLocal, srcLocal, repeatParams, loc);                                       \
        dp_mask_bits(insn, isSetMask, mask, repeatTimes);                                                              \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, uint64_t mask,                    \
                     uint32_t repeatTimes, const UnaryRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {    \
        DP_CHECK_TYPE(#Name, OP, T, legal);                                                                            \
        dp_insn insn = dp_unary_insn(OP, dstLocal, srcLocal, repeatParams, loc);                                       \
        dp_mask_leading(insn, isSetMask, mask, repeatTimes);                                                           \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const int32_t &calCount,          \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        DP_CHECK_TYPE(#Name, OP, T, legal);                                                                            \
        dp_count_unary(dp_code_of<T, T>(OP), dstLocal.dp_local_of(), srcLocal.dp_local_of(),                           \
                       static_cast<uint32_t>(calCount), loc);                                                          \
    }

DP_UNARY(Abs, DP_OP_ABS, "half or float")
DP_UNARY(Exp, DP_OP_EXP, "half or float")
DP_UNARY(Ln, DP_OP_LN, "half or float")
DP_UNARY(Sqrt, DP_OP_SQRT, "half or float")
DP_UNARY(Rsqrt, DP_OP_RSQRT, "half or float")
DP_UNARY(Reciprocal, DP_OP_RECIPROCAL, "half or float")
DP_UNARY(Relu, DP_OP_RELU, "half, float or int32_t")
DP_UNARY(Not, DP_OP_NOT, "int16_t or uint16_t")

#undef DP_UNARY

} // namespace AscendC

#endif
