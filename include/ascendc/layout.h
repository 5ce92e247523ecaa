/*
 * layout.h - Transpose, TransDataTo5HD, Brcb, CreateVecIndex, BilinearInterpolation; VectorPadding, which this chip
 * lacks.
 *
 * Repeat counts are wider than the 8 bits of the hardware so that a value over 255 is reported instead of being cut.
 */
#ifndef DOPPEL_ASCENDC_LAYOUT_H
#define DOPPEL_ASCENDC_LAYOUT_H

#include "ascendc/data_copy.h"

namespace AscendC {

template <typename T>
inline void Transpose(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, dp_loc loc = dp_loc::current()) {
    static_assert(dp_is_one_of<T, half, int16_t, uint16_t>(),
                  "Transpose of a 16x16 tile works on half, int16_t and uint16_t");
    dp_insn insn = dp_copy_insn(DP_OP_TRANSPOSE, dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), loc);
    dp_issue(&insn);
}
template <typename T>
inline void Transpose(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                      const LocalTensor<uint8_t> &sharedTmpBuffer, const TransposeParamsExt &transposeParams,
                      dp_loc loc = dp_loc::current()) {
    static_assert(dp_is_one_of<T, int8_t, uint8_t, half, int16_t, uint16_t, float, int32_t, uint32_t>(),
                  "Transpose works on int8_t, uint8_t, half, int16_t, uint16_t, float, int32_t and uint32_t");
    dp_insn insn = dp_copy_insn(DP_OP_TRANSPOSE, dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), loc);
    insn.n_operands = 3;
    dp_put_operand(insn.operand[2], sharedTmpBuffer.dp_operand_of());
    insn.u.vec.aux[0] = static_cast<uint32_t>(transposeParams.transposeType);
    insn.u.vec.aux[1] = transposeParams.nSize;
    insn.u.vec.aux[2] = transposeParams.cSize;
    insn.u.vec.aux[3] = transposeParams.hSize;
    insn.u.vec.aux[4] = transposeParams.wSize;
    dp_issue(&insn);
}

/* --- TransDataTo5HD --- */

template <typename T>
inline void dp_trans_data(const dp_row_list &rows, const TransDataTo5HDParams &p, dp_loc loc) {
    static_assert(dp_is_one_of<T, int8_t, uint8_t>() || dp_is_16_or_32_bit<T>(),
                  "TransDataTo5HD works on int8_t, uint8_t, int16_t, uint16_t, half, int32_t, uint32_t and float");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_TRANS_DATA_TO_5HD;
    insn.n_operands = 2;
    insn.repeat = p.repeatTimes;
    insn.scalar_bits = reinterpret_cast<uint64_t>(&rows);
    dp_put_operand(insn.operand[0], dp_make_operand(rows.dst[0], 0, 0, 1, p.dstRepStride, dp_dtype_of<T>(), DP_SPACE_UB));
    dp_put_operand(insn.operand[1], dp_make_operand(rows.src[0], 0, 0, 1, p.srcRepStride, dp_dtype_of<T>(), DP_SPACE_UB));
    insn.u.vec.flag0 = p.dstHighHalf;
    insn.u.vec.flag1 = p.srcHighHalf;
    insn.loc = loc;
    dp_issue(&insn);
}

template <typename T>
inline void TransDataTo5HD(const LocalTensor<T> (&dstLocalList)[16], const LocalTensor<T> (&srcLocalList)[16],
                           const TransDataTo5HDParams &nchwconvParams, dp_loc loc = dp_loc::current()) {
    dp_row_list rows;
    for (unsigned i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; i++) {
        rows.dst[i] = dstLocalList[i].GetPhyAddr();
        rows.src[i] = srcLocalList[i].GetPhyAddr();
    }
    dp_trans_data<T>(rows, nchwconvParams, loc);
}
/* Row addresses as GetPhyAddr() gives them. */
template <typename T>
inline void TransDataTo5HD(uint64_t dstList[16], uint64_t srcList[16], const TransDataTo5HDParams &nchwconvParams,
                           dp_loc loc = dp_loc::current()) {
    dp_row_list rows;
    for (unsigned i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; i++) {
        rows.dst[i] = reinterpret_cast<void *>(dstList[i]);
        rows.src[i] = reinterpret_cast<void *>(srcList[i]);
    }
    dp_trans_data<T>(rows, nchwconvParams, loc);
}
/* Lists of 16 addresses in UB. */
template <typename T>
inline void TransDataTo5HD(const LocalTensor<uint64_t> &dstLocal, const LocalTensor<uint64_t> &srcLocal,
                           const TransDataTo5HDParams &nchwconvParams, dp_loc loc = dp_loc::current()) {
    dp_row_list rows;
    for (unsigned i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; i++) {
        rows.dst[i] = reinterpret_cast<void *>(dstLocal.GetValue(i, loc));
        rows.src[i] = reinterpret_cast<void *>(srcLocal.GetValue(i, loc));
    }
    dp_trans_data<T>(rows, nchwconvParams, loc);
}

/* --- values that fill blocks --- */

template <typename T>
inline void Brcb(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local, const uint32_t repeatTimes,
                 const BrcbRepeatParams &repeatParams, dp_loc loc = dp_loc::current()) {
    static_assert(dp_is_16_or_32_bit<T>(), "Brcb works on 16-bit and 32-bit types");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_BRCB;
    insn.n_operands = 2;
    insn.repeat = repeatTimes;
    dp_put_operand(insn.operand[0], dstLocal.dp_operand_of(repeatParams.dstBlkStride, repeatParams.dstRepStride));
    dp_put_operand(insn.operand[1], src0Local.dp_operand_of());
    insn.loc = loc;
    dp_issue(&insn);
}

template <typename T>
inline dp_insn dp_index_insn(const LocalTensor<T> &dst, const dp_prim_t<T> &first, uint32_t repeat, unsigned blk_stride,
                             unsigned rep_stride, dp_loc loc) {
    static_assert(dp_is_one_of<T, half, int16_t, float, int32_t>(),
                  "CreateVecIndex works on half, int16_t, float and int32_t");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_CREATE_VEC_INDEX;
    insn.n_operands = 1;
    insn.repeat = repeat;
    insn.scalar_bits = dp_scalar_bits(first);
    dp_put_operand(insn.operand[0], dst.dp_operand_of(blk_stride, rep_stride));
    insn.loc = loc;
    return insn;
}
template <typename T>
inline void CreateVecIndex(LocalTensor<T> &dstLocal, const T &firstValue, uint64_t mask, uint32_t repeatTimes,
                           uint16_t dstBlkStride, uint8_t dstRepStride, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_index_insn(dstLocal, firstValue, repeatTimes, dstBlkStride, dstRepStride, loc);
    insn.mask_kind = DP_MASK_LEADING;
    insn.mask[0] = mask;
    dp_issue(&insn);
}
template <typename T>
inline void CreateVecIndex(LocalTensor<T> &dstLocal, const T &firstValue, uint64_t mask[], uint32_t repeatTimes,
                           uint16_t dstBlkStride, uint8_t dstRepStride, dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_index_insn(dstLocal, firstValue, repeatTimes, dstBlkStride, dstRepStride, loc);
    insn.mask_kind = DP_MASK_BITS;
    insn.mask[0] = mask[0];
    insn.mask[1] = mask[1];
    dp_issue(&insn);
}
template <typename T>
inline void CreateVecIndex(LocalTensor<T> dstLocal, const T &firstValue, uint32_t calCount,
                           dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_index_insn(dstLocal, firstValue, 1, 1, 8, loc);
    insn.mask_kind = DP_MASK_COUNT;
    insn.mask[0] = calCount;
    dp_issue(&insn);
}

/* --- BilinearInterpolation --- */

template <typename T>
inline dp_insn dp_bilinear_insn(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                                const LocalTensor<uint32_t> &offsets, const LocalTensor<T> &src1, uint32_t h_repeat,
                                bool repeat_mode, uint16_t dst_blk_stride, uint16_t v_offset, uint32_t v_repeat,
                                dp_loc loc) {
    static_assert(dp_is_one_of<T, half>(), "BilinearInterpolation works on half");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_BILINEAR;
    insn.n_operands = 4;
    dp_put_operand(insn.operand[0], dst.dp_operand_of(dst_blk_stride));
    dp_put_operand(insn.operand[1], src0.dp_operand_of());
    dp_put_operand(insn.operand[2], offsets.dp_operand_of());
    dp_put_operand(insn.operand[3], src1.dp_operand_of());
    insn.u.vec.aux[0] = h_repeat;
    insn.u.vec.aux[1] = repeat_mode;
    insn.u.vec.aux[2] = v_offset;
    insn.u.vec.aux[3] = v_repeat;
    insn.loc = loc;
    return insn;
}
template <typename T>
inline void BilinearInterpolation(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local,
                                  const LocalTensor<uint32_t> &src0OffsetLocal, const LocalTensor<T> &src1Local,
                                  uint64_t mask, uint32_t hRepeat, bool repeatMode, uint16_t dstBlkStride,
                                  uint16_t vROffset, uint32_t vRepeat, const LocalTensor<uint8_t> &,
                                  dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_bilinear_insn(dstLocal, src0Local, src0OffsetLocal, src1Local, hRepeat, repeatMode, dstBlkStride,
                                    vROffset, vRepeat, loc);
    insn.mask_kind = DP_MASK_LEADING;
    insn.mask[0] = mask;
    dp_issue(&insn);
}
template <typename T>
inline void BilinearInterpolation(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local,
                                  const LocalTensor<uint32_t> &src0OffsetLocal, const LocalTensor<T> &src1Local,
                                  uint64_t mask[], uint32_t hRepeat, bool repeatMode, uint16_t dstBlkStride,
                                  uint16_t vROffset, uint32_t vRepeat, const LocalTensor<uint8_t> &,
                                  dp_loc loc = dp_loc::current()) {
    dp_insn insn = dp_bilinear_insn(dstLocal, src0Local, src0OffsetLocal, src1Local, hRepeat, repeatMode, dstBlkStride,
                                    vROffset, vRepeat, loc);
    insn.mask_kind = DP_MASK_BITS;
    insn.mask[0] = mask[0];
    insn.mask[1] = mask[1];
    dp_issue(&insn);
}

#define DP_NO_PADDING                                                                                                  \
    static_assert(!sizeof(T),                                                                                          \
                  "VectorPadding is not available on dav-2201: use Gather with offsets that repeat the edge")
template <typename T, bool isSetMask = true>
inline void VectorPadding(const LocalTensor<T> &, const LocalTensor<T> &, const uint8_t, const bool, const uint64_t,
                          const uint8_t, const UnaryRepeatParams &, dp_loc = dp_loc::current()) {
    DP_NO_PADDING;
}
template <typename T, bool isSetMask = true>
inline void VectorPadding(const LocalTensor<T> &, const LocalTensor<T> &, const uint8_t, const bool, const uint64_t[],
                          const uint8_t, const UnaryRepeatParams &, dp_loc = dp_loc::current()) {
    DP_NO_PADDING;
}
template <typename T>
inline void VectorPadding(const LocalTensor<T> &, const LocalTensor<T> &, const uint8_t, const bool, const uint32_t,
                          dp_loc = dp_loc::current()) {
    DP_NO_PADDING;
}
#undef DP_NO_PADDING

} // namespace AscendC

#endif
