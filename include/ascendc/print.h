/*
 * print.h - printf, assert and DumpTensor inside kernels.
 *
 * What a block prints is kept until the launch is over and written to standard output in block order, at most 1 MiB per
 * block. The same names called on the host print at once. A failed assert stops the block.
 */
#ifndef DOPPEL_ASCENDC_PRINT_H
#define DOPPEL_ASCENDC_PRINT_H

#include <cassert>
#include <cstdio>

#include "ascendc/tensor.h"

/* printf(...) becomes printf(dp_print_tag{}, ...): an overload of the same name, so that std::printf keeps working too. */
struct dp_print_tag {};

/* A value as the C function takes it: the 16-bit floats and enumerations widened, everything else as it is. */
template <typename T>
inline auto dp_print_value(T value) {
    if constexpr (std::is_same<T, half>::value || std::is_same<T, bfloat16_t>::value)
        return static_cast<double>(static_cast<float>(value));
    else if constexpr (std::is_enum<T>::value)
        return static_cast<std::underlying_type_t<T>>(value);
    else if constexpr (std::is_same<T, AscendC::int4b_t>::value)
        return static_cast<int>(value);
    else {
        static_assert(std::is_scalar<T>::value, "printf takes numbers, pointers and strings");
        return value;
    }
}

template <class... A>
inline int printf(dp_print_tag, const char *format, A... args) {
    return dp_print(format, dp_print_value(args)...);
}
namespace std {
using ::printf;
}
#define printf(...) printf(dp_print_tag{}, __VA_ARGS__)

#undef assert
#ifdef NDEBUG
#define assert(...) (static_cast<void>(0))
#else
#define assert(...) dp_assert(#__VA_ARGS__, DP_HERE, __VA_ARGS__)
#endif

template <class Condition, class... A>
inline void dp_assert(const char *text, dp_loc loc, const Condition &condition, const char *format = "", A... args) {
    if (DP_UNLIKELY(!static_cast<bool>(condition)))
        dp_assert_failed(text, loc, format, dp_print_value(args)...);
}

namespace AscendC {

using ::printf;
template <class... A>
inline void PRINTF(const char *format, A... args) {
    dp_print(format, dp_print_value(args)...);
}

#define KERNEL_LOG(level, ...) ::AscendC::PRINTF(__VA_ARGS__)
#define ASCENDC_ASSERT(condition, ...)                                                                                \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            __VA_ARGS__;                                                                                              \
        }                                                                                                             \
    } while (0)

/* Prints desc, the position and dumpSize elements. */
template <typename T>
inline void DumpTensor(const LocalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, dp_loc loc = dp_loc::current()) {
    dp_operand o = tensor.dp_operand_of();
    dp_dump_tensor(&o, static_cast<unsigned>(tensor.GetPosition()), desc, dumpSize, nullptr, 0, loc);
}
template <typename T>
inline void DumpTensor(const GlobalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, dp_loc loc = dp_loc::current()) {
    dp_operand o = tensor.dp_operand_of();
    dp_dump_tensor(&o, 0, desc, dumpSize, nullptr, 0, loc);
}
template <typename T>
inline void DumpTensor(const LocalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo &shapeInfo,
                       dp_loc loc = dp_loc::current()) {
    dp_operand o = tensor.dp_operand_of();
    dp_dump_tensor(&o, static_cast<unsigned>(tensor.GetPosition()), desc, dumpSize, shapeInfo.shape, shapeInfo.shapeDim,
                   loc);
}
template <typename T>
inline void DumpTensor(const GlobalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo &shapeInfo,
                       dp_loc loc = dp_loc::current()) {
    dp_operand o = tensor.dp_operand_of();
    dp_dump_tensor(&o, 0, desc, dumpSize, shapeInfo.shape, shapeInfo.shapeDim, loc);
}
/* The same with a check point number, leaving out the first countOff elements. */
template <template <typename> class Tensor, typename T>
inline void DumpAccChkPoint(const Tensor<T> &tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize,
                            dp_loc loc = dp_loc::current()) {
    DumpTensor(tensor[countOff], index, dumpSize, loc);
}
inline void PrintTimeStamp(uint32_t descId) {
    dp_print("time stamp %u: %lld ns\n", descId, static_cast<long long>(dp_time_ns()));
}

} // namespace AscendC

#endif
