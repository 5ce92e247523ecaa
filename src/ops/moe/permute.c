/*
 * permute.c - tokens in the order of their experts, and back, as training has them; T tokens of H, each for K experts,
 * entry e = t * K + k:
 *   permute(tokens, experts, count, padded) -> rows, places      places[e]: where entry e comes when they are sorted by
 *       expert, stable; rows[places[e]] = tokens[t]; rows may be fewer than entries: those behind them are left out
 *   permute_gradient(grad, places, K, padded) -> dtokens         dtokens[t] = sum over k of grad[places[e]]
 *   unpermute(rows, places, probs, padded, shape) -> out         out[t] = sum over k of probs[t][k] rows[places[e]];
 * without probs K is 1 unpermute_gradient(rows, grad, places, probs, padded, shape) -> drows, dprobs drows[places[e]] =
 * probs[t][k] grad[t], other rows are 0; dprobs[t][k] = the product of rows[places[e]] and grad[t] Computed in double,
 * sums in the order of k. Places outside of all entries fail the stream. The padded form is refused.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/doubles.h"
#include "ops/elementwise/kernels.h"
#include "ops/moe/sort.h"
#include "ops/op.h"
#include "ops/tiles.h"
#include "runtime/pool.h"

/* A tensor of rows; slot -1: absent. A vector is one of rows of one. */
typedef struct grid {
    int slot, element;
    int64_t rows, columns, row, column;
} grid;

typedef struct state {
    grid tokens, rows;                           /* [T, H] and one for each place, whether read or written */
    grid places, experts, probs, dprobs, joined; /* joined: the rows, when `rows` is their gradient */
    int64_t count, k;                            /* tokens; entries are count * k */
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    int64_t *places; /* of the entries */
    int64_t *entry;  /* of the rows: which comes there, -1: none; or NULL */
} job;

static char *cell(const job *j, const grid *g, int64_t row, int64_t column) {
    return (char *)dp_plan_data(j->plan, g->slot) +
           (row * g->row + column * g->column) * (int64_t)dp_element_bytes(g->element);
}

static void load_row(const job *j, const grid *g, int64_t row, double *to) {
    dp_doubles_load(g->element, cell(j, g, row, 0), g->column, g->columns, to);
}
static void store_row(const job *j, const grid *g, int64_t row, const double *from) {
    dp_doubles_store(g->element, cell(j, g, row, 0), g->column, g->columns, from);
}

static int64_t integer_at(const job *j, const grid *g, int64_t entry) {
    int64_t value;
    int64_t row = g->columns ? entry / g->columns : 0, column = g->columns ? entry % g->columns : 0;
    dp_elementwise_current()->load[g->element][DP_COMPUTE_I64](&value, cell(j, g, row, column), 1);
    return value;
}

static double prob_at(const job *j, int64_t token, int64_t k) {
    double value = 1;
    if (j->s->probs.slot >= 0)
        dp_doubles_load(j->s->probs.element, cell(j, &j->s->probs, token, k), 1, 1, &value);
    return value;
}

/* Places from the tensor, each once. */
static dp_status read_places(job *j) {
    const int64_t entries = j->s->count * j->s->k;
    for (int64_t row = 0; j->entry && row < j->s->rows.rows; row++)
        j->entry[row] = -1;
    for (int64_t e = 0; e < entries; e++) {
        j->places[e] = integer_at(j, &j->s->places, e);
        if (j->places[e] < 0 || j->places[e] >= entries)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld",
                           j->plan->tensors[j->s->places.slot].name, (long long)e, (long long)j->places[e],
                           (long long)entries - 1);
        if (j->entry && j->places[e] < j->s->rows.rows)
            j->entry[j->places[e]] = e;
    }
    return DP_OK;
}

/* Places by sorting the experts. */
static dp_status sort_places(job *j) {
    const int64_t entries = j->s->count * j->s->k;
    int32_t *keys = dp_alloc(DP_MEM_RUNTIME, (size_t)entries * 4 * sizeof *keys + 4);
    if (!keys)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld entries: free some", (long long)entries);
    int32_t *values = keys + entries;
    for (int64_t e = 0; e < entries; e++) {
        keys[e] = (int32_t)integer_at(j, &j->s->experts, e);
        values[e] = (int32_t)e;
    }
    dp_moe_sort(keys, values, entries, values + entries);
    for (int64_t place = 0; place < entries; place++) {
        j->places[values[place]] = place;
        if (place < j->s->rows.rows)
            j->entry[place] = values[place];
    }
    dp_free(keys);
    return DP_OK;
}

/* One row of `rows` made of its token; of none: zeros. */
static void fill_row(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    const int64_t entry = j->entry[tile];
    double *x = scratch;
    if (entry < 0) {
        memset(x, 0, (size_t)s->rows.columns * sizeof *x);
    } else {
        double factor = prob_at(j, entry / s->k, entry % s->k);
        load_row(j, &s->tokens, entry / s->k, x);
        for (int64_t c = 0; c < s->rows.columns && s->probs.slot >= 0; c++)
            x[c] *= factor;
    }
    store_row(j, &s->rows, (int64_t)tile, x);
}

/* One token made of its rows. */
static void join_token(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    double *sum = scratch, *x = sum + s->rows.columns;
    memset(sum, 0, (size_t)s->rows.columns * sizeof *sum);
    for (int64_t k = 0; k < s->k; k++) {
        int64_t place = j->places[(int64_t)tile * s->k + k];
        if (place >= s->rows.rows)
            continue;
        double factor = prob_at(j, (int64_t)tile, k);
        load_row(j, &s->rows, place, x);
        for (int64_t c = 0; c < s->rows.columns; c++)
            sum[c] += factor * x[c];
    }
    store_row(j, &s->tokens, (int64_t)tile, sum);
}

/* The gradients of a token's probabilities. */
static void token_probs(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    double *g = scratch, *x = g + s->tokens.columns;
    load_row(j, &s->tokens, (int64_t)tile, g);
    for (int64_t k = 0; k < s->k; k++) {
        int64_t place = j->places[(int64_t)tile * s->k + k];
        double sum = 0;
        if (place < s->joined.rows) {
            load_row(j, &s->joined, place, x);
            for (int64_t c = 0; c < s->tokens.columns; c++)
                sum += g[c] * x[c];
        }
        dp_doubles_store(s->dprobs.element, cell(j, &s->dprobs, (int64_t)tile, k), 1, 1, &sum);
    }
}

static dp_status begin(job *j, bool by_row) {
    const int64_t entries = j->s->count * j->s->k, rows = by_row ? j->s->rows.rows : 0;
    j->places = dp_alloc(DP_MEM_RUNTIME, (size_t)(entries + rows) * sizeof *j->places + 8);
    j->entry = by_row ? j->places + entries : NULL;
    return j->places ? DP_OK
                     : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld places: free some", (long long)entries);
}

static size_t room_of(const state *s) {
    int64_t columns = s->rows.columns > s->tokens.columns ? s->rows.columns : s->tokens.columns;
    return (size_t)columns * 2 * sizeof(double) + 64;
}

static dp_status run_permute(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    dp_status status = begin(&j, true);
    if (status == DP_OK)
        status = sort_places(&j);
    for (int64_t e = 0; e < s->count * s->k && status == DP_OK; e++)
        dp_elementwise_current()->store[s->places.element][DP_COMPUTE_I64](cell(&j, &s->places, e, 0), &j.places[e], 1);
    if (status == DP_OK)
        status = dp_tiles_run((size_t)s->rows.rows, room_of(s), fill_row, &j);
    dp_free(j.places);
    return status;
}

static dp_status run_join(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    dp_status status = begin(&j, false);
    if (status == DP_OK)
        status = read_places(&j);
    if (status == DP_OK)
        status = dp_tiles_run((size_t)j.s->count, room_of(j.s), join_token, &j);
    dp_free(j.places);
    return status;
}

static dp_status run_unpermute_gradient(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    dp_status status = begin(&j, true);
    if (status == DP_OK)
        status = read_places(&j);
    if (status == DP_OK)
        status = dp_tiles_run((size_t)s->rows.rows, room_of(s), fill_row, &j);
    if (status == DP_OK && s->dprobs.slot >= 0)
        status = dp_tiles_run((size_t)s->count, room_of(s), token_probs, &j);
    dp_free(j.places);
    return status;
}

/* Rank 1 or 2, of these types. */
static dp_status take(const dp_arg *arg, uint32_t elements, int rank, grid *out) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    if (status == DP_OK && t->rank != rank)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have %d", arg->name, t->rank, rank);
    if (status == DP_OK)
        *out = (grid){arg->slot,     t->element,
                      t->dims[0],    rank == 2 ? t->dims[1] : 1,
                      t->strides[0], rank == 2 ? t->strides[1] : 0};
    return status;
}

static dp_status expect_rows(const dp_arg *arg, int64_t rows, int64_t columns, const char *meaning) {
    const int64_t dims[] = {rows, columns};
    return dp_shape_expect(arg->as.tensor, arg->name, dims, 2, meaning);
}

static const uint32_t whole = DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64);

static dp_status finish(const dp_operator_call *call, const state *s, const dp_arg *padded, dp_status (*run)(dp_plan *),
                        dp_plan **out_plan) {
    dp_status status = DP_OK;
    if (dp_arg_integer(padded, 0))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s is true, but only the form without padding is offered", padded->name);
    if (status == DP_OK && s->count * s->k > INT32_MAX)
        status = dp_fail(DP_ERR_UNSUPPORTED, "there are %lld entries, but at most %d are supported",
                         (long long)(s->count * s->k), INT32_MAX);
    for (int i = 0; i < call->n_out && status == DP_OK; i++)
        if (call->out[i].kind == DP_ARG_TENSOR)
            status = dp_places_expect(&call->out[i]);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof *s) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    *(state *)dp_plan_state(plan) = *s;
    plan->path = "rows";
    *out_plan = plan;
    return DP_OK;
}

static dp_status permute(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *experts = &in[1], *rows = &call->out[0], *places = &call->out[1];
    state s = {.probs.slot = -1, .dprobs.slot = -1};
    dp_status status = take(&in[0], call->op->elements, 2, &s.tokens);
    if (status == DP_OK)
        status = take(experts, whole, experts->as.tensor->rank == 1 ? 1 : 2, &s.experts);
    if (status == DP_OK)
        status = take(rows, DP_EL_BIT(s.tokens.element), 2, &s.rows);
    if (status == DP_OK)
        status = take(places, whole, 1, &s.places);
    if (status != DP_OK)
        return status;
    s.count = s.tokens.rows;
    s.k = s.experts.columns;
    int64_t dims[] = {s.count, s.k};
    status = dp_shape_expect(experts->as.tensor, experts->name, dims, experts->as.tensor->rank, "some for each token");
    if (status != DP_OK)
        return status;
    const int64_t entries = s.count * s.k;
    status = dp_shape_expect(places->as.tensor, places->name, &entries, 1, "one for each of the experts' numbers");
    if (status == DP_OK)
        status =
            expect_rows(rows, s.rows.rows < entries ? s.rows.rows : entries, s.tokens.columns, "at most all entries");
    return status == DP_OK ? finish(call, &s, &in[3], run_permute, out_plan) : status;
}

static dp_status permute_gradient(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    state s = {.probs.slot = -1, .dprobs.slot = -1, .k = dp_arg_integer(&in[2], 1)};
    dp_status status = take(&in[0], call->op->elements, 2, &s.rows);
    if (status == DP_OK)
        status = take(&in[1], whole, 1, &s.places);
    if (status == DP_OK && (s.k < 1 || s.places.rows % s.k))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 1 and divide the elements of %s, %lld",
                         in[2].name, (long long)s.k, in[1].name, (long long)s.places.rows);
    if (status == DP_OK)
        status = take(out, DP_EL_BIT(s.rows.element), 2, &s.tokens);
    if (status != DP_OK)
        return status;
    s.count = s.places.rows / s.k;
    status = expect_rows(out, s.count, s.rows.columns, "a row for each token");
    return status == DP_OK ? finish(call, &s, &in[3], run_join, out_plan) : status;
}

/* K from probs; without them 1. */
static dp_status take_probs(const dp_operator_call *call, const dp_arg *probs, const dp_arg *places, state *s) {
    s->k = 1;
    s->probs.slot = s->dprobs.slot = -1;
    dp_status status = take(places, whole, 1, &s->places);
    if (status == DP_OK && probs->kind == DP_ARG_TENSOR) {
        status = take(probs, call->op->elements, 2, &s->probs);
        s->k = status == DP_OK ? s->probs.columns : 1;
    }
    if (status == DP_OK &&
        (s->k < 1 || s->places.rows % s->k || (s->probs.slot >= 0 && s->probs.rows * s->k != s->places.rows)))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but %s are for %lld", places->name,
                         (long long)s->places.rows, probs->name, (long long)(s->probs.rows * s->k));
    if (status == DP_OK)
        s->count = s->places.rows / s->k;
    return status;
}

static dp_status unpermute(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    state s = {.k = 1};
    dp_status status = take_probs(call, &in[2], &in[1], &s);
    if (status == DP_OK)
        status = take(&in[0], call->op->elements, 2, &s.rows);
    if (status == DP_OK)
        status = take(out, DP_EL_BIT(s.rows.element), 2, &s.tokens);
    if (status == DP_OK)
        status = expect_rows(out, s.count, s.rows.columns, "a row for each token");
    return status == DP_OK ? finish(call, &s, &in[3], run_join, out_plan) : status;
}

static dp_status unpermute_gradient(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *joined = &in[0], *out = &call->out[0], *dprobs = &call->out[1];
    state s = {.k = 1};
    dp_status status = take_probs(call, &in[3], &in[2], &s);
    bool wants_probs = dprobs->kind == DP_ARG_TENSOR && s.probs.slot >= 0;
    if (status == DP_OK)
        status = take(&in[1], call->op->elements, 2, &s.tokens);
    if (status == DP_OK)
        status = take(out, DP_EL_BIT(s.tokens.element), 2, &s.rows);
    if (status == DP_OK)
        status = expect_rows(&in[1], s.count, s.rows.columns, "a row for each token");
    if (status == DP_OK && wants_probs && joined->kind != DP_ARG_TENSOR)
        status = dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s needs it", joined->name, dprobs->name);
    if (status == DP_OK && wants_probs)
        status = take(joined, call->op->elements, 2, &s.joined);
    if (status == DP_OK && wants_probs)
        status = expect_rows(joined, s.rows.rows, s.rows.columns, "that of their gradient");
    if (status == DP_OK && wants_probs)
        status = take(dprobs, call->op->elements, 2, &s.dprobs);
    if (status == DP_OK && wants_probs)
        status = expect_rows(dprobs, s.count, s.k, "that of the probabilities");
    return status == DP_OK ? finish(call, &s, &in[4], run_unpermute_gradient, out_plan) : status;
}

#define EXPORT(function, optional_in, optional_out)                                                                    \
    extern const dp_function dp_moe_##function;                                                                        \
    const dp_function dp_moe_##function = {#function, function, NULL, optional_in, optional_out};
EXPORT(permute, 0, 0)
EXPORT(permute_gradient, 0, 0)
EXPORT(unpermute, 4 | 16, 0)
EXPORT(unpermute_gradient, 1 | 8 | 32, 2)
