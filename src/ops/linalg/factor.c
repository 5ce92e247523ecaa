/*
 * factor.c - matrices taken apart, in double, each by one thread:
 *   inverse(self) -> out               Gauss-Jordan elimination with row pivots; a singular matrix fails the run
 *   cholesky(self, upper) -> out       out out^T = self, with upper out^T out = self; only that triangle of self is
 * read; what is not positive definite fails the run slogdet(self) -> sign, log         of the determinant; 0 and -inf
 * of a singular matrix qr(self, mode) -> q, r             Householder reflections; mode 0: reduced, 1: complete, 2: r
 * only. The signs are those of LAPACK: a diagonal element of r is opposite to what it replaces svd(self, full, vectors)
 * -> s, u, v    self = u diag(s) v^T, s falls; v is not transposed. svd.c has the algorithm Golub and Van Loan, Matrix
 * Computations, chapters 3 to 5 and 8.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ops/linalg/matrices.h"
#include "ops/linalg/svd.h"
#include "ops/tiles.h"

enum { RESULTS = 3 };

typedef struct state {
    dp_matrices in, out[RESULTS];
    int n_out;
    bool upper, full;
    int64_t count;
    size_t scratch_doubles;
} state;

typedef struct job {
    dp_plan *plan;
    const state *s;
    _Atomic int64_t failed; /* the first matrix that has no result; -1: none */
} job;

typedef bool (*factor_fn)(const job *j, int64_t index, double *scratch);

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b) {
    for (int64_t k = 0; k < n && a != b; k++) {
        double other = m[a * n + k];
        m[a * n + k] = m[b * n + k];
        m[b * n + k] = other;
    }
}

static int64_t pivot_of(const double *m, int64_t n, int64_t column) {
    int64_t pivot = column;
    for (int64_t i = column + 1; i < n; i++)
        if (fabs(m[i * n + column]) > fabs(m[pivot * n + column]))
            pivot = i;
    return pivot;
}

/* Rows of a and of b change together until a is the identity. */
static bool inverse_one(const job *j, int64_t index, double *scratch) {
    const int64_t n = j->s->in.rows;
    double *a = scratch, *b = scratch + n * n;
    dp_matrix_load(j->plan, &j->s->in, index, false, a);
    memset(b, 0, (size_t)(n * n) * sizeof *b);
    for (int64_t i = 0; i < n; i++)
        b[i * n + i] = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = pivot_of(a, n, c);
        if (!(fabs(a[pivot * n + c]) > 0))
            return false;
        swap_rows(a, n, c, pivot);
        swap_rows(b, n, c, pivot);
        double own = 1 / a[c * n + c];
        for (int64_t k = 0; k < n; k++) {
            a[c * n + k] *= own;
            b[c * n + k] *= own;
        }
        for (int64_t i = 0; i < n; i++) {
            double factor = a[i * n + c];
            for (int64_t k = 0; k < n && i != c && factor != 0; k++) {
                a[i * n + k] -= factor * a[c * n + k];
                b[i * n + k] -= factor * b[c * n + k];
            }
        }
    }
    dp_matrix_store(j->plan, &j->s->out[0], index, false, b);
    return true;
}

static bool cholesky_one(const job *j, int64_t index, double *a) {
    const int64_t n = j->s->in.rows;
    dp_matrix_load(j->plan, &j->s->in, index, j->s->upper, a);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k <= i; k++) {
            double sum = a[i * n + k];
            for (int64_t t = 0; t < k; t++)
                sum -= a[i * n + t] * a[k * n + t];
            if (i == k && !(sum > 0))
                return false;
            a[i * n + k] = i == k ? sqrt(sum) : sum / a[k * n + k];
        }
        for (int64_t k = i + 1; k < n; k++)
            a[i * n + k] = 0;
    }
    dp_matrix_store(j->plan, &j->s->out[0], index, j->s->upper, a);
    return true;
}

static bool slogdet_one(const job *j, int64_t index, double *a) {
    const int64_t n = j->s->in.rows;
    double sign = 1, log_sum = 0;
    dp_matrix_load(j->plan, &j->s->in, index, false, a);
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = pivot_of(a, n, c);
        swap_rows(a, n, c, pivot);
        double own = a[c * n + c];
        sign *= (pivot == c ? 1 : -1) * (own > 0 ? 1 : own < 0 ? -1 : own);
        log_sum += log(fabs(own));
        for (int64_t i = c + 1; i < n && own != 0; i++) {
            double factor = a[i * n + c] / own;
            for (int64_t k = c + 1; k < n; k++)
                a[i * n + k] -= factor * a[c * n + k];
        }
        if (own == 0) {
            log_sum = -INFINITY;
            break;
        }
    }
    dp_matrix_store(j->plan, &j->s->out[0], index, false, &sign);
    dp_matrix_store(j->plan, &j->s->out[1], index, false, &log_sum);
    return true;
}

/* columns [from, to) of m, `width` wide, from row `row` on: m -= scale v (v^T m). */
static void reflect(double *m, int64_t width, int64_t from, int64_t to, int64_t row, int64_t rows, const double *v,
                    double scale, double *sums) {
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t i = row; i < rows; i++)
        for (int64_t k = from; k < to; k++)
            sums[k] += v[i] * m[i * width + k];
    for (int64_t i = row; i < rows; i++)
        for (int64_t k = from; k < to; k++)
            m[i * width + k] -= scale * v[i] * sums[k];
}

/* The reflection that takes column c of a from row c on to (beta, 0, 0, ...): v, and 2 / v^T v, 0 when there is nothing
 * to do. */
static double reflection(const double *a, int64_t rows, int64_t columns, int64_t c, double *v) {
    double rest = 0, largest = 0;
    for (int64_t i = c; i < rows; i++) {
        v[i] = a[i * columns + c];
        largest = fmax(largest, fabs(v[i]));
    }
    if (!(largest > 0))
        return 0;
    for (int64_t i = c + 1; i < rows; i++)
        rest += v[i] / largest * (v[i] / largest);
    if (rest == 0)
        return 0;
    double first = v[c] / largest, norm = sqrt(first * first + rest);
    for (int64_t i = c; i < rows; i++)
        v[i] /= largest;
    v[c] += first < 0 ? -norm : norm;
    return 2 / (v[c] * v[c] + rest);
}

/* scratch: a, q, a reflection for each column, sums. */
static bool qr_one(const job *j, int64_t index, double *scratch) {
    const state *s = j->s;
    const int64_t m = s->in.rows, n = s->in.columns, k = m < n ? m : n, width = s->n_out == 2 ? s->out[0].columns : 0;
    double *a = scratch, *q = a + m * n, *v = q + m * m, *scale = v + m * k, *sums = scale + k;
    dp_matrix_load(j->plan, &s->in, index, false, a);
    for (int64_t c = 0; c < k; c++) {
        scale[c] = reflection(a, m, n, c, v + c * m);
        reflect(a, n, c, n, c, m, v + c * m, scale[c], sums);
        for (int64_t i = c + 1; i < m; i++)
            a[i * n + c] = 0;
    }
    dp_matrix_store(j->plan, &s->out[s->n_out - 1], index, false, a); /* its first rows */
    if (s->n_out < 2)
        return true;
    memset(q, 0, (size_t)(m * m) * sizeof *q);
    for (int64_t i = 0; i < width; i++)
        q[i * width + i] = 1;
    for (int64_t c = k - 1; c >= 0; c--)
        reflect(q, width, c, width, c, m, v + c * m, scale[c], sums);
    dp_matrix_store(j->plan, &s->out[0], index, false, q);
    return true;
}

/* The tall one of self and its transpose is worked on, as rows. */
static bool svd_one(const job *j, int64_t index, double *scratch) {
    const state *s = j->s;
    const int64_t rows = s->in.rows, columns = s->in.columns;
    const bool wide = rows < columns, vectors = s->n_out == RESULTS;
    const int64_t tall = wide ? columns : rows, narrow = wide ? rows : columns;
    dp_svd d = {.rows = narrow, .length = tall, .full = s->full, .vectors = vectors};
    d.a = scratch;
    d.values = d.a + tall * tall;
    d.turns = d.values + narrow;
    dp_matrix_load(j->plan, &s->in, index, !wide, d.a);
    if (!dp_svd_run(&d))
        return false;
    dp_matrix_store(j->plan, &s->out[0], index, false, d.values);
    if (vectors) {
        dp_matrix_store(j->plan, &s->out[wide ? 2 : 1], index, true, d.a);
        dp_matrix_store(j->plan, &s->out[wide ? 1 : 2], index, true, d.turns);
    }
    return true;
}

typedef struct row {
    factor_fn one;
    const char *failure;
} row;

static void one_matrix(void *context, size_t tile, void *scratch) {
    job *j = context;
    const row *r = j->plan->op->function->detail;
    if (r->one(j, (int64_t)tile, scratch))
        return;
    int64_t before = atomic_load(&j->failed);
    while ((before < 0 || before > (int64_t)tile) && !atomic_compare_exchange_weak(&j->failed, &before, (int64_t)tile))
        ;
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan), .failed = -1};
    const row *r = plan->op->function->detail;
    dp_status status = dp_tiles_run((size_t)j.s->count, j.s->scratch_doubles * sizeof(double) + 64, one_matrix, &j);
    if (status == DP_OK && j.failed >= 0)
        return dp_fail(DP_ERR_ARGUMENT, "%s: %s: matrix %lld of %s", plan->op->name, r->failure, (long long)j.failed,
                       plan->tensors[j.s->in.slot].name);
    return status;
}

static dp_status begin(const dp_operator_call *call, bool square, state *s) {
    const dp_arg *in = &call->in[0];
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_matrices_of(in, 2, &s->in);
    if (status == DP_OK && square && s->in.rows != s->in.columns)
        status = dp_fail(DP_ERR_ARGUMENT, "%s has matrices of %lld x %lld, but they must be square", in->name,
                         (long long)s->in.rows, (long long)s->in.columns);
    s->count = s->in.lead.count;
    return status;
}

static dp_status needed(const dp_arg *out) {
    return out->kind == DP_ARG_TENSOR ? DP_OK : dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but is asked for", out->name);
}

static dp_status finish(const dp_operator_call *call, const state *s, const char *path, dp_plan **out_plan) {
    dp_plan *plan = dp_plan_new(call, run, sizeof *s);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    *(state *)dp_plan_state(plan) = *s;
    plan->path = path;
    *out_plan = plan;
    return DP_OK;
}

static dp_status inverse(const dp_operator_call *call, dp_plan **out_plan) {
    state s = {.n_out = 1};
    dp_status status = begin(call, true, &s);
    int64_t n = s.in.rows;
    if (status == DP_OK)
        status = dp_matrices_expect(&call->out[0], 2, &call->in[0], n, n, &s.out[0]);
    s.scratch_doubles = (size_t)(2 * n * n);
    return status == DP_OK ? finish(call, &s, "elimination", out_plan) : status;
}

static dp_status cholesky(const dp_operator_call *call, dp_plan **out_plan) {
    state s = {.n_out = 1, .upper = dp_arg_integer(&call->in[1], 0) != 0};
    dp_status status = begin(call, true, &s);
    int64_t n = s.in.rows;
    if (status == DP_OK)
        status = dp_matrices_expect(&call->out[0], 2, &call->in[0], n, n, &s.out[0]);
    s.scratch_doubles = (size_t)(n * n);
    return status == DP_OK ? finish(call, &s, "rows", out_plan) : status;
}

static dp_status slogdet(const dp_operator_call *call, dp_plan **out_plan) {
    state s = {.n_out = 2};
    dp_status status = begin(call, true, &s);
    for (int i = 0; i < 2 && status == DP_OK; i++)
        status = dp_matrices_expect(&call->out[i], 0, &call->in[0], 1, 1, &s.out[i]);
    s.scratch_doubles = (size_t)(s.in.rows * s.in.rows);
    return status == DP_OK ? finish(call, &s, "elimination", out_plan) : status;
}

static dp_status qr(const dp_operator_call *call, dp_plan **out_plan) {
    int64_t mode = dp_arg_integer(&call->in[1], 0);
    state s = {.n_out = mode == 2 ? 1 : 2};
    dp_status status = begin(call, false, &s);
    int64_t m = s.in.rows, n = s.in.columns, k = m < n ? m : n;
    if (status == DP_OK && (mode < 0 || mode > 2))
        status = dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 0 (reduced), 1 (complete) or 2 (r)",
                         call->in[1].name, (long long)mode);
    if (status == DP_OK && mode != 2)
        status = needed(&call->out[0]);
    if (status == DP_OK && mode != 2)
        status = dp_matrices_expect(&call->out[0], 2, &call->in[0], m, mode == 1 ? m : k, &s.out[0]);
    if (status == DP_OK)
        status = dp_matrices_expect(&call->out[1], 2, &call->in[0], mode == 1 ? m : k, n, &s.out[s.n_out - 1]);
    s.scratch_doubles = (size_t)(m * n + m * m + m * k + k + (m > n ? m : n));
    return status == DP_OK ? finish(call, &s, "reflections", out_plan) : status;
}

static dp_status svd(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = &call->in[0];
    bool vectors = dp_arg_integer(&call->in[2], 1) != 0;
    state s = {.n_out = vectors ? RESULTS : 1, .full = dp_arg_integer(&call->in[1], 0) != 0};
    dp_status status = begin(call, false, &s);
    int64_t m = s.in.rows, n = s.in.columns, k = m < n ? m : n, tall = m > n ? m : n;
    if (status == DP_OK)
        status = dp_matrices_expect(&call->out[0], 1, in, 1, k, &s.out[0]);
    for (int i = 1; i < RESULTS && vectors && status == DP_OK; i++)
        status = needed(&call->out[i]);
    if (status == DP_OK && vectors)
        status = dp_matrices_expect(&call->out[1], 2, in, m, s.full ? m : k, &s.out[1]);
    if (status == DP_OK && vectors)
        status = dp_matrices_expect(&call->out[2], 2, in, n, s.full ? n : k, &s.out[2]);
    s.scratch_doubles = (size_t)(tall * tall + k + k * k);
    return status == DP_OK ? finish(call, &s, "rotations", out_plan) : status;
}

#define EXPORT(function, sentence, optional_out)                                                                       \
    static const row row_##function = {function##_one, sentence};                                                      \
    extern const dp_function dp_linalg_##function;                                                                     \
    const dp_function dp_linalg_##function = {#function, function, &row_##function, 0, optional_out};
EXPORT(inverse, "the matrix is singular", 0)
EXPORT(cholesky, "the matrix is not positive definite", 0)
EXPORT(slogdet, "", 0)
EXPORT(qr, "", 1)
EXPORT(svd, "the singular values were not found, there may be infinities or NaN in it", 6)
