/*
 * scatter.h - what the functions of this family share: checked indices, and outputs that start as a copy of self.
 */
#ifndef DOPPEL_OPS_SCATTER_H
#define DOPPEL_OPS_SCATTER_H

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/scatter/kernels.h"

#define DP_INDEX_TYPES (DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32))

/* One tensor of indices as a task reads it: `loop` (view 0) gives their order, `begin` is added to every place. */
typedef struct dp_indices {
    int slot;
    int64_t begin;
    int64_t size; /* indices are -size to size - 1; negative ones count from the end */
    dp_loop loop;
    dp_convert_fn load;
} dp_indices;

/* Indices in the order of the tensor's elements. */
dp_indices dp_indices_of(const dp_arg *arg, int64_t size);
/* Indices [at, at + n), n <= DP_TILE, not negative any more. They should have been checked; one outside becomes 0 (the
 * memory may have been written since). */
void dp_indices_read(const dp_plan *plan, const dp_indices *indices, int64_t at, size_t n, int64_t *out);
/* DP_ERR_ARGUMENT with a sentence that names the lowest place with an index outside. `low` is -size, or 0 when negative
 * indices are refused. */
dp_status dp_indices_check(const dp_plan *plan, const dp_indices *indices, int64_t low);

/* Copies slot `from` to slot `to` (same dims and type) unless they are the same memory in the same order. */
void dp_scatter_begin(dp_plan *plan, int from, int to);

/* A reduction as a text ("none", "add", "mul", "max", "min") or as a number (0 to 4). */
dp_status dp_scatter_reduction(const dp_arg *how, dp_update *out_update);

/* Refuses an output that is not of self's shape and type, or whose elements share places. */
dp_status dp_scatter_expect(const dp_arg *self, const dp_arg *out);

#endif
