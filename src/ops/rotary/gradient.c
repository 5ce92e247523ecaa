/*
 * gradient.c - gradients of out = x * cos + turned(x) * sin (rotary.c):
 *   embed_gradient(grad, cos, sin, x, mode) -> dx, dcos, dsin
 * Every element of x goes into two of out: dx gathers them. dcos sums grad * x, dsin grad * turned(x), over the dims in
 * which cos and sin were broadcast, in double. x, dcos and dsin may be absent, all together.
 */
#include <string.h>

#include "ops/doubles.h"
#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/rotary/rotary.h"
#include "ops/tiles.h"

typedef enum mode { HALF, INTERLEAVE, QUARTER, INTERLEAVE_HALF, MODES } mode;
enum { GRAD = 0, COS, SIN, X, DX, DCOS, DSIN, VIEWS };

typedef struct state {
    dp_loop all;     /* all dims but the last; views GRAD, COS, SIN, X, DX */
    dp_loop kept;    /* those that cos has: views DCOS, DSIN, and where they begin in GRAD and X */
    dp_loop reduced; /* the others: GRAD and X */
    int slot[VIEWS]; /* -1: absent */
    int64_t step[VIEWS], n;
    mode mode;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

/* out[i] = x[own] * cos[i] + sign * x[turned] * sin[i]. */
typedef struct source {
    int64_t own, turned;
    double sign;
} source;

static int64_t place_in(mode how, int64_t n, int64_t i) {
    return how == INTERLEAVE_HALF ? i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1 : i;
}

static source source_of(mode how, int64_t n, int64_t i) {
    int64_t part = how == INTERLEAVE ? 2 : how == QUARTER ? n / 2 : n, half = part / 2, in_part = i % part;
    bool first = in_part < half;
    return (source){place_in(how, n, i), place_in(how, n, first ? i + half : i - half), first ? -1 : 1};
}

static void load(const job *j, int view, int64_t offset, double *to) {
    const dp_tensor *t = &j->plan->tensors[j->s->slot[view]].view;
    dp_doubles_load(t->element, (char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element),
                    j->s->step[view], j->s->n, to);
}
static void store(const job *j, int view, int64_t offset, const double *from) {
    const dp_tensor *t = &j->plan->tensors[j->s->slot[view]].view;
    dp_doubles_store(t->element, (char *)dp_tensor_data(t) + offset * (int64_t)dp_element_bytes(t->element),
                     j->s->step[view], j->s->n, from);
}

static void one_line(void *context, size_t line, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    double *g = scratch, *c = g + s->n, *sine = c + s->n, *dx = sine + s->n;
    load(j, GRAD, dp_loop_offset(&s->all, 0, (int64_t)line), g);
    load(j, COS, dp_loop_offset(&s->all, 1, (int64_t)line), c);
    load(j, SIN, dp_loop_offset(&s->all, 2, (int64_t)line), sine);
    memset(dx, 0, (size_t)s->n * sizeof *dx);
    for (int64_t i = 0; i < s->n; i++) {
        source from = source_of(s->mode, s->n, i);
        dx[from.own] += g[i] * c[i];
        dx[from.turned] += from.sign * g[i] * sine[i];
    }
    store(j, DX, dp_loop_offset(&s->all, 3, (int64_t)line), dx);
}

static void one_angle(void *context, size_t line, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    double *g = scratch, *x = g + s->n, *dcos = x + s->n, *dsin = dcos + s->n;
    memset(dcos, 0, (size_t)(2 * s->n) * sizeof *dcos);
    for (int64_t k = 0; k < s->reduced.count; k++) {
        load(j, GRAD, dp_loop_offset(&s->kept, 2, (int64_t)line) + dp_loop_offset(&s->reduced, 0, k), g);
        load(j, X, dp_loop_offset(&s->kept, 3, (int64_t)line) + dp_loop_offset(&s->reduced, 1, k), x);
        for (int64_t i = 0; i < s->n; i++) {
            source from = source_of(s->mode, s->n, i);
            dcos[i] += g[i] * x[from.own];
            dsin[i] += from.sign * g[i] * x[from.turned];
        }
    }
    store(j, DCOS, dp_loop_offset(&s->kept, 0, (int64_t)line), dcos);
    store(j, DSIN, dp_loop_offset(&s->kept, 1, (int64_t)line), dsin);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {plan, s};
    size_t room = (size_t)s->n * 4 * sizeof(double) + 64;
    dp_status status = s->n ? dp_tiles_run((size_t)s->all.count, room, one_line, &j) : DP_OK;
    if (status == DP_OK && s->n && s->slot[DCOS] >= 0)
        status = dp_tiles_run((size_t)s->kept.count, room, one_angle, &j);
    return status;
}

/* Which dims dcos has and which it sums, by the dims of cos. */
static void build_angles(const dp_arg *const *args, state *s) {
    const dp_tensor *whole = args[GRAD]->as.tensor, *c = args[COS]->as.tensor;
    int64_t kept[DP_TENSOR_DIMS], reduced[DP_TENSOR_DIMS], strides[4][DP_TENSOR_DIMS] = {{0}},
                                                           rest[2][DP_TENSOR_DIMS] = {{0}};
    int n = 0, m = 0;
    for (int d = 0; d < whole->rank - 1; d++) {
        int own = d - (whole->rank - c->rank);
        if (own >= 0 && c->dims[own] == whole->dims[d]) {
            strides[0][n] = args[DCOS]->as.tensor->strides[own];
            strides[1][n] = args[DSIN]->as.tensor->strides[own];
            strides[2][n] = whole->strides[d];
            strides[3][n] = args[X]->as.tensor->strides[d];
            kept[n++] = whole->dims[d];
        } else {
            rest[0][m] = whole->strides[d];
            rest[1][m] = args[X]->as.tensor->strides[d];
            reduced[m++] = whole->dims[d];
        }
    }
    dp_loop_begin(&s->kept, kept, n);
    for (int v = 0; v < 4; v++)
        dp_loop_add_strides(&s->kept, strides[v]);
    dp_loop_begin(&s->reduced, reduced, m);
    for (int v = 0; v < 2; v++)
        dp_loop_add_strides(&s->reduced, rest[v]);
}

static dp_status check(const dp_operator_call *call, const dp_arg *const *args, bool wants_angles, state *s) {
    const dp_tensor *whole = args[GRAD]->as.tensor, *c = args[COS]->as.tensor;
    dp_status status = DP_OK;
    for (int v = 0; v < VIEWS && status == DP_OK; v++) {
        bool is_angle = v == COS || v == SIN || v == DCOS || v == DSIN;
        s->slot[v] = -1;
        if (!wants_angles && v >= X && v != DX)
            continue;
        const dp_tensor *t = args[v]->as.tensor;
        status = dp_element_expect(args[v], call->op->elements);
        if (status == DP_OK && v != GRAD && v != COS)
            status =
                dp_shape_expect(t, args[v]->name, is_angle ? c->dims : whole->dims, is_angle ? c->rank : whole->rank,
                                is_angle ? "that of cos" : "that of the gradient");
        if (status == DP_OK && v >= DX)
            status = dp_places_expect(args[v]);
        s->slot[v] = args[v]->slot;
        s->step[v] = t->rank ? t->strides[t->rank - 1] : 0;
    }
    return status;
}

static dp_status embed_gradient(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    const dp_arg *args[VIEWS] = {&in[0], &in[1], &in[2], &in[3], &out[0], &out[1], &out[2]};
    const dp_tensor *whole = args[GRAD]->as.tensor;
    int64_t number = dp_arg_integer(&in[4], 0), part = number == QUARTER ? 4 : 2, angles[2][DP_TENSOR_DIMS];
    bool wants_angles = true;
    for (int v = X; v < VIEWS; v++) /* clients that want none pass NULL, or tensors without elements */
        wants_angles &= v == DX || (args[v]->kind == DP_ARG_TENSOR && dp_tensor_count(args[v]->as.tensor));
    if (number < 0 || number >= MODES)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s is %lld, but must be 0 (half), 1 (interleave), 2 (quarter) or 3 (interleave-half)",
                       in[4].name, (long long)number);
    if (whole->rank < 1 || whole->dims[whole->rank - 1] % part)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the last dimension is %lld, but must be a multiple of %lld", in[0].name,
                       whole->rank ? (long long)whole->dims[whole->rank - 1] : 0, (long long)part);
    state s = {.n = whole->dims[whole->rank - 1], .mode = (mode)number};
    dp_status status = check(call, args, wants_angles, &s);
    for (int v = 0; v < 2 && status == DP_OK; v++)
        status = dp_rotary_angle_strides(args[COS + v], args[GRAD], angles[v]);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof s) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    static const int64_t none[1];
    bool line = whole->rank == 1; /* no dims but the last */
    dp_loop_begin(&s.all, whole->dims, whole->rank - 1);
    dp_loop_add_strides(&s.all, line ? none : whole->strides);
    for (int v = 0; v < 2; v++)
        dp_loop_add_strides(&s.all, line ? none : angles[v]);
    dp_loop_add_strides(&s.all, line ? none : args[DX]->as.tensor->strides);
    if (wants_angles)
        build_angles(args, &s);
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_rotary_embed_gradient;
const dp_function dp_rotary_embed_gradient = {"embed_gradient", embed_gradient, NULL, 8, 6};
