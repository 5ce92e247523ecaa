/*
 * gated_delta.c - the gated delta rule (Yang et al., arXiv 2412.06464), token by token, in float. With S a state of Dv
 * x Dk per value head, a = e^g e^gk: S = S a + beta (v - (S a) k) k^T,   out = scale S q recurrent(query, key, value,
 * beta, state, lengths, state numbers, g, gk, accepted tokens, scale) -> out, state sequence i starts from state number
 * numbers[first + accepted[i] - 1] (accepted 1 when absent), and the state after token t is written to number
 * numbers[t] chunk(query, key, value, beta, initial state, lengths, scale, g) -> out, final state      one state per
 * sequence query and key are [T, Nk, Dk], value and out [T, Nv, Dv]; value head h goes with key head h / (Nv / Nk).
 * Lengths, numbers and accepted tokens are int32 in device memory.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "ops/recurrent/kernels.h"
#include "runtime/pool.h"

static dp_delta_row_fn delta_row;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void choose(void) {
    delta_row = dp_delta_row_generic;
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512)
        delta_row = dp_delta_row_avx512;
    else if (dp_cpu_isa() == DP_ISA_AVX2)
        delta_row = dp_delta_row_avx2;
#endif
}

/* slot -1: absent */
typedef struct part {
    int slot, element, rank;
    int64_t strides[4];
} part;

typedef struct state {
    part q, k, v, beta, g, gk, out, from, to, lengths, numbers, accepted;
    int64_t tokens, sequences, states, key_heads, heads, depth, out_depth;
    float scale;
    bool by_number; /* states are named by `numbers`; else one per sequence */
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    int64_t *first; /* token of each sequence, and one past the last */
    _Atomic bool no_memory;
} job;

static char *at(dp_plan *plan, const part *p, int64_t i, int64_t j, int64_t k) {
    int64_t offset = i * p->strides[0] + (p->rank > 1 ? j * p->strides[1] : 0) + (p->rank > 2 ? k * p->strides[2] : 0);
    return (char *)dp_plan_data(plan, p->slot) + offset * (int64_t)dp_element_bytes(p->element);
}

static void load(float *to, const char *from, const part *p, int64_t stride, int64_t n) {
    dp_convert_fn convert = dp_elementwise_current()->load[p->element][DP_COMPUTE_F32];
    if (stride == 1)
        convert(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            convert(to + i, from + i * stride * (int64_t)dp_element_bytes(p->element), 1);
}

static void store(char *to, const float *from, const part *p, int64_t stride, int64_t n) {
    dp_convert_fn convert = dp_elementwise_current()->store[p->element][DP_COMPUTE_F32];
    if (stride == 1)
        convert(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            convert(to + i * stride * (int64_t)dp_element_bytes(p->element), from + i, 1);
}

static float one(dp_plan *plan, const part *p, int64_t i, int64_t j) {
    float value;
    load(&value, at(plan, p, i, j, 0), p, 1, 1);
    return value;
}

static int32_t number(dp_plan *plan, const part *p, int64_t i) {
    int32_t value;
    memcpy(&value, at(plan, p, i, 0, 0), sizeof value);
    return value;
}

static void load_state(const job *j, int64_t which, int64_t head, float *matrix) {
    const part *p = &j->s->from;
    for (int64_t r = 0; r < j->s->out_depth; r++)
        load(matrix + r * j->s->depth, at(j->plan, p, which, head, r), p, p->strides[3], j->s->depth);
}

static void store_state(const job *j, int64_t which, int64_t head, const float *matrix) {
    const part *p = &j->s->to;
    for (int64_t r = 0; r < j->s->out_depth; r++)
        store(at(j->plan, p, which, head, r), matrix + r * j->s->depth, p, p->strides[3], j->s->depth);
}

/* One token of one head: matrix is updated, the result written. rows: k, q, decay of depth each, v, out of out_depth.
 */
static void take_step(const job *j, int64_t t, int64_t head, float *matrix, float *rows) {
    const state *s = j->s;
    const int64_t key_head = head / (s->heads / s->key_heads), n = s->depth;
    float *k = rows, *q = k + n, *decay = q + n, *v = decay + n, *out = v + s->out_depth;
    load(k, at(j->plan, &s->k, t, key_head, 0), &s->k, s->k.strides[2], n);
    load(q, at(j->plan, &s->q, t, key_head, 0), &s->q, s->q.strides[2], n);
    load(v, at(j->plan, &s->v, t, head, 0), &s->v, s->v.strides[2], s->out_depth);
    const float whole = s->g.slot >= 0 ? expf(one(j->plan, &s->g, t, head)) : 1, beta = one(j->plan, &s->beta, t, head);
    if (s->gk.slot >= 0)
        load(decay, at(j->plan, &s->gk, t, head, 0), &s->gk, s->gk.strides[2], n);
    for (int64_t i = 0; i < n; i++)
        decay[i] = s->gk.slot >= 0 ? whole * expf(decay[i]) : whole;
    for (int64_t r = 0; r < s->out_depth; r++)
        out[r] = s->scale * delta_row(matrix + r * n, decay, k, q, v[r], beta, (size_t)n);
    store(at(j->plan, &s->out, t, head, 0), out, &s->out, s->out.strides[2], s->out_depth);
}

/* Units are heads of sequences. */
static void run_range(void *context, size_t begin, size_t end) {
    job *j = context;
    const state *s = j->s;
    float *matrix = dp_alloc(DP_MEM_RUNTIME,
                             (size_t)(s->out_depth * s->depth + 3 * s->depth + 2 * s->out_depth + 1) * sizeof(float));
    if (!matrix) {
        atomic_store(&j->no_memory, true);
        return;
    }
    float *rows = matrix + s->out_depth * s->depth;
    for (size_t unit = begin; unit < end; unit++) {
        const int64_t sequence = (int64_t)unit / s->heads, head = (int64_t)unit % s->heads;
        const int64_t first = j->first[sequence], last = j->first[sequence + 1];
        if (s->by_number && first == last)
            continue;
        int64_t accepted = s->accepted.slot >= 0 ? number(j->plan, &s->accepted, sequence) : 1;
        load_state(j, s->by_number ? number(j->plan, &s->numbers, first + accepted - 1) : sequence, head, matrix);
        for (int64_t t = first; t < last; t++) {
            take_step(j, t, head, matrix, rows);
            if (s->by_number)
                store_state(j, number(j->plan, &s->numbers, t), head, matrix);
        }
        if (!s->by_number)
            store_state(j, sequence, head, matrix);
    }
    dp_free(matrix);
}

/* Reads the lengths, and checks all numbers that the loops will follow. */
static dp_status check_numbers(const job *j) {
    const state *s = j->s;
    dp_plan *plan = j->plan;
    for (int64_t i = 0; i < s->sequences; i++) {
        int64_t length = s->lengths.slot >= 0 ? number(plan, &s->lengths, i) : s->tokens;
        if (length < 0 || length > s->tokens - j->first[i])
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld, the tokens that are left",
                           plan->tensors[s->lengths.slot].name, (long long)i, (long long)length,
                           (long long)(s->tokens - j->first[i]));
        j->first[i + 1] = j->first[i] + length;
        int64_t accepted = s->accepted.slot >= 0 && length ? number(plan, &s->accepted, i) : 1;
        if (length && (accepted < 1 || accepted > length))
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 1 to %lld, the sequence's length",
                           plan->tensors[s->accepted.slot].name, (long long)i, (long long)accepted, (long long)length);
    }
    for (int64_t t = 0; s->by_number && t < j->first[s->sequences]; t++) {
        int64_t which = number(plan, &s->numbers, t);
        if (which < 0 || which >= s->states)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld",
                           plan->tensors[s->numbers.slot].name, (long long)t, (long long)which,
                           (long long)s->states - 1);
    }
    return DP_OK;
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    pthread_once(&once, choose);
    j.first = dp_alloc(DP_MEM_RUNTIME, (size_t)(j.s->sequences + 1) * sizeof *j.first);
    dp_status status = j.first ? check_numbers(&j) : DP_OK;
    if (!j.first)
        atomic_store(&j.no_memory, true);
    else if (status == DP_OK && j.s->sequences && j.s->heads)
        dp_pool_for((size_t)(j.s->sequences * j.s->heads), 1, run_range, &j);
    dp_free(j.first);
    if (atomic_load(&j.no_memory))
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "%s: no host memory for a state of %lld by %lld", plan->op->name,
                       (long long)j.s->out_depth, (long long)j.s->depth);
    return status;
}

/* dims[i] -1: any size, returned there. */
static dp_status take(const dp_arg *arg, uint32_t elements, int64_t *dims, int rank, const char *meaning, part *out) {
    *out = (part){.slot = -1, .rank = rank};
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    for (int d = 0; d < rank && d < t->rank; d++)
        dims[d] = dims[d] < 0 ? t->dims[d] : dims[d];
    if (status == DP_OK)
        status = dp_shape_expect(t, arg->name, dims, rank, meaning);
    out->slot = arg->slot;
    out->element = t->element;
    memcpy(out->strides, t->strides, (size_t)(rank < 4 ? rank : 4) * sizeof *t->strides);
    return status;
}

static const dp_arg none = {.name = "absent", .kind = DP_ARG_ABSENT};

typedef struct request {
    const dp_arg *q, *k, *v, *beta, *from, *lengths, *numbers, *g, *gk, *accepted, *out, *to;
    double scale;
} request;

static dp_status read(const dp_operator_call *call, const request *r, state *s) {
    const uint32_t floats = call->op->elements, whole = DP_EL_BIT(DP_I32);
    int64_t q[3] = {-1, -1, -1}, v[3] = {-1, -1, -1}, states[4] = {-1, -1, -1, -1}, sequences[1] = {-1};
    s->by_number = r->numbers->kind == DP_ARG_TENSOR;
    s->scale = (float)r->scale;
    dp_status status = take(r->q, floats, q, 3, "tokens, heads of keys, depth", &s->q);
    if (status == DP_OK)
        status = take(r->k, floats, q, 3, "that of the query", &s->k);
    v[0] = q[0];
    if (status == DP_OK)
        status = take(r->v, floats, v, 3, "tokens, heads of values, depth", &s->v);
    s->tokens = q[0];
    s->key_heads = q[1];
    s->heads = v[1];
    s->depth = q[2];
    s->out_depth = v[2];
    if (status == DP_OK)
        status = take(r->out, floats, v, 3, "that of the values", &s->out);
    if (status == DP_OK)
        status = take(r->beta, floats, v, 2, "tokens, heads of values", &s->beta);
    if (status == DP_OK)
        status = take(r->g, floats, v, 2, "tokens, heads of values", &s->g);
    int64_t gk[3] = {v[0], v[1], q[2]};
    if (status == DP_OK)
        status = take(r->gk, floats, gk, 3, "tokens, heads of values, depth of keys", &s->gk);
    if (status == DP_OK)
        status = take(r->lengths, whole, sequences, 1, "sequences", &s->lengths);
    s->sequences = sequences[0] < 0 ? 1 : sequences[0];
    if (status == DP_OK)
        status = take(r->accepted, whole, sequences, 1, "that of the lengths", &s->accepted);
    if (status == DP_OK)
        status = take(r->numbers, whole, v, 1, "tokens", &s->numbers);
    states[0] = s->by_number ? -1 : s->sequences;
    states[1] = v[1];
    states[2] = v[2];
    states[3] = q[2];
    if (status == DP_OK)
        status = take(r->from, floats, states, 4, "states, heads of values, depth of values, depth of keys", &s->from);
    if (status == DP_OK)
        status = take(r->to, floats, states, 4, "that of the states read", &s->to);
    s->states = states[0];
    if (status == DP_OK && (s->key_heads ? s->heads % s->key_heads != 0 : s->heads != 0))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld heads, but must have a multiple of %s's, %lld", r->v->name,
                         (long long)s->heads, r->k->name, (long long)s->key_heads);
    return status;
}

static dp_status prepare(const dp_operator_call *call, const request *r, dp_plan **out_plan) {
    state s = {.tokens = 0};
    dp_status status = read(call, r, &s);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "token by token";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_recurrent(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    const request r = {&a[0],
                       &a[1],
                       &a[2],
                       &a[3],
                       &a[4],
                       &a[5],
                       &a[6],
                       &a[7],
                       &a[8],
                       &a[9],
                       &call->out[0],
                       &call->out[1],
                       dp_arg_real(&a[10], 1)};
    return prepare(call, &r, out_plan);
}

static dp_status prepare_chunk(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    const request r = {&a[0],
                       &a[1],
                       &a[2],
                       &a[3],
                       &a[4],
                       &a[5],
                       &none,
                       &a[7],
                       &none,
                       &none,
                       &call->out[0],
                       &call->out[1],
                       dp_arg_real(&a[6], 1)};
    return prepare(call, &r, out_plan);
}

extern const dp_function dp_recurrent_recurrent, dp_recurrent_chunk;
const dp_function dp_recurrent_recurrent = {"recurrent", prepare_recurrent, NULL, 0x380, 0};
const dp_function dp_recurrent_chunk = {"chunk", prepare_chunk, NULL, 0x80, 0};
