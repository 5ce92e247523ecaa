/*
 * weight_quant.c - products with a quantised weight, whose scales are applied in float as it is read.
 *   weight_quant(x, weight, scale, offset, out_scale, out_offset, bias, group_size) -> y
 * y = x * ((weight + offset) * scale) + bias. The weight [k, n] is int8, int4, or int32 that hold 8 int4 each along the
 * dim that is contiguous. scale and offset: one number, one per column ([n] or [1, n]), or one per group of group_size
 * rows and column ([groups, n]). out_scale and out_offset would make y int8, which is not offered.
 */
#include <string.h>

#include "ops/matmul/products.h"

enum { X, WEIGHT, SCALE, OFFSET, OUT_SCALE, OUT_OFFSET, BIAS, GROUP_SIZE };

typedef struct state {
    dp_products products;
    int scale, offset, bias; /* slots, -1: absent */
} state;

static bool present(const dp_operator_call *call, int i) {
    return call->in[i].kind == DP_ARG_TENSOR;
}

static int slot_of(const dp_operator_call *call, int i) {
    return present(call, i) ? call->in[i].slot : -1;
}

static dp_status check_types(const dp_operator_call *call) {
    const uint32_t floats = call->op->elements;
    const uint32_t weights = DP_EL_BIT(DP_I8) | DP_EL_BIT(DP_I4) | DP_EL_BIT(DP_I32);
    dp_status status = dp_element_expect(&call->in[X], floats);
    if (status == DP_OK)
        status = dp_element_expect(&call->in[WEIGHT], weights);
    if (status == DP_OK)
        status = dp_element_expect(&call->in[SCALE], floats);
    if (status == DP_OK && present(call, BIAS))
        status = dp_element_expect(&call->in[BIAS], floats);
    if (status == DP_OK && (present(call, OUT_SCALE) || present(call, OUT_OFFSET)))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but a quantised %s is not offered: pass NULL",
                         call->in[present(call, OUT_SCALE) ? OUT_SCALE : OUT_OFFSET].name, call->out[0].name);
    return status == DP_OK ? dp_element_expect(&call->out[0], floats) : status;
}

/* The weight as a matrix of int8 or int4. */
typedef struct weight {
    dp_dtype dtype;
    int64_t k, n, row_stride, column_stride;
} weight;

static dp_status read_weight(const dp_arg *arg, weight *out) {
    const dp_tensor *t = arg->as.tensor;
    if (t->rank != 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2: [k, n]", arg->name, t->rank);
    *out = (weight){.dtype = (dp_dtype)t->element,
                    .k = t->dims[0],
                    .n = t->dims[1],
                    .row_stride = t->strides[0],
                    .column_stride = t->strides[1]};
    if (t->element == DP_I4 && t->offset % 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s: offset is %lld, but must be even: two int4 share a byte", arg->name,
                       (long long)t->offset);
    if (t->element != DP_I32)
        return DP_OK;
    out->dtype = DP_I4;
    if (out->column_stride == 1) {
        out->n *= 8;
        out->row_stride *= 8;
    } else if (out->row_stride == 1) {
        out->k *= 8;
        out->column_stride *= 8;
    } else {
        return dp_fail(DP_ERR_ARGUMENT, "%s: strides are %lld and %lld, but one must be 1: int4 are packed along it",
                       arg->name, (long long)t->strides[0], (long long)t->strides[1]);
    }
    return DP_OK;
}

/* Strides of scale or offset by group and column; *out_groups is the number of groups its shape has. */
static dp_status read_scale(const dp_arg *arg, const weight *w, int64_t *out_group_stride, int64_t *out_column_stride,
                            int64_t *out_groups) {
    const dp_tensor *t = arg->as.tensor;
    char text[160];
    *out_group_stride = *out_column_stride = 0;
    *out_groups = 1;
    if (dp_tensor_count(t) == 1 && t->rank <= 2)
        return DP_OK;
    if (t->rank == 1 && t->dims[0] == w->n) {
        *out_column_stride = t->strides[0];
        return DP_OK;
    }
    if (t->rank == 2 && t->dims[1] == w->n) {
        *out_group_stride = t->dims[0] == 1 ? 0 : t->strides[0];
        *out_column_stride = t->strides[1];
        *out_groups = t->dims[0];
        return DP_OK;
    }
    return dp_fail(DP_ERR_ARGUMENT, "%s has the shape %s, but must have [1], [%lld] or [groups, %lld]", arg->name,
                   dp_dims_describe(t->dims, t->rank, text, sizeof text), (long long)w->n, (long long)w->n);
}

static dp_status set_quant(const dp_operator_call *call, const weight *w, dp_gemm_quant *out) {
    static const char placeholder[8];
    const dp_arg *scale = &call->in[SCALE], *offset = &call->in[OFFSET];
    const int64_t group_size = dp_arg_integer(&call->in[GROUP_SIZE], 0);
    int64_t group_stride, column_stride, groups;
    dp_status status = read_scale(scale, w, &group_stride, &column_stride, &groups);
    if (status != DP_OK)
        return status;
    if (group_size < 0 || group_size % 32)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (no groups) or a multiple of 32",
                       call->in[GROUP_SIZE].name, (long long)group_size);
    const int64_t want = group_size && w->k ? (w->k + group_size - 1) / group_size : 1;
    if (groups != want && w->k)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld groups, but must have %lld: %lld rows in groups of %lld",
                       scale->name, (long long)groups, (long long)want, (long long)w->k, (long long)group_size);
    *out = (dp_gemm_quant){.scale = placeholder,
                           .group_stride = (ptrdiff_t)group_stride,
                           .column_stride = (ptrdiff_t)column_stride,
                           .group_size = groups > 1 ? (size_t)group_size : 0,
                           .dtype = (dp_dtype)scale->as.tensor->element};
    if (!present(call, OFFSET))
        return DP_OK;
    status = read_scale(offset, w, &group_stride, &column_stride, &groups);
    if (status == DP_OK &&
        (groups != want || (ptrdiff_t)group_stride != out->group_stride ||
         (ptrdiff_t)column_stride != out->column_stride || offset->as.tensor->element != scale->as.tensor->element))
        status = dp_fail(DP_ERR_ARGUMENT, "%s must have the type, shape and strides of %s", offset->name, scale->name);
    out->offset = placeholder;
    return status;
}

static dp_status set_bias(const dp_operator_call *call, const weight *w, dp_gemm_epilogue *out) {
    static const char placeholder[8];
    const dp_arg *bias = &call->in[BIAS];
    if (!present(call, BIAS))
        return DP_OK;
    const dp_tensor *t = bias->as.tensor;
    const int64_t dims[] = {1, w->n};
    dp_status status = t->rank == 1 ? dp_shape_expect(t, bias->name, dims + 1, 1, "one per column")
                                    : dp_shape_expect(t, bias->name, dims, 2, "one per column");
    if (status == DP_OK && !dp_tensor_is_contiguous(t))
        status = dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous", bias->name);
    out->bias = placeholder;
    out->bias_dtype = (dp_dtype)t->element;
    return status;
}

static dp_status check_shapes(const dp_operator_call *call, const weight *w) {
    const dp_arg *x = &call->in[X];
    const dp_tensor *t = x->as.tensor;
    if (t->rank < 2 || t->rank > 6)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2 to 6: [m, k]", x->name, t->rank);
    if (t->dims[t->rank - 1] != w->k)
        return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be %lld, the rows of %s", x->name,
                       t->rank - 1, (long long)t->dims[t->rank - 1], (long long)w->k, call->in[WEIGHT].name);
    int64_t dims[DP_TENSOR_DIMS];
    memcpy(dims, t->dims, sizeof dims);
    dims[t->rank - 1] = w->n;
    return dp_shape_expect(call->out[0].as.tensor, call->out[0].name, dims, t->rank, "rows of x by columns of weight");
}

static dp_status build(const dp_operator_call *call, state *s, dp_way *out_way) {
    weight w;
    dp_status status = check_types(call);
    if (status == DP_OK)
        status = read_weight(&call->in[WEIGHT], &w);
    if (status == DP_OK)
        status = check_shapes(call, &w);
    if (status != DP_OK)
        return status;
    dp_products *p = &s->products;
    const dp_tensor *x = call->in[X].as.tensor, *y = call->out[0].as.tensor;
    const int batch = x->rank - 2;
    const int64_t none[DP_TENSOR_DIMS] = {0};
    dp_products_begin(p, x->dims, batch);
    p->problem.m = (size_t)x->dims[batch];
    p->problem.n = (size_t)w.n;
    p->problem.k = (size_t)w.k;
    dp_products_set(p, DP_PRODUCTS_C, &call->out[0], y->strides[batch], y->strides[batch + 1], y->strides);
    dp_products_set(p, DP_PRODUCTS_A, &call->in[X], x->strides[batch], x->strides[batch + 1], x->strides);
    dp_products_set(p, DP_PRODUCTS_B, &call->in[WEIGHT], w.row_stride, w.column_stride, none);
    dp_products_set(p, DP_PRODUCTS_SOURCE, NULL, 0, 0, NULL);
    p->problem.b.dtype = w.dtype;
    status = set_quant(call, &w, &p->problem.quant);
    if (status == DP_OK)
        status = set_bias(call, &w, &p->problem.epilogue);
    s->scale = slot_of(call, SCALE);
    s->offset = slot_of(call, OFFSET);
    s->bias = slot_of(call, BIAS);
    return status == DP_OK ? dp_products_end(p, out_way) : status;
}

static dp_status run(dp_plan *plan) {
    state *s = dp_plan_state(plan);
    dp_gemm_problem *p = &s->products.problem;
    p->quant.scale = dp_plan_data(plan, s->scale);
    if (s->offset >= 0)
        p->quant.offset = dp_plan_data(plan, s->offset);
    if (s->bias >= 0)
        p->epilogue.bias = dp_plan_data(plan, s->bias);
    return dp_products_run(plan, &s->products);
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    state s;
    dp_way way;
    dp_status status = build(call, &s, &way);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &s, sizeof s);
    plan->path = way.path;
    plan->why = way.why;
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_matmul_weight_quant;
const dp_function dp_matmul_weight_quant = {"weight_quant", prepare, NULL,
                                            1u << OFFSET | 1u << OUT_SCALE | 1u << OUT_OFFSET | 1u << BIAS, 0};
