/*
 * Flags and barriers inside a core. A block runs in program order, so flags are bookkeeping: a wait that nobody raised
 * would hang on the chip and is a fault here.
 */
#include "device/exec.h"

static bool names_pipe(const dp_sync_params *sync, unsigned pipe) {
    return sync->src_pipe == pipe || sync->dst_pipe == pipe;
}

/* Facts: kernel-semantics section 13: the cube core ignores events that name V; V_V and FIX_FIX are barriers. */
static bool is_ignored(const dp_core *core, const dp_sync_params *sync) {
    if (core->kind == DP_CORE_AIC && names_pipe(sync, DP_PIPE_V))
        return true;
    return sync->src_pipe == sync->dst_pipe;
}

static void check_flag(dp_core *core, const dp_insn *insn) {
    const dp_sync_params *sync = &insn->u.sync;
    if (sync->src_pipe >= DP_PIPE_COUNT || sync->dst_pipe >= DP_PIPE_COUNT)
        dp_fault(core, insn, insn->loc, "pipes %u and %u are not a pipe pair of this chip", sync->src_pipe, sync->dst_pipe);
    if (sync->event_id >= DP_EVENT_IDS)
        dp_fault(core, insn, insn->loc, "event id %u does not exist; a pipe pair has the ids 0 to %u", sync->event_id,
                 DP_EVENT_IDS - 1);
}

static void set_flag(dp_core *core, const dp_insn *insn) {
    const dp_sync_params *sync = &insn->u.sync;
    check_flag(core, insn);
    if (is_ignored(core, sync))
        return;
    uint8_t *raised = &core->flags[sync->src_pipe][sync->dst_pipe];
    uint8_t bit = (uint8_t)(1u << sync->event_id);
    if (DP_UNLIKELY(*raised & bit))
        dp_fault(core, insn, insn->loc,
                 "flag %s->%s id %u is already raised; wait for it before raising it again, or use another id",
                 dp_pipe_name(sync->src_pipe), dp_pipe_name(sync->dst_pipe), sync->event_id);
    *raised |= bit;
}

static __attribute__((noinline, cold, noreturn)) void fault_wait(dp_core *core, const dp_insn *insn) {
    const dp_sync_params *sync = &insn->u.sync;
    for (unsigned s = 0; s < DP_PIPE_COUNT; s++) {
        for (unsigned d = 0; d < DP_PIPE_COUNT; d++) {
            if (core->flags[s][d] >> sync->event_id & 1)
                dp_fault(core, insn, insn->loc,
                         "flag %s->%s id %u is not raised, this would hang on the chip; %s->%s id %u is raised: SetFlag and "
                         "WaitFlag must name the same pair",
                         dp_pipe_name(sync->src_pipe), dp_pipe_name(sync->dst_pipe), sync->event_id, dp_pipe_name(s),
                         dp_pipe_name(d), sync->event_id);
        }
    }
    uint8_t others = core->flags[sync->src_pipe][sync->dst_pipe];
    if (others)
        dp_fault(core, insn, insn->loc,
                 "flag %s->%s id %u is not raised, this would hang on the chip; id %d of the same pair is raised: SetFlag and "
                 "WaitFlag must use the same id",
                 dp_pipe_name(sync->src_pipe), dp_pipe_name(sync->dst_pipe), sync->event_id, __builtin_ctz(others));
    dp_fault(core, insn, insn->loc,
             "flag %s->%s id %u is not raised, this would hang on the chip; call SetFlag for it before", 
             dp_pipe_name(sync->src_pipe), dp_pipe_name(sync->dst_pipe), sync->event_id);
}

static void wait_flag(dp_core *core, const dp_insn *insn) {
    const dp_sync_params *sync = &insn->u.sync;
    check_flag(core, insn);
    if (is_ignored(core, sync))
        return;
    uint8_t *raised = &core->flags[sync->src_pipe][sync->dst_pipe];
    uint8_t bit = (uint8_t)(1u << sync->event_id);
    if (DP_UNLIKELY(!(*raised & bit)))
        fault_wait(core, insn);
    *raised &= (uint8_t)~bit;
}

void dp_exec_sync(dp_core *core, dp_insn *insn) {
    switch (insn->op) {
    case DP_OP_SET_FLAG:
        set_flag(core, insn);
        break;
    case DP_OP_WAIT_FLAG:
        wait_flag(core, insn);
        break;
    case DP_OP_BARRIER:
        if (insn->u.sync.src_pipe == DP_PIPE_S)
            dp_fault(core, insn, insn->loc, "a barrier on the scalar pipe (PIPE_S) is a hardware error; the scalar unit works "
                     "in order, remove the call");
        if (insn->u.sync.src_pipe > DP_PIPE_ALL)
            dp_fault(core, insn, insn->loc, "pipe %u does not exist", insn->u.sync.src_pipe);
        break;
    default: /* DATA_SYNC_BARRIER: program order gives all it asks for but the order of writes past the caches */
        core->math->stream_fence();
        break;
    }
}

void dp_visit_sync(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core, (void)insn, (void)visit, (void)context; /* flags are no memory */
}
