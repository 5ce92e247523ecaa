/*
 * grid_gradient.c - what images read at the places of a grid (grid.c) give back to image and grid, by PyTorch's
 * formulas: sample2d_gradient(grad, input, grid, interpolation, padding, align, wanted) -> dinput, dgrid
 * sample3d_gradient wanted: two flags, which of the results are made. Elements of dinput sum positions in their order,
 * in double. Where padding brings a place back to the border the grid has no gradient; nearest elements give it none at
 * all.
 */
#include <math.h>
#include <string.h>

#include "ops/doubles.h"
#include "ops/elementwise/kernels.h"
#include "ops/resize/grid.h"
#include "ops/tiles.h"
#include "runtime/pool.h"

typedef struct state {
    dp_grid s; /* x: the input, y: the gradient of the results */
    dp_image image;
    int64_t grid_stride[2 + DP_SPACE]; /* of dgrid */
    int grid_slot, grid_element;
    bool wants_image, wants_grid;
    uint64_t at, weight; /* in the workspace: [position][tap], of one image; places in a dense plane, -1: nothing */
} state;

typedef struct job {
    dp_plan *plan;
    const state *g;
    int64_t n;
    int64_t *at;
    float *weight;
} job;

/* Taps of one position: elements and weights along each axis, and places in elements. */
typedef struct taps {
    int n[DP_SPACE];
    int64_t at[DP_SPACE][4];
    float weight[DP_SPACE][4], place[DP_SPACE];
} taps;

static taps taps_of(const job *j, int64_t z, int64_t y, int64_t x) {
    const dp_grid *s = &j->g->s;
    taps t = {.n = {1, 1, 1}, .weight = {{1}, {1}, {1}}};
    int64_t row = j->n * s->grid_stride[0] + z * s->grid_stride[1] + y * s->grid_stride[2] + x * s->grid_stride[3];
    for (int d = DP_SPACE - s->space; d < DP_SPACE; d++) { /* coordinate 0 is x, the last dim */
        float coordinate;
        dp_elementwise_current()->load[s->grid_element][DP_COMPUTE_F32](
            &coordinate,
            (const char *)dp_plan_data(j->plan, s->grid_slot) +
                (row + (DP_SPACE - 1 - d) * s->grid_stride[4]) * (int64_t)dp_element_bytes(s->grid_element),
            1);
        t.place[d] = dp_grid_place(s, coordinate, s->x.size[d]);
        t.n[d] = dp_grid_along(s, t.place[d], s->x.size[d], t.at[d], t.weight[d]);
    }
    return t;
}

static bool is_inside(const dp_grid *s, const taps *t, int a, int b, int c, int64_t *p) {
    p[0] = t->at[0][a], p[1] = t->at[1][b], p[2] = t->at[2][c];
    for (int d = 0; d < DP_SPACE; d++)
        if (p[d] < 0 || p[d] >= s->x.size[d])
            return false;
    return true;
}

/* Rows of positions: their taps. */
static void find_rows(void *context, size_t begin, size_t end) {
    const job *j = context;
    const dp_grid *s = &j->g->s;
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++)
        for (int64_t x = 0; x < s->y.size[2]; x++) {
            const taps t = taps_of(j, row / s->y.size[1], row % s->y.size[1], x);
            int64_t *at = j->at + (row * s->y.size[2] + x) * DP_GRID_TAPS, p[DP_SPACE];
            float *weight = j->weight + (row * s->y.size[2] + x) * DP_GRID_TAPS;
            int tap = 0;
            for (int a = 0; a < t.n[0]; a++)
                for (int b = 0; b < t.n[1]; b++)
                    for (int c = 0; c < t.n[2]; c++, tap++) {
                        at[tap] =
                            is_inside(s, &t, a, b, c, p) ? (p[0] * s->x.size[1] + p[1]) * s->x.size[2] + p[2] : -1;
                        weight[tap] = t.weight[0][a] * t.weight[1][b] * t.weight[2][c];
                    }
            for (; tap < DP_GRID_TAPS; tap++)
                at[tap] = -1;
        }
}

/* One channel of dinput. */
static void image_channel(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *g = j->g;
    const dp_grid *s = &g->s;
    const int64_t width = s->y.size[2], area = s->x.size[0] * s->x.size[1] * s->x.size[2];
    double *plane = scratch, *row = plane + area;
    memset(plane, 0, (size_t)area * sizeof *plane);
    for (int64_t line = 0; line < s->y.size[0] * s->y.size[1]; line++) {
        dp_doubles_load(s->y.element,
                        dp_image_at(j->plan, &s->y, j->n, (int64_t)tile, line / s->y.size[1], line % s->y.size[1]),
                        s->y.stride[2], width, row);
        for (int64_t x = 0; x < width; x++) {
            const int64_t *at = j->at + (line * width + x) * DP_GRID_TAPS;
            const float *weight = j->weight + (line * width + x) * DP_GRID_TAPS;
            for (int tap = 0; tap < DP_GRID_TAPS; tap++)
                if (at[tap] >= 0)
                    plane[at[tap]] += (double)weight[tap] * row[x];
        }
    }
    for (int64_t line = 0; line < s->x.size[0] * s->x.size[1]; line++)
        dp_doubles_store(g->image.element,
                         dp_image_at(j->plan, &g->image, j->n, (int64_t)tile, line / s->x.size[1], line % s->x.size[1]),
                         g->image.stride[2], s->x.size[2], plane + line * s->x.size[2]);
}

/* The derivative of dp_grid_pad. */
static double pad_slope(const dp_grid *s, float x, int64_t size) {
    const float far = 1 << 30;
    if (!(x > -far && x < far))
        return 0;
    bool turned = false;
    if (s->padding == DP_GRID_REFLECTION && !dp_grid_fold(s, size, &x, &turned))
        return 0;
    return s->padding != DP_GRID_ZEROS && (x <= 0 || x >= (float)(size - 1)) ? 0 : turned ? -1 : 1;
}

static double cubic_slope(double x) {
    const double a = -0.75, sign = x < 0 ? -1 : 1;
    x = fabs(x);
    if (x <= 1)
        return sign * (3 * (a + 2) * x - 2 * (a + 3)) * x;
    return x < 2 ? sign * ((3 * a * x - 10 * a) * x + 8 * a) : 0;
}

/* Derivatives of the weights along one axis by the place. */
static void slopes_of(const dp_grid *s, float place, int64_t size, double *out) {
    memset(out, 0, 4 * sizeof *out);
    if (s->interpolation == DP_GRID_LINEAR) {
        out[1] = pad_slope(s, place, size);
        out[0] = -out[1];
    }
    for (int k = 0; s->interpolation == DP_GRID_CUBIC && k < 4; k++)
        out[k] = cubic_slope((double)place - floor((double)place) + 1 - k);
}

/* Sum over the channels of gradient times element. */
static double across(const job *j, const char *grad, const int64_t *p) {
    const dp_grid *s = &j->g->s;
    const dp_convert_fn load_x = dp_elementwise_current()->load[s->x.element][DP_COMPUTE_F64],
                        load_y = dp_elementwise_current()->load[s->y.element][DP_COMPUTE_F64];
    const int64_t x_width = (int64_t)dp_element_bytes(s->x.element), y_width = (int64_t)dp_element_bytes(s->y.element);
    const char *x = dp_image_at(j->plan, &s->x, j->n, 0, p[0], p[1]) + p[2] * s->x.stride[2] * x_width;
    double sum = 0, a, b;
    for (int64_t c = 0; c < s->x.channels; c++) {
        load_x(&a, x + c * s->x.channel_stride * x_width, 1);
        load_y(&b, grad + c * s->y.channel_stride * y_width, 1);
        sum += a * b;
    }
    return sum;
}

static void grid_position(const job *j, int64_t z, int64_t y, int64_t x, double *out) {
    const dp_grid *s = &j->g->s;
    const taps t = taps_of(j, z, y, x);
    const char *grad =
        dp_image_at(j->plan, &s->y, j->n, 0, z, y) + x * s->y.stride[2] * (int64_t)dp_element_bytes(s->y.element);
    double slope[DP_SPACE][4];
    int64_t p[DP_SPACE];
    for (int d = DP_SPACE - s->space; d < DP_SPACE; d++)
        slopes_of(s, t.place[d], s->x.size[d], slope[d]);
    memset(out, 0, DP_SPACE * sizeof *out);
    for (int a = 0; a < t.n[0]; a++)
        for (int b = 0; b < t.n[1]; b++)
            for (int c = 0; c < t.n[2]; c++) {
                if (!is_inside(s, &t, a, b, c, p))
                    continue;
                double sum = across(j, grad, p);
                if (s->space == 3)
                    out[0] += sum * slope[0][a] * t.weight[1][b] * t.weight[2][c];
                out[1] += sum * t.weight[0][a] * slope[1][b] * t.weight[2][c];
                out[2] += sum * t.weight[0][a] * t.weight[1][b] * slope[2][c];
            }
    for (int d = 0; d < DP_SPACE; d++)
        out[d] *= (double)(s->x.size[d] - s->align) / 2;
}

static void grid_rows(void *context, size_t begin, size_t end) {
    const job *j = context;
    const state *g = j->g;
    const dp_grid *s = &g->s;
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++)
        for (int64_t x = 0; x < s->y.size[2]; x++) {
            int64_t z = row / s->y.size[1], y = row % s->y.size[1];
            double out[DP_SPACE] = {0};
            if (s->interpolation != DP_GRID_NEAREST)
                grid_position(j, z, y, x, out);
            for (int d = DP_SPACE - s->space; d < DP_SPACE; d++)
                dp_doubles_store(g->grid_element,
                                 (char *)dp_plan_data(j->plan, g->grid_slot) +
                                     (j->n * g->grid_stride[0] + z * g->grid_stride[1] + y * g->grid_stride[2] +
                                      x * g->grid_stride[3] + (DP_SPACE - 1 - d) * g->grid_stride[4]) *
                                         (int64_t)dp_element_bytes(g->grid_element),
                                 1, 1, &out[d]);
        }
}

static dp_status run(dp_plan *plan) {
    const state *g = dp_plan_state(plan);
    const dp_grid *s = &g->s;
    const size_t rows = (size_t)(s->y.size[0] * s->y.size[1]),
                 area = (size_t)(s->x.size[0] * s->x.size[1] * s->x.size[2]);
    job j = {.plan = plan, .g = g, .at = dp_workspace_at(plan, g->at), .weight = dp_workspace_at(plan, g->weight)};
    dp_status status = DP_OK;
    for (j.n = 0; j.n < s->x.batch && status == DP_OK; j.n++) {
        if (g->wants_image && area) {
            dp_pool_for(rows, 4, find_rows, &j);
            status = dp_tiles_run((size_t)s->x.channels, (area + (size_t)s->y.size[2]) * sizeof(double) + 64,
                                  image_channel, &j);
        }
        if (g->wants_grid)
            dp_pool_for(rows, 1, grid_rows, &j);
    }
    return status;
}

static dp_status take_image(const dp_operator_call *call, const dp_arg *arg, state *g) {
    if (arg->kind != DP_ARG_TENSOR)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but is asked for", arg->name);
    dp_status status = dp_element_expect(arg, call->op->elements);
    if (status == DP_OK)
        status = dp_image_of(arg, g->s.space, false, &g->image);
    if (status == DP_OK)
        status = dp_image_expect(arg, &g->image, &g->s.x, "the input");
    return status == DP_OK ? dp_places_expect(arg) : status;
}

static dp_status take_grid(const dp_operator_call *call, const dp_arg *arg, state *g) {
    if (arg->kind != DP_ARG_TENSOR)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but is asked for", arg->name);
    dp_grid own = g->s;
    dp_status status = dp_element_expect(arg, call->op->elements);
    if (status == DP_OK)
        status = dp_grid_take(arg, &own);
    memcpy(g->grid_stride, own.grid_stride, sizeof g->grid_stride);
    g->grid_slot = arg->slot;
    g->grid_element = own.grid_element;
    return status == DP_OK ? dp_places_expect(arg) : status;
}

static dp_status take_inputs(const dp_operator_call *call, state *g) {
    const dp_arg *in = call->in, *wanted = &in[6];
    dp_grid *s = &g->s;
    dp_status status = DP_OK;
    for (int i = 0; i < 3 && status == DP_OK; i++)
        status = dp_element_expect(&in[i], call->op->elements);
    if (status == DP_OK)
        status = dp_image_of(&in[1], s->space, false, &s->x);
    if (status == DP_OK)
        status = dp_image_of(&in[0], s->space, false, &s->y);
    if (status != DP_OK)
        return status;
    dp_image expected = s->y;
    expected.batch = s->x.batch;
    expected.channels = s->x.channels;
    status = dp_image_expect(&in[0], &s->y, &expected, in[1].name);
    if (status == DP_OK)
        status = dp_grid_take(&in[2], s);
    if (status == DP_OK)
        status = dp_grid_options(&in[3], s);
    if (status == DP_OK && wanted->count != 2)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %lld flags, but must have 2", wanted->name, (long long)wanted->count);
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++)
        if (s->x.size[d] < 1 && dp_tensor_count(in[0].as.tensor))
            status = dp_fail(DP_ERR_ARGUMENT, "%s is empty, but must have elements to sample", in[1].name);
    return status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *wanted = &call->in[6];
    state g = {.s = {.space = *(const int *)call->op->function->detail}};
    dp_workspace room = {.bytes = 0};
    dp_status status = take_inputs(call, &g);
    if (status != DP_OK)
        return status;
    g.wants_image = wanted->as.bools[0];
    g.wants_grid = wanted->as.bools[1];
    if (g.wants_image)
        status = take_image(call, &call->out[0], &g);
    if (status == DP_OK && g.wants_grid)
        status = take_grid(call, &call->out[1], &g);
    if (status != DP_OK)
        return status;
    int64_t positions = g.s.y.size[0] * g.s.y.size[1] * g.s.y.size[2];
    g.at = dp_workspace_take(&room, positions, DP_GRID_TAPS * sizeof(int64_t));
    g.weight = dp_workspace_take(&room, positions, DP_GRID_TAPS * sizeof(float));
    dp_plan *plan = dp_plan_new(call, run, sizeof g);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    status = dp_workspace_set(&room, plan);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    memcpy(dp_plan_state(plan), &g, sizeof g);
    plan->path = "positions";
    *out_plan = plan;
    return DP_OK;
}

static const int two = 2, three = 3;
extern const dp_function dp_resize_sample2d_gradient, dp_resize_sample3d_gradient;
const dp_function dp_resize_sample2d_gradient = {"sample2d_gradient", prepare, &two, 0, 3};
const dp_function dp_resize_sample3d_gradient = {"sample3d_gradient", prepare, &three, 0, 3};
