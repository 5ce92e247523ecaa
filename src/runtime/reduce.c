#include "runtime/reduce.h"

#include "math/math.h"
#include "runtime/device_memory.h"
#include "runtime/pool.h"
#include "runtime/report.h"
#include "runtime/stream.h"
#include "runtime/task.h"

enum { GRAIN_ELEMENTS = 1 << 18 };

typedef struct reduction {
    uint8_t *dst;
    const uint8_t *src;
    size_t elements, element_bytes;
    dp_binary_fn run;
} reduction;

static void run_piece(void *context, size_t begin, size_t end) {
    const reduction *r = context;
    uint8_t *dst = r->dst + begin * r->element_bytes;
    r->run(dst, dst, r->src + begin * r->element_bytes, end - begin);
}

static dp_status run(void *payload) {
    reduction *r = payload;
    dp_pool_for(r->elements, GRAIN_ELEMENTS, run_piece, r);
    return DP_OK;
}

static dp_status check_end(const char *argument, const void *ptr, size_t size_bytes, size_t element_bytes) {
    if ((uintptr_t)ptr % element_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %p, but must be aligned to its elements of %zu bytes", argument, ptr,
                       element_bytes);
    return dp_device_memory_check(argument, ptr, size_bytes);
}

dp_status dp_reduce_async(void *dst, const void *src, size_t size_bytes, dp_reduce_op op, dp_dtype dtype,
                          void *stream) {
    static const dp_math_binary operations[] = {
        [DP_REDUCE_SUM] = DP_MATH_ADD, [DP_REDUCE_MAX] = DP_MATH_MAX, [DP_REDUCE_MIN] = DP_MATH_MIN};
    if ((unsigned)op >= DP_REDUCE_OP_COUNT || (unsigned)dtype >= DP_DTYPE_COUNT)
        return dp_fail(DP_ERR_ARGUMENT, "kind is %d and type is %d, but must be a dp_reduce_op and a dp_dtype", (int)op,
                       (int)dtype);
    dp_binary_fn function = dp_math_current()->binary[operations[op]][dtype];
    size_t element_bytes = dp_dtype_bits(dtype) / 8;
    if (!function || !element_bytes)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "type is one the vector unit does not compute in: convert to half, float or int32");
    if (size_bytes % element_bytes)
        return dp_fail(DP_ERR_ARGUMENT, "count is %zu bytes, but must be whole elements of %zu bytes", size_bytes,
                       element_bytes);
    dp_status status = check_end("dst", dst, size_bytes, element_bytes);
    if (status == DP_OK)
        status = check_end("src", src, size_bytes, element_bytes);
    if (status)
        return status;
    reduction r = {dst, src, size_bytes / element_bytes, element_bytes, function};
    status = dp_task_submit(stream, "reduce", run, NULL, &r, sizeof r);
    int32_t device_id = 0;
    if (status == DP_OK && dp_report_wanted() && dp_stream_device(stream, &device_id) == DP_OK) {
        dp_report_memory(DP_HOST_READ, (uint32_t)device_id, NULL, src, size_bytes);
        dp_report_memory(DP_HOST_WRITE, (uint32_t)device_id, dst, NULL, size_bytes);
    }
    return status;
}
