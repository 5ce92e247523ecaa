/*
 * along.c - scatter along one dim. Mappings:
 *   scatter(self, dim, index, source, reduction, include_self) -> out
 *     out is self, but out[index[i][j]][j] op= source[i][j] (for dim 0); source is a tensor that has at least index's
 * dims, or a scalar. reduction 0 set, 1 add, 2 multiply, 3 maximum, 4 minimum, 5 mean; include_self false: places that
 * are hit forget self's value first. Lines along dim are independent and split over the workers; in a line updates go
 * in the order of index. Indices are checked before anything is written.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/scatter/kernels.h"
#include "ops/scatter/scatter.h"
#include "runtime/pool.h"

enum { GRAIN = 4096, MEAN = 5, REDUCTIONS = 6 };

typedef struct state {
    dp_loop lines;               /* index's dims without dim; views 0 out, 1 index, 2 source */
    dp_loop along;               /* index's dim; views 0 index, 1 source */
    int64_t size, stride;        /* of out's dim */
    int from, to, index, source; /* slots; source -1: the scalar */
    int reduction;
    bool include_self;
    dp_indices check;
    dp_update_at_fn update, set;
    dp_convert_fn load_index, load_value, store_value;
    bool integral;
    _Alignas(16) uint8_t scalar[16];
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool out_of_memory;
} job;

static int64_t width_of(const job *j, int slot) {
    return (int64_t)dp_element_bytes(j->plan->tensors[slot].view.element);
}

/* Offsets in out of the line's updates [at, at + n), from the line's begin. */
static void read_offsets(const job *j, const char *index, int64_t at, size_t n, int64_t *offsets) {
    const state *s = j->s;
    double raw[DP_TILE];
    s->load_index(offsets, dp_loop_gather(&s->along, 0, index, (size_t)width_of(j, s->index), at, n, raw), n);
    /* checked before, but out may lie over index */
    for (size_t i = 0; i < n; i++) {
        int64_t place = offsets[i] < 0 ? offsets[i] + s->size : offsets[i];
        offsets[i] = (place >= 0 && place < s->size ? place : 0) * s->stride;
    }
}

/* How often each place of the line is hit; places that are hit for the first time are set, the others are updated. */
static void update_fresh(const job *j, char *to, const int64_t *offsets, const char *from, size_t n, uint32_t *hits) {
    const state *s = j->s;
    size_t width = (size_t)width_of(j, s->to);
    for (size_t i = 0; i < n; i++) {
        bool first = hits[s->stride ? offsets[i] / s->stride : 0]++ == 0 && !s->include_self;
        (first ? s->set : s->update)(to, offsets + i, from + i * width, 1, (dp_factor){1, 1});
    }
}

static void divide_by_hits(const job *j, char *to, const uint32_t *hits) {
    const state *s = j->s;
    for (int64_t i = 0; i < s->size; i++) {
        if (!hits[i])
            continue;
        char *at = to + i * s->stride * width_of(j, s->to);
        int64_t count = (int64_t)hits[i] + s->include_self;
        union {
            double real;
            int64_t integer;
        } v;
        s->load_value(&v, at, 1);
        if (s->integral) /* rounded down, as PyTorch */
            v.integer = v.integer / count - (v.integer % count < 0);
        else
            v.real /= (double)count;
        s->store_value(at, &v, 1);
    }
}

static void run_line(const job *j, int64_t line, uint32_t *hits) {
    const state *s = j->s;
    size_t width = (size_t)width_of(j, s->to);
    char *to = (char *)dp_plan_data(j->plan, s->to) + dp_loop_offset(&s->lines, 0, line) * (int64_t)width;
    const char *index =
        (const char *)dp_plan_data(j->plan, s->index) + dp_loop_offset(&s->lines, 1, line) * width_of(j, s->index);
    const char *source = (const char *)s->scalar;
    if (s->source >= 0)
        source = (const char *)dp_plan_data(j->plan, s->source) + dp_loop_offset(&s->lines, 2, line) * (int64_t)width;
    int64_t offsets[DP_TILE];
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    if (hits)
        memset(hits, 0, (size_t)s->size * sizeof *hits);
    for (int64_t at = 0, n; at < s->along.count; at += n) {
        n = s->along.count - at < DP_TILE ? s->along.count - at : DP_TILE;
        read_offsets(j, index, at, (size_t)n, offsets);
        const void *from = dp_loop_gather(&s->along, 1, source, width, at, (size_t)n, &buffer);
        if (hits)
            update_fresh(j, to, offsets, from, (size_t)n, hits);
        else
            s->update(to, offsets, from, (size_t)n, (dp_factor){1, 1});
    }
    if (hits && s->reduction == MEAN)
        divide_by_hits(j, to, hits);
}

static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    uint32_t *hits = NULL;
    if ((!s->include_self && s->reduction) || s->reduction == MEAN) {
        hits = dp_alloc(DP_MEM_RUNTIME, (size_t)s->size * sizeof *hits);
        if (!hits) {
            atomic_store(&j->out_of_memory, true);
            return;
        }
    }
    for (size_t line = begin; line < end; line++)
        run_line(j, (int64_t)line, hits);
    dp_free(hits);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    dp_status status = dp_indices_check(plan, &s->check, -s->size);
    if (status != DP_OK)
        return status;
    dp_scatter_begin(plan, s->from, s->to);
    if (!s->lines.count || !s->along.count)
        return DP_OK;
    int64_t grain = GRAIN / s->along.count;
    dp_pool_for((size_t)s->lines.count, (size_t)(grain < 1 ? 1 : grain), run_range, &j);
    if (atomic_load(&j.out_of_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to count hits of %lld places: free some",
                       (long long)s->size);
    return DP_OK;
}

/* Phase one. */

static dp_status check_shapes(const dp_operator_call *call, int dim) {
    const dp_arg *in = &call->in[0], *index = &call->in[2], *source = &call->in[3];
    const dp_tensor *self = in->as.tensor, *at = index->as.tensor;
    dp_status status = dp_element_expect(index, DP_INDEX_TYPES);
    if (status == DP_OK && at->rank != self->rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have those of %s: %d", index->name, at->rank,
                         in->name, self->rank);
    for (int d = 0; status == DP_OK && d < self->rank; d++)
        if (d != dim && at->dims[d] > self->dims[d])
            status = dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at most that of %s: %lld",
                             index->name, d, (long long)at->dims[d], in->name, (long long)self->dims[d]);
    if (status != DP_OK || source->kind != DP_ARG_TENSOR)
        return status;
    status = dp_element_expect(source, DP_EL_BIT(self->element));
    if (status == DP_OK && source->as.tensor->rank != self->rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have those of %s: %d", source->name,
                         source->as.tensor->rank, in->name, self->rank);
    for (int d = 0; status == DP_OK && d < self->rank; d++)
        if (at->dims[d] > source->as.tensor->dims[d])
            status =
                dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be at most that of %s: %lld", index->name,
                        d, (long long)at->dims[d], source->name, (long long)source->as.tensor->dims[d]);
    return status;
}

static void without(const int64_t *from, int rank, int dim, int64_t *to) {
    for (int d = 0, n = 0; d < rank; d++)
        if (d != dim)
            to[n++] = from[d];
}

static void build(const dp_tensor *at, const dp_tensor *out, const dp_tensor *source, int dim, state *s) {
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    int64_t dims[DP_TENSOR_DIMS] = {0}, a[DP_TENSOR_DIMS] = {0}, b[DP_TENSOR_DIMS] = {0}, c[DP_TENSOR_DIMS] = {0},
            one = 1;
    const int64_t *from = source ? source->strides : none;
    without(at->dims, at->rank, dim, dims);
    without(out->strides, at->rank, dim, a);
    without(at->strides, at->rank, dim, b);
    without(from, at->rank, dim, c);
    dp_loop_begin(&s->lines, dims, at->rank ? at->rank - 1 : 0);
    dp_loop_add_strides(&s->lines, a);
    dp_loop_add_strides(&s->lines, b);
    dp_loop_add_strides(&s->lines, c);
    dp_loop_merge(&s->lines, false);
    dp_loop_begin(&s->along, at->rank ? &at->dims[dim] : &one, 1);
    dp_loop_add_strides(&s->along, at->rank ? &at->strides[dim] : none);
    dp_loop_add_strides(&s->along, at->rank ? &from[dim] : none);
    s->size = out->rank ? out->dims[dim] : 1;
    s->stride = out->rank ? out->strides[dim] : 0;
}

/* The scalar as one element of out's type. */
static dp_status take_scalar(const dp_arg *source, int element, state *s) {
    const dp_scalar *value = source->as.scalar;
    bool real = dp_element_is_float(element);
    dp_convert_fn store = dp_elementwise_current()->store[element][real ? DP_COMPUTE_F64 : DP_COMPUTE_I64];
    if (!store)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s: elements of type %s are not offered", source->name,
                       dp_element_name(element));
    store(s->scalar, real ? (const void *)&value->real : (const void *)&value->integer, 1);
    return DP_OK;
}

/* By name: what graphs call the numbers. */
static int64_t reduction_of(const dp_arg *how) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (int i = 0; how->kind == DP_ARG_TEXT && i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(how->as.text, names[i]) == 0)
            return i;
    return how->kind == DP_ARG_TEXT ? -1 : dp_arg_integer(how, 0);
}

dp_status dp_scatter_reduction(const dp_arg *how, dp_update *out_update) {
    static const dp_update updates[] = {DP_UPDATE_SET, DP_UPDATE_ADD, DP_UPDATE_MUL, DP_UPDATE_MAX, DP_UPDATE_MIN};
    int64_t reduction = reduction_of(how);
    if (reduction < 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be none, add, mul, max or min", how->name,
                       how->as.text);
    *out_update = updates[reduction];
    return DP_OK;
}

static dp_status scatter(const dp_operator_call *call, dp_plan **out_plan) {
    static const dp_update updates[REDUCTIONS] = {DP_UPDATE_SET, DP_UPDATE_ADD, DP_UPDATE_MUL,
                                                  DP_UPDATE_MAX, DP_UPDATE_MIN, DP_UPDATE_ADD};
    const dp_arg *in = &call->in[0], *index = &call->in[2], *source = &call->in[3], *how = &call->in[4];
    const dp_tensor *self = in->as.tensor;
    int64_t reduction = reduction_of(how);
    int dim = 0, element = self->element;
    dp_status status = dp_dim_check(dp_arg_integer(&call->in[1], 0), self, call->in[1].name, &dim);
    if (status == DP_OK)
        status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = check_shapes(call, dim);
    if (status == DP_OK)
        status = dp_scatter_expect(in, &call->out[0]);
    if (status == DP_OK && (reduction < 0 || reduction >= REDUCTIONS))
        status = dp_fail(DP_ERR_ARGUMENT,
                         "%s is %lld, but must be 0 (set), 1 (add), 2 (multiply), 3 (maximum), 4 (minimum) or 5 (mean)",
                         how->name, (long long)reduction);
    if (status == DP_OK && !dp_update_current()->at[updates[reduction]][element])
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s is %lld, which is not offered for elements of type %s", how->name,
                         (long long)reduction, dp_element_name(element));
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    bool tensor = source->kind == DP_ARG_TENSOR;
    const dp_elementwise_table *convert = dp_elementwise_current();
    build(index->as.tensor, call->out[0].as.tensor, tensor ? source->as.tensor : NULL, dim, s);
    s->from = in->slot;
    s->to = call->out[0].slot;
    s->index = index->slot;
    s->source = tensor ? source->slot : -1;
    s->reduction = (int)reduction;
    s->include_self = dp_arg_integer(&call->in[5], 1) != 0;
    s->check = dp_indices_of(index, s->size);
    s->update = dp_update_current()->at[updates[reduction]][element];
    s->set = dp_update_current()->at[DP_UPDATE_SET][element];
    s->load_index = convert->load[index->as.tensor->element][DP_COMPUTE_I64];
    s->integral = !dp_element_is_float(element);
    s->load_value = convert->load[element][s->integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
    s->store_value = convert->store[element][s->integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
    status = tensor ? DP_OK : take_scalar(source, element, s);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_scatter_scatter;
const dp_function dp_scatter_scatter = {"scatter", scatter, NULL, 0, 0};
