/* What the executors let pass because its result is defined here, although a program hardly means it or a chip would
 * hang. */
#include <inttypes.h>
#include <stdio.h>

#include "device/check/state.h"
#include "device/exec.h"

/* DataCopy moves whole blocks; what is left over is dropped without a word. */
static void copy_tail(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    const dp_copy_params *copy = &insn->u.copy;
    uint32_t tail = copy->block_bytes % DP_BLOCK_BYTES;
    if (copy->pad_form || copy->block_count != 1 || !tail || copy->block_bytes == UINT32_MAX)
        return;
    char asked[32], moved[32];
    dp_finding f = {.kind = DP_CHECK_ILLEGAL};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(insn, (int)state->pipe, "drops the tail");
    snprintf(f.sentence, sizeof f.sentence,
             "%s of %s bytes moves only whole blocks of %u: %s bytes are copied, the last %" PRIu32 " are not",
             dp_insn_name(insn->op), dp_describe_count(copy->block_bytes, asked), DP_BLOCK_BYTES,
             dp_describe_count(copy->block_bytes - tail, moved), tail);
    snprintf(f.cure, sizeof f.cure,
             "use DataCopyPad, which copies any number of bytes, or make the count a multiple of %u bytes",
             DP_BLOCK_BYTES);
    dp_finding_add(&f);
}

static void no_copy(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    const dp_copy_params *copy = &insn->u.copy;
    dp_finding f = {.kind = DP_CHECK_ILLEGAL};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(insn, (int)state->pipe, "copies nothing");
    snprintf(f.sentence, sizeof f.sentence,
             "%s of %" PRIu32 " runs of %" PRIu32 " bytes copies nothing; a chip needs at least one of each",
             dp_insn_name(insn->op), copy->block_count, copy->block_bytes);
    snprintf(f.cure, sizeof f.cure,
             "leave the call out when there is nothing to copy, as in a last tile of no elements");
    dp_finding_add(&f);
}

static void mask_finding(dp_check_core *state, const char *sentence, const char *cure) {
    dp_finding f = {.kind = DP_CHECK_ILLEGAL};
    dp_finding_context(&f, state->core);
    f.place = dp_place_of_insn(state->insn, (int)state->pipe, "has this mask");
    snprintf(f.sentence, sizeof f.sentence, "%s", sentence);
    snprintf(f.cure, sizeof f.cure, "%s", cure);
    dp_finding_add(&f);
}

/* Masks that choose no lane, or more than there are: both run, and neither is meant. */
static void mask_of_nothing(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    unsigned widest = 1, of = 0;
    for (unsigned k = 0; k < insn->n_operands && k < 4; k++) {
        unsigned bytes = insn->operand[k].dtype < DP_DTYPE_COUNT ? dp_operand_bytes(insn, k) : 1;
        of = bytes > widest ? k : of;
        widest = bytes > widest ? bytes : widest;
    }
    uint32_t lanes = DP_REPEAT_BYTES / widest;
    uint64_t chosen = insn->mask[0];
    if (insn->mask_kind == DP_MASK_BITS)
        chosen |= lanes > 64 ? insn->mask[1] : 0;
    char sentence[256];
    if (!chosen) {
        snprintf(sentence, sizeof sentence, "the mask of %s chooses no lane of its %u: the instruction does nothing",
                 dp_insn_name(insn->op), lanes);
        mask_finding(state, sentence,
                     "a mask counts lanes of one repeat, from 1 on; leave the call out when there is nothing to do");
    } else if (insn->mask_kind == DP_MASK_LEADING && chosen > lanes) {
        snprintf(sentence, sizeof sentence, "the mask of %s is %" PRIu64 ", but one repeat has %u lanes of %s",
                 dp_insn_name(insn->op), chosen, lanes, dp_dtype_name(insn->operand[of].dtype));
        mask_finding(state, sentence,
                     "raise repeatTimes, not the mask, or use the form that takes a number of elements");
    }
}

/* Blocks beyond the chip's cores start when others have ended, and these wait for them. */
static void sync_of_too_many(dp_check_core *state) {
    const dp_core *core = state->core;
    bool on_cube = core->kind == DP_CORE_AIC, aiv_only = state->insn->u.sync.mode != 0;
    uint32_t wanted = on_cube ? core->block_num : core->block_num * core->sub_block_num;
    uint32_t there = on_cube ? core->chip->cube_cores : core->chip->vector_cores;
    if ((on_cube && aiv_only) || !there || wanted <= there ||
        (state->insn->n_operands && state->insn->mask[0] && state->insn->mask[0] <= there))
        return;
    dp_finding f = {.kind = DP_CHECK_DEADLOCK};
    dp_finding_context(&f, core);
    f.place = dp_place_of_insn(state->insn, -1, "waits for cores that have not started");
    snprintf(f.sentence, sizeof f.sentence,
             "%s in a launch that needs %" PRIu32 " %s cores, but %s has %" PRIu32 ": it can hang on the chip",
             dp_insn_name(state->insn->op), wanted, on_cube ? "cube" : "vector", core->chip->name, there);
    snprintf(f.cure, sizeof f.cure,
             "launch at most as many blocks as there are cores, and let every block work through several shares");
    dp_finding_add(&f);
}

void dp_check_rules(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    bool masked = insn->mask_kind == DP_MASK_LEADING || insn->mask_kind == DP_MASK_BITS;
    if (masked && insn->n_operands && insn->repeat && state->pipe == DP_PIPE_V && !state->core->counter_mode)
        mask_of_nothing(state);
    bool copies = insn->op == DP_OP_DATA_COPY || insn->op == DP_OP_DATA_COPY_PAD;
    if (copies && (!insn->u.copy.block_count || !insn->u.copy.block_bytes))
        no_copy(state);
    else if (insn->op == DP_OP_DATA_COPY)
        copy_tail(state);
    else if (DP_UNLIKELY(state->insn->op == DP_OP_SYNC_ALL))
        sync_of_too_many(state);
}
