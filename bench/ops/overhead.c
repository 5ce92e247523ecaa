/*
 * overhead.c - what one small operator costs through its two calls: aclnnAdd of 256 floats, queued 1000 at a time,
 * against the same addition as a plain loop, and against an empty host function in the stream.
 */
#include <stdio.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

enum { N = 256, QUEUED = 1000, ROUNDS = 40 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void empty(void *data) {
    (void)data;
}

static void plain_add(float *out, const float *a, const float *b) {
    for (int i = 0; i < N; i++)
        out[i] = a[i] + b[i];
}

int main(void) {
    int64_t dims[] = {N};
    float one = 1, *data[3];
    aclrtStream stream;
    if (aclInit(NULL) || aclrtSetDevice(0) || aclrtCreateStream(&stream))
        return 1;
    aclTensor *t[3];
    for (int i = 0; i < 3; i++) {
        if (aclrtMalloc((void **)&data[i], sizeof(float) * N, ACL_MEM_MALLOC_HUGE_FIRST))
            return 1;
        for (int k = 0; k < N; k++)
            data[i][k] = (float)k;
        t[i] = aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, data[i]);
    }
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    double best_calls = 1e9, best_total = 1e9, best_empty = 1e9, best_plain = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_us();
        for (int i = 0; i < QUEUED; i++) {
            uint64_t size;
            aclOpExecutor *executor;
            if (aclnnAddGetWorkspaceSize(t[0], t[1], alpha, t[2], &size, &executor) ||
                aclnnAdd(NULL, size, executor, stream)) {
                fprintf(stderr, "%s\n", aclGetRecentErrMsg());
                return 1;
            }
        }
        double queued = now_us();
        aclrtSynchronizeStream(stream);
        double done = now_us();
        for (int i = 0; i < QUEUED; i++)
            aclrtLaunchHostFunc(stream, empty, NULL);
        aclrtSynchronizeStream(stream);
        double emptied = now_us();
        for (int i = 0; i < QUEUED; i++) {
            plain_add(data[2], data[0], data[1]);
            __asm__ volatile("" ::"r"(data[2]) : "memory");
        }
        double plain = now_us();
        if (queued - begin < best_calls)
            best_calls = queued - begin;
        if (done - begin < best_total)
            best_total = done - begin;
        if (emptied - done < best_empty)
            best_empty = emptied - done;
        if (plain - emptied < best_plain)
            best_plain = plain - emptied;
    }
    printf("aclnnAdd of %d floats: both calls %.2f us, with its execution %.2f us; empty host function %.2f us; plain "
           "loop %.3f us\n",
           N, best_calls / QUEUED, best_total / QUEUED, best_empty / QUEUED, best_plain / QUEUED);
    return 0;
}
