/*
 * ngrams.c - how often known runs of numbers occur in a line, by the ONNX operator specification of TfIdfVectorizer:
 *   ngrams(x, pool, counts, indexes, weights, shortest, longest, skip, mode) -> y
 * x [n] or [batch, n]; y [outputs] or [batch, outputs] with outputs = the greatest of `indexes` + 1. pool has all known
 * runs, those of length k + 1 from counts[k] on; run i counts into y[indexes[i]]. Elements of a run stand 1 to skip + 1
 * apart. mode "TF": y is the count, "IDF": the weight of what occurs, "TFIDF": both multiplied. Both are contiguous.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "base/memory.h"

enum { LONGEST = 16, POOL = 1 << 24 };

typedef enum mode { TF, IDF, TFIDF } mode;

typedef struct state {
    int x, y;
    int64_t lines, n, outputs, shortest, longest, skip;
    mode mode;
    dp_convert_fn load, store;
    size_t slots;                         /* of the table, a power of 2 */
    size_t table_at, pool_at, weights_at; /* bytes from the state */
} state;

/* A known run: where it begins in the pool, how long it is, where it counts. length 0: a free slot. */
typedef struct run {
    int32_t first, length, output;
} run;

static size_t hash_of(const int64_t *first, int64_t length, int64_t step) {
    uint64_t hash = (uint64_t)length;
    for (int64_t i = 0; i < length; i++) {
        hash ^= (uint64_t)first[i * step];
        hash *= 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return (size_t)hash;
}

static const void *part(const state *s, size_t at) {
    return (const char *)s + at;
}

static bool is_run(const state *s, const run *r, const int64_t *first, int64_t length, int64_t step) {
    const int64_t *pool = part(s, s->pool_at);
    for (int64_t i = 0; i < length; i++)
        if (pool[r->first + i] != first[i * step])
            return false;
    return true;
}

/* The run's slot, or the free one where it would be. */
static run *find(const state *s, const int64_t *first, int64_t length, int64_t step) {
    run *table = (run *)part(s, s->table_at);
    size_t at = hash_of(first, length, step) & (s->slots - 1);
    while (table[at].length && (table[at].length != length || !is_run(s, &table[at], first, length, step)))
        at = (at + 1) & (s->slots - 1);
    return &table[at];
}

/* Runs of one element have no distance: they are counted once. */
static void count_line(const state *s, const int64_t *line, double *y) {
    for (int64_t step = 1; step <= s->skip + 1; step++)
        for (int64_t length = s->shortest; length <= s->longest && (length - 1) * step < s->n; length++) {
            if (length == 1 && step > 1)
                continue;
            for (int64_t i = 0; i + (length - 1) * step < s->n; i++) {
                const run *known = find(s, line + i, length, step);
                if (known->length)
                    y[known->output]++;
            }
        }
}

static void weigh(const state *s, double *y) {
    const float *weights = s->weights_at ? part(s, s->weights_at) : NULL;
    for (int64_t i = 0; i < s->outputs && s->mode != TF; i++) {
        double weight = weights ? (double)weights[i] : 1;
        y[i] = s->mode == IDF ? (y[i] > 0 ? weight : 0) : y[i] * weight;
    }
}

static dp_status run_all(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const dp_tensor *x = &plan->tensors[s->x].view, *y = &plan->tensors[s->y].view;
    int64_t *line = dp_alloc(DP_MEM_RUNTIME, (size_t)(s->n + s->outputs) * sizeof(int64_t) + 8);
    if (!line)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a line of %lld numbers: free some", (long long)s->n);
    double *counts = (double *)(line + s->n);
    for (int64_t i = 0; i < s->lines; i++) {
        s->load(line, (char *)dp_tensor_data(x) + i * s->n * (int64_t)dp_element_bytes(x->element), (size_t)s->n);
        memset(counts, 0, (size_t)s->outputs * sizeof *counts);
        count_line(s, line, counts);
        weigh(s, counts);
        s->store((char *)dp_tensor_data(y) + i * s->outputs * (int64_t)dp_element_bytes(y->element), counts,
                 (size_t)s->outputs);
    }
    dp_free(line);
    return DP_OK;
}

static int64_t end_of(const dp_arg *pool, const dp_arg *counts, int64_t k) {
    return k + 1 < counts->count ? counts->as.integers[k + 1] : pool->count;
}

/* Every list fits the others; *out_outputs is the greatest index + 1. */
static dp_status check_lists(const dp_operator_call *call, int64_t *out_outputs) {
    const dp_arg *pool = &call->in[1], *counts = &call->in[2], *indexes = &call->in[3], *weights = &call->in[4];
    int64_t runs = 0, most = -1;
    bool fine = pool->count <= POOL && counts->count >= 1 && counts->count <= LONGEST && counts->as.integers[0] == 0;
    for (int64_t k = 0; k < counts->count && fine; k++) {
        int64_t length = end_of(pool, counts, k) - counts->as.integers[k];
        fine = length >= 0 && counts->as.integers[k] >= 0 && length % (k + 1) == 0;
        runs += fine ? length / (k + 1) : 0;
    }
    for (int64_t i = 0; i < indexes->count && fine; i++) {
        fine = indexes->as.integers[i] >= 0 && indexes->as.integers[i] < POOL;
        most = fine && indexes->as.integers[i] > most ? indexes->as.integers[i] : most;
    }
    *out_outputs = most + 1;
    if (!fine || runs != indexes->count || (weights->kind == DP_ARG_FLOAT_LIST && weights->count < most + 1))
        return dp_fail(DP_ERR_ARGUMENT, "%s, %s, %s and weights do not fit together", pool->name, counts->name,
                       indexes->name);
    return DP_OK;
}

static void fill_table(const dp_operator_call *call, state *s) {
    const dp_arg *pool = &call->in[1], *counts = &call->in[2], *indexes = &call->in[3], *weights = &call->in[4];
    memcpy((char *)s + s->pool_at, pool->as.integers, (size_t)pool->count * sizeof(int64_t));
    if (s->weights_at)
        memcpy((char *)s + s->weights_at, weights->as.floats, (size_t)s->outputs * sizeof(float));
    int64_t number = 0;
    for (int64_t k = 0; k < counts->count; k++)
        for (int64_t at = counts->as.integers[k]; at < end_of(pool, counts, k); at += k + 1, number++) {
            run *slot = find(s, (const int64_t *)part(s, s->pool_at) + at, k + 1, 1);
            *slot = (run){(int32_t)at, (int32_t)k + 1, (int32_t)indexes->as.integers[number]};
        }
}

static dp_status take_mode(const dp_arg *text, mode *out) {
    static const char *const names[] = {"TF", "IDF", "TFIDF"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text->as.text, names[i]) == 0) {
            *out = (mode)i;
            return DP_OK;
        }
    return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be TF, IDF or TFIDF", text->name, text->as.text);
}

static dp_status ngrams(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    const dp_tensor *x = in[0].as.tensor;
    state s = {.x = in[0].slot, .y = out->slot};
    dp_status status = dp_element_expect(&in[0], DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64));
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(DP_F32));
    if (status == DP_OK && (x->rank < 1 || x->rank > 2))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 or 2", in[0].name, x->rank);
    if (status == DP_OK)
        status = check_lists(call, &s.outputs);
    if (status == DP_OK)
        status = take_mode(&in[8], &s.mode);
    s.shortest = dp_arg_integer(&in[5], 1), s.longest = dp_arg_integer(&in[6], 1), s.skip = dp_arg_integer(&in[7], 0);
    if (status == DP_OK &&
        (s.shortest < 1 || s.longest < s.shortest || s.longest > LONGEST || s.skip < 0 || s.skip > 1 << 20))
        status = dp_fail(DP_ERR_ARGUMENT, "%s, %s and %s are %lld, %lld and %lld, which make no runs", in[5].name,
                         in[6].name, in[7].name, (long long)s.shortest, (long long)s.longest, (long long)s.skip);
    if (status != DP_OK)
        return status;
    s.n = x->dims[x->rank - 1];
    s.lines = x->rank == 2 ? x->dims[0] : 1;
    int64_t dims[] = {x->rank == 2 ? s.lines : s.outputs, s.outputs};
    status = dp_shape_expect(out->as.tensor, out->name, dims, x->rank, "a number for each index");
    if (status == DP_OK && (!dp_tensor_is_contiguous(x) || !dp_tensor_is_contiguous(out->as.tensor)))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s and %s must be contiguous", in[0].name, out->name);
    if (status != DP_OK)
        return status;
    for (s.slots = 8; s.slots < 2 * (size_t)in[3].count;)
        s.slots *= 2;
    bool weighted = in[4].kind == DP_ARG_FLOAT_LIST;
    s.table_at = sizeof s;
    s.pool_at = (s.table_at + s.slots * sizeof(run) + 7) & ~(size_t)7;
    size_t end = s.pool_at + (size_t)in[1].count * sizeof(int64_t);
    s.weights_at = weighted ? end : 0;
    dp_plan *plan = dp_plan_new(call, run_all, end + (weighted ? (size_t)s.outputs * sizeof(float) : 0));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *own = dp_plan_state(plan);
    s.load = dp_elementwise_current()->load[x->element][DP_COMPUTE_I64];
    s.store = dp_elementwise_current()->store[out->as.tensor->element][DP_COMPUTE_F64];
    *own = s;
    fill_table(call, own);
    plan->path = "table";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_index_ngrams;
const dp_function dp_index_ngrams = {"ngrams", ngrams, NULL, 0x10, 0};
