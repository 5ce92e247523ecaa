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
        caller_value second[] = {T(x), T(cosine), T(sine), I(mode), P(NULL), T(out)},
                     third[] = {T(x), T(cosine), T(sine), T(out)};
        must("RotaryPositionEmbeddingV2", second);
        check_rotation(&x, &cosine, &sine, &out, mode);
        second[4].pointer = x.handle;
        refused("RotaryPositionEmbeddingV2", second, "rotateOptional is given");
        must("InterleaveRope", third);
        check_rotation(&x, &cosine, &sine, &out, 3);
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

/* Every element of the result gives back to the two of x, and to the cosine and sine, that it was made of. */
static void rotation_gradients(void **state) {
    (void)state;
    static const int64_t angles[][3] = {{1, 5, 1}, {2, 5, 3}, {1, 1, 1}, {1, 5, 3}};
    enum { MOST = 2 * 5 * 3 * 40 };
    for (int c = 0; c < 48; c++) {
        aclDataType type = halves[c % 3];
        int mode = c / 3 % 4;
        int64_t n = c % 2 ? 8 : 40, dims[] = {2, 5, 3, n};
        const int64_t *angle = angles[c / 12];
        int64_t angle_dims[] = {angle[0], angle[1], angle[2], n};
        tensor g = make_tensor(type, 4, dims, any_layout()), x = make_tensor(type, 4, dims, any_layout()),
               dx = make_tensor(type, 4, dims, any_layout()), cosine = make_tensor(type, 4, angle_dims, any_layout()),
               sine = make_tensor(type, 4, angle_dims, any_layout()),
               dcos = make_tensor(type, 4, angle_dims, any_layout()),
               dsin = make_tensor(type, 4, angle_dims, any_layout());
        double want[3][MOST] = {{0}};
        fill(&g, -1, 1);
        fill(&x, -1, 1);
        fill(&cosine, -1, 1);
        fill(&sine, -1, 1);
        caller_value values[] = {T(g), T(cosine), T(sine), T(x), I(mode), T(dx), T(dcos), T(dsin)};
        must("RotaryPositionEmbeddingGrad", values);
        for (int64_t i = 0; i < g.count; i++) {
            int64_t d = i % n, row = i - d, own, at[3] = {i / n / 15, i / n / 3 % 5, i / n % 3}, line = 0;
            for (int k = 0; k < 3; k++)
                line = line * angle_dims[k] + (angle_dims[k] == 1 ? 0 : at[k]);
            double sign, gradient = get_element(&g, i);
            int64_t other = partner(mode, d, n, &sign, &own);
            want[0][row + own] += gradient * get_element(&cosine, line * n + d);
            want[0][row + other] += sign * gradient * get_element(&sine, line * n + d);
            want[1][line * n + d] += gradient * get_element(&x, row + own);
            want[2][line * n + d] += sign * gradient * get_element(&x, row + other);
        }
        for (int64_t i = 0; i < dx.count; i++)
            near("dx", &dx, i, want[0][i], 1);
        for (int64_t i = 0; i < dcos.count; i++) {
            near("dcos", &dcos, i, want[1][i], 4);
            near("dsin", &dsin, i, want[2][i], 4);
        }
        assert_true(untouched_outside(&dx) && untouched_outside(&dcos) && untouched_outside(&dsin));
        for (int i = 0; i < 3; i++)
            values[i < 1 ? 3 : 5 + i].pointer = NULL;
        must("RotaryPositionEmbeddingGrad", values); /* dx alone */
        for (int64_t i = 0; i < dx.count; i++)
            near("dx alone", &dx, i, want[0][i], 1);
        values[4].integer = 4;
        refused("RotaryPositionEmbeddingGrad", values, "mode is 4");
        tensor *all[] = {&g, &x, &dx, &cosine, &sine, &dcos, &dsin};
        for (int i = 0; i < 7; i++)
            free_tensor(all[i]);
    }
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

/* x is [n, c] or, with two more dims, [n, c, 3, 2]; targets by number. */
static void nll(void **state) {
    (void)state;
    static const aclDataType kinds[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE};
    for (int c = 0; c < 48; c++) {
        aclDataType type = kinds[c % 4];
        const bool plane = c & 1, weighted = c >> 1 & 1;
        int64_t reduction = c % 3, classes = 5, n = 1 + c % 7, inner = plane ? 6 : 1;
        int64_t dims[] = {n, classes, 3, 2}, place_dims[] = {n, 3, 2}, one = 1;
        tensor x = make_tensor(type, plane ? 4 : 2, dims, any_layout()),
               grad = make_tensor(type, plane ? 4 : 2, dims, any_layout()),
               target = make_tensor(c % 5 ? ACL_INT64 : ACL_INT32, plane ? 3 : 1, place_dims, any_layout()),
               weight = make_tensor(type, 1, &classes, any_layout()), total = make_tensor(type, 0, NULL, CONTIGUOUS),
               loss = reduction ? make_tensor(type, 1, &one, any_layout())
                                : make_tensor(type, plane ? 3 : 1, place_dims, any_layout());
        fill(&x, -3, 0);
        fill(&weight, 0.5, 1);
        for (int64_t i = 0; i < target.count; i++)
            set_element(&target, i, (double)(random_bits() % 5));
        caller_value values[] = {T(x), T(target), T(weight), I(reduction), I(2), T(loss), T(total)};
        if (!weighted)
            values[2].pointer = NULL;
        must(plane ? "NLLLoss2d" : "NLLLoss", values);
        double sum = 0, weights = 0;
        for (int64_t i = 0; i < target.count; i++) {
            int64_t t = (int64_t)get_element(&target, i);
            double w = t == 2 ? 0 : weighted ? get_element(&weight, t) : 1;
            double l = -w * get_element(&x, (i / inner * classes + t) * inner + i % inner);
            if (!reduction)
                near("NLLLoss", &loss, i, l, 0);
            sum += l;
            weights += w;
        }
        if (reduction) {
            near("NLLLoss", &loss, 0, reduction == 1 ? sum / weights : sum, 0);
            near("NLLLoss weight", &total, 0, weights, 0);
        }
        if (reduction == 1 && weights == 0)
            set_element(&total, 0, weights = 1);
        fill(&loss, -1, 1); /* now its gradient */
        caller_value back[] = {T(loss), T(x), T(target), values[2], I(reduction), I(2), T(total), T(grad)};
        must(plane ? "NLLLoss2dBackward" : "NLLLossBackward", back);
        for (int64_t i = 0; i < target.count; i++)
            for (int64_t k = 0; k < classes; k++) {
                int64_t t = (int64_t)get_element(&target, i);
                double w = t == 2 || t != k ? 0 : weighted ? get_element(&weight, t) : 1;
                double g = get_element(&loss, reduction ? 0 : i) / (reduction == 1 ? get_element(&total, 0) : 1);
                near("NLLLoss gradient", &grad, (i / inner * classes + k) * inner + i % inner, -w * g, 0);
            }
        assert_true(untouched_outside(&grad));
        values[3].integer = 3;
        refused(plane ? "NLLLoss2d" : "NLLLoss", values, "reduction is 3");
        tensor *all[] = {&x, &grad, &target, &weight, &total, &loss};
        for (int i = 0; i < 6; i++)
            free_tensor(all[i]);
    }
}

static void cross_entropy(void **state) {
    (void)state;
    static const char *const reductions[] = {"none", "mean", "sum"};
    for (int c = 0; c < 36; c++) {
        aclDataType type = halves[c % 3];
        int64_t dims[] = {1 + c % 9, c & 1 ? 37 : 300}, one = 1, n = dims[1];
        const bool weighted = c >> 1 & 1;
        const int reduction = c / 3 % 3, ignored = c >> 2 & 1 ? 4 : -100;
        const double smoothing = c % 4 == 3 ? 0.25 : 0;
        tensor x = make_tensor(type, 2, dims, any_layout()), log_prob = make_tensor(type, 2, dims, any_layout()),
               out = make_tensor(type, 2, dims, any_layout()), target = make_tensor(ACL_INT64, 1, dims, any_layout()),
               weight = make_tensor(ACL_FLOAT, 1, dims + 1, any_layout()),
               loss = make_tensor(type, 1, reduction ? &one : dims, any_layout());
        fill(&x, -3, 3);
        fill(&weight, 0.5, 1);
        for (int64_t i = 0; i < dims[0]; i++)
            set_element(&target, i, i == 0 ? 1 : (double)(random_bits() % 8));
        caller_value values[] = {T(x),       T(target),    T(weight), P(reductions[reduction]),
                                 I(ignored), R(smoothing), R(0),      I(0),
                                 T(loss),    T(log_prob),  P(NULL),   P(NULL)};
        if (!weighted)
            values[2].pointer = NULL;
        must("CrossEntropyLoss", values);
        double sum = 0, weights = 0, *lse = calloc((size_t)dims[0], sizeof *lse);
        for (int64_t i = 0; i < dims[0]; i++) {
            int64_t t = (int64_t)get_element(&target, i);
            double e = 0, smooth = 0, w = weighted ? get_element(&weight, t) : 1;
            for (int64_t k = 0; k < n; k++)
                e += exp(get_element(&x, i * n + k));
            lse[i] = log(e);
            for (int64_t k = 0; k < n; k++) {
                near("log_prob", &log_prob, i * n + k, get_element(&x, i * n + k) - lse[i], 1);
                smooth += (weighted ? get_element(&weight, k) : 1) * (get_element(&x, i * n + k) - lse[i]);
            }
            double l = -(1 - smoothing) * w * (get_element(&x, i * n + t) - lse[i]) - smoothing / (double)n * smooth;
            if (t == ignored)
                l = w = 0;
            if (!reduction)
                near("CrossEntropyLoss", &loss, i, l, 1);
            sum += l;
            weights += w;
        }
        if (reduction)
            near("CrossEntropyLoss", &loss, 0, reduction == 1 ? sum / weights : sum, 1);
        fill(&loss, -1, 1);
        caller_value back[] = {T(loss),   T(log_prob), T(target), values[2], P(NULL), P(NULL),
                               values[3], values[4],   values[5], R(0),      T(out)};
        must("CrossEntropyLossGrad", back);
        for (int64_t i = 0; i < dims[0]; i++) {
            int64_t t = (int64_t)get_element(&target, i);
            double g = get_element(&loss, reduction ? 0 : i) / (reduction == 1 ? weights : 1), all = 0;
            for (int64_t k = 0; k < n; k++)
                all += -smoothing / (double)n * (weighted ? get_element(&weight, k) : 1) -
                       (k == t ? (1 - smoothing) * (weighted ? get_element(&weight, t) : 1) : 0);
            for (int64_t k = 0; k < n; k++) {
                double own = -smoothing / (double)n * (weighted ? get_element(&weight, k) : 1) -
                             (k == t ? (1 - smoothing) * (weighted ? get_element(&weight, t) : 1) : 0);
                near("CrossEntropyLoss gradient", &out, i * n + k,
                     t == ignored ? 0 : g * (own - exp(get_element(&log_prob, i * n + k)) * all), fabs(g));
            }
        }
        free(lse);
        values[3].pointer = "most";
        refused("CrossEntropyLoss", values, "reduction is \"most\"");
        tensor *all[] = {&x, &log_prob, &out, &target, &weight, &loss};
        for (int i = 0; i < 6; i++)
            free_tensor(all[i]);
    }
}

/* A call that fails when it runs, in a stream of its own: a failed one stays failed. */
static void fails_when_run(const char *name, const caller_value *values, const char *word) {
    const caller *op = find_caller(name);
    aclrtStream stream;
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    assert_int_equal(aclrtCreateStream(&stream), 0);
    assert_int_equal(op->prepare(values, &size, &executor), 0);
    assert_int_equal(op->run(NULL, size, executor, stream), 0);
    assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
    if (!strstr(sentence(), word))
        fail_msg("%s says: %s; expected: %s", name, sentence(), word);
    aclrtDestroyStream(stream);
}

typedef struct delta {
    tensor q, k, v, beta, g, gk, out;
    int64_t heads, key_heads, depth, out_depth;
    double scale;
} delta;

/* One token of one head in double; s is out_depth x depth. */
static void delta_step(const delta *d, int64_t t, int64_t h, double *s, double unit_out) {
    const int64_t kh = h / (d->heads / d->key_heads), n = d->depth;
    const double beta = get_element(&d->beta, t * d->heads + h);
    for (int64_t r = 0; r < d->out_depth; r++) {
        double seen = 0, out = 0, *row = s + r * n;
        for (int64_t i = 0; i < n; i++) {
            double decay = d->g.data ? get_element(&d->g, t * d->heads + h) : 0;
            decay += d->gk.data ? get_element(&d->gk, (t * d->heads + h) * n + i) : 0;
            row[i] *= exp(decay);
            seen += row[i] * get_element(&d->k, (t * d->key_heads + kh) * n + i);
        }
        double change = beta * (get_element(&d->v, (t * d->heads + h) * d->out_depth + r) - seen);
        for (int64_t i = 0; i < n; i++) {
            row[i] += change * get_element(&d->k, (t * d->key_heads + kh) * n + i);
            out += row[i] * get_element(&d->q, (t * d->key_heads + kh) * n + i);
        }
        near("out", &d->out, (t * d->heads + h) * d->out_depth + r, out * d->scale, unit_out);
    }
}

static void gated_delta(void **state) {
    (void)state;
    static const int64_t lengths[] = {3, 1, 0, 5, 2}, accepted[] = {2, 1, 1, 5, 1};
    enum { SEQUENCES = 5, TOKENS = 11, STATES = 14 };
    for (int c = 0; c < 24; c++) {
        aclDataType type = halves[c % 3];
        const bool chunk = c & 1;
        delta d = {.heads = 4, .key_heads = 2, .depth = c % 4 ? 40 : 128, .out_depth = c % 5 ? 24 : 128, .scale = 0.5};
        int64_t qd[] = {TOKENS, d.key_heads, d.depth}, vd[] = {TOKENS, d.heads, d.out_depth},
                gkd[] = {TOKENS, d.heads, d.depth}, sd[] = {chunk ? SEQUENCES : STATES, d.heads, d.out_depth, d.depth},
                sequences = SEQUENCES, tokens = TOKENS;
        d.q = make_tensor(type, 3, qd, any_layout());
        d.k = make_tensor(type, 3, qd, any_layout());
        d.v = make_tensor(type, 3, vd, any_layout());
        d.out = make_tensor(type, 3, vd, any_layout());
        d.beta = make_tensor(type, 2, vd, any_layout());
        tensor states = make_tensor(type, 4, sd, any_layout()), final = make_tensor(type, 4, sd, any_layout()),
               length = make_tensor(ACL_INT32, 1, &sequences, any_layout()),
               number = make_tensor(ACL_INT32, 1, &tokens, any_layout()),
               accept = make_tensor(ACL_INT32, 1, &sequences, any_layout());
        if (c >> 1 & 1)
            d.g = make_tensor(ACL_FLOAT, 2, vd, any_layout());
        if (c >> 2 & 1 && !chunk)
            d.gk = make_tensor(ACL_FLOAT, 3, gkd, any_layout());
        fill(&d.q, -0.2, 0.2);
        fill(&d.k, -0.2, 0.2);
        fill(&d.v, -1, 1);
        fill(&d.beta, 0, 1);
        if (d.g.data)
            fill(&d.g, -1, 0);
        if (d.gk.data)
            fill(&d.gk, -1, 0);
        fill(&states, -1, 1);
        for (int i = 0; i < SEQUENCES; i++) {
            set_element(&length, i, (double)lengths[i]);
            set_element(&accept, i, (double)accepted[i]);
        }
        for (int i = 0; i < TOKENS; i++)
            set_element(&number, i, (double)((i * 5 + 2) % STATES));
        const int64_t size = d.out_depth * d.depth;
        double *before = calloc((size_t)(states.count + size), sizeof *before), *s = before + states.count;
        for (int64_t i = 0; i < states.count; i++)
            before[i] = get_element(&states, i);
        const bool picks = c % 3 == 0;
        caller_value step[] = {T(d.q),     T(d.k),    T(d.v),        T(d.beta),      T(states),
                               T(length),  T(number), P(d.g.handle), P(d.gk.handle), P(picks ? accept.handle : NULL),
                               R(d.scale), T(d.out)};
        caller_value whole[] = {T(d.q),    T(d.k),     T(d.v),        T(d.beta), T(states),
                                T(length), R(d.scale), P(d.g.handle), T(d.out),  T(final)};
        const char *name = chunk ? "ChunkGatedDeltaRule" : "RecurrentGatedDeltaRule";
        must(name, chunk ? whole : step);
        for (int64_t i = 0, first = 0; i < SEQUENCES; first += lengths[i++])
            for (int64_t h = 0; h < d.heads; h++) {
                int64_t from = chunk ? i : (int64_t)get_element(&number, first + (picks ? accepted[i] : 1) - 1);
                if (!lengths[i] && !chunk)
                    continue;
                memcpy(s, before + (from * d.heads + h) * size, (size_t)size * sizeof *s);
                for (int64_t t = first; t < first + lengths[i]; t++) {
                    delta_step(&d, t, h, s, 1);
                    for (int64_t e = 0; e < size && !chunk; e++)
                        near("state", &states, ((int64_t)get_element(&number, t) * d.heads + h) * size + e, s[e], 1);
                }
                for (int64_t e = 0; e < size && chunk; e++)
                    near("final state", &final, (i * d.heads + h) * size + e, s[e], 1);
            }
        assert_true(untouched_outside(&states) && untouched_outside(&d.out));
        set_element(&length, 4, 3);
        fails_when_run(name, chunk ? whole : step, "element 4 is 3, but must be 0 to 2");
        set_element(&length, 4, 2);
        if (!chunk) {
            set_element(&number, 3, STATES);
            fails_when_run(name, step, "ssmStateIndices: element 3 is 14");
            step[3].pointer = states.handle;
            refused(name, step, "beta has 4 dimensions");
        }
        free(before);
        tensor *all[] = {&d.q, &d.k, &d.v, &d.beta, &d.g, &d.gk, &d.out, &states, &final, &length, &number, &accept};
        for (int i = 0; i < 12; i++)
            if (all[i]->data)
                free_tensor(all[i]);
    }
}

int main(void) {
    test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotations),
        cmocka_unit_test(rotation_gradients),
        cmocka_unit_test(soft_cross_entropy),
        cmocka_unit_test(triangular),
        cmocka_unit_test(nll),
        cmocka_unit_test(cross_entropy),
        cmocka_unit_test(gated_delta),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_end();
    return failed;
}
