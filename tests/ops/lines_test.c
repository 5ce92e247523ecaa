/* Reductions, softmax and norms against plain loops in double: every type, layout, set of dims, and edge shapes. */
#include "ops_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int rank;
    int64_t dims[4];
} shape;
static const shape shapes[] = {{0, {0}},    {1, {1}},       {1, {7}},       {2, {3, 5}},
                               {2, {0, 4}}, {2, {4, 0}},    {3, {4, 1, 6}}, {4, {2, 3, 2, 5}},
                               {1, {2500}}, {2, {37, 130}}, {2, {200, 3}},  {3, {5, 70, 40}}};
static const aclDataType floats[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE};
static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,  ACL_DOUBLE, ACL_INT32,
                                    ACL_INT8,  ACL_UINT8,   ACL_INT64, ACL_BOOL};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void fill(tensor *t, double low, double high) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i,
                    is_float(t->type) ? random_between(low, high)
                                      : rint(random_between(t->type == ACL_UINT8 ? 0 : low, high)));
}

static double unit(aclDataType type) {
    return type == ACL_DOUBLE ? 0x1p-46 : type == ACL_FLOAT ? 0x1p-20 : type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

static void check_near(const char *name, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i), rounded = round_to(t->type, want);
    if (got == rounded || (isnan(got) && isnan(rounded)))
        return;
    if (is_float(t->type) && fabs(got - rounded) <= unit(t->type) * (fabs(want) + scale))
        return;
    fail_msg("%s type %d, element %lld: %.12g, but must be %.12g", name, t->type, (long long)i, got, want);
}

/* Values of one output element, collected in order of the reduced dims. */
typedef struct line {
    double *x;
    int64_t n;
} line;

typedef enum arguments {
    NONE,
    DIMS_KEEP,
    DIMS_KEEP_TYPE,
    TYPE,
    DIM_KEEP,
    DIM_KEEP_TYPE,
    NORM,
    VAR,
    NORM_TYPE
} arguments;

typedef struct reduction {
    const char *name;
    arguments how;
    bool real_only, index, needs_one, truth;
    double parameter;
    double (*value)(line l, double parameter);
} reduction;

static double r_sum(line l, double p) {
    (void)p;
    double s = 0;
    for (int64_t i = 0; i < l.n; i++)
        s += l.x[i];
    return s;
}
static double r_mean(line l, double p) {
    return r_sum(l, p) / (double)l.n;
}
static double r_prod(line l, double p) {
    (void)p;
    double s = 1;
    for (int64_t i = 0; i < l.n; i++)
        s *= l.x[i];
    return s;
}
static double r_argmax(line l, double p) {
    (void)p;
    int64_t best = 0;
    for (int64_t i = 1; i < l.n; i++)
        best = l.x[i] > l.x[best] ? i : best;
    return (double)best;
}
static double r_argmin(line l, double p) {
    for (int64_t i = 0; i < l.n; i++)
        l.x[i] = -l.x[i];
    return r_argmax(l, p);
}
static double r_max(line l, double p) {
    return l.n ? l.x[(int64_t)r_argmax(l, p)] : -INFINITY;
}
static double r_min(line l, double p) {
    int64_t at = (int64_t)r_argmin(l, p);
    return l.n ? -l.x[at] : INFINITY;
}
static double r_any(line l, double p) {
    (void)p;
    double s = 0;
    for (int64_t i = 0; i < l.n; i++)
        s = s != 0 || l.x[i] != 0;
    return s;
}
static double r_all(line l, double p) {
    (void)p;
    double s = 1;
    for (int64_t i = 0; i < l.n; i++)
        s = s != 0 && l.x[i] != 0;
    return s;
}
static double r_logsumexp(line l, double p) {
    double max = r_max(l, p), s = 0;
    if (!l.n)
        return -INFINITY;
    for (int64_t i = 0; i < l.n; i++)
        s += exp(l.x[i] - max);
    return log(s) + max;
}
static double r_norm(line l, double p) {
    double s = 0;
    if (isinf(p)) {
        for (int64_t i = 0; i < l.n; i++)
            s = fmax(s, fabs(l.x[i]));
        return s;
    }
    for (int64_t i = 0; i < l.n; i++)
        s += p == 0 ? l.x[i] != 0 : pow(fabs(l.x[i]), p);
    return p == 0 ? s : pow(s, 1 / p);
}
static double r_var(line l, double p) {
    double mean = r_mean(l, p), s = 0;
    for (int64_t i = 0; i < l.n; i++)
        s += (l.x[i] - mean) * (l.x[i] - mean);
    return s / ((double)l.n > p ? (double)l.n - p : 0);
}
static double r_std(line l, double p) {
    return sqrt(r_var(l, p));
}

static const reduction reductions[] = {
    {"ReduceSum", DIMS_KEEP_TYPE, false, false, false, false, 0, r_sum},
    {"ReduceNansum", DIMS_KEEP_TYPE, true, false, false, false, 0, r_sum},
    {"Mean", DIMS_KEEP_TYPE, true, false, false, false, 0, r_mean},
    {"Prod", TYPE, false, false, false, false, 0, r_prod},
    {"ProdDim", DIM_KEEP_TYPE, false, false, false, false, 0, r_prod},
    {"Amax", DIMS_KEEP, false, false, true, false, 0, r_max},
    {"Amin", DIMS_KEEP, false, false, true, false, 0, r_min},
    {"Max", NONE, false, false, true, false, 0, r_max},
    {"Min", NONE, false, false, true, false, 0, r_min},
    {"ArgMax", DIM_KEEP, false, true, true, false, 0, r_argmax},
    {"ArgMin", DIM_KEEP, false, true, true, false, 0, r_argmin},
    {"Any", DIMS_KEEP, false, false, false, true, 0, r_any},
    {"All", DIMS_KEEP, false, false, false, true, 0, r_all},
    {"LogSumExp", DIMS_KEEP, true, false, false, false, 0, r_logsumexp},
    {"Norm", NORM, true, false, false, false, 2, r_norm},
    {"Norm", NORM, true, false, false, false, 1, r_norm},
    {"Norm", NORM, true, false, false, false, 0, r_norm},
    {"Norm", NORM, true, false, false, false, 3, r_norm},
    {"Norm", NORM, true, false, false, false, INFINITY, r_norm},
    {"LinalgVectorNorm", NORM_TYPE, true, false, false, false, 2, r_norm},
    {"VarCorrection", VAR, true, false, false, false, 1, r_var},
    {"Std", VAR, true, false, false, false, 0, r_std},
};

/* Dims to reduce, as a mask. */
static unsigned random_mask(int rank) {
    return rank ? (unsigned)(random_bits() % ((1u << rank) - 1)) + 1 : 0;
}

static line collect(const tensor *self, unsigned mask, bool keep, const tensor *out, int64_t output, double *room) {
    line l = {room, 0};
    (void)keep;
    (void)out;
    int64_t kept_at[4] = {0}, rest = output;
    for (int d = self->rank - 1; d >= 0; d--) {
        if (mask >> d & 1)
            continue;
        kept_at[d] = rest % self->dims[d];
        rest /= self->dims[d];
    }
    int64_t total = 1;
    for (int d = 0; d < self->rank; d++)
        total *= mask >> d & 1 ? self->dims[d] : 1;
    for (int64_t k = 0; k < total; k++) {
        int64_t at[4], left = k, index = 0;
        memcpy(at, kept_at, sizeof at);
        for (int d = self->rank - 1; d >= 0; d--) {
            if (!(mask >> d & 1))
                continue;
            at[d] = left % self->dims[d];
            left /= self->dims[d];
        }
        for (int d = 0; d < self->rank; d++)
            index = index * self->dims[d] + at[d];
        room[l.n++] = get_element(self, index);
    }
    return l;
}

static void check_reduction(const reduction *r, shape s, aclDataType type) {
    bool single = r->how == DIM_KEEP || r->how == DIM_KEEP_TYPE, whole = r->how == NONE || r->how == TYPE;
    if (single && s.rank == 0)
        return;
    unsigned all = (1u << s.rank) - 1, mask = whole    ? all
                                              : single ? 1u << random_bits() % (unsigned)s.rank
                                                       : random_mask(s.rank);
    bool keep = !whole && random_bits() & 1;
    tensor self = make_tensor(type, s.rank, s.dims, any_layout());
    bool small = strncmp(r->name, "Prod", 4) == 0;
    fill(&self, small ? -1.1 : -4, small ? 1.1 : 4);
    int64_t dims[4], list[4], length = 1;
    int rank = 0, n = 0;
    for (int d = 0; d < s.rank; d++) {
        bool gone = mask >> d & 1;
        length *= gone ? s.dims[d] : 1;
        if (gone)
            list[n++] = random_bits() & 1 ? d : d - s.rank;
        if (!gone || keep)
            dims[rank++] = gone ? 1 : s.dims[d];
    }
    aclDataType out_type = r->index                          ? (random_bits() & 1 ? ACL_INT64 : ACL_INT32)
                           : r->truth                        ? ACL_BOOL
                           : r->real_only && !is_float(type) ? ACL_FLOAT
                                                             : type;
    if (!r->index && !r->truth && !is_float(type) && !r->needs_one)
        out_type = r->real_only ? ACL_FLOAT : ACL_INT64;
    tensor out = make_tensor(out_type, rank, dims, any_layout());
    aclIntArray *array = aclCreateIntArray(list, mask == all && random_bits() & 1 ? 0 : (uint64_t)n);
    float p = (float)r->parameter;
    aclScalar *scalar = aclCreateScalar(&p, ACL_FLOAT);
    caller_value none[] = {T(self), T(out)}, dims_keep[] = {T(self), P(array), I(keep), T(out)},
                 dims_keep_type[] = {T(self), P(array), I(keep), I(out_type), T(out)},
                 only_type[] = {T(self), I(out_type), T(out)}, dim_keep[] = {T(self), I(list[0]), I(keep), T(out)},
                 dim_keep_type[] = {T(self), I(list[0]), I(keep), I(out_type), T(out)},
                 norm[] = {T(self), P(scalar), P(array), I(keep), T(out)},
                 var[] = {T(self), P(array), I((int64_t)r->parameter), I(keep), T(out)},
                 norm_type[] = {T(self), P(scalar), P(array), I(keep), I(out_type), T(out)};
    caller_value *const calls[] = {none, dims_keep, dims_keep_type, only_type, dim_keep, dim_keep_type,
                                   norm, var,       norm_type};
    aclnnStatus status = call_op(r->name, calls[r->how]);
    if (strcmp(r->name, "ReduceNansum") == 0 && !is_float(type)) {
        assert_int_equal(status, ACLNN_ERR_PARAM_INVALID);
    } else if (r->needs_one && length == 0 && out.count) {
        assert_int_equal(status, ACLNN_ERR_PARAM_INVALID);
        status = 1;
    } else if (status) {
        fail_msg("%s type %d rank %d mask %u: %d: %s", r->name, type, s.rank, mask, status, sentence());
    }
    double *room = calloc((size_t)self.count + 1, sizeof *room);
    for (int64_t i = 0; i < out.count && !status; i++) {
        line l = collect(&self, mask, keep, &out, i, room);
        double scale = 0;
        for (int64_t k = 0; k < l.n; k++)
            scale += fabs(l.x[k]) * 0x1p-3;
        double want = r->value(l, r->parameter);
        if (small && !is_float(type) && fabs(want) > 100)
            continue;
        check_near(r->name, &out, i, want, small ? 1e-30 : scale);
    }
    assert_true(untouched_outside(&out));
    free(room);
    aclDestroyIntArray(array);
    aclDestroyScalar(scalar);
    free_tensor(&self);
    free_tensor(&out);
}

static void reductions_of_all_kinds(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof reductions / sizeof reductions[0]; r++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
                check_reduction(&reductions[r], shapes[s], types[t]);
}

static void max_with_indices_and_mean_with_variance(void **state) {
    (void)state;
    int64_t dims[] = {6, 50}, left[] = {50};
    tensor self = make_tensor(ACL_FLOAT, 2, dims, STRIDED), value = make_tensor(ACL_FLOAT, 1, left, CONTIGUOUS),
           index = make_tensor(ACL_INT64, 1, left, CONTIGUOUS), mean = make_tensor(ACL_FLOAT, 1, left, STRIDED);
    fill(&self, -3, 3);
    set_element(&self, 50 + 7, NAN);
    caller_value values[] = {T(self), I(0), I(0), T(value), T(index)};
    assert_int_equal(call_op("MaxDim", values), 0);
    for (int c = 0; c < 50; c++) {
        int64_t at = (int64_t)get_element(&index, c);
        double best = get_element(&self, at * 50 + c);
        if (c == 7) {
            assert_int_equal(at, 1);
            assert_true(isnan(get_element(&value, c)));
            continue;
        }
        assert_true(get_element(&value, c) == best);
        for (int r = 0; r < 6; r++)
            assert_true(get_element(&self, r * 50 + c) <= best);
    }
    set_element(&self, 50 + 7, 1);
    int64_t zero = 0;
    aclIntArray *list = aclCreateIntArray(&zero, 1);
    caller_value moments[] = {T(self), P(list), I(1), I(0), T(value), T(mean)};
    assert_int_equal(call_op("VarMean", moments), 0);
    for (int c = 0; c < 50; c++) {
        double x[6];
        for (int r = 0; r < 6; r++)
            x[r] = get_element(&self, r * 50 + c);
        check_near("VarMean", &value, c, r_var((line){x, 6}, 1), 1);
        check_near("VarMean", &mean, c, r_mean((line){x, 6}, 0), 1);
    }
    aclDestroyIntArray(list);
    tensor *all[] = {&self, &value, &index, &mean};
    for (int i = 0; i < 4; i++)
        free_tensor(all[i]);
}

/* Long rows are cut into chunks and combined. */
static void long_rows(void **state) {
    (void)state;
    int64_t n = 300001, one = 1;
    tensor self = make_tensor(ACL_FLOAT, 1, &n, CONTIGUOUS), out = make_tensor(ACL_FLOAT, 1, &one, CONTIGUOUS),
           index = make_tensor(ACL_INT64, 1, &one, CONTIGUOUS);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = round_to(ACL_FLOAT, random_between(0, 1));
        set_element(&self, i, v);
        sum += v;
    }
    set_element(&self, 123456, 7);
    set_element(&self, 223456, 7);
    sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += get_element(&self, i);
    for (int64_t i = 0; i < n; i++)
        squares += (get_element(&self, i) - sum / (double)n) * (get_element(&self, i) - sum / (double)n);
    aclIntArray *none = aclCreateIntArray(NULL, 0);
    caller_value add[] = {T(self), P(none), I(1), I(ACL_FLOAT), T(out)}, var[] = {T(self), P(none), I(1), I(1), T(out)},
                 arg[] = {T(self), I(0), I(1), T(index)};
    assert_int_equal(call_op("ReduceSum", add), 0);
    check_near("ReduceSum", &out, 0, sum, 0);
    add[2].integer = 0; /* a result without dims goes into [1], too */
    assert_int_equal(call_op("ReduceSum", add), 0);
    check_near("ReduceSum", &out, 0, sum, 0);
    assert_int_equal(call_op("VarCorrection", var), 0);
    check_near("VarCorrection", &out, 0, squares / (double)(n - 1), 0);
    assert_int_equal(call_op("ArgMax", arg), 0);
    assert_true(get_element(&index, 0) == 123456);
    aclDestroyIntArray(none);
    free_tensor(&self);
    free_tensor(&out);
    free_tensor(&index);
}

static void softmax_of_all_kinds(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            for (int form = 0; form < 4 * (shapes[k].rank ? shapes[k].rank : 1); form++) {
                shape s = shapes[k];
                int log_form = form % 2, dim = form / 4;
                tensor in = make_tensor(floats[t], s.rank, s.dims, form & 2 ? CONTIGUOUS : any_layout()),
                       out = make_tensor(floats[t], s.rank, s.dims, form & 2 ? CONTIGUOUS : any_layout());
                fill(&in, -20, 20);
                caller_value values[] = {T(in), I(random_bits() & 1 && s.rank ? dim - s.rank : dim), T(out)};
                const char *name = log_form ? "LogSoftmax" : "Softmax";
                if (call_op(name, values))
                    fail_msg("%s: %s", name, sentence());
                int64_t inner = 1, n = s.rank ? s.dims[dim] : 1;
                for (int d = dim + 1; d < s.rank; d++)
                    inner *= s.dims[d];
                for (int64_t i = 0; i < in.count; i++) {
                    int64_t first = i - i / inner % n * inner;
                    double max = -INFINITY, sum = 0, x = get_element(&in, i);
                    for (int64_t j = 0; j < n; j++)
                        max = fmax(max, get_element(&in, first + j * inner));
                    for (int64_t j = 0; j < n; j++)
                        sum += exp(get_element(&in, first + j * inner) - max);
                    /* x - max is rounded to float before e^ */
                    double want = log_form ? x - max - log(sum) : exp(x - max) / sum;
                    check_near(name, &out, i, want, log_form ? 1 : want * fabs(x - max) * 0.125);
                }
                assert_true(untouched_outside(&out));
                free_tensor(&in);
                free_tensor(&out);
            }
}

static void softmax_gradients(void **state) {
    (void)state;
    int64_t dims[] = {5, 33, 4};
    for (int log_form = 0; log_form < 2; log_form++) {
        tensor g = make_tensor(ACL_FLOAT, 3, dims, STRIDED), y = make_tensor(ACL_FLOAT, 3, dims, TRANSPOSED),
               out = make_tensor(ACL_FLOAT, 3, dims, CONTIGUOUS);
        fill(&g, -1, 1);
        fill(&y, log_form ? -5 : 0, log_form ? 0 : 1);
        caller_value values[] = {T(g), T(y), I(1), T(out)};
        assert_int_equal(call_op(log_form ? "LogSoftmaxBackward" : "SoftmaxBackward", values), 0);
        for (int64_t i = 0; i < out.count; i++) {
            int64_t first = i - i / 4 % 33 * 4;
            double sum = 0;
            for (int64_t j = 0; j < 33; j++)
                sum += get_element(&g, first + j * 4) * (log_form ? 1 : get_element(&y, first + j * 4));
            double want = log_form ? get_element(&g, i) - exp(get_element(&y, i)) * sum
                                   : get_element(&y, i) * (get_element(&g, i) - sum);
            check_near("softmax gradient", &out, i, want, 4);
        }
        free_tensor(&g);
        free_tensor(&y);
        free_tensor(&out);
    }
}

static void layer_and_rms_norm(void **state) {
    (void)state;
    static const shape inputs[] = {{2, {3, 5}},       {2, {7, 130}}, {3, {4, 6, 10}},
                                   {4, {2, 3, 4, 5}}, {2, {0, 4}},   {1, {9}}};
    for (int t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof inputs / sizeof inputs[0]; k++)
            for (int form = 0; form < 3; form++) { /* layer, rms, add + rms */
                shape s = inputs[k];
                int inner = s.rank > 2 ? 1 + (int)(random_bits() & 1) : 1, outer = s.rank - inner;
                int64_t length = 1, stat_dims[4];
                for (int d = 0; d < s.rank; d++) {
                    stat_dims[d] = d < outer ? s.dims[d] : 1;
                    length *= d < outer ? 1 : s.dims[d];
                }
                aclDataType type = floats[t];
                tensor x = make_tensor(type, s.rank, s.dims, any_layout()),
                       x2 = make_tensor(type, s.rank, s.dims, any_layout()),
                       y = make_tensor(type, s.rank, s.dims, any_layout()),
                       sum = make_tensor(type, s.rank, s.dims, any_layout()),
                       gamma = make_tensor(t == 1 ? ACL_FLOAT : type, inner, s.dims + outer, any_layout()),
                       beta = make_tensor(type, inner, s.dims + outer, any_layout()),
                       mean = make_tensor(ACL_FLOAT, s.rank, stat_dims, any_layout()),
                       rstd = make_tensor(ACL_FLOAT, s.rank, stat_dims, CONTIGUOUS);
                fill(&x, -3, 5);
                fill(&x2, -3, 5);
                fill(&gamma, 0.5, 2);
                fill(&beta, -1, 1);
                bool with_beta = random_bits() & 1, with_stats = random_bits() & 1;
                aclIntArray *normalized = aclCreateIntArray(s.dims + outer, (uint64_t)inner);
                double eps = 1e-3;
                caller_value layer[] = {T(x),
                                        P(normalized),
                                        T(gamma),
                                        P(with_beta ? beta.handle : NULL),
                                        R(eps),
                                        T(y),
                                        P(with_stats ? mean.handle : NULL),
                                        P(with_stats ? rstd.handle : NULL)};
                caller_value rms[] = {T(x), T(gamma), R(eps), T(y), T(rstd)},
                             add_rms[] = {T(x), T(x2), T(gamma), R(eps), T(y), T(rstd), T(sum)};
                const char *name = form == 0 ? "LayerNorm" : form == 1 ? "RmsNorm" : "AddRmsNorm";
                if (call_op(name, form == 0 ? layer : form == 1 ? rms : add_rms))
                    fail_msg("%s: %s", name, sentence());
                for (int64_t i = 0; i < x.count; i++) {
                    int64_t first = i / length * length;
                    double m = 0, q = 0, v;
                    for (int64_t j = 0; j < length; j++)
                        m += get_element(&x, first + j) / (double)length;
                    if (form)
                        m = 0;
                    for (int64_t j = 0; j < length; j++) {
                        v = get_element(&x, first + j) + (form == 2 ? get_element(&x2, first + j) : 0);
                        q += (v - m) * (v - m) / (double)length;
                    }
                    v = get_element(&x, i) + (form == 2 ? get_element(&x2, i) : 0);
                    double r = 1 / sqrt(q + eps), want = (v - m) * r * get_element(&gamma, i % length);
                    if (form == 0 && with_beta)
                        want += get_element(&beta, i % length);
                    check_near(name, &y, i, want, 2);
                    if (form == 2)
                        check_near(name, &sum, i, v, 0);
                    if (form || with_stats)
                        check_near(name, &rstd, i / length, r, 0.1);
                    if (!form && with_stats)
                        check_near(name, &mean, i / length, m, 1);
                }
                assert_true(untouched_outside(&y));
                aclDestroyIntArray(normalized);
                tensor *all[] = {&x, &x2, &y, &sum, &gamma, &beta, &mean, &rstd};
                for (int i = 0; i < 8; i++)
                    free_tensor(all[i]);
            }
}

static void group_norm(void **state) {
    (void)state;
    int64_t dims[] = {2, 6, 3, 5}, channels = 6, stats[] = {2, 3};
    for (int t = 0; t < 3; t++) {
        tensor x = make_tensor(floats[t], 4, dims, CONTIGUOUS), y = make_tensor(floats[t], 4, dims, OFFSET),
               gamma = make_tensor(floats[t], 1, &channels, STRIDED),
               beta = make_tensor(floats[t], 1, &channels, CONTIGUOUS),
               mean = make_tensor(ACL_FLOAT, 2, stats, CONTIGUOUS), rstd = make_tensor(ACL_FLOAT, 2, stats, CONTIGUOUS);
        fill(&x, -3, 5);
        fill(&gamma, 0.5, 2);
        fill(&beta, -1, 1);
        caller_value values[] = {T(x),
                                 P(t ? gamma.handle : NULL),
                                 P(t ? beta.handle : NULL),
                                 I(2),
                                 I(6),
                                 I(15),
                                 I(3),
                                 R(1e-3),
                                 T(y),
                                 T(mean),
                                 T(rstd)};
        if (call_op("GroupNorm", values))
            fail_msg("%s", sentence());
        for (int64_t i = 0; i < x.count; i++) {
            int64_t first = i / 30 * 30, c = i / 15 % 6;
            double m = 0, q = 0;
            for (int64_t j = 0; j < 30; j++)
                m += get_element(&x, first + j) / 30;
            for (int64_t j = 0; j < 30; j++)
                q += (get_element(&x, first + j) - m) * (get_element(&x, first + j) - m) / 30;
            double r = 1 / sqrt(q + 1e-3);
            check_near(
                "GroupNorm", &y, i,
                (get_element(&x, i) - m) * r * (t ? get_element(&gamma, c) : 1) + (t ? get_element(&beta, c) : 0), 2);
            check_near("GroupNorm", &mean, i / 30, m, 1);
            check_near("GroupNorm", &rstd, i / 30, r, 1);
        }
        values[6].integer = 4;
        assert_int_equal(call_op("GroupNorm", values), ACLNN_ERR_PARAM_INVALID);
        assert_non_null(strstr(sentence(), "must divide"));
        tensor *all[] = {&x, &y, &gamma, &beta, &mean, &rstd};
        for (int i = 0; i < 6; i++)
            free_tensor(all[i]);
    }
}

static void running_sums(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            for (int product = 0; product < 2; product++) {
                shape s = shapes[k];
                int dim = s.rank ? (int)(random_bits() % (unsigned)s.rank) : 0;
                aclDataType out_type = is_float(types[t]) ? types[t] : ACL_INT64;
                tensor in = make_tensor(types[t], s.rank, s.dims, any_layout()),
                       out = make_tensor(out_type, s.rank, s.dims, any_layout());
                fill(&in, product ? -1.2 : -3, product ? 1.2 : 3);
                int64_t whole = dim;
                aclScalar *at = aclCreateScalar(&whole, ACL_INT64);
                caller_value sum[] = {T(in), I(dim), I(out_type), T(out)},
                             times[] = {T(in), P(at), I(out_type), T(out)};
                if (call_op(product ? "Cumprod" : "Cumsum", product ? times : sum))
                    fail_msg("%s", sentence());
                int64_t inner = 1, n = s.rank ? s.dims[dim] : 1;
                for (int d = dim + 1; d < s.rank; d++)
                    inner *= s.dims[d];
                for (int64_t i = 0; i < in.count; i++) {
                    int64_t place = i / inner % n;
                    double want = product, scale = 0;
                    for (int64_t j = 0; j <= place; j++) {
                        double x = get_element(&in, i - j * inner);
                        want = product ? want * x : want + x;
                        scale += fabs(x) * 0x1p-3;
                    }
                    check_near("running sum", &out, i, want, product ? 1e-30 : scale);
                }
                assert_true(untouched_outside(&out));
                aclDestroyScalar(at);
                free_tensor(&in);
                free_tensor(&out);
            }
}

static double gelu_of(double a, bool tanh_form) {
    return tanh_form ? 0.5 * a * (1 + tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a)))
                     : 0.5 * a * (1 + erf(a * M_SQRT1_2));
}

static void gated_units(void **state) {
    (void)state;
    int64_t dims[] = {3, 10, 7}, half[] = {3, 5, 7};
    for (int t = 0; t < 3; t++)
        for (int form = 0; form < 6; form++) { /* glu, swiglu, geglu by mode and side */
            tensor in = make_tensor(floats[t], 3, dims, any_layout()),
                   out = make_tensor(floats[t], 3, half, any_layout()),
                   gate = make_tensor(floats[t], 3, half, any_layout());
            fill(&in, -4, 4);
            bool tanh_form = form & 1, left = form >= 4;
            caller_value plain[] = {T(in), I(1), T(out)},
                         both[] = {T(in), I(-2), I(!tanh_form), I(left), T(out), T(gate)};
            if (call_op(form == 0 ? "Glu" : form == 1 ? "SwiGlu" : "GeGluV3", form < 2 ? plain : both))
                fail_msg("%s", sentence());
            for (int64_t i = 0; i < out.count; i++) {
                int64_t at = i / 35 * 70 + i % 35;
                double a = get_element(&in, at), b = get_element(&in, at + 35);
                double g = form == 0   ? 1 / (1 + exp(-b))
                           : form == 1 ? a / (1 + exp(-a))
                                       : gelu_of(left ? a : b, tanh_form);
                check_near("gated", &out, i, g * (form == 0 ? a : form == 1 ? b : left ? b : a), 0.25);
                if (form >= 2)
                    check_near("gate", &gate, i, g, 0.25);
            }
            assert_true(untouched_outside(&out));
            plain[1].integer = 2;
            assert_int_equal(call_op("Glu", plain), ACLNN_ERR_PARAM_INVALID);
            assert_non_null(strstr(sentence(), "dimension 2 is 7, but must be even"));
            free_tensor(&in);
            free_tensor(&out);
            free_tensor(&gate);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_of_all_kinds),
        cmocka_unit_test(max_with_indices_and_mean_with_variance),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(softmax_of_all_kinds),
        cmocka_unit_test(softmax_gradients),
        cmocka_unit_test(layer_and_rms_norm),
        cmocka_unit_test(group_norm),
        cmocka_unit_test(running_sums),
        cmocka_unit_test(gated_units),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
