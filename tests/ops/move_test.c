/* Operators that move, choose and generate elements, against index arithmetic done here. */
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE, ACL_INT8, ACL_BOOL};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
}

static void fill(tensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        set_element(t, i, t->type == ACL_BOOL ? (double)(random_bits() & 1) : (double)(i % 100));
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

/* Coordinates of element `index`. */
static void at(const int64_t *dims, int rank, int64_t index, int64_t *out) {
    for (int d = rank - 1; d >= 0; d--) {
        out[d] = index % dims[d];
        index /= dims[d];
    }
}

static int64_t index_of(const int64_t *dims, int rank, const int64_t *coordinates) {
    int64_t index = 0;
    for (int d = 0; d < rank; d++)
        index = index * dims[d] + coordinates[d];
    return index;
}

/* out element = in element at map(coordinates), or `otherwise` where map says so. */
typedef bool (*map_fn)(const int64_t *to, int64_t *from, void *context);
static void check(const tensor *in, const tensor *out, map_fn map, void *context, double otherwise) {
    for (int64_t i = 0; i < out->count; i++) {
        int64_t to[8] = {0}, from[8] = {0};
        at(out->dims, out->rank, i, to);
        double want = map(to, from, context) ? get_element(in, index_of(in->dims, in->rank, from))
                                             : round_to(out->type, otherwise);
        if (get_element(out, i) != want)
            fail_msg("element %lld is %g, but must be %g", (long long)i, get_element(out, i), want);
    }
    assert_true(untouched_outside(out));
}

static bool permuted(const int64_t *to, int64_t *from, void *order) {
    for (int d = 0; d < 3; d++)
        from[((int64_t *)order)[d]] = to[d];
    return true;
}

static void permutations(void **state) {
    (void)state;
    static int64_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    int64_t dims[] = {7, 40, 33};
    for (int t = 0; t < 5; t++)
        for (int o = 0; o < 6; o++) {
            int64_t to[3] = {dims[orders[o][0]], dims[orders[o][1]], dims[orders[o][2]]};
            tensor in = make_tensor(types[t], 3, dims, any_layout()), out = make_tensor(types[t], 3, to, any_layout());
            fill(&in);
            aclIntArray *list = aclCreateIntArray(orders[o], 3);
            caller_value values[] = {T(in), P(list), T(out)};
            must("Permute", values);
            check(&in, &out, permuted, orders[o], 0);
            aclDestroyIntArray(list);
            int64_t twice[] = {0, 0, 1};
            list = aclCreateIntArray(twice, 3);
            values[1].pointer = list;
            refused("Permute", values, "twice");
            aclDestroyIntArray(list);
            free_tensor(&in);
            free_tensor(&out);
        }
}

static bool sliced(const int64_t *to, int64_t *from, void *context) {
    const int64_t *p = context;
    memcpy(from, to, 3 * sizeof *to);
    from[1] = p[0] + to[1] * p[1];
    return true;
}

static void slices(void **state) {
    (void)state;
    static const int64_t cases[][3] = {{0, 40, 1}, {3, 17, 2}, {-10, 1000, 3}, {20, 5, 1}, {-1000, 7, 1}};
    int64_t dims[] = {3, 40, 5};
    for (int c = 0; c < 5; c++) {
        int64_t start = cases[c][0], end = cases[c][1], step = cases[c][2];
        start = start < 0 ? (start + 40 < 0 ? 0 : start + 40) : start;
        end = end > 40 ? 40 : end;
        int64_t to[] = {3, end > start ? (end - start + step - 1) / step : 0, 5}, p[] = {start, step};
        tensor in = make_tensor(ACL_FLOAT16, 3, dims, any_layout()),
               out = make_tensor(ACL_FLOAT16, 3, to, any_layout());
        fill(&in);
        caller_value values[] = {T(in), I(-2), I(cases[c][0]), I(cases[c][1]), I(step), T(out)};
        must("Slice", values);
        check(&in, &out, sliced, p, 0);
        values[4].integer = 0;
        refused("Slice", values, "step is 0");
        values[4].integer = 1;
        values[1].integer = 3;
        refused("Slice", values, "dim is 3");
        free_tensor(&in);
        free_tensor(&out);
    }
}

static bool wrapped(const int64_t *to, int64_t *from, void *context) {
    const tensor *in = context;
    from[0] = to[1] % in->dims[0];
    from[1] = to[2] % in->dims[1];
    return true;
}
static bool interleaved(const int64_t *to, int64_t *from, void *context) {
    (void)context;
    from[0] = to[0];
    from[1] = to[1] / 3;
    return true;
}

static void repeats(void **state) {
    (void)state;
    int64_t dims[] = {4, 30}, times[] = {2, 3, 2}, to[] = {2, 12, 60}, tripled[] = {4, 90};
    for (int t = 0; t < 5; t++) {
        tensor in = make_tensor(types[t], 2, dims, any_layout()), out = make_tensor(types[t], 3, to, any_layout()),
               longer = make_tensor(types[t], 2, tripled, any_layout());
        fill(&in);
        aclIntArray *list = aclCreateIntArray(times, 3);
        caller_value values[] = {T(in), P(list), T(out)}, each[] = {T(in), I(3), I(-1), I(90), T(longer)};
        must("Repeat", values);
        check(&in, &out, wrapped, &in, 0);
        must("RepeatInterleaveIntWithDim", each);
        check(&in, &longer, interleaved, NULL, 0);
        aclDestroyIntArray(list);
        times[0] = -1;
        list = aclCreateIntArray(times, 3);
        times[0] = 2;
        values[1].pointer = list;
        refused("Repeat", values, "repeats[0] is -1");
        aclDestroyIntArray(list);
        free_tensor(&in);
        free_tensor(&out);
        free_tensor(&longer);
    }
}

static bool flipped(const int64_t *to, int64_t *from, void *context) {
    const tensor *in = context;
    from[0] = in->dims[0] - 1 - to[0];
    from[1] = to[1];
    from[2] = in->dims[2] - 1 - to[2];
    return true;
}
static bool rolled(const int64_t *to, int64_t *from, void *context) {
    const tensor *in = context;
    from[0] = (to[0] - 2 + 10 * in->dims[0]) % in->dims[0];
    from[1] = to[1];
    from[2] = (to[2] + 5 + 10 * in->dims[2]) % in->dims[2];
    return true;
}

static void flips_and_rolls(void **state) {
    (void)state;
    int64_t dims[] = {4, 3, 21}, list[] = {0, -1}, shifts[] = {2, -5};
    for (int t = 0; t < 5; t++) {
        tensor in = make_tensor(types[t], 3, dims, any_layout()), out = make_tensor(types[t], 3, dims, any_layout());
        fill(&in);
        aclIntArray *which = aclCreateIntArray(list, 2), *by = aclCreateIntArray(shifts, 2);
        caller_value values[] = {T(in), P(which), T(out)}, roll[] = {T(in), P(by), P(which), T(out)};
        must("Flip", values);
        check(&in, &out, flipped, &in, 0);
        must("Roll", roll);
        check(&in, &out, rolled, &in, 0);
        aclDestroyIntArray(which);
        aclDestroyIntArray(by);
        free_tensor(&in);
        free_tensor(&out);
    }
}

typedef struct padded {
    const tensor *in;
    int how; /* 0 constant, 1 reflect, 2 replicate */
    int64_t before[3];
} padded;

static bool unpadded(const int64_t *to, int64_t *from, void *context) {
    const padded *p = context;
    for (int d = 0; d < p->in->rank; d++) {
        int64_t i = to[d] - p->before[d], n = p->in->dims[d];
        if (p->how == 0 && (i < 0 || i >= n))
            return false;
        if (p->how == 1)
            i = i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
        if (p->how == 2)
            i = i < 0 ? 0 : i >= n ? n - 1 : i;
        from[d] = i;
    }
    return true;
}

static void pads(void **state) {
    (void)state;
    static const char *const names[] = {"ConstantPadNd", "ReflectionPad2d", "ReplicationPad2d"};
    int64_t dims[] = {3, 8, 9};
    static const int64_t cases[][4] = {{2, 3, 1, 4}, {0, 0, 0, 0}, {5, 0, 0, 7}, {-2, 3, 1, -4}};
    float seven = 7;
    aclScalar *value = aclCreateScalar(&seven, ACL_FLOAT);
    for (int t = 0; t < 5; t++)
        for (int how = 0; how < 3; how++)
            for (int c = 0; c < 4; c++) {
                int64_t to[] = {3, 8 + cases[c][2] + cases[c][3], 9 + cases[c][0] + cases[c][1]};
                tensor in = make_tensor(types[t], 3, dims, any_layout()),
                       out = make_tensor(types[t], 3, to, any_layout());
                fill(&in);
                aclIntArray *list = aclCreateIntArray(cases[c], 4);
                caller_value constant[] = {T(in), P(list), P(value), T(out)}, other[] = {T(in), P(list), T(out)};
                must(names[how], how ? other : constant);
                padded p = {&in, how, {0, cases[c][2], cases[c][0]}};
                check(&in, &out, unpadded, &p, 7);
                aclDestroyIntArray(list);
                free_tensor(&in);
                free_tensor(&out);
            }
    aclDestroyScalar(value);
}

static void joins_and_splits(void **state) {
    (void)state;
    int64_t sizes[] = {3, 0, 5}, all[] = {4, 8, 6}, stacked[] = {4, 3, 5};
    for (int t = 0; t < 5; t++) {
        tensor part[3], out = make_tensor(types[t], 3, all, any_layout());
        const aclTensor *handles[3];
        for (int i = 0; i < 3; i++) {
            int64_t dims[] = {4, sizes[i], 6};
            part[i] = make_tensor(types[t], 3, dims, any_layout());
            fill(&part[i]);
            handles[i] = part[i].handle;
        }
        aclTensorList *list = aclCreateTensorList(handles, 3);
        caller_value values[] = {P(list), I(1), T(out)};
        must("Cat", values);
        for (int64_t i = 0; i < out.count; i++) {
            int64_t to[3];
            at(all, 3, i, to);
            int from = to[1] < 3 ? 0 : 2;
            to[1] -= from ? 3 : 0;
            assert_true(get_element(&out, i) == get_element(&part[from], index_of(part[from].dims, 3, to)));
        }
        assert_true(untouched_outside(&out));
        for (int64_t i = 0; i < out.count; i++)
            set_element(&out, i, get_element(&out, i) == 0 ? 1 : 0);
        aclIntArray *parts = aclCreateIntArray(sizes, 3);
        caller_value back[] = {T(out), P(parts), I(1), P(list)};
        must("SplitWithSize", back);
        for (int from = 0; from < 3; from++)
            for (int64_t i = 0; i < part[from].count; i++) {
                int64_t to[3];
                at(part[from].dims, 3, i, to);
                to[1] += from ? 3 : 0;
                assert_true(get_element(&part[from], i) == get_element(&out, index_of(all, 3, to)));
            }
        aclDestroyIntArray(parts);
        assert_int_equal(aclDestroyTensorList(list), 0);
        for (int i = 0; i < 3; i++) {
            part[i].handle = NULL;
            free_tensor(&part[i]);
        }
        tensor line[3], pile = make_tensor(types[t], 3, stacked, any_layout());
        int64_t flat[] = {4, 5};
        for (int i = 0; i < 3; i++) {
            line[i] = make_tensor(types[t], 2, flat, any_layout());
            fill(&line[i]);
            handles[i] = line[i].handle;
        }
        list = aclCreateTensorList(handles, 3);
        caller_value stack[] = {P(list), I(-2), T(pile)};
        must("Stack", stack);
        for (int64_t i = 0; i < pile.count; i++)
            assert_true(get_element(&pile, i) == get_element(&line[i / 5 % 3], i / 15 * 5 + i % 5));
        refused("Cat", (caller_value[]){P(list), I(0), T(pile)}, "dimension");
        aclDestroyTensorList(list);
        for (int i = 0; i < 3; i++) {
            line[i].handle = NULL;
            free_tensor(&line[i]);
        }
        free_tensor(&pile);
        free_tensor(&out);
    }
}

static void triangles(void **state) {
    (void)state;
    int64_t dims[] = {2, 9, 7};
    for (int t = 0; t < 5; t++)
        for (int64_t diagonal = -10; diagonal <= 10; diagonal += 2)
            for (int upper = 0; upper < 2; upper++)
                for (int inplace = 0; inplace < 2; inplace++) {
                    tensor in = make_tensor(types[t], 3, dims, any_layout()),
                           out = make_tensor(types[t], 3, dims, any_layout());
                    fill(&in);
                    double before[126];
                    for (int i = 0; i < 126; i++)
                        before[i] = get_element(&in, i);
                    caller_value values[] = {T(in), I(diagonal), T(out)};
                    must(inplace ? (upper ? "InplaceTriu" : "InplaceTril") : (upper ? "Triu" : "Tril"), values);
                    for (int i = 0; i < 126; i++) {
                        int r = i / 7 % 9, c = i % 7;
                        double want = (upper ? c - r >= diagonal : c - r <= diagonal) ? before[i] : 0;
                        assert_true(get_element(inplace ? &in : &out, i) == want);
                    }
                    free_tensor(&in);
                    free_tensor(&out);
                }
}

/* Sides that are no multiples of the blocks that transposed copies go by. */
static void permutes_of_all_widths(void **state) {
    (void)state;
    static const aclDataType widths[] = {ACL_INT8, ACL_FLOAT16, ACL_FLOAT, ACL_INT64};
    static const int64_t orders[][3] = {{2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}};
    int64_t dims[] = {37, 70, 67};
    for (size_t t = 0; t < sizeof widths / sizeof widths[0]; t++)
        for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
            int64_t to_dims[3];
            for (int d = 0; d < 3; d++)
                to_dims[d] = dims[orders[o][d]];
            layout how = (layout)(random_bits() % LAYOUTS);
            tensor in = make_tensor(widths[t], 3, dims, how), out = make_tensor(widths[t], 3, to_dims, CONTIGUOUS);
            for (int64_t i = 0; i < in.count; i++)
                set_element(&in, i, (double)(i * 31 % 127));
            aclIntArray *order = aclCreateIntArray(orders[o], 3);
            caller_value values[] = {T(in), P(order), T(out)};
            must("Permute", values);
            for (int64_t i = 0; i < out.count; i++) {
                int64_t at[3], to[] = {i / to_dims[2] / to_dims[1], i / to_dims[2] % to_dims[1], i % to_dims[2]};
                for (int d = 0; d < 3; d++)
                    at[orders[o][d]] = to[d];
                int64_t from = (at[0] * dims[1] + at[1]) * dims[2] + at[2];
                if (get_element(&out, i) != get_element(&in, from))
                    fail_msg("type %d, order %zu: element %lld", widths[t], o, (long long)i);
            }
            assert_true(untouched_outside(&out));
            aclDestroyIntArray(order);
            free_tensor(&in);
            free_tensor(&out);
        }
}

static void sequences(void **state) {
    (void)state;
    float start = 1, end = 10, step = 0.25f;
    int64_t n = 36, five = 5, square[] = {4, 6};
    aclScalar *a = aclCreateScalar(&start, ACL_FLOAT), *b = aclCreateScalar(&end, ACL_FLOAT),
              *c = aclCreateScalar(&step, ACL_FLOAT);
    tensor out = make_tensor(ACL_FLOAT16, 1, &n, STRIDED), line = make_tensor(ACL_FLOAT, 1, &five, CONTIGUOUS),
           one = make_tensor(ACL_INT32, 2, square, TRANSPOSED);
    caller_value values[] = {P(a), P(b), P(c), T(out)};
    must("Arange", values);
    for (int i = 0; i < 36; i++)
        assert_true(get_element(&out, i) == 1 + 0.25 * i);
    values[3].pointer = line.handle;
    refused("Arange", values, "out has 5 elements [5], but must have 36");
    float third = 0.2f, until = 0.6f; /* 3 in float, a little more in double */
    int64_t deep[] = {1, 1, 3};
    aclScalar *zero = aclCreateScalar(&(float){0}, ACL_FLOAT), *to = aclCreateScalar(&until, ACL_FLOAT),
              *by = aclCreateScalar(&third, ACL_FLOAT);
    tensor shaped = make_tensor(ACL_FLOAT, 3, deep, STRIDED);
    caller_value fractions[] = {P(zero), P(to), P(by), T(shaped)};
    must("Arange", fractions);
    assert_true(get_element(&shaped, 2) == (double)(float)(2 * (double)third));
    aclDestroyScalar(zero);
    aclDestroyScalar(to);
    aclDestroyScalar(by);
    free_tensor(&shaped);
    caller_value space[] = {P(a), P(b), I(5), T(line)};
    must("Linspace", space);
    assert_true(get_element(&line, 0) == 1 && get_element(&line, 2) == 5.5 && get_element(&line, 4) == 10);
    caller_value unit[] = {I(4), I(6), T(one)};
    must("Eye", unit);
    for (int i = 0; i < 24; i++)
        assert_true(get_element(&one, i) == (i / 6 == i % 6));
    aclDestroyScalar(a);
    aclDestroyScalar(b);
    aclDestroyScalar(c);
    free_tensor(&out);
    free_tensor(&line);
    free_tensor(&one);
}

static void chosen_by_index(void **state) {
    (void)state;
    static const aclDataType index_types[] = {ACL_INT64, ACL_INT32};
    int64_t dims[] = {3, 11, 20}, where[] = {2, 7}, to[] = {3, 2, 7, 20}, flat[] = {14}, taken[] = {3, 14, 20};
    for (int t = 0; t < 5; t++)
        for (int k = 0; k < 2; k++) {
            tensor in = make_tensor(types[t], 3, dims, any_layout()), out = make_tensor(types[t], 4, to, any_layout()),
                   index = make_tensor(index_types[k], 2, where, any_layout()),
                   line = make_tensor(index_types[k], 1, flat, any_layout()),
                   source = make_tensor(types[t], 3, taken, any_layout());
            fill(&in);
            for (int i = 0; i < 14; i++) {
                int64_t v = (int64_t)(random_bits() % 22) - 11;
                set_element(&index, i, (double)v);
                set_element(&line, i, (double)((i * 3) % 11));
            }
            caller_value values[] = {T(in), I(1), T(index), T(out)};
            must("GatherV2", values);
            for (int64_t i = 0; i < out.count; i++) {
                int64_t v = (int64_t)get_element(&index, i / 20 % 14), from[] = {i / 280, v < 0 ? v + 11 : v, i % 20};
                assert_true(get_element(&out, i) == get_element(&in, index_of(dims, 3, from)));
            }
            assert_true(untouched_outside(&out));
            caller_value select[] = {T(in), I(-2), T(line), T(source)};
            must("IndexSelect", select);
            for (int64_t i = 0; i < source.count; i++) {
                int64_t from[] = {i / 280, (int64_t)get_element(&line, i / 20 % 14), i % 20};
                assert_true(get_element(&source, i) == get_element(&in, index_of(dims, 3, from)));
            }
            fill(&source);
            caller_value copy[] = {T(in), I(1), T(line), T(source)};
            must("InplaceIndexCopy", copy);
            for (int64_t i = 0; i < in.count; i++) {
                int64_t row = i / 20 % 11, from[] = {i / 220, -1, i % 20};
                for (int p = 0; p < 14; p++)
                    if ((int64_t)get_element(&line, p) == row)
                        from[1] = p;
                assert_true(get_element(&in, i) == get_element(&source, index_of(taken, 3, from)));
            }
            tensor *all[] = {&in, &out, &index, &line, &source};
            for (int i = 0; i < 5; i++)
                free_tensor(all[i]);
        }
}

static void gathers_and_fills(void **state) {
    (void)state;
    int64_t dims[] = {5, 9}, smaller[] = {4, 6}, list[] = {0, -1, 3};
    float two = 2;
    tensor in = make_tensor(ACL_FLOAT16, 2, dims, STRIDED), out = make_tensor(ACL_FLOAT16, 2, smaller, TRANSPOSED),
           index = make_tensor(ACL_INT64, 2, smaller, STRIDED);
    fill(&in);
    for (int i = 0; i < 24; i++)
        set_element(&index, i, (i * 7) % 9);
    caller_value values[] = {T(in), I(1), T(index), T(out)};
    must("Gather", values);
    for (int i = 0; i < 24; i++)
        assert_true(get_element(&out, i) == get_element(&in, i / 6 * 9 + (i * 7) % 9));
    aclIntArray *rows = aclCreateIntArray(list, 3);
    aclScalar *value = aclCreateScalar(&two, ACL_FLOAT);
    caller_value fills[] = {T(in), I(1), P(rows), P(value)};
    must("InplaceIndexFillTensor", fills);
    for (int i = 0; i < 45; i++)
        assert_true(get_element(&in, i) == (i % 9 == 0 || i % 9 == 8 || i % 9 == 3 ? 2 : i));
    aclDestroyIntArray(rows);
    aclDestroyScalar(value);
    /* an index outside fails the stream, with a sentence */
    set_element(&index, 5, 9);
    aclrtStream stream;
    assert_int_equal(aclrtCreateStream(&stream), 0);
    const caller *op = find_caller("Gather");
    uint64_t size;
    aclOpExecutor *executor;
    assert_int_equal(op->prepare(values, &size, &executor), 0);
    assert_int_equal(op->run(NULL, 0, executor, stream), 0);
    assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
    assert_non_null(strstr(sentence(), "element 5 is 9"));
    aclrtDestroyStream(stream);
    free_tensor(&in);
    free_tensor(&out);
    free_tensor(&index);
}

static void channel_shuffle(void **state) {
    (void)state;
    int64_t dims[] = {2, 12, 3, 5};
    for (int rank = 3; rank <= 4; rank++) {
        tensor x = make_tensor(ACL_INT16, rank, dims, STRIDED), y = make_tensor(ACL_INT16, rank, dims, TRANSPOSED);
        for (int64_t i = 0; i < x.count; i++)
            set_element(&x, i, (double)i);
        caller_value values[] = {T(x), I(3), T(y)};
        if (call_op("ChannelShuffle", values))
            fail_msg("%s", sentence());
        int64_t space = rank == 3 ? 3 : 15;
        for (int64_t i = 0; i < y.count; i++) {
            int64_t c = i / space % 12, from = c % 3 * 4 + c / 3;
            assert_true(get_element(&y, i) == (double)(i + (from - c) * space));
        }
        values[1].integer = 5;
        assert_int_equal(call_op("ChannelShuffle", values), ACLNN_ERR_PARAM_INVALID);
        assert_non_null(strstr(sentence(), "groups is 5"));
        free_tensor(&x);
        free_tensor(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channel_shuffle),  cmocka_unit_test(permutations),
        cmocka_unit_test(slices),           cmocka_unit_test(repeats),
        cmocka_unit_test(flips_and_rolls),  cmocka_unit_test(pads),
        cmocka_unit_test(joins_and_splits), cmocka_unit_test(triangles),
        cmocka_unit_test(sequences),        cmocka_unit_test(permutes_of_all_widths),
        cmocka_unit_test(chosen_by_index),  cmocka_unit_test(gathers_and_fills),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
