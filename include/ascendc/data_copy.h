/*
 * data_copy.h - DataCopy, DataCopyPad, Copy between and inside memories, InitConstValue, InitOutput, cache maintenance.
 */
#ifndef DOPPEL_ASCENDC_DATA_COPY_H
#define DOPPEL_ASCENDC_DATA_COPY_H

#include "ascendc/tensor.h"
#include "doppel/data_rt.h"

namespace AscendC {

template <typename T>
constexpr bool dp_is_one_of() {
    return false;
}
/* Is the element type behind T one of the others? */
template <typename T, typename First, typename... Rest>
constexpr bool dp_is_one_of() {
    return std::is_same<dp_prim_t<T>, First>::value || dp_is_one_of<T, Rest...>();
}
template <typename T>
constexpr bool dp_is_16_or_32_bit() {
    return dp_is_one_of<T, half, bfloat16_t, int16_t, uint16_t, float, int32_t, uint32_t>();
}

inline dp_insn dp_copy_insn(dp_op op, const dp_operand &dst, const dp_operand &src, dp_loc loc) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = static_cast<uint16_t>(op);
    insn.n_operands = 2;
    dp_put_operand(insn.operand[0], dst);
    dp_put_operand(insn.operand[1], src);
    insn.loc = loc;
    return insn;
}

/* Counts whose bytes do not fit 32 bits stay too large for any memory. */
template <typename T>
constexpr uint32_t dp_run_bytes(uint32_t count) {
    return static_cast<uint32_t>(dp_bytes_of<T>(count) > UINT32_MAX ? UINT32_MAX : dp_bytes_of<T>(count));
}

/* One contiguous run. */
inline void dp_copy_bytes(const dp_operand &dst, const dp_operand &src, uint32_t bytes, dp_loc loc) {
    dp_insn insn = dp_copy_insn(DP_OP_DATA_COPY, dst, src, loc);
    insn.u.copy.block_count = 1;
    insn.u.copy.block_bytes = bytes;
    dp_issue(&insn);
}

inline void dp_copy_blocks(const dp_operand &dst, const dp_operand &src, const DataCopyParams &p, dp_loc loc) {
    dp_insn insn = dp_copy_insn(DP_OP_DATA_COPY, dst, src, loc);
    const uint32_t unit = dst.space == DP_SPACE_BT ? 64 : dst.space == DP_SPACE_FB ? 128 : 32;
    insn.u.copy.block_count = p.blockCount;
    insn.u.copy.block_bytes = p.blockLen * unit;
    insn.u.copy.src_gap_bytes = static_cast<int64_t>(p.srcStride) * 32;
    insn.u.copy.dst_gap_bytes = static_cast<int64_t>(p.dstStride) * unit;
    dp_issue(&insn);
}

inline void dp_copy_nd2nz(const dp_operand &dst, const dp_operand &src, const Nd2NzParams &p, dp_loc loc) {
    dp_insn insn = dp_copy_insn(DP_OP_DATA_COPY_ND2NZ, dst, src, loc);
    insn.u.nd2nz = {p.ndNum,     p.nValue,        p.dValue,       p.srcNdMatrixStride,
                    p.srcDValue, p.dstNzC0Stride, p.dstNzNStride, p.dstNzMatrixStride};
    dp_issue(&insn);
}

/* Gaps count bytes on the GM side and 32-byte blocks on the UB side. */
template <typename Params>
inline dp_copy_params dp_pad_params(const dp_operand &dst, const dp_operand &src, const Params &p) {
    dp_copy_params copy = {};
    copy.block_count = p.blockCount;
    copy.block_bytes = p.blockLen;
    copy.src_gap_bytes = static_cast<int64_t>(p.srcStride) * (src.space == DP_SPACE_GM ? 1 : 32);
    copy.dst_gap_bytes =
        static_cast<int64_t>(p.dstStride) * (dst.space == DP_SPACE_GM || src.space != DP_SPACE_GM ? 1 : 32);
    copy.pad_form = 1;
    return copy;
}

template <typename Params>
inline void dp_copy_pad_in(const dp_operand &dst, const dp_operand &src, const Params &p, bool is_pad, uint8_t left,
                           uint8_t right, uint64_t value, dp_loc loc) {
    dp_insn insn = dp_copy_insn(DP_OP_DATA_COPY_PAD, dst, src, loc);
    insn.u.copy = dp_pad_params(dst, src, p);
    insn.u.copy.is_pad = is_pad;
    insn.u.copy.left_pad = left;
    insn.u.copy.right_pad = right;
    insn.u.copy.pad_value = value;
    dp_issue(&insn);
}

template <typename Params>
inline void dp_copy_pad_out(const dp_operand &dst, const dp_operand &src, const Params &p, dp_loc loc) {
    dp_insn insn = dp_copy_insn(DP_OP_DATA_COPY_PAD, dst, src, loc);
    insn.u.copy = dp_pad_params(dst, src, p);
    dp_issue(&insn);
}

/* UB -> L1: the copy's destination is the packed matrix, so its gap counts bytes. */
template <typename Params>
inline void dp_copy_pad_nz(const dp_operand &dst, const dp_operand &src, const Params &p, const Nd2NzParams &nz,
                           dp_loc loc) {
    const dp_copy_params copy = dp_pad_params(dst, src, p);
    const dp_nd2nz_params matrix = {nz.ndNum,     nz.nValue,        nz.dValue,       nz.srcNdMatrixStride,
                                    nz.srcDValue, nz.dstNzC0Stride, nz.dstNzNStride, nz.dstNzMatrixStride};
    dp_copy_pad_nd2nz(dst, src, &copy, &matrix, loc);
}

inline void dp_copy_slice_arrays(const dp_operand &dst, const dp_operand &src, const SliceInfo dst_info[],
                                 const SliceInfo src_info[], uint32_t dims, dp_loc loc) {
    dp_slice to[K_MAX_SHAPE_DIM] = {}, from[K_MAX_SHAPE_DIM] = {};
    for (uint32_t d = 0; d < dims && d < K_MAX_SHAPE_DIM; d++) {
        to[d] = {dst_info[d].startIndex, dst_info[d].endIndex, dst_info[d].stride, dst_info[d].burstLen,
                 dst_info[d].shapeValue};
        from[d] = {src_info[d].startIndex, src_info[d].endIndex, src_info[d].stride, src_info[d].burstLen,
                   src_info[d].shapeValue};
    }
    dp_copy_slices(dst, src, to, from, dims, loc);
}

/* --- DataCopy: whole 32-byte blocks --- */

template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal,
                     const DataCopyParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_copy_blocks(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), repeatParams, loc);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T> &dstGlobal, const LocalTensor<T> &srcLocal,
                     const DataCopyParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_copy_blocks(dstGlobal.dp_operand_of(), srcLocal.dp_operand_of(), repeatParams, loc);
}
template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const DataCopyParams &repeatParams,
                     dp_loc loc = dp_loc::current()) {
    dp_copy_blocks(dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), repeatParams, loc);
}
/* Between element types: only L1 to the bias table, half to float. */
template <typename dst_T, typename src_T>
inline void DataCopy(const LocalTensor<dst_T> &dstLocal, const LocalTensor<src_T> &srcLocal,
                     const DataCopyParams &repeatParams, dp_loc loc = dp_loc::current()) {
    dp_copy_blocks(dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), repeatParams, loc);
}

template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal, const uint32_t calCount,
                     dp_loc loc = dp_loc::current()) {
    dp_count_copy_in(dp_dtype_of<T>(), dstLocal.dp_local_of(), srcGlobal.GetPhyAddr(), srcGlobal.dp_bytes_left(),
                     dp_run_bytes<T>(calCount), loc);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T> &dstGlobal, const LocalTensor<T> &srcLocal, const uint32_t calCount,
                     dp_loc loc = dp_loc::current()) {
    dp_count_copy_out(dp_dtype_of<T>(), dstGlobal.GetPhyAddr(), dstGlobal.dp_bytes_left(), srcLocal.dp_local_of(),
                      dp_run_bytes<T>(calCount), loc);
}
template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const uint32_t calCount,
                     dp_loc loc = dp_loc::current()) {
    dp_copy_bytes(dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), dp_run_bytes<T>(calCount), loc);
}

/* The enhanced parameters act on paths out of L0C only; on the paths of these forms the copy is the plain one. */
template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal,
                     const DataCopyParams &intriParams, const DataCopyEnhancedParams &,
                     dp_loc loc = dp_loc::current()) {
    dp_copy_blocks(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), intriParams, loc);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T> &dstGlobal, const LocalTensor<T> &srcLocal,
                     const DataCopyParams &intriParams, const DataCopyEnhancedParams &,
                     dp_loc loc = dp_loc::current()) {
    dp_copy_blocks(dstGlobal.dp_operand_of(), srcLocal.dp_operand_of(), intriParams, loc);
}
template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const DataCopyParams &intriParams,
                     const DataCopyEnhancedParams &, dp_loc loc = dp_loc::current()) {
    dp_copy_blocks(dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), intriParams, loc);
}
template <typename T, typename U>
inline void DataCopy(const LocalTensor<T> &, const LocalTensor<U> &, const DataCopyParams &,
                     const DataCopyEnhancedParams &, dp_loc = dp_loc::current()) {
    static_assert(!sizeof(T),
                  "DataCopy cannot convert between UB and L0C on dav-2201: there is no path between them. Use "
                  "Fixpipe to leave L0C, Cast to change a type in UB");
}

template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal, const SliceInfo dstSliceInfo[],
                     const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1, dp_loc loc = dp_loc::current()) {
    dp_copy_slice_arrays(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), dstSliceInfo, srcSliceInfo, dimValue,
                         loc);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T> &dstGlobal, const LocalTensor<T> &srcLocal, const SliceInfo dstSliceInfo[],
                     const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1, dp_loc loc = dp_loc::current()) {
    dp_copy_slice_arrays(dstGlobal.dp_operand_of(), srcLocal.dp_operand_of(), dstSliceInfo, srcSliceInfo, dimValue,
                         loc);
}

/* --- DataCopy with change of layout --- */

#define DP_ASSERT_ND2NZ(T)                                                                                             \
    static_assert(                                                                                                     \
        dp_is_one_of<T, int4b_t, int8_t, uint8_t>() || dp_is_16_or_32_bit<T>(),                                        \
        "DataCopy(Nd2NzParams) works on int4b_t, int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, "      \
        "uint32_t and float")

template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal, const Nd2NzParams &intriParams,
                     dp_loc loc = dp_loc::current()) {
    DP_ASSERT_ND2NZ(T);
    dp_copy_nd2nz(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), intriParams, loc);
}
template <typename T>
inline void DataCopy(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcGlobal, const Nd2NzParams &intriParams,
                     dp_loc loc = dp_loc::current()) {
    DP_ASSERT_ND2NZ(T);
    dp_copy_nd2nz(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), intriParams, loc);
}
#undef DP_ASSERT_ND2NZ

template <typename T>
inline void DataCopy(const GlobalTensor<T> &dstGlobal, const LocalTensor<T> &srcLocal,
                     const Nz2NdParamsFull &intriParams, dp_loc loc = dp_loc::current()) {
    static_assert(
        dp_is_16_or_32_bit<T>(),
        "DataCopy(Nz2NdParamsFull) works on half, bfloat16_t, int16_t, uint16_t, float, int32_t and uint32_t");
    dp_insn insn = dp_copy_insn(DP_OP_DATA_COPY_NZ2ND, dstGlobal.dp_operand_of(), srcLocal.dp_operand_of(), loc);
    insn.u.nz2nd = {
        intriParams.ndNum,      intriParams.nValue,     intriParams.dValue,           intriParams.srcNdMatrixStride,
        intriParams.srcNStride, intriParams.dstDStride, intriParams.dstNdMatrixStride};
    dp_issue(&insn);
}

/* --- DataCopyPad: runs of any number of bytes --- */

template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal,
                        const DataCopyParams &dataCopyParams, const DataCopyPadParams &padParams,
                        dp_loc loc = dp_loc::current()) {
    dp_copy_pad_in(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), dataCopyParams, padParams.isPad,
                   padParams.leftPadding, padParams.rightPadding, padParams.paddingValue, loc);
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T> &dstGlobal, const LocalTensor<T> &srcLocal,
                        const DataCopyParams &dataCopyParams, dp_loc loc = dp_loc::current()) {
    dp_copy_pad_out(dstGlobal.dp_operand_of(), srcLocal.dp_operand_of(), dataCopyParams, loc);
}
template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                        const DataCopyParams &dataCopyParams, const Nd2NzParams &nd2nzParams,
                        dp_loc loc = dp_loc::current()) {
    dp_copy_pad_nz(dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), dataCopyParams, nd2nzParams, loc);
}
template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal,
                        const DataCopyExtParams &dataCopyParams, const DataCopyPadExtParams<T> &padParams,
                        dp_loc loc = dp_loc::current()) {
    dp_copy_pad_in(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), dataCopyParams, padParams.isPad,
                   padParams.leftPadding, padParams.rightPadding, dp_scalar_bits(padParams.paddingValue), loc);
}
template <
    typename T, typename U,
    typename std::enable_if<std::is_same<dp_prim_t<T>, U>::value && !std::is_same<T, U>::value, bool>::type = true>
inline void DataCopyPad(const LocalTensor<T> &dstLocal, const GlobalTensor<T> &srcGlobal,
                        const DataCopyExtParams &dataCopyParams, const DataCopyPadExtParams<U> &padParams,
                        dp_loc loc = dp_loc::current()) {
    dp_copy_pad_in(dstLocal.dp_operand_of(), srcGlobal.dp_operand_of(), dataCopyParams, padParams.isPad,
                   padParams.leftPadding, padParams.rightPadding, dp_scalar_bits(padParams.paddingValue), loc);
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T> &dstGlobal, const LocalTensor<T> &srcLocal,
                        const DataCopyExtParams &dataCopyParams, dp_loc loc = dp_loc::current()) {
    dp_copy_pad_out(dstGlobal.dp_operand_of(), srcLocal.dp_operand_of(), dataCopyParams, loc);
}
template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                        const DataCopyExtParams &dataCopyParams, const Nd2NzParams &nd2nzParams,
                        dp_loc loc = dp_loc::current()) {
    dp_copy_pad_nz(dstLocal.dp_operand_of(), srcLocal.dp_operand_of(), dataCopyParams, nd2nzParams, loc);
}

/* --- filling and caches --- */

template <typename T, typename U = dp_prim_t<T>,
          typename std::enable_if<std::is_same<dp_prim_t<T>, U>::value, bool>::type = true>
inline void InitConstValue(const LocalTensor<T> &dstLocal, const InitConstValueParams<U> &initConstValueParams,
                           dp_loc loc = dp_loc::current()) {
    static_assert(dp_is_16_or_32_bit<T>(),
                  "InitConstValue works on half, int16_t, uint16_t, bfloat16_t, int32_t, uint32_t and float");
    const uint32_t unit = dstLocal.dp_space() == DP_SPACE_L1 ? 32 : 512;
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_INIT_CONST;
    insn.n_operands = 1;
    dp_put_operand(insn.operand[0], dstLocal.dp_operand_of());
    insn.scalar_bits = dp_scalar_bits(initConstValueParams.initValue);
    insn.u.copy.block_count = initConstValueParams.repeatTimes;
    insn.u.copy.block_bytes = initConstValueParams.blockNum * unit;
    insn.u.copy.dst_gap_bytes = static_cast<int64_t>(initConstValueParams.dstGap) * unit;
    insn.loc = loc;
    dp_issue(&insn);
}

template <typename T>
inline void InitOutput(GlobalTensor<T> gmWorkspaceAddr, uint32_t size, T value = 0, dp_loc loc = dp_loc::current()) {
    static_assert(dp_is_16_or_32_bit<T>(),
                  "InitOutput works on half, bfloat16_t, int16_t, uint16_t, float, int32_t and uint32_t");
    dp_init_output(gmWorkspaceAddr.dp_operand_of(), size, dp_scalar_bits(value), loc);
}

inline void dp_clean_cache(const dp_operand &where, bool entire, dp_loc loc) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_DCCI;
    insn.n_operands = 1;
    dp_put_operand(insn.operand[0], where);
    insn.u.vec.flag0 = entire;
    insn.loc = loc;
    dp_issue(&insn);
}
template <typename T, CacheLine entireType, DcciDst dcciDst>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &dstTensor, dp_loc loc = dp_loc::current()) {
    dp_clean_cache(dstTensor.dp_operand_of(), entireType == CacheLine::ENTIRE_DATA_CACHE, loc);
}
template <typename T, CacheLine entireType, DcciDst dcciDst>
inline void DataCacheCleanAndInvalid(const LocalTensor<T> &dstTensor, dp_loc loc = dp_loc::current()) {
    dp_clean_cache(dstTensor.dp_operand_of(), entireType == CacheLine::ENTIRE_DATA_CACHE, loc);
}
template <typename T, CacheLine entireType>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &dstTensor, dp_loc loc = dp_loc::current()) {
    dp_clean_cache(dstTensor.dp_operand_of(), entireType == CacheLine::ENTIRE_DATA_CACHE, loc);
}
} // namespace AscendC

#endif
