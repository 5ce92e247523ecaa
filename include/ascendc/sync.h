/*
 * sync.h - flags and barriers inside a core.
 *
 * Events are written as HardEvent; what the core sees is a pair of pipes and an id 0..7.
 */
#ifndef DOPPEL_ASCENDC_SYNC_H
#define DOPPEL_ASCENDC_SYNC_H

#include "ascendc/tensor.h"

namespace AscendC {

/* Producer and consumer pipe of an event. */
constexpr dp_pipe_pair dp_pipes_of(HardEvent event) {
    switch (event) {
#define DP_EVENT(src, dst)                                                                                            \
    case HardEvent::src##_##dst: return {DP_PIPE_##src, DP_PIPE_##dst};
        DP_EVENT(MTE2, MTE1)
        DP_EVENT(MTE1, MTE2)
        DP_EVENT(MTE1, M)
        DP_EVENT(M, MTE1)
        DP_EVENT(MTE2, V)
        DP_EVENT(V, MTE2)
        DP_EVENT(MTE3, V)
        DP_EVENT(V, MTE3)
        DP_EVENT(M, V)
        DP_EVENT(V, M)
        DP_EVENT(V, V)
        DP_EVENT(MTE3, MTE1)
        DP_EVENT(MTE1, MTE3)
        DP_EVENT(MTE1, V)
        DP_EVENT(MTE2, M)
        DP_EVENT(M, MTE2)
        DP_EVENT(V, MTE1)
        DP_EVENT(M, FIX)
        DP_EVENT(FIX, M)
        DP_EVENT(MTE3, MTE2)
        DP_EVENT(MTE2, MTE3)
        DP_EVENT(S, V)
        DP_EVENT(V, S)
        DP_EVENT(S, MTE2)
        DP_EVENT(MTE2, S)
        DP_EVENT(S, MTE3)
        DP_EVENT(MTE3, S)
        DP_EVENT(MTE2, FIX)
        DP_EVENT(FIX, MTE2)
        DP_EVENT(FIX, S)
        DP_EVENT(M, S)
        DP_EVENT(FIX, MTE3)
        DP_EVENT(MTE1, FIX)
        DP_EVENT(FIX, MTE1)
        DP_EVENT(FIX, FIX)
#undef DP_EVENT
    default: return {DP_PIPE_COUNT, DP_PIPE_COUNT};
    }
}

inline void dp_issue_flag(dp_op op, unsigned src, unsigned dst, int id, dp_loc loc, bool implied = false) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = static_cast<uint16_t>(op);
    insn.u.sync.src_pipe = static_cast<uint8_t>(src);
    insn.u.sync.dst_pipe = static_cast<uint8_t>(dst);
    insn.u.sync.event_id = static_cast<uint8_t>(id);
    insn.u.sync.implied = implied;
    insn.loc = loc;
    dp_issue(&insn);
}

/* SetFlag of an event between one pipe and itself is a barrier on that pipe; its WaitFlag is nothing. */
inline void dp_set_event(HardEvent event, int id, dp_loc loc) {
    dp_pipe_pair pair = dp_pipes_of(event);
    dp_issue_flag(pair.src == pair.dst && pair.src < DP_PIPE_COUNT ? DP_OP_BARRIER : DP_OP_SET_FLAG, pair.src, pair.dst,
                  id, loc);
}
inline void dp_wait_event(HardEvent event, int id, dp_loc loc) {
    dp_pipe_pair pair = dp_pipes_of(event);
    if (pair.src != pair.dst || pair.src >= DP_PIPE_COUNT)
        dp_issue_flag(DP_OP_WAIT_FLAG, pair.src, pair.dst, id, loc);
}

template <HardEvent event>
inline void SetFlag(int32_t event_id, dp_loc loc = dp_loc::current()) {
    dp_set_event(event, event_id, loc);
}
template <HardEvent event>
inline void WaitFlag(int32_t event_id, dp_loc loc = dp_loc::current()) {
    dp_wait_event(event, event_id, loc);
}
inline void SetFlag(HardEvent event, int32_t event_id, dp_loc loc = dp_loc::current()) {
    dp_set_event(event, event_id, loc);
}
inline void WaitFlag(HardEvent event, int32_t event_id, dp_loc loc = dp_loc::current()) {
    dp_wait_event(event, event_id, loc);
}

template <pipe_t pipe>
inline void PipeBarrier(dp_loc loc = dp_loc::current()) {
    dp_issue_flag(DP_OP_BARRIER, pipe, pipe, 0, loc);
}

template <MemDsbT what>
inline void DataSyncBarrier(dp_loc loc = dp_loc::current()) {
    dp_issue_flag(DP_OP_DATA_SYNC_BARRIER, PIPE_S, PIPE_S, static_cast<int>(what), loc);
}

/* Flags of one pipe pair. */
template <pipe_t src, pipe_t dst>
class TQueSync {
public:
    void SetFlag(TEventID id, dp_loc loc = dp_loc::current()) { dp_issue_flag(DP_OP_SET_FLAG, src, dst, id, loc); }
    void WaitFlag(TEventID id, dp_loc loc = dp_loc::current()) { dp_issue_flag(DP_OP_WAIT_FLAG, src, dst, id, loc); }
};

} // namespace AscendC

/* The same as bare intrinsics, as older kernels write them. */
inline void set_flag(pipe_t src, pipe_t dst, int id, dp_loc loc = dp_loc::current()) {
    AscendC::dp_issue_flag(DP_OP_SET_FLAG, src, dst, id, loc);
}
inline void wait_flag(pipe_t src, pipe_t dst, int id, dp_loc loc = dp_loc::current()) {
    AscendC::dp_issue_flag(DP_OP_WAIT_FLAG, src, dst, id, loc);
}
inline void pipe_barrier(pipe_t pipe, dp_loc loc = dp_loc::current()) {
    AscendC::dp_issue_flag(DP_OP_BARRIER, pipe, pipe, 0, loc);
}

#endif
