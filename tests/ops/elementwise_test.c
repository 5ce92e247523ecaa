/*
 * Every elementwise operator of the register, by its mapping: random values of every type, in every layout, broadcast,
 * with edge shapes, against one formula in double per function.
 */
#include "ops_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { ARITH, FLOAT, PRED, BITS, SAME } kind;
enum { NONE = 0, GRID = 1 /* values are multiples of 1/4 */, REAL_ONLY = 2, NONZERO_B = 4 };

typedef struct formula {
    const char *name;
    kind kind;
    int operands, flags;
    double low, high; /* of operands */
    double params[4];
    double slack; /* absolute tolerance in units of 2^-23, beside the relative one */
    double (*value)(double a, double b, double c, const double *p);
} formula;

static double logit_clipped(double a, double eps) {
    return eps < 0 ? a : a < eps ? eps : a > 1 - eps ? 1 - eps : a;
}
static double modulo(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static double integer_power(double a, double b) {
    return b < 0 && a == rint(a) && b == rint(b) && fabs(a) > 1 ? pow(a, b) : pow(a, b);
}
static double greatest_divisor(double a, double b) {
    while (b != 0) {
        double rest = fmod(a, b);
        a = b;
        b = rest;
    }
    return fabs(a);
}
/* Bisection: nothing in common with the library's way. */
static double inverse_erf(double x) {
    if (fabs(x) == 1)
        return copysign(INFINITY, x);
    double low = -6, high = 6;
    for (int i = 0; i < 90; i++) {
        double middle = (low + high) / 2;
        if (erf(middle) < x)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
static double sigma(double x) {
    return 1 / (1 + exp(-x));
}

#define F(name, kind, operands, flags, low, high, p0, p1, p2, slack, expression)                                       \
    static double value_##name(double a, double b, double c, const double *p) {                                        \
        (void)a, (void)b, (void)c, (void)p;                                                                            \
        return expression;                                                                                             \
    }
#define FORMULAS                                                                                                       \
    F(copy, SAME, 1, 0, -9, 9, 0, 0, 0, 0, a)                                                                          \
    F(cast, SAME, 1, 0, -9, 9, 0, 0, 0, 0, a)                                                                          \
    F(abs, ARITH, 1, 0, -9, 9, 0, 0, 0, 0, fabs(a))                                                                    \
    F(neg, ARITH, 1, 0, -9, 9, 0, 0, 0, 0, -a)                                                                         \
    F(sign, ARITH, 1, 0, -2, 2, 0, 0, 0, 0, (a > 0) - (a < 0))                                                         \
    F(relu, ARITH, 1, 0, -9, 9, 0, 0, 0, 0, a < 0 ? 0 : a)                                                             \
    F(floor, ARITH, 1, 0, -9, 9, 0, 0, 0, 0, floor(a))                                                                 \
    F(ceil, ARITH, 1, 0, -9, 9, 0, 0, 0, 0, ceil(a))                                                                   \
    F(round, ARITH, 1, GRID, -9, 9, 0, 0, 0, 0, rint(a))                                                               \
    F(trunc, ARITH, 1, 0, -9, 9, 0, 0, 0, 0, trunc(a))                                                                 \
    F(frac, ARITH, 1, GRID, -9, 9, 0, 0, 0, 0, a - trunc(a))                                                           \
    F(round_decimals, ARITH, 1, REAL_ONLY | GRID, -9, 9, 1, 0, 0, 0, rint(a * 10) / 10)                                \
    F(exp, FLOAT, 1, 0, -9, 9, 0, 0, 0, 0, exp(a))                                                                     \
    F(exp2, FLOAT, 1, 0, -9, 9, 0, 0, 0, 0, exp2(a))                                                                   \
    F(expm1, FLOAT, 1, 0, -3, 3, 0, 0, 0, 0, expm1(a))                                                                 \
    F(log, FLOAT, 1, 0, 0.01, 90, 0, 0, 0, 1, log(a))                                                                  \
    F(log2, FLOAT, 1, 0, 0.01, 90, 0, 0, 0, 1, log2(a))                                                                \
    F(log10, FLOAT, 1, 0, 0.01, 90, 0, 0, 0, 1, log10(a))                                                              \
    F(log1p, FLOAT, 1, 0, -0.9, 90, 0, 0, 0, 1, log1p(a))                                                              \
    F(sqrt, FLOAT, 1, 0, 0, 90, 0, 0, 0, 0, sqrt(a))                                                                   \
    F(rsqrt, FLOAT, 1, 0, 0.01, 90, 0, 0, 0, 0, 1 / sqrt(a))                                                           \
    F(reciprocal, FLOAT, 1, 0, 0.01, 90, 0, 0, 0, 0, 1 / a)                                                            \
    F(sin, FLOAT, 1, 0, -90, 90, 0, 0, 0, 1, sin(a))                                                                   \
    F(cos, FLOAT, 1, 0, -90, 90, 0, 0, 0, 1, cos(a))                                                                   \
    F(tan, FLOAT, 1, 0, -1.5, 1.5, 0, 0, 0, 1, tan(a))                                                                 \
    F(asin, FLOAT, 1, 0, -1, 1, 0, 0, 0, 1, asin(a))                                                                   \
    F(acos, FLOAT, 1, 0, -1, 1, 0, 0, 0, 1, acos(a))                                                                   \
    F(atan, FLOAT, 1, 0, -9, 9, 0, 0, 0, 1, atan(a))                                                                   \
    F(sinh, FLOAT, 1, 0, -3, 3, 0, 0, 0, 1, sinh(a))                                                                   \
    F(cosh, FLOAT, 1, 0, -3, 3, 0, 0, 0, 1, cosh(a))                                                                   \
    F(asinh, FLOAT, 1, 0, -9, 9, 0, 0, 0, 1, asinh(a))                                                                 \
    F(acosh, FLOAT, 1, 0, 1.1, 90, 0, 0, 0, 1, acosh(a))                                                               \
    F(atanh, FLOAT, 1, 0, -0.9, 0.9, 0, 0, 0, 1, atanh(a))                                                             \
    F(erf, FLOAT, 1, 0, -3, 3, 0, 0, 0, 1, erf(a))                                                                     \
    F(erfc, FLOAT, 1, 0, -3, 3, 0, 0, 0, 1, erfc(a))                                                                   \
    F(sinc, FLOAT, 1, 0, -3, 3, 0, 0, 0, 2, a == 0 ? 1 : sin(M_PI * a) / (M_PI * a))                                   \
    F(logit, FLOAT, 1, 0, 0.01, 0.99, 0.125, 0, 0, 4, log(logit_clipped(a, p[0]) / (1 - logit_clipped(a, p[0]))))      \
    F(tanh, FLOAT, 1, 0, -9, 9, 0, 0, 0, 1, tanh(a))                                                                   \
    F(sigmoid, FLOAT, 1, 0, -20, 20, 0, 0, 0, 0, sigma(a))                                                             \
    F(silu, FLOAT, 1, 0, -20, 20, 0, 0, 0, 1, a *sigma(a))                                                             \
    F(log_sigmoid, FLOAT, 1, 0, -20, 20, 0, 0, 0, 1, a < 0 ? a - log1p(exp(a)) : -log1p(exp(-a)))                      \
    F(gelu, FLOAT, 1, 0, -6, 6, 0, 0, 0, 2, 0.5 * a * (1 + erf(a * M_SQRT1_2)))                                        \
    F(gelu_quick, FLOAT, 1, 0, -6, 6, 0, 0, 0, 2, a *sigma(1.702 * a))                                                 \
    F(gelu_by_mode, FLOAT, 1, 0, -6, 6, 1, 0, 0, 2,                                                                    \
      0.5 * a * (1 + tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a))))                                       \
    F(mish, FLOAT, 1, 0, -9, 30, 0, 0, 0, 2, a *tanh(log1p(exp(a))))                                                   \
    F(hardsigmoid, FLOAT, 1, 0, -9, 9, 0, 0, 0, 1, fmin(fmax(a / 6 + 0.5, 0), 1))                                      \
    F(hardswish, FLOAT, 1, 0, -9, 9, 0, 0, 0, 2, a *fmin(fmax(a + 3, 0), 6) / 6)                                       \
    F(elu, FLOAT, 1, 0, -9, 9, 1.5, 2, 0.5, 2, p[1] * (a > 0 ? a : p[0] * expm1(a * p[2])))                            \
    F(celu, FLOAT, 1, 0, -9, 9, 1.5, 0, 0, 2, a > 0 ? a : p[0] * expm1(a / p[0]))                                      \
    F(leaky_relu, FLOAT, 1, 0, -9, 9, 0.125, 0, 0, 0, a > 0 ? a : a * p[0])                                            \
    F(softplus, FLOAT, 1, 0, -9, 30, 1.5, 20, 0, 2, a *p[0] > p[1] ? a : log1p(exp(a * p[0])) / p[0])                  \
    F(threshold, ARITH, 1, GRID, -9, 9, 2, 5, 0, 0, a <= p[0] ? p[1] : a)                                              \
    F(hardshrink, FLOAT, 1, GRID, -9, 9, 2, 0, 0, 0, fabs(a) <= p[0] ? 0 : a)                                          \
    F(softshrink, FLOAT, 1, GRID, -9, 9, 2, 0, 0, 0, a > p[0] ? a - p[0] : a < -p[0] ? a + p[0] : 0)                   \
    F(nan_to_num, FLOAT, 1, 0, -9, 9, 1, 2, 3, 0, a)                                                                   \
    F(isfinite, PRED, 1, 0, -9, 9, 0, 0, 0, 0, 1)                                                                      \
    F(isposinf, PRED, 1, 0, -9, 9, 0, 0, 0, 0, 0)                                                                      \
    F(isneginf, PRED, 1, 0, -9, 9, 0, 0, 0, 0, 0)                                                                      \
    F(signbit, PRED, 1, 0, -9, 9, 0, 0, 0, 0, a < 0)                                                                   \
    F(logical_not, PRED, 1, GRID, -1, 1, 0, 0, 0, 0, a == 0)                                                           \
    F(eq, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a == b)                                                                    \
    F(ne, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a != b)                                                                    \
    F(lt, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a < b)                                                                     \
    F(le, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a <= b)                                                                    \
    F(gt, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a > b)                                                                     \
    F(ge, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a >= b)                                                                    \
    F(logical_and, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a != 0 && b != 0)                                                 \
    F(logical_or, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, a != 0 || b != 0)                                                  \
    F(logical_xor, PRED, 2, GRID, -1, 1, 0, 0, 0, 0, (a != 0) != (b != 0))                                             \
    F(isclose, PRED, 2, GRID, -1, 1, 0.25, 0.125, 0, 0, fabs(a - b) <= p[1] + p[0] * fabs(b))                          \
    F(bitwise_not, BITS, 1, 0, -9, 9, 0, 0, 0, 0, (double)~(int64_t)a)                                                 \
    F(bitwise_and, BITS, 2, 0, -9, 9, 0, 0, 0, 0, (double)((int64_t)a & (int64_t)b))                                   \
    F(bitwise_or, BITS, 2, 0, -9, 9, 0, 0, 0, 0, (double)((int64_t)a | (int64_t)b))                                    \
    F(bitwise_xor, BITS, 2, 0, -9, 9, 0, 0, 0, 0, (double)((int64_t)a ^ (int64_t)b))                                   \
    F(shift_left, BITS, 2, 0, 0, 6, 0, 0, 0, 0, a *exp2(b))                                                            \
    F(shift_right, BITS, 2, 0, 0, 6, 0, 0, 0, 0, floor(a / exp2(b)))                                                   \
    F(add, ARITH, 2, 0, -9, 9, 3, 0, 0, 32, a + p[0] * b)                                                              \
    F(sub, ARITH, 2, 0, -9, 9, 3, 0, 0, 32, a - p[0] * b)                                                              \
    F(add_relu, ARITH, 2, 0, -9, 9, 3, 0, 0, 32, fmax(a + p[0] * b, 0))                                                \
    F(mul, ARITH, 2, 0, -9, 9, 0, 0, 0, 0, a *b)                                                                       \
    F(div, FLOAT, 2, NONZERO_B, -9, 9, 0, 0, 0, 0, a / b)                                                              \
    F(div_rounded, ARITH, 2, NONZERO_B | GRID, -9, 9, 1, 0, 0, 0, trunc(a / b))                                        \
    F(floor_div, ARITH, 2, NONZERO_B | GRID, -9, 9, 0, 0, 0, 0, floor(a / b))                                          \
    F(fmod, ARITH, 2, NONZERO_B | GRID, -9, 9, 0, 0, 0, 0, fmod(a, b))                                                 \
    F(remainder, ARITH, 2, NONZERO_B | GRID, -9, 9, 0, 0, 0, 0, modulo(a, b))                                          \
    F(pow, ARITH, 2, 0, 0.25, 4, 0, 0, 0, 0, integer_power(a, b))                                                      \
    F(maximum, ARITH, 2, 0, -9, 9, 0, 0, 0, 0, fmax(a, b))                                                             \
    F(minimum, ARITH, 2, 0, -9, 9, 0, 0, 0, 0, fmin(a, b))                                                             \
    F(atan2, FLOAT, 2, NONZERO_B, -9, 9, 0, 0, 0, 1, atan2(a, b))                                                      \
    F(logaddexp, FLOAT, 2, 0, -9, 9, 0, 0, 0, 4, log(exp(a) + exp(b)))                                                 \
    F(logaddexp2, FLOAT, 2, 0, -9, 9, 0, 0, 0, 4, log2(exp2(a) + exp2(b)))                                             \
    F(xlogy, FLOAT, 2, 0, 0.25, 9, 0, 0, 0, 8, a == 0 ? 0 : a * log(b))                                                \
    F(where, ARITH, 3, GRID, -9, 9, 0, 0, 0, 0, a != 0 ? b : c)                                                        \
    F(clamp, ARITH, 3, 0, -9, 9, 0, 0, 0, 0, fmin(fmax(a, b), c))                                                      \
    F(addcmul, ARITH, 3, 0, -9, 9, 3, 0, 0, 256, a + p[0] * b * c)                                                     \
    F(addcdiv, FLOAT, 3, NONZERO_B, -9, 9, 3, 0, 0, 256, a + p[0] * b / c)                                             \
    F(lerp, FLOAT, 3, 0, -9, 9, 0, 0, 0, 400, a + c * (b - a))                                                         \
    F(sigmoid_backward, FLOAT, 2, 0, -9, 9, 0, 0, 0, 0, a *b *(1 - b))                                                 \
    F(tanh_backward, FLOAT, 2, 0, -9, 9, 0, 0, 0, 32, a *(1 - b * b))                                                  \
    F(silu_backward, FLOAT, 2, 0, -9, 9, 0, 0, 0, 64, a *sigma(b) * (1 + b * (1 - sigma(b))))                          \
    F(threshold_backward, ARITH, 2, GRID, -9, 9, 2, 0, 0, 0, b > p[0] ? a : 0)                                         \
    F(leaky_relu_backward, FLOAT, 2, 0, -9, 9, 0.125, 0, 0, 0, b > 0 ? a : a * p[0])                                   \
    F(hardtanh_backward, FLOAT, 2, GRID, -9, 9, -2, 3, 0, 0, b > p[0] && b < p[1] ? a : 0)                             \
    F(hardsigmoid_linear, FLOAT, 1, 0, -9, 9, 0.25, 0.5, 0, 1, fmin(fmax(a * p[0] + p[1], 0), 1))                       \
    F(hardsigmoid_backward, FLOAT, 2, 0, -9, 9, 0, 0, 0, 1, b > -3 && b < 3 ? a / 6 : 0)                               \
    F(hardswish_backward, FLOAT, 2, GRID, -9, 9, 0, 0, 0, 16, b < -3 ? 0 : b <= 3 ? a * (b / 3 + 0.5) : a)             \
    F(hardshrink_backward, FLOAT, 2, GRID, -9, 9, 2, 0, 0, 0, fabs(b) <= p[0] ? 0 : a)                                 \
    F(softplus_backward, FLOAT, 2, 0, -9, 9, 1.5, 20, 0, 1, b *p[0] > p[1] ? a : a * sigma(b * p[0]))                  \
    F(round_off, ARITH, 1, GRID, -9, 9, 2, 0, 0, 0, floor(a))                                                          \
    F(erfinv, FLOAT, 1, 0, -0.99, 0.99, 0, 0, 0, 4, inverse_erf(a))                                                    \
    F(isin, PRED, 2, GRID, -1, 1, 1, 0, 0, 0, a != b)                                                                  \
    F(gcd, BITS, 2, 0, -60, 60, 0, 0, 0, 0, greatest_divisor(a, b))                                                    \
    F(masked_scale, FLOAT, 2, 0, -9, 9, 3, 0, 0, 0, a *b *p[0])                                                        \
    F(gelu_backward_by_mode, FLOAT, 2, 0, -6, 6, 1, 0, 0, 64,                                                          \
      a *(sigma(2 * 0.79788456080286535588 * (b + 0.044715 * b * b * b)) +                                             \
          b * sigma(2 * 0.79788456080286535588 * (b + 0.044715 * b * b * b)) *                                         \
              sigma(-2 * 0.79788456080286535588 * (b + 0.044715 * b * b * b)) * 2 * 0.79788456080286535588 *           \
              (1 + 3 * 0.044715 * b * b)))                                                                             \
    F(gelu_quick_backward, FLOAT, 2, 0, -6, 6, 0, 0, 0, 64,                                                            \
      a *(sigma(1.702 * b) + 1.702 * b * sigma(1.702 * b) * sigma(-1.702 * b)))                                        \
    F(log_sigmoid_backward, FLOAT, 2, 0, -20, 20, 0, 0, 0, 0, a *sigma(-b))                                            \
    F(logit_backward, FLOAT, 2, 0, 0.01, 0.99, 0.125, 0, 0, 0, b<p[0] || b> 1 - p[0] ? 0 : a / (b * (1 - b)))          \
    F(mish_backward, FLOAT, 2, 0, -9, 30, 0, 0, 0, 64,                                                                 \
      a *(tanh(log1p(exp(b))) + b * (1 - tanh(log1p(exp(b))) * tanh(log1p(exp(b)))) * sigma(b)))                       \
    F(elu_backward, FLOAT, 2, 0, -9, 9, 1.5, 2, 0.5, 1, a *(b > 0 ? p[1] : p[2] * p[0] * p[1] * exp(b * p[2])))        \
    F(gelu_backward, FLOAT, 2, 0, -6, 6, 0, 0, 0, 32,                                                                  \
      a *(0.5 * (1 + erf(b * M_SQRT1_2)) + b * exp(-0.5 * b * b) * 0.39894228040143267794))
FORMULAS
#undef F
#define F(name, kind, operands, flags, low, high, p0, p1, p2, slack, expression)                                       \
    {#name, kind, operands, flags, low, high, {p0, p1, p2, 0}, slack, value_##name},
static const formula formulas[] = {FORMULAS};

static const formula *find_formula(const char *name) {
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        if (strcmp(formulas[i].name, name) == 0)
            return &formulas[i];
    fail_msg("no formula for the function %s", name);
    return NULL;
}

/* A mapping, taken apart. param >= 0: position in the signature; -1 a number; -2 absent. */
typedef struct mapping {
    const formula *f;
    int n_in, in[8], out, n_params;
    double number[8];
    char kind[16];
    char name[16][32];
} mapping;

static int param_of(const mapping *m, const char *word) {
    for (int i = 0; i < m->n_params; i++)
        if (strcmp(m->name[i], word) == 0)
            return i;
    fail_msg("%s is no parameter", word);
    return 0;
}

static mapping parse(const caller *op) {
    mapping m = {0};
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", op->params);
    for (char *word; (word = strtok_r(rest, ",", &rest)); m.n_params++)
        sscanf(word, "%c:%31s", &m.kind[m.n_params], m.name[m.n_params]); /* elementwise operators have no lists */
    snprintf(text, sizeof text, "%s", op->mapping);
    char *open = strchr(text, '('), *close = strchr(text, ')');
    *open = *close = '\0';
    m.f = find_formula(text);
    m.out = param_of(&m, close + 5);
    rest = open + 1;
    for (char *word; (word = strtok_r(rest, ", ", &rest)); m.n_in++) {
        m.in[m.n_in] = strcmp(word, "-") == 0 ? -2 : (word[0] >= '0' && word[0] <= '9') ? -1 : param_of(&m, word);
        m.number[m.n_in] = atof(word);
    }
    return m;
}

static bool is_unsigned(aclDataType type) {
    return type == ACL_UINT8 || type == ACL_BOOL || type == ACL_UINT16 || type == ACL_UINT32 || type == ACL_UINT64;
}

static double random_value(const formula *f, int operand, aclDataType type) {
    double low = f->low, high = f->high;
    if (operand == 0 && strcmp(f->name, "where") == 0)
        return (double)(random_bits() & 1);
    if (is_unsigned(type) && low < 0)
        low = 0;
    double v = random_between(low, high);
    if (!is_float(type)) {
        v = rint(v);
        if (low > 0 && v < 1)
            v = 1;
    } else if (f->flags & GRID) {
        v = rint(v * 4) / 4;
    }
    int divisor = f->operands == 3 ? 2 : 1;
    if (f->flags & NONZERO_B && operand == divisor && fabs(v) < 0.25)
        v = 1;
    return type == ACL_BOOL ? (v > 1 || (v != 0 && f->flags & NONZERO_B)) || (f->low > 0 && v != 0) : v;
}

static double tolerance(const formula *f, aclDataType type, double expected) {
    if (!is_float(type))
        return 0;
    double unit = type == ACL_DOUBLE    ? 0x1p-48
                  : type == ACL_FLOAT   ? 0x1p-23 * 8
                  : type == ACL_FLOAT16 ? 0x1p-10
                                        : 0x1p-7;
    double absolute = f->slack * (type == ACL_DOUBLE ? 0x1p-48 : 0x1p-23) + (type == ACL_FLOAT16 ? 0x1p-24 : 1e-37);
    return fabs(expected) * unit + absolute;
}

typedef struct shape {
    int rank;
    int64_t dims[4];
} shape;
static const shape shapes[] = {{0, {0}},    {1, {0}},       {1, {1}},          {1, {7}},    {2, {3, 5}},
                               {2, {0, 4}}, {3, {4, 1, 6}}, {4, {2, 3, 2, 5}}, {1, {2500}}, {2, {37, 65}}};

/* Drops leading dims or makes dims 1. */
static shape narrowed(shape s) {
    if (s.rank && random_bits() % 3 == 0) {
        memmove(s.dims, s.dims + 1, sizeof s.dims - sizeof s.dims[0]);
        s.rank--;
    }
    for (int d = 0; d < s.rank; d++)
        if (random_bits() % 4 == 0)
            s.dims[d] = 1;
    return s;
}

static int64_t source_index(const tensor *from, const tensor *to, int64_t index) {
    int64_t at = 0, step = 1;
    for (int d = to->rank - 1, k = from->rank - 1; k >= 0; d--, k--) {
        int64_t i = index % to->dims[d];
        index /= to->dims[d];
        at += (from->dims[k] == 1 ? 0 : i) * step;
        step *= from->dims[k];
    }
    return at;
}

static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,  ACL_DOUBLE, ACL_INT32,
                                    ACL_INT8,  ACL_UINT8,   ACL_INT64, ACL_INT16,  ACL_BOOL};

static aclDataType output_type(const formula *f, aclDataType in) {
    if (f->kind == PRED)
        return random_bits() & 1 ? ACL_BOOL : ACL_FLOAT;
    if (f->kind == SAME && strcmp(f->name, "cast") == 0)
        return types[random_bits() % 10];
    if (f->kind == SAME)
        return is_float(in) ? in : types[random_bits() % 10];
    return f->kind == FLOAT && !is_float(in) ? ACL_FLOAT : in;
}

static void check(const caller *op, const mapping *m, shape s, aclDataType type) {
    const formula *f = m->f;
    bool inplace = strncmp(op->name, "Inplace", 7) == 0;
    aclDataType out_type = output_type(f, type);
    if (inplace) {
        if (out_type != type && f->kind == FLOAT)
            return; /* integers cannot hold the results */
        out_type = type;
    }
    tensor tensors[16] = {0}, out = make_tensor(out_type, s.rank, s.dims, (layout)(random_bits() % LAYOUTS));
    const aclScalar *scalars[16] = {0};
    caller_value values[48] = {0};
    double constants[8] = {0};
    bool integral = !is_float(type);
    int last_tensor = 0;
    for (int k = 0; k < f->operands; k++)
        if (m->in[k] >= 0 && m->kind[m->in[k]] == 'T')
            last_tensor = k;
    for (int k = 0; k < m->n_in; k++) {
        int p = m->in[k];
        bool param = k >= f->operands;
        aclDataType in_type = k == 0 && strcmp(f->name, "where") == 0 ? ACL_BOOL : type;
        double v = param ? f->params[k - f->operands] : random_value(f, k, in_type);
        if (p < 0) {
            constants[k] = p == -1 ? m->number[k] : k == 1 ? -INFINITY : INFINITY;
        } else if (m->kind[p] == 'T') {
            if (p != m->out) {
                /* the last tensor makes the whole shape, unless the operator writes over one or copies */
                shape narrow = k == last_tensor && !inplace && f->kind != SAME ? s : narrowed(s);
                tensors[p] = make_tensor(in_type, narrow.rank, narrow.dims, (layout)(random_bits() % LAYOUTS));
            } else {
                tensors[p] = out;
            }
            for (int64_t i = 0; i < tensors[p].count; i++)
                set_element(&tensors[p], i, random_value(f, k, tensors[p].type));
            values[p].pointer = tensors[p].handle;
        } else if (m->kind[p] == 'S') {
            if (type == ACL_BOOL) {
                bool truth = (int64_t)v != 0;
                constants[k] = truth;
                scalars[p] = aclCreateScalar(&truth, ACL_BOOL);
            } else if (integral) {
                int64_t whole = (int64_t)v;
                constants[k] = (double)whole;
                scalars[p] = aclCreateScalar(&whole, ACL_INT64);
            } else {
                float real = (float)v;
                constants[k] = real;
                scalars[p] = aclCreateScalar(&real, ACL_FLOAT);
            }
            values[p].pointer = scalars[p];
        } else if (m->kind[p] == 'X') {
            constants[k] = v;
            values[p].pointer = v != 0 ? "tanh" : "none";
        } else if (m->kind[p] == 'R') {
            constants[k] = values[p].real = (float)v;
        } else {
            constants[k] = (double)(int64_t)v;
            values[p].integer = m->kind[p] == 'D' ? out_type : strcmp(f->name, "cast") == 0 ? out_type : (int64_t)v;
        }
    }
    for (int p = 0; p < m->n_params; p++) /* parameters the mapping does not use */
        if (m->kind[p] == 'T' && !values[p].pointer && p != m->out)
            values[p].pointer = out.handle;
    values[m->out].pointer = out.handle;
    double *expected = calloc((size_t)(out.count ? out.count : 1), sizeof *expected);
    for (int64_t i = 0; i < out.count; i++) {
        double in[8] = {0};
        for (int k = 0; k < m->n_in; k++) {
            const tensor *t = m->in[k] >= 0 && m->kind[m->in[k]] == 'T' ? &tensors[m->in[k]] : NULL;
            in[k] = t ? get_element(t, source_index(t, &out, i)) : constants[k];
        }
        expected[i] = f->value(in[0], in[1], in[2], in + f->operands);
        if (f->kind == BITS && out_type == ACL_BOOL) /* truth values are one bit */
            expected[i] = (double)((int64_t)expected[i] & 1);
    }
    aclnnStatus status = call_op(op->name, values);
    if (integral && f->flags & REAL_ONLY)
        assert_int_equal(status, ACLNN_ERR_PARAM_INVALID);
    else if (status)
        fail_msg("%s: %d: %s", op->name, status, sentence());
    for (int64_t i = 0; i < out.count && !status; i++) {
        double got = get_element(&out, i), want = round_to(out_type, expected[i]);
        if (!(fabs(got - want) <= tolerance(f, out_type, expected[i])) && !(got == want))
            fail_msg("%s type %d -> %d, rank %d, element %lld: %.17g, but must be %.17g", op->name, type, out_type,
                     s.rank, (long long)i, got, want);
    }
    assert_true(untouched_outside(&out));
    for (int p = 0; p < m->n_params; p++) {
        if (tensors[p].handle && p != m->out)
            free_tensor(&tensors[p]);
        if (scalars[p])
            aclDestroyScalar(scalars[p]);
    }
    free(expected);
    free_tensor(&out);
}

static void every_operator_of_the_register(void **state) {
    (void)state;
    unsigned tested = 0;
    for (unsigned i = 0; i < caller_count(); i++) {
        const caller *op = caller_at(i);
        if (strcmp(op->family, "elementwise") != 0)
            continue;
        mapping m = parse(op);
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            aclDataType type = types[t];
            if ((strcmp(op->types, "float") == 0 && !is_float(type)) ||
                (strcmp(op->types, "int") == 0 && is_float(type)))
                continue;
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
                check(op, &m, shapes[s], type);
        }
        tested++;
    }
    printf("%u operators\n", tested);
    assert_true(tested > 200);
}

static void special_values(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double in, out;
    } cases[] = {{"Exp", -INFINITY, 0},       {"Exp", 1000, INFINITY},
                 {"Sigmoid", -INFINITY, 0},   {"Sigmoid", INFINITY, 1},
                 {"Tanh", INFINITY, 1},       {"Tanh", -INFINITY, -1},
                 {"Silu", -1000, 0},          {"Silu", 1000, 1000},
                 {"Softplus", 1000, 1000},    {"Mish", 1000, 1000},
                 {"Gelu", 100, 100},          {"Gelu", -100, 0},
                 {"Log", 0, -INFINITY},       {"Sqrt", INFINITY, INFINITY},
                 {"Round", 2.5, 2},           {"Round", -3.5, -4},
                 {"Reciprocal", 0, INFINITY}, {"Relu", NAN, NAN},
                 {"Sign", NAN, NAN},          {"Log", -1, NAN},
                 {"Tanh", NAN, NAN},          {"Elu", -1000, -1},
                 {"IsFinite", NAN, 0},        {"IsPosInf", INFINITY, 1}};
    int64_t dims[] = {37};
    float one = 1, twenty = 20;
    aclScalar *s1 = aclCreateScalar(&one, ACL_FLOAT), *s20 = aclCreateScalar(&twenty, ACL_FLOAT);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tensor in = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS), out = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS);
        for (int i = 0; i < 37; i++)
            set_element(&in, i, cases[c].in);
        caller_value values[8] = {T(in), T(out)};
        if (strcmp(cases[c].name, "Softplus") == 0)
            values[1].pointer = s1, values[2].pointer = s20, values[3].pointer = out.handle;
        if (strcmp(cases[c].name, "Elu") == 0)
            values[1].pointer = values[2].pointer = values[3].pointer = s1, values[4].pointer = out.handle;
        if (call_op(cases[c].name, values))
            fail_msg("%s: %s", cases[c].name, sentence());
        for (int i = 0; i < 37; i++) {
            double got = get_element(&out, i);
            if (got != cases[c].out && !(isnan(got) && isnan(cases[c].out)))
                fail_msg("%s(%g) is %g, but must be %g", cases[c].name, cases[c].in, got, cases[c].out);
        }
        free_tensor(&in);
        free_tensor(&out);
    }
    aclDestroyScalar(s1);
    aclDestroyScalar(s20);
}

static void promotion_and_refusals(void **state) {
    (void)state;
    int64_t dims[] = {2, 3}, other_dims[] = {2, 4}, wrong[] = {3, 2};
    tensor half = make_tensor(ACL_FLOAT16, 2, dims, CONTIGUOUS), whole = make_tensor(ACL_INT32, 2, dims, STRIDED),
           out = make_tensor(ACL_FLOAT, 2, dims, CONTIGUOUS), bad = make_tensor(ACL_FLOAT, 2, other_dims, CONTIGUOUS),
           turned = make_tensor(ACL_FLOAT, 2, wrong, CONTIGUOUS), ints = make_tensor(ACL_INT32, 2, dims, CONTIGUOUS);
    for (int i = 0; i < 6; i++) {
        set_element(&half, i, 0.5 * i);
        set_element(&whole, i, i);
    }
    float two = 2;
    aclScalar *alpha = aclCreateScalar(&two, ACL_FLOAT);
    caller_value fine[] = {T(half), T(whole), P(alpha), T(out)};
    assert_int_equal(call_op("Add", fine), 0);
    for (int i = 0; i < 6; i++)
        assert_true(get_element(&out, i) == 2.5 * i);
    caller_value to_int[] = {T(half), T(whole), P(alpha), T(ints)};
    assert_int_equal(call_op("Add", to_int), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "out has elements of type i32"));
    caller_value mismatch[] = {T(half), T(bad), P(alpha), T(out)};
    assert_int_equal(call_op("Add", mismatch), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "other: dimension 1 is 4"));
    caller_value shape_wrong[] = {T(half), T(whole), P(alpha), T(turned)};
    assert_int_equal(call_op("Add", shape_wrong), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "out: dimension 0 is 3, but must be 2"));
    caller_value missing[] = {T(half), P(NULL), P(alpha), T(out)};
    assert_int_equal(call_op("Add", missing), ACLNN_ERR_PARAM_NULLPTR);
    assert_non_null(strstr(sentence(), "other is NULL"));
    caller_value cast_wrong[] = {T(half), I(ACL_INT8), T(out)};
    assert_int_equal(call_op("Cast", cast_wrong), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "dtype is i8"));
    caller_value expanded[] = {T(half), P(alpha), P(NULL)};
    int64_t zero_strides[] = {0, 1};
    aclTensor *zero = aclCreateTensor(dims, 2, ACL_FLOAT, zero_strides, 0, ACL_FORMAT_ND, dims, 1, out.data);
    expanded[2].pointer = zero;
    assert_int_equal(call_op("Muls", expanded), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "stride of dimension 0 is 0"));
    aclDestroyTensor(zero);
    aclDestroyScalar(alpha);
    tensor *all[] = {&half, &whole, &out, &bad, &turned, &ints};
    for (int i = 0; i < 6; i++)
        free_tensor(all[i]);
}

/* ggml writes a diagonal by a view with stride N + 1. */
static void diagonal_view(void **state) {
    (void)state;
    int64_t square[] = {64, 64}, line[] = {64}, stride[] = {65};
    tensor all = make_tensor(ACL_FLOAT, 2, square, CONTIGUOUS), src = make_tensor(ACL_FLOAT16, 1, line, STRIDED);
    for (int i = 0; i < 4096; i++)
        set_element(&all, i, -1);
    for (int i = 0; i < 64; i++)
        set_element(&src, i, i);
    aclTensor *diagonal = aclCreateTensor(line, 1, ACL_FLOAT, stride, 0, ACL_FORMAT_ND, square, 2, all.data);
    caller_value values[] = {P(diagonal), T(src)};
    assert_int_equal(call_op("InplaceCopy", values), 0);
    for (int i = 0; i < 4096; i++)
        assert_true(get_element(&all, i) == (i % 65 == 0 ? i / 65 : -1));
    aclDestroyTensor(diagonal);
    free_tensor(&all);
    free_tensor(&src);
}

/* ggml writes no rows at all, with strides that are products of the dims. */
static void nothing_shares_no_place(void **state) {
    (void)state;
    int64_t dims[] = {3, 1, 0, 8}, strides[] = {0, 0, 8, 1}, flat[] = {1}, order[] = {0, 1, 2, 3}, last[] = {3};
    int64_t rest[] = {3, 1, 0}, rest_strides[] = {0, 0, 1};
    tensor place = make_tensor(ACL_FLOAT, 1, flat, CONTIGUOUS);
    aclTensor *in = aclCreateTensor(dims, 4, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, flat, 1, place.data),
              *out = aclCreateTensor(dims, 4, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, flat, 1, place.data),
              *sums = aclCreateTensor(rest, 3, ACL_FLOAT, rest_strides, 0, ACL_FORMAT_ND, flat, 1, place.data);
    aclIntArray *permutation = aclCreateIntArray(order, 4), *dim = aclCreateIntArray(last, 1);
    caller_value cast[] = {P(in), I(ACL_FLOAT), P(out)}, permute[] = {P(in), P(permutation), P(out)},
                 sum[] = {P(in), P(dim), I(0), I(ACL_FLOAT), P(sums)}, running[] = {P(in), I(3), I(ACL_FLOAT), P(out)};
    assert_int_equal(call_op("Cast", cast), 0);
    assert_int_equal(call_op("Permute", permute), 0);
    assert_int_equal(call_op("ReduceSum", sum), 0);
    assert_int_equal(call_op("Cumsum", running), 0);
    aclDestroyTensor(in);
    aclDestroyTensor(out);
    aclDestroyTensor(sums);
    aclDestroyIntArray(permutation);
    aclDestroyIntArray(dim);
    free_tensor(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_of_the_register), cmocka_unit_test(special_values),
        cmocka_unit_test(promotion_and_refusals),         cmocka_unit_test(diagonal_view),
        cmocka_unit_test(nothing_shares_no_place),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
