/* What training needs beside the common operators, each against its formula in plain double. */
#include "arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_DOUBLE, ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static double unit_of(aclDataType type) {
    return type == ACL_DOUBLE ? 1e-11 : type == ACL_FLOAT ? 1e-5 : type == ACL_FLOAT16 ? 4e-3 : 3e-2;
}

static tensor any_tensor(aclDataType type, int rank, const int64_t *dims, double low, double high) {
    tensor t = make_tensor(type, rank, dims, (layout)(random_bits() % LAYOUTS));
    for (int64_t i = 0; i < t.count; i++)
        set_element(&t, i, random_between(low, high));
    return t;
}

static void near(const char *what, const tensor *t, int64_t i, double want, double scale) {
    double got = get_element(t, i);
    if (!(fabs(got - want) <= unit_of(t->type) * (fabs(want) + scale)))
        fail_msg("%s, type %d, element %lld: %.9g, but must be %.9g", what, t->type, (long long)i, got, want);
}

static tensor number_tensor(aclDataType type, double value) {
    tensor t = make_tensor(type, 1, (int64_t[]){1}, OFFSET);
    set_element(&t, 0, value);
    return t;
}

enum { N = 300, VAR = 0, M, V, GRAD, MOST, TENSORS };

typedef struct problem {
    tensor x[TENSORS];
    double before[TENSORS][N];
} problem;

static void make_problem(aclDataType type, problem *p) {
    for (int i = 0; i < TENSORS; i++) {
        p->x[i] = any_tensor(type, 2, (int64_t[]){N / 10, 10}, i == V || i == MOST ? 0.01 : -1, 1);
        for (int k = 0; k < N; k++)
            p->before[i][k] = get_element(&p->x[i], k);
    }
}
static void free_problem(problem *p) {
    for (int i = 0; i < TENSORS; i++) {
        assert_true(untouched_outside(&p->x[i]));
        free_tensor(&p->x[i]);
    }
}

static void adam(void **state) {
    (void)state;
    static const char *const numbers[] = {"beta1_power_tensor", "beta2_power_tensor", "lr_tensor",
                                          "beta1_tensor",       "beta2_tensor",       "epsilon_tensor",
                                          "weight_decay_tensor"};
    static const double values[] = {0.5, 0.75, 0.125, 0.875, 0.96875, 1.0 / 1024, 0.0625}; /* exact in every type */
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 6; form++) {
            bool is_w = form >= 2, flag = form & 1, amsgrad = is_w && form & 1, maximize = form >= 4;
            const double *p = values, b1 = p[3], b2 = p[4], lr = p[2];
            problem q;
            tensor number[7];
            make_problem(types[t], &q);
            arguments call = begin_call(is_w ? "ApplyAdamW" : "ApplyAdam");
            put(&call, "var", q.x[VAR].handle);
            put(&call, "m", q.x[M].handle);
            put(&call, "v", q.x[V].handle);
            put(&call, "grad", q.x[GRAD].handle);
            for (int i = 0; i < (is_w ? 7 : 6); i++) {
                number[i] = number_tensor(types[t], values[i]);
                put(&call, numbers[i], number[i].handle);
            }
            put_integer(&call, is_w ? "amsgrad_value" : "use_nesterov_value", flag);
            if (amsgrad)
                refused(&call, "amsgrad needs it");
            if (amsgrad)
                put(&call, "max_grad_normOptional", q.x[MOST].handle);
            if (is_w)
                put_integer(&call, "maximize_value", maximize);
            must(&call);
            for (int i = 0; i < N; i++) {
                double g = maximize ? -q.before[GRAD][i] : q.before[GRAD][i], m = b1 * q.before[M][i] + (1 - b1) * g,
                       v = b2 * q.before[V][i] + (1 - b2) * g * g, var = q.before[VAR][i];
                if (is_w)
                    var = var * (1 - lr * p[6]) -
                          lr * m / (1 - p[0] * b1) /
                              (sqrt((amsgrad ? fmax(v, q.before[MOST][i]) : v) / (1 - p[1] * b2)) + p[5]);
                else
                    var -= lr * sqrt(1 - p[1]) / (1 - p[0]) * (flag ? b1 * m + (1 - b1) * g : m) / (sqrt(v) + p[5]);
                near("m", &q.x[M], i, m, 0.1);
                near("v", &q.x[V], i, v, 0.1);
                near("var", &q.x[VAR], i, var, 1);
                assert_true(get_element(&q.x[GRAD], i) == q.before[GRAD][i]);
                assert_true(get_element(&q.x[MOST], i) == q.before[MOST][i]);
            }
            for (int i = 0; i < (is_w ? 7 : 6); i++)
                free_tensor(&number[i]);
            free_problem(&q);
        }
}

static void sgd(void **state) {
    (void)state;
    const double decay = 0.0625, momentum = 0.875, lr = 0.25, dampening = 0.125, scale = 4;
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 16; form++) {
            bool nesterov = form & 1, maximize = form & 2, first = form & 4, buffers = form & 8;
            problem q[2];
            tensor scale_tensor = number_tensor(ACL_FLOAT, scale);
            aclTensorList *list[3];
            for (int i = 0; i < 2; i++)
                make_problem(types[t], &q[i]);
            static const int of[] = {VAR, GRAD, M};
            for (int k = 0; k < 3; k++)
                list[k] = aclCreateTensorList((const aclTensor *[]){q[0].x[of[k]].handle, q[1].x[of[k]].handle},
                                              k < 2 || buffers ? 2 : 0);
            arguments call = begin_call("FusedSgd");
            put(&call, "params", list[0]);
            put(&call, "grads", list[1]);
            put(&call, "momentum_buffer_list", list[2]);
            put(&call, "grad_scale_real", maximize ? scale_tensor.handle : NULL);
            put_real(&call, "weight_decay_real", decay);
            put_real(&call, "momentum_real", momentum);
            put_real(&call, "lr_real", lr);
            put_real(&call, "dampening_real", dampening);
            put_integer(&call, "nesterov", nesterov);
            put_integer(&call, "maximize", maximize);
            put_integer(&call, "is_first_step", first);
            must(&call);
            for (int k = 0; k < 2; k++)
                for (int i = 0; i < N; i++) {
                    double p = q[k].before[VAR][i], g = q[k].before[GRAD][i];
                    g = (maximize ? -g / scale : g) + decay * p;
                    double b = q[k].before[M][i], buffer = first ? g : momentum * b + (1 - dampening) * g;
                    if (buffers)
                        g = nesterov ? g + momentum * buffer : buffer;
                    near("param", &q[k].x[VAR], i, p - lr * g, 1);
                    near("buffer", &q[k].x[M], i, buffers ? buffer : b, 1);
                    assert_true(get_element(&q[k].x[GRAD], i) == q[k].before[GRAD][i]);
                }
            for (int k = 0; k < 2; k++) /* the tensors of a list are its own */
                for (int i = 0; i < TENSORS; i++) {
                    assert_true(untouched_outside(&q[k].x[i]));
                    if (i == VAR || i == GRAD || (i == M && buffers))
                        q[k].x[i].handle = NULL;
                }
            for (int k = 0; k < 3; k++)
                assert_int_equal(aclDestroyTensorList(list[k]), 0);
            for (int k = 0; k < 2; k++)
                for (int i = 0; i < TENSORS; i++)
                    free_tensor(&q[k].x[i]);
            free_tensor(&scale_tensor);
        }
}

static void masked_softmax(void **state) {
    (void)state;
    const int64_t dims[] = {2, 3, 5, 7}, mask_dims[] = {2, 1, 5, 7}, columns = 7;
    for (int t = 1; t < 4; t++)
        for (int triangle = 0; triangle < 2; triangle++) {
            tensor x = any_tensor(types[t], 4, dims, -4, 4), mask = make_tensor(ACL_BOOL, 4, mask_dims, STRIDED),
                   y = make_tensor(types[t], 4, dims, STRIDED), g = any_tensor(types[t], 4, dims, -1, 1),
                   dx = make_tensor(types[t], 4, dims, STRIDED);
            const double scale = 0.75;
            for (int64_t i = 0; i < mask.count; i++)
                set_element(&mask, i, i / columns % 5 == 4 || random_bits() % 3 == 0); /* whole rows, too */
            arguments call = begin_call("ScaledMaskedSoftmax"), back = begin_call("ScaledMaskedSoftmaxBackward");
            put(&call, "self", x.handle);
            put(&call, "mask", mask.handle);
            put_real(&call, "scale", scale);
            put_integer(&call, "fixed_triu_mask", triangle);
            put(&call, "result", y.handle);
            must(&call);
            put(&back, "y_grad", g.handle);
            put(&back, "y", y.handle);
            put(&back, "mask", mask.handle);
            put_real(&back, "scale_value", scale);
            put_integer(&back, "fixed_triu_mask", triangle);
            put(&back, "result", dx.handle);
            must(&back);
            for (int64_t line = 0; line < 2 * 3 * 5; line++) {
                double e[7], sum = 0, most = -INFINITY, dot = 0;
                bool hidden[7];
                for (int64_t i = 0; i < columns; i++) {
                    int64_t row = line % 5, at = (line / 15 * 5 + row) * columns + i;
                    hidden[i] = triangle ? i > row : get_element(&mask, at) != 0;
                    e[i] = hidden[i] ? -10000 : scale * get_element(&x, line * columns + i);
                    most = fmax(most, e[i]);
                }
                for (int64_t i = 0; i < columns; i++)
                    sum += e[i] = exp(e[i] - most);
                for (int64_t i = 0; i < columns; i++) {
                    near("softmax", &y, line * columns + i, e[i] / sum, 0.1);
                    dot += get_element(&y, line * columns + i) * get_element(&g, line * columns + i);
                }
                for (int64_t i = 0; i < columns; i++)
                    near("gradient", &dx, line * columns + i,
                         hidden[i] ? 0
                                   : scale * get_element(&y, line * columns + i) *
                                         (get_element(&g, line * columns + i) - dot),
                         0.1);
            }
            assert_true(untouched_outside(&y) && untouched_outside(&dx));
            put_integer(&call, "fixed_triu_mask", 0);
            put(&call, "mask", x.handle);
            refused(&call, "mask");
            free_tensor(&x);
            free_tensor(&mask);
            free_tensor(&y);
            free_tensor(&g);
            free_tensor(&dx);
        }
}

static void unfold_gradients(void **state) {
    (void)state;
    static const int64_t cases[][3] = {{0, 3, 2}, {1, 4, 1}, {-1, 2, 3}, {1, 5, 5}, {0, 6, 1}}; /* dim, size, step */
    const int64_t dims[] = {6, 5, 4};
    for (int t = 0; t < 4; t++)
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            int64_t dim = (cases[c][0] + 3) % 3, size = cases[c][1], step = cases[c][2],
                    windows = (dims[dim] - size) / step + 1, from[] = {6, 5, 4, size};
            from[dim] = windows;
            tensor g = any_tensor(types[t], 4, from, -1, 1), y = make_tensor(types[t], 3, dims, STRIDED);
            double want[120] = {0}, most = 1;
            for (int64_t i = 0; i < g.count; i++) {
                int64_t at[] = {i / size / from[2] / from[1], i / size / from[2] % from[1], i / size % from[2]},
                        k = i % size;
                at[dim] = at[dim] * step + k;
                want[(at[0] * 5 + at[1]) * 4 + at[2]] += get_element(&g, i);
            }
            aclIntArray *sizes = aclCreateIntArray(dims, 3);
            arguments call = begin_call("UnfoldGrad");
            put(&call, "grad_in", g.handle);
            put(&call, "input_sizes", sizes);
            put_integer(&call, "dim", cases[c][0]);
            put_integer(&call, "size", size);
            put_integer(&call, "step", step);
            put(&call, "out", y.handle);
            must(&call);
            for (int64_t i = 0; i < y.count; i++)
                near("sum of windows", &y, i, want[i], most);
            assert_true(untouched_outside(&y));
            put_integer(&call, "step", 0);
            refused(&call, "at least 1");
            aclDestroyIntArray(sizes);
            free_tensor(&g);
            free_tensor(&y);
        }
}

static void confusion_transposes(void **state) {
    (void)state;
    const int64_t a[] = {2, 6, 4}, b[] = {2, 3, 2, 4}, a_perm[] = {2, 0, 1}, b_perm[] = {3, 1, 0, 2},
                  a_shape[] = {4, 1, 3, 2, 2}, moved[] = {4, 3, 2, 2};
    for (int first = 0; first < 2; first++)
        for (int how = 0; how < LAYOUTS; how++) {
            if (how == TRANSPOSED)
                continue; /* below */
            tensor x = make_tensor(ACL_INT16, 3, a,
                                   first           ? (layout)how
                                   : how == OFFSET ? OFFSET
                                                   : CONTIGUOUS),
                   y = first ? make_tensor(ACL_INT16, 5, a_shape, how == OFFSET ? OFFSET : CONTIGUOUS)
                             : make_tensor(ACL_INT16, 4, moved, (layout)how);
            for (int64_t i = 0; i < x.count; i++)
                set_element(&x, i, (double)i);
            aclIntArray *perm = aclCreateIntArray(first ? a_perm : b_perm, first ? 3 : 4),
                        *shape = aclCreateIntArray(first ? a_shape : b, first ? 5 : 4);
            arguments call = begin_call("ConfusionTranspose");
            put(&call, "self", x.handle);
            put(&call, "perm", perm);
            put(&call, "shape", shape);
            put_integer(&call, "transpose_first", first);
            put(&call, "y", y.handle);
            must(&call);
            for (int64_t i = 0; i < y.count; i++) {
                int64_t from;
                if (first) { /* i in [4, 2, 6] */
                    from = (i / 6 % 2 * 6 + i % 6) * 4 + i / 12;
                } else {
                    int64_t p0 = i / 12, p1 = i / 4 % 3, p2 = i / 2 % 2, p3 = i % 2;
                    from = ((p2 * 3 + p1) * 2 + p3) * 4 + p0;
                }
                assert_true(get_element(&y, i) == (double)from);
            }
            assert_true(untouched_outside(&y));
            put(&call, "shape", perm);
            refused(&call, "elements");
            aclDestroyIntArray(perm);
            aclDestroyIntArray(shape);
            free_tensor(&x);
            free_tensor(&y);
        }
    tensor x = make_tensor(ACL_INT16, 3, a, TRANSPOSED), y = make_tensor(ACL_INT16, 4, moved, CONTIGUOUS);
    aclIntArray *perm = aclCreateIntArray(b_perm, 4), *shape = aclCreateIntArray((int64_t[]){4, 3, 2, 2}, 4);
    arguments call = begin_call("ConfusionTranspose");
    put(&call, "self", x.handle);
    put(&call, "perm", perm);
    put(&call, "shape", shape);
    put(&call, "y", y.handle);
    uint64_t size;
    aclOpExecutor *executor;
    assert_int_not_equal(call.op->prepare(call.values, &size, &executor), 0);
    assert_non_null(strstr(sentence(), "make it contiguous"));
    aclDestroyIntArray(perm);
    aclDestroyIntArray(shape);
    free_tensor(&x);
    free_tensor(&y);
}

static void sequences_and_fills(void **state) {
    (void)state;
    float from = -2, to = 3, number = 7.5f;
    aclScalar *start = aclCreateScalar(&from, ACL_FLOAT), *end = aclCreateScalar(&to, ACL_FLOAT),
              *value = aclCreateScalar(&number, ACL_FLOAT);
    for (int t = 0; t < 4; t++) {
        tensor y = make_tensor(types[t], 1, (int64_t[]){11}, STRIDED),
               x = any_tensor(types[t], 3, (int64_t[]){3, 5, 2}, -1, 1), z = make_tensor(types[t], 3, x.dims, STRIDED);
        arguments call = begin_call("LogSpace");
        put(&call, "start", start);
        put(&call, "end", end);
        put_integer(&call, "steps", 11);
        put_real(&call, "base", 2);
        put(&call, "result", y.handle);
        must(&call);
        for (int i = 0; i < 11; i++)
            near("power", &y, i, pow(2, -2 + 0.5 * i), 0);
        aclIntArray *places = aclCreateIntArray((int64_t[]){4, -4}, 2);
        arguments fill = begin_call("IndexFillTensor");
        put(&fill, "self", x.handle);
        put_integer(&fill, "dim", 1);
        put(&fill, "index_array", places);
        put(&fill, "value_scalar", value);
        put(&fill, "result", z.handle);
        must(&fill);
        for (int64_t i = 0; i < z.count; i++)
            assert_true(get_element(&z, i) == (i / 2 % 5 == 4 || i / 2 % 5 == 1 ? 7.5 : get_element(&x, i)));
        assert_true(untouched_outside(&z));
        aclDestroyIntArray(places);
        free_tensor(&x);
        free_tensor(&y);
        free_tensor(&z);
    }
    aclDestroyScalar(start);
    aclDestroyScalar(end);
    aclDestroyScalar(value);
}

static void scatter_lists(void **state) {
    (void)state;
    const int64_t dims[] = {2, 6, 3};
    for (int form = 0; form < 4; form++) {
        bool last = form & 1, has_mask = form & 2;
        int64_t update_dims[] = {3, 2, last ? 6 : 2, last ? 1 : 3}, length = last ? 1 : 2;
        tensor x[3], updates = any_tensor(ACL_FLOAT16, 4, update_dims, 5, 9),
                     indices = make_tensor(ACL_INT32, 1, (int64_t[]){3}, STRIDED),
                     mask = make_tensor(ACL_UINT8, 1, (int64_t[]){3}, STRIDED);
        double before[3][36];
        const aclTensor *handles[3];
        for (int k = 0; k < 3; k++) {
            x[k] = any_tensor(ACL_FLOAT16, 3, dims, -1, 1);
            handles[k] = x[k].handle;
            set_element(&indices, k, last ? k : 2 * k);
            set_element(&mask, k, k != 1);
            for (int64_t i = 0; i < 36; i++)
                before[k][i] = get_element(&x[k], i);
        }
        aclTensorList *list = aclCreateTensorList(handles, 3);
        arguments call = begin_call("ScatterList");
        put(&call, "result_", list);
        put(&call, "indice", indices.handle);
        put(&call, "updates", updates.handle);
        put(&call, "maskOptional", has_mask ? mask.handle : NULL);
        put(&call, "reduce_ptr", "update");
        put_integer(&call, "axis", last ? -1 : -2);
        must(&call);
        for (int k = 0; k < 3; k++)
            for (int64_t i = 0; i < 36; i++) {
                int64_t a = i / 18, b = i / 3 % 6, c = i % 3, at = (last ? c : b) - (last ? k : 2 * k);
                bool written = at >= 0 && at < length && !(has_mask && k == 1);
                double want = written
                                  ? get_element(&updates, last ? ((k * 2 + a) * 6 + b) : ((k * 2 + a) * 2 + at) * 3 + c)
                                  : before[k][i];
                assert_true(get_element(&x[k], i) == want);
            }
        put(&call, "reduce_ptr", "add");
        refused(&call, "must be \"update\"");
        put(&call, "reduce_ptr", "update");
        set_element(&indices, 2, 5 - length + 2 + last);
        fails_when_run(&call, "element 2 is");
        assert_int_equal(aclDestroyTensorList(list), 0);
        for (int k = 0; k < 3; k++) {
            assert_true(untouched_outside(&x[k]));
            x[k].handle = NULL;
            free_tensor(&x[k]);
        }
        free_tensor(&updates);
        free_tensor(&indices);
        free_tensor(&mask);
    }
}

/* self[:, mask], and what is put there: a value for each place, or one for all. */
static void masks(void **state) {
    (void)state;
    const int64_t dims[] = {2, 3, 4, 5};
    for (int t = 0; t < 4; t++)
        for (int how = 0; how < LAYOUTS; how++)
            for (int one = 0; one < 2; one++) {
                tensor x = any_tensor(types[t], 4, dims, -1, 1), mask = make_tensor(ACL_BOOL, 2, dims + 1, (layout)how),
                       all = make_tensor(ACL_INT64, 1, (int64_t[]){0}, CONTIGUOUS);
                int64_t places[12], n = 0;
                for (int64_t i = 0; i < 12; i++) {
                    bool is = (i * 5 + how) % 3 == 0;
                    set_element(&mask, i, is);
                    if (is)
                        places[n++] = i;
                }
                aclTensorList *list = aclCreateTensorList((const aclTensor *[]){all.handle, mask.handle}, 2);
                tensor y = make_tensor(types[t], 3, (int64_t[]){2, n, 5}, STRIDED),
                       v = any_tensor(types[t], one ? 1 : 3, one ? (int64_t[]){5} : (int64_t[]){2, n, 5}, 3, 4),
                       few = make_tensor(types[t], 3, (int64_t[]){2, n - 1, 5}, STRIDED);
                arguments call = begin_call("Index"), puts = begin_call("IndexPutImpl");
                put(&call, "self", x.handle);
                put(&call, "indices_tensor_list", list);
                put(&call, "result", y.handle);
                must(&call);
                for (int64_t i = 0; i < y.count; i++)
                    assert_true(get_element(&y, i) ==
                                get_element(&x, (i / 5 / n * 12 + places[i / 5 % n]) * 5 + i % 5));
                assert_true(untouched_outside(&y));
                put(&call, "result", few.handle);
                fails_when_run(&call, "elements of the mask are true, but there is room for");
                double before[120];
                for (int64_t i = 0; i < 120; i++)
                    before[i] = get_element(&x, i);
                put(&puts, "self", x.handle);
                put(&puts, "indices_tensor_list", list);
                put(&puts, "arg3", v.handle);
                must(&puts);
                for (int64_t i = 0, k = 0; i < 120; i++) {
                    bool is = get_element(&mask, i / 5 % 12) != 0;
                    double want = is ? get_element(&v, one ? i % 5 : k++) : before[i];
                    assert_true(get_element(&x, i) == want);
                }
                assert_true(untouched_outside(&x));
                put(&call, "self", y.handle);
                refused(&call, "is a mask of shape [3,4], which is not that of self");
                assert_int_equal(aclDestroyTensorList(list), 0);
                mask.handle = all.handle = NULL;
                free_tensor(&x);
                free_tensor(&mask);
                free_tensor(&all);
                free_tensor(&y);
                free_tensor(&v);
                free_tensor(&few);
            }
}

/* A path without repeats and blanks is the labels. */
static bool spells(const int *path, int64_t length, int64_t blank, const int64_t *labels, int64_t n_labels) {
    int64_t at = 0;
    for (int64_t t = 0; t < length; t++) {
        if (path[t] == blank || (t > 0 && path[t] == path[t - 1]))
            continue;
        if (at == n_labels || labels[at++] != path[t])
            return false;
    }
    return at == n_labels;
}

enum { TIME = 5, BATCH = 4, CLASSES = 3 };

/* Sums over all paths; share[t][c]: of those that are at c at time t. */
static double all_paths(const double *log_probs, int64_t length, int64_t blank, const int64_t *labels, int64_t n_labels,
                        double share[TIME][CLASSES]) {
    int path[TIME];
    double all = 0;
    int64_t paths = (int64_t)pow(CLASSES, (double)length);
    memset(share, 0, TIME * sizeof share[0]);
    for (int64_t number = 0; number < paths; number++) {
        double p = 0;
        for (int64_t t = 0, rest = number; t < length; t++, rest /= CLASSES) {
            path[t] = (int)(rest % CLASSES);
            p += log_probs[t * CLASSES + path[t]];
        }
        if (!spells(path, length, blank, labels, n_labels))
            continue;
        all += exp(p);
        for (int64_t t = 0; t < length; t++)
            share[t][path[t]] += exp(p);
    }
    return all;
}

/* form: targets in one row, or one behind the other; the blank is the first class or the last. */
static void one_ctc(aclDataType type, int form) {
    static const int64_t lengths[BATCH] = {5, 4, 3, 2},
                         counts[BATCH] = {2, 3, 0, 3}; /* the last cannot be spelled: an infinite loss */
    const int64_t blank = form & 1 ? CLASSES - 1 : 0;
    const bool packed = form & 2, zero_infinity = form & 4;
    tensor probs = make_tensor(type, 3, (int64_t[]){TIME, BATCH, CLASSES}, STRIDED),
           targets = make_tensor(packed ? ACL_INT32 : ACL_INT64, packed ? 1 : 2,
                                 packed ? (int64_t[]){8} : (int64_t[]){BATCH, 3}, STRIDED),
           loss = make_tensor(type, 1, (int64_t[]){BATCH}, STRIDED),
           alpha = make_tensor(type, 3, (int64_t[]){BATCH, TIME, 8}, STRIDED),
           grad = any_tensor(type, 1, (int64_t[]){BATCH}, 0.5, 1), out = make_tensor(type, 3, probs.dims, TRANSPOSED);
    int64_t labels[BATCH][3] = {{0}}, at = 0;
    for (int64_t i = 0; i < TIME * BATCH; i++) {
        double x[CLASSES], sum = 0;
        for (int c = 0; c < CLASSES; c++)
            sum += exp(x[c] = random_between(-1, 1));
        for (int c = 0; c < CLASSES; c++)
            set_element(&probs, i * CLASSES + c, x[c] - log(sum));
    }
    for (int64_t i = 0; i < targets.count; i++)
        set_element(&targets, i, (double)blank); /* what nobody reads */
    for (int n = 0; n < BATCH; n++)
        for (int64_t i = 0; i < counts[n]; i++) {
            labels[n][i] = (blank + 1 + (n == 1 ? i % 2 : (int64_t)(random_bits() % 2))) % CLASSES;
            set_element(&targets, packed ? at++ : n * 3 + i, (double)labels[n][i]);
        }
    aclIntArray *inputs = aclCreateIntArray(lengths, BATCH), *outputs = aclCreateIntArray(counts, BATCH);
    arguments call = begin_call("CtcLoss"), back = begin_call("CtcLossBackward");
    put(&call, "log_probs", probs.handle);
    put(&call, "targets", targets.handle);
    put(&call, "input_lengths_list", inputs);
    put(&call, "target_lengths_list", outputs);
    put_integer(&call, "blank", blank);
    put(&call, "neg_log_likelihood", loss.handle);
    put(&call, "log_alpha", alpha.handle);
    must(&call);
    put(&back, "grad", grad.handle);
    put(&back, "log_probs", probs.handle);
    put(&back, "targets", targets.handle);
    put(&back, "input_lengths", inputs);
    put(&back, "target_lengths", outputs);
    put(&back, "neg_log_likelihood", loss.handle);
    put(&back, "log_alpha", alpha.handle);
    put_integer(&back, "blank", blank);
    put_integer(&back, "zero_infinity", zero_infinity);
    put(&back, "out", out.handle);
    must(&back);
    for (int64_t n = 0; n < BATCH; n++) {
        double rows[TIME * CLASSES], share[TIME][CLASSES];
        for (int64_t t = 0; t < TIME; t++)
            for (int64_t c = 0; c < CLASSES; c++)
                rows[t * CLASSES + c] = get_element(&probs, (t * BATCH + n) * CLASSES + c);
        double all = all_paths(rows, lengths[n], blank, labels[n], counts[n], share);
        assert_true(n != 3 || get_element(&loss, n) == INFINITY);
        if (n != 3)
            near("loss", &loss, n, -log(all), 1);
        for (int64_t t = 0; t < TIME; t++)
            for (int64_t c = 0; c < CLASSES; c++) {
                double want = get_element(&grad, n) * (exp(rows[t * CLASSES + c]) - share[t][c] / all);
                if (n != 3 || zero_infinity)
                    near("gradient", &out, (t * BATCH + n) * CLASSES + c, t < lengths[n] && n != 3 ? want : 0, 1);
            }
    }
    assert_true(untouched_outside(&out) && untouched_outside(&alpha) && untouched_outside(&loss));
    put_integer(&call, "blank", CLASSES);
    refused(&call, "must be one of the classes, 0 to 2");
    put_integer(&call, "blank", blank);
    set_element(&targets, 1, CLASSES);
    fails_when_run(&call, "a label of batch element 0 is none of the classes");
    put(&call, "log_alpha", probs.handle);
    refused(&call, "log_alpha");
    aclDestroyIntArray(inputs);
    aclDestroyIntArray(outputs);
    free_tensor(&probs);
    free_tensor(&targets);
    free_tensor(&loss);
    free_tensor(&alpha);
    free_tensor(&grad);
    free_tensor(&out);
}

static void ctc(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++)
        for (int form = 0; form < 8; form++)
            one_ctc(types[t], form);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(adam),
                                       cmocka_unit_test(sgd),
                                       cmocka_unit_test(masked_softmax),
                                       cmocka_unit_test(unfold_gradients),
                                       cmocka_unit_test(confusion_transposes),
                                       cmocka_unit_test(sequences_and_fills),
                                       cmocka_unit_test(scatter_lists),
                                       cmocka_unit_test(masks),
                                       cmocka_unit_test(ctc)};
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
