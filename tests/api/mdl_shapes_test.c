/* Models whose shapes are chosen at run time: gears, open shapes, shapes that depend on data. */
#include "child.h"

#include <pthread.h>

#include "doppel/compile.h"
#include "graph/onnx_make.h"
#include "sanitizers.h"

enum { FLOAT = 1, INT64 = 7 };
static char onnx[64], om[64];

static void name_files(void) {
    snprintf(onnx, sizeof onnx, "/tmp/doppel_shapes_%d.onnx", (int)getpid());
    snprintf(om, sizeof om, "/tmp/doppel_shapes_%d.om", (int)getpid());
}
static void write_onnx(maker *m) {
    size_t bytes;
    void *file = make_end(m, &bytes);
    name_files();
    FILE *out = fopen(onnx, "wb");
    CHECK(out && fwrite(file, 1, bytes, out) == bytes && fclose(out) == 0);
    free(file);
}
static void compile(dp_compile_options options) {
    char message[512];
    options.model = onnx;
    options.output = om;
    options.soc_version = "Ascend910B3";
    if (!dp_compile_model(&options, message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        _exit(1);
    }
}
static void compile_fails(dp_compile_options options, const char *word) {
    char message[512];
    options.model = onnx;
    options.output = om;
    if (dp_compile_model(&options, message, sizeof message) || !strstr(message, word)) {
        fprintf(stderr, "\"%s\" is not in: %s\n", word, message);
        _exit(1);
    }
}
static void clean_up(void) {
    unlink(onnx);
    unlink(om);
}

/* y = x + column sums of x, so that every row depends on all */
static maker *sums(int rank, const int64_t *dims) {
    maker *m = make_begin(17);
    make_input(m, "x", FLOAT, rank, dims);
    make_constant(m, "axis", INT64, 1, &(int64_t){1}, &(int64_t){0}, 8);
    make_node(m, "ReduceSum", "x axis", "sum");
    make_node(m, "Add", "x sum", "y");
    make_output_of(m, "y", FLOAT, rank, dims);
    return m;
}

static void *device(size_t bytes) {
    void *at;
    CHECK_OK(aclrtMalloc(&at, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return at;
}

static aclmdlDataset *new_set(int n, void *const *data, const size_t *bytes) {
    aclmdlDataset *set = aclmdlCreateDataset();
    for (int i = 0; i < n; i++)
        CHECK_OK(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(data[i], bytes[i])));
    return set;
}
static void destroy_set(aclmdlDataset *set) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(set); i++)
        CHECK_OK(aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, i)));
    CHECK_OK(aclmdlDestroyDataset(set));
}

static void fill(float *x, int n) {
    for (int i = 0; i < n; i++)
        x[i] = (float)(i * 7 % 11) - 4;
}
/* rows x columns */
static void check_sums(const float *x, const float *y, int rows, int columns) {
    for (int c = 0; c < columns; c++) {
        float sum = 0;
        for (int r = 0; r < rows; r++)
            sum += x[r * columns + c];
        for (int r = 0; r < rows; r++)
            CHECK(y[r * columns + c] == x[r * columns + c] + sum);
    }
}

TEST(batch_sizes) {
    uint32_t id, fixed;
    size_t index = 9, most;
    aclmdlIODims dims;
    aclmdlBatch batch;
    aclmdlHW hw;
    write_onnx(sums(2, (int64_t[]){-1, 4}));
    compile((dp_compile_options){.input_shape = "x:-1,4", .dynamic_batch_size = "1,2,8"});
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK(aclmdlGetNumInputs(desc) == 2);
    CHECK_OK(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
    CHECK(index == 1);
    CHECK_OK(aclmdlGetInputDims(desc, 0, &dims));
    CHECK(dims.dimCount == 2 && dims.dims[0] == -1 && dims.dims[1] == 4);
    CHECK_OK(aclmdlGetDynamicBatch(desc, &batch));
    CHECK(batch.batchCount == 3 && batch.batch[2] == 8);
    CHECK_OK(aclmdlGetDynamicHW(desc, 0, &hw));
    CHECK(hw.hwCount == 0);
    CHECK((most = aclmdlGetInputSizeByIndex(desc, 0)) == 8 * 4 * 4 && aclmdlGetOutputSizeByIndex(desc, 0) == most);
    size_t extra = aclmdlGetInputSizeByIndex(desc, index);
    float *x = device(most), *y = device(most);
    aclmdlDataset *in = new_set(2, (void *[]){x, device(extra)}, (size_t[]){most, extra}),
                  *out = new_set(1, (void *[]){y}, &most);
    fill(x, 32);
    memset(aclGetDataBufferAddr(aclmdlGetDatasetBuffer(in, 1)), 0, extra);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, in, out), "aclmdlSetDynamicBatchSize");
    static const int sizes[] = {2, 8, 1, 2};
    for (int i = 0; i < 4; i++) {
        CHECK_OK(aclmdlSetDynamicBatchSize(id, in, index, (uint64_t)sizes[i]));
        CHECK_OK(aclmdlGetCurOutputDims(desc, 0, &dims));
        CHECK(dims.dims[0] == sizes[i]);
        CHECK_OK(aclmdlExecute(id, in, out));
        check_sums(x, y, sizes[i], 4);
    }
    static const uint64_t wrong[] = {0, 3, UINT64_MAX, (uint64_t)1 << 32 | 2};
    for (int i = 0; i < 4; i++)
        CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDynamicBatchSize(id, in, index, wrong[i]), "batchSize",
                    "none of the 3");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDynamicBatchSize(id, in, 0, 2), "index");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDynamicBatchSize(id, out, index, 2), "index");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDynamicBatchSize(id, NULL, index, 2), "dataset");
    CHECK_FAILS(ACL_ERROR_INVALID_MODEL_ID, aclmdlSetDynamicBatchSize(id + 5, in, index, 2), "modelId");
    CHECK_FAILS(ACL_ERROR_MODEL_NOT_DYNAMIC, aclmdlSetDynamicHWSize(id, in, index, 2, 2), "dynamic_image_size");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, out, out), "1 buffers", ACL_DYNAMIC_TENSOR_NAME);
    aclmdlDataset *small = new_set(2, (void *[]){x, x}, (size_t[]){16, 3});
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDynamicBatchSize(id, small, index, 2), "3 bytes");
    destroy_set(small);
    small = new_set(2, (void *[]){x, aclGetDataBufferAddr(aclmdlGetDatasetBuffer(in, 1))}, (size_t[]){31, extra});
    CHECK_OK(aclmdlSetDynamicBatchSize(id, small, index, 2));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, small, out), "31 bytes", "32");
    destroy_set(small);
    compile((dp_compile_options){.input_shape = "x:3,4"});
    CHECK_OK(aclmdlLoadFromFile(om, &fixed));
    CHECK_FAILS(ACL_ERROR_MODEL_NOT_DYNAMIC, aclmdlSetDynamicBatchSize(fixed, in, index, 2), "dynamic_batch_size");
    CHECK_OK(aclmdlUnload(id));
    CHECK_FAILS(ACL_ERROR_INVALID_MODEL_ID, aclmdlSetDynamicBatchSize(id, in, index, 2), "modelId");
    CHECK_FAILS(ACL_ERROR_INVALID_MODEL_ID, aclmdlGetCurOutputDims(desc, 0, &dims), "modelId");
    CHECK_OK(aclmdlDestroyDesc(desc));
    destroy_set(in);
    destroy_set(out);
    clean_up();
}

TEST(image_sizes_and_dims) {
    uint32_t id;
    size_t index, count;
    aclmdlHW hw;
    aclmdlIODims dims[2];
    write_onnx(sums(4, (int64_t[]){-1, 1, -1, -1}));
    compile((dp_compile_options){.input_shape = "x:2,1,-1,-1", .dynamic_image_size = "3,4;5,2"});
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK_OK(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
    CHECK_OK(aclmdlGetDynamicHW(desc, index, &hw));
    CHECK(hw.hwCount == 2 && hw.hw[1][0] == 5 && hw.hw[1][1] == 2);
    float *x = device(4096), *y = device(4096);
    aclmdlDataset *in = new_set(2, (void *[]){x, device(64)}, (size_t[]){4096, 64}),
                  *out = new_set(1, (void *[]){y}, (size_t[]){4096});
    fill(x, 512);
    CHECK_OK(aclmdlSetDynamicHWSize(id, in, index, 5, 2));
    CHECK_OK(aclmdlExecute(id, in, out));
    check_sums(x, y, 2, 10);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDynamicHWSize(id, in, index, 2, 5), "2 x 5");
    CHECK_OK(aclmdlUnload(id));
    compile((dp_compile_options){.input_shape = "x:-1,1,-1,2", .dynamic_dims = "1,3;4,5"});
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK_OK(aclmdlGetInputDynamicGearCount(desc, (size_t)-1, &count));
    CHECK(count == 2);
    CHECK_OK(aclmdlGetInputDynamicDims(desc, (size_t)-1, dims, count));
    CHECK(dims[1].dimCount == 4 && dims[1].dims[0] == 4 && dims[1].dims[2] == 5 && dims[1].dims[3] == 2);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlGetInputDynamicDims(desc, (size_t)-1, dims, 3), "gearCount");
    CHECK_OK(aclmdlSetInputDynamicDims(id, in, index, &dims[1]));
    CHECK_OK(aclmdlExecute(id, in, out));
    check_sums(x, y, 4, 10);
    dims[1].dims[3] = 3;
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetInputDynamicDims(id, in, index, &dims[1]), "none of the 2");
    dims[1].dimCount = SIZE_MAX;
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetInputDynamicDims(id, in, index, &dims[1]), "dims");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetInputDynamicDims(id, in, index, NULL), "dims");
    CHECK_OK(aclmdlUnload(id));
    CHECK_OK(aclmdlDestroyDesc(desc));
    destroy_set(in);
    destroy_set(out);
    clean_up();
}

static void set_shape(aclmdlDataset *set, size_t index, int rank, const int64_t *dims) {
    aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT, rank, dims, ACL_FORMAT_ND);
    CHECK_OK(aclmdlSetDatasetTensorDesc(set, desc, index));
    aclDestroyTensorDesc(desc);
}

TEST(open_shapes) {
    uint32_t id;
    aclmdlIODims dims;
    aclmdlIODimsRange range;
    write_onnx(sums(2, (int64_t[]){-1, -1}));
    compile((dp_compile_options){.input_shape = "x:1~6,-1"});
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK(aclmdlGetNumInputs(desc) == 1 && aclmdlGetInputSizeByIndex(desc, 0) == 0 &&
          aclmdlGetOutputSizeByIndex(desc, 0) == 0);
    CHECK_OK(aclmdlGetInputDims(desc, 0, &dims));
    CHECK(dims.dims[0] == -1 && dims.dims[1] == -1);
    CHECK_OK(aclmdlGetOutputDims(desc, 0, &dims));
    CHECK(dims.dimCount == 2 && dims.dims[1] == -1);
    CHECK_OK(aclmdlGetInputDimsRange(desc, 0, &range));
    CHECK(range.rangeCount == 2 && range.range[0][0] == 1 && range.range[0][1] == 6 && range.range[1][1] == -1);
    float *x = device(4096), *y = device(4096);
    fill(x, 1024);
    aclmdlDataset *in = new_set(1, (void *[]){x}, (size_t[]){4096}), *out = new_set(1, (void *[]){y}, (size_t[]){4096});
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, in, out), "aclmdlSetDatasetTensorDesc");
    for (int64_t n = 1; n <= 40; n++) {
        set_shape(in, 0, 2, (int64_t[]){n % 6 + 1, n});
        CHECK_OK(aclmdlExecute(id, in, out));
        check_sums(x, y, (int)(n % 6 + 1), (int)n);
        CHECK_OK(aclmdlGetCurOutputDims(desc, 0, &dims));
        CHECK(dims.dimCount == 2 && dims.dims[0] == n % 6 + 1 && dims.dims[1] == n);
        aclTensorDesc *made = aclmdlGetDatasetTensorDesc(out, 0);
        CHECK(made && aclGetTensorDescNumDims(made) == 2 &&
              aclGetTensorDescSize(made) == (size_t)((n % 6 + 1) * n * 4));
    }
    static const int64_t wrong[][2] = {{7, 2}, {0, 2}, {6, 1000}, {1, INT64_MAX}, {6, (int64_t)1 << 61}};
    for (int i = 0; i < 5; i++) {
        set_shape(in, 0, 2, wrong[i]);
        CHECK(aclmdlExecute(id, in, out) == ACL_ERROR_INVALID_PARAM);
    }
    set_shape(in, 0, 1, (int64_t[]){3});
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, in, out), "1 dimensions");
    aclTensorDesc *other = aclCreateTensorDesc(ACL_INT32, 2, (int64_t[]){2, 2}, ACL_FORMAT_ND);
    CHECK_OK(aclmdlSetDatasetTensorDesc(in, other, 0));
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, in, out), "data type");
    aclDestroyTensorDesc(other);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDatasetTensorDesc(in, other, 0), "tensorDesc");
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlSetDatasetTensorDesc(in, NULL, 3), "index");
    CHECK(!aclmdlGetDatasetTensorDesc(in, 1));
    CHECK_OK(aclmdlUnload(id));
    CHECK_OK(aclmdlDestroyDesc(desc));
    destroy_set(in);
    destroy_set(out);
    clean_up();
}

/* The elements above 0; the library takes the memory, for nobody knows how many there are. */
TEST(results_of_unknown_size) {
    uint32_t id;
    maker *m = make_begin(17);
    make_input(m, "x", FLOAT, 1, (int64_t[]){8});
    make_constant(m, "zero", FLOAT, 0, NULL, &(float){0}, 4);
    make_node(m, "Greater", "x zero", "above");
    make_node(m, "Compress", "x above", "y");
    make_output_of(m, "y", FLOAT, 1, (int64_t[]){-1});
    write_onnx(m);
    compile((dp_compile_options){.soc_version = NULL});
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    float *x = device(32);
    aclmdlDataset *in = new_set(1, (void *[]){x}, (size_t[]){32}), *out = new_set(1, (void *[]){NULL}, (size_t[]){0});
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 8; i++)
        x[i] = i % 3 ? (float)i : -1;
    CHECK_FAILS(ACL_ERROR_API_NOT_SUPPORT, aclmdlExecuteAsync(id, in, out, stream), "empty buffer");
    CHECK_OK(aclmdlExecute(id, in, out));
    aclDataBuffer *made = aclmdlGetDatasetBuffer(out, 0);
    const float *y = aclGetDataBufferAddr(made);
    CHECK(aclGetDataBufferSizeV2(made) == 5 * 4 && y[0] == 1 && y[1] == 2 && y[4] == 7);
    for (int i = 0; i < 8; i++)
        x[i] = (float)(i + 1);
    CHECK_FAILS(ACL_ERROR_INVALID_PARAM, aclmdlExecute(id, in, out), "20 bytes", "32");
    CHECK_OK(aclrtFree((void *)y));
    CHECK_OK(aclUpdateDataBuffer(made, device(64), 64));
    CHECK_OK(aclmdlExecuteAsync(id, in, out, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(((float *)aclGetDataBufferAddr(made))[7] == 8);
    CHECK_OK(aclUpdateDataBuffer(made, x + 4, 64)); /* past the end of its memory */
    CHECK(aclmdlExecute(id, in, out) != ACL_SUCCESS);
    CHECK_OK(aclmdlUnload(id));
    CHECK_OK(aclrtDestroyStream(stream));
    destroy_set(in);
    destroy_set(out);
    clean_up();
}

static void *fixed; /* the model that takes 5 x 9 only */

static void *many_shapes(void *id) {
    CHECK_OK(aclrtSetDevice(0));
    float *x = device(4096), *y = device(4096);
    fill(x, 1024);
    aclmdlDataset *in = new_set(1, (void *[]){x}, (size_t[]){4096}), *out = new_set(1, (void *[]){y}, (size_t[]){4096});
    for (int i = 0; i < 60; i++) {
        int rows = id == fixed ? 5 : i % 5 + 1, columns = id == fixed ? 9 : i % 9 + 1;
        set_shape(in, 0, 2, (int64_t[]){rows, columns});
        CHECK_OK(aclmdlExecute((uint32_t)(uintptr_t)id, in, out));
        check_sums(x, y, rows, columns);
    }
    destroy_set(in);
    destroy_set(out);
    return NULL;
}

TEST(threads_choose_shapes) {
    uint32_t ids[2];
    pthread_t threads[4];
    write_onnx(sums(2, (int64_t[]){-1, -1}));
    compile((dp_compile_options){.input_shape = "x:-1,-1"});
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < 2; i++)
        CHECK_OK(aclmdlLoadFromFile(om, &ids[i]));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, many_shapes, (void *)(uintptr_t)ids[i % 2]) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK_OK(aclmdlUnload(ids[i]));
    clean_up();
}

static _Atomic bool stop;

static void *without_end(void *id) {
    while (!stop)
        many_shapes(id);
    return NULL;
}

/* Children of a process whose other threads run models run these, too: the one of one shape, and the one of any. */
TEST(a_child_of_fork_runs_what_others_were_running) {
    if (!FORKS_WHILE_BUSY)
        return;
    uint32_t ids[2];
    pthread_t threads[2];
    write_onnx(sums(2, (int64_t[]){-1, -1}));
    CHECK_OK(aclrtSetDevice(0));
    compile((dp_compile_options){.input_shape = "x:-1,-1"});
    CHECK_OK(aclmdlLoadFromFile(om, &ids[0]));
    compile((dp_compile_options){.input_shape = "x:5,9"});
    CHECK_OK(aclmdlLoadFromFile(om, &ids[1]));
    fixed = (void *)(uintptr_t)ids[1];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, without_end, (void *)(uintptr_t)ids[i]) == 0);
    for (int i = 0; i < 20; i++) {
        usleep((useconds_t)(500 + 137 * i));
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            many_shapes((void *)(uintptr_t)ids[i % 2]);
            many_shapes((void *)(uintptr_t)ids[1 - i % 2]);
            _exit(aclmdlUnload(ids[0]) || aclmdlUnload(ids[1]));
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = true;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0 && aclmdlUnload(ids[i]) == ACL_SUCCESS);
    clean_up();
}

TEST(compiling_for_shapes_says_what_is_wrong) {
    write_onnx(sums(2, (int64_t[]){-1, 4}));
    compile_fails((dp_compile_options){.input_shape = "x:3,4", .dynamic_batch_size = "1,2"}, "-1");
    compile_fails((dp_compile_options){.input_shape = "x:-1,4", .dynamic_batch_size = "1,0"}, "dynamic_batch_size");
    compile_fails((dp_compile_options){.input_shape = "x:-1,4", .dynamic_batch_size = "1,1"}, "different");
    compile_fails((dp_compile_options){.input_shape = "x:-1,4", .dynamic_batch_size = "1;2"}, "dynamic_batch_size");
    compile_fails((dp_compile_options){.input_shape = "x:-1,4", .dynamic_image_size = "1,2"}, "height and width");
    compile_fails((dp_compile_options){.input_shape = "x:-1,4", .dynamic_dims = "1", .dynamic_batch_size = "1"},
                  "only one");
    compile_fails((dp_compile_options){.input_shape = "x:5~2,4"}, "x:5~2,4");
    compile_fails((dp_compile_options){.input_shape = "x:-1,5"}, "made for 4");
    compile_fails((dp_compile_options){.input_shape = "x:-1,4", .precision_mode_v2 = "fp16"}, "precision");
    compile_fails((dp_compile_options){.input_shape = "x:2,4", .out_nodes = "nothing:0"}, "nothing:0");
    compile((dp_compile_options){.input_shape = "x:2,4", .out_nodes = "node 0:0;y"});
    uint32_t id;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclmdlLoadFromFile(om, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    CHECK_OK(aclmdlGetDesc(desc, id));
    CHECK(aclmdlGetNumOutputs(desc) == 2 && strcmp(aclmdlGetOutputNameByIndex(desc, 0), "sum") == 0);
    CHECK_OK(aclmdlDestroyDesc(desc));
    CHECK_OK(aclmdlUnload(id));
    clean_up();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_sizes),
        cmocka_unit_test(image_sizes_and_dims),
        cmocka_unit_test(open_shapes),
        cmocka_unit_test(results_of_unknown_size),
        cmocka_unit_test(threads_choose_shapes),
        cmocka_unit_test(compiling_for_shapes_says_what_is_wrong),
        cmocka_unit_test(a_child_of_fork_runs_what_others_were_running),
    };
    return cmocka_run_group_tests_name("api_mdl_shapes", tests, NULL, NULL);
}
