/*
 * strided_slice.c - strided_slice(self, begin, end, strides, begin_mask, end_mask, ellipsis_mask, new_axis_mask,
 * shrink_axis_mask) -> out, as TensorFlow's operator of that name: bit i of a mask is about entry i of the lists.
 *   begin_mask, end_mask  the entry counts from the first, to the last element (the other way round for negative
 * strides) ellipsis_mask         the entry stands for all dims that no other entry is about; one at most new_axis_mask
 * the entry makes a dim of 1       shrink_axis_mask  it takes the one element begin, and no dim
 */
#include "ops/move/move.h"

#include <string.h>

typedef struct walk {
    int64_t dims[2 * DP_TENSOR_DIMS], strides[2 * DP_TENSOR_DIMS], offset;
    int rank, dim; /* of the result; of self, the next one */
} walk;

static bool has_bit(const dp_operator_call *call, int mask, int64_t i) {
    return dp_arg_integer(&call->in[mask], 0) >> i & 1;
}

static int64_t between(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

static void add_dim(walk *w, int64_t dim, int64_t stride) {
    w->dims[w->rank] = dim;
    w->strides[w->rank++] = stride;
}

/* One entry that is about self's next dim. */
static dp_status take_entry(const dp_operator_call *call, int64_t i, walk *w) {
    const dp_tensor *self = call->in[0].as.tensor;
    int64_t begin = call->in[1].as.integers[i], end = call->in[2].as.integers[i], step = call->in[3].as.integers[i];
    int64_t n = self->dims[w->dim], stride = self->strides[w->dim++];
    if (step == 0 || step == INT64_MIN)
        return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] is %lld, but must not", call->in[3].name, (long long)i,
                       (long long)step);
    begin += begin < 0 ? n : 0;
    end += end < 0 ? n : 0;
    if (has_bit(call, 8, i)) {
        if (begin < 0 || begin >= n)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] is %lld, but must name one of %lld elements", call->in[1].name,
                           (long long)i, (long long)call->in[1].as.integers[i], (long long)n);
        w->offset += begin * stride;
        return DP_OK;
    }
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    begin = has_bit(call, 4, i) ? (step > 0 ? low : high) : between(begin, low, high);
    end = has_bit(call, 5, i) ? (step > 0 ? high : low) : between(end, low, high);
    int64_t count =
        step > 0 ? (end > begin ? (end - begin - 1) / step + 1 : 0) : (begin > end ? (begin - end - 1) / -step + 1 : 0);
    w->offset += count ? begin * stride : 0;
    add_dim(w, count, count > 1 ? stride * step : 0);
    return DP_OK;
}

static dp_status strided_slice(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    walk w = {.rank = 0};
    int64_t n = call->in[1].count, about = 0;
    int ellipses = 0;
    if (call->in[2].count != n || call->in[3].count != n || n > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s, %s and %s have %lld, %lld and %lld entries, but must have equally many, at most %d",
                       call->in[1].name, call->in[2].name, call->in[3].name, (long long)n, (long long)call->in[2].count,
                       (long long)call->in[3].count, DP_TENSOR_DIMS);
    for (int64_t i = 0; i < n; i++) {
        ellipses += has_bit(call, 6, i);
        about += !has_bit(call, 6, i) && !has_bit(call, 7, i);
    }
    if (ellipses > 1 || about > self->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d ellipses and is about %lld dimensions, but %s has %d",
                       call->in[1].name, ellipses, (long long)about, in->name, self->rank);
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(self->element));
    for (int64_t i = 0; i < n && status == DP_OK; i++) {
        if (has_bit(call, 6, i))
            for (int64_t left = self->rank - about; left > 0; left--, w.dim++)
                add_dim(&w, self->dims[w.dim], self->strides[w.dim]);
        else if (has_bit(call, 7, i))
            add_dim(&w, 1, 0);
        else
            status = take_entry(call, i, &w);
    }
    for (; status == DP_OK && w.dim < self->rank; w.dim++)
        add_dim(&w, self->dims[w.dim], self->strides[w.dim]);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, w.dims, w.rank, "the slice");
    if (status == DP_OK)
        status = dp_places_expect(out);
    dp_plan *plan = status == DP_OK ? dp_pieces_plan(call, 1) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    dp_pieces_add(plan, w.dims, w.rank, out, out->as.tensor->strides, 0, in, w.strides, w.offset);
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_move_strided_slice;
const dp_function dp_move_strided_slice = {"strided_slice", strided_slice, NULL, 0, 0};
