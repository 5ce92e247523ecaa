#include "kernel_operator.h"
extern "C" __global__ __aicore__ void scale(GM_ADDR x, float factor) { *(__gm__ float *)x *= factor * SCALE; }
