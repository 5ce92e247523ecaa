/* Scatters, advanced indexing, embeddings and counts against plain loops over doubles; indices that lie outside. */
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,   ACL_DOUBLE, ACL_INT8,   ACL_UINT8, ACL_INT16,
                                    ACL_INT32, ACL_INT64,   ACL_UINT16, ACL_UINT32, ACL_UINT64, ACL_BOOL};
enum { TYPES = sizeof types / sizeof types[0] };
static const aclDataType floats[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static tensor any_tensor(aclDataType type, int rank, const int64_t *dims) {
    return make_tensor(type, rank, dims, any_layout());
}

/* Small integers, exact in every type, also after a few sums and products. */
static void fill(tensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, (double)(random_bits() % 3 + (t->type == ACL_BOOL ? 0 : 1)));
}

/* Indices of [-size, size). */
static void fill_indices(tensor *t, int64_t size) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, (double)((int64_t)(random_bits() % (uint64_t)(2 * size)) - size));
}

static int64_t index_at(const tensor *t, int64_t i, int64_t size) {
    int64_t v = (int64_t)get_element(t, i);
    return v < 0 ? v + size : v;
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

/* Fails in the stream with this sentence; nothing of `unchanged` is written. */
static void fails_later(const char *name, const caller_value *values, const char *word, const tensor *unchanged) {
    const caller *op = find_caller(name);
    uint64_t size;
    aclOpExecutor *executor;
    aclrtStream stream;
    double before[2048];
    assert_true(unchanged->count <= 2048);
    for (int64_t i = 0; i < unchanged->count; i++)
        before[i] = get_element(unchanged, i);
    assert_int_equal(aclrtCreateStream(&stream), 0);
    if (op->prepare(values, &size, &executor))
        fail_msg("%s: %s", name, sentence());
    assert_int_equal(op->run(NULL, 0, executor, stream), 0);
    assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
    const char *text = sentence();
    if (!strstr(text, word))
        fail_msg("%s says %s", name, text);
    assert_int_equal(aclrtDestroyStream(stream), 0);
    for (int64_t i = 0; i < unchanged->count; i++)
        assert_true(before[i] == get_element(unchanged, i));
    assert_true(untouched_outside(unchanged));
}

static double *copy_of(const tensor *t) {
    double *x = malloc((size_t)(t->count + 1) * sizeof *x);
    for (int64_t i = 0; i < t->count; i++)
        x[i] = get_element(t, i);
    return x;
}

static void check(const char *name, const tensor *t, const double *want) {
    for (int64_t i = 0; i < t->count; i++)
        if (get_element(t, i) != want[i])
            fail_msg("%s type %d, element %lld: %g, but must be %g", name, t->type, (long long)i, get_element(t, i),
                     want[i]);
    assert_true(untouched_outside(t));
}

/* a op b in the type: halves round, integers wrap, bools stay bools. */
static double combine(aclDataType type, int reduction, double a, double b) {
    double v = reduction == 0                     ? b
               : reduction == 1 || reduction == 5 ? a + b
               : reduction == 2                   ? a * b
               : reduction == 3                   ? fmax(a, b)
                                                  : fmin(a, b);
    double range = type == ACL_INT8 || type == ACL_UINT8 ? 256 : 0;
    if (range)
        v = fmod(v, range);
    if (type == ACL_INT8 && v > 127)
        v -= 256;
    return round_to(type, v);
}

static void scatters(void **state) {
    (void)state;
    static const int64_t dims[] = {5, 40, 3}, some[] = {4, 30, 3}, big[] = {6, 41, 5};
    for (int t = 0; t < TYPES; t++)
        for (int dim = 0; dim < 3; dim++)
            for (int form = 0; form < 24; form++) { /* reduction, in place, scalar */
                int reduction = form % 6;
                bool inplace = form / 6 % 2, scalar = form >= 12, fresh = reduction && random_bits() % 2;
                if (reduction >= 3 && scalar)
                    continue;
                tensor self = any_tensor(types[t], 3, dims), source = any_tensor(types[t], 3, big),
                       index = any_tensor(random_bits() % 2 ? ACL_INT64 : ACL_INT32, 3, some),
                       out = any_tensor(types[t], 3, dims);
                fill(&self);
                fill(&source);
                fill_indices(&index, dims[dim]);
                float two = types[t] == ACL_BOOL ? 1 : 2;
                aclScalar *value = aclCreateScalar(&two, ACL_FLOAT);
                double *want = copy_of(&self);
                int *hits = calloc(600, sizeof *hits);
                for (int64_t i = 0; i < index.count; i++) {
                    int64_t at[] = {i / 90, i / 3 % 30, i % 3};
                    double b = scalar ? two : get_element(&source, at[0] * 205 + at[1] * 5 + at[2]);
                    at[dim] = index_at(&index, i, dims[dim]);
                    int64_t place = at[0] * 120 + at[1] * 3 + at[2];
                    bool first = !hits[place]++ && fresh && !scalar;
                    want[place] = combine(types[t], first ? 0 : reduction, want[place], b);
                }
                for (int64_t i = 0; i < self.count; i++)
                    if (reduction == 5 && hits[i] && !scalar) {
                        double mean = want[i] / (hits[i] + !fresh);
                        want[i] = round_to(types[t], is_float(types[t]) ? mean : floor(mean));
                    }
                tensor *to = inplace ? &self : &out;
                if (scalar)
                    must(inplace ? "InplaceScatterValue" : "ScatterValue",
                         (caller_value[]){T(self), I(dim), T(index), P(value), I(reduction), T(out)});
                else if (inplace)
                    must("InplaceScatterReduce",
                         (caller_value[]){T(self), I(dim), T(index), T(source), I(reduction), I(!fresh)});
                else if (fresh || reduction == 5)
                    must("ScatterReduce",
                         (caller_value[]){T(self), I(dim), T(index), T(source), I(reduction), I(!fresh), T(out)});
                else if (reduction == 1)
                    must("ScatterAdd", (caller_value[]){T(self), I(dim), T(index), T(source), T(out)});
                else
                    must("Scatter", (caller_value[]){T(self), I(dim), T(index), T(source), I(reduction), T(out)});
                check("scatter", to, want);
                set_element(&index, 77, (double)dims[dim]);
                fails_later("InplaceScatter", (caller_value[]){T(self), I(dim), T(index), T(source), I(0)},
                            "index: element 77 is", &self);
                set_element(&index, 77, -0x1p31);
                fails_later("InplaceScatterValue", (caller_value[]){T(self), I(dim), T(index), P(value), I(0)},
                            "is -2147483648, but must be -", &self);
                aclDestroyScalar(value);
                free(want);
                free(hits);
                free_tensor(&self);
                free_tensor(&source);
                free_tensor(&index);
                free_tensor(&out);
            }
}

/* One line as long as several tiles, in order: the last of equal indices stays. */
static void long_line(void **state) {
    (void)state;
    int64_t n = 5000, size = 700;
    tensor self = make_tensor(ACL_FLOAT, 1, &size, STRIDED), source = make_tensor(ACL_FLOAT, 1, &n, OFFSET),
           index = make_tensor(ACL_INT64, 1, &n, STRIDED);
    for (int64_t i = 0; i < size; i++)
        set_element(&self, i, -1);
    fill_indices(&index, size);
    for (int64_t i = 0; i < n; i++)
        set_element(&source, i, (double)i);
    double *want = copy_of(&self);
    for (int64_t i = 0; i < n; i++)
        want[index_at(&index, i, size)] = (double)i;
    must("InplaceScatter", (caller_value[]){T(self), I(0), T(index), T(source), I(0)});
    check("long line", &self, want);
    for (int64_t i = 0; i < size; i++)
        set_element(&self, i, -1);
    must("InplacePut", (caller_value[]){T(self), T(index), T(source), I(0)});
    check("put", &self, want);
    free(want);
    free_tensor(&self);
    free_tensor(&source);
    free_tensor(&index);
}

static void rows(void **state) {
    (void)state;
    static const int64_t dims[] = {4, 9, 6};
    for (int t = 0; t < TYPES; t++)
        for (int dim = 0; dim < 3; dim++)
            for (int form = 0; form < 5; form++) { /* add, add V2, copy, fill, fill in place */
                int64_t count = 11, taken[] = {4, 9, 6}, inner = dim == 0 ? 54 : dim == 1 ? 6 : 1, n = dims[dim];
                taken[dim] = count;
                tensor self = any_tensor(types[t], 3, dims), out = any_tensor(types[t], 3, dims),
                       source = any_tensor(types[t], 3, taken), index = any_tensor(ACL_INT32, 1, &count);
                fill(&self);
                fill(&source);
                fill_indices(&index, n);
                float two = types[t] == ACL_BOOL ? 1 : 2;
                aclScalar *value = aclCreateScalar(&two, ACL_FLOAT);
                double *want = copy_of(&self);
                for (int64_t k = 0; k < count; k++)
                    for (int64_t i = 0; i < self.count / n; i++) {
                        int64_t at = i / inner * inner, place = at * n + index_at(&index, k, n) * inner + i % inner;
                        double b = get_element(&source, at * count + k * inner + i % inner);
                        want[place] = form < 2 ? combine(types[t], 1, want[place], two * b) : form == 2 ? b : two;
                    }
                caller_value add[] = {T(self), I(dim), T(index), T(source), P(value), T(out)},
                             add2[] = {T(self), I(dim - 3), T(index), T(source), P(value), I(0), T(out)},
                             copy[] = {T(self), I(dim), T(index), T(source), T(out)},
                             set[] = {T(self), I(dim), T(index), P(value), T(out)};
                must(form == 0   ? "IndexAdd"
                     : form == 1 ? "IndexAddV2"
                     : form == 2 ? "IndexCopy"
                     : form == 3 ? "IndexFill"
                                 : "InplaceIndexFill",
                     form == 0   ? add
                     : form == 1 ? add2
                     : form == 2 ? copy
                                 : set);
                check("rows", form == 4 ? &self : &out, want);
                set_element(&index, 3, (double)-n - 1);
                fails_later("InplaceIndexFill", set, "index: element 3 is", &self);
                aclDestroyScalar(value);
                free(want);
                free_tensor(&self);
                free_tensor(&out);
                free_tensor(&source);
                free_tensor(&index);
            }
}

/* Which dims are indexed, and the shapes of the indices; "empty" stands for all of a dim. */
typedef struct advanced {
    bool indexed[3];
    int rank;
    int64_t dims[2];
    int out_rank;
    int64_t out[4];
    int front; /* dims of out before those of the indices */
} advanced;
static const advanced cases[] = {
    {{true, false, false}, 1, {7}, 3, {7, 8, 6}, 0},       {{false, true, true}, 2, {3, 2}, 3, {5, 3, 2}, 1},
    {{true, false, true}, 1, {4}, 2, {4, 8}, 0},           {{true, true, true}, 2, {5, 4}, 2, {5, 4}, 0},
    {{false, true, false}, 2, {2, 9}, 4, {5, 2, 9, 6}, 1}, {{false, false, true}, 0, {0}, 2, {5, 8}, 2},
    {{false, false, false}, 0, {0}, 3, {5, 8, 6}, 0},
};

static void advanced_indexing(void **state) {
    (void)state;
    static const int64_t dims[] = {5, 8, 6}, none = 0;
    for (int t = 0; t < TYPES; t++)
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            const advanced *a = &cases[c];
            tensor self = any_tensor(types[t], 3, dims), out = any_tensor(types[t], a->out_rank, a->out), index[3];
            const aclTensor *handles[3];
            fill(&self);
            fill(&out);
            for (int d = 0; d < 3; d++) {
                index[d] = a->indexed[d] ? any_tensor(d % 2 ? ACL_INT32 : ACL_INT64, a->rank, a->dims)
                                         : any_tensor(ACL_INT64, 1, &none);
                fill_indices(&index[d], dims[d]);
                handles[d] = index[d].handle;
            }
            aclTensorList *list = aclCreateTensorList(handles, 3);
            double *values = copy_of(&out), *want_self = copy_of(&self), *want_sum = copy_of(&self),
                   *want_out = copy_of(&out);
            int64_t places = 1;
            for (int r = 0; r < a->rank; r++)
                places *= a->dims[r];
            for (int64_t i = 0; i < out.count; i++) {
                int64_t rest = i, at[3] = {0}, place = 0, coordinates[4];
                for (int d = a->out_rank - 1; d >= 0; d--) {
                    coordinates[d] = rest % a->out[d];
                    rest /= a->out[d];
                }
                for (int r = 0; r < a->rank; r++)
                    place = place * a->dims[r] + coordinates[a->front + r];
                bool any = a->indexed[0] || a->indexed[1] || a->indexed[2];
                for (int d = 0, k = 0; d < 3; d++) {
                    if (k == a->front && any)
                        k += a->rank;
                    at[d] = a->indexed[d] ? index_at(&index[d], place, dims[d]) : coordinates[k++];
                }
                int64_t from = at[0] * 48 + at[1] * 6 + at[2];
                want_out[i] = get_element(&self, from);
                want_self[from] = values[i];
                want_sum[from] = combine(types[t], 1, want_sum[from], values[i]);
            }
            tensor values_tensor = any_tensor(types[t], a->out_rank, a->out), sum = any_tensor(types[t], 3, dims);
            for (int64_t i = 0; i < out.count; i++)
                set_element(&values_tensor, i, values[i]);
            for (int64_t i = 0; i < self.count; i++)
                set_element(&sum, i, get_element(&self, i));
            must("Index", (caller_value[]){T(self), P(list), T(out)});
            check("Index", &out, want_out);
            must("IndexPutImpl", (caller_value[]){T(self), P(list), T(values_tensor), I(0), I(0)});
            check("IndexPutImpl", &self, want_self);
            must("IndexPutImpl", (caller_value[]){T(sum), P(list), T(values_tensor), I(1), I(0)});
            check("IndexPutImpl accumulate", &sum, want_sum);
            if (a->indexed[2]) {
                set_element(&index[2], places - 1, 6);
                fails_later("IndexPutImpl", (caller_value[]){T(self), P(list), T(values_tensor), I(0), I(0)},
                            "is 6, but must be -6 to 5", &self);
                fails_later("Index", (caller_value[]){T(self), P(list), T(out)}, "is 6, but must be -6 to 5", &out);
            }
            aclDestroyTensorList(list);
            for (int d = 0; d < 3; d++) {
                index[d].handle = NULL;
                free_tensor(&index[d]);
            }
            free(values);
            free(want_self);
            free(want_sum);
            free(want_out);
            free_tensor(&self);
            free_tensor(&out);
            free_tensor(&sum);
            free_tensor(&values_tensor);
        }
}

static void broadcast_values(void **state) {
    (void)state;
    int64_t dims[] = {6, 4}, three = 3, one[] = {1, 4};
    tensor self = make_tensor(ACL_FLOAT, 2, dims, TRANSPOSED), index = make_tensor(ACL_INT64, 1, &three, CONTIGUOUS),
           value = make_tensor(ACL_FLOAT, 2, one, CONTIGUOUS), bad = make_tensor(ACL_FLOAT, 1, &three, CONTIGUOUS);
    const aclTensor *handles[] = {index.handle};
    aclTensorList *list = aclCreateTensorList(handles, 1);
    for (int64_t i = 0; i < 24; i++)
        set_element(&self, i, (double)i);
    for (int64_t i = 0; i < 3; i++)
        set_element(&index, i, (double)(2 * i));
    for (int64_t i = 0; i < 4; i++)
        set_element(&value, i, 100 + (double)i);
    must("IndexPutImpl", (caller_value[]){T(self), P(list), T(value), I(0), I(0)});
    for (int64_t i = 0; i < 24; i++)
        assert_true(get_element(&self, i) == (i / 4 % 2 ? (double)i : 100 + (double)(i % 4)));
    refused("IndexPutImpl", (caller_value[]){T(self), P(list), T(bad), I(0), I(0)}, "cannot be broadcast");
    refused("Index", (caller_value[]){T(self), P(list), T(value)}, "dimension 0 is 1, but must be 3");
    aclDestroyTensorList(list);
    index.handle = NULL;
    free_tensor(&self);
    free_tensor(&index);
    free_tensor(&value);
    free_tensor(&bad);
}

static void flat_and_nd(void **state) {
    (void)state;
    static const int64_t dims[] = {4, 5, 6}, where[] = {3, 4}, nd[] = {7, 2}, updates[] = {7, 6};
    for (int t = 0; t < TYPES; t++) {
        tensor self = any_tensor(types[t], 3, dims), index = any_tensor(ACL_INT64, 2, where),
               out = any_tensor(types[t], 2, where), places = any_tensor(ACL_INT32, 2, nd),
               rows_of = any_tensor(types[t], 2, updates);
        fill(&self);
        fill(&rows_of);
        fill_indices(&index, 120);
        double *want = copy_of(&self);
        must("Take", (caller_value[]){T(self), T(index), T(out)});
        for (int64_t i = 0; i < out.count; i++)
            assert_true(get_element(&out, i) == want[index_at(&index, i, 120)]);
        assert_true(untouched_outside(&out));
        fill(&out);
        for (int64_t i = 0; i < out.count; i++) {
            int64_t at = index_at(&index, i, 120);
            want[at] = combine(types[t], 1, want[at], get_element(&out, i));
        }
        must("InplacePut", (caller_value[]){T(self), T(index), T(out), I(1)});
        check("InplacePut", &self, want);
        for (int64_t i = 0; i < 7; i++) {
            set_element(&places, 2 * i, (double)(random_bits() % 4));
            set_element(&places, 2 * i + 1, (double)(random_bits() % 5));
            for (int64_t k = 0; k < 6; k++)
                want[(int64_t)get_element(&places, 2 * i) * 30 + (int64_t)get_element(&places, 2 * i + 1) * 6 + k] =
                    get_element(&rows_of, i * 6 + k);
        }
        must("ScatterNdUpdate", (caller_value[]){T(self), T(places), T(rows_of)});
        check("ScatterNdUpdate", &self, want);
        set_element(&places, 5, 5);
        fails_later("ScatterNdUpdate", (caller_value[]){T(self), T(places), T(rows_of)}, "is 5, but must be -5 to 4",
                    &self);
        set_element(&index, 0, 120);
        fails_later("InplacePut", (caller_value[]){T(self), T(index), T(out), I(0)}, "index: element 0 is 120", &self);
        free(want);
        free_tensor(&self);
        free_tensor(&index);
        free_tensor(&out);
        free_tensor(&places);
        free_tensor(&rows_of);
    }
}

static void cache_rows_and_batches(void **state) {
    (void)state;
    static const int64_t dims[] = {3, 2, 10, 4}, some[] = {3, 2, 3, 4}, in[] = {3, 5, 4}, at[] = {3, 2},
                         to[] = {3, 2, 4};
    int64_t three = 3;
    for (int t = 0; t < TYPES; t++) {
        tensor self = any_tensor(types[t], 4, dims), updates = any_tensor(types[t], 4, some),
               index = any_tensor(ACL_INT64, 1, &three), table = any_tensor(types[t], 3, in),
               chosen = any_tensor(ACL_INT32, 2, at), out = any_tensor(types[t], 3, to);
        fill(&self);
        fill(&updates);
        double *want = copy_of(&self);
        for (int64_t b = 0; b < 3; b++)
            set_element(&index, b, (double)(b * 3));
        for (int64_t i = 0; i < updates.count; i++)
            want[i / 24 * 80 + i / 12 % 2 * 40 + (i / 24 * 3 + i / 4 % 3) * 4 + i % 4] = get_element(&updates, i);
        must("InplaceScatterUpdate", (caller_value[]){T(self), T(index), T(updates), I(-2)});
        check("InplaceScatterUpdate", &self, want);
        set_element(&index, 1, 8);
        fails_later("InplaceScatterUpdate", (caller_value[]){T(self), T(index), T(updates), I(2)},
                    "indices: element 1 is 8, but must be 0 to 7", &self);
        fill(&table);
        fill_indices(&chosen, 5);
        must("GatherV3", (caller_value[]){T(table), I(1), T(chosen), I(1), I(0), T(out)});
        for (int64_t i = 0; i < out.count; i++)
            assert_true(get_element(&out, i) ==
                        get_element(&table, i / 8 * 20 + index_at(&chosen, i / 4, 5) * 4 + i % 4));
        assert_true(untouched_outside(&out));
        free(want);
        free_tensor(&self);
        free_tensor(&updates);
        free_tensor(&index);
        free_tensor(&table);
        free_tensor(&chosen);
        free_tensor(&out);
    }
}

static void embedding_gradients(void **state) {
    (void)state;
    static const int64_t at[] = {4, 9}, grads[] = {4, 9, 70}, dims[] = {12, 70};
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 4; form++) {
            int64_t padding = form & 1 ? 5 : -1;
            bool frequency = form & 2;
            tensor index = any_tensor(ACL_INT64, 2, at), grad = any_tensor(floats[t], 3, grads),
                   out = any_tensor(floats[t], 2, dims);
            fill(&grad);
            int counts[12] = {0};
            for (int64_t i = 0; i < 36; i++) {
                int64_t v = (int64_t)(random_bits() % 11);
                set_element(&index, i, (double)v);
                counts[v]++;
            }
            double want[840] = {0};
            for (int64_t i = 0; i < grad.count; i++) {
                int64_t v = (int64_t)get_element(&index, i / 70);
                double factor = frequency ? 1.0 / counts[v] : 1, *to = &want[v * 70 + i % 70];
                factor = floats[t] == ACL_DOUBLE ? factor : (double)(float)factor;
                double sum = *to + factor * get_element(&grad, i);
                *to = v == padding ? 0 : round_to(floats[t], sum);
            }
            must("EmbeddingDenseBackward",
                 (caller_value[]){T(grad), T(index), I(12), I(padding), I(frequency), T(out)});
            double unit = floats[t] == ACL_DOUBLE ? 1e-14 : floats[t] == ACL_FLOAT ? 1e-6 : 0.02;
            for (int64_t i = 0; i < out.count; i++)
                assert_true(fabs(get_element(&out, i) - want[i]) <= unit * (1 + fabs(want[i])));
            assert_true(untouched_outside(&out));
            set_element(&index, 35, -1);
            fails_later("EmbeddingDenseBackward",
                        (caller_value[]){T(grad), T(index), I(12), I(padding), I(frequency), T(out)},
                        "indices: element 35 is -1, but must be 0 to 11", &out);
            free_tensor(&index);
            free_tensor(&grad);
            free_tensor(&out);
        }
}

static void bags(void **state) {
    (void)state;
    static const int64_t dims[] = {10, 33};
    static const double begins[] = {0, 4, 4, 9, 20};
    int64_t n = 20;
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 12; form++) { /* mode, include_last, padding */
            int mode = form % 3;
            bool last = form / 3 % 2, weighted = mode == 0 && last;
            int64_t padding = form >= 6 ? 3 : -1, n_offsets = 4 + last, bags_count = 4, table[] = {4, 33};
            tensor weight = any_tensor(floats[t], 2, dims), index = any_tensor(ACL_INT64, 1, &n),
                   offsets = any_tensor(ACL_INT64, 1, &n_offsets), out = any_tensor(floats[t], 2, table),
                   of = any_tensor(ACL_INT64, 1, &n), size = any_tensor(ACL_INT32, 1, &bags_count),
                   largest = any_tensor(ACL_INT64, mode == 2 ? 2 : 1, table), sample = any_tensor(floats[t], 1, &n);
            fill(&weight);
            fill(&sample);
            for (int64_t i = 0; i < n; i++)
                set_element(&index, i, (double)(random_bits() % 10));
            for (int64_t b = 0; b < n_offsets; b++)
                set_element(&offsets, b, begins[b]);
            caller_value sample_or_none = {.pointer = weighted ? sample.handle : NULL};
            caller_value values[] = {T(weight), T(index),   T(offsets), I(0),  I(mode), I(0),      sample_or_none,
                                     I(last),   I(padding), T(out),     T(of), T(size), T(largest)};
            must("EmbeddingBag", values);
            for (int64_t i = 0; i < 4 * 33; i++) {
                double sum = 0;
                int64_t used = 0, best = 0;
                for (int64_t k = (int64_t)begins[i / 33]; k < (int64_t)begins[i / 33 + 1]; k++) {
                    int64_t row = (int64_t)get_element(&index, k);
                    assert_true(get_element(&of, k) == (row == padding ? -1 : (double)(i / 33)));
                    if (row == padding)
                        continue;
                    double x = get_element(&weight, row * 33 + i % 33) * (weighted ? get_element(&sample, k) : 1);
                    if (mode == 2 && (!used || x > sum)) {
                        sum = x;
                        best = row;
                    }
                    sum += mode == 2 ? 0 : x;
                    used++;
                }
                sum /= mode == 1 && used ? (double)used : 1;
                assert_true(get_element(&out, i) == round_to(floats[t], sum));
                assert_true(get_element(&size, i / 33) == (double)used);
                if (mode == 2)
                    assert_true(get_element(&largest, i) == (double)best);
            }
            assert_true(untouched_outside(&out) && untouched_outside(&of) && untouched_outside(&size));
            set_element(&offsets, 2, 21);
            fails_later("EmbeddingBag", values, "offsets: element 2 is 21", &out);
            free_tensor(&weight);
            free_tensor(&index);
            free_tensor(&offsets);
            free_tensor(&out);
            free_tensor(&of);
            free_tensor(&size);
            free_tensor(&largest);
            free_tensor(&sample);
        }
}

static void renormed_rows(void **state) {
    (void)state;
    static const int64_t dims[] = {6, 50};
    int64_t n = 4;
    for (int t = 0; t < 4; t++) {
        tensor self = any_tensor(floats[t], 2, dims), index = any_tensor(ACL_INT64, 1, &n);
        for (int64_t i = 0; i < self.count; i++)
            set_element(&self, i, random_between(-1, 1) * (i / 50 == 2 ? 0.01 : 1));
        static const double chosen[] = {1, 2, 1, 5};
        for (int64_t i = 0; i < n; i++)
            set_element(&index, i, chosen[i]);
        double *want = copy_of(&self);
        must("EmbeddingRenorm", (caller_value[]){T(self), T(index), R(1.5), R(2.0)});
        for (int64_t r = 0; r < 6; r++) {
            double norm = 0;
            for (int64_t i = 0; i < 50; i++)
                norm += want[r * 50 + i] * want[r * 50 + i];
            norm = sqrt(norm);
            double factor = (r == 1 || r == 5) && norm > 1.5 ? 1.5 / (norm + 1e-7) : 1;
            for (int64_t i = 0; i < 50; i++)
                assert_true(get_element(&self, r * 50 + i) == round_to(floats[t], want[r * 50 + i] * factor));
        }
        assert_true(untouched_outside(&self));
        free(want);
        free_tensor(&self);
        free_tensor(&index);
    }
}

static void counts(void **state) {
    (void)state;
    int64_t n = 2000, bins = 37, one = 1, dims[] = {4, 5}, hot[] = {4, 7, 5};
    for (int t = 0; t < TYPES; t++) {
        tensor in = any_tensor(types[t] == ACL_BOOL || is_float(types[t]) ? ACL_INT32 : types[t], 1, &n),
               weights = any_tensor(ACL_DOUBLE, 1, &n), out = any_tensor(ACL_INT64, 1, &bins),
               sums = any_tensor(ACL_FLOAT, 1, &bins);
        double want[37] = {0}, weighted[37] = {0};
        for (int64_t i = 0; i < n; i++) {
            int64_t v = (int64_t)(random_bits() % 30);
            set_element(&in, i, (double)v);
            set_element(&weights, i, (double)(i % 4));
            want[v]++;
            weighted[v] += (double)(i % 4);
        }
        must("Bincount", (caller_value[]){T(in), P(NULL), I(35), T(out)});
        check("Bincount", &out, want);
        must("Bincount", (caller_value[]){T(in), T(weights), I(0), T(sums)});
        check("Bincount", &sums, weighted);
        refused("Bincount", (caller_value[]){T(in), P(NULL), I(38), T(out)}, "at least minlength: 38");
        set_element(&in, 1999, 37);
        fails_later("Bincount", (caller_value[]){T(in), P(NULL), I(0), T(out)}, "element 1999 is 37", &out);
        free_tensor(&in);
        free_tensor(&weights);
        free_tensor(&out);
        free_tensor(&sums);

        tensor self = any_tensor(ACL_INT32, 2, dims), on = any_tensor(types[t], 1, &one),
               off = any_tensor(types[t], 0, dims), result = any_tensor(types[t], 3, hot);
        for (int64_t i = 0; i < self.count; i++)
            set_element(&self, i, (double)((int64_t)(random_bits() % 9) - 1));
        set_element(&on, 0, 1);
        set_element(&off, 0, types[t] == ACL_BOOL ? 0 : 3);
        must("OneHot", (caller_value[]){T(self), I(7), T(on), T(off), I(1), T(result)});
        for (int64_t i = 0; i < result.count; i++) {
            bool is_on = get_element(&self, i / 35 * 5 + i % 5) == (double)(i / 5 % 7);
            assert_true(get_element(&result, i) == (is_on ? 1 : get_element(&off, 0)));
        }
        assert_true(untouched_outside(&result));
        refused("OneHot", (caller_value[]){T(self), I(7), T(on), T(off), I(3), T(result)}, "axis is 3");
        free_tensor(&self);
        free_tensor(&on);
        free_tensor(&off);
        free_tensor(&result);
    }
}

static void histograms(void **state) {
    (void)state;
    int64_t dims[] = {30, 70}, bins = 16;
    for (int t = 0; t < 4; t++)
        for (int own = 0; own < 2; own++) {
            tensor in = any_tensor(floats[t], 2, dims), out = any_tensor(floats[t], 1, &bins);
            double low = -1, high = 1, least = INFINITY, most = -INFINITY, want[16] = {0};
            for (int64_t i = 0; i < in.count; i++) {
                set_element(&in, i, random_between(-1.5, 1.5));
                least = fmin(least, get_element(&in, i));
                most = fmax(most, get_element(&in, i));
            }
            if (own)
                low = high = 0;
            float limits[] = {(float)low, (float)high};
            aclScalar *a = aclCreateScalar(&limits[0], ACL_FLOAT), *b = aclCreateScalar(&limits[1], ACL_FLOAT);
            must("Histc", (caller_value[]){T(in), I(16), P(a), P(b), T(out)});
            low = own ? least : low;
            high = own ? most : high;
            for (int64_t i = 0; i < in.count; i++) {
                double x = get_element(&in, i);
                if (x < low || x > high)
                    continue;
                int bin = (int)((x - low) / (high - low) * 16);
                want[bin < 16 ? bin : 15]++;
            }
            for (int i = 0; i < 16; i++)
                want[i] = round_to(floats[t], want[i]);
            check("Histc", &out, want);
            set_element(&in, 0, NAN);
            if (own)
                fails_later("Histc", (caller_value[]){T(in), I(16), P(a), P(b), T(out)}, "must be finite", &out);
            aclDestroyScalar(a);
            aclDestroyScalar(b);
            free_tensor(&in);
            free_tensor(&out);
        }
}

/* Indices that are the tensor being written: what they become does not matter, but nothing else may be touched. */
static void index_is_the_output(void **state) {
    (void)state;
    int64_t n = 3000;
    tensor self = make_tensor(ACL_INT64, 1, &n, OFFSET), source = make_tensor(ACL_INT64, 1, &n, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++) {
        set_element(&self, i, (double)(n - 1 - i));
        set_element(&source, i, i % 2 ? 0x1p40 : -0x1p40);
    }
    must("InplaceScatter", (caller_value[]){T(self), I(0), T(self), T(source), I(0)});
    assert_true(untouched_outside(&self));
    free_tensor(&self);
    free_tensor(&source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scatters),
        cmocka_unit_test(long_line),
        cmocka_unit_test(rows),
        cmocka_unit_test(advanced_indexing),
        cmocka_unit_test(broadcast_values),
        cmocka_unit_test(flat_and_nd),
        cmocka_unit_test(cache_rows_and_batches),
        cmocka_unit_test(embedding_gradients),
        cmocka_unit_test(bags),
        cmocka_unit_test(renormed_rows),
        cmocka_unit_test(counts),
        cmocka_unit_test(histograms),
        cmocka_unit_test(index_is_the_output),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
