#include "graph/item.h"

#include <string.h>

#include "base/memory.h"

enum { HEAD_BYTES = 64 }; /* the number of owners, in front of the contents */

size_t dp_item_bytes(const dp_item *item) {
    return (size_t)dp_tensor_count(&item->tensor) * dp_element_bytes(item->tensor.element);
}

dp_status dp_item_make(const dp_tensor *shape, dp_item *out_item) {
    dp_item item = {.tensor = {.element = shape->element, .rank = shape->rank}};
    memcpy(item.tensor.dims, shape->dims, sizeof item.tensor.dims);
    dp_status status = dp_tensor_check(&item.tensor, "a value");
    if (status != DP_OK)
        return status;
    int64_t stride = 1;
    for (int d = item.tensor.rank - 1; d >= 0; d--) {
        item.tensor.strides[d] = stride;
        stride *= item.tensor.dims[d] > 0 ? item.tensor.dims[d] : 1;
    }
    size_t bytes = dp_item_bytes(&item);
    if (bytes > SIZE_MAX / 4 || !(item.owner = dp_alloc(DP_MEM_GRAPH, bytes + HEAD_BYTES)))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a value of %zu bytes: free some", bytes);
    *(int *)item.owner = 1;
    item.tensor.base = (char *)item.owner + HEAD_BYTES;
    *out_item = item;
    return DP_OK;
}

dp_item dp_item_share(const dp_item *item) {
    if (item->owner)
        ++*(int *)item->owner;
    return *item;
}

void dp_item_drop(dp_item *item) {
    if (item->owner && --*(int *)item->owner == 0)
        dp_free(item->owner);
    *item = (dp_item){.owner = NULL};
}

void dp_items_free(dp_item *items, int n) {
    for (int i = 0; items && i < n; i++)
        dp_item_drop(&items[i]);
    dp_free(items);
}
