/*
 * object.h - registry of the small host objects the API itself makes (tensor descriptions, data buffers, stream
 * configurations), so that a destroyed or foreign handle is recognised without touching its memory. Thread-safe, also
 * across fork.
 */
#ifndef DOPPEL_API_OBJECT_H
#define DOPPEL_API_OBJECT_H

#include "base/status.h"

typedef enum dp_object_kind {
    DP_OBJECT_TENSOR_DESC = 1,
    DP_OBJECT_DATA_BUFFER,
    DP_OBJECT_STREAM_CONFIG,
    DP_OBJECT_TENSOR,
    DP_OBJECT_SCALAR,
    DP_OBJECT_INT_ARRAY,
    DP_OBJECT_FLOAT_ARRAY,
    DP_OBJECT_BOOL_ARRAY,
    DP_OBJECT_TENSOR_LIST,
    DP_OBJECT_SCALAR_LIST,
    DP_OBJECT_OP_EXECUTOR,
    DP_OBJECT_OP_ATTR,
    DP_OBJECT_OP_HANDLE,
    DP_OBJECT_MODEL_DESC,
    DP_OBJECT_DATASET,
    DP_OBJECT_DVPP_CHANNEL,
    DP_OBJECT_DVPP_PICTURE,
    DP_OBJECT_DVPP_BATCH,
    DP_OBJECT_DVPP_ROI,
    DP_OBJECT_DVPP_RESIZE,
    DP_OBJECT_DVPP_JPEGE,
    DP_OBJECT_DVPP_BORDER,
    DP_OBJECT_DVPP_HIST,
    DP_OBJECT_DVPP_LUT,
    DP_OBJECT_AIPP,
    DP_OBJECT_MODEL_CONFIG,
    DP_OBJECT_EXEC_CONFIG
} dp_object_kind;

/* Zeroed memory that is known as an object of this kind; NULL with a sentence when memory is exhausted. */
void *dp_object_create(dp_object_kind kind, size_t size_bytes);

/* The same for memory of dp_alloc that the caller has; it stays the caller's when this fails. */
dp_status dp_object_adopt(dp_object_kind kind, void *object);

/* The object, or NULL with a sentence "<argument> is <pointer>, but must be a live ..." (also for NULL). */
void *dp_object_get(dp_object_kind kind, const void *handle, const char *argument);

/* Forgets it; it belongs to the caller (dp_free) from now on. NULL with a sentence when it is none. */
void *dp_object_take(dp_object_kind kind, const void *handle, const char *argument);

/* Forgets and frees it: DP_ERR_HANDLE with that sentence when it is none. */
dp_status dp_object_destroy(dp_object_kind kind, const void *handle, const char *argument);

#endif
