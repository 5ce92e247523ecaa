/*
 * types.h - everything the kernel face knows about types: scalar classes, enumerations, qualifiers and the mapping from C++
 * types to element types and from logical positions to memories.
 */
#ifndef DOPPEL_ASCENDC_TYPES_H
#define DOPPEL_ASCENDC_TYPES_H

#include "ascendc/enums.h"
#include "ascendc/half.h"
#include "ascendc/qualifiers.h"

namespace AscendC {

/* Marks a tensor without shape storage: LocalTensor<TensorTrait<half>> is a LocalTensor of half. */
template <typename T>
struct TensorTrait {
    using LiteType = T;
};

template <typename T>
struct dp_prim {
    using type = T;
};
template <typename T>
struct dp_prim<TensorTrait<T>> {
    using type = T;
};
/* Element type behind T, which is a type or a TensorTrait of one. */
template <typename T>
using dp_prim_t = typename dp_prim<T>::type;

/* dp_dtype of a C++ element type; types without one do not compile. */
template <typename T>
constexpr uint8_t dp_dtype_of() {
    using P = std::remove_cv_t<dp_prim_t<T>>;
    if constexpr (std::is_same<P, half>::value)
        return DP_F16;
    else if constexpr (std::is_same<P, bfloat16_t>::value)
        return DP_BF16;
    else if constexpr (std::is_same<P, int4b_t>::value)
        return DP_I4;
    else if constexpr (std::is_same<P, float>::value)
        return DP_F32;
    else if constexpr (std::is_same<P, double>::value)
        return DP_F64;
    else if constexpr (std::is_integral<P>::value && std::is_signed<P>::value && !std::is_same<P, bool>::value)
        return sizeof(P) == 1 ? DP_I8 : sizeof(P) == 2 ? DP_I16 : sizeof(P) == 4 ? DP_I32 : DP_I64;
    else if constexpr (std::is_integral<P>::value)
        return sizeof(P) == 1 ? DP_U8 : sizeof(P) == 2 ? DP_U16 : sizeof(P) == 4 ? DP_U32 : DP_U64;
    else {
        static_assert(!sizeof(P), "this type cannot be an element of a tensor: use an integer, half, bfloat16_t, float, "
                                  "double or int4b_t");
        return DP_DTYPE_COUNT;
    }
}

/* Bytes of n elements (two int4b_t share a byte). */
template <typename T>
constexpr uint64_t dp_bytes_of(uint64_t n) {
    if constexpr (std::is_same<std::remove_cv_t<dp_prim_t<T>>, int4b_t>::value)
        return (n + 1) / 2;
    else
        return n * sizeof(dp_prim_t<T>);
}

/* Elements that fit in that many bytes. */
template <typename T>
constexpr uint64_t dp_elements_of(uint64_t bytes) {
    if constexpr (std::is_same<std::remove_cv_t<dp_prim_t<T>>, int4b_t>::value)
        return bytes * 2;
    else
        return bytes / sizeof(dp_prim_t<T>);
}

/* Memory behind a logical position (kernel-semantics: positions of dav-2201). */
constexpr dp_space dp_space_of(TPosition position) {
    switch (position) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::SHM:
    case TPosition::TSCM: return DP_SPACE_L1;
    case TPosition::A2: return DP_SPACE_L0A;
    case TPosition::B2: return DP_SPACE_L0B;
    case TPosition::C2: return DP_SPACE_BT;
    case TPosition::CO1: return DP_SPACE_L0C;
    case TPosition::C2PIPE2GM:
    case TPosition::C2PIPE2LOCAL: return DP_SPACE_FB;
    case TPosition::VECIN:
    case TPosition::VECOUT:
    case TPosition::VECCALC: return DP_SPACE_UB;
    default: return DP_SPACE_GM;
    }
}

} // namespace AscendC

#endif
