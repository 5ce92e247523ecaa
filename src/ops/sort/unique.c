/*
 * unique.c - each element once. Mappings:
 *   unique(self, inverse, counts) -> y, y_inverse, y_counts                   in rising order
 *   unique_consecutive(self, inverse, counts, dim) -> y, y_inverse, y_counts  only repetitions that follow each other
 *   unique_dim(self, inverse, dim) -> y, y_inverse, y_counts                  slices along dim, in lexicographic order
 *   unique_places(self, dim, sorted) -> y, first, inverse, counts             dim absent: elements; first: where each
 *       stands first; sorted 0: in the order of these places
 * Outputs have room for all elements and get the dims of what was found (op.h). unique_consecutive takes a dim that
 * self does not have as "none" (clients pass 1000). NaN is equal to nothing, -0 is equal to +0.
 *
 * Everything is read as sort keys (kernels.h), a row of keys per slice; without dim a slice is one element.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/sort/kernels.h"
#include "runtime/pool.h"

enum { GRAIN = 8192 };

typedef struct state {
    dp_loop in;     /* slices outermost; view 0 self */
    int64_t n, row; /* slices, elements of one */
    bool sorted, wide, by_dim;
    bool by_place; /* results in the order in which they first appear */
    int dim;
    uint64_t nan_key;
    int self, y, inverse, counts, first; /* slots, -1: not wanted */
} state;

/* All of it in one block. */
typedef struct room {
    uint64_t *wide;
    uint32_t *narrow; /* the same memory, for 32-bit keys */
    uint32_t *order, *spare;
} room;

typedef struct job {
    dp_plan *plan;
    const state *s;
    room r;
} job;

static dp_status no_memory(const state *s) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to compare %lld slices of %lld elements: free some",
                   (long long)s->n, (long long)s->row);
}

static void read_keys(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    int element = j->plan->tensors[s->self].view.element;
    size_t width = dp_element_bytes(element), key_bytes = s->wide ? 8 : 4;
    double raw[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_sort_current()->keys[element](
            (char *)j->r.wide + at * key_bytes,
            dp_loop_gather(&s->in, 0, dp_plan_data(j->plan, s->self), width, (int64_t)at, n, raw), n, false);
    }
}

static uint64_t key_at(const job *j, int64_t slice, int64_t i) {
    int64_t at = slice * j->s->row + i;
    return j->s->wide ? j->r.wide[at] : j->r.narrow[at];
}

/* Negative, 0 or positive, as slice a comes before b; NaN sorts last but is not equal to itself. */
static int compare(const job *j, int64_t a, int64_t b, bool as_equality) {
    for (int64_t i = 0; i < j->s->row; i++) {
        uint64_t x = key_at(j, a, i), y = key_at(j, b, i);
        if (x != y)
            return x < y ? -1 : 1;
        if (as_equality && j->s->nan_key && x == j->s->nan_key)
            return 1;
    }
    return 0;
}

/* Merge sort of the slices, bottom up: stable. */
static void sort_slices(const job *j) {
    uint32_t *from = j->r.order, *to = j->r.spare;
    int64_t n = j->s->n;
    for (int64_t step = 1; step < n; step *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * step) {
            int64_t middle = begin + step < n ? begin + step : n, end = middle + step < n ? middle + step : n;
            for (int64_t a = begin, b = middle, at = begin; at < end; at++) {
                bool left = a < middle && (b == end || compare(j, from[a], from[b], false) <= 0);
                to[at] = left ? from[a++] : from[b++];
            }
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != j->r.order)
        memcpy(j->r.order, from, (size_t)n * sizeof *from);
}

static dp_status too_small(const job *j, int slot, int dim, int64_t count) {
    const dp_plan_tensor *t = &j->plan->tensors[slot];
    return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but %lld were found", t->name, dim,
                   (long long)t->view.dims[dim], (long long)count);
}

/* Number of different slices; spare[k] = that of the k-th in order. */
static int64_t number_groups(const job *j) {
    int64_t groups = 0;
    for (int64_t k = 0; k < j->s->n; k++) {
        if (k == 0 || compare(j, j->r.order[k - 1], j->r.order[k], true) != 0)
            groups++;
        j->r.spare[k] = (uint32_t)(groups - 1);
    }
    return groups;
}

/* Renumbers the groups by where they first stand. Slices are in a stable order, so the first of a group is the lowest.
 */
static dp_status order_by_place(const job *j) {
    const state *s = j->s;
    uint32_t *number = dp_alloc(DP_MEM_RUNTIME, ((size_t)s->n + 1) * sizeof *number), next = 0;
    if (!number)
        return no_memory(s);
    for (int64_t k = 0; k < s->n; k++)
        if (k == 0 || j->r.spare[k] != j->r.spare[k - 1])
            number[j->r.order[k]] = 1;
    for (int64_t slice = 0; slice < s->n; slice++)
        if (number[slice])
            number[slice] = next++;
    uint32_t before = 0;
    for (int64_t k = 0; k < s->n; k++) {
        uint32_t group = j->r.spare[k];
        j->r.spare[k] = k && group == before ? j->r.spare[k - 1] : number[j->r.order[k]];
        before = group;
    }
    dp_free(number);
    return DP_OK;
}

static void write_firsts(const job *j, int64_t groups) {
    dp_tensor *t = &j->plan->tensors[j->s->first].view;
    int64_t *to = dp_tensor_data(t);
    dp_tensor_shrink(t, 0, groups);
    for (int64_t k = 0; k < j->s->n; k++)
        if (k == 0 || j->r.spare[k] != j->r.spare[k - 1])
            to[j->r.spare[k] * t->strides[0]] = j->r.order[k];
}

static void copy_slice(const job *j, int64_t slice, const dp_loop *out, int64_t group, size_t width) {
    const state *s = j->s;
    const char *from = dp_plan_data(j->plan, s->self);
    char *to = dp_plan_data(j->plan, s->y);
    for (int64_t i = 0; i < s->row; i++)
        memcpy(to + dp_loop_offset(out, 0, group * s->row + i) * (int64_t)width,
               from + dp_loop_offset(&s->in, 0, slice * s->row + i) * (int64_t)width, width);
}

/* dims and strides with `dim` moved to the front. */
static void slices_first(const dp_tensor *t, int dim, int64_t *dims, int64_t *strides) {
    dims[0] = t->dims[dim];
    strides[0] = t->strides[dim];
    for (int d = 0, at = 1; d < t->rank; d++)
        if (d != dim) {
            dims[at] = t->dims[d];
            strides[at++] = t->strides[d];
        }
}

static void write_values(const job *j, int64_t groups) {
    const state *s = j->s;
    dp_tensor *y = &j->plan->tensors[s->y].view;
    int64_t dims[DP_TENSOR_DIMS] = {0}, strides[DP_TENSOR_DIMS] = {0};
    dp_loop out;
    dp_tensor_shrink(y, s->dim, groups);
    slices_first(y, s->dim, dims, strides);
    dp_loop_begin(&out, dims, y->rank);
    dp_loop_add_strides(&out, strides);
    dp_loop_merge(&out, false);
    for (int64_t k = 0; k < s->n; k++)
        if (k == 0 || j->r.spare[k] != j->r.spare[k - 1])
            copy_slice(j, j->r.order[k], &out, j->r.spare[k], dp_element_bytes(y->element));
}

static void write_inverse(const job *j) {
    const dp_tensor *t = &j->plan->tensors[j->s->inverse].view;
    int64_t *to = dp_tensor_data(t);
    dp_loop out;
    dp_loop_begin(&out, t->dims, t->rank);
    dp_loop_add(&out, t);
    dp_loop_merge(&out, false);
    for (int64_t k = 0; k < j->s->n; k++)
        to[dp_loop_offset(&out, 0, j->r.order[k])] = j->r.spare[k];
}

static void write_counts(const job *j, int64_t groups) {
    dp_tensor *t = &j->plan->tensors[j->s->counts].view;
    int64_t *to = dp_tensor_data(t);
    dp_tensor_shrink(t, 0, groups);
    for (int64_t k = 0, first = 0; k < j->s->n; k++)
        if (k + 1 == j->s->n || j->r.spare[k + 1] != j->r.spare[k]) {
            to[j->r.spare[k] * t->strides[0]] = k + 1 - first;
            first = k + 1;
        }
}

static dp_status find(job *j) {
    const state *s = j->s;
    dp_sort_line line = {j->r.wide, (size_t)s->n, s->wide,
                         8 * (int)dp_element_bytes(j->plan->tensors[s->self].view.element)};
    if (s->n && s->row)
        dp_pool_for((size_t)(s->n * s->row), GRAIN, read_keys, j);
    for (int64_t i = 0; i < s->n; i++)
        j->r.order[i] = (uint32_t)i;
    if (s->sorted && s->by_dim)
        sort_slices(j);
    else if (s->sorted) {
        size_t bytes = dp_sort_scratch_bytes(line.n, s->wide);
        void *scratch = dp_sort_room(bytes);
        if (!scratch)
            return no_memory(s);
        dp_sort_order(&line, j->r.order, scratch);
        dp_sort_room_end(scratch, bytes);
    }
    int64_t groups = number_groups(j);
    if (groups > j->plan->tensors[s->y].view.dims[s->dim])
        return too_small(j, s->y, s->dim, groups);
    const int lists[] = {s->counts, s->first};
    for (int i = 0; i < 2; i++)
        if (lists[i] >= 0 && groups > j->plan->tensors[lists[i]].view.dims[0])
            return too_small(j, lists[i], 0, groups);
    dp_status status = s->by_place ? order_by_place(j) : DP_OK;
    if (status != DP_OK)
        return status;
    if (s->first >= 0)
        write_firsts(j, groups);
    write_values(j, groups);
    if (s->inverse >= 0)
        write_inverse(j);
    if (s->counts >= 0)
        write_counts(j, groups);
    return DP_OK;
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    size_t n = (size_t)j.s->n, keys = (n * (size_t)j.s->row * (j.s->wide ? 8 : 4) + 63) & ~(size_t)63;
    char *block = dp_alloc(DP_MEM_RUNTIME, keys + 2 * n * sizeof(uint32_t) + 64);
    if (!block)
        return no_memory(j.s);
    j.r.wide = (uint64_t *)block;
    j.r.narrow = (uint32_t *)block;
    j.r.order = (uint32_t *)(block + keys);
    j.r.spare = j.r.order + n;
    dp_status status = find(&j);
    dp_free(block);
    return status;
}

/* Phase one. */

static dp_status check_list(const dp_arg *out, const int64_t *dims, int rank) {
    dp_status status = dp_element_expect(out, DP_EL_BIT(DP_I64));
    if (status == DP_OK && dims)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "one index for each");
    if (status == DP_OK && !dims && out->as.tensor->rank != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", out->name, out->as.tensor->rank);
    return status;
}

/* dim -1: self is one sequence. */
static dp_status check(const dp_operator_call *call, int dim, bool inverse, bool counts) {
    const dp_arg *in = &call->in[0], *y = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    int64_t dims[DP_TENSOR_DIMS];
    memcpy(dims, self->dims, sizeof dims);
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(y, DP_EL_BIT(self->element));
    if (status == DP_OK && dim < 0 && y->as.tensor->rank != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", y->name, y->as.tensor->rank);
    if (status == DP_OK && dim >= 0) {
        if (y->as.tensor->rank == self->rank)
            dims[dim] = y->as.tensor->dims[dim];
        status = dp_shape_expect(y->as.tensor, y->name, dims, self->rank, "self's, with room along the dimension");
    }
    int64_t n = dim < 0 ? dp_tensor_count(self) : self->dims[dim];
    if (status == DP_OK && n > UINT32_MAX)
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s: %lld elements are compared, but at most 2^32 - 1 are offered",
                         in->name, (long long)n);
    if (status == DP_OK && inverse)
        status = dim < 0 ? check_list(&call->out[1], self->dims, self->rank) : check_list(&call->out[1], &n, 1);
    if (status == DP_OK && counts)
        status = check_list(&call->out[2], NULL, 0);
    if (status == DP_OK)
        status = dp_places_expect(y);
    if (status == DP_OK && inverse)
        status = dp_places_expect(&call->out[1]);
    return status == DP_OK && counts ? dp_places_expect(&call->out[2]) : status;
}

static dp_status new_plan(const dp_operator_call *call, int dim, bool sorted, bool inverse, bool counts,
                          dp_plan **out_plan) {
    dp_status status = check(call, dim, inverse, counts);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    const dp_tensor *self = call->in[0].as.tensor;
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS], count = dp_tensor_count(self);
    if (dim < 0) {
        dp_loop_begin(&s->in, self->dims, self->rank);
        dp_loop_add(&s->in, self);
    } else {
        slices_first(self, dim, dims, strides);
        dp_loop_begin(&s->in, dims, self->rank);
        dp_loop_add_strides(&s->in, strides);
    }
    dp_loop_merge(&s->in, false);
    s->by_dim = dim >= 0;
    s->dim = dim < 0 ? 0 : dim;
    s->n = dim < 0 ? count : self->dims[dim];
    s->row = dim < 0 ? 1 : s->n ? count / s->n : 0;
    s->sorted = sorted;
    s->wide = dp_element_bytes(self->element) == 8;
    s->nan_key = !dp_element_is_float(self->element) ? 0 : UINT64_MAX >> (64 - 8 * dp_element_bytes(self->element));
    s->self = call->in[0].slot;
    s->y = call->out[0].slot;
    s->first = -1;
    s->inverse = inverse ? call->out[1].slot : -1;
    s->counts = counts ? call->out[2].slot : -1;
    plan->finds_dims = true;
    plan->path = sorted ? "sorted" : "in line";
    *out_plan = plan;
    return DP_OK;
}

static bool wanted(const dp_operator_call *call, int flag, int out) {
    return dp_arg_integer(&call->in[flag], 0) != 0 && call->out[out].kind == DP_ARG_TENSOR;
}

static dp_status unique(const dp_operator_call *call, dp_plan **out_plan) {
    return new_plan(call, -1, true, wanted(call, 1, 1), wanted(call, 2, 2), out_plan);
}

static dp_status unique_consecutive(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *self = call->in[0].as.tensor;
    int64_t dim = dp_arg_integer(&call->in[3], 0);
    dim = dim >= self->rank || dim < -self->rank ? -1 : dim < 0 ? dim + self->rank : dim;
    return new_plan(call, (int)dim, false, wanted(call, 1, 1), wanted(call, 2, 2), out_plan);
}

static dp_status unique_dim(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0];
    int dim = 0;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[2], 0), in->as.tensor, call->in[2].name, &dim);
    if (status == DP_OK && !in->as.tensor->rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions to be unique along", in->name);
    return status == DP_OK ? new_plan(call, dim, true, wanted(call, 1, 1), true, out_plan) : status;
}

/* Outputs have room for all; the family's others have inverse second. */
static dp_status unique_places(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *axis = &call->in[1], *out = call->out;
    const dp_tensor *self = in->as.tensor;
    int dim = -1;
    int64_t n = dp_tensor_count(self);
    dp_status status = DP_OK;
    if (axis->kind != DP_ARG_ABSENT) {
        status = dp_dim_check(axis->as.integer, self, axis->name, &dim);
        if (status == DP_OK && !self->rank)
            status = dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions to be unique along", in->name);
        n = status == DP_OK ? self->dims[dim] : 0;
    }
    if (status == DP_OK)
        status = dim < 0 ? dp_shape_expect(out->as.tensor, out->name, &n, 1, "room for all elements")
                         : dp_shape_expect(out->as.tensor, out->name, self->dims, self->rank, "room for all slices");
    for (int i = 1; i < 4 && status == DP_OK; i++) {
        if (out[i].kind != DP_ARG_TENSOR)
            continue;
        status = dp_element_expect(&out[i], DP_EL_BIT(DP_I64));
        if (status == DP_OK)
            status = dp_shape_expect(out[i].as.tensor, out[i].name, &n, 1, "room for one number for each");
    }
    if (status == DP_OK)
        status = new_plan(call, dim, true, false, false, out_plan);
    if (status != DP_OK)
        return status;
    state *s = dp_plan_state(*out_plan);
    s->by_place = dp_arg_integer(&call->in[2], 1) == 0;
    s->first = out[1].kind == DP_ARG_TENSOR ? out[1].slot : -1;
    s->inverse = out[2].kind == DP_ARG_TENSOR ? out[2].slot : -1;
    s->counts = out[3].kind == DP_ARG_TENSOR ? out[3].slot : -1;
    return DP_OK;
}

#define EXPORT(function, optional_in, optional_out)                                                                    \
    extern const dp_function dp_sort_##function;                                                                       \
    const dp_function dp_sort_##function = {#function, function, NULL, optional_in, (optional_out) | DP_FINDS_DIMS};
EXPORT(unique, 0, 6)
EXPORT(unique_consecutive, 0, 6)
EXPORT(unique_dim, 0, 2)
EXPORT(unique_places, 2, 14)
