/* Operators of language models besides attention: rotation, cross entropy, triangular systems; against plain double. */
#include "ops_test.h"

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

static double unit(aclDataType type) {
    return type == ACL_DOUBLE ? 0x1p-44 : type == ACL_FLOAT ? 0x1p-20 : type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

static void near(const char *name, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i);
    if (got == round_to(t->type, want) || (isnan(got) && isnan(want)) ||
        fabs(got - want) <= unit(t->type) * (fabs(want) + scale))
        return;
    fail_msg("%s type %d: element %lld is %.9g, but must be %.9g", name, t->type, (long long)i, got, want);
}

static void must(const char *name, const caller_value *values) {
    if (call_op(name, values))
        fail_msg("%s: %s", name, sentence());
}

static void refused(const char *name, const caller_value *values, const char *word) {
    assert_int_equal(call_op(name, values), ACLNN_ERR_PARAM_INVALID);
    if (!strstr(sentence(), word))
        fail_msg("%s says: %s; expected: %s", name, sentence(), word);
}

/* Number and sign of the element that is multiplied with the sine at place d; *own: the one with the cosine. */
static int64_t partner(int mode, int64_t d, int64_t n, double *sign, int64_t *own) {
    *own = d;
    if (mode == 1) {
        *sign = d % 2 ? 1 : -1;
        return d ^ 1;
    }
    int64_t half = mode == 2 ? n / 4 : n / 2, block = d / (2 * half), within = d % (2 * half);
    *sign = within < half ? -1 : 1;
    int64_t other = block * 2 * half + (within < half ? within + half : within - half);
    if (mode != 3)
        return other;
    *own = d < half ? 2 * d : 2 * (d - half) + 1;
    return other < half ? 2 * other : 2 * (other - half) + 1;
}

/* x is [2, 5, 3, n]; cos and sin are [angle dims, n]. */
static void check_rotation(const tensor *before, const tensor *c, const tensor *s, const tensor *out, int mode) {
    int64_t n = out->dims[3];
    for (int64_t i = 0; i < out->count; i++) {
        int64_t d = i % n, row = i - d, own, at[3] = {i / n / 15, i / n / 3 % 5, i / n % 3}, angle = 0;
        for (int k = 0; k < 3; k++)
            angle = angle * c->dims[k] + (c->dims[k] == 1 ? 0 : at[k]);
        double sign;
        int64_t other = partner(mode, d, n, &sign, &own);
        double cosine = get_element(c, angle * n + d), sine = get_element(s, angle * n + d);
        near("rotation", out, i,
             get_element(before, row + own) * cosine + sign * get_element(before, row + other) * sine, 1);
    }
    assert_true(untouched_outside(out));
}

static void rotations(void **state) {
    (void)state;
    static const int64_t sizes[] = {4, 40, 64, 128, 20};
    static const int64_t angles[][3] = {{1, 5, 1}, {2, 5, 3}, {1, 1, 1}, {1, 5, 3}};
    for (int c = 0; c < 60; c++) {
        aclDataType type = halves[c % 3];
        int mode = c / 3 % 4;
        int64_t n = sizes[random_bits() % 5], dims[] = {2, 5, 3, n};
        const int64_t *angle = angles[random_bits() % 4];
        int64_t angle_dims[] = {angle[0], angle[1], angle[2], n};
        tensor x = make_tensor(type, 4, dims, any_layout()), out = make_tensor(type, 4, dims, any_layout()),
               cosine = make_tensor(type, 4, angle_dims, any_layout()),
               sine = make_tensor(type, 4, angle_dims, any_layout());
        fill(&x, -2, 2);
        fill(&cosine, -1, 1);
        fill(&sine, -1, 1);
        caller_value values[] = {T(x), T(cosine), T(sine), I(mode), T(out)};
        must("RotaryPositionEmbedding", values);
        check_rotation(&x, &cosine, &sine, &out, mode);
        /* onto itself */
        caller_value own[] = {T(out), T(cosine), T(sine), I(mode), T(out)};
        for (int64_t i = 0; i < x.count; i++)
            set_element(&out, i, get_element(&x, i));
        must("RotaryPositionEmbedding", own);
        check_rotation(&x, &cosine, &sine, &out, mode);
        for (int64_t i = 0; i < x.count; i++)
            set_element(&out, i, get_element(&x, i));
        tensor key = make_tensor(type, 4, dims, any_layout()), key_before = make_tensor(type, 4, dims, CONTIGUOUS);
        fill(&key_before, -1, 1);
        for (int64_t i = 0; i < x.count; i++)
            set_element(&key, i, get_element(&key_before, i));
        static const char *const names[] = {"half", "interleave", "quarter", "interleave-half"};
        caller_value both[] = {T(out), T(key), T(cosine), T(sine), I(1), P(names[mode])};
        must("ApplyRotaryPosEmbV2", both);
        check_rotation(&x, &cosine, &sine, &out, mode);
        check_rotation(&key_before, &cosine, &sine, &key, mode);
        values[3].integer = 4;
        refused("RotaryPositionEmbedding", values, "mode is 4");
        both[5].pointer = "whole";
        refused("ApplyRotaryPosEmbV2", both, "rotaryMode is \"whole\"");
        both[4].integer = 4;
        refused("ApplyRotaryPosEmbV2", both, "queryRef has 4 dimensions, but must have 3");
        tensor *all[] = {&x, &out, &cosine, &sine, &key, &key_before};
        for (int i = 0; i < 6; i++)
            free_tensor(all[i]);
    }
    int64_t odd[] = {2, 5, 3, 7};
    tensor x = make_tensor(ACL_FLOAT, 4, odd, CONTIGUOUS), small = make_tensor(ACL_FLOAT, 3, odd, CONTIGUOUS);
    caller_value values[] = {T(x), T(x), T(x), I(0), T(x)}, other[] = {T(x), T(small), T(x), I(0), T(x)};
    refused("RotaryPositionEmbedding", values, "last dimension is 7, but must be a multiple of 2");
    values[4].pointer = small.handle;
    refused("RotaryPositionEmbedding", values, "out has 3 dimensions");
    other[0].pointer = other[4].pointer = small.handle;
    refused("RotaryPositionEmbedding", other, "last dimension");
    free_tensor(&x);
    free_tensor(&small);
}

static void soft_cross_entropy(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {5, 7}, {33, 130}, {3, 2500}, {0, 4}};
    for (int t = 0; t < 3; t++)
        for (int c = 0; c < 5; c++) {
            int64_t rows = shapes[c][0], n = shapes[c][1];
            tensor x = make_tensor(halves[t], 2, shapes[c], any_layout()),
                   label = make_tensor(halves[t], 2, shapes[c], any_layout()),
                   loss = make_tensor(halves[t], 1, &rows, any_layout()),
                   back = make_tensor(halves[t], 2, shapes[c], any_layout());
            fill(&x, -5, 5);
            fill(&label, 0, 2.0 / (double)n);
            caller_value values[] = {T(x), T(label), T(loss), T(back)};
            must("SoftmaxCrossEntropyWithLogits", values);
            for (int64_t r = 0; r < rows; r++) {
                double max = -INFINITY, sum = 0, want = 0;
                for (int64_t i = 0; i < n; i++)
                    max = fmax(max, get_element(&x, r * n + i));
                for (int64_t i = 0; i < n; i++)
                    sum += exp(get_element(&x, r * n + i) - max);
                for (int64_t i = 0; i < n; i++) {
                    double v = get_element(&x, r * n + i), l = get_element(&label, r * n + i);
                    want += l * (max + log(sum) - v);
                    double grad = exp(v - max) / sum - l;
                    if (fabs(get_element(&back, r * n + i) - grad) >
                        (unit(halves[t]) + 0x1p-20) * (fabs(grad) + l) + 0x1p-24)
                        fail_msg("backprop %g, but must be %g", get_element(&back, r * n + i), grad);
                }
                if (fabs(get_element(&loss, r) - want) > (unit(halves[t]) + 0x1p-20) * (want + 1))
                    fail_msg("loss %g, but must be %g", get_element(&loss, r), want);
            }
            values[2].pointer = back.handle;
            refused("SoftmaxCrossEntropyWithLogits", values, "loss has 2 dimensions");
            tensor *used[] = {&x, &label, &loss, &back};
            for (int i = 0; i < 4; i++)
                free_tensor(used[i]);
        }
}

static void triangular(void **state) {
    (void)state;
    static const aclDataType kinds[] = {ACL_FLOAT, ACL_DOUBLE, ACL_FLOAT16};
    static const int64_t sizes[] = {1, 3, 17, 64, 65, 150};
    for (int c = 0; c < 48; c++) {
        aclDataType type = kinds[c % 3];
        bool upper = c & 1, transpose = c >> 1 & 1, unitriangular = c >> 2 & 1;
        int64_t n = sizes[random_bits() % 6], k = 1 + (int64_t)(random_bits() % 40), spread = random_bits() & 1 ? 1 : 3;
        int64_t b_dims[] = {2, 3, n, k}, a_dims[] = {2, spread, n, n}, copy_dims[] = {2, 3, n, n};
        tensor b = make_tensor(type, 4, b_dims, any_layout()), a = make_tensor(type, 4, a_dims, any_layout()),
               x = make_tensor(type, 4, b_dims, any_layout()), m = make_tensor(type, 4, copy_dims, any_layout());
        fill(&b, -1, 1);
        for (int64_t i = 0; i < a.count; i++) { /* well conditioned */
            bool diagonal = i / n % n == i % n;
            set_element(&a, i, diagonal ? random_between(1, 2) : random_between(-1, 1) / (double)n);
        }
        caller_value values[] = {T(b), T(a), I(upper), I(transpose), I(unitriangular), T(x), T(m)};
        must("TriangularSolve", values);
        for (int64_t batch = 0; batch < 6; batch++) {
            int64_t from = (batch / 3 * spread + (spread == 1 ? 0 : batch % 3)) * n * n;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < k; j++) {
                    double sum = 0, size = 0;
                    for (int64_t t = 0; t < n; t++) {
                        int64_t row = transpose ? t : i, column = transpose ? i : t;
                        if (upper ? column < row : column > row)
                            continue;
                        double factor = row == column && unitriangular ? 1 : get_element(&a, from + row * n + column);
                        double term = factor * get_element(&x, (batch * n + t) * k + j);
                        sum += term;
                        size += fabs(term);
                    }
                    double want = get_element(&b, (batch * n + i) * k + j);
                    if (fabs(sum - want) > 4 * unit(type) * (size + 1))
                        fail_msg("row %lld column %lld of %lld: %g, but must be %g", (long long)i, (long long)j,
                                 (long long)n, sum, want);
                }
            for (int64_t i = 0; i < n * n; i++)
                assert_true(get_element(&m, batch * n * n + i) == get_element(&a, from + i));
        }
        assert_true(untouched_outside(&x) && untouched_outside(&m));
        values[1].pointer = b.handle;
        if (n != k)
            refused("TriangularSolve", values, "A has the shape");
        tensor *used[] = {&b, &a, &x, &m};
        for (int i = 0; i < 4; i++)
            free_tensor(used[i]);
    }
}

int main(void) {
    test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotations),
        cmocka_unit_test(soft_cross_entropy),
        cmocka_unit_test(triangular),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
