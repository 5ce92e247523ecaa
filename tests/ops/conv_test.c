/* Convolutions, unfold and fold against plain loops in double: random shapes of 1 to 3 dims, every type and layout. */
#include "ops_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType floats[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static int64_t between(int64_t low, int64_t high) {
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void fill(tensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, random_between(-1, 1));
}

static double unit(aclDataType type) {
    return type == ACL_FLOAT ? 0x1p-20 : type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

/* `scale` is the sum of the absolute values of the terms. */
static void check_near(const char *name, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i);
    if (!(fabs(got - want) <= unit(t->type) * fabs(want) + scale * 0x1p-20 + 1e-7))
        fail_msg("%s type %d, element %lld: %.12g, but must be %.12g", name, t->type, (long long)i, got, want);
}

/* A convolution of up to 3 dims; absent dims have size 1. */
typedef struct problem {
    int space, batch, groups, in_channels, out_channels; /* channels of one group */
    bool transposed, bias;
    int64_t in[3], kernel[3], stride[3], pad[3], dilation[3], extra[3], out[3];
} problem;

/* Sizes of the output; false when there are none. */
static bool finish(problem *p) {
    for (int d = 0; d < 3; d++) {
        int64_t reach = p->dilation[d] * (p->kernel[d] - 1) + 1;
        p->out[d] = p->transposed ? (p->in[d] - 1) * p->stride[d] - 2 * p->pad[d] + reach + p->extra[d]
                                  : (p->in[d] + 2 * p->pad[d] - reach) / p->stride[d] + 1;
        if (p->out[d] < 1 || (!p->transposed && p->in[d] + 2 * p->pad[d] < reach))
            return false;
    }
    return true;
}

static problem random_problem(bool transposed) {
    problem p;
    do {
        p = (problem){.space = (int)between(1, 3), .transposed = transposed};
        p.batch = (int)between(1, 2);
        p.groups = (int)between(1, 3);
        p.in_channels = (int)between(1, 5);
        p.out_channels = (int)between(1, 7);
        p.bias = random_bits() & 1;
        for (int d = 0; d < 3; d++) {
            bool used = d >= 3 - p.space;
            p.in[d] = used ? between(1, p.space == 1 ? 60 : p.space == 2 ? 13 : 6) : 1;
            p.kernel[d] = used ? between(1, p.space == 1 ? 9 : 4) : 1;
            p.stride[d] = used ? between(1, 3) : 1;
            p.pad[d] = used ? between(0, 3) : 0;
            p.dilation[d] = used ? between(1, 3) : 1;
            p.extra[d] = used && transposed ? between(0, p.stride[d] - 1) : 0;
        }
    } while (!finish(&p));
    return p;
}

static int64_t row_major(const int64_t *dims, const int64_t *at) {
    return (at[0] * dims[1] + at[1]) * dims[2] + at[2];
}

/* Where tap t of output place `at` reads; false: outside of the input. */
static bool source_of(const problem *p, const int64_t at[3], int64_t t, int64_t from[3]) {
    int64_t k[3] = {t / (p->kernel[1] * p->kernel[2]), t / p->kernel[2] % p->kernel[1], t % p->kernel[2]};
    for (int d = 0; d < 3; d++) {
        if (p->transposed) {
            int64_t place = at[d] + p->pad[d] - k[d] * p->dilation[d];
            from[d] = place / p->stride[d];
            if (place < 0 || place % p->stride[d])
                return false;
        } else {
            from[d] = at[d] * p->stride[d] + k[d] * p->dilation[d] - p->pad[d];
        }
        if (from[d] < 0 || from[d] >= p->in[d])
            return false;
    }
    return true;
}

/* First two dims of the weights, for output channel o and channel c of its group. */
static int64_t weight_of(const problem *p, int64_t o, int64_t c) {
    return p->transposed ? (o / p->out_channels * p->in_channels + c) * p->out_channels + o % p->out_channels
                         : o * p->in_channels + c;
}

/* Sum and sum of absolute values of output element (n, o, at). */
static double reference(const problem *p, const tensor *x, const tensor *w, const tensor *bias, int64_t n, int64_t o,
                        const int64_t at[3], double *scale) {
    int64_t group = o / p->out_channels, taps = p->kernel[0] * p->kernel[1] * p->kernel[2];
    int64_t plane = p->in[0] * p->in[1] * p->in[2];
    double sum = bias ? get_element(bias, o) : 0;
    *scale = fabs(sum);
    for (int64_t c = 0; c < p->in_channels; c++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t from[3], channel = group * p->in_channels + c;
            if (!source_of(p, at, t, from))
                continue;
            double term = get_element(w, weight_of(p, o, c) * taps + t) *
                          get_element(x, (n * p->in_channels * p->groups + channel) * plane + row_major(p->in, from));
            sum += term;
            *scale += fabs(term);
        }
    return sum;
}

typedef struct operands {
    tensor x, w, bias, y;
    aclIntArray *stride, *pad, *dilation, *extra;
} operands;

static tensor image(aclDataType type, int space, int64_t batch, int64_t channels, const int64_t *size, layout how) {
    int64_t dims[5] = {batch, channels};
    for (int i = 0; i < space; i++)
        dims[2 + i] = size[3 - space + i];
    return make_tensor(type, space + 2, dims, how);
}

static operands make_operands(const problem *p, aclDataType x_type, aclDataType w_type, aclDataType y_type) {
    operands o;
    int64_t all_in = p->in_channels * p->groups, all_out = p->out_channels * p->groups;
    o.x = image(x_type, p->space, p->batch, all_in, p->in, any_layout());
    o.w = image(w_type, p->space, p->transposed ? all_in : all_out, p->transposed ? p->out_channels : p->in_channels,
                p->kernel, any_layout());
    o.y = image(y_type, p->space, p->batch, all_out, p->out, any_layout());
    o.bias = make_tensor(y_type, 1, &all_out, any_layout());
    fill(&o.x);
    fill(&o.w);
    fill(&o.bias);
    uint64_t n = (uint64_t)p->space;
    int first = 3 - p->space;
    o.stride = aclCreateIntArray(p->stride + first, n);
    o.pad = aclCreateIntArray(p->pad + first, n);
    o.dilation = aclCreateIntArray(p->dilation + first, n);
    o.extra = aclCreateIntArray(p->extra + first, n);
    return o;
}

static void free_operands(operands *o) {
    tensor *all[] = {&o->x, &o->w, &o->bias, &o->y};
    for (int i = 0; i < 4; i++)
        free_tensor(all[i]);
    aclIntArray *lists[] = {o->stride, o->pad, o->dilation, o->extra};
    for (int i = 0; i < 4; i++)
        aclDestroyIntArray(lists[i]);
}

static void check_all(const char *name, const problem *p, const operands *o) {
    int64_t plane = p->out[0] * p->out[1] * p->out[2], all = p->out_channels * p->groups;
    /* all elements of small results, some of large ones */
    int64_t step = o->y.count > 2000 ? o->y.count / 1000 | 1 : 1;
    for (int64_t i = 0; i < o->y.count; i += step) {
        int64_t at[3] = {i % plane / (p->out[1] * p->out[2]), i % plane / p->out[2] % p->out[1], i % p->out[2]};
        double scale,
            want = reference(p, &o->x, &o->w, p->bias ? &o->bias : NULL, i / plane / all, i / plane % all, at, &scale);
        check_near(name, &o->y, i, want, scale);
    }
    assert_true(untouched_outside(&o->y));
}

static void run_problem(const problem *p, aclDataType x_type, aclDataType w_type, aclDataType y_type) {
    operands o = make_operands(p, x_type, w_type, y_type);
    caller_value values[] = {T(o.x),           T(o.w),     P(p->bias ? o.bias.handle : NULL),
                             P(o.stride),      P(o.pad),   P(o.dilation),
                             I(p->transposed), P(o.extra), I(p->groups),
                             T(o.y),           I(0)};
    char name[200];
    snprintf(name, sizeof name, "%dd%s n%d g%d c%d o%d in %d,%d,%d k %d,%d,%d s %d,%d,%d p %d,%d,%d d %d,%d,%d",
             p->space, p->transposed ? " transposed" : "", p->batch, p->groups, p->in_channels, p->out_channels,
             (int)p->in[0], (int)p->in[1], (int)p->in[2], (int)p->kernel[0], (int)p->kernel[1], (int)p->kernel[2],
             (int)p->stride[0], (int)p->stride[1], (int)p->stride[2], (int)p->pad[0], (int)p->pad[1], (int)p->pad[2],
             (int)p->dilation[0], (int)p->dilation[1], (int)p->dilation[2]);
    if (call_op("Convolution", values))
        fail_msg("%s: %s", name, sentence());
    check_all(name, p, &o);
    free_operands(&o);
}

static void convolutions_of_all_shapes(void **state) {
    (void)state;
    for (int round = 0; round < 240; round++) {
        problem p = random_problem(round % 3 == 2);
        aclDataType type = floats[round / 3 % 3];
        run_problem(&p, type, round % 7 == 0 ? ACL_FLOAT16 : type, round % 5 == 0 ? ACL_FLOAT : type);
    }
}

/* Sums over several blocks of k, results over several panels, and rows narrower than a vector. */
static void large_convolutions(void **state) {
    (void)state;
    static const problem problems[] = {
        {2, 1, 1, 70, 33, false, true, {1, 14, 14}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}, {0}},
        {2, 1, 1, 65, 40, false, false, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}, {0}},
        {2, 1, 1, 3, 64, false, false, {1, 64, 61}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {1, 1, 1}, {0}, {0}},
        {2, 2, 1, 130, 70, false, true, {1, 9, 30}, {1, 1, 1}, {1, 1, 1}, {0}, {1, 1, 1}, {0}, {0}},
        {2, 1, 1, 64, 24, false, false, {1, 15, 20}, {1, 1, 1}, {1, 2, 2}, {0}, {1, 1, 1}, {0}, {0}},
        {2, 1, 40, 1, 1, false, true, {1, 33, 70}, {1, 5, 3}, {1, 1, 1}, {0, 2, 1}, {1, 1, 1}, {0}, {0}},
        {2, 1, 6, 1, 3, false, false, {1, 40, 150}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, {0}, {0}},
        {1, 1, 1, 20, 10, true, true, {1, 1, 300}, {1, 1, 255}, {1, 1, 5}, {0}, {1, 1, 1}, {0}, {0}},
        {2, 1, 1, 33, 17, true, true, {1, 12, 13}, {1, 4, 4}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, {0}, {0}},
        {1, 3, 130, 1, 1, false, false, {1, 1, 4}, {1, 1, 4}, {1, 1, 1}, {0}, {1, 1, 1}, {0}, {0}},
        {3, 1, 1, 8, 9, false, true, {9, 10, 11}, {3, 3, 3}, {1, 1, 2}, {1, 1, 1}, {1, 2, 1}, {0}, {0}},
        {1, 1, 1, 2, 3, false, false, {1, 1, 400}, {1, 1, 150}, {1, 1, 1}, {0, 0, 75}, {1, 1, 2}, {0}, {0}},
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        for (int t = 0; t < 2; t++) {
            problem p = problems[i];
            assert_true(finish(&p));
            run_problem(&p, floats[t], floats[t], floats[t]);
        }
}

/* Formats with the channels last are read as such; a padding of two numbers a dim is before and after. */
static void channels_last_and_uneven_padding(void **state) {
    (void)state;
    int64_t x_dims[] = {2, 6, 7, 3}, y_dims[] = {2, 7, 6, 4}, w_dims[] = {4, 3, 3, 2}, pad[] = {1, 2, 0, 0}, one = 1;
    tensor x = make_tensor(ACL_FLOAT, 4, x_dims, CONTIGUOUS), y = make_tensor(ACL_FLOAT, 4, y_dims, CONTIGUOUS),
           w = make_tensor(ACL_FLOAT, 4, w_dims, CONTIGUOUS);
    fill(&x);
    fill(&w);
    aclTensor *xh = aclCreateTensor(x_dims, 4, ACL_FLOAT, x.strides, 0, ACL_FORMAT_NHWC, x_dims, 4, x.data);
    aclTensor *yh = aclCreateTensor(y_dims, 4, ACL_FLOAT, y.strides, 0, ACL_FORMAT_NHWC, y_dims, 4, y.data);
    aclIntArray *padding = aclCreateIntArray(pad, 4), *ones = aclCreateIntArray(&one, 1);
    caller_value values[] = {P(xh), T(w), P(NULL), P(ones), P(padding), P(ones), I(0), P(NULL), I(1), P(yh), I(1)};
    if (call_op("Convolution", values))
        fail_msg("%s", sentence());
    for (int64_t i = 0; i < y.count; i++) {
        int64_t o = i % 4, ox = i / 4 % 6, oy = i / 24 % 7, n = i / 168;
        double want = 0;
        for (int64_t c = 0; c < 3; c++)
            for (int64_t k = 0; k < 6; k++) {
                int64_t iy = oy + k / 2 - 1, ix = ox + k % 2;
                if (iy >= 0 && iy < 6)
                    want += get_element(&w, (o * 3 + c) * 6 + k) * get_element(&x, ((n * 6 + iy) * 7 + ix) * 3 + c);
            }
        check_near("NHWC", &y, i, want, 10);
    }
    aclDestroyTensor(xh);
    aclDestroyTensor(yh);
    aclDestroyIntArray(padding);
    aclDestroyIntArray(ones);
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&w);
}

static void depthwise_and_time_first(void **state) {
    (void)state;
    problem p = {2, 2, 5, 1, 2, false, true, {1, 9, 10}, {1, 3, 2}, {1, 2, 1}, {0, 1, 1}, {1, 1, 2}, {0}, {0}};
    assert_true(finish(&p));
    operands o = make_operands(&p, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT);
    aclIntArray *kernel = aclCreateIntArray(p.kernel + 1, 2);
    caller_value values[] = {T(o.x), T(o.w), P(kernel), T(o.bias), P(o.stride), P(o.pad), P(o.dilation), T(o.y), I(0)};
    if (call_op("ConvDepthwise2d", values))
        fail_msg("%s", sentence());
    check_all("ConvDepthwise2d", &p, &o);
    aclDestroyIntArray(kernel);
    free_operands(&o);

    int64_t x_dims[] = {20, 2, 6}, w_dims[] = {3, 6, 5}, y_dims[] = {22, 2, 5}, five = 5;
    tensor x = make_tensor(ACL_FLOAT16, 3, x_dims, STRIDED), w = make_tensor(ACL_FLOAT16, 3, w_dims, CONTIGUOUS),
           y = make_tensor(ACL_FLOAT16, 3, y_dims, OFFSET), bias = make_tensor(ACL_FLOAT16, 1, &five, CONTIGUOUS);
    fill(&x);
    fill(&w);
    fill(&bias);
    caller_value tbc[] = {T(x), T(w), T(bias), I(2), T(y), I(0)};
    if (call_op("ConvTbc", tbc))
        fail_msg("%s", sentence());
    for (int64_t i = 0; i < y.count; i++) {
        int64_t out = i % 5, n = i / 5 % 2, t = i / 10;
        double want = get_element(&bias, out);
        for (int64_t k = 0; k < 3; k++)
            for (int64_t c = 0; c < 6; c++)
                if (t + k - 2 >= 0 && t + k - 2 < 20)
                    want += get_element(&x, ((t + k - 2) * 2 + n) * 6 + c) * get_element(&w, (k * 6 + c) * 5 + out);
        check_near("ConvTbc", &y, i, want, 18);
    }
    tensor *all[] = {&x, &w, &y, &bias};
    for (int i = 0; i < 4; i++)
        free_tensor(all[i]);
}

static void unfold_and_fold(void **state) {
    (void)state;
    static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_DOUBLE, ACL_BF16};
    for (int round = 0; round < 40; round++) {
        problem p = random_problem(false);
        if (p.space != 2)
            continue;
        aclDataType type = types[round % 5];
        int64_t taps = p.kernel[1] * p.kernel[2], channels = p.in_channels, positions = p.out[1] * p.out[2];
        int64_t image_dims[] = {p.batch, channels, p.in[1], p.in[2]},
                column_dims[] = {p.batch, channels * taps, positions};
        bool batched = round % 2;
        if (!batched)
            image_dims[0] = column_dims[0] = p.batch = 1;
        tensor x = make_tensor(type, 3 + batched, image_dims + !batched, any_layout()),
               columns = make_tensor(type, 2 + batched, column_dims + !batched, any_layout()),
               back = make_tensor(type, 3 + batched, image_dims + !batched, any_layout());
        for (int64_t i = 0; i < x.count; i++)
            set_element(&x, i, is_float(type) ? random_between(-1, 1) : (double)between(-9, 9));
        aclIntArray *kernel = aclCreateIntArray(p.kernel + 1, 2), *stride = aclCreateIntArray(p.stride + 1, 2),
                    *pad = aclCreateIntArray(p.pad + 1, 2), *dilation = aclCreateIntArray(p.dilation + 1, 2),
                    *size = aclCreateIntArray(p.in + 1, 2);
        caller_value unfold[] = {T(x), P(kernel), P(dilation), P(pad), P(stride), T(columns)};
        if (call_op("Im2col", unfold))
            fail_msg("%s", sentence());
        double *sums = calloc((size_t)x.count, sizeof *sums);
        for (int64_t i = 0; i < columns.count; i++) {
            int64_t position = i % positions, row = i / positions, tap = row % taps, plane = row / taps;
            int64_t y = position / p.out[2] * p.stride[1] + tap / p.kernel[2] * p.dilation[1] - p.pad[1];
            int64_t z = position % p.out[2] * p.stride[2] + tap % p.kernel[2] * p.dilation[2] - p.pad[2];
            bool inside = y >= 0 && y < p.in[1] && z >= 0 && z < p.in[2];
            int64_t at = (plane * p.in[1] + y) * p.in[2] + z;
            assert_true(get_element(&columns, i) == (inside ? get_element(&x, at) : 0));
            if (inside)
                sums[at] += get_element(&columns, i);
        }
        assert_true(untouched_outside(&columns));
        caller_value fold[] = {T(columns), P(size), P(kernel), P(dilation), P(pad), P(stride), T(back)};
        if (type != ACL_INT8 && type != ACL_DOUBLE) {
            if (call_op("Im2colBackward", fold))
                fail_msg("%s", sentence());
            for (int64_t i = 0; i < back.count; i++)
                check_near("Im2colBackward", &back, i, sums[i], (double)taps);
            assert_true(untouched_outside(&back));
        }
        free(sums);
        aclIntArray *lists[] = {kernel, stride, pad, dilation, size};
        for (int i = 0; i < 5; i++)
            aclDestroyIntArray(lists[i]);
        free_tensor(&x);
        free_tensor(&columns);
        free_tensor(&back);
    }
}

/* Every product of the forward sum, once more: what it means for x, w and bias. */
static void collect_gradients(const problem *p, const operands *o, double *gx, double *gw, double *gb) {
    int64_t plane = p->out[0] * p->out[1] * p->out[2], all = p->out_channels * p->groups;
    int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2], in_plane = p->in[0] * p->in[1] * p->in[2];
    for (int64_t i = 0; i < o->y.count; i++) {
        int64_t at[3] = {i % plane / (p->out[1] * p->out[2]), i % plane / p->out[2] % p->out[1], i % p->out[2]};
        int64_t out = i / plane % all, n = i / plane / all;
        double g = get_element(&o->y, i);
        gb[out] += g;
        for (int64_t c = 0; c < p->in_channels; c++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t from[3];
                if (!source_of(p, at, t, from))
                    continue;
                int64_t channel = out / p->out_channels * p->in_channels + c;
                int64_t x = (n * p->in_channels * p->groups + channel) * in_plane + row_major(p->in, from);
                int64_t w = weight_of(p, out, c) * taps + t;
                gx[x] += g * get_element(&o->w, w);
                gw[w] += g * get_element(&o->x, x);
            }
    }
}

static void gradients_of_all_shapes(void **state) {
    (void)state;
    for (int round = 0; round < 90; round++) {
        problem p = random_problem(round % 3 == 2);
        aclDataType type = floats[round / 3 % 3];
        operands o = make_operands(&p, type, type, type);
        fill(&o.y); /* the gradient that comes in */
        tensor gx = make_tensor(type, o.x.rank, o.x.dims, any_layout()),
               gw = make_tensor(type, o.w.rank, o.w.dims, any_layout()),
               gb = make_tensor(type, 1, o.bias.dims, any_layout());
        bool wanted[] = {round % 4 != 1, round % 4 != 2, round % 4 != 3};
        aclBoolArray *mask = aclCreateBoolArray(wanted, 3);
        caller_value values[] = {T(o.y),
                                 T(o.x),
                                 T(o.w),
                                 P(NULL),
                                 P(o.stride),
                                 P(o.pad),
                                 P(o.dilation),
                                 I(p.transposed),
                                 P(o.extra),
                                 I(p.groups),
                                 P(mask),
                                 I(0),
                                 P(wanted[0] ? gx.handle : NULL),
                                 P(wanted[1] ? gw.handle : NULL),
                                 P(wanted[2] ? gb.handle : NULL)};
        if (call_op("ConvolutionBackward", values))
            fail_msg("%s", sentence());
        double *want[] = {calloc((size_t)gx.count, 8), calloc((size_t)gw.count, 8), calloc((size_t)gb.count, 8)};
        collect_gradients(&p, &o, want[0], want[1], want[2]);
        tensor *results[] = {&gx, &gw, &gb};
        static const char *const names[] = {"gx", "gw", "gb"};
        for (int k = 0; k < 3; k++) {
            for (int64_t i = 0; i < results[k]->count && wanted[k]; i++)
                check_near(names[k], results[k], i, want[k][i], k == 0 ? 64 : (double)o.y.count);
            assert_true(untouched_outside(results[k]));
            free(want[k]);
            free_tensor(results[k]);
        }
        aclDestroyBoolArray(mask);
        free_operands(&o);
    }
}

static void time_first_gradients(void **state) {
    (void)state;
    int64_t x_dims[] = {20, 2, 6}, w_dims[] = {3, 6, 5}, y_dims[] = {22, 2, 5}, five = 5;
    tensor x = make_tensor(ACL_FLOAT, 3, x_dims, STRIDED), w = make_tensor(ACL_FLOAT, 3, w_dims, CONTIGUOUS),
           g = make_tensor(ACL_FLOAT, 3, y_dims, OFFSET), gx = make_tensor(ACL_FLOAT, 3, x_dims, CONTIGUOUS),
           gw = make_tensor(ACL_FLOAT, 3, w_dims, TRANSPOSED), gb = make_tensor(ACL_FLOAT, 1, &five, CONTIGUOUS);
    double want_x[240] = {0}, want_w[90] = {0}, want_b[5] = {0};
    fill(&x);
    fill(&w);
    fill(&g);
    caller_value values[] = {T(g), T(x), T(w), P(NULL), I(2), I(0), T(gx), T(gw), T(gb)};
    if (call_op("ConvTbcBackward", values))
        fail_msg("%s", sentence());
    for (int64_t i = 0; i < g.count; i++) {
        int64_t out = i % 5, n = i / 5 % 2, t = i / 10;
        want_b[out] += get_element(&g, i);
        for (int64_t k = 0; k < 3; k++)
            for (int64_t c = 0; c < 6; c++)
                if (t + k - 2 >= 0 && t + k - 2 < 20) {
                    int64_t at = ((t + k - 2) * 2 + n) * 6 + c, to = (k * 6 + c) * 5 + out;
                    want_x[at] += get_element(&g, i) * get_element(&w, to);
                    want_w[to] += get_element(&g, i) * get_element(&x, at);
                }
    }
    for (int64_t i = 0; i < gx.count; i++)
        check_near("tbc gx", &gx, i, want_x[i], 16);
    for (int64_t i = 0; i < gw.count; i++)
        check_near("tbc gw", &gw, i, want_w[i], 64);
    for (int64_t i = 0; i < 5; i++)
        check_near("tbc gb", &gb, i, want_b[i], 64);
    tensor *all[] = {&x, &w, &g, &gx, &gw, &gb};
    for (int i = 0; i < 6; i++)
        free_tensor(all[i]);
}

static void empty_and_malformed(void **state) {
    (void)state;
    problem p = {2, 1, 2, 2, 3, false, true, {1, 5, 6}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}, {0}};
    assert_true(finish(&p));
    operands o = make_operands(&p, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT);
    int64_t zero = 0, three[] = {1, 1, 1}, wrong_dims[] = {1, 6, 5, 5}, no_batch[] = {0, 4, 5, 6},
            none[] = {0, 6, 5, 6};
    aclIntArray *zeros = aclCreateIntArray(&zero, 1), *threes = aclCreateIntArray(three, 3);
    tensor wrong = make_tensor(ACL_FLOAT, 4, wrong_dims, CONTIGUOUS),
           ints = make_tensor(ACL_INT32, 4, wrong_dims, OFFSET), x0 = make_tensor(ACL_FLOAT, 4, no_batch, CONTIGUOUS),
           y0 = make_tensor(ACL_FLOAT, 4, none, CONTIGUOUS);
    caller_value good[] = {T(o.x), T(o.w),     T(o.bias), P(o.stride), P(o.pad), P(o.dilation),
                           I(0),   P(o.extra), I(2),      T(o.y),      I(0)};
    struct {
        int at;
        caller_value value;
        const char *says;
    } cases[] = {{0, P(NULL), "input is NULL"},
                 {1, T(o.bias), "weight has 1 dimensions"},
                 {2, T(o.w), "bias has 4 dimensions"},
                 {3, P(zeros), "stride[0] is 0"},
                 {3, P(threes), "stride has 3 numbers"},
                 {5, P(zeros), "dilation[0] is 0"},
                 {8, I(3), "groups is 3"},
                 {8, I(0), "groups is 0"},
                 {8, I(1), "weight: dimension 1 is 2, but must be 4"},
                 {9, T(wrong), "width is 5, but must be 6"},
                 {9, T(ints), "has elements of type i32"},
                 {10, I(7), "cubeMathType is 7"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        caller_value values[11];
        memcpy(values, good, sizeof good);
        values[cases[i].at] = cases[i].value;
        assert_int_not_equal(call_op("Convolution", values), 0);
        if (!strstr(sentence(), cases[i].says))
            fail_msg("instead of \"%s\": %s", cases[i].says, sentence());
    }
    good[0] = (caller_value)T(x0);
    good[9] = (caller_value)T(y0);
    assert_int_equal(call_op("Convolution", good), 0);
    /* no input channels: the bias remains */
    int64_t x_dims[] = {1, 0, 3}, w_dims[] = {2, 0, 2}, y_dims[] = {1, 2, 2}, two = 2;
    tensor x = make_tensor(ACL_FLOAT, 3, x_dims, CONTIGUOUS), w = make_tensor(ACL_FLOAT, 3, w_dims, CONTIGUOUS),
           y = make_tensor(ACL_FLOAT, 3, y_dims, CONTIGUOUS), bias = make_tensor(ACL_FLOAT, 1, &two, CONTIGUOUS);
    fill(&bias);
    aclIntArray *ones = aclCreateIntArray(three, 1);
    caller_value values[] = {T(x), T(w), T(bias), P(ones), P(zeros), P(ones), I(0), P(NULL), I(1), T(y), I(0)};
    if (call_op("Convolution", values))
        fail_msg("%s", sentence());
    for (int64_t i = 0; i < 4; i++)
        assert_true(get_element(&y, i) == get_element(&bias, i / 2));
    tensor *all[] = {&wrong, &ints, &x0, &y0, &x, &w, &y, &bias};
    for (int i = 0; i < 8; i++)
        free_tensor(all[i]);
    aclDestroyIntArray(zeros);
    aclDestroyIntArray(threes);
    aclDestroyIntArray(ones);
    free_operands(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_of_all_shapes),
        cmocka_unit_test(large_convolutions),
        cmocka_unit_test(channels_last_and_uneven_padding),
        cmocka_unit_test(depthwise_and_time_first),
        cmocka_unit_test(unfold_and_fold),
        cmocka_unit_test(gradients_of_all_shapes),
        cmocka_unit_test(time_first_gradients),
        cmocka_unit_test(empty_and_malformed),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
