/* Pooling and resampling against plain loops in double, written from the formulas. */
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

static void check_near(const char *name, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i);
    if (!(fabs(got - want) <= unit(t->type) * fabs(want) + scale * 0x1p-20 + 1e-7))
        fail_msg("%s type %d, element %lld: %.12g, but must be %.12g", name, t->type, (long long)i, got, want);
}

/* An image of up to 3 dims of space, absent ones of size 1; without a batch where batched is false. */
static tensor image(aclDataType type, int space, bool batched, int64_t batch, int64_t channels, const int64_t *size,
                    layout how) {
    int64_t dims[5] = {batch, channels};
    for (int i = 0; i < space; i++)
        dims[2 + i] = size[3 - space + i];
    return make_tensor(type, space + 1 + batched, dims + !batched, how);
}

typedef struct pooling {
    int space;
    bool batched, ceil, with_padding, adaptive;
    int64_t batch, channels, divisor, in[3], kernel[3], stride[3], pad[3], dilation[3], out[3];
} pooling;

/* The rule of the documentation: rounded down or up, a window that begins past the image and the padding before it is
 * dropped. */
static int64_t positions(const pooling *p, int d) {
    double room = (double)(p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->kernel[d] - 1) - 1) / (double)p->stride[d];
    int64_t n = (int64_t)(p->ceil ? ceil(room) : floor(room)) + 1;
    if (p->ceil && (n - 1) * p->stride[d] >= p->in[d] + p->pad[d])
        n--;
    return room < 0 ? 0 : n;
}

static pooling random_pooling(int space, bool adaptive, bool dilated) {
    pooling p;
    bool good;
    do {
        good = true;
        p = (pooling){.space = space, .adaptive = adaptive};
        p.batched = random_bits() & 1;
        p.batch = p.batched ? between(1, 2) : 1;
        p.channels = between(1, 4);
        p.ceil = random_bits() & 1;
        p.with_padding = random_bits() & 1;
        p.divisor = adaptive || random_bits() & 1 ? 0 : between(1, 9);
        for (int d = 0; d < 3; d++) {
            bool used = d >= 3 - space;
            p.in[d] = used ? between(1, space == 2 ? 70 : 9) : 1;
            p.kernel[d] = used ? between(1, 5) : 1;
            p.stride[d] = used ? between(1, 4) : 1;
            p.dilation[d] = used && dilated ? between(1, 2) : 1;
            p.pad[d] = used ? between(0, p.kernel[d] / 2) : 0;
            p.out[d] = adaptive ? (used ? between(1, 12) : 1) : positions(&p, d);
            good = good && p.out[d] > 0;
        }
    } while (!good);
    return p;
}

/* The elements of the window along one axis; returns the length that an average divides by. */
static int64_t window(const pooling *p, int d, int64_t o, int64_t *list, int *n) {
    *n = 0;
    if (p->adaptive) {
        int64_t first = (int64_t)floor((double)o * (double)p->in[d] / (double)p->out[d]);
        int64_t last = (int64_t)ceil((double)(o + 1) * (double)p->in[d] / (double)p->out[d]);
        for (int64_t i = first; i < last; i++)
            list[(*n)++] = i;
        return *n;
    }
    int64_t padded = 0;
    for (int64_t k = 0; k < p->kernel[d]; k++) {
        int64_t at = o * p->stride[d] - p->pad[d] + k * p->dilation[d];
        padded += at < p->in[d] + p->pad[d];
        if (at >= 0 && at < p->in[d])
            list[(*n)++] = at;
    }
    return p->with_padding ? padded : *n;
}

static void check_pooling(const char *name, const pooling *p, const tensor *x, const tensor *y, const tensor *indices,
                          bool average) {
    int64_t plane = p->in[0] * p->in[1] * p->in[2], out = p->out[0] * p->out[1] * p->out[2];
    for (int64_t i = 0; i < y->count; i++) {
        int64_t at[3] = {i % out / (p->out[1] * p->out[2]), i % out / p->out[2] % p->out[1], i % p->out[2]};
        int64_t list[3][80], size = 1, best_at = -1;
        int n[3];
        for (int d = 0; d < 3; d++)
            size *= window(p, d, at[d], list[d], &n[d]);
        double sum = 0, scale = 0, best = -INFINITY;
        for (int a = 0; a < n[0]; a++)
            for (int b = 0; b < n[1]; b++)
                for (int c = 0; c < n[2]; c++) {
                    int64_t from = (list[0][a] * p->in[1] + list[1][b]) * p->in[2] + list[2][c];
                    double v = get_element(x, i / out * plane + from);
                    sum += v;
                    scale += fabs(v);
                    if (v > best) {
                        best = v;
                        best_at = from;
                    }
                }
        if (average) {
            double by = p->divisor ? (double)p->divisor : (double)size;
            check_near(name, y, i, sum / by, scale / by);
            continue;
        }
        if (get_element(y, i) != best && best_at >= 0)
            fail_msg("%s element %lld: %g, but must be %g", name, (long long)i, get_element(y, i), best);
        if (indices && best_at >= 0)
            assert_int_equal((int64_t)get_element(indices, i), best_at);
    }
    assert_true(untouched_outside(y));
}

static void run_pooling(const pooling *p, bool average, bool with_indices, aclDataType type) {
    tensor x = image(type, p->space, p->batched, p->batch, p->channels, p->in, any_layout()),
           y = image(type, p->space, p->batched, p->batch, p->channels, p->out, any_layout()),
           at = image(random_bits() & 1 ? ACL_INT64 : ACL_INT32, p->space, p->batched, p->batch, p->channels, p->out,
                      any_layout());
    fill(&x);
    int first = 3 - p->space;
    uint64_t n = (uint64_t)p->space;
    aclIntArray *kernel = aclCreateIntArray(p->kernel + first, n), *stride = aclCreateIntArray(p->stride + first, n),
                *pad = aclCreateIntArray(p->pad + first, n), *dilation = aclCreateIntArray(p->dilation + first, n),
                *size = aclCreateIntArray(p->out + first, n);
    caller_value plain[] = {T(x),          P(kernel), P(stride), P(pad), I(p->ceil), I(p->with_padding),
                            I(p->divisor), I(0),      T(y)};
    caller_value deep[] = {T(x), P(kernel), P(stride), P(pad), I(p->ceil), I(p->with_padding), I(p->divisor), T(y)};
    caller_value max[] = {T(x), P(kernel), P(stride), I(0), P(pad), P(dilation), I(p->ceil), T(y)};
    caller_value indexed[] = {T(x), P(kernel), P(stride), P(pad), P(dilation), I(p->ceil), T(y), T(at)};
    caller_value adaptive[] = {T(x), P(size), T(y), T(at)};
    const char *name = p->adaptive && average ? (p->space == 2 ? "AdaptiveAvgPool2d" : "AdaptiveAvgPool3d")
                       : p->adaptive          ? (p->space == 2 ? "AdaptiveMaxPool2d" : "AdaptiveMaxPool3d")
                       : average              ? (p->space == 2 ? "AvgPool2d" : "AvgPool3d")
                       : !with_indices        ? "MaxPool"
                       : p->space == 2        ? "MaxPool2dWithIndices"
                                              : "MaxPool3dWithArgmax";
    if (call_op(name, p->adaptive     ? adaptive
                      : average       ? (p->space == 2 ? plain : deep)
                      : !with_indices ? max
                                      : indexed))
        fail_msg("%s: %s", name, sentence());
    check_pooling(name, p, &x, &y, with_indices ? &at : NULL, average);
    aclIntArray *lists[] = {kernel, stride, pad, dilation, size};
    for (int i = 0; i < 5; i++)
        aclDestroyIntArray(lists[i]);
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&at);
}

static void pooling_of_all_kinds(void **state) {
    (void)state;
    for (int round = 0; round < 210; round++) {
        int form =
            round % 7; /* average 2 and 3 dims, max, max with indices 2 and 3 dims, adaptive average, adaptive max */
        bool average = form < 2 || form == 5, adaptive = form >= 5;
        int space = form == 1 || form == 4 ? 3 : adaptive ? 2 + round / 7 % 2 : 2;
        pooling p = random_pooling(space, adaptive, form >= 2 && !adaptive);
        run_pooling(&p, average, form >= 3 && form != 5, floats[round / 7 % 3]);
    }
}

static void maxima_hand_nan_on(void **state) {
    (void)state;
    int64_t in[] = {1, 1, 3, 4}, out[] = {1, 1, 2, 2}, two = 2, one = 1;
    tensor x = make_tensor(ACL_FLOAT, 4, in, CONTIGUOUS), y = make_tensor(ACL_FLOAT, 4, out, CONTIGUOUS),
           at = make_tensor(ACL_INT64, 4, out, CONTIGUOUS);
    for (int64_t i = 0; i < 12; i++)
        set_element(&x, i, i == 5 ? NAN : i < 4 ? -INFINITY : (double)-i);
    aclIntArray *kernel = aclCreateIntArray(&two, 1), *stride = aclCreateIntArray((const int64_t[]){1, 2}, 2),
                *none = aclCreateIntArray(NULL, 0), *ones = aclCreateIntArray(&one, 1);
    caller_value max[] = {T(x), P(kernel), P(stride), I(0), P(none), P(none), I(0), T(y)};
    caller_value indexed[] = {T(x), P(kernel), P(stride), P(none), P(ones), I(0), T(y), T(at)};
    for (int form = 0; form < 2; form++) {
        if (form ? call_op("MaxPool2dWithIndices", indexed) : call_op("MaxPool", max))
            fail_msg("%s", sentence());
        assert_true(isnan(get_element(&y, 0)) && isnan(get_element(&y, 2)));
        assert_true(get_element(&y, 1) == -6 && get_element(&y, 3) == -6);
    }
    assert_true(get_element(&at, 0) == 5 && get_element(&at, 1) == 6 && get_element(&at, 3) == 6);
    uint64_t size =
        1; /* ggml's input buffer is too short for what it pads: a workspace behind it would be overwritten */
    aclOpExecutor *executor;
    assert_int_equal(find_caller("MaxPool")->prepare(max, &size, &executor), 0);
    assert_true(size == 0);
    aclDestroyAclOpExecutor(executor);
    max[3].integer = 1;
    assert_int_equal(call_op("MaxPool", max), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "autoPad is 1"));
    max[3].integer = 0;
    max[4].pointer = kernel;
    assert_int_equal(call_op("MaxPool", max), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "pads is 2, but must be at most half of the kernel"));
    max[4].pointer = ones;
    assert_int_equal(call_op("MaxPool", max), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "height is 2, but must be 4"));
    aclIntArray *lists[] = {kernel, stride, none, ones};
    for (int i = 0; i < 4; i++)
        aclDestroyIntArray(lists[i]);
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&at);
}

/* Gradients spread what pooling collected; the way back by indices. */
static void run_pooling_gradient(const pooling *p, int form, aclDataType type) {
    const bool average = form < 2; /* average, adaptive average, indices, adaptive indices, unpool */
    tensor x = image(type, p->space, p->batched, p->batch, p->channels, p->in, any_layout()),
           gx = image(type, p->space, p->batched, p->batch, p->channels, p->in, any_layout()),
           g = image(type, p->space, p->batched, p->batch, p->channels, p->out, any_layout()),
           at = image(ACL_INT64, p->space, p->batched, p->batch, p->channels, p->out, any_layout());
    fill(&x);
    fill(&g);
    int first = 3 - p->space;
    uint64_t n = (uint64_t)p->space;
    aclIntArray *kernel = aclCreateIntArray(p->kernel + first, n), *stride = aclCreateIntArray(p->stride + first, n),
                *pad = aclCreateIntArray(p->pad + first, n), *size = aclCreateIntArray(p->in + first, n);
    int64_t plane = p->in[0] * p->in[1] * p->in[2], out = p->out[0] * p->out[1] * p->out[2];
    double *want = calloc((size_t)x.count, sizeof *want);
    for (int64_t i = 0; i < g.count; i++) {
        int64_t place[3] = {i % out / (p->out[1] * p->out[2]), i % out / p->out[2] % p->out[1], i % p->out[2]};
        int64_t list[3][80], length = 1, index = (i * 7919) % plane;
        int count[3];
        for (int d = 0; d < 3; d++)
            length *= window(p, d, place[d], list[d], &count[d]);
        double by = p->divisor ? (double)p->divisor : (double)length;
        for (int a = 0; a < count[0] && average; a++)
            for (int b = 0; b < count[1]; b++)
                for (int c = 0; c < count[2]; c++)
                    want[i / out * plane + (list[0][a] * p->in[1] + list[1][b]) * p->in[2] + list[2][c]] +=
                        get_element(&g, i) / by;
        set_element(&at, i, (double)index);
        if (!average)
            want[i / out * plane + index] = get_element(&g, i) + (form == 4 ? 0 : want[i / out * plane + index]);
    }
    caller_value plain[] = {T(g),          T(x), P(kernel), P(stride), P(pad), I(p->ceil), I(p->with_padding),
                            I(p->divisor), I(0), T(gx)};
    caller_value deep[] = {T(g),          T(x), P(kernel), P(stride), P(pad), I(p->ceil), I(p->with_padding),
                           I(p->divisor), T(gx)};
    caller_value adaptive[] = {T(g), T(x), T(gx)};
    caller_value indexed[] = {T(g), T(x), T(at), P(kernel), P(stride), P(pad), P(stride), I(0), T(gx)};
    caller_value adaptive_indexed[] = {T(g), T(x), T(at), T(gx)}, unpool[] = {T(g), T(at), P(size), T(gx)},
                 deep_unpool[] = {T(g), T(at), P(size), P(stride), P(pad), T(gx)};
    bool flat = p->space == 2;
    const char *names[5][2] = {{"AvgPool2dBackward", "AvgPool3dBackward"},
                               {"AdaptiveAvgPool2dBackward", "AdaptiveAvgPool3dBackward"},
                               {"MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmaxBackward"},
                               {"AdaptiveMaxPool2dBackward", "AdaptiveMaxPool3dBackward"},
                               {"MaxUnpool2d", "MaxUnpool3d"}};
    caller_value *values[] = {flat ? plain : deep, adaptive, indexed, adaptive_indexed, flat ? unpool : deep_unpool};
    const char *name = names[form][!flat];
    if (call_op(name, values[form]))
        fail_msg("%s: %s", name, sentence());
    for (int64_t i = 0; i < gx.count; i++)
        check_near(name, &gx, i, want[i], 32);
    assert_true(untouched_outside(&gx));
    if (!average) { /* a stream of its own: it fails */
        set_element(&at, 0, (double)plane);
        const caller *op = find_caller(name);
        aclrtStream stream;
        uint64_t bytes = 0;
        aclOpExecutor *executor;
        assert_int_equal(aclrtCreateStream(&stream), 0);
        assert_int_equal(op->prepare(values[form], &bytes, &executor), 0);
        assert_int_equal(op->run(NULL, bytes, executor, stream), 0);
        assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
        assert_non_null(strstr(sentence(), "an index is"));
        assert_int_equal(aclrtDestroyStream(stream), 0);
    }
    free(want);
    aclIntArray *lists[] = {kernel, stride, pad, size};
    for (int i = 0; i < 4; i++)
        aclDestroyIntArray(lists[i]);
    tensor *all[] = {&x, &gx, &g, &at};
    for (int i = 0; i < 4; i++)
        free_tensor(all[i]);
}

static void pooling_gradients(void **state) {
    (void)state;
    for (int round = 0; round < 100; round++) {
        int form = round % 5;
        pooling p = random_pooling(2 + round / 5 % 2, form == 1, false);
        if (form == 4) /* each element once */
            for (int d = 3 - p.space; d < 3; d++)
                p.in[d] = p.in[d] < p.out[d] ? p.out[d] : p.in[d];
        run_pooling_gradient(&p, form, floats[round / 10 % 3]);
    }
}

/* ---- resampling ---- */

typedef enum kind { NEAREST, EXACT, LINEAR, CUBIC, LINEAR_AA, CUBIC_AA } kind;
typedef struct resampling {
    const char *name, *gradient;
    kind kind;
    int space;
    bool align; /* has the argument */
    int scales; /* arguments */
} resampling;
static const resampling resamplings[] = {
    {"UpsampleNearest1d", NULL, NEAREST, 1, false, 0},
    {"UpsampleNearest1dV2", "UpsampleNearest1dBackward", NEAREST, 1, false, 1},
    {"UpsampleNearest2d", NULL, NEAREST, 2, false, 0},
    {"UpsampleNearest2dV2", "UpsampleNearest2dBackward", NEAREST, 2, false, 2},
    {"UpsampleNearest3d", "UpsampleNearest3dBackward", NEAREST, 3, false, 3},
    {"UpsampleNearestExact1d", "UpsampleNearestExact1dBackward", EXACT, 1, false, 1},
    {"UpsampleNearestExact2d", "UpsampleNearestExact2dBackward", EXACT, 2, false, 2},
    {"UpsampleNearestExact3d", "UpsampleNearestExact3dBackward", EXACT, 3, false, 3},
    {"UpsampleLinear1d", "UpsampleLinear1dBackward", LINEAR, 1, true, 1},
    {"UpsampleBilinear2d", "UpsampleBilinear2dBackward", LINEAR, 2, true, 2},
    {"UpsampleBilinear2d", "UpsampleBilinear2dBackwardV2", LINEAR, 2, true, 2},
    {"UpsampleTrilinear3d", "UpsampleTrilinear3dBackward", LINEAR, 3, true, 3},
    {"UpsampleBicubic2d", "UpsampleBicubic2dBackward", CUBIC, 2, true, 2},
    {"UpsampleBilinear2dAA", "UpsampleBilinear2dAABackward", LINEAR_AA, 2, true, 2},
    {"UpsampleBicubic2dAA", "UpsampleBicubic2dAAGrad", CUBIC_AA, 2, true, 2},
};

static double kernel_of(kind k, double x) {
    double a = k == CUBIC ? -0.75 : -0.5;
    x = fabs(x);
    if (k == LINEAR || k == LINEAR_AA)
        return x < 1 ? 1 - x : 0;
    return x < 1 ? (a + 2) * x * x * x - (a + 3) * x * x + 1 : x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

/* weights[i] of all `in` elements in position o. scale 0: not given */
static void weigh(kind k, bool align, double scale, int64_t in, int64_t out, int64_t o, double *weights) {
    double r = align       ? (out > 1 ? (double)(in - 1) / (double)(out - 1) : 0)
               : scale > 0 ? 1 / scale
                           : (double)in / (double)out;
    for (int64_t i = 0; i < in; i++)
        weights[i] = 0;
    if (k == NEAREST || k == EXACT) {
        /* the tiny term keeps whole quotients whole */
        int64_t at = (int64_t)floor(((double)o + (k == EXACT ? 0.5 : 0)) * r + 1e-9);
        weights[at < in ? at : in - 1] = 1;
        return;
    }
    if (k == LINEAR || k == CUBIC) {
        double at = align ? (double)o * r : ((double)o + 0.5) * r - 0.5;
        if (k == LINEAR && at < 0)
            at = 0;
        for (int64_t i = (int64_t)floor(at) - 1; i <= (int64_t)floor(at) + 2; i++)
            weights[i < 0 ? 0 : i >= in ? in - 1 : i] += kernel_of(k, at - (double)i);
        return;
    }
    double stretch = r > 1 ? r : 1, centre = ((double)o + 0.5) * r, sum = 0;
    for (int64_t i = 0; i < in; i++)
        sum += weights[i] = kernel_of(k, ((double)i + 0.5 - centre) / stretch);
    for (int64_t i = 0; i < in; i++)
        weights[i] /= sum;
}

enum { SIZE_MAX_ = 40 };

static void run_resampling(const resampling *s, aclDataType type, bool scaled) {
    bool align = s->align && random_bits() & 1, batched = random_bits() & 1;
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, batch = batched ? 2 : 1, channels = 3;
    double scale[3] = {0, 0, 0};
    for (int d = 3 - s->space; d < 3; d++) {
        in[d] = between(1, s->space == 3 ? 6 : 17);
        out[d] = between(1, s->space == 3 ? 9 : SIZE_MAX_);
        if (scaled && s->scales && !align) { /* powers of two, so that float and double agree where they lie */
            scale[d] = (double[]){0.5, 2, 4, 1.25}[random_bits() % 4];
            out[d] = (int64_t)floor((double)in[d] * scale[d]);
            if (out[d] < 1)
                in[d] = 2, out[d] = 1, scale[d] = 0.5;
        }
    }
    if (s->kind >= LINEAR_AA)
        align = false; /* the stretched kernel is defined without */
    static double weights[3][SIZE_MAX_ * 4][SIZE_MAX_ * 4];
    for (int d = 0; d < 3; d++)
        for (int64_t o = 0; o < out[d]; o++)
            weigh(d < 3 - s->space ? NEAREST : s->kind, align, scale[d], in[d], out[d], o, weights[d][o]);
    tensor x = image(type, s->space, batched, batch, channels, in, any_layout()),
           y = image(type, s->space, batched, batch, channels, out, any_layout()),
           back = image(type, s->space, batched, batch, channels, in, any_layout());
    fill(&x);
    aclIntArray *size = aclCreateIntArray(out + 3 - s->space, (uint64_t)s->space);
    aclIntArray *shape = aclCreateIntArray(x.dims, (uint64_t)x.rank);
    caller_value values[8] = {T(x), P(size)}, gradient[8] = {T(y), P(size), P(shape)};
    int n = 2, m = 3;
    if (s->align) {
        values[n++].integer = align;
        gradient[m++].integer = align;
    }
    for (int i = 0; i < s->scales; i++) {
        double value = scale[3 - s->scales + i];
        values[n++].real = value ? value : random_bits() & 1 ? 0 : 1; /* 1 stands for "none" too */
        gradient[m++].real = value;
    }
    /* a scale of 1 that is meant: sizes equal, nothing else to tell */
    values[n].pointer = y.handle;
    gradient[m].pointer = back.handle;
    if (call_op(s->name, values))
        fail_msg("%s: %s", s->name, sentence());
    int64_t ni = in[0] * in[1] * in[2], no = out[0] * out[1] * out[2];
    double *sums = calloc((size_t)x.count, sizeof *sums);
    for (int64_t i = 0; i < y.count; i++) {
        const double *wz = weights[0][i % no / (out[1] * out[2])], *wy = weights[1][i % no / out[2] % out[1]],
                     *wx = weights[2][i % out[2]];
        double want = 0;
        for (int64_t e = 0; e < ni; e++) {
            double w = wz[e / (in[1] * in[2])] * wy[e / in[2] % in[1]] * wx[e % in[2]];
            want += w * get_element(&x, i / no * ni + e);
            sums[i / no * ni + e] += w * get_element(&y, i);
        }
        char text[160];
        snprintf(text, sizeof text, "%s %d,%d,%d -> %d,%d,%d align %d scale %g", s->name, (int)in[0], (int)in[1],
                 (int)in[2], (int)out[0], (int)out[1], (int)out[2], align, scale[2]);
        check_near(text, &y, i, want, 8);
    }
    assert_true(untouched_outside(&y));
    if (s->gradient) {
        if (call_op(s->gradient, gradient))
            fail_msg("%s: %s", s->gradient, sentence());
        for (int64_t i = 0; i < back.count; i++)
            check_near(s->gradient, &back, i, sums[i], 64);
        assert_true(untouched_outside(&back));
    }
    free(sums);
    aclDestroyIntArray(size);
    aclDestroyIntArray(shape);
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&back);
}

static void resampling_of_all_kinds(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof resamplings / sizeof resamplings[0]; k++)
        for (int round = 0; round < 24; round++)
            run_resampling(&resamplings[k], floats[round % 3], round % 2);
}

static void resampling_says_what_is_wrong(void **state) {
    (void)state;
    int64_t in[] = {1, 2, 3, 3}, out[] = {1, 2, 6, 7}, size[] = {6, 6}, odd[] = {1, 3, 6, 6}, nothing[] = {1, 2, 0, 3};
    tensor x = make_tensor(ACL_FLOAT, 4, in, CONTIGUOUS), y = make_tensor(ACL_FLOAT, 4, out, CONTIGUOUS),
           z = make_tensor(ACL_FLOAT, 4, odd, CONTIGUOUS), none = make_tensor(ACL_FLOAT, 4, nothing, CONTIGUOUS);
    aclIntArray *list = aclCreateIntArray(size, 2);
    caller_value values[] = {T(x), P(list), T(y)};
    assert_int_equal(call_op("UpsampleNearest2d", values), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "outputSize[1] is 6, but must be 7"));
    values[2] = (caller_value)T(z);
    assert_int_equal(call_op("UpsampleNearest2d", values), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "3 channels, but must have 1 and 2"));
    values[0] = (caller_value)T(none);
    values[2] = (caller_value)T(y);
    size[1] = 7;
    aclDestroyIntArray(list);
    list = aclCreateIntArray(size, 2);
    values[1].pointer = list;
    assert_int_equal(call_op("UpsampleNearest2d", values), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "self is empty along dimension 0"));
    aclDestroyIntArray(list);
    tensor *all[] = {&x, &y, &z, &none};
    for (int i = 0; i < 4; i++)
        free_tensor(all[i]);
}

/* ---- sampling by a grid ---- */

static double reflect(double x, double low, double high) {
    if (high <= low)
        return 0;
    while (x < low || x > high)
        x = x < low ? 2 * low - x : 2 * high - x;
    return x;
}

/* The place that padding turns x into; zeros: itself. */
static double padded(double x, int64_t size, int padding, bool align) {
    double last = (double)(size - 1);
    if (padding == 2)
        x = align ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5);
    return padding == 0 ? x : x < 0 ? 0 : x > last ? last : x;
}

/* Weights of all elements along an axis, for the coordinate g; out of the image: nothing. */
static void weigh_place(double g, int64_t size, int interpolation, int padding, bool align, double *weights) {
    double x = align ? (g + 1) / 2 * (double)(size - 1) : ((g + 1) * (double)size - 1) / 2;
    for (int64_t i = 0; i < size; i++)
        weights[i] = 0;
    if (interpolation != 2)
        x = padded(x, size, padding, align);
    for (int64_t k = (int64_t)floor(x) - 1; k <= (int64_t)floor(x) + 2; k++) {
        double w =
            interpolation == 1 ? k == (int64_t)rint(x) : kernel_of(interpolation ? CUBIC : LINEAR, x - (double)k);
        int64_t at = interpolation == 2 ? (int64_t)rint(padded((double)k, size, padding, align)) : k;
        if (at >= 0 && at < size)
            weights[at] += w;
    }
}

static void grid_sampling(void **state) {
    (void)state;
    for (int round = 0; round < 90; round++) {
        int space = 2 + round % 2, interpolation = (int)between(0, space == 2 ? 2 : 1), padding = round / 2 % 3;
        bool align = random_bits() & 1;
        int64_t in[3] = {1, between(1, 7), between(1, 8)}, out[3] = {1, between(1, 4), between(1, 9)};
        if (space == 3) {
            in[0] = between(1, 4);
            out[0] = between(1, 3);
        }
        aclDataType type = floats[round / 6 % 3];
        int64_t grid_dims[5] = {2};
        memcpy(grid_dims + 1, out + 3 - space, (size_t)space * sizeof *out);
        grid_dims[1 + space] = space;
        tensor x = image(type, space, true, 2, 3, in, any_layout()),
               y = image(type, space, true, 2, 3, out, any_layout()),
               grid = make_tensor(type, space + 2, grid_dims, any_layout());
        fill(&x);
        for (int64_t i = 0; i < grid.count; i++) /* no place near a half, where nearest would be a matter of rounding */
            set_element(&grid, i, random_between(-1.6, 1.6));
        caller_value values[] = {T(x), T(grid), I(interpolation), I(padding), I(align), T(y)};
        const char *name = space == 2 ? "GridSampler2D" : "GridSampler3D";
        if (call_op(name, values))
            fail_msg("%s: %s", name, sentence());
        int64_t ni = in[0] * in[1] * in[2], no = out[0] * out[1] * out[2];
        for (int64_t i = 0; i < y.count; i++) {
            double w[3][8] = {{1}, {1}, {1}}, want = 0;
            bool tie = false;
            for (int d = 3 - space; d < 3; d++) {
                double g = get_element(&grid, ((i / no / 3) * no + i % no) * space + (2 - d));
                double at = align ? (g + 1) / 2 * (double)(in[d] - 1) : ((g + 1) * (double)in[d] - 1) / 2;
                tie = tie || (interpolation == 1 && fabs(fabs(at - floor(at)) - 0.5) < 1e-4);
                weigh_place(g, in[d], interpolation, padding, align, w[d]);
            }
            for (int64_t e = 0; e < ni; e++)
                want += w[0][e / (in[1] * in[2])] * w[1][e / in[2] % in[1]] * w[2][e % in[2]] *
                        get_element(&x, i / no * ni + e);
            if (!tie)
                check_near(name, &y, i, want, 16);
        }
        assert_true(untouched_outside(&y));
        set_element(&grid, 0, NAN);
        assert_int_equal(call_op(name, values), 0);
        values[2].integer = space == 2 ? 3 : 2;
        assert_int_equal(call_op(name, values), ACLNN_ERR_PARAM_INVALID);
        assert_non_null(strstr(sentence(), "interpolation_mode is"));
        free_tensor(&x);
        free_tensor(&y);
        free_tensor(&grid);
    }
}

static void affine_grids(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++) {
        int space = 2 + form % 2;
        bool align = form / 2;
        int64_t size[] = {2, 5, 3, 4, 6}, theta_dims[] = {2, space, space + 1}, grid_dims[5] = {2};
        memcpy(grid_dims + 1, size + 2, (size_t)space * sizeof *size);
        grid_dims[1 + space] = space;
        tensor theta = make_tensor(ACL_FLOAT, 3, theta_dims, STRIDED),
               grid = make_tensor(ACL_FLOAT, space + 2, grid_dims, any_layout());
        fill(&theta);
        aclIntArray *list = aclCreateIntArray(size, (uint64_t)(2 + space));
        caller_value values[] = {T(theta), P(list), I(align), T(grid)};
        if (call_op("AffineGrid", values))
            fail_msg("%s", sentence());
        for (int64_t i = 0; i < grid.count; i++) {
            int64_t k = i % space, rest = i / space;
            double want = 0, place[4] = {0};
            for (int d = space - 1; d >= 0; d--) { /* x is the last dim and the first coordinate */
                double n = (double)size[2 + d], at = (double)(rest % size[2 + d]);
                place[space - 1 - d] = align ? 2 * at / (n - 1) - 1 : (2 * at + 1) / n - 1;
                rest /= size[2 + d];
            }
            place[space] = 1;
            for (int c = 0; c <= space; c++)
                want += get_element(&theta, (rest * space + k) * (space + 1) + c) * place[c];
            check_near("AffineGrid", &grid, i, want, 8);
        }
        aclDestroyIntArray(list);
        free_tensor(&theta);
        free_tensor(&grid);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_of_all_kinds),
        cmocka_unit_test(maxima_hand_nan_on),
        cmocka_unit_test(pooling_gradients),
        cmocka_unit_test(resampling_of_all_kinds),
        cmocka_unit_test(resampling_says_what_is_wrong),
        cmocka_unit_test(grid_sampling),
        cmocka_unit_test(affine_grids),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
