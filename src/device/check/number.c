/* Options nan and overflow: where NaN and infinity are born, and half results that do not fit. */
#include <stdio.h>

#include "base/half.h"
#include "device/check/state.h"

enum { HAS_NAN = 1, HAS_INF = 2, TOO_LARGE = 4 };
static const float HALF_MAX = 65504.0f;

static unsigned classify_f32(uint32_t bits) {
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x7f800000u)
        return dp_f32_from_bits(magnitude) > HALF_MAX ? TOO_LARGE : 0;
    return magnitude > 0x7f800000u ? HAS_NAN : HAS_INF;
}

/* What is found among the elements of [addr, addr + bytes); *out_at is the first NaN or infinity. */
static unsigned scan(const uint8_t *addr, size_t bytes, uint32_t bits, unsigned dtype, const uint8_t **out_at) {
    unsigned size = dp_dtype_bits(dtype) / 8, found = 0;
    for (size_t i = 0; i + size <= bytes; i += size) {
        unsigned kind = 0;
        uint16_t half;
        uint32_t word;
        if (bits && !(bits >> (i % DP_BLOCK_BYTES) & 1))
            continue;
        if (dtype == DP_F32) {
            memcpy(&word, addr + i, sizeof word);
            kind = classify_f32(word);
        } else {
            memcpy(&half, addr + i, sizeof half);
            kind = classify_f32(dp_f32_bits(dtype == DP_F16 ? dp_f32_from_f16(half) : dp_f32_from_bf16(half)));
        }
        if ((kind & (HAS_NAN | HAS_INF)) && !(found & (HAS_NAN | HAS_INF)))
            *out_at = addr + i;
        found |= kind;
    }
    return found;
}

static bool is_float(unsigned dtype) { return dtype == DP_F16 || dtype == DP_BF16 || dtype == DP_F32; }

static unsigned scan_runs(const dp_check_core *state, unsigned mode, const uint8_t **out_at) {
    unsigned found = 0;
    for (uint32_t i = 0; i < state->run_count; i++) {
        const dp_check_run *run = &state->runs[i];
        unsigned dtype = state->insn->operand[run->operand].dtype;
        const uint8_t *at = NULL;
        if (!(run->mode & mode) || !is_float(dtype))
            continue;
        unsigned kind = scan(run->addr, run->bytes, run->bits, dtype, &at);
        if ((kind & (HAS_NAN | HAS_INF)) && !(found & (HAS_NAN | HAS_INF)))
            *out_at = at;
        found |= kind;
    }
    return found;
}

void dp_check_number_before(dp_check_core *state) {
    const uint8_t *at;
    state->scratch_nonfinite = 0;
    if (state->pipe != DP_PIPE_V)
        return;
    state->scratch_nonfinite = scan_runs(state, 1, &at);
    uint32_t word = (uint32_t)state->insn->scalar_bits;
    unsigned dtype = state->insn->operand[0].dtype;
    if (dtype == DP_F32)
        state->scratch_nonfinite |= classify_f32(word);
    else if (dtype == DP_F16)
        state->scratch_nonfinite |= classify_f32(dp_f32_bits(dp_f32_from_f16((uint16_t)word)));
}

static void report(dp_check_core *state, dp_check_kind kind, const char *what, const uint8_t *at, const char *cure) {
    const dp_operand *dst = &state->insn->operand[0];
    dp_finding f = {.kind = kind};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(state->insn, (int)state->pipe, "makes it");
    snprintf(f.sentence, sizeof f.sentence, "%s %s from finite operands (%s)", dp_insn_name(state->insn->op), what,
             dp_dtype_name(dst->dtype));
    if (at)
        dp_describe_local(state->core, dst->space, at, dp_dtype_bits(dst->dtype) / 8, f.memory, sizeof f.memory);
    snprintf(f.cure, sizeof f.cure, "%s", cure);
    dp_finding_add(&f);
}

void dp_check_number_after(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    unsigned dtype = insn->operand[0].dtype, before = state->scratch_nonfinite;
    if (state->pipe != DP_PIPE_V || !insn->n_operands || !is_float(dtype))
        return;
    const uint8_t *at = NULL;
    unsigned after = scan_runs(state, 2, &at);
    bool cast = insn->op == DP_OP_CAST;
    if (dp_check_option.overflow && dtype == DP_F16 && !(before & (HAS_INF | HAS_NAN)) &&
        ((after & HAS_INF) || (cast && (before & TOO_LARGE)))) {
        report(state, DP_CHECK_HALF_OVERFLOW, "exceeds the range of half (65,504)", at,
               "scale the input, or compute in float and cast at the end");
        return;
    }
    if (!dp_check_option.nan || (before & (HAS_INF | HAS_NAN)))
        return;
    if (after & HAS_NAN)
        report(state, DP_CHECK_NAN_BORN, "makes NaN", at, "look for 0/0, inf-inf, or the root or logarithm of a negative number");
    else if (after & HAS_INF)
        report(state, DP_CHECK_INF_BORN, "makes infinity", at, "look for a division by zero, Ln(0), or an exponent that is too large");
}
