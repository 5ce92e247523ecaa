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
    bool channels_inside; /* order of the copy of the input */
} job;

static const char *element_at(dp_plan *plan, int slot, int element, int64_t at) {
    return (const char *)dp_plan_data(plan, slot) + at * (int64_t)dp_element_bytes(element);
}

static int64_t x_step(const dp_conv *c) {
    return c->way == DP_CONV_WINDOWS ? c->axis[2].stride : 1;
}

/* One row of the input as floats, sorted into phases. */
static void copy_input_row(job *j, int64_t n, int64_t channel, int64_t z, int64_t y, float *buffer) {
    const dp_conv *c = j->conv;
    const dp_image *x = &c->x;
    const int64_t step = x_step(c), width = x->size[2];
    float *to = (float *)dp_workspace_at(j->plan, c->x_at) +
                (((n * x->channels + channel) * x->size[0] + z) * x->size[1] + y) * c->phase_stride * step;
    const float *from = dp_image_load(x->element, dp_image_at(j->plan, x, n, channel, z, y), x->stride[2], width,
                                      step == 1 ? to : buffer);
    if (step == 1 && from != to)
        memcpy(to, from, (size_t)width * sizeof *to);
    if (step > 1)
        dp_conv_sort_phases(from, width, step, to, c->phase_stride);
}

/* All rows of plane (n, channel, z), or, where channels are neighbours in memory, all channels of row (n, z, y). */
static void copy_input(void *context, size_t tile, void *scratch) {
    job *j = context;
    const dp_image *x = &j->conv->x;
    int64_t index = (int64_t)tile;
    if (j->channels_inside) {
        int64_t y = index % x->size[1], z = index / x->size[1] % x->size[0], n = index / x->size[1] / x->size[0];
        for (int64_t channel = 0; channel < x->channels; channel++)
            copy_input_row(j, n, channel, z, y, scratch);
    } else {
        int64_t z = index % x->size[0], channel = index / x->size[0] % x->channels;
        for (int64_t y = 0; y < x->size[1]; y++)
            copy_input_row(j, index / x->size[0] / x->channels, channel, z, y, scratch);
    }
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
    if (c->x_copied) {
        j->channels_inside = c->x.channel_stride < c->x.stride[2];
        status = dp_tiles_run((size_t)(c->x.batch * c->x.size[0] * (j->channels_inside ? c->x.size[1] : c->x.channels)),
                              c->scratch_bytes, copy_input, j);
    }
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
    int64_t plane = c->x.size[0] * c->x.size[1] * c->phase_stride * x_step(c);
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

/* The rows of one tile of a depthwise convolution: positions first .. last - 1 along y of plane (n, output, z). */
typedef struct depthwise_tile {
    int64_t n, output, z, first, last;
    const float *weights;
    float *rows, *loaded, *out; /* scratch: padded rows of the image by slot */
} depthwise_tile;

/* Where the padded row of tap ky of position y lies: shared by positions where taps are neighbours. */
static int64_t slot_of(const dp_conv *c, const depthwise_tile *t, int64_t kz, int64_t y, int64_t ky) {
    const dp_axis *axis = &c->axis[1];
    int64_t local = axis->dilation == 1 ? (y - t->first) * axis->stride + ky : (y - t->first) * axis->kernel + ky;
    return kz * c->dw_slots + local;
}

/* Row (z, y) of the image with zeros where the windows reach past it, sorted into phases of the step along x. */
static void pad_row(job *j, const depthwise_tile *t, int64_t z, int64_t y, float *to) {
    const dp_conv *c = j->conv;
    const dp_axis *axis = &c->axis[2];
    const int64_t width = axis->size, step = axis->stride, length = c->dw_row_floats / step;
    const float *from =
        dp_image_load(c->x.element, dp_image_at(j->plan, &c->x, t->n, t->output / c->out_channels, z, y),
                      c->x.stride[2], width, t->loaded);
    for (int64_t phase = 0; phase < step; phase++, to += length) { /* place i is x = i * step + phase - pad */
        int64_t first, last;
        dp_axis_valid(phase - axis->pad, step, width, length, &first, &last);
        const float *source = from + phase - axis->pad;
        for (int64_t i = 0; i < first; i++)
            to[i] = 0;
        if (step == 1)
            memcpy(to + first, source + first, (size_t)(last - first) * sizeof *to);
        else
            for (int64_t i = first; i < last; i++)
                to[i] = source[i * step];
        for (int64_t i = last; i < length; i++)
            to[i] = 0;
    }
}

static void load_rows(job *j, const depthwise_tile *t) {
    const dp_conv *c = j->conv;
    for (int64_t kz = 0; kz < c->axis[0].kernel; kz++) {
        int64_t z = t->z * c->axis[0].stride + kz * c->axis[0].dilation - c->axis[0].pad, done = -1;
        for (int64_t oy = t->first; oy < t->last; oy++)
            for (int64_t ky = 0; ky < c->axis[1].kernel; ky++) {
                int64_t y = oy * c->axis[1].stride + ky * c->axis[1].dilation - c->axis[1].pad;
                int64_t slot = slot_of(c, t, kz, oy, ky);
                if (slot <= done)
                    continue;
                float *to = t->rows + slot * c->dw_row_floats;
                if (z < 0 || z >= c->axis[0].size || y < 0 || y >= c->axis[1].size)
                    memset(to, 0, (size_t)c->dw_row_floats * sizeof *to);
                else
                    pad_row(j, t, z, y, to);
                done = slot;
            }
    }
}

/* All rows of the tile; every tap is valid everywhere. Rows of the result are y_step apart. */
static void depthwise_rows(const dp_conv *c, const depthwise_tile *t, const float *bias, float *y, int64_t y_step) {
    enum { TAPS = 64 };
    const dp_axis *axis = c->axis;
    const int64_t length = c->dw_row_floats / axis[2].stride;
    const int64_t x_step = (axis[1].dilation == 1 ? axis[1].stride : axis[1].kernel) * c->dw_row_floats;
    int64_t offsets[TAPS];
    for (int64_t first = 0; first < c->taps; first += TAPS) {
        const int64_t count = c->taps - first < TAPS ? c->taps - first : TAPS;
        for (int64_t i = 0; i < count; i++) {
            const int64_t tap = first + i, kx = tap % axis[2].kernel * axis[2].dilation;
            const int64_t ky = tap / axis[2].kernel % axis[1].kernel, kz = tap / axis[2].kernel / axis[1].kernel;
            offsets[i] =
                slot_of(c, t, kz, t->first, ky) * c->dw_row_floats + kx % axis[2].stride * length + kx / axis[2].stride;
        }
        dp_conv_current()->taps(y, y_step, t->rows, x_step, offsets, t->weights + first, (size_t)count,
                                (size_t)(t->last - t->first), (size_t)axis[2].windows, first ? NULL : bias);
    }
}

static void run_depthwise_tile(void *context, size_t tile, void *scratch) {
    static const float zero;
    job *j = context;
    const dp_conv *c = j->conv;
    const dp_image *y = &c->y;
    const int64_t per_plane = (y->size[1] + c->dw_rows - 1) / c->dw_rows, index = (int64_t)tile / per_plane;
    depthwise_tile t = {.z = index % y->size[0],
                        .output = index / y->size[0] % y->channels,
                        .n = index / y->size[0] / y->channels,
                        .first = (int64_t)tile % per_plane * c->dw_rows,
                        .loaded = scratch};
    t.last = t.first + c->dw_rows < y->size[1] ? t.first + c->dw_rows : y->size[1];
    t.out = t.loaded + c->x.size[2];
    t.rows = t.out + c->dw_rows * y->size[2];
    t.weights = weights_at(j, t.output, 0);
    const float *bias = c->bias_slot >= 0 ? bias_of(j, t.output) : &zero;
    load_rows(j, &t);
    if (y->element == DP_F32 && (y->stride[2] == 1 || y->size[2] == 1)) {
        float *to = (float *)dp_image_at(j->plan, y, t.n, t.output, t.z, t.first);
        depthwise_rows(c, &t, bias, to, y->stride[1]);
        return;
    }
    depthwise_rows(c, &t, bias, t.out, y->size[2]);
    for (int64_t oy = t.first; oy < t.last; oy++)
        dp_image_store(y->element, dp_image_at(j->plan, y, t.n, t.output, t.z, oy), y->stride[2], y->size[2],
                       t.out + (oy - t.first) * y->size[2]);
}

static dp_status run_depthwise(job *j) {
    const dp_conv *c = j->conv;
    int64_t per_plane = (c->y.size[1] + c->dw_rows - 1) / c->dw_rows;
    return dp_tiles_run((size_t)(c->y.batch * c->y.channels * c->y.size[0] * per_plane), c->scratch_bytes,
                        run_depthwise_tile, j);
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

dp_status dp_conv_execute(dp_plan *plan, const dp_conv *c) {
    job j = {.plan = plan, .conv = c};
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
