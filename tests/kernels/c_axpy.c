/* y = a * x + y in C11: a kernel on plain pointers and host code in one file, tiles of 1024 elements. */
#include "c_api/asc_simd.h"
#include "host_c.h"

enum { TILE = 1024, TILES = 6, BLOCKS = 3 };

__global__ __aicore__ void axpy(__gm__ float *x, __gm__ float *y, float a) {
    __ubuf__ float px[TILE];
    __ubuf__ float py[TILE];
    for (int64_t t = asc_get_block_idx(); t < TILES; t += asc_get_block_num()) {
        asc_copy_gm2ub(px, x + t * TILE, TILE * sizeof(float));
        asc_copy_gm2ub(py, y + t * TILE, TILE * sizeof(float));
        asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
        asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
        asc_muls(px, px, a, TILE);
        asc_sync_vec();
        asc_add(py, px, py, TILE);
        asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID0);
        asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID0);
        asc_copy_ub2gm(y + t * TILE, py, TILE * sizeof(float));
        asc_sync();
    }
}

int main(void) {
    static float x[TILE * TILES], y[TILE * TILES], wanted[TILE * TILES];
    for (int i = 0; i < TILE * TILES; i++) {
        x[i] = (float)(i % 777) - 300;
        y[i] = (float)(i % 55);
        wanted[i] = x[i] * 0.25f + y[i];
    }
    host_begin();
    float *dx = device_copy(x, sizeof x), *dy = device_copy(y, sizeof y);
    axpy<<<BLOCKS, 0, host_stream>>>(dx, dy, 0.25f);
    device_read(y, dy, sizeof y);
    device_free(dx);
    device_free(dy);
    host_end();
    for (int i = 0; i < TILE * TILES; i++) {
        if (y[i] != wanted[i]) {
            fprintf(stderr, "c_axpy: element %d is %g instead of %g\n", i, y[i], wanted[i]);
            return 1;
        }
    }
    return 0;
}
