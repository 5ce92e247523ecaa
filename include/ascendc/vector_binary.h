/* vector_binary.h - instructions on two source tensors: dst = src0 op src1. */
#ifndef DOPPEL_ASCENDC_VECTOR_BINARY_H
#define DOPPEL_ASCENDC_VECTOR_BINARY_H

#include "ascendc/vector_common.h"

namespace AscendC {

#define DP_BINARY_SAME(Name, OP, legal)                                                                                \
    DP_VECTOR_BINARY(Name, OP, typename T, T, DP_CHECK_TYPE(#Name, OP, T, legal), DP_CHECK_TYPE(#Name, OP, T, legal))
/* And, Or: the count form also takes 32-bit integers. */
#define DP_BINARY_LOGIC(Name, OP)                                                                                      \
    DP_VECTOR_BINARY(Name, OP, typename T, T,                                                                          \
                     DP_CHECK_TYPE(#Name, OP, T, "int16_t or uint16_t (32-bit integers in the count form)"),           \
                     static_assert(dp_type_in<T>(dp_types_of(OP)) || dp_is<T>(DP_I32) || dp_is<T>(DP_U32),             \
                                   #Name ": this element type is not offered; use int16_t, uint16_t, int32_t or uint32_t"))

DP_BINARY_SAME(Add, DP_OP_ADD, "half, float, int16_t or int32_t")
DP_BINARY_SAME(Sub, DP_OP_SUB, "half, float, int16_t or int32_t")
DP_BINARY_SAME(Mul, DP_OP_MUL, "half, float, int16_t or int32_t")
DP_BINARY_SAME(Div, DP_OP_DIV, "half or float")
DP_BINARY_SAME(Max, DP_OP_MAX, "half, float, int16_t or int32_t")
DP_BINARY_SAME(Min, DP_OP_MIN, "half, float, int16_t or int32_t")
DP_BINARY_LOGIC(And, DP_OP_AND)
DP_BINARY_LOGIC(Or, DP_OP_OR)
DP_BINARY_SAME(AddRelu, DP_OP_ADD_RELU, "half, float or int16_t")
DP_BINARY_SAME(SubRelu, DP_OP_SUB_RELU, "half, float or int16_t")

#undef DP_BINARY_SAME
#undef DP_BINARY_LOGIC

} // namespace AscendC

#endif
