/* The objects operators take, executors, and malformed calls: codes and sentences, never a crash. */
#include "ops_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tensors_say_what_they_are(void **state) {
    (void)state;
    int64_t dims[] = {2, 3, 4}, strides[] = {24, 4, 1}, storage[] = {100}, *list = NULL, offset = -1;
    uint64_t count = 0;
    aclFormat format;
    aclDataType type;
    aclTensor *t = aclCreateTensor(dims, 3, ACL_BF16, strides, 7, ACL_FORMAT_NCL, storage, 1, NULL);
    assert_non_null(t);
    assert_int_equal(aclGetViewShape(t, &list, &count), 0);
    assert_int_equal(count, 3);
    assert_memory_equal(list, dims, sizeof dims);
    free(list);
    assert_int_equal(aclGetViewStrides(t, &list, &count), 0);
    assert_memory_equal(list, strides, sizeof strides);
    free(list);
    assert_int_equal(aclGetStorageShape(t, &list, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(list[0], 100);
    free(list);
    assert_int_equal(aclGetViewOffset(t, &offset), 0);
    assert_int_equal(offset, 7);
    assert_int_equal(aclGetFormat(t, &format), 0);
    assert_int_equal(format, ACL_FORMAT_NCL);
    assert_int_equal(aclGetDataType(t, &type), 0);
    assert_int_equal(type, ACL_BF16);
    assert_int_equal(aclInitTensor(t, dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL), 0);
    assert_int_equal(aclGetViewStrides(t, &list, &count), 0);
    assert_int_equal(list[0], 3);
    free(list);
    assert_int_equal(aclDestroyTensor(t), 0);
    assert_int_equal(aclDestroyTensor(t), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclDestroyTensor(NULL), ACLNN_ERR_PARAM_NULLPTR);
    assert_int_equal(aclGetViewShape(t, &list, &count), ACLNN_ERR_PARAM_INVALID);
}

static void hostile_descriptions_are_refused(void **state) {
    (void)state;
    int64_t dims[] = {2, -1}, huge[] = {INT64_MAX, INT64_MAX, 3}, fine[] = {4, 4}, bad_stride[] = {4, -1},
            long_stride[] = {INT64_MAX / 2, 1}, many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const char *const words[] = {"dimension 1 is -1",
                                        "2^62",
                                        "stride of dimension 1 is -1",
                                        "reaches past",
                                        "viewDimsNum is 9",
                                        "offset is -3",
                                        "dataType is 99",
                                        "format is 1234",
                                        "viewDims is NULL"};
    aclTensor *made[] = {aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL),
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         NULL};
    assert_non_null(strstr(sentence(), words[0]));
    int64_t ones[] = {1, 1, 1};
    made[1] = aclCreateTensor(huge, 3, ACL_FLOAT, ones, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[1]));
    made[2] = aclCreateTensor(fine, 2, ACL_FLOAT, bad_stride, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[2]));
    made[3] = aclCreateTensor(fine, 2, ACL_FLOAT, long_stride, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[3]));
    made[4] = aclCreateTensor(many, 9, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[4]));
    made[5] = aclCreateTensor(fine, 2, ACL_FLOAT, NULL, -3, ACL_FORMAT_ND, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[5]));
    made[6] = aclCreateTensor(fine, 2, (aclDataType)99, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[6]));
    made[7] = aclCreateTensor(fine, 2, ACL_FLOAT, NULL, 0, (aclFormat)1234, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[7]));
    made[8] = aclCreateTensor(NULL, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    assert_non_null(strstr(sentence(), words[8]));
    for (int i = 0; i < 9; i++)
        assert_null(made[i]);
    assert_null(aclCreateIntArray(NULL, 3));
    assert_null(aclCreateIntArray(fine, UINT64_MAX));
    assert_null(aclCreateScalar(NULL, ACL_FLOAT));
    assert_null(aclCreateScalar(fine, ACL_STRING));
}

static void lists_take_over(void **state) {
    (void)state;
    int64_t dims[] = {3};
    aclTensor *a = aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, NULL);
    aclTensor *b = aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, NULL);
    const aclTensor *both[] = {a, b}, *twice[] = {a, a}, *broken[] = {a, (aclTensor *)dims};
    assert_null(aclCreateTensorList(twice, 2));
    assert_null(aclCreateTensorList(broken, 2));
    assert_non_null(strstr(sentence(), "value"));
    aclTensorList *list = aclCreateTensorList(both, 2);
    assert_non_null(list);
    uint64_t size;
    assert_int_equal(aclGetTensorListSize(list, &size), 0);
    assert_int_equal(size, 2);
    assert_int_equal(aclDestroyTensor(a), ACLNN_ERR_PARAM_INVALID);
    assert_null(aclCreateTensorList(both, 1));
    assert_int_equal(aclDestroyTensorList(list), 0);
    assert_int_equal(aclDestroyTensor(a), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclDestroyTensorList(list), ACLNN_ERR_PARAM_INVALID);
    float one = 1;
    const aclScalar *scalars[] = {aclCreateScalar(&one, ACL_FLOAT), aclCreateScalar(&one, ACL_INT32)};
    aclScalarList *numbers = aclCreateScalarList(scalars, 2);
    assert_int_equal(aclDestroyScalar(scalars[0]), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclDestroyScalarList(numbers), 0);
}

/* Every operator with every object NULL, foreign, and of the wrong kind: a code and a sentence. */
static void every_operator_survives_nonsense(void **state) {
    (void)state;
    int64_t junk[32] = {0}, dims[] = {2, 2};
    aclIntArray *list = aclCreateIntArray(dims, 2);
    for (unsigned i = 0; i < caller_count(); i++) {
        const caller *op = caller_at(i);
        uint64_t size = 1;
        aclOpExecutor *executor = (aclOpExecutor *)junk;
        caller_value values[48];
        memset(values, 0, sizeof values);
        aclnnStatus status = op->prepare(values, &size, &executor);
        if (status != ACLNN_ERR_PARAM_NULLPTR)
            fail_msg("%s with NULLs: %d (%s)", op->name, status, sentence());
        assert_null(executor);
        assert_non_null(strstr(sentence(), "NULL"));
        assert_int_equal(op->prepare(values, NULL, &executor), ACLNN_ERR_PARAM_NULLPTR);
        assert_int_equal(op->prepare(values, &size, NULL), ACLNN_ERR_PARAM_NULLPTR);
        for (int k = 0; k < 48; k++)
            values[k].pointer = junk;
        assert_int_equal(op->prepare(values, &size, &executor), ACLNN_ERR_PARAM_INVALID);
        for (int k = 0; k < 48; k++)
            values[k].pointer = list;
        assert_int_equal(op->prepare(values, &size, &executor), ACLNN_ERR_PARAM_INVALID);
        assert_int_equal(op->run(NULL, 0, NULL, NULL), ACLNN_ERR_PARAM_NULLPTR);
        assert_int_equal(op->run(NULL, 0, (aclOpExecutor *)junk, NULL), ACLNN_ERR_PARAM_INVALID);
    }
    aclDestroyIntArray(list);
}

static aclOpExecutor *abs_executor(tensor *in, tensor *out) {
    aclOpExecutor *executor = NULL;
    uint64_t size = 99;
    caller_value values[] = {T(*in), T(*out)};
    assert_int_equal(find_caller("Abs")->prepare(values, &size, &executor), 0);
    assert_int_equal(size, 0);
    return executor;
}

static void executors_are_used_once_or_kept(void **state) {
    (void)state;
    int64_t dims[] = {8};
    tensor in = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS), out = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS);
    tensor other = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS);
    for (int i = 0; i < 8; i++) {
        set_element(&in, i, -i);
        set_element(&other, i, -10 * i);
    }
    const caller *op = find_caller("Abs");
    aclOpExecutor *executor = abs_executor(&in, &out);
    assert_int_equal(find_caller("Neg")->run(NULL, 0, executor, NULL), ACLNN_ERR_PARAM_INVALID);
    assert_non_null(strstr(sentence(), "aclnnAbs"));
    assert_int_equal(op->run(NULL, 0, executor, NULL), 0);
    assert_int_equal(op->run(NULL, 0, executor, NULL), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclDestroyAclOpExecutor(executor), ACLNN_ERR_PARAM_INVALID);
    executor = abs_executor(&in, &out);
    assert_int_equal(aclDestroyAclOpExecutor(executor), 0);
    assert_int_equal(op->run(NULL, 0, executor, NULL), ACLNN_ERR_PARAM_INVALID);

    executor = abs_executor(&in, &out);
    assert_int_equal(aclSetAclOpExecutorRepeatable(executor), 0);
    assert_int_equal(aclDestroyTensor(in.handle), 0);
    in.handle = NULL;
    for (int i = 0; i < 3; i++)
        assert_int_equal(op->run(NULL, 0, executor, NULL), 0);
    assert_int_equal(aclrtSynchronizeStream(NULL), 0);
    assert_true(get_element(&out, 5) == 5);
    assert_int_equal(aclSetInputTensorAddr(executor, 0, NULL, other.data), 0);
    assert_int_equal(aclSetInputTensorAddr(executor, 1, NULL, other.data), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclSetTensorAddr(executor, 2, NULL, other.data), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclSetTensorAddr(executor, 1, NULL, NULL), ACLNN_ERR_PARAM_NULLPTR);
    assert_int_equal(op->run(NULL, 0, executor, NULL), 0);
    assert_int_equal(aclrtSynchronizeStream(NULL), 0);
    assert_true(get_element(&out, 5) == 50);
    assert_int_equal(AclSetOutputTensorAddr(executor, 0, NULL, other.data), 0);
    assert_int_equal(aclDestroyAclOpExecutor(executor), 0);
    free_tensor(&in);
    free_tensor(&out);
    free_tensor(&other);
}

static void addresses_are_checked(void **state) {
    (void)state;
    int64_t dims[] = {8}, far_dims[] = {1 << 20};
    tensor in = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS), out = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS);
    float host[8] = {0};
    const caller *op = find_caller("Abs");
    static const struct {
        int which;
        const char *word;
    } cases[] = {{0, "host"}, {1, "NULL"}, {2, "past its end"}, {3, "multiple of 4"}};
    for (int i = 0; i < 4; i++) {
        void *data = i == 0 ? (void *)host : i == 1 ? NULL : i == 2 ? in.data : (char *)in.data + 2;
        aclTensor *bad = aclCreateTensor(i == 2 ? far_dims : dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, data);
        aclTensor *to =
            aclCreateTensor(i == 2 ? far_dims : dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, out.data);
        caller_value values[] = {P(bad), P(to)};
        uint64_t size;
        aclOpExecutor *executor;
        assert_int_equal(op->prepare(values, &size, &executor), 0);
        aclnnStatus status = op->run(NULL, 0, executor, NULL);
        assert_int_equal(status, i == 1 ? ACLNN_ERR_PARAM_NULLPTR : ACLNN_ERR_PARAM_INVALID);
        const char *text = sentence();
        if (!strstr(text, cases[i].word))
            fail_msg("case %d says: %s", i, text);
        aclDestroyTensor(bad);
        aclDestroyTensor(to);
    }
    free_tensor(&in);
    free_tensor(&out);
}

static void objects_may_go_before_the_stream_runs(void **state) {
    (void)state;
    int64_t dims[] = {3, 1000};
    tensor in = make_tensor(ACL_FLOAT, 2, dims, TRANSPOSED), out = make_tensor(ACL_FLOAT, 2, dims, CONTIGUOUS);
    for (int64_t i = 0; i < in.count; i++)
        set_element(&in, i, (double)i);
    aclrtStream stream;
    assert_int_equal(aclrtCreateStream(&stream), 0);
    for (int round = 0; round < 200; round++) {
        aclTensor *a =
            aclCreateTensor(in.dims, 2, ACL_FLOAT, in.strides, in.offset, ACL_FORMAT_ND, &in.storage, 1, in.data);
        aclTensor *b =
            aclCreateTensor(out.dims, 2, ACL_FLOAT, out.strides, out.offset, ACL_FORMAT_ND, &out.storage, 1, out.data);
        float factor = 2;
        aclScalar *s = aclCreateScalar(&factor, ACL_FLOAT);
        caller_value values[] = {P(a), P(s), P(b)};
        uint64_t size;
        aclOpExecutor *executor;
        const caller *op = find_caller("Muls");
        assert_int_equal(op->prepare(values, &size, &executor), 0);
        assert_int_equal(aclDestroyScalar(s), 0);
        assert_int_equal(op->run(NULL, 0, executor, stream), 0);
        assert_int_equal(aclDestroyTensor(a), 0);
        assert_int_equal(aclDestroyTensor(b), 0);
    }
    assert_int_equal(aclrtSynchronizeStream(stream), 0);
    for (int64_t i = 0; i < in.count; i++)
        assert_true(get_element(&out, i) == 2.0 * (double)i);
    assert_int_equal(aclrtDestroyStream(stream), 0);
    free_tensor(&in);
    free_tensor(&out);
}

/* op-plugin runs the second call on another thread; many streams run operators at once. */
static void *stream_worker(void *argument) {
    int64_t dims[] = {777};
    bool *ok = argument;
    *ok = aclrtSetDevice(0) == 0;
    aclrtStream stream;
    *ok = *ok && aclrtCreateStream(&stream) == 0;
    void *data;
    *ok = *ok && aclrtMalloc(&data, 777 * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) == 0;
    if (!*ok)
        return NULL;
    float *values = data, one = 1;
    for (int i = 0; i < 777; i++)
        values[i] = (float)i;
    for (int round = 0; round < 300; round++) {
        aclTensor *t = aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, data);
        aclScalar *s = aclCreateScalar(&one, ACL_FLOAT);
        caller_value args[] = {P(t), P(s), P(s)};
        uint64_t size;
        aclOpExecutor *executor;
        const caller *op = find_caller("InplaceAdds");
        *ok = *ok && op->prepare(args, &size, &executor) == 0 && op->run(NULL, 0, executor, stream) == 0;
        *ok = *ok && aclDestroyTensor(t) == 0 && aclDestroyScalar(s) == 0;
    }
    *ok = *ok && aclrtSynchronizeStream(stream) == 0;
    for (int i = 0; i < 777; i++)
        *ok = *ok && values[i] == (float)(i + 300);
    aclrtDestroyStream(stream);
    aclrtFree(data);
    return NULL;
}

static void many_streams_at_once(void **state) {
    (void)state;
    pthread_t threads[6];
    bool ok[6];
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, stream_worker, &ok[i]), 0);
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_true(ok[i]);
    }
}

static char self_path[512];

/* One line per operator on standard error; the environment is read once, so a second process is asked. */
static void the_log_names_operators(void **state) {
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "DOPPEL_LOG=ops '%s' --log 2>&1", self_path);
    FILE *child = popen(command, "r");
    assert_non_null(child);
    char line[1024];
    bool found = false;
    while (fgets(line, sizeof line, child))
        found |= strstr(line, "Abs(self f32[8], out => f32[8]) by f32 in place") != NULL;
    assert_int_equal(pclose(child), 0);
    assert_true(found);
}

static int run_one_operator(void) {
    int64_t dims[] = {8};
    test_begin();
    tensor in = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS), out = make_tensor(ACL_FLOAT, 1, dims, CONTIGUOUS);
    caller_value values[] = {T(in), T(out)};
    return call_op("Abs", values);
}

static void start_and_end(void **state) {
    (void)state;
    assert_int_equal(aclnnInit(NULL), 0);
    assert_int_equal(aclnnInit(NULL), 0);
    assert_int_equal(aclnnInit("/nonexistent/file.json"), ACLNN_ERR_PARAM_INVALID);
    assert_int_equal(aclnnFinalize(), 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--log") == 0)
        return run_one_operator();
    snprintf(self_path, sizeof self_path, "%s", argv[0]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_say_what_they_are),
        cmocka_unit_test(hostile_descriptions_are_refused),
        cmocka_unit_test(lists_take_over),
        cmocka_unit_test(every_operator_survives_nonsense),
        cmocka_unit_test(executors_are_used_once_or_kept),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(objects_may_go_before_the_stream_runs),
        cmocka_unit_test(many_streams_at_once),
        cmocka_unit_test(the_log_names_operators),
        cmocka_unit_test(start_and_end),
    };
    return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
