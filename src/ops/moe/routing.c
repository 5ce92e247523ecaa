/*
 * routing.c - tokens to experts and back. R rows (tokens) of H, each for K experts; entry e = i * K + j is token i's
 * j-th. init(x, row numbers, experts, active) -> expanded x, expanded row, sorted experts entries sorted by expert,
 * stable; the m-th of them with row number r: expanded row[r] = m, expanded x[m] = x[r mod R] init_v2(x, experts,
 * active, capacity, number of experts, drop, count kind, before wanted) -> expanded x, expanded row, counts, counts
 * before the capacity the same with row number e, so expanded row[e] = m and expanded x[m] = x[e / K]. With drop, each
 * expert has `capacity` rows in expanded x [experts, capacity, H]: what does not fit has expanded row -1, what is not
 * filled is 0. counts: kind 1 running sums, 2 numbers of entries per expert finalize(rows, expanded row, skip1, skip2,
 * bias, scales, experts, mode) -> out out[i] = skip1[i] + skip2[i] + sum over j of scales[i][j] * (rows[p] +
 * bias[expert[i][j]]), p = expanded row[j * R + i] in modes 0 and 1, [i * K + j] in 2 and 3; entries with p -1 (modes 1
 * and 3) add nothing. Sums in float. tokens(sorted experts, number) -> out        out[e] = how many are at most e
 * Numbers are int32 in device memory; those outside their range fail the stream.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/moe/sort.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN_BYTES = 1 << 15 };

/* A tensor as rows of columns; slot -1: absent. */
typedef struct grid {
    int slot, element;
    int64_t rows, columns, row, column;
} grid;

typedef struct state {
    grid x, numbers, experts, expanded, rows, sorted, counts, before, skip1, skip2, bias, scales, out;
    int64_t tokens, k, capacity, n_experts; /* capacity 0: no dropping */
    bool by_number;                         /* init: rows have numbers, and experts any */
    int count_kind, mode;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    const int32_t *source; /* token of every row of expanded x, -1: zeros */
    _Atomic int64_t bad_entry;
    _Atomic bool no_memory;
} job;

static char *grid_row(dp_plan *plan, const grid *g, int64_t row) {
    return (char *)dp_plan_data(plan, g->slot) + row * g->row * (int64_t)dp_element_bytes(g->element);
}

static int32_t number_at(dp_plan *plan, const grid *g, int64_t row, int64_t column) {
    int32_t value;
    memcpy(&value, grid_row(plan, g, row) + column * g->column * (int64_t)sizeof value, sizeof value);
    return value;
}

static void put_number(dp_plan *plan, const grid *g, int64_t row, int64_t value) {
    int32_t narrow = (int32_t)value;
    if (g->slot >= 0)
        memcpy(grid_row(plan, g, row), &narrow, sizeof narrow);
}

static void copy_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const grid *to = &j->s->expanded, *from = &j->s->x;
    const size_t width = dp_element_bytes(to->element);
    for (int64_t m = (int64_t)begin; m < (int64_t)end; m++) {
        char *row = grid_row(j->plan, to, m);
        const int64_t token = j->source[m];
        const char *source = token < 0 ? NULL : grid_row(j->plan, from, token);
        if (to->column == 1 && !source)
            memset(row, 0, (size_t)to->columns * width);
        else if (to->column == 1 && from->column == 1)
            memcpy(row, source, (size_t)to->columns * width);
        else
            for (int64_t c = 0; c < to->columns; c++) {
                char *cell = row + c * to->column * (int64_t)width;
                if (source)
                    memcpy(cell, source + c * from->column * (int64_t)width, width);
                else
                    memset(cell, 0, width);
            }
    }
}

static dp_status no_memory(const dp_plan *plan) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s: no host memory to sort its entries: free some", plan->op->name);
}

/* Entries and their experts, sorted; experts are checked when their number is known. */
static dp_status sort_entries(dp_plan *plan, const state *s, int32_t *experts, int32_t *entries, int32_t *room) {
    const int64_t count = s->tokens * s->k;
    for (int64_t e = 0; e < count; e++) {
        experts[e] = number_at(plan, &s->experts, e / s->k, e % s->k);
        if (!s->by_number && (experts[e] < 0 || experts[e] >= s->n_experts))
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %d, but must be 0 to %lld",
                           plan->tensors[s->experts.slot].name, (long long)e, experts[e], (long long)s->n_experts - 1);
        entries[e] = s->by_number ? number_at(plan, &s->numbers, e / s->k, e % s->k) : (int32_t)e;
        if (entries[e] < 0 || entries[e] >= count)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %d, but must be 0 to %lld",
                           plan->tensors[s->numbers.slot].name, (long long)e, entries[e], (long long)count - 1);
    }
    dp_moe_sort(experts, entries, count, room);
    return DP_OK;
}

static void write_counts(dp_plan *plan, const state *s, const int32_t *experts) {
    const int64_t count = s->tokens * s->k;
    for (int64_t expert = 0, at = 0, first = 0; expert < s->n_experts; expert++, first = at) {
        while (at < count && experts[at] == expert)
            at++;
        put_number(plan, &s->counts, expert, s->count_kind == 1 ? at : at - first);
        put_number(plan, &s->before, expert, at - first);
    }
}

/* Where sorted entry m goes, and what every row of expanded x is made of. */
static void place_entries(dp_plan *plan, const state *s, const int32_t *experts, const int32_t *entries,
                          int32_t *source) {
    const int64_t count = s->tokens * s->k;
    for (int64_t m = 0; m < s->expanded.rows; m++)
        source[m] = -1;
    for (int64_t m = 0, first = 0; m < count; m++) {
        if (m && experts[m] != experts[m - 1])
            first = m;
        int64_t place = m;
        if (s->capacity)
            place = m - first < s->capacity ? experts[m] * s->capacity + (m - first) : -1;
        put_number(plan, &s->rows, entries[m], place);
        if (s->sorted.slot >= 0)
            put_number(plan, &s->sorted, m, experts[m]);
        if (place >= 0 && place < s->expanded.rows)
            source[place] = (int32_t)(s->by_number ? entries[m] % s->tokens : entries[m] / s->k);
    }
}

static dp_status run_init(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const size_t count = (size_t)(s->tokens * s->k);
    int32_t *experts = dp_alloc(DP_MEM_RUNTIME, (4 * count + (size_t)s->expanded.rows + 1) * sizeof *experts);
    if (!experts)
        return no_memory(plan);
    int32_t *entries = experts + count, *room = entries + count, *source = room + 2 * count;
    dp_status status = sort_entries(plan, s, experts, entries, room);
    if (status == DP_OK) {
        job j = {.plan = plan, .s = s, .source = source};
        const int64_t bytes = s->expanded.columns * (int64_t)dp_element_bytes(s->expanded.element);
        place_entries(plan, s, experts, entries, source);
        write_counts(plan, s, experts);
        if (s->expanded.rows && bytes)
            dp_pool_for((size_t)s->expanded.rows, (size_t)(bytes < GRAIN_BYTES ? GRAIN_BYTES / bytes : 1), copy_range,
                        &j);
    }
    dp_free(experts);
    return status;
}

/* ---- back ---- */

static void load_row(dp_plan *plan, const grid *g, int64_t row, float *to) {
    dp_convert_fn load = dp_elementwise_current()->load[g->element][DP_COMPUTE_F32];
    const char *from = grid_row(plan, g, row);
    if (g->column == 1)
        load(to, from, (size_t)g->columns);
    else
        for (int64_t c = 0; c < g->columns; c++)
            load(to + c, from + c * g->column * (int64_t)dp_element_bytes(g->element), 1);
}

static float number_of(dp_plan *plan, const grid *g, int64_t row, int64_t column) {
    float value;
    dp_elementwise_current()->load[g->element][DP_COMPUTE_F32](
        &value, grid_row(plan, g, row) + column * g->column * (int64_t)dp_element_bytes(g->element), 1);
    return value;
}

/* sum += scale * (row p + the expert's bias); false when a number is outside its range. */
static bool add_entry(job *j, int64_t i, int64_t k, float *sum, float *row, float *bias) {
    const state *s = j->s;
    const int64_t n = s->out.columns, e = s->mode < 2 ? k * s->tokens + i : i * s->k + k;
    const int32_t p = number_at(j->plan, &s->rows, e, 0);
    if (p == -1 && s->mode % 2)
        return true;
    if (p < 0 || p >= s->expanded.rows) {
        atomic_store(&j->bad_entry, e);
        return false;
    }
    load_row(j->plan, &s->expanded, p, row);
    if (s->bias.slot >= 0) {
        const int32_t expert = number_at(j->plan, &s->experts, i, k);
        if (expert < 0 || expert >= s->bias.rows) {
            atomic_store(&j->bad_entry, e);
            return false;
        }
        load_row(j->plan, &s->bias, expert, bias);
        for (int64_t c = 0; c < n; c++)
            row[c] += bias[c];
    }
    const float scale = s->scales.slot >= 0 ? number_of(j->plan, &s->scales, i, k) : 1;
    for (int64_t c = 0; c < n; c++)
        sum[c] += scale * row[c];
    return true;
}

static void finalize_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    const int64_t n = s->out.columns;
    dp_convert_fn store = dp_elementwise_current()->store[s->out.element][DP_COMPUTE_F32];
    float *sum = dp_alloc(DP_MEM_RUNTIME, (size_t)(3 * n + 1) * sizeof *sum);
    if (!sum) {
        atomic_store(&j->no_memory, true);
        return;
    }
    float *row = sum + n, *bias = row + n;
    for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
        const grid *skips[] = {&s->skip1, &s->skip2};
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int k = 0; k < 2; k++) {
            if (skips[k]->slot < 0)
                continue;
            load_row(j->plan, skips[k], i, row);
            for (int64_t c = 0; c < n; c++)
                sum[c] += row[c];
        }
        bool ok = true;
        for (int64_t k = 0; k < s->k && ok; k++)
            ok = add_entry(j, i, k, sum, row, bias);
        if (!ok)
            break;
        char *to = grid_row(j->plan, &s->out, i);
        if (s->out.column == 1)
            store(to, sum, (size_t)n);
        else
            for (int64_t c = 0; c < n; c++)
                store(to + c * s->out.column * (int64_t)dp_element_bytes(s->out.element), sum + c, 1);
    }
    dp_free(sum);
}

static dp_status run_finalize(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .bad_entry = -1};
    const state *s = j.s;
    const int64_t work = (s->k + 1) * s->out.columns * 4;
    if (!s->tokens || !s->out.columns)
        return DP_OK;
    dp_pool_for((size_t)s->tokens, (size_t)(work < GRAIN_BYTES ? GRAIN_BYTES / work : 1), finalize_range, &j);
    if (atomic_load(&j.no_memory))
        return no_memory(plan);
    const int64_t e = atomic_load(&j.bad_entry);
    if (e < 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %d, but must be %s0 to %lld%s",
                   plan->tensors[s->rows.slot].name, (long long)e, number_at(plan, &s->rows, e, 0),
                   s->mode % 2 ? "-1, or " : "", (long long)s->expanded.rows - 1,
                   s->bias.slot >= 0 ? ", with an expert that has a bias" : "");
}

static dp_status run_tokens(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    int64_t at = 0;
    for (int64_t e = 0; e < s->out.rows; e++) {
        while (at < s->experts.rows && number_at(plan, &s->experts, at, 0) <= e)
            at++;
        put_number(plan, &s->out, e, at);
    }
    return DP_OK;
}

/* ---- arguments ---- */

/* A tensor of `rank` 1 or 2 as a grid, rank 3 (contiguous in its first two dims) with those as rows. -1: any size. */
static dp_status take(const dp_arg *arg, uint32_t elements, int rank, int64_t rows, int64_t columns, grid *out) {
    *out = (grid){.slot = -1};
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    if (status != DP_OK)
        return status;
    const bool two = rank == 2;
    bool fits = t->rank == rank && (rows < 0 || t->dims[0] == rows) && (!two || columns < 0 || t->dims[1] == columns);
    if (!fits) {
        char found[160], wanted[2][24];
        for (int i = 0; i < 2; i++)
            snprintf(wanted[i], sizeof wanted[i], (i ? columns : rows) < 0 ? "any" : "%lld",
                     (long long)(i ? columns : rows));
        return dp_fail(DP_ERR_ARGUMENT, "%s has the shape %s, but must have %s rows%s%s%s", arg->name,
                       dp_dims_describe(t->dims, t->rank, found, sizeof found), wanted[0], two ? " and " : "",
                       two ? wanted[1] : "", two ? " columns" : " in one dimension");
    }
    *out = (grid){arg->slot, t->element, t->dims[0], two ? t->dims[1] : 1, t->strides[0], two ? t->strides[1] : 1};
    return DP_OK;
}

/* [experts, capacity, H] as experts * capacity rows. */
static dp_status take_capacity(const dp_arg *arg, uint32_t elements, int64_t experts, int64_t capacity, int64_t columns,
                               grid *out) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    if (status != DP_OK)
        return status;
    const bool fits = t->rank == 3 && (experts < 0 || t->dims[0] == experts) &&
                      (capacity < 0 || t->dims[1] == capacity) && (columns < 0 || t->dims[2] == columns);
    if (!fits || (t->dims[0] > 1 && t->strides[0] != t->dims[1] * t->strides[1])) {
        char found[160];
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has the shape %s, but must be [experts, capacity, columns] with experts one after the other",
                       arg->name, dp_dims_describe(t->dims, t->rank, found, sizeof found));
    }
    *out = (grid){arg->slot, t->element, t->dims[0] * t->dims[1], t->dims[2], t->strides[1], t->strides[2]};
    return DP_OK;
}

static dp_status finish(const dp_operator_call *call, const state *s, dp_status (*run)(dp_plan *), dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = "rows";
    *out_plan = plan;
    return DP_OK;
}

/* x and experts, the same for both forms. */
static dp_status take_tokens(const dp_operator_call *call, const dp_arg *x, const dp_arg *experts, state *s) {
    dp_status status = take(x, call->op->elements | DP_EL_BIT(DP_I8), 2, -1, -1, &s->x);
    if (status == DP_OK)
        status = take(experts, DP_EL_BIT(DP_I32), 2, s->x.rows, -1, &s->experts);
    s->tokens = s->x.rows;
    s->k = s->experts.columns;
    if (status == DP_OK && s->k && s->tokens > INT32_MAX / s->k)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but int32 numbers them: at most %d", experts->name,
                         (long long)s->tokens * s->k, INT32_MAX);
    s->numbers.slot = s->sorted.slot = s->counts.slot = s->before.slot = -1;
    return status;
}

static dp_status check_rows_out(const dp_arg *x, const dp_arg *out, const state *s) {
    if (s->expanded.element != s->x.element)
        return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have %s, as %s has", out->name,
                       dp_element_name(s->expanded.element), dp_element_name(s->x.element), x->name);
    if (!s->capacity && s->expanded.rows > s->tokens * s->k)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld rows, but must have at most %lld, one per entry", out->name,
                       (long long)s->expanded.rows, (long long)(s->tokens * s->k));
    return DP_OK;
}

static dp_status prepare_init(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in, *o = call->out;
    const uint32_t whole = DP_EL_BIT(DP_I32);
    state s = {.by_number = true};
    dp_status status = take_tokens(call, &a[0], &a[2], &s);
    const int64_t count = s.tokens * s.k;
    if (status == DP_OK)
        status = take(&a[1], whole, 2, s.tokens, s.k, &s.numbers);
    if (status == DP_OK && dp_arg_integer(&a[3], 0) < 0)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 0", a[3].name,
                         (long long)dp_arg_integer(&a[3], 0));
    if (status == DP_OK)
        status = take(&o[0], call->op->elements | DP_EL_BIT(DP_I8), 2, -1, s.x.columns, &s.expanded);
    if (status == DP_OK)
        status = take(&o[1], whole, 1, count, 1, &s.rows);
    if (status == DP_OK)
        status = take(&o[2], whole, 1, count, 1, &s.sorted);
    if (status == DP_OK)
        status = check_rows_out(&a[0], &o[0], &s);
    return status == DP_OK ? finish(call, &s, run_init, out_plan) : status;
}

static dp_status prepare_init_v2(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in, *o = call->out;
    const uint32_t whole = DP_EL_BIT(DP_I32), rows = call->op->elements | DP_EL_BIT(DP_I8);
    state s = {.n_experts = dp_arg_integer(&a[4], 0), .count_kind = (int)dp_arg_integer(&a[6], 0)};
    const int64_t drop = dp_arg_integer(&a[5], 0);
    const bool before = dp_arg_integer(&a[7], 0) != 0;
    dp_status status = take_tokens(call, &a[0], &a[1], &s);
    if (status == DP_OK && drop != 0 && drop != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 or 1", a[5].name, (long long)drop);
    if (status == DP_OK && (s.n_experts < 1 || s.n_experts > INT32_MAX))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the number of experts, at least 1", a[4].name,
                         (long long)s.n_experts);
    s.capacity = drop ? dp_arg_integer(&a[3], 0) : 0;
    if (status == DP_OK && drop && (s.capacity < 1 || s.capacity > INT32_MAX / s.n_experts))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 1, and with %s at most %d rows", a[3].name,
                         (long long)s.capacity, a[4].name, INT32_MAX);
    if (status == DP_OK && (s.count_kind < 0 || s.count_kind > 2))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %d, but must be 0 (none), 1 (running sums) or 2 (numbers)", a[6].name,
                         s.count_kind);
    if (status == DP_OK)
        status = drop ? take_capacity(&o[0], rows, s.n_experts, s.capacity, s.x.columns, &s.expanded)
                      : take(&o[0], rows, 2, -1, s.x.columns, &s.expanded);
    if (status == DP_OK)
        status = take(&o[1], whole, 1, s.tokens * s.k, 1, &s.rows);
    if (status == DP_OK && s.count_kind && !drop && o[2].kind != DP_ARG_TENSOR)
        status = dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s asks for it", o[2].name, a[6].name);
    if (status == DP_OK && s.count_kind && !drop)
        status = take(&o[2], whole, 1, s.n_experts, 1, &s.counts);
    if (status == DP_OK && before && drop && o[3].kind != DP_ARG_TENSOR)
        status = dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s asks for it", o[3].name, a[7].name);
    if (status == DP_OK && before && drop)
        status = take(&o[3], whole, 1, s.n_experts, 1, &s.before);
    if (status == DP_OK)
        status = check_rows_out(&a[0], &o[0], &s);
    return status == DP_OK ? finish(call, &s, run_init, out_plan) : status;
}

static dp_status prepare_finalize(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in, *o = call->out;
    const uint32_t floats = call->op->elements, whole = DP_EL_BIT(DP_I32);
    const int64_t mode = dp_arg_integer(&a[7], 0);
    state s = {.mode = (int)mode};
    if (mode < 0 || mode > 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to 3", a[7].name, (long long)mode);
    dp_status status = take(&o[0], floats, 2, -1, -1, &s.out);
    s.tokens = s.out.rows;
    if (status == DP_OK)
        status = take(&a[1], whole, 1, -1, 1, &s.rows);
    if (status == DP_OK && (s.tokens ? s.rows.rows % s.tokens : s.rows.rows))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have a multiple of the rows of %s, %lld",
                         a[1].name, (long long)s.rows.rows, o[0].name, (long long)s.tokens);
    s.k = s.tokens ? s.rows.rows / s.tokens : 0;
    if (status == DP_OK)
        status = mode % 2 ? take_capacity(&a[0], floats, -1, -1, s.out.columns, &s.expanded)
                          : take(&a[0], floats, 2, -1, s.out.columns, &s.expanded);
    if (status == DP_OK)
        status = take(&a[2], floats, 2, s.tokens, s.out.columns, &s.skip1);
    if (status == DP_OK)
        status = take(&a[3], floats, 2, s.tokens, s.out.columns, &s.skip2);
    if (status == DP_OK)
        status = take(&a[4], floats, 2, -1, s.out.columns, &s.bias);
    if (status == DP_OK)
        status = take(&a[5], floats, 2, s.tokens, s.k, &s.scales);
    if (status == DP_OK)
        status = take(&a[6], whole, 2, s.tokens, s.k, &s.experts);
    if (status == DP_OK && s.bias.slot >= 0 && s.experts.slot < 0)
        status = dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s needs it", a[6].name, a[4].name);
    return status == DP_OK ? finish(call, &s, run_finalize, out_plan) : status;
}

static dp_status prepare_tokens(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in, *o = call->out;
    const uint32_t whole = DP_EL_BIT(DP_I32);
    state s = {.n_experts = dp_arg_integer(&a[1], 0)};
    if (s.n_experts < 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be at least 0", a[1].name, (long long)s.n_experts);
    dp_status status = take(&a[0], whole, 1, -1, 1, &s.experts);
    if (status == DP_OK)
        status = take(&o[0], whole, 1, s.n_experts, 1, &s.out);
    return status == DP_OK ? finish(call, &s, run_tokens, out_plan) : status;
}

extern const dp_function dp_moe_init, dp_moe_init_v2, dp_moe_finalize, dp_moe_tokens;
const dp_function dp_moe_init = {"init", prepare_init, NULL, 0, 0};
const dp_function dp_moe_init_v2 = {"init_v2", prepare_init_v2, NULL, 0, 12};
const dp_function dp_moe_finalize = {"finalize", prepare_finalize, NULL, 0x7c, 0};
const dp_function dp_moe_tokens = {"tokens", prepare_tokens, NULL, 0, 0};
