/*
 * shape.c - types that only choose or rename elements: each is a copy between two views.
 *   identity(x), reshape(x, shape), flatten(x, axis), flatten_range(x, axis, end_axis), expand_dims(x, axis),
 * squeeze(x, axes), unsqueeze(x, axes) -> y          the elements in their order broadcast(x, shape) -> y, fill(dims,
 * value) -> y, like(x, number) -> y crop(x, size, axis, offsets) -> y          from dim `axis` on a part as large as
 * `size`, whose contents are not read slice(x, offsets, size) -> y          a size of -1 is the rest strided_slice(x,
 * begin, end, strides, begin_mask, end_mask, shrink_axis_mask) -> y split_equal(x, dim, n) -> y           n parts of
 * one size trans_data(x, from, to) -> y          formats by name; pad(x, paddings, value, mode) -> y
 */
#include <string.h>

#include "ops/typed/adapt.h"

extern const dp_function dp_elementwise_copy, dp_move_split, dp_move_permute, dp_move_pad_constant, dp_move_pad_reflect,
    dp_move_pad_replicate, dp_move_pad_wrap;

/* Element by element, from the view of x that `a` has. */
static dp_status copy(dp_adapted *a, dp_plan **out_plan) {
    const dp_arg *in = &a->in[0], *out = &a->out[0];
    if (in->kind == DP_ARG_TENSOR && in->as.tensor->element != out->as.tensor->element)
        return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have those of %s, %s", out->name,
                       dp_element_name(out->as.tensor->element), in->name, dp_element_name(in->as.tensor->element));
    return dp_adapt_end(a, &dp_elementwise_copy, 1, out_plan);
}

static dp_status identity(const dp_operator_call *call, dp_plan **out_plan) {
    dp_adapted a;
    const dp_tensor *x = call->in[0].as.tensor;
    dp_status status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, x->dims, x->rank, "the input");
    if (status != DP_OK)
        return status;
    dp_adapt_begin(&a, call);
    return copy(&a, out_plan);
}

static dp_status check_shape(const dp_operator_call *call, const int64_t *dims, int rank, const char *meaning) {
    return dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, rank, meaning);
}

/* x as a tensor of these dims; both are contiguous. */
static dp_status as_dims(const dp_operator_call *call, const int64_t *dims, int rank, dp_plan **out_plan) {
    dp_adapted a;
    dp_status status = check_shape(call, dims, rank, "the new shape of the input");
    if (status != DP_OK)
        return status;
    dp_adapt_begin(&a, call);
    dp_tensor *view = dp_adapt_view(&a, &a.in[0]);
    int64_t step = 1;
    view->rank = rank;
    for (int d = rank - 1; d >= 0; d--) {
        view->dims[d] = dims[d];
        view->strides[d] = step;
        step *= dims[d];
    }
    return copy(&a, out_plan);
}

/* -1 is what is left, 0 the dim at the same place of x. */
static dp_status reshape(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    const dp_arg *shape = &call->in[1];
    int64_t dims[DP_TENSOR_DIMS], known = 1, total = dp_tensor_count(x);
    int open = -1;
    if (shape->count > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld sizes, but may have %d", shape->name, (long long)shape->count,
                       DP_TENSOR_DIMS);
    for (int d = 0; d < shape->count; d++) {
        int64_t size = shape->as.integers[d];
        if (size == 0 && total && d < x->rank)
            size = x->dims[d];
        if (size < -1 || (size == -1 && open >= 0))
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be a size, or once -1", shape->name, d,
                           (long long)size);
        dims[d] = size;
        if (size == -1)
            open = d;
        else if (__builtin_mul_overflow(known, size, &known))
            return dp_fail(DP_ERR_ARGUMENT, "%s makes too many elements", shape->name);
    }
    if (open >= 0)
        dims[open] = known ? total / known : 0;
    if (open >= 0 ? known && total % known : known != total)
        return dp_fail(DP_ERR_ARGUMENT, "%s does not hold the %lld elements of %s", shape->name, (long long)total,
                       call->in[0].name);
    return as_dims(call, dims, (int)shape->count, out_plan);
}

static dp_status flatten(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    int64_t axis = dp_arg_integer(&call->in[1], 1), dims[2] = {1, 1};
    if (axis < -x->rank || axis > x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be %d to %d", call->in[1].name, (long long)axis, -x->rank,
                       x->rank);
    axis += axis < 0 ? x->rank : 0;
    for (int d = 0; d < x->rank; d++)
        dims[d >= axis] *= x->dims[d];
    return as_dims(call, dims, 2, out_plan);
}

static dp_status flatten_range(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    int64_t dims[DP_TENSOR_DIMS];
    int first, last, n = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 1), x, call->in[1].name, &first);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&call->in[2], -1), x, call->in[2].name, &last);
    if (status == DP_OK && last < first)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be at least %s, %d", call->in[2].name, last,
                         call->in[1].name, first);
    if (status != DP_OK)
        return status;
    for (int d = 0; d < x->rank; d++) {
        if (d > first && d <= last)
            dims[n - 1] *= x->dims[d];
        else
            dims[n++] = x->dims[d];
    }
    return as_dims(call, dims, n, out_plan);
}

/* Dims of size 1 are put where `axes` says, places counted in the result. */
static dp_status insert_dims(const dp_operator_call *call, const int64_t *axes, int64_t count, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    int64_t rank = x->rank + count, dims[DP_TENSOR_DIMS];
    bool fresh[DP_TENSOR_DIMS] = {false};
    if (rank > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "%s makes %lld dimensions, but there may be %d", call->in[1].name,
                       (long long)rank, DP_TENSOR_DIMS);
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || fresh[axis])
            return dp_fail(DP_ERR_ARGUMENT, "%s names dimension %lld, but must name each once and be %lld to %lld",
                           call->in[1].name, (long long)axes[i], (long long)-rank, (long long)rank - 1);
        fresh[axis] = true;
    }
    for (int d = 0, from = 0; d < rank; d++)
        dims[d] = fresh[d] ? 1 : x->dims[from++];
    return as_dims(call, dims, (int)rank, out_plan);
}

static dp_status expand_dims(const dp_operator_call *call, dp_plan **out_plan) {
    int64_t axis = dp_arg_integer(&call->in[1], 0);
    return insert_dims(call, &axis, 1, out_plan);
}
static dp_status unsqueeze(const dp_operator_call *call, dp_plan **out_plan) {
    return insert_dims(call, call->in[1].as.integers, call->in[1].count, out_plan);
}

static dp_status squeeze(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    const dp_arg *axes = &call->in[1];
    int64_t dims[DP_TENSOR_DIMS];
    bool gone[DP_TENSOR_DIMS];
    int n = 0;
    for (int d = 0; d < x->rank; d++)
        gone[d] = axes->count == 0 && x->dims[d] == 1;
    for (int64_t i = 0; i < axes->count; i++) {
        int d;
        dp_status status = dp_dim_check(axes->as.integers[i], x, axes->name, &d);
        if (status == DP_OK && (!x->rank || x->dims[d] != 1))
            status = dp_fail(DP_ERR_ARGUMENT, "%s names dimension %d, whose size is not 1", axes->name, d);
        if (status != DP_OK)
            return status;
        gone[d] = true;
    }
    for (int d = 0; d < x->rank; d++)
        if (!gone[d])
            dims[n++] = x->dims[d];
    return as_dims(call, dims, n, out_plan);
}

static dp_status broadcast(const dp_operator_call *call, dp_plan **out_plan) {
    dp_adapted a;
    dp_status status = check_shape(call, call->in[1].as.integers, (int)call->in[1].count, call->in[1].name);
    if (status != DP_OK)
        return status;
    dp_adapt_begin(&a, call);
    return copy(&a, out_plan);
}

static dp_status fill(const dp_operator_call *call, dp_plan **out_plan) {
    dp_adapted a;
    dp_status status = check_shape(call, call->in[0].as.integers, (int)call->in[0].count, call->in[0].name);
    if (status != DP_OK)
        return status;
    dp_adapt_begin(&a, call);
    a.in[0] = a.in[1];
    return copy(&a, out_plan);
}

/* A number, in a tensor of the shape of x. */
static dp_status like(const dp_operator_call *call, dp_plan **out_plan) {
    dp_adapted a;
    dp_status status = check_shape(call, call->in[0].as.tensor->dims, call->in[0].as.tensor->rank, "that of the input");
    if (status != DP_OK)
        return status;
    dp_adapt_begin(&a, call);
    a.in[0] = a.in[1];
    return copy(&a, out_plan);
}

/* The part of x that begins at `from` and has `dims`, every step-th element. */
static dp_status part(const dp_operator_call *call, const int64_t *from, const int64_t *steps, const int64_t *dims,
                      unsigned dropped, dp_plan **out_plan) {
    dp_adapted a;
    dp_adapt_begin(&a, call);
    dp_tensor *view = dp_adapt_view(&a, &a.in[0]);
    const dp_tensor *x = call->in[0].as.tensor;
    int n = 0;
    for (int d = 0; d < x->rank; d++) {
        view->offset += dims[d] ? from[d] * x->strides[d] : 0;
        if (dropped >> d & 1)
            continue;
        view->dims[n] = dims[d];
        view->strides[n++] = dims[d] > 1 ? x->strides[d] * (steps ? steps[d] : 1) : x->strides[d];
    }
    view->rank = n;
    dp_status status = check_shape(call, view->dims, n, "the part of the input");
    return status == DP_OK ? copy(&a, out_plan) : status;
}

static dp_status crop(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor, *size = call->in[1].as.tensor;
    const dp_arg *offsets = &call->in[3];
    int64_t from[DP_TENSOR_DIMS] = {0}, dims[DP_TENSOR_DIMS];
    int axis;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[2], 2), x, call->in[2].name, &axis);
    if (status != DP_OK)
        return status;
    if (size->rank != x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have those of %s: %d", call->in[1].name,
                       size->rank, call->in[0].name, x->rank);
    if (offsets->count != 1 && offsets->count != x->rank - axis)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have 1, or %d: one per dimension from %d on",
                       offsets->name, (long long)offsets->count, x->rank - axis, axis);
    for (int d = 0; d < x->rank; d++) {
        dims[d] = d < axis ? x->dims[d] : size->dims[d];
        if (d >= axis)
            from[d] = offsets->as.integers[offsets->count == 1 ? 0 : d - axis];
        if (from[d] < 0 || from[d] > x->dims[d] - dims[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is cut from %lld for %lld, but has %lld", offsets->name,
                           d, (long long)from[d], (long long)dims[d], (long long)x->dims[d]);
    }
    return part(call, from, NULL, dims, 0, out_plan);
}

static dp_status check_length(const dp_operator_call *call, int k) {
    const dp_tensor *x = call->in[0].as.tensor;
    return call->in[k].count == x->rank
               ? DP_OK
               : dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have one per dimension of %s: %d",
                         call->in[k].name, (long long)call->in[k].count, call->in[0].name, x->rank);
}

static dp_status slice(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    int64_t dims[DP_TENSOR_DIMS];
    dp_status status = check_length(call, 1);
    if (status == DP_OK)
        status = check_length(call, 2);
    for (int d = 0; d < x->rank && status == DP_OK; d++) {
        int64_t from = call->in[1].as.integers[d], size = call->in[2].as.integers[d];
        if (from >= 0 && from <= x->dims[d] && size == -1)
            size = x->dims[d] - from;
        if (from < 0 || size < 0 || from > x->dims[d] || size > x->dims[d] - from)
            status =
                dp_fail(DP_ERR_ARGUMENT, "%s and %s: dimension %d is cut from %lld for %lld, but has %lld",
                        call->in[1].name, call->in[2].name, d, (long long)from, (long long)size, (long long)x->dims[d]);
        dims[d] = size;
    }
    return status == DP_OK ? part(call, call->in[1].as.integers, NULL, dims, 0, out_plan) : status;
}

static int64_t clamp(int64_t index, int64_t size) {
    index += index < 0 ? size : 0;
    return index < 0 ? 0 : index > size ? size : index;
}

static dp_status strided_slice(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *x = call->in[0].as.tensor;
    int64_t from[DP_TENSOR_DIMS], steps[DP_TENSOR_DIMS], dims[DP_TENSOR_DIMS];
    uint64_t open_begin = (uint64_t)dp_arg_integer(&call->in[4], 0),
             open_end = (uint64_t)dp_arg_integer(&call->in[5], 0), shrink = (uint64_t)dp_arg_integer(&call->in[6], 0);
    int64_t given = call->in[1].count;
    for (int k = 2; k <= 3; k++)
        if (call->in[k].count != given)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have as many as %s: %lld", call->in[k].name,
                           (long long)call->in[k].count, call->in[1].name, (long long)given);
    if (given > x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but %s has %d dimensions", call->in[1].name,
                       (long long)given, call->in[0].name, x->rank);
    for (int d = 0; d < x->rank; d++) {
        int64_t size = x->dims[d], begin = 0, end = size, step = 1;
        if (d < given) {
            step = call->in[3].as.integers[d];
            begin = open_begin >> d & 1 ? 0 : clamp(call->in[1].as.integers[d], size);
            end = open_end >> d & 1 ? size : clamp(call->in[2].as.integers[d], size);
            if (shrink >> d & 1)
                end = begin + 1;
        }
        if (step < 1)
            return dp_fail(DP_ERR_UNSUPPORTED, "%s[%d] is %lld, but Doppel goes forwards only: 1 or more",
                           call->in[3].name, d, (long long)step);
        if (end > size)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is past the end of a dimension of %lld", call->in[1].name, d,
                           (long long)size);
        from[d] = begin;
        steps[d] = step;
        dims[d] = end > begin ? (end - begin - 1) / step + 1 : 0;
    }
    return part(call, from, steps, dims, (unsigned)shrink & ((1u << given) - 1), out_plan);
}

static dp_status split_equal(const dp_operator_call *call, dp_plan **out_plan) {
    enum { PARTS = DP_TENSOR_DIMS * DP_ADAPT_VIEWS };
    const dp_tensor *x = call->in[0].as.tensor;
    int64_t n = dp_arg_integer(&call->in[2], 0), sizes[PARTS];
    int dim;
    dp_adapted a;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), x, call->in[1].name, &dim);
    if (status == DP_OK && n != call->out[0].count)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the number of outputs, %lld", call->in[2].name,
                         (long long)n, (long long)call->out[0].count);
    if (status == DP_OK && (n < 1 || n > PARTS || !x->rank || x->dims[dim] % n))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 1 to %d and divide dimension %d of %s",
                         call->in[2].name, (long long)n, PARTS, dim, call->in[0].name);
    if (status != DP_OK)
        return status;
    for (int i = 0; i < n; i++)
        sizes[i] = x->dims[dim] / n;
    dp_adapt_begin(&a, call);
    a.in[1] = dp_adapt_list(&a, call->in[2].name, sizes, (int)n);
    a.in[2] = call->in[1];
    return dp_adapt_end(&a, &dp_move_split, 3, out_plan);
}

/* Where each letter of `to` stands in `from`; both have the letters of one another. */
static dp_status format_order(const dp_arg *from, const dp_arg *to, int rank, int64_t *order) {
    const char *a = from->as.text, *b = to->as.text;
    if ((int)strnlen(a, DP_TENSOR_DIMS + 1) == rank && (int)strnlen(b, DP_TENSOR_DIMS + 1) == rank) {
        int found = 0;
        for (int i = 0; i < rank; i++) {
            const char *at = strchr(a, b[i]);
            found += at && strchr(b, b[i]) == b + i && strchr(a, b[i]) == at && strchr("NCDHW", b[i]);
            order[i] = at ? at - a : 0;
        }
        if (found == rank)
            return DP_OK;
    }
    return dp_fail(
        DP_ERR_UNSUPPORTED,
        "%s is \"%.24s\" and %s is \"%.24s\" for a tensor of %d dimensions: only orders of the same letters of NCDHW, "
        "one per dimension, are offered",
        from->name, a, to->name, b, rank);
}

static dp_status trans_data(const dp_operator_call *call, dp_plan **out_plan) {
    int64_t order[DP_TENSOR_DIMS];
    int rank = call->in[0].as.tensor->rank;
    dp_status status = format_order(&call->in[1], &call->in[2], rank, order);
    if (status != DP_OK)
        return status;
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[1] = dp_adapt_list(&a, call->in[2].name, order, rank);
    return dp_adapt_end(&a, &dp_move_permute, 2, out_plan);
}

/* paddings are (before, after), the first dim first; the family wants the last one first. */
static dp_status pad(const dp_operator_call *call, dp_plan **out_plan) {
    static const struct {
        const char *mode;
        const dp_function *function;
    } modes[] = {{"constant", &dp_move_pad_constant},
                 {"reflect", &dp_move_pad_reflect},
                 {"edge", &dp_move_pad_replicate},
                 {"wrap", &dp_move_pad_wrap}};
    const dp_arg *given = &call->in[1], *mode = &call->in[3];
    const dp_function *function = NULL;
    int rank = call->in[0].as.tensor->rank;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(mode->kind == DP_ARG_TEXT ? mode->as.text : "constant", modes[i].mode) == 0)
            function = modes[i].function;
    if (!function)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be constant, reflect, edge or wrap", mode->name,
                       mode->as.text);
    int64_t turned[2 * DP_TENSOR_DIMS];
    if (given->count != 2 * rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have two per dimension: %d", given->name,
                       (long long)given->count, 2 * rank);
    for (int d = 0; d < rank; d++)
        memcpy(turned + 2 * d, given->as.integers + 2 * (rank - 1 - d), 2 * sizeof *turned);
    dp_adapted a;
    dp_adapt_begin(&a, call);
    a.in[1] = dp_adapt_list(&a, given->name, turned, 2 * rank);
    return dp_adapt_end(&a, function, 3, out_plan);
}

#define EXPORT(function, optional_in_bits)                                                                             \
    extern const dp_function dp_typed_##function;                                                                      \
    const dp_function dp_typed_##function = {#function, function, NULL, optional_in_bits, 0};
EXPORT(identity, 0)
EXPORT(reshape, 0)
EXPORT(flatten, 0)
EXPORT(flatten_range, 0)
EXPORT(expand_dims, 0)
EXPORT(squeeze, 2)
EXPORT(unsqueeze, 0)
EXPORT(broadcast, 0)
EXPORT(fill, 0)
EXPORT(like, 0)
EXPORT(crop, 0)
EXPORT(slice, 0)
EXPORT(strided_slice, 0)
EXPORT(split_equal, 0)
EXPORT(trans_data, 0)
EXPORT(pad, 12)
