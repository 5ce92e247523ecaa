/* Quantising operators against their formulas in double. */
#include "arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType halves[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void fill(tensor *t, double low, double high) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, random_between(low, high));
}

static double cut(double v, double low, double high) {
    return v < low ? low : v > high ? high : v;
}

/* The integer may be one off where the value before rounding, computed in float, is within `slack` of a half. */
static void near_integer(const char *name, double got, double before, double rounded, double slack) {
    if (got == rounded)
        return;
    if (fabs(got - rounded) == 1 && fabs(before - floor(before) - 0.5) <= slack)
        return;
    fail_msg("%s gives %g, but must give %g (%.9g)", name, got, rounded, before);
}

/* A result of 4-bit integers: eight in an int32. */
static double nibble(const tensor *t, int64_t i) {
    int64_t word = (int64_t)get_element(t, i / 8);
    int64_t four = word >> (i % 8 * 4) & 15;
    return (double)(four ^ 8) - 8;
}

static double by_name(const char *rounding, double v) {
    return strcmp(rounding, "floor") == 0   ? floor(v)
           : strcmp(rounding, "ceil") == 0  ? ceil(v)
           : strcmp(rounding, "trunc") == 0 ? trunc(v)
                                            : rint(v);
}

static void ascend(void **state) {
    (void)state;
    static const char *const roundings[] = {"round", "floor", "ceil", "trunc", NULL};
    for (int c = 0; c < 60; c++) {
        aclDataType type = halves[c % 3];
        const bool square = c >> 1 & 1, four = c % 4 == 3, v3 = c & 1, rows = v3 && c % 3 == 0;
        int64_t dims[] = {2, 5, 48}, words[] = {2, 5, 6}, one = 1;
        const char *rounding = roundings[c % 5];
        tensor x = make_tensor(type, 3, dims, any_layout());
        tensor scale = make_tensor(type, 1, c % 7 == 0 ? &one : rows ? dims + 1 : dims + 2, any_layout());
        tensor offset = make_tensor(type, 1, c % 7 == 0 ? &one : rows ? dims + 1 : dims + 2, any_layout());
        tensor y = make_tensor(four ? ACL_INT32 : ACL_INT8, 3, four ? words : dims, four ? CONTIGUOUS : any_layout());
        fill(&x, -40, 40);
        fill(&scale, 0.5, four ? 0.6 : 2.5);
        fill(&offset, -4, 4);
        arguments a = begin_call(v3 ? "AscendQuantV3" : "AscendQuant");
        put(&a, "x", x.handle);
        put(&a, "scale", scale.handle);
        if (c & 4)
            put(&a, "offset", offset.handle);
        put_integer(&a, "sqrtMode", square);
        put(&a, "roundMode", rounding);
        put_integer(&a, "dstType", four ? ACL_INT32 : ACL_INT8);
        put(&a, "y", y.handle);
        if (v3)
            put_integer(&a, "axis", rows ? -2 : -1);
        must(&a);
        for (int64_t i = 0; i < x.count; i++) {
            int64_t at = scale.count == 1 ? 0 : rows ? i / 48 % 5 : i % 48;
            double s = get_element(&scale, at), v = get_element(&x, i) * (square ? s * s : s);
            v += c & 4 ? get_element(&offset, at) : 0;
            double want = cut(by_name(rounding ? rounding : "", v), four ? -8 : -128, four ? 7 : 127);
            double got = four ? nibble(&y, i) : get_element(&y, i),
                   odd = rounding && strcmp(rounding, "round") ? v - 0.5 : v;
            near_integer(a.op->name, got, odd, want, 1e-4);
        }
        assert_true(untouched_outside(&y));
        put(&a, "roundMode", "up");
        refused(&a, "roundMode is \"up\"");
        put(&a, "roundMode", rounding);
        put_integer(&a, "dstType", ACL_FLOAT);
        refused(&a, "dstType is type number 0");
        put_integer(&a, "dstType", four ? ACL_INT32 : ACL_INT8);
        put(&a, "scale", x.handle);
        if (v3)
            put_integer(&a, "axis", 7);
        if (v3)
            refused(&a, "axis is 7");
        put(&a, "scale", y.handle);
        if (v3)
            put_integer(&a, "axis", -1);
        refused(&a, "scale has elements of type");
        tensor *all[] = {&x, &scale, &offset, &y};
        for (int i = 0; i < 4; i++)
            free_tensor(all[i]);
    }
}

/* And back: int8 or 4-bit integers to floats. */
static void anti(void **state) {
    (void)state;
    for (int c = 0; c < 36; c++) {
        aclDataType type = halves[c % 3];
        const bool square = c & 1, four = c >> 1 & 1;
        int64_t dims[] = {7, 40}, words[] = {7, 5}, one = 1;
        tensor x = make_tensor(four ? ACL_INT32 : ACL_INT8, 2, four ? words : dims, four ? CONTIGUOUS : any_layout());
        tensor scale = make_tensor(ACL_FLOAT, 1, c % 5 ? dims + 1 : &one, any_layout()),
               offset = make_tensor(ACL_FLOAT, 1, c % 5 ? dims + 1 : &one, any_layout()),
               y = make_tensor(type, 2, dims, any_layout());
        for (int64_t i = 0; i < x.count; i++)
            set_element(&x, i, four ? (double)(int32_t)random_bits() : (double)(int8_t)random_bits());
        fill(&scale, 0.1, 0.5);
        fill(&offset, -4, 4);
        arguments a = begin_call("AscendAntiQuant");
        put(&a, "x", x.handle);
        put(&a, "scale", scale.handle);
        if (c & 4)
            put(&a, "offset", offset.handle);
        put_integer(&a, "dstType", type);
        put_integer(&a, "sqrtMode", square);
        put(&a, "y", y.handle);
        must(&a);
        for (int64_t i = 0; i < y.count; i++) {
            int64_t at = scale.count == 1 ? 0 : i % 40;
            double s = get_element(&scale, at), v = four ? nibble(&x, i) : get_element(&x, i);
            v = (v + (c & 4 ? get_element(&offset, at) : 0)) * (square ? s * s : s);
            double got = get_element(&y, i), unit = type == ACL_FLOAT     ? 0x1p-21
                                                    : type == ACL_FLOAT16 ? 0x1p-10
                                                                          : 0x1p-7;
            if (fabs(got - v) > unit * fabs(v) + 1e-6)
                fail_msg("AscendAntiQuant gives %g, but must give %g", got, v);
        }
        put_integer(&a, "dstType", ACL_INT8);
        refused(&a, "dstType is type number 2");
        tensor *all[] = {&x, &scale, &offset, &y};
        for (int i = 0; i < 4; i++)
            free_tensor(all[i]);
    }
}

static void affine(void **state) {
    (void)state;
    static const aclDataType outs[] = {ACL_INT8, ACL_UINT8, ACL_INT32};
    for (int c = 0; c < 36; c++) {
        aclDataType out = outs[c / 3 % 3];
        int64_t dims[] = {3, 4, 10}, one = 1, axis = c % 4 == 3 ? 0 : c % 3;
        const bool each = c % 4 != 3;
        tensor x = make_tensor(halves[c % 3], 3, dims, any_layout()), y = make_tensor(out, 3, dims, any_layout()),
               scale = make_tensor(ACL_FLOAT, 1, each ? dims + axis : &one, any_layout()),
               zero = make_tensor(ACL_INT32, 1, each ? dims + axis : &one, any_layout());
        fill(&x, -30, 30);
        fill(&scale, 0.1, 0.3);
        for (int64_t i = 0; i < zero.count; i++)
            set_element(&zero, i, (double)(random_bits() % 11) - 3);
        arguments a = begin_call("Quantize");
        put(&a, "x", x.handle);
        put(&a, "scales", scale.handle);
        if (c & 1)
            put(&a, "zeroPoints", zero.handle);
        put_integer(&a, "dtype", out);
        put_integer(&a, "axis", axis);
        put(&a, "out", y.handle);
        must(&a);
        for (int64_t i = 0; i < x.count; i++) {
            int64_t at[] = {i / 40, i / 10 % 4, i % 10}, k = each ? at[axis] : 0;
            double v = get_element(&x, i) / get_element(&scale, k), z = c & 1 ? get_element(&zero, k) : 0;
            double want = cut(rint(v) + z,
                              out == ACL_INT8    ? -128
                              : out == ACL_UINT8 ? 0
                                                 : -0x1p31,
                              out == ACL_INT8    ? 127
                              : out == ACL_UINT8 ? 255
                                                 : 0x1p31);
            near_integer("Quantize", get_element(&y, i), v, want, 1e-4);
        }
        put_integer(&a, "dtype", ACL_FLOAT);
        refused(&a, "dtype is f32");
        tensor *all[] = {&x, &scale, &zero, &y};
        for (int i = 0; i < 4; i++)
            free_tensor(all[i]);
    }
}

static void check_line(const char *name, const tensor *y, const tensor *scale, const tensor *offset, int64_t line,
                       const double *t, int64_t n, bool four) {
    double most = -INFINITY, least = INFINITY, high = four ? 7 : 127, low = four ? -8 : -128, size = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, t[i]);
        least = fmin(least, t[i]);
        size = fmax(size, fabs(t[i]));
    }
    double s = offset ? (most - least) / (high - low) : size / high,
           shift = offset ? (s > 0 ? high - most / s : high) : 0;
    if (fabs(get_element(scale, line) - s) > 1e-5 * s)
        fail_msg("%s: scale %g, but must be %g", name, get_element(scale, line), s);
    if (offset && fabs(get_element(offset, line) - shift) > 1e-4 * (fabs(shift) + 1))
        fail_msg("%s: offset %g, but must be %g", name, get_element(offset, line), shift);
    for (int64_t i = 0; i < n; i++) {
        double v = s > 0 ? t[i] / s + shift : shift;
        near_integer(name, four ? nibble(y, line * n + i) : get_element(y, line * n + i), v, cut(rint(v), low, high),
                     1e-3);
    }
}

static void dynamic(void **state) {
    (void)state;
    for (int c = 0; c < 48; c++) {
        aclDataType type = halves[c % 3];
        const bool v2 = c & 1, four = v2 && c % 4 == 3, groups = v2 && c % 3 == 0, smooth = groups || c % 5 < 2,
                   asymmetric = v2 && c % 8 < 4;
        int64_t dims[] = {3, 4, 88}, words[] = {3, 4, 11}, one_row[] = {88}, rows[] = {3, 88}, three = 3;
        static const double ends[] = {5, 5, 12};
        tensor x = make_tensor(type, 3, dims, any_layout()),
               s = make_tensor(type, groups ? 2 : 1, groups ? rows : one_row, any_layout()),
               y = make_tensor(four ? ACL_INT32 : ACL_INT8, 3, four ? words : dims, four ? CONTIGUOUS : any_layout()),
               scale = make_tensor(ACL_FLOAT, 2, dims, any_layout()),
               offset = make_tensor(ACL_FLOAT, 2, dims, any_layout()),
               index = make_tensor(ACL_INT32, 1, &three, any_layout());
        fill(&x, -3, 3);
        for (int64_t i = 0; i < 88; i++) /* a line of zeros */
            set_element(&x, 88 + i, 0);
        fill(&s, 0.5, 2);
        for (int i = 0; i < 3; i++)
            set_element(&index, i, ends[i]);
        arguments a = begin_call(v2 ? "DynamicQuantV2" : "DynamicQuant");
        put(&a, "x", x.handle);
        if (smooth)
            put(&a, "smoothScalesOptional", s.handle);
        put(&a, "yOut", y.handle);
        put(&a, "scaleOut", scale.handle);
        if (v2)
            put_integer(&a, "dstType", four ? ACL_INT32 : ACL_INT8);
        if (groups)
            put(&a, "groupIndexOptional", index.handle);
        if (asymmetric)
            put(&a, "offsetOut", offset.handle);
        must(&a);
        double t[88];
        for (int64_t line = 0; line < 12; line++) {
            for (int64_t i = 0; i < 88; i++)
                t[i] = get_element(&x, line * 88 + i) *
                       (smooth ? get_element(&s, (groups && line >= 5 ? 2 * 88 : 0) + i) : 1);
            check_line(a.op->name, &y, &scale, asymmetric ? &offset : NULL, line, t, 88, four);
        }
        assert_true(untouched_outside(&y));
        if (groups) {
            set_element(&index, 2, 13);
            fails_when_run(&a, "element 2 is 13, but must be 5 to 12");
        }
        put(&a, "scaleOut", offset.handle);
        put(&a, "yOut", x.handle);
        refused(&a, "yOut has elements of type");
        tensor *all[] = {&x, &s, &y, &scale, &offset, &index};
        for (int i = 0; i < 6; i++)
            free_tensor(all[i]);
    }
}

static double silu(double v) {
    return v / (1 + exp(-v));
}

/* SwiGluQuantV2 of floats, DequantSwigluQuant of int32. */
static void gated(void **state) {
    (void)state;
    enum { LINES = 11, N = 40 };
    for (int c = 0; c < 48; c++) {
        const bool dequant = c & 1, dynamic_mode = c & 2, groups = c & 4, left = c & 8, counts = dequant || c & 16,
                   whole = c % 3 == 0;
        int64_t dims[] = {LINES, 2 * N}, out_dims[] = {LINES, N}, rows[] = {3, N}, wide[] = {3, 2 * N}, one[] = {1, N},
                one_wide[] = {1, 2 * N}, three = 3, lines = LINES;
        static const double sizes[] = {4, 0, 5};
        tensor x = make_tensor(dequant ? ACL_INT32 : halves[c % 3], 2, dims, any_layout()),
               y = make_tensor(ACL_INT8, 2, out_dims, any_layout()),
               scale = make_tensor(ACL_FLOAT, 1, &lines, any_layout()),
               smooth = make_tensor(ACL_FLOAT, 2, groups ? rows : one, any_layout()),
               shift = make_tensor(ACL_FLOAT, 2, groups ? rows : one, any_layout()),
               weight = make_tensor(ACL_FLOAT, 2, groups ? wide : one_wide, any_layout()),
               token = make_tensor(ACL_FLOAT, 1, &lines, any_layout()),
               index = make_tensor(ACL_INT64, 1, &three, any_layout()),
               bias = make_tensor(whole ? ACL_INT32 : ACL_FLOAT, 1, dims + 1, any_layout());
        for (int64_t i = 0; i < x.count; i++)
            set_element(&x, i, dequant ? (double)(random_bits() % 201) - 100 : random_between(-3, 3));
        fill(&smooth, 0.5, dynamic_mode ? 2 : 20);
        fill(&shift, -5, 5);
        fill(&weight, 0.01, 0.05);
        fill(&token, 0.5, 1.5);
        for (int64_t i = 0; i < bias.count; i++)
            set_element(&bias, i, whole ? (double)(random_bits() % 21) - 10 : random_between(-1, 1));
        double end = 0;
        for (int i = 0; i < 3; i++)
            set_element(&index, i, counts ? sizes[i] : (end += sizes[i]));
        arguments a = begin_call(dequant ? "DequantSwigluQuant" : "SwiGluQuantV2");
        put(&a, "x", x.handle);
        put(&a, dequant ? "quantScaleOptional" : "smoothScalesOptional", smooth.handle);
        if (!dynamic_mode)
            put(&a, dequant ? "quantOffsetOptional" : "offsetsOptional", shift.handle);
        if (dequant) {
            put(&a, "weightScaleOptional", weight.handle);
            put(&a, "activationScaleOptional", token.handle);
            if (!groups)
                put(&a, "biasOptional", bias.handle);
        } else {
            put_integer(&a, "groupListType", counts);
            put_integer(&a, "dstType", ACL_INT8);
        }
        if (groups)
            put(&a, "groupIndexOptional", index.handle);
        put_integer(&a, "activateLeft", left);
        put(&a, "quantMode", dynamic_mode ? "dynamic" : "static");
        put(&a, "yOut", y.handle);
        put(&a, "scaleOut", scale.handle);
        must(&a);
        for (int64_t line = 0; line < (groups ? 9 : LINES); line++) {
            int64_t g = groups && line >= 4 ? 2 : 0;
            double t[N], half[2][N];
            for (int64_t i = 0; i < 2 * N; i++) {
                double v = get_element(&x, line * 2 * N + i);
                if (dequant) {
                    v += whole && !groups ? get_element(&bias, i) : 0;
                    v *= get_element(&weight, g * 2 * N + i) * get_element(&token, line);
                    v += !whole && !groups ? get_element(&bias, i) : 0;
                }
                half[i / N][i % N] = v;
            }
            for (int64_t i = 0; i < N; i++) {
                t[i] = silu(half[!left][i]) * half[left][i] * get_element(&smooth, g * N + i);
                double v = t[i] + get_element(&shift, g * N + i);
                if (!dynamic_mode)
                    near_integer(a.op->name, get_element(&y, line * N + i), v, cut(rint(v), -128, 127), 1e-3);
            }
            if (dynamic_mode)
                check_line(a.op->name, &y, &scale, NULL, line, t, N, false);
        }
        put(&a, "quantMode", "sometimes");
        refused(&a, "quantMode is \"sometimes\"");
        put(&a, "quantMode", "dynamic");
        put(&a, dequant ? "quantScaleOptional" : "smoothScalesOptional", token.handle);
        refused(&a, "has the shape [11]");
        tensor *all[] = {&x, &y, &scale, &smooth, &shift, &weight, &token, &index, &bias};
        for (int i = 0; i < 9; i++)
            free_tensor(all[i]);
    }
}

/* form: two results, zero points, beta, products instead of quotients, one scale for all. */
static void normed(void **state) {
    (void)state;
    enum { LINES = 6, N = 40 };
    for (int c = 0; c < 96; c++) {
        aclDataType type = halves[c % 3];
        const bool two = c & 1, zeros = c & 2, divide = c & 4, single = c & 8, v2 = c & 16;
        int64_t dims[] = {2, 3, N}, n = N, one = 1;
        tensor x1 = make_tensor(type, 3, dims, any_layout()), x2 = make_tensor(type, 3, dims, any_layout()),
               gamma = make_tensor(type, 1, &n, any_layout()), beta = make_tensor(type, 1, &n, any_layout()), scale[2],
               zero[2], y[2], sum = make_tensor(type, 3, dims, any_layout()),
               norm = make_tensor(type, 3, dims, any_layout());
        arguments a = begin_call(v2 ? "AddRmsNormQuantV2" : "AddRmsNormQuant");
        static const char *const names[3][2] = {{"scales1", "scales2Optional"},
                                                {"zero_points1Optional", "zero_points2Optional"},
                                                {"y1_wrapper", "y2_wrapper"}};
        for (int k = 0; k < 2; k++) {
            scale[k] = make_tensor(type, 1, single ? &one : &n, any_layout());
            zero[k] = make_tensor(k ? ACL_INT32 : type, 1, single ? &one : &n, any_layout());
            y[k] = make_tensor(ACL_INT8, 3, dims, any_layout());
            fill(&scale[k], divide ? 0.01 : 20, divide ? 0.05 : 60);
            for (int64_t i = 0; i < zero[k].count; i++)
                set_element(&zero[k], i, (double)(int64_t)(random_bits() % 9) - 4);
            if (k == 0 || two)
                put(&a, names[0][k], scale[k].handle);
            if (zeros && (k == 0 || two))
                put(&a, names[1][k], zero[k].handle);
            put(&a, names[2][k], k == 0 || two ? y[k].handle : NULL);
        }
        fill(&x1, -1, 1);
        fill(&x2, -1, 1);
        fill(&gamma, 0.5, 1.5);
        fill(&beta, -1, 1);
        put(&a, "x1", x1.handle);
        put(&a, "x2", x2.handle);
        put(&a, "gamma", gamma.handle);
        put(&a, "x_out", sum.handle);
        put_integer(&a, "axis", -1);
        put_real(&a, "epsilon", 1e-5);
        put_integer(&a, "div_mode", divide);
        if (v2) {
            put(&a, "betaOptional", beta.handle);
            put(&a, "rmsnorm_out", norm.handle);
        }
        must(&a);
        const double unit = type == ACL_FLOAT ? 1e-6 : type == ACL_FLOAT16 ? 1e-3 : 8e-3;
        for (int64_t i = 0; i < sum.count; i++) {
            double squares = 0, own = get_element(&x1, i) + get_element(&x2, i);
            for (int64_t k = i - i % N; k < i - i % N + N; k++)
                squares += pow(get_element(&x1, k) + get_element(&x2, k), 2);
            double v =
                own / sqrt(squares / N + 1e-5) * get_element(&gamma, i % N) + (v2 ? get_element(&beta, i % N) : 0);
            assert_true(fabs(get_element(&sum, i) - own) <= unit * (1 + fabs(own)));
            if (v2)
                assert_true(fabs(get_element(&norm, i) - v) <= unit * (2 + fabs(v)));
            for (int k = 0; k < (two ? 2 : 1); k++) {
                double s = get_element(&scale[k], single ? 0 : i % N), before = divide ? v / s : v * s;
                before += zeros ? get_element(&zero[k], single ? 0 : i % N) : 0;
                near_integer(a.op->name, get_element(&y[k], i), before, cut(rint(before), -128, 127), 1e-3);
            }
        }
        put_integer(&a, "axis", 0);
        refused(&a, "must be -1");
        put_integer(&a, "axis", 2);
        put(&a, "y1_wrapper", NULL);
        refused(&a, "y1_wrapper is NULL");
        tensor *all[] = {&x1, &x2, &gamma, &beta, &sum, &norm, &scale[0], &scale[1], &zero[0], &zero[1], &y[0], &y[1]};
        for (int i = 0; i < 12; i++) {
            assert_true(untouched_outside(all[i]));
            free_tensor(all[i]);
        }
    }
}

int main(void) {
    test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ascend), cmocka_unit_test(normed),  cmocka_unit_test(anti),
        cmocka_unit_test(affine), cmocka_unit_test(dynamic), cmocka_unit_test(gated),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
