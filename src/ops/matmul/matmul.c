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

#include "ops/matmul/shape.h"

enum { MODE_MOST = 3, ANY = -1 };

/* Ranks are those of a and b, ANY for matmul. */
typedef struct form {
    int rank_a, rank_b;
    bool addend; /* self, beta and alpha */
    bool sum_batch;
} form;

typedef struct request {
    const form *form;
    dp_factor a, b;
    const dp_arg *self, *out;
    double alpha, beta;
    int64_t mode;
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

static dp_status check_self(const dp_arg *arg, const int64_t *dims, int rank) {
    const dp_tensor *self = arg->as.tensor;
    char text[160], want[160];
    bool fits = self->rank <= rank;
    for (int d = 0; d < self->rank && fits; d++)
        fits = self->dims[d] == 1 || self->dims[d] == dims[rank - self->rank + d];
    return fits ? DP_OK
                : dp_fail(DP_ERR_ARGUMENT, "%s has the shape %s, but must have one that is broadcast to %s", arg->name,
                          dp_dims_describe(self->dims, self->rank, text, sizeof text),
                          dp_dims_describe(dims, rank, want, sizeof want));
}

static dp_status read_request(const dp_operator_call *call, request *r) {
    const form *f = call->op->function->detail;
    const int first = f->addend ? 1 : 0, at_mode = first ? 5 : 2;
    *r = (request){.form = f,
                   .self = f->addend ? &call->in[0] : NULL,
                   .out = &call->out[0],
                   .alpha = f->addend ? dp_arg_real(&call->in[4], 1) : 1,
                   .beta = f->addend ? dp_arg_real(&call->in[3], 1) : 0,
                   .mode = call->n_in > at_mode ? dp_arg_integer(&call->in[at_mode], 0) : 0};
    dp_status status = check_rank(&call->in[first], f->rank_a);
    if (status == DP_OK)
        status = check_rank(&call->in[first + 1], f->rank_b);
    if (status != DP_OK)
        return status;
    r->a = dp_factor_of(&call->in[first], true, false);
    r->b = dp_factor_of(&call->in[first + 1], false, false);
    if (r->mode < 0 || r->mode > MODE_MOST)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (keep the type) to %d", call->in[at_mode].name,
                       (long long)r->mode, MODE_MOST);
    return check_types(call, r);
}

static dp_status build(const dp_operator_call *call, dp_products *p, dp_way *out_way) {
    request r;
    dp_product_shape shape;
    dp_status status = read_request(call, &r);
    if (status == DP_OK)
        status = dp_product_shape_of(&r.a, &r.b, &shape);
    if (status != DP_OK)
        return status;
    int64_t dims[DP_TENSOR_DIMS];
    const int rank = dp_product_dims(&shape, r.form->sum_batch, dims);
    status = dp_product_check_out(r.out, dims, rank);
    if (status == DP_OK && r.self)
        status = check_self(r.self, dims, rank);
    if (status != DP_OK)
        return status;
    const bool in_place = r.self && r.self->slot == r.out->slot;
    dp_products_begin(p, shape.batch_dims, shape.batch_rank);
    p->problem.m = (size_t)shape.rows;
    p->problem.n = (size_t)shape.columns;
    p->problem.k = (size_t)shape.inner;
    p->problem.alpha = (float)r.alpha;
    p->problem.beta = (float)r.beta;
    p->sum_batch = r.form->sum_batch;
    dp_product_set_result(p, DP_PRODUCTS_C, &shape, r.out, rank);
    dp_product_set_factor(p, DP_PRODUCTS_A, &shape, &r.a);
    dp_product_set_factor(p, DP_PRODUCTS_B, &shape, &r.b);
    dp_product_set_result(p, DP_PRODUCTS_SOURCE, &shape, r.beta != 0 && !in_place ? r.self : NULL, rank);
    return dp_products_end(p, out_way);
}

static dp_status run(dp_plan *plan) {
    return dp_products_run(plan, dp_plan_state(plan));
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    dp_products products;
    dp_way way;
    dp_status status = build(call, &products, &way);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof products);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &products, sizeof products);
    plan->path = way.path;
    plan->why = way.why;
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
