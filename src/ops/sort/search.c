/*
 * search.c - where values belong in sorted sequences. search(sequence, values, right, sorter, int32) -> out: the number
 * of elements of the sequence below the value (right: not above it). The sequence is one line for all values, or one
 * per line of values (all dims but the last alike). sorter, if given, holds the order of each sequence. Values may be a
 * scalar. NaN is above every number. Integers are compared as int64, anything else as double.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN = 4096 };

typedef struct state {
    dp_loop lines;  /* views: 0 sequence, 1 sorter, 2 values, 3 out: where a line begins */
    dp_loop values; /* of a line; views 0 values, 1 out */
    int64_t n, step, sorter_step;
    int sequence, sorter, in, out; /* slots, -1: none */
    bool integral, right;
    dp_scalar scalar;
    dp_convert_fn load_sequence, load_sorter, load, store;
} state;

typedef union number {
    double real;
    int64_t integer;
} number;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic bool out_of_memory;
    _Atomic int64_t bad_place, bad_value;
} job;

/* A sequence where it lies, or as an array. */
typedef struct source {
    const char *data, *sorter;
    const number *array;
} source;

static int64_t width_of(const job *j, int slot) {
    return (int64_t)dp_element_bytes(j->plan->tensors[slot].view.element);
}

static char *begin_of(const job *j, int slot, int view, int64_t line) {
    return slot < 0
               ? NULL
               : (char *)dp_plan_data(j->plan, slot) + dp_loop_offset(&j->s->lines, view, line) * width_of(j, slot);
}

static number element_of(job *j, const source *from, int64_t i) {
    const state *s = j->s;
    number x;
    if (from->array)
        return from->array[i];
    int64_t at = i;
    if (from->sorter) {
        s->load_sorter(&at, from->sorter + i * s->sorter_step * width_of(j, s->sorter), 1);
        if (at < 0 || at >= s->n) {
            atomic_store(&j->bad_value, at);
            atomic_store(&j->bad_place, i);
            at = 0;
        }
    }
    s->load_sequence(&x, from->data + at * s->step * width_of(j, s->sequence), 1);
    return x;
}

/* Is x before v (right: or equal)? NaN is above every number. */
static inline bool below(double x, double v, bool right) {
    return right ? x <= v || v != v : x < v || (v != v && x == x);
}

static int64_t place_of(job *j, const source *from, number v) {
    const state *s = j->s;
    int64_t low = 0;
    for (int64_t n = s->n; n > 0;) {
        int64_t half = n / 2;
        number x = element_of(j, from, low + half);
        bool after =
            s->integral ? (s->right ? x.integer <= v.integer : x.integer < v.integer) : below(x.real, v.real, s->right);
        low = after ? low + half + 1 : low;
        n = after ? n - half - 1 : half;
    }
    return low;
}

/* Values [begin, end) of one line. */
static void search_line(job *j, int64_t line, int64_t begin, int64_t end, const source *from) {
    const state *s = j->s;
    const char *in = begin_of(j, s->in, 2, line);
    char *out = begin_of(j, s->out, 3, line);
    number v = {.integer = s->scalar.integer};
    if (!s->integral)
        v.real = s->scalar.real;
    for (int64_t i = begin; i < end; i++) {
        if (in)
            s->load(&v, in + dp_loop_offset(&s->values, 0, i) * width_of(j, s->in), 1);
        int64_t place = place_of(j, from, v);
        s->store(out + dp_loop_offset(&s->values, 1, i) * width_of(j, s->out), &place, 1);
    }
}

/* An array pays where a line has many values: each of them looks at a few elements only. */
static void search_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    int64_t count = s->values.count, last = (int64_t)end;
    number *array = NULL;
    if (16 * (count < last ? count : last) > s->n && s->n &&
        !(array = dp_alloc(DP_MEM_RUNTIME, (size_t)s->n * sizeof *array))) {
        atomic_store(&j->out_of_memory, true);
        return;
    }
    for (int64_t i = (int64_t)begin, next; i < last; i = next) {
        int64_t line = i / count;
        next = (line + 1) * count < last ? (line + 1) * count : last;
        source from = {begin_of(j, s->sequence, 0, line), begin_of(j, s->sorter, 1, line), NULL};
        if (array && 16 * (next - i) > s->n) {
            for (int64_t k = 0; k < s->n; k++)
                array[k] = element_of(j, &from, k);
            from.array = array;
        }
        search_line(j, line, i - line * count, next - line * count, &from);
    }
    dp_free(array);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .bad_place = -1};
    const state *s = j.s;
    int64_t count = s->lines.count * s->values.count;
    if (count)
        dp_pool_for((size_t)count, GRAIN, search_range, &j);
    if (atomic_load(&j.out_of_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a sequence of %lld elements: free some",
                       (long long)s->n);
    int64_t place = atomic_load(&j.bad_place);
    if (place >= 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld of a line is %lld, but must be 0 to %lld",
                       plan->tensors[s->sorter].name, (long long)place, (long long)atomic_load(&j.bad_value),
                       (long long)s->n - 1);
    return DP_OK;
}

/* Phase one. */

static bool is_float(const dp_arg *arg) {
    return dp_element_is_float(arg->kind == DP_ARG_TENSOR ? arg->as.tensor->element : arg->as.scalar->element);
}

static dp_status check(const dp_operator_call *call, const dp_arg *values, const dp_arg *sorter) {
    const dp_arg *sequence = &call->in[0], *out = &call->out[0];
    const dp_tensor *seq = sequence->as.tensor, *v = values->kind == DP_ARG_TENSOR ? values->as.tensor : NULL;
    dp_status status = dp_element_expect(sequence, call->op->elements);
    if (status == DP_OK && v)
        status = dp_element_expect(values, call->op->elements);
    if (status == DP_OK && seq->rank == 0)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions, but must have at least 1", sequence->name);
    if (status == DP_OK && !v && seq->rank != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 to search for a scalar",
                         sequence->name, seq->rank);
    if (status == DP_OK && v && seq->rank > 1) {
        int64_t dims[DP_TENSOR_DIMS];
        memcpy(dims, seq->dims, sizeof dims);
        dims[seq->rank - 1] = v->rank ? v->dims[v->rank - 1] : 1;
        status = dp_shape_expect(v, values->name, dims, seq->rank, "the sequences' but for the last dimension");
    }
    if (status == DP_OK && sorter->kind == DP_ARG_TENSOR)
        status = dp_shape_expect(sorter->as.tensor, sorter->name, seq->dims, seq->rank, "the sequences'");
    if (status == DP_OK && sorter->kind == DP_ARG_TENSOR)
        status = dp_element_expect(sorter, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && dp_arg_integer(&call->in[4], 0) != (out->as.tensor->element == DP_I32))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %d, but %s has elements of type %s", call->in[4].name,
                         (int)dp_arg_integer(&call->in[4], 0), out->name, dp_element_name(out->as.tensor->element));
    if (status == DP_OK && v)
        status = dp_shape_expect(out->as.tensor, out->name, v->dims, v->rank, "the values'");
    if (status == DP_OK && !v && dp_tensor_count(out->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", out->name,
                         (long long)dp_tensor_count(out->as.tensor));
    return status == DP_OK ? dp_places_expect(out) : status;
}

static dp_status search(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *sequence = &call->in[0], *values = &call->in[1], *sorter = &call->in[3], *out = &call->out[0];
    dp_status status = check(call, values, sorter);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    const dp_elementwise_table *convert = dp_elementwise_current();
    const dp_tensor *seq = sequence->as.tensor, *to = out->as.tensor;
    s->integral = !is_float(sequence) && !is_float(values);
    dp_compute compute = s->integral ? DP_COMPUTE_I64 : DP_COMPUTE_F64;
    s->right = dp_arg_integer(&call->in[2], 0) != 0;
    s->sequence = sequence->slot;
    s->sorter = sorter->kind == DP_ARG_TENSOR ? sorter->slot : -1;
    s->in = values->kind == DP_ARG_TENSOR ? values->slot : -1;
    s->out = out->slot;
    s->load_sequence = convert->load[seq->element][compute];
    s->store = convert->store[to->element][DP_COMPUTE_I64];
    s->n = seq->dims[seq->rank - 1];
    s->step = seq->strides[seq->rank - 1];
    if (s->sorter >= 0) {
        s->sorter_step = sorter->as.tensor->strides[seq->rank - 1];
        s->load_sorter = convert->load[sorter->as.tensor->element][DP_COMPUTE_I64];
    }
    if (s->in >= 0)
        s->load = convert->load[values->as.tensor->element][compute];
    else
        s->scalar = *values->as.scalar;
    int outer = seq->rank - 1; /* dims that number the lines; 0 when one sequence serves all values */
    static const int64_t none[DP_TENSOR_DIMS] = {0};
    const int64_t *in_strides = s->in >= 0 ? values->as.tensor->strides : none;
    dp_loop_begin(&s->lines, to->dims, outer);
    dp_loop_add_strides(&s->lines, outer ? seq->strides : none);
    dp_loop_add_strides(&s->lines, outer && s->sorter >= 0 ? sorter->as.tensor->strides : none);
    dp_loop_add_strides(&s->lines, outer ? in_strides : none);
    dp_loop_add_strides(&s->lines, outer ? to->strides : none);
    dp_loop_begin(&s->values, to->dims + outer, to->rank - outer);
    dp_loop_add_strides(&s->values, in_strides + outer);
    dp_loop_add_strides(&s->values, to->strides + outer);
    dp_loop_merge(&s->values, false);
    plan->path = s->integral ? "i64 bisection" : "f64 bisection";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_sort_search;
const dp_function dp_sort_search = {"search", search, NULL, 8, 0};
