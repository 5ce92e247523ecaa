/*
 * tensor_list.h - dynamic input lists in GM (format: 64-bit words).
 *
 * Word 0: byte offset of the table of data pointers. Then one record per tensor: dims (low half) and index (high half), then
 * the dims; all records have the size of the first. A list without shapes has dims 0 and 0xffffffff in the high half of its
 * only record's second word; then GetDesc is an error.
 */
#ifndef DOPPEL_ASCENDC_TENSOR_LIST_H
#define DOPPEL_ASCENDC_TENSOR_LIST_H

#include "ascendc/tensor.h"

namespace AscendC {

class ListTensorDesc;

template <class T>
class TensorDesc {
public:
    /* Room for the dims of the tensor, filled by ListTensorDesc::GetDesc. */
    void SetShapeAddr(uint64_t *shapePtr) { shape_ = shapePtr; }
    uint64_t GetDim() const { return dim_; }
    uint64_t GetIndex() const { return index_; }
    uint64_t GetShape(uint32_t offset, dp_loc loc = dp_loc::current()) const {
        if (!shape_ || offset >= dim_)
            dp_list_fault(shape_ ? "GetShape: the dimension number is beyond the tensor's dimensions"
                                 : "GetShape: call SetShapeAddr before GetDesc: it says where the dims are copied",
                          offset, dim_, loc);
        return shape_[offset];
    }
    T *GetDataPtr() const { return data_; }
    GlobalTensor<T> GetDataObj() const {
        GlobalTensor<T> tensor;
        uint64_t size = dim_ ? 1 : 0;
        for (uint64_t i = 0; shape_ && i < dim_; i++)
            size *= shape_[i];
        tensor.SetGlobalBuffer(data_, shape_ ? size : 0);
        return tensor;
    }

private:
    friend class ListTensorDesc;
    uint64_t *shape_ = nullptr;
    uint64_t dim_ = 0, index_ = 0;
    T *data_ = nullptr;
};

class ListTensorDesc {
public:
    ListTensorDesc() = default;
    explicit ListTensorDesc(void *data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff,
                            dp_loc loc = dp_loc::current()) {
        Init(data, length, shapeSize, loc);
    }

    void Init(void *data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff,
              dp_loc loc = dp_loc::current()) {
        words_ = static_cast<uint64_t *>(data);
        offset_ = word(0, loc);
        uint64_t first = word(1, loc);
        dims_ = static_cast<uint32_t>(first);
        if (offset_ < 16 || offset_ % 8)
            dp_list_fault("ListTensorDesc: word 0 must be the byte offset of the pointer table, a multiple of 8 from 16 on",
                          offset_, 16, loc);
        uint32_t records = static_cast<uint32_t>((offset_ / 8 - 1) / (1 + dims_));
        has_shapes_ = !(dims_ == 0 && offset_ == 24 && static_cast<uint32_t>(word(2, loc)) == 0xffffffff);
        count_ = static_cast<uint32_t>(first >> 32);
        if (count_ == 0)
            count_ = static_cast<uint32_t>(word(1 + static_cast<uint64_t>(records - 1) * (1 + dims_), loc) >> 32) + 1;
        if (length != 0xffffffff && length != offset_ + 8ull * count_)
            dp_list_fault("ListTensorDesc: length does not equal the pointer table's offset plus 8 bytes per tensor", length,
                          offset_ + 8ull * count_, loc);
        if (shapeSize != 0xffffffff && shapeSize != count_)
            dp_list_fault("ListTensorDesc: shapeSize does not equal the number of tensors", shapeSize, count_, loc);
    }

    uint32_t GetSize() const { return count_; }

    template <class T>
    T *GetDataPtr(uint32_t index, dp_loc loc = dp_loc::current()) const {
        check(index, loc);
        return reinterpret_cast<T *>(static_cast<uintptr_t>(word(offset_ / 8 + index, loc)));
    }

    template <class T>
    void GetDesc(TensorDesc<T> &desc, uint32_t index, dp_loc loc = dp_loc::current()) const {
        check(index, loc);
        if (!has_shapes_)
            dp_list_fault("GetDesc: the list carries no shapes; use GetDataPtr", index, 0, loc);
        uint64_t at = 1 + static_cast<uint64_t>(index) * (1 + dims_);
        uint64_t head = word(at, loc);
        desc.dim_ = static_cast<uint32_t>(head);
        desc.index_ = index;
        if (desc.dim_ > dims_)
            dp_list_fault("GetDesc: a record has more dims than the first record of the list", desc.dim_, dims_, loc);
        for (uint64_t d = 0; desc.shape_ && d < desc.dim_; d++)
            desc.shape_[d] = word(at + 1 + d, loc);
        desc.data_ = GetDataPtr<T>(index, loc);
    }

private:
    uint64_t word(uint64_t index, dp_loc loc) const {
        return dp_scalar_load<uint64_t>(dp_make_operand(words_ + index, 0, 0, 1, 8, DP_U64, DP_SPACE_GM), index, loc);
    }
    void check(uint32_t index, dp_loc loc) const {
        if (index >= count_)
            dp_list_fault("ListTensorDesc: the index is beyond the tensors of the list", index, count_, loc);
    }

    uint64_t *words_ = nullptr;
    uint64_t offset_ = 0;
    uint32_t dims_ = 0, count_ = 0;
    bool has_shapes_ = false;
};

} // namespace AscendC

#endif
