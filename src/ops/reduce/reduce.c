/*
 * reduce.c - reductions over any dims. Mappings:
 *   sum(self, dims, keepdim, dtype) and alike; dims absent or empty = all; dtype, when given, must be the output's type
 *   argmax(self, dim, keepdim) -> indices          max_dim(self, dim, keepdim) -> values, indices
 *   norm(self, p, dims, keepdim)  var(self, dims, correction, keepdim) -> variance [, mean]   std likewise
 * Sums of floats are accumulated in double; integers wrap in int64.
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/lines.h"
#include "ops/reduce/kernels.h"
#include "runtime/pool.h"

enum { LANES = 64, CHUNK = 1 << 16, SHORT_ROW = 32, PASSES = 2 };

typedef enum finish { AS_IS, MEAN, ROOT, POWER_ROOT, LOG_PLUS_AUX, VARIANCE, DEVIATION } finish;

typedef struct row {
    dp_reduce_id pass[PASSES];
    int passes;
    finish how;
    bool real_only; /* integers are promoted to float */
    bool truth;     /* the result is a truth value */
    bool gives_index, index_first;
    signed char dims_at, keep_at, type_at, p_at, correction_at; /* positions in the mapping, -1 none */
} row;

typedef struct state {
    const row *r;
    dp_loop kept, reduced; /* kept: view 0 self, then outputs; reduced: view 0 self */
    dp_compute compute;
    bool columns;
    int slot;
    int out_slot, out2_slot; /* -1: none */
    dp_convert_fn load, store, store2;
    dp_reduce_id pass[PASSES];
    finish how;
    double parameter, correction;
} state;

static dp_reduce_table table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_reduce_fill_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_reduce_fill_avx2(&table);
        return;
    }
#endif
    dp_reduce_fill_generic(&table);
}

/* Phase one. */

/* NULL when the mapping has no such argument. */
static const dp_arg *arg_at(const dp_operator_call *call, int position) {
    return position >= 0 && position < call->n_in ? &call->in[position] : NULL;
}

static dp_status take_dims(const dp_operator_call *call, const row *r, bool *reduced) {
    const dp_tensor *self = call->in[0].as.tensor;
    const dp_arg *dims = arg_at(call, r->dims_at);
    bool all = !dims || dims->kind == DP_ARG_ABSENT || (dims->kind == DP_ARG_INT_LIST && dims->count == 0);
    for (int d = 0; d < DP_TENSOR_DIMS; d++)
        reduced[d] = all;
    int64_t count = all ? 0 : dims->kind == DP_ARG_INT_LIST ? dims->count : 1;
    for (int64_t i = 0; i < count; i++) {
        int dim;
        dp_status status = dp_dim_check(dims->kind == DP_ARG_INT_LIST ? dims->as.integers[i] : dp_arg_integer(dims, 0),
                                        self, dims->name, &dim);
        if (status != DP_OK)
            return status;
        if (reduced[dim])
            return dp_fail(DP_ERR_ARGUMENT, "%s names dimension %d twice", dims->name, dim);
        reduced[dim] = true;
    }
    return DP_OK;
}

static int kept_dims(const dp_tensor *self, const bool *reduced, bool keep, int64_t *dims) {
    int rank = 0;
    for (int d = 0; d < self->rank; d++)
        if (!reduced[d] || keep)
            dims[rank++] = reduced[d] ? 1 : self->dims[d];
    return rank;
}

static dp_compute compute_of(const row *r, int element, int out) {
    bool integral = !dp_element_is_float(element);
    if (!integral)
        return element == DP_F64 ? DP_COMPUTE_F64 : DP_COMPUTE_F32;
    if (r->real_only || (dp_element_is_float(out) && !r->gives_index && !r->truth))
        return DP_COMPUTE_F64;
    return DP_COMPUTE_I64;
}

static dp_status check_output(const dp_operator_call *call, const row *r, int k, const int64_t *dims, int rank) {
    const dp_arg *out = &call->out[k];
    if (out->kind != DP_ARG_TENSOR)
        return DP_OK;
    dp_status status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "self without the reduced dimensions");
    bool index = r->gives_index && (k == 1 || r->index_first);
    if (status == DP_OK)
        status = dp_element_expect(out, index          ? DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32)
                                        : r->real_only ? DP_EL_FLOATS
                                        : r->truth     ? DP_EL_FLOATS | DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL)
                                        : dp_element_is_float(call->in[0].as.tensor->element)
                                            ? DP_EL_FLOATS
                                            : DP_EL_FLOATS | DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL));
    return status == DP_OK ? dp_places_expect(out) : status;
}

/* p-norms have loops of their own for the usual p. */
static void choose_norm(state *s, double p) {
    s->parameter = p;
    s->how = AS_IS;
    if (p == 2) {
        s->pass[0] = DP_REDUCE_SQUARES;
        s->how = ROOT;
    } else if (p == 1) {
        s->pass[0] = DP_REDUCE_ABS;
    } else if (p == 0) {
        s->pass[0] = DP_REDUCE_COUNT_NOT0;
    } else if (isinf(p)) {
        s->pass[0] = p > 0 ? DP_REDUCE_MAX_ABS : DP_REDUCE_MIN_ABS;
    } else {
        s->pass[0] = DP_REDUCE_POWER;
        s->how = POWER_ROOT;
    }
}

static void add_output(state *s, const dp_tensor *out, const bool *reduced, int rank, bool keep) {
    int64_t strides[DP_TENSOR_DIMS] = {0};
    int n = 0, at = 0;
    for (int d = 0; d < rank; d++) {
        if (!reduced[d])
            strides[n++] = out->strides[at];
        at += !reduced[d] || keep;
    }
    dp_loop_add_strides(&s->kept, strides);
}

static void build_loops(const dp_operator_call *call, state *s, const bool *reduced, bool keep) {
    const dp_tensor *self = call->in[0].as.tensor;
    int64_t kept[DP_TENSOR_DIMS], kept_strides[DP_TENSOR_DIMS] = {0}, gone[DP_TENSOR_DIMS],
                                  gone_strides[DP_TENSOR_DIMS] = {0};
    int n_kept = 0, n_gone = 0;
    for (int d = 0; d < self->rank; d++) {
        if (reduced[d]) {
            gone[n_gone] = self->dims[d];
            gone_strides[n_gone++] = self->strides[d];
        } else {
            kept[n_kept] = self->dims[d];
            kept_strides[n_kept++] = self->strides[d];
        }
    }
    dp_loop_begin(&s->kept, kept, n_kept);
    dp_loop_add_strides(&s->kept, kept_strides);
    for (int k = 0; k < call->n_out; k++)
        if (call->out[k].kind == DP_ARG_TENSOR)
            add_output(s, call->out[k].as.tensor, reduced, self->rank, keep);
    dp_loop_begin(&s->reduced, gone, n_gone);
    dp_loop_add_strides(&s->reduced, gone_strides);
    dp_loop_merge(&s->kept, true);
    dp_loop_merge(&s->reduced, !s->r->gives_index);
    int64_t kept_step = s->kept.strides[0][s->kept.rank - 1], gone_step = s->reduced.strides[0][s->reduced.rank - 1];
    s->columns = s->kept.count > 1 &&
                 ((kept_step && kept_step < gone_step) || (s->reduced.count < SHORT_ROW && s->kept.count >= SHORT_ROW));
}

static dp_status run(dp_plan *plan);

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const row *r = call->op->function->detail;
    bool reduced[DP_TENSOR_DIMS];
    int64_t dims[DP_TENSOR_DIMS];
    const dp_tensor *self = call->in[0].as.tensor;
    dp_status status = dp_element_expect(&call->in[0], call->op->elements);
    if (status == DP_OK)
        status = take_dims(call, r, reduced);
    if (status != DP_OK)
        return status;
    const dp_arg *keep_arg = arg_at(call, r->keep_at);
    bool keep = keep_arg && dp_arg_integer(keep_arg, 0) != 0;
    int rank = kept_dims(self, reduced, keep, dims);
    for (int k = 0; k < call->n_out && status == DP_OK; k++)
        status = check_output(call, r, k, dims, rank);
    if (status != DP_OK)
        return status;
    const dp_arg *type = arg_at(call, r->type_at);
    if (type && type->kind != DP_ARG_ABSENT && dp_arg_integer(type, -1) != call->out[0].as.tensor->element)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %s, but must be the element type of %s, %s", type->name,
                       dp_element_name((int)dp_arg_integer(type, -1)), call->out[0].name,
                       dp_element_name(call->out[0].as.tensor->element));
    int64_t length = 1;
    for (int d = 0; d < self->rank; d++)
        length *= reduced[d] ? self->dims[d] : 1;
    bool needs_one = r->gives_index || r->pass[0] == DP_REDUCE_MAX || r->pass[0] == DP_REDUCE_MIN;
    if (length == 0 && needs_one && dp_tensor_count(call->out[0].as.tensor) && r->how != LOG_PLUS_AUX)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no elements to choose from in the reduced dimensions",
                       call->in[0].name);
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    pthread_once(&table_once, fill_table);
    state *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    s->r = r;
    s->how = r->how;
    memcpy(s->pass, r->pass, sizeof s->pass);
    s->compute = compute_of(r, self->element, call->out[0].as.tensor->element);
    if (r->p_at >= 0)
        choose_norm(s, dp_arg_real(&call->in[(int)r->p_at], 2));
    s->correction = r->correction_at >= 0 ? dp_arg_real(&call->in[(int)r->correction_at], 1) : 1;
    s->slot = call->in[0].slot;
    s->load = convert->load[self->element][s->compute];
    s->out_slot = call->out[0].slot;
    int first = call->out[0].as.tensor->element;
    s->store = convert->store[first][s->compute == DP_COMPUTE_I64 || r->index_first ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
    s->out2_slot = -1;
    if (call->n_out > 1 && call->out[1].kind == DP_ARG_TENSOR) {
        s->out2_slot = call->out[1].slot;
        s->store2 = convert->store[call->out[1].as.tensor->element][r->gives_index ? DP_COMPUTE_I64 : DP_COMPUTE_F64];
    }
    build_loops(call, s, reduced, keep);
    plan->path = s->columns ? "columns" : "rows";
    if (!s->columns && (s->reduced.rank > 1 || s->reduced.strides[0][0] != 1))
        plan->why = "rows are gathered: the reduced dims are not contiguous";
    else if (s->compute != DP_COMPUTE_F32 || self->element != DP_F32)
        plan->why = s->compute == DP_COMPUTE_F32 ? "tiles are converted to float first" : "computed in 8 bytes";
    *out_plan = plan;
    return DP_OK;
}

/* The task. */

typedef struct result {
    dp_lane value;
    double aux;
    int64_t index;
} result;

static dp_lane neutral(dp_reduce_id id, dp_compute compute) {
    dp_lane v = {.real = 0};
    bool integral = compute == DP_COMPUTE_I64;
    switch (id) {
    case DP_REDUCE_PROD:
    case DP_REDUCE_ALL:
        if (integral)
            v.integer = 1;
        else
            v.real = 1;
        break;
    case DP_REDUCE_MAX:
        if (integral)
            v.integer = INT64_MIN;
        else
            v.real = -INFINITY;
        break;
    case DP_REDUCE_MIN:
    case DP_REDUCE_MIN_ABS:
        if (integral)
            v.integer = INT64_MAX;
        else
            v.real = INFINITY;
        break;
    default:
        break;
    }
    return v;
}

static void reset(dp_lanes *lanes, size_t n, dp_reduce_id id, dp_compute compute) {
    dp_lane v = neutral(id, compute);
    for (size_t i = 0; i < n; i++) {
        lanes->value[i] = v;
        lanes->index[i] = -1;
    }
}

/* Combines two partial results; `b` comes later in index order or its index decides. */
static result combine(result a, result b, dp_reduce_id id, dp_compute compute) {
    bool integral = compute == DP_COMPUTE_I64;
    double x = a.value.real, y = b.value.real;
    int64_t m = a.value.integer, n = b.value.integer;
    switch (id) {
    case DP_REDUCE_PROD:
        if (integral)
            a.value.integer = (int64_t)((uint64_t)m * (uint64_t)n);
        else
            a.value.real = x * y;
        break;
    case DP_REDUCE_MAX:
    case DP_REDUCE_MAX_ABS:
        if (integral)
            a.value.integer = n > m ? n : m;
        else
            a.value.real = y <= x || x != x ? x : y;
        break;
    case DP_REDUCE_MIN:
    case DP_REDUCE_MIN_ABS:
        if (integral)
            a.value.integer = n < m ? n : m;
        else
            a.value.real = y >= x || x != x ? x : y;
        break;
    case DP_REDUCE_ANY:
        if (integral)
            a.value.integer = m | n;
        else
            a.value.real = x != 0 || y != 0;
        break;
    case DP_REDUCE_ALL:
        if (integral)
            a.value.integer = m & n;
        else
            a.value.real = x != 0 && y != 0;
        break;
    case DP_REDUCE_ARGMAX:
    case DP_REDUCE_ARGMIN: {
        if (b.index < 0)
            return a;
        if (a.index < 0)
            return b;
        bool more = id == DP_REDUCE_ARGMAX;
        bool b_better = integral ? (more ? n > m : n < m) : x == x && (y != y || (more ? y > x : y < x));
        bool equal = integral ? m == n : x == y || (x != x && y != y);
        return b_better || (equal && b.index < a.index) ? b : a;
    }
    default:
        if (integral)
            a.value.integer = (int64_t)((uint64_t)m + (uint64_t)n);
        else
            a.value.real = x + y;
    }
    return a;
}

static result collapse(dp_lanes *lanes, size_t n, dp_reduce_id id, dp_compute compute) {
    result all[LANES];
    for (size_t i = 0; i < n; i++)
        all[i] = (result){lanes->value[i], lanes->aux[i], lanes->index[i]};
    for (size_t step = 1; step < n; step *= 2)
        for (size_t i = 0; i + step < n; i += 2 * step)
            all[i] = combine(all[i], all[i + step], id, compute);
    return all[0];
}

typedef struct job {
    dp_plan *plan;
    state *s;
    result *partial; /* kept.count x chunks, when rows are cut */
    int64_t chunks;
    int pass;
} job;

typedef union tile {
    float f32[DP_TILE];
    double f64[DP_TILE];
    int64_t i64[DP_TILE];
} tile;

static const void *fetch(const state *s, const dp_loop *loop, const char *data, int element, int64_t index, size_t n,
                         tile *to, tile *raw) {
    bool same = element == dp_compute_element(s->compute);
    const void *from = dp_loop_gather(loop, 0, data, dp_element_bytes(element), index, n, same ? to : raw);
    if (same)
        return from;
    s->load(to, from, n);
    return to;
}

/* The same for floats side by side, without lanes in memory; false where there is no such loop. */
static bool reduce_line(dp_reduce_id id, const float *x, size_t n, double aux, result *out) {
    const dp_line_table *t = dp_line_current();
    *out = (result){.aux = aux};
    switch (id) {
    case DP_REDUCE_SUM:
        out->value.real = t->sum(x, n);
        return true;
    case DP_REDUCE_SQUARES:
        out->value.real = t->squares(x, n, aux);
        return true;
    case DP_REDUCE_MAX:
        out->value.real = t->top(x, n);
        return true;
    case DP_REDUCE_MIN:
        out->value.real = t->bottom(x, n);
        return true;
    default:
        return false;
    }
}

/* Elements [begin, end) of the reduced loop at one output. */
static result reduce_row(const job *j, int pass, double aux, int64_t output, int64_t begin, int64_t end) {
    const state *s = j->s;
    const dp_plan_tensor *self = &j->plan->tensors[s->slot];
    int element = self->view.element;
    const char *data = (const char *)dp_plan_data(j->plan, s->slot) +
                       dp_loop_offset(&s->kept, 0, output) * (int64_t)dp_element_bytes(element);
    dp_lanes lanes;
    tile to, raw;
    result line;
    dp_reduce_id id = s->pass[pass];
    dp_reduce_fn fn = table.run[id][s->compute];
    if (element == DP_F32 && s->compute == DP_COMPUTE_F32 && s->reduced.rank == 1 && s->reduced.strides[0][0] == 1 &&
        reduce_line(id, (const float *)data + begin, (size_t)(end - begin), aux, &line))
        return line;
    reset(&lanes, LANES, id, s->compute);
    for (int i = 0; i < LANES; i++)
        lanes.aux[i] = aux;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        const void *x = fetch(s, &s->reduced, data, element, at, (size_t)n, &to, &raw);
        size_t rows = (size_t)n / LANES, rest = (size_t)n % LANES;
        dp_reduce_step step = {rows, LANES, at, LANES, 1, s->parameter};
        fn(&lanes, x, &step);
        if (rest) {
            step = (dp_reduce_step){1, rest, at + (int64_t)(rows * LANES), 0, 1, s->parameter};
            fn(&lanes, (const char *)x + rows * LANES * dp_element_bytes(dp_compute_element(s->compute)), &step);
        }
    }
    return collapse(&lanes, LANES, id, s->compute);
}

static double aux_after(const state *s, result r) {
    return s->how == VARIANCE || s->how == DEVIATION ? r.value.real / (double)s->reduced.count
                                                     : (isinf(r.value.real) ? 0 : r.value.real);
}

static void finish_results(const job *j, int64_t output, size_t n, result *results) {
    const state *s = j->s;
    union {
        double real[DP_TILE];
        int64_t integer[DP_TILE];
    } value, second;
    tile raw;
    double count = (double)s->reduced.count;
    bool integral = s->compute == DP_COMPUTE_I64;
    for (size_t i = 0; i < n; i++) {
        double v = results[i].value.real;
        switch (s->how) {
        case MEAN:
            v /= count;
            break;
        case ROOT:
            v = sqrt(v);
            break;
        case POWER_ROOT:
            v = pow(v, 1 / s->parameter);
            break;
        case LOG_PLUS_AUX:
            v = log(v) + results[i].aux;
            break;
        case VARIANCE:
        case DEVIATION:
            v /= count > s->correction ? count - s->correction : 0;
            v = s->how == DEVIATION ? sqrt(v) : v;
            break;
        case AS_IS:
            break;
        }
        if (s->r->index_first)
            value.integer[i] = results[i].index;
        else if (integral)
            value.integer[i] = results[i].value.integer;
        else
            value.real[i] = v;
        if (s->r->gives_index)
            second.integer[i] = results[i].index;
        else
            second.real[i] = results[i].aux;
    }
    size_t width = dp_element_bytes(j->plan->tensors[s->out_slot].view.element);
    s->store(&raw, &value, n);
    dp_loop_scatter(&s->kept, 1, dp_plan_data(j->plan, s->out_slot), width, output, n, &raw);
    if (s->out2_slot < 0)
        return;
    width = dp_element_bytes(j->plan->tensors[s->out2_slot].view.element);
    s->store2(&raw, &second, n);
    dp_loop_scatter(&s->kept, 2, dp_plan_data(j->plan, s->out2_slot), width, output, n, &raw);
}

/* The row after next, when rows are short and lie one after the other: at the end of each the processor's own prefetching begins anew. */
static void call_row(const job *j, size_t output, size_t end) {
    const state *s = j->s;
    const size_t width = dp_element_bytes(j->plan->tensors[s->slot].view.element), bytes = (size_t)s->reduced.count * width;
    if (output + 2 >= end || bytes < 512 || bytes > 16384 || s->reduced.rank != 1 || s->reduced.strides[0][0] != 1)
        return;
    const char *next = (const char *)dp_plan_data(j->plan, s->slot) + dp_loop_offset(&s->kept, 0, (int64_t)output + 2) * (int64_t)width;
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(next + i, 0, 2);
}

static void run_rows(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    for (size_t output = begin; output < end; output++) {
        call_row(j, output, end);
        result r = {.aux = 0};
        double aux = 0;
        for (int pass = 0; pass < s->r->passes; pass++) {
            r = reduce_row(j, pass, aux, (int64_t)output, 0, s->reduced.count);
            if (pass + 1 < s->r->passes)
                aux = aux_after(s, r);
        }
        r.aux = aux;
        finish_results(j, (int64_t)output, 1, &r);
    }
}

static void run_chunks(void *context, size_t begin, size_t end) {
    const job *j = context;
    for (size_t i = begin; i < end; i++) {
        int64_t output = (int64_t)i / j->chunks, from = (int64_t)i % j->chunks * CHUNK, to = from + CHUNK;
        if (to > j->s->reduced.count)
            to = j->s->reduced.count;
        j->partial[i] = reduce_row(j, j->pass, j->partial[i].aux, output, from, to);
    }
}

/* Few long rows: cut into chunks of a fixed size, so that results do not depend on the number of workers. */
static dp_status run_cut(job *j) {
    const state *s = j->s;
    size_t pieces = (size_t)(s->kept.count * j->chunks);
    j->partial = dp_alloc(DP_MEM_RUNTIME, pieces * sizeof *j->partial);
    if (!j->partial)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %zu partial results", pieces);
    for (j->pass = 0; j->pass < s->r->passes; j->pass++) {
        dp_pool_for(pieces, 1, run_chunks, j);
        for (int64_t o = 0; o < s->kept.count; o++) {
            result *part = j->partial + o * j->chunks, all = part[0];
            double aux = part[0].aux;
            for (int64_t c = 1; c < j->chunks; c++)
                all = combine(all, part[c], s->pass[j->pass], s->compute);
            if (j->pass + 1 < s->r->passes) {
                double next = aux_after(s, all);
                for (int64_t c = 0; c < j->chunks; c++)
                    part[c].aux = next;
                continue;
            }
            all.aux = aux;
            finish_results(j, o, 1, &all);
        }
    }
    dp_free(j->partial);
    return DP_OK;
}

static void run_columns(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    const dp_plan_tensor *self = &j->plan->tensors[s->slot];
    int element = self->view.element;
    int64_t width = (int64_t)dp_element_bytes(element);
    dp_lanes lanes;
    tile to, raw;
    result results[DP_TILE];
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        memset(lanes.aux, 0, sizeof lanes.aux);
        for (int pass = 0; pass < s->r->passes; pass++) {
            dp_reduce_fn fn = table.run[s->pass[pass]][s->compute];
            reset(&lanes, n, s->pass[pass], s->compute);
            for (int64_t k = 0; k < s->reduced.count; k++) {
                const char *data =
                    (const char *)dp_plan_data(j->plan, s->slot) + dp_loop_offset(&s->reduced, 0, k) * width;
                const void *x = fetch(s, &s->kept, data, element, (int64_t)at, n, &to, &raw);
                dp_reduce_step step = {1, n, k, 0, 0, s->parameter};
                fn(&lanes, x, &step);
            }
            if (pass + 1 < s->r->passes)
                for (size_t i = 0; i < n; i++)
                    lanes.aux[i] = aux_after(s, (result){.value = lanes.value[i]});
        }
        for (size_t i = 0; i < n; i++)
            results[i] = (result){lanes.value[i], lanes.aux[i], lanes.index[i]};
        finish_results(j, (int64_t)at, n, results);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    if (!s->kept.count)
        return DP_OK;
    int64_t length = s->reduced.count ? s->reduced.count : 1;
    if (s->columns) {
        int64_t grain = (1 << 15) / length;
        dp_pool_for((size_t)s->kept.count, (size_t)(grain < 64 ? 64 : grain), run_columns, &j);
        return DP_OK;
    }
    j.chunks = (length + CHUNK - 1) / CHUNK;
    if (j.chunks > 1 && s->kept.count < 4 * (int64_t)dp_pool_width())
        return run_cut(&j);
    int64_t grain = (1 << 15) / length;
    dp_pool_for((size_t)s->kept.count, (size_t)(grain < 1 ? 1 : grain), run_rows, &j);
    return DP_OK;
}

#define EXPORT(function, optional_in_bits, optional_out_bits, ...)                                                     \
    static const row row_##function = {__VA_ARGS__};                                                                   \
    extern const dp_function dp_reduce_##function;                                                                     \
    const dp_function dp_reduce_##function = {#function, prepare, &row_##function, optional_in_bits, optional_out_bits};
#define NO_ARGS .p_at = -1, .correction_at = -1
#define DIMS_KEEP_TYPE .dims_at = 1, .keep_at = 2, .type_at = 3, NO_ARGS
EXPORT(sum, 10, 0, {DP_REDUCE_SUM}, 1, AS_IS, false, false, DIMS_KEEP_TYPE)
EXPORT(nansum, 10, 0, {DP_REDUCE_NANSUM}, 1, AS_IS, true, false, DIMS_KEEP_TYPE)
EXPORT(mean, 10, 0, {DP_REDUCE_SUM}, 1, MEAN, true, false, DIMS_KEEP_TYPE)
EXPORT(prod, 10, 0, {DP_REDUCE_PROD}, 1, AS_IS, false, false, DIMS_KEEP_TYPE)
EXPORT(amax, 10, 0, {DP_REDUCE_MAX}, 1, AS_IS, false, false, DIMS_KEEP_TYPE)
EXPORT(amin, 10, 0, {DP_REDUCE_MIN}, 1, AS_IS, false, false, DIMS_KEEP_TYPE)
EXPORT(any, 10, 0, {DP_REDUCE_ANY}, 1, AS_IS, false, true, DIMS_KEEP_TYPE)
EXPORT(all, 10, 0, {DP_REDUCE_ALL}, 1, AS_IS, false, true, DIMS_KEEP_TYPE)
EXPORT(logsumexp, 10, 0, {DP_REDUCE_MAX, DP_REDUCE_EXP}, 2, LOG_PLUS_AUX, true, false, DIMS_KEEP_TYPE)
EXPORT(argmax, 0, 0, {DP_REDUCE_ARGMAX}, 1, AS_IS, false, false, true, true, 1, 2, -1, -1, -1)
EXPORT(argmin, 0, 0, {DP_REDUCE_ARGMIN}, 1, AS_IS, false, false, true, true, 1, 2, -1, -1, -1)
EXPORT(max_dim, 0, 2, {DP_REDUCE_ARGMAX}, 1, AS_IS, false, false, true, false, 1, 2, -1, -1, -1)
EXPORT(min_dim, 0, 2, {DP_REDUCE_ARGMIN}, 1, AS_IS, false, false, true, false, 1, 2, -1, -1, -1)
EXPORT(norm, 4, 0, {DP_REDUCE_SQUARES}, 1, ROOT, true, false, false, false, 2, 3, 4, 1, -1)
EXPORT(var, 2, 2, {DP_REDUCE_SUM, DP_REDUCE_SQUARES}, 2, VARIANCE, true, false, false, false, 1, 3, -1, -1, 2)
EXPORT(std, 2, 2, {DP_REDUCE_SUM, DP_REDUCE_SQUARES}, 2, DEVIATION, true, false, false, false, 1, 3, -1, -1, 2)
