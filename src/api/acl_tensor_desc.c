#include <string.h>

#include "api/api.h"
#include "api/element.h"
#include "api/object.h"
#include "api/tensor_desc.h"
#include "base/memory.h"

static aclTensorDesc *get(const aclTensorDesc *desc) {
    return dp_object_get(DP_OBJECT_TENSOR_DESC, desc, "desc");
}

/* Checks numDims and dims and copies them; records a sentence and returns false when they are wrong. */
static bool take_dims(dp_desc_shape *to, bool *rank_unknown, int num_dims, const int64_t *dims) {
    if (num_dims < 0 || num_dims > DP_DESC_DIMS) {
        dp_fail(DP_ERR_ARGUMENT, "numDims is %d, but must be 0 to %d", num_dims, DP_DESC_DIMS);
        return false;
    }
    if (num_dims && !dims) {
        dp_fail(DP_ERR_ARGUMENT, "dims is NULL, but must be numDims = %d sizes", num_dims);
        return false;
    }
    bool unknown = num_dims == 1 && dims[0] == -2;
    for (int i = 0; i < num_dims && !unknown; i++) {
        if (dims[i] < -1) {
            dp_fail(DP_ERR_ARGUMENT, "dims[%d] is %lld, but must be a size, -1 (unknown) or alone -2 (unknown rank)", i,
                    (long long)dims[i]);
            return false;
        }
    }
    if (rank_unknown)
        *rank_unknown = unknown;
    to->rank = (size_t)num_dims;
    if (num_dims)
        memcpy(to->dims, dims, (size_t)num_dims * sizeof *dims);
    return true;
}

static bool check_format(const char *argument, aclFormat format) {
    if (dp_acl_format_known(format))
        return true;
    dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be an aclFormat", argument, (int)format);
    return false;
}

static bool replace_text(char **to, const char *text) {
    char *copy = NULL;
    if (text) {
        size_t bytes = strlen(text) + 1;
        copy = dp_alloc(DP_MEM_RUNTIME, bytes);
        if (!copy) {
            dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a name of %zu bytes: free some", bytes);
            return false;
        }
        memcpy(copy, text, bytes);
    }
    dp_free(*to);
    *to = copy;
    return true;
}

static void release(aclTensorDesc *desc) {
    dp_free(desc->value_range);
    dp_free(desc->name);
    dp_free(desc->dynamic_input);
    dp_free(desc->constant);
}

aclTensorDesc *aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t *dims, aclFormat format) {
    dp_api_call call = DP_API_CALL();
    dp_desc_shape sizes = {0};
    bool rank_unknown = false;
    if (!dp_acl_type_known(dataType)) {
        dp_api_bad_value(&call, "dataType", dataType, "an aclDataType");
        return NULL;
    }
    if (!take_dims(&sizes, &rank_unknown, numDims, dims) || !check_format("format", format)) {
        dp_api_end(&call, DP_ERR_ARGUMENT);
        return NULL;
    }
    aclTensorDesc *desc = dp_object_create(DP_OBJECT_TENSOR_DESC, sizeof *desc);
    if (desc) {
        desc->type = dataType;
        desc->format = desc->storage_format = desc->origin_format = format;
        desc->dims = desc->storage_dims = desc->origin_dims = sizes;
        desc->rank_unknown = rank_unknown;
    }
    dp_api_end(&call, desc ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return desc;
}

void aclDestroyTensorDesc(const aclTensorDesc *desc) {
    if (!desc)
        return;
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    if (live) {
        release(live);
        dp_object_destroy(DP_OBJECT_TENSOR_DESC, live, "desc");
    }
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
}

/* Product of the sizes; 0 when one is unknown or it does not fit. */
static size_t element_count(const aclTensorDesc *desc) {
    size_t count = 1;
    for (size_t i = 0; i < desc->dims.rank; i++) {
        if (desc->dims.dims[i] < 0 || __builtin_mul_overflow(count, (uint64_t)desc->dims.dims[i], &count))
            return 0;
    }
    return count;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc *desc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    return live ? element_count(live) : 0;
}

size_t aclGetTensorDescSize(const aclTensorDesc *desc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    size_t bits = 0;
    if (!live || __builtin_mul_overflow(element_count(live), (size_t)dp_acl_type_bits(live->type), &bits))
        return 0;
    return bits / 8 + (bits % 8 != 0);
}

aclDataType aclGetTensorDescType(const aclTensorDesc *desc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    return live ? live->type : ACL_DT_UNDEFINED;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc *desc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    return live ? live->format : ACL_FORMAT_UNDEFINED;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc *desc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    if (!live)
        return 0;
    return live->rank_unknown ? (size_t)ACL_UNKNOWN_RANK : live->dims.rank;
}

/* Records a sentence and returns false when there is no such dimension. */
static bool check_index(const aclTensorDesc *desc, size_t index) {
    if (!desc->rank_unknown && index < desc->dims.rank)
        return true;
    if (desc->rank_unknown)
        dp_fail(DP_ERR_ARGUMENT, "index is %zu, but the tensor's rank is unknown", index);
    else
        dp_fail(DP_ERR_ARGUMENT, "index is %zu, but the tensor has %zu dimensions", index, desc->dims.rank);
    return false;
}

int64_t aclGetTensorDescDim(const aclTensorDesc *desc, size_t index) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    bool good = live && check_index(live, index);
    dp_api_end(&call, good ? DP_OK : DP_ERR_ARGUMENT);
    return good ? live->dims.dims[index] : -1;
}

aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *dimSize) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    if (!live)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dimSize)
        return dp_api_null(&call, "dimSize", "the address of an int64_t for the size");
    if (!check_index(live, index))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    *dimSize = live->dims.dims[index];
    return dp_api_end(&call, DP_OK);
}

aclError aclGetTensorDescDimRange(const aclTensorDesc *desc, size_t index, size_t dimRangeNum, int64_t *dimRange) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    if (!live)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dimRange)
        return dp_api_null(&call, "dimRange", "the address of two int64_t for lowest and highest");
    if (dimRangeNum != 2)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "dimRangeNum is %zu, but must be 2: lowest and highest",
                           dimRangeNum);
    if (!check_index(live, index))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    int64_t size = live->dims.dims[index];
    if (size < 0 && index >= live->shape_ranges)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,
                           "dimension index = %zu is unknown and has no range: call aclSetTensorShapeRange first",
                           index);
    dimRange[0] = size < 0 ? live->shape_range[index][0] : size;
    dimRange[1] = size < 0 ? live->shape_range[index][1] : size;
    return dp_api_end(&call, DP_OK);
}

aclError aclSetTensorShapeRange(aclTensorDesc *desc, size_t dimsCount, int64_t (*dimsRange)[2]) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    if (!live)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (dimsCount > DP_DESC_DIMS)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "dimsCount is %zu, but must be 0 to %d", dimsCount,
                           DP_DESC_DIMS);
    if (dimsCount && !dimsRange)
        return dp_api_null(&call, "dimsRange", "dimsCount pairs of lowest and highest size");
    if (dimsCount)
        memcpy(live->shape_range, dimsRange, dimsCount * sizeof *dimsRange);
    live->shape_ranges = dimsCount;
    return dp_api_end(&call, DP_OK);
}

aclError aclSetTensorValueRange(aclTensorDesc *desc, size_t valueCount, int64_t (*valueRange)[2]) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    if (!live)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    size_t bytes = 0;
    if (__builtin_mul_overflow(valueCount, sizeof *valueRange, &bytes) || bytes > (size_t)1 << 30)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "valueCount is %zu, but must be at most %zu", valueCount,
                           ((size_t)1 << 30) / sizeof *valueRange);
    if (valueCount && !valueRange)
        return dp_api_null(&call, "valueRange", "valueCount pairs of lowest and highest value");
    int64_t(*copy)[2] = valueCount ? dp_alloc(DP_MEM_RUNTIME, bytes) : NULL;
    if (valueCount && !copy)
        return dp_api_fail(&call, ACL_ERROR_BAD_ALLOC, "no host memory for valueCount = %zu ranges: free some",
                           valueCount);
    if (valueCount)
        memcpy(copy, valueRange, bytes);
    dp_free(live->value_range);
    live->value_range = copy;
    live->value_ranges = valueCount;
    return dp_api_end(&call, DP_OK);
}

void aclSetTensorDescName(aclTensorDesc *desc, const char *name) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    bool good = live && replace_text(&live->name, name);
    dp_api_end(&call, good ? DP_OK : live ? DP_ERR_OUT_OF_MEMORY : DP_ERR_ARGUMENT);
}

const char *aclGetTensorDescName(aclTensorDesc *desc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    if (!live)
        return NULL;
    return live->name ? live->name : "";
}

aclError aclSetTensorDynamicInput(aclTensorDesc *desc, const char *dynamicInputName) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    if (!live)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dynamicInputName)
        return dp_api_null(&call, "dynamicInputName", "a name");
    return dp_api_end(&call, replace_text(&live->dynamic_input, dynamicInputName) ? DP_OK : DP_ERR_OUT_OF_MEMORY);
}

static aclError set_format(dp_api_call *call, aclFormat *to, aclFormat format) {
    if (!check_format("format", format))
        return dp_api_end(call, DP_ERR_ARGUMENT);
    *to = format;
    return dp_api_end(call, DP_OK);
}

static aclError set_shape(dp_api_call *call, dp_desc_shape *to, bool *rank_unknown, int num_dims, const int64_t *dims) {
    return dp_api_end(call, take_dims(to, rank_unknown, num_dims, dims) ? DP_OK : DP_ERR_ARGUMENT);
}

aclError aclSetTensorFormat(aclTensorDesc *desc, aclFormat format) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    return live ? set_format(&call, &live->format, format) : dp_api_end(&call, DP_ERR_ARGUMENT);
}

aclError aclSetTensorStorageFormat(aclTensorDesc *desc, aclFormat format) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    return live ? set_format(&call, &live->storage_format, format) : dp_api_end(&call, DP_ERR_ARGUMENT);
}

aclError aclSetTensorOriginFormat(aclTensorDesc *desc, aclFormat format) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    return live ? set_format(&call, &live->origin_format, format) : dp_api_end(&call, DP_ERR_ARGUMENT);
}

aclError aclSetTensorShape(aclTensorDesc *desc, int numDims, const int64_t *dims) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    return live ? set_shape(&call, &live->dims, &live->rank_unknown, numDims, dims)
                : dp_api_end(&call, DP_ERR_ARGUMENT);
}

aclError aclSetTensorStorageShape(aclTensorDesc *desc, int numDims, const int64_t *dims) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    return live ? set_shape(&call, &live->storage_dims, NULL, numDims, dims) : dp_api_end(&call, DP_ERR_ARGUMENT);
}

aclError aclSetTensorOriginShape(aclTensorDesc *desc, int numDims, const int64_t *dims) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    return live ? set_shape(&call, &live->origin_dims, NULL, numDims, dims) : dp_api_end(&call, DP_ERR_ARGUMENT);
}

/* Where each dimension of the destination is in the source; NULL when that change is not supported. */
static const uint8_t *permutation(aclFormat from, aclFormat to, size_t rank) {
    static const uint8_t nchw_to_nhwc[] = {0, 2, 3, 1}, nhwc_to_nchw[] = {0, 3, 1, 2},
                         ncdhw_to_ndhwc[] = {0, 2, 3, 4, 1}, ndhwc_to_ncdhw[] = {0, 4, 1, 2, 3};
    if (rank == 4 && from == ACL_FORMAT_NCHW && to == ACL_FORMAT_NHWC)
        return nchw_to_nhwc;
    if (rank == 4 && from == ACL_FORMAT_NHWC && to == ACL_FORMAT_NCHW)
        return nhwc_to_nchw;
    if (rank == 5 && from == ACL_FORMAT_NCDHW && to == ACL_FORMAT_NDHWC)
        return ncdhw_to_ndhwc;
    if (rank == 5 && from == ACL_FORMAT_NDHWC && to == ACL_FORMAT_NCDHW)
        return ndhwc_to_ncdhw;
    return NULL;
}

aclError aclTransTensorDescFormat(const aclTensorDesc *srcDesc, aclFormat dstFormat, aclTensorDesc **dstDesc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *from = dp_object_get(DP_OBJECT_TENSOR_DESC, srcDesc, "srcDesc");
    if (!from)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dstDesc)
        return dp_api_null(&call, "dstDesc", "the address of a pointer for the new description");
    if (!check_format("dstFormat", dstFormat))
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    const uint8_t *order = permutation(from->format, dstFormat, from->dims.rank);
    if (!order && from->format != dstFormat)
        return dp_api_fail(&call, ACL_ERROR_API_NOT_SUPPORT,
                           "dstFormat is %d, but the source has format %d and %zu dimensions: only NCHW<->NHWC and "
                           "NCDHW<->NDHWC are supported",
                           (int)dstFormat, (int)from->format, from->dims.rank);
    aclTensorDesc *desc = dp_object_create(DP_OBJECT_TENSOR_DESC, sizeof *desc);
    if (!desc)
        return dp_api_end(&call, DP_ERR_OUT_OF_MEMORY);
    desc->type = from->type;
    desc->format = desc->storage_format = desc->origin_format = dstFormat;
    desc->placement = from->placement;
    desc->rank_unknown = from->rank_unknown;
    desc->dims.rank = from->dims.rank;
    for (size_t i = 0; i < from->dims.rank; i++)
        desc->dims.dims[i] = from->dims.dims[order ? order[i] : i];
    desc->storage_dims = desc->origin_dims = desc->dims;
    *dstDesc = desc;
    return dp_api_end(&call, DP_OK);
}

aclTensorDesc *aclGetTensorDescByIndex(aclTensorDesc *desc, size_t index) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    if (live && index) {
        dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "index is %zu, but must be 0: this description is not in an array",
                    index);
        return NULL;
    }
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    return live;
}

void *aclGetTensorDescAddress(const aclTensorDesc *desc) {
    dp_api_call call = DP_API_CALL();
    const aclTensorDesc *live = get(desc);
    dp_api_end(&call, live ? DP_OK : DP_ERR_ARGUMENT);
    return live ? live->constant : NULL;
}

aclError aclSetTensorConst(aclTensorDesc *desc, void *dataBuffer, size_t length) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    if (!live)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dataBuffer)
        return dp_api_null(&call, "dataBuffer", "the host address of the constant");
    if (!length)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "length is 0, but must be the bytes of the constant");
    void *copy = length <= PTRDIFF_MAX / 2 ? dp_alloc(DP_MEM_RUNTIME, length) : NULL;
    if (!copy)
        return dp_api_fail(&call, ACL_ERROR_BAD_ALLOC, "no host memory for a constant of length = %zu: free some",
                           length);
    memcpy(copy, dataBuffer, length);
    dp_free(live->constant);
    live->constant = copy;
    live->constant_bytes = length;
    return dp_api_end(&call, DP_OK);
}

aclError aclSetTensorPlaceMent(aclTensorDesc *desc, aclMemType memType) {
    dp_api_call call = DP_API_CALL();
    aclTensorDesc *live = get(desc);
    if (!live)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (memType < ACL_MEMTYPE_DEVICE || memType > ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT)
        return dp_api_bad_value(&call, "memType", memType, "an aclMemType (0 to 2)");
    live->placement = memType;
    return dp_api_end(&call, DP_OK);
}
