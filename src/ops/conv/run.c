/* run.c - executes a planned convolution: operands that do not lie as wanted are copied first, then products or rows.
 */
#include "ops/conv/conv.h"

#include <string.h>

#include "runtime/pool.h"

typedef struct job {
    dp_plan *plan;
    const dp_conv *conv;
    /* of a transposed convolution: what is being made now */
    dp_gemm_plan product;
    int64_t image, first_output, outputs;
    int64_t rows_per_tile, tiles_per_plane; /* of a depthwise one */
} job;

static const char *element_at(dp_plan *plan, int slot, int element, int64_t at) {
    return (const char *)dp_plan_data(plan, slot) + at * (int64_t)dp_element_bytes(element);
}

/* Row (n, z, y, c) of the input: neighbours in memory go together where channels are innermost. */
static void copy_input_row(void *context, size_t tile, void *scratch) {
    job *j = context;
    const dp_conv *c = j->conv;
    const dp_image *x = &c->x;
    int64_t index = (int64_t)tile, channel = index % x->channels, row = index / x->channels;
    int64_t y = row % x->size[1], z = row / x->size[1] % x->size[0], n = row / x->size[1] / x->size[0];
    int64_t step = c->way == DP_CONV_WINDOWS || c->way == DP_CONV_DEPTHWISE ? c->axis[2].stride : 1;
    float *to = (float *)dp_workspace_at(j->plan, c->x_at) +
                (((n * x->channels + channel) * x->size[0] + z) * x->size[1] + y) * c->phase_stride * step;
    const char *data = dp_image_at(j->plan, x, n, channel, z, y);
    const float *from = dp_image_load(x->element, data, x->stride[2], x->size[2], step == 1 ? to : scratch);
    if (step == 1) {
        if (from != to)
            memcpy(to, from, (size_t)x->size[2] * sizeof *to);
        return;
    }
    for (int64_t phase = 0; phase < step && phase < x->size[2]; phase++)
        for (int64_t i = phase, k = 0; i < x->size[2]; i += step, k++)
            to[phase * c->phase_stride + k] = from[i];
}

static void copy_weights(dp_plan *plan, const dp_conv *c) {
    float *to = dp_workspace_at(plan, c->w_at);
    for (int64_t n = 0; n < c->w.batch; n++)
        for (int64_t i = 0; i < c->w.channels; i++)
            for (int64_t z = 0; z < c->w.size[0]; z++)
                for (int64_t y = 0; y < c->w.size[1]; y++, to += c->w.size[2]) {
                    const float *from = dp_image_load(c->w.element, dp_image_at(plan, &c->w, n, i, z, y),
                                                      c->w.stride[2], c->w.size[2], to);
                    if (from != to)
                        memcpy(to, from, (size_t)c->w.size[2] * sizeof *to);
                }
}

static dp_status copy_operands(job *j) {
    dp_plan *plan = j->plan;
    const dp_conv *c = j->conv;
    dp_status status = DP_OK;
    if (c->x_copied)
        status = dp_tiles_run((size_t)(c->x.batch * c->x.channels * c->x.size[0] * c->x.size[1]), c->scratch_bytes,
                              copy_input_row, j);
    if (c->w_copied)
        copy_weights(plan, c);
    if (c->bias_slot >= 0) {
        float *to = dp_workspace_at(plan, c->bias_at);
        const float *from =
            dp_image_load(c->bias_element, dp_plan_data(plan, c->bias_slot), c->bias_stride, c->y.channels, to);
        if (from != to)
            memcpy(to, from, (size_t)c->y.channels * sizeof *to);
    }
    return status;
}

/* First element of the input's channels of a group. */
static const void *input_of(job *j, int64_t n, int64_t group) {
    const dp_conv *c = j->conv;
    int64_t channel = group * c->in_channels;
    if (!c->x_copied)
        return dp_image_at(j->plan, &c->x, n, channel, 0, 0);
    int64_t step = c->way == DP_CONV_WINDOWS || c->way == DP_CONV_DEPTHWISE ? c->axis[2].stride : 1;
    int64_t plane = c->x.size[0] * c->x.size[1] * c->phase_stride * step;
    return (const float *)dp_workspace_at(j->plan, c->x_at) + (n * c->x.channels + channel) * plane;
}

static const void *weights_at(job *j, int64_t first, int64_t second) {
    const dp_conv *c = j->conv;
    int64_t at = first * c->w_row_stride + second * (c->w_copied ? c->taps : c->w.channel_stride);
    return c->w_copied ? (const void *)((const float *)dp_workspace_at(j->plan, c->w_at) + at)
                       : element_at(j->plan, c->w.slot, c->w.element, at);
}

static const float *bias_of(job *j, int64_t output) {
    const dp_conv *c = j->conv;
    return c->bias_slot >= 0 ? (const float *)dp_workspace_at(j->plan, c->bias_at) + output : NULL;
}

static dp_conv_windows windows_of(job *j, int64_t n, int64_t group) {
    const dp_conv *c = j->conv;
    dp_conv_windows w = {.data = input_of(j, n, group)};
    memcpy(w.axis, c->axis, sizeof w.axis);
    if (c->x_copied) {
        w.phase_stride = c->phase_stride;
        w.y_stride = c->phase_stride * c->axis[2].stride;
        w.z_stride = w.y_stride * c->x.size[1];
        w.channel_stride = w.z_stride * c->x.size[0];
    } else {
        w.channel_stride = c->x.channel_stride;
        w.z_stride = c->x.stride[0];
        w.y_stride = c->x.stride[1];
    }
    return w;
}

static void product_tile(void *context, size_t tile, void *scratch) {
    job *j = context;
    const dp_conv *c = j->conv;
    size_t tiles = c->tiles_m * c->tiles_n, t = tile % tiles;
    int64_t group = (int64_t)(tile / tiles) % c->groups, n = (int64_t)(tile / tiles) / c->groups;
    int64_t output = group * c->out_channels;
    dp_gemm_problem p = dp_conv_problem(c, c->out_channels);
    dp_conv_windows windows;
    if (c->way == DP_CONV_WINDOWS)
        windows = windows_of(j, n, group);
    p.b.data = c->way == DP_CONV_WINDOWS ? &windows : input_of(j, n, group);
    p.a.data = weights_at(j, output, 0);
    p.c.data = c->y_staged
                   ? (char *)((float *)dp_workspace_at(j->plan, c->y_at) + (n * c->y.channels + output) * c->windows)
                   : dp_image_at(j->plan, &c->y, n, output, 0, 0);
    if (p.epilogue.bias)
        p.epilogue.bias = bias_of(j, output);
    dp_gemm_plan product;
    if (dp_gemm_plan_make(&p, c->threads, &product) == DP_OK)
        dp_gemm_tile(&product, t / c->tiles_n, t % c->tiles_n, scratch);
}

/* Plane (n, c) of the output from the workspace. */
static void unstage_planes(void *context, size_t begin, size_t end) {
    job *j = context;
    const dp_image *y = &j->conv->y;
    for (size_t plane = begin; plane < end; plane++) {
        int64_t n = (int64_t)plane / y->channels, channel = (int64_t)plane % y->channels;
        const float *from = (const float *)dp_workspace_at(j->plan, j->conv->y_at) + (int64_t)plane * j->conv->windows;
        for (int64_t z = 0; z < y->size[0]; z++)
            for (int64_t row = 0; row < y->size[1]; row++, from += y->size[2])
                dp_image_store(y->element, dp_image_at(j->plan, y, n, channel, z, row), y->stride[2], y->size[2], from);
    }
}

static dp_status run_products(job *j) {
    const dp_conv *c = j->conv;
    size_t tiles = c->tiles_m * c->tiles_n * (size_t)(c->y.batch * c->groups);
    dp_status status = dp_tiles_run(tiles, c->scratch_bytes, product_tile, j);
    if (status == DP_OK && c->y_staged)
        dp_pool_for((size_t)(c->y.batch * c->y.channels), 1, unstage_planes, j);
    return status;
}

enum { TAPS = 64 };

typedef struct tap_row {
    const float *from; /* of position 0 */
    float weight;
    int64_t first, last; /* positions where it lies in the image */
} tap_row;

/* Positions where all taps lie in the image go in vectors, the others one by one. */
static void add_taps(float *row, const tap_row *taps, size_t n) {
    const dp_conv_table *t = dp_conv_current();
    const float *rows[TAPS];
    float weights[TAPS];
    int64_t first = 0, last = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        first = taps[i].first > first ? taps[i].first : first;
        last = taps[i].last < last ? taps[i].last : last;
    }
    if (first >= last)
        first = last = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        const tap_row *tap = &taps[i];
        for (int64_t p = tap->first; p < tap->last && p < first; p++)
            row[p] += tap->weight * tap->from[p];
        for (int64_t p = tap->first > last ? tap->first : last; p < tap->last; p++)
            row[p] += tap->weight * tap->from[p];
        if (first < last) {
            rows[i] = tap->from + first;
            weights[i] = tap->weight;
        }
    }
    if (first < last)
        t->taps(row + first, rows, weights, n, (size_t)(last - first));
}

static void depthwise_row(const dp_conv_windows *w, const float *weights, int64_t oz, int64_t oy, float *row) {
    const dp_axis *axis = w->axis;
    tap_row taps[TAPS];
    size_t n = 0;
    for (int64_t kz = 0; kz < axis[0].kernel; kz++) {
        int64_t z = oz * axis[0].stride + kz * axis[0].dilation - axis[0].pad;
        for (int64_t ky = 0; ky < axis[1].kernel; ky++) {
            int64_t y = oy * axis[1].stride + ky * axis[1].dilation - axis[1].pad;
            if (z < 0 || z >= axis[0].size || y < 0 || y >= axis[1].size)
                continue;
            for (int64_t kx = 0; kx < axis[2].kernel; kx++) {
                int64_t offset = kx * axis[2].dilation - axis[2].pad, step = axis[2].stride;
                int64_t place = offset >= 0 ? offset / step : -((-offset + step - 1) / step);
                tap_row *tap = &taps[n];
                dp_axis_valid(offset, step, axis[2].size, axis[2].windows, &tap->first, &tap->last);
                if (tap->first >= tap->last)
                    continue;
                tap->from =
                    w->data + z * w->z_stride + y * w->y_stride + (offset - place * step) * w->phase_stride + place;
                tap->weight = weights[(kz * axis[1].kernel + ky) * axis[2].kernel + kx];
                if (++n == TAPS) {
                    add_taps(row, taps, n);
                    n = 0;
                }
            }
        }
    }
    if (n)
        add_taps(row, taps, n);
}

static void depthwise_tile(void *context, size_t tile, void *scratch) {
    job *j = context;
    const dp_conv *c = j->conv;
    int64_t plane = (int64_t)tile / j->tiles_per_plane, first = (int64_t)tile % j->tiles_per_plane * j->rows_per_tile;
    int64_t n = plane / c->y.channels, output = plane % c->y.channels, rows = c->y.size[0] * c->y.size[1];
    const dp_conv_windows windows = windows_of(j, n, output / c->out_channels);
    const float *weights = weights_at(j, output, 0), *bias = bias_of(j, output);
    const int64_t width = c->y.size[2];
    bool direct = c->y.element == DP_F32 && (c->y.stride[2] == 1 || width == 1);
    for (int64_t r = first; r < rows && r < first + j->rows_per_tile; r++) {
        int64_t z = r / c->y.size[1], y = r % c->y.size[1];
        char *data = dp_image_at(j->plan, &c->y, n, output, z, y);
        float *row = direct ? (float *)data : scratch;
        for (int64_t i = 0; i < width; i++)
            row[i] = bias ? *bias : 0;
        depthwise_row(&windows, weights, z, y, row);
        if (!direct)
            dp_image_store(c->y.element, data, c->y.stride[2], width, row);
    }
}

static dp_status run_depthwise(job *j) {
    enum { OUTPUTS = 4096 };
    const dp_conv *c = j->conv;
    int64_t rows = c->y.size[0] * c->y.size[1];
    j->rows_per_tile = OUTPUTS / c->y.size[2] + 1;
    j->tiles_per_plane = (rows + j->rows_per_tile - 1) / j->rows_per_tile;
    return dp_tiles_run((size_t)(c->y.batch * c->y.channels * j->tiles_per_plane), c->scratch_bytes, depthwise_tile, j);
}

static void transposed_product(void *context, size_t tile, void *scratch) {
    job *j = context;
    dp_gemm_tile(&j->product, tile / j->product.tiles_n, tile % j->product.tiles_n, scratch);
}

/* One row of one output channel: bias and the windows that reach it. */
static void transposed_row(void *context, size_t tile, void *scratch) {
    job *j = context;
    const dp_conv *c = j->conv;
    int64_t index = (int64_t)tile, y = index % c->y.size[1], z = index / c->y.size[1] % c->y.size[0];
    int64_t local = index / c->y.size[1] / c->y.size[0], output = j->first_output + local;
    const float *bias = bias_of(j, output);
    float *row = scratch;
    for (int64_t i = 0; i < c->y.size[2]; i++)
        row[i] = bias ? *bias : 0;
    dp_conv_columns columns = {
        .data = (const char *)((const float *)dp_workspace_at(j->plan, c->columns_at) + local * c->taps * c->windows),
        .element = DP_F32,
        .tap_stride = c->windows,
        .position_stride = 1};
    dp_conv_add_windows(c->axis, &columns, z, y, row, NULL);
    dp_image_store(c->y.element, dp_image_at(j->plan, &c->y, j->image, output, z, y), c->y.stride[2], c->y.size[2],
                   row);
}

static dp_status run_transposed(job *j) {
    const dp_conv *c = j->conv;
    for (int64_t pair = 0; pair < c->y.batch * c->groups; pair++) {
        int64_t group = pair % c->groups;
        j->image = pair / c->groups;
        for (int64_t first = 0; first < c->out_channels; first += c->chunk) {
            j->outputs = c->out_channels - first < c->chunk ? c->out_channels - first : c->chunk;
            j->first_output = group * c->out_channels + first;
            dp_gemm_problem p = dp_conv_problem(c, j->outputs);
            p.a.data = weights_at(j, group * c->in_channels, first);
            p.b.data = input_of(j, j->image, group);
            p.c.data = dp_workspace_at(j->plan, c->columns_at);
            dp_status status = dp_gemm_plan_make(&p, c->threads, &j->product);
            if (status == DP_OK)
                status = dp_tiles_run(j->product.tiles_m * j->product.tiles_n, c->scratch_bytes, transposed_product, j);
            if (status == DP_OK)
                status = dp_tiles_run((size_t)(j->outputs * c->y.size[0] * c->y.size[1]), c->scratch_bytes,
                                      transposed_row, j);
            if (status != DP_OK)
                return status;
        }
    }
    return DP_OK;
}

dp_status dp_conv_run(dp_plan *plan) {
    job j = {.plan = plan, .conv = dp_plan_state(plan)};
    const dp_conv *c = j.conv;
    if (!c->y.batch || !c->y.channels || !c->y.size[0] || !c->y.size[1] || !c->y.size[2])
        return DP_OK;
    dp_status status = copy_operands(&j);
    if (status != DP_OK)
        return status;
    switch (c->way) {
    case DP_CONV_DEPTHWISE:
        return run_depthwise(&j);
    case DP_CONV_TRANSPOSED:
        return run_transposed(&j);
    default:
        return run_products(&j);
    }
}
