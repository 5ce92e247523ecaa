/* kernels.c - the loop of resize.h. Compiled once per rung. */
#include "ops/resize/resize.h"
#include "ops/rung.h"

void DP_RUNG(dp_resize_along)(float *out, const float *row, const int32_t *first, const float *weights, size_t taps,
                              size_t n) {
    if (!weights) {
        DP_IVDEP for (size_t o = 0; o < n; o++) out[o] = row[first[o]];
        return;
    }
    DP_IVDEP for (size_t o = 0; o < n; o++) out[o] = weights[o] != 0 ? weights[o] * row[first[o]] : 0;
    for (size_t k = 1; k < taps; k++) {
        const float *w = weights + k * n, *from = row + k;
        DP_IVDEP for (size_t o = 0; o < n; o++) out[o] += w[o] != 0 ? w[o] * from[first[o]] : 0;
    }
}
