/*
 * vector_common.h - what all vector_*.h share: legal types at compile time, and filling the instruction struct.
 *
 * Mask forms: `mask[]` = two words of lane bits, `mask` = the first n lanes of every repeat, count form = n elements in a row.
 * With isSetMask false the mask register is used as it stands. repeatTimes is wider than the 8 bits of the hardware so that
 * a value over 255 is reported instead of being cut.
 */
#ifndef DOPPEL_ASCENDC_VECTOR_COMMON_H
#define DOPPEL_ASCENDC_VECTOR_COMMON_H

#include "ascendc/tensor.h"

namespace AscendC {

/* Element types an instruction is offered for, bit = dp_dtype (insn_types.def). */
constexpr uint32_t dp_types_of(dp_op op) {
    switch (op) {
#define DP_INSN_TYPES(op, types)                                                                                       \
    case DP_OP_##op: return (types);
#include "doppel/insn_types.def"
#undef DP_INSN_TYPES
    default: return 0;
    }
}

template <typename T>
constexpr bool dp_type_in(uint32_t types) {
    return (types >> dp_dtype_of<T>() & 1) != 0;
}
template <typename T>
constexpr bool dp_is(unsigned dtype) {
    return dp_dtype_of<T>() == dtype;
}

/* A type that takes no part in deduction: scalars convert to the tensor's element type. */
template <typename T>
struct dp_identity {
    using type = T;
};
template <typename T>
using dp_identity_t = typename dp_identity<T>::type;

/* Field by field in place: copying a finished operand would stall on its narrow stores. */
template <typename T>
inline void dp_set_operand(dp_operand &operand, const LocalTensor<T> &tensor, unsigned blk_stride, unsigned rep_stride) {
    operand.addr = const_cast<void *>(static_cast<const void *>(tensor.GetPhyAddr()));
    operand.size_bytes = tensor.GetLength();
    operand.buffer_id = tensor.dp_buffer_id();
    operand.block_stride = static_cast<uint16_t>(blk_stride);
    operand.repeat_stride = static_cast<uint16_t>(rep_stride);
    operand.dtype = dp_dtype_of<T>();
    operand.space = tensor.dp_space();
    operand.past_end = operand.size_bytes == 0;
}

/* For the calls of doppel/count.h. */
template <typename T, typename U>
constexpr uint32_t dp_code_of(dp_op op, unsigned round = 0) {
    return DP_COUNT_CODE(op, dp_dtype_of<T>(), dp_dtype_of<U>(), round);
}

inline dp_insn dp_vector_insn(dp_op op, unsigned n_operands, dp_loc loc) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = static_cast<uint16_t>(op);
    insn.n_operands = static_cast<uint8_t>(n_operands);
    insn.loc = loc;
    return insn;
}
inline void dp_mask_bits(dp_insn &insn, bool set, const uint64_t *mask, uint32_t repeat) {
    insn.mask_kind = set ? DP_MASK_BITS : DP_MASK_REGISTER;
    insn.mask[0] = set ? mask[0] : 0;
    insn.mask[1] = set ? mask[1] : 0;
    insn.repeat = repeat;
}
inline void dp_mask_leading(dp_insn &insn, bool set, uint64_t mask, uint32_t repeat) {
    insn.mask_kind = set ? DP_MASK_LEADING : DP_MASK_REGISTER;
    insn.mask[0] = set ? mask : 0;
    insn.repeat = repeat;
}
/* A negative count arrives as a huge one and is refused by the bounds check. */
inline void dp_mask_count(dp_insn &insn, uint32_t count) {
    insn.mask_kind = DP_MASK_COUNT;
    insn.mask[0] = count;
    insn.repeat = 1;
}

template <typename T, typename U, typename V>
inline dp_insn dp_binary_insn(dp_op op, const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<V> &src1,
                              const BinaryRepeatParams &p, dp_loc loc) {
    dp_insn insn = dp_vector_insn(op, 3, loc);
    dp_set_operand(insn.operand[0], dst, p.dstBlkStride, p.dstRepStride);
    dp_set_operand(insn.operand[1], src0, p.src0BlkStride, p.src0RepStride);
    dp_set_operand(insn.operand[2], src1, p.src1BlkStride, p.src1RepStride);
    return insn;
}
template <typename T, typename U>
inline dp_insn dp_unary_insn(dp_op op, const LocalTensor<T> &dst, const LocalTensor<U> &src, const UnaryRepeatParams &p,
                             dp_loc loc) {
    dp_insn insn = dp_vector_insn(op, 2, loc);
    dp_set_operand(insn.operand[0], dst, p.dstBlkStride, p.dstRepStride);
    dp_set_operand(insn.operand[1], src, p.srcBlkStride, p.srcRepStride);
    return insn;
}

/*
 * The three forms of a three-operand instruction. `check` is a static_assert on T (and U); `head` the template parameters
 * before isSetMask, `U` the type of both sources.
 */
#define DP_VECTOR_BINARY(Name, OP, HEAD, U, CHECK, CHECK_COUNT)                                                        \
    template <HEAD, bool isSetMask = true>                                                                             \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<U> &src0Local, const LocalTensor<U> &src1Local, \
                     const uint64_t mask[], uint32_t repeatTimes, const BinaryRepeatParams &repeatParams,              \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        CHECK;                                                                                                         \
        dp_insn insn = dp_binary_insn(OP, dstLocal, src0Local, src1Local, repeatParams, loc);                          \
        dp_mask_bits(insn, isSetMask, mask, repeatTimes);                                                              \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <HEAD, bool isSetMask = true>                                                                             \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<U> &src0Local, const LocalTensor<U> &src1Local, \
                     uint64_t mask, uint32_t repeatTimes, const BinaryRepeatParams &repeatParams,                      \
                     dp_loc loc = dp_loc::current()) {                                                                 \
        CHECK;                                                                                                         \
        dp_insn insn = dp_binary_insn(OP, dstLocal, src0Local, src1Local, repeatParams, loc);                          \
        dp_mask_leading(insn, isSetMask, mask, repeatTimes);                                                           \
        dp_issue(&insn);                                                                                               \
    }                                                                                                                  \
    template <HEAD>                                                                                                    \
    inline void Name(const LocalTensor<T> &dstLocal, const LocalTensor<U> &src0Local, const LocalTensor<U> &src1Local, \
                     const int32_t &calCount, dp_loc loc = dp_loc::current()) {                                        \
        CHECK_COUNT;                                                                                                   \
        dp_count_binary(dp_code_of<T, U>(OP), dstLocal.dp_local_of(), src0Local.dp_local_of(), src1Local.dp_local_of(), \
                        static_cast<uint32_t>(calCount), loc);                                                         \
    }

/* static_assert that T is offered by the row of insn_types.def. */
#define DP_CHECK_TYPE(Name, OP, T, legal)                                                                              \
    static_assert(dp_type_in<T>(dp_types_of(OP)), Name ": this element type is not offered; use " legal)
#define DP_CHECK_PAIR(Name, condition, legal)                                                                          \
    static_assert(condition, Name ": this pair of element types is not offered; use " legal)

} // namespace AscendC

#endif
