/*
 * distance.c - distances of rows, by PyTorch's formulas; x1 [..., p, m], x2 [..., r, m], leading dims broadcast:
 *   cdist(x1, x2, p, mode) -> out                   out[..., i, j] = |x1[i] - x2[j]|_p; mode, how to compute, changes
 * nothing cdist_backward(grad, x1, x2, distance, p) -> out    the gradient of x1 pdist(self, p) -> out of the pairs i <
 * j of rows of self [n, m], in order p is 0 (how many differ), a positive number, or infinite; -1 stands for infinite,
 * too. Computed in double.
 */
#include <math.h>
#include <string.h>

#include "ops/doubles.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/tiles.h"

enum { BLOCK = 32, VIEW_OUT = 0, VIEW_X1, VIEW_X2, VIEW_GRAD, VIEW_DISTANCE, VIEWS };

typedef struct state {
    dp_loop batch;
    int slot[VIEWS];
    int64_t row[VIEWS], column[VIEWS]; /* strides of the last two dims */
    int64_t n1, n2, m;
    double p;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

static double distance(const double *x, const double *y, int64_t m, double p) {
    double sum = 0;
    if (p == 0)
        for (int64_t i = 0; i < m; i++)
            sum += x[i] != y[i];
    else if (p == 1)
        for (int64_t i = 0; i < m; i++)
            sum += fabs(x[i] - y[i]);
    else if (p == 2)
        for (int64_t i = 0; i < m; i++)
            sum += (x[i] - y[i]) * (x[i] - y[i]);
    else if (isinf(p))
        for (int64_t i = 0; i < m; i++)
            sum = fabs(x[i] - y[i]) > sum || isnan(x[i] - y[i]) ? fabs(x[i] - y[i]) : sum;
    else
        for (int64_t i = 0; i < m; i++)
            sum += pow(fabs(x[i] - y[i]), p);
    return p == 2 ? sqrt(sum) : p == 0 || p == 1 || isinf(p) ? sum : pow(sum, 1 / p);
}

/* The derivative of that by x[i], times g. */
static double slope(double difference, double distance, double p, double g) {
    double sign = difference > 0 ? 1 : difference < 0 ? -1 : 0;
    if (p == 0 || distance == 0 || sign == 0)
        return 0;
    if (p == 1)
        return sign * g;
    if (isinf(p))
        return fabs(difference) == distance ? sign * g : 0;
    return sign * pow(fabs(difference) / distance, p - 1) * g;
}

static char *place(const job *j, int view, int64_t batch, int64_t row) {
    const dp_tensor *t = &j->plan->tensors[j->s->slot[view]].view;
    return (char *)dp_tensor_data(t) +
           (dp_loop_offset(&j->s->batch, view, batch) + row * j->s->row[view]) * (int64_t)dp_element_bytes(t->element);
}

static void load(const job *j, int view, int64_t batch, int64_t row, int64_t n, double *to) {
    dp_doubles_load(j->plan->tensors[j->s->slot[view]].view.element, place(j, view, batch, row), j->s->column[view], n,
                    to);
}

static void store(const job *j, int64_t batch, int64_t row, int64_t first, int64_t n, const double *from) {
    const int element = j->plan->tensors[j->s->slot[VIEW_OUT]].view.element;
    const int64_t step = j->s->column[VIEW_OUT] * (int64_t)dp_element_bytes(element);
    dp_doubles_store(element, place(j, VIEW_OUT, batch, row) + first * step, j->s->column[VIEW_OUT], n, from);
}

/* BLOCK rows of x1 of one batch against all rows of x2, BLOCK at a time. */
static void cdist_tile(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    int64_t blocks = (s->n1 + BLOCK - 1) / BLOCK, batch = (int64_t)tile / blocks,
            first = (int64_t)tile % blocks * BLOCK, last = first + BLOCK < s->n1 ? first + BLOCK : s->n1;
    double *x1 = scratch, *x2 = x1 + BLOCK * s->m, row[BLOCK];
    for (int64_t i = first; i < last; i++)
        load(j, VIEW_X1, batch, i, s->m, x1 + (i - first) * s->m);
    for (int64_t k = 0; k < s->n2; k += BLOCK) {
        int64_t n = k + BLOCK < s->n2 ? BLOCK : s->n2 - k;
        for (int64_t i = 0; i < n; i++)
            load(j, VIEW_X2, batch, k + i, s->m, x2 + i * s->m);
        for (int64_t i = first; i < last; i++) {
            for (int64_t c = 0; c < n; c++)
                row[c] = distance(x1 + (i - first) * s->m, x2 + c * s->m, s->m, s->p);
            store(j, batch, i, k, n, row);
        }
    }
}

/* One row of x1. scratch: the row, its gradient, a row of x2, a row of distances and of their gradients. */
static void backward_tile(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    int64_t batch = (int64_t)tile / s->n1, i = (int64_t)tile % s->n1;
    double *x1 = scratch, *sum = x1 + s->m, *x2 = sum + s->m, *far = x2 + s->m, *g = far + s->n2;
    load(j, VIEW_X1, batch, i, s->m, x1);
    load(j, VIEW_GRAD, batch, i, s->n2, g);
    load(j, VIEW_DISTANCE, batch, i, s->n2, far);
    memset(sum, 0, (size_t)s->m * sizeof *sum);
    for (int64_t k = 0; k < s->n2; k++) {
        load(j, VIEW_X2, batch, k, s->m, x2);
        for (int64_t c = 0; c < s->m; c++)
            sum[c] += slope(x1[c] - x2[c], far[k], s->p, g[k]);
    }
    store(j, batch, i, 0, s->m, sum);
}

/* A row of self against those behind it. */
static void pdist_tile(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    int64_t i = (int64_t)tile, at = i * (2 * s->n1 - i - 1) / 2;
    double *x = scratch, *y = x + s->m;
    load(j, VIEW_X1, 0, i, s->m, x);
    for (int64_t k = i + 1; k < s->n1; k++, at++) {
        load(j, VIEW_X1, 0, k, s->m, y);
        double result = distance(x, y, s->m, s->p);
        store(j, 0, 0, at, 1, &result);
    }
}

static dp_status run_cdist(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {plan, s};
    return dp_tiles_run((size_t)(s->batch.count * ((s->n1 + BLOCK - 1) / BLOCK)),
                        (size_t)(2 * BLOCK * s->m) * sizeof(double) + 64, cdist_tile, &j);
}
static dp_status run_backward(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {plan, s};
    return dp_tiles_run((size_t)(s->batch.count * s->n1), (size_t)(3 * s->m + 2 * s->n2) * sizeof(double) + 64,
                        backward_tile, &j);
}
static dp_status run_pdist(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {plan, s};
    return dp_tiles_run((size_t)s->n1, (size_t)(2 * s->m) * sizeof(double) + 64, pdist_tile, &j);
}

static dp_status take_norm(const dp_arg *arg, double *out_p) {
    double p = dp_arg_real(arg, 2);
    *out_p = p == -1 ? INFINITY : p;
    return *out_p >= 0
               ? DP_OK
               : dp_fail(DP_ERR_ARGUMENT, "%s is %g, but must be 0, positive, or -1 for infinite", arg->name, p);
}

static void add_view(state *s, int view, const dp_arg *arg) {
    dp_tensor lead = *arg->as.tensor;
    lead.rank -= 2;
    s->slot[view] = arg->slot;
    s->row[view] = arg->as.tensor->strides[lead.rank];
    s->column[view] = arg->as.tensor->strides[lead.rank + 1];
    dp_loop_add(&s->batch, &lead);
}

static dp_status finish(const dp_operator_call *call, const state *s, dp_status (*run)(dp_plan *), dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    *(state *)dp_plan_state(plan) = *s;
    plan->path = "rows in double";
    *out_plan = plan;
    return DP_OK;
}

/* x1 and x2 and the dims of their distances. */
static dp_status measure(const dp_operator_call *call, const dp_arg *x1, const dp_arg *x2, int64_t *dims, int *out_rank,
                         state *s) {
    const dp_tensor *a = x1->as.tensor, *b = x2->as.tensor;
    dp_tensor lead[] = {*a, *b};
    const dp_tensor *leads[] = {&lead[0], &lead[1]};
    const char *names[] = {x1->name, x2->name};
    dp_status status = dp_element_expect(x1, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(x2, call->op->elements);
    if (status != DP_OK)
        return status;
    if (a->rank < 2 || b->rank < 2 || a->dims[a->rank - 1] != b->dims[b->rank - 1])
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s must have at least 2 dimensions, and the last of the same size",
                       x1->name, x2->name);
    lead[0].rank -= 2;
    lead[1].rank -= 2;
    status = dp_broadcast(leads, names, 2, dims, out_rank);
    if (status != DP_OK)
        return status;
    s->m = a->dims[a->rank - 1];
    s->n1 = a->dims[a->rank - 2];
    s->n2 = b->dims[b->rank - 2];
    dp_loop_begin(&s->batch, dims, *out_rank);
    dims[(*out_rank)++] = s->n1;
    dims[(*out_rank)++] = s->n2;
    return DP_OK;
}

static dp_status cdist(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    int64_t dims[DP_TENSOR_DIMS + 2];
    int rank;
    state s = {.n1 = 0};
    dp_status status = measure(call, &in[0], &in[1], dims, &rank, &s);
    if (status == DP_OK)
        status = take_norm(&in[2], &s.p);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "rows of x1 by rows of x2");
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status != DP_OK)
        return status;
    add_view(&s, VIEW_OUT, out);
    add_view(&s, VIEW_X1, &in[0]);
    add_view(&s, VIEW_X2, &in[1]);
    return finish(call, &s, run_cdist, out_plan);
}

static dp_status cdist_backward(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *grad = &call->in[0], *x1 = &call->in[1], *x2 = &call->in[2], *far = &call->in[3],
                 *out = &call->out[0];
    const dp_arg *all[] = {grad, far, out};
    int64_t dims[DP_TENSOR_DIMS + 2];
    int rank;
    state s = {.n1 = 0};
    dp_status status = measure(call, x1, x2, dims, &rank, &s);
    if (status == DP_OK)
        status = take_norm(&call->in[4], &s.p);
    for (int i = 0; i < 3 && status == DP_OK; i++) {
        status = dp_element_expect(all[i], call->op->elements);
        dims[rank - 1] = all[i] == out ? s.m : s.n2;
        if (status == DP_OK)
            status = dp_shape_expect(all[i]->as.tensor, all[i]->name, dims, rank, "what goes with x1 and x2");
    }
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status != DP_OK)
        return status;
    add_view(&s, VIEW_OUT, out);
    add_view(&s, VIEW_X1, x1);
    add_view(&s, VIEW_X2, x2);
    add_view(&s, VIEW_GRAD, grad);
    add_view(&s, VIEW_DISTANCE, far);
    return finish(call, &s, run_backward, out_plan);
}

static dp_status pdist(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *self = &call->in[0], *out = &call->out[0];
    const dp_tensor *t = self->as.tensor;
    state s = {.n1 = 0};
    dp_status status = dp_element_expect(self, call->op->elements);
    if (status == DP_OK && (t->rank != 2 || t->dims[0] > 1 << 30))
        status = dp_fail(DP_ERR_ARGUMENT, "%s must have 2 dimensions, the first at most 2^30", self->name);
    if (status == DP_OK)
        status = take_norm(&call->in[1], &s.p);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status != DP_OK)
        return status;
    s.n1 = t->dims[0];
    s.m = t->dims[1];
    int64_t pairs = s.n1 * (s.n1 - 1) / 2;
    status = dp_shape_expect(out->as.tensor, out->name, &pairs, 1, "one for each pair of rows");
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status != DP_OK)
        return status;
    dp_loop_begin(&s.batch, NULL, 0);
    dp_loop_add_strides(&s.batch, (const int64_t[]){0});
    s.slot[VIEW_OUT] = out->slot;
    s.column[VIEW_OUT] = out->as.tensor->strides[0];
    add_view(&s, VIEW_X1, self);
    return finish(call, &s, run_pdist, out_plan);
}

#define EXPORT(function)                                                                                               \
    extern const dp_function dp_linalg_##function;                                                                     \
    const dp_function dp_linalg_##function = {#function, function, NULL, 0, 0};
EXPORT(cdist)
EXPORT(cdist_backward)
EXPORT(pdist)
