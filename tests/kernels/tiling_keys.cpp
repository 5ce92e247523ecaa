/* One kernel for several tiling keys, run block by block from a host program, with a tiling struct declared field by field. */
#include "tikicpulib.h"
#include "register/tilingdata_base.h"

#include <cstdio>
#include <cstring>

using namespace AscendC;

BEGIN_TILING_DATA_DEF(KeyTiling)
TILING_DATA_FIELD_DEF(uint32_t, length);
TILING_DATA_FIELD_DEF_ARR(int32_t, 2, operands);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(KeyedOp, KeyTiling)

extern "C" __global__ __aicore__ void keyed(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tilingGm) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(KeyTiling, tiling, tilingGm);
    GM_ADDR user = GetUserWorkspace(workspace);
    if (user == nullptr)
        return;
    TPipe pipe;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> through;
    pipe.InitBuffer(through, 1, tiling.length * sizeof(int32_t));
    GlobalTensor<int32_t> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ int32_t *)x + GetBlockIdx() * tiling.length, tiling.length);
    yGm.SetGlobalBuffer((__gm__ int32_t *)y + GetBlockIdx() * tiling.length, tiling.length);
    LocalTensor<int32_t> a = through.AllocTensor<int32_t>();
    DataCopy(a, xGm, tiling.length);
    through.EnQue<TPosition::GM, TPosition::VECIN>(a);
    a = through.DeQue<TPosition::GM, TPosition::VECIN, int32_t>();
    if (TILING_KEY_IS(10)) {
        Adds(a, a, tiling.operands[0], tiling.length);
    } else if (TILING_KEY_IS(20)) {
        Muls(a, a, tiling.operands[1], tiling.length);
    } else if (TILING_KEY_LIST(30, 31)) {
        Maxs(a, a, 0, tiling.length);
    }
    through.EnQue<TPosition::VECOUT, TPosition::GM>(a);
    a = through.DeQue<TPosition::VECOUT, TPosition::GM, int32_t>();
    DataCopy(yGm, a, tiling.length);
    through.FreeTensor(a);
}

int main() {
    const uint32_t blocks = 3, length = 64;
    KeyTiling tiling;
    const int32_t operands[2] = {7, -3};
    tiling.set_length(length);
    tiling.set_operands(operands);
    SetKernelMode(KernelMode::AIV_MODE);
    auto *x = static_cast<uint8_t *>(GmAlloc(blocks * length * sizeof(int32_t)));
    auto *y = static_cast<uint8_t *>(GmAlloc(blocks * length * sizeof(int32_t)));
    auto *workspace = static_cast<uint8_t *>(GmAlloc(1024));
    auto *tilingGm = static_cast<uint8_t *>(GmAlloc(tiling.GetDataSize()));
    if (!x || !y || !workspace || !tilingGm)
        return 1;
    tiling.SaveToBuffer(tilingGm, tiling.GetDataSize());
    int bad = 0;
    for (uint64_t key : {10, 20, 31, 99}) {
        auto *in = reinterpret_cast<int32_t *>(x), *out = reinterpret_cast<int32_t *>(y);
        for (uint32_t i = 0; i < blocks * length; i++)
            in[i] = static_cast<int32_t>(i) - 90;
        std::memset(out, 0x55, blocks * length * sizeof(int32_t));
        ICPU_SET_TILING_KEY(key);
        ICPU_RUN_KF(keyed, blocks, x, y, workspace, tilingGm);
        for (uint32_t i = 0; i < blocks * length; i++) {
            int32_t v = in[i], wanted = key == 10 ? v + 7 : key == 20 ? v * -3 : key == 31 ? (v > 0 ? v : 0) : v;
            if (out[i] != wanted && !bad++)
                std::fprintf(stderr, "tiling key %lu: element %u is %d instead of %d\n", static_cast<unsigned long>(key), i,
                             out[i], wanted);
        }
    }
    GmFree(x);
    GmFree(y);
    GmFree(workspace);
    GmFree(tilingGm);
    return bad != 0;
}
