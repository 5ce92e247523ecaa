/* vector_ternary.h - instructions that also read their destination. */
#ifndef DOPPEL_ASCENDC_VECTOR_TERNARY_H
#define DOPPEL_ASCENDC_VECTOR_TERNARY_H

#include "ascendc/vector_common.h"

namespace AscendC {

#define DP_COMMA ,
#define DP_CHECK_MUL_ADD                                                                                               \
    DP_CHECK_PAIR("MulAddDst", (dp_is<T>(DP_F16) && dp_is<U>(DP_F16)) ||                                               \
                                   (dp_is<T>(DP_F32) && (dp_is<U>(DP_F32) || dp_is<U>(DP_F16))),                       \
                  "half and half, float and float, or a float destination and half sources")

/* dst = src0 * src1 + dst; dst = src0 * dst + src1; the latter and negative results become 0 */
DP_VECTOR_BINARY(MulAddDst, DP_OP_MUL_ADD_DST, typename T DP_COMMA typename U, U, DP_CHECK_MUL_ADD, DP_CHECK_MUL_ADD)
DP_VECTOR_BINARY(FusedMulAdd, DP_OP_FUSED_MUL_ADD, typename T, T,
                 DP_CHECK_TYPE("FusedMulAdd", DP_OP_FUSED_MUL_ADD, T, "half or float"),
                 DP_CHECK_TYPE("FusedMulAdd", DP_OP_FUSED_MUL_ADD, T, "half or float"))
DP_VECTOR_BINARY(FusedMulAddRelu, DP_OP_FUSED_MUL_ADD_RELU, typename T, T,
                 DP_CHECK_TYPE("FusedMulAddRelu", DP_OP_FUSED_MUL_ADD_RELU, T, "half or float"),
                 DP_CHECK_TYPE("FusedMulAddRelu", DP_OP_FUSED_MUL_ADD_RELU, T, "half or float"))

#undef DP_CHECK_MUL_ADD
#undef DP_COMMA

} // namespace AscendC

#endif
