/*
 * panel_bench [threads [rounds [layer]]] - the panel operators (channels last, weights in panels, ReLU) on layers of
 * ResNet-50, MobileNetV2 and PP-OCR, batch 1, against oneDNN's convolution in the formats it likes best, with the same
 * ReLU; both take turns. Columns: our time, speed in terms of direct convolution, share of the processor's peak of
 * multiplications (measured here, on as many threads), oneDNN's share, and the ratio of times (theirs by ours: above 1,
 * we are faster). Minima. With several threads run it under OMP_WAIT_POLICY=passive: else the peer's threads go on
 * spinning while ours work.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "base/cpu.h"
#include "ops/conv/panels.h"
#include "ops/typed/typed.h"
#if defined(HAVE_DNNL)
#include <omp.h>

#include "onednn.h"
#endif

typedef struct layer {
    const char *name;
    int in, out, groups, height, width, kernel, stride;
} layer;

static const layer layers[] = {
    {"ResNet first", 3, 64, 1, 224, 224, 7, 2},
    {"ResNet 1x1", 64, 64, 1, 56, 56, 1, 1},
    {"ResNet 3x3", 64, 64, 1, 56, 56, 3, 1},
    {"ResNet 1x1", 64, 256, 1, 56, 56, 1, 1},
    {"ResNet 1x1", 256, 64, 1, 56, 56, 1, 1},
    {"ResNet 3x3 / 2", 128, 128, 1, 56, 56, 3, 2},
    {"ResNet 3x3", 128, 128, 1, 28, 28, 3, 1},
    {"ResNet 1x1", 128, 512, 1, 28, 28, 1, 1},
    {"ResNet 1x1", 512, 128, 1, 28, 28, 1, 1},
    {"ResNet 1x1 / 2", 256, 512, 1, 56, 56, 1, 2},
    {"ResNet 3x3", 256, 256, 1, 14, 14, 3, 1},
    {"ResNet 1x1", 256, 1024, 1, 14, 14, 1, 1},
    {"ResNet 1x1", 1024, 256, 1, 14, 14, 1, 1},
    {"ResNet 3x3 / 2", 512, 512, 1, 14, 14, 3, 2},
    {"ResNet 3x3", 512, 512, 1, 7, 7, 3, 1},
    {"ResNet 1x1", 512, 2048, 1, 7, 7, 1, 1},
    {"ResNet 1x1", 2048, 512, 1, 7, 7, 1, 1},
    {"ResNet last", 2048, 1000, 1, 1, 1, 1, 1},
    {"MobileNet first", 3, 32, 1, 224, 224, 3, 2},
    {"MobileNet depthwise", 32, 32, 32, 112, 112, 3, 1},
    {"MobileNet 1x1", 32, 16, 1, 112, 112, 1, 1},
    {"MobileNet 1x1", 16, 96, 1, 112, 112, 1, 1},
    {"MobileNet depthwise / 2", 96, 96, 96, 112, 112, 3, 2},
    {"MobileNet 1x1", 96, 24, 1, 56, 56, 1, 1},
    {"MobileNet 1x1", 24, 144, 1, 56, 56, 1, 1},
    {"MobileNet depthwise", 144, 144, 144, 56, 56, 3, 1},
    {"MobileNet 1x1", 144, 24, 1, 56, 56, 1, 1},
    {"MobileNet depthwise", 192, 192, 192, 28, 28, 3, 1},
    {"MobileNet 1x1", 192, 32, 1, 28, 28, 1, 1},
    {"MobileNet depthwise", 384, 384, 384, 14, 14, 3, 1},
    {"MobileNet 1x1", 384, 64, 1, 14, 14, 1, 1},
    {"MobileNet 1x1", 96, 576, 1, 14, 14, 1, 1},
    {"MobileNet depthwise / 2", 576, 576, 576, 14, 14, 3, 2},
    {"MobileNet depthwise", 960, 960, 960, 7, 7, 3, 1},
    {"MobileNet 1x1", 960, 320, 1, 7, 7, 1, 1},
    {"PP-OCR first", 3, 16, 1, 640, 640, 3, 2},
    {"PP-OCR depthwise", 32, 32, 32, 320, 320, 3, 1},
    {"PP-OCR 1x1", 32, 64, 1, 160, 160, 1, 1},
    {"PP-OCR depthwise 5x5", 256, 256, 256, 40, 40, 5, 1},
    {"PP-OCR 3x3", 96, 24, 1, 160, 160, 3, 1},
    {"PP-OCR 1x1", 480, 480, 1, 3, 80, 1, 1},
    {"PP-OCR depthwise 5x5", 480, 480, 480, 3, 80, 5, 1},
};

/* With one thread, time of this process: other programs on the machine then disturb less. With more, time on the wall.
 */
static clockid_t watch = CLOCK_PROCESS_CPUTIME_ID;
static double now_s(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, dp_fail_message());
    exit(1);
}

static float *room(int64_t count) {
    float *p = aligned_alloc(64, ((size_t)count * sizeof *p + 63) & ~(size_t)63);
    need(p, "memory");
    for (int64_t i = 0; i < count; i++)
        p[i] = (float)(i * 7919 % 1000) * 1e-3f - 0.5f;
    return p;
}

/* The peak: independent multiply-adds in registers, nothing else. */
enum { CHAINS = 12, STEPS = 1 << 14 };
#define PEAK(name, lanes, isa)                                                                                         \
    typedef float name##_v __attribute__((vector_size(4 * lanes)));                                                    \
    __attribute__((target(isa), optimize("fp-contract=fast"))) static double name(void) {                              \
        name##_v sum[CHAINS] = {{0}}, a = {0}, b = {0};                                                                \
        double best = 1e9;                                                                                             \
        for (int round = 0; round < 40; round++) {                                                                     \
            double begin = now_s();                                                                                    \
            for (int i = 0; i < STEPS; i++) {                                                                          \
                _Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++) sum[k] = a * b + sum[k];                     \
                __asm__ volatile("" : "+x"(a), "+x"(b));                                                               \
            }                                                                                                          \
            double time = now_s() - begin;                                                                             \
            best = time < best ? time : best;                                                                          \
            for (int k = 0; k < CHAINS; k++)                                                                           \
                __asm__ volatile("" : "+x"(sum[k]));                                                                   \
        }                                                                                                              \
        return 2.0 * CHAINS * STEPS * lanes / best;                                                                    \
    }
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
PEAK(peak_avx512, 16, "avx512f")
PEAK(peak_avx2, 8, "avx2,fma")
#endif
static double peak(void) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    return dp_cpu_isa() == DP_ISA_AVX512 ? peak_avx512() : dp_cpu_isa() == DP_ISA_AVX2 ? peak_avx2() : 0;
#else
    return 0;
#endif
}

static int same(int64_t element) {
    return (int)element;
}

static dp_tensor tensor_of(int rank, const int64_t *dims) {
    dp_tensor t = {.element = DP_F32, .format = 2, .rank = rank};
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        t.dims[d] = dims[d];
        t.strides[d] = step;
        step *= dims[d];
    }
    t.base = room(step);
    return t;
}

static dp_arg list(const char *name, const int64_t *numbers, int count) {
    return (dp_arg){.name = name, .kind = DP_ARG_INT_LIST, .count = count, .as.integers = numbers};
}

typedef struct ours {
    dp_tensor x, panels, y;
    dp_plan *plan;
} ours;

static ours make_ours(const layer *l, int out_height, int out_width) {
    const int64_t x[] = {1, l->height, l->width, l->in}, y[] = {1, out_height, out_width, l->out};
    const int64_t kernel[] = {l->kernel, l->kernel}, stride[] = {l->stride, l->stride}, pad = l->kernel / 2;
    const int64_t pads[] = {pad, pad, pad, pad};
    dp_conv_filter f = {l->in, l->out, l->groups, {l->kernel, l->kernel}, {l->stride, l->stride}, {1, 1}, false, 0};
    f.form = dp_conv_form_choose(&f, out_height, out_width);
    int64_t n_panels;
    need(dp_conv_panels_count(&f, &n_panels) == DP_OK, "panels");
    ours o = {tensor_of(4, x), tensor_of(1, &n_panels), tensor_of(4, y), NULL};
    float *w = room((int64_t)l->out * l->in / l->groups * l->kernel * l->kernel);
    need(dp_conv_panels_pack(&f, w, o.panels.base) == DP_OK, "panels");
    free(w);
    const dp_tensor *inputs[] = {&o.x, &o.panels}, *outputs[] = {&o.y};
    const void *values[] = {NULL, NULL};
    const dp_arg attributes[] = {{.name = "out_channels", .kind = DP_ARG_INTEGER, .as.integer = l->out},
                                 {.name = "groups", .kind = DP_ARG_INTEGER, .as.integer = l->groups},
                                 {.name = "form", .kind = DP_ARG_TEXT, .as.text = dp_conv_form_name(f.form)},
                                 {.name = "activation", .kind = DP_ARG_TEXT, .as.text = "relu"},
                                 list("kernel", kernel, 2),
                                 list("strides", stride, 2),
                                 list("pads", pads, 4)};
    dp_typed_call call = {.inputs = inputs,
                          .values = values,
                          .outputs = outputs,
                          .n_inputs = 2,
                          .n_outputs = 1,
                          .attributes = attributes,
                          .n_attributes = 7,
                          .element_of = same};
    need(dp_typed_find("PanelConv2D", &call.type) == DP_OK, "type");
    need(dp_typed_prepare(&call, &o.plan) == DP_OK, "prepare");
    return o;
}

static void free_ours(ours *o) {
    dp_plan_free(o->plan);
    free(o->x.base);
    free(o->panels.base);
    free(o->y.base);
}

static void measure(const layer *l, int rounds, double most) {
    const int height = (l->height + l->kernel / 2 * 2 - l->kernel) / l->stride + 1,
              width = (l->width + l->kernel / 2 * 2 - l->kernel) / l->stride + 1;
    const double flops = 2.0 * (double)(l->in / l->groups) * l->kernel * l->kernel * l->out * height * width;
    double best[2] = {1e9, 1e9};
    ours o = make_ours(l, height, width);
#if defined(HAVE_DNNL)
    dnnl_engine_t engine;
    want(dnnl_engine_create(&engine, dnnl_cpu, 0));
    const theirs_shape shape = {l->in, l->out, l->groups, l->height, l->width, height, width, l->kernel, l->stride};
    theirs t = make_theirs(engine, &shape, true, true);
#endif
    for (int round = 0; round < rounds; round++) {
        for (int side = 0; side < 2; side++) {
            double begin = now_s();
            if (side == 0)
                need(dp_plan_run(o.plan) == DP_OK, "run");
#if defined(HAVE_DNNL)
            else
                run_theirs(&t);
#endif
            double time = now_s() - begin;
            best[side] = time < best[side] ? time : best[side];
        }
    }
    char title[80];
    snprintf(title, sizeof title, "%s, %d -> %d, %dx%d", l->name, l->in, l->out, l->height, l->width);
    printf("%-44s %8.1f us %7.1f GFLOP/s %4.0f %%", title, best[0] * 1e6, flops / best[0] * 1e-9,
           most > 0 ? 100 * flops / best[0] / most : 0);
#if defined(HAVE_DNNL)
    printf("   %4.0f %%   %5.2f", most > 0 ? 100 * flops / best[1] / most : 0, best[1] / best[0]);
    free_theirs(&t);
    want(dnnl_engine_destroy(engine));
#endif
    printf("\n");
    fflush(stdout);
    free_ours(&o);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 40;
    char text[16];
    snprintf(text, sizeof text, "%d", threads);
    setenv("DOPPEL_WORKERS", text, 1);
    const double most = peak() * threads;
    if (threads > 1)
        watch = CLOCK_MONOTONIC;
#if defined(HAVE_DNNL)
    omp_set_num_threads(threads);
#endif
    if (aclInit(NULL) || aclrtSetDevice(0))
        return 1;
    printf("%d thread%s, minima of %d rounds; peak %.1f GFLOP/s; oneDNN's share of it, and the ratio of times\n",
           threads, threads > 1 ? "s" : "", rounds, most * 1e-9);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (argc < 4 || (size_t)atoi(argv[3]) == i)
            measure(&layers[i], rounds, most);
    aclrtResetDevice(0);
    aclFinalize();
    return 0;
}
