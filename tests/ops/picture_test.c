/* Convolutions and maxima of quantised pictures against plain loops: all windows, groups, tables and residuals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/quant/picture.h"
#include "ops/typed/typed.h"

static unsigned state = 12345;
static unsigned draw(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

enum { MOST = 1 << 16 };
static uint8_t x[MOST], y[4 * MOST], residual[MOST], table[DP_PICTURE_VALUES], outside[256];
static int8_t w[MOST], panels[16 * MOST];
static float numbers[5 * 2048]; /* factor, summand, the residual's factor, factor and summand behind the activation */

typedef struct shape {
    int64_t n, height, width, in, out, groups, kernel[2], stride[2], pad[4], spread[2], y_height, y_width;
    bool add, map, swish, floats, tiles;
} shape;

static dp_tensor tensor(int element, void *base, int rank, const int64_t *dims) {
    dp_tensor t = {.element = element, .rank = rank, .base = base};
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        t.dims[d] = dims[d];
        t.strides[d] = stride;
        stride *= dims[d];
    }
    return t;
}

static int64_t columns_of(const shape *s) {
    return s->out * s->groups * (s->tiles ? s->kernel[0] * s->kernel[1] : 1);
}

static int element_at(const shape *s, int64_t n, int64_t iy, int64_t ix, int64_t c) {
    if (iy < 0 || iy >= s->height || ix < 0 || ix >= s->width)
        return outside[c];
    return x[((n * s->height + iy) * s->width + ix) * s->in * s->groups + c];
}

/* The sum of column `column`, output channel o. Weights are [column][taps][in], of tiles [column][in]. */
static int64_t sum_at(const shape *s, int64_t n, int64_t oy, int64_t ox, int64_t o, int64_t column) {
    int64_t sum = 0;
    if (s->tiles) {
        for (int64_t c = 0; c < s->in; c++)
            sum += element_at(s, n, oy / s->kernel[0], ox / s->kernel[1], c) * w[column * s->in + c];
        return sum;
    }
    for (int64_t ky = 0; ky < s->kernel[0]; ky++)
        for (int64_t kx = 0; kx < s->kernel[1]; kx++)
            for (int64_t c = 0; c < s->in; c++)
                sum += element_at(s, n, oy * s->stride[0] - s->pad[0] + ky * s->spread[0],
                                  ox * s->stride[1] - s->pad[2] + kx * s->spread[1], o / s->out * s->in + c) *
                       w[((o * s->kernel[0] + ky) * s->kernel[1] + kx) * s->in + c];
    return sum;
}

/* The result before it is rounded. */
static double expected(const shape *s, int64_t n, int64_t oy, int64_t ox, int64_t o) {
    const int64_t all = columns_of(s);
    const int64_t column = s->tiles ? (oy % s->kernel[0] * s->kernel[1] + ox % s->kernel[1]) * s->out + o : o;
    const float *f = numbers + column;
    double v = (double)sum_at(s, n, oy, ox, o, column) * (double)f[0] + (double)f[all];
    if (s->add)
        v += (double)f[2 * all] * residual[((n * s->y_height + oy) * s->y_width + ox) * s->out * s->groups + o];
    if (s->swish)
        v = v * fmin(fmax(v / 6 + .5, 0), 1) * (double)f[3 * all] + (double)f[4 * all];
    return s->floats ? v : v < 0 ? 0 : v > 255 ? 255 : v;
}

static void check(const shape *s) {
    for (int64_t at = 0; at < s->n * s->y_height * s->y_width * s->out * s->groups; at++) {
        const int64_t o = at % (s->out * s->groups), p = at / (s->out * s->groups);
        double v = expected(s, p / s->y_width / s->y_height, p / s->y_width % s->y_height, p % s->y_width, o);
        double got = s->floats ? (double)((const float *)(const void *)y)[at] : y[at];
        bool fits = s->floats ? fabs(got - v) <= 1e-3 * (1 + fabs(v)) : fabs(got - v) <= .503;
        if (s->map)
            fits = y[at] == table[(int)floor(v + .497)] || y[at] == table[(int)floor(v + .503)];
        if (!fits)
            fail_msg(
                "%lld x %lld x %lld, %lld in, %lld out, %lld groups, kernel %lld x %lld, tiles %d: element %lld is %g, "
                "expected %g",
                (long long)s->n, (long long)s->height, (long long)s->width, (long long)s->in, (long long)s->out,
                (long long)s->groups, (long long)s->kernel[0], (long long)s->kernel[1], s->tiles, (long long)at, got,
                v);
    }
}

static dp_status run(const char *type, const dp_tensor *const *inputs, const void *const *values, int n_inputs,
                     const dp_tensor *output, const dp_arg *attributes, int n_attributes) {
    dp_typed_call call = {.inputs = inputs,
                          .values = values,
                          .outputs = &output,
                          .n_inputs = n_inputs,
                          .n_outputs = 1,
                          .attributes = attributes,
                          .n_attributes = n_attributes};
    dp_plan *plan;
    assert_int_equal(dp_typed_find(type, &call.type), DP_OK);
    dp_status status = dp_typed_prepare(&call, &plan);
    if (status != DP_OK)
        return status;
    status = plan->run(plan);
    dp_plan_free(plan);
    return status;
}

#define INTEGERS(NAME, LIST)                                                                                           \
    { .name = NAME, .kind = DP_ARG_INT_LIST, .count = 4, .as.integers = LIST }
#define PAIR(NAME, LIST)                                                                                               \
    { .name = NAME, .kind = DP_ARG_INT_LIST, .count = 2, .as.integers = LIST }
#define TEXT(NAME, VALUE)                                                                                              \
    { .name = NAME, .kind = DP_ARG_TEXT, .as.text = VALUE }
#define INTEGER(NAME, VALUE)                                                                                           \
    { .name = NAME, .kind = DP_ARG_INTEGER, .as.integer = VALUE }

/* The weights in the operator's form; how many bytes. */
static int64_t pack(const shape *s) {
    const int64_t taps = s->kernel[0] * s->kernel[1];
    if (s->in == 1 && s->out == 1 && !s->add && !s->floats && !s->tiles) {
        for (int64_t c = 0; c < s->groups; c++)
            for (int64_t t = 0; t < taps; t++)
                panels[t * s->groups + c] = w[c * taps + t];
        return taps * s->groups;
    }
    const int64_t parts = s->tiles ? s->kernel[0] : s->groups, k = s->in * (s->tiles ? 1 : taps),
                  columns = columns_of(s) / parts;
    const size_t bytes = dp_bytes_panel_bytes((size_t)k, (size_t)columns);
    for (int64_t p = 0; p < parts && bytes * (size_t)parts <= sizeof panels; p++)
        dp_bytes_pack(w + p * columns * k, (size_t)k, (size_t)columns, 1, k, panels + (size_t)p * bytes);
    return (int64_t)bytes * parts;
}

static dp_status run_convolution(const shape *s) {
    const int64_t channels = s->in * s->groups, outs = s->out * s->groups, values = DP_PICTURE_VALUES, bytes = pack(s);
    const dp_tensor tx = tensor(DP_U8, x, 4, (int64_t[]){s->n, s->height, s->width, channels}),
                    tw = tensor(DP_I8, panels, 1, &bytes),
                    tn = tensor(DP_F32, numbers, 2, (int64_t[]){5, columns_of(s)}),
                    to = tensor(DP_U8, outside, 1, &channels), tt = tensor(DP_U8, table, 1, &values),
                    ty = tensor(s->floats ? DP_F32 : DP_U8, y, 4, (int64_t[]){s->n, s->y_height, s->y_width, outs});
    dp_tensor tr = tensor(DP_U8, residual, 4, ty.dims);
    const dp_arg attributes[] = {INTEGER("out_channels", outs), PAIR("kernel", s->kernel),
                                 PAIR("strides", s->stride),    PAIR("dilations", s->spread),
                                 INTEGERS("pads", s->pad),      INTEGER("groups", s->groups),
                                 INTEGER("tiles", s->tiles),    TEXT("activation", s->swish ? "hard_swish" : "none")};
    const dp_tensor *inputs[] = {&tx, &tw, &tn, &to, s->map ? &tt : NULL, s->add ? &tr : NULL};
    const void *contents[] = {NULL, NULL, NULL, NULL, NULL, NULL};
    return run("QuantizedConv2D", inputs, contents, 6, &ty, attributes, 8);
}

static shape random_shape(void) {
    shape s = {.n = 1 + draw(2), .height = 1 + draw(14), .width = 1 + draw(14), .groups = 1};
    s.in = 1 + draw(draw(2) ? 9 : 70);
    s.out = 1 + draw(draw(2) ? 9 : 50);
    if (draw(3) == 0) {
        s.groups = 1 + draw(draw(2) ? 12 : 90);
        s.in = s.out = 1;
        if (draw(3) == 0) {
            s.groups = 1 + draw(3);
            s.in = 1 + draw(8);
            s.out = 1 + draw(8);
        }
    }
    for (int d = 0; d < 2; d++) {
        s.kernel[d] = draw(3) ? 1 + draw(3) : 1;
        s.stride[d] = 1 + draw(2);
        s.spread[d] = draw(4) ? 1 : 2;
        s.pad[2 * d] = draw(3);
        s.pad[2 * d + 1] = draw(3);
    }
    s.tiles = s.groups == 1 && draw(4) == 0;
    for (int d = 0; d < 2 && s.tiles; d++) {
        s.stride[d] = s.kernel[d];
        s.spread[d] = 1;
        s.pad[2 * d] = s.pad[2 * d + 1] = 0;
    }
    const int64_t reach_y = (s.kernel[0] - 1) * s.spread[0] + 1, reach_x = (s.kernel[1] - 1) * s.spread[1] + 1;
    s.y_height = (s.height + s.pad[0] + s.pad[1] - reach_y) / s.stride[0] + 1;
    s.y_width = (s.width + s.pad[2] + s.pad[3] - reach_x) / s.stride[1] + 1;
    if (s.height + s.pad[0] + s.pad[1] < reach_y || s.width + s.pad[2] + s.pad[3] < reach_x)
        s.y_height = 0;
    if (s.tiles) {
        s.y_height = s.height * s.kernel[0];
        s.y_width = s.width * s.kernel[1];
    }
    s.add = !s.tiles && draw(3) == 0;
    s.floats = draw(4) == 0;
    s.map = !s.floats && draw(3) == 0;
    s.swish = draw(2);
    return s;
}

static void convolutions(void **unused) {
    (void)unused;
    int done = 0;
    for (int i = 0; i < 600; i++) {
        shape s = random_shape();
        const int64_t outs = s.out * s.groups, in = s.n * s.height * s.width * s.in * s.groups;
        const int64_t filter = outs * s.kernel[0] * s.kernel[1] * s.in, out = s.n * s.y_height * s.y_width * outs;
        if (s.y_height < 1 || in > MOST || filter > MOST || out > MOST || pack(&s) > (int64_t)sizeof panels ||
            columns_of(&s) > 2048)
            continue;
        for (int64_t k = 0; k < in; k++)
            x[k] = (uint8_t)draw(256);
        for (int64_t k = 0; k < filter; k++)
            w[k] = (int8_t)((int)draw(255) - 127);
        for (int64_t k = 0; k < out; k++)
            residual[k] = (uint8_t)draw(256);
        for (int64_t k = 0, all = columns_of(&s); k < all; k++) {
            const float row[5] = {(float)(1 + draw(100)) * 2e-5f, (float)draw(100), .1f * (float)(1 + draw(12)),
                                  (float)draw(100) * .01f, (float)draw(100)};
            for (int i5 = 0; i5 < 5; i5++)
                numbers[i5 * all + k] = row[i5];
        }
        for (int64_t k = 0; k < s.in * s.groups; k++)
            outside[k] = (uint8_t)draw(256);
        for (int k = 0; k < DP_PICTURE_VALUES; k++)
            table[k] = (uint8_t)draw(256);
        memset(y, 0xee, sizeof y);
        if (run_convolution(&s) != DP_OK)
            fail_msg("%s", dp_fail_message());
        check(&s);
        for (int64_t k = out * (s.floats ? 4 : 1), end = k + 64; k < end && k < (int64_t)sizeof y; k++)
            assert_int_equal(y[k], 0xee);
        done++;
    }
    assert_true(done > 300);
}

static void maxima(void **unused) {
    (void)unused;
    enum { H = 7, W = 6, C = 35 };
    const int64_t window[] = {1, 3, 2, 1}, strides[] = {1, 2, 1, 1}, pads[] = {1, 1, 0, 1};
    const int64_t height = (H + 2 - 3) / 2 + 1, width = (W + 1 - 2) + 1;
    for (int k = 0; k < H * W * C; k++)
        x[k] = (uint8_t)draw(256);
    const dp_tensor tx = tensor(DP_U8, x, 4, (int64_t[]){1, H, W, C}),
                    ty = tensor(DP_U8, y, 4, (int64_t[]){1, height, width, C});
    const dp_arg attributes[] = {INTEGERS("ksize", window), INTEGERS("strides", strides), INTEGERS("pads", pads)};
    const dp_tensor *inputs[] = {&tx};
    const void *contents[] = {NULL};
    assert_int_equal(run("QuantizedMaxPool", inputs, contents, 1, &ty, attributes, 3), DP_OK);
    for (int64_t at = 0; at < height * width * C; at++) {
        const int64_t c = at % C, ox = at / C % width, oy = at / C / width;
        int most = 0;
        for (int64_t iy = oy * 2 - 1; iy < oy * 2 + 2; iy++)
            for (int64_t ix = ox; ix < ox + 2; ix++)
                if (iy >= 0 && iy < H && ix < W && x[(iy * W + ix) * C + c] > most)
                    most = x[(iy * W + ix) * C + c];
        assert_int_equal(y[at], most);
    }
}

static void there_and_back(void **unused) {
    (void)unused;
    enum { C = 37, H = 3, W = 19 };
    static float floats[C * H * W], again[C * H * W];
    for (int i = 0; i < C * H * W; i++)
        floats[i] = (float)((int)draw(20001) - 10000) * .002f;
    floats[0] = NAN;
    const dp_tensor tf = tensor(DP_F32, floats, 4, (int64_t[]){1, C, H, W}),
                    tu = tensor(DP_U8, y, 4, (int64_t[]){1, H, W, C}),
                    ta = tensor(DP_F32, again, 4, (int64_t[]){1, C, H, W});
    float scales[C], zeros[C];
    for (int c = 0; c < C; c++) {
        scales[c] = .25f;
        zeros[c] = (float)(60 + c % 2);
    }
    const int64_t channels = C;
    const dp_tensor ts = tensor(DP_F32, scales, 1, &channels), tz = tensor(DP_F32, zeros, 1, &channels);
    const dp_tensor *forth[] = {&tf, &ts, &tz}, *back[] = {&tu, &ts, &tz};
    const void *contents[] = {NULL, NULL, NULL};
    assert_int_equal(run("QuantizePicture", forth, contents, 3, &tu, NULL, 0), DP_OK);
    assert_int_equal(run("DequantizePicture", back, contents, 3, &ta, NULL, 0), DP_OK);
    for (int i = 1; i < C * H * W; i++) {
        const float zero = zeros[i / (H * W)], low = -zero * .25f, high = (255 - zero) * .25f;
        const float wanted = floats[i] < low ? low : floats[i] > high ? high : floats[i];
        assert_float_equal(again[i], wanted, .12501f);
    }
}

static void refused(shape s, const char *word) {
    assert_int_not_equal(run_convolution(&s), DP_OK);
    if (!strstr(dp_fail_message(), word))
        fail_msg("\"%s\" does not say %s", dp_fail_message(), word);
}

static void wrong_convolutions(void **unused) {
    (void)unused;
    shape good = {.n = 1,
                  .height = 4,
                  .width = 4,
                  .in = 3,
                  .out = 2,
                  .groups = 1,
                  .kernel = {3, 3},
                  .stride = {1, 1},
                  .spread = {1, 1},
                  .y_height = 2,
                  .y_width = 2};
    memset(w, 1, sizeof w);
    memset(x, 1, sizeof x);
    assert_int_equal(run_convolution(&good), DP_OK);
    shape s = good;
    s.y_width = 3;
    refused(s, "y");
    s = good;
    s.stride[0] = 0;
    refused(s, "strides");
    s = good;
    s.pad[1] = -1;
    refused(s, "pads");
    s = good;
    s.kernel[0] = 5;
    s.y_height = 0;
    refused(s, "does not go with");
    s = good;
    s.tiles = true;
    refused(s, "tiles");
    s = good;
    s.floats = s.map = true;
    refused(s, "table");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(maxima),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(wrong_convolutions),
    };
    return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}
