/*
 * random.c - tensors filled with random numbers. Mappings:
 *   uniform(from, to, seed, offset, extra) -> out           [from, to)
 *   normal(mean, deviation, seed, offset, extra) -> out     numbers, or tensors that are broadcast to out
 *   bernoulli(probability, seed, offset) -> out             1 with that probability, else 0; likewise
 *   integers(from, to, seed, offset, extra) -> out          from to to - 1; absent: 0 to what the type holds exactly
 *   exponential(count, lambda, seed, offset) -> out         count must be out's number of elements
 *   rrelu(self, lower, upper, training, seed, offset) -> out, noise
 *     training: elements <= 0 are multiplied by noise from [lower, upper), the others have noise 1; else by the middle
 */
#include "ops/random/random.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "ops/loop.h"
#include "runtime/pool.h"

enum { TILES_GRAIN = 4 };

static const double no_params[4];
static dp_philox_fn philox;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void choose(void) {
    philox = dp_philox_generic;
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512)
        philox = dp_philox_avx512;
    else if (dp_cpu_isa() == DP_ISA_AVX2)
        philox = dp_philox_avx2;
#endif
}

dp_philox_fn dp_philox_current(void) {
    pthread_once(&once, choose);
    return philox;
}

static dp_status take_part(const dp_arg *arg, int *out_slot, uint64_t *out_value, dp_convert_fn *out_load) {
    *out_slot = -1;
    if (arg->kind != DP_ARG_TENSOR) {
        *out_value = (uint64_t)dp_arg_integer(arg, 0);
        return DP_OK;
    }
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_U64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && dp_tensor_count(arg->as.tensor) != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have 1", arg->name,
                         (long long)dp_tensor_count(arg->as.tensor));
    *out_slot = arg->slot;
    *out_load = dp_elementwise_current()->load[arg->as.tensor->element][DP_COMPUTE_I64];
    return status;
}

dp_status dp_seed_take(const dp_arg *seed, const dp_arg *offset, const dp_arg *extra, dp_seed *out) {
    dp_status status = take_part(seed, &out->seed_slot, &out->seed, &out->load_seed);
    out->extra = extra ? (uint64_t)dp_arg_integer(extra, 0) : 0;
    return status == DP_OK ? take_part(offset, &out->offset_slot, &out->offset, &out->load_offset) : status;
}

dp_seed dp_seed_read(const dp_plan *plan, const dp_seed *seed) {
    dp_seed now = *seed;
    if (seed->seed_slot >= 0)
        seed->load_seed(&now.seed, dp_tensor_data(&plan->tensors[seed->seed_slot].view), 1);
    if (seed->offset_slot >= 0)
        seed->load_offset(&now.offset, dp_tensor_data(&plan->tensors[seed->offset_slot].view), 1);
    now.offset += seed->extra;
    return now;
}

void dp_words(const dp_seed *seed, int64_t first, size_t n, uint32_t *words) {
    dp_philox_current()(words, seed->seed, seed->offset, (uint64_t)first / 4, (n + 3) / 4);
}

typedef enum what { UNIFORM, NORMAL, BERNOULLI, INTEGERS, EXPONENTIAL, RRELU } what;

/* A parameter of a distribution: a number, or a view of the loop. */
typedef struct parameter {
    int slot, view; /* -1: the number */
    double number;
    dp_convert_fn load;
} parameter;

typedef struct state {
    what what;
    dp_compute compute; /* of the values before they are stored */
    bool wide;          /* two words an element */
    dp_loop loop;       /* view 0 out; parameters and noise follow */
    int out, noise, noise_view;
    parameter first, second; /* mean and deviation; from and to; probability; lambda; self and (unused) */
    double low, high;        /* rrelu's, uniform's */
    int64_t least;
    uint64_t range; /* of integers; 0: 2^64 */
    bool training;
    dp_seed seed;
    dp_convert_fn store, store_noise;
} state;

typedef union tile {
    float f32[DP_TILE];
    double f64[DP_TILE];
    int64_t i64[DP_TILE];
} tile;

typedef struct job {
    dp_plan *plan;
    const state *s;
    dp_seed seed;
    _Atomic int64_t bad; /* place of a probability outside [0, 1] */
} job;

static void read_parameter(const job *j, const parameter *p, int64_t at, size_t n, double *x) {
    if (p->slot < 0) {
        for (size_t i = 0; i < n; i++)
            x[i] = p->number;
        return;
    }
    double raw[DP_TILE];
    size_t width = dp_element_bytes(j->plan->tensors[p->slot].view.element);
    p->load(x, dp_loop_gather(&j->s->loop, p->view, dp_plan_data(j->plan, p->slot), width, at, n, raw), n);
}

/* [low, high) in the output's type: what rounding takes to high becomes low. */
static void make_uniform(const job *j, const uint32_t *words, size_t n, tile *out) {
    const state *s = j->s;
    double low = s->low, width = s->high - s->low, rounded[DP_TILE], raw[DP_TILE];
    if (s->wide) {
        for (size_t i = 0; i < n; i++)
            out->f64[i] = low + width * dp_unit_below_one_f64(words + 2 * i);
        for (size_t i = 0; i < n; i++)
            out->f64[i] = out->f64[i] < s->high ? out->f64[i] : low;
        return;
    }
    for (size_t i = 0; i < n; i++)
        out->f32[i] = (float)(low + width * (double)dp_unit_below_one(words[i]));
    int element = j->plan->tensors[s->out].view.element;
    s->store(raw, out->f32, n);
    dp_elementwise_current()->load[element][DP_COMPUTE_F64](rounded, raw, n);
    for (size_t i = 0; i < n; i++)
        out->f32[i] = rounded[i] < s->high ? out->f32[i] : (float)low;
}

/*
 * Box and Muller: elements 2k and 2k + 1 are radius * (cosine, sine) of the angle; their words make the radius and the
 * angle.
 */
static void make_normal(const job *j, int64_t at, const uint32_t *words, size_t n, tile *out) {
    const dp_elementwise_table *t = dp_elementwise_current();
    dp_compute compute = j->s->compute;
    tile radius, angle, sine;
    double mean[DP_TILE], deviation[DP_TILE];
    size_t pairs = (n + 1) / 2;
    for (size_t k = 0; k < pairs; k++) {
        if (j->s->wide) {
            radius.f64[k] = dp_unit_above_zero_f64(words + 4 * k);
            angle.f64[k] = 6.2831853071795864769 * dp_unit_below_one_f64(words + 4 * k + 2);
        } else {
            radius.f32[k] = dp_unit_above_zero(words[2 * k]);
            angle.f32[k] = 6.2831853071795864769f * dp_unit_below_one(words[2 * k + 1]);
        }
    }
    t->run[DP_ELEMENTWISE_log][compute](&radius, &radius, &radius, &radius, no_params, pairs);
    t->run[DP_ELEMENTWISE_sin][compute](&sine, &angle, &angle, &angle, no_params, pairs);
    t->run[DP_ELEMENTWISE_cos][compute](&angle, &angle, &angle, &angle, no_params, pairs);
    read_parameter(j, &j->s->first, at, n, mean);
    read_parameter(j, &j->s->second, at, n, deviation);
    for (size_t i = 0; i < n; i++) {
        if (j->s->wide)
            out->f64[i] =
                mean[i] + deviation[i] * (sqrt(-2 * radius.f64[i / 2]) * (i % 2 ? sine.f64 : angle.f64)[i / 2]);
        else
            out->f32[i] = (float)(mean[i] + deviation[i] * (double)(sqrtf(-2 * radius.f32[i / 2]) *
                                                                    (i % 2 ? sine.f32 : angle.f32)[i / 2]));
    }
}

static void make_bernoulli(job *j, int64_t at, const uint32_t *words, size_t n, tile *out) {
    double probability[DP_TILE];
    read_parameter(j, &j->s->first, at, n, probability);
    for (size_t i = 0; i < n; i++) {
        if (!(probability[i] >= 0 && probability[i] <= 1))
            atomic_store(&j->bad, at + (int64_t)i);
        out->i64[i] = (double)words[i] * 0x1p-32 < probability[i];
    }
}

/* The upper half of a product: every value gets its share of 2^64 to within one. */
static void make_integers(const state *s, const uint32_t *words, size_t n, tile *out) {
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
        uint64_t scaled = s->range ? (uint64_t)((unsigned __int128)x * s->range >> 64) : x;
        out->i64[i] = (int64_t)((uint64_t)s->least + scaled);
    }
}

static void make_exponential(const job *j, const uint32_t *words, size_t n, tile *out) {
    const state *s = j->s;
    for (size_t i = 0; i < n; i++) {
        if (s->wide)
            out->f64[i] = dp_unit_above_zero_f64(words + 2 * i);
        else
            out->f32[i] = dp_unit_above_zero(words[i]);
    }
    dp_elementwise_current()->run[DP_ELEMENTWISE_log][s->compute](out, out, out, out, no_params, n);
    for (size_t i = 0; i < n; i++) {
        if (s->wide)
            out->f64[i] = -out->f64[i] / s->first.number;
        else
            out->f32[i] = (float)(-(double)out->f32[i] / s->first.number);
    }
}

static void make_rrelu(const job *j, int64_t at, const uint32_t *words, size_t n, tile *out) {
    const state *s = j->s;
    double x[DP_TILE], noise[DP_TILE], raw[DP_TILE];
    read_parameter(j, &s->first, at, n, x);
    for (size_t i = 0; i < n; i++) {
        double slope =
            s->training ? s->low + (s->high - s->low) * dp_unit_below_one_f64(words + 2 * i) : (s->low + s->high) / 2;
        noise[i] = x[i] <= 0 ? slope : 1;
        out->f64[i] = x[i] * noise[i];
    }
    if (!s->training || s->noise < 0)
        return;
    s->store_noise(raw, noise, n);
    dp_loop_scatter(&s->loop, s->noise_view, dp_plan_data(j->plan, s->noise),
                    dp_element_bytes(j->plan->tensors[s->noise].view.element), at, n, raw);
}

static void run_tiles(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    uint32_t words[2 * DP_TILE];
    tile out;
    double raw[DP_TILE];
    for (size_t which = begin; which < end; which++) {
        int64_t at = (int64_t)which * DP_TILE, n = s->loop.count - at < DP_TILE ? s->loop.count - at : DP_TILE;
        /* the last pair of normals needs both its words */
        size_t count = (size_t)(n + (s->what == NORMAL ? n % 2 : 0));
        dp_words(&j->seed, s->wide ? 2 * at : at, s->wide ? 2 * count : count, words);
        switch (s->what) {
        case UNIFORM:
            make_uniform(j, words, (size_t)n, &out);
            break;
        case NORMAL:
            make_normal(j, at, words, (size_t)n, &out);
            break;
        case BERNOULLI:
            make_bernoulli(j, at, words, (size_t)n, &out);
            break;
        case INTEGERS:
            make_integers(s, words, (size_t)n, &out);
            break;
        case EXPONENTIAL:
            make_exponential(j, words, (size_t)n, &out);
            break;
        case RRELU:
            make_rrelu(j, at, words, (size_t)n, &out);
            break;
        }
        s->store(raw, &out, (size_t)n);
        dp_loop_scatter(&s->loop, 0, dp_plan_data(j->plan, s->out),
                        dp_element_bytes(j->plan->tensors[s->out].view.element), at, (size_t)n, raw);
    }
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .bad = -1};
    j.seed = dp_seed_read(plan, &j.s->seed);
    if (j.s->loop.count)
        dp_pool_for((size_t)(j.s->loop.count + DP_TILE - 1) / DP_TILE, TILES_GRAIN, run_tiles, &j);
    if (atomic_load(&j.bad) >= 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is no probability from 0 to 1",
                       plan->tensors[j.s->first.slot].name, (long long)atomic_load(&j.bad));
    return DP_OK;
}

/* Phase one. */

/* A plan for out, with the types that the distribution is offered for. */
static dp_status new_plan(const dp_operator_call *call, what kind, uint32_t elements, const dp_arg *seed,
                          const dp_arg *offset, const dp_arg *extra, dp_plan **out_plan, state **out_state) {
    const dp_arg *out = &call->out[0];
    dp_seed taken = {.seed = 0};
    dp_status status = dp_element_expect(out, elements);
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = dp_seed_take(seed, offset, extra, &taken);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    state *s = dp_plan_state(plan);
    const dp_tensor *to = out->as.tensor;
    s->what = kind;
    s->seed = taken;
    s->out = out->slot;
    s->noise = -1;
    s->first.slot = s->second.slot = -1;
    s->compute = kind == BERNOULLI || kind == INTEGERS ? DP_COMPUTE_I64
                 : to->element == DP_F64               ? DP_COMPUTE_F64
                                                       : DP_COMPUTE_F32;
    if (kind == RRELU)
        s->compute = DP_COMPUTE_F64;
    s->wide = kind == INTEGERS || (kind != BERNOULLI && s->compute == DP_COMPUTE_F64);
    s->store = dp_elementwise_current()->store[to->element][s->compute];
    dp_loop_begin(&s->loop, to->dims, to->rank);
    dp_loop_add(&s->loop, to);
    plan->path = "philox";
    *out_plan = plan;
    *out_state = s;
    return DP_OK;
}

/* A number, or a tensor of floats that can be broadcast to out. */
static dp_status take_parameter(const dp_arg *arg, const dp_arg *out, state *s, parameter *p) {
    if (arg->kind != DP_ARG_TENSOR) {
        p->number = dp_arg_real(arg, 0);
        return DP_OK;
    }
    const dp_tensor *t = arg->as.tensor, *both[] = {out->as.tensor, t};
    const char *names[] = {out->name, arg->name};
    int64_t dims[DP_TENSOR_DIMS];
    int rank;
    dp_status status = dp_element_expect(arg, DP_EL_FLOATS);
    if (status == DP_OK)
        status = dp_broadcast(both, names, 2, dims, &rank);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "what the parameters are broadcast to");
    p->slot = arg->slot;
    p->view = s->loop.n_views;
    p->load = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
    if (status == DP_OK)
        dp_loop_add(&s->loop, t);
    return status;
}

static dp_status finish(dp_status status, dp_plan **plan, state *s) {
    if (status == DP_OK)
        dp_loop_merge(&s->loop, false);
    else
        dp_plan_free(*plan);
    return status;
}

static dp_status uniform(const dp_operator_call *call, dp_plan **out_plan) {
    double low = dp_arg_real(&call->in[0], 0), high = dp_arg_real(&call->in[1], 1);
    if (!(isfinite(low) && isfinite(high) && low <= high))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %g and %s %g, but they must be finite and in this order",
                       call->in[0].name, low, call->in[1].name, high);
    state *s;
    dp_status status = new_plan(call, UNIFORM, DP_EL_FLOATS, &call->in[2], &call->in[3], &call->in[4], out_plan, &s);
    if (status != DP_OK)
        return status;
    s->low = low;
    s->high = high;
    return finish(DP_OK, out_plan, s);
}

static dp_status normal(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *mean = &call->in[0], *deviation = &call->in[1];
    if (deviation->kind != DP_ARG_TENSOR && !(dp_arg_real(deviation, 1) >= 0))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be at least 0", deviation->name, dp_arg_real(deviation, 1));
    state *s;
    dp_status status = new_plan(call, NORMAL, DP_EL_FLOATS, &call->in[2], &call->in[3], &call->in[4], out_plan, &s);
    if (status != DP_OK)
        return status;
    status = take_parameter(mean, &call->out[0], s, &s->first);
    if (status == DP_OK)
        status = take_parameter(deviation, &call->out[0], s, &s->second);
    return finish(status, out_plan, s);
}

static dp_status bernoulli(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *probability = &call->in[0];
    double p = dp_arg_real(probability, 0);
    if (probability->kind != DP_ARG_TENSOR && !(p >= 0 && p <= 1))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be 0 to 1", probability->name, p);
    state *s;
    dp_status status = new_plan(call, BERNOULLI, DP_EL_FLOATS | DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL), &call->in[1],
                                &call->in[2], NULL, out_plan, &s);
    if (status != DP_OK)
        return status;
    return finish(take_parameter(probability, &call->out[0], s, &s->first), out_plan, s);
}

/* The largest integer up to which a type holds all of them. */
static int64_t largest_of(int element) {
    switch (element) {
    case DP_BF16:
        return 1 << 8;
    case DP_F16:
        return 1 << 11;
    case DP_F32:
        return 1 << 24;
    case DP_F64:
        return (int64_t)1 << 53;
    case DP_EL_BOOL:
        return 1;
    default: {
        int bits = 8 * (int)dp_element_bytes(element);
        bool is_signed = element == DP_I8 || element == DP_I16 || element == DP_I32 || element == DP_I64;
        return (int64_t)(UINT64_MAX >> (64 - bits + is_signed));
    }
    }
}

static dp_status integers(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *from = &call->in[0], *to = &call->in[1], *out = &call->out[0];
    bool given = from->kind != DP_ARG_ABSENT;
    int64_t low = dp_arg_integer(from, 0), high = dp_arg_integer(to, 0);
    if (given && low >= high)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be below %s, %lld", from->name, (long long)low, to->name,
                       (long long)high);
    state *s;
    dp_status status =
        new_plan(call, INTEGERS, (DP_EL_FLOATS | DP_EL_INTS | DP_EL_BIT(DP_EL_BOOL)) & ~DP_EL_BIT(DP_U64), &call->in[2],
                 &call->in[3], &call->in[4], out_plan, &s);
    if (status != DP_OK)
        return status;
    int element = out->as.tensor->element;
    int64_t most = largest_of(element);
    bool is_unsigned = element == DP_U8 || element == DP_U16 || element == DP_U32 || element == DP_EL_BOOL;
    if (given && dp_element_bytes(element) < 8 && !dp_element_is_float(element) &&
        (high - 1 > most || low < (is_unsigned ? 0 : -most - 1)))
        status = dp_fail(DP_ERR_ARGUMENT, "%s to %s are %lld to %lld, which elements of type %s cannot hold",
                         from->name, to->name, (long long)low, (long long)high, dp_element_name(element));
    s->least = given ? low : 0;
    s->range = given ? (uint64_t)high - (uint64_t)low : (uint64_t)most + 1;
    return finish(status, out_plan, s);
}

static dp_status exponential(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *count = &call->in[0], *lambda = &call->in[1], *out = &call->out[0];
    if (!(dp_arg_real(lambda, 0) > 0))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be above 0", lambda->name, dp_arg_real(lambda, 0));
    if (dp_arg_integer(count, 0) != dp_tensor_count(out->as.tensor))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the number of elements of %s, %lld", count->name,
                       (long long)dp_arg_integer(count, 0), out->name, (long long)dp_tensor_count(out->as.tensor));
    state *s;
    dp_status status = new_plan(call, EXPONENTIAL, DP_EL_FLOATS, &call->in[2], &call->in[3], NULL, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->first.number = dp_arg_real(lambda, 1);
    return finish(DP_OK, out_plan, s);
}

static dp_status rrelu(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *out = &call->out[0], *noise = &call->out[1];
    double low = dp_arg_real(&call->in[1], 0.125), high = dp_arg_real(&call->in[2], 1.0 / 3);
    const dp_tensor *t = self->as.tensor;
    if (!(isfinite(low) && isfinite(high) && low <= high))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %g and %s %g, but they must be finite and in this order",
                       call->in[1].name, low, call->in[2].name, high);
    dp_status status = dp_shape_expect(out->as.tensor, out->name, t->dims, t->rank, "self's");
    if (status == DP_OK)
        status = dp_shape_expect(noise->as.tensor, noise->name, t->dims, t->rank, "self's");
    if (status == DP_OK)
        status = dp_element_expect(noise, DP_EL_FLOATS);
    if (status == DP_OK)
        status = dp_places_expect(noise);
    state *s;
    if (status == DP_OK)
        status = new_plan(call, RRELU, DP_EL_FLOATS, &call->in[4], &call->in[5], NULL, out_plan, &s);
    if (status != DP_OK)
        return status;
    s->low = low;
    s->high = high;
    s->training = dp_arg_integer(&call->in[3], 0) != 0;
    s->noise = noise->slot;
    s->noise_view = s->loop.n_views;
    s->store_noise = dp_elementwise_current()->store[noise->as.tensor->element][DP_COMPUTE_F64];
    dp_loop_add(&s->loop, noise->as.tensor);
    return finish(take_parameter(self, out, s, &s->first), out_plan, s);
}

#define EXPORT(function, optional)                                                                                     \
    extern const dp_function dp_random_##function;                                                                     \
    const dp_function dp_random_##function = {#function, function, NULL, optional, 0};
EXPORT(uniform, 0)
EXPORT(normal, 0)
EXPORT(bernoulli, 0)
EXPORT(integers, 0)
EXPORT(exponential, 0)
EXPORT(rrelu, 0)
