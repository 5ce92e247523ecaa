/*
 * picture_conv.c - convolutions of quantised pictures:
 *   picture_conv(x, filter, scale, bias, table?, residual?, strides, pads, dilations, groups, zero, residual_scale,
 * low, high) -> y y = table[bound(round(scale[o] * sum + bias[o] + residual_scale * residual))], sum over taps and
 * channels of x * filter, x being `zero` outside the picture. filter [out, height, width, in / groups] of int8 from -64
 * to 64 is read when the plan is made and kept there as the matrix engine wants it. Groups: one, or as many as channels
 * (depthwise), or any number (a product each).
 *
 * A convolution is a product of windows and filter; windows are made a few rows at a time by the engine's asking, so
 * that no unfolded matrix exists. One tap without padding is the picture itself.
 */
#include <string.h>

#include "math/gemm/gemm.h"
#include "ops/quant/picture.h"
#include "ops/tiles.h"
#include "runtime/pool.h"

enum { TAPS_MOST = 1024, ALIGN = 64, TOGETHER_CHANNELS = 64 };

typedef struct state {
    dp_picture x, y;
    int64_t kernel_y, kernel_x, step_y, step_x, pad_y, pad_x, spread_y, spread_x;
    int64_t groups, in, out; /* channels of one group */
    int scale_slot, bias_slot, table_slot, residual_slot;
    float residual_scale, low, high;
    uint8_t zero;
    bool depthwise, direct;
    int64_t together; /* depthwise: positions of a row that are computed as one, with so many times the channels */
    unsigned threads;
    size_t tiles, scratch_bytes;              /* of a group's product */
    size_t filter_at, filter_bytes, zeros_at; /* in the plan's state, from a multiple of ALIGN on */
} state;

typedef struct job {
    const state *s;
    dp_plan *plan;
    const uint8_t *x, *zeros, *table;
    uint8_t *y;
    const int8_t *residual;
    int64_t group;
    dp_gemm_plan product;
} job;

static char *aligned(void *state_of_plan) {
    return (char *)(((uintptr_t)state_of_plan + sizeof(state) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
}

/* Windows of rows: k counts taps from top left, channels within. */
static void make_rows(const void *context, size_t row, size_t rows, size_t k_first, size_t k_count, uint8_t *out,
                      size_t stride) {
    const job *j = context;
    const state *s = j->s;
    const dp_picture *x = &s->x;
    const int64_t in = s->in, first_tap = (int64_t)k_first / in;
    for (size_t r = 0; r < rows; r++, out += stride) {
        const int64_t at = (int64_t)(row + r), ox = at % s->y.width, oy = at / s->y.width % s->y.height;
        const int64_t top = oy * s->step_y - s->pad_y, left = ox * s->step_x - s->pad_x;
        const uint8_t *from =
            j->x + (at / s->y.width / s->y.height * x->height * x->width) * x->channels + j->group * in;
        int64_t ky = first_tap / s->kernel_x, kx = first_tap % s->kernel_x, within = (int64_t)k_first % in;
        for (size_t done = 0; done < k_count; within = 0) {
            const int64_t iy = top + ky * s->spread_y, ix = left + kx * s->spread_x;
            /* taps side by side lie side by side when there is one group */
            int64_t side = s->groups == 1 && s->spread_x == 1 ? s->kernel_x - kx : 1;
            bool inside = iy >= 0 && iy < x->height && ix >= 0 && ix + side <= x->width;
            if (!inside && side > 1) {
                side = 1;
                inside = iy >= 0 && iy < x->height && ix >= 0 && ix < x->width;
            }
            size_t bytes = (size_t)(side * in - within);
            bytes = bytes < k_count - done ? bytes : k_count - done;
            if (inside)
                memcpy(out + done, from + (iy * x->width + ix) * x->channels + within, bytes);
            else
                memset(out + done, s->zero, bytes);
            done += bytes;
            kx += side;
            if (kx >= s->kernel_x) {
                kx = 0;
                ky++;
            }
        }
    }
}

static dp_gemm_problem problem_of(const state *s, const int8_t *filter) {
    static const uint32_t somewhere = 0;
    const int64_t k = s->kernel_y * s->kernel_x * s->in;
    dp_gemm_problem p = {.m = (size_t)(s->y.batch * s->y.height * s->y.width),
                         .n = (size_t)s->out,
                         .k = (size_t)k,
                         .alpha = 1,
                         .narrow = true};
    p.a = (dp_gemm_matrix){.data = &somewhere, .row_stride = s->x.channels, .column_stride = 1, .dtype = DP_U8};
    p.a.rows = s->direct ? NULL : make_rows;
    p.b = (dp_gemm_matrix){.data = filter, .row_stride = 1, .column_stride = k, .dtype = DP_I8};
    p.c = (dp_gemm_matrix){.data = &somewhere, .row_stride = s->y.channels, .column_stride = 1, .dtype = DP_I8};
    p.epilogue = (dp_gemm_epilogue){.column_scale = (const float *)&somewhere,
                                    .bias = &somewhere,
                                    .bias_dtype = DP_F32,
                                    .activation = DP_GEMM_CLIP,
                                    .clip_low = s->low,
                                    .clip_high = s->high};
    if (s->residual_slot >= 0) {
        p.beta = s->residual_scale;
        p.source = p.c;
    }
    return p;
}

static void apply_table(const job *j, uint8_t *y, size_t n) {
    const uint8_t *table = j->table;
    for (size_t i = 0; i < n; i++)
        y[i] = table[y[i] & DP_PICTURE_MOST];
}

static void product_tile(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const dp_gemm_plan *p = &j->product;
    const size_t row = tile / p->tiles_n, column = tile % p->tiles_n;
    dp_gemm_tile(p, row, column, scratch);
    if (!j->table)
        return;
    const size_t first = column * p->tile_n,
                 last = (column + 1) * p->tile_n < p->problem.n ? (column + 1) * p->tile_n : p->problem.n;
    for (size_t i = row * p->tile_m; i < (row + 1) * p->tile_m && i < p->problem.m; i++)
        apply_table(j, (uint8_t *)(uintptr_t)p->problem.c.data + i * (size_t)p->problem.c.row_stride + first,
                    last - first);
}

static dp_status run_products(job *j) {
    const state *s = j->s;
    for (j->group = 0; j->group < s->groups; j->group++) {
        dp_gemm_problem p = problem_of(s, NULL);
        p.a.data = s->direct ? (const void *)(j->x + j->group * s->in) : j;
        p.b.data = aligned(dp_plan_state(j->plan)) + s->filter_at + (size_t)j->group * s->filter_bytes;
        p.b.packed = true;
        p.c.data = j->y + j->group * s->out;
        p.epilogue.column_scale = (const float *)dp_plan_data(j->plan, s->scale_slot) + j->group * s->out;
        p.epilogue.bias = (const float *)dp_plan_data(j->plan, s->bias_slot) + j->group * s->out;
        if (j->residual)
            p.source.data = j->residual + j->group * s->out;
        dp_status status = dp_gemm_plan_make(&p, s->threads, &j->product);
        if (status == DP_OK)
            status = dp_tiles_run(j->product.tiles_m * j->product.tiles_n, j->product.scratch_bytes, product_tile, j);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

/* The taps of position ox of a row; those outside the picture are rows of zeros. */
static void take_taps(const job *j, const uint8_t *from, int64_t top, int64_t ox, const uint8_t **taps) {
    const state *s = j->s;
    const dp_picture *x = &s->x;
    for (int64_t ky = 0; ky < s->kernel_y; ky++)
        for (int64_t kx = 0; kx < s->kernel_x; kx++) {
            const int64_t iy = top + ky * s->spread_y, ix = ox * s->step_x - s->pad_x + kx * s->spread_x;
            bool inside = iy >= 0 && iy < x->height && ix >= 0 && ix < x->width;
            *taps++ = inside ? from + (iy * x->width + ix) * x->channels : j->zeros;
        }
}

/*
 * Row (n, y) of the result. With a step of 1 the taps of neighbours are neighbours: where all columns are inside,
 * several positions are one with more channels, so that few channels fill vectors, too.
 */
static void depthwise_row(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    const dp_picture_table *t = dp_picture_current();
    const size_t channels = (size_t)s->x.channels, n_taps = (size_t)(s->kernel_y * s->kernel_x);
    const size_t all = channels * (size_t)s->together;
    const int64_t n = (int64_t)tile / s->y.height, top = (int64_t)tile % s->y.height * s->step_y - s->pad_y;
    const uint8_t *from = j->x + n * s->x.height * s->x.width * s->x.channels, **taps = scratch;
    const int8_t *filter = (const int8_t *)aligned(dp_plan_state(j->plan)) + s->filter_at;
    float *scale = (float *)(taps + n_taps), *bias = scale + all;
    for (size_t i = 0; i < all; i += channels) {
        memcpy(scale + i, dp_plan_data(j->plan, s->scale_slot), channels * sizeof *scale);
        memcpy(bias + i, dp_plan_data(j->plan, s->bias_slot), channels * sizeof *bias);
    }
    const int64_t reach = (s->kernel_x - 1) * s->spread_x;
    uint8_t *y = j->y + (int64_t)tile * s->y.width * s->y.channels;
    for (int64_t ox = 0; ox < s->y.width;) {
        take_taps(j, from, top, ox, taps);
        const int64_t left = ox - s->pad_x, last = left + s->together - 1 + reach;
        const bool many = s->together > 1 && left >= 0 && last < s->x.width && ox + s->together <= s->y.width;
        t->depthwise(y + (size_t)ox * channels, taps, filter, n_taps, many ? all : channels, all, scale, bias, s->low,
                     s->high);
        ox += many ? s->together : 1;
    }
    if (j->table)
        apply_table(j, y, (size_t)s->y.width * channels);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {.s = s, .plan = plan, .x = dp_plan_data(plan, s->x.slot), .y = dp_plan_data(plan, s->y.slot)};
    j.zeros = (const uint8_t *)aligned(dp_plan_state(plan)) + s->zeros_at;
    j.table = s->table_slot >= 0 ? dp_plan_data(plan, s->table_slot) : NULL;
    j.residual = s->residual_slot >= 0 ? dp_plan_data(plan, s->residual_slot) : NULL;
    if (!s->y.batch || !s->y.height || !s->y.width || !s->y.channels)
        return DP_OK;
    return s->depthwise ? dp_tiles_run((size_t)(s->y.batch * s->y.height),
                                       (size_t)(s->kernel_y * s->kernel_x) * sizeof(void *) +
                                           2 * (size_t)(s->together * s->x.channels) * sizeof(float) + ALIGN,
                                       depthwise_row, &j)
                        : run_products(&j);
}

static dp_status take_window(const dp_operator_call *call, state *s, int64_t dims[4]) {
    const dp_arg *in = call->in, *pads = &in[7];
    const dp_tensor *w = in[1].as.tensor;
    dp_status status = dp_picture_of(&in[0], &s->x);
    if (status == DP_OK)
        status = dp_element_expect(&in[1], DP_EL_BIT(DP_I8));
    if (status == DP_OK && (w->rank != 4 || !dp_tensor_is_contiguous(w)))
        return dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous with 4 dimensions: out, height, width, in", in[1].name);
    if (status == DP_OK)
        status = dp_picture_steps(&in[6], &s->step_y, &s->step_x);
    if (status == DP_OK)
        status = dp_picture_steps(&in[8], &s->spread_y, &s->spread_x);
    if (status != DP_OK)
        return status;
    s->kernel_y = w->dims[1];
    s->kernel_x = w->dims[2];
    s->groups = dp_arg_integer(&in[9], 1);
    if (s->kernel_y < 1 || s->kernel_x < 1 || s->kernel_y > TAPS_MOST / s->kernel_x)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s has %lld x %lld taps, but may have 1 to %d", in[1].name,
                       (long long)s->kernel_y, (long long)s->kernel_x, TAPS_MOST);
    if (s->groups < 1 || w->dims[0] % s->groups || w->dims[3] < 1 || w->dims[3] > s->x.channels ||
        s->groups * w->dims[3] != s->x.channels || w->dims[0] < 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s: %lld outputs of %lld inputs in %lld groups do not go with %lld channels",
                       in[1].name, (long long)w->dims[0], (long long)w->dims[3], (long long)s->groups,
                       (long long)s->x.channels);
    const int64_t reach_y = (s->kernel_y - 1) * s->spread_y + 1, reach_x = (s->kernel_x - 1) * s->spread_x + 1;
    for (int i = 0; i < 4; i++)
        if (pads->count != 4 || pads->as.integers[i] < 0 || pads->as.integers[i] > 1 << 20)
            return dp_fail(DP_ERR_ARGUMENT, "%s must have 4 numbers from 0: top, bottom, left, right", pads->name);
    s->pad_y = pads->as.integers[0];
    s->pad_x = pads->as.integers[2];
    const int64_t height = s->x.height + s->pad_y + pads->as.integers[1] - reach_y,
                  width = s->x.width + s->pad_x + pads->as.integers[3] - reach_x;
    if (height < 0 || width < 0)
        return dp_fail(DP_ERR_ARGUMENT, "the kernel of %s is larger than %s with its padding", in[1].name, in[0].name);
    dims[0] = s->x.batch;
    dims[1] = height / s->step_y + 1;
    dims[2] = width / s->step_x + 1;
    dims[3] = w->dims[0];
    s->in = w->dims[3];
    s->out = w->dims[0] / s->groups;
    return DP_OK;
}

static dp_status take_rest(const dp_operator_call *call, state *s, const int64_t dims[4]) {
    const dp_arg *in = call->in;
    dp_status status = DP_OK;
    for (int i = 2; i < 4 && status == DP_OK; i++) {
        status = dp_element_expect(&in[i], DP_EL_BIT(DP_F32));
        if (status == DP_OK)
            status = dp_shape_expect(in[i].as.tensor, in[i].name, &dims[3], 1, "one per output channel");
    }
    s->scale_slot = in[2].slot;
    s->bias_slot = in[3].slot;
    s->table_slot = in[4].kind == DP_ARG_TENSOR ? in[4].slot : -1;
    s->residual_slot = in[5].kind == DP_ARG_TENSOR ? in[5].slot : -1;
    if (status == DP_OK && s->table_slot >= 0) {
        status = dp_element_expect(&in[4], DP_EL_BIT(DP_U8));
        if (status == DP_OK)
            status = dp_shape_expect(in[4].as.tensor, in[4].name, &(int64_t){DP_PICTURE_VALUES}, 1, "one per value");
    }
    if (status == DP_OK && s->residual_slot >= 0) {
        dp_picture picture;
        status = dp_picture_of(&in[5], &picture);
        if (status == DP_OK)
            status = dp_shape_expect(in[5].as.tensor, in[5].name, dims, 4, "those of the result");
    }
    const int64_t zero = dp_arg_integer(&in[10], 0);
    s->residual_scale = (float)dp_arg_real(&in[11], 0);
    s->low = (float)dp_arg_real(&in[12], 0);
    s->high = (float)dp_arg_real(&in[13], DP_PICTURE_MOST);
    if (status == DP_OK &&
        (zero < 0 || zero > DP_PICTURE_MOST || !(s->low >= 0) || !(s->high >= s->low) || !(s->high <= DP_PICTURE_MOST)))
        return dp_fail(DP_ERR_ARGUMENT,
                       "zero, low and high are %lld, %g and %g, but must be 0 to %d, low not above high",
                       (long long)zero, (double)s->low, (double)s->high, DP_PICTURE_MOST);
    s->zero = (uint8_t)zero;
    s->depthwise = s->in == 1 && s->out == 1 && s->residual_slot < 0;
    s->direct =
        s->kernel_y * s->kernel_x == 1 && s->step_y * s->step_x == 1 && dims[1] == s->x.height && dims[2] == s->x.width;
    return status;
}

/* As many as fill whole vectors of bytes, where few do. */
static int64_t positions_together(const state *s) {
    enum { VECTOR = 32 };
    const int64_t channels = s->x.channels;
    if (s->step_x != 1 || channels >= 4 * TOGETHER_CHANNELS)
        return 1;
    for (int64_t n = 1; n <= 8; n++)
        if (n * channels >= TOGETHER_CHANNELS && n * channels % VECTOR == 0)
            return n;
    return channels < TOGETHER_CHANNELS ? TOGETHER_CHANNELS / channels : 1;
}

/* Room in the state for the filter as the product wants it. */
static dp_status plan_filter(state *s, const dp_tensor *w, size_t *out_bytes) {
    s->threads = (unsigned)dp_pool_width();
    if (s->depthwise) {
        s->together = positions_together(s);
        s->filter_bytes = (size_t)(dp_tensor_count(w) * s->together);
    } else {
        dp_gemm_problem p = problem_of(s, w->base);
        s->filter_bytes = (dp_gemm_pack_b_bytes(&p) + ALIGN - 1) / ALIGN * ALIGN;
    }
    size_t all;
    if (__builtin_mul_overflow(s->filter_bytes, s->depthwise ? 1 : (size_t)s->groups, &all) || all > SIZE_MAX / 4)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no memory holds the filter");
    s->zeros_at = (all + ALIGN - 1) / ALIGN * ALIGN;
    *out_bytes = sizeof *s + ALIGN + s->zeros_at + (size_t)(s->x.channels * (s->together ? s->together : 1));
    return DP_OK;
}

static dp_status fill_filter(dp_plan *plan, const int8_t *w) {
    const state *s = dp_plan_state(plan);
    char *room = aligned(dp_plan_state(plan));
    const size_t taps = (size_t)(s->kernel_y * s->kernel_x), channels = (size_t)s->x.channels;
    memset(room + s->zeros_at, s->zero, channels * (size_t)(s->together ? s->together : 1));
    if (s->depthwise) {
        const size_t all = channels * (size_t)s->together;
        for (size_t c = 0; c < all; c++)
            for (size_t t = 0; t < taps; t++)
                room[s->filter_at + t * all + c] = w[c % channels * taps + t];
        return DP_OK;
    }
    for (int64_t g = 0; g < s->groups; g++) {
        dp_gemm_problem p = problem_of(s, w + (size_t)(g * s->out) * taps * (size_t)s->in);
        dp_status status = dp_gemm_pack_b(&p, room + s->filter_at + (size_t)g * s->filter_bytes);
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

static dp_status check_filter(const dp_arg *arg) {
    const int8_t *w = arg->as.tensor->base;
    for (int64_t i = 0, n = dp_tensor_count(arg->as.tensor); i < n; i++)
        if (w[i] > DP_PICTURE_WEIGHT_MOST || w[i] < -DP_PICTURE_WEIGHT_MOST)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] is %d, but must be from -%d to %d", arg->name, (long long)i, w[i],
                           DP_PICTURE_WEIGHT_MOST, DP_PICTURE_WEIGHT_MOST);
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *filter = &call->in[1];
    state s = {0};
    int64_t dims[4];
    size_t bytes = 0;
    dp_status status = take_window(call, &s, dims);
    if (status == DP_OK)
        status = dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, 4, "the positions of the window");
    if (status == DP_OK)
        status = dp_picture_of(&call->out[0], &s.y);
    if (status == DP_OK)
        status = take_rest(call, &s, dims);
    if (status == DP_OK)
        status = check_filter(filter);
    if (status == DP_OK)
        status = plan_filter(&s, filter->as.tensor, &bytes);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, bytes);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    status = fill_filter(plan, filter->as.tensor->base);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    /* the filter has been taken: nobody looks at the tensor again, wherever it lies */
    plan->tensors[filter->slot].view = (dp_tensor){.element = DP_I8, .rank = 1};
    plan->path = s.depthwise ? "depthwise bytes" : s.direct ? "product of bytes" : "windows of bytes";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_quant_picture_conv;
const dp_function dp_quant_picture_conv = {"picture_conv", prepare, NULL, 1 << 4 | 1 << 5, 0};
