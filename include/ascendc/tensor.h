/*
 * tensor.h - LocalTensor and GlobalTensor: an address, how much lies behind it, and where.
 *
 * Tensors are handles and are copied freely. Every scalar access goes through the instruction door. All instruction
 * wrappers take their operands with dp_operand_of().
 */
#ifndef DOPPEL_ASCENDC_TENSOR_H
#define DOPPEL_ASCENDC_TENSOR_H

#include <new>

#include "ascendc/params.h"
#include "doppel/count.h"
#include "doppel/insn.h"
#include "doppel/kernel_rt.h"
#include "doppel/queue.h"

namespace AscendC {

template <typename T>
class LocalTensor;

/* Address record of a buffer. */
struct TBuffAddr {
    uint32_t dataLen = 0, bufferAddr = 0; /* bytes */
    TBufHandle bufferHandle = nullptr;
    uint8_t logicPos = 0;
    uint8_t *absAddr = nullptr;
};

/* Operand with explicit memory, for wrappers that start from raw pointers. */
inline dp_operand dp_make_operand(const void *addr, uint64_t size_bytes, uint32_t buffer_id, unsigned blk_stride,
                                  unsigned rep_stride, uint8_t dtype, uint8_t space) {
    dp_operand o = {};
    o.addr = const_cast<void *>(addr);
    o.size_bytes = size_bytes > UINT32_MAX ? 0 : static_cast<uint32_t>(size_bytes);
    o.buffer_id = buffer_id;
    o.block_stride = static_cast<uint16_t>(blk_stride);
    o.repeat_stride = static_cast<uint16_t>(rep_stride);
    o.dtype = dtype;
    o.space = space;
    return o;
}

/*
 * Field by field: a copy of the whole struct loads it in wide words, which cannot be forwarded from the narrow stores that have just
 * built it, and so waits for every earlier store, a tile's copy included.
 */
inline void dp_put_operand(dp_operand &to, const dp_operand &from) {
    to.addr = from.addr;
    to.size_bytes = from.size_bytes;
    to.buffer_id = from.buffer_id;
    to.block_stride = from.block_stride;
    to.repeat_stride = from.repeat_stride;
    to.dtype = from.dtype;
    to.space = from.space;
    to.past_end = from.past_end;
}

/* A value's bits in the low bytes of a word, as dp_insn.scalar_bits wants them. */
template <typename T>
inline uint64_t dp_scalar_bits(T value) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a scalar operand is at most 8 plain bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}

template <typename T>
inline T dp_scalar_of_bits(uint64_t bits) {
    T value;
    __builtin_memcpy(static_cast<void *>(&value), &bits, sizeof value);
    return value;
}

/* GetValue. For int4b_t, u.vec.flag0 says which nibble of the byte is meant. */
template <typename P>
inline P dp_scalar_load(dp_operand source, uint64_t index, dp_loc loc) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_SCALAR_LOAD;
    insn.n_operands = 2;
    dp_put_operand(insn.operand[1], source);
    insn.u.vec.flag0 = std::is_same<P, int4b_t>::value && (index & 1);
    insn.loc = loc;
    dp_issue(&insn);
    if constexpr (std::is_same<P, int4b_t>::value)
        return int4b_t(static_cast<int>(insn.result));
    else
        return dp_scalar_of_bits<P>(insn.result);
}

/* SetValue. */
template <typename P>
inline void dp_scalar_store(dp_operand destination, uint64_t index, P value, dp_loc loc) {
    dp_insn insn;
    dp_insn_clear(&insn);
    insn.op = DP_OP_SCALAR_STORE;
    insn.n_operands = 1;
    dp_put_operand(insn.operand[0], destination);
    insn.u.vec.flag0 = std::is_same<P, int4b_t>::value && (index & 1);
    insn.scalar_bits = dp_scalar_bits(value);
    insn.loc = loc;
    dp_issue(&insn);
}

/* `a + b` between tensors: nothing happens until it is assigned to one; then it runs over the destination's GetSize(). */
template <typename T, dp_op Op, int Cmp = -1>
struct dp_tensor_expression {
    const LocalTensor<T> &a;
    const LocalTensor<T> &b;
    dp_loc loc;
};

/* Right side of such an operator. An operator has no default arguments, but the conversion to this has, and so names the line. */
template <typename T>
struct dp_located_tensor {
    const LocalTensor<T> &tensor;
    dp_loc loc;
    dp_located_tensor(const LocalTensor<T> &t, dp_loc l = dp_loc::current()) : tensor(t), loc(l) {}
};

template <typename T>
class LocalTensor {
public:
    using PrimType = dp_prim_t<T>;

    LocalTensor() = default;
    /* The memory of `position` at byte offset `addr`, tile_size elements. */
    LocalTensor(TPosition position, uint32_t addr, uint32_t tile_size, dp_loc loc = dp_loc::current()) {
        set_position(position);
        local_.size_bytes = static_cast<uint32_t>(dp_bytes_of<T>(tile_size));
        local_.addr = dp_local_address(dp_space_of(position), addr, local_.size_bytes, loc);
    }
    /* Doppel's own: a tensor over memory of the core that a queue or an allocator handed out. */
    LocalTensor(void *addr, uint64_t size_bytes, uint32_t buffer_id, TPosition position)
        : local_{addr, static_cast<uint32_t>(size_bytes), buffer_id, static_cast<uint8_t>(dp_space_of(position)),
                 static_cast<uint8_t>(position)} {}

    dp_operand dp_operand_of(unsigned blk_stride = 1, unsigned rep_stride = 8) const {
        dp_operand o = dp_make_operand(local_.addr, local_.size_bytes, local_.buffer_id, blk_stride, rep_stride,
                                       dp_dtype_of<T>(), local_.space);
        o.past_end = local_.size_bytes == 0;
        return o;
    }
    const dp_local *dp_local_of() const { return &local_; }
    uint32_t dp_buffer_id() const { return local_.buffer_id; }
    uint8_t dp_space() const { return local_.space; }

    /* Field by field, as in dp_put_operand. */
    LocalTensor operator[](uint32_t offset) const {
        LocalTensor part;
        uint64_t skip = dp_bytes_of<T>(offset);
        part.local_.addr = static_cast<uint8_t *>(local_.addr) + skip;
        part.local_.size_bytes = skip < local_.size_bytes ? static_cast<uint32_t>(local_.size_bytes - skip) : 0;
        part.local_.buffer_id = local_.buffer_id;
        part.local_.space = local_.space;
        part.local_.position = local_.position;
        part.shape_ = shape_;
        return part;
    }

    PrimType GetValue(uint32_t index, dp_loc loc = dp_loc::current()) const {
        if constexpr (std::is_same<PrimType, int4b_t>::value)
            return dp_scalar_load<PrimType>(element(index), index, loc);
        else
            return dp_scalar_of_bits<PrimType>(dp_local_get(dp_dtype_of<T>(), &local_, index, loc));
    }
    template <typename V>
    void SetValue(uint32_t index, V value, dp_loc loc = dp_loc::current()) const {
        if constexpr (std::is_same<PrimType, int4b_t>::value)
            dp_scalar_store<PrimType>(element(index), index, static_cast<PrimType>(value), loc);
        else
            dp_local_set(dp_dtype_of<T>(), &local_, index, dp_scalar_bits(static_cast<PrimType>(value)), loc);
    }
    /* A plain reference: the access itself is not seen by the checker, only that it may happen. */
    PrimType &operator()(uint32_t offset, dp_loc loc = dp_loc::current()) const {
        static_assert(!std::is_same<PrimType, int4b_t>::value, "a 4-bit element has no address: use GetValue and SetValue");
        dp_operand o = element(offset);
        dp_scalar_reference(&o, sizeof(PrimType), loc);
        return *static_cast<PrimType *>(o.addr);
    }

    PrimType *GetPhyAddr() const { return static_cast<PrimType *>(local_.addr); }
    PrimType *GetPhyAddr(uint32_t offset) const {
        return reinterpret_cast<PrimType *>(static_cast<uint8_t *>(local_.addr) + dp_bytes_of<T>(offset));
    }
    uint32_t GetSize() const { return static_cast<uint32_t>(dp_elements_of<T>(local_.size_bytes)); }
    void SetSize(uint32_t size) { local_.size_bytes = static_cast<uint32_t>(dp_bytes_of<T>(size)); }
    uint32_t GetLength() const { return local_.size_bytes; }
    void SetBufferLen(uint32_t elements) { SetSize(elements); }
    int32_t GetPosition() const { return local_.position; }
    TBufHandle GetBufferHandle() const {
        return reinterpret_cast<TBufHandle>(static_cast<uintptr_t>(local_.buffer_id));
    }

    template <typename C>
    LocalTensor<C> ReinterpretCast() const {
        LocalTensor<C> other(local_.addr, local_.size_bytes, local_.buffer_id, static_cast<TPosition>(local_.position));
        other.dp_set_shape(shape_);
        return other;
    }
    template <typename U>
    void SetAddrWithOffset(LocalTensor<U> &source, uint32_t offset) {
        uint64_t skip = dp_bytes_of<U>(offset);
        local_.addr = reinterpret_cast<uint8_t *>(source.GetPhyAddr()) + skip;
        uint32_t left = source.GetLength();
        local_.size_bytes = skip < left ? static_cast<uint32_t>(left - skip) : 0;
        local_.buffer_id = source.dp_buffer_id();
        set_position(static_cast<TPosition>(source.GetPosition()));
    }
    void SetAddr(const TBuffAddr &record) {
        local_.addr = record.absAddr;
        local_.size_bytes = record.dataLen;
        local_.buffer_id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(record.bufferHandle));
        set_position(static_cast<TPosition>(record.logicPos));
    }
    /* Deprecated: points the tensor at a byte offset of its position's memory. */
    void InitBuffer(uint32_t buffer_offset, uint32_t buffer_bytes, dp_loc loc = dp_loc::current()) {
        local_.addr = dp_local_address(dp_space(), buffer_offset, buffer_bytes, loc);
        local_.size_bytes = buffer_bytes;
        local_.buffer_id = 0;
    }

    void SetUserTag(int32_t tag) { dp_buffer_tag_set(local_.buffer_id, tag); }
    int32_t GetUserTag() const { return dp_buffer_tag(local_.buffer_id); }

    /* Shapes live until the block ends, so that a tensor stays a small handle. */
    void SetShapeInfo(const ShapeInfo &info, dp_loc loc = dp_loc::current()) {
        shape_ = ::new (dp_block_alloc(sizeof(ShapeInfo), loc)) ShapeInfo(info);
    }
    ShapeInfo GetShapeInfo() const { return shape_ ? *shape_ : ShapeInfo(); }
    void dp_set_shape(const ShapeInfo *shape) { shape_ = shape; }

#define DP_TENSOR_OPERATOR(sign, op, cmp)                                                                             \
    dp_tensor_expression<T, op, cmp> operator sign(dp_located_tensor<T> other) const {                                \
        return {*this, other.tensor, other.loc};                                                                      \
    }
    DP_TENSOR_OPERATOR(+, DP_OP_ADD, -1)
    DP_TENSOR_OPERATOR(-, DP_OP_SUB, -1)
    DP_TENSOR_OPERATOR(*, DP_OP_MUL, -1)
    DP_TENSOR_OPERATOR(/, DP_OP_DIV, -1)
    DP_TENSOR_OPERATOR(&, DP_OP_AND, -1)
    DP_TENSOR_OPERATOR(|, DP_OP_OR, -1)
    DP_TENSOR_OPERATOR(<, DP_OP_COMPARE, int(CMPMODE::LT))
    DP_TENSOR_OPERATOR(>, DP_OP_COMPARE, int(CMPMODE::GT))
    DP_TENSOR_OPERATOR(==, DP_OP_COMPARE, int(CMPMODE::EQ))
    DP_TENSOR_OPERATOR(<=, DP_OP_COMPARE, int(CMPMODE::LE))
    DP_TENSOR_OPERATOR(>=, DP_OP_COMPARE, int(CMPMODE::GE))
    DP_TENSOR_OPERATOR(!=, DP_OP_COMPARE, int(CMPMODE::NE))
#undef DP_TENSOR_OPERATOR

    template <typename U, dp_op Op, int Cmp>
    void operator=(const dp_tensor_expression<U, Op, Cmp> &expression) {
        dp_insn insn;
        dp_insn_clear(&insn);
        insn.op = Op;
        insn.mask_kind = DP_MASK_COUNT;
        insn.n_operands = 3;
        insn.repeat = 1;
        insn.mask[0] = GetSize();
        dp_put_operand(insn.operand[0], dp_operand_of());
        dp_put_operand(insn.operand[1], expression.a.dp_operand_of());
        dp_put_operand(insn.operand[2], expression.b.dp_operand_of());
        if (Cmp >= 0)
            insn.u.vec.cmp_mode = static_cast<uint8_t>(Cmp);
        insn.loc = expression.loc;
        dp_issue(&insn);
    }

private:
    void set_position(TPosition position) {
        local_.space = dp_space_of(position);
        local_.position = static_cast<uint8_t>(position);
    }
    dp_operand element(uint64_t index) const {
        uint64_t skip = std::is_same<PrimType, int4b_t>::value ? index / 2 : index * sizeof(PrimType);
        dp_operand o = dp_make_operand(static_cast<uint8_t *>(local_.addr) + skip,
                                       skip < local_.size_bytes ? local_.size_bytes - skip : 0, local_.buffer_id, 1, 8,
                                       dp_dtype_of<T>(), local_.space);
        o.past_end = skip >= local_.size_bytes;
        return o;
    }

    dp_local local_ = {nullptr, 0, 0, dp_space_of(TPosition::VECCALC), static_cast<uint8_t>(TPosition::VECCALC)};
    const ShapeInfo *shape_ = nullptr;
};

template <typename T>
class GlobalTensor {
public:
    using PrimType = dp_prim_t<T>;

    GlobalTensor() = default;

    /* size: elements; 0 = unknown, then only the device allocation bounds accesses. */
    void SetGlobalBuffer(PrimType *buffer, uint64_t size = 0) {
        addr_ = reinterpret_cast<uint8_t *>(buffer);
        size_ = size;
    }

    /* Bytes that remain, 0: unknown or more than an operand can say. */
    uint32_t dp_bytes_left() const {
        return dp_bytes_of<T>(size_) > UINT32_MAX ? 0 : static_cast<uint32_t>(dp_bytes_of<T>(size_));
    }
    dp_operand dp_operand_of(unsigned blk_stride = 1, unsigned rep_stride = 8) const {
        return dp_make_operand(addr_, dp_bytes_of<T>(size_), 0, blk_stride, rep_stride, dp_dtype_of<T>(), DP_SPACE_GM);
    }

    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor part = *this;
        part.addr_ += dp_bytes_of<T>(offset);
        part.size_ = offset < size_ ? size_ - offset : 0;
        return part;
    }
    PrimType GetValue(uint64_t offset, dp_loc loc = dp_loc::current()) const {
        return dp_scalar_load<PrimType>(element(offset), offset, loc);
    }
    void SetValue(uint64_t offset, PrimType value, dp_loc loc = dp_loc::current()) {
        dp_scalar_store<PrimType>(element(offset), offset, value, loc);
    }
    PrimType &operator()(uint64_t offset, dp_loc loc = dp_loc::current()) const {
        static_assert(!std::is_same<PrimType, int4b_t>::value, "a 4-bit element has no address: use GetValue and SetValue");
        dp_operand o = element(offset);
        dp_scalar_reference(&o, sizeof(PrimType), loc);
        return *static_cast<PrimType *>(o.addr);
    }
    PrimType *GetPhyAddr() const { return reinterpret_cast<PrimType *>(addr_); }
    PrimType *GetPhyAddr(uint64_t offset) const {
        return reinterpret_cast<PrimType *>(addr_ + dp_bytes_of<T>(offset));
    }
    uint64_t GetSize() const { return size_; }

    void SetShapeInfo(const ShapeInfo &info, dp_loc loc = dp_loc::current()) {
        shape_ = ::new (dp_block_alloc(sizeof(ShapeInfo), loc)) ShapeInfo(info);
    }
    ShapeInfo GetShapeInfo() const { return shape_ ? *shape_ : ShapeInfo(); }

    /* There is no L2 policy to choose on a CPU: the hint is accepted and has no effect. */
    template <CacheRwMode Rw = CacheRwMode::RW>
    void SetL2CacheHint(CacheMode) {}

private:
    dp_operand element(uint64_t index) const {
        uint64_t skip = std::is_same<PrimType, int4b_t>::value ? index / 2 : index * sizeof(PrimType);
        uint64_t left = index < size_ ? dp_bytes_of<T>(size_ - index) : 0;
        return dp_make_operand(addr_ + skip, left, 0, 1, 8, dp_dtype_of<T>(), DP_SPACE_GM);
    }

    uint8_t *addr_ = nullptr;
    uint64_t size_ = 0;
    const ShapeInfo *shape_ = nullptr;
};

} // namespace AscendC

#endif
