/*
 * sort.h - Sort32, MrgSort, Sort, Concat, Extract and their sizes; the region proposals this chip does not have.
 *
 * Sorted data are entries of 8 bytes (score, index): 4 half or 2 float elements each.
 */
#ifndef DOPPEL_ASCENDC_SORT_H
#define DOPPEL_ASCENDC_SORT_H

#include "ascendc/data_copy.h"

namespace AscendC {

#define DP_ASSERT_SCORE(T, api) static_assert(dp_is_one_of<T, half, float>(), api " works on half and float scores")

template <typename T>
struct MrgSortSrcList {
    LocalTensor<T> src1, src2, src3, src4;

    MrgSortSrcList() = default;
    MrgSortSrcList(const LocalTensor<T> &list1, const LocalTensor<T> &list2, const LocalTensor<T> &list3,
                   const LocalTensor<T> &list4)
        : src1(list1), src2(list2), src3(list3), src4(list4) {}
};

template <typename T>
inline void Sort32(const LocalTensor<T> &dstLocal, const LocalTensor<T> &src0Local,
                   const LocalTensor<uint32_t> &src1Local, const int32_t repeatTimes, dp_loc loc = dp_loc::current()) {
    DP_ASSERT_SCORE(T, "Sort32");
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_SORT32;
    insn.n_operands = 3;
    insn.repeat = static_cast<uint32_t>(repeatTimes);
    dp_put_operand(insn.operand[0], dstLocal.dp_operand_of());
    dp_put_operand(insn.operand[1], src0Local.dp_operand_of());
    dp_put_operand(insn.operand[2], src1Local.dp_operand_of());
    insn.loc = loc;
    dp_issue(&insn);
}

/* Returns how many entries of each list were taken, four 16-bit fields. */
template <typename T>
inline uint64_t dp_merge_sorted(const LocalTensor<T> &dst, const MrgSortSrcList<T> &lists, const uint16_t lengths[4],
                                bool suspend, uint16_t valid, uint32_t repeat, dp_loc loc) {
    const uint64_t list3 = reinterpret_cast<uint64_t>(lists.src4.GetPhyAddr());
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_MRG_SORT;
    insn.n_operands = 4;
    insn.repeat = repeat;
    dp_put_operand(insn.operand[0], dst.dp_operand_of());
    dp_put_operand(insn.operand[1], lists.src1.dp_operand_of());
    dp_put_operand(insn.operand[2], lists.src2.dp_operand_of());
    dp_put_operand(insn.operand[3], lists.src3.dp_operand_of());
    insn.u.vec.aux[0] = static_cast<uint32_t>(list3);
    insn.u.vec.aux[1] = static_cast<uint32_t>(list3 >> 32);
    insn.u.vec.flag0 = static_cast<uint8_t>(valid > 255 ? 255 : valid);
    insn.u.vec.flag1 = suspend;
    for (unsigned i = 0; i < 4; i++)
        insn.scalar_bits |= static_cast<uint64_t>(lengths[i]) << (16 * i);
    insn.loc = loc;
    dp_issue(&insn);
    return insn.result;
}

template <typename T>
inline void MrgSort(const LocalTensor<T> &dstLocal, const MrgSortSrcList<T> &srcLocal, const MrgSort4Info &params,
                    dp_loc loc = dp_loc::current()) {
    DP_ASSERT_SCORE(T, "MrgSort");
    dp_merge_sorted(dstLocal, srcLocal, params.elementLengths, params.ifExhaustedSuspension, params.validBit,
                    params.repeatTimes, loc);
}
template <typename T, bool isExhaustedSuspension = false>
inline void MrgSort(const LocalTensor<T> &dstLocal, const MrgSortSrcList<T> &sortList,
                    const uint16_t elementCountList[4], uint32_t sortedNum[4], uint16_t validBit,
                    const int32_t repeatTimes, dp_loc loc = dp_loc::current()) {
    DP_ASSERT_SCORE(T, "MrgSort");
    const uint64_t taken = dp_merge_sorted(dstLocal, sortList, elementCountList, isExhaustedSuspension, validBit,
                                           static_cast<uint32_t>(repeatTimes), loc);
    for (unsigned i = 0; i < 4; i++)
        sortedNum[i] = static_cast<uint16_t>(taken >> (16 * i));
}

inline void GetMrgSortResult(uint16_t &mrgSortList1, uint16_t &mrgSortList2, uint16_t &mrgSortList3,
                             uint16_t &mrgSortList4, dp_loc loc = dp_loc::current()) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_GET_MRG_SORT_RESULT;
    insn.loc = loc;
    dp_issue(&insn);
    mrgSortList1 = static_cast<uint16_t>(insn.result);
    mrgSortList2 = static_cast<uint16_t>(insn.result >> 16);
    mrgSortList3 = static_cast<uint16_t>(insn.result >> 32);
    mrgSortList4 = static_cast<uint16_t>(insn.result >> 48);
}

template <typename T, bool isFullSort>
inline void Sort(const LocalTensor<T> &dstLocal, const LocalTensor<T> &concatLocal,
                 const LocalTensor<uint32_t> &indexLocal, LocalTensor<T> &tmpLocal, const int32_t repeatTimes,
                 dp_loc loc = dp_loc::current()) {
    DP_ASSERT_SCORE(T, "Sort");
    dp_sort_entries(dstLocal.dp_operand_of(), concatLocal.dp_operand_of(), indexLocal.dp_operand_of(),
                    tmpLocal.dp_operand_of(), static_cast<uint32_t>(repeatTimes), isFullSort, loc);
}

/* On this chip the scores need no packing: the result is another name for the source. */
template <typename T>
inline void Concat(LocalTensor<T> &concatLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &, const int32_t,
                   dp_loc = dp_loc::current()) {
    DP_ASSERT_SCORE(T, "Concat");
    concatLocal = srcLocal;
}

template <typename T>
inline void Extract(const LocalTensor<T> &dstValueLocal, const LocalTensor<uint32_t> &dstIndexLocal,
                    const LocalTensor<T> &sortedLocal, const int32_t repeatTimes, dp_loc loc = dp_loc::current()) {
    DP_ASSERT_SCORE(T, "Extract");
    dp_extract_entries(dstValueLocal.dp_operand_of(), dstIndexLocal.dp_operand_of(), sortedLocal.dp_operand_of(),
                       static_cast<uint32_t>(repeatTimes), loc);
}

template <typename T>
inline uint32_t GetSortOffset(const uint32_t elemOffset) {
    DP_ASSERT_SCORE(T, "GetSortOffset");
    return elemOffset * static_cast<uint32_t>(8 / sizeof(dp_prim_t<T>));
}
template <typename T>
inline uint32_t GetSortLen(const uint32_t elemCount) {
    DP_ASSERT_SCORE(T, "GetSortLen");
    return elemCount * static_cast<uint32_t>(8 / sizeof(dp_prim_t<T>));
}
#undef DP_ASSERT_SCORE

#define DP_NO_PROPOSAL(api)                                                                                            \
    static_assert(!sizeof(T),                                                                                          \
                  api " works on region proposals, which dav-2201 does not have: use Sort32, MrgSort, Concat "         \
                      "and Extract")
template <typename T>
inline void RpSort16(const LocalTensor<T> &, const LocalTensor<T> &, const int32_t, dp_loc = dp_loc::current()) {
    DP_NO_PROPOSAL("RpSort16");
}
template <typename T>
inline void MrgSort4(const LocalTensor<T> &, const MrgSortSrcList<T> &, const MrgSort4Info &,
                     dp_loc = dp_loc::current()) {
    DP_NO_PROPOSAL("MrgSort4");
}
template <typename T>
inline void ProposalConcat(const LocalTensor<T> &, const LocalTensor<T> &, const int32_t, const int32_t,
                           dp_loc = dp_loc::current()) {
    DP_NO_PROPOSAL("ProposalConcat");
}
template <typename T>
inline void ProposalExtract(const LocalTensor<T> &, const LocalTensor<T> &, const int32_t, const int32_t,
                            dp_loc = dp_loc::current()) {
    DP_NO_PROPOSAL("ProposalExtract");
}
#undef DP_NO_PROPOSAL

} // namespace AscendC

#endif
