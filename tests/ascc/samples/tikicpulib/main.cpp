#include <cstdio>
#include "tikicpulib.h"
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, uint32_t n) {
    auto *in = (__gm__ float *)x; auto *out = (__gm__ float *)y;
    for (uint32_t i = 0; i < n; i++) out[i] = in[i] * (TILING_KEY_IS(3) ? 3 : 2);
}
int main() {
    float *x = (float *)AscendC::GmAlloc(1024), *y = (float *)AscendC::GmAlloc(1024);
    if (!x || !y) return 2;
    for (int i = 0; i < 256; i++) x[i] = i;
    AscendC::SetKernelMode(KernelMode::AIV_MODE);
    ICPU_SET_TILING_KEY(3);
    ICPU_RUN_KF(scale, 1, (uint8_t *)x, (uint8_t *)y, 256);
    std::printf("%g\n", y[255]);
    const bool good = y[255] == 765 && AscendC::GmGetUserSize((uint64_t)y) == 1024;
    AscendC::GmFree(x);
    AscendC::GmFree(y);
    return good ? 0 : 1;
}
