/*
 * region.c - boxes of a feature map as images of fixed size:
 *   align(x, rois, batch_indices, mode, height, width, ratio, scale, transform) -> y
 *       rois [r, 4] are (x1, y1, x2, y2); y [r, channels, height, width]. A bin is the mean (mode "avg") or the largest
 * ("max") of ratio x ratio samples (0: as many as the bin has elements), each linear in both directions; transform
 *       "half_pixel" shifts by half an element, "output_half_pixel" does not and makes boxes at least 1 large.
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
    dp_convert_fn load_rois, load_batch, load_x, store;
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

/* One bin of one channel. */
static float align_bin(const state *s, const float *map, const bins *v, const bins *h, int64_t row, int64_t column) {
    float sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < v->samples; i++) {
        float y = v->begin + v->size * ((float)row + ((float)i + 0.5F) / (float)v->samples);
        for (int64_t k = 0; k < h->samples; k++) {
            float x = h->begin + h->size * ((float)column + ((float)k + 0.5F) / (float)h->samples), dy, dx;
            int64_t y0, y1, x0, x1;
            if (!(y >= -1 && y <= (float)s->height && x >= -1 && x <= (float)s->width)) {
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

/* Boxes as floats and checked batches. */
static dp_status read_rois(job *j) {
    const state *s = j->s;
    const dp_tensor *rois = &j->plan->tensors[s->rois].view;
    int wide = s->aligned ? 4 : 5;
    for (int64_t r = 0; r < s->count; r++) {
        float five[5] = {0};
        s->load_rois(five, (char *)dp_tensor_data(rois) + r * wide * (int64_t)dp_element_bytes(rois->element),
                     (size_t)wide);
        memcpy(j->rois + 4 * r, five + wide - 4, 4 * sizeof(float));
        bool fits = true;
        for (int i = 0; i < wide; i++)
            fits &= fabsf(five[i]) < 0x1p30F;
        for (int i = 0; i < 2 && s->aligned && fits; i++)
            fits = bins_of(s, five[i], five[2 + i], i ? s->out_height : s->out_width).samples <= SAMPLES;
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

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    const state *s = j.s;
    j.batch = dp_alloc(DP_MEM_RUNTIME, (size_t)s->count * (sizeof(int64_t) + 4 * sizeof(float)) + 8);
    if (!j.batch)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld boxes: free some", (long long)s->count);
    j.rois = (float *)(j.batch + s->count);
    dp_status status = read_rois(&j);
    size_t tiles = (size_t)(s->count * s->channels);
    if (status == DP_OK && tiles && s->out_height && s->out_width)
        status = dp_tiles_run(tiles, (size_t)(s->height * s->width + s->out_width) * sizeof(float), region, &j);
    dp_free(j.batch);
    return status;
}

static dp_status prepare(const dp_operator_call *call, state *s, const dp_arg *batch, const dp_arg *height,
                         const dp_arg *width, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    const dp_tensor *x = in[0].as.tensor, *rois = in[1].as.tensor;
    const dp_arg *all[] = {&in[0], &in[1], out};
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
    int wide = s->aligned ? 4 : 5;
    if (status == DP_OK && (x->rank != 4 || rois->rank != 2 || rois->dims[1] != wide || x->dims[2] < 1 ||
                            x->dims[3] < 1 || x->dims[2] > 1 << 20 || x->dims[3] > 1 << 20))
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s and %s must have the dimensions [batch, channels, height, width] and [n, %d]",
                    in[0].name, in[1].name, wide);
    if (status == DP_OK && (s->out_height < 1 || s->out_width < 1 || s->out_height > 1 << 16 || s->out_width > 1 << 16))
        status = dp_fail(DP_ERR_ARGUMENT, "%s and %s must be 1 to %d", height->name, width->name, 1 << 16);
    if (status != DP_OK)
        return status;
    int64_t dims[] = {rois->dims[0], x->dims[1], s->out_height, s->out_width};
    if (batch)
        status = dp_shape_expect(batch->as.tensor, batch->name, dims, 1, "one for each box");
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, 4, "boxes, channels, height, width");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof *s) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    const dp_elementwise_table *t = dp_elementwise_current();
    s->x = in[0].slot, s->rois = in[1].slot, s->y = out->slot;
    s->batch = batch ? batch->slot : -1;
    s->batches = x->dims[0], s->channels = x->dims[1], s->height = x->dims[2], s->width = x->dims[3];
    s->count = rois->dims[0];
    s->load_x = t->load[x->element][DP_COMPUTE_F32];
    s->load_rois = t->load[rois->element][DP_COMPUTE_F32];
    s->load_batch = batch ? t->load[batch->as.tensor->element][DP_COMPUTE_I64] : NULL;
    s->store = t->store[out->as.tensor->element][DP_COMPUTE_F32];
    *(state *)dp_plan_state(plan) = *s;
    plan->path = "bins";
    *out_plan = plan;
    return DP_OK;
}

static dp_status align(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    state s = {.aligned = true, .ratio = dp_arg_integer(&in[6], 0), .scale = (float)dp_arg_real(&in[7], 1)};
    s.largest = strcmp(in[3].as.text, "max") == 0;
    s.half = strcmp(in[8].as.text, "half_pixel") == 0;
    if (!s.largest && strcmp(in[3].as.text, "avg") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be avg or max", in[3].name, in[3].as.text);
    if (!s.half && strcmp(in[8].as.text, "output_half_pixel") != 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.24s\", but must be half_pixel or output_half_pixel", in[8].name,
                       in[8].as.text);
    if (s.ratio < 0 || s.ratio > 1 << 10)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 to %d", in[6].name, (long long)s.ratio, 1 << 10);
    return prepare(call, &s, &in[2], &in[4], &in[5], out_plan);
}

static dp_status pool(const dp_operator_call *call, dp_plan **out_plan) {
    state s = {.scale = (float)dp_arg_real(&call->in[4], 1)};
    return prepare(call, &s, NULL, &call->in[2], &call->in[3], out_plan);
}

extern const dp_function dp_boxes_align, dp_boxes_pool;
const dp_function dp_boxes_align = {"align", align, NULL, 0, 0};
const dp_function dp_boxes_pool = {"pool", pool, NULL, 0, 0};
