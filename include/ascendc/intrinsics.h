/*
 * intrinsics.h - the bare forms that kernels of 2022 and 2023 use beside the Ascend C functions, and small helpers of that time.
 * Seen in: Ascend/samples, kernel_invocation; opencv_contrib, cannops; public intrinsic pages (copy_gm_to_ubuf: gaps and lengths in
 * 32-byte blocks).
 */
#ifndef DOPPEL_ASCENDC_INTRINSICS_H
#define DOPPEL_ASCENDC_INTRINSICS_H

#include <type_traits>

#include "ascendc/data_copy.h"
#include "ascendc/print.h"

/* Address `offset` bytes into the unified buffer. */
inline void *get_imm(uint64_t offset, dp_loc loc = dp_loc::current()) {
    return dp_local_address(DP_SPACE_UB, offset, 0, loc);
}

inline void dp_copy_bare(void *dst, dp_space dst_space, const void *src, dp_space src_space, uint16_t bursts, uint16_t blocks,
                         uint16_t src_gap, uint16_t dst_gap, dp_loc loc) {
    dp_operand to = {}, from = {};
    to.addr = dst;
    to.space = static_cast<uint8_t>(dst_space);
    to.dtype = DP_U8;
    from.addr = const_cast<void *>(src);
    from.space = static_cast<uint8_t>(src_space);
    from.dtype = DP_U8;
    AscendC::dp_copy_blocks(to, from, AscendC::DataCopyParams(bursts, blocks, src_gap, dst_gap), loc);
}
inline void copy_gm_to_ubuf(void *dst, const void *src, uint8_t, uint16_t bursts, uint16_t blocks, uint16_t src_gap,
                            uint16_t dst_gap, dp_loc loc = dp_loc::current()) {
    dp_copy_bare(dst, DP_SPACE_UB, src, DP_SPACE_GM, bursts, blocks, src_gap, dst_gap, loc);
}
inline void copy_ubuf_to_gm(void *dst, const void *src, uint8_t, uint16_t bursts, uint16_t blocks, uint16_t src_gap,
                            uint16_t dst_gap, dp_loc loc = dp_loc::current()) {
    dp_copy_bare(dst, DP_SPACE_GM, src, DP_SPACE_UB, bursts, blocks, src_gap, dst_gap, loc);
}
/* entire: 0 the cache line at address, 1 the whole cache. */
inline void dcci(const void *address, uint64_t entire, uint64_t = 0, dp_loc loc = dp_loc::current()) {
    dp_operand where = {};
    where.addr = const_cast<void *>(address);
    where.space = DP_SPACE_GM;
    where.dtype = DP_U8;
    AscendC::dp_clean_cache(where, entire != 0, loc);
}

namespace AscendC {

/* Start of this block's share, when every block has `count` elements behind address. */
template <typename T>
inline uint8_t *ParamOffset(uint8_t *address, uint64_t count) {
    return address + dp_block_index() * count * sizeof(T);
}

template <typename A, typename B>
struct IsSameType : std::is_same<A, B> {};

} // namespace AscendC

#ifndef ASSERT
#define ASSERT(...) assert(__VA_ARGS__)
#endif

/* Name of the namespace before it was AscendC; kernels of that time also open it. */
namespace tik2 {
using namespace AscendC;
}

#endif
