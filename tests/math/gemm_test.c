/*
 * The matrix engine against plain loops in double: random problems of every type, layout, epilogue and way (blocked,
 * decode, packed, batch-reduce, quantised), on every rung the processor has. Tolerances are relative to sum |a||b|.
 */
#include "base/half.h"
#include "math/gemm/gemm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#ifndef DP_TEST_COUNT
#define DP_TEST_COUNT 1000
#endif
enum { GUARD = 128, BLOCKS_MAX = 4 };

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) { /* xorshift64, Marsaglia 2003 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}
static size_t below(size_t n) {
    return draw() % n;
}
static bool chance(unsigned percent) {
    return below(100) < percent;
}
static double real(void) {
    return (double)(draw() % 4001) / 2000 - 1;
}

static double element(const void *p, dp_dtype t, ptrdiff_t i) {
    switch (t) {
    case DP_F32:
        return ((const float *)p)[i];
    case DP_F16:
        return dp_f32_from_f16(((const uint16_t *)p)[i]);
    case DP_BF16:
        return dp_f32_from_bf16(((const uint16_t *)p)[i]);
    case DP_I8:
        return ((const int8_t *)p)[i];
    case DP_U8:
        return ((const uint8_t *)p)[i];
    case DP_I32:
        return ((const int32_t *)p)[i];
    case DP_I4: {
        int q = ((const uint8_t *)p)[i / 2] >> (i % 2 * 4) & 15;
        return q > 7 ? q - 16 : q;
    }
    default:
        abort();
    }
}

static void set_random(void *p, dp_dtype t, size_t i) {
    switch (t) {
    case DP_F32:
        ((float *)p)[i] = (float)real();
        break;
    case DP_F16:
        ((uint16_t *)p)[i] = dp_f16_from_f32((float)real());
        break;
    case DP_BF16:
        ((uint16_t *)p)[i] = dp_bf16_from_f32((float)real());
        break;
    case DP_I32:
        ((int32_t *)p)[i] = (int32_t)(draw() % 2001) - 1000;
        break;
    case DP_I4:
        ((uint8_t *)p)[i / 2] = (uint8_t)draw();
        break;
    default:
        ((uint8_t *)p)[i] = chance(10) ? (chance(50) ? 0x80 : 0xff) : (uint8_t)draw();
        break;
    }
}

static void *room_of(dp_dtype t, size_t elements) { /* exactly as long as needed: a sanitizer sees reads past the end */
    size_t bytes = (elements * dp_dtype_bits(t) + 7) / 8;
    char *p = malloc(bytes ? bytes : 1);
    assert_non_null(p);
    for (size_t i = 0; i < elements; i++)
        set_random(p, t, i);
    return p;
}

typedef struct {
    dp_gemm_matrix view;
    void *rooms[BLOCKS_MAX]; /* to free */
    const void *blocks[BLOCKS_MAX];
    size_t elements;
} operand;

/* A rows x columns matrix of a random layout: either order, with or without a gap, sometimes a gap in both, sometimes
 * backwards. */
static void layout(operand *o, dp_dtype t, size_t rows, size_t columns, bool any) {
    size_t gap = chance(50) ? below(9) : 0, step = any && t != DP_I4 && chance(10) ? 2 : 1;
    bool across = chance(50);
    size_t inner = across ? columns : rows, outer = across ? rows : columns;
    size_t pitch = inner * step + gap;
    if (t == DP_I4)
        pitch += pitch % 2;
    o->view = (dp_gemm_matrix){.dtype = t,
                               .row_stride = across ? (ptrdiff_t)pitch : (ptrdiff_t)step,
                               .column_stride = across ? (ptrdiff_t)step : (ptrdiff_t)pitch};
    o->elements = outer && inner ? (outer - 1) * pitch + (inner - 1) * step + 1 : 0;
}

static void make(operand *o, dp_dtype t, size_t rows, size_t columns, size_t n_blocks) {
    memset(o, 0, sizeof *o);
    layout(o, t, rows, columns, true);
    bool backwards = t != DP_I4 && chance(10) && o->view.row_stride > 0 && rows;
    ptrdiff_t shift = backwards ? (ptrdiff_t)(rows - 1) * o->view.row_stride * (ptrdiff_t)dp_dtype_bits(t) / 8 : 0;
    for (size_t i = 0; i < (n_blocks ? n_blocks : 1); i++) {
        o->rooms[i] = room_of(t, o->elements);
        o->blocks[i] = (char *)o->rooms[i] + shift;
    }
    if (backwards)
        o->view.row_stride = -o->view.row_stride;
    if (n_blocks)
        o->view.blocks = o->blocks;
    else
        o->view.data = o->blocks[0];
}

static void drop(operand *o) {
    for (size_t i = 0; i < BLOCKS_MAX; i++)
        free(o->rooms[i]);
}

static ptrdiff_t place(const dp_gemm_matrix *m, size_t i, size_t j) {
    return (ptrdiff_t)i * m->row_stride + (ptrdiff_t)j * m->column_stride;
}

static double activated(double x, const dp_gemm_epilogue *e) {
    switch (e->activation) {
    case DP_GEMM_RELU:
        return x > 0 ? x : 0;
    case DP_GEMM_GELU_TANH:
        return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case DP_GEMM_GELU_ERF:
        return x / 2 * (1 + erf(x / 1.4142135623730951));
    case DP_GEMM_SILU:
        return x / (1 + exp(-x));
    case DP_GEMM_SIGMOID:
        return 1 / (1 + exp(-x));
    case DP_GEMM_TANH:
        return tanh(x);
    case DP_GEMM_CLIP:
        return fmin(fmax(x, (double)e->clip_low), (double)e->clip_high);
    default:
        return x;
    }
}

typedef struct {
    dp_gemm_problem p; /* with A and B as they lie, never packed */
    operand a, b, c, residual;
    void *bias, *scale, *offset, *column_scale, *row_scale, *before;
} test_case;

static double weight(const dp_gemm_problem *p, const void *data, size_t k, size_t j) {
    double q = element(data, p->b.dtype, place(&p->b, k, j));
    const dp_gemm_quant *s = &p->quant;
    if (!s->scale)
        return q;
    size_t g = s->group_size ? k / s->group_size : 0;
    ptrdiff_t at = (ptrdiff_t)g * s->group_stride + (ptrdiff_t)j * s->column_stride;
    return (q + (s->offset ? element(s->offset, s->dtype, at) : 0)) * element(s->scale, s->dtype, at);
}

/* The right value of C(i, j), and how far off it may be. */
static double expected(const test_case *t, size_t i, size_t j, double *out_tolerance) {
    const dp_gemm_problem *p = &t->p;
    const dp_gemm_epilogue *e = &p->epilogue;
    double sum = 0, magnitude = 0;
    size_t blocks = p->n_blocks ? p->n_blocks : 1;
    for (size_t s = 0; s < blocks; s++)
        for (size_t k = 0; k < p->k; k++) {
            double x = element(t->a.blocks[s], p->a.dtype, place(&p->a, i, k)) * weight(p, t->b.blocks[s], k, j);
            sum += x;
            magnitude += fabs(x);
        }
    if (e->bias && e->bias_dtype == DP_I32)
        sum += element(e->bias, DP_I32, (ptrdiff_t)(e->bias_per_row ? i : j));
    double scale = (double)p->alpha * (e->row_scale ? (double)e->row_scale[i] : 1) *
                   (e->column_scale ? (double)e->column_scale[j] : 1);
    double old =
        p->beta != 0 ? (double)p->beta * element((char *)t->before + GUARD, p->c.dtype, place(&p->c, i, j)) : 0;
    double bias =
        e->bias && e->bias_dtype != DP_I32 ? element(e->bias, e->bias_dtype, (ptrdiff_t)(e->bias_per_row ? i : j)) : 0;
    double x = scale * sum + old + bias;
    double error =
        0x1p-23 * ((fabs(scale) * magnitude) * (4 + (double)(p->k * blocks) / 16) + fabs(old) + fabs(bias) + fabs(x));
    if (e->activation)
        error = 1.2 * error + 4e-7 * (1 + fabs(x));
    x = activated(x, e);
    if (e->residual.data) {
        double r = element(e->residual.data == p->c.data ? (char *)t->before + GUARD : e->residual.data,
                           e->residual.dtype, place(&e->residual, i, j));
        x += r;
        error += 0x1p-23 * (fabs(r) + fabs(x));
    }
    dp_dtype c = p->c.dtype;
    if (c == DP_I8) {
        x = fmin(fmax(x, -128), 127);
        error += 0.5;
    }
    error += fabs(x) * (c == DP_F16 ? 0x1p-11 : c == DP_BF16 ? 0x1p-8 : 0x1p-24) + (c == DP_F16 ? 0x1p-24 : 0);
    *out_tolerance = c == DP_I32 ? 0 : error;
    return x;
}

static const dp_dtype floats[] = {DP_F32, DP_F16, DP_BF16};

static void choose_types(dp_gemm_problem *p, dp_dtype *c) {
    size_t family = below(10);
    *c = floats[below(3)];
    if (family < 6) {
        p->a.dtype = floats[below(3)];
        p->b.dtype = chance(60) ? p->a.dtype : floats[below(3)];
    } else if (family < 8) {
        p->a.dtype = chance(50) ? DP_I8 : DP_U8;
        p->b.dtype = DP_I8;
        if (chance(60))
            *c = chance(30) ? DP_I8 : DP_I32;
    } else {
        p->a.dtype = floats[below(3)];
        p->b.dtype = chance(50) ? DP_I8 : DP_I4;
        p->quant.dtype = floats[below(3)];
    }
}

static void choose_quant(test_case *t) {
    dp_gemm_problem *p = &t->p;
    if (p->b.dtype != DP_I4 && !(p->b.dtype == DP_I8 && p->a.dtype != DP_I8 && p->a.dtype != DP_U8))
        return;
    static const size_t sizes[] = {0, 32, 64, 96, 128, 256};
    dp_gemm_quant *q = &p->quant;
    q->group_size = sizes[below(6)];
    size_t groups = q->group_size ? (p->k + q->group_size - 1) / q->group_size : 1;
    bool across = chance(50);
    q->group_stride = across ? (ptrdiff_t)p->n : 1;
    q->column_stride = across ? 1 : (ptrdiff_t)groups;
    q->scale = t->scale = room_of(q->dtype, groups * p->n + 1);
    if (chance(40))
        q->offset = t->offset = room_of(q->dtype, groups * p->n + 1);
}

static void choose_epilogue(test_case *t) {
    dp_gemm_problem *p = &t->p;
    dp_gemm_epilogue *e = &p->epilogue;
    bool integer = p->b.dtype == DP_I8 && !p->quant.scale;
    if (p->c.dtype == DP_I32) {
        p->alpha = 1;
        p->beta = chance(50);
    } else {
        p->alpha = chance(50) ? 1 : (float)real() * 2;
        p->beta = chance(50) || p->c.dtype == DP_I8 ? 0 : chance(50) ? 1 : (float)real();
        if (integer && chance(80))
            e->column_scale = t->column_scale = room_of(DP_F32, p->n);
        if (integer) /* keep the numbers in half's range */
            p->alpha *= 1e-3f;
        else if (chance(20))
            e->column_scale = t->column_scale = room_of(DP_F32, p->n);
        if (chance(20))
            e->row_scale = t->row_scale = room_of(DP_F32, p->m);
        if (chance(60))
            e->activation = (dp_gemm_activation)below(DP_GEMM_ACTIVATION_COUNT);
        e->clip_low = -0.5f;
        e->clip_high = 0.75f;
        if (chance(30)) {
            make(&t->residual, floats[below(3)], p->m, p->n, 0);
            e->residual = t->residual.view;
            if (chance(30) && p->c.dtype != DP_I8)
                e->residual = p->c;
        }
    }
    if (chance(40)) {
        e->bias_per_row = chance(50);
        e->bias_dtype = p->c.dtype == DP_I32 || (integer && chance(50)) ? DP_I32 : floats[below(3)];
        e->bias = t->bias = room_of(e->bias_dtype, e->bias_per_row ? p->m : p->n);
    }
}

static size_t size_drawn(void) {
    return chance(3) ? 0 : chance(70) ? 1 + below(70) : chance(60) ? 1 + below(8) : 1 + below(300);
}

static void choose(test_case *t) {
    memset(t, 0, sizeof *t);
    dp_gemm_problem *p = &t->p;
    dp_dtype c;
    choose_types(p, &c);
    p->m = size_drawn();
    p->n = size_drawn();
    p->k = chance(10) && p->m * p->n < 3000 ? 400 + below(3000) : size_drawn();
    p->n_blocks = chance(20) ? 1 + below(BLOCKS_MAX) : 0;
    if (p->n_blocks)
        p->k = p->k % 600;
    make(&t->a, p->a.dtype, p->m, p->k, p->n_blocks);
    make(&t->b, p->b.dtype, p->k, p->n, p->n_blocks);
    p->a = t->a.view;
    p->b = t->b.view;
    choose_quant(t);
    memset(&t->c, 0, sizeof t->c);
    layout(&t->c, c, p->m, p->n, true);
    size_t bytes = t->c.elements * dp_dtype_bits(c) / 8;
    t->before = malloc(bytes + 2 * GUARD);
    t->c.rooms[0] = malloc(bytes + 2 * GUARD);
    assert_non_null(t->before);
    assert_non_null(t->c.rooms[0]);
    memset(t->before, 0x5a, bytes + 2 * GUARD);
    for (size_t i = 0; i < t->c.elements; i++)
        set_random((char *)t->before + GUARD, c, i);
    memcpy(t->c.rooms[0], t->before, bytes + 2 * GUARD);
    p->c = t->c.view;
    p->c.data = (char *)t->c.rooms[0] + GUARD;
    choose_epilogue(t);
}

static void discard(test_case *t) {
    drop(&t->a);
    drop(&t->b);
    drop(&t->c);
    drop(&t->residual);
    void *rest[] = {t->bias, t->scale, t->offset, t->column_scale, t->row_scale, t->before};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        free(rest[i]);
}

static const char *describe(const test_case *t, const char *rung, const char *path) {
    static char text[400];
    const dp_gemm_problem *p = &t->p;
    snprintf(text, sizeof text,
             "%s, %s: %zux%zux%zu blocks %zu types %d %d %d strides (%td,%td) (%td,%td) (%td,%td) packed %d %d alpha "
             "%g beta %g "
             "group %zu offset %d act %d bias %d(%d) scales %d %d residual %d",
             rung, path, p->m, p->n, p->k, p->n_blocks, p->a.dtype, p->b.dtype, p->c.dtype, p->a.row_stride,
             p->a.column_stride, p->b.row_stride, p->b.column_stride, p->c.row_stride, p->c.column_stride, p->a.packed,
             p->b.packed, (double)p->alpha, (double)p->beta, p->quant.group_size, p->quant.offset != NULL,
             p->epilogue.activation, p->epilogue.bias != NULL, p->epilogue.bias_dtype, p->epilogue.column_scale != NULL,
             p->epilogue.row_scale != NULL, p->epilogue.residual.data != NULL);
    return text;
}

/* Every byte of C's room that belongs to no element is as before. */
static void check_untouched(const test_case *t, const char *what) {
    const dp_gemm_problem *p = &t->p;
    size_t size = dp_dtype_bits(p->c.dtype) / 8, bytes = t->c.elements * size;
    char *got = t->c.rooms[0], *before = t->before;
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            memcpy(got + GUARD + place(&p->c, i, j) * (ptrdiff_t)size,
                   before + GUARD + place(&p->c, i, j) * (ptrdiff_t)size, size);
    if (memcmp(got, before, bytes + 2 * GUARD) != 0)
        fail_msg("%s: wrote outside C", what);
}

static void run_case(dp_isa isa, unsigned features, const char *rung) {
    test_case t;
    choose(&t);
    dp_gemm_problem p = t.p; /* as given to the engine */
    void *packed_a = NULL, *packed_b = NULL;
    if (chance(25)) {
        packed_a = aligned_alloc(64, (dp_gemm_pack_a_bytes_for(isa, features, &p) + 127) / 64 * 64);
        assert_int_equal(dp_gemm_pack_a_for(isa, features, &p, packed_a), DP_OK);
    }
    if (chance(40) && !p.quant.scale) {
        packed_b = aligned_alloc(64, (dp_gemm_pack_b_bytes_for(isa, features, &p) + 127) / 64 * 64);
        assert_int_equal(dp_gemm_pack_b_for(isa, features, &p, packed_b), DP_OK);
    }
    if (packed_a)
        p.a.data = packed_a, p.a.packed = true, p.a.blocks = NULL;
    if (packed_b)
        p.b.data = packed_b, p.b.packed = true, p.b.blocks = NULL;
    t.p.a.packed = p.a.packed;
    t.p.b.packed = p.b.packed;
    dp_gemm_plan plan;
    unsigned threads = (unsigned)below(5);
    if (dp_gemm_plan_make_for(isa, features, &p, threads, &plan) != DP_OK)
        fail_msg("%s: %s", describe(&t, rung, "refused"), dp_fail_message());
    const char *what = describe(&t, rung, plan.path);
    char *scratch = aligned_alloc(64, (plan.scratch_bytes + 63) / 64 * 64 + 64);
    memset(scratch, 0xff, plan.scratch_bytes);
    memset(scratch + plan.scratch_bytes, 0x77, 64);
    for (size_t i = plan.tiles_m; i-- > 0;)
        for (size_t j = plan.tiles_n; j-- > 0;)
            dp_gemm_tile(&plan, i, j, scratch);
    for (size_t i = 0; i < 64; i++)
        if (scratch[plan.scratch_bytes + i] != 0x77)
            fail_msg("%s: wrote past its scratch", what);
    for (size_t i = 0; i < p.m; i++)
        for (size_t j = 0; j < p.n; j++) {
            double tolerance, x = expected(&t, i, j, &tolerance),
                              y = element(t.p.c.data, p.c.dtype, place(&t.p.c, i, j));
            if (!(fabs(x - y) <= tolerance) && !(p.c.dtype == DP_F16 && fabs(x) > 65504 && isinf(y)))
                fail_msg("%s: C(%zu,%zu) = %.9g, expected %.9g +- %.3g", what, i, j, y, x, tolerance);
        }
    check_untouched(&t, what);
    discard(&t);
    free(packed_a);
    free(packed_b);
    free(scratch);
}

static void random_problems(void **unused) {
    (void)unused;
    static const struct {
        dp_isa isa;
        unsigned features;
        const char *name;
    } rungs[] = {{DP_ISA_GENERIC, 0, "generic"},
                 {DP_ISA_AVX2, 0, "avx2"},
                 {DP_ISA_AVX512, 0, "avx512"},
                 {DP_ISA_AVX512, DP_CPU_AVX512_BF16, "avx512 bf16"},
                 {DP_ISA_AVX512, DP_CPU_AVX512_VNNI, "avx512 vnni"},
                 {DP_ISA_AVX512, DP_CPU_AMX, "avx512 amx"}};
    for (size_t r = 0; r < sizeof rungs / sizeof *rungs; r++) {
        if (rungs[r].isa > dp_cpu_isa() || (rungs[r].features & ~dp_cpu_features()))
            continue;
        for (int i = 0; i < DP_TEST_COUNT; i++)
            run_case(rungs[r].isa, rungs[r].features, rungs[r].name);
    }
}

/* uint8 by int8: the same integers on every rung. */

static void run_bytes(dp_isa isa, unsigned features, const char *rung) {
    static uint8_t a[300 * 700];
    static int8_t b[2600 * 40], c[300 * 300], source[300 * 300];
    const size_t m = 1 + below(chance(50) ? 9 : 60), n = 1 + below(40), k = 1 + below(chance(10) ? 2600 : 300);
    const size_t stride = chance(50) ? (k + 3) / 4 * 4 : k + below(5);
    if (stride * m > sizeof a || k * n > sizeof b)
        return;
    const bool extreme = chance(20), by_int = chance(40), add = chance(50), pack = chance(70);
    for (size_t i = 0; i < stride * m; i++)
        a[i] = extreme ? 255 : (uint8_t)below(256);
    for (size_t i = 0; i < k * n; i++)
        b[i] = (int8_t)(extreme ? chance(90) ? 127 : -128 : (int)below(256) - 128);
    for (size_t i = 0; i < m * n; i++)
        source[i] = (int8_t)draw();
    float scales[40], bias[40];
    for (size_t j = 0; j < n; j++) {
        scales[j] = (float)(1 + below(100)) * 2e-5f / (extreme ? 100 : 1);
        bias[j] = (float)real() * 20;
    }
    static int32_t sums[300 * 300];
    dp_gemm_problem p = {.m = m, .n = n, .k = k, .alpha = 1};
    p.a = (dp_gemm_matrix){.data = a, .row_stride = (ptrdiff_t)stride, .column_stride = 1, .dtype = DP_U8};
    p.b = (dp_gemm_matrix){.data = b, .row_stride = (ptrdiff_t)n, .column_stride = 1, .dtype = DP_I8};
    p.c = (dp_gemm_matrix){.data = by_int ? (void *)sums : c, .row_stride = (ptrdiff_t)n, .column_stride = 1, .dtype = by_int ? DP_I32 : DP_I8};
    if (!by_int) {
        p.epilogue = (dp_gemm_epilogue){.column_scale = scales, .bias = bias, .bias_dtype = DP_F32,
                                        .activation = DP_GEMM_CLIP, .clip_low = 3, .clip_high = 100};
        p.beta = add ? .75f : 0;
        p.source = (dp_gemm_matrix){.data = source, .row_stride = (ptrdiff_t)n, .column_stride = 1, .dtype = DP_I8};
    }
    void *packed = NULL;
    if (pack) {
        packed = aligned_alloc(64, (dp_gemm_pack_b_bytes_for(isa, features, &p) + 63) / 64 * 64);
        assert_int_equal(dp_gemm_pack_b_for(isa, features, &p, packed), DP_OK);
        p.b.data = packed;
        p.b.packed = true;
    }
    dp_gemm_plan plan;
    assert_int_equal(dp_gemm_plan_make_for(isa, features, &p, 1 + (unsigned)below(4), &plan), DP_OK);
    void *scratch = aligned_alloc(64, (plan.scratch_bytes + 64) / 64 * 64);
    for (size_t t = 0; t < plan.tiles_m * plan.tiles_n; t++)
        dp_gemm_tile(&plan, t / plan.tiles_n, t % plan.tiles_n, scratch);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            int32_t sum = 0;
            for (size_t h = 0; h < k; h++)
                sum += a[i * stride + h] * b[h * n + j];
            double x = (double)sum * (double)scales[j] + (double)bias[j] + (add ? .75 * source[i * n + j] : 0);
            x = x < 3 ? 3 : x > 100 ? 100 : x;
            if (by_int ? sums[i * n + j] != sum : fabs(c[i * n + j] - x) > .5001)
                fail_msg("%s, %s: %zu x %zu x %zu, element %zu, %zu is %d, expected %g", rung, plan.path, m, n, k, i, j,
                         by_int ? sums[i * n + j] : c[i * n + j], by_int ? sum : x);
        }
    free(scratch);
    free(packed);
}

static void bytes_by_bytes(void **unused) {
    (void)unused;
    for (int i = 0; i < 2 * DP_TEST_COUNT; i++) {
        run_bytes(DP_ISA_GENERIC, 0, "generic");
        if (dp_cpu_isa() >= DP_ISA_AVX2)
            run_bytes(DP_ISA_AVX2, 0, "avx2");
        if (dp_cpu_isa() >= DP_ISA_AVX512)
            run_bytes(DP_ISA_AVX512, dp_cpu_features() & DP_CPU_AVX512_VNNI, "avx512");
    }
}

static void refuses(dp_gemm_problem p, const char *word) {
    dp_gemm_plan plan;
    assert_int_equal(dp_gemm_plan_make(&p, 1, &plan), DP_ERR_ARGUMENT);
    if (!strstr(dp_fail_message(), word))
        fail_msg("\"%s\" does not name %s", dp_fail_message(), word);
}

static void wrong_problems(void **unused) {
    (void)unused;
    float x[16] = {0};
    dp_gemm_matrix m = {.data = x, .row_stride = 4, .column_stride = 1, .dtype = DP_F32};
    const dp_gemm_problem good = {.m = 4, .n = 4, .k = 4, .a = m, .b = m, .c = m, .alpha = 1};
    dp_gemm_plan plan;
    assert_int_equal(dp_gemm_plan_make(&good, 1, &plan), DP_OK);
    dp_gemm_problem p = good;
    p.c.data = NULL;
    refuses(p, "C is NULL");
    p = good;
    p.b.data = NULL;
    refuses(p, "B is NULL");
    p = good;
    p.a.dtype = DP_I64;
    refuses(p, "int64");
    p = good;
    p.b.dtype = DP_I8;
    refuses(p, "int8");
    p = good;
    p.c.dtype = DP_I32;
    refuses(p, "int32");
    p = good;
    p.b.dtype = DP_I8;
    p.quant = (dp_gemm_quant){.scale = x, .dtype = DP_F32, .group_size = 20};
    refuses(p, "20");
    p.quant.group_size = 32;
    p.b.dtype = DP_I4;
    p.b.row_stride = 3;
    refuses(p, "int4");
    p = good;
    p.epilogue.bias = x;
    p.epilogue.bias_dtype = DP_I32;
    refuses(p, "bias");
    p = good;
    p.epilogue.activation = (dp_gemm_activation)99;
    refuses(p, "99");
    p = good;
    p.a.dtype = p.b.dtype = DP_I8;
    p.c.dtype = DP_I32;
    p.alpha = 2;
    refuses(p, "alpha");
}

/* NaN and infinity of A and B arrive in C and do not spread to other elements; beta 0 does not read C. */
static void special_values(void **unused) {
    (void)unused;
    enum { M = 20, N = 40, K = 33 };
    static float a[M * K], b[K * N], c[M * N];
    for (size_t i = 0; i < M * K; i++)
        a[i] = 1;
    for (size_t i = 0; i < K * N; i++)
        b[i] = 2;
    for (size_t i = 0; i < M * N; i++)
        c[i] = NAN;
    a[3 * K + 7] = NAN;
    b[5 * N + 11] = INFINITY;
    for (int isa = DP_ISA_GENERIC; isa <= (int)dp_cpu_isa(); isa++) {
        dp_gemm_problem p = {.m = M,
                             .n = N,
                             .k = K,
                             .alpha = 1,
                             .a = {.data = a, .row_stride = K, .column_stride = 1, .dtype = DP_F32},
                             .b = {.data = b, .row_stride = N, .column_stride = 1, .dtype = DP_F32},
                             .c = {.data = c, .row_stride = N, .column_stride = 1, .dtype = DP_F32}};
        p.epilogue.activation = DP_GEMM_RELU;
        dp_gemm_plan plan;
        assert_int_equal(dp_gemm_plan_make_for((dp_isa)isa, 0, &p, 1, &plan), DP_OK);
        void *scratch = aligned_alloc(64, (plan.scratch_bytes + 63) / 64 * 64);
        for (size_t i = 0; i < plan.tiles_m; i++)
            for (size_t j = 0; j < plan.tiles_n; j++)
                dp_gemm_tile(&plan, i, j, scratch);
        free(scratch);
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < N; j++) {
                float x = c[i * N + j];
                assert_true(i == 3 ? isnan(x) : j == 11 ? isinf(x) : x == 2 * K);
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_problems), cmocka_unit_test(bytes_by_bytes), cmocka_unit_test(wrong_problems),
                                       cmocka_unit_test(special_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
