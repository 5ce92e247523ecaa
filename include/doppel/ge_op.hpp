/*
 * ge_op.hpp - from which the classes of operators in op_proto/built-in/inc/all_ops.h are made: one macro per input,
 * output, attribute.
 */
#ifndef DOPPEL_GE_OP_HPP
#define DOPPEL_GE_OP_HPP

#include "graph/operator.h"

#define DP_GE_CLASS(type)                                                                                              \
  public:                                                                                                              \
    explicit type(const char *name = #type) : ge::Operator(name, #type) {}                                             \
    explicit type(const std::string &name) : type(name.c_str()) {}                                                     \
    explicit type(const ge::AscendString &name) : type(name.GetString()) {}

#define DP_GE_INPUT(type, input)                                                                                       \
    type &set_input_##input(const ge::Operator &from) {                                                                \
        return set_input_##input##_by_name(from, "");                                                                  \
    }                                                                                                                  \
    type &set_input_##input(const ge::Operator &from, const char *output) {                                            \
        return set_input_##input##_by_name(from, output);                                                              \
    }                                                                                                                  \
    type &set_input_##input##_by_name(const ge::Operator &from, const char *output) {                                  \
        dp_ge_operator_link(ToC(), #input, -1, from.ToC(), output);                                                    \
        return *this;                                                                                                  \
    }                                                                                                                  \
    ge::graphStatus update_input_desc_##input(const ge::TensorDesc &desc) {                                            \
        return UpdateInputDesc(#input, desc);                                                                          \
    }                                                                                                                  \
    ge::TensorDesc get_input_desc_##input() const {                                                                    \
        return GetInputDescByName(#input);                                                                             \
    }

#define DP_GE_INPUTS(type, input)                                                                                      \
    type &create_dynamic_input_##input(uint32_t) {                                                                     \
        return *this;                                                                                                  \
    }                                                                                                                  \
    type &set_dynamic_input_##input(uint32_t place, const ge::Operator &from, const char *output = "") {               \
        dp_ge_operator_link(ToC(), #input, static_cast<int>(place), from.ToC(), output);                               \
        return *this;                                                                                                  \
    }                                                                                                                  \
    ge::graphStatus update_dynamic_input_desc_##input(uint32_t place, const ge::TensorDesc &desc) {                    \
        return UpdateInputDesc((#input + std::to_string(place)).c_str(), desc);                                        \
    }

#define DP_GE_OUTPUT(type, output)                                                                                     \
    ge::graphStatus update_output_desc_##output(const ge::TensorDesc &desc) {                                          \
        return UpdateOutputDesc(#output, desc);                                                                        \
    }                                                                                                                  \
    ge::TensorDesc get_output_desc_##output() const {                                                                  \
        return GetOutputDescByName(#output);                                                                           \
    }

#define DP_GE_OUTPUTS(type, output)                                                                                    \
    type &create_dynamic_output_##output(uint32_t count) {                                                             \
        dp_ge_operator_count(ToC(), static_cast<int>(count));                                                          \
        return *this;                                                                                                  \
    }                                                                                                                  \
    ge::graphStatus update_dynamic_output_desc_##output(uint32_t place, const ge::TensorDesc &desc) {                  \
        return UpdateOutputDesc((#output + std::to_string(place)).c_str(), desc);                                      \
    }

/* `kind` is the type of the argument. */
#define DP_GE_ATTRIBUTE(type, attribute, kind)                                                                         \
    type &set_attr_##attribute(kind value) {                                                                           \
        return SetAttr(#attribute, value), *this;                                                                      \
    }

/* A text, in any form. */
#define DP_GE_TEXT(type, attribute)                                                                                    \
    DP_GE_ATTRIBUTE(type, attribute, const char *)                                                                     \
    DP_GE_ATTRIBUTE(type, attribute, const std::string &)                                                              \
    DP_GE_ATTRIBUTE(type, attribute, const ge::AscendString &)

#endif
