/*
 * bag.c - rows of an embedding, reduced or scaled. Mappings:
 *   bag(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
 *       -> out, offset2bag, bag_size, max_indices
 *     bag b has the indices from offsets[b] to offsets[b + 1] (the last one: to the end, unless include_last_offset);
 *     mode 0 sum, 1 mean, 2 maximum. padding_idx (-1: none) is left out. offset2bag and max_indices may have no
 * elements; max_indices is 0 but for mode 2. renorm(self, indices, max_norm, norm_type) -> self rows that occur in
 * indices and whose norm is above max_norm are scaled to it Computed in double, in the order of the indices, rounded
 * once.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/scatter/scatter.h"
#include "runtime/pool.h"

enum { SUM, MEAN, MAXIMUM, GRAIN = 16384 };

typedef struct state {
    int weight, offsets_slot, samples, out, bag_of, size_of, largest; /* slots; -1: not wanted */
    dp_indices indices;
    int64_t bags, count, length, rows; /* bags, indices, elements of a row, rows */
    int mode;
    bool has_last;
    int64_t padding;
    double max_norm, norm_type;
    dp_convert_fn load, store, load_offset, load_sample, store_bag, store_size, store_largest;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    int64_t *begins; /* of bags, and the end */
    int64_t *rows;   /* of the indices */
    uint8_t *marked; /* renorm: rows that occur */
} job;

static char *element_at(const dp_plan *plan, int slot, int64_t i, int64_t k) {
    const dp_tensor *t = &plan->tensors[slot].view;
    int64_t offset = i * t->strides[0] + (t->rank > 1 ? k * t->strides[1] : 0);
    return (char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element);
}

/* Elements [begin, begin + n) of row `row` as doubles. */
static void read_row(const job *j, int64_t row, int64_t begin, size_t n, double *x) {
    const dp_tensor *t = &j->plan->tensors[j->s->weight].view;
    size_t width = dp_element_bytes(t->element);
    const char *from = element_at(j->plan, j->s->weight, row, begin);
    if (t->strides[1] == 1) {
        j->s->load(x, from, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        j->s->load(x + i, from + (int64_t)i * t->strides[1] * (int64_t)width, 1);
}

static void write_row(const job *j, int slot, dp_convert_fn store, int64_t row, int64_t begin, size_t n,
                      const void *x) {
    for (size_t i = 0; i < n; i++)
        store(element_at(j->plan, slot, row, begin + (int64_t)i), (const char *)x + i * 8, 1);
}

static double sample_of(const job *j, int64_t i) {
    double factor = 1;
    if (j->s->samples >= 0)
        j->s->load_sample(&factor, element_at(j->plan, j->s->samples, i, 0), 1);
    return factor;
}

/* One bag, elements [begin, begin + n) of the row. */
static void reduce_bag(const job *j, int64_t bag, int64_t begin, size_t n) {
    const state *s = j->s;
    double sum[DP_TILE] = {0}, x[DP_TILE];
    int64_t best[DP_TILE] = {0}, used = 0;
    for (int64_t i = j->begins[bag]; i < j->begins[bag + 1]; i++) {
        if (j->rows[i] == s->padding)
            continue;
        double factor = sample_of(j, i);
        read_row(j, j->rows[i], begin, n, x);
        for (size_t k = 0; k < n && s->mode != MAXIMUM; k++)
            sum[k] += factor * x[k];
        for (size_t k = 0; k < n && s->mode == MAXIMUM; k++) {
            bool better = !used || x[k] > sum[k] || (x[k] != x[k] && sum[k] == sum[k]);
            sum[k] = better ? x[k] : sum[k];
            best[k] = better ? j->rows[i] : best[k];
        }
        used++;
    }
    for (size_t k = 0; k < n && s->mode == MEAN && used; k++)
        sum[k] /= (double)used;
    write_row(j, s->out, s->store, bag, begin, n, sum);
    if (s->largest >= 0 && s->mode == MAXIMUM)
        write_row(j, s->largest, s->store_largest, bag, begin, n, best);
}

static void bag_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    static const int64_t zero;
    for (int64_t bag = (int64_t)begin; bag < (int64_t)end; bag++) {
        int64_t used = 0;
        for (int64_t i = j->begins[bag]; i < j->begins[bag + 1]; i++) {
            int64_t of = j->rows[i] == s->padding ? -1 : bag;
            used += of >= 0;
            if (s->bag_of >= 0)
                s->store_bag(element_at(j->plan, s->bag_of, i, 0), &of, 1);
        }
        for (int64_t at = 0, n; at < s->length; at += n) {
            n = s->length - at < DP_TILE ? s->length - at : DP_TILE;
            reduce_bag(j, bag, at, (size_t)n);
        }
        if (s->size_of >= 0)
            s->store_size(element_at(j->plan, s->size_of, bag, 0), &used, 1);
        if (s->largest >= 0 && s->mode != MAXIMUM)
            s->store_largest(element_at(j->plan, s->largest, bag, 0), &zero, 1);
    }
}

static void read_indices(const job *j) {
    for (int64_t at = 0, n; at < j->s->indices.loop.count; at += n) {
        n = j->s->indices.loop.count - at < DP_TILE ? j->s->indices.loop.count - at : DP_TILE;
        dp_indices_read(j->plan, &j->s->indices, at, (size_t)n, j->rows + at);
    }
}

/* Where bags begin: rising, within the indices. */
static dp_status read_offsets(const job *j) {
    const state *s = j->s;
    for (int64_t b = 0; b < s->bags + s->has_last; b++) {
        s->load_offset(&j->begins[b], element_at(j->plan, s->offsets_slot, b, 0), 1);
        int64_t least = b ? j->begins[b - 1] : 0;
        if (j->begins[b] < least || j->begins[b] > s->count || (b == 0 && j->begins[0] != 0))
            return dp_fail(
                DP_ERR_ARGUMENT, "%s: element %lld is %lld, but offsets begin with 0 and rise to at most %lld",
                j->plan->tensors[s->offsets_slot].name, (long long)b, (long long)j->begins[b], (long long)s->count);
    }
    if (!s->has_last)
        j->begins[s->bags] = s->count;
    return DP_OK;
}

static dp_status run_bag(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    dp_status status = dp_indices_check(plan, &s->indices, 0);
    if (status != DP_OK)
        return status;
    j.begins = dp_alloc(DP_MEM_RUNTIME, (size_t)(s->bags + 1 + s->count) * sizeof(int64_t));
    if (!j.begins)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld indices: free some", (long long)s->count);
    j.rows = j.begins + s->bags + 1;
    status = read_offsets(&j);
    if (status == DP_OK && s->bags) {
        read_indices(&j);
        int64_t work = s->length * (s->count / s->bags + 1) + 1; /* rows may be empty */
        dp_pool_for((size_t)s->bags, (size_t)(work < GRAIN ? GRAIN / work : 1), bag_range, &j);
    }
    dp_free(j.begins);
    return status;
}

static void renorm_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    double x[DP_TILE], p = s->norm_type;
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
        double norm = 0;
        if (!j->marked[row])
            continue;
        for (int64_t at = 0, n; at < s->length; at += n) {
            n = s->length - at < DP_TILE ? s->length - at : DP_TILE;
            read_row(j, row, at, (size_t)n, x);
            for (int64_t i = 0; i < n; i++)
                norm = isinf(p) ? fmax(norm, fabs(x[i])) : norm + (p == 2 ? x[i] * x[i] : pow(fabs(x[i]), p));
        }
        if (!isinf(p))
            norm = p == 2 ? sqrt(norm) : pow(norm, 1 / p);
        if (!(norm > s->max_norm))
            continue;
        double factor = s->max_norm / (norm + 1e-7);
        for (int64_t at = 0, n; at < s->length; at += n) {
            n = s->length - at < DP_TILE ? s->length - at : DP_TILE;
            read_row(j, row, at, (size_t)n, x);
            for (int64_t i = 0; i < n; i++)
                x[i] *= factor;
            write_row(j, s->weight, s->store, row, at, (size_t)n, x);
        }
    }
}

static dp_status run_renorm(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    dp_status status = dp_indices_check(plan, &s->indices, 0);
    if (status != DP_OK)
        return status;
    size_t count = (size_t)s->indices.loop.count;
    j.rows = dp_alloc(DP_MEM_RUNTIME, count * sizeof(int64_t) + (size_t)s->rows + 1);
    if (!j.rows)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %zu indices: free some", count);
    j.marked = (uint8_t *)(j.rows + count);
    read_indices(&j);
    for (size_t i = 0; i < count; i++)
        j.marked[j.rows[i]] = 1;
    if (count)
        dp_pool_for((size_t)s->rows, (size_t)(GRAIN / (s->length + 1) + 1), renorm_range, &j);
    dp_free(j.rows);
    return DP_OK;
}

/* Phase one. */

static dp_status expect_rank(const dp_arg *arg, int rank) {
    if (arg->as.tensor->rank == rank)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have %d", arg->name, arg->as.tensor->rank, rank);
}

static dp_status new_plan(const dp_operator_call *call, dp_status (*run)(dp_plan *), const dp_arg *indices,
                          dp_plan **out_plan, state **out_state) {
    const dp_arg *weight = &call->in[0];
    dp_status status = dp_element_expect(weight, call->op->elements);
    if (status == DP_OK)
        status = expect_rank(weight, 2);
    if (status == DP_OK)
        status = dp_element_expect(indices, DP_INDEX_TYPES);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    const dp_tensor *t = weight->as.tensor;
    s->weight = weight->slot;
    s->rows = t->dims[0];
    s->length = t->dims[1];
    s->indices = dp_indices_of(indices, s->rows);
    s->load = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
    s->store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F64];
    plan->path = "rows";
    *out_plan = plan;
    *out_state = s;
    return DP_OK;
}

/* A list of indices as an output: `count` elements, or one more, or (where it may be absent) none. */
static dp_status expect_list(const dp_arg *out, int64_t count, bool may_be_empty, bool may_be_longer) {
    dp_status status = dp_element_expect(out, DP_INDEX_TYPES);
    if (status == DP_OK)
        status = expect_rank(out, 1);
    if (status != DP_OK)
        return status;
    int64_t n = out->as.tensor->dims[0];
    if (n != count && !(may_be_empty && n == 0) && !(may_be_longer && n == count + 1))
        return dp_fail(DP_ERR_ARGUMENT, "%s: dimension 0 is %lld, but must be %lld%s", out->name, (long long)n,
                       (long long)count, may_be_empty ? " or 0" : "");
    return dp_places_expect(out);
}

static dp_status check_bag(const dp_operator_call *call, int64_t mode, int64_t bags) {
    const dp_tensor *weight = call->in[0].as.tensor, *indices = call->in[1].as.tensor;
    int64_t table[] = {bags, weight->dims[1]};
    dp_status status = dp_element_expect(&call->out[0], DP_EL_BIT(weight->element));
    if (status == DP_OK)
        status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, table, 2, "a row for each bag");
    if (status == DP_OK)
        status = dp_places_expect(&call->out[0]);
    if (status == DP_OK)
        status = expect_list(&call->out[1], indices->dims[0], true, false);
    if (status == DP_OK)
        status = expect_list(&call->out[2], bags, true, true);
    if (status == DP_OK && mode != MAXIMUM)
        return expect_list(&call->out[3], bags, true, true);
    if (status == DP_OK)
        status = dp_element_expect(&call->out[3], DP_INDEX_TYPES);
    if (status == DP_OK)
        status = dp_shape_expect(call->out[3].as.tensor, call->out[3].name, table, 2, "a row for each bag");
    return status == DP_OK ? dp_places_expect(&call->out[3]) : status;
}

static int wanted(const dp_arg *out) {
    return dp_tensor_count(out->as.tensor) ? out->slot : -1;
}

static dp_convert_fn store_of(const dp_arg *out) {
    return dp_elementwise_current()->store[out->as.tensor->element][DP_COMPUTE_I64];
}

static dp_status bag(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *indices = &call->in[1], *offsets = &call->in[2], *mode_arg = &call->in[3], *samples = &call->in[4];
    int64_t mode = dp_arg_integer(mode_arg, 0);
    bool has_last = dp_arg_integer(&call->in[5], 0) != 0;
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK)
        status = expect_rank(indices, 1);
    if (status == DP_OK)
        status = expect_rank(offsets, 1);
    if (status == DP_OK)
        status = dp_element_expect(offsets, DP_INDEX_TYPES);
    if (status == DP_OK && (mode < SUM || mode > MAXIMUM))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (sum), 1 (mean) or 2 (maximum)", mode_arg->name,
                         (long long)mode);
    if (status == DP_OK && has_last && offsets->as.tensor->dims[0] < 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has no elements, but must have the last offset", offsets->name);
    if (status == DP_OK && samples->kind == DP_ARG_TENSOR && mode != SUM)
        status = dp_fail(DP_ERR_ARGUMENT, "%s is given, but only sums (mode 0) can be weighted", samples->name);
    if (status == DP_OK && samples->kind == DP_ARG_TENSOR)
        status = dp_element_expect(samples, DP_EL_FLOATS);
    if (status == DP_OK && samples->kind == DP_ARG_TENSOR)
        status = dp_shape_expect(samples->as.tensor, samples->name, indices->as.tensor->dims, 1, "the indices'");
    if (status == DP_OK)
        status = expect_rank(&call->in[0], 2);
    int64_t bags = offsets->as.tensor->dims[0] - has_last;
    if (status == DP_OK)
        status = check_bag(call, mode, bags);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, run_bag, indices, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->mode = (int)mode;
    s->has_last = has_last;
    s->bags = bags;
    s->count = indices->as.tensor->dims[0];
    s->padding = dp_arg_integer(&call->in[6], -1);
    s->offsets_slot = offsets->slot;
    s->load_offset = dp_elementwise_current()->load[offsets->as.tensor->element][DP_COMPUTE_I64];
    s->samples = samples->kind == DP_ARG_TENSOR ? samples->slot : -1;
    if (s->samples >= 0)
        s->load_sample = dp_elementwise_current()->load[samples->as.tensor->element][DP_COMPUTE_F64];
    s->out = call->out[0].slot;
    s->bag_of = wanted(&call->out[1]);
    s->size_of = wanted(&call->out[2]);
    s->largest = wanted(&call->out[3]);
    s->store_bag = store_of(&call->out[1]);
    s->store_size = store_of(&call->out[2]);
    s->store_largest = store_of(&call->out[3]);
    return DP_OK;
}

static dp_status renorm(const dp_operator_call *call, dp_plan **out_plan) {
    double max_norm = dp_arg_real(&call->in[2], 0), norm_type = dp_arg_real(&call->in[3], 2);
    dp_status status = dp_places_expect(&call->in[0]);
    if (status == DP_OK && !(max_norm >= 0))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be at least 0", call->in[2].name, max_norm);
    if (status == DP_OK && !(norm_type > 0))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be above 0", call->in[3].name, norm_type);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, run_renorm, &call->in[1], out_plan, &s);
    if (status != DP_OK)
        return status;
    s->max_norm = max_norm;
    s->norm_type = norm_type;
    return DP_OK;
}

extern const dp_function dp_scatter_bag, dp_scatter_renorm;
const dp_function dp_scatter_bag = {"bag", bag, NULL, 16, 0};
const dp_function dp_scatter_renorm = {"renorm", renorm, NULL, 0, 0};
