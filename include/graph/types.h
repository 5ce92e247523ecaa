/*
 * types.h - element types and formats of the graph engine, with the numbers of aclDataType and aclFormat.
 */
#ifndef DOPPEL_GRAPH_TYPES_H
#define DOPPEL_GRAPH_TYPES_H

#include <cstddef>
#include <cstdint>

namespace ge {

enum DataType {
    DT_UNDEFINED = -1,
    DT_FLOAT = 0,
    DT_FLOAT16 = 1,
    DT_INT8 = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 6,
    DT_UINT16 = 7,
    DT_UINT32 = 8,
    DT_INT64 = 9,
    DT_UINT64 = 10,
    DT_DOUBLE = 11,
    DT_BOOL = 12,
    DT_STRING = 13,
    DT_COMPLEX64 = 16,
    DT_COMPLEX128 = 17,
    DT_BF16 = 27,
    DT_INT4 = 29
};

enum Format {
    FORMAT_NCHW = 0,
    FORMAT_NHWC = 1,
    FORMAT_ND = 2,
    FORMAT_NC1HWC0 = 3,
    FORMAT_HWCN = 16,
    FORMAT_NDHWC = 27,
    FORMAT_NCDHW = 30
};

} // namespace ge

#endif
