/* Sizes of weights in blocks of 16 by 32 bytes: the documented answer, which a client compares with its own. */
#include "aclnnop/aclnn_trans_matmul_weight.h"

#include "api/aclnn.h"
#include "api/object.h"

enum { DIMS_LEAST = 2, DIMS_MOST = 6, BLOCK_ROWS = 16 };

static dp_status rounded_product(const aclIntArray *shape, uint64_t block_columns, uint64_t *out_elements) {
    uint64_t all = 1;
    for (uint64_t d = 0; d < shape->count; d++) {
        if (shape->values[d] <= 0)
            return dp_fail(DP_ERR_ARGUMENT, "tensorShape[%llu] is %lld, but must be at least 1", (unsigned long long)d,
                           (long long)shape->values[d]);
        const uint64_t left = shape->count - d;
        const uint64_t step = left == 1 ? block_columns : left == 2 ? BLOCK_ROWS : 1;
        const uint64_t size = ((uint64_t)shape->values[d] + step - 1) / step * step;
        if (__builtin_mul_overflow(all, size, &all) || all > INT64_MAX / 8)
            return dp_fail(DP_ERR_ARGUMENT,
                           "tensorShape[%llu] is %lld, which makes more elements than any memory holds",
                           (unsigned long long)d, (long long)shape->values[d]);
    }
    *out_elements = all;
    return DP_OK;
}

static dp_status weight_size(const aclIntArray *shape, aclDataType type, uint64_t *out_elements) {
    if (!shape)
        return dp_fail(DP_ERR_NOT_FOUND, "tensorShape is NULL, but must be the shape (n, k) of the weight");
    if (!out_elements)
        return dp_fail(DP_ERR_NOT_FOUND, "weightTensorSize is NULL, but must be the address of a uint64_t");
    const aclIntArray *live = dp_object_get(DP_OBJECT_INT_ARRAY, shape, "tensorShape");
    if (!live)
        return DP_ERR_HANDLE;
    if (live->count < DIMS_LEAST || live->count > DIMS_MOST)
        return dp_fail(DP_ERR_ARGUMENT, "tensorShape has %llu sizes, but must have %d to %d: (batch, n, k)",
                       (unsigned long long)live->count, DIMS_LEAST, DIMS_MOST);
    if (type != ACL_FLOAT16 && type != ACL_BF16 && type != ACL_FLOAT && type != ACL_INT8)
        return dp_fail(DP_ERR_ARGUMENT, "dataType is %d, but must be ACL_FLOAT16, ACL_BF16, ACL_FLOAT or ACL_INT8",
                       (int)type);
    return rounded_product(live, type == ACL_INT8 ? 32 : 16, out_elements);
}

aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray *tensorShape, uint64_t *weightTensorSize) {
    dp_api_call call = DP_API_CALL();
    return dp_aclnn_end(&call, weight_size(tensorShape, ACL_FLOAT16, weightTensorSize));
}

aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray *tensorShape, aclDataType dataType,
                                             uint64_t *weightTensorSize) {
    dp_api_call call = DP_API_CALL();
    return dp_aclnn_end(&call, weight_size(tensorShape, dataType, weightTensorSize));
}
