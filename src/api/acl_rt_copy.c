#include "api/api.h"
#include "runtime/device_memory.h"
#include "runtime/reduce.h"

/* Leaves the entry point when the arguments every copy shares are wrong. */
#define CHECK_COPY(dst_max, bytes)                                                                                     \
    if (!dst)                                                                                                          \
        return dp_api_null(&call, "dst", "memory to copy to");                                                         \
    if (!src)                                                                                                          \
        return dp_api_null(&call, "src", "memory to copy from");                                                       \
    if ((bytes) > (dst_max))                                                                                           \
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "count is %zu, but must be at most destMax = %zu", bytes,   \
                           dst_max);                                                                                   \
    if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE)                                    \
    return dp_api_bad_value(&call, "kind", kind, "an aclrtMemcpyKind (0 to 7)")

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    dp_api_call call = DP_API_CALL();
    CHECK_COPY(destMax, count);
    return dp_api_end(&call, dp_copy(dst, destMax, src, count, (dp_copy_kind)kind));
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    CHECK_COPY(destMax, count);
    return dp_api_end(&call, dp_copy_async(dst, destMax, src, count, (dp_copy_kind)kind, stream));
}

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                                       aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    CHECK_COPY(destMax, count);
    return dp_api_end(&call, dp_copy_async(dst, destMax, src, count, (dp_copy_kind)kind, stream));
}

/* Leaves the entry point when the shape of a 2-D copy is wrong. */
#define CHECK_COPY_2D()                                                                                                \
    if (!dst)                                                                                                          \
        return dp_api_null(&call, "dst", "memory to copy to");                                                         \
    if (!src)                                                                                                          \
        return dp_api_null(&call, "src", "memory to copy from");                                                       \
    if (!width || !height)                                                                                             \
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM,                                                             \
                           "width is %zu and height is %zu, but both must be at least 1", width, height);              \
    if (width > dpitch)                                                                                                \
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "width is %zu, but must be at most dpitch = %zu", width,    \
                           dpitch);                                                                                    \
    if (width > spitch)                                                                                                \
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "width is %zu, but must be at most spitch = %zu", width,    \
                           spitch);                                                                                    \
    if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE)                                    \
    return dp_api_bad_value(&call, "kind", kind, "an aclrtMemcpyKind (0 to 7)")

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
    dp_api_call call = DP_API_CALL();
    CHECK_COPY_2D();
    return dp_api_end(&call, dp_copy_2d(dst, dpitch, src, spitch, width, height, (dp_copy_kind)kind));
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    CHECK_COPY_2D();
    return dp_api_end(&call, dp_copy_2d_async(dst, dpitch, src, spitch, width, height, (dp_copy_kind)kind, stream));
}

typedef struct batch {
    void **dsts, **srcs;
    size_t *dest_max, *sizes;
    size_t count;
    aclrtMemcpyBatchAttr *attrs;
    size_t *attrs_indexes;
    size_t attr_count;
} batch;

static bool on_device(const aclrtMemLocation *location) {
    return location->type == ACL_MEM_LOCATION_TYPE_DEVICE;
}

/* Sentence and false when the arrays are wrong; *out_index is the copy it is about, SIZE_MAX when none. */
static bool check_batch(const batch *b, size_t *out_index) {
    *out_index = SIZE_MAX;
    if (!b->count || !b->dsts || !b->srcs || !b->dest_max || !b->sizes) {
        dp_fail(DP_ERR_ARGUMENT,
                "numBatches is %zu and dsts, destMax, srcs, sizes are %p, %p, %p, %p, but all must be given, at least "
                "one copy",
                b->count, (void *)b->dsts, (void *)b->dest_max, (void *)b->srcs, (void *)b->sizes);
        return false;
    }
    if (!b->attr_count || b->attr_count > b->count || !b->attrs || !b->attrs_indexes || b->attrs_indexes[0] != 0) {
        dp_fail(
            DP_ERR_ARGUMENT,
            "numAttrs is %zu, but must be 1 to numBatches = %zu, with attrs and attrsIndexes whose first entry is 0",
            b->attr_count, b->count);
        return false;
    }
    for (size_t i = 1; i < b->attr_count; i++) {
        if (b->attrs_indexes[i] <= b->attrs_indexes[i - 1] || b->attrs_indexes[i] >= b->count) {
            dp_fail(DP_ERR_ARGUMENT, "attrsIndexes[%zu] is %zu, but must be larger than the one before and below %zu",
                    i, b->attrs_indexes[i], b->count);
            return false;
        }
    }
    for (size_t i = 0; i < b->count; i++) {
        *out_index = i;
        if (!b->dsts[i] || !b->srcs[i] || b->sizes[i] > b->dest_max[i]) {
            dp_fail(DP_ERR_ARGUMENT,
                    "copy %zu: dsts is %p, srcs is %p, sizes is %zu, but must be at most destMax = %zu", i, b->dsts[i],
                    b->srcs[i], b->sizes[i], b->dest_max[i]);
            return false;
        }
    }
    *out_index = SIZE_MAX;
    return true;
}

static aclError copy_batch(dp_api_call *call, const batch *b, size_t *fail_index, bool async) {
    size_t failed = SIZE_MAX, attr = 0;
    dp_status status = check_batch(b, &failed) ? DP_OK : DP_ERR_ARGUMENT;
    for (size_t i = 0; status == DP_OK && i < b->count; i++) {
        if (attr + 1 < b->attr_count && b->attrs_indexes[attr + 1] == i)
            attr++;
        bool to = on_device(&b->attrs[attr].dstLoc), from = on_device(&b->attrs[attr].srcLoc);
        dp_copy_kind kind = to ? (from ? DP_COPY_DEVICE_TO_DEVICE : DP_COPY_HOST_TO_DEVICE)
                               : (from ? DP_COPY_DEVICE_TO_HOST : DP_COPY_HOST_TO_HOST);
        status = async ? dp_copy_async(b->dsts[i], b->dest_max[i], b->srcs[i], b->sizes[i], kind, call->stream)
                       : dp_copy(b->dsts[i], b->dest_max[i], b->srcs[i], b->sizes[i], kind);
        if (status)
            failed = i;
    }
    if (fail_index)
        *fail_index = failed;
    return dp_api_end(call, status);
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMax, void **srcs, size_t *sizes, size_t numBatches,
                          aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIdx) {
    dp_api_call call = DP_API_CALL();
    batch b = {dsts, srcs, destMax, sizes, numBatches, attrs, attrsIndexes, numAttrs};
    return copy_batch(&call, &b, failIdx, false);
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMax, void **srcs, size_t *sizes, size_t numBatches,
                               aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex,
                               aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    batch b = {dsts, srcs, destMax, sizes, numBatches, attrs, attrsIndexes, numAttrs};
    return copy_batch(&call, &b, failIndex, true);
}

#define CHECK_FILL()                                                                                                   \
    if (!devPtr)                                                                                                       \
        return dp_api_null(&call, "devPtr", "memory to fill");                                                         \
    if (count > maxCount)                                                                                              \
    return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "count is %zu, but must be at most maxCount = %zu", count,      \
                       maxCount)

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
    dp_api_call call = DP_API_CALL();
    CHECK_FILL();
    return dp_api_end(&call, dp_fill(devPtr, maxCount, value, count));
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    CHECK_FILL();
    return dp_api_end(&call, dp_fill_async(devPtr, maxCount, value, count, stream));
}

/* Our name of the element type; DP_DTYPE_COUNT when reductions do not know it. */
static dp_dtype element_of(aclDataType type) {
    switch (type) {
    case ACL_FLOAT:
        return DP_F32;
    case ACL_FLOAT16:
        return DP_F16;
    case ACL_INT16:
        return DP_I16;
    case ACL_INT32:
        return DP_I32;
    default:
        return DP_DTYPE_COUNT;
    }
}

aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
                          aclrtStream stream, void *reserve) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    if (!dst)
        return dp_api_null(&call, "dst", "device memory to reduce into");
    if (!src)
        return dp_api_null(&call, "src", "device memory to reduce");
    if (kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL)
        return dp_api_bad_value(&call, "kind", kind, "an aclrtReduceKind (0 to 3)");
    if (reserve)
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "reserve is %p, but must be NULL", reserve);
    if (kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL)
        return dp_api_refuse(&call, "kind is ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL (3): use sum, maximum or minimum");
    dp_dtype element = element_of(type);
    if (element == DP_DTYPE_COUNT)
        return dp_api_fail(&call, ACL_ERROR_API_NOT_SUPPORT,
                           "type is %d, but must be ACL_FLOAT, ACL_FLOAT16, ACL_INT16 or ACL_INT32", (int)type);
    static const dp_reduce_op operations[] = {DP_REDUCE_SUM, DP_REDUCE_MAX, DP_REDUCE_MIN};
    return dp_api_end(&call, dp_reduce_async(dst, src, count, operations[kind], element, stream));
}
