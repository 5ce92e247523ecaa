/*
 * bench_resnet50 [--threads N] [--rounds N] MODEL.om - ResNet-50 as a compiled model (of export.py's resnet50.onnx)
 * against the same operators called one by one (aclnnConvolution, aclnnBatchNorm, aclnnRelu, aclnnAdd, ...: no fusion,
 * tensors in NCHW), taking turns. "Folded" leaves out the batch norms, which an exporter may have put into the weights
 * already, as torch does. Weights of the single operators are made up: values do not matter for the time. Their tensors
 * are reused as soon as nobody needs them any more.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_batch_norm.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_max_pool.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_relu.h"

enum { LAYERS = 64, BUFFERS = 64, ROUNDS = 1024 };

static void need(int code, const char *what) {
    if (!code)
        return;
    fprintf(stderr, "%s: %d %s\n", what, code, aclGetRecentErrMsg());
    exit(1);
}

static clockid_t watch = CLOCK_MONOTONIC;
static double now_ms(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void *device(size_t bytes) {
    void *p;
    need(aclrtMalloc(&p, bytes ? bytes : 1, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    return p;
}

/* Buffers: a stream runs in order, so what was given back may be taken again at once. */
typedef struct buffer {
    void *data;
    size_t bytes;
    bool taken;
} buffer;
static buffer buffers[BUFFERS];
static size_t buffer_bytes;

static buffer *take(size_t bytes) {
    buffer *best = NULL, *empty = NULL;
    for (int i = 0; i < BUFFERS; i++) {
        buffer *b = &buffers[i];
        if (!b->data)
            empty = empty ? empty : b;
        else if (!b->taken && b->bytes >= bytes && (!best || b->bytes < best->bytes))
            best = b;
    }
    if (!best) {
        best = empty;
        *best = (buffer){.data = device(bytes), .bytes = bytes};
        buffer_bytes += bytes;
    }
    best->taken = true;
    return best;
}

typedef struct image {
    aclTensor *tensor;
    buffer *memory;
    int64_t dims[4];
} image;

static aclTensor *tensor_of(const int64_t *dims, int rank, void *data) {
    int64_t strides[4];
    for (int64_t d = rank - 1, stride = 1; d >= 0; stride *= dims[d--])
        strides[d] = stride;
    return aclCreateTensor(dims, (uint64_t)rank, ACL_FLOAT, strides, 0, ACL_FORMAT_NCHW, dims, (uint64_t)rank, data);
}

static image new_image(int64_t channels, int64_t height, int64_t width) {
    image i = {.dims = {1, channels, height, width}};
    i.memory = take((size_t)(channels * height * width) * sizeof(float));
    i.tensor = tensor_of(i.dims, 4, i.memory->data);
    return i;
}
static void drop(image *i) {
    i->memory->taken = false;
    aclDestroyTensor(i->tensor);
}

/* The second phase of a call. */
typedef aclnnStatus (*phase)(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream);
static void run(phase fn, uint64_t bytes, aclOpExecutor *executor, const char *what) {
    buffer *workspace = bytes ? take(bytes) : NULL;
    need(fn(workspace ? workspace->data : NULL, bytes, executor, NULL), what);
    if (workspace)
        workspace->taken = false;
}
#define CALL(name, ...)                                                                                                \
    do {                                                                                                               \
        uint64_t bytes;                                                                                                \
        aclOpExecutor *executor;                                                                                       \
        need(aclnn##name##GetWorkspaceSize(__VA_ARGS__, &bytes, &executor), #name);                                    \
        run(aclnn##name, bytes, executor, #name);                                                                      \
    } while (0)

/* Weights, made at the first walk through the network. */
typedef struct layer {
    aclTensor *weight, *bias;
    aclTensor *mean, *variance; /* of the batch norm, whose factors and summands are `bias` */
} layer;
static bool with_norms;
static layer layers[LAYERS];
static int next_layer;
static size_t weight_bytes;

static aclTensor *weight(const int64_t *dims, int rank) {
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= dims[d];
    float *data = device((size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(i * 7919 % 1000 - 500) * 1e-4f;
    weight_bytes += (size_t)count * sizeof *data;
    return tensor_of(dims, rank, data);
}

static aclTensor *ones(int64_t count) {
    float *data = device((size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++)
        data[i] = 1;
    weight_bytes += (size_t)count * sizeof *data;
    return tensor_of(&count, 1, data);
}

static layer *layer_of(const int64_t *dims, int rank, int64_t outputs) {
    layer *l = &layers[next_layer++];
    if (!l->weight)
        *l = (layer){weight(dims, rank), weight(&outputs, 1), weight(&outputs, 1), ones(outputs)};
    return l;
}

static image convolution(const image *x, int64_t out, int64_t kernel, int64_t stride) {
    const int64_t pad = kernel / 2, one = 1, steps[] = {stride, stride}, pads[] = {pad, pad}, ones[] = {one, one};
    const int64_t dims[] = {out, x->dims[1], kernel, kernel};
    layer *l = layer_of(dims, 4, out);
    image y =
        new_image(out, (x->dims[2] + 2 * pad - kernel) / stride + 1, (x->dims[3] + 2 * pad - kernel) / stride + 1);
    aclIntArray *s = aclCreateIntArray(steps, 2), *p = aclCreateIntArray(pads, 2), *d = aclCreateIntArray(ones, 2);
    CALL(Convolution, x->tensor, l->weight, with_norms ? NULL : l->bias, s, p, d, false, NULL, 1, y.tensor, 0);
    aclDestroyIntArray(s);
    aclDestroyIntArray(p);
    aclDestroyIntArray(d);
    if (!with_norms)
        return y;
    image z = new_image(out, y.dims[2], y.dims[3]);
    CALL(BatchNorm, y.tensor, l->bias, l->bias, l->mean, l->variance, false, 0.1, 1e-5, z.tensor, NULL, NULL);
    drop(&y);
    return z;
}

static image relu(image *x) {
    image y = new_image(x->dims[1], x->dims[2], x->dims[3]);
    CALL(Relu, x->tensor, y.tensor);
    drop(x);
    return y;
}

static image convolution_relu(image *x, int64_t out, int64_t kernel, int64_t stride) {
    image y = convolution(x, out, kernel, stride);
    return relu(&y);
}

static image block(image *x, int64_t middle, int64_t stride, bool first) {
    image a = convolution_relu(x, middle, 1, 1), b = convolution_relu(&a, middle, 3, stride);
    drop(&a);
    image c = convolution(&b, 4 * middle, 1, 1);
    drop(&b);
    image same = *x;
    if (first) {
        same = convolution(x, 4 * middle, 1, stride);
        drop(x);
    }
    float one = 1;
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    image sum = new_image(c.dims[1], c.dims[2], c.dims[3]);
    CALL(Add, c.tensor, same.tensor, alpha, sum.tensor);
    aclDestroyScalar(alpha);
    drop(&c);
    drop(&same);
    return relu(&sum);
}

static image max_pool(image *x) {
    const int64_t kernel[] = {3, 3}, stride[] = {2, 2}, pads[] = {1, 1, 1, 1}, ones[] = {1, 1};
    image y = new_image(x->dims[1], x->dims[2] / 2, x->dims[3] / 2);
    aclIntArray *k = aclCreateIntArray(kernel, 2), *s = aclCreateIntArray(stride, 2), *p = aclCreateIntArray(pads, 4),
                *d = aclCreateIntArray(ones, 2);
    CALL(MaxPool, x->tensor, k, s, 0, p, d, 0, y.tensor);
    aclDestroyIntArray(k);
    aclDestroyIntArray(s);
    aclDestroyIntArray(p);
    aclDestroyIntArray(d);
    drop(x);
    return y;
}

/* Mean over the pixels, then the product with the classes' weights. */
static void classify(image *x, void *result) {
    const int64_t places[] = {2, 3}, features[] = {1, x->dims[1]}, weights[] = {x->dims[1], 1000},
                  classes[] = {1, 1000};
    float one = 1;
    buffer *memory = take((size_t)x->dims[1] * sizeof(float));
    aclTensor *mean = tensor_of(features, 2, memory->data), *y = tensor_of(classes, 2, result);
    aclIntArray *dims = aclCreateIntArray(places, 2);
    aclScalar *unit = aclCreateScalar(&one, ACL_FLOAT);
    layer *l = layer_of(weights, 2, 1000);
    CALL(Mean, x->tensor, dims, false, ACL_FLOAT, mean);
    CALL(Addmm, l->bias, mean, l->weight, unit, unit, y, 0);
    memory->taken = false;
    aclDestroyTensor(mean);
    aclDestroyTensor(y);
    aclDestroyIntArray(dims);
    aclDestroyScalar(unit);
    drop(x);
}

static void run_operators(void *input, void *result) {
    static const int64_t blocks[] = {3, 4, 6, 3};
    static buffer fixed;
    next_layer = 0;
    image x = {.dims = {1, 3, 224, 224}, .memory = &fixed};
    x.tensor = tensor_of(x.dims, 4, input);
    image y = convolution_relu(&x, 64, 7, 2);
    drop(&x);
    y = max_pool(&y);
    for (int stage = 0; stage < 4; stage++)
        for (int64_t i = 0; i < blocks[stage]; i++)
            y = block(&y, (int64_t)64 << stage, stage > 0 && i == 0 ? 2 : 1, i == 0);
    classify(&y, result);
    need(aclrtSynchronizeStream(NULL), "aclrtSynchronizeStream");
}

static aclmdlDataset *set_of(void *data, size_t bytes) {
    aclmdlDataset *set = aclmdlCreateDataset();
    need(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(data, bytes)), "aclmdlAddDatasetBuffer");
    return set;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double a[ROUNDS], b[ROUNDS];

static void line(const char *name, double model, double operators) {
    printf("%-32s %9.2f %22.2f   %5.1f %%\n", name, model, operators, 100 * (1 - model / operators));
}
static void print(const char *threads, int rounds, size_t work, size_t weights) {
    const double mb = 1 << 20;
    qsort(a, (size_t)rounds, sizeof *a, by_size);
    qsort(b, (size_t)rounds, sizeof *b, by_size);
    printf("ResNet-50, %s thread(s), %d rounds; batch norms %s\n", threads, rounds,
           with_norms ? "as operators" : "folded");
    printf("%-32s %9s %22s   %s\n", "", "model", "operators one by one", "saved");
    line("time, minimum (ms)", a[0], b[0]);
    line("time, median (ms)", a[rounds / 2], b[rounds / 2]);
    line("memory beside weights (MB)", (double)work / mb, (double)buffer_bytes / mb);
    line("memory with weights (MB)", (double)(work + weights) / mb, (double)(buffer_bytes + weight_bytes) / mb);
}

/* All buffers of the walks before. */
static void forget(void) {
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].data)
            need(aclrtFree(buffers[i].data), "aclrtFree");
    memset(buffers, 0, sizeof buffers);
    buffer_bytes = 0;
}

int main(int argc, char **argv) {
    const char *om = NULL, *threads = "1";
    int rounds = 30;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else
            om = argv[i];
    }
    if (!om || rounds < 1 || rounds > ROUNDS) {
        fprintf(stderr, "usage: bench_resnet50 [--threads N] [--rounds 1..%d] MODEL.om\n", ROUNDS);
        return 2;
    }
    setenv("DOPPEL_WORKERS", threads, 1);
    /* with one thread, time of this process: other programs on the machine then disturb less */
    if (strcmp(threads, "1") == 0)
        watch = CLOCK_PROCESS_CPUTIME_ID;
    need(aclInit(NULL), "aclInit");
    need(aclrtSetDevice(0), "aclrtSetDevice");
    uint32_t id;
    size_t work, weights, in_bytes = 3 * 224 * 224 * sizeof(float), out_bytes = 1000 * sizeof(float);
    need(aclmdlQuerySize(om, &work, &weights), "aclmdlQuerySize");
    need(aclmdlLoadFromFile(om, &id), "aclmdlLoadFromFile");
    float *input = device(in_bytes);
    void *result = device(out_bytes);
    for (size_t i = 0; i < in_bytes / sizeof(float); i++)
        input[i] = (float)(i * 7919 % 1000) * 1e-3f;
    aclmdlDataset *in = set_of(input, in_bytes), *out = set_of(result, out_bytes);
    for (int norms = 1; norms >= 0; norms--) {
        with_norms = norms;
        forget();
        run_operators(input, result);
        for (int i = 0; i < rounds; i++) {
            double t0 = now_ms();
            need(aclmdlExecute(id, in, out), "aclmdlExecute");
            double t1 = now_ms();
            run_operators(input, result);
            a[i] = t1 - t0;
            b[i] = now_ms() - t1;
        }
        print(threads, rounds, work, weights);
    }
    return 0;
}
