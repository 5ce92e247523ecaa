/*
 * core_state.h - registers of the core a kernel may set or read: vector mask, atomic stores, CTRL, identity, cycle counter.
 */
#ifndef DOPPEL_ASCENDC_CORE_STATE_H
#define DOPPEL_ASCENDC_CORE_STATE_H

#include "ascendc/sync.h"

namespace AscendC {

inline dp_insn dp_state_insn(dp_op op, dp_loc loc) {
    dp_insn insn = {};
    insn.op = static_cast<uint16_t>(op);
    insn.loc = loc;
    return insn;
}

/* ---- who am I ---- */

inline int64_t GetBlockIdx() { return dp_block_index(); }
inline int64_t GetBlockNum() { return dp_block_count(); }
inline int64_t GetSubBlockIdx() { return dp_sub_block_index(); }
inline int64_t GetSubBlockNum() { return dp_sub_block_count(); }
inline int64_t GetTaskRation() { return dp_task_ration(); }
inline void GetArchVersion(uint32_t &coreVersion) { coreVersion = __NPU_ARCH__; }
constexpr int16_t GetDataBlockSizeInBytes() { return ONE_BLK_SIZE; }

#define ASCEND_IS_AIV (::dp_is_vector_core())
#define ASCEND_IS_AIC (!::dp_is_vector_core())
#define ASCEND_IS_NOT_AIV (!::dp_is_vector_core())
#define ASCEND_IS_NOT_AIC (::dp_is_vector_core())

/* ---- vector mask ---- */

inline void dp_set_mask(uint64_t low, uint64_t high, dp_loc loc) {
    dp_insn insn = dp_state_insn(DP_OP_SET_MASK, loc);
    insn.mask[0] = low;
    insn.mask[1] = high;
    dp_issue(&insn);
}
inline void dp_set_mask_mode(uint32_t counter, dp_loc loc) {
    dp_insn insn = dp_state_insn(DP_OP_SET_MASK_MODE, loc);
    insn.u.vec.aux[0] = counter;
    dp_issue(&insn);
}

inline void SetMaskCount(dp_loc loc = dp_loc::current()) { dp_set_mask_mode(1, loc); }
inline void SetMaskNorm(dp_loc loc = dp_loc::current()) { dp_set_mask_mode(0, loc); }

/* Lane bits; in counter mode maskLow is the number of elements. */
template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow, dp_loc loc = dp_loc::current()) {
    dp_set_mask(maskLow, maskHigh, loc);
}
/* The first len lanes of a repeat; in counter mode len elements. */
template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(int32_t len, dp_loc loc = dp_loc::current()) {
    if (mode == MaskMode::COUNTER) {
        dp_set_mask(static_cast<uint64_t>(len), 0, loc);
        return;
    }
    constexpr int lanes = static_cast<int>(DEFAULT_BLOCK_SIZE / sizeof(dp_prim_t<T>));
    if (len >= 128 || len >= lanes)
        dp_set_mask(~0ull, ~0ull, loc);
    else if (len >= 64)
        dp_set_mask(~0ull, (1ull << (len - 64)) - 1, loc);
    else
        dp_set_mask(len <= 0 ? 0 : (1ull << len) - 1, 0, loc);
}
inline void ResetMask(dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_state_insn(DP_OP_RESET_MASK, loc);
    dp_issue(&insn);
}

/* ---- atomic stores ---- */

enum { DP_ATOMIC_NONE, DP_ATOMIC_ADD, DP_ATOMIC_MAX, DP_ATOMIC_MIN, DP_ATOMIC_TYPE };

inline void dp_set_atomic(uint32_t op, uint32_t dtype, dp_loc loc) {
    dp_insn insn = dp_state_insn(DP_OP_SET_ATOMIC, loc);
    insn.u.vec.aux[0] = op;
    insn.u.vec.aux[1] = dtype;
    dp_issue(&insn);
}
template <typename T>
inline void SetAtomicAdd(dp_loc loc = dp_loc::current()) {
    dp_set_atomic(DP_ATOMIC_ADD, dp_dtype_of<T>(), loc);
}
template <typename T>
inline void SetAtomicMax(dp_loc loc = dp_loc::current()) {
    dp_set_atomic(DP_ATOMIC_MAX, dp_dtype_of<T>(), loc);
}
template <typename T>
inline void SetAtomicMin(dp_loc loc = dp_loc::current()) {
    dp_set_atomic(DP_ATOMIC_MIN, dp_dtype_of<T>(), loc);
}
template <typename T>
inline void SetAtomicType(dp_loc loc = dp_loc::current()) {
    dp_set_atomic(DP_ATOMIC_TYPE, dp_dtype_of<T>(), loc);
}
inline void SetAtomicNone(dp_loc loc = dp_loc::current()) { dp_set_atomic(DP_ATOMIC_NONE, 0, loc); }

/* Scalar stores (SetValue of a GlobalTensor) have a switch of their own, and only add. Returns the setting before: dp_dtype + 1. */
inline uint64_t dp_store_atomic(uint32_t op, uint32_t dtype, dp_loc loc) {
    dp_insn insn = dp_state_insn(DP_OP_SET_ATOMIC, loc);
    insn.u.vec.aux[0] = op;
    insn.u.vec.aux[1] = dtype;
    insn.u.vec.flag0 = 1;
    dp_issue(&insn);
    return insn.result;
}
constexpr uint8_t dp_atomic_dtypes[] = {DP_DTYPE_COUNT, DP_F32, DP_F16, DP_I16, DP_I32, DP_I8, DP_BF16}; /* by AtomicDtype */
template <AtomicDtype type, AtomicOp op>
inline void SetStoreAtomicConfig(dp_loc loc = dp_loc::current()) {
    static_assert(op == AtomicOp::ATOMIC_SUM, "atomic scalar stores can only add (AtomicOp::ATOMIC_SUM)");
    dp_store_atomic(type == AtomicDtype::ATOMIC_NONE ? DP_ATOMIC_NONE : DP_ATOMIC_ADD, dp_atomic_dtypes[static_cast<int>(type)], loc);
}
inline void GetStoreAtomicConfig(uint16_t &atomicType, uint16_t &atomicOp, dp_loc loc = dp_loc::current()) {
    const uint64_t setting = dp_store_atomic(DP_ATOMIC_TYPE, 0, loc);
    atomicOp = static_cast<uint16_t>(AtomicOp::ATOMIC_SUM);
    for (atomicType = 6; atomicType && dp_atomic_dtypes[atomicType] + 1u != setting; atomicType--) {
    }
}

/* ---- comparison mask, dequantisation scale, padding value ---- */

template <typename T>
inline void SetCmpMask(const LocalTensor<T> &src, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_state_insn(DP_OP_SET_CMPMASK, loc);
    insn.n_operands = 2;
    dp_put_operand(insn.operand[1], src.dp_operand_of());
    dp_issue(&insn);
}
template <typename T>
inline void GetCmpMask(const LocalTensor<T> &dst, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_state_insn(DP_OP_GET_CMPMASK, loc);
    insn.n_operands = 1;
    dp_put_operand(insn.operand[0], dst.dp_operand_of());
    dp_issue(&insn);
}

/* Float scale in bits 31..0, offset (9 bits) in 45..37, sign flag in 46. */
inline uint64_t dp_deq_word(float scale, int16_t offset, bool signMode) {
    return doppel::bits_of_float(scale) | (static_cast<uint64_t>(offset) & 0x1ff) << 37 | static_cast<uint64_t>(signMode) << 46;
}
inline void dp_set_deq_scale(uint64_t word, dp_loc loc) {
    dp_insn insn = dp_state_insn(DP_OP_SET_DEQ_SCALE, loc);
    insn.scalar_bits = word;
    dp_issue(&insn);
}
inline void SetDeqScale(half scale, dp_loc loc = dp_loc::current()) { dp_set_deq_scale(dp_deq_word(scale, 0, false), loc); }
inline void SetDeqScale(float scale, int16_t offset, bool signMode, dp_loc loc = dp_loc::current()) {
    dp_set_deq_scale(dp_deq_word(scale, offset, signMode), loc);
}
/* One scale for each of the 16 lanes of a block: the scalar unit writes the table into vdeqTensor (128 bytes). */
template <typename T>
inline void SetDeqScale(const LocalTensor<T> &vdeqTensor, const VdeqInfo &vdeqInfo, dp_loc loc = dp_loc::current()) {
    LocalTensor<uint64_t> table = vdeqTensor.template ReinterpretCast<uint64_t>();
    for (uint32_t i = 0; i < 16; i++)
        table.SetValue(i, dp_deq_word(vdeqInfo.vdeqScale[i], vdeqInfo.vdeqOffset[i], vdeqInfo.vdeqSignMode[i]), loc);
    dp_insn insn = dp_state_insn(DP_OP_SET_DEQ_SCALE, loc);
    insn.n_operands = 2;
    dp_put_operand(insn.operand[1], table.dp_operand_of());
    dp_issue(&insn);
}

template <typename T, TPosition pos = TPosition::MAX>
inline void SetPadValue(T paddingValue, dp_loc loc = dp_loc::current()) {
    static_assert(sizeof(T) <= 4, "the padding value has 8, 16 or 32 bits");
    dp_insn insn = dp_state_insn(DP_OP_SET_PAD_VALUE, loc);
    insn.scalar_bits = dp_scalar_bits(paddingValue);
    dp_issue(&insn);
}

/* ---- CTRL ---- */

inline void dp_set_ctrl(int first, int last, uint64_t value, dp_loc loc) {
    dp_insn insn = dp_state_insn(DP_OP_SET_CTRL, loc);
    insn.u.vec.aux[0] = static_cast<uint32_t>(first);
    insn.u.vec.aux[1] = static_cast<uint32_t>(last);
    insn.scalar_bits = value;
    dp_issue(&insn);
}
template <int8_t startBit, int8_t endBit>
inline void SetCtrlSpr(int64_t value, dp_loc loc = dp_loc::current()) {
    static_assert(startBit >= 0 && startBit <= endBit && endBit < 64, "CTRL has the bits 0 to 63: startBit <= endBit");
    dp_set_ctrl(startBit, endBit, static_cast<uint64_t>(value), loc);
}
template <int8_t startBit, int8_t endBit>
inline int64_t GetCtrlSpr(dp_loc loc = dp_loc::current()) {
    static_assert(startBit >= 0 && startBit <= endBit && endBit < 64, "CTRL has the bits 0 to 63: startBit <= endBit");
    dp_insn insn = dp_state_insn(DP_OP_GET_CTRL, loc);
    insn.u.vec.aux[0] = static_cast<uint32_t>(startBit);
    insn.u.vec.aux[1] = static_cast<uint32_t>(endBit);
    dp_issue(&insn);
    return static_cast<int64_t>(insn.result);
}
template <int8_t startBit, int8_t endBit>
inline void ResetCtrlSpr(dp_loc loc = dp_loc::current()) {
    SetCtrlSpr<startBit, endBit>(0, loc);
}
inline void SetHF32Mode(bool on, dp_loc loc = dp_loc::current()) { dp_set_ctrl(HF32_MODE_BIT, HF32_MODE_BIT, on, loc); }
inline void SetHF32TransMode(bool on, dp_loc loc = dp_loc::current()) {
    dp_set_ctrl(HF32_TRANS_MODE_BIT, HF32_TRANS_MODE_BIT, on, loc);
}
inline void SetMMLayoutTransform(bool on, dp_loc loc = dp_loc::current()) {
    dp_set_ctrl(MM_LAYOUT_MODE_BIT, MM_LAYOUT_MODE_BIT, on, loc);
}

inline void InitSocState(dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_state_insn(DP_OP_INIT_SOC_STATE, loc);
    dp_issue(&insn);
}

/* Counts at 50 MHz of the machine's monotonic clock; see docs/numerics. */
inline int64_t GetSystemCycle(dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_state_insn(DP_OP_GET_SYSTEM_CYCLE, loc);
    dp_issue(&insn);
    return static_cast<int64_t>(insn.result);
}

/* ---- hints ---- */

/* Brings a line of GM closer; offset in bytes. */
template <typename T>
inline void DataCachePreload(const GlobalTensor<uint64_t> &srcTensor, const T cacheOffset) {
    __builtin_prefetch(reinterpret_cast<const uint8_t *>(srcTensor.GetPhyAddr()) + cacheOffset);
}
/* Without effect on a CPU: */

inline void ICachePreLoad(const int64_t) {}
inline int64_t GetICachePreloadStatus() { return 0; }
inline void MetricsProfStart() {}
inline void MetricsProfStop() {}

/* An address in the calling function. */
__attribute__((noinline)) inline int64_t GetProgramCounter() {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(__builtin_return_address(0)));
}

/* Stops the block as a hardware exception would. */
inline void Trap(dp_loc loc = dp_loc::current()) { dp_trap(loc); }

/* ---- not offered ---- */

template <typename T>
inline void CheckLocalMemoryIA(const T &) {
    static_assert(!sizeof(T), "Doppel has no hardware watchpoints: run the program under `doppel check`, which watches every access");
}

/* ---- workspace ---- */

/* Debugging on a host returns the argument: there is no system part in front of the user's workspace. */
inline uint8_t *GetUserWorkspace(uint8_t *workspace) { return workspace; }
inline void SetSysWorkspace(uint8_t *workspace) { dp_sys_workspace_set(workspace); }

/* Addresses for the kernel's own use: kept for the running block, NULL before. */
template <uint32_t index>
inline void SetHcclContext(uint8_t *context, dp_loc loc = dp_loc::current()) {
    static_assert(index < 2, "SetHcclContext: index must be 0 or 1");
    dp_hccl_context_set(index, context, loc);
}
template <uint32_t index>
inline uint8_t *GetHcclContext(dp_loc loc = dp_loc::current()) {
    static_assert(index < 2, "GetHcclContext: index must be 0 or 1");
    return static_cast<uint8_t *>(dp_hccl_context(index, loc));
}

} // namespace AscendC

inline uint8_t *GetDumpWorkSpacePtr() { return static_cast<uint8_t *>(dp_dump_workspace()); }
inline uint8_t *SetDumpWorkSpacePtr(uint8_t *workspace) {
    dp_dump_workspace_set(workspace);
    return workspace;
}
inline uint8_t *GetSysWorkSpacePtr() { return static_cast<uint8_t *>(dp_sys_workspace()); }
inline void SetSysWorkSpacePtr(uint8_t *workspace) { dp_sys_workspace_set(workspace); }
namespace AscendC {
using ::GetSysWorkSpacePtr;
using ::SetSysWorkSpacePtr;
}

/* The built-in variables, as values read when used. A user's own variable of the same name simply hides them. */
struct dp_builtin_number {
    uint32_t (*read)();
    operator int64_t() const { return read(); }
};
inline const dp_builtin_number block_idx = {[] { return dp_block_index(); }};
inline const dp_builtin_number block_num = {[] { return dp_block_count(); }};
inline const dp_builtin_number g_coreType = {
    [] { return static_cast<uint32_t>(dp_is_vector_core() ? AscendC::AIV : AscendC::AIC); }};
inline int64_t get_block_idx() { return dp_block_index(); }
inline int64_t get_block_num() { return dp_block_count(); }

#endif
