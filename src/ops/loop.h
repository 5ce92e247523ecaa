/*
 * loop.h - several views walked together: broadcast to one shape, dims merged, elements fetched in order.
 */
#ifndef DOPPEL_OPS_LOOP_H
#define DOPPEL_OPS_LOOP_H

#include "ops/tensor.h"

enum { DP_LOOP_VIEWS = 12 };

/* Dims are outermost first; strides in elements, 0 where a view is broadcast. rank is at least 1. */
typedef struct dp_loop {
    int rank, n_views;
    int64_t count;
    int64_t dims[DP_TENSOR_DIMS];
    int64_t strides[DP_LOOP_VIEWS][DP_TENSOR_DIMS];
} dp_loop;

/* Shape of all tensors broadcast together; names are for the sentence. */
dp_status dp_broadcast(const dp_tensor *const *tensors, const char *const *names, int n, int64_t *out_dims,
                       int *out_rank);
/* A loop over dims without views; rank 0 becomes one dim of 1. */
void dp_loop_begin(dp_loop *loop, const int64_t *dims, int rank);
/* Adds a view whose dims are broadcast (from the right) to the loop's. */
void dp_loop_add(dp_loop *loop, const dp_tensor *tensor);
/* Adds a view by its strides in the loop's dims. */
void dp_loop_add_strides(dp_loop *loop, const int64_t *strides);
/* Orders dims by the first view's strides (order_by_first), drops dims of 1 and merges what is contiguous in all views.
 */
void dp_loop_merge(dp_loop *loop, bool order_by_first);

/* Where element `index` (in loop order) of a view begins, and the coordinates of it. Returns the offset in elements. */
int64_t dp_loop_locate(const dp_loop *loop, int view, int64_t index, int64_t *out_coordinates);
/* Offset in elements of an element of a view; without coordinates. */
static inline int64_t dp_loop_offset(const dp_loop *loop, int view, int64_t index) {
    int64_t offset = 0;
    for (int d = loop->rank - 1; d >= 0; d--) {
        int64_t rest = index / loop->dims[d];
        offset += (index - rest * loop->dims[d]) * loop->strides[view][d];
        index = rest;
    }
    return offset;
}

/*
 * Elements [index, index + n) of a view as contiguous raw elements of `width` bytes, 1 2 4 8 or 16: gathered into
 * `buffer`, or the address in place when they are contiguous there.
 */
const void *dp_loop_gather(const dp_loop *loop, int view, const void *data, size_t width, int64_t index, size_t n,
                           void *buffer);
/* The other way round: contiguous raw elements into a view. */
void dp_loop_scatter(const dp_loop *loop, int view, void *data, size_t width, int64_t index, size_t n,
                     const void *from);

/*
 * Copies view 1 to view 0, which do not overlap, in pieces for dp_pool_for: units [begin, end) of dp_loop_copy_units.
 * Dims must be merged in the order of view 0 (dp_loop_merge).
 */
size_t dp_loop_copy_units(const dp_loop *loop, size_t width, size_t *out_grain);
void dp_loop_copy(const dp_loop *loop, void *to, const void *from, size_t width, size_t begin, size_t end);
/* The dim along which view 1 is contiguous when that is not the last one: such copies are transposed in blocks. Else
 * -1. */
int dp_loop_across(const dp_loop *loop);

#endif
