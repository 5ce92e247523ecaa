/* Matrices taken apart, cross products and distances, against what must hold of the results, in plain double. */
#include "arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_DOUBLE, ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static double unit_of(aclDataType type) {
    return type == ACL_DOUBLE ? 1e-12 : type == ACL_FLOAT ? 1e-5 : type == ACL_FLOAT16 ? 8e-3 : 6e-2;
}

static tensor any_tensor(aclDataType type, int rank, const int64_t *dims, double low, double high) {
    tensor t = make_tensor(type, rank, dims, (layout)(random_bits() % LAYOUTS));
    for (int64_t i = 0; i < t.count; i++)
        set_element(&t, i, random_between(low, high));
    return t;
}

/* A batch of matrices as doubles; free it. */
static double *copy_of(const tensor *t) {
    double *x = malloc(((size_t)t->count + 1) * sizeof *x);
    for (int64_t i = 0; i < t->count; i++)
        x[i] = get_element(t, i);
    return x;
}

static void near(const char *what, aclDataType type, double got, double want, double scale) {
    if (!(fabs(got - want) <= unit_of(type) * (fabs(want) + scale)))
        fail_msg("%s, type %d: %.9g, but must be %.9g", what, type, got, want);
}

/* op(a) op(b) of matrices: element (i, k) is the sum over t. */
static double product(const double *a, int64_t a_row, int64_t a_step, const double *b, int64_t b_column, int64_t b_step,
                      int64_t n) {
    double sum = 0;
    for (int64_t t = 0; t < n; t++)
        sum += a[a_row + t * a_step] * b[b_column + t * b_step];
    return sum;
}

/* Columns (down: a step of `width`) of an m x n matrix are orthonormal. */
static void orthonormal(const char *what, aclDataType type, const double *q, int64_t m, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k <= i; k++)
            near(what, type, product(q, i, n, q, k, n, m), i == k, (double)m);
}

static void square(void **state) {
    (void)state;
    enum { BATCH = 3 };
    for (int t = 0; t < 4; t++)
        for (int64_t n = 0; n < 8; n += n < 3 ? 1 : 4) {
            int64_t dims[] = {BATCH, n, n}, lead = BATCH;
            tensor x = any_tensor(types[t], 3, dims, -1, 1), y = make_tensor(types[t], 3, dims, STRIDED),
                   sign = make_tensor(types[t], 1, &lead, STRIDED), size = make_tensor(types[t], 1, &lead, CONTIGUOUS);
            for (int64_t b = 0; b < BATCH; b++) /* far from singular */
                for (int64_t i = 0; i < n; i++)
                    set_element(&x, (b * n + i) * n + (i + b) % n, 4 + (double)i);
            double *a = copy_of(&x);
            arguments call = begin_call("Inverse");
            put(&call, "self", x.handle);
            put(&call, "out", y.handle);
            must(&call);
            double *inverse = copy_of(&y);
            for (int64_t b = 0; b < BATCH; b++)
                for (int64_t i = 0; i < n; i++)
                    for (int64_t k = 0; k < n; k++)
                        near("inverse", types[t], product(a, (b * n + i) * n, 1, inverse, b * n * n + k, n, n), i == k,
                             4);
            assert_true(untouched_outside(&y));
            arguments det = begin_call("Slogdet");
            put(&det, "self", x.handle);
            put(&det, "sign", sign.handle);
            put(&det, "log", size.handle);
            must(&det);
            for (int64_t b = 0; b < BATCH && n < 3; b++) {
                const double *m = a + b * n * n;
                double d = n == 0 ? 1 : n == 1 ? m[0] : m[0] * m[3] - m[1] * m[2];
                near("sign", types[t], get_element(&sign, b), d < 0 ? -1 : 1, 0);
                near("log", types[t], get_element(&size, b), log(fabs(d)), 1);
            }
            free(a);
            free(inverse);
            free_tensor(&x);
            free_tensor(&y);
            free_tensor(&sign);
            free_tensor(&size);
        }
}

static void cholesky(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int upper = 0; upper < 2; upper++) {
            const int64_t n = 5, dims[] = {2, n, n};
            tensor root = any_tensor(ACL_DOUBLE, 3, dims, -1, 1), x = any_tensor(types[t], 3, dims, -9, 9),
                   y = make_tensor(types[t], 3, dims, STRIDED);
            double *r = copy_of(&root);
            for (int64_t b = 0; b < 2; b++)
                for (int64_t i = 0; i < n; i++)
                    for (int64_t k = 0; k < n; k++) /* the other triangle is noise that nobody reads */
                        if (upper ? k >= i : k <= i)
                            set_element(&x, (b * n + i) * n + k,
                                        product(r, (b * n + i) * n, 1, r, (b * n + k) * n, 1, n) + 2 * (i == k));
            arguments call = begin_call("LinalgCholesky");
            put(&call, "self", x.handle);
            put_integer(&call, "upper", upper);
            put(&call, "out", y.handle);
            must(&call);
            double *f = copy_of(&y);
            for (int64_t b = 0; b < 2; b++)
                for (int64_t i = 0; i < n; i++)
                    for (int64_t k = 0; k < n; k++) {
                        const double *m = f + b * n * n;
                        if (upper ? k < i : k > i)
                            assert_true(m[i * n + k] == 0);
                        else
                            near("product", types[t],
                                 upper ? product(m, i, n, m, k, n, n) : product(m, i * n, 1, m, k * n, 1, n),
                                 get_element(&x, (b * n + i) * n + k), 2);
                    }
            for (int64_t i = 0; i < x.count; i++)
                set_element(&x, i, i == n * n ? -1 : 1);
            fails_when_run(&call, "not positive definite: matrix");
            free(r);
            free(f);
            free_tensor(&root);
            free_tensor(&x);
            free_tensor(&y);
        }
}

static const int64_t shapes[][2] = {{1, 1}, {4, 4}, {7, 3}, {3, 7}, {20, 20}, {0, 3}, {3, 0}, {5, 1}};

static void qr(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++)
        for (size_t c = 0; c < sizeof shapes / sizeof shapes[0]; c++)
            for (int mode = 0; mode < 3; mode++) {
                const int64_t m = shapes[c][0], n = shapes[c][1], k = m < n ? m : n, w = mode == 1 ? m : k;
                tensor x = any_tensor(types[t], 3, (int64_t[]){2, m, n}, -1, 1),
                       q = make_tensor(types[t], mode == 2 ? 1 : 3, mode == 2 ? (int64_t[]){0} : (int64_t[]){2, m, w},
                                       STRIDED),
                       r = make_tensor(types[t], 3, (int64_t[]){2, w, n}, TRANSPOSED);
                arguments call = begin_call("LinalgQr");
                put(&call, "self", x.handle);
                put_integer(&call, "mode_int", mode);
                put(&call, "Q", q.handle);
                put(&call, "R", r.handle);
                must(&call);
                double *rs = copy_of(&r), *qs = copy_of(&q);
                for (int64_t b = 0; b < 2; b++) {
                    for (int64_t i = 0; i < w; i++)
                        for (int64_t j = 0; j < n && j < i; j++)
                            assert_true(rs[(b * w + i) * n + j] == 0);
                    if (mode == 2)
                        continue;
                    orthonormal("q", types[t], qs + b * m * w, m, w);
                    for (int64_t i = 0; i < m; i++)
                        for (int64_t j = 0; j < n; j++)
                            near("q r", types[t], product(qs, (b * m + i) * w, 1, rs, b * w * n + j, n, w),
                                 get_element(&x, (b * m + i) * n + j), (double)m);
                }
                free(rs);
                free(qs);
                free_tensor(&x);
                free_tensor(&q);
                free_tensor(&r);
            }
}

/* rank_one: all singular values but the first are 0. */
static void one_svd(aclDataType type, int64_t m, int64_t n, bool full, bool rank_one) {
    const int64_t k = m < n ? m : n, wu = full ? m : k, wv = full ? n : k;
    tensor x = any_tensor(type, 3, (int64_t[]){2, m, n}, -1, 1), s = make_tensor(type, 2, (int64_t[]){2, k}, STRIDED),
           u = make_tensor(type, 3, (int64_t[]){2, m, wu}, STRIDED),
           v = make_tensor(type, 3, (int64_t[]){2, n, wv}, TRANSPOSED);
    for (int64_t i = 0; i < x.count && rank_one; i++)
        set_element(&x, i, (double)(1 + i / n % m) * (double)(1 + i % n) / 8);
    arguments call = begin_call("Svd");
    put(&call, "A", x.handle);
    put_integer(&call, "full_matrices", full);
    put_integer(&call, "compute_uv", 1);
    put(&call, "S", s.handle);
    put(&call, "U", u.handle);
    put(&call, "V", v.handle);
    must(&call);
    double *us = copy_of(&u), *vs = copy_of(&v), *ss = copy_of(&s);
    for (int64_t b = 0; b < 2; b++) {
        const double *value = ss + b * k;
        for (int64_t i = 0; i < k; i++)
            assert_true(value[i] >= 0 && (i == 0 || value[i] <= value[i - 1]));
        for (int64_t i = 1; i < k && rank_one; i++)
            assert_true(value[i] <= unit_of(type) * value[0]);
        orthonormal("u", type, us + b * m * wu, m, wu);
        orthonormal("v", type, vs + b * n * wv, n, wv);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t t = 0; t < k; t++)
                    sum += us[(b * m + i) * wu + t] * value[t] * vs[(b * n + j) * wv + t];
                near("u s v", type, sum, get_element(&x, (b * m + i) * n + j), 2 * (double)(m + n));
            }
    }
    assert_true(untouched_outside(&u) && untouched_outside(&v) && untouched_outside(&s));
    put_integer(&call, "compute_uv", 0);
    put(&call, "U", NULL);
    put(&call, "V", NULL);
    must(&call);
    for (int64_t i = 0; i < s.count; i++)
        near("s alone", type, get_element(&s, i), ss[i], 1);
    free(us);
    free(vs);
    free(ss);
    free_tensor(&x);
    free_tensor(&s);
    free_tensor(&u);
    free_tensor(&v);
}

static void svd(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++)
        for (size_t c = 0; c < sizeof shapes / sizeof shapes[0]; c++)
            for (int form = 0; form < 4; form++)
                one_svd(types[t], shapes[c][0], shapes[c][1], form & 1, form & 2);
}

static void cross(void **state) {
    (void)state;
    static const aclDataType all[] = {ACL_DOUBLE, ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_INT32, ACL_INT8};
    for (int t = 0; t < 6; t++) {
        const int64_t a_dims[] = {4, 3, 5}, b_dims[] = {3, 1};
        tensor a = any_tensor(all[t], 3, a_dims, -8, 8), b = any_tensor(all[t], 2, b_dims, -8, 8),
               y = make_tensor(all[t], 3, a_dims, STRIDED);
        arguments call = begin_call("LinalgCross");
        put(&call, "self", a.handle);
        put(&call, "other", b.handle);
        put_integer(&call, "wrap_dim", -2);
        put(&call, "out", y.handle);
        must(&call);
        for (int64_t i = 0; i < 4; i++)
            for (int64_t axis = 0; axis < 3; axis++)
                for (int64_t k = 0; k < 5; k++) {
                    int64_t p = (axis + 1) % 3, q = (axis + 2) % 3;
                    double want = get_element(&a, (i * 3 + p) * 5 + k) * get_element(&b, q) -
                                  get_element(&a, (i * 3 + q) * 5 + k) * get_element(&b, p);
                    want = all[t] == ACL_INT8 ? (double)(int8_t)want : want;
                    double got = get_element(&y, (i * 3 + axis) * 5 + k);
                    if (is_float(all[t]))
                        near("cross", all[t], got, want, 64);
                    else
                        assert_true(got == want);
                }
        assert_true(untouched_outside(&y));
        put_integer(&call, "wrap_dim", 0);
        refused(&call, "must have 3 elements in dimension 0");
        free_tensor(&a);
        free_tensor(&b);
        free_tensor(&y);
    }
}

static double distance(const double *x, const double *y, int64_t m, double p) {
    double sum = 0;
    for (int64_t i = 0; i < m; i++) {
        double d = fabs(x[i] - y[i]);
        sum = p < 0 ? fmax(sum, d) : sum + (p == 0 ? d != 0 : pow(d, p));
    }
    return p > 0 ? pow(sum, 1 / p) : sum;
}

static const double norms[] = {0, 0.5, 1, 2, 3, -1};

static void distances(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int c = 0; c < 6; c++) {
            const int64_t p = 35, r = 3, m = 4;
            tensor a = any_tensor(types[t], 4, (int64_t[]){2, 1, p, m}, -2, 2),
                   b = any_tensor(types[t], 3, (int64_t[]){2, r, m}, -2, 2),
                   y = make_tensor(types[t], 4, (int64_t[]){2, 2, p, r}, STRIDED);
            double *as = copy_of(&a), *bs = copy_of(&b);
            arguments call = begin_call("Cdist");
            put(&call, "x1", a.handle);
            put(&call, "x2", b.handle);
            put_real(&call, "p_float", norms[c]);
            put(&call, "out", y.handle);
            must(&call);
            for (int64_t i = 0; i < y.count; i++)
                near("cdist", types[t], get_element(&y, i),
                     distance(as + (i / r % p + i / r / p / 2 * p) * m, bs + (i % r + i / r / p % 2 * r) * m, m,
                              norms[c]),
                     1);
            assert_true(untouched_outside(&y));
            put_real(&call, "p_float", -2);
            refused(&call, "must be 0, positive, or -1");
            tensor one = any_tensor(types[t], 2, (int64_t[]){6, m}, -2, 2),
                   pairs = make_tensor(types[t], 1, (int64_t[]){15}, STRIDED);
            double *rows = copy_of(&one);
            arguments pdist = begin_call("Pdist");
            put(&pdist, "self", one.handle);
            put_real(&pdist, "p_float", norms[c]);
            put(&pdist, "result", pairs.handle);
            must(&pdist);
            for (int64_t i = 0, at = 0; i < 6; i++)
                for (int64_t k = i + 1; k < 6; k++)
                    near("pdist", types[t], get_element(&pairs, at++),
                         distance(rows + i * m, rows + k * m, m, norms[c]), 1);
            free(as);
            free(bs);
            free(rows);
            free_tensor(&a);
            free_tensor(&b);
            free_tensor(&y);
            free_tensor(&one);
            free_tensor(&pairs);
        }
}

/* Against the change of sum(grad distance) when an element changes a little. */
static void distance_gradients(void **state) {
    (void)state;
    const double h = 1e-6;
    for (int c = 1; c < 6; c++) {
        const int64_t n = 3, r = 4, m = 3;
        tensor a = any_tensor(ACL_DOUBLE, 2, (int64_t[]){n, m}, -2, 2),
               b = any_tensor(ACL_DOUBLE, 2, (int64_t[]){r, m}, -2, 2),
               g = any_tensor(ACL_DOUBLE, 2, (int64_t[]){n, r}, -1, 1),
               far = make_tensor(ACL_DOUBLE, 2, (int64_t[]){n, r}, STRIDED),
               y = make_tensor(ACL_DOUBLE, 2, (int64_t[]){n, m}, STRIDED);
        double *as = copy_of(&a), *bs = copy_of(&b);
        for (int64_t i = 0; i < n * r; i++)
            set_element(&far, i, distance(as + i / r * m, bs + i % r * m, m, norms[c]));
        arguments call = begin_call("CdistBackward");
        put(&call, "grad_contiguous", g.handle);
        put(&call, "x1_broadcast", a.handle);
        put(&call, "x2_broadcast", b.handle);
        put(&call, "cdist_contiguous", far.handle);
        put_real(&call, "p_cast", norms[c]);
        put(&call, "out", y.handle);
        must(&call);
        for (int64_t i = 0; i < n * m; i++) {
            double sum = 0, own = as[i];
            for (int64_t k = 0; k < r; k++) {
                as[i] = own + h;
                double more = distance(as + i / m * m, bs + k * m, m, norms[c]);
                as[i] = own - h;
                sum += get_element(&g, i / m * r + k) * (more - distance(as + i / m * m, bs + k * m, m, norms[c])) /
                       (2 * h);
                as[i] = own;
            }
            assert_true(fabs(get_element(&y, i) - sum) <= 1e-6 * (1 + fabs(sum)));
        }
        free(as);
        free(bs);
        free_tensor(&a);
        free_tensor(&b);
        free_tensor(&g);
        free_tensor(&far);
        free_tensor(&y);
    }
}

static void faults(void **state) {
    (void)state;
    const int64_t dims[] = {2, 3, 3};
    tensor x = make_tensor(ACL_FLOAT, 3, dims, CONTIGUOUS),
           wide = make_tensor(ACL_FLOAT, 3, (int64_t[]){2, 3, 4}, CONTIGUOUS),
           row = make_tensor(ACL_FLOAT, 1, (int64_t[]){3}, CONTIGUOUS),
           whole = make_tensor(ACL_INT32, 3, dims, CONTIGUOUS);
    for (int64_t i = 0; i < x.count; i++)
        set_element(&x, i, i < 9 ? (double)(i % 4 == 0) : 2); /* the identity, and a singular one */
    arguments inverse = begin_call("Inverse");
    put(&inverse, "self", wide.handle);
    put(&inverse, "out", wide.handle);
    refused(&inverse, "3 x 4, but they must be square");
    put(&inverse, "self", row.handle);
    refused(&inverse, "at least 2");
    put(&inverse, "self", whole.handle);
    refused(&inverse, "self");
    put(&inverse, "self", x.handle);
    refused(&inverse, "out");
    put(&inverse, "out", NULL);
    refused(&inverse, "out is NULL");
    put(&inverse, "out", x.handle); /* in place */
    fails_when_run(&inverse, "singular: matrix 1 of self");
    arguments qr = begin_call("LinalgQr");
    put(&qr, "self", x.handle);
    put(&qr, "R", x.handle);
    put_integer(&qr, "mode_int", 3);
    refused(&qr, "must be 0 (reduced), 1 (complete) or 2 (r)");
    put_integer(&qr, "mode_int", 0);
    refused(&qr, "Q is NULL");
    for (int64_t i = 0; i < x.count; i++)
        set_element(&x, i, NAN);
    tensor s = make_tensor(ACL_FLOAT, 2, dims, CONTIGUOUS);
    arguments svd = begin_call("Svd");
    put(&svd, "A", x.handle);
    put(&svd, "S", s.handle);
    fails_when_run(&svd, "matrix 0 of A");
    free_tensor(&x);
    free_tensor(&wide);
    free_tensor(&row);
    free_tensor(&whole);
    free_tensor(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(square),
                                       cmocka_unit_test(cholesky),
                                       cmocka_unit_test(qr),
                                       cmocka_unit_test(svd),
                                       cmocka_unit_test(cross),
                                       cmocka_unit_test(distances),
                                       cmocka_unit_test(distance_gradients),
                                       cmocka_unit_test(faults)};
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
