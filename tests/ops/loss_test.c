/* Losses and their gradients: values against formulas, gradients against differences of the values. */
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_DOUBLE, ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void must(const char *name, const caller_value *values) {
    if (call_op(name, values))
        fail_msg("%s: %s", name, sentence());
}

typedef enum form { PLAIN, SIGMA, LOG_TARGET, WEIGHT, TWO_WEIGHTS } form;

static double v_mse(double x, double t, double w, double q, double p) {
    (void)w, (void)q, (void)p;
    return (x - t) * (x - t);
}
static double v_l1(double x, double t, double w, double q, double p) {
    (void)w, (void)q, (void)p;
    return fabs(x - t);
}
static double v_smooth(double x, double t, double w, double q, double p) {
    (void)w, (void)q;
    double d = fabs(x - t);
    return d < p ? d * d / (2 * p) : d - p / 2;
}
static double v_bce(double x, double t, double w, double q, double p) {
    (void)q, (void)p;
    return -w * (t * log(x) + (1 - t) * log(1 - x));
}
static double v_logits(double x, double t, double w, double q, double p) {
    (void)p;
    double s = 1 / (1 + exp(-x));
    return -w * (q * t * log(s) + (1 - t) * log(1 - s));
}
static double v_kl(double x, double t, double w, double q, double p) {
    (void)w, (void)q;
    return p != 0 ? exp(t) * (t - x) : t * (log(t) - x);
}
static double v_margin(double x, double t, double w, double q, double p) {
    (void)w, (void)q, (void)p;
    return log(1 + exp(-t * x));
}

static const struct {
    const char *name, *backward, *of_target;
    form how;
    double low, high, target_low, target_high, parameter;
    double (*value)(double x, double t, double w, double q, double p);
} losses[] = {
    {"MseLoss", "MseLossBackward", NULL, PLAIN, -3, 3, -3, 3, 0, v_mse},
    {"L1Loss", "L1LossBackward", NULL, PLAIN, -3, 3, -3, 3, 0, v_l1},
    {"SmoothL1Loss", "SmoothL1LossBackward", NULL, SIGMA, -3, 3, -3, 3, 0.75, v_smooth},
    {"SmoothL1Loss", "SmoothL1LossBackward", NULL, SIGMA, -3, 3, -3, 3, 0, v_l1},
    {"BinaryCrossEntropy", "BinaryCrossEntropyBackward", NULL, WEIGHT, 0.1, 0.9, 0, 1, 0, v_bce},
    {"BinaryCrossEntropyWithLogits", "BinaryCrossEntropyWithLogitsBackward", NULL, TWO_WEIGHTS, -3, 3, 0, 1, 0,
     v_logits},
    {"KlDiv", "KlDivBackward", "KlDivTargetBackward", LOG_TARGET, -3, 0, 0.1, 0.9, 0, v_kl},
    {"KlDiv", "KlDivBackward", "KlDivTargetBackward", LOG_TARGET, -3, 0, -2, 0, 1, v_kl},
    {"SoftMarginLoss", "SoftMarginLossBackward", NULL, PLAIN, -3, 3, -1, 1, 0, v_margin},
};

typedef struct inputs {
    tensor self, target, weight, positive, grad;
} inputs;

static double value_at(int l, const inputs *in, int64_t i, double dx, double dt, bool weighted) {
    double w = weighted ? get_element(&in->weight, i % in->weight.count) : 1,
           q = weighted ? get_element(&in->positive, i % in->positive.count) : 1;
    return losses[l].value(get_element(&in->self, i) + dx, get_element(&in->target, i) + dt, w, q, losses[l].parameter);
}

static void fill(tensor *t, double low, double high) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, random_between(low, high));
}

/* Arguments after self and target (and grad). */
static int add_rest(int l, const inputs *in, int reduction, bool weighted, caller_value *values, int n) {
    form how = losses[l].how;
    if (how == WEIGHT || how == TWO_WEIGHTS)
        values[n++].pointer = weighted ? in->weight.handle : NULL;
    if (how == TWO_WEIGHTS)
        values[n++].pointer = weighted ? in->positive.handle : NULL;
    values[n++].integer = reduction;
    if (how == SIGMA)
        values[n++].real = losses[l].parameter;
    if (how == LOG_TARGET)
        values[n++].integer = losses[l].parameter != 0;
    return n;
}

static double unit_of(aclDataType type) {
    return type == ACL_DOUBLE ? 1e-12 : type == ACL_FLOAT ? 1e-6 : type == ACL_FLOAT16 ? 2e-3 : 1e-2;
}

static void check_value(int l, const inputs *in, int reduction, bool weighted) {
    aclDataType type = in->self.type;
    tensor out = make_tensor(type, reduction ? 0 : 2, in->self.dims, any_layout());
    caller_value values[10] = {T(in->self), T(in->target)};
    values[add_rest(l, in, reduction, weighted, values, 2)].pointer = out.handle;
    must(losses[l].name, values);
    double sum = 0;
    for (int64_t i = 0; i < in->self.count; i++) {
        double want = value_at(l, in, i, 0, 0, weighted);
        sum += want;
        if (!reduction && !(fabs(get_element(&out, i) - want) <= unit_of(type) * (1 + fabs(want))))
            fail_msg("%s type %d, element %lld: %g, but must be %g", losses[l].name, type, (long long)i,
                     get_element(&out, i), want);
    }
    sum /= reduction == 1 ? (double)in->self.count : 1;
    if (reduction && get_element(&out, 0) != round_to(type, sum) &&
        !(fabs(get_element(&out, 0) - sum) <= unit_of(type) * (1 + fabs(sum))))
        fail_msg("%s type %d, reduction %d: %g, but must be %g", losses[l].name, type, reduction, get_element(&out, 0),
                 sum);
    assert_true(untouched_outside(&out));
    free_tensor(&out);
}

static void check_gradient(int l, const inputs *in, int reduction, bool weighted, bool of_target) {
    aclDataType type = in->self.type;
    const char *name = of_target ? losses[l].of_target : losses[l].backward;
    tensor out = make_tensor(type, 2, in->self.dims, any_layout()), one = make_tensor(type, 0, NULL, CONTIGUOUS);
    set_element(&one, 0, 3);
    caller_value values[10] = {{.pointer = reduction ? one.handle : in->grad.handle}, T(in->self), T(in->target)};
    values[add_rest(l, in, reduction, weighted, values, 3)].pointer = out.handle;
    must(name, values);
    double step = 1e-5, *dx = of_target ? NULL : &step;
    for (int64_t i = 0; i < in->self.count; i++) {
        double difference = dx ? value_at(l, in, i, step, 0, weighted) - value_at(l, in, i, -step, 0, weighted)
                               : value_at(l, in, i, 0, step, weighted) - value_at(l, in, i, 0, -step, weighted);
        double factor = reduction == 0 ? get_element(&in->grad, i) : reduction == 1 ? 3.0 / (double)in->self.count : 3;
        double want = difference / (2 * step) * factor, got = get_element(&out, i);
        if (fabs(get_element(&in->self, i) - get_element(&in->target, i)) < 1e-3)
            continue; /* a corner of the absolute value */
        if (!(fabs(got - want) <= (unit_of(type) + 2e-5) * (fabs(factor) + fabs(want)) + 0x1p-24))
            fail_msg("%s type %d, reduction %d, element %lld: %g, but must be %g", name, type, reduction, (long long)i,
                     got, want);
    }
    assert_true(untouched_outside(&out));
    free_tensor(&out);
    free_tensor(&one);
}

static void every_loss(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{3, 50}, {0, 4}, {1, 1}, {130, 170}};
    for (size_t l = 0; l < sizeof losses / sizeof losses[0]; l++)
        for (int t = 0; t < 4; t++)
            for (int s = 0; s < 4; s++)
                for (int how = 0; how < 6; how++) {
                    int reduction = how % 3;
                    bool weighted = how >= 3;
                    if ((weighted && losses[l].how < WEIGHT) || (s == 1 && reduction == 1))
                        continue;
                    const int64_t *dims = shapes[s], *row = dims + 1;
                    inputs in = {
                        make_tensor(types[t], 2, dims, any_layout()), make_tensor(types[t], 2, dims, any_layout()),
                        make_tensor(types[t], 1, row, any_layout()), make_tensor(types[t], 1, row, any_layout()),
                        make_tensor(types[t], 2, dims, any_layout())};
                    fill(&in.self, losses[l].low, losses[l].high);
                    fill(&in.target, losses[l].target_low, losses[l].target_high);
                    fill(&in.weight, 0.5, 2);
                    fill(&in.positive, 0.5, 2);
                    fill(&in.grad, -2, 2);
                    check_value((int)l, &in, reduction, weighted);
                    check_gradient((int)l, &in, reduction, weighted, false);
                    if (losses[l].of_target)
                        check_gradient((int)l, &in, reduction, weighted, true);
                    free_tensor(&in.self);
                    free_tensor(&in.target);
                    free_tensor(&in.weight);
                    free_tensor(&in.positive);
                    free_tensor(&in.grad);
                }
}

static void edges(void **state) {
    (void)state;
    int64_t three = 3;
    tensor x = make_tensor(ACL_FLOAT, 1, &three, CONTIGUOUS), t = make_tensor(ACL_FLOAT, 1, &three, CONTIGUOUS),
           out = make_tensor(ACL_FLOAT, 1, &three, CONTIGUOUS), one = make_tensor(ACL_FLOAT, 0, NULL, CONTIGUOUS);
    static const double p[] = {0, 1, 0}, target[] = {0, 1, 1}, want[] = {0, 0, 100};
    for (int i = 0; i < 3; i++) {
        set_element(&x, i, p[i]);
        set_element(&t, i, target[i]);
    }
    must("BinaryCrossEntropy", (caller_value[]){T(x), T(t), P(NULL), I(0), T(out)});
    for (int i = 0; i < 3; i++)
        assert_true(get_element(&out, i) == want[i]);
    set_element(&x, 0, 1000);
    set_element(&x, 1, -1000);
    must("BinaryCrossEntropyWithLogits", (caller_value[]){T(x), T(t), P(NULL), P(NULL), I(0), T(out)});
    assert_true(get_element(&out, 0) == 1000 && get_element(&out, 1) == 1000);
    must("SoftMarginLoss", (caller_value[]){T(x), T(t), I(0), T(out)});
    assert_true(get_element(&out, 1) == 1000);
    set_element(&t, 0, 0);
    must("KlDiv", (caller_value[]){T(x), T(t), I(0), I(0), T(out)});
    assert_true(get_element(&out, 0) == 0);
    assert_int_equal(call_op("MseLoss", (caller_value[]){T(x), T(t), I(3), T(out)}), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "reduction is 3"));
    assert_int_equal(call_op("MseLoss", (caller_value[]){T(x), T(t), I(1), T(out)}), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "result has 3 elements, but must have 1"));
    assert_int_equal(call_op("MseLoss", (caller_value[]){T(x), T(t), I(0), T(one)}), ACLNN_ERR_PARAM_INVALID);
    free_tensor(&x);
    free_tensor(&t);
    free_tensor(&out);
    free_tensor(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_loss), cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
