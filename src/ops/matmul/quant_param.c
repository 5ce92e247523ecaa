/*
 * quant_param.c - scales in the 64-bit form that products of int8 take: trans_quant_param(scale, offset, round_mode) ->
 * out. The low 32 bits are the scale with its last 13 bits cut off (round_mode 1: rounded away, to nearest even), bits
 * 37 to 45 the offset as a signed integer of 9 bits, bit 46 is set.
 */
#include <math.h>
#include <string.h>

#include "ops/op.h"

enum { DROPPED_BITS = 13 };

typedef struct state {
    int scale, offset, out;
    int64_t scale_step, offset_step, count;
    bool round;
} state;

static uint64_t packed(float scale, bool round, const float *offset) {
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    if (round)
        bits += (1u << (DROPPED_BITS - 1)) - 1 + (bits >> DROPPED_BITS & 1);
    uint64_t word = (bits & ~((1u << DROPPED_BITS) - 1)) | 1ull << 46;
    if (offset) {
        float bounded = fminf(fmaxf(rintf(*offset), -256), 255);
        word |= ((uint64_t)(int64_t)bounded & 0x1ff) << 37;
    }
    return word;
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    const float *scale = dp_plan_data(plan, s->scale), *offset = s->offset < 0 ? NULL : dp_plan_data(plan, s->offset);
    uint64_t *out = dp_plan_data(plan, s->out);
    for (int64_t i = 0; i < s->count; i++)
        out[i] = packed(scale[i * s->scale_step], s->round, offset ? offset + i * s->offset_step : NULL);
    return DP_OK;
}

static dp_status check_line(const dp_arg *arg, uint32_t elements) {
    const dp_tensor *t = arg->as.tensor;
    dp_status status = dp_element_expect(arg, elements);
    if (status == DP_OK && (t->rank < 1 || t->rank > 2 || !dp_tensor_is_contiguous(t)))
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s must be contiguous with 1 or 2 dimensions, but has %d", arg->name, t->rank);
    return status;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *scale = &call->in[0], *offset = &call->in[1], *out = &call->out[0];
    const bool shifted = offset->kind == DP_ARG_TENSOR;
    dp_status status = check_line(scale, DP_EL_BIT(DP_F32));
    if (status == DP_OK && shifted)
        status = check_line(offset, DP_EL_BIT(DP_F32));
    if (status == DP_OK)
        status = check_line(out, DP_EL_BIT(DP_U64) | DP_EL_BIT(DP_I64));
    if (status != DP_OK)
        return status;
    const int64_t scales = dp_tensor_count(scale->as.tensor),
                  offsets = shifted ? dp_tensor_count(offset->as.tensor) : 1, count = dp_tensor_count(out->as.tensor),
                  want = scales == 1 ? offsets : scales;
    if (count != want || (offsets != 1 && offsets != want))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld elements, but must have %lld: %s has %lld and %s %lld", out->name,
                       (long long)count, (long long)want, scale->name, (long long)scales, offset->name,
                       (long long)offsets);
    const int64_t mode = dp_arg_integer(&call->in[2], 0);
    if (mode != 0 && mode != 1)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (cut off) or 1 (round)", call->in[2].name,
                       (long long)mode);
    dp_plan *plan = dp_plan_new(call, run, sizeof(state));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    *(state *)dp_plan_state(plan) = (state){.scale = scale->slot,
                                            .offset = shifted ? offset->slot : -1,
                                            .out = out->slot,
                                            .scale_step = scales != 1,
                                            .offset_step = offsets != 1,
                                            .count = count,
                                            .round = mode == 1};
    plan->path = "words";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_matmul_trans_quant_param;
const dp_function dp_matmul_trans_quant_param = {"trans_quant_param", prepare, NULL, 1u << 1, 0};
