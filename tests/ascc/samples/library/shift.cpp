#include "kernel_operator.h"
#include "shift.h"
extern "C" __global__ __aicore__ void shift(GM_ADDR x, GM_ADDR tiling) { *(__gm__ float *)x += SHIFT + *(__gm__ float *)tiling; }
