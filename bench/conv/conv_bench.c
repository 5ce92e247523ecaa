/*
 * conv_bench [threads [rounds [layer]]] - aclnnConvolution on the layers of ResNet-50 (batch 1, float, NCHW) and of MobileNet's
 * depthwise ones, against oneDNN's convolution, both taking turns. Columns: our time with both calls, our speed, and
 * the speeds' ratio to oneDNN on plain NCHW tensors (what an NCHW program has) and on tensors in its own blocked
 * format (conversions to and from it not counted). Times are minima.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution.h"
#if defined(HAVE_DNNL)
#include <omp.h>

#include "onednn.h"
#endif

typedef struct layer {
    const char *name;
    int in, out, groups, size, kernel, stride;
} layer;

static const layer layers[] = {
    {"7x7 / 2", 3, 64, 1, 224, 7, 2},
    {"1x1", 64, 64, 1, 56, 1, 1},
    {"3x3", 64, 64, 1, 56, 3, 1},
    {"1x1", 64, 256, 1, 56, 1, 1},
    {"1x1", 256, 64, 1, 56, 1, 1},
    {"3x3 / 2", 128, 128, 1, 56, 3, 2},
    {"3x3", 128, 128, 1, 28, 3, 1},
    {"1x1", 128, 512, 1, 28, 1, 1},
    {"1x1 / 2", 256, 512, 1, 56, 1, 2},
    {"3x3", 256, 256, 1, 14, 3, 1},
    {"1x1", 256, 1024, 1, 14, 1, 1},
    {"1x1", 1024, 256, 1, 14, 1, 1},
    {"3x3 / 2", 512, 512, 1, 14, 3, 2},
    {"3x3", 512, 512, 1, 7, 3, 1},
    {"1x1", 512, 2048, 1, 7, 1, 1},
    {"1x1", 2048, 512, 1, 7, 1, 1},
    {"depthwise 3x3", 144, 144, 144, 56, 3, 1},
    {"depthwise 3x3 / 2", 144, 144, 144, 56, 3, 2},
    {"depthwise 3x3", 576, 576, 576, 14, 3, 1},
};

/* With one thread, time of this process: other programs on the machine then disturb less. With more, time on the wall. */
static clockid_t watch = CLOCK_PROCESS_CPUTIME_ID;
static double now_s(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *room(int64_t count) {
    float *p;
    if (aclrtMalloc((void **)&p, (size_t)count * sizeof *p, ACL_MEM_MALLOC_HUGE_FIRST))
        exit(1);
    for (int64_t i = 0; i < count; i++)
        p[i] = (float)(i * 7919 % 1000) * 1e-3f - 0.5f;
    return p;
}

static void need(int code, const char *what) {
    if (!code)
        return;
    fprintf(stderr, "%s: %d %s\n", what, code, aclGetRecentErrMsg());
    exit(1);
}

/* Our side. */
typedef struct ours {
    aclTensor *x, *w, *y;
    aclIntArray *stride, *pad, *one;
    int64_t groups;
    void *workspace;
    uint64_t room;
} ours;

static void run_ours(ours *o) {
    uint64_t size;
    aclOpExecutor *executor;
    need(aclnnConvolutionGetWorkspaceSize(o->x, o->w, NULL, o->stride, o->pad, o->one, false, NULL, o->groups, o->y, 0,
                                          &size, &executor),
         "aclnnConvolutionGetWorkspaceSize");
    if (size > o->room) {
        need(aclrtMalloc(&o->workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        o->room = size;
    }
    need(aclnnConvolution(o->workspace, size, executor, NULL), "aclnnConvolution");
    need(aclrtSynchronizeStream(NULL), "aclrtSynchronizeStream");
}

static aclTensor *tensor_of(const int64_t *dims, float **out_data) {
    *out_data = room(dims[0] * dims[1] * dims[2] * dims[3]);
    return aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, dims, 4, *out_data);
}

static void measure(const layer *l, int rounds) {
    const int out = (l->size + l->kernel / 2 * 2 - l->kernel) / l->stride + 1;
    int64_t x_dims[] = {1, l->in, l->size, l->size}, w_dims[] = {l->out, l->in / l->groups, l->kernel, l->kernel},
            y_dims[] = {1, l->out, out, out}, stride = l->stride, pad = l->kernel / 2, one = 1;
    float *data[3];
    ours o = {.groups = l->groups};
    o.x = tensor_of(x_dims, &data[0]);
    o.w = tensor_of(w_dims, &data[1]);
    o.y = tensor_of(y_dims, &data[2]);
    o.stride = aclCreateIntArray(&stride, 1);
    o.pad = aclCreateIntArray(&pad, 1);
    o.one = aclCreateIntArray(&one, 1);
    double best[3] = {1e9, 1e9, 1e9},
           flops = 2.0 * (double)(l->in / l->groups) * l->kernel * l->kernel * l->out * out * out;
#if defined(HAVE_DNNL)
    dnnl_engine_t engine;
    want(dnnl_engine_create(&engine, dnnl_cpu, 0));
    const theirs_shape shape = {l->in, l->out, l->groups, l->size, l->size, out, out, l->kernel, l->stride};
    theirs plain = make_theirs(engine, &shape, false, false), blocked = make_theirs(engine, &shape, true, false);
#endif
    for (int round = 0; round < rounds; round++) {
        for (int side = 0; side < 3; side++) {
            double begin = now_s();
            if (side == 0)
                run_ours(&o);
#if defined(HAVE_DNNL)
            else
                run_theirs(side == 1 ? &plain : &blocked);
#endif
            double time = now_s() - begin;
            best[side] = time < best[side] ? time : best[side];
        }
    }
    char title[64];
    snprintf(title, sizeof title, "%s, %d -> %d, %dx%d", l->name, l->in, l->out, l->size, l->size);
    printf("%-36s %8.1f us %7.1f GFLOP/s", title, best[0] * 1e6, flops / best[0] * 1e-9);
#if defined(HAVE_DNNL)
    printf("   %5.2f  %5.2f", best[1] / best[0], best[2] / best[0]);
    free_theirs(&plain);
    free_theirs(&blocked);
    want(dnnl_engine_destroy(engine));
#endif
    printf("\n");
    aclDestroyTensor(o.x);
    aclDestroyTensor(o.w);
    aclDestroyTensor(o.y);
    aclDestroyIntArray(o.stride);
    aclDestroyIntArray(o.pad);
    aclDestroyIntArray(o.one);
    for (int i = 0; i < 3; i++)
        aclrtFree(data[i]);
    if (o.workspace)
        aclrtFree(o.workspace);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 60;
    char text[16];
    snprintf(text, sizeof text, "%d", threads);
    setenv("DOPPEL_WORKERS", text, 1);
    if (threads > 1)
        watch = CLOCK_MONOTONIC;
#if defined(HAVE_DNNL)
    omp_set_num_threads(threads);
#endif
    if (aclInit(NULL) || aclrtSetDevice(0))
        return 1;
    printf("%d thread%s, minima of %d rounds; ratios to oneDNN on NCHW, and on its blocked format\n", threads,
           threads > 1 ? "s" : "", rounds);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (argc < 4 || (size_t)atoi(argv[3]) == i)
            measure(&layers[i], rounds);
    aclrtResetDevice(0);
    aclFinalize();
    return 0;
}
