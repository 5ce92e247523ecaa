#include "graph/onnx/element.h"

#include "ops/tensor.h"

int dp_onnx_element(int data_type) {
    static const int8_t elements[] = {
        [1] = DP_F32 + 1, [2] = DP_U8 + 1,      [3] = DP_I8 + 1,   [4] = DP_U16 + 1,  [5] = DP_I16 + 1,
        [6] = DP_I32 + 1, [7] = DP_I64 + 1,     [9] = DP_EL_BOOL + 1, [10] = DP_F16 + 1, [11] = DP_F64 + 1,
        [12] = DP_U32 + 1, [13] = DP_U64 + 1,   [14] = DP_EL_C64 + 1, [15] = DP_EL_C128 + 1, [16] = DP_BF16 + 1};
    bool known = data_type > 0 && data_type < (int)sizeof elements;
    return known && elements[data_type] ? elements[data_type] - 1 : DP_EL_NONE;
}
