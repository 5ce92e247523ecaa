#include "ops/elementwise/elementwise.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "math/math.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "runtime/pool.h"

/*
 * PAST_TILE: of results past the caches. The processor's queue of stores holds 72 of them; as many lines as fit there are written while
 * the next tile is computed, of more the next tile's own stores would wait for memory.
 */
enum { OPERANDS = 3, PARAMS = 4, GRAIN = 16384, PAST_TILE = 256 };

typedef enum row_class { ARITH, FLOAT, PRED, BITS, SAME } row_class;

typedef struct row {
    dp_elementwise_id id;
    row_class class;
    int operands, params;
} row;

typedef struct operand {
    int slot; /* -1: a constant */
    bool flat, is_compute_type;
    int element;
    int64_t integer;
    double real;
    dp_convert_fn load;
} operand;

typedef struct state {
    dp_loop loop; /* view 0: output; tensors among the operands follow in order */
    dp_compute compute;
    int n_operands;
    operand in[OPERANDS];
    int view[OPERANDS];
    operand out;
    dp_convert_fn store;
    dp_elementwise_fn run;
    double params[PARAMS];
    bool direct;   /* tensors are flat and of the compute type */
    bool mask_one; /* bools among integer results keep bit 0 */
} state;

static dp_elementwise_table table_in_force;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_elementwise_fill_avx512(&table_in_force);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_elementwise_fill_avx2(&table_in_force);
        return;
    }
#endif
    dp_elementwise_fill_generic(&table_in_force);
}

const dp_elementwise_table *dp_elementwise_current(void) {
    pthread_once(&table_once, fill_table);
    return &table_in_force;
}

/* Phase one. */

static int category(int element) {
    return element == DP_EL_BOOL ? 0 : dp_element_is_int(element) ? 1 : 2;
}

typedef struct promotion {
    int tensors, scalars; /* highest category, -1 if none */
    bool has_f64, has_wide_int, scalar_f64;
} promotion;

static void promote(promotion *p, const dp_arg *arg) {
    if (arg->kind == DP_ARG_TENSOR) {
        int element = arg->as.tensor->element, c = category(element);
        p->tensors = c > p->tensors ? c : p->tensors;
        p->has_f64 |= element == DP_F64;
        p->has_wide_int |= element == DP_I64 || element == DP_I32 || element == DP_U32;
    } else if (arg->kind == DP_ARG_SCALAR) {
        int c = category(arg->as.scalar->element);
        p->scalars = c > p->scalars ? c : p->scalars;
        p->scalar_f64 |= arg->as.scalar->element == DP_F64;
    }
}

/* Literals of a mapping and plain numbers of a signature do not promote. */
static dp_compute choose_compute(const row *r, const promotion *p, int out, int *out_category) {
    int c = p->tensors > p->scalars ? p->tensors : p->scalars;
    if (c < 0)
        c = category(out);
    if (r->class == FLOAT)
        c = 2;
    *out_category = r->class == PRED ? 0 : c;
    if (c < 2)
        return DP_COMPUTE_I64;
    bool mixed = r->class == PRED && p->has_wide_int;
    bool only_numbers = p->tensors < 2 && (out == DP_F64 || (p->tensors < 0 && p->scalar_f64));
    return p->has_f64 || mixed || only_numbers ? DP_COMPUTE_F64 : DP_COMPUTE_F32;
}

static dp_status check_result_type(const row *r, int result, const dp_arg *out) {
    static const char *const names[] = {"truth values", "integers", "floats"};
    int c = category(out->as.tensor->element);
    if (r->class == SAME || r->class == PRED || c >= result)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but the results are %s, which it cannot hold",
                   out->name, dp_element_name(out->as.tensor->element), names[result]);
}

static bool is_number(const dp_arg *arg) {
    return arg->kind == DP_ARG_SCALAR || arg->kind == DP_ARG_INTEGER || arg->kind == DP_ARG_REAL;
}

/* Names of the forms of gelu are numbers, too. */
static bool is_form(const dp_arg *arg) {
    return arg->kind == DP_ARG_TEXT && (strcmp(arg->as.text, "none") == 0 || strcmp(arg->as.text, "tanh") == 0);
}

static dp_status check_args(const dp_operator_call *call, const row *r) {
    for (int i = 0; i < call->n_in; i++) {
        const dp_arg *arg = &call->in[i];
        if (arg->kind == DP_ARG_TEXT && !is_form(arg))
            return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.40s\", but must be \"none\" or \"tanh\"", arg->name,
                           arg->as.text);
        if (i >= r->operands && is_form(arg))
            continue;
        if (i >= r->operands ? arg->kind != DP_ARG_ABSENT && !is_number(arg)
                             : arg->kind != DP_ARG_TENSOR && arg->kind != DP_ARG_ABSENT && !is_number(arg))
            return dp_fail(DP_ERR_INTERNAL, "%s is neither a tensor nor a number", arg->name);
        if (arg->kind != DP_ARG_TENSOR)
            continue;
        uint32_t allowed = call->op->elements;
        if (r->class == BITS)
            allowed &= DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL);
        if (r->id == DP_ELEMENTWISE_where && i == 0)
            allowed = DP_EL_BIT(DP_EL_BOOL) | DP_EL_BIT(DP_U8);
        dp_status status = dp_element_expect(arg, allowed);
        if (status != DP_OK)
            return status;
    }
    if (r->id == DP_ELEMENTWISE_cast && dp_arg_integer(&call->in[1], -1) != call->out[0].as.tensor->element)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %s, but must be the element type of %s, %s", call->in[1].name,
                       dp_element_name((int)dp_arg_integer(&call->in[1], -1)), call->out[0].name,
                       dp_element_name(call->out[0].as.tensor->element));
    uint32_t allowed = call->op->elements | (r->class == SAME ? 0 : DP_EL_FLOATS | DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL));
    return dp_element_expect(&call->out[0], allowed);
}

static dp_status check_output(const dp_operator_call *call, const row *r) {
    const dp_tensor *tensors[OPERANDS], *out = call->out[0].as.tensor;
    const char *names[OPERANDS];
    int n = 0, rank = 0;
    int64_t dims[DP_TENSOR_DIMS];
    for (int i = 0; i < r->operands; i++) {
        if (call->in[i].kind == DP_ARG_TENSOR) {
            tensors[n] = call->in[i].as.tensor;
            names[n++] = call->in[i].name;
        }
    }
    dp_status status = dp_places_expect(&call->out[0]);
    if (status != DP_OK || !n)
        return status;
    status = dp_broadcast(tensors, names, n, dims, &rank);
    if (status != DP_OK)
        return status;
    if (r->class == SAME && rank < out->rank) /* a copy fills what the source is broadcast to */
        rank = out->rank, memcpy(dims, out->dims, sizeof dims);
    if (r->class == SAME) {
        const dp_tensor *both[2] = {out, tensors[0]};
        const char *both_names[2] = {call->out[0].name, names[0]};
        status = dp_broadcast(both, both_names, 2, dims, &rank);
        if (status != DP_OK)
            return status;
    }
    return dp_shape_expect(out, call->out[0].name, dims, rank, "the inputs broadcast together");
}

static void take_constant(operand *to, const dp_arg *arg, const row *r, int index) {
    to->slot = -1;
    to->real = dp_arg_real(arg, index == 1 ? -INFINITY : INFINITY);
    to->integer = dp_arg_integer(arg, index == 1 ? INT64_MIN : INT64_MAX);
    (void)r;
}

static bool fill_state(const dp_operator_call *call, const row *r, state *s) {
    const dp_elementwise_table *table = dp_elementwise_current();
    const dp_tensor *out = call->out[0].as.tensor;
    dp_loop_begin(&s->loop, out->dims, out->rank);
    dp_loop_add(&s->loop, out);
    s->n_operands = r->operands;
    s->run = table->run[r->id][s->compute];
    s->store = table->store[out->element][s->compute];
    bool ok = s->run && s->store;
    for (int i = 0; i < r->operands; i++) {
        const dp_arg *arg = &call->in[i];
        operand *to = &s->in[i];
        if (arg->kind != DP_ARG_TENSOR) {
            take_constant(to, arg, r, i);
            continue;
        }
        to->slot = arg->slot;
        to->element = arg->as.tensor->element;
        to->load = table->load[to->element][s->compute];
        to->is_compute_type = to->element == dp_compute_element(s->compute);
        s->view[i] = s->loop.n_views;
        dp_loop_add(&s->loop, arg->as.tensor);
        ok = ok && to->load;
    }
    for (int i = 0; i < r->params; i++)
        s->params[i] = is_form(&call->in[r->operands + i]) ? strcmp(call->in[r->operands + i].as.text, "tanh") == 0
                                                           : dp_arg_real(&call->in[r->operands + i], 0);
    s->out = (operand){.slot = call->out[0].slot,
                       .element = out->element,
                       .is_compute_type = out->element == dp_compute_element(s->compute)};
    s->mask_one = r->class == BITS && out->element == DP_EL_BOOL;
    dp_loop_merge(&s->loop, true);
    for (int i = 0; i < r->operands; i++)
        s->in[i].flat = s->in[i].slot >= 0 && s->loop.rank == 1 && s->loop.strides[s->view[i]][0] == 1;
    s->out.flat = s->loop.rank == 1 && (s->loop.strides[0][0] == 1 || s->loop.dims[0] == 1);
    s->direct = s->out.flat && s->out.is_compute_type && !s->mask_one;
    for (int i = 0; i < r->operands; i++)
        s->direct = s->direct && (s->in[i].slot < 0 || (s->in[i].flat && s->in[i].is_compute_type));
    return ok;
}

static dp_status run(dp_plan *plan);
static dp_status run_raw(dp_plan *plan);

/* Says in the log which loop runs, and what keeps it from running on the tensors themselves. */
static void name_path(dp_plan *plan, const state *s, bool raw) {
    static const char *const tiles[] = {"f32 tiles", "f64 tiles", "i64 tiles"};
    static const char *const direct[] = {"f32 in place", "f64 in place", "i64 in place"};
    bool flat = s->out.flat, same = s->out.is_compute_type;
    for (int i = 0; i < s->n_operands; i++) {
        flat = flat && (s->in[i].slot < 0 || s->in[i].flat);
        same = same && (s->in[i].slot < 0 || s->in[i].is_compute_type);
    }
    if (raw)
        plan->path = flat ? "copy" : dp_loop_across(&s->loop) >= 0 ? "blocks transposed" : "copy of views";
    else
        plan->path = flat && same ? direct[s->compute] : tiles[s->compute];
    if (!flat)
        plan->why = raw ? "not one copy: the tensors have different strides, or gaps"
                        : "not in place: a tensor is broadcast or not contiguous";
    else if (!raw && !same)
        plan->why = "not in place: a tensor has another element type";
}

dp_status dp_elementwise_prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const row *r = call->op->function->detail;
    dp_status status = check_args(call, r);
    if (status == DP_OK)
        status = check_output(call, r);
    if (status != DP_OK)
        return status;
    int out = call->out[0].as.tensor->element, result;
    promotion p = {.tensors = -1, .scalars = -1};
    for (int i = r->id == DP_ELEMENTWISE_where; i < call->n_in; i++)
        promote(&p, &call->in[i]);
    dp_compute compute = choose_compute(r, &p, out, &result);
    bool from_u64 = r->class == SAME && call->in[0].kind == DP_ARG_TENSOR && call->in[0].as.tensor->element == DP_U64;
    if (from_u64 && dp_element_is_float(out))
        compute = DP_COMPUTE_F64;
    status = check_result_type(r, result, &call->out[0]);
    if (status != DP_OK)
        return status;
    bool raw = r->class == SAME && call->in[0].kind == DP_ARG_TENSOR && call->in[0].as.tensor->element == out;
    dp_plan *plan = dp_plan_new(call, raw ? run_raw : run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    s->compute = compute;
    if (!fill_state(call, r, s) && !raw) {
        dp_plan_free(plan);
        return dp_fail(DP_ERR_ARGUMENT, "%s of %s to %s is not offered", call->op->name,
                       call->in[0].kind == DP_ARG_TENSOR ? dp_element_name(call->in[0].as.tensor->element) : "a number",
                       dp_element_name(out));
    }
    name_path(plan, s, raw);
    *out_plan = plan;
    return DP_OK;
}

int dp_elementwise_operands(const dp_function *function) {
    return function->prepare == dp_elementwise_prepare ? ((const row *)function->detail)->operands : DP_OP_BINDS;
}

void dp_elementwise_set_param(dp_plan *plan, int param, double value) {
    state *s = dp_plan_state(plan);
    s->params[param] = value;
}

/* The task. */

typedef union tile {
    _Alignas(64) float f32[DP_TILE]; /* whole vectors on whole lines */
    double f64[DP_TILE];
    int64_t i64[DP_TILE];
} tile;

static void fill_constant(tile *to, const operand *from, dp_compute compute) {
    for (int i = 0; i < DP_TILE; i++) {
        if (compute == DP_COMPUTE_F32)
            to->f32[i] = (float)from->real;
        else if (compute == DP_COMPUTE_F64)
            to->f64[i] = from->real;
        else
            to->i64[i] = from->integer;
    }
}

typedef struct job {
    dp_plan *plan;
    state *s;
} job;

static const void *fetch(const job *j, int k, int64_t index, size_t n, tile *to, tile *raw) {
    const state *s = j->s;
    const operand *in = &s->in[k];
    if (in->slot < 0)
        return to;
    const char *data = dp_plan_data(j->plan, in->slot);
    size_t width = dp_element_bytes(in->element);
    const void *from =
        in->flat ? data + (size_t)index * width
                 : dp_loop_gather(&s->loop, s->view[k], data, width, index, n, in->is_compute_type ? to : raw);
    if (in->is_compute_type)
        return from;
    in->load(to, from, n);
    return to;
}

/* Operands that lie as the output does, and where. */
typedef struct sources {
    int n;
    const char *data[OPERANDS];
    size_t width[OPERANDS];
} sources;

static sources flat_sources(const job *j) {
    sources flat = {.n = 0};
    for (int k = 0; k < j->s->n_operands; k++) {
        const operand *in = &j->s->in[k];
        if (in->slot < 0 || !in->flat)
            continue;
        flat.data[flat.n] = dp_plan_data(j->plan, in->slot);
        flat.width[flat.n++] = dp_element_bytes(in->element);
    }
    return flat;
}

/* Past the caches, in as many parts as there are sources: with each, what one of them will soon be read from is called. */
static void store_past(const dp_math *math, const sources *flat, char *to, const char *from, size_t width, size_t index, size_t n) {
    const size_t part = flat->n > 1 ? n / (size_t)flat->n : n;
    for (int k = 0; k < flat->n; k++, to += part * width, from += part * width, n -= part) {
        const size_t bytes = (k + 1 < flat->n ? part : n) * width;
        math->copy_stream_ahead(to, from, bytes, flat->data[k] + index * flat->width[k] + DP_AHEAD_BYTES, PAST_TILE * flat->width[k]);
        if (k + 1 == flat->n)
            return;
    }
    math->copy_stream(to, from, n * width);
}

/* Floats in, floats out, past the caches: little is done between the tiles, so that the processor can see from one into the next. */
static void run_flat_past(const job *j, const sources *flat, const tile *constants, char *to, size_t begin, size_t end) {
    const state *s = j->s;
    const dp_math *math = dp_math_current();
    const size_t width = flat->width[0];
    tile out;
    const char *from[OPERANDS];
    size_t step[OPERANDS] = {0};
    for (int k = 0, source = 0; k < OPERANDS; k++) {
        const int of = k < s->n_operands ? k : 0;
        from[k] = (const char *)&constants[of];
        if (s->in[of].slot >= 0) {
            const int at = k < s->n_operands ? source++ : 0;
            from[k] = k < s->n_operands ? flat->data[at] + begin * width : from[0];
            step[k] = PAST_TILE * width;
        }
    }
    to += begin * width;
    for (size_t index = begin, n; index < end; index += n, to += n * width) {
        n = end - index < PAST_TILE ? end - index : PAST_TILE;
        s->run(&out, from[0], from[1], from[2], s->params, n);
        store_past(math, flat, to, (const char *)&out, width, index, n);
        for (int k = 0; k < OPERANDS; k++)
            from[k] += step[k];
    }
    math->stream_fence();
}

static void run_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    tile in[OPERANDS], out, raw;
    for (int k = 0; k < s->n_operands; k++)
        if (s->in[k].slot < 0)
            fill_constant(&in[k], &s->in[k], s->compute);
    char *data = dp_plan_data(j->plan, s->out.slot);
    size_t width = dp_element_bytes(s->out.element);
    const dp_math *math = dp_math_current();
    const bool past_caches = s->out.flat && (size_t)s->loop.count * width >= DP_STREAM_BYTES;
    const sources flat = flat_sources(j);
    if (past_caches && s->direct && flat.n) {
        run_flat_past(j, &flat, in, data, begin, end);
        return;
    }
    const size_t most = past_caches ? PAST_TILE : DP_TILE;
    for (size_t index = begin, n; index < end; index += n) {
        n = end - index < most ? end - index : most;
        const void *from[OPERANDS] = {&in[0], &in[0], &in[0]};
        for (int k = 0; k < s->n_operands; k++)
            from[k] = fetch(j, k, (int64_t)index, n, &in[k], &raw);
        for (int k = s->n_operands; k < OPERANDS; k++)
            from[k] = from[0];
        char *there = s->out.flat ? data + index * width : NULL;
        void *result = there && s->out.is_compute_type && !past_caches ? (void *)there : &out;
        s->run(result, from[0], from[1], from[2], s->params, n);
        if (s->mask_one)
            for (size_t i = 0; i < n; i++)
                out.i64[i] &= 1;
        if (result == there)
            continue;
        if (there && !past_caches) {
            s->store(there, &out, n);
            continue;
        }
        const void *stored = &out;
        if (!s->out.is_compute_type) {
            s->store(&raw, &out, n);
            stored = &raw;
        }
        if (past_caches)
            store_past(math, &flat, there, stored, width, index, n);
        else
            dp_loop_scatter(&s->loop, 0, data, width, (int64_t)index, n, stored);
    }
    if (past_caches)
        math->stream_fence();
}

static dp_status run(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    if (j.s->loop.count)
        dp_pool_for((size_t)j.s->loop.count, GRAIN, run_range, &j);
    return DP_OK;
}

static void copy_flat(void *context, size_t begin, size_t end) {
    const job *j = context;
    size_t width = dp_element_bytes(j->s->out.element), bytes = (size_t)j->s->loop.count * width;
    char *to = dp_plan_data(j->plan, j->s->out.slot);
    const char *from = dp_plan_data(j->plan, j->s->in[0].slot);
    if (bytes < DP_STREAM_BYTES || (to < from + bytes && from < to + bytes)) {
        memmove(to + begin * width, from + begin * width, (end - begin) * width);
        return;
    }
    const dp_math *math = dp_math_current();
    math->copy_stream(to + begin * width, from + begin * width, (end - begin) * width);
    math->stream_fence();
}

static void copy_views(void *context, size_t begin, size_t end) {
    const job *j = context;
    dp_loop_copy(&j->s->loop, dp_plan_data(j->plan, j->s->out.slot), dp_plan_data(j->plan, j->s->in[0].slot),
                 dp_element_bytes(j->s->out.element), begin, end);
}

static dp_status run_raw(dp_plan *plan) {
    job j = {plan, dp_plan_state(plan)};
    const state *s = j.s;
    size_t grain = GRAIN;
    if (s->out.flat && s->in[0].flat) {
        dp_pool_for((size_t)s->loop.count, GRAIN, copy_flat, &j);
        return DP_OK;
    }
    size_t units = dp_loop_copy_units(&s->loop, dp_element_bytes(s->out.element), &grain);
    dp_pool_for(units, grain, copy_views, &j);
    return DP_OK;
}

#define EXPORT(function, kind, n_operands, n_params)                                                                   \
    static const row row_##function = {DP_ELEMENTWISE_##function, kind, n_operands, n_params};                         \
    extern const dp_function dp_elementwise_##function;                                                                \
    const dp_function dp_elementwise_##function = {#function, dp_elementwise_prepare, &row_##function,                 \
                                                   DP_ELEMENTWISE_##function == DP_ELEMENTWISE_clamp ? 6u : 0u, 0};
#define FNI(name, class, operands, params, real, integer) EXPORT(name, class, operands, params)
#define FN(name, class, operands, params, real) EXPORT(name, class, operands, params)
#define FNM(name, class, operands, params, via, pre, post) EXPORT(name, class, operands, params)
#include "ops/elementwise/functions.def"
EXPORT(sin, FLOAT, 1, 0)
EXPORT(cos, FLOAT, 1, 0)
