#include "graph/place.h"

#include <stdlib.h>

#include "base/memory.h"

static size_t rounded(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static int largest_first(const void *a, const void *b) {
    const dp_span *x = *(dp_span *const *)a, *y = *(dp_span *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* placed[0..n) lie in order of their offsets. The lowest gap among those alive together with `span`. */
static size_t lowest_gap(dp_span *const *placed, uint32_t n, const dp_span *span) {
    size_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        const dp_span *other = placed[i];
        if (other->last < span->first || other->first > span->last)
            continue;
        if (other->offset >= end + rounded(span->bytes))
            break;
        if (other->offset + rounded(other->bytes) > end)
            end = other->offset + rounded(other->bytes);
    }
    return end;
}

dp_status dp_spans_place(dp_span *spans, uint32_t n, size_t *out_bytes) {
    *out_bytes = 0;
    dp_span **order = dp_alloc(DP_MEM_GRAPH, (2 * (size_t)n + 1) * sizeof *order), **placed = order + n;
    uint32_t used = 0, count = 0;
    if (!order)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to place %u values: free some", n);
    for (uint32_t i = 0; i < n; i++)
        if (spans[i].bytes)
            order[count++] = &spans[i];
    qsort(order, count, sizeof *order, largest_first);
    for (uint32_t i = 0; i < count; i++) {
        dp_span *span = order[i];
        span->offset = lowest_gap(placed, used, span);
        uint32_t at = used++;
        for (; at > 0 && placed[at - 1]->offset > span->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = span;
        if (span->offset + rounded(span->bytes) > *out_bytes)
            *out_bytes = span->offset + rounded(span->bytes);
    }
    dp_free(order);
    return DP_OK;
}
