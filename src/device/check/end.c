/* What a block leaves behind: tensors, flags, settings. */
#include <stdio.h>

#include "device/check/state.h"
#include "device/queue.h"

static dp_finding begin_finding(dp_check_core *state, dp_check_kind kind) {
    dp_finding f = {.kind = kind};
    dp_finding_context(&f, state->core);
    return f;
}

static void report_flag(dp_check_core *state, unsigned src, unsigned dst, unsigned id) {
    const dp_check_flag *flag = &state->flag[src][dst][id];
    if (flag->implied)
        return; /* a queue's: an unclaimed tensor is reported as such */
    const char *a = dp_pipe_name(src), *b = dp_pipe_name(dst);
    dp_finding f = begin_finding(state, DP_CHECK_FLAG_LEFT);
    f.place = dp_place_of_site(flag->set_site, -1, "raises it");
    if (flag->wait_site) {
        f.has_other = true;
        f.other = dp_place_of_site(flag->wait_site, -1, "was the last wait for it");
    }
    snprintf(f.sentence, sizeof f.sentence, "flag %s->%s id %u is still raised when the kernel ends; the next kernel on this core finds it raised",
             a, b, id);
    snprintf(f.cure, sizeof f.cure, "call WaitFlag<HardEvent::%s_%s> once for every SetFlag, also after the last loop turn", a, b);
    dp_finding_add(&f);
}

static void report_tensor(void *context, const dp_buffer_info *info) {
    dp_check_core *state = context;
    char buffer[160];
    dp_finding f = begin_finding(state, DP_CHECK_LEAKED_TENSOR);
    dp_buffer_describe(info, buffer, sizeof buffer);
    f.place = dp_place_of_loc(info->last, info->state == DP_BUFFER_OCCUPIED ? "AllocTensor took it"
                                          : info->state == DP_BUFFER_ENQUE  ? "EnQue put it into the queue"
                                                                            : "DeQue took it out of the queue");
    f.has_other = true;
    f.other = dp_place_of_loc(info->init, "InitBuffer made the buffer");
    snprintf(f.sentence, sizeof f.sentence, "the tensor in %s is never freed", buffer);
    snprintf(f.cure, sizeof f.cure, "give it back with FreeTensor (after DeQue if it was enqueued)");
    dp_finding_add(&f);
}

static void report_setting(dp_check_core *state, uint32_t site, const char *what, const char *cure) {
    dp_finding f = begin_finding(state, DP_CHECK_LEAKED_STATE);
    f.place = dp_place_of_site(site, -1, "set it last");
    snprintf(f.sentence, sizeof f.sentence, "%s when the kernel ends", what);
    snprintf(f.cure, sizeof f.cure, "%s", cure);
    dp_finding_add(&f);
}

void dp_check_block_end(dp_check_core *state) {
    const dp_core *core = state->core;
    for (unsigned s = 0; s < DP_PIPE_COUNT; s++) {
        for (unsigned d = 0; d < DP_PIPE_COUNT; d++) {
            for (unsigned raised = core->flags[s][d]; raised; raised &= raised - 1)
                report_flag(state, s, d, (unsigned)__builtin_ctz(raised));
        }
    }
    dp_queue_leaks(core, report_tensor, state);
    if (core->counter_mode && state->mode_site)
        report_setting(state, state->mode_site, "the mask is still in counter mode", "call SetMaskNorm before the kernel returns");
    if (state->mask_site && !core->counter_mode && (core->mask[0] != ~0ull || core->mask[1] != ~0ull))
        report_setting(state, state->mask_site, "the vector mask does not select every lane",
                       "call ResetMask after the last instruction that needs the mask");
    if (core->store_atomic && state->store_atomic_site)
        report_setting(state, state->store_atomic_site, "atomic stores of the scalar unit are still switched on",
                       "call SetStoreAtomicConfig<AtomicDtype::ATOMIC_NONE, AtomicOp::ATOMIC_SUM> after the last one");
    if (core->atomic_op && state->atomic_site)
        report_setting(state, state->atomic_site, "atomic stores are still switched on", "call SetAtomicNone after the last atomic copy");
}
