/*
 * gradient.c - gradients of norms of lines, computed in float with sums in double. With v the normalised line, n its
 * length and h = g * gamma:
 *   dv = rstd (h - mean(h) - (v - mean) rstd^2 mean(h (v - mean))); of RMS norm without mean(h), and with mean 0
 *   dgamma = sum over lines of g (v - mean) rstd, dbeta = sum over lines of g
 *   layer_gradient(g, x, normalizedShape, mean, rstd, gamma, beta, mask) -> dx, dgamma, dbeta
 *   add_layer_gradient(g, x1, x2, rstd, mean, gamma, dsum) -> dx, dgamma, dbeta    v = x1 + x2, dx = dv + dsum
 *   deep_gradient(g, x, gx, gamma, mean, rstd, alpha) -> dx, dgx, dbeta, dgamma    v = alpha x + gx, dx = alpha dv
 *   rms_gradient(g, x, rstd, gamma) -> dx, dgamma
 * Sums over lines are made in parts of fixed size and then added up, so that they do not depend on the threads.
 */
#include <string.h>

#include "ops/norm/norm.h"
#include "ops/tiles.h"
#include "runtime/pool.h"

/* The arguments by role; NULL for those a function does not have or that are not wanted. */
typedef struct roles {
    const dp_arg *g, *x, *x2, *mean, *rstd, *gamma, *dsum, *dx, *dx2, *dgamma, *dbeta;
    const dp_arg *shape;
    double alpha;
    bool centred;
} roles;

typedef struct state {
    dp_lines lines; /* absent views are -1 */
    int dx, dx2, g, x, x2, mean, rstd, gamma, dsum, dgamma, dbeta;
    bool centred;
    float alpha;
    int64_t parts, lines_per_part;
    uint64_t sums_at; /* double [part][dgamma, dbeta][n] */
    size_t scratch_bytes;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
} job;

enum { BUFFERS = 7 };

static void one_line(const job *j, int64_t line, const float *gamma, float *buffers, double *dgamma, double *dbeta) {
    const dp_line_table *t = dp_line_current();
    const state *s = j->s;
    const dp_lines *lines = &s->lines;
    const size_t n = (size_t)lines->inner.count;
    float *spare = dp_norm_buffer(buffers, n, 3);
    const float *g = dp_lines_load(lines, j->plan, s->g, line, dp_norm_buffer(buffers, n, 1));
    const float *x = dp_lines_load(lines, j->plan, s->x, line, dp_norm_buffer(buffers, n, 2)), *h = g;
    if (s->x2 >= 0) {
        float *v = dp_norm_buffer(buffers, n, 4);
        t->scale(v, x, n, s->alpha);
        t->add(v, v, dp_lines_load(lines, j->plan, s->x2, line, spare), n);
        x = v;
    }
    double mean = s->centred ? dp_lines_load_one(lines, j->plan, s->mean, line) : 0;
    double rstd = dp_lines_load_one(lines, j->plan, s->rstd, line);
    for (size_t i = 0; i < n && dgamma; i++)
        dgamma[i] += g[i] * (x[i] - mean) * rstd;
    for (size_t i = 0; i < n && dbeta; i++)
        dbeta[i] += g[i];
    if (s->dx < 0 && s->dx2 < 0)
        return;
    if (gamma) {
        float *product = dp_norm_buffer(buffers, n, 5);
        t->affine(product, g, n, 0, 1, gamma, NULL);
        h = product;
    }
    double slope = -rstd * rstd * rstd * t->products(x, h, n, mean) / (double)n;
    double shift = s->centred ? -rstd * t->sum(h, n) / (double)n - slope * mean : 0;
    float *dv = dp_norm_buffer(buffers, n, 6);
    t->combine(dv, h, x, n, (float)rstd, (float)slope, (float)shift);
    if (s->dx2 >= 0)
        dp_lines_store(lines, j->plan, s->dx2, line, dv);
    if (s->alpha != 1)
        t->scale(dv, dv, n, s->alpha);
    if (s->dsum >= 0)
        t->add(dv, dv, dp_lines_load(lines, j->plan, s->dsum, line, spare), n);
    if (s->dx >= 0)
        dp_lines_store(lines, j->plan, s->dx, line, dv);
}

static double *sums_of(const job *j, int64_t part, int which) {
    int64_t n = j->s->lines.inner.count;
    return (double *)dp_workspace_at(j->plan, j->s->sums_at) + (part * 2 + which) * n;
}

static void run_part(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    const int64_t n = s->lines.inner.count, first = (int64_t)tile * s->lines_per_part;
    const int64_t last =
        first + s->lines_per_part < s->lines.outer.count ? first + s->lines_per_part : s->lines.outer.count;
    double *dgamma = s->dgamma >= 0 ? sums_of(j, (int64_t)tile, 0) : NULL,
           *dbeta = s->dbeta >= 0 ? sums_of(j, (int64_t)tile, 1) : NULL;
    for (int64_t i = 0; i < n; i++) {
        if (dgamma)
            dgamma[i] = 0;
        if (dbeta)
            dbeta[i] = 0;
    }
    const float *gamma = s->gamma >= 0 ? dp_lines_load(&s->lines, j->plan, s->gamma, 0, scratch) : NULL;
    for (int64_t line = first; line < last; line++)
        one_line(j, line, gamma, scratch, dgamma, dbeta);
}

static void store_sums(const job *j, int view, int which) {
    const state *s = j->s;
    const int64_t n = s->lines.inner.count;
    double *total = sums_of(j, 0, which);
    for (int64_t part = 1; part < s->parts; part++)
        for (int64_t i = 0; i < n; i++)
            total[i] += sums_of(j, part, which)[i];
    for (int64_t i = 0; i < n; i++) { /* floats take the doubles' place, behind the one that is read */
        float value = (float)total[i];
        memcpy((char *)total + i * (int64_t)sizeof value, &value, sizeof value);
    }
    dp_lines_store(&s->lines, j->plan, view, 0, (const float *)(const void *)total);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {plan, s};
    if (!s->lines.inner.count)
        return DP_OK;
    dp_status status = dp_tiles_run((size_t)s->parts, s->scratch_bytes, run_part, &j);
    if (status == DP_OK && s->dgamma >= 0)
        store_sums(&j, s->dgamma, 0);
    if (status == DP_OK && s->dbeta >= 0)
        store_sums(&j, s->dbeta, 1);
    return status;
}

/* Strides in the dims of x of a tensor that has its trailing dims (one line) or its leading dims (one value a line). */
static dp_status strides_of(const dp_arg *arg, const dp_tensor *x, int outer_rank, bool of_line, int64_t *strides) {
    const dp_tensor *t = arg->as.tensor;
    memset(strides, 0, DP_TENSOR_DIMS * sizeof *strides);
    if (of_line) {
        dp_status status =
            dp_shape_expect(t, arg->name, x->dims + outer_rank, x->rank - outer_rank, "the normalized dimensions");
        for (int d = outer_rank; d < x->rank && status == DP_OK; d++)
            strides[d] = t->strides[d - outer_rank];
        return status;
    }
    int64_t lines = 1, step = 1;
    bool same = t->rank >= outer_rank;
    for (int d = 0; d < outer_rank; d++) {
        lines *= x->dims[d];
        same = same && t->dims[d] == x->dims[d];
    }
    if (dp_tensor_count(t) != lines || (!same && !dp_tensor_is_contiguous(t)))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have one per line, %lld, in order", arg->name,
                       (long long)dp_tensor_count(t), (long long)lines);
    for (int d = outer_rank - 1; d >= 0; d--) {
        strides[d] = same ? t->strides[d] : step;
        step *= x->dims[d];
    }
    return DP_OK;
}

static dp_status take_outer_rank(const roles *r, int *out_rank) {
    const dp_tensor *x = r->x->as.tensor;
    int inner = r->shape ? (int)r->shape->count : r->gamma->as.tensor->rank;
    if (inner < 1 || inner > x->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1 to %d, the last of %s",
                       (r->shape ? r->shape : r->gamma)->name, inner, x->rank, r->x->name);
    for (int d = 0; d < inner && r->shape; d++)
        if (r->shape->as.integers[d] != x->dims[x->rank - inner + d])
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be %lld, the last dimensions of %s",
                           r->shape->name, d, (long long)r->shape->as.integers[d],
                           (long long)x->dims[x->rank - inner + d], r->x->name);
    *out_rank = x->rank - inner;
    return DP_OK;
}

static dp_status build(const roles *r, state *s) {
    const dp_tensor *x = r->x->as.tensor;
    int outer_rank = 0;
    dp_status status = take_outer_rank(r, &outer_rank);
    if (status != DP_OK)
        return status;
    bool in_line[DP_TENSOR_DIMS];
    for (int d = 0; d < DP_TENSOR_DIMS; d++)
        in_line[d] = d >= outer_rank;
    enum { SAME, LINE, VALUE };
    const struct {
        const dp_arg *arg;
        int *view;
        int shape;
    } all[] = {{r->dx, &s->dx, SAME},         {r->dx2, &s->dx2, SAME},    {r->g, &s->g, SAME},
               {r->x, &s->x, SAME},           {r->x2, &s->x2, SAME},      {r->dsum, &s->dsum, SAME},
               {r->gamma, &s->gamma, LINE},   {r->mean, &s->mean, VALUE}, {r->rstd, &s->rstd, VALUE},
               {r->dgamma, &s->dgamma, LINE}, {r->dbeta, &s->dbeta, LINE}};
    dp_lines_begin(&s->lines, x->dims, x->rank, in_line);
    for (int i = 0; i < 11; i++) {
        *all[i].view = -1;
        if (!dp_norm_present(all[i].arg))
            continue;
        int64_t strides[DP_TENSOR_DIMS];
        const dp_tensor *t = all[i].arg->as.tensor;
        if (all[i].shape == SAME) {
            status = dp_shape_expect(t, all[i].arg->name, x->dims, x->rank, r->x->name);
            memcpy(strides, t->strides, sizeof strides);
        } else {
            status = strides_of(all[i].arg, x, outer_rank, all[i].shape == LINE, strides);
        }
        if (status != DP_OK)
            return status;
        *all[i].view = dp_lines_add(&s->lines, all[i].arg, strides, in_line, x->rank);
    }
    dp_lines_end(&s->lines);
    return DP_OK;
}

static dp_status finish(const dp_operator_call *call, const roles *r, dp_plan **out_plan) {
    state s = {.centred = r->centred, .alpha = (float)r->alpha};
    dp_status status = dp_norm_check_types(call);
    if (status == DP_OK)
        status = build(r, &s);
    if (status != DP_OK)
        return status;
    dp_workspace workspace = {0};
    const int64_t lines = s.lines.outer.count, n = s.lines.inner.count;
    int64_t doubles = 0, floats = 0;
    s.parts = lines < 64 ? lines : 64;
    s.parts = s.parts < 1 ? 1 : s.parts; /* even without lines the sums are 0 */
    s.lines_per_part = (lines + s.parts - 1) / s.parts;
    if (__builtin_mul_overflow(2 * s.parts, n, &doubles) || __builtin_mul_overflow((int64_t)BUFFERS * 4, n, &floats))
        workspace.failed = true;
    else if (s.dgamma >= 0 || s.dbeta >= 0)
        s.sums_at = dp_workspace_take(&workspace, doubles, sizeof(double));
    s.scratch_bytes = (size_t)floats;
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    status = dp_workspace_set(&workspace, plan);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_layer(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *mask = &in[7], *wanted[3];
    if (mask->count != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld values, but must have 3", mask->name, (long long)mask->count);
    for (int i = 0; i < 3; i++) {
        wanted[i] = mask->as.bools[i] ? &call->out[i] : NULL;
        if (wanted[i] && !dp_norm_present(wanted[i]))
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s[%d] asks for it", wanted[i]->name, mask->name, i);
    }
    const roles r = {.g = &in[0],
                     .x = &in[1],
                     .shape = &in[2],
                     .mean = &in[3],
                     .rstd = &in[4],
                     .gamma = &in[5],
                     .dx = wanted[0],
                     .dgamma = wanted[1],
                     .dbeta = wanted[2],
                     .alpha = 1,
                     .centred = true};
    return finish(call, &r, out_plan);
}

static dp_status prepare_add_layer(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    const roles r = {.g = &in[0],
                     .x = &in[1],
                     .x2 = &in[2],
                     .rstd = &in[3],
                     .mean = &in[4],
                     .gamma = &in[5],
                     .dsum = &in[6],
                     .dx = &out[0],
                     .dgamma = &out[1],
                     .dbeta = &out[2],
                     .alpha = 1,
                     .centred = true};
    return finish(call, &r, out_plan);
}

static dp_status prepare_deep(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    const roles r = {.g = &in[0],
                     .x = &in[1],
                     .x2 = &in[2],
                     .gamma = &in[3],
                     .mean = &in[4],
                     .rstd = &in[5],
                     .alpha = dp_arg_real(&in[6], 1),
                     .dx = &out[0],
                     .dx2 = &out[1],
                     .dbeta = &out[2],
                     .dgamma = &out[3],
                     .centred = true};
    return finish(call, &r, out_plan);
}

static dp_status prepare_rms(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = call->out;
    const roles r = {
        .g = &in[0], .x = &in[1], .rstd = &in[2], .gamma = &in[3], .dx = &out[0], .dgamma = &out[1], .alpha = 1};
    return finish(call, &r, out_plan);
}

extern const dp_function dp_norm_layer_gradient, dp_norm_add_layer_gradient, dp_norm_deep_gradient,
    dp_norm_rms_gradient;
const dp_function dp_norm_layer_gradient = {"layer_gradient", prepare_layer, NULL, 1 << 5 | 1 << 6, 7};
const dp_function dp_norm_add_layer_gradient = {"add_layer_gradient", prepare_add_layer, NULL, 1 << 6, 0};
const dp_function dp_norm_deep_gradient = {"deep_gradient", prepare_deep, NULL, 0, 0};
const dp_function dp_norm_rms_gradient = {"rms_gradient", prepare_rms, NULL, 0, 0};
