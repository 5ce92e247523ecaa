#include "ops/tensor.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define EXTENT_MAX ((int64_t)1 << 62)

size_t dp_element_bytes(int element) {
    static const uint8_t bytes[DP_EL_COUNT] = {
        [DP_I8] = 1,  [DP_U8] = 1,      [DP_I16] = 2,    [DP_U16] = 2,     [DP_I32] = 4, [DP_U32] = 4,
        [DP_I64] = 8, [DP_U64] = 8,     [DP_F16] = 2,    [DP_BF16] = 2,    [DP_F32] = 4, [DP_F64] = 8,
        [DP_I4] = 0,  [DP_EL_BOOL] = 1, [DP_EL_C64] = 8, [DP_EL_C128] = 16};
    return (unsigned)element < DP_EL_COUNT ? bytes[element] : 0;
}

const char *dp_element_name(int element) {
    static const char *const names[DP_EL_COUNT] = {"i8",  "u8",   "i16", "u16", "i32", "u32",  "i64", "u64",
                                                   "f16", "bf16", "f32", "f64", "i4",  "bool", "c64", "c128"};
    return (unsigned)element < DP_EL_COUNT ? names[element] : "no type";
}

dp_status dp_tensor_check(const dp_tensor *t, const char *name) {
    int64_t count = 1, reach = t->offset;
    if (t->offset < 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s: offset is %lld, but must be at least 0", name, (long long)t->offset);
    bool empty = false;
    for (int d = 0; d < t->rank; d++) {
        int64_t dim = t->dims[d], stride = t->strides[d], step;
        if (dim < 0)
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at least 0", name, d,
                           (long long)dim);
        if (stride < 0)
            return dp_fail(DP_ERR_ARGUMENT, "%s: stride of dimension %d is %lld, but must be at least 0", name, d,
                           (long long)stride);
        empty |= dim == 0;
        if (dim > 0 && (__builtin_mul_overflow(count, dim, &count) || count >= EXTENT_MAX))
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimensions up to %d (%lld) make more than 2^62 elements", name, d,
                           (long long)dim);
        if (dim > 1 && (__builtin_mul_overflow(dim - 1, stride, &step) || __builtin_add_overflow(reach, step, &reach) ||
                        reach >= EXTENT_MAX / 16))
            return dp_fail(DP_ERR_ARGUMENT, "%s: stride %lld of dimension %d (%lld) reaches past any memory", name,
                           (long long)stride, d, (long long)dim);
    }
    if (!empty && reach >= EXTENT_MAX / 16)
        return dp_fail(DP_ERR_ARGUMENT, "%s: offset %lld lies past any memory", name, (long long)t->offset);
    return DP_OK;
}

void dp_tensor_settle(dp_tensor *t) {
    bool empty = dp_tensor_count(t) == 0, huge = false;
    for (int d = 0; d < t->rank; d++)
        huge |= t->dims[d] > INT32_MAX;
    for (int d = 0; d < t->rank; d++)
        if ((empty && huge) || ((empty || t->dims[d] == 1) && t->strides[d] > INT32_MAX))
            t->strides[d] = 0;
    if (empty && t->offset > INT32_MAX)
        t->offset = 0;
}

int64_t dp_tensor_count(const dp_tensor *t) {
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++)
        count *= t->dims[d];
    return count;
}

void dp_tensor_extent(const dp_tensor *t, size_t *out_begin, size_t *out_end) {
    *out_begin = *out_end = 0;
    if (dp_tensor_count(t) == 0)
        return;
    int64_t last = t->offset;
    for (int d = 0; d < t->rank; d++)
        last += (t->dims[d] - 1) * t->strides[d];
    size_t bytes = dp_element_bytes(t->element);
    if (t->element == DP_I4) {
        *out_begin = (size_t)t->offset / 2;
        *out_end = (size_t)last / 2 + 1;
        return;
    }
    *out_begin = (size_t)t->offset * bytes;
    *out_end = ((size_t)last + 1) * bytes;
}

bool dp_tensor_is_contiguous(const dp_tensor *t) {
    int64_t expected = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->dims[d] > 1 && t->strides[d] != expected)
            return false;
        expected *= t->dims[d];
    }
    return true;
}

void dp_tensor_shrink(dp_tensor *t, int dim, int64_t size) {
    bool contiguous = dp_tensor_is_contiguous(t);
    t->dims[dim] = size;
    for (int64_t d = t->rank - 1, step = 1; contiguous && d >= 0; d--) {
        t->strides[d] = step;
        step *= t->dims[d] ? t->dims[d] : 1;
    }
}

const char *dp_dims_describe(const int64_t *dims, int rank, char *text, size_t text_bytes) {
    size_t used = (size_t)snprintf(text, text_bytes, "[");
    for (int d = 0; d < rank && used < text_bytes; d++)
        used += (size_t)snprintf(text + used, text_bytes - used, d ? ",%lld" : "%lld", (long long)dims[d]);
    if (used < text_bytes)
        snprintf(text + used, text_bytes - used, "]");
    return text;
}

const char *dp_tensor_describe(const dp_tensor *t, char *text, size_t text_bytes) {
    char dims[128], strides[128] = "";
    if (!dp_tensor_is_contiguous(t))
        dp_dims_describe(t->strides, t->rank, strides, sizeof strides);
    snprintf(text, text_bytes, "%s%s%s%s", dp_element_name(t->element),
             dp_dims_describe(t->dims, t->rank, dims, sizeof dims), strides[0] ? "*" : "", strides);
    return text;
}

dp_status dp_dim_check(int64_t dim, const dp_tensor *t, const char *name, int *out_dim) {
    int64_t rank = t->rank ? t->rank : 1;
    if (dim < -rank || dim >= rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be %lld to %lld for a tensor of %d dimensions", name,
                       (long long)dim, (long long)-rank, (long long)rank - 1, t->rank);
    *out_dim = (int)(dim < 0 ? dim + rank : dim);
    return DP_OK;
}

static _Thread_local dp_shape_learner *learner;

void dp_shape_learn(dp_shape_learner *now) {
    learner = now;
}

static bool is_asked_for(const dp_tensor *t) {
    return t >= learner->targets && t < learner->targets + learner->count && !learner->learned[t - learner->targets];
}

static dp_status learn(ptrdiff_t index, const char *name, const int64_t *dims, int rank) {
    if (rank > DP_TENSOR_DIMS)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s would have %d dimensions, but may have %d", name, rank, DP_TENSOR_DIMS);
    learner->learned[index] = true;
    learner->n_learned++;
    learner->targets[index].rank = rank;
    memcpy(learner->targets[index].dims, dims, (size_t)rank * sizeof *dims);
    return dp_fail(DP_ERR_STATE, "%s: its shape was asked for, not given", name);
}

dp_status dp_shape_expect(const dp_tensor *t, const char *name, const int64_t *dims, int rank, const char *meaning) {
    char expected[160], found[160];
    if (DP_UNLIKELY(learner != NULL) && is_asked_for(t))
        return learn(t - learner->targets, name, dims, rank);
    if (rank == 0 && t->rank == 1 && t->dims[0] == 1)
        return DP_OK;
    if (t->rank != rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions %s, but must have %d: %s (%s)", name, t->rank,
                       dp_dims_describe(t->dims, t->rank, found, sizeof found), rank,
                       dp_dims_describe(dims, rank, expected, sizeof expected), meaning);
    for (int d = 0; d < rank; d++)
        if (t->dims[d] != dims[d])
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be %lld: the shape must be %s (%s)",
                           name, d, (long long)t->dims[d], (long long)dims[d],
                           dp_dims_describe(dims, rank, expected, sizeof expected), meaning);
    return DP_OK;
}
