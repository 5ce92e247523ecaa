/*
 * A matrix product through aclnn, in plain C: y = x * w^T, as a linear layer computes it.
 *
 *   cc aclnn_matmul.c $(pkg-config --cflags --libs doppel) -o aclnn_matmul && ./aclnn_matmul
 *
 * The weight lies by rows of its outputs, [n, k]; the operator sees it as [k, n] through strides, and nothing is
 * copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_matmul.h"

enum { M = 256, N = 1024, K = 768, RUNS = 20 };

static void check(int code, const char *what) {
    if (code == 0)
        return;
    const char *why = aclGetRecentErrMsg();
    fprintf(stderr, "%s failed with %d: %s\n", what, code, why ? why : "no reason given");
    exit(1);
}

static void *on_device(const float *values, size_t count) {
    void *data;
    check(aclrtMalloc(&data, count * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    if (values)
        check(aclrtMemcpy(data, count * sizeof(float), values, count * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE),
              "aclrtMemcpy");
    return data;
}

static aclTensor *matrix(void *data, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    int64_t dims[] = {rows, columns}, strides[] = {row_stride, column_stride}, storage = rows * columns;
    aclTensor *t = aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, &storage, 1, data);
    if (!t)
        check(1, "aclCreateTensor");
    return t;
}

/* Every operator has two calls: one checks and says how much workspace it wants, one queues the work. */
static void multiply(aclTensor *x, aclTensor *w, aclTensor *y, aclrtStream stream) {
    uint64_t bytes;
    aclOpExecutor *executor;
    void *workspace = NULL;
    check(aclnnMatmulGetWorkspaceSize(x, w, y, 0, &bytes, &executor), "aclnnMatmulGetWorkspaceSize");
    if (bytes)
        check(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclnnMatmul(workspace, bytes, executor, stream), "aclnnMatmul");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    if (workspace)
        aclrtFree(workspace);
}

static double seconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
    static float x[M * K], w[N * K], y[M * N];
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(rand() % 2001 - 1000) / 1000;
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(rand() % 2001 - 1000) / 1000;

    aclrtStream stream;
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    void *dx = on_device(x, M * K), *dw = on_device(w, N * K), *dy = on_device(NULL, M * N);
    aclTensor *tx = matrix(dx, M, K, K, 1), *tw = matrix(dw, K, N, 1, K), *ty = matrix(dy, M, N, N, 1);

    double best = 1e9;
    for (int i = 0; i < RUNS; i++) {
        double begin = seconds();
        multiply(tx, tw, ty, stream);
        double took = seconds() - begin;
        best = took < best ? took : best;
    }
    check(aclrtMemcpy(y, sizeof y, dy, sizeof y, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");

    double worst = 0;
    for (int i = 0; i < M; i++)
        for (int j = i % 7; j < N; j += 7) {
            double sum = 0;
            for (int p = 0; p < K; p++)
                sum += (double)x[i * K + p] * (double)w[j * K + p];
            double error = sum - (double)y[i * N + j];
            error = error < 0 ? -error : error;
            worst = error > worst ? error : worst;
        }
    printf("%d x %d x %d: %.0f us, %.1f GFLOP/s, largest error %.1e\n", M, N, K, best * 1e6, 2e-9 * M * N * K / best,
           worst);

    /* What a mistake looks like: the weight without its transposition. */
    aclTensor *wrong = matrix(dw, N, K, K, 1);
    uint64_t bytes;
    aclOpExecutor *executor;
    int code = aclnnMatmulGetWorkspaceSize(tx, wrong, ty, 0, &bytes, &executor);
    printf("refused with %d: %s\n", code, aclGetRecentErrMsg());

    aclTensor *tensors[] = {tx, tw, ty, wrong};
    for (int i = 0; i < 4; i++)
        aclDestroyTensor(tensors[i]);
    aclrtFree(dx);
    aclrtFree(dw);
    aclrtFree(dy);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    return worst < 1e-3 && code != 0 ? 0 : 1;
}
