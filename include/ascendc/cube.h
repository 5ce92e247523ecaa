/*
 * cube.h - what Doppel does not have yet: the cube unit. Its functions exist so that their use is one clear compile error.
 */
#ifndef DOPPEL_ASCENDC_CUBE_H
#define DOPPEL_ASCENDC_CUBE_H

#include "ascendc/tensor.h"

namespace AscendC {

template <class...>
constexpr bool dp_never = false;

/* The second form takes a configuration among its template arguments. */
#define DP_NEEDS_CUBE(name)                                                                                           \
    template <class... T, class... A>                                                                                 \
    inline void name(A &&...) {                                                                                       \
        static_assert(dp_never<A...>, #name " needs the cube unit, which Doppel does not implement yet");             \
    }                                                                                                                 \
    template <class T, class U, const auto &config, class... A>                                                       \
    inline void name(A &&...) {                                                                                       \
        static_assert(dp_never<A...>, #name " needs the cube unit, which Doppel does not implement yet");             \
    }
DP_NEEDS_CUBE(Mmad)
DP_NEEDS_CUBE(MmadWithSparse)
DP_NEEDS_CUBE(Fixpipe)
DP_NEEDS_CUBE(LoadData)
DP_NEEDS_CUBE(LoadDataWithTranspose)
DP_NEEDS_CUBE(LoadDataWithSparse)
DP_NEEDS_CUBE(LoadDataUnzip)
DP_NEEDS_CUBE(LoadImageToLocal)
DP_NEEDS_CUBE(BroadCastVecToMM)
DP_NEEDS_CUBE(Gemm)
DP_NEEDS_CUBE(Conv2D)
DP_NEEDS_CUBE(SetFixPipeConfig)
DP_NEEDS_CUBE(SetFixpipeNz2ndFlag)
DP_NEEDS_CUBE(SetFixpipePreQuantFlag)
DP_NEEDS_CUBE(SetFixPipeClipRelu)
DP_NEEDS_CUBE(SetFixPipeAddr)
DP_NEEDS_CUBE(SetFmatrix)
DP_NEEDS_CUBE(SetLoadDataBoundary)
DP_NEEDS_CUBE(SetLoadDataRepeat)
DP_NEEDS_CUBE(SetLoadDataPaddingValue)
#undef DP_NEEDS_CUBE

template <HardEvent event, auto memory, bool isVirtual>
inline void HSetFlag(int32_t) {
    static_assert(!sizeof(memory), "HSetFlag needs the cube unit, which Doppel does not implement yet");
}
template <HardEvent event, auto memory, bool isVirtual>
inline void HWaitFlag(int32_t) {
    static_assert(!sizeof(memory), "HWaitFlag needs the cube unit, which Doppel does not implement yet");
}

enum class CO2Layout : uint8_t { NZ, ROW_MAJOR, COLUMN_MAJOR };
struct FixpipeConfig {
    CO2Layout format;
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ}, CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

/* Parameters of the cube's instructions: members and defaults as documented, so that only the call is an error. */
struct MmadParams {
    uint16_t m = 0, n = 0, k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false, enWinogradA = false, enWinogradB = false;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false, cmatrixSource = false, cmatrixInitVal = true;
};
struct LoadData2DParams {
    uint16_t startIndex = 0, dstGap = 0, srcStride = 0;
    bool ifTranspose = false;
    uint8_t repeatTimes = 0, sid = 0, addrMode = 0;
};
using LoadData2dParams = LoadData2DParams;

} // namespace AscendC

#endif
