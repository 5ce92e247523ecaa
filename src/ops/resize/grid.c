/*
 * grid.c - images read at places given by a grid, by PyTorch's formulas:
 *   sample2d(input, grid, interpolation, padding, align) -> out    grid [batch, height, width, (x, y)] in -1 .. 1
 *   sample3d(input, grid, ...) -> out                              grid [batch, depth, height, width, (x, y, z)]
 *   affine(theta, size, align) -> grid                             theta [batch, 2, 3] or [batch, 3, 4]
 * interpolation: 0 linear, 1 nearest, 2 cubic (two dims only). padding: 0 zeros, 1 the border, 2 reflection at it. With
 * align -1 and 1 are the centres of the outermost elements, else their outer edges.
 */
#include <math.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/resize/grid.h"
#include "ops/tiles.h"

typedef struct job {
    dp_plan *plan;
    const dp_grid *s;
} job;

/* Scratch of one row of results. */
typedef struct row_room {
    double *raw;            /* one row of elements of any type */
    int64_t *at;            /* [tap][x]: offset in elements, -1: nothing */
    float *weight;          /* [tap][x] */
    float *place[DP_SPACE]; /* coordinates in elements of the image: z, y, x */
    float *values, *sum;
} row_room;

static size_t room_bytes(int64_t width) {
    return (size_t)width *
           (sizeof(double) + DP_GRID_TAPS * (sizeof(int64_t) + sizeof(float)) + (DP_SPACE + 2) * sizeof(float));
}

static row_room room_in(void *scratch, int64_t width) {
    row_room r = {.raw = scratch};
    r.at = (int64_t *)(r.raw + width);
    r.weight = (float *)(r.at + DP_GRID_TAPS * width);
    float *rest = r.weight + DP_GRID_TAPS * width;
    for (int d = 0; d < DP_SPACE; d++)
        r.place[d] = rest + d * width;
    r.values = rest + DP_SPACE * width;
    r.sum = r.values + width;
    return r;
}

bool dp_grid_fold(const dp_grid *s, int64_t size, float *x, bool *out_turned) {
    float low = s->align ? 0 : -0.5f, span = s->align ? (float)(size - 1) : (float)size;
    if (span <= 0)
        return false;
    float distance = fabsf(*x - low), rest = fmodf(distance, span);
    bool back = fmodf(floorf(distance / span), 2) != 0;
    *out_turned = (*x < low) != back;
    *x = (back ? span - rest : rest) + low;
    return true;
}

float dp_grid_pad(const dp_grid *s, float x, int64_t size) {
    const float far = 1 << 30;
    if (!(x > -far && x < far))
        x = x >= far ? far : -far;
    bool turned;
    if (s->padding == DP_GRID_REFLECTION && !dp_grid_fold(s, size, &x, &turned))
        return 0;
    if (s->padding != DP_GRID_ZEROS)
        x = x < 0 ? 0 : x > (float)(size - 1) ? (float)(size - 1) : x;
    return x;
}

float dp_grid_place(const dp_grid *s, float coordinate, int64_t size) {
    return s->align ? (coordinate + 1) / 2 * (float)(size - 1) : ((coordinate + 1) * (float)size - 1) / 2;
}

static float cubic(float x) {
    const float a = -0.75f;
    x = fabsf(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

int dp_grid_along(const dp_grid *s, float place, int64_t size, int64_t *at, float *weight) {
    if (s->interpolation == DP_GRID_CUBIC) {
        const float far = 1 << 29;
        place = place > -far && place < far ? place : -far;
        float base = floorf(place);
        for (int k = 0; k < 4; k++) {
            float x = base - 1 + (float)k;
            at[k] = (int64_t)rintf(dp_grid_pad(s, x, size));
            weight[k] = cubic(place - x);
        }
        return 4;
    }
    place = dp_grid_pad(s, place, size);
    if (s->interpolation == DP_GRID_NEAREST) {
        at[0] = (int64_t)rintf(place);
        weight[0] = 1;
        return 1;
    }
    at[0] = (int64_t)floorf(place);
    at[1] = at[0] + 1;
    weight[1] = place - (float)at[0];
    weight[0] = 1 - weight[1];
    return 2;
}

/* All taps of the row's positions. Returns their number. */
static int find_taps(const dp_grid *s, int64_t width, row_room *room) {
    int taps = 0;
    for (int64_t o = 0; o < width; o++) {
        int64_t at[DP_SPACE][4] = {{0}};
        float weight[DP_SPACE][4] = {{1}, {1}, {1}};
        int n[DP_SPACE] = {1, 1, 1};
        for (int d = DP_SPACE - s->space; d < DP_SPACE; d++)
            n[d] = dp_grid_along(s, room->place[d][o], s->x.size[d], at[d], weight[d]);
        taps = 0;
        for (int a = 0; a < n[0]; a++)
            for (int b = 0; b < n[1]; b++)
                for (int c = 0; c < n[2]; c++, taps++) {
                    const int64_t p[DP_SPACE] = {at[0][a], at[1][b], at[2][c]};
                    bool inside = true;
                    int64_t offset = 0;
                    for (int d = 0; d < DP_SPACE; d++) {
                        inside = inside && p[d] >= 0 && p[d] < s->x.size[d];
                        offset += p[d] * s->x.stride[d];
                    }
                    room->at[taps * width + o] = inside ? offset : -1;
                    room->weight[taps * width + o] = weight[0][a] * weight[1][b] * weight[2][c];
                }
    }
    return taps;
}

#define GATHER(T)                                                                                                      \
    for (int64_t o = 0; o < width; o++)                                                                                \
        ((T *)room->raw)[o] = at[o] < 0 ? 0 : ((const T *)plane)[at[o]];

static void add_tap(const dp_grid *s, const char *plane, int tap, int64_t width, row_room *room) {
    const int64_t *at = room->at + tap * width;
    const float *weight = room->weight + tap * width;
    const float *values = room->values;
    if (s->x.element == DP_F32) {
        GATHER(float)
        values = (const float *)room->raw;
    } else {
        GATHER(uint16_t)
        dp_elementwise_current()->load[s->x.element][DP_COMPUTE_F32](room->values, room->raw, (size_t)width);
    }
    for (int64_t o = 0; o < width; o++)
        room->sum[o] += at[o] < 0 ? 0 : weight[o] * values[o];
}

/* Row (n, z, y) of all channels: the taps are the same for each. */
static void sample_row(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const dp_grid *s = j->s;
    const int64_t width = s->y.size[2];
    row_room room = room_in(scratch, width);
    int64_t y = (int64_t)tile % s->y.size[1], z = (int64_t)tile / s->y.size[1] % s->y.size[0];
    int64_t n = (int64_t)tile / s->y.size[1] / s->y.size[0];
    int64_t row = n * s->grid_stride[0] + z * s->grid_stride[1] + y * s->grid_stride[2];
    for (int d = DP_SPACE - s->space; d < DP_SPACE; d++) { /* coordinate 0 is x, the last dim */
        int64_t at = row + (DP_SPACE - 1 - d) * s->grid_stride[4];
        const char *data =
            (const char *)dp_plan_data(j->plan, s->grid_slot) + at * (int64_t)dp_element_bytes(s->grid_element);
        const float *from = dp_image_load(s->grid_element, data, s->grid_stride[3], width, room.place[d]);
        for (int64_t o = 0; o < width; o++)
            room.place[d][o] = dp_grid_place(s, from[o], s->x.size[d]);
    }
    int taps = find_taps(s, width, &room);
    for (int64_t c = 0; c < s->y.channels; c++) {
        memset(room.sum, 0, (size_t)width * sizeof *room.sum);
        for (int tap = 0; tap < taps; tap++)
            add_tap(s, dp_image_at(j->plan, &s->x, n, c, 0, 0), tap, width, &room);
        dp_image_store(s->y.element, dp_image_at(j->plan, &s->y, n, c, z, y), s->y.stride[2], width, room.sum);
    }
}

static dp_status run_sample(dp_plan *plan) {
    const dp_grid *s = dp_plan_state(plan);
    job j = {plan, s};
    if (!s->y.size[2] || !s->y.channels)
        return DP_OK;
    return dp_tiles_run((size_t)(s->y.batch * s->y.size[0] * s->y.size[1]), s->scratch_bytes, sample_row, &j);
}

dp_status dp_grid_take(const dp_arg *arg, dp_grid *s) {
    const dp_tensor *t = arg->as.tensor;
    int64_t dims[2 + DP_SPACE];
    dims[0] = s->y.batch;
    for (int i = 0; i < s->space; i++)
        dims[1 + i] = s->y.size[DP_SPACE - s->space + i];
    dims[1 + s->space] = s->space;
    dp_status status = dp_shape_expect(t, arg->name, dims, 2 + s->space, "batch and sizes of the output, coordinates");
    if (status != DP_OK)
        return status;
    s->grid_slot = arg->slot;
    s->grid_element = t->element;
    s->grid_stride[0] = t->strides[0];
    s->grid_stride[1] = s->space == 3 ? t->strides[1] : 0;
    s->grid_stride[2] = t->strides[s->space - 1];
    s->grid_stride[3] = t->strides[s->space];
    s->grid_stride[4] = t->strides[s->space + 1];
    return DP_OK;
}

dp_status dp_grid_options(const dp_arg *in, dp_grid *s) {
    int64_t interpolation = dp_arg_integer(&in[0], 0), padding = dp_arg_integer(&in[1], 0);
    if (interpolation < 0 || interpolation > (s->space == 2 ? 2 : 1))
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (linear)%s or 1 (nearest)%s", in[0].name,
                       (long long)interpolation, s->space == 2 ? "," : "", s->space == 2 ? " or 2 (cubic)" : "");
    if (padding < 0 || padding > 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (zeros), 1 (border) or 2 (reflection)", in[1].name,
                       (long long)padding);
    s->interpolation = (int)interpolation;
    s->padding = (int)padding;
    s->align = dp_arg_integer(&in[2], 0) != 0;
    return DP_OK;
}

static dp_status prepare_sample(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    dp_grid s = {.space = *(const int *)call->op->function->detail};
    const dp_arg *tensors[] = {&in[0], &in[1], out};
    dp_status status = DP_OK;
    for (int i = 0; i < 3 && status == DP_OK; i++)
        status = dp_element_expect(tensors[i], call->op->elements);
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = dp_image_of(&in[0], s.space, false, &s.x);
    if (status == DP_OK)
        status = dp_image_of(out, s.space, false, &s.y);
    if (status != DP_OK)
        return status;
    dp_image expected = s.y;
    expected.batch = s.x.batch;
    expected.channels = s.x.channels;
    status = dp_image_expect(out, &s.y, &expected, in[0].name);
    if (status == DP_OK)
        status = dp_grid_take(&in[1], &s);
    if (status == DP_OK)
        status = dp_grid_options(&in[2], &s);
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++)
        if (s.x.size[d] < 1 && dp_tensor_count(out->as.tensor))
            status = dp_fail(DP_ERR_ARGUMENT, "%s is empty, but must have elements to sample", in[0].name);
    if (status != DP_OK)
        return status;
    s.scratch_bytes = room_bytes(s.y.size[2]);
    dp_plan *plan = dp_plan_new(call, run_sample, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = "rows";
    *out_plan = plan;
    return DP_OK;
}

/* ---- the grid of an affine map ---- */

typedef struct affine {
    int theta_slot, theta_element, grid_slot, grid_element, space;
    bool align;
    int64_t batch, size[DP_SPACE], theta_stride[3], grid_stride[2 + DP_SPACE];
} affine;

static float theta_at(dp_plan *plan, const affine *a, int64_t n, int row, int column) {
    int64_t at = n * a->theta_stride[0] + row * a->theta_stride[1] + column * a->theta_stride[2];
    float value;
    dp_elementwise_current()->load[a->theta_element][DP_COMPUTE_F32](
        &value, (const char *)dp_plan_data(plan, a->theta_slot) + at * (int64_t)dp_element_bytes(a->theta_element), 1);
    return value;
}

/* Where element i of an axis lies between -1 and 1. */
static float position(const affine *a, int axis, int64_t i) {
    float n = (float)a->size[axis];
    if (a->align)
        return n > 1 ? 2 * (float)i / (n - 1) - 1 : 0;
    return (2 * (float)i + 1) / n - 1;
}

static void affine_row(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const affine *a = dp_plan_state(j->plan);
    const int64_t width = a->size[2];
    int64_t y = (int64_t)tile % a->size[1], z = (int64_t)tile / a->size[1] % a->size[0],
            n = (int64_t)tile / a->size[1] / a->size[0];
    float *row = scratch;
    for (int k = 0; k < a->space; k++) {
        float t[4] = {0};
        for (int i = 0; i <= a->space; i++)
            t[i] = theta_at(j->plan, a, n, k, i);
        float rest = t[1] * position(a, 1, y) + (a->space == 3 ? t[2] * position(a, 0, z) : 0) + t[a->space];
        for (int64_t x = 0; x < width; x++)
            row[x] = t[0] * position(a, 2, x) + rest;
        int64_t at = n * a->grid_stride[0] + z * a->grid_stride[1] + y * a->grid_stride[2] + k * a->grid_stride[4];
        dp_image_store(a->grid_element,
                       (char *)dp_plan_data(j->plan, a->grid_slot) + at * (int64_t)dp_element_bytes(a->grid_element),
                       a->grid_stride[3], width, row);
    }
}

static dp_status run_affine(dp_plan *plan) {
    const affine *a = dp_plan_state(plan);
    job j = {.plan = plan};
    return dp_tiles_run((size_t)(a->batch * a->size[0] * a->size[1]), (size_t)a->size[2] * sizeof(float) + 1,
                        affine_row, &j);
}

static dp_status prepare_affine(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *theta = &call->in[0], *size = &call->in[1], *out = &call->out[0];
    const dp_tensor *t = theta->as.tensor, *g = out->as.tensor;
    affine a = {.theta_slot = theta->slot,
                .theta_element = t->element,
                .grid_slot = out->slot,
                .grid_element = g->element,
                .size = {1, 1, 1},
                .align = dp_arg_integer(&call->in[2], 0) != 0};
    if (size->count != 4 && size->count != 5)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld numbers, but must have 4 or 5: batch, channels and those of space",
                       size->name, (long long)size->count);
    a.space = (int)size->count - 2;
    a.batch = size->as.integers[0];
    const int64_t theta_dims[] = {a.batch, a.space, a.space + 1};
    int64_t grid_dims[2 + DP_SPACE] = {a.batch};
    for (int i = 0; i < a.space; i++) {
        grid_dims[1 + i] = a.size[DP_SPACE - a.space + i] = size->as.integers[2 + i];
        if (size->as.integers[2 + i] < 0 || size->as.integers[2 + i] > INT32_MAX)
            return dp_fail(DP_ERR_ARGUMENT, "%s[%d] is %lld, but must be 0 to %d", size->name, 2 + i,
                           (long long)size->as.integers[2 + i], INT32_MAX);
    }
    grid_dims[1 + a.space] = a.space;
    dp_status status = dp_element_expect(theta, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_shape_expect(t, theta->name, theta_dims, 3, "batch, dims of space, and one more");
    if (status == DP_OK)
        status = dp_shape_expect(g, out->name, grid_dims, 2 + a.space, size->name);
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status != DP_OK)
        return status;
    memcpy(a.theta_stride, t->strides, sizeof a.theta_stride);
    a.grid_stride[0] = g->strides[0];
    a.grid_stride[1] = a.space == 3 ? g->strides[1] : 0;
    a.grid_stride[2] = g->strides[a.space - 1];
    a.grid_stride[3] = g->strides[a.space];
    a.grid_stride[4] = g->strides[a.space + 1];
    dp_plan *plan = dp_plan_new(call, run_affine, sizeof a);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &a, sizeof a);
    plan->path = "rows";
    *out_plan = plan;
    return DP_OK;
}

static const int two = 2, three = 3;
extern const dp_function dp_resize_sample2d, dp_resize_sample3d, dp_resize_affine;
const dp_function dp_resize_sample2d = {"sample2d", prepare_sample, &two, 0, 0};
const dp_function dp_resize_sample3d = {"sample3d", prepare_sample, &three, 0, 0};
const dp_function dp_resize_affine = {"affine", prepare_affine, NULL, 0, 0};
