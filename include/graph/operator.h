/*
 * operator.h - an operator of a graph. Copies are the same operator.
 */
#ifndef DOPPEL_GRAPH_OPERATOR_H
#define DOPPEL_GRAPH_OPERATOR_H

#include <string>
#include <utility>
#include <vector>

#include "doppel/ge.h"
#include "graph/ascend_string.h"
#include "graph/tensor.h"

namespace ge {

class Operator {
  public:
    using OpInt = int64_t;
    using OpFloat = float;
    using OpBool = bool;
    using OpString = std::string;
    using OpTensor = Tensor;
    using OpType = DataType;
    using OpListInt = std::vector<int64_t>;
    using OpListFloat = std::vector<float>;

    Operator() : op_(nullptr) {}
    Operator(const char *name, const char *type) : op_(dp_ge_operator_new(name, type)) {}
    Operator(const std::string &name, const std::string &type) : Operator(name.c_str(), type.c_str()) {}
    Operator(const AscendString &name, const AscendString &type) : Operator(name.GetString(), type.GetString()) {}
    Operator(const Operator &other) : op_(dp_ge_operator_hold(other.op_)) {}
    Operator(Operator &&other) noexcept : op_(other.op_) { other.op_ = nullptr; }
    Operator &operator=(Operator other) noexcept {
        std::swap(op_, other.op_);
        return *this;
    }
    ~Operator() { dp_ge_operator_release(op_); }

    bool IsEmpty() const { return !op_; }
    graphStatus GetName(AscendString &name) const {
        name = AscendString(dp_ge_operator_name(op_));
        return GRAPH_SUCCESS;
    }
    graphStatus GetOpType(AscendString &type) const {
        type = AscendString(dp_ge_operator_type(op_));
        return GRAPH_SUCCESS;
    }
    std::string GetName() const { return dp_ge_operator_name(op_); }
    std::string GetOpType() const { return dp_ge_operator_type(op_); }

    Operator &SetInput(const char *input, const Operator &from, const char *output = "") {
        dp_ge_operator_link(op_, input, -1, from.op_, output);
        return *this;
    }
    graphStatus UpdateInputDesc(const char *name, const TensorDesc &desc) { return UpdateOutputDesc(name, desc); }
    graphStatus UpdateOutputDesc(const char *name, const TensorDesc &desc) {
        dp_ge_desc c = desc.ToC();
        dp_ge_operator_describe(op_, name, &c);
        return op_ ? GRAPH_SUCCESS : GRAPH_FAILED;
    }
    TensorDesc GetOutputDescByName(const char *name) const {
        dp_ge_desc desc;
        return dp_ge_operator_described(op_, name, &desc) ? TensorDesc::FromC(desc) : TensorDesc();
    }
    TensorDesc GetInputDescByName(const char *name) const { return GetOutputDescByName(name); }

    Operator &SetAttr(const char *name, int64_t value) { return dp_ge_operator_integer(op_, name, value), *this; }
    Operator &SetAttr(const char *name, int32_t value) { return SetAttr(name, static_cast<int64_t>(value)); }
    Operator &SetAttr(const char *name, bool value) { return SetAttr(name, static_cast<int64_t>(value)); }
    Operator &SetAttr(const char *name, float value) {
        return dp_ge_operator_real(op_, name, static_cast<double>(value)), *this;
    }
    Operator &SetAttr(const char *name, double value) { return dp_ge_operator_real(op_, name, value), *this; }
    Operator &SetAttr(const char *name, const char *value) { return dp_ge_operator_text(op_, name, value), *this; }
    Operator &SetAttr(const char *name, const std::string &value) { return SetAttr(name, value.c_str()); }
    Operator &SetAttr(const char *name, const AscendString &value) { return SetAttr(name, value.GetString()); }
    Operator &SetAttr(const char *name, const std::vector<int64_t> &value) {
        return dp_ge_operator_integers(op_, name, value.data(), value.size()), *this;
    }
    Operator &SetAttr(const char *name, const std::vector<float> &value) {
        return dp_ge_operator_reals(op_, name, value.data(), value.size()), *this;
    }
    Operator &SetAttr(const char *name, DataType value) { return SetAttr(name, static_cast<int64_t>(value)); }
    Operator &SetAttr(const char *name, const Tensor &value) {
        dp_ge_desc desc = value.GetTensorDesc().ToC();
        return dp_ge_operator_tensor(op_, name, &desc, value.GetData(), value.GetSize()), *this;
    }

    /* For Doppel's own classes; borrowed. */
    dp_ge_operator *ToC() const { return op_; }

  private:
    dp_ge_operator *op_;
};

} // namespace ge

#endif
