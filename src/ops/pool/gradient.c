/*
 * gradient.c - gradients of pooling, and the way back by indices:
 *   average2d_gradient(g, x, kernel, stride, padding, ceil, countIncludePad, divisor, cubeMathType) -> gx
 *   average3d_gradient: the same without the last
 *   adaptive_average2d_gradient(g, x) -> gx; 3d
 *   index2d_gradient(g, x, indices) -> gx; 3d     each g goes to the element that was the greatest
 *   unpool2d(x, indices, size) -> y; 3d           y is 0 but for y[index] = x
 * gx is made plane by plane (one channel of one image) in scratch; an index outside the plane is an error of the
 * stream.
 */
#include <stdatomic.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/pool/pool.h"

typedef struct job {
    dp_plan *plan;
    const dp_pool *pool; /* x: what is given, y: the plane that is made */
    _Atomic int64_t bad_index;
} job;

static int64_t plane_size(const dp_image *image) {
    return image->size[0] * image->size[1] * image->size[2];
}

/* Spreads the windows of one plane: reaches are those of x's positions in y. */
static void spread_average(const job *j, int64_t n, int64_t c, float *plane, float *row) {
    const dp_pool *p = j->pool;
    const dp_pool_reach *reach[DP_SPACE];
    for (int d = 0; d < DP_SPACE; d++)
        reach[d] = p->reaches + p->reach_at[d];
    for (int64_t z = 0; z < p->x.size[0]; z++)
        for (int64_t y = 0; y < p->x.size[1]; y++) {
            const dp_pool_reach *rz = &reach[0][z], *ry = &reach[1][y];
            const float *g =
                dp_image_load(p->x.element, dp_image_at(j->plan, &p->x, n, c, z, y), p->x.stride[2], p->x.size[2], row);
            for (int64_t o = 0; o < p->x.size[2]; o++) {
                const dp_pool_reach *rx = &reach[2][o];
                double by = p->divisor != 0 ? p->divisor : (double)rz->size * (double)ry->size * (double)rx->size;
                float share = (float)(g[o] / by);
                for (int64_t kz = 0; kz < rz->count; kz++)
                    for (int64_t ky = 0; ky < ry->count; ky++) {
                        float *to =
                            plane + ((rz->first + kz) * p->y.size[1] + ry->first + ky) * p->y.size[2] + rx->first;
                        for (int64_t kx = 0; kx < rx->count; kx++)
                            to[kx] += share;
                    }
            }
        }
}

static void spread_indices(job *j, int64_t n, int64_t c, float *plane, float *row) {
    const dp_pool *p = j->pool;
    const int64_t width = p->x.size[2], size = plane_size(&p->y);
    const dp_image *at = &p->indices;
    dp_convert_fn load = dp_elementwise_current()->load[at->element][DP_COMPUTE_I64];
    const size_t bytes = dp_element_bytes(at->element);
    for (int64_t z = 0; z < p->x.size[0]; z++)
        for (int64_t y = 0; y < p->x.size[1]; y++) {
            const char *indices = dp_image_at(j->plan, at, n, c, z, y);
            const float *g =
                dp_image_load(p->x.element, dp_image_at(j->plan, &p->x, n, c, z, y), p->x.stride[2], width, row);
            for (int64_t o = 0; o < width; o++) {
                int64_t index;
                load(&index, indices + o * at->stride[2] * (int64_t)bytes, 1);
                if (index < 0 || index >= size)
                    atomic_store(&j->bad_index, index);
                else if (p->kind == DP_POOL_MAX)
                    plane[index] = g[o];
                else
                    plane[index] += g[o];
            }
        }
}

static void run_plane(void *context, size_t tile, void *scratch) {
    job *j = context;
    const dp_pool *p = j->pool;
    const dp_image *y = &p->y;
    int64_t n = (int64_t)tile / y->channels, c = (int64_t)tile % y->channels;
    float *plane = scratch, *row = plane + plane_size(y);
    memset(plane, 0, (size_t)plane_size(y) * sizeof *plane);
    if (p->indices.slot < 0)
        spread_average(j, n, c, plane, row);
    else
        spread_indices(j, n, c, plane, row);
    for (int64_t z = 0; z < y->size[0]; z++)
        for (int64_t i = 0; i < y->size[1]; i++, plane += y->size[2])
            dp_image_store(y->element, dp_image_at(j->plan, y, n, c, z, i), y->stride[2], y->size[2], plane);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .pool = dp_plan_state(plan), .bad_index = INT64_MIN};
    const dp_image *y = &j.pool->y;
    if (!plane_size(y))
        return DP_OK;
    dp_status status = dp_tiles_run((size_t)(y->batch * y->channels), j.pool->scratch_bytes, run_plane, &j);
    int64_t bad = atomic_load(&j.bad_index);
    if (status == DP_OK && bad != INT64_MIN)
        status = dp_fail(DP_ERR_ARGUMENT, "%s: an index is %lld, but must be 0 to %lld, the elements of one channel",
                         plan->op->name, (long long)bad, (long long)plane_size(y) - 1);
    return status;
}

static dp_status make_plan(const dp_operator_call *call, const dp_pool *head, size_t reaches, dp_plan **out_plan) {
    int64_t floats;
    if (reaches > (size_t)1 << 25 || __builtin_add_overflow(plane_size(&head->y), head->x.size[2] + 16, &floats) ||
        floats > (int64_t)1 << 40)
        return dp_fail(DP_ERR_ARGUMENT, "%s has more elements per channel than can be planned", call->out[0].name);
    dp_plan *plan = dp_plan_new(call, run, sizeof *head + reaches * sizeof(dp_pool_reach));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), head, sizeof *head);
    ((dp_pool *)dp_plan_state(plan))->scratch_bytes = (size_t)floats * sizeof(float);
    plan->path = "planes";
    *out_plan = plan;
    return DP_OK;
}

static dp_status take_images(const dp_operator_call *call, int space, dp_pool *p) {
    const dp_arg *g = &call->in[0], *out = &call->out[0];
    dp_status status = dp_element_expect(g, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, call->op->elements);
    if (status == DP_OK)
        status = dp_places_expect(out);
    if (status == DP_OK)
        status = dp_image_of(g, space, true, &p->x);
    if (status == DP_OK)
        status = dp_image_of(out, space, true, &p->y);
    p->indices.slot = -1;
    return status;
}

/* The result has the shape of the forward input. */
static dp_status like_input(const dp_operator_call *call) {
    const dp_tensor *x = call->in[1].as.tensor;
    return dp_shape_expect(call->out[0].as.tensor, call->out[0].name, x->dims, x->rank, call->in[1].name);
}

static dp_status expect_windows(const dp_operator_call *call, const dp_pool *p, const int64_t windows[DP_SPACE],
                                const char *what) {
    dp_image expected = {.batch = p->y.batch, .channels = p->y.channels};
    memcpy(expected.size, windows, sizeof expected.size);
    return dp_image_expect(&call->in[0], &p->x, &expected, what);
}

static size_t place_reaches(dp_pool *p) {
    p->reach_at[1] = (size_t)p->x.size[0];
    p->reach_at[2] = p->reach_at[1] + (size_t)p->x.size[1];
    return p->reach_at[2] + (size_t)p->x.size[2];
}

static dp_status prepare_average(const dp_operator_call *call, dp_plan **out_plan) {
    const int space = *(const int *)call->op->function->detail;
    const dp_arg *in = call->in;
    dp_pool p = {.kind = DP_POOL_AVERAGE};
    dp_axis axes[DP_SPACE] = {{0}};
    dp_status status = take_images(call, space, &p);
    if (status == DP_OK)
        status = like_input(call);
    if (status == DP_OK)
        status = dp_pool_axes(call, &in[2], NULL, dp_arg_integer(&in[5], 0) != 0, space, false, &p.y, axes);
    const int64_t windows[DP_SPACE] = {axes[0].windows, axes[1].windows, axes[2].windows};
    if (status == DP_OK)
        status = expect_windows(call, &p, windows, "input, kernel, stride and padding");
    if (status != DP_OK)
        return status;
    p.divisor = (double)dp_arg_integer(&in[7], 0);
    size_t reaches = place_reaches(&p);
    status = make_plan(call, &p, reaches, out_plan);
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++) {
        dp_pool *made = dp_plan_state(*out_plan);
        dp_pool_reach_windows(&axes[d], dp_arg_integer(&in[6], 0) != 0, made->reaches + made->reach_at[d]);
    }
    return status;
}

static dp_status prepare_adaptive(const dp_operator_call *call, dp_plan **out_plan) {
    const int space = *(const int *)call->op->function->detail;
    dp_pool p = {.kind = DP_POOL_AVERAGE};
    dp_status status = take_images(call, space, &p);
    if (status == DP_OK)
        status = like_input(call);
    if (status == DP_OK)
        status = expect_windows(call, &p, p.x.size, call->in[1].name);
    if (status != DP_OK)
        return status;
    size_t reaches = place_reaches(&p);
    status = make_plan(call, &p, reaches, out_plan);
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++) {
        dp_pool *made = dp_plan_state(*out_plan);
        dp_pool_reach_adaptive(p.y.size[d], p.x.size[d], made->reaches + made->reach_at[d]);
    }
    return status;
}

static dp_status take_indices(const dp_operator_call *call, const dp_arg *arg, int space, dp_pool *p) {
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_I32) | DP_EL_BIT(DP_I64));
    if (status == DP_OK)
        status = dp_image_of(arg, space, true, &p->indices);
    return status == DP_OK ? dp_image_expect(arg, &p->indices, &p->x, call->in[0].name) : status;
}

static dp_status prepare_index(const dp_operator_call *call, dp_plan **out_plan) {
    const int space = *(const int *)call->op->function->detail;
    dp_pool p = {.kind = DP_POOL_MAX_INDEX};
    dp_status status = take_images(call, space, &p);
    if (status == DP_OK)
        status = like_input(call);
    if (status == DP_OK)
        status = expect_windows(call, &p, p.x.size, call->in[1].name);
    if (status == DP_OK)
        status = take_indices(call, &call->in[2], space, &p);
    return status == DP_OK ? make_plan(call, &p, 0, out_plan) : status;
}

static dp_status prepare_unpool(const dp_operator_call *call, dp_plan **out_plan) {
    const int space = *(const int *)call->op->function->detail;
    dp_pool p = {.kind = DP_POOL_MAX};
    int64_t size[DP_SPACE];
    dp_status status = take_images(call, space, &p);
    if (status == DP_OK)
        status = dp_window_list(&call->in[2], space, 0, -1, 1, size);
    dp_image expected = {.batch = p.x.batch, .channels = p.x.channels};
    memcpy(expected.size, size, sizeof size);
    if (status == DP_OK)
        status = dp_image_expect(&call->out[0], &p.y, &expected, call->in[2].name);
    if (status == DP_OK)
        status = take_indices(call, &call->in[1], space, &p);
    return status == DP_OK ? make_plan(call, &p, 0, out_plan) : status;
}

static const int two = 2, three = 3;
#define EXPORT(function, prepare, space, optional_in_bits)                                                             \
    extern const dp_function dp_pool_##function;                                                                       \
    const dp_function dp_pool_##function = {#function, prepare, &space, optional_in_bits, 0};
EXPORT(average2d_gradient, prepare_average, two, 1 << 3 | 1 << 4)
EXPORT(average3d_gradient, prepare_average, three, 1 << 3 | 1 << 4)
EXPORT(adaptive_average2d_gradient, prepare_adaptive, two, 0)
EXPORT(adaptive_average3d_gradient, prepare_adaptive, three, 0)
EXPORT(index2d_gradient, prepare_index, two, 0)
EXPORT(index3d_gradient, prepare_index, three, 0)
EXPORT(unpool2d, prepare_unpool, two, 0)
EXPORT(unpool3d, prepare_unpool, three, 0)
