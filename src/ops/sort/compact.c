/*
 * compact.c - elements that a mask chooses, in row-major order. Mappings:
 *   nonzero(self, 0) -> out [count, rank]      nonzero(self, 1) -> out [rank, count]
 *   masked_select(self, mask) -> out [count]   self and mask broadcast together
 *   masked_scatter(self, mask, source) -> self the k-th chosen element becomes source's k-th; mask broadcast to self
 * Outputs are documented to have room for all elements; less is taken too, and fails the stream when it is too little.
 * Their dims become those of what was found (op.h). Two passes over fixed chunks: one counts, the other writes each
 * chunk where the counts before it end.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/loop.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { CHUNK = 1 << 14 };

typedef enum what { NONZERO, SELECT, SCATTER } what;

typedef struct state {
    what what;
    dp_loop loop; /* views 0 self, 1 mask */
    dp_loop line; /* select: out, scatter: source, as one sequence */
    int self, mask, other;
    bool columns;
    int64_t dims[DP_TENSOR_DIMS];
    int rank;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    int64_t *counts; /* of each chunk; then where it begins */
    int64_t total;
    char *to; /* of nonzero: as its strides are for `total` */
    int64_t along, across;
} job;

/* Which elements are not zero; signs of floating zeros do not count. */
static void test(const void *raw, int element, size_t n, uint8_t *truth) {
    bool is_float = dp_element_is_float(element);
#define TEST(T)                                                                                                        \
    do {                                                                                                               \
        const T mask = (T)(is_float ? (T) ~(T)0 >> 1 : (T) ~(T)0);                                                     \
        for (size_t i = 0; i < n; i++)                                                                                 \
            truth[i] = (((const T *)raw)[i] & mask) != 0;                                                              \
    } while (0)
    switch (dp_element_bytes(element)) {
    case 1:
        TEST(uint8_t);
        break;
    case 2:
        TEST(uint16_t);
        break;
    case 4:
        TEST(uint32_t);
        break;
    default:
        TEST(uint64_t);
    }
#undef TEST
}

/* Elements [at, at + n) of the mask. */
static void read_mask(const job *j, int64_t at, size_t n, uint8_t *truth) {
    int element = j->plan->tensors[j->s->mask].view.element;
    double raw[DP_TILE];
    test(dp_loop_gather(&j->s->loop, 1, dp_plan_data(j->plan, j->s->mask), dp_element_bytes(element), at, n, raw),
         element, n, truth);
}

static void count_chunks(void *context, size_t begin, size_t end) {
    const job *j = context;
    uint8_t truth[DP_TILE];
    for (size_t chunk = begin; chunk < end; chunk++) {
        int64_t last = (int64_t)(chunk + 1) * CHUNK, count = 0;
        last = last < j->s->loop.count ? last : j->s->loop.count;
        for (int64_t at = (int64_t)chunk * CHUNK, n; at < last; at += n) {
            n = last - at < DP_TILE ? last - at : DP_TILE;
            read_mask(j, at, (size_t)n, truth);
            for (int64_t i = 0; i < n; i++)
                count += truth[i];
        }
        j->counts[chunk] = count;
    }
}

/* Each of these has the tile's elements [at, at + n), and the chosen ones before it. Returns how many it chose. */
static size_t write_coordinates(const job *j, int64_t at, size_t n, const uint8_t *truth, int64_t before) {
    const state *s = j->s;
    size_t chosen = 0;
    for (size_t i = 0; i < n; i++) {
        if (!truth[i])
            continue;
        int64_t *to = (int64_t *)j->to + (before + (int64_t)chosen++) * j->along, rest = at + (int64_t)i;
        for (int d = s->rank - 1; d >= 0; d--) {
            int64_t up = rest / s->dims[d];
            to[d * j->across] = rest - up * s->dims[d];
            rest = up;
        }
    }
    return chosen;
}

static size_t write_chosen(const job *j, int64_t at, size_t n, const uint8_t *truth, int64_t before) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->self].view.element), chosen = 0;
    int64_t buffer[DP_TILE], kept[DP_TILE];
    const char *from = dp_loop_gather(&s->loop, 0, dp_plan_data(j->plan, s->self), width, at, n, buffer);
    for (size_t i = 0; i < n; i++) {
        memcpy((char *)kept + chosen * width, from + i * width, width);
        chosen += truth[i];
    }
    if (chosen)
        dp_loop_scatter(&s->line, 0, dp_plan_data(j->plan, s->other), width, before, chosen, kept);
    return chosen;
}

static size_t replace_chosen(const job *j, int64_t at, size_t n, const uint8_t *truth, int64_t before) {
    const state *s = j->s;
    size_t width = dp_element_bytes(j->plan->tensors[s->self].view.element), chosen = 0;
    int64_t buffer[DP_TILE], source[DP_TILE], mixed[DP_TILE];
    for (size_t i = 0; i < n; i++)
        chosen += truth[i];
    if (!chosen)
        return 0;
    char *self = dp_plan_data(j->plan, s->self);
    const char *from = dp_loop_gather(&s->line, 0, dp_plan_data(j->plan, s->other), width, before, chosen, source);
    const char *old = dp_loop_gather(&s->loop, 0, self, width, at, n, buffer);
    for (size_t i = 0, k = 0; i < n; i++) {
        memcpy((char *)mixed + i * width, truth[i] ? from + k * width : old + i * width, width);
        k += truth[i];
    }
    dp_loop_scatter(&s->loop, 0, self, width, at, n, mixed);
    return chosen;
}

static void write_chunks(void *context, size_t begin, size_t end) {
    const job *j = context;
    uint8_t truth[DP_TILE];
    for (size_t chunk = begin; chunk < end; chunk++) {
        int64_t last = (int64_t)(chunk + 1) * CHUNK, before = j->counts[chunk];
        last = last < j->s->loop.count ? last : j->s->loop.count;
        for (int64_t at = (int64_t)chunk * CHUNK, n; at < last; at += n) {
            n = last - at < DP_TILE ? last - at : DP_TILE;
            read_mask(j, at, (size_t)n, truth);
            before += (int64_t)(j->s->what == NONZERO  ? write_coordinates(j, at, (size_t)n, truth, before)
                                : j->s->what == SELECT ? write_chosen(j, at, (size_t)n, truth, before)
                                                       : replace_chosen(j, at, (size_t)n, truth, before));
        }
    }
}

/* Gives the output the dims of what was found. */
static dp_status settle(job *j) {
    const state *s = j->s;
    dp_tensor *other = &j->plan->tensors[s->other].view;
    if (s->what == SCATTER) {
        if (j->total > s->line.count)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but %s chooses %lld",
                           j->plan->tensors[s->other].name, (long long)s->line.count, j->plan->tensors[s->mask].name,
                           (long long)j->total);
        return DP_OK;
    }
    if (j->total > other->dims[s->columns])
        return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but %lld elements are chosen",
                       j->plan->tensors[s->other].name, s->columns, (long long)other->dims[s->columns],
                       (long long)j->total);
    dp_tensor_shrink(other, s->columns, j->total);
    j->to = dp_tensor_data(other);
    if (s->what == NONZERO) {
        j->along = other->strides[s->columns];
        j->across = other->strides[!s->columns];
    }
    return DP_OK;
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    size_t chunks = (size_t)((j.s->loop.count + CHUNK - 1) / CHUNK);
    j.counts = dp_alloc(DP_MEM_RUNTIME, (chunks + 1) * sizeof *j.counts);
    if (!j.counts)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the counts of %zu chunks: free some", chunks);
    if (chunks)
        dp_pool_for(chunks, 1, count_chunks, &j);
    for (size_t i = 0; i < chunks; i++) {
        int64_t count = j.counts[i];
        j.counts[i] = j.total;
        j.total += count;
    }
    dp_status status = settle(&j);
    if (status == DP_OK && chunks)
        dp_pool_for(chunks, 1, write_chunks, &j);
    dp_free(j.counts);
    return status;
}

/* Phase one. */

static dp_status new_plan(const dp_operator_call *call, what kind, const int64_t *dims, int rank, dp_plan **out_plan,
                          state **out_state) {
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    s->what = kind;
    s->rank = rank;
    memcpy(s->dims, dims, (size_t)rank * sizeof *dims);
    s->self = s->mask = call->in[0].slot;
    dp_loop_begin(&s->loop, dims, rank);
    dp_loop_add(&s->loop, call->in[0].as.tensor);
    dp_loop_add(&s->loop, call->in[kind == NONZERO ? 0 : 1].as.tensor);
    dp_loop_merge(&s->loop, false);
    plan->finds_dims = kind != SCATTER;
    plan->path = "count, then write";
    *out_plan = plan;
    *out_state = s;
    return DP_OK;
}

static dp_status nonzero(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *self = in->as.tensor;
    bool columns = dp_arg_integer(&call->in[1], 0) != 0;
    int64_t room = out->as.tensor->rank == 2 ? out->as.tensor->dims[columns] : dp_tensor_count(self);
    int64_t rows[2] = {room, self->rank}, lines[2] = {self->rank, room};
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(DP_I64));
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, columns ? lines : rows, 2,
                                 "one coordinate per dimension of self");
    if (status == DP_OK)
        status = dp_places_expect(out);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, NONZERO, self->dims, self->rank, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->other = out->slot;
    s->columns = columns;
    return DP_OK;
}

static dp_status check_masked(const dp_operator_call *call, const dp_arg *other) {
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(&call->in[1], DP_EL_BIT(DP_EL_BOOL) | DP_EL_BIT(DP_U8));
    return status == DP_OK ? dp_element_expect(other, DP_EL_BIT(call->in[0].as.tensor->element)) : status;
}

static dp_status masked_select(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *out = &call->out[0];
    const dp_tensor *both[] = {call->in[0].as.tensor, call->in[1].as.tensor};
    const char *names[] = {call->in[0].name, call->in[1].name};
    int64_t dims[DP_TENSOR_DIMS];
    int rank = 0;
    dp_status status = check_masked(call, out);
    if (status == DP_OK)
        status = dp_broadcast(both, names, 2, dims, &rank);
    if (status == DP_OK && out->as.tensor->rank != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", out->name, out->as.tensor->rank);
    if (status == DP_OK)
        status = dp_places_expect(out);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, SELECT, dims, rank, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->mask = call->in[1].slot;
    s->other = out->slot;
    dp_loop_begin(&s->line, out->as.tensor->dims, 1);
    dp_loop_add_strides(&s->line, out->as.tensor->strides);
    return DP_OK;
}

static dp_status masked_scatter(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *source = &call->in[2];
    const dp_tensor *both[] = {self->as.tensor, call->in[1].as.tensor};
    const char *names[] = {self->name, call->in[1].name};
    int64_t dims[DP_TENSOR_DIMS];
    int rank = 0;
    dp_status status = check_masked(call, source);
    if (status == DP_OK)
        status = dp_broadcast(both, names, 2, dims, &rank);
    if (status == DP_OK)
        status = dp_shape_expect(self->as.tensor, self->name, dims, rank, "that of the mask broadcast to it");
    if (status == DP_OK)
        status = dp_places_expect(self);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, SCATTER, dims, rank, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->mask = call->in[1].slot;
    s->other = source->slot;
    dp_loop_begin(&s->line, source->as.tensor->dims, source->as.tensor->rank);
    dp_loop_add(&s->line, source->as.tensor);
    dp_loop_merge(&s->line, false);
    return DP_OK;
}

#define EXPORT(function, optional_out)                                                                                             \
    extern const dp_function dp_sort_##function;                                                                       \
    const dp_function dp_sort_##function = {#function, function, NULL, 0, optional_out};
EXPORT(nonzero, DP_FINDS_DIMS)
EXPORT(masked_select, DP_FINDS_DIMS)
EXPORT(masked_scatter, 0)
