#include "kernel_operator.h"
extern "C" __global__ __aicore__ void negate(GM_ADDR x) { *(__gm__ float *)x = -*(__gm__ float *)x; }
