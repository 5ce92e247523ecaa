/*
 * sync_core.h - synchronisation between cores: SyncAll, cross-core flags, IBSet/IBWait, blocks in order, group
 * barriers.
 */
#ifndef DOPPEL_ASCENDC_SYNC_CORE_H
#define DOPPEL_ASCENDC_SYNC_CORE_H

#include "ascendc/tensor.h"

namespace AscendC {

inline dp_insn dp_cross_insn(dp_op op, unsigned mode, unsigned pipe, dp_loc loc) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = static_cast<uint16_t>(op);
    insn.u.sync.mode = static_cast<uint8_t>(mode);
    insn.u.sync.src_pipe = static_cast<uint8_t>(pipe);
    insn.loc = loc;
    return insn;
}

inline dp_insn dp_workspace_insn(dp_op op, bool aiv_only, const GlobalTensor<int32_t> &gm,
                                 const LocalTensor<int32_t> &ub, dp_loc loc) {
    dp_insn insn = dp_cross_insn(op, aiv_only, DP_PIPE_S, loc);
    insn.n_operands = 2;
    dp_put_operand(insn.operand[0], gm.dp_operand_of());
    dp_put_operand(insn.operand[1], ub.dp_operand_of());
    return insn;
}

template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId, dp_loc loc = dp_loc::current()) {
    static_assert(modeId <= 2,
                  "CrossCoreSetFlag has the modes 0 (all cores of a kind), 1 (vector cores of a block) and 2 "
                  "(cube core and its vector cores)");
    dp_insn insn = dp_cross_insn(DP_OP_CROSS_SET, modeId, pipe, loc);
    insn.u.sync.event_id = static_cast<uint8_t>(flagId > 255 ? 255 : flagId);
    dp_issue(&insn);
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId, dp_loc loc = dp_loc::current()) {
    static_assert(modeId <= 2,
                  "CrossCoreWaitFlag has the modes 0 (all cores of a kind), 1 (vector cores of a block) and 2 "
                  "(cube core and its vector cores)");
    dp_insn insn = dp_cross_insn(DP_OP_CROSS_WAIT, modeId, pipe, loc);
    insn.u.sync.event_id = static_cast<uint8_t>(flagId > 255 ? 255 : flagId);
    dp_issue(&insn);
}

template <bool isAIVOnly = true>
inline void SyncAll(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace,
                    const int32_t usedCores = 0, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_workspace_insn(DP_OP_SYNC_ALL, isAIVOnly, gmWorkspace, ubWorkspace, loc);
    insn.mask[0] = static_cast<uint32_t>(usedCores);
    dp_issue(&insn);
}
template <bool isAIVOnly = true>
inline void SyncAll(dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_cross_insn(DP_OP_SYNC_ALL, isAIVOnly, DP_PIPE_S, loc);
    dp_issue(&insn);
}

template <bool isAIVOnly = true>
inline void IBSet(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace, int32_t blockIdx,
                  int32_t eventID, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_workspace_insn(DP_OP_IB_SET, isAIVOnly, gmWorkspace, ubWorkspace, loc);
    insn.mask[0] = static_cast<uint64_t>(static_cast<int64_t>(blockIdx));
    insn.mask[1] = static_cast<uint64_t>(static_cast<int64_t>(eventID));
    dp_issue(&insn);
}
template <bool isAIVOnly = true>
inline void IBWait(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace, int32_t blockIdx,
                   int32_t eventID, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_workspace_insn(DP_OP_IB_WAIT, isAIVOnly, gmWorkspace, ubWorkspace, loc);
    insn.mask[0] = static_cast<uint64_t>(static_cast<int64_t>(blockIdx));
    insn.mask[1] = static_cast<uint64_t>(static_cast<int64_t>(eventID));
    dp_issue(&insn);
}

inline void InitDetermineComputeWorkspace(GlobalTensor<int32_t> &gmWorkspace, LocalTensor<int32_t> &ubWorkspace,
                                          dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_workspace_insn(DP_OP_ORDER_INIT, true, gmWorkspace, ubWorkspace, loc);
    dp_issue(&insn);
}
inline void WaitPreBlock(GlobalTensor<int32_t> &gmWorkspace, LocalTensor<int32_t> &ubWorkspace,
                         dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_workspace_insn(DP_OP_ORDER_WAIT, true, gmWorkspace, ubWorkspace, loc);
    dp_issue(&insn);
}
inline void NotifyNextBlock(GlobalTensor<int32_t> &gmWorkspace, LocalTensor<int32_t> &ubWorkspace,
                            dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_workspace_insn(DP_OP_ORDER_NOTIFY, true, gmWorkspace, ubWorkspace, loc);
    dp_issue(&insn);
}

/* The workspace starts on 512 bytes, has 512 bytes per waiting member and is zero before the first use. */
template <PipeMode pipeMode>
class GroupBarrier {
    static_assert(pipeMode == PipeMode::MTE3_MODE, "GroupBarrier has PipeMode::MTE3_MODE only");

  public:
    GroupBarrier(GM_ADDR groupWorkspace, uint32_t arriveSizeIn, uint32_t waitSizeIn)
        : workspace_(groupWorkspace), arriving_(arriveSizeIn), waiting_(waitSizeIn) {}

    void Arrive(uint32_t arriveIndex, dp_loc loc = dp_loc::current()) { issue(DP_OP_GROUP_ARRIVE, arriveIndex, loc); }
    void Wait(uint32_t waitIndex, dp_loc loc = dp_loc::current()) { issue(DP_OP_GROUP_WAIT, waitIndex, loc); }
    uint64_t GetWorkspaceLen() const { return static_cast<uint64_t>(waiting_) * 512; }

  private:
    void issue(dp_op op, uint32_t index, dp_loc loc) {
        dp_insn insn = dp_cross_insn(op, 0, DP_PIPE_MTE3, loc);
        insn.n_operands = 1;
        dp_put_operand(insn.operand[0], dp_make_operand(workspace_, 0, 0, 1, 8, DP_I32, DP_SPACE_GM));
        insn.mask[0] = index;
        insn.mask[1] = arriving_;
        insn.scalar_bits = waiting_;
        dp_issue(&insn);
    }

    GM_ADDR workspace_;
    uint32_t arriving_, waiting_;
};

} // namespace AscendC

#endif
