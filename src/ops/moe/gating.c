/*
 * gating.c - which experts a token goes to, in float; of equal scores the lower expert number wins:
 *   softmax(x, finished, k, renorm, wanted) -> y, expert, row, softmax
 *       renorm 0: y = the k greatest of softmax(x); 1: softmax of the k greatest of x. Where `finished`, the expert is
 *       the number of experts. row[i][j] = j * rows + i. softmax(x) itself is written when wanted.
 *   top_k(x, bias, k, groups taken, groups, group score, renorm, norm, wanted, factor, eps) -> y, expert, norm
 *       n = softmax (norm 0) or sigmoid (1) of x; experts are chosen by n + bias, from the groups whose greatest (group
 *       score 0) or sum of the two greatest (1) is greatest; y = n of the chosen, * factor; with sigmoid divided by
 *       its sum + eps before
 */
#include <math.h>
#include <string.h>

#include "ops/lines.h"

enum { SCORES_BUFFERS = 6 };

typedef struct state {
    dp_lines in, out;      /* lines of experts, and the same lines of k */
    int x, full, finished; /* views of in; -1 absent */
    int y, expert, row;    /* views of out */
    int64_t k, renorm;
    /* top_k only */
    bool grouped, sigmoid;
    int bias;
    int64_t groups_taken, groups;
    bool by_two;
    float factor, eps;
} state;

static void put(dp_plan *plan, const dp_lines *lines, int view, int64_t line, int64_t j, int64_t value) {
    if (view < 0)
        return;
    int32_t *data = dp_plan_data(plan, lines->slot[view]);
    data[dp_loop_offset(&lines->outer, view, line) + dp_loop_offset(&lines->inner, view, j)] = (int32_t)value;
}

/* The numbers of the k greatest of n scores, in falling order; `taken` has room for n marks. NaNs come last. */
static void choose(const float *scores, int64_t n, int64_t k, int64_t *out, bool *taken) {
    memset(taken, 0, (size_t)n * sizeof *taken);
    for (int64_t j = 0; j < k; j++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!taken[i] && (best < 0 || scores[i] > scores[best] || (isnan(scores[best]) && !isnan(scores[i]))))
                best = i;
        out[j] = best;
        taken[best] = true;
    }
}

static void softmax(float *y, const float *x, int64_t n) {
    const dp_line_table *t = dp_line_current();
    float max = t->max(x, (size_t)n);
    if (isinf(max))
        max = max > 0 ? max : 0;
    double sum = t->exp(y, x, (size_t)n, max);
    t->scale(y, y, (size_t)n, (float)(1 / sum));
}

static void sigmoid(float *y, const float *x, int64_t n) {
    dp_elementwise_fn run = dp_elementwise_current()->run[DP_ELEMENTWISE_sigmoid][DP_COMPUTE_F32];
    const double none[4] = {0};
    for (int64_t at = 0, count; at < n; at += count) {
        count = n - at < DP_TILE ? n - at : DP_TILE;
        run(y + at, x + at, x + at, x + at, none, (size_t)count);
    }
}

/* Scores outside the best groups become -infinity. */
static void keep_groups(const state *s, float *scores, int64_t n, float *group_scores, int64_t *order, bool *taken) {
    const int64_t size = n / s->groups;
    for (int64_t g = 0; g < s->groups; g++) {
        float first = -INFINITY, second = -INFINITY;
        for (int64_t i = g * size; i < (g + 1) * size; i++) {
            if (scores[i] > first) {
                second = first;
                first = scores[i];
            } else if (scores[i] > second) {
                second = scores[i];
            }
        }
        group_scores[g] = s->by_two ? first + second : first;
    }
    choose(group_scores, s->groups, s->groups_taken, order, taken);
    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t i = g * size; i < (g + 1) * size && !taken[g]; i++)
            scores[i] = -INFINITY;
}

static void run_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const state *s = dp_plan_state(plan);
    const int64_t n = lines->inner.count, rows = lines->outer.count;
    float *norm = buffers + n, *scores = buffers + 2 * n, *y = scores, *room = buffers + 3 * n;
    int64_t *order = (int64_t *)(void *)(buffers + 4 * n); /* room for n of them */
    bool *taken = (bool *)room;
    for (size_t line = begin; line < end; line++) {
        const int64_t at = (int64_t)line;
        const float *x = dp_lines_load(lines, plan, s->x, at, buffers);
        (s->sigmoid ? sigmoid : softmax)(norm, x, n);
        if (s->full >= 0)
            dp_lines_store(lines, plan, s->full, at, norm);
        memcpy(scores, s->renorm ? x : norm, (size_t)n * sizeof *scores);
        if (s->grouped && s->bias >= 0) {
            const float *bias = dp_lines_load(lines, plan, s->bias, at, room);
            dp_line_current()->add(scores, scores, bias, (size_t)n);
        }
        if (s->grouped && s->groups > 1) {
            float group_score[DP_TILE];
            keep_groups(s, scores, n, group_score, order, taken);
        }
        choose(scores, n, s->k, order, taken);
        double sum = 0;
        for (int64_t j = 0; j < s->k; j++) { /* into the scores, which nobody needs any more */
            y[j] = s->renorm ? x[order[j]] : norm[order[j]];
            sum += y[j];
        }
        if (s->renorm)
            softmax(y, y, s->k);
        for (int64_t j = 0; s->grouped && j < s->k; j++)
            y[j] = (float)((s->sigmoid ? y[j] / (sum + (double)s->eps) : y[j]) * (double)s->factor);
        dp_lines_store(&s->out, plan, s->y, at, y);
        float finished = 0;
        if (s->finished >= 0)
            lines->load[s->finished](&finished,
                                     (const char *)dp_plan_data(plan, lines->slot[s->finished]) +
                                         dp_loop_offset(&lines->outer, s->finished, at),
                                     1);
        for (int64_t j = 0; j < s->k; j++) {
            put(plan, &s->out, s->expert, at, j, finished != 0 ? n : order[j]);
            put(plan, &s->out, s->row, at, j, j * rows + at);
        }
    }
}

static dp_status run(dp_plan *plan) {
    return dp_lines_run(plan, &((state *)dp_plan_state(plan))->in, SCORES_BUFFERS + 1, run_lines);
}

/* A view of the lines with the dims of x, and k for the last of outputs of k. */
static dp_status add(dp_lines *lines, const dp_arg *arg, uint32_t elements, const int64_t *dims, int rank,
                     const bool *in_line, int *out_view) {
    *out_view = -1;
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    dp_status status = dp_element_expect(arg, elements);
    if (status == DP_OK)
        status = dp_shape_expect(arg->as.tensor, arg->name, dims, rank, "the input, or the experts chosen");
    if (status == DP_OK)
        *out_view = dp_lines_add(lines, arg, arg->as.tensor->strides, in_line, rank);
    return status;
}

typedef struct request {
    const dp_arg *x, *finished, *bias, *k, *y, *expert, *row, *full;
} request;

static dp_status build(const dp_operator_call *call, const request *r, state *s, dp_plan **out_plan) {
    const dp_tensor *t = r->x->as.tensor;
    const uint32_t floats = DP_EL_HALVES | DP_EL_BIT(DP_F32), whole = DP_EL_BIT(DP_I32);
    dp_status status = dp_element_expect(r->x, floats);
    if (status == DP_OK && (t->rank < 1 || t->rank > 3))
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 to 3, the last of experts", r->x->name,
                         t->rank);
    if (status != DP_OK)
        return status;
    const int64_t experts = t->dims[t->rank - 1];
    s->k = dp_arg_integer(r->k, 1);
    if (s->k < 1 || s->k > experts)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 1 to the number of experts, %lld", r->k->name,
                       (long long)s->k, (long long)experts);
    int64_t dims[DP_TENSOR_DIMS], strides[DP_TENSOR_DIMS] = {0};
    bool in_line[DP_TENSOR_DIMS] = {false};
    memcpy(dims, t->dims, sizeof dims);
    in_line[t->rank - 1] = true;
    dp_lines_begin(&s->in, dims, t->rank, in_line);
    s->finished = s->bias = -1;
    status = add(&s->in, r->x, floats, dims, t->rank, in_line, &s->x);
    if (status == DP_OK)
        status = add(&s->in, r->full, floats, dims, t->rank, in_line, &s->full);
    if (status == DP_OK && r->finished->kind == DP_ARG_TENSOR) {
        status = dp_element_expect(r->finished, DP_EL_BIT(DP_EL_BOOL));
        if (status == DP_OK)
            status = dp_shape_expect(r->finished->as.tensor, r->finished->name, dims, t->rank - 1, "one per row");
        memcpy(strides, r->finished->as.tensor->strides, (size_t)(t->rank - 1) * sizeof *strides);
        s->finished = dp_lines_add(&s->in, r->finished, strides, in_line, t->rank);
    }
    if (status == DP_OK && r->bias->kind == DP_ARG_TENSOR) {
        status = dp_element_expect(r->bias, floats);
        if (status == DP_OK)
            status = dp_shape_expect(r->bias->as.tensor, r->bias->name, &experts, 1, "one per expert");
        memset(strides, 0, sizeof strides);
        strides[t->rank - 1] = r->bias->as.tensor->rank ? r->bias->as.tensor->strides[0] : 0;
        s->bias = dp_lines_add(&s->in, r->bias, strides, in_line, t->rank);
    }
    dims[t->rank - 1] = s->k;
    dp_lines_begin(&s->out, dims, t->rank, in_line);
    if (status == DP_OK)
        status = add(&s->out, r->y, floats, dims, t->rank, in_line, &s->y);
    if (status == DP_OK)
        status = add(&s->out, r->expert, whole, dims, t->rank, in_line, &s->expert);
    if (status == DP_OK)
        status = add(&s->out, r->row, whole, dims, t->rank, in_line, &s->row);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static const dp_arg none = {.name = "absent", .kind = DP_ARG_ABSENT};

static dp_status prepare_softmax(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in, *o = call->out;
    state s = {.renorm = dp_arg_integer(&a[3], 0)};
    if (s.renorm != 0 && s.renorm != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 or 1", a[3].name, (long long)s.renorm);
    const bool wanted = dp_arg_integer(&a[4], 0) != 0;
    if (wanted && s.renorm)
        return dp_fail(DP_ERR_ARGUMENT, "%s is true, but with %s 1 there is no softmax of all experts", a[4].name,
                       a[3].name);
    if (wanted && o[3].kind != DP_ARG_TENSOR)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s asks for it", o[3].name, a[4].name);
    const request r = {&a[0], &a[1], &none, &a[2], &o[0], &o[1], &o[2], wanted ? &o[3] : &none};
    return build(call, &r, &s, out_plan);
}

static dp_status prepare_top_k(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in, *o = call->out;
    state s = {.grouped = true};
    const int64_t experts = a[0].as.tensor->rank ? a[0].as.tensor->dims[a[0].as.tensor->rank - 1] : 0;
    const int64_t score = dp_arg_integer(&a[5], 0), norm = dp_arg_integer(&a[7], 0);
    s.groups_taken = dp_arg_integer(&a[3], 1);
    s.groups = dp_arg_integer(&a[4], 1);
    s.by_two = score == 1;
    s.sigmoid = norm == 1;
    s.factor = (float)dp_arg_real(&a[9], 1);
    s.eps = (float)dp_arg_real(&a[10], 0);
    if (s.groups < 1 || s.groups > DP_TILE || experts % s.groups)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 1 to %d and divide the number of experts, %lld",
                       a[4].name, (long long)s.groups, DP_TILE, (long long)experts);
    if (s.groups_taken < 1 || s.groups_taken > s.groups ||
        s.groups_taken * (experts / s.groups) < dp_arg_integer(&a[2], 1))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 1 to %s (%lld), with at least %s experts together",
                       a[3].name, (long long)s.groups_taken, a[4].name, (long long)s.groups, a[2].name);
    if (score != 0 && score != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (greatest) or 1 (two greatest)", a[5].name,
                       (long long)score);
    if (dp_arg_integer(&a[6], 0) != 0)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is %lld, but only 0 is offered", a[6].name,
                       (long long)dp_arg_integer(&a[6], 0));
    if (norm != 0 && norm != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (softmax) or 1 (sigmoid)", a[7].name,
                       (long long)norm);
    const bool wanted = dp_arg_integer(&a[8], 0) != 0;
    if (wanted && o[2].kind != DP_ARG_TENSOR)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s asks for it", o[2].name, a[8].name);
    const request r = {&a[0], &none, &a[1], &a[2], &o[0], &o[1], &none, wanted ? &o[2] : &none};
    return build(call, &r, &s, out_plan);
}

extern const dp_function dp_moe_softmax, dp_moe_top_k;
const dp_function dp_moe_softmax = {"softmax", prepare_softmax, NULL, 2, 12};
const dp_function dp_moe_top_k = {"top_k", prepare_top_k, NULL, 2, 4};
