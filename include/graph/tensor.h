/*
 * tensor.h - shapes, descriptions and contents of tensors. Shapes have at most 8 dimensions.
 */
#ifndef DOPPEL_GRAPH_TENSOR_H
#define DOPPEL_GRAPH_TENSOR_H

#include <vector>

#include "doppel/ge.h"
#include "graph/ge_error_codes.h"
#include "graph/types.h"

namespace ge {

class Shape {
  public:
    Shape() = default;
    explicit Shape(const std::vector<int64_t> &dims) : dims_(dims) {}
    size_t GetDimNum() const { return dims_.size(); }
    int64_t GetDim(size_t index) const { return index < dims_.size() ? dims_[index] : 0; }
    std::vector<int64_t> GetDims() const { return dims_; }
    graphStatus SetDim(size_t index, int64_t value) {
        if (index >= dims_.size())
            return GRAPH_FAILED;
        dims_[index] = value;
        return GRAPH_SUCCESS;
    }
    /* The number of elements; 0 without dimensions, -1 when one is not known. */
    int64_t GetShapeSize() const {
        int64_t size = dims_.empty() ? 0 : 1;
        for (int64_t dim : dims_) {
            if (dim < 0)
                return -1;
            size *= dim;
        }
        return size;
    }

  private:
    std::vector<int64_t> dims_;
};

class TensorDesc {
  public:
    TensorDesc() = default;
    explicit TensorDesc(const Shape &shape, Format format = FORMAT_ND, DataType type = DT_FLOAT)
        : shape_(shape), format_(format), type_(type) {}
    void Update(const Shape &shape, Format format = FORMAT_ND, DataType type = DT_FLOAT) {
        *this = TensorDesc(shape, format, type);
    }
    Shape GetShape() const { return shape_; }
    void SetShape(const Shape &shape) { shape_ = shape; }
    Format GetFormat() const { return format_; }
    void SetFormat(Format format) { format_ = format; }
    DataType GetDataType() const { return type_; }
    void SetDataType(DataType type) { type_ = type; }

    /* For Doppel's own classes. */
    dp_ge_desc ToC() const {
        dp_ge_desc desc = {type_, format_, -1, {0}};
        if (shape_.GetDimNum() <= DP_GE_DIMS) {
            desc.rank = static_cast<int32_t>(shape_.GetDimNum());
            for (int d = 0; d < desc.rank; d++)
                desc.dims[d] = shape_.GetDim(static_cast<size_t>(d));
        }
        return desc;
    }
    static TensorDesc FromC(const dp_ge_desc &desc) {
        return TensorDesc(Shape(std::vector<int64_t>(desc.dims, desc.dims + (desc.rank > 0 ? desc.rank : 0))),
                          static_cast<Format>(desc.format), static_cast<DataType>(desc.dtype));
    }

  private:
    Shape shape_;
    Format format_ = FORMAT_ND;
    DataType type_ = DT_FLOAT;
};

class Tensor {
  public:
    Tensor() = default;
    explicit Tensor(const TensorDesc &desc) : desc_(desc) {}
    Tensor(const TensorDesc &desc, const std::vector<uint8_t> &data) : desc_(desc), data_(data) {}
    Tensor(const TensorDesc &desc, const uint8_t *data, size_t size) : desc_(desc) { SetData(data, size); }
    graphStatus SetTensorDesc(const TensorDesc &desc) {
        desc_ = desc;
        return GRAPH_SUCCESS;
    }
    TensorDesc GetTensorDesc() const { return desc_; }
    /* Copies. */
    graphStatus SetData(const uint8_t *data, size_t size) {
        if (!data && size)
            return GRAPH_FAILED;
        data_.assign(data, data + size);
        return GRAPH_SUCCESS;
    }
    graphStatus SetData(const std::vector<uint8_t> &data) {
        data_ = data;
        return GRAPH_SUCCESS;
    }
    const uint8_t *GetData() const { return data_.data(); }
    uint8_t *GetData() { return data_.data(); }
    size_t GetSize() const { return data_.size(); }

  private:
    TensorDesc desc_;
    std::vector<uint8_t> data_;
};

} // namespace ge

#endif
