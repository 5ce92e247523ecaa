/*
 * pool.h - pooling as it was planned (prepare in pool.c, execution in run.c).
 */
#ifndef DOPPEL_OPS_POOL_POOL_H
#define DOPPEL_OPS_POOL_POOL_H

#include "ops/tiles.h"
#include "ops/window.h"

typedef enum dp_pool_kind { DP_POOL_AVERAGE, DP_POOL_MAX, DP_POOL_MAX_INDEX } dp_pool_kind;

/* What one position takes along one axis: `count` elements of the image from `first`, dilation apart. `size` is the
 * length that an average divides by. */
typedef struct dp_pool_reach {
    int64_t first, count, size;
} dp_pool_reach;

typedef struct dp_pool {
    dp_pool_kind kind;
    dp_image x, y, indices; /* indices: slot -1 when there are none */
    int64_t dilation[DP_SPACE];
    /* Positions of x whose windows lie wholly inside, all as long and `step` apart; none when first == last. */
    int64_t inner_first, inner_last, inner_step;
    double divisor; /* 0: the product of the sizes */
    size_t scratch_bytes;
    size_t reach_at[DP_SPACE]; /* of an axis, in `reaches` */
    dp_pool_reach reaches[];
} dp_pool;

dp_status dp_pool_run(dp_plan *plan);

/* The reaches of all positions of an axis; with_padding: an average divides by the padding's elements too. */
void dp_pool_reach_windows(const dp_axis *axis, bool with_padding, dp_pool_reach *out);
void dp_pool_reach_adaptive(int64_t size, int64_t windows, dp_pool_reach *out);
/*
 * The axes of pooling over `image`. `window` points to the arguments kernel, stride (the kernel when absent or empty)
 * and padding; dilation may be NULL. `ceil` rounds the number of positions up. any_padding: more than half of the kernel is
 * allowed; windows may lie in it wholly.
 */
dp_status dp_pool_axes(const dp_operator_call *call, const dp_arg *window, const dp_arg *dilation, bool ceil, int space,
                       bool any_padding, const dp_image *image, dp_axis axes[DP_SPACE]);

#endif
