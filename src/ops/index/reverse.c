/*
 * reverse.c - the beginnings of sequences turned round:
 *   reverse_sequence(self, lengths, dim, batch_dim) -> out
 * out[b][i] = self[b][lengths[b] - 1 - i] for i < lengths[b] along `dim`, self[b][i] behind, where b counts in
 * batch_dim. Lengths must be 0 to the dim's size. self and out are contiguous.
 */
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { GRAIN_BYTES = 1 << 14 };

typedef struct state {
    int self, lengths, out;
    int64_t slices, bytes;                 /* a slice: what lies behind both dims */
    int64_t size, step, batch, batch_step; /* of both dims; steps in slices */
    dp_convert_fn load;
} state;

static int64_t length_of(const dp_plan *plan, const state *s, int64_t b) {
    const dp_tensor *t = &plan->tensors[s->lengths].view;
    int64_t length;
    s->load(&length, (const char *)dp_tensor_data(t) + b * t->strides[0] * (int64_t)dp_element_bytes(t->element), 1);
    return length;
}

static void copy_slices(void *context, size_t begin, size_t end) {
    dp_plan *plan = context;
    const state *s = dp_plan_state(plan);
    const char *from = dp_plan_data(plan, s->self);
    char *to = dp_plan_data(plan, s->out);
    for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
        int64_t at = i / s->step % s->size, length = length_of(plan, s, i / s->batch_step % s->batch);
        int64_t source = at < length && length <= s->size ? i + (length - 1 - 2 * at) * s->step : i;
        memcpy(to + i * s->bytes, from + source * s->bytes, (size_t)s->bytes);
    }
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    for (int64_t b = 0; b < s->batch; b++)
        if (length_of(plan, s, b) < 0 || length_of(plan, s, b) > s->size)
            return dp_fail(DP_ERR_ARGUMENT, "%s: element %lld is %lld, but must be 0 to %lld",
                           plan->tensors[s->lengths].name, (long long)b, (long long)length_of(plan, s, b),
                           (long long)s->size);
    if (s->slices && s->bytes)
        dp_pool_for((size_t)s->slices, (size_t)(GRAIN_BYTES / s->bytes + 1), copy_slices, plan);
    return DP_OK;
}

static dp_status reverse_sequence(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    const dp_tensor *t = in[0].as.tensor;
    int dim = 0, batch = 0;
    dp_status status = dp_element_expect(&in[0], call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(&in[1], DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(t->element));
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&in[2], 0), t, in[2].name, &dim);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&in[3], 0), t, in[3].name, &batch);
    if (status == DP_OK && (t->rank < 2 || dim == batch))
        status = dp_fail(DP_ERR_ARGUMENT, "%s and %s must be different dimensions of %s", in[2].name, in[3].name,
                         in[0].name);
    if (status == DP_OK)
        status = dp_shape_expect(in[1].as.tensor, in[1].name, &t->dims[batch], 1, "one length for each sequence");
    if (status == DP_OK)
        status = dp_shape_expect(out->as.tensor, out->name, t->dims, t->rank, "self's");
    if (status == DP_OK && (!dp_tensor_is_contiguous(t) || !dp_tensor_is_contiguous(out->as.tensor)))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s and %s must be contiguous", in[0].name, out->name);
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state s = {in[0].slot,
               in[1].slot,
               out->slot,
               1,
               (int64_t)dp_element_bytes(t->element),
               t->dims[dim],
               1,
               t->dims[batch],
               1,
               dp_elementwise_current()->load[in[1].as.tensor->element][DP_COMPUTE_I64]};
    int last = dim > batch ? dim : batch;
    for (int d = 0; d < t->rank; d++) {
        s.slices *= d <= last ? t->dims[d] : 1;
        s.bytes *= d > last ? t->dims[d] : 1;
        s.step *= d > dim && d <= last ? t->dims[d] : 1;
        s.batch_step *= d > batch && d <= last ? t->dims[d] : 1;
    }
    *(state *)dp_plan_state(plan) = s;
    plan->path = "slices";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_index_reverse_sequence;
const dp_function dp_index_reverse_sequence = {"reverse_sequence", reverse_sequence, NULL, 0, 0};
