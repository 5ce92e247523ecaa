/*
 * item.h - a value while a model runs in stages: its tensor, and the memory of it that is shared by count.
 */
#ifndef DOPPEL_GRAPH_ITEM_H
#define DOPPEL_GRAPH_ITEM_H

#include "ops/tensor.h"

typedef struct dp_item {
    dp_tensor tensor; /* contiguous */
    void *owner;      /* NULL: the memory is somebody else's */
} dp_item;

/* Memory for a tensor whose element and dims are set, 64-byte aligned; its strides become contiguous. */
dp_status dp_item_make(const dp_tensor *shape, dp_item *out_item);
/* One more owner of the same memory. */
dp_item dp_item_share(const dp_item *item);
/* Forgets the value; NULL owners are allowed. */
void dp_item_drop(dp_item *item);
void dp_items_free(dp_item *items, int n); /* drops them and frees the list; NULL is allowed */
/* Bytes of the contents. */
size_t dp_item_bytes(const dp_item *item);

#endif
