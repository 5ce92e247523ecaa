/*
 * integer.c - products and convolutions of 8-bit integers with zero points, summed in int32 (wrapping):
 *   matmul_integer(a, b, a_zero, b_zero) -> y      y = (a - a_zero) x (b - b_zero), a [..., m, k], b [..., k, n]; zero
 *       points (absent: 0) are one number, or one per row of a ([m] or [.., m, 1]) and per column of b ([n] or [.., 1,
 * n]) conv_integer(x, w, x_zero, w_zero, strides, pads, dilations, groups) -> y x [batch, channels, space...], w [out,
 * channels / groups, space...]; pads: before and after each dim; x_zero one number, w_zero one or [out] With a and b as
 * they are on the matrix engine, sum (a - p)(b - q) = sum a b - q sum a - p sum b + k p q. The engine's right side is
 * signed: unsigned bytes become signed by turning their top bit, and their zero points go down by 128.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/matmul/products.h"
#include "ops/tiles.h"
#include "ops/window.h"
#include "runtime/pool.h"

#define BYTES (DP_EL_BIT(DP_I8) | DP_EL_BIT(DP_U8))
enum { GRAIN = 1 << 14 };

/* One product and what corrects it. Strides of zero points: 0 for one number. */
typedef struct product {
    const void *a;
    const int8_t *b; /* signed, contiguous */
    int32_t *y;
    bool a_signed;
    int64_t m, n, k;
    const int32_t *p, *q;
    int64_t p_stride, q_stride;
    int32_t *rows, *columns; /* sums of a's rows and b's columns */
} product;

static void sum_rows(void *context, size_t begin, size_t end) {
    const product *x = context;
    for (size_t i = begin; i < end; i++) {
        uint32_t sum = 0;
        const uint8_t *row = (const uint8_t *)x->a + i * (size_t)x->k;
        for (int64_t p = 0; p < x->k; p++)
            sum += (uint32_t)(x->a_signed ? (int8_t)row[p] : row[p]);
        x->rows[i] = (int32_t)sum;
    }
}

static void sum_columns(void *context, size_t begin, size_t end) {
    const product *x = context;
    memset(x->columns + begin, 0, (end - begin) * sizeof *x->columns);
    for (int64_t p = 0; p < x->k; p++) {
        const int8_t *row = x->b + p * x->n;
        for (size_t j = begin; j < end; j++)
            x->columns[j] += row[j];
    }
}

static void correct_rows(void *context, size_t begin, size_t end) {
    const product *x = context;
    for (size_t i = begin; i < end; i++) {
        uint32_t p = (uint32_t)x->p[(int64_t)i * x->p_stride], sum = (uint32_t)x->rows[i];
        uint32_t both = (uint32_t)x->k * p - sum;
        int32_t *y = x->y + i * (size_t)x->n;
        for (int64_t j = 0; j < x->n; j++)
            y[j] = (int32_t)((uint32_t)y[j] + (uint32_t)x->q[j * x->q_stride] * both - p * (uint32_t)x->columns[j]);
    }
}

static dp_status multiply(product *x) {
    if (x->m == 0 || x->n == 0)
        return DP_OK;
    if (x->k == 0) {
        memset(x->y, 0, (size_t)(x->m * x->n) * sizeof *x->y);
        return DP_OK;
    }
    dp_gemm_problem g = {.m = (size_t)x->m, .n = (size_t)x->n, .k = (size_t)x->k, .alpha = 1};
    g.a = (dp_gemm_matrix){.data = x->a, .row_stride = x->k, .column_stride = 1, .dtype = x->a_signed ? DP_I8 : DP_U8};
    g.b = (dp_gemm_matrix){.data = x->b, .row_stride = x->n, .column_stride = 1, .dtype = DP_I8};
    g.c = (dp_gemm_matrix){.data = x->y, .row_stride = x->n, .column_stride = 1, .dtype = DP_I32};
    dp_status status = dp_problems_run(&g, 1);
    if (status != DP_OK)
        return status;
    dp_pool_for((size_t)x->m, (size_t)(GRAIN / x->k + 1), sum_rows, x);
    dp_pool_for((size_t)x->n, (size_t)(GRAIN / x->k + 64), sum_columns, x);
    dp_pool_for((size_t)x->m, (size_t)(GRAIN / x->n + 1), correct_rows, x);
    return DP_OK;
}

typedef struct turning {
    const uint8_t *from;
    int8_t *to;
    uint8_t bit;
} turning;

static void turn_bits(void *context, size_t begin, size_t end) {
    const turning *t = context;
    for (size_t i = begin; i < end; i++)
        t->to[i] = (int8_t)(t->from[i] ^ t->bit);
}

/* Zero points as int32, less `shift`. */
static void read_zeros(dp_plan *plan, int slot, int32_t shift, int64_t count, int32_t *out) {
    for (int64_t i = 0; i < count; i++) {
        int64_t value = 0;
        if (slot >= 0) {
            const dp_tensor *t = &plan->tensors[slot].view;
            dp_elementwise_current()->load[t->element][DP_COMPUTE_I64](
                &value, (char *)dp_tensor_data(t) + i * (int64_t)dp_element_bytes(t->element), 1);
        }
        out[i] = (int32_t)value - shift;
    }
}

/* A zero point of one number, or of `many`; *out_count says which. */
static dp_status check_zero(const dp_arg *zero, const dp_arg *of, int64_t many, int64_t *out_count) {
    *out_count = 1;
    if (zero->kind != DP_ARG_TENSOR)
        return DP_OK;
    dp_status status = dp_element_expect(zero, DP_EL_BIT(of->as.tensor->element));
    *out_count = dp_tensor_count(zero->as.tensor);
    if (status == DP_OK && *out_count != 1 && *out_count != many)
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s has %lld numbers, but must have 1 or %lld", zero->name,
                         (long long)*out_count, (long long)many);
    return status;
}

static dp_status check_operands(const dp_operator_call *call) {
    const dp_arg *all[] = {&call->in[0], &call->in[1], &call->out[0]};
    dp_status status = DP_OK;
    for (int i = 0; i < 3 && status == DP_OK; i++) {
        status = dp_element_expect(all[i], i < 2 ? BYTES : DP_EL_BIT(DP_I32));
        if (status == DP_OK && !dp_tensor_is_contiguous(all[i]->as.tensor))
            status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", all[i]->name);
    }
    return status;
}

/* ---- products ---- */

typedef struct matmul {
    int a, b, y, a_zero, b_zero;
    int64_t m, n, k, p_count, q_count;
    dp_loop batch; /* views: a, b, in matrices */
    uint64_t signed_at, p_at, q_at, rows_at, columns_at;
} matmul;

static dp_status run_matmul(dp_plan *plan) {
    const matmul *s = dp_plan_state(plan);
    const dp_tensor *a = &plan->tensors[s->a].view, *b = &plan->tensors[s->b].view;
    bool is_unsigned = b->element == DP_U8;
    int8_t *copy = dp_workspace_at(plan, s->signed_at);
    product x = {.a_signed = a->element == DP_I8, .m = s->m, .n = s->n, .k = s->k};
    int32_t *p = dp_workspace_at(plan, s->p_at), *q = dp_workspace_at(plan, s->q_at);
    read_zeros(plan, s->a_zero, 0, s->p_count, p);
    read_zeros(plan, s->b_zero, is_unsigned ? 128 : 0, s->q_count, q);
    x.p = p, x.q = q;
    x.p_stride = s->p_count > 1, x.q_stride = s->q_count > 1;
    x.rows = dp_workspace_at(plan, s->rows_at);
    x.columns = dp_workspace_at(plan, s->columns_at);
    size_t count = (size_t)dp_tensor_count(b);
    turning t = {dp_tensor_data(b), copy, 0x80};
    if (is_unsigned && count)
        dp_pool_for(count, GRAIN, turn_bits, &t);
    dp_status status = DP_OK;
    for (int64_t i = 0; i < s->batch.count && status == DP_OK; i++) {
        x.a = (const char *)dp_tensor_data(a) + dp_loop_offset(&s->batch, 0, i) * s->m * s->k;
        x.b = (is_unsigned ? copy : (const int8_t *)dp_tensor_data(b)) + dp_loop_offset(&s->batch, 1, i) * s->k * s->n;
        x.y = (int32_t *)dp_plan_data(plan, s->y) + i * s->m * s->n;
        status = multiply(&x);
    }
    return status;
}

/* A tensor of the batch dims: its strides count matrices. */
static dp_tensor batch_of(const dp_tensor *t) {
    dp_tensor batch = {.element = t->element, .rank = t->rank - 2};
    for (int64_t d = batch.rank - 1, step = 1; d >= 0; d--) {
        batch.dims[d] = t->dims[d];
        batch.strides[d] = step;
        step *= t->dims[d];
    }
    return batch;
}

static dp_status make_matmul(const dp_operator_call *call, matmul *s, dp_workspace *room) {
    const dp_arg *in = call->in, *out = &call->out[0];
    const dp_tensor *a = in[0].as.tensor, *b = in[1].as.tensor;
    if (a->rank < 2 || b->rank < 2 || a->dims[a->rank - 1] != b->dims[b->rank - 2])
        return dp_fail(DP_ERR_ARGUMENT, "%s and %s must be matrices [..., m, k] and [..., k, n]", in[0].name,
                       in[1].name);
    s->m = a->dims[a->rank - 2], s->k = a->dims[a->rank - 1], s->n = b->dims[b->rank - 1];
    dp_tensor batches[] = {batch_of(a), batch_of(b)};
    const dp_tensor *both[] = {&batches[0], &batches[1]};
    const char *names[] = {in[0].name, in[1].name};
    int64_t dims[DP_TENSOR_DIMS];
    int rank;
    dp_status status = dp_broadcast(both, names, 2, dims, &rank);
    if (status != DP_OK)
        return status;
    dp_loop_begin(&s->batch, dims, rank);
    dp_loop_add(&s->batch, both[0]);
    dp_loop_add(&s->batch, both[1]);
    dims[rank] = s->m, dims[rank + 1] = s->n;
    status = check_zero(&in[2], &in[0], s->m, &s->p_count);
    if (status == DP_OK)
        status = check_zero(&in[3], &in[1], s->n, &s->q_count);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, dims, rank + 2, "that of the product");
    s->signed_at = dp_workspace_take(room, b->element == DP_U8 ? dp_tensor_count(b) : 0, 1);
    return status;
}

static dp_status finish(const dp_operator_call *call, dp_status (*run)(dp_plan *plan), const void *state, size_t bytes,
                        const dp_workspace *room, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, bytes);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    dp_status status = dp_workspace_set(room, plan);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    memcpy(dp_plan_state(plan), state, bytes);
    plan->path = "matrix engine, corrected";
    *out_plan = plan;
    return DP_OK;
}

static dp_status matmul_integer(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in;
    matmul s = {.a = in[0].slot, .b = in[1].slot, .y = call->out[0].slot};
    dp_workspace room = {.bytes = 0};
    dp_status status = check_operands(call);
    if (status == DP_OK)
        status = make_matmul(call, &s, &room);
    if (status != DP_OK)
        return status;
    s.a_zero = in[2].kind == DP_ARG_TENSOR ? in[2].slot : -1;
    s.b_zero = in[3].kind == DP_ARG_TENSOR ? in[3].slot : -1;
    s.p_at = dp_workspace_take(&room, s.p_count, sizeof(int32_t));
    s.q_at = dp_workspace_take(&room, s.q_count, sizeof(int32_t));
    s.rows_at = dp_workspace_take(&room, s.m, sizeof(int32_t));
    s.columns_at = dp_workspace_take(&room, s.n, sizeof(int32_t));
    return finish(call, run_matmul, &s, sizeof s, &room, out_plan);
}

/* ---- convolutions: the windows of one image and group as columns ---- */

typedef struct conv {
    int x, w, y, x_zero, w_zero;
    int64_t batch, channels, out, groups, q_count; /* channels and out of all groups */
    dp_axis axes[DP_SPACE];
    int64_t taps, positions;
    uint64_t columns_at, p_at, q_at, rows_at, sums_at;
} conv;

typedef struct unfolding {
    const conv *s;
    const uint8_t *image; /* of the group's first channel */
    int8_t *columns;
    uint8_t bit, zero;
} unfolding;

/* Rows of the columns: one tap of one channel at all positions. */
static void unfold_rows(void *context, size_t begin, size_t end) {
    const unfolding *u = context;
    const dp_axis *az = &u->s->axes[0], *ay = &u->s->axes[1], *ax = &u->s->axes[2];
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
        int64_t channel = row / u->s->taps, tap = row % u->s->taps, kx = tap % ax->kernel,
                ky = tap / ax->kernel % ay->kernel, kz = tap / ax->kernel / ay->kernel;
        const uint8_t *plane = u->image + channel * az->size * ay->size * ax->size;
        int8_t *to = u->columns + row * u->s->positions;
        for (int64_t oz = 0; oz < az->windows; oz++)
            for (int64_t oy = 0; oy < ay->windows; oy++) {
                int64_t z = oz * az->stride + kz * az->dilation - az->pad,
                        y = oy * ay->stride + ky * ay->dilation - ay->pad;
                bool inside = z >= 0 && z < az->size && y >= 0 && y < ay->size;
                int64_t offset = kx * ax->dilation - ax->pad, first = 0, last = 0;
                if (inside)
                    dp_axis_valid(offset, ax->stride, ax->size, ax->windows, &first, &last);
                const uint8_t *line = plane + (z * ay->size + y) * ax->size;
                memset(to, (uint8_t)(u->zero ^ u->bit), (size_t)ax->windows);
                for (int64_t ox = first; ox < last; ox++)
                    to[ox] = (int8_t)(line[ox * ax->stride + offset] ^ u->bit);
                to += ax->windows;
            }
    }
}

static dp_status run_conv(dp_plan *plan) {
    const conv *s = dp_plan_state(plan);
    const dp_tensor *x = &plan->tensors[s->x].view, *w = &plan->tensors[s->w].view;
    int64_t area = s->axes[0].size * s->axes[1].size * s->axes[2].size, channels = s->channels / s->groups,
            out = s->out / s->groups;
    int32_t *p = dp_workspace_at(plan, s->p_at), *q = dp_workspace_at(plan, s->q_at);
    bool is_unsigned = x->element == DP_U8;
    read_zeros(plan, s->x_zero, 0, 1, q);
    unfolding u = {s, NULL, dp_workspace_at(plan, s->columns_at), is_unsigned ? 0x80 : 0, (uint8_t)q[0]};
    read_zeros(plan, s->x_zero, is_unsigned ? 128 : 0, 1, q);
    read_zeros(plan, s->w_zero, 0, s->q_count, p);
    product g = {
        .b = u.columns, .a_signed = w->element == DP_I8, .m = out, .n = s->positions, .k = channels * s->taps, .q = q};
    g.p_stride = s->q_count > 1;
    g.rows = dp_workspace_at(plan, s->rows_at);
    g.columns = dp_workspace_at(plan, s->sums_at);
    dp_status status = DP_OK;
    for (int64_t i = 0; i < s->batch * s->groups && status == DP_OK && s->positions && out; i++) {
        int64_t group = i % s->groups;
        u.image = (const uint8_t *)dp_tensor_data(x) + i * channels * area;
        if (g.k)
            dp_pool_for((size_t)g.k, (size_t)(GRAIN / s->positions + 1), unfold_rows, &u);
        g.a = (const char *)dp_tensor_data(w) + group * out * g.k;
        g.p = p + group * out * g.p_stride;
        g.y = (int32_t *)dp_plan_data(plan, s->y) + i * out * s->positions;
        status = multiply(&g);
    }
    return status;
}

static dp_status take_axes(const dp_operator_call *call, conv *s, int64_t *dims) {
    const dp_arg *in = call->in;
    const dp_tensor *x = in[0].as.tensor, *w = in[1].as.tensor;
    int space = x->rank - 2;
    int64_t strides[DP_SPACE], dilations[DP_SPACE];
    dp_status status = dp_window_list(&in[4], space, 1, 1, 1, strides);
    if (status == DP_OK)
        status = dp_window_padding(&in[5], space, s->axes);
    if (status == DP_OK)
        status = dp_window_list(&in[6], space, 1, 1, 1, dilations);
    s->taps = s->positions = 1;
    for (int d = 0; d < DP_SPACE && status == DP_OK; d++) {
        int from = d - (DP_SPACE - space);
        dp_axis *axis = &s->axes[d];
        axis->size = from < 0 ? 1 : x->dims[2 + from];
        axis->kernel = from < 0 ? 1 : w->dims[2 + from];
        axis->stride = strides[d];
        axis->dilation = dilations[d];
        if (from < 0)
            axis->pad = axis->pad_end = 0;
        if (axis->kernel < 1 || axis->kernel > DP_WINDOW_LIMIT || axis->size > DP_WINDOW_LIMIT)
            return dp_fail(DP_ERR_ARGUMENT, "%s has a dimension of space of %lld, but it must be 1 to %d", in[1].name,
                           (long long)axis->kernel, DP_WINDOW_LIMIT);
        axis->windows = dp_axis_windows(axis, false);
        if (__builtin_mul_overflow(s->taps, axis->kernel, &s->taps) ||
            __builtin_mul_overflow(s->positions, axis->windows, &s->positions) || s->positions > INT64_MAX / 64 ||
            s->taps > INT64_MAX / 64)
            return dp_fail(DP_ERR_ARGUMENT, "%s makes more positions than memory", in[5].name);
        if (from >= 0)
            dims[2 + from] = axis->windows;
    }
    return status;
}

static dp_status conv_integer(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *result = &call->out[0];
    const dp_tensor *x = in[0].as.tensor, *w = in[1].as.tensor;
    conv s = {.x = in[0].slot, .w = in[1].slot, .y = result->slot, .groups = dp_arg_integer(&in[7], 1)};
    dp_workspace room = {.bytes = 0};
    int64_t dims[DP_TENSOR_DIMS], x_zeros = 1;
    dp_status status = check_operands(call);
    if (status == DP_OK && (x->rank < 3 || x->rank > 2 + DP_SPACE || w->rank != x->rank))
        status = dp_fail(DP_ERR_ARGUMENT, "%s and %s have %d and %d dimensions, but must have the same, 3 to %d",
                         in[0].name, in[1].name, x->rank, w->rank, 2 + DP_SPACE);
    if (status == DP_OK && (s.groups < 1 || s.groups > x->dims[1] || x->dims[1] % s.groups || w->dims[0] % s.groups ||
                            w->dims[1] != x->dims[1] / s.groups))
        status = dp_fail(DP_ERR_ARGUMENT, "%s, the channels of %s and the filters of %s do not fit together",
                         in[7].name, in[0].name, in[1].name);
    if (status != DP_OK)
        return status;
    s.batch = dims[0] = x->dims[0], s.channels = x->dims[1], s.out = dims[1] = w->dims[0];
    status = check_zero(&in[2], &in[0], 1, &x_zeros);
    if (status == DP_OK)
        status = check_zero(&in[3], &in[1], s.out, &s.q_count);
    if (status == DP_OK)
        status = take_axes(call, &s, dims);
    if (status == DP_OK)
        status = dp_shape_expect(result->as.tensor, result->name, dims, x->rank, "that of the windows");
    if (status != DP_OK)
        return status;
    s.x_zero = in[2].kind == DP_ARG_TENSOR ? in[2].slot : -1;
    s.w_zero = in[3].kind == DP_ARG_TENSOR ? in[3].slot : -1;
    int64_t k = 0;
    if (__builtin_mul_overflow(s.channels / s.groups, s.taps, &k) || (s.positions && k > INT64_MAX / 64 / s.positions))
        return dp_fail(DP_ERR_ARGUMENT, "%s makes more windows than memory", in[5].name);
    s.columns_at = dp_workspace_take(&room, k * s.positions, 1);
    s.p_at = dp_workspace_take(&room, s.q_count, sizeof(int32_t));
    s.q_at = dp_workspace_take(&room, 1, sizeof(int32_t));
    s.rows_at = dp_workspace_take(&room, s.out, sizeof(int32_t));
    s.sums_at = dp_workspace_take(&room, s.positions, sizeof(int32_t));
    return finish(call, run_conv, &s, sizeof s, &room, out_plan);
}

extern const dp_function dp_quant_matmul_integer, dp_quant_conv_integer;
const dp_function dp_quant_matmul_integer = {"matmul_integer", matmul_integer, NULL, 0xc, 0};
const dp_function dp_quant_conv_integer = {"conv_integer", conv_integer, NULL, 0x7c, 0};
