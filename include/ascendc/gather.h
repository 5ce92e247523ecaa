/*
 * gather.h - Gather, Gatherb, GatherMask; Scatter, which this chip does not have.
 *
 * Repeat counts are wider than the 8 bits of the hardware so that a value over 255 is reported instead of being cut.
 */
#ifndef DOPPEL_ASCENDC_GATHER_H
#define DOPPEL_ASCENDC_GATHER_H

#include "ascendc/data_copy.h"

namespace AscendC {

constexpr GatherMaskMode defaultGatherMaskMode = GatherMaskMode::VERSION_V2;
constexpr GatherMaskMode defaultGahterMaskMode = defaultGatherMaskMode; /* the name's older spelling */

template <typename T>
inline dp_insn dp_gather_insn(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                              const LocalTensor<uint32_t> &offsets, uint32_t base, uint32_t repeat,
                              unsigned dst_rep_stride, dp_loc loc) {
    static_assert(dp_is_16_or_32_bit<T>(),
                  "Gather works on half, bfloat16_t, int16_t, uint16_t, float, int32_t and uint32_t");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_GATHER;
    insn.n_operands = 3;
    insn.repeat = repeat;
    insn.scalar_bits = base;
    dp_put_operand(insn.operand[0], dst.dp_operand_of(1, dst_rep_stride));
    dp_put_operand(insn.operand[1], src.dp_operand_of());
    dp_put_operand(insn.operand[2], offsets.dp_operand_of());
    insn.loc = loc;
    return insn;
}

template <typename T>
inline void Gather(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                   const LocalTensor<uint32_t> &srcOffsetLocal, const uint32_t srcBaseAddr, const uint64_t mask,
                   const uint32_t repeatTimes, const uint16_t dstRepStride, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_gather_insn(dstLocal, srcLocal, srcOffsetLocal, srcBaseAddr, repeatTimes, dstRepStride, loc);
    insn.mask_kind = DP_MASK_LEADING;
    insn.mask[0] = mask;
    dp_issue(&insn);
}
template <typename T>
inline void Gather(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                   const LocalTensor<uint32_t> &srcOffsetLocal, const uint32_t srcBaseAddr, const uint64_t mask[],
                   const uint32_t repeatTimes, const uint16_t dstRepStride, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_gather_insn(dstLocal, srcLocal, srcOffsetLocal, srcBaseAddr, repeatTimes, dstRepStride, loc);
    insn.mask_kind = DP_MASK_BITS;
    insn.mask[0] = mask[0];
    insn.mask[1] = mask[1];
    dp_issue(&insn);
}
template <typename T>
inline void Gather(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                   const LocalTensor<uint32_t> &srcOffsetLocal, const uint32_t srcBaseAddr, const uint32_t count,
                   dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_gather_insn(dstLocal, srcLocal, srcOffsetLocal, srcBaseAddr, 1, 8, loc);
    insn.mask_kind = DP_MASK_COUNT;
    insn.mask[0] = count;
    dp_issue(&insn);
}

template <typename T>
inline void Gatherb(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local,
                    const LocalTensor<uint32_t> &offsetLocal, const uint32_t repeatTimes,
                    const GatherRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    static_assert(dp_is_16_or_32_bit<T>(), "Gatherb works on 16-bit and 32-bit types");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_GATHERB;
    insn.n_operands = 3;
    insn.repeat = repeatTimes;
    dp_put_operand(insn.operand[0], dstLocal.dp_operand_of(repeatParams.dstBlkStride, repeatParams.dstRepStride));
    dp_put_operand(insn.operand[1], src0Local.dp_operand_of());
    dp_put_operand(insn.operand[2], offsetLocal.dp_operand_of());
    insn.loc = loc;
    dp_issue(&insn);
}

#define DP_NO_SCATTER                                                                                                  \
    static_assert(!sizeof(T),                                                                                          \
                  "Scatter is not available on dav-2201: store elements one by one with SetValue, or Gather "          \
                  "with the inverse offsets")
template <typename T>
inline void Scatter(const LocalTensor<T> &, const LocalTensor<T> &, const LocalTensor<uint32_t> &, const uint32_t,
                    const uint64_t, const uint8_t, const uint8_t, dp_loc = dp_loc::current()) {
    DP_NO_SCATTER;
}
template <typename T>
inline void Scatter(const LocalTensor<T> &, const LocalTensor<T> &, const LocalTensor<uint32_t> &, const uint32_t,
                    const uint64_t[], const uint8_t, const uint8_t, dp_loc = dp_loc::current()) {
    DP_NO_SCATTER;
}
template <typename T>
inline void Scatter(const LocalTensor<T> &, const LocalTensor<T> &, const LocalTensor<uint32_t> &, const uint32_t,
                    const uint32_t, dp_loc = dp_loc::current()) {
    DP_NO_SCATTER;
}
#undef DP_NO_SCATTER

/* --- GatherMask --- */

template <typename T, GatherMaskMode mode>
inline dp_insn dp_gather_mask_insn(const LocalTensor<T> &dst, const LocalTensor<T> &src, bool reduce_mode,
                                   uint32_t mask, const GatherMaskParams &p, dp_loc loc) {
    static_assert(dp_is_16_or_32_bit<T>(),
                  "GatherMask works on half, bfloat16_t, int16_t, uint16_t, float, int32_t and uint32_t");
    static_assert(mode == GatherMaskMode::VERSION_V2, "dav-2201 has GatherMaskMode::VERSION_V2 only");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_GATHER_MASK;
    insn.n_operands = 2;
    insn.repeat = p.repeatTimes;
    insn.mask[0] = mask;
    dp_put_operand(insn.operand[0], dst.dp_operand_of());
    dp_put_operand(insn.operand[1], src.dp_operand_of(p.src0BlockStride, p.src0RepeatStride));
    insn.u.vec.flag1 = reduce_mode;
    insn.loc = loc;
    return insn;
}

template <typename T, typename U, GatherMaskMode mode = defaultGatherMaskMode>
inline void GatherMask(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local,
                       const LocalTensor<U> &src1Pattern, const bool reduceMode, const uint32_t mask,
                       const GatherMaskParams &gatherMaskParams, uint64_t &rsvdCnt, dp_loc loc = dp_loc::current()) {
    static_assert(dp_is_one_of<U, uint16_t, uint32_t>() && sizeof(dp_prim_t<U>) == sizeof(dp_prim_t<T>),
                  "the pattern of GatherMask is uint16_t for 16-bit data and uint32_t for 32-bit data");
    dp_insn insn = dp_gather_mask_insn<T, mode>(dstLocal, src0Local, reduceMode, mask, gatherMaskParams, loc);
    insn.n_operands = 3;
    dp_put_operand(insn.operand[2], src1Pattern.dp_operand_of(1, gatherMaskParams.src1RepeatStride));
    dp_issue(&insn);
    rsvdCnt = insn.result;
}
template <typename T, GatherMaskMode mode = defaultGatherMaskMode>
inline void GatherMask(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local, const uint8_t src1Pattern,
                       const bool reduceMode, const uint32_t mask, const GatherMaskParams &gatherMaskParams,
                       uint64_t &rsvdCnt, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_gather_mask_insn<T, mode>(dstLocal, src0Local, reduceMode, mask, gatherMaskParams, loc);
    insn.u.vec.flag0 = src1Pattern;
    dp_issue(&insn);
    rsvdCnt = insn.result;
}

/* Elements the last GatherMask kept. */
inline int64_t GetGatherMaskRemainCount(dp_loc loc = dp_loc::current()) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_GET_KEPT;
    insn.loc = loc;
    dp_issue(&insn);
    return static_cast<int64_t>(insn.result);
}

} // namespace AscendC

#endif
