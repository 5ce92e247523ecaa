/*
 * dynamic.c - quantisation with scales found per line, and the gated unit before it, in float:
 *   dynamic(x, smooth, group index, type) -> y, scale, offset
 *   swiglu(x, smooth, offsets, group index, activate left, mode, group list type, type) -> y, scale
 *   dequant_swiglu(x, weight scale, activation scale, bias, quant scale, quant offset, group index, activate left,
 * mode)
 *       -> y, scale
 * A line t is x; or silu(one half of x) * other half, where x may first be made of integers: (x + integer bias) *
 * weight scale * activation scale + float bias. Then t * smooth, and dynamic      scale = max |t| / high, y = round(t /
 * scale), high 127 or 7; 0 for a line of zeros asymmetric   (an offset is asked for) scale = (max - min) / (high -
 * low), offset = high - max / scale, y = round(t / scale + offset) static       y = round(t + offsets) With a group
 * index, lines of group g use row g of the scales; the index holds the end of every group, or their sizes.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/quant/quant.h"

/* Vectors of scales, a row per group; strides 0 where one serves all. slot -1: absent. */
typedef struct rows {
    int slot, element;
    int64_t group, column;
} rows;

typedef struct state {
    dp_lines in, out;     /* the same lines; those of `in` have two halves when gated */
    int x, scale, offset; /* views of in, out, out */
    dp_quant_side y;
    bool gated, left_first, fixed, counts, integer_bias;
    rows smooth, offsets, weight, bias;
    int token_scale, token_element; /* slot of a scale per line, -1 absent */
    int64_t token_stride;
    int groups_slot, groups_element;
    int64_t n_groups, groups_stride;
    /* of one run */
    int64_t *ends;
} state;

static void load_rows(dp_plan *plan, const rows *r, int64_t group, float *to, size_t n) {
    dp_convert_fn load = dp_elementwise_current()->load[r->element][DP_COMPUTE_F32];
    const int64_t width = (int64_t)dp_element_bytes(r->element);
    const char *from = (const char *)dp_plan_data(plan, r->slot) + group * r->group * width;
    if (r->column == 1)
        load(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            load(to + i, from + (int64_t)i * r->column * width, 1);
}

/* What changes from group to group, as floats. */
typedef struct scales {
    float *smooth, *offsets, *weight, *bias; /* NULL: absent */
} scales;

static scales scales_of(dp_plan *plan, int64_t group, float *buffers, size_t n, size_t whole) {
    const state *s = dp_plan_state(plan);
    scales out = {0};
    const rows *from[] = {&s->smooth, &s->offsets, &s->weight, &s->bias};
    float **to[] = {&out.smooth, &out.offsets, &out.weight, &out.bias};
    for (int i = 0; i < 4; i++) {
        if (from[i]->slot < 0)
            continue;
        *to[i] = buffers + (size_t)i * whole;
        load_rows(plan, from[i], group, *to[i], i < 2 ? n : whole);
    }
    return out;
}

/* The line as floats in `to`, before smoothing; x may be overwritten. */
static void make_line(dp_plan *plan, const state *s, int64_t line, const scales *by, const float *x, float *room,
                      float *to, size_t n) {
    const dp_quant_table *t = dp_quant_current();
    if (!s->gated) {
        memcpy(to, x, n * sizeof *to);
        return;
    }
    if (by->weight || by->bias || s->token_scale >= 0) {
        float token = 1;
        if (s->token_scale >= 0)
            dp_elementwise_current()->load[s->token_element][DP_COMPUTE_F32](
                &token,
                (const char *)dp_plan_data(plan, s->token_scale) +
                    line * s->token_stride * (int64_t)dp_element_bytes(s->token_element),
                1);
        for (size_t i = 0; i < 2 * n; i++) {
            float v = x[i] + (by->bias && s->integer_bias ? by->bias[i] : 0);
            v *= (by->weight ? by->weight[i] : 1) * token;
            room[i] = v + (by->bias && !s->integer_bias ? by->bias[i] : 0);
        }
        x = room;
    }
    t->swiglu(to, s->left_first ? x : x + n, s->left_first ? x + n : x, n);
}

static void quantise(dp_plan *plan, const state *s, int64_t line, const scales *by, float *t, size_t n) {
    const dp_quant_table *run = dp_quant_current();
    const float low = s->y.low, high = s->y.high;
    if (s->fixed) {
        run->round(t, t, by->smooth, by->offsets, n, DP_QUANT_RINT, low, high);
    } else {
        float scale, shift = 0;
        if (by->smooth)
            run->multiply(t, t, by->smooth, n);
        if (s->offset < 0) {
            scale = run->absolute_max(t, n) / high;
        } else {
            float most = -INFINITY, least = INFINITY;
            for (size_t i = 0; i < n; i++) {
                most = t[i] > most ? t[i] : most;
                least = t[i] < least ? t[i] : least;
            }
            scale = (most - least) / (high - low);
            shift = scale > 0 ? high - most / scale : high;
            dp_lines_store_one(&s->out, plan, s->offset, line, shift);
        }
        run->round_by(t, t, scale > 0 ? 1 / scale : 0, shift, n, low, high);
        if (s->scale >= 0)
            dp_lines_store_one(&s->out, plan, s->scale, line, scale);
    }
    dp_quant_store(&s->out, plan, &s->y, line, t);
}

static void run_lines(dp_plan *plan, const dp_lines *lines, size_t begin, size_t end, float *buffers) {
    const state *s = dp_plan_state(plan);
    const size_t whole = (size_t)lines->inner.count, n = s->gated ? whole / 2 : whole;
    float *x = buffers, *room = x + whole, *t = room + whole;
    scales by = {0};
    int64_t group = -1, next = 0;
    for (size_t line = begin; line < end; line++) {
        while (s->ends && next < s->n_groups && (int64_t)line >= s->ends[next])
            next++;
        if (s->ends && next == s->n_groups)
            return; /* what no group has stays as it is */
        if (group != next)
            by = scales_of(plan, group = next, t + whole, n, whole);
        make_line(plan, s, (int64_t)line, &by, dp_lines_load(lines, plan, s->x, (int64_t)line, x), room, t, n);
        quantise(plan, s, (int64_t)line, &by, t, n);
    }
}

/* Ends of the groups, checked. */
static dp_status read_groups(dp_plan *plan, state *s) {
    const int64_t lines = s->in.outer.count, width = (int64_t)dp_element_bytes(s->groups_element);
    int64_t end = 0;
    for (int64_t g = 0; g < s->n_groups; g++) {
        int64_t value;
        dp_elementwise_current()->load[s->groups_element][DP_COMPUTE_I64](
            &value, (const char *)dp_plan_data(plan, s->groups_slot) + g * s->groups_stride * width, 1);
        const int64_t least = s->counts ? 0 : end, most = s->counts ? lines - end : lines;
        if (value < least || value > most)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be %lld to %lld",
                           plan->tensors[s->groups_slot].name, (long long)g, (long long)value, (long long)least,
                           (long long)most);
        s->ends[g] = end = s->counts ? end + value : value;
    }
    return DP_OK;
}

static dp_status run(dp_plan *plan) {
    state *s = dp_plan_state(plan);
    s->ends = NULL;
    dp_status status = DP_OK;
    if (s->groups_slot >= 0) {
        s->ends = dp_alloc(DP_MEM_RUNTIME, (size_t)(s->n_groups + 1) * sizeof *s->ends);
        if (!s->ends)
            return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld groups", (long long)s->n_groups);
        status = read_groups(plan, s);
    }
    if (status == DP_OK)
        status = dp_lines_run(plan, &s->in, 7, run_lines);
    dp_free(s->ends);
    s->ends = NULL;
    return status;
}

/* [n], [1], [groups], [groups, n] or [groups, 1], where groups may be 1. */
static dp_status read_rows(const dp_arg *arg, uint32_t elements, int64_t groups, int64_t n, rows *out) {
    *out = (rows){.slot = -1};
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    if (status != DP_OK)
        return status;
    const bool flat = t->rank == 1 && t->dims[0] == n, per_group = t->rank == 1 && !flat;
    const int64_t have_groups = flat ? 1 : t->rank ? t->dims[0] : 1, have_n = flat ? n : t->rank == 2 ? t->dims[1] : 1;
    if (t->rank < 1 || t->rank > 2 || (have_groups != 1 && have_groups != groups) || (have_n != 1 && have_n != n)) {
        char found[160];
        return dp_fail(DP_ERR_ARGUMENT, "%s has the shape %s, but must have %lld columns or 1, and %lld rows or 1",
                       arg->name, dp_dims_describe(t->dims, t->rank, found, sizeof found), (long long)n,
                       (long long)groups);
    }
    *out = (rows){arg->slot, t->element, have_groups == 1 ? 0 : t->strides[0],
                  have_n == 1 || per_group ? 0 : t->strides[t->rank - 1]};
    return DP_OK;
}

typedef struct request {
    const dp_arg *x, *smooth, *offsets, *weight, *token, *bias, *groups, *y, *scale, *offset;
    uint32_t x_elements;
} request;

static dp_status read_token_scale(const dp_arg *arg, int64_t lines, state *s) {
    s->token_scale = -1;
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    if (dp_tensor_count(t) != lines || t->rank < 1 || (t->rank > 1 && !dp_tensor_is_contiguous(t)))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have one per line, %lld, and be contiguous",
                       arg->name, (long long)dp_tensor_count(t), (long long)lines);
    s->token_scale = arg->slot;
    s->token_element = t->element;
    s->token_stride = t->rank == 1 ? t->strides[0] : 1;
    return dp_element_expect(arg, DP_EL_HALVES | DP_EL_BIT(DP_F32));
}

static dp_status read_group_index(const dp_arg *arg, state *s) {
    s->groups_slot = -1;
    s->n_groups = 1;
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    if (t->rank != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", arg->name, t->rank);
    s->groups_slot = arg->slot;
    s->groups_element = t->element;
    s->groups_stride = t->strides[0];
    s->n_groups = t->dims[0];
    return dp_element_expect(arg, DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64));
}

/* One number per line: the dims without the last. */
static dp_status add_number(state *s, const dp_arg *arg, const int64_t *dims, int rank, const bool *in_line,
                            int *out_view) {
    *out_view = -1;
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    int64_t strides[DP_TENSOR_DIMS] = {0};
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_F32));
    if (status == DP_OK)
        status = dp_shape_expect(arg->as.tensor, arg->name, dims, rank - 1, "one per line");
    memcpy(strides, arg->as.tensor->strides, (size_t)(rank - 1) * sizeof *strides);
    if (status == DP_OK)
        *out_view = dp_lines_add(&s->out, arg, strides, in_line, rank);
    return status;
}

static dp_status build(const request *r, state *s) {
    const dp_tensor *t = r->x->as.tensor;
    dp_status status = dp_element_expect(r->x, r->x_elements);
    if (status == DP_OK && (t->rank < 1 || (s->gated && t->dims[t->rank - 1] % 2)))
        status = dp_fail(DP_ERR_ARGUMENT, "%s: the last dimension is %lld, but must be even to be cut in halves",
                         r->x->name, t->rank ? (long long)t->dims[t->rank - 1] : 0);
    if (status != DP_OK)
        return status;
    int64_t dims[DP_TENSOR_DIMS], lines = 1;
    bool in_line[DP_TENSOR_DIMS] = {false};
    memcpy(dims, t->dims, sizeof dims);
    for (int d = 0; d < t->rank - 1; d++)
        lines *= dims[d];
    in_line[t->rank - 1] = true;
    dp_lines_begin(&s->in, dims, t->rank, in_line);
    s->x = dp_lines_add(&s->in, r->x, t->strides, in_line, t->rank);
    const int64_t whole = dims[t->rank - 1], n = s->gated ? whole / 2 : whole;
    dims[t->rank - 1] = n;
    dp_lines_begin(&s->out, dims, t->rank, in_line);
    status = dp_quant_add(&s->out, r->y, 0, dims, t->rank, in_line, &s->y);
    if (status == DP_OK)
        status = add_number(s, r->scale, dims, t->rank, in_line, &s->scale);
    if (status == DP_OK)
        status = add_number(s, r->offset, dims, t->rank, in_line, &s->offset);
    /* not merged: both must number their lines alike */
    const uint32_t floats = DP_EL_HALVES | DP_EL_BIT(DP_F32);
    if (status == DP_OK)
        status = read_group_index(r->groups, s);
    if (status == DP_OK)
        status = read_rows(r->smooth, floats, s->n_groups, n, &s->smooth);
    if (status == DP_OK)
        status = read_rows(r->offsets, floats, s->n_groups, n, &s->offsets);
    if (status == DP_OK)
        status = read_rows(r->weight, floats, s->n_groups, whole, &s->weight);
    if (status == DP_OK)
        status = read_rows(r->bias, floats | DP_EL_BIT(DP_I32), s->n_groups, whole, &s->bias);
    s->integer_bias = s->bias.slot >= 0 && s->bias.element == DP_I32;
    return status == DP_OK ? read_token_scale(r->token, lines, s) : status;
}

static dp_status finish(const dp_operator_call *call, const state *s, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), s, sizeof *s);
    plan->path = s->y.view < 0 ? "lines of 4-bit integers" : "lines";
    *out_plan = plan;
    return DP_OK;
}

static const dp_arg none = {.name = "absent", .kind = DP_ARG_ABSENT};

/* In static mode no scale is found, so none is written. */
static dp_status read_mode(const dp_arg *arg, request *r, state *s) {
    const char *text = arg->kind == DP_ARG_TEXT ? arg->as.text : "";
    s->fixed = strcmp(text, "static") == 0;
    if (s->fixed)
        r->scale = &none;
    if (s->fixed || strcmp(text, "dynamic") == 0)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.32s\", but must be static or dynamic", arg->name, text);
}

static dp_status prepare_dynamic(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s = {.gated = false};
    const request r = {&a[0],
                       &a[1],
                       &none,
                       &none,
                       &none,
                       &none,
                       &a[2],
                       &call->out[0],
                       &call->out[1],
                       &call->out[2],
                       call->op->elements};
    dp_status status = a[3].kind == DP_ARG_ABSENT ? DP_OK : dp_quant_type_expect(&a[3], &call->out[0]);
    if (status == DP_OK)
        status = build(&r, &s);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

static dp_status prepare_swiglu(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s = {.gated = true, .left_first = dp_arg_integer(&a[4], 0) != 0};
    request r = {
        &a[0], &a[1], &a[2], &none, &none, &none, &a[3], &call->out[0], &call->out[1], &none, call->op->elements};
    const int64_t list_type = dp_arg_integer(&a[6], 0);
    if (list_type != 0 && list_type != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (ends of groups) or 1 (their sizes)", a[6].name,
                       (long long)list_type);
    s.counts = list_type == 1;
    dp_status status = read_mode(&a[5], &r, &s);
    if (status == DP_OK)
        status = dp_quant_type_expect(&a[7], &call->out[0]);
    if (status == DP_OK)
        status = build(&r, &s);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

static dp_status prepare_dequant(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    state s = {.gated = true, .left_first = dp_arg_integer(&a[7], 0) != 0, .counts = true};
    request r = {&a[0],
                 &a[4],
                 &a[5],
                 &a[1],
                 &a[2],
                 &a[3],
                 &a[6],
                 &call->out[0],
                 &call->out[1],
                 &none,
                 call->op->elements | DP_EL_BIT(DP_I32)};
    if (a[0].as.tensor->element == DP_I32 && a[1].kind != DP_ARG_TENSOR)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s of i32 needs it", a[1].name, a[0].name);
    dp_status status = read_mode(&a[8], &r, &s);
    if (status == DP_OK)
        status = build(&r, &s);
    return status == DP_OK ? finish(call, &s, out_plan) : status;
}

extern const dp_function dp_quant_dynamic, dp_quant_swiglu, dp_quant_dequant_swiglu;
const dp_function dp_quant_dynamic = {"dynamic", prepare_dynamic, NULL, 0xe, 4};
const dp_function dp_quant_swiglu = {"swiglu", prepare_swiglu, NULL, 0xe, 2};
const dp_function dp_quant_dequant_swiglu = {"dequant_swiglu", prepare_dequant, NULL, 0x7e, 2};
