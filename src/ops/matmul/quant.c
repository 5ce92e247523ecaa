/*
 * quant.c - products of int8 matrices, summed in int32 and scaled back.
 *   quant(x1, x2, x1_scale, x2_scale, y_scale, x1_offset, x2_offset, y_offset, bias, turn_x1, turn_x2, group_size) ->
 * out out = (x1 x x2 + bias) * x2_scale * x1_scale + x2_offset with an int32 bias, else (x1 x x2) * x2_scale * x1_scale
 * + bias + x2_offset. x2_scale, x2_offset: one number or one per column; a 64-bit scale holds a float in its low 32
 * bits. x1_scale: one per row. int8 results are rounded to nearest even and saturated; int32 results are neither scaled
 * nor shifted.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/matmul/shape.h"

enum { X1, X2, X1_SCALE, X2_SCALE, Y_SCALE, X1_OFFSET, X2_OFFSET, Y_OFFSET, BIAS, TURN_X1, TURN_X2, GROUP_SIZE };

typedef struct state {
    dp_products products;
    int row_scale, scale, offset, bias; /* slots, -1: absent */
    int64_t columns;
} state;

static const char placeholder[8];

static bool present(const dp_operator_call *call, int i) {
    return call->in[i].kind == DP_ARG_TENSOR;
}

static dp_status check_types(const dp_operator_call *call) {
    static const struct {
        int index;
        uint32_t elements;
    } rules[] = {{X1, DP_EL_BIT(DP_I8)},
                 {X2, DP_EL_BIT(DP_I8)},
                 {X1_SCALE, DP_EL_BIT(DP_F32)},
                 {X2_SCALE, DP_EL_BIT(DP_F32) | DP_EL_HALVES | DP_EL_BIT(DP_U64) | DP_EL_BIT(DP_I64)},
                 {X2_OFFSET, DP_EL_BIT(DP_F32)},
                 {BIAS, DP_EL_BIT(DP_F32) | DP_EL_HALVES | DP_EL_BIT(DP_I32)}};
    static const int not_offered[] = {Y_SCALE, X1_OFFSET, Y_OFFSET};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const dp_arg *arg = &call->in[rules[i].index];
        dp_status status = arg->kind == DP_ARG_TENSOR ? dp_element_expect(arg, rules[i].elements) : DP_OK;
        if (status != DP_OK)
            return status;
    }
    for (size_t i = 0; i < sizeof not_offered / sizeof *not_offered; i++)
        if (present(call, not_offered[i]))
            return dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but is not offered for int8 factors: pass NULL",
                           call->in[not_offered[i]].name);
    if (dp_arg_integer(&call->in[GROUP_SIZE], 0) != 0)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is %lld, but groups are not offered for int8 factors: pass 0",
                       call->in[GROUP_SIZE].name, (long long)dp_arg_integer(&call->in[GROUP_SIZE], 0));
    return dp_element_expect(&call->out[0], DP_EL_BIT(DP_F32) | DP_EL_HALVES | DP_EL_BIT(DP_I8) | DP_EL_BIT(DP_I32));
}

/* `count` elements in a row, or one when one_is_enough; leading dims of 1 do not matter. */
static dp_status check_line(const dp_arg *arg, int64_t count, bool one_is_enough, const char *meaning) {
    const dp_tensor *t = arg->as.tensor;
    char text[160];
    bool fits = dp_tensor_is_contiguous(t) && t->rank >= 1 && t->dims[t->rank - 1] == dp_tensor_count(t);
    if (fits && (dp_tensor_count(t) == count || (one_is_enough && dp_tensor_count(t) == 1)))
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has the shape %s, but must be contiguous with %s%lld elements: %s", arg->name,
                   dp_dims_describe(t->dims, t->rank, text, sizeof text), one_is_enough ? "1 or " : "",
                   (long long)count, meaning);
}

static dp_status check_lines(const dp_operator_call *call, const dp_product_shape *shape) {
    const int out = call->out[0].as.tensor->element;
    dp_status status = DP_OK;
    if (present(call, X1_SCALE))
        status = check_line(&call->in[X1_SCALE], shape->rows, false, "one per row");
    if (status == DP_OK && present(call, X2_SCALE))
        status = check_line(&call->in[X2_SCALE], shape->columns, true, "one per column");
    if (status == DP_OK && present(call, X2_OFFSET))
        status = check_line(&call->in[X2_OFFSET], shape->columns, true, "one per column");
    if (status == DP_OK && present(call, BIAS))
        status = check_line(&call->in[BIAS], shape->columns, false, "one per column");
    if (status == DP_OK && !present(call, X2_SCALE) && out != DP_I32)
        status = dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but results of type %s need it", call->in[X2_SCALE].name,
                         dp_element_name(out));
    if (status == DP_OK && out == DP_I32 && present(call, BIAS) && call->in[BIAS].as.tensor->element != DP_I32)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have i32 as %s has",
                         call->in[BIAS].name, dp_element_name(call->in[BIAS].as.tensor->element), call->out[0].name);
    return status;
}

static void set_epilogue(const dp_operator_call *call, state *s) {
    dp_gemm_epilogue *e = &s->products.problem.epilogue;
    const bool scaled = call->out[0].as.tensor->element != DP_I32;
    s->row_scale = scaled && present(call, X1_SCALE) ? call->in[X1_SCALE].slot : -1;
    s->scale = scaled ? call->in[X2_SCALE].slot : -1;
    s->offset = scaled && present(call, X2_OFFSET) ? call->in[X2_OFFSET].slot : -1;
    s->bias = present(call, BIAS) ? call->in[BIAS].slot : -1;
    if (s->row_scale >= 0)
        e->row_scale = (const float *)(const void *)placeholder;
    if (s->bias >= 0) {
        e->bias = placeholder;
        e->bias_dtype = (dp_dtype)call->in[BIAS].as.tensor->element;
    }
    if (s->offset >= 0)
        e->residual = (dp_gemm_matrix){.data = placeholder,
                                       .column_stride = dp_tensor_count(call->in[X2_OFFSET].as.tensor) == 1 ? 0 : 1,
                                       .dtype = DP_F32};
}

static dp_status build(const dp_operator_call *call, state *s, dp_way *out_way) {
    dp_status status = check_types(call);
    for (int i = X1; i <= X2 && status == DP_OK; i++)
        if (call->in[i].as.tensor->rank < 2 || call->in[i].as.tensor->rank > 6)
            status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 2 to 6", call->in[i].name,
                             call->in[i].as.tensor->rank);
    if (status != DP_OK)
        return status;
    dp_factor a = dp_factor_of(&call->in[X1], true, dp_arg_integer(&call->in[TURN_X1], 0) != 0);
    dp_factor b = dp_factor_of(&call->in[X2], false, dp_arg_integer(&call->in[TURN_X2], 0) != 0);
    dp_product_shape shape;
    int64_t dims[DP_TENSOR_DIMS];
    status = dp_product_shape_of(&a, &b, &shape);
    if (status != DP_OK)
        return status;
    const int rank = dp_product_dims(&shape, false, dims);
    status = dp_product_check_out(&call->out[0], dims, rank);
    if (status == DP_OK)
        status = check_lines(call, &shape);
    if (status != DP_OK)
        return status;
    dp_products *p = &s->products;
    dp_products_begin(p, shape.batch_dims, shape.batch_rank);
    p->problem.m = (size_t)shape.rows;
    p->problem.n = (size_t)shape.columns;
    p->problem.k = (size_t)shape.inner;
    s->columns = shape.columns;
    dp_product_set_result(p, DP_PRODUCTS_C, &shape, &call->out[0], rank);
    dp_product_set_factor(p, DP_PRODUCTS_A, &shape, &a);
    dp_product_set_factor(p, DP_PRODUCTS_B, &shape, &b);
    dp_product_set_result(p, DP_PRODUCTS_SOURCE, &shape, NULL, rank);
    set_epilogue(call, s);
    return dp_products_end(p, out_way);
}

static dp_status run(dp_plan *plan) {
    state *s = dp_plan_state(plan);
    dp_gemm_problem *p = &s->products.problem;
    float *scales = NULL;
    if (s->row_scale >= 0)
        p->epilogue.row_scale = dp_plan_data(plan, s->row_scale);
    if (s->bias >= 0)
        p->epilogue.bias = dp_plan_data(plan, s->bias);
    if (s->offset >= 0)
        p->epilogue.residual.data = dp_plan_data(plan, s->offset);
    if (s->scale >= 0 && s->columns) {
        const dp_tensor *t = &plan->tensors[s->scale].view;
        const void *data = dp_tensor_data(t);
        if (dp_tensor_count(t) == 1) {
            dp_scales_to_f32(t->element, data, 1, &p->alpha);
        } else if (t->element == DP_F32) {
            p->epilogue.column_scale = data;
        } else {
            scales = dp_alloc(DP_MEM_RUNTIME, (size_t)s->columns * sizeof *scales);
            if (!scales)
                return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for %lld scales", (long long)s->columns);
            dp_scales_to_f32(t->element, data, s->columns, scales);
            p->epilogue.column_scale = scales;
        }
    }
    dp_status status = dp_products_run(plan, &s->products);
    dp_free(scales);
    return status;
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

extern const dp_function dp_matmul_quant;
const dp_function dp_matmul_quant = {"quant", prepare, NULL,
                                     1u << X1_SCALE | 1u << X2_SCALE | 1u << Y_SCALE | 1u << X1_OFFSET |
                                         1u << X2_OFFSET | 1u << Y_OFFSET | 1u << BIAS,
                                     0};
