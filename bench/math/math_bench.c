/*
 * math_bench [n] - speed of the vector loops on n elements (default 8192, inside the caches) in 10^9 elements a second, per
 * rung, and how far the best rung is above the generic one.
 */
#define _GNU_SOURCE
#include "math/math.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Alignas(64) uint8_t dst[1 << 20], left[1 << 20], right[1 << 20], bits[1 << 17];
static uint32_t offsets[1 << 17];
static size_t n = 8192;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef void (*run_fn)(const dp_math *m);
#define RUN(name, call)                                                                                                \
    static void name(const dp_math *m) { call; }
RUN(add_f32, m->binary[DP_MATH_ADD][DP_F32](dst, left, right, n))
RUN(max_f32, m->binary[DP_MATH_MAX][DP_F32](dst, left, right, n))
RUN(div_f32, m->binary[DP_MATH_DIV][DP_F32](dst, left, right, n))
RUN(add_f16, m->binary[DP_MATH_ADD][DP_F16](dst, left, right, n))
RUN(add_bf16, m->binary[DP_MATH_ADD][DP_BF16](dst, left, right, n))
RUN(add_i16, m->binary[DP_MATH_ADD][DP_I16](dst, left, right, n))
RUN(mul_i32, m->binary[DP_MATH_MUL][DP_I32](dst, left, right, n))
RUN(muls_f32, m->scalar[DP_MATH_MULS][DP_F32](dst, left, right, n))
RUN(fma_f32, m->ternary[DP_MATH_MUL_ADD_DST][DP_F32](dst, left, right, n))
RUN(exp_f32, m->unary[DP_MATH_EXP][DP_F32](dst, left, n))
RUN(exp_f16, m->unary[DP_MATH_EXP][DP_F16](dst, left, n))
RUN(ln_f32, m->unary[DP_MATH_LN][DP_F32](dst, left, n))
RUN(sqrt_f32, m->unary[DP_MATH_SQRT][DP_F32](dst, left, n))
RUN(rsqrt_f32, m->unary[DP_MATH_RSQRT][DP_F32](dst, left, n))
RUN(relu_f32, m->unary[DP_MATH_RELU][DP_F32](dst, left, n))
RUN(f16_f32, m->cast[DP_F32][DP_F16][DP_ROUND_NONE](dst, left, n))
RUN(f32_f16, m->cast[DP_F16][DP_F32][DP_ROUND_NONE](dst, left, n))
RUN(f32_f16_odd, m->cast[DP_F16][DP_F32][DP_ROUND_ODD](dst, left, n))
RUN(f32_i32, m->cast[DP_I32][DP_F32][DP_ROUND_ROUND](dst, left, n))
RUN(f32_i64, m->cast[DP_I64][DP_F32][DP_ROUND_RINT](dst, left, n))
RUN(f16_i8, m->cast[DP_I8][DP_F16][DP_ROUND_NONE](dst, left, n))
RUN(f16_i4, m->cast[DP_I4][DP_F16][DP_ROUND_NONE](dst, left, n))
RUN(u8_f16, m->cast[DP_F16][DP_U8][DP_ROUND_NONE](dst, left, n))
RUN(gt_f32, m->compare[DP_CMP_GT][DP_F32](dst, left, right, n))
RUN(gt_f16, m->compare[DP_CMP_GT][DP_F16](dst, left, right, n))
RUN(select_f32, m->select[DP_F32](dst, bits, 0, left, right, n))
RUN(select_f16, m->select[DP_F16](dst, bits, 0, left, right, n))
RUN(fill_f32, m->fill[DP_F32](dst, left, n))
RUN(gather_f32, m->gather[DP_F32](dst, left, offsets, n))
RUN(gather_f16, m->gather[DP_F16](dst, left, offsets, n))
RUN(repeat_sum_f32, m->reduce[DP_F32].repeat_sum(dst, left, n / 64))
RUN(repeat_sum_f16, m->reduce[DP_F16].repeat_sum(dst, left, n / 128))
RUN(block_sum_f32, m->reduce[DP_F32].block_sum(dst, left, n / 8))
RUN(block_max_f16, m->reduce[DP_F16].block_max(dst, left, n / 16))
RUN(pair_sum_f32, m->reduce[DP_F32].pair_sum(dst, left, n / 2))
RUN(tree_sum_f32, m->reduce[DP_F32].tree_sum(dst, left, n))
static void max_index_f32(const dp_math *m) {
    uint32_t index;
    m->reduce[DP_F32].max(dst, &index, left, n);
}
RUN(atomic_add_f32, m->atomic[DP_MATH_ATOMIC_ADD][DP_F32](dst, left, n))
RUN(atomic_add_i32, m->atomic[DP_MATH_ATOMIC_ADD][DP_I32](dst, left, n))

static const struct {
    const char *name;
    run_fn run;
    bool half; /* the sources hold halves */
} rows[] = {
    {"Add float", add_f32, 0},        {"Max float", max_f32, 0},         {"Div float", div_f32, 0},
    {"Muls float", muls_f32, 0},      {"MulAddDst float", fma_f32, 0},   {"Relu float", relu_f32, 0},
    {"Add half", add_f16, 1},         {"Add bfloat16", add_bf16, 1},     {"Add int16", add_i16, 1},
    {"Mul int32", mul_i32, 0},        {"Exp float", exp_f32, 0},         {"Exp half", exp_f16, 1},
    {"Ln float", ln_f32, 0},          {"Sqrt float", sqrt_f32, 0},       {"Rsqrt float", rsqrt_f32, 0},
    {"Cast half->float", f16_f32, 1}, {"Cast float->half", f32_f16, 0},  {"Cast float->half ODD", f32_f16_odd, 0},
    {"Cast float->int32", f32_i32, 0}, {"Cast float->int64", f32_i64, 0}, {"Cast half->int8", f16_i8, 1},
    {"Cast half->int4", f16_i4, 1},   {"Cast uint8->half", u8_f16, 1},   {"Compare GT float", gt_f32, 0},
    {"Compare GT half", gt_f16, 1},   {"Select float", select_f32, 0},   {"Select half", select_f16, 1},
    {"Duplicate float", fill_f32, 0}, {"Gather float", gather_f32, 0},   {"Gather half", gather_f16, 1},
    {"WholeReduceSum float", repeat_sum_f32, 0}, {"WholeReduceSum half", repeat_sum_f16, 1},
    {"BlockReduceSum float", block_sum_f32, 0},  {"BlockReduceMax half", block_max_f16, 1},
    {"PairReduceSum float", pair_sum_f32, 0},    {"tree_sum float", tree_sum_f32, 0},
    {"max with index float", max_index_f32, 0},  {"atomic add float", atomic_add_f32, 0},
    {"atomic add int32", atomic_add_i32, 0},
};

static void make_sources(bool half) {
    const dp_math *m = dp_math_table(DP_ISA_GENERIC);
    for (size_t i = 0; i < sizeof left / 4; i++) {
        float x = (float)rand() / (float)RAND_MAX * 8 + 0.1f, y = (float)rand() / (float)RAND_MAX * 8 + 0.1f;
        if (half) {
            m->cast[DP_F16][DP_F32][DP_ROUND_NONE](left + 2 * i, &x, 1);
            m->cast[DP_F16][DP_F32][DP_ROUND_NONE](right + 2 * i, &y, 1);
        } else {
            memcpy(left + 4 * i, &x, 4);
            memcpy(right + 4 * i, &y, 4);
        }
    }
}

/* best of several short measurements */
static double giga_elements(run_fn run, const dp_math *m) {
    double best = 0;
    for (int round = 0; round < 5; round++) {
        size_t calls = 0;
        double start = now_s(), passed;
        do {
            for (int k = 0; k < 4; k++, calls++)
                run(m);
        } while ((passed = now_s() - start) < 2e-3);
        double speed = (double)calls * (double)n / passed * 1e-9;
        best = speed > best ? speed : best;
    }
    return best;
}

int main(int argc, char **argv) {
    if (argc > 1)
        n = strtoul(argv[1], NULL, 10);
    if (n < 128 || n > sizeof left / 8) {
        fprintf(stderr, "math_bench: n is %zu, must be 128 to %zu\n", n, sizeof left / 8);
        return 2;
    }
    for (size_t i = 0; i < sizeof bits; i++)
        bits[i] = (uint8_t)rand();
    for (size_t i = 0; i < n; i++)
        offsets[i] = (uint32_t)rand() % (uint32_t)n * 4;
    printf("10^9 elements a second, n = %zu\n%-24s", n, "");
    for (int isa = 0; isa <= (int)dp_cpu_best_isa(); isa++)
        printf("%9s", dp_isa_name((dp_isa)isa));
    printf("%9s\n", "ratio");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double speed[DP_ISA_COUNT] = {0};
        make_sources(rows[r].half);
        printf("%-24s", rows[r].name);
        for (int isa = 0; isa <= (int)dp_cpu_best_isa(); isa++) {
            speed[isa] = giga_elements(rows[r].run, dp_math_table((dp_isa)isa));
            printf("%9.2f", speed[isa]);
        }
        printf("%8.1fx\n", speed[dp_cpu_best_isa()] / speed[0]);
    }
    return 0;
}
