/*
 * sort.c - order along one dim. Mappings:
 *   argsort(self, dim, descending) -> indices      sort(self, dim, descending) -> values, indices
 *   topk(self, k, dim, largest, sorted) -> values, indices      sorted false: in the order they have in the line
 *   kth(self, k, dim, keepdim) -> values, indices               k counts from 1
 *   median(self, dim, keepdim) -> values [, indices]            dim absent: of all elements; nanmedian likewise
 * Every order is stable, also the descending one; NaN is greater than all numbers; indices are those of the line.
 */
#include <stdatomic.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/sort/kernels.h"
#include "runtime/pool.h"

enum { GRAIN = 8192, SELECT_LEAST = 256 };

typedef enum what { ARGSORT, SORT, TOPK, KTH, MEDIAN, NANMEDIAN } what;

typedef struct state {
    what what;
    dp_loop lines; /* views: 0 self, 1 values, 2 indices */
    dp_loop in;    /* along a line of self */
    dp_loop out;   /* along a line of results; views 0 values, 1 indices */
    int from, values, indices;
    int64_t k;
    bool descending, sorted, wide;
    uint64_t nan_key;
    dp_convert_fn store;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool out_of_memory;
} job;

/* What one worker needs for a line. */
typedef struct room {
    void *keys, *chosen_keys;
    uint32_t *order, *chosen;
    void *scratch;
} room;

static void read_keys(const state *s, const char *line, size_t width, int element, void *keys) {
    void (*make)(void *, const void *, size_t, bool) = dp_sort_current()->keys[element];
    size_t key_bytes = s->wide ? 8 : 4;
    double raw[DP_TILE];
    for (int64_t at = 0, n; at < s->in.count; at += n) {
        n = s->in.count - at < DP_TILE ? s->in.count - at : DP_TILE;
        make((char *)keys + (size_t)at * key_bytes, dp_loop_gather(&s->in, 0, line, width, at, (size_t)n, raw),
             (size_t)n, s->descending);
    }
}

/* The k smallest in order, or in line order when they need not be sorted. */
static void top(const state *s, const dp_sort_line *line, const room *r) {
    size_t k = (size_t)s->k;
    if (!s->sorted) {
        dp_sort_select(line, k, r->order, r->scratch);
        return;
    }
    if (line->n < SELECT_LEAST || 2 * k > line->n) {
        dp_sort_order(line, r->order, r->scratch);
        return;
    }
    dp_sort_select(line, k, r->chosen, r->scratch);
    for (size_t i = 0; i < k; i++) {
        if (s->wide)
            ((uint64_t *)r->chosen_keys)[i] = ((const uint64_t *)line->keys)[r->chosen[i]];
        else
            ((uint32_t *)r->chosen_keys)[i] = ((const uint32_t *)line->keys)[r->chosen[i]];
    }
    dp_sort_line few = {r->chosen_keys, k, s->wide, line->key_bits};
    dp_sort_order(&few, r->order, r->scratch);
    for (size_t i = 0; i < k; i++)
        r->order[i] = r->chosen[r->order[i]];
}

/* Which element of the line is the result of kth and the medians. */
static uint32_t pick(const state *s, const dp_sort_line *line, const room *r) {
    size_t nans = 0, first = line->n, k = (size_t)s->k;
    for (size_t i = 0; s->what != KTH && s->nan_key && i < line->n; i++) {
        uint64_t key = s->wide ? ((const uint64_t *)line->keys)[i] : ((const uint32_t *)line->keys)[i];
        if (key != s->nan_key)
            continue;
        first = nans++ ? first : i;
    }
    if (nans && (s->what == MEDIAN || nans == line->n))
        return (uint32_t)first;
    if (s->what != KTH)
        k = (line->n - nans - 1) / 2 + 1;
    return dp_sort_select(line, k, r->order, r->scratch);
}

/* Elements order[0..n) of a line. */
static void take(const state *s, const char *line, size_t width, const uint32_t *order, size_t n, void *to) {
    bool flat = s->in.rank == 1;
    int64_t stride = s->in.strides[0][0];
#define TAKE(T)                                                                                                        \
    for (size_t i = 0; i < n; i++)                                                                                     \
        ((T *)to)[i] = ((const T *)line)[flat ? order[i] * stride : dp_loop_offset(&s->in, 0, order[i])];              \
    break;
    switch (width) {
    case 1:
        TAKE(uint8_t)
    case 2:
        TAKE(uint16_t)
    case 4:
        TAKE(uint32_t)
    default:
        TAKE(uint64_t)
    }
#undef TAKE
}

static void write_line(const job *j, int64_t line, const char *from, size_t width, const uint32_t *order) {
    const state *s = j->s;
    int64_t raw[DP_TILE], stored[DP_TILE];
    for (int64_t at = 0, n; at < s->out.count; at += n) {
        n = s->out.count - at < DP_TILE ? s->out.count - at : DP_TILE;
        if (s->values >= 0) {
            take(s, from, width, order + at, (size_t)n, raw);
            char *to = (char *)dp_plan_data(j->plan, s->values) + dp_loop_offset(&s->lines, 1, line) * (int64_t)width;
            dp_loop_scatter(&s->out, 0, to, width, at, (size_t)n, raw);
        }
        if (s->indices < 0)
            continue;
        for (int64_t i = 0; i < n; i++)
            raw[i] = order[at + i];
        s->store(stored, raw, (size_t)n);
        size_t index_width = dp_element_bytes(j->plan->tensors[s->indices].view.element);
        char *to =
            (char *)dp_plan_data(j->plan, s->indices) + dp_loop_offset(&s->lines, 2, line) * (int64_t)index_width;
        dp_loop_scatter(&s->out, 1, to, index_width, at, (size_t)n, stored);
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    size_t n = (size_t)s->in.count, key_bytes = s->wide ? 8 : 4;
    size_t keys_bytes = (n * key_bytes + 63) & ~(size_t)63, order_bytes = (n * 4 + 63) & ~(size_t)63;
    size_t bytes = 2 * keys_bytes + 2 * order_bytes + dp_sort_scratch_bytes(n, s->wide);
    char *block = dp_sort_room(bytes);
    if (!block) {
        atomic_store(&j->out_of_memory, true);
        return;
    }
    room r = {block, block + keys_bytes, (uint32_t *)(block + 2 * keys_bytes),
              (uint32_t *)(block + 2 * keys_bytes + order_bytes), block + 2 * (keys_bytes + order_bytes)};
    int element = j->plan->tensors[s->from].view.element;
    size_t width = dp_element_bytes(element);
    for (size_t line = begin; line < end; line++) {
        const char *from =
            (const char *)dp_plan_data(j->plan, s->from) + dp_loop_offset(&s->lines, 0, (int64_t)line) * (int64_t)width;
        read_keys(s, from, width, element, r.keys);
        dp_sort_line keys = {r.keys, n, s->wide, (int)width * 8};
        if (s->what == ARGSORT || s->what == SORT)
            dp_sort_order(&keys, r.order, r.scratch);
        else if (s->what == TOPK)
            top(s, &keys, &r);
        else
            r.order[0] = pick(s, &keys, &r);
        write_line(j, (int64_t)line, from, width, r.order);
    }
    dp_sort_room_end(block, bytes);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    if (!j.s->lines.count || !j.s->in.count || !j.s->out.count)
        return DP_OK;
    int64_t grain = GRAIN / j.s->in.count;
    dp_pool_for((size_t)j.s->lines.count, (size_t)(grain < 1 ? 1 : grain), run_range, &j);
    if (atomic_load(&j.out_of_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to sort lines of %lld elements: free some",
                       (long long)j.s->in.count);
    return DP_OK;
}

/* Phase one. */

typedef struct row {
    what what;
    signed char k_at, dim_at, down_at, sorted_at, keep_at; /* positions in the mapping, -1 none */
} row;

static const dp_arg *arg_at(const dp_operator_call *call, int position) {
    return position >= 0 ? &call->in[position] : NULL;
}

/* Dims of the results, and how many a line gives. Medians without dim take all dims as one line. */
typedef struct geometry {
    bool in_line[DP_TENSOR_DIMS];
    bool keep;
    int64_t n, k;
    int64_t dims[DP_TENSOR_DIMS];
    int rank;
} geometry;

static dp_status measure(const dp_operator_call *call, const row *r, geometry *g) {
    const dp_tensor *self = call->in[0].as.tensor;
    const dp_arg *dim_arg = arg_at(call, r->dim_at), *k_arg = arg_at(call, r->k_at), *keep = arg_at(call, r->keep_at);
    bool all = dim_arg->kind == DP_ARG_ABSENT, one = r->what >= KTH;
    int dim = 0;
    dp_status status = all ? DP_OK : dp_dim_check(dp_arg_integer(dim_arg, 0), self, dim_arg->name, &dim);
    if (status != DP_OK)
        return status;
    g->keep = keep && dp_arg_integer(keep, 0) != 0;
    g->n = 1;
    for (int d = 0; d < self->rank; d++) {
        g->in_line[d] = all || d == dim;
        g->n *= g->in_line[d] ? self->dims[d] : 1;
    }
    g->k = k_arg ? dp_arg_integer(k_arg, 0) : one ? 1 : g->n;
    if (g->n > UINT32_MAX)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s: a line of %lld elements is sorted, but at most 2^32 - 1 are offered",
                       call->in[0].name, (long long)g->n);
    if (k_arg && (g->k < one || g->k > g->n))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be %d to %lld, the elements of dimension %d", k_arg->name,
                       (long long)g->k, one, (long long)g->n, dim);
    if (one && !g->n)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no elements to choose from", call->in[0].name);
    for (int d = 0; d < self->rank; d++)
        if (!g->in_line[d] || !one || g->keep)
            g->dims[g->rank++] = !g->in_line[d] ? self->dims[d] : one ? 1 : g->k;
    return DP_OK;
}

static dp_status check_output(const dp_operator_call *call, const geometry *g, const dp_arg *out, bool index) {
    if (out->kind == DP_ARG_ABSENT)
        return DP_OK;
    const dp_tensor *t = out->as.tensor;
    dp_status status = index ? dp_element_expect(out, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32))
                             : dp_element_expect(out, DP_EL_BIT(call->in[0].as.tensor->element));
    if (status == DP_OK)
        status = dp_shape_expect(t, out->name, g->dims, g->rank, "self's with the results along the dimension");
    return status == DP_OK ? dp_places_expect(out) : status;
}

/* Strides of a view in self's dims, kept apart: `inside` of the line's dims, `outside` of the others. */
static void add_view(const dp_tensor *self, const dp_tensor *t, const geometry *g, dp_loop *outside, dp_loop *inside) {
    int64_t out[DP_TENSOR_DIMS] = {0}, in[DP_TENSOR_DIMS] = {0};
    bool dropped = t && t->rank < self->rank;
    for (int d = 0, at = 0, n_out = 0, n_in = 0; d < self->rank; d++) {
        int64_t stride = t && !(dropped && g->in_line[d]) ? t->strides[at] : 0;
        at += !(dropped && g->in_line[d]);
        if (g->in_line[d])
            in[n_in++] = stride;
        else
            out[n_out++] = stride;
    }
    dp_loop_add_strides(outside, out);
    dp_loop_add_strides(inside, in);
}

static void build(const dp_operator_call *call, const geometry *g, const dp_arg *values, const dp_arg *indices,
                  state *s) {
    const dp_tensor *self = call->in[0].as.tensor;
    int64_t outer[DP_TENSOR_DIMS], inner[DP_TENSOR_DIMS], results[DP_TENSOR_DIMS];
    int n_outer = 0, n_inner = 0;
    for (int d = 0; d < self->rank; d++) {
        if (!g->in_line[d]) {
            outer[n_outer++] = self->dims[d];
            continue;
        }
        results[n_inner] = s->what >= KTH ? 1 : g->k;
        inner[n_inner++] = self->dims[d];
    }
    dp_loop_begin(&s->lines, outer, n_outer);
    dp_loop_begin(&s->in, inner, n_inner);
    dp_loop_begin(&s->out, results, n_inner);
    add_view(self, self, g, &s->lines, &s->in);
    add_view(self, values ? values->as.tensor : NULL, g, &s->lines, &s->out);
    add_view(self, indices ? indices->as.tensor : NULL, g, &s->lines, &s->out);
    dp_loop_merge(&s->lines, false);
    dp_loop_merge(&s->in, false);
    dp_loop_merge(&s->out, false);
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const row *r = call->op->function->detail;
    geometry g = {.rank = 0};
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK)
        status = measure(call, r, &g);
    const dp_arg *values = r->what == ARGSORT ? NULL : &call->out[0], *indices = &call->out[r->what == ARGSORT ? 0 : 1];
    if (status == DP_OK && values)
        status = check_output(call, &g, values, false);
    if (status == DP_OK)
        status = check_output(call, &g, indices, true);
    if (status != DP_OK)
        return status;
    indices = indices->kind == DP_ARG_ABSENT ? NULL : indices;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    const dp_arg *down = arg_at(call, r->down_at), *sorted = arg_at(call, r->sorted_at);
    int element = call->in[0].as.tensor->element;
    s->what = r->what;
    s->k = g.k;
    s->descending = down && dp_arg_integer(down, 0) != 0;
    s->sorted = !sorted || dp_arg_integer(sorted, 1) != 0;
    s->wide = dp_element_bytes(element) == 8;
    s->nan_key = !dp_element_is_float(element) ? 0 : UINT64_MAX >> (64 - 8 * dp_element_bytes(element));
    s->from = call->in[0].slot;
    s->values = values ? values->slot : -1;
    s->indices = indices ? indices->slot : -1;
    if (indices)
        s->store = dp_elementwise_current()->store[indices->as.tensor->element][DP_COMPUTE_I64];
    build(call, &g, values, indices, s);
    plan->path = s->what >= TOPK && g.n >= SELECT_LEAST ? "select" : g.n <= DP_RANK_MAX ? "ranks" : "radix";
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, optional_in, optional_out, ...)                                                               \
    static const row row_##function = {__VA_ARGS__};                                                                   \
    extern const dp_function dp_sort_##function;                                                                       \
    const dp_function dp_sort_##function = {#function, prepare, &row_##function, optional_in, optional_out};
EXPORT(argsort, 0, 0, ARGSORT, -1, 1, 2, -1, -1)
EXPORT(sort, 0, 0, SORT, -1, 1, 2, -1, -1)
EXPORT(topk, 0, 0, TOPK, 1, 2, 3, 4, -1)
EXPORT(kth, 0, 0, KTH, 1, 2, -1, -1, 3)
EXPORT(median, 2, 2, MEDIAN, -1, 1, -1, -1, 2)
EXPORT(nanmedian, 2, 2, NANMEDIAN, -1, 1, -1, -1, 2)
