/* half in C11: to float, a polynomial, back with rounding; rows of 30 elements copied byte by byte with padding. */
#include "c_api/asc_simd.h"
#include "host_c.h"

enum { ROWS = 7, COLUMNS = 30, PADDED = 32, COUNT = ROWS * PADDED };

__global__ __aicore__ void polynomial(__gm__ half *x, __gm__ half *y) {
    __ubuf__ half h[COUNT];
    __ubuf__ float f[COUNT];
    __ubuf__ float g[COUNT];
    asc_copy_gm2ub_align(h, x, ROWS, COLUMNS * sizeof(half), 0, PADDED - COLUMNS, 0, 0);
    asc_sync();
    asc_half2float(f, h, COUNT);
    asc_sync_vec();
    asc_mul_sync(g, f, f, COUNT);
    asc_muls_sync(g, g, 0.5f, COUNT);
    asc_add_sync(g, g, f, COUNT);
    asc_float2half_rint(h, g, COUNT);
    asc_sync();
    asc_copy_ub2gm_align(y, h, ROWS, COLUMNS * sizeof(half), 0, 0);
    asc_sync();
}

int main(void) {
    static half x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = asc_half((float)(i - 100) * 0.37f);
    host_begin();
    half *dx = device_copy(x, sizeof x), *dy = device_copy(y, sizeof y);
    polynomial<<<1, 0, host_stream>>>(dx, dy);
    device_read(y, dy, sizeof y);
    device_free(dx);
    device_free(dy);
    host_end();
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float v = asc_half_to_float(x[i]);
        half wanted = asc_half(v * v * 0.5f + v);
        if (y[i].bits != wanted.bits) {
            fprintf(stderr, "c_half: element %d is %g instead of %g\n", i, asc_half_to_float(y[i]), asc_half_to_float(wanted));
            return 1;
        }
    }
    return 0;
}
