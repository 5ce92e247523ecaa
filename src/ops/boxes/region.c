/*
 * region.c - boxes of a feature map as images of fixed size:
 *   align(x, rois, batch_indices, mode, height, width, ratio, scale, transform) -> y
 *       rois [r, 4] are (x1, y1, x2, y2); y [r, channels, height, width]. A bin is the mean (mode "avg") or the largest
 * ("max") of ratio x ratio samples (0: as many as the bin has elements), each linear in both directions; transform
 *       "half_pixel" shifts by half an element, "output_half_pixel" does not and makes boxes at least 1 large.
 *   align_rows(x, rois, scale, height, width, ratio, mode) -> y
 *       the same means, with rois [r, 5], the batch first; mode 1: "half_pixel", 0: "output_half_pixel"
 *   align_gradient(grad, rois, shape, width, height, scale, ratio, mode) -> x
 *       what align_rows makes of x [shape] gives back to it; every element sums the boxes in their order, in double
 *   pool(x, rois, height, width, scale) -> y
 *       rois [r, 5] with the batch first; ends are rounded and belong to the box; the largest element of each bin, 0 of
 * none. Formulas: the ONNX operator specification (with "max": the largest of the weighted corners). x, rois and y are
 * contiguous.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "ops/tiles.h"

enum { SAMPLES = 1 << 10 }; /* of a bin, in each direction */

typedef struct state {
    int x, rois, batch, y;
    int64_t batches, channels, height, width; /* of x */
    int64_t count, out_height, out_width, ratio;
    float scale;
    bool largest, half, aligned;
    int wide; /* numbers of a box: 4, or 5 with its batch */
    dp_convert_fn load_rois, load_batch, load_x, store;
    dp_convert_fn load_y, store_x; /* of the gradient */
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    float *rois;
    int64_t *batch;
} job;

static void sample_axis(float at, int64_t size, int64_t *low, int64_t *high, float *share) {
    at = at < 0 ? 0 : at;
    *low = (int64_t)at;
    if (*low >= size - 1) {
        *low = *high = size - 1;
        *share = 0;
        return;
    }
    *high = *low + 1;
    *share = at - (float)*low;
}

typedef struct bins {
    float begin, size; /* of the first bin, of each */
    int64_t samples;
} bins;

static bins bins_of(const state *s, float from, float to, int64_t count) {
    float shift = s->half ? 0.5F : 0, begin = from * s->scale - shift, length = to * s->scale - shift - begin;
    if (!s->half && length < 1)
        length = 1;
    bins b = {begin, length / (float)count, s->ratio};
    if (!s->ratio)
        b.samples = length > 0 ? (int64_t)ceilf(b.size) : 0;
    return b;
}

/* Where sample `i` of a bin lies. */
static float sample_at(const bins *b, int64_t bin, int64_t i) {
    return b->begin + b->size * ((float)bin + ((float)i + 0.5F) / (float)b->samples);
}

static bool is_inside(const state *s, float y, float x) {
    return y >= -1 && y <= (float)s->height && x >= -1 && x <= (float)s->width;
}

/* One bin of one channel. */
static float align_bin(const state *s, const float *map, const bins *v, const bins *h, int64_t row, int64_t column) {
    float sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < v->samples; i++) {
        float y = sample_at(v, row, i);
        for (int64_t k = 0; k < h->samples; k++) {
            float x = sample_at(h, column, k), dy, dx;
            int64_t y0, y1, x0, x1;
            if (!is_inside(s, y, x)) {
                most = most > 0 ? most : 0;
                continue;
            }
            sample_axis(y, s->height, &y0, &y1, &dy);
            sample_axis(x, s->width, &x0, &x1, &dx);
            float corner[] = {(1 - dy) * (1 - dx) * map[y0 * s->width + x0], (1 - dy) * dx * map[y0 * s->width + x1],
                              dy * (1 - dx) * map[y1 * s->width + x0], dy * dx * map[y1 * s->width + x1]};
            sum += corner[0] + corner[1] + corner[2] + corner[3];
            for (int c = 0; c < 4; c++)
                most = corner[c] > most ? corner[c] : most;
        }
    }
    int64_t samples = v->samples * h->samples;
    return s->largest ? (samples ? most : 0) : sum / (float)(samples ? samples : 1);
}

static void pool_edges(float begin, float size, int64_t bin, int64_t limit, int64_t *low, int64_t *high) {
    float from = floorf((float)bin * size) + begin, to = ceilf((float)(bin + 1) * size) + begin;
    *low = from < 0 ? 0 : from > (float)limit ? limit : (int64_t)from;
    *high = to < 0 ? 0 : to > (float)limit ? limit : (int64_t)to;
}

static float pool_bin(const state *s, const float *map, const float *roi, int64_t row, int64_t column) {
    float x1 = roundf(roi[0] * s->scale), y1 = roundf(roi[1] * s->scale), x2 = roundf(roi[2] * s->scale),
          y2 = roundf(roi[3] * s->scale);
    float width = x2 - x1 + 1 > 1 ? x2 - x1 + 1 : 1, height = y2 - y1 + 1 > 1 ? y2 - y1 + 1 : 1;
    int64_t top, bottom, left, right;
    pool_edges(y1, height / (float)s->out_height, row, s->height, &top, &bottom);
    pool_edges(x1, width / (float)s->out_width, column, s->width, &left, &right);
    float most = top < bottom && left < right ? -INFINITY : 0;
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++)
            most = map[y * s->width + x] > most ? map[y * s->width + x] : most;
    return most;
}

/* One channel of one box. */
static void region(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    int64_t roi = (int64_t)tile / s->channels, channel = (int64_t)tile % s->channels, area = s->height * s->width;
    const float *at = j->rois + roi * 4;
    float *map = scratch, *row = map + area;
    const dp_tensor *x = &j->plan->tensors[s->x].view, *y = &j->plan->tensors[s->y].view;
    s->load_x(map,
              (char *)dp_tensor_data(x) +
                  (j->batch[roi] * s->channels + channel) * area * (int64_t)dp_element_bytes(x->element),
              (size_t)area);
    bins v = bins_of(s, at[1], at[3], s->out_height), h = bins_of(s, at[0], at[2], s->out_width);
    char *to = (char *)dp_tensor_data(y) +
               (int64_t)tile * s->out_height * s->out_width * (int64_t)dp_element_bytes(y->element);
    for (int64_t r = 0; r < s->out_height; r++) {
        for (int64_t c = 0; c < s->out_width; c++)
            row[c] = s->aligned ? align_bin(s, map, &v, &h, r, c) : pool_bin(s, map, at, r, c);
        s->store(to + r * s->out_width * (int64_t)dp_element_bytes(y->element), row, (size_t)s->out_width);
    }
}

static void spread_bin(const state *s, double *map, const bins *v, const bins *h, int64_t row, int64_t column,
                       double g) {
    for (int64_t i = 0; i < v->samples; i++)
        for (int64_t k = 0; k < h->samples; k++) {
            float y = sample_at(v, row, i), x = sample_at(h, column, k), dy, dx;
            int64_t y0, y1, x0, x1;
            if (!is_inside(s, y, x))
                continue;
            sample_axis(y, s->height, &y0, &y1, &dy);
            sample_axis(x, s->width, &x0, &x1, &dx);
            map[y0 * s->width + x0] += (1 - dy) * (1 - dx) * g;
            map[y0 * s->width + x1] += (1 - dy) * dx * g;
            map[y1 * s->width + x0] += dy * (1 - dx) * g;
            map[y1 * s->width + x1] += dy * dx * g;
        }
}

/* One channel of one element of the batch. */
static void region_gradient(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    int64_t n = (int64_t)tile / s->channels, channel = (int64_t)tile % s->channels, area = s->height * s->width;
    double *map = scratch, *row = map + area;
    const dp_tensor *x = &j->plan->tensors[s->x].view, *y = &j->plan->tensors[s->y].view;
    const int64_t width = (int64_t)dp_element_bytes(y->element);
    memset(map, 0, (size_t)area * sizeof *map);
    for (int64_t r = 0; r < s->count; r++) {
        const float *at = j->rois + r * 4;
        if (j->batch[r] != n)
            continue;
        bins v = bins_of(s, at[1], at[3], s->out_height), h = bins_of(s, at[0], at[2], s->out_width);
        int64_t samples = v.samples * h.samples;
        for (int64_t i = 0; i < s->out_height && samples; i++) {
            s->load_y(row,
                      (char *)dp_tensor_data(y) +
                          ((r * s->channels + channel) * s->out_height + i) * s->out_width * width,
                      (size_t)s->out_width);
            for (int64_t k = 0; k < s->out_width; k++)
                spread_bin(s, map, &v, &h, i, k, row[k] / (double)samples);
        }
    }
    s->store_x((char *)dp_tensor_data(x) + (int64_t)tile * area * (int64_t)dp_element_bytes(x->element), map,
               (size_t)area);
}

/* Boxes as floats and checked batches. */
static dp_status read_rois(job *j) {
    const state *s = j->s;
    const dp_tensor *rois = &j->plan->tensors[s->rois].view;
    int wide = s->wide;
    for (int64_t r = 0; r < s->count; r++) {
        float five[5] = {0};
        s->load_rois(five, (char *)dp_tensor_data(rois) + r * wide * (int64_t)dp_element_bytes(rois->element),
                     (size_t)wide);
        memcpy(j->rois + 4 * r, five + wide - 4, 4 * sizeof(float));
        bool fits = true;
        for (int i = 0; i < wide; i++)
            fits &= fabsf(five[i]) < 0x1p30F;
        for (int i = 0; i < 2 && s->aligned && fits; i++)
            fits = bins_of(s, j->rois[4 * r + i], j->rois[4 * r + 2 + i], i ? s->out_height : s->out_width).samples <=
                   SAMPLES;
        if (!fits)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s: box %lld is out of all bounds, or a bin of it has more than %d samples",
                           j->plan->tensors[s->rois].name, (long long)r, SAMPLES);
        j->batch[r] = (int64_t)five[0];
    }
    if (s->batch >= 0)
        s->load_batch(j->batch, dp_plan_data(j->plan, s->batch), (size_t)s->count);
    for (int64_t r = 0; r < s->count; r++)
        if (j->batch[r] < 0 || j->batch[r] >= s->batches)
            return dp_fail(DP_ERR_ARGUMENT, "box %lld is of batch %lld, but must be 0 to %lld", (long long)r,
                           (long long)j->batch[r], (long long)s->batches - 1);
    return DP_OK;
}

static dp_status run_tiles(const state *s, job *j) {
    size_t tiles = (size_t)(s->count * s->channels), area = (size_t)(s->height * s->width);
    if (s->store_x)
        return dp_tiles_run((size_t)(s->batches * s->channels), (area + (size_t)s->out_width) * sizeof(double),
                            region_gradient, j);
    return tiles ? dp_tiles_run(tiles, (area + (size_t)s->out_width) * sizeof(float), region, j) : DP_OK;
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    j.batch = dp_alloc(DP_MEM_RUNTIME, (size_t)s->count * (sizeof(int64_t) + 4 * sizeof(float)) + 8);
    if (!j.batch)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld boxes: free some", (long long)s->count);
    j.rois = (float *)(j.batch + s->count);
    dp_status status = read_rois(&j);
    if (status == DP_OK)
        status = run_tiles(s, &j);
    dp_free(j.batch);
    return status;
}

/* map: what is read in boxes; cut: what comes of it. */
static dp_status prepare(const dp_operator_call *call, state *s, const dp_arg *map, const dp_arg *cut,
                         const dp_arg *batch, const dp_arg *height, const dp_arg *width, dp_plan **out_plan) {
    const dp_arg *boxes = &call->in[1];
    const dp_tensor *x = map->as.tensor, *rois = boxes->as.tensor, *y = cut->as.tensor;
    const dp_arg *all[] = {map, boxes, cut};
    dp_status status = DP_OK;
    for (int i = 0; i < 3 && status == DP_OK; i++) {
        status = dp_element_expect(all[i], call->op->elements);
        if (status == DP_OK && !dp_tensor_is_contiguous(all[i]->as.tensor))
            status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", all[i]->name);
    }
    if (status == DP_OK && batch)
        status = dp_element_expect(batch, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    s->out_height = dp_arg_integer(height, 1);
    s->out_width = dp_arg_integer(width, 1);
    int wide = s->wide;
    if (status == DP_OK && (x->rank != 4 || rois->rank != 2 || rois->dims[1] != wide || x->dims[2] < 1 ||
                            x->dims[3] < 1 || x->dims[2] > 1 << 20 || x->dims[3] > 1 << 20))
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s and %s must have the dimensions [batch, channels, height, width] and [n, %d]",
                    map->name, boxes->name, wide);
    if (status == DP_OK && (s->out_height < 1 || s->out_width < 1 || s->out_height > 1 << 16 || s->out_width > 1 << 16))
        status = dp_fail(DP_ERR_ARGUMENT, "%s and %s must be 1 to %d", height->name, width->name, 1 << 16);
    if (status != DP_OK)
        return status;
    int64_t dims[] = {rois->dims[0], x->dims[1], s->out_height, s->out_width};
    if (batch)
        status = dp_shape_expect(batch->as.tensor, batch->name, dims, 1, "one for each box");
    if (status == DP_OK)
        status = dp_shape_expect(y, cut->name, dims, 4, "boxes, channels, height, width");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof *s) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    const dp_elementwise_table *t = dp_elementwise_current();
    s->x = map->slot, s->rois = boxes->slot, s->y = cut->slot;
    s->batch = batch ? batch->slot : -1;
    s->batches = x->dims[0], s->channels = x->dims[1], s->height = x->dims[2], s->width = x->dims[3];
    s->count = rois->dims[0];
    s->load_x = t->load[x->element][DP_COMPUTE_F32];
    s->load_rois = t->load[rois->element][DP_COMPUTE_F32];
    s->load_batch = batch ? t->load[batch->as.tensor->element][DP_COMPUTE_I64] : NULL;
    s->store = t->store[y->element][DP_COMPUTE_F32];
    if (map == &call->out[0]) {
        s->load_y = t->load[y->element][DP_COMPUTE_F64];
        s->store_x = t->store[x->element][DP_COMPUTE_F64];
    }
    *(state *)dp_plan_state(plan) = *s;
    plan->path = "bins";
    *out_plan = plan;
    return DP_OK;
}

static dp_status align(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    state s = {.aligned = true, .wide = 4, .ratio = dp_arg_integer(&in[6], 0), .scale = (float)dp_arg_real(&in[7], 1)};
    s.largest = strcmp(in[3].as.text, "max") == 0;
    s.half = strcmp(in[8].as.text, "half_pixel") == 0;
    if (!s.largest && strcmp(in[3].as.text, "avg") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be avg or max", in[3].name, in[3].as.text);
    if (!s.half && strcmp(in[8].as.text, "output_half_pixel") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be half_pixel or output_half_pixel", in[8].name,
                       in[8].as.text);
    if (s.ratio < 0 || s.ratio > 1 << 10)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to %d", in[6].name, (long long)s.ratio, 1 << 10);
    return prepare(call, &s, &in[0], &call->out[0], &in[2], &in[4], &in[5], out_plan);
}

static dp_status take_rows(const dp_arg *scale, const dp_arg *ratio, const dp_arg *mode, state *s) {
    int64_t half = dp_arg_integer(mode, 1);
    *s = (state){.aligned = true, .wide = 5, .ratio = dp_arg_integer(ratio, 2), .scale = (float)dp_arg_real(scale, 1)};
    s->half = half == 1;
    if (s->ratio < 0 || s->ratio > SAMPLES || half < 0 || half > 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld and %s is %lld, but they must be 0 to %d, and 0 or 1", ratio->name,
                       (long long)s->ratio, mode->name, (long long)half, SAMPLES);
    return DP_OK;
}

static dp_status align_rows(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    state s;
    dp_status status = take_rows(&in[2], &in[5], &in[6], &s);
    return status == DP_OK ? prepare(call, &s, &in[0], &call->out[0], NULL, &in[3], &in[4], out_plan) : status;
}

static dp_status align_gradient(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    state s;
    dp_status status = take_rows(&in[5], &in[6], &in[7], &s);
    if (status == DP_OK && in[2].count != 4)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld entries, but must have 4", in[2].name, (long long)in[2].count);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, in[2].as.integers, 4, in[2].name);
    return status == DP_OK ? prepare(call, &s, out, &in[0], NULL, &in[4], &in[3], out_plan) : status;
}

static dp_status pool(const dp_operator_call *call, dp_plan **out_plan) {
    state s = {.wide = 5, .scale = (float)dp_arg_real(&call->in[4], 1)};
    return prepare(call, &s, &call->in[0], &call->out[0], NULL, &call->in[2], &call->in[3], out_plan);
}

extern const dp_function dp_boxes_align, dp_boxes_align_rows, dp_boxes_align_gradient, dp_boxes_pool;
const dp_function dp_boxes_align_rows = {"align_rows", align_rows, NULL, 0, 0};
const dp_function dp_boxes_align_gradient = {"align_gradient", align_gradient, NULL, 0, 0};
const dp_function dp_boxes_align = {"align", align, NULL, 0, 0};
const dp_function dp_boxes_pool = {"pool", pool, NULL, 0, 0};
