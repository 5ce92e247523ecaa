/* Norms over channels, groups and sums of tensors against plain loops in double. Layer, RMS and group norm:
 * lines_test.c. */
#include "ops_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType floats[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void fill(tensor *t, double low, double high) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, random_between(low, high));
}

static double unit(aclDataType type) {
    return type == ACL_FLOAT ? 0x1p-20 : type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

static void check_near(const char *name, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i);
    if (!(fabs(got - want) <= unit(t->type) * fabs(want) + scale * 0x1p-20))
        fail_msg("%s type %d, element %lld: %.12g, but must be %.12g", name, t->type, (long long)i, got, want);
}

static void free_all(tensor **list, int n) {
    for (int i = 0; i < n; i++)
        free_tensor(list[i]);
}

/* ---- sums and their norm ---- */

typedef enum form { ADD_LAYER, ADD_LAYER_PLAIN, DEEP, IN_PLACE_RMS, RMS_CAST, GEMMA, FORMS } form;

static void norms_of_sums(void **state) {
    (void)state;
    enum { LINES = 6, N = 37 };
    int64_t dims[] = {2, 3, N}, n = N, stats[] = {2, 3, 1};
    for (int round = 0; round < 3 * FORMS; round++) {
        form f = (form)(round % FORMS);
        aclDataType type = floats[round / FORMS];
        bool layer = f <= DEEP, wide_bias = round & 1;
        tensor x1 = make_tensor(type, 3, dims, any_layout()), x2 = make_tensor(type, 3, dims, any_layout()),
               y = make_tensor(type, 3, dims, any_layout()), y1 = make_tensor(ACL_FLOAT, 3, dims, any_layout()),
               sum = make_tensor(type, 3, dims, any_layout()), gamma = make_tensor(type, 1, &n, any_layout()),
               beta = make_tensor(type, 1, &n, any_layout()),
               bias = make_tensor(type, wide_bias ? 3 : 1, wide_bias ? dims : &n, any_layout()),
               mean = make_tensor(ACL_FLOAT, 3, stats, any_layout()),
               rstd = make_tensor(ACL_FLOAT, 3, stats, CONTIGUOUS);
        fill(&x1, -3, 5);
        fill(&x2, -3, 5);
        fill(&gamma, 0.5, 2);
        fill(&beta, -1, 1);
        fill(&bias, -1, 1);
        double v[LINES][N];
        double eps = 1e-3, alpha = f == DEEP ? 0.75 : 1;
        for (int64_t i = 0; i < x1.count; i++) {
            double with = f == ADD_LAYER ? get_element(&bias, wide_bias ? i : i % N) : 0;
            v[i / N][i % N] = alpha * get_element(&x1, i) + (f == GEMMA ? 0 : get_element(&x2, i)) + with;
        }
        const char *name[FORMS] = {"AddLayerNorm",      "AddLayerNorm",   "DeepNorm",
                                   "InplaceAddRmsNorm", "AddRmsNormCast", "GemmaRmsNorm"};
        caller_value add[] = {T(x1), T(x2), T(gamma), T(beta), T(bias), R(eps), I(1), T(y), T(mean), T(rstd), T(sum)},
                     plain[] = {T(x1), T(x2), T(gamma), T(beta), P(NULL), R(eps),
                                I(0),  T(y),  T(mean),  T(rstd), P(NULL)},
                     deep[] = {T(x1), T(x2), T(beta), T(gamma), R(alpha), R(eps), T(mean), T(rstd), T(y)},
                     in_place[] = {T(x1), T(x2), T(gamma), R(eps), T(rstd)},
                     cast[] = {T(x1), T(x2), T(gamma), R(eps), T(y1), T(y), T(rstd), T(sum)},
                     gemma[] = {T(x1), T(gamma), R(eps), T(y), T(rstd)};
        caller_value *values[FORMS] = {add, plain, deep, in_place, cast, gemma};
        if (call_op(name[f], values[f]))
            fail_msg("%s: %s", name[f], sentence());
        tensor *out = f == IN_PLACE_RMS ? &x1 : &y, *summed = f == IN_PLACE_RMS ? &x2 : &sum;
        for (int64_t i = 0; i < out->count; i++) {
            const double *line = v[i / N];
            double m = 0, q = 0;
            for (int k = 0; k < N && layer; k++)
                m += line[k] / N;
            for (int k = 0; k < N; k++)
                q += (line[k] - m) * (line[k] - m) / N;
            double r = 1 / sqrt(q + eps), factor = get_element(&gamma, i % N) + (f == GEMMA);
            double want = (line[i % N] - m) * r * factor + (layer ? get_element(&beta, i % N) : 0);
            check_near(name[f], out, i, want, 8);
            if (f == RMS_CAST)
                check_near(name[f], &y1, i, want, 8);
            if (f == ADD_LAYER || f == IN_PLACE_RMS || f == RMS_CAST)
                check_near(name[f], summed, i, line[i % N], 8);
            check_near(name[f], &rstd, i / N, r, 1);
            if (layer)
                check_near(name[f], &mean, i / N, m, 8);
        }
        assert_true(untouched_outside(out));
        tensor *all[] = {&x1, &x2, &y, &y1, &sum, &gamma, &beta, &bias, &mean, &rstd};
        free_all(all, 10);
    }
}

static void group_norm_with_swish(void **state) {
    (void)state;
    int64_t dims[] = {2, 6, 3, 350}, channels = 6, stats[] = {2, 3};
    for (int round = 0; round < 9; round++) {
        int f = round % 3; /* silu, swish, swish not activated */
        aclDataType type = floats[round / 3];
        tensor x = make_tensor(type, 4, dims, CONTIGUOUS), y = make_tensor(type, 4, dims, OFFSET),
               gamma = make_tensor(type, 1, &channels, STRIDED), beta = make_tensor(type, 1, &channels, OFFSET),
               mean = make_tensor(ACL_FLOAT, 2, stats, CONTIGUOUS), rstd = make_tensor(ACL_FLOAT, 2, stats, CONTIGUOUS);
        fill(&x, -3, 5);
        fill(&gamma, 0.5, 2);
        fill(&beta, -1, 1);
        double scale = f == 0 ? 1 : 1.5;
        caller_value silu[] = {T(x), T(gamma), T(beta), I(3), R(1e-3), T(y), T(mean), T(rstd)},
                     swish[] = {T(x),      T(gamma), T(beta), I(3),    P("NCHW"), R(1e-3),
                                I(f == 1), R(scale), T(y),    T(mean), T(rstd)};
        if (f == 0 ? call_op("GroupNormSilu", silu) : call_op("GroupNormSwish", swish))
            fail_msg("%s", sentence());
        const int64_t length = 2 * 3 * 350;
        for (int64_t line = 0; line < 6; line++) {
            double m = 0, q = 0;
            for (int64_t k = 0; k < length; k++)
                m += get_element(&x, line * length + k) / (double)length;
            for (int64_t k = 0; k < length; k++)
                q += pow(get_element(&x, line * length + k) - m, 2) / (double)length;
            double r = 1 / sqrt(q + 1e-3);
            for (int64_t k = 0; k < length; k++) {
                int64_t c = (line % 3) * 2 + k / 1050;
                double want =
                    (get_element(&x, line * length + k) - m) * r * get_element(&gamma, c) + get_element(&beta, c);
                check_near("group norm", &y, line * length + k, f == 2 ? want : want / (1 + exp(-scale * want)), 8);
            }
            check_near("group norm", &mean, line, m, 8);
            check_near("group norm", &rstd, line, r, 1);
        }
        swish[4].pointer = "NHWC";
        assert_int_equal(call_op("GroupNormSwish", swish), ACLNN_ERR_PARAM_INVALID);
        assert_non_null(strstr(sentence(), "data_format is \"NHWC\""));
        tensor *all[] = {&x, &y, &gamma, &beta, &mean, &rstd};
        free_all(all, 6);
    }
}

/* ---- batch norm ---- */

typedef struct channel {
    double mean, variance, n, sum, squares;
} channel;

static channel channel_of(const tensor *x, int64_t c) {
    int64_t channels = x->dims[1], space = x->count / x->dims[0] / channels;
    channel r = {0};
    r.n = (double)(x->dims[0] * space);
    for (int64_t i = 0; i < x->count; i++)
        if (i / space % channels == c) {
            r.sum += get_element(x, i);
            r.squares += pow(get_element(x, i), 2);
        }
    r.mean = r.sum / r.n;
    for (int64_t i = 0; i < x->count; i++)
        if (i / space % channels == c)
            r.variance += pow(get_element(x, i) - r.mean, 2) / r.n;
    return r;
}

static const struct {
    int rank;
    int64_t dims[5];
} shapes[] = {{4, {3, 5, 4, 7}}, {2, {9, 6}}, {3, {2, 3, 40}}, {5, {2, 3, 2, 3, 4}}};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void batch_norm(void **state) {
    (void)state;
    for (int round = 0; round < SHAPES * 6; round++) {
        int k = round % SHAPES;
        bool training = round / SHAPES % 2, weights = random_bits() & 1;
        aclDataType type = floats[round / SHAPES % 3], small = round & 1 ? ACL_FLOAT : type;
        int64_t c_count = shapes[k].dims[1];
        tensor x = make_tensor(type, shapes[k].rank, shapes[k].dims, any_layout()),
               y = make_tensor(type, shapes[k].rank, shapes[k].dims, any_layout());
        tensor v[6]; /* weight, bias, running mean and variance, mean, rstd */
        for (int i = 0; i < 6; i++) {
            v[i] = make_tensor(i < 4 ? small : ACL_FLOAT, 1, &c_count, any_layout());
            fill(&v[i], i == 0 || i == 3 ? 0.5 : -1, 2);
        }
        fill(&x, -3, 5);
        double before[2][8], momentum = 0.25, eps = 1e-3;
        for (int64_t c = 0; c < c_count; c++)
            for (int i = 0; i < 2; i++)
                before[i][c] = get_element(&v[2 + i], c);
        caller_value values[] = {T(x),
                                 P(weights ? v[0].handle : NULL),
                                 P(weights ? v[1].handle : NULL),
                                 T(v[2]),
                                 T(v[3]),
                                 I(training),
                                 R(momentum),
                                 R(eps),
                                 T(y),
                                 T(v[4]),
                                 T(v[5])};
        if (call_op("BatchNorm", values))
            fail_msg("%s", sentence());
        int64_t space = x.count / x.dims[0] / c_count;
        for (int64_t c = 0; c < c_count; c++) {
            channel ch = channel_of(&x, c);
            double m = training ? ch.mean : before[0][c], r = 1 / sqrt((training ? ch.variance : before[1][c]) + eps);
            for (int64_t i = 0; i < x.count; i++)
                if (i / space % c_count == c)
                    check_near("BatchNorm", &y, i,
                               (get_element(&x, i) - m) * r * (weights ? get_element(&v[0], c) : 1) +
                                   (weights ? get_element(&v[1], c) : 0),
                               16);
            check_near("BatchNorm mean", &v[4], c, m, 8);
            check_near("BatchNorm rstd", &v[5], c, r, 1);
            double unbiased = ch.variance * ch.n / (ch.n - 1);
            check_near("running mean", &v[2], c, training ? 0.75 * before[0][c] + 0.25 * ch.mean : before[0][c], 8);
            check_near("running var", &v[3], c, training ? 0.75 * before[1][c] + 0.25 * unbiased : before[1][c], 8);
        }
        assert_true(untouched_outside(&y));
        for (int i = 0; i < 6; i++)
            free_tensor(&v[i]);
        free_tensor(&x);
        free_tensor(&y);
    }
}

static void batch_norm_in_parts(void **state) {
    (void)state;
    int64_t dims[] = {2, 4, 5, 6}, channels = 4, parts[] = {3, 4}, three = 3;
    double eps = 1e-3;
    tensor x = make_tensor(ACL_FLOAT, 4, dims, TRANSPOSED), y = make_tensor(ACL_FLOAT, 4, dims, STRIDED), v[6];
    for (int i = 0; i < 6; i++) {
        v[i] = make_tensor(ACL_FLOAT, 1, &channels, any_layout());
        fill(&v[i], 0.5, 2);
    }
    fill(&x, -3, 5);
    caller_value statistics[] = {T(x), R(eps), T(v[0]), T(v[1])}, sums[] = {T(x), T(v[2]), T(v[3])};
    assert_int_equal(call_op("BatchNormStats", statistics), 0);
    assert_int_equal(call_op("BatchNormReduce", sums), 0);
    for (int64_t c = 0; c < channels; c++) {
        channel ch = channel_of(&x, c);
        check_near("BatchNormStats", &v[0], c, ch.mean, 8);
        check_near("BatchNormStats", &v[1], c, 1 / sqrt(ch.variance + eps), 1);
        check_near("BatchNormReduce", &v[2], c, ch.sum, 300);
        check_near("BatchNormReduce", &v[3], c, ch.squares, 300);
    }
    caller_value elements[] = {T(x), T(v[4]), T(v[5]), T(v[0]), T(v[1]), R(eps), T(y)};
    if (call_op("BatchNormElemt", elements))
        fail_msg("%s", sentence());
    for (int64_t i = 0; i < x.count; i++) {
        int64_t c = i / 30 % 4;
        check_near("BatchNormElemt", &y, i,
                   (get_element(&x, i) - get_element(&v[0], c)) * get_element(&v[1], c) * get_element(&v[4], c) +
                       get_element(&v[5], c),
                   16);
    }
    /* three parts, of different sizes */
    tensor means = make_tensor(ACL_FLOAT, 2, parts, STRIDED), rstds = make_tensor(ACL_FLOAT, 2, parts, OFFSET),
           part_sums = make_tensor(ACL_FLOAT, 2, parts, TRANSPOSED),
           squares = make_tensor(ACL_FLOAT, 2, parts, CONTIGUOUS), counts = make_tensor(ACL_FLOAT, 1, &three, STRIDED);
    fill(&means, -1, 2);
    fill(&rstds, 0.3, 2);
    double want_mean[4] = {0}, want_variance[4] = {0}, total = 0;
    for (int64_t p = 0; p < 3; p++) {
        set_element(&counts, p, (double)(20 + 7 * p));
        total += (double)(20 + 7 * p);
    }
    for (int64_t i = 0; i < 12; i++)
        want_mean[i % 4] += get_element(&counts, i / 4) * get_element(&means, i) / total;
    for (int64_t i = 0; i < 12; i++) {
        double variance = pow(get_element(&rstds, i), -2) - eps, m = get_element(&means, i),
               n = get_element(&counts, i / 4);
        want_variance[i % 4] += n * (variance + pow(m - want_mean[i % 4], 2)) / total;
        set_element(&part_sums, i, n * m);
        set_element(&squares, i, n * (variance + m * m));
    }
    for (int sync_form = 0; sync_form < 2; sync_form++) {
        double before[2][4];
        for (int64_t c = 0; c < 4; c++)
            for (int i = 0; i < 2; i++)
                before[i][c] = get_element(&v[4 + i], c);
        caller_value gather[] = {T(x),   T(means), T(rstds),  T(v[4]), T(v[5]),
                                 R(0.1), R(eps),   T(counts), T(v[2]), T(v[3])},
                     sync[] = {T(part_sums), T(squares), T(counts), T(v[4]), T(v[5]), R(0.1), R(eps), T(v[2]), T(v[3])};
        if (sync_form ? call_op("SyncBatchNormGatherStats", sync) : call_op("BatchNormGatherStatsWithCounts", gather))
            fail_msg("%s", sentence());
        for (int64_t c = 0; c < 4; c++) {
            check_near("gathered mean", &v[2], c, want_mean[c], 8);
            check_near("gathered rstd", &v[3], c, 1 / sqrt(want_variance[c] + eps), 64);
            check_near("running mean", &v[4], c, 0.9 * before[0][c] + 0.1 * want_mean[c], 8);
            check_near("running var", &v[5], c, 0.9 * before[1][c] + 0.1 * want_variance[c] * total / (total - 1), 64);
        }
    }
    tensor *all[] = {&x, &y, &means, &rstds, &part_sums, &squares, &counts};
    free_all(all, 7);
    for (int i = 0; i < 6; i++)
        free_tensor(&v[i]);
}

static void batch_norm_gradients(void **state) {
    (void)state;
    for (int round = 0; round < SHAPES * 4; round++) {
        int k = round % SHAPES;
        bool training = round / SHAPES % 2;
        int64_t c_count = shapes[k].dims[1], one = 1;
        double eps = 1e-3;
        tensor x = make_tensor(ACL_FLOAT, shapes[k].rank, shapes[k].dims, any_layout()),
               g = make_tensor(ACL_FLOAT, shapes[k].rank, shapes[k].dims, any_layout()),
               gx = make_tensor(ACL_FLOAT, shapes[k].rank, shapes[k].dims, any_layout()),
               parts = make_tensor(ACL_FLOAT, shapes[k].rank, shapes[k].dims, any_layout()),
               counts = make_tensor(ACL_INT32, 1, &one, CONTIGUOUS);
        tensor v[9]; /* weight, running mean and variance, mean, rstd, gw, gb, sum g, sum gx */
        for (int i = 0; i < 9; i++) {
            v[i] = make_tensor(ACL_FLOAT, 1, &c_count, any_layout());
            fill(&v[i], 0.5, 2);
        }
        fill(&x, -3, 5);
        fill(&g, -1, 1);
        bool all_wanted[] = {true, true, true};
        aclBoolArray *mask = aclCreateBoolArray(all_wanted, 3);
        for (int64_t c = 0; c < c_count; c++) {
            channel ch = channel_of(&x, c);
            set_element(&v[3], c, ch.mean);
            set_element(&v[4], c, 1 / sqrt(ch.variance + eps));
        }
        caller_value values[] = {T(g),        T(x),   T(v[0]), T(v[1]), T(v[2]), T(v[3]), T(v[4]),
                                 I(training), R(eps), P(mask), T(gx),   T(v[5]), T(v[6])};
        if (call_op("BatchNormBackward", values))
            fail_msg("%s", sentence());
        int64_t space = x.count / x.dims[0] / c_count;
        double n = (double)(x.dims[0] * space);
        double m[8], r[8], sum_g[8] = {0}, sum_gx[8] = {0};
        for (int64_t c = 0; c < c_count; c++) {
            m[c] = training ? get_element(&v[3], c) : get_element(&v[1], c);
            r[c] = training ? get_element(&v[4], c) : 1 / sqrt(get_element(&v[2], c) + eps);
        }
        for (int64_t i = 0; i < x.count; i++) {
            int64_t c = i / space % c_count;
            sum_g[c] += get_element(&g, i);
            sum_gx[c] += get_element(&g, i) * (get_element(&x, i) - m[c]);
        }
        for (int64_t i = 0; i < x.count; i++) {
            int64_t c = i / space % c_count;
            double w = get_element(&v[0], c), centred = get_element(&x, i) - m[c], want = get_element(&g, i);
            if (training)
                want -= sum_g[c] / n + centred * r[c] * r[c] * sum_gx[c] / n;
            check_near("BatchNormBackward", &gx, i, want * w * r[c], 16);
        }
        for (int64_t c = 0; c < c_count; c++) {
            check_near("gw", &v[5], c, sum_gx[c] * r[c], 200);
            check_near("gb", &v[6], c, sum_g[c], 200);
        }
        if (training) { /* the same from its two halves */
            caller_value sums[] = {T(g), T(x), T(v[3]), T(v[4]), T(v[0]), I(1),
                                   I(1), I(1), T(v[7]), T(v[8]), T(v[5]), T(v[6])};
            set_element(&counts, 0, n);
            caller_value rest[] = {T(g), T(x), T(v[3]), T(v[4]), T(v[0]), T(v[7]), T(v[8]), T(counts), T(parts)};
            if (call_op("BatchNormReduceBackward", sums) || call_op("BatchNormElemtBackward", rest))
                fail_msg("%s", sentence());
            for (int64_t c = 0; c < c_count; c++) {
                check_near("sum g", &v[7], c, sum_g[c], 200);
                check_near("sum gx", &v[8], c, sum_gx[c], 400);
                check_near("gw", &v[5], c, sum_gx[c] * r[c], 200);
                check_near("gb", &v[6], c, sum_g[c], 200);
            }
            for (int64_t i = 0; i < x.count; i++)
                check_near("BatchNormElemtBackward", &parts, i, get_element(&gx, i), 16);
        }
        aclDestroyBoolArray(mask);
        tensor *all[] = {&x, &g, &gx, &parts, &counts};
        free_all(all, 5);
        for (int i = 0; i < 9; i++)
            free_tensor(&v[i]);
    }
}

/* ---- gradients of lines ---- */

typedef enum line_form { LAYER, ADD_LAYER_GRAD, DEEP_GRAD, RMS, LINE_FORMS } line_form;

static void line_gradients(void **state) {
    (void)state;
    enum { MOST = 200, N = 37 };
    for (int round = 0; round < 3 * LINE_FORMS * 2; round++) {
        line_form f = (line_form)(round % LINE_FORMS);
        aclDataType type = floats[round / LINE_FORMS % 3];
        int64_t count = round < 3 * LINE_FORMS ? 6 : MOST, dims[] = {2, count / 2, N}, n = N,
                stats[] = {2, count / 2, 1};
        tensor x = make_tensor(type, 3, dims, any_layout()), x2 = make_tensor(type, 3, dims, any_layout()),
               g = make_tensor(type, 3, dims, any_layout()), dsum = make_tensor(type, 3, dims, any_layout()),
               dx = make_tensor(type, 3, dims, any_layout()), dx2 = make_tensor(type, 3, dims, any_layout()),
               gamma = make_tensor(type, 1, &n, any_layout()), dgamma = make_tensor(ACL_FLOAT, 1, &n, any_layout()),
               dbeta = make_tensor(ACL_FLOAT, 1, &n, any_layout()),
               mean = make_tensor(ACL_FLOAT, 3, stats, any_layout()),
               rstd = make_tensor(ACL_FLOAT, 3, stats, CONTIGUOUS);
        tensor *inputs[] = {&x, &x2, &g, &dsum};
        for (int i = 0; i < 4; i++)
            fill(inputs[i], -2, 3);
        fill(&gamma, 0.5, 2);
        const double alpha = f == DEEP_GRAD ? 0.75 : 1, eps = 1e-3;
        bool with_sum = f == ADD_LAYER_GRAD && round & 4, two = f == ADD_LAYER_GRAD || f == DEEP_GRAD;
        double want_gamma[N] = {0}, want_beta[N] = {0}, (*want)[N] = calloc((size_t)count, sizeof *want);
        for (int64_t line = 0; line < count; line++) {
            double v[N], h[N], m = 0, q = 0, mean_h = 0, mean_hv = 0;
            for (int k = 0; k < N; k++) {
                v[k] = alpha * get_element(&x, line * N + k) + (two ? get_element(&x2, line * N + k) : 0);
                h[k] = get_element(&g, line * N + k) * get_element(&gamma, k);
                m += f == RMS ? 0 : v[k] / N;
            }
            for (int k = 0; k < N; k++)
                q += (v[k] - m) * (v[k] - m) / N;
            set_element(&mean, line, m);
            set_element(&rstd, line, 1 / sqrt(q + eps));
            double r = get_element(&rstd, line);
            m = f == RMS ? 0 : get_element(&mean, line);
            for (int k = 0; k < N; k++) {
                mean_h += f == RMS ? 0 : h[k] / N;
                mean_hv += h[k] * (v[k] - m) / N;
                want_gamma[k] += get_element(&g, line * N + k) * (v[k] - m) * r;
                want_beta[k] += get_element(&g, line * N + k);
            }
            for (int k = 0; k < N; k++)
                want[line][k] = r * (h[k] - mean_h - (v[k] - m) * r * r * mean_hv);
        }
        bool all_wanted[] = {true, true, true};
        aclBoolArray *mask = aclCreateBoolArray(all_wanted, 3);
        aclIntArray *shape = aclCreateIntArray(&n, 1);
        caller_value layer[] = {T(g),    T(x),    P(shape), T(mean),   T(rstd), T(gamma),
                                P(NULL), P(mask), T(dx),    T(dgamma), T(dbeta)},
                     add[] = {T(g),  T(x),      T(x2),   T(rstd), T(mean), T(gamma), P(with_sum ? dsum.handle : NULL),
                              T(dx), T(dgamma), T(dbeta)},
                     deep[] = {T(g),     T(x),  T(x2),  T(gamma), T(mean),  T(rstd),
                               R(alpha), T(dx), T(dx2), T(dbeta), T(dgamma)},
                     rms[] = {T(g), T(x), T(rstd), T(gamma), T(dx), T(dgamma)};
        caller_value *values[] = {layer, add, deep, rms};
        static const char *const names[] = {"LayerNormBackward", "AddLayerNormGrad", "DeepNormGrad", "RmsNormGrad"};
        if (call_op(names[f], values[f]))
            fail_msg("%s: %s", names[f], sentence());
        for (int64_t i = 0; i < dx.count; i++) {
            double dv = want[i / N][i % N];
            check_near(names[f], &dx, i, alpha * dv + (with_sum ? get_element(&dsum, i) : 0), 16);
            if (f == DEEP_GRAD)
                check_near(names[f], &dx2, i, dv, 16);
        }
        for (int k = 0; k < N; k++) {
            check_near("dgamma", &dgamma, k, want_gamma[k], (double)count * 4);
            if (f != RMS)
                check_near("dbeta", &dbeta, k, want_beta[k], (double)count * 2);
        }
        assert_true(untouched_outside(&dx));
        free(want);
        aclDestroyBoolArray(mask);
        aclDestroyIntArray(shape);
        tensor *all[] = {&x, &x2, &g, &dsum, &dx, &dx2, &gamma, &dgamma, &dbeta, &mean, &rstd};
        free_all(all, 11);
    }
}

static void group_gradients(void **state) {
    (void)state;
    enum { LENGTH = 2 * 35, COUNT = 3 * 6 * 35 };
    int64_t dims[] = {3, 6, 5, 7}, channels = 6, stats[] = {3, 3};
    for (int round = 0; round < 6; round++) {
        aclDataType type = floats[round % 3];
        tensor x = make_tensor(type, 4, dims, CONTIGUOUS), g = make_tensor(type, 4, dims, OFFSET),
               dx = make_tensor(type, 4, dims, OFFSET), gamma = make_tensor(type, 1, &channels, STRIDED),
               dgamma = make_tensor(ACL_FLOAT, 1, &channels, STRIDED),
               dbeta = make_tensor(ACL_FLOAT, 1, &channels, OFFSET), mean = make_tensor(ACL_FLOAT, 2, stats, OFFSET),
               rstd = make_tensor(ACL_FLOAT, 2, stats, CONTIGUOUS);
        fill(&x, -2, 3);
        fill(&g, -1, 1);
        fill(&gamma, 0.5, 2);
        fill(&mean, -1, 1);
        fill(&rstd, 0.5, 1);
        bool wanted[] = {true, round < 3, true}, weights = round & 1;
        aclBoolArray *mask = aclCreateBoolArray(wanted, 3);
        caller_value values[] = {T(g),  T(x), T(mean), T(rstd), P(weights ? gamma.handle : NULL),    I(3),    I(6),
                                 I(35), I(3), P(mask), T(dx),   P(wanted[1] ? dgamma.handle : NULL), T(dbeta)};
        if (call_op("GroupNormBackward", values))
            fail_msg("%s", sentence());
        double want_gamma[6] = {0}, want_beta[6] = {0}, mean_h[9] = {0}, mean_hx[9] = {0};
        for (int64_t i = 0; i < COUNT; i++) {
            int64_t line = i / LENGTH, c = i / 35 % 6;
            double gi = get_element(&g, i), centred = get_element(&x, i) - get_element(&mean, line);
            double h = gi * (weights ? get_element(&gamma, c) : 1);
            want_gamma[c] += gi * centred * get_element(&rstd, line);
            want_beta[c] += gi;
            mean_h[line] += h / LENGTH;
            mean_hx[line] += h * centred / LENGTH;
        }
        for (int64_t i = 0; i < COUNT; i++) {
            int64_t line = i / LENGTH, c = i / 35 % 6;
            double r = get_element(&rstd, line), centred = get_element(&x, i) - get_element(&mean, line);
            double h = get_element(&g, i) * (weights ? get_element(&gamma, c) : 1);
            check_near("GroupNormBackward", &dx, i, r * (h - mean_h[line] - centred * r * r * mean_hx[line]), 16);
        }
        for (int64_t c = 0; c < 6; c++) {
            if (wanted[1])
                check_near("dgamma", &dgamma, c, want_gamma[c], 200);
            check_near("dbeta", &dbeta, c, want_beta[c], 200);
        }
        assert_true(untouched_outside(&dx));
        aclDestroyBoolArray(mask);
        tensor *all[] = {&x, &g, &dx, &gamma, &dgamma, &dbeta, &mean, &rstd};
        free_all(all, 8);
    }
}

static void norms_say_what_is_wrong(void **state) {
    (void)state;
    int64_t dims[] = {2, 3, 4}, three = 3, four = 4, flat = 24;
    tensor x = make_tensor(ACL_FLOAT, 3, dims, CONTIGUOUS), y = make_tensor(ACL_FLOAT, 3, dims, CONTIGUOUS),
           v = make_tensor(ACL_FLOAT, 1, &three, CONTIGUOUS), wrong = make_tensor(ACL_FLOAT, 1, &four, CONTIGUOUS),
           line = make_tensor(ACL_FLOAT, 1, &flat, CONTIGUOUS);
    caller_value values[] = {T(x), P(NULL), P(NULL), P(NULL), P(NULL), I(0), R(0.1), R(1e-5), T(y), P(NULL), P(NULL)};
    assert_int_equal(call_op("BatchNorm", values), ACLNN_ERR_PARAM_NULLPTR);
    assert_non_null(strstr(sentence(), "running_meanOptional is NULL"));
    values[3].pointer = values[4].pointer = v.handle;
    values[1].pointer = wrong.handle;
    assert_int_equal(call_op("BatchNorm", values), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "weightOptional: dimension 0 is 4, but must be 3"));
    values[1].pointer = NULL;
    values[0].pointer = line.handle;
    assert_int_equal(call_op("BatchNorm", values), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "must have at least 2"));
    tensor *all[] = {&x, &y, &v, &wrong, &line};
    free_all(all, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_of_sums),        cmocka_unit_test(group_norm_with_swish),
        cmocka_unit_test(batch_norm),           cmocka_unit_test(batch_norm_in_parts),
        cmocka_unit_test(batch_norm_gradients), cmocka_unit_test(line_gradients),
        cmocka_unit_test(group_gradients),      cmocka_unit_test(norms_say_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
