/*
 * tiling.h - how a kernel reads its tiling data, and the declarations that go with it.
 *
 * Tiling data is read by the scalar unit from GM. The declarations of keys, structs and template parameters are made for
 * the vendor's operator build; a launch with <<<>>> needs none of them, so most expand to nothing.
 */
#ifndef DOPPEL_ASCENDC_TILING_H
#define DOPPEL_ASCENDC_TILING_H

#include <cstddef>

#include "ascendc/tensor.h"

/* What GET_TILING_DATA copies where nobody said REGISTER_TILING_DEFAULT: an incomplete type, whose name is the message. */
struct call_REGISTER_TILING_DEFAULT_before_GET_TILING_DATA;
using dp_tiling_default = call_REGISTER_TILING_DEFAULT_before_GET_TILING_DATA;

#define REGISTER_TILING_DEFAULT(struct_type) using dp_tiling_default [[maybe_unused]] = struct_type
#define REGISTER_TILING_FOR_TILINGKEY(expression, struct_type) static_assert(sizeof(struct_type) > 0, "")
#define REGISTER_NONE_TILING static_assert(true, "")

#define GET_TILING_DATA_WITH_STRUCT(struct_type, name, tiling)                                                        \
    struct_type name;                                                                                                 \
    ::dp_tiling_copy(&name, (const void *)(tiling), sizeof(name), DP_HERE)
#define GET_TILING_DATA(name, tiling) GET_TILING_DATA_WITH_STRUCT(dp_tiling_default, name, tiling)
#define GET_TILING_DATA_MEMBER(struct_type, member, name, tiling)                                                     \
    decltype(struct_type::member) name;                                                                               \
    ::dp_tiling_copy(&name, (const uint8_t *)(tiling) + offsetof(struct_type, member), sizeof(name), DP_HERE)
#define GET_TILING_DATA_PTR_WITH_STRUCT(struct_type, name, tiling)                                                    \
    struct_type *name = (struct_type *)::dp_tiling_pointer((void *)(tiling), sizeof(struct_type), DP_HERE)
#define COPY_TILING_WITH_STRUCT(struct_type, source, name)                                                            \
    struct_type dp_copy_of_##name;                                                                                    \
    ::dp_tiling_copy(&dp_copy_of_##name, (const void *)(source), sizeof(struct_type), DP_HERE);                       \
    const struct_type *name = &dp_copy_of_##name
#define COPY_TILING_WITH_ARRAY(element, count, source, name)                                                          \
    element dp_copy_of_##name[count];                                                                                 \
    ::dp_tiling_copy(dp_copy_of_##name, (const void *)(source), sizeof(dp_copy_of_##name), DP_HERE);                  \
    const element *name = dp_copy_of_##name

#define TILING_KEY_VAR (::dp_tiling_key())
#define TILING_KEY_IS(key) (::dp_tiling_key() == static_cast<uint64_t>(key))
#define TILING_KEY_LIST(...) (::AscendC::dp_tiling_key_in(__VA_ARGS__))

namespace AscendC {
template <class... Keys>
inline bool dp_tiling_key_in(Keys... keys) {
    return ((dp_tiling_key() == static_cast<uint64_t>(keys)) || ...);
}
} // namespace AscendC

/* Build switches of the vendor's operator build. */
#define ENABLE_DETERMINISTIC()
#define ENABLE_PRINTF()
#define ENABLE_PRINTF_DUMP_SIZE()
#define ENABLE_ASSERT()
#define ENABLE_ASSERT_DUMP_SIZE()

/*
 * Template parameters of a kernel and their allowed values: read by the vendor's operator build, which instantiates the
 * kernel for each combination. Here the launch names the template arguments, so the lists are dropped.
 */
#define ASCENDC_TPL_ARGS_DECL(...)
#define ASCENDC_TPL_ARGS_SEL(...)
#define ASCENDC_TPL_SEL(...)
#define ASCENDC_TPL_DTYPE_DECL(...)
#define ASCENDC_TPL_DTYPE_SEL(...)
#define ASCENDC_TPL_DATATYPE_DECL(...)
#define ASCENDC_TPL_DATATYPE_SEL(...)
#define ASCENDC_TPL_FORMAT_DECL(...)
#define ASCENDC_TPL_FORMAT_SEL(...)
#define ASCENDC_TPL_UINT_DECL(...)
#define ASCENDC_TPL_UINT_SEL(...)
#define ASCENDC_TPL_BOOL_DECL(...)
#define ASCENDC_TPL_BOOL_SEL(...)
#define ASCENDC_TPL_KERNEL_TYPE_DECL(...)
#define ASCENDC_TPL_KERNEL_TYPE_SEL(...)
#define ASCENDC_TPL_TILING_STRUCT_SEL(...)

#endif
