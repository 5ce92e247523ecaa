/*
 * tensor_desc.h - what is inside the descriptions and data buffers that single-operator calls take.
 */
#ifndef DOPPEL_API_TENSOR_DESC_H
#define DOPPEL_API_TENSOR_DESC_H

#include <stdbool.h>

#include "acl/acl_base.h"

#define DP_DESC_DIMS 128

typedef struct dp_desc_shape {
    size_t rank;
    int64_t dims[DP_DESC_DIMS]; /* -1: unknown */
} dp_desc_shape;

struct aclTensorDesc {
    aclDataType type;
    aclFormat format, storage_format, origin_format;
    aclMemType placement;
    bool rank_unknown;
    dp_desc_shape dims, storage_dims, origin_dims;
    size_t shape_ranges, value_ranges;
    int64_t shape_range[DP_DESC_DIMS][2];
    int64_t (*value_range)[2];
    char *name, *dynamic_input;
    void *constant; /* contents given by aclSetTensorConst */
    size_t constant_bytes;
};

struct aclDataBuffer {
    void *data;
    size_t size_bytes;
};

#endif
