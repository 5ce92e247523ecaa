/*
 * bench_precision [--rounds N] [--input FILE] FLOAT.om OTHER.om... - a model compiled in several precisions: all in one
 * process, taking turns, one thread, with the same inputs (random ones in [0, 1), or for the first input the raw bytes
 * of FILE). The first is what the others are compared with.
 *
 * Times are those of the processor. Prints minimum and median of each, the ratios to the first (above 1: faster than
 * it), and of all outputs together the cosine, signal to noise, and the largest difference.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "base/half.h"

enum { MODELS = 8, ROUNDS = 1024 };

typedef struct candidate {
    const char *path;
    uint32_t id;
    aclmdlDesc *desc;
    aclmdlDataset *in, *out;
    double ms[ROUNDS];
} candidate;

static void need(int code, const char *what) {
    if (!code)
        return;
    fprintf(stderr, "%s: %d %s\n", what, code, aclGetRecentErrMsg());
    exit(1);
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void fill(float *to, size_t n) {
    uint32_t state = 12345;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (float)(state >> 8) * 0x1p-24f;
    }
}

static void *add(aclmdlDataset *set, size_t bytes) {
    void *data = NULL;
    need(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    need(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(data, bytes)), "aclmdlAddDatasetBuffer");
    return data;
}

static void open_model(candidate *c, const char *input) {
    need(aclmdlLoadFromFile(c->path, &c->id), c->path);
    c->desc = aclmdlCreateDesc();
    need(aclmdlGetDesc(c->desc, c->id), "aclmdlGetDesc");
    c->in = aclmdlCreateDataset();
    c->out = aclmdlCreateDataset();
    for (size_t i = 0; i < aclmdlGetNumInputs(c->desc); i++) {
        const size_t bytes = aclmdlGetInputSizeByIndex(c->desc, i);
        void *data = add(c->in, bytes);
        if (aclmdlGetInputDataType(c->desc, i) == ACL_FLOAT)
            fill(data, bytes / sizeof(float));
        FILE *file = i == 0 && input ? fopen(input, "rb") : NULL;
        if (i == 0 && input && (!file || fread(data, 1, bytes, file) != bytes)) {
            fprintf(stderr, "%s: no file of %zu bytes\n", input, bytes);
            exit(1);
        }
        if (file)
            fclose(file);
    }
    for (size_t i = 0; i < aclmdlGetNumOutputs(c->desc); i++)
        add(c->out, aclmdlGetOutputSizeByIndex(c->desc, i));
}

/* Element k of output i as a number. */
static double number(const candidate *c, size_t i, size_t k) {
    const void *data = aclGetDataBufferAddr(aclmdlGetDatasetBuffer(c->out, i));
    switch (aclmdlGetOutputDataType(c->desc, i)) {
    case ACL_FLOAT16:
        return (double)dp_f32_from_f16(((const uint16_t *)data)[k]);
    case ACL_BF16:
        return (double)dp_f32_from_bf16(((const uint16_t *)data)[k]);
    default:
        return (double)((const float *)data)[k];
    }
}

static void compare(const candidate *a, const candidate *b) {
    double aa = 0, bb = 0, ab = 0, noise = 0, most = 0, largest = 0;
    for (size_t i = 0; i < aclmdlGetNumOutputs(a->desc); i++) {
        aclmdlIODims dims;
        size_t count = 1;
        need(aclmdlGetOutputDims(a->desc, i, &dims), "aclmdlGetOutputDims");
        for (size_t d = 0; d < dims.dimCount; d++)
            count *= (size_t)dims.dims[d];
        for (size_t k = 0; k < count; k++) {
            const double x = number(a, i, k), y = number(b, i, k);
            aa += x * x;
            bb += y * y;
            ab += x * y;
            noise += (x - y) * (x - y);
            most = fmax(most, fabs(x - y));
            largest = fmax(largest, fabs(x));
        }
    }
    printf("  cosine %.6f  signal to noise %.1f dB  largest difference %.3g of values up to %.3g", ab / sqrt(aa * bb),
           10 * log10(aa / noise), most, largest);
}

int main(int argc, char **argv) {
    static candidate all[MODELS];
    const char *input = NULL;
    int n = 0, rounds = 20;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--input") == 0 && i + 1 < argc)
            input = argv[++i];
        else if (argv[i][0] != '-' && n < MODELS)
            all[n++].path = argv[i];
    }
    if (n < 1 || rounds < 1 || rounds > ROUNDS) {
        fprintf(stderr, "bench_precision [--rounds 1..%d] [--input FILE] FLOAT.om OTHER.om...\n", ROUNDS);
        return 2;
    }
    setenv("DOPPEL_WORKERS", "1", 1);
    need(aclInit(NULL), "aclInit");
    need(aclrtSetDevice(0), "aclrtSetDevice");
    for (int m = 0; m < n; m++) {
        open_model(&all[m], input);
        need(aclmdlExecute(all[m].id, all[m].in, all[m].out), "aclmdlExecute");
    }
    for (int r = 0; r < rounds; r++)
        for (int m = 0; m < n; m++) {
            const double begin = now_ms();
            need(aclmdlExecute(all[m].id, all[m].in, all[m].out), "aclmdlExecute");
            all[m].ms[r] = now_ms() - begin;
        }
    double least = 0, median = 0;
    for (int m = 0; m < n; m++) {
        candidate *c = &all[m];
        qsort(c->ms, (size_t)rounds, sizeof c->ms[0], by_size);
        const double own_least = c->ms[0], own_median = c->ms[rounds / 2];
        if (m == 0)
            least = own_least, median = own_median;
        const char *name = strrchr(c->path, '/');
        printf("%-28s %8.2f ms (%8.2f)  ratio %5.2f (%5.2f)", name ? name + 1 : c->path, own_least, own_median,
               least / own_least, median / own_median);
        if (m)
            compare(&all[0], c);
        printf("\n");
    }
    return 0;
}
