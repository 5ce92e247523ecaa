/*
 * reduce.h - element-wise accumulation into device memory by a stream: dst = dst op src.
 */
#ifndef DOPPEL_RUNTIME_REDUCE_H
#define DOPPEL_RUNTIME_REDUCE_H

#include "base/status.h"
#include "doppel/types.h"

typedef enum dp_reduce_op { DP_REDUCE_SUM, DP_REDUCE_MAX, DP_REDUCE_MIN, DP_REDUCE_OP_COUNT } dp_reduce_op;

/*
 * Queues dst[i] = dst[i] op src[i] over size_bytes, rounded in the element's type. Both ends must be device memory and
 * aligned to the element; size_bytes must be whole elements (DP_ERR_ARGUMENT). DP_ERR_UNSUPPORTED for types the vector
 * unit does not compute in.
 */
dp_status dp_reduce_async(void *dst, const void *src, size_t size_bytes, dp_reduce_op op, dp_dtype dtype, void *stream);

#endif
