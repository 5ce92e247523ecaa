/*
 * saxpy in plain C11: the kernel on pointers (c_api/asc_simd.h), the host on AscendCL, no C++ anywhere.
 *
 *   ascc saxpy.c -g -O2 -o saxpy && ./saxpy
 *
 * y = a x + y over n floats. Two tiles are in flight: event id t % 2 belongs to buffer t % 2.
 */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "c_api/asc_simd.h"

enum { TILE = 2048 };

__global__ __aicore__ void saxpy(__gm__ float *y, __gm__ const float *x, float a, unsigned n) {
    __ubuf__ float xs[2][TILE];
    __ubuf__ float ys[2][TILE];
    unsigned tiles = n / TILE, step = asc_get_block_num(), turn = 0;
    for (unsigned t = asc_get_block_idx(); t < tiles; t += step, turn++) {
        unsigned b = turn % 2;
        if (turn >= 2) /* the result that was here has been stored */
            asc_sync_wait(PIPE_MTE3, PIPE_MTE2, b);
        asc_copy_gm2ub(xs[b], x + t * TILE, TILE * sizeof(float));
        asc_copy_gm2ub(ys[b], y + t * TILE, TILE * sizeof(float));
        asc_sync_notify(PIPE_MTE2, PIPE_V, b);
        asc_sync_wait(PIPE_MTE2, PIPE_V, b);
        asc_muls(xs[b], xs[b], a, TILE);
        asc_sync_vec();
        asc_add(ys[b], ys[b], xs[b], TILE);
        asc_sync_notify(PIPE_V, PIPE_MTE3, b);
        asc_sync_wait(PIPE_V, PIPE_MTE3, b);
        asc_copy_ub2gm(y + t * TILE, ys[b], TILE * sizeof(float));
        asc_sync_notify(PIPE_MTE3, PIPE_MTE2, b);
    }
    for (unsigned last = turn < 2 ? 0 : turn - 2; last < turn; last++)
        asc_sync_wait(PIPE_MTE3, PIPE_MTE2, last % 2);
}

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != ACL_SUCCESS) {                                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, aclGetRecentErrMsg());                       \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(void) {
    const unsigned n = 64 * TILE;
    const size_t bytes = n * sizeof(float);
    float *x = malloc(bytes), *y = malloc(bytes), *result = malloc(bytes);
    if (!x || !y || !result)
        return 1;
    for (unsigned i = 0; i < n; i++) {
        x[i] = (float)(i % 97) - 48.0f;
        y[i] = (float)(i % 31);
    }
    void *dx = NULL, *dy = NULL;
    aclrtStream stream = NULL;
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclrtMalloc(&dx, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&dy, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(dx, bytes, x, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(aclrtMemcpy(dy, bytes, y, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    saxpy<<<8, 0, stream>>>((float *)dy, (const float *)dx, 0.5f, n);
    CHECK(aclrtSynchronizeStream(stream));
    CHECK(aclrtMemcpy(result, bytes, dy, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    unsigned wrong = 0;
    for (unsigned i = 0; i < n; i++)
        wrong += result[i] != 0.5f * x[i] + y[i];
    printf("saxpy: %u of %u values wrong\n", wrong, n);
    CHECK(aclrtFree(dx));
    CHECK(aclrtFree(dy));
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    free(x);
    free(y);
    free(result);
    return wrong != 0;
}
