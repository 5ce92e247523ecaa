/* Flags, barriers, cross-core operations and settings: what they do to the clocks. */
#include "device/check/state.h"
#include "device/exec.h"

void dp_check_learn(dp_check_core *state, unsigned p, unsigned q, uint32_t time) {
    dp_check_clock *clock = &state->clocks.pipe[p];
    dp_clock_join(clock, &state->clocks.pipe[q]);
    if (clock->done[q] < time)
        clock->done[q] = time;
}

/* The executor refuses these: nothing to follow. */
static bool is_illegal(const dp_sync_params *sync) {
    return sync->src_pipe >= DP_PIPE_COUNT || sync->dst_pipe >= DP_PIPE_COUNT || sync->event_id >= DP_EVENT_IDS;
}

/* Facts: kernel-semantics section 13: the cube core ignores events that name V. */
static bool is_ignored(const dp_check_core *state, const dp_sync_params *sync) {
    return state->core->kind == DP_CORE_AIC && (sync->src_pipe == DP_PIPE_V || sync->dst_pipe == DP_PIPE_V);
}

static void set_flag(dp_check_core *state) {
    const dp_sync_params *sync = &state->insn->u.sync;
    if (is_illegal(sync) || is_ignored(state, sync))
        return;
    if (sync->src_pipe == sync->dst_pipe) {
        dp_clock_barrier(&state->clocks, sync->src_pipe);
        return;
    }
    if (state->core->flags[sync->src_pipe][sync->dst_pipe] >> sync->event_id & 1)
        return; /* raised twice: a fault; keep the first place for it */
    dp_check_flag *flag = &state->flag[sync->src_pipe][sync->dst_pipe][sync->event_id];
    flag->clock = dp_clock_of_flag(&state->clocks, sync->src_pipe);
    flag->set_site = state->site;
    flag->implied = sync->implied;
}

static void wait_flag(dp_check_core *state) {
    const dp_sync_params *sync = &state->insn->u.sync;
    if (is_illegal(sync) || is_ignored(state, sync) || sync->src_pipe == sync->dst_pipe)
        return;
    if (!(state->core->flags[sync->src_pipe][sync->dst_pipe] >> sync->event_id & 1))
        return;
    dp_check_flag *flag = &state->flag[sync->src_pipe][sync->dst_pipe][sync->event_id];
    dp_clock_join(&state->clocks.pipe[sync->dst_pipe], &flag->clock);
    flag->wait_site = state->site;
}

static bool is_cross_raise(unsigned op) {
    return op == DP_OP_CROSS_SET || op == DP_OP_SYNC_ALL || op == DP_OP_IB_SET || op == DP_OP_ORDER_INIT ||
           op == DP_OP_ORDER_NOTIFY || op == DP_OP_GROUP_ARRIVE;
}

static bool is_cross_wait(unsigned op) {
    return op == DP_OP_CROSS_WAIT || op == DP_OP_SYNC_ALL || op == DP_OP_IB_WAIT || op == DP_OP_ORDER_INIT ||
           op == DP_OP_ORDER_WAIT || op == DP_OP_GROUP_WAIT;
}

static void cross_before(dp_check_core *state) {
    dp_check_launch *launch = dp_check_launch_of(state->core);
    dp_clock_barrier_all(&state->clocks); /* lenient: which pipes a cross-core flag holds is not followed */
    if (!launch || !launch->blocks)
        return;
    if (is_cross_raise(state->insn->op))
        state->epoch = dp_blocks_raise(launch->blocks, state->core->core_index, state->epoch);
}

static void note_settings(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    switch (insn->op) {
    case DP_OP_SET_MASK:
        state->mask_site = state->site;
        break;
    case DP_OP_SET_MASK_MODE:
        state->mode_site = state->site;
        break;
    case DP_OP_SET_ATOMIC:
        *(insn->u.vec.flag0 ? &state->store_atomic_site : &state->atomic_site) = state->site;
        break;
    case DP_OP_RESET_MASK:
    case DP_OP_INIT_SOC_STATE:
        state->mask_site = 0;
        break;
    default: /* other forms with a mask set the register as a matter of course */
        if (insn->mask_kind != DP_MASK_NONE && insn->mask_kind != DP_MASK_REGISTER)
            state->mask_site = 0;
        break;
    }
}

bool dp_check_flow(dp_check_core *state) {
    const dp_insn *insn = state->insn;
    note_settings(state);
    switch (insn->op) {
    case DP_OP_SET_FLAG:
        set_flag(state);
        return true;
    case DP_OP_WAIT_FLAG:
        wait_flag(state);
        return true;
    case DP_OP_BARRIER:
        if (insn->u.sync.src_pipe == DP_PIPE_ALL)
            dp_clock_barrier_all(&state->clocks);
        else if (insn->u.sync.src_pipe < DP_PIPE_ALL)
            dp_clock_barrier(&state->clocks, insn->u.sync.src_pipe);
        return true;
    case DP_OP_DATA_SYNC_BARRIER:
    case DP_OP_PIPE_INIT:
    case DP_OP_PIPE_DESTROY:
        dp_clock_barrier_all(&state->clocks);
        return true;
    default:
        break;
    }
    dp_family family = dp_insn_family(insn->op);
    if (family == DP_FAMILY_CROSS)
        cross_before(state);
    return family == DP_FAMILY_QUEUE || family == DP_FAMILY_CROSS;
}

void dp_check_flow_after(dp_check_core *state) {
    unsigned op = state->insn->op;
    if (is_cross_wait(op)) {
        dp_check_launch *launch = dp_check_launch_of(state->core);
        if (launch && launch->blocks)
            state->epoch = dp_blocks_wait(launch->blocks, state->core->core_index, state->epoch);
    } else if (op == DP_OP_REDUCE_SUM || op == DP_OP_REDUCE_MAX || op == DP_OP_REDUCE_MIN) {
        /* kernel-semantics section 5: the scalar unit waits for V, and orders what it issues next after itself */
        dp_check_learn(state, DP_PIPE_S, DP_PIPE_V, state->clocks.last[DP_PIPE_V]);
    }
}
