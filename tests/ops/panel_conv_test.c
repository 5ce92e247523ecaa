/*
 * Convolutions and products with weights in panels against plain loops in double: random sizes, kernels, strides, pads,
 * dilations, groups and forms, views whose pixels are further apart than they have channels, every activation.
 */
#include "ops/conv/panels.h"
#include "ops/typed/typed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/half.h"
#include "base/memory.h"

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) { /* xorshift64, Marsaglia 2003 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}
static int64_t between(int64_t low, int64_t high) {
    return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}
static bool chance(int percent) {
    return between(0, 99) < percent;
}
static float real(void) {
    return (float)(draw() % 4001) / 2000 - 1;
}

#define UNTOUCHED 12288.0f /* a number of half and bfloat16, too */

/* A view of `rank` dims whose last dim lies at `shift` of `pitch` channels: as one part of a concatenation lies in it.
 */
typedef struct view {
    dp_tensor t;
    float *room;
    uint16_t *low; /* the same of 16 bits, when the tensor has that type */
    int64_t count, pitch, shift, floats;
} view;

static view make_view(int rank, const int64_t *dims, bool may_be_part) {
    view v = {.t = {.element = DP_F32, .format = 2, .rank = rank}, .count = 1};
    memcpy(v.t.dims, dims, (size_t)rank * sizeof *dims);
    v.pitch = dims[rank - 1];
    if (may_be_part && chance(50)) {
        v.shift = between(0, 5);
        v.pitch += v.shift + between(0, 5);
    }
    v.floats = v.pitch;
    v.t.strides[rank - 1] = 1;
    for (int d = rank - 2; d >= 0; d--) {
        v.t.strides[d] = v.floats;
        v.floats *= dims[d];
    }
    v.count = v.floats / v.pitch * dims[rank - 1];
    v.room = malloc((size_t)(v.floats + 1) * sizeof(float));
    assert_non_null(v.room);
    for (int64_t i = 0; i < v.floats; i++)
        v.room[i] = UNTOUCHED;
    v.t.base = v.room;
    v.t.offset = v.shift;
    return v;
}
static float *at(const view *v, int64_t i) {
    const int64_t channels = v->t.dims[v->t.rank - 1];
    return v->room + i / channels * v->pitch + i % channels + v->shift;
}
static void fill(view *v) {
    for (int64_t i = 0; i < v->count; i++)
        *at(v, i) = real();
}
static uint16_t rounded(float x, int element) {
    return element == DP_F16 ? dp_f16_from_f32(x) : dp_bf16_from_f32(x);
}
static float widened(uint16_t x, int element) {
    return element == DP_F16 ? dp_f32_from_f16(x) : dp_f32_from_bf16(x);
}
/* The view becomes one of `element` (0: stays float); its floats are rounded. */
static void lower(view *v, int element) {
    if (!element)
        return;
    v->low = malloc((size_t)(v->floats + 1) * sizeof *v->low);
    assert_non_null(v->low);
    for (int64_t i = 0; i < v->floats; i++) {
        v->low[i] = rounded(v->room[i], element);
        v->room[i] = widened(v->low[i], element);
    }
    v->t.base = v->low;
    v->t.element = element;
}
/* The floats are those of the tensor. */
static void raise_view(view *v) {
    for (int64_t i = 0; i < v->floats && v->low; i++)
        v->room[i] = widened(v->low[i], v->t.element);
}
static void free_view(view *v) {
    free(v->room);
    free(v->low);
}
static bool is_untouched(const view *v) {
    const int64_t channels = v->t.dims[v->t.rank - 1];
    for (int64_t i = 0; i < v->floats; i++) {
        int64_t c = i % v->pitch - v->shift;
        if ((c < 0 || c >= channels) && v->room[i] != UNTOUCHED)
            return false;
    }
    return true;
}

static const char *const activations[] = {
    "none", "relu", "clip", "leaky_relu", "hard_sigmoid",      "hard_swish",      "sigmoid",
    "silu", "tanh", "gelu", "gelu_tanh",  "hard_swish_affine", "leaky_relu_floor"};
static double activated(int a, double x, double alpha, double beta) {
    switch (a) {
    case 1:
        return x > 0 ? x : 0;
    case 2:
        return fmin(fmax(x, alpha), beta);
    case 3:
        return x < 0 ? alpha * x : x;
    case 4:
        return fmin(fmax(alpha * x + beta, 0), 1);
    case 5:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case 6:
        return 1 / (1 + exp(-x));
    case 7:
        return x / (1 + exp(-x));
    case 8:
        return tanh(x);
    case 9:
        return x / 2 * (1 + erf(x * sqrt(0.5)));
    case 10:
        return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    case 11:
        return alpha * x * fmin(fmax(x / 6 + 0.5, 0), 1) + beta;
    case 12:
        return fmax(x < 0 ? alpha * x : x, beta);
    default:
        return x;
    }
}

typedef struct problem {
    dp_conv_filter filter;
    int64_t batch, in[2], out[2], pads[4], extra[2];
    int activation;
    float alpha, beta;
    bool has_bias, has_residual, residual_last, in_place;
} problem;

static int same(int64_t element) {
    return (int)element;
}

/* The operator; its plan is run. */
static dp_status call(const char *type, dp_tensor **inputs, dp_tensor *y, const dp_arg *attributes, int n_attributes) {
    const dp_typed *found;
    dp_plan *plan;
    const void *values[4] = {NULL};
    const dp_tensor *outputs[1] = {y};
    dp_status status = dp_typed_find(type, &found);
    if (status != DP_OK)
        return status;
    dp_typed_call c = {found, (const dp_tensor *const *)inputs, values, outputs, 4, 1, attributes, n_attributes, same};
    status = dp_typed_prepare(&c, &plan);
    if (status != DP_OK)
        return status;
    assert_int_equal(plan->workspace_bytes, 0);
    status = dp_plan_run(plan);
    dp_plan_free(plan);
    return status;
}

static dp_arg list(const char *name, const int64_t *numbers, int count) {
    return (dp_arg){.name = name, .kind = DP_ARG_INT_LIST, .count = count, .as.integers = numbers};
}
static dp_arg integer(const char *name, int64_t value) {
    return (dp_arg){.name = name, .kind = DP_ARG_INTEGER, .as.integer = value};
}
static dp_arg number(const char *name, double value) {
    return (dp_arg){.name = name, .kind = DP_ARG_REAL, .as.real = value};
}
static dp_arg text(const char *name, const char *value) {
    return (dp_arg){.name = name, .kind = DP_ARG_TEXT, .as.text = value};
}

static int finish_attributes(const problem *p, dp_arg *to) {
    to[0] = text("activation", activations[p->activation]);
    to[1] = number("alpha", p->alpha);
    to[2] = number("beta", p->beta);
    to[3] = integer("residual_last", p->residual_last);
    return 4;
}

/* The sum of one output element, and of its terms' magnitudes. */
static double sum_of(const problem *p, const view *x, const float *w, int64_t n, const int64_t *o, int64_t c,
                     double *out_scale) {
    const dp_conv_filter *f = &p->filter;
    const int64_t channels = f->in_channels / f->groups, columns = f->out_channels / f->groups, g = c / columns;
    double sum = 0, scale = 0;
    for (int64_t ky = 0; ky < f->kernel[0]; ky++)
        for (int64_t kx = 0; kx < f->kernel[1]; kx++) {
            int64_t i[2], k[2] = {ky, kx};
            bool inside = true;
            for (int d = 0; d < 2; d++) {
                i[d] = f->transposed ? o[d] + p->pads[2 * d] - k[d] * f->dilation[d]
                                     : o[d] * f->stride[d] - p->pads[2 * d] + k[d] * f->dilation[d];
                if (f->transposed) {
                    inside = inside && i[d] >= 0 && i[d] % f->stride[d] == 0;
                    i[d] /= f->stride[d];
                }
                inside = inside && i[d] >= 0 && i[d] < p->in[d];
            }
            for (int64_t m = 0; m < channels && inside; m++) {
                double a = *at(x, ((n * p->in[0] + i[0]) * p->in[1] + i[1]) * f->in_channels + g * channels + m);
                int64_t first = f->transposed ? g * channels + m : c, second = f->transposed ? c % columns : m;
                double b =
                    w[((first * (f->transposed ? columns : channels) + second) * f->kernel[0] + ky) * f->kernel[1] +
                      kx];
                sum += a * b;
                scale += fabs(a * b);
            }
        }
    *out_scale = scale;
    return sum;
}

static void check(const problem *p, const view *x, const float *w, const float *bias, const float *residual,
                  const view *y, double precision, const char *type) {
    const double unit = p->filter.low == DP_F16 ? 0x1.01p-11 : p->filter.low == DP_BF16 ? 0x1.01p-8 : 4e-7;
    const int64_t channels = p->filter.out_channels;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t pixel = i / channels, c = i % channels, o[2] = {pixel / p->out[1] % p->out[0], pixel % p->out[1]};
        double scale, sum = sum_of(p, x, w, pixel / p->out[1] / p->out[0], o, c, &scale);
        if (p->filter.form !=
            DP_CONV_FORM_DIRECT) /* errors come from all pixels of a tile: about 9 terms of 1/4 a channel */
            scale = fmax(scale, 9.0 / 4 * (double)p->filter.in_channels);
        sum += bias ? bias[c] : 0;
        sum += residual && !p->residual_last ? residual[i] : 0;
        double want =
            activated(p->activation, sum, p->alpha, p->beta) + (residual && p->residual_last ? residual[i] : 0);
        double got = *at(y, i);
        if (!(fabs(got - want) <= precision * (scale + 2) + unit * fabs(want) + 4e-7))
            fail_msg("%s (%s): element %lld is %.9g, but must be %.9g; %lldx%lld kernel, %lld -> %lld channels, groups "
                     "%lld, "
                     "activation %s",
                     type, dp_conv_form_name(p->filter.form), (long long)i, got, want, (long long)p->filter.kernel[0],
                     (long long)p->filter.kernel[1], (long long)p->filter.in_channels, (long long)channels,
                     (long long)p->filter.groups, activations[p->activation]);
    }
    assert_true(is_untouched(y));
}

static void any_finish(problem *p) {
    p->activation = chance(40) ? (int)between(0, 2) : (int)between(0, 12);
    p->alpha = p->activation == 2 ? -0.5f : 0.2f;
    p->beta = p->activation == 2 ? 0.75f : 0.5f;
    p->has_bias = chance(70);
    p->has_residual = chance(30);
    p->residual_last = chance(50);
    p->in_place = chance(30);
}

static void run_problem(const problem *p, bool is_product) {
    const dp_conv_filter *f = &p->filter;
    const int64_t channels = f->out_channels;
    int64_t x_dims[4] = {p->batch, p->in[0], p->in[1], f->in_channels},
            y_dims[4] = {p->batch, p->out[0], p->out[1], channels};
    view x = make_view(4, x_dims, true), y = make_view(4, y_dims, true), residual = make_view(4, y_dims, true);
    fill(&x);
    int64_t n_weights = f->in_channels * channels / f->groups * f->kernel[0] * f->kernel[1], n_panels;
    float *w = malloc((size_t)n_weights * sizeof *w), *bias = malloc((size_t)channels * sizeof *bias);
    uint16_t *low_w = malloc((size_t)n_weights * sizeof *low_w);
    float *kept = malloc((size_t)y.count * sizeof *kept);
    for (int64_t i = 0; i < n_weights; i++) {
        w[i] = real();
        if (f->low)
            w[i] = widened(low_w[i] = rounded(w[i], f->low), f->low);
    }
    for (int64_t i = 0; i < channels; i++)
        bias[i] = real();
    assert_int_equal(dp_conv_panels_count(f, &n_panels), DP_OK);
    view panels = make_view(1, &n_panels, false), biases = make_view(1, &channels, false);
    if (dp_conv_panels_element(f) != DP_F32)
        lower(&panels, f->low);
    assert_int_equal(dp_conv_panels_pack(f, f->low ? (const void *)low_w : w, panels.t.base), DP_OK);
    memcpy(biases.room, bias, (size_t)channels * sizeof *bias);
    view *added = p->in_place ? &y : &residual;
    if (p->has_residual)
        fill(added);
    view *images[] = {&x, &y, &residual};
    for (int i = 0; i < 3; i++)
        lower(images[i], f->low);
    for (int64_t i = 0; i < y.count && p->has_residual; i++)
        kept[i] = *at(added, i);
    dp_tensor *inputs[4] = {&x.t, &panels.t, p->has_bias ? &biases.t : NULL, p->has_residual ? &added->t : NULL};
    dp_arg a[16];
    int n = 0;
    const char *type = is_product ? "PanelMatMul" : f->transposed ? "PanelConv2DTranspose" : "PanelConv2D";
    a[n++] = integer(is_product ? "columns" : "out_channels", channels);
    if (!is_product) {
        a[n++] = list("kernel", f->kernel, 2);
        a[n++] = list("strides", f->stride, 2);
        a[n++] = list("pads", p->pads, 4);
        a[n++] = list("dilations", f->dilation, 2);
        a[n++] = integer("groups", f->groups);
        a[n++] = f->transposed ? list("output_padding", p->extra, 2) : text("form", dp_conv_form_name(f->form));
    }
    n += finish_attributes(p, a + n);
    if (call(type, inputs, &y.t, a, n) != DP_OK)
        fail_msg("%s: %s", type, dp_fail_message());
    for (int i = 0; i < 3; i++)
        raise_view(images[i]);
    check(p, &x, w, p->has_bias ? bias : NULL, p->has_residual ? kept : NULL, &y,
          f->form == DP_CONV_FORM_WINOGRAD4 ? 0x1p-18 : 0x1p-21, type);
    assert_true(is_untouched(&x));
    view *all[] = {&x, &y, &residual, &panels, &biases};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free_view(all[i]);
    free(w);
    free(low_w);
    free(bias);
    free(kept);
}

/* Sizes of the output; false when there is none, or the problem is too large for a test. */
static bool settle(problem *p) {
    const dp_conv_filter *f = &p->filter;
    for (int d = 0; d < 2; d++) {
        int64_t reach = (f->kernel[d] - 1) * f->dilation[d] + 1, all = p->pads[2 * d] + p->pads[2 * d + 1];
        p->out[d] = f->transposed ? (p->in[d] - 1) * f->stride[d] + reach - all + p->extra[d]
                                  : (p->in[d] + all - reach + f->stride[d]) / f->stride[d];
        if (p->out[d] < 1 || (!f->transposed && p->in[d] + all < reach))
            return false;
    }
    double work = (double)(p->batch * p->out[0] * p->out[1] * f->out_channels) * (double)(f->kernel[0] * f->kernel[1]) *
                  (double)(f->in_channels / f->groups);
    return work < 1e6;
}

static problem any_problem(bool transposed) {
    problem p;
    do {
        p = (problem){.batch = between(1, 2), .filter.transposed = transposed};
        dp_conv_filter *f = &p.filter;
        f->groups = chance(70) ? 1 : between(2, 5);
        f->in_channels = f->groups * (chance(70) ? between(1, 20) : between(20, 700));
        f->out_channels = f->groups * (chance(70) ? between(1, 40) : between(16, 200));
        for (int d = 0; d < 2; d++) {
            f->kernel[d] = chance(30) ? 1 : between(1, 5);
            f->stride[d] = chance(50) ? 1 : between(1, 4);
            f->dilation[d] = chance(70) ? 1 : between(1, 3);
            p.in[d] = chance(70) ? between(1, 9) : between(1, 40);
            p.extra[d] = transposed ? between(0, 1) : 0;
        }
        for (int i = 0; i < 4; i++)
            p.pads[i] = chance(50) ? 0 : between(0, 3);
        f->low = chance(50) ? 0 : chance(70) ? DP_BF16 : DP_F16;
        any_finish(&p);
    } while (!settle(&p));
    return p;
}

static void convolutions(void **unused) {
    (void)unused;
    for (int i = 0; i < 300; i++) {
        problem p = any_problem(false);
        run_problem(&p, false);
    }
}

static void depthwise(void **unused) {
    (void)unused;
    for (int i = 0; i < 200;) {
        problem p = any_problem(false);
        p.filter.groups = p.filter.in_channels = p.filter.out_channels = between(2, 70);
        if (chance(60)) {
            p.filter.kernel[0] = p.filter.kernel[1] = chance(50) ? 3 : 5;
            p.filter.dilation[0] = p.filter.dilation[1] = 1;
        }
        if (!settle(&p))
            continue;
        run_problem(&p, false);
        i++;
    }
}

/* Errors of the 4 x 4 tiles are larger; see panels.h. */
static void winograd(void **unused) {
    (void)unused;
    for (int i = 0; i < 150;) {
        problem p = any_problem(false);
        dp_conv_filter *f = &p.filter;
        f->groups = 1;
        for (int d = 0; d < 2; d++) {
            f->kernel[d] = 3;
            f->stride[d] = f->dilation[d] = 1;
        }
        f->low = 0;
        f->form = chance(50) ? DP_CONV_FORM_WINOGRAD2 : DP_CONV_FORM_WINOGRAD4;
        if (!settle(&p))
            continue;
        run_problem(&p, false);
        i++;
    }
}

static void transposed(void **unused) {
    (void)unused;
    for (int i = 0; i < 150; i++) {
        problem p = any_problem(true);
        run_problem(&p, false);
    }
}

static void products(void **unused) {
    (void)unused;
    for (int i = 0; i < 200; i++) {
        problem p = {.batch = between(1, 2),
                     .in = {between(1, 3), between(1, 20)},
                     .filter = {.groups = 1, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}}};
        p.filter.in_channels = chance(50) ? between(1, 40) : between(40, 1100);
        p.filter.out_channels = chance(50) ? between(1, 40) : between(40, 300);
        p.filter.low = chance(50) ? 0 : chance(70) ? DP_BF16 : DP_F16;
        any_finish(&p);
        if (settle(&p))
            run_problem(&p, true);
    }
}

/* Infinities and NaN come out where the sums have them, and nowhere else: padding is not multiplied by anything large.
 */
static void extreme_values(void **unused) {
    (void)unused;
    const int64_t dims[4] = {1, 3, 3, 1}, kernel[2] = {3, 3}, pads[4] = {1, 1, 1, 1}, n_panels = 9 * 16;
    view x = make_view(4, dims, false), y = make_view(4, dims, false), panels = make_view(1, &n_panels, false);
    const float values[] = {INFINITY, NAN, -INFINITY, 3e38f};
    static const char *const kinds[] = {"none", "relu", "clip", "hard_swish"};
    dp_conv_filter f = {1, 1, 1, {3, 3}, {1, 1}, {1, 1}, false, DP_CONV_FORM_DIRECT, 0};
    const float w[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
    assert_int_equal(dp_conv_panels_pack(&f, w, panels.room), DP_OK);
    for (int v = 0; v < 4; v++)
        for (int k = 0; k < 4; k++) {
            memset(x.room, 0, 9 * sizeof(float));
            x.room[0] = values[v];
            dp_tensor *inputs[4] = {&x.t, &panels.t, NULL, NULL};
            dp_arg a[] = {integer("out_channels", 1),   list("kernel", kernel, 2), list("pads", pads, 4),
                          text("activation", kinds[k]), number("alpha", -1),       number("beta", 2)};
            assert_int_equal(call("PanelConv2D", inputs, &y.t, a, 6), DP_OK);
            double want = k == 3             ? values[v] * fmin(fmax(values[v] / 6 + 0.5, 0), 1)
                          : isnan(values[v]) ? NAN
                                             : activated(k, values[v], -1, 2);
            if (k == 3 && isnan(values[v]))
                want = NAN;
            if (isnan(want))
                assert_true(isnan(y.room[0]));
            else
                assert_true(y.room[0] == (float)want);
            assert_true(y.room[8] == 0);
        }
    free(x.room);
    free(y.room);
    free(panels.room);
}

/* Padding and strides that reach as far as they may, of a small image: no memory is taken for what is padding only. */
static void far_windows(void **unused) {
    (void)unused;
    const int64_t far = 1 << 30, dims[4] = {1, 1, 3, 2}, y_dims[4] = {1, 1, 3, 1}, n_panels = 2 * 3 * 16;
    const int64_t kernel[2] = {1, 3}, strides[2] = {1, far}, pads[4] = {0, 0, far, far};
    view x = make_view(4, dims, false), y = make_view(4, y_dims, false), panels = make_view(1, &n_panels, false);
    for (int64_t i = 0; i < 6; i++)
        x.room[i] = (float)(i + 1);
    for (int64_t i = 0; i < n_panels; i++)
        panels.room[i] = i % 16 ? 0 : 1;
    dp_tensor *inputs[4] = {&x.t, &panels.t, NULL, NULL};
    dp_arg a[] = {integer("out_channels", 1), list("kernel", kernel, 2), list("strides", strides, 2),
                  list("pads", pads, 4)};
    assert_int_equal(call("PanelConv2D", inputs, &y.t, a, 4), DP_OK);
    assert_true(y.room[0] == 0 && y.room[1] == 21 && y.room[2] == 0);
    free(x.room);
    free(y.room);
    free(panels.room);
}

/* One fault at a time, and a word of its sentence. */
static void refusals(void **unused) {
    (void)unused;
    const int64_t dims[4] = {1, 4, 4, 8}, n_panels = 9 * 8 * 16, eight = 8;
    view x = make_view(4, dims, false), y = make_view(4, dims, false), panels = make_view(1, &n_panels, false);
    view short_panels = make_view(1, &eight, false);
    fill(&x);
    fill(&panels);
    static const int64_t kernel[2] = {3, 3}, zero[2] = {0, 1}, pads[4] = {1, 1, 1, 1}, minus[4] = {-1, 1, 1, 1};
    dp_tensor uneven = y.t, doubles = x.t, apart = x.t, flat = x.t, low = x.t;
    low.element = DP_BF16;
    uneven.strides[1] += 8;
    doubles.element = DP_F64;
    apart.strides[3] = 2;
    flat.rank = 3;
    flat.strides[2] = 1;
    const struct {
        const char *word;
        dp_tensor *x, *panels, *y;
        dp_arg changed;
    } cases[] = {
        {"", &x.t, &panels.t, &y.t, integer("groups", 1)},
        {"elements", &x.t, &short_panels.t, &y.t, integer("groups", 1)},
        {"evenly", &x.t, &panels.t, &uneven, integer("groups", 1)},
        {"f64", &doubles, &panels.t, &y.t, integer("groups", 1)},
        {"stride of 2", &apart, &panels.t, &y.t, integer("groups", 1)},
        {"3 dimensions", &flat, &panels.t, &y.t, integer("groups", 1)},
        {"groups is 3", &x.t, &panels.t, &y.t, integer("groups", 3)},
        {"0 groups", &x.t, &panels.t, &y.t, integer("groups", 0)},
        {"-7 output", &x.t, &panels.t, &y.t, integer("out_channels", -7)},
        {"output channels", &x.t, &panels.t, &y.t, integer("out_channels", INT64_MAX)},
        {"kernel", &x.t, &panels.t, &y.t, list("kernel", zero, 2)},
        {"-1", &x.t, &panels.t, &y.t, list("pads", minus, 4)},
        {"pads has 2", &x.t, &panels.t, &y.t, list("pads", zero, 2)},
        {"strides", &x.t, &panels.t, &y.t, list("strides", zero, 2)},
        {"swish", &x.t, &panels.t, &y.t, text("activation", "Swish")},
        {"winograd4", &x.t, &panels.t, &y.t, text("form", "blocked")},
        {"bf16", &x.t, &panels.t, &low, integer("groups", 1)},
        {"f32", &low, &panels.t, &low, integer("groups", 1)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_arg a[] = {integer("out_channels", 8), list("kernel", kernel, 2), list("pads", pads, 4), cases[i].changed};
        dp_tensor *inputs[4] = {cases[i].x, cases[i].panels, NULL, NULL};
        dp_status status = call("PanelConv2D", inputs, cases[i].y, a, 4);
        if (!*cases[i].word)
            assert_int_equal(status, DP_OK);
        else if (status == DP_OK || !strstr(dp_fail_message(), cases[i].word))
            fail_msg("status %d, \"%s\", which should speak of \"%s\"", status, dp_fail_message(), cases[i].word);
    }
    view *all[] = {&x, &y, &panels, &short_panels};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]->room);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions), cmocka_unit_test(depthwise),
                                       cmocka_unit_test(winograd),     cmocka_unit_test(transposed),
                                       cmocka_unit_test(products),     cmocka_unit_test(extreme_values),
                                       cmocka_unit_test(far_windows),  cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
