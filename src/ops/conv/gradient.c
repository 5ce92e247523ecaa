/*
 * gradient.c - gradients of convolutions:
 *   gradient(g, x, w, biasSizes, stride, padding, dilation, transposed, outputPadding, groups, mask, cubeMathType)
 *     -> gx, gw, gb
 *   tbc_gradient(g, x, w, bias, pad, cubeMathType) -> gx, gw, gb
 * gx of a convolution is a transposed one of g, and the other way round; gb(o) is the sum of g over o. gw(a, b, k) is
 * the sum over images and positions p of P(a, p) * I(b, p * stride + k * dilation - padding), where P is g and I is
 * x, or, of a transposed convolution, P is x and I is g. mask says which results are wanted; the others may be NULL.
 */
#include <string.h>

#include "ops/conv/conv.h"
#include "runtime/pool.h"

enum { COLUMNS_BYTES = 16 << 20 /* of unfolded windows at a time */ };

typedef struct weights_part {
    dp_image positions, image, out; /* out: batch and channels are the first and second dim of the weights */
    dp_axis axis[DP_SPACE];
    int64_t groups, rows, columns, taps, windows; /* rows, columns: first and second dim of a group */
    int64_t chunk;                                /* second dims unfolded at a time */
    bool positions_copied;
    int64_t position_stride;
    uint64_t positions_at, columns_at, sums_at; /* sums: float, [first dim][second dim][tap] */
    size_t scratch_bytes;
    unsigned threads;
} weights_part;

typedef struct gradient {
    bool wants_input, wants_weights, wants_bias;
    dp_conv input;
    weights_part weights;
    dp_image g; /* for the bias */
    int bias_slot, bias_element;
    int64_t bias_stride;
} gradient;

typedef struct job {
    dp_plan *plan;
    const gradient *gradient;
    const weights_part *w;
    /* what is being made now */
    int64_t n, group, first, count; /* second dims first .. first + count - 1 of the group */
    dp_gemm_plan product;
} job;

/* All windows of one second dim as rows [tap][position]. */
static void unfold_channel(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const weights_part *w = j->w;
    const dp_axis *a = w->axis;
    int64_t channel = j->group * w->columns + j->first + (int64_t)tile;
    float *to = (float *)dp_workspace_at(j->plan, w->columns_at) + (int64_t)tile * w->taps * w->windows;
    for (int64_t tap = 0; tap < w->taps; tap++) {
        int64_t kz = tap / (a[1].kernel * a[2].kernel), ky = tap / a[2].kernel % a[1].kernel, kx = tap % a[2].kernel;
        int64_t offset = kx * a[2].dilation - a[2].pad, first, last;
        dp_axis_valid(offset, a[2].stride, a[2].size, a[2].windows, &first, &last);
        for (int64_t oz = 0; oz < a[0].windows; oz++)
            for (int64_t oy = 0; oy < a[1].windows; oy++, to += a[2].windows) {
                int64_t z = oz * a[0].stride + kz * a[0].dilation - a[0].pad;
                int64_t y = oy * a[1].stride + ky * a[1].dilation - a[1].pad;
                if (z < 0 || z >= a[0].size || y < 0 || y >= a[1].size || first >= last) {
                    memset(to, 0, (size_t)a[2].windows * sizeof *to);
                    continue;
                }
                int64_t at = (first * a[2].stride + offset) * w->image.stride[2];
                const char *data = dp_image_at(j->plan, &w->image, j->n, channel, z, y) +
                                   at * (int64_t)dp_element_bytes(w->image.element);
                const float *from =
                    dp_image_load(w->image.element, data, w->image.stride[2] * a[2].stride, last - first, scratch);
                memset(to, 0, (size_t)first * sizeof *to);
                memcpy(to + first, from, (size_t)(last - first) * sizeof *to);
                memset(to + last, 0, (size_t)(a[2].windows - last) * sizeof *to);
            }
    }
}

/* Channel (n, c) of the positions as floats one after the other. */
static void copy_positions(void *context, size_t begin, size_t end) {
    const job *j = context;
    const dp_image *p = &j->w->positions;
    for (size_t i = begin; i < end; i++) {
        float *to = (float *)dp_workspace_at(j->plan, j->w->positions_at) + (int64_t)i * j->w->windows;
        for (int64_t z = 0; z < p->size[0]; z++)
            for (int64_t y = 0; y < p->size[1]; y++, to += p->size[2]) {
                const char *data = dp_image_at(j->plan, p, (int64_t)i / p->channels, (int64_t)i % p->channels, z, y);
                const float *from = dp_image_load(p->element, data, p->stride[2], p->size[2], to);
                if (from != to)
                    memcpy(to, from, (size_t)p->size[2] * sizeof *to);
            }
    }
}

static void product_tile(void *context, size_t tile, void *scratch) {
    job *j = context;
    dp_gemm_tile(&j->product, tile / j->product.tiles_n, tile % j->product.tiles_n, scratch);
}

/* Sums of one image and group for `count` second dims; added to what there is after the first image. */
static dp_gemm_problem problem_of(const weights_part *w, int64_t count) {
    static const float somewhere; /* until the run knows */
    dp_gemm_problem p = {.m = (size_t)w->rows, .n = (size_t)(count * w->taps), .k = (size_t)w->windows, .alpha = 1};
    p.a = (dp_gemm_matrix){.data = &somewhere,
                           .dtype = w->positions_copied ? DP_F32 : (dp_dtype)w->positions.element,
                           .row_stride = w->positions_copied ? w->windows : w->positions.channel_stride,
                           .column_stride = w->position_stride};
    p.b = (dp_gemm_matrix){.data = &somewhere, .dtype = DP_F32, .row_stride = 1, .column_stride = w->windows};
    p.c = (dp_gemm_matrix){.data = &somewhere, .dtype = DP_F32, .row_stride = w->columns * w->taps, .column_stride = 1};
    return p;
}

static dp_status add_products(job *j) {
    const weights_part *w = j->w;
    dp_gemm_problem p = problem_of(w, j->count);
    int64_t channel = j->group * w->rows;
    p.beta = j->n > 0;
    p.a.data = w->positions_copied ? (const char *)((const float *)dp_workspace_at(j->plan, w->positions_at) +
                                                    (j->n * w->positions.channels + channel) * w->windows)
                                   : dp_image_at(j->plan, &w->positions, j->n, channel, 0, 0);
    p.b.data = dp_workspace_at(j->plan, w->columns_at);
    p.c.data = (float *)dp_workspace_at(j->plan, w->sums_at) + (channel * w->columns + j->first) * w->taps;
    dp_status status = dp_gemm_plan_make(&p, w->threads, &j->product);
    return status == DP_OK ? dp_tiles_run(j->product.tiles_m * j->product.tiles_n, w->scratch_bytes, product_tile, j)
                           : status;
}

static void store_weights(job *j) {
    const dp_image *out = &j->w->out;
    const float *from = dp_workspace_at(j->plan, j->w->sums_at);
    for (int64_t a = 0; a < out->batch; a++)
        for (int64_t b = 0; b < out->channels; b++)
            for (int64_t z = 0; z < out->size[0]; z++)
                for (int64_t y = 0; y < out->size[1]; y++, from += out->size[2])
                    dp_image_store(out->element, dp_image_at(j->plan, out, a, b, z, y), out->stride[2], out->size[2],
                                   from);
}

static dp_status run_weights(job *j) {
    const weights_part *w = j->w;
    if (!w->out.batch || !w->out.channels)
        return DP_OK;
    if (!w->positions.batch || !w->windows) {
        memset(dp_workspace_at(j->plan, w->sums_at), 0,
               (size_t)(w->out.batch * w->out.channels * w->taps) * sizeof(float));
        store_weights(j);
        return DP_OK;
    }
    if (w->positions_copied)
        dp_pool_for((size_t)(w->positions.batch * w->positions.channels), 1, copy_positions, j);
    for (j->n = 0; j->n < w->positions.batch; j->n++)
        for (j->group = 0; j->group < w->groups; j->group++)
            for (j->first = 0; j->first < w->columns; j->first += w->chunk) {
                j->count = w->columns - j->first < w->chunk ? w->columns - j->first : w->chunk;
                dp_status status = dp_tiles_run((size_t)j->count, w->scratch_bytes, unfold_channel, j);
                if (status == DP_OK)
                    status = add_products(j);
                if (status != DP_OK)
                    return status;
            }
    store_weights(j);
    return DP_OK;
}

static void sum_channel(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const gradient *grad = j->gradient;
    const dp_image *g = &grad->g;
    double sum = 0;
    for (int64_t n = 0; n < g->batch; n++)
        for (int64_t z = 0; z < g->size[0]; z++)
            for (int64_t y = 0; y < g->size[1]; y++) {
                const float *row = dp_image_load(g->element, dp_image_at(j->plan, g, n, (int64_t)tile, z, y),
                                                 g->stride[2], g->size[2], scratch);
                for (int64_t x = 0; x < g->size[2]; x++)
                    sum += row[x];
            }
    float result = (float)sum;
    dp_image_store(grad->bias_element,
                   (char *)dp_plan_data(j->plan, grad->bias_slot) +
                       (int64_t)tile * grad->bias_stride * (int64_t)dp_element_bytes(grad->bias_element),
                   1, 1, &result);
}

static dp_status run(dp_plan *plan) {
    const gradient *g = dp_plan_state(plan);
    job j = {.plan = plan, .gradient = g, .w = &g->weights};
    dp_status status = g->wants_input ? dp_conv_execute(plan, &g->input) : DP_OK;
    if (status == DP_OK && g->wants_weights)
        status = run_weights(&j);
    if (status == DP_OK && g->wants_bias)
        status = dp_tiles_run((size_t)g->g.channels, (size_t)g->g.size[2] * sizeof(float) + 1, sum_channel, &j);
    return status;
}

static bool same_place(const dp_image *p, int64_t *out_stride) {
    int64_t next = -1;
    *out_stride = 1;
    for (int d = DP_SPACE - 1; d >= 0; d--) {
        if (p->size[d] == 1)
            continue;
        if (next >= 0 && p->stride[d] != next)
            return false;
        *out_stride = next < 0 ? p->stride[d] : *out_stride;
        next = p->stride[d] * p->size[d];
    }
    return true;
}

static dp_status place_weights(weights_part *w, dp_workspace *workspace) {
    int64_t row = 0, sums = 0;
    w->threads = dp_pool_width();
    w->positions_copied = !same_place(&w->positions, &w->position_stride);
    if (w->positions_copied) {
        w->position_stride = 1;
        w->positions_at =
            dp_workspace_take(workspace, w->positions.batch * w->positions.channels * w->windows, sizeof(float));
    }
    if (__builtin_mul_overflow(w->taps, w->windows, &row) ||
        __builtin_mul_overflow(w->out.batch * w->out.channels, w->taps, &sums)) {
        workspace->failed = true;
        return DP_OK;
    }
    w->chunk = row ? COLUMNS_BYTES / 4 / row : w->columns;
    w->chunk = w->chunk < 1 ? 1 : w->chunk > w->columns ? w->columns : w->chunk;
    w->columns_at = dp_workspace_take(workspace, w->chunk * row, sizeof(float));
    w->sums_at = dp_workspace_take(workspace, sums, sizeof(float));
    w->scratch_bytes = (size_t)w->axis[2].windows * sizeof(float);
    const int64_t counts[] = {w->chunk, w->chunk ? w->columns % w->chunk : 0};
    for (int i = 0; i < 2; i++) {
        dp_gemm_problem p = problem_of(w, counts[i]);
        dp_gemm_plan plan;
        for (int beta = 0; beta < 2 && counts[i]; beta++) {
            p.beta = (float)beta;
            dp_status status = dp_gemm_plan_make(&p, w->threads, &plan);
            if (status != DP_OK)
                return status;
            w->scratch_bytes = plan.scratch_bytes > w->scratch_bytes ? plan.scratch_bytes : w->scratch_bytes;
        }
    }
    return DP_OK;
}

/* Results by role; NULL: not wanted. */
typedef struct results {
    const dp_arg *x, *w, *bias;
} results;

static dp_status check_results(const dp_operator_call *call, const dp_conv_arguments *a, const dp_conv *forward,
                               const results *r) {
    const dp_tensor *x = a->x->as.tensor, *w = a->w->as.tensor;
    const int64_t channels = forward->out_channels * forward->groups;
    const struct {
        const dp_arg *arg;
        const int64_t *dims;
        int rank;
        const char *what;
    } all[] = {{r->x, x->dims, x->rank, a->x->name},
               {r->w, w->dims, w->rank, a->w->name},
               {r->bias, &channels, 1, "one per output channel"}};
    for (int i = 0; i < 3; i++) {
        if (!all[i].arg)
            continue;
        dp_status status = dp_element_expect(all[i].arg, call->op->elements);
        if (status == DP_OK)
            status = dp_shape_expect(all[i].arg->as.tensor, all[i].arg->name, all[i].dims, all[i].rank, all[i].what);
        if (status == DP_OK)
            status = dp_places_expect(all[i].arg);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

/* `forward` is the convolution whose gradient is asked for, y being g; x_out and w_out lie like x and w. */
static dp_status finish(const dp_operator_call *call, const dp_conv_arguments *a, const dp_conv *forward,
                        const results *r, const dp_image *x_out, const dp_image *w_out, dp_plan **out_plan) {
    const bool transposed = dp_arg_integer(a->transposed, 0) != 0;
    dp_workspace workspace = {0};
    gradient g = {
        .wants_input = r->x, .wants_weights = r->w, .wants_bias = r->bias, .input = *forward, .g = forward->y};
    dp_status status = check_results(call, a, forward, r);
    if (status == DP_OK && r->x) {
        g.input.x = forward->y;
        g.input.y = *x_out;
        g.input.in_channels = forward->out_channels;
        g.input.out_channels = forward->in_channels;
        status = dp_conv_place(&g.input, !transposed, &workspace);
    }
    if (status == DP_OK && r->w) {
        g.weights = (weights_part){.positions = transposed ? forward->x : forward->y,
                                   .image = transposed ? forward->y : forward->x,
                                   .out = *w_out,
                                   .groups = forward->groups,
                                   .rows = w_out->batch / forward->groups,
                                   .columns = w_out->channels,
                                   .taps = forward->taps,
                                   .windows = forward->windows};
        memcpy(g.weights.axis, forward->axis, sizeof g.weights.axis);
        status = place_weights(&g.weights, &workspace);
    }
    if (status != DP_OK)
        return status;
    if (r->bias) {
        g.bias_slot = r->bias->slot;
        g.bias_element = r->bias->as.tensor->element;
        g.bias_stride = r->bias->as.tensor->strides[0];
    }
    dp_plan *plan = dp_plan_new(call, run, sizeof g);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    status = dp_workspace_set(&workspace, plan);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    memcpy(dp_plan_state(plan), &g, sizeof g);
    plan->path = "gradient";
    *out_plan = plan;
    return DP_OK;
}

static const dp_arg absent = {.name = "absent", .kind = DP_ARG_ABSENT};

static dp_status prepare_gradient(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *mask = &in[10];
    dp_conv_arguments a = {.x = &in[1],
                           .w = &in[2],
                           .bias = &absent,
                           .stride = &in[4],
                           .padding = &in[5],
                           .dilation = &in[6],
                           .transposed = &in[7],
                           .output_padding = &in[8],
                           .groups = &in[9],
                           .math = &in[11],
                           .y = &in[0]};
    const dp_arg *wanted[3];
    if (mask->count != 3)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld values, but must have 3", mask->name, (long long)mask->count);
    for (int i = 0; i < 3; i++) {
        wanted[i] = mask->as.bools[i] ? &call->out[i] : NULL;
        if (wanted[i] && wanted[i]->kind != DP_ARG_TENSOR)
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s[%d] asks for it", wanted[i]->name, mask->name, i);
    }
    const results r = {wanted[0], wanted[1], wanted[2]};
    dp_conv forward = {.bias_slot = -1};
    dp_image x_out = {0}, w_out = {0};
    dp_status status = dp_conv_check_types(call, &a);
    if (status == DP_OK)
        status = dp_conv_images(&a, &forward, &a.space);
    if (status == DP_OK)
        status = dp_conv_take(&a, &forward);
    if (status == DP_OK && r.x)
        status = dp_image_of(r.x, a.space, false, &x_out);
    if (status == DP_OK && r.w)
        status = dp_image_of(r.w, a.space, false, &w_out);
    return status == DP_OK ? finish(call, &a, &forward, &r, &x_out, &w_out, out_plan) : status;
}

static dp_status prepare_tbc(const dp_operator_call *call, dp_plan **out_plan) {
    static const dp_arg one = {.name = "groups", .kind = DP_ARG_INTEGER, .as.integer = 1};
    const dp_arg *in = call->in, *out = call->out;
    int64_t pad = dp_arg_integer(&in[4], 0);
    const dp_arg padding = {.name = in[4].name, .kind = DP_ARG_INT_LIST, .count = 1, .as.integers = &pad};
    dp_conv_arguments a = {.x = &in[1],
                           .w = &in[2],
                           .bias = &absent,
                           .stride = &absent,
                           .padding = &padding,
                           .dilation = &absent,
                           .transposed = &absent,
                           .output_padding = &absent,
                           .groups = &one,
                           .math = &in[5],
                           .y = &in[0],
                           .space = 1};
    const results r = {&out[0], &out[1], &out[2]};
    dp_conv forward = {.bias_slot = -1};
    dp_image x_out, w_out;
    dp_status status = dp_conv_check_types(call, &a);
    const struct {
        const dp_arg *arg;
        int batch, channel;
        dp_image *image;
    } all[] = {{a.x, 1, 2, &forward.x},
               {a.w, 2, 1, &forward.w},
               {a.y, 1, 2, &forward.y},
               {r.x, 1, 2, &x_out},
               {r.w, 2, 1, &w_out}};
    for (int i = 0; i < 5 && status == DP_OK; i++)
        status = dp_conv_time_image(all[i].arg, all[i].batch, all[i].channel, 0, all[i].image);
    if (status == DP_OK)
        status = dp_conv_take(&a, &forward);
    return status == DP_OK ? finish(call, &a, &forward, &r, &x_out, &w_out, out_plan) : status;
}

extern const dp_function dp_conv_gradient, dp_conv_tbc_gradient;
const dp_function dp_conv_gradient = {"gradient", prepare_gradient, NULL, 1 << 3 | 1 << 8, 7};
const dp_function dp_conv_tbc_gradient = {"tbc_gradient", prepare_tbc, NULL, 1 << 3, 0};
