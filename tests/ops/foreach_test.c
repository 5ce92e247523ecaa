/* Every list operator against the operator it repeats, which has tests of its own; then what lists add. */
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 6 };
static const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

static layout any_layout(void) {
    return (layout)(random_bits() % LAYOUTS);
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

static const struct {
    int rank;
    int64_t dims[3];
} shapes[TENSORS] = {{1, {5}}, {2, {3, 40}}, {0, {0}}, {3, {2, 3, 4}}, {1, {0}}, {2, {60, 70}}};

typedef struct list {
    tensor t[TENSORS];
    aclTensorList *handle;
} list;

static list make_list(aclDataType type, double low, double high) {
    list l;
    const aclTensor *handles[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        l.t[i] = make_tensor(type, shapes[i].rank, shapes[i].dims, any_layout());
        for (int64_t k = 0; k < l.t[i].count; k++)
            set_element(&l.t[i], k, random_between(low, high));
        handles[i] = l.t[i].handle;
    }
    l.handle = aclCreateTensorList(handles, TENSORS);
    return l;
}

static void free_list(list *l) {
    aclDestroyTensorList(l->handle);
    for (int i = 0; i < TENSORS; i++) {
        l->t[i].handle = NULL;
        free_tensor(&l->t[i]);
    }
}

/* Tensors that the single operator gets: views of the list's. */
static aclTensor *view_of(const tensor *t) {
    return aclCreateTensor(t->dims, (uint64_t)t->rank, t->type, t->strides, t->offset, ACL_FORMAT_ND, &t->storage, 1,
                           t->data);
}

/* Same numbers as the single operator gives: lists 'l', scalars 's', device numbers 't', scalar lists 'S', 'T' one
 * device number for each tensor; in the order of the arguments. `single` takes them likewise, with scalars for numbers.
 */
static const struct {
    const char *name, *single, *arguments;
    double low, high;
} operators[] = {
    {"ForeachAbs", "Abs", "l", -9, 9},
    {"ForeachAcos", "Acos", "l", -1, 1},
    {"ForeachAsin", "Asin", "l", -1, 1},
    {"ForeachAtan", "Atan", "l", -9, 9},
    {"ForeachCos", "Cos", "l", -9, 9},
    {"ForeachCosh", "Cosh", "l", -2, 2},
    {"ForeachErf", "Erf", "l", -2, 2},
    {"ForeachErfc", "Erfc", "l", -2, 2},
    {"ForeachExp", "Exp", "l", -2, 2},
    {"ForeachExpm1", "Expm1", "l", -2, 2},
    {"ForeachLog", "Log", "l", 0.1, 9},
    {"ForeachLog10", "Log10", "l", 0.1, 9},
    {"ForeachLog1p", "Log1p", "l", 0.1, 9},
    {"ForeachLog2", "Log2", "l", 0.1, 9},
    {"ForeachNeg", "Neg", "l", -9, 9},
    {"ForeachReciprocal", "Reciprocal", "l", 0.1, 9},
    {"ForeachSigmoid", "Sigmoid", "l", -9, 9},
    {"ForeachSign", "Sign", "l", -9, 9},
    {"ForeachSin", "Sin", "l", -9, 9},
    {"ForeachSinh", "Sinh", "l", -2, 2},
    {"ForeachSqrt", "Sqrt", "l", 0, 9},
    {"ForeachTan", "Tan", "l", -1, 1},
    {"ForeachTanh", "Tanh", "l", -9, 9},
    {"ForeachAddList", "Add", "llt", -9, 9},
    {"ForeachAddListV2", "Add", "lls", -9, 9},
    {"ForeachSubList", "Sub", "llt", -9, 9},
    {"ForeachSubListV2", "Sub", "lls", -9, 9},
    {"ForeachAddScalar", "Adds", "lt1", -9, 9},
    {"ForeachAddScalarV2", "Adds", "ls1", -9, 9},
    {"ForeachAddScalarList", "Adds", "lS1", -9, 9},
    {"ForeachSubScalar", "Subs", "lt1", -9, 9},
    {"ForeachSubScalarV2", "Subs", "ls1", -9, 9},
    {"ForeachSubScalarList", "Subs", "lS1", -9, 9},
    {"ForeachMulScalar", "Muls", "lt", -9, 9},
    {"ForeachMulScalarV2", "Muls", "ls", -9, 9},
    {"ForeachMulScalarList", "Muls", "lS", -9, 9},
    {"ForeachMulList", "Mul", "ll", -9, 9},
    {"ForeachDivScalar", "Divs", "lt", -9, 9},
    {"ForeachDivScalarV2", "Divs", "ls", -9, 9},
    {"ForeachDivScalarList", "Divs", "lS", -9, 9},
    {"ForeachDivList", "Div", "ll", 0.5, 9},
    {"ForeachMaximumList", "Maximum", "ll", -9, 9},
    {"ForeachMaximumScalar", "ClampMin", "lt", -9, 9},
    {"ForeachMaximumScalarV2", "ClampMin", "ls", -9, 9},
    {"ForeachMaximumScalarList", "ClampMin", "lS", -9, 9},
    {"ForeachMinimumList", "Minimum", "ll", -9, 9},
    {"ForeachMinimumScalar", "ClampMax", "lt", -9, 9},
    {"ForeachMinimumScalarV2", "ClampMax", "ls", -9, 9},
    {"ForeachMinimumScalarList", "ClampMax", "lS", -9, 9},
    {"ForeachPowList", "PowTensorTensor", "ll", 0.5, 3},
    {"ForeachPowScalar", "PowTensorScalar", "lt", 0.5, 3},
    {"ForeachPowScalarV2", "PowTensorScalar", "ls", 0.5, 3},
    {"ForeachPowScalarList", "PowTensorScalar", "lS", 0.5, 3},
    {"ForeachPowScalarAndTensor", "PowScalarTensor", "sl", 0.5, 3},
    {"ForeachAddcdivScalar", "Addcdiv", "lllt", 0.5, 9},
    {"ForeachAddcdivScalarV2", "Addcdiv", "llls", 0.5, 9},
    {"ForeachAddcdivScalarList", "Addcdiv", "lllT", 0.5, 9},
    {"ForeachAddcmulScalar", "Addcmul", "lllt", -3, 3},
    {"ForeachAddcmulScalarV2", "Addcmul", "llls", -3, 3},
    {"ForeachAddcmulScalarList", "Addcmul", "lllT", -3, 3},
    {"ForeachLerpList", "Lerp", "lll", -3, 3},
    {"ForeachLerpScalar", "Lerps", "lls", -3, 3},
};

typedef struct numbers {
    float value[TENSORS];
    const aclScalar *one, *unit, *each[TENSORS];
    aclScalarList *list;
    tensor device, device_each;
} numbers;

static numbers make_numbers(void) {
    numbers n;
    int64_t one = 1, all = TENSORS;
    float unit = 1;
    n.device = make_tensor(ACL_FLOAT, 1, &one, CONTIGUOUS);
    n.device_each = make_tensor(ACL_FLOAT, 1, &all, STRIDED);
    for (int i = 0; i < TENSORS; i++) {
        n.value[i] = 0.25f * (float)(i + 3);
        n.each[i] = aclCreateScalar(&n.value[i], ACL_FLOAT);
        set_element(&n.device_each, i, n.value[i]);
    }
    n.one = aclCreateScalar(&n.value[0], ACL_FLOAT);
    n.unit = aclCreateScalar(&unit, ACL_FLOAT);
    set_element(&n.device, 0, n.value[0]);
    n.list = aclCreateScalarList(n.each, TENSORS);
    return n;
}

static void free_numbers(numbers *n) {
    aclDestroyScalarList(n->list);
    aclDestroyScalar(n->one);
    aclDestroyScalar(n->unit);
    free_tensor(&n->device);
    free_tensor(&n->device_each);
}

/* Entry i by the single operator. */
static void check_entry(int o, int i, const list *in, const numbers *n, const list *out) {
    const char *arguments = operators[o].arguments;
    tensor want = make_tensor(out->t[i].type, out->t[i].rank, out->t[i].dims, CONTIGUOUS);
    aclTensor *views[3] = {NULL};
    float value = n->value[i];
    aclScalar *own = aclCreateScalar(&value, ACL_FLOAT);
    caller_value single[8];
    int args = 0, lists = 0;
    for (int a = 0; arguments[a]; a++) {
        if (arguments[a] == 'l') {
            views[lists] = view_of(&in[lists].t[i]);
            single[args++].pointer = views[lists++];
        } else {
            single[args++].pointer = arguments[a] == '1'                          ? n->unit
                                     : arguments[a] == 'S' || arguments[a] == 'T' ? own
                                                                                  : n->one;
        }
    }
    single[args].pointer = want.handle;
    must(operators[o].single, single);
    double unit = want.type == ACL_FLOAT ? 0x1p-22 : want.type == ACL_FLOAT16 ? 0x1p-10 : 0x1p-7;
    for (int64_t k = 0; k < want.count; k++) {
        double a = get_element(&out->t[i], k), b = get_element(&want, k);
        if (!(fabs(a - b) <= unit * fabs(b)))
            fail_msg("%s, tensor %d, element %lld: %g, but must be %g", operators[o].name, i, (long long)k, a, b);
    }
    assert_true(untouched_outside(&out->t[i]));
    for (int v = 0; v < lists; v++)
        aclDestroyTensor(views[v]);
    aclDestroyScalar(own);
    free_tensor(&want);
}

static void every_list_operator(void **state) {
    (void)state;
    numbers n = make_numbers();
    for (size_t o = 0; o < sizeof operators / sizeof operators[0]; o++)
        for (int t = 0; t < 3; t++) {
            list in[3], out = make_list(types[t], 0, 0);
            caller_value values[8];
            int args = 0, lists = 0;
            for (const char *a = operators[o].arguments; *a; a++) {
                if (*a == 'l') {
                    in[lists] = make_list(types[t], operators[o].low, operators[o].high);
                    values[args++].pointer = in[lists++].handle;
                } else if (*a != '1') {
                    values[args++].pointer = *a == 's'   ? (const void *)n.one
                                             : *a == 'S' ? (const void *)n.list
                                             : *a == 't' ? (const void *)n.device.handle
                                                         : (const void *)n.device_each.handle;
                }
            }
            values[args].pointer = out.handle;
            must(operators[o].name, values);
            for (int i = 0; i < TENSORS; i++)
                check_entry((int)o, i, in, &n, &out);
            for (int k = 0; k < lists; k++)
                free_list(&in[k]);
            free_list(&out);
        }
    free_numbers(&n);
}

static void others(void **state) {
    (void)state;
    int64_t one = 1;
    for (int t = 0; t < 3; t++) {
        list a = make_list(types[t], -9, 9), b = make_list(types[t], 0, 0);
        must("ForeachCopy", (caller_value[]){P(a.handle), P(b.handle)});
        for (int i = 0; i < TENSORS; i++)
            for (int64_t k = 0; k < a.t[i].count; k++)
                assert_true(get_element(&a.t[i], k) == get_element(&b.t[i], k));
        static const struct {
            int mode;
            double (*fn)(double);
        } modes[] = {{1, rint}, {2, floor}, {3, ceil}, {5, trunc}};
        for (int m = 0; m < 4; m++) {
            tensor mode = make_tensor(ACL_INT8, 1, &one, CONTIGUOUS);
            set_element(&mode, 0, modes[m].mode);
            float number = (float)modes[m].mode;
            aclScalar *scalar = aclCreateScalar(&number, ACL_FLOAT);
            must("ForeachRoundOffNumber", (caller_value[]){P(a.handle), T(mode), P(b.handle)});
            for (int pass = 0; pass < 2; pass++) {
                for (int i = 0; i < TENSORS; i++)
                    for (int64_t k = 0; k < a.t[i].count; k++)
                        assert_true(get_element(&b.t[i], k) == modes[m].fn(get_element(&a.t[i], k)));
                must("ForeachRoundOffNumberV2", (caller_value[]){P(a.handle), P(scalar), P(b.handle)});
            }
            aclDestroyScalar(scalar);
            free_tensor(&mode);
        }
        must("ForeachZeroInplace", (caller_value[]){P(b.handle)});
        for (int i = 0; i < TENSORS; i++)
            for (int64_t k = 0; k < b.t[i].count; k++)
                assert_true(get_element(&b.t[i], k) == 0);
        free_list(&a);
        free_list(&b);
    }
}

static void norms(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        list a = make_list(types[t], -2, 2);
        tensor results[TENSORS];
        const aclTensor *handles[TENSORS];
        for (int i = 0; i < TENSORS; i++) {
            results[i] = make_tensor(types[t], 0, NULL, CONTIGUOUS);
            handles[i] = results[i].handle;
        }
        aclTensorList *out = aclCreateTensorList(handles, TENSORS);
        float two = 2;
        aclScalar *p = aclCreateScalar(&two, ACL_FLOAT);
        must("ForeachNorm", (caller_value[]){P(a.handle), P(p), P(out)});
        for (int i = 0; i < TENSORS; i++) {
            double sum = 0;
            for (int64_t k = 0; k < a.t[i].count; k++)
                sum += get_element(&a.t[i], k) * get_element(&a.t[i], k);
            double unit = types[t] == ACL_FLOAT ? 1e-6 : types[t] == ACL_FLOAT16 ? 1e-3 : 1e-2;
            assert_true(fabs(get_element(&results[i], 0) - sqrt(sum)) <= unit * sqrt(sum));
        }
        aclDestroyScalar(p);
        aclDestroyTensorList(out);
        for (int i = 0; i < TENSORS; i++) {
            results[i].handle = NULL;
            free_tensor(&results[i]);
        }
        free_list(&a);
    }
}

static void unscaling(void **state) {
    (void)state;
    int64_t one = 1;
    for (int t = 0; t < 3; t++)
        for (int bad = 0; bad < 3; bad++) {
            list a = make_list(types[t], -9, 9);
            tensor found = make_tensor(ACL_FLOAT, 1, &one, CONTIGUOUS),
                   scale = make_tensor(ACL_FLOAT, 1, &one, CONTIGUOUS);
            set_element(&found, 0, 0);
            set_element(&scale, 0, 0.25);
            if (bad)
                set_element(&a.t[5], 4100, bad == 1 ? INFINITY : NAN);
            double before[4200];
            for (int64_t k = 0; k < 4200; k++)
                before[k] = get_element(&a.t[5], k);
            must("ForeachNonFiniteCheckAndUnscale", (caller_value[]){P(a.handle), T(found), T(scale)});
            assert_true(get_element(&found, 0) == (bad != 0));
            for (int64_t k = 0; k < 4100; k++)
                assert_true(get_element(&a.t[5], k) == round_to(types[t], before[k] * 0.25));
            free_list(&a);
            free_tensor(&found);
            free_tensor(&scale);
        }
}

static void scales(void **state) {
    (void)state;
    static const struct {
        double scale, tracker, found, new_scale, new_tracker;
    } cases[] = {
        {64, 3, 0, 64, 4}, {64, 3, 1, 32, 0}, {64, 9, 0, 128, 0}, {0x1p127, 9, 0, 0x1p127, 0}, {64, 9, 2, 32, 0}};
    int64_t one = 1;
    tensor scale = make_tensor(ACL_FLOAT, 1, &one, CONTIGUOUS), tracker = make_tensor(ACL_INT32, 1, &one, CONTIGUOUS),
           found = make_tensor(ACL_FLOAT, 1, &one, CONTIGUOUS);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        set_element(&scale, 0, cases[c].scale);
        set_element(&tracker, 0, cases[c].tracker);
        set_element(&found, 0, cases[c].found);
        must("AmpUpdateScale",
             (caller_value[]){T(scale), T(tracker), T(found), R(2.0), R(0.5), I(10), T(scale), T(tracker)});
        assert_true(get_element(&scale, 0) == cases[c].new_scale && get_element(&tracker, 0) == cases[c].new_tracker);
    }
    refused("AmpUpdateScale",
            (caller_value[]){T(scale), T(scale), T(found), R(2.0), R(0.5), I(10), T(scale), T(tracker)},
            "growth_tracker has elements of type f32");
    free_tensor(&scale);
    free_tensor(&tracker);
    free_tensor(&found);
}

/* Lists of different lengths, tensors of different shapes, new addresses of a repeatable executor. */
static void lists_as_arguments(void **state) {
    (void)state;
    list a = make_list(ACL_FLOAT, -9, 9), b = make_list(ACL_FLOAT, -9, 9);
    aclTensor *few[] = {view_of(&a.t[0]), view_of(&a.t[1])}, *swapped[TENSORS];
    aclTensorList *shorter = aclCreateTensorList((const aclTensor *const *)few, 2);
    for (int i = 0; i < TENSORS; i++)
        swapped[i] = view_of(&a.t[TENSORS - 1 - i]);
    aclTensorList *other = aclCreateTensorList((const aclTensor *const *)swapped, TENSORS);
    refused("ForeachMulList", (caller_value[]){P(a.handle), P(shorter), P(b.handle)},
            "tensors2 has 2 entries, but must have as many as tensors1: 6");
    refused("ForeachMulList", (caller_value[]){P(a.handle), P(other), P(b.handle)}, "dimension");
    uint64_t size;
    aclOpExecutor *executor;
    const caller *op = find_caller("ForeachNeg");
    assert_int_equal(op->prepare((caller_value[]){P(a.handle), P(b.handle)}, &size, &executor), 0);
    assert_int_equal(aclSetAclOpExecutorRepeatable(executor), 0);
    float *memory;
    assert_int_equal(aclrtMalloc((void **)&memory, (size_t)a.t[5].storage * 4, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    for (int64_t k = 0; k < a.t[5].storage; k++)
        memory[k] = 77;
    assert_int_equal(aclSetDynamicInputTensorAddr(executor, 0, 5, NULL, memory), 0);
    assert_int_equal(op->run(NULL, 0, executor, NULL), 0);
    assert_int_equal(aclrtSynchronizeStream(NULL), 0);
    for (int64_t k = 0; k < b.t[5].count; k++)
        assert_true(get_element(&b.t[5], k) == -77);
    for (int64_t k = 0; k < b.t[1].count; k++)
        assert_true(get_element(&b.t[1], k) == -get_element(&a.t[1], k));
    assert_int_equal(aclDestroyAclOpExecutor(executor), 0);
    assert_int_equal(aclrtFree(memory), 0);
    aclDestroyTensorList(shorter);
    aclDestroyTensorList(other);
    free_list(&a);
    free_list(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_list_operator),
        cmocka_unit_test(others),
        cmocka_unit_test(norms),
        cmocka_unit_test(unscaling),
        cmocka_unit_test(lists_as_arguments),
        cmocka_unit_test(scales),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
