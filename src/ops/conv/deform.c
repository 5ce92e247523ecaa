/*
 * deform.c - convolutions whose taps are moved, by the ONNX operator specification of DeformConv:
 *   deform(x, w, offset, bias, mask, strides, pads, dilations, groups, offset_groups) -> y
 *   deform_parts(x, w, offset, bias, kernel, strides, pads, dilations, groups, offset_groups, modulated) -> y, windows
 * In the second form, torch_npu's, strides and dilations may have two numbers in front that mean nothing, and offset
 * [batch, 3 * offset_groups * kh * kw, oh, ow] has all numbers to the right, then all down, then, when modulated (else
 * it has two parts), the mask; windows [batch, channels, oh * kh, ow * kw] are the elements that the taps read. x
 * [batch, channels, height, width], w [out, channels / groups, kh, kw], offset [batch, offset_groups * kh * kw * 2, oh,
 * ow] (down, then right), mask [batch, offset_groups * kh * kw, oh, ow]; bias [out] and mask may be absent. Each tap
 * reads x linearly between elements, 0 outside, times the mask. pads: before and after each dim. The moved windows of
 * an image and group are columns of a product on the matrix engine. Everything is contiguous; computed in float.
 */
#include <math.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/matmul/products.h"
#include "ops/tiles.h"
#include "ops/window.h"
#include "runtime/pool.h"

enum { X, W, OFFSET, BIAS, MASK, PARTS };

typedef struct state {
    int slot[PARTS], y;
    uint64_t copy[PARTS]; /* in the workspace, as floats, when they are of another type */
    int64_t batch, channels, out, groups, offset_groups;
    bool in_parts, has_mask; /* the second form */
    int windows;             /* slot; -1: none */
    dp_axis axes[2];
    uint64_t columns_at, sums_at;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    int64_t image;
    const float *x, *offset, *mask; /* of one image; mask NULL: none */
    int64_t first;                  /* channel of the group */
    float *columns;
} job;

static const float *floats_of(dp_plan *plan, const state *s, int part) {
    if (s->slot[part] < 0)
        return NULL;
    const dp_tensor *t = &plan->tensors[s->slot[part]].view;
    if (t->element == DP_F32)
        return dp_tensor_data(t);
    float *to = dp_workspace_at(plan, s->copy[part]);
    dp_elementwise_current()->load[t->element][DP_COMPUTE_F32](to, dp_tensor_data(t), (size_t)dp_tensor_count(t));
    return to;
}

/* The plane at a place between its elements. */
static float read_at(const float *plane, int64_t height, int64_t width, float y, float x) {
    if (!(y > -1 && x > -1 && y < (float)height && x < (float)width))
        return 0;
    int64_t top = (int64_t)floorf(y), left = (int64_t)floorf(x);
    float dy = y - (float)top, dx = x - (float)left, sum = 0;
    for (int i = 0; i < 4; i++) {
        int64_t row = top + i / 2, column = left + i % 2;
        if (row >= 0 && row < height && column >= 0 && column < width)
            sum += (i / 2 ? dy : 1 - dy) * (i % 2 ? dx : 1 - dx) * plane[row * width + column];
    }
    return sum;
}

/* The taps of one channel in the windows of all positions. */
static void keep_windows(const job *j, int64_t channel, int64_t tap, const float *row) {
    const state *s = j->s;
    const dp_axis *v = &s->axes[0], *h = &s->axes[1];
    const dp_tensor *t = &j->plan->tensors[s->windows].view;
    const dp_convert_fn store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F32];
    const int64_t width = h->windows * h->kernel, plane = v->windows * v->kernel * width;
    for (int64_t p = 0; p < v->windows * h->windows; p++) {
        int64_t y = p / h->windows * v->kernel + tap / h->kernel, x = p % h->windows * h->kernel + tap % h->kernel;
        store((char *)dp_tensor_data(t) +
                  ((j->image * s->channels + channel) * plane + y * width + x) * (int64_t)dp_element_bytes(t->element),
              row + p, 1);
    }
}

/* Rows of the columns: one tap of one channel of the group at all positions. */
static void unfold_rows(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *s = j->s;
    const dp_axis *v = &s->axes[0], *h = &s->axes[1];
    int64_t taps = v->kernel * h->kernel, positions = v->windows * h->windows;
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
        int64_t channel = j->first + row / taps, tap = row % taps, group = channel / (s->channels / s->offset_groups);
        const int64_t part = s->offset_groups * taps * positions, own = (group * taps + tap) * positions;
        const float *down = j->offset + (s->in_parts ? part + own : 2 * own),
                    *right = s->in_parts ? j->offset + own : down + positions;
        const float *mask = s->has_mask ? j->offset + 2 * part + own : j->mask ? j->mask + own : NULL;
        const float *plane = j->x + channel * v->size * h->size;
        float *to = j->columns + row * positions;
        for (int64_t p = 0; p < positions; p++) {
            float y = (float)(p / h->windows * v->stride - v->pad + tap / h->kernel * v->dilation) + down[p];
            float x = (float)(p % h->windows * h->stride - h->pad + tap % h->kernel * h->dilation) + right[p];
            to[p] = read_at(plane, v->size, h->size, y, x) * (mask ? mask[p] : 1);
        }
        if (s->windows >= 0)
            keep_windows(j, channel, tap, to);
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const dp_axis *v = &s->axes[0], *h = &s->axes[1];
    int64_t taps = v->kernel * h->kernel, positions = v->windows * h->windows, out = s->out / s->groups,
            k = s->channels / s->groups * taps;
    const float *x = floats_of(plan, s, X), *w = floats_of(plan, s, W), *offset = floats_of(plan, s, OFFSET),
                *bias = floats_of(plan, s, BIAS), *mask = floats_of(plan, s, MASK);
    const dp_tensor *y = &plan->tensors[s->y].view;
    float *sums = dp_workspace_at(plan, s->sums_at);
    job j = {.plan = plan, .s = s, .columns = dp_workspace_at(plan, s->columns_at)};
    dp_status status = DP_OK;
    for (int64_t i = 0; i < s->batch * s->groups && status == DP_OK && positions && out && k; i++) {
        int64_t n = i / s->groups, group = i % s->groups;
        j.x = x + n * s->channels * v->size * h->size;
        j.image = n;
        j.offset = offset + n * s->offset_groups * taps * (s->has_mask ? 3 : 2) * positions;
        j.mask = mask ? mask + n * s->offset_groups * taps * positions : NULL;
        j.first = group * (s->channels / s->groups);
        dp_pool_for((size_t)k, (size_t)(4096 / positions + 1), unfold_rows, &j);
        dp_gemm_problem g = {.m = (size_t)out, .n = (size_t)positions, .k = (size_t)k, .alpha = 1};
        g.a = (dp_gemm_matrix){.data = w + group * out * k, .row_stride = k, .column_stride = 1, .dtype = DP_F32};
        g.b = (dp_gemm_matrix){.data = j.columns, .row_stride = positions, .column_stride = 1, .dtype = DP_F32};
        g.c = (dp_gemm_matrix){.data = sums, .row_stride = positions, .column_stride = 1, .dtype = DP_F32};
        g.epilogue.bias = bias ? bias + group * out : NULL;
        g.epilogue.bias_dtype = DP_F32;
        g.epilogue.bias_per_row = true;
        status = dp_problems_run(&g, 1);
        if (status == DP_OK)
            dp_elementwise_current()->store[y->element][DP_COMPUTE_F32](
                (char *)dp_tensor_data(y) + i * out * positions * (int64_t)dp_element_bytes(y->element), sums,
                (size_t)(out * positions));
    }
    return status;
}

static dp_status take_axes(const dp_operator_call *call, state *s) {
    const dp_arg *in = call->in;
    const dp_tensor *x = in[X].as.tensor, *w = in[W].as.tensor;
    int64_t strides[DP_SPACE], dilations[DP_SPACE];
    dp_axis axes[DP_SPACE];
    dp_status status = dp_window_list(&in[5], 2, 1, 1, 1, strides);
    if (status == DP_OK)
        status = dp_window_padding(&in[6], 2, axes);
    if (status == DP_OK)
        status = dp_window_list(&in[7], 2, 1, 1, 1, dilations);
    for (int d = 0; d < 2 && status == DP_OK; d++) {
        dp_axis *axis = &s->axes[d];
        *axis = axes[1 + d];
        axis->size = x->dims[2 + d], axis->kernel = w->dims[2 + d];
        axis->stride = strides[1 + d], axis->dilation = dilations[1 + d];
        if (axis->kernel < 1 || axis->kernel > 1 << 12 || axis->size > 1 << 20)
            return dp_fail(DP_ERR_ARGUMENT, "%s or %s has a dimension of space that is too large, or 0", in[X].name,
                           in[W].name);
        axis->windows = dp_axis_windows(axis, false);
    }
    return status;
}

static dp_status check_parts(const dp_operator_call *call, state *s) {
    const dp_arg *in = call->in, *out = &call->out[0];
    const dp_tensor *x = in[X].as.tensor, *w = in[W].as.tensor;
    int64_t taps = s->axes[0].kernel * s->axes[1].kernel, oh = s->axes[0].windows, ow = s->axes[1].windows;
    int64_t filter[] = {s->out, s->channels / s->groups, w->dims[2], w->dims[3]},
            offset[] = {s->batch, s->offset_groups * taps * (s->has_mask ? 3 : 2), oh, ow},
            mask[] = {s->batch, s->offset_groups * taps, oh, ow}, y[] = {s->batch, s->out, oh, ow};
    const int64_t *dims[PARTS] = {x->dims, filter, offset, &s->out, mask};
    dp_status status = DP_OK;
    for (int i = 0; i < PARTS && status == DP_OK; i++) {
        s->slot[i] = in[i].kind == DP_ARG_TENSOR ? in[i].slot : -1;
        if (s->slot[i] < 0)
            continue;
        status = dp_element_expect(&in[i], call->op->elements);
        if (status == DP_OK)
            status =
                dp_shape_expect(in[i].as.tensor, in[i].name, dims[i], i == BIAS ? 1 : 4, "what goes with the others");
        if (status == DP_OK && !dp_tensor_is_contiguous(in[i].as.tensor))
            status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", in[i].name);
    }
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, y, 4, "that of the windows");
    if (status == DP_OK && !dp_tensor_is_contiguous(out->as.tensor))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", out->name);
    return status;
}

static dp_status check_windows(const dp_operator_call *call, state *s) {
    const dp_arg *out = &call->out[1];
    int64_t dims[] = {s->batch, s->channels, s->axes[0].windows * s->axes[0].kernel,
                      s->axes[1].windows * s->axes[1].kernel};
    s->windows = -1;
    if (call->n_out < 2 || out->kind != DP_ARG_TENSOR)
        return DP_OK;
    s->windows = out->slot;
    dp_status status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, 4, "a window for each position");
    if (status == DP_OK && !dp_tensor_is_contiguous(out->as.tensor))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", out->name);
    return status;
}

static dp_status prepare(const dp_operator_call *call, bool in_parts, bool has_mask, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    const dp_tensor *x = in[X].as.tensor, *w = in[W].as.tensor;
    state s = {.y = call->out[0].slot,
               .in_parts = in_parts,
               .has_mask = has_mask,
               .groups = dp_arg_integer(&in[8], 1),
               .offset_groups = dp_arg_integer(&in[9], 1)};
    dp_workspace room = {.bytes = 0};
    if (x->rank != 4 || w->rank != 4)
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s have %d and %d dimensions, but must have 4", in[X].name, in[W].name,
                       x->rank, w->rank);
    s.batch = x->dims[0], s.channels = x->dims[1], s.out = w->dims[0];
    if (s.groups < 1 || s.offset_groups < 1 || s.channels < 1 || s.channels > 1 << 20 || s.out > 1 << 20 ||
        s.channels % s.groups || s.out % s.groups || s.channels % s.offset_groups)
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s must divide the channels", in[8].name, in[9].name);
    dp_status status = take_axes(call, &s);
    if (status == DP_OK)
        status = check_parts(call, &s);
    if (status == DP_OK)
        status = check_windows(call, &s);
    if (status != DP_OK)
        return status;
    int64_t positions = s.axes[0].windows * s.axes[1].windows, taps = s.axes[0].kernel * s.axes[1].kernel;
    for (int i = 0; i < PARTS; i++)
        if (s.slot[i] >= 0 && in[i].as.tensor->element != DP_F32)
            s.copy[i] = dp_workspace_take(&room, dp_tensor_count(in[i].as.tensor), sizeof(float));
    s.columns_at = dp_workspace_take(&room, s.channels / s.groups * taps, (size_t)positions * sizeof(float));
    s.sums_at = dp_workspace_take(&room, s.out / s.groups, (size_t)positions * sizeof(float));
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    status = dp_workspace_set(&room, plan);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    *(state *)dp_plan_state(plan) = s;
    plan->path = "columns";
    *out_plan = plan;
    return DP_OK;
}

static dp_status deform(const dp_operator_call *call, dp_plan **out_plan) {
    return prepare(call, false, false, out_plan);
}

/* Of four numbers the last two. */
static dp_arg last_two(const dp_arg *list) {
    dp_arg two = *list;
    if (list->count == 4) {
        two.as.integers += 2;
        two.count = 2;
    }
    return two;
}

static dp_status deform_parts(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *kernel = &in[4];
    const dp_tensor *w = in[W].as.tensor;
    const dp_arg args[] = {in[X],
                           in[W],
                           in[OFFSET],
                           in[BIAS],
                           {.name = "absent", .kind = DP_ARG_ABSENT},
                           last_two(&in[5]),
                           in[6],
                           last_two(&in[7]),
                           in[8],
                           in[9]};
    dp_operator_call one = *call;
    if (w->rank == 4 &&
        (kernel->count != 2 || kernel->as.integers[0] != w->dims[2] || kernel->as.integers[1] != w->dims[3]))
        return dp_fail(DP_ERR_ARGUMENT, "%s must be the last two dimensions of %s, %lld and %lld", kernel->name,
                       in[W].name, (long long)w->dims[2], (long long)w->dims[3]);
    one.in = args;
    one.n_in = (int)(sizeof args / sizeof args[0]);
    return prepare(&one, true, dp_arg_integer(&in[10], 1) != 0, out_plan);
}

extern const dp_function dp_conv_deform, dp_conv_deform_parts;
const dp_function dp_conv_deform_parts = {"deform_parts", deform_parts, NULL, 8, 2};
const dp_function dp_conv_deform = {"deform", deform, NULL, 0x18, 0};
