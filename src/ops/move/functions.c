/*
 * functions.c - the functions of this family; each says how its output is made of views of its input.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/move/move.h"

enum { PIECES_MAX = 4096 };

static dp_status check_pair(const dp_operator_call *call, const dp_arg *in, const dp_arg *out) {
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK && in->as.tensor->element != out->as.tensor->element)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have those of %s, %s", out->name,
                         dp_element_name(out->as.tensor->element), in->name, dp_element_name(in->as.tensor->element));
    return status == DP_OK ? dp_places_expect(out) : status;
}

static dp_status begin(const dp_operator_call *call, int room, dp_plan **out_plan) {
    *out_plan = dp_pieces_plan(call, room);
    return *out_plan ? DP_OK : DP_ERR_OUT_OF_MEMORY;
}

/* out has dims `dims` and is one view of in: strides and offset of the source. */
static dp_status one_view(const dp_operator_call *call, const int64_t *dims, int rank, const int64_t *strides,
                          int64_t offset, const char *meaning, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    dp_status status = check_pair(call, in, out);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank, meaning);
    if (status == DP_OK)
        status = begin(call, 1, out_plan);
    if (status == DP_OK)
        dp_pieces_add(*out_plan, dims, rank, out, out->as.tensor->strides, 0, in, strides, offset);
    return status;
}

/* permute(self, dims) -> out: dimension i of out is dimension dims[i] of self */
static dp_status permute(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *self = call->in[0].as.tensor;
    const dp_arg *order = &call->in[1];
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS];
    bool used[DP_TENSOR_DIMS] = {false};
    if (order->count != self->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have one per dimension: %d", order->name,
                       (long long)order->count, self->rank);
    for (int i = 0; i < self->rank; i++) {
        int d;
        dp_status status = dp_dim_check(order->as.integers[i], self, order->name, &d);
        if (status != DP_OK)
            return status;
        if (used[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s names dimension %d twice", order->name, d);
        used[d] = true;
        dims[i] = self->dims[d];
        strides[i] = self->strides[d];
    }
    return one_view(call, dims, self->rank, strides, 0, "the permuted input", out_plan);
}

static int64_t clamp_index(int64_t index, int64_t size) {
    if (index < 0)
        index = index < -size ? 0 : index + size;
    return index > size ? size : index;
}

/* slice(self, dim, start, end, step) -> out; start and end count from the end when negative and are cut to the size */
static dp_status slice(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *self = call->in[0].as.tensor;
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS], step = dp_arg_integer(&call->in[4], 1);
    int dim;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status != DP_OK)
        return status;
    if (!self->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions to slice", call->in[0].name);
    if (step < 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 1", call->in[4].name, (long long)step);
    int64_t start = clamp_index(dp_arg_integer(&call->in[2], 0), self->dims[dim]),
            end = clamp_index(dp_arg_integer(&call->in[3], 0), self->dims[dim]);
    memcpy(dims, self->dims, sizeof dims);
    memcpy(strides, self->strides, sizeof strides);
    dims[dim] = end > start ? (end - start - 1) / step + 1 : 0;
    if (dims[dim] > 1)
        strides[dim] *= step;
    return one_view(call, dims, self->rank, strides, start * self->strides[dim], "the slice", out_plan);
}

/* repeat(self, repeats) -> out: new dims come first */
static dp_status repeat(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0], *times = &call->in[1];
    const dp_tensor *self = in->as.tensor;
    int64_t dims[DP_TENSOR_DIMS];
    if (times->count < self->rank || times->count > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have %d to %d", times->name,
                       (long long)times->count, self->rank, DP_TENSOR_DIMS);
    int rank = (int)times->count, shift = rank - self->rank;
    int64_t loop_dims[2 * DP_TENSOR_DIMS], to[2 * DP_TENSOR_DIMS], from[2 * DP_TENSOR_DIMS];
    int n = 0;
    for (int d = 0; d < rank; d++) {
        int64_t size = d < shift ? 1 : self->dims[d - shift], count = times->as.integers[d];
        if (count < 0 || (size && count > ((int64_t)1 << 62) / size))
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be at least 0 and make no more than 2^62",
                           times->name, d, (long long)count);
        dims[d] = size * count;
    }
    dp_status status = check_pair(call, in, out);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "the repeated input");
    if (status != DP_OK)
        return status;
    for (int d = 0; d < rank; d++) { /* two loop dims for each that is repeated and not of size 1 */
        int64_t size = d < shift ? 1 : self->dims[d - shift], count = times->as.integers[d];
        int64_t stride = out->as.tensor->strides[d], own = d < shift ? 0 : self->strides[d - shift];
        if (count != 1) {
            loop_dims[n] = count, to[n] = stride * size, from[n] = 0;
            n++;
        }
        if (size != 1) {
            loop_dims[n] = size, to[n] = stride, from[n] = own;
            n++;
        }
    }
    if (n > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s repeats more dimensions than Doppel walks at once: repeat in two steps",
                       times->name);
    status = begin(call, 1, out_plan);
    if (status == DP_OK)
        dp_pieces_add(*out_plan, loop_dims, n, out, to, 0, in, from, 0);
    return status;
}

/* repeat_interleave(self, repeats, dim, size) -> out: each element `repeats` times in a row */
static dp_status repeat_interleave(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    int64_t times = dp_arg_integer(&call->in[1], 1), dims[DP_TENSOR_DIMS + 1], to[DP_TENSOR_DIMS + 1],
            from[DP_TENSOR_DIMS + 1];
    int dim;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[2], 0), self, call->in[2].name, &dim);
    if (status == DP_OK && (self->rank == 0 || self->rank == DP_TENSOR_DIMS))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 to 7", in->name, self->rank);
    if (status == DP_OK && (times < 0 || times > (int64_t)1 << 31))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to 2^31", call->in[1].name, (long long)times);
    if (status == DP_OK)
        status = check_pair(call, in, out);
    if (status != DP_OK)
        return status;
    int64_t expected[DP_TENSOR_DIMS];
    memcpy(expected, self->dims, sizeof expected);
    if (__builtin_mul_overflow(expected[dim], times, &expected[dim]))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, which makes too many elements", call->in[1].name,
                       (long long)times);
    status = dp_shape_expect(out->as.tensor, out->name, expected, self->rank, "the repeated input");
    if (status != DP_OK)
        return status;
    for (int d = 0, n = 0; d < self->rank; d++, n++) {
        dims[n] = self->dims[d], from[n] = self->strides[d];
        to[n] = out->as.tensor->strides[d] * (d == dim ? times : 1);
        if (d == dim) {
            n++;
            dims[n] = times, from[n] = 0, to[n] = out->as.tensor->strides[d];
        }
    }
    status = begin(call, 1, out_plan);
    if (status == DP_OK)
        dp_pieces_add(*out_plan, dims, self->rank + 1, out, to, 0, in, from, 0);
    return status;
}

/* flip(self, dims) -> out */
static dp_status flip(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *self = call->in[0].as.tensor;
    const dp_arg *list = &call->in[1];
    int64_t strides[DP_TENSOR_DIMS], offset = 0;
    memcpy(strides, self->strides, sizeof strides);
    bool flipped[DP_TENSOR_DIMS] = {false};
    for (int64_t i = 0; i < list->count; i++) {
        int d;
        dp_status status = dp_dim_check(list->as.integers[i], self, list->name, &d);
        if (status != DP_OK)
            return status;
        if (flipped[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s names dimension %d twice", list->name, d);
        flipped[d] = true;
        if (self->dims[d] > 0)
            offset += (self->dims[d] - 1) * self->strides[d];
        strides[d] = -self->strides[d];
    }
    return one_view(call, self->dims, self->rank, strides, offset, "the input", out_plan);
}

/* Ranges of one dim of the output, with where in the source each begins and how it goes on. */
typedef struct range {
    int64_t to, count, from, step;
    bool fill;
} range;
typedef struct ranges {
    int n;
    range r[3];
} ranges;

/* All combinations of the dims' ranges. Pieces that are filled get `fill`. */
static dp_status combine(const dp_operator_call *call, const dp_tensor *self, int rank, const ranges *of,
                         const uint8_t *fill, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    int total = 1;
    for (int d = 0; d < rank; d++)
        total *= of[d].n;
    dp_status status = begin(call, total, out_plan);
    for (int k = 0; k < total && status == DP_OK; k++) {
        int64_t dims[DP_TENSOR_DIMS], from[DP_TENSOR_DIMS], to_offset = 0, from_offset = 0;
        bool filled = false;
        int rest = k;
        for (int d = 0; d < rank; d++) {
            const range *r = &of[d].r[rest % of[d].n];
            rest /= of[d].n;
            dims[d] = r->count;
            from[d] = r->step * self->strides[d];
            to_offset += r->to * out->as.tensor->strides[d];
            from_offset += r->from * self->strides[d];
            filled |= r->fill;
        }
        dp_piece *p = dp_pieces_add(*out_plan, dims, rank, out, out->as.tensor->strides, to_offset, filled ? NULL : in,
                                    from, from_offset);
        if (filled)
            memcpy(p->fill, fill, sizeof p->fill);
    }
    return status;
}

/* roll(self, shifts, dims) -> out; without dims the tensor is rolled as one line */
static dp_status roll(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0], *shifts = &call->in[1], *list = &call->in[2];
    dp_tensor flat = *in->as.tensor;
    const dp_tensor *self = in->as.tensor;
    dp_status status = check_pair(call, in, out);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, self->dims, self->rank, "the input");
    if (status != DP_OK)
        return status;
    bool whole = list->kind == DP_ARG_ABSENT || list->count == 0;
    if (whole && self->rank != 1)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "%s is empty, which Doppel does for tensors of one dimension only: name dimensions", list->name);
    if (shifts->count != (whole ? 1 : list->count))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have as many as %s", shifts->name,
                       (long long)shifts->count, list->name);
    int64_t by[DP_TENSOR_DIMS] = {0};
    for (int64_t i = 0; i < shifts->count; i++) {
        int d = 0;
        if (!whole && (status = dp_dim_check(list->as.integers[i], self, list->name, &d)) != DP_OK)
            return status;
        if (self->rank && self->dims[d])
            by[d] = (by[d] + shifts->as.integers[i] % self->dims[d]) % self->dims[d];
    }
    ranges of[DP_TENSOR_DIMS];
    for (int d = 0; d < flat.rank; d++) {
        int64_t size = flat.dims[d], shift = by[d] < 0 ? by[d] + size : by[d];
        of[d] = (ranges){1, {{shift, size - shift, 0, 1, false}}};
        if (shift)
            of[d].r[of[d].n++] = (range){0, shift, size - shift, 1, false};
    }
    return combine(call, &flat, flat.rank, of, NULL, out_plan);
}

typedef enum padding { CONSTANT, REFLECT, REPLICATE, WRAP } padding;

/* pad lists (before, after) pairs, the last dim first; negative numbers cut. */
static dp_status pad(const dp_operator_call *call, padding how, const uint8_t *fill, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0], *list = &call->in[1];
    const dp_tensor *self = in->as.tensor;
    if (list->count % 2 || list->count / 2 > self->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have two for each of up to %d dimensions",
                       list->name, (long long)list->count, self->rank);
    int64_t dims[DP_TENSOR_DIMS];
    ranges of[DP_TENSOR_DIMS];
    for (int d = 0; d < self->rank; d++) {
        int pair = self->rank - 1 - d;
        int64_t size = self->dims[d], before = 0, after = 0;
        if (2 * pair < list->count) {
            before = list->as.integers[2 * pair];
            after = list->as.integers[2 * pair + 1];
        }
        int64_t limit = how == REFLECT ? size - 1 : how == WRAP ? size : (int64_t)1 << 40;
        if (before > limit || after > limit || before < -((int64_t)1 << 40) || after < -((int64_t)1 << 40) ||
            (how == REPLICATE && size == 0 && (before > 0 || after > 0)))
            return dp_fail(DP_ERR_ARGUMENT, "%s pads dimension %d (%lld) by %lld and %lld, but may by at most %lld",
                           list->name, d, (long long)size, (long long)before, (long long)after, (long long)limit);
        dims[d] = size + before + after;
        if (dims[d] < 0)
            return dp_fail(DP_ERR_ARGUMENT, "%s cuts dimension %d (%lld) by more than there is", list->name, d,
                           (long long)size);
        int64_t skip = before < 0 ? -before : 0, lead = before > 0 ? before : 0, tail = after > 0 ? after : 0;
        int64_t middle = dims[d] - lead - tail;
        int64_t lead_from = how == REFLECT ? lead : how == WRAP ? size - lead : 0;
        int64_t tail_from = how == REFLECT ? size - 2 : how == WRAP ? 0 : size - 1;
        int64_t step = how == REFLECT ? -1 : how == WRAP;
        if (middle < 0) { /* cut on one side past what is padded on the other */
            if (how != CONSTANT)
                return dp_fail(DP_ERR_ARGUMENT, "%s cuts all of dimension %d (%lld)", list->name, d, (long long)size);
            of[d] = (ranges){1, {{0, dims[d], 0, 0, true}}};
            continue;
        }
        of[d] = (ranges){1, {{lead, middle, skip, 1, false}}};
        if (lead)
            of[d].r[of[d].n++] = (range){0, lead, lead_from, step, how == CONSTANT};
        if (tail)
            of[d].r[of[d].n++] = (range){lead + middle, tail, tail_from, step, how == CONSTANT};
    }
    dp_status status = check_pair(call, in, out);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, self->rank, "the padded input");
    return status == DP_OK ? combine(call, self, self->rank, of, fill, out_plan) : status;
}

/* The scalar's value as an element. */
static bool encode(const dp_scalar *value, int element, uint8_t *fill) {
    const dp_elementwise_table *t = dp_elementwise_current();
    if (element == DP_EL_C64 || element == DP_EL_C128) {
        float f[2] = {(float)value->real, (float)value->imaginary};
        double d[2] = {value->real, value->imaginary};
        memcpy(fill, element == DP_EL_C64 ? (void *)f : (void *)d, dp_element_bytes(element));
        return true;
    }
    dp_compute c = dp_element_is_float(element) ? DP_COMPUTE_F64 : DP_COMPUTE_I64;
    if ((unsigned)element >= DP_EL_COUNT || !t->store[element][c])
        return false;
    t->store[element][c](fill, c == DP_COMPUTE_F64 ? (const void *)&value->real : (const void *)&value->integer, 1);
    return true;
}

static dp_status pad_constant(const dp_operator_call *call, dp_plan **out_plan) {
    uint8_t fill[16] = {0};
    if (call->in[2].kind == DP_ARG_SCALAR)
        encode(call->in[2].as.scalar, call->in[0].as.tensor->element, fill);
    return pad(call, CONSTANT, fill, out_plan);
}
static dp_status pad_reflect(const dp_operator_call *call, dp_plan **out_plan) {
    return pad(call, REFLECT, NULL, out_plan);
}
static dp_status pad_replicate(const dp_operator_call *call, dp_plan **out_plan) {
    return pad(call, REPLICATE, NULL, out_plan);
}

static dp_status pad_wrap(const dp_operator_call *call, dp_plan **out_plan) {
    return pad(call, WRAP, NULL, out_plan);
}

/* Tensors of a list, as arguments of their own. */
static dp_arg element_of(const dp_arg *list, int64_t i) {
    dp_arg one = {.name = list->name, .kind = DP_ARG_TENSOR, .slot = list->slot + (int)i};
    one.as.tensor = list->as.tensors[i];
    return one;
}

static dp_status check_count(const dp_arg *list) {
    return list->count >= 1 && list->count <= PIECES_MAX
               ? DP_OK
               : dp_fail(DP_ERR_ARGUMENT, "%s has %lld tensors, but must have 1 to %d", list->name,
                         (long long)list->count, PIECES_MAX);
}

/* cat(tensors, dim) -> out; one-dimensional empty tensors are skipped */
static dp_status cat(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *list = &call->in[0], *out = &call->out[0];
    const dp_tensor *to = out->as.tensor;
    int64_t dims[DP_TENSOR_DIMS], along = 0;
    int dim;
    dp_status status = check_count(list);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&call->in[1], 0), to, call->in[1].name, &dim);
    if (status != DP_OK)
        return status;
    if (!to->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions, but must have those of the joined tensors", out->name);
    bool skipped[PIECES_MAX];
    for (int64_t i = 0; i < list->count; i++) {
        dp_arg one = element_of(list, i);
        const dp_tensor *t = one.as.tensor;
        skipped[i] = t->rank == 1 && t->dims[0] == 0 && to->rank != 1;
        if (skipped[i])
            continue;
        memcpy(dims, to->dims, sizeof dims);
        dims[dim] = t->rank == to->rank ? t->dims[dim] : 0;
        status = check_pair(call, &one, out);
        if (status == DP_OK)
            status = dp_shape_expect(t, one.name, dims, to->rank, "the output, but for the joined dimension");
        if (status != DP_OK)
            return status;
        if (__builtin_add_overflow(along, t->dims[dim], &along))
            return dp_fail(DP_ERR_ARGUMENT, "%s: too many elements together", list->name);
    }
    memcpy(dims, to->dims, sizeof dims);
    dims[dim] = along;
    status = dp_shape_expect(to, out->name, dims, to->rank, "the joined tensors");
    if (status == DP_OK)
        status = begin(call, (int)list->count, out_plan);
    along = 0;
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = element_of(list, i);
        if (skipped[i])
            continue;
        dp_pieces_add(*out_plan, one.as.tensor->dims, to->rank, out, to->strides, along * to->strides[dim], &one,
                      one.as.tensor->strides, 0);
        along += one.as.tensor->dims[dim];
    }
    return status;
}

/* stack(tensors, dim) -> out: joined along a new dim */
static dp_status stack(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *list = &call->in[0], *out = &call->out[0];
    const dp_tensor *to = out->as.tensor;
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS];
    int dim, n = 0;
    dp_status status = check_count(list);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&call->in[1], 0), to, call->in[1].name, &dim);
    if (status == DP_OK && (!to->rank || to->dims[dim] != list->count))
        status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d must be the number of tensors, %lld", out->name, dim,
                         (long long)list->count);
    if (status != DP_OK)
        return status;
    for (int d = 0; d < to->rank; d++) {
        if (d == dim)
            continue;
        dims[n] = to->dims[d];
        strides[n++] = to->strides[d];
    }
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = element_of(list, i);
        status = check_pair(call, &one, out);
        if (status == DP_OK)
            status = dp_shape_expect(one.as.tensor, one.name, dims, n, "the output without the new dimension");
    }
    if (status == DP_OK)
        status = begin(call, (int)list->count, out_plan);
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = element_of(list, i);
        dp_pieces_add(*out_plan, dims, n, out, strides, i * to->strides[dim], &one, one.as.tensor->strides, 0);
    }
    return status;
}

/* split(self, sizes, dim) -> outs */
static dp_status split(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *sizes = &call->in[1], *list = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    int64_t dims[DP_TENSOR_DIMS], along = 0;
    int dim;
    dp_status status = check_count(list);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&call->in[2], 0), self, call->in[2].name, &dim);
    if (status == DP_OK && (sizes->count != list->count || !self->rank))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have one per tensor of %s: %lld", sizes->name,
                         (long long)sizes->count, list->name, (long long)list->count);
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = element_of(list, i);
        memcpy(dims, self->dims, sizeof dims);
        dims[dim] = sizes->as.integers[i];
        status = check_pair(call, in, &one);
        if (status == DP_OK)
            status = dp_shape_expect(one.as.tensor, one.name, dims, self->rank, "its part of the input");
        if (status == DP_OK && __builtin_add_overflow(along, dims[dim], &along))
            status = dp_fail(DP_ERR_ARGUMENT, "%s: the sum of the sizes is too large", sizes->name);
    }
    if (status == DP_OK && along != self->dims[dim])
        status = dp_fail(DP_ERR_ARGUMENT, "%s has a sum of %lld, but must have that of dimension %d: %lld", sizes->name,
                         (long long)along, dim, (long long)self->dims[dim]);
    if (status == DP_OK)
        status = begin(call, (int)list->count, out_plan);
    along = 0;
    for (int64_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_arg one = element_of(list, i);
        dp_pieces_add(*out_plan, one.as.tensor->dims, self->rank, &one, one.as.tensor->strides, 0, in, self->strides,
                      along * self->strides[dim]);
        along += one.as.tensor->dims[dim];
    }
    return status;
}

/* channel_shuffle(self, groups) -> out: channel i of group j becomes channel i * groups + j; channels are dimension 1
 */
static dp_status channel_shuffle(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    int64_t groups = dp_arg_integer(&call->in[1], 1);
    if (self->rank < 3 || self->rank >= DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 3 to %d", in->name, self->rank,
                       DP_TENSOR_DIMS - 1);
    if (groups < 1 || groups > INT32_MAX || self->dims[1] % groups)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 1 and divide the channels, %lld",
                       call->in[1].name, (long long)groups, (long long)self->dims[1]);
    dp_status status = check_pair(call, in, out);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, self->dims, self->rank, "the input");
    if (status == DP_OK)
        status = begin(call, 1, out_plan);
    if (status != DP_OK)
        return status;
    const int64_t *from = self->strides, *to = out->as.tensor->strides, inside = self->dims[1] / groups;
    int64_t dims[DP_TENSOR_DIMS] = {self->dims[0], inside, groups};
    int64_t to_strides[DP_TENSOR_DIMS] = {to[0], to[1] * groups, to[1]};
    int64_t from_strides[DP_TENSOR_DIMS] = {from[0], from[1], from[1] * inside};
    size_t rest = (size_t)(self->rank - 2) * sizeof *dims;
    memcpy(dims + 3, self->dims + 2, rest);
    memcpy(to_strides + 3, to + 2, rest);
    memcpy(from_strides + 3, from + 2, rest);
    dp_pieces_add(*out_plan, dims, self->rank + 1, out, to_strides, 0, in, from_strides, 0);
    return DP_OK;
}

#define EXPORT(function, optional_in_bits)                                                                             \
    extern const dp_function dp_move_##function;                                                                       \
    const dp_function dp_move_##function = {#function, function, NULL, optional_in_bits, 0};
EXPORT(permute, 0)
EXPORT(slice, 0)
EXPORT(repeat, 0)
EXPORT(repeat_interleave, 0)
EXPORT(flip, 0)
EXPORT(roll, 4)
EXPORT(pad_constant, 0)
EXPORT(pad_reflect, 0)
EXPORT(pad_replicate, 0)
EXPORT(pad_wrap, 0)
EXPORT(cat, 0)
EXPORT(stack, 0)
EXPORT(split, 0)
EXPORT(channel_shuffle, 0)
