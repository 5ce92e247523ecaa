/*
 * determinant.c - determinants of matrices:
 *   determinant(self) -> out          self [..., n, n], out [...]
 * Gaussian elimination with row pivots, in double; a matrix of 0 x 0 has the determinant 1. Both are contiguous.
 */
#include <math.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "ops/tiles.h"

enum { ORDER = 1 << 13 };

typedef struct state {
    int self, out;
    int64_t matrices, n;
    dp_convert_fn load, store;
} state;

static double eliminate(double *m, int64_t n) {
    double product = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
        if (m[pivot * n + k] == 0)
            return 0;
        for (int64_t j = k; j < n && pivot != k; j++) {
            double other = m[k * n + j];
            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = other;
        }
        product *= pivot == k ? m[k * n + k] : -m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return product;
}

static void one_matrix(void *context, size_t tile, void *scratch) {
    dp_plan *plan = context;
    const state *s = dp_plan_state(plan);
    const dp_tensor *self = &plan->tensors[s->self].view, *out = &plan->tensors[s->out].view;
    size_t size = (size_t)(s->n * s->n);
    s->load(scratch, (char *)dp_tensor_data(self) + tile * size * dp_element_bytes(self->element), size);
    double result = eliminate(scratch, s->n);
    s->store((char *)dp_tensor_data(out) + tile * dp_element_bytes(out->element), &result, 1);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    return s->matrices
               ? dp_tiles_run((size_t)s->matrices, (size_t)(s->n * s->n) * sizeof(double) + 64, one_matrix, plan)
               : DP_OK;
}

static dp_status determinant(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *t = in->as.tensor;
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(t->element));
    if (status == DP_OK &&
        (t->rank < 2 || t->dims[t->rank - 1] != t->dims[t->rank - 2] || t->dims[t->rank - 1] > ORDER))
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s must have at least 2 dimensions, and the last two the same size, at most %d",
                    in->name, ORDER);
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, t->dims, t->rank - 2, "one for each matrix");
    if (status == DP_OK && (!dp_tensor_is_contiguous(t) || !dp_tensor_is_contiguous(out->as.tensor)))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s and %s must be contiguous", in->name, out->name);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    const dp_elementwise_table *e = dp_elementwise_current();
    *(state *)dp_plan_state(plan) = (state){in->slot,
                                            out->slot,
                                            dp_tensor_count(out->as.tensor),
                                            t->dims[t->rank - 1],
                                            e->load[t->element][DP_COMPUTE_F64],
                                            e->store[t->element][DP_COMPUTE_F64]};
    plan->path = "elimination";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_linalg_determinant;
const dp_function dp_linalg_determinant = {"determinant", determinant, NULL, 0, 0};
