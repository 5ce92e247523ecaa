/*
 * rotary.c - rotary position embedding, out = x * cos + turned(x) * sin along the last dimension, in float:
 *   embed(x, cos, sin, mode, matrix) -> out         a matrix that turns x is not offered
 *   apply(query, key, cos, sin, layout, mode's name) -> query, key
 * With x1, x2 the halves (half), the elements with even and odd numbers (interleave): turned(x) puts -x2 in the place
 * of x1 and x1 in the place of x2. quarter: the same in each half of x. interleave_half: the elements with even numbers
 * are moved to the first half and the others to the second, then as half.
 * cos and sin are broadcast to x; out may be x.
 */
#include "ops/rotary/rotary.h"

#include <string.h>

#include "ops/lines.h"

typedef enum mode { HALF, INTERLEAVE, QUARTER, INTERLEAVE_HALF, MODES } mode;
static const char *const mode_names[MODES] = {"half", "interleave", "quarter", "interleave-half"};

enum { TENSORS = 2, OUT = 0, X, COS, SIN };

typedef struct state {
    int n_tensors;
    mode mode;
    dp_lines lines[TENSORS];
} state;

static void turn(mode how, float *y, const float *x, const float *c, const float *s, size_t n, float *parted) {
    const dp_line_table *t = dp_line_current();
    const size_t half = n / 2, quarter = n / 4;
    switch (how) {
    case INTERLEAVE:
        t->turn_pairs(y, x, c, s, half);
        return;
    case QUARTER:
        t->turn(y, y + quarter, x, x + quarter, c, c + quarter, s, s + quarter, quarter);
        t->turn(y + half, y + half + quarter, x + half, x + half + quarter, c + half, c + half + quarter, s + half,
                s + half + quarter, quarter);
        return;
    case INTERLEAVE_HALF:
        for (size_t i = 0; i < half; i++) {
            parted[i] = x[2 * i];
            parted[half + i] = x[2 * i + 1];
        }
        x = parted;
        break;
    default:
        break;
    }
    t->turn(y, y + half, x, x + half, c, c + half, s, s + half, half);
}

static void run_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const state *s = dp_plan_state(plan);
    size_t n = (size_t)lines->inner.count;
    for (size_t line = begin; line < end; line++) {
        const float *x = dp_lines_load(lines, plan, X, (int64_t)line, buffers);
        const float *c = dp_lines_load(lines, plan, COS, (int64_t)line, buffers + n);
        const float *sine = dp_lines_load(lines, plan, SIN, (int64_t)line, buffers + 2 * n);
        float *place = dp_lines_place(lines, plan, OUT, (int64_t)line),
              *y = place && place != x ? place : buffers + 3 * n;
        turn(s->mode, y, x, c, sine, n, buffers + 4 * n);
        if (y != place)
            dp_lines_store(lines, plan, OUT, (int64_t)line, y);
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    dp_status status = DP_OK;
    for (int i = 0; i < s->n_tensors && status == DP_OK; i++)
        status = dp_lines_run(plan, &s->lines[i], 5, run_lines);
    return status;
}

dp_status dp_rotary_angle_strides(const dp_arg *arg, const dp_arg *x, int64_t *strides) {
    const dp_tensor *t = arg->as.tensor, *whole = x->as.tensor;
    bool fits = t->rank <= whole->rank && t->rank >= 1 && t->dims[t->rank - 1] == whole->dims[whole->rank - 1];
    memset(strides, 0, DP_TENSOR_DIMS * sizeof *strides);
    for (int d = 0; d < t->rank && fits; d++) {
        int to = whole->rank - t->rank + d;
        fits = t->dims[d] == 1 || t->dims[d] == whole->dims[to];
        strides[to] = t->dims[d] == 1 ? 0 : t->strides[d];
    }
    if (!fits) {
        char one[160], other[160];
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has the shape %s, but must be %s's, %s, where all dimensions but the last may be 1",
                       arg->name, dp_dims_describe(t->dims, t->rank, one, sizeof one), x->name,
                       dp_dims_describe(whole->dims, whole->rank, other, sizeof other));
    }
    return DP_OK;
}

/* A view of cos or sin with the dims of x. */
static dp_status add_angle(dp_lines *lines, const dp_arg *arg, const dp_arg *x, const bool *in_line) {
    int64_t strides[DP_TENSOR_DIMS];
    dp_status status = dp_rotary_angle_strides(arg, x, strides);
    if (status == DP_OK)
        dp_lines_add(lines, arg, strides, in_line, x->as.tensor->rank);
    return status;
}

static dp_status build(const dp_operator_call *call, dp_lines *lines, mode how, const dp_arg *x, const dp_arg *c,
                       const dp_arg *s, const dp_arg *out) {
    const dp_arg *all[] = {x, c, s, out};
    dp_status status = DP_OK;
    for (int i = 0; i < 4 && status == DP_OK; i++)
        status = dp_element_expect(all[i], call->op->elements);
    const dp_tensor *t = x->as.tensor;
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, t->dims, t->rank, "the input");
    if (status != DP_OK)
        return status;
    int64_t part = how == QUARTER ? 4 : 2;
    if (!t->rank || t->dims[t->rank - 1] % part)
        return dp_fail(DP_ERR_ARGUMENT, "%s: the last dimension is %lld, but must be a multiple of %lld", x->name,
                       t->rank ? (long long)t->dims[t->rank - 1] : 0, (long long)part);
    bool in_line[DP_TENSOR_DIMS] = {false};
    in_line[t->rank - 1] = true;
    dp_lines_begin(lines, t->dims, t->rank, in_line);
    dp_lines_add(lines, out, out->as.tensor->strides, in_line, t->rank);
    dp_lines_add(lines, x, t->strides, in_line, t->rank);
    status = add_angle(lines, c, x, in_line);
    if (status == DP_OK)
        status = add_angle(lines, s, x, in_line);
    dp_lines_end(lines);
    return status;
}

static dp_status finish(const dp_operator_call *call, const state *s, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = "lines";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_embed(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    int64_t number = dp_arg_integer(&a[3], 0);
    if (a[4].kind == DP_ARG_TENSOR && dp_tensor_count(a[4].as.tensor))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but a matrix for the rotation is not offered: pass NULL",
                       a[4].name);
    if (number < 0 || number >= MODES)
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s is %lld, but must be 0 (half), 1 (interleave), 2 (quarter) or 3 "
                       "(interleave-half)",
                       a[3].name, (long long)number);
    state s = {.n_tensors = 1, .mode = (mode)number};
    dp_status status = build(call, &s.lines[0], s.mode, &a[0], &a[1], &a[2], &call->out[0]);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

static dp_status prepare_apply(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    int64_t layout = dp_arg_integer(&a[4], 0);
    if (layout < 1 || layout > 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 1 (BSND), 2 (SBND), 3 (BNSD) or 4 (TND)", a[4].name,
                       (long long)layout);
    int rank = layout == 4 ? 3 : 4;
    for (int i = 0; i < TENSORS; i++)
        if (a[i].as.tensor->rank != rank)
            return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have %d for %s %lld", a[i].name,
                           a[i].as.tensor->rank, rank, a[4].name, (long long)layout);
    state s = {.n_tensors = TENSORS};
    const char *name = a[5].kind == DP_ARG_TEXT ? a[5].as.text : mode_names[HALF];
    while (s.mode < MODES && strcmp(name, mode_names[s.mode]) != 0)
        s.mode++;
    if (s.mode == MODES)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.32s\", but must be half, interleave, quarter or interleave-half",
                       a[5].name, name);
    dp_status status = DP_OK;
    for (int i = 0; i < TENSORS && status == DP_OK; i++)
        status = build(call, &s.lines[i], s.mode, &a[i], &a[2], &a[3], &call->out[i]);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

extern const dp_function dp_rotary_embed, dp_rotary_apply;
const dp_function dp_rotary_embed = {"embed", prepare_embed, NULL, 0x10, 0};
const dp_function dp_rotary_apply = {"apply", prepare_apply, NULL, 0x20, 0};
