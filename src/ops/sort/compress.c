/*
 * compress.c - slices that a mask chooses:
 *   compress(self, condition, axis) -> out
 * Slice i of dim `axis` (absent: element i of self as one sequence) is kept where condition[i] is true; a condition
 * that is shorter than the dim leaves out the rest. out has room for as many as there are in condition or dim,
 * whichever is less, and gets the dims of what was kept (op.h). Both are contiguous.
 */
#include <string.h>

#include "ops/op.h"

typedef struct state {
    int self, condition, out, dim;
    int64_t outer, size, tested, bytes; /* bytes of a slice inside one of the outer dims */
} state;

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const uint8_t *keep = dp_plan_data(plan, s->condition);
    const char *from = dp_plan_data(plan, s->self);
    char *to = dp_plan_data(plan, s->out);
    int64_t kept = 0;
    for (int64_t i = 0; i < s->tested; i++)
        kept += keep[i] != 0;
    dp_tensor_shrink(&plan->tensors[s->out].view, s->dim, kept);
    if (s->bytes == 0)
        return DP_OK;
    for (int64_t o = 0; o < s->outer; o++, from += s->size * s->bytes)
        for (int64_t i = 0; i < s->tested; i++)
            if (keep[i]) {
                memcpy(to, from + i * s->bytes, (size_t)s->bytes);
                to += s->bytes;
            }
    return DP_OK;
}

static dp_status check(const dp_operator_call *call) {
    const dp_arg *in = &call->in[0], *condition = &call->in[1], *out = &call->out[0];
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(condition, DP_EL_BIT(DP_EL_BOOL) | DP_EL_BIT(DP_U8));
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(in->as.tensor->element));
    if (status == DP_OK && condition->as.tensor->rank != 1)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions, but must have 1", condition->name,
                         condition->as.tensor->rank);
    const dp_arg *all[] = {in, condition, out};
    for (int i = 0; i < 3 && status == DP_OK; i++)
        if (!dp_tensor_is_contiguous(all[i]->as.tensor))
            status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", all[i]->name);
    return status;
}

static dp_status compress(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_tensor *self = call->in[0].as.tensor;
    const dp_arg *axis = &call->in[2], *out = &call->out[0];
    bool flat = axis->kind == DP_ARG_ABSENT;
    int dim = 0;
    dp_status status = check(call);
    if (status == DP_OK && !flat)
        status = dp_dim_check(axis->as.integer, self, axis->name, &dim);
    if (status != DP_OK)
        return status;
    int64_t all = dp_tensor_count(self), dims[DP_TENSOR_DIMS], outer = 1, inner = 1;
    flat |= self->rank == 0;
    memcpy(dims, flat ? &all : self->dims, (size_t)(flat ? 1 : self->rank) * sizeof *dims);
    int rank = flat ? 1 : self->rank;
    for (int d = 0; d < rank; d++) {
        outer *= d < dim ? dims[d] : 1;
        inner *= d > dim ? dims[d] : 1;
    }
    int64_t size = dims[dim], tested = call->in[1].as.tensor->dims[0];
    dims[dim] = tested = tested < size ? tested : size;
    status = dp_shape_expect(out->as.tensor, out->name, dims, rank, "room for all slices that the condition names");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    *(state *)dp_plan_state(plan) = (state){call->in[0].slot,
                                            call->in[1].slot,
                                            out->slot,
                                            dim,
                                            outer,
                                            size,
                                            tested,
                                            inner * (int64_t)dp_element_bytes(self->element)};
    plan->finds_dims = true;
    plan->path = "slices";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_sort_compress;
const dp_function dp_sort_compress = {"compress", compress, NULL, 4, DP_FINDS_DIMS};
