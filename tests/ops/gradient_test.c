/* Gradients of gated units and of padding against the forward formulas; a step of AdamW. */
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_DOUBLE, ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static tensor any_tensor(aclDataType type, int rank, const int64_t *dims, double low, double high) {
    tensor t = make_tensor(type, rank, dims, any_layout());
    for (int64_t i = 0; i < t.count; i++)
        set_element(&t, i, random_between(low, high));
    return t;
}

static void must(const char *name, const caller_value *values) {
    if (call_op(name, values))
        fail_msg("%s: %s", name, sentence());
}

static void refused(const char *name, const caller_value *values, const char *word) {
    assert_int_equal(call_op(name, values), ACLNN_ERR_PARAM_INVALID);
    const char *text = sentence();
    if (!strstr(text, word))
        fail_msg("%s says %s", name, text);
}

static double unit_of(aclDataType type) {
    return type == ACL_DOUBLE ? 1e-11 : type == ACL_FLOAT ? 1e-5 : type == ACL_FLOAT16 ? 4e-3 : 3e-2;
}

static void near(const char *name, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i);
    if (!(fabs(got - want) <= unit_of(t->type) * (fabs(want) + scale)))
        fail_msg("%s type %d, element %lld: %g, but must be %g", name, t->type, (long long)i, got, want);
}

/* The gated value of halves a and b. */
static double gated(int form, double a, double b) {
    double act = form >= 4 ? a : b, other = form >= 4 ? b : a; /* geglu: which half is activated */
    switch (form) {
    case 0:
        return a / (1 + exp(-b));
    case 1:
        return a / (1 + exp(-a)) * b;
    case 2:
    case 4:
        return 0.5 * act * (1 + tanh(0.79788456080286535588 * (act + 0.044715 * act * act * act))) * other;
    default:
        return 0.5 * act * (1 + erf(act * M_SQRT1_2)) * other;
    }
}

static void gates(void **state) {
    (void)state;
    static const int64_t dims[] = {3, 10, 7}, half[] = {3, 5, 7};
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 6; form++) {
            tensor x = any_tensor(types[t], 3, dims, -3, 3), grad = any_tensor(types[t], 3, half, -1, 1),
                   out = any_tensor(types[t], 3, dims, 0, 0);
            caller_value plain[] = {T(grad), T(x), I(1), T(out)},
                         mode[] = {T(grad), T(x), T(grad), I(-2), I(form == 3 || form == 5), I(form >= 4), T(out)};
            must(form == 0 ? "GluBackward" : form == 1 ? "SwiGluGrad" : "GeGluV3Backward", form < 2 ? plain : mode);
            for (int64_t i = 0; i < grad.count; i++) {
                int64_t at = i / 35 * 70 + i % 35;
                double a = get_element(&x, at), b = get_element(&x, at + 35), g = get_element(&grad, i), step = 1e-5;
                double da = (gated(form, a + step, b) - gated(form, a - step, b)) / (2 * step),
                       db = (gated(form, a, b + step) - gated(form, a, b - step)) / (2 * step);
                assert_true(fabs(get_element(&out, at) - g * da) <= (unit_of(types[t]) + 1e-8) * 2);
                assert_true(fabs(get_element(&out, at + 35) - g * db) <= (unit_of(types[t]) + 1e-8) * 2);
            }
            assert_true(untouched_outside(&out));
            plain[2].integer = 2;
            refused("GluBackward", plain, "dimension 2 is 7, but must be even");
            free_tensor(&x);
            free_tensor(&grad);
            free_tensor(&out);
        }
}

static void prelus(void **state) {
    (void)state;
    static const int64_t dims[] = {4, 3, 5, 6}, one = 1, three = 3, spread[] = {1, 3, 1, 1};
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 3; form++) {
            tensor x = any_tensor(types[t], 4, dims, -2, 2), grad = any_tensor(types[t], 4, dims, -1, 1),
                   weight = form == 2 ? any_tensor(types[t], 4, spread, 0.1, 0.9)
                                      : any_tensor(types[t], 1, form ? &three : &one, 0.1, 0.9),
                   out = any_tensor(types[t], 4, dims, 0, 0),
                   dw = form == 2 ? any_tensor(types[t], 4, spread, 0, 0)
                                  : any_tensor(types[t], 1, form ? &three : &one, 0, 0);
            must("Prelu", (caller_value[]){T(x), T(weight), T(out)});
            double want[3] = {0};
            for (int64_t i = 0; i < x.count; i++) {
                double v = get_element(&x, i), w = get_element(&weight, form ? i / 30 % 3 : 0);
                assert_true(get_element(&out, i) == round_to(types[t], v > 0 ? v : w * v));
                want[form ? i / 30 % 3 : 0] += v > 0 ? 0 : v * get_element(&grad, i);
            }
            must("PreluBackward", (caller_value[]){T(grad), T(x), T(weight), T(out), T(dw)});
            for (int64_t i = 0; i < x.count; i++) {
                double slope = get_element(&x, i) > 0 ? 1 : get_element(&weight, form ? i / 30 % 3 : 0);
                assert_true(get_element(&out, i) == round_to(types[t], slope * get_element(&grad, i)));
            }
            for (int64_t c = 0; c < dw.count; c++)
                near("weight", &dw, c, want[c], 1);
            assert_true(untouched_outside(&out) && untouched_outside(&dw));
            refused("Prelu", (caller_value[]){T(x), T(x), T(out)}, "must have 1 or 3");
            free_tensor(&x);
            free_tensor(&grad);
            free_tensor(&weight);
            free_tensor(&out);
            free_tensor(&dw);
        }
}

static void adamw(void **state) {
    (void)state;
    static const int64_t dims[] = {30, 50}, one = 1;
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 4; form++) {
            bool amsgrad = form & 1, maximize = form & 2;
            tensor x[5];
            for (int v = 0; v < 5; v++)
                x[v] = any_tensor(types[t], 2, dims, v == 2 || v == 3 ? 0.01 : -1, 1);
            tensor step = any_tensor(ACL_FLOAT, 1, &one, 4, 4);
            double before[5][1500], lr = 0.125, b1 = 0.875, b2 = 0.96875, decay = 0.0625, eps = 1.0 / 1024;
            for (int v = 0; v < 5; v++)
                for (int i = 0; i < 1500; i++)
                    before[v][i] = get_element(&x[v], i);
            must("ApplyAdamWV2",
                 (caller_value[]){T(x[0]), T(x[1]), T(x[2]), P(amsgrad ? x[3].handle : NULL), T(x[4]), T(step), R(lr),
                                  R(b1), R(b2), R(decay), R(eps), I(amsgrad), I(maximize)});
            for (int i = 0; i < 1500; i++) {
                double g = maximize ? -before[4][i] : before[4][i], m = b1 * before[1][i] + (1 - b1) * g,
                       v = b2 * before[2][i] + (1 - b2) * g * g, most = amsgrad ? fmax(before[3][i], v) : v;
                double rate = lr / (1 - pow(b1, 5)),
                       p = before[0][i] * (1 - lr * decay) - rate * m / (sqrt(most / (1 - pow(b2, 5))) + eps);
                near("mean", &x[1], i, m, 0.1);
                near("square", &x[2], i, v, 0.1);
                near("largest", &x[3], i, amsgrad ? most : before[3][i], 0.1);
                near("parameter", &x[0], i, p, 1);
                assert_true(get_element(&x[4], i) == before[4][i]);
            }
            for (int v = 0; v < 5; v++) {
                assert_true(untouched_outside(&x[v]));
                free_tensor(&x[v]);
            }
            free_tensor(&step);
        }
}

static void pads(void **state) {
    (void)state;
    static const char *const names[2][3] = {
        {"ReplicationPad1dBackward", "ReplicationPad2dBackward", "ReplicationPad3dBackward"},
        {"ReflectionPad1dBackward", "ReflectionPad2dBackward", "ReflectionPad3dBackward"}};
    static const int64_t dims[] = {2, 3, 4, 5}, padding[] = {1, 3, 2, 0, 0, 2};
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 6; form++) {
            bool reflect = form & 1;
            int padded = form / 2 + 1;
            int64_t big[4] = {2, 3, 4, 5};
            for (int k = 0; k < padded; k++)
                big[3 - k] += padding[2 * k] + padding[2 * k + 1];
            tensor self = any_tensor(types[t], 4, dims, 0, 1), grad = any_tensor(types[t], 4, big, -1, 1),
                   out = any_tensor(types[t], 4, dims, 0, 0);
            double want[120] = {0};
            for (int64_t i = 0; i < grad.count; i++) {
                int64_t rest = i, place = 0, step = 1;
                for (int d = 3; d >= 0; d--) {
                    int64_t at = rest % big[d] - (3 - d < padded ? padding[2 * (3 - d)] : 0), n = dims[d];
                    rest /= big[d];
                    while (reflect && (at < 0 || at >= n))
                        at = at < 0 ? -at : 2 * n - 2 - at;
                    at = at < 0 ? 0 : at >= n ? n - 1 : at;
                    place += at * step;
                    step *= n;
                }
                want[place] += get_element(&grad, i);
            }
            aclIntArray *list = aclCreateIntArray(padding, (uint64_t)(2 * padded)),
                        *odd = aclCreateIntArray(padding, 3);
            must(names[reflect][padded - 1], (caller_value[]){T(grad), T(self), P(list), T(out)});
            for (int64_t i = 0; i < out.count; i++)
                near("pad", &out, i, want[i], 1);
            assert_true(untouched_outside(&out));
            refused(names[reflect][padded - 1], (caller_value[]){T(grad), T(self), P(odd), T(out)},
                    "padding has 3 entries");
            refused(names[reflect][padded - 1], (caller_value[]){T(out), T(self), P(list), T(out)},
                    "the padded input's");
            aclDestroyIntArray(list);
            aclDestroyIntArray(odd);
            free_tensor(&self);
            free_tensor(&grad);
            free_tensor(&out);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gates), cmocka_unit_test(prelus), cmocka_unit_test(adamw),
                                       cmocka_unit_test(pads)};
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
