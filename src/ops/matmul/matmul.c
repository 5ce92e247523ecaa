/*
 * matmul.c - products of matrices and vectors, summed in float (int8 with int8 in int32), with what is added to them.
 *   mm(a, b, mode) -> out                          both of 2 dimensions
 *   bmm(a, b, mode) -> out                         of 3; a batch of 1 is broadcast
 *   matmul(a, b, mode) -> out                      of any rank: vectors stand in for a row or a column, batch dims are
 * broadcast mv(a, vector, mode) -> out, dot(a, b) -> out addmm(self, a, b, beta, alpha, mode) -> out    beta * self +
 * alpha * (a x b), self broadcast; addmv, baddbmm addbmm(self, a, b, beta, alpha, mode) -> out   the products of the
 * batch summed mode is the vendor's cubeMathType. It allows a device to compute with less precision; here it changes
 * nothing.
 */
#include <string.h>

#include "ops/matmul/products.h"

enum { MODE_MOST = 3, ANY = -1 };

/* Ranks are those of a and b, ANY for matmul. */
typedef struct form {
    int rank_a, rank_b;
    bool addend; /* self, beta and alpha */
    bool sum_batch;
} form;

/* A tensor as a batch of matrices. Vectors have one row (a) or one column (b). */
typedef struct operand {
    const dp_arg *arg;
    const dp_tensor *tensor;
    int batch_rank;
    bool vector;
    int64_t rows, columns, row_stride, column_stride;
} operand;

typedef struct request {
    const form *form;
    operand a, b;
    const dp_arg *self, *out;
    double alpha, beta;
    int64_t mode;
    int64_t batch_dims[DP_TENSOR_DIMS];
    int batch_rank;
} request;

static dp_status check_rank(const dp_arg *arg, int rank) {
    const dp_tensor *t = arg->as.tensor;
    char text[160];
    if (rank == ANY ? t->rank > 0 : t->rank == rank)
        return DP_OK;
    dp_dims_describe(t->dims, t->rank, text, sizeof text);
    if (rank == ANY)
        return dp_fail(DP_ERR_ARGUMENT, "%s has no dimensions, but must have at least 1", arg->name);
    return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions %s, but must have %d", arg->name, t->rank, text, rank);
}

static operand operand_of(const dp_arg *arg, bool is_a) {
    const dp_tensor *t = arg->as.tensor;
    operand o = {.arg = arg, .tensor = t, .vector = t->rank == 1, .rows = 1, .columns = 1};
    int last = t->rank - 1;
    if (!o.vector) {
        o.batch_rank = t->rank - 2;
        o.rows = t->dims[last - 1];
        o.columns = t->dims[last];
        o.row_stride = t->strides[last - 1];
        o.column_stride = t->strides[last];
    } else if (is_a) {
        o.columns = t->dims[0];
        o.column_stride = t->strides[0];
    } else {
        o.rows = t->dims[0];
        o.row_stride = t->strides[0];
    }
    return o;
}

/* Element types: int8 by int8 to int32, or float types in any mixture. */
static dp_status check_types(const dp_operator_call *call, const request *r) {
    const dp_tensor *a = r->a.tensor, *b = r->b.tensor, *out = r->out->as.tensor;
    if (!r->form->addend && (a->element == DP_I8 || a->element == DP_U8) && b->element == DP_I8) {
        if (out->element == DP_I32)
            return DP_OK;
        return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have i32 as %s and %s are integers",
                       r->out->name, dp_element_name(out->element), r->a.arg->name, r->b.arg->name);
    }
    const dp_arg *all[] = {r->a.arg, r->b.arg, r->out, r->self};
    for (int i = 0; i < 4; i++) {
        dp_status status = all[i] ? dp_element_expect(all[i], call->op->elements) : DP_OK;
        if (status != DP_OK)
            return status;
    }
    return DP_OK;
}

/* Batches are aligned at their last dims: which dim of the tensor is dim d of the batch; negative when it has none. */
static int dim_at(const operand *o, int batch_rank, int d) {
    return d - (batch_rank - o->batch_rank);
}

static dp_status broadcast_batch(request *r) {
    const operand *a = &r->a, *b = &r->b;
    r->batch_rank = a->batch_rank > b->batch_rank ? a->batch_rank : b->batch_rank;
    for (int d = 0; d < r->batch_rank; d++) {
        int at_a = dim_at(a, r->batch_rank, d), at_b = dim_at(b, r->batch_rank, d);
        int64_t dim_a = at_a < 0 ? 1 : a->tensor->dims[at_a], dim_b = at_b < 0 ? 1 : b->tensor->dims[at_b];
        if (dim_a != dim_b && dim_a != 1 && dim_b != 1)
            return dp_fail(DP_ERR_ARGUMENT,
                           "%s: dimension %d is %lld, but must be 1 or %lld, that of %s: batches are broadcast",
                           b->arg->name, at_b, (long long)dim_b, (long long)dim_a, a->arg->name);
        r->batch_dims[d] = dim_a == 1 ? dim_b : dim_a;
    }
    return DP_OK;
}

static dp_status check_inner(const request *r) {
    const operand *a = &r->a, *b = &r->b;
    if (a->columns == b->rows)
        return DP_OK;
    char text_a[160], text_b[160];
    return dp_fail(DP_ERR_ARGUMENT,
                   "%s: dimension %d is %lld, but must be %lld, the last one of %s: shapes are %s and %s", b->arg->name,
                   b->vector ? 0 : b->tensor->rank - 2, (long long)b->rows, (long long)a->columns, a->arg->name,
                   dp_dims_describe(a->tensor->dims, a->tensor->rank, text_a, sizeof text_a),
                   dp_dims_describe(b->tensor->dims, b->tensor->rank, text_b, sizeof text_b));
}

/* Dims of the result; rows and columns that stand for vectors are left out. */
static int result_dims(const request *r, int64_t *out_dims) {
    int rank = r->form->sum_batch ? 0 : r->batch_rank;
    memcpy(out_dims, r->batch_dims, (size_t)rank * sizeof *out_dims);
    if (!r->a.vector)
        out_dims[rank++] = r->a.rows;
    if (!r->b.vector)
        out_dims[rank++] = r->b.columns;
    return rank;
}

static dp_status check_out(const request *r, const int64_t *dims, int rank) {
    const dp_tensor *out = r->out->as.tensor;
    if (rank == 0 && out->rank == 1 && out->dims[0] == 1)
        return DP_OK; /* one number, with a dim */
    dp_status status = dp_shape_expect(out, r->out->name, dims, rank, "that of the product");
    return status == DP_OK ? dp_places_expect(r->out) : status;
}

static dp_status check_self(const request *r, const int64_t *dims, int rank) {
    const dp_tensor *self = r->self->as.tensor;
    char text[160], want[160];
    bool fits = self->rank <= rank;
    for (int d = 0; d < self->rank && fits; d++)
        fits = self->dims[d] == 1 || self->dims[d] == dims[rank - self->rank + d];
    return fits ? DP_OK
                : dp_fail(DP_ERR_ARGUMENT, "%s has the shape %s, but must have one that is broadcast to %s",
                          r->self->name, dp_dims_describe(self->dims, self->rank, text, sizeof text),
                          dp_dims_describe(dims, rank, want, sizeof want));
}

static void set_factor(dp_products *p, int view, const request *r, const operand *o) {
    int64_t strides[DP_TENSOR_DIMS] = {0};
    for (int d = 0; d < r->batch_rank; d++) {
        int at = dim_at(o, r->batch_rank, d);
        strides[d] = at < 0 || o->tensor->dims[at] == 1 ? 0 : o->tensor->strides[at];
    }
    dp_products_set(p, view, o->arg, o->row_stride, o->column_stride, strides);
}

/* out, or self broadcast to the rank of out. */
static void set_result(dp_products *p, int view, const request *r, const dp_arg *arg, int rank) {
    int64_t all[DP_TENSOR_DIMS] = {0}, strides[DP_TENSOR_DIMS] = {0}, row = 0, column = 0;
    if (!arg) {
        dp_products_set(p, view, NULL, 0, 0, NULL);
        return;
    }
    const dp_tensor *t = arg->as.tensor;
    for (int d = 0; d < t->rank && d < rank; d++)
        all[rank - 1 - d] = t->dims[t->rank - 1 - d] == 1 ? 0 : t->strides[t->rank - 1 - d];
    if (!r->b.vector)
        column = all[--rank];
    if (!r->a.vector)
        row = all[--rank];
    memcpy(strides, all, (size_t)rank * sizeof *strides);
    dp_products_set(p, view, arg, row, column, strides);
}

static dp_status read_request(const dp_operator_call *call, request *r) {
    const form *f = call->op->function->detail;
    const int first = f->addend ? 1 : 0;
    r->form = f;
    r->self = f->addend ? &call->in[0] : NULL;
    r->out = &call->out[0];
    r->alpha = f->addend ? dp_arg_real(&call->in[4], 1) : 1;
    r->beta = f->addend ? dp_arg_real(&call->in[3], 1) : 0;
    const int at_mode = first ? 5 : 2;
    r->mode = call->n_in > at_mode ? dp_arg_integer(&call->in[at_mode], 0) : 0;
    dp_status status = check_rank(&call->in[first], f->rank_a);
    if (status == DP_OK)
        status = check_rank(&call->in[first + 1], f->rank_b);
    if (status != DP_OK)
        return status;
    r->a = operand_of(&call->in[first], true);
    r->b = operand_of(&call->in[first + 1], false);
    if (r->mode < 0 || r->mode > MODE_MOST)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (keep the type) to %d", call->in[at_mode].name,
                       (long long)r->mode, MODE_MOST);
    return check_types(call, r);
}

static dp_status build(const dp_operator_call *call, dp_products *p, const char **out_path) {
    request r = {0};
    dp_status status = read_request(call, &r);
    if (status == DP_OK)
        status = check_inner(&r);
    if (status == DP_OK)
        status = broadcast_batch(&r);
    if (status != DP_OK)
        return status;
    int64_t dims[DP_TENSOR_DIMS];
    const int rank = result_dims(&r, dims);
    status = check_out(&r, dims, rank);
    if (status == DP_OK && r.self)
        status = check_self(&r, dims, rank);
    if (status != DP_OK)
        return status;
    dp_products_begin(p, r.batch_dims, r.batch_rank);
    p->problem.m = (size_t)r.a.rows;
    p->problem.n = (size_t)r.b.columns;
    p->problem.k = (size_t)r.a.columns;
    p->problem.alpha = (float)r.alpha;
    p->problem.beta = (float)r.beta;
    set_result(p, DP_PRODUCTS_C, &r, r.out, rank);
    set_factor(p, DP_PRODUCTS_A, &r, &r.a);
    set_factor(p, DP_PRODUCTS_B, &r, &r.b);
    const bool in_place = r.self && r.self->slot == r.out->slot;
    set_result(p, DP_PRODUCTS_SOURCE, &r, r.beta != 0 && !in_place ? r.self : NULL, rank);
    p->sum_batch = r.form->sum_batch;
    return dp_products_end(p, out_path);
}

static dp_status run(dp_plan *plan) {
    return dp_products_run(plan, dp_plan_state(plan));
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    dp_products products;
    const char *path = "";
    dp_status status = build(call, &products, &path);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof products);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &products, sizeof products);
    plan->path = path;
    *out_plan = plan;
    return DP_OK;
}

#define EXPORT(function, ...)                                                                                          \
    static const form form_##function = {__VA_ARGS__};                                                                 \
    extern const dp_function dp_matmul_##function;                                                                     \
    const dp_function dp_matmul_##function = {#function, prepare, &form_##function, 0, 0};
EXPORT(mm, 2, 2, false, false)
EXPORT(bmm, 3, 3, false, false)
EXPORT(matmul, ANY, ANY, false, false)
EXPORT(mv, 2, 1, false, false)
EXPORT(dot, 1, 1, false, false)
EXPORT(addmm, 2, 2, true, false)
EXPORT(addmv, 2, 1, true, false)
EXPORT(baddbmm, 3, 3, true, false)
EXPORT(addbmm, 3, 3, true, true)
