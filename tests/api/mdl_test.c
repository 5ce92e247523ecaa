/* Models: compiled by dp_compile_model, loaded and run through aclmdl. */
#include "child.h"

#include <pthread.h>

#include "doppel/compile.h"
#include "graph/onnx_make.h"

enum { ROWS = 3, ELEMENTS = 12, BYTES = ELEMENTS * 4 };
static char onnx[64], om[64];

/* y = x * b + x, z = whether y is above x */
static void write_model(void) {
    static const int64_t dims[] = {-1, 4}, four[] = {4};
    static const float b[4] = {2, -1, .5f, 0};
    size_t bytes;
    maker *m = make_begin(17);
    make_input(m, "x", 1, 2, dims);
    make_constant(m, "b", 1, 1, four, b, sizeof b);
    make_node(m, "Mul", "x b", "xb");
    make_node(m, "Add", "xb x", "y");
    make_node(m, "Greater", "y x", "z");
    make_output(m, "y");
    make_output(m, "z");
    void *file = make_end(m, &bytes);
    snprintf(onnx, sizeof onnx, "/tmp/doppel_mdl_%d.onnx", (int)getpid());
    snprintf(om, sizeof om, "/tmp/doppel_mdl_%d.om", (int)getpid());
    FILE *out = fopen(onnx, "wb");
    CHECK(out && fwrite(file, 1, bytes, out) == bytes && fclose(out) == 0);
    free(file);
}

static bool compile(const char *shape, char *message, size_t bytes) {
    return dp_compile_model(&(dp_compile_options){.model = onnx, .output = om, .input_shape = shape,
                                                  .soc_version = "Ascend910B3"},
                            message, bytes);
}

static void write_compiled(void) {
    char message[512];
    write_model();
    if (!compile("x:3,4", message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        _exit(1);
    }
}
static void clean_up(void) {
    unlink(onnx);
    unlink(om);
}

static aclmdlDataset *set_of(void *const *data, const size_t *bytes, int n) {
    aclmdlDataset *set = aclmdlCreateDataset();
    CHECK(set);
    for (int i = 0; i < n; i++)
        CHECK_OK(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(data[i], bytes[i])));
    return set;
}
static void destroy_set(aclmdlDataset *set) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(set); i++)
        CHECK_OK(aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, i)));
    CHECK_OK(aclmdlDestroyDataset(set));
}

static void fill(float *x, int seed) {
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)((i * 7 + seed) % 11) - 5;
}
static void check_results(const float *x, const float *y, const unsigned char *z) {
    static const float b[4] = {2, -1, .5f, 0};
    for (int i = 0; i < ELEMENTS; i++)
        CHECK(y[i] == x[i] * b[i % 4] + x[i] && z[i] == (y[i] > x[i]));
}

/* Copies in, runs, copies out, compares. */
static void run_once(uint32_t id, int seed, aclrtStream stream) {
    float x[ELEMENTS], y[ELEMENTS];
    unsigned char z[ELEMENTS];
    void *in, *out[2];
    fill(x, seed);
    CHECK_OK(aclrtMalloc(&in, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&out[0], BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&out[1], ELEMENTS, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemcpy(in, BYTES, x, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    aclmdlDataset *input = set_of(&in, (size_t[]){BYTES}, 1), *output = set_of(out, (size_t[]){BYTES, ELEMENTS}, 2);
    if (stream) {
        CHECK_OK(aclmdlExecuteAsync(id, input, output, stream));
        CHECK_OK(aclrtSynchronizeStream(stream));
    } else {
        CHECK_OK(aclmdlExecute(id, input, output));
    }
    CHECK_OK(aclrtMemcpy(y, BYTES, out[0], BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_OK(aclrtMemcpy(z, ELEMENTS, out[1], ELEMENTS, ACL_MEMCPY_DEVICE_TO_HOST));
    check_results(x, y, z);
    destroy_set(input);
    destroy_set(output);
    CHECK_OK(aclrtFree(in));
    for (int i = 0; i < 2; i++)
        CHECK_OK(aclrtFree(out[i]));
}

TEST(a_model_from_file_to_result) {
    uint32_t id = 0;
    size_t work = 0, weight = 0, index = 9;
    aclmdlIODims dims;
    write_compiled();
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclmdlQuerySize(om, &work, &weight));
    CHECK(work > 0 && weight >= 16);
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK(aclmdlGetNumInputs(desc) == 1 && aclmdlGetNumOutputs(desc) == 2);
    CHECK(aclmdlGetInputSizeByIndex(desc, 0) == BYTES && aclmdlGetOutputSizeByIndex(desc, 1) == ELEMENTS);
    CHECK(strcmp(aclmdlGetInputNameByIndex(desc, 0), "x") == 0);
    CHECK(strcmp(aclmdlGetOutputNameByIndex(desc, 1), "z") == 0);
    CHECK(aclmdlGetInputDataType(desc, 0) == ACL_FLOAT && aclmdlGetOutputDataType(desc, 1) == ACL_BOOL);
    CHECK(aclmdlGetInputFormat(desc, 0) == ACL_FORMAT_ND);
    CHECK_OK(aclmdlGetInputDims(desc, 0, &dims));
    CHECK(dims.dimCount == 2 && dims.dims[0] == ROWS && dims.dims[1] == 4 && strcmp(dims.name, "x") == 0);
    CHECK_OK(aclmdlGetOutputIndexByName(desc, "z", &index));
    CHECK(index == 1);
    for (int i = 0; i < 5; i++)
        run_once(id, i, NULL);
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 5; i++)
        run_once(id, i, stream);
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclmdlUnload(id));
    CHECK_OK(aclmdlDestroyDesc(desc));
    CHECK_OK(aclFinalize());
    clean_up();
}

TEST(memory_of_the_caller_and_models_in_memory) {
    uint32_t id = 0, other = 0;
    size_t work, weight;
    void *work_memory, *weight_memory;
    write_compiled();
    CHECK_OK(aclrtSetDevice(0));
    FILE *file = fopen(om, "rb");
    static char bytes[65536];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK_OK(aclmdlQuerySizeFromMem(bytes, size, &work, &weight));
    CHECK_OK(aclrtMalloc(&work_memory, work, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&weight_memory, weight, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclmdlLoadFromFileWithMem(om, &id, work_memory, work, weight_memory, weight));
    CHECK_OK(aclmdlLoadFromMem(bytes, size, &other));
    CHECK(id != other);
    memset(bytes, 0, sizeof bytes); /* a copy was loaded */
    run_once(id, 3, NULL);
    run_once(other, 4, NULL);
    CHECK_OK(aclmdlUnload(id));
    run_once(other, 5, NULL);
    CHECK_OK(aclmdlUnload(other));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlLoadFromFileWithMem(om, &id, work_memory, work - 1, NULL, 0), "workSize");
    CHECK(aclmdlLoadFromFileWithMem(om, &id, bytes, sizeof bytes, NULL, 0) != ACL_SUCCESS);
    CHECK_OK(aclrtFree(work_memory));
    CHECK_OK(aclrtFree(weight_memory));
    clean_up();
}

TEST(wrong_calls_say_why) {
    uint32_t id = 0;
    void *in, *out[2];
    float host[ELEMENTS];
    write_compiled();
    CHECK_OK(aclrtSetDevice(0));
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclmdlLoadFromFile("/nowhere.om", &id), "/nowhere.om");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlLoadFromFile(onnx, &id), "no model");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlLoadFromFile(NULL, &id), "modelPath");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlLoadFromFile(om, NULL), "modelId");
    CHECK_FAILS(ACL_ERROR_INVALID_MODEL_ID, aclmdlUnload(77), "77");
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    CHECK(aclmdlGetNumInputs(desc) == 0);
    CHECK(aclmdlGetInputSizeByIndex(desc, 0) == 0);
    CHECK(strstr(aclGetRecentErrMsg(), "aclmdlGetDesc"));
    CHECK_FAILS(ACL_ERROR_INVALID_MODEL_ID, aclmdlGetDesc(desc, 77), "77");
    CHECK_OK(aclmdlGetDesc(desc, id));
    size_t index;
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlGetInputIndexByName(desc, "q", &index), "q");
    CHECK_OK(aclrtMalloc(&in, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&out[0], BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&out[1], ELEMENTS, ACL_MEM_MALLOC_HUGE_FIRST));
    aclmdlDataset *input = set_of(&in, (size_t[]){BYTES}, 1), *output = set_of(out, (size_t[]){BYTES, ELEMENTS}, 2);
    aclmdlDataset *small = set_of(&in, (size_t[]){BYTES - 1}, 1), *none = aclmdlCreateDataset();
    aclmdlDataset *on_host = set_of((void *[]){host}, (size_t[]){BYTES}, 1);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, none, output), "0 buffers", "1 inputs");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, small, output), "47 bytes", "48");
    CHECK(aclmdlExecute(id, on_host, output) != ACL_SUCCESS);
    CHECK(strstr(aclGetRecentErrMsg(), "input 0 (x)"));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, input, NULL), "output");
    CHECK_FAILS(ACL_ERROR_INVALID_MODEL_ID, aclmdlExecute(id + 1, input, output), "modelId");
    CHECK_OK(aclmdlExecute(id, input, output));
    CHECK(!aclmdlGetDatasetBuffer(input, 1));
    destroy_set(input);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, input, output), "input");
    destroy_set(output);
    destroy_set(small);
    destroy_set(none);
    destroy_set(on_host);
    CHECK_OK(aclmdlDestroyDesc(desc));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlDestroyDesc(desc), "modelDesc");
    CHECK_OK(aclmdlUnload(id));
    CHECK_FAILS(ACL_ERROR_INVALID_MODEL_ID, aclmdlUnload(id), "modelId");
    clean_up();
}

TEST(compiling_says_what_is_wrong) {
    char message[512];
    write_model();
    CHECK(!compile(NULL, message, sizeof message) && strstr(message, "input_shape"));
    CHECK(!compile("x:3", message, sizeof message) && strstr(message, "1 dimensions"));
    CHECK(!compile("x:3,5", message, sizeof message) && strstr(message, "made for 4"));
    CHECK(!compile("q:3,4", message, sizeof message) && strstr(message, "\"q\""));
    CHECK(!compile("x:a", message, sizeof message) && strstr(message, "x:a"));
    CHECK(!compile("x", message, sizeof message) && strstr(message, "name:dims"));
    CHECK(!dp_compile_model(&(dp_compile_options){.model = onnx, .output = om, .soc_version = "Ascend1"}, message, 9));
    CHECK(strlen(message) == 8);
    CHECK(!dp_compile_model(&(dp_compile_options){.model = "/nowhere", .output = om}, message, sizeof message) &&
          strstr(message, "/nowhere"));
    CHECK(!dp_compile_model(&(dp_compile_options){.model = onnx, .output = "/nowhere/x", .input_shape = "x:3,4"}, message,
                            sizeof message) &&
          strstr(message, "/nowhere/x"));
    clean_up();
}

TEST(options_one_by_one) {
    uint32_t id = 0;
    size_t type = ACL_MDL_LOAD_FROM_FILE, many = 9;
    const char *path = om;
    int32_t limit = 1000;
    float x[ELEMENTS];
    write_compiled();
    CHECK_OK(aclrtSetDevice(0));
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlLoadWithConfig(config, &id), "LOAD_TYPE");
    CHECK_OK(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof type));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlLoadWithConfig(config, &id), "modelPath");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, 3), "valueSize");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, NULL, 8), "attrValue");
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclmdlSetConfigOpt(config, ACL_MDL_INPUTQ_NUM_SIZET, &many, sizeof many), "queues");
    CHECK_OK(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, sizeof path));
    CHECK_OK(aclmdlLoadWithConfig(config, &id));
    run_once(id, 1, NULL);
    CHECK_OK(aclmdlDestroyConfigHandle(config));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlLoadWithConfig(config, &id), "handle");
    aclmdlExecConfigHandle *exec = aclmdlCreateExecConfigHandle();
    CHECK_OK(aclmdlSetExecConfigOpt(exec, ACL_MDL_STREAM_SYNC_TIMEOUT, &limit, sizeof limit));
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclmdlSetExecConfigOpt(exec, ACL_MDL_WORK_SIZET, &many, sizeof many), "limits of time");
    void *in, *out[2];
    CHECK_OK(aclrtMalloc(&in, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&out[0], BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc(&out[1], ELEMENTS, ACL_MEM_MALLOC_HUGE_FIRST));
    fill(x, 5);
    memcpy(in, x, BYTES);
    aclmdlDataset *input = set_of(&in, (size_t[]){BYTES}, 1), *output = set_of(out, (size_t[]){BYTES, ELEMENTS}, 2);
    for (int i = 0; i < 2; i++) {
        memset(out[0], 0, BYTES);
        CHECK_OK(i ? aclmdlExecuteAsyncV2(id, input, output, NULL, exec) : aclmdlExecuteV2(id, input, output, NULL, exec));
        CHECK_OK(aclrtSynchronizeStream(NULL));
        check_results(x, out[0], out[1]);
    }
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecuteV2(id, input, output, NULL, NULL), "handle");
    CHECK_OK(aclmdlDestroyExecConfigHandle(exec));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecuteAsyncV2(id, input, output, NULL, exec), "handle");
    destroy_set(input);
    destroy_set(output);
    CHECK_OK(aclmdlUnload(id));
    clean_up();
}

static void write_settings(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The values of every node in files that numpy reads. */
TEST(values_are_dumped) {
    char settings[80], folder[80], text[512], path[200], head[128];
    uint32_t id;
    float y[ELEMENTS], x[ELEMENTS];
    write_compiled();
    snprintf(settings, sizeof settings, "%s.json", om);
    snprintf(folder, sizeof folder, "%s.dump", om);
    CHECK_OK(aclrtSetDevice(0));
    CHECK_FAILS(ACL_ERROR_UNINITIALIZE, aclmdlSetDump(settings), "aclmdlInitDump");
    CHECK_OK(aclmdlInitDump());
    CHECK_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclmdlInitDump(), "already");
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclmdlSetDump("/nowhere.json"), "/nowhere.json");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDump(NULL), "dumpCfgPath");
    write_settings(settings, "[");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDump(settings), "JSON");
    write_settings(settings, "{\"dump\": {\"dump_path\": \"x\", \"dump_mode\": \"some\"}}");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDump(settings), "some");
    write_settings(settings, "{\"dump\": {\"dump_path\": \"/nowhere/x\"}}");
    CHECK_FAILS(ACL_ERROR_INVALID_FILE, aclmdlSetDump(settings), "/nowhere/x");
    snprintf(text, sizeof text, "{\"dump\": {\"dump_path\": \"%s\", \"dump_list\": [{\"model_name\": \"%.*s\"}]}}", folder,
             (int)strlen(strrchr(om, '/') + 1) - 3, strrchr(om, '/') + 1); /* the name has no suffix */
    write_settings(settings, text);
    CHECK_OK(aclmdlSetDump(settings));
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    run_once(id, 1, NULL);
    CHECK_OK(aclmdlFinalizeDump());
    run_once(id, 2, NULL);
    snprintf(text, sizeof text, "ls %s/*/0/*output.0.npy | grep -c _node_1[.] > %s; ls -d %s/*/* | wc -l >> %s", folder, settings, folder, settings);
    CHECK(system(text) == 0);
    FILE *file = fopen(settings, "r");
    int n = 0, runs = 0;
    CHECK(fscanf(file, "%d %d", &n, &runs) == 2 && n == 1 && runs == 1);
    fclose(file);
    snprintf(text, sizeof text, "cp %s/*/0/*_node_1.output.0.npy %s", folder, settings);
    CHECK(system(text) == 0);
    file = fopen(settings, "rb");
    CHECK(fread(head, 1, 128, file) == 128 && strstr(head + 10, "'<f4'") && strstr(head + 10, "(3,4,)"));
    CHECK(fread(y, 1, BYTES, file) == BYTES);
    fclose(file);
    fill(x, 1);
    CHECK(y[0] == 3 * x[0] && y[3] == x[3]);
    snprintf(path, sizeof path, "rm -rf %s %s", folder, settings);
    CHECK(system(path) == 0);
    CHECK_OK(aclmdlUnload(id));
    clean_up();
}

static void *many_runs(void *id) {
    CHECK_OK(aclrtSetDevice(0));
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 50; i++)
        run_once((uint32_t)(uintptr_t)id, i, i % 2 ? stream : NULL);
    CHECK_OK(aclrtDestroyStream(stream));
    return NULL;
}

/* One model from all threads, and others that come and go. */
TEST(threads_share_models) {
    uint32_t id;
    pthread_t threads[4];
    write_compiled();
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, many_runs, (void *)(uintptr_t)id) == 0);
    for (int i = 0; i < 50; i++) {
        uint32_t other;
        CHECK_OK(aclmdlLoadFromFile(om, &other));
        run_once(other, i, NULL);
        CHECK_OK(aclmdlUnload(other));
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(aclmdlUnload(id));
    clean_up();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_from_file_to_result), cmocka_unit_test(memory_of_the_caller_and_models_in_memory),
        cmocka_unit_test(wrong_calls_say_why),         cmocka_unit_test(compiling_says_what_is_wrong),
        cmocka_unit_test(threads_share_models),        cmocka_unit_test(values_are_dumped),
        cmocka_unit_test(options_one_by_one),
    };
    return cmocka_run_group_tests_name("api_mdl", tests, NULL, NULL);
}
